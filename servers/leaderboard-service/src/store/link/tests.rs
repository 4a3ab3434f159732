use std::io::Write;
use std::net::TcpListener;
use std::sync::mpsc;

use super::*;

fn link(socket: SocketAddr, timeout: Duration) -> Link {
    let address = format!("redis://{socket}").parse().unwrap();
    Link::new(Target { address, sockets: vec![socket], timeout })
}

#[test]
fn connecting_again_takes_longer_each_time_up_to_a_limit() {
    let mut link = link(([127, 0, 0, 1], 1).into(), Duration::from_secs(1));
    for wait_ms in [50, 100, 200, 400, 800, 1600, 2000, 2000] {
        link.lose(Lost::Closed, 7, |_, _| ());
        assert_eq!(link.due_ns(), 7 + wait_ms * 1_000_000);
    }
}

#[test]
fn a_command_that_has_left_may_have_been_carried_out_and_one_that_has_not_left_cannot() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut link = link(listener.local_addr().unwrap(), Duration::from_millis(300));
    let (done, is_done) = mpsc::channel::<()>();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // It answers the commands that every connection starts with, and reads nothing.
        stream.write_all(&b"+OK\r\n".repeat(Script::ALL.len())).unwrap();
        let _ = is_done.recv();
    });
    while !link.is_up() {
        link.turn(clock::now_ns()).unwrap();
        link.wait();
        link.read().unwrap();
        link.take_replies(|_, _| panic!("nothing was asked")).unwrap();
    }
    link.put(1, None, |out| out.extend_from_slice(b"*1\r\n$4\r\nPING\r\n"));
    // On a slow machine it may time out before the next turn.
    link.flush().unwrap();
    // More than the buffers of both sockets hold.
    link.put(2, None, |out| out.resize(out.len() + (40 << 20), b'x'));
    let lost = loop {
        match link.turn(clock::now_ns()) {
            Ok(_) => link.wait(),
            Err(lost) => break lost,
        }
    };
    assert!(matches!(lost, Lost::Silent(_)), "{lost}");
    let mut fates = Vec::new();
    link.lose(lost, clock::now_ns(), |number, end| match end {
        End::Lost(fate) => fates.push((number, fate)),
        end => panic!("{end:?}"),
    });
    assert_eq!(fates, [(1, Fate::Unknown), (2, Fate::NotSent)]);
    assert_eq!((link.losses, link.unknown), (1, 1));
    drop(done);
    server.join().unwrap();
}
