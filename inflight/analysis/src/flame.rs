//! A flame graph of two profiles: their stacks as one tree of frames, each with its cost per operation in both.
//!
//! Frames are merged by their path. What is too small to be seen is left out, and how much that is stands beside the tree, so
//! that the graph is small whatever the stacks are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ladder::growth::{LEAST_SHARE, SURE_DEVIATIONS, deviation_ns};
use serde::Serialize;
use ts_rs::TS;

use super::stacks::{Frame, Kind, Stacks};

/// Frames that lie deeper are part of their caller: perf takes 127 frames at most, other programs write any number.
const DEPTH_MAX: usize = 256;
/// There are no more frames: more are left out then.
const FRAMES_MAX: usize = 3_000;
/// A frame with less than this share of both profiles is left out.
const LEAST_SHOWN: f64 = 0.001;
/// A longer name is cut.
const NAME_CHARS_MAX: usize = 300;
/// Changes are told apart from these parts of an operation's cost.
const STEPS: [f64; 3] = [LEAST_SHARE, 0.05, 0.2];

/// Two profiles as one tree. Costs are ns per operation, of allocations bytes, of the first and of the second profile.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct FlameGraph {
    /// of all stacks
    pub total: [f64; 2],
    /// what they belong to and their names, which are text of the server under test and never markup
    pub functions: Vec<(Kind, String)>,
    /// each caller before its callees: depth from 0, place in `functions`, cost in both profiles with what it calls, and change: from
    /// -3 (far less) over 0 (as much, or no more than chance) to 3 (far more)
    pub frames: Vec<(u32, u32, f64, f64, i8)>,
    /// the parts of an operation's cost from which a change is 1, 2 and 3
    pub steps: [f64; 3],
    /// every frame with a larger part of one of the totals is there
    pub least_share: f64,
    /// the part of each total that is left out
    pub left_out: [f64; 2],
    /// the part of each total that lies too deep and is shown as its caller's
    pub too_deep: [f64; 2],
}

/// What the weights of stacks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// numbers of samples, which vary by chance
    Samples,
    /// times or bytes
    Amounts,
}

/// A frame of the tree while it grows; the first one is the root.
#[derive(Default)]
struct Node {
    caller: usize,
    function: usize,
    depth: u32,
    ns: [f64; 2],
}

impl FlameGraph {
    /// Of two profiles, each with what one unit of its weights stands for per operation: finite and above 0.
    pub fn of(both: [(&Stacks, f64); 2], weights: Weights) -> FlameGraph {
        let functions = functions(both.map(|(stacks, _)| stacks));
        let (nodes, too_deep_ns) = grown(both, &functions);
        let total = nodes[0].ns;
        let share = |ns: [f64; 2], at: usize| if total[at] > 0.0 { ns[at] / total[at] } else { 0.0 };
        let shares = |ns: [f64; 2]| [0, 1].map(|at| share(ns, at));
        let size = |at: &usize| share(nodes[*at].ns, 0).max(share(nodes[*at].ns, 1));
        // A caller is never smaller than what it calls, and stands before it, so that no frame is shown without its caller.
        let mut shown: Vec<usize> = (1..nodes.len()).filter(|at| size(at) >= LEAST_SHOWN).collect();
        shown.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let is_cut = shown.len() > FRAMES_MAX;
        shown.truncate(FRAMES_MAX);
        let least_share = shown.last().filter(|_| is_cut).map_or(LEAST_SHOWN, size);
        let shown: BTreeSet<usize> = shown.into_iter().collect();
        let noise_ns = (weights == Weights::Samples).then(|| both.map(|(_, ns)| ns));
        let mut graph = FlameGraph {
            total: total.map(rounded),
            functions: Vec::new(),
            frames: Vec::new(),
            steps: STEPS,
            least_share,
            left_out: shares(left_out_ns(&nodes, &shown)),
            too_deep: shares(too_deep_ns),
        };
        let mut places = HashMap::new();
        for at in in_order(&nodes, &shown) {
            let node = &nodes[at];
            let place = *places.entry(node.function).or_insert_with(|| {
                let (kind, name) = functions[node.function];
                graph.functions.push((*kind, measure::plain_text(name, NAME_CHARS_MAX)));
                graph.functions.len() - 1
            });
            let [good, bad] = node.ns;
            let change = change(node.ns, total, noise_ns);
            graph.frames.push((node.depth, place as u32, rounded(good), rounded(bad), change));
        }
        graph
    }
}

/// The time of frames that are not shown while their callers are.
fn left_out_ns(nodes: &[Node], shown: &BTreeSet<usize>) -> [f64; 2] {
    let is_shown = |at: usize| at == 0 || shown.contains(&at);
    let outermost = (1..nodes.len()).filter(|at| !is_shown(*at) && is_shown(nodes[*at].caller));
    outermost.fold([0.0; 2], |sum, at| [0, 1].map(|side| sum[side] + nodes[at].ns[side]))
}

/// Each caller before its callees, and these by their functions' names.
fn in_order(nodes: &[Node], shown: &BTreeSet<usize>) -> Vec<usize> {
    let mut callees: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in shown {
        callees.entry(nodes[*at].caller).or_default().push(*at);
    }
    for list in callees.values_mut() {
        // The last one is taken first.
        list.sort_unstable_by_key(|at| std::cmp::Reverse(nodes[*at].function));
    }
    let (mut order, mut open) = (Vec::with_capacity(shown.len()), vec![0]);
    while let Some(at) = open.pop() {
        order.push(at);
        open.extend(callees.remove(&at).unwrap_or_default());
    }
    order.split_off(1)
}

/// Every function once, by name.
fn functions(both: [&Stacks; 2]) -> Vec<&Frame> {
    let frames = both.into_iter().flat_map(|stacks| stacks.each().flat_map(|(frames, _)| frames));
    let mut all: Vec<&Frame> = frames.collect::<HashSet<_>>().into_iter().collect();
    all.sort_unstable_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
    all
}

/// The whole tree, its root first, and what lies too deep.
fn grown(both: [(&Stacks, f64); 2], functions: &[&Frame]) -> (Vec<Node>, [f64; 2]) {
    let places: HashMap<&Frame, usize> =
        functions.iter().enumerate().map(|(at, frame)| (*frame, at)).collect();
    let (mut nodes, mut too_deep_ns) = (vec![Node::default()], [0.0; 2]);
    let mut callees: HashMap<(usize, usize), usize> = HashMap::new();
    for (side, (stacks, ns_per_weight)) in both.into_iter().enumerate() {
        for (frames, weight) in stacks.each() {
            let ns = weight as f64 * ns_per_weight;
            nodes[0].ns[side] += ns;
            if frames.len() > DEPTH_MAX {
                too_deep_ns[side] += ns;
            }
            let mut caller = 0;
            for (frame, depth) in frames.iter().zip(0..DEPTH_MAX as u32) {
                let function = places[frame];
                let at = *callees.entry((caller, function)).or_insert(nodes.len());
                if at == nodes.len() {
                    nodes.push(Node { caller, function, depth, ns: [0.0; 2] });
                }
                nodes[at].ns[side] += ns;
                caller = at;
            }
        }
    }
    (nodes, too_deep_ns)
}

/// By the part of an operation's time that a frame took more or less; 0 where chance explains it.
fn change([good, bad]: [f64; 2], total: [f64; 2], ns_per_sample: Option<[f64; 2]>) -> i8 {
    let more = bad - good;
    let chance = ns_per_sample
        .map_or(0.0, |ns| SURE_DEVIATIONS * deviation_ns(good, ns[0]).hypot(deviation_ns(bad, ns[1])));
    let part = more.abs() / total[0].max(total[1]).max(f64::MIN_POSITIVE);
    let step = STEPS.iter().filter(|step| part >= **step).count() as i8;
    if more.abs() <= chance { 0 } else { step * more.signum() as i8 }
}

/// To a tenth of a ns: what is drawn needs no more.
fn rounded(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(good: &str, bad: &str, ns: [f64; 2], weights: Weights) -> FlameGraph {
        let [good, bad] = [good, bad].map(|folded| Stacks::read(folded).unwrap());
        FlameGraph::of([(&good, ns[0]), (&bad, ns[1])], weights)
    }

    /// Frames as text: depth, name, time at both loads, change.
    fn frames(graph: &FlameGraph) -> Vec<String> {
        let line = |(depth, function, good, bad, change): &(u32, u32, f64, f64, i8)| {
            let (kind, name) = &graph.functions[*function as usize];
            format!("{depth} {}:{name} {good} {bad} {change}", kind.prefix())
        };
        graph.frames.iter().map(line).collect()
    }

    #[test]
    fn stacks_of_both_become_one_tree_with_time_per_operation() {
        let check = |good: &str, bad: &str, expected: &[&str]| {
            let drawn = graph(good, bad, [10.0, 2.0], Weights::Amounts);
            assert_eq!(frames(&drawn), expected, "{good:?} {bad:?}");
            assert_eq!((drawn.left_out, drawn.too_deep), ([0.0; 2], [0.0; 2]));
        };
        check("", "", &[]);
        check("\n", "user:main 0\n", &[]);
        check("user:main 10\n", "", &["0 user:main 100 0 -3"]);
        check("", "user:main 10\n", &["0 user:main 0 20 3"]);
        // One path is one frame, wherever it comes from; siblings stand by name, and kernel and user keep apart.
        check(
            "user:main;user:parse 10\nuser:main;kernel:read 4\n",
            "user:main;user:parse 50\nuser:main;user:render 60\nuser:main 5\nuser:main;user:read 20\n",
            &[
                "0 user:main 140 270 3",
                "1 user:parse 100 100 0",
                "1 user:read 0 40 2",
                "1 kernel:read 40 0 -2",
                "1 user:render 0 120 3",
            ],
        );
        // A function that calls itself is a frame in itself.
        check(
            "user:f;user:f;user:f 1\n",
            "user:f;user:f 5\n",
            &["0 user:f 10 10 0", "1 user:f 10 10 0", "2 user:f 10 0 -3"],
        );
    }

    #[test]
    fn what_grew_is_more_what_shrank_is_less_and_chance_is_neither() {
        let folded = |parse: u32| format!("user:parse {parse}\nuser:rest 1000\n");
        for (good, bad, weights, expected) in [
            (1000, 1000, Weights::Samples, 0),
            (1000, 1100, Weights::Samples, 0), // 2.2 standard deviations
            (1000, 1100, Weights::Amounts, 1),
            (1000, 1300, Weights::Samples, 2),
            (1300, 1000, Weights::Samples, -2),
            (10, 3000, Weights::Samples, 3),
            (3000, 10, Weights::Samples, -3),
            (100_000, 101_500, Weights::Samples, 0),
        ] {
            let drawn = graph(&folded(good), &folded(bad), [1.0; 2], weights);
            let (_, _, before, after, change) = drawn.frames[0];
            assert_eq!((before, after), (f64::from(good), f64::from(bad)));
            assert_eq!(change, expected, "{good} {bad} {weights:?}");
        }
    }

    #[test]
    fn what_is_too_small_in_both_is_left_out_and_told() {
        let good = "user:main;user:a 998\nuser:main;user:b;user:c 2\n";
        let bad = "user:main;user:a 99951\nuser:main;user:b;user:c 49\n";
        let drawn = graph(good, bad, [1.0; 2], Weights::Amounts);
        let names: Vec<&str> = drawn.functions.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["main", "a", "b", "c"], "0.2 % of one of them");
        let small = graph(&good.replace("998", "99998"), bad, [1.0; 2], Weights::Amounts);
        assert_eq!(small.functions.len(), 2);
        assert_eq!(small.left_out, [0.00002, 0.00049]);
        assert_eq!(small.total, [100_000.0, 100_000.0], "a caller keeps the time of what is left out");
    }

    #[test]
    fn a_graph_is_bounded_whatever_the_stacks_are() {
        // 900 × 100 frames, each above the least share of its own profile.
        let wide: String = (0..900)
            .map(|at| format!("{};user:leaf{at} 1\n", vec![format!("user:f{at}"); 99].join(";")))
            .collect();
        let drawn = graph(&wide, "", [1.0; 2], Weights::Samples);
        assert_eq!((drawn.frames.len(), drawn.frames[0].0), (FRAMES_MAX, 0));
        assert!(drawn.least_share > LEAST_SHOWN && drawn.left_out[0] > 0.9, "{:?}", drawn.left_out);
        let depths = drawn.frames.windows(2).all(|pair| pair[1].0 <= pair[0].0 + 1);
        assert!(depths, "no frame stands without its caller");
        let deep = vec!["user:again"; 10_000].join(";");
        let drawn =
            graph(&format!("{deep} 3\nuser:again 1\n"), &format!("{deep} 1\n"), [1.0; 2], Weights::Samples);
        assert_eq!((drawn.frames.len(), drawn.functions.len()), (DEPTH_MAX, 1));
        assert_eq!(drawn.too_deep, [0.75, 1.0]);
        let most = format!("user:f {}\n", u64::MAX);
        assert!(graph(&most.repeat(3), &most, [1e9; 2], Weights::Samples).total[0].is_finite());
    }

    #[test]
    fn names_are_text_without_what_turns_or_hides_it() {
        let drawn = graph(
            "user:<img src=x onerror=alert(1)> 1\nuser:a\u{202e}b\u{1b}[31m 1\nuser: 1\n",
            &format!("runtime:{} 9\n", "x".repeat(100_000)),
            [1.0; 2],
            Weights::Samples,
        );
        let names: Vec<&str> = drawn.functions.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names[..3], ["?", "<img src=x onerror=alert(1)>", "ab [31m"]);
        assert_eq!(names[3].len(), NAME_CHARS_MAX);
    }
}
