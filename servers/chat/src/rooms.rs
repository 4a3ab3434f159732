//! Rooms by name, for all threads; and the rooms of one thread, with its members.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::batch::Batch;
use super::clients::Key;
use super::memory::Counter;
use super::nodes::Nodes;
use super::room::Room;

/// Where newcomers are.
pub(super) const LOBBY: &str = "lobby";

/// All rooms with members.
pub(super) struct Rooms {
    threads: usize,
    counter: Counter,
    nodes: Option<Arc<Nodes>>,
    by_name: Mutex<HashMap<Box<str>, Arc<Room>>>,
    ids: AtomicU32,
}

impl Rooms {
    /// Lines that not all have fetched yet are counted in `counter`.
    pub(super) fn new(threads: usize, counter: Counter, nodes: Option<Arc<Nodes>>) -> Rooms {
        Rooms { threads, counter, nodes, by_name: Mutex::default(), ids: AtomicU32::new(0) }
    }

    pub(super) fn count(&self) -> usize {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Lets `enter` enter the room of this name, which is opened if there is none. No room is closed meanwhile.
    pub(super) fn enter<T>(&self, name: &str, enter: impl FnOnce(&Arc<Room>) -> T) -> T {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = by_name.get(name) {
            return enter(room);
        }
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let room = Arc::new(Room::new(name, id, self.threads, self.nodes.is_some(), self.counter.clone()));
        by_name.insert(name.into(), room.clone());
        if let Some(nodes) = &self.nodes {
            nodes.opened(&room);
        }
        enter(&room)
    }

    /// Removes a client, and closes the room after the last one.
    pub(super) fn leave(&self, room: &Room, thread: usize, name: Option<&str>) {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if room.leave(thread, name) == 0
            && let Some(room) = by_name.remove(room.name())
            && let Some(nodes) = &self.nodes
        {
            nodes.closed(&room);
        }
    }
}

/// A room as one thread sees it.
pub(super) struct LocalRoom {
    pub(super) room: Arc<Room>,
    /// Places of this thread's clients.
    pub(super) members: Vec<u32>,
    /// Fetched, and not yet handed to every member.
    pub(super) pending: Vec<Arc<Batch>>,
    /// It is on the list for the next round.
    pub(super) is_due: bool,
    /// Clients that have entered and are told so once the room is confirmed.
    pub(super) entering: Vec<Key>,
}

/// The rooms in which one thread has members.
#[derive(Default)]
pub(super) struct LocalRooms {
    rooms: slab::Slab<LocalRoom>,
    by_name: HashMap<Box<str>, u32>,
}

impl LocalRooms {
    /// The thread's place for this room, whether it has members yet or not.
    pub(super) fn place_for(&mut self, room: &Arc<Room>) -> u32 {
        if let Some(place) = self.by_name.get(room.name()) {
            return *place;
        }
        let local = LocalRoom {
            room: room.clone(),
            members: Vec::new(),
            pending: Vec::new(),
            is_due: false,
            entering: Vec::new(),
        };
        let place = self.rooms.insert(local) as u32;
        self.by_name.insert(room.name().into(), place);
        place
    }

    /// None when the thread's last member has left.
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut LocalRoom> {
        self.rooms.get_mut(place as usize)
    }

    /// Takes in a client; returns its index among the members.
    pub(super) fn add(&mut self, place: u32, client: u32) -> u32 {
        let Some(local) = self.get_mut(place) else { return 0 };
        local.members.push(client);
        (local.members.len() - 1) as u32
    }

    /// Removes the member at this index; returns which one has the index now, if any.
    pub(super) fn remove(&mut self, place: u32, index: u32) -> Option<u32> {
        let local = self.get_mut(place)?;
        local.members.swap_remove(index as usize);
        let moved = local.members.get(index as usize).copied();
        if local.members.is_empty() {
            let left = self.rooms.remove(place as usize);
            self.by_name.remove(left.room.name());
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_one_for_all_and_ends_with_its_last_client() {
        let rooms = Rooms::new(1, Counter::default(), None);
        let enter = || {
            rooms.enter("r", |room| {
                room.enter(0, 0, None);
                room.clone()
            })
        };
        let (one, two) = (enter(), enter());
        assert!(Arc::ptr_eq(&one, &two));
        rooms.leave(&one, 0, None);
        assert_eq!(rooms.count(), 1);
        rooms.leave(&one, 0, None);
        assert_eq!(rooms.count(), 0);
        assert!(!Arc::ptr_eq(&one, &enter()));
    }

    #[test]
    fn members_keep_their_indices_when_others_leave() {
        let mut rooms = LocalRooms::default();
        let (one, other) = (
            Arc::new(Room::new("one", 0, 1, false, Counter::default())),
            Arc::new(Room::new("other", 0, 1, false, Counter::default())),
        );
        let place = rooms.place_for(&one);
        assert_eq!((rooms.place_for(&one), rooms.place_for(&other)), (place, place + 1));
        assert_eq!([7, 8, 9].map(|client| rooms.add(place, client)), [0, 1, 2]);
        assert_eq!(rooms.remove(place, 0), Some(9));
        assert_eq!(rooms.remove(place, 1), None);
        assert_eq!(rooms.remove(place, 0), None);
        assert!(rooms.get_mut(place).is_none());
        assert_eq!(rooms.place_for(&Arc::new(Room::new("new", 0, 1, false, Counter::default()))), place);
    }
}
