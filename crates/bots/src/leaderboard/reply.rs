//! What a leaderboard responds with, as far as its clients read it.

use std::borrow::Cow;

use serde::Deserialize;

/// A member with its score and rank.
#[derive(Debug, Deserialize)]
pub struct Row<'a> {
    #[serde(borrow)]
    pub member: Cow<'a, str>,
    /// decimal; the scores of these clients fit
    #[serde(deserialize_with = "score")]
    pub score: i64,
    pub rank: u64,
}

/// Rows in the order of their ranks.
#[derive(Debug, Deserialize)]
pub struct Page<'a> {
    #[serde(borrow)]
    pub rows: Vec<Row<'a>>,
}

/// Members that were asked for; `None`: not there.
#[derive(Debug, Deserialize)]
pub struct Standings<'a> {
    #[serde(borrow)]
    pub standings: Vec<Option<Row<'a>>>,
}

#[derive(Deserialize)]
struct Bulk<'a> {
    #[serde(borrow)]
    leaderboards: Vec<Part<'a>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    scores: Vec<Row<'a>>,
}

fn score<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text: Cow<'de, str> = Cow::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

pub fn row(body: &[u8]) -> serde_json::Result<Row<'_>> {
    serde_json::from_slice(body)
}

pub fn page(body: &[u8]) -> serde_json::Result<Page<'_>> {
    serde_json::from_slice(body)
}

pub fn standings(body: &[u8]) -> serde_json::Result<Standings<'_>> {
    serde_json::from_slice(body)
}

/// The rows of all parts, in order.
pub fn bulk(body: &[u8]) -> serde_json::Result<Vec<Row<'_>>> {
    let bulk: Bulk<'_> = serde_json::from_slice(body)?;
    Ok(bulk.leaderboards.into_iter().flat_map(|part| part.scores).collect())
}

impl Page<'_> {
    /// Whether its ranks follow each other and its scores fall. Errors: the first place where they do not.
    pub fn check(&self) -> Result<(), String> {
        match self
            .rows
            .windows(2)
            .find(|pair| pair[1].rank != pair[0].rank + 1 || pair[1].score > pair[0].score)
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
