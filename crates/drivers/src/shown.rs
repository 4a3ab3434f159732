//! Server text formatted for our messages: untrusted data.

/// Bytes of the peer as text of one line: control characters escaped, at most 120 characters.
pub fn shown(bytes: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 120;
    let text = String::from_utf8_lossy(bytes);
    let mut short = String::new();
    for letter in text.chars().take(CHARACTERS_MAX) {
        // Such text is in double quotes; a single quote ends nothing.
        if letter == '\'' { short.push(letter) } else { short.extend(letter.escape_debug()) }
    }
    if text.chars().nth(CHARACTERS_MAX).is_some() { format!("{short}…") } else { short }
}
