//! Scripts as their users run them: a bot of one's own, and a server that knows nothing of Stepladder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::main_job::{assert_balanced, assert_valid, exit_code_of};
use crate::place::{Place, Running, free_port};

/// An echo server answers each move with itself.
const MOVER: &str = r#"
export const options = { hold: "2s", objectives: ["errors == 0"] };
export default async function mover(bot: { [name: string]: any }): Promise<void> {
  const ws = await bot.websocket("/");
  ws.send("hello " + bot.id);
  bot.check("the greeting", (await ws.next()) === "hello " + bot.id);
  bot.ready();
  ws.onmessage = ({ data }: { data: string }) => bot.answered("move", Number(data));
  for await (const n of bot.every("50ms")) bot.ask("move", n, () => ws.send(String(n)));
}"#;

fn echo_server(place: &Place) -> (Running, String) {
    let mut server = place.start(["serve", "null", "--protocol", "websocket", "--listen", "127.0.0.1:0"]);
    let line = server.wait_for_out("listening on");
    let url = line.split_whitespace().find(|word| word.starts_with("ws://")).expect("its URL");
    (server, url.trim_end_matches('/').to_owned())
}

#[test]
fn a_script_climbs_and_the_same_bot_is_played_again_without_its_file() {
    let place = Place::new();
    let (_server, url) = echo_server(&place);
    place.write("mover.ts", MOVER);
    let ran = place.climb(&["mover.ts", "--target", &url, "--rungs", "5,10", "--json", "run.json"]);
    let run = place.json("run.json");
    assert_valid(&run);
    assert_balanced(&run);
    assert_eq!(ran.code, exit_code_of(&run["verdict"]), "{ran:#?}");
    let rung = &run["rungs"][1];
    // Twenty a second from each of ten bots, for two seconds.
    assert!(rung["offered"].as_u64() >= Some(380), "{rung:#}");
    assert_eq!((rung["bots"].as_u64(), rung["errors"].as_object().map(|all| all.len())), (Some(10), Some(0)));
    fs::remove_file(place.path("mover.ts")).unwrap();
    let again = place.run(["again", run["run"]["id"].as_str().unwrap()]);
    assert!(again.out.contains("How many?"), "{again:#?}");
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
        "export const options = { rung: [1] };\nexport default () => {};",
        &[],
        3,
        &["bot.ts: options: unknown option \"rung\"; did you mean rungs? known: rungs, hold"],
    );
    check(
        "export const options = { hold: 'soon' };\nexport default () => {};",
        &[],
        3,
        &["bot.ts: ladder.hold:"],
    );
    check(
        "export const options = { ticks: 'often' };\nexport default () => {};",
        &[],
        3,
        &["bot.ts: options.ticks:"],
    );
    check(fine, &["--env", "A B"], 3, &["--env: \"A B\" is no name of an environment variable"]);
    check(fine, &["--env", "STEPLADDER_NOT_SET"], 2, &["STEPLADDER_NOT_SET (--env), which is not set"]);
    let place = Place::new();
    place.write("bot.ts", fine);
    place.run(["climb", "bot.ts"]).refused(3, &["--target"]);
    place
        .run(["climb", "bot.ts", "--target", "redis://127.0.0.1:9"])
        .refused(3, &["script", "ws://", "udp://"]);
    let rooms = "export default (bot: any) => bot.room('lobby');";
    check(rooms, &[], 3, &["bot.ts: bot.room is not built yet"]);
    check(
        "export default (bot: any) => bot.record('fps', 60);",
        &[],
        3,
        &["bot.ts: bot.record is not built yet"],
    );
    let rows = "export default (bot: any) => bot.row('users.csv');";
    check(rows, &[], 2, &["users.csv: cannot be read"]);
    place.run(["climb", "gone.ts", "--target", "ws://127.0.0.1:9"]).refused(3, &["gone.ts: cannot be read"]);
}

#[test]
fn a_try_says_what_was_answered_and_what_was_left_over_several_seconds() {
    let place = Place::new();
    let (_server, url) = echo_server(&place);
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
    let (_server, url) = echo_server(&place);
    let text = MOVER.replace("hello \" + bot.id", "hello \" + bot.env.TOKEN");
    place.write("mover.ts", &text);
    let secret = "b7f3-very-secret-value";
    let words =
        ["climb", "mover.ts", "--target", &url, "--env", "TOKEN", "--rungs", "2", "--json", "run.json"];
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
fn packages() -> Option<PathBuf> {
    let modules = root().join("target/examples/sdk/node_modules");
    if modules.join("ws").is_dir() && root().join("examples/sdk/node_modules").exists() {
        return Some(modules);
    }
    println!("NOT RUN: bots with packages of npm need Node.js, and examples/sdk/setup");
    None
}

fn root() -> PathBuf {
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
    let run = place.json("run.json");
    assert_valid(&run);
    assert_balanced(&run);
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

/// Two hundred clients each join, exchange measured messages and leave, and nothing unexpected happens. On a machine that is busy
/// with other tests the generator may be late; what the clients are told may not be wrong for it.
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
    let rung = climbed(&folder.join(bot), scheme, &start, 200);
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
    assert!(rung["answered"].as_u64() >= Some(800), "{}: {rung:#}", folder.display());
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
    for (folder, scheme) in [("http", "http"), ("udp", "udp"), ("tcp", "tcp")] {
        sound(&format!("gallery/{folder}"), "bot.ts", scheme, None);
    }
}
