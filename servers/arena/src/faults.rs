//! Injected faults that a thread of the arena applies by itself: reset connections, late snapshots, slow turns, late
//! ticks reported as on time.
//!
//! Lost shots, duplicate starts and false winners are chosen where they happen (`session`, `greeting`, `playing`). A
//! server without faults spends one comparison per turn here.

use super::inbox::ThreadMessage;
use super::thread::Thread;
use servers_shared::ticks::schedule::Tick;
use servers_shared::{clock, sleeper};

impl Thread {
    /// Once per turn.
    pub(super) fn carry_out_faults(&mut self) {
        if !self.core.faults.look() {
            return;
        }
        if self.core.faults.takes_drop() {
            self.reset_all();
        }
        let slow_ns = self.core.faults.now.slow_ns;
        if slow_ns > 0 && self.core.clients.count() > 0 {
            sleeper::sleep_until(clock::now_ns() + slow_ns);
        }
        let now_ns = clock::now_ns();
        while self.held_back.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            let Some((_, message)) = self.held_back.pop_front() else { break };
            self.read_letter(message);
        }
    }

    fn reset_all(&mut self) {
        for key in self.core.clients.keys() {
            if let Some(socket) = self.core.clients.get_mut(key) {
                socket.reset_on_close();
            }
            self.part(key);
        }
    }

    /// The message is read later, after those that came before it.
    pub(super) fn hold_back(&mut self, message: ThreadMessage) {
        self.held_back.push_back((clock::now_ns() + self.core.faults.now.late_ns, message));
    }

    /// Counts a tick, and those missed before it; all of them as on time when the tick log is to lie.
    pub(super) fn record(&mut self, tick: &Tick, busy_ns: u64) {
        let tick_rate_hz = self.shared.options.tick_rate;
        if self.core.faults.now.lies {
            let period_ns = 1_000_000_000 / u64::from(tick_rate_hz);
            self.tally.ticks.enter_as_on_time(tick, period_ns, busy_ns, tick_rate_hz);
        } else {
            self.tally.ticks.enter(tick, busy_ns, tick_rate_hz);
        }
    }
}
