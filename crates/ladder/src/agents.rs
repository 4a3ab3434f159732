//! Which agents made the load, in words.

use measure::AgentFacts;
use serde_json::json;

use crate::contract::{Climb, Conclusion, Rung};
use crate::wording::{show_ns, show_share};

/// How each agent did under the largest load that held, else under the largest one; `None` where no agents made the load.
pub(crate) fn conclusion(climb: &Climb) -> Option<Conclusion> {
    let told = climb.rungs.iter().filter(|rung| !rung.agents.is_empty());
    let place = |rung: &Rung| (climb.capacity.lower_bound == Some(rung.load), rung.load);
    let rung = told.max_by(|a, b| {
        let (a, b) = (place(a), place(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    let each: Vec<String> = rung.agents.iter().map(words).collect();
    let one = if rung.agents.len() == 1 { "agent" } else { "agents" };
    let sentence =
        format!("{} {one} made the load of {}: {}.", rung.agents.len(), rung.load, each.join("; "));
    let evidence = json!({ "load": rung.load, "agents": rung.agents });
    Some(Conclusion::new("agents", &[sentence], evidence))
}

/// `b: 334 bots, send lag p99 0.12 ms, busiest worker 41 %, clock within 0.08 ms, over eth0`
fn words(agent: &AgentFacts) -> String {
    if let Some(why) = &agent.lost {
        return format!("{}: lost, {why}", agent.name);
    }
    let mut parts = vec![format!("{} bots", agent.bots)];
    parts.extend(agent.send_lag_p99_ns.map(|lag_ns| format!("send lag p99 {}", show_ns(lag_ns as f64))));
    parts.extend(agent.busy_share_max.map(|share| format!("busiest worker {}", show_share(share))));
    parts.push(format!("clock within {}", show_ns(agent.clock_bound_ns as f64)));
    parts.push(format!("over {}", agent.link));
    format!("{}: {}", agent.name, parts.join(", "))
}
