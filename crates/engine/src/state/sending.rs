//! Sending: a message waits in its connection's buffer until the kernel has taken it, and is recorded then.
//!
//! Send lag runs from the planned time until the kernel was first offered the message. What a server that does not read
//! adds after that is the server's doing and part of the latencies.

use std::task::{Context, Poll, Waker};

use drivers::{Closed, Driver, FREE_BYTES};

use super::WorkerState;
use super::connections::{Connection, ConnectionState};
use super::requests::PendingRequest;
use super::unsent::{Owes, SendLag, Unsent};
use crate::clock::Clock;
use crate::ids::{ConnectionId, RequestId};

/// A connection keeps room for so many of these.
const UNSENT_PLACES_KEPT: usize = 64;

impl<D: Driver> WorkerState<D> {
    /// Encodes a message into its connection's buffer, to be entered with `enter_unsent`. `None`: it was refused, and is
    /// recorded as not sent.
    #[inline]
    pub(crate) fn encode(
        &mut self,
        id: ConnectionId,
        op: usize,
        planned_ns: u64,
        what: D::Send<'_>,
    ) -> Option<Unsent> {
        let phase = self.phase(planned_ns);
        if let Some(Connection { state: ConnectionState::Open(driver), written, .. }) =
            self.connections.get_mut(id)
            && driver.send(what).is_ok()
        {
            let end = *written + driver.unsent_bytes() as u64;
            let (owes, send_lag) = (Owes::Nothing, SendLag::Unrecorded);
            return Some(Unsent { planned_ns, end, owes, op: op as u16, phase, send_lag });
        }
        self.recorder.not_sent(op, phase);
        None
    }

    /// Remembers an encoded message until the kernel has taken it.
    #[inline]
    pub(crate) fn enter_unsent(&mut self, id: ConnectionId, message: Unsent) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.unsent.push(message);
        connection.mark_dirty(id, &mut self.dirty);
    }

    /// The same for a reply that the server requested. False: replies to all servers take too much memory.
    pub(crate) fn enter_answer(&mut self, id: ConnectionId, message: Unsent) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return true };
        let waiting_bytes = (message.end - connection.written) as usize;
        let bytes = waiting_bytes + (connection.unsent.len() + 1) * size_of::<Unsent>();
        let has_room = connection.answers.grow_to(bytes, FREE_BYTES).is_ok();
        self.enter_unsent(id, message);
        has_room
    }

    /// The same for a message that owes a reply, which is entered too.
    pub(crate) fn enter_request(&mut self, id: ConnectionId, message: Unsent) -> Option<RequestId> {
        let connection = self.connections.get_mut(id)?;
        let (op, phase) = (usize::from(message.op), message.phase);
        let request = self.requests.insert(&mut connection.requests, id, op, phase, message.planned_ns);
        connection.unsent.push(Unsent { owes: Owes::Reply(request), ..message });
        connection.mark_dirty(id, &mut self.dirty);
        Some(request)
    }

    /// Encodes data that is not a separate message. False: the connection no longer takes it.
    pub(crate) fn follow(&mut self, id: ConnectionId, what: D::Send<'_>) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return false };
        let ConnectionState::Open(driver) = &mut connection.state else { return false };
        if driver.send(what).is_err() {
            return false;
        }
        connection.mark_dirty(id, &mut self.dirty);
        true
    }

    /// Takes a request off its connection. False: it never left, and is forgotten.
    pub(crate) fn keep(&mut self, id: RequestId) -> bool {
        let Some(&PendingRequest { connection, sent_ns, .. }) = self.requests.get(id) else { return false };
        if connection == ConnectionId::NONE {
            return true;
        }
        let Some(connection) = self.connections.get_mut(connection) else { return false };
        if sent_ns.is_none() {
            if let Some(at) = connection.unsent.iter().position(|message| message.owes == Owes::Reply(id)) {
                connection.unsent.remove(at);
                connection.tried = connection.tried.saturating_sub(usize::from(at < connection.tried));
            }
            self.requests.cancel(&mut connection.requests, id);
            return false;
        }
        self.requests.move_to(&mut connection.requests, &mut self.kept, id);
        true
    }

    /// Sends a kept request on another connection, which owes its reply from now on.
    pub(crate) fn resend(&mut self, id: RequestId, to: ConnectionId, what: D::Send<'_>) -> bool {
        if self.requests.get(id).is_none() || !self.follow(to, what) {
            return false;
        }
        let Some(connection) = self.connections.get_mut(to) else { return false };
        self.requests.move_to(&mut self.kept, &mut connection.requests, id);
        self.requests.set_connection(id, to);
        true
    }

    /// Gives a kept request its outcome.
    pub(crate) fn lose(&mut self, id: RequestId) {
        if self.requests.get(id).is_none() {
            return;
        }
        if self.drains() {
            let request = self.requests.leave_open(&mut self.kept, id);
            self.recorder.unanswered(&request, self.now_ns);
        } else {
            let request = self.requests.finish(&mut self.kept, id);
            self.recorder.lost(&request);
        }
    }

    /// Enters a request that has no connection; it counts as sent now.
    pub(crate) fn begin(&mut self, op: usize, planned_ns: u64) -> RequestId {
        let phase = self.phase(planned_ns);
        let request = self.requests.insert(&mut self.kept, ConnectionId::NONE, op, phase, planned_ns);
        self.recorder.sent(op, phase, true);
        self.requests.sent(request, self.now_ns);
        request
    }

    /// The trial is over: what no connection owes and has no outcome is unanswered, and stays open in the record.
    pub(crate) fn end_kept(&mut self) {
        while let Some(request) = self.requests.first(&self.kept) {
            self.lose(request);
        }
    }

    /// Enters a reply that is owed by a connection although nothing was sent for it; it counts as sent at `sent_ns`.
    /// `None`: the connection has ended.
    pub(crate) fn expect(
        &mut self,
        id: ConnectionId,
        op: usize,
        planned_ns: u64,
        sent_ns: u64,
    ) -> Option<RequestId> {
        let phase = self.phase(planned_ns);
        let connection = self.connections.get_mut(id)?;
        let request = self.requests.insert(&mut connection.requests, id, op, phase, planned_ns);
        self.recorder.sent(op, phase, true);
        self.requests.sent(request, sent_ns);
        Some(request)
    }

    /// Removes a request whose reply has come, for its outcome to be recorded. `None`: the reply is owed no longer.
    pub(crate) fn take_request(&mut self, id: RequestId) -> Option<PendingRequest> {
        let &PendingRequest { connection, sent_ns, .. } = self.requests.get(id)?;
        let Some(connection) = self.connections.get_mut(connection) else {
            let has_none = connection == ConnectionId::NONE;
            return has_none.then(|| self.requests.finish(&mut self.kept, id));
        };
        if sent_ns.is_none() {
            // We have not seen the kernel take the buffer with this request. Since its reply is here, everything
            // encoded up to the request has been sent.
            let request = connection.unsent.iter().position(|message| message.owes == Owes::Reply(id))?;
            connection.tried = connection.tried.saturating_sub(request + 1);
            for message in connection.unsent.drain(..=request) {
                message.departed(self.now_ns, &mut self.recorder, &mut self.requests, &mut self.ledger);
            }
        }
        Some(self.requests.finish(&mut connection.requests, id))
    }

    /// Hands what is encoded to the kernel, once per connection and turn.
    pub(crate) fn flush_dirty(&mut self, clock: &impl Clock) {
        while let Some(id) = self.dirty.pop() {
            self.now_ns = clock.now_ns();
            self.flush(id);
        }
    }

    /// Where the kernel does not take it, and behind an emulated network, the connection's own task is woken later.
    ///
    /// A message has departed when its last byte was taken, also where others behind it still wait.
    pub(crate) fn flush(&mut self, id: ConnectionId) {
        let departed_ns = self.now_ns;
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (ConnectionState::Open(driver) | ConnectionState::Closing(driver)) = &mut connection.state else {
            return;
        };
        for message in &connection.unsent[connection.tried..] {
            if message.send_lag == SendLag::Unrecorded {
                self.recorder.send_lag(message.phase, departed_ns.saturating_sub(message.planned_ns));
            }
        }
        let bytes = driver.unsent_bytes();
        let task = connection.waker.as_ref().unwrap_or(Waker::noop());
        let outcome = driver.poll_flush(&mut Context::from_waker(task));
        let written = (bytes - driver.unsent_bytes()) as u64;
        connection.written += written;
        connection.mark_clean();
        self.recorder.bytes_sent(written);
        let departed_count = match outcome {
            Poll::Ready(Ok(())) => connection.unsent.len(),
            _ => connection.unsent.iter().take_while(|message| message.end <= connection.written).count(),
        };
        connection.tried = connection.unsent.len() - departed_count;
        match outcome {
            Poll::Ready(Ok(())) | Poll::Pending => {}
            Poll::Ready(Err(error)) => self.ended.push((id, Closed::Failed(error))),
        }
        for message in connection.unsent.drain(..departed_count) {
            message.departed(departed_ns, &mut self.recorder, &mut self.requests, &mut self.ledger);
        }
        if connection.unsent.is_empty() {
            connection.answers.release();
            if connection.unsent.capacity() > UNSENT_PLACES_KEPT {
                connection.unsent = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::io;
    use std::net::IpAddr;
    use std::rc::Rc;
    use std::sync::Arc;

    use drivers::{Address, Broken, OpenError, ReadBuffer, Refused};
    use measure::ledger::SharedLedger;
    use measure::{Interval, LedgerPart, LedgerShape, Measure, MetricNames, Phase};

    use super::*;
    use crate::context::BotContext;
    use crate::state::Shared;

    /// A connection whose kernel takes a limited number of bytes.
    struct Narrow {
        unsent: usize,
        room: Rc<Cell<usize>>,
    }

    /// Beyond so much unsent it takes no more.
    const NARROW_UNSENT_MAX: usize = 1000;

    impl Driver for Narrow {
        type Connecting = ();
        type Send<'a> = usize;
        type Received<'a> = Infallible;

        fn begin_connect(_: &Address, _: Option<IpAddr>) -> Result<(), OpenError> {
            Ok(())
        }

        async fn open((): (), _: &Address) -> Result<Self, OpenError> {
            Err(OpenError::Refused)
        }

        fn send(&mut self, bytes: usize) -> Result<(), Refused> {
            if self.unsent > NARROW_UNSENT_MAX {
                return Err(Refused(NARROW_UNSENT_MAX));
            }
            self.unsent += bytes;
            Ok(())
        }

        fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            let taken = self.unsent.min(self.room.get());
            self.room.set(self.room.get() - taken);
            self.unsent -= taken;
            if self.unsent == 0 { Poll::Ready(Ok(())) } else { Poll::Pending }
        }

        fn poll_read(&mut self, _: &mut Context<'_>, _: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
            Poll::Pending
        }

        fn next(&mut self, _: &mut ReadBuffer) -> Option<Result<Infallible, Broken>> {
            None
        }

        fn close(&mut self) {}

        fn unsent_bytes(&self) -> usize {
            self.unsent
        }
    }

    fn state_of(names: &Arc<MetricNames>) -> WorkerState<Narrow> {
        let socket = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let plan = plan::WorkerPlan {
            patience_ns: 1,
            ..plan::WorkerPlan::alone(
                plan::EchoBots { rate_per_s: 1.0, payload_bytes: 10 }.into(),
                1,
                plan::Scheme::Tcp,
                socket,
            )
        };
        let address = Address { host: "nowhere".to_owned(), ..Address::plain(socket) };
        WorkerState::<Narrow>::new(Box::new(Interval::new(names)), &plan, vec![address], Shared::default())
    }

    #[test]
    fn a_server_that_asks_for_answers_and_reads_none_is_left_once() {
        let mut state = state_of(&MetricNames::new(&["keep"], &[], &[], &OpenError::CAUSES));
        let connection = state.open(0, 0);
        state.connection_opened(connection, Narrow { unsent: 0, room: Rc::default() });
        for _ in 0..10_000 {
            BotContext { state: &mut state }.answer(connection, 0, 0, 6);
        }
        let unsent = &state.connections.get_mut(connection).unwrap().unsent;
        assert!(unsent.len() <= NARROW_UNSENT_MAX / 6 + 1, "{} answers wait", unsent.len());
        assert!(
            matches!(&state.ended[..], [(id, Closed::Broken(Broken::UnreadAnswers))] if *id == connection),
            "{:?}",
            state.ended
        );
    }

    #[test]
    fn a_message_departs_with_its_last_byte_and_its_lag_ends_with_the_first_try() {
        let mut state = state_of(&MetricNames::new(&["say"], &[], &[], &OpenError::CAUSES));
        let shape = LedgerShape::alone(1, 1);
        state.ledger = Some(Box::new(LedgerPart::new(shape, SharedLedger::default())));
        let room = Rc::new(Cell::new(15));
        let connection = state.open(0, 0);
        state.connection_opened(connection, Narrow { unsent: 0, room: room.clone() });
        for _ in 0..3 {
            let mut ctx = BotContext { state: &mut state };
            let seq = ctx.ledger().next_seq(0).unwrap();
            assert!(ctx.broadcast(connection, 0, 1_000, (0, seq), 10));
        }
        state.now_ns = 6_000;
        state.flush(connection);
        let sent =
            |state: &WorkerState<Narrow>| state.recorder.interval().flows[0][Phase::Ramp as usize].sent;
        assert_eq!(sent(&state), 1, "ten of fifteen bytes are a message, the other five are not");
        state.now_ns = 1_000_000_000;
        room.set(15);
        state.flush(connection);
        assert_eq!(sent(&state), 3);
        let lag = state.recorder.interval().distribution(Measure::SendLag, false);
        let max_ns = lag.max_ns().unwrap();
        assert_eq!(lag.count(), 3);
        assert!(max_ns.abs_diff(5_000) <= 5, "that the kernel was full is no lag of ours: {max_ns} ns");
        assert_eq!(state.recorder.interval().bytes_sent, 30);
    }
}
