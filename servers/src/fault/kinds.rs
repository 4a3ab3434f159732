//! The table of all kinds: their names, what they need, which servers can plant them, and what they do.

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
}

impl Kind {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        let like = std::mem::discriminant(&self);
        let entry = ENTRIES.iter().find(|entry| std::mem::discriminant(&entry.amount.sample()) == like);
        // Every kind has an entry; a test sees to it.
        entry.map_or("?", |entry| entry.name)
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
}

impl Server {
    pub(super) fn entries(self) -> impl Iterator<Item = &'static Entry> {
        ENTRIES.iter().filter(move |entry| entry.servers.contains(&self))
    }

    pub(super) fn can_plant(self, kind: Kind) -> bool {
        self.entries().any(|entry| entry.name == kind.name())
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
        })
    }
}

/// What stands behind the colon, and the kind that it makes.
#[derive(Clone, Copy)]
pub(super) enum Amount {
    None(Kind),
    Time(fn(Duration) -> Kind),
    Share(fn(Share) -> Kind),
    BytesPerS(fn(u64) -> Kind),
}

impl Amount {
    /// Some kind of this form, for comparing discriminants.
    fn sample(self) -> Kind {
        match self {
            Amount::None(kind) => kind,
            Amount::Time(make) => make(Duration::ZERO),
            Amount::Share(make) => make(Share::one_in(std::num::NonZeroU64::MIN)),
            Amount::BytesPerS(make) => make(0),
        }
    }
}

pub(super) struct Entry {
    pub(super) name: &'static str,
    /// A fault that can be given like this; the tests parse it.
    pub(super) example: &'static str,
    /// The time must be said: such a fault at the first connection is hardly ever what is wanted.
    pub(super) needs_time: bool,
    pub(super) amount: Amount,
    pub(super) servers: &'static [Server],
    /// What it does, for the help text; `{}` stands for what the server has of `things`.
    does: &'static str,
    /// What it happens to: in the arena, in the chat, in the poll loop.
    things: [&'static str; 3],
}

impl Entry {
    fn does_to(&self, server: Server) -> String {
        let thing = match server {
            Server::Arena => self.things[0],
            Server::Chat => self.things[1],
            Server::PollLoop => self.things[2],
            Server::Null | Server::Oracle => "",
        };
        self.does.replace("{}", thing)
    }
}

/// For what happens to the server as a whole.
const NO_THINGS: [&str; 3] = [""; 3];

const ALL: &[Server] = &[Server::Arena, Server::Chat, Server::PollLoop, Server::Null, Server::Oracle];
const WITH_ANSWERS: &[Server] = &[Server::Arena, Server::Chat, Server::PollLoop];
const WITH_TICKS: &[Server] = &[Server::Arena, Server::PollLoop];

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "hang",
        example: "hang@12s",
        needs_time: true,
        amount: Amount::None(Kind::Hang),
        servers: ALL,
        does: "the process stops for good (SIGSTOP)",
        things: NO_THINGS,
    },
    Entry {
        name: "freeze",
        example: "freeze@8s:1s",
        needs_time: true,
        amount: Amount::Time(Kind::Freeze),
        servers: ALL,
        does: "the process stops for that long, then goes on",
        things: NO_THINGS,
    },
    Entry {
        name: "exit",
        example: "exit@8s",
        needs_time: true,
        amount: Amount::None(Kind::Exit),
        servers: ALL,
        does: "the process exits at once, with code 7",
        things: NO_THINGS,
    },
    Entry {
        name: "drop-all",
        example: "drop-all@8s",
        needs_time: true,
        amount: Amount::None(Kind::DropAll),
        servers: WITH_ANSWERS,
        does: "every open connection is reset, once",
        things: NO_THINGS,
    },
    Entry {
        name: "refuse",
        example: "refuse@0s",
        needs_time: true,
        amount: Amount::None(Kind::Refuse),
        servers: ALL,
        does: "new connections are accepted and reset at once; open ones live on",
        things: NO_THINGS,
    },
    Entry {
        name: "wrong-answers",
        example: "wrong-answers:1%",
        needs_time: false,
        amount: Amount::Share(Kind::WrongAnswers),
        servers: WITH_ANSWERS,
        does: "that share of {}",
        things: ["games is won by the loser", "lines has an altered text", "answers has status 500"],
    },
    Entry {
        name: "late-answers",
        example: "late-answers:200ms",
        needs_time: false,
        amount: Amount::Time(Kind::LateAnswers),
        servers: WITH_ANSWERS,
        does: "what is sent to clients is sent that much later",
        things: NO_THINGS,
    },
    Entry {
        name: "lose",
        example: "lose:1e-5",
        needs_time: false,
        amount: Amount::Share(Kind::Lose),
        servers: WITH_ANSWERS,
        does: "that share of {} is lost, and counted as if it were not",
        things: ["shots", "deliveries", "answers"],
    },
    Entry {
        name: "duplicate",
        example: "duplicate:1e-5",
        needs_time: false,
        amount: Amount::Share(Kind::Duplicate),
        servers: WITH_ANSWERS,
        does: "that share of {} is sent twice",
        things: ["games' start messages", "deliveries", "answers"],
    },
    Entry {
        name: "stop-ticks",
        example: "stop-ticks@8s",
        needs_time: true,
        amount: Amount::None(Kind::StopTicks),
        servers: WITH_TICKS,
        does: "no tick is run any more; connections are still accepted and read",
        things: NO_THINGS,
    },
    Entry {
        name: "stop-answers",
        example: "stop-answers@8s",
        needs_time: true,
        amount: Amount::None(Kind::StopAnswers),
        servers: WITH_ANSWERS,
        does: "nothing is sent to any client any more; everything else goes on",
        things: NO_THINGS,
    },
    Entry {
        name: "leak",
        example: "leak:20MB",
        needs_time: false,
        amount: Amount::BytesPerS(Kind::Leak),
        servers: ALL,
        does: "that much memory is leaked per second",
        things: NO_THINGS,
    },
    Entry {
        name: "collapse",
        example: "collapse@20s:300ms",
        needs_time: true,
        amount: Amount::Time(Kind::Collapse),
        servers: WITH_ANSWERS,
        does: "every {} takes that much longer",
        things: ["turn of a thread", "round of lines", "tick"],
    },
    Entry {
        name: "late-ticks",
        example: "late-ticks:40%",
        needs_time: false,
        amount: Amount::Share(Kind::LateTicks),
        servers: WITH_TICKS,
        does: "that share of ticks is run late, by 5 ms or more",
        things: NO_THINGS,
    },
    Entry {
        name: "lie",
        example: "lie:40%",
        needs_time: false,
        amount: Amount::Share(Kind::Lie),
        servers: WITH_TICKS,
        does: "as late-ticks, but the tick log calls every tick on time",
        things: NO_THINGS,
    },
];

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
    entries.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}
