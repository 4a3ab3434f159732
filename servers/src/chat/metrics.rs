//! The figures over HTTP, as OpenMetrics text.
//!
//! Answered by the control thread, one question at a time and none longer than `ANSWER_WITHIN`, so that whoever
//! asks slowly delays a report line at most. Source: OpenMetrics 1.0.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::options::OnFull;
use super::totals::Totals;

const ANSWER_WITHIN: Duration = Duration::from_millis(250);
const REQUEST_BYTES_MAX: usize = 8 * 1024;
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) struct Metrics {
    listener: TcpListener,
}

/// What is told beyond the books.
pub(super) struct Surroundings {
    pub(super) rooms: usize,
    pub(super) on_full: OnFull,
}

impl Metrics {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Metrics> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Metrics { listener })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers who is waiting, if anybody is.
    pub(super) fn answer(&self, text: impl FnOnce() -> String) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        // Whoever asks in a wrong way, or goes away, is the only one to miss the answer.
        let _ = answer(stream, text);
    }
}

impl AsFd for Metrics {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

fn answer(mut stream: TcpStream, text: impl FnOnce() -> String) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let by = Instant::now() + ANSWER_WITHIN;
    let left = || by.checked_duration_since(Instant::now()).ok_or(io::ErrorKind::TimedOut);
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut buffer)? {
            0 => break,
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
    let (status, kind, body) = match path(&request) {
        Some((method @ ("GET" | "HEAD"), "/metrics")) => {
            let body = text();
            ("200 OK", CONTENT_TYPE, if method == "GET" { body } else { String::new() })
        }
        Some(("GET" | "HEAD", _)) => {
            ("404 Not Found", "text/plain", "the figures are at /metrics\n".to_owned())
        }
        Some(_) => ("405 Method Not Allowed", "text/plain", "ask with GET\n".to_owned()),
        None => ("400 Bad Request", "text/plain", "this is no HTTP request\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    stream.shutdown(std::net::Shutdown::Write)
}

/// Method and path of a request, without the query.
fn path(request: &[u8]) -> Option<(&str, &str)> {
    let line = std::str::from_utf8(request.split(|byte| *byte == b'\r').next()?).ok()?;
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    version.starts_with("HTTP/1.").then_some((method, target.split('?').next()?))
}

/// The exposition: every figure with what it is, and the end mark.
pub(super) fn text(totals: &Totals, around: &Surroundings) -> String {
    let mut text = String::with_capacity(4096);
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(&str, f64)]| {
        let _ = writeln!(text, "# TYPE {name} {kind}\n# HELP {name} {help}");
        let suffix = if kind == "counter" { "_total" } else { "" };
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{suffix}{labels} {value}");
        }
    };
    let one = |value: u64| [("", value as f64)];
    family("chat_clients", "gauge", "Clients connected now.", &one(totals.clients));
    family("chat_rooms", "gauge", "Rooms that somebody is in.", &one(around.rooms as u64));
    family("chat_broadcasts", "counter", "Lines that clients said.", &one(totals.broadcasts));
    family("chat_owed", "counter", "Deliveries that were owed.", &one(totals.owed));
    family("chat_delivered", "counter", "Deliveries handed to the system whole.", &one(totals.delivered));
    let dropped = |policy| if around.on_full == policy { totals.dropped as f64 } else { 0.0 };
    let policies = [
        ("{policy=\"drop-oldest\"}", dropped(OnFull::DropOldest)),
        ("{policy=\"drop-newest\"}", dropped(OnFull::DropNewest)),
        ("{policy=\"disconnect\"}", dropped(OnFull::Disconnect)),
    ];
    family("chat_dropped", "counter", "Deliveries that did not fit into a backlog.", &policies);
    family(
        "chat_in_flight_at_close",
        "counter",
        "Deliveries that waited for a client when it was closed.",
        &one(totals.in_flight_at_close),
    );
    family("chat_backlog_lines", "gauge", "Deliveries that wait for clients now.", &one(totals.waiting));
    let help = "Memory of lines that wait for clients or are on their way, bounded by --total-backlog.";
    family("chat_backlog_bytes", "gauge", help, &one(totals.backlog_bytes));
    family("chat_residual", "gauge", "What the books leave unexplained.", &[("", totals.residual() as f64)]);
    family("chat_sent_bytes", "counter", "Bytes handed to the system.", &one(totals.bytes));
    family("chat_writes", "counter", "Writes to clients.", &one(totals.writes));
    family("chat_rounds", "counter", "Rounds of writes, one per window and thread.", &one(totals.rounds));
    let window = [("", totals.window_ns as f64 / 1e9)];
    family("chat_window_seconds", "gauge", "How long lines are gathered before they leave.", &window);
    let refused = [
        ("{reason=\"full\"}", totals.refused_full as f64),
        ("{reason=\"address_rate\"}", totals.refused_rate as f64),
    ];
    family("chat_refused", "counter", "Connections that were refused.", &refused);
    let cut = &totals.cut;
    let cuts = [
        ("{reason=\"line_too_long\"}", cut.line_too_long as f64),
        ("{reason=\"line_too_slow\"}", cut.line_too_slow as f64),
        ("{reason=\"idle\"}", cut.idle as f64),
        ("{reason=\"backlog_full\"}", cut.backlog_full as f64),
        ("{reason=\"answers_unread\"}", cut.answers_unread as f64),
        ("{reason=\"half_closed\"}", cut.half_closed as f64),
    ];
    family("chat_cut", "counter", "Clients that the server closed.", &cuts);
    text.push_str("# EOF\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Checks what OpenMetrics demands of lines, families and the end.
    fn parse(text: &str) -> HashSet<String> {
        let body = text.strip_suffix("# EOF\n").expect("the end mark");
        let (mut families, mut samples) = (HashSet::new(), HashSet::new());
        let (mut family, mut kind) = (String::new(), String::new());
        for line in body.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["#", "TYPE", name, is] => {
                    assert!(families.insert(name.to_owned()), "{name} twice");
                    (family, kind) = (name.to_owned(), is.to_owned());
                    assert!(!name.ends_with("_total") && ["gauge", "counter"].contains(&is));
                }
                ["#", "HELP", name, ..] => assert_eq!(name, family),
                [sample, value] => {
                    value.parse::<f64>().unwrap();
                    let name = sample.split('{').next().unwrap();
                    let suffix = if kind == "counter" { "_total" } else { "" };
                    assert_eq!(name, format!("{family}{suffix}"));
                    assert!(samples.insert(sample.to_owned()), "{sample} twice");
                }
                _ => panic!("{line}"),
            }
        }
        samples
    }

    #[test]
    fn the_exposition_is_open_metrics_and_has_the_books() {
        let totals =
            Totals { owed: 100, delivered: 90, dropped: 6, in_flight_at_close: 3, ..Totals::default() };
        let text = text(&totals, &Surroundings { rooms: 2, on_full: OnFull::DropNewest });
        let samples = parse(&text);
        assert!(samples.contains("chat_dropped_total{policy=\"drop-oldest\"}"));
        for line in [
            "chat_rooms 2\n",
            "chat_owed_total 100\n",
            "chat_dropped_total{policy=\"drop-oldest\"} 0\n",
            "chat_dropped_total{policy=\"drop-newest\"} 6\n",
            "chat_residual 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn only_a_request_has_a_path() {
        assert_eq!(path(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"), Some(("GET", "/metrics")));
        for nonsense in [&b""[..], b"\xff\xfe", b"hello", b"GET /metrics\r\n\r\n"] {
            assert_eq!(path(nonsense), None);
        }
    }
}
