//! `stepladder bench --target`: client libraries as processes, honest and faulty ones.

use std::path::Path;

use crate::place::{Place, children, command_line, eventually, is_gone, words_of};
use crate::tls_proxy;

const PROGRAM: &str = env!("CARGO_BIN_EXE_stepladder");
const NULL: [&str; 7] = ["bench", "--target", "null:", "--total", "20000", "--runs", "2"];

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    NULL.iter().chain(more).copied().collect()
}

/// A client that is our own runner, with its lines changed by `sed`.
fn changed(script: &str) -> String {
    format!("planted() {{ {PROGRAM} bench runner \"$1\" | sed '{script}'; }}; planted")
}

#[test]
fn each_client_does_each_task_and_every_operation_is_counted() {
    let place = Place::new();
    let honest = changed("s/name\":\"null/name\":\"other/");
    let options = ["--client", "rust", "--client", &honest, "--value", "3,1024", "--json", "r.json"];
    let ran = place.run(words(&options));
    assert_eq!(ran.code, 0, "{}", ran.err);
    for fragment in ["null:", "get 3 B, 100 in flight", "get 1 KB", "ops/s", "CPU µs/op", "× rust"] {
        assert!(ran.out.contains(fragment), "`{fragment}` is missing in\n{}", ran.out);
    }
    let report = place.json("r.json");
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let count = |name: &str| cell[name].as_u64();
        assert_eq!((count("ops"), count("hits"), count("failed")), (Some(36_000), Some(36_000), Some(0)));
        assert_eq!(cell["latency_ns"]["count"], 36_000);
        assert!(cell["ops_per_s"].as_f64() > Some(1000.0) && cell["rates_per_s"][1].as_f64() > Some(0.0));
    }
    assert!(cells[1]["library"].as_str().is_some_and(|name| name.starts_with("other")), "{report}");
    assert!(cells[1]["ratio"]["low"].as_f64() > Some(0.0), "{report}");
}

#[test]
fn a_run_is_stored_listed_shown_compared_and_exported() {
    let place = Place::new();
    let first = place.run(words(&["--name", "old", "--json", "first.json"]));
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(first.out.contains("run old-1 · stepladder show old-1"), "{}", first.out);
    assert_eq!(place.run(words(&["--name", "new", "--seed", "2", "--value", "1024,3"])).code, 0);

    let runs = place.run(["runs"]);
    for fragment in ["old-1", "new-1", "null:", "finished", "get 3 B, 100 in flight: rust "] {
        assert!(runs.out.contains(fragment), "`{fragment}` is missing in\n{}", runs.out);
    }
    let shown = place.run(["show", "old", "--json", "shown.json"]);
    assert_eq!(shown.out, first.out, "what is shown later is what was told");
    assert_eq!(place.json("shown.json"), place.json("first.json"));

    let compared = place.run(["compare", "old", "new", "--json", "compared.json"]);
    assert_eq!(compared.code, 0, "{}", compared.err);
    for fragment in
        ["old-1 and new-1 differ in", "seed: 1 → 2", "value_bytes: [3] → [1024,3]", "rust, get 3 B"]
    {
        assert!(compared.out.contains(fragment), "`{fragment}` is missing in\n{}", compared.out);
    }
    let compared = place.json("compared.json");
    let cells = compared["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 1, "only 3 B is in both: {compared}");
    assert_eq!(cells[0]["ops_per_s"]["old"], place.json("first.json")["cells"][0]["ops_per_s"]);

    let exported = place.run(["export", "old"]);
    let ends = exported.out.lines().filter(|line| line.contains(r#""type":"end""#)).count();
    assert_eq!(ends, 2, "one last line for each of two runs");
    place.run(["again", "old"]).refused(3, &["run old-1 compared client libraries", "bench --target null:"]);
}

#[test]
fn a_broken_run_keeps_what_came_before_and_says_why_it_ended() {
    let place = Place::new();
    let ran = place.run(words(&["--client", "rust", "--client", "no-such-program", "--name", "broken"]));
    assert_eq!(ran.code, 2);
    assert!(place.run(["runs"]).out.contains("broken"));
    let shown = place.run(["show", "broken"]);
    assert!(shown.err.contains("it could not go on: client no-such-program"), "{}", shown.err);
}

#[test]
fn the_first_operations_are_drawn_in_lanes() {
    let place = Place::new();
    let ran = place.run(words(&["--in-flight", "5", "--timeline", "t.svg"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let drawn = std::fs::read_to_string(place.path("t.svg")).expect("a picture");
    assert_eq!(drawn.matches("<title>").count(), 200);
    assert!(drawn.contains("rust (null ") && drawn.contains("get 3 B, 5 in flight"), "{drawn}");
    let silent = changed(r#"/"timeline"/d"#);
    place
        .run(words(&["--client", &silent, "--timeline", "none.svg"]))
        .fails(2, &["--timeline none.svg: no client wrote a line"]);
    assert!(!place.path("none.svg").exists());
}

/// Our runner with a short warm-up and a plan that does not end within the test. Its lines are also in `lines.txt`, by a
/// program that does not end before it.
const ENDLESS: &str = r#"planted() { PROGRAM bench runner "$(echo "$1" | sed 's/^{/{"warmup":1000,/')" |
    (trap '' TERM; exec tee lines.txt); }; planted"#;

#[test]
fn an_interruption_keeps_whole_runs_and_what_a_cut_one_has_measured() {
    let check = |signal: i32, in_flight: &str, rates: usize| {
        let place = Place::new();
        let client = ENDLESS.replace("PROGRAM", PROGRAM);
        let words =
            ["bench", "--target", "null:", "--total", "1000000000", "--runs", "1", "--json", "r.json"];
        let more = ["--client", &client, "--in-flight", in_flight, "--timeline", "t.svg"];
        let bench = place.start(words.iter().chain(&more).copied());
        eventually("a second of the measured part", || {
            let lines = std::fs::read_to_string(place.path("lines.txt")).unwrap_or_default();
            lines.contains(r#""phase":"measure""#).then_some(())
        });
        bench.signal(signal);
        let ran = bench.finish();
        assert_eq!(ran.code, 130, "{ran:#?}");
        assert!(!ran.err.contains("status"), "the client is not called broken: {ran:#?}");
        assert!(ran.out.contains("stopped early: signal"), "{ran:#?}");
        let report = place.json("r.json");
        let cells = report["cells"].as_array().expect("cells");
        assert_eq!(cells.len(), rates, "{report}");
        assert_eq!(cells[0]["stopped"], "signal");
        assert!(cells[0]["ops"].as_u64() > Some(1000) && cells[0]["ops"].as_u64() < Some(999_000_000));
        assert!(place.run(["runs"]).out.contains("interrupted"));
        assert_eq!(place.run(["show", "null"]).out, ran.out, "what is shown later is what was told");
    };
    check(libc::SIGTERM, "100", 1);
    check(libc::SIGINT, "10,100", 1);
}

#[test]
fn an_interruption_before_the_first_result_leaves_no_json_no_picture_and_no_client() {
    let place = Place::new();
    let words =
        ["bench", "--target", "null:", "--total", "1000000000", "--json", "r.json", "--timeline", "t.svg"];
    let bench = place.start(words);
    let is_runner = |pid: &u32| command_line(*pid).contains("bench runner");
    let client =
        eventually("a client among its children", || children(bench.pid()).into_iter().find(is_runner));
    bench.signal(libc::SIGINT);
    let ran = bench.finish();
    assert_eq!((ran.code, ran.out.as_str()), (130, ""), "{ran:#?}");
    assert!(ran.err.contains("interrupted before its first result"), "{ran:#?}");
    assert!(!place.path("r.json").exists() && !place.path("t.svg").exists());
    assert!(is_gone(client));
    assert!(place.run(["runs"]).out.contains("interrupted"));
}

/// Ctrl-C on a terminal goes to the whole process group of what runs in its foreground.
#[test]
fn a_client_is_in_a_process_group_of_its_own_and_ends_with_its_parent() {
    let place = Place::new();
    let bench = place.start(["bench", "--target", "null:", "--total", "1000000000"]);
    let is_runner = |pid: &u32| command_line(*pid).contains("bench runner");
    let client =
        eventually("a client among its children", || children(bench.pid()).into_iter().find(is_runner));
    // SAFETY: a plain call.
    let group_of = |pid: u32| unsafe { libc::getpgid(pid as i32) };
    assert_eq!(group_of(client), client as i32);
    assert_ne!(group_of(bench.pid()), client as i32);
    bench.signal(libc::SIGKILL);
    eventually("the client ends", || is_gone(client).then_some(()));
}

/// Times are measured here, so a busy machine may leave it open; it must never be called anything else.
#[test]
fn a_client_that_copies_what_it_has_again_is_called_super_linear() {
    const ATTEMPTS: usize = 4;
    assert!((0..ATTEMPTS).any(|_| is_called_super_linear()), "left open {ATTEMPTS} times");
}

fn is_called_super_linear() -> bool {
    let place = Place::new();
    let planted = format!("{PROGRAM} bench runner --fault copies-again");
    let ran = place.run(words_of(&format!(
        "bench --target null: --client '{planted}' --sweep value --value 4096,8192,16384,32768,65536,131072 \
         --in-flight 10 --total 300 --runs 2 --json r.json"
    )));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report = place.json("r.json");
    let told = &report["conclusions"][0];
    assert_eq!(told["id"], "value", "{told:#}");
    if told["evidence"]["shape"] == "unclear" {
        return false;
    }
    assert_eq!(told["evidence"]["shape"], "super-linear", "{told:#}");
    assert!(ran.out.contains("grows super-linearly with the value"), "{}", ran.out);
    true
}

/// `perf` may be missing, or not allowed; then the command says so.
#[test]
fn the_profile_of_a_client_that_copies_again_names_the_function() {
    let place = Place::new();
    let can_record = std::process::Command::new("perf")
        .args(["record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    let planted = format!("{PROGRAM} bench runner --fault copies-again");
    let options = [
        "--client",
        &planted,
        "--value",
        "131072",
        "--in-flight",
        "10",
        "--runs",
        "1",
        "--profile",
        "graphs",
    ];
    let ran = place
        .run([&["bench", "--target", "null:", "--total", "1000", "--json", "r.json"], &options[..]].concat());
    if !can_record {
        assert_eq!(ran.code, 2, "{ran:#?}");
        return;
    }
    assert_eq!(ran.code, 0, "{ran:#?}");
    let profile = &place.json("r.json")["profiles"][0];
    let guilty = profile["top"][0]["function"].as_str().expect("a function");
    assert!(guilty.contains("copy_everything_again"), "{profile:#}");
    assert!(profile["top"][0]["share"].as_f64() > Some(0.5), "{profile:#}");
    assert!(
        ran.out.contains("copy_everything_again") && ran.out.contains("flame graph: graphs/"),
        "{}",
        ran.out
    );
    let shown = place.run(["show", "null"]);
    assert!(shown.out.contains("copy_everything_again"), "a stored profile is shown again: {}", shown.out);
    let allocations = place.run(
        [&["bench", "--target", "null:", "--total", "1000", "--runs", "1"], &["--profile", "alloc"][..]]
            .concat(),
    );
    allocations.fails(2, &["client rust: it wrote no alloc profile"]);
}

/// A client that writes stacks and this as its heap snapshot.
fn with_heap(snapshot: &str) -> String {
    with_heap_in("heapsnapshot", snapshot)
}

/// The same in a file with this ending.
fn with_heap_in(ending: &str, heap: &str) -> String {
    format!(
        r#"planted() {{ f=${{INFLIGHT_PROFILE#alloc:}}; if [ -n "$f" ]; then echo "user:keep 9" > "$f"; echo '{heap}' > "$f.{ending}"; fi; {PROGRAM} bench runner "$1"; }}; planted"#
    )
}

#[test]
fn what_a_client_keeps_alive_is_named_and_its_heap_snapshot_kept() {
    let place = Place::new();
    let snapshot = r#"{"snapshot":{"meta":{"node_fields":["type","name","self_size"],"node_types":[["object"]]},"node_count":2},"nodes":[0,0,50000000,0,1,400],"strings":["KeptValue","Other"]}"#;
    let client = with_heap(snapshot);
    let options = ["--client", &client, "--runs", "1", "--profile", "alloc:heap", "--json", "r.json"];
    let ran = place.run([&NULL[..5], &options[..]].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let heap = &place.json("r.json")["profiles"][0]["heap"];
    assert_eq!((&heap["bytes"], &heap["objects"]), (&50_000_400.into(), &2.into()), "{heap:#}");
    assert_eq!(heap["types"][0]["name"], "KeptValue", "{heap:#}");
    assert!(ran.out.contains("KeptValue") && ran.out.contains("heap snapshot: heap/"), "{}", ran.out);
    let shown = place.run(["show", "null"]);
    assert!(shown.out.contains("KeptValue"), "a stored heap is shown again: {}", shown.out);
    let kept = std::fs::read_dir(place.path("heap")).expect("the folder").flatten().map(|entry| entry.path());
    let kept = kept.filter(|path| path.extension().is_some_and(|extension| extension == "heapsnapshot"));
    let kept: Vec<_> = kept.collect();
    assert_eq!(std::fs::read_to_string(&kept[0]).expect("a snapshot").trim(), snapshot);
    let again = place.run([&NULL[..5], &options[..]].concat());
    again.refused(3, &["is there already", "name another folder"]);
}

#[test]
fn a_client_may_tell_what_is_alive_as_a_table() {
    let place = Place::new();
    let client = with_heap_in("heap.txt", "by function\n50000000 7 main.keepValues\n400 1 runtime.malg");
    let options = ["--client", &client, "--runs", "1", "--profile", "alloc:heap", "--json", "r.json"];
    let ran = place.run([&NULL[..5], &options[..]].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let heap = &place.json("r.json")["profiles"][0]["heap"];
    assert_eq!(
        (&heap["by"], &heap["bytes"], &heap["objects"]),
        (&"function".into(), &50_000_400.into(), &8.into())
    );
    assert!(
        ran.out.contains("main.keepValues") && ran.out.contains("function that allocated"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains(".heap.txt ("), "where it is kept: {}", ran.out);
    let again = place.run([&NULL[..5], &options[..]].concat());
    again.refused(3, &["heap.txt is there already"]);
    let cut_off = with_heap_in("heap.txt", "by class");
    let ran =
        place.run([&NULL[..5], &["--client", &cut_off, "--runs", "1", "--profile", "alloc:other"]].concat());
    ran.fails(
        2,
        &["its heap snapshot cannot be read", "line 1: it says neither `by type` nor `by function`"],
    );
}

#[test]
fn a_heap_snapshot_that_was_cut_off_is_an_error() {
    let place = Place::new();
    let client = with_heap(r#"{"snapshot":{"meta":{"node_fields""#);
    let options = ["--client", &client, "--runs", "1", "--profile", "alloc:heap"];
    let ran = place.run([&NULL[..5], &options[..]].concat());
    ran.fails(2, &["its heap snapshot cannot be read", "damaged or was cut off"]);
}

#[test]
fn without_a_limit_in_flight_the_table_says_what_that_is_worth() {
    let place = Place::new();
    let ran = place.run(words(&["--in-flight", "100,unlimited"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("No back-pressure"), "{}", ran.out);
}

#[test]
fn wrong_values_and_unknown_outcomes_end_the_command_with_1() {
    let place = Place::new();
    let check = |script: &str, expected: &str| {
        let client = changed(script);
        let ran = place.run(words(&["--client", &client]));
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains(expected), "{}", ran.out);
    };
    check(
        r#"/"end"/s/"ok":18000,"failed":0/"ok":17990,"failed":10/;/"end"/s/"wrong":0/"wrong":10/"#,
        "20 operations failed (20 of them with a wrong value), 0 have an unknown outcome",
    );
    check(
        r#"/"end"/s/"ok":18000,"failed":0,"unknown":0/"ok":17999,"failed":0,"unknown":1/"#,
        "0 operations failed (0 of them with a wrong value), 2 have an unknown outcome",
    );
}

#[test]
fn a_client_whose_figures_cannot_be_true_is_no_result() {
    let place = Place::new();
    let check = |client: &str, expected: &str| {
        let ran = place.run(words(&["--client", client, "--json", "r.json"]));
        assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(expected), "{}", ran.err);
        assert!(!place.path("r.json").exists(), "a file without results was left behind");
    };
    check(&changed(r#"/"end"/s/"ok":18000/"ok":18001/"#), "its counts do not agree");
    check(&changed(r#"/"end"/s/"ops":18000/"ops":180000/;s/"ok":18000/"ok":180000/"#), "18000 latencies");
    check(&changed(r#"/"end"/d"#), "it ended without its last line");
    check(&changed(r#"s/"format":1/"format":2/"#), "format 2");
    check(
        &changed(r#"s/^{"type":"second".*/ready/"#),
        "a line that is none of inflight/clients/README.md: \"ready\"",
    );
    check(&changed(r#"/"start"/d"#), "it ended before it had started");
    check("no-such-program", "client no-such-program: no-such-program cannot be started");
    check("no-such-program | cat", "it ended without its last line");
    check(r#"echo '{"type":"error","message":"no member lets us in"}' #"#, "no member lets us in");
    check(
        &format!("{PROGRAM} bench runner '{{\"target\":\"redis://127.0.0.1:1\"}}' #"),
        "cannot connect to redis",
    );
}

/// Whether a runner was built by `inflight/clients/setup`.
fn is_set_up(language: &str) -> bool {
    let built = match language {
        "node" => "node/dist/src/runner.js",
        "java" => "java/inflight.jar",
        "go" => "go/runner",
        _ => "python/installed",
    };
    let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/clients");
    Path::new(clients).join(built).exists()
}

#[test]
fn all_clients_speak_to_a_store_behind_tls_when_they_are_told_whom_to_trust() {
    let place = Place::new();
    let (_store, plain) = place.serve("redis");
    let proxy = tls_proxy::before_url(&plain);
    let url = format!("rediss://{}", proxy.address);
    let (mut clients, mut missing) = (vec!["rust"], Vec::new());
    for language in ["node", "java", "go", "python"] {
        if is_set_up(language) { clients.push(language) } else { missing.push(language) }
    }
    if !missing.is_empty() {
        println!("NOT RUN: {} over TLS; run inflight/clients/setup", missing.join(", "));
    }
    let named = clients.join(",");
    let bench = |more: &[&str]| {
        let words = ["bench", "--target", &url, "--op", "mix", "--value", "102400", "--keys", "uniform:10"];
        place.run(words.iter().chain(&["--total", "1000", "--runs", "1"]).chain(more).copied())
    };
    let ran = bench(&["--client", &named, "--ca", tls_proxy::AUTHORITY, "--json", "r.json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let report = place.json("r.json");
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), clients.len(), "{report}");
    cells.iter().for_each(|cell| assert_eq!(cell["ops"], 900, "{cell}"));
    // Every client checks the certificate, unless --insecure is given.
    for client in &clients {
        bench(&["--client", client]).fails(2, &["client"]);
    }
    bench(&[]).fails(2, &["no TLS connection", "--ca FILE trusts its authority, --insecure accepts any"]);
    let ran = bench(&["--insecure"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
}

#[test]
fn what_cannot_be_meant_with_tls_is_refused_before_anything_is_started() {
    let place = Place::new();
    let check = |target: &str, more: &[&str], fragments: &[&str]| {
        let words = ["bench", "--target", target, "--client", "rust"];
        place.run(words.iter().chain(more).copied()).refused(3, fragments);
    };
    let ca = tls_proxy::AUTHORITY;
    let manifest = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    check("redis://127.0.0.1:1", &["--ca", ca], &["--ca is about certificates", "rediss://"]);
    check("null:", &["--insecure"], &["--insecure is about certificates"]);
    check("rediss://127.0.0.1:1", &["--ca", ca, "--insecure"], &["only one of them can be meant"]);
    check("rediss://127.0.0.1:1", &["--ca", "none.pem"], &["cannot read the certificate authority none.pem"]);
    check("rediss://127.0.0.1:1", &["--ca", "/dev/zero"], &["it is a device; name a regular file"]);
    check("rediss://127.0.0.1:1", &["--ca", &manifest], &["Cargo.toml: no certificate in it"]);
    check("rediss://10.0.0.1:1", &["--insecure"], &["10.0.0.1 is not this machine"]);
    let java = ["--client", "java"];
    check(
        "hazelcasts://127.0.0.1:1/m",
        &java,
        &["--client java", "has no TLS", "rust, node, go and python can"],
    );
}

#[test]
fn wrong_usage_ends_with_3_before_anything_is_started() {
    let place = Place::new();
    let refused = |more: &[&str], fragments: &[&str]| {
        place.run(["bench"].iter().chain(more).copied().collect::<Vec<_>>()).refused(3, fragments);
    };
    refused(&[], &["--target is missing", "stepladder bench leaderboard"]);
    refused(&["--target", "redis://10.0.0.1:6379"], &["10.0.0.1 is not this machine", "loopback"]);
    refused(
        &["--target", "hazelcast://127.0.0.1:5701,example.org:5701/m"],
        &["example.org is not this machine"],
    );
    refused(&["--target", "http://127.0.0.1:80"], &["\"target\" must be hazelcast://"]);
    refused(&["--target", "null:", "--op", "put"], &["\"op\" must be get, set or mix"]);
    refused(&["--target", "null:", "--in-flight", "0"], &["\"in_flight\" must be a whole number from 1"]);
    refused(&["--target", "null:", "--keys", "uniform:many"], &["--keys uniform:many", "is not a number"]);
    refused(&["--target", "null:", "--runs", "0"], &["--runs 0", "1 to 1000"]);
    refused(&["--target", "null:", "--client", ""], &["--client is empty"]);
    let sweep = |more: &[&'static str]| [&["--target", "null:", "--sweep"], more].concat();
    refused(&sweep(&["value", "--value", "3,1024"]), &["--value names 2 of the 6", "a sweep needs"]);
    refused(&sweep(&["total", "--total", "100"]), &["--total 100", "320 or more"]);
    refused(&sweep(&["speed"]), &["invalid value 'speed'"]);
    refused(&["--target", "null:", "--timeline", "no/such/folder.svg"], &["--timeline no/such/folder.svg"]);
}
