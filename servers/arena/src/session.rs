//! How a client's input is handled, and how a connection ends.

use super::inbox::SocketKey;
use super::message::{self, Meaning};
use super::sockets::{Sending, Stage};
use super::thread::{Late, Thread};
use servers_shared::clock;
use servers_shared::stream::Read;
use servers_shared::websocket::{Heard, Opcode, close_code, frame};

/// How a read ends a connection.
enum End {
    /// The client closed, with its code.
    Closed(Option<u16>),
    /// The client must be failed, with ours.
    Failed(u16),
}

impl Thread {
    /// Reads what is there, as much as a turn may take of one client. After `ended` a short read is not the last: the end of
    /// the stream follows.
    pub(super) fn read_socket(&mut self, key: SocketKey, ended: bool) {
        let Some(socket) = self.core.clients.get_mut(key) else { return };
        let mut buffer = std::mem::take(&mut self.core.buffer);
        match socket.read(&mut buffer) {
            Read::Empty => {}
            Read::Ended => self.part(key),
            Read::Bytes(count) => {
                self.take_in(key, &mut buffer[..count]);
                if count == buffer.len() || ended {
                    self.core.read_on_later(key);
                }
            }
        }
        self.core.buffer = buffer;
    }

    fn take_in(&mut self, key: SocketKey, bytes: &mut [u8]) {
        match self.stage(key) {
            Some(Stage::Opening(_)) => {
                if let Some(mut rest) = self.open(key, bytes)
                    && !rest.is_empty()
                {
                    self.converse(key, &mut rest);
                }
            }
            None | Some(Stage::Closing) => {}
            Some(_) => self.converse(key, bytes),
        }
    }

    fn converse(&mut self, key: SocketKey, bytes: &mut [u8]) {
        let Some(socket) = self.core.clients.get_mut(key) else { return };
        let (stage, trigger) = (&socket.stage, &mut socket.trigger);
        let counts = &mut self.tally.counts;
        let lost = &mut self.core.faults.lost;
        let fire_interval_ns = self.shared.fire_interval_ns;
        self.scratch.clear();
        let replies = &mut self.scratch;
        let mut end = None;
        let result = socket.receiver.feed(bytes, message::MESSAGE_BYTES_MAX, |heard| match heard {
            Heard::Text(text) | Heard::Binary(text) => match message::meaning(text) {
                Meaning::Unknown => true,
                Meaning::NotJson => {
                    end = Some(End::Failed(close_code::BAD_PAYLOAD));
                    false
                }
                Meaning::Fire => {
                    if let Stage::Playing(shots, player) = stage {
                        // Stamped on receipt, so that a late tick does not make a shot early.
                        let now_ns = clock::now_ns();
                        counts.shots += 1;
                        if !trigger.pull(now_ns, fire_interval_ns) {
                            counts.shots_early += 1;
                        } else if lost.selects_next() || shots.hand_in(*player, now_ns) {
                            counts.shots_accepted += 1;
                        } else {
                            counts.shots_lost += 1;
                        }
                    }
                    true
                }
            },
            Heard::Ping(payload) => {
                frame::put(replies, Opcode::Pong, payload);
                true
            }
            Heard::Pong => true,
            Heard::Close(code) => {
                end = Some(End::Closed(code));
                false
            }
        });
        if let Err(violation) = result {
            end = Some(End::Failed(violation.close_code()));
        }
        if let Some(End::Closed(code)) = end {
            match code {
                Some(code) => frame::put_close(replies, code),
                None => frame::put(replies, Opcode::Close, &[]),
            }
        }
        if !self.scratch.is_empty() && self.core.send(key, &self.scratch).is_err() {
            return self.part(key);
        }
        match end {
            None => {}
            Some(End::Closed(_)) => self.part(key),
            Some(End::Failed(code)) => self.close(key, code),
        }
    }

    /// Sends a close frame and gives the client some time to close, too.
    pub(super) fn close(&mut self, key: SocketKey, code: u16) {
        self.leave_stage(key);
        self.scratch.clear();
        frame::put_close(&mut self.scratch, code);
        if self.core.send(key, &self.scratch).is_err() {
            return self.part(key);
        }
        if let Some(socket) = self.core.clients.get_mut(key) {
            socket.finish();
        }
        self.expect_the_end(key);
    }

    /// The client has to close within the close timeout from now.
    pub(super) fn expect_the_end(&mut self, key: SocketKey) {
        let by_ns = clock::now_ns() + self.shared.options.close_timeout.as_nanos() as u64;
        self.core.deadlines.expect(Late::Ending, key, by_ns);
    }

    /// The client had its time to close.
    pub(super) fn part_from_the_late(&mut self, key: SocketKey) {
        if matches!(self.stage(key), Some(Stage::Ended)) {
            self.scratch.clear();
            frame::put_close(&mut self.scratch, close_code::NORMAL);
            // The connection is closed in any case.
            let _ = self.core.send(key, &self.scratch);
        }
        self.part(key);
    }

    /// Drops a connection, whatever its state.
    pub(super) fn part(&mut self, key: SocketKey) {
        self.leave_stage(key);
        self.core.clients.remove(key);
    }

    /// Leaves the lobby or the game; the game's next tick informs the opponent.
    pub(super) fn leave_stage(&mut self, key: SocketKey) {
        let Some(socket) = self.core.clients.get_mut(key) else { return };
        match std::mem::replace(&mut socket.stage, Stage::Ended) {
            Stage::Waiting => {
                self.waiting_count -= 1;
                self.forget(key);
            }
            Stage::Playing(shots, player) => {
                self.playing_count -= 1;
                shots.leave(player);
            }
            Stage::Opening(_) | Stage::Ended | Stage::Closing => {}
        }
    }
}
