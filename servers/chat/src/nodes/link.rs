//! The thread that speaks to the other nodes.
//!
//! A turn reads what the broker has sent, which goes to the rooms at once, then publishes what is new in the rooms, one
//! message per room, and moves on the fence. It rests for a multiple of the time that this took, so that lines gather.

mod fencing;
mod hearing;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use servers_shared::epoll::{Epoll, WAKEUP_KEY};
use servers_shared::fault::{Faults, ThreadFaults};
use servers_shared::{ServeError, clock, sleeper};

use super::fences::Fences;
use super::message::{Front, NODES, Word, own_subject, room_subject};
use super::numbers::Numbers;
use super::peers::{Change as PeerChange, Peers, SILENT_NS};
use super::published::{Portion, portions};
use super::{Change, Nodes, held};
use crate::room::{Room, Tell};
use crate::shared::Shared;
use servers_shared::nats::broker::{Broker, Lost};
use servers_shared::nats::{NatsAddress, NodeId};

/// How often a node says that it is there, and how many members it has.
const ANNOUNCE_NS: u64 = 1_000_000_000;
/// How long a new node listens for others of its name, and for those that are there.
const INTRODUCTION_NS: u64 = 300_000_000;
/// The longest rest after a turn, and how many times as long as the turn's CPU time it is.
const REST_NS_MAX: u64 = 1_000_000;
const REST_PER_TURN: u64 = 5;
/// Reads in one turn, so that publishing is not kept waiting.
const READS_PER_TURN: usize = 16;
/// How long the last messages may take when the chat ends.
const END_NS: u64 = 500_000_000;

/// Subscriptions: all nodes, this node, and rooms from there on.
const OF_NODES: u64 = 1;
const OF_THIS: u64 = 2;
const OF_ROOMS: u64 = 16;

/// A room with members here.
struct Linked {
    room: Arc<Room>,
    subject: String,
    opening: u64,
    /// The number of the next line that is said here.
    next: u64,
    /// Up to which a fence has passed, and up to which one is under way.
    fenced: u64,
    fencing: u64,
    members_told: u32,
    heard: Numbers,
    /// Its members have joined once this was answered; 0 when they have.
    settles: u64,
}

pub(crate) struct Link {
    me: NodeId,
    name: String,
    address: NatsAddress,
    nodes: Arc<Nodes>,
    broker: Broker,
    epoll: Epoll,
    rooms: HashMap<u32, Linked>,
    by_name: HashMap<Box<str>, u32>,
    openings: u64,
    peers: Peers,
    fences: Fences,
    /// The ping behind the last fence.
    fence_ping: u64,
    faults: ThreadFaults,
    announce_ns: u64,
    /// When the connection was lost, how many lines could not be published then, and why.
    lost: Option<(u64, u64, String)>,
    strange_told: bool,
    /// It has said who was there when it came.
    is_introduced: bool,
    tells: Vec<Tell>,
}

impl Link {
    /// A node of this name that is connected and knows who else is there.
    ///
    /// Errors: the broker is not there or does not let it in; a node of its name is there.
    pub(crate) fn connect(
        address: &NatsAddress,
        name: Option<&str>,
        nodes: Arc<Nodes>,
        faults: Option<Arc<Faults>>,
    ) -> Result<Link, ServeError> {
        let cannot = |why: String| ServeError::Broker { address: address.to_string(), why };
        let me = NodeId::random();
        let name = name.map_or_else(|| me.to_string(), str::to_owned);
        let broker = Broker::new(address.clone(), format!("stepladder chat {name}"));
        let epoll = Epoll::new().map_err(ServeError::system("epoll"))?;
        epoll.add(&nodes.notified.wakeup, WAKEUP_KEY, false).map_err(ServeError::system("epoll"))?;
        let mut link = Link {
            me,
            name,
            address: address.clone(),
            nodes,
            broker: broker.map_err(|error| cannot(error.to_string()))?,
            epoll,
            rooms: HashMap::new(),
            by_name: HashMap::new(),
            openings: 0,
            peers: Peers::default(),
            fences: Fences::default(),
            fence_ping: 0,
            faults: ThreadFaults::new(faults),
            announce_ns: 0,
            lost: None,
            strange_told: false,
            is_introduced: false,
            tells: Vec::new(),
        };
        let mut addresses_left = link.broker.address_count();
        while !link.broker.is_up() {
            if let Err(lost) = link.exchange(None) {
                addresses_left -= 1;
                if addresses_left == 0 {
                    return Err(cannot(lost.to_string()));
                }
                link.broker.lose(clock::now_ns());
            }
            link.epoll.wait(10_000_000);
        }
        let until_ns = clock::now_ns() + INTRODUCTION_NS;
        while clock::now_ns() < until_ns {
            link.exchange(None).map_err(|lost| cannot(lost.to_string()))?;
            link.epoll.wait(10_000_000);
        }
        if link.peers.has_name(&link.name) {
            return Err(ServeError::NodeName { name: link.name });
        }
        link.introduce();
        Ok(link)
    }

    fn introduce(&mut self) {
        self.is_introduced = true;
        let there: Vec<NodeId> = self.peers.there().into_iter().collect();
        let others = if there.is_empty() {
            "alone so far".to_owned()
        } else {
            format!("with {}", self.peers.names(&there))
        };
        self.say(format!("node {} is connected to {}, {others}", self.name, self.address));
    }

    fn say(&self, sentence: String) {
        let mut said = held(&self.nodes.said);
        // Nobody reads them before the chat listens; and no flood of them may fill the memory.
        if said.len() < 64 {
            said.push(sentence);
        }
    }

    /// The thread's whole life.
    pub(crate) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let mut due = Vec::new();
        while !shared.common.going_down.load(SeqCst) {
            let used_ns = clock::thread_cpu_ns();
            self.nodes.notified.slept();
            self.faults.look();
            if let Err(lost) = self.exchange(Some(shared)) {
                self.lose(&lost, shared);
            }
            self.take_changes();
            self.publish_due(&mut due);
            self.look_around();
            self.fence(shared);
            if let Err(lost) = self.broker.flush() {
                self.lose(&lost, shared);
            }
            self.rest(clock::thread_cpu_ns() - used_ns);
        }
        self.end(&mut due);
        Ok(())
    }

    /// Lines gather while it sleeps by the clock; with nothing to do it sleeps until it is notified.
    fn rest(&mut self, used_ns: u64) {
        let now_ns = clock::now_ns();
        sleeper::sleep_until(now_ns + (REST_PER_TURN * used_ns).min(REST_NS_MAX));
        if !self.nodes.notified.may_sleep() {
            return;
        }
        let until_ns = self.fences.due_ns().min(self.announce_ns).min(self.broker.due_ns());
        let rest_ns = until_ns.saturating_sub(clock::now_ns()).min(servers_shared::thread::IDLE_REST_NS);
        self.epoll.wait(self.faults.rest_ns_max().min(rest_ns));
    }

    fn announce(&mut self, asks: bool) {
        let here = Word::Here { name: &self.name, asks }.written(self.me);
        self.broker.publish(NODES, &[here.as_bytes()]);
    }

    /// The connection stands, for the first time or again.
    fn came_up(&mut self, now_ns: u64) {
        self.broker.subscribe(NODES, OF_NODES);
        self.broker.subscribe(&own_subject(self.me), OF_THIS);
        self.announce(true);
        self.announce_ns = now_ns + ANNOUNCE_NS;
        self.peers.hear_again(now_ns);
        let rooms: Vec<u32> = self.rooms.keys().copied().collect();
        rooms.into_iter().for_each(|id| self.subscribe(id));
        self.nodes.is_connected.store(true, Relaxed);
        if let Some((since_ns, unpublished, _)) = self.lost.take() {
            let lines = self.nodes.counters.unpublished.load(Relaxed) - unpublished;
            let away_s = now_ns.saturating_sub(since_ns) as f64 / 1e9;
            let address = &self.address;
            self.say(format!(
                "connected to {address} again after {away_s:.1} s; {} said here meanwhile did not reach the other nodes",
                lines_of(lines)
            ));
        }
    }

    /// Subscribes to a room, asks how far the others are there, and says how far this node is.
    fn subscribe(&mut self, id: u32) {
        let Some(linked) = self.rooms.get(&id) else { return };
        self.broker.subscribe(&linked.subject, OF_ROOMS + u64::from(id));
        let opened = Word::Opened { room: linked.room.name() }.written(self.me);
        self.broker.publish(NODES, &[opened.as_bytes()]);
        self.tell_numbers(id);
    }

    fn tell_numbers(&mut self, id: u32) {
        let Some(linked) = self.rooms.get_mut(&id) else { return };
        linked.members_told = linked.room.member_count();
        let mut front = Vec::new();
        linked.front(self.me, 0).write(&mut front);
        self.broker.publish(&linked.subject, &[&front]);
    }

    /// Rooms that the first member has entered, or the last one left.
    fn take_changes(&mut self) {
        let changes = std::mem::take(&mut *held(&self.nodes.changes));
        for change in changes {
            match change {
                Change::Opened(room) => self.open(room),
                Change::Closed(room) => self.close(&room),
            }
        }
    }

    fn open(&mut self, room: Arc<Room>) {
        self.openings += 1;
        let id = room.id();
        self.by_name.insert(room.name().into(), id);
        let linked = Linked {
            subject: room_subject(room.name()),
            room,
            opening: self.openings,
            next: 0,
            fenced: 0,
            fencing: 0,
            members_told: 0,
            heard: Numbers::default(),
            settles: self.nodes.ask(),
        };
        self.rooms.insert(id, linked);
        self.subscribe(id);
    }

    fn close(&mut self, room: &Arc<Room>) {
        let id = room.id();
        // What was said last goes out before the end.
        self.publish_room(id);
        self.tell_numbers(id);
        self.rooms.remove(&id);
        if self.by_name.get(room.name()) == Some(&id) {
            self.by_name.remove(room.name());
        }
        self.broker.unsubscribe(OF_ROOMS + u64::from(id));
    }

    fn publish_due(&mut self, due: &mut Vec<u32>) {
        self.nodes.notified.fetch(due);
        due.drain(..).for_each(|id| self.publish_room(id));
    }

    /// What was said in a room here and is not published yet.
    fn publish_room(&mut self, id: u32) {
        let Some(linked) = self.rooms.get_mut(&id) else { return };
        let mut batches = Vec::new();
        linked.room.fetch_for_nodes(&mut batches);
        let mut front = Vec::new();
        for Portion { bytes, count, too_long } in
            portions(&batches, self.broker.message_bytes_max().saturating_sub(128))
        {
            linked.next += too_long;
            let has_room = self.broker.has_room();
            if has_room && count > 0 {
                front.clear();
                linked.members_told = linked.room.member_count();
                linked.front(self.me, count).write(&mut front);
                self.broker.publish(&linked.subject, &[&front, &bytes]);
            }
            let counters = &self.nodes.counters;
            let (gone, kept) = if has_room { (u64::from(count), 0) } else { (0, u64::from(count)) };
            counters.published.fetch_add(gone, Relaxed);
            counters.messages.fetch_add(u64::from(gone > 0), Relaxed);
            counters.unpublished.fetch_add(kept + too_long, Relaxed);
            linked.next += u64::from(count);
        }
    }

    /// Says that it is there, and notices who is not.
    fn look_around(&mut self) {
        let now_ns = clock::now_ns();
        if now_ns < self.announce_ns {
            return;
        }
        self.announce_ns = now_ns + ANNOUNCE_NS;
        if !self.broker.is_up() {
            return;
        }
        self.announce(false);
        let changed = |linked: &&Linked| linked.room.member_count() != linked.members_told;
        let changed: Vec<u32> = self.rooms.values().filter(changed).map(|linked| linked.room.id()).collect();
        changed.into_iter().for_each(|id| self.tell_numbers(id));
        for change in self.peers.look(now_ns) {
            match change {
                PeerChange::Silent(node) => {
                    let name = self.peers.names(&[node]);
                    self.say(format!("node {name} was not heard for {} s", SILENT_NS / 1_000_000_000));
                    self.is_gone(node, false);
                }
                PeerChange::Forgotten(node) => self.is_gone(node, true),
            }
        }
        self.nodes.counters.nodes.store(self.peers.there().len() as u64, Relaxed);
    }

    fn lose(&mut self, lost: &Lost, shared: &Shared) {
        let now_ns = clock::now_ns();
        if self.broker.lose(now_ns) {
            self.nodes.is_connected.store(false, Relaxed);
            self.nodes.counters.losses.fetch_add(1, Relaxed);
            self.fence_ping = 0;
            let address = &self.address;
            self.say(format!(
                "the connection to {address} is lost ({lost}); until it is back, lines reach only the clients of this node"
            ));
            let unpublished = self.nodes.counters.unpublished.load(Relaxed);
            self.lost = Some((now_ns, unpublished, lost.to_string()));
        } else if let Some((_, _, why)) = &mut self.lost
            && *why != lost.to_string()
        {
            *why = lost.to_string();
            let again = format!("cannot connect to {} again yet ({lost})", self.address);
            self.say(again);
        }
        self.fence(shared);
    }

    /// The chat ends: what was said last, and a farewell.
    fn end(&mut self, due: &mut Vec<u32>) {
        self.take_changes();
        self.publish_due(due);
        self.broker.publish(NODES, &[Word::Leaving.written(self.me).as_bytes()]);
        let until_ns = clock::now_ns() + END_NS;
        while self.broker.flush().is_ok() && !self.broker.is_flushed() && clock::now_ns() < until_ns {
            self.epoll.wait(10_000_000);
        }
    }
}

fn lines_of(count: u64) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

impl Linked {
    /// Of a message with so many lines, which are the next ones.
    fn front(&self, from: NodeId, count: u32) -> Front {
        let Linked { opening, next, members_told, .. } = *self;
        Front { from, opening, first: next, count, members: members_told }
    }
}
