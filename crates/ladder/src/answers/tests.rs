use measure::LoadUnit;
use measure::trial::kind;
use proptest::prelude::*;

use super::*;
use crate::contract::Conclusion;
use crate::judge::{Criteria, judge};
use crate::results_page::results_page;
use crate::testing::{TrialBuilder, lose, see_ticks, terms};

const SCHEMA_TEXT: &str = include_str!("../../tests/run.schema.json");

fn facts() -> RunFacts {
    let mut environment = Map::new();
    environment.insert("cores".to_owned(), json!(2));
    RunFacts {
        id: "7".to_owned(),
        name: Some("master".to_owned()),
        subject: "arena".to_owned(),
        scenario: None,
        seed: u64::MAX,
        arrivals: "even".to_owned(),
        started_unix_ms: 1_795_000_000_000,
        stepladder: "0.1.0".to_owned(),
        git: None,
        command: "stepladder climb arena".to_owned(),
        environment,
        shared_cores: true,
        capacity_unit: LoadUnit::Games,
    }
}

fn judged(builder: &TrialBuilder, objective: &str) -> Rung {
    let (trial, judgement) = builder.judged(&terms(objective));
    rung(&trial, &judgement)
}

fn arena(load: f64, late: f64) -> Rung {
    judged(&TrialBuilder::arena(load).late(late), TICKS)
}

const TICKS: &str = "ticks.late_share < 25%";
const CHAT: &str = "deliveries.latency.p99 < 50ms";

/// One receiver lost three lines, two of which the server knows about; two others read slowly and are excluded from
/// judging.
fn faulty_chat() -> TrialBuilder {
    TrialBuilder::chat(200).receivers(|one| match one.receiver {
        7 => lose(one, 3, 2, 0),
        8 | 9 => {
            one.is_excluded = true;
            lose(one, 11_000, 10_976, 24);
        }
        _ => {}
    })
}

/// A chat that loses nothing, and the faulty one.
fn two_chats() -> Climb {
    chat_climb_of(&[judged(&TrialBuilder::chat(100), CHAT), judged(&faulty_chat(), CHAT)])
}

fn chat_climb_of(rungs: &[Rung]) -> Climb {
    let facts = RunFacts { subject: "chat".to_owned(), capacity_unit: LoadUnit::Clients, ..facts() };
    answers(&facts, None, rungs.to_vec(), Asked::default())
}

fn climb_of(rungs: &[Rung]) -> Climb {
    asked_of(rungs, Asked::default())
}

fn asked_of(rungs: &[Rung], asked: Asked<'_>) -> Climb {
    answers(&facts(), None, rungs.to_vec(), asked)
}

fn check_contract(climb: &Climb) {
    let schema: Value = serde_json::from_str(SCHEMA_TEXT).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let json = serde_json::to_value(climb).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&json).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    // Through text, as in files; floats must survive the round trip.
    let text = serde_json::to_string_pretty(climb).unwrap();
    assert_eq!(&serde_json::from_str::<Climb>(&text).unwrap(), climb);
}

fn text_of<'a>(climb: &'a Climb, id: &str) -> &'a str {
    &climb.conclusions.iter().find(|conclusion| conclusion.id == id).unwrap().text
}

/// An answer from its first word to its last, where … stands for any words.
#[track_caller]
fn check_text(climb: &Climb, id: &str, expected: &str) {
    let text = text_of(climb, id);
    let (begins, ends) = (expected.split('…').next().unwrap(), expected.rsplit('…').next().unwrap());
    assert!(text.starts_with(begins) && text.ends_with(ends), "{expected}\nis not:\n{text}");
    let in_order =
        expected.split('…').try_fold(text, |rest, part| rest.split_once(part).map(|(_, rest)| rest));
    assert!(in_order.is_some(), "{expected}\nis not:\n{text}");
}

#[test]
fn every_kind_of_rung_fits_the_contract() {
    let mut never_held = TrialBuilder::arena(500.0);
    (never_held.has_hold, never_held.is_complete) = (false, false);
    let mut untold =
        TrialBuilder::arena(500.0).edit(|_, interval| see_ticks(interval, 1_000, 100, 25_000_000));
    untold.late_share = None;
    let lossy = TrialBuilder::asking(1000.0).edit(|_, interval| {
        let flow = interval.flow_mut(1, measure::Phase::Hold);
        (flow.answered, flow.lost) = (flow.answered - 30, 30);
        interval.errors[0] = 30;
        interval.connections.failed[0] = 1;
    });
    let rungs = [
        arena(500.0, 0.02),
        arena(1000.0, 0.4),
        judged(&never_held, TICKS),
        judged(&untold, "client_ticks.late_share < 25%"),
        judged(&lossy, "response.p99 < 50ms"),
        judged(&TrialBuilder::arena(100.0).event(20, kind::SUBJECT_EXITED, "signal 11"), "errors == 0"),
        judged(&TrialBuilder::chat(100), CHAT),
        judged(&faulty_chat(), CHAT),
    ];
    let calibration = Calibration {
        protocol: Some("http".to_owned()),
        own_latency: Distribution::new().summary(),
        send_lag: rungs[0].send_lag_ns.clone(),
        ceiling_per_s: Some(120_000.5),
        was_disturbed: false,
    };
    check_contract(&answers(&facts(), Some(&calibration), rungs.to_vec(), Asked::default()));
    rungs.into_iter().for_each(|rung| check_contract(&climb_of(&[rung])));
}

#[test]
fn figures_are_those_of_the_trial() {
    let climb = climb_of(&[arena(500.0, 0.03)]);
    let rung = &climb.rungs[0];
    assert_eq!((rung.load, rung.bots, rung.hold_s, rung.ended_by.as_str()), (500.0, 1000, 60.0, "60s"));
    assert_eq!((rung.offered, rung.sent, rung.answered), (420_000, 420_000, 0));
    assert_eq!(rung.rate_per_s, 7_000.0);
    let ticks = rung.ticks.as_ref().unwrap();
    assert_eq!((ticks.source.as_str(), ticks.counts.due, ticks.late_share), ("log", 1_800_000, Some(0.03)));
    let shots = &rung.extra["shots"];
    assert_eq!((&shots["server_received"], &shots["delivered_share"]), (&json!(420_000), &json!(1.0)));
    assert_eq!(rung.extra["events"][0]["kind"], "hold");
    assert_eq!(rung.flows["shot"].told, 420_000);
    assert!((rung.subject.as_ref().unwrap().process.cpu_cores - 0.8).abs() < 1e-9);
}

#[test]
fn losses_cannot_make_a_response_look_fast() {
    let lossy = TrialBuilder::asking(1000.0).edit(|_, interval| {
        let flow = interval.flow_mut(1, measure::Phase::Hold);
        (flow.sent, flow.offered, flow.lost) = (flow.sent + 20, flow.offered + 20, 20);
    });
    let climb = climb_of(&[judged(&lossy, "response.p99 < 50ms")]);
    let response = climb.rungs[0].response_ns.as_ref().unwrap();
    assert!(response.p90.is_some());
    assert_eq!(response.p99, None);
    assert_eq!(climb.rungs[0].extra["never_answered"], 1_200);
}

#[test]
fn answers_are_worded_for_each_outcome() {
    let between = climb_of(&[arena(500.0, 0.02), arena(1000.0, 0.1), arena(2000.0, 0.312)]);
    check_text(
        &between,
        "how_many",
        "1000 games (2000 clients) held, 2000 games (4000 clients) did not: the capacity lies between the two.",
    );
    check_text(
        &between,
        "why_not_more",
        "At 2000 games (4000 clients): ticks.late_share was 31.2 % (objective: ticks.late_share < 25%). Suspected: the server used \
         0.80 cores (40 % of those it may use), the generator 0.30 of the same cores: on a machine of its own the server \
         may hold more.",
    );
    check_text(
        &between,
        "can_i_trust_it",
        "Yes: the load generator kept up (send lag p99 at most 200 µs, busiest worker 30 % busy); the books balance; \
         every hold was steady; nothing disturbed it; but the generator was not calibrated. Server and generator ran on the \
         same 2 cores. For a figure of confidence repeat each load (--repeat 3).",
    );
    let lower = climb_of(&[arena(500.0, 0.02), arena(1000.0, 0.1)]);
    check_text(&lower, "how_many", "1000 games (2000 clients) held, and nothing failed…");
    check_text(&lower, "why_not_more", "Nothing failed: 1000 games…");
    check_text(&climb_of(&[arena(500.0, 0.9)]), "how_many", "Fewer than 500 games (1000 clients)…");
    let limited = TrialBuilder { send_lag_ns: 40_000_000, ..TrialBuilder::arena(1000.0) };
    let limited = climb_of(&[arena(500.0, 0.02), judged(&limited, TICKS)]);
    check_text(&limited, "how_many", "…1000 could not be judged (GENERATOR_LIMITED)…");
    check_text(&limited, "why_not_more", "The load generator reached its limit before the server did…");
    let care = "With care: 1 of 2 rungs could not be judged: 1000 (GENERATOR_LIMITED); the load…";
    check_text(&limited, "can_i_trust_it", care);
    // A machine that stole CPU all the time made the generator late, but the objectives were met anyway.
    let stolen = |builder| {
        let builder = TrialBuilder { send_lag_ns: 40_000_000, steal_share: Box::new(|_| 0.2), ..builder };
        climb_of(&[judged(&builder, TICKS)])
    };
    let late = stolen(TrialBuilder::arena(500.0));
    assert_eq!(late.verdict, Verdict::Pass);
    let care = "With care: the load generator was late in the only rung, judged all the same (send lag p99 at most 40 ms…";
    check_text(&late, "can_i_trust_it", care);
    // The same if that was too much to judge the objective: the generator did not keep up there either.
    let late = stolen(TrialBuilder::arena(500.0).late(0.3));
    assert_eq!(late.verdict, Verdict::Inconclusive);
    let care = "…; the load generator was late in the only rung (send lag p99 at most 40 ms…";
    check_text(&late, "can_i_trust_it", care);
    let empty = climb_of(&[]);
    check_text(&empty, "how_many", "Unknown…");
    assert_eq!(empty.verdict, Verdict::Invalid);
}

#[test]
fn the_verdict_of_a_run_follows_from_its_rungs() {
    use Verdict::{Fail, GeneratorLimited, Inconclusive, Invalid, Pass};
    for (rungs, verdict) in [
        (&[Pass, Pass][..], Pass),
        (&[Pass, GeneratorLimited], GeneratorLimited),
        (&[Pass, Inconclusive], Inconclusive),
        (&[Pass, Fail], Fail),
        (&[Invalid, Fail], Fail),
        (&[GeneratorLimited, Inconclusive], GeneratorLimited),
        (&[GeneratorLimited, Invalid], Invalid),
        (&[Inconclusive], Inconclusive),
        (&[], Invalid),
    ] {
        assert_eq!(run_verdict(rungs.iter().copied()), verdict, "{rungs:?}");
    }
}

/// A run that was killed between two loads has only rungs that passed.
#[test]
fn a_run_that_is_not_whole_never_passes_and_says_so() {
    let early = Asked { ended_early: Some("run 7 was interrupted in rung 1000"), ..Asked::default() };
    let climb = asked_of(&[arena(500.0, 0.01)], early);
    assert_eq!(climb.verdict, Verdict::Invalid);
    let why = "…500 games (1000 clients) was the largest load held before the run…";
    check_text(&climb, "why_not_more", why);
    check_text(&climb, "can_i_trust_it", "…the run is not whole (run 7 was interrupted in rung 1000)…");
    assert!(!text_of(&climb, "can_i_trust_it").starts_with("Yes"));
    // A failure stands, whatever came after it.
    assert_eq!(asked_of(&[arena(500.0, 0.01), arena(1000.0, 0.9)], early).verdict, Verdict::Fail);
    let whole = climb_of(&[arena(500.0, 0.01)]);
    assert_eq!((whole.verdict, whole.ended_early.as_deref()), (Verdict::Pass, None));
}

#[test]
fn loads_above_a_lower_bound_that_could_not_be_judged_are_named_once() {
    let limited = || Rung { verdict: Verdict::GeneratorLimited, ..arena(2000.0, 0.01) };
    let climb = climb_of(&[arena(500.0, 0.01), limited(), limited()]);
    let says = "…this is a lower bound; larger loads could not be judged.…2000 (2 times) could not be judged (GENERATOR_LIMITED).…";
    check_text(&climb, "how_many", says);
}

#[test]
fn the_closing_page_has_a_row_per_rung_and_three_answers() {
    let climb = climb_of(&[arena(500.0, 0.02), arena(2000.0, 0.312)]);
    let page = results_page(&climb);
    let text = page.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0].split_whitespace().next(), Some("games"));
    assert!(!lines[0].contains("resp."), "no bot asked anything: {}", lines[0]);
    assert!(
        lines[1].contains("PASS") && lines[1].contains("2 %") && lines[1].contains("1000/1000"),
        "{text}"
    );
    assert!(lines[2].contains("FAIL") && lines[2].contains("31.2 %"), "{text}");
    assert_eq!(lines[0].chars().count(), lines[2].chars().count(), "{text}");
    assert_eq!(
        lines[4],
        "2000 games: FAIL — ticks.late_share was 31.2 % (objective: ticks.late_share < 25%)"
    );
    for (line, question) in lines[6..].iter().zip(["How many", "Why not more", "Can I trust it"]) {
        assert!(line.starts_with(question), "{text}");
    }
    let stored = serde_json::to_string(&climb).unwrap();
    assert_eq!(page, results_page(&serde_json::from_str(&stored).unwrap()));
}

#[test]
fn a_run_without_rungs_still_has_a_closing_page() {
    assert!(results_page(&climb_of(&[])).to_string().contains("Unknown"));
}

#[test]
fn the_books_are_published_as_they_were_settled() {
    let climb = two_chats();
    let books = climb.rungs[0].deliveries.as_ref().unwrap();
    assert_eq!(
        (books.owed, books.sum.owed_min, books.sum.owed_max, books.sum.delivered),
        (594_000, 594_000, 594_000, 594_000)
    );
    assert_eq!(
        (books.sum.lost, books.sum.residual, books.drops_are_told, &books.excluded),
        (0, 0, true, &None)
    );
    assert_eq!((books.sum.receivers, books.sent, books.rate_per_s), (100, 6_000, Some(9_900.0)));
    assert_eq!(books.loss_rate_bound, Some(3.0 / 594_000.0));
    assert_eq!(books.slowest.as_ref().map(|slowest| slowest.receiver), Some(99));
    let p99 = books.latency_ns.as_ref().unwrap().p99.unwrap();
    assert!((5_000_000..5_010_000).contains(&p99), "{p99}");
    assert_eq!(climb.rungs[0].verdict, Verdict::Pass);

    let books = climb.rungs[1].deliveries.as_ref().unwrap();
    assert_eq!(
        (books.sum.lost, books.sum.dropped, books.sum.residual, books.loss_rate_bound),
        (3, 2, 1, None)
    );
    let excluded = books.excluded.as_ref().unwrap();
    assert_eq!((excluded.receivers, excluded.dropped, excluded.in_flight), (2, 21_952, 48));
    assert_eq!((books.worst[0].receiver, books.worst[0].lost), (7, 3));
    assert_eq!(climb.rungs[1].verdict, Verdict::Invalid);
}

#[test]
fn the_closing_page_has_the_books_of_each_rung() {
    let page = results_page(&two_chats());
    assert_eq!(
        page.books,
        [
            "100 clients: 594000 deliveries owed, 0 lost, 0 dropped, 0 waiting at the end, residual 0; slowest receiver 99: \
             mean 5 ms, max 9 ms",
            "200 clients: 2.36 M deliveries owed, 3 lost, 2 dropped, 0 waiting at the end, residual 1; slowest receiver 199: \
             mean 5 ms, max 9 ms",
            "200 clients, excluded: 2 receivers, 23880 owed, 1880 delivered, 21952 dropped, 48 waiting at the end",
        ]
    );
    let text = page.to_string();
    let head: Vec<&str> = text.lines().next().unwrap().split("  ").filter(|cell| !cell.is_empty()).collect();
    let trimmed: Vec<&str> = head.iter().map(|cell| cell.trim()).collect();
    assert_eq!(
        trimmed[..7],
        ["clients", "verdict", "rate/s", "deliv./s", "lost", "deliv. p50", "deliv. p99"]
    );
    assert!(text.contains("\n100 clients: 594000 deliveries owed"), "{text}");
}

#[test]
fn whether_the_books_balance_is_said_with_what_that_is_worth() {
    let clean = [judged(&TrialBuilder::chat(100), CHAT), judged(&TrialBuilder::chat(200), CHAT)];
    let says = "…the books balance: 2.98 M deliveries owed, 0 lost (rate ≤ 1.0e-6 at 95 %), residual 0;…";
    check_text(&chat_climb_of(&clean), "can_i_trust_it", says);
    let says =
        "With care: …books do not balance in 1 of 2 rungs: 2.96 M deliveries owed, 3 lost, residual 1;…";
    check_text(&two_chats(), "can_i_trust_it", says);
    let mut untold = TrialBuilder::chat(100);
    if let Some(books) = &mut untold.books {
        books.drops_are_told = false;
    }
    let says = "…0 lost (rate ≤ 5.1e-6 at 95 %), the server does not tell what it drops…";
    check_text(&chat_climb_of(&[judged(&untold, CHAT)]), "can_i_trust_it", says);
}

#[test]
fn the_pace_is_told_where_the_plan_means_one() {
    let paced = |per_s| {
        let intended = Some(crate::judge::Intended::PerSecond(per_s));
        let trial = TrialBuilder::chat(1_000).build();
        let judgement = judge(&trial, None, &Criteria { intended, ..terms(CHAT) });
        let climb = chat_climb_of(&[rung(&trial, &judgement)]);
        check_contract(&climb);
        let page = results_page(&climb);
        let at = page.tables[0].header.iter().position(|title| title == "pace").unwrap();
        page.tables[0].rows[0][at].clone()
    };
    // The published crowd: 61 % of its pace, unnoticed.
    assert_eq!(paced(1_640.0), "61 %");
    assert_eq!(paced(1_000.0), "100 %");
}

fn polling(load: u32, service: &str) -> Rung {
    let mut builder = TrialBuilder { hold_s: 2, ..TrialBuilder::polling(f64::from(load)) }.phases([3; 16]);
    builder.cell = [("service", service), ("view", "background")]
        .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
        .into();
    if load > 2 {
        builder = builder.rejected(5, "GET /: status 503");
    }
    judged(&builder, "errors == 0")
}

fn sweep_of() -> Climb {
    let of = |service| (1..=4).map(move |load| polling(load, service));
    requesters_of(of("root").chain(of("object")).collect())
}

fn requesters_of(rungs: Vec<Rung>) -> Climb {
    let facts = RunFacts { capacity_unit: LoadUnit::Requesters, ..facts() };
    answers(&facts, None, rungs, Asked::default())
}

#[test]
fn a_sweep_fits_the_contract_and_tells_its_cells_frames_and_first_errors() {
    let climb = sweep_of();
    check_contract(&climb);
    let json = serde_json::to_value(&climb).unwrap();
    let rung = &json["rungs"][6];
    assert_eq!((&rung["cell"]["service"], &rung["load"]), (&json!("object"), &json!(3.0)));
    assert_eq!(rung["frames"], json!({ "rate_per_s": 60.0, "due": 120, "drawn": 120 }));
    let first = json!([{ "cause": "rejected (429, 503)", "text": "GET /: status 503" }]);
    assert_eq!((&rung["error_samples"], &rung["aliased"]), (&first, &json!(false)));
    assert_eq!((rung["failed"].as_u64(), &rung["unanswered_ns"]), (Some(10), &Value::Null));
    assert_eq!(json["capacity"]["cells"][1]["capacity"]["lower_bound"], 2.0);
    assert_eq!(json["capacity"]["upper_bound"], 3.0);
    let plain = serde_json::to_value(climb_of(&[arena(500.0, 0.02)])).unwrap();
    assert!(plain["rungs"][0].get("cell").is_none() && plain["capacity"].get("cells").is_none());
    assert_eq!((&plain["rungs"][0]["frames"], &plain["rungs"][0]["aliased"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_cell_is_noted_for_its_first_rung_that_did_not_pass_and_else_for_the_first_with_a_remark() {
    let mut climb = sweep_of();
    let root = climb.rungs[0].cell.clone();
    for rung in &mut climb.rungs {
        rung.remark = (rung.load < 3.0).then(|| "40 of 40 cheats were refused".to_owned());
        if rung.cell == root {
            (rung.verdict, rung.reason) = (Verdict::Pass, None);
        }
    }
    let notes = results_page(&climb).notes;
    assert_eq!(
        notes[0],
        "root · background: 1 requester: PASS — 40 of 40 cheats were refused (1 more of its rungs has a remark)"
    );
    assert!(notes[1].starts_with("object · background: 3 requesters: FAIL"), "{}", notes[1]);
    assert!(notes[1].ends_with("(1 more of its rungs did not pass)"), "{}", notes[1]);
}

#[test]
fn a_sweep_closes_with_a_table_per_cell_and_its_conclusions() {
    let mut climb = sweep_of();
    let one = "One requester gets 60.0/s.".to_owned();
    climb.conclusions.push(Conclusion::new("base_rate", &[one], json!({})));
    let page = results_page(&climb);
    let titles: Vec<_> = page.tables.iter().map(|table| table.title.as_deref()).collect();
    assert_eq!(titles, [Some("root · background"), Some("object · background")]);
    let object = &page.tables[1];
    assert_eq!(
        object.header.join(" | "),
        "requesters | resp./s | speed-up | frames/s | resp. mean | p50 | failed | server CPU | verdict"
    );
    assert_eq!(object.rungs, [4, 5, 6, 7]);
    assert_eq!(object.rows[1][..4], ["2", "120.0", "2.00", "60.0"]);
    assert_eq!((object.rows[2][6].as_str(), object.rows[2][8].as_str()), ("10", "FAIL"));
    assert_eq!(
        page.notes[1],
        "object · background: 3 requesters: FAIL — errors was 10 (objective: errors == 0); the first: rejected (429, \
         503): GET /: status 503 (1 more of its rungs did not pass)"
    );
    let headings: Vec<&str> = page.conclusions.iter().map(|(heading, _)| heading.as_str()).collect();
    assert_eq!(headings, ["Base rate"]);
    assert!(page.to_string().ends_with("Base rate  One requester gets 60.0/s.\n"), "{page}");
    assert_eq!(page.answers.len(), 3);
    let many = "2 requesters held, 3 requesters did not: the capacity lies between the two. That is so in each of 2 cells.";
    check_text(&climb, "how_many", many);
    check_text(&climb, "why_not_more", "At 3 requesters (root · background): errors was 10…");
}

#[test]
fn a_server_that_leaves_its_cores_idle_is_not_promised_more_on_its_own() {
    for (cores, says) in
        [(0.02, "…CPU is not what it lacked…"), (0.8, "…on a machine of its own the server may hold more…")]
    {
        let mut rung = arena(1000.0, 0.4);
        let process = &mut rung.subject.as_mut().unwrap().process;
        (process.cpu_cores, process.cpu_share) = (cores, Some(cores / 2.0));
        check_text(&climb_of(&[rung]), "why_not_more", says);
    }
}

#[test]
fn the_smallest_cell_is_named_where_they_differ() {
    let mut rungs: Vec<_> = (1..=4).map(|load| polling(load, "root")).collect();
    rungs.extend([polling(1, "object"), polling(3, "object")]);
    rungs.swap_remove(2);
    let climb = requesters_of(rungs);
    let says = "1 requester held, 3 requesters did not: the capacity lies between the two. That is the smallest of 2 cells \
                (object · background), others held up to 2.";
    check_text(&climb, "how_many", says);
    check_text(&climb, "why_not_more", "At 3 requesters (object · background)…");
}

#[test]
fn rates_of_requests_are_told_beside_service_and_lag() {
    let builder = TrialBuilder { load_unit: LoadUnit::Requests, ..TrialBuilder::asking(1_000.0) };
    let page = results_page(&climb_of(&[judged(&builder, "errors == 0")]));
    let header = &page.tables[0].header;
    let shown = |name: &str| {
        header.iter().position(|title| title == name).map(|at| page.tables[0].rows[0][at].as_str())
    };
    assert_eq!(shown("req/s"), Some("1000"));
    assert_eq!((shown("resp. p99"), shown("serv. p99")), (Some("2 ms"), Some("2 ms")));
    assert_eq!((shown("lag p99"), shown("failed"), shown("frames/s")), (Some("200 µs"), Some("0"), None));
    // Also in a cell of a sweep.
    let mut of_cell = builder;
    of_cell.cell.insert("service".to_owned(), "root".to_owned());
    let cells = results_page(&climb_of(&[judged(&of_cell, "errors == 0")]));
    assert_eq!((cells.tables[0].title.as_deref(), &cells.tables[0].header), (Some("root"), header));
    // Others have no service time to show.
    let plain = results_page(&climb_of(&[judged(&TrialBuilder::asking(1_000.0), "errors == 0")]));
    assert!(!plain.tables[0].header.iter().any(|title| title.starts_with("serv.") || title == "failed"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn conservation_holds_in_every_published_rung(
        late in 0.0f64..1.0, lost in 0u64..200, failed in 0u64..200, unsent in 0u64..200
    ) {
        let mut builder = TrialBuilder::asking(1000.0).edit(move |_, interval| {
            let flow = interval.flow_mut(1, measure::Phase::Hold);
            (flow.lost, flow.failed, flow.not_sent) = (lost, failed, unsent);
            (flow.answered, flow.offered) = (flow.answered - lost - failed, flow.offered + unsent);
        }).late(late);
        builder.hold_s = 12;
        let climb = climb_of(&[judged(&builder, "errors == 0")]);
        let rung = &climb.rungs[0];
        prop_assert_eq!(rung.offered, rung.sent + rung.not_sent);
        prop_assert_eq!(rung.sent, rung.answered + rung.failed + rung.lost + rung.unanswered_at_stop);
        prop_assert_eq!(climb.verdict == Verdict::Pass, lost + failed + unsent == 0);
        check_contract(&climb);
    }
}

mod agents;
mod allowed;
mod from_above;
mod marks;
mod page;
mod searches;
mod words;

#[test]
fn how_a_server_ended_and_what_became_of_cheats_are_figures_of_their_own() {
    let builder = TrialBuilder::asking(100.0)
        .event(65, kind::SUBJECT_TOLD_TO_END, "10.00 s were allowed")
        .event(66, kind::SUBJECT_ENDED, "0.21 s")
        .event(66, kind::SUBJECT_EXITED, "exit code 0")
        .edit(|at, interval| match at {
            7 => interval.counters[22..25].copy_from_slice(&[40, 39, 1]),
            59 => interval.counters[18..22].copy_from_slice(&[12, 3, 90, 80]),
            _ => {}
        });
    let (trial, judgement) = builder.judged(&Criteria::default());
    let rung = serde_json::to_value(super::rung(&trial, &judgement)).unwrap();
    let requests = json!({"under_way": 12, "answered": 9, "dropped": 3, "later": 90, "later_refused": 80});
    let told_ns = rung["shutdown"]["told_ns"].as_u64().unwrap();
    let shutdown =
        json!({"told_ns": told_ns, "exited_after_ns": 1_000_000_000, "is_back": null, "requests": requests});
    assert_eq!(rung["shutdown"], shutdown);
    assert_eq!(rung["cheats"], json!({"sent": 40, "refused": 39, "accepted": 1, "verdict": "FAIL"}));
    let (trial, judgement) = TrialBuilder::asking(100.0).judged(&Criteria::default());
    let quiet = serde_json::to_value(super::rung(&trial, &judgement)).unwrap();
    assert!(quiet.get("shutdown").is_none() && quiet.get("cheats").is_none(), "nobody asked for them");
}

#[test]
fn figures_of_several_tick_sources_are_told_apart_and_one_sentence_says_whether_they_agreed() {
    const STATSD: &str = "statsd=127.0.0.1:8125";
    let of = |load: f64, statsd: Option<f64>| {
        let builder = TrialBuilder::arena(load).compared(STATSD, move |_| statsd);
        judged(&builder, TICKS)
    };
    let climb = climb_of(&[of(500.0, Some(0.05)), of(1000.0, Some(0.02))]);
    let agreed = "…Ticks were judged by log=game.log; statsd=127.0.0.1:8125 agreed.…";
    check_text(&climb, "can_i_trust_it", agreed);
    let figures = json!(climb.rungs[0])["tick_sources"].clone();
    let expected = json!([
        { "source": "log=game.log", "due": 1_800_000, "late_share": 0.03, "interval_p99_ns": 25_000_000 },
        { "source": STATSD, "due": 1_800_000, "late_share": 0.05, "interval_p99_ns": 25_000_000 },
    ]);
    assert_eq!(round_ns(figures), expected);

    let climb = climb_of(&[of(500.0, Some(0.05)), of(1000.0, None), of(2000.0, Some(0.9))]);
    let says = "…judged by log=game.log; statsd=127.0.0.1:8125 contradicted it at 2000.…";
    check_text(&climb, "can_i_trust_it", says);
    let none = climb_of(&[of(500.0, None)]);
    check_text(&none, "can_i_trust_it", "…statsd=127.0.0.1:8125 told of no ticks.…");
    let silent = TrialBuilder { late_share: None, ..TrialBuilder::arena(500.0) };
    let silent = climb_of(&[judged(&silent.compared(STATSD, |_| Some(0.03)), "errors == 0")]);
    let says = "…Ticks were to be judged by log=game.log, which told of none.…";
    check_text(&silent, "can_i_trust_it", says);
    assert!(json!(arena(500.0, 0.01)).get("tick_sources").is_none(), "of one source");
}

/// The last digits of a histogram's values are its own.
fn round_ns(mut figures: Value) -> Value {
    for figure in figures.as_array_mut().unwrap() {
        let ns = figure["interval_p99_ns"].as_f64().unwrap();
        figure["interval_p99_ns"] = json!(((ns / 1e5).round() * 1e5) as u64);
    }
    figures
}
