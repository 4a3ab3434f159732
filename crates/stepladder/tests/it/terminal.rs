//! A pseudo-terminal for the program: what it prints there, and what is typed.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd as _, FromRawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::place::Place;

/// What stood on the terminal, and how the program ended.
#[derive(Debug)]
pub struct Shown {
    pub code: Option<i32>,
    pub text: String,
    /// the terminal is set as it was before
    pub is_as_before: bool,
}

/// Both ends of a new pseudo-terminal: ours, and the program's.
fn open(size: Option<(u16, u16)>) -> (File, File) {
    let (mut ours, mut theirs) = (0, 0);
    let size = size.map(|(ws_col, ws_row)| libc::winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 });
    let size = size.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let none = std::ptr::null_mut();
    // SAFETY: both numbers are ours to be written, the size lives through the call, and the rest may be null.
    let status = unsafe { libc::openpty(&mut ours, &mut theirs, none, std::ptr::null(), size) };
    assert_eq!(status, 0, "a pseudo-terminal");
    // SAFETY: the call has just opened both for us.
    unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) }
}

/// How a terminal treats what is typed.
fn modes(terminal: &File) -> (libc::tcflag_t, libc::tcflag_t, [libc::cc_t; libc::NCCS]) {
    // SAFETY: the descriptor is open, and the value is filled by the call.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &mut modes), 0, "a terminal");
        (modes.c_lflag, modes.c_iflag, modes.c_cc)
    }
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
    run_on(None, place, words, typed, variables, longest)
}

/// The same on a terminal of so many columns and lines, which is the program's own; without a size it shows no view.
pub fn run_on(
    size: Option<(u16, u16)>,
    place: &Place,
    words: &[&str],
    typed: &str,
    variables: &[(&str, &str)],
    longest: Duration,
) -> Shown {
    let (mut ours, theirs) = open(size);
    let before = modes(&ours);
    let mut command = place.command(words);
    let again = || Stdio::from(theirs.try_clone().expect("a further descriptor"));
    command.stdin(again()).stdout(again()).stderr(again()).env("TERM", "xterm");
    command.envs(variables.iter().copied());
    if size.is_some() {
        // SAFETY: both calls are allowed between fork and exec, and the first stream is the terminal.
        unsafe {
            command.pre_exec(|| match libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 {
                true => Ok(()),
                false => Err(std::io::Error::last_os_error()),
            })
        };
    }
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
    let is_as_before = modes(&ours) == before;
    Shown { code, text: String::from_utf8_lossy(&text).into_owned(), is_as_before }
}
