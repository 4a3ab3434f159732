//! The implementations compared in process: updates, ranks and bulks per second, and why they differ.
//!
//! All boards of a comparison exist at once, and short slices of each alternate, so that a disturbance of the machine
//! affects all of them. A ratio is the median of the ratios within rounds, not a ratio of medians.
//! Every operation names its member by text, as a request would, and every update returns the rank.
//! Units: rates in items per second over all threads (a bulk of 16 counts 16), CPU in ns per item, shares in [0, 1].

mod allocations;
mod work;

pub use allocations::CountingAllocator;
pub use work::NAME_BYTES_MIN;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Implementation, LockWaits, Options};
use work::Subject;

/// What a thread does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Replace the score of a random member, rank returned.
    Update,
    /// Score and rank of a random member.
    Rank,
    /// As `Update`, this many members in one bulk.
    UpdateBulk(usize),
    /// As `Rank`, this many members at once.
    RankBulk(usize),
}

impl Operation {
    /// Items of one operation.
    fn items(self) -> usize {
        match self {
            Self::Update | Self::Rank => 1,
            Self::UpdateBulk(size) | Self::RankBulk(size) => size,
        }
    }
}

impl fmt::Display for Operation {
    /// As it is read: `bulk:16`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Update => out.pad("update"),
            Self::Rank => out.pad("rank"),
            Self::UpdateBulk(size) => out.pad(&format!("bulk:{size}")),
            Self::RankBulk(size) => out.pad(&format!("ranks:{size}")),
        }
    }
}

/// A text that names no operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no operation; there are update, rank, bulk:N and ranks:N, with N from 1 to 10000")]
pub struct UnknownOperation(String);

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(text: &str) -> Result<Self, UnknownOperation> {
        let unknown = || UnknownOperation(text.to_owned());
        let size =
            |size: &str| size.parse().ok().filter(|size| (1..=10_000).contains(size)).ok_or_else(unknown);
        match text.split_once(':') {
            None if text == "update" => Ok(Self::Update),
            None if text == "rank" => Ok(Self::Rank),
            Some(("bulk", count)) => size(count).map(Self::UpdateBulk),
            Some(("ranks", count)) => size(count).map(Self::RankBulk),
            _ => Err(unknown()),
        }
    }
}

/// What to compare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which boards, in the order of the report.
    pub implementations: Vec<Implementation>,
    /// Numbers of threads, one after the other.
    pub threads: Vec<usize>,
    /// Operations, one after the other.
    pub operations: Vec<Operation>,
    /// Members of each board.
    pub members: u32,
    /// Scores are drawn from 0 up to this, exclusive.
    pub distinct_scores: i64,
    /// Bytes of a member's name, at least `NAME_BYTES_MIN`.
    pub name_bytes: usize,
    /// Rounds of each combination; in each, every board has one slice.
    pub rounds: usize,
    /// How long a slice lasts.
    pub slice: Duration,
    /// Order and ties of the boards.
    pub options: Options,
}

impl Default for Settings {
    /// A million members, 20 slices of 250 ms each.
    fn default() -> Self {
        Self {
            implementations: Implementation::ALL.to_vec(),
            threads: vec![1],
            operations: vec![Operation::Update],
            members: 1_000_000,
            distinct_scores: 1_000_000_000,
            name_bytes: 14,
            rounds: 20,
            slice: Duration::from_millis(250),
            options: Options::default(),
        }
    }
}

/// What one board did in one combination of operation and number of threads.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Which board.
    pub implementation: Implementation,
    /// What it was asked.
    pub operation: Operation,
    /// By how many threads at once.
    pub threads: usize,
    /// Items per second, round by round.
    pub rates_per_s: Vec<f64>,
    /// This board's rate over the peer's, round by round; empty if the peer was not measured.
    pub ratios: Vec<f64>,
    /// CPU time of the process per item: the threads that ask and those that the board has.
    pub cpu_ns_per_item: f64,
    /// Heap allocations per item; `None` without `CountingAllocator`.
    pub allocations_per_item: Option<f64>,
    /// Share of the threads' time that they waited for the board's locks, or for its owner.
    pub lock_wait_share: f64,
}

/// The memory of one board.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Which board.
    pub implementation: Implementation,
    /// Heap bytes per member, with what the heap adds to each block; `None` without `CountingAllocator`.
    pub bytes_per_member: Option<f64>,
    /// How long it took to add all members one by one.
    pub filled_in: Duration,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One entry per board.
    pub memory: Vec<Memory>,
    /// By operation, then number of threads, then board.
    pub cells: Vec<Cell>,
}

/// The median; 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (len, middle) if len % 2 == 1 => sorted[middle],
        (_, middle) => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

impl Cell {
    /// Median rate, items per second.
    pub fn rate_per_s(&self) -> f64 {
        median(&self.rates_per_s)
    }

    /// Lowest and highest rate of a round.
    pub fn spread_per_s(&self) -> (f64, f64) {
        let lowest = self.rates_per_s.iter().copied().fold(f64::INFINITY, f64::min);
        (lowest, self.rates_per_s.iter().copied().fold(0.0, f64::max))
    }

    /// Median of the ratios to the peer.
    pub fn ratio(&self) -> Option<f64> {
        (!self.ratios.is_empty()).then(|| median(&self.ratios))
    }
}

/// What a board did in one slice.
struct Slice {
    items: u64,
    wall: Duration,
    cpu: Duration,
    allocations: u64,
    waits: LockWaits,
}

/// Compares boards. Takes operations × threads × boards × rounds × slice, and the time to fill the boards.
pub fn run(settings: &Settings) -> Report {
    CountingAllocator::start();
    let mut subjects: Vec<Subject> = settings
        .implementations
        .iter()
        .map(|&implementation| Subject::fill(implementation, settings))
        .collect();
    let memory = subjects.iter().map(|subject| subject.memory).collect();
    let mut report = Report { memory, cells: Vec::new() };
    for &operation in &settings.operations {
        for &threads in &settings.threads {
            report.cells.extend(compare(&mut subjects, operation, threads, settings));
        }
    }
    report
}

fn compare(subjects: &mut [Subject], operation: Operation, threads: usize, settings: &Settings) -> Vec<Cell> {
    let mut slices: Vec<Vec<Slice>> = subjects.iter().map(|_| Vec::new()).collect();
    for round in 0..settings.rounds {
        // Each round starts with a different board, so that none always follows the same one.
        for turn in 0..subjects.len() {
            let at = (round + turn) % subjects.len();
            let slice = subjects[at].slice(operation, threads, round as u64, settings);
            slices[at].push(slice);
        }
    }
    let rate = |slice: &Slice| slice.items as f64 / slice.wall.as_secs_f64();
    let peer = subjects.iter().position(|each| each.implementation() == Implementation::HashMapIndexSet);
    let peer_rates: Vec<f64> = peer.map_or(Vec::new(), |at| slices[at].iter().map(rate).collect());
    let cell = |(subject, slices): (&Subject, &Vec<Slice>)| {
        let rates_per_s: Vec<f64> = slices.iter().map(rate).collect();
        let sum = |part: fn(&Slice) -> f64| slices.iter().map(part).sum::<f64>();
        let items = sum(|slice| slice.items as f64).max(1.0);
        let waited_s = sum(|slice| slice.waits.total_ns as f64) / 1e9;
        Cell {
            implementation: subject.implementation(),
            operation,
            threads,
            ratios: rates_per_s.iter().zip(&peer_rates).map(|(own, peer)| own / peer).collect(),
            rates_per_s,
            cpu_ns_per_item: sum(|slice| slice.cpu.as_secs_f64()) * 1e9 / items,
            allocations_per_item: CountingAllocator::is_counting()
                .then(|| sum(|slice| slice.allocations as f64) / items),
            lock_wait_share: waited_s / (sum(|slice| slice.wall.as_secs_f64()) * threads as f64),
        }
    };
    subjects.iter().zip(&slices).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_comparison_yields_a_cell_for_each_combination() {
        let settings = Settings {
            threads: vec![1, 2],
            operations: vec![Operation::Update, Operation::RankBulk(4)],
            members: 200,
            rounds: 2,
            // Long enough that each thread gets a core meanwhile, even next to other tests.
            slice: Duration::from_millis(20),
            ..Settings::default()
        };
        let report = run(&settings);
        assert_eq!(report.memory.len(), Implementation::ALL.len());
        assert_eq!(report.cells.len(), 2 * 2 * Implementation::ALL.len());
        for cell in &report.cells {
            assert_eq!((cell.rates_per_s.len(), cell.ratios.len()), (2, 2));
            assert!(cell.rate_per_s() > 0.0 && cell.ratio().is_some_and(|ratio| ratio > 0.0), "{cell:?}");
            assert!(cell.cpu_ns_per_item > 0.0 && cell.lock_wait_share <= 1.5, "{cell:?}");
            if cell.implementation == Implementation::HashMapIndexSet {
                assert_eq!(cell.ratios, [1.0, 1.0]);
            }
        }
    }

    #[test]
    fn operations_are_read_from_text_and_others_are_refused() {
        assert_eq!("bulk:16".parse(), Ok(Operation::UpdateBulk(16)));
        assert_eq!("ranks:300".parse(), Ok(Operation::RankBulk(300)));
        assert_eq!(("update".parse(), "rank".parse()), (Ok(Operation::Update), Ok(Operation::Rank)));
        for wrong in ["", "bulk", "bulk:0", "bulk:x", "update:3", "ranks:10001"] {
            assert_eq!(wrong.parse::<Operation>(), Err(UnknownOperation(wrong.to_owned())));
        }
        for name in ["update", "rank", "bulk:16", "ranks:300"] {
            assert_eq!(name.parse::<Operation>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!([median(&[]), median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])], [0.0, 2.0, 2.5]);
    }
}
