//! What a request has to go through: the planted limit.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use servers_shared::clock::thread_cpu_ns;
use servers_shared::fault::{Fault, Kind};
use servers_shared::shutdown::AllSignalsBlocked;

/// CPU of a request that may run on any core: also what a quota is used up by.
const CPU_NS: u64 = 2_000_000;
/// CPU of a request that one thread carries out.
const ONE_THREAD_NS: u64 = 1_000_000;
/// How long the lock is held.
const LOCKED: Duration = Duration::from_millis(5);
/// A pause comes after so long, if there was so much to do since, and takes so long.
const PAUSE_EVERY: Duration = Duration::from_secs(2);
const PAUSE_AFTER_REQUESTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(300);
/// How long a request writes, and how much at once. By time: disks differ a hundredfold.
const ON_DISK: Duration = Duration::from_millis(10);
static WRITTEN: [u8; 128 * 1024] = [0; 128 * 1024];

/// The work of a request.
#[derive(Clone)]
pub(super) enum Limit {
    /// none
    Nothing,
    /// CPU of the connection's own thread
    Cpu,
    /// CPU of one thread for all; each request comes with where to say that it is done
    OneThread(Sender<Sender<()>>),
    /// something that one request has at a time, and waits with
    Lock(Arc<Mutex<()>>),
    /// nothing is answered now and then
    Pause(Arc<Pausing>),
    /// a file that one request writes at a time
    Disk(Arc<Mutex<File>>),
}

/// Readers are requests, the writer is the pause.
#[derive(Default)]
pub(super) struct Pausing {
    gate: RwLock<()>,
    since_pause: AtomicUsize,
}

impl Limit {
    /// The first of these that happens to requests. Errors: no thread, no file for it.
    pub(super) fn planted(faults: &[Fault]) -> io::Result<Limit> {
        for fault in faults {
            return Ok(match fault.kind() {
                Kind::CpuBound | Kind::Throttled => Limit::Cpu,
                Kind::SingleThread => {
                    let (sender, jobs) = channel();
                    spawn("worker", move || carry_out(&jobs))?;
                    Limit::OneThread(sender)
                }
                Kind::Lock => Limit::Lock(Arc::default()),
                Kind::GcLikePause => {
                    let pausing = Arc::new(Pausing::default());
                    let seen = Arc::downgrade(&pausing);
                    spawn("collector", move || pause_now_and_then(&seen))?;
                    Limit::Pause(pausing)
                }
                Kind::SlowDisk => Limit::Disk(Arc::new(Mutex::new(tempfile::tempfile()?))),
                _ => continue,
            });
        }
        Ok(Limit::Nothing)
    }

    /// What a request does before it is answered.
    pub(super) fn work(&self) {
        match self {
            Limit::Nothing => {}
            Limit::Cpu => burn(CPU_NS),
            Limit::OneThread(jobs) => {
                let (done, is_done) = channel();
                // The worker lives as long as anyone can ask it.
                let _ = jobs.send(done);
                let _ = is_done.recv();
            }
            Limit::Lock(lock) => {
                let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                std::thread::sleep(LOCKED);
            }
            Limit::Pause(pausing) => {
                pausing.since_pause.fetch_add(1, Ordering::Relaxed);
                drop(pausing.gate.read().unwrap_or_else(PoisonError::into_inner));
            }
            Limit::Disk(file) => {
                let file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let begin = Instant::now();
                // A disk that is full or broken is no slower: what it says is not needed.
                while begin.elapsed() < ON_DISK && file.write_all_at(&WRITTEN, 0).is_ok() {
                    let _ = file.sync_data();
                }
            }
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let _blocked = AllSignalsBlocked::new();
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Ends with the last that could ask.
fn carry_out(jobs: &Receiver<Sender<()>>) {
    for done in jobs {
        burn(ONE_THREAD_NS);
        // Whoever asked may be gone.
        let _ = done.send(());
    }
}

/// Uses so much CPU time of this thread, however long that takes.
fn burn(cpu_ns: u64) {
    let until_ns = thread_cpu_ns() + cpu_ns;
    while thread_cpu_ns() < until_ns {
        std::hint::spin_loop();
    }
}

/// Ends with the last request that could wait.
fn pause_now_and_then(pausing: &Weak<Pausing>) {
    loop {
        std::thread::sleep(PAUSE_EVERY);
        let Some(pausing) = pausing.upgrade() else { return };
        if pausing.since_pause.swap(0, Ordering::Relaxed) >= PAUSE_AFTER_REQUESTS {
            let _stopped = pausing.gate.write().unwrap_or_else(PoisonError::into_inner);
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: usize = 4;
    const REQUESTS: u32 = 5;

    fn limit(fault: &str) -> Limit {
        Limit::planted(&[fault.parse().unwrap()]).unwrap()
    }

    /// How long some requests take that come from four threads at once.
    fn time_of(limit: &Limit) -> Duration {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            (0..THREADS).for_each(|_| {
                scope.spawn(|| (0..REQUESTS).for_each(|_| limit.work()));
            });
        });
        begin.elapsed()
    }

    #[test]
    fn what_one_request_has_at_a_time_the_others_wait_for() {
        let requests = THREADS as u32 * REQUESTS;
        for (fault, each) in
            [("lock", LOCKED), ("slow-disk", ON_DISK), ("single-thread", Duration::from_nanos(ONE_THREAD_NS))]
        {
            let took = time_of(&limit(fault));
            assert!(took >= each * requests, "{fault}: {took:?}");
        }
    }

    #[test]
    fn a_request_that_is_bound_by_cpu_uses_it_on_its_own_thread() {
        let begin_ns = thread_cpu_ns();
        limit("cpu-bound").work();
        assert!(thread_cpu_ns() - begin_ns >= CPU_NS);
    }

    #[test]
    fn a_pause_comes_only_after_there_was_something_to_do_and_lets_nobody_through() {
        let Limit::Pause(pausing) = limit("gc-like-pause") else { panic!("another limit") };
        let limit = Limit::Pause(pausing.clone());
        (0..PAUSE_AFTER_REQUESTS).for_each(|_| limit.work());
        let begin = Instant::now();
        while pausing.gate.try_read().is_ok() {
            assert!(begin.elapsed() < 10 * PAUSE_EVERY, "no pause came");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(pausing.since_pause.load(Ordering::Relaxed), 0);
        limit.work();
        // The first look may have come when a part of it was over.
        assert!(begin.elapsed() >= PAUSE, "{:?}", begin.elapsed());
    }

    #[test]
    fn nothing_planted_takes_no_time_and_faults_of_the_process_are_no_limit() {
        assert!(matches!(limit("leak:20MB"), Limit::Nothing));
        let both = ["leak:20MB", "lock"].map(|fault| fault.parse().unwrap());
        assert!(matches!(Limit::planted(&both).unwrap(), Limit::Lock(_)));
    }
}
