//! What may not stand in a bot: passwords, tokens and keys that the client had before the server gave it any.
//!
//! They are known by the names beside them, and some by their form. Each becomes `bot.env.NAME`; its value is cut out of every
//! literal, wherever else it stands.

use std::collections::BTreeMap;

use crate::content::{Leaf, Step, normal};
use crate::literal::{Piece, is_name};

/// A shorter value is cut out only where its name says that it is secret: elsewhere it would be found by chance.
const CUT_EVERYWHERE_BYTES: usize = 5;
const ENDINGS: [&str; 23] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "pass",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "credentials",
    "authorization",
    "jwt",
    "bearer",
    "signature",
    "sessionid",
    "sessionkey",
    "authkey",
    "pin",
    "otp",
    "cookie",
];

/// The secrets of a session.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// value and name of its variable, longer values first
    all: Vec<(String, String)>,
}

/// The secret part of a value: all of it, or what stands behind the scheme of a header.
pub(crate) fn secret_in(leaf: &Leaf) -> Option<&str> {
    if leaf.value.is_empty() || leaf.is_kind {
        return None;
    }
    let is_header = matches!(leaf.place.first(), Some(Step::Header(_)));
    let name = normal(&leaf.name);
    let is_named = ENDINGS.iter().any(|ending| name.ends_with(ending)) || is_header && name.contains("auth");
    let value = match leaf.value.split_once(' ') {
        Some((scheme, rest)) if is_header && scheme.chars().all(|c| c.is_ascii_alphanumeric()) => rest,
        _ => leaf.value.as_str(),
    };
    (is_named && (leaf.is_text || leaf.value.len() > 3) || is_jwt(value)).then_some(value)
}

/// `eyJ….eyJ….…`
fn is_jwt(value: &str) -> bool {
    value.starts_with("eyJ") && value.len() > 30 && value.matches('.').count() == 2
}

impl Secrets {
    /// Notes a value under the name that stands beside it.
    pub fn add(&mut self, name: &str, value: &str) {
        if value.is_empty() || self.all.iter().any(|(one, _)| one == value) {
            return;
        }
        let mut wanted: String = name
            .chars()
            .take(40)
            .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' })
            .collect();
        if !is_name(&wanted) {
            wanted = format!("SECRET_{wanted}");
        }
        let mut free = wanted.clone();
        let mut count = 1;
        while self.all.iter().any(|(_, taken)| *taken == free) {
            count += 1;
            free = format!("{wanted}_{count}");
        }
        self.all.push((value.to_owned(), free));
        self.all.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    }

    /// Its variable, where all of a value is a secret.
    pub fn name_of(&self, value: &str) -> Option<&str> {
        self.all.iter().find(|(one, _)| one == value).map(|(_, name)| name.as_str())
    }

    /// All variables, in the order of the alphabet.
    pub fn names(&self) -> Vec<String> {
        let names: BTreeMap<&str, ()> = self.all.iter().map(|(_, name)| (name.as_str(), ())).collect();
        names.into_keys().map(str::to_owned).collect()
    }

    /// A text with every secret cut out of it.
    pub fn cut(&self, text: &str) -> Vec<Piece> {
        let mut pieces = vec![Piece::Text(text.to_owned())];
        for (value, name) in self.all.iter().filter(|(value, _)| value.len() >= CUT_EVERYWHERE_BYTES) {
            if !text.contains(value.as_str()) {
                continue;
            }
            pieces = pieces
                .into_iter()
                .flat_map(|piece| match piece {
                    Piece::Text(text) => {
                        let mut out = Vec::new();
                        for (at, part) in text.split(value.as_str()).enumerate() {
                            if at > 0 {
                                out.push(Piece::code(format!("bot.env.{name}"), true));
                            }
                            if !part.is_empty() {
                                out.push(Piece::Text(part.to_owned()));
                            }
                        }
                        out
                    }
                    code => vec![code],
                })
                .collect();
        }
        pieces
    }

    /// Whether bytes hold one.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        let long = self.all.iter().filter(|(value, _)| value.len() >= CUT_EVERYWHERE_BYTES);
        long.into_iter().any(|(value, _)| bytes.windows(value.len()).any(|part| part == value.as_bytes()))
    }
}
