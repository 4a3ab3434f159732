//! The clients of one thread, by place; a generation tells a place's clients apart.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::queue::Queue;
use super::splitter::Splitter;

/// Where a client is, and the count that tells it from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) place: u32,
    generation: u32,
}

impl Key {
    pub(super) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.place)
    }

    pub(super) fn from_bits(bits: u64) -> Key {
        Key { place: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// Where in its life a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Talking,
    /// It is in no room and is not heard any more; it still gets what is queued.
    Leaving,
    /// All of that is out, and the end is announced.
    Finished,
}

pub(super) struct Client {
    pub(super) key: Key,
    fd: OwnedFd,
    /// As the sender of lines.
    pub(super) id: u32,
    pub(super) stage: Stage,
    /// The thread's place of its room, and its own index there. Without meaning once it is leaving.
    pub(super) room: u32,
    pub(super) member_index: u32,
    /// Lines of its room before this one were handed to it, or are not owed.
    pub(super) position: u64,
    /// The room's count of lines after its own last one.
    pub(super) own_end: u64,
    pub(super) queue: Queue,
    /// The system takes nothing more until it says so.
    pub(super) is_blocked: bool,
    pub(super) splitter: Splitter,
    pub(super) name: Option<Arc<str>>,
    /// When the line that is not complete began.
    pub(super) line_began_ns: u64,
    /// There is a deadline that looks at `line_began_ns`.
    pub(super) line_is_watched: bool,
    pub(super) heard_ns: u64,
    pub(super) input_ended: bool,
    /// It is on the list of those who have more to say.
    pub(super) is_unfinished: bool,
}

impl Client {
    pub(super) fn new(key: Key, fd: OwnedFd, id: u32, now_ns: u64) -> Client {
        Client {
            key,
            fd,
            id,
            stage: Stage::Talking,
            room: u32::MAX,
            member_index: 0,
            position: 0,
            own_end: 0,
            queue: Queue::default(),
            is_blocked: false,
            splitter: Splitter::default(),
            name: None,
            line_began_ns: 0,
            line_is_watched: false,
            heard_ns: now_ns,
            input_ended: false,
            is_unfinished: false,
        }
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

struct Place {
    generation: u32,
    client: Option<Client>,
}

#[derive(Default)]
pub(super) struct Clients {
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Clients {
    pub(super) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Takes in whoever `client` makes of the key.
    pub(super) fn insert(&mut self, client: impl FnOnce(Key) -> Client) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, client: None });
            (self.places.len() - 1) as u32
        });
        let key = Key { place, generation: self.places[place as usize].generation };
        self.places[place as usize].client = Some(client(key));
        key
    }

    /// None when the client is gone, and its place empty or somebody else's.
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Client> {
        let place = self.places.get_mut(key.place as usize)?;
        place.client.as_mut().filter(|_| place.generation == key.generation)
    }

    /// Whoever is at this place.
    pub(super) fn at(&mut self, place: u32) -> Option<&mut Client> {
        self.places.get_mut(place as usize)?.client.as_mut()
    }

    /// Gives the client's place free; dropping what is returned closes the connection.
    pub(super) fn remove(&mut self, key: Key) -> Option<Client> {
        self.get_mut(key)?;
        let place = &mut self.places[key.place as usize];
        place.generation = place.generation.wrapping_add(1);
        self.free.push(key.place);
        place.client.take()
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.places.iter().filter_map(|place| place.client.as_ref()).map(|client| client.key).collect()
    }
}
