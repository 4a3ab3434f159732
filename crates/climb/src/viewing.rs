//! Ways to look at a run: the viewer while it goes on, and the report as one file.
//!
//! The viewer runs in the same process, on threads of its own. On a terminal, the desktop's browser opens the run, and
//! the page stays up until Ctrl-C. If standard output is a file or a pipe, nothing is opened and the viewer ends with
//! the run, so that scripts terminate. The caller passes the `Judge` that interprets a stored plan.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::say;
use console::signals::Interrupt;
use store::{RunId, Store};
use viewer::{Judge, ViewError, Viewer};

use crate::outputs::{check_writable, write_whole};
use crate::stored::no_store;

/// The room of the page that shows the run that goes on.
const LIVE: &str = "#/live";

/// What accompanies a run and remains of it: the viewer and the report.
pub struct Viewing {
    judge: Arc<dyn Judge>,
    viewer: Option<Viewer>,
    report: Option<Report>,
}

impl Viewing {
    /// Starts what the command line asks for. Call it once the plan is final and before anything is measured.
    pub fn begin(
        store: &Path,
        view: bool,
        report: Option<&Path>,
        judge: Arc<dyn Judge>,
    ) -> Result<Self, Failure> {
        let report = report.map(Report::prepare).transpose()?;
        let any = SocketAddr::from(([127, 0, 0, 1], viewer::FIRST_PORT));
        let viewer = view.then(|| start(store, any, Vec::new(), judge.clone())).transpose()?;
        if let Some(viewer) = &viewer {
            // On stderr, because standard output may carry the JSON.
            say::err_line!("watch it: {}{LIVE}", viewer.url());
            // Without a desktop, or without xdg-open, the address above is enough.
            if io::stdout().is_terminal() && has_desktop(|name| std::env::var_os(name)) {
                let _ = open(viewer, LIVE);
            }
        }
        Ok(Viewing { judge, viewer, report })
    }

    /// Writes the report, and keeps the viewer up while someone may be looking.
    pub fn end(self, store: &Path, run: &RunId, interrupt: &Interrupt) -> Result<(), Failure> {
        if let Some(report) = self.report {
            report.write(store, run, &*self.judge)?;
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

/// Starts the viewer on a store and tick logs. Errors: it may not, or cannot, listen there.
pub fn start(
    store: &Path,
    listen: SocketAddr,
    ticks: Vec<PathBuf>,
    judge: Arc<dyn Judge>,
) -> Result<Viewer, Failure> {
    let options = viewer::Options { store: store.to_owned(), listen, ticks };
    let viewer = viewer::serve(&options, judge).map_err(|error| {
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
///
/// Errors: there is no xdg-open.
pub fn open(viewer: &Viewer, room: &str) -> anyhow::Result<()> {
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

/// Waits until the user wants it to end.
pub fn wait(interrupt: &Interrupt) {
    while !interrupt.is_asked() {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A file that a report will be written to.
pub struct Report {
    path: PathBuf,
}

impl Report {
    /// A report that cannot be written is known before the climb, not after.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        if !viewer::page_is_built() {
            return Err(not_measured(ViewError::NoPage));
        }
        check_writable("report", Some(path)).map_err(wrong_usage)?;
        Ok(Report { path: path.to_owned() })
    }

    /// Writes the report of a stored run.
    pub fn write(self, store: &Path, run: &RunId, judge: &dyn Judge) -> Result<(), Failure> {
        let store = Store::open_to_read(store).map_err(no_store)?;
        let html = viewer::report(&store, run, judge).map_err(not_measured)?;
        write_whole(&self.path, |out| Ok(out.write_all(html.as_bytes())?))
            .with_context(|| format!("report {}: cannot be written", self.path.display()))
            .map_err(not_measured)
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
