//! What is live in a client's heap: from the heap snapshot that V8's inspector writes, or from the client's own table.
//!
//! A snapshot is one JSON object: `snapshot` says which numbers make a node, `nodes` holds them in a row, `strings` the
//! names they refer to (Chrome DevTools reads the same). It is parsed as a stream and never held as a whole: memory
//! holds only sums by type, of at most `TYPES_MAX` types, and the longest text of the file while it is passed.

mod table;

use std::collections::HashMap;
use std::io::BufRead;
use std::{fmt, io};

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use ts_rs::TS;

/// Types that are listed.
const TOP: usize = 10;
/// A snapshot with more types is refused: real programs have far fewer.
const TYPES_MAX: usize = 1 << 20;
/// Of a type's name.
const NAME_CHARS_MAX: usize = 100;

/// What was alive in a client's heap after the measured part and a garbage collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Heap {
    /// what `types` are
    #[serde(default)]
    pub by: HeapBy,
    /// of everything alive, memory outside the heap that belongs to an object included
    pub bytes: u64,
    /// alive
    pub objects: u64,
    /// those that hold most themselves, at most ten, the largest first
    pub types: Vec<HeapType>,
}

/// What a client can tell of its objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum HeapBy {
    /// what they are
    #[default]
    Type,
    /// which function allocated them; estimated from samples
    Function,
}

/// Everything of one type, or of one function, that was alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HeapType {
    /// its constructor or class, or what it is in parentheses, as `(string)`, or the function; text, never markup
    pub name: String,
    /// of these objects alone, without what they refer to
    pub bytes: u64,
    /// alive
    pub objects: u64,
}

/// Why a file does not tell what is alive, and where that shows.
#[derive(Debug, thiserror::Error)]
pub enum HeapError {
    /// No heap snapshot of V8.
    #[error("it is damaged or was cut off: {0}")]
    Snapshot(#[from] serde_json::Error),
    /// No table of bytes, objects and names.
    #[error("line {line}: {why}")]
    Table {
        /// from 1
        line: u64,
        /// what is wrong with it
        why: &'static str,
    },
    /// It cannot be read at all.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Heap {
    /// Errors: the snapshot is cut off, damaged, or contradicts itself.
    pub fn read_snapshot(snapshot: impl BufRead) -> Result<Heap, HeapError> {
        let mut json = serde_json::Deserializer::from_reader(snapshot);
        let heap = json.deserialize_map(Snapshot)?;
        json.end()?;
        Ok(heap)
    }
}

#[derive(Deserialize)]
struct Head {
    meta: Meta,
    node_count: u64,
}

#[derive(Deserialize)]
struct Meta {
    node_fields: Vec<String>,
    node_types: Vec<NodeType>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NodeType {
    OneOf(Vec<String>),
    Other(IgnoredAny),
}

/// Where in a node its figures stand.
struct Layout {
    width: usize,
    type_at: usize,
    name_at: usize,
    size_at: usize,
    types: Vec<String>,
    node_count: u64,
}

impl Layout {
    /// `None`: what is needed is missing.
    fn of(head: Head) -> Option<Layout> {
        let fields = &head.meta.node_fields;
        let at = |name: &str| fields.iter().position(|field| field == name);
        let (type_at, name_at, size_at) = (at("type")?, at("name")?, at("self_size")?);
        let width = fields.len();
        match head.meta.node_types.into_iter().nth(type_at)? {
            NodeType::OneOf(types) => {
                Some(Layout { width, type_at, name_at, size_at, types, node_count: head.node_count })
            }
            NodeType::Other(_) => None,
        }
    }
}

/// What nodes are summed by: objects by the name of their constructor, the rest by what V8 has them for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Class {
    /// a place in `strings`
    Named(u64),
    /// a place in the types of nodes
    Type(usize),
}

#[derive(Clone, Copy, Default)]
struct Held {
    bytes: u64,
    objects: u64,
}

#[derive(Default)]
struct Sums {
    whole: Held,
    top: Vec<(Class, Held)>,
}

struct Snapshot;

impl<'de> Visitor<'de> for Snapshot {
    type Value = Heap;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a heap snapshot")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Heap, A::Error> {
        let (mut layout, mut sums, mut names) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "snapshot" => {
                    let known = Layout::of(map.next_value()?);
                    layout = Some(known.ok_or_else(|| {
                        A::Error::custom("its nodes have no `type`, `name` and `self_size`")
                    })?);
                }
                "nodes" => {
                    let layout = layout.as_ref();
                    let layout = layout.ok_or_else(|| A::Error::custom("`nodes` before `snapshot`"))?;
                    sums = Some(map.next_value_seed(Nodes(layout))?);
                }
                "strings" => {
                    let sums = sums.as_ref();
                    let sums = sums.ok_or_else(|| A::Error::custom("`strings` before `nodes`"))?;
                    names = Some(map.next_value_seed(Names(sums))?);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let (Some(layout), Some(sums), Some(names)) = (layout, sums, names) else {
            return Err(A::Error::custom("`snapshot`, `nodes` or `strings` is missing"));
        };
        let named = |(class, held): &(Class, Held)| {
            let name = match class {
                Class::Type(at) => layout.types.get(*at).map(|name| format!("({})", plain(name))),
                Class::Named(at) => names.get(at).cloned(),
            };
            let name = name.ok_or_else(|| A::Error::custom("a node whose name is not in `strings`"))?;
            Ok(HeapType { name, bytes: held.bytes, objects: held.objects })
        };
        let types = sums.top.iter().map(named).collect::<Result<_, _>>()?;
        Ok(Heap { by: HeapBy::Type, bytes: sums.whole.bytes, objects: sums.whole.objects, types })
    }
}

struct Nodes<'l>(&'l Layout);

impl<'de> DeserializeSeed<'de> for Nodes<'_> {
    type Value = Sums;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Sums, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Nodes<'_> {
    type Value = Sums;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the numbers of all nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Sums, A::Error> {
        let Nodes(layout) = self;
        let mut by_class: HashMap<Class, Held> = HashMap::new();
        let mut whole = Held::default();
        let mut nodes = 0;
        let mut node = Vec::with_capacity(layout.width.min(64));
        while let Some(number) = seq.next_element::<u64>()? {
            node.push(number);
            if node.len() < layout.width {
                continue;
            }
            nodes += 1;
            let (kind, name, bytes) = (node[layout.type_at], node[layout.name_at], node[layout.size_at]);
            node.clear();
            let at = usize::try_from(kind).ok().filter(|at| *at < layout.types.len());
            let at = at.ok_or_else(|| A::Error::custom(format!("a node of the unknown type {kind}")))?;
            let class = match layout.types[at].as_str() {
                // Roots and other helpers of the collector, which no program holds.
                "synthetic" => continue,
                "object" | "native" => Class::Named(name),
                _ => Class::Type(at),
            };
            let held = by_class.entry(class).or_default();
            for sum in [held, &mut whole] {
                sum.objects += 1;
                sum.bytes = sum
                    .bytes
                    .checked_add(bytes)
                    .ok_or_else(|| A::Error::custom("its sizes add up to more than 2^64 bytes"))?;
            }
            if by_class.len() > TYPES_MAX {
                return Err(A::Error::custom(format!("it has more than {TYPES_MAX} types")));
            }
        }
        if nodes != layout.node_count || !node.is_empty() {
            return Err(A::Error::custom(format!(
                "it has {nodes} nodes and says that it has {}",
                layout.node_count
            )));
        }
        let mut top: Vec<(Class, Held)> = by_class.into_iter().collect();
        top.sort_by_key(|(class, held)| (std::cmp::Reverse(held.bytes), *class));
        top.truncate(TOP);
        Ok(Sums { whole, top })
    }
}

struct Names<'s>(&'s Sums);

impl<'de> DeserializeSeed<'de> for Names<'_> {
    type Value = HashMap<u64, String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Names<'_> {
    type Value = HashMap<u64, String>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the names of nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut names = HashMap::new();
        for at in 0.. {
            if self.0.top.iter().any(|(class, _)| *class == Class::Named(at)) {
                let Some(name) = seq.next_element::<String>()? else { break };
                names.insert(at, plain(&name));
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(names)
    }
}

/// A name on one line, of limited length.
fn plain(name: &str) -> String {
    let letter = |letter: char| if letter.is_control() { ' ' } else { letter };
    name.chars().take(NAME_CHARS_MAX).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Three values of 1,000 bytes, a string, and a root that does not count.
    const PLANTED: &str = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size"],
        "node_types":[["hidden","object","string","synthetic"],"string","number","number"],"edge_fields":["type"]},"node_count":5},
        "nodes":[3,0,1,77, 1,2,3,1000, 1,2,5,1000, 2,1,7,40, 1,2,9,1000],
        "edges":[1,2,3],"strings":["(GC roots)","abc","Kept\u0007Value"]}"#;

    fn read(text: &[u8]) -> Result<Heap, HeapError> {
        Heap::read_snapshot(text)
    }

    #[test]
    fn the_type_that_holds_most_comes_first_and_roots_do_not_count() {
        let heap = read(PLANTED.as_bytes()).unwrap();
        let one = |name: &str, bytes, objects| HeapType { name: name.to_owned(), bytes, objects };
        let types = vec![one("Kept Value", 3000, 3), one("(string)", 40, 1)];
        assert_eq!(heap, Heap { by: HeapBy::Type, bytes: 3040, objects: 4, types });
    }

    #[test]
    fn a_snapshot_that_contradicts_itself_is_refused_with_the_reason() {
        let check = |from: &str, to: &str, expected: &str| {
            assert!(PLANTED.contains(from));
            let error = read(PLANTED.replace(from, to).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("\"node_count\":5", "\"node_count\":6", "it has 5 nodes and says that it has 6");
        check("[3,0,1,77,", "[3,0,1,", "nodes");
        check("[3,0,1,77,", "[9,0,1,77,", "unknown type 9");
        check(",1000,", ",-1,", "invalid");
        check(",1000,", ",18446744073709551615,", "2^64");
        check("1,2,3,1000", "1,8,3,1000000", "not in `strings`");
        check("\"strings\"", "\"other\"", "missing");
        check("self_size", "size", "`self_size`");
        check("\"snapshot\"", "\"later\"", "before `snapshot`");
    }

    proptest! {
        #[test]
        fn a_snapshot_that_is_cut_off_is_refused(at in 0..PLANTED.len()) {
            prop_assert!(read(&PLANTED.as_bytes()[..at]).is_err());
        }

        #[test]
        fn damaged_bytes_give_a_heap_or_an_error(damage in damage(PLANTED)) {
            check_damaged(PLANTED, damage, read);
        }
    }

    /// Places in a text, and what stands there instead.
    pub(super) fn damage(text: &str) -> impl Strategy<Value = Vec<(usize, u8)>> + use<> {
        prop::collection::vec((0..text.len(), any::<u8>()), 1..8)
    }

    /// What a damaged file tells may be wrong, but not that a part is more than the whole.
    pub(super) fn check_damaged(
        text: &str,
        damage: Vec<(usize, u8)>,
        read: fn(&[u8]) -> Result<Heap, HeapError>,
    ) {
        let mut bytes = text.as_bytes().to_vec();
        damage.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        if let Ok(heap) = read(&bytes) {
            assert!(heap.types.iter().map(|one| one.bytes).sum::<u64>() <= heap.bytes);
        }
    }
}
