//! Attacks on any server by opening and closing connections; `opening` is what a connection starts with.

use std::net::Shutdown;

use super::{Case, Evil};

/// `opening` is a whole request or line, and `large` one with a long answer or none.
pub fn cases(opening: &'static [u8], large: &'static [u8]) -> Vec<Case> {
    let storm = |name, count: usize, act: fn(&mut Evil, &'static [u8])| {
        Case::new(name, move |address| {
            for _ in 0..count {
                act(&mut Evil::connect(address), opening);
            }
        })
    };
    vec![
        storm("connections that close at once", 200, |_, _| {}),
        storm("connections that are reset at once", 200, |evil, _| evil.reset()),
        storm("a reset within the first bytes", 50, |evil, opening| {
            evil.send(&opening[..opening.len() / 2]);
            evil.reset();
        }),
        storm("a close within the first bytes", 50, |evil, opening| evil.send(&opening[..opening.len() / 2])),
        storm("a reset behind the request", 50, |evil, opening| {
            evil.send(opening);
            evil.reset();
        }),
        storm("a close behind the request", 50, |evil, opening| evil.send(opening)),
        storm("a reset within the answer", 30, |evil, opening| {
            evil.send(opening);
            evil.read_some();
            evil.reset();
        }),
        storm("half-closed before the first byte", 30, |evil, _| drop(evil.stream.shutdown(Shutdown::Write))),
        storm("half-closed within the request", 30, |evil, opening| {
            evil.send(&opening[..opening.len() / 2]);
            drop(evil.stream.shutdown(Shutdown::Write));
        }),
        storm("deaf from the beginning", 30, |evil, opening| {
            drop(evil.stream.shutdown(Shutdown::Read));
            evil.send(opening);
        }),
        Case::new("two hundred silent connections", |address| {
            let silent: Vec<Evil> = (0..200).map(|_| Evil::connect(address)).collect();
            std::thread::sleep(std::time::Duration::from_millis(300));
            drop(silent);
        }),
        Case::new("a hundred half requests held", move |address| {
            let mut held: Vec<Evil> = (0..100).map(|_| Evil::connect(address)).collect();
            held.iter_mut().for_each(|evil| evil.send(&opening[..opening.len() / 2]));
            std::thread::sleep(std::time::Duration::from_millis(300));
        }),
        Case::new("requests without end whose answers are not read", move |address| {
            let mut evil = Evil::with_little_room(address);
            let many = large.repeat(64 * 1024 / large.len());
            (0..100).for_each(|_| evil.send(&many));
            evil.reset();
        }),
        Case::new("random bytes", |address| {
            let mut random = fastrand::Rng::with_seed(14);
            for _ in 0..30 {
                let bytes: Vec<u8> = (0..random.usize(1..20_000)).map(|_| random.u8(..)).collect();
                let mut evil = Evil::connect(address);
                evil.send(&bytes);
                evil.reset();
            }
        }),
        Case::new("a request with one byte turned, again and again", move |address| {
            let mut random = fastrand::Rng::with_seed(15);
            for _ in 0..60 {
                let mut bytes = opening.to_vec();
                let at = random.usize(..bytes.len());
                bytes[at] ^= random.u8(1..);
                Evil::connect(address).send(&bytes);
            }
        }),
    ]
}
