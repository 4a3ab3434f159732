//! What reads of a data grid found, worded for the user.

use measure::{Role, Trial};

use crate::wording::show_many;

/// Hits and misses of the hold, where operations read.
pub(super) fn remark(trial: &Trial) -> Option<String> {
    let names = &trial.head.metric_names;
    let mut counts = names
        .counters(Role::Lookups)
        .map(|index| trial.counters.get(&names.counters[index]).copied().unwrap_or_default());
    let (hits, misses) = (counts.next()?, counts.next()?);
    (hits + misses > 0).then(|| format!("{} hits, {} misses", show_many(hits), show_many(misses)))
}

#[cfg(test)]
mod tests {
    use crate::testing::{TrialBuilder, terms};

    #[test]
    fn a_rung_says_what_its_reads_found() {
        let found = |hits: u64, misses: u64| {
            let builder = TrialBuilder::asking(200.0).edit(move |at, interval| {
                if at == 7 {
                    interval.counters[25..27].copy_from_slice(&[hits, misses]);
                }
            });
            builder.judged(&terms("errors == 0")).1.remark
        };
        assert_eq!(found(40, 2).as_deref(), Some("40 hits, 2 misses"));
        assert_eq!(found(0, 0), None);
    }
}
