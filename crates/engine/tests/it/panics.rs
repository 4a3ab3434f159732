//! A panic anywhere in a worker is reported; the runtime by itself would silently drop the task.

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use base64::Engine as _;
use drivers::{
    Address, Broken, Closed, Driver, Http1, Http2, OpenError, ReadBuffer, Refused, Tcp, WebSocket, tcp,
};
use engine::collector::FromWorker;
use engine::thread::{Setup, spawn};
use engine::{BotContext, Bots, Collector, ConnectionId, MonotonicClock, Shared, Timeline};
use measure::MetricNames;
use plan::{EchoBots, Scheme, WorkerPlan};

const SECOND_NS: u64 = 1_000_000_000;
/// A report that has not come after this never comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A driver that panics at the first bytes it is to decode.
struct Decodes<D>(D);

/// A driver that panics while it opens a connection.
struct Opens<D>(D);

/// What both leave to the driver within.
macro_rules! as_the_driver_within {
    () => {
        type Connecting = D::Connecting;
        type Send<'a> = D::Send<'a>;
        type Received<'a> = D::Received<'a>;

        fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<D::Connecting, OpenError> {
            D::begin_connect(to, from)
        }
        fn send(&mut self, what: D::Send<'_>) -> Result<(), Refused> {
            self.0.send(what)
        }
        fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.poll_flush(cx)
        }
        fn poll_read(
            &mut self,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuffer,
        ) -> Poll<Result<usize, Closed>> {
            self.0.poll_read(cx, buffer)
        }
        fn close(&mut self) {
            self.0.close();
        }
        fn unsent_bytes(&self) -> usize {
            self.0.unsent_bytes()
        }
    };
}

impl<D: Driver> Driver for Decodes<D> {
    as_the_driver_within!();

    async fn open(begin_connect: D::Connecting, to: &Address) -> Result<Self, OpenError> {
        D::open(begin_connect, to).await.map(Decodes)
    }

    fn next<'d>(&mut self, _: &'d mut ReadBuffer) -> Option<Result<D::Received<'d>, Broken>> {
        panic!("planted in the codec");
    }
}

impl<D: Driver> Driver for Opens<D> {
    as_the_driver_within!();

    async fn open(begin_connect: D::Connecting, to: &Address) -> Result<Self, OpenError> {
        let _opened = D::open(begin_connect, to).await.map(Opens)?;
        panic!("planted in the handshake");
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<D::Received<'d>, Broken>> {
        self.0.next(buffer)
    }
}

/// Bots that only connect and listen, and panic where `IN` says.
struct Listeners<D, const IN: u8>(PhantomData<D>);

const NOWHERE: u8 = 0;
const HEARD: u8 = 1;
const DUE: u8 = 2;

impl<D: Driver, const IN: u8> Bots for Listeners<D, IN> {
    type Driver = D;
    type Settings = EchoBots;

    fn metric_names(_: &EchoBots) -> Arc<MetricNames> {
        MetricNames::new(&["none"], &[], &[], &OpenError::CAUSES)
    }
    fn new(_: &EchoBots, _: &WorkerPlan) -> Self {
        Listeners(PhantomData)
    }
    fn join(&mut self, unit: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        ctx.open(unit, 0);
        ctx.at(planned_ns + 1, unit, 0);
    }
    fn opened(&mut self, _: ConnectionId, _: u32, _: &mut BotContext<'_, D>) {}
    fn received(&mut self, _: ConnectionId, _: u32, _: D::Received<'_>, _: u64, _: &mut BotContext<'_, D>) {
        assert!(IN != HEARD, "planted in {}", "a bot that hears");
    }
    fn due(&mut self, _: u32, _: u32, _: u64, _: &mut BotContext<'_, D>) {
        assert!(IN != DUE, "planted in what is due");
    }
    fn closed(&mut self, _: ConnectionId, _: u32, _: Closed, _: &mut BotContext<'_, D>) {}
}

/// How a server begins to speak, so that a client has bytes to decode.
type Greeting = fn(&mut TcpStream);

fn read_until(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let (mut all, mut byte) = (Vec::new(), [0]);
    while !all.ends_with(end) {
        stream.read_exact(&mut byte).unwrap();
        all.push(byte[0]);
    }
    all
}

fn over_websocket(stream: &mut TcpStream) {
    let request = String::from_utf8(read_until(stream, b"\r\n\r\n")).unwrap();
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let digest = sha1_smol::Sha1::from(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")).digest().bytes();
    let accept = base64::engine::general_purpose::STANDARD.encode(digest);
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    write!(stream, "{head}Sec-WebSocket-Accept: {accept}\r\n\r\n").unwrap();
    stream.write_all(b"\x81\x02hi").unwrap();
}

fn over_tcp(stream: &mut TcpStream) {
    stream.write_all(b"hi\n").unwrap();
}

/// After a second and a half, so that a whole second was handed over before.
fn over_tcp_late(stream: &mut TcpStream) {
    std::thread::sleep(Duration::from_millis(1_500));
    over_tcp(stream);
}

fn over_http_1(stream: &mut TcpStream) {
    stream.write_all(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n").unwrap();
}

/// Empty settings, and a ping after their acknowledgement.
fn over_http_2(stream: &mut TcpStream) {
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
    read_until(stream, &[0, 0, 0, 4, 1, 0, 0, 0, 0]);
    stream.write_all(&[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
}

fn worker_plan(address: SocketAddr) -> WorkerPlan {
    WorkerPlan::alone(EchoBots { payload_bytes: 8, rate_per_s: 0.0 }.into(), 3, Scheme::Ws, address)
}

/// What a worker with such bots says until it has ended: how many whole seconds, and its last word.
fn last_word<B: Bots>(greeting: Greeting) -> (usize, FromWorker) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's process; it only accepts connections.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                greeting(&mut stream);
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
    let timeline = Arc::new(Timeline::default());
    timeline.drain_at(60 * SECOND_NS);
    timeline.stop_at(61 * SECOND_NS);
    let (says, hears) = channel();
    let (_collector, mut ends) = Collector::new(1, &says);
    let setup = Setup {
        plan: worker_plan(address),
        addresses: vec![Address::plain(address)],
        shared: Shared { timeline, ..Shared::default() },
        clock: MonotonicClock::starting_now(),
        to_collector: ends.remove(0),
        says,
        core: None,
        realtime: false,
        spin_ns: 0,
    };
    let begin = Instant::now();
    let thread = spawn::<B>(setup).unwrap();
    let mut seconds = 0;
    loop {
        let left = PATIENCE.saturating_sub(begin.elapsed());
        match hears.recv_timeout(left).expect("a panic is reported") {
            FromWorker::Second { .. } => seconds += 1,
            word => {
                thread.join().expect("the panic ends inside the thread");
                return (seconds, word);
            }
        }
    }
}

fn check<B: Bots>(greeting: Greeting, expected: &str) {
    let (_, word) = last_word::<B>(greeting);
    let FromWorker::Panicked { worker: 0, why } = word else {
        panic!("the worker does not report its panic")
    };
    assert_eq!(why, format!("worker 0 panicked: {expected}"));
}

#[test]
fn a_panic_in_any_codec_is_reported_by_its_worker() {
    let why = "planted in the codec";
    check::<Listeners<Decodes<WebSocket>, NOWHERE>>(over_websocket, why);
    check::<Listeners<Decodes<Tcp<tcp::Lines>>, NOWHERE>>(over_tcp, why);
    check::<Listeners<Decodes<Http1>, NOWHERE>>(over_http_1, why);
    check::<Listeners<Decodes<Http2>, NOWHERE>>(over_http_2, why);
}

#[test]
fn a_panic_while_a_connection_opens_is_reported_by_its_worker() {
    let why = "planted in the handshake";
    check::<Listeners<Opens<WebSocket>, NOWHERE>>(over_websocket, why);
    check::<Listeners<Opens<Tcp<tcp::Lines>>, NOWHERE>>(over_tcp, why);
    check::<Listeners<Opens<Http1>, NOWHERE>>(over_http_1, why);
    check::<Listeners<Opens<Http2>, NOWHERE>>(over_http_2, why);
}

#[test]
fn a_panic_of_a_bot_is_reported_wherever_it_is_called_from() {
    check::<Listeners<WebSocket, HEARD>>(over_websocket, "planted in a bot that hears");
    check::<Listeners<Tcp<tcp::Lines>, HEARD>>(over_tcp, "planted in a bot that hears");
    check::<Listeners<Tcp<tcp::Lines>, DUE>>(over_tcp, "planted in what is due");
}

#[test]
fn whole_seconds_before_a_panic_are_handed_over() {
    let (seconds, word) = last_word::<Listeners<Tcp<tcp::Lines>, HEARD>>(over_tcp_late);
    assert!(matches!(word, FromWorker::Panicked { .. }));
    assert!(seconds >= 1, "{seconds}");
}
