//! Adapts a store's board to the library's trait, so that the library's suite runs over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::commands::{self, Guard};
use super::link::{End, Target};
use super::replies::{Fields, Refused as StoreRefused};
use super::scripts::Script;
use super::{Caller, NotDone, finished};
use leaderboard::suite::{self, Verdict};
use leaderboard::{
    BulkRefused, Deleted, Leaderboard, LockWaits, Mode, Options, Outcome, Page, Refused, Row, Score,
    Snapshot, Standing, Update, check_member,
};

#[path = "../../../tests/it/redis_server.rs"]
mod redis_server;
use redis_server::RedisServer;

const TIMEOUT: Duration = Duration::from_secs(20);

struct StoreBoard {
    target: Target,
    name: String,
    /// Each call takes one, so that threads meet in the store.
    callers: Mutex<Vec<Caller>>,
}

impl StoreBoard {
    fn create(target: &Target, name: String, rules: Options) -> StoreBoard {
        let board = StoreBoard { target: target.clone(), name, callers: Mutex::default() };
        let write = |out: &mut Vec<u8>| commands::create_board(out, &Guard::default(), &board.name, rules);
        assert!(board.call(Script::CreateBoard, write, |fields| fields.end().unwrap()).is_some());
        board
    }

    /// None: there is no such member.
    fn call<R>(
        &self,
        script: Script,
        write: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(Fields<'_>) -> R,
    ) -> Option<R> {
        let free = self.callers.lock().pop();
        let mut caller = free.unwrap_or_else(|| Caller::connect(self.target.clone()).unwrap());
        let answer = caller.call(script, write, |end: End<'_>| match finished(end, TIMEOUT) {
            Ok(fields) => Some(read(fields)),
            Err(NotDone::Refused(StoreRefused::NoMember)) => None,
            Err(NotDone::Refused(refused)) => panic!("{script:?}: {refused:?}"),
            Err(NotDone::Failed(failed)) => panic!("{script:?}: {}", failed.detail),
        });
        self.callers.lock().push(caller);
        answer
    }
}

fn tie(fields: &mut Fields<'_>) -> u64 {
    u64::from_str_radix(fields.text().unwrap(), 16).unwrap()
}

impl Leaderboard for StoreBoard {
    fn update(&self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        check_member(member)?;
        let update = (mode, score.as_i64().unwrap(), member);
        let write = |out: &mut Vec<u8>| {
            commands::update(out, &Guard::default(), &self.name, update, fastrand::u64(..))
        };
        let read = |mut fields: Fields<'_>| {
            let (score, rank, _members) =
                (fields.score().unwrap(), fields.whole().unwrap(), fields.whole().unwrap());
            Outcome { score, rank, sequence: fields.whole().unwrap(), tie: tie(&mut fields) }
        };
        Ok(self.call(Script::Update, write, read).unwrap())
    }

    fn update_bulk(&self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused> {
        for (item, update) in updates.iter().enumerate() {
            check_member(update.member).map_err(|cause| BulkRefused { item, cause })?;
        }
        let part = updates.iter().map(|update| (update.mode, update.score.as_i64().unwrap(), update.member));
        let parts = [(&*self.name, part.collect())];
        let write = |out: &mut Vec<u8>| {
            commands::bulk(out, &Guard::default(), &parts, true, || fastrand::u64(..));
        };
        let read = |mut fields: Fields<'_>| {
            let first = fields.whole().unwrap() + 1 - updates.len() as u64;
            let outcome = |sequence| {
                let (score, rank) = (fields.score().unwrap(), fields.whole().unwrap());
                Outcome { score, rank, tie: tie(&mut fields), sequence }
            };
            (first..first + updates.len() as u64).map(outcome).collect()
        };
        Ok(self.call(Script::Bulk, write, read).unwrap())
    }

    fn get(&self, member: &str) -> Option<Standing> {
        self.get_many(&[member]).pop().flatten()
    }

    fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>> {
        let write = |out: &mut Vec<u8>| commands::standings(out, &self.name, members.iter().copied());
        let read = |mut fields: Fields<'_>| {
            fields.whole().unwrap();
            members.iter().map(|_| fields.standing().unwrap()).collect()
        };
        self.call(Script::Standings, write, read).unwrap()
    }

    fn row(&self, _: &str) -> Option<Row> {
        unreachable!("a store has no metadata")
    }

    fn delete(&self, member: &str) -> Option<Deleted> {
        let write = |out: &mut Vec<u8>| commands::delete_member(out, &Guard::default(), &self.name, member);
        self.call(Script::DeleteMember, write, |mut fields| {
            let (score, _members) = (fields.score().unwrap(), fields.whole().unwrap());
            Deleted { score, sequence: fields.whole().unwrap() }
        })
    }

    fn count(&self) -> u64 {
        let read = |mut fields: Fields<'_>| {
            fields.rules().unwrap();
            fields.whole().unwrap()
        };
        self.call(Script::Board, |out| commands::board(out, &self.name), read).unwrap()
    }

    fn range(&self, first: u64, limit: usize) -> Page {
        let write = |out: &mut Vec<u8>| commands::range(out, &self.name, first, limit as u64);
        self.call(Script::Page, write, |fields| fields.page().unwrap()).unwrap()
    }

    fn range_back(&self, first: u64, limit: usize) -> Page {
        let total = self.count();
        let from = (total + 1).saturating_sub(first).min(total);
        let begins = (from + 1).saturating_sub(limit as u64).max(1);
        let mut page = self.range(begins, (from + 1 - begins) as usize);
        page.rows.reverse();
        page
    }

    fn around(&self, member: &str, each_side: usize) -> Option<Page> {
        let write = |out: &mut Vec<u8>| commands::around(out, &self.name, member, each_side as u64);
        self.call(Script::Page, write, |fields| fields.page().unwrap())
    }

    fn set_metadata(&self, _: &str, _: Option<&str>) -> Result<Option<u64>, Refused> {
        unreachable!("a store has no metadata")
    }

    fn snapshot(&self) -> Snapshot {
        unreachable!("a store keeps its own snapshots")
    }

    fn restore(&self, _: &Snapshot) -> Result<(), BulkRefused> {
        unreachable!("a store keeps its own snapshots")
    }

    fn reset(&self) -> Snapshot {
        unreachable!("a store has no seasons")
    }

    fn lock_waits(&self) -> LockWaits {
        LockWaits::default()
    }
}

/// What the suite checks and a store does not have: metadata, seasons, snapshots, scores beyond 53 bits.
const NOT_OF_STORES: [&str; 6] = [
    "scores_of_any_size_are_ranked_exactly",
    "bad_names_and_long_metadata_are_refused",
    "deleted_members_leave_nothing",
    "a_reset_returns_the_season_and_empties_the_board",
    "a_snapshot_restores_ranks_among_equals",
    "taken_ties_are_restored_side_by_side",
];

/// A server, and a way to make boards on it; None where there is no server.
fn with_boards(run: impl FnOnce(&dyn Fn(Options) -> Box<dyn Leaderboard>)) {
    let Some(server) = RedisServer::start() else { return };
    let sockets = vec![([127, 0, 0, 1], server.port).into()];
    let target = Target { address: server.url().parse().unwrap(), sockets, timeout: TIMEOUT };
    let made = Arc::new(AtomicU64::new(0));
    run(&|options| {
        let name = format!("board {}", made.fetch_add(1, Ordering::Relaxed));
        Box::new(StoreBoard::create(&target, name, options))
    });
}

#[test]
fn a_store_passes_the_suite_of_the_library() {
    with_boards(|make| {
        let mut left_out = Vec::new();
        for (name, check) in suite::all_checks() {
            if NOT_OF_STORES.contains(&name) {
                left_out.push(name);
            } else if let Err(wrong) = check(make) {
                panic!("{name}: {wrong}");
            }
        }
        assert_eq!(left_out, NOT_OF_STORES, "all names are of checks");
    });
}

#[test]
fn any_history_agrees_with_a_sorted_vector_on_a_store() {
    with_boards(|make| {
        let verdict: Verdict = suite::check_small_histories(make, 48);
        verdict.unwrap();
    });
}
