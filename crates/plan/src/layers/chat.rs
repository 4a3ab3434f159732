//! The chat's bots: how often they speak, how long their lines are, who speaks, who misbehaves.

use crate::layers::bots::Server;
use crate::layers::reader::{Reader, Said, Setting, setting};
use crate::layers::{Flags, defaults};
use crate::mistakes::{Place, Wrong};
use crate::plan::{ChatBots, Dialect, Misbehaviour};
use crate::scenario::BotsKeys;
use crate::target::Scheme;
use crate::units::{self, chat};

const GAP: Setting = setting("--gap", "bots.gap", "500ms..1s");
const LINE: Setting = setting("--line", "bots.line", "15..58");
const TALKERS: Setting = setting("--talkers", "bots.talkers", "100");
const ROOM: Setting = setting("--room", "bots.room", "lobby");
const MISBEHAVE: Setting = Setting {
    flag: "--misbehave",
    key: "bots.misbehave",
    example: "slow-reader=5%",
    example_in_file: "[slow-reader=5%]",
};
/// Read with the server, since a built-in one must hear of it.
pub(super) const ECHOES: Setting = setting("--echoes", "bots.echoes", "true");

/// The chat's bots; after a mistake, bots that let the other settings be read.
pub(super) fn read(reader: &mut Reader, flags: &Flags, keys: &BotsKeys, server: &Server<'_>) -> ChatBots {
    let dialect = match server.scheme {
        Some(Scheme::Irc) => Dialect::Irc,
        Some(Scheme::Nats) => Dialect::Nats,
        Some(Scheme::Mqtt) => Dialect::Mqtt,
        Some(Scheme::Tcp | Scheme::Ws | Scheme::Wss | Scheme::Http | Scheme::Https) | None => Dialect::Lines,
    };
    let gap = reader.value(GAP, flags.gap.as_deref(), keys.gap.as_ref(), chat::gap_ns);
    let (gap_min_ns, gap_max_ns) = gap.unwrap_or(defaults::GAP_NS);
    let line_said = reader.said(LINE, flags.line.as_deref(), keys.line.as_ref());
    let line = line_said.as_ref().and_then(|said| reader.read(said, chat::line_bytes));
    let (line_min_bytes, line_max_bytes) = line.unwrap_or(defaults::LINE_BYTES);
    let talkers = reader.value(TALKERS, flags.talkers.as_deref(), keys.talkers.as_ref(), |text| {
        units::whole_within(text, 1, units::RUNG_MAX as u64)
    });
    let room = reader.value(ROOM, flags.room.as_deref(), keys.room.as_ref(), chat::room);
    let room = room.unwrap_or_else(|| defaults::ROOM.to_owned());
    if let (Some(said), Some(most)) = (line_said, dialect.line_bytes_most(&room))
        && line_max_bytes > most
    {
        let wrong = Wrong::LineTooLong { line_bytes: line_max_bytes, room: room.clone(), most };
        reader.refuse_plainly(said.place, wrong);
    }
    if let (Some(place), true) = (&server.echoes_said, server.echoes) {
        match dialect {
            Dialect::Lines | Dialect::Mqtt => {}
            Dialect::Irc => reader
                .refuse_plainly(place.clone(), Wrong::NoEchoes("an IRC server sends nobody his own lines")),
            Dialect::Nats => reader.refuse_plainly(
                place.clone(),
                Wrong::NoEchoes("the bots ask a NATS server not to send them their own lines"),
            ),
        }
    }
    ChatBots {
        dialect,
        gap_min_ns,
        gap_max_ns,
        line_min_bytes,
        line_max_bytes,
        talkers,
        room,
        echoes: server.echoes || dialect == Dialect::Mqtt,
        misbehave: misbehave(reader, flags, keys),
    }
}

/// The flags' kinds, or the scenario's; each once, and together no more than the crowd.
fn misbehave(reader: &mut Reader, flags: &Flags, keys: &BotsKeys) -> Vec<Misbehaviour> {
    let mut all: Vec<Misbehaviour> = Vec::new();
    let mut sum = 0.0;
    for one in &misbehave_said(reader, flags, keys) {
        let Some(read) = reader.read(one, str::parse::<Misbehaviour>) else { continue };
        if all.iter().any(|other| other.kind == read.kind) {
            reader.refuse(one, Wrong::MisbehavesTwice(read.kind.name()));
            continue;
        }
        let before = sum;
        sum += read.share;
        // 70 % and 30 % add up to a little more than one in binary; and whoever comes after is told no second time.
        if chat::percent(sum) > 100.0 && chat::percent(before) <= 100.0 {
            reader.refuse_plainly(one.place.clone(), Wrong::MisbehavesMoreThanAll(chat::percent(sum)));
        }
        all.push(read);
    }
    all
}

fn misbehave_said(reader: &Reader, flags: &Flags, keys: &BotsKeys) -> Vec<Said> {
    if flags.misbehave.is_empty() {
        keys.misbehave.iter().flatten().map(|text| reader.in_file(MISBEHAVE, text)).collect()
    } else {
        flags.misbehave.iter().map(|text| reader.in_flag(MISBEHAVE, text)).collect()
    }
}

/// The settings that only these bots have, as they were said; other bots refuse them.
pub(super) fn said(
    reader: &Reader,
    flags: &Flags,
    keys: &BotsKeys,
    server: &Server<'_>,
) -> Vec<(Setting, Place)> {
    let single = [
        (GAP, &flags.gap, &keys.gap),
        (LINE, &flags.line, &keys.line),
        (TALKERS, &flags.talkers, &keys.talkers),
        (ROOM, &flags.room, &keys.room),
    ];
    let single = single.into_iter().filter_map(|(setting, flag, text)| {
        reader.said(setting, flag.as_deref(), text.as_ref()).map(|said| (setting, said.place))
    });
    let echoes = server.echoes_said.iter().map(|place| (ECHOES, place.clone()));
    let misbehave = misbehave_said(reader, flags, keys).into_iter().next();
    let misbehave = misbehave.map(|said| (MISBEHAVE, said.place));
    single.chain(echoes).chain(misbehave).collect()
}
