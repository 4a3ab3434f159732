//! One connection to a store: commands out and replies in, non-blocking, with reconnects.
//!
//! All commands of a turn are sent with one write, and replies come in the order of the commands. A connection whose
//! oldest command has no reply in time is dropped: later replies could not be told apart. What was in flight then has a
//! `Fate`. After that the link reconnects, at growing intervals.
//! Memory is bounded: by `OUT_BYTES_MAX` for commands, and for replies by `resp::REPLY_BYTES_MAX`.
//! The bytes of a command are kept until its reply has come, in case the server has evicted its script.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::address::StoreAddress;
use super::resp::{self, Broken, Command, Items, Reply, Scalar, Scan};
use super::scripts::Script;
use servers_shared::clock;
use servers_shared::stream::{self, Read};

/// Bytes of commands that were not answered, at most; one more command is always taken.
const OUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Answered commands at the front of the buffer that are moved away once they take this many bytes.
const OUT_BYTES_MOVED: usize = 256 * 1024;

/// Memory that is kept for what comes next.
const KEPT_BYTES: usize = 1024 * 1024;

const READ_BYTES: usize = 64 * 1024;

/// Between two attempts to connect, at first and at most.
const BACK_OFF_NS: u64 = 50_000_000;
const BACK_OFF_NS_MAX: u64 = 2_000_000_000;

/// How and where to connect.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) address: StoreAddress,
    /// The addresses of its host; not empty.
    pub(super) sockets: Vec<SocketAddr>,
    /// How long a reply, and a connection, may take.
    pub(super) timeout: Duration,
}

/// Why there is no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("{0}")]
    Refused(String),
    #[error("it has not answered within {0:?}")]
    Silent(Duration),
    #[error("it has closed the connection")]
    Closed,
    #[error(transparent)]
    Broken(#[from] Broken),
    /// What it said to the first commands of a connection.
    #[error("it said: {0}")]
    Unwilling(String),
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its last byte was not sent: it cannot have been executed.
    NotSent,
    /// Sent and not answered: it may or may not be executed.
    Unknown,
}

/// What a command ended with.
#[derive(Clone, Copy, Debug)]
pub(super) enum End<'a> {
    Done(Items<'a>),
    /// Answered with one value instead of a list.
    One(Scalar<'a>),
    Lost(Fate),
}

/// A command without a reply.
struct UnderWay {
    /// What the caller knows it by; None for the link's own.
    number: Option<u64>,
    /// The script it calls.
    script: Option<Script>,
    /// Its bytes, counted from the first that was ever put on this connection.
    from: u64,
    to: u64,
    /// When it was put, monotonic ns.
    at_ns: u64,
    /// It was sent again, since its script was unknown.
    is_again: bool,
}

enum State {
    /// Connects again at this instant.
    Down {
        until_ns: u64,
    },
    /// Until then the connection must be there and the first commands be answered.
    Opening {
        socket: OwnedFd,
        is_connected: bool,
        first_left: usize,
        by_ns: u64,
    },
    Up {
        socket: OwnedFd,
    },
}

pub(super) struct Link {
    target: Target,
    /// Which of the target's sockets is tried next.
    next_socket: usize,
    state: State,
    back_off_ns: u64,
    /// Why there is no connection.
    lost: Option<Lost>,
    /// Commands: what was answered at the front and not moved yet, what was sent, what was not sent.
    out: Vec<u8>,
    /// The number of the first byte of `out`.
    out_from: u64,
    sent: u64,
    under_way: VecDeque<UnderWay>,
    buffer: Box<[u8]>,
    input: Vec<u8>,
    /// Bytes of `input` that were read out.
    taken: usize,
    scan: Scan,
    /// Connections that were lost after they were up.
    pub(super) losses: u64,
    /// Commands whose reply did not come.
    pub(super) unknown: u64,
}

impl Link {
    /// Not connected yet; `turn` begins with it.
    pub(super) fn new(target: Target) -> Link {
        Link {
            target,
            next_socket: 0,
            state: State::Down { until_ns: 0 },
            back_off_ns: BACK_OFF_NS,
            lost: None,
            out: Vec::new(),
            out_from: 0,
            sent: 0,
            under_way: VecDeque::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            input: Vec::new(),
            taken: 0,
            scan: Scan::default(),
            losses: 0,
            unknown: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// Why it is not up.
    pub(super) fn lost(&self) -> String {
        self.lost.as_ref().map_or_else(|| "it is being connected".to_owned(), Lost::to_string)
    }

    /// Whether one more command may be put.
    pub(super) fn has_room(&self) -> bool {
        self.out.len() < OUT_BYTES_MAX
    }

    /// The open socket, if there is one.
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Down { .. } => None,
            State::Opening { socket, .. } | State::Up { socket } => Some(socket.as_fd()),
        }
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Puts a command that `write` appends; it leaves with `flush`. Only while the link is up.
    pub(super) fn put(&mut self, number: u64, script: Option<Script>, write: impl FnOnce(&mut Vec<u8>)) {
        self.put_any(Some(number), script, false, write);
    }

    fn put_any(
        &mut self,
        number: Option<u64>,
        script: Option<Script>,
        is_again: bool,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let from = self.out_from + self.out.len() as u64;
        write(&mut self.out);
        let to = self.out_from + self.out.len() as u64;
        self.under_way.push_back(UnderWay { number, script, from, to, at_ns: clock::now_ns(), is_again });
    }

    /// When `turn` has something to do at the latest.
    pub(super) fn due_ns(&self) -> u64 {
        match &self.state {
            State::Down { until_ns } => *until_ns,
            State::Opening { by_ns, .. } => *by_ns,
            State::Up { .. } => {
                self.under_way.front().map_or(u64::MAX, |first| first.at_ns + self.timeout_ns())
            }
        }
    }

    fn timeout_ns(&self) -> u64 {
        self.target.timeout.as_nanos() as u64
    }

    /// Connects if it is time, gives up what takes too long, and sends what was put. Returns true when there is a new
    /// socket, which has to be watched for input and room.
    pub(super) fn turn(&mut self, now_ns: u64) -> Result<bool, Lost> {
        if now_ns >= self.due_ns() {
            if let State::Down { .. } = self.state {
                return self.open(now_ns).map(|()| true);
            }
            return Err(Lost::Silent(self.target.timeout));
        }
        self.flush().map(|()| false)
    }

    /// Does not wait longer before it connects again.
    pub(super) fn hurry(&mut self, now_ns: u64) {
        if let State::Down { until_ns } = &mut self.state {
            *until_ns = now_ns;
        }
    }

    fn open(&mut self, now_ns: u64) -> Result<(), Lost> {
        let refused = |error: io::Error| Lost::Refused(error.to_string());
        let sockets = &self.target.sockets;
        let address = sockets[self.next_socket % sockets.len()];
        self.next_socket += 1;
        let (socket, is_connected) = stream::connect(address).map_err(refused)?;
        let first_left = self.put_first();
        let by_ns = now_ns + self.timeout_ns();
        self.state = State::Opening { socket, is_connected, first_left, by_ns };
        Ok(())
    }

    /// Puts what every connection begins with; returns how many commands these are.
    fn put_first(&mut self) -> usize {
        let StoreAddress { login, database, .. } = self.target.address.clone();
        if let Some((name, password)) = login {
            self.put_any(None, None, false, |out| {
                let mut command = Command::begin(out, if name.is_empty() { 2 } else { 3 });
                command.word(b"AUTH");
                if !name.is_empty() {
                    command.word(name.as_bytes());
                }
                command.word(password.as_bytes());
            });
        }
        if database > 0 {
            self.put_any(None, None, false, |out| {
                Command::begin(out, 2).word(b"SELECT").number(u64::from(database));
            });
        }
        for script in Script::ALL {
            self.put_any(None, None, false, |out| script.load(out));
        }
        self.under_way.len()
    }

    /// Sends what was put and not sent.
    pub(super) fn flush(&mut self) -> Result<(), Lost> {
        let socket = match &mut self.state {
            State::Down { .. } => return Ok(()),
            State::Opening { socket, is_connected, .. } => {
                if !*is_connected {
                    match is_connected_now(socket)? {
                        true => *is_connected = true,
                        false => return Ok(()),
                    }
                }
                socket
            }
            State::Up { socket } => socket,
        };
        let unsent = &self.out[(self.sent - self.out_from) as usize..];
        if !unsent.is_empty() {
            self.sent += stream::write(socket, unsent).map_err(|()| Lost::Closed)? as u64;
        }
        Ok(())
    }

    /// Reads a portion of what has come. Returns whether more may be there; it has to be asked for, since the socket is
    /// watched for changes only.
    ///
    /// Errors: the connection is over; replies that came before can still be taken.
    pub(super) fn read(&mut self) -> Result<bool, Lost> {
        self.flush()?;
        let (State::Opening { socket, is_connected: true, .. } | State::Up { socket }) = &self.state else {
            return Ok(false);
        };
        self.input.drain(..self.taken);
        self.taken = 0;
        match stream::read(socket, &mut self.buffer) {
            Read::Ended => Err(Lost::Closed),
            Read::Empty => Ok(false),
            Read::Bytes(count) => {
                self.input.extend_from_slice(&self.buffer[..count]);
                Ok(true)
            }
        }
    }

    /// Hands the replies that are whole to `take`, with the numbers of their commands.
    ///
    /// Errors: the connection has to end.
    pub(super) fn take_replies(&mut self, mut take: impl FnMut(u64, End<'_>)) -> Result<(), Lost> {
        while let Some(bytes) = self.scan.whole(&self.input[self.taken..])? {
            let reply = resp::read(&self.input[self.taken..self.taken + bytes]);
            self.taken += bytes;
            // A reply to no request.
            let first = self.under_way.pop_front().ok_or(Broken)?;
            if first.to > self.sent {
                return Err(Broken.into());
            }
            if let State::Opening { first_left, .. } = &mut self.state {
                if let Reply::One(Scalar::Error(text)) = reply {
                    return Err(Lost::Unwilling(String::from_utf8_lossy(text).into_owned()));
                }
                *first_left -= 1;
                if *first_left == 0 {
                    self.now_up();
                }
                continue;
            }
            let Some(number) = first.number else { continue };
            match (reply, first.script) {
                (Reply::One(Scalar::Error(text)), Some(script))
                    if text.starts_with(b"NOSCRIPT") && !first.is_again =>
                {
                    self.put_any(None, None, false, |out| script.load(out));
                    let from = (first.from - self.out_from) as usize;
                    let again = from..from + (first.to - first.from) as usize;
                    self.put_any(Some(number), Some(script), true, |out| out.extend_from_within(again));
                }
                (Reply::One(scalar), _) => take(number, End::One(scalar)),
                (Reply::List(items), _) => take(number, End::Done(items)),
            }
        }
        self.move_out();
        if self.taken == self.input.len() {
            self.taken = 0;
            self.input.clear();
            if self.input.capacity() > KEPT_BYTES {
                self.input = Vec::new();
            }
        }
        Ok(())
    }

    fn now_up(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Down { until_ns: 0 });
        if let State::Opening { socket, .. } = state {
            self.state = State::Up { socket };
            self.back_off_ns = BACK_OFF_NS;
            self.lost = None;
        }
    }

    /// Forgets the bytes of commands that were answered.
    fn move_out(&mut self) {
        let answered = match self.under_way.front() {
            None => self.out.len(),
            Some(first) => (first.from - self.out_from) as usize,
        };
        if answered == self.out.len() || (answered >= OUT_BYTES_MOVED && answered * 2 >= self.out.len()) {
            self.out.drain(..answered);
            self.out_from += answered as u64;
            if self.out.is_empty() && self.out.capacity() > KEPT_BYTES {
                self.out = Vec::new();
            }
        }
    }

    /// The connection is over: says what became of each command that was under way, and connects again later.
    pub(super) fn lose(&mut self, why: Lost, now_ns: u64, mut take: impl FnMut(u64, End<'_>)) {
        if let Some(socket) = self.socket() {
            // Another thread's descriptor table may hold it as well: closing alone would not end the connection.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        self.losses += u64::from(self.is_up());
        self.state = State::Down { until_ns: now_ns + self.back_off_ns };
        self.back_off_ns = (self.back_off_ns * 2).min(BACK_OFF_NS_MAX);
        self.lost = Some(why);
        let sent = self.sent;
        for command in self.under_way.drain(..) {
            let fate = if command.to > sent { Fate::NotSent } else { Fate::Unknown };
            if let Some(number) = command.number {
                self.unknown += u64::from(fate == Fate::Unknown);
                take(number, End::Lost(fate));
            }
        }
        (self.out, self.out_from, self.sent) = (Vec::new(), 0, 0);
        (self.input, self.taken, self.scan) = (Vec::new(), 0, Scan::default());
    }

    /// Waits until something has come or can be sent, or is due. For callers without an epoll.
    pub(super) fn wait(&self) {
        // `u64::MAX` is out of range for the system call.
        let timeout_ns = self.due_ns().saturating_sub(clock::now_ns()).min(1_000_000_000);
        let timeout = clock::timespec(timeout_ns);
        let Some(socket) = self.socket() else { return std::thread::sleep(Duration::from_millis(1)) };
        let is_connecting = matches!(self.state, State::Opening { is_connected: false, .. });
        let has_unsent = self.sent < self.out_from + self.out.len() as u64;
        let room = if has_unsent || is_connecting { PollFlags::OUT } else { PollFlags::empty() };
        // Interrupted or not, the caller checks again.
        let _ = poll(&mut [PollFd::new(&socket, PollFlags::IN | room)], Some(&timeout));
    }
}

fn is_connected_now(socket: &OwnedFd) -> Result<bool, Lost> {
    let refused = |error: rustix::io::Errno| Lost::Refused(io::Error::from(error).to_string());
    rustix::net::sockopt::socket_error(socket).map_err(refused)?.map_err(refused)?;
    // Without an error it is either connected or in progress; only the first has a peer.
    Ok(rustix::net::getpeername(socket).is_ok())
}

#[cfg(test)]
mod tests;
