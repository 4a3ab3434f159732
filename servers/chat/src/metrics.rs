//! The figures over HTTP, as OpenMetrics text.
//!
//! Served by the control thread between its other work. A client must send the whole request within `ANSWER_WITHIN`;
//! meanwhile others are answered, and if too many stay silent the oldest is dropped. Source: OpenMetrics 1.0.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::nodes::Nodes;
use super::options::OnFull;
use super::totals::Totals;
use servers_shared::clock;

const ANSWER_WITHIN_NS: u64 = 250_000_000;
/// How often those who have not asked yet are looked at.
const LOOK_EVERY_NS: u64 = 20_000_000;
/// Most connections that have not sent their request yet.
const WAITING_MAX: usize = 64;
const REQUEST_BYTES_MAX: usize = 8 * 1024;
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) struct Metrics {
    listener: TcpListener,
    /// oldest first
    waiting: Vec<Waiting>,
}

/// Who has connected and not asked yet.
struct Waiting {
    stream: TcpStream,
    request: Vec<u8>,
    until_ns: u64,
}

/// Figures beyond the accounts.
pub(super) struct Surroundings {
    pub(super) rooms: usize,
    pub(super) on_full: OnFull,
    pub(super) nodes: Option<Arc<Nodes>>,
}

impl Metrics {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Metrics> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Metrics { listener, waiting: Vec::new() })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// How long the control thread may rest before it calls `answer` again, even without connections.
    pub(super) fn rest_ns(&self) -> u64 {
        if self.waiting.is_empty() { u64::MAX } else { LOOK_EVERY_NS }
    }

    /// Answers all whose requests are there; `has_connected`: others may have connected.
    pub(super) fn answer(&mut self, has_connected: bool, text: impl Fn() -> String) {
        let now_ns = clock::now_ns();
        let connected = (0..WAITING_MAX).map_while(|_| self.listener.accept().ok());
        for (stream, _) in connected.take(if has_connected { WAITING_MAX } else { 0 }) {
            if stream.set_nonblocking(true).is_ok() {
                self.waiting.push(Waiting {
                    stream,
                    request: Vec::new(),
                    until_ns: now_ns + ANSWER_WITHIN_NS,
                });
            }
        }
        self.waiting.retain_mut(|one| !one.is_done(now_ns, &text));
        let too_many = self.waiting.len().saturating_sub(WAITING_MAX);
        self.waiting.drain(..too_many);
    }
}

impl AsFd for Metrics {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Waiting {
    /// True when it was answered, has disconnected, or took too long.
    fn is_done(&mut self, now_ns: u64, text: impl Fn() -> String) -> bool {
        let mut buffer = [0; 1024];
        while !self.has_asked() {
            match self.stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(count) => self.request.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return now_ns >= self.until_ns,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        // It is the only one to miss an answer that does not fit into an empty socket.
        let _ = self.stream.write_all(&answer(&self.request, text));
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        true
    }

    fn has_asked(&self) -> bool {
        self.request.windows(4).any(|end| end == b"\r\n\r\n") || self.request.len() >= REQUEST_BYTES_MAX
    }
}

fn answer(request: &[u8], text: impl Fn() -> String) -> Vec<u8> {
    let (status, kind, body) = match path(request) {
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
    [head.as_bytes(), body.as_bytes()].concat()
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
    let full = (totals.dropped - totals.dropped_link) as f64;
    let dropped = |policy| if around.on_full == policy { full } else { 0.0 };
    let policies = [
        ("{policy=\"drop-oldest\"}", dropped(OnFull::DropOldest)),
        ("{policy=\"drop-newest\"}", dropped(OnFull::DropNewest)),
        ("{policy=\"disconnect\"}", dropped(OnFull::Disconnect)),
        ("{reason=\"link\"}", totals.dropped_link as f64),
    ];
    let help = "Deliveries that did not fit into a backlog, or did not come from another node (link).";
    family("chat_dropped", "counter", help, &policies);
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
    if let Some(nodes) = &around.nodes {
        of_nodes(nodes, &mut family);
    }
    text.push_str("# EOF\n");
    text
}

fn of_nodes(nodes: &Nodes, family: &mut impl FnMut(&str, &str, &str, &[(&str, f64)])) {
    let counters = &nodes.counters;
    let rows: [(&str, &str, &str, &AtomicU64); 11] = [
        ("others", "gauge", "Other nodes that are there.", &counters.nodes),
        (
            "published_lines",
            "counter",
            "Lines that were said here and went to the broker.",
            &counters.published,
        ),
        ("published_messages", "counter", "Messages that these were.", &counters.messages),
        (
            "unpublished_lines",
            "counter",
            "Lines that were said here and could not go to the broker.",
            &counters.unpublished,
        ),
        ("received_lines", "counter", "Lines of other nodes.", &counters.received),
        ("missing_lines", "counter", "Lines of other nodes that did not come.", &counters.missing),
        (
            "strange_messages",
            "counter",
            "Messages on the nodes' subjects that no node has sent.",
            &counters.strange,
        ),
        ("broker_losses", "counter", "Connections to the broker that were lost.", &counters.losses),
        ("fences", "counter", "Fences: checks that the other nodes have everything.", &counters.fences),
        ("fences_late", "counter", "Fences that not all nodes answered in time.", &counters.fences_late),
        ("fence_nanoseconds", "counter", "What the fences took in all.", &counters.fences_ns),
    ];
    let connected = [("", f64::from(u8::from(nodes.is_connected())))];
    family("chat_nodes_broker_up", "gauge", "Whether the broker is connected.", &connected);
    for (name, kind, help, counter) in rows {
        family(&format!("chat_nodes_{name}"), kind, help, &[("", counter.load(Ordering::Relaxed) as f64)]);
    }
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
        let nodes = Arc::new(Nodes::new().unwrap());
        nodes.counters.missing.store(3, Ordering::Relaxed);
        let text = text(&totals, &Surroundings { rooms: 2, on_full: OnFull::DropNewest, nodes: Some(nodes) });
        let samples = parse(&text);
        assert!(samples.contains("chat_dropped_total{policy=\"drop-oldest\"}"));
        for line in [
            "chat_rooms 2\n",
            "chat_owed_total 100\n",
            "chat_dropped_total{policy=\"drop-oldest\"} 0\n",
            "chat_dropped_total{policy=\"drop-newest\"} 6\n",
            "chat_residual 1\n",
            "chat_nodes_broker_up 0\n",
            "chat_nodes_missing_lines_total 3\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn silent_connections_keep_nobody_waiting_and_are_let_go() {
        let mut metrics = Metrics::bind((std::net::Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = metrics.address().unwrap();
        let connect = || TcpStream::connect(address).unwrap();
        let mut silent = Vec::new();
        for _ in 0..3 {
            silent.extend((0..WAITING_MAX).map(|_| connect()));
            metrics.answer(true, || unreachable!("nobody asks"));
        }
        let mut asks = connect();
        asks.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        metrics.answer(true, || "figures".to_owned());
        let mut told = String::new();
        asks.read_to_string(&mut told).unwrap();
        assert!(told.starts_with("HTTP/1.1 200 OK") && told.ends_with("\r\n\r\nfigures"), "{told}");
        assert_eq!((silent.len(), metrics.waiting.len()), (3 * WAITING_MAX, WAITING_MAX));
        assert_eq!(metrics.rest_ns(), LOOK_EVERY_NS);
        metrics.waiting.iter_mut().for_each(|one| one.until_ns = 0);
        metrics.answer(false, || unreachable!("nobody asks"));
        assert_eq!((metrics.waiting.len(), metrics.rest_ns()), (0, u64::MAX));
    }

    #[test]
    fn only_a_request_has_a_path() {
        assert_eq!(path(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"), Some(("GET", "/metrics")));
        for nonsense in [&b""[..], b"\xff\xfe", b"hello", b"GET /metrics\r\n\r\n"] {
            assert_eq!(path(nonsense), None);
        }
    }
}
