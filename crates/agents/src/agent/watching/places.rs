//! Which sources of ticks an agent opens at the word of a climb.
//!
//! What a file holds comes back to the climb where it is no tick (the first lines that cannot be read, word for word). So files
//! lie below the folder that the agent was started in.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use plan::TickSource;

/// Errors: the source is none of this machine's, or a file that lies elsewhere.
pub(super) fn check(source: &TickSource) -> anyhow::Result<()> {
    match source {
        TickSource::Log(Some(path)) | TickSource::Frames(_, path) => {
            let folder = std::env::current_dir().context("the folder of this agent is not there any more")?;
            is_below(&folder, path)
        }
        TickSource::Statsd { address, .. } if !super::is_own(*address) => {
            bail!("{source}: its machine does not have this address")
        }
        _ => Ok(()),
    }
}

/// Errors: the file, or where a link leads that it is, does not lie below the folder.
fn is_below(folder: &Path, path: &Path) -> anyhow::Result<()> {
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let whole = folder.join(path);
    let place = place(&whole).with_context(|| format!("{}: there is no such folder", whole.display()))?;
    if place.starts_with(&folder) {
        return Ok(());
    }
    bail!(
        "{}: an agent reads files below the folder that it was started in, {}; start it in the folder of this file",
        path.display(),
        folder.display()
    )
}

/// Where a file is, or would be.
fn place(path: &Path) -> Option<PathBuf> {
    if let Ok(there) = path.canonicalize() {
        return Some(there);
    }
    // A link that leads to no file would be followed once there is one.
    if path.is_symlink() {
        return path.read_link().ok().and_then(|to| Some(path.parent()?.join(to)));
    }
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_below_the_folder_are_read_whatever_their_path_is() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("game");
        std::fs::create_dir_all(folder.join("logs")).unwrap();
        std::fs::write(outer.path().join("secret"), "").unwrap();
        std::fs::write(folder.join("logs/game.log"), "").unwrap();
        symlink(outer.path().join("secret"), folder.join("link")).unwrap();
        symlink(outer.path().join("later"), folder.join("dangling")).unwrap();
        symlink(outer.path(), folder.join("out")).unwrap();
        let whole = folder.join("logs/game.log").to_string_lossy().into_owned();
        for (path, is_read) in [
            ("logs/game.log", true),
            ("logs/later.log", true),
            ("logs/../later.log", true),
            (&whole, true),
            ("../secret", false),
            ("logs/../../secret", false),
            ("/etc/passwd", false),
            ("link", false),
            ("dangling", false),
            ("out/secret", false),
            ("out/later", false),
            ("none/game.log", false),
        ] {
            assert_eq!(is_below(&folder, Path::new(path)).is_ok(), is_read, "{path}");
        }
        let said = is_below(&folder, Path::new("../secret")).unwrap_err().to_string();
        assert!(said.starts_with("../secret: an agent reads files below the folder"), "{said}");
    }
}
