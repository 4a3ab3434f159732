//! The collector: merges the workers' seconds into the trial's seconds.
//!
//! Workers send full seconds over a channel and never block; emptied ones go back through a return channel per worker,
//! which carries memory but never data. Every merged interval must balance. A second that some worker never reported is
//! emitted at the end with the workers that did report it.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, sync_channel};

use measure::{Imbalance, Interval, LedgerPart};

use crate::worker::Handover;

/// What a worker says.
pub enum FromWorker {
    /// a full second
    Second {
        /// who
        worker: usize,
        /// what
        interval: Box<Interval>,
    },
    /// its part of the delivery ledger, once, at the end
    Ledger {
        /// what
        part: Box<LedgerPart>,
    },
    /// it has handed over everything
    Done {
        /// who
        worker: usize,
    },
    /// it, one of its bots or one of its connections panicked, which is a bug of ours. It hands over nothing further:
    /// what it counted since its last full second may contradict itself
    Panicked {
        /// who
        worker: usize,
        /// which worker, and the panic's message
        why: String,
    },
    /// an agent that played workers elsewhere hands over nothing further
    Lost {
        /// who
        worker: usize,
        /// its name, how many are left, and what happened
        why: String,
    },
    /// it could not begin or go on: a limit of this machine
    Broke {
        /// who
        worker: usize,
        /// what happened
        why: String,
    },
}

/// A worker's end of the channel.
pub struct ToCollector {
    worker: usize,
    full: Sender<FromWorker>,
    emptied: Receiver<Box<Interval>>,
}

impl Handover for ToCollector {
    fn swap(&mut self, second: &mut Box<Interval>) {
        let empty = match self.emptied.try_recv() {
            Ok(interval) => interval,
            // The collector is slow: use a little more memory rather than block the worker.
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                Box::new(Interval::new(&second.metric_names))
            }
        };
        let interval = std::mem::replace(second, empty);
        // If the collector is gone, the trial has ended and nobody receives this.
        let _ = self.full.send(FromWorker::Second { worker: self.worker, interval });
    }

    fn ledger(&mut self, part: LedgerPart) {
        let _ = self.full.send(FromWorker::Ledger { part: Box::new(part) });
    }
}

/// Merges seconds.
pub struct Collector {
    worker_count: usize,
    returns: Vec<SyncSender<Box<Interval>>>,
    pending: BTreeMap<u32, (usize, Box<Interval>)>,
    done: usize,
}

impl Collector {
    /// A collector and the workers' ends, one each.
    pub fn new(worker_count: usize, full: &Sender<FromWorker>) -> (Self, Vec<ToCollector>) {
        let mut returns = Vec::new();
        let ends = (0..worker_count)
            .map(|worker| {
                let (mailbox, emptied) = sync_channel(4);
                returns.push(mailbox);
                ToCollector { worker, full: full.clone(), emptied }
            })
            .collect();
        (Collector { worker_count, returns, pending: BTreeMap::new(), done: 0 }, ends)
    }

    /// Adds one worker's second; returns the merged one once all workers have told theirs.
    pub fn add(
        &mut self,
        worker: usize,
        mut interval: Box<Interval>,
    ) -> Result<Option<Box<Interval>>, Imbalance> {
        let index = interval.index;
        let parts = match self.pending.get_mut(&index) {
            None => {
                interval.balance()?;
                self.pending.insert(index, (1, interval));
                1
            }
            Some((parts, sum)) => {
                sum.add(&interval)?;
                *parts += 1;
                let parts = *parts;
                interval.reset(0);
                // If the mailbox is full or the worker has ended, the memory is simply freed.
                let _ = self.returns[worker].try_send(interval);
                parts
            }
        };
        if parts == self.worker_count {
            return Ok(self.pending.remove(&index).map(|(_, merged)| merged));
        }
        Ok(None)
    }

    /// A worker has handed over everything. Returns true when it was the last.
    pub fn done(&mut self) -> bool {
        self.done += 1;
        self.done == self.worker_count
    }

    /// Seconds that not all workers told, for a trial that ends without them.
    pub fn incomplete(&mut self) -> Vec<Box<Interval>> {
        std::mem::take(&mut self.pending).into_values().map(|(_, interval)| interval).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use measure::{Flow, MetricNames, Phase};

    use super::*;

    fn second(index: u32, sent: u64) -> Box<Interval> {
        let mut interval = Interval::new(&MetricNames::new(&["shot"], &[], &[], &[]));
        interval.index = index;
        interval.workers = 1;
        *interval.flow_mut(0, Phase::Hold) = Flow { offered: sent, sent, told: sent, ..Flow::default() };
        Box::new(interval)
    }

    #[test]
    fn a_second_is_told_when_every_worker_has_told_it() {
        let (full, _) = channel();
        let (mut collector, _ends) = Collector::new(2, &full);
        assert!(collector.add(0, second(0, 1)).unwrap().is_none());
        assert!(collector.add(0, second(1, 1)).unwrap().is_none());
        let merged = collector.add(1, second(0, 2)).unwrap().unwrap();
        assert_eq!((merged.index, merged.workers, merged.flows[0][2].told), (0, 2, 3));
        assert_eq!(collector.incomplete().len(), 1);
    }

    #[test]
    fn an_interval_that_does_not_add_up_is_noticed_at_once() {
        let (full, _) = channel();
        let (mut collector, _ends) = Collector::new(1, &full);
        let mut bad = second(0, 1);
        bad.flow_mut(0, Phase::Hold).sent = 2;
        assert!(collector.add(0, bad).is_err());
    }
}
