//! A run is exported as JSON lines, CSV and percentile tables, completely or not at all.

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use measure::{Distribution, Entry, Measure};
use serde_json::{Value, json};
use store::{RunId, export};

use crate::given::{self, Given};

fn recorded() -> (Given, RunId) {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(Some("master")), None).unwrap();
    let run = writer.id().clone();
    given.store.set_label(&run, "note", Some("a \"quoted\", note")).unwrap();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    writer.append(given::one_of_each()).unwrap();
    (1..30).for_each(|index| writer.append(vec![given::second(index, 1_000)]).unwrap());
    writer.end_trial(2).unwrap();
    writer.artifact("../run.json", b"{\"schema\":1}").unwrap();
    writer.artifact("profile.bin", &[0xff, 0x00]).unwrap();
    writer.end_run(given::finished()).unwrap();
    (given, run)
}

#[test]
fn json_lines_hold_every_row_and_histograms_any_hdr_library_reads() {
    let (given, run) = recorded();
    let mut bytes = Vec::new();
    export::ndjson(&given.store, &run, &mut bytes).unwrap();
    let lines: Vec<Value> =
        String::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |table: &str| lines.iter().filter(|line| line["table"] == table).collect::<Vec<_>>();
    assert_eq!(lines[0]["table"], "run");
    assert_eq!(lines[0]["seed"], json!(u64::MAX));
    assert_eq!(lines[0]["plan"], json!({"rungs": [500, 1000]}));
    assert_eq!(lines[0]["shared_cores"], json!(true));
    assert_eq!(of("label")[0]["value"], "a \"quoted\", note");
    assert_eq!(of("trial")[0]["cell"], json!({"service": "a \"page\"", "view": "foreground"}));
    assert_eq!((of("interval").len(), of("flow").len(), of("tally").len()), (30, 30, 3));
    assert_eq!(of("flow")[0]["told"], 10);
    assert_eq!(of("tick")[0]["counters"], json!([["games", 500]]));
    assert_eq!(of("tick")[0]["interval_summary"]["count"], 1_999);
    assert_eq!(of("tick")[0]["lateness_v2"], Value::Null);
    assert_eq!(of("artifact")[0]["content"], "{\"schema\":1}");
    assert_eq!(
        (of("ledger")[0]["sent"].as_u64(), &of("ledger")[0]["drops_are_told"]),
        (Some(30), &json!(true))
    );
    let second = of("books")[1];
    assert_eq!((&second["lost"], &second["dropped"], &second["residual"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!((&of("books")[2]["is_excluded"], &second["told_delivered"]), (&json!(true), &Value::Null));
    assert_eq!((of("books").len(), of("pair").len()), (3, 1));

    let lag = of("distribution")[5];
    let v2 = base64::engine::general_purpose::STANDARD.decode(lag["v2"].as_str().unwrap()).unwrap();
    let distribution = Distribution::from_v2(&v2).unwrap();
    assert_eq!(serde_json::to_value(distribution.summary()).unwrap(), lag["summary"]);
    assert!(lines.iter().all(|line| line["run"] == "master-1" && line.get("crc").is_none()));
}

#[test]
fn csv_files_stand_one_per_table_with_percentile_tables_beside_them() {
    let (given, run) = recorded();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("master-1");
    export::csv(&given.store, &run, &dir).unwrap();
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read("label.csv"), "run,key,value\nmaster-1,note,\"a \"\"quoted\"\", note\"\n");
    assert_eq!(read("flow.csv").lines().count(), 31);
    let heads =
        "run,trial,interval,name,in_hold,count,v2,p50_ns,p90_ns,p99_ns,p999_ns,max_ns,mean_ns,stddev_ns";
    let distributions = read("distribution.csv");
    assert_eq!(distributions.lines().next().unwrap(), heads);
    assert!(distributions.lines().all(|line| line.split(',').count() == 14));
    let owed = "master-1,0,1,0,20,20,18,0,2,0,0,0,1,0,1,0,0,4500000,9000000,20,";
    assert_eq!(read("books.csv").lines().nth(2), Some(owed));
    assert!(!dir.join("verdict.csv").exists(), "a table without rows has no file");
    assert_eq!(read("artifacts/_run.json"), "{\"schema\":1}");
    assert_eq!(std::fs::read(dir.join("artifacts/profile.bin")).unwrap(), [0xff, 0x00]);

    let percentiles = read("trial-0-send_lag.hgrm");
    let last = percentiles.lines().rfind(|line| !line.starts_with('#')).unwrap();
    let fields: Vec<&str> = last.split_whitespace().collect();
    assert_eq!(fields, ["0.040031", "1.000000000000", "29010"]);
    // With 2,048 sub-buckets per bucket 40,031 ns lie in the sixth: 2048 · 2^5 is the first power beyond them.
    let end = "Total count    =        29010]\n#[Buckets =            6, SubBuckets     =         2048]\n";
    assert!(percentiles.ends_with(end), "{percentiles}");

    let again = export::csv(&given.store, &run, &dir).unwrap_err().to_string();
    assert!(again.contains("run.csv: File exists"), "{again}");
}

#[test]
fn an_interval_log_read_by_another_implementation_holds_every_second() {
    let (given, run) = recorded();
    let dir = given.path.with_file_name("hdr");
    export::hdr(&given.store, &run, &dir).unwrap();
    let log = std::fs::read(dir.join("trial-0.hlog")).unwrap();
    let head = "#[Histogram log format version 1.3]\n#[StartTime: 0.001 (seconds since epoch)]\n\
                #[BaseTime: 0.001 (seconds since epoch)]\n#[MaxValueDivisor: 1000000.000]\n\
                \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\nTag=";
    assert!(log.starts_with(head.as_bytes()), "{}", String::from_utf8_lossy(&log[..head.len()]));
    let mut sums = std::collections::BTreeMap::new();
    let mut found = Vec::new();
    for entry in IntervalLogIterator::new(&log) {
        let LogEntry::Interval(line) = entry.unwrap() else { continue };
        let tag = line.tag().unwrap().as_str().to_owned();
        let bytes = base64::engine::general_purpose::STANDARD.decode(line.encoded_histogram()).unwrap();
        let counts: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(line.duration().as_secs(), 1);
        assert!((line.max() - counts.max() as f64 / 1e6).abs() < 0.001, "the largest value, ms");
        let buckets = |counts: &Histogram<u64>| {
            counts
                .iter_recorded()
                .map(|one| (one.value_iterated_to(), one.count_at_value()))
                .collect::<Vec<_>>()
        };
        sums.entry(tag.clone()).or_insert_with(|| Histogram::<u64>::new(3).unwrap()).add(&counts).unwrap();
        found.push((line.start_timestamp().as_secs(), tag, buckets(&counts)));
    }
    let mut stored = Vec::new();
    for entry in given.store.trial_entries(&run, 0).unwrap() {
        let Entry::Interval(second) = entry else { continue };
        for &measure in Measure::ALL {
            let mut distribution = second.distribution(measure, true).clone();
            if measure == Measure::Handshake {
                distribution.add(second.distribution(measure, false));
            }
            if !distribution.is_empty() {
                let buckets = distribution.buckets().collect();
                stored.push((u64::from(second.index), measure.name().to_owned(), buckets));
            }
        }
    }
    assert_eq!(found, stored);
    assert!(found.len() >= 30, "{}", found.len());
    // The percentile table beside it covers all lines with its tag.
    for (tag, sum) in &sums {
        let table = std::fs::read_to_string(dir.join(format!("trial-0-{tag}.hgrm"))).unwrap();
        assert!(table.contains(&format!("Total count    = {:>12}]", sum.len())), "{tag}: {table}");
    }
}

#[test]
fn a_damaged_run_is_not_exported_in_part() {
    let (given, run) = recorded();
    let shell = rusqlite::Connection::open(&given.path).unwrap();
    shell.execute_batch("DROP TRIGGER tally_is_never_edited; UPDATE tally SET count = count + 1").unwrap();
    let mut bytes = Vec::new();
    assert!(export::ndjson(&given.store, &run, &mut bytes).unwrap_err().is_damage());
    assert_eq!(bytes, b"");
    let folder = tempfile::tempdir().unwrap();
    assert!(export::csv(&given.store, &run, &folder.path().join("out")).unwrap_err().is_damage());
    assert!(export::hdr(&given.store, &run, &folder.path().join("out")).unwrap_err().is_damage());
    assert!(!folder.path().join("out").exists());
}

#[test]
fn no_cell_of_a_csv_file_begins_a_formula() {
    let texts = ["=1+2", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "plain", "a=b", "-"];
    let given = given::store();
    let head = store::RunHead { subject: texts[0].to_owned(), ..given::run_head(Some("master")) };
    let writer = given.store.begin_run(&head, None).unwrap();
    let run = writer.id().clone();
    for text in texts {
        given.store.set_label(&run, text, Some(text)).unwrap();
    }
    writer.begin_trial(&given::trial_head(0, 1.0), 1).unwrap();
    let event = |text: &str| {
        measure::Entry::Event(measure::Event { at_ns: 1, kind: "error".to_owned(), text: text.to_owned() })
    };
    writer.append(texts.map(event).to_vec()).unwrap();
    writer.end_trial(2).unwrap();
    writer.end_run(given::finished()).unwrap();
    let dir = given.path.with_file_name("csv");
    export::csv(&given.store, &run, &dir).unwrap();
    for file in std::fs::read_dir(&dir)
        .unwrap()
        .flatten()
        .filter(|file| file.path().extension() == Some("csv".as_ref()))
    {
        let mut reader = csv::Reader::from_path(file.path()).unwrap();
        for record in reader.records() {
            for cell in &record.unwrap() {
                let is_number =
                    cell.bytes().skip(1).all(|byte| byte.is_ascii_digit() || b".e-".contains(&byte))
                        && !texts.contains(&cell);
                let begins = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '＝']);
                assert!(!begins || is_number, "{}: {cell:?}", file.path().display());
            }
        }
    }
    let mut reader = csv::Reader::from_path(dir.join("event.csv")).unwrap();
    let last = reader.headers().unwrap().len() - 1;
    let kept: Vec<String> = reader.records().map(|record| record.unwrap()[last].to_owned()).collect();
    assert_eq!(kept, ["'=1+2", "'+1", "'-1", "'@SUM(A1)", "'\t=1", "'\r=1", "'＝1", "plain", "a=b", "'-"]);
}
