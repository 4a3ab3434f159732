//! The benchmark of a client library of your own; a test runs it.
#![allow(clippy::unwrap_used, missing_docs)]

use inflight::{Client, Operations, Options, Outcome, Token, benchmark};
use std::time::Duration;

struct Mine(Vec<Token>); // your client library, and what it has in flight
impl Operations for Mine {
    fn start(&mut self, token: Token, _i: u64) {
        self.0.push(token)
    }
    fn poll(&mut self, _wait: Duration, mut ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
        self.0.drain(..).for_each(|token| ended(token, Outcome::Ok));
        Ok(())
    }
}

pub fn main() {
    let options = Options { total: 10_000, in_flight: Some(100), ..Options::new(Client::new("mine", "1.0")) };
    let end = benchmark(&mut Mine(Vec::new()), &options, None, &mut |line| println!("{line}")).unwrap();
    assert_eq!(end.counts.ok, 9_000); // the first tenth warms up
}
