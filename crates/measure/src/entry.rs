//! An entry: one fact of a trial on its way to the store.
//!
//! Collector and watch make entries, the store's writer commits them, `Trial` is folded from what was committed.
//! Units: `_ns` since the start of the trial unless a field says otherwise.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::distribution::Distribution;
use crate::interval::Interval;
use crate::ledger::Books;
use crate::ticks::TickCounts;

const SECOND_NS: u64 = 1_000_000_000;

/// One fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// a merged second of the bots
    Interval(Box<Interval>),
    /// a reading of a process or of the machine
    Sample(Sample),
    /// a second of the server's own ticks
    Ticks(Box<TickSecond>),
    /// something worth a mark on the time axis
    Event(Event),
    /// the books of the trial's deliveries, once, at its end
    Books(Box<Books>),
}

/// A reading of a process or of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// when it was read
    pub at_ns: u64,
    /// one of `Sample::WHO`: `subject`, `worker` (this process), `machine`, `program` (another program) or `thread` (of
    /// the subject)
    pub who: &'static str,
    /// what was read, with its unit last: `cpu_s`, `rss_bytes`, `fds`, `steal_share` …; for `program` and `thread` its
    /// name, as `plain_name` gives it, and the value is in cores
    pub name: Cow<'static, str>,
    /// the reading
    pub value: f64,
}

impl Sample {
    /// Everything that a sample can be about.
    pub const WHO: [&'static str; 5] = ["subject", "worker", "machine", "program", "thread"];

    /// The second that it speaks of: a reading at the end of a second is about that second.
    pub fn second(&self) -> u32 {
        (self.at_ns.saturating_sub(SECOND_NS / 2) / SECOND_NS) as u32
    }
}

/// The longest name of a program or thread that is kept, in characters.
pub const NAME_CHARS_MAX: usize = 32;

/// The name of a program or thread as it is kept and shown: at most `NAME_CHARS_MAX` characters, none of which steers a
/// terminal or changes the direction of the text around it; `?` when nothing is left. It is text, never markup.
pub fn plain_name(name: &str) -> String {
    let is_mark =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain: String =
        name.chars().filter(|&c| !c.is_control() && !is_mark(c)).take(NAME_CHARS_MAX).collect();
    match plain.trim() {
        "" => "?".to_owned(),
        name => name.to_owned(),
    }
}

/// A second of a server's ticks as its own log, metrics or the clients tell it, or whatever shorter time it tells at once.
#[derive(Clone, Debug, PartialEq)]
pub struct TickSecond {
    /// `log`, `client`, …
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

impl TickSecond {
    /// The second that it belongs to, that of its middle: it may be shorter, or lie across two.
    pub fn second(&self) -> u32 {
        ((self.from_ns + self.to_ns) / 2 / SECOND_NS) as u32
    }
}

/// Something worth a mark on the time axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Event {
    /// when
    pub at_ns: u64,
    /// `hold`, `drain`, `subject exited`, `interrupted`, …
    pub kind: String,
    /// for people; text from the server under test is never markup
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_name_is_kept_as_short_plain_text() {
        let check = |name: &str, expected: &str| assert_eq!(plain_name(name), expected);
        check("sh", "sh");
        check("a\u{1b}[31mb\n\u{7}\u{202e}c", "a[31mbc");
        check("<b>&amp;", "<b>&amp;");
        check(&"ß".repeat(40), &"ß".repeat(32));
        check("\0\r ", "?");
    }
}
