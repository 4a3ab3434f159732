//! A trial's specification, what runs beside its workers, and its progress.

use anyhow::bail;
use engine::MonotonicClock;
use ladder::Criteria;
use measure::{Entry, TrialHead};
use plan::{HoldLength, Plan, Scheme, SubjectStop, Target, WorkerPlan};

use super::threads::ThreadOptions;

/// What a trial is asked to be.
pub struct TrialSpec<'a> {
    /// its row in the store
    pub head: TrialHead,
    /// what its workers were made from, for workers elsewhere: without the values of secrets
    pub plan: Plan,
    /// for which load they were made: in the unit of the plan's bots
    pub load: f64,
    /// one per worker
    pub workers: Vec<WorkerPlan>,
    /// as written
    pub target: &'a Target,
    /// the subject is a null server of ours that speaks as this scheme does: workers elsewhere have one of their own
    pub null: Option<Scheme>,
    /// the subject runs on this machine
    pub is_here: bool,
    /// how long it is held
    pub hold: HoldLength,
    /// between ramp and hold, ns
    pub settle_ns: u64,
    /// how its workers run, where they are threads of this process
    pub threads: ThreadOptions,
    /// what the hold is judged by: one that cannot be judged yet goes on; `None`: it ends as asked
    pub terms: Option<Criteria>,
    /// the subject is told to shut down under load
    pub stop: Option<SubjectStop>,
    /// a part of the load goes on after the hold
    pub recovery: Option<Recovery>,
}

/// The part of a load that goes on after an overload.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// in the unit of the trial's load
    pub load: f64,
    /// it ends so long after the hold, if the server has not recovered before, ns
    pub within_ns: u64,
}

/// What goes on besides the workers: the watch's entries, the user's Ctrl-C, the subject's end.
pub trait TrialEnv {
    /// The trial's clock starts; its zero is this instant. `load_pids`: processes of this machine that make the load besides us.
    fn begin(
        &mut self,
        clock: MonotonicClock,
        realtime_zero_ns: u64,
        load_pids: Vec<u32>,
    ) -> anyhow::Result<()>;
    /// Entries that came since the last call.
    fn entries(&mut self) -> Vec<Entry>;
    /// Why the trial must end now, if it must.
    fn ends(&mut self) -> Option<StopReason>;
    /// Asks the subject to end (SIGTERM), without waiting for it.
    fn tell_subject_to_end(&mut self) {}
    /// How the subject ended; `None` while it runs.
    fn subject_exit(&mut self) -> Option<watch::Exit> {
        None
    }
    /// Starts a subject that has ended again, where it listened before.
    fn start_subject_again(&mut self) -> anyhow::Result<()> {
        bail!("it was not started here")
    }
    /// Takes an entry to where it is kept.
    fn keep(&mut self, entry: Entry) -> anyhow::Result<()>;
    /// Shows the trial's progress to the user.
    fn show(&mut self, standing: &TrialStatus<'_>);
    /// The workers have ended; a last look at the subject.
    fn end(&mut self);
}

/// Why a trial ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Ctrl-C
    Interrupted,
    /// the subject's process ended; the watch says how
    SubjectExited,
}

/// The progress of a trial, for the progress line.
pub struct TrialStatus<'a> {
    /// what it was asked to be
    pub head: &'a TrialHead,
    /// `ramp`, `settle`, `hold`, `drain`
    pub phase: &'static str,
    /// ns since the start of the trial
    pub now_ns: u64,
    /// when the hold ends, ns, where that is known
    pub hold_until_ns: Option<u64>,
    /// how long the ramp is planned to take, ns
    pub ramp_ns: u64,
    /// connections open now
    pub open: u64,
    /// failed attempts so far
    pub failed: u64,
}
