//! The default types, each with its id and layout.

use bytes::Bytes;

use super::{DataError, Deserialize, Serialize, type_id};

/// A type of fixed size: its id, and its name in messages.
macro_rules! fixed {
    ($($rust:ty, $id:ident, $name:literal;)*) => {$(
        impl Serialize for $rust {
            fn type_id(&self) -> i32 {
                type_id::$id
            }

            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }

        impl Deserialize for $rust {
            fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
                expect(found, type_id::$id, $name)?;
                let bytes = content.try_into().map_err(|_| DataError::Content(found))?;
                Ok(<$rust>::from_be_bytes(bytes))
            }
        }
    )*};
}

fixed! {
    i8, BYTE, "a byte";
    i16, SHORT, "a short";
    i32, INTEGER, "an int";
    i64, LONG, "a long";
    f32, FLOAT, "a float";
    f64, DOUBLE, "a double";
}

/// An array of a type of fixed size: how many (int32), then one after the other.
macro_rules! arrays {
    ($($rust:ty, $id:ident, $name:literal;)*) => {$(
        impl Serialize for [$rust] {
            fn type_id(&self) -> i32 {
                type_id::$id
            }

            fn write(&self, out: &mut Vec<u8>) {
                put_count(out, self.len());
                self.iter().for_each(|item| out.extend_from_slice(&item.to_be_bytes()));
            }

            fn content_bytes(&self) -> usize {
                4 + size_of_val(self)
            }
        }

        serialize_as_slice!(Vec<$rust>);

        impl Deserialize for Vec<$rust> {
            fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
                expect(found, type_id::$id, $name)?;
                let (count, items) = counted(found, content)?;
                let (items, rest) = items.as_chunks::<{ size_of::<$rust>() }>();
                if items.len() != count || !rest.is_empty() {
                    return Err(DataError::Content(found));
                }
                Ok(items.iter().map(|bytes| <$rust>::from_be_bytes(*bytes)).collect())
            }
        }
    )*};
}

/// What is written as what it dereferences to.
macro_rules! serialize_as_slice {
    ($($rust:ty),*) => {$(
        impl Serialize for $rust {
            fn type_id(&self) -> i32 {
                self[..].type_id()
            }

            fn write(&self, out: &mut Vec<u8>) {
                self[..].write(out);
            }

            fn content_bytes(&self) -> usize {
                self[..].content_bytes()
            }
        }
    )*};
}

arrays! {
    i16, SHORT_ARRAY, "an array of shorts";
    i32, INTEGER_ARRAY, "an array of ints";
    i64, LONG_ARRAY, "an array of longs";
    f32, FLOAT_ARRAY, "an array of floats";
    f64, DOUBLE_ARRAY, "an array of doubles";
}

serialize_as_slice!(String, Vec<u8>, Bytes, Vec<bool>, Vec<String>);

impl Serialize for bool {
    fn type_id(&self) -> i32 {
        type_id::BOOLEAN
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl Deserialize for bool {
    fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
        expect(found, type_id::BOOLEAN, "a boolean")?;
        match content {
            [byte] => Ok(*byte != 0),
            _ => Err(DataError::Content(found)),
        }
    }
}

impl Serialize for str {
    fn type_id(&self) -> i32 {
        type_id::STRING
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_count(out, self.len());
        out.extend_from_slice(self.as_bytes());
    }

    fn content_bytes(&self) -> usize {
        4 + self.len()
    }
}

impl Deserialize for String {
    fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
        expect(found, type_id::STRING, "a string")?;
        let (count, text) = counted(found, content)?;
        if text.len() != count {
            return Err(DataError::Content(found));
        }
        std::str::from_utf8(text).map(str::to_owned).map_err(|_| DataError::NotUtf8)
    }
}

impl Serialize for [u8] {
    fn type_id(&self) -> i32 {
        type_id::BYTE_ARRAY
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_count(out, self.len());
        out.extend_from_slice(self);
    }

    fn content_bytes(&self) -> usize {
        4 + self.len()
    }
}

impl Deserialize for Vec<u8> {
    fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
        expect(found, type_id::BYTE_ARRAY, "an array of bytes")?;
        let (count, bytes) = counted(found, content)?;
        if bytes.len() == count { Ok(bytes.to_vec()) } else { Err(DataError::Content(found)) }
    }
}

impl Deserialize for Bytes {
    fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
        Vec::<u8>::read(found, content).map(Bytes::from)
    }
}

impl Serialize for [bool] {
    fn type_id(&self) -> i32 {
        type_id::BOOLEAN_ARRAY
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_count(out, self.len());
        out.extend(self.iter().map(|item| u8::from(*item)));
    }
}

impl Deserialize for Vec<bool> {
    fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
        expect(found, type_id::BOOLEAN_ARRAY, "an array of booleans")?;
        let (count, items) = counted(found, content)?;
        if items.len() != count {
            return Err(DataError::Content(found));
        }
        Ok(items.iter().map(|byte| *byte != 0).collect())
    }
}

impl Serialize for [String] {
    fn type_id(&self) -> i32 {
        type_id::STRING_ARRAY
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_count(out, self.len());
        self.iter().for_each(|item| item.write(out));
    }
}

impl Deserialize for Vec<String> {
    fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
        expect(found, type_id::STRING_ARRAY, "an array of strings")?;
        let (count, mut rest) = counted(found, content)?;
        // Each takes at least four bytes: an impossible count reserves nothing.
        let mut items = Vec::with_capacity(count.min(rest.len() / 4));
        for _ in 0..count {
            let (bytes, after) = counted(found, rest)?;
            let (text, after) = after.split_at_checked(bytes).ok_or(DataError::Content(found))?;
            items.push(std::str::from_utf8(text).map_err(|_| DataError::NotUtf8)?.to_owned());
            rest = after;
        }
        if rest.is_empty() { Ok(items) } else { Err(DataError::Content(found)) }
    }
}

/// Null.
impl Serialize for () {
    fn type_id(&self) -> i32 {
        type_id::NULL
    }

    fn write(&self, _: &mut Vec<u8>) {}
}

impl Deserialize for () {
    fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
        if found != type_id::NULL {
            return Err(DataError::Type { found, wanted: "null" });
        }
        if content.is_empty() { Ok(()) } else { Err(DataError::Content(found)) }
    }
}

/// `None` is null.
impl<V: Serialize> Serialize for Option<V> {
    fn type_id(&self) -> i32 {
        self.as_ref().map_or(type_id::NULL, V::type_id)
    }

    fn write(&self, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn content_bytes(&self) -> usize {
        self.as_ref().map_or(0, V::content_bytes)
    }
}

impl<V: Deserialize> Deserialize for Option<V> {
    fn read(found: i32, content: &[u8]) -> Result<Self, DataError> {
        if found == type_id::NULL {
            <()>::read(found, content).map(|()| None)
        } else {
            V::read(found, content).map(Some)
        }
    }
}

impl<V: Serialize + ?Sized> Serialize for &V {
    fn type_id(&self) -> i32 {
        (**self).type_id()
    }

    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    fn content_bytes(&self) -> usize {
        (**self).content_bytes()
    }
}

fn expect(found: i32, wanted: i32, name: &'static str) -> Result<(), DataError> {
    match found {
        _ if found == wanted => Ok(()),
        type_id::NULL => Err(DataError::Null(name)),
        _ => Err(DataError::Type { found, wanted: name }),
    }
}

/// Counts beyond int32 cannot be said; a frame as long is refused before it is sent.
fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as i32).to_be_bytes());
}

/// A count in front, and what follows it. −1 means null, which no array of these types may be.
fn counted(type_id: i32, content: &[u8]) -> Result<(usize, &[u8]), DataError> {
    let (count, rest) = content.split_first_chunk::<4>().ok_or(DataError::Content(type_id))?;
    let count = usize::try_from(i32::from_be_bytes(*count)).map_err(|_| DataError::Content(type_id))?;
    Ok((count, rest))
}
