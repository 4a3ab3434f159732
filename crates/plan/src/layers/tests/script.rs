//! What a script sets for its climb, and what overrides it.

use std::io;
use std::path::Path;

use ::ladder::LoadUnit;

use super::*;
use crate::plan::Arrivals;
use crate::workloads::{ScriptBots, ScriptLoad};

/// The plan of a script with these options, or what is wrong.
fn planned(options: &str, flags: &str) -> Result<Plan, String> {
    let text = format!("export const options = {{ {options} }};\nexport default (bot) => bot.count('x');");
    let read = move |path: &Path| match path.to_str() {
        Some("bot.ts") => Ok(text.clone()),
        _ => Err(io::Error::other("no such file")),
    };
    let flags = Flags::of(&format!("bot.ts --target ws://127.0.0.1:9 {flags}"));
    resolve_with(&flags, None, 7, &read).map_err(|mistakes| mistakes.to_string())
}

#[test]
fn options_of_a_script_count_until_a_flag_says_otherwise() {
    let plan = planned("hold: 3000, ramp: '1ms', rungs: [2, 1], arrivals: 'even'", "").unwrap();
    assert_eq!((plan.ladder.hold, &plan.ladder.rungs), (HoldLength::Time(3_000_000_000), &vec![1.0, 2.0]));
    assert_eq!((plan.ladder.load_unit, plan.arrivals), (LoadUnit::Clients, Arrivals::Even));
    let load = |options, flags| ScriptBots::of(&planned(options, flags).unwrap().bots).unwrap().load;
    assert_eq!(load("repeat: true", ""), ScriptLoad::Bots { repeat: true });
    let sessions = "load: 'sessions/s', sessions_max: 50";
    assert_eq!(load(sessions, "--sessions-max 70"), ScriptLoad::Sessions { most: 70 });
    assert_eq!(load("", "--load sessions/s"), ScriptLoad::Sessions { most: 10_000 });
    let plan =
        planned(&format!("{sessions}, rungs: [0.5, 120], objectives: ['session.p99 < 60s']"), "").unwrap();
    assert_eq!((plan.ladder.load_unit, plan.arrivals), (LoadUnit::Sessions, Arrivals::Poisson));
    let needs = crate::needs(&plan, 120.0);
    assert_eq!((needs.connections, needs.connections_most, needs.opens_per_s), (0, 50, 120.0));
    assert_eq!(
        plan.bots.drain_ns(plan.patience_ns, &plan.objectives),
        60_000_000_000,
        "as long as the bound"
    );
    let even =
        planned("load: 'sessions/s', arrivals: 'poisson', hold: '10s'", "--arrivals even --rungs 10/s")
            .unwrap();
    assert_eq!((even.arrivals, &even.ladder.rungs), (Arrivals::Even, &vec![10.0]));
    // Ten a second through a settle of 2 s and a hold that may double, and a few more by chance.
    assert!((220..=310).contains(&crate::bots_total(&even, 10.0)), "{}", crate::bots_total(&even, 10.0));
}

#[test]
fn options_that_mean_nothing_are_refused_with_place_and_remedy() {
    for (options, flags, expected) in [
        ("rung: [1]", "", "bot.ts: options: unknown option \"rung\"; did you mean rungs? known: rungs, hold"),
        ("rungs: 100", "", "bot.ts: options.rungs: "),
        ("rungs: 100", "", "for example: rungs: [500, 1000, 2000]"),
        ("rungs: [1.5]", "", "bot.ts: options.rungs: "),
        ("hold: ['3s']", "", "bot.ts: options.hold: "),
        ("hold: 'soon'", "", "bot.ts: options.hold: "),
        ("hold: 'soon'", "", "(for example: hold: \"60s\")"),
        ("ticks: 'often'", "", "bot.ts: options.ticks: "),
        ("patience: true", "", "bot.ts: options.patience: "),
        ("repeat: 'often'", "", "bot.ts: options.repeat: "),
        ("load: 'session/s'", "", "bot.ts: options.load: "),
        ("load: 'session/s'", "", "did you mean sessions/s?"),
        ("arrivals: 'poisson'", "", "bot.ts: options.arrivals: "),
        ("load: 'sessions/s', arrivals: 'burst'", "", "sessions are planned by a clock (poisson, even)"),
        ("load: 'sessions/s', repeat: true", "", "bot.ts: options.repeat: with sessions/s a new bot begins"),
        ("load: 'sessions/s', ramp: '2ms'", "", "bot.ts: options.ramp: sessions/s have no ramp"),
        ("sessions_max: 5", "", "bot.ts: options.sessions_max: a bound on sessions belongs to sessions/s"),
        ("", "--sessions-max 5", "--sessions-max: a bound on sessions belongs to sessions/s"),
        ("load: 'sessions/s', sessions_max: 0", "", "bot.ts: options.sessions_max: "),
        ("proto: 'game.proto'", "", "bot.ts: options.proto: messages of a script are its own"),
    ] {
        let told = planned(options, flags).expect_err(options);
        assert!(told.contains(expected), "{options} {flags}: {told}");
    }
    let own =
        "export const options = { repeat: true }; export default (bot) => bot.measure('session', () => {});";
    let read = |_: &Path| Ok(own.to_owned());
    let flags = Flags::of("bot.ts --target ws://127.0.0.1:9");
    let told =
        resolve_with(&flags, None, 7, &read).expect_err("it measures a session of its own").to_string();
    assert!(told.contains("the script names an operation \"session\""), "{told}");
}
