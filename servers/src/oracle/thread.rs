//! The oracle's one thread: reads, queues, and answers at the planned instants.

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use super::Shared;
use super::client::{Client, Gone, Reply, Stage};
use super::pages::DRIP_NS;
use super::service_time::Line;
use crate::accept_interest::AcceptInterest;
use crate::epoll::{Epoll, LISTENER_KEY};
use crate::listener::NotAccepted;
use crate::slab::{Key, Slab};
use crate::stream::{self, Read};
use crate::timeouts::Timeouts;
use crate::{clock, sleeper, thread_table};

const BUFFER_BYTES: usize = 64 * 1024;

/// The longest sleep: how late the end of the server is noticed.
const REST_NS: u64 = 250_000_000;

/// So long before an answer is due the thread is awake, and stays so: a sleep ends some ten µs late.
const AWAKE_NS: u64 = 150_000;

struct Thread<'h> {
    shared: &'h Shared,
    epoll: Epoll,
    accept_interest: AcceptInterest,
    line: Line,
    /// Plain requests so far.
    plain_count: u64,
    /// What is answered when, and on which connection, in the order of their instants.
    due: VecDeque<(u64, Key, Reply)>,
    clients: Slab<Client>,
    /// With a request or a close that is not complete.
    timeouts: Timeouts,
    /// Connections with an answer without an end.
    dripping: Vec<Key>,
    next_drip_ns: u64,
    buffer: Box<[u8]>,
    answer: Vec<u8>,
}

pub(super) fn run(shared: &Shared) -> std::io::Result<()> {
    // Kernels before 5.9 refuse; then the process's table is shared, and only its size is lost.
    let _ = thread_table::own(&[shared.listener.raw()]);
    sleeper::no_timer_slack();
    sleeper::short_slices(100_000);
    let mut thread = Thread {
        shared,
        epoll: Epoll::new()?,
        accept_interest: AcceptInterest::default(),
        line: Line::new(shared.options.service),
        plain_count: 0,
        due: VecDeque::new(),
        clients: Slab::default(),
        timeouts: Timeouts::new(shared.options.request_timeout),
        dripping: Vec::new(),
        next_drip_ns: 0,
        buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        answer: Vec::new(),
    };
    thread.live();
    Ok(())
}

impl Thread<'_> {
    fn live(&mut self) {
        while !self.shared.going_down.load(Ordering::Relaxed) {
            self.accept_interest.keep(&self.epoll, &self.shared.listener, true);
            let count = self.epoll.wait(self.rest_ns());
            // What the wait has told is looked at after a stall: it is told only once.
            let was_frozen = self.sit_out_the_stall();
            for i in 0..count {
                let ready = self.epoll.event(i);
                if ready.key == LISTENER_KEY {
                    self.take_connections();
                    continue;
                }
                let key = Key::from_bits(ready.key);
                if ready.writable {
                    self.act(key, |client, _| client.flush());
                }
                self.read(key);
            }
            self.answer_who_is_due();
            self.drip();
            // After a stall the bytes of those who seem late may wait in the kernel.
            if !was_frozen && !self.epoll.may_have_more() {
                self.cut_the_late();
            }
        }
    }

    fn rest_ns(&self) -> u64 {
        let now_ns = clock::now_ns();
        let answer_ns = self.due.front().map(|(at_ns, ..)| at_ns.saturating_sub(AWAKE_NS));
        let drip_ns = (!self.dripping.is_empty()).then_some(self.next_drip_ns);
        let deadline_ns = self.timeouts.next_ns();
        let back_off_ns = self.accept_interest.look_again_ns();
        let start_ns = self.shared.start_ns;
        let stall_ns = self.shared.options.freeze.map(|freeze| start_ns + freeze.next_ns(now_ns - start_ns));
        let instants = [answer_ns, drip_ns, deadline_ns, back_off_ns, stall_ns];
        let until_ns = instants.into_iter().flatten().min();
        until_ns.map_or(REST_NS, |at_ns| at_ns.saturating_sub(now_ns).min(REST_NS))
    }

    /// When the stall ends that the server is in now, if it is in one.
    fn stall_end_ns(&self) -> Option<u64> {
        let since_start_ns = clock::now_ns() - self.shared.start_ns;
        Some(self.shared.start_ns + self.shared.options.freeze?.end_ns(since_start_ns)?)
    }

    /// Sleeps while the server is frozen; true if it was. The end of the server ends that, too.
    fn sit_out_the_stall(&mut self) -> bool {
        let mut was_frozen = false;
        while let Some(end_ns) = self.stall_end_ns() {
            was_frozen = true;
            if self.shared.going_down.load(Ordering::Relaxed) {
                break;
            }
            sleeper::sleep_until(end_ns.min(clock::now_ns() + REST_NS));
        }
        was_frozen
    }

    fn take_connections(&mut self) {
        loop {
            let fd = match self.shared.listener.accept() {
                Ok((fd, _)) => fd,
                Err(NotAccepted::Nobody) => return,
                Err(NotAccepted::Failed) => continue,
                Err(NotAccepted::Exhausted) => {
                    self.accept_interest.back_off();
                    return;
                }
            };
            if self.clients.count() >= self.shared.options.max_connections {
                continue;
            }
            let raw = fd.as_raw_fd();
            let key = self.clients.insert(|_| Client::new(fd));
            if self.epoll.add(raw, key.to_bits(), false).is_err() {
                self.clients.remove(key);
                continue;
            }
            self.read(key);
        }
    }

    /// Reads all that there is, and queues the whole requests among it, unless the client has to wait.
    fn read(&mut self, key: Key) {
        loop {
            self.queue_requests(key);
            let mut buffer = std::mem::take(&mut self.buffer);
            let heard = self.clients.get_mut(key).map(|client| match client.may_be_read() && !client.ended {
                false => Read::Empty,
                true => stream::read(client.fd.as_raw_fd(), &mut buffer),
            });
            self.buffer = buffer;
            let (Some(heard), Some(client)) = (heard, self.clients.get_mut(key)) else {
                return;
            };
            match heard {
                Read::Empty => break,
                Read::Ended => client.ended = true,
                Read::Bytes(_) if client.stage != Stage::Talking => {}
                Read::Bytes(count) => client.input.extend_from_slice(&self.buffer[..count]),
            }
        }
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.is_done() || (client.ended && stream::is_gone(client.fd.as_raw_fd())) {
            self.clients.remove(key);
        } else if client.is_within_a_request() && client.due.at_ns.is_none() {
            self.expect(key);
        }
    }

    fn queue_requests(&mut self, key: Key) {
        let arrival_ns = clock::now_ns();
        let faults = self.shared.options.faults;
        let mut plain_count = self.plain_count;
        while let Some(client) = self.clients.get_mut(key) {
            let Some(reply) = client.next_reply(&faults, &mut plain_count) else { break };
            client.due.at_ns = None;
            let answer_ns = self.line.answer_ns(arrival_ns);
            self.due.push_back((answer_ns, key, reply));
        }
        self.plain_count = plain_count;
        if let Some(client) = self.clients.get_mut(key)
            && client.stage == Stage::Ignoring
        {
            client.due.at_ns = None;
        }
    }

    fn answer_who_is_due(&mut self) {
        while let Some((at_ns, ..)) = self.due.front() {
            if *at_ns > clock::now_ns() || self.stall_end_ns().is_some() {
                return;
            }
            let Some((_, key, reply)) = self.due.pop_front() else { return };
            let Some(was_read) = self.clients.get_mut(key).map(|client| client.may_be_read()) else {
                continue;
            };
            self.act(key, |client, answer| client.give(&reply, answer));
            let Some(client) = self.clients.get_mut(key) else { continue };
            let (is_done, drips) = (client.is_done(), matches!(client.stage, Stage::Dripping(_)));
            if is_done {
                self.clients.remove(key);
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
            self.clients.get_mut(*key).is_some()
        });
        self.dripping = dripping;
    }

    /// Lets the client speak, and watches for room while it has something unsent.
    fn act(&mut self, key: Key, speak: impl FnOnce(&mut Client, &mut Vec<u8>) -> Result<(), Gone>) {
        let mut answer = std::mem::take(&mut self.answer);
        let Some(client) = self.clients.get_mut(key) else {
            self.answer = answer;
            return;
        };
        let (had_room, was_finished) = (client.unsent.is_empty(), client.stage == Stage::Finished);
        let mut spoken = speak(client, &mut answer);
        let (has_room, is_finished) = (client.unsent.is_empty(), client.stage == Stage::Finished);
        let fd = client.fd.as_raw_fd();
        self.answer = answer;
        if spoken.is_ok() && had_room != has_room {
            spoken = self.epoll.change(fd, key.to_bits(), !has_room).map_err(|_| Gone);
        }
        if spoken.is_err() {
            self.clients.remove(key);
        } else if is_finished && !was_finished {
            self.expect(key);
        }
    }

    /// The client must have completed its request, or closed, within the timeout from now.
    fn expect(&mut self, key: Key) {
        if let Some(client) = self.clients.get_mut(key) {
            self.timeouts.expect(key, &mut client.due, clock::now_ns());
        }
    }

    fn cut_the_late(&mut self) {
        if self.timeouts.next_ns().is_none() {
            return;
        }
        let now_ns = clock::now_ns();
        while let Some(key) = self.timeouts.take_late(now_ns, &mut self.clients, |client| &mut client.due) {
            self.clients.remove(key);
        }
    }
}
