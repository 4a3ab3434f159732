use serde_json::{Value, json};

use super::*;

fn original(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../measure/tests/data").join(name)
}

fn originals() -> Vec<PathBuf> {
    ["original-500.log", "original-1000.log", "original-best-1000.log"].map(original).to_vec()
}

fn shown(files: Vec<PathBuf>, width: usize) -> (Exit, String) {
    let mut out = Vec::new();
    let code = run(&Options { files, ..Options::default() }, &mut out, width, false).unwrap();
    (code, String::from_utf8(out).unwrap())
}

/// Logs with planted lines, in a folder that lives as long as they do.
fn planted(logs: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let files = logs
        .iter()
        .map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        })
        .collect();
    (folder, files)
}

#[test]
fn three_logs_stand_beside_each_other_in_80_columns() {
    let (code, text) = shown(originals(), 80);
    assert_eq!(code, Exit::Met);
    insta::assert_snapshot!(text);
}

#[test]
fn one_log_has_the_whole_width() {
    insta::assert_snapshot!(shown(vec![original("original-500.log")], 100).1);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 120, 160] {
        for count in 1..=3 {
            let text = shown(originals()[..count].to_vec(), width).1;
            let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
            assert!(widest.chars().count() <= width, "{width} columns, {count} logs:\n{widest}");
        }
    }
}

#[test]
fn colours_repeat_what_the_marks_say() {
    let plain = shown(originals(), 100).1;
    let mut out = Vec::new();
    run(&Options { files: originals(), ..Options::default() }, &mut out, 100, true).unwrap();
    let coloured = String::from_utf8(out).unwrap();
    assert!(coloured.contains("\u{1b}[") && !plain.contains('\u{1b}'));
    let (mut without, mut inside) = (String::new(), false);
    for c in coloured.chars() {
        match c {
            '\u{1b}' => inside = true,
            'm' if inside => inside = false,
            _ if inside => {}
            _ => without.push(c),
        }
    }
    assert_eq!(without, plain);
}

#[test]
fn what_is_wrong_with_a_log_is_said_below_its_figures() {
    let line = |time: u64, pid: u64, more: &str| {
        format!(r#"{{"time":{time},"pid":{pid},"hostname":"h\u001b[2J","title":{more}}}"#) + "\n"
    };
    let mixed = [
        line(10_000, 1, r#""tickInterval","pointSet":{"0":20,"16":30,"17":10,"40":3}"#),
        line(10_000, 1, r#""tickOnTime","count":40"#),
        "{\"time\":1\n".to_owned(),
        "hello\n".to_owned(),
        line(20_000, 2, r#""tickInterval","pointSet":{"16":30,"19":30}"#),
        line(20_000, 2, r#""tickIntervalOverrun","count":30"#),
    ]
    .concat();
    let (_folder, files) = planted(&[
        ("a/game.log", &mixed),
        ("b/game.log", ""),
        ("c/message.log", "{\"time\":5,\"msg\":\"hello\"}\n"),
        ("noise.log", "some\ntext\n"),
    ]);
    let (code, text) = shown(files, 80);
    assert_eq!(code, Exit::Met, "what can be shown is shown");
    assert!(!text.contains('\u{1b}'), "a log's text does not steer the terminal");
    insta::assert_snapshot!(text);
}

#[test]
fn logs_of_different_tick_rates_do_not_share_a_picture() {
    let line = |rate: u64, text: &str| {
        format!(r#"{{"time":10000,"title":"stepladder","tick_rate":{rate},{text}}}"#)
            + "\n"
            + &format!(r#"{{"time":10000,"title":"tickInterval","pointSet":{{"{}":58}}}}"#, 1_000 / rate)
            + "\n"
    };
    let (_folder, files) = planted(&[
        ("sixty.log", &line(60, r#""on_time":58,"missed":2,"games_played":3"#)),
        ("thirty.log", &line(30, r#""on_time":58,"missed":20,"games_played":4"#)),
    ]);
    insta::assert_snapshot!(shown(files, 80).1);
}

#[test]
fn a_file_that_cannot_be_read_is_told_after_the_others() {
    let (code, text) = shown(vec!["/no/such.log".into(), original("original-500.log")], 120);
    assert_eq!(code, Exit::WrongUsage);
    assert!(text.contains("44.2 % late"));
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "✗ cannot read /no/such.log (No such file or directory (os error 2)); give the path of a tick log"
    );
}

#[test]
fn a_device_is_no_tick_log() {
    let (code, text) = shown(vec![original("original-500.log"), "/dev/zero".into()], 160);
    assert_eq!(code, Exit::WrongUsage);
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "✗ cannot read /dev/zero (it is a device; name a regular file or a pipe); give the path of a tick log"
    );
}

#[test]
fn a_log_without_ticks_could_not_be_measured() {
    let (_folder, files) = planted(&[("empty.log", "")]);
    assert_eq!(
        shown(files, 80),
        (Exit::NotMeasured, "\n! empty.log tells of no ticks: it is empty\n".to_owned())
    );
}

#[test]
fn the_json_holds_the_contracts_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticks.json");
    let options = Options { files: originals(), json: Some(path.clone()), ..Options::default() };
    run(&options, &mut Vec::new(), 80, false).unwrap();
    let found: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let files = found["files"].as_array().unwrap();
    let best = &files[2];
    assert!(best["path"].as_str().unwrap().ends_with("original-best-1000.log"));
    assert_eq!(
        (&best["games"], &best["on_time"], &best["over"], &best["under"], &best["malformed"]),
        (&json!(3_999), &json!(1_667_143), &json!(269_451), &json!(28_398), &json!(0))
    );
    let late_share = best["late_share"].as_f64().unwrap();
    assert!((late_share - 297_849.0 / 1_964_992.0).abs() < 1e-12, "{late_share}");
    let interval = &best["interval_ms"];
    assert_eq!(
        (&interval["p50"], &interval["p90"], &interval["p99"], &interval["max"]),
        (&json!(17), &json!(18), &json!(19), &json!(35))
    );
    assert!((interval["mean"].as_f64().unwrap() - 16.666_508).abs() < 1e-5);
    let ticks: u64 =
        best["histogram"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(ticks, 1_964_993);
    assert_eq!(best["disagreement"]["histogram"]["over"], json!(269_452));
    assert_eq!(files[1]["zero_ms"], json!(168_631));
    assert_eq!(files[0]["disagreement"], Value::Null);
}

#[test]
fn json_on_the_standard_output_stands_alone() {
    let files = vec!["/no/such.log".into(), original("original-500.log")];
    let options = Options { files, json: Some("-".into()), ..Options::default() };
    let mut out = Vec::new();
    assert_eq!(run(&options, &mut out, 80, true).unwrap(), Exit::WrongUsage);
    let found: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(found["files"].as_array().unwrap().len(), 1);
    assert_eq!(found["unreadable"][0]["path"], json!("/no/such.log"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_mistake() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(
        run(&Options { files: originals(), ..Options::default() }, &mut Closed, 80, false).unwrap(),
        Exit::Met
    );
}
