//! On which loopback ports a process listens, and what one request to such a port answers.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use procfs::net::TcpState;
use procfs::process::{FDTarget, Process};

use crate::scrape::body_of;

const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// The ports of 127.0.0.1 on which a process itself listens; empty where its descriptors cannot be read.
pub(super) fn ports_of(pid: u32) -> BTreeSet<u16> {
    let sockets = |process: &Process| {
        let descriptors = process.fd().ok()?.flatten();
        let inodes: BTreeSet<u64> = descriptors
            .filter_map(|one| if let FDTarget::Socket(inode) = one.target { Some(inode) } else { None })
            .collect();
        Some(inodes)
    };
    let Ok(process) = Process::new(pid as i32) else { return BTreeSet::new() };
    let (Some(own), Ok(all)) = (sockets(&process), process.tcp()) else { return BTreeSet::new() };
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    all.into_iter()
        .filter(|one| {
            one.state == TcpState::Listen && one.local_address.ip() == loopback && own.contains(&one.inode)
        })
        .map(|one| one.local_address.port())
        .collect()
}

/// Whether anything listens on this port where a process is, on 127.0.0.1 or on every address.
pub(super) fn is_taken(pid: u32, port: u16) -> bool {
    let all = Process::new(pid as i32).and_then(|process| process.tcp()).unwrap_or_default();
    let is_it = |address: SocketAddr| {
        address.port() == port && (address.ip().is_loopback() || address.ip().is_unspecified())
    };
    all.iter().any(|one| one.state == TcpState::Listen && is_it(one.local_address))
}

/// The body of the answer to a GET. Errors: there is none in time, with status 200 and at most so long.
pub(super) fn get(
    address: SocketAddr,
    path: &str,
    patience: Duration,
    bytes_max: usize,
) -> Result<Vec<u8>, String> {
    let until = Instant::now() + patience;
    let broken = |error: io::Error| error.to_string();
    let mut socket =
        TcpStream::connect_timeout(&address, patience.min(Duration::from_secs(5))).map_err(broken)?;
    socket.set_read_timeout(Some(LOOKS_EVERY)).map_err(broken)?;
    socket.set_write_timeout(Some(patience)).map_err(broken)?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).map_err(broken)?;
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match socket.read(&mut piece) {
            Ok(0) => {
                let body = body_of(&answer, true)?;
                return Ok(body.unwrap_or_default().into_owned());
            }
            Ok(count) => answer.extend_from_slice(&piece[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // Some keep the connection open; asked only when nothing more came at once.
                if let Some(body) = body_of(&answer, false)? {
                    return Ok(body.into_owned());
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(broken(error)),
        }
        if answer.len() > bytes_max {
            return Err(format!("the answer has more than {} MiB", bytes_max >> 20));
        }
        if Instant::now() >= until {
            return Err(format!("no whole answer within {} s", patience.as_secs()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_ports_of_a_process_are_its_own_and_on_loopback() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let ports = ports_of(std::process::id());
        assert!(ports.contains(&port(&own)) && !ports.contains(&port(&everywhere)), "{ports:?}");
        assert!(is_taken(std::process::id(), port(&everywhere)));
        assert!(ports_of(u32::MAX).is_empty());
    }

    #[test]
    fn an_answer_is_read_to_its_end_or_refused() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", Ok("ab")),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", Ok("ab")),
            ("HTTP/1.1 200 OK\r\n\r\nab", Ok("ab")),
            ("HTTP/1.1 404 Not Found\r\n\r\n", Err("status 404")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", Err("in the middle")),
            ("nothing", Err("not HTTP")),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut socket, _) = listener.accept().unwrap();
                let _ = socket.read(&mut [0; 1024]);
                socket.write_all(answer.as_bytes()).unwrap();
            });
            let got = get(address, "/x", Duration::from_secs(5), 1 << 20);
            server.join().unwrap();
            match expected {
                Ok(body) => assert_eq!(got.as_deref(), Ok(body.as_bytes()), "{answer}"),
                Err(why) => assert!(got.as_ref().is_err_and(|error| error.contains(why)), "{got:?}"),
            }
        }
    }
}
