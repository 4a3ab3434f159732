//! The clients' records against a small board that answers truly, or not.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::audit::Audit;
use super::members::Members;
use super::reply;

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

    fn row(&self, name: &str, off: u64) -> String {
        match self.0.get(name) {
            Some(score) => {
                format!("{{\"member\":\"{name}\",\"score\":\"{score}\",\"rank\":{}}}", self.rank(name) + off)
            }
            None => "null".to_owned(),
        }
    }

    fn at(&self, rank: u64) -> String {
        let name = self.0.keys().find(|name| self.rank(name) == rank);
        let rows = name.map_or(String::new(), |name| self.row(name, 0));
        format!("{{\"members\":{},\"rows\":[{rows}],\"next\":null}}", self.0.len())
    }
}

/// What an update and then the audit of 50 members find: wrong scores during the load, facts checked, facts wrong.
fn play(lie: Lie, updates: &[(u32, i64)]) -> (u64, u64, u64) {
    let mut members = Members::new(50, 0);
    members.name_after(1);
    let mut board = Board::default();
    let mut wrong_updates = 0;
    for (at, &(member, points)) in updates.iter().enumerate() {
        let name = members.name(member);
        members.begin(&[(member, points)]);
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
        let row = format!("{{\"member\":\"{name}\",\"score\":\"{told}\",\"rank\":{rank}}}");
        let row = reply::row(row.as_bytes()).unwrap();
        wrong_updates += u64::from(members.settle(member, points, &row).is_err());
    }
    if lie == Lie::Forgotten {
        board.0.remove(&members.name(updates[0].0));
    }
    let mut audit = Audit::default();
    let mut random = fastrand::Rng::with_seed(3);
    let (mut checked, mut wrong) = (0, 0);
    while let Some(token) = audit.next(&members, &mut random) {
        let (method, path, body) = audit.request(token, &members);
        let answer = if method == "POST" {
            let names: serde_json::Value = serde_json::from_str(&body).unwrap();
            let names = names["members"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
            let off = |at: usize| u64::from(lie == Lie::Rank && at == 0);
            let rows: Vec<String> = names.enumerate().map(|(at, name)| board.row(name, off(at))).collect();
            format!("{{\"standings\":[{}]}}", rows.join(","))
        } else {
            let rank = path.trim_start_matches("/range?first=").trim_end_matches("&limit=1");
            board.at(rank.parse().unwrap())
        };
        let (facts, found) = audit.check(token, answer.as_bytes(), &members);
        checked += facts;
        wrong += found.map_or(0, |(count, ..)| count);
    }
    (wrong_updates, checked, wrong)
}

fn updates() -> impl Strategy<Value = Vec<(u32, i64)>> {
    proptest::collection::vec((0..50u32, 1..1000i64), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_true_board_is_found_right(updates in updates()) {
        let (during, checked, wrong) = play(Lie::None, &updates);
        prop_assert_eq!((during, wrong), (0, 0));
        prop_assert!(checked > 0);
    }

    #[test]
    fn a_lost_a_doubled_and_a_forgotten_update_are_found(updates in updates()) {
        for lie in [Lie::Lost, Lie::Twice, Lie::Forgotten] {
            let (during, _, wrong) = play(lie, &updates);
            prop_assert!(during + wrong > 0, "{:?}", lie);
        }
    }

    #[test]
    fn a_rank_that_is_off_by_one_is_found_where_ranks_are_looked_up(updates in updates()) {
        let (_, _, wrong) = play(Lie::Rank, &updates);
        // Every tenth of those that were read is looked up, the best of them first; others are found by their neighbours.
        let members: std::collections::BTreeSet<u32> = updates.iter().map(|(member, _)| *member).collect();
        prop_assert!(wrong > 0 || members.len() > 10, "{} members", members.len());
    }
}

#[test]
fn an_update_without_a_response_widens_what_is_right_and_a_refused_one_does_not() {
    let row = |members: &Members, score: i64| {
        format!("{{\"member\":\"{}\",\"score\":\"{score}\",\"rank\":1}}", members.name(0))
    };
    let mut members = Members::new(1, 0);
    members.name_after(1);
    members.begin(&[(0, 5)]);
    members.give_up(&[(0, 5)]);
    assert!(members.check(0, 0).is_ok() && members.check(0, 5).is_ok() && members.check(0, 6).is_err());
    assert_eq!(members.missing(0), None, "its only update may never have been applied");
    members.begin(&[(0, 7)]);
    members.refuse(&[(0, 7)]);
    assert!(members.check(0, 7).is_err());
    members.begin(&[(0, 1)]);
    let text = row(&members, 6);
    assert_eq!(members.settle(0, 1, &reply::row(text.as_bytes()).unwrap()), Ok(()));
    assert!(members.check(0, 6).is_ok() && members.check(0, 1).is_err(), "which of both it was is known now");
    assert!(members.missing(0).is_some());
    members.begin(&[(0, 1)]);
    let text = row(&members, 6);
    assert!(members.settle(0, 1, &reply::row(text.as_bytes()).unwrap()).is_err(), "it was lost");
}

#[test]
fn a_page_whose_ranks_or_scores_do_not_follow_is_wrong() {
    let page = |rows: &[(u64, i64)]| {
        let rows: Vec<String> = rows
            .iter()
            .map(|(rank, score)| format!("{{\"member\":\"a\",\"score\":\"{score}\",\"rank\":{rank}}}"))
            .collect();
        let text = format!("{{\"members\":9,\"rows\":[{}],\"next\":null}}", rows.join(","));
        reply::page(text.as_bytes()).unwrap().check().is_ok()
    };
    assert!(page(&[]) && page(&[(4, 9), (5, 9), (6, -1)]));
    assert!(!page(&[(4, 9), (4, 8)]) && !page(&[(4, 9), (6, 8)]) && !page(&[(4, 9), (5, 10)]));
}
