//! Comparisons of client libraries: planted lines in real stores, as a page, live and as a report.

use inflight_analysis::CellKey;
use inflight_analysis::testing::{Plant, process};
use serde_json::Value;
use store::{LineSource, Outcome, RunEnd, RunHead, RunId, RunKind, RunWriter, Store, StoredLine};

use crate::given::{self, Client};

/// The clients of every comparison here, with the rate that is planted.
const CLIENTS: [(&str, u64); 3] = [("rust", 60_000), ("node", 30_000), ("python", 4_000)];

pub fn head(plan: &str) -> RunHead {
    RunHead {
        kind: RunKind::Bench,
        subject: "redis://127.0.0.1:6379".to_owned(),
        arrivals: "closed".to_owned(),
        command: "stepladder bench --target redis://127.0.0.1:6379 --client rust,node,python --value 3,1024"
            .to_owned(),
        shared_cores: true,
        plan: plan.to_owned(),
        name: None,
        ..given::run_head("")
    }
}

/// As `bench` stores it: three clients, two lengths, three blocks.
pub const PLAN: &str = r#"{"clients":["rust","node","python"],"op":["get"],"value_bytes":[3,1024],"in_flight":["100"],
    "sweep":[],"runs":3,"total":300000}"#;

pub fn write(writer: &RunWriter, number: u32, plant: &Plant<'_>) {
    for line in process(plant) {
        let source = if line.is_note { LineSource::Bench } else { LineSource::Client };
        writer.line(StoredLine { process: number, source, text: line.text }).unwrap();
    }
}

/// The process of a client (by its place in `CLIENTS`) at a length in a block: node is faster in later blocks, python fails.
pub fn plant(at: usize, row: u64, block: u64) -> Plant<'static> {
    let (client, rate) = CLIENTS[at];
    let value_bytes = [3, 1024][row as usize];
    let ops_per_s = rate / (1 + row) + if client == "node" { 600 * block } else { 0 };
    let key = CellKey { op: "get".to_owned(), value_bytes, in_flight: "100".to_owned(), total: 300_000 };
    Plant {
        client,
        key,
        cell: row * 3 + at as u64,
        block,
        ops_per_s,
        seconds: 5,
        p50_ns: 100 * 1_000_000_000 / ops_per_s,
        failed: if client == "python" && row == 1 && block == 2 { 7 } else { 0 },
        error: "no result within 10000 ms",
        has_runtime: client != "rust",
    }
}

/// Every client at every length, block by block, in another order each time.
pub fn all() -> Vec<Plant<'static>> {
    let mut all = Vec::new();
    for block in 0..3 {
        for row in 0..2 {
            all.extend((0..3).map(|at| plant((at + block as usize) % 3, row, block)));
        }
    }
    all
}

pub fn end(writer: RunWriter, outcome: Outcome, reason: Option<&str>) -> RunId {
    let run = writer.id().clone();
    let reason = reason.map(str::to_owned);
    writer.end_run(RunEnd { outcome, reason, ended_unix_ms: 1_795_261_999_012, climb: None }).unwrap();
    run
}

pub fn record(store: &Store, head: &RunHead, plants: &[Plant<'_>]) -> RunId {
    let writer = store.begin_run(head, None).unwrap();
    (0..).zip(plants).for_each(|(number, plant)| write(&writer, number, plant));
    end(writer, Outcome::Finished, None)
}

#[test]
fn a_comparison_is_listed_with_its_answer_and_has_a_page_with_its_figures() {
    let given = given::store();
    let run = record(&given.store, &head(PLAN), &all());
    given::record_run(&given, "climb", &[500.0], 3);
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    let rows = client.get("/api/runs").json();
    assert_eq!((&rows["runs"][0]["kind"], &rows["runs"][1]["kind"]), (&"climb".into(), &"bench".into()));
    let answer = "get 3 B, 100 in flight: rust 60000, node 30600, python 4000 operations/s";
    assert_eq!(rows["runs"][1]["answer"], answer);
    assert_eq!(client.get("/api/runs").json(), rows, "the answer is remembered as it was");

    let page = client.get(&format!("/api/runs/{run}")).json();
    assert_eq!((&page["climb"], &page["problem"]), (&Value::Null, &Value::Null));
    let bench = &page["bench"];
    let cells = bench["comparison"]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    let node = &cells[1];
    assert_eq!(
        (&node["client"], &node["library"], &node["runs"]),
        (&"node".into(), &"node-library 1.2".into(), &3.into())
    );
    assert_eq!(
        node["rates_per_s"].as_array().unwrap(),
        &[30_000.0.into(), 30_600.0.into(), Value::from(31_200.0)]
    );
    assert!((node["ratio"]["mean"].as_f64().unwrap() - 0.51).abs() < 0.001, "{node}");
    assert_eq!(node["fitness"]["gc_count"], 135);
    assert_eq!(node["member_cpu_ns_per_op"].as_f64().map(f64::round), Some(13_075.0));
    assert!((node["fitness"]["gc_share"].as_f64().unwrap() - 0.012).abs() < 1e-9);
    let limits = bench["comparison"]["limits"].to_string();
    assert!(limits.contains("python, get 1 KB, 100 in flight: 7 of 30000 operations failed"), "{limits}");
    assert_eq!(cells[5]["errors"][0]["first"], "no result within 10000 ms");

    let processes = bench["processes"].as_array().unwrap();
    assert_eq!((processes.len(), &bench["planned"]), (18, &18.into()));
    assert_eq!(processes[1]["curve"]["ops_per_s"].to_string(), "[30000.0,30000.0,30000.0,30000.0,30000.0]");
    assert_eq!(processes[1]["curve"]["t"].to_string(), "[1.0,2.0,3.0,4.0,5.0]");
    let count = |of: &Value| of.as_array().unwrap().iter().map(|one| one[1].as_u64().unwrap()).sum::<u64>();
    assert_eq!(count(&bench["latencies"][0]), 900_000, "no latency is lost by merging buckets");
}

#[test]
fn two_comparisons_are_laid_beside_each_other_and_nothing_else_is() {
    let given = given::store();
    let old = record(&given.store, &head(PLAN), &all());
    let new = record(&given.store, &head(PLAN), &[plant(0, 0, 0), plant(1, 0, 0)]);
    let climb = given::record_run(&given, "climb", &[500.0], 3);
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    let both = client.get(&format!("/api/beside/{old}/{new}")).json();
    assert_eq!((&both["old"], &both["new"]), (&old.as_str().into(), &new.as_str().into()));
    assert_eq!(
        (both["cells"].as_array().map(Vec::len), &both["differs"]),
        (Some(2), &Value::Array(Vec::new()))
    );
    let node = &both["cells"][1]["ops_per_s"];
    assert_eq!((&node["old"], &node["new"]), (&30_600.0.into(), &30_000.0.into()));
    assert_eq!(both["only_old"].as_array().map(Vec::len), Some(4));
    let refused = client.get(&format!("/api/beside/{old}/{climb}"));
    assert_eq!(refused.status, 409);
    assert!(refused.text().contains("compares no client libraries"), "{}", refused.text());
    assert_eq!(client.get(&format!("/api/beside/{old}/none")).status, 404);
}

#[test]
fn a_comparison_that_goes_on_grows_second_by_second_and_process_by_process() {
    let given = given::store();
    let writer = given.store.begin_run(&head(PLAN), None).unwrap();
    let run = writer.id().clone();
    let viewer = given::serve(&given, Vec::new());
    let mut events = Client::of(&viewer).follow(&format!("/api/runs/{run}/live"), None);
    let first = events.until(|kind, _| kind == "run");
    assert_eq!(first.last().unwrap().2["run"]["state"], "running");
    let lines = process(&plant(0, 0, 0));
    let mut told = 0;
    for line in lines {
        let source = if line.is_note { LineSource::Bench } else { LineSource::Client };
        let is_second = line.text.contains("\"phase\":\"measure\"");
        writer.line(StoredLine { process: 0, source, text: line.text }).unwrap();
        if is_second {
            told += 1;
            // It arrives before the next one is written, alone or with the whole.
            events.until(|_, data| {
                let process = data.get("bench").map_or(data, |bench| &bench["processes"][0]);
                process["curve"]["t"].as_array().is_some_and(|t| t.len() == told)
            });
        }
    }
    let has_cell =
        |data: &Value| data["bench"]["comparison"]["cells"].as_array().is_some_and(|cells| cells.len() == 1);
    let whole = events.until(|kind, data| kind == "run" && has_cell(data));
    assert_eq!(whole.last().unwrap().2["bench"]["comparison"]["cells"][0]["ops_per_s"], 60_000.0);
    end(writer, Outcome::Interrupted, None);
    let last = events.until(|kind, data| kind == "run" && data["run"]["state"] == "interrupted");
    assert_eq!(last.last().unwrap().0, "end");
    assert!(events.next().is_none(), "nothing follows the end");
}

#[test]
fn a_comparison_that_ended_badly_says_so_and_shows_what_it_has() {
    let given = given::store();
    let writer = given.store.begin_run(&head(PLAN), None).unwrap();
    write(&writer, 0, &plant(0, 0, 0));
    let broken = end(writer, Outcome::Broken, Some("client node: it wrote nothing for 30 s and was stopped"));
    let empty = end(given.store.begin_run(&head(PLAN), None).unwrap(), Outcome::Interrupted, None);
    let writer = given.store.begin_run(&head(PLAN), None).unwrap();
    let text = r#"{"type":"another"}"#.to_owned();
    writer.line(StoredLine { process: 0, source: LineSource::Bench, text }).unwrap();
    let foreign = end(writer, Outcome::Finished, None);
    let killed = given.store.begin_run(&head("{}"), None).unwrap();
    write(&killed, 0, &plant(0, 0, 0));
    let cut_off = killed.id().clone();
    drop(killed);
    let viewer = given::serve(&given, Vec::new());
    let page = |run: &RunId| Client::of(&viewer).get(&format!("/api/runs/{run}")).json();

    let page_of_broken = page(&broken);
    assert_eq!(page_of_broken["run"]["answer"], "client node: it wrote nothing for 30 s and was stopped");
    assert_eq!(page_of_broken["bench"]["reason"], page_of_broken["run"]["answer"]);
    assert_eq!(page_of_broken["bench"]["comparison"]["cells"][0]["client"], "rust");
    assert_eq!(page(&empty)["run"]["answer"], "nothing was measured");
    let problem = page(&foreign)["problem"].to_string();
    assert!(problem.contains("a line of process 0 cannot be read: a note of an unknown type"), "{problem}");
    let page_of_cut_off = page(&cut_off);
    assert_eq!(
        (&page_of_cut_off["run"]["state"], &page_of_cut_off["bench"]["planned"]),
        (&"cut_off".into(), &Value::Null)
    );
    let reason = page_of_cut_off["bench"]["reason"].to_string();
    assert!(reason.contains("lines that its clients had written are intact"), "{reason}");
}
