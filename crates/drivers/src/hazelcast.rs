//! Hazelcast: operations on one map over one connection to one member.
//!
//! The protocol itself is the crate `hazelcast`, whose `Session` takes bytes and returns events; this driver adds a
//! socket. The member executes operations on its own partitions and forwards the rest. It reports which member owns
//! which partition, now and after each change (`Reply::Owners`), so that a caller with connections to all of them can
//! send each operation to its owner.
//! The path of the address is the map's name, followed by `?cluster=NAME` if the cluster is not called `dev`.
//! A connection under load is never silent for long enough to need a heartbeat, and operations have no deadline here:
//! so the session's clock stands still. Not here: which connection an operation takes.

use std::io::{self, IoSlice, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use ::hazelcast::wire::data;
use ::hazelcast::wire::message::Effect;
use ::hazelcast::wire::request::TTL_OF_THE_MAP;
use ::hazelcast::wire::{
    self, Answer, Credentials, Data, Event, Key, Limits, MapName, Member, PartitionTable, Request, Session,
    SessionError, Settings, Uuid,
};
use socket2::Socket;
use tokio::io::AsyncWrite;

use crate::address::Address;
use crate::connect;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::grid::{Grid, Kind, Operation, Received, Reply};
use crate::read_buffer::ReadBuffer;
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};

/// The map of a path that names none.
pub const MAP: &str = "stepladder";
/// The cluster of a path that names none: what members are called unless configured otherwise.
pub const CLUSTER: &str = "dev";
/// The session's clock.
const NOW_NS: u64 = 0;
/// Contents that one write hands to the kernel.
const SLICES: usize = 64;
const PROTOCOL: &str = "Hazelcast";
/// How many operations are in flight is the plan's business, and large values that wait are only referred to: a plan's
/// values are few. A value is 16 MiB at most. How long a message may be the address says.
const LIMITS: Limits =
    Limits { message_bytes: 0, request_bytes: 64 << 20, unsent_bytes: usize::MAX, in_flight: 1 << 24 };

/// One open connection.
pub struct Hazelcast {
    stream: Stream,
    /// knows operations by their tags
    session: Session<u32>,
    map: MapName,
    /// the cluster, as the member last said
    members: Vec<Member>,
    table: PartitionTable,
    shutdown: Shutdown,
}

impl Grid for Hazelcast {
    type Key = Key;
    type Value = Data;

    fn key(name: &str) -> Key {
        Key::of(name)
    }

    fn value(text: &str) -> Data {
        Data::of(text)
    }

    fn partition(key: &Key, count: u32) -> u32 {
        key.partition(count)
    }
}

impl Driver for Hazelcast {
    type Connecting = Socket;
    type Send<'a> = Operation<'a, Key, Data>;
    type Received<'a> = Received<'a>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let stream = Stream::open(begin_connect, to, |tls| &tls.config).await?;
        let (map, cluster) = map_and_cluster(&to.path);
        let credentials = Credentials {
            cluster_name: cluster.to_owned(),
            username: to.login.as_ref().and_then(|login| login.user.clone()),
            password: to.login.as_ref().map(|login| login.password.clone()),
            client_uuid: Uuid::from_random(fastrand::u128(..)),
            client_name: "stepladder".to_owned(),
        };
        // The engine gives up a connection that takes too long to open, so the session need not.
        let limits = Limits { message_bytes: to.reply_bytes_max, ..LIMITS };
        let settings = Settings { limits, skips_unasked: false, ..Settings::default() };
        let session = Session::new(settings, &credentials, NOW_NS);
        let mut opening = Hazelcast {
            stream,
            session,
            map: map.into(),
            members: Vec::new(),
            table: PartitionTable::default(),
            shutdown: Shutdown::default(),
        };
        opening.authenticate().await?;
        Ok(opening)
    }

    fn send(&mut self, what: Operation<'_, Key, Data>) -> Result<(), Refused> {
        let refused = Refused(LIMITS.unsent_bytes);
        if self.shutdown.is_said() {
            return Err(refused);
        }
        // Clones share their bytes.
        let (map, key) = (self.map.clone(), what.key.clone());
        let request = match what.kind {
            Kind::Get => Request::Get { map, key },
            Kind::Set => {
                let ttl_ms = what.ttl_ms.map_or(TTL_OF_THE_MAP, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
                Request::Set { map, key, value: what.value.clone(), ttl_ms }
            }
            Kind::Delete => Request::Delete { map, key },
        };
        self.session.send(&request, what.tag, NOW_NS, u64::MAX).map_err(|_| refused)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write(cx))?;
        self.shutdown.poll_send(|| Pin::new(&mut self.stream).poll_shutdown(cx)).map(Ok)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        buffer.lay(&[]);
        match ready!(stream::poll_read(&mut self.stream, cx, self.session.room())) {
            Err(error) => Poll::Ready(Err(Closed::Failed(error))),
            Ok(0) => Poll::Ready(Err(Closed::ByPeer(None))),
            Ok(count) => {
                self.session.filled(count, NOW_NS);
                Poll::Ready(Ok(count))
            }
        }
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<Received<'d>, Broken>> {
        let words = &mut buffer.joined;
        let Hazelcast { session, members, table, .. } = self;
        loop {
            return match session.next_event() {
                Err(error) => Some(Err(broken(&error))),
                Ok(None) => None,
                Ok(Some(Event::TooLarge { token, .. })) => {
                    Some(Ok(Received { tag: token, reply: Reply::Strange }))
                }
                Ok(Some(Event::Answered { token, answer })) => {
                    words.clear();
                    // The session's bytes cannot be borrowed beyond this call, so a value is copied once.
                    let heard = match answer {
                        Ok(Answer::Value(None)) => Heard::Missing,
                        Ok(Answer::Value(Some(bytes))) => match data::text(bytes) {
                            Some(text) => {
                                words.extend_from_slice(text);
                                Heard::Value
                            }
                            None => Heard::Strange,
                        },
                        Ok(Answer::Done) => Heard::Done,
                        Ok(Answer::Flag(_) | Answer::Count(_) | Answer::Entries(_)) => Heard::Strange,
                        Err(error) => {
                            // Writing to memory cannot fail.
                            let _ = write!(words, "{error}");
                            match error.effect() {
                                Effect::NotBegun => Heard::Again { may_have_run: false },
                                Effect::Unknown if error.is_retryable() => {
                                    Heard::Again { may_have_run: true }
                                }
                                Effect::Unknown | Effect::Failed => Heard::Refused,
                            }
                        }
                    };
                    let reply = match heard {
                        Heard::Missing => Reply::Value(None),
                        Heard::Value => Reply::Value(Some(words)),
                        Heard::Done => Reply::Done,
                        Heard::Refused => Reply::Refused(words),
                        Heard::Again { may_have_run } => Reply::Again { words, may_have_run },
                        Heard::Strange => Reply::Strange,
                    };
                    Some(Ok(Received { tag: token, reply }))
                }
                Ok(Some(Event::Members(view))) => {
                    *members = view.members;
                    Some(Ok(Received { tag: 0, reply: owners(members, table) }))
                }
                Ok(Some(Event::Partitions(view))) => {
                    table.take(&view, true);
                    Some(Ok(Received { tag: 0, reply: owners(members, table) }))
                }
                Ok(Some(Event::Authenticated(_))) => continue,
            };
        }
    }

    fn close(&mut self) {
        self.shutdown.say();
    }

    fn unsent_bytes(&self) -> usize {
        self.session.send_buffer().unsent_bytes()
    }

    fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }
}

/// What an answer is, without its bytes.
enum Heard {
    Missing,
    Value,
    Done,
    Refused,
    Again { may_have_run: bool },
    Strange,
}

/// Addresses as members call themselves; one that calls itself by a name is not looked up here, and its partitions have no
/// known owner.
fn owners(members: &[Member], table: &PartitionTable) -> Reply<'static> {
    let address = |uuid: Uuid| {
        let member = members.iter().find(|member| member.uuid == uuid)?;
        Some(SocketAddr::new(member.host.parse().ok()?, member.port))
    };
    let of_each: Rc<[Option<SocketAddr>]> =
        table.owners().iter().map(|owner| owner.and_then(address)).collect();
    Reply::Owners(of_each)
}

impl Hazelcast {
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.session.send_buffer().is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.session.send_buffer().slices(&mut slices);
            let sent = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..count]))?;
            self.session.sent(sent);
        }
        // TLS may hold records that the socket has not taken.
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    async fn authenticate(&mut self) -> Result<(), OpenError> {
        std::future::poll_fn(|cx| self.poll_write(cx)).await?;
        loop {
            let session = &mut self.session;
            let stream = &mut self.stream;
            let count = std::future::poll_fn(|cx| stream::poll_read(stream, cx, session.room())).await?;
            if count == 0 {
                return Err(OpenError::ClosedEarly);
            }
            session.filled(count, NOW_NS);
            loop {
                let partition_count = match session.next_event() {
                    Ok(Some(Event::Authenticated(who))) => who.partition_count,
                    Ok(Some(_)) => continue,
                    Ok(None) => break,
                    Err(error @ (SessionError::Rejected(_) | SessionError::Refused(_))) => {
                        return Err(OpenError::Rejected(error.to_string()));
                    }
                    Err(error) => {
                        return Err(OpenError::WrongProtocol { protocol: PROTOCOL, why: error.to_string() });
                    }
                };
                session.watch_cluster(NOW_NS);
                self.table = PartitionTable::new(partition_count);
                return Ok(());
            }
        }
    }
}

/// `/MAP?cluster=NAME`: the map and the cluster.
pub fn map_and_cluster(path: &str) -> (&str, &str) {
    let (map, query) =
        path.trim_start_matches('/').split_once('?').unwrap_or((path.trim_start_matches('/'), ""));
    let cluster = query.strip_prefix("cluster=").filter(|name| !name.is_empty()).unwrap_or(CLUSTER);
    (if map.is_empty() { MAP } else { map }, cluster)
}

fn broken(error: &SessionError) -> Broken {
    match error {
        SessionError::Broken(wire::Broken::Malformed(why)) => Broken::Protocol(why),
        SessionError::Broken(wire::Broken::FrameLength(_)) => {
            Broken::Protocol("a frame that says a length which no frame can have")
        }
        SessionError::Broken(wire::Broken::TooLarge { limit_bytes, .. }) => Broken::TooLarge(*limit_bytes),
        SessionError::Rejected(_) | SessionError::Refused(_) => {
            Broken::Protocol("a refusal of the connection")
        }
        SessionError::AuthenticationTimeout | SessionError::Silent(_) => Broken::Protocol("silence"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_map_and_may_name_the_cluster() {
        let check = |path: &str, expected| assert_eq!(map_and_cluster(path), expected, "{path}");
        check("/", (MAP, CLUSTER));
        check("/prices", ("prices", CLUSTER));
        check("/prices?cluster=north", ("prices", "north"));
        check("/?cluster=north", (MAP, "north"));
    }
}
