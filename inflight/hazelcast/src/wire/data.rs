//! Keys and values as the members store them.
//!
//! Serialised: a partition hash (int32, 0 unless the key asks for a partition of its own), a type id (int32) and the
//! content, all big-endian. A member stores a value unchanged, so that any client with the same default types reads it.
//! Supported are the default types that all official clients share; `Object` holds any of them, for maps of mixed
//! types. Not here: Compact, Portable, JSON and custom serialisation. What this crate does not know stays readable as
//! `Data`.
//! Source: Open Binary Client Protocol 2.x, section 6.2; Hazelcast Reference Manual, "Serialization", default types.

mod object;
mod types;

use bytes::Bytes;

pub use object::Object;

use super::hash::{murmur3, partition_of};

/// Partition hash and type id in front of every content.
pub const OVERHEAD_BYTES: usize = 8;

/// Ids of the default types.
pub mod type_id {
    #![allow(missing_docs)]
    pub const NULL: i32 = 0;
    pub const BYTE: i32 = -3;
    pub const BOOLEAN: i32 = -4;
    pub const SHORT: i32 = -6;
    pub const INTEGER: i32 = -7;
    pub const LONG: i32 = -8;
    pub const FLOAT: i32 = -9;
    pub const DOUBLE: i32 = -10;
    pub const STRING: i32 = -11;
    pub const BYTE_ARRAY: i32 = -12;
    pub const BOOLEAN_ARRAY: i32 = -13;
    pub const SHORT_ARRAY: i32 = -15;
    pub const INTEGER_ARRAY: i32 = -16;
    pub const LONG_ARRAY: i32 = -17;
    pub const FLOAT_ARRAY: i32 = -18;
    pub const DOUBLE_ARRAY: i32 = -19;
    pub const STRING_ARRAY: i32 = -20;
}

/// A type with a serialised form.
pub trait Serialize {
    /// The type id in front.
    fn type_id(&self) -> i32;

    /// Appends the content, big-endian.
    fn write(&self, out: &mut Vec<u8>);

    /// Bytes that `write` will append, where they are cheap to tell; only a hint.
    fn content_bytes(&self) -> usize {
        8
    }
}

/// A type that can be read out of its serialised form.
pub trait Deserialize: Sized {
    /// Reads `content`, which a member keeps under `type_id`. Errors: another type, or content that is none.
    fn read(type_id: i32, content: &[u8]) -> Result<Self, DataError>;
}

/// Why serialised bytes are not of the requested type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// The member keeps something of another type under this key.
    #[error(
        "a value of type {found}, where {wanted} was expected; read it as that type, as Object or as Data"
    )]
    Type {
        /// its type id
        found: i32,
        /// the requested type
        wanted: &'static str,
    },
    /// There is no value where one was requested.
    #[error("null, where {0} was expected; read it as Option")]
    Null(&'static str),
    /// The content is shorter than it says, or longer.
    #[error("a value of type {0} whose content is cut short or has bytes left over")]
    Content(i32),
    /// A string that is not UTF-8.
    #[error("a string that is not UTF-8")]
    NotUtf8,
    /// Fewer bytes than partition hash and type id take.
    #[error("{0} bytes, where a serialised value takes at least 8")]
    TooShort(usize),
}

/// A serialised key or value. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Data(Bytes);

impl Data {
    /// Serialises `value`.
    pub fn of<V: Serialize + ?Sized>(value: &V) -> Self {
        let mut out = Vec::with_capacity(OVERHEAD_BYTES + value.content_bytes());
        out.extend_from_slice(&0i32.to_be_bytes());
        out.extend_from_slice(&value.type_id().to_be_bytes());
        value.write(&mut out);
        Data(out.into())
    }

    /// Bytes that are serialised already. Errors: `TooShort`.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, DataError> {
        let bytes = bytes.into();
        if bytes.len() < OVERHEAD_BYTES { Err(DataError::TooShort(bytes.len())) } else { Ok(Data(bytes)) }
    }

    /// All of it.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Reads it. Errors: see `Deserialize`.
    pub fn read<V: Deserialize>(&self) -> Result<V, DataError> {
        read(&self.0)
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.read::<Object>() {
            Ok(object) => write!(f, "Data({object:?})"),
            Err(_) => write!(f, "Data({} bytes)", self.0.len()),
        }
    }
}

/// A string's length, before its bytes.
const LENGTH_BYTES: usize = 4;

/// A serialised string's bytes, not copied and not checked to be UTF-8; `None`: it is something else.
pub fn text(bytes: &[u8]) -> Option<&[u8]> {
    let (front, content) = bytes.split_first_chunk::<OVERHEAD_BYTES>()?;
    let (length, text) = content.split_first_chunk::<LENGTH_BYTES>()?;
    let is_string = front[4..] == type_id::STRING.to_be_bytes();
    (is_string && u32::from_be_bytes(*length) as usize == text.len()).then_some(text)
}

/// Reads a serialised value out of borrowed bytes. Errors: see `Deserialize`.
pub fn read<V: Deserialize>(bytes: &[u8]) -> Result<V, DataError> {
    let Some((front, content)) = bytes.split_first_chunk::<OVERHEAD_BYTES>() else {
        return Err(DataError::TooShort(bytes.len()));
    };
    let type_id = i32::from_be_bytes([front[4], front[5], front[6], front[7]]);
    V::read(type_id, content)
}

/// A serialised key and its partition hash, reckoned once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    data: Data,
    hash: i32,
}

impl Key {
    /// Serialises `key`.
    pub fn of<K: Serialize + ?Sized>(key: &K) -> Self {
        Key::from(Data::of(key))
    }

    /// All bytes of it.
    pub fn bytes(&self) -> &Bytes {
        &self.data.0
    }

    /// The partition that holds it, in `0..partition_count`.
    pub fn partition(&self, partition_count: u32) -> u32 {
        partition_of(self.hash, partition_count)
    }

    /// The hash that decides about its partition.
    pub fn partition_hash(&self) -> i32 {
        self.hash
    }
}

impl From<Data> for Key {
    fn from(data: Data) -> Self {
        let (stated, from_type_id) = data.0.split_at(4);
        let stated = i32::from_be_bytes([stated[0], stated[1], stated[2], stated[3]]);
        let hash = if stated == 0 { murmur3(&from_type_id[4..]) } else { stated };
        Key { data, hash }
    }
}

impl Deserialize for Data {
    fn read(type_id: i32, content: &[u8]) -> Result<Self, DataError> {
        let mut out = Vec::with_capacity(OVERHEAD_BYTES + content.len());
        out.extend_from_slice(&0i32.to_be_bytes());
        out.extend_from_slice(&type_id.to_be_bytes());
        out.extend_from_slice(content);
        Ok(Data(out.into()))
    }
}

#[cfg(test)]
mod tests;
