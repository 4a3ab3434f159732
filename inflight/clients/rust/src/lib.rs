//! The in-flight benchmark: N operations in flight, each completion starts the next, until the total is reached.
//!
//! It measures any client library whose operations do not block. Implement [`Operations`] for it and call
//! [`benchmark`]; the output is described in `inflight/clients/README.md`, one JSON object per line. Every operation
//! that was started is counted exactly once, even when it never ends or ends twice.
//!
//! ```
//! use std::time::Duration;
//! use inflight::{Client, Operations, Options, Outcome, Token, benchmark};
//!
//! struct Mine(Vec<Token>); // your client library, and what it has in flight
//! impl Operations for Mine {
//!     fn start(&mut self, token: Token, _i: u64) { self.0.push(token) }
//!     fn poll(&mut self, _wait: Duration, mut ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
//!         self.0.drain(..).for_each(|token| ended(token, Outcome::Ok));
//!         Ok(())
//!     }
//! }
//! let options = Options { total: 10_000, in_flight: Some(100), ..Options::new(Client::new("mine", "1.0")) };
//! let end = benchmark(&mut Mine(Vec::new()), &options, None, &mut |line| println!("{line}")).unwrap();
//! assert_eq!(end.counts.ok, 9_000); // the first tenth warms up
//! ```

mod fake;
mod null;
mod phase;
mod plan;
mod process;
mod report;
mod tally;
mod workload;

pub use fake::Fake;
pub use null::Null;
pub use phase::{Operations, Outcome, Token};
pub use plan::{BadPlan, Keys, Plan, ZIPF_THETA};
pub use report::{Client, End, Options, Overhead, Stop, benchmark, error_line};
pub use tally::Counts;
pub use workload::{Kind, VARIANTS, Workload};
