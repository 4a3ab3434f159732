//! Connections in the books: asked for, opened, ended; and how many stand at each moment.

use super::*;

impl<D: Driver> Core<D> {
    pub(super) fn open(&mut self, bot: u32, path: usize) -> LineId {
        self.interval.connections.asked += 1;
        let from = (!self.sources.is_empty()).then(|| {
            self.next_source = (self.next_source + 1) % self.sources.len();
            self.sources[self.next_source]
        });
        let address = path as u32;
        let id = self.new_line(bot, address);
        match D::knock(&self.addresses[path], from) {
            Ok(knock) => {
                self.opening.push(Opening { line: id, knock, address });
                self.pacer.push(self.now_ns + OPEN_DEADLINE_NS, Item::OpenDeadline(id));
            }
            Err(error) => self.ended.push((id, Closed::NotOpened(error))),
        }
        id
    }

    pub(super) fn new_line(&mut self, bot: u32, address: u32) -> LineId {
        let knocked_ns = self.now_ns;
        let index = self.free_lines.pop().unwrap_or_else(|| {
            self.lines.push(Line {
                generation: 0,
                bot,
                address,
                state: State::Free,
                waker: None,
                knocked_ns,
                unsent: Vec::new(),
                tried: 0,
                written: 0,
                first_ask: NO_ASK,
                dirty: false,
                reads_from_ns: 0,
                read_bytes_max: usize::MAX,
                read_gap_ns: 0,
            });
            self.lines.len() as u32 - 1
        });
        let line = &mut self.lines[index as usize];
        line.generation = line.generation.wrapping_add(1);
        (line.bot, line.address, line.knocked_ns) = (bot, address, knocked_ns);
        (line.tried, line.written) = (0, 0);
        (line.reads_from_ns, line.read_bytes_max, line.read_gap_ns) = (0, usize::MAX, 0);
        line.state = State::Opening;
        LineId { index, generation: line.generation }
    }

    /// The connection can be used. Returns its bot, `None` when nobody waits for it any longer.
    pub(crate) fn line_opened(&mut self, id: LineId, driver: D) -> Option<u32> {
        let now_ns = self.now_ns;
        let line = self.line_mut(id).filter(|line| matches!(line.state, State::Opening))?;
        let tls_ns = driver.tls_ns();
        line.state = State::Open(Box::new(driver));
        let (bot, knocked_ns) = (line.bot, line.knocked_ns);
        let phase = self.shared.timeline.phase(knocked_ns);
        self.interval.record(Measure::Handshake, phase, now_ns.saturating_sub(knocked_ns));
        if let Some(tls_ns) = tls_ns {
            self.interval.record(Measure::Tls, phase, tls_ns);
        }
        self.interval.connections.opened += 1;
        self.integrate_open(now_ns);
        self.open_count += 1;
        self.shared.progress.opened.fetch_add(1, Relaxed);
        self.shared.progress.open.store(self.open_count, Relaxed);
        Some(bot)
    }

    /// Takes a line out of the books for good. Returns its bot when the bot does not know yet.
    pub(crate) fn line_ended(&mut self, id: LineId, why: &Closed) -> Option<u32> {
        let drains = self.now_ns >= self.shared.timeline.drain_ns();
        let line = self.line_mut(id)?;
        let was = std::mem::replace(&mut line.state, State::Free);
        line.dirty = false;
        if let Some(waker) = line.waker.take() {
            waker.wake();
        }
        let bot = line.bot;
        line.tried = 0;
        let unsent = std::mem::take(&mut line.unsent);
        self.drop_unsent(unsent);
        self.lose_asks(id, drains);
        self.free_lines.push(id.index);
        match was {
            State::Opening => {
                if let Closed::NotOpened(error) = why {
                    self.interval.connections.failed[error.cause_index()] += 1;
                    self.shared.progress.failed.fetch_add(1, Relaxed);
                }
                Some(bot)
            }
            State::Open(_) | State::Lent => {
                self.count_closed();
                Some(bot)
            }
            State::Closing(_) | State::Free => None,
        }
    }

    pub(super) fn integrate_open(&mut self, until_ns: u64) {
        self.open_integral += self.open_count * until_ns.saturating_sub(self.open_since_ns);
        self.open_since_ns = self.open_since_ns.max(until_ns);
    }

    pub(super) fn count_closed(&mut self) {
        self.integrate_open(self.now_ns);
        self.open_count -= 1;
        let connections = &mut self.interval.connections;
        connections.closed += 1;
        connections.open_min = connections.open_min.min(self.open_count);
        self.shared.progress.open.store(self.open_count, Relaxed);
    }

    pub(crate) fn close(&mut self, id: LineId) {
        let drains = self.now_ns >= self.shared.timeline.drain_ns();
        let deadline_ns = self.now_ns + CLOSE_DEADLINE_NS;
        let Some(line) = self.line_mut(id) else { return };
        match std::mem::replace(&mut line.state, State::Free) {
            State::Open(mut driver) => {
                driver.close();
                line.state = State::Closing(driver);
                let was_dirty = std::mem::replace(&mut line.dirty, true);
                // What the kernel has not taken by now is booked as not sent, whatever becomes of it.
                line.tried = 0;
                let unsent = std::mem::take(&mut line.unsent);
                if !was_dirty {
                    self.dirty.push(id);
                }
                self.drop_unsent(unsent);
                self.lose_asks(id, drains);
                self.count_closed();
                self.pacer.push(deadline_ns, Item::CloseDeadline(id));
            }
            State::Opening => {
                // Nobody waits for it any longer: it is dropped, without a failure of the server's.
                let waker = line.waker.take();
                line.state = State::Free;
                line.tried = 0;
                let unsent = std::mem::take(&mut line.unsent);
                self.drop_unsent(unsent);
                self.lose_asks(id, drains);
                self.free_lines.push(id.index);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            other => line.state = other,
        }
    }

    pub(crate) fn shut_sending(&mut self, id: LineId) {
        let Some(line) = self.line_mut(id) else { return };
        let State::Open(driver) = &mut line.state else { return };
        driver.close();
        if !std::mem::replace(&mut line.dirty, true) {
            self.dirty.push(id);
        }
    }

    pub(crate) fn open_deadline_passed(&mut self, id: LineId) {
        if self.line_mut(id).is_some_and(|line| matches!(line.state, State::Opening)) {
            self.ended.push((id, Closed::NotOpened(OpenError::Timeout)));
        }
    }

    pub(crate) fn close_deadline_passed(&mut self, id: LineId) {
        if self.line_mut(id).is_some_and(|line| matches!(line.state, State::Closing(_))) {
            self.line_ended(id, &Closed::ByPeer(None));
        }
    }
}
