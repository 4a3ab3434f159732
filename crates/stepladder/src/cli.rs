//! The command line as clap reads it. Values stay raw text: `plan` reads them, so that a flag and the same key in a
//! scenario file are refused in the same words.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use plan::layers::{Flags, HttpFlags};

use crate::serve::Server;

/// Finds out how many clients a real-time server holds, what gives first, and whether the answer can be trusted.
#[derive(Debug, Parser)]
#[command(name = "stepladder", version, max_term_width = 110)]
#[command(
    after_help = "Exit: 0 objectives met, 1 not met, 2 could not be measured, 3 wrong usage, 130 interrupted."
)]
pub struct Cli {
    /// what to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Climb a ladder of loads and say how many hold, why not more, and how sure that is
    Climb(Box<ClimbArgs>),
    /// Repeat a stored run, same plan and seed, and print old against new
    Again(AgainArgs),
    /// Run a reference server by itself
    Serve {
        /// which server
        #[command(subcommand)]
        server: Server,
    },
    /// Read tick logs: on time, over, under, the distribution; several side by side
    Ticks(TicksArgs),
    /// List the stored runs
    Runs(StoreArgs),
    /// Show a stored run as it was told at its end
    Show(ShowArgs),
    /// Look at stored runs and tick logs in a browser, live while a climb goes on
    View(ViewArgs),
    /// Write a stored run as one HTML file that opens anywhere
    Report(ReportArgs),
    /// Export a stored run: every row as a line of JSON, or CSV files
    Export(ExportArgs),
    /// What this machine can do: descriptors, ports, cores, clock, pacing, own ceiling
    Doctor(DoctorArgs),
    /// Climb servers with known faults, and say whether every verdict was right on this machine
    Selftest(SelftestArgs),
}

/// Options of `climb`.
#[derive(Debug, Args)]
#[command(
    override_usage = "stepladder climb SUBJECT|scenario.yaml|URL [OPTIONS] [-- OPTIONS OF THE BUILT-IN SERVER]"
)]
#[command(after_long_help = objectives_help())]
pub struct ClimbArgs {
    /// A built-in server (arena, chat, poll-loop), a scenario file (*.yaml) or a URL (http://HOST:PORT/PATH, or https,
    /// ws, wss, tcp, irc, nats, mqtt)
    subject: Option<String>,
    /// The simulated clients: arena, chat, echo or http [default: those of the subject]
    #[arg(long, value_name = "NAME", help_heading = "What")]
    bots: Option<String>,
    /// Loads to hold, e.g. 500,1000,2000
    #[arg(long, value_name = "LIST", help_heading = "What", allow_hyphen_values = true)]
    rungs: Option<String>,
    /// HTTP: loads in requests per second, planned by a clock that waits for no answer, e.g. 1000,2000. The rate climbs
    /// to each load through the first half of the settle time
    #[arg(long, value_name = "LIST", help_heading = "What", allow_hyphen_values = true)]
    rate: Option<String>,
    /// HTTP: loads in requesters, each of whom waits for its answer: 1,5,10 or 1..20; 1.. goes on until a request fails
    #[arg(long, value_name = "LIST", help_heading = "What", allow_hyphen_values = true)]
    requesters: Option<String>,
    /// When a rung has seen enough: 60s, 2Mticks or 1000games
    #[arg(long, value_name = "ENOUGH", help_heading = "How")]
    hold: Option<String>,
    /// How the bots arrive, or a rate's connections open: 2ms (one every 2 ms; 2ms/each is the same), 5000/s, 60s/all (all
    /// of a rung within 60 s) or 0s (all at once)
    #[arg(long, value_name = "PACE", help_heading = "How")]
    ramp: Option<String>,
    /// Between the ramp and the hold
    #[arg(long, value_name = "TIME", help_heading = "How")]
    settle: Option<String>,
    /// The law of arrivals: poisson, even or burst (HTTP with a rate), even or poisson (chat, and echo with a rate),
    /// closed (requesters, and echo without a rate)
    #[arg(long, value_name = "LAW", help_heading = "How")]
    arrivals: Option<String>,
    /// Everything random comes from it
    #[arg(long, value_name = "N", help_heading = "How")]
    seed: Option<String>,
    /// An answer after this is late
    #[arg(long, value_name = "TIME", help_heading = "How")]
    patience: Option<String>,
    /// Player 1 fires every so often [default: 110ms]
    #[arg(long, value_name = "TIME", help_heading = "Arena")]
    fast: Option<String>,
    /// Player 2 fires every so often [default: 200ms]
    #[arg(long, value_name = "TIME", help_heading = "Arena")]
    slow: Option<String>,
    /// How pairs of players arrive: pipelined (servers that accept in order) or strict (any server)
    #[arg(long, value_name = "HOW", help_heading = "Arena")]
    pairing: Option<String>,
    /// Share of the games that ask for a snapshot at every tick, to judge ticks from outside
    #[arg(long, value_name = "SHARE", help_heading = "Arena")]
    snapshots: Option<String>,
    /// A chatter says a line every so often: a range, or one time for equal gaps [default: 500ms..1s]
    #[arg(long, value_name = "TIME..TIME", help_heading = "Chat")]
    gap: Option<String>,
    /// Bytes of a chatter's line, its end included: a range, or one number [default: 15..58]
    #[arg(long, value_name = "N..N", help_heading = "Chat")]
    line: Option<String>,
    /// So many chatters speak, the others only listen [default: all]
    #[arg(long, value_name = "N", help_heading = "Chat")]
    talkers: Option<String>,
    /// The chat's room, channel (without #) or subject [default: lobby]
    #[arg(long, value_name = "NAME", help_heading = "Chat")]
    room: Option<String>,
    /// The chat sends each line back to its sender too
    #[arg(long, help_heading = "Chat")]
    echoes: bool,
    /// A share of the chatters that behaves badly and is judged apart: slow-reader=5%, stalled=10%, half-open=1%,
    /// malformed=1%, reconnect-storm=30s (a tenth of them) or reconnect-storm=20%@30s; repeatable
    #[arg(long, value_name = "KIND=SHARE", help_heading = "Chat")]
    misbehave: Vec<String>,
    #[command(flatten)]
    http: HttpArgs,
    #[command(flatten)]
    sweep: SweepArgs,
    /// Worker threads [default: one per core, more when descriptors ask for it]
    #[arg(long, value_name = "N", help_heading = "How")]
    workers: Option<String>,
    /// Real-time priority for the workers
    #[arg(long, help_heading = "How")]
    realtime: bool,
    /// Busy wait before a planned instant, at most 50us; only where the workers have cores of their own
    #[arg(long, value_name = "TIME", help_heading = "How")]
    spin: Option<String>,
    /// Attempts in a row to open one connection before its bot gives up
    #[arg(long, value_name = "N", help_heading = "How")]
    open_attempts: Option<String>,
    /// Begin with the first load at once; the generator's own latency and its ceiling stay unknown
    #[arg(long, help_heading = "How")]
    no_calibration: bool,
    /// A condition that every rung must meet; see below
    #[arg(long, value_name = "EXPR", help_heading = "Judged by")]
    objective: Vec<String>,
    /// Start the subject with this command, watch it and stop it
    #[arg(long, value_name = "COMMAND", help_heading = "Subject")]
    start: Option<String>,
    /// Watch this process, which runs already
    #[arg(long, value_name = "N", help_heading = "Subject")]
    pid: Option<String>,
    /// Where the subject's ticks are told: log=FILE, client or none
    #[arg(long, value_name = "SOURCE", help_heading = "Subject")]
    ticks: Option<String>,
    /// The subject's tick rate in Hz
    #[arg(long, value_name = "HZ", help_heading = "Subject")]
    tick_rate: Option<String>,
    /// A fresh subject for each rung
    #[arg(long, help_heading = "Subject")]
    restart_per_rung: bool,
    /// Allow a target that is neither loopback nor private
    #[arg(long, value_name = "HOST", help_heading = "Subject")]
    i_may_load: Vec<String>,
    /// Trust this certificate authority (PEM) besides the usual ones
    #[arg(long, value_name = "FILE", help_heading = "Subject")]
    ca: Option<String>,
    /// Accept any certificate
    #[arg(long, help_heading = "Subject")]
    insecure: bool,
    /// The run's name
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    name: Option<String>,
    /// Free text kept with the run
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    note: Option<String>,
    /// Write the results here as JSON (- for standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the results here as one HTML file that opens anywhere
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Show the climb as a page on 127.0.0.1 while it goes on, opened where there is a desktop; on a terminal also
    /// afterwards, until Ctrl-C
    #[arg(long, help_heading = "Output")]
    pub view: bool,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db", help_heading = "Output")]
    pub store: PathBuf,
    /// Options of the built-in server
    #[arg(last = true, value_name = "SERVER OPTIONS", help_heading = None::<&str>)]
    server_options: Vec<String>,
}

/// What HTTP clients ask, and over which connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpArgs {
    /// The method [default: GET, or POST with a body]
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// A header; ${NAME} in it comes from the environment and is never stored; repeatable
    #[arg(long, value_name = "'NAME: VALUE'")]
    header: Vec<String>,
    /// The body of each request
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "body_file")]
    body: Option<String>,
    /// The body of each request, from a file of text
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// A right answer has such a status: 200, 200..299 or a list [default: 200..399]
    #[arg(long, value_name = "STATUS")]
    expect_status: Option<String>,
    /// A right answer holds this text
    #[arg(long, value_name = "TEXT")]
    expect_text: Option<String>,
    /// With a rate: connections opened before the hold; a request that finds all busy waits [default: 256]
    #[arg(long, value_name = "N")]
    connections: Option<String>,
    /// With a rate: more connections are opened, up to this many, when all are busy [default: none]
    #[arg(long, value_name = "N")]
    connections_max: Option<String>,
    /// With requesters: between an answer and the next request [default: 0s]
    #[arg(long, value_name = "TIME")]
    think: Option<String>,
    /// The version of HTTP: 1.1 or 2 [default: 1.1]
    #[arg(long = "http", value_name = "VERSION")]
    version: Option<String>,
    /// HTTP/2 with a rate: requests at once on one connection [default: 100]
    #[arg(long, value_name = "N")]
    streams: Option<String>,
    /// A connection of its own for each request
    #[arg(long)]
    no_keep_alive: bool,
    /// A request without its whole answer after this is given up, and its connection with it [default: 30s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// So many redirects are followed, to the same host [default: 0]
    #[arg(long, value_name = "N")]
    redirects: Option<String>,
    /// An answer's body may be so long; at most 4MiB where it is looked at [default: 64MiB]
    #[arg(long, value_name = "BYTES")]
    body_max: Option<String>,
}

/// The axes of poll-loop's sweep; every load is held once in each combination.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sweep of poll-loop")]
pub struct SweepArgs {
    /// root, pilot, force-field, ihost, objects, object, script, property, or all [default: root,object]
    #[arg(long, value_name = "LIST")]
    services: Option<String>,
    /// background, foreground, or all [default: all]
    #[arg(long, value_name = "LIST")]
    views: Option<String>,
    /// normal, below-normal, or all [default: all in the foreground, normal in the background]
    #[arg(long, value_name = "LIST")]
    priorities: Option<String>,
    /// Objects near: none, moderate, high, or all [default: moderate]
    #[arg(long, value_name = "LIST")]
    localities: Option<String>,
}

impl HttpArgs {
    fn flags(&self) -> anyhow::Result<HttpFlags> {
        let body = match &self.body_file {
            Some(path) => Some(std::fs::read_to_string(path).with_context(|| {
                format!("--body-file {}: it cannot be read as UTF-8 text; check the path", path.display())
            })?),
            None => self.body.clone(),
        };
        Ok(HttpFlags {
            connections: self.connections.clone(),
            connections_max: self.connections_max.clone(),
            think: self.think.clone(),
            version: self.version.clone(),
            streams: self.streams.clone(),
            keep_alive: self.no_keep_alive.then_some(false),
            timeout: self.timeout.clone(),
            redirects: self.redirects.clone(),
            body_max: self.body_max.clone(),
            method: self.method.clone(),
            header: self.header.clone(),
            body,
            expect_status: self.expect_status.clone(),
            expect_text: self.expect_text.clone(),
        })
    }
}

/// Options of `again`.
#[derive(Debug, Args)]
pub struct AgainArgs {
    /// Id or name of a stored run (a name means its newest run)
    pub run: String,
    /// Write the results here as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Another name for the new run
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Free text kept with the new run
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
}

/// Options of `ticks`.
#[derive(Debug, Args)]
pub struct TicksArgs {
    /// Tick logs in the arena's format
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Write the figures here as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Tick rate of the logs in Hz, where they do not say
    #[arg(long, value_name = "HZ", default_value_t = 60.0)]
    pub tick_rate: f64,
}

/// The store only.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
}

/// Options of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Id or name of a stored run (a name means its newest run)
    pub run: String,
    /// Write the results here as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
}

/// Options of `view`.
#[derive(Debug, Args)]
pub struct ViewArgs {
    /// Tick logs to show, followed while they grow
    pub files: Vec<PathBuf>,
    /// The project's store; a climb may make it later
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
    /// Where to listen; loopback only. A port that is taken is passed over for the next free one
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::from(([127, 0, 0, 1], viewer::FIRST_PORT)))]
    pub listen: SocketAddr,
    /// Open the page in the desktop's browser
    #[arg(long)]
    pub open: bool,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Id or name of a stored run (a name means its newest run)
    pub run: String,
    /// Write the report here
    #[arg(short, long, value_name = "FILE.html")]
    pub output: PathBuf,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Id or name of a stored run (a name means its newest run)
    pub run: String,
    /// Write lines of JSON here [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write one CSV file per table into this folder instead
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    pub csv: Option<PathBuf>,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Also say which link leads to this server (a URL)
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
}

/// Options of `selftest`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit: 0 every verdict was right, 1 at least one was wrong, 2 it could not be run, 130 interrupted."
)]
pub struct SelftestArgs {
    /// Only about a dozen cases, which cover every kind of verdict, in under 4 minutes
    #[arg(long)]
    pub quick: bool,
    /// Write the cases here as a JSON array, each with what was expected and what came (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Only cases whose server and fault contain this text, e.g. "arena hang"
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Print the cases and what is expected of each, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Use one core until a signal comes: the busy program that some cases run beside the climb
    #[arg(long, hide = true, exclusive = true)]
    pub hog: bool,
}

impl ClimbArgs {
    /// What the command line says, for `plan::layers`. Errors: the file of the body cannot be read.
    pub fn flags(&self) -> anyhow::Result<Flags> {
        let set = |is_set: bool| is_set.then_some(true);
        Ok(Flags {
            subject: self.subject.clone(),
            server_options: self.server_options.clone(),
            bots: self.bots.clone(),
            fast: self.fast.clone(),
            slow: self.slow.clone(),
            pairing: self.pairing.clone(),
            snapshots: self.snapshots.clone(),
            gap: self.gap.clone(),
            line: self.line.clone(),
            talkers: self.talkers.clone(),
            room: self.room.clone(),
            echoes: set(self.echoes),
            misbehave: self.misbehave.clone(),
            http: self.http.flags()?,
            rungs: self.rungs.clone(),
            rate: self.rate.clone(),
            requesters: self.requesters.clone(),
            services: self.sweep.services.clone(),
            views: self.sweep.views.clone(),
            priorities: self.sweep.priorities.clone(),
            localities: self.sweep.localities.clone(),
            hold: self.hold.clone(),
            ramp: self.ramp.clone(),
            settle: self.settle.clone(),
            restart_per_rung: set(self.restart_per_rung),
            arrivals: self.arrivals.clone(),
            seed: self.seed.clone(),
            patience: self.patience.clone(),
            objective: self.objective.clone(),
            start: self.start.clone(),
            pid: self.pid.clone(),
            ticks: self.ticks.clone(),
            tick_rate: self.tick_rate.clone(),
            i_may_load: self.i_may_load.clone(),
            ca: self.ca.clone(),
            insecure: set(self.insecure),
            name: self.name.clone(),
            note: self.note.clone(),
            workers: self.workers.clone(),
            realtime: set(self.realtime),
            spin: self.spin.clone(),
            open_attempts: self.open_attempts.clone(),
            calibrate: self.no_calibration.then_some(false),
        })
    }
}

fn objectives_help() -> String {
    let mut text = String::from(
        "Objectives: NAME OP VALUE [unit] over the figures of a rung, for example\n  \
         ticks.late_share < 25%   response.p99 < 50ms   errors == 0   subject.cpu_share < 90%\n\nNames:\n",
    );
    for figure in ladder::FIGURES {
        text.push_str(&format!("  {:<28} {}\n", figure.name, figure.meaning));
    }
    text
}
