//! The loop's thread: at each tick it takes waiting requests, answers, simulates, draws, and sleeps until the next.
//!
//! `turn` decides what happens when; this file does it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use super::answer::{Answer, Delivery, Flaws, Progress};
use super::busy_work::BusyWork;
use super::shared::{Arrival, Looped, Shared};
use super::turn::{Step, Turn};
use super::world::World;
use servers_shared::fault::ThreadFaults;
use servers_shared::stream::Peer;
use servers_shared::ticks::schedule::{GameTicks, Grid, Ticker};
use servers_shared::{clock, sleeper};

/// How often it is looked for the end of the server while a planted fault keeps ticks from being run.
const STOPPED_REST_NS: u64 = 5_000_000;

struct Loop<'h> {
    shared: &'h Shared,
    arrivals: Receiver<Arrival>,
    turn: Turn<Answer>,
    world: World,
    busy_work: BusyWork,
    answers: u64,
    dropped: u64,
    faults: ThreadFaults,
    /// Whole answers that a planted fault holds back, with when they are sent; in the order of that.
    held_back: VecDeque<(u64, Answer)>,
}

pub(super) fn run(shared: &Shared, arrivals: Receiver<Arrival>) {
    sleeper::be_prompt();
    let mut one = Loop {
        shared,
        arrivals,
        turn: Turn::new(shared.options.rules()),
        world: World::new(shared.options.locality.objects()),
        busy_work: BusyWork::new(),
        answers: 0,
        dropped: 0,
        faults: ThreadFaults::new(shared.common.faults.clone()),
        held_back: VecDeque::new(),
    };
    one.live();
}

impl Loop<'_> {
    fn live(&mut self) {
        let tick_rate = self.shared.options.tick_rate;
        let grid = Grid::new(clock::now_ns(), tick_rate, Ticker::Steady, 0, 1);
        let slots = grid.slots() as u64;
        let mut ticks = GameTicks::new(&grid, 0);
        let mut next = 1;
        while !self.is_done() {
            self.rest_until(grid.turn_ns(next * slots), next);
            if self.faults.now.stops_ticks {
                sleeper::sleep_until(clock::now_ns() + STOPPED_REST_NS);
                continue;
            }
            let Some(tick) = ticks.take(&grid, clock::now_ns()) else { continue };
            next = tick.n + 1;
            if self.faults.now.slow_ns > 0 {
                sleeper::sleep_until(clock::now_ns() + self.faults.now.slow_ns);
            }
            self.run_tick(tick.started_ns, grid.turn_ns(next * slots), tick.missed);
            let busy_ns = clock::now_ns() - tick.started_ns;
            let Looped { ticks, answers, dropped, frames } = &mut *self.shared.looped();
            if self.faults.now.lies {
                ticks.enter_as_on_time(&tick, self.shared.options.period_ns(), busy_ns, tick_rate);
            } else {
                ticks.enter(&tick, busy_ns, tick_rate);
            }
            (*answers, *dropped, *frames) = (self.answers, self.dropped, self.turn.frames);
        }
    }

    /// Until the n-th tick is due, or is late if a planted fault wants that; sends on what was held back.
    fn rest_until(&mut self, due_ns: u64, n: u64) {
        if !self.faults.look() {
            return sleeper::sleep_until(due_ns);
        }
        loop {
            let now_ns = clock::now_ns();
            while self.held_back.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
                let Some((_, answer)) = self.held_back.pop_front() else { break };
                if answer.send_rest() {
                    self.shared.resume(answer.connection.key);
                }
            }
            self.faults.look();
            let until_ns = due_ns + self.faults.now.late_ticks.map_or(0, |share| share.lateness_ns(n));
            if now_ns >= until_ns || self.faults.now.stops_ticks {
                return;
            }
            sleeper::sleep_until(until_ns.min(now_ns + self.faults.rest_ns_max()));
        }
    }

    /// How an answer goes out.
    fn delivery(&self) -> Delivery {
        match self.faults.now {
            now if now.stops_answers => Delivery::Never,
            now if now.late_ns > 0 => Delivery::Later,
            _ => Delivery::Now,
        }
    }

    fn run_tick(&mut self, started_ns: u64, ends_ns: u64, missed: u64) {
        let options = &self.shared.options;
        let ending = self.shared.draining.load(Ordering::Acquire);
        while let Ok(arrival) = self.arrivals.try_recv() {
            let at_ns = arrival.at_ns;
            let mut answer = Answer::to(arrival);
            if self.faults.are_planted() {
                // One after the other, so that each of them falls on exactly its share.
                let ThreadFaults { lost, twice, wrong, .. } = &mut self.faults;
                answer.flaws = Flaws {
                    lost: lost.selects_next(),
                    twice: twice.selects_next(),
                    wrong: wrong.selects_next(),
                };
            }
            self.turn.arrive(at_ns, answer);
        }
        let Loop { turn, dropped, shared, .. } = self;
        turn.begin(started_ns, ends_ns, missed, |answer| {
            let peer = answer.peer(&shared.admission);
            *dropped += u64::from(peer == Peer::Gone);
            peer
        });
        let delivery = self.delivery();
        loop {
            match self.turn.next(clock::now_ns()) {
                Step::Answer(answer) => {
                    if ending {
                        answer.end_the_line();
                    }
                    let piece = answer.piece(
                        &mut self.world,
                        &mut self.busy_work,
                        options.cost_scale,
                        &self.shared.admission,
                        delivery,
                    );
                    match piece {
                        Progress::GoesOn => continue,
                        Progress::Complete(resumes) => {
                            self.answers += 1;
                            if resumes {
                                self.shared.resume(answer.connection.key);
                            }
                        }
                        Progress::HeldBack => self.answers += 1,
                        Progress::Dropped => self.dropped += 1,
                    }
                    let held_back = piece == Progress::HeldBack;
                    if let Some(answer) = self.turn.answered().filter(|_| held_back) {
                        self.held_back.push_back((clock::now_ns() + self.faults.now.late_ns, answer));
                    }
                }
                Step::Simulate => self.world.step(options.period_ns() as f64 / 1e9),
                Step::Draw(cpu_ns) => {
                    let drawn_ns = self.busy_work.work(cpu_ns);
                    self.turn.drew(drawn_ns);
                }
                Step::Rest => return,
            }
        }
    }

    /// Nothing more is admitted and all was answered, or there is no more time.
    fn is_done(&self) -> bool {
        let shared = self.shared;
        shared.common.going_down.load(Ordering::Acquire)
            || shared.shut.load(Ordering::Acquire)
                && shared.admission.inside() == 0
                && self.turn.is_idle()
                && self.held_back.is_empty()
    }
}
