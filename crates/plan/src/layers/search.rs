//! In which order and how often each load is held, or that the capacity is searched for, and the goals of a search.

use ladder::wording::{show_number, show_share};
use ladder::{Goal, Objective, Repeats, SearchSchedule};

use crate::layers::ladder::Loads;
use crate::layers::objectives::GOALS;
use crate::layers::reader::Reader;
use crate::mistakes::{FromAboveError, OverloadError, RecoveryError, SearchError};
use crate::plan::{HoldLength, Ladder, Plan};
use crate::ramp::{length_ns, show_length};
use crate::settings::{Kind, Setting, Shape};
use crate::units::{self, Duration};
use crate::workloads::{BotSettings, LoadKind};

const HOW: Setting = Setting::of("How", &[]).of_climbs();

/// The meaning of a word after `--search`.
struct Preset {
    name: &'static str,
    /// full-length trials that decide
    trials: u64,
    width: f64,
}

const PRESETS: [Preset; 3] = [
    Preset { name: "quick", trials: 1, width: 0.1 },
    Preset { name: "standard", trials: 3, width: 0.05 },
    Preset { name: "strict", trials: 5, width: 0.02 },
];
const PRESET_NAMES: &[&str] = &[PRESETS[0].name, PRESETS[1].name, PRESETS[2].name];

settings! { pub(super) SETTINGS;
    FROM_ABOVE = HOW.key("ladder.from_above", Shape::Switch, "true")
        .about("After the highest load the others once more, from the highest down: what a load gives after a higher one.")
        .switch(Kind::Switch, "--from-above")
        .help("After the highest load hold the others once more, from the highest down, and say which of them gives \
            something else after a higher one than before it");
    REPEAT = HOW.key("ladder.repeat", Shape::NumberOrText, "5")
        .about("How often each load is held: a number, or until-sure.")
        .flag("--repeat", "N")
        .help("Hold each load so many times, after the first round in random order; until-sure: hold the loads on both \
            sides of the capacity again until it is certain to 95 %").flag_example("5");
    OVERLOAD = HOW.key("ladder.overload", Shape::OneOrMore, "[1.2, 1.5, 2]")
        .about("Multiples of the largest load that held, held once each at the end: how many good answers the server still \
            gives.")
        .flag("--overload", "FACTOR,…")
        .help("When a load failed, hold these multiples of the largest that held too, and say how many good answers per \
            second the server still gives there (goodput)").flag_example("1.2,1.5,2");
    RECOVERY = HOW.key("ladder.recovery_within", Shape::Text, "30s")
        .about("After a load of ladder.overload four fifths of the capacity go on until the server has recovered, for so \
            long at most.")
        .flag("--recovery-within", "TIME")
        .help("After each hold of --overload go on with four fifths of the capacity until the objectives are met again, \
            for so long at most, and say after how many seconds they are (requests only)").default("30s");
    SEARCH = HOW.key("ladder.search", Shape::Text, "standard")
        .about("Search for the capacity (RFC 9971) instead of climbing a list: quick, standard or strict.")
        .flag("--search", "PRESET")
        .help("Search for the capacity by RFC 9971 instead of climbing a list. Loads that are given (--rungs, --rate …) \
            bound it: one is the start, of several the smallest and the largest are the range. Alone it means standard")
        .kind(Kind::Optional(PRESETS[1].name)).one_of(PRESET_NAMES);
    WIDTH = HOW.key("ladder.search_width", Shape::NumberOrText, "5%")
        .about("How far apart the bounds of a search may be, relative to the upper one.")
        .flag("--search-width", "SHARE")
        .help("How far apart the two bounds may be, relative to the upper one [default: quick 10%, standard 5%, strict 2%]");
    DECIDES = HOW.key("ladder.search_trials", Shape::Whole("uint32"), "3")
        .about("How many full-length trials decide whether a load holds.")
        .flag("--search-trials", "N")
        .help("How many full-length trials (--hold) decide whether a load holds [default: quick 1, standard 3, strict 5]");
    EXCEED = HOW.key("ladder.search_exceed", Shape::NumberOrText, "50%")
        .about("Share of a load's full-length trials that may miss the objectives.")
        .flag("--search-exceed", "SHARE").help("Share of a load's full-length trials that may miss the objectives")
        .default("50%");
    BUDGET = HOW.key("ladder.budget", Shape::Text, "20m").about("How long a search may take; the width follows from it.")
        .flag("--budget", "TIME")
        .help("How long the search may take: the width is what that time buys, and is said before the first trial");
}

/// If the hold is not given, a trial is at least this long: a search is about the edge, where seconds differ.
const HOLD_LEAST_NS: u64 = 30_000_000_000;
/// Without a range a search starts at the smallest default load and doubles this often at most.
const DOUBLINGS: f64 = 10.0;
/// … and goes neither where a full-length trial takes longer than this for the samples that its percentiles need, s,
const TRIAL_MOST_S: f64 = 600.0;
/// … nor where the clients take longer than this to arrive.
const RAMP_MOST_NS: u64 = 300_000_000_000;
/// A recovery takes five seconds in a row to be seen; waiting an hour for it makes no sense, ns.
const RECOVERY_LEAST_NS: u64 = 5_000_000_000;
const RECOVERY_MOST_NS: u64 = 3_600_000_000_000;
/// Widths that a budget may buy, best first.
const WIDTHS: [f64; 9] = [0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3];
/// Time for holding whole seconds, ending a trial and writing the store, ns.
const AROUND_NS: u64 = 2_500_000_000;

/// Reads the settings for repeats and a search; turns the ladder into a search.
pub(super) fn read(
    reader: &mut Reader,
    ladder: &mut Ladder,
    loads: Option<&Loads>,
    bots: &BotSettings,
    (objectives, goals): (&[Objective], Vec<Vec<Objective>>),
    is_ours: bool,
) {
    let repeat = reader.value(&REPEAT, |text| match text.trim() {
        "until-sure" => Ok(Repeats::UntilSure),
        number => units::whole_within(number, 1, 1_000).map(|times| Repeats::Times(times as u32)),
    });
    read_overload(reader, ladder);
    read_recovery(reader, ladder, bots);
    from_above(reader, ladder);
    let trials = reader.value(&DECIDES, |text| units::whole_within(text, 1, 100));
    let width = reader.value(&WIDTH, |text| share_within(text, 0.001, 0.5));
    let exceed = reader.value(&EXCEED, |text| share_within(text, 0.0, 0.9));
    let budget = reader.value(&BUDGET, units::duration_ns);
    let Some(said) = reader.said(&SEARCH) else {
        for one in [&WIDTH, &DECIDES, &EXCEED, &BUDGET, &GOALS] {
            if let Some(said) = reader.said(one) {
                reader.refuse_plainly(said.place, SearchError::NoSearch);
            }
        }
        ladder.repeat = repeat.unwrap_or_default();
        return;
    };
    let name = said.text.trim();
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
        reader.refuse_plainly(said.place, SearchError::NoPreset(name.to_owned()));
        return;
    };
    // An axis that is not given has a default range to sweep; a search uses its first value.
    if !super::poll_loop_sweep::are_said(reader) {
        ladder.cells.truncate(1);
    }
    let wrong = match ladder.hold {
        _ if repeat.is_some() => Some(SearchError::Repeats),
        _ if ladder.stop.is_some() => Some(SearchError::Stops),
        _ if ladder.cells.len() > 1 => Some(SearchError::Sweep(ladder.cells.len())),
        _ if ladder.is_open_ended => Some(SearchError::OpenEnd),
        HoldLength::Ticks(_) | HoldLength::Games(_) => Some(SearchError::CountedHold),
        HoldLength::Time(_) if width.is_some() && budget.is_some() => Some(SearchError::WidthAndBudget),
        HoldLength::Time(_) => None,
    };
    if let Some(wrong) = wrong {
        reader.refuse_plainly(said.place, wrong);
        return;
    }
    if let (HoldLength::Time(hold_ns), false) = (ladder.hold, super::ladder::hold_is_said(reader)) {
        ladder.hold = HoldLength::Time(hold_ns.max(HOLD_LEAST_NS));
    }
    let HoldLength::Time(hold_ns) = ladder.hold else { return };
    let trials = trials.unwrap_or(preset.trials);
    let goal = Goal {
        final_trial_ns: hold_ns,
        duration_sum_ns: hold_ns.saturating_mul(trials),
        exceed_ratio: exceed.unwrap_or(0.5),
        width: width.unwrap_or(preset.width),
    };
    let restarts_subject = is_ours;
    let all: Vec<&Objective> = objectives.iter().chain(goals.iter().flatten()).collect();
    let within = within(ladder, loads.is_some(), bots, &all, goal);
    let mut search = SearchSchedule { restarts_subject, goals, ..within };
    if let (Some(budget_ns), Some(said)) = (budget, reader.said(&BUDGET)) {
        match bought(&search, budget_ns, |load| around_ns(ladder, bots, load)) {
            Ok(width) => search.goal.width = width,
            Err(needs_ns) => {
                let (width, needs) = (WIDTHS[WIDTHS.len() - 1], show_length(needs_ns));
                let budget = Duration(budget_ns).to_string();
                reader.refuse_plainly(said.place, SearchError::SmallBudget { budget, width, needs });
            }
        }
    }
    ladder.rungs = vec![search.start];
    ladder.search = Some(search);
}

/// The multiples of the capacity, where the climb is one that can hold them.
fn read_overload(reader: &mut Reader, ladder: &mut Ladder) {
    let Some(said) = reader.all(&OVERLOAD) else { return };
    let Some(place) = said.first().map(|one| one.place.clone()) else { return };
    let is_search = reader.said(&SEARCH).is_some();
    if is_search || ladder.stop.is_some() || ladder.is_open_ended || ladder.cells.len() > 1 {
        reader.refuse_plainly(place, OverloadError);
        return;
    }
    let mut factors = reader.read_all(&said, |text| units::number_within(text, 1.01, 10.0));
    factors.sort_by(f64::total_cmp);
    factors.dedup();
    ladder.overload = factors;
}

/// How long a server may take to recover, where the load of these bots can go down.
fn read_recovery(reader: &mut Reader, ladder: &mut Ladder, bots: &BotSettings) {
    let within = |text: &str| units::duration_ns_within(text, RECOVERY_LEAST_NS, RECOVERY_MOST_NS);
    if let Some(said) = reader.said(&RECOVERY) {
        let wrong = match (reader.all(&OVERLOAD), bots.can_lower_load()) {
            (None, _) => Some(RecoveryError::NoOverload),
            (_, false) => Some(RecoveryError::NotOfTheseBots(bots.name())),
            _ => None,
        };
        if let Some(wrong) = wrong {
            reader.refuse_plainly(said.place, wrong);
            return;
        }
    }
    let within_ns = reader.value_or_default(&RECOVERY, within);
    let recovers = !ladder.overload.is_empty() && bots.can_lower_load();
    ladder.recovery_ns = recovers.then_some(within_ns);
}

/// Whether the loads are held downwards too.
fn from_above(reader: &mut Reader, ladder: &mut Ladder) {
    ladder.from_above = reader.value(&FROM_ABOVE, units::boolean).unwrap_or(false);
    let Some(said) = reader.said(&FROM_ABOVE).filter(|_| ladder.from_above) else { return };
    let wrong = if reader.said(&SEARCH).is_some() {
        FromAboveError::Search
    } else if ladder.restart_per_rung {
        FromAboveError::Restarts
    } else if ladder.stop.is_some() {
        FromAboveError::Stops
    } else if ladder.rungs.len() < 2 && !ladder.is_open_ended {
        FromAboveError::OneLoad
    } else {
        return;
    };
    reader.refuse_plainly(said.place, wrong);
}

fn share_within(text: &str, least: f64, most: f64) -> Result<f64, units::UnitError> {
    let share = units::share(text)?;
    if (least..=most).contains(&share) {
        Ok(share)
    } else {
        units::number_within(&share.to_string(), least, most)
    }
}

/// The search between the loads that were given, or from the smallest usual one.
fn within(
    ladder: &Ladder,
    is_said: bool,
    bots: &BotSettings,
    objectives: &[&Objective],
    goal: Goal,
) -> SearchSchedule {
    let is_whole = bots.loads() != LoadKind::Rate;
    let (first, last) = (ladder.rungs[0], ladder.rungs[ladder.rungs.len() - 1]);
    let has_range = is_said && last > first;
    let samples = objectives.iter().filter_map(|one| one.samples_of_responses()).max();
    let rate_per_load = bots.intended_per_s(first).map_or(0.0, |per_s| per_s / first);
    let enough = match samples {
        Some(samples) if rate_per_load > 0.0 => (samples as f64 / (TRIAL_MOST_S * rate_per_load)).ceil(),
        _ => 0.0,
    };
    let smallest = if is_whole { 1.0 } else { (first / DOUBLINGS.exp2()).min(1.0) };
    let least = smallest.max(enough).min(first);
    let ramp_ns = |load: f64| length_ns(ladder.ramp.of(bots.units(load)), bots.units(load));
    let doublings = (0..=DOUBLINGS as u32).rev().map(|times| first * f64::from(times).exp2());
    let most = doublings.into_iter().find(|most| ramp_ns(*most) <= RAMP_MOST_NS).unwrap_or(first);
    SearchSchedule {
        start: first,
        least: if has_range { first } else { least },
        most: if has_range { last } else { most },
        is_whole,
        goal,
        samples: samples.map_or(0.0, |samples| samples as f64),
        rate_per_load,
        restarts_subject: true,
        cell: (!ladder.cells.is_empty()).then_some(0),
        goals: Vec::new(),
    }
}

/// The best width that a search reaches within a time, ns. Errors: what the widest needs.
fn bought(search: &SearchSchedule, budget_ns: u64, around_ns: impl Fn(f64) -> u64) -> Result<f64, u64> {
    let needs = |width: f64| {
        let goal = Goal { width, ..search.goal };
        SearchSchedule { goal, ..search.clone() }.forecast(&around_ns).1
    };
    let width = WIDTHS.into_iter().find(|width| needs(*width) <= budget_ns);
    width.ok_or_else(|| needs(WIDTHS[WIDTHS.len() - 1]))
}

/// What a search will do and how long that takes, to be shown before it; `None` if none was requested.
pub fn search_sentence(plan: &Plan) -> Option<String> {
    let search = plan.ladder.search.as_ref()?;
    let (least_ns, most_ns) = search.forecast(|load| around_ns(&plan.ladder, &plan.bots, load));
    let trials = search.goal.duration_sum_ns / search.goal.final_trial_ns.max(1);
    let full_ns = search.full_ns(search.start);
    let goals = match search.goals.len() {
        0 => String::new(),
        further => format!(" for each of {} goals", further + 1),
    };
    let mut sentence = format!(
        "search (RFC 9971): between {} and {} {}, bounds at most {} apart{goals}, decided by {trials} {} of {}; it takes {} to \
         {} where nothing disturbs it",
        show_number(search.least),
        show_number(search.most),
        plan.ladder.load_unit,
        show_share(search.goal.width),
        if trials == 1 { "trial" } else { "trials" },
        show_length(search.goal.final_trial_ns),
        show_length(least_ns),
        show_length(most_ns),
    );
    if full_ns > search.goal.final_trial_ns {
        sentence += &format!(
            "; the percentiles need about {} replies to be met, which takes {} at {} {}",
            show_number(search.samples),
            show_length(full_ns),
            show_number(search.start),
            plan.ladder.load_unit
        );
    }
    Some(sentence)
}

/// What a trial of a load takes besides its hold, ns.
pub fn around_ns(ladder: &Ladder, bots: &BotSettings, load: f64) -> u64 {
    let units = bots.units(load);
    length_ns(ladder.ramp.of(units), units) + ladder.settle_ns + AROUND_NS
}
