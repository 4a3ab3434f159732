//! IRC (RFC 2812): register, join a channel, PRIVMSG, answer PING.
//!
//! A bot registers as soon as it is connected, after sending the server's password if there is one, joins on the
//! welcome (001) and is a member at the end of the names (366).
//! The barrier is a PING of ours, which a server answers behind what it has queued for the connection.

use std::io::Write as _;

use memchr::memmem;

use plan::Login;

use super::dialect::{Dialect, Who, Word};
use crate::disconnects::shown;

/// See the module.
pub struct Irc;

/// What our own PING carries.
const TOKEN: &str = "stepladder";

impl Dialect for Irc {
    type OfConnection = ();

    fn hello(out: &mut Vec<u8>, who: Who<'_>) {
        if let Some(Login::Password { password, .. }) = who.login {
            let _ = write!(out, "PASS :{password}\r\n");
        }
        // Nine characters at most, as the RFC asks; the first is a letter. Writing to memory cannot fail.
        let _ = write!(out, "NICK b{0}\r\nUSER b{0} 0 * :b{0}\r\n", who.number);
    }

    fn say(out: &mut Vec<u8>, room: &str, text: &[u8]) {
        out.extend_from_slice(b"PRIVMSG #");
        out.extend_from_slice(room.as_bytes());
        out.extend_from_slice(b" :");
        out.extend_from_slice(text);
        out.extend_from_slice(b"\r\n");
    }

    fn barrier(out: &mut Vec<u8>) {
        let _ = write!(out, "PING :{TOKEN}\r\n");
    }

    /// As bytes: what is not UTF-8 is read all the same.
    fn received(line: &[u8], who: Who<'_>, is_member: bool, (): &mut ()) -> Word {
        if let Some(token) = line.strip_prefix(b"PING ") {
            return Word::Answer([b"PONG ", token, b"\r\n"].concat());
        }
        let mut words = line.split(|byte| *byte == b' ').skip(usize::from(line.starts_with(b":")));
        let is_us = |nick: Option<&[u8]>| nick.and_then(number_of) == Some(who.number);
        match words.next() {
            Some(b"001") => Word::Answer(["JOIN #", who.room, "\r\n"].concat().into_bytes()),
            Some(b"366") => Word::Joined,
            Some(b"PONG") if line.ends_with(TOKEN.as_bytes()) => Word::CaughtUp(None),
            Some(b"PRIVMSG") => Word::Strange,
            Some(b"464" | b"ERROR") if !is_member && wants_password(line) => {
                Word::TurnedAway { words: shown(line), for_credentials: true }
            }
            Some(b"ERROR") => Word::Refused,
            Some(b"KICK") if is_us(words.nth(1)) => Word::Refused,
            Some(b"KILL") if is_us(words.next()) => Word::Refused,
            // 4xx and 5xx are errors; 422 only says that there is no message of the day.
            Some(reply @ [b'4' | b'5', _, _]) if reply != b"422" => Word::Refused,
            _ => Word::Nothing,
        }
    }

    #[inline]
    fn text<'l>(line: &'l [u8], room: &str) -> &'l [u8] {
        // `:nick!user@host PRIVMSG #room :text`; a host may contain colons, but none after a blank.
        if line.first() != Some(&b':') {
            return &[];
        }
        let Some(at) = memmem::find(line, b" :") else { return &[] };
        let (head, text) = (&line[..at], &line[at + 2..]);
        // Channel names are case-insensitive (RFC 2812, section 1.3).
        let (head, name) = head.split_at(head.len().saturating_sub(room.len()));
        let is_ours = name.eq_ignore_ascii_case(room.as_bytes()) && head.ends_with(b" PRIVMSG #");
        if is_ours { text } else { &[] }
    }

    #[inline]
    fn is_from(line: &[u8], sender: u32) -> bool {
        let nick = line.split(|byte| matches!(byte, b'!' | b'@' | b' ')).next();
        let nick = nick.and_then(|nick| nick.strip_prefix(b":"));
        nick.and_then(number_of) == Some(sender.into())
    }
}

/// Whether a line says that the password is missing or wrong (464). Some servers only say so in the words of their ERROR.
fn wants_password(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line).to_ascii_lowercase();
    !text.starts_with("error") || text.contains("password")
}

/// Whose nick it is, of the crowd. Nicks are the same in capitals.
fn number_of(nick: &[u8]) -> Option<u64> {
    let (b'b' | b'B', digits) = nick.split_first()? else { return None };
    if digits.is_empty() || digits.len() > 1 && digits[0] == b'0' {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: Who<'_> = Who { number: 3, room: "lobby", login: None };

    #[test]
    fn a_conversation_leads_to_membership() {
        let mut out = Vec::new();
        Irc::hello(&mut out, WHO);
        assert_eq!(out, b"NICK b3\r\nUSER b3 0 * :b3\r\n");
        for (line, word) in [
            ("PING :abc", Word::Answer(b"PONG :abc\r\n".to_vec())),
            (":irc.local 001 b3 :Welcome", Word::Answer(b"JOIN #lobby\r\n".to_vec())),
            (":irc.local 422 b3 :MOTD file is missing", Word::Nothing),
            (":b3!~b3@localhost JOIN :#lobby", Word::Nothing),
            (":irc.local 353 b3 = #lobby :b3 b2", Word::Nothing),
            (":irc.local 366 b3 #lobby :End of NAMES list", Word::Joined),
            (":irc.local PONG irc.local :stepladder", Word::CaughtUp(None)),
            (":irc.local PONG irc.local :other", Word::Nothing),
            (":b1!~b1@::1 PRIVMSG #lobby :hello", Word::Strange),
            (":irc.local 433 * b3 :Nickname already in use", Word::Refused),
            ("ERROR :Closing connection", Word::Refused),
            (":op!o@host KICK #lobby b3 :out", Word::Refused),
            (":op!o@host KICK #lobby b4 :out", Word::Nothing),
            (":op!o@host KILL b3 :out", Word::Refused),
            ("", Word::Nothing),
        ] {
            assert_eq!(Irc::received(line.as_bytes(), WHO, false, &mut ()), word, "{line}");
        }
        for line in [b":b1!~b1@::1 PRIVMSG #lobby :\xff".as_slice(), b"ERROR :\xff"] {
            assert_ne!(Irc::received(line, WHO, false, &mut ()), Word::Nothing, "{line:?}");
        }
    }

    #[test]
    fn the_password_of_the_server_goes_first() {
        let login = Login::Password { user: None, password: "open sesame".to_owned() };
        let mut out = Vec::new();
        Irc::hello(&mut out, Who { login: Some(&login), ..WHO });
        assert_eq!(out, b"PASS :open sesame\r\nNICK b3\r\nUSER b3 0 * :b3\r\n");
    }

    #[test]
    fn a_server_that_wants_a_password_turns_a_bot_away_and_no_other_refusal_does() {
        for (line, is_member, is_turned_away) in [
            (":irc.local 464 b3 :Password incorrect", false, true),
            ("ERROR :Access denied: Bad password?", false, true),
            ("ERROR :Access denied: Bad password?", true, false),
            ("ERROR :Closing connection", false, false),
            (":irc.local 433 * b3 :password is a nickname in use", false, false),
        ] {
            let word = Irc::received(line.as_bytes(), WHO, is_member, &mut ());
            let turned_away = Word::TurnedAway { words: line.to_owned(), for_credentials: true };
            assert_eq!(word, if is_turned_away { turned_away } else { Word::Refused }, "{line}");
        }
    }

    #[test]
    fn a_text_is_from_whom_the_line_says_and_from_nobody_else() {
        for (nick, number) in [("b3", 3), ("B3", 3), ("b0", 0), ("b104", 104)] {
            for prefix in [format!("{nick}!~u@::1"), format!("{nick}@host"), nick.to_owned()] {
                let line = format!(":{prefix} PRIVMSG #lobby :text");
                assert!(Irc::is_from(line.as_bytes(), number), "{line}");
                assert!(!Irc::is_from(line.as_bytes(), number + 1), "{line}");
            }
        }
        let long = format!("b{}", u128::from(u64::MAX) + 4);
        for nick in ["", "b", "3", "a3", "b03", "b+3", "b3x", "bb3", &long] {
            let line = format!(":{nick}!~u@::1 PRIVMSG #lobby :text");
            assert!(!Irc::is_from(line.as_bytes(), 3), "{line}");
        }
        assert!(!Irc::is_from(b"PRIVMSG #lobby :b3", 3));
    }

    #[test]
    fn the_text_is_what_follows_the_colon() {
        let mut out = Vec::new();
        Irc::say(&mut out, "lobby", b"text : more");
        assert_eq!(out, b"PRIVMSG #lobby :text : more\r\n");
        assert_eq!(Irc::text(b":b1!~b1@::1 PRIVMSG #lobby :text : more", "lobby"), b"text : more");
        assert_eq!(Irc::text(b":b1!~b1@::1 PRIVMSG #Lobby :text", "lobby"), b"text");
        for other in
            ["PING :b1", ":b1!~b1@::1 PRIVMSG #other :text", ":b1!~b1@::1 NOTICE #lobby :text", ": :"]
        {
            assert_eq!(Irc::text(other.as_bytes(), "lobby"), b"", "{other}");
        }
    }
}
