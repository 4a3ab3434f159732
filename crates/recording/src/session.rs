//! What was seen of one client and its server, in order.

/// A recorded session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// scheme and authority of the server, such as `ws://127.0.0.1:8080`
    pub target: String,
    /// in order of time
    pub events: Vec<Event>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// since the session began
    pub at_ns: u64,
    /// which connection; each HTTP exchange has a number of its own
    pub connection: usize,
    /// what happened
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// the client asked for a connection, which came about
    Opened(Opening),
    /// one message; over TCP one piece until `framed` has found the messages
    Message(Side, Content),
    /// of an HTTP exchange
    Request(Request),
    /// the whole answer to the request of the same number
    Answer(Answer),
    /// the connection ended
    Closed(Side),
}

/// Whose doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// the recorded client
    Client,
    /// its server
    Server,
}

/// How a connection was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    /// the handshake
    WebSocket {
        /// scheme and authority where these are not the target's
        elsewhere: Option<String>,
        /// path and query
        path: String,
        /// in the order of sending
        headers: Vec<(String, String)>,
    },
    /// a connection without one
    Tcp,
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content {
    /// as sent; of text its UTF-8
    pub bytes: Vec<u8>,
    /// a text message of WebSocket, or a line
    pub is_text: bool,
}

impl Content {
    /// A text.
    pub fn text(text: impl Into<String>) -> Content {
        Content { bytes: text.into().into_bytes(), is_text: true }
    }

    /// Bytes.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Content {
        Content { bytes: bytes.into(), is_text: false }
    }
}

/// An HTTP request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// scheme and authority where these are not the target's
    pub elsewhere: Option<String>,
    /// such as `POST`
    pub method: String,
    /// path and query
    pub path: String,
    /// in the order of sending
    pub headers: Vec<(String, String)>,
    /// decoded from its transfer
    pub body: Vec<u8>,
}

/// An HTTP answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// 0: none came
    pub status: u16,
    /// in the order of arrival
    pub headers: Vec<(String, String)>,
    /// decoded from its transfer, and from its encoding where that was asked for
    pub body: Vec<u8>,
}

/// The first header of that name, whatever its case.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}
