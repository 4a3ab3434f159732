//! Which loads, how the bots arrive, and how long each load is held.

use ladder::{LONGER_MOST, LoadUnit, Objective, Repeats};

use crate::built_in::{BuiltIn, SETTLE_AND_HOLD_NS};
use crate::decidable;
use crate::layers::bots::refuse_if_strange;
use crate::layers::poll_loop_sweep;
use crate::layers::reader::{RawValue, Reader};
use crate::layers::subject::ResolvedTarget;
use crate::mistakes::{ConfigError, RequestConfigError};
use crate::plan::{HoldLength, Ladder, RampRule, SubjectSource, TickSource};
use crate::settings::{Kind, Setting, Shape};
use crate::units::{self, http};
use crate::workloads::{BotSettings, LoadKind};

const HOW: Setting = Setting::of("How", &[]);

settings! { pub(super) SETTINGS;
    LADDER = HOW
        .key("ladder", Shape::Keys("LadderKeys", "Which loads, and how each is held."), "{ rungs: [500, 1000, 2000], hold: 60s }")
        .about("Which loads, and how each is held.");
    RUNGS = Setting::of("What", &[]).key("ladder.rungs", Shape::List(&Shape::Number), "[500, 1000, 2000]")
        .about("The loads to climb, in games, clients, requesters or operations in flight.")
        .flag("--rungs", "LIST").help("Loads to hold, e.g. 500,1000,2k").kind(Kind::Hyphenated)
        .flag_example("500,1000,2000");
    RATE = Setting::of("What", &["http", "leaderboard", "protobuf", "grid"])
        .key("ladder.rate", Shape::OneOrMore, "[1000, 2000]")
        .about("http, grid: the loads in requests or operations per second, scheduled independently of responses (open loop).")
        .flag("--rate", "LIST")
        .help("HTTP, grid: loads in requests or operations per second, scheduled independently of responses (open loop), \
            e.g. 1000,2000. The rate climbs to each load through the first half of the settle time").kind(Kind::Hyphenated)
        .flag_example("1000,2000");
    UPDATES_RATE = Setting::of("What", &["leaderboard"]).key("ladder.updates_rate", Shape::OneOrMore, "[100000, 200000]")
        .about("leaderboard: the loads in updates per second, whatever the size of a bulk.")
        .flag("--updates-rate", "LIST")
        .help("Leaderboard: loads in updates per second, whatever the size of a bulk, e.g. 200000").kind(Kind::Hyphenated)
        .flag_example("100000,200000");
    REQUESTERS = Setting::of("What", &["http", "leaderboard", "protobuf"])
        .key("ladder.requesters", Shape::OneOrMore, "1..20")
        .about("http: the loads in requesters, each of whom waits for its answer; a list, a range (1..20), or an open end \
            (1..).")
        .flag("--requesters", "LIST")
        .help("HTTP: loads in requesters, each of whom waits for its answer: 1,5,10 or 1..20; 1.. goes on until a request fails")
        .kind(Kind::Hyphenated);
    HOLD = HOW.key("ladder.hold", Shape::Text, "60s").about("How long to hold each load: a time, ticks or games.")
        .flag("--hold", "ENOUGH").help("How long to hold each load: 60s, 2Mticks or 1000games");
    RAMP = HOW.key("ladder.ramp", Shape::Text, "2ms")
        .about("How the bots arrive: one every so often (2ms, or 2ms/each), a rate (5000/s), all of a rung within a time \
            (60s/all), or 0s for all at once.")
        .flag("--ramp", "PACE")
        .help("How the bots arrive, or a rate's connections open: 2ms (one every 2 ms; 2ms/each is the same), 5000/s, \
            60s/all (all of a rung within 60 s) or 0s (all at once)");
    SETTLE = HOW.key("ladder.settle", Shape::Text, "2s").about("Time between the ramp and the hold.")
        .flag("--settle", "TIME").help("Between the ramp and the hold");
    RESTART = Setting::of("Subject", &[]).key("ladder.restart_per_rung", Shape::Switch, "true")
        .about("A fresh server for each rung.")
        .switch(Kind::Switch, "--restart-per-rung").help("A fresh subject for each rung");
}

/// The loads as they were said.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    /// what a load counts: `RUNGS` (games, clients or requesters, as the bots are), `RATE`, `UPDATES_RATE` or `REQUESTERS`
    pub setting: &'static Setting,
    /// on the command line; what the file says for another model was not meant for this one
    pub in_flags: bool,
    said: Vec<RawValue>,
    /// for what is missing in it
    whole: RawValue,
}

impl Loads {
    /// Whether a load is requests per second, planned by a clock.
    pub fn is_rate(&self) -> bool {
        [RATE.key, UPDATES_RATE.key].contains(&self.setting.key)
    }

    /// Whether a load is updates per second.
    pub fn is_updates(&self) -> bool {
        self.setting.key == UPDATES_RATE.key
    }
}

/// The single kind of load that was given; the flags' takes precedence over the file's. A second kind is refused.
pub(super) fn loads(reader: &mut Reader) -> Option<Loads> {
    let kinds = [&RUNGS, &RATE, &UPDATES_RATE, &REQUESTERS];
    let of_flags = kinds.into_iter().filter_map(|setting| {
        let mut said = reader.in_flags(setting)?;
        if let [only] = said.as_slice()
            && only.text.trim().is_empty()
        {
            said.clear();
        }
        Some(Loads { setting, in_flags: true, said, whole: reader.in_flag(setting, "") })
    });
    let of_file = kinds.into_iter().filter_map(|setting| {
        let said = reader.in_file(setting)?;
        Some(Loads { setting, in_flags: false, said, whole: reader.in_whole_file(setting) })
    });
    let (of_flags, of_file): (Vec<Loads>, Vec<Loads>) = (of_flags.collect(), of_file.collect());
    let mut all = if of_flags.is_empty() { of_file } else { of_flags }.into_iter();
    let first = all.next()?;
    if let Some(second) = all.next() {
        let place = second.said.first().unwrap_or(&second.whole).place.clone();
        let wrong =
            RequestConfigError::TwoLoads { first: first.setting.name(), second: second.setting.name() };
        reader.refuse_plainly(place, wrong);
    }
    Some(first)
}

/// The ladder of the plan.
pub(super) fn read(
    reader: &mut Reader,
    bots: &BotSettings,
    loads: Option<&Loads>,
    ticks: &TickSource,
    found: Option<&ResolvedTarget>,
) -> Ladder {
    let built_in = found.and_then(ResolvedTarget::built_in);
    let (rungs, is_open_ended) = rungs(reader, loads, bots, built_in);
    let ramp = reader.value(&RAMP, str::parse::<RampRule>);
    if let (Some(said), LoadUnit::Sessions) = (reader.said(&RAMP), bots.load_unit()) {
        reader.refuse_plainly(said.place, ConfigError::RampOfSessions);
    }
    let settle = reader.value(&SETTLE, units::duration_ns);
    let hold = reader.value(&HOLD, str::parse::<HoldLength>);
    if let (Some(said), Some(hold)) = (&reader.said(&HOLD), hold) {
        match hold {
            HoldLength::Ticks(_) if *ticks == TickSource::None => {
                reader.refuse(said, ConfigError::NoTicks { what: said.text.clone() });
            }
            HoldLength::Games(_) if !bots.has_games() => {
                reader.refuse(said, ConfigError::NoGames(said.text.clone()));
            }
            _ => {}
        }
    }
    let restart_per_rung = reader.value(&RESTART, units::boolean).unwrap_or(false);
    let runs_already = found.is_some_and(|found| matches!(found.source, SubjectSource::Running { .. }));
    if let (Some(said), true) = (reader.said(&RESTART), restart_per_rung && runs_already) {
        reader.refuse_plainly(said.place, ConfigError::NothingToRestart);
    }
    let cells = poll_loop_sweep::read(reader, found, bots);
    let (settle_ns, hold_ns) = built_in.map_or(SETTLE_AND_HOLD_NS, |server| server.settle_and_hold_ns);
    Ladder {
        rungs,
        load_unit: bots.load_unit(),
        ramp: ramp.unwrap_or(RampRule::Pace(bots.default_ramp())),
        settle_ns: settle.unwrap_or(settle_ns),
        hold: hold.unwrap_or(HoldLength::Time(hold_ns)),
        restart_per_rung,
        cells,
        is_open_ended,
        stop: None,
        from_above: false,
        repeat: Repeats::default(),
        overload: Vec::new(),
        recovery_ns: None,
        lengthened: Vec::new(),
        lengthens: false,
        search: None,
    }
}

/// If the hold was not fixed, the loads for which it is too short are held as long as their percentiles need, up to a
/// few times the default hold. A search has its own lengths, and a subject that is told to shut down ends its hold.
pub(super) fn lengthen(reader: &Reader, ladder: &mut Ladder, bots: &BotSettings, objectives: &[Objective]) {
    let HoldLength::Time(hold_ns) = ladder.hold else { return };
    ladder.lengthens = !hold_is_said(reader) && ladder.search.is_none() && ladder.stop.is_none();
    if ladder.lengthens {
        let most_ns = hold_ns.saturating_mul(LONGER_MOST);
        let needs = decidable::needs(ladder, bots, objectives).into_iter();
        ladder.lengthened =
            needs.filter(|one| one.hold_ns <= most_ns).map(|one| (one.load, one.hold_ns)).collect();
    }
}

/// Whether the hold is its author's and not the usual one.
pub(super) fn hold_is_said(reader: &Reader) -> bool {
    reader.said(&HOLD).is_some()
}

/// The loads in ascending order, and whether they go on beyond the last.
fn rungs(
    reader: &mut Reader,
    loads: Option<&Loads>,
    bots: &BotSettings,
    built_in: Option<&BuiltIn>,
) -> (Vec<f64>, bool) {
    let Some(loads) = loads else { return (default_rungs(bots, built_in), false) };
    let place = loads.said.first().unwrap_or(&loads.whole).place.clone();
    if refuse_if_strange(reader, loads.setting, place, bots) {
        return (default_rungs(bots, built_in), false);
    }
    if loads.said.is_empty() {
        reader.refuse(&loads.whole, units::UnitError::NoRungs.into());
    }
    match bots.loads() {
        LoadKind::Whole => (whole_loads(reader, loads, bots), false),
        LoadKind::Rate => (rates(reader, loads), false),
        LoadKind::Counts => requesters(reader, loads),
    }
}

fn default_rungs(bots: &BotSettings, built_in: Option<&BuiltIn>) -> Vec<f64> {
    match built_in.and_then(|server| server.loads.clone()) {
        Some(loads) => loads.map(f64::from).collect(),
        None => bots.default_loads().to_vec(),
    }
}

fn whole_loads(reader: &mut Reader, loads: &Loads, bots: &BotSettings) -> Vec<f64> {
    let mut rungs = Vec::new();
    for one in &loads.said {
        let Some(load) = reader.read(one, units::rung_load) else { continue };
        if load.fract() != 0.0 {
            reader.refuse(one, ConfigError::NotWholeUnits { load, unit: bots.load_unit() });
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

/// Counts and ranges of counts, the last of which may be open.
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
        reader.refuse_plainly(said.place.clone(), RequestConfigError::NotTheLast);
    }
    if rungs.len() as u64 > http::RUNGS_MAX {
        let wrong = RequestConfigError::TooManyRungs(rungs.len() as u64);
        reader.refuse(&loads.whole, wrong.into());
    }
    (rungs, open.is_some())
}

/// False when the load was refused, because it is there already.
fn add(reader: &mut Reader, said: &RawValue, load: f64, rungs: &mut Vec<f64>) -> bool {
    let is_new = !rungs.contains(&load);
    if is_new {
        rungs.push(load);
    } else {
        reader.refuse(said, units::UnitError::Duplicate(load).into());
    }
    is_new
}
