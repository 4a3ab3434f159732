//! Changes as bytes. All numbers are little-endian; a payload is records one behind the other.

use crate::leaderboard::{Direction, Options, Record, Score, TieRule};

/// One change, or one piece of a snapshot.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change<'a> {
    Create {
        board: u64,
        options: Options,
        name: &'a str,
    },
    DeleteBoard {
        board: u64,
    },
    /// The state of a member after an update.
    Put {
        board: u64,
        sequence: u64,
        record: Record,
    },
    DeleteMember {
        board: u64,
        sequence: u64,
        member: &'a str,
    },
    /// In a snapshot: its board has seen so many changes.
    Sequence {
        board: u64,
        sequence: u64,
    },
    /// In a snapshot: nothing is missing. The highest number that was given to a board.
    End {
        board: u64,
    },
}

pub(super) fn put_create(out: &mut Vec<u8>, board: u64, options: &Options, name: &str) {
    begin(out, 1, board);
    out.push(matches!(options.direction, Direction::Ascending).into());
    out.push(match options.ties {
        TieRule::Random => 0,
        TieRule::First => 1,
        TieRule::Last => 2,
    });
    put_text(out, name);
}

pub(super) fn put_delete_board(out: &mut Vec<u8>, board: u64) {
    begin(out, 2, board);
}

/// A member's state after the change with this number.
pub(super) fn put_member(
    out: &mut Vec<u8>,
    (board, sequence): (u64, u64),
    member: &str,
    score: &Score,
    tie: u64,
) {
    begin(out, 3, board);
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&tie.to_le_bytes());
    put_text(out, member);
    match score.as_i64() {
        Some(small) => {
            out.push(0);
            out.extend_from_slice(&small.to_le_bytes());
        }
        None => {
            out.push(1);
            put_text(out, &score.to_string());
        }
    }
}

pub(super) fn put_delete_member(out: &mut Vec<u8>, (board, sequence): (u64, u64), member: &str) {
    begin(out, 4, board);
    out.extend_from_slice(&sequence.to_le_bytes());
    put_text(out, member);
}

pub(super) fn put_sequence(out: &mut Vec<u8>, board: u64, sequence: u64) {
    begin(out, 5, board);
    out.extend_from_slice(&sequence.to_le_bytes());
}

pub(super) fn put_end(out: &mut Vec<u8>, board: u64) {
    begin(out, 6, board);
}

fn begin(out: &mut Vec<u8>, tag: u8, board: u64) {
    out.push(tag);
    out.extend_from_slice(&board.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The records of a payload. A payload whose checksum is right and that is not readable was written by another version.
pub(super) struct Changes<'a>(pub(super) &'a [u8]);

impl<'a> Changes<'a> {
    /// The next change; None at the end. Errors: bytes that are no record.
    pub(super) fn next(&mut self) -> Result<Option<Change<'a>>, ()> {
        let Some((tag, rest)) = self.0.split_first() else { return Ok(None) };
        self.0 = rest;
        self.read(*tag).map(Some).ok_or(())
    }

    fn read(&mut self, tag: u8) -> Option<Change<'a>> {
        let board = self.number()?;
        Some(match tag {
            1 => {
                let direction = if self.byte()? == 1 { Direction::Ascending } else { Direction::Descending };
                let ties = match self.byte()? {
                    0 => TieRule::Random,
                    1 => TieRule::First,
                    2 => TieRule::Last,
                    _ => return None,
                };
                Change::Create { board, options: Options { direction, ties, seed: None }, name: self.text()? }
            }
            2 => Change::DeleteBoard { board },
            3 => {
                let (sequence, tie, member) = (self.number()?, self.number()?, self.text()?.into());
                let score = match self.byte()? {
                    0 => Score::from(self.number()? as i64),
                    1 => Score::of_decimal(self.text()?)?,
                    _ => return None,
                };
                Change::Put { board, sequence, record: Record { member, score, tie, metadata: None } }
            }
            4 => Change::DeleteMember { board, sequence: self.number()?, member: self.text()? },
            5 => Change::Sequence { board, sequence: self.number()? },
            6 => Change::End { board },
            _ => return None,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<&'a str> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_read_back_as_it_was_and_no_part_of_one_is() {
        let mut out = Vec::new();
        let options = Options { direction: Direction::Ascending, ties: TieRule::Last, seed: None };
        let large = Score::of_decimal(&format!("-{}", "7".repeat(1_200))).unwrap();
        put_create(&mut out, 1, &options, "wörk");
        put_member(&mut out, (1, 2), "ann", &Score::from(-5_i64), 9);
        put_member(&mut out, (1, 3), "bob", &large, u64::MAX);
        put_delete_member(&mut out, (1, 4), "ann");
        put_sequence(&mut out, 1, 4);
        put_delete_board(&mut out, 1);
        put_end(&mut out, 8);
        let record = |member: &str, score, tie| Record { member: member.into(), score, tie, metadata: None };
        let mut changes = Changes(&out);
        for expected in [
            Change::Create { board: 1, options, name: "wörk" },
            Change::Put { board: 1, sequence: 2, record: record("ann", Score::from(-5_i64), 9) },
            Change::Put { board: 1, sequence: 3, record: record("bob", large, u64::MAX) },
            Change::DeleteMember { board: 1, sequence: 4, member: "ann" },
            Change::Sequence { board: 1, sequence: 4 },
            Change::DeleteBoard { board: 1 },
            Change::End { board: 8 },
        ] {
            assert_eq!(changes.next(), Ok(Some(expected)));
        }
        assert_eq!(changes.next(), Ok(None));
        assert_eq!(Changes(&out[..19]).next(), Err(()));
        assert_eq!(Changes(&[99, 0, 0, 0, 0, 0, 0, 0, 0]).next(), Err(()));
    }
}
