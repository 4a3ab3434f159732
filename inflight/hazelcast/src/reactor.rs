//! A client of a whole cluster on one thread: one connection per member, each operation sent directly to its
//! partition's owner.
//!
//! `submit` puts an operation into its connection's send buffer; `poll` writes each send buffer once, waits, reads, and
//! returns completed operations. A closed loop is `poll`, then as many `submit`s as operations ended, so requests batch
//! naturally.
//! Every operation ends exactly once: *ok*, *failed*, or *unknown* when it was sent and its answer never came. Retries
//! happen only if the operation cannot have been executed, or changes nothing. After warm-up a small operation
//! allocates nothing.
//! Not here: threads and futures (`client`), bytes (`wire`).

mod cluster;
mod config;
mod connection;
mod gather;
mod operation;
mod outcome;
mod route;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::pki_types::ServerName;
use slab::Slab;

use crate::tls::Stream;
use crate::wire::{Credentials, Event, Member, PartitionTable, Request, Session, Settings, Uuid};
use cluster::Cluster;
use config::nanos;
pub use config::{Config, Tls};
use connection::Connection;
use gather::Gather;
use operation::{End, Next, Operation};
pub use outcome::{ConnectError, Down, DownCause, Failure, Outcome};
use route::Routes;

/// A waker's token; connections count from 0.
const WAKER: Token = Token(usize::MAX - 1);
/// Reads of one connection per turn, so that a busy one does not keep the others waiting.
const READS_PER_TURN: usize = 16;
/// Operations that may wait for a connection.
const WAITING_MAX: usize = 100_000;

/// A part of `poll`, to measure what each part costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// deadlines, heartbeats, connecting
    Tend,
    /// to the kernel
    Write,
    /// for readiness, or for answers to gather
    Wait,
    /// from the kernel
    Read,
    /// bytes to the operations that they end, the caller's own part of that included
    Resolve,
}

/// One thread's client of a cluster. `T`: what the caller recognises an operation by.
pub struct Reactor<T> {
    poll: Poll,
    events: Events,
    started: Instant,
    config: Config,
    settings: Settings,
    credentials: Credentials,
    connections: Slab<Connection<Operation<T>>>,
    cluster: Cluster,
    routes: Routes,
    /// operations that no connection can take yet
    waiting: VecDeque<Operation<T>>,
    /// operations that are tried again, and when
    delayed: Vec<(u64, Operation<T>)>,
    /// nothing that waits or is delayed has to be looked at earlier
    attend_ns: u64,
    /// operations that ended without an answer; the next `poll` hands them over
    ended: VecDeque<(T, End)>,
    gather: Gather,
    /// connections that are read in this turn
    readable: Vec<usize>,
    on_step: Option<fn(Step)>,
    /// hosts that certificates must name, where that is not the address; with TLS only
    hosts: HashMap<SocketAddr, String>,
}

impl<T> Reactor<T> {
    /// A reactor that begins to connect with its first `poll`. Errors: an address that is none, or no descriptor left.
    pub fn new(config: Config) -> Result<Self, ConnectError> {
        let resolved = config.resolve()?;
        let seeds = resolved.iter().map(|(address, _)| *address).collect();
        let hosts = match &config.tls {
            None => HashMap::new(),
            Some(Tls { host: None, .. }) => resolved.into_iter().collect(),
            Some(Tls { host: Some(host), .. }) => {
                resolved.into_iter().map(|(address, _)| (address, host.clone())).collect()
            }
        };
        let client_uuid = Uuid::from_random(fastrand::u128(..));
        Ok(Reactor {
            poll: Poll::new()?,
            events: Events::with_capacity(256),
            started: Instant::now(),
            settings: config.settings(),
            credentials: config.credentials(client_uuid),
            connections: Slab::new(),
            cluster: Cluster::new(seeds, config.backoff()),
            routes: Routes::default(),
            waiting: VecDeque::new(),
            delayed: Vec::new(),
            attend_ns: u64::MAX,
            ended: VecDeque::new(),
            gather: Gather::new(config.gather_share),
            readable: Vec::new(),
            on_step: None,
            hosts,
            config,
        })
    }

    /// Connects to a member and waits until it has told the cluster's members, at most `Config::connect_timeout`.
    ///
    /// Errors: no member let us in in time; at once when each address is one that never will.
    pub fn connect(config: Config) -> Result<Self, ConnectError> {
        let mut reactor = Reactor::new(config)?;
        let until_ns = nanos(reactor.config.connect_timeout);
        loop {
            let now_ns = reactor.now_ns();
            if reactor.is_ready() {
                return Ok(reactor);
            }
            if now_ns >= until_ns || reactor.cluster.is_hopeless() {
                return Err(reactor.cluster.connect_error(&reactor.config.cluster_name, now_ns));
            }
            // No operation can end: none was submitted.
            reactor.poll(Some(Duration::from_nanos(until_ns - now_ns)), |_, _| {})?;
        }
    }

    /// A handle by which another thread ends the wait of `poll`. There can be one.
    pub fn waker(&self) -> io::Result<Waker> {
        Waker::new(self.poll.registry(), WAKER)
    }

    /// Whether a member is connected and has told the cluster's members. The partition table may come later: a new cluster
    /// assigns its partitions with the first operation.
    pub fn is_ready(&self) -> bool {
        !self.members().is_empty() && self.connected() > 0
    }

    /// Members that are connected and have let us in.
    pub fn connected(&self) -> usize {
        self.connections.iter().filter(|(_, connection)| connection.session.is_ready()).count()
    }

    /// Members of the cluster, as it last said.
    pub fn members(&self) -> &[Member] {
        self.cluster.members()
    }

    /// Which member owns which partition, as the cluster last said.
    pub fn partition_table(&self) -> &PartitionTable {
        self.routes.table()
    }

    /// The version of the member that let us in last, such as "5.5.0".
    pub fn server_version(&self) -> Option<&str> {
        self.cluster.server_version()
    }

    /// Operations that were submitted and have not been handed over as ended.
    pub fn in_flight(&self) -> usize {
        let sent: usize = self.connections.iter().map(|(_, connection)| connection.session.in_flight()).sum();
        sent + self.waiting.len() + self.delayed.len() + self.ended.len()
    }

    /// Of those, how many are on the way to or from each connected member.
    pub fn in_flight_by_member(&self) -> impl Iterator<Item = (Uuid, usize)> {
        let connections = self.connections.iter();
        connections.filter_map(|(_, connection)| {
            connection.member.map(|uuid| (uuid, connection.session.in_flight()))
        })
    }

    /// Why a member was not reached or was lost last, if that has happened.
    pub fn last_down(&self) -> Option<&Arc<Down>> {
        self.cluster.last_down()
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Calls `on_step` after each step of a `poll`: a few times per turn, never per operation.
    pub fn watch_steps(&mut self, on_step: fn(Step)) {
        self.on_step = Some(on_step);
    }

    fn did(&self, step: Step) {
        if let Some(on_step) = self.on_step {
            on_step(step);
        }
    }

    /// Starts an operation. It ends in a `poll`, with `token`, in any case.
    pub fn submit(&mut self, request: Request, token: T) {
        let now_ns = self.now_ns();
        let deadline_ns = now_ns.saturating_add(nanos(self.config.invocation_timeout));
        self.dispatch(Operation::new(request, token, deadline_ns), now_ns);
    }

    /// Puts an operation into a connection's send buffer, or lets it wait for a connection.
    fn dispatch(&mut self, operation: Operation<T>, now_ns: u64) {
        let deadline_ns = operation.deadline_ns;
        let Some(at) = self.routes.connection_for(&operation.request) else {
            if self.waiting.len() >= WAITING_MAX {
                self.ended.push_back(operation.after_waiting(self.cluster.last_down()));
            } else {
                self.attend_ns = self.attend_ns.min(deadline_ns);
                self.waiting.push_back(operation);
            }
            return;
        };
        let session = &mut self.connections[at].session;
        let sent = session.send_own(operation, |operation| &operation.request, now_ns, deadline_ns);
        if let Err((operation, refused)) = sent {
            self.ended.push_back((operation.token, End::Failed(Failure::Refused(refused))));
        }
    }

    /// Writes what is to be sent, waits at most `timeout` (`None`: until something happens) for answers, and hands over
    /// every operation that ended. Returns how many did; it can return earlier than `timeout` without any.
    ///
    /// Errors: only those of waiting itself.
    pub fn poll(
        &mut self,
        timeout: Option<Duration>,
        mut on_end: impl FnMut(T, Outcome<'_>),
    ) -> io::Result<usize> {
        let now_ns = self.now_ns();
        if now_ns >= self.wake_ns() {
            self.tick(now_ns);
        }
        self.did(Step::Tend);
        self.flush(now_ns);
        self.did(Step::Write);
        let mut count = self.hand_over(&mut on_end);
        let is_busy = count > 0 || self.connections.iter().any(|(_, connection)| connection.is_readable);
        let wake = Duration::from_nanos(self.wake_ns().saturating_sub(now_ns));
        let wait = if is_busy { Duration::ZERO } else { timeout.map_or(wake, |timeout| timeout.min(wake)) };
        self.did(Step::Resolve);
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &self.events {
            if let Some(connection) = self.connections.get_mut(event.token().0) {
                connection.is_readable |= event.is_readable() || event.is_error() || event.is_read_closed();
                connection.is_writable |= event.is_writable();
            }
        }
        self.did(Step::Wait);
        count += self.read_all(self.now_ns(), &mut on_end);
        if count > 0 && self.let_gather(count, timeout) {
            count += self.read_all(self.now_ns(), &mut on_end);
        }
        count += self.hand_over(&mut on_end);
        self.gather.ended(count, self.now_ns());
        self.did(Step::Resolve);
        Ok(count)
    }

    /// Reads all connections that have something; returns how many operations were answered.
    fn read_all(&mut self, now_ns: u64, on_end: &mut impl FnMut(T, Outcome<'_>)) -> usize {
        let mut count = 0;
        let mut readable = std::mem::take(&mut self.readable);
        readable.extend(
            self.connections.iter().filter(|(_, connection)| connection.is_readable).map(|(at, _)| at),
        );
        for at in readable.drain(..) {
            if let Err(cause) = self.read(at, now_ns, &mut count, on_end) {
                self.close(at, cause, now_ns);
            }
        }
        self.readable = readable;
        count
    }

    /// Waits for more answers when only `count` came, see `gather`. Returns whether to read again.
    fn let_gather(&mut self, count: usize, timeout: Option<Duration>) -> bool {
        let mut in_flight = 0;
        for (_, connection) in &self.connections {
            // More to read than one turn takes, or to write than the kernel takes: there is enough work.
            if connection.is_readable || connection.is_behind() {
                return false;
            }
            in_flight += connection.session.in_flight();
        }
        let pause = Duration::from_nanos(self.gather.pause_ns(count, in_flight));
        if pause.is_zero() || timeout.is_some_and(|timeout| timeout < pause) {
            return false;
        }
        std::thread::sleep(pause);
        self.did(Step::Wait);
        for (_, connection) in &mut self.connections {
            // Otherwise the kernel would only report it at the next wait.
            connection.is_readable = connection.session.in_flight() > 0;
        }
        true
    }

    fn hand_over(&mut self, on_end: &mut impl FnMut(T, Outcome<'_>)) -> usize {
        let mut count = 0;
        while let Some((token, end)) = self.ended.pop_front() {
            count += 1;
            match end {
                End::Failed(failure) => on_end(token, Outcome::Failed(failure)),
                End::Unknown(failure) => on_end(token, Outcome::Unknown(failure)),
            }
        }
        count
    }

    fn flush(&mut self, now_ns: u64) {
        for at in 0..self.connections.capacity() {
            let Some(connection) = self.connections.get_mut(at) else { continue };
            if let Err(cause) = connection.flush() {
                self.close(at, cause, now_ns);
            }
        }
    }

    /// Reads a connection until it has no more, or has had its turn.
    fn read(
        &mut self,
        at: usize,
        now_ns: u64,
        count: &mut usize,
        on_end: &mut impl FnMut(T, Outcome<'_>),
    ) -> Result<(), DownCause> {
        for _ in 0..READS_PER_TURN {
            let Some(connection) = self.connections.get_mut(at) else { return Ok(()) };
            if !connection.is_readable {
                return Ok(());
            }
            let read = connection.read(now_ns);
            self.did(Step::Read);
            match read? {
                0 => return Ok(()),
                bytes => self.gather.received(bytes),
            }
            self.take_events(at, now_ns, count, on_end)?;
            self.did(Step::Resolve);
        }
        Ok(())
    }

    /// Hands over what the last read brought.
    fn take_events(
        &mut self,
        at: usize,
        now_ns: u64,
        count: &mut usize,
        on_end: &mut impl FnMut(T, Outcome<'_>),
    ) -> Result<(), DownCause> {
        while let Some(connection) = self.connections.get_mut(at) {
            let Some(event) = connection.session.next_event()? else { break };
            match event {
                Event::Answered { token: operation, answer: Ok(answer) } => {
                    *count += 1;
                    on_end(operation.token, Outcome::Ok(answer));
                }
                Event::Answered { token: operation, answer: Err(error) } => {
                    let next = operation.after_error(error, now_ns, fastrand::f64());
                    self.go_on(next, now_ns);
                }
                Event::TooLarge { token: operation, bytes } => {
                    self.ended
                        .push_back(operation.after_large_answer(bytes, self.config.limits.message_bytes));
                }
                Event::Authenticated(who) => {
                    let address = connection.address;
                    let is_same = self.cluster.admit(address, &who)?;
                    self.connections[at].member = Some(who.member);
                    self.routes.begin(who.partition_count, is_same);
                    self.reroute(now_ns);
                }
                Event::Members(view) => {
                    let may_connect = self.config.may_connect;
                    let has_tls = self.config.tls.is_some();
                    let hosts = &mut self.hosts;
                    let permitted = |host: &str, port| {
                        let address = resolve(host, port).filter(|address| may_connect(address.ip()))?;
                        if has_tls {
                            hosts.entry(address).or_insert_with(|| host.to_owned());
                        }
                        Some(address)
                    };
                    self.cluster.take_members(view, now_ns, permitted);
                    self.close_left(now_ns);
                }
                Event::Partitions(view) => {
                    self.routes.take(&view, at);
                    self.reroute(now_ns);
                }
            }
        }
        Ok(())
    }

    fn go_on(&mut self, next: Next<T>, now_ns: u64) {
        match next {
            Next::Again { due_ns, operation } if due_ns <= now_ns => self.dispatch(operation, now_ns),
            Next::Again { due_ns, operation } => {
                self.attend_ns = self.attend_ns.min(due_ns);
                self.delayed.push((due_ns, operation));
            }
            Next::Ended(token, end) => self.ended.push_back((token, end)),
        }
    }

    /// The table or the connections have changed.
    fn reroute(&mut self, now_ns: u64) {
        let ready = |(at, connection): (usize, &Connection<_>)| {
            connection.member.filter(|_| connection.session.is_ready()).map(|member| (at, member))
        };
        self.routes.rebuild(self.connections.iter().filter_map(ready));
        if !self.connections.iter().any(|(_, connection)| connection.session.is_watching())
            && let Some((_, connection)) =
                self.connections.iter_mut().find(|(_, connection)| connection.session.is_ready())
        {
            connection.session.watch_cluster(now_ns);
        }
        for _ in 0..self.waiting.len() {
            if let Some(operation) = self.waiting.pop_front() {
                self.dispatch(operation, now_ns);
            }
        }
    }

    fn close_left(&mut self, now_ns: u64) {
        for at in 0..self.connections.capacity() {
            let member = self.connections.get(at).and_then(|connection| connection.member);
            if member.is_some_and(|member| !self.cluster.has(member)) {
                self.close(at, DownCause::Left, now_ns);
            }
        }
    }

    /// Ends a connection and what was in flight on it.
    fn close(&mut self, at: usize, cause: DownCause, now_ns: u64) {
        let Some(mut connection) = self.connections.try_remove(at) else { return };
        let down = Arc::new(Down { address: connection.address, cause });
        self.cluster.failed(down.clone(), now_ns, fastrand::f64());
        self.reroute(now_ns);
        connection.session.end(|ended| {
            let next = ended.token.after_loss(ended.is_sent, &down, now_ns);
            self.go_on(next, now_ns);
        });
    }

    /// When `tick` has something to do.
    fn wake_ns(&self) -> u64 {
        let sessions = self.connections.iter().map(|(_, connection)| connection.session.wake_ns()).min();
        sessions.unwrap_or(u64::MAX).min(self.attend_ns).min(self.cluster.wake_ns())
    }

    /// Does what time asks for: deadlines, heartbeats, further attempts, connecting.
    fn tick(&mut self, now_ns: u64) {
        for at in 0..self.connections.capacity() {
            let Some(connection) = self.connections.get_mut(at) else { continue };
            let (ended, timeout) = (&mut self.ended, self.config.invocation_timeout);
            let ticked =
                connection.session.tick(now_ns, |end| ended.push_back(end.token.after_timeout(timeout)));
            if let Err(error) = ticked {
                self.close(at, error.into(), now_ns);
            }
        }
        if now_ns >= self.attend_ns {
            self.attend(now_ns);
        }
        while let Some(address) = self.cluster.due(now_ns) {
            self.open(address, now_ns);
        }
    }

    /// Looks after what waits and what is delayed.
    fn attend(&mut self, now_ns: u64) {
        self.attend_ns = u64::MAX;
        for _ in 0..self.waiting.len() {
            let Some(operation) = self.waiting.pop_front() else { break };
            if operation.deadline_ns <= now_ns {
                self.ended.push_back(operation.after_waiting(self.cluster.last_down()));
            } else {
                self.attend_ns = self.attend_ns.min(operation.deadline_ns);
                self.waiting.push_back(operation);
            }
        }
        for (due_ns, operation) in std::mem::take(&mut self.delayed) {
            if operation.deadline_ns <= now_ns {
                self.ended.push_back(operation.after_waiting(self.cluster.last_down()));
            } else if due_ns <= now_ns {
                self.dispatch(operation, now_ns);
            } else {
                self.attend_ns = self.attend_ns.min(due_ns);
                self.delayed.push((due_ns, operation));
            }
        }
    }

    fn open(&mut self, address: SocketAddr, now_ns: u64) {
        let at = self.connections.vacant_key();
        self.cluster.opened(address, at);
        let stream = TcpStream::connect(address).and_then(|mut stream| {
            self.poll.registry().register(&mut stream, Token(at), Interest::READABLE | Interest::WRITABLE)?;
            self.with_tls(stream, address)
        });
        match stream {
            Ok(stream) => {
                let session = Session::new(self.settings, &self.credentials, now_ns);
                self.connections.insert(Connection::new(stream, session, address));
            }
            Err(error) => {
                let down = Arc::new(Down { address, cause: error.into() });
                self.cluster.failed(down, now_ns, fastrand::f64());
            }
        }
    }

    fn with_tls(&self, socket: TcpStream, address: SocketAddr) -> io::Result<Stream<TcpStream>> {
        let tls = match &self.config.tls {
            None => None,
            Some(Tls { config, .. }) => {
                let host = self.hosts.get(&address).cloned().unwrap_or_else(|| address.ip().to_string());
                let name = ServerName::try_from(host).map_err(io::Error::other)?;
                Some((config.clone(), name))
            }
        };
        Stream::new(socket, tls).map_err(io::Error::other)
    }

    /// Ends everything: what was sent as unknown, the rest as failed.
    pub fn close_all(mut self, mut on_end: impl FnMut(T, Outcome<'_>)) {
        let ended = &mut self.ended;
        for mut connection in self.connections.drain() {
            connection.session.end(|end| {
                let end_as = if end.is_sent { End::Unknown } else { End::Failed };
                ended.push_back((end.token.token, end_as(Failure::Closed)));
            });
        }
        let waiting = self.waiting.drain(..).chain(self.delayed.drain(..).map(|(_, operation)| operation));
        ended.extend(waiting.map(Operation::after_close));
        self.hand_over(&mut on_end);
    }
}

/// Members mostly call themselves by an address. Where it is a name, it is looked up, which can take a while; but without
/// it the member cannot be reached at all.
fn resolve(host: &str, port: u16) -> Option<SocketAddr> {
    match host.parse::<IpAddr>() {
        Ok(ip) => Some(SocketAddr::new(ip, port)),
        Err(_) => (host, port).to_socket_addrs().ok()?.next(),
    }
}
