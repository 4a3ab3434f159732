//! A thread's state for each of its clients.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::queue::Queue;
use super::splitter::Splitter;
use servers_shared::deadlines::Due;
pub(super) use servers_shared::slab::Key;

/// Where in its life a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Talking,
    /// It is in no room and no longer read; it still gets what is queued.
    Leaving,
    /// All of that is out, and the end is announced.
    Finished,
}

pub(super) struct Client {
    pub(super) key: Key,
    pub(super) fd: OwnedFd,
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
    /// The queue's own memory, as counted in the totals.
    pub(super) counted_bytes: u64,
    /// The system takes nothing more until it says so.
    pub(super) is_blocked: bool,
    pub(super) splitter: Splitter,
    pub(super) name: Option<Arc<str>>,
    /// By when the line that is not complete must be.
    pub(super) line_due: Due,
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
            counted_bytes: 0,
            is_blocked: false,
            splitter: Splitter::default(),
            name: None,
            line_due: Due::default(),
            heard_ns: now_ns,
            input_ended: false,
            is_unfinished: false,
        }
    }
}
