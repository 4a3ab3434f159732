//! Injected faults that a thread of the chat applies by itself: reset connections, late or missing answers, slow
//! rounds, altered texts.
//!
//! Lost and duplicate deliveries are chosen where lines go out (`flush`). A server without faults spends one comparison
//! per turn here.

use std::collections::VecDeque;

use super::clients::Key;
use super::thread::Thread;
use servers_shared::{clock, sleeper, stream};

/// What clients sent and is heard later, with when; in the order of that.
///
/// Held back is what comes in and not what goes out, so that lines, answers and books stay in their order: a client
/// cannot tell the difference.
#[derive(Default)]
pub(super) struct HeldBack(VecDeque<(u64, Key, Input)>);

enum Input {
    Bytes(Box<[u8]>),
    End,
}

impl Thread {
    /// Once per turn.
    pub(super) fn carry_out_faults(&mut self) {
        if !self.look_at_faults() {
            return;
        }
        if self.core.faults.takes_drop() {
            self.reset_all();
        }
        self.hear_what_was_held_back();
    }

    /// Once per turn and after each accepted connection, as the first one begins the faults' time. False when none are
    /// planted.
    pub(super) fn look_at_faults(&mut self) -> bool {
        let answered = !self.core.faults.now.stops_answers;
        let planted = self.core.faults.look();
        if answered && self.core.faults.now.stops_answers {
            self.core.clients.keys().into_iter().for_each(|key| self.mute(key));
        }
        planted
    }

    /// From now on nothing is sent to this client, as if it took nothing.
    pub(super) fn mute(&mut self, key: Key) {
        if let Some(client) = self.core.clients.get_mut(key) {
            client.is_blocked = true;
        }
    }

    fn reset_all(&mut self) {
        for key in self.core.clients.keys() {
            if let Some(client) = self.core.clients.get_mut(key) {
                stream::reset_on_close(&client.fd);
            }
            self.part(key);
        }
    }

    /// Before a round.
    pub(super) fn slow_down(&self) {
        if self.core.faults.now.slow_ns > 0 {
            sleeper::sleep_until(clock::now_ns() + self.core.faults.now.slow_ns);
        }
    }

    pub(super) fn holds_back(&self) -> bool {
        self.core.faults.now.late_ns > 0
    }

    /// The first `count` bytes of the buffer are processed later.
    pub(super) fn hold_back_bytes(&mut self, key: Key, count: usize) {
        let bytes = self.core.buffer[..count].into();
        self.hold_back(key, Input::Bytes(bytes));
    }

    /// The end of the client's input is processed later, after what it sent before.
    pub(super) fn hold_back_end(&mut self, key: Key) {
        self.hold_back(key, Input::End);
    }

    fn hold_back(&mut self, key: Key, input: Input) {
        self.held_back.0.push_back((clock::now_ns() + self.core.faults.now.late_ns, key, input));
    }

    fn hear_what_was_held_back(&mut self) {
        let now_ns = clock::now_ns();
        while self.held_back.0.front().is_some_and(|(at_ns, ..)| *at_ns <= now_ns) {
            let Some((_, key, input)) = self.held_back.0.pop_front() else { break };
            match input {
                Input::Bytes(bytes) if self.is_talking(key) => {
                    self.core.buffer[..bytes.len()].copy_from_slice(&bytes);
                    self.hear_bytes(key, bytes.len());
                }
                Input::Bytes(_) => {}
                Input::End => self.end_of_input(key),
            }
        }
    }
}

/// The text with another first character: still a line, but not what was sent.
pub(super) fn altered(text: &str) -> String {
    let mut rest = text.chars();
    let first = match rest.next() {
        Some('~') => '!',
        _ => '~',
    };
    std::iter::once(first).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_altered_text_differs_in_its_first_character_only() {
        for (text, expected) in [("hello", "~ello"), ("~x", "!x"), ("über", "~ber"), ("", "~")] {
            assert_eq!(altered(text), expected);
        }
    }
}
