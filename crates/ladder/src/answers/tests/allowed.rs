use super::*;
use crate::Allowed;

#[test]
fn what_was_allowed_is_said_where_trust_is_asked_about_and_nothing_is_said_where_nothing_was() {
    let trust = |allowed: &[Allowed]| {
        let asked = Asked { allowed, ..Asked::default() };
        text_of(&answers(&facts(), None, vec![arena(500.0, 0.01)], asked), "can_i_trust_it").to_owned()
    };
    let both = trust(&[Allowed::Duplicates, Allowed::Late]);
    let says =
        "As the plan allows it, the server may deliver a message twice (duplicates), and answer late (late).";
    assert!(both.contains(says), "{both}");
    assert!(!trust(&[]).contains("allow"));
}
