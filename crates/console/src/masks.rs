//! Values that came from the environment, and how they are kept out of all text.
//!
//! A server may echo what it was sent: verbatim, decoded, or inside a URL, JSON, a page or base64, and a message may be
//! truncated in the middle. So every longer piece of each of these forms is replaced, whatever surrounds it.
//! Not here: the callers, which are the store's writers and the printer (`say`).

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{LazyLock, PoisonError, RwLock};

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The replacement for a secret.
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
    // Each trial reads the environment again, so skip known values.
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
            // A longer piece is recognised by overlapping pieces.
            while at < end {
                at += 1;
                end = self.end_at(small.as_bytes(), at, whose).map_or(end, |further| further.max(end));
            }
            // A piece may end inside a character; then the whole character goes.
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
            // A server may echo single words of a value as easily as all of it: `Bearer abc` may come from one
            // variable.
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
    // JSON within JSON, or what our own excerpts turn JSON into.
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
    // Three bytes are four letters, so the value's offset in the encoded data gives three forms; the letters at both
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
mod tests;
