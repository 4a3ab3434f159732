//! Peers that are no Hazelcast member, or not ours: each is identified as what it is, in time.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hazelcast::reactor::{ConnectError, Reactor, Step};
use hazelcast::{Client, Config};

use crate::member::{free_ports, shared};

/// A server that does `serve` with each connection; it ends with the test process.
fn server(serve: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

fn refused(config: Config) -> (String, Duration) {
    let started = Instant::now();
    let error = Client::connect(config).map(|_| ()).expect_err("no member of ours");
    (error.to_string(), started.elapsed())
}

#[test]
fn a_wrong_cluster_name_is_named_as_the_likely_cause_at_once() {
    let Some(address) = shared("a wrong cluster name") else { return };
    let config = Config {
        cluster_name: "prod".to_owned(),
        connect_timeout: Duration::from_secs(60),
        ..Config::at(address)
    };
    let (message, took) = refused(config);
    assert!(message.contains("cluster \"prod\"") && message.contains("check the cluster name"), "{message}");
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn the_steps_of_a_turn_are_told_in_their_order_only_to_whoever_asks() {
    thread_local! {
        static STEPS: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) };
    }
    let [port] = free_ports();
    let mut reactor: Reactor<()> = Reactor::new(Config::at(format!("127.0.0.1:{port}"))).expect("a reactor");
    reactor.poll(Some(Duration::ZERO), |(), _| {}).expect("a turn");
    assert!(STEPS.take().is_empty());
    reactor.watch_steps(|step| STEPS.with_borrow_mut(|steps| steps.push(step)));
    reactor.poll(Some(Duration::ZERO), |(), _| {}).expect("a turn");
    let told = STEPS.take();
    assert_eq!(told[..4], [Step::Tend, Step::Write, Step::Resolve, Step::Wait]);
    assert_eq!(told.last(), Some(&Step::Resolve));
}

#[test]
fn an_http_server_is_not_taken_for_a_member() {
    let address = server(|mut stream| {
        let _ = stream.read(&mut [0; 1000]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    });
    let (message, took) =
        refused(Config { connect_timeout: Duration::from_secs(60), ..Config::at(address.to_string()) });
    assert!(message.contains("protocol error"), "{message}");
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn garbage_of_any_kind_is_refused() {
    for seed in 0..20u64 {
        let address = server(move |mut stream| {
            let mut random = seed.wrapping_add(1);
            let bytes: Vec<u8> = (0..10_000)
                .map(|_| {
                    random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (random >> 33) as u8
                })
                .collect();
            let _ = stream.write_all(&bytes);
        });
        let (message, _) =
            refused(Config { connect_timeout: Duration::from_secs(1), ..Config::at(address.to_string()) });
        assert!(message.starts_with("cannot connect to cluster \"dev\" at 127.0.0.1:"), "{message}");
    }
}

#[test]
fn a_frame_longer_than_any_answer_ends_the_connection_at_its_header() {
    let address = server(|mut stream| {
        let _ = stream.write_all(&[0xff, 0xff, 0xff, 0x7f, 0x00, 0xc0, 0x01, 0x01, 0x00, 0x00]);
        // It would go on for 2 GB; a client that waits for them waits for ever.
        std::thread::sleep(Duration::from_secs(600));
    });
    let (message, took) =
        refused(Config { connect_timeout: Duration::from_secs(60), ..Config::at(address.to_string()) });
    assert!(message.contains("a frame of 2147483647 bytes"), "{message}");
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn a_server_that_never_answers_and_a_port_where_nothing_listens_are_told_apart() {
    let silent = server(|stream| {
        std::thread::sleep(Duration::from_secs(600));
        drop(stream);
    });
    let timeout = Duration::from_millis(700);
    let (message, _) = refused(Config { connect_timeout: timeout, ..Config::at(silent.to_string()) });
    assert!(
        message.contains("no answer in time") || message.contains("did not authenticate us in time"),
        "{message}"
    );
    let [port] = free_ports();
    let config = Config { connect_timeout: timeout, ..Config::at(format!("127.0.0.1:{port}")) };
    let Err(ConnectError::NoMember { why, tries, .. }) = Reactor::<()>::connect(config) else {
        panic!("connected")
    };
    assert!(why.contains("refused"), "{why}");
    assert!(tries >= 2, "a member that is starting deserves more than {tries} attempt");
}
