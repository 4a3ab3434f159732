//! Messages from thread to thread, read once per turn. They wake no thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::message::Snapshot;
use super::rules::Player;
use super::shots::Shots;
pub(crate) use servers_shared::slab::Key as SocketKey;

/// Where a socket is: its thread, its place there, and the count that tells it from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) thread: usize,
    pub(crate) key: SocketKey,
}

pub(crate) struct ThreadMessage {
    pub(crate) to: SocketKey,
    pub(crate) event: ThreadEvent,
}

pub(crate) enum ThreadEvent {
    /// A waiting player got an opponent.
    Start(Arc<Shots>, Player),
    /// The start message, for a player who is in a game already: late or a second time, by an injected fault.
    StartMessage,
    Snapshot(Snapshot),
    /// The game is over: the whole stop frame.
    Stop(Box<[u8]>),
}

/// Snapshots that a stalled thread has not read beyond this are dropped: they are old, and memory is bounded.
/// News of a start or a stop is never dropped; there are at most two of each per game.
const UNREAD_MAX: usize = 65_536;

/// One thread's messages. A turn's messages are brought at once, so the lock is taken once per turn and sender.
#[derive(Default)]
pub(crate) struct Inbox {
    has_letters: AtomicBool,
    messages: Mutex<Vec<ThreadMessage>>,
}

impl Inbox {
    /// Moves all of `messages` in.
    pub(crate) fn bring(&self, messages: &mut Vec<ThreadMessage>) {
        let mut unread = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if unread.len() > UNREAD_MAX {
            unread.retain(|message| !matches!(message.event, ThreadEvent::Snapshot(_)));
        }
        unread.append(messages);
        drop(unread);
        self.has_letters.store(true, Ordering::Release);
    }

    /// Swaps the messages against an empty list; leaves them for the next turn when someone is just bringing.
    pub(crate) fn fetch(&self, empty: &mut Vec<ThreadMessage>) {
        if !self.has_letters.load(Ordering::Acquire) {
            return;
        }
        if let Ok(mut messages) = self.messages.try_lock() {
            self.has_letters.store(false, Ordering::Release);
            std::mem::swap(&mut *messages, empty);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(event: ThreadEvent) -> ThreadMessage {
        ThreadMessage { to: SocketKey { place: 1, generation: 2 }, event }
    }

    #[test]
    fn letters_are_fetched_once_and_in_order() {
        let inbox = Inbox::default();
        let mut messages = Vec::new();
        for i in 0..5u8 {
            inbox.bring(&mut vec![message(ThreadEvent::Stop([i].into()))]);
        }
        inbox.fetch(&mut messages);
        let stops: Vec<u8> = messages
            .iter()
            .map(|message| if let ThreadEvent::Stop(stop) = &message.event { stop[0] } else { 99 })
            .collect();
        assert_eq!(stops, [0, 1, 2, 3, 4]);
        messages.clear();
        inbox.fetch(&mut messages);
        assert!(messages.is_empty());
    }

    #[test]
    fn a_thread_that_does_not_read_loses_snapshots_and_nothing_else() {
        let inbox = Inbox::default();
        inbox.bring(&mut vec![message(ThreadEvent::Stop([1].into()))]);
        for tick in 0..200 {
            inbox.bring(
                &mut (0..1000).map(|_| message(ThreadEvent::Snapshot(Snapshot::new(tick, 0)))).collect(),
            );
        }
        let mut messages = Vec::new();
        inbox.fetch(&mut messages);
        assert!(messages.len() <= UNREAD_MAX + 1000, "{}", messages.len());
        assert!(matches!(messages[0].event, ThreadEvent::Stop(_)));
    }

    #[test]
    fn a_key_survives_the_way_through_the_kernel() {
        let key = SocketKey { place: 40_000, generation: u32::MAX - 1 };
        assert_eq!(SocketKey::from_bits(key.to_bits()), key);
    }
}
