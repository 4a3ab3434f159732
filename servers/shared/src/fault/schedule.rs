//! Which faults are active when: the state shared by a server's threads, and each thread's view of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::share::{Selector, Share};
use super::{Fault, Kind, Server, kinds};
use crate::{ServeError, clock};

/// How long a thread of a server with faults rests at most, so that a fault sets in on time.
const REST_NS_MAX: u64 = 5_000_000;

/// All faults of one server, and when their time began.
#[derive(Debug)]
pub struct Faults {
    list: Vec<Fault>,
    /// When the first connection was accepted; 0: none was.
    began_ns: AtomicU64,
}

/// What is wrong at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    pub refuses: bool,
    pub stops_ticks: bool,
    pub stops_answers: bool,
    /// How often all connections were to be reset until now.
    drops: usize,
    /// How often a message of another node was to be thrown away until now.
    link_losses: usize,
    /// By how much what is sent is late.
    pub late_ns: u64,
    /// By how much a turn takes longer.
    pub slow_ns: u64,
    wrong: Option<Share>,
    lost: Option<Share>,
    twice: Option<Share>,
    forged: Option<Share>,
    unapplied: Option<Share>,
    truncated: Option<Share>,
    missed: Option<Share>,
    stale: Option<Share>,
    swapped: Option<Share>,
    refused: Option<Share>,
    pub ignores_expiry: bool,
    /// The share of ticks that are run late.
    pub late_ticks: Option<Share>,
    /// The tick log calls every tick on time.
    pub lies: bool,
}

impl Faults {
    /// The faults of a server; None where there are none, so that nothing needs to be asked later.
    ///
    /// Errors: a fault that this server cannot plant.
    pub fn of(server: Server, list: &[Fault]) -> Result<Option<Arc<Faults>>, ServeError> {
        if let Some(fault) = list.iter().find(|fault| !server.can_plant(fault.kind)) {
            let known = kinds::names(server.entries());
            return Err(ServeError::Fault { server, fault: *fault, known });
        }
        let faults = || Arc::new(Faults { list: list.to_vec(), began_ns: AtomicU64::new(0) });
        Ok((!list.is_empty()).then(faults))
    }

    pub(super) fn list(&self) -> &[Fault] {
        &self.list
    }

    /// When the first connection was accepted.
    pub(super) fn began_ns(&self) -> Option<u64> {
        Some(self.began_ns.load(Ordering::Relaxed)).filter(|at_ns| *at_ns > 0)
    }

    /// A connection was accepted; true when it must be reset.
    pub fn refuse_connection(&self, now_ns: u64) -> bool {
        // It does not matter which thread is first.
        let _ = self.began_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
        self.effects(now_ns).refuses
    }

    fn effects(&self, now_ns: u64) -> Effects {
        let mut effects = Effects::default();
        let Some(began_ns) = self.began_ns() else { return effects };
        let since_ns = u128::from(now_ns.saturating_sub(began_ns));
        for fault in self.list.iter().filter(|fault| fault.at.as_nanos() <= since_ns) {
            match fault.kind {
                Kind::Hang | Kind::Freeze(_) | Kind::Exit | Kind::Leak(_) => {}
                // Limits of `serve limited`, which last from its start to its end.
                Kind::CpuBound
                | Kind::SingleThread
                | Kind::Lock
                | Kind::GcLikePause
                | Kind::AcceptBacklog
                | Kind::MaxConnections
                | Kind::FdLimit
                | Kind::SlowDisk
                | Kind::Throttled
                | Kind::LeakPerRequest(_)
                | Kind::LeakPerConnection(_)
                | Kind::LeakDescriptors => {}
                Kind::AcceptForged(share) => effects.forged = Some(share),
                // The controlling thread handles those.
                Kind::DropAtStop | Kind::StayAtStop | Kind::LoseAtStop => {}
                Kind::DropAll => effects.drops += 1,
                Kind::LoseLinked => effects.link_losses += 1,
                Kind::Refuse => effects.refuses = true,
                Kind::WrongAnswers(share) | Kind::WrongRank(share) => effects.wrong = Some(share),
                Kind::LateAnswers(by) => effects.late_ns += by.as_nanos() as u64,
                Kind::Lose(share) => effects.lost = Some(share),
                Kind::LoseUpdates(share) => effects.unapplied = Some(share),
                Kind::Truncate(share) => effects.truncated = Some(share),
                Kind::Miss(share) => effects.missed = Some(share),
                Kind::Stale(share) => effects.stale = Some(share),
                Kind::Swap(share) => effects.swapped = Some(share),
                Kind::Refusals(share) => effects.refused = Some(share),
                Kind::IgnoreExpiry => effects.ignores_expiry = true,
                Kind::Duplicate(share) | Kind::Twice(share) => effects.twice = Some(share),
                Kind::StopTicks => effects.stops_ticks = true,
                Kind::StopAnswers => effects.stops_answers = true,
                Kind::Collapse(by) => effects.slow_ns += by.as_nanos() as u64,
                Kind::LateTicks(share) => effects.late_ticks = Some(share),
                Kind::Lie(share) => {
                    effects.late_ticks = Some(share);
                    effects.lies = true;
                }
            }
        }
        effects
    }
}

/// One thread's view of the faults: as of its last check, with its own counters for the shares.
#[derive(Debug, Default)]
pub struct ThreadFaults {
    shared: Option<Arc<Faults>>,
    /// What acts now without a count.
    pub now: Effects,
    /// Messages with a wrong content.
    pub wrong: Selector,
    /// Messages that are not sent.
    pub lost: Selector,
    /// Messages that are sent twice.
    pub twice: Selector,
    /// Unsolicited messages.
    pub forged: Selector,
    /// Changes that are acknowledged and not made.
    pub unapplied: Selector,
    /// Answers that lack their end.
    pub truncated: Selector,
    /// Ticks that are skipped.
    pub missed: Selector,
    /// Answers from an earlier state.
    pub stale: Selector,
    /// Answers in the wrong order.
    pub swapped: Selector,
    /// Requests that are refused.
    pub refused: Selector,
    /// How many of `now.drops` were executed.
    dropped: usize,
    /// How many of `now.link_losses` were executed.
    link_lost: usize,
}

impl ThreadFaults {
    /// Follows the process's planted faults; `None`: there are none.
    pub fn new(shared: Option<Arc<Faults>>) -> ThreadFaults {
        ThreadFaults { shared, ..ThreadFaults::default() }
    }

    /// Whether any fault was planted.
    pub fn are_planted(&self) -> bool {
        self.shared.is_some()
    }

    /// Looks which faults are in effect; once per turn. False when none ever will be.
    pub fn look(&mut self) -> bool {
        let Some(shared) = &self.shared else { return false };
        self.now = shared.effects(clock::now_ns());
        self.wrong.set(self.now.wrong);
        self.lost.set(self.now.lost);
        self.twice.set(self.now.twice);
        self.forged.set(self.now.forged);
        self.unapplied.set(self.now.unapplied);
        self.truncated.set(self.now.truncated);
        self.missed.set(self.now.missed);
        self.stale.set(self.now.stale);
        self.swapped.set(self.now.swapped);
        self.refused.set(self.now.refused);
        true
    }

    /// Whether this thread has to reset all its connections now; once for each time that is planted.
    pub fn takes_drop(&mut self) -> bool {
        std::mem::replace(&mut self.dropped, self.now.drops) < self.now.drops
    }

    /// Whether this message of another node is thrown away; once for each time that is planted.
    pub fn takes_link_loss(&mut self) -> bool {
        let takes = self.link_lost < self.now.link_losses;
        self.link_lost += usize::from(takes);
        takes
    }

    /// Whether none of the next `deliveries` is to be lost or sent twice; they are counted then.
    pub fn spares(&mut self, deliveries: u64) -> bool {
        if self.shared.is_none() {
            return true;
        }
        let spared = self.lost.spares(deliveries) && self.twice.spares(deliveries);
        if spared {
            self.lost.pass(deliveries);
            self.twice.pass(deliveries);
        }
        spared
    }

    /// The longest rest of the thread.
    pub fn rest_ns_max(&self) -> u64 {
        if self.shared.is_some() { REST_NS_MAX } else { u64::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn faults(server: Server, texts: &[&str]) -> Arc<Faults> {
        let list: Vec<Fault> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Faults::of(server, &list).unwrap().unwrap()
    }

    #[test]
    fn time_counts_from_the_first_connection_and_from_no_later_one() {
        let faults = faults(Server::Arena, &["refuse@3s", "stop-ticks@5s"]);
        assert_eq!(faults.effects(100 * S), Effects::default(), "no client has connected");
        assert!(!faults.refuse_connection(7 * S));
        assert!(!faults.refuse_connection(10 * S - 1));
        assert!(faults.refuse_connection(10 * S));
        assert!(!faults.effects(12 * S - 1).stops_ticks);
        assert!(faults.effects(12 * S).stops_ticks);
    }

    #[test]
    fn refusing_from_the_beginning_refuses_the_first_connection() {
        assert!(faults(Server::Null, &["refuse@0s"]).refuse_connection(S));
    }

    #[test]
    fn delays_add_up_and_a_lie_is_late_ticks_with_a_false_log() {
        let faults = faults(Server::Arena, &["collapse@1s:300ms", "collapse@2s:200ms", "lie:40%"]);
        faults.refuse_connection(S);
        let slow = |at_s: u64| faults.effects(at_s * S).slow_ns / 1_000_000;
        assert_eq!([slow(1), slow(2), slow(3)], [0, 300, 500]);
        assert!(faults.effects(S).lies && faults.effects(S).late_ticks.is_some());
    }

    #[test]
    fn a_server_refuses_faults_that_it_cannot_plant_and_names_those_it_can() {
        let check = |server, text: &str, message| {
            let error = Faults::of(server, &[text.parse().unwrap()]).unwrap_err();
            assert_eq!(error.to_string(), message);
        };
        check(
            Server::Null,
            "drop-all@8s",
            "serve null cannot plant the fault drop-all@8s; it can plant hang, freeze, exit, refuse, leak",
        );
        check(
            Server::Chat,
            "late-ticks:40%",
            "serve chat cannot plant the fault late-ticks; it can plant hang, freeze, exit, drop-all, refuse, \
             wrong-answers, late-answers, lose, duplicate, lose-linked, stop-answers, leak, collapse",
        );
        assert!(Faults::of(Server::Chat, &[]).unwrap().is_none());
    }

    #[test]
    fn each_thread_drops_its_connections_once_per_planted_drop() {
        let shared = faults(Server::Chat, &["drop-all@0s"]);
        let mut thread = ThreadFaults::new(Some(shared.clone()));
        thread.look();
        assert!(!thread.takes_drop());
        shared.refuse_connection(1);
        thread.look();
        assert_eq!([thread.takes_drop(), thread.takes_drop()], [true, false]);
    }
}
