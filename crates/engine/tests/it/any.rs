//! `drivers::Any` on a real worker thread: connections of several protocols in one kind of bots.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use drivers::any::{Received, Send};
use drivers::http::{Fetch, Piece};
use drivers::{Address, Any, Closed, HttpVersion, OpenError, Protocol, tcp};
use engine::collector::FromWorker;
use engine::thread::{Setup, spawn};
use engine::{BotContext, Bots, Collector, ConnectionId, MonotonicClock, Shared, Timeline};
use measure::MetricNames;
use plan::{EchoBots, Scheme, WorkerPlan};

const SECOND_NS: u64 = 1_000_000_000;

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn hear(words: String) {
    HEARD.lock().unwrap().push(words);
}

/// Bot n opens a connection to address n, sends something and receives.
struct Callers;

impl Bots for Callers {
    type Driver = Any;
    type Settings = EchoBots;

    fn metric_names(_: &EchoBots) -> Arc<MetricNames> {
        MetricNames::new(&["none"], &[], &[], &OpenError::CAUSES)
    }

    fn new(_: &EchoBots, _: &WorkerPlan) -> Self {
        Callers
    }

    fn join(&mut self, unit: u32, _: u64, ctx: &mut BotContext<'_, Any>) {
        ctx.open(unit, unit as usize);
    }

    fn opened(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, Any>) {
        let fetch = Fetch { tag: 1, method: "GET", path: "/", headers: &[], body: b"", keep_alive: true };
        let what = if bot == 3 { Send::Request(fetch) } else { Send::Text(b"hello") };
        ctx.send(connection, 0, 0, what);
    }

    fn received(
        &mut self,
        _: ConnectionId,
        bot: u32,
        received: Received<'_>,
        _: u64,
        _: &mut BotContext<'_, Any>,
    ) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match received {
            Received::Text(bytes) => hear(format!("{bot} text {}", text(bytes))),
            Received::Binary(bytes) => hear(format!("{bot} binary {}", text(bytes))),
            Received::Http(Piece::Head(head)) => hear(format!("{bot} head {}", head.status)),
            Received::Http(Piece::Part { bytes, .. }) => hear(format!("{bot} part {}", text(bytes))),
            Received::Http(other) => hear(format!("{bot} {other:?}")),
        }
    }

    fn due(&mut self, _: u32, _: u32, _: u64, _: &mut BotContext<'_, Any>) {}

    fn closed(&mut self, _: ConnectionId, bot: u32, why: Closed, _: &mut BotContext<'_, Any>) {
        let words = match why {
            Closed::Failed(error) => error.to_string(),
            other => format!("{other:?}"),
        };
        hear(format!("{bot} ended: {words}"));
    }
}

/// Answers the first words of its first client, and waits for the end.
fn answer_over_tcp(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 100]).unwrap() > 0);
        stream.write_all(answer).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    address
}

#[test]
fn connections_of_all_kinds_are_heard_and_end_in_one_worker() {
    let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let speaks_udp = far.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut room = [0; 100];
        let (count, from) = far.recv_from(&mut room).unwrap();
        far.send_to(&room[..count], from).unwrap();
        // It stays open, so that only our own close ends the connection.
        let _ = far.recv_from(&mut room);
    });
    let nothing = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let http = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let addresses = [
        (speaks_udp, Protocol::Udp),
        (nothing, Protocol::Udp),
        (answer_over_tcp(b"one\ntwo\n"), Protocol::Tcp(tcp::Frames::Lines)),
        (answer_over_tcp(http), Protocol::Http(HttpVersion::Any)),
    ];
    let addresses = addresses.map(|(socket, speaks)| Address { speaks, ..Address::plain(socket) });
    let timeline = Arc::new(Timeline::default());
    timeline.drain_at(SECOND_NS);
    timeline.stop_at(60 * SECOND_NS);
    let (says, hears) = channel();
    let (_collector, mut ends) = Collector::new(1, &says);
    let bots = EchoBots { payload_bytes: 8, rate_per_s: 0.0 }.into();
    let setup = Setup {
        plan: WorkerPlan::alone(bots, 4, Scheme::Ws, nothing),
        addresses: addresses.to_vec(),
        shared: Shared { timeline, ..Shared::default() },
        clock: MonotonicClock::starting_now(),
        to_collector: ends.remove(0),
        says,
        core: None,
        realtime: false,
        spin_ns: 0,
    };
    let begin = Instant::now();
    let thread = spawn::<Callers>(setup).unwrap();
    loop {
        match hears.recv_timeout(Duration::from_secs(20)).expect("the worker ends") {
            FromWorker::Second { .. } => {}
            FromWorker::Done { .. } => break,
            _ => panic!("the worker broke"),
        }
    }
    thread.join().unwrap();
    let mut heard = HEARD.lock().unwrap().clone();
    heard.sort();
    let expected = [
        "0 binary hello",
        "1 ended: nothing listens on that UDP port",
        "2 text one",
        "2 text two",
        "3 End { tag: 1, closes: false }",
        "3 head 200",
        "3 part ok",
    ];
    assert_eq!(heard, expected);
    // A connection whose end went unnoticed would be given up two seconds after it was closed.
    assert!(begin.elapsed() < Duration::from_millis(2_800), "{:?}", begin.elapsed());
}
