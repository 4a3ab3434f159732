//! What a script asks of the engine.
//!
//! Instants are ns since the start of the trial. `planned_ns` is that of the turn in which the script asked: what is measured
//! from it, so that a late turn does not make a request later. Sockets, requests, timers and measured steps have numbers of
//! one row per bot, from 1, and none is used twice.

/// What a script asks of the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// connect a WebSocket
    Open {
        /// the bot's own number for it
        socket: u32,
        /// whole: `ws://host:port/path`
        url: String,
        /// offered, in their order
        protocols: Vec<String>,
        /// further headers of the handshake, cookies among them; values are Latin-1
        headers: Vec<(String, String)>,
    },
    /// connect over TCP
    OpenTcp {
        /// the bot's own number for it
        socket: u32,
        /// name or address; `None`: that of the target
        host: Option<String>,
        /// `None`: that of the target
        port: Option<u16>,
        /// where a message ends
        frames: Frames,
    },
    /// a UDP socket that talks to one address
    OpenUdp {
        /// the bot's own number for it
        socket: u32,
        /// name or address; `None`: that of the target
        host: Option<String>,
        /// `None`: that of the target
        port: Option<u16>,
    },
    /// send a message
    Send {
        /// on which connection
        socket: u32,
        /// text or bytes
        data: Data,
        /// the instant of the turn in which it was sent
        planned_ns: u64,
    },
    /// close a connection; `closed` follows as a turn
    Close {
        /// which
        socket: u32,
        /// of the close frame of a WebSocket: 1000 or 3000 to 4999; `None`: none given
        code: Option<u16>,
        /// of the close frame, at most 123 bytes
        reason: String,
    },
    /// one HTTP request; `responded`, `body_part` and `body_end`, or `request_failed`, follow as turns
    Request {
        /// the bot's own number for it
        request: u32,
        /// `GET`
        method: String,
        /// whole, without a fragment: `http://host:port/path?query`
        url: String,
        /// names as written, values Latin-1. Without `host`, `content-length` and `connection`, unless the script set them
        headers: Vec<(String, String)>,
        /// empty without one
        body: Vec<u8>,
        /// the operation that it counts as; names are not known before the run
        operation: String,
        /// the instant of the turn in which it was sent
        planned_ns: u64,
    },
    /// nothing more of a request is wanted; no turn follows
    Cancel {
        /// which
        request: u32,
    },
    /// a turn at an instant, ns since the start of the trial. May be asked for by another bot of the worker (`bot.group`)
    Timer {
        /// comes back with the turn
        id: u32,
        /// may lie in the past
        at_ns: u64,
    },
    /// what is sent until `Asked` owes a reply
    Ask {
        /// index into the names of operations
        operation: usize,
        /// tells replies apart
        key: Key,
        /// the instant of the turn in which it was asked
        planned_ns: u64,
    },
    /// the end of it; only where nothing was sent that took it
    Asked,
    /// a reply has come
    Answered {
        /// index into the names of operations
        operation: usize,
        /// of the question
        key: Key,
    },
    /// a step begins that is measured as an operation; several of one name may be under way
    MeasureBegin {
        /// index into the names of operations
        operation: usize,
        /// the bot's own number for it
        key: u32,
        /// the instant of the turn in which it began
        planned_ns: u64,
    },
    /// it has ended
    MeasureEnd {
        /// of the beginning
        key: u32,
        /// it did not throw
        ok: bool,
    },
    /// the bot is in
    Ready,
    /// a tick of the server's loop arrived
    Tick {
        /// the server's own time of it, ms, where the script knows one
        time_ms: Option<f64>,
    },
    /// the bot hears what is said in a room from now on
    Join {
        /// its name
        room: String,
    },
    /// the bot hears it no longer
    Leave {
        /// its name
        room: String,
    },
    /// the bot has said something in a room; each other member owes a delivery
    Sent {
        /// its name
        room: String,
        /// number of the message, unique for this bot and room
        seq: u64,
        /// the instant of the turn in which it was said
        planned_ns: u64,
    },
    /// the bot has heard something in a room
    Received {
        /// its name
        room: String,
        /// `bot.id` of the one who said it
        from: u64,
        /// number of the message
        seq: u64,
    },
    /// a check that did not hold; index into the names of checks
    CheckFailed(usize),
    /// `bot.fail`, with its words
    Failed(String),
    /// adds to a counter by its index
    Count(usize, u64),
    /// one value of a distribution of the script's own
    Record {
        /// index into the names of distributions
        name: usize,
        /// from 0 to `RECORDED_MAX`; its unit is the script's
        value: f64,
        /// the instant of the turn in which it was recorded
        planned_ns: u64,
    },
    /// the script threw, with the place in its text
    Threw(String),
    /// a turn that took too long or too much memory was stopped, and `Ended` follows: words, with file and line where they are known
    Stopped(String),
    /// the bot's function has returned
    Ended,
    /// it has thrown, as `Threw` said, or was stopped
    Broke,
    /// what the script printed: level and text
    Log(&'static str, String),
}

/// The largest value that `bot.record` takes: distributions keep whole numbers of thousandths up to the ns of an hour.
pub const RECORDED_MAX: f64 = 3.6e9;

/// Where a message of a byte stream ends. Lengths count the bytes of the message without themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// text; a line end is added to what is sent and taken off what comes
    Lines,
    /// a length of one byte before each
    U8,
    /// two bytes, the high one first
    U16Be,
    /// two bytes, the low one first
    U16Le,
    /// four bytes, the high one first
    U32Be,
    /// four bytes, the low one first
    U32Le,
    /// this byte behind each: it is added to what is sent and taken off what comes
    Until(u8),
    /// what comes in one piece; the server's pieces need not be kept
    Raw,
}

impl Frames {
    /// What a script may write, for its author.
    pub const HELP: &str = "lines, u8, u16be, u16le, u32be, u32le, until 0xNN, raw";

    /// Names as a script writes them.
    const NAMES: [(&str, Frames); 7] = [
        ("lines", Frames::Lines),
        ("u8", Frames::U8),
        ("u16be", Frames::U16Be),
        ("u16le", Frames::U16Le),
        ("u32be", Frames::U32Be),
        ("u32le", Frames::U32Le),
        ("raw", Frames::Raw),
    ];

    /// By its name; `None`: there is no such.
    pub fn named(name: &str) -> Option<Frames> {
        if let Some(byte) = name.strip_prefix("until 0x") {
            let is_byte = byte.len() == 2 && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
            return u8::from_str_radix(byte, 16).ok().filter(|_| is_byte).map(Frames::Until);
        }
        Frames::NAMES.iter().find(|(known, _)| *known == name).map(|(_, frames)| *frames)
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// UTF-8
    Text(String),
    /// anything
    Binary(Vec<u8>),
}

/// What tells replies apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// a whole number
    Number(i64),
    /// anything else, as text
    Text(Box<str>),
}
