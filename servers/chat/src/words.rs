//! The meaning of a line: text for the room, or a command for the server. Pure.

/// The longest name of a client or a room, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 32;

/// The answer to `/help`.
pub(super) const HELP: &str = "* /join ROOM, /nick NAME, /who, /books (what was owed to you), /quit; a line that begins with // is said with one slash\n";

/// What one line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'l> {
    Text(&'l str),
    Join(&'l str),
    Nick(&'l str),
    Who,
    Books,
    Quit,
    Help,
    /// A command that there is not.
    Unknown(&'l str),
    /// Not UTF-8, or with a NUL: not said, because it would break the terminals of the others.
    NotText,
}

/// Reads a line without its end.
pub(super) fn read(line: &[u8]) -> Said<'_> {
    let text = match std::str::from_utf8(line) {
        Ok(text) if !line.contains(&0) => text,
        _ => return Said::NotText,
    };
    let Some(command) = text.strip_prefix('/') else { return Said::Text(text) };
    if command.starts_with('/') {
        return Said::Text(command);
    }
    let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
    let rest = rest.trim();
    match (verb, rest) {
        ("join", room) => Said::Join(room),
        ("nick", name) => Said::Nick(name),
        ("who", "") => Said::Who,
        ("books", "") => Said::Books,
        ("quit", _) => Said::Quit,
        ("help", _) => Said::Help,
        _ => Said::Unknown(verb),
    }
}

/// True for what can name a client or a room: letters and digits of any script, and `_`, `-`, `.`.
pub(super) fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'))
}

/// A client's word as it may appear in an answer: short, and without cursor movement.
pub(super) fn shown(word: &str) -> String {
    let visible: String = word.chars().filter(|letter| !letter.is_control()).take(NAME_BYTES_MAX).collect();
    if visible.len() < word.len() { visible + "…" } else { visible }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_text_or_commands() {
        let check = |line: &[u8], said| assert_eq!(read(line), said, "{:?}", line.escape_ascii().to_string());
        check(b"hello /world", Said::Text("hello /world"));
        check(b"", Said::Text(""));
        check(b"//slash", Said::Text("/slash"));
        check(b"/join  kitchen ", Said::Join("kitchen"));
        check(b"/join", Said::Join(""));
        check(b"/nick two words", Said::Nick("two words"));
        check(b"/who", Said::Who);
        check(b"/who else", Said::Unknown("who"));
        check(b"/books", Said::Books);
        check(b"/quit it", Said::Quit);
        check(b"/help", Said::Help);
        check(b"/", Said::Unknown(""));
        check(b"/Join x", Said::Unknown("Join"));
        check(b"a\0b", Said::NotText);
        check(b"\xc3\x28", Said::NotText);
    }

    #[test]
    fn names_are_short_and_have_no_spaces_colons_or_controls() {
        for name in ["a", "Ada-1", "größe", "名前", "x_y.z", &"n".repeat(32)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a:b", "*", "a\u{1b}", "/x", &"n".repeat(33)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn what_is_shown_is_short_and_cannot_move_a_cursor() {
        assert_eq!(shown("abc"), "abc");
        assert_eq!(shown("a\u{1b}[2Jb"), "a[2Jb…");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 33);
    }
}
