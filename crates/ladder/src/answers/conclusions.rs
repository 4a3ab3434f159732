//! The three answers in words: how many, why not more, can I trust it.
//!
//! Each says only what is known, and names what would help to learn more.

use measure::LoadUnit;
use serde_json::{Value, json};

use super::causes::{self, Cause};
use super::deliveries::loss_rate_bound;
use super::marks::{self, Standing, mark};
use super::tick_sources;
use crate::allowed::Allowed;
use crate::capacity::{Capacity, CellCapacity};
use crate::contract::{Climb, Conclusion, RESUMED, Rung};
use crate::judge::{AGENT_LOST, DISTURBED, Verdict, deliveries};
use crate::models;
use crate::schedule::Judged;
use crate::steady::Steadiness;
use crate::wording::{show_cell, show_many, show_ns, show_number, show_share};

/// Loads that are named in a sentence; of more only their number.
const LOADS_NAMED: usize = 4;

/// What a rung is called whose books contradict themselves.
const BROKEN_BOOKS: [&str; 4] =
    ["bug", "deliveries.unowed", "deliveries.residual", deliveries::TOLD_OTHERWISE];

/// The answer says that a loop catches up if at least this share of its late ticks did.
const CAUGHT_UP_SHARE: f64 = 0.1;

/// Sentences of an answer in a summary.
const SENTENCES_IN_BRIEF: usize = 3;

pub(super) fn conclusions(climb: &Climb, allowed: &[Allowed]) -> Vec<Conclusion> {
    let answers = three_answers(climb, allowed).map(|(whole, _)| whole);
    answers.into_iter().chain(models::conclusions(&climb.rungs, &climb.capacity)).collect()
}

/// Each answer with its sentences in a summary, those that matter most first.
fn three_answers(climb: &Climb, allowed: &[Allowed]) -> [(Conclusion, Vec<String>); 3] {
    [how_many(climb), why_not_more(climb), can_i_trust_it(climb, allowed)]
}

/// The three answers as a summary gives them, by their ids: at most three sentences each, and of the last one the reasons for
/// doubt alone, where there are some.
pub(crate) fn in_brief(climb: &Climb) -> [(String, String); 3] {
    three_answers(climb, &[]).map(|(whole, mut brief)| {
        brief.truncate(SENTENCES_IN_BRIEF);
        (whole.id, brief.join(" "))
    })
}

/// `2000 games (4000 clients)`
pub(super) fn load_of(climb: &Climb, load: f64) -> String {
    let unit = climb.capacity.unit;
    let rung = climb.rungs.iter().find(|rung| rung.load == load);
    let text = unit.text_of(load);
    match rung.map(|rung| (rung.bots, rung.sessions)) {
        Some((bots, _)) if unit == LoadUnit::Games => {
            format!("{} {text} ({bots} clients)", show_number(load))
        }
        // The number of concurrent sessions follows from how long each takes.
        Some((_, Some(sessions))) if unit == LoadUnit::Sessions => {
            format!("{} {text} ({} at once)", show_number(load), show_number(sessions.at_once))
        }
        _ => format!("{} {text}", show_number(load)),
    }
}

/// The cell of a sweep whose capacity is the climb's; `None` where there is but one cell.
fn smallest_cell(capacity: &Capacity) -> Option<&CellCapacity> {
    let bounds = |one: &Capacity| (one.lower_bound, one.upper_bound);
    capacity.cells.iter().find(|one| bounds(&one.capacity) == bounds(capacity))
}

/// Where in a sweep the bounds are those of the climb.
fn where_in_sweep(capacity: &Capacity) -> Option<String> {
    let smallest = smallest_cell(capacity)?;
    let bounds = |one: &CellCapacity| (one.capacity.lower_bound, one.capacity.upper_bound);
    let (alike, others): (Vec<_>, Vec<_>) =
        capacity.cells.iter().partition(|one| bounds(one) == bounds(smallest));
    if others.is_empty() {
        return Some(format!("That is so in each of {} cells.", alike.len()));
    }
    let name = show_cell(&smallest.cell);
    let more = match alike.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let most = others.iter().filter_map(|one| one.capacity.lower_bound).max_by(f64::total_cmp);
    let elsewhere = most.map_or(String::new(), |most| format!(", others held up to {}", show_number(most)));
    Some(format!("That is the smallest of {} cells ({name}{more}){elsewhere}.", capacity.cells.len()))
}

fn how_many(climb: &Climb) -> (Conclusion, Vec<String>) {
    let capacity = &climb.capacity;
    let of = |load| load_of(climb, load);
    let mut sentences = vec![match (capacity.lower_bound, capacity.upper_bound) {
        (Some(lower), Some(upper)) => {
            format!("{} held, {} did not: the capacity lies between the two.", of(lower), of(upper))
        }
        (Some(lower), None) => {
            let further = if climb.rungs.iter().any(|rung| rung.load > lower && is_untold(climb, rung)) {
                "larger loads could not be judged"
            } else {
                "climb higher to find the limit"
            };
            format!("{} held, and nothing failed: this is a lower bound; {further}.", of(lower))
        }
        (None, Some(upper)) => {
            let smaller = match climb.rungs.len() {
                1 => "",
                _ => ", and no smaller one did",
            };
            format!("Fewer than {}: that load did not hold{smaller}; start lower.", of(upper))
        }
        (None, None) => neither_bound(climb),
    }];
    if let Some(nodes) = climb.run.environment.get("nodes").and_then(Value::as_u64) {
        sentences.push(format!("The load was divided evenly between {nodes} nodes."));
    }
    let mut brief = vec![sentences[0].clone()];
    sentences.extend(estimate(capacity));
    sentences.extend(where_in_sweep(capacity));
    let placed = sentences.len();
    if !capacity.held_above_a_failure.is_empty() {
        let loads: Vec<String> =
            capacity.held_above_a_failure.iter().map(|load| show_number(*load)).collect();
        let loads = loads.join(", ");
        sentences.push(format!(
            "{loads} held although a smaller load failed: repeat the climb before you rely on it."
        ));
    }
    for verdict in [Verdict::GeneratorLimited, Verdict::Inconclusive, Verdict::Invalid] {
        let untold = with_verdict(climb, verdict).filter(|rung| is_untold(climb, rung));
        let loads: Vec<f64> = untold.map(|rung| rung.load).collect();
        if !loads.is_empty() && !capacity.cells.is_empty() {
            let of = climb.rungs.len();
            sentences.push(format!("{} of {of} rungs could not be judged ({verdict}).", loads.len()));
        } else if !loads.is_empty() {
            sentences.push(format!("{} could not be judged ({verdict}).", each_once(&loads)));
        }
    }
    // What casts doubt on the bounds goes before what refines them.
    brief.extend(sentences[placed..].iter().chain(&sentences[1..placed]).cloned());
    let evidence = json!({
        "lower_bound": capacity.lower_bound, "upper_bound": capacity.upper_bound, "unit": capacity.unit,
        "confidence": capacity.confidence, "held_above_a_failure": capacity.held_above_a_failure,
        "rungs": climb.rungs.iter().map(load_and_verdict).collect::<Vec<_>>(),
    });
    (Conclusion::new("how_many", &sentences, evidence), brief)
}

/// What is known without any bound: of a search that was ended early, what its short trials say.
fn neither_bound(climb: &Climb) -> String {
    let with = |wanted| climb.rungs.iter().filter(move |rung| Judged::from(*rung).met == Some(wanted));
    let loads = |wanted| with(wanted).map(|rung| rung.load);
    let held =
        loads(true).reduce(f64::max).map(|load| format!("{} met the objectives", load_of(climb, load)));
    let failed = loads(false).reduce(f64::min).map(|load| format!("{} did not", load_of(climb, load)));
    if climb.capacity.search.is_none() || held.is_none() && failed.is_none() {
        return "Unknown: no load could be judged.".to_owned();
    }
    let failed = match held {
        Some(_) => failed,
        None => failed.map(|failed| format!("{failed} meet the objectives")),
    };
    let found = [held, failed].into_iter().flatten().collect::<Vec<_>>().join(", ");
    format!(
        "Unknown: the search ended before any load had enough full-length trials. In the trials until then {found}."
    )
}

/// `8000 (2 times), 6286`.
fn each_once(loads: &[f64]) -> String {
    let mut counts: Vec<(f64, usize)> = Vec::new();
    for load in loads {
        match counts.iter_mut().find(|(known, _)| known == load) {
            Some((_, count)) => *count += 1,
            None => counts.push((*load, 1)),
        }
    }
    let shown = counts.iter().map(|(load, count)| match count {
        1 => show_number(*load),
        count => format!("{} ({count} times)", show_number(*load)),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Where the capacity most likely is, and whether a search reached what it was to reach.
pub(super) fn estimate(capacity: &Capacity) -> Vec<String> {
    let mut sentences = Vec::new();
    if let (Some(most_likely), Some((least, most)), Some(confidence)) =
        (capacity.estimate, capacity.interval, capacity.confidence)
    {
        let number = |load: f64| show_number(three_digits(load));
        sentences.push(format!(
            "Most likely {}, with 95 % between {} and {}; between the two bounds with {}.",
            number(most_likely),
            number(least),
            number(most),
            show_share(confidence)
        ));
    }
    if let Some(search) = &capacity.search
        && !search.is_reached(capacity)
        && capacity.lower_bound.is_some()
    {
        let wanted = show_share(search.width_goal);
        sentences.push(match search.width {
            Some(width) => {
                format!("The search did not reach a width of {wanted}: {} remain.", show_share(width))
            }
            None => format!("The search ended before it found both bounds with a width of {wanted}."),
        });
    }
    sentences
}

fn three_digits(load: f64) -> f64 {
    let unit = 10f64.powf(load.abs().max(1e-9).log10().floor() - 2.0);
    (load / unit).round() * unit
}

/// Whether a rung says nothing about the server. A short trial of a search does, though it states no verdict.
fn is_untold(climb: &Climb, rung: &Rung) -> bool {
    // A load that lost an agent was held again.
    let is_again = |other: &Rung| other.seq > rung.seq && other.load == rung.load && other.cell == rung.cell;
    let was_told = rung.signal.as_deref() == Some(AGENT_LOST)
        && climb.rungs.iter().any(|other| is_again(other) && other.verdict.counts());
    !was_told
        && !rung.verdict.counts()
        && (climb.capacity.search.is_none() || Judged::from(rung).met.is_none())
}

fn load_and_verdict(rung: &Rung) -> Value {
    match &rung.cell {
        Some(cell) => json!({ "load": rung.load, "cell": cell, "verdict": rung.verdict }),
        None => json!({ "load": rung.load, "verdict": rung.verdict }),
    }
}

fn with_verdict(climb: &Climb, verdict: Verdict) -> impl Iterator<Item = &Rung> {
    climb.rungs.iter().filter(move |rung| rung.verdict == verdict)
}

fn why_not_more(climb: &Climb) -> (Conclusion, Vec<String>) {
    let capacity = &climb.capacity;
    let reason = |rung: &Rung| rung.reason.clone().unwrap_or_else(|| "no reason is known".to_owned());
    let smallest = smallest_cell(capacity).map(|one| &one.cell);
    let is_there = |rung: &&Rung| smallest.is_none_or(|cell| rung.cell.as_ref() == Some(cell));
    let failing = capacity.upper_bound.and_then(|upper| {
        with_verdict(climb, Verdict::Fail).filter(is_there).find(|rung| rung.load == upper)
    });
    if let Some(rung) = failing {
        let cell = smallest.map_or(String::new(), |cell| format!(" ({})", show_cell(cell)));
        let mut sentences = vec![format!("At {}{cell}: {}.", load_of(climb, rung.load), reason(rung))];
        sentences.extend(catches_up(rung));
        let cause = causes::cause(climb, rung);
        sentences.extend(cause.as_ref().map(Cause::sentence));
        let held = causes::held_below(climb, rung);
        let evidence = json!({
            "cause": cause.as_ref().map(Cause::json), "held": held.map(|held| held.load),
            "moved": held.map(|held| causes::moved(held, rung)),
            "load": rung.load, "cell": rung.cell, "signal": capacity.first_failing_signal, "reason": rung.reason,
            "objectives": rung.evidence.objectives,
            "subject": rung.subject, "worker": rung.worker,
        });
        return (Conclusion::new("why_not_more", &sentences, evidence), sentences);
    }
    let top = capacity.lower_bound.unwrap_or(0.0);
    // Search trials that failed without making a bound say more about the server than undecided ones.
    let failed =
        with_verdict(climb, Verdict::Fail).filter(|rung| capacity.search.is_some() && rung.load > top);
    if let Some(rung) = failed.min_by(|a, b| a.load.total_cmp(&b.load)) {
        let of = load_of(climb, rung.load);
        let sentence = format!("No upper bound was found. In a trial of {of}: {}.", reason(rung));
        let evidence = json!({
            "load": rung.load, "verdict": rung.verdict, "signal": rung.signal, "reason": rung.reason,
            "objectives": rung.evidence.objectives,
        });
        let sentences = vec![sentence];
        return (Conclusion::new("why_not_more", &sentences, evidence), sentences);
    }
    let others = climb.rungs.iter().filter(|rung| !rung.verdict.counts() && rung.load > top);
    let unjudged = others.min_by(|a, b| a.load.total_cmp(&b.load));
    let sentence = match unjudged {
        Some(rung) if rung.verdict == Verdict::GeneratorLimited => {
            format!(
                "The load generator reached its limit before the server did. At {}: {}.",
                load_of(climb, rung.load),
                reason(rung)
            )
        }
        Some(rung) => format!("{} could not be judged: {}.", load_of(climb, rung.load), reason(rung)),
        None if capacity.lower_bound.is_some() && climb.ended_early.is_some() => {
            format!(
                "Nothing failed: {} was the largest load held before the run ended early.",
                load_of(climb, top)
            )
        }
        None if capacity.lower_bound.is_some() => {
            format!("Nothing failed: {} was the largest load asked for.", load_of(climb, top))
        }
        None if !climb.rungs.is_empty() => "The run ended before any load was decided on.".to_owned(),
        None => "No rung was held.".to_owned(),
    };
    let evidence = json!({
        "load": unjudged.map(|rung| rung.load), "verdict": unjudged.map(|rung| rung.verdict),
        "signal": unjudged.and_then(|rung| rung.signal.as_ref()), "reason": unjudged.map(|rung| &rung.reason),
    });
    let sentences = vec![sentence];
    (Conclusion::new("why_not_more", &sentences, evidence), sentences)
}

/// Of a loop that makes up for ticks that it missed: how often one stall was counted. Its mean interval stays at the period.
fn catches_up(rung: &Rung) -> Option<String> {
    let ticks = rung.ticks.as_ref().filter(|_| rung.signal.as_deref() == Some("ticks.late_share"))?;
    let (caught_up, late) = (ticks.late_intervals.caught_up as f64, ticks.counts.late() as f64);
    (caught_up >= CAUGHT_UP_SHARE * late && late > 0.0).then(|| {
        format!(
            "Its loop catches up: {} of {} late ticks came within {} of the one before, so that a stall counts once for each tick \
             that it held up.",
            show_number(caught_up),
            show_number(late),
            show_ns(ticks.period_ns as f64 / 4.0)
        )
    })
}

fn can_i_trust_it(climb: &Climb, allowed: &[Allowed]) -> (Conclusion, Vec<String>) {
    let rungs = &climb.rungs;
    let counted = rungs.iter().filter(|rung| !is_untold(climb, rung)).count();
    let limited = with_verdict(climb, Verdict::GeneratorLimited).count();
    let is_broken =
        |rung: &&Rung| rung.signal.as_deref().is_some_and(|signal| BROKEN_BOOKS.contains(&signal));
    let broken = rungs.iter().filter(is_broken).count();
    let late_where = |is_judged: bool| {
        rungs.iter().filter(|rung| rung.verdict.counts() == is_judged && was_generator_late(rung)).count()
    };
    let (late, late_and_unjudged) = (late_where(true), late_where(false));
    let owed = OwedInAll::of(rungs);
    let worst = |of: fn(&Rung) -> Option<f64>| rungs.iter().filter_map(of).max_by(f64::total_cmp);
    let send_lag_ns = worst(|rung| Some(rung.send_lag_ns.as_ref()?.p99? as f64));
    let busy_share = worst(|rung| rung.worker.busy_share_max);
    let disturbed_share = worst(|rung| rung.disturbed_share);
    let of_all = |count: usize| match rungs.len() {
        1 => "the only rung".to_owned(),
        all => format!("{count} of {all} rungs"),
    };
    let not_steady: Vec<&Rung> =
        rungs.iter().filter(|rung| rung.steady.is_some_and(|steady| steady != Steadiness::Steady)).collect();
    let untold = rungs.iter().filter(|rung| rung.steady.is_none()).count();

    let unjudged: Vec<&Rung> = rungs.iter().filter(|rung| is_untold(climb, rung)).collect();
    /// A part of the first sentence, and whether it is a reason for doubt.
    type Part = (bool, String);
    let mut parts: Vec<Part> = Vec::new();
    let latest_ns = worst(|rung| Some(rung.send_lag_ns.as_ref()?.max? as f64));
    let lag = match (send_lag_ns, latest_ns) {
        (Some(ns), _) => format!("send lag p99 at most {}", show_ns(ns)),
        (None, Some(ns)) => format!("send lag at most {}", show_ns(ns)),
        (None, None) => "nothing was sent".to_owned(),
    };
    let busy =
        busy_share.map_or(String::new(), |share| format!(", busiest worker {} busy", show_share(share)));
    let kept_up = limited + late + late_and_unjudged == 0;
    let generator = if limited > 0 {
        format!("the load generator reached its limit in {} ({lag}{busy})", of_all(limited))
    } else if late > 0 {
        format!("the load generator was late in {}, judged all the same ({lag}{busy})", of_all(late))
    } else if late_and_unjudged > 0 {
        format!("the load generator was late in {} ({lag}{busy})", of_all(late_and_unjudged))
    } else {
        format!("the load generator kept up ({lag}{busy})")
    };
    parts.push((!kept_up, generator));
    parts.push((
        broken > 0,
        if broken > 0 {
            format!("the books do not balance in {}", of_all(broken))
        } else {
            "the books balance".to_owned()
        } + &owed.in_words(),
    ));
    parts.push(match (not_steady.first(), untold) {
        (Some(rung), _) => {
            let how = rung.steady.map_or(String::new(), |steady| steady.to_string());
            let first = show_number(rung.load);
            let was = if not_steady.len() == 1 { "was" } else { "were" };
            (true, format!("{} {was} not steady (first at {first}: {how})", of_all(not_steady.len())))
        }
        (None, 0) => (false, "every hold was steady".to_owned()),
        (None, _) => {
            let (it, was) = if untold == 1 { ("it", "was") } else { ("they", "were") };
            let told = format!("{was} too short or too disturbed to tell whether {it} {was} steady");
            (true, format!("{} {told}", of_all(untold)))
        }
    });
    parts.push(match disturbed_share {
        None => (true, "whether other programs disturbed it is not readable here".to_owned()),
        // Refers to what the rungs show: below the table, or with the reason.
        Some(share) if share > 0.0 => (true, format!("up to {} of a hold was disturbed", show_share(share))),
        Some(_) if climb.run.shared_cores && rungs.iter().any(|rung| rung.subject.is_none()) => {
            (false, "nothing disturbed it, as far as can be told without the server's --pid".to_owned())
        }
        Some(_) => (false, "nothing disturbed it".to_owned()),
    });
    let disturbed = unjudged.iter().any(|rung| rung.signal.as_deref() == Some(DISTURBED));
    let has_cost = [limited + late_and_unjudged > 0, broken > 0, false, disturbed];
    let mut marks: Vec<Value> = ["generator", "books", "steady", "undisturbed"]
        .iter()
        .zip(has_cost)
        .zip(&parts)
        .map(|((id, has_cost), (is_doubt, text))| mark(id, Standing::of(*is_doubt, has_cost), text))
        .collect();
    let (standing, text) = marks::certainty(&climb.capacity);
    marks.push(mark("certainty", standing, &text));
    if climb.generator == Default::default() {
        parts.push((true, "the generator was not calibrated".to_owned()));
    }
    if let Some(why) = &climb.ended_early {
        parts.insert(0, (true, format!("the run is not whole ({why})")));
    }
    let trusted = climb.ended_early.is_none()
        && unjudged.is_empty()
        && counted > 0
        && broken == 0
        && late == 0
        && not_steady.is_empty();
    let verdict = match (counted, trusted) {
        (0, _) => "No:",
        (_, true) => "Yes:",
        (_, false) => "With care:",
    };
    // Unjudged loads come first: no other figure makes up for them.
    if !unjudged.is_empty() {
        let mut told: Vec<String> = unjudged
            .iter()
            .take(LOADS_NAMED)
            .map(|rung| format!("{} ({})", show_number(rung.load), rung.verdict))
            .collect();
        if unjudged.len() > LOADS_NAMED {
            told.push(format!("{} more", unjudged.len() - LOADS_NAMED));
        }
        let told = format!("{} could not be judged: {}", of_all(unjudged.len()), told.join(", "));
        parts.insert(0, (true, told));
    }
    // A reason for doubt does not read as a reason for the yes.
    if trusted {
        parts.sort_by_key(|(is_doubt, _)| *is_doubt);
        if let Some((_, first)) = parts.iter_mut().skip(1).find(|(is_doubt, _)| *is_doubt) {
            first.insert_str(0, "but ");
        }
    }
    let joined = |kept: fn(&Part) -> bool| {
        let kept: Vec<&str> = parts.iter().filter(|part| kept(part)).map(|(_, text)| text.as_str()).collect();
        format!("{verdict} {}.", kept.join("; "))
    };
    let mut sentences = vec![joined(|_| true)];
    let is_doubted = !trusted && parts.iter().any(|(is_doubt, _)| *is_doubt);
    let mut brief = if is_doubted { vec![joined(|(is_doubt, _)| *is_doubt)] } else { sentences.clone() };
    if climb.run.shared_cores {
        let where_known = climb.run.environment.get("cores").and_then(Value::as_u64);
        let cores =
            where_known.map_or("the same cores".to_owned(), |count| format!("the same {count} cores"));
        sentences.push(format!("Server and generator ran on {cores}."));
    }
    sentences.extend(resumed(climb));
    if climb.run.environment.get("certificates").and_then(Value::as_str) == Some("any") {
        sentences.push(
            "Any certificate was accepted (--insecure): that the server is the one it says was not checked."
                .to_owned(),
        );
    }
    if !allowed.is_empty() {
        let may: Vec<String> = allowed.iter().map(|kind| format!("{} ({kind})", kind.may())).collect();
        sentences.push(format!("As the plan allows it, the server may {}.", may.join(", and ")));
    }
    sentences.extend(tick_sources::sentence(climb));
    // What the server may have been or said goes before where it ran.
    brief.extend(sentences.iter().skip(1).rev().cloned());
    sentences.extend(hint_at_confidence(&climb.capacity));
    let evidence = json!({
        "rungs": rungs.len(), "counted": counted, "unjudged": unjudged.len(), "generator_limited": limited, "generator_late": late, "books_broken": broken,
        "not_steady": not_steady.len(), "deliveries_owed": owed.owed, "deliveries_lost": owed.lost,
        "deliveries_unread": owed.unread, "deliveries_residual": owed.residual, "send_lag_p99_ns": send_lag_ns, "busy_share_max": busy_share,
        "disturbed_share_max": disturbed_share, "shared_cores": climb.run.shared_cores,
        "calibrated": climb.generator != Default::default(), "arrivals": climb.run.arrivals, "seed": climb.run.seed,
        "marks": marks,
    });
    (Conclusion::new("can_i_trust_it", &sentences, evidence), brief)
}

/// How to get a figure of confidence, where there could be one: it needs both bounds, each held more than once.
pub(crate) fn hint_at_confidence(capacity: &Capacity) -> Option<String> {
    let has_both = capacity.lower_bound.is_some() && capacity.upper_bound.is_some();
    match (capacity.confidence, &capacity.search) {
        (None, None) if has_both => {
            Some("For a figure of confidence repeat each load (--repeat 3).".to_owned())
        }
        (None, Some(_)) if has_both => {
            Some("It held its bounds too few times for a figure of confidence.".to_owned())
        }
        _ => None,
    }
}

/// Whether sends left later than they may. Such a rung is judged where that changes nothing: what was met although sends were
/// late is met.
fn was_generator_late(rung: &Rung) -> bool {
    let evidence = &rung.evidence;
    // With too few sends for a p99, the latest send is used.
    let latest_ns = rung.send_lag_ns.as_ref().and_then(|lag| lag.max).map(|ns| ns as f64);
    let lag_ns = evidence.send_lag_p99_ns.or(latest_ns);
    lag_ns.zip(evidence.send_lag_limit_ns).is_some_and(|(lag_ns, limit_ns)| lag_ns > limit_ns)
}

/// Which loads another run held, which ended early.
fn resumed(climb: &Climb) -> Option<String> {
    let old = climb.run.environment.get(RESUMED)?;
    let (run, trials) = (old.get("run")?.as_str()?, old.get("trials")?.as_u64()?);
    let held = climb.rungs.iter().filter(|rung| u64::from(rung.seq) < trials).count();
    Some(match held {
        0 => return None,
        1 => format!("The first load was held earlier, by run {run}, which ended early."),
        held => format!("The first {held} loads were held earlier, by run {run}, which ended early."),
    })
}

/// The deliveries of all rungs together.
#[derive(Default)]
struct OwedInAll {
    owed: Option<u64>,
    lost: u64,
    unread: u64,
    residual: i64,
    drops_are_told: bool,
}

impl OwedInAll {
    fn of(rungs: &[Rung]) -> OwedInAll {
        let mut all = OwedInAll { drops_are_told: true, ..OwedInAll::default() };
        for books in rungs.iter().filter_map(|rung| rung.deliveries.as_ref()) {
            *all.owed.get_or_insert(0) += books.owed;
            all.lost += books.sum.lost;
            all.unread += books.sum.unread;
            all.residual += books.sum.residual;
            all.drops_are_told &= books.drops_are_told;
        }
        all
    }

    /// `: 1.23 G deliveries owed, 0 lost (rate ≤ 2.4e-9 at 95 %), residual 0`; nothing where none was owed.
    fn in_words(&self) -> String {
        let Some(owed) = self.owed else { return String::new() };
        let unread = match self.unread {
            0 => String::new(),
            unread => format!(", {} unread", show_many(unread)),
        };
        // Unread messages may have been lost.
        let bound = loss_rate_bound(owed, self.lost + self.unread)
            .map_or(String::new(), |bound| format!(" (rate ≤ {bound:.1e} at 95 %)"));
        let residual = if self.drops_are_told {
            format!("residual {}", self.residual)
        } else {
            "the server does not tell what it drops".to_owned()
        };
        format!(
            ": {} deliveries owed, {} lost{bound}{unread}, {residual}",
            show_many(owed),
            show_many(self.lost)
        )
    }
}
