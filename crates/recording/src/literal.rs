//! Literals of JavaScript: whatever a recording holds, it is data where it stands in the bot.
//!
//! Nothing recorded enters the text but through here. Quotes, backslashes, `${`, line ends of every kind, control characters
//! and those that reorder or hide text are escaped; a key `__proto__` is computed, since written plainly it would set the
//! prototype.

use std::fmt::Write as _;

/// A part of a text: as it is, or computed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// as it is
    Text(String),
    /// an expression of JavaScript
    Code {
        /// the expression
        js: String,
        /// its value is a string
        is_text: bool,
    },
}

impl Piece {
    pub fn code(js: impl Into<String>, is_text: bool) -> Piece {
        Piece::Code { js: js.into(), is_text }
    }
}

fn escaped(text: &str, quote: char, out: &mut String) {
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if letter == quote => {
                out.push('\\');
                out.push(letter);
            }
            '$' if quote == '`' && letters.peek() == Some(&'{') => out.push_str("\\$"),
            ' '..='~' => out.push(letter),
            _ if letter.is_alphanumeric() => out.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
}

/// A string.
pub(crate) fn string(text: &str) -> String {
    // Fewer backslashes read better.
    let quote = if text.contains('"') && !text.contains('\'') { '\'' } else { '"' };
    let mut out = String::from(quote);
    escaped(text, quote, &mut out);
    out.push(quote);
    out
}

/// An expression whose value is these parts behind each other, as a string.
pub(crate) fn joined(pieces: &[Piece]) -> String {
    match pieces {
        [] => "\"\"".to_owned(),
        [Piece::Text(text)] => string(text),
        [Piece::Code { js, is_text: true }] => js.clone(),
        _ => {
            let mut out = String::from("`");
            for piece in pieces {
                match piece {
                    Piece::Text(text) => escaped(text, '`', &mut out),
                    Piece::Code { js, .. } => {
                        out.push_str("${");
                        out.push_str(js);
                        out.push('}');
                    }
                }
            }
            out.push('`');
            out
        }
    }
}

/// Whether it can stand behind a dot.
pub(crate) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_' || first == '$')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$')
}

/// A key of an object literal.
pub(crate) fn key(name: &str) -> String {
    match name {
        "__proto__" => "[\"__proto__\"]".to_owned(),
        _ if is_name(name) => name.to_owned(),
        _ => string(name),
    }
}

/// A name for a variable made of any text; empty where nothing is left.
pub(crate) fn word(text: &str) -> String {
    let mut out = String::new();
    let parts = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    for part in parts.filter(|part| !part.is_empty()) {
        let is_shouted = part.bytes().all(|byte| !byte.is_ascii_lowercase());
        let (first, rest) = part.split_at(1);
        if out.is_empty() && first.as_bytes()[0].is_ascii_digit() {
            continue;
        }
        out += &if out.is_empty() { first.to_ascii_lowercase() } else { first.to_ascii_uppercase() };
        out += &if is_shouted { rest.to_ascii_lowercase() } else { rest.to_owned() };
        if out.len() > 40 {
            break;
        }
    }
    out.truncate(40);
    out
}

/// Text for a comment of one line.
pub(crate) fn remark(text: &str) -> String {
    let mut out = String::new();
    escaped(text, '"', &mut out);
    out.replace("*/", "*\\/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_text_stays_data() {
        let check = |text: &str, expected: &str| assert_eq!(string(text), expected);
        check("plain ü", "\"plain ü\"");
        check("a\"b", "'a\"b'");
        check("a\"b'c", "\"a\\\"b'c\"");
        check("a\\\n\r\u{2028}\u{202e}\0", "\"a\\\\\\n\\r\\u2028\\u202e\\u0000\"");
        check("😀", "\"\\ud83d\\ude00\"");
        let pieces = [Piece::Text("`${x}\\".to_owned()), Piece::code("y", false)];
        assert_eq!(joined(&pieces), "`\\`\\${x}\\\\${y}`");
        assert_eq!(joined(&[Piece::Text("$".to_owned()), Piece::code("y", true)]), "`$${y}`");
        assert_eq!(
            (key("__proto__"), key("a-b"), key("if")),
            ("[\"__proto__\"]".into(), "\"a-b\"".into(), "if".into())
        );
        assert_eq!(remark("a */ b\nc"), "a *\\/ b\\nc");
        assert_eq!(word("GET /items/7 x"), "getItems7X");
    }
}
