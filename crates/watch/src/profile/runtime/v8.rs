//! Profiles of V8 as folded stacks: of CPU (`Profiler.stop`) and of allocations (`HeapProfiler.stopSampling`).

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use super::{Allocation, Allocations, Samples};
use crate::profile::names;

/// Frames of a stack that are read: a hostile profile may lead in a circle.
const FRAMES_MAX: usize = 256;
/// What stands for time in which no function ran.
const IDLE: [&str; 2] = ["(idle)", "(root)"];

#[derive(Debug, Deserialize)]
struct CallFrame {
    #[serde(rename = "functionName")]
    function: String,
    url: String,
    #[serde(rename = "lineNumber")]
    line: i64,
}

impl CallFrame {
    /// Named as `perf` names it by the map that Node.js writes.
    fn name(&self) -> String {
        let place = if self.url.is_empty() {
            String::new()
        } else {
            // Lines are counted from 0.
            format!(" {}:{}:1", self.url, self.line.saturating_add(1))
        };
        let name = format!("JS:{}{place}_[j]", self.function);
        names::frame(&name.replace(';', ":"), true)
    }
}

/// The result of `Profiler.stop`.
#[derive(Debug, Deserialize)]
pub(super) struct Cpu {
    profile: CpuProfile,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuProfile {
    nodes: Vec<CpuNode>,
    /// CLOCK_MONOTONIC, µs
    start_time: f64,
    #[serde(default)]
    samples: Vec<u64>,
    /// µs since the sample before, the first since the start
    #[serde(default)]
    time_deltas: Vec<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuNode {
    id: u64,
    call_frame: CallFrame,
    #[serde(default)]
    children: Vec<u64>,
}

impl Cpu {
    /// Those between two readings of CLOCK_MONOTONIC in which the process did something.
    pub(super) fn samples(&self, (from_ns, to_ns): (u64, u64), per_s: f64) -> Samples {
        let profile = &self.profile;
        let nodes: HashMap<u64, &CpuNode> = profile.nodes.iter().map(|node| (node.id, node)).collect();
        let parents: HashMap<u64, u64> = profile
            .nodes
            .iter()
            .flat_map(|node| node.children.iter().map(|child| (*child, node.id)))
            .collect();
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let mut at_us = profile.start_time;
        for (id, delta) in profile.samples.iter().zip(&profile.time_deltas) {
            at_us += *delta as f64;
            if (from_ns as f64..to_ns as f64).contains(&(at_us * 1e3)) {
                *counts.entry(*id).or_default() += 1;
            }
        }
        let mut folded: BTreeMap<String, u64> = BTreeMap::new();
        for (id, count) in counts {
            let path = std::iter::successors(Some(id), |id| parents.get(id).copied()).take(FRAMES_MAX);
            let frames: Vec<&CallFrame> =
                path.filter_map(|id| nodes.get(&id).map(|node| &node.call_frame)).collect();
            if frames.first().is_none_or(|innermost| IDLE.contains(&innermost.function.as_str())) {
                continue;
            }
            let names = frames.iter().rev().filter(|frame| frame.function != "(root)");
            let stack = names.map(|frame| frame.name()).collect::<Vec<_>>().join(";");
            *folded.entry(stack).or_default() += count;
        }
        let folded = folded.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
        Samples { folded, per_s }
    }
}

impl Cpu {
    /// The function to which at least half of this time belongs. `None`: none, or the thread was away from the CPU for half of it.
    pub(super) fn function_of_most(&self, (from_ns, to_ns): (u64, u64), sample_ns: u64) -> Option<String> {
        let Samples { folded, .. } = self.samples((from_ns, to_ns), 1.0);
        let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
        for (stack, count) in folded.lines().filter_map(|line| line.rsplit_once(' ')) {
            *functions.entry(names::function(stack)).or_default() += count.parse().unwrap_or(0);
        }
        let (function, samples) = functions.into_iter().max_by_key(|(_, samples)| *samples)?;
        (2 * samples * sample_ns >= to_ns - from_ns).then(|| function.to_owned())
    }
}

/// The result of `HeapProfiler.stopSampling`.
#[derive(Debug, Deserialize)]
pub(super) struct Heap {
    profile: HeapProfile,
}

#[derive(Debug, Deserialize)]
struct HeapProfile {
    head: HeapNode,
    #[serde(default)]
    samples: Vec<HeapSample>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeapNode {
    call_frame: CallFrame,
    #[serde(default)]
    self_size: f64,
    id: u64,
    #[serde(default)]
    children: Vec<HeapNode>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeapSample {
    node_id: u64,
}

impl Heap {
    /// V8 scales sizes to all that was allocated.
    pub(super) fn allocations(&self) -> Allocations {
        let mut samples: HashMap<u64, u64> = HashMap::new();
        for sample in &self.profile.samples {
            *samples.entry(sample.node_id).or_default() += 1;
        }
        let mut each = Vec::new();
        collect(&self.profile.head, &mut Vec::new(), &samples, &mut each);
        Allocations { each }
    }
}

/// As deep as the JSON was, whose depth is limited.
fn collect(
    node: &HeapNode,
    stack: &mut Vec<String>,
    samples: &HashMap<u64, u64>,
    each: &mut Vec<Allocation>,
) {
    let is_root = node.call_frame.function == "(root)";
    if !is_root {
        stack.push(node.call_frame.name());
    }
    if node.self_size >= 1.0 && !stack.is_empty() {
        let samples = samples.get(&node.id).copied().unwrap_or(1);
        each.push(Allocation { stack: stack.join(";"), bytes: node.self_size as u64, samples });
    }
    node.children.iter().for_each(|child| collect(child, stack, samples, each));
    if !is_root {
        stack.pop();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn frame(function: &str, url: &str, line: i64) -> Value {
        json!({ "functionName": function, "scriptId": "1", "url": url, "lineNumber": line, "columnNumber": 3 })
    }

    #[test]
    fn samples_within_the_hold_count_and_idle_ones_do_not() {
        let profile = json!({ "profile": {
            "nodes": [
                { "id": 1, "callFrame": frame("(root)", "", -1), "hitCount": 0, "children": [2, 3, 4] },
                { "id": 2, "callFrame": frame("(idle)", "", -1), "hitCount": 9 },
                { "id": 3, "callFrame": frame("handle", "file:///srv/server.mjs", 6), "hitCount": 0, "children": [5] },
                { "id": 4, "callFrame": frame("(garbage collector)", "", -1), "hitCount": 1 },
                { "id": 5, "callFrame": frame("processTicksAndRejections", "node:internal/process/task_queues", 80) },
                // In a circle, and with what separates stacks.
                { "id": 6, "callFrame": frame("e;v\u{1b}il 9", "file:///srv/a;b.js", 0), "children": [7] },
                { "id": 7, "callFrame": frame("", "/x.js", 0), "children": [6] },
            ],
            "startTime": 1_000_000, "endTime": 1_010_000,
            "samples": [3, 3, 5, 2, 4, 1, 99, 3],
            "timeDeltas": [500, 1500, 2000, 2000, 2000, 2000, 10, 9_000_000],
        }});
        let cpu: Cpu = serde_json::from_value(profile).unwrap();
        let samples = cpu.samples((1_001_000_000, 1_100_000_000), 500.0);
        assert_eq!(
            samples.folded,
            "runtime:(garbage collector) 1\nuser:handle (server.mjs:7) 1\n\
             user:handle (server.mjs:7);runtime:processTicksAndRejections (task_queues:81) 1\n"
        );
        let mut circle = cpu;
        circle.profile.samples = vec![7];
        let samples = circle.samples((0, u64::MAX), 500.0);
        assert_eq!(samples.folded.matches(';').count(), FRAMES_MAX - 1);
        assert!(
            samples.folded.ends_with("user:e:v il 9 (a:b.js:1);user:(anonymous) (x.js:1) 1\n"),
            "{samples:?}"
        );
    }

    #[test]
    fn a_callback_is_that_functions_which_took_half_of_it_on_the_cpu() {
        let of = |samples: &[u64]| -> Option<String> {
            let profile = json!({ "profile": {
                "nodes": [
                    { "id": 1, "callFrame": frame("(root)", "", -1), "children": [2, 4, 5] },
                    { "id": 2, "callFrame": frame("handle", "/srv/a.js", 1), "children": [3] },
                    { "id": 3, "callFrame": frame("render", "/srv/b.js", 2) },
                    { "id": 4, "callFrame": frame("(garbage collector)", "", -1) },
                    { "id": 5, "callFrame": frame("(idle)", "", -1) },
                ],
                "startTime": 0, "samples": samples, "timeDeltas": vec![2000; samples.len()],
            }});
            let cpu: Cpu = serde_json::from_value(profile).unwrap();
            cpu.function_of_most((1_000_000, 21_000_000), 2_000_000)
        };
        for (samples, expected) in [
            (&[3, 3, 3, 3, 3, 3, 3, 3, 3, 3][..], Some("render (b.js:3)")),
            (&[2, 2, 2, 3, 3, 3, 3, 2, 2, 2], Some("handle (a.js:2)")),
            (&[4, 4, 4, 4, 4, 4, 3, 3, 3, 3], Some("(garbage collector)")),
            // In turns, asleep for most of it, and without a sample.
            (&[2, 2, 2, 3, 3, 3, 4, 4, 4, 4], None),
            (&[3, 3, 3], None),
            (&[5, 5, 5, 5, 5, 5, 5, 5, 5, 5], None),
        ] {
            assert_eq!(of(samples).as_deref(), expected, "{samples:?}");
        }
    }

    #[test]
    fn allocations_have_the_size_that_v8_gives_them_and_their_samples() {
        let profile = json!({ "profile": {
            "head": { "id": 1, "callFrame": frame("(root)", "", -1), "selfSize": 0, "children": [
                { "id": 2, "callFrame": frame("grow", "file:///srv/server.mjs", 6), "selfSize": 3000.5, "children": [
                    { "id": 3, "callFrame": frame("stringify", "", -1), "selfSize": 70, "children": [] },
                ]},
                { "id": 4, "callFrame": frame("idle", "file:///srv/server.mjs", 9), "selfSize": 0, "children": [] },
            ]},
            "samples": [{ "size": 1000, "nodeId": 2, "ordinal": 1 }, { "size": 1000, "nodeId": 2, "ordinal": 2 }],
        }});
        let heap: Heap = serde_json::from_value(profile).unwrap();
        let found = heap.allocations();
        let one = |stack: &str, bytes, samples| Allocation { stack: stack.to_owned(), bytes, samples };
        assert_eq!(
            found.each,
            [
                one("user:grow (server.mjs:7)", 3000, 2),
                one("user:grow (server.mjs:7);runtime:stringify", 70, 1),
            ]
        );
        assert_eq!(
            found.folded(),
            "user:grow (server.mjs:7) 3000\nuser:grow (server.mjs:7);runtime:stringify 70\n"
        );
        assert!(serde_json::from_value::<Heap>(json!({ "profile": {} })).is_err());
    }
}
