//! After an overload: only part of the load continues, so that the server's recovery can be observed.
//!
//! Open: a fixed share of each worker's requests is skipped at regular positions, so that the rest stays evenly spread.
//! Closed: the first requesters continue, the others stop sending. Planned instants do not change.

use drivers::http::Http;
use engine::BotContext;
use plan::WorkerPlan;

use super::Requests;
use super::source::Source;

/// A request of the hold that still waits for a connection so long after it is given up, as at the end of any other trial, ns.
const WAITS_MOST_NS: u64 = 8_000_000_000;

/// What of a load goes on.
pub(super) struct Recovery {
    /// `None`: there is no such time
    share: Option<f64>,
    /// requests of the stream that were planned after the hold
    planned: u64,
    first_unit: u64,
    unit_step: u64,
    /// the requesters below this number go on
    units_kept: u64,
}

impl Recovery {
    pub(super) fn of(plan: &WorkerPlan) -> Recovery {
        Recovery {
            share: plan.recovery_share,
            planned: 0,
            first_unit: plan.first_unit,
            unit_step: plan.workers as u64,
            units_kept: plan.recovery_share.map_or(u64::MAX, |share| {
                // A float turns into an integer by saturating.
                (share * plan.units_total as f64).round() as u64
            }),
        }
    }

    /// Whether the stream's next request is sent. Ask once for each, in their order.
    pub(super) fn keeps_request(&mut self, planned_ns: u64, recover_ns: u64) -> bool {
        let Some(share) = self.share.filter(|_| planned_ns >= recover_ns) else { return true };
        let kept = |count: u64| (count as f64 * share).floor();
        self.planned += 1;
        kept(self.planned) > kept(self.planned - 1)
    }

    fn keeps_unit(&self, unit: u64) -> bool {
        self.first_unit + unit * self.unit_step < self.units_kept
    }
}

impl<D: Http, S: Source<D>> Requests<D, S> {
    /// Whether a requester sends nothing more, because the load went down.
    pub(super) fn has_left(&self, bot: u32, ctx: &BotContext<'_, D>) -> bool {
        // Who reads back after all load may be any of them.
        self.stream.is_none()
            && ctx.now_ns() >= ctx.recover_ns()
            && !ctx.drains()
            && !self.recovery.keeps_unit(u64::from(bot))
    }

    /// Requests of the overload that never found a connection are given up some time after it.
    pub(super) fn give_up_the_overload(&mut self, ctx: &mut BotContext<'_, D>) {
        let recover_ns = ctx.recover_ns();
        if ctx.now_ns() < recover_ns.saturating_add(WAITS_MOST_NS) {
            return;
        }
        while self.waiting.front().is_some_and(|planned| planned.planned_ns < recover_ns)
            && let Some(planned) = self.waiting.pop_front()
        {
            self.never_sent(planned, ctx);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use plan::{HttpBots, HttpModel, HttpRequest, Scheme};

    use super::*;

    fn worker(worker: u64, share: f64) -> Recovery {
        let model = HttpModel::Closed { think_ns: 0 };
        let http = HttpBots::plain(model, vec![HttpRequest::get("/")], 1);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        Recovery::of(&WorkerPlan {
            first_unit: worker,
            workers: 3,
            units_total: 20,
            recovery_share: Some(share),
            ..WorkerPlan::alone(http.into(), 7, Scheme::Http, address)
        })
    }

    #[test]
    fn of_a_stream_a_share_goes_on_after_the_hold_and_all_before() {
        let mut recovery = worker(0, 0.4);
        let kept: Vec<u64> = (0..200).filter(|at_ns| recovery.keeps_request(*at_ns, 100)).collect();
        assert_eq!((kept.iter().filter(|at_ns| **at_ns < 100).count(), kept.len()), (100, 140));
        let gaps = kept[100..].windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().all(|gap| gap == 2 || gap == 3), "spread evenly: {gaps:?}");
    }

    #[test]
    fn of_the_requesters_of_all_workers_together_the_share_goes_on() {
        let kept = |share| {
            let of_worker = |number: u64| {
                let (recovery, units) = (worker(number, share), (20 - number).div_ceil(3));
                (0..units).filter(|unit| recovery.keeps_unit(*unit)).count()
            };
            (0..3).map(of_worker).sum::<usize>()
        };
        assert_eq!([kept(0.05), kept(0.4), kept(0.6)], [1, 8, 12]);
    }
}
