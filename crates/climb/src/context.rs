//! What a trial needs besides its workers: the sampler's entries, Ctrl-C, the subject's exit, the store, the progress
//! line.

use std::sync::mpsc::{Receiver, channel};

use console::masks::{mask, mask_own};
use console::signals::Interrupt;
use engine::{Clock, MonotonicClock};
use measure::trial::kind;
use measure::{Entry, Event, Purpose};
use plan::Plan;
use store::{Committed, RunWriter};
use watch::{Sampler, SamplerPlan};

use crate::progress::Progress;
use crate::subject::RunningSubject;
use crate::trial::{StopReason, TrialEnv, TrialStatus};

/// Brings a trial's entries to the store, second by second.
pub struct TrialContext<'a> {
    /// of the run, to start the subject again
    pub plan: &'a Plan,
    /// the subject
    pub subject: &'a mut RunningSubject,
    /// where entries are kept
    pub writer: &'a RunWriter,
    /// what was committed
    pub committed: &'a Receiver<Committed>,
    /// asks for the end
    pub interrupt: &'a Interrupt,
    /// the progress line
    pub progress: &'a mut Progress,
    sampler: Option<Sampler>,
    sampled: Option<Receiver<Entry>>,
    /// one transaction per second: entries wait for their second's interval
    batch: Vec<Entry>,
}

impl<'a> TrialContext<'a> {
    /// For the next trial.
    pub fn new(
        plan: &'a Plan,
        subject: &'a mut RunningSubject,
        writer: &'a RunWriter,
        committed: &'a Receiver<Committed>,
        interrupt: &'a Interrupt,
        progress: &'a mut Progress,
    ) -> Self {
        TrialContext {
            plan,
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

/// The mark that follows the subject's end: what it printed last, where it printed anything and we saw it.
fn output_at_exit(entry: &Entry, last_output: impl FnOnce() -> Option<String>) -> Option<Entry> {
    let Entry::Event(exit) = entry else { return None };
    if exit.kind != kind::SUBJECT_EXITED {
        return None;
    }
    let text = last_output()?;
    Some(Entry::Event(Event { at_ns: exit.at_ns, kind: kind::SUBJECT_OUTPUT.to_owned(), text }))
}

impl TrialEnv for TrialContext<'_> {
    fn begin(
        &mut self,
        clock: MonotonicClock,
        realtime_zero_ns: u64,
        load_pids: Vec<u32>,
    ) -> anyhow::Result<()> {
        let (to, sampled) = channel();
        self.sampled = Some(sampled);
        self.sampler = Some(Sampler::start(SamplerPlan {
            subject_pid: self.subject.pid,
            subject_group: self.subject.group.clone(),
            load_pids,
            subject_is_here: self.subject.is_hidden_here(),
            exit: self.subject.exit,
            ticks: std::mem::take(&mut self.subject.ticks),
            zero_realtime_ns: realtime_zero_ns,
            now_ns: Box::new(move || clock.now_ns()),
            to,
        })?);
        Ok(())
    }

    fn entries(&mut self) -> Vec<Entry> {
        let Some(sampled) = &self.sampled else { return Vec::new() };
        let mut entries = Vec::new();
        for entry in sampled.try_iter() {
            let output = output_at_exit(&entry, || self.subject.last_output());
            entries.push(entry);
            entries.extend(output);
        }
        entries
    }

    fn ends(&mut self) -> Option<StopReason> {
        if self.interrupt.is_asked() {
            return Some(StopReason::Interrupted);
        }
        // The sampler marks it on the time axis, with a description.
        self.subject.has_ended().then_some(StopReason::SubjectExited)
    }

    fn tell_subject_to_end(&mut self) {
        self.subject.tell_to_end();
    }

    fn subject_exit(&mut self) -> Option<watch::Exit> {
        self.subject.ended()
    }

    fn start_subject_again(&mut self) -> anyhow::Result<()> {
        self.subject.start_again(self.plan)
    }

    fn keep(&mut self, mut entry: Entry) -> anyhow::Result<()> {
        // A server may echo what it was sent, and a subject may print its arguments.
        if let Entry::Event(event) = &mut entry {
            let is_ours = matches!(
                event.kind.as_str(),
                kind::SETTLE | kind::HOLD | kind::DRAIN | kind::RECOVERY | kind::RECOVERY_ENDS | kind::END
            );
            let masked = if is_ours { mask_own(&event.text) } else { mask(&event.text) };
            event.text = masked.into_owned();
        }
        let is_second = matches!(entry, Entry::Interval(_));
        self.batch.push(entry);
        if is_second {
            self.flush()?;
        }
        Ok(())
    }

    fn show(&mut self, standing: &TrialStatus<'_>) {
        for committed in self.committed.try_iter() {
            self.progress.take(Some(committed.trial), &committed.entries);
        }
        // A key pressed during the calibration, which has no events of its own, is recorded at the start of the next load.
        if standing.head.purpose == Purpose::Rung {
            let mark = |text| Event { at_ns: standing.now_ns, kind: kind::MARK.to_owned(), text };
            self.batch.extend(self.progress.pressed().into_iter().map(mark).map(Entry::Event));
        }
        self.progress.show(standing);
    }

    fn end(&mut self) {
        if let Some(sampler) = self.sampler.take() {
            let report = sampler.stop();
            self.subject.ticks = report.ticks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_output_follows_the_end_of_the_subject_and_nothing_else() {
        let event = |kind: &str| {
            Entry::Event(Event { at_ns: 7, kind: kind.to_owned(), text: "exit code 3".to_owned() })
        };
        let printed = || Some("fatal: no memory".to_owned());
        assert_eq!(output_at_exit(&event(kind::HOLD), printed), None);
        let Some(Entry::Event(output)) = output_at_exit(&event(kind::SUBJECT_EXITED), printed) else {
            panic!("its last output is kept")
        };
        assert_eq!((output.at_ns, output.kind.as_str()), (7, "subject output"));
        assert_eq!(output.text, "fatal: no memory");
        assert_eq!(output_at_exit(&event(kind::SUBJECT_EXITED), || None), None, "it was not started by us");
    }
}
