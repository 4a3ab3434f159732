//! The keys of requests over HTTP, and how one value or several are written.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::{Value, json};
use serde_saphyr::Spanned;

use super::{NameOr, NumberOrText, Text};

/// One kind of request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RequestKeys {
    /// As it is called in tables; method and path otherwise.
    #[schemars(with = "Option<String>", example = &"list")]
    pub name: Option<Text>,
    /// How often it is chosen, relative to the others; 1 otherwise.
    #[schemars(with = "Option<f64>", example = 3)]
    pub weight: Option<Text>,
    /// A GET of this path.
    #[schemars(with = "Option<String>", example = &"/todos/{id}")]
    pub get: Option<Text>,
    /// A POST to this path.
    #[schemars(with = "Option<String>", example = &"/todos")]
    pub post: Option<Text>,
    /// A PUT to this path.
    #[schemars(with = "Option<String>", example = &"/todos/{id}")]
    pub put: Option<Text>,
    /// A PATCH of this path.
    #[schemars(with = "Option<String>", example = &"/todos/{id}")]
    pub patch: Option<Text>,
    /// A DELETE of this path.
    #[schemars(with = "Option<String>", example = &"/todos/{id}")]
    pub delete: Option<Text>,
    /// A HEAD of this path.
    #[schemars(with = "Option<String>", example = &"/todos")]
    pub head: Option<Text>,
    /// Another method, for the path below.
    #[schemars(with = "Option<String>", example = &"OPTIONS")]
    pub method: Option<Text>,
    /// Path and query, with a method of its own.
    #[schemars(with = "Option<String>", example = &"/todos?page=1")]
    pub path: Option<Text>,
    /// Headers; a value may hold {variable}, and ${NAME} of the environment, which is never stored.
    #[schemars(with = "Option<BTreeMap<String, NumberOrText>>", example = json!({"Accept": "application/json"}))]
    pub headers: Option<BTreeMap<String, Option<Text>>>,
    /// The body as text; it may hold {variable}.
    #[schemars(with = "Option<String>", example = &"a=1&b={id}")]
    pub body: Option<Text>,
    /// The body as JSON, sent as application/json; its texts may hold {variable}.
    #[schemars(with = "Option<Value>", example = json!({"title": "todo {n}"}))]
    pub json: Option<Spanned<Value>>,
    /// What a right answer is; a status from 200 to 399 otherwise.
    #[schemars(example = json!({"status": 200, "json": {"/ok": true}}))]
    pub check: Option<CheckKeys>,
    /// What is kept of an answer for later requests of the same connection: variable and JSON pointer.
    #[schemars(with = "Option<BTreeMap<String, String>>", example = json!({"id": "/id"}))]
    pub capture: Option<BTreeMap<String, Text>>,
}

/// What a right answer is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CheckKeys {
    /// A status, a range of them, or a list.
    #[schemars(example = &"200..299")]
    pub status: Option<OneOrMore>,
    /// The body holds this text.
    #[schemars(with = "Option<String>", example = &"hello")]
    pub contains: Option<Text>,
    /// The body is JSON with these values at these pointers; without a value anything may stand there.
    #[schemars(with = "Option<BTreeMap<String, Value>>", example = json!({"/ok": true}))]
    pub json: Option<BTreeMap<String, Spanned<Value>>>,
    /// The length of the body in bytes: a number or a range.
    #[schemars(with = "Option<NumberOrText>", example = &"1..100")]
    pub bytes: Option<Text>,
}

/// What a variable stands for, anew for each request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VariableKeys {
    /// The lowest of whole numbers, all equally likely.
    #[schemars(with = "Option<i64>", example = 1)]
    pub from: Option<Text>,
    /// The highest of them.
    #[schemars(with = "Option<i64>", example = 1000)]
    pub to: Option<Text>,
    /// One of these, all equally likely.
    #[schemars(with = "Option<Vec<NumberOrText>>", example = json!(["red", "green"]))]
    pub one_of: Option<Vec<Text>>,
    /// A captured variable: what stands there before the first answer; 0 otherwise.
    #[schemars(with = "Option<NumberOrText>", example = 1)]
    pub before: Option<Text>,
}

/// Variables by name: counter, or a law with its settings.
pub type Variables = BTreeMap<String, Spanned<NameOr<VariableKeys>>>;

/// One value, or a list of them.
#[derive(Clone, Debug, Default)]
pub struct OneOrMore(pub Vec<Text>);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Spanned::<Unplaced>::deserialize(deserializer)?;
        Ok(OneOrMore(match read.value {
            Unplaced::One(value) => {
                vec![Spanned { value, referenced: read.referenced, defined: read.defined }]
            }
            Unplaced::More(texts) => texts,
        }))
    }
}

enum Unplaced {
    One(String),
    More(Vec<Text>),
}

impl<'de> Deserialize<'de> for Unplaced {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Unplaced;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a list")
            }

            fn visit_str<E>(self, text: &str) -> Result<Unplaced, E> {
                Ok(Unplaced::One(text.to_owned()))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Unplaced, E> {
                Ok(Unplaced::One(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Unplaced, E> {
                Ok(Unplaced::One(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Unplaced, E> {
                Ok(Unplaced::One(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Unplaced, E> {
                Ok(Unplaced::One(value.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Unplaced, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = seq.next_element()? {
                    texts.push(text);
                }
                Ok(Unplaced::More(texts))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for OneOrMore {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OneOrMore".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = json!({ "type": ["string", "number"] });
        schemars::json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
