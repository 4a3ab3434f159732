//! Which loads, how the bots arrive, and how long each load is held.

use crate::layers::reader::{Reader, Said, Setting, setting};
use crate::layers::subject::Found;
use crate::layers::{Flags, cells, defaults, name_of, switch, unit_of};
use crate::mistakes::{Place, Wrong, WrongRequest};
use crate::plan::{Bots, Hold, HttpModel, Ladder, Ramp, RampRule, SubjectSource, TickSource};
use crate::scenario::{LadderKeys, OneOrMore, Scenario, Text};
use crate::units::{self, http};

const RUNGS: Setting = Setting {
    flag: "--rungs",
    key: "ladder.rungs",
    example: "500,1000,2000",
    example_in_file: "[500, 1000, 2000]",
};
const RATE: Setting =
    Setting { flag: "--rate", key: "ladder.rate", example: "1000,2000", example_in_file: "[1000, 2000]" };
const REQUESTERS: Setting = setting("--requesters", "ladder.requesters", "1..20");
const HOLD: Setting = setting("--hold", "ladder.hold", "60s");
const RAMP: Setting = setting("--ramp", "ladder.ramp", "2ms");
const SETTLE: Setting = setting("--settle", "ladder.settle", "2s");
const RESTART: Setting = setting("--restart-per-rung", "ladder.restart_per_rung", "true");

/// What a load counts, as its author said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `rungs`: games, clients or requesters, whatever the bots are
    Rungs,
    /// requests per second
    Rate,
    /// requesters who wait for their answers
    Requesters,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Rungs => "rungs",
            Kind::Rate => "rate",
            Kind::Requesters => "requesters",
        }
    }
}

/// The loads as they were said.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    pub kind: Kind,
    /// on the command line; what the file says for another model was not meant for this one
    pub in_flags: bool,
    said: Vec<Said>,
    /// for what is missing in it
    whole: Said,
}

/// The one kind of load that was said; the flags' goes before the file's. A second kind is refused.
pub(super) fn loads(reader: &mut Reader, flags: &Flags, file: &Scenario) -> Option<Loads> {
    let listed = |setting: Setting, text: &String| {
        let said = if text.trim().is_empty() {
            Vec::new()
        } else {
            text.split(',').map(|one| reader.in_flag(setting, one)).collect()
        };
        (said, reader.in_flag(setting, ""))
    };
    let kinds = [
        (Kind::Rungs, RUNGS, &flags.rungs),
        (Kind::Rate, RATE, &flags.rate),
        (Kind::Requesters, REQUESTERS, &flags.requesters),
    ];
    let of_flags = kinds.into_iter().filter_map(|(kind, setting, text)| {
        let (said, whole) = listed(setting, text.as_ref()?);
        Some(Loads { kind, in_flags: true, said, whole })
    });
    let empty = LadderKeys::default();
    let keys = file.ladder.as_ref().unwrap_or(&empty);
    let texts = |texts: &Option<OneOrMore>| texts.as_ref().map(|texts| texts.0.clone());
    let written = [
        (Kind::Rungs, RUNGS, keys.rungs.clone()),
        (Kind::Rate, RATE, texts(&keys.rate)),
        (Kind::Requesters, REQUESTERS, texts(&keys.requesters)),
    ];
    let of_file = written.into_iter().filter_map(|(kind, setting, texts): (_, _, Option<Vec<Text>>)| {
        let said = texts?.iter().map(|text| reader.in_file(setting, text)).collect();
        Some(Loads { kind, in_flags: false, said, whole: reader.in_whole_file(setting) })
    });
    let (of_flags, of_file): (Vec<Loads>, Vec<Loads>) = (of_flags.collect(), of_file.collect());
    let mut all = if of_flags.is_empty() { of_file } else { of_flags }.into_iter();
    let first = all.next()?;
    if let Some(second) = all.next() {
        let place = second.said.first().unwrap_or(&second.whole).place.clone();
        let wrong = WrongRequest::TwoLoads { first: first.kind.name(), second: second.kind.name() };
        reader.refuse_plainly(place, wrong.into());
    }
    Some(first)
}

/// The ladder of the plan.
pub(super) fn read(
    reader: &mut Reader,
    flags: &Flags,
    file: &Scenario,
    bots: &Bots,
    loads: Option<&Loads>,
    ticks: &TickSource,
    found: Option<&Found>,
) -> Ladder {
    let empty = LadderKeys::default();
    let keys = file.ladder.as_ref().unwrap_or(&empty);
    let is_poll_loop = found.is_some_and(Found::is_poll_loop);
    let (rungs, is_open_ended) = rungs(reader, loads, bots, is_poll_loop);
    let ramp = reader.value(RAMP, flags.ramp.as_deref(), keys.ramp.as_ref(), str::parse::<RampRule>);
    let settle = reader.value(SETTLE, flags.settle.as_deref(), keys.settle.as_ref(), units::duration_ns);
    let hold_said = reader.said(HOLD, flags.hold.as_deref(), keys.hold.as_ref());
    let hold = hold_said.as_ref().and_then(|said| reader.read(said, str::parse::<Hold>));
    if let (Some(said), Some(hold)) = (&hold_said, hold) {
        match hold {
            Hold::Ticks(_) if *ticks == TickSource::None => {
                reader.refuse(said, Wrong::NoTicks { what: said.text.clone() });
            }
            Hold::Games(_) if !matches!(bots, Bots::Arena(_)) => {
                reader.refuse(said, Wrong::NoGames(said.text.clone()));
            }
            _ => {}
        }
    }
    let restart_per_rung = switch(reader, RESTART, flags.restart_per_rung, keys.restart_per_rung.as_ref());
    let runs_already = found.is_some_and(|found| matches!(found.source, SubjectSource::Running { .. }));
    if restart_per_rung && runs_already {
        let place = match (flags.restart_per_rung, &keys.restart_per_rung) {
            (None, Some(text)) => reader.in_file(RESTART, text).place,
            _ => Place::Flag(RESTART.flag),
        };
        reader.refuse_plainly(place, Wrong::NothingToRestart);
    }
    let cells = cells::read(reader, flags, keys, found, bots);
    let (settle_ns, hold_ns) = if is_poll_loop {
        (defaults::POLL_LOOP_SETTLE_NS, defaults::POLL_LOOP_HOLD_NS)
    } else {
        (defaults::SETTLE_NS, defaults::HOLD_NS)
    };
    Ladder {
        rungs,
        load_unit: unit_of(bots).into(),
        ramp: ramp.unwrap_or(RampRule::Pace(match bots {
            Bots::Arena(_) | Bots::Echo(_) => Ramp::Every(defaults::RAMP_NS),
            Bots::Http(_) => Ramp::AtOnce,
            Bots::Chat(_) => Ramp::PerSecond(defaults::CHAT_RAMP_PER_S),
        })),
        settle_ns: settle.unwrap_or(settle_ns),
        hold: hold.unwrap_or(Hold::Time(hold_ns)),
        restart_per_rung,
        cells,
        is_open_ended,
    }
}

/// The loads in ascending order, and whether they go on beyond the last.
fn rungs(reader: &mut Reader, loads: Option<&Loads>, bots: &Bots, is_poll_loop: bool) -> (Vec<f64>, bool) {
    let Some(loads) = loads else { return (default_rungs(bots, is_poll_loop), false) };
    if loads.kind != Kind::Rungs && !matches!(bots, Bots::Http(_)) {
        let place = loads.said.first().unwrap_or(&loads.whole).place.clone();
        let setting = loads.kind.name();
        reader.refuse_plainly(place, Wrong::NotOfTheseBots { setting, whose: "http", bots: name_of(bots) });
        return (default_rungs(bots, is_poll_loop), false);
    }
    if loads.said.is_empty() {
        reader.refuse(&loads.whole, units::UnitError::NoRungs.into());
    }
    match bots {
        Bots::Http(http) => match http.model {
            HttpModel::Open { .. } => (rates(reader, loads), false),
            HttpModel::Closed { .. } => requesters(reader, loads),
        },
        Bots::Arena(_) | Bots::Echo(_) | Bots::Chat(_) => (whole_loads(reader, loads, bots), false),
    }
}

fn default_rungs(bots: &Bots, is_poll_loop: bool) -> Vec<f64> {
    match bots {
        Bots::Arena(_) | Bots::Echo(_) => defaults::RUNGS.to_vec(),
        Bots::Chat(_) => defaults::CHAT_RUNGS.to_vec(),
        Bots::Http(_) if is_poll_loop => (1..=defaults::POLL_LOOP_REQUESTERS).map(f64::from).collect(),
        Bots::Http(_) => defaults::REQUESTERS.to_vec(),
    }
}

fn whole_loads(reader: &mut Reader, loads: &Loads, bots: &Bots) -> Vec<f64> {
    let mut rungs = Vec::new();
    for one in &loads.said {
        let Some(load) = reader.read(one, units::rung_load) else { continue };
        if load.fract() != 0.0 {
            reader.refuse(one, Wrong::NotWholeUnits { load, unit: unit_of(bots) });
        } else {
            add(reader, one, load, &mut rungs);
        }
    }
    rungs.sort_by(f64::total_cmp);
    rungs
}

/// Requests per second; half a request per second is one every two seconds.
fn rates(reader: &mut Reader, loads: &Loads) -> Vec<f64> {
    let mut rungs = Vec::new();
    for one in &loads.said {
        if let Some(load) = reader.read(one, http::rate) {
            add(reader, one, load, &mut rungs);
        }
    }
    rungs.sort_by(f64::total_cmp);
    rungs
}

/// Counts and ranges of counts, of which the last may be open.
fn requesters(reader: &mut Reader, loads: &Loads) -> (Vec<f64>, bool) {
    let (mut rungs, mut open) = (Vec::new(), None);
    for one in &loads.said {
        let Some(counts) = reader.read(one, http::counts) else { continue };
        if counts.is_open {
            open = open.or(Some((one, counts.first as f64)));
        }
        for count in counts.first..=counts.last {
            if !add(reader, one, count as f64, &mut rungs) {
                break;
            }
        }
    }
    rungs.sort_by(f64::total_cmp);
    if let Some((said, from)) = open
        && rungs.last().is_some_and(|last| *last > from)
    {
        reader.refuse_plainly(said.place.clone(), WrongRequest::NotTheLast.into());
    }
    if rungs.len() as u64 > http::RUNGS_MAX {
        let wrong = WrongRequest::TooManyRungs(rungs.len() as u64);
        reader.refuse(&loads.whole, wrong.into());
    }
    (rungs, open.is_some())
}

/// False when the load was refused, because it is there already.
fn add(reader: &mut Reader, said: &Said, load: f64, rungs: &mut Vec<f64>) -> bool {
    let is_new = !rungs.contains(&load);
    if is_new {
        rungs.push(load);
    } else {
        reader.refuse(said, units::UnitError::Duplicate(load).into());
    }
    is_new
}
