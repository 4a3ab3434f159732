//! Kinds of events that the fold interprets; all others are only marks on the time axis.

/// the ramp has ended: all connections stand, or its time is up
pub const SETTLE: &str = "settle";
/// the hold begins
pub const HOLD: &str = "hold";
/// the hold ends; the text says what ended it (`60s`, `2Mticks`, `1000games`, `interrupted`, …)
pub const DRAIN: &str = "drain";
/// a part of the load goes on after the hold, to see when the server recovers; the text is that load
pub const RECOVERY: &str = "recovery";
/// that part ends too; the text says what cut it short, and is empty otherwise
pub const RECOVERY_ENDS: &str = "recovery ends";
/// the trial is complete: every worker handed over everything
pub const END: &str = "end";
/// someone ended the trial; also the text of a `drain` started by that
pub const INTERRUPTED: &str = "interrupted";
/// the subject's process ended during the trial; the text says how
pub const SUBJECT_EXITED: &str = "subject exited";
/// the subject was told to end (SIGTERM) as the plan asks, and the hold ended with that; the text says how long it has
pub const SUBJECT_TOLD_TO_END: &str = "subject told to end";
/// it ended in time and with status 0; the text says after how long
pub const SUBJECT_ENDED: &str = "subject ended as told";
/// it had not ended when its time was over; the text says when
pub const SUBJECT_STAYED: &str = "subject did not end";
/// it runs again, on the same data; the text says after how long
pub const SUBJECT_BACK: &str = "subject started again";
/// it could not be started again; the text says why
pub const SUBJECT_NOT_BACK: &str = "subject not started again";
/// the last lines that it printed before
pub const SUBJECT_OUTPUT: &str = "subject output";
/// one of the first errors of its cause, as it was met; the text is `cause: words`
pub const ERROR: &str = "error";
/// a function of a script that took much of a worker's time in the hold; the text is a `ScriptFunction`
pub const SCRIPT_FUNCTION: &str = "script function";
/// a worker had no time for what was planned before the end of the hold; the text says how many instants it left
pub const GENERATOR_BEHIND: &str = "generator behind";
/// a service on this machine that the subject asks; the text is `redis-server on port 6379`
pub const SERVICE: &str = "service";
/// the networks that are emulated; the text is a list of `NetworkFacts` as JSON
pub const NETWORKS: &str = "networks";
/// the agents that made the load, before the end of the trial; the text is a list of `AgentFacts` as JSON
pub const AGENTS: &str = "agents";
/// the share of an agent is missing; the text says whose and why
pub const AGENT_LOST: &str = "agent lost";
/// an agent on the server's machine watches the server; the text says which, its process and how far its clock may be off
pub const WATCHER: &str = "watcher";
/// it does so no longer, and the load is whole all the same; the text says which and why
pub const WATCHER_LOST: &str = "watcher lost";
/// what there is to say of the file that tells of the subject's ticks: it cannot be read, another took its name …
pub const TICK_LOG: &str = "tick log";
/// its tick rate was not said and was found from the intervals between its ticks; the text is `30 Hz`
pub const TICK_RATE: &str = "tick rate";
/// its source of ticks was there and could not be read, so that ticks are missing which say nothing about the server
pub const TICKS_LOST: &str = "ticks lost";
/// one of several sources of ticks; the text is how it was written. The first is judged, the others are compared with it
pub const TICK_SOURCE: &str = "tick source";
/// a source of ticks that is only compared could not be read; the text is its name, a colon and why
pub const COMPARED_LOST: &str = "compared ticks lost";
/// what a user told of while the load was held (`stepladder mark`): a deployment, a failover; the text is theirs. Or a key of
/// the live view that changed the run; the text says which, and what it did
pub const MARK: &str = "mark";
/// the books of a worker did not add up, or another invariant of ours broke
pub const BUG: &str = "bug";
