//! JSON over HTTP.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Ask, NEIGHBOURS, Page, Row, Standing, Written};

/// Of one board.
pub struct Json {
    /// path that the service's own begin with
    base: String,
    /// of the board
    path: String,
    board: String,
}

impl Json {
    /// `base`: path that the service's own begin with.
    pub fn new(base: &str, board: &str) -> Self {
        let path = format!("{base}/leaderboards/{board}");
        Json { base: base.to_owned(), path, board: board.to_owned() }
    }

    pub(super) fn write(&self, ask: &Ask) -> Written {
        let Json { base, path, .. } = self;
        let below =
            |method, below: String| Written { method, path: format!("{path}{below}"), body: Vec::new() };
        match ask {
            Ask::Update(member, points) => below("PATCH", format!("/members/{member}?score={points}")),
            Ask::Bulk(updates) => Written {
                method: "POST",
                path: format!("{base}/bulk"),
                body: self.bulk(updates).into_bytes(),
            },
            Ask::Top(rows) => below("GET", format!("/top?limit={rows}")),
            Ask::Rank(member) => below("GET", format!("/members/{member}")),
            Ask::Around(member) => below("GET", format!("/around/{member}?each_side={NEIGHBOURS}")),
            Ask::Standings(members) => {
                let names: Vec<String> = members.iter().map(|name| format!("\"{name}\"")).collect();
                let body = format!("{{\"members\":[{}]}}", names.join(",")).into_bytes();
                Written { body, ..below("POST", "/ranks".to_owned()) }
            }
            Ask::At(rank) => below("GET", format!("/range?first={rank}&limit=1")),
        }
    }

    /// Names and boards have no letters that JSON would escape.
    fn bulk(&self, updates: &[(String, i64)]) -> String {
        use std::fmt::Write as _;
        let mut body = format!("{{\"leaderboards\":[{{\"leaderboard\":\"{}\",\"scores\":[", self.board);
        for (at, (name, points)) in updates.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            // Writing to a text cannot fail.
            let _ = write!(
                body,
                "{comma}{{\"member\":\"{name}\",\"score\":\"{points}\",\"mode\":\"increment\"}}"
            );
        }
        body.push_str("]}]}");
        body
    }
}

#[derive(Deserialize)]
struct RawRow<'a> {
    #[serde(borrow)]
    member: Cow<'a, str>,
    /// decimal; the scores of these clients fit
    #[serde(deserialize_with = "score")]
    score: i64,
    rank: u64,
}

#[derive(Deserialize)]
struct RawPage<'a> {
    #[serde(borrow)]
    rows: Vec<RawRow<'a>>,
}

#[derive(Deserialize)]
struct RawStandings<'a> {
    #[serde(borrow)]
    standings: Vec<Option<RawRow<'a>>>,
}

#[derive(Deserialize)]
struct RawBulk<'a> {
    #[serde(borrow)]
    leaderboards: Vec<RawPart<'a>>,
}

#[derive(Deserialize)]
struct RawPart<'a> {
    #[serde(borrow)]
    scores: Vec<RawRow<'a>>,
}

fn score<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text: Cow<'de, str> = Cow::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

impl<'a> From<RawRow<'a>> for Standing<'a> {
    fn from(row: RawRow<'a>) -> Self {
        Standing { member: Some(row.member), score: row.score, rank: row.rank }
    }
}

pub(super) fn standing(body: &[u8]) -> Result<Standing<'_>, String> {
    read::<RawRow<'_>>(body).map(Standing::from)
}

pub(super) fn bulk(body: &[u8]) -> Result<Vec<Standing<'_>>, String> {
    let bulk: RawBulk<'_> = read(body)?;
    Ok(bulk.leaderboards.into_iter().flat_map(|part| part.scores).map(Standing::from).collect())
}

pub(super) fn page(body: &[u8]) -> Result<Page<'_>, String> {
    let page: RawPage<'_> = read(body)?;
    let row =
        |row: RawRow<'_>| Row { member: row.member.into_owned().into(), score: row.score, rank: row.rank };
    Ok(Page::of(page.rows.into_iter().map(row).collect()))
}

pub(super) fn standings(body: &[u8]) -> Result<Vec<Option<Standing<'_>>>, String> {
    let standings: RawStandings<'_> = read(body)?;
    Ok(standings.standings.into_iter().map(|row| row.map(Standing::from)).collect())
}
