use super::super::{LoggedSecond, TickLogReader};
use super::*;

fn csv(column: Option<&str>, unit: Option<TimeUnit>) -> TickForm {
    TickForm::Csv { column: column.map(str::to_owned), unit }
}

fn read(form: TickForm, rate_hz: Option<f64>, text: &str) -> (TickLogReader, Vec<LoggedSecond>) {
    let mut reader = TickLogReader::of(form, rate_hz);
    // In pieces that cut lines.
    text.as_bytes().chunks(7).for_each(|chunk| reader.push(chunk));
    reader.finish();
    let seconds = reader.take_seconds();
    (reader, seconds)
}

/// Counts as (on time, over, under), and what was wrong with lines.
fn told(form: TickForm, rate_hz: Option<f64>, text: &str) -> ((u64, u64, u64), Vec<String>) {
    let (reader, _) = read(form, rate_hz, text);
    let (counts, summary) = (reader.summary().counts(), reader.summary());
    let wrong = summary.malformed_examples.iter().map(|one| format!("{}: {}", one.line, one.reason));
    ((counts.on_time, counts.over, counts.under), wrong.collect())
}

#[test]
fn each_form_has_its_valid_line() {
    let statsd = || TickForm::Statsd { metric: None };
    let rows: [(TickForm, &str, (u64, u64, u64)); 15] = [
        (statsd(), "a.tick:16.7|ms|@0.5|#room:7\nother:90|ms\na.tick:16:30|d\na.tick:3|c", (3, 1, 0)),
        (TickForm::JsonLines, r#"{"t": 1795232917249, "dt": 16.7, "busy": 3.1, "id": "room 7"}"#, (1, 0, 0)),
        (
            TickForm::JsonLines,
            "{\"t\":1795232917.249}\n{\"t\":1795232917.264}\n{\"t\":1795232917.299}",
            (1, 1, 0),
        ),
        (TickForm::JsonLines, "{\"t_ns\":1795232917249000000}\n{\"t_ns\":1795232917259000000}", (0, 0, 1)),
        (
            TickForm::JsonLines,
            "{\"t\":\"2026-11-27T18:00:00.100Z\"}\n{\"t\":\"2026-11-27T19:00:00.116+01:00\"}",
            (1, 0, 0),
        ),
        (TickForm::JsonLines, "{\"dt_us\":16667}\n{\"dt_s\":0.0167}\n{\"dt_ns\":90000000}", (2, 1, 0)),
        // Two loops, each with its own interval.
        (
            TickForm::JsonLines,
            "{\"t\":1795232917000,\"id\":1}\n{\"t\":1795232917008,\"id\":2}\n{\"t\":1795232917016,\"id\":1}\n{\"t\":1795232917024,\"id\":2}",
            (2, 0, 0),
        ),
        (
            csv(None, None),
            "Application,ProcessID,MsBetweenPresents,Dropped\ngame.exe,4,16.67,0\ngame.exe,4,34.1,0",
            (1, 1, 0),
        ),
        (csv(None, None), "//GameName=a\n//Info=b, c\nTimeInSeconds,MsBetweenPresents\n0.1,16.6", (1, 0, 0)),
        (csv(None, None), "EVENTS,FrameTime,GameThreadTime\n,16.6,3.2\n\"a, b\",18.2,17.9", (1, 1, 0)),
        (csv(None, None), "Frame Index;Frame Time (ms)\n1;16,67\n2;14,2", (1, 0, 1)),
        (csv(None, None), "\u{feff}frame\tframe time (s)\r\n1\t0.0167\r\n", (1, 0, 0)),
        (csv(Some("delta time"), Some(TimeUnit::S)), "n,Delta Time\n1,0.0167", (1, 0, 0)),
        (csv(Some("2"), None), "1,16.6\n2,40", (1, 1, 0)),
        (csv(Some("dt_us"), None), "n,dt_us\n1,16600", (1, 0, 0)),
    ];
    for (form, text, expected) in rows {
        assert_eq!(told(form, Some(60.0), text), (expected, Vec::new()), "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_counted_and_said() {
    let statsd = || TickForm::Statsd { metric: None };
    let rows: [(TickForm, &str, &str); 17] = [
        (statsd(), "a.tick", "1: not NAME:VALUE|TYPE"),
        (statsd(), "a:1|x", "1: \"x\" is no type of StatsD"),
        (statsd(), "a:1|ms|@2", "1: its sample rate is 2, which is not between 0.0001 and 1"),
        (statsd(), "a:-1|ms", "1: its value is -1 ms, which is no interval between two ticks"),
        (TickForm::JsonLines, "[16.7]", "1: not a JSON object"),
        (TickForm::JsonLines, r#"{"id": "a"}"#, "1: neither \"t\" nor \"dt\""),
        (TickForm::JsonLines, r#"{"dt": "16"}"#, "1: \"dt\" is not a number"),
        (TickForm::JsonLines, r#"{"dt": -3}"#, "1: dt is -3 ms, which is no interval between two ticks"),
        (
            TickForm::JsonLines,
            r#"{"t": 12.5}"#,
            "1: \"t\" is 12.5, which is no time of the realtime clock; leave it out and write \"dt\"",
        ),
        (
            TickForm::JsonLines,
            r#"{"t": "18:00:00"}"#,
            "1: \"t\" is not a time as 2026-11-27T18:00:00.123Z, with its offset",
        ),
        (
            TickForm::JsonLines,
            "{\"t\":1795232917249}\n{\"t\":1795232917240}",
            "2: its time is 9.000 ms before that of the line before",
        ),
        (
            csv(None, None),
            "1,16.6",
            "1: no header with a column of intervals (MsBetweenPresents, FrameTime …) comes before the first numbers; name a column by its number: csv=FILE:1",
        ),
        (
            csv(Some("Tick"), None),
            "frame,FrameTime\n",
            "1: no header with a column \"Tick\"; it has frame, FrameTime",
        ),
        (csv(None, None), "n,FrameTime\n1,16*", "2: its interval is \"16*\", not a number"),
        (
            csv(None, None),
            "n,FrameTime\n1,NaN",
            "2: its interval is NaN ms, which is no interval between two ticks",
        ),
        (
            csv(None, None),
            "n,FrameTime\n1,16,67",
            "2: 3 fields below a header of 2; with decimal commas the fields must be separated by semicolons",
        ),
        (csv(None, None), "n,FrameTime\n1", "2: it ends before its interval"),
    ];
    for (form, text, expected) in rows {
        assert_eq!(told(form, Some(60.0), text), ((0, 0, 0), vec![expected.to_owned()]), "{text}");
    }
}

#[test]
fn the_period_is_found_from_the_intervals() {
    let rate = |intervals: &[f64]| {
        let text: String = intervals.iter().map(|dt| format!("{{\"dt\":{dt}}}\n")).collect();
        read(TickForm::JsonLines, None, &text).0.summary().tick_rate_hz()
    };
    assert_eq!(rate(&[16.0, 17.0, 17.0].repeat(200)), 60.0, "readings of whole ms");
    assert_eq!(rate(&[33.4, 33.2, 33.3, 80.0, 0.1].repeat(50)), 30.0, "stalls, and ticks that catch up");
    assert_eq!(rate(&[50.1; 4]), 20.0, "fewer than a thousand");
    assert_eq!(rate(&[7.81; 1_500]), 128.0);
    assert!((rate(&[28.2; 10]) - 35.46).abs() < 0.01, "no whole number is near");
    assert_eq!(rate(&[0.0; 10]), 60.0, "no period can be found");
}

#[test]
fn ticks_are_of_the_second_in_which_they_were() {
    let line = |t: u64| format!("{{\"t\":{t},\"dt\":16}}\n");
    let text = [line(5_900), line(6_100), line(5_990), line(8_000)]
        .map(|line| line.replace("\"t\":", "\"t\":179523291"));
    let (_, seconds) = read(TickForm::JsonLines, Some(60.0), &text.concat());
    let told: Vec<_> = seconds
        .iter()
        .map(|second| (second.from_ms % 10_000, second.to_ms % 10_000, second.counts.due))
        .collect();
    assert_eq!(told, [(5_000, 6_000, 1), (6_000, 7_000, 2), (8_000, 9_000, 1)]);
    assert!(seconds.iter().all(|second| second.counts.balances()));
    // Without a time of their own: when they were read.
    let mut reader = TickLogReader::of(TickForm::JsonLines, Some(60.0));
    for (at_ms, ticks) in [(1_795_232_910_300u64, 3), (1_795_232_911_300, 2)] {
        reader.read_at(at_ms);
        reader.push("{\"dt\":16}\n".repeat(ticks).as_bytes());
        reader.close_before(at_ms);
    }
    reader.close_before(1_795_232_912_500);
    let told: Vec<_> = reader.take_seconds().iter().map(|second| (second.to_ms, second.counts.due)).collect();
    assert_eq!(told, [(1_795_232_911_000, 3), (1_795_232_912_000, 2)]);
}

/// Intervals (ms) of a loop that is followed from the begin of a trial, after others before it.
fn followed(before_ms: f64, intervals_ms: &[f64], ends: bool) -> (Option<f64>, u64) {
    let mut reader = TickLogReader::of(TickForm::Statsd { metric: None }, None);
    let lines = |each: &[f64]| each.iter().map(|ms| format!("t:{ms}|ms\n")).collect::<String>();
    reader.read_at(1_700_000_000_000);
    reader.push(lines(&[before_ms; 150]).as_bytes());
    reader.forget_waiting();
    reader.push(lines(intervals_ms).as_bytes());
    if ends {
        reader.close_before(u64::MAX);
    }
    reader.close_before(1_700_000_010_000);
    (reader.rate_hz(), reader.take_seconds().iter().map(|second| second.counts.due).sum())
}

#[test]
fn the_rate_of_a_followed_source_is_that_of_its_trial() {
    assert_eq!(followed(100.0, &[33.3; 200], false), (Some(30.0), 200));
    assert_eq!(followed(100.0, &[33.3; 199], false), (None, 0), "it waits");
    assert_eq!(followed(100.0, &[33.3; 60], true), (Some(30.0), 60), "a trial ends");
    assert_eq!(followed(100.0, &[33.3; 49], true), (None, 0), "and tells too little");
}
