//! The leaderboard service over WebSocket, tested with a reader and writer that are generated from its schema.

use std::sync::LazyLock;

use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use servers::leaderboard_service::Options;

use crate::client::{Client, Frame, Running, frame};
use crate::leaderboard_client::{Player, at, options, start};
use crate::leaderboard_signed::{SECRET, hex, hmac_bytes, now_s};

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let mut compiler =
        protox::Compiler::new([concat!(env!("CARGO_MANIFEST_DIR"), "/leaderboard-service/proto")]).unwrap();
    compiler.open_file("leaderboard.proto").unwrap();
    compiler.descriptor_pool()
});

pub fn encoded(name: &str, value: &Value) -> Vec<u8> {
    let descriptor = POOL.get_message_by_name(&format!("stepladder.leaderboard.v1.{name}")).unwrap();
    DynamicMessage::deserialize(descriptor, value).unwrap().encode_to_vec()
}

pub fn decoded(name: &str, bytes: &[u8]) -> Value {
    let descriptor = POOL.get_message_by_name(&format!("stepladder.leaderboard.v1.{name}")).unwrap();
    serde_json::to_value(DynamicMessage::decode(descriptor, bytes).unwrap()).unwrap()
}

const BINARY: u8 = 0x82;

pub fn request(value: &Value) -> Vec<u8> {
    frame(BINARY, &encoded("Request", value))
}

fn connect(running: &Running) -> Client {
    Client::open(running.address, "/ws")
}

#[track_caller]
fn response(client: &mut Client) -> Value {
    match client.hear() {
        Frame::Binary(bytes) => decoded("Response", &bytes),
        other => panic!("{other:?} instead of a response"),
    }
}

#[track_caller]
fn ask(client: &mut Client, value: Value) -> Value {
    client.write(&request(&value));
    response(client)
}

pub fn increment(id: u64, member: &str, by: i64) -> Value {
    json!({"id": id, "update": {"board": "main", "member": member, "mode": "MODE_INCREMENT", "number": by}})
}

#[test]
fn every_operation_gives_what_http_gives() {
    let running = start(options());
    let mut client = connect(&running);
    let standing =
        |id: &str, number: &str, rank: &str| json!({"id": id, "standing": {"number": number, "rank": rank}});
    assert_eq!(ask(&mut client, increment(1, "ann", 5)), standing("1", "5", "1"));
    assert_eq!(ask(&mut client, increment(2, "bob", 7)), standing("2", "7", "1"));
    let mut http = Player::of(&running);
    assert_eq!(http.standing("bob"), at(7, 1));
    let get = json!({"id": 3, "get": {"board": "main", "member": "ann"}});
    assert_eq!(ask(&mut client, get), standing("3", "5", "2"));
    let large = "9".repeat(100);
    let update = json!({"id": 4, "update": {"board": "main", "member": "cy", "mode": "MODE_REPLACE", "decimal": large}});
    assert_eq!(ask(&mut client, update), json!({"id": "4", "standing": {"decimal": large, "rank": "1"}}));
    let ranks = json!({"id": 5, "ranks": {"board": "main", "members": ["bob", "nobody", "ann"]}});
    let standings = json!([{"number": "7", "rank": "2"}, {}, {"number": "5", "rank": "3"}]);
    assert_eq!(ask(&mut client, ranks), json!({"id": "5", "standings": {"standings": standings}}));
    let row =
        |member: &str, number: &str, rank: &str| json!({"member": member, "number": number, "rank": rank});
    let first = json!({"member": "cy", "decimal": large, "rank": "1"});
    let page = |id: &str, rows: Value, next: Option<&str>| {
        let mut page = json!({"members": "3", "rows": rows});
        if let Some(next) = next {
            page["next"] = json!(next);
        }
        json!({"id": id, "page": page})
    };
    let top = ask(&mut client, json!({"id": 6, "top": {"board": "main", "limit": 2}}));
    assert_eq!(top, page("6", json!([first, row("bob", "7", "2")]), Some("3")));
    let range = ask(&mut client, json!({"id": 7, "range": {"board": "main", "first": 2}}));
    assert_eq!(range, page("7", json!([row("bob", "7", "2"), row("ann", "5", "3")]), None));
    let around =
        ask(&mut client, json!({"id": 8, "around": {"board": "main", "member": "ann", "eachSide": 0}}));
    assert_eq!(around, page("8", json!([row("ann", "5", "3")]), None));
    let items = json!([
        {"member": "ann", "mode": "MODE_INCREMENT", "number": 10}, {"member": "dee", "mode": "MODE_BEST", "number": -1}]);
    let bulk = json!({"id": 9, "bulk": {"parts": [{"board": "main", "items": items}, {"board": "main"}]}});
    let standings = json!([{"number": "15", "rank": "2"}, {"number": "-1", "rank": "4"}]);
    assert_eq!(ask(&mut client, bulk), json!({"id": "9", "bulk": {"parts": [{"standings": standings}, {}]}}));
    assert_eq!(http.standing("dee"), at(-1, 4));
    let metrics = http.ask("GET", "/metrics", "").body;
    let counted = r#"leaderboard_messages_total{channel="websocket",operation="update",status="200"} 3"#;
    assert!(metrics.contains(counted), "{metrics}");
    assert!(metrics.contains("leaderboard_updates_total 5\n"), "{metrics}");
    running.end().unwrap();
}

#[test]
fn many_requests_under_way_are_answered_in_their_order_however_the_bytes_are_cut() {
    let running = start(options());
    let mut client = connect(&running);
    let bytes: Vec<u8> = (1..=500).flat_map(|id| request(&increment(id, "ann", 1))).collect();
    let (at_once, in_parts) = bytes.split_at(bytes.len() / 2);
    client.write(at_once);
    for part in in_parts.chunks(7) {
        client.write(part);
    }
    for id in 1..=500 {
        let id = id.to_string();
        assert_eq!(response(&mut client), json!({"id": id, "standing": {"number": id, "rank": "1"}}));
    }
    running.end().unwrap();
}

#[test]
fn a_client_that_does_not_take_its_answers_is_not_read_and_loses_none() {
    let running = start(options());
    let mut http = Player::of(&running);
    let item = |number: usize| format!(r#"{{"member":"member-{number}","score":"1","mode":"replace"}}"#);
    let items: Vec<String> = (0..1000).map(item).collect();
    let bulk = format!(r#"{{"leaderboards":[{{"leaderboard":"main","scores":[{}]}}]}}"#, items.join(","));
    http.done("POST", "/bulk", &bulk);
    let mut client = connect(&running);
    // About 6 MB of answers to 3 kB of requests.
    let top = |id: u64| request(&json!({"id": id, "top": {"board": "main", "limit": 1000}}));
    client.write(&(1..=300).flat_map(top).collect::<Vec<u8>>());
    for id in 1..=300 {
        let page = response(&mut client);
        assert_eq!(page["id"], id.to_string());
        assert_eq!(page["page"]["rows"].as_array().unwrap().len(), 1000);
    }
    running.end().unwrap();
}

#[test]
fn a_refused_request_is_told_why_and_has_changed_nothing() {
    let running = start(Options { bulk_max: 2, ..options() });
    let mut client = connect(&running);
    ask(&mut client, increment(1, "ann", 5));
    let mut refused = |code: u64, value: Value| {
        let answer = ask(&mut client, value.clone());
        assert_eq!(answer["error"]["code"], code, "{value}: {answer}");
        assert_eq!(answer["id"], "2");
        answer["error"].clone()
    };
    refused(404, json!({"id": 2, "update": {"board": "x", "member": "ann", "mode": 1, "number": 1}}));
    refused(404, json!({"id": 2, "get": {"board": "main", "member": "x"}}));
    refused(404, json!({"id": 2, "around": {"board": "main", "member": "x"}}));
    refused(422, json!({"id": 2, "update": {"board": "main", "member": "ann", "number": 1}}));
    refused(422, json!({"id": 2, "update": {"board": "main", "member": "ann", "mode": 1}}));
    refused(422, json!({"id": 2, "update": {"board": "main", "mode": 1, "number": 1}}));
    refused(422, json!({"id": 2, "update": {"board": "main", "member": "ann", "mode": 1, "decimal": "1e3"}}));
    refused(422, json!({"id": 2, "top": {"board": "main", "limit": 1001}}));
    refused(422, json!({"id": 2, "around": {"board": "main", "member": "ann", "eachSide": 501}}));
    refused(413, json!({"id": 2, "ranks": {"board": "main", "members": ["a", "b", "c"]}}));
    refused(400, json!({"id": 2}));
    let item = json!({"member": "ann", "mode": 1, "number": 1});
    let part = |items: Value| json!({"board": "main", "items": items});
    let bulk = |parts: Value| json!({"id": 2, "bulk": {"parts": parts}});
    refused(413, bulk(json!([part(json!([item, item])), part(json!([item]))])));
    let wrong =
        refused(422, bulk(json!([part(json!([])), part(json!([item, {"member": "ann", "mode": 1}]))])));
    assert_eq!((&wrong["part"], &wrong["item"]), (&json!(1), &json!(1)));
    let wrong = refused(404, bulk(json!([part(json!([item])), {"board": "x"}])));
    assert_eq!(wrong["part"], 1);
    assert_eq!(Player::of(&running).standing("ann"), at(5, 1));
    running.end().unwrap();
}

#[test]
fn unknown_fields_are_skipped_and_malformed_messages_with_an_id_are_answered() {
    let running = start(options());
    let mut client = connect(&running);
    let known = encoded("Request", &increment(1, "ann", 5));
    let unknown = [0x9a, 6, 1, 9, 0x9b, 6, 0x9c, 6];
    client.write(&frame(BINARY, &[&unknown[..], &known, &unknown].concat()));
    assert_eq!(response(&mut client), json!({"id": "1", "standing": {"number": "5", "rank": "1"}}));
    let id = encoded("Request", &json!({"id": 2}));
    let deep = [0x9b, 6].repeat(101);
    for malformed in [&[0x12, 9, 0x0a][..], &[0x12, 2, 0x08, 1], &[0x08, 0xff], &[0x0e], &deep] {
        client.write(&frame(BINARY, &[&id, malformed].concat()));
        let answer = response(&mut client);
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("2"), &json!(400)), "{answer}");
    }
    // The connection stays open.
    assert_eq!(ask(&mut client, increment(3, "ann", 1))["standing"]["number"], "6");
    running.end().unwrap();
}

#[track_caller]
fn check_closes(running: &Running, bytes: &[u8], code: u16) {
    let mut client = connect(running);
    client.write(&request(&increment(1, "ann", 1)));
    client.write(bytes);
    // Whatever follows is not executed.
    let _ = std::io::Write::write_all(&mut client.stream, &request(&increment(2, "ann", 1000)));
    assert_eq!(response(&mut client)["id"], "1");
    assert_eq!(client.hear(), Frame::Close(Some(code)), "{:02x?}", &bytes[..bytes.len().min(20)]);
    assert_eq!(client.hear(), Frame::End);
}

#[test]
fn what_is_no_request_closes_the_connection_with_the_code_that_says_why() {
    let running = start(Options { body_max: 1000, ..options() });
    check_closes(&running, &frame(BINARY, &[0x12, 5]), 1007);
    check_closes(&running, &frame(BINARY, &[0xff; 20]), 1007);
    check_closes(&running, &frame(0x81, b"{}"), 1003);
    check_closes(&running, &frame(0x81, &[0xff]), 1007);
    check_closes(&running, &frame(BINARY, &[0; 1001]), 1009);
    check_closes(&running, &[0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 1009);
    check_closes(&running, &[0x82, 0x01, 0], 1002);
    check_closes(&running, &frame(0x88, &1000u16.to_be_bytes()), 1000);
    assert_eq!(Player::of(&running).standing("ann"), at(8, 1));
    running.end().unwrap();
}

#[test]
fn pings_are_answered_and_fragments_joined() {
    let running = start(options());
    let mut client = connect(&running);
    let message = encoded("Request", &increment(1, "ann", 1));
    let (one, two) = message.split_at(5);
    client.write(&[frame(0x02, one), frame(0x89, b"there?"), frame(0x80, two)].concat());
    assert_eq!(client.hear(), Frame::Pong(b"there?".to_vec()));
    assert_eq!(response(&mut client)["id"], "1");
    running.end().unwrap();
}

#[test]
fn http_requests_come_before_the_switch_and_frames_right_behind_it() {
    let running = start(options());
    let mut client = Client::silent(running.address);
    let patch = "PATCH /leaderboards/main/members/ann?score=1 HTTP/1.1\r\nHost: x\r\n\r\n";
    let switch = crate::client::request("/ws");
    client.write(&[patch.as_bytes(), switch.as_bytes(), &request(&increment(1, "ann", 1))].concat());
    assert_eq!(client.answer().status, 200);
    assert!(client.answer_head().starts_with("HTTP/1.1 101 "));
    assert_eq!(response(&mut client)["standing"]["number"], "2");
    for wrong in ["GET /ws HTTP/1.1\r\nHost: x\r\n\r\n", &switch.replace("Version: 13", "Version: 8")] {
        let mut client = Client::silent(running.address);
        let answer = client.ask(wrong);
        assert!(matches!(answer.status, 400 | 426), "{}", answer.head);
    }
    running.end().unwrap();
}

#[test]
fn an_end_of_the_server_answers_what_was_sent_and_says_that_it_goes() {
    let running = start(options());
    let mut client = connect(&running);
    ask(&mut client, increment(1, "ann", 1));
    client.write(&request(&increment(2, "ann", 1)));
    // Its answer proves that it was read, and the next was sent before shutdown begins.
    assert_eq!(response(&mut client)["id"], "2");
    client.write(&request(&increment(3, "ann", 1)));
    running.shutdown.trigger();
    assert_eq!(response(&mut client)["id"], "3");
    assert_eq!(client.hear(), Frame::Close(Some(1001)));
    assert_eq!(client.hear(), Frame::End);
    running.end().unwrap();
}

#[test]
fn an_acknowledged_update_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let keeping = || Options { data: Some(directory.path().to_owned()), ..options() };
    let running = start(keeping());
    let mut client = connect(&running);
    client.write(&(1..=200).flat_map(|id| request(&increment(id, "ann", 1))).collect::<Vec<u8>>());
    for id in 1..=200 {
        assert_eq!(response(&mut client)["id"], id.to_string());
    }
    running.end().unwrap();
    let running = start(keeping());
    assert_eq!(Player::of(&running).standing("ann"), at(200, 1));
    running.end().unwrap();
}

#[test]
fn nonces_and_results_of_idempotency_keys_outlive_a_restart() {
    let (file, directory) = (tempfile::NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(file.path(), format!("game {}\n", hex(&SECRET))).unwrap();
    let data = || Some(directory.path().to_owned());
    let once = signed(increment(1, "ann", 1), "update", "n1", now_s() + 250);
    for is_first in [true, false, false] {
        let running = start(Options { keys: Some(file.path().to_owned()), data: data(), ..options() });
        let answer = ask(&mut connect(&running), once.clone());
        match is_first {
            true => assert_eq!(answer["standing"]["number"], "1", "{answer}"),
            false => assert_eq!(answer["error"]["code"], 401, "{answer}"),
        }
        running.end().unwrap();
    }
    let mut keyed = increment(1, "bob", 5);
    keyed["idempotencyKey"] = json!("once");
    let first = json!({"id": "1", "standing": {"number": "5", "rank": "1"}});
    for _ in 0..3 {
        let running = start(Options { data: data(), ..options() });
        let mut client = connect(&running);
        assert_eq!(ask(&mut client, keyed.clone()), first);
        assert_eq!(Player::of(&running).standing("bob"), at(5, 1));
        running.end().unwrap();
    }
}

#[test]
fn a_planted_fault_accepts_what_no_key_has_signed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("game {}\n", hex(&SECRET))).unwrap();
    let faults = vec!["accept-forged:100%".parse().unwrap()];
    let running = start(Options { keys: Some(file.path().to_owned()), faults, ..options() });
    assert_eq!(ask(&mut connect(&running), increment(1, "ann", 1))["standing"]["number"], "1");
    running.end().unwrap();
}

/// A request with a signature over its operation.
fn signed(mut value: Value, name: &str, nonce: &str, expires_s: u64) -> Value {
    let message = match name {
        "update" => encoded("Update", &value[name]),
        _ => encoded("Bulk", &value[name]),
    };
    let text = format!("PROTOBUF\n{name}\ngame\n{nonce}\n{expires_s}\n\n");
    let signature = hmac_bytes(&[text.as_bytes(), &message].concat());
    let signature = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, signature);
    value["signature"] = json!({"key": "game", "nonce": nonce, "expires": expires_s, "signature": signature});
    value
}

#[test]
fn where_changes_have_to_be_signed_each_is_made_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("game {}\n", hex(&SECRET))).unwrap();
    let running = start(Options { keys: Some(file.path().to_owned()), ..options() });
    let mut client = connect(&running);
    let later_s = now_s() + 60;
    let first = signed(increment(1, "ann", 1), "update", "n1", later_s);
    assert_eq!(ask(&mut client, first.clone())["standing"]["number"], "1");
    let mut refused = |value: Value| assert_eq!(ask(&mut client, value)["error"]["code"], 401);
    refused(first.clone());
    refused(increment(1, "ann", 1));
    refused(signed(increment(1, "ann", 1), "update", "n2", later_s - 3600));
    refused(signed(increment(1, "ann", 1), "update", "line\nfeed", later_s));
    let mut other = signed(increment(1, "ann", 1), "update", "n3", later_s);
    other["update"]["number"] = json!(9);
    refused(other);
    let item = json!({"member": "ann", "mode": 1, "number": 1});
    let bulk = json!({"id": 2, "bulk": {"parts": [{"board": "main", "items": [item]}]}});
    let answer = ask(&mut client, signed(bulk, "bulk", "n5", later_s));
    assert_eq!(answer["bulk"]["parts"][0]["standings"][0]["number"], "2", "{answer}");
    let get = json!({"id": 3, "get": {"board": "main", "member": "ann"}});
    assert_eq!(ask(&mut client, get)["standing"]["number"], "2", "reading needs no signature");
    running.end().unwrap();
}

#[test]
fn a_repetition_with_the_same_idempotency_key_changes_nothing() {
    let running = start(options());
    let mut client = connect(&running);
    let keyed = |id: u64, by: i64| {
        let mut value = increment(id, "ann", by);
        value["idempotencyKey"] = json!("once");
        value
    };
    let first = ask(&mut client, keyed(1, 5));
    let again = ask(&mut client, keyed(2, 5));
    assert_eq!((&first["standing"], &again["id"]), (&again["standing"], &json!("2")));
    assert_eq!(ask(&mut client, keyed(3, 6))["error"]["code"], 409, "another change with the same key");
    assert_eq!(Player::of(&running).standing("ann"), at(5, 1));
    running.end().unwrap();
}
