//! Scripts as users run them: a custom bot, and a server that knows nothing of Stepladder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::main_job::{checked_run, exit_code_of};
use crate::place::{Place, free_port, words_of};
use crate::tls_proxy::{AUTHORITY, CERTIFICATE, KEY};

/// An echo server answers each move with itself.
const MOVER: &str = r#"
export const options = { hold: "2s", objectives: ["errors == 0"] };
export default async function mover(bot: { [name: string]: any }): Promise<void> {
  const ws = await bot.websocket("/");
  ws.send("hello " + bot.id);
  bot.check("the greeting", (await ws.next()) === "hello " + bot.id);
  bot.ready();
  ws.onmessage = ({ data }: { data: string }) => bot.answered("move", Number(data));
  for await (const n of bot.every("50ms")) {
    bot.record("distance", 1.5);
    bot.ask("move", n, () => ws.send(String(n)));
  }
}"#;

#[test]
fn a_script_climbs_and_the_same_bot_is_played_again_without_its_file() {
    let place = Place::new();
    let (_server, url) = place.serve("null --protocol websocket");
    place.write("mover.ts", MOVER);
    let ran = place.climb(&words_of(&format!(
        "mover.ts --target {url} --rungs 5,10 --gate 'distance.p50 at 10 <= 1.5' --json run.json"
    )));
    let run = checked_run(&place);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    let rung = &run["rungs"][1];
    // Twenty a second from each of ten bots, for two seconds.
    assert!(rung["offered"].as_u64() >= Some(380), "{rung:#}");
    assert_eq!((rung["bots"].as_u64(), rung["errors"].as_object().map(|all| all.len())), (Some(10), Some(0)));
    let distance = &rung["recorded"]["distance"];
    assert!(distance["count"].as_u64() >= Some(380) && distance["max"] == 1.5, "{rung:#}");
    assert_eq!(run["gates"][0]["met"], true, "{:#}", run["gates"]);
    fs::remove_file(place.path("mover.ts")).unwrap();
    let again = place.run(["again", run["run"]["id"].as_str().unwrap()]);
    assert!(again.out.contains("How many?"), "{again:#?}");
}

/// A function in a separate file takes most of the script's time.
#[test]
fn a_climb_of_a_script_tells_the_function_that_takes_its_time() {
    let place = Place::new();
    let (_server, url) = place.serve("null --protocol websocket");
    let codec = "// Burns.\nexport type Text = string;\nexport function decode(text: Text): number {\n  \
                 let sum = 0;\n  for (let i = 0; i < 30000; i++) sum += i % 7;\n  return sum > 0 ? Number(text) : 0;\n}\n";
    place.write("codec.ts", codec);
    let text = MOVER.replace("Number(data)", "decode(data)");
    place.write("mover.ts", &format!("import {{ decode }} from \"./codec\";\n{text}"));
    let options = ["--rungs", "10", "--no-calibration", "--json", "run.json"];
    place.climb(&[&["mover.ts", "--target", &url], &options[..]].concat());
    let rung = &place.json("run.json")["rungs"][0];
    let function = &rung["worker"]["script_functions"][0];
    assert_eq!((&function["name"], &function["place"]), (&"decode".into(), &"codec.ts:3".into()), "{rung:#}");
    assert!(function["share"].as_f64() > Some(0.5), "{rung:#}");
}

/// Bots whose messages and timers are worth minutes of work.
#[test]
fn bots_that_are_buried_in_their_work_end_in_time_and_say_nothing_of_the_server() {
    let place = Place::new();
    let (_server, url) = place.serve("null --protocol websocket");
    let bot = r#"
function burn(): void {
  let sum = 0;
  for (let i = 0; i < 300000; i++) sum += i % 7;
}
export default async function buried(bot: any) {
  const ws = await bot.websocket("/");
  bot.ready();
  await bot.sleep("500ms");
  ws.onmessage = burn;
  for (let i = 0; i < 50; i++) ws.send("hello");
  for await (const n of bot.every("10ms")) {
    burn();
    bot.ask("move", n, () => ws.send(String(n)));
  }
}"#;
    place.write("buried.ts", bot);
    let ran = place.climb(&words_of(&format!(
        "buried.ts --target {url} --rungs 20 --hold 1s --workers 1 --no-calibration --json run.json"
    )));
    let run = checked_run(&place);
    let (verdict, reason) = (&run["verdict"], run["rungs"][0]["reason"].as_str().unwrap_or_default());
    assert_eq!((ran.code, verdict), (2, &"GENERATOR_LIMITED".into()), "{reason}");
    assert!(reason.contains("this machine") && reason.contains("the busiest worker was"), "{reason}");
}

#[test]
fn sessions_per_second_climb_with_how_many_were_there_at_once() {
    let place = Place::new();
    let (_server, url) = place.serve("null --protocol http");
    place.write(
        "visitor.ts",
        r#"
export const options = { load: "sessions/s", rungs: [5, 40], hold: "3s", arrivals: "even", objectives: ["session.p90 < 2s", "errors == 0"] };
export default async function visitor(bot: any) {
  await (await fetch("/in")).text();
  await bot.sleep("500ms");
  await (await fetch("/out")).text();
}"#,
    );
    let options =
        ["--target", &url, "--rungs", "40", "--hold", "3s", "--settle", "500ms", "--json", "run.json"];
    let ran = place.climb(&[&["visitor.ts"], &options[..]].concat());
    let run = checked_run(&place);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    let rung = &run["rungs"][0];
    assert_eq!(
        (rung["load"].as_f64(), rung["load_unit"].as_str()),
        (Some(40.0), Some("sessions/s")),
        "{rung:#}"
    );
    let sessions = &rung["sessions"];
    assert!((114..=126).contains(&sessions["planned"].as_u64().unwrap()), "{sessions:#}");
    assert_eq!(
        (&sessions["ended"], sessions["not_begun"].as_u64()),
        (&sessions["planned"], Some(0)),
        "{sessions:#}"
    );
    // Twenty by Little's law once half a second of the hold is over, and more on a machine that is busy.
    assert!(sessions["at_once"].as_f64() >= Some(16.0), "{sessions:#}");
    assert!(rung["operations_ns"]["session"]["mean"].as_f64() >= Some(5e8), "{rung:#}");
    assert_ne!(rung["verdict"], "FAIL", "{rung:#}");
    assert!(ran.out.contains("sessions/s") && ran.out.contains("at once"), "{ran:#?}");
}

#[test]
fn a_script_that_cannot_be_played_is_refused_with_its_line_before_any_load() {
    let check = |text: &str, options: &[&str], code: i32, fragments: &[&str]| {
        let place = Place::new();
        place.write("bot.ts", text);
        let target = ["--target", "ws://127.0.0.1:9"];
        place.run([&["climb", "bot.ts"], &target[..], options].concat()).refused(code, fragments);
    };
    let fine = "export default () => {};";
    check("export default () => {\n  const = 1;\n};", &[], 3, &["bot.ts:2:9: ", "const = 1;"]);
    check(
        "export const x = 1;",
        &[],
        3,
        &["bot.ts: it exports no function as default; write: export default"],
    );
    check("import \"./gone\";\nexport default () => {};", &[], 3, &["bot.ts:1:8: \"./gone\" names no file"]);
    check("import \"node:fs\";\nexport default () => {};", &[], 3, &["belongs to Node.js"]);
    check(
        "export const options = { hold: 'soon' };\nexport default () => {};",
        &[],
        3,
        &["bot.ts: options.hold:"],
    );
    check(fine, &["--env", "A B"], 3, &["--env: \"A B\" is no name of an environment variable"]);
    check(fine, &["--env", "STEPLADDER_NOT_SET"], 2, &["STEPLADDER_NOT_SET (--env), which is not set"]);
    let place = Place::new();
    place.write("bot.ts", fine);
    place.run(["climb", "bot.ts"]).refused(3, &["--target"]);
    place
        .run(["climb", "bot.ts", "--target", "redis://127.0.0.1:9"])
        .refused(3, &["script", "ws://", "udp://"]);
    let no_books = ["--objective", "deliveries.lost == 0"];
    check(fine, &no_books, 3, &["the script keeps no books of deliveries (bot.room)"]);
    let twice = "export default (bot: any) => { bot.record('move', 6); bot.answered('move', 1); };";
    check(twice, &[], 3, &["bot.ts: bot.record(\"move\", …) has the name of an operation"]);
    let records = "export default (bot: any) => bot.record('fps', 60);";
    check(records, &["--objective", "fps.p50 > 20ms"], 3, &["fps.p50 is a number without unit"]);
    check(
        records,
        &["--gate", "fpz.p50 at 10 > 20"],
        3,
        &["fpz.p50 is neither a figure nor", "which are: fps"],
    );
    let rows = "export default (bot: any) => bot.row('users.csv');";
    check(rows, &[], 2, &["users.csv: cannot be read"]);
    place.write("users.csv", "\u{feff}name,motto\r\nann,\"one\r\ntwo\"\r\nbob,\"x, y\"\r\n");
    place.write("bot.ts", rows);
    let climb = ["climb", "bot.ts", "--target", "ws://127.0.0.1:9", "--rungs", "2,3"];
    place
        .run(climb)
        .refused(2, &["users.csv: it has 2 rows and 3 bots take one each; add rows, lower the load"]);
    place.write("users.csv", "name,motto\nann,one,two\n");
    place.run(climb).refused(2, &["users.csv:2:1: this row has 3 values and the head names 2; quote values"]);
    place.run(["climb", "gone.ts", "--target", "ws://127.0.0.1:9"]).refused(3, &["gone.ts: cannot be read"]);
}

#[test]
fn a_try_says_what_was_answered_and_what_was_left_over_several_seconds() {
    let place = Place::new();
    let (_server, url) = place.serve("null --protocol websocket");
    place.write("mover.ts", &MOVER.replace("\"hello \" + bot.id", "\"hello \\\"\" + bot.id + \"\\\"\""));
    let ran = place.run(["try", "mover.ts", "--target", &url, "--for", "2s"]);
    assert!(ran.code == 0 && ran.out.contains("-> hello \"0\"") && ran.out.contains("answered"), "{ran:#?}");
    place.write("mover.ts", &MOVER.replace("bot.answered(\"move\"", "bot.answered(\"moved\""));
    let ran = place.run(["try", "mover.ts", "--target", &url, "--for", "2s"]);
    assert!(ran.out.contains("left unanswered") && ran.out.contains("unexpected: "), "{ran:#?}");
}

#[test]
fn a_variable_that_a_script_may_read_is_stored_and_shown_nowhere() {
    let place = Place::new();
    let (_server, url) = place.serve("null --protocol websocket");
    let text = MOVER.replace("hello \" + bot.id", "hello \" + bot.env.TOKEN");
    place.write("mover.ts", &text);
    let secret = "b7f3-very-secret-value";
    let words = [
        "climb",
        "mover.ts",
        "--target",
        &url,
        "--env",
        "TOKEN",
        "--rungs",
        "2",
        "--no-calibration",
        "--json",
        "run.json",
    ];
    let mut command = place.command(words);
    command.env("TOKEN", secret);
    let ran = place.start_command(command).finish();
    assert_eq!(ran.code, exit_code_of(&place.json("run.json")["verdict"]), "{ran:#?}");
    assert!(!format!("{}{}", ran.out, ran.err).contains(secret), "{ran:#?}");
    for entry in fs::read_dir(place.path("")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
    }
}

/// Where the packages of the examples are; `./check` installs them. `None`: they are not there.
pub fn packages() -> Option<PathBuf> {
    let modules = root().join("target/examples/sdk/node_modules");
    if modules.join("ws").is_dir() && root().join("examples/sdk/node_modules").exists() {
        return Some(modules);
    }
    println!("NOT RUN: bots with packages of npm need Node.js, and examples/sdk/setup");
    None
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Climbs a server that `start` starts, once; returns the rung.
fn climbed(bot: &Path, scheme: &str, start: &str, bots: u32) -> Value {
    let (place, port) = (Place::new(), free_port());
    let url = format!("{scheme}://127.0.0.1:{port}");
    let start = start.replace("{port}", &port.to_string());
    let bots = bots.to_string();
    let ran = place.climb(&[
        bot.to_str().expect("a path"),
        "--target",
        &url,
        "--start",
        &start,
        "--rungs",
        &bots,
        "--hold",
        "2s",
        "--objective",
        "errors == 0",
        "--no-calibration",
        "--json",
        "run.json",
    ]);
    assert!(ran.code == 0 || ran.code == 2, "{ran:#?}");
    let run = checked_run(&place);
    run["rungs"][0].clone()
}

#[test]
fn the_game_of_the_examples_is_climbed_by_its_own_player() {
    let Some(modules) = packages() else { return };
    let server = root().join("examples/game/server.js");
    let start = format!("NODE_PATH={} PORT={{port}} exec node {}", modules.display(), server.display());
    let rung = climbed(&root().join("examples/game/player.ts"), "ws", &start, 16);
    assert_eq!(rung["verdict"], "PASS", "{rung:#}");
    assert!(rung["answered"].as_u64() > Some(500) && rung["ticks"]["due"].as_u64() > Some(500), "{rung:#}");
    assert_eq!(rung["operations_ns"]["move"]["count"], rung["answered"]);
}

/// Two hundred clients each join, exchange measured messages and leave, and nothing unexpected happens; fifty on a machine that is
/// too busy with other tests for two hundred.
#[track_caller]
fn sound(folder: &str, bot: &str, scheme: &str, program: Option<&str>) {
    if let Some(program) = program
        && !["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"]
            .iter()
            .any(|path| Path::new(path).join(program).exists())
    {
        println!("NOT RUN: {folder} needs {program}");
        return;
    }
    let folder = root().join("examples").join(folder);
    let server = if folder.join("server.sh").exists() { "./server.sh" } else { "node server.mjs" };
    let start = format!("cd {} && PORT={{port}} exec {server}", folder.display());
    let mut rung = climbed(&folder.join(bot), scheme, &start, 200);
    if rung["verdict"] == "GENERATOR_LIMITED" {
        rung = climbed(&folder.join(bot), scheme, &start, 50);
    }
    assert!(
        rung["verdict"] == "PASS" || rung["verdict"] == "GENERATOR_LIMITED",
        "{}: {rung:#}",
        folder.display()
    );
    assert_eq!(rung["errors"], serde_json::json!({}), "{}: {rung:#}", folder.display());
    for what in ["failed", "lost", "not_sent", "unanswered_at_stop"] {
        assert_eq!(rung[what], 0, "{}: {what}: {rung:#}", folder.display());
    }
    assert!(
        rung["extra"]["counters"]["unexpected"].as_u64().unwrap_or(0) == 0,
        "{}: {rung:#}",
        folder.display()
    );
    // At least two measured messages a second of each.
    let least = rung["bots"].as_u64().expect("how many") * 4;
    assert!(rung["answered"].as_u64() >= Some(least), "{}: {rung:#}", folder.display());
}

#[test]
fn clients_of_real_sdks_play_unmodified() {
    let Some(_) = packages() else { return };
    for (folder, bot) in [
        ("socket.io", "bot.ts"),
        ("colyseus", "bot.ts"),
        ("centrifuge", "bot.ts"),
        ("signalr", "bot.ts"),
        ("phoenix", "bot.ts"),
        ("msgpack", "bot.ts"),
        ("msgpack", "bot-msgpackr.ts"),
        ("protobuf", "bot.ts"),
    ] {
        sound(&format!("sdk/{folder}"), bot, "ws", None);
    }
    sound("sdk/mqtt", "bot.ts", "ws", Some("mosquitto"));
}

#[test]
fn the_gallery_is_played_over_its_protocols() {
    let Some(_) = packages() else { return };
    for (folder, scheme, server) in [
        ("http", "http", None),
        ("sse", "http", None),
        ("udp", "udp", None),
        ("tcp", "tcp", None),
        ("irc", "tcp", Some("ngircd")),
        ("nats", "tcp", Some("nats-server")),
        ("redis", "tcp", Some("redis-server")),
    ] {
        sound(&format!("gallery/{folder}"), "bot.ts", scheme, server);
    }
}

/// HTTP/2 or 1.1 and WebSocket over TLS, as Node.js and its usual package implement them.
const NODE_SERVER: &str = r#"
const fs = require("fs"), http2 = require("http2"), { WebSocketServer } = require("ws");
const [certificate, key] = process.argv.slice(2);
let sessions = 0;
const options = { cert: fs.readFileSync(certificate), key: fs.readFileSync(key), allowHTTP1: true };
const server = http2.createSecureServer(options, (request, response) =>
  response.end(request.url === "/sessions" ? String(sessions) : request.httpVersion));
server.on("session", () => sessions++);
const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "v2" });
server.on("upgrade", (request, socket, head) => sockets.handleUpgrade(request, socket, head, (ws) =>
  ws.on("message", (text) => ws.send(String(text)))));
server.listen(0, "127.0.0.1", () => console.log("listening on " + server.address().port));
"#;

/// Uses custom names and a custom close code, and sends twenty requests at once.
const TLS_BOT: &str = r#"
export default async function bot(bot: any) {
  const ws = await bot.websocket("/", { protocols: ["v1", "v2"] });
  bot.check("the subprotocol", ws.protocol === "v2");
  ws.send("hello");
  bot.check("the echo", (await ws.next()) === "hello");
  const closed = new Promise<CloseEvent>((resolve) => { ws.onclose = resolve; });
  ws.close(4001, "bye");
  bot.check("it waits for the answer", ws.readyState === 2);
  const { code, reason, wasClean } = await closed;
  bot.check("its own code", code === 4001 && reason === "bye" && wasClean);
  const sessions = () => fetch("/sessions").then((r) => r.text());
  const before = await sessions();
  const said = await Promise.all(Array.from({ length: 20 }, () => fetch("/version").then((r) => r.text())));
  bot.check("HTTP/2", said.every((version) => version === "2.0"));
  bot.check("no further connection", (await sessions()) === before);
  bot.ready();
  for await (const _ of bot.every("100ms")) await (await fetch("/version")).text();
}"#;

#[test]
fn a_server_behind_tls_with_a_certificate_of_its_own_is_played() {
    let Some(modules) = packages() else { return };
    let place = Place::new();
    place.write("server.cjs", NODE_SERVER);
    place.write("bot.ts", TLS_BOT);
    let start = || {
        let mut node = std::process::Command::new("node");
        node.arg(place.path("server.cjs")).arg(CERTIFICATE).arg(KEY).env("NODE_PATH", &modules);
        let mut server = place.start_command(node);
        let line = server.wait_for_out("listening on");
        let port = line.rsplit(' ').next().expect("its port").trim().to_owned();
        (server, format!("wss://localhost:{port}"))
    };
    let (_server, url) = start();
    let ran = place.run(["try", "bot.ts", "--target", &url, "--for", "1s", "--ca", AUTHORITY]);
    assert!(ran.code == 0 && ran.out.contains("GET /version") && !ran.out.contains("!!"), "{ran:#?}");
    let words = ["climb", "bot.ts", "--target", &url, "--rungs", "1", "--hold", "1s", "--no-calibration"];
    place.run(words).refused(
        2,
        &[
            "the first bot did not come in",
            "invalid peer certificate",
            "--ca FILE trusts",
            "--insecure accepts",
        ],
    );
    // With several bots each meanwhile opens its own.
    place.write("bot.ts", &TLS_BOT.replace("=== before", "!== ''"));
    let ran = place
        .climb(&words_of(&format!("bot.ts --target {url} --rungs 2 --hold 2s --insecure --json run.json")));
    let run = checked_run(&place);
    assert_eq!(run["rungs"][0]["errors"], serde_json::json!({}), "{:#}", run["rungs"][0]);
    assert!(ran.out.replace("\n  ", " ").contains("Any certificate was accepted (--insecure)"), "{ran:#?}");
}
