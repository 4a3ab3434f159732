//! The network thread: accepts connections, reads requests, admits or refuses them, and sends the rest of answers that
//! a client did not take at once.
//!
//! Neither this thread nor the loop waits for the other, so a refusal goes out while the loop draws. Refusals are
//! limited to a fifth of a core, or they would take the core that the loop draws on. One request per connection is
//! admitted; what follows it stays in the system's buffers until the answer is out. An idle connection that owes
//! nothing is no fault: TCP's keep-alive reaps dead peers, `max_connections` bounds the rest.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError};

use super::connection::{Connection, ConnectionState, Gone};
use super::options::Beyond;
use super::services::Ask;
use super::shared::{Arrival, Shared};
use servers_shared::epoll::Readiness;
use servers_shared::http::request::{Fault, Front, Limits, Request, front};
use servers_shared::http::response;
use servers_shared::slab::Key;
use servers_shared::stream::{self, Peer, Read};
use servers_shared::thread::{self, Core, ENDING_REST_NS, Serve};
use servers_shared::{clock, sleeper};

/// A read's worth.
const BUFFER_BYTES: usize = 64 * 1024;

/// Reads of one line per turn: few, so that the others are not kept waiting.
const READS_PER_TURN: usize = 4;

/// The longest rest without connections; a wakeup ends it.
const IDLE_REST_NS: u64 = 60_000_000_000;

/// How often the late are looked for: how much longer than allowed they may take.
const SWEEP_NS: u64 = 500_000_000;

/// How long a client has to close once everything was sent.
const GOODBYE_NS: u64 = 2_000_000_000;

/// The same when the server ends.
const LAST_GOODBYE_NS: u64 = 500_000_000;

/// After a turn with refusals the thread rests for this many times the length of the turn, but at most this long. A
/// refused client sends its next request at once: without the rest, 64 requesters are refused 86,000 times per second
/// and a loop that draws in the foreground on the same core falls from 30 frames to 21 (measured). A fifth of a core
/// fits beside it.
const REST_PER_REFUSING: u64 = 4;
const REST_NS_MAX: u64 = 2_000_000;

const REFUSED: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\
     Retry-After: 1\r\n\r\nqueue full\n";
const ENDING: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\
     Connection: close\r\n\r\nno place\n";

struct Client {
    connection: Arc<Connection>,
    /// The beginning of a request, or what followed one that is admitted.
    input: Vec<u8>,
    /// When the request that is not whole yet began.
    input_since_ns: Option<u64>,
}

/// The connection must end: the client has disconnected, misbehaved or timed out.
struct Part;

impl From<Gone> for Part {
    fn from(Gone: Gone) -> Part {
        Part
    }
}

struct Network<'h> {
    shared: &'h Shared,
    arrivals: Sender<Arrival>,
    core: Core<Client, ()>,
    /// Who had more to say than fits into one turn.
    again: Vec<Key>,
    began_ns: u64,
    next_sweep_ns: u64,
    /// Somebody was refused in this turn.
    refused: bool,
    /// No more clients are accepted.
    shut: bool,
    limits: Limits,
}

pub(super) fn run(shared: &Shared, arrivals: Sender<Arrival>) -> io::Result<()> {
    let core = Core::new(&shared.common, BUFFER_BYTES)?;
    core.watch_wakeup(&shared.wakeup)?;
    thread::live(&mut Network::new(shared, arrivals, core));
    Ok(())
}

impl Serve for Network<'_> {
    type Client = Client;
    type Late = ();

    /// Few, so that those who are connected are not kept waiting.
    const TAKEN_PER_TURN: usize = 16;

    fn core(&mut self) -> &mut Core<Client, ()> {
        &mut self.core
    }

    fn woke(&mut self, _slept: bool) {
        self.began_ns = clock::now_ns();
        if self.core.faults.look() && self.core.faults.takes_drop() {
            self.reset_all();
        }
    }

    fn serve(&mut self, key: Key, ready: Readiness) {
        let there = !ready.writable || self.flush(key);
        if there && ready.readable {
            self.hear(key, ready.ended);
        }
    }

    /// There is more to do on lines that were answered, or the server is about to end.
    fn rung(&mut self) {
        if !self.shut && self.shared.draining.load(Ordering::Acquire) {
            self.shut = true;
            self.shared.shut.store(true, Ordering::Release);
        }
        let resumed =
            std::mem::take(&mut *self.shared.resumed.lock().unwrap_or_else(PoisonError::into_inner));
        for key in resumed {
            self.hear(key, true);
        }
    }

    fn turn(&mut self) {
        for key in std::mem::take(&mut self.again) {
            self.hear(key, true);
        }
        let now_ns = clock::now_ns();
        if now_ns >= self.next_sweep_ns {
            self.next_sweep_ns = now_ns + SWEEP_NS;
            self.cut_the_late(now_ns);
        }
    }

    fn may_take(&mut self, _taken: usize) -> bool {
        !self.shut
    }

    fn take_connections(&mut self) {
        thread::take(self, |network, fd, _| network.greet(fd));
    }

    fn is_due(&mut self, (): (), _key: Key, _now_ns: u64) {}

    /// Everything was sent to every client.
    fn go_down(&mut self) -> u64 {
        let now_ns = clock::now_ns();
        self.core.clients.iter().for_each(|(_, client)| client.connection.finish(now_ns));
        LAST_GOODBYE_NS
    }

    fn rest(&mut self) -> u64 {
        if std::mem::take(&mut self.refused) {
            let now_ns = clock::now_ns();
            sleeper::sleep_until(now_ns + (REST_PER_REFUSING * (now_ns - self.began_ns)).min(REST_NS_MAX));
        }
        match self.core.is_going_down() {
            true => ENDING_REST_NS,
            false if !self.again.is_empty() => 0,
            false => {
                let sweep_ns = Some(self.next_sweep_ns).filter(|_| self.core.clients.count() > 0);
                self.core.rest_ns(IDLE_REST_NS, sweep_ns)
            }
        }
    }
}

impl<'h> Network<'h> {
    fn new(shared: &'h Shared, arrivals: Sender<Arrival>, core: Core<Client, ()>) -> Network<'h> {
        Network {
            shared,
            arrivals,
            core,
            again: Vec::new(),
            began_ns: 0,
            next_sweep_ns: 0,
            refused: false,
            shut: false,
            limits: Limits::default(),
        }
    }

    fn greet(&mut self, fd: OwnedFd) {
        self.core.faults.look();
        if self.core.clients.count() >= self.shared.options.max_connections {
            // Read first: closing on unread bytes would reset the connection under the answer.
            stream::read(&fd, &mut self.core.buffer);
            if !self.core.faults.now.stops_answers {
                let _ = stream::write(&fd, ENDING.as_bytes());
            }
            return;
        }
        // Always polled for writability, so that nobody has to report what the loop could not send.
        let taken = self.core.insert(fd, true, |key, fd| {
            let connection = Arc::new(Connection::new(fd, key));
            Client { connection, input: Vec::new(), input_since_ns: None }
        });
        if let Some(key) = taken {
            self.shared.sockets.fetch_add(1, Ordering::Relaxed);
            self.hear(key, false);
        }
    }

    /// Sends what was left. False when the client has disconnected.
    fn flush(&mut self, key: Key) -> bool {
        let now_ns = clock::now_ns();
        let Some(client) = self.core.clients.get_mut(key) else { return false };
        match client.connection.flush(now_ns) {
            Ok(false) => true,
            Ok(true) => {
                self.hear(key, true);
                true
            }
            Err(Gone) => {
                self.part(key);
                false
            }
        }
    }

    /// Reads what there is, as far as it may be read now.
    fn hear(&mut self, key: Key, ended: bool) {
        let mut buffer = std::mem::take(&mut self.core.buffer);
        let heard = self.hear_into(key, ended, &mut buffer);
        self.core.buffer = buffer;
        if let Err(Part) = heard {
            self.part(key);
        }
    }

    fn hear_into(&mut self, key: Key, ended: bool, buffer: &mut [u8]) -> Result<(), Part> {
        // What followed the request that was just answered.
        let mut before = true;
        for _ in 0..READS_PER_TURN {
            let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
            let standing = client.connection.standing();
            match standing {
                ConnectionState::Busy => {
                    let peer = if ended { stream::peer(&client.connection) } else { Peer::There };
                    match peer {
                        Peer::There => {}
                        Peer::HalfClosed => client.connection.half_close(),
                        Peer::Gone => return Err(Part),
                    }
                    return Ok(());
                }
                ConnectionState::Free if std::mem::take(&mut before) && !client.input.is_empty() => {
                    self.understand(key, &[])?;
                    continue;
                }
                ConnectionState::Free | ConnectionState::Over => {}
            }
            match stream::read(&client.connection, buffer) {
                Read::Empty => return Ok(()),
                Read::Ended => return Err(Part),
                Read::Bytes(_) if standing == ConnectionState::Over => {}
                Read::Bytes(count) => {
                    self.understand(key, &buffer[..count])?;
                    // A short read was the last one, except for the end of the stream.
                    if count < buffer.len() && !ended {
                        return Ok(());
                    }
                }
            }
        }
        self.again.push(key);
        Ok(())
    }

    /// Takes the requests out of what was read, until one is admitted.
    fn understand(&mut self, key: Key, fresh: &[u8]) -> Result<(), Part> {
        let now_ns = clock::now_ns();
        let limits = self.limits;
        let Some(client) = self.core.clients.get_mut(key) else { return Ok(()) };
        let connection = client.connection.clone();
        let mut input = std::mem::take(&mut client.input);
        let since_ns = client.input_since_ns.take();
        let bytes = if input.is_empty() {
            fresh
        } else {
            input.extend_from_slice(fresh);
            &input[..]
        };
        let mut at = 0;
        let mut incomplete = false;
        while at < bytes.len() && connection.standing() == ConnectionState::Free {
            match front(&bytes[at..], &limits) {
                Front::Incomplete => {
                    incomplete = true;
                    break;
                }
                Front::Broken(fault) => {
                    at = bytes.len();
                    if !self.core.faults.now.stops_answers {
                        say_fault(&connection, fault, now_ns)?;
                    }
                }
                Front::Whole { request, bytes: length } => {
                    at += length;
                    self.receive(&connection, &request, at < bytes.len(), now_ns)?;
                }
            }
        }
        let rest = bytes[at..].to_vec();
        if let Some(client) = self.core.clients.get_mut(key).filter(|_| !rest.is_empty()) {
            client.input_since_ns = incomplete.then_some(since_ns.filter(|_| at == 0).unwrap_or(now_ns));
            client.input = rest;
        }
        Ok(())
    }

    /// Lets a request in, or refuses it.
    fn receive(
        &mut self,
        connection: &Arc<Connection>,
        request: &Request<'_>,
        more: bool,
        now_ns: u64,
    ) -> Result<(), Part> {
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        let ask = Ask::of(request);
        if !self.shut && self.shared.admission.enter() {
            connection.enter(more);
            // The loop outlives this thread's last admission; if it were gone, the process would be exiting.
            return self
                .arrivals
                .send(Arrival { connection: connection.clone(), ask, at_ns: now_ns })
                .map_err(|_| Part);
        }
        self.refused = true;
        self.shared.refused.fetch_add(1, Ordering::Relaxed);
        if self.shared.options.beyond == Beyond::Reset && !self.shut {
            connection.reset();
            return Err(Part);
        }
        if self.core.faults.now.stops_answers {
            return Ok(());
        }
        let over = self.shut || !ask.keep_alive;
        let whole = if over { ENDING } else { REFUSED };
        let head_bytes = || whole.find("\r\n\r\n").map_or(whole.len(), |at| at + 4);
        let said = if ask.head_only { &whole[..head_bytes()] } else { whole };
        Ok(connection.say(said.as_bytes(), over, now_ns)?)
    }

    /// Parts from who takes too long: to finish a request, to take an answer, to close.
    fn cut_the_late(&mut self, now_ns: u64) {
        let options = &self.shared.options;
        let request_ns = options.request_timeout.as_nanos() as u64;
        let answer_ns = options.answer_timeout.as_nanos() as u64;
        let is_late = |since_ns: Option<u64>, allowed_ns: u64| {
            since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= allowed_ns)
        };
        let late = self.core.clients.iter().filter(|(_, client)| {
            let (unsent_since_ns, over_since_ns) = client.connection.late_since_ns();
            is_late(client.input_since_ns, request_ns)
                || is_late(unsent_since_ns, answer_ns)
                || is_late(over_since_ns, GOODBYE_NS)
        });
        let late: Vec<Key> = late.map(|(key, _)| key).collect();
        late.into_iter().for_each(|key| self.part(key));
    }

    /// A planted fault: every connection is reset.
    fn reset_all(&mut self) {
        for key in self.core.clients.keys() {
            if let Some(client) = self.core.clients.get_mut(key) {
                client.connection.reset();
            }
            self.part(key);
        }
    }

    fn part(&mut self, key: Key) {
        if let Some(client) = self.core.clients.remove(key) {
            client.connection.part();
            // Its descriptor may stay open for as long as the loop holds the connection.
            let _ = self.core.epoll.remove(&client.connection);
            self.shared.sockets.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// What was read is no request, and where the next one begins is unknown.
fn say_fault(connection: &Connection, fault: Fault, now_ns: u64) -> Result<(), Gone> {
    let mut answer = Vec::new();
    response::write(&mut answer, fault.status(), "text/plain", false, b"this is no request\n");
    connection.say(&answer, true, now_ns)
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;
    use servers_shared::testing::flood::{self, Flood};

    /// All are refused: of one that is admitted nothing more is read before it is answered.
    #[test]
    fn a_flood_of_requests_keeps_nobody_waiting() {
        let common = flood::common();
        let core = flood::core(&common);
        let shared = Shared::new(Options { queue: Some(0), ..Default::default() }, common).unwrap();
        let (arrivals, _admitted) = std::sync::mpsc::channel();
        let mut network = Network::new(&shared, arrivals, core);
        let request = &|_| b"GET /force-field HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
        let (admit, answers) = (Network::greet, |heard: &[u8]| flood::count(heard, b"queue full\n"));
        flood::check(&mut network, &Flood { admit, opening: b"", request, answers });
    }
}
