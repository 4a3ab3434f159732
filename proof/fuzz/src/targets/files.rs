//! What comes as a file or on the command line: tick logs, histograms, scenarios, schemas; and heads of requests to the viewer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use inflight_analysis::testing::{Plant, PlantedLine, process};
use inflight_analysis::{CellKey, Heap, HeapType, LineError, Replay};
use measure::Distribution;
use measure::ServerCounter;
use measure::ticklog::{MetricReader, TickForm, TickLogReader, TimeUnit};
use plan::schema::{self, Schema};
use plan::{Flags, ScenarioText};
use recording::{Content, Event, Frames, Opening, Session, Side, What};

use crate::split::same_however_split;

/// A file of ticks in every form: the same seconds and the same summary however it is split, and counts that add up.
pub(super) fn tick_log(input: &[u8]) {
    let table = TickForm::Csv { column: None, unit: None };
    let statsd = TickForm::Statsd { metric: None };
    for (form, rate_hz) in
        [(TickForm::Seconds, Some(60.0)), (TickForm::JsonLines, None), (table, None), (statsd, Some(30.0))]
    {
        ticks_of(input, form, rate_hz);
    }
}

fn ticks_of(input: &[u8], form: TickForm, rate_hz: Option<f64>) {
    same_however_split(input, |pieces| {
        let mut reader = TickLogReader::of(form.clone(), rate_hz);
        for piece in pieces {
            reader.push(piece);
        }
        reader.finish();
        let seconds = reader.take_seconds();
        let summary = reader.summary();
        assert!(summary.malformed <= summary.lines.saturating_add(1), "more mistakes than lines");
        assert_eq!(summary.seconds as usize, seconds.len());
        for second in seconds.clone() {
            let _ = second.into_tick_second("log", 0);
        }
        format!("{:?} {:?}", seconds, summary)
    });
    let mut follower = TickLogReader::of(form, Some(60.0));
    follower.push(input);
    follower.close_before(u64::MAX);
    follower.finish();
}

pub(super) const METRICS_WORDS: &[&str] = &[
    "_bucket{le=\"",
    "+Inf",
    "_sum ",
    "_count ",
    "t_seconds",
    "# EOF\n",
    "# TYPE ",
    "{quantile=\"0.9\"} ",
    "NaN",
];

/// Answers of a metrics endpoint, one after the other: counts add up, and no more ticks are unclear than late.
pub(super) fn metrics(input: &[u8]) {
    let _ = watch::fuzz::metrics_body(input);
    let text = String::from_utf8_lossy(input);
    for metric in [None, Some("t_seconds".to_owned())] {
        let mut reader = MetricReader::new(metric, Some(TimeUnit::S), 30.0);
        for (second, answer) in text.split_inclusive("# EOF\n").chain([text.as_ref()]).enumerate() {
            reader.take(1_700_000_000_000 + 1_500 * second as u64, answer.as_bytes());
        }
        for second in reader.take_seconds() {
            let unclear = ServerCounter::TicksUnclear.of(&second.counters).unwrap_or(0);
            assert!(second.counts.balances(), "{second:?}");
            assert!(unclear <= second.counts.over + second.counts.under, "{second:?}");
        }
        reader.end_trial();
        reader.take_notices();
    }
}

pub(super) fn metrics_seeds() -> Vec<Vec<u8>> {
    let answer = |ticks: u64| {
        format!(
            "# TYPE t_seconds histogram\nt_seconds_bucket{{a=\"b\\n\",le=\"0.032\"}} 0\nt_seconds_bucket{{le=\"0.035\",a=\"b\\n\"}} {ticks}\n\
             t_seconds_bucket{{a=\"b\\n\",le=\"+Inf\"}} {ticks} # {{x=\"y\"}} 0.1 1.0\nt_seconds_sum{{a=\"b\\n\"}} {} 17\n# EOF\n",
            ticks as f64 * 0.03337
        )
    };
    vec![
        (0..4).map(|second| answer(second * 45)).collect::<String>().into_bytes(),
        b"t_seconds{quantile=\"0.9\"} 0.034\nt_seconds_sum 1\nt_seconds_count 30\n".to_vec(),
        b"t_seconds 0.033\n# EOF\nt_seconds 0.034\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\n0\r\n\r\n".to_vec(),
    ]
}

/// The file of counters that a JVM maps into its memory.
pub(super) fn jvm_counters(input: &[u8]) {
    if let Some(counters) = watch::fuzz::hsperf(input) {
        assert!(counters.gc_s >= 0.0 && counters.heap_used_bytes >= 0.0, "{counters:?}");
    }
}

/// One with a single counter.
pub(super) fn jvm_counter_seeds() -> Vec<Vec<u8>> {
    let mut file = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
    file.extend([0; 16]);
    for number in [32u32, 1, 56, 20, 0] {
        file.extend(number.to_le_bytes());
    }
    file.extend([b'J', 0, 1, 1]);
    file.extend(48u32.to_le_bytes());
    file.extend(b"sun.os.hrt.frequency\0\0\0\0\0\0\0\0");
    file.extend(1_000_000_000u64.to_le_bytes());
    vec![file]
}

/// A datagram in which the kernel lists sockets: never more of them than fit into it.
pub(super) fn socket_list(input: &[u8]) {
    if let Some(count) = watch::fuzz::sockets(input) {
        assert!(count <= input.len() / SOCKET_BYTES, "{count} of {} bytes", input.len());
    }
}

/// The least that one socket takes: its header and its message.
const SOCKET_BYTES: usize = 16 + 72;

/// Two sockets, the first with an attribute behind it, and the end; an error.
pub(super) fn socket_list_seeds() -> Vec<Vec<u8>> {
    let message = |kind: u16, body: &[u8]| {
        let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let mut socket = vec![2, 1, 0, 0, 31, 144];
    socket.resize(72, 7);
    let with_attribute = [&socket[..], &[5, 0, 8, 0, 0]].concat();
    let list = [message(20, &with_attribute), message(20, &socket), message(3, &[0; 4])].concat();
    vec![list, message(2, &(-2i32).to_ne_bytes())]
}

pub(super) fn tick_log_seeds() -> Vec<Vec<u8>> {
    let mut spread = Distribution::new();
    (1..100u64).for_each(|at| spread.record(at * 333_333));
    let v2 = STANDARD.encode(spread.to_v2());
    vec![
        b"{\"time\":1700000000000,\"title\":\"tickInterval\",\"data\":{\"16\":58,\"17\":2}}\n".to_vec(),
        format!("{{\"time\":1700000000000,\"title\":\"stepladder\",\"from\":1699999999000,\"to\":1700000000000,\"interval\":\"{v2}\"}}\n")
            .into_bytes(),
        b"time 1700000000000 tickInterval 16:58 17:2\ngarbage\n".to_vec(),
        b"{\"t\":1700000000000,\"dt\":16.7,\"busy\":3,\"id\":\"a\"}\n{\"t_ns\":1700000000016000000,\"id\":7}\n".to_vec(),
        b"a:1:2|ms|@0.5|#b:c\na:3|h\nb:1|c\n".to_vec(),
        b"//a\nEVENTS;FrameTime (ms);GameThreadTime;time\n\"a;b\";16,7;3;2026-11-27T18:00:00Z\n".to_vec(),
    ]
}

/// An HDR histogram in V2: what is read is written and read again with the same counts.
pub(super) fn histogram(input: &[u8]) {
    let read = |bytes: &[u8]| {
        if let Ok(distribution) = Distribution::from_v2(bytes) {
            let written = distribution.to_v2();
            let again = Distribution::from_v2(&written).expect("what was written is read");
            assert_eq!(again.count(), distribution.count());
            assert_eq!(again.to_v2(), written);
            let _ = (again.summary(), again.quantile(0.99, 10));
            let sum: u64 = distribution.buckets().map(|(_, count)| count).fold(0, u64::saturating_add);
            assert_eq!(sum, distribution.count(), "buckets and their sum");
        }
    };
    read(input);
    if let Ok(bytes) = STANDARD.decode(input) {
        read(&bytes);
    }
}

/// What client libraries wrote (`!` before a note): whatever is taken can be summed and shown.
pub(super) fn client_lines(input: &[u8]) {
    let mut replay = Replay::default();
    for line in String::from_utf8_lossy(input).lines() {
        let _ = match line.strip_prefix('!') {
            Some(note) => replay.note(0, note),
            None => replay.line(0, line),
        };
    }
    let report = replay.report::<LineError>(|_| Ok(String::from_utf8_lossy(input).into_owned()));
    if let Ok(report) = report {
        let comparison = report.contract();
        assert_eq!(comparison.cells.len(), report.cells.len());
        serde_json::to_string(&comparison).expect("figures are JSON");
    }
}

pub(super) fn client_seeds() -> Vec<Vec<u8>> {
    let key = CellKey { op: "get".to_owned(), value_bytes: 3, in_flight: "100".to_owned(), total: 1000 };
    let plant = Plant {
        client: "planted",
        key,
        cell: 0,
        block: 0,
        ops_per_s: 100,
        seconds: 2,
        p50_ns: 1_000_000,
        failed: 1,
        error: "no result",
        has_runtime: true,
    };
    let line = |line: PlantedLine| format!("{}{}\n", if line.is_note { "!" } else { "" }, line.text);
    let whole: String = process(&plant).into_iter().map(line).collect();
    let stopped = whole.replace("\"hits\"", "\"stopped\":\"signal\",\"hits\"");
    let profiled = whole.replace("\"profile\":null", "\"profile\":\"cpu\"");
    [whole, stopped, profiled, "user:main;runtime:memmove 600000\n".to_owned()].map(String::into_bytes).into()
}

pub(super) fn histogram_seeds() -> Vec<Vec<u8>> {
    let mut one = Distribution::new();
    one.record(1_000_000);
    let mut many = Distribution::new();
    (1..200u64).for_each(|at| many.record_many(at * 77_777, at));
    vec![Distribution::new().to_v2(), one.to_v2(), many.to_v2(), STANDARD.encode(one.to_v2()).into_bytes()]
}

/// A heap snapshot, or a table of what is alive: what is read has at most ten types, the largest first, which hold no more
/// than the whole.
pub(super) fn heap_snapshot(input: &[u8]) {
    let read = if input.starts_with(b"by ") { Heap::read_table(input) } else { Heap::read_snapshot(input) };
    let Ok(heap) = read else { return };
    assert!(heap.types.len() <= 10 && heap.types.is_sorted_by(|one, other| one.bytes >= other.bytes));
    let sum = |of: fn(&HeapType) -> u64| heap.types.iter().map(of).fold(0, u64::saturating_add);
    assert!(sum(|one| one.bytes) <= heap.bytes && sum(|one| one.objects) <= heap.objects);
}

pub(super) const HEAP_WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    "\"snapshot\":",
    "\"nodes\":",
    "\"strings\":",
    "\"self_size\"",
    "\"native\"",
    "by type\n",
    "by function\n",
    " 1 ",
    "\n",
];

pub(super) fn heap_seeds() -> Vec<Vec<u8>> {
    let meta = r#""meta":{"node_fields":["type","name","self_size"],"node_types":[["hidden","object","synthetic"],"string","number"]}"#;
    let whole = format!(
        r#"{{"snapshot":{{{meta},"node_count":3}},"nodes":[2,0,9,1,1,5000,0,0,40],"edges":[1],"strings":["","Kept"]}}"#
    );
    let empty = format!(r#"{{"snapshot":{{{meta},"node_count":0}},"nodes":[],"strings":[]}}"#);
    let table = "by type\n5000 1 Kept\n40 2 byte[]\n".to_owned();
    let functions = "by function\n40 2 main.keep\n".to_owned();
    [whole, empty, table, functions].map(String::into_bytes).into()
}

/// A scenario: a plan or a list of mistakes, the same one each time; each mistake has words and a line that the file has.
pub(super) fn scenario(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let resolve = || {
        let scenario = ScenarioText { path: "s.yaml".to_owned(), text: text.to_owned() };
        plan::resolve(&Flags::climb("s.yaml"), Some(scenario), 7)
    };
    match (resolve(), resolve()) {
        (Ok(one), Ok(other)) => assert_eq!(format!("{one:?}"), format!("{other:?}")),
        (Err(one), Err(other)) => {
            assert!(!one.0.is_empty(), "refused without a mistake");
            assert_eq!(one.0.len(), other.0.len());
            one.0.iter().for_each(|mistake| assert!(!mistake.to_string().is_empty()));
        }
        (one, other) => panic!("{one:?}\nand then\n{other:?}"),
    }
}

pub(super) fn scenario_seeds() -> Vec<Vec<u8>> {
    [
        include_str!("../../../../scenarios/arena-built-in.yaml"),
        include_str!("../../../../scenarios/chat.yaml"),
        include_str!("../../../../scenarios/grid.yaml"),
        include_str!("../../../../scenarios/rest.yaml"),
        include_str!("../../../../scenarios/poll-loop.yaml"),
        include_str!("../../../../scenarios/grpc.yaml"),
    ]
    .map(without_comments)
    .into()
}

fn without_comments(text: &str) -> Vec<u8> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(|line| [line, "\n"]).collect::<String>().into_bytes()
}

pub(super) const SCENARIO_WORDS: &[&str] = &[
    "subject:",
    "target: ",
    "ws://127.0.0.1:1",
    "http://127.0.0.1:1",
    "load:",
    "hold: ",
    "10s",
    "1.5h",
    "%",
    "&a",
    "*a",
    "!!str ",
    "- ",
    "{}",
    "[]",
    "\"",
    "|\n",
    "---\n",
    "<<: ",
    "\n  ",
    "${HOME}",
    "0x7f",
    "1e9",
    ".inf",
    ".nan",
    "~",
];

/// A .proto file, a value for its first message, and texts that stand for numbers, durations, loads, targets and objectives.
pub(super) fn schema_and_units(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (file, value) = text.split_once('\u{1}').unwrap_or((text, "{}"));
    if let Ok(schema) = Schema::of_text("a.proto", file)
        && let Ok(message) = schema.message("M")
        && let Ok(value) = serde_json::from_str::<serde_json::Value>(value)
        && let Ok(read) = schema::message_of(&message, &value)
    {
        let shown = schema::json_of(&read);
        let _ = schema::path_fits(&message, "a.b", true);
        assert!(shown.is_object() || !value.is_object(), "{shown}");
    }
    let short: String = text.chars().take(100).collect();
    let _ = short.parse::<plan::Target>();
    let _ = short.parse::<ladder::Objective>();
    let _ = (plan::units::rung_load(&short), plan::units::share(&short), plan::units::boolean(&short));
    if let Ok(ns) = plan::units::duration_ns(&short) {
        assert_eq!(plan::units::duration_ns(&format!("{ns}ns")).ok(), Some(ns), "{short:?}");
    }
}

pub(super) fn schema_seeds() -> Vec<Vec<u8>> {
    [
        "syntax = \"proto3\";\npackage p;\nmessage M { string a = 1; repeated int64 b = 2; map<string, M> c = 3; oneof d { double e = 4; bytes f = 5; } enum E { X = 0; } E g = 6; }\nservice S { rpc Do(M) returns (stream M); }\u{1}{\"a\":\"x\",\"b\":[1,\"2\"],\"c\":{\"k\":{}}}",
        "ws://user@[::1]:8080/a?b#c",
        "latency.p99 < 20ms",
        "1h30m",
        "1.5k",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

pub(super) const SCHEMA_WORDS: &[&str] = &[
    "syntax = \"proto3\";",
    "syntax = \"proto2\";",
    "message M {",
    "}",
    "repeated ",
    "optional ",
    "int32 a = 1;",
    "map<string, M> ",
    "oneof x {",
    "enum E {",
    "import \"google/protobuf/timestamp.proto\";",
    "option ",
    "reserved 1 to max;",
    "extend ",
    "group ",
    "http://",
    "wss://",
    "[::ffff:127.0.0.1]",
    "127.1",
    "p99",
    " < ",
    "ms",
    "%",
    "/s",
];

/// The head of a request to the viewer: passes only with our host and our token, whatever else stands in it.
pub(super) fn viewer_head(input: &[u8]) {
    const TOKEN: &str = "abcdefgh";
    let gate = viewer::Gate::new(42068, TOKEN.to_owned());
    let mut lines = input.split(|byte| *byte == b'\n');
    let mut words = lines.next().unwrap_or_default().splitn(2, |byte| *byte == b' ');
    let Ok(method) = http::Method::from_bytes(words.next().unwrap_or_default()) else { return };
    let Ok(uri) = http::Uri::try_from(words.next().unwrap_or_default()) else { return };
    let mut headers = http::HeaderMap::new();
    for line in lines.take(20) {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default().trim_ascii());
        if let (Ok(name), Ok(value)) =
            (http::HeaderName::from_bytes(name), http::HeaderValue::from_bytes(value))
        {
            headers.append(name, value);
        }
    }
    let ruling = gate.rule(&method, &uri, &headers);
    if matches!(ruling, viewer::Ruling::Pass | viewer::Ruling::Enter) {
        assert!(
            uri.path().strip_prefix('/').is_some_and(|path| path.starts_with(TOKEN)),
            "without the token"
        );
        let hosts: Vec<&[u8]> = headers.get_all("host").iter().map(http::HeaderValue::as_bytes).collect();
        let [host] = hosts[..] else { panic!("{} hosts", hosts.len()) };
        let ours = [&b"localhost:42068"[..], b"127.0.0.1:42068", b"[::1]:42068"];
        assert!(ours.iter().any(|ours| ours.eq_ignore_ascii_case(host)));
        let changes = method != http::Method::GET && method != http::Method::HEAD;
        assert!(!changes || headers.contains_key("origin") || headers.contains_key("sec-fetch-site"));
    }
}

pub(super) fn viewer_seeds() -> Vec<Vec<u8>> {
    [
        "GET /abcdefgh/api/runs\nhost: 127.0.0.1:42068",
        "POST /abcdefgh/api/runs/1/labels?confirm=yes\nhost: localhost:42068\norigin: http://localhost:42068\nsec-fetch-site: same-origin",
        "GET http://[::1]:42068/abcdefgh/\nhost: [::1]:42068\nsec-fetch-site: cross-site\nsec-fetch-mode: navigate\nsec-fetch-dest: document",
        "DELETE /abcdefgh\nhost: evil:42068",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

pub(super) const HEAD_WORDS: &[&str] = &[
    "GET ",
    "POST ",
    "/abcdefgh",
    "host: 127.0.0.1:42068\n",
    "origin: http://127.0.0.1:42068\n",
    "sec-fetch-site: same-origin\n",
    "sec-fetch-site: none\n",
    "sec-fetch-mode: navigate\n",
    "sec-fetch-dest: document\n",
    "localhost:42068",
    "%2f",
    "?",
    "..",
];

/// A recorded session, as a HAR and as bytes over TCP: whatever stands in it, the bot is a script, and what was recorded is data.
pub(super) fn recorded(input: &[u8]) {
    if let Ok(found) = recording::from_har(input) {
        is_a_script(&found.session, Frames::Raw);
    }
    let piece = |(at, piece): (usize, &[u8])| Event {
        at_ns: at as u64 * 10_000_000,
        connection: 0,
        what: What::Message(if at % 2 == 0 { Side::Client } else { Side::Server }, Content::bytes(piece)),
    };
    let open = Event { at_ns: 0, connection: 0, what: What::Opened(Opening::Tcp) };
    let pieces = input.split(|byte| *byte == b'|').enumerate().map(piece);
    let session = Session {
        target: "tcp://127.0.0.1:1".to_owned(),
        events: std::iter::once(open).chain(pieces).collect(),
    };
    let (session, frames) = recording::framed(&session, None);
    is_a_script(&session, frames);
}

fn is_a_script(session: &Session, frames: Frames) {
    let Ok(written) = recording::write_bot(session, "bot.ts", frames) else { return };
    let text = written.text.clone();
    match script::bundle(std::path::Path::new("bot.ts"), &move |_| Ok(text.clone())) {
        Ok(bundle) => assert!(bundle.names.counters.is_empty(), "recorded text runs:\n{}", written.text),
        Err(mistake) => panic!("{mistake}\n{}", written.text),
    }
}

pub(super) const RECORDED_WORDS: &[&str] = &[
    "bot.count(\"x\")",
    "${",
    "`",
    "*/",
    "//",
    "\\",
    "'",
    "\"",
    "__proto__",
    "\"token\":",
    "\u{2028}",
    "|",
    "\n",
    "{\"type\":\"a\",\"n\":",
];

pub(super) fn recorded_seeds() -> Vec<Vec<u8>> {
    let har = serde_json::json!({ "log": { "entries": [
        { "startedDateTime": "2026-11-27T08:00:00Z", "time": 3, "_resourceType": "fetch",
          "request": { "method": "POST", "url": "http://a.test/login?x=1", "headers": [{ "name": "X-A", "value": "b" }], "postData": { "text": "{\"password\":\"abcdef\"}" } },
          "response": { "status": 200, "headers": [], "content": { "text": "{\"token\":\"tok-123456\"}" } } },
        { "startedDateTime": "2026-11-27T08:00:01Z", "_resourceType": "websocket", "request": { "method": "GET", "url": "ws://a.test/p?t=tok-123456" },
          "_webSocketMessages": [
            { "type": "send", "time": 1_795_766_401.1, "opcode": 1, "data": "{\"type\":\"a\",\"n\":1}" },
            { "type": "receive", "time": 1_795_766_401.2, "opcode": 2, "data": "AAEC" } ] },
    ] } });
    let lines = "LOGIN ada|WELCOME s-12345678|SAY s-12345678 1|OK 1|SAY s-12345678 2|OK 2|SAY s-12345678 3|OK 3|SAY s-12345678 4|OK 4";
    let json = (0..6)
        .map(|n| format!("{{\"type\":\"a\",\"n\":{n},\"${{x}}\":\"`\"}}|{{\"type\":\"b\",\"n\":{n}}}|"));
    vec![
        har.to_string().into_bytes(),
        lines.replace('|', "\n|").into_bytes(),
        json.collect::<String>().into_bytes(),
    ]
}
