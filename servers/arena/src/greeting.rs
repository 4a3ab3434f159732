//! Connections: accepted in order, upgraded, paired.
//!
//! Invariant: clients are paired in the order in which they are accepted, whichever threads take part. So a thread
//! accepts connections only while it holds the door, and there, for each one, reads the request, answers it and pairs
//! the player before it accepts the next. A client whose request is not there yet counts as arriving when it is
//! complete.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::inbox::{Address, SocketKey, ThreadEvent, ThreadMessage};
use super::lobby::{Arrival, Welcome};
use super::message::START_FRAME;
use super::nodes::ticket::{Denied, Place};
use super::options::Pairing;
use super::rules::Player;
use super::shots::Shots;
use super::sockets::{Sending, Socket, Stage};
use super::thread::{Late, Thread};
use servers_shared::clock;
use servers_shared::http::response;
use servers_shared::websocket::{close_code, handshake};

/// A thread with so many more sockets than another lets that one take the next.
const SOCKETS_AHEAD_MAX: usize = 128;

/// The share of the first threads' tables, in percent, from which on the reserve takes connections too.
const NEARLY_FULL_PERCENT: usize = 80;

impl Thread {
    /// True for the first threads, and for the reserve once these are nearly full.
    pub(super) fn is_called_upon(&self) -> bool {
        self.me < self.shared.first_threads || {
            let held: usize = self.first_desks_sockets().sum();
            held * 100 >= self.shared.first_threads * self.core.common.table_sockets * NEARLY_FULL_PERCENT
        }
    }

    fn first_desks_sockets(&self) -> impl Iterator<Item = usize> {
        self.shared.threads_shared[..self.shared.first_threads]
            .iter()
            .map(|thread_shared| thread_shared.sockets.load(Ordering::Relaxed))
    }

    /// Whether another thread should take the next ones. A thread at rest takes what woke it.
    pub(super) fn leaves_it_to_others(&self) -> bool {
        let fewest = self.first_desks_sockets().min().unwrap_or(0);
        self.is_playing() && self.core.clients.count() > fewest + SOCKETS_AHEAD_MAX
    }

    pub(super) fn welcome(&mut self, fd: OwnedFd, now_ns: u64) {
        let full = self.shared.is_full();
        let Some(key) = self.core.insert(fd, false, |_, fd| Socket::new(fd)) else { return };
        self.thread_shared().sockets.store(self.core.clients.count(), Ordering::Relaxed);
        if full {
            return self.turn_away(key);
        }
        let timeout_ns = self.shared.options.handshake_timeout.as_nanos() as u64;
        self.core.deadlines.expect(Late::Opening, key, now_ns + timeout_ns);
        self.read_socket(key, false);
    }

    /// Answers that the server is full or going down, and closes.
    pub(super) fn turn_away(&mut self, key: SocketKey) {
        // The request is read first: closing on unread bytes would reset the connection under the answer.
        if let Some(socket) = self.core.clients.get_mut(key) {
            socket.read(&mut self.core.buffer);
        }
        let handshake::Refused(answer) = handshake::UNAVAILABLE;
        // The connection is closed in any case.
        let _ = self.core.send(key, answer.as_bytes());
        self.core.clients.remove(key);
    }

    /// More of a request has come. Returns the bytes after it once the handshake is complete.
    pub(super) fn open(&mut self, key: SocketKey, bytes: &[u8]) -> Option<Vec<u8>> {
        let socket = self.core.clients.get_mut(key)?;
        let Stage::Opening(before) = &mut socket.stage else { return None };
        // Nearly always the whole request arrives at once and nothing needs to be kept.
        let joined;
        let request = if before.is_empty() {
            bytes
        } else {
            before.extend_from_slice(bytes);
            joined = std::mem::take(before);
            &joined[..]
        };
        match handshake::read(request) {
            Ok(None) => {
                *before = request.to_vec();
                None
            }
            Err(handshake::Refused(answer)) => {
                let _ = self.core.send(key, answer.as_bytes());
                self.core.clients.remove(key);
                None
            }
            Ok(Some(upgrade)) => {
                let place = match self.shared.nodes.as_ref().map(|nodes| {
                    let ticket = handshake::query(request, "ticket").unwrap_or_default();
                    nodes.admit(ticket, self.shared.wall.epoch_ms(clock::now_ns()))
                }) {
                    Some(Err(denied)) => {
                        self.deny(key, denied);
                        return None;
                    }
                    Some(Ok(place)) => Some(place),
                    None => None,
                };
                let mut answer = std::mem::take(&mut self.scratch);
                answer.clear();
                handshake::put_answer(&mut answer, &upgrade);
                self.arrive(key, upgrade.snapshots, place, &mut answer);
                self.scratch = answer;
                Some(request[upgrade.request_bytes..].to_vec())
            }
        }
    }

    /// The player has no ticket that is good here.
    fn deny(&mut self, key: SocketKey, denied: Denied) {
        let mut answer = Vec::new();
        response::write(&mut answer, 403, "text/plain", false, format!("{denied}\n").as_bytes());
        // The connection is closed in any case.
        let _ = self.core.send(key, &answer);
        self.core.clients.remove(key);
    }

    /// The handshake is complete: the player waits, or plays against one who waits. Sends `answer` and more.
    fn arrive(&mut self, key: SocketKey, snapshots: bool, place: Option<Place>, answer: &mut Vec<u8>) {
        let newcomer = Arrival {
            address: Address { thread: self.me, key },
            id: self.shared.next_player_id.fetch_add(1, Ordering::Relaxed),
            snapshots: snapshots || self.shared.options.snapshots,
        };
        let welcome =
            self.shared.lobby.lock().unwrap_or_else(PoisonError::into_inner).arrive(newcomer, place);
        let (mut closed, mut again) = (false, false);
        match welcome {
            Welcome::Wait => {
                self.set_stage(key, Stage::Waiting);
                self.waiting_count += 1;
            }
            Welcome::Play { first, is_swapped } => {
                let speed = self.shared.options.bullet_speed;
                let (mut players, mut seats) = ([first, newcomer], Player::BOTH);
                if is_swapped {
                    players.reverse();
                    seats.reverse();
                }
                let shots = self.games.insert(players, speed, clock::now_ns());
                self.set_stage(key, Stage::Playing(shots.clone(), seats[1]));
                self.playing_count += 1;
                if self.core.faults.now.late_ns > 0 {
                    self.deliver(newcomer.address, ThreadEvent::StartMessage);
                } else {
                    answer.extend_from_slice(START_FRAME);
                }
                let event = ThreadEvent::Start(shots, seats[0]);
                self.deliver(first.address, event);
                if self.core.faults.twice.selects_next() {
                    again = true;
                    self.deliver(first.address, ThreadEvent::StartMessage);
                }
            }
            Welcome::Closed => closed = true,
        }
        if self.core.send(key, answer).is_err() {
            self.part(key);
        } else if closed {
            self.close(key, close_code::GOING_AWAY);
        } else if again {
            self.deliver(newcomer.address, ThreadEvent::StartMessage);
        }
    }

    /// The part in the pairing of the player who waited, on that player's thread.
    pub(super) fn start(&mut self, key: SocketKey, shots: Arc<Shots>, player: Player) {
        let forgetful = self.shared.options.pairing == Pairing::Forgetful;
        match self.stage(key) {
            Some(stage @ Stage::Waiting) => {
                *stage = Stage::Playing(shots, player);
                self.waiting_count -= 1;
                self.playing_count += 1;
                if self.core.send(key, START_FRAME).is_err() {
                    self.part(key);
                }
            }
            // A forgetful arena ignores it: the game continues against a player who never fires.
            _ if forgetful => {}
            // The player left while the message was in transit.
            _ => shots.leave(player),
        }
    }

    fn set_stage(&mut self, key: SocketKey, stage: Stage) {
        if let Some(now) = self.stage(key) {
            *now = stage;
        }
    }

    /// Brings an event to a socket: at once on this thread, by message on another.
    pub(super) fn deliver(&mut self, to: Address, event: ThreadEvent) {
        let message = ThreadMessage { to: to.key, event };
        if to.thread == self.me {
            self.receive(message);
        } else {
            self.outgoing[to.thread].push(message);
        }
    }
}
