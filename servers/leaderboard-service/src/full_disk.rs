//! The service while its disk is full: nothing is acknowledged, everything that needs the disk is refused, and it
//! resumes when there is room.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::log::{Log, SimulatedDisk};
use super::{Options, run_with};
use crate::protobuf::{put_bytes, put_message, put_signed, put_whole};
use servers_shared::{ServeError, Shutdown};

struct Service {
    address: SocketAddr,
    shutdown: Shutdown,
    thread: JoinHandle<Result<(), ServeError>>,
}

impl Service {
    fn start(disk: &SimulatedDisk) -> Service {
        let shutdown = Shutdown::new().unwrap();
        let options = Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            threads: Some(1),
            shutdown: Some(shutdown.clone()),
            ..Options::default()
        };
        let (disk, (tell, told)) = (disk.clone(), mpsc::channel());
        let thread = std::thread::spawn(move || {
            let started = move |started: super::Started| tell.send(started.address).unwrap();
            run_with(options, started, |_, kept, threads| {
                Log::open_on(Arc::new(disk), kept, threads, 1 << 20).map(Some)
            })
        });
        Service { address: told.recv_timeout(Duration::from_secs(20)).unwrap(), shutdown, thread }
    }

    fn end(self) -> Result<(), ServeError> {
        self.shutdown.trigger();
        self.thread.join().unwrap()
    }
}

fn send(service: &Service, method: &str, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(service.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    stream
}

/// Status and text of the only answer.
fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    (text[9..12].parse().unwrap(), text)
}

fn ask(service: &Service, method: &str, target: &str) -> (u16, String) {
    answer(send(service, method, target))
}

/// A connection that speaks WebSocket.
fn switch(service: &Service) -> TcpStream {
    let mut stream = TcpStream::connect(service.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    write!(stream, "GET /ws HTTP/1.1\r\nHost: x\r\n{fields}\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    stream
}

/// Sends a request of this field of `Request` for the member: an increment, or a read.
fn send_message(stream: &mut TcpStream, field: u32) {
    let mut message = Vec::new();
    put_whole(&mut message, 1, 7);
    put_message(&mut message, field, |out| {
        put_bytes(out, 1, b"main");
        put_bytes(out, 2, b"ann");
        if field == UPDATE {
            put_whole(out, 3, 1);
            put_signed(out, 4, 1);
        }
    });
    // Masked with zeros.
    let head = [0x82, 0x80 | message.len() as u8, 0, 0, 0, 0];
    stream.write_all(&[&head[..], &message].concat()).unwrap();
}

/// The message of the next response.
fn hear_message(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    let mut message = vec![0; usize::from(head[1])];
    stream.read_exact(&mut message).unwrap();
    message
}

/// Fields of `Request`.
const UPDATE: u32 = 2;
const GET: u32 = 3;

const ANN: &str = "/leaderboards/main/members/ann";

#[test]
fn a_service_whose_disk_is_full_refuses_and_goes_on_when_there_is_room() {
    let disk = SimulatedDisk::default();
    let service = Service::start(&disk);
    let increment = format!("{ANN}?score=1");
    assert_eq!(ask(&service, "PATCH", &increment).0, 200);
    disk.limit(Some(disk.bytes()));
    let waiting = send(&service, "PATCH", &increment);
    while !ask(&service, "GET", "/metrics").1.contains("leaderboard_disk_full 1") {
        std::thread::sleep(Duration::from_millis(5));
    }
    for (method, target, status) in [
        ("PATCH", increment.as_str(), 507),
        ("GET", ANN, 503),
        ("GET", "/healthz", 503),
        ("GET", "/openapi.json", 200),
    ] {
        let (given, text) = ask(&service, method, target);
        assert_eq!(given, status, "{method} {target}: {text}");
        assert!(status == 200 || text.contains("Retry-After: 1\r\n"), "{text}");
    }
    waiting.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let nothing = (&waiting).read(&mut [0; 1]).map_err(|error| error.kind());
    assert!(matches!(nothing, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{nothing:?}");
    disk.limit(None);
    waiting.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (status, text) = answer(waiting);
    assert!(status == 200 && text.contains(r#""score":"2""#), "{text}");
    assert_eq!(ask(&service, "PATCH", &increment).0, 200);
    service.end().unwrap();
    let service = Service::start(&disk.after_power_cut(&mut fastrand::Rng::with_seed(1)));
    assert!(ask(&service, "GET", ANN).1.contains(r#""score":"3""#));
    service.end().unwrap();
}

#[test]
fn messages_are_refused_at_once_while_the_disk_is_full_and_what_was_changed_before_waits_for_it() {
    let disk = SimulatedDisk::default();
    let service = Service::start(&disk);
    let (mut waiting, mut refused) = (switch(&service), switch(&service));
    disk.limit(Some(disk.bytes()));
    send_message(&mut waiting, UPDATE);
    while !ask(&service, "GET", "/metrics").1.contains("leaderboard_disk_full 1") {
        std::thread::sleep(Duration::from_millis(5));
    }
    for (field, code) in [(UPDATE, 507), (GET, 503)] {
        send_message(&mut refused, field);
        let mut error = Vec::new();
        put_whole(&mut error, 1, code);
        let message = hear_message(&mut refused);
        // Id 7, then an error that begins with its code.
        assert_eq!((&message[..3], &message[4..7]), (&[8, 7, 0x12][..], &error[..]), "{message:02x?}");
    }
    // A client that uses the other protocol is accepted as well.
    drop(switch(&service));
    waiting.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let nothing = waiting.read(&mut [0; 1]).map_err(|error| error.kind());
    assert!(matches!(nothing, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{nothing:?}");
    disk.limit(None);
    waiting.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut standing = vec![8, 7];
    put_message(&mut standing, 3, |out| {
        put_signed(out, 1, 1);
        put_whole(out, 3, 1);
    });
    assert_eq!(hear_message(&mut waiting), standing);
    service.end().unwrap();
    let service = Service::start(&disk.after_power_cut(&mut fastrand::Rng::with_seed(1)));
    assert!(ask(&service, "GET", ANN).1.contains(r#""score":"1""#));
    service.end().unwrap();
}

#[test]
fn a_service_that_ends_while_its_disk_is_full_says_so() {
    let disk = SimulatedDisk::default();
    let service = Service::start(&disk);
    disk.limit(Some(disk.bytes()));
    let waiting = send(&service, "PATCH", &format!("{ANN}?score=1"));
    while !ask(&service, "GET", "/metrics").1.contains("leaderboard_disk_full 1") {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(waiting);
    assert!(matches!(service.end(), Err(ServeError::Data { .. })));
}
