//! Values that came from the environment, and how they are kept out of every text.
//!
//! A server may say back what it was sent: as it was, decoded, or as part of a URL, of JSON, of a page or in base64, and a message
//! may be cut in its midst. So every longer piece of every such form is replaced, whatever stands around it.
//! Not here: who is asked to mask. That is the writer of the store (`around`, `climb`) and the printer (`say`).

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

/// A text without the secrets of this process.
pub fn mask(text: &str) -> Cow<'_, str> {
    FORMS.read().unwrap_or_else(PoisonError::into_inner).mask(text)
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
                    self.short.insert(form);
                }
            }
        }
    }

    fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.values.is_empty() {
            return Cow::Borrowed(text);
        }
        let small = text.to_ascii_lowercase();
        let (mut out, mut kept, mut at) = (String::new(), 0, 0);
        while at < small.len() {
            let Some(mut end) = self.end_at(small.as_bytes(), at) else {
                at += 1;
                continue;
            };
            let begin = at;
            // A longer piece is known by the pieces that overlap.
            while at < end {
                at += 1;
                end = self.end_at(small.as_bytes(), at).map_or(end, |further| further.max(end));
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
    fn end_at(&self, text: &[u8], at: usize) -> Option<usize> {
        let rest = &text[at..];
        let is_short = |length: &usize| rest.get(..*length).is_some_and(|begin| self.short.contains(begin));
        match rest.first_chunk() {
            Some(piece) if self.pieces.contains(piece) => Some(PIECE_BYTES),
            _ if self.short.is_empty() => None,
            _ => (SHORTEST_BYTES..PIECE_BYTES).rev().find(is_short),
        }
        .map(|length| at + length)
    }
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
        forms.mask(text).into_owned()
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
        assert_eq!(forms.mask("abc ab"), "abc ab", "what is too short would hide every other word");
    }

    #[test]
    fn words_of_a_value_are_masked_too() {
        let mut forms = Forms::default();
        forms.add("Bearer abcdefghij");
        assert_eq!(forms.mask("it was <abcdefghij>"), format!("it was <{MASK}>"));
    }

    /// What is shown of `text` when the environment held `value`.
    fn shown_with(value: &str, text: &str) -> String {
        let mut forms = Forms::default();
        forms.add(value);
        forms.mask(text).into_owned()
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
        assert_eq!(forms.mask(&words), words);
        assert_eq!(forms.mask(&"zq7x ".repeat(20_000)), format!("{MASK} ").repeat(20_000));
        assert_eq!(forms.mask(&long), MASK);
        // A repeated letter is one piece at every place.
        forms.add(&"x".repeat(100_000));
        assert_eq!(forms.mask(&"x".repeat(100_000)), MASK);
        let many: String = (0..5_000).map(|at| format!("word-{at:08} ")).collect();
        forms.add(&many);
        assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    }

    proptest! {
        #[test]
        fn no_secret_is_left_and_no_text_panics(secret in "\\PC{4,20}", before in "\\PC{0,9}", after in "\\PC{0,9}") {
            let mut forms = Forms::default();
            forms.add(&secret);
            let secret = secret.trim();
            prop_assume!(secret.len() >= SHORTEST_BYTES && !secret.contains('•'));
            let shown = forms.mask(&format!("{before}{secret}{after}")).into_owned();
            prop_assert!(!shown.contains(secret), "{:?}", shown);
        }
    }
}
