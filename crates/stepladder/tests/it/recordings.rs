//! A real client is recorded, and the generated bot runs without edits.

use std::fs;
use std::process::Command;

use crate::main_job::checked_run;
use crate::place::{Place, free_port, url_of};
use crate::scripts::{packages, root};

/// A client of examples/game, with the package that such a client would use.
const CLIENT: &str = r#"
const { WebSocket } = require("ws");
const socket = new WebSocket(process.argv[2], { headers: { "X-Api-Key": "key-of-the-client" } });
let seq = 0, timer;
socket.on("open", () => socket.send(JSON.stringify({ type: "login", name: "ada", password: "hunter-2-long" })));
socket.on("message", (data) => {
  if (JSON.parse(data).type !== "welcome") return;
  timer = setInterval(() => socket.send(JSON.stringify({ type: "move", seq: seq++ })), 100);
  setTimeout(() => { clearInterval(timer); socket.close(); }, 3000);
});
"#;

#[test]
fn the_bot_of_a_recorded_client_climbs_as_it_was_written() {
    let Some(modules) = packages() else { return };
    let (place, port) = (Place::new(), free_port());
    let url = format!("ws://127.0.0.1:{port}");
    let start = format!(
        "NODE_PATH={} PORT={port} exec node {}",
        modules.display(),
        root().join("examples/game/server.js").display()
    );
    let client = place.write("client.cjs", CLIENT);
    let mut server = Command::new("sh").args(["-c", &start]).spawn().expect("the game's server");
    crate::place::eventually("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    let mut recorder = place.start(["record", "player.ts", "--to", &url, "--listen", "127.0.0.1:0"]);
    let here = url_of(&recorder.wait_for_out("listening on"));
    let left =
        Command::new("node").arg(&client).arg(here).env("NODE_PATH", &modules).status().expect("the client");
    assert!(left.success());
    let recorded = recorder.finish();
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!(recorded.code, 0, "{recorded:#?}");
    let text = fs::read_to_string(place.path("player.ts")).expect("the bot");
    for secret in ["hunter-2", "key-of-the"] {
        assert!(!format!("{recorded:?}{text}").contains(secret), "{recorded:#?}\n{text}");
    }
    assert!(recorded.out.contains("--env PASSWORD --env X_API_KEY"), "{recorded:#?}\n{text}");
    place.run(["record", "player.ts", "--to", &url]).refused(3, &["player.ts is there already"]);

    let words = [
        "climb",
        "player.ts",
        "--target",
        &url,
        "--start",
        &start,
        "--rungs",
        "24",
        "--hold",
        "2s",
        "--no-calibration",
    ];
    let mut command =
        place.command(words.iter().chain(&["--env", "PASSWORD", "--env", "X_API_KEY", "--json", "run.json"]));
    command.env("PASSWORD", "hunter-2-long").env("X_API_KEY", "key-of-the-client");
    let ran = place.start_command(command).finish();
    assert!(ran.code == 0 || ran.code == 2, "{ran:#?}\n{text}");
    let run = checked_run(&place);
    let rung = &run["rungs"][0];
    assert!(rung["verdict"] == "PASS" || rung["verdict"] == "GENERATOR_LIMITED", "{rung:#}\n{text}");
    assert_eq!(rung["errors"], serde_json::json!({}), "{rung:#}\n{text}");
    assert_eq!(rung["extra"]["counters"]["unexpected"].as_u64().unwrap_or(0), 0, "{rung:#}\n{text}");
    // Ten a second of each, as far as the recorded client kept its pace.
    assert!(rung["operations_ns"]["move"]["count"].as_u64() > Some(300), "{rung:#}\n{text}");
}

#[test]
fn what_cannot_be_recorded_or_imported_is_refused_before_anything_is_written() {
    let place = Place::new();
    place.write("a.har", "{\"log\": {}}");
    place.write("b.har", "{\"log\": {\"entries\": [{\"start");
    let check = |words: &[&str], code: i32, fragments: &[&str]| place.run(words).refused(code, fragments);
    check(&["record", "--to", "redis://127.0.0.1:1"], 3, &["--to redis://127.0.0.1:1", "tcp://"]);
    check(
        &["record", "player.txt", "--to", "ws://127.0.0.1:1"],
        3,
        &["player.txt: a bot's file ends in .ts"],
    );
    check(&["record", "--to", "ws://127.0.0.1:1", "--frames", "u8"], 3, &["--frames is for tcp://"]);
    check(&["record", "--to", "tcp://127.0.0.1:1", "--frames", "u7"], 3, &["frames are one of", "u32be"]);
    check(&["record", "--to", "ws://127.0.0.1:1", "--for", "soon"], 3, &["--for soon"]);
    check(&["import", "gone.har"], 3, &["gone.har cannot be read"]);
    check(&["import", "a.har"], 3, &["a.har: it is no HAR", "as HAR, with content"]);
    check(&["import", "b.har"], 3, &["b.har: it is no HAR"]);
    assert!(place.files_ending(".ts").is_empty());
}
