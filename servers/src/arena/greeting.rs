//! Connections: taken in order, greeted, paired.
//!
//! Invariant: who is taken first is paired first, whichever threads take part. So a thread takes connections
//! only while it holds the door, and there, for each one, reads the request, answers it and pairs the player
//! before it takes the next. A client whose request is not there yet arrives when it is complete.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::inbox::{Address, SocketKey, ThreadEvent, ThreadMessage};
use super::lobby::{Arrival, Welcome};
use super::message::START_FRAME;
use super::options::Pairing;
use super::rules::Player;
use super::shots::Shots;
use super::sockets::Stage;
use super::thread::{Deadline, Thread};
use crate::accept_interest::BACK_OFF_NS;
use crate::clock;
use crate::listener::NotAccepted;
use crate::websocket::{close_code, handshake};

/// Connections taken in one turn; and the fewest before a due slot has precedence.
const TAKEN_PER_TURN: usize = 256;
const TAKEN_WHEN_LATE: usize = 8;

/// A thread with so many more sockets than another lets that one take the next.
const SOCKETS_AHEAD_MAX: usize = 128;

/// The share of the first threads' tables, in percent, from which on the reserve takes connections too.
const NEARLY_FULL_PERCENT: usize = 80;

impl Thread {
    /// Watches the listener while this thread may take connections, and only then: it is level-triggered, so
    /// that a connection that may not be taken would wake the thread without end.
    pub(super) fn keep_listening(&mut self) {
        // Of a full arena every thread tells the next one so; of a full table only the others take more.
        let full = self.table_is_full() && !self.shared.is_full();
        let wanted = !full
            && self.gone_by_ns.is_none()
            && self.is_called_upon()
            && (self.back_off_until_ns == 0 || clock::now_ns() >= self.back_off_until_ns);
        if wanted == self.listening {
            return;
        }
        let listener = self.shared.listener.raw();
        let changed = if wanted { self.epoll.add_listener(listener) } else { self.epoll.remove(listener) };
        if changed.is_ok() {
            self.listening = wanted;
            self.back_off_until_ns = 0;
        }
        self.listener_ready &= wanted;
    }

    fn table_is_full(&self) -> bool {
        self.sockets.count() >= self.shared.table_sockets
    }

    /// True for the first threads, and for the reserve once these are nearly full.
    fn is_called_upon(&self) -> bool {
        self.me < self.shared.first_threads || {
            let held: usize = self.first_desks_sockets().sum();
            held * 100 >= self.shared.first_threads * self.shared.table_sockets * NEARLY_FULL_PERCENT
        }
    }

    fn first_desks_sockets(&self) -> impl Iterator<Item = usize> {
        self.shared.threads_shared[..self.shared.first_threads]
            .iter()
            .map(|thread_shared| thread_shared.sockets.load(Ordering::Relaxed))
    }

    /// Whether another thread should take the next ones. A thread at rest takes what woke it.
    fn leaves_it_to_others(&self) -> bool {
        let fewest = self.first_desks_sockets().min().unwrap_or(0);
        self.is_playing() && self.sockets.count() > fewest + SOCKETS_AHEAD_MAX
    }

    pub(super) fn take_connections(&mut self) {
        if self.leaves_it_to_others() {
            return;
        }
        let shared = self.shared.clone();
        let Ok(mut door) = shared.door.try_lock() else { return };
        for taken in 0..TAKEN_PER_TURN {
            let now_ns = clock::now_ns();
            let late = taken >= TAKEN_WHEN_LATE && self.games.next_slot_is_due(now_ns);
            let full = shared.is_full();
            if late || self.table_is_full() && !full {
                break;
            }
            let (fd, peer) = match shared.listener.accept() {
                Ok(accepted) => accepted,
                Err(NotAccepted::Nobody) => return,
                Err(NotAccepted::Failed) => continue,
                Err(NotAccepted::Exhausted) => {
                    self.back_off_until_ns = now_ns + BACK_OFF_NS;
                    if self.epoll.remove(shared.listener.raw()).is_ok() {
                        self.listening = false;
                    }
                    return;
                }
            };
            self.look_at_faults();
            if !door.admits(peer.ip(), now_ns) {
                continue;
            }
            let Ok(key) = self.sockets.insert(fd, &self.epoll) else { continue };
            self.thread_shared().sockets.store(self.sockets.count(), Ordering::Relaxed);
            if full {
                self.turn_away(key);
                continue;
            }
            self.openings.push_back(Deadline {
                at_ns: now_ns + shared.options.handshake_timeout.as_nanos() as u64,
                key,
            });
            self.read_socket(key, false);
        }
        self.more_to_take = true;
    }

    /// Answers that the server is full or going down, and closes.
    pub(super) fn turn_away(&mut self, key: SocketKey) {
        // The request is read first: closing on unread bytes would reset the connection under the answer.
        if let Some(socket) = self.sockets.get_mut(key) {
            socket.read(&mut self.buffer);
        }
        let handshake::Refused(answer) = handshake::UNAVAILABLE;
        // It is dropped in any case.
        let _ = self.sockets.send(key, answer.as_bytes(), &self.epoll);
        self.sockets.remove(key);
    }

    /// More of a request has come. Returns the bytes after it once the handshake is complete.
    pub(super) fn open(&mut self, key: SocketKey, bytes: &[u8]) -> Option<Vec<u8>> {
        let socket = self.sockets.get_mut(key)?;
        let Stage::Opening(before) = &mut socket.stage else { return None };
        // Nearly always the whole request comes at once and nothing needs to be kept.
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
                let _ = self.sockets.send(key, answer.as_bytes(), &self.epoll);
                self.sockets.remove(key);
                None
            }
            Ok(Some(upgrade)) => {
                let mut answer = std::mem::take(&mut self.scratch);
                answer.clear();
                handshake::put_answer(&mut answer, &upgrade);
                self.arrive(key, upgrade.snapshots, &mut answer);
                self.scratch = answer;
                Some(request[upgrade.request_bytes..].to_vec())
            }
        }
    }

    /// The handshake is complete: the player waits, or plays against whoever waits. Sends `answer` and more.
    fn arrive(&mut self, key: SocketKey, snapshots: bool, answer: &mut Vec<u8>) {
        let newcomer = Arrival {
            address: Address { thread: self.me, key },
            id: self.shared.next_player_id.fetch_add(1, Ordering::Relaxed),
            snapshots: snapshots || self.shared.options.snapshots,
        };
        let welcome = self.shared.lobby.lock().unwrap_or_else(PoisonError::into_inner).arrive(newcomer);
        let (mut closed, mut again) = (false, false);
        match welcome {
            Welcome::Wait => {
                self.set_stage(key, Stage::Waiting);
                self.waiting_count += 1;
            }
            Welcome::Play(first) => {
                let speed = self.shared.options.bullet_speed;
                let shots = self.games.insert([first, newcomer], speed, clock::now_ns());
                self.set_stage(key, Stage::Playing(shots.clone(), Player::Two));
                self.playing_count += 1;
                if self.faults.now.late_ns > 0 {
                    self.deliver(newcomer.address, ThreadEvent::StartMessage);
                } else {
                    answer.extend_from_slice(START_FRAME);
                }
                let event = ThreadEvent::Start(shots, Player::One);
                self.deliver(first.address, event);
                if self.faults.twice.selects_next() {
                    again = true;
                    self.deliver(first.address, ThreadEvent::StartMessage);
                }
            }
            Welcome::Closed => closed = true,
        }
        if self.sockets.send(key, answer, &self.epoll).is_err() {
            self.part(key);
        } else if closed {
            self.close(key, close_code::GOING_AWAY);
        } else if again {
            self.deliver(newcomer.address, ThreadEvent::StartMessage);
        }
    }

    /// Player 1's part of the pairing, on the thread of player 1.
    pub(super) fn start(&mut self, key: SocketKey, shots: Arc<Shots>, player: Player) {
        match self.sockets.get_mut(key).map(|socket| &mut socket.stage) {
            Some(stage @ Stage::Waiting) => {
                *stage = Stage::Playing(shots, player);
                self.waiting_count -= 1;
                self.playing_count += 1;
                if self.sockets.send(key, START_FRAME, &self.epoll).is_err() {
                    self.part(key);
                }
            }
            // A forgetful arena takes no notice: the game goes on against a player who never fires.
            _ if self.shared.options.pairing == Pairing::Forgetful => {}
            // The player left while the message was on its way.
            _ => shots.leave(player),
        }
    }

    fn set_stage(&mut self, key: SocketKey, stage: Stage) {
        if let Some(socket) = self.sockets.get_mut(key) {
            socket.stage = stage;
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
