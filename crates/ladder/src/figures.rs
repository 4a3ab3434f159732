//! The figures of a rung that an objective may name: name, unit, meaning, and how each is read off a trial.
//!
//! One table feeds the parser, `--help` and the docs, so none of them can know a name that the others do not.
//! Invariant: a figure that was not measured, or not often enough, reads as such and never as zero.
//! Units: times in ns, shares in [0, 1], counts as numbers; see `UnitKind`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use measure::ledger::SumOfBooks;
use measure::{Distribution, ErrorKind, Flow, Measure, Quantile, Role, ServerCounter, Trial};

use crate::contract::FrameFigures;

/// What a figure is measured in, and so which units an objective may write behind its number.
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
pub enum Reading {
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
    Scalar(fn(&Trial) -> Reading),
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
        scalar!("ticks.late_share", Share, "(over + under + missed) / due of the server's ticks", |trial| {
            ticks(trial).map_or(NO_TICKS, |counts| share(counts.late_share()))
        });
        scalar!("ticks.over", Count, "ticks after a longer interval than the classes allow", |trial| {
            ticks(trial).map_or(NO_TICKS, |counts| count(counts.over))
        });
        scalar!("ticks.under", Count, "ticks after a shorter interval than the classes allow", |trial| {
            ticks(trial).map_or(NO_TICKS, |counts| count(counts.under))
        });
        scalar!("ticks.missed", Count, "ticks that were due and never run", |trial| {
            ticks(trial).map_or(NO_TICKS, |counts| count(counts.missed))
        });
        scalar!("ticks.over_budget_share", Share, "ticks whose work took longer than one period", |trial| {
            over_budget_share(trial).map_or(Reading::Absent("the server does not tell its work per tick"), Reading::Value)
        });
        scalar!("ticks.isr", Number, "instability ratio of the ticks; blind to steady overload", |trial| {
            trial.ticks.as_ref().and_then(|ticks| ticks.isr)
                .map_or(Reading::Absent("the server does not tell what the ratio is made of"), Reading::Value)
        });
        scalar!("client_ticks.late_share", Share, "the same share as the clients see it", |trial| {
            trial.client_ticks.late_share().map_or(NO_CLIENT_TICKS, Reading::Value)
        });
        scalar!("deliveries.owed", Count, "deliveries owed, as it turned out: delivered + lost", |trial| {
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
            judged(trial).map_or_else(|absent| absent, |_| deliveries_per_s(trial).map_or(NO_HOLD, Reading::Value))
        });
        scalar!("frames.rate_per_s", Rate, "frames that the server drew per second, by its own word", |trial| {
            frames(trial).map_or(NO_FRAMES, |frames| Reading::Value(frames.rate_per_s))
        });
        scalar!("frames.share", Share, "frames drawn, of those due", |trial| {
            frames(trial).map_or(NO_FRAMES, |frames| {
                frames.share().map_or(Reading::Absent("the server does not tell how many frames were due"), Reading::Value)
            })
        });
        scalar!("errors", Count, "errors by cause, or failed + lost + unanswered + not sent messages where those are more; and failed connects", |trial| {
            count(errors(trial))
        });
        scalar!("errors.share", Share, "the same over the messages offered and the failed connects, 1 at most", |trial| {
            errors_share(trial).map_or(NOTHING_OFFERED, Reading::Value)
        });
        scalar!("late", Count, "answers after the plan's patience", |trial| count(trial.flow().late));
        scalar!("failed", Count, "wrong replies", |trial| count(trial.flow().failed));
        scalar!("lost", Count, "messages whose connection ended before the reply", |trial| count(trial.flow().lost));
        scalar!("not_sent", Count, "planned messages that never left", |trial| count(trial.flow().not_sent));
        scalar!("unanswered", Count, "messages without a reply when the drain ended", |trial| {
            count(trial.flow().open_after)
        });
        scalar!("unanswered.longest", Time, "the longest that an unanswered message had waited at the stop", |trial| {
            Reading::Value(trial.distribution(Measure::Unanswered).max_ns().unwrap_or(0) as f64)
        });
        scalar!("rate_per_s", Rate, "answers per second of the hold; messages that owe no answer count when sent", |trial| {
            rate_per_s(trial).map_or(NO_HOLD, Reading::Value)
        });
        scalar!("bytes_per_s", Bytes, "bytes per second of the hold, both directions", |trial| {
            trial.bytes_per_s.map_or(NO_HOLD, Reading::Value)
        });
        scalar!("connections.open_min", Count, "connections open in the worst second (its mean)", |trial| {
            count(trial.connections.open_min)
        });
        scalar!("connections.open_share", Share, "the same over the connections asked for", |trial| {
            open_share(trial).map_or(Reading::Absent("no connection was asked for"), Reading::Value)
        });
        scalar!("connections.rate_per_s", Rate, "connections opened per second of the ramp", |trial| {
            trial.connections.rate_per_s.map_or(Reading::Absent("no connection was opened in the ramp"), Reading::Value)
        });
        scalar!("connections.failed", Count, "failed attempts to connect", |trial| {
            count(trial.connections.failed.values().sum())
        });
        scalar!("subject.cpu_share", Share, "mean CPU of the server, of the cores it may use", |trial| {
            trial.subject.as_ref().map_or(NO_SUBJECT, |subject| {
                subject.cpu_share.map_or(Reading::Absent("it is not known which cores the server may use"), Reading::Value)
            })
        });
        scalar!("subject.cpu_cores", Number, "mean CPU of the server in cores", |trial| {
            trial.subject.as_ref().map_or(NO_SUBJECT, |subject| Reading::Value(subject.cpu_cores))
        });
        scalar!("subject.rss_bytes", Bytes, "most memory of the server", |trial| {
            trial.subject.as_ref().map_or(NO_SUBJECT, |subject| count(subject.rss_bytes))
        });
        scalar!("subject.fds", Count, "most descriptors of the server", |trial| {
            trial.subject.as_ref().and_then(|subject| subject.fds).map_or(NO_SUBJECT, count)
        });
        scalar!("worker.busy_share", Share, "the busiest worker's share of the hold that it did not sleep", |trial| {
            trial.busy_share_max.map_or(NO_HOLD, Reading::Value)
        });
        scalar!("audit", Ok, "after the hold, what the server holds is what the bots were told (leaderboard)", |trial| {
            match trial.audit.filter(|audit| audit.checked > 0) {
                Some(audit) => Reading::Value(f64::from(u8::from(audit.wrong == 0))),
                None => Reading::Absent("nothing was read back after the hold"),
            }
        });
    }
};

const NO_HOLD: Reading = Reading::Absent("the hold never began");
const NO_TICKS: Reading = Reading::Absent("nothing reported the server's ticks");
const NO_FRAMES: Reading = Reading::Absent("nothing reported the server's frames");
const NO_CLIENT_TICKS: Reading = Reading::Absent("no client saw ticks; let bots ask for snapshots");
const NO_BOOKS: Reading = Reading::Absent(
    "there are no books of deliveries: these bots keep none, or the trial was cut off before its end",
);
const DROPS_UNTOLD: Reading =
    Reading::Absent("this server does not tell what it drops; deliveries.lost holds it");
const NOTHING_OWED: Reading = Reading::Absent("no delivery was owed");
const NOTHING_OFFERED: Reading = Reading::Absent("no message was offered");
const NO_SUBJECT: Reading =
    Reading::Absent("the server's process was not watched; name it with --pid or --start");

impl FigureDoc {
    /// The figure of that name.
    pub fn named(name: &str) -> Option<&'static FigureDoc> {
        FIGURES.iter().find(|figure| figure.name == name)
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
        // `response` alone most likely meant the percentile that people speak of, not the first in the table.
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
        const OWN_DOING: [&str; 12] = [
            "failed",
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

    /// True for a figure of the books, which are kept over the whole trial and know no seconds.
    pub(crate) fn is_of_books(&self) -> bool {
        self.name.starts_with("deliveries.") && self.distribution().is_none()
    }

    /// True for a figure that counts everything that went wrong, `errors` or its share. A disturbed machine can cause some
    /// of that and not the rest; see `certain_reading`.
    pub(crate) fn counts_errors(&self) -> bool {
        ["errors", "errors.share"].contains(&self.name)
    }

    /// A figure that counts errors, over those alone that no disturbance causes: without what only took too long.
    pub(crate) fn certain_reading(&self, trial: &Trial) -> Option<f64> {
        let certain = certain_errors(trial);
        match self.name {
            "errors" => Some(certain as f64),
            "errors.share" => share_of_offered(trial, certain),
            _ => None,
        }
    }

    /// Which disturbances a figure feels: `true` where our own workers' delays are in it too.
    pub(crate) fn counts_workers(&self) -> bool {
        !self.is_of_ticks()
    }

    /// True for a time that follows from where in a server's tick a request arrives.
    pub(crate) fn is_phase_dependent(&self) -> bool {
        matches!(self.distribution(), Some(Of::Response | Of::Service | Of::FirstByte))
    }

    /// The distribution that it is a statistic of.
    pub(crate) fn distribution(&self) -> Option<Of> {
        match self.source {
            Source::Quantile(of, _) | Source::Max(of) | Source::Mean(of) => Some(of),
            Source::Scalar(_) => None,
        }
    }

    /// Reads the figure off a trial.
    pub fn read(&self, trial: &Trial) -> Reading {
        match self.source {
            Source::Scalar(read) => read(trial),
            Source::Quantile(of, q) => match sample(trial, of) {
                Err(absent) => absent,
                Ok((values, never)) => match values.quantile(q, never) {
                    Quantile::Ns(ns) => Reading::Value(ns as f64),
                    Quantile::Infinite => Reading::Infinite,
                    Quantile::TooFew => {
                        let needed = (measure::distribution::EXCEEDANCES / (1.0 - q)).round() as u64;
                        Reading::TooFew { count: values.count() + never, needed }
                    }
                },
            },
            Source::Max(of) => match sample(trial, of) {
                Err(absent) => absent,
                Ok((_, never)) if never > 0 => Reading::Infinite,
                Ok((values, _)) => values.max_ns().map_or(NOTHING_TAKEN, |ns| Reading::Value(ns as f64)),
            },
            // A single lost reply would make any mean infinite and so meaningless; losses have figures of their own.
            Source::Mean(of) => match sample(trial, of) {
                Err(absent) => absent,
                Ok((values, _)) => values.mean_ns().map_or(NOTHING_TAKEN, Reading::Value),
            },
        }
    }
}

const NOTHING_TAKEN: Reading = Reading::TooFew { count: 0, needed: 1 };

/// The values of a distribution and how many messages took infinitely long.
pub(crate) fn sample(trial: &Trial, of: Of) -> Result<(Cow<'_, Distribution>, u64), Reading> {
    if trial.hold.is_none() && of != Of::Handshake {
        return Err(NO_HOLD);
    }
    let of_measure = |measure| Cow::Borrowed(trial.distribution(measure));
    Ok(match of {
        Of::Response => (of_measure(Measure::Response), never_answered(trial)),
        Of::Service => {
            let flow = questions(trial);
            (of_measure(Measure::Service), flow.failed + flow.lost + flow.open_after)
        }
        Of::SendLag => (of_measure(Measure::SendLag), 0),
        Of::Handshake => (of_measure(Measure::Handshake), trial.connections.failed.values().sum()),
        Of::Delivery => (of_measure(Measure::Delivery), judged(trial)?.lost),
        Of::TickInterval => match &trial.ticks {
            Some(ticks) => (Cow::Borrowed(&ticks.interval), 0),
            None if trial.client_ticks.due > 0 => (of_measure(Measure::TickInterval), 0),
            None => return Err(NO_TICKS),
        },
        Of::TickBusy => match trial.ticks.as_ref().map(|ticks| ticks.busy.as_ref()) {
            Some(Some(busy)) => (Cow::Borrowed(busy), 0),
            Some(None) => return Err(Reading::Absent("the server does not tell its work per tick")),
            None => return Err(NO_TICKS),
        },
        Of::ClientInterval if trial.client_ticks.due == 0 => return Err(NO_CLIENT_TICKS),
        Of::ClientInterval => (of_measure(Measure::TickInterval), 0),
        Of::FirstByte => (of_measure(Measure::FirstByte), never_began(trial)),
        Of::Tls => (of_measure(Measure::Tls), 0),
    })
}

/// Messages that owe a reply. An operation of which any message was told owes none: its unsent ones miss no answer.
pub(crate) fn questions(trial: &Trial) -> Flow {
    trial.ops.values().filter(|flow| flow.told == 0).fold(Flow::default(), |mut sum, flow| {
        sum.add(flow);
        sum
    })
}

/// Messages that a plan's rate speaks of. What only keeps a conversation going must not hide that lines are missing.
pub(crate) fn paced(trial: &Trial) -> Flow {
    let names = &trial.head.metric_names;
    let is_paced = |(op, _): &(&String, &Flow)| names.role_of_op(op) != Some(Role::Keep);
    trial.ops.iter().filter(is_paced).fold(Flow::default(), |mut sum, (_, flow)| {
        sum.add(flow);
        sum
    })
}

/// Questions that were planned and never rightly answered: they enter every percentile of the response as infinite.
pub(crate) fn never_answered(trial: &Trial) -> u64 {
    let flow = questions(trial);
    flow.failed + flow.lost + flow.not_sent + flow.open_after
}

/// Answers per second; what owes no answer counts when sent. `None` without a hold.
pub(crate) fn rate_per_s(trial: &Trial) -> Option<f64> {
    let done: u64 =
        trial.ops.values().map(|flow| if flow.told > 0 { flow.sent } else { flow.answered }).sum();
    counted_seconds(trial).map(|seconds| done as f64 / seconds)
}

/// Seconds of the hold whose messages are in the sums. A message belongs to the whole second it happened in, so a hold
/// that began within a second is counted from the next one. `None` when that leaves nothing.
pub(crate) fn counted_seconds(trial: &Trial) -> Option<f64> {
    let hold = trial.hold.as_ref()?;
    let from_ns = hold.from_ns.div_ceil(1_000_000_000) * 1_000_000_000;
    let cut_off_s = from_ns.saturating_sub(hold.from_ns) as f64 / 1e9;
    let seconds = trial.held_s() - cut_off_s;
    (hold.to_ns > from_ns && seconds > 0.0).then_some(seconds)
}

/// Requests without a first byte to time: those that were lost or left open may have had one, which is not known here.
fn never_began(trial: &Trial) -> u64 {
    let flow = questions(trial);
    flow.lost + flow.open_after
}

/// Everything that went wrong. A message that failed, was lost, never left or was never answered may stand among the errors
/// by its cause too, so the larger of the two counts.
pub(crate) fn errors(trial: &Trial) -> u64 {
    let flow = trial.flow();
    let bad = flow.failed + flow.lost + flow.not_sent + flow.open_after;
    trial.errors.values().sum::<u64>().max(bad) + failed_connects(trial)
}

/// The part of them that is not explained by something taking longer than the bots wait. Lost messages count by the cause
/// that ended their connection: with a request that is given up, others on the same connection are lost.
fn certain_errors(trial: &Trial) -> u64 {
    let is_certain = |cause: &str| trial.head.metric_names.kind_of(cause) != Some(ErrorKind::Timeout);
    let count = |causes: &BTreeMap<String, u64>| -> u64 {
        causes.iter().filter(|(cause, _)| is_certain(cause)).map(|(_, count)| count).sum()
    };
    let flow = trial.flow();
    let bad = flow.failed + flow.not_sent + flow.open_after;
    count(&trial.errors).max(bad) + count(&trial.connections.failed)
}

fn failed_connects(trial: &Trial) -> u64 {
    trial.connections.failed.values().sum()
}

/// Everything that went wrong, of what was offered. `None` where nothing was.
fn errors_share(trial: &Trial) -> Option<f64> {
    share_of_offered(trial, errors(trial))
}

/// A message may have several errors by cause, and its share is 1 all the same.
fn share_of_offered(trial: &Trial, count: u64) -> Option<f64> {
    let offered = trial.flow().offered + failed_connects(trial);
    (offered > 0).then(|| (count as f64 / offered as f64).min(1.0))
}

/// Whether a request was refused, cut off, answered wrongly or never.
pub(crate) fn any_failed(trial: &Trial) -> bool {
    errors(trial) > 0 || never_answered(trial) > 0
}

/// The frames of the hold, as the server counts them.
pub(crate) fn frames(trial: &Trial) -> Option<FrameFigures> {
    let drawn = trial.told(ServerCounter::Frames)?;
    let due = trial.told(ServerCounter::FramesDue);
    let seconds = trial.subject_told_ns as f64 / 1e9;
    (seconds > 0.0).then(|| FrameFigures { drawn, due, rate_per_s: drawn as f64 / seconds })
}

/// The server's ticks; where only clients tell them, theirs.
pub(crate) fn ticks(trial: &Trial) -> Option<measure::TickCounts> {
    match &trial.ticks {
        Some(ticks) => Some(ticks.counts),
        None => (trial.client_ticks.due > 0).then_some(trial.client_ticks),
    }
}

pub(crate) fn over_budget_share(trial: &Trial) -> Option<f64> {
    let busy = trial.ticks.as_ref()?.busy.as_ref().filter(|busy| !busy.is_empty())?;
    let period_ns = trial.head.tick_period_ns;
    let over: u64 = busy.buckets().filter(|&(ns, _)| ns > period_ns).map(|(_, count)| count).sum();
    (period_ns > 0).then(|| over as f64 / busy.count() as f64)
}

pub(crate) fn open_share(trial: &Trial) -> Option<f64> {
    let connections = &trial.connections;
    (connections.asked > 0).then(|| connections.open_min as f64 / connections.asked as f64)
}

/// What is judged of the books: the receivers that behave.
fn judged(trial: &Trial) -> Result<&SumOfBooks, Reading> {
    trial.books.as_ref().map(|books| &books.judged).ok_or(NO_BOOKS)
}

/// A figure of the books. Where nothing was owed it was not zero: it was not measured.
fn of_owed(trial: &Trial, figure: fn(&SumOfBooks) -> f64) -> Reading {
    match judged(trial) {
        Err(absent) => absent,
        Ok(books) if books.owed_max == 0 && books.delivered == 0 => NOTHING_OWED,
        Ok(books) => Reading::Value(figure(books)),
    }
}

/// A figure that takes the server's word.
fn told(trial: &Trial, figure: fn(&SumOfBooks) -> f64) -> Reading {
    let is_told = trial.books.as_ref().is_none_or(|books| books.drops_are_told);
    if is_told { of_owed(trial, figure) } else { DROPS_UNTOLD }
}

/// Deliveries per second of the hold, to all receivers, as the bots count them. `None` without a hold.
pub(crate) fn deliveries_per_s(trial: &Trial) -> Option<f64> {
    let delivered: u64 = trial.counts(Role::Delivered).sum();
    counted_seconds(trial).map(|seconds| delivered as f64 / seconds)
}

fn count(number: u64) -> Reading {
    Reading::Value(number as f64)
}

fn share(share: Option<f64>) -> Reading {
    share.map_or(Reading::Absent("no tick was due"), Reading::Value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn errors_are_counted_alike_here_and_on_the_page() {
        let cases = include_str!("../../../web/fixtures/errors.json");
        let cases: Vec<serde_json::Value> = serde_json::from_str(cases).unwrap();
        assert!(!cases.is_empty());
        for case in cases {
            let counts = |of: &str| serde_json::from_value(case[of].clone()).unwrap();
            let count = |of: &str| case[of].as_u64().unwrap();
            let mut trial = crate::scene::Scene::asking(10.0).build();
            let flow = Flow {
                failed: count("failed"),
                lost: count("lost"),
                not_sent: count("not_sent"),
                open_after: count("unanswered_at_stop"),
                ..Flow::default()
            };
            trial.ops = [("ask".to_owned(), flow)].into();
            (trial.errors, trial.connections.failed) = (counts("errors"), counts("connects_failed"));
            assert_eq!(errors(&trial), count("count"), "{case}");
        }
    }

    #[test]
    fn the_share_of_errors_is_of_all_messages_offered_and_none_without_any() {
        let read = |trial: &Trial| FigureDoc::named("errors.share").expect("in the table").read(trial);
        let share = |scene: Scene| read(&scene.build());
        assert_eq!(share(Scene::asking(100.0)), Reading::Value(0.0));
        assert_eq!(share(Scene::asking(100.0).rejected(5, "GET /: status 503")), Reading::Value(0.05));
        // Two errors by cause for each of the messages are no more than all of them.
        let twice = Scene::asking(10.0).rejected(10, "GET /: status 503");
        assert_eq!(share(twice.edit(|_, interval| interval.errors[0] = 10)), Reading::Value(1.0));
        let mut nothing = Scene::asking(10.0).build();
        nothing.ops.clear();
        assert_eq!(read(&nothing), NOTHING_OFFERED);
    }

    #[test]
    fn every_name_stands_in_the_method_with_its_meaning() {
        let chapter = include_str!("../../../docs/method/objectives.md");
        for figure in FIGURES {
            let row = chapter.lines().find(|line| line.starts_with(&format!("| `{}` |", figure.name)));
            let row = row.unwrap_or_else(|| panic!("{} is missing", figure.name));
            assert!(row.ends_with(&format!("| {} |", figure.meaning)), "{row}");
        }
    }

    #[test]
    fn a_misspelt_name_finds_the_one_that_was_meant() {
        for (wrong, meant) in [
            ("tick.late_share", "ticks.late_share"),
            ("late_share", "ticks.late_share"),
            ("ticks.lateshare", "ticks.late_share"),
            ("response", "response.p99"),
            ("response.p98", "response.p99"),
            ("Response.P99", "response.p99"),
            ("error", "errors"),
            ("delivery.lost", "deliveries.lost"),
            ("connections.open", "connections.open_min"),
        ] {
            assert_eq!(FigureDoc::nearest(wrong).name, meant, "{wrong}");
        }
    }
}
