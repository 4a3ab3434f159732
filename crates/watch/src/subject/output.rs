//! The subject's output: always read, only the end kept.
//!
//! A full pipe would stall the subject in the middle of a tick. So each stream has a thread that reads everything at
//! once and keeps only the end.

use std::collections::VecDeque;
use std::io::Read;
use std::process::{ChildStderr, ChildStdout};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const KEPT_BYTES: usize = 64 << 10;
/// A line longer than this holds no URL of ours; it is not kept to look on.
const LONGEST_URL_LINE_BYTES: usize = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct Output(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    end: VecDeque<u8>,
    /// the line of standard output that is being printed, until a URL was found
    line: Vec<u8>,
    url: Option<String>,
    open_streams: usize,
}

impl Output {
    pub(super) fn read(out: Option<ChildStdout>, err: Option<ChildStderr>) -> Self {
        let output = Output::default();
        if let Some(stream) = out {
            output.spawn("subject stdout", stream, true);
        }
        if let Some(stream) = err {
            output.spawn("subject stderr", stream, false);
        }
        output
    }

    fn spawn(&self, name: &str, mut stream: impl Read + Send + 'static, may_tell_url: bool) {
        let shared = self.0.clone();
        shared.lock().open_streams += 1;
        let body = move || {
            let mut chunk = [0; 16 << 10];
            loop {
                match stream.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(count) => {
                        let mut kept = shared.lock();
                        kept.keep(&chunk[..count]);
                        if may_tell_url {
                            kept.look_for_url(&chunk[..count]);
                        }
                        shared.changed.notify_all();
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            shared.lock().open_streams -= 1;
            shared.changed.notify_all();
        };
        if thread::Builder::new().name(name.to_owned()).spawn(body).is_err() {
            // Without its reader the pipe is closed; the subject's prints fail, but it runs.
            self.0.lock().open_streams -= 1;
        }
    }

    /// The first URL on standard output, waiting for it a little.
    pub(super) fn wait_for_url(&self, patience: Duration) -> Option<String> {
        let kept = self.0.lock();
        let waited = self.0.changed.wait_timeout_while(kept, patience, |kept| kept.url.is_none());
        waited.map_or_else(|broken| broken.into_inner().0.url.clone(), |(kept, _)| kept.url.clone())
    }

    /// Waits until everything that was printed has been read; a child of the subject may hold a stream open for ever.
    pub(super) fn wait_until_closed(&self, patience: Duration) {
        let kept = self.0.lock();
        drop(self.0.changed.wait_timeout_while(kept, patience, |kept| kept.open_streams > 0));
    }

    pub(super) fn last_lines(&self, count: usize) -> Vec<String> {
        let bytes: Vec<u8> = self.0.lock().end.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<String> = text.lines().map(plain).filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].to_vec()
    }
}

impl Shared {
    /// A reader that panicked leaves at worst a cut line.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn keep(&mut self, chunk: &[u8]) {
        self.end.extend(chunk);
        let surplus = self.end.len().saturating_sub(KEPT_BYTES);
        self.end.drain(..surplus);
    }

    fn look_for_url(&mut self, chunk: &[u8]) {
        if self.url.is_some() {
            return;
        }
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            if self.line.len() < LONGEST_URL_LINE_BYTES {
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                self.url = url_in(&String::from_utf8_lossy(&self.line));
                self.line.clear();
                if self.url.is_some() {
                    return;
                }
            }
        }
    }
}

/// The first `scheme://…` of a line, without the punctuation that may follow it.
fn url_in(line: &str) -> Option<String> {
    let line = plain(line);
    let middle = line.find("://")?;
    let begin = line[..middle].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let rest = &line[begin..];
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ')' | ','));
    let url = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', ';', ':']);
    (begin < middle && url.len() > middle - begin + 3).then(|| url.to_owned())
}

/// Without colours and other control characters: a server's text must not steer our terminal.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' && rest.peek() == Some(&'[') {
            rest.next();
            while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
        } else if c == '\t' {
            plain.push(' ');
        } else if !c.is_control() {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_line_is_found() {
        let check = |line: &str, expected: Option<&str>| assert_eq!(url_in(line).as_deref(), expected);
        check("arena listens on ws://127.0.0.1:42069/\n", Some("ws://127.0.0.1:42069/"));
        check("\u{1b}[1mready: http://[::1]:80/a?b=c.\u{1b}[0m", Some("http://[::1]:80/a?b=c"));
        check("{\"url\":\"tcp://0.0.0.0:1\",\"x\":1}", Some("tcp://0.0.0.0:1"));
        check("a // b :// c", None);
        check("ws://", None);
    }

    #[test]
    fn only_the_end_is_kept() {
        let mut kept = Kept::default();
        (0..10_000).for_each(|number| kept.keep(format!("line {number}\n").as_bytes()));
        assert_eq!(kept.end.len(), KEPT_BYTES);
        let output = Output::default();
        *output.0.lock() = kept;
        assert_eq!(output.last_lines(2), ["line 9998", "line 9999"]);
    }

    #[test]
    fn a_servers_text_does_not_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mred\u{1b}[0m\u{7}\tb\r"), "ared b");
    }
}
