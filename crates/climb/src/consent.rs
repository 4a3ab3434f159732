//! The user's consent to what a file asks for, given on the command line or at a terminal prompt.
//!
//! A scenario or a store may come from elsewhere. Without the user's permission it must not start a command, point a
//! server at a file or load another machine (`plan::permissions`).

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::bail;
use console::say;
use plan::Permission;

/// Longest text of one permission, bytes: what is not shown whole is not consented to. The longest command of a scenario, with
/// the words around it.
const PERMISSION_BYTES_MAX: usize = 4096 + 64;
/// Of a longer one the prompt says how long it is: its beginning may have left the screen.
const SCREEN_BYTES: usize = 1000;
/// Nor are there more of them: the first ones would leave the screen.
const PERMISSIONS_MAX: usize = 20;

/// Who wrote what a climb does.
#[derive(Clone, Debug)]
pub enum Consent {
    /// the user, on the command line
    Own,
    /// a file; its user has agreed to all that it needs permission for
    OfFile {
        /// hosts beyond this machine that the user named
        hosts: Vec<String>,
    },
}

impl Consent {
    /// Asks for what `file` needs permission for beyond what the command line allows (`--allow-start`, `--i-may-load HOST`).
    ///
    /// Errors: nobody is there to be asked, or says no; it needs more permissions than a user can read.
    pub fn obtain(
        file: &str,
        permissions: Vec<Permission>,
        may_start: bool,
        mut hosts: Vec<String>,
    ) -> anyhow::Result<Consent> {
        let is_open = |permission: &Permission| match permission {
            Permission::Start(_)
            | Permission::Option(_)
            | Permission::TickLog(_)
            | Permission::Listen(_)
            | Permission::Send(_) => !may_start,
            // A name may resolve to this machine: if nobody can be asked, the resolved address decides.
            Permission::Load(host) => !hosts.iter().any(|named| named.eq_ignore_ascii_case(host)),
        };
        let open: Vec<Permission> = permissions.into_iter().filter(is_open).collect();
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
            hosts.extend(open.into_iter().filter_map(|permission| match permission {
                Permission::Load(host) => Some(host),
                _ => None,
            }));
            return Ok(Consent::OfFile { hosts });
        }
        for permission in open {
            if !matches!(permission, Permission::Load(_)) {
                let permission = say::in_line(&permission.to_string());
                bail!("{file} asks to {permission}; if it may, say --allow-start");
            }
        }
        Ok(Consent::OfFile { hosts })
    }
}

/// Whether a user can read all of it. Errors: it is too long, with its length.
fn check_readable(file: &str, permissions: &[Permission]) -> anyhow::Result<()> {
    let advice = "read the file, shorten it, or say --allow-start (--i-may-load HOST for hosts)";
    for text in permissions.iter().map(ToString::to_string) {
        if text.len() > PERMISSION_BYTES_MAX {
            let begin: String = text.chars().take(80).collect();
            bail!(
                "{file} asks to {}… ({} bytes), which is too long to be shown and agreed to (at most {PERMISSION_BYTES_MAX} \
                 bytes); {advice}",
                say::in_line(&begin),
                text.len()
            );
        }
    }
    if permissions.len() > PERMISSIONS_MAX {
        bail!(
            "{file} asks for {} things at once, too many to be shown and agreed to; {advice}",
            permissions.len()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_to_be_read_cannot_be_agreed_to() {
        let refused = |permissions: Vec<Permission>| {
            Consent::obtain("game.yaml", permissions, false, Vec::new())
                .expect_err("it is refused")
                .to_string()
        };
        let long = refused(vec![Permission::Start(format!("true; {}", "x".repeat(50_000_000)))]);
        assert!(long.starts_with("game.yaml asks to start the command: true; xxx"), "{}", &long[..100]);
        assert!(
            long.contains("… (50000025 bytes), which is too long to be shown and agreed to"),
            "{}",
            long.len()
        );
        assert!(long.len() < 400, "{}", long.len());
        let many = refused(vec![Permission::Option("--data x".to_owned()); 21]);
        assert!(many.starts_with("game.yaml asks for 21 things at once, too many"), "{many}");
        // An explicit --allow needs no question.
        let allowed =
            Consent::obtain("game.yaml", vec![Permission::Start("x".repeat(5_000))], true, Vec::new());
        assert!(allowed.is_ok());
    }
}
