//! The poll loop: an HTTP service that lives inside a simulation loop.
//!
//! Tick k begins at t₀ + k/30 s, absolutely. At its start the loop takes at most `slots` whole waiting requests in the
//! order of their arrival, makes and sends their answers, simulates, and draws a frame if there is time. A request that
//! had not wholly arrived waits for the next tick. Hence: one requester gets 30 answers per second, ten get 300, and
//! nobody gets more. At most `queue` requests are admitted at once (`admission`); beyond that they are refused at once, also
//! while the loop draws, by the network's thread.
//!
//! A model of published behaviour, not of one machine: `foreground` makes a frame cost 72 % of a tick instead of 1.2 %,
//! and `priority` says who yields when answers and frame do not both fit. At normal priority the frame is kept: answers
//! get what drawing leaves of the tick, at least one chunk, and what is left of them goes on at the next tick in its
//! slot; long answers then make the response rate collapse at 30 frames per second. Below normal the answers come first
//! and drawing gets what they leave; a frame that is not ready when the tick ends goes on in the next, whose own is
//! skipped; the response rate stays linear and the frame rate drops once the tick is full. Short answers do neither,
//! nor do long ones in the background.
//!
//! Two threads serve and share a descriptor table: `network` and `simulation`, which sends its answers itself. The
//! calling thread controls: it takes signals, writes the tick log and ends the others.
//! Invariants: requests = refused + answers + dropped + admitted · neither thread waits for the other · who refuses
//! does not touch what the loop needs.
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
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

pub use options::{Beyond, Locality, Options};
pub use services::{FACTS, SERVICES, Service};
pub use turn::Priority;

use crate::clock::{self, WallClock};
use crate::fault::process::ProcessFaults;
use crate::fault::{Faults, Server};
use crate::listener::{Listener, Readiness};
use crate::shutdown::{AllSignalsBlocked, Ear};
use crate::ticks::TickTally;
use crate::ticks::log::{Second, TickLog};
use crate::{ServeError, thread_table};
use shared::{Looped, Shared};

/// How long the network has to let its clients go, after the loop has ended.
const END_NS: u64 = 2_000_000_000;

/// The longest rest of the control thread: how late it notices that a thread has ended by itself.
const REST_NS: u64 = 1_000_000_000;

/// What a process below normal priority is nice by.
const BELOW_NORMAL_NICE: libc::c_int = 10;

/// Serves until SIGTERM, SIGINT or `options.shutdown`; then what was admitted is answered, and everything else refused.
///
/// `on_listening` is told the address once connections are taken. The calling thread controls: it must be the one
/// whose signal mask and descriptor table matter, in a program the main one. Below normal priority it becomes nice for
/// good, and with it the threads that it starts.
/// Errors: options out of range, an address in use, an existing tick log, a tick log that cannot be written.
pub fn run(options: Options, on_listening: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    options.check()?;
    let faults = Faults::of(Server::PollLoop, &options.faults)?;
    // Both threads use one table; what it cannot hold is not taken.
    let max_connections = options.max_connections.min(thread_table::raise_limit());
    let options = Options { max_connections, ..options };
    let listen_error = |source| ServeError::Listen { address: options.listen, source };
    let listener = Listener::bind(options.listen, Readiness::Connected).map_err(listen_error)?;
    let listener = listener.with_faults(faults.clone());
    let address = listener.address().map_err(ServeError::system("getsockname"))?;
    let log = match &options.tick_log {
        Some(path) => Some(TickLog::open(path, options.append)?),
        None => None,
    };
    if options.priority == Priority::BelowNormal {
        be_nice().map_err(ServeError::system("setpriority"))?;
    }
    let ear = Ear::new(options.shutdown.clone()).map_err(ServeError::system("signalfd"))?;
    let _process_faults =
        ProcessFaults::start(faults.as_ref()).map_err(ServeError::system("starting a thread"))?;
    let shared = Arc::new(Shared::new(options, listener, faults).map_err(ServeError::system("eventfd"))?);
    let threads = spawn(&shared).map_err(ServeError::system("starting a thread"))?;
    let mut control = Control {
        threads,
        log,
        ear,
        wall: WallClock::new(),
        from_ns: clock::now_ns(),
        told: Figures::default(),
        spare: Box::new(TickTally::new()),
        shared,
    };
    on_listening(address);
    let served = control.serve();
    let ended = control.end();
    served.and(ended)
}

/// Niceness belongs to a thread, and its children inherit it.
fn be_nice() -> io::Result<()> {
    // SAFETY: a plain call without pointers; 0 is the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, BELOW_NORMAL_NICE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

const LOOP: usize = 0;
const NETWORK: usize = 1;

fn spawn(shared: &Arc<Shared>) -> io::Result<[Option<JoinHandle<io::Result<()>>>; 2]> {
    // Threads inherit the mask: no signal ever interrupts one.
    let _blocked = AllSignalsBlocked::new();
    let (sender, receiver) = mpsc::channel();
    let named = |name: &str| std::thread::Builder::new().name(name.to_owned()).stack_size(512 * 1024);
    let for_loop = shared.clone();
    let looping = named("poll-loop").spawn(move || {
        simulation::run(&for_loop, receiver);
        Ok(())
    })?;
    let for_network = shared.clone();
    let network = named("poll-network").spawn(move || network::run(&for_network, sender));
    if network.is_err() {
        shared.close();
    }
    Ok([Some(looping), Some(network?)])
}

/// What is counted since the start, for the differences that the log tells.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    requests: u64,
    refused: u64,
    answers: u64,
    dropped: u64,
    frames_due: u64,
    frames: u64,
    frames_skipped: u64,
}

/// The calling thread's part.
struct Control {
    shared: Arc<Shared>,
    threads: [Option<JoinHandle<io::Result<()>>>; 2],
    log: Option<TickLog>,
    ear: Ear,
    wall: WallClock,
    /// Where the next line begins.
    from_ns: u64,
    /// As of the last line.
    told: Figures,
    /// Empty; what the loop has counted is taken by a swap.
    spare: Box<TickTally>,
}

impl Control {
    /// Line by line, until the end is told or something fails.
    fn serve(&mut self) -> Result<(), ServeError> {
        let every_ns = self.shared.options.tick_log_every.as_nanos() as u64;
        let mut next_ns = if self.log.is_some() { self.from_ns + every_ns } else { u64::MAX };
        loop {
            if self.ear.hears_the_end(next_ns.saturating_sub(clock::now_ns()).min(REST_NS)) {
                return Ok(());
            }
            let now_ns = clock::now_ns();
            if now_ns >= next_ns {
                self.write()?;
                // After a long stall the lines in between are one.
                next_ns += ((now_ns - next_ns) / every_ns + 1) * every_ns;
            }
            for thread in [LOOP, NETWORK] {
                if self.threads[thread].as_ref().is_some_and(JoinHandle::is_finished) {
                    return self.join(thread).and(Err(ServeError::ThreadLost { thread }));
                }
            }
        }
    }

    /// Writes what was counted since the last line.
    fn write(&mut self) -> Result<(), ServeError> {
        let shared = &self.shared;
        let to_ns = clock::now_ns();
        let (now, ticks) = {
            let mut looped = shared.looped();
            let Looped { ticks, answers, dropped, frames } = &mut *looped;
            std::mem::swap(ticks, &mut self.spare);
            let now = Figures {
                requests: shared.requests.load(Ordering::Relaxed),
                refused: shared.refused.load(Ordering::Relaxed),
                answers: *answers,
                dropped: *dropped,
                frames_due: frames.due,
                frames: frames.drawn,
                frames_skipped: frames.skipped,
            };
            (now, &mut self.spare)
        };
        let told = std::mem::replace(&mut self.told, now);
        let second = Second {
            from_ms: self.wall.epoch_ms(self.from_ns),
            to_ms: self.wall.epoch_ms(to_ns),
            tick_rate: shared.options.tick_rate,
        };
        let figures = [
            ("games", 1),
            ("waiting", shared.admission.inside() as u64),
            ("sockets", shared.sockets.load(Ordering::Relaxed) as u64),
            ("requests", now.requests - told.requests),
            ("answers", now.answers - told.answers),
            ("refused", now.refused - told.refused),
            ("dropped", now.dropped - told.dropped),
            ("frames", now.frames - told.frames),
            ("frames_due", now.frames_due - told.frames_due),
            ("frames_skipped", now.frames_skipped - told.frames_skipped),
        ];
        self.from_ns = to_ns;
        let written = self.log.as_mut().map_or(Ok(()), |log| log.write(second, ticks, 0, &figures));
        ticks.clear();
        written
    }

    /// Answers what was admitted, ends the threads and writes the last line.
    fn end(&mut self) -> Result<(), ServeError> {
        self.shared.drain();
        let by_ns = clock::now_ns() + self.shared.options.drain.as_nanos() as u64;
        self.wait(LOOP, by_ns);
        self.shared.close();
        let by_ns = clock::now_ns() + END_NS;
        self.wait(LOOP, by_ns);
        self.wait(NETWORK, by_ns);
        let ended = self.join(LOOP).and(self.join(NETWORK));
        self.write().and(ended)
    }

    fn wait(&self, thread: usize, by_ns: u64) {
        while self.threads[thread].as_ref().is_some_and(|one| !one.is_finished()) && clock::now_ns() < by_ns {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What a thread that has ended has to say; one that has not is lost.
    fn join(&mut self, thread: usize) -> Result<(), ServeError> {
        let Some(one) = self.threads[thread].take() else { return Ok(()) };
        if !one.is_finished() {
            return Err(ServeError::ThreadLost { thread });
        }
        match one.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(source)) => Err(ServeError::System { call: "epoll", source }),
            Err(_) => Err(ServeError::ThreadLost { thread }),
        }
    }
}
