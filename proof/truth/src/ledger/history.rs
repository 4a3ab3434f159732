//! A broadcast that never happened: who was there, who said what, what the server made of it, all from one seed.
//!
//! Each way (client to server, server to client) takes less than half of the margin, and ways of one connection do not
//! overtake each other, as in TCP. What overtakes does so because the server sent it in that order.

use std::collections::{BTreeMap, BTreeSet};

use measure::ledger::{SEQ_END, ServerReport};

const NEVER: u64 = u64::MAX;
const MS: u64 = 1_000_000;
/// Talk begins; in a static history all have joined before.
const TALK_FROM_NS: u64 = 2_000 * MS;
const TALK_TO_NS: u64 = 8_000 * MS;
/// Everybody who stayed is asked for the last time.
const END_NS: u64 = 20_000 * MS;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// all are members before the first line and stay
    Static,
    /// some come late, go early, come back, are thrown out, or never get in
    Churn,
}

/// What a client saw or did.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Apart,
    Asked,
    Joined,
    Leaving,
    Left,
    Sent { departs: bool },
    Missed(u64),
    ServerReport(ServerReport),
    CaughtUp,
    Read { sender: u32, seq: u32, planned_ns: u64 },
}

/// What the server owed one receiver and what became of it.
#[derive(Default)]
pub struct Truth {
    /// sequence numbers by sender
    pub owed: BTreeMap<u32, BTreeSet<u32>>,
    /// by the server, knowingly; those that it could not tell any more are not among them
    pub dropped: u64,
    /// in the server's backlog at the end
    pub waiting: u64,
    /// by whatever does not know of it
    pub silently_lost: u64,
    /// still had a backlog at the end
    pub is_stalled: bool,
}

pub struct History {
    pub seed: u64,
    pub crowd: u32,
    pub senders: u32,
    pub workers: u32,
    pub echoes: bool,
    pub margin_ns: u64,
    pub patience_ns: u64,
    /// the server tells what it drops
    pub tells: bool,
    /// (ns, bot, what), in the order in which it happened
    pub acts: Vec<(u64, u32, Act)>,
    /// messages that left
    pub departed: u64,
    /// reads of what was not sent
    pub unknown_messages: u64,
    /// by receiver
    pub truth: Vec<Truth>,
    lives: Vec<Vec<Life>>,
    said: Vec<Said>,
    random: fastrand::Rng,
}

/// One membership as both sides know it. Instants of the client: asked, joined, leaving, left.
#[derive(Clone, Copy)]
struct Life {
    asked: u64,
    server_in: u64,
    joined: u64,
    leaving: u64,
    server_out: u64,
    left: u64,
}

struct Said {
    sender: u32,
    seq: u32,
    left_ns: u64,
    departs: bool,
    /// when the server had it
    arrived_ns: Option<u64>,
}

impl History {
    pub fn new(seed: u64, kind: Kind) -> History {
        let mut random = fastrand::Rng::with_seed(seed);
        let crowd = random.u32(1..=10);
        let mut history = History {
            seed,
            crowd,
            senders: random.u32(1..=crowd),
            workers: random.u32(1..=crowd.min(4)),
            echoes: random.bool(),
            margin_ns: random.u64(20..=800) * MS + random.u64(0..MS),
            patience_ns: random.u64(1..200) * MS,
            tells: random.bool(),
            acts: Vec::new(),
            departed: 0,
            unknown_messages: 0,
            truth: (0..crowd).map(|_| Truth::default()).collect(),
            lives: Vec::new(),
            said: Vec::new(),
            random,
        };
        for bot in 0..crowd {
            if history.is_excluded(bot) {
                history.acts.push((0, bot, Act::Apart));
            }
            let lives = if kind == Kind::Static { vec![history.whole_life()] } else { history.some_lives() };
            history.lives.push(lives);
            history.act_lives(bot);
        }
        (0..history.senders).for_each(|sender| history.speak(sender, kind));
        history.said.sort_by_key(|said| said.arrived_ns);
        for bot in 0..crowd {
            for at in 0..history.lives[bot as usize].len() {
                history.serve(bot, at, kind);
            }
        }
        history.acts.sort_by_key(|(at_ns, _, _)| *at_ns);
        history
    }

    pub fn is_excluded(&self, bot: u32) -> bool {
        (u64::from(bot) + self.seed) % 7 == 3
    }

    pub fn is_told(&self) -> bool {
        self.acts.iter().any(|(_, _, act)| matches!(act, Act::ServerReport(_) | Act::Missed(_)))
    }

    pub fn is_always_there(&self, bot: u32) -> bool {
        matches!(self.lives[bot as usize][..], [life] if life.joined < TALK_FROM_NS && life.leaving == NEVER)
    }

    /// Lines to this receiver that no outside observer can know to have reached the server.
    pub fn unsure_of_their_sender(&self, receiver: u32) -> u64 {
        let is_unsure = |said: &&Said| {
            let lives = &self.lives[said.sender as usize];
            let ends_soon = |life: &Life| {
                (life.asked..life.leaving).contains(&said.left_ns)
                    && said.left_ns.saturating_add(self.margin_ns + MS) > life.leaving
            };
            !said.departs || lives.iter().any(ends_soon)
        };
        let others = self.said.iter().filter(|said| self.echoes || said.sender != receiver);
        others.filter(is_unsure).count() as u64
    }

    /// Lines that could be owed to this receiver at all.
    pub fn said_to(&self, receiver: u32) -> u64 {
        self.said.iter().filter(|said| self.echoes || said.sender != receiver).count() as u64
    }

    /// Whether it was there to the last line and never heard that nothing more would come.
    pub fn never_caught_up(&self, bot: u32) -> bool {
        let last_ns =
            self.said.iter().filter(|said| said.departs).map(|said| said.left_ns).max().unwrap_or(0);
        let stayed = self.lives[bot as usize].last().is_some_and(|life| life.leaving >= last_ns);
        let is_its = |(_, who, act): &(u64, u32, Act)| *who == bot && matches!(act, Act::CaughtUp);
        stayed && !self.acts.iter().any(is_its)
    }

    fn way(&mut self) -> u64 {
        self.random.u64(0..self.margin_ns / 2)
    }

    fn whole_life(&mut self) -> Life {
        let asked = self.random.u64(0..TALK_FROM_NS / 4);
        let server_in = asked + self.way();
        let joined = server_in + self.way();
        Life { asked, server_in, joined, leaving: NEVER, server_out: NEVER, left: NEVER }
    }

    fn some_lives(&mut self) -> Vec<Life> {
        match self.random.u8(0..8) {
            0 => return Vec::new(),
            1 => {
                // Knocks, and is never heard of again.
                let asked = self.random.u64(0..TALK_TO_NS);
                let life = Life { asked, server_in: NEVER, joined: NEVER, ..self.whole_life() };
                return vec![life];
            }
            2..4 => return vec![self.whole_life()],
            _ => {}
        }
        let mut lives = Vec::new();
        let mut from = self.random.u64(0..TALK_TO_NS / 2);
        for _ in 0..self.random.u8(1..=4) {
            let asked = from + self.random.u64(0..1_000 * MS);
            let server_in = asked + self.way();
            let joined = server_in + self.way();
            let stays = self.random.u8(0..4) == 0;
            let mut life = Life { asked, server_in, joined, leaving: NEVER, server_out: NEVER, left: NEVER };
            if !stays {
                let ends = self.random.u64(asked..joined + 3_000 * MS);
                let is_thrown_out = self.random.bool() && ends > server_in;
                if is_thrown_out {
                    life.server_out = ends;
                    life.leaving = ends + self.way();
                    life.left = life.leaving;
                } else {
                    life.leaving = ends;
                    life.server_out = (ends + self.way()).max(server_in);
                    life.left = ends + self.way();
                }
                if life.joined >= life.leaving {
                    life.joined = NEVER;
                }
            }
            from = life.left;
            lives.push(life);
            if stays {
                break;
            }
        }
        lives
    }

    fn act_lives(&mut self, bot: u32) {
        for life in self.lives[bot as usize].clone() {
            self.acts.push((life.asked, bot, Act::Asked));
            for (at_ns, act) in
                [(life.joined, Act::Joined), (life.leaving, Act::Leaving), (life.left, Act::Left)]
            {
                if at_ns != NEVER {
                    self.acts.push((at_ns, bot, act));
                }
            }
        }
    }

    /// A sender's lines, each at a moment when it believes itself a member.
    fn speak(&mut self, sender: u32, kind: Kind) {
        let most = if self.random.u8(0..10) == 0 { 400 } else { 50 };
        let mut moments: Vec<u64> =
            (0..self.random.usize(0..=most)).map(|_| self.random.u64(TALK_FROM_NS..TALK_TO_NS)).collect();
        moments.sort_unstable();
        let (mut seq, mut arrived_before) = (0, 0);
        for left_ns in moments {
            let is_member = |life: &&Life| life.joined <= left_ns && left_ns < life.leaving;
            let Some(life) = self.lives[sender as usize].iter().find(is_member).copied() else { continue };
            // Connections break with unsent lines in them.
            let departs = kind == Kind::Static || self.random.u8(0..40) > 0;
            let arrives = (left_ns + self.way()).max(arrived_before);
            let is_read = arrives < life.server_out && (departs || self.random.bool());
            if is_read {
                arrived_before = arrives;
            }
            self.said.push(Said { sender, seq, left_ns, departs, arrived_ns: is_read.then_some(arrives) });
            self.acts.push((left_ns, sender, Act::Sent { departs }));
            self.departed += u64::from(departs);
            seq += 1;
        }
    }

    /// What the server does for one receiver during one membership.
    fn serve(&mut self, bot: u32, at: usize, kind: Kind) {
        let life = self.lives[bot as usize][at];
        let in_life = |ns: u64| life.server_in <= ns && ns < life.server_out;
        let owed: Vec<(u32, u32, u64, u64)> = self
            .said
            .iter()
            .filter(|said| self.echoes || said.sender != bot)
            .filter_map(|said| Some((said.sender, said.seq, said.left_ns, said.arrived_ns?)))
            .filter(|&(.., arrived_ns)| in_life(arrived_ns))
            .collect();
        let lasts = life.leaving == NEVER && life.server_in != NEVER;
        let is_stalled = lasts && self.random.u8(0..6) == 0;
        let backlog = if is_stalled { self.random.usize(0..=owed.len()) } else { 0 };
        let (loss, drops) = (self.random.u8(0..12), self.random.u8(0..12));
        let (mut reads, mut told, mut untold) = (Vec::new(), ServerReport::default(), 0);
        let mut read_before = life.joined;
        for (place, &(sender, seq, left_ns, arrived_ns)) in owed.iter().enumerate() {
            self.truth[bot as usize].owed.entry(sender).or_default().insert(seq);
            told.owed += 1;
            let read_ns = (arrived_ns + self.way()).max(read_before);
            // Those who have gone, or never heard that they were in, read no more.
            let is_there = read_ns < life.leaving && life.joined != NEVER;
            if place + backlog >= owed.len() {
                told.in_flight += 1;
            } else if self.random.u8(0..100) < drops {
                told.dropped += u64::from(is_there);
                untold += u64::from(is_there);
                if is_there && self.tells && self.random.bool() {
                    self.acts.push((read_ns, bot, Act::Missed(std::mem::take(&mut untold))));
                    read_before = read_ns;
                }
            } else if self.random.u8(0..100) < loss {
                self.truth[bot as usize].silently_lost += u64::from(is_there);
            } else if is_there {
                told.delivered += 1;
                reads.push((read_ns, sender, seq, left_ns - self.random.u64(0..50 * MS)));
                read_before = read_ns;
            }
        }
        let truth = &mut self.truth[bot as usize];
        truth.dropped += told.dropped;
        truth.waiting += told.in_flight;
        truth.is_stalled |= is_stalled;
        if untold > 0 && self.tells {
            // The last notice comes while it is still there, and on its own connection.
            let at_ns = read_before.min(life.leaving - 1);
            self.acts.push((at_ns, bot, Act::Missed(untold)));
        }
        self.plant(&reads, bot, kind);
        if lasts && life.joined != NEVER {
            if self.tells {
                self.acts.push((END_NS, bot, Act::ServerReport(told)));
            }
            if !is_stalled {
                self.acts.push((END_NS, bot, Act::CaughtUp));
            }
        }
    }

    /// Second copies and wrong order, near and far, and what was not sent.
    fn plant(&mut self, reads: &[(u64, u32, u32, u64)], bot: u32, kind: Kind) {
        // Moments stay where they are; what is read at them changes places.
        let mut what: Vec<(u32, u32, u64)> =
            reads.iter().map(|&(_, s, seq, planned)| (s, seq, planned)).collect();
        let faults = if self.random.bool() { 0 } else { self.random.usize(0..=what.len() / 4) };
        for _ in 0..faults {
            let far = [2, 40, 1_000][self.random.usize(0..3)];
            let from = self.random.usize(0..what.len());
            let to = (from + self.random.usize(0..far)).min(what.len() - 1);
            match self.random.bool() {
                true => {
                    let moved = what.remove(from);
                    what.insert(to, moved);
                }
                false => what.insert(to + 1, what[from]),
            }
        }
        let last = reads.last().map_or(0, |read| read.0);
        for (at, (sender, seq, planned_ns)) in what.into_iter().enumerate() {
            let at_ns = reads.get(at).map_or(last, |read| read.0);
            // Nothing comes before it was planned, so what changed places towards the front was planned earlier too.
            let planned_ns = planned_ns.min(at_ns);
            self.acts.push((at_ns, bot, Act::Read { sender, seq, planned_ns }));
        }
        if kind == Kind::Static && self.random.u8(0..20) == 0 {
            let (sender, seq) = if self.random.bool() { (self.senders, 0) } else { (0, SEQ_END) };
            self.acts.push((last, bot, Act::Read { sender, seq, planned_ns: 0 }));
            self.unknown_messages += 1;
        }
    }
}
