//! Protobuf messages of any schema, which is compiled from a .proto file when a run begins.
//!
//! Names are looked up then and never again: a request becomes a template of bytes, and what is looked for in a reply a
//! path of field numbers.

mod template;

use std::path::Path as FilePath;

use drivers::messages::{Encoding, Envelope, Ids, Path};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

pub use template::Template;

/// The types of a .proto file and of those that it imports.
#[derive(Clone, Debug)]
pub struct Schema {
    pool: DescriptorPool,
}

/// Why a schema cannot be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The file, or one that it imports, cannot be read or is wrong.
    #[error("{0}")]
    File(String),
    /// No such message; the name has its package before it.
    #[error("the schema has no message \"{name}\"; it has {known}")]
    NoMessage {
        /// as given
        name: String,
        /// those that there are
        known: String,
    },
    /// No such call.
    #[error("the schema has no call \"{name}\"; it has {known}")]
    NoMethod {
        /// as given
        name: String,
        /// those that there are
        known: String,
    },
    /// No such field in a message.
    #[error("{message} has no field \"{field}\"; it has {known}")]
    NoField {
        /// name of the message
        message: String,
        /// as given
        field: String,
        /// those that there are
        known: String,
    },
    /// Something is looked for below a field that has nothing below it.
    #[error("{message}.{field} is no message, so nothing is below it")]
    NotAMessage {
        /// name of the message
        message: String,
        /// name of the field
        field: String,
    },
    /// A field that cannot hold the number of a request.
    #[error("{message}.{field} cannot hold the number of a request: it has to be a whole number or a string")]
    NotAnId {
        /// name of the message
        message: String,
        /// path of the field
        field: String,
    },
    /// A value that does not fit its field.
    #[error("{message}: {why}")]
    Value {
        /// name of the message
        message: String,
        /// what is wrong
        why: String,
    },
}

/// A schema as a text.
struct Text {
    name: &'static str,
    text: &'static str,
}

impl FileResolver for Text {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == self.name {
            File::from_source(name, self.text)
        } else {
            Err(protox::Error::file_not_found(name))
        }
    }
}

impl Schema {
    /// Compiles a file; imports are looked for beside it. Errors: `File`.
    pub fn of_file(path: &FilePath) -> Result<Schema, SchemaError> {
        let wrong = |error: protox::Error| SchemaError::File(format!("{}: {error}", path.display()));
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let mut compiler = protox::Compiler::new([directory.unwrap_or(FilePath::new("."))]).map_err(wrong)?;
        compiler.open_file(path).map_err(wrong)?;
        Ok(Schema { pool: compiler.descriptor_pool() })
    }

    /// Compiles a text that came with the program. Errors: `File`.
    pub fn of_text(name: &'static str, text: &'static str) -> Result<Schema, SchemaError> {
        let wrong = |error: protox::Error| SchemaError::File(error.to_string());
        let mut resolver = ChainFileResolver::new();
        resolver.add(Text { name, text });
        resolver.add(GoogleFileResolver::new());
        let mut compiler = protox::Compiler::with_file_resolver(resolver);
        compiler.open_file(name).map_err(wrong)?;
        Ok(Schema { pool: compiler.descriptor_pool() })
    }

    /// The message of that name, with its package or, where that is clear, without. Errors: `NoMessage`.
    pub fn message(&self, name: &str) -> Result<MessageDescriptor, SchemaError> {
        let is_named = |message: &MessageDescriptor| {
            !message.is_map_entry() && !message.full_name().starts_with("google.")
        };
        let own = || self.pool.all_messages().filter(is_named);
        let mut named = own().filter(|message| message.full_name() == name || message.name() == name);
        let whole = self.pool.get_message_by_name(name);
        whole.or_else(|| named.next().filter(|_| named.next().is_none())).ok_or_else(|| {
            let known: Vec<String> = own().map(|message| message.full_name().to_owned()).collect();
            SchemaError::NoMessage { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// The call of that name, as `package.Service/Method`. Errors: `NoMethod`.
    pub fn method(&self, name: &str) -> Result<MethodDescriptor, SchemaError> {
        let all = || self.pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        let full_name =
            |method: &MethodDescriptor| format!("{}/{}", method.parent_service().full_name(), method.name());
        let name = name.trim_start_matches('/');
        all().find(|method| full_name(method) == name).ok_or_else(|| {
            let known: Vec<String> = all().map(|method| full_name(&method)).collect();
            SchemaError::NoMethod { name: name.to_owned(), known: known.join(", ") }
        })
    }
}

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

/// The field of that name, as in the schema or as in JSON.
fn field(message: &MessageDescriptor, name: &str) -> Result<FieldDescriptor, SchemaError> {
    let found = message.get_field_by_name(name).or_else(|| message.get_field_by_json_name(name));
    found.ok_or_else(|| {
        let known: Vec<String> = message.fields().map(|field| field.name().to_owned()).collect();
        let (message, field) = (message.full_name().to_owned(), name.to_owned());
        SchemaError::NoField { message, field, known: known.join(", ") }
    })
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
