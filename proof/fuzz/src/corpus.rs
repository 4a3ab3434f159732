//! Inputs that are kept: one file for each target, one input per line, in the escapes of Rust's byte strings.
//!
//! `corpus/TARGET` is what long runs found worth keeping, no longer than `CORPUS_BYTES_MAX`; `regressions` is every input that
//! once broke a target, with its name: `target name input`.

use std::fmt::Write;
use std::path::PathBuf;

/// A corpus is committed: so large it may be.
pub const CORPUS_BYTES_MAX: usize = 10_000;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Where the corpus of a target is.
pub fn file(target: &str) -> PathBuf {
    folder().join("corpus").join(target)
}

/// The corpus of a target, empty where there is none. Panics at a line that is no input, with its number.
pub fn read(target: &str) -> Vec<Vec<u8>> {
    let path = file(target);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let input = |(index, line): (usize, &str)| {
        unescape(line).unwrap_or_else(|| panic!("{}:{}: not an escaped input", path.display(), index + 1))
    };
    text.lines().enumerate().map(input).collect()
}

/// The names and inputs that once broke a target.
pub fn regressions(target: &str) -> Vec<(String, Vec<u8>)> {
    let path = folder().join("regressions");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let words = |(index, line): (usize, &str)| {
        let mut words = line.splitn(3, ' ');
        let (of, name, input) = (words.next()?, words.next()?, words.next()?);
        let input = unescape(input)
            .unwrap_or_else(|| panic!("{}:{}: not an escaped input", path.display(), index + 1));
        (of == target).then(|| (name.to_owned(), input))
    };
    text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')).filter_map(words).collect()
}

/// The text of a corpus: the shortest inputs first, as many as may be kept.
pub fn text(mut inputs: Vec<Vec<u8>>) -> String {
    inputs.sort_by_key(|input| (input.len(), input.clone()));
    inputs.dedup();
    let mut text = String::new();
    for input in inputs.iter().filter(|input| !input.is_empty()) {
        let line = escape(input);
        if text.len() + line.len() < CORPUS_BYTES_MAX {
            // A String takes whatever is written.
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// As in a byte string of Rust.
pub fn escape(input: &[u8]) -> String {
    input.escape_ascii().to_string()
}

/// The inverse of `escape`; `None`: it is none.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next()? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other @ (b'\\' | b'\'' | b'"') => other,
            _ => return None,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read_back_as_it_was_written() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unescape(&escape(&all)), Some(all));
        assert_eq!(unescape("\\x4"), None);
        assert_eq!(unescape("\\q"), None);
    }

    #[test]
    fn a_corpus_and_a_regression_belong_to_a_target() {
        let names: Vec<&str> = crate::TARGETS.iter().map(|target| target.name).collect();
        for entry in std::fs::read_dir(folder().join("corpus")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(names.contains(&name.as_str()), "corpus/{name} is no target's");
        }
        let text = std::fs::read_to_string(folder().join("regressions")).unwrap_or_default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let target = line.split(' ').next().unwrap_or_default();
            assert!(names.contains(&target), "regressions: {target} is no target");
            assert!(line.split(' ').count() >= 3, "regressions: {line}");
        }
    }
}
