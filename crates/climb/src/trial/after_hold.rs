//! What may follow a hold. After an overload, part of the load continues until the server's recovery time is known. A
//! subject that is shut down under load gets the signal, exits or does not, and is restarted for the audit.
//!
//! The hold of such a subject ends on a whole second and the signal follows within a few milliseconds; workers are told
//! before it is sent. The load continues for a second.

use engine::Clock as _;
use measure::trial::kind;

use super::recovering::Recovering;
use super::spec::{StopReason, TrialEnv};
use super::subject_end::State;
use super::{TrialRunner, keep_event};
use crate::phases::DRAIN_NS;

/// The load continues for this long after the subject was told to shut down.
const LOAD_GOES_ON_NS: u64 = 1_000_000_000;
/// A subject that completes requests until its grace is over needs a moment to end itself.
const GRACE_MARGIN_NS: u64 = 1_000_000_000;
/// How long a subject may take to start again, with its data.
const BACK_WITHIN_NS: u64 = 25_000_000_000;
/// How an end is noticed at the latest after it came.
const HEARD_WITHIN_NS: u64 = 2_000_000_000;

fn seconds(ns: u64) -> String {
    format!("{:.2} s", ns as f64 / 1e9)
}

impl TrialRunner<'_> {
    /// The hold ends at this instant, and a part of the load goes on.
    pub(super) fn begin_recovery(
        &mut self,
        at_ns: u64,
        ended_by: &str,
        context: &mut impl TrialEnv,
    ) -> anyhow::Result<()> {
        keep_event(context, at_ns, kind::DRAIN, ended_by)?;
        (self.hold_end_ns, self.so_far) = (Some(at_ns), None);
        let Some(recovery) = self.order.recovery else {
            self.begin_drain(at_ns);
            return Ok(());
        };
        self.timeline.recover_at(at_ns);
        self.phase = "recovery";
        self.recovering = Some(Recovering::new(self.order.head.clone(), at_ns, recovery.within_ns));
        keep_event(context, at_ns, kind::RECOVERY, &recovery.load.to_string())
    }

    /// It ends too.
    pub(super) fn end_recovery(
        &mut self,
        at_ns: u64,
        cut_by: Option<&str>,
        context: &mut impl TrialEnv,
    ) -> anyhow::Result<()> {
        self.begin_drain(at_ns);
        self.recovering = None;
        keep_event(context, at_ns, kind::RECOVERY_ENDS, cut_by.unwrap_or_default())
    }
}

impl TrialRunner<'_> {
    /// The hold ends at this instant, and the subject is told to shut down.
    pub(super) fn begin_end_of_subject(
        &mut self,
        at_ns: u64,
        context: &mut impl TrialEnv,
    ) -> anyhow::Result<()> {
        let Some(end) = &mut self.subject_end else { return Ok(()) };
        end.state = State::Due(at_ns);
        let back_ns = if end.stop.reads_back { BACK_WITHIN_NS } else { 0 };
        let grace = seconds(end.stop.grace_ns);
        let drain_ns = at_ns + LOAD_GOES_ON_NS;
        let stop_ns = drain_ns + end.stop.grace_ns + GRACE_MARGIN_NS + back_ns + DRAIN_NS;
        self.timeline.subject_stops_at(at_ns);
        self.timeline.drain_at(drain_ns);
        self.timeline.stop_at(stop_ns);
        (self.stop_ns, self.hold_end_ns, self.phase) = (Some(stop_ns), Some(at_ns), "drain");
        keep_event(context, at_ns, kind::DRAIN, "the subject was told to end")?;
        keep_event(context, at_ns, kind::SUBJECT_TOLD_TO_END, &format!("{grace} were allowed"))
    }

    /// Goes on with the end of the subject.
    pub(super) fn end_subject(&mut self, context: &mut impl TrialEnv) -> anyhow::Result<()> {
        let now_ns = self.clock.now_ns();
        let Some(end) = &mut self.subject_end else { return Ok(()) };
        match end.state {
            State::Due(at_ns) if now_ns >= at_ns => {
                self.timeline.subject_signalled_at(now_ns);
                context.tell_subject_to_end();
                end.state = State::Told(now_ns);
                Ok(())
            }
            State::Told(told_ns) => match context.subject_exit() {
                Some(exit) => {
                    end.state = State::Ended(told_ns, now_ns);
                    let took = seconds(now_ns - told_ns);
                    let is_good = exit.code == Some(0);
                    if is_good { keep_event(context, now_ns, kind::SUBJECT_ENDED, &took) } else { Ok(()) }
                }
                None if now_ns >= told_ns + end.stop.grace_ns + GRACE_MARGIN_NS => {
                    end.state = State::Over;
                    // Nothing more is expected to arrive.
                    self.timeline.stop_at(now_ns);
                    let limit = seconds(now_ns - told_ns);
                    keep_event(context, now_ns, kind::SUBJECT_STAYED, &format!("after {limit}"))
                }
                None => Ok(()),
            },
            // Its pid may be reused once it is started again, so the watch must have seen its end.
            State::Ended(_, ended_ns) if end.has_heard || now_ns >= ended_ns + HEARD_WITHIN_NS => {
                end.state = State::Over;
                if !end.stop.reads_back {
                    return Ok(());
                }
                let started = context.start_subject_again();
                let now_ns = self.clock.now_ns();
                match started {
                    Ok(()) => {
                        self.timeline.subject_is_back_at(now_ns);
                        keep_event(context, now_ns, kind::SUBJECT_BACK, &seconds(now_ns - ended_ns))
                    }
                    Err(error) => {
                        self.timeline.stop_at(now_ns);
                        keep_event(context, now_ns, kind::SUBJECT_NOT_BACK, &format!("{error:#}"))
                    }
                }
            }
            _ => Ok(()),
        }
    }

    /// The workers are done; the subject may not be. Another cause may have ended the trial first.
    pub(super) fn wait_for_end_of_subject(&mut self, context: &mut impl TrialEnv) -> anyhow::Result<()> {
        let is_open = |runner: &Self| {
            let state = runner.subject_end.as_ref().map_or(State::Over, |end| end.state);
            matches!(state, State::Due(_) | State::Told(_) | State::Ended(..))
        };
        while is_open(self) && context.ends() != Some(StopReason::Interrupted) {
            std::thread::sleep(std::time::Duration::from_millis(10));
            self.take_entries(context)?;
            self.end_subject(context)?;
        }
        Ok(())
    }
}
