//! What waits for one client, and the books about it.
//!
//! Lines are not copied: a queue refers to the shared batches, so that a stalled client costs a reference per
//! window. A referred-to batch lives as long as one of its lines waits somewhere; as lines wait in the order in
//! which they were said, a queue keeps at most two batches of which it does not need every line.
//! Invariant: every line that is owed is delivered (the system has all of it), dropped, or waiting, and only one
//! of these. A line of which the system has a part is never dropped, for the client could not tell.
//! Answers stand between the lines where they belong, and their figures are those of that place. Pure.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use super::batch::Batch;
use super::options::OnFull;

/// One client's books: what was owed to it, and what became of that. `owed` = `delivered` + `dropped` + waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) owed: u64,
    /// Handed to the system, whole.
    pub(super) delivered: u64,
    pub(super) dropped: u64,
}

#[derive(Debug)]
enum Piece {
    /// The lines `from..to` of a batch; never empty.
    Lines {
        batch: Arc<Batch>,
        from: u32,
        to: u32,
    },
    Text(Box<[u8]>),
    /// Here so many lines are missing. Worded when its turn comes, because until then more may go.
    Missed(u64),
    Books,
    Bye,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pieces: VecDeque<Piece>,
    /// Bytes of the first line, or of the first text, that the system has already.
    begun: usize,
    waiting: u64,
    /// Bytes of texts, and a guess at those of answers that are not worded yet.
    text_bytes: usize,
    account: Account,
}

/// What a worded answer takes at most.
const ANSWER_BYTES: usize = 128;

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Lines that are owed and neither delivered nor dropped.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(super) fn account(&self) -> Account {
        self.account
    }

    /// What notices and answers take that the client has not read.
    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// So many lines went to the system at once, past an empty queue.
    pub(super) fn passed(&mut self, lines: u64) {
        debug_assert!(self.is_empty());
        self.account.owed += lines;
        self.account.delivered += lines;
    }

    /// One line counts as delivered and never will be: the fault that instruments are tested with.
    pub(super) fn lose_one(&mut self) {
        self.account.owed += 1;
        self.account.delivered += 1;
    }

    /// A line goes out once more, and the books know nothing of it: another such fault.
    pub(super) fn repeat(&mut self, line: &[u8]) {
        self.tell(line);
    }

    /// The lines `from..to` are owed, and wait.
    pub(super) fn owe(&mut self, batch: &Arc<Batch>, from: u32, to: u32) {
        if from < to {
            self.account.owed += u64::from(to - from);
            self.waiting += u64::from(to - from);
            self.pieces.push_back(Piece::Lines { batch: batch.clone(), from, to });
        }
    }

    /// Words for this client alone, with their line end.
    pub(super) fn tell(&mut self, text: &[u8]) {
        self.text_bytes += text.len();
        self.pieces.push_back(Piece::Text(text.into()));
    }

    /// The books as they are when everything before them is out.
    pub(super) fn ask_books(&mut self) {
        self.text_bytes += ANSWER_BYTES;
        self.pieces.push_back(Piece::Books);
    }

    pub(super) fn say_bye(&mut self) {
        self.text_bytes += ANSWER_BYTES;
        self.pieces.push_back(Piece::Bye);
    }

    /// Lays out what goes out next; returns how many slices that are.
    pub(super) fn gather<'q>(&'q mut self, out: &mut [IoSlice<'q>]) -> usize {
        self.word_the_first();
        let mut count = 0;
        for (piece, slice) in self.pieces.iter().zip(out) {
            let mut bytes = match piece {
                Piece::Lines { batch, from, to } => batch.bytes_of(*from, *to),
                Piece::Text(text) => text,
                // Its figures are right once everything before it is out.
                Piece::Missed(_) | Piece::Books | Piece::Bye => break,
            };
            if count == 0 {
                bytes = &bytes[self.begun..];
            }
            *slice = IoSlice::new(bytes);
            count += 1;
        }
        count
    }

    /// Puts the first piece into words if it has none.
    fn word_the_first(&mut self) {
        let Account { owed, delivered, dropped } = self.account;
        let books = format!("owed {owed} delivered {delivered} dropped {dropped} waiting {}\n", self.waiting);
        let text = match self.pieces.front() {
            Some(Piece::Missed(1)) => "* missed 1 line\n".to_owned(),
            Some(Piece::Missed(lines)) => format!("* missed {lines} lines\n"),
            Some(Piece::Books) => format!("* books {books}"),
            Some(Piece::Bye) => format!("* bye {books}"),
            _ => return,
        };
        if !matches!(self.pieces[0], Piece::Missed(_)) {
            self.text_bytes -= ANSWER_BYTES;
        }
        self.text_bytes += text.len();
        self.pieces[0] = Piece::Text(text.into_bytes().into());
    }

    /// The system has taken so many more bytes of what was gathered.
    pub(super) fn advance(&mut self, mut bytes: usize) {
        while let Some(first) = self.pieces.front_mut() {
            match first {
                Piece::Lines { batch, from, to } => {
                    let rest = batch.bytes_of(*from, *to).len() - self.begun;
                    let (complete, begun) = match bytes {
                        bytes if bytes >= rest => (*to - *from, 0),
                        bytes => batch.lines_within(*from, self.begun + bytes),
                    };
                    self.account.delivered += u64::from(complete);
                    self.waiting -= u64::from(complete);
                    self.begun = begun;
                    *from += complete;
                    if from < to {
                        return;
                    }
                    bytes -= rest;
                }
                Piece::Text(text) => {
                    let rest = text.len() - self.begun;
                    if bytes < rest {
                        self.begun += bytes;
                        return;
                    }
                    self.text_bytes -= text.len();
                    self.begun = 0;
                    bytes -= rest;
                }
                Piece::Missed(_) | Piece::Books | Piece::Bye => return,
            }
            self.pieces.pop_front();
        }
    }

    /// Drops what is more than `cap` lines (1 or more); returns how many that were. None when the client is to
    /// be disconnected instead.
    pub(super) fn trim(&mut self, cap: u64, on_full: OnFull) -> Option<u64> {
        let excess = self.waiting.saturating_sub(cap);
        if excess > 0 {
            match on_full {
                OnFull::DropOldest => self.drop_oldest(excess),
                OnFull::DropNewest => self.drop_newest(excess),
                OnFull::Disconnect => return None,
            }
            self.waiting -= excess;
            self.account.dropped += excess;
        }
        debug_assert_eq!(self.waiting, self.counted());
        Some(excess)
    }

    fn drop_oldest(&mut self, lines: u64) {
        let mut at = 0;
        if self.begun > 0 {
            // The line of which the client has a part stays, in a piece of its own.
            if let Some(Piece::Lines { batch, from, to }) = self.pieces.front_mut()
                && *to - *from > 1
            {
                let whole = Piece::Lines { batch: batch.clone(), from: *from + 1, to: *to };
                *to = *from + 1;
                self.pieces.insert(1, whole);
            }
            at = 1;
        }
        let mut left = lines;
        let mut gap = None;
        while left > 0 {
            match self.pieces.get_mut(at) {
                Some(Piece::Lines { from, to, .. }) => {
                    let taken = left.min(u64::from(*to - *from));
                    *from += taken as u32;
                    left -= taken;
                    let empty = from == to;
                    gap.get_or_insert(at);
                    if empty {
                        self.pieces.remove(at);
                    }
                }
                Some(_) => at += 1,
                None => break,
            }
        }
        if let Some(gap) = gap {
            self.note_gap(gap, lines);
        }
    }

    fn drop_newest(&mut self, lines: u64) {
        let mut left = lines;
        let mut at = self.pieces.len();
        let mut gap = at;
        while left > 0 && at > 0 {
            at -= 1;
            if let Piece::Lines { from, to, .. } = &mut self.pieces[at] {
                let taken = left.min(u64::from(*to - *from));
                *to -= taken as u32;
                left -= taken;
                gap = at + 1;
                if from == to {
                    self.pieces.remove(at);
                    gap = at;
                }
            }
        }
        self.note_gap(gap, lines);
    }

    /// Lines are missing before the piece `at`: one gap with those beside it.
    fn note_gap(&mut self, at: usize, lines: u64) {
        // What has begun to go out is worded, hence no gap any more.
        for beside in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            if let Some(Piece::Missed(missed)) = self.pieces.get_mut(beside) {
                *missed += lines;
                return;
            }
        }
        self.pieces.insert(at, Piece::Missed(lines));
    }

    /// Lines in the pieces, one by one: what `waiting` must be.
    fn counted(&self) -> u64 {
        let lines = self.pieces.iter().map(|piece| match piece {
            Piece::Lines { from, to, .. } => u64::from(to - from),
            _ => 0,
        });
        lines.sum()
    }
}
