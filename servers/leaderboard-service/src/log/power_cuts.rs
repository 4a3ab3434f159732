//! Histories of changes over a disk that loses what was not synced: nothing that was acknowledged may be missing after
//! a power cut, and no change may be there in part.
//!
//! One thread plays all roles, drawn from a seed: changes, the writer and the snapshot thread take turns before any
//! call to the disk. So every interleaving that matters can occur, and a failure can be reproduced with its seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;

use super::simulated::SimulatedDisk;
use super::{Answer, Log, Segment, snapshots};
use crate::kept::Kept;
use crate::signing::Signed;
use crate::{Shared, changes, unix_s};
use leaderboard::{
    Board, Boards, Direction, Implementation, Mode, Options, Schedule, Snapshot, TieRule, Update,
};
use servers_shared::ServeError;

/// Digest of the request, status and body.
pub(super) type KeptAnswer = ([u8; 32], u16, Vec<u8>);

/// All that has to be there after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) boards: Vec<BoardState>,
    pub(super) nonces: BTreeSet<(String, Vec<u8>, u64)>,
    /// By signer and idempotency key: digest, status and body.
    pub(super) answers: BTreeMap<(Vec<u8>, Vec<u8>), KeptAnswer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoardState {
    number: u64,
    name: String,
    options: Options,
    snapshot: Snapshot,
    seasons: Vec<(String, u64, Snapshot)>,
    schedule: Option<Schedule>,
}

pub(super) fn state(kept: &Kept) -> State {
    let board = |board: &Arc<Board>| {
        let at_rest = board.at_rest();
        let seasons = at_rest.archives.iter();
        let seasons = seasons.map(|each| (each.season.clone(), each.ended_at_s, each.snapshot().clone()));
        BoardState {
            number: board.number,
            name: board.name.clone(),
            options: board.options,
            snapshot: at_rest.snapshot,
            seasons: seasons.collect(),
            schedule: at_rest.schedule,
        }
    };
    let boards = kept.boards.list(None, usize::MAX).iter().map(board).collect();
    let (mut nonces, mut answers) = (BTreeSet::new(), BTreeMap::new());
    kept.nonces.each(|each| {
        nonces.insert((each.key.to_owned(), each.nonce.to_vec(), each.expires_s));
    });
    kept.once.each(|each| {
        let id = (each.signer.to_vec(), each.key.to_vec());
        answers.insert(id, (*each.digest, each.status, each.body.to_vec()));
    });
    State { boards, nonces, answers }
}

pub(super) fn nothing() -> Kept {
    let boards = Arc::new(Boards::new(Implementation::OneLock));
    Kept { boards, once: Arc::default(), nonces: Arc::default() }
}

/// A service from its start to a power cut.
pub(super) struct Life {
    disk: SimulatedDisk,
    shared: Shared,
    kept: Kept,
    segment: Mutex<Segment>,
    begins: Mutex<mpsc::Receiver<u64>>,
    random: Mutex<fastrand::Rng>,
    /// The state after so many changes.
    history: Mutex<Vec<State>>,
}

const BOARDS: [&str; 3] = ["one", "two", "three"];

impl Life {
    pub(super) fn begin(
        disk: &SimulatedDisk,
        seed: u64,
        segment_bytes: u64,
    ) -> Result<Arc<Life>, ServeError> {
        let kept = nothing();
        let (log, segment, begins, _) = Log::recover(Arc::new(disk.clone()), &kept, 0, segment_bytes)?;
        let history = Mutex::new(vec![state(&kept)]);
        let Kept { boards, once, nonces } = kept.clone();
        let shared = Shared {
            options: Default::default(),
            boards,
            log: Some(Arc::new(log)),
            store: None,
            keys: None,
            once,
            nonces,
            tallies: Vec::new(),
            connections: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
        };
        Ok(Arc::new(Life {
            disk: disk.clone(),
            shared,
            kept,
            segment: Mutex::new(segment),
            begins: Mutex::new(begins),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            history,
        }))
    }

    fn log(&self) -> &Log {
        self.shared.log.as_ref().unwrap()
    }

    fn draw(&self, below: u32) -> u32 {
        self.random.lock().u32(..below)
    }

    /// Changes that the disk has acknowledged, and the states after each number of changes.
    pub(super) fn ended(&self) -> (usize, Vec<State>) {
        (self.log().durable() as usize, self.history.lock().clone())
    }

    fn change(&self) {
        match self.draw(8) {
            0 => self.change_once(),
            _ => self.change_a_board(),
        }
        let (position, mut history) = (self.log().position() as usize, self.history.lock());
        while history.len() <= position {
            history.push(state(&self.kept));
        }
    }

    /// A signed change with an idempotency key: nonce, change and answer are there together, or none of them.
    fn change_once(&self) {
        let _together = changes::together(&self.shared);
        let before = self.log().position();
        let (nonce, expires_s) = (self.draw(u32::MAX).to_le_bytes(), unix_s() + 300);
        let signed = Signed { key: "game", nonce: &nonce, expires_s };
        self.kept.nonces.restore(&signed);
        changes::keep_nonce(&self.shared, &signed);
        self.change_a_board();
        let answer = Answer {
            at_s: unix_s(),
            signer: b"game",
            key: &nonce,
            digest: &[3; 32],
            status: 200,
            body: &nonce,
        };
        self.kept.once.restore(&answer);
        self.log().change(|records| records.answered(&answer));
        // A crash never leaves an intermediate state: the initial one stands for them.
        let mut history = self.history.lock();
        let state_before = history[before as usize].clone();
        while history.len() < self.log().position() as usize {
            history.push(state_before.clone());
        }
    }

    fn change_a_board(&self) {
        let shared = &self.shared;
        let name = BOARDS[self.draw(3) as usize];
        let members: Vec<String> = (0..3).map(|_| format!("m{}", self.draw(12))).collect();
        let mode = [Mode::Increment, Mode::Replace, Mode::Best, Mode::Decrement][self.draw(4) as usize];
        let score = if self.draw(8) == 0 { i128::MAX } else { i128::from(self.draw(100)) }.into();
        match (self.draw(20), shared.boards.get(name)) {
            (0, Some(_)) => drop(changes::delete_board(shared, name)),
            (_, None) => {
                let options = Options {
                    direction: if self.draw(2) == 0 { Direction::Ascending } else { Direction::Descending },
                    ties: [TieRule::Random, TieRule::First, TieRule::Last][self.draw(3) as usize],
                    seed: None,
                };
                changes::create_board(shared, Some(name), options).unwrap();
            }
            (10, Some(board)) => {
                let text = ["blue", "red", ""][self.draw(3) as usize];
                let text = Some(text).filter(|text| !text.is_empty());
                changes::set_metadata(shared, &board, &members[0], text).unwrap();
            }
            (11, Some(board)) => {
                let season = format!("s{}", self.draw(5));
                if changes::end_season(shared, &board, &season).is_err() {
                    changes::delete_season(shared, &board, &season).unwrap();
                }
            }
            (12, Some(board)) => {
                let schedule = Schedule { next_end_s: u64::from(self.draw(1_000)), every_s: 1_000_000 };
                changes::set_schedule(shared, &board, Some(schedule).filter(|_| self.draw(3) > 0));
            }
            (13, Some(_)) => changes::end_due_seasons(shared, u64::from(self.draw(1_000))),
            (1..=2, Some(board)) => drop(changes::delete_member(shared, &board, &members[0])),
            (3..=9, Some(_)) => {
                let update = |member| Update { member, mode, score: i64::from(self.draw(50)).into() };
                let mut parts = vec![(name, members.iter().map(|member| update(member)).collect())];
                if let Some(other) = BOARDS.iter().find(|each| shared.boards.get(each).is_some()) {
                    parts.push((*other, vec![update("both")]));
                }
                changes::update_bulk(shared, &parts).unwrap();
            }
            (_, Some(board)) => {
                changes::update(shared, &board, &members[0], mode, &score).unwrap();
            }
        }
    }

    /// The writer's turn, unless it is at work already. False when the disk has refused.
    fn commit(&self) -> bool {
        let Some(mut segment) = self.segment.try_lock() else { return true };
        self.log().take(&mut segment);
        self.log().commit(&mut segment).is_ok()
    }

    /// The turn of the snapshots' thread.
    fn snapshot(&self) {
        let Some(number) = self.begins.lock().try_iter().last() else { return };
        let mut may_count = || {
            let position = self.log().position();
            self.commit() && self.log().durable() >= position
        };
        let written = snapshots::write(&self.disk, number, &self.kept, &mut may_count);
        if matches!(written, Ok(true)) {
            snapshots::remove_older(&self.disk, number);
        }
    }

    /// Goes on until the power is cut, or for so many turns.
    pub(super) fn live(self: &Arc<Self>, turns: usize) {
        let others = Arc::downgrade(self);
        self.disk.set_hook(Some(Box::new(move || {
            let Some(life) = others.upgrade() else { return };
            match life.draw(6) {
                0..=1 => life.change(),
                2 => drop(life.commit()),
                _ => {}
            }
        })));
        for _ in 0..turns {
            match self.draw(12) {
                0..=5 => self.change(),
                6 => self.disk.limit(Some(self.disk.bytes() + u64::from(self.draw(2_000)))),
                7 => self.disk.limit(None),
                _ => {
                    assert!(self.commit() || self.disk.is_cut(), "only a power cut ends the writer");
                    self.snapshot();
                }
            }
            if self.disk.is_cut() {
                break;
            }
        }
        self.disk.set_hook(None);
        self.disk.limit(None);
    }
}

#[test]
fn a_thousand_power_cuts_lose_nothing_that_was_acknowledged_and_split_no_change() {
    let (mut cuts, mut in_recovery, mut lost_unacknowledged) = (0, 0, 0);
    for seed in 0.. {
        if cuts >= 1_000 {
            break;
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = SimulatedDisk::default();
        disk.give_log_room([0, 100, 2_000][random.usize(..3)]);
        // The acknowledged changes and all changes of the previous run, whose state must be found.
        let mut before: (usize, Vec<State>) = (0, vec![state(&nothing())]);
        for _ in 0..random.usize(1..8) {
            let most = [20, 60, 300][random.usize(..3)];
            disk.cut_after(random.u64(1..most));
            match Life::begin(&disk, random.u64(..), random.u64(100..3_000)) {
                Ok(life) => {
                    let (acknowledged, states) = &before;
                    let found = &life.history.lock()[0].clone();
                    let at = (*acknowledged..states.len()).find(|at| states[*at] == *found);
                    let at = at.unwrap_or_else(|| {
                        panic!(
                            "seed {seed}: of {acknowledged} to {} changes none has led to {found:?}",
                            states.len() - 1
                        )
                    });
                    lost_unacknowledged += states.len() - 1 - at;
                    life.live(random.usize(1..200));
                    before = life.ended();
                }
                Err(error) => {
                    assert!(disk.is_cut(), "seed {seed}: {error}");
                    in_recovery += 1;
                }
            }
            // A process that was only killed leaves what it has written, synced or not.
            if random.u8(..4) > 0 {
                disk = disk.after_power_cut(&mut random);
                cuts += 1;
            }
        }
    }
    // Otherwise the test would not have tested what it claims.
    assert!(in_recovery > 50 && lost_unacknowledged > 200, "{in_recovery}, {lost_unacknowledged}");
}

#[test]
fn a_full_disk_acknowledges_nothing_and_goes_on_when_there_is_room() {
    let disk = SimulatedDisk::default();
    let life = Life::begin(&disk, 1, 1 << 20).unwrap();
    (0..20).for_each(|_| life.change());
    assert!(life.commit());
    let acknowledged = life.log().position();
    assert_eq!(life.log().durable(), acknowledged);
    disk.limit(Some(disk.bytes() + 30));
    (0..20).for_each(|_| life.change());
    for _ in 0..3 {
        assert!(life.commit());
        assert!(life.log().is_full());
        assert_eq!(life.log().durable(), acknowledged);
    }
    let bytes = disk.bytes();
    disk.limit(None);
    assert!(life.commit());
    assert!(!life.log().is_full() && disk.bytes() > bytes);
    let (durable, states) = life.ended();
    assert_eq!((durable, durable > acknowledged as usize), (life.log().position() as usize, true));
    let mut random = fastrand::Rng::with_seed(2);
    let found = Life::begin(&disk.after_power_cut(&mut random), 2, 1 << 20).unwrap();
    assert_eq!(found.ended().1[0], states[durable]);
}

/// A log that acknowledges before the disk has synced: what the test above must find.
#[test]
fn an_acknowledgement_before_the_sync_is_found() {
    let is_found = |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = SimulatedDisk::default();
        disk.give_log_room(seed % 2 * 1_000);
        let life = Life::begin(&disk, seed, 1 << 20).unwrap();
        (0..5).for_each(|_| life.change());
        let mut segment = life.segment.lock();
        life.log().take(&mut segment);
        let taken = std::mem::take(&mut segment.taken);
        segment.writer.put(&taken).unwrap();
        life.log().durable.store(life.log().position(), Ordering::Release);
        let (acknowledged, states) = life.ended();
        let found = Life::begin(&disk.after_power_cut(&mut random), seed, 1 << 20).unwrap();
        !states[acknowledged..].contains(&found.ended().1[0])
    };
    assert!((0..20).step_by(2).any(is_found) && (1..20).step_by(2).any(is_found));
}
