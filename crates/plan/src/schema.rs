//! Protobuf schemas from .proto files: which messages, calls and fields there are, and whether a message fits.
//!
//! A file is compiled with its imports when a plan is made (`protox`, so no `protoc` is needed). The plan keeps their
//! texts, so that a stored run records its schema, and each worker compiles them again.
//! Messages are written and checked as JSON in protobuf's own mapping, with the names of the .proto file; 64-bit
//! numbers are JSON numbers, and fields that are 0 or empty are present.
//! Not here: the wire format (`bots::protobuf`).

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    ReflectMessage as _, SerializeOptions,
};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::vocabulary;

/// More files than that are a slip of the keyboard.
const FILES_MOST: usize = 1000;
/// What the compiler brings with it.
const OWN_IMPORTS: &str = "google/protobuf/";
/// Messages of that package have a special JSON form, in which fields are not looked up.
const OWN_PACKAGE: &str = "google.protobuf.";

/// The texts of a .proto file and of those that it imports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtoFiles {
    /// the file itself first
    pub files: Vec<ProtoFile>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtoFile {
    /// as it is imported
    pub name: String,
    /// what it holds
    pub text: String,
}

/// The types of a .proto file and of those that it imports.
#[derive(Clone, Debug)]
pub struct Schema {
    pool: DescriptorPool,
}

/// Why a schema cannot be used as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The file, or one that it imports, cannot be read or is wrong.
    #[error("{0}")]
    File(String),
    /// No such message; the name has its package before it.
    #[error("the schema has no message \"{name}\"; it has {}", .known.join(", "))]
    NoMessage {
        /// as given
        name: String,
        /// those that there are
        known: Vec<String>,
    },
    /// No such call.
    #[error("the schema has no call \"{name}\"; it has {}", listed(.known, "none"))]
    NoMethod {
        /// as given
        name: String,
        /// those that there are
        known: Vec<String>,
    },
    /// A call that is no one message for another.
    #[error(
        "{name} {streams}, and Stepladder calls methods that take one message and give one reply; {}",
        unary_words(.unary)
    )]
    Streams {
        /// of the call
        name: String,
        /// `replies with a stream of messages`
        streams: &'static str,
        /// calls of the same service that can be made
        unary: Vec<String>,
    },
    /// A field that a message of proto2 must have, and that is left out.
    #[error(
        "the message lacks {field}, which the schema requires, so that no server would read it; give it a value"
    )]
    Required {
        /// full name of the field
        field: String,
    },
    /// No such field in a message.
    #[error("{message} has no field \"{field}\"; it has {}", listed(.known, "none"))]
    NoField {
        /// name of the message
        message: String,
        /// as given
        field: String,
        /// those that there are
        known: Vec<String>,
    },
    /// Something is looked for below a field that has nothing below it.
    #[error("{message}.{field} is no message, so nothing is below it")]
    NotAMessage {
        /// name of the message
        message: String,
        /// name of the field
        field: String,
    },
    /// A list in which something else than an index is looked for.
    #[error("{message}.{field} is a list, so \"{step}\" has to be an index, from 0")]
    NotAnIndex {
        /// name of the message
        message: String,
        /// name of the field
        field: String,
        /// as given
        step: String,
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

fn unary_words(unary: &[String]) -> String {
    match unary {
        [] => "its service has no such method".to_owned(),
        _ => format!("of its service these can be called: {}", unary.join(", ")),
    }
}

fn listed(names: &[String], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { names.join(", ") }
}

impl SchemaError {
    /// The name that was probably meant.
    pub fn nearest(&self) -> Option<String> {
        let (name, known) = match self {
            SchemaError::NoMessage { name, known } | SchemaError::NoMethod { name, known } => (name, known),
            SchemaError::NoField { field, known, .. } => (field, known),
            _ => return None,
        };
        let last = |name: &str| name.rsplit(['.', '/']).next().unwrap_or_default().to_lowercase();
        let whole = vocabulary::nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        // A name without its package, or with a different one.
        let by_last = || {
            let lasts: Vec<String> = known.iter().map(|name| last(name)).collect();
            let found = vocabulary::nearest(&last(name), lasts.iter().map(String::as_str))?;
            let at = lasts.iter().position(|last| last == found)?;
            Some(known[at].clone())
        };
        whole.or_else(by_last)
    }
}

impl ProtoFiles {
    /// A text that came with the program.
    pub fn of_text(name: &str, text: &str) -> ProtoFiles {
        ProtoFiles { files: vec![ProtoFile { name: name.to_owned(), text: text.to_owned() }] }
    }

    /// Reads a file with `read`, and its imports, which are searched for beside it. Errors: `File`.
    pub fn read(path: &Path, read: &dyn Fn(&Path) -> io::Result<String>) -> Result<ProtoFiles, SchemaError> {
        let unreadable = |path: &Path, error: io::Error| {
            SchemaError::File(format!("{}: {error}; check the path", path.display()))
        };
        let directory = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = read(path).map_err(|error| unreadable(path, error))?;
        let mut files = vec![ProtoFile { name: name.clone(), text }];
        let mut seen = BTreeSet::from([name]);
        let mut at = 0;
        while at < files.len() {
            let ProtoFile { name, text } = &files[at];
            let importing = name.clone();
            let parsed = File::from_source(name, text).map_err(|error| of_compiler(name, &error))?;
            for import in parsed.file_descriptor_proto().dependency.clone() {
                if !seen.insert(import.clone()) {
                    continue;
                }
                let path = directory.join(&import);
                match read(&path) {
                    Ok(text) => files.push(ProtoFile { name: import, text }),
                    Err(_) if import.starts_with(OWN_IMPORTS) => {}
                    Err(error) => {
                        return Err(SchemaError::File(format!(
                            "{importing} imports \"{import}\", which is looked for beside {}: {}: {error}",
                            files[0].name,
                            path.display()
                        )));
                    }
                }
            }
            if files.len() > FILES_MOST {
                return Err(SchemaError::File(format!("more than {FILES_MOST} files are imported")));
            }
            at += 1;
        }
        Ok(ProtoFiles { files })
    }
}

/// With the place in the file, on one line. `name`: of the file that was compiled, where the compiler names none.
fn of_compiler(name: &str, error: &protox::Error) -> SchemaError {
    let text = format!("{error:?}");
    let text: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = text.join(" ");
    SchemaError::File(if text.contains(".proto:") { text } else { format!("{name}: {text}") })
}

impl FileResolver for ProtoFiles {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.files.iter().find(|file| file.name == name) {
            Some(file) => File::from_source(name, &file.text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

impl Schema {
    /// Compiles files that were read. Errors: `File`.
    pub fn compile(files: &ProtoFiles) -> Result<Schema, SchemaError> {
        let mut resolver = ChainFileResolver::new();
        resolver.add(files.clone());
        resolver.add(GoogleFileResolver::new());
        let mut compiler = protox::Compiler::with_file_resolver(resolver);
        let root = files.files.first().map_or("", |file| file.name.as_str());
        compiler.open_file(root).map_err(|error| of_compiler(root, &error))?;
        Ok(Schema { pool: compiler.descriptor_pool() })
    }

    /// The same of a text that came with the program.
    pub fn of_text(name: &str, text: &str) -> Result<Schema, SchemaError> {
        Schema::compile(&ProtoFiles::of_text(name, text))
    }

    /// The message of that name, with its package or, where that is clear, without. Errors: `NoMessage`.
    pub fn message(&self, name: &str) -> Result<MessageDescriptor, SchemaError> {
        let is_own = |message: &MessageDescriptor| {
            !message.is_map_entry() && !message.full_name().starts_with("google.")
        };
        let own = || self.pool.all_messages().filter(is_own);
        let mut named = own().filter(|message| message.full_name() == name || message.name() == name);
        let whole = self.pool.get_message_by_name(name);
        whole.or_else(|| named.next().filter(|_| named.next().is_none())).ok_or_else(|| {
            let known = own().map(|message| message.full_name().to_owned()).collect();
            SchemaError::NoMessage { name: name.to_owned(), known }
        })
    }

    /// The call of that name, as `package.Service/Method`. Errors: `NoMethod`, `Streams`.
    pub fn method(&self, name: &str) -> Result<MethodDescriptor, SchemaError> {
        let name = name.trim_start_matches('/');
        let all = || self.pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        let full_name =
            |method: &MethodDescriptor| format!("{}/{}", method.parent_service().full_name(), method.name());
        let found = all().find(|method| full_name(method) == name).ok_or_else(|| {
            let known = all().map(|method| full_name(&method)).collect();
            SchemaError::NoMethod { name: name.to_owned(), known }
        })?;
        let Some(streams) = streams(&found) else { return Ok(found) };
        let methods: Vec<MethodDescriptor> = found.parent_service().methods().collect();
        let unary = methods.iter().filter(|method| streams_nothing(method)).map(full_name).collect();
        Err(SchemaError::Streams { name: name.to_owned(), streams, unary })
    }
}

/// What of a call comes as a stream; `None`: one message is answered with one.
fn streams(method: &MethodDescriptor) -> Option<&'static str> {
    match (method.is_client_streaming(), method.is_server_streaming()) {
        (false, false) => None,
        (false, true) => Some("replies with a stream of messages"),
        (true, false) => Some("takes a stream of messages"),
        (true, true) => Some("takes a stream of messages and replies with another"),
    }
}

fn streams_nothing(method: &MethodDescriptor) -> bool {
    streams(method).is_none()
}

/// The field of that name, as in the schema or as in JSON. Errors: `NoField`.
pub fn field(message: &MessageDescriptor, name: &str) -> Result<FieldDescriptor, SchemaError> {
    let found = message.get_field_by_name(name).or_else(|| message.get_field_by_json_name(name));
    found.ok_or_else(|| {
        let known = message.fields().map(|field| field.name().to_owned()).collect();
        let (message, field) = (message.full_name().to_owned(), name.to_owned());
        SchemaError::NoField { message, field, known }
    })
}

/// A message from its JSON. Errors: `NoField`, `Value`.
pub fn message_of(message: &MessageDescriptor, json: &Value) -> Result<DynamicMessage, SchemaError> {
    refuse_unknown_fields(message, json)?;
    DynamicMessage::deserialize(message.clone(), json).map_err(|error| value_error(message, error))
}

fn value_error(message: &MessageDescriptor, why: impl ToString) -> SchemaError {
    SchemaError::Value { message: message.full_name().to_owned(), why: why.to_string() }
}

/// Whether a message, and every one in it, has the fields that proto2 requires. `put_later`: the way of names to a field that
/// it gets when it is sent, such as `header.id`. Errors: `Required`.
pub fn refuse_missing(message: &DynamicMessage, put_later: Option<&str>) -> Result<(), SchemaError> {
    for field in message.descriptor().fields() {
        let below = put_later.and_then(|names| {
            let (first, rest) = names.split_once('.').unwrap_or((names, ""));
            (first == field.name() || first == field.json_name()).then_some(rest)
        });
        let has = message.has_field(&field);
        if !has && below.is_none() {
            if field.cardinality() == Cardinality::Required {
                return Err(SchemaError::Required { field: field.full_name().to_owned() });
            }
            continue;
        }
        // A value filled in later goes into an empty message if there is none yet.
        match &*message.get_field(&field) {
            prost_reflect::Value::Message(inner) => {
                refuse_missing(inner, below.filter(|names| !names.is_empty()))?;
            }
            prost_reflect::Value::List(items) => {
                let messages = items.iter().filter_map(prost_reflect::Value::as_message);
                messages.into_iter().try_for_each(|inner| refuse_missing(inner, None))?;
            }
            prost_reflect::Value::Map(entries) => {
                let messages = entries.values().filter_map(prost_reflect::Value::as_message);
                messages.into_iter().try_for_each(|inner| refuse_missing(inner, None))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Told before the decoder tells it, with the names that there are.
fn refuse_unknown_fields(message: &MessageDescriptor, json: &Value) -> Result<(), SchemaError> {
    let Value::Object(fields) = json else { return Ok(()) };
    if message.full_name().starts_with(OWN_PACKAGE) {
        return Ok(());
    }
    for (name, value) in fields {
        let field = field(message, name)?;
        let inner = match field.kind() {
            Kind::Message(entry) if field.is_map() => match entry.map_entry_value_field().kind() {
                Kind::Message(inner) => inner,
                _ => continue,
            },
            Kind::Message(inner) => inner,
            _ => continue,
        };
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| refuse_unknown_fields(&inner, item))?,
            Value::Object(entries) if field.is_map() => {
                entries.values().try_for_each(|value| refuse_unknown_fields(&inner, value))?;
            }
            value => refuse_unknown_fields(&inner, value)?,
        }
    }
    Ok(())
}

/// JSON with the variables in its texts replaced; `value_of` gives the text of a name. Braces around anything else stay.
pub fn filled(json: &Value, value_of: &dyn Fn(&str) -> Option<String>) -> Value {
    match json {
        Value::String(text) => Value::String(filled_text(text, value_of)),
        Value::Array(items) => items.iter().map(|item| filled(item, value_of)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), filled(value, value_of))).collect()
        }
        other => other.clone(),
    }
}

fn filled_text(text: &str, value_of: &dyn Fn(&str) -> Option<String>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        let inside = &rest[at + 1..];
        let known = inside.find('}').and_then(|end| Some((value_of(&inside[..end])?, end)));
        rest = match known {
            Some((value, end)) => {
                out.push_str(&value);
                &inside[end + 1..]
            }
            None => {
                out.push('{');
                inside
            }
        };
    }
    out.push_str(rest);
    out
}

/// Whether a way of names such as `header.id` leads to a field, and to one that can hold the number of a request. Errors:
/// `NoField`, `NotAMessage`, `NotAnId`.
pub fn path_fits(message: &MessageDescriptor, names: &str, is_id: bool) -> Result<(), SchemaError> {
    let mut holder = message.clone();
    let mut names_left = names.split('.').peekable();
    while let Some(name) = names_left.next() {
        let field = field(&holder, name)?;
        match (field.kind(), names_left.peek()) {
            (Kind::Message(inner), Some(_)) if !field.is_list() => holder = inner,
            (_, Some(_)) => {
                let (message, field) = (holder.full_name().to_owned(), name.to_owned());
                return Err(SchemaError::NotAMessage { message, field });
            }
            (kind, None) => {
                let is_number = !matches!(kind, Kind::Message(_) | Kind::Double | Kind::Float | Kind::Bytes);
                if is_id && (!is_number || field.is_list()) {
                    let (message, field) = (message.full_name().to_owned(), names.to_owned());
                    return Err(SchemaError::NotAnId { message, field });
                }
            }
        }
    }
    Ok(())
}

/// A message as JSON, in which replies are checked and captured.
pub fn json_of(message: &DynamicMessage) -> Value {
    let options = SerializeOptions::new()
        .stringify_64_bit_integers(false)
        .use_proto_field_name(true)
        .skip_default_fields(false);
    // Only an `Any` of an unknown type has no JSON.
    message.serialize_with_options(serde_json::value::Serializer, &options).unwrap_or(Value::Null)
}

/// Where a JSON pointer leads in a message of some type.
#[derive(Debug)]
pub struct Spot {
    /// the pointer with the names of the .proto file
    pub pointer: String,
    /// what holds the value, the name of its field, and how it is stored there; `None`: it cannot be looked up
    holder: Option<(MessageDescriptor, String, Inside)>,
}

/// How a value is stored in its field.
#[derive(Clone, Debug)]
enum Inside {
    Whole,
    Item,
    Entry(String),
}

/// What is below a step of a pointer.
enum Below {
    Message(MessageDescriptor),
    List(MessageDescriptor, FieldDescriptor),
    Map(MessageDescriptor, FieldDescriptor),
    Nothing(MessageDescriptor, FieldDescriptor),
    /// of a type with a special JSON form
    Anything,
}

impl Below {
    fn one(holder: &MessageDescriptor, field: &FieldDescriptor, kind: Kind) -> Below {
        match kind {
            Kind::Message(inner) if inner.full_name().starts_with(OWN_PACKAGE) => Below::Anything,
            Kind::Message(inner) => Below::Message(inner),
            _ => Below::Nothing(holder.clone(), field.clone()),
        }
    }
}

impl Spot {
    /// Errors: `NoField`, `NotAMessage`, `NotAnIndex`.
    pub fn of(message: &MessageDescriptor, pointer: &str) -> Result<Spot, SchemaError> {
        let mut spot = Spot { pointer: String::new(), holder: None };
        let mut below = Below::Message(message.clone());
        for step in pointer.split('/').skip(1) {
            let name = step.replace("~1", "/").replace("~0", "~");
            let (written, next) = match below {
                Below::Message(holder) => {
                    let field = field(&holder, &name)?;
                    spot.holder = Some((holder.clone(), field.name().to_owned(), Inside::Whole));
                    let written = field.name().to_owned();
                    let next = if field.is_map() {
                        Below::Map(holder, field)
                    } else if field.is_list() {
                        Below::List(holder, field)
                    } else {
                        Below::one(&holder, &field, field.kind())
                    };
                    (written, next)
                }
                Below::List(holder, field) => {
                    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_digit()) {
                        let message = holder.full_name().to_owned();
                        let field = field.name().to_owned();
                        return Err(SchemaError::NotAnIndex { message, field, step: name });
                    }
                    spot.holder = Some((holder.clone(), field.name().to_owned(), Inside::Item));
                    (step.to_owned(), Below::one(&holder, &field, field.kind()))
                }
                Below::Map(holder, field) => {
                    let inside = Inside::Entry(name);
                    spot.holder = Some((holder.clone(), field.name().to_owned(), inside));
                    let kind = match field.kind() {
                        Kind::Message(entry) => entry.map_entry_value_field().kind(),
                        kind => kind,
                    };
                    (step.to_owned(), Below::one(&holder, &field, kind))
                }
                Below::Nothing(holder, field) => {
                    let message = holder.full_name().to_owned();
                    return Err(SchemaError::NotAMessage { message, field: field.name().to_owned() });
                }
                Below::Anything => {
                    spot.holder = None;
                    (step.to_owned(), Below::Anything)
                }
            };
            spot.pointer = format!("{}/{written}", spot.pointer);
            below = next;
        }
        Ok(spot)
    }

    /// A value that is to stand there, in the form in which replies have it (`"5"` is 5 in a number's field). Errors: it does
    /// not fit there.
    pub fn value(&self, value: &Value) -> Result<Value, SchemaError> {
        let Some((holder, field, inside)) = &self.holder else { return Ok(value.clone()) };
        let (whole, below) = match inside {
            Inside::Whole => (value.clone(), String::new()),
            Inside::Item => (Value::Array(vec![value.clone()]), "/0".to_owned()),
            Inside::Entry(key) => {
                let below = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
                (Value::Object([(key.clone(), value.clone())].into_iter().collect()), below)
            }
        };
        let around = Value::Object([(field.clone(), whole)].into_iter().collect());
        let read = json_of(&message_of(holder, &around)?);
        let at = format!("/{field}{below}");
        let found = read.pointer(&at).cloned();
        found.ok_or_else(|| value_error(holder, format!("{field} never is {value}")))
    }
}

#[cfg(test)]
mod tests;
