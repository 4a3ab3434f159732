//! An agent that makes no load: it reads the server's process, its ticks and its machine while a load elsewhere goes on.
//!
//! It starts nothing and signals nothing, but the profilers that its user allows. Of files it reads those below the folder that it was started in, of addresses its own.

mod places;

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use engine::{Clock as _, MonotonicClock, clock};
use measure::{Entry, plain_name};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedSender;
use watch::profile::runtime::{Asked, Served, Window};
use watch::profile::{Profilers, Recording, Seen};
use watch::{
    ExitWatch, LinkKind, Listens, NamedFeed, NetworkLink, Sampler, SamplerPlan, SamplerReport, TickFeeds,
};

use crate::messages::{Answer, Ask, Found, OneSample, Profile, Sought, Sources, Watch, What};

/// What was read in so long a time goes up together.
const GATHERED_FOR: Duration = Duration::from_millis(50);

/// Where what is read leaves.
type Outbox = UnboundedSender<(u32, What)>;

/// The server of this machine, from one trial to the next.
#[derive(Clone)]
pub(super) struct Watching {
    /// as the agent's user names it
    pid: Option<u32>,
    /// its user lets climbs profile it
    profiles: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// the server of the climb
    sought: Option<Sought>,
    /// its ticks, between two trials
    ticks: TickFeeds,
    running: Option<Running>,
    profiling: Option<Profiling>,
}

/// A profile that goes on. Files of it stand in a folder of its own.
struct Profiling {
    profilers: Profilers,
    _folder: TempDir,
}

/// A trial.
struct Running {
    trial: u32,
    sampler: Sampler,
    handing: JoinHandle<()>,
}

impl Watching {
    /// Errors: there is no such process.
    pub(super) fn new(pid: Option<u32>, profiles: bool) -> anyhow::Result<Watching> {
        if let Some(pid) = pid {
            ExitWatch::of_running(pid).with_context(|| format!("--pid {pid}: there is no such process"))?;
        }
        Ok(Watching { pid, profiles, state: Arc::default() })
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
        if !is_own(sought.address) {
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
            feeds.extend(feed.map(|feed| NamedFeed::new(compared_as, feed)));
        }
        // The coordinator knows the names of all sources.
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

    /// Takes a step of a profile; what was seen comes with the last one. May take seconds. Errors: why it cannot, for people.
    pub(super) fn profile(&self, step: Profile) -> anyhow::Result<Option<Seen>> {
        let none = "no profile goes on here";
        match step {
            Profile::Start(asked, served) => {
                let profiling = self.start_profile(asked, served)?;
                self.state().profiling = Some(profiling);
            }
            Profile::Begin => self.state().profiling.as_mut().context(none)?.profilers.begin()?,
            Profile::HoldBegins(length) => {
                self.state().profiling.as_mut().context(none)?.profilers.hold_begins(length);
            }
            Profile::HoldEnds => self.state().profiling.as_mut().context(none)?.profilers.hold_ends(),
            Profile::End { from_ns, to_ns } => {
                let mut profiling = self.state().profiling.take().context(none)?;
                let window = Window::since((0, realtime_at(0)), (from_ns, to_ns));
                return profiling.profilers.end(window).map(Some).map_err(anyhow::Error::msg);
            }
        }
        Ok(None)
    }

    fn start_profile(&self, asked: Asked, served: Served) -> anyhow::Result<Profiling> {
        if !self.profiles {
            bail!("its user does not allow profiles; start it with --allow-profiles");
        }
        let sought = self.state().sought.context("it was not asked which server it watches")?;
        let pid = self.find(sought)?.pid;
        let folder = tempfile::tempdir().context("no temporary folder; check TMPDIR")?;
        let no_perf = if asked.cpu { Recording::check(pid, folder.path()).err() } else { None };
        let asked = Asked { has_perf: no_perf.is_none(), ..asked };
        let served = Served {
            origin: served.origin.filter(|origin| is_own(*origin)),
            pprof: served.pprof.filter(|(address, _)| is_own(*address)),
        };
        let profilers = Profilers::start(pid, &served, asked, no_perf.as_ref(), folder.path());
        Ok(Profiling { profilers: profilers.map_err(anyhow::Error::msg)?, _folder: folder })
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
            say(What::Events(events));
        }
    }
    say(What::Done);
}

/// Whether an address is one of this machine's.
fn is_own(address: SocketAddr) -> bool {
    NetworkLink::to(address).is_ok_and(|link| link.kind == LinkKind::Loopback)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use measure::{ProcessMetric, Reading, Sample};
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::messages::Begin;

    fn sought(listener: &TcpListener) -> Sought {
        Sought { address: listener.local_addr().unwrap(), is_datagrams: false }
    }

    #[test]
    fn who_listens_is_watched_from_the_trials_zero_until_it_is_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (watching, (outbox, mut told)) = (Watching::new(None, false).unwrap(), unbounded_channel());
        let Answer::Found(found) = watching.answer(Ask::Find(sought(&listener)), None) else {
            panic!("this process listens")
        };
        assert_eq!(found.pid, std::process::id());
        // An hour of the trial is over by this clock.
        let ago_ns = 3_600_000_000_000;
        let zero_ns = clock::monotonic_ns().saturating_sub(ago_ns);
        let watch = Watch { trial: 7, zero_ns, load_pids: Vec::new() };
        let answer = watching.answer(Ask::Watch(watch), Some(outbox.clone()));
        assert_eq!((answer, watching.trial()), (Answer::Found(found), Some(7)));
        assert_eq!(watching.answer(Ask::EndWatch, Some(outbox.clone())), Answer::Watched(None));
        drop(outbox);
        let mut all = Vec::new();
        while let Ok((trial, what)) = told.try_recv() {
            assert_eq!(trial, 7);
            all.push(what);
        }
        assert!(matches!(all.pop(), Some(What::Done)), "the last message says that no more follow");
        let samples = all.into_iter().flat_map(|what| match what {
            What::Samples(samples) => samples,
            _ => Vec::new(),
        });
        let cpu = Reading::Subject(ProcessMetric::CpuTime);
        let of_server: Vec<Sample> = samples.map(Sample::from).filter(|sample| sample.what == cpu).collect();
        assert!(of_server.len() >= 2, "at the begin and at the end: {of_server:?}");
        let since_ns = clock::monotonic_ns() - zero_ns;
        assert!(of_server.iter().all(|one| one.at_ns <= since_ns && (one.at_ns >= ago_ns || zero_ns == 0)));
        assert_eq!(watching.trial(), None);
    }

    #[test]
    fn it_makes_no_load_and_watches_nothing_that_is_not_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let nowhere = sought(&listener);
        drop(listener);
        let (watching, (outbox, _told)) = (Watching::new(None, false).unwrap(), unbounded_channel());
        let begin = Begin { trial: 0, zero_ns: 0, realtime_zero_ns: 0 };
        let watch = Watch { trial: 0, zero_ns: 0, load_pids: Vec::new() };
        let elsewhere = Sought { address: "192.0.2.1:80".parse().unwrap(), is_datagrams: false };
        for (ask, said) in [
            (Ask::Begin(begin), "it makes no load"),
            (Ask::Pair { is_in_step: false }, "it makes no load"),
            (Ask::Find(nowhere), "nothing listens at"),
            (Ask::Find(elsewhere), "its machine does not have the address 192.0.2.1"),
            (Ask::Watch(watch.clone()), "it was not asked which server"),
        ] {
            let answer = watching.answer(ask.clone(), Some(outbox.clone()));
            assert!(matches!(&answer, Answer::Refused(why) if why.contains(said)), "{ask:?}: {answer:?}");
        }
        for (step, said) in [
            (Profile::Start(Asked::default(), Served::default()), "start it with --allow-profiles"),
            (Profile::HoldEnds, "no profile goes on here"),
            (Profile::End { from_ns: 0, to_ns: 1 }, "no profile goes on here"),
        ] {
            let refused = watching.profile(step.clone()).map(|_| ()).map_err(|error| error.to_string());
            assert!(refused.as_ref().is_err_and(|why| why.contains(said)), "{step:?}: {refused:?}");
        }
        let alone = watching.answer(Ask::Watch(watch), None);
        assert_eq!(alone, Answer::Refused("it belongs to no climb".to_owned()));
        let none = Watching::new(Some(4_194_304), false).err().map(|error| format!("{error:#}"));
        assert!(none.is_some_and(|why| why.starts_with("--pid 4194304: there is no such process")));
    }

    #[test]
    fn the_clock_of_the_day_at_a_trials_zero_is_that_of_this_machine() {
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let (monotonic_ns, hour_ns, minute_ns) = (clock::monotonic_ns(), 3_600_000_000_000, 60_000_000_000);
        // Both clocks are read one after the other, on a machine that may be taken away in between.
        let ahead_ns = realtime_at(monotonic_ns + hour_ns);
        assert!(ahead_ns.abs_diff(now_ns + hour_ns) < minute_ns, "{ahead_ns} at {now_ns}");
        let ago_ns = realtime_at(monotonic_ns.saturating_sub(hour_ns));
        assert!(ago_ns.abs_diff(now_ns - hour_ns.min(monotonic_ns)) < minute_ns, "{ago_ns} at {now_ns}");
    }
}
