//! The user's consent to what a file asks for: given on the command line, or asked for on a terminal.
//!
//! A scenario or a store may come from elsewhere, so it starts no command, leads no server to a file and loads no other machine
//! by its own word (`plan::wishes`).

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::bail;
use console::say;
use plan::Wish;

/// No wish is longer where its user is asked: what is not shown whole is not consented to. The longest command of a scenario, with
/// the words around it.
const WISH_BYTES_MAX: usize = 4096 + 64;
/// Of a longer one the prompt says how long it is: its beginning may have left the screen.
const SCREEN_BYTES: usize = 1000;
/// Nor are there more of them: the first ones would leave the screen.
const WISHES_MAX: usize = 20;

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
    /// Errors: nobody is there to be asked, or says no; it wishes for more than a user can read.
    pub fn obtain(
        file: &str,
        wishes: Vec<Wish>,
        may_start: bool,
        mut hosts: Vec<String>,
    ) -> anyhow::Result<Consent> {
        let is_open = |wish: &Wish| match wish {
            Wish::Start(_) | Wish::Option(_) | Wish::TickLog(_) | Wish::Send(_) => !may_start,
            // A name may stand for this machine: where nobody is asked, what it resolves to is looked at.
            Wish::Load(host) => !hosts.iter().any(|named| named.eq_ignore_ascii_case(host)),
        };
        let open: Vec<Wish> = wishes.into_iter().filter(is_open).collect();
        if open.is_empty() {
            return Ok(Consent::OfFile { hosts });
        }
        let file = say::in_line(file);
        check_readable(&file, &open)?;
        if io::stdin().is_terminal() && io::stderr().is_terminal() {
            say::err_line!("{file} is about to");
            for text in open.iter().map(ToString::to_string) {
                say::err_line!("  {}", say::in_line(&text));
                if text.len() > SCREEN_BYTES {
                    say::err_line!("  (these were {} bytes; read them from their beginning)", text.len());
                }
            }
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

/// Whether a user can read what is wished for. Errors: not, and how long it is.
fn check_readable(file: &str, wishes: &[Wish]) -> anyhow::Result<()> {
    let advice = "read the file, shorten it, or say --allow-start (--i-may-load HOST for hosts)";
    for text in wishes.iter().map(ToString::to_string) {
        if text.len() > WISH_BYTES_MAX {
            let begin: String = text.chars().take(80).collect();
            bail!(
                "{file} asks to {}… ({} bytes), which is too long to be shown and agreed to (at most {WISH_BYTES_MAX} \
                 bytes); {advice}",
                say::in_line(&begin),
                text.len()
            );
        }
    }
    if wishes.len() > WISHES_MAX {
        bail!(
            "{file} asks for {} things at once, too many to be shown and agreed to; {advice}",
            wishes.len()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_to_be_read_cannot_be_agreed_to() {
        let refused = |wishes: Vec<Wish>| {
            Consent::obtain("game.yaml", wishes, false, Vec::new()).expect_err("it is refused").to_string()
        };
        let long = refused(vec![Wish::Start(format!("true; {}", "x".repeat(50_000_000)))]);
        assert!(long.starts_with("game.yaml asks to start the command: true; xxx"), "{}", &long[..100]);
        assert!(
            long.contains("… (50000025 bytes), which is too long to be shown and agreed to"),
            "{}",
            long.len()
        );
        assert!(long.len() < 400, "{}", long.len());
        let many = refused(vec![Wish::Option("--data x".to_owned()); 21]);
        assert!(many.starts_with("game.yaml asks for 21 things at once, too many"), "{many}");
        // The user's word counts without a question.
        let allowed = Consent::obtain("game.yaml", vec![Wish::Start("x".repeat(5_000))], true, Vec::new());
        assert!(allowed.is_ok());
    }
}
