//! One thread of the null server: sleep in epoll, read, answer, and nothing between.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

use super::echo::Echo;
use super::{Protocol, Shared};
use crate::accept_interest::AcceptInterest;
use crate::epoll::{Epoll, LISTENER_KEY};
use crate::http::response;
use crate::listener::NotAccepted;
use crate::slab::{Key, Slab};
use crate::stream::{self, Read};
use crate::timeouts::{Due, Timeouts};
use crate::websocket::{close_code, frame, handshake};
use crate::{clock, sleeper, thread_table};

const BUFFER_BYTES: usize = 128 * 1024;

/// Few per wake-up, so that a burst of connections spreads over the threads it wakes.
const TAKEN_PER_TURN: usize = 4;

/// The longest sleep: how late the end of the server is noticed.
const REST_NS: u64 = 250_000_000;

/// How long clients have to close when the server ends.
const GOING_DOWN_NS: u64 = 1_000_000_000;

struct Client {
    fd: OwnedFd,
    echo: Echo,
    /// What the client has not taken yet. While there is any, nothing more is read.
    unsent: Vec<u8>,
    /// When the client must be in conversation, or gone.
    due: Due,
}

impl Client {
    fn is_within_a_request(&self) -> bool {
        matches!(&self.echo, Echo::Http(http) if http.is_within_a_request())
    }
}

struct Thread<'h> {
    shared: &'h Shared,
    epoll: Epoll,
    accept_interest: AcceptInterest,
    clients: Slab<Client>,
    /// With a handshake, a request or a close that is not complete.
    timeouts: Timeouts,
    buffer: Box<[u8]>,
    answer: Vec<u8>,
}

pub(super) fn run(shared: &Shared) -> std::io::Result<()> {
    // Kernels before 5.9 refuse; then all threads share one table, and only its size is lost.
    let _ = thread_table::own(&[shared.listener.raw()]);
    sleeper::no_timer_slack();
    sleeper::short_slices(100_000);
    let mut thread = Thread {
        shared,
        epoll: Epoll::new()?,
        accept_interest: AcceptInterest::default(),
        clients: Slab::default(),
        timeouts: Timeouts::new(shared.options.handshake_timeout),
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
                    self.serve(Key::from_bits(ready.key), ready.ended);
                }
            }
            self.cut_the_late();
            match gone_by_ns {
                None if self.shared.going_down.load(Ordering::Relaxed) => {
                    gone_by_ns = Some(clock::now_ns() + GOING_DOWN_NS);
                    self.say_goodbye();
                }
                Some(by_ns) if self.clients.count() == 0 || clock::now_ns() >= by_ns => return,
                _ => {}
            }
        }
    }

    fn rest_ns(&self) -> u64 {
        let until_ns = self.timeouts.next_ns().into_iter().chain(self.accept_interest.look_again_ns()).min();
        until_ns.map_or(REST_NS, |at_ns| at_ns.saturating_sub(clock::now_ns()).min(REST_NS))
    }

    fn keep_listening(&mut self, ending: bool) {
        let full = self.clients.count() >= self.shared.table_sockets;
        self.accept_interest.keep(&self.epoll, &self.shared.listener, !ending && !full);
    }

    fn take_connections(&mut self) {
        let protocol = self.shared.options.protocol;
        for _ in 0..TAKEN_PER_TURN {
            let fd = match self.shared.listener.accept() {
                Ok((fd, _)) => fd,
                Err(NotAccepted::Nobody) => return,
                Err(NotAccepted::Failed) => continue,
                Err(NotAccepted::Exhausted) => {
                    self.accept_interest.back_off();
                    return;
                }
            };
            if self.shared.sockets.fetch_add(1, Ordering::Relaxed) >= self.shared.options.max_connections {
                self.shared.sockets.fetch_sub(1, Ordering::Relaxed);
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
            let (raw, echo) = (fd.as_raw_fd(), Echo::new(protocol));
            let key = self.clients.insert(|_| Client { fd, echo, unsent: Vec::new(), due: Due::default() });
            if self.epoll.add(raw, key.to_bits(), false).is_err() {
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
    fn expect(&mut self, key: Key) {
        if let Some(client) = self.clients.get_mut(key) {
            self.timeouts.expect(key, &mut client.due, clock::now_ns());
        }
    }

    /// Answers all that there is to read, unless the client still has to take earlier answers.
    fn serve(&mut self, key: Key, ended: bool) {
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
        key: Key,
        mut ended: bool,
        buffer: &mut [u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), ()> {
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
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
            self.epoll.change(fd, key.to_bits(), false).map_err(drop)?;
            if over {
                self.finish(key, fd);
            } else if within_a_request {
                self.expect(key);
            }
        }
        let mut was_the_last = false;
        loop {
            let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
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
                client.due.at_ns = None;
            }
            if sent < answer.len() {
                client.unsent = answer[sent..].to_vec();
                return self.epoll.change(fd, key.to_bits(), true).map_err(drop);
            }
            if within_a_request && client.due.at_ns.is_none() {
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
    fn finish(&mut self, key: Key, fd: RawFd) {
        stream::finish_writing(fd);
        self.expect(key);
    }

    fn cut_the_late(&mut self) {
        if self.timeouts.next_ns().is_none() {
            return;
        }
        let now_ns = clock::now_ns();
        while let Some(key) = self.timeouts.take_late(now_ns, &mut self.clients, |client| &mut client.due) {
            self.part(key);
        }
    }

    fn part(&mut self, key: Key) {
        if self.clients.remove(key).is_some() {
            self.shared.sockets.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn say_goodbye(&mut self) {
        let mut goodbye = Vec::new();
        frame::put_close(&mut goodbye, close_code::GOING_AWAY);
        for key in self.clients.keys() {
            let Some(client) = self.clients.get_mut(key) else { continue };
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
