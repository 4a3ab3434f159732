use super::*;
use crate::workloads::{ChatBots, ChatDialect, FaultKind, FaultSpec};
use ::ladder::LoadUnit;

/// The chat's bots of a plan.
fn chat_of(plan: &Plan) -> &ChatBots {
    bots_of(plan)
}

#[test]
fn climb_chat_needs_nothing_else() {
    let plan = plan_of_flags("chat");
    let bots = BotSettings::Chat(ChatBots {
        dialect: ChatDialect::Lines,
        gap_min_ns: 500_000_000,
        gap_max_ns: 1_000_000_000,
        line_min_bytes: 15,
        line_max_bytes: 58,
        talkers: None,
        room: "lobby".into(),
        echoes: false,
        misbehave: Vec::new(),
    });
    let rungs = [128.0, 256.0, 512.0, 1024.0];
    let expected = Plan {
        objectives: vec![
            "deliveries.lost == 0".parse().unwrap(),
            "deliveries.latency.p99 < 50ms".parse().unwrap(),
            "deliveries.duplicated == 0".parse().unwrap(),
            "refused == 0".parse().unwrap(),
        ],
        ..usual::plan(
            ("chat", TickSource::None, 0.0),
            bots,
            (&rungs, LoadUnit::Clients, Ramp::PerSecond(2000.0)),
        )
    };
    assert_eq!(plan, expected);
}

#[test]
fn the_scheme_decides_how_a_foreign_chat_is_spoken_to() {
    for (url, dialect, port) in [
        ("tcp://127.0.0.1", ChatDialect::Lines, 4001),
        ("irc://localhost", ChatDialect::Irc, 6667),
        ("nats://127.0.0.1:9", ChatDialect::Nats, 9),
    ] {
        let plan = plan_of_flags(url);
        assert_eq!(chat_of(&plan).dialect, dialect, "{url}");
        let SubjectSource::Running { target, .. } = &plan.subject.source else { panic!("{plan:?}") };
        assert_eq!(target.port, port);
        assert_eq!(plan.subject.ticks, TickSource::None);
        assert_eq!(plan.objectives[0].to_string(), "deliveries.lost == 0");
    }
    let plan = plan_of_flags("tcp://127.0.0.1 --bots echo");
    assert!(matches!(plan.bots, BotSettings::Echo(_)));
    assert_eq!(plan.ladder.rungs, [500.0, 1000.0, 2000.0], "an echo's load does not grow with its square");
}

#[test]
fn every_setting_of_the_chat_may_stand_on_the_command_line_or_in_the_file() {
    let by_flags = plan_of_flags(
        "tcp://127.0.0.1 --gap 750ms --line '20 .. 40' --talkers 10 --room Side_room-2 --echoes --arrivals poisson \
         --misbehave slow-reader=5% --misbehave reconnect-storm=20%@30s",
    );
    let by_file = plan_of(
        "subject: { target: tcp://127.0.0.1 }\narrivals: poisson\nbots:\n  kind: chat\n  gap: 750ms\n  line: 20..40\n  \
         talkers: 10\n  room: Side_room-2\n  echoes: true\n  misbehave: [slow-reader=5%, reconnect-storm=20%@30s]\n",
    );
    assert_eq!(by_flags.bots, by_file.bots);
    assert_eq!((by_flags.arrivals, by_file.arrivals), (Arrivals::Poisson, Arrivals::Poisson));
    let storm = FaultSpec { kind: FaultKind::ReconnectStorm, share: 0.2, period_ns: 30_000_000_000 };
    let slow = FaultSpec { kind: FaultKind::SlowReader, share: 0.05, period_ns: 0 };
    let expected = ChatBots {
        dialect: ChatDialect::Lines,
        gap_min_ns: 750_000_000,
        gap_max_ns: 750_000_000,
        line_min_bytes: 20,
        line_max_bytes: 40,
        talkers: Some(10),
        room: "Side_room-2".into(),
        echoes: true,
        misbehave: vec![slow, storm],
    };
    assert_eq!(chat_of(&by_file), &expected);
}

#[test]
fn flags_replace_the_files_fault_and_other_bots_forget_the_files_settings() {
    let text = "subject: { target: tcp://127.0.0.1 }\n\
                bots: { kind: chat, echoes: true, misbehave: [stalled=1%], line: 16 }\n";
    let plan = plan_over("scenarios/x.yaml --misbehave malformed=2%", text);
    assert_eq!(chat_of(&plan).misbehave.len(), 1);
    assert_eq!(chat_of(&plan).misbehave[0].kind, FaultKind::Malformed);
    assert_eq!(chat_of(&plan).line_max_bytes, 16);
    let plan = plan_over("scenarios/x.yaml --bots echo", text);
    assert!(matches!(plan.bots, BotSettings::Echo(_)));
}

#[test]
fn a_built_in_chat_and_its_bots_agree_on_the_echo_whichever_way_it_was_said() {
    let echo = |line: &str| {
        let plan = plan_of_flags(line);
        let SubjectSource::BuiltIn { options, .. } = &plan.subject.source else { panic!("{plan:?}") };
        (chat_of(&plan).echoes, options.join(" "))
    };
    assert_eq!(echo("chat"), (false, String::new()));
    assert_eq!(echo("chat -- --backlog 9 --echo"), (true, "--backlog 9 --echo".into()));
    assert_eq!(echo("chat --echoes -- --echo"), (true, "--echo".into()));
    assert_eq!(echo("chat --echoes"), (true, "--echo".into()));
    check_file(
        "subject: { target: chat, options: [--echo] }\nbots:\n  kind: chat\n  echoes: false\n",
        "4: bots.echoes: the server echoes lines (--echo is among its options), but the bots are set not to expect that",
    );
}

#[test]
fn protocols_without_an_echo_refuse_it() {
    check_refusals(
        "$ climb irc://127.0.0.1 --echoes
           --echoes: an IRC server never sends a line back to its sender; leave echoes out
         $ climb nats://127.0.0.1 --echoes
           --echoes: the bots ask a NATS server not to send them their own lines; leave echoes out",
    );
    let plan = plan_of("subject: { target: irc://127.0.0.1 }\nbots: { kind: chat, echoes: false }\n");
    assert!(!chat_of(&plan).echoes);
}

#[test]
fn every_mistake_of_a_chat_is_told_at_once() {
    check_refusals(
        "$ climb chat --gap 1s..500ms --line 14..58 --talkers 0 --room #lobby --arrivals burst --misbehave stalled \
             --misbehave slow-raeder=5% --misbehave half-open=0% --objective 'ticks.late_share < 25%' --objective \
             'deliveries.lst == 0'
           --gap: the range 1s..500ms is empty; write the smaller end first (for example: --gap 500ms..1s)
           --line: must be between 15 and 4096, got 14 (for example: --line 15..58)
           --talkers: must be between 1 and 10000000, got 0 (for example: --talkers 100)
           --room: \"#lobby\" is no name for a room: up to 32 letters, digits, - and _, a letter or digit first, and \
             no # in front (for example: --room lobby)
           --misbehave: stalled does not say how many misbehave; write stalled=5% (for example: --misbehave \
             slow-reader=5%)
           --misbehave: \"slow-raeder\" is unknown; known: slow-reader, stalled, half-open, malformed, \
             reconnect-storm; did you mean slow-reader? (for example: --misbehave slow-reader=5%)
           --misbehave: \"0%\" is zero: no bot would misbehave; leave it out (for example: --misbehave slow-reader=5%)
           --objective: ticks.late_share < 25% needs ticks, but nothing tells them: name the tick log, or let clients \
             ask for snapshots
           --objective: objective \"deliveries.lst == 0\": there is no figure \"deliveries.lst\"; did you mean \
             deliveries.lost? For example: deliveries.lost == 0
           --arrivals: chat bots cannot arrive burst: people speak by a clock of their own (even) or at random \
             (poisson); --ramp says how they come",
    );
    check_file(
        "subject: { target: chat }\nbots:\n  kind: chat\n  gap: 500\n  lien: 15..58\n  misbehave:\n    - stalled=60%\n    \
         - slow-reader=60%\n    - stalled=1%\n",
        &format!(
            "4: bots.gap: \"500\" has no unit; say 500s or 500ms (for example: gap: 500ms..1s)
             5: unknown key \"lien\" in bots; known: {}; did you mean line? (for example: line: 15..58)
             8: bots.misbehave: the shares of the crowd that misbehave add up to 120%, but there is only 100%
             9: bots.misbehave: stalled is there twice; each kind of fault has one share (for example: misbehave: \
               [slow-reader=5%])",
            known_in("bots")
        ),
    );
}

#[test]
fn a_pace_that_no_bot_keeps_is_refused_with_the_figure() {
    check_refusals(
        "$ climb chat --gap 500us..1s
           --gap: 500us asks each bot for 2000 lines/s, but one keeps at most 1000/s; take more bots (for example: \
             --gap 500ms..1s)",
    );
}

#[test]
fn a_line_that_irc_would_cut_off_is_refused_with_what_fits() {
    assert_eq!(chat_of(&plan_of_flags("irc://127.0.0.1 --line 15..399")).line_max_bytes, 399);
    check_refusals(
        "$ climb irc://127.0.0.1 --line 15..400
           --line: a line of 400 bytes does not fit into IRC: with the sender's name in front and room #lobby at most \
             399 of a message's 512 bytes are left for it
         $ climb irc://127.0.0.1 --line 399 --room lobbies
           --line: a line of 399 bytes does not fit into IRC: with the sender's name in front and room #lobbies at \
             most 397 of a message's 512 bytes are left for it",
    );
    assert_eq!(chat_of(&plan_of_flags("nats://h.localdomain --line 400")).line_max_bytes, 400);
}

#[test]
fn bots_and_servers_that_cannot_talk_to_each_other_are_refused() {
    check_refusals(
        "$ climb ws://127.0.0.1 --bots chat
           --bots: chat bots do not speak over ws://; they speak over tcp://, irc://, nats:// or mqtt://
         $ climb irc://127.0.0.1 --bots echo
           --bots: echo bots do not speak over irc://; they speak over ws://, wss:// or tcp://
         $ climb tcp://127.0.0.1 --bots arena
           --bots: arena bots do not speak over tcp://; they speak over ws:// or wss://
         $ climb arena --bots chat
           --bots: chat bots cannot talk to arena; leave the bots out, and its own are taken
         $ climb chat --bots arena
           --bots: arena bots cannot talk to chat; leave the bots out, and its own are taken",
    );
}

#[test]
fn settings_of_other_bots_are_refused() {
    check_refusals(
        "$ climb ws://127.0.0.1 --gap 1s --echoes --misbehave stalled=1%
           --gap: gap is for chat bots; these are arena bots
           --echoes: echoes is for chat bots; these are arena bots
           --misbehave: misbehave is for chat bots; these are arena bots
         $ climb chat --fast 1s
           --fast: fast is for arena bots; these are chat bots",
    );
    check_file(
        "subject: { target: chat }\nbots: { kind: chat, rate: 10 }\n",
        "2: bots.rate: rate is for echo bots; these are chat bots",
    );
    check_refusals(
        "$ climb chat --ticks log=x.log --tick-rate 60
           --ticks: chat has no ticks, so ticks would say nothing about it; leave it out
           --tick-rate: chat has no ticks, so tick_rate would say nothing about it; leave it out",
    );
    plan_of_flags("chat --ticks none");
}

#[test]
fn a_misspelt_word_does_not_bring_forth_further_complaints() {
    let server = refusal("chatt --gap 1s --talkers 5");
    assert!(server.lines().count() == 1 && server.contains("did you mean chat?"), "{server}");
    let bots = refusal("chat --gap 1s --bots chta");
    assert!(bots.lines().count() == 1 && bots.contains("did you mean chat?"), "{bots}");
    check_refused("127.0.0.1:6667", "does not say which protocol: irc://127.0.0.1:6667, http://");
}

#[test]
fn only_a_chat_is_judged_by_its_deliveries() {
    for objective in [
        "deliveries.lost == 0",
        "deliveries.duplicated == 0",
        "deliveries.reordered == 0",
        "deliveries.late < 10",
        "deliveries.dropped == 0",
        "deliveries.latency.p50 < 1ms",
        "deliveries.latency.max < 1s",
    ] {
        plan_of_flags(&format!("chat --objective '{objective}'"));
        check_refused(&format!("arena --objective '{objective}'"), "these bots send no broadcasts");
    }
    for url in ["irc://127.0.0.1", "nats://127.0.0.1"] {
        let line = format!("{url} --objective 'deliveries.dropped == 0'");
        check_refused(&line, "do not report what they dropped");
    }
    let whole = "chat --objective 'deliveries.lost == 0' --misbehave stalled=70% --misbehave malformed=30%";
    check_refused(whole, "the whole crowd misbehaves");
    let plan = plan_of_flags("chat --misbehave stalled=100%");
    assert_eq!(plan.objectives[0].to_string(), "errors == 0", "there is nobody to judge deliveries by");
}

#[test]
fn echo_clients_with_a_rate_may_arrive_at_random() {
    assert_eq!(plan_of_flags("tcp://127.0.0.1 --bots echo").arrivals, Arrivals::Even);
    let poisson = plan_of_flags("tcp://127.0.0.1 --bots echo --arrivals poisson");
    assert_eq!(poisson.arrivals, Arrivals::Poisson);
    check_refusals(
        "$ climb tcp://127.0.0.1 --bots echo --arrivals closed
           --arrivals: echo bots cannot arrive closed: clients with a rate send at equal gaps (even) or at random ones \
             (poisson)",
    );
}
