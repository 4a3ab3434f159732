use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;

use super::*;

const ALL: &str = r#"
    syntax = "proto3";
    package test.v1;
    message Inner { int64 number = 1; string userName = 2; Inner inner = 3; }
    enum Color { COLOR_NONE = 0; COLOR_RED = 3; }
    message All {
      int64 total = 1; float ratio = 2; Color color = 3; Inner inner = 4; repeated Inner inners = 5;
      map<string, Inner> by_name = 6; repeated int32 numbers = 7; bytes raw = 8;
    }
    service Caller { rpc Call(Inner) returns (All); }
"#;

fn schema() -> Schema {
    Schema::of_text("all.proto", ALL).unwrap()
}

fn all() -> MessageDescriptor {
    schema().message("test.v1.All").unwrap()
}

/// Files that exist nowhere.
fn read(files: &[(&str, &str)], path: &str) -> Result<ProtoFiles, SchemaError> {
    let files: BTreeMap<PathBuf, &str> = files.iter().map(|(path, text)| (path.into(), *text)).collect();
    let read = |path: &Path| {
        let text = files.get(path).map(|text| (*text).to_owned());
        text.ok_or_else(|| io::Error::other("no such file"))
    };
    ProtoFiles::read(Path::new(path), &read)
}

#[test]
fn imports_are_found_beside_the_file_and_those_of_the_compiler_are_its_own() {
    let a = "syntax = \"proto3\"; package a; import \"b/b.proto\"; import \"google/protobuf/timestamp.proto\";\n\
             message A { b.B b = 1; google.protobuf.Timestamp at = 2; }";
    let b = "syntax = \"proto3\"; package b; import \"c.proto\"; message B { c.C c = 1; }";
    let c = "syntax = \"proto3\"; package c; message C { int32 n = 1; }";
    let files = [("dir/a.proto", a), ("dir/b/b.proto", b), ("dir/c.proto", c)];
    let files = read(&files, "dir/a.proto").unwrap();
    let names: Vec<&str> = files.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["a.proto", "b/b.proto", "c.proto"]);
    let message = Schema::compile(&files).unwrap().message("A").unwrap();
    assert_eq!(Spot::of(&message, "/b/c/n").unwrap().pointer, "/b/c/n");
    let stored = serde_json::to_string(&files).unwrap();
    assert_eq!(serde_json::from_str::<ProtoFiles>(&stored).unwrap(), files);
}

#[test]
fn a_file_that_is_missing_or_wrong_is_told_with_its_place() {
    let told = |files: &[(&str, &str)]| {
        let compiled = read(files, "dir/a.proto").and_then(|files| Schema::compile(&files));
        compiled.unwrap_err().to_string()
    };
    assert_eq!(told(&[]), "dir/a.proto: no such file; check the path");
    let missing = told(&[("dir/a.proto", "syntax = \"proto3\"; import \"b.proto\";")]);
    assert_eq!(
        missing,
        "a.proto imports \"b.proto\", which is looked for beside a.proto: dir/b.proto: no such file"
    );
    let unknown = told(&[("dir/a.proto", "syntax = \"proto3\";\nmessage A { Missing a = 1; }")]);
    assert!(unknown.starts_with("a.proto:2:13:") && unknown.contains("Missing"), "{unknown}");
    let broken = told(&[("dir/a.proto", "syntax = \"proto3\";\nmessage A {")]);
    assert!(broken.starts_with("a.proto: expected "), "{broken}");
}

#[test]
fn names_are_refused_with_those_that_there_are_and_the_nearest() {
    let check = |error: SchemaError, words: &str, nearest: Option<&str>| {
        assert_eq!((error.to_string().as_str(), error.nearest().as_deref()), (words, nearest));
    };
    let known = "the schema has no message \"test.v1.Al\"; it has test.v1.Inner, test.v1.All";
    check(schema().message("test.v1.Al").unwrap_err(), known, Some("test.v1.All"));
    let known = "the schema has no call \"Caller/Cal\"; it has test.v1.Caller/Call";
    check(schema().method("/Caller/Cal").unwrap_err(), known, Some("test.v1.Caller/Call"));
    let known = "test.v1.Inner has no field \"numbr\"; it has number, userName, inner";
    check(Spot::of(&all(), "/inner/numbr").unwrap_err(), known, Some("number"));
    let wrong = Spot::of(&all(), "/total/x").unwrap_err();
    check(wrong, "test.v1.All.total is no message, so nothing is below it", None);
    let wrong = Spot::of(&all(), "/inners/number").unwrap_err();
    check(wrong, "test.v1.All.inners is a list, so \"number\" has to be an index, from 0", None);
    let wrong = message_of(&all(), &json!({"by_name": {"ann": {"nmber": 1}}})).unwrap_err();
    assert!(wrong.to_string().starts_with("test.v1.Inner has no field \"nmber\""), "{wrong}");
}

#[test]
fn a_pointer_leads_through_fields_lists_and_maps_in_either_spelling() {
    for (pointer, normal) in [
        ("", ""),
        ("/total", "/total"),
        ("/inner/user_name", ""),
        ("/inner/userName", "/inner/userName"),
        ("/inners/3/inner/number", "/inners/3/inner/number"),
        ("/byName/ann/number", "/by_name/ann/number"),
        ("/by_name/a~1b", "/by_name/a~1b"),
        ("/numbers/0", "/numbers/0"),
    ] {
        let spot = Spot::of(&all(), pointer);
        match normal {
            "" if !pointer.is_empty() => assert!(spot.is_err(), "{pointer}"),
            normal => assert_eq!(spot.unwrap().pointer, normal),
        }
    }
}

#[test]
fn a_wanted_value_is_written_as_replies_have_it_or_refused() {
    let wanted = |pointer: &str, value: Value| Spot::of(&all(), pointer).unwrap().value(&value);
    assert_eq!(wanted("/total", json!("5")), Ok(json!(5)));
    assert_eq!(wanted("/total", json!(0)), Ok(json!(0)));
    assert_eq!(wanted("/color", json!(3)), Ok(json!("COLOR_RED")));
    assert_eq!(wanted("/numbers/2", json!("7")), Ok(json!(7)));
    assert_eq!(wanted("/by_name/ann/number", json!("7")), Ok(json!(7)));
    let inner = json!({"number": 1, "userName": ""});
    assert_eq!(wanted("/by_name/a~1b", json!({"number": "1"})), Ok(inner));
    // A float has the digits that its 32 bits have in replies.
    let mut message = DynamicMessage::new(all());
    message.set_field_by_name("ratio", prost_reflect::Value::F32(0.1));
    assert_eq!(wanted("/ratio", json!(0.1)).unwrap(), json_of(&message)["ratio"]);
    for (pointer, value) in [("/total", json!("x")), ("/color", json!("COLOR_BLUE")), ("/inner", json!(1))] {
        assert!(wanted(pointer, value.clone()).is_err(), "{pointer} {value}");
    }
}

#[test]
fn a_reply_says_fields_that_are_0_and_numbers_of_64_bits_as_numbers() {
    let told = json_of(&DynamicMessage::new(all()));
    assert_eq!(
        (&told["total"], &told["color"], &told["numbers"]),
        (&json!(0), &json!("COLOR_NONE"), &json!([]))
    );
    assert_eq!(told.get("inner"), None, "a message that is not there is not there");
    let message = message_of(&all(), &json!({"total": "9007199254740993"})).unwrap();
    assert_eq!(json_of(&message)["total"], json!(9_007_199_254_740_993_i64));
}

#[test]
fn only_known_names_in_braces_are_filled_in() {
    let json = json!({"a": "{n} of {m}{", "b": ["{n}", 5], "{n}": true});
    let filled = filled(&json, &|name| (name == "n").then(|| "7".to_owned()));
    assert_eq!(filled, json!({"a": "7 of {m}{", "b": ["7", 5], "{n}": true}));
}

#[test]
fn a_call_that_streams_is_refused_and_those_that_do_not_are_named() {
    let text = "syntax = \"proto3\"; package t; message M { int32 n = 1; }
        service Some { rpc One(M) returns (M); rpc Down(M) returns (stream M); rpc Up(stream M) returns (M);
                       rpc Both(stream M) returns (stream M); }
        service Only { rpc Down(M) returns (stream M); }";
    let schema = Schema::of_text("t.proto", text).unwrap();
    assert_eq!(schema.method("/t.Some/One").unwrap().name(), "One");
    let why = "Stepladder calls methods that take one message and give one reply";
    for (name, streams, others) in [
        (
            "t.Some/Down",
            "replies with a stream of messages",
            "of its service these can be called: t.Some/One",
        ),
        ("t.Some/Up", "takes a stream of messages", "of its service these can be called: t.Some/One"),
        (
            "t.Some/Both",
            "takes a stream of messages and replies with another",
            "of its service these can be called: t.Some/One",
        ),
        ("t.Only/Down", "replies with a stream of messages", "its service has no such method"),
    ] {
        let told = schema.method(name).unwrap_err().to_string();
        assert_eq!(told, format!("{name} {streams}, and {why}; {others}"));
    }
}

#[test]
fn a_message_must_have_what_proto2_requires_at_any_depth() {
    let text = "syntax = \"proto2\"; package t;
        message Id { required string region = 1; optional int32 n = 2; required Key key = 3; }
        message Key { required int64 id = 1; required string text = 2; }
        message Ask { required string name = 1; optional Id id = 2; repeated Id ids = 3; map<string, Id> by = 4; }";
    let schema = Schema::of_text("t.proto", text).unwrap();
    let check = |json: Value, put_later: Option<&str>, lacks: Option<&str>| {
        let message = message_of(&schema.message("t.Ask").unwrap(), &json).unwrap();
        let lacks = lacks.map(|field| SchemaError::Required { field: field.to_owned() });
        assert_eq!(refuse_missing(&message, put_later).err(), lacks, "{json} {put_later:?}");
    };
    let whole = json!({ "region": "", "key": { "id": 0, "text": "" } });
    check(json!({ "name": "" }), None, None);
    check(json!({ "name": "a", "id": whole, "ids": [whole], "by": { "x": whole } }), None, None);
    check(json!({}), None, Some("t.Ask.name"));
    check(json!({ "name": "a", "id": {} }), None, Some("t.Id.region"));
    check(json!({ "name": "a", "id": { "region": "x" } }), None, Some("t.Id.key"));
    check(
        json!({ "name": "a", "ids": [whole, { "region": "x", "key": { "id": 1 } }] }),
        None,
        Some("t.Key.text"),
    );
    check(json!({ "name": "a", "by": { "x": { "region": "x" } } }), None, Some("t.Id.key"));
    // The number of a request is put into its message when it is sent, and what is around it is not.
    check(json!({}), Some("name"), None);
    check(json!({ "name": "a" }), Some("id.n"), Some("t.Id.region"));
    check(json!({ "name": "a", "id": { "region": "x", "key": { "text": "y" } } }), Some("id.key.id"), None);
    check(json!({ "name": "a", "id": { "region": "x", "key": {} } }), Some("id.key.id"), Some("t.Key.text"));
}
