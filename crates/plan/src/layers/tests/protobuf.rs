use std::io;
use std::path::Path;

use super::*;
use crate::workloads::{ProtobufBots, ProtobufOver, WebSocketFrames};

const PROTO: &str = "syntax = \"proto3\"; package game.v1;
message Move { string player = 1; sint64 x = 2; Mode mode = 3; }
message Moved { sint64 x = 1; repeated string seen = 2; Error error = 3; uint64 in_reply_to = 4; }
message Error { uint32 code = 1; }
message Request { uint64 id = 1; Move move = 2; }
enum Mode { MODE_NONE = 0; MODE_WALK = 1; }
service Game { rpc Go(Move) returns (Moved); rpc Stop(Move) returns (Moved); }";

const OLD_PROTO: &str = "syntax = \"proto2\"; package old;
message Key { required string of = 1; }
message Ask { required uint64 id = 1; optional Key key = 2; }
message Told { optional uint64 id = 1; }
service Game { rpc Ask(Ask) returns (Told); rpc Watch(Ask) returns (stream Told); }";

fn resolved(line: &str, text: Option<&str>) -> Result<Plan, Mistakes> {
    let read = |path: &Path| match path.to_str() {
        Some("dir/game.proto") => Ok(PROTO.to_owned()),
        Some("dir/old.proto") => Ok(OLD_PROTO.to_owned()),
        _ => Err(io::Error::other("no such file")),
    };
    resolve_with(&Flags::of(line), text.and_then(scenario), 7, &read).map(stored)
}

fn protobuf(plan: &Plan) -> &ProtobufBots {
    bots_of(plan)
}

/// Words of the only mistake.
#[track_caller]
fn refused(line: &str, text: Option<&str>, words: &str) {
    let told = resolved(line, text).expect_err(line);
    assert!(told.0.len() == 1 && told.to_string().contains(words), "{words}\n{told}");
}

const SCENARIO: &str = "subject: { target: 'grpc://127.0.0.1:1' }
bots:
  kind: protobuf
  proto: dir/game.proto
  variables: { far: { from: -3, to: 9 }, mode: { one_of: [MODE_NONE, MODE_WALK] } }
  requests:
    - call: game.v1.Game/Go
      weight: 3
      json: { player: 'p{far}', x: '{far}', mode: '{mode}' }
      check: { json: { /x: '5', /seen/0: ~ } }
      capture: { at: /x }
    - call: game.v1.Game/Stop
      json: { x: '{at}' }
      check: { status: [OK, NOT_FOUND] }
ladder: { rate: [100], hold: 1s }
";

#[test]
fn a_call_on_the_command_line_needs_the_schema_and_nothing_else() {
    let line = "grpc://127.0.0.1:1/game.v1.Game/Go --proto dir/game.proto --body '{\"x\": 5}' --rate 100 --in-flight 4";
    let plan = resolved(line, None).unwrap();
    let bots = protobuf(&plan);
    let request = &bots.http.requests[0];
    assert_eq!((request.name.as_str(), request.path.as_str()), ("Game/Go", "/game.v1.Game/Go"));
    assert_eq!((request.body.as_str(), bots.http.streams), ("{\"x\": 5}", 4));
    assert_eq!((&bots.over, bots.proto.files[0].text.as_str()), (&ProtobufOver::Grpc, PROTO));
    assert_eq!(plan.objectives[0].to_string(), "errors == 0");
    let missing = "--proto: it does not say which schema the messages have; name its .proto file";
    refused("grpc://127.0.0.1:1/game.v1.Game/Go", None, missing);
    refused("grpc://127.0.0.1:1 --proto dir/game.proto", None, "climb: it does not say which call is made");
    let unread = "--proto: other.proto: no such file; check the path";
    refused("grpc://127.0.0.1:1/game.v1.Game/Go --proto other.proto", None, unread);
    let line = "grpc://127.0.0.1:1/game.v1.Game/Goo --proto dir/game.proto";
    refused(
        line,
        None,
        "climb: the schema has no call \"game.v1.Game/Goo\"; it has game.v1.Game/Go, game.v1.Game/Stop; did you mean game.v1.Game/Go? (for example",
    );
}

#[test]
fn a_scenario_has_the_requests_variables_and_checks_that_http_has() {
    let plan = resolved("scenarios/x.yaml", Some(SCENARIO)).unwrap();
    let http = &protobuf(&plan).http;
    assert_eq!((http.requests[0].weight, http.requests[1].path.as_str()), (3.0, "/game.v1.Game/Stop"));
    let wanted = vec![("/x".to_owned(), Some(serde_json::json!(5))), ("/seen/0".to_owned(), None)];
    let mut checked = http.requests[0].check.json.clone();
    checked.sort_by_key(|(pointer, _)| std::cmp::Reverse(pointer.clone()));
    assert_eq!(checked, wanted);
    assert_eq!(http.requests[1].check.status, [(0, 0), (5, 5)]);
    assert_eq!(http.requests[0].capture, [("at".to_owned(), "/x".to_owned())]);
}

#[test]
fn what_does_not_fit_the_schema_is_refused_with_its_line_and_the_nearest_name() {
    let check = |from: &str, to: &str, words: &str| {
        let text = SCENARIO.replace(from, to);
        assert_ne!(text, SCENARIO);
        refused("scenarios/x.yaml", Some(&text), words);
    };
    check("Game/Go", "Game/Og", "x.yaml:7: bots.requests.call: the schema has no call");
    check(
        "player: 'p",
        "plyer: 'p",
        "x.yaml:9: bots.requests.json: game.v1.Move has no field \"plyer\"; it has player, x, mode; did you mean player?",
    );
    check("x: '{far}'", "x: 'far {far}'", "x.yaml:9: bots.requests.json: game.v1.Move: ");
    check("MODE_NONE, MODE_WALK", "MODE_NONE, MODE_FLY", "MODE_FLY");
    check("/x: '5'", "/y: '5'", "x.yaml:10: bots.requests.check.json: game.v1.Moved has no field \"y\"");
    check("/x: '5'", "/x: five", "x.yaml:10: bots.requests.check.json: game.v1.Moved: ");
    check("at: /x", "at: /seen/x", "x.yaml:11: bots.requests.capture: game.v1.Moved.seen is a list");
    check("NOT_FOUND", "NOTFOUND", "\"NOTFOUND\" is no status of gRPC");
    check("call: game.v1.Game/Stop", "get: /stop", "a message has no method and no path");
}

#[test]
fn frames_of_a_websocket_have_types_numbers_and_errors_by_name() {
    let line = "ws://127.0.0.1:1/ws --bots protobuf --proto dir/game.proto --request-message Request --reply-message \
                game.v1.Moved --id-field id --reply-id-field in_reply_to --error-field error.code --body '{\"move\": {\"x\": 1}}'";
    let plan = resolved(line, None).unwrap();
    let frames = WebSocketFrames {
        request: "Request".into(),
        reply: "game.v1.Moved".into(),
        id: Some(("id".into(), "in_reply_to".into())),
        error: Some("error.code".into()),
    };
    assert_eq!(protobuf(&plan).over, ProtobufOver::WebSocket(frames));
    let check = |from: &str, to: &str, words: &str| refused(&line.replace(from, to), None, words);
    check("--id-field id", "--id-field nr", "--id-field: game.v1.Request has no field \"nr\"");
    check(
        "--id-field id",
        "--id-field move",
        "--id-field: game.v1.Request.move cannot hold the number of a request",
    );
    check(
        "error.code",
        "error.cod",
        "--error-field: game.v1.Error has no field \"cod\"; it has code; did you mean code?",
    );
    check(
        "--request-message Request ",
        "",
        "--request-message: over WebSocket each frame holds a message of one type",
    );
    check("{\"x\"", "{\"z\"", "--body: game.v1.Move has no field \"z\"");
    check("'{\"move\": {\"x\": 1}}'", "'{'", "--body: the message is no JSON");
    let line = "grpc://127.0.0.1:1/game.v1.Game/Go --proto dir/game.proto --id-field id";
    refused(line, None, "--id-field: id_field is for messages over WebSocket");
}

#[test]
fn calls_are_not_for_http_nor_paths_for_calls() {
    let text = "subject: { target: 'http://127.0.0.1:1' }\nbots: { kind: http, requests: [{ get: /a, call: a.B/C }] }\n";
    refused("scenarios/x.yaml", Some(text), "call is for protobuf bots");
    refused("http://127.0.0.1:1 --proto dir/game.proto", None, "--proto: proto is for protobuf bots");
}

#[test]
fn a_call_that_streams_is_refused_before_any_load() {
    refused(
        "grpc://127.0.0.1:1/old.Game/Watch --proto dir/old.proto --body '{\"id\": 1}'",
        None,
        "old.Game/Watch replies with a stream of messages, and Stepladder calls methods that take one message and give \
           one reply; of its service these can be called: old.Game/Ask",
    );
}

#[test]
fn a_message_without_what_its_schema_requires_is_refused_before_any_load() {
    let over_grpc = |body: &str| {
        format!("grpc://127.0.0.1:1/old.Game/Ask --proto dir/old.proto --rate 10 --body '{body}'")
    };
    refused(&over_grpc("{}"), None, "--body: the message lacks old.Ask.id, which the schema requires");
    refused(&over_grpc(r#"{"id": 1, "key": {}}"#), None, "the message lacks old.Key.of");
    resolved(&over_grpc(r#"{"id": 1, "key": {"of": ""}}"#), None).unwrap();
    let scenario = |json: &str| {
        format!(
            "subject: {{ target: 'grpc://127.0.0.1:1' }}
bots:
  kind: protobuf
  proto: dir/old.proto
  variables: {{ n: {{ from: 1, to: 9 }} }}
  requests: [{{ call: old.Game/Ask, json: {json} }}]
ladder: {{ rate: [100], hold: 1s }}
"
        )
    };
    resolved("x.yaml", Some(&scenario("{ id: '{n}' }"))).unwrap();
    let lacks = "x.yaml:6: bots.requests.json: the message lacks old.Key.of, which the schema requires";
    refused("x.yaml", Some(&scenario("{ id: '{n}', key: {} }")), lacks);
    // Over WebSocket the number of a request is put into its field when it is sent.
    let frames = "ws://127.0.0.1:1 --bots protobuf --proto dir/old.proto --request-message old.Ask --reply-message old.Told --rate 10";
    refused(frames, None, "the message lacks old.Ask.id");
    resolved(&format!("{frames} --id-field id"), None).unwrap();
}
