//! Probes an address given without a protocol, to see what answers there.
//!
//! Only on this machine and private addresses, and bounded: a few connections, a few hundred bytes, a few seconds. The
//! climb is refused either way, since a guess could load the wrong thing, but the error message says what to write.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plan::{ConfigError, Mistakes, Place, Scheme, Seen, Target, may_load};

use crate::lookup;

const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// A server that speaks first does so at once.
const GREETING_WITHIN: Duration = Duration::from_millis(200);
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Looks where a mistake is a protocol that was not said, and puts what was seen into it.
pub fn fill_in(mut mistakes: Mistakes) -> Mistakes {
    for mistake in &mut mistakes.0 {
        let is_of_file = matches!(mistake.place, Place::Line { .. });
        if let ConfigError::NoProtocol { guess, seen, .. } = &mut mistake.wrong {
            *seen = look(guess, is_of_file);
        }
    }
    mistakes
}

/// What answers at a target; `None`: it may not be looked at. A file alone may not choose another machine.
fn look(target: &Target, is_of_file: bool) -> Option<Seen> {
    let Ok(addresses) = lookup::addresses_of(target) else { return Some(Seen::Nothing) };
    let may = |address: &SocketAddr| {
        may_load(address.ip(), &target.host, &[]).is_ok() && (address.ip().is_loopback() || !is_of_file)
    };
    if !addresses.iter().all(may) {
        return None;
    }
    let opens = |address: &&SocketAddr| TcpStream::connect_timeout(address, CONNECT_WITHIN).is_ok();
    let Some(address) = addresses.iter().find(opens) else { return Some(Seen::Nothing) };
    Some(Seen::Speaks(spoken(*address, target)))
}

/// The protocols that a server answers in, the likeliest first.
fn spoken(address: SocketAddr, target: &Target) -> Vec<Scheme> {
    let path = plan::percent::encoded(&target.path);
    let host = target.authority();
    let upgrade = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: c3RlcGxhZGRlciBsb29rcw==\r\n\r\n"
    );
    let said = ask(address, &upgrade).unwrap_or_default();
    match status_of(&said) {
        Some(101) => {
            let plain = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let plain = ask(address, &plain).unwrap_or_default();
            let is_page = status_of(&plain).is_some_and(|status| status < 400);
            return if is_page { vec![Scheme::Ws, Scheme::Http] } else { vec![Scheme::Ws] };
        }
        // It expects another upgrade, or one at another path.
        Some(426) => return vec![Scheme::Ws, Scheme::Http],
        Some(_) => return vec![Scheme::Http, Scheme::Ws],
        None => {}
    }
    let begins = |words: &str| said.starts_with(words.as_bytes());
    if begins("INFO ") {
        return vec![Scheme::Nats];
    }
    if begins("NOTICE ") || begins(":") || begins("ERROR :") {
        return vec![Scheme::Irc];
    }
    if said.starts_with(&[0x15, 0x03]) {
        return vec![Scheme::Https, Scheme::Wss];
    }
    let redis = ask(address, "PING\r\n").unwrap_or_default();
    if [&b"+PONG"[..], b"-NOAUTH", b"-DENIED"].iter().any(|answer| redis.starts_with(answer)) {
        return vec![Scheme::Redis];
    }
    Vec::new()
}

/// What a server says first, or else to these words.
fn ask(address: SocketAddr, words: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN)?;
    let mut first = [0; 256];
    stream.set_read_timeout(Some(GREETING_WITHIN))?;
    if let Ok(count @ 1..) = stream.read(&mut first) {
        return Ok(first[..count].to_vec());
    }
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(words.as_bytes())?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    let count = stream.read(&mut first)?;
    Ok(first[..count].to_vec())
}

fn status_of(said: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(said.get(..12)?).ok()?;
    let status = text.strip_prefix("HTTP/1.0 ").or_else(|| text.strip_prefix("HTTP/1.1 "))?;
    status.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// What is seen of a server that says this when a connection opens, and that to what it is asked.
    fn seen(greets: &'static str, answers: impl Fn(&str) -> &'static str + Send + 'static) -> Option<Seen> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.write_all(greets.as_bytes());
                let mut asked = [0; 1024];
                while let Ok(count @ 1..) = stream.read(&mut asked) {
                    let answer = answers(&String::from_utf8_lossy(&asked[..count]));
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        });
        look(&format!("http://localhost:{port}/ä").parse().unwrap(), false)
    }

    #[test]
    fn a_server_is_known_by_what_it_answers() {
        let speaks = |schemes: &[Scheme]| Some(Seen::Speaks(schemes.to_vec()));
        let is_upgrade = |asked: &str| asked.contains("Upgrade: websocket");
        const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        const UPGRADED: &str = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
        const BAD: &str = "HTTP/1.1 400 Bad Request\r\n\r\n";
        let http = |asked: &str| if asked.starts_with("GET /%C3%A4 HTTP/1.1\r\n") { OK } else { BAD };
        assert_eq!(seen("", http), speaks(&[Scheme::Http, Scheme::Ws]));
        let web = move |asked: &str| if is_upgrade(asked) { UPGRADED } else { OK };
        assert_eq!(seen("", web), speaks(&[Scheme::Ws, Scheme::Http]));
        let only_upgrades = move |asked: &str| if is_upgrade(asked) { UPGRADED } else { BAD };
        assert_eq!(seen("", only_upgrades), speaks(&[Scheme::Ws]));
        let upgrade_required = |_: &str| "HTTP/1.1 426 Upgrade Required\r\n\r\n";
        assert_eq!(seen("", upgrade_required), speaks(&[Scheme::Ws, Scheme::Http]));
        assert_eq!(seen("INFO {\"server_id\":\"x\"}\r\n", |_| ""), speaks(&[Scheme::Nats]));
        assert_eq!(seen(":irc.x NOTICE * :hello\r\n", |_| ""), speaks(&[Scheme::Irc]));
        let redis =
            |asked: &str| if asked.starts_with("PING") { "+PONG\r\n" } else { "-ERR unknown command\r\n" };
        assert_eq!(seen("", redis), speaks(&[Scheme::Redis]));
        assert_eq!(seen("", |_| "what?\n"), speaks(&[]));
    }

    #[test]
    fn where_nothing_listens_that_is_said_and_public_addresses_are_not_looked_at() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let at = |url: &str, is_of_file| look(&url.parse().unwrap(), is_of_file);
        assert_eq!(at(&format!("http://{free}"), false), Some(Seen::Nothing));
        assert_eq!(at("http://8.8.8.8", false), None);
        assert_eq!(at("http://169.254.169.254", false), None);
        assert_eq!(at("http://10.255.255.1", true), None, "a file alone may not choose another machine");
    }
}
