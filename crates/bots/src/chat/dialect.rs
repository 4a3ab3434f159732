//! A chat's protocol: how to join, to send a line, and to learn that everything has arrived.
//!
//! A dialect is pure: bytes in, words out. Deliveries are recorded in blocks, because there are millions of them; every
//! other line is rare and becomes a `Word`.

use memchr::memchr;

use super::payload;
use measure::ledger::{Deliveries, ServerReport};
use plan::Login;

/// A bot as its dialect needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// its number in the whole crowd
    pub number: u64,
    /// the room, channel or subject
    pub room: &'a str,
    /// the credentials it presents
    pub login: Option<&'a Login>,
}

/// What a line that is no delivery means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// nothing to us
    Nothing,
    /// from now on the bot is a member
    Joined,
    /// everything before this has come; the server's own books where it tells them
    CaughtUp(Option<ServerReport>),
    /// the bot must answer this
    Answer(Vec<u8>),
    /// the server dropped so many lines for this bot
    Missed(u64),
    /// the server refused something
    Refused,
    /// the server does not let the bot in
    TurnedAway {
        /// what it says, readable
        words: String,
        /// it wants credentials, or others than these
        for_credentials: bool,
    },
    /// a delivery of a text that was not sent
    Strange,
}

/// One way of speaking to a chat.
pub trait Dialect: 'static {
    /// What is kept of a connection between two blocks; begins as its default.
    type OfConnection: Default;

    /// What a new connection says first.
    fn hello(out: &mut Vec<u8>, who: Who<'_>);

    /// Says a text to the room.
    fn say(out: &mut Vec<u8>, room: &str, text: &[u8]);

    /// Requests an answer that comes after everything that the server has for this bot.
    fn barrier(out: &mut Vec<u8>);

    /// What the next line says to a bot. `is_member`: it has joined already.
    fn received(line: &[u8], who: Who<'_>, is_member: bool, _: &mut Self::OfConnection) -> Word;

    /// The first message of a block, without its end, and what follows.
    fn split(block: &[u8]) -> Option<(&[u8], &[u8])> {
        let end = memchr(b'\n', block)?;
        Some((without_return(&block[..end]), &block[end + 1..]))
    }

    /// The text that a line delivers to the bot's room; empty where it delivers none, or one to another room.
    fn text<'l>(line: &'l [u8], room: &str) -> &'l [u8];

    /// Whether a line that delivers a text names this bot as its sender; true in protocols whose lines name no sender.
    fn is_from(_line: &[u8], _sender: u32) -> bool {
        true
    }

    /// Books the deliveries at the front of a block of whole lines. Returns the rest, which begins with another line.
    fn book<'b>(
        mut block: &'b [u8],
        room: &str,
        book: &mut Deliveries<'_>,
        _: &mut Self::OfConnection,
    ) -> &'b [u8] {
        while let Some(end) = memchr(b'\n', block) {
            let line = without_return(&block[..end]);
            let Some(stamp) =
                payload::read(Self::text(line, room)).filter(|stamp| Self::is_from(line, stamp.sender))
            else {
                return block;
            };
            book.received(stamp.sender, stamp.seq, stamp.planned_ns);
            block = &block[end + 1..];
        }
        &[]
    }
}

#[inline]
pub(super) fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
