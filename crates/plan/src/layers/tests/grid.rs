use super::{bots_of, check_refusals, objectives_of, plan_of, plan_of_flags};
use crate::plan::{Arrivals, Plan};
use crate::worker_plan::needs;
use crate::workloads::{GridBots, GridKeys, GridModel, GridOp};
use ::ladder::LoadUnit;

fn grid_of(plan: &Plan) -> &GridBots {
    bots_of(plan)
}

fn usual() -> GridBots {
    GridBots {
        op: GridOp::Get,
        value_bytes: 3,
        keys: GridKeys::One,
        connections: 1,
        model: GridModel::Closed,
        ttl_ms: None,
    }
}

#[test]
fn a_data_grid_is_climbed_by_operations_in_flight_over_one_connection() {
    for target in ["redis://127.0.0.1:6379", "hazelcast://127.0.0.1:5701/prices"] {
        let plan = plan_of_flags(target);
        assert_eq!(*grid_of(&plan), usual());
        assert_eq!(plan.ladder.rungs, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert_eq!((plan.ladder.load_unit, plan.arrivals), (LoadUnit::InFlight, Arrivals::Closed));
        assert_eq!(objectives_of(&plan), ["errors == 0", "response.p99 < 50ms"]);
        assert_eq!(needs(&plan, 1000.0).connections_most, 1);
    }
}

#[test]
fn every_setting_of_the_grid_may_stand_on_the_command_line_or_in_the_file() {
    let flags = plan_of_flags(
        "redis://127.0.0.1 --read-write 9:1 --value 1KiB --keys zipf:1000 --connections 8 --ttl 1500ms --rungs 4,100",
    );
    let file = plan_of(
        "subject: { target: redis://127.0.0.1 }\nladder: { rungs: [4, 100] }\n\
         bots: { kind: grid, op: '9:1', value: 1KiB, keys: zipf:1000, connections: 8, ttl: 1500ms }\n",
    );
    for plan in [flags, file] {
        let op = GridOp::Shares { gets: 9, sets: 1 };
        let expected = GridBots {
            op,
            value_bytes: 1024,
            keys: GridKeys::Zipf(1000),
            connections: 8,
            ttl_ms: Some(1500),
            ..usual()
        };
        assert_eq!(*grid_of(&plan), expected);
        // An operation in flight uses at most one connection.
        assert_eq!(needs(&plan, 4.0).connections_most, 4);
        assert_eq!(needs(&plan, 100.0).connections_most, 8);
    }
}

#[test]
fn a_rate_makes_operations_per_second_of_the_loads() {
    for plan in [
        plan_of_flags("redis://127.0.0.1 --rate 1000,20000 --connections 4"),
        plan_of(
            "subject: { target: redis://127.0.0.1 }\nladder: { rate: [1000, 20000] }\nbots: { kind: grid, connections: 4 }\n",
        ),
    ] {
        assert_eq!(*grid_of(&plan), GridBots { model: GridModel::Open, connections: 4, ..usual() });
        assert_eq!(
            (plan.ladder.rungs.as_slice(), plan.ladder.load_unit),
            (&[1000.0, 20000.0][..], LoadUnit::Requests)
        );
        assert_eq!(plan.arrivals, Arrivals::Poisson);
        assert_eq!((plan.bots.units(20000.0), plan.bots.rate_per_s(20000.0)), (4, 20000.0));
        assert_eq!(needs(&plan, 20000.0).connections_most, 4);
    }
}

#[test]
fn what_a_grid_cannot_do_is_refused() {
    check_refusals(
        "$ climb redis://127.0.0.1 --keys two
           --keys: \"two\" is unknown; known: one, uniform:N, zipf:N (for example: --keys zipf:1000)
         $ climb redis://127.0.0.1 --connections 0
           --connections: must be between 1 and 10000, got 0 (for example: --connections 256)
         $ climb redis://127.0.0.1 --op get --read-write 9:1
           --read-write: op and read_write both say what operations do; leave one of them out
         $ climb redis://127.0.0.1 --ttl 0s
           --ttl: must be between 1ms and 86400s, got 0s (for example: --ttl 10s)
         $ climb redis://127.0.0.1 --requesters 1,2
           --requesters: requesters is for http bots; these are grid bots
         $ climb arena --op get
           --op: op is for grid bots; these are arena bots",
    );
}
