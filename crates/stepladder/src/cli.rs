//! The command line as clap reads it. Values stay raw text: `plan` reads them, so that a flag and the same key in a
//! scenario file are refused in the same words.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use plan::layers::Flags;

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
    /// Export a stored run: every row as a line of JSON, or CSV files
    Export(ExportArgs),
    /// What this machine can do: descriptors, ports, cores, clock, pacing, own ceiling
    Doctor(DoctorArgs),
}

/// Options of `climb`.
#[derive(Debug, Args)]
#[command(
    override_usage = "stepladder climb SUBJECT|scenario.yaml|URL [OPTIONS] [-- OPTIONS OF THE BUILT-IN SERVER]"
)]
#[command(after_long_help = objectives_help())]
pub struct ClimbArgs {
    /// A built-in server (arena, chat), a scenario file (*.yaml) or a URL (ws://HOST:PORT, or wss, tcp, irc, nats)
    subject: Option<String>,
    /// The simulated clients: arena, chat or echo [default: those of the subject]
    #[arg(long, value_name = "NAME", help_heading = "What")]
    bots: Option<String>,
    /// Loads to hold, e.g. 500,1000,2000
    #[arg(long, value_name = "LIST", help_heading = "What", allow_hyphen_values = true)]
    rungs: Option<String>,
    /// When a rung has seen enough: 60s, 2Mticks or 1000games
    #[arg(long, value_name = "ENOUGH", help_heading = "How")]
    hold: Option<String>,
    /// How the bots arrive: 2ms (one unit each), 5000/s or 0s
    #[arg(long, value_name = "PACE", help_heading = "How")]
    ramp: Option<String>,
    /// Between the ramp and the hold
    #[arg(long, value_name = "TIME", help_heading = "How")]
    settle: Option<String>,
    /// The law of arrivals: even, poisson (chat, and echo with a rate) or closed (echo without one)
    #[arg(long, value_name = "LAW", help_heading = "How")]
    arrivals: Option<String>,
    /// Everything random comes from it
    #[arg(long, value_name = "N", help_heading = "How")]
    seed: Option<String>,
    /// An answer after this is late
    #[arg(long, value_name = "TIME", help_heading = "How")]
    patience: Option<String>,
    /// Player 1 of the arena fires every so often
    #[arg(long, value_name = "TIME", help_heading = "How")]
    fast: Option<String>,
    /// Player 2 of the arena fires every so often
    #[arg(long, value_name = "TIME", help_heading = "How")]
    slow: Option<String>,
    /// How pairs of players arrive: pipelined (servers that accept in order) or strict (any server)
    #[arg(long, value_name = "HOW", help_heading = "How")]
    pairing: Option<String>,
    /// Share of the games that ask for a snapshot at every tick, to judge ticks from outside
    #[arg(long, value_name = "SHARE", help_heading = "How")]
    snapshots: Option<String>,
    /// A chatter says a line every so often: a range, or one time for equal gaps [default: 500ms..1s]
    #[arg(long, value_name = "TIME..TIME", help_heading = "How")]
    gap: Option<String>,
    /// Bytes of a chatter's line, its end included: a range, or one number [default: 15..58]
    #[arg(long, value_name = "N..N", help_heading = "How")]
    line: Option<String>,
    /// So many chatters speak, the others only listen [default: all]
    #[arg(long, value_name = "N", help_heading = "How")]
    talkers: Option<String>,
    /// The chat's room, channel (without #) or subject [default: lobby]
    #[arg(long, value_name = "NAME", help_heading = "How")]
    room: Option<String>,
    /// The chat sends each line back to its sender too
    #[arg(long, help_heading = "How")]
    echoes: bool,
    /// A share of the chatters that behaves badly and is judged apart: slow-reader=5%, stalled=10%, half-open=1%,
    /// malformed=1%, reconnect-storm=30s (a tenth of them) or reconnect-storm=20%@30s; repeatable
    #[arg(long, value_name = "KIND=SHARE", help_heading = "How")]
    misbehave: Vec<String>,
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
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db", help_heading = "Output")]
    pub store: PathBuf,
    /// Options of the built-in server
    #[arg(last = true, value_name = "SERVER OPTIONS")]
    server_options: Vec<String>,
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
}

impl ClimbArgs {
    /// What the command line says, for `plan::layers`.
    pub fn flags(&self) -> Flags {
        let set = |is_set: bool| is_set.then_some(true);
        Flags {
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
            rungs: self.rungs.clone(),
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
        }
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
