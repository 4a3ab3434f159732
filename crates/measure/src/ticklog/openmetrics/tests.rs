use super::*;
use crate::ticks::TickCounts;

const ZERO_MS: u64 = 1_700_000_000_000;
const NAME: &str = "tick_interval_seconds";

fn reader(rate_hz: f64) -> MetricReader {
    MetricReader::new(Some(NAME.to_owned()), None, rate_hz)
}

/// A histogram with these upper edges (ms) after these intervals (ms).
fn body(edges_ms: &[f64], intervals_ms: &[f64]) -> String {
    let up_to = |edge: f64| intervals_ms.iter().filter(|ms| **ms <= edge).count();
    let mut text = format!("# TYPE {NAME} histogram\n");
    for edge in edges_ms {
        text += &format!("{NAME}_bucket{{le=\"{}\"}} {}\n", edge / 1e3, up_to(*edge));
    }
    let sum: f64 = intervals_ms.iter().sum();
    text + &format!(
        "{NAME}_bucket{{le=\"+Inf\"}} {count}\n{NAME}_sum {}\n{NAME}_count {count}\n",
        sum / 1e3,
        count = intervals_ms.len()
    )
}

/// What a loop with these intervals (ms), over and over, comes to in ten seconds: its counts and those of them that are unclear.
fn of_loop(reader: &mut MetricReader, edges_ms: &[f64], intervals_ms: &[f64]) -> (TickCounts, u64) {
    let (mut all, mut elapsed_ms) = (Vec::new(), 0.0);
    let mut each = intervals_ms.iter().cycle();
    for second in 0..=10 {
        while elapsed_ms < f64::from(second) * 1e3 {
            let ms = *each.next().unwrap();
            all.push(ms);
            elapsed_ms += ms;
        }
        reader.take(ZERO_MS + 1_000 * second as u64, body(edges_ms, &all).as_bytes());
    }
    let (mut counts, mut unclear) = (TickCounts::default(), 0);
    for second in reader.take_seconds() {
        assert!(second.counts.balances(), "{second:?}");
        counts.add(&second.counts);
        unclear += ServerCounter::TicksUnclear.of(&second.counters).unwrap_or(0);
    }
    (counts, unclear)
}

/// Late ticks at least and at most, of all.
#[track_caller]
fn check(edges_ms: &[f64], intervals_ms: &[f64], least: f64, most: f64, said: &str) {
    let mut reader = reader(30.0);
    let (counts, unclear) = of_loop(&mut reader, edges_ms, intervals_ms);
    let late = counts.over + counts.under;
    let share = |ticks: u64| ticks as f64 / counts.due as f64;
    let found = (share(late - unclear), share(late));
    assert!((found.0 - least).abs() < 0.02 && (found.1 - most).abs() < 0.02, "{found:?}");
    reader.end_trial();
    let said_of = reader.take_notices().iter().map(|notice| notice.text.clone()).collect::<String>();
    assert!(said_of.ends_with(said) && said_of.is_empty() == said.is_empty(), "{said_of}");
}

#[test]
fn edges_at_the_limits_tell_exactly_and_others_give_bounds() {
    // At 30 Hz 32, 33 and 34 whole ms are on time. With a clock of whole ms an edge of 35 holds what is late already.
    check(&[31.0, 34.0], &[33.0, 34.0, 33.0], 0.0, 0.0, "");
    check(&[31.0, 34.0], &[33.0, 34.0, 35.0, 31.0], 0.5, 0.5, "");
    check(&[32.0, 35.0], &[33.0, 34.0, 33.0], 0.0, 1.0, "add buckets at 34 ms");
    check(&[31.0, 50.0], &[33.0, 34.0, 33.0], 0.0, 1.0, "add buckets at 34 ms");
    // A finer clock: nothing lies exactly at an edge.
    check(&[32.0, 35.0], &[33.37, 34.91, 32.11], 0.0, 0.0, "");
    check(&[32.0, 35.0], &[33.37, 35.21, 31.13], 2.0 / 3.0, 2.0 / 3.0, "");
    check(&[31.0, 34.0], &[33.37, 34.91, 32.11], 0.0, 1.0, "add buckets at 32 ms and 35 ms");
    // Ticks far from the limits are known whatever the edges are.
    check(&[5.0, 10.0, 25.0, 50.0, 100.0], &[71.3], 1.0, 1.0, "");
    check(&[5.0, 10.0, 25.0, 50.0, 100.0], &[33.3, 33.31, 33.3, 63.32], 0.25, 1.0, "32 ms and 35 ms");
    check(&[], &[33.3, 33.31], 0.0, 1.0, "add buckets at 32 ms and 35 ms");
}

#[test]
fn a_slow_loop_is_late_whatever_its_edges_are() {
    for edges in [&[32.0, 35.0][..], &[31.0, 34.0], &[33.0], &[50.0], &[10.0, 100.0], &[]] {
        for slow in [35.0, 35.2, 36.0, 50.0, 66.7, 250.0] {
            let (counts, _) = of_loop(&mut reader(30.0), edges, &[slow]);
            assert_eq!(counts.on_time, 0, "{slow} ms with {edges:?}");
        }
    }
}

#[test]
fn the_work_of_a_tick_is_not_taken_for_the_time_between_two() {
    let mut reader = reader(30.0);
    for second in 0..10u64 {
        let all = vec![33.3; 30 * second as usize];
        // 30 ticks of 5 ms in each second, read as if they were intervals.
        let text = body(&[32.0, 35.0], &all).replace(
            &format!("_sum {}", all.iter().sum::<f64>() / 1e3),
            &format!("_sum {}", 0.15 * second as f64),
        );
        reader.take(ZERO_MS + 1_000 * second, text.as_bytes());
    }
    reader.end_trial();
    assert_eq!(reader.take_seconds(), []);
    let notices = reader.take_notices();
    assert!(notices.len() == 1 && notices[0].text.contains("5.0 ms in the mean of 270 ticks"), "{notices:?}");
}

#[test]
fn a_loop_at_another_rate_than_was_said_is_not_judged() {
    let mut reader = reader(30.0);
    assert_eq!(of_loop(&mut reader, &[32.0, 35.0], &[16.7]).0.due, 0);
    reader.end_trial();
    assert!(reader.take_notices()[0].text.contains("or the tick rate is another"));
}

#[test]
fn a_loop_that_begins_later_is_judged_from_then_on() {
    let mut reader = reader(30.0);
    let ticks = [0, 0, 0, 12, 42, 72, 102, 132];
    for (second, ticks) in ticks.into_iter().enumerate() {
        reader.take(ZERO_MS + 1_000 * second as u64, body(&[32.0, 35.0], &vec![33.37; ticks]).as_bytes());
    }
    assert_eq!(reader.take_seconds().iter().map(|second| second.counts.on_time).sum::<u64>(), 132);
}

/// What is said of this text as an answer.
#[track_caller]
fn refused(text: &str, said: &str) {
    let mut reader = reader(30.0);
    reader.take(ZERO_MS, text.as_bytes());
    let notices = reader.take_notices();
    assert_eq!(notices.iter().map(|notice| notice.text.as_str()).collect::<Vec<_>>(), [said], "{text}");
    assert!(notices[0].is_loss);
    reader.take(ZERO_MS + 1_000, text.as_bytes());
    assert_eq!(reader.take_notices(), [], "it is said once");
    reader.end_trial();
    reader.begin_trial();
    reader.take(ZERO_MS + 2_000, text.as_bytes());
    assert_eq!(reader.take_notices().len(), 1, "and again in the next trial");
    assert_eq!(reader.take_seconds(), []);
}

#[test]
fn what_was_wrong_before_a_trial_is_not_told_in_it_and_no_more_than_five_faults_are() {
    let mut reader = reader(30.0);
    reader.take(ZERO_MS, b"<html>");
    reader.begin_trial();
    assert_eq!(reader.take_notices(), []);
    for at in 0..9 {
        reader.take(ZERO_MS, format!("fault {at} of it\n").as_bytes());
    }
    assert_eq!(reader.take_notices().len(), KEPT_EXAMPLES);
}

#[test]
fn bad_answers_are_named() {
    refused(
        "<!doctype html>\n",
        "the answer is HTML and no metrics; check the path, which often is /metrics",
    );
    refused("a 1\nb", "the answer ends in the middle of a line");
    refused("a 1\nb x\n", "line 2 is no sample of a metric: \"b x\"");
    refused("a{b=\"c} 1\n", "line 1 is no sample of a metric: \"a{b=\\\"c} 1\"");
    refused("", "no metric is named tick_interval_seconds; there is no histogram of times");
    refused(
        "a_seconds_bucket{le=\"1\"} 1\nb_ms_bucket{le=\"1\"} 1\nc_bytes_bucket{le=\"1\"} 1\n",
        "no metric is named tick_interval_seconds; histograms of times are a_seconds, b_ms",
    );
    let of = |text: &str| text.replace("NAME", NAME);
    let histogram =
        |lines: &str| of(lines) + &of("NAME_bucket{le=\"+Inf\"} 2\nNAME_sum 0.06\nNAME_count 2\n");
    for (lines, said) in [
        (
            "NAME_bucket{le=\"1\"} 1\nNAME_bucket{le=\"1\"} 1\n",
            "line 2 says \"NAME_bucket{le=\\\"1\\\"} 1\" again",
        ),
        ("NAME_bucket{le=\"1\"} 3\n", "the bucket le=\"+Inf\" of NAME holds fewer than the one before it"),
        ("NAME_bucket{le=\"1\"} NaN\n", "the bucket le=\"1\" of NAME holds NaN, which is no count"),
        ("NAME_bucket{le=\"1\"} 0.5\n", "the bucket le=\"1\" of NAME holds 0.5, which is no count"),
        ("NAME_bucket{le=\"x\"} 1\n", "line 1: le is no number: \"NAME_bucket{le=\\\"x\\\"} 1\""),
        ("NAME_bucket 1\n", "line 1 is a bucket without le: \"NAME_bucket 1\""),
    ] {
        refused(&histogram(lines), &of(said));
    }
    let no_infinity = "NAME has no bucket le=\"+Inf\", so its ticks cannot be counted";
    let unlike = "NAME_bucket{a=\"1\",le=\"+Inf\"} 2\nNAME_sum{a=\"1\"} 1\nNAME_bucket{a=\"2\",le=\"1\"} 2\nNAME_bucket{a=\"2\",le=\"+Inf\"} 2\nNAME_sum{a=\"2\"} 1\n";
    for (text, said) in [
        ("NAME_bucket{le=\"1\"} 2\nNAME_sum 1\n", no_infinity),
        ("NAME_bucket{le=\"+Inf\"} 2\nNAME_sum NaN\n", "NAME_sum is NaN, which is no sum of times"),
        ("NAME_bucket{le=\"+Inf\"} 2\nNAME_sum +Inf\n", "NAME_sum is +Inf, which is no sum of times"),
        ("NAME_bucket{le=\"+Inf\"} 2\n", "NAME_sum is missing"),
        ("NAME_bucket{le=\"+Inf\"} 2\nNAME_sum 1\nNAME_count 3\n", "NAME_count is 3, and its buckets hold 2"),
        (unlike, "series of NAME have different buckets; give all the same"),
        ("# TYPE NAME counter\nNAME 5\n", "NAME is a counter, which tells of no times; name a histogram"),
        ("NAME NaN\n", "NAME is NaN, which is no time"),
    ] {
        refused(&of(text), &of(said));
    }
}

#[test]
fn a_restart_and_other_buckets_leave_one_interval_out() {
    let mut reader = reader(30.0);
    of_loop(&mut reader, &[32.0, 35.0], &[33.37]);
    let mut at_ms = ZERO_MS + 10_000;
    let mut take = |edges: &[f64], ticks: usize| {
        at_ms += 1_000;
        reader.take(at_ms, body(edges, &vec![33.37; ticks]).as_bytes());
        let ticks: u64 = reader.take_seconds().iter().map(|second| second.counts.due).sum();
        (ticks, reader.take_notices().into_iter().map(|notice| notice.text).collect::<String>())
    };
    let left_out = "what it told between two readings is left out";
    let restart =
        format!("{NAME} counts less than a moment ago, as after a restart of the server; {left_out}");
    assert_eq!(take(&[32.0, 35.0], 12), (0, restart));
    assert_eq!(take(&[32.0, 35.0], 42), (30, String::new()));
    assert_eq!(take(&[32.0, 50.0], 72), (0, format!("the buckets of {NAME} changed; {left_out}")));
    assert_eq!(take(&[32.0, 50.0], 102), (30, String::new()));
}

#[test]
fn series_are_added_up_and_an_old_one_that_appears_is_counted_from_then_on() {
    let series = |room: &str, ticks: u64| {
        let labels = format!("room=\"{room}\"");
        format!(
            "{NAME}_bucket{{{labels},le=\"0.032\"}} 0\n{NAME}_bucket{{{labels},le=\"0.035\"}} {ticks}\n\
             {NAME}_bucket{{le=\"+Inf\",{labels}}} {ticks} # {{trace=\"x\"}} 0.03 1.0\n{NAME}_sum{{{labels}}} {} 17\n{NAME}_count{{{labels}}} {ticks}\n# EOF\nno more",
            ticks as f64 * 0.03337
        )
        .replace("# EOF\nno more", "")
    };
    let mut reader = reader(30.0);
    for second in 0..=5 {
        let text =
            series("a, \\\"b\\\"", 1_000 + 30 * second) + &series("c", 30 * second) + "# EOF\nno more\n";
        reader.take(ZERO_MS + 1_000 * second, text.as_bytes());
    }
    let counted = |reader: &mut MetricReader| -> u64 {
        reader.take_seconds().iter().map(|second| second.counts.on_time).sum()
    };
    assert_eq!((counted(&mut reader), reader.take_notices()), (300, Vec::new()));
    let text = series("a, \\\"b\\\"", 1_180) + &series("c", 180) + &series("new", 20) + &series("old", 9_000);
    reader.take(ZERO_MS + 6_000, text.as_bytes());
    assert_eq!((counted(&mut reader), reader.take_notices()), (80, Vec::new()));
}

#[test]
fn units_come_from_the_name_or_are_said() {
    let check = |name: &str, unit: Option<TimeUnit>, per_tick: f64, is_read: bool| {
        let mut reader = MetricReader::new(Some(name.to_owned()), unit, 30.0);
        for second in 0..=5u64 {
            let count = 30 * second;
            let text =
                format!("{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {}\n", count as f64 * per_tick);
            reader.take(ZERO_MS + 1_000 * second, text.as_bytes());
        }
        assert_eq!(reader.take_seconds().len() == 5, is_read, "{name}");
        let unknown =
            format!("the unit of {name} is not known; say it behind the name: {name}:s or {name}:ms");
        assert_eq!(reader.take_notices().iter().any(|notice| notice.text == unknown), !is_read);
    };
    check("tick_seconds", None, 0.0334, true);
    check("tick_milliseconds", None, 33.4, true);
    check("tick_us", None, 33_400.0, true);
    check("tick", Some(TimeUnit::Ms), 33.4, true);
    check("tick_seconds", Some(TimeUnit::Ms), 33.4, true);
    check("tick", None, 33.4, false);
}

#[test]
fn the_only_histogram_of_times_need_not_be_named() {
    let mut reader = MetricReader::new(None, None, 30.0);
    of_loop(&mut reader, &[32.0, 35.0], &[33.37]);
    assert_eq!(reader.take_notices(), []);
    let mut reader = MetricReader::new(None, None, 30.0);
    reader.take(ZERO_MS, b"a_seconds_bucket{le=\"1\"} 1\nb_seconds_bucket{le=\"1\"} 1\n");
    assert_eq!(
        reader.take_notices()[0].text,
        "which histogram is meant? Name one behind #: a_seconds, b_seconds"
    );
    reader.take(ZERO_MS, b"up 1\n");
    assert_eq!(reader.take_notices()[0].text, "there is no histogram of times (\u{2026}_seconds)");
}

#[test]
fn summaries_and_gauges_are_shown_and_judge_nothing() {
    let shown = |texts: [&str; 2]| {
        let mut reader = reader(30.0);
        for (second, text) in texts.iter().enumerate() {
            reader.take(ZERO_MS + 1_000 * second as u64, text.replace("NAME", NAME).as_bytes());
        }
        assert_eq!(reader.take_seconds(), []);
        reader.end_trial();
        reader.take_notices().into_iter().map(|notice| notice.text).collect::<String>()
    };
    let gauge = shown(["NAME 0.033\n", "NAME 0.0412\n"]);
    assert!(
        gauge.starts_with(&format!("{NAME} is a gauge, of 33.0 to 41.2 ms once per second, so no rung")),
        "{gauge}"
    );
    let summary = shown([
        "NAME{quantile=\"0.99\"} NaN\nNAME_sum 0\nNAME_count 0\n",
        "NAME{quantile=\"0.99\"} 0.041\nNAME_sum 1.002\nNAME_count 30\n",
    ]);
    let begin = format!("{NAME} is a summary: 30 ticks of 33.4 ms in the mean, p99 41.0 ms as it says; ");
    assert!(summary.starts_with(&begin), "{summary}");
}
