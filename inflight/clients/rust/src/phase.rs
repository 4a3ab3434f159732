//! One phase of a run, warm-up or measurement: the closed loop itself.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::process;
use crate::report::Stop;
use crate::tally::Tally;

/// By what an operation in flight is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    slot: u32,
    /// parts an operation from those that had its slot before and were given up
    generation: u32,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// it succeeded
    Ok,
    /// a get that found the right value
    Hit,
    /// a get that found nothing
    Miss,
    /// a get that found another value: what it found, in words
    Wrong(String),
    /// it did not succeed
    Failed {
        /// one of a few words
        cause: &'static str,
        /// what exactly
        text: String,
    },
    /// it may have been executed or not. Never counts as success
    Unknown {
        /// one of a few words
        cause: &'static str,
        /// what exactly
        text: String,
    },
}

/// A client library under test.
pub trait Operations {
    /// Starts operation `i` (from 0, warm-up included) without waiting. It ends in a `poll`, with `token`.
    fn start(&mut self, token: Token, i: u64);

    /// Sends what is to be sent, waits at most `wait` for something to end, and hands over what ended.
    ///
    /// Errors: what makes going on impossible.
    fn poll(&mut self, wait: Duration, ended: impl FnMut(Token, Outcome)) -> Result<(), String>;
}

/// What a phase needs to know.
pub(crate) struct PhaseOptions<'a> {
    /// `None`: all at once
    pub in_flight: Option<usize>,
    pub timeout_ns: u64,
    pub memory_cap_bytes: u64,
    pub stop: &'a Stop,
    /// nanoseconds from any origin
    pub clock: &'a dyn Fn() -> u64,
}

/// What came of a phase.
pub(crate) struct Phase {
    pub tally: Tally,
    pub elapsed_ns: u64,
    /// start and end of the first operations, ns since the phase began; both 0 for one that was not started
    pub timeline: Vec<(u64, u64)>,
    /// why it ended early
    pub stopped: Option<&'static str>,
}

/// How long operations in flight may still end by themselves after a stop.
const GRACE_NS: u64 = 1_000_000_000;
/// Timeouts and stops are looked for so often.
const LOOK_NS: u64 = 10_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Without a limit in flight, memory is checked and answers are read once per this many starts.
const STARTS_PER_TURN: u64 = 1000;

/// How many operations of a phase are reported one by one.
const TIMELINE: usize = 200;

/// An operation in flight.
#[derive(Clone, Copy)]
struct Slot {
    generation: u32,
    /// the how-manieth of its phase, from 0
    place: u64,
    /// `None`: free
    began_ns: Option<u64>,
}

/// The operations in flight, and what became of the others.
struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
    open: usize,
    tally: Tally,
    /// operations begun so far, and when the first one was
    begun: u64,
    began_ns: u64,
    timeline: Vec<(u64, u64)>,
}

impl Slots {
    fn begin(&mut self, now_ns: u64) -> Token {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.all.push(Slot { generation: 0, place: 0, began_ns: None });
            self.all.len() as u32 - 1
        });
        let entry = &mut self.all[slot as usize];
        (entry.began_ns, entry.place) = (Some(now_ns), self.begun);
        (self.begun, self.open) = (self.begun + 1, self.open + 1);
        Token { slot, generation: entry.generation }
    }

    /// What was given up, or has ended already, does not end again.
    fn end(&mut self, token: Token, outcome: &Outcome, now_ns: u64) {
        let Some(slot) = self.all.get_mut(token.slot as usize) else { return };
        let Some(began_ns) = slot.began_ns.filter(|_| slot.generation == token.generation) else { return };
        (slot.began_ns, slot.generation) = (None, slot.generation.wrapping_add(1));
        if slot.place < TIMELINE as u64 {
            let (place, since) = (slot.place as usize, |ns: u64| ns.saturating_sub(self.began_ns));
            if self.timeline.len() <= place {
                self.timeline.resize(place + 1, (0, 0));
            }
            self.timeline[place] = (since(began_ns), since(now_ns));
        }
        self.free.push(token.slot);
        self.open -= 1;
        self.tally.record(outcome, now_ns.saturating_sub(began_ns));
    }

    /// Ends as unknown whatever has been in flight for that long.
    fn give_up(&mut self, after_ns: u64, now_ns: u64, cause: &'static str, text: &str) {
        for slot in 0..self.all.len() {
            let Slot { generation, began_ns: Some(began_ns), .. } = self.all[slot] else { continue };
            if now_ns.saturating_sub(began_ns) >= after_ns {
                let outcome = Outcome::Unknown { cause, text: text.to_owned() };
                self.end(Token { slot: slot as u32, generation }, &outcome, now_ns);
            }
        }
    }
}

/// Runs the operations of `range`. `on_second` is given the figures of each second and how many are in flight.
///
/// Errors: those of `Operations::poll`.
pub(crate) fn run<O: Operations>(
    operations: &mut O,
    range: Range<u64>,
    options: &PhaseOptions<'_>,
    on_second: &mut dyn FnMut(&mut Tally, usize),
) -> Result<Phase, String> {
    let clock = options.clock;
    let real = Instant::now();
    let real_ns = || real.elapsed().as_nanos() as u64;
    let (mut second_ns, mut look_ns, mut cut_ns) = (SECOND_NS, LOOK_NS, None);
    let mut stopped = None;
    let mut next = range.start;
    let began_ns = clock();
    let mut slots = Slots {
        all: Vec::new(),
        free: Vec::new(),
        open: 0,
        tally: Tally::new(),
        begun: 0,
        began_ns,
        timeline: Vec::with_capacity(TIMELINE),
    };
    let mut ended_ns = began_ns;
    loop {
        let mut starts = 0;
        while next < range.end
            && stopped.is_none()
            && options.in_flight.map_or(starts < STARTS_PER_TURN, |limit| slots.open < limit)
        {
            let token = slots.begin(clock());
            operations.start(token, next);
            (next, starts) = (next + 1, starts + 1);
        }
        let has_more = next < range.end && stopped.is_none();
        if slots.open == 0 && !has_more {
            break;
        }
        // Without a limit nothing waits for answers while there is something to start.
        let wait = if has_more && options.in_flight.is_none() { 0 } else { LOOK_NS };
        operations.poll(Duration::from_nanos(wait), |token, outcome| {
            ended_ns = clock();
            slots.end(token, &outcome, ended_ns);
        })?;
        let now_ns = real_ns();
        if options.in_flight.is_none() && has_more && process::rss_bytes() > options.memory_cap_bytes {
            stopped = Some("memory");
        }
        if now_ns < look_ns {
            continue;
        }
        look_ns = now_ns + LOOK_NS;
        if stopped.is_none() && options.stop.is_asked() {
            stopped = Some("signal");
        }
        if stopped.is_some() {
            let cut_ns = *cut_ns.get_or_insert(now_ns + GRACE_NS);
            if now_ns >= cut_ns {
                slots.give_up(0, clock(), "stopped", "the run was stopped before the result came");
            }
        }
        let text = || format!("no result within {} ms", options.timeout_ns / 1_000_000);
        slots.give_up(options.timeout_ns, clock(), "timeout", &text());
        if now_ns >= second_ns {
            second_ns += SECOND_NS;
            on_second(&mut slots.tally, slots.open);
        }
    }
    if slots.tally.has_news() {
        on_second(&mut slots.tally, 0);
    }
    let elapsed_ns = ended_ns.saturating_sub(began_ns);
    Ok(Phase { tally: slots.tally, elapsed_ns, timeline: slots.timeline, stopped })
}
