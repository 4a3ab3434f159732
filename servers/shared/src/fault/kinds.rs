//! The table of all kinds: their names, parameters, the servers that support them, and their effects.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use super::share::Share;

/// What a fault does. See `help` for the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The process stops for good.
    Hang,
    /// The process stops for this long.
    Freeze(Duration),
    /// The process exits with code 7.
    Exit,
    /// Every open connection is reset, once.
    DropAll,
    /// New connections are reset.
    Refuse,
    /// This share of answers is wrong.
    WrongAnswers(Share),
    /// All that is sent is sent this much later.
    LateAnswers(Duration),
    /// This share of messages is lost and counted as if it were not.
    Lose(Share),
    /// This share of messages is sent twice.
    Duplicate(Share),
    /// What another node sent next is thrown away, once.
    LoseLinked,
    /// No tick is run.
    StopTicks,
    /// Nothing is sent.
    StopAnswers,
    /// This many bytes per second are leaked.
    Leak(u64),
    /// Every turn of the loop takes this much longer.
    Collapse(Duration),
    /// This share of ticks is run late.
    LateTicks(Share),
    /// The same, and the tick log calls all of them on time.
    Lie(Share),
    /// This share of ranks is told wrong.
    WrongRank(Share),
    /// This share of updates is acknowledged and not applied.
    LoseUpdates(Share),
    /// This share of increments is applied twice.
    Twice(Share),
    /// This share of changes without a right signature is made.
    AcceptForged(Share),
    /// This share of the values read lacks its end.
    Truncate(Share),
    /// This share of reads finds nothing.
    Miss(Share),
    /// This share of reads finds the value before the last.
    Stale(Share),
    /// This share of answers changes its place with the next one.
    Swap(Share),
    /// This share of operations is refused.
    Refusals(Share),
    /// Nothing expires.
    IgnoreExpiry,
    /// At SIGTERM the process exits at once, with status 0.
    DropAtStop,
    /// SIGTERM is not heeded.
    StayAtStop,
    /// At SIGTERM the end of the log is lost.
    LoseAtStop,
    /// Every request takes CPU.
    CpuBound,
    /// Every request takes CPU of one thread.
    SingleThread,
    /// A lock is held per request, asleep.
    Lock,
    /// Nothing is answered now and then.
    GcLikePause,
    /// Connections are accepted slowly, and few may wait.
    AcceptBacklog,
    /// Connections beyond a number are closed.
    MaxConnections,
    /// The process may have few descriptors.
    FdLimit,
    /// A lock is held per request while a file is synced.
    SlowDisk,
    /// The process is under a CPU quota, and requests need CPU.
    Throttled,
    /// This many bytes per request are leaked.
    LeakPerRequest(u64),
    /// This many bytes per connection that ended are leaked.
    LeakPerConnection(u64),
    /// A descriptor per connection that ended stays open.
    LeakDescriptors,
}

impl Kind {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        let like = std::mem::discriminant(&self);
        let entry = ENTRIES.iter().find(|entry| std::mem::discriminant(&entry.amount.sample()) == like);
        // Every kind has an entry; a test ensures it.
        entry.map_or("?", Entry::name)
    }
}

/// A reference server, as far as faults are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// `serve arena`
    Arena,
    /// `serve chat`
    Chat,
    /// `serve poll-loop`
    PollLoop,
    /// `serve null`
    Null,
    /// `serve oracle`
    Oracle,
    /// `serve leaderboard`
    Leaderboard,
    /// `serve redis`
    Redis,
    /// `serve limited`
    Limited,
}

impl Server {
    pub(super) fn entries(self) -> impl Iterator<Item = &'static Entry> {
        ENTRIES.iter().filter(move |entry| entry.servers.contains(&self))
    }

    pub(super) fn can_plant(self, kind: Kind) -> bool {
        self.entries().any(|entry| entry.name() == kind.name())
    }
}

/// As after `serve`.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Server::Arena => "arena",
            Server::Chat => "chat",
            Server::PollLoop => "poll-loop",
            Server::Null => "null",
            Server::Oracle => "oracle",
            Server::Leaderboard => "leaderboard",
            Server::Redis => "redis",
            Server::Limited => "limited",
        })
    }
}

/// What follows the colon, and the kind that it makes.
#[derive(Clone, Copy)]
pub(super) enum Amount {
    None(Kind),
    Time(fn(Duration) -> Kind),
    Share(fn(Share) -> Kind),
    BytesPerS(fn(u64) -> Kind),
    Bytes(fn(u64) -> Kind),
}

impl Amount {
    /// Some kind of this form, for comparing discriminants.
    fn sample(self) -> Kind {
        match self {
            Amount::None(kind) => kind,
            Amount::Time(make) => make(Duration::ZERO),
            Amount::Share(make) => make(Share::one_in(std::num::NonZeroU64::MIN)),
            Amount::BytesPerS(make) | Amount::Bytes(make) => make(0),
        }
    }
}

pub(super) struct Entry {
    /// A fault that can be given like this; the tests parse it.
    pub(super) example: &'static str,
    pub(super) amount: Amount,
    pub(super) servers: &'static [Server],
    /// What it does, for the help text; `{}` stands for what the server has of `things`.
    does: &'static str,
    /// What it happens to: in the arena, in the chat, in the poll loop, in the key-value store.
    things: [&'static str; 4],
}

impl Entry {
    /// The name on the command line.
    pub(super) fn name(&self) -> &'static str {
        self.example.split(['@', ':']).next().unwrap_or(self.example)
    }

    /// The time must be said: such a fault at the first connection is hardly ever what is wanted.
    pub(super) fn needs_time(&self) -> bool {
        self.example.contains('@')
    }

    fn does_to(&self, server: Server) -> String {
        let thing = match server {
            Server::Arena => self.things[0],
            Server::Chat => self.things[1],
            Server::PollLoop => self.things[2],
            Server::Redis => self.things[3],
            Server::Null | Server::Oracle | Server::Leaderboard | Server::Limited => "",
        };
        self.does.replace("{}", thing)
    }
}

const ALL: &[Server] = &[
    Server::Arena,
    Server::Chat,
    Server::PollLoop,
    Server::Null,
    Server::Oracle,
    Server::Leaderboard,
    Server::Redis,
    Server::Limited,
];
const WITH_CLIENTS: &[Server] =
    &[Server::Arena, Server::Chat, Server::PollLoop, Server::Leaderboard, Server::Redis];
const WITH_SCORES: &[Server] = &[Server::Leaderboard];
const WITH_KEYS: &[Server] = &[Server::Redis];
const WITH_UPDATES: &[Server] = &[Server::Leaderboard, Server::Redis];
const WITH_ANSWERS: &[Server] = &[Server::Arena, Server::Chat, Server::PollLoop, Server::Redis];
const WITH_LIMITS: &[Server] = &[Server::Limited];
const WITH_TICKS: &[Server] = &[Server::Arena, Server::PollLoop];

/// A fault that happens to the server as a whole.
const fn entry(
    example: &'static str,
    amount: Amount,
    servers: &'static [Server],
    does: &'static str,
) -> Entry {
    Entry { example, amount, servers, does, things: [""; 4] }
}

/// One that happens to something of each server with answers.
const fn entry_of(
    example: &'static str,
    amount: Amount,
    does: &'static str,
    things: [&'static str; 4],
) -> Entry {
    Entry { example, amount, servers: WITH_ANSWERS, does, things }
}

#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    entry("hang@12s", Amount::None(Kind::Hang), ALL, "the process stops for good (SIGSTOP)"),
    entry("freeze@8s:1s", Amount::Time(Kind::Freeze), ALL, "the process stops for that long, then goes on"),
    entry("exit@8s", Amount::None(Kind::Exit), ALL, "the process exits at once, with code 7"),
    entry("drop-all@8s", Amount::None(Kind::DropAll), WITH_CLIENTS, "every open connection is reset, once"),
    entry("refuse@0s", Amount::None(Kind::Refuse), ALL,
        "new connections are accepted and reset at once; open ones live on"),
    entry_of("wrong-answers:1%", Amount::Share(Kind::WrongAnswers), "that share of {}",
        ["games is won by the loser", "lines has an altered text", "answers has status 500",
            "values read has other content of the same length"]),
    entry("late-answers:200ms", Amount::Time(Kind::LateAnswers), WITH_CLIENTS,
        "what is sent to clients is sent that much later"),
    entry_of("lose:1e-5", Amount::Share(Kind::Lose),
        "that share of {} is lost, and counted as if it were not", ["shots", "deliveries", "answers", "answers"]),
    entry_of("duplicate:1e-5", Amount::Share(Kind::Duplicate),
        "that share of {} is sent twice", ["games' start messages", "deliveries", "answers", "answers"]),
    entry("lose-linked@8s", Amount::None(Kind::LoseLinked), &[Server::Chat],
        "with --nats, the next message with lines of another node is thrown away, once"),
    entry("stop-ticks@8s", Amount::None(Kind::StopTicks), WITH_TICKS,
        "no tick is run any more; connections are still accepted and read"),
    entry("stop-answers@8s", Amount::None(Kind::StopAnswers), WITH_ANSWERS,
        "nothing is sent to any client any more; everything else goes on"),
    entry("leak:20MB", Amount::BytesPerS(Kind::Leak), ALL, "that much memory is leaked per second"),
    entry_of("collapse@20s:300ms", Amount::Time(Kind::Collapse),
        "every {} takes that much longer", ["turn of a thread", "round of lines", "tick", "turn of the thread"]),
    entry("late-ticks:40%", Amount::Share(Kind::LateTicks), WITH_TICKS,
        "that share of ticks is run late, by 5 ms or more"),
    entry("lie:40%", Amount::Share(Kind::Lie), WITH_TICKS,
        "as late-ticks, but the tick log calls every tick on time"),
    entry("wrong-rank:1%", Amount::Share(Kind::WrongRank), WITH_SCORES,
        "that share of the ranks told is off by one"),
    entry("lose-updates:1%", Amount::Share(Kind::LoseUpdates), WITH_UPDATES,
        "that share of updates is acknowledged and not applied"),
    entry("twice:1%", Amount::Share(Kind::Twice), WITH_SCORES,
        "that share of increments is applied twice"),
    entry("accept-forged:5%", Amount::Share(Kind::AcceptForged), WITH_SCORES,
        "with --keys, that share of changes without a right signature is made all the same"),
    entry("truncate:1%", Amount::Share(Kind::Truncate), WITH_KEYS,
        "that share of the values read lacks its last byte, and says so"),
    entry("miss:1%", Amount::Share(Kind::Miss), WITH_KEYS, "that share of reads finds nothing"),
    entry("stale:1%", Amount::Share(Kind::Stale), WITH_KEYS,
        "that share of reads finds the value that the key had before the last SET"),
    entry("swap:1%", Amount::Share(Kind::Swap), WITH_KEYS,
        "that share of answers changes its place with the next one on the connection"),
    entry("refusals:1%", Amount::Share(Kind::Refusals), WITH_KEYS,
        "that share of reads and updates is not carried out and answered with an error"),
    entry("ignore-expiry", Amount::None(Kind::IgnoreExpiry), WITH_KEYS,
        "times to live are taken and nothing expires"),
    entry("drop-at-stop", Amount::None(Kind::DropAtStop), WITH_SCORES,
        "at SIGTERM the process exits at once with status 0, whatever is under way"),
    entry("stay-at-stop", Amount::None(Kind::StayAtStop), WITH_SCORES, "SIGTERM is not heeded"),
    entry("lose-at-stop", Amount::None(Kind::LoseAtStop), WITH_SCORES,
        "at the end the last quarter of the log (--data) is lost"),
    entry("cpu-bound", Amount::None(Kind::CpuBound), WITH_LIMITS, "every request takes 2 ms of CPU, on any core"),
    entry("single-thread", Amount::None(Kind::SingleThread), WITH_LIMITS,
        "every request takes 1 ms of CPU of one thread"),
    entry("lock", Amount::None(Kind::Lock), WITH_LIMITS, "a lock is held for 5 ms per request, asleep"),
    entry("gc-like-pause", Amount::None(Kind::GcLikePause), WITH_LIMITS,
        "every 2 s, if 100 requests came since, nothing is answered for 300 ms"),
    entry("accept-backlog", Amount::None(Kind::AcceptBacklog), WITH_LIMITS,
        "a connection is accepted every 50 ms at most, and the listen backlog is 2"),
    entry("max-connections", Amount::None(Kind::MaxConnections), WITH_LIMITS,
        "connections beyond 40 are closed at once"),
    entry("fd-limit", Amount::None(Kind::FdLimit), WITH_LIMITS, "the process may have 64 descriptors"),
    entry("slow-disk", Amount::None(Kind::SlowDisk), WITH_LIMITS,
        "a lock is held for 10 ms per request while a file is written and synced"),
    entry("throttled", Amount::None(Kind::Throttled), WITH_LIMITS,
        "the process may use 20 ms of CPU in each 100 ms (a control group of its own), and every request takes 2 ms"),
    entry("leak-per-request:1kB", Amount::Bytes(Kind::LeakPerRequest), WITH_LIMITS,
        "that much memory is leaked per request"),
    entry("leak-per-connection:10kB", Amount::Bytes(Kind::LeakPerConnection), WITH_LIMITS,
        "that much memory is leaked per connection that ended"),
    entry("leak-descriptors", Amount::None(Kind::LeakDescriptors), WITH_LIMITS,
        "a descriptor stays open per connection that ended"),
];

/// How `--fault` is given.
pub const FORM: &str = "KIND[@TIME][:AMOUNT]";

/// The short help of `--fault`; `help` lists what the server can plant.
pub const HELP: &str = "Plant a fault, to test what measures this server; --help lists the kinds";

/// The help text of `--fault` for one server: the syntax, and every kind that the server can plant.
pub fn help(server: Server) -> String {
    let mut text = String::from(
        "Plant a fault, to test what measures this server; may be given several times. \
         TIME counts from the first connection. Kinds:",
    );
    for entry in server.entries() {
        let _ = write!(text, "\n  {}: {}", entry.example, entry.does_to(server));
    }
    text
}

/// All names, for messages.
pub(super) fn names<'e>(entries: impl Iterator<Item = &'e Entry>) -> String {
    entries.map(Entry::name).collect::<Vec<_>>().join(", ")
}
