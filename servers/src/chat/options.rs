//! What a user can choose about the chat, and the ranges.

use std::net::SocketAddr;
use std::time::Duration;

use super::window::Window;
use crate::fault::Fault;
use crate::{ServeError, Shutdown};

/// How a chat runs. The defaults are the published server on loopback, without its echo.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, which `tell` learns.
    pub listen: SocketAddr,
    /// Threads that serve, 1 to 256; None: one per core. There are more where `max_clients` sockets do not fit
    /// into the descriptor tables of these.
    pub threads: Option<usize>,
    /// Whoever says a line gets it, too.
    pub echo: bool,
    /// Lines that wait for one client beyond what the system holds for it, 1 to 1,000,000.
    pub backlog: usize,
    /// What the system holds for one client before lines go to its backlog, 4096 to 4,194,304 bytes. The kernel
    /// doubles it for its own needs, and cuts it down to net.core.wmem_max.
    pub send_buffer: usize,
    /// What happens to a client whose backlog is full.
    pub on_full: OnFull,
    /// The longest line without its end, 16 to 65,536 bytes; who sends a longer one is told and closed.
    pub max_line: usize,
    /// Clients at once; whoever comes on top of that is told and closed.
    pub max_clients: usize,
    /// New connections per second from one address, loopback included, with one second's worth of burst;
    /// None: no limit.
    pub per_address_rate: Option<u32>,
    /// How often `tell` gets a report; zero: never.
    pub report_every: Duration,
    /// Where the figures can be asked for over HTTP, as OpenMetrics text.
    pub metrics: Option<SocketAddr>,
    /// How long lines are gathered before they leave.
    pub window: Window,
    /// A client that says nothing for so long is told and closed; None: listening is enough.
    pub idle: Option<Duration>,
    /// How long a line may take from its first byte to its end, before its sender is cut.
    pub line_timeout: Duration,
    /// How long a client that has shut its sending side goes on receiving.
    pub half_closed: Duration,
    /// How long the end of the server waits for clients to take what is queued for them.
    pub drain: Duration,
    /// Faults to plant, for testing instruments.
    pub faults: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    pub shutdown: Option<Shutdown>,
}

/// What happens when one more line does not fit into a client's backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// The client misses what has waited longest.
    DropOldest,
    /// The client misses the new line.
    DropNewest,
    /// The client is disconnected.
    Disconnect,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 4001)),
            threads: None,
            echo: false,
            backlog: 1024,
            // With 3,072 clients at the published pace and everybody's bots stopped for 1.6 s, 64 KiB dropped 2.8 M
            // of 162 M deliveries, 128 KiB none; the server's CPU time was the same.
            send_buffer: 128 * 1024,
            on_full: OnFull::DropOldest,
            max_line: 4096,
            max_clients: 16_384,
            per_address_rate: None,
            report_every: Duration::from_secs(10),
            metrics: None,
            window: Window::Auto,
            idle: None,
            line_timeout: Duration::from_secs(10),
            half_closed: Duration::from_secs(30),
            drain: Duration::from_secs(5),
            faults: Vec::new(),
            shutdown: None,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), ServeError> {
        let refuse = |option, value: String, range| Err(ServeError::Option { option, value, range });
        if let Some(threads) = self.threads.filter(|threads| !(1..=256).contains(threads)) {
            return refuse("threads", threads.to_string(), "1 to 256");
        }
        if !(1..=1_000_000).contains(&self.backlog) {
            return refuse("backlog", self.backlog.to_string(), "1 to 1000000 lines");
        }
        if !(4096..=4_194_304).contains(&self.send_buffer) {
            return refuse("send-buffer", self.send_buffer.to_string(), "4096 to 4194304 bytes");
        }
        if !(16..=65_536).contains(&self.max_line) {
            return refuse("max-line", self.max_line.to_string(), "16 to 65536 bytes");
        }
        if !(1..=1_000_000).contains(&self.max_clients) {
            return refuse("max-clients", self.max_clients.to_string(), "1 to 1000000");
        }
        if self.per_address_rate == Some(0) {
            return refuse("per-address-rate", "0".to_owned(), "at least 1 connection per second");
        }
        if let Window::Fixed(window) = self.window
            && !(Duration::from_micros(10)..=Duration::from_secs(10)).contains(&window)
        {
            return refuse("window", format!("{window:?}"), "auto, or 10us to 10s");
        }
        for (option, time) in [
            ("report-every", self.report_every),
            ("idle", self.idle.unwrap_or_default()),
            ("half-closed", self.half_closed),
        ] {
            if time > Duration::from_secs(86_400) {
                return refuse(option, format!("{time:?}"), "at most a day");
            }
        }
        if !self.report_every.is_zero() && self.report_every < Duration::from_millis(10) {
            return refuse("report-every", format!("{:?}", self.report_every), "0, or 10ms and more");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_refused_with_their_name_and_range() {
        assert!(Options::default().check().is_ok());
        let check = |options: Options, message| {
            assert_eq!(options.check().unwrap_err().to_string(), message);
        };
        let default = Options::default;
        check(Options { backlog: 0, ..default() }, "--backlog 0 is out of range: 1 to 1000000 lines");
        check(
            Options { max_line: 65_537, ..default() },
            "--max-line 65537 is out of range: 16 to 65536 bytes",
        );
        check(
            Options { window: Window::Fixed(Duration::from_secs(11)), ..default() },
            "--window 11s is out of range: auto, or 10us to 10s",
        );
    }
}
