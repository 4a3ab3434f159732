//! Lines sent together: encoded once, shared by all recipients.

use memchr::memchr_iter;

use super::memory::{Counted, Counter};

/// Lines of one room, in the order in which they were said. Once frozen it never changes.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The room's count of lines before the first one here.
    first_line: u64,
    bytes: Vec<u8>,
    lines: Vec<Line>,
    /// Lines of another node that never came: where it is not 0 there are no others.
    missing: u64,
    /// What it takes, once it is frozen.
    counted: Counted,
}

/// Memory that a frozen batch keeps without need is given back when it is more than this, and more than a quarter.
const SLACK_BYTES: usize = 4096;

/// A batch no larger than this is referenced even for few of its lines.
const THIN_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Line {
    /// Where it ends in `bytes`; it begins where the one before ends.
    end: u32,
    sender: u32,
}

/// The sender of a line that came from another node.
pub(super) const ELSEWHERE: u32 = u32::MAX;

/// Lines in a row for which the same is true, or is not.
pub(super) struct Run {
    pub(super) is_so: bool,
    /// The first line after them.
    pub(super) end: u32,
}

/// The sender of a line: thread and slot there. The slot may later be another client's, which is then not owed the
/// line.
pub(super) fn sender_id(thread: usize, place: u32) -> u32 {
    (thread as u32) << 24 | place
}

impl Batch {
    pub(super) fn beginning_at(first_line: u64) -> Batch {
        Batch { first_line, ..Batch::default() }
    }

    /// In place of lines that never came, so many.
    pub(super) fn of_missing(first_line: u64, missing: u64) -> Batch {
        Batch { first_line, missing, ..Batch::default() }
    }

    /// How many lines never came in its place.
    pub(super) fn missing(&self) -> u64 {
        self.missing
    }

    /// It does not change from now on; what it takes is counted for as long as it lives.
    pub(super) fn freeze(&mut self, counter: &Counter) {
        let slack = self.bytes.capacity() - self.bytes.len();
        if slack > SLACK_BYTES.max(self.bytes.len() / 4) {
            self.bytes.shrink_to_fit();
            self.lines.shrink_to_fit();
        }
        self.counted = Counted::new(counter, self.size());
    }

    fn size(&self) -> usize {
        size_of::<Batch>() + self.bytes.capacity() + self.lines.capacity() * size_of::<Line>()
    }

    /// Whether who waits for the lines `from..to` alone keeps more than four times of what it waits for.
    pub(super) fn is_thin(&self, from: u32, to: u32) -> bool {
        self.bytes.len() > THIN_BYTES && from < to && 4 * self.bytes_of(from, to).len() < self.bytes.len()
    }

    /// A copy of the lines `from..to`, which are its lines from 0 on.
    pub(super) fn part(&self, from: u32, to: u32) -> Batch {
        let start = self.start(from) as u32;
        let lines = self.lines[from as usize..to as usize].iter();
        let mut part = Batch {
            first_line: self.first_line + u64::from(from),
            bytes: self.bytes_of(from, to).to_vec(),
            lines: lines.map(|line| Line { end: line.end - start, ..*line }).collect(),
            missing: 0,
            counted: Counted::default(),
        };
        part.counted = self.counted.another(part.size());
        part
    }

    pub(super) fn first_line(&self) -> u64 {
        self.first_line
    }

    /// The room's count of lines after the last one here.
    pub(super) fn end_line(&self) -> u64 {
        self.first_line + self.lines.len() as u64 + self.missing
    }

    pub(super) fn line_count(&self) -> u32 {
        self.lines.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn push(&mut self, speech: &Speech, sender: u32) {
        let offset = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&speech.bytes);
        self.lines.extend(speech.ends.iter().map(|end| Line { end: offset + end, sender }));
    }

    /// Who said the i-th line.
    pub(super) fn sender(&self, i: u32) -> u32 {
        self.lines[i as usize].sender
    }

    /// The lines from `from` on, of which there is at least one, for whose senders `is_so` says the same.
    pub(super) fn run_of(&self, from: u32, is_so: impl Fn(u32) -> bool) -> Run {
        let lines = &self.lines[from as usize..];
        let first = is_so(lines[0].sender);
        let length = lines.iter().position(|line| is_so(line.sender) != first).unwrap_or(lines.len());
        Run { is_so: first, end: from + length as u32 }
    }

    /// The bytes of the lines `from..to`, ends included.
    pub(super) fn bytes_of(&self, from: u32, to: u32) -> &[u8] {
        &self.bytes[self.start(from)..self.start(to)]
    }

    /// Where the i-th line begins; for the count of lines, where the last one ends.
    fn start(&self, i: u32) -> usize {
        if i == 0 { 0 } else { self.lines[i as usize - 1].end as usize }
    }

    /// How many lines from `from` on are complete in so many bytes, and how many bytes of the next one are in.
    pub(super) fn lines_within(&self, from: u32, bytes: usize) -> (u32, usize) {
        let start = self.start(from);
        let end = start + bytes;
        let complete = self.lines[from as usize..].partition_point(|line| line.end as usize <= end) as u32;
        (complete, end - self.start(from + complete))
    }
}

/// What one client says in one read, ready to be sent.
#[derive(Debug, Default)]
pub(super) struct Speech {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Speech {
    /// With a name, the line goes out as `NAME: text`; without, as it came.
    pub(super) fn add(&mut self, name: Option<&str>, text: &str) {
        if let Some(name) = name {
            self.bytes.extend_from_slice(name.as_bytes());
            self.bytes.extend_from_slice(b": ");
        }
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'\n');
        self.ends.push(self.bytes.len() as u32);
    }

    /// Lines of another node, each with its end.
    pub(super) fn of_lines(text: &str) -> Speech {
        let ends = memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1).collect();
        Speech { bytes: text.as_bytes().to_vec(), ends }
    }

    pub(super) fn line_count(&self) -> u64 {
        self.ends.len() as u64
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A batch of these lines, each said by the sender before it.
    pub(in super::super) fn batch(first_line: u64, lines: &[(u32, &str)]) -> Batch {
        let mut batch = Batch::beginning_at(first_line);
        for (sender, text) in lines {
            let mut speech = Speech::default();
            speech.add(None, text);
            batch.push(&speech, *sender);
        }
        batch
    }

    #[test]
    fn lines_and_senders_are_found_again() {
        let mut speech = Speech::default();
        speech.add(Some("ada"), "hello");
        speech.add(None, "");
        let mut both = batch(40, &[(7, "one"), (8, "three")]);
        both.push(&speech, 9);
        assert_eq!((both.first_line(), both.end_line(), both.line_count()), (40, 44, 4));
        assert_eq!(both.bytes(), b"one\nthree\nada: hello\n\n");
        assert_eq!(both.bytes_of(1, 3), b"three\nada: hello\n");
        assert_eq!((0..4).map(|i| both.sender(i)).collect::<Vec<_>>(), [7, 8, 9, 9]);
    }

    #[test]
    fn a_part_has_its_lines_alone_and_both_are_counted_while_they_live() {
        let counter = Counter::default();
        let count = || counter.load(std::sync::atomic::Ordering::Relaxed);
        let long = "x".repeat(5000);
        let mut all = batch(40, &[(7, "one"), (8, &long), (9, "three"), (9, "four")]);
        all.freeze(&counter);
        let whole = count();
        assert!(whole > 5000 && whole < 6000, "{whole}");
        assert!(all.is_thin(2, 4) && !all.is_thin(0, 2) && !all.is_thin(2, 2));
        let part = all.part(2, 4);
        assert_eq!((part.bytes(), part.first_line(), part.line_count()), (&b"three\nfour\n"[..], 42, 2));
        assert_eq!((part.bytes_of(1, 2), part.sender(1)), (&b"four\n"[..], 9));
        drop(all);
        assert!(count() > 0 && count() < 300, "{}", count());
        drop(part);
        assert_eq!(count(), 0);
    }

    #[test]
    fn a_byte_count_tells_the_complete_lines_and_the_begun_one() {
        let three = batch(0, &[(0, "ab"), (0, ""), (0, "cd")]);
        let check = |from, bytes, found| assert_eq!(three.lines_within(from, bytes), found, "{from} {bytes}");
        check(0, 0, (0, 0));
        check(0, 2, (0, 2));
        check(0, 3, (1, 0));
        check(0, 5, (2, 1));
        check(0, 7, (3, 0));
        check(1, 1, (1, 0));
        check(2, 2, (0, 2));
    }
}
