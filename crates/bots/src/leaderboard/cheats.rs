//! The cheaters' requests: which is sent next, and their outcomes.
//!
//! They are not part of the load: no flow, latency or error of the honest clients includes them. An accepted one is
//! counted, and its points may be on the board from then on, so that honest responses are not called wrong because of
//! it.

use super::dialect::Dialect;
use super::members::Members;
use super::signing::{Cheat, SignedChange, Signer};

/// Statuses that refuse a change because of who makes it (RFC 9110): 401 Unauthorized, 403 Forbidden.
const REFUSED: [u16; 2] = [401, 403];
/// The server takes no requests now, which says nothing about this one.
const BUSY: [u16; 2] = [429, 503];

/// The cheats of one worker.
#[derive(Default)]
pub struct Cheats {
    /// of all requests
    share: f64,
    /// an honest change that was acknowledged, to be repeated
    replayable: Option<SignedChange>,
    open: slab::Slab<(Cheat, Vec<(u32, i64)>)>,
    counts: Counts,
}

/// What became of cheats, since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub sent: u64,
    pub refused: u64,
    pub accepted: u64,
}

/// What is wrong with a response to a cheat.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    Accepted(String),
    Status(String),
}

impl Cheats {
    pub fn new(share: f64) -> Cheats {
        Cheats { share, ..Cheats::default() }
    }

    /// Whether the next request is one.
    pub fn is_next(&self, random: &mut fastrand::Rng) -> bool {
        self.share > 0.0 && random.f64() < self.share
    }

    /// Whether acknowledged changes are worth keeping.
    pub fn wants_replayable(&self) -> bool {
        self.share > 0.0
    }

    pub fn keep_replayable(&mut self, change: SignedChange) {
        self.replayable = Some(change);
    }

    /// A place for the next cheat.
    pub fn reserve(&mut self) -> u64 {
        self.open.insert((Cheat::Unsigned, Vec::new())) as u64
    }

    /// The next cheat; `honest`: the change that it would be if it were signed rightly.
    pub fn request(
        &mut self,
        token: u64,
        mut honest: SignedChange,
        dialect: &Dialect,
        signer: Option<&mut Signer>,
        random: &mut fastrand::Rng,
    ) -> SignedChange {
        let cheat = Cheat::ALL[random.usize(..Cheat::ALL.len())];
        let change = match (cheat, &self.replayable, signer) {
            (Cheat::Replayed, Some(replayable), _) => replayable.clone(),
            (Cheat::Forged | Cheat::Expired, _, Some(signer)) => {
                if let Some(signature) = signer.sign_falsely(cheat, &honest.claim, &honest.body) {
                    dialect.attach(&signature, &mut honest);
                }
                honest
            }
            _ => honest,
        };
        let cheat = if change.is_signed { cheat } else { Cheat::Unsigned };
        self.open[token as usize] = (cheat, change.updates.clone());
        self.counts.sent += 1;
        change
    }

    /// Whether the change that a cheat would be is a bulk.
    pub fn is_bulk(&self, token: u64) -> bool {
        self.open.get(token as usize).is_some_and(|(_, updates)| updates.len() > 1)
    }

    /// Whether a response refuses it, as it must.
    pub fn check(&mut self, token: u64, status: u16, members: &mut Members) -> Result<(), Wrong> {
        let (cheat, updates) = self.open.remove(token as usize);
        match status {
            status if REFUSED.contains(&status) => {
                self.counts.refused += 1;
                Ok(())
            }
            status if BUSY.contains(&status) => Ok(()),
            200..=299 => {
                self.counts.accepted += 1;
                members.may_have(&updates);
                Err(Wrong::Accepted(format!("{} was accepted with status {status}", cheat.name())))
            }
            _ => {
                members.may_have(&updates);
                Err(Wrong::Status(format!("{} was answered with status {status}, not 401", cheat.name())))
            }
        }
    }

    /// No response will come. What a cheat would have changed must not have changed all the same.
    pub fn abandon(&mut self, token: u64) {
        self.open.try_remove(token as usize);
    }

    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::dialect::Json;
    use super::super::signing::Claim;
    use super::*;
    use crate::leaderboard::reply::Standing;

    fn change() -> SignedChange {
        let (target, updates) = ("/a?score=5".to_owned(), vec![(0, 5)]);
        let claim = Claim { method: "PATCH", target: target.clone(), from: 0 };
        let (headers, body) = (Vec::new(), Vec::new());
        SignedChange { method: "PATCH", target, headers, body, claim, is_signed: false, updates }
    }

    fn dialect() -> Dialect {
        Dialect::Json(Json::new("", "main"))
    }

    fn can_have(members: &Members, score: i64) -> bool {
        members.check(0, &Standing { member: None, score, rank: 1 }).is_ok()
    }

    fn planted() -> (Cheats, Members, u64) {
        let mut cheats = Cheats::new(0.5);
        let members = Members::new(1, 0);
        let token = cheats.reserve();
        cheats.request(token, change(), &dialect(), None, &mut fastrand::Rng::with_seed(1));
        (cheats, members, token)
    }

    #[test]
    fn a_refused_cheat_is_right_and_leaves_the_books_as_they_were() {
        let (mut cheats, mut members, token) = planted();
        assert_eq!(cheats.check(token, 401, &mut members), Ok(()));
        assert_eq!(cheats.take_counts(), Counts { sent: 1, refused: 1, accepted: 0 });
        assert!(!can_have(&members, 5), "its points must not be there");
    }

    #[test]
    fn an_accepted_cheat_is_counted_and_its_points_may_be_there() {
        let (mut cheats, mut members, token) = planted();
        assert!(matches!(cheats.check(token, 200, &mut members), Err(Wrong::Accepted(_))));
        assert_eq!(cheats.take_counts().accepted, 1);
        assert!(can_have(&members, 0) && can_have(&members, 5));
    }

    #[test]
    fn a_busy_server_has_not_refused_it_and_a_failure_is_no_refusal() {
        let (mut cheats, mut members, token) = planted();
        assert_eq!(cheats.check(token, 503, &mut members), Ok(()));
        assert_eq!(cheats.take_counts().refused, 0);
        let (mut cheats, mut members, token) = planted();
        assert!(matches!(cheats.check(token, 500, &mut members), Err(Wrong::Status(_))));
    }

    #[test]
    fn only_what_was_acknowledged_is_repeated() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut cheats = Cheats::new(1.0);
        let target = |cheats: &mut Cheats, random: &mut fastrand::Rng| {
            let token = cheats.reserve();
            cheats.request(token, change(), &dialect(), None, random).target
        };
        assert!((0..50).all(|_| target(&mut cheats, &mut random) == "/a?score=5"));
        let repeated = SignedChange { target: "/b?score=1".to_owned(), is_signed: true, ..change() };
        cheats.keep_replayable(repeated);
        assert!((0..50).any(|_| target(&mut cheats, &mut random) == "/b?score=1"));
    }
}
