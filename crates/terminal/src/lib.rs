//! The view of a climb in a terminal, live or stored: a state, the frame that shows it, and the keys.
//!
//! `State` takes what was committed, second by second, and what was judged; `frame` turns it into lines of any size. Both are
//! pure: no clock, no IO. `Screen` is the thin part: it owns the terminal, draws from a thread of its own, and reads keys.
//! `browse` shows stored runs in the same frame, load by load, on the thread that calls it.
//! Invariant: however the program ends, the terminal is as it was before, except after SIGKILL. No signal handler is
//! installed: the size is asked for at each frame, and Ctrl-C stays a signal.
//! Not here: what a rung is worth (`ladder`), and whether a view is shown at all (`climb`).

mod browse;
mod frame;
mod screen;
mod seconds;
mod state;

pub use browse::{Stored, browse};
pub use frame::{Look, draw};
pub use screen::{Control, Screen};
pub use state::{Place, State, TrialNow};
