//! `stepladder bisect`: which commit of the user's repository changed a figure, by duels along its history.
//!
//! Each comparison is a duel of its own, stored as such; which comes next is `ladder::bisect`'s choice. A revision's server
//! is built and started in a working tree of its own, on a free port of the loopback.

mod page;
mod revisions;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use climb::options::Settings;
use climb::outputs::{Followers, check_writable};
use climb::preflight::Machine;
use climb::progress::Progress;
use climb::stored::no_store;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::other_runs::Wait;
use console::signals::Interrupt;
use ladder::FigureDoc;
use ladder::bisect::{self, Found, Look, Made, Next};
use ladder::duel::{DuelStop, Finding, Gate, Side};
use plan::Flags;
use plan::layers::START;
use store::Store;

use self::page::{Ended, Step};
use self::revisions::{Repository, Revision, Tree, Trees};
use crate::duel::{self, Asked, Decided, DuelRun, SidePlan};

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
    build: Option<String>,
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
    wait: Wait,
    /// Write the results here as JSON (- for standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db", help_heading = "Output")]
    store: PathBuf,
}

/// What differs by less counts as equal when the first revision is compared with the last.
const DELTA: f64 = 0.02;
/// Disturbances widen intervals, and drop no block.
const DISTURBED_SHARE_MOST: f64 = 1.0;
const PORT: &str = "{port}";

/// `stepladder bisect`
pub fn bisect(args: &BisectArgs, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let asked = args.read().map_err(wrong_usage)?;
    args.wait.enter(|| interrupt.is_asked())?;
    let machine = Machine::prepare().map_err(not_measured)?;
    check_writable("--json", args.json.as_deref()).map_err(wrong_usage)?;
    let store = Store::open_or_create(&args.store).map_err(no_store)?;
    asked.repository.give_back_left();
    let folder = Trees::new().context("no folder for the working trees").map_err(not_measured)?;
    let _last_will = asked.repository.give_back_when_killed(folder.path());
    let tree = |name: &str| {
        let path = folder.path().join(name);
        Tree::add(&asked.repository, path, &asked.history[0]).map_err(not_measured)
    };
    let mut bisecting = Bisecting {
        args,
        asked: &asked,
        machine: &machine,
        store: &store,
        interrupt,
        progress: Progress::new(),
        trees: [tree("a")?, tree("b")?],
        steps: Vec::new(),
    };
    let ended = bisecting.run()?;
    let Bisecting { steps, .. } = &bisecting;
    page::print(&asked, &ended, steps, args.json.as_deref()).map_err(not_measured)?;
    Ok(ended.exit())
}

/// What is asked, as far as it is known before anything is built.
struct AskedOf {
    repository: Repository,
    /// the oldest first
    history: Vec<Revision>,
    /// without the command
    common: Flags,
    start: String,
    budget_ns: u64,
    figure: Option<&'static FigureDoc>,
}

impl BisectArgs {
    /// Errors: the author's mistakes.
    fn read(&self) -> anyhow::Result<AskedOf> {
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
        // What is wrong with the load is said before anything is built.
        asked.decide(self, [Path::new("."); 2], None, 1)?;
        Ok(asked)
    }
}

impl AskedOf {
    /// The duel of two revisions, in these trees, with `times` the time of one comparison.
    fn decide(
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

/// What tells changed revisions from others.
#[derive(Clone, Debug)]
enum Effect {
    /// its figure is beyond this
    Figure(Gate),
    /// its process ends under load
    Ends,
}

/// A bisection under way.
struct Bisecting<'a> {
    args: &'a BisectArgs,
    asked: &'a AskedOf,
    machine: &'a Machine,
    store: &'a Store,
    interrupt: &'a Interrupt,
    progress: Progress,
    trees: [Tree<'a>; 2],
    steps: Vec<Step>,
}

/// What a duel of two revisions came to.
enum Fought {
    Ended(Box<DuelRun>),
    /// one of them cannot be built or started; why
    Untestable(String),
    /// the user ended it, maybe within a build
    Interrupted,
}

impl Bisecting<'_> {
    fn run(&mut self) -> Result<Ended, Failure> {
        let last = self.asked.history.len() - 1;
        let minutes = |comparisons: u64| (comparisons * self.asked.budget_ns).div_ceil(60_000_000_000);
        let comparisons = bisect::comparisons(self.asked.history.len());
        self.progress.say(&format!(
            "{last} revisions behind the first one: about {comparisons} comparisons of at most {} min each, {} min together, \
             and the builds",
            minutes(1),
            minutes(u64::from(comparisons)),
        ));
        let effect = match self.fight(0, last, None, 1)? {
            Fought::Untestable(why) => return Err(not_measured(anyhow!("--good or --bad: {why}"))),
            Fought::Interrupted => return Ok(Ended::Interrupted),
            Fought::Ended(run) => {
                let found = effect(&run);
                let look = if found.is_some() { Look::Changed } else { Look::Unchanged };
                self.note(0, last, look, &run, None);
                match found {
                    Some(effect) => effect,
                    None => return Ok(Ended::NoEffect),
                }
            }
        };
        let mut made = Vec::new();
        loop {
            let next = bisect::next(last + 1, &made);
            let (a, b, times) = match next {
                Next::Done(found) => return Ok(Ended::Found(found)),
                Next::Look { revision, is_repeated } => (0, revision, if is_repeated { 2 } else { 1 }),
                Next::Confirm { before, changed } => (before, changed, 1),
            };
            let Some(look) = self.look(a, b, &effect, times)? else { return Ok(Ended::Interrupted) };
            made.push(match next {
                Next::Look { revision, .. } => Made::Looked { revision, look },
                _ => Made::Confirmed(look),
            });
        }
    }

    /// `None`: interrupted.
    fn look(&mut self, a: usize, b: usize, effect: &Effect, times: u64) -> Result<Option<Look>, Failure> {
        let gate = match effect {
            Effect::Figure(gate) => Some(gate),
            Effect::Ends => None,
        };
        Ok(Some(match self.fight(a, b, gate, times)? {
            Fought::Interrupted => return Ok(None),
            Fought::Untestable(why) => {
                self.steps.push(Step::untestable(a, b, &why));
                self.say_last();
                Look::Untestable
            }
            Fought::Ended(run) => {
                let look = look_of(&run, effect);
                self.note(a, b, look, &run, gate);
                look
            }
        }))
    }

    /// Builds two revisions and lets them fight.
    fn fight(&mut self, a: usize, b: usize, gate: Option<&Gate>, times: u64) -> Result<Fought, Failure> {
        for (tree, at) in self.trees.iter_mut().zip([a, b]) {
            let revision = &self.asked.history[at];
            let built =
                tree.build(revision, self.args.build.as_deref(), self.interrupt).map_err(not_measured)?;
            if self.interrupt.is_asked() {
                return Ok(Fought::Interrupted);
            }
            if let Err(why) = built {
                return Ok(Fought::Untestable(format!("{}: {}", revision.short(), why.0)));
            }
        }
        let paths = [self.trees[0].path(), self.trees[1].path()];
        let mut decided = self.asked.decide(self.args, paths, gate, times).map_err(wrong_usage)?;
        let name = |at: usize| self.asked.history[at].short().to_owned();
        decided.a.plan.name = Some(format!("bisect-{}-{}", name(a), name(b)));
        if !self.steps.is_empty() {
            // They are the same each time.
            decided.remarks.clear();
        }
        duel::check(&decided, self.machine)?;
        let told = (&mut self.progress, &mut Followers::default());
        match duel::fight(&decided, self.machine, self.store, told, self.interrupt) {
            Ok(_) if self.interrupt.is_asked() => Ok(Fought::Interrupted),
            Ok(run) => Ok(Fought::Ended(Box::new(run))),
            // A server that does not come up is this revision's doing; what fails behind that is not.
            Err((_, error)) if error.is::<duel::NotStarted>() => Ok(Fought::Untestable(format!("{error:#}"))),
            Err(failure) => Err(failure),
        }
    }

    fn note(&mut self, a: usize, b: usize, look: Look, run: &DuelRun, gate: Option<&Gate>) {
        self.steps.push(Step::of(a, b, look, run, gate.map(Gate::figure).or(self.asked.figure)));
        self.say_last();
    }

    fn say_last(&self) {
        if let Some(step) = self.steps.last() {
            self.progress.say(&step.text(&self.asked.history));
        }
    }
}

/// What the first and the last revision differ by; `None`: by nothing that is known.
fn effect(run: &DuelRun) -> Option<Effect> {
    if run.stop() == Some(DuelStop::ExitedB) {
        return Some(Effect::Ends);
    }
    let standing = run.standing();
    let findings: Vec<Finding> = standing.loads.into_iter().flat_map(|load| load.findings).collect();
    bisect::gate(bisect::effect(&findings)?).map(Effect::Figure)
}

fn look_of(run: &DuelRun, effect: &Effect) -> Look {
    match (run.stop(), effect) {
        (Some(DuelStop::ExitedB), _) => Look::Changed,
        (Some(DuelStop::ExitedA | DuelStop::Interrupted) | None, _) => Look::Undecided,
        (Some(_), Effect::Ends) => Look::Unchanged,
        (Some(_), Effect::Figure(_)) => {
            let standing = run.standing();
            let gate = standing.loads.first().and_then(|load| load.gates.first());
            gate.map_or(Look::Undecided, |gate| Look::of(gate.state))
        }
    }
}

impl Ended {
    fn exit(&self) -> Exit {
        match self {
            Ended::Interrupted => Exit::Interrupted,
            Ended::Found(Found::Revision { .. } | Found::Between { .. }) => Exit::Met,
            Ended::Found(Found::NotConfirmed { .. }) | Ended::NoEffect => Exit::NotMeasured,
        }
    }
}
