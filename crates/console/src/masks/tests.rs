use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

fn percent_encoded(value: &str) -> String {
    value.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

const SECRET: &str = "s3cr3t/\"Kéy\"+&=<42>-zYx";

fn masked(text: &str) -> String {
    let mut forms = Forms::default();
    forms.add(SECRET);
    forms.mask(text, Text::OfOthers).into_owned()
}

#[track_caller]
fn check(text: &str) {
    let shown = masked(&format!("before {text} after"));
    assert_eq!(shown, format!("before {MASK} after"), "of {text}");
}

#[test]
fn every_form_in_which_a_server_says_it_back_is_masked() {
    check(SECRET);
    check(&SECRET.to_ascii_uppercase());
    let encoded: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
    check(&encoded);
    check("s3cr3t%2F%22K%C3%A9y%22%2B%26%3D%3C42%3E-zYx");
    check("s3cr3t%2f%22K%c3%a9y%22%2b%26%3d%3c42%3e-zYx");
    check("s3cr3t/\\\"Kéy\\\"+&=<42>-zYx");
    check("s3cr3t\\/\\\"Kéy\\\"+&=<42>-zYx");
    check("s3cr3t/\\\\\\\"Kéy\\\\\\\"+&=<42>-zYx");
    check("s3cr3t/&quot;Kéy&quot;+&amp;=&lt;42&gt;-zYx");
    check(&SECRET.bytes().map(|byte| format!("{byte:02x}")).collect::<String>());
}

#[test]
fn no_piece_of_it_is_left_in_base64_wherever_it_stands() {
    for before in 0..7 {
        let whole = format!("{}{SECRET} and more", "x".repeat(before));
        for text in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
            let shown = masked(&text);
            assert!(shown.contains(MASK), "{text}");
            // Only the neighbours are left, and the letters that share bits with them.
            assert!(shown.len() - MASK.len() <= (before + 9) * 4 / 3 + 6, "{text} became {shown}");
        }
    }
}

#[test]
fn a_text_that_was_cut_within_a_secret_shows_no_longer_piece_of_it() {
    for cut in PIECE_BYTES..SECRET.len() {
        let Some(begin) = SECRET.get(..cut) else { continue };
        assert_eq!(masked(&format!("{begin}…")), format!("{MASK}…"));
    }
    for cut in 1..SECRET.len() - PIECE_BYTES {
        let Some(end) = SECRET.get(cut..) else { continue };
        assert_eq!(masked(&format!("…{end}.")), format!("…{MASK}."));
    }
}

#[test]
fn other_texts_stay_as_they_are() {
    for text in ["", "status 500", "s3cr3t", "a much longer text about keys (42) & more — ☃"] {
        assert_eq!(masked(text), text);
    }
    let mut forms = Forms::default();
    ["", "ab", "abc", "  "].iter().for_each(|short| forms.add(short));
    assert_eq!(
        forms.mask("abc ab", Text::OfOthers),
        "abc ab",
        "what is too short would hide every other word"
    );
}

#[test]
fn words_of_a_value_are_masked_too() {
    let mut forms = Forms::default();
    forms.add("Bearer abcdefghij");
    assert_eq!(forms.mask("it was <abcdefghij>", Text::OfOthers), format!("it was <{MASK}>"));
}

/// What is shown of `text` when the environment held `value`.
fn shown_with(value: &str, text: &str) -> String {
    let mut forms = Forms::default();
    forms.add(value);
    forms.mask(text, Text::OfOthers).into_owned()
}

#[test]
fn a_password_within_basic_credentials_is_masked_however_they_are_encoded() {
    let check = |value: &str, said: &str| {
        let shown = shown_with(value, &format!("password <{said}> is wrong"));
        assert_eq!(shown, format!("password <{MASK}> is wrong"), "of {value}");
    };
    let password = "Sup3rS3cretPw!x";
    let credentials = format!("admin:{password}");
    check(&STANDARD.encode(&credentials), password);
    check(STANDARD.encode(&credentials).trim_end_matches('='), password);
    check(&format!("Basic {}", STANDARD.encode(&credentials)), password);
    check(&format!("{}\n", STANDARD.encode(format!("{credentials}\n"))), password);
    check("admin%3ASup3rS3cretPw%21x", password);
    check(&URL_SAFE_NO_PAD.encode("admin:~~~???>>>\u{ff}"), "~~~???>>>\u{ff}");
    check(&percent_encoded(&STANDARD.encode(&credentials)), password);
    // Encoded a second time.
    check(&STANDARD.encode(&credentials), "Sup3rS3cretPw%21x");
    check(&STANDARD.encode(&credentials), "5375703372533363726574507721");
    // Too short to be masked as a piece of its surroundings.
    check(&STANDARD.encode("admin:pw4!"), "pw4!");
    check("admin:pw4!", "pw4!");
    check("redis://admin:pw4%21@10.0.0.7:6379/0", "pw4!");
    // What Kubernetes stores: base64 of base64.
    check(&STANDARD.encode(STANDARD.encode(&credentials)), password);
}

#[test]
fn what_is_no_encoded_text_adds_nothing() {
    for (value, text) in [
        // Its bytes are not text.
        ("hunter2hunter2!", "user hunter"),
        // The user name alone is no secret.
        ("root:pw4!", "root"),
        // A token's claims are no credential.
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJlLW9mLWl0", "{\"sub\":\"jane\"}"),
        ("https://server.example:8443/path", "8443"),
    ] {
        assert_eq!(shown_with(value, text), text, "of {value}");
    }
}

#[test]
fn a_long_secret_beside_a_short_one_costs_no_more_than_its_length() {
    let mut forms = Forms::default();
    let long: String = (0..120_000_u64).map(|at| char::from(b'a' + (at * at / 7 % 26) as u8)).collect();
    forms.add(&long);
    forms.add("zq7x");
    let words = "a page of other words, with figures (42) & more. ".repeat(4_000);
    let begin = std::time::Instant::now();
    assert_eq!(forms.mask(&words, Text::OfOthers), words);
    assert_eq!(forms.mask(&"zq7x ".repeat(20_000), Text::OfOthers), format!("{MASK} ").repeat(20_000));
    assert_eq!(forms.mask(&long, Text::OfOthers), MASK);
    // A run of one repeated letter matches the same piece at every offset.
    forms.add(&"x".repeat(100_000));
    assert_eq!(forms.mask(&"x".repeat(100_000), Text::OfOthers), MASK);
    let many: String = (0..5_000).map(|at| format!("word-{at:08} ")).collect();
    forms.add(&many);
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}

#[test]
fn a_short_number_is_masked_where_others_say_it_and_stays_among_our_figures() {
    let mut forms = Forms::default();
    forms.add("1000");
    forms.add("10000000");
    let text = "tenant 1000 of 10000000";
    assert_eq!(forms.mask(text, Text::OfOthers), format!("tenant {MASK} of {MASK}"));
    assert_eq!(forms.mask(text, Text::OfOurs), format!("tenant 1000 of {MASK}"));
    // In base64 it is not a figure; the last letter holds bits of its neighbour.
    assert_eq!(forms.mask("MTAwMA", Text::OfOurs), format!("{MASK}A"));
}

#[test]
fn json_stays_json_with_its_numbers_and_keys() {
    let mut forms = Forms::default();
    ["1000", "load", "true", "a\"b\\"].iter().for_each(|secret| forms.add(secret));
    let check = |json: &str, expected: &str| assert_eq!(forms.mask_json(json), expected);
    check(r#"{"load": 1000.0, "is": true}"#, r#"{"load": 1000.0, "is": true}"#);
    check(r#"{"load":"the load","x":["\\","true"]}"#, r#"{"load":"the •••","x":["\\","•••"]}"#);
    check(r#"{"x" : "<a\"b\\>" }"#, r#"{"x" : "<•••>" }"#);
    check("", "");
    // Truncated text is not JSON, and does no harm.
    check(r#""load"#, r#""load"#);
}

fn report() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-1e9..1e9).prop_map(serde_json::Value::from),
        "\\PC{0,12}".prop_map(Into::into),
        "[ -~]{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::btree_map("[a-z_]{1,6}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The texts and numbers of a report, and its keys.
fn parts(value: &serde_json::Value, texts: &mut Vec<String>, rest: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => texts.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| parts(item, texts, rest)),
        serde_json::Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            rest.push(key.clone());
            parts(value, texts, rest);
        }),
        other => rest.push(other.to_string()),
    }
}

/// A report that holds a secret somewhere, as a text, a number or a key.
fn report_with_a_secret() -> impl Strategy<Value = (String, serde_json::Value)> {
    let secret =
        prop_oneof!["[0-9.]{4,7}", "[ -~]{4,9}", "\\PC{4,9}", "[a-z_]{4,6}", Just("null".to_owned())];
    (secret, report(), "\\PC{0,5}").prop_map(|(secret, report, around)| {
            let number: serde_json::Value =
                secret.parse::<f64>().ok().filter(|number| number.is_finite()).into();
            let planted = serde_json::json!({
                "text": format!("{around}{secret}{around}"), "number": number, "report": report, &secret: [&secret],
            });
            (secret, planted)
        })
}

proptest! {
    #[test]
    fn no_secret_is_left_and_no_text_panics(secret in "\\PC{4,20}", before in "\\PC{0,9}", after in "\\PC{0,9}") {
        let mut forms = Forms::default();
        forms.add(&secret);
        let secret = secret.trim();
        prop_assume!(secret.len() >= SHORTEST_BYTES && !secret.contains('•'));
        let shown = forms.mask(&format!("{before}{secret}{after}"), Text::OfOthers).into_owned();
        prop_assert!(!shown.contains(secret), "{:?}", shown);
    }

    #[test]
    fn every_report_stays_json_with_its_figures_and_shows_no_secret((secret, report) in report_with_a_secret()) {
        let mut forms = Forms::default();
        forms.add(&secret);
        let secret = secret.trim();
        prop_assume!(secret.len() >= SHORTEST_BYTES && !secret.contains('•'));
        for json in [report.to_string(), format!("{report:#}")] {
            let shown: serde_json::Value = serde_json::from_str(&forms.mask_json(&json)).expect("JSON");
            let (mut texts, mut rest, mut texts_before, mut rest_before) = (vec![], vec![], vec![], vec![]);
            parts(&shown, &mut texts, &mut rest);
            parts(&report, &mut texts_before, &mut rest_before);
            prop_assert_eq!(rest, rest_before);
            prop_assert_eq!(texts.len(), texts_before.len());
            let is_figure = secret.len() < PIECE_BYTES && secret.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            prop_assert!(is_figure || texts.iter().all(|text| !text.contains(secret)), "{:?}", texts);
        }
    }
}
