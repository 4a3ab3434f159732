use ::ladder::LoadUnit;
use proptest::prelude::*;

use super::*;
use crate::plan::{HoldLength, Ramp, RampRule, usual};
use crate::scheme::Scheme;
use crate::workloads::{ArenaBots, EchoBots, Pairing, WorkloadSettings};

mod allowed;
mod chat;
mod credentials;
mod grid;
mod handshake;
mod http;
mod leaderboard;
mod poll_loop_sweep;
mod protobuf;
mod script;
mod search;
mod stop;
mod ticks;

fn scenario(text: &str) -> Option<ScenarioText> {
    Some(ScenarioText { path: "scenarios/x.yaml".into(), text: text.into() })
}

/// What a command line over a scenario file comes to.
fn resolved(line: &str, file: Option<&str>) -> Result<Plan, String> {
    resolve(&Flags::of(line), file.and_then(scenario), 7).map(stored).map_err(|mistakes| mistakes.to_string())
}

/// The plan, which is stored and read back as it was.
fn stored(plan: Plan) -> Plan {
    let stored = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
    plan
}

/// The plan of a command line over a scenario file.
#[track_caller]
fn plan_over(line: &str, text: &str) -> Plan {
    resolved(line, Some(text)).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The plan of a scenario file without flags.
#[track_caller]
fn plan_of(text: &str) -> Plan {
    plan_over("scenarios/x.yaml", text)
}

/// The plan of a command line.
#[track_caller]
fn plan_of_flags(line: &str) -> Plan {
    resolved(line, None).unwrap_or_else(|mistakes| panic!("{line}: {mistakes}"))
}

/// The bots of a plan.
#[track_caller]
fn bots_of<T: WorkloadSettings>(plan: &Plan) -> &T {
    T::of(&plan.bots).unwrap_or_else(|| panic!("other bots: {plan:?}"))
}

/// The mistakes of a command line.
#[track_caller]
fn refusal(line: &str) -> String {
    resolved(line, None).expect_err(line)
}

/// Command lines as in a terminal: each `$ climb` is refused with the lines below it.
#[track_caller]
fn check_refusals(transcript: &str) {
    assert!(transcript.starts_with("$ climb"), "{transcript}");
    for told in transcript.split("$ climb").skip(1) {
        let (line, mistakes) = told.split_once('\n').expect("mistakes below the command");
        check(line.trim(), mistakes);
    }
}

/// All mistakes of a command line, one per line.
#[track_caller]
fn check(line: &str, mistakes: &str) {
    assert_eq!(refusal(line).lines().collect::<Vec<_>>(), trimmed(mistakes), "climb {line}");
}

/// All mistakes of a scenario file, one per line, without the file's name.
#[track_caller]
fn check_file(text: &str, mistakes: &str) {
    let told = resolved("scenarios/x.yaml", Some(text)).expect_err(text);
    let lines =
        told.lines().map(|line| line.strip_prefix("scenarios/x.yaml:").expect("a place").trim_start());
    assert_eq!(lines.collect::<Vec<_>>(), trimmed(mistakes), "{text}");
}

fn trimmed(lines: &str) -> Vec<&str> {
    lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// Words of the mistakes of a command line.
#[track_caller]
fn check_refused(line: &str, words: &str) {
    let told = refusal(line);
    assert!(told.contains(words), "climb {line}: {told}");
}

/// The objectives of a plan as they are written.
fn objectives_of(plan: &Plan) -> Vec<String> {
    plan.objectives.iter().map(ToString::to_string).collect()
}

/// The keys of a mapping, as a mistake lists them.
fn known_in(section: &str) -> String {
    let keys = settings().filter(|setting| !setting.key.is_empty() && setting.parent() == section);
    keys.map(Setting::name).collect::<Vec<_>>().join(", ")
}

#[test]
fn climb_arena_needs_nothing_else() {
    let plan = plan_of_flags("arena");
    let bots = BotSettings::Arena(ArenaBots {
        fast_ns: 110_000_000,
        slow_ns: 200_000_000,
        pairing: Pairing::Pipelined,
        snapshots: 0.01,
        longest_game_ns: 60_000_000_000,
    });
    let rungs = [500.0, 1000.0, 2000.0];
    let expected = Plan {
        objectives: vec!["ticks.late_share < 25%".parse().unwrap()],
        ..usual::plan(
            ("arena", TickSource::Log(None), 60.0),
            bots,
            (&rungs, LoadUnit::Games, Ramp::Every(2_000_000)),
        )
    };
    assert_eq!(plan, expected);
}

#[test]
fn a_url_is_a_server_that_runs_already_and_is_treated_with_care() {
    let plan = plan_of_flags("ws://127.0.0.1:42069");
    let SubjectSource::Running { target, pid: None, cgroup: None } = &plan.subject.source else {
        panic!("{plan:?}")
    };
    assert_eq!((target.scheme, target.host.as_str(), target.port), (Scheme::Ws, "127.0.0.1", 42069));
    assert_eq!(plan.subject.ticks, TickSource::None);
    let arena: &ArenaBots = bots_of(&plan);
    assert_eq!((arena.pairing, arena.snapshots), (Pairing::Strict, 0.0));
    assert_eq!(objectives_of(&plan), ["errors == 0"], "without ticks there is nothing else to judge by");
}

#[test]
fn a_foreign_server_seen_by_its_clients_is_judged_by_what_they_see() {
    let plan = plan_of_flags("ws://127.0.0.1:1 --ticks client");
    assert_eq!(plan.subject.ticks, TickSource::Client);
    assert_eq!(bots_of::<ArenaBots>(&plan).snapshots, 0.01);
    assert_eq!(plan.objectives[0].to_string(), "ticks.late_share < 25%");
    let plan = plan_of_flags("ws://127.0.0.1:1 --snapshots 0.5");
    assert_eq!(plan.subject.ticks, TickSource::Client);
}

#[test]
fn the_documented_scenario_is_read() {
    let plan = plan_of(
        "subject:\n  target: ws://127.0.0.1:42069\n  start: node dist/server.js --logPath game.log\n  \
         ticks: { log: game.log }\nbots: arena\nladder: { rungs: [500, 1000, 2000], ramp: 2ms, hold: 60s }\n\
         objectives: [ ticks.late_share < 25%, response.p99 < 50ms ]\n",
    );
    assert_eq!(plan.scenario.as_deref(), Some("scenarios/x.yaml"));
    assert_eq!(plan.subject.name, "ws://127.0.0.1:42069");
    assert!(
        matches!(&plan.subject.source, SubjectSource::Started { command, .. } if command.starts_with("node dist"))
    );
    assert_eq!(plan.subject.ticks, TickSource::Log(Some("game.log".into())));
    assert_eq!(plan.ladder.hold, HoldLength::Time(60_000_000_000));
    assert_eq!(objectives_of(&plan), ["ticks.late_share < 25%", "response.p99 < 50ms"]);
}

#[test]
fn flags_go_before_the_scenario_and_the_scenario_before_defaults() {
    let text = "subject: { target: arena, options: [--tick-rate, 30] }\n\
                bots: { kind: arena, fast: 120ms, snapshots: 5% }\n\
                ladder: { rungs: [10, 20], hold: 5s, ramp: 1ms, restart_per_rung: true }\n\
                objectives: [errors == 0]\nseed: 1\nname: from-file\ngenerator: { workers: 2 }\n";
    let line =
        "scenarios/x.yaml --rungs 7 --fast 130ms --seed 18446744073709551615 --objective 'ticks.missed == 0'";
    let restart = settings().find(|setting| setting.flag == "--restart-per-rung").unwrap();
    let flags = Flags::of(line).with(restart, "false");
    let plan = resolve(&flags, scenario(text), 9).unwrap();
    assert_eq!(plan.ladder.rungs, [7.0]);
    assert_eq!(plan.ladder.hold, HoldLength::Time(5_000_000_000));
    assert_eq!(plan.ladder.ramp, RampRule::Pace(Ramp::Every(1_000_000)));
    assert!(!plan.ladder.restart_per_rung);
    assert_eq!(plan.ladder.settle_ns, 2_000_000_000);
    assert_eq!(plan.seed, u64::MAX);
    assert_eq!(plan.name.as_deref(), Some("from-file"));
    assert_eq!(plan.generator.workers, Some(2));
    assert_eq!(plan.objectives.len(), 1);
    assert_eq!(plan.subject.tick_rate_hz, 30.0);
    for (line, finds) in [
        ("--ticks statsd=:8125", true),
        ("--ticks jsonl=a", true),
        ("--ticks statsd=:8125 --tick-rate 30", false),
        ("--ticks log=a", false),
    ] {
        let plan = plan_of_flags(&format!("http://127.0.0.1:1 --rate 9 {line}"));
        assert_eq!(plan.subject.finds_tick_rate(), finds, "{line}");
    }
    let arena: &ArenaBots = bots_of(&plan);
    assert_eq!((arena.fast_ns, arena.snapshots), (130_000_000, 0.05));
}

#[test]
fn rungs_are_climbed_in_ascending_order() {
    let plan = plan_of_flags("arena --rungs '2000, 500,1000'");
    assert_eq!(plan.ladder.rungs, [500.0, 1000.0, 2000.0]);
}

#[test]
fn a_drawn_seed_survives_readers_with_53_bits() {
    let plan = resolve(&Flags::of("arena"), None, u64::MAX).unwrap();
    assert_eq!(plan.seed, 9_007_199_254_740_991);
}

#[test]
fn the_tick_rate_is_the_servers_own_and_reaches_it_whichever_way_it_was_said() {
    let rate = |line: &str| {
        let plan = plan_of_flags(line);
        let SubjectSource::BuiltIn { options, .. } = plan.subject.source else { panic!() };
        (plan.subject.tick_rate_hz, options.join(" "))
    };
    assert_eq!(rate("arena -- --tick-rate 30"), (30.0, "--tick-rate 30".into()));
    assert_eq!(rate("arena -- --tick-rate=20 --ticker catch-up").0, 20.0);
    assert_eq!(rate("arena --tick-rate 30"), (30.0, "--tick-rate 30".into()));
    assert_eq!(rate("arena --tick-rate 30 -- --tick-rate 30").1, "--tick-rate 30");
    assert_eq!(rate("arena --tick-period 20ms"), (50.0, "--tick-rate 50".into()));
    check_refusals(
        "$ climb arena -- --tick-rate 0
           options after --: must be between 1 and 1000, got 0 (for example: climb arena -- --tick-rate 30)
         $ climb arena --tick-rate 60 -- --tick-rate=30
           --tick-rate: the tick rate is 60 here and 30 among the server's options
         $ climb arena --tick-rate 60 --tick-period 33ms
           --tick-period: the tick rate and the tick period say the same; leave one of them out
         $ climb arena --ticks csv=frames.csv
           --ticks: a built-in server writes its ticks as a log; name only where (log=FILE) (for example: --ticks \
             log=game.log)",
    );
}

#[test]
fn echo_clients_answer_to_a_rate_or_to_each_other() {
    let plan =
        plan_of("subject: { target: ws://127.0.0.1:1 }\nbots: { kind: echo, rate: 0, payload_bytes: 100 }\n");
    assert_eq!(plan.bots, BotSettings::Echo(EchoBots { rate_per_s: 0.0, payload_bytes: 100 }));
    assert_eq!(plan.arrivals, Arrivals::Closed);
    assert_eq!(plan.ladder.load_unit, LoadUnit::Clients);
    assert_eq!(plan.subject.tick_rate_hz, 0.0);
    let plan = plan_of_flags("ws://127.0.0.1:1 --bots echo");
    assert_eq!(plan.arrivals, Arrivals::Even);
}

#[test]
fn subjects_that_are_not_there_are_refused_with_what_is() {
    let unknown = |word: &str| {
        format!(
            "climb: unknown subject \"{word}\"; built in: arena, chat, poll-loop, leaderboard, grid, limited, \
             or a URL (ws://, wss://, tcp://, udp://, irc://, nats://, mqtt://, redis://, rediss://, hazelcast://, hazelcasts://, grpc://, grpcs://, http:// or https://) or a scenario file (*.yaml)"
        )
    };
    check("areena", &format!("{}; did you mean arena? (for example: climb arena)", unknown("areena")));
    check("zebra", &format!("{} (for example: climb arena)", unknown("zebra")));
    for (written, urls) in [
        ("127.0.0.1:42069", "http://127.0.0.1:42069 or ws://127.0.0.1:42069"),
        ("localhost:8080/a?b", "http://localhost:8080/a?b or ws://localhost:8080/a?b"),
        ("localhost", "http://localhost or ws://localhost"),
        ("example:6379", "redis://example:6379, http://example:6379 or ws://example:6379"),
        ("[::1]:1", "http://[::1]:1 or ws://[::1]:1"),
    ] {
        check(written, &format!("climb: \"{written}\" does not say which protocol: {urls}?"));
    }
    check_refusals(
        "$ climb
           climb: it does not say which server to climb (for example: climb arena)
         $ climb echo
           climb: no server for echo bots is built in; name one that runs by its URL (ws://, wss:// or tcp://), or let \
             one be started: stepladder climb ws://127.0.0.1:80 --start \"stepladder serve arena --listen \
             127.0.0.1:80\"
         $ climb x.yaml
           climb: the scenario file was not read
         $ climb wx://h
           climb: unknown scheme \"wx\"; known: ws, wss, tcp, udp, irc, nats, mqtt, redis, rediss, hazelcast, \
             hazelcasts, grpc, grpcs, http, https; did you mean ws? (for example: climb arena)
         $ climb ws://me:hunter2@h
           climb: the URL holds a user name or password; plans are stored and printed: write ws://h; ws:// has none, \
             and a server that asks for them reads them from a header: --header 'Authorization: Bearer ${VARIABLE}'",
    );
}

#[test]
fn servers_of_others_are_not_loaded_unless_named() {
    check_refusals(
        "$ climb ws://8.8.8.8
           climb: 8.8.8.8 is outside loopback and private ranges; a load test of a server that is not yours is an \
             attack: if it is yours, say --i-may-load 8.8.8.8",
    );
    let named = "ws://8.8.8.8 --i-may-load 8.8.8.8";
    assert_eq!(plan_of_flags(named).may_load, ["8.8.8.8"]);
    check_refusals(
        "$ climb ws://169.254.169.254 --i-may-load 169.254.169.254
           climb: 169.254.169.254 is a cloud's metadata service; it is never loaded
         $ climb arena --i-may-load ws://h:1
           --i-may-load: \"ws://h:1\" is not a host name or address; without scheme, port and path (for example: \
             --i-may-load game.example.org)",
    );
    let both =
        plan_over("x.yaml --i-may-load a.example", "subject: { target: arena }\ni_may_load: [b.example]\n");
    assert_eq!(both.may_load, ["a.example", "b.example"]);
}

#[test]
fn every_mistake_is_told_at_once() {
    check_refusals(
        "$ climb aerna --rungs 500,abc,0,500 --hold 60 --ramp '2 parsecs' --settle -1s --patience 10us --arrivals evn \
             --seed -1 --snapshots 5 --workers 0 --spin 1ms --open-attempts 1.5 --name ' ' --objective \
             'ticks.late_shar < 25%'
           climb: unknown subject \"aerna\"; built in: arena, chat, poll-loop, leaderboard, grid, limited, or a URL \
             (ws://, wss://, tcp://, udp://, irc://, nats://, mqtt://, redis://, rediss://, hazelcast://, \
             hazelcasts://, grpc://, grpcs://, http:// or https://) or a scenario file (*.yaml); did you mean arena? \
             (for example: climb arena)
           --snapshots: a share is between 0 and 1, or 0% and 100%; got 5 (for example: --snapshots 1%)
           --rungs: \"abc\" is not a number (for example: --rungs 500,1000,2000)
           --rungs: \"0\" is zero: a rung without load measures nothing (for example: --rungs 500,1000,2000)
           --rungs: rung 500 is there twice; each load is climbed once (for example: --rungs 500,1000,2000)
           --ramp: \"2 parsecs\" has an unknown unit \"parsecs\"; known: ns, us, ms, s, m, h, /s (for example: --ramp \
             2ms)
           --settle: \"-1s\" is negative (for example: --settle 2s)
           --hold: \"60\" has no unit; say 60s or 60ms (for example: --hold 60s)
           --objective: objective \"ticks.late_shar < 25%\": there is no figure \"ticks.late_shar\"; did you mean \
             ticks.late_share? For example: ticks.late_share < 25%
           --arrivals: \"evn\" is unknown; known: poisson, even, burst, closed; did you mean even? (for example: \
             --arrivals even)
           --patience: must be between 1ms and 604800s, got 10us (for example: --patience 1s)
           --seed: must be between 0 and 18446744073709551615, got -1 (for example: --seed 42)
           --workers: must be between 1 and 1024, got 0 (for example: --workers 2)
           --spin: must be between 0s and 50us, got 1ms (for example: --spin 20us)
           --open-attempts: \"1.5\" is not a whole number (for example: --open-attempts 10)
           --name: nothing is written (for example: --name master)",
    );
}

#[test]
fn a_ramp_says_its_pace_or_its_total_on_the_command_line_and_in_a_file() {
    let total = RampRule::Total { within: 60_000_000_000 };
    assert_eq!(plan_of_flags("arena --ramp 60s/all").ladder.ramp, total);
    let file =
        |ramp: &str| format!("subject: {{ target: arena }}\nladder: {{ rungs: [10], ramp: {ramp} }}\n");
    assert_eq!(plan_of(&file("60s/all")).ladder.ramp, total);
    assert_eq!(plan_of(&file("2ms/each")).ladder.ramp, RampRule::Pace(Ramp::Every(2_000_000)));
    check_file(
        &file("60s/some"),
        "2: ladder.ramp: \"60s/some\" has an unknown unit \"/some\"; known: /s after a number, /each or /all after a \
           time (for example: ramp: 2ms)",
    );
    check_refusals(
        "$ climb arena --ramp 60s/
           --ramp: \"60s/\" has an unknown unit \"/\"; known: /s after a number, /each or /all after a time (for \
             example: --ramp 2ms)
         $ climb arena --ramp 5000/all
           --ramp: \"5000\" has no unit; say 5000s or 5000ms (for example: --ramp 2ms)",
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    check_refusals(
        "$ climb arena --start 'node x' --pid 1
           --start: start is for servers of your own, but arena is built in: it is started and watched by itself
           --pid: pid is for servers of your own, but arena is built in: it is started and watched by itself
         $ climb ws://127.0.0.1:1 --start 'node x' --pid 1
           --start: the server either runs already (pid) or is started here (start), not both
         $ climb ws://127.0.0.1:1 --pid 0
           --pid: must be between 1 and 4194304, got 0 (for example: --pid 4711)
         $ climb ws://127.0.0.1:1 -- --port 1
           options after --: options for the server (--port 1) are for built-in servers; put those of your own server \
             into its command
         $ climb ws://127.0.0.1:1 --ca ca.pem --insecure
           --ca: ca is about certificates, but the target is not over TLS, as wss://, https:// or rediss:// are
           --insecure: insecure is about certificates, but the target is not over TLS, as wss://, https:// or \
             rediss:// are
         $ climb wss://127.0.0.1:1 --ca ca.pem --insecure
           --insecure: ca names whom to trust, insecure trusts everybody; only one of them can be meant
         $ climb ws://127.0.0.1:1 --ticks log
           --ticks: a server of your own writes its log where it likes; name the file (for example: --ticks \
             log=game.log)
         $ climb ws://127.0.0.1:1 --ticks openmetrics=:8125
           --ticks: \":8125\" is no metrics endpoint, as http://127.0.0.1:9100/metrics is: only http:// is asked (for \
             example: --ticks log=game.log)
         $ climb ws://127.0.0.1:1 --ticks openmetrics=http://127.0.0.1:9100/metrics
           --ticks: a metric does not tell how often the server should tick; say it, as with --tick-rate 30
         $ climb http://127.0.0.1:1 --rate 9 --tick-rate 30 --ticks openmetrics=http://127.0.0.1:9100 --objective \
             ticks.isr<1
           --objective: ticks.isr would never be measured: buckets tell ticks by class only; ask for ticks.late_share, \
             ticks.over or ticks.under
         $ climb http://127.0.0.1:1 --search --rate 9 --ticks statsd=:8125
           --ticks: a search begins with a load that may be too much, so the ticks do not tell how often the server \
             should tick; say it, as with --tick-rate 30
         $ climb ws://127.0.0.1:1 --tick-rate 30 --ticks openmetrics=http://8.8.8.8/metrics
           --ticks: 8.8.8.8 is outside loopback and private ranges; a load test of a server that is not yours is an \
             attack: if it is yours, say --i-may-load 8.8.8.8
         $ climb ws://127.0.0.1:1 --ticks client --snapshots 0
           --ticks: the clients' view needs ticks, but nothing tells them: name the tick log, or let clients ask for \
             snapshots
         $ climb ws://127.0.0.1:1 --restart-per-rung
           --restart-per-rung: only a server that is started here can be started again for each rung; name its command \
             (start)
         $ climb ws://127.0.0.1:1 --hold 2Mticks --objective 'ticks.missed == 0'
           --hold: 2Mticks needs ticks, but nothing tells them: name the tick log, or let clients ask for snapshots \
             (for example: --hold 60s)
           --objective: ticks.missed == 0 needs ticks, but nothing tells them: name the tick log, or let clients ask \
             for snapshots
         $ climb ws://127.0.0.1:1 --objective 'subject.cpu_share < 90%' --objective 'audit == ok'
           --objective: subject.cpu_share would never be measured: the server's process is not known; name it (--pid \
             N) or its control group (--watch-cgroup PATH), or start it here (--start)
           --objective: audit would never be measured: only the bots of leaderboard audit; use failed == 0 for wrong \
             answers, or deliveries.lost == 0 for broadcasts
         $ climb arena --fast 300ms
           --fast: player 1 (300ms) must fire faster than player 2 (200ms), or the winner would prove nothing
         $ climb arena --arrivals poisson
           --arrivals: arena bots cannot arrive poisson: players fire by a clock of their own, each with a phase of \
             its own (even); --ramp says how they come
         $ climb arena --rungs 1.5
           --rungs: rung 1.5 is not a whole number of games (for example: --rungs 500,1000,2000)
         $ climb arena --rungs ''
           --rungs: there is no rung to climb (for example: --rungs 500,1000,2000)",
    );
}

#[test]
fn bots_that_do_not_fit_are_refused() {
    check_refusals(
        "$ climb arena --bots arean
           --bots: unknown bots \"arean\"; built in: arena, chat, http, protobuf, leaderboard, grid, script, echo; did \
             you mean arena? (for example: --bots arena)
         $ climb arena --bots grid
           --bots: grid bots cannot talk to arena; leave the bots out, and its own are taken
         $ climb arena --bots shooter.ts
           shooter.ts: cannot be read: files were not read
         $ climb arena --bots echo
           --bots: echo bots cannot talk to arena; leave the bots out, and its own are taken
         $ climb ws://127.0.0.1:1 --bots echo --fast 1ms --hold 5games
           --fast: fast is for arena bots; these are echo bots
           --hold: 5games counts games, but these bots play none (for example: --hold 60s)",
    );
}

#[test]
fn mistakes_in_a_file_name_its_line() {
    check_file(
        "subject:\n  target: arena\nladder:\n  rungz: [500]\n  hold: [1]\nfoo: 1\nseed: x\n",
        &format!(
            "4: unknown key \"rungz\" in ladder; known: {}; did you mean rungs? (for example: rungs: [500, 1000, 2000])
             5: ladder.hold: this is a list, but one value belongs here (for example: hold: 60s)
             6: unknown key \"foo\" in the scenario; known: {} (for example: subject: {{ target: \
               ws://127.0.0.1:42069 }})
             7: seed: \"x\" is not a number (for example: seed: 42)",
            known_in("ladder"),
            known_in("")
        ),
    );
    check_file(
        "subject:\n  target: areena\n  tick: 1\nladder:\n  rungs:\n    - 500\n    - none\n  hold: 60\n\
         objectives: [ticks.late_shar < 1]\nseed: x\ngenerator: { realtime: perhaps }\n",
        "2: subject.target: unknown subject \"areena\"; built in: arena, chat, poll-loop, leaderboard, grid, limited, or \
           a URL (ws://, wss://, tcp://, udp://, irc://, nats://, mqtt://, redis://, rediss://, hazelcast://, \
           hazelcasts://, grpc://, grpcs://, http:// or https://) or a scenario file (*.yaml); did you mean arena? \
           (for example: target: ws://127.0.0.1:42069)
         3: unknown key \"tick\" in subject; known: target, start, pid, cgroup, ticks, tick_rate, tick_period, \
           options; did you mean ticks? (for example: ticks: { log: game.log })
         7: ladder.rungs: \"none\" is not a number (for example: rungs: [500, 1000, 2000])
         8: ladder.hold: \"60\" has no unit; say 60s or 60ms (for example: hold: 60s)
         9: objectives: objective \"ticks.late_shar < 1\": there is no figure \"ticks.late_shar\"; did you mean \
           ticks.late_share? For example: ticks.late_share < 25%
         10: seed: \"x\" is not a number (for example: seed: 42)
         11: generator.realtime: \"perhaps\" is neither true nor false (for example: realtime: true)",
    );
    check_file(
        "bots: arena\n",
        "subject.target: it does not say which server to climb (for example: target: ws://127.0.0.1:42069)",
    );
    check_file(
        "subject: { target: arena }\nladder: { rungs: [] }\n",
        "ladder.rungs: there is no rung to climb (for example: rungs: [500, 1000, 2000])",
    );
    check_file(
        "subject:\n  target: ws://127.0.0.1:1\n  ticks: { openmetrics: \":8125\" }\n",
        "3: subject.ticks: \":8125\" is no metrics endpoint, as http://127.0.0.1:9100/metrics is: only http:// is \
           asked (for example: ticks: { log: game.log })",
    );
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_mistakes_in_the_flags() {
    assert_eq!(
        resolved("scenarios/x.yaml --hold 60", Some("subject: [\n")).unwrap_err(),
        "scenarios/x.yaml:1: this cannot be read as YAML: unclosed bracket '['\n\
         --hold: \"60\" has no unit; say 60s or 60ms (for example: --hold 60s)"
    );
}

proptest! {
    #[test]
    fn no_file_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let _ = resolve(&Flags::of("x.yaml"), scenario(&text), 1);
    }

    #[test]
    fn nothing_that_looks_like_a_scenario_makes_the_reader_panic(
        lines in proptest::collection::vec(
            "( {0,4})(subject|target|bots|ladder|rungs|hold|objectives|ticks|<<|[a-z&*!|>-]{1,5})?:?( [-\\[\\]{}a-z0-9,:#&*%~\"' ]{0,12})?", 0..12)
    ) {
        let _ = resolve(&Flags::of("x.yaml"), scenario(&lines.join("\n")), 1);
    }

    #[test]
    fn no_flags_make_the_resolver_panic(
        subject in "arena|chat|poll-loop|echo|(http|ws|irc|tcp)://127.0.0.1|\\PC{0,10}",
        words in proptest::collection::vec(
            proptest::option::weighted(0.2, "[0-9a-zA-Z%@=./:;,#${} -]{0,14}|\\PC{0,10}"), settings().count())
    ) {
        let mut flags = Flags::climb(subject);
        for (setting, word) in settings().filter(|setting| setting.is_option()).zip(words) {
            flags.say(setting, word);
        }
        if let Err(mistakes) = resolve(&flags, None, 1) {
            prop_assert!(!mistakes.0.is_empty());
        }
    }
}

#[test]
fn a_text_that_is_longer_than_its_setting_needs_is_refused_by_its_length_and_never_repeated() {
    let long = |count: usize| "x".repeat(count);
    let refused = |setting: &Setting, count: usize| {
        let flags = Flags::of("http://127.0.0.1:9/a").with(setting, long(count));
        resolve(&flags, None, 7).err().map(|mistakes| mistakes.to_string()).unwrap_or_default()
    };
    assert_eq!(
        refused(&NAME, 201),
        "--name: a text of 201 bytes is too long; at most 200 bytes belong here (for example: --name master)"
    );
    assert_eq!(refused(&NAME, 200), "");
    assert!(refused(&START, 4097).starts_with("--start: a text of 4097 bytes is too long; at most 4096"));
    assert_eq!(refused(&START, 4096), "");
    assert_eq!(refused(&BODY, 1 << 20), "", "a body may be large");
    assert!(refused(&BODY, (16 << 20) + 1).contains("at most 16777216 bytes"));

    let command = format!("subject:\n  target: 'ws://127.0.0.1:9'\n  start: {}\n", long(50_000));
    check_file(
        &command,
        "3: subject.start: a text of 50000 bytes is too long; at most 4096 bytes belong here (for example: start: \
           node server.js)",
    );
    let mistakes_of = |part: &str| {
        let text =
            format!("subject: {{ target: 'http://127.0.0.1:9' }}\nbots: {{ requests: [{{ {part} }}] }}\n");
        resolved("scenarios/x.yaml", Some(&text)).err().unwrap_or_default()
    };
    for part in [
        format!("get: /{}", long(70_000)),
        format!("get: /a, headers: {{ A: {} }}", long(70_000)),
        format!("get: /a, headers: {{ ? {} : b }}", long(5_000)),
    ] {
        let said = mistakes_of(&part);
        assert!(said.contains("is too long; at most") && said.len() < 300, "{said}");
    }
    assert_eq!(mistakes_of(&format!("get: /a, headers: {{ X-Long: {} }}", long(8_000))), "");
    // An unknown key is not repeated either.
    let said = resolved("scenarios/x.yaml", Some(&format!("? {}\n: 1\n", long(50_000)))).unwrap_err();
    assert!(said.len() < 300, "{said}");
}

#[test]
fn a_file_with_a_byte_order_mark_and_lines_of_another_system_is_read_like_any() {
    let of_windows = plan_of("\u{feff}subject: chat\r\nallow: [duplicates, errors]\r\n");
    assert_eq!(of_windows, plan_of("subject: chat\nallow: [duplicates, errors]\n"));
}
