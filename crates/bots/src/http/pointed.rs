//! Extracts the values at pointers (RFC 6901) from a JSON text, without building the rest.
//!
//! As a tree, a body of 4 MiB can take 70 times its length. So the text is scanned once, and only the values that
//! pointers refer to are kept, unless they are large themselves; the rest is only checked for syntax.
//! If a name occurs twice in an object, the last one counts, as in a tree.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// All values that are kept of one text may take so much memory, about.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// What a value takes besides its text, about.
const VALUE_BYTES: usize = 64;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'p> {
    /// where
    pub pointer: &'p str,
    /// the value counts, and not only that there is one
    pub keeps: bool,
}

/// What was found at a pointer.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Nothing,
    /// a value that was not requested
    Something,
    Value(Value),
    /// a value that would take more memory than all values may
    TooLarge,
}

/// The value at each pointer, in order. Errors: the text is not JSON.
pub fn find(text: &[u8], sought: &[Sought<'_>]) -> Result<Vec<Found>, serde_json::Error> {
    let mut search = Search::new(sought);
    search.go(text)?;
    Ok(search.found)
}

struct Search<'p> {
    sought: &'p [Sought<'p>],
    found: Vec<Found>,
    /// what further values may take
    left_bytes: usize,
}

impl<'p> Search<'p> {
    fn new(sought: &'p [Sought<'p>]) -> Self {
        Search { sought, found: vec![Found::Nothing; sought.len()], left_bytes: KEPT_BYTES_MAX }
    }

    fn go(&mut self, text: &[u8]) -> Result<(), serde_json::Error> {
        let text = std::str::from_utf8(text).map_err(|_| Error::custom("text that is not UTF-8"))?;
        let mut json = serde_json::Deserializer::from_str(text);
        let paths = self.sought.iter().enumerate().map(|(at, sought)| (at, sought.pointer)).collect();
        At { search: self, paths, keeps: false }.deserialize(&mut json)?;
        json.end()
    }

    /// Memory for a value with so much text. False: none is left, then or later.
    fn take(&mut self, text_bytes: usize) -> bool {
        let left_bytes = self.left_bytes.checked_sub(VALUE_BYTES + text_bytes);
        self.left_bytes = left_bytes.unwrap_or(0);
        left_bytes.is_some()
    }
}

/// Pointers that lead through a value: their indices, and what is left of them from there.
type Paths<'p> = Vec<(usize, &'p str)>;

/// Those of them that lead on through one child.
fn below<'p>(paths: &Paths<'p>, is_child: impl Fn(&str) -> bool) -> Paths<'p> {
    let below = |(at, path): &(usize, &'p str)| {
        let path = path.strip_prefix('/')?;
        let (token, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        is_child(token).then_some((*at, rest))
    };
    paths.iter().filter_map(below).collect()
}

fn is_index(token: &str, index: usize) -> bool {
    // As the RFC has it: no sign, no zero in front.
    let is_plain = token == "0" || !token.starts_with(['0', '+']);
    is_plain && token.parse() == Ok(index)
}

fn is_name(token: &str, name: &str) -> bool {
    let token = match token.contains('~') {
        true => Cow::Owned(token.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(token),
    };
    token == name
}

/// One value, which is returned if it is kept and not too large.
struct At<'s, 'p> {
    search: &'s mut Search<'p>,
    paths: Paths<'p>,
    /// it is a part of a value that is kept
    keeps: bool,
}

impl<'de> DeserializeSeed<'de> for At<'_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<Value>, D::Error> {
        let At { search, paths, keeps } = self;
        let (here, paths): (Paths<'_>, Paths<'_>) = paths.into_iter().partition(|(_, rest)| rest.is_empty());
        let keeps = keeps || here.iter().any(|(at, _)| search.sought[*at].keeps);
        let value = if paths.is_empty() && !keeps {
            IgnoredAny::deserialize(json)?;
            None
        } else {
            json.deserialize_any(Inside { search: &mut *search, paths, keeps })?
        };
        for (at, _) in here {
            search.found[at] = match &value {
                _ if !search.sought[at].keeps => Found::Something,
                Some(value) => Found::Value(value.clone()),
                None => Found::TooLarge,
            };
        }
        Ok(value)
    }
}

struct Inside<'s, 'p> {
    search: &'s mut Search<'p>,
    paths: Paths<'p>,
    keeps: bool,
}

impl Inside<'_, '_> {
    fn scalar<E>(self, value: impl Into<Value>) -> Result<Option<Value>, E> {
        Ok((self.keeps && self.search.take(0)).then(|| value.into()))
    }
}

impl<'de> Visitor<'de> for Inside<'_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Option<Value>, E> {
        self.scalar(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Option<Value>, E> {
        self.scalar(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Option<Value>, E> {
        self.scalar(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Option<Value>, E> {
        self.scalar(value)
    }

    fn visit_unit<E>(self) -> Result<Option<Value>, E> {
        self.scalar(Value::Null)
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<Value>, E> {
        Ok((self.keeps && self.search.take(text.len())).then(|| text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Value>, A::Error> {
        let Inside { search, paths, keeps } = self;
        let mut keeps = keeps && search.take(0);
        let (mut list, mut index) = (Vec::new(), 0);
        loop {
            let paths = below(&paths, |token| is_index(token, index));
            let Some(value) = seq.next_element_seed(At { search: &mut *search, paths, keeps })? else {
                break;
            };
            index += 1;
            match value {
                Some(value) if keeps => list.push(value),
                Some(_) => {}
                None if keeps => (keeps, list) = (false, Vec::new()),
                None => {}
            }
        }
        Ok(keeps.then(|| Value::Array(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Value>, A::Error> {
        let Inside { search, paths, keeps } = self;
        let mut keeps = keeps && search.take(0);
        let mut object = Map::new();
        while let Some((name, paths)) = map.next_key_seed(Name { paths: &paths, keeps })? {
            // What an earlier value of the same name had does not count.
            paths.iter().for_each(|(at, _)| search.found[*at] = Found::Nothing);
            let value = map.next_value_seed(At { search: &mut *search, paths, keeps })?;
            match (name, value) {
                (Some(name), Some(value)) if keeps && search.take(name.len()) => {
                    object.insert(name, value);
                }
                _ if keeps => (keeps, object) = (false, Map::new()),
                _ => {}
            }
        }
        Ok(keeps.then(|| Value::Object(object)))
    }
}

/// A name in an object: itself, where it is kept, and the pointers that lead through its value.
struct Name<'a, 'p> {
    paths: &'a Paths<'p>,
    keeps: bool,
}

impl<'de, 'p> DeserializeSeed<'de> for Name<'_, 'p> {
    type Value = (Option<String>, Paths<'p>);

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Name<'_, 'p> {
    type Value = (Option<String>, Paths<'p>);

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok((self.keeps.then(|| name.to_owned()), below(self.paths, |token| is_name(token, name))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is found at each pointer, and how much memory was counted for it.
    fn searched(text: &str, pointers: &[&str]) -> (Vec<Found>, usize) {
        let sought: Vec<Sought<'_>> =
            pointers.iter().map(|pointer| Sought { pointer, keeps: true }).collect();
        let mut search = Search::new(&sought);
        search.go(text.as_bytes()).unwrap();
        (search.found, KEPT_BYTES_MAX - search.left_bytes)
    }

    /// As a tree has it.
    fn in_a_tree(text: &str, pointers: &[&str]) -> Vec<Found> {
        let tree: Value = serde_json::from_str(text).unwrap();
        let at = |pointer: &&str| tree.pointer(pointer).cloned().map_or(Found::Nothing, Found::Value);
        pointers.iter().map(at).collect()
    }

    const POINTERS: [&str; 13] =
        ["", "/", "/a", "/a/b", "/a/0", "/a/b/0", "/0", "/1/a", "/01", "/+1", "/a~1b", "/a~0b", "a"];

    #[test]
    fn pointers_lead_where_they_lead_in_a_tree() {
        for text in [
            r#"{"a":{"b":[1,2.5,-3]},"a/b":"x","a~b":null,"":true,"0":0}"#,
            r#"[[1],{"a":"b"},{"a":1e3}]"#,
            r#"{"a":{"b":1},"a":{"c":2}}"#,
            r#"{"a":{"b":1},"a":5}"#,
            r#"{"a":5,"a":{"b":"\u00e9\n"}}"#,
            r#" "text" "#,
            "12345678901234567890123",
        ] {
            assert_eq!(searched(text, &POINTERS).0, in_a_tree(text, &POINTERS), "{text}");
        }
    }

    #[test]
    fn only_what_a_pointer_leads_to_takes_memory() {
        let zeros = "0,".repeat(2_000_000) + "0";
        let (found, kept_bytes) = searched(&format!("[{zeros}]"), &["/id"]);
        assert_eq!((found, kept_bytes), (vec![Found::Nothing], 0));
        let (found, kept_bytes) = searched(&format!(r#"{{"list":[{zeros}],"id":"abc"}}"#), &["/id"]);
        assert_eq!((found, kept_bytes), (vec![Found::Value("abc".into())], VALUE_BYTES + 3));
        let (found, kept_bytes) = searched(&format!("[{zeros}]"), &["/1999999"]);
        assert_eq!((found, kept_bytes), (vec![Found::Value(0.into())], VALUE_BYTES));
        let (found, _) = searched(&format!(r#"{{"list":[{zeros}],"id":"abc"}}"#), &["/list", "/list/7"]);
        assert_eq!(found, [Found::TooLarge, Found::Value(0.into())]);
        let (found, _) = searched(&format!(r#"{{"a":"{}"}}"#, "x".repeat(KEPT_BYTES_MAX)), &["/a"]);
        assert_eq!(found, [Found::TooLarge]);
    }

    #[test]
    fn that_a_large_value_is_there_takes_no_memory() {
        let text = format!("{{\"items\":[{}0]}}", "0,".repeat(1_000_000));
        let sought =
            [Sought { pointer: "/items", keeps: false }, Sought { pointer: "/items/9", keeps: true }];
        let found = find(text.as_bytes(), &sought).unwrap();
        assert_eq!(found, [Found::Something, Found::Value(0.into())]);
    }

    #[test]
    fn what_is_no_json_is_refused_wherever_it_is() {
        let sought = [Sought { pointer: "/a", keeps: true }];
        for text in [&b""[..], b"<", b"{\"a\":1", b"{\"a\":1}x", b"{\"b\":[1,],\"a\":1}", b"{\"b\":\"\xff\"}"]
        {
            assert!(find(text, &sought).is_err(), "{text:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(find(deep.as_bytes(), &sought).is_err());
        assert!(find(deep.as_bytes(), &[Sought { pointer: "", keeps: true }]).is_err());
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c\"\\\\é]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec(("[ab01~/]{0,3}", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_pointers_lead_where_they_lead_in_a_tree(
            json in json(),
            pointers in proptest::collection::vec("(/(a|b|0|1|01|~0|~1|a~1b){1}){0,3}", 1..5),
        ) {
            let text = json.to_string();
            let pointers: Vec<&str> = pointers.iter().map(String::as_str).collect();
            prop_assert_eq!(searched(&text, &pointers).0, in_a_tree(&text, &pointers));
        }
    }
}
