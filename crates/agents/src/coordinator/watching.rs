//! Agents that watch a climb's server on its own machine: which one does, and who does in its place.
//!
//! They are numbered apart from those that make the load (`watchers_of`), and one that is lost takes nothing of the load with it.

mod heard;
mod load;
mod profile;

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex};

use anyhow::{anyhow, bail};
use climb::preflight::Machine;
use climb::trial::{self, Elsewhere, Generator, Load, Profiling, ThisProcess, TrialSpec};
use console::say;
use futures_util::future::join_all;
use plan::{Plan, TickSource};
use tokio::runtime::Handle;
use watch::Listens;
use watch::profile::runtime::{Asked, Served};

use super::{ANSWERS_WITHIN, Coordinator, Inner, asked, is_free, lock, reason, who_is_there, why_not_free};
use crate::link::Link;
use crate::messages::{Answer, Ask, Followed, Found, Hello, Sought, Sources};

use heard::Heard;
use load::WatchedLoad;

/// The agents that watch, of which one is taken.
pub(super) struct Watchers {
    inner: Arc<Inner>,
    runtime: Handle,
    /// those that were free when the agents were gathered
    free: Mutex<Vec<Hello>>,
    wanted: Mutex<Option<Wanted>>,
    taken: Mutex<Option<Taken>>,
    /// what the one that is taken told
    heard: Mutex<Heard>,
    numbers: AtomicUsize,
    trials: AtomicU32,
    has_tasks: AtomicBool,
}

/// The server, and what of its ticks is read on its machine.
#[derive(Clone)]
struct Wanted {
    sought: Sought,
    sources: Sources,
}

/// Who watches it.
#[derive(Clone)]
struct Taken {
    hello: Hello,
    /// among those that watched
    number: usize,
    found: Found,
}

/// Processes of a machine that are the server and who watches it.
pub(super) struct Place {
    boot: String,
    pids: String,
    of: [u32; 2],
}

impl Inner {
    /// The server and who watches it, where they are processes of this machine and of this namespace of processes.
    pub(super) fn watched_pids(&self, boot: &str, pids: &str) -> Vec<u32> {
        let watched = lock(&self.watched);
        let here = watched.as_ref().filter(|place| place.boot == boot && place.pids == pids);
        here.map_or_else(Vec::new, |place| place.of.to_vec())
    }
}

/// The name of a process of another machine is text.
fn plain(found: Found) -> Found {
    Found { name: measure::plain_name(&found.name), ..found }
}

/// What to do where no agent watches. `free`: those that make load.
pub(super) fn none_there<'a>(
    link: &Link,
    free: usize,
    known: impl Iterator<Item = &'a Hello>,
) -> anyhow::Error {
    let mut more = why_not_free(known.filter(|hello| hello.watches), "watches");
    if free > 0 {
        more += &format!("; {free} wait there to make the load: --agents N says how many of them do");
    }
    anyhow!(
        "no agent at {0} watches the server; start one on its machine with stepladder agent --nats {0} --watch-only{more}",
        link.shown
    )
}

/// Whether a source of ticks is read on the machine of the server at `address`: a file, what comes to loopback or to the server's own
/// address, an endpoint of loopback.
fn is_read_there(source: &TickSource, address: SocketAddr) -> bool {
    match source {
        TickSource::Log(Some(_)) | TickSource::Frames(..) => true,
        TickSource::Statsd { address: at, .. } => at.ip().is_loopback() || at.ip() == address.ip(),
        TickSource::OpenMetrics { endpoint, .. } => {
            endpoint.literal_address().is_some_and(|ip| ip.is_loopback())
        }
        TickSource::Log(None) | TickSource::Client | TickSource::None => false,
    }
}

impl Wanted {
    fn of(plan: &Plan, address: SocketAddr, listens: Listens) -> Wanted {
        let names = climb::subject::tick_names(plan);
        let sources = plan.subject.tick_sources().enumerate();
        let there = sources.filter(|(_, source)| is_read_there(source, address));
        let followed = there.map(|(at, source)| Followed {
            source: source.clone(),
            compared_as: names.get(at).filter(|_| at > 0).cloned(),
        });
        Wanted {
            sought: Sought { address, is_datagrams: listens == Listens::Datagrams },
            sources: Sources { followed: followed.collect(), rate_hz: plan.subject.tick_rate_hz },
        }
    }

    /// The ticks that are judged are read there.
    fn has_judged(&self) -> bool {
        self.sources.followed.iter().any(|followed| followed.compared_as.is_none())
    }
}

impl Watchers {
    pub(super) fn new(inner: Arc<Inner>, runtime: Handle, free: Vec<Hello>) -> Arc<Watchers> {
        Arc::new(Watchers {
            inner,
            runtime,
            free: Mutex::new(free),
            wanted: Mutex::default(),
            taken: Mutex::default(),
            heard: Mutex::default(),
            numbers: AtomicUsize::default(),
            trials: AtomicU32::default(),
            has_tasks: AtomicBool::default(),
        })
    }

    /// Takes one of these for the server. Errors: why none of them can watch it; it cannot read its ticks.
    async fn take_one(&self, free: Vec<Hello>, wanted: &Wanted) -> anyhow::Result<Result<Taken, String>> {
        let (link, here) = (&self.inner.link, &self.inner.place);
        let address = wanted.sought.address;
        let can_be = |hello: &Hello| {
            !address.ip().is_loopback() || (&hello.boot, &hello.net) == (&here.boot, &here.net)
        };
        let (near, far): (Vec<Hello>, Vec<Hello>) = free.into_iter().partition(can_be);
        let far =
            far.iter().map(|hello| format!("{}: its machine's {} is another", hello.name, address.ip()));
        let (mut whys, mut found): (Vec<String>, Vec<(Hello, Found)>) = (far.collect(), Vec::new());
        let find = Ask::Find(wanted.sought);
        let answers = join_all(near.iter().map(|hello| asked(link, hello, &find, ANSWERS_WITHIN))).await;
        for (hello, answer) in near.into_iter().zip(answers) {
            match answer {
                Ok(Answer::Found(there)) => found.push((hello, plain(there))),
                Ok(other) => whys.push(format!("{}: {}", hello.name, reason(other))),
                Err(error) => whys.push(error.to_string()),
            }
        }
        let names: Vec<&str> = found.iter().map(|(hello, _)| hello.name.as_str()).collect();
        if names.len() > 1 {
            say::err_line!("stepladder: {} can watch the server; {} does", names.join(" and "), names[0]);
        }
        let Some((hello, there)) = found.into_iter().next() else { return Ok(Err(whys.join("; "))) };
        let number = self.numbers.fetch_add(1, Relaxed);
        let join = Ask::Join { session: self.inner.session.clone(), number };
        let follow = Ask::Follow(wanted.sources.clone());
        for (ask, cannot) in [(join, "does not join"), (follow, "cannot read the server's ticks")] {
            match asked(link, &hello, &ask, ANSWERS_WITHIN * 3).await? {
                Answer::Done => {}
                other => bail!("agent {} {cannot}: {}", hello.name, reason(other)),
            }
        }
        say::err_line!(
            "stepladder: agent {} watches the server on {}: process {} ({})",
            hello.name,
            hello.host,
            there.pid,
            there.name
        );
        Ok(Ok(Taken { hello, number, found: there }))
    }

    /// From now on this one does.
    fn keep(&self, taken: Taken) {
        self.place(&taken);
        let rate_hz = lock(&self.heard).rate_hz;
        *lock(&self.heard) = Heard { number: Some(taken.number), rate_hz, ..Heard::default() };
        *lock(&self.taken) = Some(taken);
    }

    fn place(&self, taken: &Taken) {
        let of = [taken.hello.pid, taken.found.pid];
        let (boot, pids) = (taken.hello.boot.clone(), taken.hello.pids.clone());
        *lock(&self.inner.watched) = Some(Place { boot, pids, of });
    }

    /// Who watches now, where one does: another in place of one that is lost, where there is one.
    async fn present(&self) -> Result<Taken, String> {
        let Some(wanted) = lock(&self.wanted).clone() else { return Err("it is not needed".to_owned()) };
        let why = lock(&self.heard).lost.clone();
        let (Some(why), Some(old)) = (why, lock(&self.taken).clone()) else {
            return lock(&self.taken).clone().ok_or_else(|| "there is none".to_owned());
        };
        let mut free = who_is_there(&self.inner.link).await.unwrap_or_default();
        free.retain(|hello| hello.watches && is_free(hello));
        match self.take_one(free, &wanted).await {
            Ok(Ok(taken)) => {
                self.keep(taken.clone());
                Ok(taken)
            }
            Ok(Err(_)) => Err(format!("agent {}: {why}", old.hello.name)),
            Err(error) => Err(format!("agent {}: {why}; {error:#}", old.hello.name)),
        }
    }

    /// The one that is taken is asked for nothing more.
    pub(super) async fn let_go(&self) {
        let taken = lock(&self.taken).take();
        if let Some(taken) = taken.filter(|_| lock(&self.heard).lost.is_none()) {
            // If it does not hear this, it leaves for lack of announcements.
            let _ = asked(&self.inner.link, &taken.hello, &Ask::Leave, ANSWERS_WITHIN).await;
        }
    }

    /// The machine with this boot makes a part of the load.
    fn makes_load(&self, boot: &str) -> bool {
        if self.inner.makes_no_load() {
            return self.inner.place.boot == boot;
        }
        self.inner.members().iter().any(|one| one.hello.boot == boot)
    }

    /// Processes that make the load or hold it together, where the one that watches sees them.
    fn load_pids(&self, hello: &Hello) -> Vec<u32> {
        let here = &self.inner.place;
        let own = ((&here.boot, &here.pids) == (&hello.boot, &hello.pids)).then(std::process::id);
        let members = self.inner.members();
        let members = members.iter().map(|member| &member.hello);
        let beside = members.filter(|one| (&one.boot, &one.pids) == (&hello.boot, &hello.pids));
        beside.map(|one| one.pid).chain(own).collect()
    }
}

impl Elsewhere for Watchers {
    fn has_ended(&self) -> bool {
        lock(&self.heard).has_ended
    }

    fn follows(&self, source: &TickSource) -> bool {
        lock(&self.wanted).as_ref().is_some_and(|wanted| is_read_there(source, wanted.sought.address))
    }

    fn tick_rate_hz(&self) -> Option<f64> {
        lock(&self.heard).rate_hz
    }

    fn forget_ticks(&self) {
        if let Some(wanted) = lock(&self.wanted).as_mut() {
            wanted.sources = Sources::default();
        }
        if let Some(taken) = lock(&self.taken).clone() {
            let follow = Ask::Follow(Sources::default());
            // One that does not answer is lost, and told so at the next trial.
            let _ = self.runtime.block_on(asked(&self.inner.link, &taken.hello, &follow, ANSWERS_WITHIN));
        }
    }

    fn is_hidden_here(&self) -> bool {
        let here = &self.inner.place;
        let taken = lock(&self.taken);
        taken.as_ref().is_some_and(|taken| taken.hello.boot == here.boot && taken.hello.pids != here.pids)
    }

    fn profile(&self, asked: Asked, served: Served) -> anyhow::Result<Box<dyn Profiling>> {
        self.start_profile(asked, served)
    }
}

/// What makes the load, with an agent that watches the server where there is one.
pub struct WithWatcher<'a> {
    load: &'a dyn Generator,
    watchers: &'a Arc<Watchers>,
}

impl Coordinator {
    /// The agents make the load, or without any this process.
    pub fn generator(&self) -> WithWatcher<'_> {
        let load: &dyn Generator = if self.inner.makes_no_load() { &ThisProcess } else { self };
        WithWatcher { load, watchers: &self.watchers }
    }
}

impl Generator for WithWatcher<'_> {
    fn machine(&self) -> anyhow::Result<Machine> {
        self.load.machine()
    }

    fn shares_cores(&self, address: SocketAddr, is_here: bool) -> bool {
        match lock(&self.watchers.taken).as_ref() {
            Some(taken) => self.watchers.makes_load(&taken.hello.boot),
            None => self.load.shares_cores(address, is_here),
        }
    }

    fn watch(&self, sought: &trial::Sought<'_>) -> anyhow::Result<Option<Arc<dyn Elsewhere>>> {
        let watchers = self.watchers;
        let free = std::mem::take(&mut *lock(&watchers.free));
        let Some(first) = free.first() else { return Ok(None) };
        if let Some(why) = sought.watched_here {
            say::err_line!("stepladder: agent {} is not needed to watch the server: {why}", first.name);
            return Ok(None);
        }
        let wanted = Wanted::of(sought.plan, sought.address, sought.listens);
        match watchers.runtime.block_on(watchers.take_one(free, &wanted))? {
            Ok(taken) => watchers.keep(taken),
            Err(whys) if watchers.inner.makes_no_load() => {
                bail!(
                    "no agent can watch the server at {}: {whys}; start one on its machine with stepladder agent --nats {} --watch-only",
                    sought.address,
                    watchers.inner.link.shown
                )
            }
            Err(whys) => {
                say::err_line!("stepladder: no agent can watch the server at {}: {whys}", sought.address);
                return Ok(None);
            }
        }
        *lock(&watchers.wanted) = Some(wanted);
        if !watchers.has_tasks.swap(true, Relaxed) {
            heard::start(watchers);
        }
        Ok(Some(watchers.clone()))
    }

    fn prepare(&self, order: &TrialSpec<'_>) -> anyhow::Result<Box<dyn Load>> {
        let load = self.load.prepare(order)?;
        let is_watched = order.null.is_none() && lock(&self.watchers.wanted).is_some();
        if !is_watched {
            return Ok(load);
        }
        Ok(Box::new(WatchedLoad::prepare(load, self.watchers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_of_ticks_is_read_on_the_machine_that_it_is_on() {
        let server: SocketAddr = "10.0.0.5:8080".parse().unwrap();
        for (source, there) in [
            ("log=game.log", true),
            ("jsonl=ticks.jsonl", true),
            ("statsd=127.0.0.1:8125/tick", true),
            ("statsd=10.0.0.5:8125/tick", true),
            ("statsd=10.0.0.9:8125/tick", false),
            ("openmetrics=http://127.0.0.1:9100/metrics#tick_seconds", true),
            ("openmetrics=http://10.0.0.5:9100/metrics#tick_seconds", false),
            ("client", false),
            ("none", false),
        ] {
            assert_eq!(is_read_there(&source.parse().unwrap(), server), there, "{source}");
        }
    }
}
