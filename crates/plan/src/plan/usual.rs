//! A default plan, for tests that state only what differs.

use ::ladder::{LoadUnit, Repeats};

use super::*;

/// A climb of a built-in server by these bots, without objectives.
pub(crate) fn plan(
    (server, ticks, tick_rate_hz): (&str, TickSource, f64),
    bots: BotSettings,
    (rungs, load_unit, ramp): (&[f64], LoadUnit, Ramp),
) -> Plan {
    Plan {
        subject: Subject {
            name: server.into(),
            source: SubjectSource::BuiltIn { server: server.into(), options: Vec::new() },
            ticks,
            compared_ticks: Vec::new(),
            tick_rate_hz,
        },
        bots,
        handshake: Handshake::default(),
        ladder: Ladder {
            rungs: rungs.to_vec(),
            load_unit,
            ramp: RampRule::Pace(ramp),
            settle_ns: 2_000_000_000,
            hold: HoldLength::Time(30_000_000_000),
            restart_per_rung: false,
            cells: Vec::new(),
            is_open_ended: false,
            stop: None,
            from_above: false,
            repeat: Repeats::default(),
            overload: Vec::new(),
            recovery_ns: None,
            lengthened: Vec::new(),
            lengthens: true,
            search: None,
        },
        objectives: Vec::new(),
        gates: Vec::new(),
        allowed: Vec::new(),
        arrivals: Arrivals::Even,
        patience_ns: 1_000_000_000,
        seed: 7,
        generator: Generator {
            workers: None,
            realtime: false,
            spin_ns: 0,
            open_attempts: 10,
            calibrate: true,
        },
        networks: Networks::default(),
        name: None,
        note: None,
        scenario: None,
        may_load: Vec::new(),
        profile: Profile::Off,
        pprof: None,
    }
}
