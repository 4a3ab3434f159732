//! A scenario as a tree of values, each with its line and its original spelling.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Error, Options, Spanned};

/// A value and its line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// from 1; 0 when it has none
    pub line: u64,
    pub content: Content,
    /// of a script's options: its name there; else empty
    pub option: &'static str,
}

/// What a value is.
#[derive(Clone, Debug, Default)]
pub(crate) enum Content {
    /// `hold:` without a value is an unset setting
    #[default]
    Nothing,
    /// a text as it was written (`1.0`, `1e3`), and what YAML takes it for
    One(String, Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One key of a mapping.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub name: String,
    /// the line of the key
    pub line: u64,
    pub node: Node,
}

impl Node {
    /// Errors: what is not YAML, larger than the options allow, or has a key twice.
    pub fn read(text: &str, options: Options) -> Result<Node, Error> {
        let read = serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options)?;
        Ok(located(read, text))
    }

    /// The value of a key such as `ladder.hold`, unless nothing is written there.
    pub fn at(&self, key: &str) -> Option<&Node> {
        key.split('.').try_fold(self, |node, name| node.get(name))
    }

    /// The value of a key of this mapping, unless nothing is written there.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let entry = self.entries().iter().find(|entry| entry.name == name)?;
        Some(&entry.node).filter(|node| !node.is_nothing())
    }

    /// Takes a key out of this mapping.
    pub fn remove(&mut self, name: &str) {
        if let Content::Map(entries) = &mut self.content {
            entries.retain(|entry| entry.name != name);
        }
    }

    pub fn is_nothing(&self) -> bool {
        matches!(self.content, Content::Nothing)
    }

    pub fn is_mapping(&self) -> bool {
        matches!(self.content, Content::Map(_))
    }

    /// The text of one value; empty for everything else.
    pub fn text(&self) -> &str {
        match &self.content {
            Content::One(text, _) => text,
            _ => "",
        }
    }

    pub fn items(&self) -> &[Node] {
        match &self.content {
            Content::List(items) => items,
            _ => &[],
        }
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The entries of a mapping whose names its author chose, in the order of their names.
    pub fn by_name(&self) -> BTreeMap<&str, &Node> {
        self.entries().iter().map(|entry| (entry.name.as_str(), &entry.node)).collect()
    }

    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Nothing => Value::Null,
            Content::One(_, value) => value.clone(),
            Content::List(items) => items.iter().map(Node::to_json).collect(),
            Content::Map(entries) => {
                entries.iter().map(|entry| (entry.name.clone(), entry.node.to_json())).collect()
            }
        }
    }
}

/// A node as the parser hands it over: numbers and booleans have lost their spelling, which the source still
/// has.
enum Raw {
    Nothing,
    One(Value),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn located(read: Spanned<Raw>, source: &str) -> Node {
    let content = match read.value {
        Raw::Nothing => Content::Nothing,
        Raw::One(Value::String(text)) => Content::One(text.clone(), Value::String(text)),
        Raw::One(value) => {
            let span = read.defined.span();
            let range = span.byte_offset().zip(span.byte_len());
            let range = range.map(|(from, length)| from as usize..(from + length) as usize);
            let written = range.and_then(|range| source.get(range)).map(str::trim);
            let text = written.filter(|text| !text.is_empty()).map(str::to_owned);
            Content::One(text.unwrap_or_else(|| value.to_string()), value)
        }
        Raw::List(items) => Content::List(items.into_iter().map(|item| located(item, source)).collect()),
        Raw::Map(entries) => {
            let entry = |(name, node): (Spanned<String>, _)| Entry {
                line: name.referenced.line(),
                name: name.value,
                node: located(node, source),
            };
            Content::Map(entries.into_iter().map(entry).collect())
        }
    };
    Node { line: read.referenced.line(), content, option: "" }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("YAML")
            }

            fn visit_unit<E>(self) -> Result<Raw, E> {
                Ok(Raw::Nothing)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::One(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
                Ok(Raw::One(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
                Ok(Raw::One(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
                Ok(Raw::One(value.into()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
                Ok(Raw::One(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Raw::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Raw::Map(entries))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
