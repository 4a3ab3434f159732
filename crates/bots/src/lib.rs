//! The simulated clients, one file per workload, and the catalog that starts them.
//!
//! Each workload is all bots of one worker behind one value (`engine::Bots`). It runs in virtual time as it does on
//! sockets, because it knows neither threads nor clocks.

mod arena;
pub mod catalog;
pub mod chat;
pub mod disconnects;
pub mod echo;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod grid;
pub mod http;
pub mod leaderboard;
mod null;
pub mod protobuf;
pub mod script;
mod stream;

pub use arena::Arena;
pub use chat::Chat;
pub use echo::Echo;
pub use grid::Operations;
pub use null::NullBot;
pub use script::Scripts;
