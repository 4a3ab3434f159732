//! Ctrl-C: once ends the trial and saves the results so far, twice exits at once.
//!
//! Signals are blocked before any other thread starts, so none is ever delivered to a worker; a dedicated thread
//! receives them. The second one exits from there; the store is consistent at any moment.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;
use crate::say;

/// Tells whether the user wants it to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Blocks the signals and starts to take them. Call it from main, before any thread.
    pub fn take() -> io::Result<Self> {
        let interrupt = Interrupt::default();
        let signals = blocked()?;
        let asked = interrupt.asked.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            loop {
                let mut signal = 0;
                // SAFETY: both pointers are to values of ours that live through the call.
                let status = unsafe { libc::sigwait(&signals, &mut signal) };
                if status == 0 && asked.swap(true, Ordering::Relaxed) {
                    say::uncovered();
                    say::err_line!("\nended at once; what was committed is kept and readable");
                    std::process::exit(Exit::Interrupted as i32);
                }
            }
        })?;
        Ok(interrupt)
    }

    /// True once an interrupt was requested.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

fn blocked() -> io::Result<libc::sigset_t> {
    // SAFETY: the set is ours and initialised by sigemptyset before use.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&mut signals, signal);
        }
        match libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut()) {
            0 => Ok(signals),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}
