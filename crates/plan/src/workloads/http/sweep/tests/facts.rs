use super::*;

/// A sweep of single facts and of full pages, in one state of the server.
fn facts_and_pages() -> Plant {
    let cells = vec![cell("property", "background", "normal"), cell("object", "background", "normal")];
    Plant { cells, ..plant() }
}

#[test]
fn single_facts_are_compared_with_the_page_that_holds_them_all() {
    // A loop that gives either one answer per tick and requester: nine facts after a tick on both sides.
    let rungs = facts_and_pages().rungs();
    let says = "9 facts of an object: 9 requesters of property have them all in 33.3 ms (270.0/s facts, 9.0 per \
         tick), 1 requester of object in 33.3 ms (270.0/s facts, 9.0 per tick). Neither is sooner; the ticks \
         are";
    check(&rungs, "small_against_large", says);
    // Pages that take three ticks.
    let mut rungs = facts_and_pages().rungs();
    edited(&mut rungs, |rung| is(rung, "service", "object"), |rung| rung.rate_per_s /= 3.0);
    // The base of the page is confirmed by its neighbours.
    let says = "property have them all in 33.3 ms … object in 100 ms (90.0/s facts, 3.0 per tick). The single facts \
         win";
    check(&rungs, "small_against_large", says);
    let evidence = find(&rungs, "small_against_large").unwrap().evidence;
    let pair = &evidence["pairs"][0];
    assert_eq!((&evidence["facts"], &pair["sooner"]), (&json!(9), &json!("property")));
    assert_eq!((&pair["small"]["facts_per_s"], &pair["large"]["facts_per_s"]), (&json!(270.0), &json!(90.0)));
    assert_eq!(pair["small"]["cell"]["service"], "property");
    assert_eq!(pair["large"]["cell"]["service"], "object");
    // A loop with three slots needs three ticks for nine single facts.
    let says =
        "9 requesters of property have them all in 100 ms (90.0/s facts, 3.0 per tick) … The full page wins";
    check(&Plant { slots: 3.0, ..facts_and_pages() }.rungs(), "small_against_large", says);
    // Four requesters send requests in three rounds.
    let says =
        "4 requesters of property have them all in 100 ms (120.0/s facts, 4.0 per tick) … The full page wins";
    check(&Plant { loads: vec![1, 2, 3, 4], ..facts_and_pages() }.rungs(), "small_against_large", says);
}

#[test]
fn nothing_is_said_of_single_facts_where_a_side_is_missing_or_not_clean() {
    // Short answers are no facts of an object, however many bytes they move.
    silent(&plant().rungs(), "small_against_large");
    let rungs = facts_and_pages().rungs();
    let without = |which: &dyn Fn(&Rung) -> bool| {
        let mut rungs = rungs.clone();
        rungs.retain(|rung| !which(rung));
        rungs
    };
    silent(&without(&|rung| is(rung, "service", "object")), "small_against_large");
    silent(&without(&|rung| is(rung, "service", "property")), "small_against_large");
    silent(&without(&|rung| is(rung, "service", "object") && rung.load == 1.0), "small_against_large");
    // Another state of the server is a different comparison.
    let cells = vec![cell("property", "background", "normal"), cell("object", "foreground", "normal")];
    silent(&Plant { cells, ..plant() }.rungs(), "small_against_large");
    let mut failed = rungs.clone();
    edited(&mut failed, |rung| is(rung, "service", "property") && rung.load == 9.0, |rung| rung.failed = 1);
    silent(&failed, "small_against_large");
    let mut infirm = rungs;
    edited(
        &mut infirm,
        |rung| is(rung, "service", "object") && rung.load == 1.0,
        |rung| rung.rate_per_s = 17.0,
    );
    silent(&infirm, "small_against_large");
}
