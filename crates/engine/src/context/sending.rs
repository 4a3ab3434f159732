//! Sending: a message waits in its connection's buffer until the kernel has taken it, and is booked then.

use super::*;

impl<D: Driver> WorkerState<D> {
    /// Encodes a message into its connection's buffer. False: it was refused, and is booked as not sent.
    pub(super) fn encode(&mut self, id: ConnectionId, op: usize, planned_ns: u64, what: D::Send<'_>) -> bool {
        let is_taken = match self.connection_mut(id) {
            Some(Connection { state: State::Open(driver), .. }) => driver.send(what).is_ok(),
            _ => false,
        };
        if !is_taken {
            let phase = self.shared.timeline.phase(planned_ns);
            self.book_not_sent(op, phase);
        }
        is_taken
    }

    /// Encodes what is no message of its own.
    pub(super) fn follow(&mut self, id: ConnectionId, what: D::Send<'_>) -> bool {
        let Some(connection) = self.connection_mut(id) else { return false };
        let State::Open(driver) = &mut connection.state else { return false };
        if driver.send(what).is_err() {
            return false;
        }
        if !std::mem::replace(&mut connection.dirty, true) {
            self.dirty.push(id);
        }
        true
    }

    /// Remembers an encoded message until the kernel has taken it.
    pub(super) fn enter_unsent(&mut self, id: ConnectionId, op: usize, planned_ns: u64, owes: Owes) {
        self.enter_unsent_with(id, op, planned_ns, owes, false);
    }

    pub(super) fn enter_unsent_with(
        &mut self,
        id: ConnectionId,
        op: usize,
        planned_ns: u64,
        owes: Owes,
        lag_is_booked: bool,
    ) {
        let phase = self.shared.timeline.phase(planned_ns);
        let Some(connection) = self.connection_mut(id) else { return };
        let waiting = match &connection.state {
            State::Open(driver) => driver.unsent_bytes() as u64,
            _ => 0,
        };
        let end = connection.written + waiting;
        connection.unsent.push(Unsent { planned_ns, end, owes, op: op as u16, phase, lag_is_booked });
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(id);
        }
    }

    /// Hands what is encoded to the kernel, once per line and turn.
    pub(crate) fn flush_dirty(&mut self, clock: &impl Clock) {
        let mut cx = Context::from_waker(Waker::noop());
        while let Some(id) = self.dirty.pop() {
            self.now_ns = clock.now_ns();
            self.flush(id, &mut cx, true);
        }
    }

    /// `wakes`: a line that the kernel does not take wakes its own task, which registers for the room to come.
    ///
    /// A message has departed when its last byte was taken, also where others behind it still wait.
    pub(crate) fn flush(&mut self, id: ConnectionId, cx: &mut Context<'_>, wakes: bool) {
        let departed_ns = self.now_ns;
        if self.connection_mut(id).is_none() {
            return;
        }
        let connection = &mut self.connections[id.index as usize];
        let (State::Open(driver) | State::Closing(driver)) = &mut connection.state else { return };
        connection.dirty = false;
        for message in connection.unsent[connection.tried..].iter().filter(|message| !message.lag_is_booked) {
            let lag_ns = departed_ns.saturating_sub(message.planned_ns);
            self.interval.record(Measure::SendLag, message.phase, lag_ns);
        }
        let bytes = driver.unsent_bytes();
        let outcome = driver.poll_flush(cx);
        let written = (bytes - driver.unsent_bytes()) as u64;
        connection.written += written;
        self.interval.bytes_sent += written;
        let gone = match outcome {
            Poll::Ready(Ok(())) => connection.unsent.len(),
            _ => connection.unsent.iter().take_while(|message| message.end <= connection.written).count(),
        };
        connection.tried = connection.unsent.len() - gone;
        match outcome {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => self.ended.push((id, Closed::Failed(error))),
            Poll::Pending => {
                if wakes && let Some(waker) = &connection.waker {
                    waker.wake_by_ref();
                }
            }
        }
        let mut unsent = std::mem::take(&mut connection.unsent);
        for message in unsent.drain(..gone) {
            self.book_sent(&message, departed_ns);
        }
        // The vector goes back, so that a line allocates once.
        self.connections[id.index as usize].unsent = unsent;
    }

    pub(super) fn book_sent(&mut self, message: &Unsent, departed_ns: u64) {
        let ask = match message.owes {
            Owes::Reply(ask) => Some(ask),
            Owes::Nothing => None,
            Owes::Deliveries { sender, seq } => {
                if let Some(ledger) = &mut self.ledger {
                    ledger.departed(sender, seq, departed_ns);
                }
                None
            }
        };
        self.book_departed(usize::from(message.op), message.phase, ask, departed_ns);
    }

    pub(super) fn book_departed(&mut self, op: usize, phase: Phase, ask: Option<u32>, departed_ns: u64) {
        let flow = self.interval.flow_mut(op, phase);
        flow.offered += 1;
        flow.sent += 1;
        match ask {
            None => flow.told += 1,
            Some(index) => {
                self.asks[index as usize].sent_ns = Some(departed_ns);
                self.open_asks[op][phase as usize] += 1;
            }
        }
    }

    /// The reply has come although the buffer that holds its question was not seen to be empty: what was encoded up
    /// to the question has left.
    pub(super) fn book_unsent_up_to(&mut self, ask: RequestId) {
        let connection = self.asks[ask.index as usize].connection;
        let Some(connection) = self.connection_mut(connection) else { return };
        let mut unsent = std::mem::take(&mut connection.unsent);
        let Some(at) = unsent.iter().position(|message| message.owes == Owes::Reply(ask.index)) else {
            return;
        };
        let id = self.asks[ask.index as usize].connection;
        let gone = at + 1;
        for message in unsent.drain(..gone) {
            self.book_sent(&message, self.now_ns);
        }
        if let Some(connection) = self.connection_mut(id) {
            connection.tried = connection.tried.saturating_sub(gone);
            connection.unsent = unsent;
        }
    }

    pub(super) fn book_not_sent(&mut self, op: usize, phase: Phase) {
        let flow = self.interval.flow_mut(op, phase);
        flow.offered += 1;
        flow.not_sent += 1;
    }

    pub(super) fn drop_unsent(&mut self, unsent: Vec<Unsent>) {
        for message in unsent {
            self.book_not_sent(usize::from(message.op), message.phase);
            if let Owes::Reply(ask) = message.owes {
                self.unlink(ask);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::io;
    use std::rc::Rc;

    use drivers::{Broken, ReadBuffer, Refused};
    use measure::{LedgerShape, MetricNames};

    use super::*;

    /// A connection whose kernel takes so many bytes and no more.
    struct Narrow {
        unsent: usize,
        room: Rc<Cell<usize>>,
    }

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

    #[test]
    fn a_message_departs_with_its_last_byte_and_its_lag_ends_with_the_first_try() {
        let names = MetricNames::new(&["say"], &[], &[], &OpenError::CAUSES);
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
        let address = Address { socket, host: "nowhere".to_owned(), path: "/".to_owned(), tls: None };
        let shared = Shared {
            timeline: Arc::default(),
            progress: Arc::default(),
            pairing_lock: PairingLock::default(),
            met: Arc::default(),
            realtime_zero_ns: 0,
        };
        let mut core =
            WorkerState::<Narrow>::new(Box::new(Interval::new(&names)), &plan, vec![address], shared);
        let shape = LedgerShape { senders: 1, locals: 1, first: 0, step: 1, patience_ns: 1, echoes: true };
        core.ledger = Some(Box::new(LedgerPart::new(shape)));
        let room = Rc::new(Cell::new(15));
        let connection = core.open(0, 0);
        core.connection_opened(connection, Narrow { unsent: 0, room: room.clone() });
        for _ in 0..3 {
            let mut ctx = BotContext { core: &mut core };
            let seq = ctx.ledger().next_seq(0).unwrap();
            assert!(ctx.broadcast(connection, 0, 1_000, (0, seq), 10));
        }
        let mut cx = Context::from_waker(Waker::noop());
        core.now_ns = 6_000;
        core.flush(connection, &mut cx, false);
        let sent = |core: &WorkerState<Narrow>| core.interval.flows[0][Phase::Ramp as usize].sent;
        assert_eq!(sent(&core), 1, "ten of fifteen bytes are a message, the other five are not");
        core.now_ns = 1_000_000_000;
        room.set(15);
        core.flush(connection, &mut cx, false);
        assert_eq!(sent(&core), 3);
        let lag = core.interval.distribution(Measure::SendLag, false);
        let max_ns = lag.max_ns().unwrap();
        assert_eq!(lag.count(), 3);
        assert!(max_ns.abs_diff(5_000) <= 5, "that the kernel was full is no lag of ours: {max_ns} ns");
        assert_eq!(core.interval.bytes_sent, 30);
    }
}
