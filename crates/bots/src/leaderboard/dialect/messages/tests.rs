use prost_reflect::DynamicMessage;
use serde_json::{Value, json};

use super::*;

fn decoded(name: &str, bytes: &[u8]) -> Value {
    let message = Schema::of_text("leaderboard.proto", SCHEMA).unwrap().message(name).unwrap();
    serde_json::to_value(DynamicMessage::decode(message, bytes).unwrap()).unwrap()
}

#[test]
fn every_request_is_the_message_that_the_schema_describes() {
    let websocket = Messages::new(Over::WebSocket, "main");
    let grpc = Messages::new(Over::Grpc, "main");
    let check = |ask: Ask, (field, method): (&str, &str), expected: Value| {
        let written = websocket.write(&ask);
        assert_eq!(decoded("Request", &written.body), json!({field: expected}), "{ask:?}");
        let written = grpc.write(&ask);
        assert_eq!(decoded(method, &written.body), expected, "{ask:?}");
        assert_eq!(written.path, format!("/stepladder.leaderboard.v1.Leaderboard/{method}"));
    };
    let name = || "ann".to_owned();
    let update = json!({"board": "main", "member": "ann", "mode": "MODE_INCREMENT", "number": "-5"});
    check(Ask::Update(name(), -5), ("update", "Update"), update);
    check(Ask::Top(10), ("top", "Top"), json!({"board": "main", "limit": "10"}));
    check(Ask::Rank(name()), ("get", "Get"), json!({"board": "main", "member": "ann"}));
    let around = json!({"board": "main", "member": "ann", "eachSide": "5"});
    check(Ask::Around(name()), ("around", "Around"), around);
    check(Ask::At(7), ("range", "Range"), json!({"board": "main", "first": "7", "limit": "1"}));
    let ranks = json!({"board": "main", "members": ["ann", "bob"]});
    check(Ask::Standings(vec![name(), "bob".to_owned()]), ("ranks", "Ranks"), ranks);
    let item = |name: &str, points: &str| json!({"member": name, "mode": "MODE_INCREMENT", "number": points});
    let bulk = json!({"parts": [{"board": "main", "items": [item("ann", "5"), item("bob", "1000")]}]});
    check(Ask::Bulk(vec![(name(), 5), ("bob".to_owned(), 1000)]), ("bulk", "Bulk"), bulk);
}

#[test]
fn a_number_and_a_status_are_found_around_a_result() {
    let messages = Messages::new(Over::WebSocket, "main");
    let envelope = messages.envelope().unwrap();
    let mut request = messages.write(&Ask::Top(1)).body;
    envelope.put_id(&mut request, 300);
    assert_eq!(decoded("Request", &request)["id"], "300");
    let template = |value: Value| {
        let message = Schema::of_text("leaderboard.proto", SCHEMA).unwrap().message("Response").unwrap();
        let mut out = Vec::new();
        Template::compile(&message, &value, &NAME_AND_NUMBER).unwrap().render(&mut out, &|_| "");
        out
    };
    let right = template(json!({"id": 300, "standing": {"number": 5, "rank": 1}}));
    assert_eq!((envelope.id_of(&right), envelope.status_of(&right)), (Ok(Some(300)), Ok(200)));
    let refused = template(json!({"id": 1, "error": {"code": 404, "message": "no such board"}}));
    assert_eq!((envelope.id_of(&refused), envelope.status_of(&refused)), (Ok(Some(1)), Ok(404)));
    assert!(messages.shown(&refused).contains("no such board"));
    assert!(messages.standing(&refused).is_err());
}

#[test]
fn a_score_beyond_64_bits_or_no_message_is_told() {
    let messages = Messages::new(Over::Grpc, "main");
    let standing = |bytes: &[u8]| messages.standing(bytes).map(|standing| (standing.score, standing.rank));
    assert_eq!(standing(&[0x12, 2, b'-', b'7', 0x18, 9]), Ok((-7, 9)));
    assert_eq!(standing(&[0x18, 9]), Err("no score".to_owned()));
    assert_eq!(standing(&[0x12, 1, b'x']), Err("a score of x".to_owned()));
    for malformed in [&[0x08][..], &[0x12, 9, b'1'], &[0x0a, 1, 1], &[0x1a, 1, 1, 8, 2]] {
        assert!(standing(malformed).is_err(), "{malformed:02x?}");
    }
}

#[test]
fn a_bulk_that_is_refused_within_its_response_is_told_apart_from_one_that_is_done() {
    let messages = Messages::new(Over::Grpc, "main");
    let template = |value: Value| {
        let message = Schema::of_text("leaderboard.proto", SCHEMA).unwrap().message("BulkDone").unwrap();
        let mut out = Vec::new();
        Template::compile(&message, &value, &NAME_AND_NUMBER).unwrap().render(&mut out, &|_| "");
        out
    };
    let refused = template(json!({"error": {"code": 429, "message": "too many answers wait"}}));
    assert_eq!(messages.refusal_of_bulk(&refused), Some((429, "too many answers wait".to_owned())));
    let done = template(json!({"parts": [{"standings": [{"number": 5, "rank": 1}]}]}));
    assert_eq!(messages.refusal_of_bulk(&done), None);
    assert_eq!(messages.bulk(&done).unwrap().len(), 1);
    assert_eq!(Messages::new(Over::WebSocket, "main").refusal_of_bulk(&refused), None);
}

#[test]
fn what_is_signed_is_the_operation_and_the_signature_lies_where_the_service_looks_for_it() {
    let signature =
        Signature { key: "game".to_owned(), nonce: "n1".to_owned(), expires_s: 1_800_000_000, hmac: [7; 32] };
    let ask = Ask::Update("ann".to_owned(), 5);
    let [websocket, grpc] = [Over::WebSocket, Over::Grpc].map(|over| Messages::new(over, "main"));
    let (mut framed, alone) = (websocket.write(&ask), grpc.write(&ask));
    assert_eq!(framed.body[framed.claim.from..], alone.body);
    assert_eq!(
        (alone.claim.method, alone.claim.target.as_str(), alone.claim.from),
        ("PROTOBUF", "update", 0)
    );
    assert!(websocket.carries_signatures() && !grpc.carries_signatures());
    websocket.put_signature(&mut framed.body, &signature);
    let told = decoded("Request", &framed.body);
    let hmac = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let expected = json!({"key": "game", "nonce": "n1", "expires": "1800000000", "signature": hmac});
    assert_eq!((&told["signature"], &told["update"]["member"]), (&expected, &json!("ann")));
    let bulk = grpc.write(&Ask::Bulk(vec![("ann".to_owned(), 1), ("bob".to_owned(), 2)]));
    assert_eq!(bulk.claim.target, "bulk");
}
