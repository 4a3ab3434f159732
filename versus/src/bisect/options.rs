//! The command line of `bisect`, and its validation before anything is built.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use climb::options::Settings;
use console::other_runs::Wait;
use ladder::FigureDoc;
use ladder::duel::{Gate, Side};
use plan::Flags;
use plan::layers::START;

use super::revisions::{Repository, Revision};
use crate::duel::{self, Asked, Decided, SidePlan};

/// Options of `bisect`.
#[derive(Debug, Args)]
#[command(
    override_usage = "stepladder bisect URL --good REV --bad REV --start 'COMMAND' [OPTIONS OF climb]",
    after_help = "URL and COMMAND name the port as {port}; each revision gets a free one. COMMAND and --build run in a working \
                  tree of the revision.\n\
                  Example: stepladder bisect 'http://127.0.0.1:{port}/' --good v1.4 --bad main --build 'npm ci' --start \
                  'node server.js --port {port}' --rate 200 --figure response.p99\n\
                  Exit: 0 found; 2 not found, or could not be measured; 3 wrong usage; 130 interrupted."
)]
pub struct BisectArgs {
    /// The server's address, with {port} in place of its port, e.g. ws://127.0.0.1:{port}/game
    #[arg(value_name = "URL")]
    url: String,
    /// A revision before the change
    #[arg(long, value_name = "REV", help_heading = "Bisect")]
    good: String,
    /// A revision with it
    #[arg(long, value_name = "REV", help_heading = "Bisect")]
    bad: String,
    /// What makes a revision ready to be started, run in its working tree
    #[arg(long, value_name = "COMMAND", help_heading = "Bisect")]
    pub(super) build: Option<String>,
    /// The figure that changed, e.g. response.p99 [default: the one that tells the two revisions apart most clearly]
    #[arg(long, value_name = "FIGURE", help_heading = "Bisect")]
    figure: Option<String>,
    /// A folder of the repository
    #[arg(long, value_name = "FOLDER", default_value = ".", help_heading = "Bisect")]
    repo: PathBuf,
    /// How long one comparison may take; one that stays undecided is repeated with twice the time
    #[arg(long, value_name = "TIME", default_value = "5m", help_heading = "Bisect")]
    budget: String,
    #[command(flatten)]
    settings: Settings<false>,
    #[command(flatten, next_help_heading = "Output")]
    pub(super) wait: Wait,
    /// Write the results here as JSON (- for standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) json: Option<PathBuf>,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db", help_heading = "Output")]
    pub(super) store: PathBuf,
}

/// What differs by less counts as equal when the first revision is compared with the last.
const DELTA: f64 = 0.02;
/// Disturbances widen intervals, and drop no block.
const DISTURBED_SHARE_MOST: f64 = 1.0;
const PORT: &str = "{port}";

/// What is asked, as far as it is known before anything is built.
pub struct AskedOf {
    pub repository: Repository,
    /// the oldest first
    pub history: Vec<Revision>,
    /// without the command
    common: Flags,
    start: String,
    pub budget_ns: u64,
    pub figure: Option<&'static FigureDoc>,
}

impl BisectArgs {
    /// Errors: the author's mistakes.
    pub fn read(&self) -> anyhow::Result<AskedOf> {
        let common = &self.settings.0;
        let start = common.text(&START).context(
            "--start is missing; give the command that starts a revision's server, e.g. --start 'node server.js --port {port}'",
        )?;
        for (what, text) in [("URL", self.url.as_str()), ("--start", start)] {
            if !text.contains(PORT) {
                bail!(
                    "{what} `{text}`: two revisions run side by side, each on a port of its own; write {PORT} in place of the port"
                );
            }
        }
        let figure = self.figure.as_deref().map(|name| {
            FigureDoc::named(name).with_context(|| {
                let nearest = FigureDoc::nearest(name).name;
                format!("--figure {name}: there is no such figure; did you mean {nearest}? stepladder climb --help lists all")
            })
        });
        let repository = Repository::of(&self.repo)?;
        let asked = AskedOf {
            history: repository.history(&self.good, &self.bad)?,
            repository,
            common: common.clone().without(&START),
            start: start.to_owned(),
            budget_ns: duel::budget_ns(&self.budget)?,
            figure: figure.transpose()?,
        };
        // Errors in the load are reported before anything is built.
        asked.decide(self, [Path::new("."); 2], None, 1)?;
        Ok(asked)
    }
}

impl AskedOf {
    /// The duel of two revisions, in these trees, with `times` the time of one comparison.
    pub fn decide(
        &self,
        args: &BisectArgs,
        trees: [&Path; 2],
        gate: Option<&Gate>,
        times: u64,
    ) -> anyhow::Result<Decided> {
        let seed = fastrand::u64(..);
        let side = |side: Side, tree: &Path| -> anyhow::Result<SidePlan> {
            let port = free_port()?.to_string();
            let folder = quoted(&tree.to_string_lossy())?;
            let command = format!("cd {folder} && {}", self.start.replace(PORT, &port));
            let text = format!("{} --start {}", quoted(&args.url.replace(PORT, &port))?, quoted(&command)?);
            SidePlan::read(side, &text, &self.common, false, seed)
        };
        let (a, b) = (side(Side::A, trees[0])?, side(Side::B, trees[1])?);
        if a.plan.ladder.rungs.len() != 1 {
            bail!("revisions are compared under one load; name one, as in --rungs 500 or --rate 200");
        }
        let named = gate.map(Gate::figure).or(self.figure);
        let asked = Asked {
            gates: gate.cloned().into_iter().collect(),
            figures: named.map(|figure| vec![figure.name.to_owned()]),
            budget_ns: self.budget_ns * times,
            delta: DELTA,
            disturbed_share_most: DISTURBED_SHARE_MOST,
        };
        Decided::of(a, b, asked)
    }
}

fn quoted(text: &str) -> anyhow::Result<String> {
    Ok(shlex::try_quote(text)
        .map_err(|_| anyhow!("`{}`: no command can hold this", text.escape_debug()))?
        .into_owned())
}

/// A port that was free a moment ago.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?.port())
}
