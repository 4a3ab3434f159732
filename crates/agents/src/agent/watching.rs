//! An agent that makes no load: it reads the server's process, its ticks and its machine while a load elsewhere goes on.
//!
//! It starts nothing and signals nothing. Of files it reads those below the folder that it was started in, of addresses its own.

mod places;

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use engine::{Clock as _, MonotonicClock, clock};
use measure::{Entry, Event, plain_name};
use tokio::sync::mpsc::UnboundedSender;
use watch::{
    ExitWatch, LinkKind, Listens, NamedFeed, NetworkLink, Sampler, SamplerPlan, SamplerReport, TickFeeds,
};

use crate::messages::{Answer, Ask, Found, OneSample, Sought, Sources, Watch, What};

/// What was read in so long a time goes up together.
const GATHERED_FOR: Duration = Duration::from_millis(50);

/// Where what is read leaves.
type Outbox = UnboundedSender<(u32, What)>;

/// The server of this machine, from one trial to the next.
#[derive(Clone)]
pub(super) struct Watching {
    /// as the agent's user names it
    pid: Option<u32>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// the server of the climb
    sought: Option<Sought>,
    /// its ticks, between two trials
    ticks: TickFeeds,
    running: Option<Running>,
}

/// A trial.
struct Running {
    trial: u32,
    sampler: Sampler,
    handing: JoinHandle<()>,
}

impl Watching {
    /// Errors: there is no such process.
    pub(super) fn new(pid: Option<u32>) -> anyhow::Result<Watching> {
        if let Some(pid) = pid {
            ExitWatch::of_running(pid).with_context(|| format!("--pid {pid}: there is no such process"))?;
        }
        Ok(Watching { pid, state: Arc::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The trial that goes on.
    pub(super) fn trial(&self) -> Option<u32> {
        self.state().running.as_ref().map(|running| running.trial)
    }

    /// Answers what is asked of an agent that watches; may wait for a file or a thread. `outbox`: of its session.
    pub(super) fn answer(&self, ask: Ask, outbox: Option<Outbox>) -> Answer {
        let answer = match (ask, outbox) {
            (Ask::Find(sought), _) => self.find(sought).map(Answer::Found),
            (Ask::Follow(sources), Some(_)) => self.follow(&sources).map(|()| Answer::Done),
            (Ask::Watch(watch), Some(outbox)) => self.watch(&watch, outbox).map(Answer::Found),
            (Ask::EndWatch, _) => Ok(Answer::Watched(self.end())),
            (_, None) => Ok(Answer::Refused("it belongs to no climb".to_owned())),
            _ => Ok(Answer::Refused("it makes no load (--watch-only)".to_owned())),
        };
        answer.unwrap_or_else(|error| Answer::Refused(format!("{error:#}")))
    }

    fn find(&self, sought: Sought) -> anyhow::Result<Found> {
        let link = NetworkLink::to(sought.address);
        if !link.is_ok_and(|link| link.kind == LinkKind::Loopback) {
            bail!("its machine does not have the address {}", sought.address.ip());
        }
        let pid = self.pid_of(sought)?;
        ExitWatch::of_running(pid).with_context(|| format!("process {pid} has ended"))?;
        self.state().sought = Some(sought);
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Ok(Found { pid, name: plain_name(&name) })
    }

    fn pid_of(&self, sought: Sought) -> anyhow::Result<u32> {
        let listens = if sought.is_datagrams { Listens::Datagrams } else { Listens::Stream };
        self.pid.map_or_else(|| Ok(watch::listener(sought.address, listens)?), Ok)
    }

    fn follow(&self, sources: &Sources) -> anyhow::Result<()> {
        let mut feeds = Vec::new();
        for followed in &sources.followed {
            places::check(&followed.source)?;
            let feed = climb::subject::follow_running(&followed.source, sources.rate_hz)?;
            let compared_as = followed.compared_as.clone();
            feeds.extend(feed.map(|feed| NamedFeed { compared_as, feed }));
        }
        // The names of all sources are told where the others are read.
        self.state().ticks = TickFeeds { names: Vec::new(), feeds };
        Ok(())
    }

    fn watch(&self, asked: &Watch, outbox: Outbox) -> anyhow::Result<Found> {
        self.end();
        let sought = self.state().sought.context("it was not asked which server it watches")?;
        // One that was started again has another process.
        let found = self.find(sought)?;
        let clock = MonotonicClock::since(asked.zero_ns);
        let (to, sampled) = channel();
        let mut state = self.state();
        let sampler = Sampler::start(SamplerPlan {
            subject_pid: Some(found.pid),
            subject_group: None,
            subject_is_here: true,
            load_pids: asked.load_pids.clone(),
            exit: Some(ExitWatch::of_running(found.pid)?),
            ticks: std::mem::take(&mut state.ticks),
            zero_realtime_ns: realtime_at(asked.zero_ns),
            now_ns: Box::new(move || clock.now_ns()),
            to,
        })?;
        let trial = asked.trial;
        let handing = std::thread::Builder::new()
            .name("readings".to_owned())
            .spawn(move || hand_on(trial, &sampled, &outbox))
            .context("no thread for the readings")?;
        state.running = Some(Running { trial, sampler, handing });
        Ok(found)
    }

    /// Ends what goes on, after its last readings. Returns the tick rate that was found.
    pub(super) fn end(&self) -> Option<f64> {
        let running = self.state().running.take();
        if let Some(Running { sampler, handing, .. }) = running {
            let SamplerReport { ticks, .. } = sampler.stop();
            self.state().ticks = ticks;
            // It ends with the sampler; a panic of it is our bug and seen by the coordinator as missing readings.
            let _ = handing.join();
        }
        let mut state = self.state();
        state.ticks.judged().and_then(watch::TickFeed::rate_hz)
    }

    /// The same, and the climb's files are closed.
    pub(super) fn forget(&self) {
        self.end();
        *self.state() = State::default();
    }
}

/// What this machine's clock of the day read when its monotonic one read `zero_ns`: the server's ticks are stamped by it.
fn realtime_at(zero_ns: u64) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ahead_ns = i128::from(zero_ns) - i128::from(clock::monotonic_ns());
    u64::try_from(since.as_nanos() as i128 + ahead_ns).unwrap_or(0)
}

/// Brings entries to the coordinator, in their order, until the sampler has ended.
fn hand_on(trial: u32, sampled: &Receiver<Entry>, outbox: &Outbox) {
    // If the receiver is gone, the session has ended.
    let say = |what: What| drop(outbox.send((trial, what)));
    while let Ok(first) = sampled.recv() {
        std::thread::sleep(GATHERED_FOR);
        let (mut samples, mut events) = (Vec::new(), Vec::new());
        for entry in std::iter::once(first).chain(sampled.try_iter()) {
            match entry {
                Entry::Sample(sample) => samples.push(OneSample::from(&sample)),
                Entry::Event(event) => events.push(event),
                Entry::Ticks(second) => say(What::Ticks(second)),
                Entry::Interval(_) | Entry::Books(_) => {}
            }
        }
        if !samples.is_empty() {
            say(What::Samples(samples));
        }
        if !events.is_empty() {
            say(What::Events(events.into_iter().map(plain).collect()));
        }
    }
    say(What::Done);
}

/// Words of other programs are text.
fn plain(event: Event) -> Event {
    Event { text: measure::plain_text(&event.text, EVENT_CHARS), ..event }
}

const EVENT_CHARS: usize = 1_000;

/// Whether an address is one of this machine's.
fn is_own(address: SocketAddr) -> bool {
    NetworkLink::to(address).is_ok_and(|link| link.kind == LinkKind::Loopback)
}
