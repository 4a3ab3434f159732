//! `stepladder ticks` on the real logs of the arena's ancestor.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::place::{Place, parse};

pub fn real(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../measure/tests/data").join(name)
}

#[test]
fn the_real_logs_say_what_is_known_of_them() {
    let place = Place::new();
    let logs = ["original-500.log", "original-1000.log", "original-best-1000.log"].map(real);
    let mut words = vec!["ticks".into()];
    words.extend(logs.iter().map(|path| path.as_os_str().to_owned()));
    let shown = place.run(&words);
    assert_eq!((shown.code, shown.err.as_str()), (0, ""));
    for fragment in ["650,033", "44.2 %", "79.5 %", "15.2 %", "1,520", "115 ms"] {
        assert!(shown.out.contains(fragment), "`{fragment}` is missing in\n{}", shown.out);
    }
    words.extend(["--json".into(), "-".into()]);
    let figures = parse(&place.run(&words).out);
    let expected = [
        (650_033, 365_451, 148_872, 0.4417, 1_520, 1_164_356, [17, 25, 62], 4_621),
        (289_792, 616_934, 509_506, 0.7954, 1_656, 1_416_232, [17, 52, 115], 168_631),
        (1_667_143, 269_451, 28_398, 0.1516, 3_999, 1_964_993, [17, 19, 35], 0),
    ];
    for (file, (on_time, over, under, late_share, games, ticks, quantiles_ms, zero_ms)) in
        figures["files"].as_array().expect("files").iter().zip(expected)
    {
        assert_eq!(
            (&file["on_time"], &file["over"], &file["under"]),
            (&json!(on_time), &json!(over), &json!(under))
        );
        let share = file["late_share"].as_f64().expect("a share");
        assert!((share - late_share).abs() < 0.000_05, "{share}");
        assert_eq!((&file["games"], &file["zero_ms"]), (&json!(games), &json!(zero_ms)));
        let histogram = file["histogram"].as_object().expect("a histogram");
        assert_eq!(histogram.values().filter_map(serde_json::Value::as_u64).sum::<u64>(), ticks);
        for (name, ms) in ["p50", "p99", "max"].into_iter().zip(quantiles_ms) {
            assert_eq!(file["interval_ms"][name], json!(ms), "{name}");
        }
        assert!((file["interval_ms"]["mean"].as_f64().expect("a mean") - 16.67).abs() < 0.01);
        assert_eq!(file["malformed"], 0);
    }
}

#[test]
fn malformed_lines_are_counted_named_and_never_fatal() {
    let place = Place::new();
    place.write(
        "game.log",
        "{\"time\":1795230437402,\"title\":\"tickInterval\",\"pointSet\":{\"16\":50,\"17\":9,\"30\":1}}\nnot json\n{\"time\":\n\
         {\"time\":1795230438402,\"title\":\"tickOnTime\",\"count\":59}\n",
    );
    let shown = place.run(["ticks", "game.log"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    assert!(shown.out.contains("2 lines could not be read") && shown.out.contains("line 2"), "{shown:#?}");
    let file = &parse(&place.run(["ticks", "game.log", "--json", "-"]).out)["files"][0];
    assert_eq!(file["malformed"], 2);
    assert_eq!(file["histogram"], json!({ "16": 50, "17": 9, "30": 1 }));
}

#[test]
fn files_with_a_line_per_tick_are_read_beside_logs_and_their_rate_is_found() {
    let place = Place::new();
    let rows: String =
        (0..600).map(|n| format!("a;{};3,5\n", if n % 30 == 0 { "52,1" } else { "33,2" })).collect();
    place.write("frames.csv", &format!("Application;FrameTime;CPUBusy\n{rows}"));
    let lines: String =
        (0..300).map(|n| format!("{{\"t\":{},\"busy\":2}}\n", 1_795_232_917_000u64 + n * 50)).collect();
    place.write("ticks.jsonl", &format!("{lines}{{}}\n"));
    let words = ["ticks", "frames.csv", "jsonl=ticks.jsonl"];
    let shown = place.run(words);
    assert_eq!(shown.code, 0, "{shown:#?}");
    assert!(
        shown.out.contains("30 Hz") && shown.out.contains("20 Hz") && shown.out.contains("line 301"),
        "{shown:#?}"
    );
    let figures = parse(&place.run([&words[..], &["--json", "-"]].concat()).out);
    let of = |file: usize| {
        let file = &figures["files"][file];
        (
            file["tick_rate_hz"].clone(),
            file["on_time"].clone(),
            file["over"].clone(),
            file["malformed"].clone(),
        )
    };
    assert_eq!(of(0), (json!(30.0), json!(580), json!(20), json!(0)));
    assert_eq!(of(1), (json!(20.0), json!(299), json!(0), json!(1)));
    let named = place.run(["ticks", "csv=frames.csv:CPUBusy:us", "--tick-rate", "60"]);
    assert!(named.out.contains("600") && named.code == 0, "{named:#?}");
}

#[test]
fn a_log_that_is_not_there_is_wrong_usage_and_the_others_are_shown() {
    let place = Place::new();
    let ran = place.run(["ticks".as_ref(), "missing.log".as_ref(), real("original-500.log").as_os_str()]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(ran.out.contains("missing.log") || ran.err.contains("missing.log"), "{ran:#?}");
    assert!(ran.out.contains("650,033"), "{ran:#?}");
    assert_eq!(place.run(["ticks", "missing.log"]).code, 3);
    place.run(["ticks"]).refused(3, &["<FILES>"]);
}
