//! What is wrong with a plan, where, and what to write instead. Reports all mistakes at once, so that they can be fixed
//! in one go.
//!
//! One line per mistake: place, what is wrong, the nearest known word, an example.
//! Not here: external failures (an unreachable server), which are data of a run.

use std::fmt;

use ladder::wording::show_ns;
use ladder::{Allowed, GateError, LoadUnit, ObjectiveError};
use thiserror::Error;

use crate::schema::SchemaError;
use crate::scheme::Scheme;
use crate::target::{Target, TargetError, TargetRefused, as_prefixes};
use crate::units::UnitError;
use crate::units::network::NetworkError;
use crate::vocabulary::{self, BOTS, SUBJECTS, listed};

mod credentials;
mod http;
mod search;
mod stop;

pub use credentials::CredentialsError;
pub(crate) use credentials::instead;
pub use http::RequestConfigError;
pub use search::{FromAboveError, GatePlaceError, OverloadError, RecoveryError, SearchError};
pub use stop::StopError;

/// The place of a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// a word of the command line: `--rungs`, `climb SUBJECT`
    Flag(&'static str),
    /// a line of the scenario file
    Line {
        /// path as its user gave it
        path: String,
        /// from 1; 0 when the mistake is one of the whole file
        line: u64,
        /// `ladder.hold`, or empty when the message names it
        key: String,
    },
    /// in a script or a file that it reads; the message names it
    Script,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Flag(flag) => write!(f, "{flag}:"),
            Place::Line { path, line, key } => {
                write!(f, "{path}:")?;
                if *line > 0 {
                    write!(f, "{line}:")?;
                }
                if key.is_empty() { Ok(()) } else { write!(f, " {key}:") }
            }
            Place::Script => Ok(()),
        }
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConfigError {
    /// a value that cannot be read
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// a request, or a ladder of requests, that makes no sense
    #[error(transparent)]
    Request(#[from] RequestConfigError),
    /// credentials that make no sense, or that server and clients have no use for
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// a schema that cannot be compiled, or what does not fit it
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// the end of a subject under load that makes no sense
    #[error(transparent)]
    Stop(#[from] StopError),
    /// a search that makes no sense
    #[error(transparent)]
    Search(#[from] SearchError),
    /// loads that cannot be held downwards
    #[error(transparent)]
    FromAbove(#[from] FromAboveError),
    /// multiples of a capacity that is not one load of a list
    #[error(transparent)]
    Overload(#[from] OverloadError),
    /// a recovery of a server that is not overloaded, or of bots whose load does not go down
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// a network that cannot be emulated
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// a URL that cannot be read
    #[error(transparent)]
    Target(#[from] TargetError),
    /// a server that must not be loaded
    #[error(transparent)]
    Refused(#[from] TargetRefused),
    /// an objective that cannot be read; the ladder words it, with its own example
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
    /// a gate that cannot be read; the ladder words it, with its own example
    #[error(transparent)]
    Gate(#[from] GateError),
    /// a gate at a load that this climb does not hold
    #[error(transparent)]
    GatePlace(#[from] GatePlaceError),
    /// an objective over a figure that this climb never measures
    #[error("{figure} would never be measured: {why}")]
    NotMeasured {
        /// `subject.cpu_share`
        figure: &'static str,
        /// what is missing, and how to get it
        why: &'static str,
    },
    /// a sign out of place; the parser words it
    #[error("this cannot be read as YAML: {0}")]
    Syntax(String),
    /// YAML, but not a scenario; the parser words it
    #[error("{0}")]
    Unreadable(String),
    /// a text that no plan needs, and that would stand in the store, on the page and in every message
    #[error("a text of {bytes} bytes is too long; at most {most} bytes belong here")]
    TooLong {
        /// as written
        bytes: usize,
        /// of the setting
        most: usize,
    },
    /// a misspelt key
    #[error("unknown key \"{key}\" in {inside}; known: {known}")]
    UnknownKey {
        /// as written
        key: String,
        /// `ladder`, `the scenario`
        inside: String,
        /// its keys
        known: String,
    },
    /// a list where one value belongs, and the like
    #[error("this is {found}, but {wanted} belongs here")]
    Shape {
        /// `a list`
        found: &'static str,
        /// `a mapping`
        wanted: String,
    },
    /// the second key of a mapping that names one thing
    #[error(
        "\"{first}\" stands here already, and a mapping names one; for both write a list: [{{ {first}: … }}, {{ {second}: … }}]"
    )]
    SecondKey {
        /// the key before it
        first: String,
        /// as written
        second: String,
    },
    /// `[1, ~]`
    #[error("a list has an empty entry")]
    EmptyEntry,
    /// an empty file
    #[error("the scenario is empty")]
    EmptyScenario,
    /// the caller did not read the file, so nothing of it counts
    #[error("the scenario file was not read")]
    ScenarioNotRead,
    /// neither command line nor scenario says what to climb
    #[error("it does not say which server to climb")]
    NoSubject,
    /// a script without a server
    #[error("the script needs a server to play; give its URL, for example: --target ws://127.0.0.1:8080")]
    NoTargetOfScript,
    /// no built-in server, no URL, no file
    #[error(
        "unknown subject \"{}\"; built in: {}, or a URL ({}) or a scenario file (*.yaml)",
        .0, listed(SUBJECTS), as_prefixes(Scheme::NAMES.iter().copied())
    )]
    UnknownSubject(String),
    /// host and port, and nothing that says which protocol; what is to be asked is known where sockets are
    #[error("{}", no_protocol_words(.written, .guess.port, .seen))]
    NoProtocol {
        /// `localhost:8080/path`
        written: String,
        /// the same as a target of a guessed scheme
        guess: Box<Target>,
        /// what answered there, the likeliest first; `None`: not checked
        seen: Option<Seen>,
    },
    /// `climb grid`: clients, and no server for them
    #[error(
        "no server for {bots} bots is built in; name one that runs by its URL ({}), or let one be started: \
         stepladder climb {url} --start \"{start_with}\"",
        as_prefixes(over.iter().map(|scheme| scheme.name()))
    )]
    NoServerForBots {
        /// which bots
        bots: &'static str,
        /// what they speak over
        over: Vec<Scheme>,
        /// of a server on this machine
        url: String,
        /// the command that starts it
        start_with: String,
    },
    /// no built-in bots of this name
    #[error("unknown bots \"{}\"; built in: {}", .0, listed(BOTS))]
    UnknownBots(String),
    /// no kind of `--allow` has this name
    #[error("nothing called \"{}\" can be allowed; known: {}", .0, listed(&Allowed::NAMES))]
    UnknownAllowed(String),
    /// `--allow late` for bots that nothing fails for it
    #[error("there is nothing to allow: {bots} bots fail no rung because of \"{kind}\"")]
    NothingToAllow {
        /// what was allowed
        kind: Allowed,
        /// which bots
        bots: &'static str,
    },
    /// a script that cannot be played
    #[error(transparent)]
    Script(script::ScriptMistake),
    /// script bots without a script
    #[error(
        "script bots need a script; climb it (stepladder climb player.ts --target ws://HOST:PORT), or name it with bots.file"
    )]
    NoScript,
    /// a script that measures its bots' lives, and something of its own by the same name
    #[error(
        "the script names an operation \"session\", which is what each life of its bots is measured as; give its own another name"
    )]
    OwnSession,
    /// Books are kept of bots that stay.
    #[error(
        "bot.room keeps books of bots that stay, and with repeat or sessions/s they come and go; leave out one of the two"
    )]
    RoomsOfSessions,
    /// what a script says of its messages in its own code
    #[error(
        "messages of a script are its own, so there is no option for a schema: import protobuf from \"protobufjs\" and give \
         protobuf.parse the text of the .proto file, as examples/sdk/protobuf does"
    )]
    ProtoOption,
    /// an option that is a list where one value belongs, or the reverse
    #[error("{wrong}; for example: {example}")]
    OptionShape {
        /// what is wrong
        wrong: Box<ConfigError>,
        /// as it may stand in the script
        example: String,
    },
    /// what only sessions per second have
    #[error(
        "{what} belongs to sessions/s; write load: \"sessions/s\" in the options of the script, or --load sessions/s"
    )]
    NoSessions {
        /// as its user knows it
        what: &'static str,
    },
    /// each session is a new bot already
    #[error(
        "with sessions/s a new bot begins at each planned instant, so none begins again; leave repeat out, or let the load count bots"
    )]
    SessionsRepeat,
    /// silence could not be told from what is under way
    #[error(
        "a hold of {} is shorter than two round trips of this network, the slowest of which take {}; hold longer \
         (--hold {}s)",
        show_ns(*hold_ns as f64), show_ns(*round_trip_ns as f64), (2 * round_trip_ns).div_ceil(1_000_000_000)
    )]
    HoldOfFewRoundTrips {
        /// the hold, ns
        hold_ns: u64,
        /// ns
        round_trip_ns: u64,
    },
    /// the rate of sessions climbs by itself
    #[error("sessions/s have no ramp: their rate climbs through the first half of --settle; leave it out")]
    RampOfSessions,
    /// `mov.p99 < 50ms`
    #[error(
        "objective \"{text}\": {wrong} is neither a figure nor one of an operation or a recorded value of the script, which are: {known}"
    )]
    UnknownOperation {
        /// as written
        text: String,
        /// the name
        wrong: String,
        /// what its text calls bot.ask, bot.answered, bot.measure and bot.record with
        known: String,
    },
    /// a key of a script's options that means nothing
    #[error("unknown option \"{option}\"; {}known: {known}", nearest.as_ref().map_or(String::new(), |name| format!("did you mean {name}? ")))]
    UnknownOption {
        /// as written
        option: String,
        /// the known one
        nearest: Option<String>,
        /// all of them
        known: String,
    },
    /// `--env 'A B'`
    #[error("\"{0}\" is no name of an environment variable; write it without $, for example TOKEN")]
    NotAVariable(String),
    /// `--fast` for bots that never fire
    #[error("{setting} is for {whose} bots; these are {bots} bots")]
    NotOfTheseBots {
        /// the setting
        setting: &'static str,
        /// whose it is
        whose: &'static str,
        /// what they are
        bots: &'static str,
    },
    /// bots that speak another protocol than the server
    #[error("{bots} bots cannot talk to {server}; leave the bots out, and its own are taken")]
    BotsNotOfServer {
        /// which bots
        bots: &'static str,
        /// which built-in server
        server: String,
    },
    /// bots that speak another protocol than the target's scheme
    #[error("{bots} bots do not speak over {}://; they speak over {}", scheme.name(), as_prefixes(over.iter().map(|scheme| scheme.name())))]
    BotsNotOfScheme {
        /// which bots
        bots: &'static str,
        /// of the target
        scheme: Scheme,
        /// those that they speak over
        over: Vec<Scheme>,
    },
    /// a line that the protocol would cut off
    #[error(
        "a line of {line_bytes} bytes does not fit into IRC: with the sender's name in front and room #{room} at most \
         {most} of a message's 512 bytes are left for it"
    )]
    LineTooLong {
        /// the longest requested
        line_bytes: usize,
        /// without its #
        room: String,
        /// bytes that fit
        most: usize,
    },
    /// a protocol in which nobody hears himself; every own line would count as lost
    #[error("{0}; leave echoes out")]
    NoEchoes(&'static str),
    /// the echo of a built-in server twice, with different values
    #[error("the server echoes lines (--echo is among its options), but the bots are set not to expect that")]
    EchoesTwice,
    /// the same fault twice
    #[error("{0} is there twice; each kind of fault has one share")]
    MisbehavesTwice(&'static str),
    /// more bots misbehave than there are
    #[error("the shares of the crowd that misbehave add up to {0}%, but there is only 100%")]
    MisbehavesMoreThanAll(f64),
    /// an arrival law these bots do not follow; running another one in silence would be a lie beside every number
    #[error("{bots} bots cannot arrive {arrivals}: {why}")]
    ArrivalsNotOfBots {
        /// which bots
        bots: &'static str,
        /// the requested law
        arrivals: String,
        /// what they do instead
        why: &'static str,
    },
    /// the winner of a game checks the server, but only if player 1 fires faster
    #[error("player 1 ({fast}) must fire faster than player 2 ({slow}), or the winner would prove nothing")]
    FastIsNotFaster {
        /// player 1
        fast: String,
        /// player 2
        slow: String,
    },
    /// options behind `--` with nobody to give them to
    #[error(
        "options for the server ({0}) are for built-in servers; put those of your own server into its command"
    )]
    OptionsForForeign(String),
    /// a setting that only makes sense for a server that is not ours
    #[error(
        "{setting} is for servers of your own, but {server} is built in: it is started and watched by itself"
    )]
    NotForBuiltIn {
        /// `--start`
        setting: &'static str,
        /// `arena`
        server: String,
    },
    /// `tcp://a,b` with bots that go to one server
    #[error(
        "the URL names several nodes, but {bots} bots go to one server; chat, http and leaderboard bots go to several"
    )]
    SeveralNodes {
        /// `script`
        bots: &'static str,
    },
    /// both a process and a command to start one
    #[error("the server either runs already (pid) or is started here (start), not both")]
    StartAndPid,
    /// both a process and a control group
    #[error("name the server's process (pid) or its control group (cgroup), not both")]
    PidAndCgroup,
    /// both a control group and a command to start the server
    #[error(
        "a control group (cgroup) is watched of a server that runs already, not of one that is started here (start)"
    )]
    StartAndCgroup,
    /// there is no process to start again
    #[error(
        "only a server that is started here can be started again for each rung; name its command (start)"
    )]
    NothingToRestart,
    /// a certificate without TLS
    #[error(
        "{0} is about certificates, but the target is not over TLS, as wss://, https:// or rediss:// are"
    )]
    CertificateWithoutTls(&'static str),
    /// trusting one authority and everybody
    #[error("ca names whom to trust, insecure trusts everybody; only one of them can be meant")]
    CaAndInsecure,
    /// where would the log be
    #[error("a server of your own writes its log where it likes; name the file")]
    LogWithoutFile,
    /// buckets do not tell a period
    #[error("a metric does not tell how often the server should tick; say it, as with --tick-rate 30")]
    NoTickRate,
    /// neither of two sources may set the measure of the other
    #[error("several sources of ticks are compared at one tick rate; say it, as with --tick-rate 30")]
    NoTickRateForSeveral,
    /// a source does not check itself
    #[error("{0} is read already, and a source cannot check itself; leave one of them out")]
    SameTicks(String),
    /// each is a thread, a socket or a file
    #[error("at most {most} sources of ticks are compared; leave out the others")]
    TooManyTicks {
        /// the limit
        most: usize,
    },
    /// either there are ticks or there are none
    #[error("none says that the server has no ticks; leave it out, or the other sources")]
    TicksAndNone,
    /// nor do the ticks of a server that is loaded too much already
    #[error(
        "a search begins with a load that may be too much, so the ticks do not tell how often the server should tick; say it, \
         as with --tick-rate 30"
    )]
    NoTickRateForSearch,
    /// whoever writes it chooses its form
    #[error("a built-in server writes its ticks as a log; name only where (log=FILE)")]
    OwnLogForm,
    /// ticks of a built-in server that has none
    #[error("{server} has no ticks, so {setting} would say nothing about it; leave it out")]
    ServerWithoutTicks {
        /// `ticks`, `tick_rate`
        setting: &'static str,
        /// `chat`
        server: String,
    },
    /// each follows from the other
    #[error("the tick rate and the tick period say the same; leave one of them out")]
    RateAndPeriod,
    /// the tick rate twice, with different values
    #[error("the tick rate is {here} here and {there} among the server's options")]
    TickRateTwice {
        /// Hz
        here: f64,
        /// Hz
        there: f64,
    },
    /// a figure that nobody would ever tell
    #[error(
        "{what} needs ticks, but nothing tells them: name the tick log, or let clients ask for snapshots"
    )]
    NoTicks {
        /// `ticks.late_share < 25%`, `2Mticks`
        what: String,
    },
    /// games of bots that play none
    #[error("{0} counts games, but these bots play none")]
    NoGames(String),
    /// a rung of half a game
    #[error("rung {load} is not a whole number of {unit}")]
    NotWholeUnits {
        /// as asked
        load: f64,
        /// `games`
        unit: LoadUnit,
    },
    /// something else than a host
    #[error("\"{0}\" is not a host name or address; without scheme, port and path")]
    NotAHost(String),
}

/// What a look at an address found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// it refuses connections, or there is no such name
    Nothing,
    /// it answers in these protocols, the likeliest first; empty: it accepts connections, and none was recognised
    Speaks(Vec<Scheme>),
}

/// Without a look the port is all that tells: whose own it is, then the usual ones.
fn no_protocol_words(written: &str, port: u16, seen: &Option<Seen>) -> String {
    let urls = |schemes: &[Scheme]| {
        let urls: Vec<String> =
            schemes.iter().map(|scheme| format!("{}://{written}", scheme.name())).collect();
        vocabulary::listed_or(&urls.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let is_usual = |scheme: &Scheme| {
        scheme.protocol().default_port == port && (!scheme.is_tls() || port == 443) && !scheme.is_grpc()
    };
    // In reverse: of the schemes that share a port HTTP is the most likely.
    let mut likely: Vec<Scheme> = Scheme::ALL.iter().rev().copied().filter(is_usual).collect();
    likely.extend([Scheme::Http, Scheme::Ws].into_iter().filter(|scheme| !is_usual(scheme)));
    match seen {
        Some(Seen::Speaks(schemes)) if !schemes.is_empty() => {
            format!("\"{written}\" does not say which protocol; what answers there is {}", urls(schemes))
        }
        Some(Seen::Speaks(_)) => format!(
            "\"{written}\" does not say which protocol, and what listens there answers neither HTTP nor WebSocket; write it \
             before the address: {}",
            as_prefixes(Scheme::NAMES.iter().copied())
        ),
        Some(Seen::Nothing) => format!(
            "\"{written}\" does not say which protocol, and nothing listens there; which protocol: {}?",
            urls(&likely)
        ),
        None => {
            format!("\"{written}\" does not say which protocol: {}?", urls(&likely))
        }
    }
}

/// One mistake of the author, with what helps to mend it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    /// where
    pub place: Place,
    /// what
    pub wrong: ConfigError,
    /// the known word it was probably meant to be
    pub nearest: Option<String>,
    /// something right, as it would stand there
    pub example: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Script => write!(f, "{}", self.wrong)?,
            place => write!(f, "{place} {}", self.wrong)?,
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean {nearest}?")?;
        }
        match &self.example {
            Some(example) => write!(f, " (for example: {example})"),
            None => Ok(()),
        }
    }
}

/// Every mistake of a plan, never none; one per line.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{}", .0.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Mistakes(pub Vec<Mistake>);
