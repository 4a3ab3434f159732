//! Tracks the exit of a subject that is shut down under load.

use plan::SubjectStop;

/// How far the end of a subject has come.
pub(super) struct SubjectEnd {
    pub stop: SubjectStop,
    pub state: State,
    /// the watch has reported its end
    pub has_heard: bool,
}

/// Its state; instants are ns since the start of the trial.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// its hold goes on
    Runs,
    /// told at this instant, or a little later
    Due(u64),
    Told(u64),
    /// told and ended at these instants
    Ended(u64, u64),
    /// nothing more is waited for
    Over,
}

impl SubjectEnd {
    pub(super) fn new(stop: SubjectStop) -> Self {
        SubjectEnd { stop, state: State::Runs, has_heard: false }
    }
}
