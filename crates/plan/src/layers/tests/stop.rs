use super::*;
use crate::plan::{Axis, SubjectStop};
use crate::workloads::{LeaderboardBots, SigningKey};

fn stop_of(line: &str) -> Option<SubjectStop> {
    plan_of_flags(line).ladder.stop
}

const S: u64 = 1_000_000_000;

#[test]
fn a_subject_that_is_told_to_end_has_ten_seconds_or_what_either_side_says() {
    let stop = |grace_ns| Some(SubjectStop { after_ns: 5 * S, grace_ns, reads_back: true });
    assert_eq!(stop_of("leaderboard --stop-at 5s -- --data d"), stop(10 * S));
    assert_eq!(stop_of("leaderboard --stop-at 5s -- --data d --grace 3s"), stop(3 * S));
    let plan = plan_of_flags("leaderboard --stop-at 5s --grace 4s -- --data d");
    assert_eq!(plan.ladder.stop, stop(4 * S));
    let SubjectSource::BuiltIn { options, .. } = &plan.subject.source else { panic!("{plan:?}") };
    assert_eq!(options.join(" "), "--data d --grace 4000ms");
    assert_eq!(stop_of("leaderboard"), None);
}

#[test]
fn a_leaderboard_that_keeps_nothing_is_not_read_back_after_it_was_stopped() {
    let line = "leaderboard --stop-at 5s";
    assert_eq!(stop_of(line).map(|stop| stop.reads_back), Some(false));
    assert_eq!(objectives_of(&plan_of_flags(line)), ["response.p99 < 50ms"]);
    assert_eq!(objectives_of(&plan_of_flags("leaderboard --stop-at 5s -- --data d"))[0], "audit == ok");
    check_refused("leaderboard --stop-at 5s --objective 'audit == ok'", "-- --data DIR");
}

#[test]
fn a_stop_that_cannot_be_is_refused_with_what_to_do() {
    for (line, says) in [
        ("http://127.0.0.1:1 --stop-at 5s", "let it be started here (--start COMMAND)"),
        ("arena --stop-at 5s", "arena bots do not see how a server ends"),
        ("leaderboard --stop-at 500ms", "whole number of seconds"),
        ("leaderboard --stop-at 60s --hold 30s", "the hold lasts 30s"),
        ("leaderboard --grace 5s", "--stop-at, which is not given"),
        ("poll-loop --stop-at 1s --hold 60ticks", "the hold ends with a count"),
    ] {
        check_refused(line, says);
    }
    assert!(stop_of("http://127.0.0.1:1 --start server --stop-at 5s").is_some());
}

fn cells_of(line: &str) -> Vec<String> {
    let plan = plan_of_flags(line);
    plan.ladder.cells.iter().map(|cell| ::ladder::wording::show_cell(&cell.names)).collect()
}

#[test]
fn several_values_of_an_axis_are_cells_and_one_is_a_setting() {
    assert_eq!(cells_of("leaderboard --bulk 16,1"), ["bulk 1", "bulk 16"]);
    assert_eq!(
        cells_of("leaderboard --bulk 1,16 --requests-per-bot 1,10"),
        [
            "bulk 1 · requests per bot 1",
            "bulk 1 · requests per bot 10",
            "bulk 16 · requests per bot 1",
            "bulk 16 · requests per bot 10"
        ]
    );
    assert_eq!(cells_of("http://127.0.0.1 --reconnect-after 1,100").len(), 2);
    let plan = plan_of_flags("leaderboard --bulk 300 --reconnect-after 7");
    let bots: &LeaderboardBots = bots_of(&plan);
    assert_eq!((bots.bulk, bots.http.visit.reconnect_after, plan.ladder.cells.len()), (300, Some(7), 0));
    for (line, says) in [
        ("leaderboard --bulk 1,1", "1"),
        ("leaderboard --bulk 1,x", "x"),
        ("http://127.0.0.1 --requests-per-bot 1,2 --no-keep-alive", "no meaning without keep-alive"),
        ("poll-loop --reconnect-after 1,2", "the subject has axes of its own"),
    ] {
        check_refused(line, says);
    }
}

#[test]
fn a_rate_of_updates_is_as_many_requests_as_the_bulk_of_the_cell_asks_for() {
    let plan = plan_of_flags("leaderboard --bulk 1,100 --updates-rate 90000 --reads 10%");
    assert_eq!((plan.ladder.load_unit, plan.ladder.rungs.as_slice()), (LoadUnit::Updates, &[90_000.0][..]));
    let per_s: Vec<f64> =
        plan.ladder.cells.iter().map(|cell| plan.in_cell(&cell.names).bots.rate_per_s(90_000.0)).collect();
    // A tenth of the requests are reads.
    assert!((per_s[0] - 100_000.0).abs() < 1e-6 && (per_s[1] - 1_000.0).abs() < 1e-6, "{per_s:?}");
    assert_eq!(plan.ladder.cells[1].value_of(Axis::Bulk), Some(100));
    check_refused("leaderboard --updates-rate 1000 --reads 100%", "there are no updates");
}

#[test]
fn a_key_names_its_secret_and_cheaters_need_one() {
    let plan = plan_of_flags("leaderboard --key 'game=${GAME_KEY}' --cheaters 5% --rate 1000");
    let bots: &LeaderboardBots = bots_of(&plan);
    assert_eq!(bots.key, Some(SigningKey { id: "game".into(), secret: "${GAME_KEY}".into() }));
    assert_eq!(bots.cheaters, 0.05);
    // Only the honest ones are judged.
    assert_eq!(plan.bots.intended_per_s(1000.0), Some(950.0));
    for (line, says) in [
        ("leaderboard --cheaters 5%", "--key ID=${NAME}"),
        ("leaderboard --key game=5a5a5a5a", "the secret itself is not taken"),
        ("leaderboard --key 'x${GAME_KEY}'", "ID=${NAME}"),
        ("leaderboard --key 'game=${GAME_KEY}' --cheaters 100%", "some of the requests must be honest"),
    ] {
        let refused = refusal(line);
        assert!(refused.contains(says) && !refused.contains("5a5a5a5a"), "{line}: {refused}");
    }
}
