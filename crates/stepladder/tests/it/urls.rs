//! URLs as users write them: names with several addresses, characters that a request line does not allow, and no
//! protocol.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

use socket2::{Domain, Socket, Type};

use crate::main_job::assert_valid;
use crate::place::{Place, free_port, words_of};

const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A server of HTTP that gives this answer to each request and keeps the request lines it has not seen before.
fn serve(listener: TcpListener, answer: &'static str) -> Arc<Mutex<Vec<String>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = lines.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let seen = seen.clone();
            thread::spawn(move || {
                let (mut buffer, mut text) = ([0; 4096], Vec::new());
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    text.extend_from_slice(&buffer[..count]);
                    while let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
                        let head: Vec<u8> = text.drain(..end + 4).collect();
                        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
                        let line = String::from_utf8_lossy(line).into_owned();
                        let mut seen = seen.lock().expect("no test panics with it");
                        if !seen.contains(&line) {
                            seen.push(line);
                        }
                        drop(seen);
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    lines
}

/// A listener on ::1 alone, and a socket that keeps the servers of other tests off its port on 127.0.0.1, where it refuses
/// connections; `None` where this machine has no IPv6.
fn on_ipv6() -> Option<(TcpListener, u16, Socket)> {
    loop {
        let listener = TcpListener::bind("[::1]:0").ok()?;
        let port = listener.local_addr().expect("its address").port();
        let bound = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        if bound.bind(&SocketAddr::from(([127, 0, 0, 1], port)).into()).is_ok() {
            return Some((listener, port, bound));
        }
    }
}

#[test]
fn localhost_leads_to_a_server_that_listens_on_ipv6_alone_and_it_is_said() {
    let Some((listener, port, _bound)) = on_ipv6() else { return };
    serve(listener, EMPTY);
    let place = Place::new();
    let ran = place.climb(&words_of(&format!(
        "http://localhost:{port}/ --requesters 1 --hold 1s --settle 100ms --json run.json"
    )));
    let said = format!("localhost is [::1]:{port} in this run: 127.0.0.1:{port} does not accept connections");
    assert!(ran.err.contains(&said), "{ran:#?}");
    let run = place.json("run.json");
    assert_valid(&run);
    assert!(run["rungs"][0]["answered"].as_u64() > Some(0), "{run:#}");
}

#[test]
fn localhost_where_nothing_listens_is_refused_with_both_addresses() {
    let port = free_port();
    let place = Place::new();
    for scheme in ["http", "ws", "redis"] {
        let bots: &[&str] = if scheme == "ws" { &["--bots", "echo"] } else { &[] };
        let url = format!("{scheme}://localhost:{port}");
        place.climb(&[&[url.as_str()], bots].concat()).refused(
            2,
            &[
                &format!(
                    "cannot reach {url} (connection refused at 127.0.0.1 and ::1, tried 3 times in 2 s)"
                ),
                "is a server listening there? To try Stepladder without one of your own:",
            ],
        );
    }
}

#[test]
fn signs_that_a_request_line_does_not_hold_are_sent_as_a_browser_sends_them() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let lines = serve(listener, EMPTY);
    let place = Place::new();
    let scenario = format!(
        "subject: {{ target: 'http://127.0.0.1:{port}' }}
bots:
  kind: http
  connections: 2
  variables: {{ who: {{ one_of: ['a b', 'ä', 'x%20y'] }} }}
  requests:
    - {{ name: fixed, get: '/ä?q=ö \"' }}
    - {{ name: drawn, get: '/{{who}}?w={{who}}' }}
ladder: {{ rate: [100], hold: 1s, settle: 100ms }}
"
    );
    place.write("signs.yaml", &scenario);
    let ran = place.climb(&["signs.yaml", "--json", "run.json"]);
    let run = place.json("run.json");
    assert_valid(&run);
    assert_eq!(run["rungs"][0]["failed"], 0, "{ran:#?}");
    let lines = lines.lock().unwrap().clone();
    for path in ["/%C3%A4?q=%C3%B6%20%22", "/a%20b?w=a%20b", "/%C3%A4?w=%C3%A4", "/x%20y?w=x%20y"] {
        assert!(lines.contains(&format!("GET {path} HTTP/1.1")), "{path} in {lines:#?}");
    }
    assert_eq!(lines.len(), 4, "{lines:#?}");
}

#[test]
fn the_path_of_a_websocket_is_encoded_too() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("ws://{}/play?room=ä b", listener.local_addr().expect("its address"));
    let lines = serve(listener, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let place = Place::new();
    place.climb(&[&url, "--bots", "echo"]).refused(2, &[&format!("{url} is not a WebSocket server")]);
    assert_eq!(*lines.lock().unwrap(), ["GET /play?room=%C3%A4%20b HTTP/1.1"]);
}

#[test]
fn a_target_without_its_protocol_is_refused_with_what_answers_there() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("its address");
    serve(listener, EMPTY);
    let place = Place::new();
    let written = format!("{at}/path");
    place.climb(&[&written]).refused(
        3,
        &[&format!(
            "\"{written}\" does not say which protocol; what answers there is http://{written} or ws://{written}"
        )],
    );
    let nothing = format!("localhost:{}", free_port());
    place.climb(&[&nothing]).refused(
        3,
        &[&format!(
            "\"{nothing}\" does not say which protocol, and nothing listens there; which protocol: http://{nothing} or \
             ws://{nothing}?"
        )],
    );
}

#[test]
fn answers_that_are_all_redirects_pass_with_a_word_and_fail_where_they_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("its address"));
    serve(listener, "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n");
    let place = Place::new();
    let short = ["--requesters", "1", "--hold", "1s", "--settle", "100ms", "--json", "run.json"];
    let ran = place.climb(&[&[url.as_str()][..], &short].concat());
    assert!(
        ran.err.contains("GET / is answered with a redirect (302 to /login), which counts as right"),
        "{ran:#?}"
    );
    let rung = &place.json("run.json")["rungs"][0];
    let remark = rung["remark"].as_str().unwrap_or_default();
    assert!(remark.contains("answers were redirects") && remark.contains("all "), "{rung:#}");
    let ran = place.climb(&[&[url.as_str(), "--expect-status", "200"][..], &short].concat());
    assert_ne!(ran.code, 0, "{ran:#?}");
    let ran = place.climb(&[&[url.as_str(), "--redirects", "3"][..], &short].concat());
    assert!(
        ran.code != 0 && place.json("run.json")["rungs"][0]["errors"]["redirect loop"].as_u64() > Some(0),
        "{ran:#?}"
    );
}
