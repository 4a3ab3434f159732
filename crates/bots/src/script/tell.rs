//! The event feed of `stepladder try`: each thing that a bot does, with its instant.

use std::sync::OnceLock;

use script::{Command, Data};

use crate::disconnects;

/// Receives everything that a bot does: its number, the instant, and a description.
pub type Listener = Box<dyn Fn(u32, u64, &str) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// From now on `listener` receives everything that scripted bots do. Call it at most once.
pub fn listen(listener: Listener) {
    // A second listener would be a caller's bug; the first one stays.
    let _ = LISTENER.set(listener);
}

/// Tells the listener, where there is one; words are made for it only.
pub(super) fn tell(bot: u32, at_ns: u64, words: impl FnOnce() -> String) {
    tell_some(bot, at_ns, || Some(words()));
}

/// Reports a script's calls; timers and counters are not reported.
pub(super) fn tell_of(bot: u32, command: &Command, at_ns: u64) {
    tell_some(bot, at_ns, || {
        Some(match command {
            Command::Open { url, .. } => format!("connects to {url}"),
            Command::OpenTcp { .. } => "connects over TCP".to_owned(),
            Command::OpenUdp { .. } => "opens a UDP socket".to_owned(),
            Command::Request { method, url, body, .. } if body.is_empty() => format!("-> {method} {url}"),
            Command::Request { method, url, body, .. } => {
                format!("-> {method} {url} {}", text(body))
            }
            Command::Cancel { .. } => "gives up a request".to_owned(),
            Command::Send { data: Data::Text(said), .. } => format!("-> {}", text(said.as_bytes())),
            Command::Send { data: Data::Binary(sent), .. } => format!("-> {}", bytes(sent)),
            Command::Close { .. } => "closes its connection".to_owned(),
            Command::Ready => "is ready".to_owned(),
            Command::Join { room } => format!("joins room {}", text(room.as_bytes())),
            Command::Leave { room } => format!("leaves room {}", text(room.as_bytes())),
            Command::Sent { room, seq, .. } => {
                format!("sent message {seq} in room {}", text(room.as_bytes()))
            }
            Command::Received { room, from, seq } => {
                format!("received message {seq} of bot {from} in room {}", text(room.as_bytes()))
            }
            Command::CheckFailed(_) => "a check did not hold".to_owned(),
            Command::Failed(words) | Command::Threw(words) | Command::Stopped(words) => format!("!! {words}"),
            Command::Ended => "its function has ended".to_owned(),
            Command::Broke => "its function has failed".to_owned(),
            Command::Log(level, said) => format!("{level}: {said}"),
            _ => return None,
        })
    });
}

/// A message as it is shown: JSON unchanged, and nothing that moves the cursor.
pub(super) fn text(message: &[u8]) -> String {
    disconnects::shown(message).replace("\\\"", "\"")
}

/// The same of bytes: those of most protocols are text with a few others between.
pub(super) fn bytes(message: &[u8]) -> String {
    const SHOWN: usize = 80;
    let first = &message[..message.len().min(SHOWN)];
    let is_text = |byte: &&u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\r' | b'\n' | b'\t');
    let more = if message.len() > SHOWN { "…" } else { "" };
    if 4 * first.iter().filter(is_text).count() >= 3 * first.len() {
        return format!("{} bytes: \"{}\"{more}", message.len(), first.escape_ascii());
    }
    let hex: Vec<String> = first.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes: {}{more}", message.len(), hex.join(" "))
}

fn tell_some(bot: u32, at_ns: u64, words: impl FnOnce() -> Option<String>) {
    if let Some(listener) = LISTENER.get()
        && let Some(words) = words()
    {
        listener(bot, at_ns, &words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_text_where_they_are_mostly_text() {
        assert_eq!(bytes(b"pline 2 \x04say 1 0\xff"), "17 bytes: \"pline 2 \\x04say 1 0\\xff\"");
        assert_eq!(bytes(&[0, 0, 0, 1, b'a']), "5 bytes: 00 00 00 01 61");
        assert!(bytes(&[b'x'; 100]).ends_with("x\"…"));
        assert_eq!(bytes(b""), "0 bytes: \"\"");
    }
}
