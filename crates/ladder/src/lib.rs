//! From measured trials to answers: objectives, verdicts, the next trial, and what to tell people.
//!
//! Everything here is a pure function of stored numbers: no clock, no IO, no threads. Replaying a stored run gives the
//! same choices and the same verdicts.
//! The order of a run: `schedule` asks for a trial, `steady` finds its warm-up, `judge` holds it against its `objective`s,
//! `capacity` and `answers` sum up, `closing` words it for the terminal.

mod aliasing;
mod allowed;
pub mod answers;
pub mod bisect;
mod capacity;
pub mod closing;
mod condition;
mod confidence;
mod contract;
pub mod differing;
pub mod disturbance;
pub mod duel;
mod figures;
mod gate;
pub mod judge;
pub mod models;
pub mod objective;
pub mod recovery;
mod schedule;
pub mod steady;
pub mod wording;

#[cfg(any(test, feature = "scene"))]
pub mod scene;

pub use aliasing::Aliasing;
pub use allowed::Allowed;
pub use answers::{Asked, answers, run_verdict, rung};
pub use capacity::{Capacity, CellCapacity, SearchFigures, capacity};
pub use closing::{Closing, Table, closing};
pub use condition::{Condition, ConditionError};
pub use contract::{
    Climb, Conclusion, DeliveryFigures, ErrorSample, FrameFigures, HoldSpan, RunFacts, Rung, StoredAnswers,
};
pub use differing::{Difference, Origin};
pub use disturbance::{Disturbance, DisturbedAbove, disturbance, least_disturbed};
pub use figures::{FIGURES, FigureDoc, FigureValue, Own, UnitKind};
pub use gate::{Gate, GateError, GateResult};
pub use judge::{
    Calibration, Evidence, GoalResult, Intended, Judgement, Link, ObjectiveResult, Terms, Verdict,
    has_seen_enough, judge,
};
pub use measure::LoadUnit;
pub use objective::{Objective, ObjectiveError, Op, Outcome};
pub use schedule::{
    Bounds, Goal, Judged, LONGER_MOST, ListSchedule, LoadClass, Loads, Next, NextTrial, Repeats, Schedule,
    SearchSchedule, Stop, Tally, highest_overload, hold_for_ns,
};
pub use steady::{Floors, Steadiness, steadiness, warm_up_cut};
