//! Writes a bot to a file, with the support files that an editor needs. Never overwrites an existing file.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use console::exit::{Exit, Failure, not_measured};
use console::say;
use plan::is_script_file;
use recording::{Frames, Session};
use script::TEMPLATES;

/// Refuses a name that no bot has, or that a file has already.
pub(super) fn check_free(bot: &Path) -> anyhow::Result<()> {
    if !is_script_file(&bot.to_string_lossy()) {
        bail!("{}: a bot's file ends in .ts or .js; for example: player.ts", bot.display());
    }
    if bot.symlink_metadata().is_ok() {
        bail!("{} is there already and is not written over; choose another name", bot.display());
    }
    Ok(())
}

/// Writes a bot, with the support files that an editor needs.
pub(super) fn write_bot_file(bot: &Path, text: &str) -> anyhow::Result<()> {
    check_free(bot)?;
    let folder = bot.parent().unwrap_or(Path::new(""));
    for (at, (name, template)) in TEMPLATES.iter().enumerate() {
        let (path, text) = if at == 0 { (bot.to_owned(), text) } else { (folder.join(name), *template) };
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())
                    .with_context(|| format!("{} cannot be written", path.display()))?;
                say::out_line!("wrote {}", path.display());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && at > 0 => {
                say::out_line!("kept {}, which is there already", path.display());
            }
            Err(error) => return Err(error).with_context(|| format!("{} cannot be written", path.display())),
        }
    }
    Ok(())
}

/// Writes the bot of a recorded session, and says what is in it and how to play it.
pub(super) fn write_recorded(session: &Session, bot: &Path, frames: Frames) -> Result<Exit, Failure> {
    let shown = bot.display().to_string();
    let written = recording::write_bot(session, &shown, frames).map_err(not_measured)?;
    write_bot_file(bot, &written.text).map_err(not_measured)?;
    let lasts_s = session.events.last().map_or(0, |last| last.at_ns) as f64 / 1e9;
    say::out_line!(
        "{} in {lasts_s:.1} s; {} from the server; {}",
        counted(session.events.len(), "event"),
        counted(written.variables, "variable"),
        match written.loops {
            0 => "nothing that repeats".to_owned(),
            loops => counted(loops, "loop"),
        }
    );
    for remark in &written.remarks {
        say::out_line!("note: {remark}");
    }
    let set: String = written.env.iter().map(|name| format!("{name}=… ")).collect();
    let given: String = written.env.iter().map(|name| format!(" --env {name}")).collect();
    let target = &session.target;
    say::out_line!("play one bot:  {set}stepladder try {shown} --target {target}{given}");
    say::out_line!("climb with it: {set}stepladder climb {shown} --target {target}{given} --rungs 10,50,100");
    Ok(Exit::Met)
}

/// `1 event`, `2 events`.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
