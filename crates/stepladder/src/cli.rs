//! The command line as clap parses it. A command with its own crate defines its options there (`climb::options`).

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use climb::options::{AgentsArgs, ClimbArgs};
use climb::outputs::{Followed, ResultFiles};
use console::other_runs::Wait;
use servers::Server;
use versus::bisect::BisectArgs;
use versus::duel::DuelArgs;

use crate::bench;

/// Finds out how many clients a real-time server holds, what gives first, and whether the answer can be
/// trusted.
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
    /// Write a bot to begin with, for a server of your own: stepladder new player.ts
    New(scripting::NewArgs),
    /// Play one bot of a script, and print what it says, hears and measures
    Try(Box<scripting::TryArgs>),
    /// Stand between one real client and its server, and write the bot that says the same
    Record(scripting::RecordArgs),
    /// Write the bot of a browser's recording (HAR), with the WebSocket messages in it
    Import(scripting::ImportArgs),
    /// Load two servers in turns, in random order, and say which is faster, by how much, and how sure that is
    Duel(Box<DuelArgs>),
    /// Say which commit of a repository changed a figure, by duels along its history
    Bisect(Box<BisectArgs>),
    /// Repeat a stored run, same plan and seed, and print old against new
    Again(AgainArgs),
    /// Play a share of other machines' climbs: wait at a NATS server for a climb --nats URL --agents N
    Agent(agents::AgentArgs),
    /// Start a NATS server on this machine, to try agents out: until Ctrl-C
    Up(agents::UpArgs),
    /// Run a reference server by itself
    Serve {
        /// which server
        #[command(subcommand)]
        server: Server,
    },
    /// Read tick logs: on time, over, under, the distribution; several side by side
    Ticks(TicksArgs),
    /// List the stored runs
    Runs(RunsArgs),
    /// Show a stored run as it was told at its end
    Show(ShowArgs),
    /// Lay a stored run beside an older one: what differs between them, then old against new
    Compare(CompareArgs),
    /// Look at stored runs and tick logs in a browser, live while a climb goes on
    View(ViewArgs),
    /// Write a stored run, or the history of all, as one HTML file that opens anywhere
    Report(ReportArgs),
    /// Mark an instant in the run that goes on, with what you did: stepladder mark 'deployed 1.4'
    Mark(MarkArgs),
    /// Export a stored run: every row as a line of JSON, a line for each second and event, or CSV files
    Export(ExportArgs),
    /// What this machine can do: descriptors, ports, cores, clock, pacing, own ceiling
    Doctor(DoctorArgs),
    /// Compare client libraries on one server (--target), or implementations of a library in this process
    Bench(Box<bench::Options>),
    /// Climb servers with known faults, and say whether every verdict was right on this machine
    Selftest(SelftestArgs),
    /// Print the completions of a shell, to be sourced or put where it looks for them
    Completions {
        /// which shell
        shell: Shell,
    },
    /// Print a manual page: stepladder man climb | man -l -
    Man {
        /// of this command [default: an overview]
        command: Option<String>,
    },
}

/// Options of `again`.
#[derive(Debug, Args)]
pub struct AgainArgs {
    /// Id or name of a stored run (a name means its newest run)
    pub run: String,
    /// Go on with a run that ended early: a new run takes over the loads that it held whole, and holds the others
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub(crate) results: ResultFiles,
    #[command(flatten)]
    pub(crate) followed: Followed,
    /// Let the stored run start its command, and lead built-in servers to files and addresses
    #[arg(long)]
    pub allow_start: bool,
    /// Allow the stored run a target beyond loopback
    #[arg(long, value_name = "HOST")]
    pub i_may_load: Vec<String>,
    #[command(flatten)]
    pub(crate) wait: Wait,
    #[command(flatten)]
    pub(crate) agents: AgentsArgs,
    /// Behind the climb, hold the last load that held and the first that failed once more with a profiler, and say which functions
    /// of the server took the time (cpu), or the memory that is allocated (alloc): off, cpu, alloc or all [default: as the stored
    /// run]
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "cpu")]
    pub profile: Option<plan::Profile>,
    /// Lines instead of the live view in the terminal, as a pipe gets them: for screen readers and logs
    #[arg(long)]
    pub plain: bool,
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
    /// Tick logs; jsonl=FILE has a JSON object per tick, csv=FILE[:COLUMN[:UNIT]] a row per frame
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Write the figures here as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Tick rate in Hz, where a file does not say (otherwise 60, and of single ticks what their intervals show)
    #[arg(long, value_name = "HZ")]
    pub tick_rate: Option<f64>,
}

/// Options of `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Look through them in the terminal: arrow keys choose a run, Enter opens it load by load, q leaves
    #[arg(long)]
    pub browse: bool,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
}

/// Options of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Id or name of a stored run (a name means its newest run)
    pub run: String,
    #[command(flatten)]
    pub(crate) results: ResultFiles,
    /// Look at it in the terminal, load by load, in the view of a climb; arrow keys choose the load, q leaves
    #[arg(long, conflicts_with_all = ["all", "wide", "json", "junit", "markdown"])]
    pub browse: bool,
    /// Print everything that is known of it: the books of deliveries, what must be known of each load, and what else was found
    #[arg(long)]
    pub all: bool,
    /// The same, with all columns of the table, however wide the terminal is
    #[arg(long)]
    pub wide: bool,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
}

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Id or name of the older run (a name means its newest run)
    pub old: String,
    /// Id or name of the newer run
    pub new: String,
    /// Write the comparison here as JSON (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the comparison here as Markdown, for a comment on a pull request (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
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
    #[arg(required_unless_present = "history")]
    pub run: Option<String>,
    /// Instead of one run the capacity of all: a line per server, plan and machine, and the commits at which it changed. Of the
    /// project's store, or of these stores and those in these folders
    #[arg(long, value_name = "PATH", num_args = 0.., conflicts_with = "run")]
    pub history: Option<Vec<PathBuf>>,
    /// Write the report here
    #[arg(short, long, value_name = "FILE.html")]
    pub output: PathBuf,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db")]
    pub store: PathBuf,
}

/// Options of `mark`.
#[derive(Debug, Args)]
pub struct MarkArgs {
    /// What was done, in a line of at most 200 characters
    pub text: String,
    /// Id or name of the run, where several go on in the store
    pub run: Option<String>,
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
    /// Write HdrHistogram's interval logs (.hlog, one per trial) and percentile tables (.hgrm) into this folder instead
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["output", "csv"])]
    pub hdr: Option<PathBuf>,
    /// Write a line of JSON for each second and each event here instead, as climb --ndjson does (- for standard output)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "csv", "hdr"])]
    pub ndjson: Option<PathBuf>,
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
    #[command(flatten)]
    pub(crate) wait: Wait,
    /// Instead of the machine: servers, jars and runtimes that loads on data grids need, and what to do for the missing
    #[arg(long)]
    pub grid: bool,
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
    /// Also the cases that hold for five minutes: leaks, which shorter holds cannot tell
    #[arg(long)]
    pub long: bool,
    /// Write the cases here as a JSON array, each with what was expected and what came (- for standard
    /// output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Only cases whose server and fault contain this text, e.g. "arena hang"
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    #[command(flatten)]
    pub(crate) wait: Wait,
    /// Print the cases and what is expected of each, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Use one core until a signal comes: the busy program that some cases run beside the climb
    #[arg(long, hide = true, exclusive = true)]
    pub hog: bool,
}

/// What is wrong with an option that the command does not have, with the nearest that it has. `None`: the mistake is another.
pub fn unknown_option(error: &clap::Error) -> Option<anyhow::Error> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(written))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    // clap explains arguments that are not options.
    let option = written.split('=').next().filter(|option| option.starts_with("--"))?;
    let mut command = Cli::command();
    command.build();
    for word in std::env::args_os().skip(1) {
        let Some(below) = command.find_subcommand(&word) else { break };
        command = below.clone();
    }
    let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let known: Vec<String> = visible.filter_map(|one| Some(format!("--{}", one.get_long()?))).collect();
    let nearest = plan::nearest(option, known.iter().map(String::as_str));
    let hint = nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest}?"));
    let all = command.get_bin_name().unwrap_or("stepladder");
    Some(anyhow::anyhow!("unknown option {option}{hint} ({all} --help lists all)"))
}
