//! `climb scenarios/rest.yaml`, `climb http://…` with flags, and what is refused before any load.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::main_job::checked_run;
use crate::place::{Place, words_of};

/// Things by their number, and the requests received.
#[derive(Default)]
struct Things {
    by_id: BTreeMap<u64, Value>,
    last_id: u64,
    created_titles: Vec<String>,
    deleted: u64,
    /// values of the `X-Token` header
    tokens: Vec<String>,
}

/// A server of things as `scenarios/rest.yaml` expects it, on a free port of loopback. Ends with the test's process.
fn rest_server() -> (SocketAddr, Arc<Mutex<Things>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let things = Arc::<Mutex<Things>>::default();
    let shared = things.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let things = shared.clone();
            // A broken connection is a bot that left.
            thread::spawn(move || drop(serve(stream, &things)));
        }
    });
    (address, things)
}

fn serve(stream: TcpStream, things: &Mutex<Things>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let (mut length, mut token) = (0, None);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "x-token" => token = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (status, answer) = answered(&first, &body, token, &mut things.lock().expect("nobody panicked"));
        let answer = if answer.is_null() { String::new() } else { answer.to_string() };
        let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n", answer.len());
        stream.write_all((head + &answer).as_bytes())?;
    }
}

fn answered(first: &str, body: &[u8], token: Option<String>, things: &mut Things) -> (u16, Value) {
    things.tokens.extend(token);
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let id = path.strip_prefix("/todos/").and_then(|id| id.parse::<u64>().ok());
    match (method, path, id) {
        ("GET", "/todos", _) => (200, things.by_id.values().take(10).cloned().collect()),
        ("GET", _, Some(id)) => match things.by_id.get(&id) {
            Some(thing) => (200, thing.clone()),
            None => (404, Value::Null),
        },
        ("POST", "/todos", _) => {
            let Ok(mut thing) = serde_json::from_slice::<Value>(body) else { return (400, Value::Null) };
            things.created_titles.push(thing["title"].as_str().unwrap_or_default().to_owned());
            things.last_id += 1;
            thing["id"] = json!(things.last_id);
            things.by_id.insert(things.last_id, thing.clone());
            (201, thing)
        }
        ("DELETE", _, Some(id)) => match things.by_id.remove(&id) {
            Some(_) => {
                things.deleted += 1;
                (204, Value::Null)
            }
            None => (404, Value::Null),
        },
        _ => (400, Value::Null),
    }
}

#[test]
fn the_worked_example_of_a_rest_api_is_climbed() {
    let (address, things) = rest_server();
    let place = Place::new();
    let example = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/rest.yaml"));
    let scenario =
        example.expect("it is there").replace("http://127.0.0.1:8080", &format!("http://{address}"));
    place.write("rest.yaml", &scenario);
    let ran = place.run(words_of(
        "climb rest.yaml --no-calibration --rate 200 --hold 2s --settle 500ms --objective 'errors == 0' \
         --json run.json",
    ));
    let run = checked_run(&place);
    let rung = &run["rungs"][0];
    assert_eq!((&rung["load_unit"], &rung["load"]), (&json!("req/s"), &json!(200.0)), "{ran:#?}");
    assert_eq!(rung["errors"], json!({}), "{rung:#}");
    assert_ne!(rung["verdict"], "FAIL", "{rung:#}");
    // Poisson: 400 are planned in 2 s, within five deviations.
    let offered = rung["offered"].as_u64().expect("a count");
    assert!((300..500).contains(&offered), "{offered}");
    let things = things.lock().expect("nobody panicked");
    assert!(things.deleted > 0, "captured numbers find what was created");
    let mut titles = things.created_titles.clone();
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), things.created_titles.len(), "a counter is different at every request");
}

#[test]
fn a_url_is_climbed_by_requesters_with_flags_and_a_secret_that_is_never_kept() {
    let (address, things) = rest_server();
    let place = Place::new();
    let url = format!("http://{address}/todos?page=1");
    let words = [
        "climb",
        &url,
        "--no-calibration",
        "--requesters",
        "1..2",
        "--think",
        "10ms",
        "--hold",
        "1s",
        "--settle",
        "200ms",
        "--header",
        "X-Token: ${REST_TEST_TOKEN}",
        "--expect-status",
        "200",
        "--expect-text",
        "[",
        "--json",
        "run.json",
    ];
    let mut command = place.command(words);
    command.env("REST_TEST_TOKEN", "hunter2-of-the-tests");
    let ran = place.start_command(command).finish();
    let run = checked_run(&place);
    let loads: Vec<_> =
        run["rungs"].as_array().expect("rungs").iter().map(|rung| rung["load"].clone()).collect();
    assert_eq!(loads, [json!(1.0), json!(2.0)], "{ran:#?}");
    assert!(run["rungs"][0]["answered"].as_u64() > Some(20), "{run:#}");
    let things = things.lock().expect("nobody panicked");
    assert!(things.tokens.len() > 20 && things.tokens.iter().all(|token| token == "hunter2-of-the-tests"));
    let export = place.run(["export", run["run"]["id"].as_str().expect("an id")]);
    for text in [&ran.out, &ran.err, &export.out, &run.to_string()] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(export.out.contains("${REST_TEST_TOKEN}"), "the plan keeps the name");
    let store = std::fs::read(place.path("stepladder.db")).expect("the store");
    assert!(!store.windows(7).any(|bytes| bytes == b"hunter2"), "the store holds the secret");
}

#[test]
fn what_cannot_go_right_is_refused_before_any_load() {
    let (address, _) = rest_server();
    let climb = |path: &str, more: &[&str]| {
        let url = format!("http://{address}{path}");
        let mut words = vec!["climb", &url, "--rate", "10"];
        words.extend(more);
        Place::new().run(words)
    };
    climb("/todos/77", &[]).refused(2, &["answers the first request, GET /todos/77, with status 404"]);
    climb("/todos", &["--header", "X: ${NOT_SET_HERE}"]).refused(
        2,
        &["header X of \"GET /todos\" needs the environment variable NOT_SET_HERE, which is not set"],
    );
    climb("/todos", &["--header", "Authorization: hunter2"])
        .refused(3, &["--header: Authorization holds a secret", "'Authorization: ${NAME}'"]);
    climb("/todos", &["--body-file", "no such file"])
        .refused(3, &["--body-file no such file: it cannot be read as UTF-8 text"]);
    climb("/todos", &["--requesters", "5"]).refused(3, &["--requesters: a ladder has one kind of load"]);
}
