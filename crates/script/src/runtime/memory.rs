//! How much memory the bots of a worker take, and when it is too much.
//!
//! The engine takes its blocks from the allocator here. What a turn adds counts for the bot whose turn it is, and what it frees is
//! deducted. Circles of garbage are freed in any bot's turn; whose they were is not known, so a collection between two turns is
//! in each bot's favour. One bot that keeps much is found sooner, and none that keeps little is ever stopped for another's.
//! A bot that asks beyond its bound does not get the memory: an error of JavaScript, and the end of its turn and of the bot.
//! Commands that hold messages are counted while they wait for the end of the turn.
//! Units: bytes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rquickjs::allocator::{Allocator, RustAllocator};

/// One bot may take so much.
const BOT_BYTES_MAX: usize = 256 << 20;
/// All bots of a worker together.
const WORKER_BYTES_MAX: usize = 2 << 30;
/// Bots that hold less may go beyond the bound of all, so that those that filled it are stopped and not these.
const SMALL_BYTES: usize = 16 << 20;
const RESERVE_BYTES: usize = 256 << 20;
/// So that an error can still be made and told.
const ERROR_BYTES: usize = 1 << 20;
/// Circles are looked for when so much was taken, and again when there is half as much more than was left.
const COLLECT_AT_BYTES: usize = 64 << 20;
/// A bot that holds so much may hold circles, which are looked for first, and again when it holds `RECHECK_BYTES` more.
const CHECK_BYTES: usize = BOT_BYTES_MAX / 2;
const RECHECK_BYTES: usize = 32 << 20;

/// Which bound was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Bot,
    Worker,
}

impl Bound {
    /// What happened, behind the name of what met it.
    pub fn words(self) -> String {
        match self {
            Bound::Bot => format!("took more than {} MiB of memory and was stopped", BOT_BYTES_MAX >> 20),
            Bound::Worker => format!(
                "asked for more memory when all bots of its worker had taken {} GiB, and was stopped",
                WORKER_BYTES_MAX >> 30
            ),
        }
    }
}

/// Of one bot.
#[derive(Clone, Copy)]
struct Held {
    bytes: usize,
    /// circles are looked for before its next turn
    check_at: usize,
}

impl Held {
    const NOTHING: Held = Held { bytes: 0, check_at: CHECK_BYTES };
}

/// What was taken, by all and by each bot.
pub(super) struct Memory {
    taken: Cell<usize>,
    /// of commands that wait for the end of the turn
    waiting: Cell<usize>,
    limit: Cell<usize>,
    met: Cell<Option<Bound>>,
    limit_is_of: Cell<Bound>,
    /// at the beginning of the turn
    before: Cell<usize>,
    held: RefCell<Vec<Held>>,
    collect_at: Cell<usize>,
}

impl Memory {
    /// Before any bot there is only the bound of all.
    pub fn new() -> Memory {
        Memory {
            taken: Cell::new(0),
            waiting: Cell::new(0),
            limit: Cell::new(WORKER_BYTES_MAX),
            met: Cell::new(None),
            limit_is_of: Cell::new(Bound::Worker),
            before: Cell::new(0),
            held: RefCell::default(),
            collect_at: Cell::new(COLLECT_AT_BYTES),
        }
    }

    pub fn taken(&self) -> usize {
        self.taken.get()
    }

    /// A bot's turn begins. `collect` looks for circles of garbage, which is done where it is time to.
    pub fn begin(&self, bot: u32, collect: impl FnOnce()) {
        let of = |held: &[Held]| held.get(bot as usize).copied().unwrap_or(Held::NOTHING);
        let held = of(&self.held.borrow());
        if self.taken.get() > self.collect_at.get() || held.bytes > held.check_at {
            self.collect(collect);
        }
        let held = of(&self.held.borrow()).bytes;
        let taken = self.taken.get();
        let of_bot = taken + BOT_BYTES_MAX.saturating_sub(held);
        let of_all = WORKER_BYTES_MAX + if held < SMALL_BYTES { RESERVE_BYTES } else { 0 };
        self.before.set(taken);
        self.limit.set(of_bot.min(of_all));
        self.limit_is_of.set(if of_bot <= of_all { Bound::Bot } else { Bound::Worker });
        self.met.set(None);
    }

    fn collect(&self, collect: impl FnOnce()) {
        let before = self.taken.get();
        collect();
        let after = self.taken.get();
        let soon = (after + COLLECT_AT_BYTES).max(WORKER_BYTES_MAX / 8 * 7);
        self.collect_at.set((after + after / 2).min(soon).max(COLLECT_AT_BYTES));
        for held in self.held.borrow_mut().iter_mut() {
            held.bytes = held.bytes.saturating_sub(before.saturating_sub(after));
            held.check_at = CHECK_BYTES.max(held.bytes + RECHECK_BYTES);
        }
    }

    /// It ends. Which bound it met.
    pub fn end(&self, bot: u32) -> Option<Bound> {
        let mut held = self.held.borrow_mut();
        let bot = bot as usize;
        if held.len() <= bot {
            held.resize(bot + 1, Held::NOTHING);
        }
        held[bot].bytes = (held[bot].bytes + self.taken.get()).saturating_sub(self.before.get());
        self.limit.set(usize::MAX);
        self.met.take()
    }

    /// A bot has gone. What it held is freed in time.
    pub fn forget(&self, bot: u32) {
        if let Some(held) = self.held.borrow_mut().get_mut(bot as usize) {
            *held = Held::NOTHING;
        }
    }

    pub fn has_met_a_bound(&self) -> bool {
        self.met.get().is_some()
    }

    /// Whether so much more may be taken.
    pub fn may_take(&self, more: usize) -> bool {
        let is_over = (self.taken.get() + self.waiting.get()).saturating_add(more) > self.limit.get();
        if is_over && self.met.replace(Some(self.limit_is_of.get())).is_none() {
            self.limit.set(self.limit.get().saturating_add(ERROR_BYTES));
        }
        !is_over
    }

    /// Counts a command until `have_left`. Whether there is memory for it.
    pub fn may_wait(&self, bytes: usize) -> bool {
        let may = self.may_take(bytes);
        if may {
            self.waiting.set(self.waiting.get() + bytes);
        }
        may
    }

    /// All commands have left.
    pub fn have_left(&self) {
        self.waiting.set(0);
    }

    fn add(&self, bytes: usize) {
        self.taken.set(self.taken.get() + bytes);
    }

    fn remove(&self, bytes: usize) {
        self.taken.set(self.taken.get().saturating_sub(bytes));
    }
}

/// What the engine takes its memory from.
pub(super) struct Counting(pub Rc<Memory>);

impl Counting {
    /// Counts a block that was given.
    fn given(&self, block: *mut u8) -> *mut u8 {
        if !block.is_null() {
            // SAFETY: the block is of this allocator and was given just now.
            self.0.add(unsafe { RustAllocator::usable_size(block) });
        }
        block
    }
}

// SAFETY: each block is one of `RustAllocator`, which keeps the promises of the trait; null where there shall be none.
unsafe impl Allocator for Counting {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.may_take(size) {
            return std::ptr::null_mut();
        }
        self.given(RustAllocator.alloc(size))
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !self.0.may_take(count.saturating_mul(size)) {
            return std::ptr::null_mut();
        }
        self.given(RustAllocator.calloc(count, size))
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        // SAFETY: the caller's promise is that of `RustAllocator`.
        unsafe {
            self.0.remove(RustAllocator::usable_size(block));
            RustAllocator.dealloc(block);
        }
    }

    unsafe fn realloc(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        if block.is_null() {
            return self.alloc(size);
        }
        // SAFETY: the caller's promise is that of `RustAllocator`; what is refused is left as it was.
        unsafe {
            let before = RustAllocator::usable_size(block);
            if size > before && !self.0.may_take(size - before) {
                return std::ptr::null_mut();
            }
            let moved = RustAllocator.realloc(block, size);
            if !moved.is_null() {
                self.0.remove(before);
            }
            self.given(moved)
        }
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        // SAFETY: the caller's promise is that of `RustAllocator`.
        unsafe { RustAllocator::usable_size(block) }
    }
}
