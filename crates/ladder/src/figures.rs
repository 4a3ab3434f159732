//! The figures of a rung that an objective may name: name, unit, meaning, and how to read each from a trial.
//!
//! One table feeds the parser, `--help` and the docs, so they cannot disagree about the names.
//! Invariant: a figure that was not measured, or not often enough, is reported as such and never as zero.
//! Units: times in ns, shares in [0, 1], counts as numbers; see `UnitKind`.

use std::sync::{Mutex, PoisonError};

use measure::distribution::{THOUSANDTHS, samples_needed};
use measure::{ErrorKind, Measure, Quantile, Role, Trial};

mod of_trial;

use of_trial::*;
pub(crate) use of_trial::{
    any_failed, bounds, caused_errors, counted_seconds, deliveries_per_s, errors, frames, late_bounds,
    never_answered, never_answered_of, open_share, over_budget_share, paced, questions, rate_per_s, sample,
    spoken, ticks, unclear, worst_node,
};

/// The unit of a figure, and so the units an objective may write after its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// ns inside; written with ns, us, µs, ms or s
    Time,
    /// in [0, 1] inside; written as `25%` or `0.25`
    Share,
    /// a number of things; k and M multiply
    Count,
    /// things per second; k and M multiply, `/s` may follow
    Rate,
    /// bytes; k, M, G (1000) and KiB, MiB, GiB (1024)
    Bytes,
    /// a bare number: cores, a ratio
    Number,
    /// right or wrong; written as `ok`
    Ok,
}

/// What a trial says about a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureValue {
    /// the value in the figure's inner unit
    Value(f64),
    /// so many messages never had an answer that the figure is one of theirs
    Infinite,
    /// a percentile with fewer than 100 samples beyond it
    TooFew {
        /// samples taken
        count: u64,
        /// samples that the percentile asks for
        needed: u64,
    },
    /// not measured; says why
    Absent(&'static str),
}

/// A figure that an objective may name.
#[derive(Clone, Copy, Debug)]
pub struct FigureDoc {
    /// as written: `ticks.late_share`
    pub name: &'static str,
    /// what it is measured in
    pub unit: UnitKind,
    /// one line for people
    pub meaning: &'static str,
    pub(crate) source: Source,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Quantile(Of, f64),
    Max(Of),
    Mean(Of),
    Scalar(fn(&Trial) -> FigureValue),
}

/// Which distribution a percentile is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Response,
    Service,
    SendLag,
    Handshake,
    Delivery,
    TickInterval,
    TickBusy,
    ClientInterval,
    FirstByte,
    Tls,
    /// the response of one operation, by its name
    Operation(&'static str),
    /// what the bots recorded by this name
    Value(&'static str),
}

/// The meaning of a name that the bots define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// an operation, of which the response is judged
    Operation,
    /// a distribution of values without a unit
    Value,
}

impl Of {
    /// What a distribution counts in one unit of its figure.
    pub(crate) fn per_unit(self) -> f64 {
        if matches!(self, Of::Value(_)) { THOUSANDTHS } else { 1.0 }
    }
}

macro_rules! scalar {
    ($name:literal, $unit:ident, $meaning:literal, $read:expr) => {
        FigureDoc { name: $name, unit: UnitKind::$unit, meaning: $meaning, source: Source::Scalar($read) }
    };
}

macro_rules! family {
    ($name:literal, $of:ident, $stat:literal, $meaning:literal, $source:ident $(, $q:literal)?) => {
        FigureDoc {
            name: concat!($name, ".", $stat),
            unit: UnitKind::Time,
            meaning: concat!($meaning, $stat),
            source: Source::$source(Of::$of $(, $q)?),
        }
    };
}

macro_rules! table {
    (families { $($family:literal $of:ident $meaning:literal;)* } scalars { $($scalar:expr;)* }) => {
        &[
            $($scalar,)*
            $(
                family!($family, $of, "p50", $meaning, Quantile, 0.5),
                family!($family, $of, "p90", $meaning, Quantile, 0.9),
                family!($family, $of, "p95", $meaning, Quantile, 0.95),
                family!($family, $of, "p99", $meaning, Quantile, 0.99),
                family!($family, $of, "p999", $meaning, Quantile, 0.999),
                family!($family, $of, "max", $meaning, Max),
                family!($family, $of, "mean", $meaning, Mean),
            )*
        ]
    };
}

/// Every figure there is, scalars first, then seven of each distribution.
pub const FIGURES: &[FigureDoc] = table! {
    families {
        "response" Response "answered - planned, what a user feels; unanswered messages are infinite: ";
        "service" Service "answered - sent: ";
        "send_lag" SendLag "sent - planned, the generator's own lateness: ";
        "handshake" Handshake "from the first packet to a usable connection: ";
        "ticks.interval" TickInterval "between two ticks of the server: ";
        "ticks.busy" TickBusy "work per tick, where the server tells it: ";
        "client_ticks.interval" ClientInterval "between two snapshots as a client sees them: ";
        "first_byte" FirstByte "from the send of a request to the first byte of its answer: ";
        "tls" Tls "the part of a handshake that TLS took: ";
        "deliveries.latency" Delivery "from the planned send of a broadcast to its receipt; lost ones are infinite: ";
    }
    scalars {
        scalar!("ticks.late_share", Share, "(over + under + missed) / due of the server's ticks; of several nodes that of the worst", |trial| {
            match (classes(trial, |counts| share(counts.late_share())), worst_node(trial)) {
                (FigureValue::Value(all), Some((_, worst))) => FigureValue::Value(all.max(worst)),
                (all, _) => all,
            }
        });
        scalar!("ticks.over", Count, "ticks after a longer interval than the classes allow", |trial| {
            classes(trial, |counts| count(counts.over))
        });
        scalar!("ticks.under", Count, "ticks after a shorter interval than the classes allow", |trial| {
            classes(trial, |counts| count(counts.under))
        });
        scalar!("ticks.missed", Count, "ticks that were due and never run", |trial| {
            ticks(trial).map_or(NO_TICKS, |counts| count(counts.missed))
        });
        scalar!("ticks.over_budget_share", Share, "ticks whose work took longer than one period", |trial| {
            over_budget_share(trial).map_or(FigureValue::Absent("the server does not tell its work per tick"), FigureValue::Value)
        });
        scalar!("ticks.isr", Number, "instability ratio of the ticks; blind to steady overload", |trial| {
            trial.ticks.as_ref().and_then(|ticks| ticks.isr)
                .map_or(FigureValue::Absent("the server does not tell what the ratio is made of"), FigureValue::Value)
        });
        scalar!("client_ticks.late_share", Share, "the same share as the clients see it", |trial| {
            trial.client_ticks.late_share().map_or(NO_CLIENT_TICKS, FigureValue::Value)
        });
        scalar!("deliveries.owed", Count, "deliveries owed, as it turned out: delivered + lost + unread", |trial| {
            judged(trial).map_or_else(|absent| absent, |books| count(books.owed()))
        });
        scalar!("deliveries.delivered", Count, "different messages that came, each counted at each receiver", |trial| {
            judged(trial).map_or_else(|absent| absent, |books| count(books.delivered))
        });
        scalar!("deliveries.lost", Count, "deliveries surely owed and never seen", |trial| of_owed(trial, |books| books.lost as f64));
        scalar!("deliveries.late", Count, "deliveries after the plan's patience", |trial| of_owed(trial, |books| books.late as f64));
        scalar!("deliveries.dropped", Count, "deliveries that the server says it dropped", |trial| {
            told(trial, |books| books.dropped as f64)
        });
        scalar!("deliveries.in_flight", Count, "deliveries that the server says still waited at the end", |trial| {
            told(trial, |books| books.in_flight as f64)
        });
        scalar!("deliveries.residual", Count, "deliveries that neither the server nor the clients account for", |trial| {
            told(trial, |books| books.residual.unsigned_abs() as f64)
        });
        scalar!("deliveries.duplicated", Count, "deliveries seen again", |trial| of_owed(trial, |books| books.duplicated as f64));
        scalar!("deliveries.reordered", Count, "deliveries seen after a younger one of the same sender", |trial| {
            of_owed(trial, |books| books.reordered as f64)
        });
        scalar!("deliveries.rate_per_s", Rate, "deliveries per second of the hold", |trial| {
            judged(trial).map_or_else(|absent| absent, |_| deliveries_per_s(trial).map_or(NO_HOLD, FigureValue::Value))
        });
        scalar!("frames.rate_per_s", Rate, "frames that the server says it drew per second", |trial| {
            frames(trial).map_or(NO_FRAMES, |frames| FigureValue::Value(frames.rate_per_s))
        });
        scalar!("frames.share", Share, "frames drawn, of those due", |trial| {
            frames(trial).map_or(NO_FRAMES, |frames| {
                frames.share().map_or(FigureValue::Absent("the server does not tell how many frames were due"), FigureValue::Value)
            })
        });
        scalar!("errors", Count, "errors by cause, or failed + lost + unanswered + not sent messages where those are more; and failed connects", |trial| {
            count(errors(trial))
        });
        scalar!("errors.share", Share, "the same over the messages offered and the failed connects, 1 at most", |trial| {
            errors_share(trial).map_or(NOTHING_OFFERED, FigureValue::Value)
        });
        scalar!("late", Count, "answers after the plan's patience", |trial| count(trial.flow().late));
        scalar!("late.share", Share, "the same over all answers", |trial| {
            let flow = trial.flow();
            share_of(flow.late, flow.answered).map_or(NOTHING_ANSWERED, FigureValue::Value)
        });
        scalar!("refused", Count, "errors that a chat server reported to its clients", |trial| {
            count(trial.errors_of(ErrorKind::Refused).map(|(_, count)| count).sum())
        });
        scalar!("unexpected", Count, "answers that nothing was asked for, or that came twice (bots of scripts)", |trial| {
            if trial.counts(Role::Unexpected).next().is_none() {
                return FigureValue::Absent("only bots of scripts tell their answers apart");
            }
            count(trial.counts(Role::Unexpected).sum())
        });
        scalar!("sessions.at_once", Number, "bots between the beginning and the end of their function, mean over the hold (scripts with repeat or sessions/s)", |trial| {
            of_sessions(trial, |trial, _| trial.at_once.map_or(0.0, |at_once| at_once.mean))
        });
        scalar!("sessions.failed", Count, "sessions whose function threw", |trial| {
            of_sessions(trial, |_, flow| (flow.failed + flow.lost) as f64)
        });
        scalar!("sessions.unended", Count, "sessions that had not ended when the bots left", |trial| {
            of_sessions(trial, |_, flow| flow.open_after as f64)
        });
        scalar!("failed", Count, "wrong replies", |trial| count(trial.flow().failed));
        scalar!("lost", Count, "messages whose connection ended before the reply", |trial| count(trial.flow().lost));
        scalar!("not_sent", Count, "planned messages that never left", |trial| count(trial.flow().not_sent));
        scalar!("unanswered", Count, "messages without a reply when the drain ended", |trial| {
            count(trial.flow().open_after)
        });
        scalar!("unanswered.longest", Time, "the longest that an unanswered message had waited at the stop", |trial| {
            FigureValue::Value(trial.distribution(Measure::Unanswered).max_ns().unwrap_or(0) as f64)
        });
        scalar!("rate_per_s", Rate, "answers per second of the hold; messages that owe no answer count when sent", |trial| {
            rate_per_s(trial).map_or(NO_HOLD, FigureValue::Value)
        });
        scalar!("bytes_per_s", Bytes, "bytes per second of the hold, both directions", |trial| {
            trial.bytes_per_s.map_or(NO_HOLD, FigureValue::Value)
        });
        scalar!("connections.open_min", Count, "connections open in the worst second (its mean)", |trial| {
            count(trial.connections.open_min)
        });
        scalar!("connections.open_share", Share, "the same over the connections asked for", |trial| {
            open_share(trial).map_or(FigureValue::Absent("no connection was asked for"), FigureValue::Value)
        });
        scalar!("connections.rate_per_s", Rate, "connections opened per second of the ramp", |trial| {
            trial.connections.rate_per_s.map_or(FigureValue::Absent("no connection was opened in the ramp"), FigureValue::Value)
        });
        scalar!("connections.failed", Count, "failed attempts to connect", |trial| {
            count(trial.connections.failed.values().sum())
        });
        scalar!("subject.cpu_share", Share, "mean CPU of the server, of the cores it may use", |trial| {
            trial.subject.as_ref().map_or(NO_SUBJECT, |subject| {
                subject.cpu_share.map_or(FigureValue::Absent("it is not known which cores the server may use"), FigureValue::Value)
            })
        });
        scalar!("subject.cpu_cores", Number, "mean CPU of the server in cores", |trial| {
            trial.subject.as_ref().map_or(NO_SUBJECT, |subject| FigureValue::Value(subject.cpu_cores))
        });
        scalar!("subject.cpu_per_message", Time, "CPU time of the server per answer; messages that owe no answer count when sent", |trial| {
            cpu_per_message_ns(trial)
        });
        scalar!("subject.rss_bytes", Bytes, "most memory of the server", |trial| {
            trial.subject.as_ref().map_or(NO_SUBJECT, |subject| count(subject.rss_bytes))
        });
        scalar!("subject.fds", Count, "most descriptors of the server", |trial| {
            trial.subject.as_ref().and_then(|subject| subject.fds).map_or(NO_SUBJECT, count)
        });
        scalar!("worker.busy_share", Share, "the busiest worker's share of the hold that it did not sleep", |trial| {
            trial.busy_share_max.map_or(NO_HOLD, FigureValue::Value)
        });
        scalar!("audit", Ok, "after the hold, what the server holds is what the bots were told (leaderboard)", |trial| {
            match trial.audit.filter(|audit| audit.checked > 0) {
                Some(audit) => FigureValue::Value(f64::from(u8::from(audit.wrong == 0))),
                None => FigureValue::Absent("nothing was read back after the hold"),
            }
        });
    }
};

const NO_HOLD: FigureValue = FigureValue::Absent("the hold never began");
const NO_TICKS: FigureValue = FigureValue::Absent("nothing reported the server's ticks");
const UNCLEAR: FigureValue =
    FigureValue::Absent("buckets of the server's histogram hold ticks on time and late ones");
const NO_FRAMES: FigureValue = FigureValue::Absent("nothing reported the server's frames");
const NO_CLIENT_TICKS: FigureValue = FigureValue::Absent("no client saw ticks; let bots ask for snapshots");
const NOT_IN_THE_HOLD: FigureValue = FigureValue::Absent(
    "none was asked in the hold, and what bots do while they come in is not judged; leave it out of the objectives",
);
const NO_BOOKS: FigureValue = FigureValue::Absent(
    "there are no books of deliveries: these bots keep none, or the trial was cut off before its end",
);
const DROPS_UNTOLD: FigureValue =
    FigureValue::Absent("this server does not tell what it drops; deliveries.lost holds it");
const NOTHING_OWED: FigureValue = FigureValue::Absent("no delivery was owed");
const NOTHING_OFFERED: FigureValue = FigureValue::Absent("no message was offered");
const NOTHING_ANSWERED: FigureValue = FigureValue::Absent("no message was answered");
const NO_SESSIONS: FigureValue =
    FigureValue::Absent("these bots have no sessions; only scripts with repeat or sessions/s have");
const NO_SUBJECT: FigureValue =
    FigureValue::Absent("the server's process was not watched; name it with --pid or --start");

impl FigureDoc {
    /// The figure of that name.
    pub fn named(name: &str) -> Option<&'static FigureDoc> {
        FIGURES.iter().find(|figure| figure.name == name)
    }

    /// A statistic of one operation's response, or of values that the bots record: `move.p99` of `move`. `own` says what a name
    /// stands for.
    ///
    /// They are named by the author of a script. Each figure that is asked for is made once and kept: there are as many as
    /// objectives name.
    pub fn of_bots(name: &str, own: &dyn Fn(&str) -> Option<Own>) -> Option<&'static FigureDoc> {
        static MADE: Mutex<Vec<(Own, &'static FigureDoc)>> = Mutex::new(Vec::new());
        let (of, stat) = name.rsplit_once('.')?;
        let own = own(of)?;
        let like = FIGURES.iter().find(|figure| figure.name.strip_prefix("response.") == Some(stat))?;
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, figure)) = made.iter().find(|(known, figure)| *known == own && figure.name == name) {
            return Some(figure);
        }
        let kept = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let (unit, meaning) = match own {
            Own::Operation => {
                (UnitKind::Time, format!("answered - planned, of {of}; unanswered ones are infinite: {stat}"))
            }
            Own::Value => (UnitKind::Number, format!("{of}, as the script recorded it: {stat}")),
        };
        let of = kept(of.to_owned());
        let of = if own == Own::Operation { Of::Operation(of) } else { Of::Value(of) };
        let figure = FigureDoc {
            name: kept(name.to_owned()),
            unit,
            meaning: kept(meaning),
            source: match like.source {
                Source::Quantile(_, q) => Source::Quantile(of, q),
                Source::Max(_) => Source::Max(of),
                _ => Source::Mean(of),
            },
        };
        let figure: &'static FigureDoc = Box::leak(Box::new(figure));
        made.push((own, figure));
        Some(figure)
    }

    /// The known name nearest to a misspelt one: the same last word first, then the fewest slips of the keyboard.
    pub fn nearest(name: &str) -> &'static FigureDoc {
        let wanted = name.to_lowercase();
        let slips = |figure: &&FigureDoc| {
            let last = figure.name.rsplit('.').next().unwrap_or(figure.name);
            let completes =
                figure.name.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.starts_with('.'));
            if last == wanted || completes { 1 } else { 2 * strsim::osa_distance(&wanted, figure.name) }
        };
        // `response` alone most likely meant p99, the percentile commonly used, not the first in the table.
        let speaks_of_p99 = |figure: &&FigureDoc| !figure.name.ends_with(".p99");
        FIGURES
            .iter()
            .min_by_key(|figure| (slips(figure), speaks_of_p99(figure)))
            .expect("the table is a constant and not empty")
    }

    /// True for a figure that a disturbance can make look better than it is: CPU that the server could not use because
    /// others had it.
    pub(crate) fn is_flattered(&self) -> bool {
        self.name.starts_with("subject.cpu")
    }

    /// True for a figure that stolen CPU, other programs and a late generator can make worse. What a server answers wrongly,
    /// refuses, sends twice or takes of memory is its own doing.
    pub(crate) fn is_disturbable(&self) -> bool {
        const OWN_DOING: [&str; 13] = [
            "failed",
            "unexpected",
            "lost",
            "audit",
            "subject.rss_bytes",
            "subject.fds",
            "connections.failed",
            "deliveries.duplicated",
            "deliveries.reordered",
            "deliveries.residual",
            "connections.open_min",
            "connections.open_share",
            "ticks.isr",
        ];
        !OWN_DOING.contains(&self.name)
    }

    /// True for a figure of the server's ticks.
    pub(crate) fn is_of_ticks(&self) -> bool {
        self.name.starts_with("ticks.")
    }

    /// True for the share of the server's own ticks that were late.
    pub(crate) fn is_late_share_of_server(&self) -> bool {
        self.name == "ticks.late_share"
    }

    /// True for a figure of the books, which are kept over the whole trial and know no seconds.
    pub(crate) fn is_of_books(&self) -> bool {
        self.name.starts_with("deliveries.") && self.distribution().is_none()
    }

    /// A figure that counts errors, over those alone that no disturbance causes: without what only took too long.
    pub(crate) fn certain_reading(&self, trial: &Trial) -> Option<f64> {
        self.reading_of_errors(trial, certain_errors(trial))
    }

    /// A figure that counts errors, over those alone that neither a disturbance nor a late generator causes.
    pub(crate) fn caused_reading(&self, trial: &Trial) -> Option<f64> {
        self.reading_of_errors(trial, caused_errors(trial))
    }

    fn reading_of_errors(&self, trial: &Trial, errors: u64) -> Option<f64> {
        match self.name {
            "errors" => Some(errors as f64),
            "errors.share" => share_of_offered(trial, errors),
            _ => None,
        }
    }

    /// Which disturbances a figure feels: `true` where our own workers' delays are in it too.
    pub(crate) fn counts_workers(&self) -> bool {
        !self.is_of_ticks()
    }

    /// True for a time that follows from where in a server's tick a request arrives.
    pub(crate) fn is_phase_dependent(&self) -> bool {
        matches!(self.distribution(), Some(Of::Response | Of::Service | Of::FirstByte | Of::Operation(_)))
    }

    /// The distribution that it is a statistic of.
    pub(crate) fn distribution(&self) -> Option<Of> {
        match self.source {
            Source::Quantile(of, _) | Source::Max(of) | Source::Mean(of) => Some(of),
            Source::Scalar(_) => None,
        }
    }

    /// Reads the figure off a trial.
    pub fn read(&self, trial: &Trial) -> FigureValue {
        match self.source {
            Source::Scalar(read) => read(trial),
            Source::Quantile(of, q) => match sample(trial, of) {
                Err(absent) => absent,
                Ok((values, never)) => match values.quantile(q, never) {
                    Quantile::Ns(value) => FigureValue::Value(value as f64 / of.per_unit()),
                    Quantile::Infinite => FigureValue::Infinite,
                    Quantile::TooFew => {
                        let needed = samples_needed(q);
                        FigureValue::TooFew { count: values.count() + never, needed }
                    }
                },
            },
            Source::Max(of) => match sample(trial, of) {
                Err(absent) => absent,
                Ok((_, never)) if never > 0 => FigureValue::Infinite,
                Ok((values, _)) => values
                    .max_ns()
                    .map_or(NOTHING_TAKEN, |value| FigureValue::Value(value as f64 / of.per_unit())),
            },
            // A single lost reply would make any mean infinite and so meaningless; losses have their own figures.
            Source::Mean(of) => match sample(trial, of) {
                Err(absent) => absent,
                Ok((values, _)) => {
                    values.mean_ns().map_or(NOTHING_TAKEN, |mean| FigureValue::Value(mean / of.per_unit()))
                }
            },
        }
    }
}

const NOTHING_TAKEN: FigureValue = FigureValue::TooFew { count: 0, needed: 1 };

#[cfg(test)]
mod tests;
