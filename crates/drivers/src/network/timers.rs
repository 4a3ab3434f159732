//! The instants at which the wires of this thread want to be polled, and what passed through them.
//!
//! A heap per thread. Whoever polls the wires calls `wake_due`, at the latest at the instant that `next_ns` says.

use std::cell::{Cell, RefCell};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use super::now_ns;
use super::way::Piece;

/// So much of what is sent late is made up on the way back, ns. Not more: the server may send without being asked.
const MADE_UP_NS_MOST: u64 = 1_000_000;

/// What passed through the wires of this thread since it was last asked.
#[derive(Debug, Default)]
pub struct Passed {
    /// one per piece that came in after another went out on the same connection
    pub round_trips: Vec<RoundTrip>,
    /// how long after its instant each piece was released, ns
    pub late_ns: Vec<u64>,
}

/// The newest piece that went out and one that came in: how long both were under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// `Path::index`
    pub path: usize,
    /// as it was drawn, ns
    pub asked_ns: u64,
    /// as it was, ns
    pub applied_ns: u64,
}

/// The newest piece that a connection sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// how long it was asked to be under way, and was but for what is made up, ns
    spans_ns: Option<(u64, u64)>,
    /// it went out so late, and what comes in until the next one is so much earlier, ns
    pub(crate) made_up_ns: u64,
}

impl Sent {
    /// A piece was sent.
    pub(crate) fn went(&mut self, piece: &Piece, now_ns: u64) {
        let late_ns = now_ns - piece.release_ns;
        PASSED.with_borrow_mut(|passed| passed.late_ns.push(late_ns));
        let (asked_ns, applied_ns) = piece.spans(now_ns);
        self.made_up_ns = late_ns.min(MADE_UP_NS_MOST);
        self.spans_ns = Some((asked_ns, applied_ns - self.made_up_ns));
    }
}

impl Passed {
    /// A piece came in after others, `sent` the newest of them, went out.
    pub(crate) fn came(&mut self, path: usize, sent: Sent, piece: &Piece, now_ns: u64) {
        self.late_ns.push(now_ns - piece.release_ns);
        let (asked_ns, applied_ns) = piece.spans(now_ns);
        self.round_trips.extend(sent.spans_ns.map(|(asked, applied)| RoundTrip {
            path,
            asked_ns: asked + asked_ns,
            applied_ns: applied + applied_ns,
        }));
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.round_trips.clear();
        self.late_ns.clear();
    }
}

struct Alarm {
    at_ns: u64,
    waker: Waker,
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.at_ns == other.at_ns
    }
}

impl Eq for Alarm {}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at_ns.cmp(&other.at_ns)
    }
}

thread_local! {
    static ALARMS: RefCell<BinaryHeap<Reverse<Alarm>>> = const { RefCell::new(BinaryHeap::new()) };
    /// the first of them
    static NEXT_NS: Cell<u64> = const { Cell::new(u64::MAX) };
    static PASSED: RefCell<Passed> =
        const { RefCell::new(Passed { round_trips: Vec::new(), late_ns: Vec::new() }) };
}

/// When `wake_due` wants to be called next; `u64::MAX`: nothing waits.
#[inline]
pub fn next_ns() -> u64 {
    NEXT_NS.get()
}

/// Wakes every task whose instant has come.
#[inline]
pub fn wake_due(now_ns: u64) {
    if NEXT_NS.get() <= now_ns {
        wake_all_due(now_ns);
    }
}

#[cold]
fn wake_all_due(now_ns: u64) {
    while let Some(waker) = pop_due(now_ns) {
        waker.wake();
    }
}

fn pop_due(now_ns: u64) -> Option<Waker> {
    ALARMS.with_borrow_mut(|alarms| {
        let is_due = alarms.peek().is_some_and(|Reverse(alarm)| alarm.at_ns <= now_ns);
        let due = if is_due { alarms.pop() } else { None };
        NEXT_NS.set(alarms.peek().map_or(u64::MAX, |Reverse(alarm)| alarm.at_ns));
        due.map(|Reverse(alarm)| alarm.waker)
    })
}

/// Wakes a task at an instant.
fn wake_at(at_ns: u64, waker: Waker) {
    ALARMS.with_borrow_mut(|alarms| alarms.push(Reverse(Alarm { at_ns, waker })));
    NEXT_NS.set(NEXT_NS.get().min(at_ns));
}

/// Waits for an instant.
pub(crate) async fn sleep_until(at_ns: u64) {
    let mut is_set = false;
    poll_fn(|cx| {
        if now_ns() >= at_ns {
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut is_set, true) {
            wake_at(at_ns, cx.waker().clone());
        }
        Poll::Pending
    })
    .await;
}

/// The task that owns a connection, which is polled whenever something comes out.
pub(crate) struct Owner {
    task: Option<Waker>,
    /// the task is woken at this instant
    armed_ns: u64,
}

impl Default for Owner {
    fn default() -> Self {
        Owner { task: None, armed_ns: u64::MAX }
    }
}

impl Owner {
    /// It is this one.
    pub(crate) fn keep(&mut self, waker: &Waker) {
        if self.task.as_ref().is_none_or(|task| !task.will_wake(waker)) {
            self.task = Some(waker.clone());
            self.armed_ns = u64::MAX;
        }
    }

    pub(crate) fn task(&self) -> Option<&Waker> {
        self.task.as_ref()
    }

    /// Has it woken at the first of these instants that is to come. What is due already waits for something else.
    pub(crate) fn wake_at<const N: usize>(&mut self, instants: [Option<u64>; N], now_ns: u64) {
        if self.armed_ns <= now_ns {
            self.armed_ns = u64::MAX;
        }
        let next = instants.into_iter().flatten().filter(|at_ns| *at_ns > now_ns).min();
        if let (Some(next_ns), Some(task)) = (next, &self.task)
            && next_ns < self.armed_ns
        {
            self.armed_ns = next_ns;
            wake_at(next_ns, task.clone());
        }
    }
}

/// Exchanges what passed for an empty record.
pub fn take_passed(passed: &mut Passed) {
    PASSED.with_borrow_mut(|mine| std::mem::swap(mine, passed));
}

/// Notes what passed.
pub(crate) fn note(write: impl FnOnce(&mut Passed)) {
    PASSED.with_borrow_mut(write);
}
