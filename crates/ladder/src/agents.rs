//! Which agents made a load, and how each did: a sentence, and a row each.

use std::cmp::Ordering;

use measure::AgentFacts;
use serde_json::json;

use crate::contract::{Climb, Conclusion, Rung};
use crate::results_page::{NOT_STATED, Table};
use crate::wording::{show_ns, show_number, show_share};

/// Of more agents a table has the worst only. So does the page's (web/src/agents.ts).
const SHOWN_MOST: usize = 8;

/// The agents of one rung as rows.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRows {
    /// one row per agent, without what is the same for all: the conclusion says that
    pub table: Table,
    /// which were lost and why, and how many agents have no row
    pub below: Vec<String>,
}

/// The largest load that held, else the largest one; `None` where no agents made loads.
fn told(climb: &Climb) -> Option<&Rung> {
    let place = |rung: &Rung| (climb.capacity.lower_bound == Some(rung.load), rung.load);
    climb.rungs.iter().filter(|rung| !rung.agents.is_empty()).max_by(|a, b| {
        let (a, b) = (place(a), place(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

/// How the agents of that load did, together.
pub(crate) fn conclusion(climb: &Climb) -> Option<Conclusion> {
    let rung = told(climb)?;
    let agents = &rung.agents;
    let made =
        format!("{} made the load of {} {}", several(agents.len()), show_number(rung.load), rung.load_unit);
    let mut parts = alike(agents);
    let most = |of: fn(&AgentFacts) -> Option<f64>, show: fn(f64) -> String| {
        let found = agents.iter().filter_map(|agent| Some((of(agent)?, agent)));
        let (value, agent) = found.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let whose = if agents.len() > 1 { format!(" ({})", agent.name) } else { String::new() };
        Some(format!("{}{whose}", show(value)))
    };
    let up_to = if agents.len() > 1 { "up to " } else { "" };
    parts.extend(most(lag_ns, show_ns).map(|lag| format!("send lag p99 {up_to}{lag}")));
    parts.extend(
        most(|agent| agent.busy_share_max, show_share).map(|busy| format!("busiest worker {up_to}{busy}")),
    );
    parts.extend(most(clock_ns, show_ns).map(|bound| format!("clock within {bound}")));
    let mut sentences = vec![format!("{made}: {}.", parts.join(", "))];
    sentences.extend(lost_together(agents));
    let evidence = json!({ "load": rung.load, "agents": agents });
    Some(Conclusion::new("agents", &sentences, evidence))
}

fn several(count: usize) -> String {
    if count == 1 { "1 agent".to_owned() } else { format!("{count} agents") }
}

fn lag_ns(agent: &AgentFacts) -> Option<f64> {
    agent.send_lag_p99_ns.map(|lag_ns| lag_ns as f64)
}

fn clock_ns(agent: &AgentFacts) -> Option<f64> {
    Some(agent.clock_bound_ns as f64)
}

/// How many agents were lost; of a few, which and why.
fn lost_together(agents: &[AgentFacts]) -> Option<String> {
    let lost: Vec<(&str, &str)> =
        agents.iter().filter_map(|agent| Some((agent.name.as_str(), agent.lost.as_deref()?))).collect();
    let (first, why) = lost.first()?;
    Some(match lost.len() {
        1 => format!("{first} was lost: {why}."),
        count => format!("{count} of {} agents were lost, of them {first}: {why}.", agents.len()),
    })
}

/// What is the same for all: `200 bots each`, `2 workers each`, `over lo`.
fn alike(agents: &[AgentFacts]) -> Vec<String> {
    let each = if agents.len() > 1 { " each" } else { "" };
    let plural = |count: u64, one: &str| format!("{count} {one}{}{each}", if count == 1 { "" } else { "s" });
    let bots = same(agents, |agent| agent.bots).map(|bots| plural(bots, "bot"));
    let workers = same(agents, |agent| agent.workers).map(|workers| plural(u64::from(workers), "worker"));
    let link = same(agents, |agent| &agent.link).map(|link| format!("over {link}"));
    [bots, workers, link].into_iter().flatten().collect()
}

fn same<'a, T: PartialEq>(agents: &'a [AgentFacts], of: impl Fn(&'a AgentFacts) -> T) -> Option<T> {
    let mut values = agents.iter().map(of);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// A column's name, what stands in it, and whether it says the same for all of these agents.
type Column = (&'static str, fn(&AgentFacts) -> Option<String>, bool);

fn columns(agents: &[AgentFacts]) -> Vec<Column> {
    let is_alike = |of: fn(&AgentFacts) -> String| agents.len() > 1 && same(agents, of).is_some();
    vec![
        (
            "agent",
            |agent| Some(format!("{}{}", agent.name, if agent.lost.is_some() { " (lost)" } else { "" })),
            false,
        ),
        ("bots", |agent| Some(agent.bots.to_string()), is_alike(|agent| agent.bots.to_string())),
        ("workers", |agent| Some(agent.workers.to_string()), is_alike(|agent| agent.workers.to_string())),
        ("lag p99", |agent| lag_ns(agent).map(show_ns), false),
        ("busiest", |agent| agent.busy_share_max.map(show_share), false),
        ("CPU", |agent| agent.cpu_cores.map(|cores| format!("{cores:.2}")), false),
        ("clock ±", |agent| clock_ns(agent).map(show_ns), false),
        ("round trip", |agent| Some(show_ns(agent.round_trip_ns as f64)), false),
        ("link", |agent| Some(agent.link.clone()), is_alike(|agent| agent.link.clone())),
    ]
}

/// Lost ones first, then by send lag, then by the busiest worker.
fn worse_first(a: &AgentFacts, b: &AgentFacts) -> Ordering {
    let badness = |agent: &AgentFacts| {
        (agent.lost.is_some(), agent.send_lag_p99_ns, agent.busy_share_max.unwrap_or(0.0))
    };
    let (a, b) = (badness(a), badness(b));
    (b.0, b.1).cmp(&(a.0, a.1)).then(b.2.total_cmp(&a.2))
}

/// A row per agent of that load, the worst of many; `None` where no agents made loads.
pub(crate) fn rows(climb: &Climb) -> Option<AgentRows> {
    let rung = told(climb)?;
    let mut shown: Vec<&AgentFacts> = rung.agents.iter().collect();
    let more = shown.len().saturating_sub(SHOWN_MOST);
    if more > 0 {
        shown.sort_by(|a, b| worse_first(a, b));
        shown.truncate(SHOWN_MOST);
    }
    let columns: Vec<Column> =
        columns(&rung.agents).into_iter().filter(|(_, _, is_alike)| !is_alike).collect();
    let cell = |agent: &AgentFacts, of: fn(&AgentFacts) -> Option<String>| {
        of(agent).unwrap_or_else(|| NOT_STATED.to_owned())
    };
    let worst = if more > 0 { format!(", the {SHOWN_MOST} worst") } else { String::new() };
    let title = format!("Agents under {} {}{worst}", show_number(rung.load), rung.load_unit);
    let table = Table {
        title: Some(title),
        header: columns.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        rows: shown.iter().map(|agent| columns.iter().map(|(_, of, _)| cell(agent, *of)).collect()).collect(),
        rungs: Vec::new(),
    };
    let lost =
        shown.iter().filter_map(|agent| Some(format!("{} was lost: {}", agent.name, agent.lost.as_ref()?)));
    let mut below: Vec<String> = lost.collect();
    if below.len() == 1 {
        // The conclusion says it.
        below.clear();
    }
    if more > 0 {
        let (run, plural) = (&climb.run.id, if more == 1 { "agent" } else { "agents" });
        below.push(format!("… {more} more {plural}: stepladder show {run} --json FILE has all of them"));
    }
    Some(AgentRows { table, below })
}
