//! The scenario file: its keys, its published schema, and what is refused with which line.
//!
//! The types below are read for their values *and* published as a JSON Schema; the same schema then finds every unknown
//! key and every misplaced list in one pass, so the file, the editor's help and the refusals cannot disagree.
//! All values stay text with a line here; `layers` gives them meaning together with the flags.
//! Not here: reading the file. Nothing in a scenario is secret, since plans are stored and printed; headers name secrets
//! by their environment variable.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_saphyr::Spanned;

use crate::mistakes::{Mistake, Place, Wrong};

mod http;
mod shape;

pub use http::{CheckKeys, OneOrMore, RequestKeys, VariableKeys, Variables};

/// A scenario file, read by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioText {
    /// as its user named it; stands in front of every mistake
    pub path: String,
    /// what it holds
    pub text: String,
}

/// One value as its author wrote it, with its line.
pub type Text = Spanned<String>;

/// A load test of one server: who is tested, by whom, how hard, and what must hold.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    title = "Stepladder scenario",
    example = json!({"subject": {"target": "ws://127.0.0.1:42069"}})
)]
pub struct Scenario {
    /// The server under test.
    #[schemars(required, with = "NameOr<SubjectKeys>", example = json!({"target": "ws://127.0.0.1:42069"}))]
    pub subject: Option<NameOr<SubjectKeys>>,
    /// The simulated clients: a built-in name, or a name with settings.
    #[schemars(with = "Option<NameOr<BotsKeys>>", example = &"arena")]
    pub bots: Option<NameOr<BotsKeys>>,
    /// Which loads, and how each is held.
    #[schemars(example = json!({"rungs": [500, 1000, 2000], "hold": "60s"}))]
    pub ladder: Option<LadderKeys>,
    /// What a rung must meet; the built-in objectives of the subject otherwise.
    #[schemars(with = "Option<Vec<String>>", example = json!(["ticks.late_share < 25%"]))]
    pub objectives: Option<Vec<Text>>,
    /// The law of arrivals: poisson, even, burst or closed.
    #[schemars(with = "Option<String>", example = &"even")]
    pub arrivals: Option<Text>,
    /// An answer after this is late.
    #[schemars(with = "Option<String>", example = &"1s")]
    pub patience: Option<Text>,
    /// Everything random comes from it; a new one each time otherwise.
    #[schemars(with = "Option<u64>", example = 42)]
    pub seed: Option<Text>,
    /// How the load is made.
    #[schemars(example = json!({"workers": 2}))]
    pub generator: Option<GeneratorKeys>,
    /// The name of the run, to find it again.
    #[schemars(with = "Option<String>", example = &"master")]
    pub name: Option<Text>,
    /// Free text kept with the run.
    #[schemars(with = "Option<String>", example = &"after the new allocator")]
    pub note: Option<Text>,
    /// Hosts outside loopback and private ranges that are yours to load.
    #[schemars(with = "Option<Vec<String>>", example = json!(["game.example.org"]))]
    pub i_may_load: Option<Vec<Text>>,
    /// Certificates, for wss:// and https:// targets.
    #[schemars(example = json!({"ca": "ca.pem"}))]
    pub tls: Option<TlsKeys>,
}

/// The server under test.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SubjectKeys {
    /// A URL, or the name of a built-in server.
    #[schemars(required, with = "String", example = &"ws://127.0.0.1:42069")]
    pub target: Option<Text>,
    /// The command that starts the server; it is watched, and stopped at the end.
    #[schemars(with = "Option<String>", example = &"node server.js")]
    pub start: Option<Text>,
    /// The process of a server that runs already.
    #[schemars(with = "Option<u32>", example = 4711)]
    pub pid: Option<Text>,
    /// Where its ticks are told: client, none, or a log.
    #[schemars(with = "Option<NameOr<TicksKeys>>", example = json!({"log": "game.log"}))]
    pub ticks: Option<NameOr<TicksKeys>>,
    /// Ticks per second.
    #[schemars(with = "Option<f64>", example = 60)]
    pub tick_rate: Option<Text>,
    /// Options for a built-in server.
    #[schemars(with = "Option<Vec<NumberOrText>>", example = json!(["--tick-rate", 30]))]
    pub options: Option<Vec<Text>>,
}

/// Where ticks are told.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TicksKeys {
    /// A tick log in the arena's format.
    #[schemars(with = "Option<String>", example = &"game.log")]
    pub log: Option<Text>,
    /// Timings over UDP; not built yet.
    #[schemars(with = "Option<String>", example = &"127.0.0.1:8125")]
    pub statsd: Option<Text>,
    /// A histogram over HTTP; not built yet.
    #[schemars(with = "Option<String>", example = &"http://127.0.0.1:9100/metrics")]
    pub openmetrics: Option<Text>,
}

/// Bots with settings.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BotsKeys {
    /// Which bots: arena, echo, chat or http; those of the subject otherwise.
    #[schemars(with = "Option<String>", example = &"arena")]
    pub kind: Option<Text>,
    /// arena: player 1 fires every so often.
    #[schemars(with = "Option<String>", example = &"110ms")]
    pub fast: Option<Text>,
    /// arena: player 2 fires every so often.
    #[schemars(with = "Option<String>", example = &"200ms")]
    pub slow: Option<Text>,
    /// arena: how the two bots of a pair reach the server next to each other: pipelined or strict.
    #[schemars(with = "Option<String>", example = &"strict")]
    pub pairing: Option<Text>,
    /// arena: share of the games that ask for a snapshot at every tick.
    #[schemars(with = "Option<NumberOrText>", example = &"1%")]
    pub snapshots: Option<Text>,
    /// arena: a game without an end after this is counted as a missing stop.
    #[schemars(with = "Option<String>", example = &"60s")]
    pub longest_game: Option<Text>,
    /// echo: messages per second and client; 0 means that each answer starts the next.
    #[schemars(with = "Option<f64>", example = 10)]
    pub rate: Option<Text>,
    /// echo: size of each message.
    #[schemars(with = "Option<u32>", example = 64)]
    pub payload_bytes: Option<Text>,
    /// chat: time between two lines of one bot, uniform in a range.
    #[schemars(with = "Option<String>", example = &"500ms..1s")]
    pub gap: Option<Text>,
    /// chat: bytes of a line, its end included, uniform in a range; at least 15.
    #[schemars(with = "Option<NumberOrText>", example = &"15..58")]
    pub line: Option<Text>,
    /// chat: so many of the bots speak, and the others only listen; all of them otherwise.
    #[schemars(with = "Option<u32>", example = 100)]
    pub talkers: Option<Text>,
    /// chat: the room, channel (without its #) or subject.
    #[schemars(with = "Option<String>", example = &"lobby")]
    pub room: Option<Text>,
    /// chat: the server sends each line back to its sender too.
    #[schemars(with = "Option<bool>", example = true)]
    pub echoes: Option<Text>,
    /// chat: shares of the crowd that behave badly: slow-reader, stalled, half-open, malformed, reconnect-storm.
    #[schemars(with = "Option<Vec<String>>", example = json!(["slow-reader=5%"]))]
    pub misbehave: Option<Vec<Text>>,
    /// http: what is asked; a GET of the target's path otherwise.
    #[schemars(with = "Option<Vec<RequestKeys>>", example = json!([{"get": "/todos"}]))]
    pub requests: Option<Vec<Spanned<RequestKeys>>>,
    /// http: what {name} stands for in paths, header values and bodies.
    #[schemars(with = "Option<BTreeMap<String, NameOr<VariableKeys>>>", example = json!({"user": {"from": 1, "to": 1000}}))]
    pub variables: Option<Variables>,
    /// http, with a rate: connections opened before the hold.
    #[schemars(with = "Option<u32>", example = 256)]
    pub connections: Option<Text>,
    /// http, with a rate: more are opened up to this many when all are busy.
    #[schemars(with = "Option<u32>", example = 512)]
    pub connections_max: Option<Text>,
    /// http, with requesters: between an answer and the next request.
    #[schemars(with = "Option<String>", example = &"100ms")]
    pub think: Option<Text>,
    /// http: the version of the protocol, 1.1 or 2.
    #[schemars(with = "Option<NumberOrText>", example = &"1.1")]
    pub http: Option<Text>,
    /// http: most requests at once on one connection of HTTP/2, with a rate.
    #[schemars(with = "Option<u32>", example = 100)]
    pub streams: Option<Text>,
    /// http: connections stay for further requests; otherwise each request has one of its own.
    #[schemars(with = "Option<bool>", example = false)]
    pub keep_alive: Option<Text>,
    /// http: a request without its whole answer after this is given up, and its connection with it.
    #[schemars(with = "Option<String>", example = &"30s")]
    pub timeout: Option<Text>,
    /// http: so many redirects are followed, to the same host.
    #[schemars(with = "Option<u32>", example = 5)]
    pub redirects: Option<Text>,
    /// http: an answer's body may be so long.
    #[schemars(with = "Option<NumberOrText>", example = &"64MiB")]
    pub body_max: Option<Text>,
}

/// Which loads, and how each is held.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LadderKeys {
    /// The loads to climb, in games, clients or requesters.
    #[schemars(with = "Option<Vec<f64>>", example = json!([500, 1000, 2000]))]
    pub rungs: Option<Vec<Text>>,
    /// http: the loads in requests per second, planned by a clock that waits for nobody.
    #[schemars(example = json!([1000, 2000]))]
    pub rate: Option<OneOrMore>,
    /// http: the loads in requesters, each of whom waits for its answer; a list, a range (1..20), or an open end (1..).
    #[schemars(example = &"1..20")]
    pub requesters: Option<OneOrMore>,
    /// poll-loop: the services to sweep, or all.
    #[schemars(example = json!(["root", "object"]))]
    pub services: Option<OneOrMore>,
    /// poll-loop: in the background, where little is drawn, in the foreground, or all.
    #[schemars(example = json!(["background", "foreground"]))]
    pub views: Option<OneOrMore>,
    /// poll-loop: the priority of its process: normal, below-normal or all.
    #[schemars(example = json!(["normal", "below-normal"]))]
    pub priorities: Option<OneOrMore>,
    /// poll-loop: objects near: none, moderate, high or all.
    #[schemars(example = json!(["none", "high"]))]
    pub localities: Option<OneOrMore>,
    /// How the bots arrive: one every so often (2ms, or 2ms/each), a rate (5000/s), all of a rung within a time (60s/all), or 0s
    /// for all at once.
    #[schemars(with = "Option<String>", example = &"2ms")]
    pub ramp: Option<Text>,
    /// Time between the ramp and the hold.
    #[schemars(with = "Option<String>", example = &"2s")]
    pub settle: Option<Text>,
    /// When a rung has seen enough: a time, ticks or games.
    #[schemars(with = "Option<String>", example = &"60s")]
    pub hold: Option<Text>,
    /// A fresh server for each rung.
    #[schemars(with = "Option<bool>", example = true)]
    pub restart_per_rung: Option<Text>,
}

/// How the load is made.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GeneratorKeys {
    /// Worker threads; one per core otherwise, more when descriptors ask for it.
    #[schemars(with = "Option<u32>", example = 2)]
    pub workers: Option<Text>,
    /// Real-time priority for the workers.
    #[schemars(with = "Option<bool>", example = true)]
    pub realtime: Option<Text>,
    /// Busy wait before a planned instant, at most 50us; only on cores of their own.
    #[schemars(with = "Option<String>", example = &"20us")]
    pub spin: Option<Text>,
    /// Attempts to open one connection before its bot gives up.
    #[schemars(with = "Option<u32>", example = 10)]
    pub open_attempts: Option<Text>,
    /// false: the generator is not measured against a server that does nothing before the climb.
    #[schemars(with = "Option<bool>", example = false)]
    pub calibrate: Option<Text>,
}

/// Certificates.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TlsKeys {
    /// A certificate authority to trust besides the usual ones, a PEM file.
    #[schemars(with = "Option<String>", example = &"ca.pem")]
    pub ca: Option<Text>,
    /// Accept any certificate.
    #[schemars(with = "Option<bool>", example = true)]
    pub insecure: Option<Text>,
}

/// `5%` or `0.05`; exists for the schema only.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum NumberOrText {
    Number(f64),
    Text(String),
}

/// `bots: arena` or `bots: { kind: arena, … }`.
#[derive(Clone, Debug)]
pub enum NameOr<T> {
    /// one word
    Name(Text),
    /// a mapping
    Keys(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NameOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The line of a single word is that of the whole node; inside a mapping each value has its own.
        let read = Spanned::<Unplaced<T>>::deserialize(deserializer)?;
        Ok(match read.value {
            Unplaced::Name(value) => {
                NameOr::Name(Spanned { value, referenced: read.referenced, defined: read.defined })
            }
            Unplaced::Keys(keys) => NameOr::Keys(keys),
        })
    }
}

enum Unplaced<T> {
    Name(String),
    Keys(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Unplaced<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = Unplaced<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a mapping")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Unplaced::Name(text.to_owned()))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Unplaced::Name(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Unplaced::Name(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(Unplaced::Name(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                Ok(Unplaced::Name(value.to_string()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Unplaced::Keys)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for NameOr<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("NameOr{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = generator.subschema_for::<T>();
        schemars::json_schema!({ "anyOf": [{ "type": "string" }, keys] })
    }
}

/// The JSON Schema of a scenario file, as published in `scenarios/scenario.schema.json`.
pub fn scenario_schema() -> Value {
    schemars::schema_for!(Scenario).to_value()
}

/// Reads a scenario; the mistakes are those that need no knowledge of other settings.
///
/// With mistakes there may still be a scenario: its other keys are checked on, so that all mistakes come at once.
pub(crate) fn read(scenario: &ScenarioText) -> (Option<Scenario>, Vec<Mistake>) {
    let whole = |wrong, line, example: Option<&str>| Mistake {
        place: Place::Line { path: scenario.path.clone(), line, key: String::new() },
        wrong,
        nearest: None,
        example: example.map(Into::into),
    };
    let node = match serde_saphyr::from_str_with_options::<Spanned<shape::Node>>(&scenario.text, options()) {
        Ok(node) => node,
        Err(error) => {
            let (line, wrong) = worded(&error);
            return (None, vec![whole(wrong, line, None)]);
        }
    };
    if node.value.is_nothing() {
        let example = "subject: { target: ws://127.0.0.1:42069 }";
        return (None, vec![whole(Wrong::EmptyScenario, 0, Some(example))]);
    }
    let mut mistakes = shape::mistakes(&scenario.path, &node, &scenario_schema());
    match serde_saphyr::from_str_with_options::<Scenario>(&scenario.text, options()) {
        Ok(read) => (Some(read), mistakes),
        // The pass above has said it better, with key and example.
        Err(_) if !mistakes.is_empty() => (None, mistakes),
        Err(error) => {
            let (line, wrong) = worded(&error);
            mistakes.push(whole(wrong, line, None));
            (None, mistakes)
        }
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        // A scenario is a page, not a data set; one that nests or repeats itself into gigabytes is an accident.
        budget: serde_saphyr::budget! { max_depth: 16, max_nodes: 20_000, max_aliases: 100 },
        with_snippet: false,
    }
}

/// The line of a parser's error, and its words without the place and without advice that only programmers can follow.
fn worded(error: &serde_saphyr::Error) -> (u64, Wrong) {
    use serde_saphyr::Error;
    let line = error.location().map_or(0, |location| location.line());
    let unreadable = |text: String| Wrong::Unreadable(text);
    let wrong = match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            unreadable(format!("the key \"{key}\" is there twice"))
        }
        Error::DuplicateMappingKey { .. } => unreadable("a key is there twice".into()),
        Error::MultipleDocuments { .. } => {
            unreadable("a second document begins here, but a scenario is one".into())
        }
        Error::NullIntoString { .. } => unreadable("a list has an empty entry".into()),
        Error::Budget { .. } => unreadable("this is too large or nested too deep for a scenario".into()),
        other => {
            let text = other.to_string();
            let text = text.lines().next().unwrap_or_default();
            let text = text.split(" at line ").next().unwrap_or(text);
            Wrong::Syntax(text.trim_start_matches("error: ").to_owned())
        }
    };
    (line, wrong)
}

#[cfg(test)]
mod tests;
