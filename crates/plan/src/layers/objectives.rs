//! What a rung must meet, and objectives that this climb could never measure.

use ladder::{Allowed, Gate, GateError, Objective, ObjectiveError, Own};

use crate::layers::reader::Reader;
use crate::layers::stop;
use crate::layers::subject::ResolvedTarget;
use crate::mistakes::{ConfigError, GatePlaceError, Place, SearchError};
use crate::network::Networks;
use crate::plan::{Ladder, SubjectSource, TickSource};
use crate::settings::{Kind, Setting, Shape};
use crate::vocabulary;
use crate::workloads::{BotSettings, NO_ERRORS};

settings! { pub(super) SETTINGS;
    OBJECTIVES = Setting::of("Judged by", &[]).key("objectives", Shape::List(&Shape::Text), "[ticks.late_share < 25%]")
        .about("What a rung must meet; the built-in objectives of the subject otherwise.")
        .flag("--objective", "EXPR").help("A condition that every rung must meet; see below").kind(Kind::Repeated)
        .flag_example("ticks.late_share < 25%");
    ALLOW = Setting::of("Judged by", &[]).key("allow", Shape::List(&Shape::Text), "[duplicates]")
        .about("What the server may do although it fails a rung otherwise, whatever the objectives are.")
        .flag("--allow", "KIND")
        .help("Let the server do what fails a rung otherwise, whatever the objectives are; repeatable")
        .one_of(&Allowed::NAMES).kind(Kind::Repeated).flag_example("duplicates");
    pub(super) GOALS = Setting::of("Judged by", &[]).of_climbs()
        .key("ladder.search_goals", Shape::List(&Shape::Text), "['response.p99 < 20ms, failed == 0']")
        .about("Further goals of a search: objectives that are asked instead of those of the plan, in the same trials.")
        .flag("--goal", "EXPR,…")
        .help("Search also for the capacity by these objectives instead of those of the climb, in the same trials: \
            'response.p99 < 20ms, failed == 0'; repeatable (with --search)").kind(Kind::Repeated)
        .flag_example("response.p99 < 20ms");
    GATES = Setting::of("Judged by", &[]).of_climbs().key("gates", Shape::List(&Shape::Text), "[capacity >= 1000]")
        .about("What the whole run must meet; gates decide the exit code instead of the rungs.")
        .flag("--gate", "EXPR")
        .help("A condition on the whole run that decides the exit code (0 met, 1 not met, 2 cannot be told) instead of the \
            rungs: 'capacity >= 1000' or 'response.p99 at 1000 < 50ms'; repeatable").kind(Kind::Repeated)
        .flag_example("capacity >= 1000");
}

const FORGOTTEN: &str =
    "the server keeps nothing when it is stopped (--stop-at); give it a directory: -- --data DIR";
/// The figures of ticks that a histogram's buckets can give.
const BY_CLASS: [&str; 4] = ["ticks.late_share", "ticks.over", "ticks.under", "ticks.missed"];
const AUDIT_INSTEAD: &str = "only the bots of leaderboard audit; use failed == 0 for wrong answers, or deliveries.lost == 0 for broadcasts";

pub(super) fn read(
    reader: &mut Reader,
    bots: &BotSettings,
    ticks: &TickSource,
    found: Option<&ResolvedTarget>,
    networks: &Networks,
    allowed: &[Allowed],
) -> Vec<Objective> {
    let said = reader.all(&OBJECTIVES).unwrap_or_default();
    let about = (bots, ticks, found);
    if said.is_empty() {
        let forgets = stop::forgets(reader, found);
        let mut defaults = measurable_defaults(bots, ticks, found);
        defaults.retain(|objective| !forgets || objective.figure().name != "audit");
        let defaults = defaults.into_iter().map(|objective| behind(objective, networks)).collect();
        return with_forbidden(defaults, about, allowed);
    }
    let mut objectives = Vec::new();
    for one in &said {
        objectives.extend(read_one(reader, &one.place, &one.text, about));
    }
    with_forbidden(objectives, about, allowed)
}

/// What the server may do although it fails a rung otherwise.
pub(super) fn allowed(reader: &mut Reader, bots: &BotSettings) -> Vec<Allowed> {
    let mut allowed = Vec::new();
    for said in reader.all(&ALLOW).unwrap_or_default() {
        match said.text.parse::<Allowed>() {
            Ok(kind) if bots.forbidden().iter().all(|(known, _)| *known != kind) => {
                reader.refuse_plainly(said.place, ConfigError::NothingToAllow { kind, bots: bots.name() });
            }
            Ok(kind) if allowed.contains(&kind) => {}
            Ok(kind) => allowed.push(kind),
            Err(()) => {
                let nearest = vocabulary::nearest(&said.text, Allowed::NAMES).map(Into::into);
                reader.refuse_with(&said, ConfigError::UnknownAllowed(said.text.as_str().into()), nearest);
            }
        }
    }
    allowed
}

/// Besides these objectives what the workload forbids, unless it is allowed, cannot be measured, or one of them speaks of it.
fn with_forbidden(
    mut objectives: Vec<Objective>,
    (bots, ticks, found): About<'_>,
    allowed: &[Allowed],
) -> Vec<Objective> {
    for (kind, text) in bots.forbidden() {
        let is_said = objectives.iter().any(|objective| kind.is_said_by(objective.figure().name));
        let Some(text) = text.filter(|_| !is_said && !allowed.contains(kind)) else { continue };
        let objective: Objective = text.parse().expect("a test parses every default objective");
        if never_measured(&objective, bots, ticks, found).is_none() {
            objectives.push(objective);
        }
    }
    objectives
}

/// What is known of the climb when its objectives are read.
pub(super) type About<'a> = (&'a BotSettings, &'a TickSource, Option<&'a ResolvedTarget>);

/// One objective, which this climb can measure.
fn read_one(
    reader: &mut Reader,
    place: &Place,
    text: &str,
    (bots, ticks, found): About<'_>,
) -> Option<Objective> {
    match Objective::read(text, &|name| own(bots, name)) {
        Ok(objective) => {
            let forgotten = (objective.figure().name == "audit" && stop::forgets(reader, found))
                .then_some(ConfigError::NotMeasured { figure: "audit", why: FORGOTTEN });
            if let Some(wrong) = forgotten.or_else(|| never_measured(&objective, bots, ticks, found)) {
                reader.refuse_plainly(place.clone(), wrong);
            }
            Some(objective)
        }
        Err(wrong) => {
            refuse(reader, place.clone(), bots, wrong);
            None
        }
    }
}

/// What a name of the bots' own stands for.
fn own(bots: &BotSettings, name: &str) -> Option<Own> {
    let is_in = |names: &[String]| names.iter().any(|known| known == name);
    let value = || is_in(bots.recorded()).then_some(Own::Value);
    is_in(bots.operations()).then_some(Own::Operation).or_else(value)
}

fn refuse(reader: &mut Reader, place: Place, bots: &BotSettings, wrong: ObjectiveError) {
    let known = [bots.operations(), bots.recorded()].concat();
    match wrong {
        ObjectiveError::UnknownFigure { text, name, .. } if !known.is_empty() => {
            let known = known.join(", ");
            reader.refuse_plainly(place, ConfigError::UnknownOperation { text, wrong: name, known });
        }
        // Its message has its own example, of the figure that was meant.
        wrong => reader.refuse_plainly(place, wrong),
    }
}

/// Further goals of a search. Each asks something that neither the plan nor another goal asks.
pub(super) fn goals(
    reader: &mut Reader,
    objectives: &[Objective],
    (bots, ticks, found): About<'_>,
    allowed: &[Allowed],
) -> Vec<Vec<Objective>> {
    let mut goals: Vec<Vec<Objective>> = Vec::new();
    for one in reader.all(&GOALS).unwrap_or_default() {
        let texts = one.text.split(',').map(str::trim).filter(|text| !text.is_empty());
        let texts: Vec<&str> = texts.collect();
        if texts.is_empty() {
            reader.refuse_plainly(one.place.clone(), SearchError::EmptyGoal);
        }
        let about = (bots, ticks, found);
        let goal: Vec<Objective> =
            texts.into_iter().filter_map(|text| read_one(reader, &one.place, text, about)).collect();
        let goal = with_forbidden(goal, about, allowed);
        if goal == objectives || goals.contains(&goal) {
            reader.refuse_plainly(one.place.clone(), SearchError::SameGoal(one.text.clone()));
        }
        goals.push(goal);
    }
    goals
}

/// What the whole run must meet, of loads that it will hold and figures that it will measure.
pub(super) fn gates(
    reader: &mut Reader,
    ladder: &Ladder,
    bots: &BotSettings,
    ticks: &TickSource,
    found: Option<&ResolvedTarget>,
) -> Vec<Gate> {
    let mut gates = Vec::new();
    for one in reader.all(&GATES).unwrap_or_default() {
        let of_figure = |text: &str| Objective::read(text, &|name| own(bots, name));
        let gate = match Gate::read(&one.text, &of_figure) {
            Ok(gate) => gate,
            Err(GateError::Objective(wrong)) => {
                refuse(reader, one.place, bots, wrong);
                continue;
            }
            Err(wrong) => {
                reader.refuse_plainly(one.place, wrong);
                continue;
            }
        };
        let not_measured =
            gate.objective().and_then(|objective| never_measured(objective, bots, ticks, found));
        let not_held = gate.load().and_then(|load| {
            let is_held = ladder.is_open_ended || ladder.rungs.contains(&load);
            let load = load.to_string();
            match &ladder.search {
                Some(_) => Some(GatePlaceError::Search { load }),
                None => (!is_held).then_some(GatePlaceError::NotHeld { load }),
            }
        });
        if let Some(wrong) = not_measured.or(not_held.map(ConfigError::GatePlace)) {
            reader.refuse_plainly(one.place, wrong);
        }
        gates.push(gate);
    }
    gates
}

/// What the bots' subject should meet, as far as it can be measured: a server that tells no ticks is judged by its errors.
fn measurable_defaults(
    bots: &BotSettings,
    ticks: &TickSource,
    found: Option<&ResolvedTarget>,
) -> Vec<Objective> {
    let parsed = |texts: &[&str]| -> Vec<Objective> {
        texts.iter().map(|text| text.parse().expect("a test parses every default objective")).collect()
    };
    let mut objectives = parsed(bots.default_objectives());
    objectives.retain(|objective| never_measured(objective, bots, ticks, found).is_none());
    if objectives.is_empty() { parsed(NO_ERRORS) } else { objectives }
}

/// A usual limit on a latency, with as much more as the emulated networks take: it is the server that is judged.
fn behind(objective: Objective, networks: &Networks) -> Objective {
    let more_ns = networks.slow_round_trip_ns();
    match objective.latency_bound_ns() {
        Some(bound_ns) if more_ns > 0 => {
            let text = objective.to_string();
            let (what, _) = text.rsplit_once(' ').expect("its last word is the bound");
            let longer = format!("{what} {}ms", (bound_ns + more_ns as f64) / 1e6);
            longer.parse().expect("another bound is as good")
        }
        _ => objective,
    }
}

/// Why a climb would end with "cannot tell"; better said before it than after an hour.
fn never_measured(
    objective: &Objective,
    bots: &BotSettings,
    ticks: &TickSource,
    found: Option<&ResolvedTarget>,
) -> Option<ConfigError> {
    let figure = objective.figure().name;
    let not_measured = |why| Some(ConfigError::NotMeasured { figure, why });
    let (area, _) = figure.split_once('.').unwrap_or((figure, ""));
    let has_snapshots = bots.asks_for_snapshots();
    // We can watch its process, or the user named it.
    let is_watched = !matches!(
        found.map(|found| &found.source),
        Some(SubjectSource::Running { pid: None, cgroup: None, .. })
    );
    match area {
        "ticks" if *ticks == TickSource::None => Some(ConfigError::NoTicks { what: objective.to_string() }),
        "ticks" if matches!(ticks, TickSource::OpenMetrics { .. }) && !BY_CLASS.contains(&figure) => {
            not_measured(
                "buckets tell ticks by class only; ask for ticks.late_share, ticks.over or ticks.under",
            )
        }
        "client_ticks" if !has_snapshots => {
            not_measured("clients see ticks in snapshots only; let some games ask for them (--snapshots 1%)")
        }
        "subject" if !is_watched => not_measured(
            "the server's process is not known; name it (--pid N) or its control group (--watch-cgroup PATH), or start it \
             here (--start)",
        ),
        "deliveries" => bots.lacks_delivery_figure(figure).and_then(not_measured),
        "audit" if !bots.audits() => not_measured(AUDIT_INSTEAD),
        _ => None,
    }
}
