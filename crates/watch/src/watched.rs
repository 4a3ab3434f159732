//! The source of the subject's CPU and memory: a process with its children, or a control group.

use crate::control_group::ControlGroup;
use crate::cores::AllowedCores;
use crate::process::{ProcessReading, ProcessTree};

#[derive(Debug)]
pub(crate) enum Watched {
    Tree { pid: u32, tree: ProcessTree },
    Group(ControlGroup),
}

impl Watched {
    /// The group if there is one, else the process; `None` if neither is known, or the process has ended.
    pub(crate) fn find(pid: Option<u32>, group: Option<ControlGroup>) -> Option<Watched> {
        if let Some(group) = group {
            return Some(Watched::Group(group));
        }
        let pid = pid?;
        Some(Watched::Tree { pid, tree: ProcessTree::of(pid).ok()? })
    }

    /// Reads it anew; `None` when nothing of it is there any more.
    pub(crate) fn read(&mut self) -> Option<ProcessReading> {
        match self {
            Watched::Tree { tree, .. } => tree.read(),
            Watched::Group(group) => group.read(),
        }
    }

    pub(crate) fn cores(&self) -> Option<AllowedCores> {
        match self {
            Watched::Tree { pid, .. } => AllowedCores::of(*pid),
            Watched::Group(group) => group.cores(),
        }
    }

    /// The processes of the last reading.
    pub(crate) fn pids(&self) -> Vec<i32> {
        match self {
            Watched::Tree { tree, .. } => tree.pids().collect(),
            Watched::Group(group) => group.pids().to_vec(),
        }
    }

    /// The threads of the last reading, each with its process's number before its own.
    pub(crate) fn threads(&self) -> &[(i32, i32)] {
        match self {
            Watched::Tree { tree, .. } => tree.threads(),
            Watched::Group(group) => group.threads(),
        }
    }
}
