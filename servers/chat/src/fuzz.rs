//! For `servers::fuzz`.

use super::splitter::Splitter;
use super::words;

const LINE_BYTES_MAX: usize = 64;

/// The lines that come in these pieces, and whether one of them is too long.
pub fn chat_lines(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let mut splitter = Splitter::default();
    let mut lines = Vec::new();
    for piece in pieces {
        let fed = splitter.feed(&mut piece.to_vec(), LINE_BYTES_MAX, |line| {
            lines.push(line.to_vec());
            true
        });
        if fed.is_err() {
            return (lines, true);
        }
    }
    (lines, false)
}

/// What a line says, and the words of it as an answer would show them.
pub fn chat_line(line: &[u8]) -> (String, String) {
    let said = words::read(line);
    let shown = match said {
        words::Said::Unknown(word) | words::Said::Nick(word) | words::Said::Join(word) => {
            let _ = words::is_name(word);
            words::shown(word)
        }
        _ => String::new(),
    };
    (format!("{said:?}"), shown)
}
