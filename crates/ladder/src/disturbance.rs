//! Which seconds of a hold were disturbed, by what, and how much of what went wrong in them it can explain.
//!
//! A rung may pass under adverse conditions but may fail only under fair ones: stolen CPU, throttling and other
//! programs make latencies longer, ticks later and deliveries fewer, and never better. So objectives that are met are
//! met. Those that are not are evaluated again on the undisturbed seconds, or on the least disturbed ones after
//! subtracting what the disturbance can explain.
//! Not here: the effect on the verdict (`judge`). Units: shares in [0, 1], cores.

use std::collections::{BTreeMap, BTreeSet};

use measure::{HostSecond, Second, Trial};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::wording::show_share;

/// A second with more steal than this is disturbed.
pub const STEAL_SHARE_MOST: f64 = 0.02;
/// A second in which other programs used more than this share of the cores is disturbed …
pub const OTHERS_SHARE_MOST: f64 = 0.05;
/// … unless they used no more than this one, …
pub const OTHERS_SHARE_HARMLESS: f64 = 0.25;
/// … every thread of the server had a core whenever it wanted one, except for this share of the second, …
pub const SUBJECT_WAITING_SHARE_HARMLESS: f64 = 0.005;
/// … every worker, whose own delays are judged as well, except for this share, …
pub const WORKER_WAITING_SHARE_HARMLESS: f64 = 0.01;
/// … and each of them was on it for no longer than this share, so that a core that is slower because of its neighbours delays little.
pub const BUSY_SHARE_HARMLESS: f64 = 0.5;
/// Other programs that used less than that have disturbed a second too when a worker was kept waiting for a core longer
/// than this share of it …
pub const WAITING_SHARE_MOST: f64 = 0.05;
/// … and they used at least this share of the cores. Otherwise it waited for the server, which is no disturbance: they
/// share the cores.
pub const OTHERS_SHARE_LEAST: f64 = 0.02;
/// A thread that is on its core or kept off it for this share of a second has no slack: a short delay can then make
/// everything after it late, so it is unknown how much a disturbance explains.
pub const NO_SLACK_SHARE: f64 = 0.9;
/// A delay can make two ticks late: the one that it hits, whose interval is too long, and the next, whose interval is too
/// short.
pub const LATE_PER_HIT: f64 = 2.0;
/// A second in which a disturbance explains more than this leaves a server with a backlog.
pub const LONG_WAIT_SHARE_LEAST: f64 = 0.1;
/// Fewer undisturbed seconds than this share of the requested hold are too few to judge by …
pub const FAIR_SHARE_LEAST: f64 = 0.5;
/// … and so are fewer than this many, unless the hold was shorter.
pub const FAIR_SECONDS_LEAST: usize = 3;
/// A hold whose objectives are not met goes on for undisturbed seconds until it is this many times as long as asked.
pub const HOLD_LONGER_MOST: u32 = 2;

/// Programs named in a sentence.
const PROGRAMS_NAMED: usize = 3;

/// What disturbed a hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Disturbance {
    /// seconds of the hold that could be looked at
    pub seconds: u32,
    /// of these, disturbed: in them or in the one before, or around a long wait for a core, until what it left behind was worked off
    pub disturbed: u32,
    /// cores that other programs used in the disturbed seconds, mean; `None` where that is not readable
    pub others_cores: Option<f64>,
    /// the largest of them by name, with the cores that each used
    pub programs: BTreeMap<String, f64>,
    /// share of the CPU that the host took in the disturbed seconds, mean
    pub steal_share: Option<f64>,
    /// seconds with throttling, thermal or by a quota
    pub throttled: u32,
    /// seconds in which another run of Stepladder went on
    #[serde(default, skip_serializing_if = "is_none")]
    #[ts(optional, as = "Option<u32>")]
    pub beside_other_runs: u32,
    /// the most that a worker was kept waiting for a core in a disturbed second
    pub worker_waiting_share: Option<f64>,
    /// cores of the machine that may be used
    pub cores: Option<f64>,
    /// of all ticks of the hold, at most this share can be late because of it
    pub explains_ticks: f64,
    /// of all messages of the hold, at most this share can be late because of it
    pub explains_messages: f64,
}

/// Of a count that older readers do not know.
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// What may have disturbed a second, for a page that names what happened in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct DisturbedAbove {
    /// more steal than this
    pub steal_share: f64,
    /// more cores than these used by other programs
    pub others_cores: f64,
}

impl DisturbedAbove {
    /// For the number of cores that may be used; `None` where that is not known.
    pub fn of(cores: Option<f64>) -> Self {
        let cores = cores.filter(|cores| *cores > 0.0).unwrap_or(1.0);
        DisturbedAbove { steal_share: STEAL_SHARE_MOST, others_cores: OTHERS_SHARE_MOST * cores }
    }
}

impl Disturbance {
    /// Disturbed seconds of those that could be looked at.
    pub fn share(&self) -> Option<f64> {
        (self.seconds > 0).then(|| f64::from(self.disturbed) / f64::from(self.seconds))
    }

    /// True when a second was disturbed.
    pub fn any(&self) -> bool {
        self.disturbed > 0
    }

    /// `7 % of the hold was disturbed: the host stole 12 % of the CPU`; `None`: nothing was.
    pub(crate) fn in_words(&self) -> Option<String> {
        let share = self.share().filter(|share| *share > 0.0)?;
        Some(format!("{} of the hold was disturbed: {}", show_share(share), self.culprit()))
    }

    /// Who did it: `other programs used 1.1 of 2 cores (cc1 0.6, dpkg 0.4)`, `the host stole 12 % of the CPU`.
    pub fn culprit(&self) -> String {
        let mut parts = Vec::new();
        if self.beside_other_runs > 0 {
            parts.push(format!(
                "another Stepladder run went on for {} s of it",
                self.beside_other_runs.min(self.seconds)
            ));
        }
        let share_of_cores = |cores: f64| self.cores.map_or(cores, |all| cores / all);
        if let Some(cores) = self.others_cores.filter(|cores| share_of_cores(*cores) > OTHERS_SHARE_LEAST) {
            let of = self.cores.map_or(String::new(), |all| format!(" of {all:.0}"));
            let mut named: Vec<(&String, &f64)> = self.programs.iter().collect();
            named.sort_by(|a, b| b.1.total_cmp(a.1).then_with(|| a.0.cmp(b.0)));
            let named: Vec<String> = named
                .into_iter()
                .take(PROGRAMS_NAMED)
                .filter(|(_, cores)| **cores >= 0.05)
                .map(|(name, cores)| format!("{name} {cores:.1}"))
                .collect();
            let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
            parts.push(format!("other programs used {cores:.1}{of} cores{named}"));
        }
        if let Some(share) = self.steal_share.filter(|share| *share > STEAL_SHARE_MOST) {
            parts.push(format!("the host stole {} of the CPU", show_share(share)));
        }
        if self.throttled > 0 {
            parts.push(format!("the CPU was throttled in {} s", self.throttled));
        }
        match (parts.is_empty(), self.worker_waiting_share) {
            (true, Some(share)) => {
                format!("the load generator waited for a core up to {} of the time", show_share(share))
            }
            (true, None) => "something else used the CPU".to_owned(),
            (false, _) => parts.join("; "),
        }
    }
}

/// The seconds of a trial on which an objective that was not met is asked about again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeastDisturbed {
    /// the others, by their index; also after the hold, when answers to it still arrive
    pub left_out: BTreeSet<u32>,
    /// nothing disturbed those that are kept, so they say what all would have said
    pub are_undisturbed: bool,
    /// of the ticks in those that are kept, at most this share can be late because of a disturbance
    pub explains_ticks: f64,
    /// the same of the messages
    pub explains_messages: f64,
}

/// What disturbed the hold.
pub fn disturbance(trial: &Trial) -> Disturbance {
    let cores = trial.worker.allowed_cores;
    let unfair = unfair(trial);
    let mut found = Disturbance { cores, ..Disturbance::default() };
    let (mut others, mut steal) = (Mean::default(), Mean::default());
    let (mut of_ticks, mut of_messages) = (0.0, 0.0);
    let is_readable = |second: &&Second| {
        let host = &second.host;
        host.steal_share.is_some() || host.throttle_events.is_some() || host.others_cores.is_some()
    };
    for second in trial.hold_seconds().filter(is_readable) {
        found.seconds += 1;
        if unfair.all.contains(&second.index) {
            found.disturbed += 1;
            of_ticks += unfair.explained(second, false);
            of_messages += unfair.explained(second, true);
        }
    }
    // CPU users are named by the seconds in which they ran, including the one before the hold, which disturbs the
    // first.
    let end = trial.hold_seconds().last().map_or(0, |second| second.index + 1);
    let own = |second: &&Second| second.index < end && unfair.own.contains(&second.index);
    for second in trial.seconds.iter().filter(own).filter(is_readable) {
        let host = &second.host;
        others.add(host.others_cores);
        steal.add(host.steal_share);
        found.cores = host.others_of_cores.or(found.cores);
        found.throttled += u32::from(is_throttled(host));
        found.beside_other_runs += u32::from(is_beside_another_run(host));
        for (name, cores) in &host.programs {
            *found.programs.entry(name.clone()).or_default() += cores;
        }
        let waiting = [found.worker_waiting_share, host.worker_waiting_share].into_iter().flatten();
        found.worker_waiting_share = waiting.max_by(f64::total_cmp);
    }
    (found.others_cores, found.steal_share) = (others.mean(), steal.mean());
    let named = others.count.max(1) as f64;
    found.programs.values_mut().for_each(|cores| *cores /= named);
    found.programs.retain(|_, cores| *cores >= 0.02);
    let all = f64::from(found.seconds.max(1));
    (found.explains_ticks, found.explains_messages) = (of_ticks / all, of_messages / all);
    found
}

/// The seconds to ask again about what was not met in a hold that was to last `hold_ns` (0: not known).
///
/// The undisturbed ones where they are enough; otherwise as many as are needed of those in which a disturbance explains
/// least. They are chosen by what happened to the threads, never by how the server did, and in pairs of neighbours: a
/// server counts its ticks by seconds of its own, which lie across two of ours.
pub fn least_disturbed(trial: &Trial, hold_ns: u64) -> LeastDisturbed {
    let asked_s = match hold_ns {
        0 => trial.hold.as_ref().map_or(0.0, |hold| hold.seconds()),
        ns => ns as f64 / 1e9,
    };
    let needed = fair_seconds_needed(asked_s);
    let unfair = unfair(trial);
    let mut left_out = unfair.all.clone();
    if trial.hold_seconds().filter(|second| !left_out.contains(&second.index)).count() >= needed {
        return LeastDisturbed { left_out, are_undisturbed: true, ..LeastDisturbed::default() };
    }
    let mut before = 0.0;
    let mut seconds: Vec<(&Second, f64, f64)> = Vec::new();
    for second in trial.hold_seconds() {
        let (mut ticks, mut messages) = (0.0, 0.0);
        if left_out.contains(&second.index) {
            let own = unfair.explained(second, false);
            // Work that a thread without slack could not do is still late in the next second.
            ticks = if before >= 1.0 { 1.0 } else { own };
            messages = unfair.explained(second, true).max(ticks);
            before = own;
        }
        seconds.push((second, ticks, messages));
    }
    let mut pairs: Vec<&[(&Second, f64, f64)]> = seconds.windows(2).collect();
    let bound = |pair: &[(&Second, f64, f64)]| pair.iter().map(|(_, ticks, _)| ticks).sum::<f64>();
    pairs.sort_by(|a, b| bound(a).total_cmp(&bound(b)));
    pairs.truncate(needed);
    let kept: BTreeSet<u32> = pairs.iter().copied().flatten().map(|(second, ..)| second.index).collect();
    let (mut ticks, mut messages) = (0.0, 0.0);
    for (second, of_ticks, of_messages) in &seconds {
        if kept.contains(&second.index) {
            left_out.remove(&second.index);
            (ticks, messages) = (ticks + of_ticks, messages + of_messages);
        } else {
            left_out.insert(second.index);
        }
    }
    let count = kept.len().max(1) as f64;
    LeastDisturbed {
        left_out,
        are_undisturbed: false,
        explains_ticks: ticks / count,
        explains_messages: messages / count,
    }
}

/// What a disturbance explains of each disturbed second of the hold, by its index: of its ticks, or of its messages.
///
/// The most of the second and its neighbours: what a server tells of a second need not begin with one of ours.
pub(crate) fn explained_by_second(trial: &Trial, counts_workers: bool) -> BTreeMap<u32, f64> {
    let unfair = unfair(trial);
    let of_second = |second: &Second| unfair.explained(second, counts_workers);
    let own: BTreeMap<u32, f64> =
        trial.seconds.iter().map(|second| (second.index, of_second(second))).collect();
    let at = |index: Option<u32>| index.and_then(|index| own.get(&index).copied()).unwrap_or(0.0);
    own.iter()
        .map(|(&index, share)| (index, share.max(at(index.checked_sub(1))).max(at(index.checked_add(1)))))
        .collect()
}

/// Disturbed seconds by their index, from the one before the hold on.
#[derive(Default)]
struct Unfair {
    /// something took CPU in them
    own: BTreeSet<u32>,
    /// around a long wait for a core
    around_waits: BTreeSet<u32>,
    /// these, and the one after each disturbed second: not fair to judge by
    all: BTreeSet<u32>,
}

impl Unfair {
    /// The most of what happened in a second that disturbances can explain, of its ticks or of its messages.
    fn explained(&self, second: &Second, counts_workers: bool) -> f64 {
        if self.around_waits.contains(&second.index) {
            1.0
        } else if self.all.contains(&second.index) {
            explained(&second.host, counts_workers)
        } else {
            0.0
        }
    }
}

fn unfair(trial: &Trial) -> Unfair {
    let Some(hold) = &trial.hold else { return Unfair::default() };
    let from = (hold.from_ns / 1_000_000_000) as u32;
    let is_own =
        |second: &&Second| second.index + 1 >= from && is_disturbed(&second.host, trial.worker.allowed_cores);
    let own: BTreeSet<u32> = trial.seconds.iter().filter(is_own).map(|second| second.index).collect();
    let around_waits: BTreeSet<u32> =
        around_waits(trial, &own).into_iter().filter(|index| *index >= from).collect();
    let after = own.iter().flat_map(|index| [*index, index + 1]).filter(|index| *index >= from);
    let all = after.chain(around_waits.iter().copied()).collect();
    Unfair { own, around_waits, all }
}

/// The seconds around a long wait for a core: the one before, and those in which its backlog is worked off, one after the
/// other.
///
/// The kernel reports a wait when it ends, so it may have begun in the second before. What a server could not do without a core it
/// does afterwards, besides what comes anew: at a load of λ per second and µ that it can do, a wait of w is felt for
/// w·λ/(µ − λ) more. Then fewer requests are open from second to second, or their replies take less long where more of them
/// wait to be sent; of broadcasts their deliveries take less long. A server that is overloaded by itself does not catch up: the first second in which neither becomes less
/// counts.
fn around_waits(trial: &Trial, own: &BTreeSet<u32>) -> BTreeSet<u32> {
    let (mut found, mut delayed) = (BTreeSet::new(), BTreeSet::new());
    let (mut catches_up, mut open_before, mut mean_before) = (false, 0, None);
    for second in &trial.seconds {
        let is_delayed = own.contains(&second.index) && explained(&second.host, true) > LONG_WAIT_SHARE_LEAST;
        let one_before = second.index.checked_sub(1);
        // Delayed requests are answered late in the next second, so that one cannot be compared.
        let is_after = one_before.is_some_and(|before| delayed.contains(&before));
        let mean = second.delivery_mean_ns.or(second.response_mean_ns);
        let is_less = second.flow.open_after < open_before
            || mean.zip(mean_before).is_some_and(|(now, then)| now < then);
        if is_delayed {
            found.extend(one_before.filter(|before| !delayed.contains(before)));
            delayed.insert(second.index);
        }
        catches_up = is_delayed || is_after || catches_up && is_less;
        if catches_up && !is_delayed {
            found.insert(second.index);
        }
        open_before = second.flow.open_after;
        mean_before = mean.or(mean_before);
    }
    found
}

/// How many undisturbed seconds are enough to judge a hold of `asked_s` by.
pub fn fair_seconds_needed(asked_s: f64) -> usize {
    let asked = asked_s.max(1.0).round() as usize;
    ((asked_s * FAIR_SHARE_LEAST).ceil() as usize).max(FAIR_SECONDS_LEAST).min(asked)
}

/// Whether something other than server and generator took CPU in a second.
///
/// `cores`: of the load generator's machine.
pub fn is_disturbed(host: &HostSecond, cores: Option<f64>) -> bool {
    let cores = host.others_of_cores.or(cores);
    let share_of_cores = |used: f64| cores.filter(|cores| *cores > 0.0).map_or(used, |cores| used / cores);
    let others = host.others_cores.map_or(0.0, share_of_cores);
    let waiting = host.worker_waiting_share.is_some_and(|share| share > WAITING_SHARE_MOST);
    host.steal_share.is_some_and(|share| share > STEAL_SHARE_MOST)
        || is_throttled(host)
        || is_beside_another_run(host)
        || (others > OTHERS_SHARE_MOST && !(others <= OTHERS_SHARE_HARMLESS && had_their_cores(host)))
        || (waiting && others > OTHERS_SHARE_LEAST)
}

/// Whether the threads of server and generator were neither kept waiting for a core nor short of one. False where that is
/// not known.
fn had_their_cores(host: &HostSecond) -> bool {
    let is_at_most = |share: Option<f64>, most: f64| share.is_some_and(|share| share <= most);
    is_at_most(host.subject_waiting_share, SUBJECT_WAITING_SHARE_HARMLESS)
        && is_at_most(host.worker_waiting_share, WORKER_WAITING_SHARE_HARMLESS)
        && is_at_most(host.worker_cpu_share, BUSY_SHARE_HARMLESS)
        && subject_busy(host) <= BUSY_SHARE_HARMLESS
}

/// Cores that the server's busiest thread used. One that hardly ran is not named.
fn subject_busy(host: &HostSecond) -> f64 {
    host.subject_thread.as_ref().map_or(0.0, |(_, cores)| *cores)
}

/// Two generators with their servers want all cores at the same instants.
fn is_beside_another_run(host: &HostSecond) -> bool {
    host.other_runs.is_some_and(|count| count > 0.0)
}

fn is_throttled(host: &HostSecond) -> bool {
    [host.throttle_events, host.quota_throttle_events].into_iter().flatten().any(|count| count > 0.0)
}

/// The most of what happened in a disturbed second that the disturbance can explain.
///
/// What is late was due while its thread had no core: stolen by the host, or runnable and waiting. So the share of the
/// second that the thread was kept from its core bounds it, unless the thread had no slack to catch up.
fn explained(host: &HostSecond, counts_workers: bool) -> f64 {
    // Another run's bots and server wait for each other and for ours: the effect has no bound.
    if is_throttled(host) || is_beside_another_run(host) {
        return 1.0;
    }
    // Without thread data the effect of other programs has no bound.
    let Some(waiting) = host.subject_waiting_share else { return 1.0 };
    let busy = subject_busy(host);
    let stolen = host.steal_share_max.or(host.steal_share).unwrap_or(0.0);
    let mut kept_away = waiting + stolen;
    if busy + kept_away > NO_SLACK_SHARE {
        return 1.0;
    }
    if counts_workers {
        let (Some(waiting), Some(busy)) = (host.worker_waiting_share, host.worker_cpu_share) else {
            return 1.0;
        };
        if busy + waiting + stolen > NO_SLACK_SHARE {
            return 1.0;
        }
        kept_away += waiting + stolen;
    }
    (LATE_PER_HIT * kept_away).min(1.0)
}

#[derive(Default)]
struct Mean {
    sum: f64,
    count: usize,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}
