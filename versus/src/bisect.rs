//! `stepladder bisect`: finds the commit of the user's repository that changed a figure, by duels along its history.
//!
//! Each comparison is a separate duel and stored as one; `ladder::bisect` chooses the next. A revision's server is
//! built and started in its own working tree, on a free loopback port.

mod options;
mod page;
mod revisions;

use anyhow::{Context as _, anyhow};
use climb::outputs::{Followers, check_writable};
use climb::preflight::Machine;
use climb::progress::Progress;
use climb::stored::no_store;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::signals::Interrupt;
use ladder::bisect::{self, Found, Look, Made, Next};
use ladder::duel::{DuelStop, Finding, Gate};
use store::Store;

use self::options::AskedOf;
pub use self::options::BisectArgs;
use self::page::{Ended, Step};
use self::revisions::{Tree, Trees};
use crate::duel::{self, DuelRun};

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
            // A server that does not start is this revision's fault; later failures are not.
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
