//! An agent's share of one trial: worker threads, a sampler, and a thread that merges their seconds and hands them on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Context as _;
use climb::trial::{Counts, Threads, marks};
use engine::collector::FromWorker;
use engine::{Clock as _, Collector, INSTANTS, MonotonicClock, PairingLock, Progress, Shared, Timeline};
use measure::ledger::PackedPart;
use measure::{Entry, Event, LedgerPart, ProcessMetric, Reading};
use tokio::sync::mpsc::UnboundedSender;
use watch::tick_feed::TickFeeds;
use watch::{Sampler, SamplerPlan};

use super::prepare::Prepared;
use crate::limits::{Limits, sent};
use crate::messages::{Announcement, Begin, OneSample, State, What, pack};

/// A turn of pairing lasts so long at least; more pairs fit into a longer one, and others wait longer.
const TURN: Duration = Duration::from_millis(10);
const LOOKS_EVERY: Duration = Duration::from_millis(1);
/// A piece of a ledger: well below what a broker takes at once.
const PIECE_BYTES: usize = 256 * 1024;
/// A worker may end so long after it must.
const STOPS_WITHIN_NS: u64 = 5_000_000_000;

/// One trial, while it is played.
pub(super) struct Playing {
    trial: u32,
    clock: MonotonicClock,
    timeline: Arc<Timeline>,
    shared: Shared,
    progresses: Vec<Arc<Progress>>,
    lock: PairingLock,
    is_over: Arc<AtomicBool>,
}

impl Playing {
    /// Starts the workers; the trial's clock reads 0 at the instant that was said. Errors: a thread could not be started.
    pub(super) fn begin(
        ready: Prepared,
        begin: &Begin,
        outbox: UnboundedSender<(u32, What)>,
    ) -> anyhow::Result<Playing> {
        let clock = MonotonicClock::since(begin.zero_ns);
        let shared = Shared { realtime_zero_ns: begin.realtime_zero_ns, ..Shared::default() };
        let (timeline, lock) = (shared.timeline.clone(), shared.pairing_lock.clone());
        if ready.order.in_turns {
            lock.call_back();
        }
        let (says, hears) = channel();
        let (collector, threads) =
            Threads::start(&ready.workers, &ready.target, &ready.options, (clock, &shared), &says)?;
        drop(says);
        let (to, sampled) = channel();
        let sampler = Sampler::start(SamplerPlan {
            subject_pid: None,
            subject_group: None,
            subject_is_here: false,
            load_pids: ready.order.load_pids.clone(),
            exit: None,
            ticks: TickFeeds::default(),
            zero_realtime_ns: begin.realtime_zero_ns,
            now_ns: Box::new(move || clock.now_ns()),
            to,
        })?;
        let playing = Playing {
            trial: ready.order.trial,
            clock,
            timeline: timeline.clone(),
            shared,
            progresses: threads.progresses(),
            lock,
            is_over: Arc::default(),
        };
        let mut handing = Handing {
            trial: playing.trial,
            clock,
            timeline,
            outbox,
            reads_machine: ready.order.reads_machine,
            limits: ready.limits,
            samples: Vec::new(),
            events: Vec::new(),
            ledger: Vec::new(),
        };
        let (is_over, null) = (playing.is_over.clone(), ready.null);
        std::thread::Builder::new()
            .name("collector".to_owned())
            .spawn(move || {
                handing.run(collector, &hears, &sampled);
                handing.timeline.stop_at(0);
                threads.join();
                sampler.stop();
                handing.sampled(&sampled);
                handing.end();
                climb::stop(null);
                is_over.store(true, SeqCst);
            })
            .context("no thread for the seconds")?;
        Ok(playing)
    }

    pub(super) fn trial(&self) -> u32 {
        self.trial
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(SeqCst)
    }

    /// Takes over what the coordinator has decided. Returns by how much an instant was known too late, ns.
    pub(super) fn learn(&self, announcement: &Announcement) -> u64 {
        for (elsewhere, (own, all)) in
            self.shared.met_elsewhere.iter().zip(self.shared.met.iter().zip(announcement.met))
        {
            // Of our own it may not know all yet: too few are elsewhere then, and not too many.
            elsewhere.fetch_max(all.saturating_sub(own.load(Relaxed)), Relaxed);
        }
        let instants: Result<[u64; INSTANTS], _> = announcement.instants.as_slice().try_into();
        instants.map_or(0, |instants| self.timeline.learn(instants, self.clock.now_ns()))
    }

    /// How things stand.
    pub(super) fn tell(&self, state: &mut State) {
        let Counts { open, joined, failed } = Counts::of(&self.progresses);
        (state.open, state.joined, state.failed) = (open, joined, failed);
        for (told, met) in state.met.iter_mut().zip(self.shared.met.iter()) {
            *told = met.load(Relaxed);
        }
        state.wants_to_pair = self.lock.is_wanted();
    }

    /// Pairs for a turn. Returns whether the server is in step with the pairs.
    pub(super) async fn pair(&self, is_in_step: bool) -> bool {
        self.lock.lend(is_in_step);
        tokio::time::sleep(TURN).await;
        loop {
            if let Some(is_in_step) = self.lock.call_back() {
                return is_in_step;
            }
            if self.is_over() {
                return false;
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    }

    /// Everything ends now.
    pub(super) fn stop(&self) {
        self.timeline.drain_at(0);
        self.timeline.stop_at(0);
    }
}

/// What is handed on.
struct Handing {
    trial: u32,
    clock: MonotonicClock,
    timeline: Arc<Timeline>,
    outbox: UnboundedSender<(u32, What)>,
    reads_machine: bool,
    limits: Limits,
    samples: Vec<OneSample>,
    events: Vec<Event>,
    ledger: Vec<LedgerPart>,
}

impl Handing {
    /// If the receiver is gone, the session has ended and its workers are ending.
    fn say(&self, what: What) {
        let _ = self.outbox.send((self.trial, what));
    }

    fn run(&mut self, mut collector: Collector, hears: &Receiver<FromWorker>, sampled: &Receiver<Entry>) {
        loop {
            match hears.recv_timeout(Duration::from_millis(20)) {
                Ok(FromWorker::Second { worker, interval }) => match collector.add(worker, interval) {
                    Ok(Some(mut interval)) => {
                        self.sampled(sampled);
                        let mut events = std::mem::take(&mut self.events);
                        events.extend(marks(&mut interval));
                        let broken = self.limits.broken_by(sent(&interval));
                        self.say(What::Second { interval, events });
                        if let Some(why) = broken {
                            self.say(What::Lost(why));
                            return;
                        }
                    }
                    Ok(None) => {}
                    Err(imbalance) => self.say(What::Bug(format!("the books: {imbalance}"))),
                },
                Ok(FromWorker::Ledger { part }) => self.ledger.push(*part),
                Ok(FromWorker::Done { .. }) => {
                    if collector.done() {
                        break;
                    }
                }
                Ok(FromWorker::Panicked { why, .. }) => {
                    self.say(What::Bug(why));
                    return;
                }
                Ok(FromWorker::Broke { why, .. } | FromWorker::Lost { why, .. }) => {
                    self.say(What::Lost(why));
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.say(What::Bug("the workers ended without a word".to_owned()));
                    return;
                }
            }
            if self.clock.now_ns() > self.timeline.stop_ns().saturating_add(STOPS_WITHIN_NS) {
                self.say(What::Bug("a worker did not end in time".to_owned()));
                return;
            }
        }
        for mut interval in collector.incomplete() {
            let events = marks(&mut interval);
            self.say(What::Second { interval, events });
        }
    }

    /// Takes what was sampled since the last call, and hands its readings on.
    fn sampled(&mut self, sampled: &Receiver<Entry>) {
        for entry in sampled.try_iter() {
            match entry {
                Entry::Sample(sample) => {
                    let of_machine = Reading::Worker(ProcessMetric::AllowedCores);
                    let is_ours = matches!(sample.what, Reading::Worker(_)) && sample.what != of_machine;
                    if is_ours || self.reads_machine {
                        self.samples.push(OneSample::from(&sample));
                    }
                }
                Entry::Event(event) if self.reads_machine => self.events.push(event),
                _ => {}
            }
        }
        if !self.samples.is_empty() {
            let samples = std::mem::take(&mut self.samples);
            self.say(What::Samples(samples));
        }
    }

    fn end(&mut self) {
        let parts: Vec<PackedPart> = self.ledger.drain(..).map(PackedPart::from).collect();
        if !parts.is_empty() {
            let bytes = pack(&parts);
            let pieces = bytes.len().div_ceil(PIECE_BYTES);
            for (index, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
                self.say(What::Ledger { is_last: index + 1 == pieces, bytes: piece.to_vec() });
            }
        }
        self.say(What::Done);
    }
}
