//! What a server says, as words of ours: data that is never trusted.

/// Bytes of the peer as text of one line: control characters escaped, at most 120 characters.
pub fn shown(bytes: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 120;
    let text = String::from_utf8_lossy(bytes);
    let short: String = text.chars().take(CHARACTERS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() { format!("{short}…") } else { short }
}
