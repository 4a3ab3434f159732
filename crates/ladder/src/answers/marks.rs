//! What five marks say for the answers of a run: the generator, the books, steadiness, disturbances, certainty.
//!
//! Each says what a part of the answer says, and how grave it is, so that the page judges nothing itself.

use serde::Serialize;
use serde_json::{Value, json};

use crate::capacity::Capacity;
use crate::schedule::SURE;
use crate::wording::{show_number, show_share};

/// What one of the five marks of a run says for its answers.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Standing {
    /// nothing against them
    Good,
    /// a reason for care
    Care,
    /// because of it a load has no verdict, or the answers contradict each other
    Bad,
}

impl Standing {
    pub fn of(is_doubt: bool, has_cost: bool) -> Standing {
        match (is_doubt, has_cost) {
            (_, true) => Standing::Bad,
            (true, _) => Standing::Care,
            _ => Standing::Good,
        }
    }
}

/// A mark as evidence of the answer.
pub(super) fn mark(id: &str, standing: Standing, text: &str) -> Value {
    json!({ "id": id, "standing": standing, "text": text })
}

/// How well the capacity is known.
pub(super) fn certainty(capacity: &Capacity) -> (Standing, String) {
    let is_reached = capacity.search.is_some_and(|search| search.is_reached(capacity));
    let (lower, upper) = (capacity.lower_bound, capacity.upper_bound);
    match (lower, upper, capacity.confidence) {
        (None, None, _) => (Standing::Bad, "no load could be judged".to_owned()),
        _ if !capacity.held_above_a_failure.is_empty() => {
            let held = capacity.held_above_a_failure.iter().map(|load| show_number(*load));
            let held = held.collect::<Vec<_>>().join(", ");
            (Standing::Bad, format!("{held} held although a smaller load failed"))
        }
        (Some(lower), Some(upper), Some(confidence)) => {
            let text = format!(
                "the capacity lies between {} and {} with {}",
                show_number(lower),
                show_number(upper),
                show_share(confidence)
            );
            (Standing::of(confidence < SURE && !is_reached, false), text)
        }
        (Some(_), Some(_), None) => {
            let text = "the two bounds were held too few times for a figure of confidence";
            (Standing::of(!is_reached, false), text.to_owned())
        }
        (Some(_), None, _) => {
            (Standing::of(!is_reached, false), "only a lower bound: nothing failed".to_owned())
        }
        (None, Some(_), _) => (Standing::Care, "only an upper bound: nothing held".to_owned()),
    }
}
