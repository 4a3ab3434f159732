//! The phase controller: when a trial moves from ramp to settle to hold to drain.
//!
//! Pure: takes the time and the events so far, returns instants. The hold's instants lie slightly in the future, so
//! that every worker sees them before it plans anything past them. The hold begins and ends on whole seconds, so that
//! its seconds are whole intervals.
//! Units: ns since the start of the trial.

use ladder::disturbance::HOLD_LONGER_MOST;
use plan::HoldLength;

const SECOND_NS: u64 = 1_000_000_000;
/// Workers look at the timeline every 10 ms at least; twice that is in time.
pub const AHEAD_NS: u64 = 20_000_000;
/// A ramp may take this much longer than planned before the hold begins with those that are in.
const RAMP_GRACE_NS: u64 = 30 * SECOND_NS;
/// All were sent in and no further connection stood for this long: the rest will not come. Longer than the first three
/// tries of a lost SYN (1 + 2 + 4 s) and than a handshake may take (5 s).
const RAMP_STALLED_NS: u64 = 10 * SECOND_NS;
/// A hold that waits for a count ends after this all the same.
const LONGEST_COUNTED_HOLD_NS: u64 = 1_800 * SECOND_NS;
/// After the hold, what is on its way may take this long to come, and connections to end.
pub const DRAIN_NS: u64 = plan::DRAIN_NS + plan::CLOSING_NS;

/// What the workers and the watch have told so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// connections open now
    pub open: u64,
    /// units of load whose ramp instant has come
    pub joined: u64,
    /// ticks due at the subject within the hold
    pub ticks_in_hold: u64,
    /// games played within the hold
    pub games_in_hold: u64,
    /// the hold can be judged when it ends now: nothing disturbed it much, or every objective is met so far
    pub can_be_judged: bool,
    /// after the hold, under a part of the load: nothing further needs to be seen of a recovery
    pub has_recovered: bool,
    /// the user or the subject ends the trial; the reason
    pub ends: Option<&'static str>,
}

/// An instant that was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhaseTransition {
    /// all are in (or the ramp's time is up)
    Settle {
        /// when
        at_ns: u64,
        /// connections open then
        open: u64,
    },
    /// the judged part begins
    Hold {
        /// when
        at_ns: u64,
    },
    /// the judged part ends because the subject is told to shut down
    StopSubject {
        /// when; what was sent before is under way
        at_ns: u64,
    },
    /// the judged part ends, and a part of the load goes on
    Recover {
        /// when
        at_ns: u64,
        /// what ended the judged part
        ended_by: String,
    },
    /// that part of the load ends too
    EndRecovery {
        /// when
        at_ns: u64,
        /// the reason, where it ends before it is over
        cut_by: Option<&'static str>,
    },
    /// the judged part ends
    Drain {
        /// when
        at_ns: u64,
        /// what ended it
        ended_by: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ramp,
    Settle {
        hold_ns: u64,
    },
    Hold {
        from_ns: u64,
        /// when it ends and when it must; `None` while waiting for a count
        end: Option<(u64, u64)>,
    },
    Recovery {
        ends_ns: u64,
    },
    Drain,
}

/// The state of a trial.
#[derive(Clone, Debug)]
pub struct PhaseController {
    state: State,
    hold: HoldLength,
    settle_ns: u64,
    units: u64,
    connections: u64,
    ramp_deadline_ns: u64,
    /// the subject is told to shut down this long after the start of the hold
    stop_after_ns: Option<u64>,
    /// after the hold a part of the load goes on for so long at most
    recovers_ns: Option<u64>,
    /// most connections open so far, and since when
    open_most: (u64, u64),
    /// see `RAMP_STALLED_NS`
    ramp_stalled_ns: u64,
    /// workers know an instant so long after it was decided
    ahead_ns: u64,
}

impl PhaseController {
    /// A trial of `units` of load with `connections` in all whose ramp is planned to take `ramp_ns`.
    pub fn new(hold: HoldLength, settle_ns: u64, units: u64, connections: u64, ramp_ns: u64) -> Self {
        let ramp_deadline_ns = ramp_ns.saturating_mul(2).saturating_add(RAMP_GRACE_NS);
        PhaseController {
            state: State::Ramp,
            hold,
            settle_ns,
            units,
            connections,
            ramp_deadline_ns,
            stop_after_ns: None,
            recovers_ns: None,
            open_most: (0, 0),
            ramp_stalled_ns: RAMP_STALLED_NS,
            ahead_ns: AHEAD_NS,
        }
    }

    /// The same, with workers that must know an instant so long before it comes.
    pub fn ahead_by(self, ahead_ns: u64) -> Self {
        PhaseController { ahead_ns, ..self }
    }

    /// The same, with connections that may take so much longer to open.
    pub fn allowing(self, more_ns: u64) -> Self {
        let ramp_deadline_ns = self.ramp_deadline_ns.saturating_add(more_ns);
        PhaseController { ramp_deadline_ns, ramp_stalled_ns: RAMP_STALLED_NS + more_ns, ..self }
    }

    /// The same, with a subject that is told to shut down this long after the start of the hold, which ends with it.
    pub fn stopping_subject(self, after_ns: Option<u64>) -> Self {
        PhaseController { stop_after_ns: after_ns, ..self }
    }

    /// The same, with a part of the load that goes on for so long after the hold at most.
    pub fn recovering(self, within_ns: Option<u64>) -> Self {
        PhaseController { recovers_ns: within_ns, ..self }
    }

    /// Decides what is to be decided now; call it until it returns `None`.
    pub fn decide(&mut self, now_ns: u64, seen: &Seen) -> Option<PhaseTransition> {
        if let (Some(reason), false) = (seen.ends, self.state == State::Drain) {
            if let State::Recovery { .. } = std::mem::replace(&mut self.state, State::Drain) {
                return Some(PhaseTransition::EndRecovery {
                    at_ns: now_ns + self.ahead_ns,
                    cut_by: Some(reason),
                });
            }
            return Some(PhaseTransition::Drain {
                at_ns: now_ns + self.ahead_ns,
                ended_by: reason.to_owned(),
            });
        }
        match self.state {
            State::Ramp => {
                // Games end and begin all the time, so at the end of a long ramp a few players are always between two
                // games.
                let almost_all = self.connections - self.connections / 100;
                if seen.joined < self.units || seen.open > self.open_most.0 {
                    self.open_most = (seen.open.max(self.open_most.0), now_ns);
                }
                let is_up = seen.joined >= self.units && seen.open >= almost_all;
                let is_stalled = now_ns >= self.open_most.1 + self.ramp_stalled_ns;
                (is_up || is_stalled || now_ns >= self.ramp_deadline_ns).then(|| {
                    let hold_ns = (now_ns + self.ahead_ns + self.settle_ns).next_multiple_of(SECOND_NS);
                    self.state = State::Settle { hold_ns };
                    PhaseTransition::Settle { at_ns: now_ns, open: seen.open }
                })
            }
            State::Settle { hold_ns } if now_ns + 2 * self.ahead_ns >= hold_ns => {
                let hold_ns = hold_ns.max((now_ns + self.ahead_ns).next_multiple_of(SECOND_NS));
                let end = match self.hold {
                    HoldLength::Time(length_ns) => Some(end_after(hold_ns, length_ns)),
                    HoldLength::Ticks(_) | HoldLength::Games(_) => None,
                };
                self.state = State::Hold { from_ns: hold_ns, end };
                Some(PhaseTransition::Hold { at_ns: hold_ns })
            }
            State::Hold { from_ns, end } => match self.stop_after_ns {
                None => self.end_of_hold(now_ns, from_ns, end, seen),
                Some(after_ns) if now_ns + 2 * self.ahead_ns < from_ns + after_ns => None,
                Some(after_ns) => {
                    self.state = State::Drain;
                    Some(PhaseTransition::StopSubject { at_ns: from_ns + after_ns })
                }
            },
            State::Recovery { ends_ns } => {
                let ends_ns = match seen.has_recovered {
                    true => ends_ns.min((now_ns + self.ahead_ns).next_multiple_of(SECOND_NS)),
                    false => ends_ns,
                };
                self.state = State::Recovery { ends_ns };
                (now_ns + 2 * self.ahead_ns >= ends_ns).then(|| {
                    self.state = State::Drain;
                    PhaseTransition::EndRecovery { at_ns: ends_ns, cut_by: None }
                })
            }
            State::Settle { .. } | State::Drain => None,
        }
    }

    /// When the hold, or the load that goes on after it, ends as far as is known, ns since the start of the trial.
    pub fn hold_ends_ns(&self) -> Option<u64> {
        match (self.state, self.stop_after_ns) {
            (State::Hold { from_ns, .. }, Some(after_ns)) => Some(from_ns + after_ns),
            (State::Hold { end: Some((end_ns, _)), .. }, None) => Some(end_ns),
            (State::Recovery { ends_ns }, None) => Some(ends_ns),
            _ => None,
        }
    }

    /// A hold ends as planned. If its objectives are not met, and too much was disturbed to say why, it continues by
    /// whole seconds until it can be judged, to twice its length at most.
    fn end_of_hold(
        &mut self,
        now_ns: u64,
        from_ns: u64,
        end: Option<(u64, u64)>,
        seen: &Seen,
    ) -> Option<PhaseTransition> {
        let (end_ns, latest_ns) = end.or_else(|| self.counted(now_ns, from_ns, seen))?;
        // If it is too late to tell the workers, the hold ends later.
        let soonest_ns = now_ns + self.ahead_ns;
        let end_ns = if self.ahead_ns > AHEAD_NS && end_ns < soonest_ns {
            soonest_ns.next_multiple_of(SECOND_NS)
        } else {
            end_ns
        };
        self.state = State::Hold { from_ns, end: Some((end_ns, latest_ns)) };
        if now_ns + 2 * self.ahead_ns < end_ns {
            return None;
        }
        if !seen.can_be_judged && end_ns + SECOND_NS <= latest_ns {
            self.state = State::Hold { from_ns, end: Some((end_ns + SECOND_NS, latest_ns)) };
            return None;
        }
        let asked = describe(self.hold);
        let length_ns = end_ns - from_ns;
        let ended_by = match self.hold {
            HoldLength::Time(asked_ns) if length_ns > asked_ns => {
                format!(
                    "{asked} and {} s more, to see undisturbed seconds",
                    (length_ns - asked_ns) / SECOND_NS
                )
            }
            HoldLength::Time(_) => asked,
            _ if length_ns >= LONGEST_COUNTED_HOLD_NS && !self.has_counted(seen) => {
                format!("30 min without {asked}")
            }
            _ => asked,
        };
        let Some(within_ns) = self.recovers_ns else {
            self.state = State::Drain;
            return Some(PhaseTransition::Drain { at_ns: end_ns, ended_by });
        };
        self.state = State::Recovery { ends_ns: end_ns.saturating_add(within_ns) };
        Some(PhaseTransition::Recover { at_ns: end_ns, ended_by })
    }

    fn has_counted(&self, seen: &Seen) -> bool {
        match self.hold {
            HoldLength::Time(_) => true,
            HoldLength::Ticks(count) => seen.ticks_in_hold >= count,
            HoldLength::Games(count) => seen.games_in_hold >= count,
        }
    }

    /// The end of a hold that waits for a count, once it is known.
    fn counted(&self, now_ns: u64, from_ns: u64, seen: &Seen) -> Option<(u64, u64)> {
        let is_too_long = now_ns >= from_ns + LONGEST_COUNTED_HOLD_NS;
        let length_ns = (now_ns + 2 * self.ahead_ns).next_multiple_of(SECOND_NS).saturating_sub(from_ns);
        match (self.has_counted(seen), is_too_long) {
            (true, _) => Some(end_after(from_ns, length_ns)),
            (false, true) => Some((from_ns + length_ns, from_ns + length_ns)),
            (false, false) => None,
        }
    }
}

/// When a hold of a length ends, and when at the latest.
fn end_after(from_ns: u64, length_ns: u64) -> (u64, u64) {
    (from_ns + length_ns, from_ns.saturating_add(length_ns.saturating_mul(u64::from(HOLD_LONGER_MOST))))
}

/// A hold as the user writes it.
pub fn describe(hold: HoldLength) -> String {
    match hold {
        HoldLength::Time(ns) if ns % SECOND_NS == 0 => format!("{}s", ns / SECOND_NS),
        HoldLength::Time(ns) => format!("{}ms", ns / 1_000_000),
        HoldLength::Ticks(count) if count % 1_000_000 == 0 => format!("{}Mticks", count / 1_000_000),
        HoldLength::Ticks(count) => format!("{count}ticks"),
        HoldLength::Games(count) => format!("{count}games"),
    }
}

#[cfg(test)]
mod tests;
