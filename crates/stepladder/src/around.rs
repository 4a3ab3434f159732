//! What surrounds a trial's workers: the sampler's entries, Ctrl-C, the subject's end, the store, the progress line.

use std::sync::mpsc::{Receiver, channel};

use engine::{Clock, MonotonicClock};
use measure::Entry;
use store::{Committed, RunWriter};
use watch::{Link, LinkKind, Sampler, SamplerPlan};

use crate::progress::Progress;
use crate::signals::Interrupt;
use crate::trial::{Ending, Standing, Surroundings};
use crate::under_test::UnderTest;

/// Brings a trial's entries to the store, second by second.
pub struct Around<'a> {
    /// the subject
    pub subject: &'a mut UnderTest,
    /// where entries are kept
    pub writer: &'a RunWriter,
    /// what was committed
    pub committed: &'a Receiver<Committed>,
    /// the user's wish to end
    pub interrupt: &'a Interrupt,
    /// the progress line
    pub progress: &'a mut Progress,
    sampler: Option<Sampler>,
    sampled: Option<Receiver<Entry>>,
    /// one transaction per second: entries wait for their second's interval
    batch: Vec<Entry>,
}

impl<'a> Around<'a> {
    /// Surroundings for the next trial.
    pub fn new(
        subject: &'a mut UnderTest,
        writer: &'a RunWriter,
        committed: &'a Receiver<Committed>,
        interrupt: &'a Interrupt,
        progress: &'a mut Progress,
    ) -> Self {
        Around {
            subject,
            writer,
            committed,
            interrupt,
            progress,
            sampler: None,
            sampled: None,
            batch: Vec::new(),
        }
    }

    /// Commits what waits.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        if !self.batch.is_empty() {
            self.writer.append(std::mem::take(&mut self.batch))?;
        }
        Ok(())
    }
}

impl Surroundings for Around<'_> {
    fn begin(&mut self, clock: MonotonicClock, realtime_zero_ns: u64) -> anyhow::Result<()> {
        let (to, sampled) = channel();
        self.sampled = Some(sampled);
        self.sampler = Some(Sampler::start(SamplerPlan {
            subject_pid: self.subject.pid,
            // Where the way there cannot be found it is taken for here, and other programs are not blamed.
            subject_is_here: Link::to(self.subject.address)
                .map_or(true, |link| link.kind == LinkKind::Loopback),
            exit: self.subject.exit,
            tick_log: self.subject.tick_log.take(),
            zero_realtime_ns: realtime_zero_ns,
            now_ns: Box::new(move || clock.now_ns()),
            to,
        })?);
        Ok(())
    }

    fn entries(&mut self) -> Vec<Entry> {
        self.sampled.as_ref().map(|sampled| sampled.try_iter().collect()).unwrap_or_default()
    }

    fn ends(&mut self) -> Option<Ending> {
        if self.interrupt.is_asked() {
            return Some(Ending::Interrupted);
        }
        // The sampler marks it on the time axis, with the words for it.
        self.subject.has_ended().then_some(Ending::SubjectExited)
    }

    fn keep(&mut self, entry: Entry) -> anyhow::Result<()> {
        let is_second = matches!(entry, Entry::Interval(_));
        self.batch.push(entry);
        if is_second {
            self.flush()?;
        }
        Ok(())
    }

    fn show(&mut self, standing: &Standing<'_>) {
        for committed in self.committed.try_iter() {
            self.progress.committed(&committed.entries);
        }
        self.progress.show(standing);
    }

    fn end(&mut self) {
        if let Some(sampler) = self.sampler.take() {
            let report = sampler.stop();
            self.subject.tick_log = report.tick_log;
        }
    }
}
