//! Measurements, as sums: intervals, distributions, tick classes, tick logs, trials, and their byte encodings.
//!
//! Everything here is a monoid or a fold over one: workers' seconds merge into the run's seconds, seconds into a trial,
//! and merging in any order gives the same sum. So live figures and replayed figures cannot differ.
//! Invariant: no threads, no sockets, no clock. Times are arguments: `_ns` since the start of the trial, u64.

mod agents;
pub mod distribution;
mod entry;
mod flow;
mod interval;
pub mod ledger;
mod load_unit;
pub mod names;
pub mod network;
mod purpose;
mod sample;
mod seconds;
mod stops;
pub mod ticklog;
mod ticks;
pub mod trial;

pub use agents::AgentFacts;
pub use distribution::{Distribution, Quantile, Summary, ValueSummary};
pub use entry::{Entry, Event, TickSecond};
pub use flow::{Flow, Imbalance, Phase};
pub use interval::{Connections, Interval, Measure};
pub use ledger::{Books, LedgerPart, LedgerShape};
pub use load_unit::LoadUnit;
pub use names::{ErrorKind, MetricNames, Role};
pub use network::NetworkFacts;
pub use purpose::Purpose;
pub use sample::{
    MachineMetric, OverTime, ProcessMetric, Reading, Sample, ServiceMetric, Signal, ThreadState,
    by_kind_of_name, plain_name, plain_text,
};
pub use stops::{Callback, Operation, Stops};
pub use ticklog::ServerCounter;
pub use ticks::{LateIntervals, TickClasses, TickCounts};
pub use trial::recovery::AfterHold;
pub use trial::sum::Sum;
pub use trial::{
    Audit, Cheats, Games, Hold, HostSecond, Logged, ProcessFigures, ScriptFunction, Second, Silence, Stretch,
    Stretches, ThreadsOfName, Trial, TrialConnections, TrialHead, TrialTicks,
};
