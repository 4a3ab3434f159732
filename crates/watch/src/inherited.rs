//! What this process inherited from its parent, before it changed anything.
//!
//! Stepladder raises its descriptor limit, pins its workers and requests exact timers. A subject that inherited those
//! would be measured under unusual conditions, so it gets the original ones back.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, current_timer_slack, sched_getaffinity, sched_setaffinity};

/// Limits and scheduling as inherited.
#[derive(Clone, Copy, Debug)]
pub struct Inherited {
    /// soft limit of open descriptors, `None`: unlimited
    pub descriptors_soft: Option<u64>,
    /// hard limit of open descriptors, `None`: unlimited
    pub descriptors_hard: Option<u64>,
    /// cores it may run on
    pub(crate) affinity: Option<CpuSet>,
    /// how late the kernel may make a timer, ns
    pub(crate) timer_slack_ns: u64,
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

impl Inherited {
    /// What was inherited, as it stood at the first call; so `main` calls it before it changes anything.
    pub fn remember() -> &'static Inherited {
        INHERITED.get_or_init(|| {
            let limit = getrlimit(Resource::Nofile);
            Inherited {
                descriptors_soft: limit.current,
                descriptors_hard: limit.maximum,
                affinity: sched_getaffinity(None).ok(),
                timer_slack_ns: current_timer_slack().unwrap_or(DEFAULT_TIMER_SLACK_NS),
            }
        })
    }

    /// Gives the calling process its inherited state back. Only system calls, so it may run between fork and exec.
    pub(crate) fn restore(&self) {
        // Failure to restore this is no reason to refuse to start the subject.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit { current: self.descriptors_soft, maximum: self.descriptors_hard },
        );
        if let Some(affinity) = &self.affinity {
            let _ = sched_setaffinity(None, affinity);
        }
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(self.timer_slack_ns));
    }
}

const DEFAULT_TIMER_SLACK_NS: u64 = 50_000;
