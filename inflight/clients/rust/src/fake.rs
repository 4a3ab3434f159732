//! The deterministic fake: operation i has a planted latency and outcome, in virtual time. It checks the harness itself.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::time::Duration;

use crate::phase::{Operations, Outcome, Token};

/// Its operations, for a benchmark whose clock is `Fake::clock`.
#[derive(Debug, Default)]
pub struct Fake {
    now_ns: Rc<Cell<u64>>,
    pending: BinaryHeap<Reverse<(u64, u64)>>,
    tokens: Vec<(u64, Token)>,
}

impl Fake {
    /// None in flight, at time 0.
    pub fn new() -> Fake {
        Fake::default()
    }

    /// Its time, for `Options::clock`.
    pub fn clock(&self) -> Rc<Cell<u64>> {
        self.now_ns.clone()
    }
}

fn planted_latency_ns(i: u64) -> u64 {
    1000 + (i * 7919 % 100_003) * 37
}

fn planted_outcome(i: u64) -> Outcome {
    if i.is_multiple_of(1009) {
        Outcome::Failed { cause: "planted", text: format!("operation {i} fails as planted") }
    } else if i.is_multiple_of(2003) {
        Outcome::Unknown { cause: "planted", text: format!("operation {i} is unknown as planted") }
    } else {
        Outcome::Ok
    }
}

impl Operations for Fake {
    fn start(&mut self, token: Token, i: u64) {
        self.pending.push(Reverse((self.now_ns.get() + planted_latency_ns(i), i)));
        self.tokens.push((i, token));
    }

    /// One at a time, so that the next one starts at that moment.
    fn poll(&mut self, _wait: Duration, mut ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
        let Some(Reverse((end_ns, i))) = self.pending.pop() else { return Ok(()) };
        let Some(at) = self.tokens.iter().position(|(own, _)| *own == i) else { return Ok(()) };
        let (_, token) = self.tokens.swap_remove(at);
        self.now_ns.set(end_ns);
        ended(token, planted_outcome(i));
        Ok(())
    }
}
