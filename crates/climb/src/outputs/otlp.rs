//! `--otlp`: a run's running totals, sent to an OpenTelemetry Protocol collector every few seconds and once at the end.
//!
//! A thread of lower priority (nice) reads them from the store. The totals are cumulative, so a failed export loses
//! nothing. Errors here change no verdict and no exit code; they are reported at the end.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, bail};
use console::masks;
use store::export::{Counted, RunSums, otlp};
use store::{RunId, Store};
use ureq::http::Uri;

use super::metrics::shown;
use crate::stored::unix_ms;

/// Between two exports.
const EVERY: Duration = Duration::from_secs(5);
/// A collector that has not answered by then has not taken it.
const TIMEOUT: Duration = Duration::from_secs(5);
/// After the run the last export may take so long.
const LAST_WORDS: Duration = Duration::from_secs(6);
/// Headers of every export, as `name=value,name=value`; values are percent-encoded.
/// Source: <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// Where a collector takes figures, if its address names nothing.
const PATH: &str = "/v1/metrics";

/// Where the figures go.
pub struct Collector {
    url: String,
    headers: Vec<(String, String)>,
}

impl Collector {
    /// Errors: no URL, or headers that cannot be sent.
    pub fn named(text: &str) -> anyhow::Result<Collector> {
        let headers = std::env::var(HEADERS).unwrap_or_default();
        let headers = headers_of(&headers).with_context(|| HEADERS.to_owned())?;
        headers.iter().for_each(|(_, value)| masks::remember(value));
        Ok(Collector { url: url_of(text)?, headers })
    }

    /// Begins to send.
    pub fn tell(self, store: &Path, run: &RunId) -> anyhow::Result<Exporter> {
        let (end, ended) = channel();
        let (tell, told) = channel();
        let url = self.url.clone();
        let mut sending = Sending {
            store: store.to_owned(),
            open: None,
            sums: RunSums::new(run.clone()),
            from_unix_ns: unix_ms() * 1_000_000,
            agent: agent(),
            collector: self,
        };
        let work = move || {
            viewer::yield_to_others();
            // The receiver is gone if the wait for this thread was given up.
            let _ = tell.send(sending.follow(&ended));
        };
        std::thread::Builder::new().name("otlp".to_owned()).spawn(work).context("--otlp")?;
        Ok(Exporter { url, end, told })
    }
}

/// Redirects are not followed: headers are for this collector.
fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).max_redirects(0);
    config
        .http_status_as_error(false)
        .user_agent(concat!("stepladder/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

/// `http://127.0.0.1:4318` is that of its metrics.
fn url_of(text: &str) -> anyhow::Result<String> {
    let wrong = || {
        let shown = masks::mask(text);
        anyhow::anyhow!(
            "--otlp {shown:?} is no address of a collector; write for example --otlp http://127.0.0.1:4318"
        )
    };
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(wrong());
    };
    if authority.as_str().contains('@') {
        bail!(
            "--otlp: a name and a password do not belong into an address; set {HEADERS} to a header authorization=…"
        );
    }
    let is_bare = uri.path() == "/" && uri.query().is_none();
    Ok(if is_bare { format!("{}{PATH}", text.trim_end_matches('/')) } else { text.to_owned() })
}

/// Errors: a pair without `=`, or what no header can be. A value is not repeated: it may be a secret.
fn headers_of(text: &str) -> anyhow::Result<Vec<(String, String)>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let header = |(at, pair): (usize, &str)| {
        let wrong = || anyhow::anyhow!("its header number {} is not name=value", at + 1);
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        let value = decoded(value.trim()).ok_or_else(wrong)?;
        let is_name = ureq::http::HeaderName::from_bytes(name.trim().as_bytes()).is_ok();
        if !is_name || ureq::http::HeaderValue::from_str(&value).is_err() {
            return Err(wrong());
        }
        Ok((name.trim().to_owned(), value))
    };
    pairs.enumerate().map(header).collect()
}

/// Without percent-encoding; `None`: it is broken.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A thread that sends.
pub struct Exporter {
    url: String,
    end: Sender<()>,
    told: Receiver<Told>,
}

impl Exporter {
    /// Lets it send what there is at the end. Returns what its user should know; `None`: everything arrived.
    pub fn finish(self) -> Option<String> {
        // A thread that failed has already ended.
        let _ = self.end.send(());
        let words = match self.told.recv_timeout(LAST_WORDS) {
            Ok(Told { last: None, .. }) => return None,
            Ok(Told { last: Some(trouble), failed, tried }) => {
                format!("{failed} of {tried} exports failed, the last one: {trouble}")
            }
            Err(RecvTimeoutError::Timeout) => {
                "the collector does not answer, and the last figures were not sent".to_owned()
            }
            Err(RecvTimeoutError::Disconnected) => "its thread has failed".to_owned(),
        };
        Some(shown(&format!("--otlp {}: {words}", self.url)))
    }
}

struct Told {
    tried: u64,
    failed: u64,
    /// why the last one did
    last: Option<String>,
}

struct Sending {
    store: PathBuf,
    open: Option<Store>,
    sums: RunSums,
    from_unix_ns: u64,
    agent: ureq::Agent,
    collector: Collector,
}

impl Sending {
    /// Until it is told to stop, and then once more.
    fn follow(&mut self, ended: &Receiver<()>) -> Told {
        let mut told = Told { tried: 0, failed: 0, last: None };
        loop {
            let is_last = !matches!(ended.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
            told.tried += 1;
            told.last = self.send().err().map(|error| format!("{error:#}"));
            told.failed += u64::from(told.last.is_some());
            if is_last {
                return told;
            }
        }
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let store = match &mut self.open {
            Some(store) => store,
            none => none.insert(Store::open_to_read(&self.store)?),
        };
        self.sums.read_on(store)?;
        let counted = Counted { from_unix_ns: self.from_unix_ns, until_unix_ns: unix_ms() * 1_000_000 };
        let body = otlp(&self.sums.families(&shown), counted);
        let mut request =
            self.agent.post(&self.collector.url).header("content-type", "application/x-protobuf");
        for (name, value) in &self.collector.headers {
            request = request.header(name, value);
        }
        let status = request.send(&body)?.status();
        if !status.is_success() {
            bail!("the collector answers with status {}", status.as_u16());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_is_that_of_the_metrics() {
        for (text, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
            ("https://otlp.example/", "https://otlp.example/v1/metrics"),
            ("http://localhost:4318/otlp/v1/metrics", "http://localhost:4318/otlp/v1/metrics"),
        ] {
            assert_eq!(url_of(text).unwrap(), expected);
        }
        for text in ["", "4318", "127.0.0.1:4318", "grpc://127.0.0.1:4317", "file:///etc/passwd", "http://"] {
            assert!(url_of(text).is_err(), "{text}");
        }
        let told = url_of("http://me:hunter2@127.0.0.1:4318").unwrap_err().to_string();
        assert!(told.contains(HEADERS) && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn headers_are_pairs_with_percent_encoding_and_never_repeated_in_an_error() {
        let read = headers_of("authorization=Basic%20abc%3D, x-scope=one").unwrap();
        let expected = [("authorization", "Basic abc="), ("x-scope", "one")];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(headers_of("").unwrap().is_empty());
        for text in [
            "planted-secret",
            "a b=planted-secret",
            "name=planted-secret%0d%0aevil",
            "name=planted-secret%zz",
            "name=planted-secret%",
        ] {
            let error = format!("{:#}", headers_of(text).unwrap_err());
            assert!(error.contains("number 1") && !error.contains("planted"), "{error}");
        }
    }
}
