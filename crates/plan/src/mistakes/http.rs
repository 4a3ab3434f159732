//! Mistakes in HTTP requests, their checks, their variables, or the axes of a sweep.
//!
//! No message repeats the value of a header: it may be a secret, and messages end up in logs.

use thiserror::Error;

use crate::schema::SchemaError;
use crate::units::UnitError;

/// What is wrong with a request, or with a ladder of requests.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RequestConfigError {
    /// a secret in plain text, or no key at all
    #[error(
        "a key is written as ID=${{NAME}}: its id, and the environment variable that holds its secret; plans are stored and \
         printed, so the secret itself is not taken"
    )]
    Key,
    /// cheats that lack nothing
    #[error(
        "cheaters need a service whose updates are signed; give the honest clients a key: --key ID=${{NAME}}"
    )]
    CheatersWithoutKey,
    /// nothing is left to be judged
    #[error("some of the requests must be honest; write a share below 100%")]
    OnlyCheaters,
    /// a limit for connections that serve one request each
    #[error("{setting} has no meaning without keep-alive: each request has a connection of its own")]
    NothingKept {
        /// of the two limits
        setting: &'static str,
    },
    /// a sweep of clients over a sweep of a server
    #[error("{axis} takes one value here: the subject has axes of its own, and these are swept alone")]
    AxisBesideOthers {
        /// with several values
        axis: &'static str,
    },
    /// each combination is held
    #[error("these lists make {cells} combinations, each of which is held; at most {most} are")]
    TooManyCells {
        /// combinations
        cells: usize,
        /// that are taken
        most: usize,
    },
    /// a rate of updates that are never made
    #[error("all requests read, so there are no updates for --updates-rate; lower the share, or use --rate")]
    NoUpdates,
    /// a method with blanks, or one that is no request
    #[error(
        "\"{0}\" is not a method that asks for something; GET, POST, PUT, PATCH, DELETE, HEAD and the like are"
    )]
    Method(String),
    /// a path that would break the request line
    #[error("\"{0}\" is not a path: it begins with /, holds no control character, and nothing ends in #…")]
    Path(String),
    /// no colon, or nothing in front of it
    #[error("a header is written as Name: value")]
    NotAHeader,
    /// a name with letters that no header has
    #[error("\"{0}\" is not the name of a header")]
    HeaderName(String),
    /// control characters, which could begin another header
    #[error("the value of {0} holds a line end or another control character")]
    HeaderValue(String),
    /// a header that the request's own form decides
    #[error("{name} follows from {why}; leave it out")]
    HeaderOfOurs {
        /// of the header
        name: String,
        /// what decides it
        why: &'static str,
    },
    /// a name that the handshake of a WebSocket cannot offer
    #[error("\"{0}\" is not the name of a subprotocol: letters, digits, and signs without blanks and commas")]
    Subprotocol(String),
    /// headers or subprotocols of a handshake, for bots that open no WebSocket
    #[error(
        "this is for the handshake of a WebSocket, and these bots open none to this server; leave it out"
    )]
    OfHandshake,
    /// a secret in plain text
    #[error(
        "{name} holds a secret, and plans are stored and printed; put it into an environment variable and write \
         '{name}: ${{NAME}}' here"
    )]
    Secret {
        /// of the header
        name: String,
    },
    /// `${` without its end, or around something else than a name
    #[error(
        "${{NAME}} in {0} stands for an environment variable: letters, digits and _, and a brace at its end"
    )]
    Environment(String),
    /// not a status, or a range that is none
    #[error("\"{0}\" is not a status or a range of them: 100 to 599, such as 200 or 200..299")]
    Status(String),
    /// RFC 6901
    #[error(
        "\"{0}\" is not a JSON pointer: it begins with / and names the way from the top, such as /items/0/id"
    )]
    Pointer(String),
    /// a name that could not stand in braces
    #[error("\"{0}\" is not a name for a variable: a letter first, then letters, digits, - and _")]
    VariableName(String),
    /// `{user}` that nobody defined
    #[error(
        "{{{name}}} is no variable here; known: {known}. Where no variable is meant, blanks inside the braces say so"
    )]
    UnknownVariable {
        /// without braces
        name: String,
        /// the defined ones, or a word for none
        known: String,
    },
    /// a choice that would break the path in which it is used
    #[error(
        "\"{text}\" of variable {name} does not fit into a path, because of its # or a control character; write # as %23"
    )]
    NotForPath {
        /// of the variable
        name: String,
        /// one of its texts
        text: String,
    },
    /// a choice that would break any request
    #[error("a text of variable {0} holds a line end or another control character")]
    ControlInVariable(String),
    /// neither a range, nor words, nor a counter
    #[error(
        "variable {0} is a range (from, to), a choice (one_of), counter, or what was captured (before); exactly one of them"
    )]
    VariableLaw(String),
    /// an answer's value under the name of something drawn
    #[error("{0} is drawn anew for each request, so nothing can be captured into it; take another name")]
    CapturedDrawn(String),
    /// `before` for something that is never captured
    #[error("{0} has a text before the first capture, but no request captures it")]
    NeverCaptured(String),
    /// two requests of one name would share a line of the table
    #[error("two requests are called \"{0}\"; name them apart")]
    TwoOfAName(String),
    /// the name of the followed redirects' own line
    #[error("\"{0}\" is a line of the table that is taken; take another name")]
    NameTaken(&'static str),
    /// an empty list
    #[error("there is no request to send")]
    NoRequests,
    /// neither `get: /path` nor a path
    #[error(
        "a request says what it asks for once: get: /path (or post, put, patch, delete, head), or method and path"
    )]
    NoPath,
    /// text and JSON at once
    #[error("a request has one body: text (body) or JSON (json)")]
    TwoBodies,
    /// a path in the URL and paths in the requests
    #[error(
        "the requests have paths of their own, so the target's would never be asked; leave \"{0}\" out of the URL"
    )]
    TwoPaths(String),
    /// flags for the one request of a URL, while the scenario has several
    #[error(
        "this is about the one request of a URL, but the scenario has requests of its own; change it there"
    )]
    OfOneRequest,
    /// a name that does not fit into a path
    #[error("{0:?} cannot be a board's name here: letters, digits, - _ and . only")]
    BoardName(String),
    /// a leaderboard is spoken to in three ways
    #[error("there is no protocol \"{0}\"; there are http, websocket and grpc")]
    UnknownProtocol(String),
    /// `--protocol grpc` with ws://
    #[error("a ws:// target is spoken to over WebSocket; for {asked} give its address as http://")]
    ProtocolOfScheme {
        /// as asked
        asked: String,
    },
    /// `--in-flight` over HTTP
    #[error(
        "several requests at once on one connection need --protocol websocket or grpc (or --http 2 with --streams)"
    )]
    InFlightOverHttp,
    /// `--in-flight` with requesters
    #[error("several requests at once on one connection need a rate and kept connections")]
    InFlightWithoutRate,
    /// `--http 2` over WebSocket
    #[error("{setting} is for requests over HTTP; websocket and grpc leave no choice of it")]
    OfHttpAlone {
        /// `http`
        setting: &'static str,
    },
    /// a bulk that does not fit a message
    #[error("a message over WebSocket has at most 64 KiB, which is room for {most} updates")]
    BulkOverWebSocket {
        /// updates
        most: u64,
    },
    /// a body that would have to be kept beyond what is kept
    #[error("a body that is looked at is kept, and at most {most} of it; {asked} is more")]
    KeptBody {
        /// as asked
        asked: String,
        /// what can be kept
        most: String,
    },
    /// two kinds of load
    #[error("a ladder has one kind of load, but {first} and {second} are both there; leave one of them out")]
    TwoLoads {
        /// `rate`
        first: &'static str,
        /// `requesters`
        second: &'static str,
    },
    /// `--op` and `--read-write`
    #[error("{first} and {second} both say what operations do; leave one of them out")]
    TwoOfOne {
        /// `op`
        first: &'static str,
        /// `read_write`
        second: &'static str,
    },
    /// `--think` with a rate
    #[error(
        "{setting} is for requesters, each of whom waits for its answer; with a rate, requests are planned by a clock"
    )]
    OfRequesters {
        /// `think`
        setting: &'static str,
    },
    /// `--connections` with requesters
    #[error("{setting} is for a rate; with requesters, each has one connection")]
    OfRate {
        /// `connections`
        setting: &'static str,
    },
    /// fewer connections at most than at first
    #[error(
        "connections_max ({most}) is below connections ({connections}), which are opened before the hold"
    )]
    FewerAtMost {
        /// opened at first
        connections: u64,
        /// at most
        most: u64,
    },
    /// streams where there is only one
    #[error(
        "streams are several requests at once on one connection: only HTTP/2 has them, with a rate and kept connections"
    )]
    NoStreams,
    /// `1..,5`
    #[error("an open end (1..) goes on from the last load, so nothing comes behind it")]
    NotTheLast,
    /// a ladder that nobody could climb
    #[error("{0} rungs are more than anybody climbs; at most {most} of them", most = crate::units::http::RUNGS_MAX)]
    TooManyRungs(u64),
    /// an axis of another subject
    #[error(
        "{axis} are an axis of poll-loop, the server that has them; {subject} is swept over its loads only"
    )]
    AxisOfPollLoop {
        /// `views`
        axis: &'static str,
        /// as written
        subject: String,
    },
    /// a value that the axis does not have
    #[error("\"{text}\" is unknown; known: {known}, or all")]
    NotInAxis {
        /// as written
        text: String,
        /// its values
        known: String,
    },
    /// a value twice
    #[error("{0} is there twice; each is swept once")]
    TwiceInAxis(String),
    /// an axis, and an option that nails it down
    #[error("the server's options say {option} already, so {axis} cannot be swept; leave one of them out")]
    AxisNailedDown {
        /// `views`
        axis: &'static str,
        /// `--foreground`
        option: &'static str,
    },
    /// a .proto file, or what does not fit it
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// bots that need a schema
    #[error("it does not say which schema the messages have; name its .proto file")]
    NoProto,
    /// frames of no type
    #[error("over WebSocket each frame holds a message of one type; name it with its package")]
    NoMessageType,
    /// the number of a reply without that of a request
    #[error(
        "a reply carries the number of its request, so the request needs one too; name its field (id_field)"
    )]
    ReplyIdAlone,
    /// a setting of frames for calls
    #[error("{setting} is for messages over WebSocket; a call of gRPC names its types and has a status")]
    OfFrames {
        /// `id_field`
        setting: &'static str,
    },
    /// a gRPC request without its call
    #[error(
        "it does not say which call is made; write it in the URL, grpc://HOST:PORT/package.Service/Method, or as call: package.Service/Method"
    )]
    NoCall,
    /// a call where there are only frames
    #[error("over WebSocket a request is a message of the type request_message; leave call out")]
    CallOverWebSocket,
    /// a call where there are only paths
    #[error("call is for protobuf bots (grpc://); over HTTP a request is written as get: /path")]
    CallOverHttp,
    /// a path where there are only messages
    #[error("a message has no method and no path; over gRPC write call: package.Service/Method")]
    PathOfMessage,
    /// a message that cannot be read
    #[error("the message is no JSON: {0}; variables stand in quotes, as in {{\"score\": \"{{points}}\"}}")]
    MessageNotJson(String),
    /// no code of gRPC
    #[error("\"{0}\" is no status of gRPC; write its name or number, such as OK, NOT_FOUND or 5")]
    Code(String),
    /// no number that an error could have
    #[error(
        "\"{0}\" is no status of a message or a range of them: 0 to 65535, such as 7 or 400..499; 200 is none, 0 an error without a number"
    )]
    MessageStatus(String),
    /// what any value may have
    #[error(transparent)]
    Unit(#[from] UnitError),
}
