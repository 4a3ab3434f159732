//! The poll loop: an HTTP service that lives inside a simulation loop.
//!
//! Tick k begins at t₀ + k/30 s, absolutely. At its start the loop takes at most `slots` complete waiting requests in
//! order of arrival, builds and sends their answers, simulates, and draws a frame if there is time. A request that was
//! not complete waits for the next tick; that of a disconnected client is dropped when its turn comes. Hence one
//! requester gets 30 answers per second, ten get 300, and nobody gets more. At most `queue` requests are admitted at
//! once (`admission`); the network thread refuses any beyond that at once, even while the loop draws.
//!
//! A model of published behaviour, not of one machine: `foreground` makes a frame cost 72 % of a tick instead of 1.2 %,
//! and `priority` decides what yields when answers and frame do not both fit. At normal priority the frame is kept:
//! answers get what drawing leaves of the tick, at least one chunk, and the rest of them continues at the next tick in
//! its slot; long answers then make the response rate collapse at 30 frames per second. Below normal the answers come
//! first and drawing gets what they leave; a frame that is not ready when the tick ends continues in the next, whose
//! own is skipped; the response rate stays linear and the frame rate drops once the tick is full. Short answers cause
//! neither, nor do long ones in the background.
//!
//! Two threads serve and share a descriptor table: `network` and `simulation`, which sends its answers itself. The
//! calling thread controls: it takes signals, writes the tick log and ends the others.
//! Invariants: requests = refused + answers + dropped + admitted · neither thread waits for the other · refusing a
//! request does not touch what the loop needs.
//! Order of reading: `turn` (a tick, pure), `admission`, `services`; `simulation`, `network`, `connection`.

mod admission;
mod answer;
mod busy_work;
mod connection;
mod network;
mod options;
mod pages;
mod services;
mod shared;
mod simulation;
#[cfg(test)]
mod theory_tests;
mod turn;
mod world;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

pub use options::{Beyond, Locality, Options};
pub use services::{FACTS, SERVICES, Service};
pub use turn::Priority;

use servers_shared::ServeError;
use servers_shared::clock::{self, WallClock};
use servers_shared::control::{Crew, END_NS, Listening, REST_NS};
use servers_shared::fault::Server;
use servers_shared::listener::Readiness;
use servers_shared::ticks::TickTally;
use servers_shared::ticks::log::{Second, TickLog};
use shared::{Looped, Shared};

/// What a process below normal priority is nice by.
const BELOW_NORMAL_NICE: i32 = 10;

/// Serves until SIGTERM, SIGINT or `options.shutdown`; then what was admitted is answered, and everything else refused.
///
/// `on_listening` is told the address once connections are taken. The calling thread controls: it must be the one
/// whose signal mask and descriptor table matter, in a program the main one. Below normal priority it becomes nice for
/// good, and with it the threads that it starts.
/// Errors: options out of range, an address in use, an existing tick log, a tick log that cannot be written.
pub fn run(options: Options, on_listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    options.check()?;
    let planted = (Server::PollLoop, &options.faults[..]);
    let listening = Listening::on(options.listen, Readiness::Connected, planted, &options.shutdown)?;
    // Both threads use one table; connections beyond its size are not accepted.
    let max_connections = options.max_connections.min(listening.table_sockets);
    let options = Options { max_connections, ..options };
    let address = listening.address;
    let log = TickLog::open_if(options.tick_log.as_deref(), options.append)?;
    if options.priority == Priority::BelowNormal {
        // Niceness belongs to a thread, and its children inherit it.
        let nice = rustix::process::setpriority_process(None, BELOW_NORMAL_NICE);
        nice.map_err(io::Error::from).map_err(ServeError::system("setpriority"))?;
    }
    let mut crew = listening.crew()?;
    let shared = Shared::new(options, crew.common.clone()).map_err(ServeError::system("eventfd"))?;
    let shared = Arc::new(shared);
    let (sender, receiver) = mpsc::channel();
    let for_loop = shared.clone();
    crew.spawn("poll-loop".to_owned(), move || {
        simulation::run(&for_loop, receiver);
        Ok(())
    })?;
    let for_network = shared.clone();
    crew.spawn("poll-network".to_owned(), move || network::run(&for_network, sender))?;
    let mut control = Control {
        crew,
        log,
        wall: WallClock::new(),
        from_ns: clock::now_ns(),
        told: [0; 7],
        spare: Box::new(TickTally::new()),
        shared,
    };
    on_listening(address);
    let served = control.serve();
    let ended = control.end();
    served.and(ended)
}

/// The first thread of the two.
const LOOP: usize = 0;

/// The calling thread's part.
struct Control {
    shared: Arc<Shared>,
    crew: Crew,
    log: Option<TickLog>,
    wall: WallClock,
    /// Where the next line begins.
    from_ns: u64,
    /// What was counted up to the last line; lines tell the differences.
    told: [u64; 7],
    /// Empty; what the loop has counted is taken by a swap.
    spare: Box<TickTally>,
}

impl Control {
    /// Line by line, until shutdown is requested or something fails.
    fn serve(&mut self) -> Result<(), ServeError> {
        let every_ns = self.shared.options.tick_log_every.as_nanos() as u64;
        let mut next_ns = if self.log.is_some() { self.from_ns + every_ns } else { u64::MAX };
        loop {
            if self.crew.listen(next_ns.saturating_sub(clock::now_ns()).min(REST_NS), None).the_end {
                return Ok(());
            }
            let now_ns = clock::now_ns();
            if now_ns >= next_ns {
                self.write()?;
                // After a long stall the lines in between become one.
                next_ns += ((now_ns - next_ns) / every_ns + 1) * every_ns;
            }
            self.crew.check()?;
        }
    }

    /// Writes what was counted since the last line.
    fn write(&mut self) -> Result<(), ServeError> {
        let shared = &self.shared;
        let to_ns = clock::now_ns();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counted = {
            let Looped { ticks, answers, dropped, frames } = &mut *shared.looped();
            std::mem::swap(ticks, &mut self.spare);
            [
                ("requests", count(&shared.requests)),
                ("answers", *answers),
                ("refused", count(&shared.refused)),
                ("dropped", *dropped),
                ("frames", frames.drawn),
                ("frames_due", frames.due),
                ("frames_skipped", frames.skipped),
            ]
        };
        let second = Second {
            from_ms: self.wall.epoch_ms(self.from_ns),
            to_ms: self.wall.epoch_ms(to_ns),
            tick_rate: shared.options.tick_rate,
        };
        let mut figures = vec![
            ("games", 1),
            ("waiting", shared.admission.inside() as u64),
            ("sockets", shared.sockets.load(Ordering::Relaxed) as u64),
        ];
        for ((name, count), told) in counted.into_iter().zip(&mut self.told) {
            figures.push((name, count - std::mem::replace(told, count)));
        }
        self.from_ns = to_ns;
        let written = self.log.as_mut().map_or(Ok(()), |log| log.write(second, &self.spare, 0, &figures));
        self.spare.clear();
        written
    }

    /// Answers what was admitted, ends the threads and writes the last line.
    fn end(&mut self) -> Result<(), ServeError> {
        self.shared.drain();
        self.crew.wait(LOOP, clock::now_ns() + self.shared.options.drain.as_nanos() as u64);
        self.shared.close();
        let ended = self.crew.end(clock::now_ns() + END_NS);
        self.write().and(ended)
    }
}
