//! A minimal HTTP client: blocking, byte by byte, able to break every rule.

use std::net::SocketAddr;

use crate::client::{Client, Frame};

/// One answer from a server.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

pub fn connect(address: SocketAddr) -> Client {
    Client::silent(address)
}

impl Client {
    /// Asks, and waits for the answer.
    pub fn ask(&mut self, request: &str) -> Answer {
        self.write(request.as_bytes());
        self.answer()
    }

    /// The next answer, whose length is said.
    pub fn answer(&mut self) -> Answer {
        let head = self.answer_head();
        let body_bytes = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("0");
        let body = self.read_bytes(body_bytes.parse().unwrap());
        Answer { status: status(&head), head, body }
    }

    /// The next answer's head, after which nothing is expected to come for it.
    pub fn answer_head(&mut self) -> String {
        self.read_until(b"\r\n\r\n")
    }

    /// True when the server has closed, having sent nothing more.
    pub fn is_at_the_end(&mut self) -> bool {
        self.hear() == Frame::End
    }
}

pub fn status(head: &str) -> u16 {
    head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap().parse().unwrap()
}
