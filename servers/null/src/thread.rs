//! One thread of the null server: sleep in epoll, read, answer, and nothing between.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::echo::Echo;
use super::{Protocol, Shared};
use servers_shared::clock;
use servers_shared::deadlines::Due;
use servers_shared::epoll::Readiness;
use servers_shared::http::response;
use servers_shared::slab::Key;
use servers_shared::stream::{self, Read};
use servers_shared::thread::{self, Common, Core, ENDING_REST_NS, IDLE_REST_NS, Serve};
use servers_shared::websocket::{close_code, frame, handshake};

const BUFFER_BYTES: usize = 128 * 1024;

/// Reads from one client in a turn.
const READS_PER_TURN: usize = 4;

/// How long clients have to close when the server ends.
const GOING_DOWN_NS: u64 = 1_000_000_000;

struct Client {
    fd: OwnedFd,
    echo: Echo,
    /// What the client has not taken yet. While there is any, nothing more is read.
    unsent: Vec<u8>,
    /// When a handshake, a request or a close must be complete.
    due: Due,
}

struct Thread<'h> {
    shared: &'h Shared,
    core: Core<Client, ()>,
    answer: Vec<u8>,
}

pub(super) fn run(shared: &Shared, common: &Arc<Common>) -> io::Result<()> {
    let core = Core::with_own_table(common, BUFFER_BYTES, std::iter::empty())?;
    thread::live(&mut Thread { shared, core, answer: Vec::new() });
    Ok(())
}

impl Serve for Thread<'_> {
    type Client = Client;
    type Late = ();

    /// Few per wake-up, so that a burst of connections spreads over the threads it wakes.
    const TAKEN_PER_TURN: usize = 4;

    fn core(&mut self) -> &mut Core<Client, ()> {
        &mut self.core
    }

    fn serve(&mut self, key: Key, ready: Readiness) {
        self.converse(key, ready.ended);
    }

    fn may_take(&mut self, _taken: usize) -> bool {
        !self.core.table_is_full()
    }

    fn take_connections(&mut self) {
        thread::take(self, |thread, fd, _| thread.greet(fd));
    }

    fn is_due(&mut self, (): (), key: Key, now_ns: u64) {
        let Core { clients, deadlines, .. } = &mut self.core;
        if clients.get_mut(key).is_some_and(|client| deadlines.holds((), key, &mut client.due, now_ns)) {
            self.part(key);
        }
    }

    fn go_down(&mut self) -> u64 {
        let mut goodbye = Vec::new();
        frame::put_close(&mut goodbye, close_code::GOING_AWAY);
        for key in self.core.clients.keys() {
            let Some(client) = self.core.clients.get_mut(key) else { continue };
            let is_websocket = matches!(client.echo, Echo::Open(_));
            let open = (client.echo.is_open() || is_websocket) && client.unsent.is_empty();
            let goodbye = if is_websocket { &goodbye[..] } else { &[] };
            if !open || stream::write(&client.fd, goodbye).is_err() {
                self.part(key);
                continue;
            }
            client.echo = Echo::Closed;
            stream::finish_writing(&client.fd);
        }
        GOING_DOWN_NS
    }

    fn rest(&mut self) -> u64 {
        self.core.rest_ns(if self.core.is_going_down() { ENDING_REST_NS } else { IDLE_REST_NS }, None)
    }
}

impl Thread<'_> {
    fn greet(&mut self, fd: OwnedFd) {
        let protocol = self.shared.options.protocol;
        if self.shared.sockets.fetch_add(1, Ordering::Relaxed) >= self.shared.options.max_connections {
            self.shared.sockets.fetch_sub(1, Ordering::Relaxed);
            return self.turn_away(fd);
        }
        let client =
            |_, fd| Client { fd, echo: Echo::new(protocol), unsent: Vec::new(), due: Due::default() };
        let Some(key) = self.core.insert(fd, false, client) else {
            self.shared.sockets.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        if protocol == Protocol::WebSocket {
            self.expect(key);
        }
        self.converse(key, false);
    }

    fn turn_away(&mut self, fd: OwnedFd) {
        // Read first: closing on unread bytes would reset the connection under the answer.
        stream::read(&fd, &mut self.core.buffer);
        self.answer.clear();
        match self.shared.options.protocol {
            Protocol::WebSocket => self.answer.extend_from_slice(handshake::UNAVAILABLE.0.as_bytes()),
            Protocol::Http => response::write(&mut self.answer, 503, "text/plain", false, b""),
            Protocol::Lines => {}
        }
        let _ = stream::write(&fd, &self.answer);
    }

    /// The client must be active, or closed, within the timeout from now.
    fn expect(&mut self, key: Key) {
        let by_ns = clock::now_ns() + self.shared.options.handshake_timeout.as_nanos() as u64;
        if let Some(client) = self.core.clients.get_mut(key) {
            self.core.deadlines.renew((), key, &mut client.due, by_ns);
        }
    }

    /// Answers all that there is to read, unless the client still has to take earlier answers.
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

    fn exchange(
        &mut self,
        key: Key,
        mut ended: bool,
        buffer: &mut [u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), ()> {
        let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
        if !client.unsent.is_empty() {
            let sent = stream::write(&client.fd, &client.unsent)?;
            client.unsent.drain(..sent);
            if !client.unsent.is_empty() {
                return Ok(());
            }
            client.unsent = Vec::new();
            let over = matches!(client.echo, Echo::Closed);
            let within_a_request = client.echo.is_within_a_request();
            // The end of the stream may have been announced while nothing was read.
            ended = true;
            self.core.epoll.change(&client.fd, key.to_bits(), false).map_err(drop)?;
            if over {
                self.finish(key);
            } else if within_a_request {
                self.expect(key);
            }
        }
        let mut was_the_last = false;
        for _ in 0..READS_PER_TURN {
            let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
            let count = match client.echo.has_more() {
                true => 0,
                false => match stream::read(&client.fd, buffer) {
                    Read::Bytes(count) => {
                        // A short read was the last one, except for the end of the stream.
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
            let sent = if answer.is_empty() { 0 } else { stream::write(&client.fd, answer)? };
            let over = matches!(client.echo, Echo::Closed);
            let within_a_request = client.echo.is_within_a_request();
            let has_more = client.echo.has_more();
            if client.echo.is_open() || (within_a_request && !answer.is_empty()) {
                client.due.by_ns = None;
            }
            if sent < answer.len() {
                client.unsent = answer[sent..].to_vec();
                return self.core.epoll.change(&client.fd, key.to_bits(), true).map_err(drop);
            }
            if within_a_request && client.due.by_ns.is_none() {
                self.expect(key);
            }
            if over && !was_over {
                self.finish(key);
            }
            // When done, it reads on: closing on unread bytes would reset the connection under the answer.
            if was_the_last && !over && !has_more {
                return Ok(());
            }
        }
        self.core.read_on_later(key);
        Ok(())
    }

    /// Everything is sent; the client has the timeout to close.
    fn finish(&mut self, key: Key) {
        if let Some(client) = self.core.clients.get_mut(key) {
            stream::finish_writing(&client.fd);
        }
        self.expect(key);
    }

    fn part(&mut self, key: Key) {
        if self.core.clients.remove(key).is_some() {
            self.shared.sockets.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::super::Options;
    use super::*;
    use servers_shared::testing::UPGRADE;
    use servers_shared::testing::client_frame;
    use servers_shared::testing::flood::{self, Flood};

    fn check(protocol: Protocol, opening: &[u8], request: &[u8], answers: fn(&[u8]) -> usize) {
        let options = Options { protocol, ..Default::default() };
        let shared = Shared { options, sockets: AtomicUsize::new(0) };
        let mut thread = Thread { shared: &shared, core: flood::core(&flood::common()), answer: Vec::new() };
        let admit = Thread::greet;
        let request = &|_| request.to_vec();
        flood::check(&mut thread, &Flood { admit, opening, request, answers });
    }

    #[test]
    fn a_flood_of_requests_keeps_nobody_waiting() {
        let request = b"GET /bytes/10 HTTP/1.1\r\nHost: x\r\n\r\n";
        check(Protocol::Http, b"", request, |heard| flood::count(heard, b"xxxxxxxxxx"));
    }

    #[test]
    fn a_flood_of_messages_keeps_nobody_waiting() {
        let ping = client_frame(true, 9, b"1", [1, 2, 3, 4]);
        check(Protocol::WebSocket, UPGRADE, &ping, |heard| flood::count(heard, b"\x8a\x011"));
        let text = client_frame(true, 1, b"1", [1, 2, 3, 4]);
        check(Protocol::WebSocket, UPGRADE, &text, |heard| flood::count(heard, b"\x81\x011"));
    }

    #[test]
    fn a_flood_of_lines_keeps_nobody_waiting() {
        check(Protocol::Lines, b"", b"line\n", |heard| flood::count(heard, b"line\n"));
    }
}
