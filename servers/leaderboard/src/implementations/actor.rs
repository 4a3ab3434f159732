//! A thread that owns the board: other threads send it operations and wait for the answer.
//!
//! Nothing is locked, but each call costs two messages and two thread switches.
//! The thread ends when the board is dropped.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::super::exclusive::Exclusive;
use super::super::{
    BulkRefused, Deleted, Leaderboard, LockWaits, Mode, Options, Outcome, Page, Refused, Row, Score,
    Snapshot, Standing, Update,
};
use super::waits::Waits;

/// Calls that may wait for the owner before their threads wait to send.
const BACKLOG: usize = 1_024;

type Call<B> = Box<dyn FnOnce(&mut B) + Send>;

pub(super) struct Actor<B> {
    /// `None` only while the board is dropped.
    calls: Option<SyncSender<Call<B>>>,
    owner: Option<JoinHandle<()>>,
    waits: Waits,
}

impl<B: Exclusive> Actor<B> {
    /// Errors: the system starts no further thread.
    pub(super) fn new(options: Options) -> io::Result<Self> {
        Self::on(Builder::new(), options)
    }

    fn on(thread: Builder, options: Options) -> io::Result<Self> {
        let (calls, incoming) = sync_channel::<Call<B>>(BACKLOG);
        let owner = thread.name("leaderboard".into()).spawn(move || {
            let mut board = B::new(options);
            for call in incoming {
                call(&mut board);
            }
        })?;
        Ok(Self { calls: Some(calls), owner: Some(owner), waits: Waits::default() })
    }

    fn call<R: Send + 'static>(&self, work: impl FnOnce(&mut B) -> R + Send + 'static) -> R {
        let (answer, answered) = sync_channel(1);
        let call: Call<B> = Box::new(move |board| {
            // Fails only if the caller's thread panicked meanwhile.
            let _ = answer.send(work(board));
        });
        let sent = self.calls.as_ref().is_some_and(|calls| calls.send(call).is_ok());
        assert!(sent, "the thread that owns the board lives as long as the board");
        self.waits.during(|| answered.recv()).expect("the owner answers every call, unless it panicked")
    }
}

impl<B> Drop for Actor<B> {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(owner) = self.owner.take() {
            // A panic of the owner was already reported to the caller whose call caused it.
            let _ = owner.join();
        }
    }
}

/// An update that owns its name, to be sent to another thread.
type Owned = (Box<str>, Mode, Score);

impl<B: Exclusive> Leaderboard for Actor<B> {
    fn update(&self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        let (member, score) = (Box::<str>::from(member), score.clone());
        self.call(move |board| board.update(&member, mode, &score))
    }

    fn update_bulk(&self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused> {
        let owned = |update: &Update<'_>| (update.member.into(), update.mode, update.score.clone());
        let owned: Vec<Owned> = updates.iter().map(owned).collect();
        self.call(move |board| {
            let updates: Vec<Update<'_>> = owned
                .iter()
                .map(|(member, mode, score)| Update { member, mode: *mode, score: score.clone() })
                .collect();
            board.update_bulk(&updates)
        })
    }

    fn get(&self, member: &str) -> Option<Standing> {
        let member = Box::<str>::from(member);
        self.call(move |board| board.get(&member))
    }

    fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>> {
        let owned: Vec<Box<str>> = members.iter().map(|&member| member.into()).collect();
        self.call(move |board| board.get_many(&owned.iter().map(|member| &**member).collect::<Vec<_>>()))
    }

    fn row(&self, member: &str) -> Option<Row> {
        let member = Box::<str>::from(member);
        self.call(move |board| board.row(&member))
    }

    fn delete(&self, member: &str) -> Option<Deleted> {
        let member = Box::<str>::from(member);
        self.call(move |board| board.delete(&member))
    }

    fn count(&self) -> u64 {
        self.call(|board| board.count())
    }

    fn range(&self, first: u64, limit: usize) -> Page {
        self.call(move |board| board.range(first, limit))
    }

    fn range_back(&self, first: u64, limit: usize) -> Page {
        self.call(move |board| board.range_back(first, limit))
    }

    fn around(&self, member: &str, each_side: usize) -> Option<Page> {
        let member = Box::<str>::from(member);
        self.call(move |board| board.around(&member, each_side))
    }

    fn set_metadata(&self, member: &str, metadata: Option<&str>) -> Result<Option<u64>, Refused> {
        let (member, metadata) = (Box::<str>::from(member), metadata.map(Box::<str>::from));
        self.call(move |board| board.set_metadata(&member, metadata.as_deref()))
    }

    fn snapshot(&self) -> Snapshot {
        self.call(|board| board.snapshot())
    }

    fn restore(&self, snapshot: &Snapshot) -> Result<(), BulkRefused> {
        let snapshot = snapshot.clone();
        self.call(move |board| board.restore(&snapshot))
    }

    fn reset(&self) -> Snapshot {
        // The owner continues with other calls while this thread makes the snapshot.
        self.call(|board| board.take()).snapshot()
    }

    fn lock_waits(&self) -> LockWaits {
        self.waits.read()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::flat_board::FlatBoard;
    use super::*;

    #[test]
    fn a_thread_that_cannot_be_started_is_an_error() {
        // No address space has room for such a stack.
        let refused = Actor::<FlatBoard>::on(Builder::new().stack_size(1 << 60), Options::default());
        assert_eq!(refused.err().map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    }
}
