//! The terminal itself: entered, drawn on, asked for keys, and left as it was.
//!
//! One thread draws and reads keys, at nice 5; nothing that measures waits for it. Signals stay signals: echo and the waiting
//! for whole lines are off, and of the keys of the terminal Ctrl-S, and Ctrl-Z and Ctrl-\, which would leave the view standing.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use console::say;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};

use crate::frame::{Look, draw};
use crate::state::State;

/// Between two frames without a key: figures come once a second.
const FRAME: Duration = Duration::from_millis(500);
/// Between two looks whether the view is to end.
const LOOK_NS: u64 = 100_000_000;
/// The next loads are held so many times as long at most.
const TIMES_MOST: u32 = 10;
/// Another buffer, emptied where there is none, without a cursor; and back. `Terminal::clear` would ask the terminal where its cursor
/// is, and wait for the answer among the keys.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// What the user asked for with keys.
#[derive(Debug, Default)]
pub struct Control {
    pauses: AtomicBool,
    /// on top of the planned hold
    more_holds: AtomicU32,
    /// what keys did to the run, until it is taken
    pressed: Mutex<Vec<String>>,
}

impl Control {
    /// Whether the next load waits.
    pub fn pauses(&self) -> bool {
        self.pauses.load(Relaxed)
    }

    /// Loads are held so many times as long as planned, at least 1.
    pub fn times_as_long(&self) -> u32 {
        1 + self.more_holds.load(Relaxed)
    }

    /// What keys did to the run since this was last asked.
    pub fn take_pressed(&self) -> Vec<String> {
        std::mem::take(&mut *self.pressed())
    }

    fn pressed(&self) -> MutexGuard<'_, Vec<String>> {
        self.pressed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause_or_go_on(&self) {
        let was_paused = self.pauses.fetch_xor(true, Relaxed);
        let does = if was_paused { "the climb goes on" } else { "the climb pauses after this load" };
        self.pressed().push(format!("p pressed: {does}"));
    }

    fn hold_longer(&self) {
        let more = |more: u32| (more + 1 < TIMES_MOST).then_some(more + 1);
        if self.more_holds.fetch_update(Relaxed, Relaxed, more).is_ok() {
            let times = self.times_as_long();
            self.pressed().push(format!("+ pressed: later loads are held {times} times as long"));
        }
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    control: Control,
    is_over: AtomicBool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A view on the terminal; dropped, the terminal is as it was.
#[derive(Debug)]
pub struct Screen {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Whether a view can be shown: all three streams are a terminal that obeys and has a size, and it is ours.
    pub fn is_possible() -> bool {
        let stdin = io::stdin();
        let obeys = std::env::var("TERM").is_ok_and(|name| !name.is_empty() && name != "dumb");
        obeys
            && stdin.is_terminal()
            && io::stdout().is_terminal()
            && io::stderr().is_terminal()
            && tcgetwinsize(io::stdout()).is_ok_and(|size| size.ws_col > 0 && size.ws_row > 0)
            // A job in the background that changes its terminal is stopped.
            && tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp())
    }

    /// Shows the state. Errors: the terminal refuses.
    pub fn open(state: State) -> io::Result<Screen> {
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            control: Control::default(),
            is_over: AtomicBool::new(false),
        });
        enter()?;
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("view".to_owned()).spawn(move || {
            yield_to_others();
            // A terminal that is gone takes the view with it, and the climb goes on.
            let _ = show(&of_thread);
        });
        match thread {
            Ok(thread) => Ok(Screen { shared, thread: Some(thread) }),
            Err(error) => {
                say::uncovered();
                Err(error)
            }
        }
    }

    /// Whether it still covers the terminal: a panic takes it away.
    pub fn is_shown(&self) -> bool {
        is_covered()
    }

    /// Changes what is shown.
    pub fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state());
    }

    /// What the user asked for.
    pub fn control(&self) -> &Control {
        &self.shared.control
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends within a look; a panic of it was told by the hook.
            let _ = thread.join();
        }
        say::uncovered();
    }
}

/// The terminal as it was, while a view covers it.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

fn before() -> MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn enter() -> io::Result<()> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            say::uncovered();
            usual(panic);
        }));
    });
    let stdin = io::stdin();
    let found = tcgetattr(&stdin)?;
    let mut quiet = found.clone();
    quiet.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    // Ctrl-S would stop the drawing, and with it the end of the run.
    quiet.input_modes.remove(InputModes::IXON);
    for code in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
        quiet.special_codes[code] = 0;
    }
    *before() = Some(found);
    say::covered(leave);
    let entered = tcsetattr(&stdin, OptionalActions::Now, &quiet).map_err(io::Error::from);
    let entered = entered.and_then(|()| written(ENTER));
    entered.inspect_err(|_| say::uncovered())
}

/// Puts the terminal back; called once for each `enter`, from any thread.
fn leave() {
    let Some(found) = before().take() else { return };
    let _ = written(LEAVE);
    // What was typed too often is no input of the shell.
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &found);
}

/// Past the lock of standard output, which a thread that panics may hold.
fn written(codes: &[u8]) -> io::Result<()> {
    rustix::io::write(io::stdout(), codes).map(drop).map_err(io::Error::from)
}

fn is_covered() -> bool {
    before().is_some()
}

/// The priority of threads that only show.
fn yield_to_others() {
    // SAFETY: a plain call; 0 is this thread.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 5) };
}

/// A terminal that the calling thread draws on and reads keys from; restored when it is dropped.
pub(crate) struct Covered {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
    has_keys: bool,
}

impl Covered {
    /// Errors: the terminal refuses.
    pub(crate) fn enter() -> io::Result<Covered> {
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()));
        let terminal = terminal.inspect_err(|_| say::uncovered())?;
        Ok(Covered { terminal, has_keys: true })
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// The keys of the next 100 ms.
    pub(crate) fn typed(&mut self) -> Vec<u8> {
        typed(&mut self.has_keys)
    }

    /// Whether standard input has ended, or a panic has closed the view.
    pub(crate) fn is_gone(&self) -> bool {
        !self.has_keys || !is_covered()
    }
}

impl Drop for Covered {
    fn drop(&mut self) {
        say::uncovered();
    }
}

/// Draws and reads keys until the view is over, or was taken away.
fn show(shared: &Shared) -> io::Result<()> {
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    let mut look = Look::of_user();
    let (mut drawn, mut has_keys): (Option<Instant>, _) = (None, true);
    while !shared.is_over.load(Relaxed) && is_covered() {
        if drawn.is_none_or(|at| at.elapsed() >= FRAME) {
            look.pauses = shared.control.pauses();
            look.times_as_long = shared.control.times_as_long();
            // The state is free again before anything is written, which may take as long as the terminal likes.
            terminal.draw(|frame| draw(frame, &shared.state(), look))?;
            drawn = Some(Instant::now());
        }
        for key in typed(&mut has_keys) {
            drawn = None;
            obey(key, &mut look, &shared.control);
        }
    }
    Ok(())
}

/// The keys of the next 100 ms; arrows up and down are `k` and `j`, and no other sequence is a key. `has_keys`: false once there are
/// none any more.
fn typed(has_keys: &mut bool) -> Vec<u8> {
    if !*has_keys {
        std::thread::sleep(Duration::from_nanos(LOOK_NS));
        return Vec::new();
    }
    let stdin = io::stdin();
    let wait = Timespec { tv_sec: 0, tv_nsec: LOOK_NS as i64 };
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    if poll(&mut ready, Some(&wait)).unwrap_or(0) == 0 {
        return Vec::new();
    }
    let mut bytes = [0; 64];
    match rustix::io::read(&stdin, &mut bytes) {
        Ok(count) if count > 0 => keys_of(&bytes[..count]),
        Ok(_) | Err(_) => {
            *has_keys = false;
            Vec::new()
        }
    }
}

fn keys_of(bytes: &[u8]) -> Vec<u8> {
    let (mut keys, mut left) = (Vec::new(), bytes.iter().copied());
    while let Some(byte) = left.next() {
        if byte != 0x1b {
            keys.push(byte);
            continue;
        }
        // `[` or `O`, parameters, and the letter that ends it.
        let last = left.by_ref().skip(1).find(|byte| (0x40..=0x7e).contains(byte));
        keys.extend(match last {
            Some(b'A') => Some(b'k'),
            Some(b'B') => Some(b'j'),
            _ => None,
        });
    }
    keys
}

fn obey(key: u8, look: &mut Look, control: &Control) {
    match key {
        b'p' => control.pause_or_go_on(),
        b'+' => control.hold_longer(),
        b'd' => look.has_details = !look.has_details,
        b'?' | b'h' => look.has_help = !look.has_help,
        // The signal of Ctrl-C, so that both end a run in the same way.
        b'q' => _ = kill_process(getpid(), Signal::INT),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_what_they_say_and_no_other_key_does() {
        let (mut look, control) = (Look::default(), Control::default());
        let type_all = |keys: &[u8], look: &mut Look| keys.iter().for_each(|key| obey(*key, look, &control));
        type_all(b"d?xyz\t\r0", &mut look);
        assert!(look.has_details && look.has_help && !control.pauses() && control.times_as_long() == 1);
        type_all(b"d?p+", &mut look);
        assert_eq!((look, control.pauses(), control.times_as_long()), (Look::default(), true, 2));
        let told = [
            "p pressed: the climb pauses after this load",
            "+ pressed: later loads are held 2 times as long",
        ];
        assert_eq!(control.take_pressed(), told, "what changes the run is told once");
        assert_eq!(control.take_pressed(), [""; 0]);
        type_all(b"p++++++++++++++", &mut look);
        assert_eq!((control.pauses(), control.times_as_long()), (false, TIMES_MOST));
    }

    #[test]
    fn arrows_are_keys_and_other_sequences_are_not() {
        for (bytes, keys) in [
            (&b"jq"[..], &b"jq"[..]),
            (b"\x1b[A\x1b[A\x1bOB", b"kkj"),
            (b"\x1b", b""),
            (b"\x1b[15~d\x1b[1;5Cd", b"dd"),
            (b"\r\x1b[Bq", b"\rjq"),
        ] {
            assert_eq!(keys_of(bytes), keys, "{bytes:?}");
        }
    }
}
