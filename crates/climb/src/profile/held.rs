//! What was seen in one profiled hold, and both of them side by side.

use std::collections::BTreeMap;

use anyhow::bail;
use console::masks::mask;
use inflight_analysis::{Kind, Stacks};
use ladder::Rung;
use ladder::growth::{Allocating, PERF, ProfiledHold};
use measure::trial::Hold;
use measure::{ErrorKind, Flow, Measure, Trial};
use watch::profile::runtime::Allocations;
use watch::profile::{Cpu, SAMPLES_PER_S, Seen, Waits};

use super::{SECOND_NS, waiting};

/// Of two holds' shares together.
const UNWOUND_MORE: f64 = 0.1;

/// Folded stacks, as text and read.
pub(super) struct Folded {
    pub(super) text: String,
    pub(super) stacks: Stacks,
}

impl Folded {
    /// Errors: the stacks are none.
    fn of(text: String) -> anyhow::Result<Folded> {
        let stacks = Stacks::read(&text)?;
        Ok(Folded { text, stacks })
    }

    /// The share of samples that reach the server's own code.
    fn own_share(&self) -> f64 {
        let is_own = |frames: &[inflight_analysis::Frame]| frames.iter().any(|(kind, _)| *kind == Kind::User);
        let own: u64 = self.stacks.each().filter(|(frames, _)| is_own(frames)).map(|(_, count)| count).sum();
        own as f64 / self.stacks.sum().max(1) as f64
    }

    fn functions(&self) -> BTreeMap<String, u64> {
        let mut functions: BTreeMap<String, u64> = BTreeMap::new();
        for one in self.stacks.top(usize::MAX) {
            let name =
                if one.kind == Kind::Kernel { format!("{} (kernel)", one.function) } else { one.function };
            *functions.entry(name).or_default() += one.own;
        }
        functions
    }
}

/// Operations that the server was done with, per second of the hold: those that ended in it. Of an overloaded server many that
/// were planned in the hold end long after it, and one that was given up is not done.
fn done_per_s(trial: &Trial, hold: &Hold) -> f64 {
    let whole = hold.from_ns.div_ceil(SECOND_NS)..hold.to_ns / SECOND_NS;
    let seconds = trial.seconds.iter().filter(|second| whole.contains(&u64::from(second.index)));
    let done = |flow: &Flow| flow.answered + flow.told + flow.failed;
    let (count, sum) = seconds.fold((0, 0), |(count, sum), second| (count + 1, sum + done(&second.flow)));
    let given_up: u64 = trial.errors_of(ErrorKind::Timeout).map(|(_, count)| count).sum();
    sum.saturating_sub(given_up) as f64 / f64::from(count.max(1))
}

/// One hold with all that was seen in it.
pub(super) struct Held {
    hold: ProfiledHold,
    by: Vec<Folded>,
    waits: Option<Waits>,
    allocations: Option<Allocations>,
    notes: Vec<String>,
}

impl Held {
    /// Errors: the load was never held, or the stacks are none.
    pub(super) fn of(trial: &Trial, judged: &Rung, seen: Seen) -> anyhow::Result<Held> {
        let Some(hold) = &trial.hold else {
            bail!("{} {} could not be held again", judged.load, judged.load_unit)
        };
        let rate_per_s = done_per_s(trial, hold);
        let cpu_s = trial.subject.as_ref().map(|used| used.cpu_cores * hold.seconds());
        let (by, cpu_by, samples_per_s) = match seen.cpu {
            None => (Vec::new(), None, f64::from(SAMPLES_PER_S)),
            Some(Cpu::Perf(both)) => {
                let both = both.into_iter().map(Folded::of).collect::<Result<_, _>>()?;
                (both, Some(PERF), f64::from(SAMPLES_PER_S))
            }
            Some(Cpu::Runtime(kind, folded, per_s)) => {
                let folded = Folded::of(folded)?;
                // Runtimes sample threads that are ready to run, whether they have a core or not: no more than the CPU time.
                let per_s =
                    cpu_s.map_or(per_s, |cpu_s| per_s.max(folded.stacks.sum() as f64 / cpu_s.max(0.01)));
                (vec![folded], Some(kind.profiler()), per_s)
            }
        };
        let waiting = seen.waits.as_ref().map(|waits| match waits {
            Ok(waits) => Ok(waiting::of(waits, trial)),
            Err(why) => Err(mask(why).into_owned()),
        });
        let allocating = match &seen.allocations {
            None => None,
            Some(Ok(allocations)) => Some(Ok(allocating(allocations))),
            Some(Err(why)) => Some(Err(mask(why).into_owned())),
        };
        let hold = ProfiledHold {
            samples_per_s,
            cpu_by: cpu_by.map(str::to_owned),
            waiting,
            allocating,
            stops: seen.stops,
            ..of_hold(trial, hold, judged, rate_per_s)
        };
        let (waits, allocations) = (seen.waits.and_then(Result::ok), seen.allocations.and_then(Result::ok));
        Ok(Held { hold, by, waits, allocations, notes: seen.notes })
    }

    fn by(mut self, at: usize) -> Profiled {
        let folded = (at < self.by.len()).then(|| self.by.swap_remove(at));
        let mut hold = self.hold;
        if let Some(folded) = &folded {
            (hold.samples, hold.functions) = (folded.stacks.sum(), folded.functions());
        }
        Profiled { hold, folded, waits: self.waits, allocations: self.allocations, notes: self.notes }
    }
}

/// Its figures, without what a profiler saw.
fn of_hold(trial: &Trial, hold: &Hold, judged: &Rung, rate_per_s: f64) -> ProfiledHold {
    let per_operation = |cores: f64, rate: f64| (rate > 0.0).then_some(cores * 1e9 / rate);
    let times = trial.distribution(Measure::Response).summary();
    ProfiledHold {
        load: judged.load,
        load_unit: judged.load_unit,
        hold_s: hold.seconds(),
        operations: (rate_per_s * hold.seconds()).round() as u64,
        cpu_ns: trial.subject.as_ref().and_then(|used| per_operation(used.cpu_cores, rate_per_s)),
        judged_cpu_ns: judged
            .subject
            .as_ref()
            .and_then(|used| per_operation(used.process.cpu_cores, judged.rate_per_s)),
        rate_per_s,
        judged_rate_per_s: judged.rate_per_s,
        p99_ns: times.as_ref().and_then(|summary| summary.p99),
        p50_ns: times.as_ref().and_then(|summary| summary.p50),
        judged_p50_ns: judged.response_ns.as_ref().and_then(|summary| summary.p50),
        judged_p99_ns: judged.response_ns.as_ref().and_then(|summary| summary.p99),
        ..ProfiledHold::default()
    }
}

/// By innermost function of the server's own code, as CPU is.
fn allocating(allocations: &Allocations) -> Allocating {
    let mut functions: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for one in &allocations.each {
        let sum = functions.entry(one.function().to_owned()).or_default();
        *sum = (sum.0.saturating_add(one.bytes), sum.1.saturating_add(one.samples));
    }
    Allocating { functions }
}

/// One hold with the stacks that tell most.
pub(super) struct Profiled {
    pub(super) hold: ProfiledHold,
    /// where CPU was sampled
    pub(super) folded: Option<Folded>,
    pub(super) waits: Option<Waits>,
    pub(super) allocations: Option<Allocations>,
    pub(super) notes: Vec<String>,
}

impl Profiled {
    /// Both holds with stacks found in the same way: by frame pointers, unless debug information reaches the server's own code
    /// in so much more of them. Errors: their CPU was sampled in different ways.
    pub(super) fn both(good: Held, bad: Held) -> anyhow::Result<[Profiled; 2]> {
        if good.hold.cpu_by != bad.hold.cpu_by {
            let by = |held: &Held| held.hold.cpu_by.clone().unwrap_or_default();
            bail!("one load was sampled by {} and the other by {}; run it again", by(&good), by(&bad));
        }
        let mut at = 0;
        if let ([framed, unwound], [framed_bad, unwound_bad]) = (&good.by[..], &bad.by[..]) {
            let share = |good: &Folded, bad: &Folded| good.own_share() + bad.own_share();
            at = usize::from(share(unwound, unwound_bad) > share(framed, framed_bad) + UNWOUND_MORE);
        }
        Ok([good.by(at), bad.by(at)])
    }
}
