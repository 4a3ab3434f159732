//! What the emulated networks of a trial did, beside the latencies that contain it.
//!
//! A percentile of the network and one of the responses do not subtract: the slowest answers need not be those whose
//! bytes were longest under way. So both are reported, and no difference.

use measure::network::{applied, asked, late};
use measure::{Distribution, NetworkFacts, Summary, Trial};
use serde::{Deserialize, Serialize};
use serde_json::json;
use ts_rs::TS;

use crate::contract::{Climb, Conclusion, Rung};
use crate::wording::{show_ns, show_share};

/// Bytes that are released later than this after their instant, at p99, deserve a remark, ns.
pub const LATE_NS_LIMIT: u64 = 1_000_000;

/// The emulated networks of a rung.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct NetworkFigures {
    /// each of them
    pub profiles: Vec<NetworkProfile>,
    /// round trips over all of them, as they were
    pub round_trip_ns: Option<Summary>,
    /// how long after its instant each piece of a stream was released
    pub late_ns: Option<Summary>,
}

/// One emulated network. A round trip is the time under way of the newest bytes that a connection sent, and of those that
/// came on it after them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct NetworkProfile {
    /// what it is, and who is behind it
    #[serde(flatten)]
    pub facts: NetworkFacts,
    /// round trips as they were drawn
    pub asked_round_trip_ns: Option<Summary>,
    /// the same as they were
    pub round_trip_ns: Option<Summary>,
}

/// Of a trial; `None`: nothing was emulated.
pub(crate) fn figures(trial: &Trial) -> Option<NetworkFigures> {
    let networks = trial.networks();
    let values = trial.network_values(networks.len());
    let late_ns = values.get(late(networks.len())).filter(|_| !networks.is_empty())?.summary();
    let mut all = Distribution::new();
    (0..networks.len()).for_each(|network| all.add(&values[applied(network)]));
    let profile = |(network, facts)| NetworkProfile {
        facts,
        asked_round_trip_ns: values[asked(network)].summary(),
        round_trip_ns: values[applied(network)].summary(),
    };
    let profiles = networks.into_iter().enumerate().map(profile).collect();
    Some(NetworkFigures { profiles, round_trip_ns: all.summary(), late_ns })
}

/// That bytes came out later than they should have: then the emulated network was slower than the one asked for.
pub(crate) fn remark(trial: &Trial) -> Option<String> {
    let late_ns = figures(trial)?.late_ns?.p99.filter(|late_ns| *late_ns > LATE_NS_LIMIT)?;
    Some(format!(
        "the emulated network released bytes {} late at p99: more than 1 ms, so this load was held over a slower network \
         than asked for",
        show_ns(late_ns as f64)
    ))
}

/// Which networks there were, and what they and the responses took under the largest load that tells both.
pub(crate) fn conclusion(climb: &Climb) -> Option<Conclusion> {
    let told = climb.rungs.iter().filter_map(|rung| Some((rung, rung.network.as_ref()?)));
    let (rung, network) = told.max_by(|(a, _), (b, _)| {
        let place = |rung: &Rung| (climb.capacity.lower_bound == Some(rung.load), rung.load);
        let (a, b) = (place(a), place(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    let each: Vec<String> = network.profiles.iter().map(words).collect();
    let mut sentences = vec![format!("Emulated network: {}.", each.join("; "))];
    let quantiles = |summary: &Summary| Some((summary.p50? as f64, summary.p99.map(|p99| p99 as f64)));
    let shown = |(p50, p99): (f64, Option<f64>)| {
        let p99 = p99.map_or(String::new(), |p99| format!(" and {} at p99", show_ns(p99)));
        format!("{} at the median{p99}", show_ns(p50))
    };
    let round_trip = network.round_trip_ns.as_ref().and_then(quantiles);
    let felt = rung.latency().and_then(|(what, times)| Some((what, quantiles(times)?)));
    if let Some(round_trip) = round_trip {
        let beside = felt.map_or(String::new(), |(what, times)| {
            format!("; {what}, which contain it, took {}", shown(times))
        });
        sentences.push(format!("Its round trips took {}{beside}.", shown(round_trip)));
    }
    let evidence = json!({ "load": rung.load, "network": network, "response_ns": rung.response_ns });
    Some(Conclusion::new("network", &sentences, evidence))
}

/// `70 % wifi (latency 20 ms, jitter 5 ms, loss 0.1 %, 50 Mbit/s)`
fn words(profile: &NetworkProfile) -> String {
    let NetworkFacts { name, share, latency_ns, jitter_ns, loss, bits_per_s, .. } = &profile.facts;
    let mut parts = vec![format!("latency {}", show_ns(*latency_ns as f64))];
    if *jitter_ns > 0 {
        parts.push(format!("jitter {}", show_ns(*jitter_ns as f64)));
    }
    if *loss > 0.0 {
        parts.push(format!("loss {}", show_share(*loss)));
    }
    if let Some(bits) = bits_per_s {
        parts.push(format!("{} Mbit/s", *bits as f64 / 1e6));
    }
    let share = if *share < 1.0 { format!("{} of the bots ", show_share(*share)) } else { String::new() };
    // A network that is no built-in one is called as it is described.
    let (name, figures) = match name.contains('=') {
        true => (String::new(), parts.join(", ")),
        false => (format!("{name} "), format!("({})", parts.join(", "))),
    };
    format!("{share}{name}{figures}")
}

#[cfg(test)]
mod tests {
    use measure::network::value_names;
    use measure::trial::kind;

    use super::*;
    use crate::judge::{Criteria, judge};
    use crate::testing::TrialBuilder;

    const MS: u64 = 1_000_000;

    /// A trial over one network whose round trips took 83 ms.
    fn trial(late_ns: u64) -> Trial {
        let facts = vec![NetworkFacts {
            name: "latency=80ms jitter=20ms".to_owned(),
            share: 1.0,
            bots: 100,
            latency_ns: 80 * MS,
            jitter_ns: 20 * MS,
            loss: 0.0,
            bits_per_s: None,
        }];
        let facts = serde_json::to_string(&facts).unwrap();
        let mut trial = TrialBuilder::asking(200.0).event(0, kind::NETWORKS, &facts).build();
        for (name, ns) in value_names(1).into_iter().zip([82 * MS, 83 * MS, late_ns]) {
            (0..20_000).for_each(|_| trial.values.entry(name.clone()).or_default().record_value(ns));
        }
        trial
    }

    #[test]
    fn a_rung_tells_what_was_asked_and_what_was_applied() {
        let figures = figures(&trial(200_000)).unwrap();
        let near = |summary: &Option<Summary>, ns: u64| {
            let p99 = summary.as_ref().unwrap().p99.unwrap();
            assert!(p99.abs_diff(ns) <= ns / 500, "{p99} and not {ns}");
        };
        near(&figures.profiles[0].asked_round_trip_ns, 82 * MS);
        near(&figures.profiles[0].round_trip_ns, 83 * MS);
        near(&figures.round_trip_ns, 83 * MS);
        near(&figures.late_ns, 200_000);
        assert_eq!(words(&figures.profiles[0]), "latency 80 ms, jitter 20 ms");
        assert!(super::figures(&TrialBuilder::asking(200.0).build()).is_none());
    }

    #[test]
    fn bytes_released_late_deserve_a_remark_and_decide_nothing() {
        assert_eq!(remark(&trial(900_000)), None);
        let late = trial(1_500_000);
        let terms = Criteria { objectives: vec!["errors == 0".parse().unwrap()], ..Criteria::default() };
        let verdict_of = |trial: &Trial| judge(trial, None, &terms).verdict;
        assert_eq!(verdict_of(&late), verdict_of(&trial(1)));
        let judgement = judge(&late, None, &terms);
        let words = judgement.remark.unwrap();
        assert!(words.contains("the emulated network released bytes 1.5 ms late at p99"), "{words}");
    }

    #[test]
    fn a_network_is_named_with_its_share_and_figures() {
        let mut profile = figures(&trial(1)).unwrap().profiles.remove(0);
        profile.facts = NetworkFacts {
            name: "4g".to_owned(),
            share: 0.2,
            loss: 0.005,
            bits_per_s: Some(20_000_000),
            ..profile.facts
        };
        let expected = "20 % of the bots 4g (latency 80 ms, jitter 20 ms, loss 0.5 %, 20 Mbit/s)";
        assert_eq!(words(&profile), expected);
    }
}
