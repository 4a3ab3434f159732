//! Folded stacks: their contents, by kind and by function.

use std::collections::BTreeMap;

use serde::Serialize;
use ts_rs::TS;

use super::error::LineError;

/// What a function belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "FunctionKind")]
pub enum Kind {
    /// client library and benchmark
    User,
    /// runtime, standard library and native code
    Runtime,
    /// garbage collection
    Gc,
    /// of the operating system
    Kernel,
}

impl Kind {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::User => "user code",
            Kind::Runtime => "runtime and native",
            Kind::Gc => "GC",
            Kind::Kernel => "kernel",
        }
    }

    /// The prefix of a function in a folded stack.
    pub fn prefix(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Runtime => "runtime",
            Kind::Gc => "gc",
            Kind::Kernel => "kernel",
        }
    }

    const ALL: [Kind; 4] = [Kind::User, Kind::Runtime, Kind::Gc, Kind::Kernel];
}

/// A function and what it belongs to.
pub type Frame = (Kind, String);

/// Stacks from the outermost function inwards, with their weights.
#[derive(Debug)]
pub struct Stacks(Vec<(Vec<Frame>, u64)>);

/// A function and what it costs.
#[derive(Debug, PartialEq)]
pub struct Costly {
    /// its name
    pub function: String,
    /// what it belongs to
    pub kind: Kind,
    /// with what it calls outside user code
    pub own: u64,
    /// without what it calls
    pub leaf: u64,
}

impl Stacks {
    /// Errors: a line that is no stack and weight, or a function that does not say what it belongs to.
    pub fn read(folded: &str) -> Result<Stacks, LineError> {
        let lines = folded.lines().filter(|line| !line.trim().is_empty());
        lines.map(stack).collect::<Result<_, _>>().map(Stacks)
    }

    /// Of all weights.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }

    /// By what the innermost function belongs to.
    pub fn by_kind(&self) -> Vec<(Kind, u64)> {
        let of = |kind| {
            let ends = |frames: &[Frame]| frames.last().is_some_and(|(own, _)| *own == kind);
            self.0.iter().filter(|(frames, _)| ends(frames)).map(|(_, weight)| weight).sum()
        };
        Kind::ALL.map(|kind| (kind, of(kind))).to_vec()
    }

    /// Those that cost most. What user code calls outside of it counts as its own, since that is where it can be changed;
    /// what nobody's code called stands for itself.
    pub fn top(&self, count: usize) -> Vec<Costly> {
        let mut costs: BTreeMap<&Frame, (u64, u64)> = BTreeMap::new();
        for (frames, weight) in &self.0 {
            let Some(leaf) = frames.last() else { continue };
            let blamed = frames.iter().rfind(|(kind, _)| *kind == Kind::User).unwrap_or(leaf);
            let cost = costs.entry(blamed).or_default();
            cost.0 += weight;
            if std::ptr::eq(blamed, leaf) {
                cost.1 += weight;
            }
        }
        let mut all: Vec<Costly> = costs
            .into_iter()
            .map(|((kind, function), (own, leaf))| Costly {
                function: function.clone(),
                kind: *kind,
                own,
                leaf,
            })
            .collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.own));
        all.truncate(count);
        all
    }

    /// Stack by stack, from the outermost function inwards, with its weight.
    pub fn each(&self) -> impl Iterator<Item = (&[Frame], u64)> {
        self.0.iter().map(|(frames, weight)| (frames.as_slice(), *weight))
    }
}

fn stack(line: &str) -> Result<(Vec<Frame>, u64), LineError> {
    let excerpt = || line.chars().take(120).collect::<String>();
    let parts = line.rsplit_once(' ').and_then(|(frames, weight)| Some((frames, weight.parse().ok()?)));
    let Some((frames, weight)) = parts else {
        return Err(LineError::Stacks(format!("a line without a weight: {:?}", excerpt())));
    };
    let frame = |text: &str| {
        let (prefix, name) = text.split_once(':')?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.prefix() == prefix)?;
        Some((kind, name.replace(char::is_control, " ")))
    };
    let frames = frames.split(';').map(frame).collect::<Option<Vec<_>>>().ok_or_else(|| {
        LineError::Stacks(format!(
            "a function that is none of user:, runtime:, gc: and kernel:: {:?}",
            excerpt()
        ))
    })?;
    Ok((frames, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_user_code_calls_outside_of_it_counts_as_its_own() {
        let folded = "user:main;user:get;runtime:malloc 5\nuser:main;user:get 2\nuser:main;runtime:write;kernel:tcp 4\n\
                      kernel:irq 3\nuser:main;user:get;runtime:call;user:back 1\n";
        let stacks = Stacks::read(folded).unwrap();
        assert_eq!(stacks.sum(), 15);
        let costly =
            |function: &str, kind, own, leaf| Costly { function: function.to_owned(), kind, own, leaf };
        let expected = [
            costly("get", Kind::User, 7, 2),
            costly("main", Kind::User, 4, 0),
            costly("irq", Kind::Kernel, 3, 3),
            costly("back", Kind::User, 1, 1),
        ];
        assert_eq!(stacks.top(10), expected);
        assert_eq!(stacks.top(1).len(), 1);
        assert_eq!(stacks.by_kind(), [(Kind::User, 3), (Kind::Runtime, 5), (Kind::Gc, 0), (Kind::Kernel, 7)]);
    }

    #[test]
    fn what_is_no_folded_stack_is_refused() {
        let check = |folded: &str, expected: &str| {
            let error = Stacks::read(folded).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("user:main", "without a weight");
        check("user:main many", "without a weight");
        check("main 5", "a function that is none of");
        check("user:main;other:get 5", "a function that is none of");
    }
}
