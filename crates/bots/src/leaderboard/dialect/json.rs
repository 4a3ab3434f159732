//! JSON over HTTP.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::super::members::push_number;
use super::{Ask, NEIGHBOURS, Page, ROWS_MOST, Row, Standing, Written};

/// A bulk changes one board.
const PARTS_MOST: usize = 4;

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
        let below = |method, below: String, body| Written::over_http(method, format!("{path}{below}"), body);
        let none = Vec::new;
        match ask {
            Ask::Update(member, points) => {
                below("PATCH", format!("/members/{member}?score={points}"), none())
            }
            Ask::Bulk(updates) => {
                Written::over_http("POST", format!("{base}/bulk"), self.bulk(updates).into_bytes())
            }
            Ask::Top(rows) => below("GET", format!("/top?limit={rows}"), none()),
            Ask::Rank(member) => below("GET", format!("/members/{member}"), none()),
            Ask::Around(member) => below("GET", format!("/around/{member}?each_side={NEIGHBOURS}"), none()),
            Ask::Standings(members) => {
                let names: Vec<String> = members.iter().map(|name| format!("\"{name}\"")).collect();
                let body = format!("{{\"members\":[{}]}}", names.join(",")).into_bytes();
                below("POST", "/ranks".to_owned(), body)
            }
            Ask::At(rank) => below("GET", format!("/range?first={rank}&limit=1"), none()),
        }
    }

    /// Names and boards have no letters that JSON would escape.
    fn bulk(&self, updates: &[(String, i64)]) -> String {
        let own: usize = updates.iter().map(|(name, _)| name.len()).sum();
        let mut body = String::with_capacity(100 + own + 60 * updates.len());
        body.push_str("{\"leaderboards\":[{\"leaderboard\":\"");
        body.push_str(&self.board);
        body.push_str("\",\"scores\":[");
        for (at, (name, points)) in updates.iter().enumerate() {
            body.push_str(if at > 0 { ",{\"member\":\"" } else { "{\"member\":\"" });
            body.push_str(name);
            body.push_str(if *points < 0 { "\",\"score\":\"-" } else { "\",\"score\":\"" });
            push_number(&mut body, points.unsigned_abs());
            body.push_str("\",\"mode\":\"increment\"}");
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
    #[serde(borrow, deserialize_with = "list::<_, ROWS_MOST, _>")]
    rows: Vec<RawRow<'a>>,
}

#[derive(Deserialize)]
struct RawStandings<'a> {
    #[serde(borrow, deserialize_with = "list::<_, ROWS_MOST, _>")]
    standings: Vec<Option<RawRow<'a>>>,
}

#[derive(Deserialize)]
struct RawBulk<'a> {
    #[serde(borrow, deserialize_with = "list::<_, PARTS_MOST, _>")]
    leaderboards: Vec<RawPart<'a>>,
}

#[derive(Deserialize)]
struct RawPart<'a> {
    #[serde(borrow, deserialize_with = "list::<_, ROWS_MOST, _>")]
    scores: Vec<RawRow<'a>>,
}

/// Reads a list up to `MOST` entries: a longer one is an error before it takes memory, since an entry of a few bytes can
/// take many times as much.
fn list<'de, T: Deserialize<'de>, const MOST: usize, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct List<T, const MOST: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
        type Value = Vec<T>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "a list of at most {MOST} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(entry) = entries.next_element()? {
                if list.len() == MOST {
                    return Err(A::Error::custom(format_args!("a list of more than {MOST} entries")));
                }
                list.push(entry);
            }
            Ok(list)
        }
    }
    deserializer.deserialize_seq(List::<T, MOST>(PhantomData))
}

/// Reads a number out of a text, which is not kept.
fn score<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    struct Score;
    impl Visitor<'_> for Score {
        type Value = i64;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a text of decimal digits")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<i64, E> {
            text.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Score)
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
