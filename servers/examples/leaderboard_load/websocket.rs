//! Updates as protobuf messages over WebSocket, several under way on each connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// One connection with its requests under way.
struct Connection {
    stream: TcpStream,
    /// when each was sent, oldest first: responses come in the order of their requests
    asked: std::collections::VecDeque<Instant>,
    /// the beginning of a frame
    part: Vec<u8>,
    next_id: u64,
}

pub struct Load {
    connections: Vec<Connection>,
    members: usize,
    random: fastrand::Rng,
}

const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

impl Load {
    /// Connects, and sends the first `in_flight` requests of each connection.
    pub fn new(address: SocketAddr, connections: usize, in_flight: usize, members: usize) -> Load {
        let connections = (0..connections).map(|_| connect(address)).collect();
        let mut load = Load { connections, members, random: fastrand::Rng::with_seed(1) };
        for at in 0..load.connections.len() {
            load.ask(at, in_flight);
        }
        load
    }

    /// Requests that were answered, and their round trips in µs.
    pub fn run_for(&mut self, time: Duration) -> (usize, Vec<u32>) {
        let began = Instant::now();
        let mut latencies_us = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        while began.elapsed() < time {
            for at in 0..self.connections.len() {
                let answered = self.connections[at].read(&mut buffer, &mut latencies_us);
                self.ask(at, answered);
            }
        }
        (latencies_us.len(), latencies_us)
    }

    /// Sends so many requests with one write.
    fn ask(&mut self, at: usize, count: usize) {
        let (connection, random) = (&mut self.connections[at], &mut self.random);
        let mut out = Vec::new();
        for _ in 0..count {
            connection.next_id += 1;
            put_request(&mut out, connection.next_id, random.usize(..self.members));
            connection.asked.push_back(Instant::now());
        }
        connection.stream.write_all(&out).expect("the service reads");
    }
}

fn connect(address: SocketAddr) -> Connection {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    stream.set_nodelay(true).expect("a socket of ours");
    let request = "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the service reads");
    let mut answer = [0; 512];
    let count = stream.read(&mut answer).expect("the service answers");
    assert!(answer[..count].starts_with(b"HTTP/1.1 101 ") && answer[..count].ends_with(b"\r\n\r\n"));
    Connection { stream, asked: Default::default(), part: Vec::new(), next_id: 0 }
}

impl Connection {
    /// Reads once. Returns how many requests were answered, each of which must be right.
    fn read(&mut self, buffer: &mut [u8], latencies_us: &mut Vec<u32>) -> usize {
        let count = self.stream.read(buffer).expect("the service answers");
        assert!(count > 0, "the service has closed a connection");
        self.part.extend_from_slice(&buffer[..count]);
        let (mut taken, mut answered) = (0, 0);
        while let [0x82, length, rest @ ..] = &self.part[taken..] {
            // A standing has fewer than 126 bytes.
            let Some(message) = rest.get(..usize::from(*length)) else { break };
            let id = self.next_id + 1 - self.asked.len() as u64;
            check(message, id);
            let asked = self.asked.pop_front().expect("it was asked for");
            latencies_us.push(asked.elapsed().as_micros() as u32);
            taken += 2 + usize::from(*length);
            answered += 1;
        }
        self.part.drain(..taken);
        answered
    }
}

/// A response begins with its id, and a standing (field 3) comes behind it.
fn check(message: &[u8], id: u64) {
    let mut expected = vec![8];
    put_varint(&mut expected, id);
    expected.push(3 << 3 | 2);
    assert!(message.starts_with(&expected), "no response to {id}: {message:02x?}");
}

/// A masked frame with a `Request` that adds 7 to a member's score.
fn put_request(out: &mut Vec<u8>, id: u64, member: usize) {
    let member = format!("player-{member}");
    let mut update = vec![0x0a, 4];
    update.extend_from_slice(b"main");
    update.extend_from_slice(&[0x12, member.len() as u8]);
    update.extend_from_slice(member.as_bytes());
    // Mode increment, number 7.
    update.extend_from_slice(&[0x18, 1, 0x20, 14]);
    let mut message = vec![0x08];
    put_varint(&mut message, id);
    message.extend_from_slice(&[0x12, update.len() as u8]);
    message.extend_from_slice(&update);
    out.extend_from_slice(&[0x82, 0x80 | message.len() as u8]);
    out.extend_from_slice(&MASK);
    out.extend(message.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
