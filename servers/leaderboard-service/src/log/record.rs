//! Changes as bytes. All numbers are little-endian; a payload is a sequence of records.

use leaderboard::{
    BoardsError, BulkRefused, Direction, Options, Record, Refused, Schedule, Score, TieRule, check_member,
    check_metadata, check_name,
};

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
    /// The state of a member after an update; in a snapshot with its metadata, if it has any.
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
    /// A text was attached to a member, or taken off.
    Metadata {
        board: u64,
        sequence: u64,
        member: &'a str,
        text: Option<&'a str>,
    },
    /// A season has ended.
    EndSeason {
        board: u64,
        sequence: u64,
        ended_at_s: u64,
        season: &'a str,
    },
    /// The archive whose snapshot has this sequence number was deleted.
    DeleteSeason {
        board: u64,
        sequence: u64,
    },
    Schedule {
        board: u64,
        schedule: Option<Schedule>,
    },
    /// A signed change has used its nonce up.
    Nonce {
        expires_s: u64,
        key: &'a str,
        nonce: &'a [u8],
    },
    /// What a change with an idempotency key was answered.
    Answer(Answer<'a>),
    /// In a snapshot: the members up to `EndArchive` are an archived season's.
    Archive {
        board: u64,
        sequence: u64,
        ended_at_s: u64,
        season: &'a str,
    },
    /// In a snapshot.
    EndArchive {
        board: u64,
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

impl Change<'_> {
    /// Errors: a name or a text that the service does not take, and so has not written.
    pub(super) fn check(&self) -> Result<(), Unfit> {
        match self {
            Change::Create { name, .. } => check_name(name)?,
            Change::Put { record, .. } => {
                check_member(&record.member)?;
                check_metadata(record.metadata.as_deref())?;
            }
            Change::Metadata { member, text, .. } => {
                check_member(member)?;
                check_metadata(*text)?;
            }
            Change::DeleteMember { member, .. } => check_member(member)?,
            Change::EndSeason { season, .. } | Change::Archive { season, .. } => check_name(season)?,
            _ => {}
        }
        Ok(())
    }
}

/// Why a change cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error(transparent)]
    Member(#[from] Refused),
    #[error(transparent)]
    Members(#[from] BulkRefused),
    #[error(transparent)]
    Board(#[from] BoardsError),
}

/// An answer that a repetition gets as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Answer<'a> {
    /// When the change was made, s since the epoch.
    pub(in super::super) at_s: u64,
    /// The id of the key that has signed it, or nothing.
    pub(in super::super) signer: &'a [u8],
    /// The idempotency key.
    pub(in super::super) key: &'a [u8],
    /// Of the request.
    pub(in super::super) digest: &'a [u8; 32],
    pub(in super::super) status: u16,
    pub(in super::super) body: &'a [u8],
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
    metadata: Option<&str>,
) {
    begin(out, 3, board);
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&tie.to_le_bytes());
    put_text(out, member);
    let is_wide = if score.as_i64().is_some() { 0 } else { WIDE };
    out.push(is_wide | if metadata.is_some() { WITH_METADATA } else { 0 });
    match score.as_i64() {
        Some(small) => out.extend_from_slice(&small.to_le_bytes()),
        None => put_text(out, &score.to_string()),
    }
    if let Some(text) = metadata {
        put_text(out, text);
    }
}

/// As `put_member` without metadata, for the change that follows the record before it on the same board.
pub(super) fn put_next_member(out: &mut Vec<u8>, member: &str, score: &Score, tie: u64) {
    out.push(NEXT);
    out.extend_from_slice(&tie.to_le_bytes());
    // A member's name is short.
    out.extend_from_slice(&(member.len() as u16).to_le_bytes());
    out.extend_from_slice(member.as_bytes());
    match score.as_i64() {
        Some(small) => {
            out.push(0);
            out.extend_from_slice(&small.to_le_bytes());
        }
        None => {
            out.push(WIDE);
            put_text(out, &score.to_string());
        }
    }
}

const NEXT: u8 = 15;

/// Flags of a member's record: its score is text; metadata follows.
const WIDE: u8 = 1;
const WITH_METADATA: u8 = 2;

pub(super) fn put_metadata(
    out: &mut Vec<u8>,
    (board, sequence): (u64, u64),
    member: &str,
    text: Option<&str>,
) {
    begin(out, 7, board);
    out.extend_from_slice(&sequence.to_le_bytes());
    put_text(out, member);
    out.push(text.is_some().into());
    put_text(out, text.unwrap_or_default());
}

pub(super) fn put_end_season(
    out: &mut Vec<u8>,
    (board, sequence): (u64, u64),
    ended_at_s: u64,
    season: &str,
) {
    put_season(out, 8, (board, sequence), ended_at_s, season);
}

pub(super) fn put_archive(out: &mut Vec<u8>, (board, sequence): (u64, u64), ended_at_s: u64, season: &str) {
    put_season(out, 9, (board, sequence), ended_at_s, season);
}

fn put_season(out: &mut Vec<u8>, tag: u8, (board, sequence): (u64, u64), ended_at_s: u64, season: &str) {
    begin(out, tag, board);
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&ended_at_s.to_le_bytes());
    put_text(out, season);
}

pub(super) fn put_end_archive(out: &mut Vec<u8>, board: u64) {
    begin(out, 10, board);
}

pub(super) fn put_delete_season(out: &mut Vec<u8>, board: u64, sequence: u64) {
    begin(out, 11, board);
    out.extend_from_slice(&sequence.to_le_bytes());
}

pub(super) fn put_schedule(out: &mut Vec<u8>, board: u64, schedule: Option<Schedule>) {
    begin(out, 12, board);
    // No schedule has an interval of 0 s.
    let Schedule { next_end_s, every_s } = schedule.unwrap_or(Schedule { next_end_s: 0, every_s: 0 });
    out.extend_from_slice(&next_end_s.to_le_bytes());
    out.extend_from_slice(&every_s.to_le_bytes());
}

pub(super) fn put_nonce(out: &mut Vec<u8>, expires_s: u64, key: &str, nonce: &[u8]) {
    begin(out, 13, expires_s);
    put_text(out, key);
    put_bytes(out, nonce);
}

pub(super) fn put_answer(out: &mut Vec<u8>, answer: &Answer<'_>) {
    begin(out, 14, answer.at_s);
    put_bytes(out, answer.signer);
    put_bytes(out, answer.key);
    out.extend_from_slice(answer.digest);
    out.extend_from_slice(&answer.status.to_le_bytes());
    put_bytes(out, answer.body);
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
    put_bytes(out, text.as_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// No board and no change has a higher number: a million a second would take 292,000 years. And no time is later.
const COUNTED_MAX: u64 = u64::MAX >> 1;

/// The records of a payload. A payload whose checksum is right and that is not readable was written by another version.
pub(super) struct Changes<'a> {
    left: &'a [u8],
    /// Board and sequence number of the last `Put`.
    last: (u64, u64),
}

impl<'a> Changes<'a> {
    pub(super) fn of(payload: &'a [u8]) -> Changes<'a> {
        Changes { left: payload, last: (0, 0) }
    }

    /// The next change; None at the end. Errors: bytes that are no record.
    pub(super) fn next(&mut self) -> Result<Option<Change<'a>>, ()> {
        let Some((tag, rest)) = self.left.split_first() else { return Ok(None) };
        self.left = rest;
        let change = if *tag == NEXT { self.read_next() } else { self.read(*tag) };
        if let Some(Change::Put { board, sequence, .. }) = change {
            self.last = (board, sequence);
        }
        change.map(Some).ok_or(())
    }

    fn read_next(&mut self) -> Option<Change<'a>> {
        let (board, before) = self.last;
        let tie = self.number()?;
        let (length, rest) = self.left.split_first_chunk::<2>()?;
        let (member, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        self.left = rest;
        let member = std::str::from_utf8(member).ok()?.into();
        let score = match self.byte()? {
            0 => Score::from(self.number()? as i64),
            WIDE => Score::of_decimal(self.text()?)?,
            _ => return None,
        };
        let record = Record { member, score, tie, metadata: None };
        // Boards are numbered from 1.
        (board > 0).then_some(Change::Put { board, sequence: before.checked_add(1)?, record })
    }

    fn read(&mut self, tag: u8) -> Option<Change<'a>> {
        // The two records without a board have a time in its place, in seconds, to which others are added.
        let board = self.counted()?;
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
                let (sequence, tie, member) = (self.counted()?, self.number()?, self.text()?.into());
                let flags = self.byte()?;
                if flags & !(WIDE | WITH_METADATA) != 0 {
                    return None;
                }
                let score = match flags & WIDE {
                    0 => Score::from(self.number()? as i64),
                    _ => Score::of_decimal(self.text()?)?,
                };
                let metadata = if flags & WITH_METADATA == 0 { None } else { Some(self.text()?.into()) };
                Change::Put { board, sequence, record: Record { member, score, tie, metadata } }
            }
            4 => Change::DeleteMember { board, sequence: self.counted()?, member: self.text()? },
            5 => Change::Sequence { board, sequence: self.counted()? },
            6 => Change::End { board },
            7 => {
                let (sequence, member) = (self.counted()?, self.text()?);
                let (has_text, text) = (self.byte()?, self.text()?);
                Change::Metadata { board, sequence, member, text: (has_text != 0).then_some(text) }
            }
            8 | 9 => {
                let (sequence, ended_at_s, season) = (self.counted()?, self.number()?, self.text()?);
                match tag {
                    8 => Change::EndSeason { board, sequence, ended_at_s, season },
                    _ => Change::Archive { board, sequence, ended_at_s, season },
                }
            }
            10 => Change::EndArchive { board },
            11 => Change::DeleteSeason { board, sequence: self.counted()? },
            12 => {
                let schedule = Schedule { next_end_s: self.number()?, every_s: self.number()? };
                Change::Schedule { board, schedule: (schedule.every_s > 0).then_some(schedule) }
            }
            13 => Change::Nonce { expires_s: board, key: self.text()?, nonce: self.bytes()? },
            14 => {
                let (signer, key) = (self.bytes()?, self.bytes()?);
                let (digest, rest) = self.left.split_first_chunk::<32>()?;
                let (status, rest) = rest.split_first_chunk::<2>()?;
                self.left = rest;
                let (status, body) = (u16::from_le_bytes(*status), self.bytes()?);
                Change::Answer(Answer { at_s: board, signer, key, digest, status, body })
            }
            _ => return None,
        })
    }

    /// A number that the service counts up from: one that is near the end was never written.
    fn counted(&mut self) -> Option<u64> {
        self.number().filter(|number| *number <= COUNTED_MAX)
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.left.split_first()?;
        self.left = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.left.split_first_chunk::<8>()?;
        self.left = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.left.split_first_chunk::<4>()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.left = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaderboard::SUM_DIGITS_MAX;

    #[test]
    fn every_change_is_read_back_as_it_was_and_no_part_of_one_is() {
        let mut out = Vec::new();
        let options = Options { direction: Direction::Ascending, ties: TieRule::Last, seed: None };
        let large = Score::of_decimal(&format!("-{}", "7".repeat(SUM_DIGITS_MAX))).unwrap();
        put_create(&mut out, 1, &options, "wörk");
        put_member(&mut out, (1, 2), "ann", &Score::from(-5_i64), 9, Some("blue"));
        put_member(&mut out, (1, 3), "bob", &large, u64::MAX, None);
        put_next_member(&mut out, "cid", &Score::from(7_i64), 4);
        put_next_member(&mut out, "dan", &large, 5);
        put_delete_member(&mut out, (1, 4), "ann");
        put_sequence(&mut out, 1, 4);
        put_delete_board(&mut out, 1);
        put_end(&mut out, 8);
        put_metadata(&mut out, (1, 5), "bob", Some(""));
        put_metadata(&mut out, (1, 6), "bob", None);
        put_end_season(&mut out, (1, 7), 100, "spring");
        put_archive(&mut out, (1, 7), 100, "spring");
        put_end_archive(&mut out, 1);
        put_delete_season(&mut out, 1, 7);
        let schedule = Some(Schedule { next_end_s: 200, every_s: 100 });
        put_schedule(&mut out, 1, schedule);
        put_schedule(&mut out, 1, None);
        put_nonce(&mut out, 300, "game", b"\xff1");
        let answer =
            Answer { at_s: 90, signer: b"game", key: b"k\xff", digest: &[7; 32], status: 201, body: b"{}" };
        put_answer(&mut out, &answer);
        let record = |member: &str, score, tie, metadata: Option<&str>| {
            let metadata = metadata.map(Into::into);
            Record { member: member.into(), score, tie, metadata }
        };
        let mut changes = Changes::of(&out);
        for expected in [
            Change::Create { board: 1, options, name: "wörk" },
            Change::Put {
                board: 1,
                sequence: 2,
                record: record("ann", Score::from(-5_i64), 9, Some("blue")),
            },
            Change::Put { board: 1, sequence: 3, record: record("bob", large.clone(), u64::MAX, None) },
            Change::Put { board: 1, sequence: 4, record: record("cid", Score::from(7_i64), 4, None) },
            Change::Put { board: 1, sequence: 5, record: record("dan", large.clone(), 5, None) },
            Change::DeleteMember { board: 1, sequence: 4, member: "ann" },
            Change::Sequence { board: 1, sequence: 4 },
            Change::DeleteBoard { board: 1 },
            Change::End { board: 8 },
            Change::Metadata { board: 1, sequence: 5, member: "bob", text: Some("") },
            Change::Metadata { board: 1, sequence: 6, member: "bob", text: None },
            Change::EndSeason { board: 1, sequence: 7, ended_at_s: 100, season: "spring" },
            Change::Archive { board: 1, sequence: 7, ended_at_s: 100, season: "spring" },
            Change::EndArchive { board: 1 },
            Change::DeleteSeason { board: 1, sequence: 7 },
            Change::Schedule { board: 1, schedule },
            Change::Schedule { board: 1, schedule: None },
            Change::Nonce { expires_s: 300, key: "game", nonce: b"\xff1" },
            Change::Answer(answer),
        ] {
            assert_eq!(changes.next(), Ok(Some(expected)));
        }
        assert_eq!(changes.next(), Ok(None));
        assert_eq!(Changes::of(&out[..19]).next(), Err(()));
        let mut next = Vec::new();
        put_next_member(&mut next, "ann", &Score::ZERO, 1);
        assert_eq!(Changes::of(&next).next(), Err(()), "there is nothing before it");
        // Counting on from it would overflow.
        for (sequence, expected) in [(COUNTED_MAX, true), (COUNTED_MAX + 1, false), (u64::MAX, false)] {
            for put in [put_sequence, put_delete_season] {
                let mut out = Vec::new();
                put(&mut out, 1, sequence);
                assert_eq!(Changes::of(&out).next().is_ok(), expected, "change {sequence}");
            }
            let mut end = Vec::new();
            put_end(&mut end, sequence);
            assert_eq!(Changes::of(&end).next().is_ok(), expected, "board {sequence}");
            let answer =
                Answer { at_s: sequence, signer: b"", key: b"", digest: &[0; 32], status: 201, body: b"" };
            let mut kept = Vec::new();
            put_answer(&mut kept, &answer);
            assert_eq!(Changes::of(&kept).next().is_ok(), expected, "answer at {sequence} s");
        }
        // A score longer than sums can be: one more digit, and the length before them.
        let mut wide = Vec::new();
        put_member(&mut wide, (1, 2), "ann", &large, 9, None);
        assert!(Changes::of(&wide).next().is_ok());
        let length_at = wide.len() - "-".len() - SUM_DIGITS_MAX - 4;
        wide.push(b'7');
        wide[length_at..length_at + 4].copy_from_slice(&(SUM_DIGITS_MAX as u32 + 2).to_le_bytes());
        assert_eq!(Changes::of(&wide).next(), Err(()));
        assert_eq!(Changes::of(&[99, 0, 0, 0, 0, 0, 0, 0, 0]).next(), Err(()));
    }
}
