//! A profile of a server by the agent that watches it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use climb::trial::Profiling;
use tokio::runtime::Handle;
use watch::profile::Seen;
use watch::profile::runtime::{Asked, Served};

use super::{Taken, Watchers};
use crate::clocks::Offset;
use crate::coordinator::{ANSWERS_WITHIN, Inner, asked, compare_clocks, lock, reason};
use crate::link::Link;
use crate::messages::{Answer, Ask, Hello, Profile};

/// How long a runtime's profiler may take to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(30);
/// How long it may take until stacks are read and are at the broker.
const READ_WITHIN: Duration = Duration::from_secs(120);

/// See the head.
struct There {
    inner: Arc<Inner>,
    runtime: Handle,
    hello: Hello,
    offset: Offset,
    zero_ns: u64,
}

impl Watchers {
    /// Errors: why the server is not profiled there.
    pub(super) fn start_profile(&self, what: Asked, served: Served) -> anyhow::Result<Box<dyn Profiling>> {
        let taken = lock(&self.taken).clone().filter(|_| lock(&self.heard).lost.is_none());
        let Some(Taken { hello, .. }) = taken else { bail!("no agent watches the server any more") };
        if !hello.profiles {
            bail!(
                "agent {} on {}, which watches the server, does not profile it; start it with --watch-only --allow-profiles",
                hello.name,
                hello.host
            );
        }
        let offset = self.runtime.block_on(compare_clocks(&self.inner.link, &hello))?;
        let (inner, runtime) = (self.inner.clone(), self.runtime.clone());
        let there = There { inner, runtime, hello, offset, zero_ns: 0 };
        there.done(Profile::Start(what, served), BEGINS_WITHIN)?;
        Ok(Box::new(there))
    }
}

impl There {
    fn link(&self) -> &Link {
        &self.inner.link
    }

    /// Errors: it did not, and why.
    fn asked(&self, step: Profile, within: Duration) -> anyhow::Result<Answer> {
        let ask = Ask::Profile(step);
        match self.runtime.block_on(asked(self.link(), &self.hello, &ask, within))? {
            Answer::Refused(why) => bail!("agent {}: {why}", self.hello.name),
            answer => Ok(answer),
        }
    }

    fn done(&self, step: Profile, within: Duration) -> anyhow::Result<()> {
        match self.asked(step, within)? {
            Answer::Done => Ok(()),
            other => bail!("agent {}: {}", self.hello.name, reason(other)),
        }
    }
}

impl Profiling for There {
    fn begin(&mut self, (zero_ns, _): (u64, u64)) -> anyhow::Result<()> {
        self.zero_ns = self.offset.theirs(zero_ns);
        self.done(Profile::Begin, ANSWERS_WITHIN)
    }

    fn hold_begins(&mut self, length: Duration) -> anyhow::Result<()> {
        self.done(Profile::HoldBegins(length), ANSWERS_WITHIN)
    }

    fn hold_ends(&mut self) -> anyhow::Result<()> {
        self.done(Profile::HoldEnds, ANSWERS_WITHIN)
    }

    /// What comes later is left out by its time.
    fn stop(&mut self) {}

    fn end(&mut self, from_ns: u64, to_ns: u64) -> anyhow::Result<Seen> {
        let step = Profile::End { from_ns: self.zero_ns + from_ns, to_ns: self.zero_ns + to_ns };
        match self.asked(step, READ_WITHIN)? {
            Answer::Profiled(name) => self.runtime.block_on(self.link().take_profile(&name)),
            other => bail!("agent {}: {}", self.hello.name, reason(other)),
        }
    }
}
