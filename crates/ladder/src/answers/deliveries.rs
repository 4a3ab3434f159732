//! The delivery accounts as the contract defines them.

use measure::{Measure, Trial};

use super::with_never;
use crate::contract::{DeliveryFigures, SlowestReceiver};
use crate::figures;

/// So many pairs are published; the store has up to a hundred.
const PAIRS: usize = 10;

pub(super) fn deliveries(trial: &Trial) -> Option<DeliveryFigures> {
    let books = trial.books.as_ref()?;
    let sum = books.judged;
    let slowest = books.slowest_first().first().and_then(|slowest| {
        Some(SlowestReceiver {
            receiver: slowest.receiver,
            latency_mean_ns: slowest.latency_mean_ns?,
            latency_max_ns: slowest.latency_max_ns?,
        })
    });
    Some(DeliveryFigures {
        owed: sum.owed(),
        sum,
        latency_ns: with_never(trial.distribution(Measure::Delivery), sum.missing()),
        sent: books.sent,
        rate_per_s: figures::deliveries_per_s(trial),
        unknown_messages: books.unknown_messages,
        drops_are_told: books.drops_are_told,
        loss_rate_bound: loss_rate_bound(sum.owed(), sum.missing()),
        slowest,
        excluded: (books.excluded.receivers > 0).then_some(books.excluded),
        worst: books.worst.iter().take(PAIRS).copied().collect(),
    })
}

/// Zero of `owed` lost means a rate of at most this, at 95 %: (1 − 3/n)ⁿ is e⁻³, about a twentieth.
pub(super) fn loss_rate_bound(owed: u64, lost: u64) -> Option<f64> {
    (lost == 0 && owed > 0).then(|| 3.0 / owed as f64)
}
