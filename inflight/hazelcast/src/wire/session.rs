//! One connection to a member, as a state machine: authentication, operations in flight, heartbeat, cluster view.
//!
//! The loop around it reads into `room`, calls `filled`, takes `next_event` until there is none, writes `send_buffer`
//! and calls `sent`, and calls `tick` at `wake_ns` at the latest. Every operation leaves exactly once: as an event, by
//! `tick` (its deadline) or by `end` (the connection's). An operation whose last byte the kernel never took has not
//! been executed. Not here: connecting, reading and writing, routing, retries.
//! Units: `_ns` since any start that the caller keeps to. Source: Open Binary Client Protocol 2.x, sections 4 and 5.

use send_buffer::SendBuffer;

use super::broken::Broken;
use super::data::Key;
use super::in_flight::{Entry, InFlight};
use super::message::{Message, ServerError};
use super::reader::{Reader, Received};
use super::request::{Answer, Kind, Request};
use super::settings::{Credentials, Settings};
use super::views::{self, Authentication, MembersView, PartitionsView, Rejected};

/// Until a member has authenticated us, a message may be so large (it carries the members and the partition table).
const UNAUTHENTICATED_BYTES_MAX: usize = 4 << 20;

/// One connection. `T`: what the caller recognises an operation by.
#[derive(Debug)]
pub struct Session<T> {
    settings: Settings,
    reader: Reader,
    send_buffer: SendBuffer,
    in_flight: InFlight<Owner<T>>,
    caller_in_flight: usize,
    partition_count: u32,
    /// events of this correlation are the cluster view's
    view_correlation: Option<i64>,
    is_authenticated: bool,
    /// when the member must have authenticated us
    authenticate_until_ns: u64,
    last_queued_ns: u64,
    last_filled_ns: u64,
    late_answers: u64,
}

/// Whose an operation is.
#[derive(Debug)]
enum Owner<T> {
    Authentication,
    ViewListener,
    Ping,
    Caller { token: T, kind: Kind },
}

/// What came.
#[derive(Debug)]
pub enum Event<'a, T> {
    /// the member let us in; from now on operations can be sent
    Authenticated(Authentication),
    /// an operation was answered
    Answered {
        /// whose it is
        token: T,
        /// what the member said
        answer: Result<Answer<'a>, ServerError>,
    },
    /// the answer to an operation is larger than the limit and was skipped
    TooLarge {
        /// whose it is
        token: T,
        /// bytes of the answer, as far as its frames said
        bytes: usize,
    },
    /// members came or left (`Session::watch_cluster`)
    Members(MembersView),
    /// partitions moved (`Session::watch_cluster`)
    Partitions(PartitionsView),
}

/// An operation that ended without an answer.
#[derive(Debug)]
pub struct Ended<T> {
    /// whose it is
    pub token: T,
    /// whether the kernel took all of it, so that it may have been executed
    pub is_sent: bool,
}

/// Why a request was not taken. Nothing of it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The member has not authenticated us yet.
    #[error("the connection is not authenticated yet")]
    NotReady,
    /// It is larger than requests may be.
    #[error("a request of {bytes} bytes, with a limit of {limit_bytes} (Limits::request_bytes)")]
    TooLarge {
        /// what it would take
        bytes: usize,
        /// what it may take
        limit_bytes: usize,
    },
    /// Too many operations are in flight on this connection.
    #[error("{0} operations are in flight already (Limits::in_flight)")]
    TooManyInFlight(usize),
    /// Too much waits for the kernel.
    #[error("{0} bytes wait to be sent already (Limits::unsent_bytes)")]
    TooMuchUnsent(usize),
    /// `GetAll` and `PutAll` need a key, and keys of one partition.
    #[error("its keys are not all of one partition, or there are none")]
    Partitions,
}

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The peer broke the protocol.
    #[error("protocol error: {0}")]
    Broken(#[from] Broken),
    /// The member does not let us in.
    #[error("{0}")]
    Rejected(#[from] Rejected),
    /// The member answered our authentication, or our listener, with an error.
    #[error("the member refused the connection: {0}")]
    Refused(ServerError),
    /// The member did not authenticate us in time.
    #[error(
        "the member did not authenticate us in time; it may be no Hazelcast member, or be starting or overloaded"
    )]
    AuthenticationTimeout,
    /// Nothing came from the member within the heartbeat's timeout.
    #[error("nothing came from the member for {0} ms, though it was asked")]
    Silent(u64),
}

impl<T> Session<T> {
    /// A connection that was just opened. The authentication waits in the send buffer.
    pub fn new(settings: Settings, credentials: &Credentials, now_ns: u64) -> Self {
        let limit_bytes = settings.limits.message_bytes.max(UNAUTHENTICATED_BYTES_MAX);
        let mut session = Session {
            settings,
            reader: Reader::new(limit_bytes.min(UNAUTHENTICATED_BYTES_MAX)),
            send_buffer: SendBuffer::default(),
            in_flight: InFlight::new(),
            caller_in_flight: 0,
            partition_count: 0,
            view_correlation: None,
            is_authenticated: false,
            authenticate_until_ns: now_ns.saturating_add(settings.authentication_timeout_ns),
            last_queued_ns: now_ns,
            last_filled_ns: now_ns,
            late_answers: 0,
        };
        session.send_buffer.buffer().extend_from_slice(views::PREAMBLE);
        session.put_own(Owner::Authentication, now_ns, |out, correlation| {
            views::put_authentication(out, correlation, credentials);
        });
        session
    }

    fn put_own(&mut self, owner: Owner<T>, now_ns: u64, put: impl FnOnce(&mut Vec<u8>, i64)) {
        put(self.send_buffer.buffer(), self.in_flight.next_correlation());
        self.send_buffer.written();
        self.in_flight.insert(owner, self.send_buffer.queued_until(), u64::MAX);
        self.last_queued_ns = now_ns;
    }

    /// Whether operations can be sent.
    pub fn is_ready(&self) -> bool {
        self.is_authenticated
    }

    /// Operations in flight, without our own (heartbeat and the like).
    pub fn in_flight(&self) -> usize {
        self.caller_in_flight
    }

    /// Answers that came after their operation's deadline.
    pub fn late_answers(&self) -> u64 {
        self.late_answers
    }

    /// Puts a request into the send buffer. Its operation ends unanswered when `deadline_ns` has passed.
    ///
    /// Errors: the token comes back with the reason; nothing of the request will be sent.
    pub fn send(
        &mut self,
        request: &Request,
        token: T,
        now_ns: u64,
        deadline_ns: u64,
    ) -> Result<(), (T, Refused)> {
        match self.put(request, now_ns) {
            Ok(kind) => {
                self.enter(kind, token, deadline_ns);
                Ok(())
            }
            Err(refused) => Err((token, refused)),
        }
    }

    /// The same with a token that carries its request.
    pub(crate) fn send_own(
        &mut self,
        token: T,
        request: impl FnOnce(&T) -> &Request,
        now_ns: u64,
        deadline_ns: u64,
    ) -> Result<(), (T, Refused)> {
        match self.put(request(&token), now_ns) {
            Ok(kind) => {
                self.enter(kind, token, deadline_ns);
                Ok(())
            }
            Err(refused) => Err((token, refused)),
        }
    }

    fn put(&mut self, request: &Request, now_ns: u64) -> Result<Kind, Refused> {
        self.check(request)?;
        let partition = request.key().map_or(-1, |key| key.partition(self.partition_count) as i32);
        request.put(&mut self.send_buffer, self.in_flight.next_correlation(), partition);
        self.last_queued_ns = now_ns;
        Ok(request.kind())
    }

    fn enter(&mut self, kind: Kind, token: T, deadline_ns: u64) {
        self.in_flight.insert(Owner::Caller { token, kind }, self.send_buffer.queued_until(), deadline_ns);
        self.caller_in_flight += 1;
    }

    fn check(&self, request: &Request) -> Result<(), Refused> {
        let limits = &self.settings.limits;
        if !self.is_authenticated {
            return Err(Refused::NotReady);
        }
        if self.in_flight.len() >= limits.in_flight {
            return Err(Refused::TooManyInFlight(limits.in_flight));
        }
        if self.send_buffer.unsent_bytes() > limits.unsent_bytes {
            return Err(Refused::TooMuchUnsent(limits.unsent_bytes));
        }
        let bytes = request.wire_bytes();
        let limit_bytes = limits.request_bytes.min(i32::MAX as usize);
        if bytes > limit_bytes {
            return Err(Refused::TooLarge { bytes, limit_bytes });
        }
        let of_one = |keys: &mut dyn Iterator<Item = &Key>| {
            let mut partitions = keys.map(|key| key.partition(self.partition_count));
            partitions.next().is_some_and(|first| partitions.all(|partition| partition == first))
        };
        match request {
            Request::GetAll { keys, .. } if !of_one(&mut keys.iter()) => Err(Refused::Partitions),
            Request::PutAll { entries, .. } if !of_one(&mut entries.iter().map(|(key, _)| key)) => {
                Err(Refused::Partitions)
            }
            _ => Ok(()),
        }
    }

    /// Asks the member for the cluster's view, now and after each change. One connection of a client is enough.
    pub fn watch_cluster(&mut self, now_ns: u64) {
        if self.view_correlation.is_none() {
            self.view_correlation = Some(self.in_flight.next_correlation());
            self.put_own(Owner::ViewListener, now_ns, |out, correlation| {
                views::put_bare(out, views::ADD_CLUSTER_VIEW_LISTENER, correlation);
            });
        }
    }

    /// Whether the member was asked for the cluster's view.
    pub fn is_watching(&self) -> bool {
        self.view_correlation.is_some()
    }

    /// Room for one read; never empty. To be called when `next_event` has returned `None`.
    pub fn room(&mut self) -> &mut [u8] {
        self.reader.room()
    }

    /// `count` bytes were read into the room.
    pub fn filled(&mut self, count: usize, now_ns: u64) {
        self.last_filled_ns = now_ns;
        self.reader.filled(count);
    }

    /// What waits to be sent.
    pub fn send_buffer(&self) -> &SendBuffer {
        &self.send_buffer
    }

    /// The kernel took `count` bytes of the send buffer.
    pub fn sent(&mut self, count: usize) {
        self.send_buffer.sent(count);
    }

    /// The next thing that came; `None` when more has to be read. After an error the connection is to be closed.
    pub fn next_event(&mut self) -> Result<Option<Event<'_, T>>, SessionError> {
        // Each iteration takes one internal message off the buffer.
        while let Some(received) = self.reader.advance()? {
            let place = match received {
                Received::Message(place) => place,
                Received::TooLarge { correlation, bytes } => match self.in_flight.remove(correlation) {
                    None => {
                        self.skip_unasked()?;
                        continue;
                    }
                    Some(Entry { token: Owner::Caller { token, .. }, .. }) => {
                        self.caller_in_flight -= 1;
                        return Ok(Some(Event::TooLarge { token, bytes }));
                    }
                    Some(_) => {
                        let limit_bytes = self.settings.limits.message_bytes;
                        return Err(Broken::TooLarge { bytes, limit_bytes }.into());
                    }
                },
            };
            let message = self.reader.message(place)?;
            if message.is_event() {
                if self.view_correlation == Some(message.correlation()) {
                    match message.message_type() {
                        views::MEMBERS_VIEW => {
                            return Ok(Some(Event::Members(views::read_members_view(&message)?)));
                        }
                        views::PARTITIONS_VIEW => {
                            return Ok(Some(Event::Partitions(views::read_partitions_view(&message)?)));
                        }
                        // Newer members send more.
                        _ => {}
                    }
                }
                continue;
            }
            let Some(entry) = self.in_flight.remove(message.correlation()) else {
                self.skip_unasked()?;
                continue;
            };
            match entry.token {
                Owner::Caller { token, kind } => {
                    // Borrowed again, or the borrow would have to last over the iterations that return nothing.
                    let message = self.reader.message(place)?;
                    let answer = if message.is_error() {
                        message.server_error().map(Err)
                    } else {
                        kind.answer(&message).map(Ok)
                    };
                    return match answer {
                        Ok(answer) => {
                            self.caller_in_flight -= 1;
                            Ok(Some(Event::Answered { token, answer }))
                        }
                        Err(broken) => {
                            // Sent and not answered: it ends with the connection.
                            let token = Owner::Caller { token, kind };
                            self.in_flight.insert(token, entry.queued_until, entry.deadline_ns);
                            Err(broken.into())
                        }
                    };
                }
                Owner::Authentication => {
                    let authentication = Self::authentication(&message)?;
                    self.is_authenticated = true;
                    self.partition_count = authentication.partition_count;
                    self.reader.set_limit(self.settings.limits.message_bytes);
                    return Ok(Some(Event::Authenticated(authentication)));
                }
                Owner::ViewListener if message.is_error() => {
                    return Err(SessionError::Refused(message.server_error()?));
                }
                Owner::ViewListener | Owner::Ping => {}
            }
        }
        Ok(None)
    }

    /// An answer that no operation waits for.
    fn skip_unasked(&mut self) -> Result<(), Broken> {
        if !self.settings.skips_unasked {
            return Err(Broken::Malformed(
                "an answer that no operation waits for: a second one, or an invention",
            ));
        }
        self.late_answers += 1;
        Ok(())
    }

    fn authentication(message: &Message<'_>) -> Result<Authentication, SessionError> {
        if message.is_error() {
            return Err(SessionError::Refused(message.server_error()?));
        }
        if message.message_type() != views::AUTHENTICATION + 1 {
            return Err(Broken::Malformed("an answer of another type than its request").into());
        }
        Ok(views::read_authentication(message)??)
    }

    /// When `tick` has something to do at the latest, if nothing happens before.
    pub fn wake_ns(&self) -> u64 {
        let heartbeat_ns = if self.is_authenticated {
            let ping_ns = self.last_queued_ns.saturating_add(self.settings.heartbeat_interval_ns);
            ping_ns.min(self.last_filled_ns.saturating_add(self.settings.heartbeat_timeout_ns))
        } else {
            self.authenticate_until_ns
        };
        self.in_flight.earliest_ns().map_or(heartbeat_ns, |deadline_ns| deadline_ns.min(heartbeat_ns))
    }

    /// Ends operations whose deadline has passed, and keeps the heartbeat. After an error the connection is to be closed.
    pub fn tick(&mut self, now_ns: u64, mut ended: impl FnMut(Ended<T>)) -> Result<(), SessionError> {
        let sent_until = self.send_buffer.sent_until();
        let caller_in_flight = &mut self.caller_in_flight;
        self.in_flight.expire(now_ns, |entry| {
            if let Some(entry) = caller_end(entry, sent_until) {
                *caller_in_flight -= 1;
                ended(entry);
            }
        });
        if !self.is_authenticated {
            let is_late = now_ns >= self.authenticate_until_ns;
            return if is_late { Err(SessionError::AuthenticationTimeout) } else { Ok(()) };
        }
        let silent_ns = now_ns.saturating_sub(self.last_filled_ns);
        if silent_ns >= self.settings.heartbeat_timeout_ns {
            return Err(SessionError::Silent(silent_ns / 1_000_000));
        }
        // Also when only we are silent: a member drops clients that it has not heard from for long.
        if now_ns.saturating_sub(self.last_queued_ns) >= self.settings.heartbeat_interval_ns {
            self.put_own(Owner::Ping, now_ns, |out, correlation| {
                views::put_bare(out, views::PING, correlation)
            });
        }
        Ok(())
    }

    /// Ends all operations, because the connection has ended.
    pub fn end(&mut self, mut ended: impl FnMut(Ended<T>)) {
        let sent_until = self.send_buffer.sent_until();
        self.caller_in_flight = 0;
        self.in_flight.drain().filter_map(|entry| caller_end(entry, sent_until)).for_each(&mut ended);
    }
}

fn caller_end<T>(entry: Entry<Owner<T>>, sent_until: u64) -> Option<Ended<T>> {
    let is_sent = entry.queued_until <= sent_until;
    match entry.token {
        Owner::Caller { token, .. } => Some(Ended { token, is_sent }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
