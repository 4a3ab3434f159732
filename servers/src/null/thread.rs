//! One thread of the null server: sleep in epoll, read, answer, and nothing between.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

use super::echo::Echo;
use super::{House, Protocol};
use crate::epoll::{Epoll, LISTENER_KEY};
use crate::http::response;
use crate::listener::NotAccepted;
use crate::stream::{self, Read};
use crate::websocket::{close_code, frame, handshake};
use crate::{clock, sleeper, thread_table};

const BUFFER_BYTES: usize = 128 * 1024;

/// Few per wake-up, so that a burst of connections spreads over the threads it wakes.
const TAKEN_PER_TURN: usize = 4;

/// The longest sleep: how late the end of the server is noticed.
const REST_NS: u64 = 250_000_000;

/// How long nothing is taken after descriptors or memory ran out.
const BACK_OFF_NS: u64 = 50_000_000;

/// How long clients have to close when the server ends.
const GOING_DOWN_NS: u64 = 1_000_000_000;

struct Client {
    fd: OwnedFd,
    echo: Echo,
    /// What the client has not taken yet. While there is any, nothing more is read.
    unsent: Vec<u8>,
    /// When the client must be in conversation, or gone; None while it may be silent.
    due_ns: Option<u64>,
    /// Stands in the list of deadlines, once at most.
    listed: bool,
}

impl Client {
    fn is_within_a_request(&self) -> bool {
        matches!(&self.echo, Echo::Http(http) if http.is_within_a_request())
    }
}

struct Thread<'h> {
    house: &'h House,
    epoll: Epoll,
    listening: bool,
    back_off_until_ns: u64,
    /// By place; the generation tells a place's clients apart.
    clients: Vec<(u32, Option<Client>)>,
    free: Vec<u32>,
    /// When to look whose handshake, request or close is complete, in ns and by key.
    deadlines: VecDeque<(u64, u64)>,
    buffer: Box<[u8]>,
    answer: Vec<u8>,
}

pub(super) fn run(house: &House) -> std::io::Result<()> {
    // Kernels before 5.9 refuse; then all threads share one table, and only its size is lost.
    let _ = thread_table::own(&[house.listener.raw()]);
    sleeper::no_timer_slack();
    sleeper::short_slices(100_000);
    let mut thread = Thread {
        house,
        epoll: Epoll::new()?,
        listening: false,
        back_off_until_ns: 0,
        clients: Vec::new(),
        free: Vec::new(),
        deadlines: VecDeque::new(),
        buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        answer: Vec::new(),
    };
    thread.live();
    Ok(())
}

impl Thread<'_> {
    fn live(&mut self) {
        let mut gone_by_ns = None;
        loop {
            self.keep_listening(gone_by_ns.is_some());
            let rest_ns = if gone_by_ns.is_some() { 5_000_000 } else { self.rest_ns() };
            let count = self.epoll.wait(rest_ns);
            for i in 0..count {
                let ready = self.epoll.event(i);
                if ready.key == LISTENER_KEY {
                    self.take_connections();
                } else {
                    self.serve(ready.key, ready.ended);
                }
            }
            self.cut_the_late();
            match gone_by_ns {
                None if self.house.going_down.load(Ordering::Relaxed) => {
                    gone_by_ns = Some(clock::now_ns() + GOING_DOWN_NS);
                    self.say_goodbye();
                }
                Some(by_ns) if self.clients.len() == self.free.len() || clock::now_ns() >= by_ns => return,
                _ => {}
            }
        }
    }

    fn rest_ns(&self) -> u64 {
        let deadline_ns = self.deadlines.front().map(|(at_ns, _)| *at_ns);
        let until_ns =
            deadline_ns.into_iter().chain(Some(self.back_off_until_ns).filter(|at_ns| *at_ns > 0)).min();
        until_ns.map_or(REST_NS, |at_ns| at_ns.saturating_sub(clock::now_ns()).min(REST_NS))
    }

    /// The listener is level-triggered: it is watched only while a connection may be taken.
    fn keep_listening(&mut self, ending: bool) {
        let full = self.clients.len() - self.free.len() >= self.house.table_sockets;
        let backs_off = self.back_off_until_ns > 0 && clock::now_ns() < self.back_off_until_ns;
        let wanted = !ending && !full && !backs_off;
        if wanted != self.listening {
            let listener = self.house.listener.raw();
            let changed =
                if wanted { self.epoll.add_listener(listener) } else { self.epoll.remove(listener) };
            if changed.is_ok() {
                self.listening = wanted;
            }
        }
        if !backs_off {
            self.back_off_until_ns = 0;
        }
    }

    fn take_connections(&mut self) {
        let protocol = self.house.options.protocol;
        for _ in 0..TAKEN_PER_TURN {
            let fd = match self.house.listener.accept() {
                Ok((fd, _)) => fd,
                Err(NotAccepted::Nobody) => return,
                Err(NotAccepted::Failed) => continue,
                Err(NotAccepted::Exhausted) => {
                    self.back_off_until_ns = clock::now_ns() + BACK_OFF_NS;
                    return;
                }
            };
            if self.house.sockets.fetch_add(1, Ordering::Relaxed) >= self.house.options.max_connections {
                self.house.sockets.fetch_sub(1, Ordering::Relaxed);
                // Read first: closing on unread bytes would reset the connection under the answer.
                stream::read(fd.as_raw_fd(), &mut self.buffer);
                self.answer.clear();
                match protocol {
                    Protocol::WebSocket => self.answer.extend_from_slice(handshake::UNAVAILABLE.0.as_bytes()),
                    Protocol::Http => response::write(&mut self.answer, 503, "text/plain", false, b""),
                    Protocol::Lines => {}
                }
                let _ = stream::write(fd.as_raw_fd(), &self.answer);
                continue;
            }
            let place = self.free.pop().unwrap_or_else(|| {
                self.clients.push((0, None));
                (self.clients.len() - 1) as u32
            });
            let (generation, client) = &mut self.clients[place as usize];
            let key = u64::from(*generation) << 32 | u64::from(place);
            let watched = self.epoll.add(fd.as_raw_fd(), key, false);
            let echo = Echo::new(protocol);
            *client = Some(Client { fd, echo, unsent: Vec::new(), due_ns: None, listed: false });
            if watched.is_err() {
                self.part(key);
                continue;
            }
            if protocol == Protocol::WebSocket {
                self.expect(key);
            }
            self.serve(key, false);
        }
    }

    /// The client must be in conversation, or gone, within the timeout from now.
    fn expect(&mut self, key: u64) {
        let at_ns = clock::now_ns() + self.house.options.handshake_timeout.as_nanos() as u64;
        let Some(client) = self.client(key) else { return };
        client.due_ns = Some(at_ns);
        if !std::mem::replace(&mut client.listed, true) {
            self.deadlines.push_back((at_ns, key));
        }
    }

    fn client(&mut self, key: u64) -> Option<&mut Client> {
        let (generation, client) = self.clients.get_mut(key as u32 as usize)?;
        client.as_mut().filter(|_| *generation == (key >> 32) as u32)
    }

    /// Answers all that there is to read, unless the client still has to take earlier answers.
    fn serve(&mut self, key: u64, ended: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut answer = std::mem::take(&mut self.answer);
        let served = self.exchange(key, ended, &mut buffer, &mut answer);
        self.buffer = buffer;
        self.answer = answer;
        if served.is_err() {
            self.part(key);
        }
    }

    fn exchange(
        &mut self,
        key: u64,
        mut ended: bool,
        buffer: &mut [u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), ()> {
        let Some(client) = self.client(key) else { return Ok(()) };
        let fd = client.fd.as_raw_fd();
        if !client.unsent.is_empty() {
            let sent = stream::write(fd, &client.unsent)?;
            client.unsent.drain(..sent);
            if !client.unsent.is_empty() {
                return Ok(());
            }
            client.unsent = Vec::new();
            let over = matches!(client.echo, Echo::Closed);
            let within_a_request = client.is_within_a_request();
            // The end of the stream may have been announced while nothing was read.
            ended = true;
            self.epoll.change(fd, key, false).map_err(drop)?;
            if over {
                self.finish(key, fd);
            } else if within_a_request {
                self.expect(key);
            }
        }
        let mut was_the_last = false;
        loop {
            let Some(client) = self.client(key) else { return Ok(()) };
            let count = match client.echo.has_more() {
                true => 0,
                false => match stream::read(fd, buffer) {
                    Read::Bytes(count) => {
                        // A short read was the last one, but for the end of the stream.
                        was_the_last = count < buffer.len() && !ended;
                        count
                    }
                    Read::Empty => return Ok(()),
                    Read::Ended => return Err(()),
                },
            };
            answer.clear();
            let was_over = matches!(client.echo, Echo::Closed);
            client.echo.hear(&mut buffer[..count], answer);
            let sent = if answer.is_empty() { 0 } else { stream::write(fd, answer)? };
            let over = matches!(client.echo, Echo::Closed);
            let within_a_request = client.is_within_a_request();
            let has_more = client.echo.has_more();
            if client.echo.is_open() || (within_a_request && !answer.is_empty()) {
                client.due_ns = None;
            }
            if sent < answer.len() {
                client.unsent = answer[sent..].to_vec();
                return self.epoll.change(fd, key, true).map_err(drop);
            }
            if within_a_request && client.due_ns.is_none() {
                self.expect(key);
            }
            if over && !was_over {
                self.finish(key, fd);
            }
            // Over, it reads on: closing on unread bytes would reset the connection under the answer.
            if was_the_last && !over && !has_more {
                return Ok(());
            }
        }
    }

    /// All is said; the client has the timeout to close.
    fn finish(&mut self, key: u64, fd: RawFd) {
        stream::finish_writing(fd);
        self.expect(key);
    }

    fn cut_the_late(&mut self) {
        if self.deadlines.is_empty() {
            return;
        }
        let now_ns = clock::now_ns();
        while self.deadlines.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            let Some((_, key)) = self.deadlines.pop_front() else { break };
            let Some(client) = self.client(key) else { continue };
            client.listed = false;
            match client.due_ns {
                None => {}
                Some(due_ns) if due_ns <= now_ns => self.part(key),
                // A later request is incomplete now. Looked at again after a whole timeout, so that the list
                // stays in order with one entry per client, however many requests come in two pieces.
                Some(_) => self.expect(key),
            }
        }
    }

    fn part(&mut self, key: u64) {
        if self.client(key).is_none() {
            return;
        }
        let (generation, client) = &mut self.clients[key as u32 as usize];
        *generation = generation.wrapping_add(1);
        *client = None;
        self.free.push(key as u32);
        self.house.sockets.fetch_sub(1, Ordering::Relaxed);
    }

    fn say_goodbye(&mut self) {
        let mut goodbye = Vec::new();
        frame::put_close(&mut goodbye, close_code::GOING_AWAY);
        for place in 0..self.clients.len() {
            let (generation, Some(client)) = &mut self.clients[place] else { continue };
            let key = u64::from(*generation) << 32 | place as u64;
            let open = client.echo.is_open() && client.unsent.is_empty();
            let goodbye = if matches!(client.echo, Echo::Open(_)) { &goodbye[..] } else { &[] };
            if !open || stream::write(client.fd.as_raw_fd(), goodbye).is_err() {
                self.part(key);
                continue;
            }
            client.echo = Echo::Closed;
            stream::finish_writing(client.fd.as_raw_fd());
        }
    }
}
