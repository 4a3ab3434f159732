//! Bots that a script plays: which script, what it may know, and the options that it exports.

use script::{ENDINGS, Loaded, ScriptMistake};
use serde_json::Value;

use crate::flags::Flags;
use crate::known;
use crate::layers::SUBJECT;
use crate::layers::bots::BotsKind;
use crate::layers::reader::{ReadFile, Reader};
use crate::mistakes::{ConfigError, Place};
use crate::scenario::{Content, Entry, Node};
use crate::scheme::Transport;
use crate::settings::{Kind, Setting, Shape};
use crate::units;
use crate::workloads::ScriptBots;

/// How a plan comes to these bots.
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

const SETTINGS: &[&Setting] = &[&FILE, &ENV];
const SCRIPT: Setting = Setting::of("Scripts", &["script"]);

/// The script.
pub(crate) static FILE: Setting = SCRIPT
    .key("bots.file", Shape::Text, "player.ts")
    .about("script: the file of TypeScript or JavaScript that plays one bot.");
static ENV: Setting = SCRIPT
    .key("bots.env", Shape::List(&Shape::Text), "[TOKEN]")
    .about("script: environment variables that the script may read as bot.env.NAME; their values are never stored.")
    .flag("--env", "NAME")
    .help("An environment variable that the script may read as bot.env.NAME; its value is never stored")
    .kind(Kind::Repeated)
    .flag_example("TOKEN");

/// What a script may say about its climb, and the key of a scenario that means the same; ticks are two.
const OPTIONS: [(&str, &str); 7] = [
    ("rungs", "ladder.rungs"),
    ("hold", "ladder.hold"),
    ("ramp", "ladder.ramp"),
    ("objectives", "objectives"),
    ("seed", "seed"),
    ("patience", "patience"),
    ("ticks", "subject.tick_rate"),
];

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
    if let Some(call) = &loaded.bundle.names.unbuilt {
        let what = format!("bot.{call} is not built yet; count with bot.count");
        return Err(in_script(ScriptMistake { file: name.to_owned(), at: None, what, line: String::new() }));
    }
    for (option, value) in &loaded.options {
        let Some((_, key)) = OPTIONS.iter().find(|(known, _)| known == option) else {
            let all: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
            let nearest = known::nearest(option, all.iter().copied()).map(str::to_owned);
            let (option, known) = (option.clone(), known::listed(&all));
            return Err(refused("options", ConfigError::UnknownOption { option, nearest, known }));
        };
        if option == "ticks" {
            let text = value.as_str().map(str::to_owned).unwrap_or_else(|| format!("{value}ms"));
            let ns = units::duration_ns(&text).map_err(|wrong| refused("options.ticks", wrong.into()))?;
            fill_in(file, key, &Value::from(1e9 / ns.max(1) as f64));
            fill_in(file, "subject.ticks", &Value::from("client"));
        } else {
            fill_in(file, key, value);
        }
    }
    fill_in(file, "bots.kind", &Value::from("script"));
    fill_in(file, FILE.key, &Value::from(name));
    Ok(loaded)
}

/// Writes a value where the file has none.
fn fill_in(file: &mut Node, key: &str, value: &Value) {
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
        *node = node_of(value);
    }
}

fn node_of(value: &Value) -> Node {
    let content = match value {
        Value::Null => Content::Nothing,
        Value::String(text) => Content::One(text.clone(), value.clone()),
        Value::Bool(_) | Value::Number(_) => Content::One(value.to_string(), value.clone()),
        Value::Array(items) => Content::List(items.iter().map(node_of).collect()),
        Value::Object(entries) => {
            let entry = |(name, value): (&String, &Value)| Entry {
                name: name.clone(),
                line: 0,
                node: node_of(value),
            };
            Content::Map(entries.iter().map(entry).collect())
        }
    };
    Node { line: 0, content }
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
    let bundle = loaded.map(|loaded| loaded.bundle).unwrap_or_default();
    let has_ticks = bundle.names.calls_tick && reader.file.at("subject.tick_rate").is_some();
    ScriptBots {
        file: file.map(|said| said.text).unwrap_or_default(),
        bundle,
        env,
        env_values: Default::default(),
        row_values: Default::default(),
        has_ticks,
    }
}
