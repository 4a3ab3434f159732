//! The clients' records against a small board that answers correctly, or not.

use std::collections::BTreeMap;

use proptest::prelude::*;

use serde_json::{Value, json};

use super::audit::Audit;
use super::dialect::{Ask, Dialect, Json, Messages, Over};
use super::members::Members;
use super::reply::{First, Standing};
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
    /// all members have the same rank
    OneRank,
    /// a row carries the name of another member
    Name,
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
        let schema = Schema::of_text(
            "leaderboard.proto",
            include_str!("../../../../servers/leaderboard-service/proto/leaderboard.proto"),
        );
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
        // A server that loses an update, or applies it twice, still acknowledges it normally.
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
                let mut rows = names.iter().enumerate().map(told).collect::<Vec<_>>();
                match lie {
                    Lie::OneRank => {
                        rows.iter_mut().filter_map(|row| row.1.as_mut()).for_each(|told| told.1 = 7)
                    }
                    Lie::Name => rows[0].0 = "somebody",
                    _ => {}
                }
                spoken.standings(&rows)
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
        // Every tenth of the members read is looked up, the best of them first; others are found by their neighbours.
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
    let is_right = |members: &Members, score: i64| members.check(0, &standing(score)).is_ok();
    assert!(is_right(&members, 0) && is_right(&members, 5) && !is_right(&members, 6));
    assert_eq!(members.missing(0), None, "its only update may never have been applied");
    assert!(members.begin(0));
    members.refuse(&[(0, 7)]);
    assert!(!is_right(&members, 7));
    assert!(members.begin(0));
    assert_eq!(members.settle(0, 1, &standing(6)), Ok(()));
    assert!(is_right(&members, 6) && !is_right(&members, 1), "which of both it was is known now");
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
        let names = ["a", "b", "c"];
        let named = |(name, &(rank, score)): (&&'static str, &(u64, i64))| (*name, score, rank);
        let rows: Vec<(&str, i64, u64)> = names.iter().zip(rows).map(named).collect();
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

/// 250 updated members of 300, and an audit that gives up each step for which `refuses` says so: how often facts were
/// requested without an answer, facts read, and facts unread.
fn audited(refuses: impl Fn(&Ask, u64) -> bool) -> (u64, u64, u64) {
    let dialect = Spoken::Json.dialect();
    let mut members = Members::new(300, 0);
    members.name_after(1);
    let mut board = Board::default();
    for member in 0..250 {
        members.begin(member);
        board.0.insert(members.name(member), 5);
        assert_eq!(members.settle(member, 5, &Standing { member: None, score: 5, rank: 1 }), Ok(()));
    }
    let mut audit = Audit::default();
    let mut random = fastrand::Rng::with_seed(3);
    let (mut refused, mut checked) = (0, 0);
    while let Some(token) = audit.next(&members, &mut random) {
        let ask = audit.request(token, &members);
        if refuses(&ask, refused) {
            refused += 1;
            audit.give_up(token);
            continue;
        }
        let answer = match ask {
            Ask::Standings(names) => {
                let told = |name: &'_ String| board.standing(name, 0);
                let rows: Vec<_> = names.iter().map(|name| (name.as_str(), told(name))).collect();
                Spoken::Json.standings(&rows)
            }
            Ask::At(rank) => {
                let row = board.at(rank).map(|(name, score)| (name, score, rank));
                Spoken::Json.page(&row.into_iter().collect::<Vec<_>>())
            }
            other => panic!("{other:?} is not asked by an audit"),
        };
        let (facts, found) = audit.check(token, &dialect, &answer, &members);
        assert_eq!(found, None);
        checked += facts;
    }
    audit.end();
    (refused, checked, audit.take_unread())
}

#[test]
fn what_a_service_refuses_to_tell_an_audit_is_asked_for_once_more_and_then_counted() {
    // Three requests for the scores of 250 members, 247 comparisons of their ranks, and 30 look-ups.
    assert_eq!(audited(|_, _| false), (0, 250 + 247 + 30, 0));
    assert_eq!(audited(|_, refused| refused == 0), (1, 250 + 247 + 30, 0));
    let mut members = Members::new(300, 0);
    members.name_after(1);
    let lost = members.name(7);
    let asks_for_it = |ask: &Ask, _| matches!(ask, Ask::Standings(names) if names.contains(&lost));
    let (refused, checked, unread) = audited(asks_for_it);
    assert_eq!(
        (refused, checked + unread < 250 + 247 + 30, unread >= 50),
        (2, true, true),
        "{checked} {unread}"
    );
}

#[test]
fn an_audit_that_the_end_of_the_trial_cuts_short_counts_what_is_left() {
    let mut members = Members::new(250, 0);
    members.name_after(1);
    for member in 0..250 {
        members.begin(member);
        members.give_up(&[(member, 1)]);
    }
    let mut audit = Audit::default();
    audit.end();
    assert_eq!(audit.take_unread(), 0, "it never began");
    let mut audit = Audit::default();
    assert!(audit.next(&members, &mut fastrand::Rng::with_seed(3)).is_some());
    audit.end();
    assert_eq!((audit.take_unread(), audit.take_unread()), (250, 0));
}

#[test]
fn an_audit_finds_a_row_with_another_name_and_never_more_faults_than_facts() {
    let updates: Vec<(u32, i64)> = (0..50).map(|member| (member, 1 + i64::from(member))).collect();
    let (_, _, wrong) = play(Spoken::Json, Lie::Name, &updates);
    assert!(wrong > 0);
    for lie in [Lie::OneRank, Lie::Lost, Lie::Rank] {
        let (_, checked, wrong) = play(Spoken::Json, lie, &updates);
        assert!(wrong > 0 && wrong <= checked, "{lie:?}: {wrong} of {checked}");
    }
}

#[test]
fn a_read_is_held_against_what_was_acknowledged_when_it_was_sent_and_about_whom_it_is() {
    let mut members = Members::new(3, 0);
    members.name_after(1);
    let own =
        |members: &Members, score: i64| Standing { member: Some(members.name(2).into()), score, rank: 1 };
    let before = members.known(2);
    members.begin(2);
    let acknowledged = own(&members, 9);
    assert_eq!(members.settle(2, 9, &acknowledged), Ok(()));
    let after = members.known(2);
    assert!(members.check_during_load(before, &own(&members, 0)).is_ok());
    assert!(members.check_during_load(after, &own(&members, 0)).is_err());
    assert!(members.check_during_load(after, &own(&members, 9)).is_ok());
    let other = Standing { member: Some(members.name(1).into()), ..own(&members, 9) };
    assert!(members.check_during_load(after, &other).is_err());
}

#[test]
fn a_rank_that_is_too_good_is_found_and_no_true_one() {
    let mut members = Members::new(50, 0);
    members.name_after(1);
    let mut board = Board::default();
    let mut random = fastrand::Rng::with_seed(7);
    let (mut far_behind, mut found) = (0, 0);
    for _ in 0..2_000 {
        let (member, points) = (random.u32(..50), random.i64(1..=1_000));
        let (name, passes) = (members.name(member), members.passes());
        members.begin(member);
        *board.0.entry(name.clone()).or_default() += points;
        let told = |name: &str| Standing { member: None, score: board.0[name], rank: board.rank(name) };
        let standing = told(&name);
        assert_eq!(members.settle(member, points, &standing), Ok(()));
        assert_eq!(members.check_rank(member, passes, &standing), Ok(()));
        far_behind += u64::from(standing.rank > 25);
        let lie = Standing { rank: 7, ..standing };
        found += u64::from(members.check_rank(member, passes, &lie).is_err());
        let known = members.known(random.u32(..50));
        if let Some((score, rank)) = board.standing(&members.name(known.member), 0) {
            let read = Standing { member: None, score, rank };
            assert_eq!(members.check_rank(known.member, known.passes, &read), Ok(()));
        }
    }
    assert!(far_behind > 500 && found > far_behind / 2, "{found} of {far_behind}");
    let first = members.name(0);
    let last = Standing { member: None, score: 1, rank: 0 };
    assert!(members.check_rank(0, 0, &last).is_err_and(|text| text == format!("{first} has rank 0")));
}

#[test]
fn a_score_that_was_denied_says_nothing_of_other_members() {
    let mut members = Members::new(2, 0);
    members.name_after(1);
    let told = |score: i64, rank: u64| Standing { member: None, score, rank };
    members.begin(0);
    assert_eq!(members.settle(0, 1_000, &told(1_000, 1)), Ok(()));
    members.begin(0);
    assert!(members.settle(0, 5_000, &told(1_000, 1)).is_err(), "it was lost");
    assert_eq!(members.first(2).score, 1_000);
    for _ in 0..100 {
        members.begin(1);
        let score = members.known(1).least + 10;
        let passes = members.passes();
        assert_eq!(members.settle(1, 10, &told(score, 1)), Ok(()));
        assert_eq!(members.check_rank(1, passes, &told(score, 1)), Ok(()), "{score}");
    }
}

#[test]
fn a_page_must_be_the_one_that_was_asked_for() {
    let body = |rows: &[(&str, i64, u64)]| Spoken::Json.page(rows);
    let dialect = Spoken::Json.dialect();
    let begins = |rows: &[(&str, i64, u64)], least: usize, score: i64| {
        dialect.page(&body(rows)).unwrap().begins_the_board(First { rows: least, score }).is_ok()
    };
    assert!(begins(&[("a", 9, 1), ("b", 8, 2)], 2, 9) && begins(&[("a", 9, 1)], 0, 0) && begins(&[], 0, 0));
    assert!(!begins(&[("a", 9, 2)], 0, 0) && !begins(&[], 1, 1));
    assert!(!begins(&[("a", 9, 1)], 1, 10), "a higher score was acknowledged");
    assert!(!begins(&[("a", 9, 1)], 2, 9), "two members were acknowledged");
    let check = |rows: &[(&str, i64, u64)]| dialect.page(&body(rows)).unwrap().check().is_ok();
    assert!(check(&[("a", 9, 1), ("b", 8, 2)]));
    assert!(!check(&[("a", 9, 0)]) && !check(&[("a", 9, 1), ("a", 8, 2)]));
    let of = |name: &str| {
        dialect.page(&body(&[("a", 9, 4), ("b", 8, 5)])).unwrap().standing_of(name).map(|one| one.score)
    };
    assert!(of("b") == Ok(8) && of("c").is_err());
}

/// Entries of a few bytes each, which would take many times as much in a list.
#[test]
fn a_response_of_far_too_many_rows_is_refused_before_they_take_memory() {
    let most = super::dialect::ROWS_MOST;
    let nulls = |count: usize| format!(r#"{{"standings":[{}null]}}"#, "null,".repeat(count - 1)).into_bytes();
    let json = Spoken::Json.dialect();
    assert_eq!(json.standings(&nulls(most)).unwrap().len(), most);
    let text = json.standings(&nulls(800_000)).unwrap_err();
    assert!(text.starts_with("a list of more than 10000 entries"), "{text}");
    let parts = format!(r#"{{"leaderboards":[{}{{"scores":[]}}]}}"#, r#"{"scores":[]},"#.repeat(100_000));
    assert!(json.bulk(parts.as_bytes()).is_err());
    // An empty message of field 1.
    let grpc = Spoken::Grpc.dialect();
    let field = Spoken::Grpc.standings(&[("a", None)]);
    assert_eq!((field.len(), grpc.standings(&field.repeat(most)).unwrap().len()), (2, most));
    let text = grpc.standings(&field.repeat(2_000_000)).unwrap_err();
    assert_eq!(text, "a list of more than 10000 entries");
}
