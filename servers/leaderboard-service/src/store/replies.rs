//! A store's replies, checked strictly: a reply of another shape is `Odd`, never a guess.

use super::resp::{Items, Scalar};
use crate::bodies;
use leaderboard::{Direction, Options, Page, Row, Score, Standing};

/// Why a script has refused its request. Nothing was changed, except that a nonce is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Which part of a bulk.
    NoBoard {
        part: usize,
    },
    /// A score beyond 53 bits: which part of a bulk, and which item.
    Beyond {
        part: usize,
        item: usize,
    },
    OtherRequest,
    NoMember,
    NameTaken,
    NonceUsed,
}

/// What a reply is, if it is none that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unexpected {
    Refused(Refused),
    /// Not of the shape that the scripts' replies have.
    Odd,
}

/// Reads a reply from its front to its end.
pub(super) struct Fields<'a>(Items<'a>);

impl<'a> Fields<'a> {
    /// What follows the code of a script that has done its work.
    pub(super) fn of(items: Items<'a>) -> Result<Fields<'a>, Unexpected> {
        let mut fields = Fields(items);
        let place = |fields: &mut Fields<'a>| fields.whole().map(|place| place as usize);
        let refused = match fields.whole()? {
            0 => return Ok(fields),
            1 => Refused::NoBoard { part: place(&mut fields)? },
            2 => Refused::Beyond { part: place(&mut fields)?, item: place(&mut fields)? },
            3 => Refused::OtherRequest,
            4 => Refused::NoMember,
            5 => Refused::NameTaken,
            6 => Refused::NonceUsed,
            _ => return Err(Unexpected::Odd),
        };
        Err(fields.end().map_or_else(|odd| odd, |()| Unexpected::Refused(refused)))
    }

    fn next(&mut self) -> Result<Scalar<'a>, Unexpected> {
        self.0.next().ok_or(Unexpected::Odd)
    }

    pub(super) fn score(&mut self) -> Result<Score, Unexpected> {
        match self.next()? {
            Scalar::Number(score) => Ok(score.into()),
            _ => Err(Unexpected::Odd),
        }
    }

    /// A number that is not negative.
    pub(super) fn whole(&mut self) -> Result<u64, Unexpected> {
        match self.next()? {
            Scalar::Number(number) => u64::try_from(number).map_err(|_| Unexpected::Odd),
            _ => Err(Unexpected::Odd),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Unexpected> {
        match self.next()? {
            Scalar::Text(text) => std::str::from_utf8(text).map_err(|_| Unexpected::Odd),
            _ => Err(Unexpected::Odd),
        }
    }

    /// A score and a rank, or two times nothing.
    pub(super) fn standing(&mut self) -> Result<Option<Standing>, Unexpected> {
        match (self.next()?, self.next()?) {
            (Scalar::Nothing, Scalar::Nothing) => Ok(None),
            (Scalar::Number(score), Scalar::Number(rank)) => {
                let rank = u64::try_from(rank).map_err(|_| Unexpected::Odd)?;
                Ok(Some(Standing { score: score.into(), rank }))
            }
            _ => Err(Unexpected::Odd),
        }
    }

    /// Direction and tie rule.
    pub(super) fn rules(&mut self) -> Result<Options, Unexpected> {
        let direction: Direction = bodies::direction(self.text()?).map_err(|_| Unexpected::Odd)?;
        let ties = bodies::ties(self.text()?).map_err(|_| Unexpected::Odd)?;
        Ok(Options { direction, ties, seed: None })
    }

    /// The count of members, the first rank, and rows up to the end.
    pub(super) fn page(mut self) -> Result<Page, Unexpected> {
        let (total, first) = (self.whole()?, self.whole()?);
        let mut rows = Vec::new();
        for rank in first.. {
            let Some(member) = self.text_unless_over()? else { break };
            let row = Row { rank, member: member.into(), score: self.score()?, metadata: None };
            rows.push(row);
        }
        Ok(Page { total, rows })
    }

    pub(super) fn text_unless_over(&mut self) -> Result<Option<&'a str>, Unexpected> {
        let mut ahead = self.0;
        match ahead.next() {
            None => Ok(None),
            Some(_) => self.text().map(Some),
        }
    }

    pub(super) fn end(mut self) -> Result<(), Unexpected> {
        if self.0.next().is_none() { Ok(()) } else { Err(Unexpected::Odd) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::resp::{self, Reply};

    fn with<R>(words: &str, read: impl FnOnce(Items<'_>) -> R) -> R {
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut bytes = format!("*{}\r\n", words.len());
        for word in words {
            match word.parse::<i64>() {
                Ok(number) => bytes += &format!(":{number}\r\n"),
                Err(_) if word == "nil" => bytes += "$-1\r\n",
                Err(_) => bytes += &format!("${}\r\n{word}\r\n", word.len()),
            }
        }
        let Reply::List(items) = resp::read(bytes.as_bytes()) else { panic!("a list") };
        read(items)
    }

    #[test]
    fn refusals_are_told_apart_and_what_has_another_shape_is_odd() {
        let check = |words: &str, expected: Unexpected| {
            let found = with(words, |items| Fields::of(items).err());
            assert_eq!(found, Some(expected), "{words}");
        };
        check("1 2", Unexpected::Refused(Refused::NoBoard { part: 2 }));
        check("2 1 7", Unexpected::Refused(Refused::Beyond { part: 1, item: 7 }));
        check("3", Unexpected::Refused(Refused::OtherRequest));
        check("4", Unexpected::Refused(Refused::NoMember));
        check("5", Unexpected::Refused(Refused::NameTaken));
        check("6", Unexpected::Refused(Refused::NonceUsed));
        for odd in ["", "7", "-1", "1", "1 x", "1 -2", "2 1", "4 4", "done", "nil"] {
            check(odd, Unexpected::Odd);
        }
    }

    #[test]
    fn pages_and_standings_are_read_to_their_ends() {
        let page = with("0 9 4 ann 5 bob -3", |items| Fields::of(items)?.page()).unwrap();
        let rows: Vec<_> =
            page.rows.iter().map(|row| (row.rank, &*row.member, row.score.to_string())).collect();
        assert_eq!((page.total, rows), (9, vec![(4, "ann", "5".into()), (5, "bob", "-3".into())]));
        for odd in ["0 9", "0 9 4 ann", "0 9 4 5 ann", "0 nil 4", "0 9 4 ann nil"] {
            assert_eq!(with(odd, |items| Fields::of(items)?.page()), Err(Unexpected::Odd), "{odd}");
        }
        let standing = |words: &str| with(words, |items| Fields::of(items)?.standing());
        assert_eq!(standing("0 nil nil"), Ok(None));
        assert_eq!(standing("0 7 2"), Ok(Some(Standing { score: 7_i64.into(), rank: 2 })));
        for odd in ["0", "0 7", "0 nil 2", "0 7 -2", "0 a b"] {
            assert_eq!(standing(odd), Err(Unexpected::Odd), "{odd}");
        }
    }
}
