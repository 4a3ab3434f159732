//! The capacity by each further goal of a search, in words.

use serde_json::json;

use super::conclusions::{estimate, load_of};
use crate::capacity::{Capacity, GoalCapacity};
use crate::contract::{Climb, Conclusion};
use crate::wording::show_number;

/// `None` where there is but one goal.
pub(super) fn conclusion(climb: &Climb) -> Option<Conclusion> {
    let goals = &climb.capacity.goals;
    let sentences: Vec<String> = goals.iter().map(|goal| sentence(climb, goal)).collect();
    let evidence = json!({
        "goals": goals.iter().map(|goal| json!({
            "objectives": goal.objectives, "lower_bound": goal.capacity.lower_bound, "upper_bound": goal.capacity.upper_bound,
            "first_failing_signal": goal.capacity.first_failing_signal, "confidence": goal.capacity.confidence,
        })).collect::<Vec<_>>(),
    });
    (!goals.is_empty()).then(|| Conclusion::new("goals", &sentences, evidence))
}

/// `With response.p99 <= 20ms: 180 req/s held, 190 req/s did not (response.p99).`
fn sentence(climb: &Climb, goal: &GoalCapacity) -> String {
    let capacity = &goal.capacity;
    let of = |load| load_of(climb, load);
    let signal =
        capacity.first_failing_signal.as_ref().map_or(String::new(), |signal| format!(" ({signal})"));
    let found = match (capacity.lower_bound, capacity.upper_bound) {
        (Some(lower), Some(upper)) => format!("{} held, {} did not{signal}.", of(lower), of(upper)),
        (Some(lower), None) => format!("{} held, and nothing failed.", of(lower)),
        (None, Some(upper)) => format!("{} did not hold{signal}, and no smaller load did.", of(upper)),
        (None, None) => "no load could be judged.".to_owned(),
    };
    let found = std::iter::once(found).chain(estimate(capacity)).chain(above_a_failure(capacity));
    format!("With {}: {}", goal.objectives.join(", "), found.collect::<Vec<_>>().join(" "))
}

/// Loads that contradict the bounds of the goal.
fn above_a_failure(capacity: &Capacity) -> Option<String> {
    let loads: Vec<String> = capacity.held_above_a_failure.iter().map(|load| show_number(*load)).collect();
    (!loads.is_empty()).then(|| format!("{} held although a smaller load failed.", loads.join(", ")))
}
