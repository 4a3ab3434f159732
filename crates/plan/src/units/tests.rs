use proptest::prelude::*;

use measure::ticklog::{TickForm, TimeUnit};

use super::*;
use crate::plan::{Ramp, RampRule, TickSource};
use crate::target::Target;

fn message<T: std::fmt::Debug>(result: Result<T, UnitError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn durations_are_read_in_all_units() {
    for (text, ns) in [
        ("60s", 60_000_000_000),
        ("500ms", 500_000_000),
        ("2m", 120_000_000_000),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("110 ms", 110_000_000),
        ("1.5s", 1_500_000_000),
        ("50us", 50_000),
        ("50µs", 50_000),
        ("7ns", 7),
        ("0s", 0),
    ] {
        assert_eq!(duration_ns(text), Ok(ns), "{text}");
    }
}

#[test]
fn bad_durations_say_what_is_wrong() {
    for (text, wrong) in [
        ("", "nothing is written"),
        ("60", "\"60\" has no unit; say 60s or 60ms"),
        ("60sec", "\"60sec\" has an unknown unit \"sec\"; known: ns, us, ms, s, m, h"),
        ("-1s", "\"-1s\" is negative"),
        ("soon", "\"soon\" is not a number"),
        ("1-2s", "\"1-2s\" is not a number"),
        ("infs", "\"infs\" is not a number"),
        ("9999h", "must be between 0s and 168h, got 9999h"),
        ("99999999999999999999s", "must be between 0s and 168h, got 99999999999999999999s"),
    ] {
        assert_eq!(message(duration_ns(text)), wrong, "{text}");
    }
    assert_eq!(message(duration_ns_within("2ms", 0, 50_000)), "must be between 0s and 50us, got 2ms");
}

#[test]
fn a_hold_is_a_time_or_a_count() {
    for (text, hold) in [
        ("60s", HoldLength::Time(60_000_000_000)),
        ("2Mticks", HoldLength::Ticks(2_000_000)),
        ("1.5Mticks", HoldLength::Ticks(1_500_000)),
        ("10kticks", HoldLength::Ticks(10_000)),
        ("1tick", HoldLength::Ticks(1)),
        ("1000games", HoldLength::Games(1000)),
        ("1000 games", HoldLength::Games(1000)),
    ] {
        assert_eq!(text.parse(), Ok(hold), "{text}");
    }
    for (text, wrong) in [
        ("0s", "\"0s\" is zero: nothing would be measured"),
        ("0games", "\"0games\" is zero: nothing would be measured"),
        ("60", "\"60\" has no unit; say 60s or 60ms"),
        ("1.5games", "\"1.5games\" is not a whole number"),
        ("-5ticks", "\"-5ticks\" is negative"),
        ("ticks", "\"ticks\" is not a number"),
        (
            "5laps",
            "\"5laps\" has an unknown unit \"laps\"; known: ns, us, ms, s, m, h, ticks, kticks, Mticks, games",
        ),
        ("2000Gticks", "must be between 1 and 1000G, got 2000Gticks"),
    ] {
        assert_eq!(message(text.parse::<HoldLength>()), wrong, "{text}");
    }
}

#[test]
fn a_ramp_is_a_gap_a_rate_a_total_or_all_at_once() {
    for (text, ramp) in [
        ("2ms", RampRule::Pace(Ramp::Every(2_000_000))),
        ("2ms/each", RampRule::Pace(Ramp::Every(2_000_000))),
        ("5000/s", RampRule::Pace(Ramp::PerSecond(5000.0))),
        ("0.5 /s", RampRule::Pace(Ramp::PerSecond(0.5))),
        ("60s/all", RampRule::Total { within: 60_000_000_000 }),
        (" 1.5m / all ", RampRule::Total { within: 90_000_000_000 }),
        ("0s", RampRule::Pace(Ramp::AtOnce)),
        ("0s/each", RampRule::Pace(Ramp::AtOnce)),
        ("0s/all", RampRule::Pace(Ramp::AtOnce)),
    ] {
        assert_eq!(text.parse(), Ok(ramp), "{text}");
    }
    let behind = "known: /s after a number, /each or /all after a time";
    for (text, wrong) in [
        ("0/s", "\"0/s\" is zero: nothing would ever arrive"),
        ("-1/s", "\"-1/s\" is negative"),
        ("x/s", "\"x/s\" is not a number"),
        ("1e12/s", "must be between 0.001/s and 1000000000/s, got 1e12/s"),
        ("5", "\"5\" has no unit; say 5s or 5ms"),
        ("2 parsecs", "\"2 parsecs\" has an unknown unit \"parsecs\"; known: ns, us, ms, s, m, h, /s"),
        ("5000/all", "\"5000\" has no unit; say 5000s or 5000ms"),
        ("5/each", "\"5\" has no unit; say 5s or 5ms"),
        ("/all", "nothing is written"),
        ("-1s/all", "\"-1s\" is negative"),
        ("169h/all", "must be between 0s and 168h, got 169h"),
        ("60s/s", "\"60s/s\" is not a number"),
        ("5000/s/all", "\"5000/s\" has an unknown unit \"/s\"; known: ns, us, ms, s, m, h"),
    ] {
        assert_eq!(message(text.parse::<RampRule>()), wrong, "{text}");
    }
    for (text, unit) in [("60s/", "/"), ("60s/some", "/some"), ("5/m", "/m")] {
        let wrong = format!("\"{text}\" has an unknown unit \"{unit}\"; {behind}");
        assert_eq!(message(text.parse::<RampRule>()), wrong, "{text}");
    }
}

#[test]
fn each_mistake_in_a_rung_has_its_own_message() {
    assert_eq!((rung_load(" 500"), rung_load("1e3")), (Ok(500.0), Ok(1000.0)));
    for (text, wrong) in [
        ("", "nothing is written"),
        ("0", "\"0\" is zero: a rung without load measures nothing"),
        ("-500", "\"-500\" is negative"),
        ("many", "\"many\" is not a number"),
        ("NaN", "\"NaN\" is not a number"),
        ("inf", "\"inf\" is not a number"),
        ("20000000", "must be between 1 and 10000000, got 20000000"),
    ] {
        assert_eq!(message(rung_load(text)), wrong, "{text}");
    }
}

#[test]
fn loads_and_rates_may_be_thousands_or_millions() {
    for (text, expected) in
        [("2k", 2_000.0), ("1.5k", 1_500.0), ("2K", 2_000.0), ("0.5M", 500_000.0), ("10 k", 10_000.0)]
    {
        assert_eq!((rung_load(text), http::rate(text)), (Ok(expected), Ok(expected)), "{text}");
        assert_eq!(amount_within(text, 0.0, 1e6), Ok(expected), "{text}");
        assert_eq!(count_within(text, 1, 1_000_000), Ok(expected as u64), "{text}");
        let counts = http::counts(text).map(|counts| (counts.first, counts.last, counts.is_open));
        assert_eq!(counts, Ok((expected as u64, expected as u64, false)), "{text}");
    }
    assert_eq!(http::rate("2k/s"), Ok(2_000.0));
    for text in ["2kk", "2Mk", "k", "M", "2m", "2g", "2kx", "k2", "2k5", "", " ", "-2k", "infk", "nank"] {
        let refused = (rung_load(text).is_err(), amount_within(text, 0.0, 1e9).is_err());
        assert_eq!(refused, (true, true), "{text}");
        assert!(count_within(text, 1, 9_000).is_err(), "{text}");
    }
    for (text, wrong) in [
        ("2kk", "\"2kk\" is not a number"),
        ("1.5001k", "\"1.5001k\" is not a whole number"),
        ("10k", "must be between 1 and 9000, got 10k"),
        ("0k", "must be between 1 and 9000, got 0k"),
    ] {
        assert_eq!(message(count_within(text, 1, 9_000)), wrong, "{text}");
    }
    assert_eq!(message(rung_load("11M")), "must be between 1 and 10000000, got 11M");
    assert_eq!(message(rung_load("-2k")), "\"-2k\" is negative");
}

#[test]
fn shares_are_percent_or_fraction() {
    for (text, expected) in [("5%", 0.05), ("0.05", 0.05), ("0", 0.0), ("100%", 1.0), ("1", 1.0)] {
        assert_eq!(share(text), Ok(expected), "{text}");
    }
    for (text, wrong) in [
        ("5", "a share is between 0 and 1, or 0% and 100%; got 5"),
        ("101%", "a share is between 0 and 1, or 0% and 100%; got 101%"),
        ("-1%", "\"-1%\" is negative"),
        ("%", "\"%\" is not a number"),
    ] {
        assert_eq!(message(share(text)), wrong, "{text}");
    }
}

#[test]
fn tick_sources_and_words_are_known_or_said_to_be_still_to_come() {
    assert_eq!("log=game.log".parse(), Ok(TickSource::Log(Some("game.log".into()))));
    assert_eq!("client".parse(), Ok(TickSource::Client));
    assert_eq!("none".parse(), Ok(TickSource::None));
    let table = |column: Option<&str>, unit| {
        Ok(TickSource::Frames(TickForm::Csv { column: column.map(str::to_owned), unit }, "a.csv".into()))
    };
    assert_eq!("csv=a.csv".parse(), table(None, None));
    assert_eq!("csv=a.csv:Frame Time (ms)".parse(), table(Some("Frame Time (ms)"), None));
    assert_eq!("csv=a.csv:Delta Time:s".parse(), table(Some("Delta Time"), Some(TimeUnit::S)));
    for (text, metric) in
        [("statsd=127.0.0.1:8125", None), ("statsd=:8125/server.tick", Some("server.tick".to_owned()))]
    {
        let address = "127.0.0.1:8125".parse().unwrap();
        assert_eq!(text.parse(), Ok(TickSource::Statsd { address, metric }));
    }
    for (text, path, metric, unit) in [
        ("openmetrics=http://127.0.0.1:9100", "/metrics", None, None),
        ("openmetrics=http://127.0.0.1:9100/metrics#", "/metrics", None, None),
        ("openmetrics=http://127.0.0.1:9100/m?x=1#tick_seconds", "/m?x=1", Some("tick_seconds"), None),
        ("openmetrics=http://127.0.0.1:9100/m#job:tick:ms", "/m", Some("job:tick"), Some(TimeUnit::Ms)),
        ("openmetrics=http://127.0.0.1:9100/m#job:tick", "/m", Some("job:tick"), None),
    ] {
        let mut endpoint: Target = "http://127.0.0.1:9100".parse().unwrap();
        endpoint.path = path.to_owned();
        let metric = metric.map(str::to_owned);
        let source = TickSource::OpenMetrics { endpoint: Box::new(endpoint), metric, unit };
        assert_eq!(text.parse(), Ok(source.clone()), "{text}");
        assert_eq!(source.to_string().parse(), Ok(source), "{text}");
    }
    assert_eq!("csv=a.csv:ms".parse(), table(Some("ms"), None), "a column of that name");
    for (text, wrong) in [
        ("log=", "nothing is written"),
        (
            "openmetrics=:8125",
            "\":8125\" is no metrics endpoint, as http://127.0.0.1:9100/metrics is: only http:// is asked",
        ),
        (
            "openmetrics=https://127.0.0.1/metrics",
            "\"https://127.0.0.1/metrics\" is no metrics endpoint, as http://127.0.0.1:9100/metrics is: only http:// is asked",
        ),
        (
            "openmetrics=http://me:secret@127.0.0.1/metrics#a",
            "\"…@127.0.0.1/metrics\" is no metrics endpoint, as http://127.0.0.1:9100/metrics is: the URL holds a user name or password",
        ),
        (
            "game.log",
            "\"game.log\" is unknown; known: log=FILE, jsonl=FILE, csv=FILE:COLUMN, statsd=ADDRESS/METRIC, openmetrics=URL#METRIC, client, \
             none",
        ),
        ("csv=", "nothing is written"),
        ("statsd=tick", "\"tick\" is not an address to listen on, as 127.0.0.1:8125 is"),
    ] {
        let said = message(text.parse::<TickSource>());
        let is_whole = !text.starts_with("openmetrics");
        assert!(if is_whole { said == wrong } else { said.starts_with(wrong) }, "{text}: {said}");
    }
    assert_eq!(message("heap".parse::<Profile>()), "\"heap\" is unknown; known: off, cpu, alloc, all");
    assert_eq!(message("evn".parse::<Arrivals>()), "\"evn\" is unknown; known: poisson, even, burst, closed");
    assert_eq!(message("loose".parse::<Pairing>()), "\"loose\" is unknown; known: pipelined, strict");
}

#[test]
fn whole_numbers_and_numbers_name_their_bounds() {
    assert_eq!(whole_within("18446744073709551615", 0, u64::MAX), Ok(u64::MAX));
    for (text, wrong) in [
        ("0", "must be between 1 and 1024, got 0"),
        ("-3", "must be between 1 and 1024, got -3"),
        ("2.5", "\"2.5\" is not a whole number"),
        ("two", "\"two\" is not a number"),
        (" ", "nothing is written"),
    ] {
        assert_eq!(message(whole_within(text, 1, 1024)), wrong, "{text}");
    }
    assert_eq!(message(number_within("0", 1.0, 1000.0)), "must be between 1 and 1000, got 0");
    assert_eq!(message(boolean("yes")), "\"yes\" is neither true nor false");
}

proptest! {
    #[test]
    fn holds_read_back_as_shown(count in 1u64..=1_000_000_000_000, ns in 1u64..=DURATION_NS_MAX) {
        for hold in [HoldLength::Time(ns), HoldLength::Ticks(count), HoldLength::Games(count)] {
            prop_assert_eq!(hold.to_string().parse::<HoldLength>(), Ok(hold));
        }
    }

    #[test]
    fn ramps_read_back_as_shown(ns in 1u64..=DURATION_NS_MAX, rate_per_s in 0.001f64..1e9) {
        for pace in [Ramp::Every(ns), Ramp::PerSecond(rate_per_s), Ramp::AtOnce] {
            let rule = RampRule::Pace(pace);
            prop_assert_eq!(rule.to_string().parse::<RampRule>(), Ok(rule));
        }
        let rule = RampRule::Total { within: ns };
        prop_assert_eq!(rule.to_string().parse::<RampRule>(), Ok(rule));
    }

    #[test]
    fn tick_sources_read_back_as_shown(path in "[a-z/._=-]{1,20}") {
        for source in [TickSource::None, TickSource::Client, TickSource::Log(None), TickSource::Log(Some((&path).into())), TickSource::Frames(TickForm::JsonLines, path.into())] {
            prop_assert_eq!(source.to_string().parse::<TickSource>(), Ok(source));
        }
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,12}", digits in "[-+.0-9eE]{0,24}", unit in "[a-zA-Zµ/%]{0,6}") {
        for text in [text, format!("{digits}{unit}")] {
            let _ = (text.parse::<HoldLength>(), text.parse::<RampRule>(), text.parse::<TickSource>(), text.parse::<Arrivals>());
            let _ = (rung_load(&text), share(&text), boolean(&text), duration_ns(&text));
            let _ = (whole_within(&text, 1, 9), number_within(&text, 1.0, 9.0));
            let _ = (count_within(&text, 1, 9), amount_within(&text, 1.0, 9.0));
        }
    }
}

#[test]
fn every_word_reads_back_as_shown() {
    for (word, arrivals) in ARRIVALS {
        assert_eq!((arrivals.to_string().as_str(), word.parse()), (word, Ok(arrivals)));
    }
    for (word, pairing) in PAIRINGS {
        assert_eq!((pairing.to_string().as_str(), word.parse()), (word, Ok(pairing)));
    }
}
