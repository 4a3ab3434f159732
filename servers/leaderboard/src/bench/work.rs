//! The load of the benchmark: filling a board, and threads that use it for a slice of time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::{Implementation, Leaderboard, LockWaits, Mode, Score, Update};
use super::{CountingAllocator, Memory, Operation, Settings, Slice};

/// A filled board.
pub(super) struct Subject {
    pub(super) memory: Memory,
    board: Box<dyn Leaderboard>,
}

/// Writes the names of members by number into a buffer: no memory that would compete with the board's for the cache.
struct Names {
    text: String,
    bytes: usize,
}

/// Digits that a `u32` may need.
const DIGITS: usize = 10;

/// The shortest names: a letter and the digits.
pub const NAME_BYTES_MIN: usize = DIGITS + 1;

impl Names {
    fn new(bytes: usize) -> Self {
        assert!(bytes >= NAME_BYTES_MIN, "a name has room for a letter and {DIGITS} digits");
        Self { text: String::with_capacity(bytes), bytes }
    }

    fn name(&mut self, mut number: u32) -> &str {
        let mut digits = [b'0'; DIGITS];
        for digit in digits.iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
        self.text.clear();
        self.text.extend(std::iter::repeat_n('m', self.bytes - DIGITS));
        self.text.extend(digits.map(char::from));
        &self.text
    }
}

/// CPU time of this process so far.
fn process_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "every Linux has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Subject {
    pub(super) fn implementation(&self) -> Implementation {
        self.memory.implementation
    }

    /// A board with all members, added one by one in random order of names' hashes and with random scores.
    pub(super) fn fill(implementation: Implementation, settings: &Settings) -> Self {
        let before = CountingAllocator::live_bytes();
        let start = Instant::now();
        let board = implementation.create(settings.options);
        let mut random = fastrand::Rng::with_seed(1);
        let mut names = Names::new(settings.name_bytes);
        // In bulks, so that filling the actor does not take minutes.
        const BULK: u32 = 256;
        for first in (0..settings.members).step_by(BULK as usize) {
            let numbers = first..settings.members.min(first + BULK);
            let owned: Vec<String> = numbers.map(|number| names.name(number).to_owned()).collect();
            let updates: Vec<Update<'_>> = owned
                .iter()
                .map(|member| Update {
                    member,
                    mode: Mode::Replace,
                    score: random.i64(0..settings.distinct_scores).into(),
                })
                .collect();
            board.update_bulk(&updates).expect("valid names and an empty board");
        }
        let filled_in = start.elapsed();
        let grown = (CountingAllocator::live_bytes() - before) as f64;
        let bytes_per_member =
            CountingAllocator::is_counting().then(|| grown / f64::from(settings.members.max(1)));
        Self { memory: Memory { implementation, bytes_per_member, filled_in }, board }
    }

    /// Lets threads work on the board for one slice.
    pub(super) fn slice(
        &mut self,
        operation: Operation,
        threads: usize,
        round: u64,
        settings: &Settings,
    ) -> Slice {
        let (stop, ready) = (AtomicBool::new(false), Barrier::new(threads + 1));
        let board = &*self.board;
        std::thread::scope(|scope| {
            let (stop, ready) = (&stop, &ready);
            let work = |thread: usize| {
                let random = fastrand::Rng::with_seed(round << 8 | thread as u64);
                move || {
                    let mut worker = Worker::new(board, random, settings, operation);
                    ready.wait();
                    let mut operations = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        worker.operate(operation);
                        operations += 1;
                    }
                    operations * operation.items() as u64
                }
            };
            let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
            ready.wait();
            let (start, cpu, allocations, waits) =
                (Instant::now(), process_cpu(), CountingAllocator::count(), board.lock_waits());
            std::thread::sleep(settings.slice);
            stop.store(true, Ordering::Relaxed);
            let items = workers.into_iter().map(|worker| worker.join().expect("no panic")).sum();
            let waited = board.lock_waits();
            Slice {
                items,
                wall: start.elapsed(),
                cpu: process_cpu().saturating_sub(cpu),
                allocations: CountingAllocator::count() - allocations,
                waits: LockWaits {
                    count: waited.count - waits.count,
                    total_ns: waited.total_ns - waits.total_ns,
                },
            }
        })
    }
}

/// One thread's load.
struct Worker<'a> {
    board: &'a dyn Leaderboard,
    random: fastrand::Rng,
    members: u32,
    distinct_scores: i64,
    names: Vec<Names>,
}

impl<'a> Worker<'a> {
    fn new(
        board: &'a dyn Leaderboard,
        random: fastrand::Rng,
        settings: &Settings,
        operation: Operation,
    ) -> Self {
        let names = (0..operation.items()).map(|_| Names::new(settings.name_bytes)).collect();
        let &Settings { members, distinct_scores, .. } = settings;
        Self { board, random, members, distinct_scores, names }
    }

    fn operate(&mut self, operation: Operation) {
        let (random, members, distinct) = (&mut self.random, self.members, self.distinct_scores);
        match operation {
            Operation::Update => {
                let score: Score = random.i64(0..distinct).into();
                let name = self.names[0].name(random.u32(0..members));
                std::hint::black_box(self.board.update(name, Mode::Replace, &score).expect("a valid name"));
            }
            Operation::Rank => {
                let name = self.names[0].name(random.u32(0..members));
                std::hint::black_box(self.board.get(name).expect("a member"));
            }
            Operation::UpdateBulk(_) => {
                let updates: Vec<Update<'_>> = self
                    .names
                    .iter_mut()
                    .map(|name| Update {
                        member: name.name(random.u32(0..members)),
                        mode: Mode::Replace,
                        score: random.i64(0..distinct).into(),
                    })
                    .collect();
                std::hint::black_box(self.board.update_bulk(&updates).expect("valid names"));
            }
            Operation::RankBulk(_) => {
                let members: Vec<&str> =
                    self.names.iter_mut().map(|name| name.name(random.u32(0..members))).collect();
                std::hint::black_box(self.board.get_many(&members));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_length_asked_for_and_differ() {
        let mut names = Names::new(14);
        assert_eq!(names.name(0), "mmmm0000000000");
        assert_eq!(names.name(u32::MAX), "mmmm4294967295");
        assert_eq!(Names::new(36).name(7).len(), 36);
    }
}
