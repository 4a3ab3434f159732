//! Which bots, and their settings.

use crate::known;
use crate::layers::ladder::Loads;
use crate::layers::reader::{Reader, Said, Setting, setting};
use crate::layers::subject::POLL_LOOP;
use crate::layers::{Flags, chat, defaults, http};
use crate::mistakes::{Place, Wrong};
use crate::plan::{ArenaBots, Bots, EchoBots, Pairing};
use crate::scenario::{BotsKeys, NameOr, Scenario, Text};
use crate::target::Scheme;
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
    /// how a server that is not built in is spoken to; neither of both: it is not known
    pub scheme: Option<Scheme>,
    /// path and query of a server that is not built in
    pub path: Option<String>,
    /// somebody said that its ticks are told by the clients
    pub is_seen_by_clients: bool,
    /// it sends each line back to its sender too
    pub echoes: bool,
    /// where somebody said that it does, besides a built-in server's options
    pub echoes_said: Option<Place>,
}

/// The bots of the plan; after a mistake, bots that let the other settings be read.
pub(super) fn read(
    reader: &mut Reader,
    flags: &Flags,
    file: &Scenario,
    server: &Server<'_>,
    loads: Option<&Loads>,
) -> Bots {
    let (name, keys) = in_file(flags, file);
    let said = reader.said(BOTS, flags.bots.as_deref(), name);
    let kind = match &said {
        Some(said) if known::BOTS.contains(&said.text.trim()) => said.text.trim(),
        Some(said) => {
            // Taken for what it is nearest to, so that its settings are read for their own mistakes.
            unknown(reader, said, said.text.trim());
            let all = known::BOTS.iter().copied();
            known::nearest(&said.text, all).unwrap_or_else(|| own_bots(reader, flags, &keys, server))
        }
        None => own_bots(reader, flags, &keys, server),
    };
    let bots = match kind {
        "echo" => Bots::Echo(echo(reader, &keys)),
        "chat" => Bots::Chat(chat::read(reader, flags, &keys, server)),
        "http" => Bots::Http(http::read(reader, flags, &keys, server, loads)),
        _ => Bots::Arena(arena(reader, flags, &keys, server)),
    };
    match &bots {
        Bots::Arena(_) => refuse_echo_settings(reader, &keys, "arena"),
        Bots::Echo(_) => refuse_arena_settings(reader, flags, &keys, "echo"),
        Bots::Http(_) => {
            refuse_arena_settings(reader, flags, &keys, "http");
            refuse_echo_settings(reader, &keys, "http");
        }
        Bots::Chat(_) => {
            refuse_arena_settings(reader, flags, &keys, "chat");
            refuse_echo_settings(reader, &keys, "chat");
        }
    }
    if !matches!(bots, Bots::Chat(_)) {
        for (setting, place) in chat::said(reader, flags, &keys, server) {
            refuse_strange(reader, place, setting, "chat", super::name_of(&bots));
        }
    }
    if !matches!(bots, Bots::Http(_)) {
        for (setting, place) in http::said(reader, flags, &keys) {
            refuse_strange(reader, place, setting, "http", super::name_of(&bots));
        }
    }
    if let Some(said) = said.filter(|said| known::BOTS.contains(&said.text.trim())) {
        refuse_deaf(reader, &said, super::name_of(&bots), server);
    }
    bots
}

/// Which bots the scenario names, and its settings as far as they are meant for those of the plan.
pub(super) fn in_file<'a>(flags: &Flags, file: &'a Scenario) -> (Option<&'a Text>, BotsKeys) {
    let (name, keys) = match &file.bots {
        Some(NameOr::Name(text)) => (Some(text), BotsKeys::default()),
        Some(NameOr::Keys(all)) => (all.kind.as_ref(), all.clone()),
        None => (None, BotsKeys::default()),
    };
    match (&flags.bots, name) {
        // Other bots than the file's: its settings were not meant for them.
        (Some(flag), Some(written)) if flag.trim() != written.value.trim() => (name, BotsKeys::default()),
        _ => (name, keys),
    }
}

/// The bots that a server is loaded with when nobody names any.
fn own_bots(reader: &Reader, flags: &Flags, keys: &BotsKeys, server: &Server<'_>) -> &'static str {
    match (server.built_in, server.scheme) {
        (Some("chat"), _) | (_, Some(Scheme::Tcp | Scheme::Irc | Scheme::Nats | Scheme::Mqtt)) => "chat",
        (Some(POLL_LOOP), _) | (_, Some(Scheme::Http | Scheme::Https)) => "http",
        // The server was refused; whose settings are there says whose bots were meant.
        (None, None) if !chat::said(reader, flags, keys, server).is_empty() => "chat",
        (None, None) if !http::said(reader, flags, keys).is_empty() => "http",
        _ => "arena",
    }
}

/// Bots and server that could not talk to each other.
fn refuse_deaf(reader: &mut Reader, said: &Said, bots: &'static str, server: &Server<'_>) {
    let wrong = match (server.built_in, server.scheme) {
        (Some(POLL_LOOP), _) if bots == "http" => return,
        (Some(server), _) if server != bots => Wrong::BotsNotOfServer { bots, server: server.into() },
        (_, Some(scheme)) => {
            use Scheme::{Http, Https, Irc, Mqtt, Nats, Tcp, Ws, Wss};
            let (is_heard, over) = match bots {
                "chat" => (matches!(scheme, Tcp | Irc | Nats | Mqtt), "tcp://, irc://, nats:// or mqtt://"),
                "echo" => (matches!(scheme, Ws | Wss | Tcp), "ws://, wss:// or tcp://"),
                "http" => (matches!(scheme, Http | Https), "http:// or https://"),
                _ => (matches!(scheme, Ws | Wss), "ws:// or wss://"),
            };
            if is_heard {
                return;
            }
            Wrong::BotsNotOfScheme { bots, scheme, over }
        }
        _ => return,
    };
    reader.refuse_plainly(said.place.clone(), wrong);
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

fn echo(reader: &mut Reader, keys: &BotsKeys) -> EchoBots {
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

fn refuse_arena_settings(reader: &mut Reader, flags: &Flags, keys: &BotsKeys, bots: &'static str) {
    for (setting, flag, text) in [
        (FAST, flags.fast.as_deref(), &keys.fast),
        (SLOW, flags.slow.as_deref(), &keys.slow),
        (PAIRING, flags.pairing.as_deref(), &keys.pairing),
        (SNAPSHOTS, flags.snapshots.as_deref(), &keys.snapshots),
        (LONGEST_GAME, None, &keys.longest_game),
    ] {
        if let Some(said) = reader.said(setting, flag, text.as_ref()) {
            refuse_strange(reader, said.place, setting, "arena", bots);
        }
    }
}

fn refuse_echo_settings(reader: &mut Reader, keys: &BotsKeys, bots: &'static str) {
    for (setting, text) in [(RATE, &keys.rate), (PAYLOAD, &keys.payload_bytes)] {
        if let Some(text) = text {
            let said = reader.in_file(setting, text);
            refuse_strange(reader, said.place, setting, "echo", bots);
        }
    }
}

fn refuse_strange(
    reader: &mut Reader,
    place: Place,
    setting: Setting,
    whose: &'static str,
    bots: &'static str,
) {
    let setting = setting.key.rsplit('.').next().unwrap_or(setting.key);
    reader.refuse_plainly(place, Wrong::NotOfTheseBots { setting, whose, bots });
}
