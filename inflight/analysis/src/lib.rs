//! Comparisons of client libraries: from the lines that their processes wrote to tables, curves and sentences.
//!
//! `lines` parses one line, `replay` assembles those of a run, `figures` computes each client's results, `sweep` draws
//! conclusions from many tasks, `limits` lists what makes figures incomparable, `duel` compares two libraries block by
//! block, and `contract` is all of it as `bench --json` and the page have it. `stacks` reads folded profiles, and `flame`
//! makes one tree of two. The line format and its origin: inflight/clients/README.md, docs/method/clients.md.
//! Pure: the same lines give the same results, right after the run and years later.

mod comparison;
mod contract;
mod curve;
pub mod duel;
mod error;
mod figures;
mod flame;
mod heap;
mod limits;
mod lines;
mod profile;
mod replay;
mod stacks;
mod statistics;
mod sweep;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use comparison::{ComparedCell, OldAndNew, RunComparison, Told};
pub use contract::{
    CellFigures, Comparison, FirstError, LatencyFigures, ProfileFigures, ProfileFunction, RateRatio,
    RuntimeFitness,
};
pub use curve::ProcessCurve;
pub use error::LineError;
pub use figures::{Cell, CellKey, Fitness, Report, Run, bytes};
pub use flame::{FlameGraph, Weights};
pub use heap::{Heap, HeapBy, HeapError, HeapType};
pub use lines::{Line, Note, Usage};
pub use profile::{Profile, Subject, artifact};
pub use replay::{Process, Replay};
pub use stacks::{Costly, Frame, Kind, Stacks};
pub use statistics::{Ratio, Spread};
pub use sweep::{SIZES_MIN, conclusions};
