//! From a recorded session of one real client to the bot that says the same.
//!
//! `Session` is what was seen, in order; a proxy fills it, or a browser's HAR (`from_har`). `write_bot` turns it into
//! TypeScript: what the client repeats becomes a loop of planned instants (`rhythm`), a value that the server said earlier
//! becomes a variable (`trace`), a secret becomes `bot.env.NAME` (`secrets`).
//! Pure: no socket, no clock, no file. Everything recorded is text of others: it enters the bot as an escaped literal only
//! (`literal`), and the value of a secret never enters it.
//! Not here: the proxy and the commands (`stepladder`).

mod actions;
mod answers;
mod content;
mod frames;
mod har;
mod latest;
mod literal;
mod outline;
mod pongs;
mod rhythm;
mod secrets;
mod session;
mod trace;
mod write;

pub use frames::{Frames, framed};
pub use har::{FromHar, HarError, from_har};
pub use session::{Answer, Content, Event, Opening, Request, Session, Side, What};
pub use write::{NothingSaid, Written, write_bot};

#[cfg(test)]
mod tests;
