//! Operations that do nothing, to measure the cost of the harness itself.

use std::time::Duration;

use crate::phase::{Operations, Outcome, Token};
use crate::workload::{Kind, Workload};

/// Every operation ends at once; a get finds the right value, which is checked like any.
#[derive(Debug)]
pub struct Null<'a> {
    workload: &'a Workload,
    started: Vec<(Token, u64)>,
}

impl<'a> Null<'a> {
    /// For the operations of a workload.
    pub fn new(workload: &'a Workload) -> Null<'a> {
        Null { workload, started: Vec::new() }
    }
}

impl Operations for Null<'_> {
    fn start(&mut self, token: Token, i: u64) {
        self.started.push((token, i));
    }

    fn poll(&mut self, _wait: Duration, mut ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
        for (token, i) in self.started.drain(..) {
            let key = self.workload.key(i);
            let outcome = match self.workload.kind(i) {
                Kind::Get => self.workload.check(key, Some(std::hint::black_box(self.workload.value(key)))),
                Kind::Set | Kind::Delete => Outcome::Ok,
            };
            ended(token, outcome);
        }
        Ok(())
    }
}
