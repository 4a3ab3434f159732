//! The chat's options, and their ranges.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use super::window::Window;
use super::words;
use servers_shared::cli::{self, check, time, time_or_0};
use servers_shared::fault::{self, Fault, Server};
use servers_shared::nats::{self, NatsAddress};
use servers_shared::{ServeError, Shutdown};

/// How a chat runs. The defaults are the published server on loopback, without its echo.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:4001", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Threads that serve, 1 to 256 [default: one per core, more where sockets need further descriptor tables]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Send each line back to its sender, too
    #[arg(long)]
    pub echo: bool,
    /// Lines that wait for one client beyond what the system holds for it, 1 to 1000000; fewer while --total-backlog is
    /// exceeded
    #[arg(long, default_value_t = 1024, value_name = "LINES")]
    pub backlog: usize,
    /// Memory for lines that wait for all clients together, 1048576 bytes and more; when it is full, those clients lose
    /// lines for whom most waits (or are disconnected, see --on-full), and the others lose none
    // One client with a full backlog of the longest lines holds a sixtieth of it.
    #[arg(long, default_value_t = 256 * 1024 * 1024, value_name = "BYTES")]
    pub total_backlog: usize,
    /// What the system holds for one client before lines go to its backlog, 4096 to 4194304 bytes
    // The kernel doubles it for its own needs, and cuts it down to net.core.wmem_max. With 3,072 clients at the published
    // pace and everybody's bots stopped for 1.6 s, 64 KiB dropped 2.8 M of 162 M deliveries, 128 KiB none; the server's
    // CPU time was the same.
    #[arg(long, default_value_t = 128 * 1024, value_name = "BYTES")]
    pub send_buffer: usize,
    /// What happens when one more does not fit into the backlog, or into the memory for all of them
    #[arg(long, value_enum, default_value_t = OnFull::DropOldest)]
    pub on_full: OnFull,
    /// Longest line without its end, 16 to 65536 bytes; a client that sends a longer one is told so and disconnected
    #[arg(long, default_value_t = 4096, value_name = "BYTES")]
    pub max_line: usize,
    /// Clients at once; further ones are told so and disconnected
    #[arg(long, default_value_t = 16_384, value_name = "N")]
    pub max_clients: usize,
    /// New connections per second from one address, this machine's own included, with one second's worth of burst
    /// [default: no limit]
    #[arg(long, value_name = "N")]
    pub per_address_rate: Option<u32>,
    /// How often a line of figures is printed; 0 for never
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = time_or_0)]
    pub report_every: Duration,
    /// Answer GET /metrics here, as OpenMetrics text
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<SocketAddr>,
    /// How long lines are gathered before they leave: auto follows the load, a time fixes it
    #[arg(long, default_value = "auto", value_name = "auto|TIME", value_parser = window)]
    pub window: Window,
    /// Rooms span all chats that share this NATS server, such as nats://USER:PASSWORD@HOST:4222
    #[arg(long, value_name = "URL")]
    pub nats: Option<NatsAddress>,
    /// With --nats: a file whose first line is USER:PASSWORD or TOKEN, so that neither is on the command line
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_login: Option<PathBuf>,
    /// What this node is called among those, 1 to 32 bytes of letters, digits, _, - and . [default: at random]
    #[arg(long, value_name = "NAME", requires = "nats")]
    pub node: Option<String>,
    /// Close who says nothing for so long [default: listening is enough]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub idle: Option<Duration>,
    /// How long a line may take from its first byte to its end, before its sender is cut.
    #[arg(skip = Duration::from_secs(10))]
    pub line_timeout: Duration,
    /// How long a client that has shut its sending side goes on receiving
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = time)]
    pub half_closed: Duration,
    /// How long the end of the server waits for clients to take what is queued for them.
    #[arg(skip = Duration::from_secs(5))]
    pub drain: Duration,
    /// Lose every n-th delivery and count it as delivered: the fault lose with a share of 1/N
    #[arg(long, value_name = "N")]
    pub lose_one_in: Option<NonZeroU64>,
    /// Faults to plant, for testing instruments.
    #[arg(long = "fault", value_name = fault::FORM, help = fault::HELP, long_help = fault::help(Server::Chat))]
    pub faults: Vec<Fault>,
    /// Ends the server from another thread, besides SIGTERM and SIGINT.
    #[arg(skip)]
    pub shutdown: Option<Shutdown>,
}

/// What happens when one more line does not fit into a client's backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OnFull {
    /// it misses the lines that have waited longest, and is told how many
    DropOldest,
    /// it misses the new lines, and is told how many
    DropNewest,
    /// it is disconnected
    Disconnect,
}

fn window(text: &str) -> Result<Window, String> {
    if text == "auto" { Ok(Window::Auto) } else { time(text).map(Window::Fixed) }
}

impl Default for Options {
    fn default() -> Options {
        cli::defaults()
    }
}

impl Options {
    /// The broker, with what it wants to hear. Errors: the file cannot be read.
    pub(super) fn broker(&self) -> Result<Option<NatsAddress>, ServeError> {
        nats::with_login(self.nats.as_ref(), self.nats_login.as_deref())
    }

    pub(super) fn check(&self) -> Result<(), ServeError> {
        check("threads", self.threads.unwrap_or(1), 1..=256, "1 to 256")?;
        check("backlog", self.backlog, 1..=1_000_000, "1 to 1000000 lines")?;
        check("total-backlog", self.total_backlog, 1 << 20.., "1048576 bytes and more")?;
        check("send-buffer", self.send_buffer, 4096..=4_194_304, "4096 to 4194304 bytes")?;
        check("max-line", self.max_line, 16..=65_536, "16 to 65536 bytes")?;
        check("max-clients", self.max_clients, 1..=1_000_000, "1 to 1000000")?;
        let per_s = self.per_address_rate.unwrap_or(1);
        check("per-address-rate", per_s, 1.., "at least 1 connection per second")?;
        if let Window::Fixed(window) = self.window {
            let allowed = Duration::from_micros(10)..=Duration::from_secs(10);
            check("window", window, allowed, "auto, or 10us to 10s")?;
        }
        let day = Duration::from_secs(86_400);
        check("report-every", self.report_every, ..=day, "at most a day")?;
        check("idle", self.idle.unwrap_or_default(), ..=day, "at most a day")?;
        check("half-closed", self.half_closed, ..=day, "at most a day")?;
        let name = self.node.as_deref().unwrap_or("_");
        if !words::is_name(name) {
            let value = words::shown(name);
            let range = "1 to 32 bytes of letters, digits, _, - and .";
            return Err(ServeError::Option { option: "node", value, range });
        }
        if self.report_every.is_zero() {
            return Ok(());
        }
        check("report-every", self.report_every, Duration::from_millis(10).., "0, or 10ms and more")
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
            Options { total_backlog: 1_000_000, ..default() },
            "--total-backlog 1000000 is out of range: 1048576 bytes and more",
        );
        check(
            Options { max_line: 65_537, ..default() },
            "--max-line 65537 is out of range: 16 to 65536 bytes",
        );
        check(
            Options { node: Some("two words".into()), ..default() },
            "--node two words is out of range: 1 to 32 bytes of letters, digits, _, - and .",
        );
        check(
            Options { window: Window::Fixed(Duration::from_secs(11)), ..default() },
            "--window 11s is out of range: auto, or 10us to 10s",
        );
    }
}
