//! One message or body taken apart: JSON, JSON behind a prefix (Socket.IO), words, or bytes; and its values with their places.

use serde_json::Value;

use crate::session::Content;

/// A text of more words is one.
const WORDS_MAX: usize = 64;
/// Longer names are no names.
const PREFIX_BYTES_MAX: usize = 64;
/// Keys whose value says what kind of message it is.
const KINDS: [&str; 16] = [
    "type",
    "t",
    "op",
    "opcode",
    "cmd",
    "command",
    "event",
    "evt",
    "action",
    "method",
    "kind",
    "msgtype",
    "messagetype",
    "messageid",
    "route",
    "e",
];

/// A message taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    /// JSON, and what stands before it
    Json {
        /// such as `42`; empty for JSON alone
        before: String,
        /// of Socket.IO: the number behind the prefix that the acknowledgement repeats
        id: Option<String>,
        /// the value
        value: Value,
    },
    /// `name=value&…`
    Fields(Vec<(String, String)>),
    /// text: what stands before each word, the word; and what stands after the last
    Words(Vec<(String, String)>, String),
    /// no text
    Bytes,
}

/// A step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Step {
    /// of an object
    Key(String),
    /// of an array
    At(usize),
    /// of `Form::Json`
    Id,
    /// of `Form::Words`
    Word(usize),
    /// of `Form::Fields`
    Field(usize),
    /// of a path: which part between slashes
    Part(usize),
    /// of a query: which pair
    Query(usize),
    /// of a request or an answer
    Header(String),
    /// of an answer
    Cookie(String),
}

/// Where a value stands.
pub(crate) type Place = Vec<Step>;

/// A value in a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub place: Place,
    /// what it is called there
    pub name: String,
    /// what its surroundings are called
    pub around: String,
    /// as text
    pub value: String,
    pub is_text: bool,
    /// it tells the kind of the message
    pub is_kind: bool,
}

impl Form {
    pub fn of(content: &Content) -> Form {
        let Ok(text) = std::str::from_utf8(&content.bytes) else { return Form::Bytes };
        if !content.is_text && text.chars().any(|letter| letter.is_control() && !"\r\n\t".contains(letter)) {
            return Form::Bytes;
        }
        if let Some(start) = text.find(['{', '[']).filter(|start| *start <= PREFIX_BYTES_MAX)
            && let Ok(value) = serde_json::from_str::<Value>(&text[start..])
            && (value.is_object() || value.is_array())
        {
            let prefix = &text[..start];
            let (before, id) = socket_io_id(prefix);
            return Form::Json { before: before.to_owned(), id: id.map(str::to_owned), value };
        }
        words(text)
    }

    /// Of a request: its content type decides.
    pub fn of_body(body: &[u8], content_type: &str) -> Form {
        if content_type.starts_with("application/x-www-form-urlencoded") {
            let pairs = url::form_urlencoded::parse(body).into_owned().collect();
            return Form::Fields(pairs);
        }
        Form::of(&Content::bytes(body))
    }

    /// What messages of the same kind have in common; a bot never sees it.
    pub fn shape(&self, length: usize) -> String {
        match self {
            Form::Json { before, id, value } => {
                let mut out = format!("{before}{}", if id.is_some() { "#" } else { "" });
                shape_of(value, None, 0, &mut out);
                out
            }
            Form::Fields(pairs) => pairs.iter().map(|(name, _)| format!("{name}&")).collect(),
            Form::Words(words, _) => match words.first() {
                Some((_, first)) if words.len() > 1 && !first.contains(|c: char| c.is_ascii_digit()) => {
                    first.clone()
                }
                // Engine.IO's 2 and 3 are kinds, and a text of one number is not.
                Some((_, only)) if words.len() == 1 && only.len() == 1 && length == 1 => only.clone(),
                _ => "text".to_owned(),
            },
            Form::Bytes => format!("bytes {length}"),
        }
    }

    /// All values in it.
    pub fn leaves(&self) -> Vec<Leaf> {
        let mut out = Vec::new();
        match self {
            Form::Json { id, value, .. } => {
                if let Some(id) = id {
                    out.push(leaf(vec![Step::Id], "id", "", id, false));
                }
                collect(value, &mut Vec::new(), "", "", &mut out);
            }
            Form::Fields(pairs) => {
                let one = |(at, (name, value)): (usize, &(String, String))| {
                    leaf(vec![Step::Field(at)], name, "", value, true)
                };
                out.extend(pairs.iter().enumerate().map(one));
            }
            Form::Words(words, _) => {
                let mut before = "";
                for (at, (_, word)) in words.iter().enumerate() {
                    let mut one = leaf(vec![Step::Word(at)], before, "", word, true);
                    one.is_kind = at == 0 && words.len() > 1 && !word.contains(|c: char| c.is_ascii_digit());
                    out.push(one);
                    before = word;
                }
            }
            Form::Bytes => {}
        }
        out
    }
}

fn leaf(place: Place, name: &str, around: &str, value: &str, is_text: bool) -> Leaf {
    Leaf {
        place,
        name: name.to_owned(),
        around: around.to_owned(),
        value: value.to_owned(),
        is_text,
        is_kind: false,
    }
}

/// `42`, `421-` and `42/room,` are prefixes; digits behind them are the number of an acknowledgement.
fn socket_io_id(prefix: &str) -> (&str, Option<&str>) {
    let is_packet = prefix.len() > 2 && prefix.starts_with('4') && prefix.as_bytes()[1].is_ascii_digit();
    if !is_packet {
        return (prefix, None);
    }
    let digits = prefix.bytes().rev().take_while(u8::is_ascii_digit).count();
    let at = (prefix.len() - digits).max(2);
    let (before, id) = prefix.split_at(at);
    (before, (!id.is_empty()).then_some(id))
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_-.".contains(letter)
}

fn words(text: &str) -> Form {
    let mut words: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_of_word) {
        let end = rest[start..].find(|letter| !is_of_word(letter)).map_or(rest.len(), |end| start + end);
        words.push((rest[..start].to_owned(), rest[start..end].to_owned()));
        rest = &rest[end..];
        if words.len() > WORDS_MAX {
            return Form::Words(vec![(String::new(), text.to_owned())], String::new());
        }
    }
    Form::Words(words, rest.to_owned())
}

/// Whether a key's value tells the kind of its message.
pub(crate) fn is_kind(key: &str) -> bool {
    KINDS.contains(&normal(key).as_str())
}

/// Small letters and digits only.
pub(crate) fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

fn shape_of(value: &Value, key: Option<&str>, depth: usize, out: &mut String) {
    match value {
        Value::String(text) if key.is_some_and(is_kind) && depth < 3 => {
            out.push_str(&format!("{text:?}"));
        }
        Value::Number(number) if key.is_some_and(is_kind) && depth < 2 && number.is_u64() => {
            out.push_str(&number.to_string());
        }
        Value::Null => out.push('0'),
        Value::Bool(_) => out.push('b'),
        Value::Number(_) => out.push('n'),
        Value::String(_) => out.push('s'),
        Value::Array(all) => {
            out.push('[');
            for (at, one) in all.iter().enumerate() {
                // A list's elements are alike; what stands first in the outermost one may be the name of an event.
                match one {
                    Value::String(text) if depth == 0 && at == 0 => out.push_str(&format!("{text:?}")),
                    _ if depth == 0 || at == 0 => shape_of(one, None, depth + 1, out),
                    _ => break,
                }
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(all) => {
            out.push('{');
            for (key, one) in all {
                out.push_str(key);
                out.push(':');
                shape_of(one, Some(key), depth + 1, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

fn collect(value: &Value, place: &mut Place, name: &str, around: &str, out: &mut Vec<Leaf>) {
    let mut push = |text: &str, is_text: bool, place: &Place| {
        let mut one = leaf(place.clone(), name, around, text, is_text);
        one.is_kind = match place.as_slice() {
            [Step::At(0)] => is_text,
            [.., Step::Key(key)] => is_kind(key),
            _ => false,
        };
        out.push(one);
    };
    match value {
        Value::Null => {}
        Value::Bool(is) => push(if *is { "true" } else { "false" }, false, place),
        Value::Number(number) => push(&number.to_string(), false, place),
        Value::String(text) => push(text, true, place),
        Value::Array(all) => {
            for (at, one) in all.iter().enumerate() {
                place.push(Step::At(at));
                collect(one, place, name, around, out);
                place.pop();
            }
        }
        Value::Object(all) => {
            for (key, one) in all {
                place.push(Step::Key(key.clone()));
                collect(one, place, key, name, out);
                place.pop();
            }
        }
    }
}

/// Path and query taken apart: the parts between slashes, then the pairs, as written.
pub(crate) fn path_parts(path: &str) -> (Vec<&str>, Vec<(&str, Option<&str>)>) {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let pairs = query.into_iter().flat_map(|query| query.split('&')).map(|pair| match pair.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (pair, None),
    });
    (path.split('/').collect(), pairs.collect())
}

/// The values of a path and its query.
pub(crate) fn path_leaves(path: &str) -> Vec<Leaf> {
    let (parts, pairs) = path_parts(path);
    let mut out = Vec::new();
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let before = at.checked_sub(1).map_or("", |before| parts[before]);
        out.push(leaf(vec![Step::Part(at)], "id", before, &decoded(part), true));
    }
    for (at, (name, value)) in pairs.iter().enumerate() {
        if let Some(value) = value {
            out.push(leaf(
                vec![Step::Query(at)],
                &decoded(name),
                "",
                &decoded(&value.replace('+', " ")),
                true,
            ));
        }
    }
    out
}

/// Without `%20` and the like. What is no UTF-8 stays as it is.
pub(crate) fn decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_apart_and_those_of_a_kind_have_one_shape() {
        let shape = |text: &str| Form::of(&Content::text(text)).shape(text.len());
        let alike = [
            [r#"{"type":"move","seq":1}"#, r#"{"type":"move","seq":99}"#],
            [r#"42["move",{"x":1}]"#, r#"42["move",{"x":2.5}]"#],
            [r#"420["join"]"#, r#"4213["join"]"#],
            ["MOVE 1 2", "MOVE 3 4"],
            [r#"[7,{"a":[1]}]"#, r#"[8,{"a":[1,2]}]"#],
        ];
        for [one, other] in alike {
            assert_eq!(shape(one), shape(other));
        }
        let apart = [
            [r#"{"type":"move","seq":1}"#, r#"{"type":"ping","seq":1}"#],
            [r#"42["move",1]"#, r#"42["chat",1]"#],
            [r#"430[{"room":1}]"#, r#"43["room"]"#],
            ["2", "3"],
            ["MOVE 1 2", "STOP 1 2"],
        ];
        for [one, other] in apart {
            assert_ne!(shape(one), shape(other));
        }
        assert_eq!(Form::of(&Content::bytes([1, 2])), Form::Bytes);
        assert_eq!(Form::of(&Content::bytes([0xff])), Form::Bytes);
        let Form::Json { before, id, .. } = Form::of(&Content::text(r#"42/game,17["x"]"#)) else { panic!() };
        assert_eq!((before.as_str(), id.as_deref()), ("42/game,", Some("17")));
        assert_eq!(decoded("a%20b%zz%c3%bc%"), "a b%zzü%");
    }
}
