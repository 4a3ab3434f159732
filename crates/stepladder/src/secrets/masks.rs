//! Values that came from the environment, and how they are kept out of every text.
//!
//! A server may say back what it was sent: as it was, or as part of a URL, of JSON, of a page or in base64, and a message may be
//! cut in its midst. So every longer piece of every such form is replaced, whatever stands around it.
//! Not here: who is asked to mask. That is the writer of the store (`around`, `climb`) and the printer (`say`).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What stands in place of a secret.
const MASK: &str = "•••";
/// A value shorter than this is no secret that could be told from other text.
const SHORTEST_BYTES: usize = 4;
/// So much of a longer one gives it away.
const PIECE_BYTES: usize = 8;

/// Forms of the secrets of this process.
static FORMS: RwLock<Forms> = RwLock::new(Forms::none());

/// Keeps a value out of every text from now on.
pub fn remember(value: &str) {
    FORMS.write().unwrap_or_else(PoisonError::into_inner).add(value);
}

/// A text without the secrets of this process.
pub fn mask(text: &str) -> Cow<'_, str> {
    FORMS.read().unwrap_or_else(PoisonError::into_inner).mask(text)
}

/// All forms of some secrets, none twice.
struct Forms {
    all: Vec<Vec<u8>>,
    /// every piece of them that is just long enough, in small letters: most texts are told from secrets by these alone
    pieces: BTreeSet<[u8; PIECE_BYTES]>,
    /// some are shorter than a piece
    has_short: bool,
}

impl Forms {
    const fn none() -> Forms {
        Forms { all: Vec::new(), pieces: BTreeSet::new(), has_short: false }
    }

    fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.len() < SHORTEST_BYTES {
            return;
        }
        // A server reflects words of a value as easily as all of it: `Bearer abc` may come from one variable.
        let words = value.split_whitespace().filter(|word| word.len() >= PIECE_BYTES);
        for part in words.chain([value]) {
            for form in forms(part) {
                if form.len() >= SHORTEST_BYTES && !self.all.contains(&form) {
                    self.has_short |= form.len() < PIECE_BYTES;
                    self.pieces.extend(form.windows(PIECE_BYTES).filter_map(small));
                    self.all.push(form);
                }
            }
        }
    }

    fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.all.is_empty() {
            return Cow::Borrowed(text);
        }
        let bytes = text.as_bytes();
        let (mut out, mut kept, mut at) = (String::new(), 0, 0);
        while at < bytes.len() {
            let piece = bytes.get(at..at + PIECE_BYTES).and_then(small);
            let may_be = self.has_short || piece.is_some_and(|piece| self.pieces.contains(&piece));
            let lengths = self.all.iter().filter(|_| may_be).map(|form| piece_at(&bytes[at..], form));
            let longest = lengths.max().unwrap_or(0);
            if longest == 0 {
                at += 1;
                continue;
            }
            // A piece may end within a letter; then the whole letter goes.
            let begin = (kept..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(kept);
            let end =
                (at + longest..=bytes.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(bytes.len());
            out += &text[kept..begin];
            if !out.ends_with(MASK) || begin > kept {
                out += MASK;
            }
            (kept, at) = (end, end);
        }
        if kept == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[kept..]) }
    }
}

/// A piece in small letters. `None`: it is shorter.
fn small(piece: &[u8]) -> Option<[u8; PIECE_BYTES]> {
    let mut small: [u8; PIECE_BYTES] = piece.try_into().ok()?;
    small.make_ascii_lowercase();
    Some(small)
}

/// How much of a form the text begins with: all of it, or a piece from anywhere in it that is long enough. 0: nothing.
fn piece_at(text: &[u8], form: &[u8]) -> usize {
    let same =
        |from: usize| text.iter().zip(&form[from..]).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let least = form.len().min(PIECE_BYTES);
    (0..=form.len() - least).map(same).filter(|length| *length >= least).max().unwrap_or(0)
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

    const SECRET: &str = "s3cr3t/\"Kéy\"+&=<42>-zYx";

    fn masked(text: &str) -> String {
        let mut forms = Forms::none();
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
        let mut forms = Forms::none();
        ["", "ab", "abc", "  "].iter().for_each(|short| forms.add(short));
        assert_eq!(forms.mask("abc ab"), "abc ab", "what is too short would hide every other word");
    }

    #[test]
    fn words_of_a_value_are_masked_too() {
        let mut forms = Forms::none();
        forms.add("Bearer abcdefghij");
        assert_eq!(forms.mask("it was <abcdefghij>"), format!("it was <{MASK}>"));
    }

    proptest! {
        #[test]
        fn no_secret_is_left_and_no_text_panics(secret in "\\PC{4,20}", before in "\\PC{0,9}", after in "\\PC{0,9}") {
            let mut forms = Forms::none();
            forms.add(&secret);
            let secret = secret.trim();
            prop_assume!(secret.len() >= SHORTEST_BYTES && !secret.contains('•'));
            let shown = forms.mask(&format!("{before}{secret}{after}")).into_owned();
            prop_assert!(!shown.contains(secret), "{:?}", shown);
        }
    }
}
