//! Sessions of scripts in virtual time: bots that start again, and bots that start at planned instants.

use bots::Scripts;
use engine::simulation::{Anything, Says, SimulatedServer, Times, Wire, play_settling};
use measure::{Flow, Quantile, Trial};
use plan::{Arrivals, Ramp, ScriptLoad, WorkerPlan};

use crate::script::script;
use crate::{SECOND_NS, sum_up, worker_plan};

const MS: u64 = 1_000_000;
const HOLD_FROM_S: u64 = 10;
const HOLD_S: u64 = 60;

/// A server of HTTP that takes so long for an answer, and from an instant on gives none.
struct Shop {
    takes_ns: u64,
    dies_ns: u64,
    refuses: bool,
    opened: u64,
}

impl Default for Shop {
    fn default() -> Self {
        Shop { takes_ns: 100 * MS, dies_ns: u64::MAX, refuses: false, opened: 0 }
    }
}

impl SimulatedServer for Shop {
    fn opens_after_ns(&mut self, _: u64) -> Option<u64> {
        (!self.refuses).then_some(0)
    }

    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {
        self.opened += 1;
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let Some(asked) = Anything::request(message).filter(|_| at_ns < self.dies_ns) else { return };
        let at_ns = at_ns + self.takes_ns;
        let is_known = asked.headers.lines().any(|line| line.eq_ignore_ascii_case("cookie: seat=7"));
        says.message(at_ns, peer, Anything::head(asked.tag, 200, "Set-Cookie: seat=7; Path=/\n"));
        says.message(at_ns, peer, Anything::part(asked.tag, if is_known { b"known" } else { b"new" }));
        says.message(at_ns, peer, Anything::end(asked.tag));
    }
}

/// The trial, the session's flow, and the errors that were kept verbatim.
fn held(plan: &WorkerPlan, server: &mut Shop) -> (Trial, Flow, Vec<String>) {
    held_with_stall(plan, server, None)
}

fn held_with_stall(
    plan: &WorkerPlan,
    server: &mut Shop,
    generator_stall: Option<(u64, u64)>,
) -> (Trial, Flow, Vec<String>) {
    let times = Times {
        hold_ns: HOLD_FROM_S * SECOND_NS,
        drain_ns: (HOLD_FROM_S + HOLD_S) * SECOND_NS,
        generator_stall,
    };
    let seconds = play_settling::<Scripts<Wire<Anything>>>(plan, times, server).seconds;
    let words = seconds.iter().flat_map(|second| &second.samples).map(|(_, words)| words.clone()).collect();
    let trial = sum_up(seconds, HOLD_FROM_S, HOLD_FROM_S + HOLD_S);
    let flow = trial.ops.get(plan::SESSION).copied().unwrap_or_default();
    (trial, flow, words)
}

fn repeating(text: &str, bots: u64) -> WorkerPlan {
    let load = ScriptLoad::Bots { repeat: true };
    WorkerPlan { drain_ns: 30 * SECOND_NS, ..worker_plan(script(text, None, load), bots) }
}

#[track_caller]
fn session_takes(trial: &Trial, q: f64, expected_s: f64, within: f64) {
    let Quantile::Ns(ns) = trial.of_ops[plan::SESSION].quantile(q, 0) else { panic!("too few samples") };
    let read_s = ns as f64 / 1e9;
    assert!((read_s - expected_s).abs() <= within, "q{q}: {read_s} s instead of {expected_s} s");
}

/// Two answers of 100 ms and a wait of 1.8 s are 2 s. A timer of an earlier session, which fires 3 s later, is ignored.
#[test]
fn a_bot_that_repeats_lives_again_and_again_and_brings_nothing_along() {
    let text = "export default async (bot) => { const mine = bot.id; setTimeout(() => bot.fail('of an earlier life'), 3000); \
                bot.check('new', (await (await fetch('/a')).text()) === 'new'); bot.ready(); \
                bot.check('known', (await (await fetch('/b')).text()) === 'known'); \
                await bot.sleep('1.8s'); bot.check('the same bot', bot.id === mine && mine < 10); };";
    let mut shop = Shop::default();
    let (trial, flow, words) = held(&repeating(text, 10), &mut shop);
    assert!(trial.errors.is_empty(), "{:?} {words:?}", trial.errors);
    assert!(flow.offered.abs_diff(300) <= 10 && flow.answered == flow.offered, "{flow:?}");
    session_takes(&trial, 0.5, 2.0, 0.02);
    let at_once = trial.at_once.unwrap();
    assert!((at_once.mean - 10.0).abs() < 0.05 && at_once.max < 10.2, "{at_once:?}");
    assert!(shop.opened.abs_diff(350) <= 20, "a connection for each life: {}", shop.opened);
    // A session's length is not a response time of the server.
    assert_eq!(trial.flow().offered, trial.ops["GET /a"].offered + trial.ops["GET /b"].offered);
}

#[test]
fn a_function_that_returns_at_once_or_throws_does_not_spin() {
    let at_once = "export default async (bot) => { bot.ready(); };";
    let (trial, flow, words) = held(&repeating(at_once, 10), &mut Shop::default());
    assert!(flow.offered.abs_diff(600) <= 10, "once a second: {flow:?}");
    assert_eq!(trial.errors.get("script error"), Some(&flow.offered), "{:?}", trial.errors);
    assert!(words.iter().any(|words| words.contains("returned at once")), "{words:?}");

    let short = "export default async (bot) => { bot.ready(); await bot.sleep('1ms'); };";
    let (trial, flow, _) = held(&repeating(short, 1), &mut Shop::default());
    assert!(trial.errors.is_empty() && flow.offered.abs_diff(6_000) <= 10, "{flow:?}");

    let refused = "export default async (bot) => { await fetch('/a'); };";
    let (trial, flow, _) = held(&repeating(refused, 10), &mut Shop { refuses: true, ..Shop::default() });
    // Ten times in the first 5.5 s, and once a second from then on.
    assert!(flow.offered.abs_diff(600) <= 20 && flow.failed == flow.offered, "{flow:?}");
    assert!(trial.connections.failed["refused"] >= flow.failed, "{:?}", trial.connections);
}

#[test]
fn a_session_that_never_ends_is_waited_for_and_stays_in_the_record() {
    let text = "export default async (bot) => { bot.ready(); await (await fetch('/a')).text(); };";
    let mut shop = Shop { dies_ns: 30 * SECOND_NS, ..Shop::default() };
    let (trial, flow, _) = held(&repeating(text, 10), &mut shop);
    assert_eq!((flow.open_after, flow.answered + flow.open_after), (10, flow.offered), "{flow:?}");
    assert!(trial.at_once.unwrap().mean > 9.9, "{:?}", trial.at_once);
    // And one that only takes long ends after the hold.
    let long = "export default async (bot) => { bot.ready(); await bot.sleep('25s'); };";
    let (_, flow, _) = held(&repeating(long, 10), &mut Shop::default());
    assert_eq!((flow.answered, flow.open_after), (flow.offered, 0), "{flow:?}");
    assert!(flow.offered >= 20, "{flow:?}");
}

/// Two answers and a wait of 1.8 s; each visitor is a new one.
const VISIT: &str = "const seen = new Set(); export default async (bot) => { \
    bot.check('a new bot', !seen.has(bot.id) && bot.id % 3 === 1); seen.add(bot.id); \
    bot.check('new', (await (await fetch('/a')).text()) === 'new'); await bot.sleep('1.8s'); \
    bot.check('known', (await (await fetch('/b')).text()) === 'known'); };";
const RATE_PER_S: f64 = 50.0;

/// The second of three workers, whose sessions are a third of 150 a second.
fn visiting(text: &str, most: u64, arrivals: Arrivals) -> WorkerPlan {
    WorkerPlan {
        worker: 1,
        workers: 3,
        first_unit: 1,
        rate_per_s: 3.0 * RATE_PER_S,
        ramp: Ramp::AtOnce,
        arrivals,
        drain_ns: 30 * SECOND_NS,
        ..worker_plan(script(text, None, ScriptLoad::Sessions { most }), most)
    }
}

/// Little's law: sessions at once are their rate times the time that each takes.
#[test]
fn sessions_at_once_are_their_rate_times_their_length_whatever_the_server_takes() {
    // Of random arrivals both figures scatter; the bounds are four of their deviations.
    for (arrivals, takes_ms, length_s, counts_within, at_once_within) in [
        (Arrivals::Even, 100, 2.0, 1, 0.5),
        (Arrivals::Even, 1_000, 3.8, 1, 1.0),
        (Arrivals::Poisson, 100, 2.0, 220, 11.0),
    ] {
        let mut shop = Shop { takes_ns: takes_ms * MS, ..Shop::default() };
        let (trial, flow, words) = held(&visiting(VISIT, 1_000, arrivals), &mut shop);
        assert!(trial.errors.is_empty(), "{:?} {words:?}", trial.errors);
        assert!(flow.offered.abs_diff((RATE_PER_S as u64) * HOLD_S) <= counts_within, "{flow:?}");
        assert_eq!(
            (flow.answered, flow.not_sent),
            (flow.offered, 0),
            "those under way at the end are followed: {flow:?}"
        );
        session_takes(&trial, 0.5, length_s, 0.012 * length_s);
        // The rate begins with the hold here, so for the length of one session there are fewer.
        let full_s = HOLD_S as f64 - length_s / 2.0;
        let (mean, expected) = (trial.at_once.unwrap().mean, RATE_PER_S * length_s * full_s / HOLD_S as f64);
        assert!((mean - expected).abs() <= at_once_within, "{mean} at once, not {expected}");
    }
}

/// The core is taken away for five seconds: sessions planned in them, or due to end, take longer, and none is left out.
#[test]
fn a_session_counts_from_its_planned_instant() {
    let stall = Some((40 * SECOND_NS, 45 * SECOND_NS));
    let (trial, flow, _) =
        held_with_stall(&visiting(VISIT, 1_000, Arrivals::Even), &mut Shop::default(), stall);
    assert!(flow.offered.abs_diff(3_000) <= 1 && flow.answered == flow.offered, "{flow:?}");
    // Those planned from 38 to 40 s end at 45.1, those up to 45 at 47: 150 of the 3,000 take longer than 5.55 s.
    session_takes(&trial, 0.95, 5.55, 0.08);
}

#[test]
fn sessions_that_find_no_room_are_recorded_as_not_begun() {
    let endless = "export default async (bot) => { await fetch('/a'); await new Promise(() => {}); };";
    let (trial, flow, _) = held(&visiting(endless, 100, Arrivals::Even), &mut Shop::default());
    assert!(flow.not_sent + 100 == flow.offered && flow.offered.abs_diff(3_000) <= 1, "{flow:?}");
    let at_once = trial.at_once.unwrap();
    assert!((at_once.max - 100.0).abs() < 0.1 && (at_once.mean - 98.3).abs() < 0.3, "{at_once:?}");

    let mut dead = Shop { dies_ns: 40 * SECOND_NS, ..Shop::default() };
    let (trial, flow, _) = held(&visiting(VISIT, 5_000, Arrivals::Even), &mut dead);
    // Thirty seconds' worth, plus those in progress: none ends any more, and none is forgotten.
    assert!(
        flow.open_after.abs_diff(1_600) <= 5 && flow.answered + flow.open_after == flow.offered,
        "{flow:?}"
    );
    assert!(trial.at_once.unwrap().max > 1_400.0, "{:?}", trial.at_once);
}
