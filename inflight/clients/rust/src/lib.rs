//! The in-flight benchmark: N operations in flight, each completion starts the next, until the total is reached.
//!
//! It measures any client library whose operations do not block. Implement [`Operations`] for it and call
//! [`benchmark`]; the output is described in `inflight/clients/README.md`, one JSON object per line. Every operation
//! that was started is counted exactly once, even when it never ends or ends twice.
//!
//! ```ignore
#![doc = include_str!("../examples/mine.rs")]
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
