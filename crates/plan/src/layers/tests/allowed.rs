use super::*;
use ::ladder::Allowed;

const OWN: &str = "deliveries.lost == 0, deliveries.latency.p99 < 50ms";

#[test]
fn a_usual_limit_on_a_latency_allows_for_the_emulated_network_and_one_that_was_said_does_not() {
    for (line, expected) in [
        ("chat --network latency=80ms", "deliveries.lost == 0, deliveries.latency.p99 < 130ms"),
        ("leaderboard --network 'latency=80ms jitter=5ms loss=1%'", "audit == ok, response.p99 < 740ms"),
        ("grid --network latency=80ms --objective 'response.p99 < 50ms'", "response.p99 < 50ms"),
        ("arena --network 4g", "ticks.late_share < 25%"),
    ] {
        let objectives = objectives_of(&plan_of_flags(line)).join(", ");
        assert!(objectives.starts_with(expected), "{line}: {objectives}");
    }
}

#[test]
fn a_hold_in_which_hardly_anything_can_come_back_is_refused() {
    plan_of_flags("grid --network latency=3s --hold 6s");
    check_refused(
        "grid --network latency=3s --hold 5s",
        "a hold of 5 s is shorter than two round trips of this network, the slowest of which take 3 s; hold longer (--hold 6s)",
    );
    check_refused("grid --network 'latency=10s loss=1%'", "a hold of 30 s is shorter");
}

#[test]
fn what_a_workload_forbids_is_asked_beside_all_other_objectives_unless_it_is_allowed_or_said() {
    for (line, expected) in [
        ("chat", &format!("{OWN}, deliveries.duplicated == 0, refused == 0")),
        ("chat --allow duplicates", &format!("{OWN}, refused == 0")),
        ("chat --allow errors --allow duplicates --allow errors", &OWN.to_owned()),
        (
            "chat --objective deliveries.late==0",
            &"deliveries.late == 0, deliveries.duplicated == 0, refused == 0".into(),
        ),
        ("chat --objective deliveries.duplicated<9", &"deliveries.duplicated < 9, refused == 0".into()),
        ("chat --objective errors.share<5%", &"errors.share < 5%, deliveries.duplicated == 0".into()),
        ("tcp://127.0.0.1 --bots echo", &"errors == 0, late.share <= 1%".into()),
        ("tcp://127.0.0.1 --bots echo --allow late", &"errors == 0".into()),
        ("tcp://127.0.0.1 --bots echo --objective late<9", &"late < 9".into()),
        ("http://127.0.0.1 --allow missing-captures", &"errors == 0".into()),
        ("arena", &"ticks.late_share < 25%".into()),
    ] {
        assert_eq!(&objectives_of(&plan_of_flags(line)).join(", "), expected, "{line}");
    }
    let goals = "chat --search --goal 'deliveries.lost == 0' --allow errors";
    let search = plan_of_flags(goals).ladder.search.unwrap();
    let goal: Vec<String> = search.goals[0].iter().map(ToString::to_string).collect();
    assert_eq!(goal, ["deliveries.lost == 0", "deliveries.duplicated == 0"]);
}

#[test]
fn what_is_allowed_is_kept_with_the_plan_and_given_to_the_clients() {
    let plan = plan_of_flags("http://127.0.0.1 --allow missing-captures");
    assert_eq!(plan.allowed, [Allowed::MissingCaptures]);
    let stored = serde_json::to_string(&plan).unwrap();
    assert!(stored.contains(r#""allowed":["missing-captures"]"#), "{stored}");
    let file = plan_of("subject: chat\nallow: [duplicates, errors]\n");
    assert_eq!(file.allowed, [Allowed::Duplicates, Allowed::Errors]);
}

#[test]
fn what_cannot_be_allowed_is_refused() {
    check_refused("chat --allow duplicate", "did you mean duplicates?");
    check_refused("chat --allow everything", "known: duplicates, late, errors, missing-captures");
    check_refused(
        "chat --allow late",
        "there is nothing to allow: chat bots fail no rung because of \"late\"",
    );
    check_refused("leaderboard --allow missing-captures", "there is nothing to allow");
}
