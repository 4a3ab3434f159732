//! `view`, and `--view` of `climb` and `bench`: the viewer, with the judge that reads plans.
//!
//! Beside a run it answers from the same process, on threads of its own. Where somebody sits before a terminal, the
//! desktop's browser opens on the run and the page stays up afterwards, until Ctrl-C; where standard output is a file
//! or a pipe nothing is opened and the viewer ends with the run, so that scripts do.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::say;
use console::signals::Interrupt;
use ladder::duel::DuelAnswers;
use ladder::{Climb, Objective};
use store::{RunId, RunState, Store, StoreError};
use viewer::{Judge, Unjudged, ViewError, Viewer};

use crate::cli::ViewArgs;
use crate::climb;
use crate::duel::{self, DuelRun};
use crate::judging::JudgedRun;
use crate::outputs;
use crate::report::Report;

/// The room of the page that shows the run that goes on.
const LIVE: &str = "#/live";

/// Judges stored runs by their plans. A rung is judged once, however often the page asks.
#[derive(Default)]
pub struct Replay {
    /// the run that was asked for last
    known: Mutex<Option<(RunId, JudgedRun)>>,
    /// the duel that was asked for last
    duel: Mutex<Option<(RunId, DuelRun)>>,
}

impl Judge for Replay {
    fn climb(&self, store: &Store, run: &RunId) -> Result<Option<Climb>, Unjudged> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let judged = match &mut *known {
            Some((id, judged)) if id == run => judged,
            other => &mut other.insert((run.clone(), JudgedRun::open(store, run)?)).1,
        };
        judged.read_on(store)?;
        let ended_early = match store.run(run)?.state {
            // The page says so itself, beside figures that grow.
            RunState::Recording => None,
            state => outputs::ended_early(&state),
        };
        Ok(judged.answers(ended_early.as_deref())?)
    }

    fn duel(&self, store: &Store, run: &RunId) -> Result<Option<(Climb, DuelAnswers)>, Unjudged> {
        let mut known = self.duel.lock().unwrap_or_else(PoisonError::into_inner);
        let duel = match &mut *known {
            Some((id, duel)) if id == run => duel,
            other => &mut other.insert((run.clone(), DuelRun::open(store, run)?)).1,
        };
        duel.read_on(store)?;
        Ok(duel::contract(duel)?)
    }

    fn objectives(&self, store: &Store, run: &RunId) -> Result<Vec<Objective>, Unjudged> {
        Ok(JudgedRun::open(store, run)?.plan().objectives.clone())
    }
}

/// `stepladder view`
pub fn view(args: &ViewArgs, interrupt: &Interrupt) -> Result<Exit, Failure> {
    match Store::open_to_read(&args.store) {
        // A climb may make it later, or is about to.
        Ok(_) | Err(StoreError::NoStore { .. }) => {}
        // A file that is no store is said at once, and not on a page.
        Err(error) => return Err(climb::no_store(error)),
    }
    for path in &args.files {
        std::fs::metadata(path)
            .with_context(|| format!("{}: this tick log cannot be read; check the path", path.display()))
            .map_err(wrong_usage)?;
    }
    let viewer = start(&args.store, args.listen, args.files.clone())?;
    say::out_line!("stored runs: {}\nCtrl-C ends the viewer", viewer.url());
    if args.open {
        open(&viewer, "").map_err(not_measured)?;
    }
    wait(interrupt);
    Ok(Exit::Met)
}

fn start(store: &Path, listen: SocketAddr, ticks: Vec<std::path::PathBuf>) -> Result<Viewer, Failure> {
    let options = viewer::Options { store: store.to_owned(), listen, ticks };
    let viewer = viewer::serve(&options, Arc::new(Replay::default())).map_err(|error| {
        let is_usage = matches!(error, ViewError::NotLoopback { .. } | ViewError::CannotListen { .. });
        (if is_usage { Exit::WrongUsage } else { Exit::NotMeasured }, error.into())
    })?;
    if listen.port() != 0 && viewer.address().port() != listen.port() {
        let (asked, got) = (listen.port(), viewer.address().port());
        say::err_line!("stepladder: port {asked} is taken; the viewer listens on {got}");
    }
    Ok(viewer)
}

/// Asks the desktop to open a room of the page. The command line of a browser is no secret, so its token is good once.
fn open(viewer: &Viewer, room: &str) -> anyhow::Result<()> {
    let url = viewer.url_once()?;
    let mut opener = Command::new("xdg-open");
    opener.arg(url + room).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.spawn().context("--open: xdg-open cannot be started; open the address above by hand")?;
    Ok(())
}

/// Whether a browser would have a screen to open on; a shell on another machine has none.
fn has_desktop(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    ["WAYLAND_DISPLAY", "DISPLAY"]
        .into_iter()
        .any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

fn wait(interrupt: &Interrupt) {
    while !interrupt.is_asked() {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What goes on beside a run and is left of it: the viewer and the report.
pub struct Beside {
    viewer: Option<Viewer>,
    report: Option<Report>,
}

impl Beside {
    /// Begins what the command line asks for. Call it once the plan stands and nothing is measured yet.
    pub fn begin(store: &Path, view: bool, report: Option<&Path>) -> Result<Self, Failure> {
        let report = report.map(Report::prepare).transpose()?;
        let any = SocketAddr::from(([127, 0, 0, 1], viewer::FIRST_PORT));
        let viewer = view.then(|| start(store, any, Vec::new())).transpose()?;
        if let Some(viewer) = &viewer {
            // Standard output may carry the JSON.
            say::err_line!("watch it: {}{LIVE}", viewer.url());
            // Without a desktop, or without xdg-open, the address above is all that is needed.
            if io::stdout().is_terminal() && has_desktop(|name| std::env::var_os(name)) {
                let _ = open(viewer, LIVE);
            }
        }
        Ok(Beside { viewer, report })
    }

    /// Writes the report, and keeps the viewer up while somebody may be looking.
    pub fn end(self, store: &Path, run: &RunId, interrupt: &Interrupt) -> Result<(), Failure> {
        if let Some(report) = self.report {
            report.write(store, run)?;
        }
        if let Some(viewer) = self.viewer
            && io::stdout().is_terminal()
            && !interrupt.is_asked()
        {
            say::err_line!("the page stays: {}\nCtrl-C ends the viewer", viewer.url());
            wait(interrupt);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_opened_only_where_there_is_a_screen() {
        let with = |name: &'static str, value: &'static str| {
            has_desktop(move |asked| (asked == name).then(|| OsString::from(value)))
        };
        assert!(with("DISPLAY", ":0"));
        assert!(with("WAYLAND_DISPLAY", "wayland-0"));
        assert!(!with("DISPLAY", ""), "an empty variable is how a screen is taken away");
        assert!(!with("TERM", "xterm"));
    }
}
