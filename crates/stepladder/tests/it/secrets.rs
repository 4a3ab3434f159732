//! A secret from the environment, and a server that echoes whatever it is sent: the secret appears nowhere.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use crate::place::{Place, words_of};
use crate::terminal;

const SECRET: &str = "tok/En+\"9f86d081884c7d65=9a2feaa0";

/// Answers wrongly with all it was sent: as it was, encoded in every way, and cut anywhere.
fn reflecting_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for (count, stream) in listener.incoming().flatten().enumerate() {
            thread::spawn(move || reflect(stream, count));
        }
    });
    port
}

fn reflect(mut stream: std::net::TcpStream, count: usize) {
    let mut request = vec![0; 8192];
    // The first one is the probe before the climb, which needs any answer at all.
    let mut turn = count + 16;
    while let Ok(length @ 1..) = stream.read(&mut request) {
        let said = &request[..length];
        let value = String::from_utf8_lossy(said);
        let value =
            value.split("X-Key: ").nth(1).and_then(|rest| rest.split("\r\n").next()).unwrap_or_default();
        let hexadecimal = |upper: bool| {
            let one = |byte: u8| if upper { format!("%{byte:02X}") } else { format!("{byte:02x}") };
            value.bytes().map(one).collect::<String>()
        };
        let percent: String = value
            .bytes()
            .map(|byte| match byte.is_ascii_alphanumeric() {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02x}"),
            })
            .collect();
        let text = match turn % 8 {
            0 => value.to_owned(),
            1 => percent,
            2 => STANDARD.encode(format!("{}{value}", "x".repeat(turn / 8 % 3))),
            3 => URL_SAFE.encode(value),
            4 => serde_json::json!({ "you sent": value }).to_string(),
            5 => hexadecimal(false),
            6 => value[..value.len().min(9 + turn % 20)].to_owned(),
            _ => value.replace('"', "&quot;"),
        };
        // No answer at all, from its first line; a status with these words; a wrong body.
        let kind = turn / 8 % 3;
        let _ = match kind {
            0 => write!(stream, "{text}\r\n\r\n"),
            1 => write!(stream, "HTTP/1.1 500 {text}\r\nContent-Length: 0\r\n\r\n"),
            _ => write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()),
        };
        if kind == 0 {
            return;
        }
        turn += 1;
    }
}

#[track_caller]
fn assert_absent(bytes: &[u8], place: &str) {
    let encoded = STANDARD.encode(SECRET);
    let hexadecimal: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let pieces =
        [&SECRET[..9], &SECRET[SECRET.len() - 9..], "9f86d08188", &encoded[..10], &hexadecimal[10..24]];
    for piece in pieces {
        let found =
            bytes.windows(piece.len()).position(|window| window.eq_ignore_ascii_case(piece.as_bytes()));
        assert!(
            found.is_none(),
            "{place} shows {piece}: {:?}",
            found
                .map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(60)..(at + 60).min(bytes.len())])
                    .into_owned())
        );
    }
}

#[test]
fn a_secret_that_a_server_says_back_stands_nowhere() {
    let port = reflecting_server();
    let place = Place::new();
    let url = format!("http://127.0.0.1:{port}/a");
    let words = [
        "climb",
        &url,
        "--no-calibration",
        "--header",
        "X-Key: ${PLANTED}",
        "--rate",
        "60",
        "--hold",
        "2s",
        "--settle",
        "200ms",
        "--expect-text",
        "never",
        "--json",
        "run.json",
        "--report",
        "run.html",
        "--ndjson",
        "live.ndjson",
    ];
    let shown = terminal::run(&place, &words, "", &[("PLANTED", SECRET)]);
    assert!(place.path("run.json").exists(), "{shown:?}");
    let store = std::fs::read(place.path("stepladder.db")).expect("the store");
    // Ensures that the server did echo something, so that there was something to mask.
    assert!(store.windows("•••".len()).any(|window| window == "•••".as_bytes()), "{shown:?}");
    assert_absent(shown.text.as_bytes(), "the terminal");
    assert_absent(&store, "the store");
    for name in ["run.json", "run.html", "live.ndjson"] {
        assert_absent(&std::fs::read(place.path(name)).expect(name), name);
    }
    let export = place.run(["export", "a", "-o", "run.ndjson"]);
    assert_eq!(export.code, 0, "{export:?}");
    assert_absent(&std::fs::read(place.path("run.ndjson")).expect("the export"), "the export");
    assert_eq!(place.run(["export", "a", "--csv", "csv"]).code, 0);
    for file in std::fs::read_dir(place.path("csv")).expect("a folder").flatten() {
        assert_absent(&std::fs::read(file.path()).expect("a file"), &file.path().display().to_string());
    }
    for words in [vec!["show", "a"], vec!["runs"]] {
        assert_absent(place.run(&words).out.as_bytes(), words[0]);
    }
}

/// Says what it decoded from Basic credentials, and what `X-Tenant` is.
fn login_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut request = vec![0; 8192];
                while let Ok(length @ 1..) = stream.read(&mut request) {
                    let said = String::from_utf8_lossy(&request[..length]).into_owned();
                    let after = |name: &str| {
                        let value = said.split(name).nth(1).and_then(|rest| rest.split("\r\n").next());
                        value.unwrap_or_default().trim().to_owned()
                    };
                    let credentials = STANDARD.decode(after("Basic ")).unwrap_or_default();
                    let credentials = String::from_utf8_lossy(&credentials).into_owned();
                    let password = credentials.split(':').nth(1).unwrap_or_default();
                    let text = format!("password {password} of tenant {} is wrong", after("X-Tenant: "));
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
                    if write!(stream, "{head}{text}").is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn a_decoded_password_stands_nowhere_and_json_stays_json_beside_a_secret_that_is_a_number() {
    const PASSWORD: &str = "Sup3rS3cretPw!x";
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}/a", login_server());
    let credentials = STANDARD.encode(format!("admin:{PASSWORD}"));
    for output in ["--json", "--ndjson"] {
        let mut command = place.command(["climb", &url, "--rate", "1000", "--expect-text", "never"]);
        command.args(words_of(&format!("--no-calibration --hold 2s --settle 200ms --seed 1000 {output} -")));
        command.args(["--header", "Authorization: Basic ${CRED}", "--header", "X-Tenant: ${TENANT}"]);
        let ran = place.start_command({
            command.env("CRED", &credentials).env("TENANT", "1000");
            command
        });
        let ran = ran.finish();
        assert_eq!(ran.code, 1, "{ran:#?}");
        match output {
            "--json" => {
                let report: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
                assert_eq!(report["run"]["seed"], 1000, "{report:#}");
            }
            _ => ran.out.lines().for_each(|line| {
                serde_json::from_str::<serde_json::Value>(line).expect("a line of JSON");
            }),
        }
        for text in [&ran.out, &ran.err] {
            assert!(!text.contains(PASSWORD) && !text.contains("tenant 1000"), "{text}");
        }
        assert!(ran.err.contains("password ••• of tenant •••"), "{}", ran.err);
    }
    let store = std::fs::read(place.path("stepladder.db")).expect("the store");
    let holds = |text: &str| store.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("of tenant •••") && !holds(PASSWORD) && !holds("tenant 1000"));
    assert!(holds("--rate 1000"), "the command line is the user's own");
}
