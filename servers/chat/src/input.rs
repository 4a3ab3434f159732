//! Input: clients' lines go to their room, and their commands are answered.

use std::sync::{Arc, PoisonError};

use super::accept::Goodbye;
use super::clients::{Key, Stage};
use super::faults::altered;
use super::shared::Shared;
use super::thread::{Late, Thread};
use super::words::{self, Said};
use servers_shared::clock;
use servers_shared::stream::{self, Read};
use servers_shared::thread::Core;

/// Reads from one client per turn, so that none keeps the others from being read.
const READS_PER_TURN: usize = 4;

/// What a client may leave unread of notices and answers; then it is closed.
const TEXT_BYTES_MAX: usize = 16 * 1024;

const NOT_A_NAME: &str = "has 1 to 32 bytes of letters, digits, _, - and .";

impl Shared {
    /// False when it is taken. Names are case-insensitive, or people would be mistaken for others.
    fn take_name(&self, name: &str) -> bool {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_lowercase())
    }

    pub(super) fn free_name(&self, name: &str) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(&name.to_lowercase());
    }
}

impl Thread {
    /// Continues with clients that had more input, unless their room is behind.
    pub(super) fn read_the_unfinished(&mut self) {
        for key in std::mem::take(&mut self.unfinished) {
            if let Some(client) = self.core.clients.get_mut(key) {
                client.is_unfinished = false;
                // The end of the stream may have arrived meanwhile, and is not announced twice.
                self.read_client(key, true);
            }
        }
    }

    /// Hears what is there; up to the end of the stream when that is announced.
    pub(super) fn read_client(&mut self, key: Key, ended: bool) {
        for _ in 0..READS_PER_TURN {
            let Some(client) = self.core.clients.get_mut(key) else { return };
            if client.is_unfinished || client.input_ended && !ended {
                return;
            }
            let talks = client.stage == Stage::Talking;
            let room = client.room;
            if talks && self.rooms.get_mut(room).is_some_and(|local| local.room.is_heavy()) {
                break;
            }
            match stream::read(&client.fd, &mut self.core.buffer) {
                Read::Empty => return,
                Read::Ended if self.holds_back() => return self.hold_back_end(key),
                Read::Ended => return self.end_of_input(key),
                Read::Bytes(count) => {
                    if talks && self.holds_back() {
                        self.hold_back_bytes(key, count);
                    } else if talks {
                        self.hear_bytes(key, count);
                    }
                    // A short read was the last one, except for the end of the stream.
                    if count < self.core.buffer.len() && !ended {
                        return;
                    }
                }
            }
        }
        if let Some(client) = self.core.clients.get_mut(key) {
            client.is_unfinished = true;
            self.unfinished.push(key);
        }
    }

    pub(super) fn hear_bytes(&mut self, key: Key, count: usize) {
        let now_ns = clock::now_ns();
        let Some(client) = self.core.clients.get_mut(key) else { return };
        client.heard_ns = now_ns;
        let mut splitter = std::mem::take(&mut client.splitter);
        let mut buffer = std::mem::take(&mut self.core.buffer);
        let begun_before = splitter.holds_a_beginning();
        let mut ended_one = false;
        let line_bytes_max = self.shared.options.max_line;
        let fed = splitter.feed(&mut buffer[..count], line_bytes_max, |line| {
            ended_one = true;
            self.hear(key, line)
        });
        self.core.buffer = buffer;
        self.say(key);
        if fed.is_err() {
            self.totals.cut.line_too_long += 1;
            let notice = format!("* a line has at most {line_bytes_max} bytes; closing\n");
            return self.let_go(key, Goodbye::Notice(&notice));
        }
        let Some(client) = self.core.clients.get_mut(key).filter(|client| client.stage == Stage::Talking)
        else {
            return;
        };
        client.splitter = splitter;
        if client.splitter.holds_a_beginning() && (ended_one || !begun_before) {
            let by_ns = now_ns + self.shared.options.line_timeout.as_nanos() as u64;
            self.core.deadlines.renew(Late::Line, key, &mut client.line_due, by_ns);
        }
        if !client.queue.is_empty() {
            self.flush(key);
        }
    }

    /// One line; false when the rest is not processed.
    fn hear(&mut self, key: Key, line: &[u8]) -> bool {
        let said = words::read(line);
        if let Said::Text(text) = said {
            if let Some(client) = self.core.clients.get_mut(key) {
                if self.core.faults.wrong.selects_next() {
                    self.speech.add(client.name.as_deref(), &altered(text));
                } else {
                    self.speech.add(client.name.as_deref(), text);
                }
            }
            return true;
        }
        // Lines sent before the command come before the command's effect.
        self.say(key);
        match said {
            Said::Text(_) => {}
            Said::Join(room) => self.join(key, room),
            Said::Nick(name) => self.nick(key, name),
            Said::Who => {
                let Some(client) = self.core.clients.get_mut(key) else { return false };
                let is_alone = self.shared.nodes.as_ref().is_some_and(|nodes| !nodes.is_connected());
                let answer = self.rooms.get_mut(client.room).map(|local| local.room.who(is_alone));
                self.tell(key, &answer.unwrap_or_default());
            }
            Said::Books => match &self.shared.nodes {
                Some(nodes) => self.fenced.push_back((nodes.ask(), key)),
                None => self.askers.push(key),
            },
            Said::Quit => {
                self.let_go(key, Goodbye::Books);
                return false;
            }
            Said::Help => self.tell(key, words::HELP),
            Said::Unknown(verb) => {
                self.tell(
                    key,
                    &format!("* there is no /{}; /help lists what there is\n", words::shown(verb)),
                );
            }
            Said::NotText => self.tell(key, "* not said: a line is UTF-8 without NUL\n"),
        }
        self.is_talking(key)
    }

    /// Passes the lines read on to the speaker's room.
    fn say(&mut self, key: Key) {
        if self.speech.line_count() == 0 {
            return;
        }
        if let Some(client) = self.core.clients.get_mut(key)
            && let Some(local) = self.rooms.get_mut(client.room)
        {
            let end = local.room.say(&self.speech, client.id, &mut self.tells);
            if !self.shared.options.echo {
                client.own_end = end;
            }
            self.totals.broadcasts += self.speech.line_count();
            self.shared.tell(&mut self.tells);
        }
        self.speech.clear();
    }

    fn join(&mut self, key: Key, room: &str) {
        if !words::is_name(room) {
            return self.tell(key, &format!("* not joined: a room's name {NOT_A_NAME}\n"));
        }
        self.exit(key);
        self.enter(key, room);
        if let Some(client) = self.core.clients.get_mut(key)
            && let Some(local) = self.rooms.get_mut(client.room)
        {
            local.entering.push(key);
            // Confirmed between this and the end of the list: then the room is served once more.
            if local.room.is_confirmed() {
                local.entering.pop();
                self.tell(key, &format!("* joined {room}\n"));
            }
        }
    }

    fn nick(&mut self, key: Key, name: &str) {
        if !words::is_name(name) {
            return self.tell(key, &format!("* not renamed: a name {NOT_A_NAME}\n"));
        }
        let shared = self.shared.clone();
        let Some(client) = self.core.clients.get_mut(key) else { return };
        let keeps = client.name.as_ref().is_some_and(|old| old.to_lowercase() == name.to_lowercase());
        if !keeps && !shared.take_name(name) {
            return self.tell(key, &format!("* not renamed: somebody is {name} already\n"));
        }
        if !keeps && let Some(old) = &client.name {
            shared.free_name(old);
        }
        let named: Arc<str> = name.into();
        let old = client.name.replace(named.clone());
        if let Some(local) = self.rooms.get_mut(client.room) {
            local.room.rename(old.as_deref(), named);
        }
        self.tell(key, &format!("* you are {name}\n"));
    }

    /// Queues a notice for one client. It leaves with the next flush.
    pub(super) fn tell(&mut self, key: Key, text: &str) {
        let Some(client) = self.core.clients.get_mut(key) else { return };
        client.queue.tell(text.as_bytes());
        self.bound_answers(key);
    }

    /// Closes a client that asks and does not read the answers.
    pub(super) fn bound_answers(&mut self, key: Key) {
        let too_many = |thread: &mut Thread| {
            let client = thread.core.clients.get_mut(key);
            client.is_some_and(|client| client.queue.text_bytes() > TEXT_BYTES_MAX)
        };
        if too_many(self) {
            self.flush(key);
            if too_many(self) {
                self.totals.cut.answers_unread += 1;
                self.part(key);
            }
        }
    }

    /// The client sends nothing more. It may still want to hear, as one does whose input was a file.
    pub(super) fn end_of_input(&mut self, key: Key) {
        let Some(client) = self.core.clients.get_mut(key) else { return };
        if client.stage == Stage::Finished || stream::is_gone(&client.fd) {
            return self.part(key);
        }
        if !client.input_ended {
            client.input_ended = true;
            client.splitter = Default::default();
            if client.stage == Stage::Talking {
                let by_ns = clock::now_ns() + self.shared.options.half_closed.as_nanos() as u64;
                self.core.deadlines.expect(Late::HalfClosed, key, by_ns);
            }
        }
    }

    /// A line was begun a timeout ago, or one that has ended since.
    pub(super) fn look_at_the_begun_line(&mut self, key: Key, now_ns: u64) {
        let Core { clients, deadlines, .. } = &mut self.core;
        let Some(client) = clients.get_mut(key) else { return };
        if !client.splitter.holds_a_beginning() {
            client.line_due.by_ns = None;
        }
        if !deadlines.holds(Late::Line, key, &mut client.line_due, now_ns) {
            return;
        }
        self.totals.cut.line_too_slow += 1;
        self.let_go(key, Goodbye::Notice("* a line must end in time; closing\n"));
    }
}
