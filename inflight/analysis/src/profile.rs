//! A client's profile: shares by kind and the most expensive functions, from its folded stacks.

use super::contract::{ProfileFigures, ProfileFunction};
use super::error::LineError;
use super::figures::{CellKey, Run};
use super::heap::Heap;
use super::stacks::{Costly, Stacks};

/// What is profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// CPU time, µs
    Cpu,
    /// what was allocated, bytes
    Alloc,
}

impl Subject {
    /// In options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Cpu => "cpu",
            Subject::Alloc => "alloc",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Subject> {
        [Subject::Cpu, Subject::Alloc].into_iter().find(|subject| subject.name() == name)
    }

    /// Of its weights.
    pub fn unit(self) -> &'static str {
        match self {
            Subject::Cpu => "µs",
            Subject::Alloc => "bytes",
        }
    }
}

/// The artifact of a run that keeps the stacks of a process.
pub fn artifact(process: u32) -> String {
    format!("profile-{process}.folded")
}

/// The profile of one client at one task.
#[derive(Debug)]
pub struct Profile {
    /// what its weights are
    pub subject: Subject,
    /// as the user named it
    pub client: String,
    /// the task
    pub key: CellKey,
    /// what it was made of
    pub stacks: Stacks,
    /// what was alive behind the measured part, where the client wrote a heap snapshot
    pub heap: Option<Heap>,
    /// the CPU time of the process meanwhile, µs; of allocations nothing else is known
    total: Option<u64>,
}

/// Functions that are listed.
const TOP: usize = 10;

impl Profile {
    /// Errors: its stacks are none of the format.
    pub fn read(
        subject: Subject,
        client: &str,
        key: CellKey,
        folded: &str,
        run: &Run,
    ) -> Result<Profile, LineError> {
        let stacks =
            Stacks::read(folded).map_err(|error| error.at(format!("the profile of client {client}")))?;
        let total = (subject == Subject::Cpu).then_some((run.cpu_s * 1e6) as u64);
        Ok(Profile { subject, client: client.to_owned(), key, stacks, heap: None, total })
    }

    /// Everything, that which no stack tells of too.
    fn whole(&self) -> u64 {
        self.stacks.sum().max(self.total.unwrap_or(0))
    }

    /// Of everything, in [0, 1].
    pub fn share(&self, weight: u64) -> f64 {
        weight as f64 / self.whole().max(1) as f64
    }

    /// By kind, and what is unaccounted for.
    pub fn shares(&self) -> Vec<(&'static str, f64)> {
        let by_kind = self.stacks.by_kind();
        let known = by_kind.into_iter().map(|(kind, weight)| (kind.name(), self.share(weight)));
        let rest = self.whole() - self.stacks.sum();
        known.chain([("unaccounted", self.share(rest))]).collect()
    }

    /// The functions that cost most.
    pub fn top(&self) -> Vec<Costly> {
        self.stacks.top(TOP)
    }

    pub(super) fn figures(&self) -> ProfileFigures {
        let function = |one: Costly| ProfileFunction {
            share: self.share(one.own),
            share_without_callees: self.share(one.leaf),
            weight: one.own,
            kind: one.kind.name().to_owned(),
            function: one.function,
        };
        ProfileFigures {
            subject: self.subject.name().to_owned(),
            unit: self.subject.unit().to_owned(),
            client: self.client.clone(),
            op: self.key.op.clone(),
            value_bytes: self.key.value_bytes,
            in_flight: self.key.in_flight.clone(),
            total: self.whole(),
            shares: self.shares().into_iter().map(|(name, share)| (name.to_owned(), share)).collect(),
            heap: self.heap.clone(),
            top: self.top().into_iter().map(function).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell;

    #[test]
    fn shares_add_up_to_the_cpu_of_the_process() {
        let folded =
            "user:main;user:decode;runtime:memmove 600000\nuser:main;user:encode 200000\ngc:sweep 100000\n";
        let cell = cell("planted", &[1000.0]);
        let run = Run { cpu_s: 1.0, ..(*cell.runs[0].1).clone() };
        let shares = Profile::read(Subject::Cpu, "planted", cell.key, folded, &run).unwrap().shares();
        assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        let of = |name: &str| shares.iter().find(|(each, _)| *each == name).map(|(_, share)| *share);
        assert_eq!((of("user code"), of("runtime and native"), of("GC")), (Some(0.2), Some(0.6), Some(0.1)));
        assert_eq!(of("unaccounted"), Some(0.1));
    }
}
