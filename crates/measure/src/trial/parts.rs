//! The components of a trial.
//!
//! Units: `_ns` since the start of the trial; shares in [0, 1].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::host::HostSecond;
use crate::distribution::Distribution;
use crate::entry::TickSecond;
use crate::flow::Flow;
use crate::load_unit::LoadUnit;
use crate::names::MetricNames;
use crate::purpose::Purpose;
use crate::seconds::SECOND_NS;
use crate::ticks::TickCounts;

/// What the trial was asked to be; known before it begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialHead {
    /// number within the run, from 0
    pub seq: u32,
    /// what it is for
    pub purpose: Purpose,
    /// the requested load, in `load_unit`
    pub load: f64,
    /// what it counts
    pub load_unit: LoadUnit,
    /// simulated clients
    pub bots: u64,
    /// connections that should stand during the hold
    pub connections: u64,
    /// ns between two ticks of the subject; 0 when it has no ticks
    pub tick_period_ns: u64,
    /// of a sweep: axis and value; else empty
    #[serde(default)]
    pub cell: BTreeMap<String, String>,
    /// names behind the indices
    pub metric_names: Arc<MetricNames>,
}

impl TrialHead {
    /// Whether the load is a number of games, each with its own loop and its own short-lived connections.
    pub fn counts_games(&self) -> bool {
        self.load_unit == LoadUnit::Games
    }
}

/// One second of the series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// seconds since the start of the trial
    pub index: u32,
    /// all operations, planned in any phase
    pub flow: Flow,
    /// the server's own ticks, where it tells them
    pub ticks: TickCounts,
    /// fewest connections open
    pub open_min: u64,
    /// connections that ended, for whatever reason
    pub closed: u64,
    /// mean response of messages planned in the hold, ns
    pub response_mean_ns: Option<f64>,
    /// mean delivery latency of messages planned in the hold, ns
    pub delivery_mean_ns: Option<f64>,
    /// ticks as the clients see them
    pub client_ticks: TickCounts,
    /// the busiest worker's share
    pub busy_share_max: f64,
    /// share of it in which all connections were silent at once although answers were owed
    pub stalled_share: f64,
    /// what else went on: on the machine, in the workers' threads and in the subject's
    pub host: HostSecond,
}

/// The part that is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// begin, after the warm-up cut
    pub from_ns: u64,
    /// end
    pub to_ns: u64,
    /// what ended it
    pub ended_by: String,
}

impl Hold {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    /// A server's seconds (or shorter entries) are not aligned with ours: those that *end* in the hold are taken. They cover as
    /// much time as the hold, reach into the settling before it by less than one, and never into the drain after it.
    pub(super) fn has_end_of(&self, told: &TickSecond) -> bool {
        told.to_ns > self.from_ns && told.to_ns <= self.to_ns
    }

    pub(super) fn contains(&self, from_ns: u64, to_ns: u64) -> bool {
        from_ns >= self.from_ns && to_ns <= self.to_ns
    }

    pub(super) fn holds_second(&self, index: u32) -> bool {
        let (from_ns, to_ns) = (u64::from(index) * SECOND_NS, (u64::from(index) + 1) * SECOND_NS);
        from_ns >= self.from_ns && to_ns <= self.to_ns
    }
}

/// Connections over the whole trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct TrialConnections {
    /// that should stand
    pub asked: u64,
    /// open in the worst second of the hold, as the mean over that second
    pub open_min: u64,
    /// open at the worst moment of the hold, when many are between two games for a millisecond
    pub open_least: u64,
    /// open when the hold ended
    pub open: u64,
    /// opened during the ramp
    pub opened_in_ramp: u64,
    /// opened per second of the ramp
    pub rate_per_s: Option<f64>,
    /// attempts over the whole trial
    pub attempts: u64,
    /// failed attempts over the whole trial, by cause
    pub failed: BTreeMap<String, u64>,
}

/// The server's own ticks over the hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialTicks {
    /// where they come from
    pub source: String,
    /// by class
    pub counts: TickCounts,
    /// between two ticks
    pub interval: Distribution,
    /// work per tick
    pub busy: Option<Distribution>,
    /// actual − scheduled start
    pub lateness: Option<Distribution>,
    /// instability ratio, where the server tells its parts
    pub isr: Option<f64>,
    /// the end of the hold on which the server reported nothing; its ticks are among the missed
    pub silence: Option<Silence>,
}

/// A process over the hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct ProcessFigures {
    /// mean CPU over the hold, in cores
    pub cpu_cores: f64,
    /// of the cores it may use
    pub cpu_share: Option<f64>,
    /// cores it may use
    pub allowed_cores: Option<f64>,
    /// maximum over the hold
    pub rss_bytes: u64,
    /// maximum over the hold
    pub fds: Option<u64>,
}

/// Facts that bots read back from the server after the hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// facts
    pub checked: u64,
    /// of these, other than they must be
    pub wrong: u64,
    /// further facts that were to be read back and were not: the server refused or did not answer
    pub unread: u64,
}

/// Games over the whole trial, as their players saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Games {
    /// played to their end
    pub played: u64,
    /// how long these took, ms, in sum
    pub played_ms: u64,
    /// that were running when the hold began and still when it ended
    pub unending: u64,
}

/// Lives of bots under way at once, over the hold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AtOnce {
    /// over all seconds
    pub mean: f64,
    /// in the fullest second, as the mean over that second
    pub max: f64,
}

/// Requests around the moment at which the subject was told to shut down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// sent before and not answered yet
    pub under_way: u64,
    /// of these, never answered, or refused
    pub dropped: u64,
    /// sent after that
    pub later: u64,
    /// of these, refused in whichever way
    pub later_refused: u64,
}

/// Changes that cheaters sent, over the whole trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cheats {
    /// all of them
    pub sent: u64,
    /// as they must be
    pub refused: u64,
    /// as they must not be
    pub accepted: u64,
}

/// What one function of a script took over the hold, estimated from samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFunction {
    /// its name as written; empty without one
    pub name: String,
    /// file and line where it begins
    pub place: String,
    /// without what it called
    pub ms: u64,
}

impl std::fmt::Display for ScriptFunction {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} ms: {} ({})", self.ms, self.name, self.place)
    }
}

impl ScriptFunction {
    /// As it is displayed; `None`: it is none.
    pub fn read(text: &str) -> Option<ScriptFunction> {
        let (ms, function) = text.split_once(" ms: ")?;
        let (name, place) = function.rsplit_once(" (")?;
        Some(ScriptFunction {
            name: name.to_owned(),
            place: place.strip_suffix(')')?.to_owned(),
            ms: ms.parse().ok()?,
        })
    }
}

/// The end of a hold on which a server reported nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Silence {
    /// the server's last word before the end of the hold ends here
    pub from_ns: u64,
    /// ticks that were due from there to the end of the hold, and are counted as missed
    pub missed: u64,
    /// by a later word of the server itself, and not only by its silence
    pub is_told: bool,
    /// shorter than an entry of the log: nothing came of the hold's last moments, though it was waited for. It means something
    /// only of a server that goes on writing when nothing is left to tell, and its ticks are not counted as missed
    pub is_brief: bool,
}

/// The part of a hold that whole entries of the server's log should cover: without the part of an entry that began
/// before the hold, and without what follows the last entry that ended in it (see `Silence`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// ns since the start of the trial
    pub from_ns: u64,
    /// ns since the start of the trial
    pub to_ns: u64,
    /// ticks that these entries say were due
    pub due: u64,
}
