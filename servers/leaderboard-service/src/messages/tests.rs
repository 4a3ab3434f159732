//! Our reader and writer against prost-reflect, which is built from the schema file itself.

use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::{Value, json};

use super::*;
use leaderboard::Row;

fn descriptor(name: &str) -> MessageDescriptor {
    static POOL: std::sync::LazyLock<DescriptorPool> = std::sync::LazyLock::new(|| {
        let mut compiler = protox::Compiler::new([concat!(env!("CARGO_MANIFEST_DIR"), "/proto")]).unwrap();
        compiler.open_file("leaderboard.proto").unwrap();
        compiler.descriptor_pool()
    });
    POOL.get_message_by_name(&format!("stepladder.leaderboard.v1.{name}")).unwrap()
}

fn encoded(name: &str, value: &Value) -> Vec<u8> {
    DynamicMessage::deserialize(descriptor(name), value).unwrap().encode_to_vec()
}

fn decoded(name: &str, bytes: &[u8]) -> Value {
    serde_json::to_value(DynamicMessage::decode(descriptor(name), bytes).unwrap()).unwrap()
}

fn request(value: &Value) -> Vec<u8> {
    encoded("Request", value)
}

#[test]
fn every_operation_is_read_as_the_schema_says() {
    let check = |value: Value, expected: Operation<'_>| {
        let bytes = request(&value);
        let read = Request::read(&bytes).unwrap();
        assert_eq!(read.operation, Some(expected), "{value}");
        assert_eq!((read.id, read.operation_parts), (7, 1));
        let operation = read.operation.unwrap();
        let name = OPERATIONS[operation.index()];
        assert!(value.get(name).is_some(), "{value} is {name}");
        let alone = Operation::read(operation.index(), read.operation_bytes).unwrap();
        assert_eq!(alone, Some(operation));
    };
    let item = |score| Item { member: "ann", mode: 3, score };
    check(
        json!({"id": 7, "update": {"board": "main", "member": "ann", "mode": "MODE_BEST", "number": "-3"}}),
        Operation::Update(Update { board: "main", item: item(Given::Number(-3)) }),
    );
    check(
        json!({"id": 7, "update": {"board": "main", "member": "ann", "mode": 3, "decimal": "12"}}),
        Operation::Update(Update { board: "main", item: item(Given::Decimal("12")) }),
    );
    check(
        json!({"id": 7, "get": {"board": "main", "member": "ann"}}),
        Operation::Get(Get { board: "main", member: "ann" }),
    );
    check(
        json!({"id": 7, "ranks": {"board": "main", "members": ["ann", "", "bob"]}}),
        Operation::Ranks(Ranks { board: "main", members: vec!["ann", "", "bob"] }),
    );
    check(json!({"id": 7, "top": {}}), Operation::Top(Top { board: "", limit: None }));
    check(
        json!({"id": 7, "top": {"board": "b", "limit": 0}}),
        Operation::Top(Top { board: "b", limit: Some(0) }),
    );
    check(
        json!({"id": 7, "range": {"board": "b", "first": 900, "limit": 3}}),
        Operation::Range(Range { board: "b", first: Some(900), limit: Some(3) }),
    );
    check(
        json!({"id": 7, "around": {"board": "b", "member": "ann", "eachSide": 3}}),
        Operation::Around(Around { board: "b", member: "ann", each_side: Some(3) }),
    );
    let items = json!([
        {"member": "ann", "mode": 3, "number": -3}, {"member": "ann", "mode": 3, "decimal": "x"}, {}]);
    let parts = vec![
        Part { board: "b", items: vec![item(Given::Number(-3)), item(Given::Decimal("x")), Item::default()] },
        Part::default(),
    ];
    check(
        json!({"id": 7, "bulk": {"parts": [{"board": "b", "items": items}, {}]}}),
        Operation::Bulk(Bulk { parts }),
    );
}

#[test]
fn keys_and_signatures_are_read_and_unknown_fields_skipped() {
    let mut bytes = request(&json!({
        "id": "18446744073709551615", "idempotencyKey": "once",
        "signature": {"key": "game", "nonce": "n", "expires": 5, "signature": "AQI="},
    }));
    // Field 99 of each wire type, and a group.
    bytes.extend([
        0x98, 6, 1, 0x99, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0x9a, 6, 1, 9, 0x9d, 6, 1, 2, 3, 4, 0x9b, 6, 0x9c, 6,
    ]);
    let read = Request::read(&bytes).unwrap();
    let signature = Signature { key: b"game", nonce: b"n", expires_s: 5, signature: &[1, 2] };
    assert_eq!((read.id, read.idempotency_key), (u64::MAX, &b"once"[..]));
    assert_eq!((read.signature, read.operation), (Some(signature), None));
}

#[test]
fn what_comes_twice_is_merged_and_of_a_oneof_the_last_counts() {
    let concat = |values: &[Value]| values.iter().flat_map(request).collect::<Vec<u8>>();
    let bytes = concat(&[
        json!({"id": 1, "update": {"board": "main", "member": "ann", "number": 1}}),
        json!({"id": 2, "update": {"member": "bob", "decimal": "5"}}),
    ]);
    let read = Request::read(&bytes).unwrap();
    let item = Item { member: "bob", mode: 0, score: Given::Decimal("5") };
    assert_eq!((read.id, read.operation_parts), (2, 2));
    assert_eq!(read.operation, Some(Operation::Update(Update { board: "main", item })));
    let bytes = concat(&[json!({"update": {"board": "main"}}), json!({"get": {"member": "ann"}})]);
    let get = Get { board: "", member: "ann" };
    assert_eq!(Request::read(&bytes).unwrap().operation, Some(Operation::Get(get)));
}

#[test]
fn a_malformed_request_is_told_with_its_id_where_that_was_read() {
    let with_id = request(&json!({"id": 9}));
    let check = |rest: &[u8], expected: Malformed| {
        let bytes = [&with_id, rest].concat();
        assert_eq!(Request::read(&bytes), Err((expected, Some(9))), "{rest:02x?}");
        assert_eq!(Request::read(rest), Err((expected, None)), "{rest:02x?}");
    };
    check(&[0x12, 3, 0x0a, 0x80], Malformed::CutOff);
    // Within the update: a name that is longer than the update.
    check(&[0x12, 2, 0x0a, 0x05], Malformed::CutOff);
    check(&[0x10, 1], Malformed::WrongType { field: 2 });
    check(&[0x12, 2, 0x08, 1], Malformed::WrongType { field: 1 });
    check(&[0x12, 3, 0x0a, 1, 0xff], Malformed::NotUtf8 { field: 1 });
    check(&[0x12, 2, 0x22, 0], Malformed::WrongType { field: 4 });
    // A group with the number of the range.
    check(&[0x33, 0x34], Malformed::WrongType { field: 6 });
}

#[test]
fn modes_and_scores_that_do_not_exist_are_refused() {
    let change = |value: Value| {
        let bytes = encoded("Update", &value);
        Update::read(&bytes).unwrap().item.change().map_err(|problem| problem.status)
    };
    assert_eq!(change(json!({"mode": 1, "number": 5})), Ok((Mode::Increment, Score::from(5_i64))));
    assert_eq!(change(json!({"mode": 2, "decimal": "-05"})), Ok((Mode::Replace, Score::from(-5_i64))));
    assert_eq!(change(json!({"mode": 3, "number": 0})), Ok((Mode::Best, Score::ZERO)));
    assert_eq!(change(json!({"mode": 4, "number": i64::MIN})), Ok((Mode::Decrement, Score::from(i64::MIN))));
    for wrong in [json!({"number": 5}), json!({"mode": 1}), json!({"mode": 5, "number": 1})] {
        assert_eq!(change(wrong), Err(422));
    }
    for wrong in ["", "1.5", &"1".repeat(1001)] {
        assert_eq!(change(json!({"mode": 1, "decimal": wrong})), Err(422));
    }
}

#[test]
fn what_is_written_is_what_the_schema_says() {
    let mut out = Vec::new();
    put_standing(&mut out, &Score::ZERO, 300);
    assert_eq!(decoded("Standing", &out), json!({"number": "0", "rank": "300"}));
    let large = "9".repeat(200);
    let row = |rank: u64, member: &str, score: &str| Row {
        rank,
        member: member.into(),
        score: score.parse().unwrap(),
        metadata: None,
    };
    let page = Page { total: 9, rows: vec![row(1, "ann", &large), row(2, "bob", "-1")] };
    out.clear();
    put_page(&mut out, &page);
    let rows = json!([
        {"member": "ann", "decimal": large, "rank": "1"}, {"member": "bob", "number": "-1", "rank": "2"}]);
    assert_eq!(decoded("Page", &out), json!({"members": "9", "rows": rows, "next": "3"}));
    out.clear();
    Problem::new(422, "no").at_board(0).at_item(3).put_message(&mut out);
    assert_eq!(decoded("Error", &out), json!({"code": 422, "message": "no", "part": 0, "item": 3}));
}

fn any_request() -> impl Strategy<Value = Vec<u8>> {
    let item = ("[a-c]{0,3}", 0..6i32, any::<i64>())
        .prop_map(|(member, mode, number)| json!({"member": member, "mode": mode, "number": number}));
    let items = prop::collection::vec(item.clone(), 0..4);
    let operation = prop_oneof![
        item.prop_map(|item| json!({"id": 5, "update": item})),
        items.prop_map(|items| json!({"id": 5, "bulk": {"parts": [{"board": "b", "items": items}]}})),
        ("[a-z]{0,3}", any::<u32>())
            .prop_map(|(board, limit)| json!({"range": {"board": board, "limit": limit}})),
        prop::collection::vec("[a-z]{0,3}", 0..4)
            .prop_map(|members| json!({"ranks": {"members": members}, "signature": {"key": "k"}})),
    ];
    operation.prop_map(|value| request(&value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn we_take_and_refuse_the_same_bytes_as_a_reader_made_from_the_schema(
        mut bytes in any_request(), changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4), cut in 0usize..200,
    ) {
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
        }
        bytes.truncate(bytes.len().min(cut));
        let theirs = DynamicMessage::decode(descriptor("Request"), &bytes[..]);
        let ours = Request::read(&bytes);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:02x?}: {:?}, {:?}", bytes, ours, theirs);
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            let id = theirs.get_field_by_name("id").unwrap().as_u64().unwrap();
            prop_assert_eq!(ours.id, id);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let ours = Request::read(&bytes).is_ok();
        prop_assert_eq!(ours, DynamicMessage::decode(descriptor("Request"), &bytes[..]).is_ok());
    }
}
