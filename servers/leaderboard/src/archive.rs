//! Boards at rest: a snapshot to store or restore, and the archive of a season that has ended.

use std::sync::OnceLock;

use super::types::{BulkRefused, Page, Record, Refused, Row, Standing, check_member, check_metadata};

/// All of a board at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Changes of the board up to that moment; a log is replayed from the next on.
    pub sequence: u64,
    /// In the order of their ranks.
    pub records: Vec<Record>,
}

impl Snapshot {
    /// Checks all records before the first is restored, on a board with room for `room` more members.
    pub(super) fn check(&self, room: u64) -> Result<(), BulkRefused> {
        for (item, record) in self.records.iter().enumerate() {
            check_member(&record.member)
                .and_then(|()| check_metadata(record.metadata.as_deref()))
                .map_err(|cause| BulkRefused { item, cause })?;
        }
        if self.records.len() as u64 > room {
            return Err(BulkRefused { item: room as usize, cause: Refused::Full });
        }
        Ok(())
    }
}

/// The final standings of a season. Immutable.
#[derive(Debug)]
pub struct Archive {
    /// What the season was called.
    pub season: String,
    /// When it ended, s since the epoch.
    pub ended_at_s: u64,
    snapshot: Snapshot,
    /// Positions in `snapshot.records`, in the order of the members' names; built when a member is first requested.
    by_name: OnceLock<Vec<u32>>,
}

impl Archive {
    /// Keeps `snapshot` as the result of `season`.
    pub fn new(season: String, ended_at_s: u64, snapshot: Snapshot) -> Self {
        Self { season, ended_at_s, snapshot, by_name: OnceLock::new() }
    }

    fn by_name(&self) -> &[u32] {
        self.by_name.get_or_init(|| {
            let records = &self.snapshot.records;
            let mut by_name: Vec<u32> = (0..records.len() as u32).collect();
            by_name.sort_unstable_by_key(|&at| &records[at as usize].member);
            by_name
        })
    }

    /// Members at the end of the season.
    pub fn count(&self) -> u64 {
        self.snapshot.records.len() as u64
    }

    /// A member's final score and rank. O(log n), but O(n log n) the first time.
    pub fn get(&self, member: &str) -> Option<Standing> {
        let name = |at: &u32| &*self.snapshot.records[*at as usize].member;
        let by_name = self.by_name();
        let at = by_name[by_name.binary_search_by(|at| name(at).cmp(member)).ok()?];
        let score = self.snapshot.records[at as usize].score.clone();
        Some(Standing { score, rank: u64::from(at) + 1 })
    }

    /// Up to `limit` rows from rank `first` (1-based) on.
    pub fn range(&self, first: u64, limit: usize) -> Page {
        let first = first.max(1);
        let skipped = usize::try_from(first - 1).unwrap_or(usize::MAX);
        let records = self.snapshot.records.iter().skip(skipped).take(limit);
        let rows = records.zip(first..).map(|(record, rank)| Row {
            rank,
            member: record.member.clone(),
            score: record.score.clone(),
            metadata: record.metadata.clone(),
        });
        Page { total: self.count(), rows: rows.collect() }
    }

    /// What was archived, to be stored.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}
