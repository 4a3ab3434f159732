//! The chat's bots: how often they speak, how long their lines are, who speaks, who misbehaves.

use crate::layers::bots::{BotsKind, Server};
use crate::layers::reader::Reader;
use crate::mistakes::ConfigError;
use crate::settings::{Kind, Setting, Shape};
use crate::units::{self, chat};
use crate::workloads::{ChatBots, ChatDialect, FaultSpec};

/// How a plan selects these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "chat",
    speaks: |scheme| ChatDialect::ALL.iter().any(|dialect| dialect.scheme() == scheme),
    settings: &[SETTINGS],
    read: |reader, server, _| read(reader, server).into(),
};

const CHAT: Setting = Setting::of("Chat", &["chat"]);

settings! { SETTINGS;
    // The default is the published pace, 0.75 s on average.
    GAP = CHAT.key("bots.gap", Shape::Text, "500ms..1s")
        .about("chat: time between two lines of one bot, uniform in a range.")
        .flag("--gap", "TIME..TIME").help("A chatter says a line every so often: a range, or one time for equal gaps")
        .default("500ms..1s");
    LINE = CHAT.key("bots.line", Shape::NumberOrText, "15..58")
        .about("chat: bytes of a line, its end included, uniform in a range; at least 15.")
        .flag("--line", "N..N").help("Bytes of a chatter's line, its end included: a range, or one number")
        .default("15..58");
    TALKERS = CHAT.key("bots.talkers", Shape::Whole("uint32"), "100")
        .about("chat: how many of the bots speak, the others only listen; all of them otherwise.")
        .flag("--talkers", "N").help("How many clients speak; the others only listen").default("all");
    // The default is the room in which our own server puts everyone.
    ROOM = CHAT.key("bots.room", Shape::Text, "lobby").about("chat: the room, channel (without its #) or subject.")
        .flag("--room", "NAME").help("The chat's room, channel (without #) or subject").default("lobby");
    /// Read with the server, since a built-in one must hear of it.
    pub(crate) ECHOES = CHAT.key("bots.echoes", Shape::Switch, "true")
        .about("chat: the server sends each line back to its sender too.")
        .switch(Kind::Switch, "--echoes").help("The chat sends each line back to its sender too");
    MISBEHAVE = CHAT.key("bots.misbehave", Shape::List(&Shape::Text), "[slow-reader=5%]")
        .about("chat: shares of the crowd that behave badly: slow-reader, stalled, half-open, malformed, reconnect-storm.")
        .flag("--misbehave", "KIND=SHARE")
        .help("A share of the chatters that behaves badly and is judged separately: slow-reader=5%, stalled=10%, \
            half-open=1%, malformed=1%, reconnect-storm=30s (a tenth of them) or reconnect-storm=20%@30s; repeatable")
        .kind(Kind::Repeated).flag_example("slow-reader=5%");
}

/// The chat's bots; after a mistake, bots that let the other settings be read.
fn read(reader: &mut Reader, server: &Server<'_>) -> ChatBots {
    let of_scheme = |dialect: &ChatDialect| Some(dialect.scheme()) == server.scheme;
    let dialect = ChatDialect::ALL.iter().copied().find(of_scheme).unwrap_or(ChatDialect::Lines);
    let (gap_min_ns, gap_max_ns) = reader.value_or_default(&GAP, chat::gap_ns);
    let (line_min_bytes, line_max_bytes) = reader.value_or_default(&LINE, chat::line_bytes);
    let talkers = reader.value(&TALKERS, |text| units::count_within(text, 1, units::RUNG_MAX as u64));
    let room = reader.value_or_default(&ROOM, chat::room);
    if let (Some(said), Some(most)) = (reader.said(&LINE), dialect.line_bytes_most(&room))
        && line_max_bytes > most
    {
        let wrong = ConfigError::LineTooLong { line_bytes: line_max_bytes, room: room.clone(), most };
        reader.refuse_plainly(said.place, wrong);
    }
    if let (Some(place), true) = (&server.echoes_said, server.echoes) {
        match dialect {
            ChatDialect::Lines | ChatDialect::Mqtt => {}
            ChatDialect::Irc => reader.refuse_plainly(
                place.clone(),
                ConfigError::NoEchoes("an IRC server never sends a line back to its sender"),
            ),
            ChatDialect::Nats => reader.refuse_plainly(
                place.clone(),
                ConfigError::NoEchoes("the bots ask a NATS server not to send them their own lines"),
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
        echoes: server.echoes || dialect == ChatDialect::Mqtt,
        misbehave: misbehave(reader),
    }
}

/// The flags' kinds, or the scenario's; each once, and together no more than the crowd.
fn misbehave(reader: &mut Reader) -> Vec<FaultSpec> {
    let mut all: Vec<FaultSpec> = Vec::new();
    let mut sum = 0.0;
    for one in &reader.all(&MISBEHAVE).unwrap_or_default() {
        let Some(read) = reader.read(one, str::parse::<FaultSpec>) else { continue };
        if all.iter().any(|other| other.kind == read.kind) {
            reader.refuse(one, ConfigError::MisbehavesTwice(read.kind.name()));
            continue;
        }
        let before = sum;
        sum += read.share;
        // 70 % and 30 % add up to a little more than one in binary; later entries are not refused a second time.
        if chat::percent(sum) > 100.0 && chat::percent(before) <= 100.0 {
            reader.refuse_plainly(one.place.clone(), ConfigError::MisbehavesMoreThanAll(chat::percent(sum)));
        }
        all.push(read);
    }
    all
}
