//! What a leaderboard responds with, as far as its clients look at it.

use std::borrow::Cow;

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

impl Page<'_> {
    /// Whether its ranks follow each other and its scores fall. Errors: the first place where they do not.
    pub fn check(&self) -> Result<(), String> {
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
}
