//! A leaderboard over HTTP as JSON: services that lose updates, report wrong ranks, or do not allow reading back.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::peer::Peer;
use super::{Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load = Load::new(
    "leaderboard",
    "http://127.0.0.1:PORT/ --bots leaderboard --rate 200 --connections 8 --members 40 --reads 60% \
     --timeout 2s --objective audit==ok",
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Update,
    Rank,
    Top,
    Around,
    /// scores and ranks at one moment, for the audit
    Standings,
    /// the member at a rank, for the audit
    At,
    Other,
}
use Kind::{Around, At, Other, Rank, Standings, Top, Update};

/// A request and what the board said of it.
struct Asked<'a> {
    kind: Kind,
    /// whom it is about
    member: &'a str,
    board: &'a mut Board,
}

impl Asked<'_> {
    fn is_tenth_update(&self) -> bool {
        self.kind == Update && self.board.updates % 10 == 3
    }
}

type Told = (u16, Value);

#[derive(Default)]
struct Board {
    scores: BTreeMap<String, i64>,
    /// first members as they once were
    frozen: Option<Value>,
    updates: usize,
}

impl Board {
    /// All rows in the order of their ranks.
    fn rows(&self) -> Vec<Value> {
        let mut all: Vec<(&String, &i64)> = self.scores.iter().collect();
        all.sort_by_key(|(name, score)| (Reverse(**score), *name));
        let row = |(at, (name, score)): (usize, (&String, &i64))| json!({ "member": name, "score": score.to_string(), "rank": at + 1 });
        all.into_iter().enumerate().map(row).collect()
    }

    fn row(&self, member: &str) -> Option<Value> {
        self.rows().into_iter().find(|row| row["member"] == member)
    }

    /// A request as an honest service answers it: its kind, whom it is about, and the answer.
    fn ask<'p>(&mut self, path: &'p str, body: &[u8]) -> (Kind, &'p str, Told) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let number = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<i64>().ok())
        };
        let some = |row: Option<Value>| row.map_or((404, json!({})), |row| (200, row));
        let page = |rows: Vec<Value>| (200, json!({ "rows": rows }));
        let below = path.strip_prefix("/leaderboards/main/").unwrap_or_default();
        let (what, member) = below.split_once('/').unwrap_or((below, ""));
        match (what, number("score")) {
            ("members", Some(points)) => {
                *self.scores.entry(member.to_owned()).or_default() += points;
                self.updates += 1;
                (Update, member, some(self.row(member)))
            }
            ("members", None) => (Rank, member, some(self.row(member))),
            ("top", _) => (Top, "", page(self.rows().into_iter().take(10).collect())),
            ("around", _) => {
                let rows = self.rows();
                let told = rows
                    .iter()
                    .position(|row| row["member"] == member)
                    .map(|at| page(rows[at.saturating_sub(5)..rows.len().min(at + 6)].to_vec()));
                (Around, member, told.unwrap_or((404, json!({}))))
            }
            ("ranks", _) => {
                let asked: Value = serde_json::from_slice(body).unwrap_or_default();
                let names = asked["members"].as_array().into_iter().flatten();
                let rows: Vec<_> = names.map(|name| self.row(name.as_str().unwrap_or_default())).collect();
                (Standings, "", (200, json!({ "standings": rows })))
            }
            ("range", _) => {
                let first = number("first").unwrap_or(1).max(1) as usize;
                (At, "", page(self.rows().into_iter().skip(first - 1).take(1).collect()))
            }
            _ => (Other, "", (200, json!({ "ok": true }))),
        }
    }
}

fn bytes(told: &Told) -> Vec<u8> {
    let body = told.1.to_string();
    format!(
        "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        told.0,
        body.len()
    )
    .into_bytes()
}

/// A request's path and body.
fn request(peer: &mut Peer) -> io::Result<(String, Vec<u8>)> {
    let head = peer.head()?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    };
    let body = peer.take(head.lines().find_map(header).unwrap_or(0))?;
    Ok((head.split(' ').nth(1).unwrap_or_default().to_owned(), body))
}

/// A service that answers what `answer` makes of the board's word, and sends it as `says` does.
fn service(
    answer: impl Fn(&mut Asked<'_>, Told) -> Told,
    says: impl Fn(&mut Peer, Kind, Told) -> io::Result<()>,
) -> impl Fn(&mut Peer) -> io::Result<()> {
    let shared = Arc::new(Mutex::new(Board::default()));
    move |peer| {
        loop {
            let (path, body) = request(peer)?;
            let (kind, told) = {
                let mut board = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let (kind, member, told) = board.ask(&path, &body);
                (kind, answer(&mut Asked { kind, member, board: &mut board }, told))
            };
            says(peer, kind, told)?;
        }
    }
}

/// A service that answers something else than the board has told.
fn tells(answer: impl Fn(&mut Asked<'_>, Told) -> Told) -> impl Fn(&mut Peer) -> io::Result<()> {
    service(answer, |peer, _, told| peer.say(bytes(&told)))
}

/// An honest service that sends its answers in an unusual way.
fn sends(says: impl Fn(&mut Peer, Kind, Told) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    service(|_, told| told, says)
}

/// The same of one kind of requests.
fn of(kind: Kind, answer: impl Fn(&mut Asked<'_>, Value) -> Told) -> impl Fn(&mut Peer) -> io::Result<()> {
    tells(move |asked, told| if asked.kind == kind && told.0 == 200 { answer(asked, told.1) } else { told })
}

/// Changes one field of an answer.
fn with(field: &'static str, value: Value) -> impl Fn(&mut Asked<'_>, Value) -> Told {
    move |_, mut row| {
        row[field] = value.clone();
        (200, row)
    }
}

fn page(rows: Vec<Value>) -> Told {
    (200, json!({ "rows": rows }))
}

/// A standing with a rank 30 places farther down.
fn too_bad(mut row: Value) -> Value {
    row["rank"] = json!(row["rank"].as_u64().unwrap_or_default() + 30);
    row
}

/// Changes one in `one_in` rows that are read back; `change` is also given the number of members.
fn reads_back(one_in: usize, change: impl Fn(&mut Value, u64)) -> impl Fn(&mut Peer) -> io::Result<()> {
    of(Standings, move |asked, mut told| {
        let rows = told["standings"].as_array_mut().into_iter().flatten();
        rows.step_by(one_in).for_each(|row| change(row, asked.board.scores.len() as u64));
        (200, told)
    })
}

/// Of one update in ten, keeps this many points more than it says.
fn miscounts(points: i64) -> impl Fn(&mut Peer) -> io::Result<()> {
    tells(move |asked, told| {
        if asked.is_tenth_update() {
            *asked.board.scores.entry(asked.member.to_owned()).or_default() += points;
        }
        told
    })
}

fn updates() -> Vec<Row> {
    vec![
        row("keeps its books, as it should", Passes, "", tells(|_, told| told)),
        row("acknowledges one update of ten and loses it", Fails, "wrong score|audit", miscounts(-1)),
        long("applies one update of ten twice", Fails, "wrong score|audit", miscounts(1)),
        long(
            "applies updates that it answers with 404",
            Fails,
            "audit|status 4xx|wrong score",
            tells(|asked, told| if asked.is_tenth_update() { (404, json!({})) } else { told }),
        ),
        long(
            "answers updates with another member",
            Fails,
            "wrong score",
            of(Update, with("member", json!("ann"))),
        ),
        long(
            "answers updates with a score that no number holds",
            Fails,
            "wrong json",
            of(Update, with("score", json!("9".repeat(400)))),
        ),
        long(
            "answers updates with an empty document",
            Fails,
            "wrong json",
            of(Update, |_, _| (200, json!({}))),
        ),
    ]
}

fn reads() -> Vec<Row> {
    const RANK: &str = "wrong rank";
    let first = |member: &str, score: i64, rank: u64| json!({ "member": member, "score": score.to_string(), "rank": rank });
    vec![
        long(
            "answers a rank with another member",
            Fails,
            "wrong score|wrong rank",
            of(Rank, with("member", json!("ann"))),
        ),
        long("answers a rank of 0", Fails, RANK, of(Rank, with("rank", json!(0)))),
        row("answers a rank of 7 for each member", Fails, RANK, of(Rank, with("rank", json!(7)))),
        row("answers a rank that is 30 places too bad", Fails, RANK, of(Rank, |_, row| (200, too_bad(row))))
            .with(&["--hold", "2s"]),
        row(
            "answers every fifth update with a rank that is 30 places too bad",
            Fails,
            RANK,
            of(Update, |asked, row| (200, if asked.board.updates % 5 == 3 { too_bad(row) } else { row })),
        )
        .with(&["--hold", "2s"]),
        long("answers each update with a rank of 3", Fails, RANK, of(Update, with("rank", json!(3)))),
        long(
            "answers a rank with 10^18 and somebody",
            Fails,
            "wrong score|wrong rank",
            of(Rank, move |_, _| (200, first("nobody", 1_000_000_000_000_000, 1_000_000_000_000_000_000))),
        ),
        long("has no first members", Fails, RANK, of(Top, |_, _| page(vec![]))),
        row(
            "always has the same first member",
            Fails,
            RANK,
            of(Top, move |_, _| page(vec![first("ann", 5, 1)])),
        ),
        long(
            "has one first member with 10^15 points and no other",
            Fails,
            RANK,
            of(Top, move |_, _| page(vec![first("ann", 1_000_000_000_000_000, 1)])),
        ),
        long(
            "keeps the first members of a moment",
            Fails,
            "wrong rank|wrong score|audit",
            of(Top, |asked, told| (200, asked.board.frozen.get_or_insert(told).clone())),
        ),
        long(
            "has 100,000 first members",
            Fails,
            "wrong json",
            of(Top, move |_, _| page((1..=100_000).map(|rank| first("", 0, rank)).collect())),
        ),
        long(
            "has one member ten times",
            Fails,
            RANK,
            of(Top, move |_, _| page((1..=10).map(|rank| first("ann", 5, rank)).collect())),
        ),
        long(
            "has first members from rank 10^18 on",
            Fails,
            RANK,
            of(Top, move |_, _| {
                page(
                    (0..10)
                        .map(|at| first(&format!("a{at}"), -at, 1_000_000_000_000_000_000 + at as u64))
                        .collect(),
                )
            }),
        ),
        long(
            "has first members of rank 2^64 - 1",
            Fails,
            RANK,
            of(Top, move |_, _| page((0..10).map(|at| first(&format!("a{at}"), 0, u64::MAX)).collect())),
        ),
        long(
            "has first members with -2^63 points",
            Fails,
            RANK,
            of(Top, move |_, _| page((0..10).map(|at| first(&format!("a{at}"), i64::MIN, at)).collect())),
        ),
        long(
            "has first members whose scores grow",
            Fails,
            RANK,
            of(Top, |_, mut told| {
                if let Some(rows) = told["rows"].as_array_mut() {
                    let count = rows.len() as i64;
                    rows.iter_mut()
                        .enumerate()
                        .for_each(|(at, row)| row["score"] = json!((at as i64 - count).to_string()));
                }
                (200, told)
            }),
        ),
        long("has no neighbours of a member", Fails, RANK, of(Around, |_, _| page(vec![]))),
        long(
            "has the first members as the neighbours of all",
            Fails,
            RANK,
            of(Around, |asked, _| {
                let rows = asked.board.rows();
                page(rows.into_iter().filter(|row| row["member"] != asked.member).take(11).collect())
            }),
        ),
    ]
}

fn audits() -> Vec<Row> {
    let refused = |status: u16| move |_: &mut Asked<'_>, _: Value| (status, json!({}));
    vec![
        row("refuses to have scores read back", Unmeasured, "audit|read back", of(Standings, refused(503))),
        long(
            "knows none whose score is read back",
            Unmeasured,
            "audit|read back",
            of(Standings, refused(404)),
        ),
        long("refuses to say who has a rank", Unmeasured, "audit|read back|unread", of(At, refused(503))),
        long(
            "never says who has a rank",
            Unmeasured,
            "audit|read back|unread",
            sends(|peer, kind, told| if kind == At { peer.read_nothing() } else { peer.say(bytes(&told)) }),
        ),
        row(
            "reads back the right scores of others",
            Fails,
            "audit",
            reads_back(1, |row, _| row["member"] = json!("somebody else")),
        ),
        long("reads back nobody", Fails, "audit", of(Standings, |_, _| (200, json!({ "standings": [] })))),
        long(
            "reads back 800,000 members",
            Fails,
            "audit",
            of(Standings, |_, _| (200, json!({ "standings": vec![Value::Null; 800_000] }))),
        ),
        long(
            "reads back ranks of 2^64 - 1",
            Fails,
            "audit",
            reads_back(1, |row, _| row["rank"] = json!(u64::MAX)),
        ),
        long(
            "reads back ranks in the other order",
            Fails,
            "audit",
            reads_back(1, |row, count| {
                row["rank"] = json!(count + 1 - row["rank"].as_u64().unwrap_or_default());
            }),
        ),
        long(
            "reads back one score of ten with a point more",
            Fails,
            "audit",
            reads_back(10, |row, _| {
                let score: i64 =
                    row["score"].as_str().and_then(|score| score.parse().ok()).unwrap_or_default();
                row["score"] = json!((score + 1).to_string());
            }),
        ),
        long(
            "has another member at each rank",
            Fails,
            "audit",
            of(At, |_, mut told| {
                told["rows"][0]["member"] = json!("somebody else");
                (200, told)
            }),
        ),
        long(
            "reads back one byte in 500 ms",
            Unmeasured,
            "audit|read back",
            sends(|peer, kind, told| {
                if kind == Standings {
                    return peer.say_slowly(bytes(&told), Duration::from_millis(500));
                }
                peer.say(bytes(&told))
            }),
        ),
        long(
            "takes 900 ms for each answer that is read back",
            Passes,
            "",
            sends(|peer, kind, told| {
                if [Standings, At].contains(&kind) {
                    thread::sleep(Duration::from_millis(900));
                }
                peer.say(bytes(&told))
            }),
        ),
        long(
            "stalls within 4 MB once the load has come",
            Fails,
            "too many unfinished answers|answer never ended",
            sends(|peer, kind, told| {
                if kind != Update {
                    return peer.say(bytes(&told));
                }
                peer.say("HTTP/1.1 200 OK\r\nContent-Length: 4194000\r\n\r\n")?;
                peer.say_last(vec![b'x'; 4_193_000])
            }),
        ),
    ]
}

#[test]
fn hostile_leaderboards_do_not_pass() {
    check(&LOAD, &[updates(), reads(), audits()].into_iter().flatten().collect::<Vec<_>>());
}
