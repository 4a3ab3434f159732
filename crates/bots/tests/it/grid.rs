use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bots::Operations as Bots;
use engine::simulation::{End, GridSays, Operations, Says, SimulatedServer, Times, Wire, simulate};
use measure::{Measure, Role, Trial};
use plan::{BotSettings, GridBots, GridKeys, GridModel, GridOp, WorkerPlan};

use crate::{SECOND_NS, sum_up, worker_plan};

const MS: u64 = 1_000_000;

/// A store that takes this long for each operation, one after the other or all at once.
#[derive(Default)]
struct Store {
    /// with the instant at which they expire
    values: BTreeMap<Vec<u8>, (Vec<u8>, u64)>,
    takes_ns: u64,
    /// one operation at a time, in the order of their arrival
    is_serial: bool,
    free_at_ns: u64,
    fault: Fault,
    /// since when
    fault_from_ns: u64,
    received: u64,
    puts: u64,
    opened: u64,
    /// most operations at once
    most: usize,
    until_ns: VecDeque<u64>,
    keys: BTreeSet<Vec<u8>>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Fault {
    #[default]
    None,
    /// every thousandth value has one letter changed
    WrongValue,
    /// every thousandth value is one letter short
    ShortValue,
    /// every thousandth get finds nothing
    Forgets,
    /// all keys are lost
    LosesAll,
    /// no more replies
    Hangs,
    /// every 500th operation ends the connection
    Closes,
    /// and refuses the next ones
    Gone,
    /// every thousandth operation is refused
    Refuses,
    /// every thousandth reply is one that the operation cannot have
    Strange,
    /// every thousandth reply comes twice
    Twice,
    /// every thousandth reply has a tag that was never given
    UnknownTag,
    /// every thousandth set is acknowledged but not done
    DropsSets,
    /// every thousandth reply breaks the protocol
    Breaks,
    /// values do not expire
    KeepsAll,
    /// nothing is answered for half a second
    Stalls,
    /// every thousandth operation is not begun
    NotBegun,
    /// for every thousandth operation it is unknown whether it was executed
    LosesTrack,
}

impl Store {
    fn with(fault: Fault) -> Store {
        Store { takes_ns: MS, fault, fault_from_ns: 2 * SECOND_NS, ..Store::default() }
    }
}

impl SimulatedServer for Store {
    fn opens_after_ns(&mut self, _: u64) -> Option<u64> {
        (self.fault != Fault::Gone || self.opened == 0).then_some(0)
    }

    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {
        self.opened += 1;
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let (tag, kind, key, value) = Operations::operation(message);
        self.received += 1;
        self.keys.insert(key.to_vec());
        let begins_ns = if self.is_serial { self.free_at_ns.max(at_ns) } else { at_ns };
        let mut ends_ns = begins_ns + self.takes_ns;
        if self.fault == Fault::Stalls
            && (0..SECOND_NS / 2).contains(&(at_ns.wrapping_sub(self.fault_from_ns)))
        {
            ends_ns = self.fault_from_ns + SECOND_NS / 2;
        }
        self.free_at_ns = ends_ns;
        self.until_ns.push_back(ends_ns);
        while self.until_ns.front().is_some_and(|until_ns| *until_ns <= at_ns) {
            self.until_ns.pop_front();
        }
        self.most = self.most.max(self.until_ns.len());
        let fault = if at_ns >= self.fault_from_ns { self.fault } else { Fault::None };
        let is_one = self.received.is_multiple_of(1000);
        match fault {
            Fault::LosesAll => self.values.clear(),
            Fault::Hangs => return,
            Fault::Closes if self.received.is_multiple_of(500) => return says.goodbye(at_ns, peer),
            Fault::Gone => return says.end(at_ns, peer, End::Reset),
            Fault::Breaks if is_one => return says.end(at_ns, peer, End::Broken(b"?!".to_vec())),
            _ => {}
        }
        let mut found = None;
        match kind {
            b"set" if fault == Fault::DropsSets && is_one => {
                self.values.remove(key);
            }
            b"set" => {
                self.puts += 1;
                let mut words = value.split(|byte| *byte == b'@');
                let value = words.next().unwrap_or_default().to_vec();
                let ttl_ms = words.next().map(|ms| std::str::from_utf8(ms).unwrap().parse::<u64>().unwrap());
                let expires_ns = ttl_ms.map_or(u64::MAX, |ms| at_ns + ms * MS);
                self.values.insert(key.to_vec(), (value, expires_ns));
            }
            b"del" => {
                self.values.remove(key);
            }
            _ => {
                let keeps_all = self.fault == Fault::KeepsAll;
                let is_there = |(_, expires_ns): &&(Vec<u8>, u64)| keeps_all || at_ns < *expires_ns;
                found = self.values.get(key).filter(is_there).map(|(value, _)| value.clone());
            }
        }
        match (fault, &mut found) {
            (Fault::WrongValue, Some(value)) if is_one => value[0] ^= 1,
            (Fault::ShortValue, Some(value)) if is_one => value.truncate(2),
            (Fault::Forgets, found) if is_one => *found = None,
            _ => {}
        }
        let reply = match (kind, &found) {
            _ if fault == Fault::Refuses && is_one => GridSays::Refused(b"OOM"),
            _ if fault == Fault::Strange && is_one => GridSays::Strange,
            _ if fault == Fault::NotBegun && is_one => GridSays::Again { may_have_run: false },
            _ if fault == Fault::LosesTrack && is_one => GridSays::Again { may_have_run: true },
            (b"get", None) => GridSays::NoValue,
            (b"get", Some(value)) => GridSays::Value(value),
            _ => GridSays::Done,
        };
        let tag = if fault == Fault::UnknownTag && is_one { tag + 5000 } else { tag };
        let reply = Operations::said(tag, reply);
        if fault == Fault::Twice && is_one {
            says.message(ends_ns, peer, reply.clone());
        }
        says.message(ends_ns, peer, reply);
    }
}

fn grid(op: GridOp) -> GridBots {
    GridBots {
        op,
        value_bytes: 3,
        keys: GridKeys::Uniform(100),
        connections: 1,
        model: GridModel::Closed,
        ttl_ms: None,
    }
}

fn plan_of(grid: GridBots, in_flight: u64) -> WorkerPlan {
    WorkerPlan { ramp: plan::Ramp::AtOnce, ..worker_plan(BotSettings::Grid(grid), in_flight) }
}

/// The hold lasts from 1 s to 4 s.
fn hold(grid: GridBots, in_flight: u64, store: &mut Store) -> Trial {
    let times = Times { hold_ns: SECOND_NS, drain_ns: 4 * SECOND_NS, generator_stall: None };
    sum_up(simulate::<Bots<Wire<Operations>>>(&plan_of(grid, in_flight), times, store), 1, 4)
}

fn lookups(trial: &Trial) -> Vec<u64> {
    let names = &trial.head.metric_names;
    let count = |index: usize| trial.counters.get(&names.counters[index]).copied().unwrap_or_default();
    names.counters(Role::Lookups).map(count).collect()
}

#[test]
fn so_many_operations_are_in_flight_and_no_more_and_each_one_that_ends_starts_the_next() {
    for in_flight in [1, 10, 250] {
        let mut store = Store { takes_ns: 2 * MS, ..Store::default() };
        let trial = hold(grid(GridOp::Get), in_flight, &mut store);
        // 500 rounds of 2 ms a second; the first and the last may straddle the ends of the hold.
        let answered = trial.flow().answered;
        assert!(answered.abs_diff(1500 * in_flight) <= in_flight, "{in_flight}: {answered}");
        // The 64 puts that come first are more than ten at once.
        assert_eq!(store.most as u64, in_flight.max(64));
        let service_ns = trial.distribution(Measure::Response).max_ns().unwrap();
        assert!(service_ns.abs_diff(2 * MS) < 20_000, "{service_ns}");
        assert_eq!(trial.errors, BTreeMap::new());
        assert_eq!(lookups(&trial)[1], 0);
        assert!(lookups(&trial)[0].abs_diff(answered) <= in_flight);
    }
}

/// One at a time, 100 in flight: each waits for the 99 before it.
#[test]
fn an_operation_that_waits_in_the_server_is_timed_from_its_start() {
    let mut store = Store { takes_ns: 100_000, is_serial: true, ..Store::default() };
    let trial = hold(grid(GridOp::Set), 100, &mut store);
    assert!(trial.flow().answered.abs_diff(30_000) <= 100);
    let response_ns = trial.distribution(Measure::Response).max_ns().unwrap();
    assert!(response_ns.abs_diff(10 * MS) < 50_000, "{response_ns}");
}

#[test]
fn connections_share_the_operations() {
    let mut store = Store { takes_ns: MS, ..Store::default() };
    let trial = hold(GridBots { connections: 4, ..grid(GridOp::Get) }, 10, &mut store);
    assert_eq!(store.opened, 4);
    assert!(trial.flow().answered.abs_diff(30_000) <= 10);
    let mut store = Store { takes_ns: MS, ..Store::default() };
    hold(GridBots { connections: 40, ..grid(GridOp::Get) }, 10, &mut store);
    assert_eq!(store.opened, 10, "a connection without an operation would be idle");
}

#[test]
fn values_are_put_once_before_they_are_read_and_by_one_worker_each() {
    let mut store = Store { takes_ns: MS, ..Store::default() };
    hold(grid(GridOp::Get), 5, &mut store);
    assert_eq!(store.puts, 100);
    let plan = WorkerPlan { worker: 1, workers: 3, ..plan_of(grid(GridOp::Get), 5) };
    let times = Times { hold_ns: SECOND_NS, drain_ns: 2 * SECOND_NS, generator_stall: None };
    let mut store = Store { takes_ns: MS, ..Store::default() };
    simulate::<Bots<Wire<Operations>>>(&plan, times, &mut store);
    assert_eq!(store.puts, 33, "keys 1, 4, 7 … 97");
}

#[test]
fn kinds_of_operations_have_the_shares_that_were_asked_for() {
    let share = |op: GridOp, names: [&str; 3]| {
        let mut store = Store { takes_ns: MS, ..Store::default() };
        let trial = hold(grid(op), 20, &mut store);
        assert_eq!(trial.errors, BTreeMap::new(), "{op:?}");
        let of = |name: &str| trial.ops.get(name).map_or(0, |flow| flow.answered) as f64;
        let all = names.iter().map(|name| of(name)).sum::<f64>();
        // 60,000 operations: four standard errors of a share are 0.8 percentage points.
        (names.map(|name| (of(name) / all * 100.0).round()), lookups(&trial))
    };
    let names = ["get", "set", "delete"];
    assert_eq!(share(GridOp::Get, names).0, [100.0, 0.0, 0.0]);
    assert_eq!(share(GridOp::Shares { gets: 9, sets: 1 }, names).0, [90.0, 10.0, 0.0]);
    let (shares, found) = share(GridOp::Mix, names);
    assert_eq!(shares, [40.0, 40.0, 20.0]);
    // Two sets to a delete: two of three keys are there.
    let hits = found[0] as f64 / (found[0] + found[1]) as f64;
    assert!((hits - 2.0 / 3.0).abs() < 0.02, "{hits}");
}

#[track_caller]
fn check(op: GridOp, fault: Fault, cause: &str, bad: impl Fn(&measure::Flow) -> u64) {
    let trial = hold(grid(op), 20, &mut Store::with(fault));
    assert!(trial.errors.get(cause).is_some_and(|count| *count > 0), "{:?}", trial.errors);
    assert!(bad(&trial.flow()) > 0, "{:?}", trial.flow());
}

#[test]
fn a_reply_that_is_not_right_is_none() {
    let failed = |flow: &measure::Flow| flow.failed;
    check(GridOp::Get, Fault::WrongValue, "wrong value", failed);
    check(GridOp::Mix, Fault::WrongValue, "wrong value", failed);
    check(GridOp::Get, Fault::ShortValue, "wrong value", failed);
    check(GridOp::Get, Fault::Forgets, "value not found", failed);
    check(GridOp::Get, Fault::LosesAll, "value not found", failed);
    check(GridOp::Shares { gets: 1, sets: 1 }, Fault::DropsSets, "value not found", failed);
    check(GridOp::Set, Fault::Refuses, "operation refused", failed);
    check(GridOp::Set, Fault::Strange, "reply of another kind", failed);
    check(GridOp::Get, Fault::Strange, "reply of another kind", failed);
}

#[test]
fn a_reply_that_was_not_asked_for_answers_nothing() {
    // An operation that never gets a correct answer stays open.
    check(GridOp::Get, Fault::UnknownTag, "reply to no operation in flight", |flow| flow.open_after);
    let trial = hold(grid(GridOp::Get), 1, &mut Store::with(Fault::Twice));
    assert!(trial.errors["reply to no operation in flight"] > 0);
}

#[test]
fn operations_whose_connection_ends_are_lost_and_the_connection_comes_back() {
    let lost = |flow: &measure::Flow| flow.lost;
    check(GridOp::Get, Fault::Closes, "connection lost", lost);
    check(GridOp::Set, Fault::Breaks, "broken protocol", lost);
    let mut store = Store::with(Fault::Closes);
    let trial = hold(grid(GridOp::Get), 20, &mut store);
    assert!(store.opened > 5 && trial.flow().answered > 20_000, "{} {:?}", store.opened, trial.flow());
}

#[test]
fn a_server_that_is_gone_leaves_operations_not_sent() {
    let mut store = Store::with(Fault::Gone);
    let trial = hold(grid(GridOp::Get), 20, &mut store);
    let flow = trial.flow();
    assert_eq!(flow.lost, 20);
    assert!(flow.not_sent >= 100, "{flow:?}");
    assert!(trial.connections.failed["refused"] >= 5);
}

#[test]
fn a_server_that_hangs_leaves_its_operations_open() {
    let trial = hold(grid(GridOp::Get), 20, &mut Store::with(Fault::Hangs));
    assert_eq!((trial.flow().open_after, trial.flow().lost), (20, 0));
    assert_eq!(trial.distribution(Measure::Unanswered).count(), 20);
}

#[test]
fn values_that_cannot_be_put_do_not_hold_up_the_load_for_ever() {
    let store = &mut Store { takes_ns: MS, fault: Fault::Hangs, fault_from_ns: 0, ..Store::default() };
    let times = Times { hold_ns: 15 * SECOND_NS, drain_ns: 17 * SECOND_NS, generator_stall: None };
    let seconds = simulate::<Bots<Wire<Operations>>>(&plan_of(grid(GridOp::Get), 100), times, store);
    let trial = sum_up(seconds, 15, 17);
    // The load begins after 10 s, long before the hold, in which nothing is answered: the silence is what is judged.
    // The puts still in flight take the place of as many operations.
    assert_eq!(store.received, 100);
    assert_eq!((trial.flow().offered, trial.flow().answered), (0, 0));
}

/// Operations planned by a clock, at equal gaps; the hold lasts from 1 s to 4 s.
fn hold_at(rate_per_s: f64, grid: GridBots, store: &mut Store) -> Trial {
    let connections = grid.connections;
    let grid = GridBots { model: GridModel::Open, ..grid };
    let plan = WorkerPlan { rate_per_s, ..plan_of(grid, connections) };
    let times = Times { hold_ns: SECOND_NS, drain_ns: 4 * SECOND_NS, generator_stall: None };
    sum_up(simulate::<Bots<Wire<Operations>>>(&plan, times, store), 1, 4)
}

#[test]
fn a_rate_is_offered_whatever_the_store_does_and_spread_over_the_connections() {
    let mut store = Store { takes_ns: 300 * MS, ..Store::default() };
    let trial = hold_at(2000.0, GridBots { connections: 4, ..grid(GridOp::Get) }, &mut store);
    assert_eq!(store.opened, 4);
    assert!(trial.flow().answered.abs_diff(6000) <= 1, "{:?}", trial.flow());
    assert_eq!((trial.flow().not_sent, trial.flow().failed), (0, 0));
    // The number in flight is a result: 2000/s for 0.3 s each, and 64 puts at once on each connection before that.
    assert!(store.most.abs_diff(600) <= 1, "{}", store.most);
    let response_ns = trial.distribution(Measure::Response).max_ns().unwrap();
    assert!(response_ns.abs_diff(300 * MS) < 2 * MS, "{response_ns}");
}

/// Of 3000 operations 500 fall into the stall, and wait for 0 to 500 ms: 300 of them for longer than 200 ms.
#[test]
fn operations_of_a_rate_are_timed_from_their_plan_through_a_stall() {
    let trial = hold_at(1000.0, grid(GridOp::Get), &mut Store::with(Fault::Stalls));
    let summary = trial.distribution(Measure::Response).summary().unwrap();
    let (p90_ns, max_ns) = (summary.p90.unwrap(), summary.max.unwrap());
    assert!(p90_ns.abs_diff(200 * MS) < 3 * MS && max_ns.abs_diff(500 * MS) < 3 * MS, "{p90_ns} {max_ns}");
    // A closed loop of as many operations in flight sees one slow reply for each of them, and no more.
    let closed = hold(grid(GridOp::Get), 1, &mut Store::with(Fault::Stalls));
    let p90_ns = closed.distribution(Measure::Response).summary().unwrap().p90.unwrap();
    assert!(p90_ns < 2 * MS, "{p90_ns}");
}

#[test]
fn operations_that_find_no_room_wait_and_are_timed_from_their_plan_or_never_sent() {
    // Ten thousand are in flight after 2 s of the hold; none of them is answered before the end.
    let mut store = Store { takes_ns: 60 * SECOND_NS, ..Store::default() };
    let trial = hold_at(5000.0, grid(GridOp::Set), &mut store);
    let flow = trial.flow();
    assert_eq!(store.most, 10_000);
    assert!(flow.offered.abs_diff(15_000) <= 1 && flow.answered == 0, "{flow:?}");
    assert_eq!((flow.sent, flow.open_after), (10_000, 10_000), "{flow:?}");
    // Answered in time to make room, the last ones wait for the first.
    let mut store = Store { takes_ns: 3 * SECOND_NS, ..Store::default() };
    let trial = hold_at(5000.0, grid(GridOp::Set), &mut store);
    assert_eq!((store.most, trial.flow().not_sent), (10_000, 0));
    let max_ns = trial.distribution(Measure::Response).max_ns().unwrap();
    assert!(max_ns.abs_diff(4 * SECOND_NS) < 20 * MS, "one second of waiting for room: {max_ns}");
    let lag_ns = trial.distribution(Measure::SendLag).max_ns().unwrap();
    assert!(lag_ns < MS, "the wait is the server's: {lag_ns}");
}

#[test]
fn a_rate_on_a_server_that_is_gone_is_not_sent_to_the_last_operation() {
    let trial = hold_at(1000.0, grid(GridOp::Get), &mut Store::with(Fault::Gone));
    let flow = trial.flow();
    assert!(flow.offered.abs_diff(3000) <= 1 && flow.lost >= 1, "{flow:?}");
    assert!(flow.not_sent.abs_diff(2000) <= 3, "{flow:?}");
}

#[test]
fn values_that_expire_are_misses_and_those_that_should_have_are_wrong() {
    let grid = GridBots { ttl_ms: Some(500), ..grid(GridOp::Get) };
    let long = |store: &mut Store| {
        let times = Times { hold_ns: SECOND_NS, drain_ns: 8 * SECOND_NS, generator_stall: None };
        sum_up(simulate::<Bots<Wire<Operations>>>(&plan_of(grid.clone(), 10), times, store), 1, 8)
    };
    let trial = long(&mut Store { takes_ns: MS, ..Store::default() });
    assert_eq!((trial.errors.clone(), trial.flow().failed), (BTreeMap::new(), 0));
    assert!(lookups(&trial)[1] > 60_000, "{:?}", lookups(&trial));
    let trial = long(&mut Store::with(Fault::KeepsAll));
    assert!(trial.errors["expired value found"] > 30_000, "{:?}", trial.errors);
    // Errors count in the second in which they came, operations in the phase in which they were planned.
    assert!(trial.flow().failed.abs_diff(trial.errors["expired value found"]) <= 10);
    // Constantly set again, they exist, and none of them is reported as expired.
    let again = GridBots { op: GridOp::Shares { gets: 1, sets: 1 }, ..grid.clone() };
    let trial = hold(again, 10, &mut Store { takes_ns: MS, ..Store::default() });
    assert_eq!(trial.errors, BTreeMap::new());
    assert!(lookups(&trial)[0] > 10 * lookups(&trial)[1], "{:?}", lookups(&trial));
}

fn sent_again(trial: &Trial) -> u64 {
    trial.counters.get("sent again").copied().unwrap_or_default()
}

#[test]
fn only_what_is_safe_is_sent_again() {
    for op in [GridOp::Get, GridOp::Set] {
        let trial = hold(grid(op), 20, &mut Store::with(Fault::NotBegun));
        assert_eq!((trial.errors.clone(), trial.flow().failed), (BTreeMap::new(), 0), "{op:?}");
        assert!(sent_again(&trial) >= 30, "{}", sent_again(&trial));
        let response_ns = trial.distribution(Measure::Response).max_ns().unwrap();
        assert!(response_ns > 10 * MS, "timed from its plan, with both attempts: {response_ns}");
    }
    let trial = hold(grid(GridOp::Get), 20, &mut Store::with(Fault::LosesTrack));
    assert!(trial.errors.is_empty() && sent_again(&trial) >= 30, "a get changes nothing: {:?}", trial.errors);
    let trial = hold(grid(GridOp::Set), 20, &mut Store::with(Fault::LosesTrack));
    assert!(trial.errors["outcome unknown"] > 0 && sent_again(&trial) == 0, "{:?}", trial.errors);
    assert!(trial.flow().failed.abs_diff(trial.errors["outcome unknown"]) <= 1, "{:?}", trial.flow());
}

const PORTS: [u16; 3] = [1001, 1002, 1003];
const PARTITIONS: u32 = 12;

/// Three members with one copy of all values; from an instant on the first of them is down.
struct Cluster {
    store: Store,
    gone_ns: u64,
    owners: Vec<u16>,
    /// operations of the load by the place of the member that got them, and those that were not its own
    received: [u64; 3],
    misrouted: u64,
}

impl SimulatedServer for Cluster {
    fn opens_after_ns(&mut self, peer: u64) -> Option<u64> {
        // The first three are those of the members in their order; only the first one is ever opened again.
        (peer < 3).then_some(0)
    }

    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        says.message(at_ns, peer, Operations::said(0, GridSays::Owners(&self.owners)));
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        if peer == 0 && at_ns >= self.gone_ns {
            for (partition, owner) in self.owners.iter_mut().enumerate() {
                *owner = if *owner == PORTS[0] { PORTS[1 + partition % 2] } else { *owner };
            }
            for other in [1, 2] {
                says.message(at_ns, other, Operations::said(0, GridSays::Owners(&self.owners)));
            }
            return says.end(at_ns, peer, End::Reset);
        }
        let (_, _, key, _) = Operations::operation(message);
        let key: u32 = std::str::from_utf8(&key[1..]).unwrap().parse().unwrap();
        if at_ns > SECOND_NS {
            self.received[peer as usize] += 1;
            let is_own = self.owners[(key % PARTITIONS) as usize] == PORTS[peer as usize];
            self.misrouted += u64::from(!is_own);
        }
        self.store.received(peer, message, at_ns, says);
    }
}

fn on_cluster(gone_ns: u64, grid: GridBots, rate_per_s: f64) -> (Cluster, Trial) {
    let members = PORTS.map(|port| std::net::SocketAddr::from(([127, 0, 0, 1], port))).to_vec();
    let owners = (0..PARTITIONS).map(|partition| PORTS[partition as usize % 3]).collect();
    let store = Store { takes_ns: MS, ..Store::default() };
    let mut cluster = Cluster { store, gone_ns, owners, received: [0; 3], misrouted: 0 };
    let units = if rate_per_s > 0.0 { 1 } else { 30 };
    let plan = WorkerPlan { members, rate_per_s, ..plan_of(grid, units) };
    let times = Times { hold_ns: SECOND_NS, drain_ns: 4 * SECOND_NS, generator_stall: None };
    let seconds = simulate::<Bots<Wire<Operations>>>(&plan, times, &mut cluster);
    (cluster, sum_up(seconds, 1, 4))
}

#[test]
fn each_operation_goes_to_the_member_that_owns_its_key() {
    let (cluster, trial) = on_cluster(u64::MAX, grid(GridOp::Get), 0.0);
    assert_eq!((trial.errors.clone(), cluster.misrouted), (BTreeMap::new(), 0));
    assert!(trial.flow().answered.abs_diff(90_000) <= 30, "{:?}", trial.flow());
    // 34, 33 and 33 of 100 keys.
    assert!(cluster.received.iter().all(|count| (28_000..33_000).contains(count)), "{:?}", cluster.received);
}

#[test]
fn when_one_of_three_members_ends_its_operations_are_lost_and_the_others_take_its_keys() {
    let open = GridBots { model: GridModel::Open, ..grid(GridOp::Shares { gets: 1, sets: 1 }) };
    for (grid, rate_per_s) in [(grid(GridOp::Shares { gets: 9, sets: 1 }), 0.0), (open, 10_000.0)] {
        let (cluster, trial) = on_cluster(2 * SECOND_NS, grid, rate_per_s);
        let flow = trial.flow();
        // Only what was in flight to the member that ended; nothing waits for it.
        assert!((1..=30).contains(&flow.lost), "{flow:?}");
        assert_eq!((flow.failed, flow.not_sent), (0, 0), "{flow:?}");
        let expected = if rate_per_s > 0.0 { 30_000 } else { 90_000 };
        assert!(flow.answered.abs_diff(expected) <= 150, "{flow:?}");
        assert_eq!(trial.errors.keys().collect::<Vec<_>>(), ["connection reset"]);
        assert_eq!(cluster.misrouted, 0, "two seconds without the first member");
        assert!(trial.connections.failed["refused"] >= 2);
    }
}
