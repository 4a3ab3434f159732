//! What `stepladder try` hears: each thing that a bot does, at its instant.

use std::sync::OnceLock;

use script::{Command, Data};

use crate::ends;

/// What hears of each thing that a bot does: the instant, and words. One process tries one bot.
pub type Listener = Box<dyn Fn(u64, &str) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// From now on `listener` hears of everything that bots of scripts do. Called once at most.
pub fn listen(listener: Listener) {
    // A second listener would be a mistake of the caller; the first one goes on.
    let _ = LISTENER.set(listener);
}

/// Tells the listener, where there is one; words are made for it only.
pub(super) fn tell(at_ns: u64, words: impl FnOnce() -> String) {
    tell_some(at_ns, || Some(words()));
}

/// Tells what a script asked for; timers and counters are no news.
pub(super) fn tell_of(command: &Command, at_ns: u64) {
    tell_some(at_ns, || {
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
            Command::Send { data: Data::Binary(bytes), .. } => format!("-> {} bytes", bytes.len()),
            Command::Close { .. } => "closes its connection".to_owned(),
            Command::Ready => "is ready".to_owned(),
            Command::CheckFailed(_) => "a check did not hold".to_owned(),
            Command::Failed(words) | Command::Threw(words) => format!("!! {words}"),
            Command::Ended => "its function has ended".to_owned(),
            Command::Log(level, said) => format!("{level}: {said}"),
            _ => return None,
        })
    });
}

/// A message as it is shown: JSON as it stands, and nothing that moves the cursor.
pub(super) fn text(message: &[u8]) -> String {
    ends::shown(message).replace("\\\"", "\"")
}

fn tell_some(at_ns: u64, words: impl FnOnce() -> Option<String>) {
    if let Some(listener) = LISTENER.get()
        && let Some(words) = words()
    {
        listener(at_ns, &words);
    }
}
