//! Letters from thread to thread, read once per turn. Nobody is woken by one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::message::Snapshot;
use super::rules::Player;
use super::shots::Shots;
pub(crate) use crate::places::Key as SocketKey;

/// Where a socket is: its thread, its place there, and the count that tells it from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) thread: usize,
    pub(crate) key: SocketKey,
}

pub(crate) struct Letter {
    pub(crate) to: SocketKey,
    pub(crate) news: News,
}

pub(crate) enum News {
    /// A waiting player got an opponent.
    Start(Arc<Shots>, Player),
    /// The start message, for a player who is in a game already: late or a second time, by a planted fault.
    StartMessage,
    Snapshot(Snapshot),
    /// The game is over: the whole stop frame.
    Stop(Box<[u8]>),
}

/// Snapshots that a stalled thread has not read beyond this are dropped: they are old, and memory is bounded.
/// News of a start or a stop is never dropped; there are at most two of each per game.
const UNREAD_MAX: usize = 65_536;

/// One thread's letters. A turn's letters are brought at once, so the lock is taken once per turn and sender.
#[derive(Default)]
pub(crate) struct Mailbox {
    has_letters: AtomicBool,
    letters: Mutex<Vec<Letter>>,
}

impl Mailbox {
    /// Moves all of `letters` in.
    pub(crate) fn bring(&self, letters: &mut Vec<Letter>) {
        let mut unread = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        if unread.len() > UNREAD_MAX {
            unread.retain(|letter| !matches!(letter.news, News::Snapshot(_)));
        }
        unread.append(letters);
        drop(unread);
        self.has_letters.store(true, Ordering::Release);
    }

    /// Swaps the letters against an empty pile; leaves them for the next turn when someone is just bringing.
    pub(crate) fn fetch(&self, empty: &mut Vec<Letter>) {
        if !self.has_letters.load(Ordering::Acquire) {
            return;
        }
        if let Ok(mut letters) = self.letters.try_lock() {
            self.has_letters.store(false, Ordering::Release);
            std::mem::swap(&mut *letters, empty);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(news: News) -> Letter {
        Letter { to: SocketKey { place: 1, generation: 2 }, news }
    }

    #[test]
    fn letters_are_fetched_once_and_in_order() {
        let mailbox = Mailbox::default();
        let mut letters = Vec::new();
        for i in 0..5u8 {
            mailbox.bring(&mut vec![letter(News::Stop([i].into()))]);
        }
        mailbox.fetch(&mut letters);
        let stops: Vec<u8> = letters
            .iter()
            .map(|letter| if let News::Stop(stop) = &letter.news { stop[0] } else { 99 })
            .collect();
        assert_eq!(stops, [0, 1, 2, 3, 4]);
        letters.clear();
        mailbox.fetch(&mut letters);
        assert!(letters.is_empty());
    }

    #[test]
    fn a_thread_that_does_not_read_loses_snapshots_and_nothing_else() {
        let mailbox = Mailbox::default();
        mailbox.bring(&mut vec![letter(News::Stop([1].into()))]);
        for tick in 0..200 {
            mailbox.bring(&mut (0..1000).map(|_| letter(News::Snapshot(Snapshot::new(tick, 0)))).collect());
        }
        let mut letters = Vec::new();
        mailbox.fetch(&mut letters);
        assert!(letters.len() <= UNREAD_MAX + 1000, "{}", letters.len());
        assert!(matches!(letters[0].news, News::Stop(_)));
    }

    #[test]
    fn a_key_survives_the_way_through_the_kernel() {
        let key = SocketKey { place: 40_000, generation: u32::MAX - 1 };
        assert_eq!(SocketKey::from_bits(key.to_bits()), key);
    }
}
