use std::collections::BTreeMap;

use bots::Echo;
use bots::echo::Lines;
use engine::simulation::{Blocks, Says, Simulated, SimulatedServer, Times, Wire, simulate};
use measure::{Measure, Quantile, Trial};
use plan::{Arrivals, BotSettings, EchoBots};

use crate::{SECOND_NS, sum_up, worker_plan};

type OverMessages = Echo<Wire>;
type OverLines = Echo<Wire<Blocks>, Lines>;

/// Answers at once, but is frozen for `frozen_ns` at the start of every `every_ns`.
struct Frozen {
    frozen_ns: u64,
    every_ns: u64,
}

impl SimulatedServer for Frozen {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let into_ns = at_ns % self.every_ns;
        says.message(at_ns + self.frozen_ns.saturating_sub(into_ns), peer, message);
    }
}

fn hold_100_s(generator_stall: Option<(u64, u64)>, server: &mut impl SimulatedServer) -> Trial {
    // The gap of 198.8 ms does not divide the server's period, so every freeze hits different phases of the clients.
    hold_100_s_over::<OverMessages>(5.03, generator_stall, server)
}

fn hold_100_s_over<B>(
    rate_per_s: f64,
    generator_stall: Option<(u64, u64)>,
    server: &mut impl SimulatedServer,
) -> Trial
where
    B: engine::Bots<Driver: Simulated>,
{
    let bots = BotSettings::Echo(EchoBots { rate_per_s, payload_bytes: 8 });
    let times = Times { hold_ns: 10 * SECOND_NS, drain_ns: 110 * SECOND_NS, generator_stall };
    sum_up(simulate::<B>(&worker_plan(bots, 200), times, server), 10, 110)
}

#[track_caller]
fn check(trial: &Trial, measure: Measure, q: f64, expected_s: f64) {
    let Quantile::Ns(ns) = trial.distribution(measure).quantile(q, 0) else { panic!("too few samples") };
    let read_s = ns as f64 / 1e9;
    assert!((read_s - expected_s).abs() <= expected_s * 0.01, "q{q}: {read_s} s instead of {expected_s} s");
}

/// Oracle CO: p95 0.500 s, p99 0.900 s, p99.9 0.990 s.
fn check_oracle(trial: &Trial) {
    let flow = trial.flow();
    assert!((100_500..=100_700).contains(&flow.offered), "{flow:?}");
    assert_eq!(flow.sent, flow.offered);
    check(trial, Measure::Response, 0.95, 0.5);
    check(trial, Measure::Response, 0.99, 0.9);
    check(trial, Measure::Response, 0.999, 0.99);
}

#[test]
fn a_server_that_freezes_is_read_as_it_is_felt() {
    let mut frozen = Frozen { frozen_ns: SECOND_NS, every_ns: 10 * SECOND_NS };
    check_oracle(&hold_100_s(None, &mut frozen));
    check_oracle(&hold_100_s_over::<OverLines>(5.03, None, &mut frozen));
}

/// Answers a client's last five messages at once, in one block of lines; every seventh line of all is another one.
#[derive(Default)]
struct Gathering {
    waiting: BTreeMap<u64, Vec<u8>>,
    received: u64,
    falsifies: bool,
}

impl SimulatedServer for Gathering {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let Some((text, b"\n")) = message.split_at_checked(8) else { panic!("{message:?}") };
        self.received += 1;
        let is_false = self.falsifies && self.received.is_multiple_of(7);
        let block = self.waiting.entry(peer).or_default();
        block.extend_from_slice(if is_false { b"xxxxxxxy" } else { text });
        block.extend_from_slice(b"\r\n");
        if block.len() == 50 {
            says.message(at_ns, peer, std::mem::take(block));
        }
    }
}

/// With 20 ms between two messages the five of a block have waited 80, 60, 40, 20 and 0 ms.
#[test]
fn each_line_of_a_block_answers_the_oldest_question() {
    let trial = hold_100_s_over::<OverLines>(50.0, None, &mut Gathering::default());
    let flow = trial.flow();
    assert_eq!(
        (flow.failed, flow.lost, flow.sent),
        (0, 0, flow.answered + flow.open_after - flow.open_before)
    );
    for (q, expected_s) in [(0.3, 0.02), (0.5, 0.04), (0.7, 0.06), (0.9, 0.08)] {
        check(&trial, Measure::Response, q, expected_s);
    }
    assert!(trial.errors.is_empty(), "{:?}", trial.errors);
}

#[test]
fn a_line_that_is_not_the_one_sent_is_a_wrong_answer() {
    let trial =
        hold_100_s_over::<OverLines>(50.0, None, &mut Gathering { falsifies: true, ..Default::default() });
    let flow = trial.flow();
    let share = flow.failed as f64 / (flow.answered + flow.failed) as f64;
    assert!((share * 7.0 - 1.0).abs() < 0.001, "{flow:?}");
    assert_eq!(flow.lost, 0);
    assert!(trial.errors["wrong answer"] >= flow.failed);
}

/// Answers each message with the text of the one before, like a server that answers before it was asked.
#[derive(Default)]
struct OneBehind(BTreeMap<u64, Vec<u8>>);

impl SimulatedServer for OneBehind {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let before = self.0.insert(peer, message.to_vec());
        says.message(at_ns, peer, before.as_deref().unwrap_or(message));
    }
}

#[test]
fn an_answer_with_the_text_of_another_message_is_a_wrong_answer() {
    let trial = hold_100_s(None, &mut OneBehind::default());
    let flow = trial.flow();
    assert_eq!(flow.answered, 0, "{flow:?}");
    assert!(flow.failed > 100_000 && trial.errors["wrong answer"] >= flow.failed, "{flow:?}");
}

/// Answers each message this long after it came.
struct After(u64);

impl SimulatedServer for After {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        says.message(at_ns + self.0, peer, message);
    }
}

/// Five seconds are more than a connection has for its end.
#[test]
fn answers_that_come_after_the_hold_are_waited_for() {
    for trial in [
        hold_100_s(None, &mut After(5 * SECOND_NS)),
        hold_100_s_over::<OverLines>(5.03, None, &mut After(5 * SECOND_NS)),
    ] {
        let flow = trial.flow();
        assert_eq!((flow.open_after, flow.answered), (0, flow.sent + flow.open_before), "{flow:?}");
        assert!(trial.errors.is_empty(), "{:?}", trial.errors);
    }
}

/// The same truth when it is the generator that loses its core: planned instants do not move, and the lag says why.
#[test]
fn a_generator_that_is_stalled_asks_late_and_says_so() {
    let stall = (50 * SECOND_NS, 51 * SECOND_NS);
    let trial = hold_100_s(Some(stall), &mut Frozen { frozen_ns: 0, every_ns: SECOND_NS });
    assert!((100_500..=100_700).contains(&trial.flow().offered));
    // One second in a hundred: the worst percent waits between 0 and 1 s.
    check(&trial, Measure::Response, 0.995, 0.5);
    check(&trial, Measure::SendLag, 0.995, 0.5);
    assert_eq!(trial.distribution(Measure::Service).max_ns(), Some(1));
}

/// Never answers.
struct Silent;

impl SimulatedServer for Silent {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}
    fn received(&mut self, _: u64, _: &[u8], _: u64, _: &mut Says) {}
}

#[test]
fn questions_that_were_never_answered_stay_in_the_books() {
    let flow = hold_100_s(None, &mut Silent).flow();
    assert_eq!((flow.answered, flow.lost, flow.open_after), (0, 0, flow.sent));
    assert!(flow.sent > 100_000);
}

/// Hangs up on every tenth message.
struct Moody(u64);

impl SimulatedServer for Moody {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        self.0 += 1;
        if self.0.is_multiple_of(10) {
            says.goodbye(at_ns + 1_000, peer);
        } else {
            says.message(at_ns + 2_000_000, peer, message);
        }
    }
}

#[test]
fn questions_whose_connection_ended_are_lost_and_not_forgotten() {
    let bots = BotSettings::Echo(EchoBots { rate_per_s: 5.0, payload_bytes: 8 });
    let times = Times { hold_ns: SECOND_NS, drain_ns: 4 * SECOND_NS, generator_stall: None };
    let trial = sum_up(simulate::<OverMessages>(&worker_plan(bots, 200), times, &mut Moody(0)), 1, 4);
    let flow = trial.flow();
    assert!(flow.lost > 50, "{flow:?}");
    assert!(trial.errors["connection lost"] > 50);
}

/// Answers at once, or not at all, and remembers the gaps between a client's messages.
#[derive(Default)]
struct Timekeeper {
    is_silent: bool,
    last_ns: BTreeMap<u64, u64>,
    gaps_ns: Vec<u64>,
}

impl SimulatedServer for Timekeeper {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        self.gaps_ns.extend(self.last_ns.insert(peer, at_ns).map(|last_ns| at_ns - last_ns));
        if !self.is_silent {
            says.message(at_ns, peer, message);
        }
    }
}

#[test]
fn random_gaps_are_exponential_and_follow_from_the_seed_alone() {
    let bots = BotSettings::Echo(EchoBots { rate_per_s: 5.0, payload_bytes: 8 });
    let plan = plan::WorkerPlan { arrivals: Arrivals::Poisson, ..worker_plan(bots, 200) };
    let times = Times { hold_ns: SECOND_NS, drain_ns: 100 * SECOND_NS, generator_stall: None };
    let mut keeper = Timekeeper::default();
    simulate::<OverLines>(&plan, times, &mut keeper);
    let gaps_ns = &keeper.gaps_ns;
    // About 99,000 gaps: four standard errors of their mean are 1.3 %, of a share 0.6 percentage points.
    let mean_s = gaps_ns.iter().sum::<u64>() as f64 / gaps_ns.len() as f64 / 1e9;
    assert!((mean_s / 0.2 - 1.0).abs() < 0.013, "{mean_s} s");
    for (means, expected) in [(0.5f64, 0.6065), (1.0, 0.3679), (2.0, 0.1353), (4.0, 0.0183)] {
        let longer = gaps_ns.iter().filter(|&&gap_ns| gap_ns as f64 > means * 0.2e9).count();
        let share = longer as f64 / gaps_ns.len() as f64;
        assert!((share - expected).abs() < 0.006, "{share} are longer than {means} means");
    }
    let mut silent = Timekeeper { is_silent: true, ..Timekeeper::default() };
    simulate::<OverMessages>(&plan, times, &mut silent);
    assert_eq!(silent.gaps_ns, keeper.gaps_ns);
}

#[test]
fn receive_lag_is_how_long_the_generator_leaves_lying_what_has_come() {
    let server = || Frozen { frozen_ns: 0, every_ns: SECOND_NS };
    let calm = hold_100_s(None, &mut server());
    let lag = calm.distribution(Measure::ReceiveLag);
    // One read per message here; an interval of 0 is recorded as 1 ns.
    assert!((100_000..101_000).contains(&lag.count()), "{}", lag.count());
    assert_eq!(lag.max_ns(), Some(1));
    // What was in flight when the core was taken away waits until it comes back.
    let mut slow = Frozen { frozen_ns: 500_000_000, every_ns: SECOND_NS };
    let stall = (50 * SECOND_NS + 300_000_000, 51 * SECOND_NS + 300_000_000);
    let stalled = hold_100_s(Some(stall), &mut slow);
    let lag_s = stalled.distribution(Measure::ReceiveLag).max_ns().unwrap() as f64 / 1e9;
    // The server answers at 50.5 s, and the generator looks again at 51.3 s.
    assert!((0.79..=0.81).contains(&lag_s), "{lag_s}");
}
