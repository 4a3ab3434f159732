//! The load of one trial, whose server an agent watches meanwhile: readings of both are made one.
//!
//! Whatever becomes of the one that watches, the load goes on and is whole.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use climb::trial::{Counts, Load, Start};
use engine::{Clock as _, Collector, MonotonicClock};
use measure::trial::kind;
use measure::{Entry, Event, Sample};

use super::{Taken, Watchers};
use crate::both::{Both, Side};
use crate::clocks::Offset;
use crate::coordinator::{ANSWERS_WITHIN, asked, compare_clocks, lock, reason};
use crate::messages::{Answer, Ask, Watch};

/// How long its last readings may take.
const ENDS_WITHIN: Duration = Duration::from_secs(4);
const LOOKS_EVERY: Duration = Duration::from_millis(10);

/// Who watches a trial.
struct Present {
    taken: Taken,
    offset: Offset,
    /// why the server is not there any more
    gone: Option<String>,
}

/// See the head.
pub(super) struct WatchedLoad {
    load: Box<dyn Load>,
    watchers: Arc<Watchers>,
    trial: u32,
    /// who watches, by which clock; or why none does
    watcher: Result<Present, String>,
    both: Both,
    clock: Option<MonotonicClock>,
    /// what there is to say of it, once
    news: Vec<Event>,
    is_over: bool,
    has_ended: bool,
}

impl WatchedLoad {
    pub(super) fn prepare(load: Box<dyn Load>, watchers: &Arc<Watchers>) -> WatchedLoad {
        let watchers = watchers.clone();
        let watcher = watchers.runtime.block_on(watcher(&watchers));
        let trial = watchers.trials.fetch_add(1, Relaxed);
        let is_read_there =
            watcher.as_ref().is_ok_and(|present| !watchers.makes_load(&present.taken.hello.boot));
        let both = Both::new(is_read_there);
        if let Ok(present) = &watcher {
            lock(&watchers.heard).begin(trial, present.gone.is_some());
        }
        let mut load = WatchedLoad {
            load,
            watchers,
            trial,
            watcher,
            both,
            clock: None,
            news: Vec::new(),
            is_over: false,
            has_ended: false,
        };
        load.say_who();
        load
    }

    fn say_who(&mut self) {
        match &self.watcher {
            Ok(Present { gone: Some(why), .. }) => {
                let text = format!("gone ({why})");
                self.is_over = true;
                self.tell(0, kind::SUBJECT_EXITED, text);
            }
            Ok(Present { taken: Taken { hello, found, .. }, offset, .. }) => {
                let (name, host, pid, process) = (&hello.name, &hello.host, found.pid, &found.name);
                let within_us = offset.bound_ns.div_ceil(1_000);
                let text =
                    format!("{name} on {host}: process {pid} ({process}), clock within {within_us} µs");
                self.tell(0, kind::WATCHER, text);
            }
            Err(why) => {
                let text = format!("the server was not watched: {why}");
                self.is_over = true;
                self.lost(0, text);
            }
        }
    }

    fn tell(&mut self, at_ns: u64, kind: &str, text: String) {
        self.news.push(Event { at_ns, kind: kind.to_owned(), text });
    }

    fn lost(&mut self, at_ns: u64, text: String) {
        let has_judged = lock(&self.watchers.wanted).as_ref().is_some_and(super::Wanted::has_judged);
        if has_judged {
            let why = "no agent on the server's machine reads its ticks from here on".to_owned();
            self.tell(at_ns, kind::TICKS_LOST, why);
        }
        self.tell(at_ns, kind::WATCHER_LOST, text);
    }

    /// Takes what came from the one that watches, and notices that it is lost.
    fn hear(&mut self) -> (Vec<Sample>, Vec<Entry>) {
        let Ok(present) = &self.watcher else { return Default::default() };
        let name = present.taken.hello.name.clone();
        let (samples, entries, lost) = {
            let mut heard = lock(&self.watchers.heard);
            let samples = std::mem::take(&mut heard.samples);
            (samples, std::mem::take(&mut heard.entries), heard.lost.clone())
        };
        if let Some(why) = lost.filter(|_| !self.is_over) {
            self.is_over = true;
            let at_ns = self.clock.map_or(0, |clock| clock.now_ns());
            self.lost(at_ns, format!("the server was not watched to the end: agent {name}: {why}"));
        }
        (samples, entries)
    }
}

/// Who watches the next trial.
async fn watcher(watchers: &Watchers) -> Result<Present, String> {
    match present(watchers).await {
        // It ended between two trials.
        Err(error) => {
            lock(&watchers.heard).end_with(&error);
            present(watchers).await
        }
        present => present,
    }
}

/// Errors: it is not heard of.
async fn present(watchers: &Watchers) -> Result<Present, String> {
    let mut taken = watchers.present().await?;
    let link = &watchers.inner.link;
    let offset = compare_clocks(link, &taken.hello).await.map_err(|error| error.to_string())?;
    let sought = lock(&watchers.wanted).as_ref().map(|wanted| wanted.sought).ok_or("it is not needed")?;
    let answer = asked(link, &taken.hello, &Ask::Find(sought), ANSWERS_WITHIN).await;
    let gone = match answer.map_err(|error| error.to_string())? {
        Answer::Found(found) => {
            // One that was started again has another process.
            taken.found = super::plain(found);
            watchers.place(&taken);
            None
        }
        other => Some(reason(other)),
    };
    Ok(Present { taken, offset, gone })
}

impl Load for WatchedLoad {
    fn lead_ns(&self) -> u64 {
        self.load.lead_ns()
    }

    fn ahead_ns(&self) -> u64 {
        self.load.ahead_ns()
    }

    fn can_announce(&self) -> bool {
        self.load.can_announce()
    }

    fn begin(&mut self, start: Start) -> anyhow::Result<Collector> {
        let clock = start.clock;
        self.clock = Some(clock);
        let collector = self.load.begin(start)?;
        if let Ok(Present { taken, offset, gone: None }) = &self.watcher {
            let zero_ns = offset.theirs(clock.origin_ns());
            let load_pids = self.watchers.load_pids(&taken.hello);
            let ask = Ask::Watch(Watch { trial: self.trial, zero_ns, load_pids });
            let (watchers, hello) = (self.watchers.clone(), taken.hello.clone());
            // The load does not wait for it.
            self.watchers.runtime.spawn(async move {
                let why = match asked(&watchers.inner.link, &hello, &ask, ANSWERS_WITHIN).await {
                    Ok(Answer::Found(_)) => return,
                    Ok(other) => reason(other),
                    Err(error) => error.to_string(),
                };
                lock(&watchers.heard).lose(&why);
            });
        }
        Ok(collector)
    }

    fn counts(&self) -> Counts {
        self.load.counts()
    }

    fn pids(&self) -> Vec<u32> {
        let here = &self.watchers.inner.place;
        let watched = self.watchers.inner.watched_pids(&here.boot, &here.pids);
        self.load.pids().into_iter().chain(watched).collect()
    }

    fn merge(&mut self, sampled: Vec<Entry>) -> Vec<Entry> {
        let mut own = Vec::new();
        let mut merged = Vec::new();
        for entry in self.load.merge(sampled) {
            match entry {
                Entry::Sample(sample) => own.push(sample),
                other => merged.push(other),
            }
        }
        let (theirs, entries) = self.hear();
        merged.extend(entries);
        merged.extend(self.news.drain(..).map(Entry::Event));
        let mut samples = self.both.take(Side::Load, own);
        samples.extend(self.both.take(Side::Server, theirs));
        if self.is_over {
            self.both.ends(Side::Server);
        }
        samples.extend(if self.has_ended { self.both.rest() } else { self.both.ready() });
        merged.extend(samples.into_iter().map(Entry::Sample));
        merged
    }

    fn end(&mut self) {
        self.load.end();
        self.has_ended = true;
        if let Ok(Present { taken, gone: None, .. }) = &self.watcher {
            self.watchers.end_watch(taken);
        }
        lock(&self.watchers.heard).trial = None;
    }
}

impl Watchers {
    /// Waits for the last readings.
    fn end_watch(&self, taken: &Taken) {
        let is_done = || lock(&self.heard).is_done;
        if !is_done() {
            let ask = asked(&self.inner.link, &taken.hello, &Ask::EndWatch, ENDS_WITHIN);
            match self.runtime.block_on(ask) {
                Ok(Answer::Watched(rate_hz)) => {
                    let mut heard = lock(&self.heard);
                    heard.rate_hz = rate_hz.filter(|hz| *hz > 0.0).or(heard.rate_hz);
                }
                Ok(other) => lock(&self.heard).lose(&reason(other)),
                Err(error) => lock(&self.heard).lose(&error.to_string()),
            }
        }
        let began = Instant::now();
        while began.elapsed() < ENDS_WITHIN && !is_done() {
            std::thread::sleep(LOOKS_EVERY);
        }
    }
}
