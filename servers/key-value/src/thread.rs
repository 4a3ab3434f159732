//! The single thread: sleeps in epoll, reads, executes, answers, and removes expired keys.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use super::Options;
use super::about::About;
use super::client::Client;
use super::commands::{self, After, Call};
use super::keyspace::{FREED_AT_ONCE, Keyspace, Large, Memory};
use super::planted::{self, Planted};
use super::reply;
use super::request::{Broken, Parser};
use servers_shared::epoll::Readiness;
use servers_shared::slab::Key;
use servers_shared::stream::{self, Read};
use servers_shared::thread::{self, Common, Core, ENDING_REST_NS, IDLE_REST_NS, Serve};
use servers_shared::{clock, sleeper};

const BUFFER_BYTES: usize = 64 * 1024;
/// Answers leave when they reach this.
const PORTION_BYTES: usize = 64 * 1024;
/// Answers are written here; more room than this is given back.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Reads from one connection in a turn: one that sends without end must not keep the others waiting.
const READS_PER_TURN: usize = 4;
/// The least and the most room that is made for the rest of a long command: memory follows what comes, not what is
/// announced.
const ROOM_BYTES: std::ops::RangeInclusive<usize> = 16 * 1024..=1 << 20;
/// What is read of a client that does not take its answers, to see whether it has sent half a command.
const READ_AHEAD_BYTES: usize = 1 << 20;
/// Expired keys that are looked at in a turn.
const EXPIRED_PER_TURN: usize = 1_000;
/// How long clients have to take their answers and to close when the server ends.
const GOING_DOWN_NS: u64 = 1_000_000_000;
/// So long a planted fault holds an answer back when there is no next one.
const HELD_NS: u64 = 5_000_000;
const MS: u64 = 1_000_000;

struct Thread<'h> {
    options: &'h Options,
    core: Core<Client, ()>,
    keys: Keyspace,
    about: About,
    answer: Vec<u8>,
    planted: Planted,
    /// Who is answered once all is freed that was cleared up to this number, in its order.
    flushers: VecDeque<(u64, Key)>,
    /// Answers that a planted fault makes late, with when they leave; in the order of that.
    late: VecDeque<(u64, Key, Vec<u8>)>,
    /// Connections whose held answer leaves at the latest then.
    held: VecDeque<(u64, Key)>,
}

/// Why no more commands are executed for now.
enum Stop {
    /// The rest is no whole command.
    Incomplete,
    /// The answers fill a portion.
    Full,
    /// This value belongs to the last answer.
    Value(Rc<Large>),
    /// The next answer is due when this is freed.
    Freed(u64),
    /// The last answer is the last of the connection.
    End,
}

pub(super) fn run(options: &Options, port: u16, common: &Arc<Common>) -> io::Result<()> {
    let core = Core::with_own_table(common, BUFFER_BYTES, std::iter::empty())?;
    thread::live(&mut Thread::new(options, port, core));
    Ok(())
}

fn now_ms() -> u64 {
    clock::now_ns() / MS
}

impl Serve for Thread<'_> {
    type Client = Client;
    type Late = ();

    /// Few: the clients that are there wait meanwhile.
    const TAKEN_PER_TURN: usize = 4;

    fn core(&mut self) -> &mut Core<Client, ()> {
        &mut self.core
    }

    fn woke(&mut self, _slept: bool) {
        if !self.core.faults.look() {
            return;
        }
        if self.core.faults.takes_drop() {
            for key in self.core.clients.keys() {
                if let Some(client) = self.core.clients.get_mut(key) {
                    stream::reset_on_close(&client.fd);
                }
                self.part(key);
            }
        }
        if self.core.faults.now.slow_ns > 0 {
            sleeper::sleep_until(clock::now_ns() + self.core.faults.now.slow_ns);
        }
    }

    fn serve(&mut self, key: Key, ready: Readiness) {
        self.converse(key, ready.ended);
    }

    fn turn(&mut self) {
        if self.keys.next_expiry_ms().is_some() {
            self.keys.remove_expired(now_ms(), EXPIRED_PER_TURN);
        }
        self.keys.free_cleared(FREED_AT_ONCE);
        while let Some(&(_, key)) = self.flushers.front().filter(|(cleared, _)| self.keys.has_freed(*cleared))
        {
            self.flushers.pop_front();
            self.answer_flush(key);
        }
        if self.core.faults.are_planted() {
            self.send_what_is_late();
        }
    }

    fn may_take(&mut self, _taken: usize) -> bool {
        !self.core.table_is_full()
    }

    fn take_connections(&mut self) {
        thread::take(self, |thread, fd, _| thread.greet(fd));
    }

    fn is_due(&mut self, (): (), key: Key, now_ns: u64) {
        let Core { clients, deadlines, .. } = &mut self.core;
        let Some(client) = clients.get_mut(key) else { return };
        if !deadlines.holds((), key, &mut client.due, now_ns) {
            return;
        }
        client.due.by_ns = None;
        if client.is_ending || client.unsent.is_empty() || self.has_half_a_command(key) {
            self.part(key);
        }
    }

    fn go_down(&mut self) -> u64 {
        // The rest is freed with the process.
        for (_, key) in std::mem::take(&mut self.flushers) {
            self.answer_flush(key);
        }
        for key in self.core.clients.keys() {
            self.converse(key, true);
            let Some(client) = self.core.clients.get_mut(key) else { continue };
            if !client.is_ending {
                client.is_ending = true;
                if client.unsent.is_empty() {
                    stream::finish_writing(&client.fd);
                }
            }
        }
        GOING_DOWN_NS
    }

    fn rest(&mut self) -> u64 {
        // A flush that a client waits for may have been freed by another's since the turn answered them.
        if self.keys.is_freeing() || !self.flushers.is_empty() {
            return 0;
        }
        let longest_ns = if self.core.is_going_down() { ENDING_REST_NS } else { IDLE_REST_NS };
        // A key may expire later than 64 bits of nanoseconds can express.
        let expiry_ns = self.keys.next_expiry_ms().map(|at_ms| at_ms.saturating_mul(MS));
        let late_ns = self.late.front().map(|(at_ns, ..)| *at_ns);
        self.core.rest_ns(longest_ns, [expiry_ns, late_ns].into_iter().flatten().min())
    }
}

impl<'h> Thread<'h> {
    fn new(options: &'h Options, port: u16, core: Core<Client, ()>) -> Thread<'h> {
        let memory = Memory::new(usize::try_from(options.memory_bytes).unwrap_or(usize::MAX));
        Thread {
            options,
            core,
            keys: Keyspace::new(memory),
            about: About::new(port, options.max_connections),
            answer: Vec::with_capacity(PORTION_BYTES),
            planted: Planted::default(),
            flushers: VecDeque::new(),
            late: VecDeque::new(),
            held: VecDeque::new(),
        }
    }

    fn greet(&mut self, fd: OwnedFd) {
        self.core.faults.look();
        if self.core.clients.count() >= self.options.max_connections {
            self.about.rejected_total += 1;
            // Read first: closing on unread bytes would reset the connection under the answer.
            stream::read(&fd, &mut self.core.buffer);
            let _ = stream::write(&fd, b"-ERR max number of clients reached\r\n");
            return;
        }
        self.about.connections_total += 1;
        let id = self.about.connections_total;
        if let Some(key) = self.core.insert(fd, false, |_, fd| Client::new(fd, id)) {
            self.about.connections = self.core.clients.count() as u64;
            self.converse(key, false);
        }
    }

    /// The client must have completed its command, or closed, within the timeout from now.
    fn expect(&mut self, key: Key) {
        let by_ns = clock::now_ns() + self.options.command_timeout.as_nanos() as u64;
        if let Some(client) = self.core.clients.get_mut(key) {
            self.core.deadlines.renew((), key, &mut client.due, by_ns);
        }
    }

    /// Carries out and answers all that there is to read, unless the client still has to take earlier answers.
    fn converse(&mut self, key: Key, ended: bool) {
        let served = thread::with_buffers(
            self,
            |thread| &mut thread.answer,
            |thread, buffer, answer| thread.exchange(key, ended, buffer, answer),
        );
        if served.is_err() {
            self.part(key);
        }
    }

    /// `ended`: the end of the stream may be there, and must be read up to. Errors: the connection is over.
    fn exchange(
        &mut self,
        key: Key,
        mut ended: bool,
        buffer: &mut [u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), ()> {
        let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
        if !client.unsent.is_empty() {
            if !client.flush()? {
                self.await_taking(key);
                return Ok(());
            }
            // Half a command that was read before keeps its remaining time.
            if client.has_more || client.input.is_empty() {
                client.due.by_ns = None;
            }
            self.core.epoll.change(&client.fd, key.to_bits(), false).map_err(drop)?;
            ended = true;
            if client.is_ending {
                self.finish(key);
            }
        }
        for _ in 0..READS_PER_TURN {
            let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
            if client.awaits_freed {
                return Ok(());
            }
            if client.is_ending {
                return self.discard(key, buffer);
            }
            let mut input = std::mem::take(&mut client.input);
            let mut was_the_last = false;
            let read = if client.has_more {
                None
            } else if input.is_empty() {
                Some(stream::read(&client.fd, buffer)).inspect(|read| {
                    was_the_last = !ended && matches!(read, Read::Bytes(count) if *count < buffer.len());
                })
            } else {
                let missing_bytes = client.parser.needed().saturating_sub(input.len());
                input.reserve(missing_bytes.clamp(*ROOM_BYTES.start(), *ROOM_BYTES.end()));
                if client.count(input.capacity(), self.keys.memory()).is_err() {
                    client.keep_input(input);
                    answer.clear();
                    reply::error(answer, commands::FULL);
                    self.give(key, answer, None)?;
                    self.end(key);
                    return Ok(());
                }
                Some(stream::append(&client.fd, &mut input))
            };
            match read {
                Some(Read::Ended) => return Err(()),
                Some(Read::Empty) => {
                    client.keep_input(input);
                    return Ok(());
                }
                Some(Read::Bytes(_)) | None => {}
            }
            answer.clear();
            let (taken, stop) = match read {
                Some(Read::Bytes(count)) if input.is_empty() => {
                    let (taken, stop) = self.carry_out(key, &buffer[..count], answer);
                    input.extend_from_slice(&buffer[taken..count]);
                    (taken, stop)
                }
                _ => {
                    let (taken, stop) = self.carry_out(key, &input, answer);
                    input.drain(..taken);
                    (taken, stop)
                }
            };
            let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
            client.keep_input(input);
            let may_go_on = matches!(stop, Stop::Full | Stop::Value(_) | Stop::Freed(_));
            client.has_more = may_go_on && !client.input.is_empty();
            let awaits_more = !client.input.is_empty() && !client.has_more;
            let input_bytes = client.input.capacity();
            // The input was accounted for when it was read. An incomplete command's word offsets come on top, and can
            // exceed its bytes.
            let fits = client.count(input_bytes, self.keys.memory()).is_ok();
            if !awaits_more || taken > 0 {
                client.due.by_ns = None;
            }
            let is_due = client.due.by_ns.is_some();
            let (value, is_end) = match stop {
                Stop::Value(value) => (Some(value), false),
                Stop::Freed(cleared) => {
                    client.awaits_freed = true;
                    self.flushers.push_back((cleared, key));
                    (None, false)
                }
                Stop::End => (None, true),
                Stop::Incomplete if !fits => {
                    reply::error(answer, commands::FULL);
                    (None, true)
                }
                Stop::Incomplete | Stop::Full => (None, false),
            };
            let has_left = self.give(key, answer, value)?;
            if is_end {
                self.end(key);
                continue;
            }
            if awaits_more && !is_due {
                self.expect(key);
            }
            if !has_left {
                self.await_taking(key);
                return Ok(());
            }
            let has_more = self.core.clients.get_mut(key).is_some_and(|client| client.has_more);
            if was_the_last && !has_more {
                return Ok(());
            }
        }
        self.core.read_on_later(key);
        Ok(())
    }

    /// Nothing is read until the client has taken its answers, so half a command would not be seen: it is looked for when
    /// the timeout is over, and again whenever more has come.
    fn await_taking(&mut self, key: Key) {
        if self.core.clients.get_mut(key).is_some_and(|client| client.due.by_ns.is_none()) {
            self.expect(key);
        }
    }

    /// Whether what the client has sent, while it does not take its answers, ends within a command. Of more than
    /// `READ_AHEAD_BYTES` that is not found out.
    fn has_half_a_command(&mut self, key: Key) -> bool {
        let Some(client) = self.core.clients.get_mut(key) else { return false };
        let (mut parser, mut at) = (Parser::default(), 0);
        loop {
            match parser.front(&client.input[at..]) {
                Ok(Some(length)) => {
                    parser.next();
                    at += length;
                    client.has_more = true;
                }
                // It is answered in its turn.
                Err(_) => {
                    client.has_more = true;
                    return false;
                }
                // A long command is read completely, however long.
                Ok(None)
                    if client.input.len() > READ_AHEAD_BYTES
                        && client.input.len() >= at + parser.needed() =>
                {
                    return false;
                }
                Ok(None) => {
                    client.input.reserve(*ROOM_BYTES.start());
                    let input_bytes = client.input.capacity();
                    if client.count(input_bytes, self.keys.memory()).is_err() {
                        return true;
                    }
                    if !matches!(stream::append(&client.fd, &mut client.input), Read::Bytes(_)) {
                        return at < client.input.len();
                    }
                }
            }
        }
    }

    /// Carries out whole commands at the beginning of `bytes`. Returns how many bytes they had.
    fn carry_out(&mut self, key: Key, bytes: &[u8], answer: &mut Vec<u8>) -> (usize, Stop) {
        let now_ms = now_ms();
        let Thread { core: Core { clients, faults, .. }, keys, about, planted, .. } = self;
        let Some(Client { parser, session, held, .. }) = clients.get_mut(key) else { return (0, Stop::End) };
        let are_planted = faults.are_planted();
        let mut taken = 0;
        let was_held = held.is_some();
        let stop = loop {
            let rest = &bytes[taken..];
            let length = match parser.front(rest) {
                Ok(Some(length)) => length,
                Ok(None) => break Stop::Incomplete,
                Err(broken) => {
                    put_broken(answer, &broken);
                    break Stop::End;
                }
            };
            let words = parser.words(rest);
            let mut after = After::Nothing;
            if words.len() > 0 {
                let mut call = Call { words, session, keys, about, out: answer, now_ms };
                if are_planted {
                    let begin = call.out.len();
                    after = planted::execute(&mut call, faults, planted);
                    planted::reply(answer, begin, faults, held);
                } else {
                    after = commands::execute(&mut call);
                }
            }
            parser.next();
            taken += length;
            match after {
                After::Nothing => {}
                After::Value(value) => break Stop::Value(value),
                After::OkWhenFreed(cleared) => break Stop::Freed(cleared),
                After::End => break Stop::End,
            }
            if answer.len() >= PORTION_BYTES {
                break Stop::Full;
            }
        };
        if !was_held && held.is_some() {
            self.held.push_back((clock::now_ns() + HELD_NS, key));
        }
        (taken, stop)
    }

    /// Sends an answer, followed by a value; true when everything was sent. Errors: the connection is over.
    fn give(&mut self, key: Key, answer: &mut Vec<u8>, value: Option<Rc<Large>>) -> Result<bool, ()> {
        let Some(client) = self.core.clients.get_mut(key) else { return Err(()) };
        if answer.is_empty() && value.is_none() {
            return Ok(true);
        }
        let faults = &self.core.faults.now;
        if faults.stops_answers {
            return Ok(true);
        }
        if faults.late_ns > 0 {
            let at_ns = clock::now_ns() + faults.late_ns;
            self.late.push_back((at_ns, key, std::mem::take(answer)));
            return Ok(true);
        }
        let has_left = client.write(answer, value)?;
        if answer.capacity() > ANSWER_BYTES_MAX {
            *answer = Vec::with_capacity(PORTION_BYTES);
        }
        if !has_left {
            let input_bytes = client.input.capacity();
            // A client whose answers do not fit into memory is disconnected, since they cannot be kept.
            client.count(input_bytes, self.keys.memory()).map_err(drop)?;
            self.core.epoll.change(&client.fd, key.to_bits(), true).map_err(drop)?;
        }
        Ok(has_left)
    }

    /// What this client has flushed is freed. What it has sent meanwhile is executed.
    fn answer_flush(&mut self, key: Key) {
        let Some(client) = self.core.clients.get_mut(key) else { return };
        client.awaits_freed = false;
        let mut answer = Vec::new();
        reply::ok(&mut answer);
        self.send_behind(key, answer);
        self.converse(key, true);
    }

    /// Nothing more is executed; once the answers are sent the client has the timeout to close.
    fn end(&mut self, key: Key) {
        let Some(client) = self.core.clients.get_mut(key) else { return };
        client.is_ending = true;
        client.input = Vec::new();
        client.parser = Parser::default();
        client.has_more = false;
        // Less than before, which is never refused.
        let _ = client.count(0, self.keys.memory());
        if client.unsent.is_empty() {
            self.finish(key);
        } else {
            self.expect(key);
        }
    }

    fn finish(&mut self, key: Key) {
        if let Some(client) = self.core.clients.get_mut(key) {
            stream::finish_writing(&client.fd);
        }
        self.expect(key);
    }

    /// Closing on unread bytes would reset the connection under the last answer.
    fn discard(&mut self, key: Key, buffer: &mut [u8]) -> Result<(), ()> {
        let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
        for _ in 0..READS_PER_TURN {
            match stream::read(&client.fd, buffer) {
                Read::Bytes(_) => {}
                Read::Empty => return Ok(()),
                Read::Ended if client.unsent.is_empty() => return Err(()),
                Read::Ended => return Ok(()),
            }
        }
        self.core.read_on_later(key);
        Ok(())
    }

    /// Answers that planted faults have kept until now.
    fn send_what_is_late(&mut self) {
        let now_ns = clock::now_ns();
        while self.held.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            let Some((_, key)) = self.held.pop_front() else { break };
            let held = self.core.clients.get_mut(key).and_then(|client| client.held.take());
            if let Some(held) = held {
                self.send_behind(key, held);
            }
        }
        while self.late.front().is_some_and(|(at_ns, ..)| *at_ns <= now_ns) {
            let Some((_, key, answer)) = self.late.pop_front() else { break };
            self.send_behind(key, answer);
        }
    }

    fn send_behind(&mut self, key: Key, answer: Vec<u8>) {
        let Some(client) = self.core.clients.get_mut(key) else { return };
        let sent = client.write_behind(answer);
        let watched = match sent {
            Ok(true) => Ok(()),
            Ok(false) => self.core.epoll.change(&client.fd, key.to_bits(), true).map_err(drop),
            Err(()) => Err(()),
        };
        if watched.is_err() {
            self.part(key);
        }
    }

    fn part(&mut self, key: Key) {
        if let Some(mut client) = self.core.clients.remove(key) {
            client.uncount(self.keys.memory());
            self.about.connections = self.core.clients.count() as u64;
        }
    }
}

fn put_broken(answer: &mut Vec<u8>, broken: &Broken) {
    match broken {
        Broken::Plainly(what) => reply::error(answer, &format!("ERR Protocol error: {what}")),
        Broken::NoString(byte) => {
            let text =
                format!("ERR Protocol error: expected '$', got '{}'", char::from(*byte).escape_default());
            reply::error(answer, &text);
        }
        // Nothing that a browser sends is answered.
        Broken::Http => {}
    }
}

#[cfg(test)]
mod tests;
