//! Emulated networks as people write them: `latency=80ms jitter=20ms loss=1% bandwidth=20Mbit`, `70% wifi, 30% 4g`.

use thiserror::Error;

use super::{
    Duration, UnitError, duration_ns, duration_ns_within, number_and_unit, refuse_non_numbers, share,
};
use crate::network::{Network, Networks, TURNS};
use crate::vocabulary;

/// The built-in networks: name, then round trip and jitter (ms), loss and bandwidth (Mbit/s).
///
/// Round figures of our choice, for want of your own: no measurements of a provider or a place.
pub const BUILT_IN: [(&str, u64, u64, f64, u64); 3] =
    [("wifi", 20, 5, 0.001, 50), ("4g", 60, 20, 0.005, 20), ("transatlantic", 90, 5, 0.0005, 100)];

const KEYS: [&str; 4] = ["latency", "jitter", "loss", "bandwidth"];
const KNOWN: &str = "wifi, 4g, transatlantic, latency=, jitter=, loss=, bandwidth=";
const MS: u64 = 1_000_000;
const LATENCY_NS_MOST: u64 = 10_000 * MS;
const BITS_PER_S_LEAST: u64 = 1_000;
const BITS_PER_S_MOST: u64 = 100_000_000_000;
const NETWORKS_MOST: usize = 16;

/// What is wrong with a network.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NetworkError {
    /// one of its values; the message names the key
    #[error("{key}: {wrong}")]
    Value {
        /// `latency`
        key: &'static str,
        /// what is wrong with it
        wrong: UnitError,
    },
    /// a word that is neither a network nor a property
    #[error(transparent)]
    Word(#[from] UnitError),
    /// `latency=1ms latency=2ms`
    #[error("{0} is there twice")]
    Twice(&'static str),
    /// `jitter=20ms` without more
    #[error("\"{0}\" does nothing; say latency=80ms, or name one of wifi, 4g, transatlantic")]
    Nothing(String),
    /// more jitter than half of the round trip
    #[error(
        "jitter={jitter} is more than half of latency={latency}, the round trip; say at most jitter={most}"
    )]
    Jitter {
        /// as understood
        jitter: Duration,
        /// as understood
        latency: Duration,
        /// the most that it may be
        most: Duration,
    },
    /// half of the segments or more
    #[error("loss={0} is half of all segments or more: no connection works over that; say less than 50%")]
    Loss(String),
    /// a share of nothing, or in smaller steps than the bots can be split by
    #[error("the share {0}% is none of 0.1% to 100% in steps of 0.1%")]
    Share(String),
    /// one network without a share beside others
    #[error("\"{0}\" has no share of the bots; with several networks each has one: 70% wifi, 30% 4g")]
    NoShare(String),
    /// 70 % and 20 %
    #[error("the shares are {0}% together; they must be 100%")]
    Sum(String),
    /// a list that is no mixture of networks any more
    #[error("there are {0} networks; at most {NETWORKS_MOST} are told apart")]
    TooMany(usize),
}

/// A list of networks with their shares, or one that all bots have.
pub fn networks(text: &str) -> Result<Networks, NetworkError> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    if items.len() > NETWORKS_MOST {
        return Err(NetworkError::TooMany(items.len()));
    }
    let mut networks = Vec::new();
    for item in &items {
        networks.push(network(item, items.len() == 1)?);
    }
    let sum: u32 = networks.iter().map(|network| network.share_per_mille).sum();
    if sum != TURNS {
        return Err(NetworkError::Sum((f64::from(sum) / 10.0).to_string()));
    }
    Ok(Networks(networks))
}

fn network(item: &str, is_alone: bool) -> Result<Network, NetworkError> {
    if item.is_empty() {
        return Err(UnitError::Empty.into());
    }
    let (share_per_mille, words) = match item.split_once(char::is_whitespace) {
        Some((first, rest)) if first.ends_with('%') => (per_mille(&first[..first.len() - 1])?, rest.trim()),
        _ if is_alone => (TURNS, item),
        _ => return Err(NetworkError::NoShare(item.to_owned())),
    };
    let name = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut network =
        Network { name, share_per_mille, latency_ns: 0, jitter_ns: 0, loss: 0.0, bits_per_s: 0 };
    let (mut seen, mut is_built_in) = (Vec::new(), false);
    for (at, word) in words.split_whitespace().enumerate() {
        match word.split_once('=') {
            None if at == 0 => {
                built_in(word, &mut network)?;
                is_built_in = true;
            }
            None => return Err(unknown(word)),
            Some((key, value)) => {
                let Some(key) = KEYS.into_iter().find(|known| *known == key) else {
                    return Err(unknown(key));
                };
                if seen.contains(&key) {
                    return Err(NetworkError::Twice(key));
                }
                seen.push(key);
                property(key, value, &mut network)?;
            }
        }
    }
    let most_ns = network.latency_ns / 2;
    if network.jitter_ns > most_ns {
        let [jitter, latency, most] = [network.jitter_ns, network.latency_ns, most_ns].map(Duration);
        return Err(NetworkError::Jitter { jitter, latency, most });
    }
    let does_nothing = network.latency_ns == 0 && network.loss == 0.0 && network.bits_per_s == 0;
    if does_nothing && !is_built_in {
        return Err(NetworkError::Nothing(network.name));
    }
    Ok(network)
}

fn built_in(word: &str, network: &mut Network) -> Result<(), NetworkError> {
    let known = BUILT_IN.into_iter().find(|(name, ..)| *name == word);
    let (_, latency_ms, jitter_ms, loss, mbit_per_s) = known.ok_or_else(|| unknown(word))?;
    (network.latency_ns, network.jitter_ns) = (latency_ms * MS, jitter_ms * MS);
    (network.loss, network.bits_per_s) = (loss, mbit_per_s * 1_000_000);
    Ok(())
}

fn property(key: &'static str, value: &str, network: &mut Network) -> Result<(), NetworkError> {
    let of = |wrong| NetworkError::Value { key, wrong };
    match key {
        "latency" => network.latency_ns = duration_ns_within(value, 0, LATENCY_NS_MOST).map_err(of)?,
        "jitter" => network.jitter_ns = duration_ns(value).map_err(of)?,
        "loss" => {
            network.loss = share(value).map_err(of)?;
            if network.loss >= 0.5 {
                return Err(NetworkError::Loss(value.to_owned()));
            }
        }
        _ => network.bits_per_s = bits_per_s(value).map_err(of)?,
    }
    Ok(())
}

/// `20Mbit`, `512kbit/s`
fn bits_per_s(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = number_and_unit(text);
    refuse_non_numbers(text, number)?;
    let factor = match unit.strip_suffix("/s").unwrap_or(unit) {
        "bit" => 1.0,
        "kbit" => 1e3,
        "Mbit" => 1e6,
        "Gbit" => 1e9,
        unit => {
            let (text, unit) = (text.into(), unit.into());
            return Err(UnitError::UnknownUnit { text, unit, known: "kbit, Mbit, Gbit" });
        }
    };
    let bits = number.parse::<f64>().map_err(|_| UnitError::NotANumber(text.into()))? * factor;
    if bits == 0.0 {
        return Err(UnitError::Zero { text: text.into(), why: "nothing would ever arrive" });
    }
    // A float converts to an integer by saturating.
    match bits as u64 {
        bits @ BITS_PER_S_LEAST..=BITS_PER_S_MOST => Ok(bits),
        _ => {
            let (least, most) = ("1kbit".into(), "100Gbit".into());
            Err(UnitError::OutOfRange { text: text.into(), least, most })
        }
    }
}

/// `12.5`
fn per_mille(text: &str) -> Result<u32, NetworkError> {
    let tenths = text.trim().parse::<f64>().map_or(f64::NAN, |percent| percent * 10.0);
    let is_step = (tenths - tenths.round()).abs() < 1e-6;
    if !is_step || !(1.0..=f64::from(TURNS)).contains(&tenths.round()) {
        return Err(NetworkError::Share(text.to_owned()));
    }
    Ok(tenths.round() as u32)
}

fn unknown(word: &str) -> NetworkError {
    let words = BUILT_IN.iter().map(|(name, ..)| *name).chain(KEYS);
    UnitError::UnknownWord {
        text: word.to_owned(),
        known: KNOWN,
        nearest: vocabulary::nearest(word, words.collect::<Vec<_>>()),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_read_as_it_is_written() {
        let one = |text: &str| {
            let one = networks(text).unwrap().0.remove(0);
            (one.latency_ns / MS, one.jitter_ns / MS, one.loss, one.bits_per_s)
        };
        for (text, expected) in [
            ("latency=80ms jitter=20ms loss=1% bandwidth=20Mbit", (80, 20, 0.01, 20_000_000)),
            ("  bandwidth=1.5Gbit/s   latency=10s ", (10_000, 0, 0.0, 1_500_000_000)),
            ("loss=0.5%", (0, 0, 0.005, 0)),
            ("wifi", (20, 5, 0.001, 50_000_000)),
            ("4g loss=2%", (60, 20, 0.02, 20_000_000)),
            ("100% transatlantic", (90, 5, 0.0005, 100_000_000)),
        ] {
            assert_eq!(one(text), expected, "{text}");
        }
        let several = networks("70% wifi, 20% 4g,10.0%  latency=150ms   loss=2%").unwrap().0;
        let shares: Vec<(&str, u32)> =
            several.iter().map(|one| (one.name.as_str(), one.share_per_mille)).collect();
        assert_eq!(shares, [("wifi", 700), ("4g", 200), ("latency=150ms loss=2%", 100)]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_say_instead() {
        for (text, words) in [
            ("", "nothing is written"),
            ("wfi", "\"wfi\" is unknown; known: wifi, 4g, transatlantic, latency="),
            ("latency=80ms speed=3", "\"speed\" is unknown"),
            ("latency=80ms wifi", "\"wifi\" is unknown"),
            ("latency=80", "latency: \"80\" has no unit"),
            ("latency=11s", "latency: must be between 0s and 10s, got 11s"),
            ("latency=1ms latency=2ms", "latency is there twice"),
            ("jitter=20ms", "jitter=20ms is more than half of latency=0s"),
            ("latency=30ms jitter=20ms", "say at most jitter=15ms"),
            ("loss=50%", "loss=50% is half of all segments or more"),
            ("latency=1ms loss=101%", "loss: a share is between 0 and 1"),
            ("latency=0ms", "\"latency=0ms\" does nothing"),
            ("latency=1ms bandwidth=0Mbit", "bandwidth: \"0Mbit\" is zero: nothing would ever arrive"),
            ("bandwidth=20MB", "bandwidth: \"20MB\" has an unknown unit \"MB\"; known: kbit, Mbit, Gbit"),
            ("bandwidth=1bit", "bandwidth: must be between 1kbit and 100Gbit, got 1bit"),
            ("70% wifi, 20% 4g", "the shares are 90% together; they must be 100%"),
            ("50% wifi", "the shares are 50% together"),
            ("70% wifi, 4g", "\"4g\" has no share of the bots"),
            ("0% wifi, 100% 4g", "the share 0% is none of 0.1% to 100%"),
            ("33.33% wifi, 66.67% 4g", "the share 33.33% is none"),
            ("70% wifi,, 30% 4g", "nothing is written"),
        ] {
            let found = networks(text).unwrap_err().to_string();
            assert!(found.contains(words), "{text}: {found}");
        }
    }
}
