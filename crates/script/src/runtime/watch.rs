//! Stops a turn that does not end, or that takes too much memory.
//!
//! What counts is the CPU time of this thread: on a machine that is busy with something else, a turn may take long without
//! being at fault. The engine asks every ten thousand steps, so that a turn of usual length reads no clock at all.

use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Duration;

use rquickjs::{Ctx, qjs};
use rustix::time::{ClockId, clock_gettime};

use super::PRELUDE;
use super::memory::Memory;

/// A turn that takes more CPU time is stopped.
const TURN_CPU: Duration = Duration::from_secs(1);

/// The engine asks at most so often more for a line: less than a tenth of a second.
const OUTSIDE_MAX: u32 = 100;

/// How many frames of the stack are searched for a function of the script's author.
const FRAMES_MAX: isize = 8;

/// What happened, behind the name of what took so long.
pub(super) fn too_long() -> String {
    format!("ran for more than {} s of CPU time without giving way and was stopped", TURN_CPU.as_secs())
}

/// The turn that is under way.
pub(super) struct Watch {
    memory: Rc<Memory>,
    context: Cell<Option<NonNull<qjs::JSContext>>>,
    /// how often the engine asked where it should stop and no function of a script was running
    outside_count: Cell<u32>,
    is_on: Cell<bool>,
    /// CPU time of the thread when the engine first asked
    first: Cell<Option<Duration>>,
    has_stopped: Cell<bool>,
}

impl Watch {
    pub(super) fn new(memory: Rc<Memory>) -> Watch {
        Watch {
            memory,
            context: Cell::new(None),
            outside_count: Cell::new(0),
            is_on: Cell::new(false),
            first: Cell::new(None),
            has_stopped: Cell::new(false),
        }
    }

    /// Turns run in this context.
    pub(super) fn set_context(&self, context: &Ctx<'_>) {
        self.context.set(Some(context.as_raw()));
    }

    pub(super) fn begin(&self) {
        self.outside_count.set(0);
        self.is_on.set(true);
        self.first.set(None);
        self.has_stopped.set(false);
    }

    /// Ends the turn. Whether it was stopped.
    pub(super) fn end(&self) -> bool {
        self.is_on.set(false);
        self.has_stopped.take()
    }

    /// Whether this turn was stopped.
    pub(super) fn has_stopped(&self) -> bool {
        self.has_stopped.get()
    }

    /// Whether the engine should stop. Once it should, it should until the turn ends: each of its jobs ends then.
    pub(super) fn stops(&self) -> bool {
        if !self.is_on.get() {
            return false;
        }
        if !self.has_stopped.get() {
            let should = self.memory.has_met_a_bound() || self.is_over_time();
            self.has_stopped.set(should && self.is_at_a_line());
        }
        self.has_stopped.get()
    }

    fn is_over_time(&self) -> bool {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let now = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        match self.first.get() {
            None => {
                self.first.set(Some(now));
                false
            }
            Some(first) => now.saturating_sub(first) > TURN_CPU,
        }
    }

    /// Whether a function of a script is running, so that its line can be told; or the engine has asked too often outside of one.
    ///
    /// Between two microtasks none is. The engine counts steps, so a loop of them may be asked at the same place each time;
    /// steps of ours move it on. Their number looks random: in a regular one, some loops never met their line.
    fn is_at_a_line(&self) -> bool {
        let Some(context) = self.context.get() else { return true };
        // SAFETY: the engine asks in the middle of a turn in this context, which lives as long as its turns.
        let context = unsafe { Ctx::from_raw(context) };
        if self.outside_count.get() == OUTSIDE_MAX || is_in_a_script(&context) {
            return true;
        }
        let count = self.outside_count.get() + 1;
        self.outside_count.set(count);
        for _ in 0..=(count.wrapping_mul(0x9E37_79B1) >> 28) {
            if context.eval::<(), _>("0").is_err() {
                context.catch();
            }
        }
        false
    }
}

/// Whether one of the innermost functions is the script author's own, neither native nor of the prelude.
fn is_in_a_script(context: &Ctx<'_>) -> bool {
    (0..FRAMES_MAX)
        .filter_map(|level| context.script_or_module_name(level))
        .any(|name| name.to_string().is_ok_and(|name| PRELUDE.iter().all(|(prelude, _)| *prelude != name)))
}
