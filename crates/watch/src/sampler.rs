//! The sampler: one plain thread that reads the subject, this process, the machine and the tick log once per second.
//!
//! It reads at whole seconds of the trial, on an absolute schedule, so that a reading covers the same second as the
//! bots' interval. It also reads once at its start and once when it is stopped, since CPU over a hold is the difference
//! between two readings. Everything is sent as `Entry` into one channel; it never waits for a receiver.
//! Units: `at_ns` on the trial's clock, which the caller provides as a closure.

mod activity;
mod disturbance;
mod followed;
mod placement;
mod thread_names;

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use measure::trial::kind;
use measure::{Entry, Event, MachineMetric, ProcessMetric, Reading, Sample};

use crate::control_group::ControlGroup;
use crate::cores::AllowedCores;
use crate::process::{ProcessReading, ProcessTree};
use crate::realtime::Realtime;
use crate::subject::ExitWatch;
use crate::threads::thread_cpu_s;
use crate::tick_feed::TickFeeds;
use crate::watched::Watched;
use disturbance::{CpuTimes, Disturbances, realtime_ns};
use followed::{Followed, Now};

/// What is sampled.
pub struct SamplerPlan {
    /// the subject's process, where it is known; its children belong to it
    pub subject_pid: Option<u32>,
    /// its control group, where it is that which is watched
    pub subject_group: Option<ControlGroup>,
    /// the subject runs on this machine, whether its process is known or not. If it does and is not known, its CPU
    /// cannot be told from that of other programs, so those are not reported
    pub subject_is_here: bool,
    /// further processes of this machine that are neither the subject nor others: they make the load
    pub load_pids: Vec<u32>,
    /// tells of the subject's end; it becomes an event within a quarter of a second
    pub exit: Option<ExitWatch>,
    /// where its ticks are read
    pub ticks: TickFeeds,
    /// realtime at the trial's 0, ns since the epoch; it lays the log's seconds onto the trial's clock
    pub zero_realtime_ns: u64,
    /// ns since the start of the trial
    pub now_ns: Box<dyn Fn() -> u64 + Send>,
    /// where the entries go; when the receiver is gone the sampler just continues until it is stopped
    pub to: Sender<Entry>,
}

/// The running thread. Dropped without `stop`, it ends by itself at once.
#[derive(Debug)]
pub struct Sampler {
    stop: SyncSender<()>,
    thread: JoinHandle<SamplerReport>,
}

/// What a sampler hands back.
#[derive(Debug)]
pub struct SamplerReport {
    /// where ticks are read, to be followed on in the next trial
    pub ticks: TickFeeds,
    /// how the subject ended, when it did
    pub exit: Option<crate::subject::Exit>,
    /// CPU time that sampling took
    pub cost_cpu_s: f64,
    /// how many times was sampled
    pub samplings: u64,
}

const SECOND_NS: u64 = 1_000_000_000;
/// How often it is looked whether the trial's clock has begun.
const LOOKS_EVERY: Duration = Duration::from_millis(1);
/// How often it is looked whether the subject still lives.
const EXIT_POLL_NS: u64 = SECOND_NS / 4;
/// Affinity and quota change seldom, and asking for them looks at every thread.
const CORES_EVERY: u64 = 10;
/// A difference over less than this says nothing about a second.
const SHORTEST_DIFFERENCE_NS: u64 = SECOND_NS / 2;

impl Sampler {
    /// Starts sampling; the first readings are made at once, or when the trial's clock begins. Errors: no thread could be started.
    pub fn start(plan: SamplerPlan) -> io::Result<Self> {
        // Room for one message: stopping never blocks, and dropping the sender stops it too.
        let (stop, stopped) = sync_channel(1);
        let thread = thread::Builder::new().name("sampler".to_owned()).spawn(move || {
            // The trial's clock may begin a moment later: until then it stands, and would seem to be set beside realtime.
            while (plan.now_ns)() == 0 {
                thread::sleep(LOOKS_EVERY);
            }
            Sampling::new(plan).run(&stopped)
        })?;
        Ok(Sampler { stop, thread })
    }

    /// Makes the last readings, stops, and hands back what it holds.
    pub fn stop(self) -> SamplerReport {
        let _ = self.stop.try_send(());
        match self.thread.join() {
            Ok(report) => report,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl fmt::Debug for SamplerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SamplerPlan").field("subject_pid", &self.subject_pid).finish_non_exhaustive()
    }
}

struct Sampling {
    plan: SamplerPlan,
    subject: Option<Watched>,
    own: Option<ProcessTree>,
    disturbances: Disturbances,
    /// ns since the epoch
    realtime_ns: fn() -> u64,
    realtime: Realtime,
    followed: Vec<Followed>,
    /// see `TickFeeds::names`
    names: Vec<String>,
    subject_cores: Option<AllowedCores>,
    own_cores: AllowedCores,
    samplings: u64,
    last_disturbance_ns: Option<u64>,
    exit: Option<crate::subject::Exit>,
    began_ns: u64,
}

impl Sampling {
    fn new(plan: SamplerPlan) -> Self {
        Self::with_clock(plan, realtime_ns)
    }

    fn with_clock(mut plan: SamplerPlan, realtime_ns: fn() -> u64) -> Self {
        let ticks = std::mem::take(&mut plan.ticks);
        let names = ticks.names.clone();
        let followed = Followed::all(ticks, plan.zero_realtime_ns, realtime_ns() / 1_000_000);
        let is_known = plan.subject_pid.is_some() || plan.subject_group.is_some();
        let subject = Watched::find(plan.subject_pid, plan.subject_group.clone());
        let sampling = Sampling {
            realtime_ns,
            realtime: Realtime::compare(&plan.now_ns, realtime_ns),
            followed,
            names,
            subject,
            own: ProcessTree::own().ok(),
            disturbances: Disturbances::new(!plan.subject_is_here || is_known, &plan.load_pids),
            subject_cores: None,
            own_cores: AllowedCores::own(),
            samplings: 0,
            last_disturbance_ns: None,
            exit: None,
            began_ns: (plan.now_ns)(),
            plan,
        };
        for name in &sampling.names {
            sampling.tell(kind::TICK_SOURCE, name.clone());
        }
        sampling
    }

    fn run(mut self, stopped: &Receiver<()>) -> SamplerReport {
        let begin_s = thread_cpu_s();
        self.sample(false);
        let mut due_ns: VecDeque<u64> = VecDeque::new();
        let mut look_ns = 0;
        loop {
            let now_ns = (self.plan.now_ns)();
            if due_ns.is_empty() {
                // Missed readings are not made up for: they would be read at the wrong second.
                let next = now_ns / SECOND_NS * SECOND_NS + SECOND_NS;
                due_ns.extend((1..=4).map(|quarter| next - SECOND_NS + quarter * EXIT_POLL_NS));
                due_ns.retain(|&due| due > now_ns);
            }
            let Some(&due) = due_ns.front() else { continue };
            // Threads are looked at in between.
            let (due, is_look) = if look_ns < due { (look_ns, true) } else { (due, false) };
            match stopped.recv_timeout(Duration::from_nanos(due.saturating_sub(now_ns))) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            if (self.plan.now_ns)() < due {
                continue;
            }
            if is_look {
                self.disturbances.look();
                look_ns = (self.plan.now_ns)() + self.disturbances.look_gap_ns();
                continue;
            }
            due_ns.pop_front();
            self.look_for_end();
            if due.is_multiple_of(SECOND_NS) {
                self.sample(false);
            } else {
                // Cheap, and the end of a trial waits for the last entry of its hold.
                self.follow_ticks(false);
            }
        }
        self.look_for_end();
        self.sample(true);
        SamplerReport {
            ticks: TickFeeds {
                names: self.names,
                feeds: self.followed.into_iter().map(Followed::into_source).collect(),
            },
            exit: self.exit,
            cost_cpu_s: thread_cpu_s() - begin_s,
            samplings: self.samplings,
        }
    }

    fn look_for_end(&mut self) {
        if self.exit.is_some() {
            return;
        }
        if let Some(exit) = self.plan.exit.and_then(|watch| watch.peek()) {
            self.exit = Some(exit);
            self.tell(kind::SUBJECT_EXITED, exit.to_string());
        }
    }

    fn sample(&mut self, is_last: bool) {
        if self.samplings.is_multiple_of(CORES_EVERY) {
            self.own_cores = AllowedCores::own();
            self.subject_cores = self.subject.as_ref().and_then(Watched::cores).or(self.subject_cores);
        }
        self.samplings += 1;
        let mut cpu = CpuTimes::default();
        if let Some(reading) = self.subject.as_mut().and_then(Watched::read) {
            cpu.subject_s = Some(reading.cpu_s);
            self.send_process(Reading::Subject, &reading, self.subject_cores);
        }
        if let Some(reading) = self.own.as_mut().and_then(ProcessTree::read) {
            cpu.own_s = reading.cpu_s;
            self.send_process(Reading::Worker, &reading, Some(self.own_cores));
        }
        self.sample_disturbances(cpu);
        self.compare_clocks();
        self.follow_ticks(is_last);
    }

    fn send_process(
        &self,
        of: fn(ProcessMetric) -> Reading,
        reading: &ProcessReading,
        cores: Option<AllowedCores>,
    ) {
        let at_ns = (self.plan.now_ns)();
        let send = |name, value| self.send(Entry::Sample(Sample { at_ns, what: of(name), value }));
        send(ProcessMetric::CpuTime, reading.cpu_s);
        send(ProcessMetric::Rss, reading.rss_bytes as f64);
        send(ProcessMetric::Threads, reading.thread_count as f64);
        if let Some(fds) = reading.fds {
            send(ProcessMetric::Fds, fds as f64);
        }
        if let Some(cores) = cores {
            send(ProcessMetric::AllowedCores, cores.cores());
        }
    }

    fn sample_disturbances(&mut self, cpu: CpuTimes) {
        let at_ns = (self.plan.now_ns)();
        if self
            .last_disturbance_ns
            .is_some_and(|before_ns| at_ns.saturating_sub(before_ns) < SHORTEST_DIFFERENCE_NS)
        {
            return;
        }
        self.last_disturbance_ns = Some(at_ns);
        let now_ns = &self.plan.now_ns;
        for (what, value) in self.disturbances.read(self.subject.as_ref(), cpu, now_ns) {
            self.send(Entry::Sample(Sample { at_ns, what, value }));
        }
        for service in self.disturbances.new_services() {
            self.tell(kind::SERVICE, service);
        }
    }

    /// Reports when the realtime clock was set, and reads the tick log's times by the current clock.
    fn compare_clocks(&mut self) {
        let now = Realtime::compare(&self.plan.now_ns, self.realtime_ns);
        let before = std::mem::replace(&mut self.realtime, now);
        let Some(step_ns) = now.step_since(&before) else { return };
        let at_ns = (self.plan.now_ns)();
        self.followed.iter_mut().for_each(|followed| followed.step(step_ns, at_ns));
        let what = Reading::Machine(MachineMetric::ClockStep);
        self.send(Entry::Sample(Sample { at_ns, what, value: step_ns as f64 / 1e6 }));
        let (step_s, way) =
            (step_ns.unsigned_abs() as f64 / 1e9, if step_ns < 0 { "back" } else { "forward" });
        self.tell(
            "clock",
            format!(
                "this machine's clock was set {way} by {step_s:.2} s; the trial is timed by another clock, and the \
                 tick log's times are read by the new one from here on"
            ),
        );
    }

    fn follow_ticks(&mut self, is_last: bool) {
        let now_ns = (self.plan.now_ns)();
        let now =
            Now { realtime_ms: (self.realtime_ns)() / 1_000_000, now_ns, began_ns: self.began_ns, is_last };
        let to = &self.plan.to;
        for followed in &mut self.followed {
            // The receiver is gone only if the trial is already over.
            followed.read(now, &|entry| drop(to.send(entry)));
        }
    }

    fn tell(&self, kind: &str, text: String) {
        let at_ns = (self.plan.now_ns)();
        self.send(Entry::Event(Event { at_ns, kind: kind.to_owned(), text }));
    }

    fn send(&self, entry: Entry) {
        // The receiver is gone only if the trial is already over.
        let _ = self.plan.to.send(entry);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use super::*;
    use crate::subject::{Started, shell};
    use crate::tick_feed::{NamedFeed, TickFeed};
    use crate::tick_log::TickLog;

    fn plan(to: Sender<Entry>, begin: Instant) -> SamplerPlan {
        SamplerPlan {
            subject_pid: None,
            subject_group: None,
            load_pids: Vec::new(),
            subject_is_here: true,
            exit: None,
            ticks: TickFeeds::default(),
            zero_realtime_ns: realtime_ns(),
            now_ns: Box::new(move || begin.elapsed().as_nanos() as u64),
            to,
        }
    }

    #[test]
    fn there_is_a_reading_at_the_start_at_every_second_and_at_the_stop() {
        let subject = Started::start(shell("exec sleep 60"), "sleep").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        let now_ms = realtime_ns() / 1_000_000;
        let text = |at_ms: u64| {
            format!(
                "{{\"time\":{at_ms},\"title\":\"stepladder\",\"from_ms\":{},\"to_ms\":{at_ms},\"on_time\":60,\"sockets\":4}}\n",
                at_ms - 1_000
            )
        };
        std::fs::write(&path, text(now_ms) + &text(now_ms + 1_000)).unwrap();
        let (to, from) = channel();
        let begin = Instant::now();
        let sampler = Sampler::start(SamplerPlan {
            subject_pid: Some(subject.pid()),
            exit: Some(subject.exit_watch()),
            ticks: TickFeed::from(TickLog::from_begin(&path, 60.0)).into(),
            zero_realtime_ns: now_ms * 1_000_000,
            ..plan(to, begin)
        })
        .unwrap();
        thread::sleep(Duration::from_millis(2_300));
        let mut report = sampler.stop();
        let entries: Vec<Entry> = from.iter().collect();
        let samples: Vec<&Sample> = entries
            .iter()
            .filter_map(|entry| if let Entry::Sample(sample) = entry { Some(sample) } else { None })
            .collect();
        let cpu: Vec<u64> = samples
            .iter()
            .filter(|sample| sample.what == Reading::Subject(ProcessMetric::CpuTime))
            .map(|sample| sample.at_ns)
            .collect();
        assert!(cpu.len() >= 3 && cpu.len() as u64 == report.samplings, "{cpu:?}");
        assert!(cpu[0] < SECOND_NS && cpu[1] >= SECOND_NS);
        let names: BTreeSet<_> = samples.iter().map(|sample| sample.what.texts()).collect();
        for name in [
            ("subject", "rss_bytes"),
            ("subject", "fds"),
            ("subject", "allowed_cores"),
            ("subject", "waiting_share_max"),
            ("worker", "cpu_s"),
            ("machine", "steal_share_max"),
            ("machine", "others_cores"),
        ] {
            assert!(names.contains(&name), "{name:?} of {names:?}");
        }
        assert!(names.contains(&("machine", "steal_share")) && names.contains(&("subject", "sockets")));
        let ticks: Vec<_> = entries
            .iter()
            .filter_map(|entry| if let Entry::Ticks(ticks) = entry { Some(ticks) } else { None })
            .collect();
        assert_eq!(ticks.len(), 1, "the second that began before the trial is not one of it");
        assert_eq!((ticks[0].from_ns, ticks[0].to_ns, ticks[0].counts.on_time), (0, SECOND_NS, 60));
        assert!(report.exit.is_none() && report.ticks.judged().is_some());
        subject.stop();
    }

    #[test]
    fn a_trial_whose_clock_begins_later_is_sampled_from_then_on_and_no_clock_was_set() {
        let (to, from) = channel();
        let zero = Instant::now() + Duration::from_millis(300);
        let now_ns = move || Instant::now().saturating_duration_since(zero).as_nanos() as u64;
        let sampler =
            Sampler::start(SamplerPlan { now_ns: Box::new(now_ns), ..plan(to, Instant::now()) }).unwrap();
        std::thread::sleep(Duration::from_millis(1_500));
        sampler.stop();
        let told: Vec<Entry> = from.iter().collect();
        let events = told.iter().filter(|entry| matches!(entry, Entry::Event(_)));
        assert_eq!(events.collect::<Vec<_>>(), Vec::<&Entry>::new());
        assert!(told.iter().any(|entry| matches!(entry, Entry::Sample(_))), "it is sampled");
    }

    #[test]
    fn a_clock_that_is_set_back_in_a_trial_is_told_and_moves_none_of_its_seconds() {
        static NOW_NS: AtomicU64 = AtomicU64::new(0);
        static REALTIME_NS: AtomicU64 = AtomicU64::new(ZERO_NS);
        const ZERO_NS: u64 = 1_700_000_000 * SECOND_NS;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        let mut log = std::fs::File::create(&path).unwrap();
        let (to, from) = channel();
        let plan = SamplerPlan {
            ticks: TickFeed::from(TickLog::from_begin(&path, 60.0)).into(),
            zero_realtime_ns: ZERO_NS,
            now_ns: Box::new(|| NOW_NS.load(Relaxed)),
            ..plan(to, Instant::now())
        };
        let mut sampling = Sampling::with_clock(plan, || REALTIME_NS.load(Relaxed));
        for second in 1..=6u64 {
            // From its third second on the clock is 40 s behind.
            let zero_ns = if second < 3 { ZERO_NS } else { ZERO_NS - 40 * SECOND_NS };
            let stamp_ms = (zero_ns + second * SECOND_NS) / 1_000_000;
            writeln!(log, r#"{{"time":{stamp_ms},"title":"tickOnTime","count":{}}}"#, 60 + second).unwrap();
            NOW_NS.store(second * SECOND_NS + SECOND_NS / 5, Relaxed);
            REALTIME_NS.store(zero_ns + second * SECOND_NS + SECOND_NS / 5, Relaxed);
            sampling.sample(second == 6);
        }
        drop(sampling);
        let (mut told, mut steps_ms, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
        for entry in from.iter() {
            match entry {
                Entry::Event(event) => told.push(event.kind),
                Entry::Sample(sample) if sample.what == Reading::Machine(MachineMetric::ClockStep) => {
                    steps_ms.push(sample.value)
                }
                Entry::Ticks(ticks) => seconds.push((ticks.to_ns / SECOND_NS, ticks.counts.on_time)),
                _ => {}
            }
        }
        assert_eq!((told, steps_ms), (vec!["clock".to_owned()], vec![-40_000.0]));
        assert_eq!(seconds, (1..=6).map(|second| (second, 60 + second)).collect::<Vec<_>>());
    }

    #[test]
    fn of_several_sources_all_are_announced_and_only_the_first_is_the_servers_word() {
        let folder = tempfile::tempdir().unwrap();
        let now_ms = realtime_ns() / 1_000_000;
        let source = |name: &str, compared: bool, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let compared_as = compared.then(|| format!("log={name}"));
            NamedFeed::new(compared_as, TickLog::from_begin(&path, 60.0).into())
        };
        let line = |on_time: u32| {
            let (from_ms, at_ms) = (now_ms, now_ms + 1_000);
            format!(
                "{{\"time\":{at_ms},\"title\":\"stepladder\",\"from_ms\":{from_ms},\"to_ms\":{at_ms},\"on_time\":{on_time},\"sockets\":4}}\n"
            )
        };
        let ticks = TickFeeds {
            names: ["log=a", "log=b", "log=c"].map(str::to_owned).to_vec(),
            feeds: vec![
                source("a", false, line(60)),
                source("b", true, line(59)),
                source("c", true, "no line\n".to_owned()),
            ],
        };
        let (to, from) = channel();
        let plan = SamplerPlan { ticks, zero_realtime_ns: now_ms * 1_000_000, ..plan(to, Instant::now()) };
        let mut sampling = Sampling::new(plan);
        sampling.sample(true);
        drop(sampling);
        let (mut announced, mut told, mut ticks, mut gauges) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for entry in from.iter() {
            match entry {
                Entry::Event(event) if event.kind == kind::TICK_SOURCE => announced.push(event.text),
                Entry::Event(event) => told.push((event.kind, event.text)),
                Entry::Ticks(second) => ticks.push((second.source, second.counts.on_time)),
                Entry::Sample(sample) => {
                    gauges += usize::from(sample.what.texts() == ("subject", "sockets"));
                }
                _ => {}
            }
        }
        assert_eq!(announced, ["log=a", "log=b", "log=c"]);
        assert_eq!(ticks, [("log".to_owned(), 60), ("also log=b".to_owned(), 59)]);
        assert_eq!(gauges, 1, "once, not by each source");
        assert!(
            told.iter().all(|(kind, text)| kind == kind::TICK_LOG && text.starts_with("log=c: ")),
            "{told:?}"
        );
    }

    #[test]
    fn the_end_of_the_subject_becomes_an_event() {
        let subject = Started::start(shell("sleep 0.2; exit 4"), "sleep").unwrap();
        let (to, from) = channel();
        let watch = Some(subject.exit_watch());
        let sampler = Sampler::start(SamplerPlan { exit: watch, ..plan(to, Instant::now()) }).unwrap();
        let event = from
            .iter()
            .find_map(|entry| if let Entry::Event(event) = entry { Some(event) } else { None })
            .unwrap();
        assert_eq!((event.kind.as_str(), event.text.as_str()), (kind::SUBJECT_EXITED, "exit code 4"));
        assert_eq!(sampler.stop().exit.unwrap().code, Some(4));
    }

    #[test]
    fn a_sampler_that_nobody_stops_ends_with_its_owner() {
        let (to, from) = channel();
        drop(Sampler::start(plan(to, Instant::now())).unwrap());
        assert!(from.iter().count() > 0, "the channel ends because the thread did");
    }

    /// Run by hand: `cargo test --release -p stepladder-watch -- --ignored --nocapture sampling_costs`.
    #[test]
    #[ignore = "it measures, and needs 40,000 descriptors"]
    fn sampling_costs_less_than_a_hundredth_of_a_core_with_forty_thousand_descriptors() {
        let (ready, is_ready) = channel();
        let hold: Vec<_> = (0..4)
            .map(|_| {
                let ready = ready.clone();
                let (done, is_done) = channel::<()>();
                thread::spawn(move || {
                    // SAFETY: plain numbers; only this thread's own new table is emptied.
                    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
                    let files: Vec<_> =
                        (0..10_000).map_while(|_| std::fs::File::open("/dev/null").ok()).collect();
                    ready.send(files.len()).unwrap();
                    let _ = is_done.recv();
                });
                done
            })
            .collect();
        let held: usize = (0..4).map(|_| is_ready.recv().unwrap()).sum();
        let (to, from) = channel();
        let sampler =
            Sampler::start(SamplerPlan { subject_pid: Some(std::process::id()), ..plan(to, Instant::now()) })
                .unwrap();
        thread::sleep(Duration::from_millis(10_500));
        let report = sampler.stop();
        drop(hold);
        let seen = from.iter().filter_map(|entry| match entry {
            Entry::Sample(sample) if sample.what == Reading::Subject(ProcessMetric::Fds) => {
                Some(sample.value)
            }
            _ => None,
        });
        let seen = seen.fold(0.0, f64::max);
        let share = report.cost_cpu_s / 10.5;
        println!("{held} descriptors held, {seen} seen, {:.3} % of a core", share * 100.0);
        assert!(seen >= held as f64 && share < 0.01);
    }
}
