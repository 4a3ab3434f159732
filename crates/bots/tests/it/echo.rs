use bots::Echo;
use engine::rehearsal::{Says, Scene, Times, Wire, rehearse};
use measure::{Measure, Quantile, Trial};
use plan::{Bots, EchoBots};

use crate::{SECOND_NS, sum_up, worker_plan};

/// Answers at once, but is frozen for `frozen_ns` at the begin of every `every_ns`.
struct Frozen {
    frozen_ns: u64,
    every_ns: u64,
}

impl Scene for Frozen {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let into_ns = at_ns % self.every_ns;
        says.message(at_ns + self.frozen_ns.saturating_sub(into_ns), peer, message);
    }
}

fn hold_100_s(generator_stall: Option<(u64, u64)>, scene: &mut impl Scene) -> Trial {
    // The gap of 198.8 ms does not divide the server's period, so every freeze meets other phases of the clients.
    let bots = Bots::Echo(EchoBots { rate_per_s: 5.03, payload_bytes: 8 });
    let times = Times { hold_ns: 10 * SECOND_NS, drain_ns: 110 * SECOND_NS, generator_stall };
    sum_up(rehearse::<Echo<Wire>>(&worker_plan(bots, 200), times, scene), 10, 110)
}

#[track_caller]
fn check(trial: &Trial, measure: Measure, q: f64, expected_s: f64) {
    let Quantile::Ns(ns) = trial.distribution(measure).quantile(q, 0) else { panic!("too few samples") };
    let read_s = ns as f64 / 1e9;
    assert!((read_s - expected_s).abs() <= expected_s * 0.01, "q{q}: {read_s} s instead of {expected_s} s");
}

/// Oracle CO: p95 0.500 s, p99 0.900 s, p99.9 0.990 s.
#[test]
fn a_server_that_freezes_is_read_as_it_is_felt() {
    let trial = hold_100_s(None, &mut Frozen { frozen_ns: SECOND_NS, every_ns: 10 * SECOND_NS });
    let flow = trial.flow();
    assert!((100_500..=100_700).contains(&flow.offered), "{flow:?}");
    assert_eq!(flow.sent, flow.offered);
    check(&trial, Measure::Response, 0.95, 0.5);
    check(&trial, Measure::Response, 0.99, 0.9);
    check(&trial, Measure::Response, 0.999, 0.99);
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

impl Scene for Silent {
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

impl Scene for Moody {
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
    let bots = Bots::Echo(EchoBots { rate_per_s: 5.0, payload_bytes: 8 });
    let times = Times { hold_ns: SECOND_NS, drain_ns: 4 * SECOND_NS, generator_stall: None };
    let trial = sum_up(rehearse::<Echo<Wire>>(&worker_plan(bots, 200), times, &mut Moody(0)), 1, 4);
    let flow = trial.flow();
    assert!(flow.lost > 50, "{flow:?}");
    assert!(trial.errors["connection lost"] > 50);
}
