//! A minimal WebSocket client: blocking, one frame at a time, able to break every rule.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use servers::{ServeError, Shutdown};

/// How long a test waits for what must come. Long, because the machine may be busy; nothing waits in vain.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server on a thread of its own.
pub struct Running {
    pub address: SocketAddr,
    pub shutdown: Shutdown,
    thread: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    /// `run` gets the handle and the callback, and runs until the handle is triggered.
    pub fn start(
        run: impl FnOnce(Shutdown, Box<dyn FnOnce(SocketAddr)>) -> Result<(), ServeError> + Send + 'static,
    ) -> Running {
        let shutdown = Shutdown::new().unwrap();
        let (tell, told) = mpsc::channel();
        let handle = shutdown.clone();
        let thread =
            std::thread::spawn(move || run(handle, Box::new(move |address| tell.send(address).unwrap())));
        let address = told.recv_timeout(PATIENCE).expect("the server listens");
        Running { address, shutdown, thread }
    }

    pub fn end(self) -> Result<(), ServeError> {
        self.shutdown.trigger();
        self.thread.join().unwrap()
    }
}

pub struct Client {
    pub stream: TcpStream,
    heard: Vec<u8>,
}

/// One frame from the server.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    Text(String),
    Binary(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>),
    /// The end of the stream.
    End,
}

const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

pub fn frame(first_byte: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first_byte];
    match payload.len() {
        short @ 0..=125 => frame.push(0x80 | short as u8),
        medium @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend((medium as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().enumerate().map(|(i, byte)| byte ^ MASK[i & 3]));
    frame
}

pub fn request(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

impl Client {
    /// Connects and says nothing.
    pub fn silent(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, heard: Vec::new() }
    }

    /// Like `silent`, with so small a receive buffer that it is soon full when nothing is read.
    pub fn with_little_room(address: SocketAddr) -> Client {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(1024).unwrap();
        socket.connect(&address.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream, heard: Vec::new() }
    }

    /// Connects and completes the handshake.
    pub fn open(address: SocketAddr, path: &str) -> Client {
        let mut client = Client::silent(address);
        client.write(request(path).as_bytes());
        let answer = client.read_until(b"\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        client
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn say(&mut self, text: &str) {
        self.write(&frame(0x81, text.as_bytes()));
    }

    pub fn read_until(&mut self, end: &[u8]) -> String {
        loop {
            if let Some(at) = self.heard.windows(end.len()).position(|window| window == end) {
                let rest = self.heard.split_off(at + end.len());
                return String::from_utf8(std::mem::replace(&mut self.heard, rest)).unwrap();
            }
            assert!(self.read_more(), "the stream ended before {end:?}");
        }
    }

    /// So many bytes, which must be text.
    pub fn read_bytes(&mut self, count: usize) -> String {
        while self.heard.len() < count {
            assert!(self.read_more(), "the stream ended after {} of {count} bytes", self.heard.len());
        }
        let rest = self.heard.split_off(count);
        String::from_utf8(std::mem::replace(&mut self.heard, rest)).unwrap()
    }

    fn read_more(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.heard.extend(&buffer[..count]);
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing came: {error}"),
        }
    }

    /// The next frame, whatever it takes.
    pub fn hear(&mut self) -> Frame {
        loop {
            if let Some((frame, length)) = parse(&self.heard) {
                self.heard.drain(..length);
                return frame;
            }
            if !self.read_more() {
                assert!(self.heard.is_empty(), "the stream ended within a frame");
                return Frame::End;
            }
        }
    }

    /// The next frame, which must be a text.
    pub fn hear_text(&mut self) -> String {
        match self.hear() {
            Frame::Text(text) => text,
            other => panic!("{other:?} instead of a text"),
        }
    }
}

fn parse(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    let (length, header) = match second {
        126 => (u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]) as usize, 4),
        127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap()) as usize, 10),
        short => (short as usize, 2),
    };
    let payload = bytes.get(header..header + length)?.to_vec();
    let frame = match first {
        0x81 => Frame::Text(String::from_utf8(payload).unwrap()),
        0x82 => Frame::Binary(payload),
        0x88 if payload.is_empty() => Frame::Close(None),
        0x88 => Frame::Close(Some(u16::from_be_bytes([payload[0], payload[1]]))),
        0x8a => Frame::Pong(payload),
        other => panic!("a frame that begins with {other:#x}"),
    };
    Some((frame, header + length))
}
