//! The Protocol Buffers wire format: reads fields one by one in place, and writes them.
//!
//! No schema and no allocation; the caller interprets the numbers. Every length is compared with the remaining bytes
//! before anything is read. Groups, long deprecated, are skipped to a bounded depth; no field of ours is one.
//! Source: protobuf.dev, "Encoding".

/// Unknown groups within each other; what the official parsers allow.
const GROUP_DEPTH_MAX: usize = 100;

const VARINT_BYTES_MAX: usize = 10;

/// The value of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64,
    Bytes(&'a [u8]),
    /// Skipped to its end.
    Group,
    Fixed32,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the message is cut off in the middle of a field")]
    CutOff,
    #[error("a varint has more than {VARINT_BYTES_MAX} bytes or 64 bits")]
    Varint,
    #[error("a field has the number 0 or one beyond 2^29 - 1")]
    FieldNumber,
    #[error("a field has wire type {0}, which does not exist")]
    WireType(u8),
    #[error("a group has no end, an end without a start, or more than {GROUP_DEPTH_MAX} groups around it")]
    Group,
    #[error("field {field} has another wire type than the schema says")]
    WrongType {
        /// Its number.
        field: u32,
    },
    #[error("field {field} is not UTF-8")]
    NotUtf8 {
        /// Its number.
        field: u32,
    },
}

/// The fields of a message that are still to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    pub(crate) value: Value<'a>,
}

impl<'a> Fields<'a> {
    /// The next field; None after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Field<'a>>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.key()?;
        let value = match wire_type {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed64)?,
            2 => Value::Bytes(self.sized()?),
            3 => self.skip_group(number).map(|()| Value::Group)?,
            5 => self.take(4).map(|_| Value::Fixed32)?,
            4 => return Err(Malformed::Group),
            other => return Err(Malformed::WireType(other)),
        };
        Ok(Some(Field { number, value }))
    }

    fn key(&mut self) -> Result<(u32, u8), Malformed> {
        let key = self.varint()?;
        let number = key >> 3;
        if number == 0 || number >= 1 << 29 {
            return Err(Malformed::FieldNumber);
        }
        Ok((number as u32, (key & 7) as u8))
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        if let [byte @ 0..=0x7f, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        let mut value = 0;
        for (at, byte) in self.0.iter().take(VARINT_BYTES_MAX).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                // Only one bit of the tenth byte is left.
                if at == VARINT_BYTES_MAX - 1 && *byte > 1 {
                    return Err(Malformed::Varint);
                }
                self.0 = &self.0[at + 1..];
                return Ok(value);
            }
        }
        Err(if self.0.len() < VARINT_BYTES_MAX { Malformed::CutOff } else { Malformed::Varint })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::CutOff)?;
        self.0 = rest;
        Ok(taken)
    }

    fn sized(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| Malformed::CutOff)?)
    }

    /// From after a group's start to after its end.
    fn skip_group(&mut self, number: u32) -> Result<(), Malformed> {
        let mut open = vec![number];
        while let Some(innermost) = open.last() {
            if self.0.is_empty() {
                return Err(Malformed::Group);
            }
            let (number, wire_type) = self.key()?;
            match wire_type {
                0 => drop(self.varint()?),
                1 => drop(self.take(8)?),
                2 => drop(self.sized()?),
                3 if open.len() < GROUP_DEPTH_MAX => open.push(number),
                4 if number == *innermost => drop(open.pop()),
                3 | 4 => return Err(Malformed::Group),
                5 => drop(self.take(4)?),
                other => return Err(Malformed::WireType(other)),
            }
        }
        Ok(())
    }
}

impl<'a> Field<'a> {
    pub(crate) fn whole(&self) -> Result<u64, Malformed> {
        match self.value {
            Value::Varint(value) => Ok(value),
            _ => Err(Malformed::WrongType { field: self.number }),
        }
    }

    /// Of type sint64.
    pub(crate) fn signed(&self) -> Result<i64, Malformed> {
        self.whole().map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Of type bytes, or a message.
    pub(crate) fn bytes(&self) -> Result<&'a [u8], Malformed> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed::WrongType { field: self.number }),
        }
    }

    pub(crate) fn text(&self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed::NotUtf8 { field: self.number })
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field of a whole type, unless it is 0, which is what an absent one means.
pub(crate) fn put_whole(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        put_present(out, number, value);
    }
}

/// Appends a field of a whole type, 0 too: for fields whose presence means something.
pub(crate) fn put_present(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

/// Appends a field of type sint64, 0 too: for fields whose presence means something.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: u32, value: i64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, (value << 1 ^ value >> 63) as u64);
}

/// Appends a field of type bytes or string, an empty one too.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a field that is a message, which `put` writes.
pub(crate) fn put_message<R>(out: &mut Vec<u8>, number: u32, put: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    put_varint(out, u64::from(number) << 3 | 2);
    // Most are short: one byte is reserved for the length, and more is inserted afterwards.
    out.push(0);
    let from = out.len();
    let returned = put(out);
    let length = out.len() - from;
    if length < 0x80 {
        out[from - 1] = length as u8;
    } else {
        let mut room = Vec::with_capacity(VARINT_BYTES_MAX);
        put_varint(&mut room, length as u64);
        out.splice(from - 1..from, room);
    }
    returned
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All fields, or what is wrong.
    fn read(bytes: &[u8]) -> Result<Vec<Field<'_>>, Malformed> {
        let (mut fields, mut all) = (Fields(bytes), Vec::new());
        while let Some(field) = fields.next()? {
            all.push(field);
        }
        Ok(all)
    }

    #[track_caller]
    fn check_malformed(bytes: &[u8], expected: Malformed) {
        assert_eq!(read(bytes), Err(expected), "{bytes:02x?}");
    }

    #[test]
    fn what_is_no_message_is_refused_by_its_kind() {
        check_malformed(&[0x08], Malformed::CutOff);
        check_malformed(&[0x08, 0x80], Malformed::CutOff);
        check_malformed(
            &[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02],
            Malformed::Varint,
        );
        check_malformed(&[&[0x08][..], &[0xff; 12]].concat(), Malformed::Varint);
        check_malformed(&[0x00, 0x01], Malformed::FieldNumber);
        check_malformed(&[0x80, 0x80, 0x80, 0x80, 0x10, 0x01], Malformed::FieldNumber);
        check_malformed(&[0x0e], Malformed::WireType(6));
        check_malformed(&[0x12, 0x05, b'a'], Malformed::CutOff);
        // A length of 2^64 - 1.
        check_malformed(
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, b'a'],
            Malformed::CutOff,
        );
        check_malformed(&[0x09, 1, 2, 3], Malformed::CutOff);
        check_malformed(&[0x0d, 1, 2, 3], Malformed::CutOff);
        check_malformed(&[0x0b], Malformed::Group);
        check_malformed(&[0x0c], Malformed::Group);
        check_malformed(&[0x0b, 0x14], Malformed::Group);
        check_malformed(&[0x0b; 100_000], Malformed::Group);
    }

    #[test]
    fn groups_are_skipped_to_the_depth_that_official_parsers_allow() {
        let nested = |depth: usize| [vec![0x0b; depth], vec![0x0c; depth], vec![0x10, 7]].concat();
        let group = Field { number: 1, value: Value::Group };
        let seven = Field { number: 2, value: Value::Varint(7) };
        assert_eq!(read(&nested(GROUP_DEPTH_MAX)), Ok(vec![group, seven]));
        assert_eq!(read(&nested(GROUP_DEPTH_MAX + 1)), Err(Malformed::Group));
        // A group with a field of each wire type.
        let bytes = [0x0b, 0x08, 0x80, 1, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 1, 9, 0x25, 1, 2, 3, 4, 0x0c];
        assert_eq!(read(&bytes), Ok(vec![group]));
    }

    #[test]
    fn a_field_of_another_type_or_without_utf_8_is_named() {
        let field = |value| Field { number: 3, value };
        assert_eq!(field(Value::Fixed32).whole(), Err(Malformed::WrongType { field: 3 }));
        assert_eq!(field(Value::Varint(1)).text(), Err(Malformed::WrongType { field: 3 }));
        assert_eq!(field(Value::Bytes(&[0xff])).text(), Err(Malformed::NotUtf8 { field: 3 }));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            whole in 1u64.., signed: i64, bytes: Vec<u8>, number in 1u32..1 << 29, inside in 0usize..400,
        ) {
            let mut out = Vec::new();
            put_whole(&mut out, number, whole);
            put_whole(&mut out, number, 0);
            put_signed(&mut out, number, signed);
            put_bytes(&mut out, number, &bytes);
            put_message(&mut out, number, |out| out.extend(vec![1; inside]));
            let fields = read(&out).unwrap();
            prop_assert_eq!(fields.len(), 4);
            prop_assert!(fields.iter().all(|field| field.number == number));
            prop_assert_eq!(fields[0].whole(), Ok(whole));
            prop_assert_eq!(fields[1].signed(), Ok(signed));
            prop_assert_eq!(fields[2].bytes(), Ok(&bytes[..]));
            prop_assert_eq!(fields[3].bytes(), Ok(&vec![1; inside][..]));
        }

        #[test]
        fn any_bytes_are_fields_or_refused_and_no_field_is_made_up(bytes: Vec<u8>) {
            if let Ok(fields) = read(&bytes) {
                let told: usize = fields.iter().map(|field| match field.value {
                    Value::Bytes(bytes) => bytes.len() + 2,
                    _ => 2,
                }).sum();
                prop_assert!(told <= bytes.len());
            }
        }
    }
}
