//! A room: its lines that not every thread has fetched yet, and its members.
//!
//! Rooms span threads, and all members see the lines in one order: that in which they were appended here, which happens
//! as soon as they are read. A thread fetches new lines when it writes, so everything read before, on whichever thread,
//! is included. The lock is held while copying one read's lines, or a few references.
//! A line's number counts the lines of its room since the beginning, those included that another node said and that
//! never came. To a room that spans nodes their link is one more thread, without members.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::batch::{Batch, ELSEWHERE, Speech};
use super::memory::Counter;

/// A batch that has grown so large is frozen, so that a flood does not make one of any size.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// What a room holds for threads that have not fetched it; beyond this, who speaks there is not read.
const HELD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The names in one answer to `/who` take this at most.
const NAMES_BYTES_MAX: usize = 2048;

pub(super) struct Room {
    name: Box<str>,
    /// Of this room from its first member to its last one.
    id: u32,
    threads: usize,
    /// Who enters has joined: the other nodes, if there are any, know of this room.
    is_confirmed: AtomicBool,
    /// Bytes that are held, as of the last change.
    held_bytes: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    open: Batch,
    frozen: VecDeque<Arc<Batch>>,
    frozen_bytes: usize,
    /// Where frozen batches are counted.
    counter: Counter,
    /// Count of batches that were frozen and let go.
    gone: u64,
    /// Of each thread; of the link behind them, if there is one.
    shares: Box<[Share]>,
    /// Clients that are here through other nodes, and how many nodes these are.
    elsewhere: (u32, u32),
    /// Of those members that have one.
    names: BTreeSet<Arc<str>>,
}

/// One thread's part in the room.
#[derive(Clone, Default)]
struct Share {
    members: u32,
    /// What the thread calls this room.
    local: u32,
    /// It knows that there is something to fetch.
    told: bool,
    /// Count of batches that it has fetched, or that do not concern it.
    fetched: u64,
}

/// A thread that must learn that there is something to fetch, and what it calls the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tell {
    pub(super) thread: usize,
    pub(super) local: u32,
}

impl Room {
    /// A room that spans nodes is not confirmed yet.
    pub(super) fn new(name: &str, id: u32, threads: usize, spans_nodes: bool, counter: Counter) -> Room {
        let mut shares = vec![Share::default(); threads + usize::from(spans_nodes)];
        if spans_nodes {
            // It fetches whatever is said.
            shares[threads] = Share { members: 1, local: id, ..Share::default() };
        }
        let state = State {
            open: Batch::default(),
            frozen: VecDeque::new(),
            frozen_bytes: 0,
            counter,
            gone: 0,
            shares: shares.into(),
            elsewhere: (0, 0),
            names: BTreeSet::new(),
        };
        Room {
            name: name.into(),
            id,
            threads,
            is_confirmed: AtomicBool::new(!spans_nodes),
            held_bytes: AtomicUsize::new(0),
            state: Mutex::new(state),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.is_confirmed.load(Ordering::SeqCst)
    }

    /// Who is here has joined. Adds to `tell` the threads that have members.
    pub(super) fn confirm(&self, tell: &mut Vec<Tell>) {
        self.is_confirmed.store(true, Ordering::SeqCst);
        self.lock().tell_of_news(tell);
    }

    /// Clients that are here through other nodes, and how many nodes these are.
    pub(super) fn set_elsewhere(&self, elsewhere: (u32, u32)) {
        self.lock().elsewhere = elsewhere;
    }

    /// Clients of this node that are here.
    pub(super) fn member_count(&self) -> u32 {
        self.lock().member_count(self.threads)
    }

    /// A thread does not keep up, and who speaks here should wait.
    pub(super) fn is_heavy(&self) -> bool {
        self.held_bytes.load(Ordering::Relaxed) > HELD_BYTES_MAX
    }

    /// Appends lines; returns the room's count of lines after them. Adds to `tell` who must be told.
    pub(super) fn say(&self, speech: &Speech, sender: u32, tell: &mut Vec<Tell>) -> u64 {
        let mut state = self.lock();
        state.open.push(speech, sender);
        if state.open.bytes().len() > BATCH_BYTES_MAX {
            state.freeze();
        }
        state.tell_of_news(tell);
        self.weigh(&state);
        state.open.end_line()
    }

    /// Appends lines of another node, before which so many are missing that never came.
    pub(super) fn hear(&self, missing: u64, lines: &str, tell: &mut Vec<Tell>) {
        if missing > 0 {
            let mut state = self.lock();
            state.freeze();
            let gap = Batch::of_missing(state.open.end_line(), missing);
            state.open = Batch::beginning_at(gap.end_line());
            state.frozen.push_back(Arc::new(gap));
            state.tell_of_news(tell);
        }
        if !lines.is_empty() {
            self.say(&Speech::of_lines(lines), ELSEWHERE, tell);
        }
    }

    /// Adds everything that the link has not fetched to `batches`, oldest first.
    pub(super) fn fetch_for_nodes(&self, batches: &mut Vec<Arc<Batch>>) {
        self.fetch(self.threads, batches);
    }

    /// Adds everything that the thread has not fetched to `batches`, oldest first.
    pub(super) fn fetch(&self, thread: usize, batches: &mut Vec<Arc<Batch>>) {
        let mut state = self.lock();
        state.freeze();
        let gone = state.gone;
        let share = &mut state.shares[thread];
        share.told = false;
        let fetched = std::mem::replace(&mut share.fetched, 0);
        batches.extend(state.frozen.iter().skip((fetched - gone) as usize).cloned());
        state.shares[thread].fetched = gone + state.frozen.len() as u64;
        state.let_go();
        self.weigh(&state);
    }

    /// Takes in a client of `thread`: owed is every line from the returned number on. Also how many are here now.
    pub(super) fn enter(&self, thread: usize, local: u32, name: Option<Arc<str>>) -> (u64, u32) {
        let mut state = self.lock();
        let next = state.gone + state.frozen.len() as u64;
        let share = &mut state.shares[thread];
        if share.members == 0 {
            *share = Share { members: 0, local, told: false, fetched: next };
        }
        share.members += 1;
        if let Some(name) = name {
            state.names.insert(name);
        }
        (state.open.end_line(), state.member_count(self.threads))
    }

    /// Lets a client go; returns how many are left.
    pub(super) fn leave(&self, thread: usize, name: Option<&str>) -> u32 {
        let mut state = self.lock();
        state.shares[thread].members -= 1;
        if let Some(name) = name {
            state.names.remove(name);
        }
        state.let_go();
        self.weigh(&state);
        state.member_count(self.threads)
    }

    pub(super) fn rename(&self, old: Option<&str>, new: Arc<str>) {
        let mut state = self.lock();
        if let Some(old) = old {
            state.names.remove(old);
        }
        state.names.insert(new);
    }

    /// The answer to `/who`; `is_alone`: nothing is known of the other nodes.
    pub(super) fn who(&self, is_alone: bool) -> String {
        let state = self.lock();
        let here = state.member_count(self.threads);
        let mut answer = format!("* {here} in {}", self.name);
        let mut named = 0;
        for name in &state.names {
            if answer.len() + name.len() > NAMES_BYTES_MAX {
                break;
            }
            let before = if named == 0 { ": " } else { ", " };
            let _ = write!(answer, "{before}{name}");
            named += 1;
        }
        if named > 0 && named < here {
            let _ = write!(answer, " and {} more", here - named);
        }
        match state.elsewhere {
            _ if is_alone => answer.push_str("; the other nodes cannot be reached"),
            (0, _) => {}
            (members, 1) => drop(write!(answer, "; {members} on another node")),
            (members, nodes) => drop(write!(answer, "; {members} on {nodes} other nodes")),
        }
        answer.push('\n');
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn weigh(&self, state: &State) {
        self.held_bytes.store(state.frozen_bytes + state.open.bytes().len(), Ordering::Relaxed);
    }
}

impl State {
    fn freeze(&mut self) {
        if !self.open.is_empty() {
            let next = Batch::beginning_at(self.open.end_line());
            let mut full = std::mem::replace(&mut self.open, next);
            full.freeze(&self.counter);
            self.frozen_bytes += full.bytes().len();
            self.frozen.push_back(Arc::new(full));
        }
    }

    /// Forgets what every thread with members has fetched.
    fn let_go(&mut self) {
        let needed = self.shares.iter().filter(|share| share.members > 0).map(|share| share.fetched).min();
        let needed = needed.unwrap_or(self.gone + self.frozen.len() as u64);
        while self.gone < needed
            && let Some(batch) = self.frozen.pop_front()
        {
            self.frozen_bytes -= batch.bytes().len();
            self.gone += 1;
        }
    }

    /// Adds the threads to `tell` that do not know yet that there is something to fetch.
    fn tell_of_news(&mut self, tell: &mut Vec<Tell>) {
        for (thread, share) in self.shares.iter_mut().enumerate() {
            if share.members > 0 && !share.told {
                share.told = true;
                tell.push(Tell { thread, local: share.local });
            }
        }
    }

    fn member_count(&self, threads: usize) -> u32 {
        self.shares[..threads].iter().map(|share| share.members).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speech(text: &str) -> Speech {
        let mut speech = Speech::default();
        speech.add(None, text);
        speech
    }

    fn fetched(room: &Room, thread: usize) -> String {
        let mut batches = Vec::new();
        room.fetch(thread, &mut batches);
        batches.iter().map(|batch| String::from_utf8_lossy(batch.bytes()).into_owned()).collect()
    }

    #[test]
    fn every_thread_fetches_every_line_once_and_in_the_same_order() {
        let room = Room::new("r", 0, 2, false, Counter::default());
        let mut tell = Vec::new();
        room.enter(0, 10, None);
        room.enter(1, 20, None);
        assert_eq!(room.say(&speech("a"), 1, &mut tell), 1);
        assert_eq!(tell, [Tell { thread: 0, local: 10 }, Tell { thread: 1, local: 20 }]);
        tell.clear();
        room.say(&speech("b"), 2, &mut tell);
        assert!(tell.is_empty(), "both know already");
        assert_eq!(fetched(&room, 0), "a\nb\n");
        room.say(&speech("c"), 2, &mut tell);
        assert_eq!(tell, [Tell { thread: 0, local: 10 }]);
        assert_eq!(fetched(&room, 1), "a\nb\nc\n");
        assert_eq!(fetched(&room, 0), "c\n");
        assert_eq!((fetched(&room, 0), fetched(&room, 1)), (String::new(), String::new()));
        assert_eq!(room.held_bytes.load(Ordering::Relaxed), 0, "nothing is held that all have");
    }

    #[test]
    fn who_enters_is_owed_what_is_said_from_then_on_and_a_thread_without_members_holds_nothing_up() {
        let room = Room::new("r", 0, 2, false, Counter::default());
        let mut tell = Vec::new();
        room.enter(0, 0, None);
        room.say(&speech("before"), 1, &mut tell);
        assert_eq!(room.enter(1, 0, None), (1, 2));
        tell.clear();
        room.say(&speech("after"), 1, &mut tell);
        assert_eq!(tell, [Tell { thread: 1, local: 0 }]);
        assert_eq!(fetched(&room, 0), "before\nafter\n");
        assert_eq!(room.leave(1, None), 1);
        assert_eq!(room.held_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(room.enter(1, 5, None), (2, 2));
        assert_eq!(fetched(&room, 1), "");
    }

    #[test]
    fn a_thread_that_does_not_fetch_makes_the_room_heavy_until_it_does() {
        let room = Room::new("r", 0, 2, false, Counter::default());
        room.enter(0, 0, None);
        room.enter(1, 0, None);
        let long = speech(&"x".repeat(65_535));
        let mut tell = Vec::new();
        while !room.is_heavy() {
            room.say(&long, 1, &mut tell);
            fetched(&room, 0);
        }
        assert!(room.held_bytes.load(Ordering::Relaxed) < HELD_BYTES_MAX + 70_000);
        fetched(&room, 1);
        assert!(!room.is_heavy());
    }

    #[test]
    fn lines_of_another_node_and_those_that_are_missing_have_numbers_of_this_room() {
        let room = Room::new("r", 7, 1, true, Counter::default());
        let (mut tell, mut batches) = (Vec::new(), Vec::new());
        room.enter(0, 3, None);
        assert!(!room.is_confirmed());
        room.confirm(&mut tell);
        // The link has nothing to fetch, and does not need to be told.
        assert_eq!((room.is_confirmed(), tell[0]), (true, Tell { thread: 0, local: 3 }));
        room.say(&speech("a"), 1, &mut tell);
        room.hear(5, "b\nc\n", &mut tell);
        room.hear(2, "", &mut tell);
        assert_eq!(room.enter(0, 3, None), (10, 2), "a member of the link is none of the room");
        room.fetch(0, &mut batches);
        let found: Vec<_> =
            batches.iter().map(|batch| (batch.first_line(), batch.missing(), batch.bytes())).collect();
        assert_eq!(found, [(0, 0, &b"a\n"[..]), (1, 5, b""), (6, 0, b"b\nc\n"), (8, 2, b"")]);
        assert_eq!((batches[2].sender(0), batches[3].end_line()), (ELSEWHERE, 10));
        batches.clear();
        room.fetch_for_nodes(&mut batches);
        assert_eq!(batches.len(), 4, "the link fetches all, too");
        room.set_elsewhere((9, 2));
        assert_eq!(room.who(false), "* 2 in r; 9 on 2 other nodes\n");
        assert_eq!(room.who(true), "* 2 in r; the other nodes cannot be reached\n");
    }

    #[test]
    fn who_is_here_is_told_in_one_line_of_bounded_length() {
        let room = Room::new("kitchen", 0, 1, false, Counter::default());
        room.enter(0, 0, None);
        assert_eq!(room.who(false), "* 1 in kitchen\n");
        room.enter(0, 0, Some("ada".into()));
        assert_eq!(room.who(false), "* 2 in kitchen: ada and 1 more\n");
        room.rename(None, "bob".into());
        assert_eq!(room.who(false), "* 2 in kitchen: ada, bob\n");
        for id in 3..1000 {
            room.enter(0, 0, Some(format!("somebody-{id:03}").into()));
        }
        room.rename(Some("bob"), "carol".into());
        let answer = room.who(false);
        assert!(
            answer.starts_with("* 999 in kitchen: ada, carol, somebody-003, ") && answer.ends_with(" more\n")
        );
        assert!(answer.len() < 2100, "{}", answer.len());
    }
}
