//! Redis or Valkey as a store: one connection, commands pipelined, replies in order.
//!
//! When the connection breaks, the outcome of everything that the kernel had taken a part of is unknown; the rest is
//! resent on the next one.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use ::hazelcast::tls::{Stream, is_of_tls};
use drivers::TlsSettings;
use drivers::redis::resp::{self, Broken, Resp};
use inflight::{Kind, Plan, Workload};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Reply, Store, TRUST, Ticket, tls};

const CONNECT: Duration = Duration::from_secs(5);
/// After a broken connection, before the next try.
const RECONNECT: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 64 << 10;

/// A database of a server.
pub struct Redis {
    host: String,
    database: u32,
    version: Option<String>,
    tls: Option<TlsSettings>,
    stream: Option<Stream<TcpStream>>,
    /// why the last connection ended
    why: String,
    retry_at: Instant,
    out: Vec<u8>,
    /// how much of `out` the kernel has taken
    written: usize,
    /// replies that are awaited, oldest first, each with the length of its command
    awaited: VecDeque<(Ticket, usize)>,
    input: Vec<u8>,
    /// how much of `input` holds what was read
    filled: usize,
}

impl Redis {
    /// Errors: nothing listens, or it is no Redis.
    pub fn connect(plan: &Plan) -> Result<Redis, String> {
        let rest = plan.target.split_once("://").map_or("", |(_, rest)| rest);
        let (host, database) = rest.split_once('/').unwrap_or((rest, "0"));
        let mut redis = Redis {
            host: host.to_owned(),
            database: database.parse().map_err(|_| format!("{database:?} is no number of a database"))?,
            version: None,
            tls: tls(plan, host.rsplit_once(':').map_or(host, |(name, _)| name))?,
            stream: None,
            why: String::new(),
            retry_at: Instant::now(),
            out: Vec::new(),
            written: 0,
            awaited: VecDeque::new(),
            input: vec![0; READ_BYTES],
            filled: 0,
        };
        redis.open().map_err(|error| format!("cannot connect to {}: {error}", plan.target))?;
        Ok(redis)
    }

    pub fn version(&self) -> Option<String> {
        self.version.clone()
    }

    /// Connects, selects the database and asks for the version, waiting for each.
    fn open(&mut self) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let address = self.host.to_socket_addrs().map_err(text)?.next().ok_or("the name has no address")?;
        let socket = TcpStream::connect_timeout(&address, CONNECT).map_err(text)?;
        socket.set_nodelay(true).map_err(text)?;
        socket.set_read_timeout(Some(CONNECT)).map_err(text)?;
        let settings = self.tls.as_ref().map(|tls| (tls.config.clone(), tls.name.clone()));
        let mut stream = Stream::new(socket, settings).map_err(|error| error.to_string())?;
        let mut commands = Vec::new();
        resp::command(&mut commands, &[b"SELECT", self.database.to_string().as_bytes()]);
        resp::command(&mut commands, &[b"INFO", b"server"]);
        stream.write_all(&commands).map_err(text)?;
        let mut input = Vec::new();
        take_reply(&mut stream, &mut input, |_| {})?;
        let mut version = None;
        take_reply(&mut stream, &mut input, |reply| {
            if let Resp::Bulk(Some(bytes)) = reply {
                let text = String::from_utf8_lossy(bytes);
                let line = text.lines().find_map(|line| line.strip_prefix("redis_version:"));
                version = line.map(str::to_owned);
            }
        })?;
        stream.socket().set_nonblocking(true).map_err(text)?;
        (self.version, self.stream) = (version, Some(stream));
        Ok(())
    }

    /// What was sent is unknown; what was not is kept.
    fn break_off(&mut self, why: String, ended: &mut impl FnMut(Ticket, Reply<'_>)) {
        self.stream = None;
        self.retry_at = Instant::now() + RECONNECT;
        let unsent = self.out.len() - self.written;
        let mut awaited_bytes: usize = self.awaited.iter().map(|(_, length)| length).sum();
        // A command of which a part was sent counts as sent.
        while awaited_bytes > unsent
            && let Some((ticket, length)) = self.awaited.pop_front()
        {
            awaited_bytes -= length;
            ended(ticket, Reply::Unknown { cause: "connection lost", text: why.clone() });
        }
        self.out.drain(..self.out.len() - awaited_bytes);
        (self.written, self.filled) = (0, 0);
        self.why = why;
    }

    fn write(&mut self) -> Result<(), String> {
        while let Some(stream) = &mut self.stream
            && self.written < self.out.len()
        {
            match stream.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("writing failed: {error}")),
            }
        }
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
        match self.stream.as_mut().map_or(Ok(()), Stream::flush) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(format!("writing failed: {error}")),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Waits until something can be read, or written where something is left to write.
    fn wait(&self, wait: Duration) -> Result<(), String> {
        let Some(stream) = &self.stream else { return Ok(()) };
        let is_behind = self.written < self.out.len() || stream.has_unsent();
        let writing = if is_behind { PollFlags::OUT } else { PollFlags::empty() };
        let mut descriptors = [PollFd::new(stream.socket(), PollFlags::IN | writing)];
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(format!("waiting failed: {error}")),
        }
    }

    /// Reads what is there and hands over the replies. Errors: the connection ended, or speaks another protocol.
    fn read(&mut self, ended: &mut impl FnMut(Ticket, Reply<'_>)) -> Result<(), String> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        loop {
            let more = resp::missing(&self.input[..self.filled]).max(READ_BYTES / 4);
            if self.input.len() < self.filled + more {
                self.input.resize((self.filled + more).max(self.input.len() * 2), 0);
            }
            match stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err("the server closed the connection".to_owned()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("reading failed: {error}")),
            }
            let is_full = self.filled == self.input.len() || stream.may_have_more();
            let mut used = 0;
            while let Some((reply, length)) = resp::reply(&self.input[used..self.filled])
                .map_err(|broken| why(broken, &self.input[used..self.filled]))?
            {
                let Some((ticket, _)) = self.awaited.pop_front() else {
                    return Err("the server replied to what was never asked".to_owned());
                };
                used += length;
                ended(
                    ticket,
                    match reply {
                        Resp::Bulk(value) => Reply::Value(value),
                        Resp::Simple(_) | Resp::Number(_) => Reply::Done,
                        Resp::Error(text) => Reply::Failed { cause: "refused", text: lossy(text) },
                    },
                );
            }
            self.input.copy_within(used..self.filled, 0);
            self.filled -= used;
            if !is_full {
                return Ok(());
            }
        }
    }

    fn exchange(&mut self, wait: Duration, ended: &mut impl FnMut(Ticket, Reply<'_>)) -> Result<(), String> {
        self.write()?;
        self.wait(wait)?;
        self.read(ended)
    }
}

/// With the bytes that it was seen by.
fn why(broken: Broken, bytes: &[u8]) -> String {
    format!("{broken}: {:?}", lossy(&bytes[..bytes.len().min(40)]))
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Waits for one reply.
fn take_reply(
    stream: &mut Stream<TcpStream>,
    input: &mut Vec<u8>,
    mut on_reply: impl FnMut(&Resp<'_>),
) -> Result<(), String> {
    let mut part = [0; 4096];
    loop {
        if let Some((reply, length)) = resp::reply(input).map_err(|broken| why(broken, input))? {
            if let Resp::Error(text) = reply {
                return Err(lossy(text));
            }
            on_reply(&reply);
            input.drain(..length);
            return Ok(());
        }
        match stream.read(&mut part) {
            Ok(0) => return Err("the server closed the connection".to_owned()),
            Ok(count) => input.extend_from_slice(&part[..count]),
            Err(error) if is_of_tls(&error) => {
                return Err(format!("no TLS connection ({error}); {TRUST}"));
            }
            Err(error) => return Err(format!("no answer within {} s: {error}", CONNECT.as_secs())),
        }
    }
}

impl Store for Redis {
    fn submit(&mut self, ticket: Ticket, kind: Kind, unrounded: Option<&str>, workload: &Workload) {
        let key = unrounded.unwrap_or_else(|| workload.name(ticket.key)).as_bytes();
        let from = self.out.len();
        match kind {
            Kind::Get => resp::command(&mut self.out, &[b"GET", key]),
            Kind::Set => resp::command(&mut self.out, &[b"SET", key, workload.value(ticket.key)]),
            Kind::Delete => resp::command(&mut self.out, &[b"DEL", key]),
        }
        self.awaited.push_back((ticket, self.out.len() - from));
    }

    fn poll(&mut self, wait: Duration, mut ended: impl FnMut(Ticket, Reply<'_>)) -> Result<(), String> {
        if self.stream.is_none() {
            let now = Instant::now();
            if now < self.retry_at {
                std::thread::sleep(wait.min(self.retry_at - now));
                return Ok(());
            }
            if let Err(why) = self.open() {
                (self.why, self.retry_at) = (why, Instant::now() + RECONNECT);
                return Ok(());
            }
        }
        if let Err(why) = self.exchange(wait, &mut ended) {
            self.break_off(why, &mut ended);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const FIRST: &[u8] = b"+OK\r\n$20\r\nredis_version:7.0.15\r\n";

    fn plan(port: u16) -> Plan {
        Plan::read(&format!(r#"{{"target":"redis://127.0.0.1:{port}","value_bytes":3}}"#)).unwrap()
    }

    /// How long the two commands are that open a connection.
    const OPENING_BYTES: usize = 49;

    /// A server that accepts each connection with `FIRST`, or its substitute, answers what comes next with the second
    /// text, and closes.
    fn server(connections: Vec<(&'static [u8], &'static [u8])>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for (first, then) in connections {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(first).unwrap();
                let (mut heard, mut bytes) = ([0; 4096], 0);
                while bytes <= OPENING_BYTES {
                    match stream.read(&mut heard) {
                        Ok(count @ 1..) => bytes += count,
                        _ => return,
                    }
                }
                stream.write_all(then).unwrap();
            }
        });
        port
    }

    fn outcomes(redis: &mut Redis, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..1000 {
            redis
                .poll(Duration::from_millis(5), |ticket, reply| all.push(format!("{} {reply:?}", ticket.key)))
                .unwrap();
            if all.len() >= count {
                break;
            }
        }
        all
    }

    #[test]
    fn what_was_sent_when_the_connection_broke_is_unknown_and_the_next_one_goes_on() {
        let port = server(vec![(FIRST, b""), (FIRST, b"$3\r\nabc\r\n")]);
        let plan = plan(port);
        let workload = Workload::new(&plan);
        let mut redis = Redis::connect(&plan).unwrap();
        assert_eq!(redis.version().as_deref(), Some("7.0.15"));
        let ticket = Ticket { token: None, key: 0 };
        for _ in 0..5 {
            redis.submit(ticket, Kind::Get, None, &workload);
        }
        let all = outcomes(&mut redis, 5);
        assert!(all.iter().all(|each| each.contains("Unknown")), "{all:?}");
        assert_eq!(all.len(), 5);
        redis.submit(ticket, Kind::Get, None, &workload);
        assert_eq!(outcomes(&mut redis, 1), ["0 Value(Some([97, 98, 99]))"]);
    }

    #[test]
    fn what_is_not_redis_is_refused_at_once() {
        let check = |first: &'static [u8], expected: &str| {
            let error = Redis::connect(&plan(server(vec![(first, b"")]))).err().unwrap();
            assert!(error.contains(expected), "{error}");
        };
        check(b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak Redis's protocol");
        check(b"-NOAUTH Authentication required.\r\n", "NOAUTH");
        check(b"+OK\r\n$99999999999\r\n", "beyond 32 MB");
    }

    #[test]
    fn a_reply_that_nobody_asked_for_ends_the_connection() {
        let port = server(vec![(FIRST, b"$3\r\nabc\r\n$3\r\nabc\r\n")]);
        let plan = plan(port);
        let mut redis = Redis::connect(&plan).unwrap();
        let workload = Workload::new(&plan);
        redis.submit(Ticket { token: None, key: 0 }, Kind::Get, None, &workload);
        assert_eq!(outcomes(&mut redis, 1), ["0 Value(Some([97, 98, 99]))"]);
        assert!(redis.stream.is_none() && redis.why.contains("never asked"), "{}", redis.why);
    }
}
