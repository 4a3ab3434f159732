//! `stepladder new`: a bot to begin with. `stepladder try`: one bot, with everything that it says and hears.

mod attempt;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use plan::is_script_file;
use script::TEMPLATES;

use crate::exit::{Exit, Failure, wrong_usage};
use crate::say;

pub use attempt::{TryArgs, attempt};

/// Options of `new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// The bot to write; its types and tsconfig.json go beside it
    #[arg(default_value = TEMPLATES[0].0)]
    file: PathBuf,
}

/// Writes a bot and what an editor needs to understand it; nothing that is there is written over.
pub fn new(args: &NewArgs) -> Result<Exit, Failure> {
    write_templates(&args.file).map_err(wrong_usage)?;
    let shown = args.file.display();
    say::out_line!("play one bot:  stepladder try {shown} --target ws://127.0.0.1:8080");
    say::out_line!("climb with it: stepladder climb {shown} --target ws://127.0.0.1:8080 --rungs 10,50,100");
    Ok(Exit::Met)
}

fn write_templates(bot: &Path) -> anyhow::Result<()> {
    if !is_script_file(&bot.to_string_lossy()) {
        bail!("{}: a bot's file ends in .ts or .js; for example: stepladder new player.ts", bot.display());
    }
    let folder = bot.parent().unwrap_or(Path::new(""));
    for (at, (name, text)) in TEMPLATES.iter().enumerate() {
        let path = if at == 0 { bot.to_owned() } else { folder.join(name) };
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())
                    .with_context(|| format!("{} cannot be written", path.display()))?;
                say::out_line!("wrote {}", path.display());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && at > 0 => {
                say::out_line!("kept {}, which is there already", path.display());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                bail!("{} is there already and is not written over; choose another name", path.display());
            }
            Err(error) => return Err(error).with_context(|| format!("{} cannot be written", path.display())),
        }
    }
    Ok(())
}
