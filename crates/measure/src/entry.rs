//! An entry: one fact of a trial on its way to the store.
//!
//! Collector and watch create entries, the store's writer commits them, and `Trial` is folded from the committed ones.
//! Units: `_ns` since the start of the trial unless a field says otherwise.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::distribution::Distribution;
use crate::interval::Interval;
use crate::ledger::Books;
use crate::sample::Sample;
use crate::seconds::{SECOND_NS, second_at};
use crate::ticks::TickCounts;

/// One fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// a merged second of the bots
    Interval(Box<Interval>),
    /// a reading of a process or of the machine
    Sample(Sample),
    /// a second of ticks: the server's own, or those of a further source that is compared with the judged one
    Ticks(Box<TickSecond>),
    /// something worth a mark on the time axis
    Event(Event),
    /// the books of the trial's deliveries, once, at its end
    Books(Box<Books>),
}

impl Entry {
    /// The latest moment that this entry covers, ns since the start of the trial.
    pub fn until_ns(&self) -> u64 {
        match self {
            Entry::Interval(interval) => (u64::from(interval.index) + 1) * SECOND_NS,
            Entry::Sample(sample) => sample.at_ns,
            Entry::Ticks(second) => second.to_ns,
            Entry::Event(event) => event.at_ns,
            // They describe the whole trial, and so have no instant.
            Entry::Books(_) => 0,
        }
    }
}

/// A second of a server's ticks as its own log, metrics or the clients tell it, or whatever shorter time it tells at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TickSecond {
    /// `log`, `statsd`, …; of a source that is only compared with the judged one `also ` and how it was written:
    /// `also statsd=127.0.0.1:8125`
    pub source: String,
    /// begin
    pub from_ns: u64,
    /// end
    pub to_ns: u64,
    /// ticks by class
    pub counts: TickCounts,
    /// the server's interval between ticks; whole ms when its log has no finer ones
    pub interval: Distribution,
    /// how long a tick's work took; `None` when the server does not say
    pub busy: Option<Distribution>,
    /// actual − scheduled start; `None` when the server does not say
    pub lateness: Option<Distribution>,
    /// Σ |max(b,tᵢ) − max(b,tᵢ₋₁)| over the ticks of each game, ns (see docs/method); `None` when unknown
    pub isr_numerator_ns: Option<f64>,
    /// further counters of the server, by name
    pub counters: Vec<(String, u64)>,
}

/// What the source of a second begins with that is only compared.
const COMPARED: &str = "also ";

impl TickSecond {
    /// The same second from a source that is only compared with the judged one, by the name under which it was announced
    /// (`kind::TICK_SOURCE`).
    pub fn compared_as(self, name: &str) -> TickSecond {
        TickSecond { source: format!("{COMPARED}{name}"), ..self }
    }

    /// The name of its source where that is only compared; `None`: it is judged.
    pub fn compared(&self) -> Option<&str> {
        self.source.strip_prefix(COMPARED)
    }

    /// The second that it belongs to, that of its middle: it may be shorter, or lie across two.
    pub fn second(&self) -> u32 {
        second_at(self.from_ns.midpoint(self.to_ns))
    }
}

/// Something worth a mark on the time axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Event {
    /// when
    pub at_ns: u64,
    /// `hold`, `drain`, `subject exited`, `interrupted`, …
    pub kind: String,
    /// for people; text from the server under test is never markup
    pub text: String,
}
