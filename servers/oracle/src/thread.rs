//! The oracle's one thread: reads, queues, and answers at the planned instants.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Options;
use super::client::{Client, Gone, Reply, Stage};
use super::pages::DRIP_NS;
use super::service_time::Line;
use servers_shared::epoll::Readiness;
use servers_shared::slab::Key;
use servers_shared::stream::{self, Read};
use servers_shared::thread::{self, Common, Core, IDLE_REST_NS, Serve};
use servers_shared::{clock, sleeper};

const BUFFER_BYTES: usize = 64 * 1024;

/// So long before an answer is due the thread is awake, and stays so: a sleep ends some ten µs late.
const AWAKE_NS: u64 = 150_000;

struct Thread<'h> {
    options: &'h Options,
    /// Where the periods of stalls are counted from, monotonic ns.
    start_ns: u64,
    core: Core<Client, ()>,
    line: Line,
    /// Plain requests so far.
    plain_count: u64,
    /// What is answered when, and on which connection, in the order of their instants.
    due: VecDeque<(u64, Key, Reply)>,
    /// Connections with an answer without an end.
    dripping: Vec<Key>,
    next_drip_ns: u64,
    was_frozen: bool,
    answer: Vec<u8>,
}

pub(super) fn run(options: &Options, common: &Arc<Common>) -> io::Result<()> {
    thread::live(&mut Thread {
        options,
        start_ns: clock::now_ns(),
        core: Core::with_own_table(common, BUFFER_BYTES, std::iter::empty())?,
        line: Line::new(options.service()),
        plain_count: 0,
        due: VecDeque::new(),
        dripping: Vec::new(),
        next_drip_ns: 0,
        was_frozen: false,
        answer: Vec::new(),
    });
    Ok(())
}

impl Serve for Thread<'_> {
    type Client = Client;
    type Late = ();

    const TAKEN_PER_TURN: usize = usize::MAX;

    fn core(&mut self) -> &mut Core<Client, ()> {
        &mut self.core
    }

    /// Events are processed after a stall: they are reported only once.
    fn woke(&mut self, _slept: bool) {
        self.was_frozen = self.sit_out_the_stall();
    }

    fn serve(&mut self, key: Key, ready: Readiness) {
        if ready.writable {
            self.act(key, |client, _| client.flush());
        }
        self.read(key);
    }

    fn turn(&mut self) {
        self.answer_who_is_due();
        self.drip();
    }

    fn may_take(&mut self, _taken: usize) -> bool {
        true
    }

    fn take_connections(&mut self) {
        thread::take(self, |thread, fd, _| thread.greet(fd));
    }

    fn is_due(&mut self, (): (), key: Key, now_ns: u64) {
        let Core { clients, deadlines, .. } = &mut self.core;
        if clients.get_mut(key).is_some_and(|client| deadlines.holds((), key, &mut client.due, now_ns)) {
            clients.remove(key);
        }
    }

    /// After a stall the bytes of those who seem late may wait in the kernel.
    fn may_cut(&mut self) -> bool {
        !self.was_frozen && !self.core.epoll.may_have_more()
    }

    /// All connections are closed with the thread.
    fn go_down(&mut self) -> u64 {
        0
    }

    fn rest(&mut self) -> u64 {
        let now_ns = clock::now_ns();
        let answer_ns = self.due.front().map(|(at_ns, ..)| at_ns.saturating_sub(AWAKE_NS));
        let drip_ns = (!self.dripping.is_empty()).then_some(self.next_drip_ns);
        let start_ns = self.start_ns;
        let stall_ns = self.options.stalls().map(|freeze| start_ns + freeze.next_ns(now_ns - start_ns));
        let next_ns = [answer_ns, drip_ns, stall_ns].into_iter().flatten().min();
        self.core.rest_ns(IDLE_REST_NS, next_ns)
    }
}

impl Thread<'_> {
    fn greet(&mut self, fd: OwnedFd) {
        if self.core.clients.count() < self.options.max_connections
            && let Some(key) = self.core.insert(fd, false, |_, fd| Client::new(fd))
        {
            self.read(key);
        }
    }

    /// When the stall ends that the server is in now, if it is in one.
    fn stall_end_ns(&self) -> Option<u64> {
        let since_start_ns = clock::now_ns() - self.start_ns;
        Some(self.start_ns + self.options.stalls()?.end_ns(since_start_ns)?)
    }

    /// Sleeps while the server is frozen; true if it was. The end of the server ends that, too.
    fn sit_out_the_stall(&mut self) -> bool {
        let mut was_frozen = false;
        while let Some(end_ns) = self.stall_end_ns() {
            was_frozen = true;
            if self.core.common.going_down.load(Ordering::Relaxed) {
                break;
            }
            sleeper::sleep_until(end_ns.min(clock::now_ns() + IDLE_REST_NS));
        }
        was_frozen
    }

    /// Reads all that there is, and queues the whole requests among it, unless the client has to wait.
    fn read(&mut self, key: Key) {
        loop {
            self.queue_requests(key);
            let mut buffer = std::mem::take(&mut self.core.buffer);
            let heard =
                self.core.clients.get_mut(key).map(|client| match client.may_be_read() && !client.ended {
                    false => Read::Empty,
                    true => stream::read(&client.fd, &mut buffer),
                });
            self.core.buffer = buffer;
            let (Some(heard), Some(client)) = (heard, self.core.clients.get_mut(key)) else {
                return;
            };
            match heard {
                Read::Empty => break,
                Read::Ended => client.ended = true,
                Read::Bytes(_) if client.stage != Stage::Talking => {}
                Read::Bytes(count) => client.input.extend_from_slice(&self.core.buffer[..count]),
            }
        }
        let Some(client) = self.core.clients.get_mut(key) else { return };
        if client.is_done() || (client.ended && stream::is_gone(&client.fd)) {
            self.core.clients.remove(key);
        } else if client.is_within_a_request() && client.due.by_ns.is_none() {
            self.expect(key);
        }
    }

    fn queue_requests(&mut self, key: Key) {
        let arrival_ns = clock::now_ns();
        let faults = self.options.faults;
        let mut plain_count = self.plain_count;
        while let Some(client) = self.core.clients.get_mut(key) {
            let Some(reply) = client.next_reply(&faults, &mut plain_count) else { break };
            client.due.by_ns = None;
            let answer_ns = self.line.answer_ns(arrival_ns);
            self.due.push_back((answer_ns, key, reply));
        }
        self.plain_count = plain_count;
        if let Some(client) = self.core.clients.get_mut(key)
            && client.stage == Stage::Ignoring
        {
            client.due.by_ns = None;
        }
    }

    fn answer_who_is_due(&mut self) {
        while let Some((at_ns, ..)) = self.due.front() {
            if *at_ns > clock::now_ns() || self.stall_end_ns().is_some() {
                return;
            }
            let Some((_, key, reply)) = self.due.pop_front() else { return };
            let Some(was_read) = self.core.clients.get_mut(key).map(|client| client.may_be_read()) else {
                continue;
            };
            self.act(key, |client, answer| client.give(&reply, answer));
            let Some(client) = self.core.clients.get_mut(key) else { continue };
            let (is_done, drips) = (client.is_done(), matches!(client.stage, Stage::Dripping(_)));
            if is_done {
                self.core.clients.remove(key);
            } else if drips {
                if self.dripping.is_empty() {
                    self.next_drip_ns = clock::now_ns() + DRIP_NS;
                }
                self.dripping.push(key);
            } else if !was_read {
                self.read(key);
            }
        }
    }

    /// On an absolute grid, so that a late wake-up makes one piece late and not all.
    fn drip(&mut self) {
        let now_ns = clock::now_ns();
        if self.dripping.is_empty() || now_ns < self.next_drip_ns {
            return;
        }
        self.next_drip_ns += ((now_ns - self.next_drip_ns) / DRIP_NS + 1) * DRIP_NS;
        let mut dripping = std::mem::take(&mut self.dripping);
        dripping.retain(|key| {
            self.act(*key, |client, answer| client.drip(answer));
            self.core.clients.get_mut(*key).is_some()
        });
        self.dripping = dripping;
    }

    /// Lets the client speak, and watches for room while it has something unsent.
    fn act(&mut self, key: Key, speak: impl FnOnce(&mut Client, &mut Vec<u8>) -> Result<(), Gone>) {
        let mut answer = std::mem::take(&mut self.answer);
        let Some(client) = self.core.clients.get_mut(key) else {
            self.answer = answer;
            return;
        };
        let (had_room, was_finished) = (client.unsent.is_empty(), client.stage == Stage::Finished);
        let mut spoken = speak(client, &mut answer);
        let (has_room, is_finished) = (client.unsent.is_empty(), client.stage == Stage::Finished);
        if spoken.is_ok() && had_room != has_room {
            spoken = self.core.epoll.change(&client.fd, key.to_bits(), !has_room).map_err(|_| Gone);
        }
        self.answer = answer;
        if spoken.is_err() {
            self.core.clients.remove(key);
        } else if is_finished && !was_finished {
            self.expect(key);
        }
    }

    /// The client must have completed its request, or closed, within the timeout from now.
    fn expect(&mut self, key: Key) {
        let by_ns = clock::now_ns() + self.options.request_timeout.as_nanos() as u64;
        if let Some(client) = self.core.clients.get_mut(key) {
            self.core.deadlines.renew((), key, &mut client.due, by_ns);
        }
    }
}
