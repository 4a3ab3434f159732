//! The cost of an HTTP/1.1 request and its answer without a socket: requested, written, copied into the buffer,
//! received.
//!
//! `cargo run --release -p stepladder-drivers --example exchange -- [bytes of the body]`
//! Answers look like nginx's. `recalled`: each head equals the last one but for its date. `read`: each has another
//! entity tag, so that none is recalled. `in two reads`: the body arrives separately from its head, and is only
//! counted.
//! Prints ns per exchange, the median and the best of nine rounds.

use std::rc::Rc;
use std::time::Instant;

use drivers::ReadBuffer;
use drivers::http::one::connection::State as _;
use drivers::http::one::exchange::Exchange;
use drivers::http::one::request::Request;
use drivers::http::{Parts, Received};

const ROUNDS: usize = 9;
const EXCHANGES: usize = 500_000;

fn main() {
    let body_bytes =
        std::env::args().nth(1).map_or(2, |word| word.parse::<usize>().expect("a number of bytes"));
    let same: Vec<Vec<u8>> = (0..60).map(|second| answer(second, "6720-2", body_bytes)).collect();
    let different: Vec<Vec<u8>> =
        (0..60).map(|second| answer(second, &format!("67{second:02}-2"), body_bytes)).collect();
    weigh("recalled", &same, None);
    weigh("read", &different, None);
    weigh("in two reads", &same, Some(body_bytes));
}

fn answer(second: usize, tag: &str, body_bytes: usize) -> Vec<u8> {
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 11:00:{second:02} GMT\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: {body_bytes}\r\n\
         Last-Modified: Sat, 21 Nov 2026 08:00:00 GMT\r\nConnection: keep-alive\r\nETag: \"{tag}\"\r\n\
         Accept-Ranges: bytes\r\n\r\n"
    )
    .into_bytes();
    answer.resize(answer.len() + body_bytes, b'x');
    answer
}

/// `late_bytes`: so much of each answer comes with a second read.
fn weigh(name: &str, answers: &[Vec<u8>], late_bytes: Option<usize>) {
    let request = Rc::new(Request::new(&Parts {
        authority: "127.0.0.1:8080",
        body_bytes_max: 1 << 20,
        ..Parts::get("/")
    }));
    let (mut exchange, mut buffer) = (Exchange::default(), ReadBuffer::new());
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            for index in 0..EXCHANGES {
                let answer = &answers[index % answers.len()];
                assert!(exchange.ask(&request, index as u32));
                exchange.wrote(exchange.unsent().len());
                let (early, late) = answer.split_at(answer.len() - late_bytes.unwrap_or(0));
                let mut received = read(&mut exchange, &mut buffer, early);
                if late_bytes.is_some() {
                    received += read(&mut exchange, &mut buffer, late);
                }
                assert_eq!(received, 1, "an answer to each request");
            }
            begin.elapsed().as_nanos() as f64 / EXCHANGES as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{name:>12}: {:6.1} ns an exchange (best {:.1})", rounds[ROUNDS / 2], rounds[0]);
}

/// One read; returns the number of whole answers.
fn read(exchange: &mut Exchange, buffer: &mut ReadBuffer, bytes: &[u8]) -> usize {
    exchange.lay(buffer)[..bytes.len()].copy_from_slice(bytes);
    exchange.came(bytes.len(), buffer);
    let mut answers = 0;
    while let Some(received) = exchange.next(buffer).expect("a right answer") {
        answers += usize::from(matches!(received, Received::Answer(_)));
    }
    answers
}
