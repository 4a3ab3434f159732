//! What could not be watched of a server that an agent on its machine watches.

use measure::Trial;
use measure::trial::kind;

/// That the readings of the server end before its hold does, and why. The load was whole all the same.
pub(super) fn remark(trial: &Trial) -> Option<String> {
    trial.event(kind::WATCHER_LOST).map(|event| event.text.clone())
}

#[cfg(test)]
mod tests {
    use measure::trial::kind;

    use crate::judge::Verdict;
    use crate::testing::{TrialBuilder, terms};

    #[test]
    fn a_load_counts_whose_server_was_not_watched_to_the_end_and_it_is_said() {
        let why = "the server was not watched to the end: watcher w: nothing was heard of it for 5 s";
        let load = TrialBuilder::asking(100.0).event(30, kind::WATCHER_LOST, why);
        let judgement = load.judged(&terms("errors == 0")).1;
        assert_eq!((judgement.verdict, judgement.remark.as_deref()), (Verdict::Pass, Some(why)));
    }
}
