use super::*;
use crate::plan::Cell;
use crate::workloads::{HttpBots, HttpModel};

/// The cells of a sweep, one per line: names, options, request.
fn cells_of(plan: &Plan) -> Vec<String> {
    let shown = |cell: &Cell| {
        let names: Vec<&str> =
            ["service", "view", "priority", "locality"].map(|axis| cell.names[axis].as_str()).into();
        format!(
            "{} [{}] {}",
            names.join(" "),
            cell.options.join(" "),
            cell.request.expect("one of the services")
        )
    };
    plan.ladder.cells.iter().map(shown).collect()
}

const SWEEP: &str =
    "poll-loop --services root --views background --priorities below-normal --localities none";

#[test]
fn climb_poll_loop_needs_nothing_else() {
    let plan = plan_of_flags("poll-loop");
    assert_eq!(
        plan.subject,
        Subject {
            name: "poll-loop".into(),
            source: SubjectSource::BuiltIn { server: "poll-loop".into(), options: Vec::new() },
            ticks: TickSource::Log(None),
            compared_ticks: Vec::new(),
            tick_rate_hz: 30.0,
        }
    );
    let http: &HttpBots = bots_of(&plan);
    assert_eq!(http.model, HttpModel::Closed { think_ns: 0 });
    let names: Vec<&str> = http.requests.iter().map(|request| request.name.as_str()).collect();
    assert_eq!(names, ["root", "pilot", "force-field", "ihost", "objects", "object", "script", "property"]);
    assert_eq!(plan.ladder.rungs, (1..=20).map(f64::from).collect::<Vec<_>>());
    assert_eq!((plan.ladder.settle_ns, plan.ladder.hold), (500_000_000, HoldLength::Time(2_000_000_000)));
    assert_eq!((plan.ladder.ramp, plan.arrivals), (RampRule::Pace(Ramp::AtOnce), Arrivals::Closed));
    assert_eq!(plan.objectives[0].to_string(), "errors == 0");
    assert_eq!(
        cells_of(&plan),
        [
            "root background normal moderate [--locality moderate] 0",
            "object background normal moderate [--locality moderate] 5",
            "root foreground normal moderate [--locality moderate --foreground] 0",
            "object foreground normal moderate [--locality moderate --foreground] 5",
            "root foreground below-normal moderate [--locality moderate --foreground --priority below-normal] 0",
            "object foreground below-normal moderate [--locality moderate --foreground --priority below-normal] 5",
        ]
    );
}

#[test]
fn the_whole_sweep_has_every_combination_once() {
    let plan = plan_of_flags("poll-loop --services all --views all --priorities all --localities all");
    let cells = cells_of(&plan);
    assert_eq!(cells.len(), 8 * 2 * 2 * 3);
    let distinct: std::collections::BTreeSet<&String> = cells.iter().collect();
    assert_eq!(distinct.len(), cells.len());
    let restarts = plan.ladder.cells.windows(2).filter(|pair| pair[0].options != pair[1].options).count();
    assert_eq!(restarts, 2 * 2 * 3 - 1, "services come innermost, so that the server restarts rarely");
}

#[test]
fn an_axis_alone_takes_the_usual_values_of_the_others() {
    let cells = |line: &str| cells_of(&plan_of_flags(line)).join("; ");
    assert_eq!(
        cells("poll-loop --services root --views background"),
        "root background normal moderate [--locality moderate] 0"
    );
    assert_eq!(
        cells("poll-loop --services root --priorities below-normal"),
        "root foreground below-normal moderate [--locality moderate --foreground --priority below-normal] 0"
    );
    assert_eq!(cells(SWEEP), "root background below-normal none [--locality none --priority below-normal] 0");
}

#[test]
fn what_the_servers_options_say_is_no_axis() {
    let options = "-- --slots 7 --foreground --locality=high --tick-rate 20";
    let plan = plan_of_flags(&format!("poll-loop --services pilot --rate 100 {options}"));
    assert_eq!(plan.subject.tick_rate_hz, 20.0);
    assert_eq!(plan.arrivals, Arrivals::Poisson, "a sweep may have a rate too");
    assert_eq!(
        cells_of(&plan),
        [
            "pilot foreground normal high [] 1",
            "pilot foreground below-normal high [--priority below-normal] 1"
        ]
    );
    check(
        &format!("{SWEEP} {options}"),
        "--views: the server's options say --foreground already, so views cannot be swept; leave one of them out
         --localities: the server's options say --locality already, so localities cannot be swept; leave one of them \
           out",
    );
}

#[test]
fn a_scenario_sweeps_too_and_may_ask_for_its_own_pages() {
    let plan = plan_of(
        "subject: poll-loop\nladder: { services: [root, pilot], views: background, localities: [none, high], requesters: \
         1.. }\n",
    );
    assert!(plan.ladder.is_open_ended);
    assert_eq!(
        cells_of(&plan),
        [
            "root background normal none [--locality none] 0",
            "pilot background normal none [--locality none] 1",
            "root background normal high [--locality high] 0",
            "pilot background normal high [--locality high] 1",
        ]
    );
    let own = "subject: poll-loop\nbots: { kind: http, requests: [{ name: mine, get: /pilot }] }\n";
    assert!(plan_of(own).ladder.cells.is_empty(), "own requests are asked by their weights");
    let swept = plan_of(&format!("{own}ladder: {{ views: background }}\n"));
    assert_eq!(cells_of(&swept), ["mine background normal moderate [--locality moderate] 0"]);
}

#[test]
fn axes_with_strange_values_are_refused() {
    check_refusals(
        "$ climb poll-loop --services rot,root,root --views fore --priorities high --localities ''
           --services: \"rot\" is unknown; known: root, pilot, force-field, ihost, objects, object, script, property, \
             or all; did you mean root? (for example: --services root,object)
           --services: root is there twice; each is swept once (for example: --services root,object)
           --views: \"fore\" is unknown; known: background, foreground, or all; did you mean foreground? (for example: \
             --views all)
           --priorities: \"high\" is unknown; known: normal, below-normal, or all (for example: --priorities all)
           --localities: nothing is written (for example: --localities all)",
    );
}

#[test]
fn other_subjects_have_no_axes() {
    check_refusals(
        "$ climb http://127.0.0.1 --services all --views all
           --services: services are an axis of poll-loop, the server that has them; http://127.0.0.1 is swept over its \
             loads only
           --views: views are an axis of poll-loop, the server that has them; http://127.0.0.1 is swept over its loads \
             only",
    );
    check_refused("poll-loop --method PUT", "--method: this is about the one request of a URL");
}
