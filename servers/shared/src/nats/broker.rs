//! One connection to a NATS server: non-blocking, with a bounded buffer and reconnects.
//!
//! What does not fit into the buffer, and what is published while there is no connection, is not kept: who needs to know
//! numbers the messages.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};

use crate::epoll::Epoll;
use crate::stream::{self, Read};

use super::address::{Login, NatsAddress};
use super::protocol::{self, Broken, Event, Info};

/// Key under which the connection is registered with `epoll`.
pub const SOCKET_KEY: u64 = 1;

/// What was not sent yet, at most; then nothing more is published until the broker takes some.
const OUT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Memory that is kept for what comes next.
const KEPT_BYTES: usize = 1024 * 1024;
/// How long the broker may take to let a client in, and to answer a ping.
const PATIENCE_NS: u64 = 5_000_000_000;
const PING_EVERY_NS: u64 = 2_000_000_000;
/// Between two attempts to connect, at first and at most.
const BACK_OFF_NS: u64 = 50_000_000;
const BACK_OFF_NS_MAX: u64 = 2_000_000_000;
/// A message is no longer than this, so that a slow connection is shared fairly.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// Why there is no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Lost {
    /// The system says so.
    #[error("{0}")]
    Refused(String),
    /// Nothing came for too long.
    #[error("it has not answered within {} s", PATIENCE_NS / 1_000_000_000)]
    Silent,
    /// It has ended the connection.
    #[error("it has closed the connection")]
    Closed,
    /// It is no NATS server.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// Its own words.
    #[error("it said: {0}")]
    Unwilling(String),
    /// Put a proxy in front.
    #[error("it asks for TLS, which is not supported; put a proxy such as stunnel in front")]
    WantsTls,
    /// Give it what it asks for.
    #[error("it asks for credentials; give them with --nats-login, or as in nats://USER:PASSWORD@HOST:PORT")]
    WantsLogin,
}

enum State {
    /// Connects again at this instant.
    Down {
        until_ns: u64,
    },
    /// It has until then to say that the client is let in.
    Opening {
        socket: OwnedFd,
        by_ns: u64,
    },
    Up {
        socket: OwnedFd,
    },
}

/// The connection, or what is known for the next one.
pub struct Broker {
    address: NatsAddress,
    /// The addresses of its host; not empty.
    sockets: Vec<SocketAddr>,
    next_socket: usize,
    /// As the broker's own logs show it.
    client_name: String,
    state: State,
    back_off_ns: u64,
    out: Vec<u8>,
    /// Of `out`, what the system has taken.
    sent: usize,
    input: Vec<u8>,
    buffer: Box<[u8]>,
    payload_bytes_max: usize,
    pings: u64,
    pongs: u64,
    ping_ns: u64,
    heard_ns: u64,
}

impl Broker {
    /// Not connected yet. Errors: the host has no address.
    pub fn new(address: NatsAddress, client_name: String) -> io::Result<Broker> {
        let sockets: Vec<SocketAddr> = (address.host.as_str(), address.port).to_socket_addrs()?.collect();
        if sockets.is_empty() {
            return Err(io::Error::other("its host has no address"));
        }
        Ok(Broker {
            address,
            sockets,
            next_socket: 0,
            client_name,
            state: State::Down { until_ns: 0 },
            back_off_ns: BACK_OFF_NS,
            out: Vec::new(),
            sent: 0,
            input: Vec::new(),
            buffer: vec![0; 64 * 1024].into_boxed_slice(),
            payload_bytes_max: 0,
            pings: 0,
            pongs: 0,
            ping_ns: 0,
            heard_ns: 0,
        })
    }

    /// How many addresses its host has.
    pub fn address_count(&self) -> usize {
        self.sockets.len()
    }

    /// Whether the server has let this client in.
    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// Whether more may be published.
    pub fn has_room(&self) -> bool {
        self.is_up() && self.out.len() - self.sent < OUT_BYTES_MAX
    }

    /// Whether the system has taken everything.
    pub fn is_flushed(&self) -> bool {
        self.out.is_empty()
    }

    /// The longest message, in bytes.
    pub fn message_bytes_max(&self) -> usize {
        self.payload_bytes_max.min(MESSAGE_BYTES_MAX)
    }

    /// When `turn` has something to do at the latest.
    pub fn due_ns(&self) -> u64 {
        match &self.state {
            State::Down { until_ns } => *until_ns,
            State::Opening { by_ns, .. } => *by_ns,
            State::Up { .. } => self.ping_ns,
        }
    }

    /// Publishes a message of these parts. It leaves with `flush`; without a connection it is gone.
    pub fn publish(&mut self, subject: &str, parts: &[&[u8]]) {
        if self.is_up() {
            protocol::publish(&mut self.out, subject, parts);
        }
    }

    /// From now on messages of this subject come, with this number.
    pub fn subscribe(&mut self, subject: &str, subscription: u64) {
        if self.is_up() {
            protocol::subscribe(&mut self.out, subject, subscription);
        }
    }

    /// No more of them.
    pub fn unsubscribe(&mut self, subscription: u64) {
        if self.is_up() {
            protocol::unsubscribe(&mut self.out, subscription);
        }
    }

    /// Asks the broker to confirm all that was sent before: it has once `confirmed` is as large as this.
    pub fn ping(&mut self) -> u64 {
        self.pings += 1;
        self.out.extend_from_slice(protocol::PING);
        self.pings
    }

    /// See `ping`.
    pub fn confirmed(&self) -> u64 {
        self.pongs
    }

    /// Connects when it is time, and notices a broker that is silent.
    pub fn turn(&mut self, now_ns: u64, epoll: &Epoll) -> Result<(), Lost> {
        match &self.state {
            State::Down { until_ns } if now_ns >= *until_ns => self.open(now_ns, epoll),
            State::Opening { by_ns, .. } if now_ns >= *by_ns => Err(Lost::Silent),
            State::Up { .. } if now_ns >= self.ping_ns => {
                if self.pongs < self.pings && now_ns >= self.heard_ns + PATIENCE_NS {
                    return Err(Lost::Silent);
                }
                self.ping_ns = now_ns + PING_EVERY_NS;
                self.ping();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, now_ns: u64, epoll: &Epoll) -> Result<(), Lost> {
        let refused = |error: io::Error| refused(&error);
        let address = self.sockets[self.next_socket % self.sockets.len()];
        self.next_socket += 1;
        let (socket, _) = stream::connect(address).map_err(refused)?;
        epoll.add(&socket, SOCKET_KEY, true).map_err(refused)?;
        (self.pings, self.pongs) = (0, 0);
        self.state = State::Opening { socket, by_ns: now_ns + PATIENCE_NS };
        Ok(())
    }

    fn socket(&self) -> Option<&OwnedFd> {
        match &self.state {
            State::Down { .. } => None,
            State::Opening { socket, .. } | State::Up { socket } => Some(socket),
        }
    }

    /// Sends what was published and not sent.
    pub fn flush(&mut self) -> Result<(), Lost> {
        while let Some(socket) = self.socket()
            && self.sent < self.out.len()
        {
            match stream::write(socket, &self.out[self.sent..]).map_err(|()| self.why_ended())? {
                0 => break,
                count => self.sent += count,
            }
        }
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
            if self.out.capacity() > KEPT_BYTES {
                self.out = Vec::new();
            }
        } else if self.sent > KEPT_BYTES {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }

    /// What the system knows of the end of the connection.
    fn why_ended(&self) -> Lost {
        let error = self.socket().map(|socket| socket2::SockRef::from(socket).take_error());
        match error {
            Some(Ok(Some(error))) => refused(&error),
            _ => Lost::Closed,
        }
    }

    /// Reads what has come, in so many portions at most. How many there were, and whether the connection is over.
    pub fn read_all(&mut self, most: usize, now_ns: u64) -> (usize, Result<(), Lost>) {
        let mut reads = 0;
        loop {
            match self.read(now_ns) {
                Ok(true) if reads < most => reads += 1,
                outcome => return (reads, outcome.map(drop)),
            }
        }
    }

    /// Reads a portion of what has come; whether more may be there.
    fn read(&mut self, now_ns: u64) -> Result<bool, Lost> {
        let (State::Opening { socket, .. } | State::Up { socket }) = &self.state else { return Ok(false) };
        if !self.is_up() {
            // A read would take the reason from the socket and not tell it.
            socket2::SockRef::from(socket)
                .take_error()
                .ok()
                .flatten()
                .map_or(Ok(()), |error| Err(refused(&error)))?;
        }
        match stream::read(socket.as_fd(), &mut self.buffer) {
            Read::Empty => Ok(false),
            Read::Ended => Err(self.why_ended()),
            Read::Bytes(count) => {
                self.input.extend_from_slice(&self.buffer[..count]);
                self.heard_ns = now_ns;
                Ok(true)
            }
        }
    }

    /// Takes out what was read, to be given back by `keep`.
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Gives back what was taken out, of which so many bytes are done.
    pub fn keep(&mut self, mut input: Vec<u8>, done: usize) {
        input.drain(..done);
        if input.is_empty() && input.capacity() > KEPT_BYTES {
            input = Vec::new();
        }
        self.input = input;
    }

    /// What concerns the connection itself; true when the client was let in just now.
    pub fn hear(&mut self, event: &Event<'_>, now_ns: u64) -> Result<bool, Lost> {
        match event {
            Event::Info(info) => self.greet(*info)?,
            Event::Ping => self.out.extend_from_slice(protocol::PONG),
            Event::Pong => {
                self.pongs += 1;
                return Ok(self.is_let_in(now_ns));
            }
            Event::Error(words) => return Err(Lost::Unwilling(shown(words))),
            Event::Ok | Event::Message { .. } => {}
        }
        Ok(false)
    }

    fn greet(&mut self, info: Info) -> Result<(), Lost> {
        self.payload_bytes_max = info.payload_bytes_max;
        if self.is_up() {
            return Ok(());
        }
        if info.wants_tls {
            return Err(Lost::WantsTls);
        }
        if info.wants_login && self.address.login == Login::None {
            return Err(Lost::WantsLogin);
        }
        protocol::connect(&mut self.out, &self.client_name, &self.address.login);
        self.ping();
        Ok(())
    }

    fn is_let_in(&mut self, now_ns: u64) -> bool {
        match std::mem::replace(&mut self.state, State::Down { until_ns: 0 }) {
            State::Opening { socket, .. } => {
                self.state = State::Up { socket };
                self.back_off_ns = BACK_OFF_NS;
                self.ping_ns = now_ns + PING_EVERY_NS;
                true
            }
            other => {
                self.state = other;
                false
            }
        }
    }

    /// The connection is over; the next one begins later. True when the client had been let in.
    pub fn lose(&mut self, now_ns: u64) -> bool {
        if let Some(socket) = self.socket() {
            // Another thread's descriptor table may hold it as well: closing alone would not end the connection.
            stream::end(socket);
        }
        let was_up = self.is_up();
        self.state = State::Down { until_ns: now_ns + self.back_off_ns };
        self.back_off_ns = (self.back_off_ns * 2).min(BACK_OFF_NS_MAX);
        self.out = Vec::new();
        self.sent = 0;
        self.input = Vec::new();
        was_up
    }
}

fn refused(error: &io::Error) -> Lost {
    Lost::Refused(error.to_string())
}

/// Words of another program: one line, without control characters, and not long.
fn shown(words: &str) -> String {
    words.chars().filter(|letter| !letter.is_control()).take(200).collect()
}
