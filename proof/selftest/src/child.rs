//! The processes of a case: the climb, and what takes the CPU beside it.
//!
//! Each dies with this process, whatever ends it (a death signal), and the climb's own server with the climb.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use console::signals::Interrupt;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

use crate::cases::{Case, HOG_NAME, Machine};
use crate::outcome::Came;

/// How often the climb is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// A climb that takes longer than its hold and this hangs: 4 s until its hold, which may take twice as long, a drain of 12 s, 3 s
/// for the log.
const PATIENCE: Duration = Duration::from_secs(82);
/// A climb that is asked to end takes a drain and the end of its server.
const END_WITHIN: Duration = Duration::from_secs(20);
/// A throttled generator is stopped and goes on for so long, in turn.
const STOPPED: Duration = Duration::from_millis(60);
/// What signs updates, of the server and of its clients, which take it from the environment.
const KEY: &str = "73656c6674657374206f66205374657073";
const KEY_VARIABLE: &str = "STEPLADDER_SELFTEST_KEY";
/// Where this names a file, a climb appends its results to it: GitHub's runner shows them.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";
/// In the lines that a climb prints while it goes on.
const IN_HOLD: &str = " · hold · ";
const IN_DRAIN: &str = " · drain · ";

/// A child that is ended when it is dropped.
struct KillOnDrop(Child);

impl KillOnDrop {
    /// Starts a command in a process group of its own, so that a Ctrl-C on the terminal reaches this process only.
    fn start(mut command: Command, what: &str) -> anyhow::Result<KillOnDrop> {
        let parent = getpid();
        command.stdin(Stdio::null()).process_group(0);
        // SAFETY: only system calls between fork and exec, no allocation and no lock.
        unsafe {
            command.pre_exec(move || {
                // A stopped process takes no other signal.
                set_parent_process_death_signal(Some(Signal::KILL))?;
                if getppid() != Some(parent) {
                    // The parent ended in between, so the signal will never come.
                    return Err(io::ErrorKind::Interrupted.into());
                }
                // This process blocks what ends it (`signals`), and a child would inherit that.
                let mut none = std::mem::zeroed();
                libc::sigemptyset(&mut none);
                libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
                Ok(())
            });
        }
        Ok(KillOnDrop(command.spawn().with_context(|| format!("{what} cannot be started"))?))
    }

    fn signal(&self, signal: Signal) {
        // It is not reaped before `Child::wait`, so the number is still its own; one that has ended needs no signal.
        if let Some(pid) = Pid::from_raw(self.0.id() as i32) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Whether it ended by itself within this time.
    fn has_ended_within(&mut self, time: Duration) -> bool {
        let begin = Instant::now();
        loop {
            match self.0.try_wait() {
                Ok(Some(_)) | Err(_) => return true,
                Ok(None) if begin.elapsed() >= time => return false,
                Ok(None) => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.0.try_wait() {
            return;
        }
        self.signal(Signal::CONT);
        self.signal(Signal::TERM);
        if !self.has_ended_within(END_WITHIN) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Runs a case's climb and says how it ended; `None` when the user interrupted it.
/// Errors: a process cannot be started, or its output cannot be written.
pub fn climb(case: &Case, folder: &Path, interrupt: &Interrupt) -> anyhow::Result<Option<Came>> {
    let results = folder.join("results.json");
    let printed = folder.join("printed");
    let _ = fs::remove_file(&results);
    // What an earlier case has kept says nothing of this one.
    let _ = fs::remove_dir_all(folder.join("data"));
    fs::write(folder.join("keys"), format!("selftest {KEY}\n")).context("no file for the server's keys")?;
    let mut command = own_command()?;
    command.arg("climb").args(case.climb_arguments(&results, &folder.join("selftest.db")));
    let file = File::create(&printed).context("no file for the output of a climb")?;
    // The lines of progress stand on standard error and say which phase it is in; its temporary tick log goes with it.
    command
        .stdout(Stdio::null())
        .stderr(file)
        .env("TMPDIR", folder)
        .env("NO_COLOR", "1")
        .env(KEY_VARIABLE, KEY);
    let hog = (case.machine == Machine::Hog).then(start_hog).transpose()?;
    let mut climb = KillOnDrop::start(command, "a climb")?;
    let patience = PATIENCE + Duration::from_secs(case.hold_s());
    let begin = Instant::now();
    let code = loop {
        if let Some(status) = climb.0.try_wait().context("a climb cannot be waited for")? {
            break status.code();
        }
        if interrupt.is_asked() {
            return Ok(None);
        }
        if begin.elapsed() > patience {
            drop(climb);
            let reason = format!("the climb had not ended after {} s", patience.as_secs());
            return Ok(Some(Came { reason, ..Came::default() }));
        }
        if case.machine == Machine::Throttled && is_in_hold(&printed) {
            climb.signal(Signal::STOP);
            std::thread::sleep(STOPPED);
            climb.signal(Signal::CONT);
            std::thread::sleep(STOPPED);
        } else {
            std::thread::sleep(LOOK);
        }
    };
    drop(hog);
    let results = fs::read_to_string(&results).ok().and_then(|text| serde_json::from_str(&text).ok());
    Ok(Some(match results {
        Some(run) => Came::read(&run, code),
        None => Came { reason: last_line(&printed), code, ..Came::default() },
    }))
}

fn is_in_hold(printed: &Path) -> bool {
    let text = fs::read_to_string(printed).unwrap_or_default();
    text.contains(IN_HOLD) && !text.contains(IN_DRAIN)
}

fn last_line(printed: &PathBuf) -> String {
    let text = fs::read_to_string(printed).unwrap_or_default();
    text.lines().rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

fn own_command() -> anyhow::Result<Command> {
    let own = std::env::current_exe().context("the path of this program is not known")?;
    let mut command = Command::new(own);
    // A planted fault is no result of the job that runs the selftest.
    command.env_remove(STEP_SUMMARY);
    Ok(command)
}

fn start_hog() -> anyhow::Result<KillOnDrop> {
    let mut command = own_command()?;
    command.args(["selftest", "--hog"]).stdout(Stdio::null()).stderr(Stdio::null());
    KillOnDrop::start(command, "the program beside the climb")
}

/// Uses one core until a signal ends this process: what `selftest` starts beside a climb.
pub fn hog() -> ! {
    let name = std::ffi::CString::new(HOG_NAME).unwrap_or_default();
    // SAFETY: the name is a string of ours that lives through the call, which copies it.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    loop {
        std::hint::spin_loop();
    }
}
