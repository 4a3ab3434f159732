//! Scripted bots: which script, what it may access, and the options that it exports.

use std::sync::Arc;

use script::{ENDINGS, Loaded, ScriptMistake};
use serde_json::Value;

use crate::flags::Flags;
use crate::layers::bots::BotsKind;
use crate::layers::reader::{ReadFile, Reader};
use crate::layers::{self, SUBJECT};
use crate::mistakes::{ConfigError, Place};
use crate::scenario::{self, Content, Entry, Node};
use crate::scheme::Transport;
use crate::settings::{Kind, Setting, Shape};
use crate::units;
use crate::vocabulary;
use crate::workloads::http::settings::VERSION;
use crate::workloads::{HttpVersion, SESSION, ScriptBots, ScriptLoad};

/// How a plan selects these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "script",
    speaks: |scheme| match scheme.transport() {
        Transport::WebSocket | Transport::Tcp | Transport::Udp => true,
        Transport::Http => !scheme.is_grpc(),
        Transport::Redis | Transport::Hazelcast => false,
    },
    settings: &[SETTINGS],
    read: |reader, _, _| read(reader).into(),
};

const SCRIPT: Setting = Setting::of("Scripts", &["script"]);

// Besides `VERSION`, which requests over HTTP list.
settings! { SETTINGS;
    /// The script.
    pub(crate) FILE = SCRIPT.key("bots.file", Shape::Text, "player.ts")
        .about("script: the file of TypeScript or JavaScript that plays one bot.");
    ENV = SCRIPT.key("bots.env", Shape::List(&Shape::Text), "[TOKEN]")
        .about("script: environment variables that the script may read as bot.env.NAME; their values are never stored.")
        .flag("--env", "NAME")
        .help("An environment variable that the script may read as bot.env.NAME; its value is never stored")
        .kind(Kind::Repeated).flag_example("TOKEN");
    LOAD = SCRIPT.key("bots.load", Shape::Text, "sessions/s")
        .about("script: what a load counts: bots, or sessions/s, where a new bot begins at each planned instant and ends \
            with its function.")
        .flag("--load", "UNIT")
        .help("What a load of scripts counts: bots, or sessions/s, where a new bot begins at each planned instant and ends \
            with its function (open loop)").default("bots");
    SESSIONS_MAX = SCRIPT.key("bots.sessions_max", Shape::Whole("uint32"), "20000")
        .about("script, sessions/s: so many sessions at once at most; what is planned beyond them is not begun.")
        .flag("--sessions-max", "N")
        .help("With sessions/s: so many at once at most; what is planned beyond them is not begun, and such a rung does \
            not pass").default("10000");
    REPEAT = SCRIPT.key("bots.repeat", Shape::Switch, "true")
        .about("script: a bot whose function ends begins again, until the hold ends; each time is measured as session.");
}

/// What a script may say about its climb, and the key of a scenario that means the same; ticks are two.
const OPTIONS: [(&str, &str); 11] = [
    ("rungs", "ladder.rungs"),
    ("hold", "ladder.hold"),
    ("ramp", "ladder.ramp"),
    ("objectives", "objectives"),
    ("seed", "seed"),
    ("patience", "patience"),
    ("load", "bots.load"),
    ("arrivals", "arrivals"),
    ("sessions_max", "bots.sessions_max"),
    ("repeat", "bots.repeat"),
    ("ticks", "subject.tick_rate"),
];

/// More bots would not fit a machine's memory.
const SESSIONS_AT_ONCE_MOST: u64 = 1_000_000;

/// Whether a word names a script.
pub fn is_script_file(word: &str) -> bool {
    let word = word.trim().to_lowercase();
    !word.contains("://") && ENDINGS.iter().any(|ending| word.ends_with(ending))
}

/// The script that the command line or the file names.
pub(crate) fn named<'a>(flags: &'a Flags, bots: &'a Setting, file: &'a Node) -> Option<&'a str> {
    let in_flags = [&SUBJECT, bots]
        .into_iter()
        .find_map(|setting| flags.text(setting).filter(|word| is_script_file(word)));
    let in_file = || {
        file.at(FILE.key).or_else(|| file.at(bots.key)).map(Node::text).filter(|word| is_script_file(word))
    };
    in_flags.or_else(in_file)
}

/// Where a script is wrong, and what is.
type Refusal = Box<(Place, ConfigError)>;

fn in_script(mistake: ScriptMistake) -> Refusal {
    Box::new((Place::Script, ConfigError::Script(mistake)))
}

/// Reads the script, and lays its options below what the file says. Errors: it cannot be played, or an option is none.
pub(crate) fn load(name: &str, read: ReadFile<'_>, file: &mut Node) -> Result<Loaded, Refusal> {
    let refused = |key: &str, wrong: ConfigError| -> Refusal {
        Box::new((Place::Line { path: name.to_owned(), line: 0, key: key.to_owned() }, wrong))
    };
    let loaded = script::bundle(name.as_ref(), read).and_then(script::load).map_err(in_script)?;
    if let Some(recorded) = loaded.bundle.names.ambiguous() {
        let what = format!(
            "bot.record(\"{recorded}\", …) has the name of an operation, so objectives could not tell them apart; choose another"
        );
        return Err(in_script(ScriptMistake { file: name.to_owned(), at: None, what, line: String::new() }));
    }
    for (option, value) in &loaded.options {
        if option == "proto" {
            return Err(refused("options.proto", ConfigError::ProtoOption));
        }
        let Some((option, key)) = OPTIONS.iter().find(|(known, _)| known == option) else {
            let all: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
            let nearest = vocabulary::nearest(option, all.iter().copied()).map(str::to_owned);
            let (option, known) = (option.clone(), vocabulary::listed(&all));
            return Err(refused("options", ConfigError::UnknownOption { option, nearest, known }));
        };
        if *option == "ticks" {
            let text = value.as_str().map(str::to_owned).unwrap_or_else(|| format!("{value}ms"));
            let ns = units::duration_ns(&text).map_err(|wrong| refused("options.ticks", wrong.into()))?;
            fill_in(file, key, node_of(option, &Value::from(1e9 / ns.max(1) as f64)));
            fill_in(file, "subject.ticks", node_of(option, &Value::from("client")));
            continue;
        }
        // As in the script itself, a number is in milliseconds.
        let is_time = matches!(*option, "hold" | "ramp" | "patience") && value.is_number();
        let node = node_of(option, &if is_time { Value::from(format!("{value}ms")) } else { value.clone() });
        let setting = layers::settings().find(|setting| setting.key == *key);
        if let Some((setting, wrong)) = setting.and_then(|one| Some((one, scenario::misplaced(one, &node)?)))
        {
            let example = setting.line_in_options(option);
            return Err(refused(
                &format!("options.{option}"),
                ConfigError::OptionShape { wrong: Box::new(wrong), example },
            ));
        }
        fill_in(file, key, node);
    }
    fill_in(file, "bots.kind", node_of("", &Value::from("script")));
    fill_in(file, FILE.key, node_of("", &Value::from(name)));
    Ok(loaded)
}

/// Writes a value where the file has none.
fn fill_in(file: &mut Node, key: &str, value: Node) {
    let mut node = file;
    for name in key.split('.') {
        if node.is_nothing() {
            node.content = Content::Map(Vec::new());
        }
        let Content::Map(entries) = &mut node.content else { return };
        let at = entries.iter().position(|entry| entry.name == name).unwrap_or_else(|| {
            entries.push(Entry { name: name.to_owned(), line: 0, node: Node::default() });
            entries.len() - 1
        });
        node = &mut entries[at].node;
    }
    if node.is_nothing() {
        *node = value;
    }
}

/// A value, as one of that option of a script; empty: of none.
fn node_of(option: &'static str, value: &Value) -> Node {
    let content = match value {
        Value::Null => Content::Nothing,
        Value::String(text) => Content::One(text.clone(), value.clone()),
        Value::Bool(_) | Value::Number(_) => Content::One(value.to_string(), value.clone()),
        Value::Array(items) => Content::List(items.iter().map(|item| node_of(option, item)).collect()),
        Value::Object(entries) => {
            let entry = |(name, value): (&String, &Value)| Entry {
                name: name.clone(),
                line: 0,
                node: node_of(option, value),
            };
            Content::Map(entries.iter().map(entry).collect())
        }
    };
    Node { line: 0, content, option }
}

/// What a load counts.
fn read_load(reader: &mut Reader) -> ScriptLoad {
    let repeat = reader.value(&REPEAT, units::boolean).unwrap_or(false);
    let is_open = reader.value_or_default(&LOAD, units::load_of_scripts);
    let most =
        reader.value_or_default(&SESSIONS_MAX, |text| units::count_within(text, 1, SESSIONS_AT_ONCE_MOST));
    if !is_open {
        if let Some(said) = reader.said(&SESSIONS_MAX) {
            reader.refuse_plainly(said.place, ConfigError::NoSessions { what: "a bound on sessions" });
        }
        return ScriptLoad::Bots { repeat };
    }
    if let (Some(said), true) = (reader.said(&REPEAT), repeat) {
        reader.refuse_plainly(said.place, ConfigError::SessionsRepeat);
    }
    ScriptLoad::Sessions { most }
}

fn read(reader: &mut Reader) -> ScriptBots {
    let file = reader.said(&FILE);
    let loaded = reader.script.take();
    if loaded.is_none() && !reader.has_unreadable_script {
        let said = file.clone().unwrap_or_else(|| reader.in_whole_file(&FILE));
        reader.refuse(&said, ConfigError::NoScript);
    }
    let said = reader.all(&ENV).unwrap_or_default();
    let name_of_variable = |text: &str| match text.trim() {
        name if units::http::is_environment_name(name) => Ok(name.to_owned()),
        other => Err(ConfigError::NotAVariable(other.to_owned())),
    };
    let env = reader.read_all(&said, name_of_variable);
    let http = reader.value(&VERSION, str::parse::<HttpVersion>);
    let mut bundle = loaded.map(|loaded| loaded.bundle).unwrap_or_default();
    let load = read_load(reader);
    if load.has_sessions() {
        let operations = &mut Arc::make_mut(&mut bundle).names.operations;
        if operations.iter().any(|op| op == SESSION) {
            let said = reader.in_whole_file(&REPEAT);
            reader.refuse_plainly(said.place, ConfigError::OwnSession);
        }
        operations.push(SESSION.to_owned());
        if bundle.names.calls_room {
            let said = reader.in_whole_file(&REPEAT);
            reader.refuse_plainly(said.place, ConfigError::RoomsOfSessions);
        }
    }
    let has_ticks = bundle.names.calls_tick && reader.file.at("subject.tick_rate").is_some();
    ScriptBots {
        file: file.map(|said| said.text).unwrap_or_default(),
        bundle,
        env,
        env_values: Default::default(),
        row_values: Default::default(),
        http,
        has_ticks,
        load,
    }
}
