//! The user's consent to what a file asks for: given on the command line, or asked for on a terminal.
//!
//! A scenario or a store may come from elsewhere, so it starts no command, leads no server to a file and loads no other machine
//! by its own word (`plan::wishes`).

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::bail;
use plan::Wish;

use crate::say;

/// On whose word a climb rests.
#[derive(Clone, Debug)]
pub enum Consent {
    /// the user's own, on the command line
    Own,
    /// a file's; its user has agreed to all that it wishes for
    OfFile {
        /// hosts beyond this machine that the user named
        hosts: Vec<String>,
    },
}

impl Consent {
    /// Asks for what `file` wishes for beyond what the command line allows (`--allow-start`, `--i-may-load HOST`).
    ///
    /// Errors: nobody is there to be asked, or says no.
    pub fn obtain(
        file: &str,
        wishes: Vec<Wish>,
        may_start: bool,
        mut hosts: Vec<String>,
    ) -> anyhow::Result<Consent> {
        let is_open = |wish: &Wish| match wish {
            Wish::Start(_) | Wish::Option(_) | Wish::TickLog(_) => !may_start,
            // A name may stand for this machine: where nobody is asked, what it resolves to is looked at.
            Wish::Load(host) => !hosts.iter().any(|named| named.eq_ignore_ascii_case(host)),
        };
        let open: Vec<Wish> = wishes.into_iter().filter(is_open).collect();
        if open.is_empty() {
            return Ok(Consent::OfFile { hosts });
        }
        let file = say::in_line(file);
        if io::stdin().is_terminal() && io::stderr().is_terminal() {
            say::err_line!("{file} is about to");
            open.iter().for_each(|wish| say::err_line!("  {}", say::in_line(&wish.to_string())));
            say::err_text!("Go on? [y/N] ");
            let mut answer = String::new();
            io::stdin().lock().read_line(&mut answer)?;
            if !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
                bail!("{file}: not confirmed, so nothing was started");
            }
            hosts.extend(open.into_iter().filter_map(|wish| match wish {
                Wish::Load(host) => Some(host),
                _ => None,
            }));
            return Ok(Consent::OfFile { hosts });
        }
        for wish in open {
            if !matches!(wish, Wish::Load(_)) {
                let wish = say::in_line(&wish.to_string());
                bail!("{file} asks to {wish}; if it may, say --allow-start");
            }
        }
        Ok(Consent::OfFile { hosts })
    }
}
