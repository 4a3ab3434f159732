//! The service while its disk is full: nothing is acknowledged, everything is refused that needs the disk, and it goes on
//! when there is room.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::log::{Log, SimulatedDisk};
use super::{Options, run_with};
use crate::{ServeError, Shutdown};

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
