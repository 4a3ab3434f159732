//! `stepladder new`: a starter bot. `stepladder try`: one bot, with everything that it sends and receives. `stepladder
//! record` and `stepladder import`: a bot that replays what a real client sent.

mod attempt;
mod import;
mod record;
mod written;

use std::path::PathBuf;

use clap::Args;
use console::exit::{Exit, Failure, wrong_usage};
use console::say;
use script::TEMPLATES;

use self::written::write_bot_file;
pub use attempt::{TryArgs, attempt};
pub use import::{ImportArgs, import};
pub use record::{RecordArgs, record};

/// Options of `new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// The bot to write; its types and tsconfig.json go beside it
    #[arg(default_value = TEMPLATES[0].0)]
    file: PathBuf,
}

/// Writes a bot and what an editor needs to understand it; nothing that is there is written over.
pub fn new(args: &NewArgs) -> Result<Exit, Failure> {
    write_bot_file(&args.file, TEMPLATES[0].1).map_err(wrong_usage)?;
    let shown = args.file.display();
    say::out_line!("play one bot:  stepladder try {shown} --target ws://127.0.0.1:8080");
    say::out_line!("climb with it: stepladder climb {shown} --target ws://127.0.0.1:8080 --rungs 10,50,100");
    Ok(Exit::Met)
}
