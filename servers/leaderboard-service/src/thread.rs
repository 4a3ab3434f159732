//! One thread of the service: sleep in epoll, read, answer.
//!
//! All complete requests of one read are answered with one write, up to a limit. A client that does not read its
//! answers, or whose answers are pending, is not read from; it has to read them in time. The memory of all answers
//! waiting for clients is bounded, and so is that of incomplete requests (`late`).

mod late;
mod stored;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Shared;
use super::calls::Caller;
use super::problem::Problem;
use super::responder::Responder;
use super::session::{self, Session, Start};
use super::store::Remote;
use super::websocket::{self, WebSocket};
pub(super) use late::give_back;
use late::{Late, Total};
use servers_shared::clock;
use servers_shared::deadlines::Due;
use servers_shared::epoll::Readiness;
use servers_shared::http::request::{self, Front, Limits};
use servers_shared::slab::Key;
use servers_shared::stream::{self, Read};
use servers_shared::thread::{self, Common, Core, ENDING_REST_NS, IDLE_REST_NS, Serve};
use servers_shared::wakeup::Wakeup;

const BUFFER_BYTES: usize = 128 * 1024;

/// A portion of answers ends with the one that reaches this.
pub(super) const PORTION_BYTES: usize = 64 * 1024;

/// … or with this many. A turn gives one portion to each client, so that one that asks without end keeps no other waiting for longer.
pub(super) const PORTION_ANSWERS: usize = 64;

/// Memory that a connection keeps for what it reads and for answers that could not be written at once.
pub(super) const KEPT_BYTES: usize = 4 * 1024;

/// How long silent connections are kept during shutdown, so that clients that send a request now get an answer.
const LINGER_NS: u64 = 200_000_000;

pub(super) struct Client {
    fd: OwnedFd,
    /// Input that is not answered yet: part of a request, or what follows a full portion.
    input: Vec<u8>,
    /// Answers that were not taken yet, or may not leave yet.
    unsent: Vec<u8>,
    /// Since when the client has not taken them, monotonic ns.
    unsent_since_ns: Option<u64>,
    /// Memory of answers that wait for the client, as `Thread::untaken` counts it.
    untaken_bytes: usize,
    /// Memory of requests that are not whole, as `Thread::unfinished` counts it.
    unfinished_bytes: usize,
    /// The answers wait in the thread's queue.
    is_held: bool,
    /// Answers that wait for the store; `is_held` with it.
    awaited: usize,
    /// Room in the socket is watched for.
    is_watched: bool,
    /// The last answer was given; further input is ignored.
    closes: bool,
    /// Nothing more will be sent; the client may close.
    is_finished: bool,
    /// The client has shut its sending side.
    has_ended: bool,
    /// A request had begun when the server went down: it is answered.
    is_under_way: bool,
    /// `input` may hold a whole request.
    has_more: bool,
    /// What it has switched to from HTTP/1.1.
    session: Option<Box<Session>>,
    /// By when it must have completed its request, or closed.
    asking: Due,
    /// By when it must have taken its answers.
    taking: Due,
}

/// What became of bytes that were read.
pub(super) struct Turn {
    /// How many were taken.
    pub(super) taken: usize,
    /// Requests that were answered.
    pub(super) answered: usize,
    /// The last answer was given.
    pub(super) closes: bool,
    /// The portion was full: more can be answered without further bytes.
    pub(super) has_more: bool,
}

/// Answers that wait for their time.
struct Held {
    key: Key,
    /// How many.
    count: usize,
    /// Planted lateness.
    at_ns: u64,
    /// What must be durable before.
    position: u64,
}

/// The connection is over, in whichever way.
struct Gone;

struct Thread<'h> {
    shared: &'h Shared,
    core: Core<Client, Late>,
    responder: Responder,
    caller: Caller,
    /// With `--store`.
    remote: Option<Box<Remote>>,
    me: usize,
    answers: Vec<u8>,
    /// In the order in which they were given.
    held: VecDeque<Held>,
    limits: Limits,
    /// How long a request may take from its first byte to its last, and a client to close after its last answer.
    request_ns: u64,
    /// How long a client may take for the answers that wait for it.
    answer_ns: u64,
    /// Of all answers that wait for their clients; this thread's part of `--total-unsent`.
    untaken: Total,
    /// Of all requests that are not whole; this thread's part of `--total-unfinished`.
    unfinished: Total,
    /// When the server went down, monotonic ns.
    down_since_ns: u64,
}

pub(super) fn run(shared: &Arc<Shared>, common: &Arc<Common>, me: usize) -> io::Result<()> {
    let wakeups = shared.log.as_ref().map_or(&[][..], |log| log.wakeups());
    let core = Core::with_own_table(common, BUFFER_BYTES, wakeups.iter().map(Wakeup::raw))?;
    if let Some(wakeup) = wakeups.get(me) {
        core.watch_wakeup(wakeup)?;
    }
    let mut thread = Thread::new(shared, core, me);
    thread.watch_store()?;
    thread::live(&mut thread);
    Ok(())
}

impl Serve for Thread<'_> {
    type Client = Client;
    type Late = Late;

    /// Few per wake-up, so that a burst of connections spreads over the threads it wakes.
    const TAKEN_PER_TURN: usize = 4;

    fn core(&mut self) -> &mut Core<Client, Late> {
        &mut self.core
    }

    fn woke(&mut self, _slept: bool) {
        if self.core.faults.look() && self.core.faults.takes_drop() {
            for key in self.core.clients.keys() {
                if let Some(client) = self.core.clients.get_mut(key) {
                    stream::reset_on_close(&client.fd);
                }
                self.part(key);
            }
        }
    }

    fn serve(&mut self, key: Key, ready: Readiness) {
        if key.to_bits() == stored::KEY {
            return self.hear_store();
        }
        self.converse(key, ready.ended);
    }

    fn turn(&mut self) {
        self.release();
        self.turn_store();
    }

    fn may_take(&mut self, _taken: usize) -> bool {
        !self.core.table_is_full()
    }

    fn take_connections(&mut self) {
        thread::take(self, |thread, fd, _| thread.greet(fd));
    }

    fn is_due(&mut self, what: Late, key: Key, now_ns: u64) {
        let Core { clients, deadlines, .. } = &mut self.core;
        let Some(client) = clients.get_mut(key) else { return };
        let due = match what {
            Late::Asking => &mut client.asking,
            Late::Taking => &mut client.taking,
        };
        if deadlines.holds(what, key, due, now_ns) {
            self.part(key);
        }
    }

    fn go_down(&mut self) -> u64 {
        self.down_since_ns = clock::now_ns();
        for key in self.core.clients.keys() {
            if let Some(client) = self.core.clients.get_mut(key) {
                client.is_under_way = true;
            }
            // What the kernel already has was sent before, and is in flight as well.
            self.converse(key, true);
            if let Some(client) = self.core.clients.get_mut(key) {
                client.is_under_way &= !client.input.is_empty();
            }
        }
        let has_failed = self.shared.log.as_ref().is_some_and(|log| log.has_failed());
        if has_failed { 0 } else { self.shared.options.grace.as_nanos() as u64 }
    }

    fn is_done(&mut self) -> bool {
        let owes = |client: &Client| client.is_under_way || client.is_held || !client.unsent.is_empty();
        let has_lingered = clock::now_ns() >= self.down_since_ns + LINGER_NS;
        self.core.clients.count() == 0
            || self.core.has_no_more_time()
            || (has_lingered && !self.core.clients.iter().any(|(_, client)| owes(client)))
    }

    fn rest(&mut self) -> u64 {
        let longest_ns = if self.core.is_going_down() { ENDING_REST_NS } else { IDLE_REST_NS };
        let held_ns = self.held.front().map(|held| held.at_ns).filter(|at_ns| *at_ns > 0);
        let store_ns = self.remote.as_ref().map(|remote| remote.due_ns());
        self.core.rest_ns(longest_ns, held_ns.into_iter().chain(store_ns).min())
    }
}

impl<'h> Thread<'h> {
    fn new(shared: &'h Arc<Shared>, core: Core<Client, Late>, me: usize) -> Thread<'h> {
        Thread {
            shared,
            core,
            responder: Responder::new(shared, me),
            caller: Caller::new(shared, me),
            remote: shared.store.as_ref().map(|store| Box::new(Remote::new(store))),
            me,
            answers: Vec::new(),
            held: VecDeque::new(),
            limits: Limits { body_bytes: shared.options.body_max, ..Limits::default() },
            request_ns: shared.options.request_timeout.as_nanos() as u64,
            answer_ns: shared.options.answer_timeout.as_nanos() as u64,
            untaken: Total::new(shared.options.total_unsent / shared.tallies.len()),
            unfinished: Total::new(shared.options.total_unfinished / shared.tallies.len()),
            down_since_ns: 0,
        }
    }

    fn greet(&mut self, fd: OwnedFd) {
        // The first connection starts the faults' clock.
        self.core.faults.look();
        let connections = self.shared.connections.fetch_add(1, Ordering::Relaxed);
        let client = |_, fd| Client {
            fd,
            input: Vec::new(),
            unsent: Vec::new(),
            unsent_since_ns: None,
            untaken_bytes: 0,
            unfinished_bytes: 0,
            is_held: false,
            awaited: 0,
            is_watched: false,
            closes: false,
            is_finished: false,
            has_ended: false,
            is_under_way: false,
            has_more: false,
            session: None,
            asking: Due::default(),
            taking: Due::default(),
        };
        let Some(key) = self.core.insert(fd, false, client) else {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        if connections < self.shared.options.max_connections {
            return self.converse(key, false);
        }
        // The client is told why, and given time to read it: closing on unread bytes would reset the connection.
        let problem = Problem::new(429, "too many connections (--max-connections)");
        let Some(client) = self.core.clients.get_mut(key) else { return };
        self.responder.refuse(&problem, false, &mut client.unsent);
        client.closes = true;
        self.converse(key, true);
    }

    fn converse(&mut self, key: Key, ended: bool) {
        let conversed = thread::with_buffers(
            self,
            |thread| &mut thread.answers,
            |thread, buffer, answers| {
                thread.exchange(key, ended, buffer, answers)?;
                thread.take_leave(key, buffer, answers)
            },
        );
        match conversed {
            Ok(()) => {
                self.count_untaken(key);
                self.count_unfinished(key);
            }
            Err(Gone) => self.part(key),
        }
    }

    /// Writes, answers and reads by turns, until there is nothing to read, the client has to take something first or has had its
    /// portion.
    fn exchange(
        &mut self,
        key: Key,
        mut ended: bool,
        buffer: &mut [u8],
        answers: &mut Vec<u8>,
    ) -> Result<(), Gone> {
        let mut was_the_last = false;
        // Requests received before shutdown are answered, however many.
        let is_rationed = !self.core.is_going_down();
        let mut had_portion = false;
        loop {
            let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
            if client.is_held {
                return Ok(());
            }
            if !client.unsent.is_empty() {
                let sent = stream::write(&client.fd, &client.unsent).map_err(|()| Gone)?;
                client.unsent.drain(..sent);
                if !client.unsent.is_empty() {
                    return self.watch(key, true);
                }
                give_back(&mut client.unsent);
                client.unsent_since_ns = None;
                // What arrived meanwhile was announced, and not read.
                (ended, was_the_last) = (true, false);
                if client.is_watched {
                    self.watch(key, false)?;
                    continue;
                }
            }
            if client.closes && !client.is_finished {
                client.is_finished = true;
                client.is_under_way = false;
                client.input = Vec::new();
                stream::finish_writing(&client.fd);
                self.expect(key);
                continue;
            }
            if was_the_last && !ended && !client.has_more && !client.has_ended {
                break;
            }
            if had_portion && is_rationed {
                self.core.read_on_later(key);
                break;
            }
            if client.has_more {
                had_portion = true;
                let mut input = std::mem::take(&mut client.input);
                let taken = self.answer(key, &mut input, answers);
                if let Some(client) = self.core.clients.get_mut(key) {
                    input.drain(..taken);
                    give_back(&mut input);
                    client.input = input;
                }
                self.give(key, answers)?;
                continue;
            }
            if client.has_ended {
                return Err(Gone);
            }
            match stream::read(&client.fd, buffer) {
                Read::Empty => break,
                Read::Ended => client.has_ended = true,
                Read::Bytes(_) if client.closes => had_portion = true,
                Read::Bytes(count) => {
                    // A short read was the last one, except for the end of the stream.
                    was_the_last = count < buffer.len();
                    if !client.input.is_empty() {
                        client.input.extend_from_slice(&buffer[..count]);
                        client.has_more = true;
                        continue;
                    }
                    had_portion = true;
                    let taken = self.answer(key, &mut buffer[..count], answers);
                    if let Some(client) = self.core.clients.get_mut(key)
                        && taken < count
                    {
                        client.input.extend_from_slice(&buffer[taken..count]);
                    }
                    self.give(key, answers)?;
                }
            }
        }
        self.expect_the_rest(key);
        Ok(())
    }

    /// When the server goes down: ends a session once all that came before is answered.
    fn take_leave(&mut self, key: Key, buffer: &mut [u8], answers: &mut Vec<u8>) -> Result<(), Gone> {
        let going_down = self.core.is_going_down();
        let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
        let is_idle = !client.is_held && client.unsent.is_empty() && !client.closes;
        if client.session.is_none() || !is_idle || !going_down {
            return Ok(());
        }
        self.caller.take_touched();
        let mut answered = 0;
        if let Some(session) = &mut client.session {
            answered = session.take_leave(&self.caller, &mut self.core.faults, &mut client.unsent);
        }
        client.closes = true;
        if answered > 0 {
            let waits = self.caller.take_touched();
            self.hold(key, answered, waits);
        }
        self.exchange(key, true, buffer, answers)
    }

    /// Answers the whole requests at the front of `bytes`, up to a portion. Returns how many bytes they took.
    fn answer(&mut self, key: Key, bytes: &mut [u8], answers: &mut Vec<u8>) -> usize {
        answers.clear();
        let going_down = self.core.is_going_down();
        let Core { clients, faults, .. } = &mut self.core;
        let Some(client) = clients.get_mut(key) else { return bytes.len() };
        client.has_more = false;
        if let Some(session) = &mut client.session {
            self.caller.take_touched();
            let turn = session.answer(bytes, &self.caller, faults, answers);
            client.closes |= turn.closes;
            client.has_more = turn.has_more && !client.closes;
            if turn.answered > 0 {
                client.asking.by_ns = None;
                let waits = self.caller.take_touched();
                self.hold(key, turn.answered, waits);
            }
            return if turn.closes { bytes.len() } else { turn.taken };
        }
        self.responder.take_touched();
        let (mut taken, mut count) = (0, 0);
        while taken < bytes.len() {
            let is_full = answers.len() >= PORTION_BYTES || count >= PORTION_ANSWERS;
            if is_full || client.awaited >= stored::PORTION {
                client.has_more = true;
                break;
            }
            match session::start(&bytes[taken..], going_down) {
                Start::None => {}
                Start::Incomplete => break,
                // Its bytes would come before answers that wait.
                Start::Begun(..) if client.awaited > 0 => {
                    client.has_more = true;
                    break;
                }
                Start::Begun(session, took) => {
                    client.session = Some(Box::new(session));
                    taken += took;
                    client.has_more = taken < bytes.len();
                    break;
                }
            }
            match request::front(&bytes[taken..], &self.limits) {
                Front::Incomplete => break,
                Front::Broken(_) if client.awaited > 0 => {
                    client.has_more = true;
                    break;
                }
                Front::Broken(fault) => {
                    self.responder.answer_fault(fault, answers);
                    client.closes = true;
                }
                Front::Whole { request, .. }
                    if websocket::is_upgrade(&request) && !going_down && self.remote.is_none() =>
                {
                    match websocket::upgrade(&bytes[taken..], answers) {
                        Ok(took) => {
                            taken += took;
                            client.session = Some(Box::new(Session::WebSocket(WebSocket::default())));
                            // Anything that follows is frames.
                            client.has_more = taken < bytes.len();
                        }
                        Err(refused) => {
                            answers.extend_from_slice(refused.0.as_bytes());
                            client.closes = true;
                        }
                    }
                }
                Front::Whole { request, bytes } => {
                    taken += bytes;
                    let keep_alive = request.keep_alive && !going_down;
                    if going_down && !std::mem::take(&mut client.is_under_way) {
                        let problem = Problem::new(503, "the server goes down");
                        self.responder.refuse(&problem, false, answers);
                    } else if let Some(remote) = &mut self.remote {
                        let asker = (key, client.awaited > 0);
                        let asked = (&request, keep_alive);
                        let awaits = remote.ask(&mut self.responder, asker, asked, faults, answers);
                        client.awaited += usize::from(awaits);
                    } else {
                        self.responder.answer(&request, keep_alive, faults, answers);
                    }
                    client.closes = !keep_alive;
                }
            }
            count += 1;
            if client.closes {
                taken = bytes.len();
            }
            if client.session.is_some() {
                break;
            }
        }
        if count > 0 {
            client.asking.by_ns = None;
            let waits = self.responder.take_touched();
            self.hold(key, count, waits);
        }
        taken
    }

    /// Keeps the answers back if they have to wait: for the store, the disk (`waits`) or planted lateness.
    fn hold(&mut self, key: Key, count: usize, waits: bool) {
        if self.awaits_store(key) {
            return;
        }
        let position = self.shared.log.as_ref().filter(|_| waits).map_or(0, |log| log.position());
        let late_ns = self.core.faults.now.late_ns;
        if late_ns == 0 && self.is_durable(position) {
            return;
        }
        let at_ns = if late_ns == 0 { 0 } else { clock::now_ns() + late_ns };
        if let Some(client) = self.core.clients.get_mut(key) {
            client.is_held = true;
            self.shared.pending.fetch_add(count, Ordering::Relaxed);
            self.held.push_back(Held { key, count, at_ns, position });
        }
    }

    fn is_durable(&self, position: u64) -> bool {
        self.shared.log.as_ref().is_none_or(|log| log.durable() >= position)
    }

    /// Writes the answers, or keeps what cannot be written now.
    fn give(&mut self, key: Key, answers: &[u8]) -> Result<(), Gone> {
        let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
        let may_write = !client.is_held && !answers.is_empty();
        let sent = if may_write { stream::write(&client.fd, answers).map_err(|()| Gone)? } else { 0 };
        client.unsent.extend_from_slice(&answers[sent..]);
        Ok(())
    }

    /// Lets answers go whose time has come.
    fn release(&mut self) {
        while let Some(held) = self.held.front() {
            if !self.is_durable(held.position) || (held.at_ns > 0 && held.at_ns > clock::now_ns()) {
                return;
            }
            let (key, count) = (held.key, held.count);
            self.held.pop_front();
            self.shared.pending.fetch_sub(count, Ordering::Relaxed);
            if let Some(client) = self.core.clients.get_mut(key) {
                client.is_held = false;
                self.converse(key, true);
            }
        }
    }

    /// Watches for room, or no more.
    fn watch(&mut self, key: Key, wanted: bool) -> Result<(), Gone> {
        let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
        if std::mem::replace(&mut client.is_watched, wanted) == wanted {
            return Ok(());
        }
        self.core.epoll.change(&client.fd, key.to_bits(), wanted).map_err(|_| Gone)
    }

    fn part(&mut self, key: Key) {
        if let Some(client) = self.core.clients.remove(key) {
            self.untaken.change(client.untaken_bytes, 0);
            self.unfinished.change(client.unfinished_bytes, 0);
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
