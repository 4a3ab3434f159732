//! Any of the default types, for maps whose values differ in type.

use super::{DataError, Deserialize, Serialize, type_id};

/// A value of any default type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Object {
    Null,
    Byte(i8),
    Boolean(bool),
    Short(i16),
    Integer(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    String(String),
    ByteArray(Vec<u8>),
    BooleanArray(Vec<bool>),
    ShortArray(Vec<i16>),
    IntegerArray(Vec<i32>),
    LongArray(Vec<i64>),
    FloatArray(Vec<f32>),
    DoubleArray(Vec<f64>),
    StringArray(Vec<String>),
}

/// Applies `$call` to what an object holds.
macro_rules! each {
    ($object:expr, $value:ident => $call:expr) => {
        match $object {
            Object::Null => {
                let $value = &();
                $call
            }
            Object::Byte($value) => $call,
            Object::Boolean($value) => $call,
            Object::Short($value) => $call,
            Object::Integer($value) => $call,
            Object::Long($value) => $call,
            Object::Float($value) => $call,
            Object::Double($value) => $call,
            Object::String($value) => $call,
            Object::ByteArray($value) => $call,
            Object::BooleanArray($value) => $call,
            Object::ShortArray($value) => $call,
            Object::IntegerArray($value) => $call,
            Object::LongArray($value) => $call,
            Object::FloatArray($value) => $call,
            Object::DoubleArray($value) => $call,
            Object::StringArray($value) => $call,
        }
    };
}

impl Serialize for Object {
    fn type_id(&self) -> i32 {
        each!(self, value => value.type_id())
    }

    fn write(&self, out: &mut Vec<u8>) {
        each!(self, value => value.write(out));
    }

    fn content_bytes(&self) -> usize {
        each!(self, value => value.content_bytes())
    }
}

impl Deserialize for Object {
    fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
        Ok(match found {
            type_id::NULL => <()>::read(found, content).map(|()| Object::Null)?,
            type_id::BYTE => Object::Byte(Deserialize::read(found, content)?),
            type_id::BOOLEAN => Object::Boolean(Deserialize::read(found, content)?),
            type_id::SHORT => Object::Short(Deserialize::read(found, content)?),
            type_id::INTEGER => Object::Integer(Deserialize::read(found, content)?),
            type_id::LONG => Object::Long(Deserialize::read(found, content)?),
            type_id::FLOAT => Object::Float(Deserialize::read(found, content)?),
            type_id::DOUBLE => Object::Double(Deserialize::read(found, content)?),
            type_id::STRING => Object::String(Deserialize::read(found, content)?),
            type_id::BYTE_ARRAY => Object::ByteArray(Deserialize::read(found, content)?),
            type_id::BOOLEAN_ARRAY => Object::BooleanArray(Deserialize::read(found, content)?),
            type_id::SHORT_ARRAY => Object::ShortArray(Deserialize::read(found, content)?),
            type_id::INTEGER_ARRAY => Object::IntegerArray(Deserialize::read(found, content)?),
            type_id::LONG_ARRAY => Object::LongArray(Deserialize::read(found, content)?),
            type_id::FLOAT_ARRAY => Object::FloatArray(Deserialize::read(found, content)?),
            type_id::DOUBLE_ARRAY => Object::DoubleArray(Deserialize::read(found, content)?),
            type_id::STRING_ARRAY => Object::StringArray(Deserialize::read(found, content)?),
            _ => return Err(DataError::Type { found, wanted: "a default type" }),
        })
    }
}
