//! A leaderboard's responses, as far as its clients read them.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// A score and a rank.
#[derive(Debug)]
pub struct Standing<'a> {
    /// whose, where the response says so
    pub member: Option<Cow<'a, str>>,
    pub score: i64,
    pub rank: u64,
}

/// A member with its score and rank.
#[derive(Debug)]
pub struct Row<'a> {
    pub member: Cow<'a, str>,
    pub score: i64,
    pub rank: u64,
}

/// Rows in the order of their ranks.
#[derive(Debug)]
pub struct Page<'a> {
    pub rows: Vec<Row<'a>>,
}

/// What is known about the first members when they are requested; foreign ones may be there too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct First {
    /// at least this many, and no more than requested
    pub rows: usize,
    /// of the first one, at least
    pub score: i64,
}

impl Page<'_> {
    /// Whether its ranks follow each other, its scores fall and no member is in it twice. Errors: the first place where
    /// that is not so.
    pub fn check(&self) -> Result<(), String> {
        if let Some(row) = self.rows.iter().find(|row| row.rank == 0) {
            return Err(format!("{} has rank 0", row.member));
        }
        let mut members = BTreeSet::new();
        if let Some(twice) = self.rows.iter().find(|row| !members.insert(row.member.as_ref())) {
            return Err(format!("{} is in one page twice", twice.member));
        }
        match self
            .rows
            .windows(2)
            .find(|pair| pair[0].rank.checked_add(1) != Some(pair[1].rank) || pair[1].score > pair[0].score)
        {
            None => Ok(()),
            Some([one, next]) => Err(format!(
                "rank {} has {} points and the row behind it, rank {}, has {}",
                one.rank, one.score, next.rank, next.score
            )),
            Some(_) => Ok(()),
        }
    }

    /// Whether it begins with the first rank, and has the members that it must have. Errors: how it begins.
    pub fn begins_the_board(&self, known: First) -> Result<(), String> {
        match self.rows.first() {
            Some(row) if row.rank != 1 => Err(format!("the first members begin with rank {}", row.rank)),
            Some(row) if row.score < known.score => Err(format!(
                "the first member has {} points, although {} were acknowledged before",
                row.score, known.score
            )),
            None if known.rows > 0 => Err("no first members, although updates were acknowledged".to_owned()),
            _ if self.rows.len() < known.rows => {
                Err(format!("{} first members, although there are {} or more", self.rows.len(), known.rows))
            }
            _ => Ok(()),
        }
    }

    /// The standing of a member. Errors: it is not there.
    pub fn standing_of(&self, name: &str) -> Result<Standing<'_>, String> {
        let row = self.rows.iter().find(|row| row.member == name);
        let row = row.ok_or_else(|| format!("{name} is not among its own neighbours"))?;
        Ok(Standing { member: None, score: row.score, rank: row.rank })
    }
}
