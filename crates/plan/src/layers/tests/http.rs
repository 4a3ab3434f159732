use super::*;
use crate::workloads::{HttpBots, HttpCheck, HttpModel, HttpRequest, HttpVersion, VariableLaw};

/// The HTTP clients of a plan.
fn http_of(plan: &Plan) -> &HttpBots {
    bots_of(plan)
}

#[test]
fn climb_http_needs_nothing_else() {
    let plan = plan_of_flags("http://127.0.0.1:8080/todos?page=1");
    let expected = HttpBots {
        model: HttpModel::Closed { think_ns: 0 },
        version: HttpVersion::One,
        keep_alive: true,
        streams: 1,
        visit: Default::default(),
        requests: vec![HttpRequest {
            name: "GET /todos?page=1".into(),
            weight: 1.0,
            method: "GET".into(),
            path: "/todos?page=1".into(),
            headers: Vec::new(),
            body: String::new(),
            check: HttpCheck::default(),
            capture: Vec::new(),
        }],
        variables: Vec::new(),
        timeout_ns: 30_000_000_000,
        redirects_max: 0,
        body_bytes_max: 64 << 20,
    };
    assert_eq!(http_of(&plan), &expected);
    assert_eq!(plan.ladder.rungs, [1.0, 4.0, 16.0, 64.0]);
    assert_eq!(
        (plan.ladder.load_unit, plan.ladder.ramp),
        (LoadUnit::Requesters, RampRule::Pace(Ramp::AtOnce))
    );
    assert_eq!((plan.arrivals, objectives_of(&plan)), (Arrivals::Closed, vec!["errors == 0".to_owned()]));
    assert_eq!(plan.subject.ticks, TickSource::None);
}

#[test]
fn a_rate_is_planned_by_a_clock_over_connections_that_stand() {
    let plan = plan_of_flags("http://127.0.0.1 --rate '2000, 0.5,1000/s'");
    assert_eq!(plan.ladder.rungs, [0.5, 1000.0, 2000.0]);
    assert_eq!((plan.ladder.load_unit, plan.arrivals), (LoadUnit::Requests, Arrivals::Poisson));
    assert_eq!(http_of(&plan).model, HttpModel::Open { connections: 256, connections_max: 256 });
    let plan = plan_of_flags(
        "http://127.0.0.1 --rate 100 --arrivals burst --connections 10 --connections-max 20 --http 2 --timeout 1s \
         --redirects 3 --body-max 1MB",
    );
    let http = http_of(&plan);
    assert_eq!(http.model, HttpModel::Open { connections: 10, connections_max: 20 });
    assert_eq!((http.version, http.streams, http.redirects_max), (HttpVersion::Two, 100, 3));
    assert_eq!((http.timeout_ns, http.body_bytes_max), (1_000_000_000, 1_000_000));
    assert_eq!(plan.arrivals, Arrivals::Burst);
}

#[test]
fn requesters_are_counts_ranges_or_an_open_end() {
    let ladder = |text: &str| {
        let ladder = plan_of_flags(&format!("http://127.0.0.1 --requesters {text}")).ladder;
        (ladder.rungs, ladder.is_open_ended)
    };
    assert_eq!(ladder("1,10,5"), (vec![1.0, 5.0, 10.0], false));
    assert_eq!(ladder("1..4"), (vec![1.0, 2.0, 3.0, 4.0], false));
    assert_eq!(ladder("1.."), (vec![1.0], true));
    assert_eq!(ladder("1..3,10.."), (vec![1.0, 2.0, 3.0, 10.0], true));
    let plan = plan_of_flags("http://127.0.0.1 --rungs 7");
    assert_eq!(
        (plan.ladder.rungs.as_slice(), plan.ladder.load_unit),
        ([7.0].as_slice(), LoadUnit::Requesters)
    );
    let plan = plan_of_flags("http://127.0.0.1 --requesters 3 --think 100ms --no-keep-alive");
    assert_eq!(http_of(&plan).model, HttpModel::Closed { think_ns: 100_000_000 });
    assert!(!http_of(&plan).keep_alive);
}

#[test]
fn the_one_request_of_a_url_is_described_by_flags() {
    let plan = plan_of_flags(
        "http://127.0.0.1:8080/todos?page=1 --header 'Accept: application/json' --body '{\"title\":\"x\"}' \
         --header 'Authorization: Bearer ${TOKEN}' --expect-status '201, 300..302' --expect-text id",
    );
    let request = &http_of(&plan).requests[0];
    assert_eq!((request.method.as_str(), request.name.as_str()), ("POST", "POST /todos?page=1"));
    assert_eq!(request.headers[1], ("Authorization".into(), "Bearer ${TOKEN}".into()));
    assert_eq!(request.check.status, [(201, 201), (300, 302)]);
    assert_eq!(request.check.contains.as_deref(), Some("id"));
    assert_eq!(http_of(&plan).body_bytes_max, 4 << 20, "a body that is looked at is kept");
    let plan = plan_of_flags("http://127.0.0.1 --method head");
    assert_eq!(http_of(&plan).requests[0].method, "HEAD");
}

#[test]
fn https_has_its_certificates_and_its_port() {
    let plan = plan_of_flags("https://127.0.0.1/ --insecure");
    let SubjectSource::Running { target, .. } = &plan.subject.source else { panic!("{plan:?}") };
    assert_eq!((target.scheme, target.port, target.insecure), (Scheme::Https, 443, true));
}

const REST: &str = "subject: { target: http://127.0.0.1:8080 }
bots:
  kind: http
  http: 2
  streams: 8
  keep_alive: true
  variables:
    user: { from: 1, to: 1000 }
    colour: { one_of: [red, 2] }
    n: counter
    id: { before: 7 }
  requests:
    - { name: list, weight: 3, get: /todos, check: { status: 200..299, bytes: 2..1000 } }
    - name: create
      post: /todos
      headers: { X-User: \"{user}\", Accept: }
      json: { title: \"todo {n}\", colour: \"{colour}\", done: false, tags: [a, 1] }
      check: { status: [200, 201], json: { /done: false, /id: }, contains: todo }
      capture: { id: /id }
    - { name: delete, delete: \"/todos/{id}\", check: { status: [204, 404] } }
    - { name: ask, method: OPTIONS, path: /todos, body: \"a={n}\" }
ladder: { rate: [100, 200.5], hold: 5s }
";

#[test]
fn a_scenario_lists_requests_with_checks_variables_and_captures() {
    let plan = plan_of(REST);
    let http = http_of(&plan);
    assert_eq!((http.version, http.streams), (HttpVersion::Two, 8));
    assert_eq!(plan.ladder.rungs, [100.0, 200.5]);
    let names: Vec<_> = http.requests.iter().map(|one| (one.name.as_str(), one.method.as_str())).collect();
    assert_eq!(names, [("list", "GET"), ("create", "POST"), ("delete", "DELETE"), ("ask", "OPTIONS")]);
    let [list, create, delete, ask] = http.requests.as_slice() else { panic!("{http:?}") };
    assert_eq!(
        (list.weight, &list.check.status, list.check.body_bytes),
        (3.0, &vec![(200, 299)], Some((2, 1000)))
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&create.body).unwrap(),
        serde_json::json!({ "title": "todo {n}", "colour": "{colour}", "done": false, "tags": ["a", 1] })
    );
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        create.headers,
        [header("Accept", ""), header("X-User", "{user}"), header("Content-Type", "application/json")]
    );
    assert_eq!(create.check.status, [(200, 200), (201, 201)]);
    assert_eq!(create.check.json, [("/done".into(), Some(false.into())), ("/id".into(), None)]);
    assert_eq!(create.check.contains.as_deref(), Some("todo"));
    assert_eq!(create.capture, [("id".to_owned(), "/id".to_owned())]);
    assert_eq!((delete.path.as_str(), ask.body.as_str()), ("/todos/{id}", "a={n}"));
    let law = |name: &str| &http.variables.iter().find(|one| one.name == name).expect(name).law;
    assert_eq!(law("user"), &VariableLaw::Whole(1, 1000));
    assert_eq!(law("colour"), &VariableLaw::OneOf(vec!["red".into(), "2".into()]));
    assert_eq!(law("n"), &VariableLaw::Counter);
    assert_eq!(law("id"), &VariableLaw::Captured("7".into()));
}

#[test]
fn flags_change_the_load_of_a_scenario_and_what_was_meant_for_the_other_model_is_left() {
    let open =
        "subject: { target: http://127.0.0.1 }\nbots: { kind: http, connections: 9 }\nladder: { rate: 5 }\n";
    let plan = plan_over("x.yaml --requesters 2", open);
    assert_eq!(http_of(&plan).model, HttpModel::Closed { think_ns: 0 });
    let closed = "subject: { target: http://127.0.0.1 }\nbots: { kind: http, think: 1s }\nladder: { requesters: 1..3 }\n";
    let plan = plan_over("x.yaml --rate 2", closed);
    assert_eq!(http_of(&plan).model, HttpModel::Open { connections: 256, connections_max: 256 });
    assert_eq!(plan_of(closed).ladder.rungs, [1.0, 2.0, 3.0]);
}

#[test]
fn loads_that_contradict_each_other_are_refused() {
    check_refusals(
        "$ climb http://127.0.0.1 --rate 5 --requesters 1
           --requesters: a ladder has one kind of load, but rate and requesters are both there; leave one of them out
         $ climb http://127.0.0.1 --rate 5,x,5,0
           --rate: \"x\" is not a number (for example: --rate 1000,2000)
           --rate: rung 5 is there twice; each load is climbed once (for example: --rate 1000,2000)
           --rate: \"0\" is zero: a rung without load measures nothing (for example: --rate 1000,2000)
         $ climb http://127.0.0.1 --requesters 1..3,2,1.5,5..4
           --requesters: rung 2 is there twice; each load is climbed once (for example: --requesters 1..20)
           --requesters: \"1.5\" is not a whole number (for example: --requesters 1..20)
           --requesters: the range 5..4 is empty; write the smaller end first (for example: --requesters 1..20)
         $ climb http://127.0.0.1 --requesters 1..,5
           --requesters: an open end (1..) goes on from the last load, so nothing comes behind it
         $ climb http://127.0.0.1 --requesters ''
           --requesters: there is no rung to climb (for example: --requesters 1..20)
         $ climb http://127.0.0.1 --requesters 1..800,2000..2700
           --requesters: 1501 rungs are more than anybody climbs; at most 1000 of them (for example: --requesters \
             1..20)
         $ climb http://127.0.0.1 --rate 5 --arrivals closed
           --arrivals: http bots cannot arrive closed: requests with a rate are planned by a clock (poisson, even, \
             burst)
         $ climb arena --rate 5
           --rate: rate is for http bots; these are arena bots
         $ climb chat --requesters 5 --think 1s
           --think: think is for http bots; these are chat bots
           --requesters: requesters is for http bots; these are chat bots",
    );
}

#[test]
fn settings_of_the_other_model_are_refused() {
    let why = "is for a rate; with requesters, each has one connection";
    check(
        "http://127.0.0.1 --connections 5 --connections-max 9",
        &format!("--connections: connections {why}\n--connections-max: connections_max {why}"),
    );
    check_refusals(
        "$ climb http://127.0.0.1 --rate 5 --think 1s
           --think: think is for requesters, each of whom waits for its answer; with a rate, requests are planned by a \
             clock
         $ climb http://127.0.0.1 --rate 5 --connections 5 --connections-max 4
           --connections-max: connections_max (4) is below connections (5), which are opened before the hold",
    );
    let streams = "--streams: streams are several requests at once on one connection: only HTTP/2 has them, with a rate \
                   and kept connections";
    check("http://127.0.0.1 --rate 5 --streams 5 --http 1.1", streams);
    check("http://127.0.0.1 --rate 5 --streams 5 --http 2 --no-keep-alive", streams);
    check("http://127.0.0.1 --streams 5 --http 2", streams);
}

#[test]
fn every_mistake_of_a_request_is_told_at_once_and_no_header_is_repeated() {
    check_refusals(
        "$ climb http://127.0.0.1 --method 'GET /' --header 'Authorization: hunter2' --header hunter2 --header \
             'Content-Length: 5' --expect-status 2xx --expect-text '' --http 3 --timeout 0s --redirects 99 --body-max \
             '1 parsec'
           --http: \"3\" is unknown; known: 1.1, 2; did you mean 2? (for example: --http 2)
           --timeout: must be between 1ms and 3600s, got 0s (for example: --timeout 30s)
           --redirects: must be between 0 and 50, got 99 (for example: --redirects 5)
           --body-max: \"1 parsec\" has an unknown unit \"parsec\"; known: B, kB, MB, GB, KiB, MiB, GiB (for example: \
             --body-max 64MiB)
           --method: \"GET /\" is not a method that asks for something; GET, POST, PUT, PATCH, DELETE, HEAD and the \
             like are (for example: --method POST)
           --header: Authorization holds a secret, and plans are stored and printed; put it into an environment \
             variable and write 'Authorization: ${NAME}' here (for example: --header 'Accept: application/json')
           --header: a header is written as Name: value (for example: --header 'Accept: application/json')
           --header: Content-Length follows from the body; leave it out (for example: --header 'Accept: \
             application/json')
           --expect-status: \"2xx\" is not a status or a range of them: 100 to 599, such as 200 or 200..299 (for \
             example: --expect-status 200..299)
           --expect-text: nothing is written (for example: --expect-text hello)
         $ climb http://127.0.0.1/a/{id}
           climb: {id} is no variable here; known: none. Where no variable is meant, blanks inside the braces say so
         $ climb http://127.0.0.1 --expect-text x --body-max 5MiB
           --body-max: a body that is looked at is kept, and at most 4MiB of it; 5MiB is more",
    );
}

const LAW: &str =
    "is a range (from, to), a choice (one_of), counter, or what was captured (before); exactly one of them";
const ONCE: &str = "a request says what it asks for once: get: /path (or post, put, patch, delete, head), or method and path";
const POINTER: &str =
    "is not a JSON pointer: it begins with / and names the way from the top, such as /items/0/id";
const NO_VARIABLE: &str = "is no variable here; known: hash, lonely, ok. Where no variable is meant, blanks inside the braces say so";

#[test]
fn every_mistake_of_a_list_of_requests_is_told_with_its_line() {
    check_file(
        "subject: { target: http://127.0.0.1/api }
bots:
  kind: http
  variables:
    1st: counter
    drawn: { from: 5, to: 1 }
    word: { one_of: [] }
    mixed: { from: 1, to: 2, one_of: [x] }
    odd: random
    hash: { one_of: [\"a b\", \"a#b\"] }
    lonely: { before: 1 }
    ok: counter
  requests:
    - { name: a, get: /x, weight: 0 }
    - { name: a, get: /y, post: /z }
    - { name: b }
    - { name: redirect, get: x }
    - { name: c, post: /c, body: x, json: { a: 1 }, capture: { ok: /id, bad: id } }
    - { name: d, get: \"/d/{hash}/{nobody}\", headers: { X: \"{no}\", Y: \"${TOKEN}\" } }
    - { name: e, post: /e, json: { secret: \"${TOKEN}\" }, check: { status: 700, bytes: 5..1, json: { ok: true } } }
    - { name: f, gte: /f }
",
        &format!(
            "5: bots.variables: \"1st\" is not a name for a variable: a letter first, then letters, digits, - and _
             6: bots.variables.to: the range 5..1 is empty; write the smaller end first (for example: to: 1000)
             7: bots.variables: variable word {LAW}
             8: bots.variables: variable mixed {LAW}
             9: bots.variables: variable odd {LAW}
             11: bots.variables: lonely has a text before the first capture, but no request captures it
             14: bots.requests: the requests have paths of their own, so the target's would never be asked; leave \
               \"/api\" out of the URL
             14: bots.requests.weight: must be between 0.000001 and 1000000, got 0 (for example: weight: 3)
             15: bots.requests: {ONCE}
             15: bots.requests: two requests are called \"a\"; name them apart
             16: bots.requests: {ONCE}
             17: bots.requests.get: \"x\" is not a path: it begins with /, holds no control character, and nothing \
               ends in #… (for example: get: /todos/{{id}})
             17: bots.requests: \"redirect\" is a line of the table that is taken; take another name
             18: bots.requests.body: a request has one body: text (body) or JSON (json)
             18: bots.requests.capture: \"id\" {POINTER} (for example: capture: {{ id: /id }})
             18: bots.requests: ok is drawn anew for each request, so nothing can be captured into it; take another \
               name
             19: bots.requests: {{nobody}} {NO_VARIABLE}
             19: bots.requests: {{no}} {NO_VARIABLE}
             19: bots.requests: \"a#b\" of variable hash does not fit into a path, because of its # or a control \
               character; write # as %23
             20: bots.requests.check.status: \"700\" is not a status or a range of them: 100 to 599, such as 200 or \
               200..299 (for example: status: 200..299)
             20: bots.requests.check.json: \"ok\" {POINTER} (for example: json: {{ /ok: true }})
             20: bots.requests.check.bytes: the range 5..1 is empty; write the smaller end first (for example: bytes: \
               1..100)
             21: unknown key \"gte\" in bots.requests; known: name, weight, get, post, put, patch, delete, head, \
               method, path, call, headers, body, json, check, capture; did you mean get? (for example: get: \
               /todos/{{id}})
             21: bots.requests: {ONCE}"
        ),
    );
}

#[test]
fn braces_around_anything_else_than_a_name_are_left_alone() {
    let plan = plan_of(
        "subject: { target: http://127.0.0.1 }\nbots: { kind: http, requests: [{ post: /, json: { a: { b: {} } } }, \
         { name: q, post: /graphql, body: \"query { me { id } }\" }] }\n",
    );
    assert_eq!(http_of(&plan).requests[0].body, r#"{"a":{"b":{}}}"#);
    assert_eq!(http_of(&plan).requests[0].name, "POST /");
}

#[test]
fn flags_for_one_request_do_not_change_a_scenarios_list() {
    let text = "subject: { target: http://127.0.0.1 }\nbots: { kind: http, requests: [{ get: / }] }\n";
    let mistakes = resolved("x.yaml --body x --method PUT", Some(text)).unwrap_err();
    let why =
        "this is about the one request of a URL, but the scenario has requests of its own; change it there";
    assert_eq!(mistakes, format!("--method: {why}\n--body: {why}"));
}

#[test]
fn bots_and_schemes_of_http_belong_together() {
    check_refusals(
        "$ climb ws://127.0.0.1 --bots http
           --bots: http bots do not speak over ws://; they speak over http:// or https://
         $ climb http://127.0.0.1 --bots echo
           --bots: echo bots do not speak over http://; they speak over ws://, wss:// or tcp://
         $ climb https://127.0.0.1 --bots arena
           --bots: arena bots do not speak over https://; they speak over ws:// or wss://
         $ climb poll-loop --bots arena
           --bots: arena bots cannot talk to poll-loop; leave the bots out, and its own are taken",
    );
    plan_of_flags("poll-loop --bots http");
    check_refused(
        "127.0.0.1:443",
        "does not say which protocol: https://127.0.0.1:443, wss://127.0.0.1:443, http://",
    );
}

#[test]
fn a_misspelt_word_does_not_bring_forth_complaints_about_requests() {
    let server = refusal("htp://127.0.0.1 --body x --rate 5");
    assert!(server.lines().count() == 1 && server.contains("did you mean http?"), "{server}");
}

proptest! {
    #[test]
    fn no_list_of_requests_makes_the_reader_panic(
        lines in proptest::collection::vec(
            "    (- )?(get|post|path|method|headers|json|check|capture|status|body|weight|name): [-\\[\\]{}a-z0-9,:/#&*%~\"' $]{0,14}", 0..8)
    ) {
        let text = format!("subject: http://127.0.0.1\nbots:\n  kind: http\n  requests:\n{}", lines.join("\n"));
        let _ = resolve(&Flags::of("x.yaml"), scenario(&text), 1);
    }
}
