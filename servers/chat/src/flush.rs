//! Output: one write per client and round, with everything new in its room.
//!
//! For most clients of a room that write is the same, so its slices are built once. A client is served individually if
//! it sent one of these lines itself, joined in between, or still has earlier ones pending.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::batch::Batch;
use super::clients::{Client, Key, Stage};
use super::memory::Change;
use super::shared::Shared;
use super::thread::{LINGER_NS, Late, Thread};
use super::totals::Totals;
use servers_shared::fault::ThreadFaults;
use servers_shared::thread::Core;
use servers_shared::{clock, stream};

/// Slices per write; the system takes up to 1024.
const SLICES_MAX: usize = 64;

/// Why a client cannot be served any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unserved {
    Broken,
    BacklogFull,
}

impl Thread {
    /// Writes what is new in every room, then the books to those who asked.
    pub(super) fn flush_rooms(&mut self) {
        self.slow_down();
        let (began_ns, used_ns) = (clock::now_ns(), clock::thread_cpu_ns());
        let mut due = std::mem::take(&mut self.due);
        self.thread_shared().fetch(&mut due);
        self.admit_the_fenced();
        // Lines read before the command come before the answer, even if their thread has not notified us yet.
        for key in &self.askers {
            if let Some(client) = self.core.clients.get_mut(*key)
                && client.stage == Stage::Talking
            {
                due.push(client.room);
            }
        }
        due.drain(..).for_each(|place| self.serve_room(place));
        if self.due.is_empty() {
            self.due = due;
        }
        for key in std::mem::take(&mut self.askers) {
            if let Some(client) = self.core.clients.get_mut(key)
                && client.stage == Stage::Talking
            {
                client.queue.ask_books();
                self.flush(key);
                self.bound_answers(key);
            }
        }
        self.totals.rounds += 1;
        self.pace.rest(began_ns, clock::now_ns(), clock::thread_cpu_ns() - used_ns);
    }

    /// Who asked for the books can be answered once the other nodes have what was said here before.
    fn admit_the_fenced(&mut self) {
        let Some(nodes) = self.shared.nodes.clone().filter(|_| !self.fenced.is_empty()) else { return };
        let (answered, doubt) = (nodes.answered(), nodes.doubt());
        while let Some((_, key)) = self.fenced.front().copied().filter(|(asked, _)| *asked <= answered) {
            self.fenced.pop_front();
            if let Some(doubt) = &doubt {
                self.tell(key, &format!("* {doubt}\n"));
            }
            self.askers.push(key);
        }
    }

    /// Tells who has entered a room that the other nodes know of it.
    fn admit_the_entering(&mut self, place: u32) {
        let Some(local) = self.rooms.get_mut(place).filter(|local| !local.entering.is_empty()) else {
            return;
        };
        if !local.room.is_confirmed() {
            return;
        }
        let joined = format!("* joined {}\n", local.room.name());
        for key in std::mem::take(&mut local.entering) {
            if self.core.clients.get_mut(key).is_some_and(|client| client.room == place)
                && self.is_talking(key)
            {
                self.tell(key, &joined);
                self.flush(key);
            }
        }
    }

    /// Gives the members of a room what is new there.
    fn serve_room(&mut self, place: u32) {
        self.admit_the_entering(place);
        let Thread { rooms, core: Core { clients, faults, .. }, totals, shared, me, .. } = self;
        let Some(local) = rooms.get_mut(place) else { return };
        local.is_due = false;
        local.room.fetch(*me, &mut local.pending);
        let pending = std::mem::take(&mut local.pending);
        let (Some(first), Some(last)) = (pending.first(), pending.last()) else { return };
        let first_line = first.first_line();
        let lines = last.end_line() - first_line;
        let slices_of_all: Vec<IoSlice<'_>> =
            pending.iter().map(|batch| IoSlice::new(batch.bytes())).collect();
        let bytes: usize = slices_of_all.iter().map(|slice| slice.len()).sum();
        let may_share = slices_of_all.len() <= SLICES_MAX
            && !faults.now.stops_answers
            && pending.iter().all(|batch| batch.missing() == 0);
        let (mut passed, mut unserved) = (0, Vec::new());
        for member in &local.members {
            let Some(client) = clients.at(*member) else { continue };
            let shares = client.queue.is_empty()
                && client.position <= first_line
                && client.own_end <= first_line
                && may_share
                && faults.spares(lines);
            let mut sent = 0;
            if shares {
                match stream::write_vectored(&client.fd, &slices_of_all) {
                    Ok(all) if all == bytes => {
                        client.queue.passed(lines);
                        passed += 1;
                        continue;
                    }
                    Ok(part) => sent = part,
                    Err(()) => {
                        unserved.push((client.key, Unserved::Broken));
                        continue;
                    }
                }
                totals.writes += 1;
                totals.bytes += sent as u64;
                client.is_blocked = true;
            }
            let served = book(totals, client, |totals, client| {
                if shares {
                    pending.iter().for_each(|batch| client.queue.owe(batch, 0, batch.line_count()));
                    client.position = first_line + lines;
                    client.queue.advance(sent);
                } else {
                    totals.dropped_link += owe(client, &pending, faults);
                    send(client, totals).map_err(|()| Unserved::Broken)?;
                }
                trim(client, shared)
            });
            if let Err(why) = served {
                unserved.push((client.key, why));
            }
        }
        totals.owed += passed * lines;
        totals.delivered += passed * lines;
        totals.writes += passed;
        totals.bytes += passed * bytes as u64;
        unserved.into_iter().for_each(|(key, why)| self.give_up(key, why));
    }

    fn give_up(&mut self, key: Key, why: Unserved) {
        if why == Unserved::BacklogFull {
            self.totals.cut.backlog_full += 1;
        }
        self.part(key);
    }

    /// Keeps what waits for clients within the memory for it (see `memory`). Once per turn.
    pub(super) fn keep_within_memory(&mut self) {
        let shared = self.shared.clone();
        let halvings = shared.memory.halvings();
        if std::mem::replace(&mut self.trimmed_for, halvings) != halvings {
            self.trim_all();
        }
        let thread_shared = self.thread_shared();
        thread_shared.backlog_bytes.store(self.totals.backlog_bytes as usize, Ordering::Relaxed);
        thread_shared.trimmed_for.store(self.trimmed_for, Ordering::Release);
        let all_have_trimmed = |halvings| {
            shared.threads_shared.iter().all(|other| other.trimmed_for.load(Ordering::Acquire) == halvings)
        };
        let change = shared.memory.look(shared.backlog_bytes(), all_have_trimmed, clock::now_ns());
        if change == Change::Halved {
            shared.threads_shared.iter().for_each(|other| other.wakeup.ring());
        }
    }

    /// Takes from every client what it holds beyond its share.
    fn trim_all(&mut self) {
        for key in self.core.clients.keys() {
            let Thread { core: Core { clients, .. }, totals, shared, .. } = self;
            let Some(client) = clients.get_mut(key) else { continue };
            let trimmed = book(totals, client, |_, client| {
                client.queue.let_go_of_what_is_read();
                trim(client, shared)
            });
            if let Err(why) = trimmed {
                self.give_up(key, why);
            }
        }
    }

    /// Queues for a client that is about to leave its room what was sent there until now.
    pub(super) fn settle(&mut self, key: Key) {
        let Thread { rooms, core: Core { clients, faults, .. }, totals, due, me, .. } = self;
        let Some(client) = clients.get_mut(key) else { return };
        let Some(local) = rooms.get_mut(client.room) else { return };
        local.room.fetch(*me, &mut local.pending);
        book(totals, client, |totals, client| {
            totals.dropped_link += owe(client, &local.pending, faults);
        });
        if !local.pending.is_empty() && !local.is_due {
            local.is_due = true;
            due.push(client.room);
        }
    }

    /// The system takes more now.
    pub(super) fn unblock(&mut self, key: Key) {
        if self.core.faults.now.stops_answers {
            return;
        }
        let Some(client) = self.core.clients.get_mut(key) else { return };
        client.is_blocked = false;
        if !client.queue.is_empty() {
            self.flush(key);
        }
    }

    /// Sends what is queued as far as it goes.
    pub(super) fn flush(&mut self, key: Key) {
        let Thread { core: Core { clients, deadlines, .. }, totals, shared, .. } = self;
        let Some(client) = clients.get_mut(key) else { return };
        let flushed = book(totals, client, |totals, client| {
            send(client, totals).map_err(|()| Unserved::Broken)?;
            trim(client, shared)
        });
        if client.stage == Stage::Leaving && client.queue.is_empty() {
            client.stage = Stage::Finished;
            stream::finish_writing(&client.fd);
            deadlines.expect(Late::Finished, key, clock::now_ns() + LINGER_NS);
            if client.input_ended {
                return self.part(key);
            }
        }
        if let Err(why) = flushed {
            self.give_up(key, why);
        }
    }
}

/// Drops what is too much for one client.
fn trim(client: &mut Client, shared: &Shared) -> Result<u64, Unserved> {
    let options = &shared.options;
    let trimmed = client.queue.trim(options.backlog as u64, shared.memory.share(), options.on_full);
    trimmed.ok_or(Unserved::BacklogFull)
}

/// Does something to a client's queue and brings the totals in line with its books.
fn book<T>(
    totals: &mut Totals,
    client: &mut Client,
    change: impl FnOnce(&mut Totals, &mut Client) -> T,
) -> T {
    let (before, waiting) = (client.queue.account(), client.queue.waiting());
    let result = change(totals, client);
    let after = client.queue.account();
    totals.owed += after.owed - before.owed;
    totals.delivered += after.delivered - before.delivered;
    totals.dropped += after.dropped - before.dropped;
    totals.waiting = totals.waiting + client.queue.waiting() - waiting;
    let own_bytes = client.queue.own_bytes() as u64;
    totals.backlog_bytes = totals.backlog_bytes + own_bytes - client.counted_bytes;
    client.counted_bytes = own_bytes;
    result
}

/// Queues what a client is owed of these, which is all that is neither before its time nor its own. Returns how many more
/// were owed and did not come from another node.
fn owe(client: &mut Client, batches: &[Arc<Batch>], faults: &mut ThreadFaults) -> u64 {
    let mut missing = 0;
    for batch in batches {
        if batch.end_line() <= client.position {
            continue;
        }
        if batch.missing() > 0 {
            missing += batch.missing();
            client.queue.miss(batch.missing());
            continue;
        }
        let from = client.position.saturating_sub(batch.first_line()) as u32;
        let to = batch.line_count();
        if client.own_end <= batch.first_line() && faults.spares(u64::from(to - from)) {
            queue_lines(client, batch, from, to);
            continue;
        }
        let mut run = from;
        for i in from..to {
            // Without lines of its own since it joined, the same number may be that of an earlier client.
            let own = client.own_end > batch.first_line() && batch.sender(i) == client.id;
            let (lost, twice) =
                if own { (false, false) } else { (faults.lost.selects_next(), faults.twice.selects_next()) };
            if own || lost {
                queue_lines(client, batch, run, i);
                run = i + 1;
            }
            if lost {
                client.queue.lose_one();
            } else if twice {
                client.queue.owe(batch, run, i + 1);
                client.queue.repeat(batch.bytes_of(i, i + 1));
                run = i + 1;
            }
        }
        queue_lines(client, batch, run, to);
    }
    if let Some(last) = batches.last() {
        client.position = client.position.max(last.end_line());
    }
    missing
}

/// Queues the lines `from..to`. For a client that does not read, a few lines of a large batch are copied: they would
/// keep all of it.
fn queue_lines(client: &mut Client, batch: &Arc<Batch>, from: u32, to: u32) {
    if client.is_blocked && batch.is_thin(from, to) {
        client.queue.owe(&Arc::new(batch.part(from, to)), 0, to - from);
    } else {
        client.queue.owe(batch, from, to);
    }
}

/// Writes from the queue until that is empty or the system takes no more.
fn send(client: &mut Client, totals: &mut Totals) -> Result<(), ()> {
    while !client.is_blocked && !client.queue.is_empty() {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = client.queue.gather(&mut slices);
        let wanted: usize = slices[..count].iter().map(|slice| slice.len()).sum();
        let sent = stream::write_vectored(&client.fd, &slices[..count])?;
        totals.writes += 1;
        totals.bytes += sent as u64;
        client.queue.advance(sent);
        client.is_blocked = sent < wanted;
    }
    Ok(())
}
