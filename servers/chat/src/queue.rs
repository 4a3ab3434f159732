//! One client's queue, and its delivery accounts.
//!
//! Lines are not copied: a queue refers to the shared batches, so that a stalled client costs a reference per window. A
//! batch lives as long as one of its lines waits somewhere. Lines wait in the order in which they were sent, so a queue
//! keeps at most two batches of which it does not need every line, and a copy of the lines instead of a batch of which
//! it needs less than a quarter.
//! Invariant: every line owed is exactly one of delivered (the system has all of it), dropped, or waiting. A line of
//! which the system has a part is never dropped, for the client could not tell.
//! Answers are queued between the lines in order, and their figures are those of that point. Pure.

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
    /// Bytes of the lines that wait, those of a begun one included.
    line_bytes: usize,
    /// Bytes of texts, and a guess at those of answers that are not worded yet.
    text_bytes: usize,
    account: Account,
}

/// The memory that a queue needs for a piece, besides what the piece refers to.
pub(super) const PIECE_BYTES: usize = size_of::<Piece>();

/// An empty queue keeps room for so many pieces.
const PIECES_KEPT: usize = 32;

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

    /// What waits, in bytes, as if nothing were shared with others. Texts are bounded by themselves.
    pub(super) fn held_bytes(&self) -> usize {
        self.line_bytes + self.pieces.len() * PIECE_BYTES
    }

    /// The memory that the queue needs besides the batches that it refers to.
    pub(super) fn own_bytes(&self) -> usize {
        self.pieces.capacity() * PIECE_BYTES + self.text_bytes
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
            self.line_bytes += batch.bytes_of(from, to).len();
            self.pieces.push_back(Piece::Lines { batch: batch.clone(), from, to });
        }
    }

    /// So many lines were owed and did not come from another node.
    pub(super) fn miss(&mut self, lines: u64) {
        self.account.owed += lines;
        self.account.dropped += lines;
        self.note_gap(self.pieces.len(), lines);
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
                // Its figures are right once everything before it is sent.
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
                    self.line_bytes -= batch.bytes_of(*from, *from + complete).len();
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
        if self.pieces.is_empty() && self.pieces.capacity() > PIECES_KEPT {
            self.pieces = VecDeque::new();
        }
    }

    /// Drops what is more than `cap` lines (1 or more) or `share` bytes; returns how many lines that were. None when the
    /// client is to be disconnected instead.
    pub(super) fn trim(&mut self, cap: u64, share: usize, on_full: OnFull) -> Option<u64> {
        let excess = self.waiting.saturating_sub(cap).max(self.lines_beyond(share, on_full));
        if excess > 0 {
            match on_full {
                OnFull::DropOldest => self.drop_oldest(excess),
                OnFull::DropNewest => self.drop_newest(excess),
                OnFull::Disconnect => return None,
            }
            self.waiting -= excess;
            self.account.dropped += excess;
        }
        debug_assert_eq!((self.waiting, self.line_bytes), self.counted());
        Some(excess)
    }

    /// Keeps no large batch for the few lines that the first piece needs of it.
    pub(super) fn let_go_of_what_is_read(&mut self) {
        self.pieces.front_mut().into_iter().for_each(Piece::thin_out);
    }

    /// How many lines have to go, in the policy's order, so that the rest takes at most `share` bytes.
    fn lines_beyond(&self, share: usize, on_full: OnFull) -> u64 {
        let mut excess = self.held_bytes().saturating_sub(share);
        let mut lines = 0;
        let newest_first = on_full == OnFull::DropNewest;
        for i in 0..self.pieces.len() {
            if excess == 0 {
                break;
            }
            let at = if newest_first { self.pieces.len() - 1 - i } else { i };
            let Piece::Lines { batch, from, to } = &self.pieces[at] else { continue };
            // A line partly sent to the client stays.
            let from = *from + u32::from(at == 0 && self.begun > 0);
            let bytes = batch.bytes_of(from, *to).len();
            if bytes + PIECE_BYTES <= excess {
                lines += u64::from(to - from);
                excess -= bytes + PIECE_BYTES;
                continue;
            }
            lines += u64::from(if newest_first {
                to - from - batch.lines_within(from, bytes.saturating_sub(excess)).0
            } else {
                let (complete, begun) = batch.lines_within(from, excess.min(bytes));
                complete + u32::from(begun > 0)
            });
            break;
        }
        lines
    }

    fn drop_oldest(&mut self, lines: u64) {
        let mut at = 0;
        if self.begun > 0 {
            // The line partly sent to the client stays, as a separate piece.
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
                Some(piece @ Piece::Lines { .. }) => {
                    let Piece::Lines { batch, from, to } = piece else { break };
                    let taken = left.min(u64::from(*to - *from)) as u32;
                    self.line_bytes -= batch.bytes_of(*from, *from + taken).len();
                    *from += taken;
                    left -= u64::from(taken);
                    let empty = from == to;
                    gap.get_or_insert(at);
                    if empty {
                        self.pieces.remove(at);
                    } else {
                        piece.thin_out();
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
            if let Piece::Lines { batch, from, to } = &mut self.pieces[at] {
                let taken = left.min(u64::from(*to - *from)) as u32;
                self.line_bytes -= batch.bytes_of(*to - taken, *to).len();
                *to -= taken;
                left -= u64::from(taken);
                gap = at + 1;
                if from == to {
                    self.pieces.remove(at);
                    gap = at;
                } else {
                    self.pieces[at].thin_out();
                }
            }
        }
        self.note_gap(gap, lines);
    }

    /// Lines are missing before the piece `at`: merged with adjacent gaps.
    fn note_gap(&mut self, at: usize, lines: u64) {
        // Once it has begun to go out its text is fixed, so it is no longer a gap.
        for beside in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            if let Some(Piece::Missed(missed)) = self.pieces.get_mut(beside) {
                *missed += lines;
                return;
            }
        }
        self.pieces.insert(at, Piece::Missed(lines));
    }

    /// Lines in the pieces, one by one, and their bytes: what `waiting` and `line_bytes` must be.
    fn counted(&self) -> (u64, usize) {
        self.pieces.iter().fold((0, 0), |(lines, bytes), piece| match piece {
            Piece::Lines { batch, from, to } => {
                (lines + u64::from(to - from), bytes + batch.bytes_of(*from, *to).len())
            }
            _ => (lines, bytes),
        })
    }
}

impl Piece {
    /// Refers to a copy of its lines if these are few of a large batch, which would live for them alone.
    fn thin_out(&mut self) {
        if let Piece::Lines { batch, from, to } = self
            && batch.is_thin(*from, *to)
        {
            *self = Piece::Lines { batch: Arc::new(batch.part(*from, *to)), from: 0, to: *to - *from };
        }
    }
}
