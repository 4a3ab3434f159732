//! The protocol of a connection through the `Any` driver.

use crate::tcp::frames::Frames;

/// No datagram over IPv4 can be longer: 65,535 bytes without the headers of IP and UDP.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// RFC 6455
    #[default]
    WebSocket,
    /// a stream of bytes with these frames, plain or over TLS
    Tcp(Frames),
    /// datagrams
    Udp,
    /// requests and their answers
    Http(HttpVersion),
}

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    /// over TLS what the server chooses by ALPN, in clear text 1.1: like a browser
    #[default]
    Any,
    /// 1.1
    One,
    /// 2, in clear by prior knowledge
    Two,
}

impl Protocol {
    /// The longest message that can be sent, bytes; a longer one is refused.
    pub fn message_bytes_max(self) -> usize {
        match self {
            Protocol::Tcp(frames) => frames.message_bytes_max(),
            Protocol::Udp => DATAGRAM_BYTES_MAX,
            Protocol::WebSocket | Protocol::Http(_) => usize::MAX,
        }
    }

    /// The protocol allows the server to close a connection between two requests, and the next request opens another.
    pub fn reopens(self) -> bool {
        matches!(self, Protocol::Http(_))
    }
}
