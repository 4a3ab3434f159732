//! Mistakes in the shutdown of a subject under load.

use thiserror::Error;

/// What is wrong with `--stop-at`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StopError {
    /// a grace without a stop
    #[error("it says how long the subject may take to end after --stop-at, which is not given")]
    GraceAlone,
    /// a process that is not ours to end
    #[error(
        "the subject runs already and is not ended by Stepladder; let it be started here (--start COMMAND), or name a \
         built-in server"
    )]
    NotStarted,
    /// bots that do not tell which messages were under way
    #[error("{0} bots do not see how a server ends; http, leaderboard and protobuf bots do")]
    NotOfTheseBots(&'static str),
    /// a fraction of a second
    #[error("this is not a whole number of seconds, of which a hold consists; write 20s")]
    NotWholeSeconds,
    /// the hold ends before
    #[error(
        "the hold lasts {0}, so the subject would not be under load any more; write an earlier time, or hold longer (--hold)"
    )]
    AfterTheHold(String),
    /// `--hold 2Mticks`
    #[error("the hold ends with a count, which may come earlier; give --hold as a time")]
    CountedHold,
}
