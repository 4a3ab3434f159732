//! `stepladder serve`: a reference server by itself.

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use servers::fault::{self, Fault};
use servers::{ServeError, arena, chat, null, oracle, poll_loop};

/// The short help of `--fault`; the long one lists what the server can plant.
const FAULT_HELP: &str = "Plant a fault, to test what measures this server; --help lists the kinds";

/// Which server.
#[derive(Debug, Subcommand)]
pub enum Server {
    /// Two-player shooter over WebSocket, one 60 Hz tick loop per game
    Arena(ArenaArgs),
    /// Chat over plain TCP: every line goes to every other client of the room
    Chat(ChatArgs),
    /// HTTP services answered from a 30 Hz simulation loop, ten per tick
    PollLoop(PollLoopArgs),
    /// Echo over WebSocket or lines, or the shortest answer over HTTP: what the instrument is calibrated with
    Null(NullArgs),
    /// HTTP server that follows a known law, with planted stalls and faults: what instruments are held to
    Oracle(OracleArgs),
}

/// Options of the arena.
#[derive(Debug, Args)]
pub struct ArenaArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42069", value_name = "ADDR")]
    listen: SocketAddr,
    /// Threads that play [default: one per core, more where sockets need further descriptor tables]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Ticks per second and game
    #[arg(long, default_value_t = 60, value_name = "HZ")]
    tick_rate: u32,
    /// steady: absolute schedule, missed ticks are skipped and counted. catch-up: the original's, 1 ms timers and
    /// bursts of catch-up ticks
    #[arg(long, value_enum, default_value_t = TickerName::Steady)]
    ticker: TickerName,
    /// Write each second's ticks to this file as JSON lines
    #[arg(long, value_name = "FILE")]
    tick_log: Option<PathBuf>,
    /// Write at the end of a tick log that exists
    #[arg(long)]
    append: bool,
    /// Units per second
    #[arg(long, default_value_t = 500, value_name = "UNITS")]
    bullet_speed: u32,
    /// A player fires at most once in this time
    #[arg(long, default_value = "100ms", value_name = "TIME", value_parser = duration)]
    fire_interval: Duration,
    /// Send a snapshot to every player at every tick (a client may ask for its own with ?snapshots=1)
    #[arg(long)]
    snapshots: bool,
    /// Sockets at once; more are refused with status 503
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    max_connections: usize,
    /// New connections per second from one address [default: no limit]
    #[arg(long, value_name = "N")]
    per_address_rate: Option<u32>,
    /// What becomes of a waiting player who has gone
    #[arg(long, value_enum, default_value_t = PairingName::Strict)]
    pairing: PairingName,
    #[arg(long = "fault", value_name = "KIND[@TIME][:AMOUNT]", help = FAULT_HELP, long_help = fault::help(fault::Server::Arena))]
    faults: Vec<Fault>,
}

/// What becomes of a waiting player who has gone.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PairingName {
    /// it is forgotten, and the next two to arrive play each other
    Strict,
    /// as in the published original, the next to arrive plays against it, although it is dead and never fires
    Forgetful,
}

/// Options of the chat.
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:4001", value_name = "ADDR")]
    listen: SocketAddr,
    /// Threads that serve [default: one per core, more where sockets need further descriptor tables]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Send a line to whoever said it, too
    #[arg(long)]
    echo: bool,
    /// Lines that wait for one client beyond what the system holds for it
    #[arg(long, default_value_t = 1024, value_name = "LINES")]
    backlog: usize,
    /// What the system holds for one client before lines go to its backlog, in bytes
    #[arg(long, default_value_t = 131_072, value_name = "BYTES")]
    send_buffer: usize,
    /// What happens when one more does not fit into the backlog
    #[arg(long, value_enum, default_value_t = OnFullName::DropOldest)]
    on_full: OnFullName,
    /// Longest line in bytes, 65536 at most; who says a longer one is closed
    #[arg(long, default_value_t = 4096, value_name = "BYTES")]
    max_line: usize,
    /// Clients at once; more are told and closed
    #[arg(long, default_value_t = 16_384, value_name = "N")]
    max_clients: usize,
    /// New connections per second from one address, this machine's own included [default: no limit]
    #[arg(long, value_name = "N")]
    per_address_rate: Option<u32>,
    /// How often a line of figures is printed; 0 for never
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = duration_or_0)]
    report_every: Duration,
    /// Answer GET /metrics here, as OpenMetrics text
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// How long lines are gathered before they leave: auto follows the load, a time fixes it
    #[arg(long, default_value = "auto", value_name = "auto|TIME", value_parser = window)]
    window: chat::Window,
    /// Close who says nothing for so long [default: listening is enough]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    idle: Option<Duration>,
    /// How long a client that has shut its sending side goes on receiving
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = duration)]
    half_closed: Duration,
    /// Lose every n-th delivery and count it as delivered: the fault lose with a share of 1/N
    #[arg(long, value_name = "N")]
    lose_one_in: Option<NonZeroU64>,
    #[arg(long = "fault", value_name = "KIND[@TIME][:AMOUNT]", help = FAULT_HELP, long_help = fault::help(fault::Server::Chat))]
    faults: Vec<Fault>,
}

/// What happens to a client whose backlog is full.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OnFullName {
    /// it misses the lines that have waited longest, and is told how many
    DropOldest,
    /// it misses the new lines, and is told how many
    DropNewest,
    /// it is disconnected
    Disconnect,
}

/// Options of the poll loop.
#[derive(Debug, Args)]
pub struct PollLoopArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42071", value_name = "ADDR")]
    listen: SocketAddr,
    /// Turns of the loop per second
    #[arg(long, default_value_t = 30, value_name = "HZ")]
    tick_rate: u32,
    /// Requests taken per tick
    #[arg(long, default_value_t = 10, value_name = "N")]
    slots: usize,
    /// Requests in the house at once, waiting or being answered; 0 for any number
    #[arg(long, default_value_t = 14, value_name = "N")]
    queue: usize,
    /// What happens to a request beyond that
    #[arg(long, value_enum, default_value_t = BeyondName::Refuse)]
    beyond: BeyondName,
    /// How much is near: scales the long answers
    #[arg(long, value_enum, default_value_t = LocalityName::None)]
    locality: LocalityName,
    /// Draw for somebody who looks: a frame takes 72 % of a tick instead of 1.2 %
    #[arg(long)]
    foreground: bool,
    /// What drawing a frame takes, in processor time [default: 24ms in the foreground at 30 Hz, 400us behind]
    #[arg(long, value_name = "TIME", value_parser = duration_or_0)]
    draw: Option<Duration>,
    /// Who yields when answers and the frame do not both fit into a tick
    #[arg(long, value_enum, default_value_t = PriorityName::Normal)]
    priority: PriorityName,
    /// Factor to the planted costs of the services; 0 switches them off
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    cost_scale: f64,
    /// Write ticks, requests and frames to this file as JSON lines
    #[arg(long, value_name = "FILE")]
    tick_log: Option<PathBuf>,
    /// Write at the end of a tick log that exists
    #[arg(long)]
    append: bool,
    /// How often a line is written there
    #[arg(long, default_value = "250ms", value_name = "TIME", value_parser = duration)]
    tick_log_every: Duration,
    /// Sockets at once; more are refused with status 503
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    max_connections: usize,
    #[arg(long = "fault", value_name = "KIND[@TIME][:AMOUNT]", help = FAULT_HELP, long_help = fault::help(fault::Server::PollLoop))]
    faults: Vec<Fault>,
}

/// What happens to a request for which there is no place.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum BeyondName {
    /// status 503, at once; the connection stays
    Refuse,
    /// the connection is reset
    Reset,
}

/// How much is near.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LocalityName {
    /// nothing
    None,
    /// 40 objects
    Moderate,
    /// 400 objects
    High,
}

/// Who yields.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PriorityName {
    /// frames are kept, answers get what drawing leaves
    Normal,
    /// answers come first, drawing gets what they leave; and the process is nice 10
    BelowNormal,
}

/// Options of the null server.
#[derive(Debug, Args)]
pub struct NullArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42060", value_name = "ADDR")]
    listen: SocketAddr,
    /// What is spoken
    #[arg(long, value_enum, default_value_t = ProtocolName::Websocket)]
    protocol: ProtocolName,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[arg(long = "fault", value_name = "KIND[@TIME][:AMOUNT]", help = FAULT_HELP, long_help = fault::help(fault::Server::Null))]
    faults: Vec<Fault>,
}

/// What a null server speaks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ProtocolName {
    /// texts and binaries come back
    Websocket,
    /// plain TCP; every line comes back
    Lines,
    /// HTTP/1.1; every request is answered 200 and "ok", /bytes/N with N bytes
    Http,
}

/// Options of the oracle.
#[derive(Debug, Args)]
pub struct OracleArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:42061", value_name = "ADDR")]
    listen: SocketAddr,
    /// How long its one server takes for a request; requests of all connections wait in one queue
    #[arg(long, value_enum, default_value_t = ServiceName::None)]
    service: ServiceName,
    /// Time for a request: always (fixed) or on average (exponential)
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = duration)]
    mean: Duration,
    /// Seed of exponential times
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Read, answer and accept nothing for the first TIME of every period, from the start on
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "every")]
    freeze: Option<Duration>,
    /// Period of the stalls
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "freeze")]
    every: Option<Duration>,
    /// Answer one in so many (--one-in) plain requests with this status
    #[arg(long, value_name = "NNN", requires = "one_in")]
    status: Option<u16>,
    /// How often --status strikes: every n-th plain request, of all connections
    #[arg(long, value_name = "N", requires = "status")]
    one_in: Option<u64>,
    /// Answer every n-th plain request with status 200 and the wrong body
    #[arg(long, value_name = "N")]
    wrong_body_one_in: Option<u64>,
    /// Never answer every n-th plain request, nor what follows on its connection
    #[arg(long, value_name = "N")]
    no_answer_one_in: Option<u64>,
    #[arg(long = "fault", value_name = "KIND[@TIME][:AMOUNT]", help = FAULT_HELP, long_help = fault::help(fault::Server::Oracle))]
    faults: Vec<Fault>,
}

/// How long the oracle's server takes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ServiceName {
    /// no time: every request is answered at once
    None,
    /// always --mean
    Fixed,
    /// exponentially distributed around --mean; under Poisson arrivals an M/M/1 queue
    Exponential,
}

/// The arena's two loops.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TickerName {
    /// absolute schedule; missed ticks are skipped and counted
    Steady,
    /// the original's
    CatchUp,
}

/// Serves until SIGTERM or Ctrl-C.
pub fn run(server: Server) -> Result<(), ServeError> {
    match server {
        Server::Arena(args) => arena::run(args.options(), |address| announce("arena", "ws", address)),
        Server::Chat(args) => {
            let options = args.options();
            let window = options.window;
            let totals = chat::run(options, |news| match news {
                chat::News::Listening { address, metrics } => {
                    announce("chat", "tcp", address);
                    if let Some(metrics) = metrics {
                        say(format_args!("metrics at http://{metrics}/metrics"));
                    }
                    say(format_args!("{window}"));
                }
                chat::News::Report(report) => say(format_args!("{report}")),
            })?;
            say(format_args!(
                "books: owed {} delivered {} dropped {} in flight {} residual {}",
                totals.owed,
                totals.delivered,
                totals.dropped,
                totals.in_flight_at_close,
                totals.residual()
            ));
            Ok(())
        }
        Server::PollLoop(args) => {
            let options = args.options();
            let about = options.to_string();
            poll_loop::run(options, |address| {
                announce("poll-loop", "http", address);
                say(format_args!("{about}"));
            })
        }
        Server::Null(args) => {
            let (protocol, scheme) = match args.protocol {
                ProtocolName::Websocket => (null::Protocol::WebSocket, "ws"),
                ProtocolName::Lines => (null::Protocol::Lines, "tcp"),
                ProtocolName::Http => (null::Protocol::Http, "http"),
            };
            let (listen, threads) = (args.listen, args.threads);
            let options =
                null::Options { listen, protocol, threads, faults: args.faults, ..Default::default() };
            null::run(options, |address| announce("null", scheme, address))
        }
        Server::Oracle(args) => {
            let options = args.options();
            let law = options.to_string();
            oracle::run(options, |address| {
                announce("oracle", "http", address);
                say(format_args!("{law}"));
            })
        }
    }
}

/// The first line of a server's output: people read it, and a climb takes the address from it.
fn announce(name: &str, scheme: &str, address: SocketAddr) {
    say(format_args!("{name} listening on {scheme}://{address}"));
}

fn say(line: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout();
    // A reader that is gone does not keep the server from serving.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl ChatArgs {
    fn options(self) -> chat::Options {
        chat::Options {
            listen: self.listen,
            threads: self.threads,
            echo: self.echo,
            backlog: self.backlog,
            send_buffer: self.send_buffer,
            on_full: match self.on_full {
                OnFullName::DropOldest => chat::OnFull::DropOldest,
                OnFullName::DropNewest => chat::OnFull::DropNewest,
                OnFullName::Disconnect => chat::OnFull::Disconnect,
            },
            max_line: self.max_line,
            max_clients: self.max_clients,
            per_address_rate: self.per_address_rate,
            report_every: self.report_every,
            metrics: self.metrics,
            window: self.window,
            idle: self.idle,
            half_closed: self.half_closed,
            faults: self.lose_one_in.map(Fault::lose_one_in).into_iter().chain(self.faults).collect(),
            ..Default::default()
        }
    }
}

impl PollLoopArgs {
    fn options(self) -> poll_loop::Options {
        poll_loop::Options {
            listen: self.listen,
            tick_rate: self.tick_rate,
            slots: self.slots,
            queue: Some(self.queue).filter(|queue| *queue > 0),
            beyond: match self.beyond {
                BeyondName::Refuse => poll_loop::Beyond::Refuse,
                BeyondName::Reset => poll_loop::Beyond::Reset,
            },
            locality: match self.locality {
                LocalityName::None => poll_loop::Locality::None,
                LocalityName::Moderate => poll_loop::Locality::Moderate,
                LocalityName::High => poll_loop::Locality::High,
            },
            foreground: self.foreground,
            draw: self.draw,
            priority: match self.priority {
                PriorityName::Normal => poll_loop::Priority::Normal,
                PriorityName::BelowNormal => poll_loop::Priority::BelowNormal,
            },
            cost_scale: self.cost_scale,
            tick_log: self.tick_log,
            append: self.append,
            tick_log_every: self.tick_log_every,
            max_connections: self.max_connections,
            faults: self.faults,
            ..Default::default()
        }
    }
}

impl OracleArgs {
    fn options(self) -> oracle::Options {
        oracle::Options {
            listen: self.listen,
            service: match self.service {
                ServiceName::None => oracle::Service::None,
                ServiceName::Fixed => oracle::Service::Fixed(self.mean),
                ServiceName::Exponential => oracle::Service::Exponential { mean: self.mean, seed: self.seed },
            },
            freeze: self.freeze.zip(self.every).map(|(length, every)| oracle::Freeze { length, every }),
            faults: oracle::Faults {
                status: self.status.zip(self.one_in),
                wrong_body_one_in: self.wrong_body_one_in,
                no_answer_one_in: self.no_answer_one_in,
            },
            planted: self.faults,
            ..Default::default()
        }
    }
}

impl ArenaArgs {
    fn options(self) -> arena::Options {
        arena::Options {
            listen: self.listen,
            threads: self.threads,
            tick_rate: self.tick_rate,
            ticker: match self.ticker {
                TickerName::Steady => arena::Ticker::Steady,
                TickerName::CatchUp => arena::Ticker::CatchUp,
            },
            tick_log: self.tick_log,
            append: self.append,
            bullet_speed: self.bullet_speed,
            fire_interval: self.fire_interval,
            snapshots: self.snapshots,
            max_connections: self.max_connections,
            connections_per_address_per_s: self.per_address_rate,
            pairing: match self.pairing {
                PairingName::Strict => arena::Pairing::Strict,
                PairingName::Forgetful => arena::Pairing::Forgetful,
            },
            faults: self.faults,
            ..Default::default()
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    plan::units::duration_ns(text).map(Duration::from_nanos).map_err(|error| error.to_string())
}

fn duration_or_0(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

fn window(text: &str) -> Result<chat::Window, String> {
    if text == "auto" { Ok(chat::Window::Auto) } else { duration(text).map(chat::Window::Fixed) }
}
