//! Asks a metrics endpoint once per second, on a thread of its own, because a server under load may answer late.
//!
//! An answer is bounded in length and time. Answers come as HTTP/1.0 or 1.1 and are not compressed, since that was not asked for.
//! Not here: what the text means (`measure::ticklog`).

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use measure::ticklog::{LoggedSecond, MetricReader, Notice};

const EVERY: Duration = Duration::from_secs(1);
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How soon the thread sees that it is to end.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
const BODY_BYTES_MAX: usize = 4 << 20;
const HEAD_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 64 << 10;

/// An endpoint that is asked until this is dropped.
#[derive(Debug)]
pub struct Scraper {
    url: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    reader: Mutex<MetricReader>,
    is_over: AtomicBool,
}

/// Where to ask, and in which words.
#[derive(Debug)]
struct Endpoint {
    addresses: Vec<SocketAddr>,
    request: String,
}

impl Scraper {
    /// Asks from now on. `url` for people; `authority` (`HOST:PORT`) and `path` as they are sent. Errors: no thread could be started.
    pub fn start(
        url: String,
        addresses: Vec<SocketAddr>,
        (authority, path): (&str, &str),
        reader: MetricReader,
    ) -> io::Result<Scraper> {
        let accepts = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4";
        let request = format!(
            "GET {path} HTTP/1.0\r\nHost: {authority}\r\nAccept: {accepts}\r\nConnection: close\r\n\r\n"
        );
        let shared = Arc::new(Shared { reader: Mutex::new(reader), is_over: AtomicBool::new(false) });
        let (theirs, endpoint) = (shared.clone(), Endpoint { addresses, request });
        let thread =
            thread::Builder::new().name("scrape".to_owned()).spawn(move || ask_on(&endpoint, &theirs))?;
        Ok(Scraper { url, shared, thread: Some(thread) })
    }

    /// A trial begins.
    pub fn begin_trial(&mut self) {
        self.shared.reader().begin_trial();
    }

    /// The seconds that came since the last call; at `u64::MAX` a trial ends.
    pub fn poll(&mut self, realtime_ms: u64) -> Vec<LoggedSecond> {
        let mut reader = self.shared.reader();
        if realtime_ms == u64::MAX {
            reader.end_trial();
        }
        reader.take_seconds()
    }

    /// What there is to say since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let notices = self.shared.reader().take_notices().into_iter();
        let at_url = |text| format!("{}: {text}", self.url);
        notices.map(|Notice { text, is_loss }| Notice { text: at_url(text), is_loss }).collect()
    }
}

impl Shared {
    fn reader(&self) -> std::sync::MutexGuard<'_, MetricReader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn ask_on(endpoint: &Endpoint, shared: &Shared) {
    let mut due = Instant::now();
    while !shared.is_over() {
        match ask(endpoint, shared) {
            Ok((at_ms, answer)) => match body_of(&answer, true) {
                Ok(body) => shared.reader().take(at_ms, &body.unwrap_or_default()),
                Err(text) => shared.reader().fail(Notice { text, is_loss: true }),
            },
            Err(notice) => shared.reader().fail(notice),
        }
        // Missed seconds are not made up for: the next answer tells of them too.
        due = (due + EVERY).max(Instant::now());
        while !shared.is_over() && Instant::now() < due {
            thread::sleep(LOOKS_EVERY.min(due.saturating_duration_since(Instant::now())));
        }
    }
}

/// The answer, and the realtime at which it began, ms. Errors: why there is none.
fn ask(endpoint: &Endpoint, shared: &Shared) -> Result<(u64, Vec<u8>), Notice> {
    let lost = |text: String| Notice { text, is_loss: true };
    // A server that hangs is silent, and its silence counts.
    let silent = || Notice::from(format!("no answer within {} s", ANSWERS_WITHIN.as_secs()));
    let broken = |error: io::Error| match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => silent(),
        ErrorKind::ConnectionRefused => lost(
            "nothing listens there (connection refused); start the server's metrics or name another port"
                .into(),
        ),
        _ => lost(format!("the connection broke ({error})")),
    };
    let until = Instant::now() + ANSWERS_WITHIN;
    let mut connected = Err(io::Error::from(ErrorKind::ConnectionRefused));
    for address in &endpoint.addresses {
        connected = TcpStream::connect_timeout(address, ANSWERS_WITHIN);
        if connected.is_ok() {
            break;
        }
    }
    let mut socket = connected.map_err(broken)?;
    socket.set_read_timeout(Some(LOOKS_EVERY)).map_err(broken)?;
    socket.set_write_timeout(Some(ANSWERS_WITHIN)).map_err(broken)?;
    socket.write_all(endpoint.request.as_bytes()).map_err(broken)?;
    let (mut answer, mut at_ms, mut piece) = (Vec::new(), 0, vec![0; READ_BYTES]);
    loop {
        match socket.read(&mut piece) {
            Ok(0) => return Ok((at_ms, answer)),
            Ok(count) => answer.extend_from_slice(&piece[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(broken(error)),
        }
        if at_ms == 0 && !answer.is_empty() {
            at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        }
        // Many servers keep the connection open.
        if body_of(&answer, false).map_err(lost)?.is_some() {
            return Ok((at_ms, answer));
        }
        if answer.len() > HEAD_BYTES_MAX + BODY_BYTES_MAX {
            return Err(lost(format!("the answer has more than {} MiB", BODY_BYTES_MAX >> 20)));
        }
        if Instant::now() >= until || shared.is_over() {
            return Err(if answer.is_empty() { silent() } else { lost("the answer does not end".into()) });
        }
    }
}

/// The body of an answer. `None`: it goes on. Errors: it is none that can be read.
pub(crate) fn body_of(answer: &[u8], has_ended: bool) -> Result<Option<Cow<'_, [u8]>>, String> {
    let Some(end) = answer.windows(4).take(HEAD_BYTES_MAX).position(|four| four == b"\r\n\r\n") else {
        return match answer.len() {
            0 if has_ended => Err("the connection was closed without an answer".to_owned()),
            length if has_ended || length > HEAD_BYTES_MAX => Err("the answer is not HTTP".to_owned()),
            _ => Ok(None),
        };
    };
    let (head, body) = (String::from_utf8_lossy(&answer[..end]), &answer[end + 4..]);
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1."));
    let status = status.and_then(|line| line.get(2..5));
    let status = status.filter(|status| status.bytes().all(|byte| byte.is_ascii_digit()));
    let status = status.ok_or("the answer is not HTTP")?;
    if status != "200" {
        return Err(format!("the answer has status {status}; check the path, which often is /metrics"));
    }
    let (mut length, mut is_chunked) = (None, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                length = Some(value.parse::<usize>().map_err(|_| "its Content-Length is no number")?);
            }
            "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
            "content-encoding" if value != "identity" => {
                return Err("the answer is compressed, which was not asked for".to_owned());
            }
            _ => {}
        }
    }
    let whole = if is_chunked {
        unchunked(body)?.map(Cow::Owned)
    } else {
        match length {
            Some(length) => body.get(..length).map(Cow::Borrowed),
            None => has_ended.then_some(Cow::Borrowed(body)),
        }
    };
    if whole.is_none() && has_ended {
        return Err("the connection was closed in the middle of the answer".to_owned());
    }
    Ok(whole)
}

/// The chunks of a body, put together; `None`: more follow. Errors: they are none.
fn unchunked(mut rest: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let mut whole = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|line| line.split(';').next());
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let size =
            size.filter(|size| *size <= BODY_BYTES_MAX).ok_or("the chunks of its body are no chunks")?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Ok(Some(whole));
        }
        let Some(chunk) = rest.get(..size) else { return Ok(None) };
        whole.extend_from_slice(chunk);
        let Some(after) = rest.get(size + 2..) else { return Ok(None) };
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn bodies_are_taken_out_of_answers() {
        for (answer, has_ended, body) in [
            ("HTTP/1.0 200 OK\r\n\r\na 1\n", true, Ok(Some("a 1\n"))),
            ("HTTP/1.0 200 OK\r\n\r\na 1\n", false, Ok(None)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\na 1\nmore", false, Ok(Some("a 1\n"))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na 1\n", false, Ok(None)),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na 1\n",
                true,
                Err("the connection was closed in the middle of the answer"),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na \r\n2;x\r\n1\n\r\n0\r\n\r\n",
                false,
                Ok(Some("a 1\n")),
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na ", false, Ok(None)),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                false,
                Err("the chunks of its body are no chunks"),
            ),
            (
                "HTTP/1.1 500 Oops\r\n\r\n",
                false,
                Err("the answer has status 500; check the path, which often is /metrics"),
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
                false,
                Err("the answer is compressed, which was not asked for"),
            ),
            ("SSH-2.0-x\r\n\r\n", false, Err("the answer is not HTTP")),
            ("SSH-2.0-x\r\n", true, Err("the answer is not HTTP")),
            ("", true, Err("the connection was closed without an answer")),
        ] {
            let read = body_of(answer.as_bytes(), has_ended);
            let read = read.map(|body| body.map(|body| String::from_utf8(body.into_owned()).unwrap()));
            assert_eq!(read, body.map(|body| body.map(str::to_owned)).map_err(str::to_owned), "{answer}");
        }
    }

    /// What is said of a server that gives each connection to `serve`.
    fn said_of(serve: fn(TcpStream)) -> Vec<Notice> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || listener.incoming().flatten().for_each(serve));
        let reader = MetricReader::new(Some("tick_seconds".to_owned()), None, 30.0);
        let mut scraper = Scraper::start("URL".to_owned(), vec![address], ("x", "/"), reader).unwrap();
        let begin = Instant::now();
        loop {
            let notices = scraper.take_notices();
            if !notices.is_empty() || begin.elapsed() > Duration::from_secs(20) {
                assert_eq!(scraper.poll(0), []);
                return notices;
            }
            thread::sleep(LOOKS_EVERY);
        }
    }

    #[test]
    fn a_body_without_an_end_is_cut_off_and_a_dead_endpoint_named() {
        let is = |notices: Vec<Notice>, text: &str, is_loss| {
            assert_eq!(notices, [Notice { text: text.to_owned(), is_loss }]);
        };
        let endless = |mut socket: TcpStream| {
            let line = "a 1\n".repeat(10_000);
            let _ = socket.write_all(b"HTTP/1.0 200 OK\r\n\r\n");
            while socket.write_all(line.as_bytes()).is_ok() {}
        };
        is(said_of(endless), "URL: the answer has more than 4 MiB", true);
        let silent =
            |socket: TcpStream| thread::sleep(Duration::from_secs(60 * u64::from(socket.nodelay().is_ok())));
        is(said_of(silent), "URL: no answer within 5 s", false);
        let slow = |mut socket: TcpStream| {
            while socket.write_all(b"H").is_ok() {
                thread::sleep(LOOKS_EVERY)
            }
        };
        is(said_of(slow), "URL: the answer does not end", true);
    }

    #[test]
    fn a_refused_connection_is_a_loss() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let shared = Shared {
            reader: Mutex::new(MetricReader::new(None, None, 30.0)),
            is_over: AtomicBool::new(false),
        };
        let endpoint = Endpoint { addresses: vec![address], request: String::new() };
        let notice = ask(&endpoint, &shared).unwrap_err();
        assert!(notice.is_loss && notice.text.contains("connection refused"), "{notice:?}");
    }
}
