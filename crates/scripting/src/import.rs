//! `stepladder import`: turns a browser's recording into a bot.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use console::exit::{Exit, Failure, wrong_usage};
use console::say;
use recording::Frames;
use watch::files::{self, Accepts};

use crate::written::{check_free, counted, write_recorded};

/// A session of hours, with its bodies.
const HAR_BYTES_MAX: u64 = 512 << 20;

/// Options of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The recording: "Save all as HAR with content" in the network panel of the browser
    har: PathBuf,
    /// The bot to write [default: the recording's name with .ts]
    bot: Option<PathBuf>,
}

/// Writes the bot of a HAR.
pub fn import(args: &ImportArgs) -> Result<Exit, Failure> {
    let name = || Path::new(args.har.file_stem().unwrap_or_default()).with_extension("ts");
    let bot = args.bot.clone().unwrap_or_else(name);
    check_free(&bot).map_err(wrong_usage)?;
    let shown = args.har.display();
    let text = files::read(&args.har, Accepts::FilesAndPipes, HAR_BYTES_MAX)
        .with_context(|| format!("{shown} cannot be read"))
        .map_err(wrong_usage)?;
    let found = recording::from_har(&text).with_context(|| shown.to_string()).map_err(wrong_usage)?;
    let notes = [
        (
            found.of_page,
            "request",
            "for a script, a style, a picture or the like is left out",
            "for scripts, styles, pictures and the like are left out",
        ),
        (
            found.of_others,
            "connection",
            "to another host is left out: a bot talks to its target only",
            "to other hosts are left out: a bot talks to its target only",
        ),
        (
            found.without_messages,
            "WebSocket",
            "has no messages in the file; record with Chrome, from before it connects",
            "have no messages in the file; record with Chrome, from before they connect",
        ),
    ];
    for (count, what, of_one, of_many) in notes.into_iter().filter(|(count, ..)| *count > 0) {
        say::out_line!("note: {} {}", counted(count, what), if count == 1 { of_one } else { of_many });
    }
    write_recorded(&found.session, &bot, Frames::Raw)
}
