use super::*;
use crate::Allowed;

#[test]
fn what_was_allowed_is_said_where_trust_is_asked_about_and_nothing_is_said_where_nothing_was() {
    let climb = |allowed: &[Allowed]| asked_of(&[arena(500.0, 0.01)], Asked { allowed, ..Asked::default() });
    let says = "…As the plan allows it, the server may deliver a message twice (duplicates), and answer late (late).…";
    check_text(&climb(&[Allowed::Duplicates, Allowed::Late]), "can_i_trust_it", says);
    assert!(!text_of(&climb(&[]), "can_i_trust_it").contains("allow"));
}
