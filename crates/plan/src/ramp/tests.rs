use super::*;
use crate::{Flags, resolve};

fn plan(target: &str, ramp: &str, rungs: &str) -> Plan {
    let flags = Flags::of(&format!("{target} --ramp {ramp} --rungs {rungs}"));
    resolve(&flags, None, 1).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[track_caller]
fn check(ramp: &str, rungs: &str, expected: Option<&str>) {
    assert_eq!(ramp_sentence(&plan("arena", ramp, rungs)).as_deref(), expected, "{ramp}");
}

#[test]
fn the_sentence_names_pace_and_total_of_the_largest_rung() {
    check("2ms", "500,2000", Some("ramp: one game every 2 ms, 4 s for 2000 games"));
    check("2ms/each", "500,2000", Some("ramp: one game every 2 ms, 4 s for 2000 games"));
    check("500/s", "501", Some("ramp: 500 games per second, 1 s for 501 games"));
    check("60s/all", "50,100", Some("ramp: all games of a rung within 60 s, one every 600 ms for 100 games"));
    check("1s", "1", Some("ramp: one game every 1 s, 0 s for 1 game"));
    check("0s", "1000", None);
}

#[test]
fn the_total_is_offered_where_a_ramp_takes_more_than_five_minutes_and_only_there() {
    let says = "ramp: one game every 60 s, 99 minutes for 100 games; for 60 s in all write --ramp 60s/all";
    check("60s", "20,100", Some(says));
    let says =
        "ramp: one game every 2 ms, 33.3 minutes for 1000000 games; for 60 s in all write --ramp 60s/all";
    check("2ms", "1000000", Some(says));
    check("1s", "301", Some("ramp: one game every 1 s, 5 minutes for 301 games"));
    let says = "ramp: one game every 1 s, 5 minutes for 302 games; for 1 s in all write --ramp 1s/all";
    check("1s", "302", Some(says));
    // A total is accepted, however long.
    let says = "ramp: all games of a rung within 60 minutes, one every 36 s for 100 games";
    check("60m/all", "100", Some(says));
}

#[test]
fn a_total_is_spread_over_the_units_of_each_rung() {
    let rule = RampRule::Total { within: 60_000_000_000 };
    for (units, last_ns) in
        [(0, 0), (1, 0), (2, 30_000_000_000), (100, 59_400_000_000), (600, 59_900_000_000)]
    {
        let length_ns = length_ns(rule.of(units), units);
        assert!(length_ns.abs_diff(last_ns) < 100, "{units}: {length_ns}");
    }
    let plan = plan("arena", "60s/all", "100,600");
    assert!(crate::needs(&plan, 100.0).ramp_ns.abs_diff(59_400_000_000) < 100);
    assert!(crate::needs(&plan, 600.0).ramp_ns.abs_diff(59_900_000_000) < 100);
}

#[test]
fn where_the_load_is_a_rate_its_connections_arrive() {
    let flags = Flags::of("http://127.0.0.1:1/ --ramp 10s/all --rate 1000 --connections 50");
    let plan = resolve(&flags, None, 1).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let says = "ramp: all connections of a rung within 10 s, one every 200 ms for 50 connections";
    assert_eq!(ramp_sentence(&plan).as_deref(), Some(says));
}

#[test]
fn a_plan_stored_before_totals_existed_reads_as_its_pace() {
    let check = |json: &str, rule: RampRule| {
        assert_eq!(serde_json::from_str::<RampRule>(json).unwrap(), rule);
        assert_eq!(serde_json::to_string(&rule).unwrap(), json);
    };
    check(r#"{"every":2000000}"#, RampRule::Pace(Ramp::Every(2_000_000)));
    check(r#"{"per_second":500.0}"#, RampRule::Pace(Ramp::PerSecond(500.0)));
    check(r#""at_once""#, RampRule::Pace(Ramp::AtOnce));
    check(r#"{"within":60000000000}"#, RampRule::Total { within: 60_000_000_000 });
}
