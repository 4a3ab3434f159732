use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::distribution::Distribution;

const ORIGINAL_500: &[u8] = include_bytes!("../../tests/data/original-500.log");
const ORIGINAL_1000: &[u8] = include_bytes!("../../tests/data/original-1000.log");
const ORIGINAL_BEST_1000: &[u8] = include_bytes!("../../tests/data/original-best-1000.log");

fn read(bytes: &[u8]) -> (TickLogSummary, Vec<LoggedSecond>) {
    let mut reader = TickLogReader::new(60.0);
    reader.push(bytes);
    reader.finish();
    let seconds = reader.take_seconds();
    (reader.summary().clone(), seconds)
}

fn own_line(to_ms: u64, more: &str) -> String {
    format!(
        r#"{{"level":40,"time":{to_ms},"pid":7,"hostname":"h","title":"stepladder","from_ms":{},"to_ms":{to_ms}{more}}}"#,
        to_ms - 1_000
    ) + "\n"
}

#[test]
fn the_original_logs_give_exactly_their_known_figures() {
    // on time, over, under, late share, games, ticks in the histogram, p50, p99, max, 0 ms ticks
    type Known = (u64, u64, u64, f64, u64, u64, u64, u64, u64, u64);
    let check = |log: &[u8], expected: Known, span_s: std::ops::Range<f64>| {
        let (summary, _) = read(log);
        let counts = summary.counts();
        let late_share = (counts.late_share().unwrap() * 1e4).round() / 1e4;
        let (p50, p99) = (summary.quantile_ms(0.5).unwrap(), summary.quantile_ms(0.99).unwrap());
        let found = (
            counts.on_time,
            counts.over,
            counts.under,
            late_share,
            summary.games.unwrap(),
            summary.tick_count(),
            p50,
            p99,
            summary.max_ms().unwrap(),
            summary.zero_ms(),
        );
        assert_eq!(found, expected);
        assert!(counts.balances());
        assert_eq!((summary.mean_ms().unwrap() * 100.0).round(), 1667.0, "the mean says nothing");
        assert_eq!((summary.malformed, summary.mixed_runs), (0, 0));
        assert!(span_s.contains(&summary.span_s()), "{} s", summary.span_s());
    };
    check(ORIGINAL_500, (650_033, 365_451, 148_872, 0.4417, 1_520, 1_164_356, 17, 25, 62, 4_621), 40.0..41.0);
    check(
        ORIGINAL_1000,
        (289_792, 616_934, 509_506, 0.7954, 1_656, 1_416_232, 17, 52, 115, 168_631),
        30.0..31.0,
    );
    check(
        ORIGINAL_BEST_1000,
        (1_667_143, 269_451, 28_398, 0.1516, 3_999, 1_964_993, 17, 19, 35, 0),
        35.0..36.0,
    );
}

#[test]
fn counters_and_histogram_that_contradict_each_other_are_both_told() {
    assert_eq!(read(ORIGINAL_500).0.disagreement(), None);
    assert_eq!(read(ORIGINAL_1000).0.disagreement(), None);
    let disagreement = read(ORIGINAL_BEST_1000).0.disagreement().unwrap();
    assert_eq!(disagreement.counted.over, 269_451);
    assert_eq!(disagreement.histogram.over, 269_452);
    assert_eq!(disagreement.histogram.due, disagreement.counted.due + 1);
}

#[test]
fn the_seconds_of_a_log_add_up_to_the_whole() {
    for log in [ORIGINAL_500, ORIGINAL_1000, ORIGINAL_BEST_1000] {
        let (summary, seconds) = read(log);
        let mut counts = crate::TickCounts::default();
        seconds.iter().for_each(|second| counts.add(&second.counts));
        assert_eq!(counts, summary.counts());
        assert_eq!(seconds.len() as u64, summary.seconds);
        assert_eq!(seconds.iter().map(|second| second.interval.count()).sum::<u64>(), summary.tick_count());
        let games = seconds.iter().flat_map(|second| &second.counters);
        let games: u64 = games.filter(|(name, _)| name == "games_played").map(|(_, count)| count).sum();
        assert_eq!(Some(games), summary.games);
        assert!(seconds.windows(2).all(|pair| pair[0].to_ms == pair[1].from_ms));
    }
}

#[test]
fn titles_that_the_format_does_not_know_are_counted() {
    let (summary, _) = read(ORIGINAL_BEST_1000);
    assert_eq!(summary.other_titles.get("timeout-loop-too-long"), Some(&12));
    assert_eq!(summary.messages, 40);
    assert_eq!(read(ORIGINAL_500).0.other_titles.get("tickRuntime"), Some(&40));
}

#[test]
fn our_own_line_tells_a_whole_second() {
    let mut interval = Distribution::new();
    interval.record_many(16_667_000, 55);
    interval.record_many(18_200_000, 3);
    let classes =
        r#","tick_rate":60,"due":60,"on_time":55,"over":3,"under":0,"missed":2,"isr_numerator_ns":1.5"#;
    let more = format!(
        r#"{classes},"games":1,"games_played":4,"waiting":1,"sockets":3,"shots":90,"interval_ns":"{}""#,
        STANDARD.encode(interval.to_v2())
    );
    let (summary, seconds) = read(own_line(1_795_230_437_402, &more).as_bytes());
    assert_eq!(summary.malformed_examples, []);
    assert_eq!(summary.counts().late_share(), Some(5.0 / 60.0));
    assert_eq!(summary.histogram.iter().collect::<Vec<_>>(), [(&16, &55), (&18, &3)]);
    assert_eq!(summary.disagreement(), None, "58 ticks were run, 58 are in the histogram");
    assert_eq!(summary.games, Some(4));
    let [second] = &seconds[..] else { panic!("one second") };
    assert_eq!(second.interval, interval);
    assert_eq!(second.counters, [("games_played".to_owned(), 4), ("shots".to_owned(), 90)]);
    assert_eq!(second.gauges.len(), 3);
    assert_eq!(second.isr_numerator_ns, Some(1.5));

    let zero_ns = 1_795_230_430_000_000_000;
    let on_trial_clock = second.clone().into_tick_second("log", zero_ns).unwrap();
    assert_eq!((on_trial_clock.from_ns, on_trial_clock.to_ns), (6_402_000_000, 7_402_000_000));
    assert_eq!(second.clone().into_tick_second("log", zero_ns + 7_000_000_000), None);
}

#[test]
fn a_second_told_in_both_dialects_is_counted_once() {
    let time = 1_795_230_437_402u64;
    let original = |title: &str, rest: &str| {
        format!(r#"{{"level":40,"time":{time},"pid":7,"hostname":"h","title":"{title}",{rest}}}"#) + "\n"
    };
    let log = [
        original("tickInterval", r#""pointSet":{"16":50,"18":8}"#),
        original("tickOnTime", r#""count":50"#),
        original("tickIntervalOverrun", r#""count":8"#),
        original("games-played", r#""count":3"#),
        own_line(time, r#","tick_rate":60,"on_time":50,"over":8,"missed":2,"games_played":3"#),
    ];
    let (summary, seconds) = read(log.concat().as_bytes());
    assert_eq!(summary.counts().due, 60);
    assert_eq!(summary.games, Some(3));
    assert_eq!(seconds.len(), 1);
    assert_eq!(seconds[0].counters, [("games_played".to_owned(), 3)]);
    assert_eq!(summary.disagreement(), None);
}

#[test]
fn a_log_without_counters_is_judged_by_its_histogram() {
    let line = r#"{"time":1000,"title":"tickInterval","pointSet":{"0":1,"33":7,"40":2}}"#;
    let mut reader = TickLogReader::new(30.0);
    reader.push(line.as_bytes());
    reader.finish();
    let counts = reader.summary().counts();
    assert_eq!((counts.under, counts.on_time, counts.over), (1, 7, 2));
    assert!(!reader.summary().has_counters());
    assert_eq!(reader.take_seconds()[0].counts, counts);
}

#[test]
fn malformed_lines_are_counted_and_named() {
    let check = |line: &str, expected: &str| {
        let (summary, _) = read(format!("\n{line}\n").as_bytes());
        assert_eq!(summary.malformed, 1, "{line}");
        let found = &summary.malformed_examples[0];
        assert_eq!((found.line, found.reason.as_str()), (2, expected));
    };
    check("[1]", "not a JSON object");
    check("hello", "not JSON: expected value at column 1");
    check(r#"{"time":5,"title":"tickOn"#, "cut off after 25 characters");
    check(r#"{"title":"tickOnTime","count":1}"#, "no \"time\"");
    check(r#"{"time":5,"title":"tickOnTime"}"#, "a counter without \"count\"");
    check(r#"{"time":5,"title":"tickOnTime","count":-1}"#, "\"count\" is -1, not a whole number");
    check(r#"{"time":5,"title":"tickInterval"}"#, "a tickInterval without \"pointSet\"");
    check(r#"{"time":5,"title":"tickInterval","pointSet":{"x":1}}"#, "\"x\" is not a number of whole ms");
    check(
        r#"{"time":5,"title":"stepladder","due":60,"on_time":59}"#,
        "60 ticks due, but its classes add up to 59",
    );
    check(
        r#"{"time":5,"title":"stepladder","interval_ns":"AAAA"}"#,
        "\"interval_ns\" is not an HDR V2 histogram: it is shorter than a header",
    );
    check(
        r#"{"time":5,"title":"tickOnTime","count":18446744073709551615}"#,
        "\"count\" is 18446744073709551615, which cannot be true",
    );
    let (summary, _) = read("oops\n".repeat(9).as_bytes());
    assert_eq!((summary.malformed, summary.malformed_examples.len()), (9, KEPT_EXAMPLES));
}

#[test]
fn a_number_that_cannot_be_spoils_its_line_and_no_other() {
    let good = own_line(1_700_000_001_000, r#","on_time":60,"shots":7"#);
    let mut huge = Distribution::new();
    huge.record_many(16_000_000, u64::MAX / 2);
    let huge = STANDARD.encode(huge.to_v2());
    let check = |bad: String, reason: &str| {
        let (summary, seconds) = read((good.clone() + &bad + &own_line(1_700_000_009_000, "")).as_bytes());
        assert_eq!((summary.malformed, seconds.len()), (1, 2), "{bad}");
        assert!(summary.malformed_examples[0].reason.contains(reason), "{:?}", summary.malformed_examples);
        assert_eq!((summary.counts().due, summary.malformed_examples[0].line), (60, 2));
    };
    let own = |more: &str| own_line(1_700_000_002_000, more);
    let max = u64::MAX;
    for name in ["on_time", "over", "under", "missed", "due", "to_ms", "shots", "games", "games_played"] {
        check(own(&format!(r#","{name}":{max}"#)), &format!("\"{name}\" is {max}"));
    }
    check(own(r#","on_time":1000000000001"#), "cannot be true");
    check(own(&format!(r#","interval_ns":"{huge}""#)), "more values than there can be");
    check(format!("{{\"time\":{max},\"title\":\"tickOnTime\",\"count\":1}}\n"), "\"time\" is");
    check("{\"time\":9999999999999,\"title\":\"tickOnTime\",\"count\":1}\n".to_owned(), "\"time\" is");
    let points = |points: &str| {
        format!("{{\"time\":1700000002000,\"title\":\"tickInterval\",\"pointSet\":{{{points}}}}}\n")
    };
    check(points(r#""3600001":1"#), "3600001 ms");
    check(points(&format!(r#""16":{max}"#)), "ticks of 16 ms");
    check(points(r#""16":600000000000,"016":600000000000"#), "ticks of");
    let long = own_line(1_700_000_002_000, "").replace(r#""from_ms":1700000001000"#, r#""from_ms":1000"#);
    check(long, "it tells of");
}

#[test]
fn a_clock_in_a_line_is_neither_a_count_nor_a_mistake() {
    let line = own_line(1_700_000_001_000, r#","on_time":60,"written_us":1700000001000000"#);
    let (summary, seconds) = read(line.as_bytes());
    assert_eq!((summary.malformed, seconds[0].counters.len()), (0, 0));
}

#[test]
fn a_line_without_an_end_does_not_fill_the_memory() {
    let mut reader = TickLogReader::new(60.0);
    for _ in 0..40 {
        reader.push(&[b'x'; 100_000]);
        assert!(reader.partial.len() <= LONGEST_LINE_BYTES);
    }
    reader.push(b"\n{\"time\":5,\"title\":\"tickOnTime\",\"count\":1}\n");
    reader.finish();
    assert_eq!(reader.summary().malformed, 1);
    assert_eq!(reader.summary().counts().on_time, 1);
}

#[test]
fn a_log_that_names_new_things_without_end_does_not_fill_the_memory() {
    let check = |line: &dyn Fn(usize) -> String, reason: &str| {
        let text: String = (0..1000).map(line).collect();
        let (summary, seconds) = read(text.as_bytes());
        let counters: BTreeSet<String> =
            seconds.iter().flat_map(|second| &second.counters).map(|(name, _)| name.clone()).collect();
        assert!(summary.other_titles.len() <= NAMES_MAX && counters.len() <= NAMES_MAX);
        assert!(summary.malformed >= 1000 - NAMES_MAX as u64, "{}", summary.malformed);
        assert!(summary.malformed_examples[0].reason.contains(reason), "{:?}", summary.malformed_examples);
    };
    let many = "more than 200 titles and counters";
    check(&|at| own_line(2_000 + 1_000 * at as u64, &format!(r#","on_time":60,"new{at}":1"#)), many);
    check(&|at| format!("{{\"time\":{at},\"title\":\"new{at}\",\"count\":1}}\n"), many);
    let name = "n".repeat(NAME_BYTES_MAX + 1);
    check(
        &|at| format!("{{\"time\":{at},\"title\":\"{name}\",\"count\":1}}\n"),
        "a name of more than 200 bytes",
    );
    check(&|at| own_line(2_000 + at as u64, &format!(r#","{name}":1"#)), "a name of more than 200 bytes");
}

#[test]
fn processes_without_end_are_told_and_not_all_kept() {
    let line = |at: usize| format!("{{\"time\":{at},\"pid\":{at},\"hostname\":\"h\",\"msg\":\"\"}}\n");
    let mut reader = TickLogReader::new(60.0);
    (0..1000).for_each(|at| reader.push(line(at).as_bytes()));
    assert_eq!(reader.processes.len(), NAMES_MAX);
    assert_eq!(reader.summary().mixed_runs, 999);
}

#[test]
fn intervals_without_end_are_told_apart_by_seconds_at_last() {
    let mut reader = TickLogReader::new(60.0);
    for line in 0..40_u64 {
        let points: Vec<String> = (0..5_000).map(|at| format!("\"{}\":1", line * 5_000 + at)).collect();
        let (ms, points) = (1_000 * line, points.join(","));
        let line = format!(r#"{{"time":{ms},"title":"tickInterval","pointSet":{{{points}}}}}"#) + "\n";
        reader.push(line.as_bytes());
    }
    reader.finish();
    let summary = reader.summary();
    assert_eq!((summary.malformed, summary.tick_count()), (0, 200_000));
    assert_eq!((summary.histogram.len(), summary.max_ms()), (100_101, Some(200_000)));
}

#[test]
fn two_runs_in_one_file_are_noticed() {
    let check = |first: &str, second: &str, expected: &str| {
        let (summary, _) = read(format!("{first}{second}").as_bytes());
        assert_eq!(summary.mixed_runs, 1);
        assert_eq!(summary.mixed_examples[0].line, 2);
        assert_eq!(summary.mixed_examples[0].reason, expected);
    };
    let line = |time: u64, pid: u64, host: &str| {
        format!(r#"{{"time":{time},"pid":{pid},"hostname":"{host}","title":"tickOnTime","count":1}}"#) + "\n"
    };
    check(&line(10_000, 1, "a"), &line(20_000, 2, "a"), "process 2 after process 1");
    check(&line(10_000, 1, "a"), &line(20_000, 1, "b"), "host b after host a");
    check(&line(10_000, 1, "a"), &line(2_000, 1, "a"), "the time goes back by 8.0 s");
    check(
        &own_line(10_000, r#","tick_rate":60"#),
        &own_line(11_000, r#","tick_rate":30"#),
        "30 Hz after 60 Hz",
    );
    let appended = [ORIGINAL_500, ORIGINAL_BEST_1000].concat();
    assert_eq!(read(&appended).0.mixed_runs, 1);
}

#[test]
fn a_follower_knows_a_second_before_the_next_one_begins() {
    let mut reader = TickLogReader::new(60.0);
    reader.push(b"{\"time\":5000,\"title\":\"tickOnTime\",\"count\":60}\n");
    reader.close_before(5_100);
    assert_eq!(reader.take_seconds().len(), 0, "its other lines may still come");
    reader.close_before(5_600);
    let seconds = reader.take_seconds();
    assert_eq!((seconds.len(), seconds[0].from_ms, seconds[0].to_ms), (1, 4_000, 5_000));
}

#[test]
fn an_empty_log_has_no_figures() {
    let (summary, seconds) = read(b"");
    assert!(summary.has_no_ticks() && seconds.is_empty());
    assert_eq!((summary.counts().late_share(), summary.mean_ms(), summary.max_ms()), (None, None, None));
    assert_eq!((summary.quantile_ms(0.5), summary.games), (None, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_log_cut_anywhere_reads_the_same(mut cuts in proptest::collection::vec(0..ORIGINAL_BEST_1000.len(), 0..60)) {
        cuts.sort_unstable();
        let mut reader = TickLogReader::new(60.0);
        let (mut begin, mut seconds) = (0, Vec::new());
        for cut in cuts {
            reader.push(&ORIGINAL_BEST_1000[begin..cut]);
            seconds.extend(reader.take_seconds());
            begin = cut;
        }
        reader.push(&ORIGINAL_BEST_1000[begin..]);
        reader.finish();
        seconds.extend(reader.take_seconds());
        let (summary, whole) = read(ORIGINAL_BEST_1000);
        prop_assert_eq!(seconds, whole);
        prop_assert_eq!(&reader.summary().histogram, &summary.histogram);
        prop_assert_eq!(reader.summary().lines, summary.lines);
    }

    #[test]
    fn no_bytes_make_the_reader_fail(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read(&bytes);
    }
}

#[test]
fn a_server_that_writes_four_times_a_second_is_read_entry_by_entry() {
    let mut log = String::new();
    let entry = |to_ms: u64, due: u64| {
        let histogram = format!(
            r#"{{"time":{to_ms},"pid":7,"hostname":"h","title":"tickInterval","pointSet":{{"33":{due}}}}}"#
        );
        let own = own_line(to_ms, &format!(r#","due":{due},"on_time":{due},"frames":{due}"#));
        if due > 0 { histogram + "\n" + &own } else { own }
    };
    // The third has no tick, so that it lacks the line which tells the fourth from it.
    for (at, due) in [8, 7, 0, 9, 6].into_iter().enumerate() {
        log += &entry(10_000 + at as u64 * 250, due);
    }
    let (summary, seconds) = read(log.as_bytes());
    let due: Vec<u64> = seconds.iter().map(|second| second.counts.due).collect();
    assert_eq!(due, [8, 7, 0, 9, 6]);
    let intervals: Vec<u64> = seconds.iter().map(|second| second.interval.count()).collect();
    assert_eq!(intervals, due);
    assert!(seconds.iter().all(|second| second.counters == [("frames".to_owned(), second.counts.due)]));
    assert_eq!((summary.counts().due, summary.malformed), (30, 0));
}

#[test]
fn a_rate_that_no_loop_has_is_a_line_that_cannot_be_read() {
    for rate in ["1e-300", "5e-324", "1e300", "0.0001"] {
        let mut reader = TickLogReader::new(60.0);
        reader.push(
            format!("{{\"time\":1,\"title\":\"stepladder\",\"tick_rate\":{rate},\"due\":0}}\n").as_bytes(),
        );
        reader.finish();
        let summary = reader.summary();
        assert_eq!((summary.malformed, summary.tick_rate_hz()), (1, 60.0), "{rate}");
        assert!(summary.malformed_examples[0].reason.contains("cannot be true"), "{summary:?}");
    }
}

/// A few hundred lines once cost 22 s: each histogram asked for a table of millions of entries.
#[test]
fn a_log_of_histograms_that_ask_for_large_tables_is_read_at_once() {
    let mut bytes = 0x1c84_9313u32.to_be_bytes().to_vec();
    [0u32, 0, 5].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
    [1, i64::MAX as u64, 1f64.to_bits()].iter().for_each(|word| bytes.extend(word.to_be_bytes()));
    let bomb = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    let mut reader = TickLogReader::new(60.0);
    for second in 1..=200 {
        let line = format!(
            "{{\"time\":{second}000,\"title\":\"stepladder\",\"interval_ns\":\"{bomb}\",\"busy_ns\":\"{bomb}\"}}\n"
        );
        reader.push(line.as_bytes());
    }
    reader.finish();
    assert_eq!((reader.summary().malformed, reader.summary().seconds), (200, 0));
}

#[test]
fn the_largest_counts_that_a_line_may_tell_add_up_and_never_wrap() {
    const LARGEST: u64 = crate::distribution::COUNT_MAX;
    let mut reader = TickLogReader::new(60.0);
    for second in 1..=300 {
        let line = format!(
            "{{\"time\":{second}000,\"title\":\"tickInterval\",\"pointSet\":{{\"3600000\":{LARGEST}}}}}\n\
             {{\"time\":{second}000,\"title\":\"tickIntervalOverrun\",\"count\":{LARGEST}}}\n\
             {{\"time\":{second}000,\"title\":\"games-played\",\"count\":{LARGEST}}}\n"
        );
        reader.push(line.as_bytes());
    }
    reader.finish();
    let summary = reader.summary();
    assert_eq!(summary.counts().over, 300 * LARGEST);
    assert_eq!((summary.games, summary.max_ms()), (Some(300 * LARGEST), Some(3_600_000)));
    assert_eq!((summary.mean_ms(), summary.quantile_ms(0.99)), (Some(3.6e6), Some(3_600_000)));
    assert_eq!((summary.disagreement(), summary.figures().late_share), (None, Some(1.0)));
}
