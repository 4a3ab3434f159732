use drivers::{Grpc, Messages};
use plan::schema::ProtoFiles;
use plan::{HttpCheck, HttpModel, HttpVersion, Scheme, Variable, VariableLaw, WebSocketFrames};
use serde_json::json;

use super::*;

const PROTO: &str = r#"
    syntax = "proto3"; package game.v1;
    message Move { string player = 1; sint64 x = 2; Mode mode = 3; map<string, int32> by_name = 4; }
    message Moved { sint64 x = 1; repeated string seen = 2; Error error = 3; uint64 id = 4; }
    message Error { uint32 code = 1; string text = 2; }
    enum Mode { MODE_NONE = 0; MODE_WALK = 1; }
    service Game { rpc Go(Move) returns (Moved); }
"#;

fn settings(over: ProtobufOver, body: Value, check: HttpCheck, capture: &[(&str, &str)]) -> ProtobufBots {
    let variable = |name: &str, law| Variable { name: name.to_owned(), law };
    ProtobufBots {
        http: HttpBots {
            model: HttpModel::Closed { think_ns: 0 },
            version: HttpVersion::One,
            keep_alive: true,
            streams: 1,
            visit: Default::default(),
            requests: vec![HttpRequest {
                name: "Game/Go".to_owned(),
                weight: 1.0,
                method: "POST".to_owned(),
                path: "/game.v1.Game/Go".to_owned(),
                headers: Vec::new(),
                body: body.to_string(),
                check,
                capture: capture.iter().map(|(name, at)| ((*name).to_owned(), (*at).to_owned())).collect(),
            }],
            variables: vec![
                variable("n", VariableLaw::Counter),
                variable("at", VariableLaw::Captured("-1".to_owned())),
            ],
            timeout_ns: 1_000_000_000,
            redirects_max: 0,
            body_bytes_max: 1 << 20,
        },
        over,
        proto: ProtoFiles::of_text("game.proto", PROTO),
    }
}

fn frames() -> ProtobufOver {
    ProtobufOver::WebSocket(WebSocketFrames {
        request: "Move".to_owned(),
        reply: "Moved".to_owned(),
        id: None,
        error: Some("error.code".to_owned()),
    })
}

fn calls<D: Http>(settings: &ProtobufBots) -> Calls<D> {
    let address = ([127, 0, 0, 1], 1).into();
    let plan = WorkerPlan::alone(settings.clone().into(), 1, Scheme::Grpc, address);
    <Calls<D> as Source<D>>::new(settings, &plan)
}

fn encoded(name: &str, json: Value) -> Vec<u8> {
    let message = Schema::of_text("game.proto", PROTO).unwrap().message(name).unwrap();
    schema::message_of(&message, &json).unwrap().encode_to_vec()
}

fn decoded(name: &str, bytes: &[u8]) -> Value {
    let message = Schema::of_text("game.proto", PROTO).unwrap().message(name).unwrap();
    serde_json::to_value(DynamicMessage::decode(message, bytes).unwrap()).unwrap()
}

fn answer(status: u16, grpc: Option<u8>, body: &[u8]) -> Answer<'_> {
    Answer { tag: 0, status, body, body_bytes: body.len() as u64, location: None, closes: false, grpc }
}

const ONE: Chosen = Chosen { op: 0, token: 0 };

/// The cause and text of what is wrong with a reply.
fn wrong<D: Http>(calls: &mut Calls<D>, answer: &Answer<'_>) -> Option<(usize, String)> {
    let mut found = None;
    let is_right = calls.check(ONE, answer, |cause, text| found = Some((cause, text.to_string())));
    assert_eq!(is_right, found.is_none());
    found
}

#[test]
fn a_variable_may_stand_wherever_json_has_a_text_also_in_an_enum_and_a_map() {
    let body = json!({"player": "p{n}", "x": "{at}", "mode": "MODE_WALK", "by_name": {"ann": "{n}"}});
    let settings = settings(ProtobufOver::Grpc, body, HttpCheck::default(), &[]);
    let calls = calls::<Grpc>(&settings);
    let bytes = calls.requests[0].body.render(&["n", "at"], &["7".to_owned(), "-1".to_owned()]);
    let expected = json!({"player": "p7", "x": "-1", "mode": "MODE_WALK", "byName": {"ann": 7}});
    assert_eq!(decoded("Move", &bytes), expected);
}

#[test]
fn a_request_in_which_nothing_changes_is_encoded_once() {
    let body = |text: &str| json!({"player": text});
    let is_prepared = |text: &str| {
        let settings = settings(ProtobufOver::Grpc, body(text), HttpCheck::default(), &[]);
        calls::<Grpc>(&settings).requests[0].prepared.is_some()
    };
    assert!(is_prepared("ann {x}") && !is_prepared("ann {n}"));
}

#[test]
fn a_reply_is_held_against_its_status_its_type_and_its_fields() {
    let check = HttpCheck { json: vec![("/x".to_owned(), Some(json!(5)))], ..HttpCheck::default() };
    let mut calls = calls::<Grpc>(&settings(ProtobufOver::Grpc, json!({}), check, &[]));
    let five = encoded("Moved", json!({"x": 5}));
    assert_eq!(wrong(&mut calls, &answer(200, Some(0), &five)), None);
    for (given, cause, words) in [
        (answer(200, Some(0), &encoded("Moved", json!({"x": 6}))), WRONG_FIELD, "Game/Go: /x is 6, not 5"),
        (answer(200, Some(0), &[]), WRONG_FIELD, "Game/Go: /x is 0, not 5"),
        (answer(200, Some(0), &[0x0a, 9, 1]), WRONG_MESSAGE, "Game/Go: no game.v1.Moved: "),
        (answer(501, Some(12), b"not here"), GRPC_AT + 11, "Game/Go: UNIMPLEMENTED: \"not here\""),
        (answer(502, None, b"<html>"), errors::STATUS_5XX, "Game/Go: status 502"),
    ] {
        let (found, text) = wrong(&mut calls, &given).unwrap();
        assert!(found == cause && text.starts_with(words), "{found} {text}");
    }
}

#[test]
fn an_error_is_right_where_the_check_expects_it_and_ok_is_wrong_where_it_does_not() {
    let check = HttpCheck {
        status: vec![(5, 5)],
        contains: Some("no such".to_owned()),
        json: vec![("/x".to_owned(), Some(json!(5)))],
        ..HttpCheck::default()
    };
    let mut calls = calls::<Grpc>(&settings(ProtobufOver::Grpc, json!({}), check, &[]));
    assert_eq!(wrong(&mut calls, &answer(404, Some(5), b"no such player")), None);
    assert_eq!(wrong(&mut calls, &answer(404, Some(5), b"gone")).unwrap().0, errors::WRONG_BODY);
    let (_, text) = wrong(&mut calls, &answer(200, Some(0), &[])).unwrap();
    assert_eq!(text, "Game/Go: OK, where an error was expected");
}

#[test]
fn over_websocket_the_status_is_a_field_and_the_reply_is_shown_as_json() {
    let mut calls = calls::<Messages>(&settings(frames(), json!({}), HttpCheck::default(), &[]));
    let refused = encoded("Moved", json!({"error": {"code": 404, "text": "no such player"}}));
    let (cause, text) = wrong(&mut calls, &answer(404, None, &refused)).unwrap();
    assert_eq!(cause, errors::STATUS_4XX);
    assert!(text.contains("no such player"), "{text}");
    assert_eq!(wrong(&mut calls, &answer(200, None, &encoded("Moved", json!({"x": 1})))), None);
    let expected = HttpCheck { status: vec![(7, 7)], ..HttpCheck::default() };
    let mut calls = self::calls::<Messages>(&settings(frames(), json!({}), expected, &[]));
    assert_eq!(wrong(&mut calls, &answer(7, None, &encoded("Moved", json!({"error": {"code": 7}})))), None);
    assert!(wrong(&mut calls, &answer(200, None, &[])).is_some());
}

#[test]
fn what_a_reply_holds_is_captured_for_the_next_request() {
    let capture = [("at", "/x")];
    let settings = settings(ProtobufOver::Grpc, json!({"x": "{at}"}), HttpCheck::default(), &capture);
    let mut calls = calls::<Grpc>(&settings);
    let reply = encoded("Moved", json!({"x": "9007199254740993"}));
    let given = answer(200, Some(0), &reply);
    let mut captured = CapturedVars::new();
    assert_eq!(wrong(&mut calls, &given), None);
    <Calls<Grpc> as Source<Grpc>>::learn(&mut calls, ONE, &given, &mut captured);
    let values = calls.texts.draw(&captured);
    assert_eq!(values[1], "9007199254740993");
    let bytes = calls.requests[0].body.render(&["n", "at"], &values);
    assert_eq!(decoded("Move", &bytes), json!({"x": "9007199254740993"}));
}

#[test]
fn the_codes_of_the_plan_are_those_of_the_driver() {
    assert_eq!(plan::GRPC_CODES[1..], grpc::NAMES);
}
