//! SIGKILL while the viewer changes something: labels and runs are in the old or the requested state, other runs
//! unchanged.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use store::Store;

use crate::kills::{kills, note, readings, with_a_run};
use crate::place::{Place, Running};
use crate::viewing::printed;

/// Sends a request as the viewer's page does; what is answered may be cut off.
fn ask(url: &str, method: &str, path: &str, body: &str) -> TcpStream {
    let (host, root) = url.trim_start_matches("http://").split_once('/').expect("a host and a path");
    let mut stream = TcpStream::connect(host).expect("the viewer listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let length = body.len();
    let request = format!(
        "{method} /{root}{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("a request");
    stream
}

fn view(place: &Place) -> (Running, String) {
    let running = place.start(["view", "--listen", "127.0.0.1:0"]);
    let url = printed(|| running.out());
    (running, url)
}

/// A place with two runs that are alike, `arena-1` and `arena-2`.
fn with_two_runs() -> &'static Place {
    static PLACE: std::sync::OnceLock<Place> = std::sync::OnceLock::new();
    PLACE.get_or_init(|| {
        let place = with_a_run();
        let ran = place.run(["again", "arena-1"]);
        assert!(ran.code <= 2, "{ran:#?}");
        place
    })
}

/// Kills the viewer while it does this to `arena-1`; `is_done` reads from the store whether it did.
fn check(what: &str, request: (&str, &str, &str), is_done: impl Fn(&Store) -> bool) {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let count = kills(2);
    // The last one is not killed: it shows that the request works.
    for kill in 0..=count {
        let place = Place::new();
        fs::copy(with_two_runs().path("stepladder.db"), place.path("stepladder.db")).expect("a copy");
        let before = readings(&place);
        let (running, url) = view(&place);
        let mut answer = ask(&url, request.0, request.1, request.2);
        let after = Duration::from_micros(random.u64(0..15_000));
        if kill < count {
            std::thread::sleep(after);
        } else {
            let mut text = String::new();
            answer.read_to_string(&mut text).expect("an answer");
            assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        }
        running.signal(libc::SIGKILL);
        running.finish();
        let store = Store::open(place.path("stepladder.db")).expect("the store");
        assert_eq!(store.check().expect("it can be read"), [""; 0], "seed {seed}, kill {kill}");
        let is_done = is_done(&store);
        let found = readings(&place);
        assert_eq!(found.get("arena-2"), before.get("arena-2"), "seed {seed}, kill {kill}");
        assert!(found.get("arena-1").is_none_or(|run| Some(run) == before.get("arena-1")), "seed {seed}");
        assert_eq!(found.len(), if request.0 == "DELETE" && is_done { 1 } else { 2 });
        if kill < count {
            let met = if is_done { "done" } else { "as it was" };
            note(what, seed, kill, &format!("after {} µs: {met}", after.as_micros()));
        } else {
            assert!(is_done, "{what} does nothing");
        }
    }
}

#[test]
fn a_label_is_set_or_not_when_the_viewer_is_killed() {
    let request = ("PUT", "api/runs/arena-1/labels", r#"{"kept":"for good"}"#);
    check("view: label", request, |store| {
        let run = store.find_run("arena-1").and_then(|run| store.run(&run)).expect("the run");
        run.labels.get("kept").is_some_and(|value| {
            assert_eq!(value, "for good");
            true
        })
    });
}

#[test]
fn a_run_is_deleted_whole_or_not_at_all_when_the_viewer_is_killed() {
    let request = ("DELETE", "api/runs/arena-1?confirm=arena-1", "");
    check("view: deletion", request, |store| store.find_run("arena-1").is_err());
}
