//! Process-wide faults: it stops, exits or leaks. One thread waits for their time.

use std::io;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::schedule::Faults;
use super::{Fault, Kind};
use crate::clock;
use crate::shutdown::AllSignalsBlocked;

/// The exit code of a planted exit: none that a server or a shell gives by itself.
const EXIT_CODE: i32 = 7;

/// How often it is looked whether a client has connected, and how finely memory is leaked.
const STEP: Duration = Duration::from_millis(5);

/// Ends its thread when dropped.
pub struct ProcessFaults {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProcessFaults {
    /// Starts the thread where there is a fault for it. The faults' time begins with the first connection.
    ///
    /// Errors: the thread cannot be started.
    pub fn start(faults: Option<&Arc<Faults>>) -> io::Result<Option<ProcessFaults>> {
        let Some(faults) = faults else { return Ok(None) };
        let of_process =
            |fault: &&Fault| matches!(fault.kind, Kind::Hang | Kind::Freeze(_) | Kind::Exit | Kind::Leak(_));
        let mut list: Vec<Fault> = faults.list().iter().filter(of_process).copied().collect();
        if list.is_empty() {
            return Ok(None);
        }
        list.sort_by_key(|fault| fault.at);
        let ended = Arc::new(AtomicBool::new(false));
        let (faults, heard) = (faults.clone(), ended.clone());
        let _blocked = AllSignalsBlocked::new();
        let builder = std::thread::Builder::new().name("faults".to_owned()).stack_size(256 * 1024);
        let thread = builder.spawn(move || {
            Waiting { faults, ended: heard, leaks: Vec::new(), wakers: Vec::new() }.live(&list)
        })?;
        Ok(Some(ProcessFaults { ended, thread: Some(thread) }))
    }
}

impl Drop for ProcessFaults {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does nothing that panics.
            let _ = thread.join();
        }
    }
}

struct Waiting {
    faults: Arc<Faults>,
    ended: Arc<AtomicBool>,
    leaks: Vec<Leak>,
    /// Children that are not reaped yet.
    wakers: Vec<Child>,
}

impl Waiting {
    fn live(mut self, list: &[Fault]) {
        let mut next = list.iter().peekable();
        while !self.ended.load(Ordering::Acquire) {
            if let Some(began_ns) = self.faults.began_ns() {
                let now_ns = clock::now_ns();
                let at_ns = |fault: &Fault| began_ns + fault.at.as_nanos() as u64;
                while let Some(fault) = next.next_if(|fault| at_ns(fault) <= now_ns) {
                    self.carry_out(fault.kind, at_ns(fault));
                }
                self.leaks.iter_mut().for_each(|leak| leak.go_on(now_ns));
            }
            self.wakers.retain_mut(|waker| matches!(waker.try_wait(), Ok(None)));
            std::thread::park_timeout(STEP);
        }
    }

    fn carry_out(&mut self, kind: Kind, at_ns: u64) {
        match kind {
            Kind::Hang => stop(),
            Kind::Freeze(length) => self.freeze(length),
            Kind::Exit => exit(),
            Kind::Leak(bytes_per_s) => self.leaks.push(Leak { bytes_per_s, since_ns: at_ns, leaked: 0 }),
            _ => {}
        }
    }

    /// Stops this process and lets a child wake it.
    fn freeze(&mut self, length: Duration) {
        match waker(length) {
            Ok(waker) => {
                self.wakers.push(waker);
                stop();
            }
            Err(error) => eprintln!("stepladder serve: planted fault: freeze: cannot start sh ({error})"),
        }
    }
}

/// Stops all threads of this process until SIGCONT comes.
fn stop() {
    // SAFETY: plain calls without pointers.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// A process that lets this one go on. It says so twice: on a busy machine the first time may come too early.
fn waker(length: Duration) -> io::Result<Child> {
    let wake = format!("kill -CONT {}", std::process::id());
    let script = format!("sleep {}; {wake}; sleep 0.1; {wake}", length.as_secs_f64());
    Command::new("sh").arg("-c").arg(script).spawn()
}

/// Ends the process as a crash would: at once, and with nothing written or told.
fn exit() {
    eprintln!("stepladder serve: planted fault: exit");
    // SAFETY: never returns; what other threads are doing is meant to be cut off.
    unsafe { libc::_exit(EXIT_CODE) };
}

/// Memory that is taken and touched, and never given back.
struct Leak {
    bytes_per_s: u64,
    since_ns: u64,
    leaked: u64,
}

impl Leak {
    fn due(&self, now_ns: u64) -> u64 {
        let due =
            u128::from(now_ns.saturating_sub(self.since_ns)) * u128::from(self.bytes_per_s) / 1_000_000_000;
        (due as u64).saturating_sub(self.leaked)
    }

    fn go_on(&mut self, now_ns: u64) {
        let bytes = self.due(now_ns);
        let mut memory = Vec::new();
        // If there is no more memory, the leak has done what it can.
        if memory.try_reserve_exact(bytes as usize).is_ok() {
            memory.resize(bytes as usize, 1u8);
            // Otherwise the compiler may elide memory that nothing reads.
            std::mem::forget(std::hint::black_box(memory));
        }
        self.leaked += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_takes_its_bytes_per_second_however_it_is_cut() {
        let mut leak = Leak { bytes_per_s: 3_000, since_ns: 5_000_000_000, leaked: 0 };
        assert_eq!(leak.due(1), 0);
        for now_ns in (5_000_000_000..=7_000_000_000).step_by(7_000_003) {
            leak.go_on(now_ns);
        }
        leak.go_on(7_000_000_000);
        assert_eq!(leak.leaked, 6_000);
    }
}
