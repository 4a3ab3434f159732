//! For `servers::fuzz`.

use super::nodes::message::{Front, Word};
use super::splitter::Splitter;
use super::words;
use servers_shared::nats::protocol::{self, Event};

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

/// What a broker says in these pieces, and whether one of them is not its protocol.
pub fn chat_broker(pieces: &[&[u8]]) -> (Vec<String>, bool) {
    let (mut input, mut heard) = (Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        let mut done = 0;
        loop {
            match protocol::front(&input[done..]) {
                Ok(Some((event, bytes))) => {
                    if let Event::Message { payload, .. } = event {
                        chat_node(payload);
                    }
                    heard.push(format!("{event:?}"));
                    done += bytes;
                }
                Ok(None) => break,
                Err(_) => return (heard, true),
            }
        }
        input.drain(..done);
    }
    (heard, false)
}

/// What another node says: where it is understood, it is understood again when it is said anew.
pub fn chat_node(payload: &[u8]) {
    if let Some((front, lines)) = Front::read(payload) {
        let mut written = Vec::new();
        front.write(&mut written);
        written.extend_from_slice(lines.as_bytes());
        assert_eq!(Front::read(&written), Some((front, lines)));
    }
    if let Some((from, word)) = Word::read(payload) {
        assert_eq!(Word::read(word.written(from).as_bytes()), Some((from, word)));
    }
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
