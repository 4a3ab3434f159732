//! Bots over one simulated connection of any protocol, and requests without a connection, in virtual time.

use std::sync::Arc;

use measure::{Interval, Measure, MetricNames, Phase};
use plan::{EchoBots, Scheme, WorkerPlan};

use super::super::{Played, Says, SimulatedServer, Times, Wire, play};
use super::*;
use crate::bots::Bots;
use crate::context::BotContext;
use crate::ids::{ConnectionId, RequestId};
use crate::state::SendLag;

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;
/// Operations of the bots below.
const FETCH: usize = 0;
const STEP: usize = 1;

/// What a bot asks for, once a second from the first on.
const GET: Fetch<'static> =
    Fetch { tag: 7, method: "GET", path: "/items?page=2", headers: &[], body: b"", keep_alive: true };

/// Each bot fetches once a second, and measures a step around it that belongs to no connection. Results go to `HEARD`.
struct Shoppers {
    connections: Vec<Option<ConnectionId>>,
    fetched: Vec<Option<RequestId>>,
    steps: Vec<Option<RequestId>>,
}

thread_local! {
    static HEARD: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn hear(words: String) {
    HEARD.with_borrow_mut(|heard| heard.push(words));
}

impl Bots for Shoppers {
    type Driver = Wire<Anything>;
    type Settings = EchoBots;

    fn metric_names(_: &EchoBots) -> Arc<MetricNames> {
        MetricNames::new(&["fetch", "step"], &[], &[], &drivers::OpenError::CAUSES)
    }

    fn new(_: &EchoBots, plan: &WorkerPlan) -> Self {
        let none = |_| None;
        Shoppers {
            connections: (0..plan.units).map(none).collect(),
            fetched: (0..plan.units).map(|_| None).collect(),
            steps: (0..plan.units).map(|_| None).collect(),
        }
    }

    fn join(&mut self, unit: u32, _: u64, ctx: &mut BotContext<'_, Self::Driver>) {
        self.connections[unit as usize] = Some(ctx.open(unit, 0));
    }

    fn opened(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, Self::Driver>) {
        ctx.follow(connection, Send::Text(b"hello"));
        ctx.follow(connection, Send::Binary(b"\x01\x02"));
        ctx.at(SECOND_NS, bot, 0);
    }

    fn due(&mut self, bot: u32, _: u32, planned_ns: u64, ctx: &mut BotContext<'_, Self::Driver>) {
        let at = bot as usize;
        let Some(connection) = self.connections[at] else { return };
        // If the previous step is still open, it has failed.
        if let Some(step) = self.steps[at].replace(ctx.begin(STEP, planned_ns)) {
            ctx.failed(step);
        }
        let lag = SendLag::Unrecorded;
        self.fetched[at] = ctx.request(connection, FETCH, planned_ns, lag, Send::Request(GET));
        ctx.at(planned_ns + SECOND_NS, bot, 0);
    }

    fn received(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        received: Received<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, Self::Driver>,
    ) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match received {
            Received::Text(bytes) => hear(format!("text {}", text(bytes))),
            Received::Binary(bytes) => hear(format!("binary {bytes:?}")),
            Received::Http(Piece::Head(head)) => {
                let kind = head.headers.get("content-type").unwrap_or_default();
                hear(format!("head {} {}", head.status, text(kind)));
            }
            Received::Http(Piece::Part { bytes, .. }) => {
                if let Some(request) = self.fetched[bot as usize] {
                    ctx.began(request, at_ns);
                }
                hear(format!("part {}", text(bytes)));
            }
            Received::Http(Piece::End { tag: 7, closes }) => {
                hear("end".to_owned());
                let [fetched, step] =
                    [&mut self.fetched, &mut self.steps].map(|all| all[bot as usize].take());
                assert!(fetched.is_some_and(|request| ctx.answered(request, at_ns)));
                assert!(step.is_some_and(|request| ctx.answered(request, at_ns)));
                if closes {
                    ctx.close(connection);
                }
            }
            Received::Http(other) => hear(format!("{other:?}")),
        }
    }

    fn closed(
        &mut self,
        _: ConnectionId,
        bot: u32,
        _: drivers::Closed,
        _: &mut BotContext<'_, Self::Driver>,
    ) {
        self.connections[bot as usize] = None;
    }
}

/// Answers in pieces 100 ms apart; from an instant on not at all, or by ending the connection.
struct Shop {
    silent_from_ns: u64,
    ends_connections: bool,
    arrived: Vec<Vec<u8>>,
}

impl SimulatedServer for Shop {
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        says.message(at_ns, peer, "welcome");
        says.message(at_ns, peer, Anything::binary(b"\xFFh"));
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        self.arrived.push(message.to_vec());
        let Some(Asked { tag, method: "GET", path: "/items?page=2", .. }) = Anything::request(message) else {
            return;
        };
        if at_ns < self.silent_from_ns {
            says.message(at_ns + 100 * MS_NS, peer, Anything::head(tag, 200, "content-type: x/y\n"));
            says.message(at_ns + 200 * MS_NS, peer, Anything::part(tag, b"[1, "));
            says.message(at_ns + 200 * MS_NS, peer, Anything::part(tag, b"2]"));
            says.message(at_ns + 300 * MS_NS, peer, Anything::end(tag));
        } else if self.ends_connections {
            says.goodbye(at_ns + 100 * MS_NS, peer);
        }
    }
}

fn shop(silent_from_s: u64, ends_connections: bool) -> (Interval, Shop) {
    HEARD.take();
    let mut server =
        Shop { silent_from_ns: silent_from_s * SECOND_NS, ends_connections, arrived: Vec::new() };
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let bots = EchoBots { rate_per_s: 1.0, payload_bytes: 1 };
    let plan = WorkerPlan::alone(bots.into(), 1, Scheme::Ws, address);
    let times = Times { hold_ns: 0, drain_ns: 10 * SECOND_NS + 500 * MS_NS, generator_stall: None };
    let Played { seconds, .. } = play::<Shoppers>(&plan, times, &mut server);
    let mut sum = Interval::new(&seconds[0].metric_names);
    for second in &seconds {
        second.balance().unwrap();
        sum.add(second).unwrap();
    }
    // Between two seconds it is the open count before, and the sum adds none.
    let last = seconds.last().unwrap();
    for (flow, last) in sum.flows.iter_mut().flatten().zip(last.flows.iter().flatten()) {
        (flow.open_before, flow.open_after) = (0, last.open_after);
    }
    sum.balance().unwrap();
    (sum, server)
}

#[test]
fn texts_bytes_and_answers_in_pieces_go_over_one_simulated_connection() {
    let (sum, server) = shop(100, false);
    assert_eq!(server.arrived[..2], [b"hello".to_vec(), b"\x01\x02".to_vec()]);
    let expected =
        ["text welcome", "binary [255, 104]", "head 200 x/y", "part [1, ", "part 2]", "end", "head 200 x/y"];
    HEARD.with_borrow(|heard| assert_eq!(heard[..expected.len()], expected));
    for op in [FETCH, STEP] {
        let flow = sum.flows[op][Phase::Hold as usize];
        assert_eq!((flow.offered, flow.sent, flow.answered), (10, 10, 10), "{flow:?}");
    }
    let response = sum.distribution(Measure::Response, true);
    let max_ns = response.max_ns().unwrap();
    assert_eq!(response.count(), 20);
    assert!(max_ns.abs_diff(300 * MS_NS) <= MS_NS, "{max_ns} ns");
    assert_eq!(sum.distribution(Measure::SendLag, true).count(), 10, "only what left has one");
}

/// From second 8 on nothing is answered: of three steps two were given up, and the last is open.
#[test]
fn what_has_no_connection_fails_by_word_and_is_unanswered_at_the_end() {
    let (sum, _) = shop(8, false);
    let flow = sum.flows[STEP][Phase::Hold as usize];
    assert_eq!((flow.offered, flow.answered, flow.failed, flow.lost), (10, 7, 2, 0), "{flow:?}");
    assert_eq!(flow.open_after, 1);
    let fetched = sum.flows[FETCH][Phase::Hold as usize];
    assert_eq!((fetched.answered, fetched.open_after), (7, 3), "{fetched:?}");
    // Three requests of the connection, and the step.
    assert_eq!(sum.distribution(Measure::Unanswered, true).count(), 4);
}

/// The end of a connection loses its own requests and nothing else.
#[test]
fn what_has_no_connection_outlives_those_that_end() {
    let (sum, _) = shop(8, true);
    let (step, fetched) = (sum.flows[STEP][Phase::Hold as usize], sum.flows[FETCH][Phase::Hold as usize]);
    assert_eq!((fetched.offered, fetched.answered, fetched.lost, fetched.open_after), (8, 7, 1, 0));
    assert_eq!((step.offered, step.answered, step.lost, step.open_after), (8, 7, 0, 1), "{step:?}");
}

#[test]
fn a_request_arrives_with_all_that_it_says() {
    let headers = [("A".to_owned(), "b".to_owned()), ("C".to_owned(), "d".to_owned())];
    let post = Fetch { method: "POST", headers: &headers, body: b"x\n\ny", ..GET };
    let bytes = Anything::bytes(Send::Request(post));
    let expected =
        Asked { tag: 7, method: "POST", path: "/items?page=2", headers: "A: b\nC: d\n", body: b"x\n\ny" };
    assert_eq!(Anything::request(&bytes), Some(expected));
    let bytes = Anything::bytes(Send::Request(GET));
    let expected = Asked { method: "GET", headers: "", body: b"", ..expected };
    assert_eq!(Anything::request(&bytes), Some(expected));
    assert_eq!(Anything::request(b"GET /"), None);
    assert_eq!(Anything::cancelled(&Anything::bytes(Send::Cancel(3))), Some(3));
    assert_eq!(Anything::cancelled(&bytes), None);
}
