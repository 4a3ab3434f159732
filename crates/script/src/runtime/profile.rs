//! Which functions of the script take the time, by samples of the one that runs.
//!
//! QuickJS asks its interrupt handler every ten thousand steps (calls, and rounds of loops). When turns have taken
//! `SAMPLE_EVERY` since the last sample, the innermost running function of the script's own files gets that time; a sample
//! is one short call of the prelude, so that all of them take little of the script's time. What a function calls counts for what it
//! calls. A built-in function that takes long, such as `JSON.parse`, counts where the script comes next: mostly its caller.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use rquickjs::{CatchResultExt as _, Ctx, Function, Persistent, qjs};

/// Time of turns between two samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(2);
/// No more functions are told apart.
const FUNCTIONS_MAX: usize = 10_000;

/// Asks the prelude which function runs.
struct Asks {
    context: NonNull<qjs::JSContext>,
    running: Persistent<Function<'static>>,
}

#[derive(Default)]
pub(super) struct Profile {
    asks: RefCell<Option<Asks>>,
    /// from when the turn that is under way counts; `None` between turns and during a sample
    since: Cell<Option<Instant>>,
    /// of turns that ended after the last sample
    unsampled: Cell<Duration>,
    /// by what the prelude said
    found: RefCell<HashMap<String, Duration, foldhash::fast::RandomState>>,
}

impl Profile {
    /// From now on it samples. `running`: `name`, a line end, and `file:line:column` of the function; empty for none.
    pub(super) fn start<'js>(&self, ctx: &Ctx<'js>, running: Function<'js>) {
        let running = Persistent::save(ctx, running);
        *self.asks.borrow_mut() = Some(Asks { context: ctx.as_raw(), running });
    }

    /// Lets go what it holds of the engine, which must outlive it.
    pub(super) fn stop(&self) {
        self.asks.borrow_mut().take();
    }

    pub(super) fn begin(&self, now: Instant) {
        self.since.set(Some(now));
    }

    pub(super) fn end(&self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.unsampled.set(self.unsampled.get() + now.saturating_duration_since(since));
        }
    }

    /// In the interrupt handler: between two steps of the script, with its frames in place.
    pub(super) fn sample(&self) {
        let Some(since) = self.since.get() else { return };
        let now = Instant::now();
        let time = self.unsampled.get() + now.saturating_duration_since(since);
        if time < SAMPLE_EVERY {
            return;
        }
        let asks = self.asks.borrow();
        let Some(Asks { context, running }) = asks.as_ref() else { return };
        // The handler may be called while it calls the prelude.
        self.since.set(None);
        // SAFETY: `Script` stops the profile before it drops its context, and the handler runs on its thread, inside a call of
        // this very context. A call from there is as one from a built-in function: it leaves the frames below as they are.
        let ctx = unsafe { Ctx::from_raw(*context) };
        let said: Option<String> =
            running.clone().restore(&ctx).and_then(|running| running.call(())).catch(&ctx).ok();
        if let Some(said) = said {
            let mut found = self.found.borrow_mut();
            if found.len() < FUNCTIONS_MAX || found.contains_key(&said) {
                *found.entry(said).or_default() += time;
            }
        }
        self.unsampled.set(Duration::ZERO);
        self.since.set(Some(now));
    }

    /// What was found since this was last asked: name, `file:line:column`, and time.
    pub(super) fn take(&self) -> Vec<(String, String, Duration)> {
        let split = |(said, time): (String, Duration)| {
            let (name, place) = said.split_once('\n')?;
            Some((name.to_owned(), place.to_owned(), time))
        };
        self.found.borrow_mut().drain().filter_map(split).collect()
    }
}
