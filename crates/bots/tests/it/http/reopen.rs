//! Servers that close connections between two requests, as HTTP allows, and servers that really drop requests.

use std::collections::BTreeMap;

use engine::simulation::End;
use ladder::Verdict;
use measure::{Interval, Trial};

use super::*;

const MS: u64 = 1_000_000;
const CLOSED_AS_SENT: &str =
    "closed by the server as the request was sent: its idle timeout is shorter than the gap between requests";

/// How a server treats its connections. An answer takes 1 ms and a connection 3 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// it closes a connection so long after it was opened, which here is in between two requests
    IdleTimeout(u64),
    /// the same, but a request that comes after it meets the close
    RacingTimeout(u64),
    /// with each answer it says that it is the last
    CloseWithAnswer,
    /// it closes a connection after each answer, unannounced
    CloseAfterAnswer,
    /// it announces a close before each answer
    GoodbyeBeforeAnswer,
    /// it announces a close at the n-th request, and puts off those that came after the one before
    PutsOff(u64),
    /// it announces a close and puts off every request
    PutsOffAll,
    /// it closes each connection at its first request
    CloseFresh,
    /// it closes after the first byte of each tenth answer
    CutOff,
    /// it closes connections after each answer, and accepts no more connections from the fourth second on
    AcceptsNoMore,
}
use Manner::*;

struct Server {
    manner: Manner,
    now_ns: u64,
    /// of each connection: requests, and until when it is not idle
    peers: BTreeMap<u64, (u64, u64)>,
    requests: u64,
}

impl SimulatedServer for Server {
    fn opens_after_ns(&mut self, _: u64) -> Option<u64> {
        (self.manner != AcceptsNoMore || self.now_ns < 4 * SECOND_NS).then_some(3 * MS)
    }

    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        self.now_ns = at_ns;
        self.peers.insert(peer, (0, at_ns));
        if let IdleTimeout(idle_ns) = self.manner {
            says.goodbye(at_ns + idle_ns, peer);
        }
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        self.now_ns = at_ns;
        self.requests += 1;
        let (tag, _) = Exchanges::request(message);
        let (count, idle_from_ns) = self.peers[&peer];
        let answered_ns = at_ns + MS;
        self.peers.insert(peer, (count + 1, answered_ns));
        let answer = Exchanges::answer(tag, 200, b"ok");
        match self.manner {
            RacingTimeout(idle_ns) if at_ns > idle_from_ns + idle_ns => says.goodbye(at_ns + 1, peer),
            IdleTimeout(_) | RacingTimeout(_) => says.message(answered_ns, peer, answer),
            CloseWithAnswer => {
                says.message(answered_ns, peer, Exchanges::last_answer(tag, 200, b"ok"));
                says.goodbye(answered_ns + 1, peer);
            }
            CloseAfterAnswer | AcceptsNoMore => {
                says.message(answered_ns, peer, answer);
                says.goodbye(answered_ns + MS / 2, peer);
            }
            GoodbyeBeforeAnswer => {
                says.message(at_ns + 1, peer, Exchanges::leaving());
                says.message(answered_ns, peer, Exchanges::last_answer(tag, 200, b"ok"));
            }
            PutsOff(most) if count >= most => {
                says.message(at_ns + 1, peer, Exchanges::leaving());
                says.message(at_ns + 1, peer, Exchanges::put_off(tag));
            }
            PutsOffAll => says.message(at_ns + MS, peer, Exchanges::put_off(tag)),
            PutsOff(_) => says.message(answered_ns, peer, answer),
            CloseFresh => says.goodbye(answered_ns, peer),
            CutOff if self.requests.is_multiple_of(10) => {
                says.message(answered_ns, peer, Exchanges::began(tag));
                says.end(answered_ns + 1, peer, End::Bare);
            }
            CutOff => says.message(answered_ns, peer, answer),
        }
    }
}

fn with_request(plan: WorkerPlan, path: &str, streams: u32) -> WorkerPlan {
    let BotSettings::Http(http) = plan.bots.clone() else { panic!("{plan:?}") };
    let requests = vec![HttpRequest::get(path)];
    WorkerPlan { bots: BotSettings::Http(HttpBots { requests, streams, ..http }), ..plan }
}

/// 5 requests per second over 10 connections: each idles for 2 s. And 4 requesters that think for 2 s, or not at all.
fn slow() -> WorkerPlan {
    open(5.0, 10, Arrivals::Even, 9)
}

fn thinking() -> WorkerPlan {
    let bots = BotSettings::Http(requests(HttpModel::Closed { think_ns: 2 * SECOND_NS }));
    WorkerPlan { bots, ..closed(4) }
}

fn seconds_of(plan: &WorkerPlan, manner: Manner) -> Vec<Interval> {
    let mut server = Server { manner, now_ns: 0, peers: BTreeMap::new(), requests: 0 };
    simulate::<Simulated>(plan, times(10), &mut server)
}

/// The result: reopened, retried, closing answers; verdict and trial.
fn judged(plan: &WorkerPlan, manner: Manner, objective: &str) -> (Vec<u64>, ladder::Judgement, Trial) {
    let mut trial = sum_up(seconds_of(plan, manner), 1, 11);
    let BotSettings::Http(settings) = &plan.bots else { panic!("{plan:?}") };
    trial.head.connections = settings_connections(settings, plan);
    trial.connections.asked = trial.head.connections;
    let terms = ladder::Criteria {
        objectives: vec![objective.parse().unwrap()],
        patience_ns: SECOND_NS,
        ..ladder::Criteria::default()
    };
    let judgement = ladder::judge(&trial, None, &terms);
    (trial.counts(measure::Role::Reopened).collect(), judgement, trial)
}

fn settings_connections(settings: &HttpBots, plan: &WorkerPlan) -> u64 {
    match settings.model {
        HttpModel::Open { connections, .. } => connections,
        HttpModel::Closed { .. } => plan.units,
    }
}

#[test]
fn a_server_that_closes_connections_between_requests_passes_and_each_is_opened_when_it_is_needed() {
    for (plan, manner, reopened, closing) in [
        (slow(), IdleTimeout(SECOND_NS), 45..=51, 0..=0),
        (thinking(), IdleTimeout(SECOND_NS), 16..=24, 0..=0),
        // The first request of each connection finds it open.
        (slow(), CloseWithAnswer, 38..=42, 49..=51),
        (slow(), CloseAfterAnswer, 38..=42, 0..=0),
        (thinking(), CloseWithAnswer, 16..=24, 16..=24),
        // 4 ms each.
        (closed(4), CloseWithAnswer, 9_900..=10_100, 9_900..=10_100),
        (open(1000.0, 16, Arrivals::Poisson, 3), CloseWithAnswer, 9_600..=10_400, 9_600..=10_400),
        (closed(4), GoodbyeBeforeAnswer, 9_900..=10_100, 9_900..=10_100),
        (open(1000.0, 16, Arrivals::Even, 3), GoodbyeBeforeAnswer, 9_900..=10_100, 9_900..=10_100),
    ] {
        let (counts, judgement, trial) = judged(&plan, manner, "errors == 0");
        let what = format!("{manner:?}: {counts:?} {:?} {:?}", trial.flow(), judgement);
        assert_eq!(judgement.verdict, Verdict::Pass, "{what}");
        assert!(reopened.contains(&counts[0]) && closing.contains(&counts[2]), "{what}");
        assert_eq!(counts[1], 0, "nothing met the close: {what}");
        let flow = trial.flow();
        assert_eq!((flow.failed, flow.lost, flow.not_sent), (0, 0, 0), "{what}");
    }
}

#[test]
fn a_response_counts_the_connection_that_was_opened_for_it_and_no_send_was_late() {
    // After the first ten requests each needs a connection.
    for plan in [open(200.0, 10, Arrivals::Even, 9), closed(4)] {
        let (_, _, trial) = judged(&plan, CloseWithAnswer, "errors == 0");
        let mean = |measure| trial.distribution(measure).summary().unwrap().mean.unwrap();
        // 3 ms for the connection and 1 ms for the answer.
        assert!((mean(Measure::Response) / 4e6 - 1.0).abs() < 0.01, "{}", mean(Measure::Response));
        assert!((mean(Measure::Service) / 1e6 - 1.0).abs() < 0.01, "{}", mean(Measure::Service));
        assert!(mean(Measure::SendLag) < 10_000.0, "{}", mean(Measure::SendLag));
    }
}

#[test]
fn a_request_that_met_the_close_is_sent_once_more_where_its_method_allows_it() {
    for plan in [slow(), thinking()] {
        let (counts, judgement, trial) = judged(&plan, RacingTimeout(SECOND_NS), "errors == 0");
        assert_eq!(judgement.verdict, Verdict::Pass, "{judgement:?}");
        assert!(counts[1] >= 10 && counts[0] >= 10, "{counts:?}");
        assert_eq!(trial.flow().answered, trial.flow().sent, "{:?}", trial.flow());
    }
    for plan in [slow(), thinking()] {
        let plan = with_request(plan, "/once", 1);
        let (counts, judgement, trial) = judged(&plan, RacingTimeout(SECOND_NS), "errors == 0");
        assert_eq!(judgement.verdict, Verdict::Fail, "{judgement:?}");
        assert_eq!(counts[1], 0, "nobody knows whether it was carried out");
        let causes: Vec<&str> =
            trial.errors.iter().filter(|one| *one.1 > 0).map(|one| one.0.as_str()).collect();
        assert_eq!(causes, [CLOSED_AS_SENT]);
        assert_eq!(trial.errors[CLOSED_AS_SENT], trial.flow().lost);
    }
    // Without an idle gap before it, the connection counts as lost.
    let plan = with_request(closed(4), "/once", 1);
    let (_, judgement, trial) = judged(&plan, CloseFresh, "response.p99 < 1s");
    assert_eq!(judgement.verdict, Verdict::Fail);
    assert!(trial.errors["connection lost"] > 0 && !trial.errors.contains_key(CLOSED_AS_SENT));
}

#[test]
fn what_a_goodbye_puts_off_is_sent_again_also_where_it_may_not_be_repeated() {
    for (plan, streams) in
        [(open(500.0, 4, Arrivals::Poisson, 5), 1), (open(500.0, 2, Arrivals::Burst, 5), 8), (closed(4), 1)]
    {
        let plan = with_request(plan, "/once", streams);
        let (counts, judgement, trial) = judged(&plan, PutsOff(5), "errors == 0");
        assert_eq!(judgement.verdict, Verdict::Pass, "{judgement:?} {:?}", trial.flow());
        assert!(counts[0] > 50 && counts[1] > 50, "{counts:?}");
        assert_eq!((trial.flow().lost, trial.flow().not_sent), (0, 0), "{:?}", trial.flow());
    }
}

#[test]
fn a_server_that_really_drops_what_it_is_asked_fails() {
    for plan in [slow(), closed(4), open(1000.0, 16, Arrivals::Poisson, 3)] {
        for manner in [CloseFresh, PutsOffAll, CutOff, AcceptsNoMore] {
            // It only has to answer promptly.
            for objective in ["errors == 0", "errors.share < 60%"] {
                if (manner, objective) == (CutOff, "errors.share < 60%") {
                    continue;
                }
                let (counts, judgement, trial) = judged(&plan, manner, objective);
                let what = format!("{manner:?} {objective} {counts:?} {:?} {judgement:?}", trial.flow());
                assert_eq!(judgement.verdict, Verdict::Fail, "{what}");
            }
        }
    }
}
