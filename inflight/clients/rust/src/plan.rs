//! The plan: one JSON object that says what a runner does. All errors in it are reported at once.

use std::fmt;

use serde_json::{Map, Value, json};

const KNOWN: [&str; 14] = [
    "target",
    "op",
    "value_bytes",
    "total",
    "warmup",
    "in_flight",
    "keys",
    "seed",
    "cluster",
    "timeout_ms",
    "memory_cap_bytes",
    "ca",
    "insecure",
    "variant",
];
const KNOWN_OF_KEYS: [&str; 3] = ["pattern", "count", "theta"];
const TARGETS: &str =
    "hazelcast://HOST:PORT/MAP, redis://HOST:PORT, over TLS hazelcasts:// and rediss://, null: or fake:";

/// Of zipf, unless a plan says otherwise.
pub const ZIPF_THETA: f64 = 0.99;

/// Which keys are used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keys {
    /// always "k0"
    One,
    /// this many keys, each as likely
    Uniform(u64),
    /// this many keys, key j with a probability in proportion to (j + 1)^-theta
    Zipf(u64, f64),
}

impl Keys {
    /// How many there are.
    pub fn count(self) -> u64 {
        match self {
            Keys::One => 1,
            Keys::Uniform(count) | Keys::Zipf(count, _) => count,
        }
    }
}

/// A plan with its defaults filled in. Keys, ranges and defaults: `inflight/clients/README.md`.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// a URL
    pub target: String,
    /// get, set or mix
    pub op: String,
    /// length of a value
    pub value_bytes: usize,
    /// operations in all, warm-up included
    pub total: u64,
    /// the first ones, which are not counted
    pub warmup: u64,
    /// `None`: unlimited
    pub in_flight: Option<usize>,
    /// which keys
    pub keys: Keys,
    /// of everything random
    pub seed: u32,
    /// Hazelcast's name of the cluster
    pub cluster: String,
    /// an operation that takes longer ends as unknown
    pub timeout_ms: u64,
    /// where "unlimited" stops
    pub memory_cap_bytes: u64,
    /// over TLS: a file with certificate authorities to trust besides the usual ones (PEM)
    pub ca: Option<String>,
    /// over TLS: any certificate is accepted
    pub insecure: bool,
}

/// Every mistake of a plan, in one sentence each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPlan(pub String);

impl fmt::Display for BadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPlan {}

impl Plan {
    /// Reads a plan. Errors: all mistakes together.
    pub fn read(text: &str) -> Result<Plan, BadPlan> {
        let Ok(Value::Object(given)) = serde_json::from_str(text) else {
            let why = "the plan is not a JSON object; give one, for example {\"target\":\"null:\"}";
            return Err(BadPlan(why.to_owned()));
        };
        let mut reader = Reader { given: &given, prefix: "", mistakes: Vec::new() };
        reader.unknown(&KNOWN);
        if given.contains_key("variant") {
            reader.mistakes.push("\"variant\" is for the Java runner only".to_owned());
        }
        let target = match given.get("target") {
            Some(Value::String(target)) if is_target(target) => target.clone(),
            other => {
                reader.refuse("target", TARGETS, other);
                String::new()
            }
        };
        let op = reader.word("op", &["get", "set", "mix"], "get, set or mix");
        let value_bytes = reader.whole("value_bytes", 1..=16_777_216, 3, "") as usize;
        let total = reader.whole("total", 1..=1_000_000_000, 1_000_000, "");
        let warmup = reader.whole("warmup", 0..=total - 1, total / 10, "");
        let in_flight = match given.get("in_flight") {
            Some(Value::String(word)) if word == "unlimited" => None,
            _ => Some(reader.whole("in_flight", 1..=100_000, 100, " or \"unlimited\"") as usize),
        };
        let keys = reader.keys();
        let seed = reader.whole("seed", 0..=u64::from(u32::MAX), 1, "") as u32;
        let cluster = match given.get("cluster") {
            None => "dev".to_owned(),
            Some(Value::String(name)) if !name.is_empty() => name.clone(),
            other => {
                reader.refuse("cluster", "a name", other);
                String::new()
            }
        };
        let timeout_ms = reader.whole("timeout_ms", 1..=600_000, 10_000, "");
        let memory_cap_bytes =
            reader.whole("memory_cap_bytes", 1_048_576..=1_099_511_627_776, 536_870_912, "");
        let ca = match given.get("ca") {
            None => None,
            Some(Value::String(path)) if !path.is_empty() => Some(path.clone()),
            other => {
                reader.refuse("ca", "the path of a PEM file", other);
                None
            }
        };
        let insecure = match given.get("insecure") {
            None => false,
            Some(Value::Bool(insecure)) => *insecure,
            other => {
                reader.refuse("insecure", "true or false", other);
                false
            }
        };
        if !reader.mistakes.is_empty() {
            return Err(BadPlan(reader.mistakes.join("; ")));
        }
        Ok(Plan {
            target,
            op,
            value_bytes,
            total,
            warmup,
            in_flight,
            keys,
            seed,
            cluster,
            timeout_ms,
            memory_cap_bytes,
            ca,
            insecure,
        })
    }

    /// The plan as it is run, with its defaults.
    pub fn as_json(&self) -> Value {
        let mut plan = json!({
            "target": self.target,
            "op": self.op,
            "value_bytes": self.value_bytes,
            "total": self.total,
            "warmup": self.warmup,
            "in_flight": self.in_flight.map_or(json!("unlimited"), |limit| json!(limit)),
            "keys": match self.keys {
                Keys::One => json!({"pattern": "one"}),
                Keys::Uniform(count) => json!({"pattern": "uniform", "count": count}),
                Keys::Zipf(count, theta) => json!({"pattern": "zipf", "count": count, "theta": theta}),
            },
            "seed": self.seed,
            "cluster": self.cluster,
            "timeout_ms": self.timeout_ms,
            "memory_cap_bytes": self.memory_cap_bytes,
        });
        if let Some(ca) = &self.ca {
            plan["ca"] = json!(ca);
        }
        if self.insecure {
            plan["insecure"] = json!(true);
        }
        plan
    }
}

fn is_target(text: &str) -> bool {
    let after = |scheme, over_tls| text.strip_prefix(scheme).or_else(|| text.strip_prefix(over_tls));
    if let Some(rest) = after("hazelcast://", "hazelcasts://") {
        return rest.split_once('/').is_some_and(|(members, map)| {
            !map.is_empty() && members.split(',').all(|member| has_port(member).is_some())
        });
    }
    if let Some(rest) = after("redis://", "rediss://") {
        let (member, number) = rest.split_once('/').unwrap_or((rest, "0"));
        let is_one = |host: &str| host.starts_with('[') || !host.contains([':', ',']);
        return has_port(member).is_some_and(is_one) && number.parse::<u32>().is_ok();
    }
    text == "null:" || text == "fake:"
}

/// The host of `HOST:PORT`.
fn has_port(member: &str) -> Option<&str> {
    let (host, port) = member.rsplit_once(':')?;
    (!host.is_empty() && port.parse::<u16>().is_ok()).then_some(host)
}

struct Reader<'a> {
    given: &'a Map<String, Value>,
    /// before the names of keys
    prefix: &'static str,
    mistakes: Vec<String>,
}

impl Reader<'_> {
    fn refuse(&mut self, name: &str, must: &str, value: Option<&Value>) {
        let got = value.map_or("but is missing".to_owned(), |value| format!("got {value}"));
        self.mistakes.push(format!("\"{}{name}\" must be {must}, {got}", self.prefix));
    }

    fn unknown(&mut self, known: &[&str]) {
        for name in self.given.keys().filter(|name| !known.contains(&name.as_str())) {
            let all: Vec<String> = known.iter().map(|each| format!("{}{each}", self.prefix)).collect();
            self.mistakes.push(format!(
                "unknown key \"{}{name}\"; known are {}",
                self.prefix,
                all.join(", ")
            ));
        }
    }

    fn whole(&mut self, name: &str, range: std::ops::RangeInclusive<u64>, fallback: u64, or: &str) -> u64 {
        let Some(value) = self.given.get(name) else { return fallback };
        let whole = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0);
        match whole.map(|number| number as u64).filter(|number| range.contains(number)) {
            Some(number) => number,
            None => {
                let must = format!("a whole number from {} to {}{or}", range.start(), range.end());
                self.refuse(name, &must, Some(value));
                fallback
            }
        }
    }

    fn word(&mut self, name: &str, words: &[&str], must: &str) -> String {
        let value = self.given.get(name);
        match value {
            None => words[0].to_owned(),
            Some(Value::String(word)) if words.contains(&word.as_str()) => word.clone(),
            _ => {
                self.refuse(name, must, value);
                words[0].to_owned()
            }
        }
    }

    fn keys(&mut self) -> Keys {
        let empty = Map::new();
        let given = match self.given.get("keys") {
            None => &empty,
            Some(Value::Object(given)) => given,
            other => {
                let must = "an object such as {\"pattern\":\"uniform\",\"count\":1000}";
                self.refuse("keys", must, other);
                &empty
            }
        };
        let mut inner = Reader { given, prefix: "keys.", mistakes: Vec::new() };
        inner.unknown(&KNOWN_OF_KEYS);
        let pattern = inner.word("pattern", &["one", "uniform", "zipf"], "one, uniform or zipf");
        let count = inner.whole("count", 1..=1_000_000, 1000, "");
        let theta = match given.get("theta").map_or(Some(ZIPF_THETA), Value::as_f64) {
            Some(theta) if (0.0..=10.0).contains(&theta) => theta,
            _ => {
                inner.refuse("theta", "a number from 0 to 10", given.get("theta"));
                0.0
            }
        };
        self.mistakes.append(&mut inner.mistakes);
        match pattern.as_str() {
            "uniform" => Keys::Uniform(count),
            "zipf" => Keys::Zipf(count, theta),
            _ => Keys::One,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same plans are read, and the same ones refused with the same words, by the runners of all languages.
    fn plans() -> Value {
        serde_json::from_str(include_str!("../../plans.json")).unwrap()
    }

    #[test]
    fn good_plans_have_their_defaults() {
        for each in plans()["good"].as_array().unwrap() {
            let plan = Plan::read(&each["plan"].to_string()).unwrap();
            assert_eq!(plan.as_json(), each["as_run"]);
        }
    }

    #[test]
    fn bad_plans_are_refused_with_all_that_is_wrong() {
        for each in plans()["bad"].as_array().unwrap() {
            let message = Plan::read(each["plan"].as_str().unwrap()).unwrap_err().to_string();
            assert_eq!(message, each["message"].as_str().unwrap());
        }
    }
}
