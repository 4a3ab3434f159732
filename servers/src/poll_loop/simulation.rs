//! The loop's thread: at each tick it takes what waits, answers, simulates, draws, and sleeps until the next.
//!
//! What is done when is decided in `turn`; here it is done.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use super::answer::{Answer, Progress};
use super::house::{Arrival, House, Looped};
use super::labour::Labour;
use super::turn::{Step, Turn};
use super::world::World;
use crate::ticks::schedule::{GameTicks, Grid, Ticker};
use crate::{clock, sleeper};

/// Short enough that a tick begins at once, whatever else wants the core.
const SLICE_NS: u64 = 100_000;

struct Loop<'h> {
    house: &'h House,
    arrivals: Receiver<Arrival>,
    turn: Turn<Answer>,
    world: World,
    labour: Labour,
    answers: u64,
    dropped: u64,
}

pub(super) fn run(house: &House, arrivals: Receiver<Arrival>) {
    sleeper::no_timer_slack();
    sleeper::short_slices(SLICE_NS);
    let mut one = Loop {
        house,
        arrivals,
        turn: Turn::new(house.options.rules()),
        world: World::new(house.options.locality.objects()),
        labour: Labour::new(),
        answers: 0,
        dropped: 0,
    };
    one.live();
}

impl Loop<'_> {
    fn live(&mut self) {
        let tick_rate = self.house.options.tick_rate;
        let grid = Grid::new(clock::now_ns(), tick_rate, Ticker::Steady, 0, 1);
        let slots = grid.slots() as u64;
        let mut ticks = GameTicks::new(&grid, 0);
        let mut next = 1;
        while !self.is_done() {
            sleeper::sleep_until(grid.turn_ns(next * slots));
            let Some(tick) = ticks.take(&grid, clock::now_ns()) else { continue };
            next = tick.n + 1;
            self.run_tick(tick.started_ns, grid.turn_ns(next * slots), tick.missed);
            let busy_ns = clock::now_ns() - tick.started_ns;
            let Looped { ticks, answers, dropped, frames } = &mut *self.house.looped();
            ticks.enter(&tick, busy_ns, tick_rate);
            (*answers, *dropped, *frames) = (self.answers, self.dropped, self.turn.frames);
        }
    }

    fn run_tick(&mut self, started_ns: u64, ends_ns: u64, missed: u64) {
        let options = &self.house.options;
        let ending = self.house.draining.load(Ordering::Acquire);
        while let Ok(arrival) = self.arrivals.try_recv() {
            self.turn.arrive(arrival.at_ns, Answer::to(arrival));
        }
        self.turn.begin(started_ns, ends_ns, missed);
        loop {
            match self.turn.next(clock::now_ns()) {
                Step::Answer(answer) => {
                    if ending {
                        answer.end_the_line();
                    }
                    let piece = answer.piece(
                        &mut self.world,
                        &mut self.labour,
                        options.cost_scale,
                        &self.house.porch,
                    );
                    match piece {
                        Progress::GoesOn => continue,
                        Progress::Complete(resumes) => {
                            self.answers += 1;
                            if resumes {
                                self.house.resume(answer.line.key);
                            }
                        }
                        Progress::Dropped => self.dropped += 1,
                    }
                    self.turn.answered();
                }
                Step::Simulate => self.world.step(options.period_ns() as f64 / 1e9),
                Step::Draw(cpu_ns) => {
                    let drawn_ns = self.labour.work(cpu_ns);
                    self.turn.drew(drawn_ns);
                }
                Step::Rest => return,
            }
        }
    }

    /// The house is shut and empty, or there is no more time.
    fn is_done(&self) -> bool {
        let house = self.house;
        house.closing.load(Ordering::Acquire)
            || house.shut.load(Ordering::Acquire) && house.porch.inside() == 0 && self.turn.is_idle()
    }
}
