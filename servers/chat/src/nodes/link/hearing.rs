//! What the broker and the other nodes say: it is in the rooms when the turn goes on.

use std::sync::atomic::Ordering::Relaxed;

use servers_shared::clock;
use servers_shared::nats::NodeId;

use super::super::NO_ROOM;
use super::super::message::{Front, Word, own_subject};
use super::{Link, OF_ROOMS, READS_PER_TURN, lines_of};
use crate::shared::Shared;
use servers_shared::nats::broker::Lost;
use servers_shared::nats::protocol::{self, Event};

impl Link {
    /// Connects when it is time, and hears what has come. Errors: the connection is over.
    pub(super) fn exchange(&mut self, shared: Option<&Shared>) -> Result<(), Lost> {
        let now_ns = clock::now_ns();
        let (reads, ended) = self.broker.read_all(READS_PER_TURN, now_ns);
        if reads == READS_PER_TURN {
            // More may be there, and it is not announced again.
            self.nodes.notified.bring(NO_ROOM);
        }
        let input = self.broker.take_input();
        let mut done = 0;
        while let Some((event, bytes)) = protocol::front(&input[done..])? {
            done += bytes;
            if self.broker.hear(&event, now_ns)? {
                self.came_up(now_ns);
            }
            if let Event::Message { subscription, payload } = event {
                let understood = match subscription.checked_sub(OF_ROOMS) {
                    None => self.hear_word(payload, now_ns),
                    Some(id) => self.hear_lines(id as u32, payload, shared),
                };
                if understood.is_none() {
                    self.hear_strange();
                }
            }
        }
        self.broker.keep(input, done);
        // Its last words were heard before.
        ended?;
        self.broker.turn(now_ns, &self.epoll)?;
        self.broker.flush()
    }

    /// Something else publishes on the subjects of nodes.
    fn hear_strange(&mut self) {
        self.nodes.counters.strange.fetch_add(1, Relaxed);
        if !std::mem::replace(&mut self.strange_told, true) {
            let words = "a message on the nodes' subjects (stepladder-chat.>) is none of a node's, and was ignored; \
                         further ones are counted in chat_nodes_strange_messages";
            self.say(words.to_owned());
        }
    }

    /// Lines of a room, or how far the numbers of a node are. `None`: no node says that.
    fn hear_lines(&mut self, id: u32, payload: &[u8], shared: Option<&Shared>) -> Option<()> {
        // Of a room that the last member has just left.
        let Some(linked) = self.rooms.get_mut(&id) else { return Some(()) };
        let (front, lines) = Front::read(payload)?;
        if front.count > 0 && self.faults.takes_link_loss() {
            return Some(());
        }
        let found = linked.heard.hear(front);
        let (elsewhere, room) = (linked.heard.elsewhere(), linked.room.clone());
        room.set_elsewhere(elsewhere);
        let mut missing = found.missing;
        let mut rest = lines;
        for _ in 0..found.known {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
        let mut count = u64::from(front.count - found.known);
        if room.is_heavy() {
            // A thread here does not keep up, and these speakers cannot be made to wait.
            missing += std::mem::take(&mut count);
            rest = "";
        }
        let counters = &self.nodes.counters;
        counters.received.fetch_add(count, Relaxed);
        counters.missing.fetch_add(missing, Relaxed);
        if count + missing > 0 {
            room.hear(missing, rest, &mut self.tells);
            if let Some(shared) = shared {
                shared.tell(&mut self.tells);
            }
        }
        if missing > 0 {
            let (from, name) = (self.peers.names(&[front.from]), room.name());
            self.say(format!("{} of node {from} in room {name} did not reach this node", lines_of(missing)));
        }
        Some(())
    }

    fn hear_word(&mut self, payload: &[u8], now_ns: u64) -> Option<()> {
        let (from, word) = Word::read(payload)?;
        match word {
            Word::Here { name, asks } => {
                if self.peers.hear(from, name, now_ns) && self.is_introduced {
                    self.say(format!("node {name} is there"));
                    if name == self.name {
                        self.say(format!(
                            "another node is called {name}, too; give each a name of its own with --node"
                        ));
                    }
                }
                if asks {
                    self.announce(false);
                }
            }
            Word::Opened { room } => {
                if let Some(id) = self.by_name.get(room) {
                    self.tell_numbers(*id);
                }
            }
            Word::Fence { number } => {
                self.broker
                    .publish(&own_subject(from), &[Word::Passed { number }.written(self.me).as_bytes()]);
            }
            Word::Passed { number } => self.fences.passed(from, number),
            Word::Leaving => {
                self.say(format!("node {} has ended", self.peers.names(&[from])));
                self.peers.remove(from);
                self.is_gone(from, true);
            }
        }
        Some(())
    }

    /// Nothing more comes from a node, for now or for good.
    pub(super) fn is_gone(&mut self, node: NodeId, for_good: bool) {
        self.fences.is_gone(node);
        for linked in self.rooms.values_mut() {
            linked.heard.is_gone(node);
            if for_good {
                linked.heard.forget(node);
            }
            linked.room.set_elsewhere(linked.heard.elsewhere());
        }
    }
}
