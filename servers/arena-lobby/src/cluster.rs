//! The nodes that are there, which of them gets the next player, and the ticks of all. Pure: instants are arguments.
//!
//! Games are placed, not players: a new game goes to the node with the fewest players, and the next player gets its other
//! seat. A game in which a player waits is filled before another one begins, as long as its node says so.
//! A node that is silent for `SILENT_NS` is dead: it gets no more players, and the ticks that its games owe since its last
//! word count as missed, until it is heard again or nobody plays on the others any more. Otherwise a cluster of which half
//! is dead would tick punctually.

use std::collections::{BTreeMap, HashMap};

use arena_server::nodes::state::{self, Said, State};
use arena_server::nodes::ticket::{Key, Place, Seat, TICKET_MS};
use servers_shared::nats::NodeId;
use servers_shared::ticks::TickTally;

/// A node that was not heard for so long is dead.
pub(crate) const SILENT_NS: u64 = 3_000_000_000;
/// A dead node is forgotten after so long in any case.
const FORGOTTEN_NS: u64 = 600_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const TICKET_NS: u64 = TICKET_MS * 1_000_000;
/// A player who was sent before this is among the players that a node tells.
const ON_THE_WAY_NS: u64 = 200_000_000;
/// Each has two counters in the tick log, of which a reader takes 200.
const NODES_MAX: usize = 64;
const PLAYERS_OF_A_GAME: u64 = 2;

/// Why a player cannot be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    NoNode,
    Full,
}

/// Where a player is sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) address: String,
    pub(crate) ticket: String,
}

/// What a second of all nodes comes to.
pub(crate) struct Second {
    pub(crate) ticks: TickTally,
    pub(crate) figures: BTreeMap<String, u64>,
    /// Hz; 0 before the first node.
    pub(crate) tick_rate: u32,
}

struct Member {
    name: String,
    address: String,
    key: Key,
    /// As of its last word.
    free: u64,
    players: u64,
    games: u64,
    heard_ns: u64,
    /// How far its clock is ahead of ours, ms.
    ahead_ms: i64,
    /// Players that were sent there and may not be among those that it tells.
    on_the_way: Vec<u64>,
    /// What it told since the last line.
    second: Option<(TickTally, BTreeMap<String, u64>)>,
    /// Ticks that counted as missed since it was heard.
    owed: u64,
    is_dead: bool,
}

/// A game in which one seat is free.
struct Half {
    node: NodeId,
    free: Seat,
    /// When the ticket for the other seat was given; 0 when another lobby gave it.
    given_ns: u64,
}

#[derive(Default)]
pub(crate) struct Cluster {
    members: BTreeMap<NodeId, Member>,
    /// In the order in which they began.
    half: BTreeMap<u64, Half>,
    /// Games that were filled, and when: the second player may be on the way while the node says that the first one waits.
    filled: HashMap<u64, u64>,
    next_game: u64,
    nonce: u64,
    tick_rate: u32,
    placed: u64,
    /// Nodes that were refused, so that it is said once.
    refused: Vec<NodeId>,
    said: Vec<String>,
}

impl Cluster {
    /// Games are numbered from `first_game` on; each lobby begins elsewhere.
    pub(crate) fn new(first_game: u64) -> Cluster {
        Cluster { next_game: first_game, nonce: first_game, ..Cluster::default() }
    }

    pub(crate) fn say(&mut self, sentence: String) {
        self.said.push(sentence);
    }

    /// Sentences since the last call.
    pub(crate) fn take_said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    /// Takes a message that came from the broker; `wall_ms` since the epoch. What no node says changes nothing.
    pub(crate) fn hear(&mut self, payload: &[u8], now_ns: u64, wall_ms: u64) {
        match state::read(payload) {
            Some(Said::Here(state)) => self.hear_state(*state, now_ns, wall_ms),
            Some(Said::Leaving(node)) => {
                if let Some(member) = self.members.remove(&node) {
                    self.said.push(format!("node {} has ended", member.name));
                    self.half.retain(|_, half| half.node != node);
                }
            }
            None => {}
        }
    }

    fn hear_state(&mut self, mut state: State, now_ns: u64, wall_ms: u64) {
        let node = state.node;
        if !self.members.contains_key(&node) && !self.take_in(&state) {
            return;
        }
        // A node that only stood still tells of them itself, now.
        let owed = self.members.get(&node).map_or(0, |member| member.owed);
        state.ticks.forgive(owed.min(state.ticks.counts.missed));
        self.filled.retain(|_, filled_ns| *filled_ns + TICKET_NS > now_ns);
        let waiting: BTreeMap<u64, Seat> =
            state.waiting.iter().copied().filter(|(game, _)| !self.filled.contains_key(game)).collect();
        self.half.retain(|game, half| {
            half.node != node || half.given_ns + TICKET_NS > now_ns || waiting.contains_key(game)
        });
        for (game, free) in waiting {
            self.half.entry(game).or_insert(Half { node, free, given_ns: 0 }).free = free;
        }
        let before = self.members.remove(&node);
        match &before {
            None => self.said.push(format!("node {} is there, at ws://{}", state.name, state.address)),
            Some(before) if before.is_dead => self.said.push(format!("node {} is heard again", state.name)),
            Some(_) => {}
        }
        let (mut on_the_way, second) = before.map_or((Vec::new(), None), |one| (one.on_the_way, one.second));
        on_the_way.retain(|sent_ns| sent_ns + ON_THE_WAY_NS > now_ns);
        let (players, games) = (state.figure("sockets"), state.figure("games"));
        let State { name, address, key, free, to_ms, ticks, figures, .. } = state;
        let second = match second {
            Some((mut sum, mut sums)) => {
                sum.add(&ticks);
                figures.into_iter().for_each(|(name, figure)| *sums.entry(name).or_default() += figure);
                (sum, sums)
            }
            None => (ticks, figures.into_iter().collect()),
        };
        let (second, ahead_ms) = (Some(second), to_ms as i64 - wall_ms as i64);
        let (heard_ns, owed, is_dead) = (now_ns, 0, false);
        let member = Member {
            name,
            address,
            key,
            free,
            players,
            games,
            heard_ns,
            ahead_ms,
            on_the_way,
            second,
            owed,
            is_dead,
        };
        self.members.insert(node, member);
    }

    /// Whether a node that is new may be one.
    fn take_in(&mut self, state: &State) -> bool {
        // It was started again.
        let is_again = |one: &Member| one.name == state.name && one.address == state.address;
        let before: Vec<NodeId> =
            self.members.iter().filter(|(_, one)| is_again(one)).map(|(node, _)| *node).collect();
        for node in before {
            self.members.remove(&node);
            self.half.retain(|_, half| half.node != node);
        }
        if self.members.is_empty() {
            self.tick_rate = state.tick_rate;
        }
        let why = if self.members.values().any(|one| one.name == state.name) {
            "another node has this name; give each a name of its own with --node".to_owned()
        } else if state.tick_rate != self.tick_rate {
            format!("it ticks at {} Hz and the others at {} Hz", state.tick_rate, self.tick_rate)
        } else if self.members.len() >= NODES_MAX {
            format!("there are {NODES_MAX} nodes already")
        } else {
            return true;
        };
        if !self.refused.contains(&state.node) {
            self.refused.truncate(NODES_MAX - 1);
            self.refused.insert(0, state.node);
            self.said.push(format!("node {} at {} gets no players: {why}", state.name, state.address));
        }
        false
    }

    /// Where the next player goes.
    pub(crate) fn place(&mut self, now_ns: u64, wall_ms: u64) -> Result<Sent, NoPlace> {
        let is_alive = |half: &Half| self.members.get(&half.node).is_some_and(|node| node.is_alive(now_ns));
        let half = self.half.iter().find(|(_, half)| is_alive(half));
        let (game, node, seat) = match half.map(|(game, half)| (*game, half.node, half.free)) {
            Some(found) => found,
            None => (self.next_game, self.fewest(now_ns)?, Seat::One),
        };
        let Some(member) = self.members.get_mut(&node) else { return Err(NoPlace::NoNode) };
        if self.half.remove(&game).is_some() {
            self.filled.insert(game, now_ns);
        } else {
            self.next_game = game.wrapping_add(1);
            self.half.insert(game, Half { node, free: Seat::Two, given_ns: now_ns });
        }
        member.on_the_way.push(now_ns);
        self.nonce = self.nonce.wrapping_add(1);
        self.placed += 1;
        let expires_ms = wall_ms.saturating_add_signed(member.ahead_ms) + TICKET_MS;
        let ticket = member.key.ticket(Place { game, seat }, self.nonce, expires_ms);
        Ok(Sent { address: member.address.clone(), ticket })
    }

    /// The living node with the fewest players that can take a game.
    fn fewest(&self, now_ns: u64) -> Result<NodeId, NoPlace> {
        let mut alive = self.members.iter().filter(|(_, member)| member.is_alive(now_ns)).peekable();
        if alive.peek().is_none() {
            return Err(NoPlace::NoNode);
        }
        let with_room =
            alive.filter(|(_, member)| member.free >= member.on_the_way.len() as u64 + PLAYERS_OF_A_GAME);
        let fewest = with_room.min_by_key(|(_, member)| member.all_players());
        fewest.map(|(node, _)| *node).ok_or(NoPlace::Full)
    }

    /// Everything that was told since the last call, and what dead nodes owe; call it once a second.
    pub(crate) fn take_second(&mut self, now_ns: u64) -> Second {
        let mut second =
            Second { ticks: TickTally::new(), figures: BTreeMap::new(), tick_rate: self.tick_rate };
        let mut is_somebody_playing = false;
        for member in self.members.values_mut() {
            let (mut ticks, figures) = member.second.take().unwrap_or((TickTally::new(), BTreeMap::new()));
            if member.is_alive(now_ns) {
                is_somebody_playing |= member.all_players() > 0;
            } else {
                let silent_s = (now_ns - member.heard_ns) / SECOND_NS;
                let per_s = member.games * u64::from(self.tick_rate);
                ticks.miss(per_s * silent_s - member.owed);
                member.owed = per_s * silent_s;
                if !std::mem::replace(&mut member.is_dead, true) {
                    let (name, players) = (&member.name, member.players);
                    let silent_s = SILENT_NS / SECOND_NS;
                    self.said.push(format!(
                        "node {name} was not heard for {silent_s} s and had {players} players; new ones go to the other nodes"
                    ));
                }
            }
            let counts = ticks.counts;
            let name = &member.name;
            second.figures.insert(format!("ticks_due@{name}"), counts.due);
            second.figures.insert(format!("ticks_late@{name}"), counts.over + counts.under + counts.missed);
            second.ticks.add(&ticks);
            for (name, figure) in figures {
                *second.figures.entry(name).or_default() += figure;
            }
        }
        let is_over = |member: &Member| {
            let silent_ns = now_ns - member.heard_ns;
            member.is_dead && (!is_somebody_playing || silent_ns >= FORGOTTEN_NS)
        };
        let is_alone = !self.members.values().any(|member| member.is_alive(now_ns));
        self.members
            .retain(|_, member| !is_over(member) || is_alone && now_ns - member.heard_ns < FORGOTTEN_NS);
        self.half.retain(|_, half| self.members.contains_key(&half.node));
        let alive = self.members.values().filter(|member| member.is_alive(now_ns)).count();
        second.figures.insert("nodes".to_owned(), alive as u64);
        second.figures.insert("players_placed".to_owned(), std::mem::take(&mut self.placed));
        second
    }
}

impl Member {
    fn is_alive(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.heard_ns) < SILENT_NS
    }

    /// Those that it tells, and those that were sent there since.
    fn all_players(&self) -> u64 {
        self.players + self.on_the_way.len() as u64
    }
}

#[cfg(test)]
mod tests;
