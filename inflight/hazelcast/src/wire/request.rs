//! Operations on maps: their parameters, their encoding, and what their answers contain.
//!
//! Source: Open Binary Client Protocol 2.x, section 7, service Map (id 1).

use std::sync::Arc;

use send_buffer::{REFERRED_FROM_BYTES, SendBuffer};

use super::broken::Broken;
use super::data::{self, Data, DataError, Deserialize, Key};
use super::fields::Fields;
use super::frame::{FINAL, HEADER_BYTES};
use super::message::{ANSWER_FIXED, Message, NO_PARTITION, REQUEST_FIXED, Writer};

const PUT: i32 = 0x01_0100;
const GET: i32 = 0x01_0200;
const REMOVE: i32 = 0x01_0300;
const CONTAINS_KEY: i32 = 0x01_0600;
const DELETE: i32 = 0x01_0900;
const SET: i32 = 0x01_0f00;
const GET_ALL: i32 = 0x01_2300;
const SIZE: i32 = 0x01_2a00;
const PUT_ALL: i32 = 0x01_2c00;
const CLEAR: i32 = 0x01_2d00;
/// The type of an answer is that of its request and this.
const ANSWER: i32 = 1;

/// The thread that calls, for locks, which this client does not take: the same for all.
const THREAD_ID: [u8; 8] = 1i64.to_le_bytes();
/// A time to live that leaves it to the map's configuration.
pub const TTL_OF_THE_MAP: i64 = -1;

/// A map's name. Cloning shares it.
pub type MapName = Arc<str>;

/// One operation. Cloning shares names, keys and values.
///
/// `GetAll` and `PutAll` take keys of one partition only (`Key::partition`).
/// `ttl_ms`: how long the entry lives, in ms; 0 for ever, `TTL_OF_THE_MAP` as the map is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Request {
    /// the value of a key; answered by `Answer::Value`
    Get { map: MapName, key: Key },
    /// sets a value without asking for the old one; `Answer::Done`
    Set { map: MapName, key: Key, value: Data, ttl_ms: i64 },
    /// sets a value and asks for the old one; `Answer::Value`
    Put { map: MapName, key: Key, value: Data, ttl_ms: i64 },
    /// removes a key and asks for its value; `Answer::Value`
    Remove { map: MapName, key: Key },
    /// removes a key; `Answer::Done`
    Delete { map: MapName, key: Key },
    /// whether there is a key; `Answer::Flag`
    ContainsKey { map: MapName, key: Key },
    /// how many entries there are; `Answer::Count`
    Size { map: MapName },
    /// removes all entries; `Answer::Done`
    Clear { map: MapName },
    /// values of many keys of one partition; `Answer::Entries`, without those that do not exist
    GetAll { map: MapName, keys: Vec<Key> },
    /// sets many values of one partition; `Answer::Done`
    PutAll { map: MapName, entries: Vec<(Key, Data)> },
}

impl Request {
    /// The key that decides about the partition; `None` where any member may answer.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Request::Get { key, .. }
            | Request::Set { key, .. }
            | Request::Put { key, .. }
            | Request::Remove { key, .. }
            | Request::Delete { key, .. }
            | Request::ContainsKey { key, .. } => Some(key),
            Request::GetAll { keys, .. } => keys.first(),
            Request::PutAll { entries, .. } => entries.first().map(|(key, _)| key),
            Request::Size { .. } | Request::Clear { .. } => None,
        }
    }

    /// Whether it changes nothing, so that carrying it out twice does no harm.
    pub fn is_read_only(&self) -> bool {
        matches!(self.kind(), Kind::Get | Kind::ContainsKey | Kind::Size | Kind::GetAll)
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Request::Get { .. } => Kind::Get,
            Request::Set { .. } => Kind::Set,
            Request::Put { .. } => Kind::Put,
            Request::Remove { .. } => Kind::Remove,
            Request::Delete { .. } => Kind::Delete,
            Request::ContainsKey { .. } => Kind::ContainsKey,
            Request::Size { .. } => Kind::Size,
            Request::Clear { .. } => Kind::Clear,
            Request::GetAll { .. } => Kind::GetAll,
            Request::PutAll { .. } => Kind::PutAll,
        }
    }

    /// An upper bound of the bytes that it takes on the wire.
    pub fn wire_bytes(&self) -> usize {
        const FRONT: usize = HEADER_BYTES + REQUEST_FIXED + 16;
        let map_and_lists = |map: &MapName| FRONT + 3 * HEADER_BYTES + map.len();
        let frame = |content: &bytes::Bytes| HEADER_BYTES + content.len();
        match self {
            Request::Size { map } | Request::Clear { map } => map_and_lists(map),
            Request::Get { map, key }
            | Request::Remove { map, key }
            | Request::Delete { map, key }
            | Request::ContainsKey { map, key } => map_and_lists(map) + frame(key.bytes()),
            Request::Set { map, key, value, .. } | Request::Put { map, key, value, .. } => {
                map_and_lists(map) + frame(key.bytes()) + frame(value.bytes())
            }
            Request::GetAll { map, keys } => {
                map_and_lists(map) + keys.iter().map(|key| frame(key.bytes())).sum::<usize>()
            }
            Request::PutAll { map, entries } => {
                let entry = |(key, value): &(Key, Data)| frame(key.bytes()) + frame(value.bytes());
                map_and_lists(map) + entries.iter().map(entry).sum::<usize>()
            }
        }
    }

    /// Appends it. `partition`: that of its key, see `Key::partition`.
    pub(super) fn put(&self, send_buffer: &mut SendBuffer, correlation: i64, partition: i32) {
        let message_type = self.kind().message_type();
        let out = send_buffer.buffer();
        match self {
            Request::Get { map, key }
            | Request::Remove { map, key }
            | Request::Delete { map, key }
            | Request::ContainsKey { map, key } => {
                let mut writer = Writer::begin(out, message_type, correlation, partition, 8);
                writer.fixed(&THREAD_ID);
                writer.string(map);
                writer.frame(FINAL, key.bytes());
            }
            Request::Set { map, key, value, ttl_ms } | Request::Put { map, key, value, ttl_ms } => {
                let mut writer = Writer::begin(out, message_type, correlation, partition, 16);
                writer.fixed(&THREAD_ID);
                writer.fixed(&ttl_ms.to_le_bytes());
                writer.string(map);
                writer.frame(0, key.bytes());
                if value.bytes().len() < REFERRED_FROM_BYTES {
                    writer.frame(FINAL, value.bytes());
                } else {
                    writer.header(FINAL, value.bytes().len());
                    send_buffer.refer(value.bytes().clone());
                }
            }
            Request::Size { map } | Request::Clear { map } => {
                let mut writer = Writer::begin(out, message_type, correlation, NO_PARTITION, 0);
                writer.string(map);
                writer.end();
            }
            Request::GetAll { map, keys } => {
                let mut writer = Writer::begin(out, message_type, correlation, partition, 0);
                writer.string(map);
                writer.open();
                keys.iter().for_each(|key| writer.frame(0, key.bytes()));
                writer.close();
                writer.end();
            }
            Request::PutAll { map, entries } => {
                let mut writer = Writer::begin(out, message_type, correlation, partition, 1);
                writer.fixed(&[1]);
                writer.string(map);
                writer.open();
                for (key, value) in entries {
                    writer.frame(0, key.bytes());
                    writer.frame(0, value.bytes());
                }
                writer.close();
                writer.end();
            }
        }
        send_buffer.written();
    }
}

/// Which operation an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    Set,
    Put,
    Remove,
    Delete,
    ContainsKey,
    Size,
    Clear,
    GetAll,
    PutAll,
}

impl Kind {
    fn message_type(self) -> i32 {
        match self {
            Kind::Get => GET,
            Kind::Set => SET,
            Kind::Put => PUT,
            Kind::Remove => REMOVE,
            Kind::Delete => DELETE,
            Kind::ContainsKey => CONTAINS_KEY,
            Kind::Size => SIZE,
            Kind::Clear => CLEAR,
            Kind::GetAll => GET_ALL,
            Kind::PutAll => PUT_ALL,
        }
    }

    /// Reads the answer to such an operation.
    pub fn answer<'a>(self, message: &Message<'a>) -> Result<Answer<'a>, Broken> {
        if message.message_type() != self.message_type() + ANSWER {
            return Err(Broken::Malformed("an answer of another type than its request"));
        }
        match self {
            Kind::Get | Kind::Put | Kind::Remove => message.fields().optional_bytes().map(Answer::Value),
            Kind::Set | Kind::Delete | Kind::Clear | Kind::PutAll => Ok(Answer::Done),
            Kind::ContainsKey => message.fixed().bool(ANSWER_FIXED).map(Answer::Flag),
            Kind::Size => message.fixed().i32(ANSWER_FIXED).map(Answer::Count),
            Kind::GetAll => Entries::new(message.fields()).map(Answer::Entries),
        }
    }
}

/// What a member answered. Borrows from the receive buffer.
#[derive(Clone, Debug)]
pub enum Answer<'a> {
    /// it is done
    Done,
    /// a serialised value (`data::read`), if there is one
    Value(Option<&'a [u8]>),
    /// yes or no
    Flag(bool),
    /// a number of entries
    Count(i32),
    /// keys and values
    Entries(Entries<'a>),
}

impl Answer<'_> {
    /// Reads the value; `None` when there is none. Errors: it is of another type, see `Deserialize`.
    pub fn read<V: Deserialize>(&self) -> Result<Option<V>, DataError> {
        match self {
            Answer::Value(Some(bytes)) => data::read(bytes).map(Some),
            _ => Ok(None),
        }
    }
}

/// Serialised keys and values, one after the other.
#[derive(Clone)]
pub struct Entries<'a> {
    fields: Fields<'a>,
}

impl<'a> Entries<'a> {
    /// After the start of the list. The whole list is checked once, so that iterating it cannot fail.
    fn new(mut fields: Fields<'a>) -> Result<Self, Broken> {
        fields.open()?;
        let mut checked = fields.clone();
        while !checked.closes()? {
            checked.bytes()?;
            checked.bytes()?;
        }
        Ok(Entries { fields })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        match self.fields.closes() {
            Ok(false) => Some((self.fields.bytes().ok()?, self.fields.bytes().ok()?)),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entries({})", self.clone().count())
    }
}
