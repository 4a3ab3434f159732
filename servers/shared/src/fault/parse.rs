//! Parses `KIND[@TIME][:AMOUNT]` into a `Fault`, or an error that says why not.

use std::str::FromStr;
use std::time::Duration;

use super::kinds::{self, Amount, ENTRIES, Entry, Kind};
use super::share::Share;
use super::{Fault, FaultError};
use crate::cli;

/// The shortest stop of a process: it has to be stopped before what wakes it does so.
const SHORTEST: Duration = Duration::from_millis(10);
const LEAK_BYTES_MAX: u64 = 1_000_000_000_000;

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Fault, FaultError> {
        let (front, amount) =
            text.split_once(':').map_or((text, None), |(front, given)| (front, Some(given)));
        let (name, time) = front.split_once('@').map_or((front, None), |(name, given)| (name, Some(given)));
        let entry = ENTRIES.iter().find(|entry| entry.name() == name).ok_or_else(|| unknown(name))?;
        let (kind, example) = (entry.name(), entry.example);
        let at = match time {
            Some(given) => duration(given).ok_or_else(|| {
                FaultError(format!(
                    "{kind}: {given:?} is no time from 0s to 24h (a number and us, ms, s, m or h), as in {example}"
                ))
            })?,
            None if entry.needs_time() => {
                let message = format!("{kind} needs a time after the first connection, as in {example}");
                return Err(FaultError(message));
            }
            None => Duration::ZERO,
        };
        let kind = made(entry, amount).map_err(|what| FaultError(format!("{kind}{what} {example}")))?;
        Ok(Fault { kind, at })
    }
}

/// The kind with its amount, or what is wrong with that: between the kind's name and its example.
fn made(entry: &'static Entry, given: Option<&str>) -> Result<Kind, String> {
    let wants = match entry.amount {
        Amount::None(made) => {
            return given.map_or(Ok(made), |_| Err(" takes no amount; write".to_owned()));
        }
        Amount::Time(_) => "a time from 10ms to 24h",
        Amount::Share(_) => "a share above 0 and at most 100%",
        Amount::BytesPerS(_) => "a size per second (kB, MB or GB)",
        Amount::Bytes(_) => "a size (kB, MB or GB)",
    };
    let given = given.ok_or_else(|| format!(" needs {wants} after a colon, as in"))?;
    let made = match entry.amount {
        Amount::None(made) => Some(made),
        Amount::Time(make) => duration(given).filter(|time| *time >= SHORTEST).map(make),
        Amount::Share(make) => share(given).map(make),
        Amount::BytesPerS(make) | Amount::Bytes(make) => bytes(given).map(make),
    };
    made.ok_or_else(|| format!(": {given:?} is not {wants}, as in"))
}

fn unknown(name: &str) -> FaultError {
    let nearest = ENTRIES.iter().min_by_key(|entry| strsim::levenshtein(name, entry.name()));
    let (nearest, known) = (nearest.map_or("", |entry| entry.example), kinds::names(ENTRIES.iter()));
    FaultError(format!("there is no fault {name:?}; did you mean {nearest}? Known kinds: {known}"))
}

fn duration(text: &str) -> Option<Duration> {
    cli::split(text).and_then(|(number, unit)| cli::scaled(number, unit))
}

fn bytes(text: &str) -> Option<u64> {
    cli::bytes(text).filter(|bytes| *bytes <= LEAK_BYTES_MAX)
}

/// `1%`, `0.01` or `1e-2`. Exact, because a share says which events are chosen.
fn share(text: &str) -> Option<Share> {
    let (number, percent) = match text.strip_suffix('%') {
        Some(number) => (number, 2),
        None => (text, 0),
    };
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let numerator: u64 = digits.parse().ok()?;
    let slab = i64::try_from(part.len()).ok()? + percent - exponent.parse::<i16>().map(i64::from).ok()?;
    let power = 10u64.checked_pow(u32::try_from(slab.abs()).ok()?)?;
    if slab >= 0 { Share::new(numerator, power) } else { Share::new(numerator.checked_mul(power)?, 1) }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::Server;
    use super::*;

    fn parsed(text: &str) -> Fault {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_example_of_the_table_is_a_fault_of_its_kind() {
        for entry in ENTRIES {
            assert_eq!(parsed(entry.example).kind.name(), entry.name());
        }
    }

    #[test]
    fn a_fault_has_its_kind_time_and_amount() {
        let s = Duration::from_secs;
        let check =
            |text: &str, kind: Kind, at: Duration| assert_eq!(parsed(text), Fault { kind, at }, "{text}");
        let share = |numerator, denominator| Share::new(numerator, denominator).unwrap();
        check("hang@12s", Kind::Hang, s(12));
        check("freeze@1.5s:250ms", Kind::Freeze(Duration::from_millis(250)), Duration::from_millis(1500));
        check("refuse@0s", Kind::Refuse, s(0));
        check("lose:1e-5", Kind::Lose(share(1, 100_000)), s(0));
        check("lose@2m:0.4", Kind::Lose(share(2, 5)), s(120));
        check("wrong-answers:0.5%", Kind::WrongAnswers(share(1, 200)), s(0));
        check("lie:100%", Kind::Lie(share(1, 1)), s(0));
        check("late-ticks:1", Kind::LateTicks(share(1, 1)), s(0));
        check("leak@3s:20MB", Kind::Leak(20_000_000), s(3));
        check("leak-per-connection:0.2kB", Kind::LeakPerConnection(200), s(0));
        check("late-answers:200ms", Kind::LateAnswers(Duration::from_millis(200)), s(0));
    }

    #[test]
    fn what_is_no_fault_is_refused_with_the_cause_and_an_example() {
        let check = |text: &str, message: &str| {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), message, "{text}");
        };
        check("hang", "hang needs a time after the first connection, as in hang@12s");
        check(
            "hang@",
            r#"hang: "" is no time from 0s to 24h (a number and us, ms, s, m or h), as in hang@12s"#,
        );
        check("hang@12s:1", "hang takes no amount; write hang@12s");
        check("freeze@8s", "freeze needs a time from 10ms to 24h after a colon, as in freeze@8s:1s");
        check("freeze@8s:1ms", r#"freeze: "1ms" is not a time from 10ms to 24h, as in freeze@8s:1s"#);
        for share in ["140%", "0%", "-1%", "%", "", ".", "1e", "1e-99", "1e99", "many"] {
            check(
                &format!("late-ticks:{share}"),
                &format!(
                    r#"late-ticks: "{share}" is not a share above 0 and at most 100%, as in late-ticks:40%"#
                ),
            );
        }
        check("leak:20", r#"leak: "20" is not a size per second (kB, MB or GB), as in leak:20MB"#);
        for time in ["12", "s", "-1s", "1e3s", "25h", "12 s"] {
            let error = format!("exit@{time}").parse::<Fault>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("exit: {time:?} is no time ")), "{time}: {error}");
        }
    }

    #[test]
    fn an_unknown_kind_is_answered_with_the_nearest_one_and_all_names() {
        let message = |text: &str| text.parse::<Fault>().unwrap_err().to_string();
        assert_eq!(
            message("late-tick:40%"),
            r#"there is no fault "late-tick"; did you mean late-ticks:40%? Known kinds: hang, freeze, exit, drop-all, refuse, wrong-answers, late-answers, lose, duplicate, lose-linked, stop-ticks, stop-answers, leak, collapse, late-ticks, lie, wrong-rank, lose-updates, twice, accept-forged, truncate, miss, stale, swap, refusals, ignore-expiry, drop-at-stop, stay-at-stop, lose-at-stop, cpu-bound, single-thread, lock, gc-like-pause, accept-backlog, max-connections, fd-limit, slow-disk, throttled, leak-per-request, leak-per-connection, leak-descriptors"#
        );
        assert!(message("Hang@1s").contains("did you mean hang@12s?"));
        assert!(message("dropall@1s").contains("did you mean drop-all@8s?"));
        assert!(message("").contains("Known kinds: hang, "));
    }

    #[test]
    fn the_help_of_a_server_lists_what_it_can_plant_once_and_nothing_else() {
        let others = [Server::Null, Server::Oracle, Server::Leaderboard, Server::Redis, Server::Limited];
        for server in [Server::Arena, Server::Chat, Server::PollLoop].into_iter().chain(others) {
            let help = kinds::help(server);
            for entry in ENTRIES {
                let listed = help.matches(&format!("\n  {}: ", entry.example)).count();
                assert_eq!(
                    listed,
                    usize::from(server.can_plant(parsed(entry.example).kind)),
                    "{}",
                    entry.name()
                );
            }
            assert!(!help.contains("{}") && !help.contains("  is "), "{help}");
        }
    }
}
