//! The key, value and kind of operation i: pure functions of the plan and i, the same in every language.

use crate::phase::Outcome;
use crate::plan::{Keys, Plan};

/// How many values of one length there are.
pub const VARIANTS: usize = 62;
const ALPHABET: &[u8; VARIANTS] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Shares of 2^32 below which an operation of the mix is a get, and a set: 40 % get, 40 % set, 20 % delete.
const GETS_BELOW: u32 = 1_717_986_918;
const SETS_BELOW: u32 = 3_435_973_836;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// reads a value
    Get,
    /// writes a value
    Set,
    /// removes a key
    Delete,
}

/// The n-th random number of a seed: counted, so that it does not depend on who draws when.
fn draw(seed: u32, n: u64) -> u32 {
    let mut h = seed.wrapping_add((n as u32).wrapping_mul(0x9E37_79B9));
    h = (h ^ h >> 16).wrapping_mul(0x85EB_CA6B);
    h = (h ^ h >> 13).wrapping_mul(0xC2B2_AE35);
    h ^ h >> 16
}

/// The operations of a plan.
#[derive(Clone, Debug)]
pub struct Workload {
    seed: u32,
    /// `None`: the mix
    kind: Option<Kind>,
    keys: Keys,
    /// of zipf: key j is drawn when the number is below `limits[j]` and not below the one before
    limits: Vec<u64>,
    value_bytes: usize,
    /// the alphabet over and over, long enough for a value that begins at any of its letters
    letters: Vec<u8>,
    /// every key's name
    names: Vec<String>,
    /// where the value of each key begins in `letters`
    starts: Vec<u8>,
}

impl Workload {
    /// That of a plan.
    pub fn new(plan: &Plan) -> Workload {
        let kind = match plan.op.as_str() {
            "get" => Some(Kind::Get),
            "set" => Some(Kind::Set),
            _ => None,
        };
        Workload::of(kind, plan.keys, plan.value_bytes, plan.seed)
    }

    /// Operations of one kind, or of the mix, on these keys.
    pub fn of(kind: Option<Kind>, keys: Keys, value_bytes: usize, seed: u32) -> Workload {
        let names: Vec<String> = (0..keys.count()).map(|key| format!("k{key}")).collect();
        Workload {
            seed,
            kind,
            keys,
            limits: match keys {
                Keys::Zipf(count, theta) => zipf_limits(count, theta),
                _ => Vec::new(),
            },
            value_bytes,
            letters: ALPHABET.iter().copied().cycle().take(value_bytes + VARIANTS).collect(),
            starts: names
                .iter()
                .map(|name| (crc32fast::hash(name.as_bytes()) as usize % VARIANTS) as u8)
                .collect(),
            names,
        }
    }

    /// Kind of operation `i`.
    pub fn kind(&self, i: u64) -> Kind {
        self.kind.unwrap_or_else(|| match draw(self.seed, 2 * i) {
            share if share < GETS_BELOW => Kind::Get,
            share if share < SETS_BELOW => Kind::Set,
            _ => Kind::Delete,
        })
    }

    /// Number of operation `i`'s key.
    pub fn key(&self, i: u64) -> usize {
        match self.keys {
            Keys::One => 0,
            Keys::Uniform(count) => ((u64::from(draw(self.seed, 2 * i + 1)) * count) >> 32) as usize,
            Keys::Zipf(..) => {
                let share = u64::from(draw(self.seed, 2 * i + 1));
                self.limits.partition_point(|limit| *limit <= share)
            }
        }
    }

    /// How many keys there are.
    pub fn keys(&self) -> usize {
        self.names.len()
    }

    /// A key's name.
    pub fn name(&self, key: usize) -> &str {
        &self.names[key]
    }

    /// Which of the values of this length a key has, below `VARIANTS`: keys of one variant have one value.
    pub fn variant(&self, key: usize) -> usize {
        usize::from(self.starts[key])
    }

    /// A key's value.
    pub fn value(&self, key: usize) -> &[u8] {
        self.value_of(self.variant(key))
    }

    /// The value of a variant, below `VARIANTS`.
    pub fn value_of(&self, variant: usize) -> &[u8] {
        &self.letters[variant..variant + self.value_bytes]
    }

    /// The variant that a value is; `None` where it is none of them.
    pub fn variant_of(&self, value: &[u8]) -> Option<usize> {
        let variant = ALPHABET.iter().position(|letter| value.first() == Some(letter))?;
        (value == self.value_of(variant)).then_some(variant)
    }

    /// What a get of `key` is that found `value`.
    pub fn check(&self, key: usize, value: Option<&[u8]>) -> Outcome {
        match value {
            None => Outcome::Miss,
            Some(value) if value == self.value(key) => Outcome::Hit,
            Some(value) => Outcome::Wrong(format!(
                "{} has {} bytes {:?} where {} were put",
                self.name(key),
                value.len(),
                String::from_utf8_lossy(&value[..value.len().min(80)]),
                self.value_bytes,
            )),
        }
    }

    /// A key that practically never exists: what the benchmark without back-pressure requested.
    pub fn unrounded_key(&self, i: u64) -> String {
        (f64::from(draw(self.seed, 2 * i + 1)) / 4_294_967_296.0).to_string()
    }
}

fn zipf_limits(count: u64, theta: f64) -> Vec<u64> {
    let mut total = 0.0;
    let sums: Vec<f64> = (0..count)
        .map(|key| {
            total += ((key + 1) as f64).powf(-theta);
            total
        })
        .collect();
    let whole = 4_294_967_296.0;
    let mut limits: Vec<u64> = sums.iter().map(|sum| (sum / total * whole) as u64).collect();
    if let Some(last) = limits.last_mut() {
        *last = 1 << 32;
    }
    limits
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn workload(plan: &str) -> Workload {
        Workload::new(&Plan::read(plan).unwrap())
    }

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../vectors.json")).unwrap()
    }

    fn check_keys(plan: &str, expected: &Value) {
        let workload = workload(plan);
        let drawn: Vec<usize> = (0..200).map(|i| workload.key(i)).collect();
        assert_eq!(serde_json::json!(drawn), *expected);
    }

    #[test]
    fn keys_and_kinds_are_those_of_every_language() {
        let vectors = vectors();
        check_keys(
            r#"{"target":"null:","seed":7,"keys":{"pattern":"uniform","count":1000}}"#,
            &vectors["uniform_1000"],
        );
        check_keys(
            r#"{"target":"null:","seed":7,"keys":{"pattern":"zipf","count":1000}}"#,
            &vectors["zipf_1000_0.99"],
        );
        let mix = workload(r#"{"target":"null:","seed":7,"op":"mix"}"#);
        let words: Vec<&str> = (0..200)
            .map(|i| match mix.kind(i) {
                Kind::Get => "get",
                Kind::Set => "set",
                Kind::Delete => "delete",
            })
            .collect();
        assert_eq!(serde_json::json!(words), vectors["kinds"]);
    }

    #[test]
    fn values_are_those_of_every_language() {
        let plan = r#"{"target":"null:","value_bytes":70,"keys":{"pattern":"uniform","count":1000000}}"#;
        let workload = workload(plan);
        for (name, value) in vectors()["values"].as_object().unwrap() {
            let key: usize = name[1..].parse().unwrap();
            assert_eq!(workload.name(key), name);
            assert_eq!(workload.value(key), value.as_str().unwrap().as_bytes());
        }
    }
}
