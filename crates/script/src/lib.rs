//! Bots in TypeScript: a script and its imports (`bundle`), and the JavaScript engine that plays them (`runtime`).
//!
//! The engine of a run paces, sends and records; a script only says what its client would do. So nothing here sleeps or opens
//! a socket: what a script calls becomes a `Command`, and what happens comes in as a turn of one bot, with the instant of the
//! engine's clock. In virtual time a script plays as in a run. The clocks that are read here only measure what turns cost:
//! CPU time, to stop one that does not end (`runtime/watch`), and how long all of them took.
//! All bots of a worker share one QuickJS runtime and one realm: the code is there once, and a bot costs what it keeps.

mod bundle;
mod command;
mod position;
mod rows;
mod runtime;

pub use bundle::{
    Bundle, ENDINGS, FETCH, Module, ModuleKind, Names, ReadFile, ScriptMistake, Stripped, bundle,
};
pub use command::{Command, Data, Frames, Key, RECORDED_MAX};
pub use rows::{How, Rows};
pub use runtime::{FunctionTime, Loaded, Play, Script, load};

/// What `stepladder new` writes: name of the file, and its text. The first is the bot and takes the name that its user chose.
pub const TEMPLATES: [(&str, &str); 3] = [
    ("player.ts", include_str!("../templates/player.ts")),
    ("stepladder.d.ts", include_str!("../types/stepladder.d.ts")),
    ("tsconfig.json", include_str!("../templates/tsconfig.json")),
];
