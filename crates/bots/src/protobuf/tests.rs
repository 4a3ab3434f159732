use drivers::messages::Found;
use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use serde_json::{Value, json};

use super::*;

const EVERYTHING: &str = r#"
    syntax = "proto3";
    package test.v1;
    message Inner { int32 number = 1; string text = 2; Inner inner = 3; }
    enum Color { COLOR_NONE = 0; COLOR_RED = 3; }
    message All {
      int32 a_int32 = 1; int64 a_int64 = 2; uint32 a_uint32 = 3; uint64 a_uint64 = 4;
      sint32 a_sint32 = 5; sint64 a_sint64 = 6; fixed32 a_fixed32 = 7; fixed64 a_fixed64 = 8;
      sfixed32 a_sfixed32 = 9; sfixed64 a_sfixed64 = 10; double a_double = 11; float a_float = 12;
      bool a_bool = 13; string a_string = 14; bytes a_bytes = 15; Color a_enum = 16;
      Inner inner = 17; repeated Inner inners = 18; repeated int32 numbers = 19; map<string, int32> counts = 20;
    }
    service Caller { rpc Call(Inner) returns (All); }
"#;

fn schema() -> Schema {
    Schema::of_text("everything.proto", EVERYTHING).unwrap()
}

fn all() -> MessageDescriptor {
    schema().message("All").unwrap()
}

fn rendered(value: &Value, variables: &[(&str, &str)]) -> Value {
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    let template = Template::compile(&all(), value, &names).unwrap();
    let mut out = Vec::new();
    template.render(&mut out, &|variable| variables[variable].1);
    serde_json::to_value(DynamicMessage::decode(all(), &out[..]).unwrap()).unwrap()
}

#[test]
fn a_variable_may_stand_in_any_text_or_whole_number() {
    let value = json!({
        "a_int32": "{n}", "aInt64": "{n}", "a_sint32": "{n}", "a_sint64": "-{m}", "a_fixed32": "{m}", "a_fixed64": "{m}",
        "a_sfixed32": "{n}", "a_sfixed64": "{n}", "a_uint64": "{large}", "a_string": "{who} has {m}{", "a_bool": true,
        "a_enum": "COLOR_RED", "inner": {"text": "{who}", "inner": {"number": "{m}"}},
        "inners": [{"number": 1}, {"number": "{m}"}], "numbers": ["{m}", 5],
    });
    let large = u64::MAX.to_string();
    let told = rendered(&value, &[("n", "-3"), ("m", "700"), ("who", "ann"), ("large", &large)]);
    let expected = json!({
        "aInt32": -3, "aInt64": "-3", "aSint32": -3, "aSint64": "-700", "aFixed32": 700, "aFixed64": "700",
        "aSfixed32": -3, "aSfixed64": "-3", "aUint64": large, "aString": "ann has 700{", "aBool": true,
        "aEnum": "COLOR_RED", "inner": {"text": "ann", "inner": {"number": 700}},
        "inners": [{"number": 1}, {"number": 700}], "numbers": [700, 5],
    });
    assert_eq!(told, expected);
    assert_eq!(
        rendered(&json!({"a_int32": "{n}", "a_bool": true}), &[("n", "none")]),
        json!({"aBool": true})
    );
}

#[test]
fn what_no_variable_changes_is_encoded_once() {
    let value = json!({"a_string": "{unknown}", "counts": {"a": 1}, "a_bytes": "AQI=", "a_double": 1.5});
    let template = Template::compile(&all(), &value, &["known"]).unwrap();
    assert!(template.is_constant());
    let mut out = Vec::new();
    template.render(&mut out, &|_| unreachable!("it has no variable"));
    // Compared as JSON: descriptors of two compilations are never equal.
    let json = |message: DynamicMessage| serde_json::to_value(message).unwrap();
    let expected = DynamicMessage::deserialize(all(), value).unwrap();
    assert_eq!(json(DynamicMessage::decode(all(), &out[..]).unwrap()), json(expected));
}

#[track_caller]
fn check_refused(value: Value, expected: &str) {
    let error = Template::compile(&all(), &value, &["n"]).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_does_not_fit_the_schema_is_refused_by_name() {
    check_refused(json!({"a_strng": "{n}"}), "test.v1.All has no field \"a_strng\"; it has a_int32, a_int64");
    check_refused(json!({"a_strng": 1, "a_string": "{n}"}), "no field \"a_strng\"");
    check_refused(json!({"a_strng": 1}), "a_strng");
    check_refused(json!({"inner": "{n}"}), "test.v1.Inner: \"{n}\" is no object");
    check_refused(json!({"a_double": "{n}"}), "a_double has type double, in which no variable can stand");
    check_refused(json!({"counts": {"a": "{n}"}}), "counts is a map, in which no variable can stand");
    check_refused(json!({"a_int32": 1.5}), "test.v1.All: ");
    let known = schema().message("Nothing").unwrap_err().to_string();
    assert_eq!(known, "the schema has no message \"Nothing\"; it has test.v1.Inner, test.v1.All");
    assert_eq!(schema().method("/test.v1.Caller/Call").unwrap().name(), "Call");
    let known = schema().method("test.v1.Caller/call").unwrap_err().to_string();
    assert_eq!(known, "the schema has no call \"test.v1.Caller/call\"; it has test.v1.Caller/Call");
    assert!(path(&all(), "inner.inner.number").is_ok());
    let wrong = path(&all(), "a_int32.number").unwrap_err().to_string();
    assert_eq!(wrong, "test.v1.All.a_int32 is no message, so nothing is below it");
    let wrong = envelope(&all(), &all(), Some(("a_double", "a_int32")), None).unwrap_err().to_string();
    assert!(wrong.starts_with("test.v1.All.a_double cannot hold the number of a request"), "{wrong}");
}

proptest! {
    #[test]
    fn a_path_finds_what_a_reader_of_the_whole_message_finds(
        number: i64, text in "[a-z]{0,200}", small: i32, bits: u32, depth in 0usize..3,
    ) {
        let value = json!({
            "a_sint64": number, "a_int64": number, "a_sfixed32": small, "a_fixed32": bits, "a_string": text,
            "inner": {"inner": {"number": small}}, "inners": vec![json!({"number": small}); depth],
        });
        let bytes = DynamicMessage::deserialize(all(), value).unwrap().encode_to_vec();
        let find = |names: &str| path(&all(), names).unwrap().find(&bytes).unwrap();
        // Zero and empty values are not sent.
        let whole = |value: i64| (value != 0).then_some(Found::Whole(value));
        prop_assert_eq!(find("a_sint64"), whole(number));
        prop_assert_eq!(find("a_int64"), whole(number));
        prop_assert_eq!(find("a_sfixed32"), whole(i64::from(small)));
        prop_assert_eq!(find("a_fixed32"), whole(i64::from(bits)));
        prop_assert_eq!(find("inner.inner.number"), whole(i64::from(small)));
        prop_assert_eq!(find("a_string"), (!text.is_empty()).then_some(Found::Bytes(text.as_bytes())));
        let mut count = 0;
        path(&all(), "inners").unwrap().each(&bytes, |_| count += 1).unwrap();
        prop_assert_eq!(count, depth);
    }
}
