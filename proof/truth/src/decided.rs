//! DECIDE: objectives on percentiles that too few samples state: how often planted shares are decided and how often wrongly, and
//! searches of a server of four slots of 50 ms, which holds 80 requests per second and no more.

use std::collections::BTreeMap;

use engine::simulation::{Law, simulate};
use ladder::testing::{TrialBuilder, search};
use ladder::{Criteria, Goal, Judged, Next, Objective, Outcome, SearchSchedule, Stop, Verdict, judge};
use measure::{Measure, Purpose};
use plan::{Arrivals, WorkerPlan};

use crate::http::{SECOND_NS, Simulated, open, times, trial};
use crate::{Form, Row};

const ID: &str = "DECIDE";
const DRAWS: u64 = 10_000;
const BOUND_NS: u64 = 200_000_000;
const SLOTS: usize = 4;
const SERVICE_NS: u64 = 50_000_000;
const CAPACITY_PER_S: f64 = 80.0;

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let mut rows = shares();
    rows.extend(searches(form));
    rows
}

/// Samples that are late with a probability each, or in runs.
fn shares() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |decider: &mut Decider, share: f64, run: u64, wanted: Option<bool>, range: (f64, f64)| {
        let found = decider.share_decided(share, run, wanted.unwrap_or(true));
        let (figure, samples) = (decider.figure, decider.samples);
        let runs = if run > 1 { format!(" in runs of {run}") } else { String::new() };
        let what = match wanted {
            None => "met, wrongly",
            Some(true) => "met",
            Some(false) => "not met",
        };
        let what =
            format!("{figure}, {samples} samples, {:.2} % late{runs}, {DRAWS} draws: {what}", share * 100.0);
        let expected = if wanted.is_none() { "seldom" } else { "nearly all" };
        rows.push(Row::share((ID, what), expected, found, range));
    };
    for (figure, allowed, counts) in
        [("p95", 0.05, [62, 742, 1_600]), ("p99", 0.01, [310, 1_500, 8_000]), ("p50", 0.5, [8, 60, 180])]
    {
        for samples in counts {
            let mut decider = Decider::new(figure, samples);
            // The share that the percentile leaves and just more than that: neither is kept surely.
            add(&mut decider, allowed, 1, None, (0.0, 0.05));
            // Not a single late sample in so few is chance, in runs of four more often.
            if allowed * samples as f64 > 12.0 {
                add(&mut decider, allowed, 4, None, (0.0, 0.05));
            }
        }
    }
    for (figure, samples, few, many) in [("p95", 742, 0.013, 0.16), ("p99", 3_000, 0.002, 0.03)] {
        let mut decider = Decider::new(figure, samples);
        add(&mut decider, few, 1, Some(true), (0.95, 1.0));
        add(&mut decider, many, 1, Some(false), (0.95, 1.0));
    }
    rows
}

/// What an objective says of so many samples, by how many of them are late.
struct Decider {
    figure: &'static str,
    objective: Objective,
    samples: u64,
    known: BTreeMap<u64, Option<bool>>,
}

impl Decider {
    fn new(figure: &'static str, samples: u64) -> Decider {
        let objective = format!("response.{figure} < 200ms").parse().unwrap();
        Decider { figure, objective, samples, known: BTreeMap::new() }
    }

    fn decided(&mut self, late: u64) -> Option<bool> {
        let (objective, samples) = (&self.objective, self.samples);
        *self.known.entry(late).or_insert_with(|| {
            let builder = TrialBuilder { hold_s: 1, ..TrialBuilder::asking(10.0) };
            let planted = builder.edit(move |_, interval| {
                let values = interval.distribution_mut(Measure::Response, true);
                values.clear();
                values.record_many(BOUND_NS / 4, samples - late);
                values.record_many(BOUND_NS * 2, late);
            });
            match objective.evaluate(&planted.build()) {
                Outcome::Met { .. } => Some(true),
                Outcome::NotMet { .. } => Some(false),
                Outcome::CannotTell { .. } => None,
            }
        })
    }

    /// Of many draws, the share that is decided as `wanted`. Runs of late samples are `run` long.
    fn share_decided(&mut self, share: f64, run: u64, wanted: bool) -> f64 {
        let mut random = fastrand::Rng::with_seed(self.samples ^ run);
        let decided = (0..DRAWS).filter(|_| {
            let runs = (0..self.samples / run).filter(|_| random.f64() < share).count() as u64;
            self.decided(runs * run) == Some(wanted)
        });
        decided.count() as f64 / DRAWS as f64
    }
}

/// Quick searches between 20 and 200 requests per second, as `climb http://… --search quick --rate 20,200` makes them.
fn searches(form: Form) -> Vec<Row> {
    let seeds = form.of(4, 40);
    let mut rows = Vec::new();
    for (arrivals, exact, width) in [
        (Arrivals::Even, CAPACITY_PER_S, 0.0),
        // A single hold of half a minute meets now more arrivals in a row and now fewer.
        (Arrivals::Poisson, by_queue(), 0.1),
    ] {
        let found: Vec<Found> = (0..seeds).map(|seed| searched(arrivals, seed)).collect();
        let is_inside = |one: &Found| {
            one.lower.is_some_and(|lower| lower <= exact * (1.0 + width))
                && one.upper.is_some_and(|upper| upper >= exact * (1.0 - width))
        };
        let named =
            |what: &str| (ID, format!("80 req/s in 4 slots, {arrivals} arrivals, {seeds} searches: {what}"));
        let bounds: Vec<String> = found.iter().map(Found::in_words).collect();
        let inside = found.iter().filter(|one| is_inside(one)).count() as u64;
        let allowed = if width > 0.0 { "± 10 %" } else { "all" };
        let (expected, got) = (format!("{exact:.1} inside"), format!("{inside}: {}", bounds.join("; ")));
        rows.push(Row::new(named("bounds contain it"), expected, got, allowed, inside == seeds));
        let mean = |of: fn(&Found) -> f64| found.iter().map(of).sum::<f64>() / seeds as f64;
        let got =
            format!("{:.1} trials, {:.0} s of holds", mean(|one| one.trials as f64), mean(|one| one.held_s));
        let is_ok = mean(|one| one.trials as f64) <= 15.0 && mean(|one| one.held_s) <= 200.0;
        rows.push(Row::new(named("mean cost"), "less than 15 trials and 280 s", got, "≤ 15, ≤ 200 s", is_ok));
        let void: usize = found.iter().map(|one| one.void).sum();
        let allowed = if width > 0.0 { seeds as usize } else { 0 };
        rows.push(Row::new(
            named("too few samples to tell"),
            0,
            void,
            format!("≤ {allowed}"),
            void <= allowed,
        ));
    }
    rows
}

/// What a search found and what it took.
struct Found {
    lower: Option<f64>,
    upper: Option<f64>,
    trials: usize,
    /// that could not be told for want of samples
    void: usize,
    held_s: f64,
}

impl Found {
    fn in_words(&self) -> String {
        let shown = |bound: Option<f64>| bound.map_or("–".to_owned(), |bound| format!("{bound}"));
        let (lower, upper) = (shown(self.lower), shown(self.upper));
        format!("{lower} to {upper} in {} trials, {:.0} s", self.trials, self.held_s)
    }
}

fn searched(arrivals: Arrivals, seed: u64) -> Found {
    let objective: Objective = "response.p95 < 200ms".parse().unwrap();
    let goal = Goal {
        final_trial_ns: 30 * SECOND_NS,
        duration_sum_ns: 30 * SECOND_NS,
        exceed_ratio: 0.5,
        width: 0.1,
    };
    let samples = objective.samples_of_responses().unwrap() as f64;
    let search = SearchSchedule {
        start: 20.0,
        least: 20.0,
        most: 200.0,
        goal,
        samples,
        rate_per_load: 1.0,
        ..search(1, 0.1)
    };
    let terms = Criteria {
        objectives: vec![objective, "errors == 0".parse().unwrap()],
        patience_ns: 60 * SECOND_NS,
        ..Criteria::default()
    };
    let schedule =
        ladder::Schedule { calibrations: Vec::new(), loads: ladder::Loads::Search(search.clone()) };
    let mut done: Vec<Judged> = Vec::new();
    let mut found = Found { lower: None, upper: None, trials: 0, void: 0, held_s: 0.0 };
    loop {
        let order = match schedule.next(&done) {
            Next::Trial(order) => order,
            Next::Done(stop) => {
                assert_eq!(stop, Stop::Complete);
                break;
            }
        };
        let hold_ns = order.hold_ns.unwrap();
        let seed = seed * 1_000 + u64::from(order.seq);
        let (load, times) = (order.load, times(hold_ns / SECOND_NS));
        // The server has no tick that even arrivals could lock onto.
        let plan = WorkerPlan { tick_period_ns: 0, ..open(load, 256, arrivals, seed) };
        let seconds = simulate::<Simulated>(&plan, times, &mut Law(four_slots()));
        let held = trial(&plan, load, seconds, times);
        let judgement = (order.purpose == Purpose::Rung)
            .then(|| judge(&held, None, &Criteria { hold_ns, ..terms.clone() }));
        let mut judged = Judged::of(&held, judgement.as_ref());
        (judged.purpose, judged.held_ns) = (order.purpose, hold_ns);
        found.held_s += hold_ns as f64 / 1e9;
        if judged.purpose == Purpose::Rung {
            found.trials += 1;
            found.void += usize::from(judged.verdict == Some(Verdict::Inconclusive));
        }
        done.push(judged);
    }
    let bounds = search.bounds(&done);
    (found.lower, found.upper) = (bounds.lower, bounds.upper);
    found
}

/// A server of four slots that takes 50 ms per request, in the order of arrival.
fn four_slots() -> impl FnMut(u64) -> Option<u64> {
    let mut free_ns = [0u64; SLOTS];
    move |at_ns| {
        let first = free_ns.iter_mut().min()?;
        *first = (*first).max(at_ns) + SERVICE_NS;
        Some(*first)
    }
}

/// The rate of random arrivals at which 5 % of the replies of that server are later than the bound, of a long series.
fn by_queue() -> f64 {
    const ARRIVALS: u64 = 200_000;
    let late_share = |rate_per_s: f64| {
        let (mut random, mut serve, mut at_ns) = (fastrand::Rng::with_seed(4), four_slots(), 0.0);
        let late = (0..ARRIVALS).filter(|_| {
            at_ns -= (1.0 - random.f64()).ln() / rate_per_s * 1e9;
            serve(at_ns as u64).is_some_and(|answered_ns| answered_ns > at_ns as u64 + BOUND_NS)
        });
        late.count() as f64 / ARRIVALS as f64
    };
    let (mut low, mut high) = (40.0, CAPACITY_PER_S);
    while high - low > 0.1 {
        let middle = (low + high) / 2.0;
        if late_share(middle) <= 0.05 { low = middle } else { high = middle }
    }
    low
}
