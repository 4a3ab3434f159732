//! Servers that ask for credentials, real and simulated: the right ones are accepted, wrong ones are refused with the
//! server's message, and the secret appears nowhere.
//!
//! Where a server is absent its rows say NOT RUN and pass (Debian: nats-server, mosquitto, ngircd, redis-server).

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::place::{Place, Ran, eventually, free_port};

const SECRET: &str = "tr0ub4dor&3-zYx";
const WRONG: &str = "wr0ng-horse-battery";

/// A program that runs until the test ends.
pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program on a port; `None`, and a line that says so, where it is not installed.
pub fn start(program: &str, port: u16, words: &[&str]) -> Option<Server> {
    let found = [program.to_owned(), format!("/usr/sbin/{program}")];
    let child = found.iter().find_map(|path| {
        Command::new(path)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()
    });
    let Some(child) = child else {
        println!("NOT RUN: there is no {program} here (Debian: apt-get install {program})");
        return None;
    };
    let server = Server(child);
    eventually("the server listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    Some(server)
}

/// Neither the terminal nor any file of the folder shows the secret, as it is or as base64.
#[track_caller]
fn assert_stands_nowhere(place: &Place, ran: &Ran) {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("bob:{SECRET}"));
    let check = |bytes: &[u8], name: &str| {
        for piece in [SECRET, &SECRET[..9], WRONG, &encoded[6..]] {
            let found =
                bytes.windows(piece.len()).any(|window| window.eq_ignore_ascii_case(piece.as_bytes()));
            assert!(!found, "{name} shows {piece}: {ran:#?}");
        }
    };
    check(ran.out.as_bytes(), "the output");
    check(ran.err.as_bytes(), "standard error");
    for entry in std::fs::read_dir(place.path("")).expect("the folder").flatten() {
        if entry.path().is_file() {
            check(&std::fs::read(entry.path()).expect("a file"), &entry.path().display().to_string());
        }
    }
}

/// A short climb with every kind of output, the secret in a variable.
fn climb(place: &Place, url: &str, options: &[&str], secret: Option<&str>) -> Ran {
    let usual = ["--hold", "2s", "--settle", "200ms", "--no-calibration", "--json", "run.json"];
    let outputs = ["--report", "run.html", "--ndjson", "live.ndjson"];
    let load: &[&str] = match url.split("://").next() {
        Some("redis") => &["--rungs", "4", "--objective", "errors == 0"],
        Some("http") => &["--rungs", "2", "--objective", "errors == 0"],
        _ => &["--rungs", "8", "--objective", "deliveries.lost == 0"],
    };
    let mut command = place.command([&["climb", url], load, options, &usual[..], &outputs[..]].concat());
    if let Some(secret) = secret {
        command.env("PLANTED", secret);
    }
    place.start_command(command).finish()
}

/// With the right secret a rung passes; with a wrong one, and with none, it does not, and these words are there.
#[track_caller]
fn check(url: &str, options: &[&str], refusal: &str) {
    let right = Place::new();
    let ran = climb(&right, url, options, Some(SECRET));
    assert_eq!(ran.code, 0, "{url}: {ran:#?}");
    assert_eq!(right.json("run.json")["rungs"][0]["verdict"], "PASS", "{url}");
    assert_stands_nowhere(&right, &ran);
    for (options, secret) in [(options, Some(WRONG)), (&[][..], None)] {
        let place = Place::new();
        let ran = climb(&place, url, options, secret);
        assert!(matches!(ran.code, 1 | 2), "{url}: {ran:#?}");
        assert!(ran.err.contains(refusal) || ran.out.contains(refusal), "{url}, {secret:?}: {ran:#?}");
        assert!(ran.err.contains("--password-env") || ran.out.contains("--password-env"), "{url}: {ran:#?}");
        if place.path("run.json").exists() {
            assert_ne!(place.json("run.json")["rungs"][0]["verdict"], "PASS", "{url}: {ran:#?}");
        }
        assert_stands_nowhere(&place, &ran);
    }
}

const OF_BOB: [&str; 4] = ["--user", "bob", "--password-env", "PLANTED"];

#[test]
fn a_real_nats_server_lets_in_who_shows_its_token_or_password() {
    for (own, options) in [
        (vec!["--auth", SECRET], &["--token-env", "PLANTED"][..]),
        (vec!["--user", "bob", "--pass", SECRET], &OF_BOB),
    ] {
        let port = free_port();
        let port_text = port.to_string();
        let words = [&["-a", "127.0.0.1", "-p", &port_text][..], &own].concat();
        let Some(_server) = start("nats-server", port, &words) else { return };
        check(&format!("nats://127.0.0.1:{port}"), options, "-ERR 'Authorization Violation'");
    }
}

/// The line of a password file: the password is hashed by the broker's own tool.
fn mosquitto_passwords(folder: &Path) -> Option<String> {
    let path = folder.join("passwords").display().to_string();
    let made = Command::new("mosquitto_passwd").args(["-b", "-c", &path, "bob", SECRET]).output().ok()?;
    made.status.success().then_some(path)
}

#[test]
fn a_real_mosquitto_lets_in_who_shows_its_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(passwords) = mosquitto_passwords(folder.path()) else {
        return println!("NOT RUN: there is no mosquitto_passwd here (Debian: apt-get install mosquitto)");
    };
    let port = free_port();
    let path = folder.path().join("mosquitto.conf");
    // If started by root, the broker would switch to another user, who cannot read the file.
    let text =
        format!("listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {passwords}\nuser root\n");
    std::fs::write(&path, text).expect("a file");
    let Some(_server) = start("mosquitto", port, &["-c", &path.display().to_string()]) else { return };
    check(&format!("mqtt://127.0.0.1:{port}"), &OF_BOB, "CONNACK 5 (not authorized)");
}

#[test]
fn a_real_ngircd_lets_in_who_shows_its_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = free_port();
    let own = include_str!("../../../../scenarios/ngircd.conf").replace("16667", &port.to_string());
    let own = own.replace("[Global]", &format!("[Global]\n\tPassword = {SECRET}"));
    let path = folder.path().join("ngircd.conf");
    std::fs::write(&path, own).expect("a file");
    let words = ["--nodaemon", "--config", &path.display().to_string()];
    let Some(_server) = start("ngircd", port, &words) else { return };
    check(
        &format!("irc://127.0.0.1:{port}"),
        &["--password-env", "PLANTED"],
        "ERROR :Access denied: Bad password?",
    );
}

#[test]
fn a_real_redis_lets_in_who_shows_its_password() {
    let port = free_port();
    let text = port.to_string();
    let usual = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &text];
    for (own, options, wrong) in [
        (
            vec!["--requirepass".to_owned(), SECRET.to_owned()],
            &["--password-env", "PLANTED"][..],
            "WRONGPASS",
        ),
        (
            format!("--user default off --user bob on >{SECRET} ~* &* +@all")
                .split(' ')
                .map(str::to_owned)
                .collect(),
            &OF_BOB[..],
            "WRONGPASS",
        ),
    ] {
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let Some(_server) = start("redis-server", port, &[&usual[..], &own].concat()) else { return };
        let url = format!("redis://127.0.0.1:{port}");
        let place = Place::new();
        let ran = climb(&place, &url, options, Some(SECRET));
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_stands_nowhere(&place, &ran);
        climb(&place, &url, options, Some(WRONG)).fails(2, &[wrong, "check --user and --password-env"]);
        climb(&place, &url, &[], None).fails(2, &["NOAUTH", "--password-env VARIABLE"]);
    }
}

/// Says back all that it was sent, in words that refuse it.
fn reflecting(greeting: &'static str, refusal: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut heard = vec![0; 4096];
                let _ = stream.write_all(greeting.as_bytes());
                let Ok(length @ 1..) = stream.read(&mut heard) else { return };
                let said = String::from_utf8_lossy(&heard[..length]).replace(['\r', '\n'], " ");
                // Quoted text is limited in length, and in NATS the secret comes after much else.
                let before = ["\"protocol\"", "Host: "];
                let said = before
                    .iter()
                    .find_map(|before| said.split_once(before))
                    .map_or(&said[..], |(_, end)| end);
                let _ = write!(stream, "{}", refusal.replace("{}", said));
                // Until the peer has read it.
                let _ = stream.shutdown(std::net::Shutdown::Write);
                while let Ok(1..) = stream.read(&mut heard) {}
            });
        }
    });
    port
}

#[test]
fn a_secret_that_a_server_says_back_in_its_refusal_stands_nowhere() {
    let http = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nYou sent {}";
    let of_bob = [&OF_BOB[..], &["--expect-text", "hello"]].concat();
    for (scheme, greeting, refusal, options) in [
        ("nats", "INFO {}\r\n", "-ERR 'Authorization Violation of {}'\r\n", &["--token-env", "PLANTED"][..]),
        ("nats", "INFO {}\r\n", "-ERR 'Authorization Violation of {}'\r\n", &OF_BOB),
        ("irc", "", ":irc 464 b :Bad password {}\r\n", &["--password-env", "PLANTED"]),
        ("redis", "", "-WRONGPASS no: {}\r\n", &["--password-env", "PLANTED"]),
        ("http", "", http, &of_bob),
        ("http", "", http, &["--token-env", "PLANTED", "--expect-text", "hello"]),
    ] {
        let url = format!("{scheme}://127.0.0.1:{}", reflecting(greeting, refusal));
        let place = Place::new();
        let ran = climb(&place, &url, options, Some(SECRET));
        assert!(matches!(ran.code, 1 | 2), "{url}: {ran:#?}");
        assert!(ran.err.contains("•••") || ran.out.contains("•••"), "{url}: {ran:#?}");
        assert_stands_nowhere(&place, &ran);
    }
}

#[test]
fn a_secret_that_is_not_there_is_refused_before_anything_starts() {
    let place = Place::new();
    let empty = place.write("empty.txt", "\n").display().to_string();
    let start = ["--start", "touch started", "--allow-start"];
    for (options, fragments) in [
        (
            ["--token-env", "NOT_SET_HERE"],
            ["--token-env: the environment variable NOT_SET_HERE is not set", ""],
        ),
        (
            ["--token-file", "/no/such/file"],
            ["--token-file: the file /no/such/file cannot be read", "No such file"],
        ),
        (["--token-file", &empty], ["--token-file: the file", "holds nothing that can be sent"]),
    ] {
        let ran = place.climb(&[&["nats://127.0.0.1:1"], &options[..], &start].concat());
        ran.refused(2, &fragments);
        assert!(!place.path("started").exists(), "{ran:#?}");
    }
}

#[test]
fn a_file_with_a_secret_that_only_a_scenario_names_is_not_sent_by_its_word() {
    let place = Place::new();
    let secret = place.write("id_rsa", SECRET).display().to_string();
    let port = reflecting("INFO {}\r\n", "-ERR 'Authorization Violation of {}'\r\n");
    let text = format!(
        "subject: {{ target: 'nats://127.0.0.1:{port}' }}\ncredentials: {{ token_file: {secret} }}\n"
    );
    place.write("evil.yaml", &text);
    let asks = format!("evil.yaml asks to send the server what the file {secret} holds");
    place.climb(&["evil.yaml"]).refused(3, &[&asks]);
}
