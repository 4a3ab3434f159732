//! A file against the schema: unknown keys, and lists or mappings where they do not belong. All of them, with lines.
//!
//! Understands as much JSON Schema as `Scenario` produces: `$ref`, `anyOf`, `properties`, `additionalProperties`, `items`,
//! `type`, `examples`. A schema without a type allows anything.
//! Single values are not judged here, because `units` does it with better words.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::known;
use crate::mistakes::{Mistake, Place, Wrong};

/// The outline of a YAML node: what it is and where its parts stand.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Nothing,
    One,
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl Node {
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Node::Nothing)
    }

    fn named(&self) -> &'static str {
        match self {
            Node::Nothing => "nothing",
            Node::One => "one value",
            Node::List(_) => "a list",
            Node::Map(_) => "a mapping",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Outline;
        impl<'de> Visitor<'de> for Outline {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("YAML")
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Nothing)
            }

            fn visit_none<E>(self) -> Result<Node, E> {
                Ok(Node::Nothing)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
                Ok(Node::One)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
                Ok(Node::One)
            }

            fn visit_i128<E>(self, _: i128) -> Result<Node, E> {
                Ok(Node::One)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
                Ok(Node::One)
            }

            fn visit_u128<E>(self, _: u128) -> Result<Node, E> {
                Ok(Node::One)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
                Ok(Node::One)
            }

            fn visit_str<E>(self, _: &str) -> Result<Node, E> {
                Ok(Node::One)
            }

            fn visit_bytes<E>(self, _: &[u8]) -> Result<Node, E> {
                Ok(Node::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Node::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Node::Map(entries))
            }
        }
        deserializer.deserialize_any(Outline)
    }
}

/// Everything in `node` that the schema does not know.
pub(super) fn mistakes(path: &str, node: &Spanned<Node>, schema: &Value) -> Vec<Mistake> {
    let mut pass = Pass { path, root: schema, mistakes: Vec::new() };
    pass.judge(node, schema, "");
    pass.mistakes
}

struct Pass<'a> {
    path: &'a str,
    root: &'a Value,
    mistakes: Vec<Mistake>,
}

impl<'a> Pass<'a> {
    fn judge(&mut self, node: &Spanned<Node>, schema: &'a Value, key: &str) {
        let mut variants = Vec::new();
        self.collect(schema, &mut variants);
        if variants.iter().any(|variant| variant.get("type").is_none()) {
            return;
        }
        let wanted = match &node.value {
            // `hold:` with nothing behind it is a setting not made.
            Node::Nothing => return,
            Node::One => &["string", "number", "integer", "boolean"][..],
            Node::List(_) => &["array"],
            Node::Map(_) => &["object"],
        };
        let Some(variant) = variants.iter().find(|variant| wanted.iter().any(|name| has_type(variant, name)))
        else {
            let wanted = words_for(&variants);
            let example = example_of(schema).map(|example| written(key, &example));
            let wrong = Wrong::Shape { found: node.value.named(), wanted };
            self.report(node.referenced.line(), key, wrong, None, example);
            return;
        };
        match &node.value {
            Node::List(items) => {
                for item in items {
                    self.judge(item, &variant["items"], key);
                }
            }
            Node::Map(entries) => {
                for (name, value) in entries {
                    let known = variant["properties"].get(&name.value);
                    // Names that their author chooses: variables, headers.
                    let chosen =
                        variant.get("additionalProperties").filter(|below| **below != Value::Bool(false));
                    match known.or(chosen) {
                        Some(below) => self.judge(value, below, &joined(key, &name.value)),
                        None => self.unknown(name, &variant["properties"], key),
                    }
                }
            }
            Node::Nothing | Node::One => {}
        }
    }

    fn unknown(&mut self, name: &Spanned<String>, properties: &Value, inside: &str) {
        let known: Vec<&str> =
            properties.as_object().map(|keys| keys.keys().map(String::as_str).collect()).unwrap_or_default();
        let nearest = known::nearest(&name.value, known.iter().copied());
        let shown = nearest.or(known.first().copied());
        let example =
            shown.and_then(|key| example_of(&properties[key]).map(|example| written(key, &example)));
        let wrong = Wrong::UnknownKey {
            key: name.value.clone(),
            inside: if inside.is_empty() { "the scenario".into() } else { inside.into() },
            known: known::listed(&known),
        };
        self.report(name.referenced.line(), "", wrong, nearest.map(Into::into), example);
    }

    fn report(
        &mut self,
        line: u64,
        key: &str,
        wrong: Wrong,
        nearest: Option<String>,
        example: Option<String>,
    ) {
        let place = Place::Line { path: self.path.into(), line, key: key.into() };
        self.mistakes.push(Mistake { place, wrong, nearest, example });
    }

    /// The alternatives behind `$ref` and `anyOf`.
    fn collect(&self, schema: &'a Value, variants: &mut Vec<&'a Value>) {
        if let Some(pointer) =
            schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'))
        {
            if let Some(below) = self.root.pointer(pointer) {
                self.collect(below, variants);
            }
        } else if let Some(Value::Array(any)) = schema.get("anyOf") {
            for below in any {
                self.collect(below, variants);
            }
        } else {
            variants.push(schema);
        }
    }
}

fn has_type(schema: &Value, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(any)) => any.iter().any(|one| one == name),
        _ => false,
    }
}

fn words_for(variants: &[&Value]) -> String {
    let any = |name| variants.iter().any(|variant| has_type(variant, name));
    let mut words = Vec::new();
    if ["string", "number", "integer", "boolean"].into_iter().any(any) {
        words.push("one value");
    }
    if any("array") {
        words.push("a list");
    }
    if any("object") {
        words.push("a mapping");
    }
    words.join(" or ")
}

fn joined(key: &str, name: &str) -> String {
    if key.is_empty() { name.into() } else { format!("{key}.{name}") }
}

fn example_of(schema: &Value) -> Option<Value> {
    schema.get("examples")?.get(0).cloned()
}

/// `hold: 60s`, the example as a line of the file.
fn written(key: &str, example: &Value) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let value = flow(example);
    if name.is_empty() { value } else { format!("{name}: {value}") }
}

fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(keys) => {
            let keys: Vec<String> =
                keys.iter().map(|(key, value)| format!("{key}: {}", flow(value))).collect();
            format!("{{ {} }}", keys.join(", "))
        }
        other => other.to_string(),
    }
}
