//! Protobuf messages of any schema (`plan::schema`) as bytes: how requests are written and replies are inspected.
//!
//! Names are resolved when a run begins and never again: a request becomes a template of bytes, and each lookup in a
//! reply a path of field numbers. `calls` are the clients of a service with its own schema.

mod calls;
mod template;

use drivers::messages::{Encoding, Envelope, Ids, Path};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};

use plan::schema::field;
pub use plan::schema::{Schema, SchemaError};

pub use calls::Calls;
pub use template::Template;

/// The way to a field by names, as `header.id`. Errors: `NoField`, `NotAMessage`.
pub fn path(message: &MessageDescriptor, names: &str) -> Result<Path, SchemaError> {
    let (mut message, mut numbers) = (message.clone(), Vec::new());
    let mut names = names.split('.').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        let field = field(&message, name)?;
        numbers.push(field.number());
        if names.peek().is_none() {
            return Ok(Path { numbers, encoding: encoding(&field) });
        }
        match field.kind() {
            Kind::Message(inner) => message = inner,
            _ => {
                let (message, field) = (message.full_name().to_owned(), name.to_owned());
                return Err(SchemaError::NotAMessage { message, field });
            }
        }
    }
    Ok(Path { numbers, encoding: Encoding::Message })
}

/// Where requests and replies carry their numbers and replies their errors, by names of fields. Errors: no such fields,
/// `NotAnId`.
pub fn envelope(
    request: &MessageDescriptor,
    reply: &MessageDescriptor,
    id: Option<(&str, &str)>,
    error: Option<&str>,
) -> Result<Envelope, SchemaError> {
    let id_path = |message: &MessageDescriptor, names: &str| {
        let path = path(message, names)?;
        if matches!(path.encoding, Encoding::Double | Encoding::Float | Encoding::Message) {
            let (message, field) = (message.full_name().to_owned(), names.to_owned());
            return Err(SchemaError::NotAnId { message, field });
        }
        Ok(path)
    };
    let ids = |(in_request, in_reply)| {
        Ok(Ids { request: id_path(request, in_request)?, reply: id_path(reply, in_reply)? })
    };
    Ok(Envelope { id: id.map(ids).transpose()?, error: error.map(|names| path(reply, names)).transpose()? })
}

fn encoding(field: &FieldDescriptor) -> Encoding {
    match field.kind() {
        Kind::Double => Encoding::Double,
        Kind::Float => Encoding::Float,
        Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 | Kind::Bool | Kind::Enum(_) => {
            Encoding::Varint
        }
        Kind::Sint32 | Kind::Sint64 => Encoding::Zigzag,
        Kind::Fixed64 | Kind::Sfixed64 => Encoding::Fixed64,
        Kind::Fixed32 => Encoding::Fixed32,
        Kind::Sfixed32 => Encoding::Sfixed32,
        Kind::String | Kind::Bytes => Encoding::Bytes,
        Kind::Message(_) => Encoding::Message,
    }
}

/// A message as JSON, for texts of errors; `None`: it is malformed.
pub fn as_json(message: &MessageDescriptor, bytes: &[u8]) -> Option<String> {
    let message = DynamicMessage::decode(message.clone(), bytes).ok()?;
    serde_json::to_string(&message).ok()
}

#[cfg(test)]
mod tests;
