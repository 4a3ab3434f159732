//! A duel in words.

use crate::duel::interval::Scale;
use crate::duel::schedule::DuelStop;
use crate::duel::verdicts::{DuelVerdict, Finding};
use crate::figures::UnitKind;
use crate::wording::show_number;

/// Beyond this a ratio reads better as a factor than in percent.
const FACTOR_LEAST: f64 = 3.0;

impl Finding {
    /// The verdict in one or two words: `faster`, `slower`, `less`, `more`, `no difference larger than 5 %`,
    /// `undecided`.
    pub fn verdict_text(&self, delta: f64) -> String {
        let (smaller, larger) = match self.figure.unit {
            _ if self.figure.name.starts_with("subject.") || self.figure.name.starts_with("cpu") => {
                ("less", "more")
            }
            UnitKind::Time => ("faster", "slower"),
            UnitKind::Rate => ("slower", "faster"),
            _ => ("less", "more"),
        };
        match self.verdict {
            DuelVerdict::Smaller => smaller.to_owned(),
            DuelVerdict::Larger => larger.to_owned(),
            DuelVerdict::NoDifferenceLargerThanDelta => match (self.scale, self.figure.unit) {
                (Scale::Ratio, _) => format!("no difference larger than {} %", plain(delta * 100.0)),
                (Scale::Difference, UnitKind::Share) => {
                    format!("no difference larger than {} pp", plain(super::SHARE_DELTA * 100.0))
                }
                (Scale::Difference, _) => "no difference".to_owned(),
            },
            DuelVerdict::Undecided => format!("undecided after {}", blocks(self.blocks)),
        }
    }

    /// The change from A to B with its interval: `+5.1 % (+3.2 % to +7.0 %)`; `—` where there is none yet.
    pub fn change_text(&self) -> String {
        let Some(centre) = self.centre else { return "—".to_owned() };
        let shown = self.show(centre);
        match self.range {
            None => shown,
            Some((low, high)) => format!("{shown} ({} to {})", self.show(low), self.show(high)),
        }
    }

    fn show(&self, value: f64) -> String {
        match (self.scale, self.figure.unit) {
            (Scale::Ratio, _) => show_ratio(value.exp()),
            (Scale::Difference, UnitKind::Share) => format!("{} pp", signed(value * 100.0)),
            (Scale::Difference, _) => signed(value),
        }
    }
}

/// `1 block`, `7 blocks`
pub fn blocks(count: usize) -> String {
    if count == 1 { "1 block".to_owned() } else { format!("{count} blocks") }
}

fn show_ratio(ratio: f64) -> String {
    match ratio {
        ratio if ratio.is_infinite() => "infinite".to_owned(),
        ratio if ratio <= 0.0 => "× 0".to_owned(),
        ratio if !(1.0 / FACTOR_LEAST..FACTOR_LEAST).contains(&ratio) => format!("× {}", show_number(ratio)),
        ratio => format!("{} %", signed((ratio - 1.0) * 100.0)),
    }
}

fn signed(number: f64) -> String {
    let text = plain(number.abs());
    match number {
        number if number.is_infinite() => if number > 0.0 { "+∞" } else { "−∞" }.to_owned(),
        _ if text == "0" => "0".to_owned(),
        number if number < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// Two decimals for small numbers, one for larger ones: an interval is no more exact than that.
fn plain(number: f64) -> String {
    let text = if number < 1.0 { format!("{number:.2}") } else { format!("{number:.1}") };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl DuelStop {
    /// Why it ended, as a sentence continues: `ended because …`.
    pub fn text(self) -> &'static str {
        match self {
            DuelStop::Known => "everything that was asked is known",
            DuelStop::Blocks => "as many blocks were held as had been planned",
            DuelStop::Budget => "another block would not have ended within the budget (--budget)",
            DuelStop::NotMeasured => "what is asked is not measured here",
            DuelStop::Unfair => "four blocks in a row had to be dropped",
            DuelStop::Interrupted => "it was interrupted",
            DuelStop::ExitedA => "A's process ended under load",
            DuelStop::ExitedB => "B's process ended under load",
            DuelStop::FailedA => "operations of A failed, so there is nothing to compare B with",
            DuelStop::FailedB => "operations of B failed",
        }
    }
}
