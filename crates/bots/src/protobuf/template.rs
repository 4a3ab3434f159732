//! A request as bytes with gaps: constant parts are encoded once, variables each time.

use drivers::messages::Encoding;
use drivers::messages::wire::{put_key, put_sized, put_varint, zigzag};
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use super::{SchemaError, encoding, field};

/// A request of one kind.
#[derive(Clone, Debug)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    /// whole fields
    Bytes(Vec<u8>),
    /// of type string
    Text {
        number: u32,
        text: Text,
    },
    /// of a whole type
    Whole {
        number: u32,
        encoding: Encoding,
        text: Text,
    },
    Message {
        number: u32,
        parts: Vec<Part>,
    },
}

/// Pieces that follow each other.
type Text = Vec<Piece>;

#[derive(Clone, Debug)]
enum Piece {
    Literal(String),
    /// by its index
    Variable(usize),
}

impl Template {
    /// Encodes a message given as JSON, in which `{name}` stands for a variable.
    ///
    /// Errors: no such field, a value that does not fit, a variable in a field that is neither a text nor a whole number.
    pub fn compile(
        message: &MessageDescriptor,
        value: &Value,
        variables: &[impl AsRef<str>],
    ) -> Result<Template, SchemaError> {
        let names: Vec<&str> = variables.iter().map(AsRef::as_ref).collect();
        let parts = Compiler { variables: &names }.message(message, value)?;
        Ok(Template { parts })
    }

    /// Whether it is the same each time.
    pub fn is_constant(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Bytes(_)))
    }

    /// Appends the message; `value` gives the text of a variable by its index. A text that is no number leaves out the field
    /// that wants one.
    pub fn render<'v>(&self, out: &mut Vec<u8>, value: &impl Fn(usize) -> &'v str) {
        render(&self.parts, out, value);
    }
}

fn render<'v>(parts: &[Part], out: &mut Vec<u8>, value: &impl Fn(usize) -> &'v str) {
    for part in parts {
        match part {
            Part::Bytes(bytes) => out.extend_from_slice(bytes),
            Part::Text { number, text } => {
                put_key(out, *number, 2);
                put_sized(out, |out| put_text(text, out, value));
            }
            Part::Whole { number, encoding, text } => match text.as_slice() {
                [Piece::Variable(index)] => put_whole(out, *number, *encoding, value(*index)),
                text => {
                    let mut whole = Vec::new();
                    put_text(text, &mut whole, value);
                    put_whole(out, *number, *encoding, std::str::from_utf8(&whole).unwrap_or_default());
                }
            },
            Part::Message { number, parts } => {
                put_key(out, *number, 2);
                put_sized(out, |out| render(parts, out, value));
            }
        }
    }
}

fn put_text<'v>(text: &[Piece], out: &mut Vec<u8>, value: &impl Fn(usize) -> &'v str) {
    for piece in text {
        out.extend_from_slice(match piece {
            Piece::Literal(literal) => literal.as_bytes(),
            Piece::Variable(index) => value(*index).as_bytes(),
        });
    }
}

fn put_whole(out: &mut Vec<u8>, number: u32, encoding: Encoding, text: &str) {
    // Unsigned numbers beyond i64 have the same bits.
    let Some(value) = text.parse::<i64>().ok().or_else(|| Some(text.parse::<u64>().ok()? as i64)) else {
        return;
    };
    match encoding {
        Encoding::Zigzag => {
            put_key(out, number, 0);
            put_varint(out, zigzag(value));
        }
        Encoding::Fixed64 => {
            put_key(out, number, 1);
            out.extend_from_slice(&value.to_le_bytes());
        }
        Encoding::Fixed32 | Encoding::Sfixed32 => {
            put_key(out, number, 5);
            out.extend_from_slice(&(value as u32).to_le_bytes());
        }
        _ => {
            put_key(out, number, 0);
            put_varint(out, value as u64);
        }
    }
}

struct Compiler<'a> {
    variables: &'a [&'a str],
}

impl Compiler<'_> {
    fn message(&self, message: &MessageDescriptor, value: &Value) -> Result<Vec<Part>, SchemaError> {
        if !self.varies(value) {
            return Ok(vec![Part::Bytes(constant(message, value.clone())?)]);
        }
        let Value::Object(fields) = value else {
            return Err(wrong(message, format!("{value} is no object")));
        };
        let mut parts = Vec::new();
        for (name, value) in fields {
            if !self.varies(value) {
                let alone = Map::from_iter([(name.clone(), value.clone())]);
                // Looked up first: we report a missing field's name better than the decoder does.
                field(message, name)?;
                parts.push(Part::Bytes(constant(message, Value::Object(alone))?));
                continue;
            }
            let field = field(message, name)?;
            match value {
                _ if field.is_map() => {
                    return Err(wrong(message, format!("{name} is a map, in which no variable can stand")));
                }
                Value::Array(items) if field.is_list() => {
                    for item in items {
                        parts.push(self.value(message, &field, item)?);
                    }
                }
                value => parts.push(self.value(message, &field, value)?),
            }
        }
        Ok(parts)
    }

    /// One value of a field that contains a variable, or is in a list with one.
    fn value(
        &self,
        message: &MessageDescriptor,
        field: &FieldDescriptor,
        value: &Value,
    ) -> Result<Part, SchemaError> {
        let number = field.number();
        let text = || match value {
            Value::String(text) => Ok(self.pieces(text)),
            Value::Number(number) => Ok(vec![Piece::Literal(number.to_string())]),
            other => Err(wrong(message, format!("{} cannot be {other}", field.name()))),
        };
        match field.kind() {
            Kind::Message(inner) => Ok(Part::Message { number, parts: self.message(&inner, value)? }),
            Kind::String => Ok(Part::Text { number, text: text()? }),
            Kind::Int32
            | Kind::Int64
            | Kind::Uint32
            | Kind::Uint64
            | Kind::Sint32
            | Kind::Sint64
            | Kind::Fixed32
            | Kind::Fixed64
            | Kind::Sfixed32
            | Kind::Sfixed64 => Ok(Part::Whole { number, encoding: encoding(field), text: text()? }),
            kind => {
                let why = format!("{} has type {kind:?}, in which no variable can stand", field.name());
                Err(wrong(message, why))
            }
        }
    }

    /// Whether it contains a variable anywhere.
    fn varies(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.pieces(text).iter().any(|piece| matches!(piece, Piece::Variable(_))),
            Value::Array(items) => items.iter().any(|item| self.varies(item)),
            Value::Object(fields) => fields.values().any(|value| self.varies(value)),
            _ => false,
        }
    }

    /// Braces around anything but the name of a variable stay as they are.
    fn pieces(&self, text: &str) -> Text {
        let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find('{') {
            let (before, inside) = (&rest[..at], &rest[at + 1..]);
            literal.push_str(before);
            let known = inside.find('}').and_then(|end| {
                let index = self.variables.iter().position(|name| *name == &inside[..end])?;
                Some((index, end))
            });
            match known {
                Some((index, end)) => {
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Variable(index));
                    rest = &inside[end + 1..];
                }
                None => {
                    literal.push('{');
                    rest = inside;
                }
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        pieces
    }
}

fn constant(message: &MessageDescriptor, value: Value) -> Result<Vec<u8>, SchemaError> {
    let read = DynamicMessage::deserialize(message.clone(), value);
    read.map(|read| read.encode_to_vec()).map_err(|error| wrong(message, error.to_string()))
}

fn wrong(message: &MessageDescriptor, why: String) -> SchemaError {
    SchemaError::Value { message: message.full_name().to_owned(), why }
}
