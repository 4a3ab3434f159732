use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bots::Scripts;
use engine::simulation::{Anything, End, Says, SimulatedServer, Times, Wire, simulate};
use measure::{Measure, Quantile, Trial};
use plan::{BotSettings, HttpVersion, Ramp, ScriptBots, ScriptLoad, WorkerPlan};

use crate::{SECOND_NS, sum_up, worker_plan};

const PLAYER: &str = r#"
export default async function player(bot) {
  const ws = await bot.websocket("/play");
  ws.send("login");
  bot.check("welcome", (await ws.next((m) => m.startsWith("welcome"), { within: "2s" })) === "welcome");
  bot.ready();
  ws.onmessage = ({ data }) => {
    if (data.startsWith("ack ")) bot.answered("move", Number(data.slice(4)));
    else if (data === "snapshot") bot.tick();
  };
  for await (const n of bot.every("198.8ms")) bot.ask("move", n, () => ws.send("move " + n));
}"#;

pub(crate) fn script(text: &str, http: Option<HttpVersion>, load: ScriptLoad) -> BotSettings {
    let owned = text.to_owned();
    let mut bundle = script::bundle(Path::new("player.ts"), &move |_| Ok(owned.clone())).unwrap();
    if load.has_sessions() {
        bundle.names.operations.push(plan::SESSION.to_owned());
    }
    ScriptBots {
        file: "player.ts".to_owned(),
        bundle: Arc::new(bundle),
        env: Vec::new(),
        env_values: BTreeMap::new(),
        row_values: BTreeMap::new(),
        http,
        has_ticks: true,
        load,
    }
    .into()
}

pub(crate) fn held(
    text: &str,
    units: u64,
    hold_s: u64,
    stall: Option<(u64, u64)>,
    server: &mut impl SimulatedServer,
) -> Trial {
    held_with_words(text, units, hold_s, stall, server).0
}

/// The trial, and the errors that were kept verbatim.
fn held_with_words(
    text: &str,
    units: u64,
    hold_s: u64,
    stall: Option<(u64, u64)>,
    server: &mut impl SimulatedServer,
) -> (Trial, Vec<String>) {
    let http = server.requests_at_once().map(|_| HttpVersion::Two);
    // Ten thousand bots must join within a second too.
    let ramp = Ramp::Every(2_000_000.min(SECOND_NS / units));
    let bots = script(text, http, ScriptLoad::default());
    let plan = WorkerPlan { tick_period_ns: 50_000_000, ramp, ..worker_plan(bots, units) };
    let times =
        Times { hold_ns: 10 * SECOND_NS, drain_ns: (10 + hold_s) * SECOND_NS, generator_stall: stall };
    let seconds = simulate::<Scripts<Wire<Anything>>>(&plan, times, server);
    let words = seconds.iter().flat_map(|second| &second.samples).map(|(_, words)| words.clone()).collect();
    (sum_up(seconds, 10, 10 + hold_s), words)
}

#[track_caller]
fn check(trial: &Trial, measure: Measure, q: f64, expected_s: f64) {
    check_within(trial, measure, q, expected_s, 0.012);
}

#[track_caller]
fn check_within(trial: &Trial, measure: Measure, q: f64, expected_s: f64, share: f64) {
    let Quantile::Ns(ns) = trial.distribution(measure).quantile(q, 0) else { panic!("too few samples") };
    let read_s = ns as f64 / 1e9;
    assert!((read_s - expected_s).abs() <= expected_s * share, "q{q}: {read_s} s instead of {expected_s} s");
}

/// A game: a welcome for each login, an answer to each move unless it is frozen, and what `faults` plants.
#[derive(Default)]
struct Game {
    frozen_ns: u64,
    /// a snapshot every 50 ms to the first player, except from second 12 to 13
    has_snapshots: bool,
    is_closed_to_all: bool,
    answers_twice: bool,
    /// with numbers that were never requested
    answers_others: bool,
    is_silent: bool,
    throws_out: bool,
    moves: u64,
}

impl SimulatedServer for Game {
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        if self.has_snapshots && peer == 0 {
            let instants = (1..600).map(|tick| at_ns + tick * 50_000_000);
            for at_ns in instants.filter(|at_ns| !(12 * SECOND_NS..13 * SECOND_NS).contains(at_ns)) {
                says.message(at_ns, peer, "snapshot");
            }
        }
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let text = std::str::from_utf8(message).unwrap();
        let Some(number) = text.strip_prefix("move ") else {
            says.message(at_ns, peer, "motd");
            if !self.is_closed_to_all {
                says.message(at_ns + 1_000_000, peer, "welcome");
            }
            return;
        };
        self.moves += 1;
        if self.throws_out && self.moves.is_multiple_of(100) {
            return says.end(at_ns, peer, End::Code(4001));
        }
        if self.is_silent {
            return;
        }
        let into_ns = at_ns % (10 * SECOND_NS);
        let number = if self.answers_others { "-1" } else { number };
        let answer = format!("ack {number}");
        for _ in 0..if self.answers_twice { 2 } else { 1 } {
            says.message(at_ns + self.frozen_ns.saturating_sub(into_ns), peer, answer.as_str());
        }
    }
}

/// Oracle CO, as for the native bots: p95 0.500 s, p99 0.900 s, p99.9 0.990 s.
#[test]
fn a_server_that_freezes_is_read_through_a_script_as_it_is_felt() {
    let trial = held(PLAYER, 200, 100, None, &mut Game { frozen_ns: SECOND_NS, ..Game::default() });
    let flow = trial.flow();
    assert!((100_500..=100_700).contains(&flow.offered), "{flow:?}");
    assert_eq!((flow.sent, flow.failed, flow.lost), (flow.offered, 0, 0), "{flow:?}");
    check(&trial, Measure::Response, 0.95, 0.5);
    check(&trial, Measure::Response, 0.99, 0.9);
    check(&trial, Measure::Response, 0.999, 0.99);
    assert!(trial.errors.is_empty(), "{:?}", trial.errors);
}

/// JavaScript never paces: the core that is taken away moves no planned instant, and the lag says why the moves were late.
#[test]
fn a_script_whose_worker_stands_still_asks_late_and_leaves_nothing_out() {
    let stall = (50 * SECOND_NS, 51 * SECOND_NS);
    let trial = held(PLAYER, 200, 100, Some(stall), &mut Game::default());
    assert!((100_500..=100_700).contains(&trial.flow().offered), "{:?}", trial.flow());
    // Half a per cent of the moves lie in the upper half of one second, so phases by chance show.
    check_within(&trial, Measure::Response, 0.995, 0.5, 0.025);
    check_within(&trial, Measure::SendLag, 0.995, 0.5, 0.025);
}

#[test]
fn ticks_that_never_came_are_missed_and_not_one_late_one() {
    let trial = held(PLAYER, 1, 10, None, &mut Game { has_snapshots: true, ..Game::default() });
    let ticks = &trial.client_ticks;
    // 200 were due in ten seconds; the 20 of second 12 never came.
    assert_eq!((ticks.missed, ticks.on_time + ticks.over + ticks.under), (20, 180), "{ticks:?}");
}

#[test]
fn what_a_server_does_to_a_script_is_counted_by_its_cause() {
    let mut server = Game { is_closed_to_all: true, ..Game::default() };
    let (shut, words) = held_with_words(PLAYER, 20, 5, None, &mut server);
    assert_eq!(shut.flow().offered, 0);
    assert_eq!(shut.errors_before_hold.get("not in"), Some(&20), "{:?}", shut.errors_before_hold);
    let expected = "no message that matches within 2s; the last was: motd";
    assert!(words.iter().any(|words| words.contains(expected)), "{words:?}");

    let twice = held(PLAYER, 20, 5, None, &mut Game { answers_twice: true, ..Game::default() });
    let unexpected = twice.counters.get("unexpected").copied().unwrap_or(0);
    assert!(unexpected.abs_diff(twice.flow().answered) <= 20, "{unexpected} {:?}", twice.flow());

    let silent = held(PLAYER, 20, 5, None, &mut Game { is_silent: true, ..Game::default() }).flow();
    assert_eq!((silent.answered, silent.lost, silent.open_after), (0, 0, silent.sent), "{silent:?}");

    let thrown_out = held(PLAYER, 20, 5, None, &mut Game { throws_out: true, ..Game::default() });
    assert!(thrown_out.errors.contains_key("closed by the server"), "{:?}", thrown_out.errors);
    assert!(
        thrown_out.flow().not_sent > 0,
        "it goes on wanting what it cannot send: {:?}",
        thrown_out.flow()
    );
}

/// What was answered, of these late, and what came unexpectedly, as shares of what was sent.
#[test]
fn answers_that_were_not_asked_for_or_come_late_are_told_apart() {
    let game = Game::default;
    for (what, mut server, answered, late, unexpected) in [
        ("as asked", game(), 1.0, 0.0, 0.0),
        ("twice", Game { answers_twice: true, ..game() }, 1.0, 0.0, 1.0),
        ("without a question", Game { answers_others: true, ..game() }, 0.0, 0.0, 1.0),
        // Of every ten seconds, requests of the first three are answered after the freeze, two of them after the
        // patience of 1 s.
        ("after the patience", Game { frozen_ns: 3 * SECOND_NS, ..game() }, 1.0, 0.2, 0.0),
    ] {
        let trial = held(PLAYER, 20, 20, None, &mut server);
        let flow = trial.flow();
        let came = trial.counters.get("unexpected").copied().unwrap_or(0);
        for (count, share) in [(flow.answered, answered), (flow.late, late), (came, unexpected)] {
            let read = count as f64 / flow.sent as f64;
            assert!(
                (read - share).abs() < 0.03,
                "{what}: {read} instead of {share}: {flow:?}, unexpected {came}"
            );
        }
    }
}

/// The first bot does what the row says; nineteen play on. What is counted of it, and its words.
#[test]
fn a_bot_that_goes_wrong_is_counted_by_its_cause_and_the_others_play_on() {
    for (does, cause, expected) in [
        (
            "for (;;);",
            "script stopped",
            "the bot ran for more than 1 s of CPU time without giving way and was stopped (at player.ts:3:",
        ),
        ("throw new RangeError('too far');", "not in", "RangeError: too far (at player.ts:3:"),
        ("setTimeout(() => { throw 'in a callback'; }, 5);", "script error", "in a callback"),
        (
            "Promise.reject(new Error('left'));",
            "script error",
            "a promise that nobody awaited was rejected: Error: left (at player.ts:3:",
        ),
        ("JSON.parse('{not');", "not in", "SyntaxError: "),
        (
            "bot.ask('move', 'x', () => {}); bot.ask('move', 'x', () => {});",
            "script error",
            "the same name and key were asked again before the answer",
        ),
        ("bot.ask('mo' + 've!', 1, () => {});", "not in", "names must stand as string literals"),
        ("return;", "not in", "its function ended before the bot was in"),
    ] {
        let text = PLAYER.replace("\n  const ws", &format!("\n  if (bot.id === 0) {{ {does} }} const ws"));
        let (trial, words) = held_with_words(&text, 20, 5, None, &mut Game::default());
        assert_eq!(
            trial.errors_before_hold.get(cause),
            Some(&1),
            "{does}: {:?} {words:?}",
            trial.errors_before_hold
        );
        assert!(words.iter().any(|words| words.contains(expected)), "{does}: {words:?}");
        // Five a second of each.
        assert!(trial.flow().answered >= 19 * 24, "{does}: {:?}", trial.flow());
    }
}

#[test]
fn ten_thousand_scripts_that_all_throw_at_once_end_no_worker_and_hide_nothing() {
    let text = "export default async (bot) => { const ws = await bot.websocket(); bot.ready(); \
                setTimeout(() => { bot.gone.x; }, 12e3 - performance.now()); \
                ws.onmessage = ({ data }) => bot.answered('move', Number(data.slice(4))); \
                for await (const n of bot.every('2s')) bot.ask('move', n, () => ws.send('move ' + n)); };";
    let (trial, words) = held_with_words(text, 10_000, 4, None, &mut Game::default());
    assert_eq!(trial.errors.get("script error"), Some(&10_000), "{:?}", trial.errors);
    assert!(words.iter().any(|words| words.contains("player.ts:1:")), "{words:?}");
    assert!((19_000..=21_000).contains(&trial.flow().answered), "{:?}", trial.flow());
}

/// A login is answered after 1 ms and a move after up to a second, in one second of ten; each has its own times. Each
/// bot records a value per second, and none outside the hold counts.
#[test]
fn operations_of_a_script_have_their_own_times_and_its_values_their_own_distribution() {
    let text = "export default async (bot) => { const ws = await bot.websocket(); bot.ready(); \
                ws.onmessage = ({ data }) => { if (data === 'welcome') bot.answered('login', 'x'); \
                                               else bot.answered('move', Number(data.slice(4))); }; \
                for await (const n of bot.every('1s')) { bot.record('damage', n % 2 === 0 ? 0 : 1.25); \
                  bot.ask('login', 'x', () => ws.send('login')); bot.ask('move', n, () => ws.send('move ' + n)); } };";
    let trial = held(text, 20, 30, None, &mut Game { frozen_ns: SECOND_NS, ..Game::default() });
    let p50 = |op: &str| match trial.of_ops[op].quantile(0.5, 0) {
        Quantile::Ns(ns) => ns as f64 / 1e9,
        other => panic!("{other:?}"),
    };
    assert!((p50("login") - 0.001).abs() < 0.0001, "{}", p50("login"));
    assert_eq!(trial.of_ops.keys().collect::<Vec<_>>(), ["login", "move"]);
    assert!(
        trial.of_ops["move"].max_ns() > Some(500_000_000) && trial.of_ops["login"].max_ns() < Some(2_000_000)
    );
    let damage = trial.values["damage"].value_summary().unwrap();
    assert_eq!((damage.count, damage.max, damage.mean), (600, Some(1.25), Some(0.625)));
}

#[test]
fn a_script_may_ask_in_one_turn_and_send_in_another() {
    let text = "export default async (bot) => { const ws = await bot.websocket(); bot.ready(); \
                ws.onmessage = ({ data }) => bot.answered('move', Number(data.slice(4))); \
                for await (const n of bot.every('100ms')) \
                  bot.ask('move', n, () => { setTimeout(() => ws.send('move ' + n), 10); }); };";
    let trial = held(text, 10, 10, None, &mut Game::default());
    let flow = trial.flow();
    // 100 questions a bot; the messages that carry them are counted too.
    assert!((1_990..=2_010).contains(&flow.offered), "{flow:?}");
    assert!((990..=1_010).contains(&flow.answered), "{flow:?}");
    check(&trial, Measure::Response, 0.5, 0.01);
}

/// Answers a close 30 ms later with this code, or never.
#[derive(Default)]
struct Door {
    answers_with: Option<u16>,
    goodbyes: Vec<(Option<u16>, String)>,
    closed: u64,
}

impl SimulatedServer for Door {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let Some((code, reason)) = Anything::goodbye(message) else { return };
        self.goodbyes.push((code, reason.to_owned()));
        says.message(at_ns + 10_000_000, peer, "too late");
        if let Some(code) = self.answers_with {
            says.end(at_ns + 30_000_000, peer, End::Code(code));
        }
    }

    fn closed(&mut self, _: u64, _: u64, _: &mut Says) {
        self.closed += 1;
    }
}

#[test]
fn a_script_closes_with_its_own_code_and_hears_the_servers() {
    let said = |code, reason: &str| vec![(code, reason.to_owned())];
    let opens = "await new Promise((r) => ws.onopen = r);";
    // What it does, with what the server answers, and what the script sees: state, code, clean or not, ms.
    let rows = [
        (opens, "ws.close(4000, 'bye')", Some(4001), "2 4001 true 30", said(Some(4000), "bye"), 0),
        (opens, "ws.close()", Some(1000), "2 1000 true 30", said(None, ""), 0),
        (opens, "ws.close(3000)", None, "2 1006 false 2000", said(Some(3000), ""), 1),
        ("", "ws.close(4000)", Some(1000), "2 1006 false 0", Vec::new(), 0),
        (opens, "ws.close(4000); if (1) return", Some(1000), "", said(Some(4000), ""), 1),
    ];
    for (opens, closes, answers_with, expected, goodbyes, closed) in rows {
        let text = format!(
            "export default async (bot) => {{ bot.ready(); const ws = new WebSocket('/'); {opens} \
             ws.onmessage = () => bot.fail('heard'); const at = performance.now(); {closes}; const state = ws.readyState; \
             await new Promise((r) => ws.onclose = ({{ code, wasClean }}) => \
               r(bot.fail([state, code, wasClean, Math.round(performance.now() - at)].join(' ')))); }};"
        );
        let mut door = Door { answers_with, ..Door::default() };
        let (_, words) = held_with_words(&text, 1, 1, None, &mut door);
        let expected = if expected.is_empty() { Vec::new() } else { vec![expected.to_owned()] };
        assert_eq!((words, door.goodbyes, door.closed), (expected, goodbyes, closed), "{closes}");
    }
}
