//! What the loop does within a tick: which requests it takes, which answers continue, when drawing begins and stops.
//!
//! Pure: time is an argument, and the caller does the work of each `Step` and reports the result.
//! Invariants: a request that was not complete when the tick began is not taken in it · at most `slots` requests are in
//! progress, and an answer that did not fit continues at the next tick in its slot · at least one piece of an answer
//! goes out per tick · the request of a disconnected client takes no slot, and that of one that has shut down its
//! sending side gets only slots that no other request wants: it may have gone, too · frames due = drawn + skipped + at
//! most two (one half drawn, one not begun).
//! A frame that is not finished when the tick ends continues in the next, after that tick's answers. The frame of a
//! tick is skipped if none could be begun before the next was due.
//! Units: `_ns`; instants of the monotonic clock, drawing in processor time.

use std::collections::VecDeque;

use servers_shared::stream::Peer;

/// Who yields when answers and the frame do not both fit into a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Priority {
    /// frames are kept, answers get what drawing leaves
    Normal,
    /// answers come first, drawing gets what they leave; and the process is nice 10
    BelowNormal,
}

/// The pieces in which a frame is drawn: how late the end of a tick is noticed.
const DRAWN_AT_ONCE_NS: u64 = 100_000;

/// What is kept free of answers for the simulation, and for waking up late: 1/50 of the tick.
const SPARE_PART: u64 = 50;

#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// At least 1.
    pub(super) slots: usize,
    pub(super) period_ns: u64,
    /// What one frame takes.
    pub(super) drawing_ns: u64,
    pub(super) priority: Priority,
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'t, A> {
    /// One piece of this answer; then `answered` if it was the last.
    Answer(&'t mut A),
    /// Once per tick.
    Simulate,
    /// So much of the frame, in processor time; then `drew`.
    Draw(u64),
    /// Nothing until the next tick.
    Rest,
}

/// Plain sums. See the module's head for how they balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames {
    pub(super) due: u64,
    pub(super) drawn: u64,
    pub(super) skipped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Answering,
    Simulating,
    Drawing,
}

pub(super) struct Turn<A> {
    rules: Rules,
    /// In order of arrival, with its instant.
    waiting: VecDeque<(u64, A)>,
    /// Of those whose clients send nothing more, in order of arrival.
    half_closed: VecDeque<A>,
    under_way: VecDeque<A>,
    stage: Stage,
    ends_ns: u64,
    /// A piece of an answer went out in this tick.
    moved: bool,
    frame_is_due: bool,
    /// What is left of the frame that was begun.
    frame_left_ns: Option<u64>,
    pub(super) frames: Frames,
}

impl<A> Turn<A> {
    pub(super) fn new(rules: Rules) -> Turn<A> {
        Turn {
            rules,
            waiting: VecDeque::new(),
            half_closed: VecDeque::new(),
            under_way: VecDeque::new(),
            stage: Stage::Drawing,
            ends_ns: 0,
            moved: false,
            frame_is_due: false,
            frame_left_ns: None,
            frames: Frames::default(),
        }
    }

    /// A request waits, wholly arrived at this instant. In order of arrival.
    pub(super) fn arrive(&mut self, arrived_ns: u64, request: A) {
        self.waiting.push_back((arrived_ns, request));
    }

    /// A tick begins. `missed` were due before it and did not run. `peer` tells of a request that is about to be taken
    /// whether its client is there; whose client is gone is dropped.
    pub(super) fn begin(
        &mut self,
        started_ns: u64,
        ends_ns: u64,
        missed: u64,
        mut peer: impl FnMut(&mut A) -> Peer,
    ) {
        self.frames.due += 1 + missed;
        self.frames.skipped += missed + u64::from(self.frame_is_due);
        self.frame_is_due = true;
        self.ends_ns = ends_ns;
        self.stage = Stage::Answering;
        self.moved = false;
        while self.under_way.len() < self.rules.slots
            && self.waiting.front().is_some_and(|(arrived_ns, _)| *arrived_ns < started_ns)
        {
            let Some((_, mut request)) = self.waiting.pop_front() else { break };
            // Each request is checked once here, however many clients have gone.
            match peer(&mut request) {
                Peer::There => self.under_way.push_back(request),
                Peer::HalfClosed => self.half_closed.push_back(request),
                Peer::Gone => {}
            }
        }
        while self.under_way.len() < self.rules.slots
            && let Some(mut request) = self.half_closed.pop_front()
        {
            if peer(&mut request) != Peer::Gone {
                self.under_way.push_back(request);
            }
        }
    }

    /// What to do at this instant. `Answer` is the same one until `answered`.
    pub(super) fn next(&mut self, now_ns: u64) -> Step<'_, A> {
        if self.stage == Stage::Answering {
            let goes_on = !self.moved || now_ns < self.answers_end_ns();
            if goes_on && !self.under_way.is_empty() {
                self.moved = true;
                // One after the other: the first is complete as soon as possible.
                return Step::Answer(&mut self.under_way[0]);
            }
            self.stage = Stage::Simulating;
        }
        if self.stage == Stage::Simulating {
            self.stage = Stage::Drawing;
            return Step::Simulate;
        }
        loop {
            match self.frame_left_ns {
                Some(0) => {
                    self.frames.drawn += 1;
                    self.frame_left_ns = None;
                }
                Some(left_ns) => {
                    let piece_ns = left_ns.min(DRAWN_AT_ONCE_NS);
                    let fits = now_ns + piece_ns <= self.ends_ns;
                    return if fits { Step::Draw(piece_ns) } else { Step::Rest };
                }
                None if self.frame_is_due => {
                    self.frame_is_due = false;
                    self.frame_left_ns = Some(self.rules.drawing_ns);
                }
                None => return Step::Rest,
            }
        }
    }

    /// The answer of the last `Step::Answer` is complete.
    pub(super) fn answered(&mut self) -> Option<A> {
        self.under_way.pop_front()
    }

    /// So much was drawn.
    pub(super) fn drew(&mut self, cpu_ns: u64) {
        self.frame_left_ns = self.frame_left_ns.map(|left_ns| left_ns.saturating_sub(cpu_ns));
    }

    /// Nothing waits and nothing is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.half_closed.is_empty() && self.under_way.is_empty()
    }

    fn answers_end_ns(&self) -> u64 {
        let frame_ns = match self.rules.priority {
            Priority::BelowNormal => 0,
            Priority::Normal => {
                let due_ns = if self.frame_is_due { self.rules.drawing_ns } else { 0 };
                self.frame_left_ns.unwrap_or(0) + due_ns
            }
        };
        self.ends_ns.saturating_sub(frame_ns + self.rules.period_ns / SPARE_PART)
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
