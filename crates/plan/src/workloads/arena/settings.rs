//! The arena's bots: how often the two players of a game fire, and how pairs come together.

use crate::layers::bots::{BotsKind, Server};
use crate::layers::reader::Reader;
use crate::mistakes::ConfigError;
use crate::scheme::Transport;
use crate::settings::{Setting, Shape};
use crate::units::{self, Duration};
use crate::workloads::{ArenaBots, Pairing};

/// How a plan selects these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "arena",
    speaks: |scheme| scheme.transport() == Transport::WebSocket,
    settings: &[SETTINGS],
    read: |reader, server, _| read(reader, server).into(),
};

const ARENA: Setting = Setting::of("Arena", &["arena"]);

settings! { SETTINGS;
    FAST = ARENA.key("bots.fast", Shape::Text, "110ms").about("arena: player 1 fires every so often.")
        .flag("--fast", "TIME").help("Player 1 fires every so often").default("110ms");
    SLOW = ARENA.key("bots.slow", Shape::Text, "200ms").about("arena: player 2 fires every so often.")
        .flag("--slow", "TIME").help("Player 2 fires every so often").default("200ms");
    PAIRING = ARENA.key("bots.pairing", Shape::Text, "strict")
        .about("arena: how the two bots of a pair reach the server next to each other: pipelined or strict.")
        .flag("--pairing", "HOW")
        .help("How pairs of players arrive: pipelined (servers that accept in order) or strict (any server)");
    SNAPSHOTS = ARENA.key("bots.snapshots", Shape::NumberOrText, "1%")
        .about("arena: share of the games that ask for a snapshot at every tick.")
        .flag("--snapshots", "SHARE")
        .help("Share of the games that ask for a snapshot at every tick, to judge ticks from outside");
    // The default is five times the length of a game.
    LONGEST_GAME = ARENA.key("bots.longest_game", Shape::Text, "60s")
        .about("arena: a game without an end after this is counted as a missing stop.").default("60s");
}

/// Of the built-in server's games; other servers do not know snapshots.
const SNAPSHOTS_USUAL: f64 = 0.01;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// The arena's bots; after a mistake, bots that let the other settings be read.
fn read(reader: &mut Reader, server: &Server<'_>) -> ArenaBots {
    let interval = |text: &str| units::duration_ns_within(text, MS, 60 * S);
    let said = reader.said(&FAST).or_else(|| reader.said(&SLOW));
    let known = reader.mistakes.len();
    let fast_ns = reader.value_or_default(&FAST, interval);
    let slow_ns = reader.value_or_default(&SLOW, interval);
    let are_read = reader.mistakes.len() == known;
    if let (Some(said), true) = (said, are_read && fast_ns >= slow_ns) {
        let (fast, slow) = (Duration(fast_ns).to_string(), Duration(slow_ns).to_string());
        reader.refuse_plainly(said.place, ConfigError::FastIsNotFaster { fast, slow });
    }
    let pairing = reader.value(&PAIRING, str::parse::<Pairing>);
    let snapshots = reader.value(&SNAPSHOTS, units::share);
    let longest_game_ns =
        reader.value_or_default(&LONGEST_GAME, |text| units::duration_ns_within(text, S, 3600 * S));
    let is_built_in = server.built_in.is_some();
    let snapshots_usual = if is_built_in || server.is_seen_by_clients { SNAPSHOTS_USUAL } else { 0.0 };
    ArenaBots {
        fast_ns,
        slow_ns,
        // Ours accepts in order; other servers may not.
        pairing: pairing.unwrap_or(if is_built_in { Pairing::Pipelined } else { Pairing::Strict }),
        // Snapshots are our own protocol extension: other servers are asked for them only on request.
        snapshots: snapshots.unwrap_or(snapshots_usual),
        longest_game_ns,
    }
}
