//! Values that came from the environment, and how they are kept out of every text.
//!
//! A server may say back what it was sent: as it was, decoded, or as part of a URL, of JSON, of a page or in base64, and a message
//! may be cut in its midst. So every longer piece of every such form is replaced, whatever stands around it.
//! Not here: who is asked to mask. That is whoever writes the store, and the printer (`say`).

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{LazyLock, PoisonError, RwLock};

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// What stands in place of a secret.
const MASK: &str = "•••";
/// A value shorter than this is no secret that could be told from other text.
const SHORTEST_BYTES: usize = 4;
/// So much of a longer one gives it away.
const PIECE_BYTES: usize = 8;
/// How often a value is decoded: percent-encoded base64 of base64, as Kubernetes keeps it.
const DECODINGS_MAX: usize = 3;

/// Forms of the secrets of this process.
static FORMS: LazyLock<RwLock<Forms>> = LazyLock::new(RwLock::default);

/// Keeps a value out of every text from now on.
pub fn remember(value: &str) {
    // Each trial reads the environment again.
    if !FORMS.read().unwrap_or_else(PoisonError::into_inner).values.contains(value) {
        FORMS.write().unwrap_or_else(PoisonError::into_inner).add(value);
    }
}

/// A text of others, or one that may quote them, without the secrets of this process.
pub fn mask(text: &str) -> Cow<'_, str> {
    FORMS.read().unwrap_or_else(PoisonError::into_inner).mask(text, Text::OfOthers)
}

/// The same of a text of our own, in which what others said is masked already. A short number in it is a figure: to hide those
/// that equal a secret would spoil results and tell what the secret is.
pub fn mask_own(text: &str) -> Cow<'_, str> {
    FORMS.read().unwrap_or_else(PoisonError::into_inner).mask(text, Text::OfOurs)
}

/// The same of JSON, which stays JSON: texts are masked, but no numbers and no keys, which are the words of a contract.
pub fn mask_json(json: &str) -> Cow<'_, str> {
    FORMS.read().unwrap_or_else(PoisonError::into_inner).mask_json(json)
}

/// Whose words a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    OfOthers,
    OfOurs,
}

/// All forms of some secrets, in small letters. Time to mask a text grows with its length alone.
#[derive(Default)]
struct Forms {
    /// as they were added
    values: HashSet<String>,
    /// every piece of a form that is just long enough
    pieces: HashSet<[u8; PIECE_BYTES]>,
    /// forms that are shorter than a piece
    short: HashSet<Vec<u8>>,
    /// those among them that could be figures
    figures: HashSet<Vec<u8>>,
}

impl Forms {
    fn add(&mut self, value: &str) {
        if !self.values.insert(value.to_owned()) {
            return;
        }
        for text in with_decoded(value.trim()) {
            for form in forms(&text) {
                let form = form.to_ascii_lowercase();
                if form.len() >= PIECE_BYTES {
                    self.pieces.extend(
                        form.windows(PIECE_BYTES).flat_map(<&[u8] as TryInto<[u8; PIECE_BYTES]>>::try_into),
                    );
                } else if form.len() >= SHORTEST_BYTES {
                    let is_figure = form.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
                    if is_figure { &mut self.figures } else { &mut self.short }.insert(form);
                }
            }
        }
    }

    fn mask<'a>(&self, text: &'a str, whose: Text) -> Cow<'a, str> {
        if self.values.is_empty() {
            return Cow::Borrowed(text);
        }
        let small = text.to_ascii_lowercase();
        let (mut out, mut kept, mut at) = (String::new(), 0, 0);
        while at < small.len() {
            let Some(mut end) = self.end_at(small.as_bytes(), at, whose) else {
                at += 1;
                continue;
            };
            let begin = at;
            // A longer piece is known by the pieces that overlap.
            while at < end {
                at += 1;
                end = self.end_at(small.as_bytes(), at, whose).map_or(end, |further| further.max(end));
            }
            // A piece may end within a letter; then the whole letter goes.
            let begin = (kept..=begin).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(kept);
            let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            out += &text[kept..begin];
            if !out.ends_with(MASK) || begin > kept {
                out += MASK;
            }
            (kept, at) = (end, end);
        }
        if kept == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[kept..]) }
    }

    /// Where the longest form or piece of one ends that begins at `at`, of a text in small letters.
    fn end_at(&self, text: &[u8], at: usize, whose: Text) -> Option<usize> {
        let rest = &text[at..];
        if rest.first_chunk().is_some_and(|piece| self.pieces.contains(piece)) {
            return Some(at + PIECE_BYTES);
        }
        let of_length = |length: usize| rest.get(..length);
        let longest = |short: &HashSet<Vec<u8>>| {
            let is_form = |length: &usize| of_length(*length).is_some_and(|begin| short.contains(begin));
            (SHORTEST_BYTES..PIECE_BYTES).rev().filter(|_| !short.is_empty()).find(is_form)
        };
        let figure = || longest(&self.figures).filter(|_| whose == Text::OfOthers);
        longest(&self.short).max(figure()).map(|length| at + length)
    }

    fn mask_json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        if self.values.is_empty() {
            return Cow::Borrowed(json);
        }
        let (mut out, mut kept, mut at) = (String::new(), 0, 0);
        // Outside of strings every quote begins one.
        while let Some(begin) = json[at..].find('"').map(|found| at + found) {
            let end = end_of_string(json, begin);
            at = end;
            if json[end..].trim_start().starts_with(':') {
                continue;
            }
            let text: String = serde_json::from_str(&json[begin..end]).unwrap_or_default();
            if let Cow::Owned(masked) = self.mask(&text, Text::OfOurs) {
                out += &json[kept..begin];
                out += &serde_json::Value::from(masked).to_string();
                kept = end;
            }
        }
        if kept == 0 { Cow::Borrowed(json) } else { Cow::Owned(out + &json[kept..]) }
    }
}

/// Where the string of JSON ends that begins at `begin`.
fn end_of_string(json: &str, begin: usize) -> usize {
    let mut is_escaped = false;
    let quote = json.as_bytes()[begin + 1..].iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    quote.map_or(json.len(), |length| begin + 1 + length + 1)
}

/// A value, its longer words, and what a server reads from them: a server that decodes credentials may say back the password
/// that was never sent as it is.
///
/// Decoded are base64 (both alphabets, padded or not) and percent-encoding, one within the other up to `DECODINGS_MAX` times, where
/// they come to a text of at least `SHORTEST_BYTES`. Of `user:password` and `scheme://user:password@host` the password counts by
/// itself, because a short one is no piece of the whole; the user's name does not.
/// A JWT is masked with its three parts, but what it claims is not: anyone reads the claims of a token, they
/// authorise nothing without its signature, and they are words such as roles and names that other texts need.
fn with_decoded(value: &str) -> HashSet<String> {
    let mut all = HashSet::new();
    let mut new = vec![value.to_owned()];
    for _ in 0..=DECODINGS_MAX {
        let mut decoded = Vec::new();
        for text in new {
            let text = text.trim();
            if text.len() < SHORTEST_BYTES || !all.insert(text.to_owned()) {
                continue;
            }
            // A server reflects words of a value as easily as all of it: `Bearer abc` may come from one variable.
            let words = text.split_whitespace().filter(|word| word.len() >= PIECE_BYTES && *word != text);
            for part in words.chain([text]) {
                all.insert(part.to_owned());
                let password = password_of(part).filter(|password| password.len() >= SHORTEST_BYTES);
                all.extend(password.map(str::to_owned));
                decoded.extend([part].into_iter().chain(password).flat_map(decodings));
            }
        }
        new = decoded;
    }
    all
}

fn password_of(text: &str) -> Option<&str> {
    let credentials = match text.split_once("://") {
        Some((_, rest)) => rest.split(['/', '?', '#']).next()?.rsplit_once('@')?.0,
        None => text,
    };
    Some(credentials.split_once(':')?.1.trim())
}

/// What a text means in base64 and in a URL, as far as that is text again.
fn decodings(text: &str) -> impl Iterator<Item = String> {
    // Base64 is often broken into lines.
    let joined: String = text.split_whitespace().collect();
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let base64 = [STANDARD, URL_SAFE]
        .map(|alphabet| GeneralPurpose::new(&alphabet, config).decode(&joined).unwrap_or_default());
    let is_text = |text: &String| !text.chars().any(|letter| letter.is_control() && !letter.is_whitespace());
    base64.into_iter().chain([percent_decoded(text)]).flat_map(String::from_utf8).filter(is_text)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let (mut decoded, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        let digits = others.first_chunk::<2>().filter(|digits| *first == b'%' && digits.is_ascii());
        let byte = digits.and_then(|digits| {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
        });
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &others[2..] } else { others };
    }
    decoded
}

/// The forms in which a value may be said back.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![value.as_bytes().to_vec()];
    let percent = |keeps: fn(u8) -> bool| {
        let encode =
            |byte: u8| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        value.bytes().map(encode).collect::<String>()
    };
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let in_query = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
    let everything = percent(|byte| byte.is_ascii_alphanumeric());
    for text in [percent(unreserved), percent(in_query), percent(unreserved).replace("%20", "+"), everything]
    {
        forms.push(text.into_bytes());
    }
    forms.push(percent(|_| false).into_bytes());
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.trim_matches('"').to_owned();
    forms.push(json.replace('/', "\\/").into_bytes());
    // JSON within JSON, or what our own excerpts make of JSON.
    forms.push(json.escape_debug().to_string().into_bytes());
    forms.push(json.into_bytes());
    forms.push(value.escape_debug().to_string().into_bytes());
    let all_escaped = value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
    forms.push(all_escaped.into_bytes());
    for quote in ["&quot;", "&#34;"] {
        let page = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', quote);
        forms.push(page.replace('\'', "&#39;").into_bytes());
    }
    forms.push(value.bytes().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes());
    // Three bytes are four letters, so where the value begins in what is encoded makes three forms; the letters at both
    // ends also hold bits of its neighbours.
    for before in 0..3 {
        let bytes = [&[0; 2][..before], value.as_bytes()].concat();
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&bytes);
            let from = (before * 8).div_ceil(6);
            let to = text.len() - usize::from(bytes.len() % 3 != 0);
            forms.push(text.as_bytes()[from..to].to_vec());
        }
    }
    forms
}

#[cfg(test)]
mod tests {
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
                // What is left are the neighbours, and no more than the letters that it shares with them.
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
        // As it is encoded again.
        check(&STANDARD.encode(&credentials), "Sup3rS3cretPw%21x");
        check(&STANDARD.encode(&credentials), "5375703372533363726574507721");
        // Too short to be a piece of what it stands in.
        check(&STANDARD.encode("admin:pw4!"), "pw4!");
        check("admin:pw4!", "pw4!");
        check("redis://admin:pw4%21@10.0.0.7:6379/0", "pw4!");
        // What Kubernetes stores: base64 of what is base64 already.
        check(&STANDARD.encode(STANDARD.encode(&credentials)), password);
    }

    #[test]
    fn what_is_no_encoded_text_adds_nothing() {
        for (value, text) in [
            // Its bytes are no text.
            ("hunter2hunter2!", "user hunter"),
            // The user's name alone is no secret.
            ("root:pw4!", "root"),
            // What a token claims is no credential.
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
        // A repeated letter is one piece at every place.
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
        // In base64 it is no figure; the last letter holds bits of its neighbour.
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
        // Cut text is no JSON, and does no harm.
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
}
