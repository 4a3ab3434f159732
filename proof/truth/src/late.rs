//! LATE: servers that collapse late in a hold, that leak, or that remember an overload: none of it is ever a lower bound.

use engine::simulation::{Law, simulate};
use ladder::testing::search;
use ladder::{Criteria, Judged, SearchSchedule, Verdict, capacity, judge};
use measure::LoadUnit;
use plan::Arrivals;

use crate::http::{SECOND_NS, Simulated, open, times, trial};
use crate::{Form, Row, share_of};

const ID: &str = "LATE";
const MS: f64 = 1e6;
const HOLD_S: u64 = 60;
/// The median alone is asked for: it is met in most seconds of each of these servers, and over the whole hold.
const OBJECTIVE: &str = "response.p50 < 50ms";

/// What becomes of a server late in its hold.
#[derive(Clone, Copy, Debug)]
enum Late {
    Never,
    Slow,
    Silent,
    Refusing,
    Leaking,
    Forgetting,
}

impl Late {
    fn name(self) -> &'static str {
        match self {
            Late::Never => "nothing happens",
            Late::Slow => "slow after 40 to 55 s",
            Late::Silent => "silent after 40 to 55 s",
            Late::Refusing => "refuses after 40 to 55 s",
            Late::Leaking => "each reply a little later than the one before",
            Late::Forgetting => "more and more requests are never answered",
        }
    }
}

/// The verdict of a hold of a minute at a random rate, and the lower bound that follows from it.
fn held(late: Late, seed: u64) -> (Verdict, Option<f64>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let rate = 100.0 + 200.0 * random.f64();
    let onset_s = 40.0 + 15.0 * random.f64();
    let growth = 2.5 + 4.0 * random.f64();
    let serve = move |at_ns: u64| {
        let at_s = at_ns as f64 / 1e9 - 1.0;
        let usual_ns = (4.0 + 4.0 * random.f64()) * MS;
        let over = at_s >= onset_s;
        let share = (at_s / HOLD_S as f64).clamp(0.0, 1.0);
        let never = u64::MAX / 2;
        match late {
            Late::Slow if over => Some(at_ns + (usual_ns + 150.0 * MS) as u64),
            Late::Silent if over => Some(never),
            Late::Refusing if over => None,
            Late::Leaking => Some(at_ns + (usual_ns * (1.0 + growth * share)) as u64),
            Late::Forgetting if random.f64() < 0.1 * share => Some(never),
            _ => Some(at_ns + usual_ns as u64),
        }
    };
    let plan = open(rate, 64, Arrivals::Poisson, seed);
    let seconds = simulate::<Simulated>(&plan, times(HOLD_S), &mut Law(serve));
    let terms = Criteria {
        objectives: vec![OBJECTIVE.parse().unwrap()],
        patience_ns: SECOND_NS,
        ..Criteria::default()
    };
    let trial = trial(&plan, rate, seconds, times(HOLD_S));
    let judgement = judge(&trial, None, &terms);
    let found = capacity(LoadUnit::Requests, &[Judged::of(&trial, Some(&judgement))], None);
    (judgement.verdict, found.lower_bound)
}

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let holds = form.of(20, 400);
    let mut rows = Vec::new();
    for late in [Late::Slow, Late::Silent, Late::Refusing, Late::Leaking, Late::Forgetting] {
        let wrong = share_of(0..holds, |seed| {
            let (verdict, lower) = held(late, seed);
            verdict != Verdict::Fail || lower.is_some()
        });
        let name = (ID, format!("{}: {holds} holds that are a lower bound or no FAIL", late.name()));
        rows.push(Row::share(name, "0 %", wrong, (0.0, 0.0)));
    }
    let right = share_of(0..holds, |seed| {
        let (verdict, lower) = held(Late::Never, seed);
        verdict == Verdict::Pass && lower.is_some()
    });
    let name = (ID, format!("{}: {holds} holds that PASS", Late::Never.name()));
    rows.push(Row::share(name, "100 %", right, (0.99, 1.0)));
    rows.push(remembering(form.of(200, 2_000)));
    rows
}

/// A server that holds less for good once it was overloaded, and is never started again: what it held before is no
/// lower bound.
fn remembering(searches: u64) -> Row {
    let wrong = share_of(0..searches, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let fresh = 500.0 * (4.0 * random.f64() - 2.0).exp();
        let afterwards = fresh * (0.2 + 0.6 * random.f64());
        let mut was_overloaded = false;
        let search = SearchSchedule { restarts_subject: false, ..search(3, 0.05) };
        let done = search.followed(|_, load| {
            let holds = load <= if was_overloaded { afterwards } else { fresh };
            was_overloaded |= load > fresh;
            holds
        });
        capacity(LoadUnit::Clients, &done, Some(&search)).lower_bound.is_some_and(|lower| lower > afterwards)
    });
    let name =
        (ID, format!("an overload is remembered: {searches} searches whose lower bound it held only before"));
    Row::share(name, "0 %", wrong, (0.0, 0.0))
}
