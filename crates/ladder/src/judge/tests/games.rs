//! A server that starts games and keeps its ticks passes only if it also ends them, and if its audit is not refused.

use measure::{Audit, Games};

use super::disturbed::steal;
use super::*;

/// 60 s of 40 games: `played` were played to their end in the hold in 3 s each and `failed` ended without a result.
fn games(played: u64, failed: u64) -> TrialBuilder {
    TrialBuilder::arena(40.0).edit(move |at, interval| {
        if at == 30 {
            interval.counters[0] = played;
            interval.counters[27] = failed;
        }
    })
}

#[track_caller]
fn check_games(builder: &TrialBuilder, games: Games, verdict: Verdict, signal: &str, says: &str) {
    let mut trial = builder.build();
    trial.games = Some(games);
    check_judged(&judge(&trial, None, &arena_terms()), verdict, signal, says);
}

fn ended(played: u64, unending: u64) -> Games {
    Games { played, played_ms: played * 3_000, unending }
}

#[test]
fn a_server_that_never_ends_a_game_does_not_pass() {
    let says = "32 of 32 games ended without a result";
    check_games(&games(0, 32), ended(0, 40), Fail, "games.unended", says);
    check_games(&games(800, 8), ended(800, 0), Fail, "games.unended", "8 of 808 games");
    check_games(&games(800, 4), ended(800, 0), Pass, "", "");
    // A disturbance may have delayed some; it does not explain that none ends.
    let disturbed = steal(games(800, 8), 0.1);
    check_games(&disturbed, ended(800, 0), Inconclusive, "disturbed", "8 of 808 games");
    let dead = steal(games(0, 32), 0.1);
    check_games(&dead, ended(0, 40), Fail, "games.unended", says);
}

#[test]
fn a_server_that_ends_only_the_games_that_are_watched_fails() {
    let says = "37 of 40 games ran through the whole hold of 60 s … took 3 s on average";
    check_games(&games(60, 0), ended(60, 37), Fail, "games.unended", says);
    check_games(&games(800, 0), ended(800, 2), Pass, "", "");
    let disturbed = steal(games(60, 0), 0.1);
    check_games(&disturbed, ended(60, 37), Inconclusive, "disturbed", says);
    // Games of 40 s may well outlast a hold of 60 s.
    let long = Games { played: 20, played_ms: 20 * 40_000, unending: 20 };
    check_games(&games(20, 0), long, Pass, "", "");
}

#[test]
fn a_hold_in_which_no_game_ended_says_so() {
    let says = "no game was played to its end … hold longer";
    check_games(&games(0, 0), ended(0, 40), Inconclusive, "games.unended", says);
    check_games(&games(0, 0), ended(1, 20), Fail, "games.unended", "20 of 40 games");
    let late = games(0, 0).late(0.4);
    check_games(&late, ended(0, 40), Fail, "ticks.late_share", "");
    // A hold that may lie within one game is no evidence, and is reported as such.
    let mut short = games(0, 0);
    short.hold_s = 8;
    check_games(&short, ended(0, 40), Pass, "", "");
    let mut trial = short.build();
    trial.games = Some(ended(0, 40));
    let remark = judge(&trial, None, &arena_terms()).remark.unwrap();
    assert_eq!(remark, "no game was played to its end, so nothing says that the server ends games");
    // Trials of older versions did not count it.
    passes(&games(0, 0), &arena_terms());
}

#[test]
fn a_log_that_reports_games_that_no_client_saw_end_contradicts_them() {
    let logs = |games_per_s: u64, played: u64| {
        let builder = games(played, 0);
        let mut entries = builder.entries();
        for entry in &mut entries {
            if let measure::Entry::Ticks(second) = entry {
                second.counters.push(("games_played".to_owned(), games_per_s));
            }
        }
        let mut trial = measure::Trial::from_entries(builder.build().head, &entries, 0);
        trial.games = Some(ended(played.max(1), 0));
        judge(&trial, None, &arena_terms())
    };
    let says = "480 games were played in the hold by the server's log, and its clients saw 0";
    check_judged(&logs(8, 0), Inconclusive, "inconsistent", says);
    // A log with the same count, one that counts a game once per player, and one that lags by a game everywhere.
    assert_eq!(logs(13, 800).verdict, Pass);
    assert_eq!(logs(27, 800).verdict, Pass);
    assert_eq!(logs(14, 800).verdict, Pass);
}

#[test]
fn an_audit_that_was_refused_in_part_does_not_pass() {
    let builder = TrialBuilder::asking(200.0);
    let judged = |checked: u64, wrong: u64, unread: u64| {
        let mut trial = builder.build();
        trial.audit = Some(Audit { checked, wrong, unread });
        judge(&trial, None, &terms("audit == ok, errors == 0"))
    };
    assert_eq!(judged(212, 0, 0).verdict, Pass);
    let says = "200 of 412 facts could not be read back after the hold (48.5 %)";
    check_judged(&judged(212, 0, 200), Inconclusive, "audit", says);
    assert_eq!(judged(212, 1, 200).verdict, Fail);
}
