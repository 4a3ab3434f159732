//! A pseudo-terminal for the program: what it prints there, and what is typed.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::place::Place;

/// What stood on the terminal, and how the program ended.
#[derive(Debug)]
pub struct Shown {
    pub code: Option<i32>,
    pub text: String,
}

/// Both ends of a new pseudo-terminal: ours, and the program's.
fn open() -> (File, File) {
    let (mut ours, mut theirs) = (0, 0);
    let no_size = std::ptr::null_mut();
    // SAFETY: both numbers are ours to be written, and the rest may be null.
    let status =
        unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null_mut(), no_size) };
    assert_eq!(status, 0, "a pseudo-terminal");
    // SAFETY: the call has just opened both for us.
    unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) }
}

/// No program that exits by itself takes this long, however busy the machine.
const LONGEST: Duration = Duration::from_secs(180);

/// Runs the program with all three streams on a terminal, where `typed` has been typed already.
pub fn run(place: &Place, words: &[&str], typed: &str, variables: &[(&str, &str)]) -> Shown {
    let shown = run_for(place, words, typed, variables, LONGEST);
    assert!(shown.code.is_some(), "{words:?} did not end: {shown:?}");
    shown
}

/// The same with a program that goes on until it is asked to end, which it is after so long.
pub fn run_for(
    place: &Place,
    words: &[&str],
    typed: &str,
    variables: &[(&str, &str)],
    longest: Duration,
) -> Shown {
    let (mut ours, theirs) = open();
    let mut command = place.command(words);
    let again = || Stdio::from(theirs.try_clone().expect("a further descriptor"));
    command.stdin(again()).stdout(again()).stderr(again()).env("TERM", "xterm");
    command.envs(variables.iter().copied());
    ours.write_all(typed.as_bytes()).expect("a terminal takes what is typed");
    let mut child = command.spawn().expect("the program starts");
    drop((command, theirs));
    let pid = child.id() as libc::pid_t;
    let (has_ended, end) = channel::<()>();
    let ender = std::thread::spawn(move || {
        if end.recv_timeout(longest).is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Timeout) {
            // SAFETY: a plain call; the process is not waited for before this thread ends, so the number is still its own.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
    });
    let mut text = Vec::new();
    // Reading a terminal whose other side is closed ends with an error.
    let _ = ours.read_to_end(&mut text);
    drop(has_ended);
    ender.join().expect("the thread that ends it");
    let code = child.wait().expect("its status").code();
    Shown { code, text: String::from_utf8_lossy(&text).into_owned() }
}
