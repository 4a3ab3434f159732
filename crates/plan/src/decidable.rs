//! Which holds are too short to decide an objective on a percentile, if the plan determines how many replies they give.
//!
//! A load of requests per second gives its rate times the hold. With fewer samples than the percentile needs even when
//! none is late, the rung could only fail or stay undecided, and that is known before any load.
//! Not here: closed loops, whose rate only a trial shows (`ladder::schedule`), and a search, which has its own lengths.

use ladder::wording::show_number;
use ladder::{Objective, hold_for_ns};

use crate::plan::{HoldLength, Ladder, Plan};
use crate::ramp::show_length;
use crate::units::Duration;
use crate::workloads::BotSettings;

/// A load whose hold is too short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Need<'a> {
    pub load: f64,
    /// messages per second that the plan means to offer
    rate_per_s: f64,
    /// the objective that needs most
    objective: &'a Objective,
    /// of it, the least
    samples: u64,
    /// the shortest hold that gives these, ns
    pub hold_ns: u64,
}

/// The loads of the list that are held too short for an objective, ascending.
pub(crate) fn needs<'a>(ladder: &Ladder, bots: &BotSettings, objectives: &'a [Objective]) -> Vec<Need<'a>> {
    let HoldLength::Time(asked_ns) = ladder.hold else { return Vec::new() };
    let needing = objectives.iter().filter_map(|one| Some((one, one.samples_of_responses()?)));
    let Some((objective, samples)) = needing.max_by_key(|one| one.1) else { return Vec::new() };
    let of_load = |load: f64| {
        let rate_per_s = bots.intended_per_s(load)?;
        let is_enough = rate_per_s * asked_ns as f64 / 1e9 >= samples as f64;
        let hold_ns = hold_for_ns(samples as f64, rate_per_s).filter(|_| !is_enough)?;
        Some(Need { load, rate_per_s, objective, samples, hold_ns })
    };
    ladder.rungs.iter().filter_map(|load| of_load(*load)).collect()
}

/// Which loads are held longer, or cannot be decided and how long they would have to be held, to be said before the climb;
/// `None` where each hold is long enough, as far as the plan knows.
pub fn decidable_sentence(plan: &Plan) -> Option<String> {
    let ladder = &plan.ladder;
    let HoldLength::Time(asked_ns) = ladder.hold else { return None };
    if ladder.search.is_some() {
        return None;
    }
    let needs = needs(ladder, &plan.bots, &plan.objectives);
    let is_longer = |need: &Need<'_>| ladder.lengthened.iter().any(|one| one.0 == need.load);
    let (longer, short): (Vec<Need<'_>>, Vec<Need<'_>>) = needs.into_iter().partition(is_longer);
    let why = |need: &Need<'_>| {
        format!(
            "{} needs about {} samples to be met; {} at {} {} give {}",
            need.objective.figure().name,
            show_number(need.samples as f64),
            show_length(asked_ns),
            show_number(need.load),
            ladder.load_unit,
            show_number(need.rate_per_s * asked_ns as f64 / 1e9),
        )
    };
    let short = short.first().map(|need| {
        let more = match ladder.stop {
            Some(_) => "let the subject end later".to_owned(),
            None => {
                format!("hold {} or longer (--hold {})", show_length(need.hold_ns), Duration(need.hold_ns))
            }
        };
        format!("{}: {more}, or the rung can fail and not pass", why(need))
    });
    let longer = longer.first().map(|need| {
        let held: Vec<String> = ladder
            .lengthened
            .iter()
            .map(|(load, ns)| format!("{} {} {}", show_number(*load), ladder.load_unit, show_length(*ns)))
            .collect();
        format!("{}, so it is held longer: {}", why(need), held.join(", "))
    });
    let told: Vec<String> = longer.into_iter().chain(short).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, resolve};

    /// The message before a climb, and the holds that are longer than the others, s.
    fn said(flags: &str) -> (Option<String>, Vec<(f64, u64)>) {
        let plan = resolve(&Flags::of(flags), None, 1).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let longer = plan.ladder.lengthened.iter().map(|(load, ns)| (*load, ns / 1_000_000_000)).collect();
        (decidable_sentence(&plan), longer)
    }

    #[test]
    fn a_hold_that_cannot_decide_is_longer_or_is_said_before_the_climb() {
        let target = "http://127.0.0.1:9 --objective 'response.p99 < 1s'";
        let (told, longer) = said(&format!("{target} --rate 20,200 --hold 10s"));
        let says = "response.p99 needs about 299 samples to be met; 10 s at 20 req/s give 200: hold 19 s or longer (--hold 19s), \
                    or the rung can fail and not pass";
        assert_eq!((told.as_deref(), longer), (Some(says), vec![]));
        for (flags, words, held) in [
            ("--rate 4,200", "so it is held longer: 4 req/s 93 s", vec![(4.0, 93)]),
            // Four times the default hold are not enough.
            ("--rate 1", "hold 6.2 minutes or longer (--hold 369s)", vec![]),
        ] {
            let (told, longer) = said(&format!("{target} {flags}"));
            assert_eq!(longer, held, "{flags}: {told:?}");
            assert!(told.as_ref().is_some_and(|told| told.contains(words)), "{flags}: {told:?}");
        }
    }

    #[test]
    fn what_is_long_enough_or_not_known_is_not_spoken_of() {
        for flags in [
            "http://127.0.0.1:9 --objective 'response.p99 < 1s' --rate 30,200 --hold 10s",
            "http://127.0.0.1:9 --objective 'response.p99 < 1s' --requesters 1,2 --hold 1s",
            "http://127.0.0.1:9 --objective 'errors == 0' --rate 1 --hold 1s",
            "http://127.0.0.1:9 --objective 'response.p99 < 1s' --rate 1,9 --hold 3s --search",
            "arena",
        ] {
            assert_eq!(said(flags), (None, vec![]), "{flags}");
        }
    }
}
