//! Plain lines: our own chat server. Its notices begin with `* `.

use super::dialect::{Dialect, Who, Word};
use measure::ledger::ServerReport;

/// See the module.
pub struct Lines;

impl Dialect for Lines {
    type OfConnection = ();

    fn hello(out: &mut Vec<u8>, who: Who<'_>) {
        out.extend_from_slice(b"/join ");
        out.extend_from_slice(who.room.as_bytes());
        out.push(b'\n');
    }

    fn say(out: &mut Vec<u8>, _: &str, text: &[u8]) {
        out.extend_from_slice(text);
        out.push(b'\n');
    }

    fn barrier(out: &mut Vec<u8>) {
        out.extend_from_slice(b"/books\n");
    }

    fn received(line: &[u8], _: Who<'_>, _: bool, (): &mut ()) -> Word {
        let Some(notice) = line.strip_prefix(b"* ").and_then(|notice| std::str::from_utf8(notice).ok())
        else {
            return Word::Strange;
        };
        let mut words = notice.split(' ');
        match (words.next(), words.next()) {
            (Some("joined"), Some(_)) => Word::Joined,
            (Some("missed"), Some(count)) => number(count).map_or(Word::Nothing, Word::Missed),
            (Some("books"), Some(_)) => Word::CaughtUp(told(notice)),
            _ => Word::Nothing,
        }
    }

    /// A connection is in one room, whose name is never said.
    fn text<'l>(line: &'l [u8], _: &str) -> &'l [u8] {
        line
    }
}

/// `books owed 12 delivered 12 dropped 0 waiting 0`
fn told(notice: &str) -> Option<ServerReport> {
    let words: Vec<&str> = notice.split(' ').collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        number(words.get(at + 1)?)
    };
    Some(ServerReport {
        owed: after("owed")?,
        delivered: after("delivered")?,
        dropped: after("dropped")?,
        in_flight: after("waiting")?,
    })
}

/// A count. One beyond 64 bits is as large as can be said: the ledger then refuses it, as it must.
fn number(word: &str) -> Option<u64> {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: Who<'_> = Who { number: 3, room: "lobby", login: None };

    #[test]
    fn notices_are_understood() {
        let told = ServerReport { owed: 12, delivered: 9, dropped: 2, in_flight: 1 };
        for (line, word) in [
            ("* joined lobby", Word::Joined),
            ("* missed 17 lines", Word::Missed(17)),
            ("* missed a few lines", Word::Nothing),
            ("* missed 99999999999999999999 lines", Word::Missed(u64::MAX)),
            ("* books owed 12 delivered 9 dropped 2 waiting 1", Word::CaughtUp(Some(told))),
            ("* books owed many", Word::CaughtUp(None)),
            ("* welcome", Word::Nothing),
            ("hello", Word::Strange),
            ("*", Word::Strange),
        ] {
            assert_eq!(Lines::received(line.as_bytes(), WHO, true, &mut ()), word, "{line}");
        }
        assert_eq!(Lines::received(b"* \xff", WHO, true, &mut ()), Word::Strange);
    }
}
