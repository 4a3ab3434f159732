//! The messages of `proto/leaderboard.proto`, read in place and written by hand.
//!
//! By hand rather than generated: reading borrows, so that an update allocates nothing, and users need no schema
//! compiler. A test compares both directions with a reader that is built from the schema itself.
//! As the format demands, unknown fields are skipped, the last value of a repeated scalar field counts, repeated
//! messages are merged, and of a oneof the last field counts.

use super::problem::Problem;
use crate::protobuf::{Field, Fields, Malformed, put_bytes, put_message, put_signed, put_whole};
use leaderboard::{Mode, Page, Score};

/// A `Request`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Request<'a> {
    pub(super) id: u64,
    pub(super) operation: Option<Operation<'a>>,
    /// The operation's message as it was sent; its last part, where it came in several.
    pub(super) operation_bytes: &'a [u8],
    /// In how many parts it came.
    pub(super) operation_parts: u32,
    pub(super) idempotency_key: &'a [u8],
    pub(super) signature: Option<Signature<'a>>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Signature<'a> {
    pub(super) key: &'a [u8],
    pub(super) nonce: &'a [u8],
    pub(super) expires_s: u64,
    pub(super) signature: &'a [u8],
}

/// The requested operation.
#[derive(Debug, PartialEq)]
pub(super) enum Operation<'a> {
    Update(Update<'a>),
    Get(Get<'a>),
    Ranks(Ranks<'a>),
    Top(Top<'a>),
    Range(Range<'a>),
    Around(Around<'a>),
    Bulk(Bulk<'a>),
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Update<'a> {
    pub(super) board: &'a str,
    pub(super) item: Item<'a>,
}

/// One member's change.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Item<'a> {
    pub(super) member: &'a str,
    mode: u64,
    score: Given<'a>,
}

/// The oneof `score`.
#[derive(Debug, Default, PartialEq)]
enum Given<'a> {
    #[default]
    Nothing,
    Number(i64),
    Decimal(&'a str),
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Get<'a> {
    pub(super) board: &'a str,
    pub(super) member: &'a str,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Ranks<'a> {
    pub(super) board: &'a str,
    pub(super) members: Vec<&'a str>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Top<'a> {
    pub(super) board: &'a str,
    pub(super) limit: Option<u64>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Range<'a> {
    pub(super) board: &'a str,
    pub(super) first: Option<u64>,
    pub(super) limit: Option<u64>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Around<'a> {
    pub(super) board: &'a str,
    pub(super) member: &'a str,
    pub(super) each_side: Option<u64>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Bulk<'a> {
    pub(super) parts: Vec<Part<'a>>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Part<'a> {
    pub(super) board: &'a str,
    pub(super) items: Vec<Item<'a>>,
}

/// A message that is read field by field; unknown fields are left alone.
pub(super) trait Message<'a>: Default {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed>;

    /// Reads `bytes` on top of what was read before.
    fn merge(&mut self, bytes: &'a [u8]) -> Result<(), Malformed> {
        let mut fields = Fields(bytes);
        while let Some(field) = fields.next()? {
            self.take(field)?;
        }
        Ok(())
    }

    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut message = Self::default();
        message.merge(bytes)?;
        Ok(message)
    }
}

impl<'a> Request<'a> {
    /// Reads a request. Errors: it is malformed; its id, if that was read before.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Request<'a>, (Malformed, Option<u64>)> {
        let mut request = Request::default();
        let read = request.merge(bytes);
        read.map_err(|why| (why, Some(request.id).filter(|id| *id > 0)))?;
        Ok(request)
    }
}

impl<'a> Message<'a> for Request<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.id = field.whole()?,
            14 => self.idempotency_key = field.text()?.as_bytes(),
            15 => self.signature.get_or_insert_default().merge(field.bytes()?)?,
            number @ 2..=8 => {
                self.operation_bytes = field.bytes()?;
                self.operation_parts += 1;
                Operation::merge(&mut self.operation, number, self.operation_bytes)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Signature<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.key = field.text()?.as_bytes(),
            2 => self.nonce = field.text()?.as_bytes(),
            3 => self.expires_s = field.whole()?,
            4 => self.signature = field.bytes()?,
            _ => {}
        }
        Ok(())
    }
}

/// Reads `bytes` on top of `$operation` where that is a `$kind` already, else instead of it.
macro_rules! merge {
    ($operation:ident, $kind:ident, $bytes:ident) => {{
        if !matches!($operation, Some(Operation::$kind(_))) {
            *$operation = Some(Operation::$kind(Default::default()));
        }
        match $operation {
            Some(Operation::$kind(message)) => message.merge($bytes),
            _ => Ok(()),
        }
    }};
}

/// Names of the operations as in `Request`, by `Operation::index`.
pub(super) const OPERATIONS: [&str; 7] = ["update", "get", "ranks", "top", "range", "around", "bulk"];

/// Of the first operation within `Request`.
const FIRST_OPERATION: u32 = 2;

impl<'a> Operation<'a> {
    fn merge(operation: &mut Option<Operation<'a>>, number: u32, bytes: &'a [u8]) -> Result<(), Malformed> {
        match number - FIRST_OPERATION {
            0 => merge!(operation, Update, bytes),
            1 => merge!(operation, Get, bytes),
            2 => merge!(operation, Ranks, bytes),
            3 => merge!(operation, Top, bytes),
            4 => merge!(operation, Range, bytes),
            5 => merge!(operation, Around, bytes),
            _ => merge!(operation, Bulk, bytes),
        }
    }

    /// The one at this place of `OPERATIONS`, from its message.
    pub(super) fn read(index: usize, bytes: &'a [u8]) -> Result<Option<Operation<'a>>, Malformed> {
        let mut operation = None;
        Operation::merge(&mut operation, index as u32 + FIRST_OPERATION, bytes)?;
        Ok(operation)
    }

    pub(super) fn index(&self) -> usize {
        match self {
            Operation::Update(_) => 0,
            Operation::Get(_) => 1,
            Operation::Ranks(_) => 2,
            Operation::Top(_) => 3,
            Operation::Range(_) => 4,
            Operation::Around(_) => 5,
            Operation::Bulk(_) => 6,
        }
    }

    /// Whether it changes anything.
    pub(super) fn changes(&self) -> bool {
        matches!(self, Operation::Update(_) | Operation::Bulk(_))
    }

    /// The field of `Response` with its result.
    pub(super) fn result_field(&self) -> u32 {
        match self {
            Operation::Update(_) | Operation::Get(_) => 3,
            Operation::Ranks(_) => 4,
            Operation::Top(_) | Operation::Range(_) | Operation::Around(_) => 5,
            Operation::Bulk(_) => 6,
        }
    }
}

/// The field of `Response`, and of `BulkDone`, with an error.
pub(super) const ERROR_FIELD: u32 = 2;

impl<'a> Message<'a> for Update<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.board = field.text()?,
            2 => self.item.member = field.text()?,
            3 => self.item.mode = field.whole()?,
            4 => self.item.score = Given::Number(field.signed()?),
            5 => self.item.score = Given::Decimal(field.text()?),
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Item<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.member = field.text()?,
            2 => self.mode = field.whole()?,
            3 => self.score = Given::Number(field.signed()?),
            4 => self.score = Given::Decimal(field.text()?),
            _ => {}
        }
        Ok(())
    }
}

impl Item<'_> {
    /// Errors: no mode or one that does not exist, no score or a text that is none.
    pub(super) fn change(&self) -> Result<(Mode, Score), Problem> {
        // An enum has 32 bits; a longer number is truncated, as the format says.
        let mode = match self.mode as u32 {
            0 => return Err(Problem::new(422, "the update has no mode")),
            1 => Mode::Increment,
            2 => Mode::Replace,
            3 => Mode::Best,
            4 => Mode::Decrement,
            other => return Err(Problem::new(422, format!("there is no mode {other}"))),
        };
        let score = match self.score {
            Given::Nothing => return Err(Problem::new(422, "the update has no score")),
            Given::Number(number) => Score::from(number),
            Given::Decimal(text) => text.parse()?,
        };
        Ok((mode, score))
    }
}

impl<'a> Message<'a> for Get<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.board = field.text()?,
            2 => self.member = field.text()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Ranks<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.board = field.text()?,
            2 => self.members.push(field.text()?),
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Top<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.board = field.text()?,
            2 => self.limit = Some(field.whole()?),
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Range<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.board = field.text()?,
            2 => self.first = Some(field.whole()?),
            3 => self.limit = Some(field.whole()?),
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Around<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.board = field.text()?,
            2 => self.member = field.text()?,
            3 => self.each_side = Some(field.whole()?),
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Bulk<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        if field.number == 1 {
            self.parts.push(Part::read(field.bytes()?)?);
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Part<'a> {
    fn take(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.board = field.text()?,
            2 => self.items.push(Item::read(field.bytes()?)?),
            _ => {}
        }
        Ok(())
    }
}

/// Appends a score's field: its number if it has one, else its digits in the next field.
fn put_score(out: &mut Vec<u8>, number: u32, score: &Score) {
    match score.as_i64() {
        Some(small) => put_signed(out, number, small),
        None => put_bytes(out, number + 1, score.to_string().as_bytes()),
    }
}

/// Appends a `Standing`.
pub(super) fn put_standing(out: &mut Vec<u8>, score: &Score, rank: u64) {
    put_score(out, 1, score);
    put_whole(out, 3, rank);
}

/// Appends a `Page`.
pub(super) fn put_page(out: &mut Vec<u8>, page: &Page) {
    put_whole(out, 1, page.total);
    for row in &page.rows {
        put_message(out, 2, |out| {
            put_bytes(out, 1, row.member.as_bytes());
            put_score(out, 2, &row.score);
            put_whole(out, 4, row.rank);
        });
    }
    put_whole(out, 3, page.next_rank().unwrap_or(0));
}

#[cfg(test)]
mod tests;
