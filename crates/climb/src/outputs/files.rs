//! Result files: written atomically, and checked to be writable before anything is measured.

use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use console::say;

/// A result that cannot be written is known before the climb, not after. Nothing is left of the attempt.
pub fn check_writable(flag: &str, path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else { return Ok(()) };
    let is_new = !path.exists();
    File::options()
        .append(true)
        .create(true)
        .open(path)
        .with_context(|| format!("{flag} {}: cannot be written; check the folder", path.display()))?;
    if is_new {
        // A leftover empty file is not worth an error, but it would be all that a killed climb leaves.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Writes a text where `flag` says.
pub fn write_text(flag: &str, text: &str, path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    if path == Path::new("-") {
        say::out_line!("{text}");
        return Ok(());
    }
    let what = || format!("{flag} {}: cannot be written", path.display());
    write_whole(path, |out| Ok(writeln!(out, "{text}")?)).with_context(what)
}

/// Writes JSON where `--json` says.
pub fn write_json(json: &str, path: Option<&Path>) -> anyhow::Result<()> {
    if path == Some(Path::new("-")) {
        say::json_to_stdout(json);
        return Ok(());
    }
    write_text("--json", json, path)
}

/// Writes a file whole or not at all: where this process is killed meanwhile, what stood there before still does.
///
/// What is no regular file (a pipe, `/dev/stdout`, a link) is written in place, and so is a file in a folder that takes no
/// other one.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let found = std::fs::symlink_metadata(path);
    let is_replaced = found.as_ref().map_or(true, std::fs::Metadata::is_file);
    // An existing file keeps its permissions; a new one gets those of the umask.
    let permissions = found.map_or_else(|_| Permissions::from_mode(0o666), |found| found.permissions());
    match is_replaced.then(|| store::export::part_of(path, permissions)) {
        Some(Ok(part)) => {
            let mut out = BufWriter::new(part);
            write(&mut out)?;
            let part = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            part.persist(path)?;
        }
        None | Some(Err(_)) => {
            let mut out = BufWriter::new(File::create(path)?);
            write(&mut out)?;
            out.flush()?;
        }
    }
    Ok(())
}
