//! Several sources of ticks: the first is judged, and what does not go together is refused.

use super::*;

const REST: &str = "http://127.0.0.1:1 --rate 9";

fn sources(plan: &Plan) -> Vec<String> {
    plan.subject.tick_sources().map(ToString::to_string).collect()
}

#[test]
fn the_first_source_is_judged_and_the_others_are_compared_whichever_way_they_were_said() {
    let metrics = "openmetrics=http://127.0.0.1:9100/metrics#tick_seconds";
    let flags = format!("{REST} --tick-rate 30 --ticks {metrics} --ticks statsd=:8125 --ticks log=a.log");
    let expected = [metrics, "statsd=127.0.0.1:8125", "log=a.log"];
    assert_eq!(sources(&plan_of_flags(&flags)), expected);
    let file = |ticks: &str| {
        plan_of(&format!(
            "subject:\n  target: http://127.0.0.1:1\n  tick_rate: 30\n  ticks: {ticks}\nladder: {{ rate: [9] }}\n"
        ))
    };
    let listed = "[{ openmetrics: http://127.0.0.1:9100/metrics#tick_seconds }, { statsd: \":8125\" }, { log: a.log }]";
    assert_eq!(sources(&file(listed)), expected);
    assert_eq!(sources(&file("[statsd=:8125, { log: a.log }]")), ["statsd=127.0.0.1:8125", "log=a.log"]);
    assert_eq!(sources(&file("{ log: a.log }")), ["log=a.log"]);
    // A flag stands for all of the file's.
    let text = "subject: { target: arena, ticks: [log, client] }\n";
    assert_eq!(sources(&plan_of(text)), ["log", "client"]);
    let plan = plan_over("scenarios/x.yaml --ticks client", text);
    assert_eq!(sources(&plan), ["client"]);
    // The clients' view as a further source has them ask for snapshots.
    let plan = plan_of_flags("ws://127.0.0.1:1 --ticks log=a --ticks client");
    assert_eq!(bots_of::<ArenaBots>(&plan).snapshots, 0.01);
}

#[test]
fn the_profiles_of_a_go_server_are_asked_for_on_this_machine_only() {
    let here = "http://127.0.0.1:6060/debug/pprof/";
    for (said, expected) in [
        ("http://localhost:6060", here),
        (here, here),
        ("http://[::1]:6060/internal/pprof", "http://[::1]:6060/internal/pprof/"),
    ] {
        let plan = plan_of_flags(&format!("{REST} --profile --pprof {said}"));
        assert_eq!(plan.pprof.as_ref().map(ToString::to_string).as_deref(), Some(expected));
    }
    let what = "is no address of Go's pprof, as http://127.0.0.1:6060/debug/pprof/ is";
    for (said, why) in [
        (
            "http://10.0.0.1:6060/",
            "the server's process is on this machine, so its address is localhost, 127.0.0.1 or [::1]",
        ),
        ("https://127.0.0.1:6060/", "only http:// is asked"),
        (":6060", "only http:// is asked"),
    ] {
        check(
            &format!("{REST} --pprof {said}"),
            &format!("--pprof: \"{said}\" {what}: {why} (for example: --pprof {here})"),
        );
    }
}

#[test]
fn sources_that_do_not_go_together_are_refused() {
    let same = "is read already, and a source cannot check itself; leave one of them out";
    for (ticks, wrong) in [
        ("--ticks log=a.log --ticks jsonl=./a.log", &format!("log=a.log {same}")),
        (
            "--ticks statsd=:8125/a --ticks statsd=127.0.0.1:8125/b",
            &format!("statsd=127.0.0.1:8125/a {same}"),
        ),
        (
            "--ticks openmetrics=http://127.0.0.1:9/m#a --ticks openmetrics=http://127.0.0.1:9/m#b",
            &format!("openmetrics=http://127.0.0.1:9/m#a {same}"),
        ),
        (
            "--ticks none --ticks log=a",
            &"none says that the server has no ticks; leave it out, or the other sources".to_owned(),
        ),
        (
            "--ticks log=a --ticks log=b --ticks log=c --ticks log=d --ticks log=e",
            &"at most 4 sources of ticks are compared; leave out the others".to_owned(),
        ),
    ] {
        check(&format!("{REST} --tick-rate 30 {ticks}"), &format!("--ticks: {wrong}"));
    }
    check_refused("arena --ticks log=a --ticks log=b", same);
    check_refused("arena --ticks log --ticks statsd=:8125", "a built-in server writes its ticks as a log");
    let rate = "several sources of ticks are compared at one tick rate; say it, as with --tick-rate 30";
    check_refused(&format!("{REST} --ticks statsd=:8125 --ticks log=a"), rate);
    check_refused(&format!("{REST} --ticks log=a --ticks client"), "nothing tells them");
}

#[test]
fn a_mapping_names_one_source() {
    let wrong = |second: &str| {
        format!(
            "5: subject.ticks: \"log\" stands here already, and a mapping names one; for both write a list: [{{ log: … }}, \
             {{ {second}: … }}]"
        )
    };
    let file = |ticks: &str| {
        format!("subject:\n  target: http://127.0.0.1:1\n  ticks:\n{ticks}ladder: {{ rate: [9] }}\n")
    };
    check_file(&file("    log: a.log\n    statsd: :8125\n"), &wrong("statsd"));
    check_file(&file("  - log: a.log\n    jsonl: b\n"), &wrong("jsonl"));
}
