//! The clients' records against a small board that answers truly, or not.

use std::collections::BTreeMap;

use proptest::prelude::*;

use serde_json::{Value, json};

use super::audit::Audit;
use super::dialect::{Ask, Dialect, Json, Messages, Over};
use super::members::Members;
use super::reply::Standing;
use crate::protobuf::{Schema, Template};

/// What is planted in the board.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    None,
    /// one acknowledged increment is not applied
    Lost,
    /// one is applied twice
    Twice,
    /// one rank is off by one
    Rank,
    /// one member is forgotten
    Forgotten,
}

/// Scores by name; larger ones first, equal ones by name.
#[derive(Default)]
struct Board(BTreeMap<String, i64>);

impl Board {
    fn rank(&self, name: &str) -> u64 {
        let own = (-self.0[name], name);
        1 + self.0.iter().filter(|(other, score)| (-**score, other.as_str()) < own).count() as u64
    }

    /// The answer about a member, its rank wrong by `off`; `None`: there is no such member.
    fn standing(&self, name: &str, off: u64) -> Option<(i64, u64)> {
        Some((*self.0.get(name)?, self.rank(name) + off))
    }

    fn at(&self, rank: u64) -> Option<(&str, i64)> {
        let (name, score) = self.0.iter().find(|(name, _)| self.rank(name) == rank)?;
        Some((name, *score))
    }
}

/// How a board's answers are written, besides how they are read.
#[derive(Clone, Copy, Debug)]
enum Spoken {
    Json,
    WebSocket,
    Grpc,
}

impl Spoken {
    fn dialect(self) -> Dialect {
        match self {
            Spoken::Json => Dialect::Json(Json::new("", "main")),
            Spoken::WebSocket => Dialect::of_messages(Messages::new(Over::WebSocket, "main")),
            Spoken::Grpc => Dialect::of_messages(Messages::new(Over::Grpc, "main")),
        }
    }

    /// A result: `json` over HTTP, or the message of this name within its field of `Response`.
    fn answer(self, field: &str, name: &str, message: Value, json: Value) -> Vec<u8> {
        let schema =
            Schema::of_text("leaderboard.proto", include_str!("../../../../servers/proto/leaderboard.proto"));
        let encoded = |name: &str, value: &Value| {
            let message = schema.as_ref().unwrap().message(name).unwrap();
            let mut out = Vec::new();
            Template::compile(&message, value, &[""; 0]).unwrap().render(&mut out, &|_| "");
            out
        };
        match self {
            Spoken::Json => json.to_string().into_bytes(),
            Spoken::Grpc => encoded(name, &message),
            Spoken::WebSocket => encoded("Response", &json!({"id": 1, field: message})),
        }
    }

    fn update(self, name: &str, score: i64, rank: u64) -> Vec<u8> {
        let row = json!({"member": name, "score": score.to_string(), "rank": rank});
        self.answer("standing", "Standing", json!({"number": score, "rank": rank}), row)
    }

    fn standings(self, members: &[(&str, Option<(i64, u64)>)]) -> Vec<u8> {
        let message = |(_, told): &(&str, Option<(i64, u64)>)| match told {
            Some((score, rank)) => json!({"number": score, "rank": rank}),
            None => json!({}),
        };
        let row = |(name, told): &(&str, Option<(i64, u64)>)| match told {
            Some((score, rank)) => json!({"member": name, "score": score.to_string(), "rank": rank}),
            None => json!(null),
        };
        let messages: Vec<Value> = members.iter().map(message).collect();
        let rows: Vec<Value> = members.iter().map(row).collect();
        self.answer("standings", "Standings", json!({"standings": messages}), json!({"standings": rows}))
    }

    fn page(self, rows: &[(&str, i64, u64)]) -> Vec<u8> {
        let message =
            |(name, score, rank): &(&str, i64, u64)| json!({"member": name, "number": score, "rank": rank});
        let row = |(name, score, rank): &(&str, i64, u64)| json!({"member": name, "score": score.to_string(), "rank": rank});
        let messages: Vec<Value> = rows.iter().map(message).collect();
        let rows: Vec<Value> = rows.iter().map(row).collect();
        let json = json!({"members": 9, "rows": rows, "next": null});
        self.answer("page", "Page", json!({"members": 9, "rows": messages}), json)
    }
}

/// What an update and then the audit of 50 members find: wrong scores during the load, facts checked, facts wrong.
fn play(spoken: Spoken, lie: Lie, updates: &[(u32, i64)]) -> (u64, u64, u64) {
    let dialect = spoken.dialect();
    let mut members = Members::new(50, 0);
    members.name_after(1);
    let mut board = Board::default();
    let mut wrong_updates = 0;
    for (at, &(member, points)) in updates.iter().enumerate() {
        let name = members.name(member);
        members.begin(member);
        let is_planted = at == updates.len() / 2;
        let applied = match lie {
            Lie::Lost if is_planted => 0,
            Lie::Twice if is_planted => 2 * points,
            _ => points,
        };
        let told = board.0.get(&name).copied().unwrap_or(0) + points;
        *board.0.entry(name.clone()).or_default() += applied;
        // A server that loses an update, or applies it twice, still acknowledges it as if all were well.
        let rank = board.rank(&name);
        let body = spoken.update(&name, told, rank);
        let standing = dialect.standing(&body).unwrap();
        wrong_updates += u64::from(members.settle(member, points, &standing).is_err());
    }
    if lie == Lie::Forgotten {
        board.0.remove(&members.name(updates[0].0));
    }
    let mut audit = Audit::default();
    let mut random = fastrand::Rng::with_seed(3);
    let (mut checked, mut wrong) = (0, 0);
    while let Some(token) = audit.next(&members, &mut random) {
        let answer = match audit.request(token, &members) {
            Ask::Standings(names) => {
                let off = |at: usize| u64::from(lie == Lie::Rank && at == 0);
                let told = |(at, name)| (String::as_str(name), board.standing(name, off(at)));
                spoken.standings(&names.iter().enumerate().map(told).collect::<Vec<_>>())
            }
            Ask::At(rank) => {
                let row = board.at(rank).map(|(name, score)| (name, score, rank));
                spoken.page(&row.into_iter().collect::<Vec<_>>())
            }
            other => panic!("{other:?} is not asked by an audit"),
        };
        let (facts, found) = audit.check(token, &dialect, &answer, &members);
        checked += facts;
        wrong += found.map_or(0, |(count, ..)| count);
    }
    (wrong_updates, checked, wrong)
}

fn spoken() -> impl Strategy<Value = Spoken> {
    prop_oneof![Just(Spoken::Json), Just(Spoken::WebSocket), Just(Spoken::Grpc)]
}

fn updates() -> impl Strategy<Value = Vec<(u32, i64)>> {
    proptest::collection::vec((0..50u32, 1..1000i64), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_true_board_is_found_right(spoken in spoken(), updates in updates()) {
        let (during, checked, wrong) = play(spoken, Lie::None, &updates);
        prop_assert_eq!((during, wrong), (0, 0));
        prop_assert!(checked > 0);
    }

    #[test]
    fn a_lost_a_doubled_and_a_forgotten_update_are_found(spoken in spoken(), updates in updates()) {
        for lie in [Lie::Lost, Lie::Twice, Lie::Forgotten] {
            let (during, _, wrong) = play(spoken, lie, &updates);
            prop_assert!(during + wrong > 0, "{:?} {:?}", spoken, lie);
        }
    }

    #[test]
    fn a_rank_that_is_off_by_one_is_found_where_ranks_are_looked_up(spoken in spoken(), updates in updates()) {
        let (_, _, wrong) = play(spoken, Lie::Rank, &updates);
        // Every tenth of those that were read is looked up, the best of them first; others are found by their neighbours.
        let members: std::collections::BTreeSet<u32> = updates.iter().map(|(member, _)| *member).collect();
        prop_assert!(wrong > 0 || members.len() > 10, "{} members", members.len());
    }
}

#[test]
fn an_update_without_a_response_widens_what_is_right_and_a_refused_one_does_not() {
    let standing = |score: i64| Standing { member: None, score, rank: 1 };
    let mut members = Members::new(1, 0);
    members.name_after(1);
    assert!(members.begin(0));
    members.give_up(&[(0, 5)]);
    assert!(members.check(0, 0).is_ok() && members.check(0, 5).is_ok() && members.check(0, 6).is_err());
    assert_eq!(members.missing(0), None, "its only update may never have been applied");
    assert!(members.begin(0));
    members.refuse(&[(0, 7)]);
    assert!(members.check(0, 7).is_err());
    assert!(members.begin(0));
    assert_eq!(members.settle(0, 1, &standing(6)), Ok(()));
    assert!(members.check(0, 6).is_ok() && members.check(0, 1).is_err(), "which of both it was is known now");
    assert!(members.missing(0).is_some());
    assert!(members.begin(0));
    assert!(members.settle(0, 1, &standing(6)).is_err(), "it was lost");
    let other = Standing { member: Some("other".into()), ..standing(8) };
    assert!(members.begin(0));
    assert!(members.settle(0, 1, &other).is_err(), "it is another member's");
}

#[test]
fn a_page_whose_ranks_or_scores_do_not_follow_is_wrong() {
    let is_right = |spoken: Spoken, rows: &[(u64, i64)]| {
        let rows: Vec<(&str, i64, u64)> = rows.iter().map(|&(rank, score)| ("a", score, rank)).collect();
        spoken.dialect().page(&spoken.page(&rows)).unwrap().check().is_ok()
    };
    let page = |rows: &[(u64, i64)]| {
        let all = [Spoken::Json, Spoken::WebSocket, Spoken::Grpc].map(|spoken| is_right(spoken, rows));
        assert!(all[0] == all[1] && all[1] == all[2], "{rows:?}: {all:?}");
        all[0]
    };
    assert!(page(&[]) && page(&[(4, 9), (5, 9), (6, -1)]));
    assert!(!page(&[(4, 9), (4, 8)]) && !page(&[(4, 9), (6, 8)]) && !page(&[(4, 9), (5, 10)]));
    // No rank follows the largest number.
    assert!(!page(&[(u64::MAX, 9), (0, 9)]) && !page(&[(u64::MAX, 9), (u64::MAX, 9)]));
}
