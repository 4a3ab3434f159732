//! Records what both sides send as it passes through.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use recording::{Content, Event, Session, Side, What};

/// What is kept of all messages and bodies together.
pub(super) const KEPT_BYTES_MAX: usize = 256 << 20;

/// What both sides said until now.
pub(super) struct Recorder {
    begin: Instant,
    events: Mutex<Vec<Event>>,
    connections: AtomicUsize,
    kept_bytes: AtomicUsize,
}

impl Recorder {
    pub(super) fn new() -> Recorder {
        let connections = AtomicUsize::new(0);
        Recorder {
            begin: Instant::now(),
            events: Mutex::default(),
            connections,
            kept_bytes: AtomicUsize::new(0),
        }
    }

    /// The number of a connection or exchange.
    pub(super) fn number(&self) -> usize {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    pub(super) fn note(&self, connection: usize, what: What) {
        self.note_at(self.now_ns(), connection, what);
    }

    pub(super) fn note_at(&self, at_ns: u64, connection: usize, what: What) {
        let mut events = self.events.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        events.push(Event { at_ns, connection, what });
    }

    pub(super) fn message(&self, connection: usize, side: Side, bytes: &[u8], is_text: bool) {
        if self.may_keep(bytes.len()) {
            self.note(connection, What::Message(side, Content { bytes: bytes.to_vec(), is_text }));
        }
    }

    /// Whether so many bytes more are kept; what is beyond passes by.
    pub(super) fn may_keep(&self, count: usize) -> bool {
        let before = self.kept_bytes.fetch_add(count, Ordering::Relaxed);
        before.saturating_add(count) <= KEPT_BYTES_MAX
    }

    /// Whether something passed by that was not kept.
    pub(super) fn is_full(&self) -> bool {
        self.kept_bytes.load(Ordering::Relaxed) > KEPT_BYTES_MAX
    }

    pub(super) fn session(&self, target: String) -> Session {
        let mut events =
            std::mem::take(&mut *self.events.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        events.sort_by_key(|event| event.at_ns);
        let begin_ns = events.first().map_or(0, |event| event.at_ns);
        for event in &mut events {
            event.at_ns -= begin_ns;
        }
        Session { target, events }
    }
}
