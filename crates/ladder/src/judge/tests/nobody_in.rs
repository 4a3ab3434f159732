//! A server that never accepted a client during the run has shown nothing; one that did, and then accepts none, has
//! failed.

use measure::{Entry, Flow, MetricNames, Role, Trial};

use super::*;

/// The same trial, but what is done to the connections of each second.
fn with_connections(builder: &TrialBuilder, edit: impl Fn(u32, &mut measure::Connections)) -> Trial {
    let entries = builder.entries().into_iter().map(|entry| match entry {
        Entry::Interval(mut second) => {
            second.flows.iter_mut().flatten().for_each(|flow| *flow = Flow::default());
            let index = second.index;
            edit(index, &mut second.connections);
            Entry::Interval(second)
        }
        other => other,
    });
    Trial::from_entries(builder.build().head, &entries.collect::<Vec<_>>(), 0)
}

/// No attempt succeeded.
fn refused(builder: &TrialBuilder) -> Trial {
    with_connections(builder, |_, connections| {
        (connections.failed[0], connections.opened) = (connections.asked, 0);
        (connections.open_min, connections.open_end) = (0, 0);
    })
}

/// All came in during the ramp, and none was left when the hold began.
fn lost(builder: &TrialBuilder) -> Trial {
    with_connections(builder, |_, connections| (connections.open_min, connections.open_end) = (0, 0))
}

#[test]
fn a_server_that_never_let_a_client_in_does_not_fail_and_one_that_did_does() {
    let mut builder = TrialBuilder::asking(20.0);
    (builder.load_unit, builder.hold_s) = (LoadUnit::Clients, 10);
    let nobody_let_in = TrialBuilder::chat(20).not_admitted(20, 10).build();
    let some_let_in = TrialBuilder::chat(20).not_admitted(19, 10).build();
    let mut of_script = lost(&builder);
    let names = MetricNames::new(&[], &[], &["script_ms"], &[]);
    of_script.head.metric_names = names.with_counter_roles(&[("script_ms", Role::ScriptTime)]);
    for (trial, is_first_contact, verdict, words) in [
        (refused(&builder), true, Inconclusive, "no client was let in"),
        (refused(&builder), true, Inconclusive, "20 refused"),
        (refused(&builder), false, Fail, "attempts failed (refused)"),
        (nobody_let_in.clone(), true, Inconclusive, "20 not let in; the first: had asked 10 s before"),
        (nobody_let_in, false, Fail, "had not let in 20 of 20 clients"),
        (some_let_in, true, Fail, "had not let in 19 of 20 clients"),
        (lost(&builder), true, Fail, "only 0 of 20 connections open"),
        (lost(&builder), false, Fail, "only 0 of 20 connections open"),
        (of_script, true, Fail, "or its function had returned; let it last as long as the load"),
    ] {
        let judgement = judge(&trial, None, &Criteria { is_first_contact, ..asking_terms() });
        let reason = judgement.reason.unwrap_or_default();
        assert_eq!(judgement.verdict, verdict, "{is_first_contact}: {reason}");
        assert!(reason.contains(words), "\"{words}\" is not in: {reason}");
    }
}
