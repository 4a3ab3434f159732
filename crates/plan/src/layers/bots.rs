//! Which bots, and their settings.

use crate::known;
use crate::layers::reader::{Reader, Said, Setting, setting};
use crate::layers::{Flags, defaults};
use crate::mistakes::Wrong;
use crate::plan::{ArenaBots, Bots, EchoBots, Pairing};
use crate::scenario::{BotsKeys, NameOr, Scenario};
use crate::units::{self, Duration};

const BOTS: Setting = setting("--bots", "bots", "arena");
const FAST: Setting = setting("--fast", "bots.fast", "110ms");
const SLOW: Setting = setting("--slow", "bots.slow", "200ms");
const PAIRING: Setting = setting("--pairing", "bots.pairing", "strict");
const SNAPSHOTS: Setting = setting("--snapshots", "bots.snapshots", "1%");
const LONGEST_GAME: Setting = setting("--longest-game", "bots.longest_game", "60s");
const RATE: Setting = setting("--rate", "bots.rate", "10");
const PAYLOAD: Setting = setting("--payload", "bots.payload_bytes", "64");

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
/// The largest frame that our servers take.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024;

/// What is known of the server when the bots are chosen.
pub(super) struct Server<'a> {
    /// name of a built-in server
    pub built_in: Option<&'a str>,
    /// somebody said that its ticks are told by the clients
    pub is_seen_by_clients: bool,
}

/// The bots of the plan; after a mistake, bots that let the other settings be read.
pub(super) fn read(reader: &mut Reader, flags: &Flags, file: &Scenario, server: &Server<'_>) -> Bots {
    let (mut name, mut keys) = (None, BotsKeys::default());
    match &file.bots {
        Some(NameOr::Name(text)) => name = Some(text),
        Some(NameOr::Keys(all)) => {
            name = all.kind.as_ref();
            keys = all.clone();
        }
        None => {}
    }
    if let (Some(flag), Some(in_file)) = (&flags.bots, name)
        && flag.trim() != in_file.value.trim()
    {
        // Other bots than the file's: its settings were not meant for them.
        keys = BotsKeys::default();
    }
    let said = reader.said(BOTS, flags.bots.as_deref(), name);
    let kind = said.as_ref().map_or("arena", |said| said.text.trim());
    let bots = match kind {
        "arena" => Bots::Arena(arena(reader, flags, &keys, server)),
        "echo" => Bots::Echo(echo(reader, flags, &keys)),
        other => {
            if let Some(said) = &said {
                unknown(reader, said, other);
            }
            // Read for the mistakes in its settings only.
            Bots::Arena(arena(reader, flags, &keys, server))
        }
    };
    if let (Some(said), Bots::Echo(_), Some(server)) = (&said, &bots, server.built_in) {
        reader.refuse_plainly(
            said.place.clone(),
            Wrong::BotsNotOfServer { bots: "echo", server: server.into() },
        );
    }
    bots
}

fn unknown(reader: &mut Reader, said: &Said, name: &str) {
    if known::BOTS_TO_COME.contains(&name) {
        reader.refuse(said, Wrong::BotsNotBuilt(name.into()));
    } else if [".ts", ".js", ".mts", ".mjs"].iter().any(|ending| name.ends_with(ending)) {
        reader.refuse(said, Wrong::ScriptNotBuilt(name.into()));
    } else {
        let all = known::BOTS.iter().chain(known::BOTS_TO_COME).copied();
        let nearest = known::nearest(name, all).map(Into::into);
        reader.refuse_with(said, Wrong::UnknownBots(name.into()), nearest);
    }
}

fn arena(reader: &mut Reader, flags: &Flags, keys: &BotsKeys, server: &Server<'_>) -> ArenaBots {
    for (setting, text) in [(RATE, &keys.rate), (PAYLOAD, &keys.payload_bytes)] {
        if let Some(text) = text {
            let said = reader.in_file(setting, text);
            refuse_strange(reader, said, setting, "echo", "arena");
        }
    }
    let interval = |text: &str| units::duration_ns_within(text, MS, 60 * S);
    let slow_said = reader.said(SLOW, flags.slow.as_deref(), keys.slow.as_ref());
    let fast_said = reader.said(FAST, flags.fast.as_deref(), keys.fast.as_ref());
    let fast_read = fast_said.as_ref().map(|said| reader.read(said, interval));
    let slow_read = slow_said.as_ref().map(|said| reader.read(said, interval));
    let fast_ns = fast_read.unwrap_or(Some(defaults::FAST_NS));
    let slow_ns = slow_read.unwrap_or(Some(defaults::SLOW_NS));
    if let (Some(fast), Some(slow)) = (fast_ns, slow_ns)
        && fast >= slow
        && let Some(said) = fast_said.or(slow_said)
    {
        let (fast, slow) = (Duration(fast).to_string(), Duration(slow).to_string());
        reader.refuse_plainly(said.place, Wrong::FastIsNotFaster { fast, slow });
    }
    let pairing =
        reader.value(PAIRING, flags.pairing.as_deref(), keys.pairing.as_ref(), str::parse::<Pairing>);
    let snapshots =
        reader.value(SNAPSHOTS, flags.snapshots.as_deref(), keys.snapshots.as_ref(), units::share);
    let longest = reader.value(LONGEST_GAME, None, keys.longest_game.as_ref(), |text| {
        units::duration_ns_within(text, S, 3600 * S)
    });
    let is_built_in = server.built_in.is_some();
    ArenaBots {
        fast_ns: fast_ns.unwrap_or(defaults::FAST_NS),
        slow_ns: slow_ns.unwrap_or(defaults::SLOW_NS),
        // Ours accepts in order; of other servers nobody knows.
        pairing: pairing.unwrap_or(if is_built_in { Pairing::Pipelined } else { Pairing::Strict }),
        // Snapshots are our own extension of the protocol: other servers are asked for them only on request.
        snapshots: snapshots.unwrap_or(if is_built_in || server.is_seen_by_clients {
            defaults::SNAPSHOTS
        } else {
            0.0
        }),
        longest_game_ns: longest.unwrap_or(defaults::LONGEST_GAME_NS),
    }
}

fn echo(reader: &mut Reader, flags: &Flags, keys: &BotsKeys) -> EchoBots {
    for (setting, flag, text) in [
        (FAST, flags.fast.as_deref(), &keys.fast),
        (SLOW, flags.slow.as_deref(), &keys.slow),
        (PAIRING, flags.pairing.as_deref(), &keys.pairing),
        (SNAPSHOTS, flags.snapshots.as_deref(), &keys.snapshots),
        (LONGEST_GAME, None, &keys.longest_game),
    ] {
        if let Some(said) = reader.said(setting, flag, text.as_ref()) {
            refuse_strange(reader, said, setting, "arena", "echo");
        }
    }
    let rate = reader.value(RATE, None, keys.rate.as_ref(), |text| units::number_within(text, 0.0, 1e6));
    let payload = reader.value(PAYLOAD, None, keys.payload_bytes.as_ref(), |text| {
        units::whole_within(text, 1, PAYLOAD_BYTES_MAX)
    });
    EchoBots {
        rate_per_s: rate.unwrap_or(defaults::ECHO_RATE_PER_S),
        // At most 64 KiB by the line above.
        payload_bytes: payload.map_or(defaults::ECHO_PAYLOAD_BYTES, |bytes| bytes as usize),
    }
}

fn refuse_strange(
    reader: &mut Reader,
    said: Said,
    setting: Setting,
    whose: &'static str,
    bots: &'static str,
) {
    let setting = setting.key.rsplit('.').next().unwrap_or(setting.key);
    reader.refuse_plainly(said.place, Wrong::NotOfTheseBots { setting, whose, bots });
}
