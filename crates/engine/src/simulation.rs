//! A simulation: a worker and a simulated server in virtual time, single-threaded and exact.
//!
//! Everything from the plan to the record runs without sockets or waiting, so a server with a known stall, loss or
//! winner must be recorded as exactly that. For tests and oracles; never part of a run.
//! A message takes no time on the wire; only the simulated server adds time.

mod anything;
mod law;
mod server;
mod wire;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Waker};

use drivers::{Address, OpenError};
use measure::{Interval, LedgerPart};
use plan::{WorkerPlan, WorkloadSettings as _};

use crate::bots::Bots;
use crate::clock::{Clock, VirtualClock};
use crate::ids::ConnectionId;
use crate::state::Shared;
use crate::timeline::{Progress, Timeline};
use crate::worker::{Handover, Worker};
pub use anything::{Anything, Asked};
pub use law::Law;
pub use server::{End, Says, SimulatedServer};
pub use wire::{Blocks, Exchanges, Freight, GridSays, Messages, Operations, Simulated, Wire};
use wire::{WIRES, Wires};

/// What a worker handed over.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// its seconds
    pub seconds: Vec<Interval>,
    /// its part of the delivery ledger
    pub ledger: Option<LedgerPart>,
}

#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Played>>);

impl Handover for Kept {
    fn swap(&mut self, second: &mut Box<Interval>) {
        self.0.borrow_mut().seconds.push((**second).clone());
    }

    fn ledger(&mut self, part: LedgerPart) {
        self.0.borrow_mut().ledger = Some(part);
    }
}

#[derive(Clone)]
struct Summed(Rc<RefCell<Interval>>);

impl Handover for Summed {
    fn swap(&mut self, second: &mut Box<Interval>) {
        let mut sum = self.0.borrow_mut();
        if let Err(imbalance) = sum.append(second) {
            panic!("an interval of a simulation: {imbalance}");
        }
    }
}

/// The instants of a simulation, ns.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// begin of the hold
    pub hold_ns: u64,
    /// its end
    pub drain_ns: u64,
    /// the generator does nothing within these, as if its core were taken away
    pub generator_stall: Option<(u64, u64)>,
}

fn settings<B: Bots>(plan: &WorkerPlan) -> &B::Settings {
    B::Settings::of(&plan.bots).expect("a simulation is given a plan of its own bots")
}

/// Plays one worker against a simulated server and returns its seconds.
pub fn simulate<B>(plan: &WorkerPlan, times: Times, server: &mut impl SimulatedServer) -> Vec<Interval>
where
    B: Bots<Driver: Simulated>,
{
    play::<B>(plan, times, server).seconds
}

/// Plays one worker against a simulated server and returns the sum of its seconds: for hours of virtual time.
pub fn simulate_sum<B>(plan: &WorkerPlan, times: Times, server: &mut impl SimulatedServer) -> Interval
where
    B: Bots<Driver: Simulated>,
{
    let sum = Summed(Rc::new(RefCell::new(Interval::new(&B::metric_names(settings::<B>(plan))))));
    play_to::<B>(plan, times, false, server, Box::new(sum.clone()));
    sum.0.borrow().clone()
}

/// Plays one worker against a simulated server and returns all that it handed over.
pub fn play<B>(plan: &WorkerPlan, times: Times, server: &mut impl SimulatedServer) -> Played
where
    B: Bots<Driver: Simulated>,
{
    play_kept::<B>(plan, times, false, server)
}

/// The same with a ramp that ends when all units are in, as the phase controller ends it, and at the hold at the latest.
pub fn play_settling<B>(plan: &WorkerPlan, times: Times, server: &mut impl SimulatedServer) -> Played
where
    B: Bots<Driver: Simulated>,
{
    play_kept::<B>(plan, times, true, server)
}

fn play_kept<B>(plan: &WorkerPlan, times: Times, settles: bool, server: &mut impl SimulatedServer) -> Played
where
    B: Bots<Driver: Simulated>,
{
    let kept = Kept::default();
    play_to::<B>(plan, times, settles, server, Box::new(kept.clone()));
    Rc::try_unwrap(kept.0).map_or_else(|shared| shared.borrow().clone(), RefCell::into_inner)
}

fn play_to<B>(
    plan: &WorkerPlan,
    times: Times,
    settles: bool,
    server: &mut impl SimulatedServer,
    handover: Box<dyn Handover>,
) where
    B: Bots<Driver: Simulated>,
{
    let requests_at_once = server.requests_at_once();
    WIRES.with_borrow_mut(|wires| *wires = Wires { requests_at_once, ..Wires::default() });
    let timeline = Arc::new(Timeline::default());
    if !settles {
        timeline.settle_at(times.hold_ns);
    }
    timeline.hold_at(times.hold_ns);
    timeline.drain_at(times.drain_ns);
    timeline.stop_at(times.drain_ns + plan.drain_ns + plan::CLOSING_NS);
    let progress = Arc::new(Progress::default());
    let shared = Shared { timeline: timeline.clone(), progress: progress.clone(), ..Shared::default() };
    let of_path = |path: String| {
        let address = move |&socket: &std::net::SocketAddr| Address {
            host: "simulated".to_owned(),
            path: path.clone(),
            reply_bytes_max: plan.bots.reply_bytes_max(),
            ..Address::plain(socket)
        };
        plan.sockets().iter().map(address)
    };
    let addresses = B::paths(plan).into_iter().flat_map(of_path).collect();
    let mut worker = Worker::<B>::new(settings::<B>(plan), plan, addresses, shared, handover);
    let clock = VirtualClock::default();
    let mut says = Says::default();
    let mut connections = Connections::default();
    loop {
        worker.due(&clock);
        settle(&mut worker, &clock, server, &mut says, &mut connections);
        if worker.is_done() {
            break;
        }
        if settles && timeline.settle_ns() == u64::MAX && progress.joined.load(Relaxed) >= plan.units {
            timeline.settle_at(clock.now_ns());
        }
        let arrival_ns = says.queue.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        let arrival_ns = arrival_ns.min(connections.next_open_ns());
        let mut next_ns = worker.next_due_ns().min(arrival_ns).max(clock.now_ns());
        if let Some((from_ns, to_ns)) = times.generator_stall
            && (from_ns..to_ns).contains(&next_ns)
        {
            next_ns = to_ns;
        }
        clock.set(next_ns);
        open_due(&mut worker, &clock, server, &mut says, &mut connections);
        while let Some(Reverse((at_ns, ..))) = says.queue.peek()
            && *at_ns <= next_ns
        {
            let Some(Reverse((at_ns, _, peer, message))) = says.queue.pop() else { break };
            worker.readable_since(at_ns);
            WIRES.with_borrow_mut(|wires| wires.to_bots.entry(peer).or_default().push_back(message));
            if let Some(&connection) = connections.by_peer.get(&peer) {
                let _ = worker.poll_connection(connection, &mut Context::from_waker(Waker::noop()), &clock);
            }
        }
    }
    worker.finish(&clock);
}

/// Connections by the numbers that the simulated server knows them by.
#[derive(Default)]
struct Connections {
    by_peer: BTreeMap<u64, ConnectionId>,
    /// on their way: when they stand, or are refused
    opening: BinaryHeap<Reverse<(u64, u64, bool)>>,
}

impl Connections {
    fn next_open_ns(&self) -> u64 {
        self.opening.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }
}

/// Opens connections that are established by now.
fn open_due<B: Bots<Driver: Simulated>>(
    worker: &mut Worker<B>,
    clock: &VirtualClock,
    server: &mut impl SimulatedServer,
    says: &mut Says,
    connections: &mut Connections,
) {
    while connections.next_open_ns() <= clock.now_ns() {
        let Some(Reverse((_, peer, is_refused))) = connections.opening.pop() else { return };
        let connection = connections.by_peer[&peer];
        // A connection attempt that was given up never arrives.
        if !worker.awaits(connection, &Context::from_waker(Waker::noop())) {
            continue;
        }
        if is_refused {
            worker.opened(connection, Err(OpenError::Refused), clock);
        } else {
            server.opened(peer, clock.now_ns(), says);
            worker.opened(connection, Ok(B::Driver::to(peer)), clock);
        }
    }
}

/// Lets everything that happens at this instant happen.
fn settle<B: Bots<Driver: Simulated>>(
    worker: &mut Worker<B>,
    clock: &VirtualClock,
    server: &mut impl SimulatedServer,
    says: &mut Says,
    connections: &mut Connections,
) {
    loop {
        open_due(worker, clock, server, says, connections);
        let openings: Vec<_> = worker.take_openings().collect();
        let arrived: Vec<_> = WIRES.with_borrow_mut(|wires| wires.to_server.drain(..).collect());
        if openings.is_empty() && arrived.is_empty() {
            return;
        }
        for opening in openings {
            connections.by_peer.insert(opening.begin_connect, opening.connection);
            let after_ns = server.opens_after_ns(opening.begin_connect);
            let at_ns = clock.now_ns() + after_ns.unwrap_or(0);
            connections.opening.push(Reverse((at_ns, opening.begin_connect, after_ns.is_none())));
        }
        for (peer, message) in arrived {
            match message {
                Some(message) => server.received(peer, &message, clock.now_ns(), says),
                None => {
                    server.closed(peer, clock.now_ns(), says);
                    says.goodbye(clock.now_ns(), peer);
                }
            }
        }
    }
}
