//! Where a protocol's messages carry what a client needs from each: the number of its request, and whether it is an
//! error.
//!
//! Compiled from names once, so that a message is searched by field numbers and never decoded as a whole.

use super::wire::{Fields, Malformed, Value, put_key, put_sized, put_varint, unzigzag, zigzag};

/// How a field's number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// int32, int64, uint32, uint64, bool, enums
    Varint,
    /// sint32, sint64
    Zigzag,
    /// fixed64, sfixed64
    Fixed64,
    /// fixed32
    Fixed32,
    /// sfixed32
    Sfixed32,
    /// double
    Double,
    /// float
    Float,
    /// string, bytes
    Bytes,
    /// a message
    Message,
}

/// A way to a field: its numbers from the outermost message on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// never empty, except for a path to the message itself
    pub numbers: Vec<u32>,
    /// of the last
    pub encoding: Encoding,
}

/// The kind of value at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found<'a> {
    /// of a whole type; one beyond i64 is cut
    Whole(i64),
    /// of type double or float
    Float(f64),
    /// a text, bytes or a message
    Bytes(&'a [u8]),
}

impl Path {
    /// The last value there. Errors: the message is malformed.
    pub fn find<'a>(&self, message: &'a [u8]) -> Result<Option<Found<'a>>, Malformed> {
        let mut found = None;
        self.each(message, |one| found = Some(one))?;
        Ok(found)
    }

    /// Calls `tell` with all values there, in their order. Errors: the message is malformed.
    pub fn each<'a>(&self, message: &'a [u8], mut tell: impl FnMut(Found<'a>)) -> Result<(), Malformed> {
        walk(&self.numbers, self.encoding, message, &mut tell)
    }
}

fn walk<'a>(
    numbers: &[u32],
    encoding: Encoding,
    message: &'a [u8],
    tell: &mut impl FnMut(Found<'a>),
) -> Result<(), Malformed> {
    let [first, rest @ ..] = numbers else {
        tell(Found::Bytes(message));
        return Ok(());
    };
    for field in Fields::of(message) {
        let (number, value) = field?;
        if number != *first {
            continue;
        }
        match (value, rest) {
            (Value::Bytes(bytes), [_, ..]) => walk(rest, encoding, bytes, tell)?,
            (_, [_, ..]) => return Err(Malformed),
            (value, []) => tell(read(encoding, value)?),
        }
    }
    Ok(())
}

fn read(encoding: Encoding, value: Value<'_>) -> Result<Found<'_>, Malformed> {
    Ok(match (encoding, value) {
        (Encoding::Varint, Value::Varint(value)) => Found::Whole(value as i64),
        (Encoding::Zigzag, Value::Varint(value)) => Found::Whole(unzigzag(value)),
        (Encoding::Fixed64, Value::Fixed64(value)) => Found::Whole(value as i64),
        (Encoding::Fixed32, Value::Fixed32(value)) => Found::Whole(i64::from(value)),
        (Encoding::Sfixed32, Value::Fixed32(value)) => Found::Whole(i64::from(value as i32)),
        (Encoding::Double, Value::Fixed64(value)) => Found::Float(f64::from_bits(value)),
        (Encoding::Float, Value::Fixed32(value)) => Found::Float(f64::from(f32::from_bits(value))),
        (Encoding::Bytes | Encoding::Message, Value::Bytes(bytes)) => Found::Bytes(bytes),
        _ => return Err(Malformed),
    })
}

impl Found<'_> {
    /// Whether it equals the default of an absent field.
    fn is_default(&self) -> bool {
        match self {
            Found::Whole(value) => *value == 0,
            Found::Float(value) => *value == 0.0,
            Found::Bytes(bytes) => bytes.is_empty(),
        }
    }
}

/// Of one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// a request's number; `None`: replies come in the order of the requests
    pub id: Option<Ids>,
    /// absent, 0 or empty in a reply that is right; a number else counts as a status
    pub error: Option<Path>,
}

/// The field of a request's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// in the request
    pub request: Path,
    /// in its reply
    pub reply: Path,
}

/// Of a reply without an error.
const RIGHT: u16 = 200;
/// Of an error that is no number. No status of HTTP, so that no check takes it for right.
const ERROR: u16 = 0;

impl Envelope {
    /// Appends the number to a request. Behind the rest, where it counts: of a field that comes twice the last is taken, and
    /// messages that come twice are merged.
    pub fn put_id(&self, out: &mut Vec<u8>, id: u64) {
        if let Some(Ids { request, .. }) = &self.id {
            put(&request.numbers, request.encoding, out, id);
        }
    }

    /// The number that a reply carries; `None`: it has none. Errors: it is malformed.
    pub fn id_of(&self, reply: &[u8]) -> Result<Option<u64>, Malformed> {
        let Some(Ids { reply: path, .. }) = &self.id else { return Ok(None) };
        Ok(match path.find(reply)? {
            Some(Found::Whole(id)) => Some(id as u64),
            Some(Found::Bytes(text)) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
            Some(Found::Float(_)) | None => None,
        })
    }

    /// The status of a reply. Errors: it is malformed.
    pub fn status_of(&self, reply: &[u8]) -> Result<u16, Malformed> {
        let Some(path) = &self.error else { return Ok(RIGHT) };
        Ok(match path.find(reply)? {
            None => RIGHT,
            // A present message is an error even if it is empty.
            Some(found) if found.is_default() && path.encoding != Encoding::Message => RIGHT,
            Some(Found::Whole(status)) => u16::try_from(status).unwrap_or(ERROR),
            Some(Found::Float(_) | Found::Bytes(_)) => ERROR,
        })
    }
}

fn put(numbers: &[u32], encoding: Encoding, out: &mut Vec<u8>, id: u64) {
    match numbers {
        [] => {}
        [number] => match encoding {
            Encoding::Varint => {
                put_key(out, *number, 0);
                put_varint(out, id);
            }
            Encoding::Zigzag => {
                put_key(out, *number, 0);
                put_varint(out, zigzag(id as i64));
            }
            Encoding::Fixed64 => {
                put_key(out, *number, 1);
                out.extend_from_slice(&id.to_le_bytes());
            }
            Encoding::Fixed32 | Encoding::Sfixed32 => {
                put_key(out, *number, 5);
                out.extend_from_slice(&(id as u32).to_le_bytes());
            }
            Encoding::Bytes => {
                put_key(out, *number, 2);
                put_sized(out, |out| out.extend_from_slice(id.to_string().as_bytes()));
            }
            // Refused when the envelope is compiled.
            Encoding::Double | Encoding::Float | Encoding::Message => {}
        },
        [number, rest @ ..] => {
            put_key(out, *number, 2);
            put_sized(out, |out| put(rest, encoding, out, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(numbers: &[u32], encoding: Encoding) -> Path {
        Path { numbers: numbers.to_vec(), encoding }
    }

    #[test]
    fn a_number_that_is_put_is_found_in_every_encoding_and_depth() {
        for encoding in
            [Encoding::Varint, Encoding::Zigzag, Encoding::Fixed64, Encoding::Fixed32, Encoding::Bytes]
        {
            for numbers in [&[1][..], &[3, 200], &[1, 2, 3]] {
                let path = path(numbers, encoding);
                let ids = Ids { request: path.clone(), reply: path };
                let envelope = Envelope { id: Some(ids), error: None };
                for id in [1, 127, 128, 4_000_000_000] {
                    // An earlier number in the message, which no longer counts.
                    let mut message = vec![0x7a, 1, 0];
                    envelope.put_id(&mut message, 5);
                    envelope.put_id(&mut message, id);
                    assert_eq!(envelope.id_of(&message), Ok(Some(id)), "{encoding:?} {numbers:?}");
                }
            }
        }
    }

    #[test]
    fn an_error_is_what_is_there_and_a_number_is_its_status() {
        let envelope = |encoding| Envelope { id: None, error: Some(path(&[2, 1], encoding)) };
        let check = |encoding, reply: &[u8], status| {
            assert_eq!(envelope(encoding).status_of(reply), Ok(status), "{encoding:?} {reply:02x?}");
        };
        check(Encoding::Varint, &[], 200);
        check(Encoding::Varint, &[0x12, 0], 200);
        check(Encoding::Varint, &[0x12, 2, 8, 0], 200);
        check(Encoding::Varint, &[0x12, 3, 8, 0x94, 3], 404);
        check(Encoding::Varint, &[0x12, 4, 8, 0xff, 0xff, 0x7f], 0);
        check(Encoding::Bytes, &[0x12, 2, 0x0a, 0], 200);
        check(Encoding::Bytes, &[0x12, 3, 0x0a, 1, b'x'], 0);
        check(Encoding::Message, &[0x12, 2, 0x0a, 0], 0);
        assert_eq!(envelope(Encoding::Varint).status_of(&[0x10, 1]), Err(Malformed), "no message at 2");
        assert_eq!(envelope(Encoding::Varint).status_of(&[0x12, 3, 0x0a, 1, b'x']), Err(Malformed));
    }
}
