//! `climb grpc://…`, and protobuf messages over `ws://…`, with the schema from a .proto file: correct replies count as
//! answers, and wrong ones, injected by the server, fail the rung with their cause.

use serde_json::Value;

use crate::main_job::{checked_run, exit_code_of};
use crate::place::{Place, Running};

const PROTO: &str = include_str!("../../../../servers/leaderboard-service/proto/leaderboard.proto");

const LADDER: &str = "ladder: { rate: [200], hold: 2s, settle: 200ms }\nobjectives: [ errors == 0 ]\n";

/// What is asked over gRPC: one member, who always has 5 points and so rank 1.
const CALLS: &str = "
  variables: { points: { one_of: ['5'] } }
  requests:
    - call: stepladder.leaderboard.v1.Leaderboard/Update
      weight: 3
      json: { board: main, member: ann, mode: MODE_REPLACE, number: '{points}' }
      check: { json: { /number: 5, /rank: 1 } }
    - call: stepladder.leaderboard.v1.Leaderboard/Get
      json: { board: main, member: ann }
      check: { status: [OK, NOT_FOUND], json: { /number: 5, /rank: 1 } }
    - call: stepladder.leaderboard.v1.Leaderboard/Get
      name: nobody
      json: { board: main, member: bob }
      check: { status: NOT_FOUND }
";

/// A leaderboard with these faults, and its port.
fn leaderboard(place: &Place, faults: &[&str]) -> (Running, String) {
    let faults = faults.iter().flat_map(|fault| ["--fault", *fault]);
    let words = ["serve", "leaderboard", "--listen", "127.0.0.1:0"].into_iter().chain(faults);
    let mut server = place.start(words.collect::<Vec<_>>());
    let said = server.wait_for_out("listening on");
    let port = said.split("127.0.0.1:").nth(1).expect("its address");
    let port = port.chars().take_while(char::is_ascii_digit).collect();
    (server, port)
}

/// The only rung of this scenario, which was measured.
fn rung(place: &Place, scenario: &str) -> Value {
    place.write("x.yaml", scenario);
    let ran = place.run(["climb", "x.yaml", "--no-calibration", "--json", "run.json"]);
    assert!(place.path("run.json").exists(), "{ran:#?}");
    let run = checked_run(place);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    run["rungs"][0].clone()
}

fn grpc(port: &str, calls: &str) -> String {
    format!(
        "subject: {{ target: 'grpc://127.0.0.1:{port}' }}\nbots:\n  kind: protobuf\n  proto: leaderboard.proto{calls}{LADDER}"
    )
}

fn websocket(port: &str) -> String {
    format!(
        "subject: {{ target: 'ws://127.0.0.1:{port}/ws' }}
bots:
  kind: protobuf
  proto: leaderboard.proto
  request_message: Request
  reply_message: stepladder.leaderboard.v1.Response
  id_field: id
  error_field: error.code
  requests:
    - name: update
      json: {{ update: {{ board: main, member: ann, mode: MODE_REPLACE, number: 5 }} }}
      check: {{ json: {{ /standing/number: 5, /standing/rank: 1 }} }}
{LADDER}"
    )
}

#[track_caller]
fn assert_right(rung: &Value) {
    assert!(rung["answered"].as_u64() > Some(200), "{rung:#}");
    assert_eq!((&rung["failed"], &rung["verdict"] == "FAIL"), (&Value::from(0), false), "{rung:#}");
    assert!(rung["errors"].as_object().is_some_and(|errors| errors.is_empty()), "{:#}", rung["errors"]);
}

#[track_caller]
fn assert_wrong(rung: &Value, cause: &str, words: &str) {
    assert!(rung["errors"][cause].as_u64() > Some(0), "no {cause} in {:#}", rung["errors"]);
    assert_eq!(rung["verdict"], "FAIL", "{rung:#}");
    let samples = rung["error_samples"].as_array().expect("samples");
    let text =
        samples.iter().find(|sample| sample["cause"] == cause).and_then(|sample| sample["text"].as_str());
    assert!(text.is_some_and(|text| text.contains(words)), "{samples:#?}");
}

#[test]
fn calls_of_a_schema_from_a_file_are_answered_rightly() {
    let place = Place::new();
    place.write("leaderboard.proto", PROTO);
    let (_server, port) = leaderboard(&place, &[]);
    let rung = rung(&place, &grpc(&port, CALLS));
    assert_right(&rung);
    let flows = rung["flows"].as_object().expect("flows");
    assert!(["Leaderboard/Update", "Leaderboard/Get", "nobody"].iter().all(|name| flows.contains_key(*name)));
}

#[test]
fn a_wrong_field_and_a_call_that_the_server_does_not_have_fail_the_rung() {
    let place = Place::new();
    let more = "rpc Get(Get) returns (Standing);\n  rpc Rename(Get) returns (Standing);";
    place.write("leaderboard.proto", &PROTO.replace("rpc Get(Get) returns (Standing);", more));
    let (_server, port) = leaderboard(&place, &["wrong-rank:20%"]);
    let calls = format!("{CALLS}    - call: stepladder.leaderboard.v1.Leaderboard/Rename\n");
    let rung = rung(&place, &grpc(&port, &calls));
    assert_wrong(&rung, "wrong field", "/rank is 2, not 1");
    assert_wrong(&rung, "UNIMPLEMENTED", "Leaderboard/Rename: UNIMPLEMENTED");
}

#[test]
fn messages_in_frames_are_answered_rightly_and_a_wrong_one_fails_the_rung() {
    let place = Place::new();
    place.write("leaderboard.proto", PROTO);
    let (_server, port) = leaderboard(&place, &[]);
    assert_right(&rung(&place, &websocket(&port)));
    let (_server, port) = leaderboard(&place, &["wrong-rank:20%"]);
    assert_wrong(&rung(&place, &websocket(&port)), "wrong field", "/standing/rank is 2, not 1");
}

#[test]
fn what_does_not_fit_the_file_is_refused_before_any_load() {
    let place = Place::new();
    place.write("leaderboard.proto", PROTO);
    place.write("x.yaml", &grpc("1", &CALLS.replace("/rank: 1", "/rnk: 1")));
    let ran = place.run(["climb", "x.yaml"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let words = "Standing has no field \"rnk\"; it has number, decimal, rank; did you mean rank?";
    assert!(ran.err.contains(words) && ran.err.contains("x.yaml:10:"), "{ran:#?}");
    // Nothing listens there, which is reported only for a valid plan.
    let words =
        ["climb", "grpc://127.0.0.1:1/stepladder.leaderboard.v1.Leaderboard/Top", "--proto", "nothing.proto"];
    let ran = place.run(words);
    assert!(ran.code == 3 && ran.err.contains("--proto: nothing.proto: "), "{ran:#?}");
}
