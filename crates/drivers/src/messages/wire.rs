//! The Protocol Buffers wire format, as far as clients need it: reading a message field by field, and writing fields.
//!
//! No schema and no allocation. Implements protobuf.dev, "Encoding"; checked against prost-reflect by property tests.

/// Groups within each other, as the official parsers allow.
const GROUP_DEPTH_MAX: usize = 100;

const VARINT_BYTES_MAX: usize = 10;

/// The value of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// wire type 0
    Varint(u64),
    /// wire type 1
    Fixed64(u64),
    /// wire type 2: a text, bytes, a message or packed numbers
    Bytes(&'a [u8]),
    /// wire type 5
    Fixed32(u32),
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a protobuf message")]
pub struct Malformed;

/// The fields of a message: number and value, up to the first that is malformed. Groups are skipped.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Of these bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Fields { rest: bytes }
    }

    fn read(&mut self) -> Result<Option<(u32, Value<'a>)>, Malformed> {
        while !self.rest.is_empty() {
            let (number, wire_type) = self.key()?;
            if wire_type == 3 {
                self.skip_group(number)?;
                continue;
            }
            return Ok(Some((number, self.value(wire_type)?)));
        }
        Ok(None)
    }

    fn value(&mut self, wire_type: u8) -> Result<Value<'a>, Malformed> {
        Ok(match wire_type {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(usize::try_from(length).map_err(|_| Malformed)?)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Malformed),
        })
    }

    fn key(&mut self) -> Result<(u32, u8), Malformed> {
        let key = u32::try_from(self.varint()?).map_err(|_| Malformed)?;
        if key < 8 { Err(Malformed) } else { Ok((key >> 3, (key & 7) as u8)) }
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                // Only one bit of the tenth byte is left.
                if at == VARINT_BYTES_MAX - 1 && *byte > 1 {
                    return Err(Malformed);
                }
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    /// From after a group's start to after its end.
    fn skip_group(&mut self, number: u32) -> Result<(), Malformed> {
        let mut open = vec![number];
        while let Some(innermost) = open.last() {
            let (number, wire_type) = self.key()?;
            match wire_type {
                3 if open.len() < GROUP_DEPTH_MAX => open.push(number),
                4 if number == *innermost => drop(open.pop()),
                3 | 4 => return Err(Malformed),
                other => drop(self.value(other)?),
            }
        }
        Ok(())
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        read.transpose()
    }
}

/// Appends a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the key before a field's value.
pub fn put_key(out: &mut Vec<u8>, number: u32, wire_type: u8) {
    put_varint(out, u64::from(number) << 3 | u64::from(wire_type));
}

/// Appends a length and what `put` writes after it.
pub fn put_sized(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    // One byte is reserved for the length, and more is inserted if that is too little.
    out.push(0);
    let from = out.len();
    put(out);
    let length = out.len() - from;
    if length < 0x80 {
        out[from - 1] = length as u8;
    } else {
        let mut bytes = Vec::with_capacity(VARINT_BYTES_MAX);
        put_varint(&mut bytes, length as u64);
        out.splice(from - 1..from, bytes);
    }
}

/// For fields of type sint32 and sint64.
pub fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// The inverse of `zigzag`.
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, Malformed> {
        Fields::of(bytes).collect()
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let deep = [vec![0x0b; 101], vec![0x0c; 101]].concat();
        for bytes in [
            &[0x08][..],
            &[0x08, 0x80],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            &[0x00, 0x01],
            &[0x0e, 0x01],
            &[0x0c],
            &[0x0b],
            &[0x0b, 0x14],
            &[0x12, 0x05, b'a'],
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x09, 1, 2, 3],
            &[0x0d, 1, 2, 3],
            &[0x0b; 100_000],
            &deep,
        ] {
            assert_eq!(read(bytes), Err(Malformed), "{bytes:02x?}");
        }
        let nested = [vec![0x0b; 100], vec![0x0c; 100], vec![0x10, 7]].concat();
        assert_eq!(read(&nested), Ok(vec![(2, Value::Varint(7))]));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(number in 1u32..1 << 29, value: u64, inside in 0usize..400) {
            let mut out = Vec::new();
            put_key(&mut out, number, 0);
            put_varint(&mut out, value);
            put_key(&mut out, number, 2);
            put_sized(&mut out, |out| out.extend(vec![1; inside]));
            let bytes = vec![1; inside];
            prop_assert_eq!(read(&out), Ok(vec![(number, Value::Varint(value)), (number, Value::Bytes(&bytes))]));
        }

        #[test]
        fn zigzag_is_its_inverse(value: i64) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }

        #[test]
        fn any_bytes_are_fields_or_malformed(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
