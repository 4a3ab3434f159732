//! Updates as protobuf messages over WebSocket, several requests in flight on each connection.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// One connection with its requests under way.
struct Connection {
    stream: TcpStream,
    /// when each was sent and its id, oldest first: responses come in the order of their requests
    asked: VecDeque<(Instant, u64)>,
    /// the beginning of a frame
    part: Vec<u8>,
}

/// Requests that are made before, one behind the other: several that follow each other are one slice.
#[derive(Default)]
struct Requests {
    bytes: Vec<u8>,
    /// where each begins, and the end of the last one; the ids count from 1
    starts: Vec<usize>,
}

pub struct Load {
    connections: Vec<Connection>,
    requests: Requests,
    random: fastrand::Rng,
    in_flight: usize,
    /// of `Response`, with the result
    field: u8,
}

const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

impl Load {
    /// Connects, and sends the first `in_flight` requests of `items` updates each on each connection.
    pub fn new(
        address: SocketAddr,
        connections: usize,
        in_flight: usize,
        items: usize,
        members: usize,
    ) -> Load {
        let connections = (0..connections).map(|_| connect(address)).collect();
        let mut random = fastrand::Rng::with_seed(1);
        let mut requests = Requests::default();
        for id in 1..=super::requests(items).max(2 * in_flight) {
            requests.starts.push(requests.bytes.len());
            let members: Vec<usize> = (0..items).map(|_| random.usize(..members)).collect();
            put_frame(&mut requests.bytes, id as u64, &members);
        }
        requests.starts.push(requests.bytes.len());
        let field = if items == 1 { 3 } else { 6 };
        let mut load = Load { connections, requests, random, in_flight, field };
        for at in 0..load.connections.len() {
            load.ask(at, in_flight);
        }
        load
    }

    /// Requests that were answered, and their round trips in µs.
    pub fn run_for(&mut self, time: Duration) -> (usize, Vec<u32>) {
        let began = Instant::now();
        let mut latencies_us = Vec::new();
        let mut buffer = vec![0; 256 * 1024];
        while began.elapsed() < time {
            for at in 0..self.connections.len() {
                let answered = self.connections[at].read(&mut buffer, self.field, &mut latencies_us);
                self.ask(at, answered);
            }
        }
        (latencies_us.len(), latencies_us)
    }

    /// Sends so many requests with one write.
    fn ask(&mut self, at: usize, count: usize) {
        let (connection, requests) = (&mut self.connections[at], &self.requests);
        let first = self.random.usize(..requests.starts.len() - self.in_flight);
        let now = Instant::now();
        connection.asked.extend((first..first + count).map(|number| (now, number as u64 + 1)));
        let bytes = &requests.bytes[requests.starts[first]..requests.starts[first + count]];
        connection.stream.write_all(bytes).expect("the service reads");
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
    Connection { stream, asked: VecDeque::new(), part: Vec::new() }
}

impl Connection {
    /// Reads once. Returns how many requests were answered, each of which must be right.
    fn read(&mut self, buffer: &mut [u8], field: u8, latencies_us: &mut Vec<u32>) -> usize {
        let count = self.stream.read(buffer).expect("the service answers");
        assert!(count > 0, "the service has closed a connection");
        if self.part.is_empty() {
            let (taken, answered) = self.take(&buffer[..count], field, latencies_us);
            self.part.extend_from_slice(&buffer[taken..count]);
            return answered;
        }
        let mut part = std::mem::take(&mut self.part);
        part.extend_from_slice(&buffer[..count]);
        let (taken, answered) = self.take(&part, field, latencies_us);
        part.drain(..taken);
        self.part = part;
        answered
    }

    /// Takes the whole frames at the front. Returns how many bytes they have, and how many they are.
    fn take(&mut self, bytes: &[u8], field: u8, latencies_us: &mut Vec<u32>) -> (usize, usize) {
        let (mut taken, mut answered) = (0, 0);
        while let Some(message) = message(&bytes[taken..]) {
            let (at, id) = self.asked.pop_front().expect("only what was asked is answered");
            check(message, id, field);
            latencies_us.push(at.elapsed().as_micros() as u32);
            taken += message.as_ptr_range().end as usize - bytes[taken..].as_ptr() as usize;
            answered += 1;
        }
        (taken, answered)
    }
}

/// The payload of the whole binary frame at the front.
fn message(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = match bytes {
        [0x82, 126, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        [0x82, 127, rest @ ..] => {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            (u64::from_be_bytes(*length) as usize, rest)
        }
        [0x82, length @ ..=125, rest @ ..] => (usize::from(*length), rest),
        _ => return None,
    };
    rest.get(..length)
}

/// A response begins with its id, and the result comes behind it.
fn check(message: &[u8], id: u64, field: u8) {
    let mut rest = message.strip_prefix(&[8]);
    let mut left = id;
    while let Some([byte, behind @ ..]) = rest {
        let more = if left >= 0x80 { 0x80 } else { 0 };
        rest = (*byte == left as u8 & 0x7f | more).then_some(behind);
        left >>= 7;
        if more == 0 {
            break;
        }
    }
    let begins = rest.is_some_and(|rest| rest.first() == Some(&(field << 3 | 2)));
    assert!(begins, "no response to {id}: {:02x?}", &message[..message.len().min(64)]);
}

/// Appends a masked frame with a `Request` that adds 7 to the score of each of these members.
fn put_frame(out: &mut Vec<u8>, id: u64, members: &[usize]) {
    let item = |member: usize, first_field: u8| {
        let (member, mut item) = (format!("player-{member}"), Vec::new());
        put_bytes(&mut item, first_field, member.as_bytes());
        // Mode increment, number 7.
        item.extend_from_slice(&[(first_field + 1) << 3, 1, (first_field + 2) << 3, 14]);
        item
    };
    let (mut operation, mut message) = (Vec::new(), vec![0x08]);
    put_varint(&mut message, id);
    put_bytes(&mut operation, 1, b"main");
    if let [member] = members {
        operation.extend(item(*member, 2));
        put_bytes(&mut message, 2, &operation);
    } else {
        members.iter().for_each(|member| put_bytes(&mut operation, 2, &item(*member, 1)));
        let mut bulk = Vec::new();
        put_bytes(&mut bulk, 1, &operation);
        put_bytes(&mut message, 8, &bulk);
    }
    out.push(0x82);
    match message.len() {
        short @ ..126 => out.push(0x80 | short as u8),
        medium @ ..0x1_0000 => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&MASK);
    out.extend(message.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

/// Appends a field of bytes, a text or a message.
fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
