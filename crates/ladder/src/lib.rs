//! From measured trials to answers: objectives, verdicts, the next trial, and the report to the user.
//!
//! Everything here is a pure function of stored numbers: no clock, no IO, no threads. Replaying a stored run gives the
//! same choices and the same verdicts.
//! Data flow of a run: `schedule` picks a trial, `steady` finds its warm-up, `judge` checks it against its
//! `objective`s, `capacity` and `answers` summarise, `results_page` formats the result for the terminal.

mod agents;
mod allowed;
pub mod answers;
mod arrival_phases;
pub mod bisect;
mod capacity;
mod condition;
mod confidence;
mod contract;
pub mod differing;
pub mod disturbance;
pub mod duel;
mod figures;
mod gate;
pub mod growth;
pub mod history;
pub mod judge;
pub mod models;
mod network;
pub mod objective;
pub mod recovery;
pub mod results_page;
mod schedule;
pub mod steady;
mod trend;
pub mod wording;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use agents::AgentRows;
pub use allowed::Allowed;
pub use answers::{Asked, TickSourceFigures, answers, run_verdict, rung};
pub use arrival_phases::ArrivalPhases;
pub use capacity::{Capacity, CellCapacity, SearchFigures, capacity};
pub use condition::{Condition, ConditionError};
pub use contract::{
    Climb, Conclusion, DeliveryFigures, ErrorSample, FrameFigures, HoldSpan, Mark, RESUMED, RunFacts, Rung,
    StoredAnswers,
};
pub use differing::{Difference, Origin};
pub use disturbance::{Disturbance, DisturbedAbove, disturbance, least_disturbed};
pub use figures::{FIGURES, FigureDoc, FigureValue, Own, UnitKind};
pub use gate::{Gate, GateError, GateResult};
pub use judge::{
    Calibration, Criteria, Evidence, GoalResult, Intended, Judgement, Link, ObjectiveResult, Verdict,
    has_seen_enough, judge,
};
pub use measure::LoadUnit;
pub use objective::{Objective, ObjectiveError, Op, Outcome};
pub use results_page::{ResultsPage, RunSummary, Table, results_page, run_summary};
pub use schedule::{
    Bounds, Goal, Judged, LONGER_MOST, ListSchedule, LoadClass, Loads, Next, NextTrial, Repeats, Schedule,
    SearchSchedule, Stop, Tally, highest_overload, hold_for_ns,
};
pub use steady::{Floors, Steadiness, steadiness, warm_up_cut};
