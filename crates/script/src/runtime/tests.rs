use std::path::Path;

use super::*;
use crate::bundle::bundle;
use crate::command::{Data, Key};

mod bot;
mod requests;
mod web;

fn played(text: &str) -> Script {
    let owned = text.to_owned();
    let read = move |_: &Path| Ok(owned.clone());
    let bundle = bundle(Path::new("bot.ts"), &read).unwrap();
    let play = Play { target: "ws://127.0.0.1:8080/play?a=1".to_owned(), seed: 7, ..Play::default() };
    Script::new(&Arc::new(bundle), &play).unwrap()
}

fn commands(script: &mut Script) -> Vec<Command> {
    let mut all = Vec::new();
    script.take_commands(&mut all);
    all.into_iter().map(|(_, command)| command).collect()
}

/// Which of two files, and which function of it, however the script says how its stacks are written.
#[test]
fn time_counts_for_the_function_that_takes_it_and_not_for_its_callers() {
    let codec = "type N = number;\n\nexport const decode = (rounds: N) => {\n  let sum = 0;\n\
                 for (let i = 0; i < rounds; i++) sum ^= i;\n  return sum;\n};\n";
    let bot = "import { decode } from './codec';\nError.prepareStackTrace = () => { throw 1; };\n\
               export default function player() {\n  for (let i = 0; i < 200000; i++) Math.abs(i);\n  decode(5e6);\n}\n";
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("codec.ts"), codec).unwrap();
    std::fs::write(place.path().join("bot.ts"), bot).unwrap();
    let bundle = bundle(&place.path().join("bot.ts"), &|path| std::fs::read_to_string(path)).unwrap();
    let mut script = Script::new(&Arc::new(bundle), &Play::default()).unwrap();
    script.start(0, 0, 0);
    let functions = script.take_functions();
    let (busy, all) = (script.take_busy(), functions.iter().map(|one| one.time).sum::<Duration>());
    assert_eq!(
        (functions[0].name.as_str(), functions[0].place.as_str()),
        ("decode", "codec.ts:3"),
        "{functions:?}"
    );
    assert!(
        functions[0].time > busy * 6 / 10 && all <= busy && all > busy * 8 / 10,
        "{functions:?} of {busy:?}"
    );
    assert!(script.take_functions().is_empty());
    assert_eq!(commands(&mut script), [Command::Ended]);
}

#[test]
fn a_client_logs_in_moves_and_hears_its_answers() {
    let mut script = played(
        r#"
        export default async function player(bot: any) {
          const ws = await bot.websocket("/play", { headers: { "X-Token": "t" }, protocols: ["game"] });
          ws.send(JSON.stringify({ type: "login", id: bot.id }));
          const welcome = JSON.parse(await ws.next((m: string) => JSON.parse(m).type === "welcome"));
          bot.check("seat", welcome.seat === 4);
          bot.ready();
          ws.onmessage = ({ data }: { data: string }) => {
            const m = JSON.parse(data);
            if (m.type === "ack") bot.answered("move", m.seq);
            else bot.tick();
          };
          for await (const n of bot.every("50ms", { phase: 0 })) bot.ask("move", n, () => ws.send("m" + n));
        }"#,
    );
    script.start(3, 17, 1_000);
    let opened = commands(&mut script);
    assert_eq!(
        opened,
        [Command::Open {
            socket: 1,
            url: "ws://127.0.0.1:8080/play".to_owned(),
            protocols: vec!["game".to_owned()],
            headers: vec![("X-Token".to_owned(), "t".to_owned())],
        }]
    );
    script.opened(3, 1, "game", 2_000);
    let login = commands(&mut script);
    assert_eq!(
        login[0],
        Command::Send {
            socket: 1,
            data: Data::Text("{\"type\":\"login\",\"id\":17}".to_owned()),
            planned_ns: 2_000
        }
    );
    assert!(matches!(login[1], Command::Timer { .. }), "{login:?}");
    script.text(3, 1, "{\"type\":\"noise\"}", 3_000);
    assert_eq!(commands(&mut script), []);
    script.text(3, 1, "{\"type\":\"welcome\",\"seat\":4}", 1_000_000);
    let Command::Timer { id, at_ns: 1_000_000 } = commands(&mut script)[1] else { panic!("no first move") };
    script.timer(3, id, 1_000_000, 1_000_500);
    let moved = commands(&mut script);
    assert_eq!(
        moved[..2],
        [
            Command::Ask { operation: 0, key: Key::Number(0), planned_ns: 1_000_000 },
            Command::Send { socket: 1, data: Data::Text("m0".to_owned()), planned_ns: 1_000_000 },
        ]
    );
    let Command::Timer { at_ns: 51_000_000, .. } = moved[2] else { panic!("{moved:?}") };
    script.text(3, 1, "{\"type\":\"ack\",\"seq\":0}", 2_000_000);
    assert_eq!(commands(&mut script), [Command::Answered { operation: 0, key: Key::Number(0) }]);
    script.text(3, 1, "{\"type\":\"snapshot\"}", 3_000_000);
    assert_eq!(commands(&mut script), [Command::Tick { time_ms: None }]);
}

#[test]
fn what_a_script_throws_is_an_error_of_its_bot_with_the_line_that_its_author_wrote() {
    let text = "interface X { a: number }\n\nexport default async (bot: any): Promise<void> => {\n\
                setTimeout(() => {\n    const x: any = undefined;\n    x.y();\n  }, 5);\n  await bot.sleep(1);\n  \
                Promise.reject(new Error(\"left alone\"));\n  throw new Error(\"at the end\");\n};\n";
    let mut script = played(text);
    script.start(0, 0, 0);
    let ids: Vec<u32> = commands(&mut script)
        .iter()
        .filter_map(|command| if let Command::Timer { id, .. } = command { Some(*id) } else { None })
        .collect();
    for id in ids {
        script.timer(0, id, 5_000_000, 5_000_000);
    }
    let threw: Vec<String> = commands(&mut script)
        .into_iter()
        .filter_map(|command| if let Command::Threw(words) = command { Some(words) } else { None })
        .collect();
    let expected = [
        ("TypeError: ", "bot.ts:6:"),
        ("Error: at the end", "bot.ts:10:"),
        ("nobody awaited was rejected: Error: left alone", "bot.ts:9:"),
    ];
    assert_eq!(threw.len(), expected.len(), "{threw:?}");
    for (words, (what, place)) in threw.iter().zip(expected) {
        assert!(words.contains(what) && words.contains(place), "{words}");
    }
}

/// Each row is what bot 0 does, and what is said of it; the others play on.
#[test]
fn a_bot_that_takes_all_time_or_memory_is_stopped_at_its_line_and_the_others_play_on() {
    const TIME: &str =
        "the bot ran for more than 1 s of CPU time without giving way and was stopped (at bot.ts:";
    const MEMORY: &str = "the bot took more than 256 MiB of memory and was stopped (at bot.ts:";
    for (does, expected) in [
        ("await null; for (;;);", TIME),
        ("for (;;) try { await null; } catch {}", TIME),
        ("const again = () => queueMicrotask(again); again();", TIME),
        (
            "(function again() { Promise.resolve().then(again); })(); /^(a+)+$/.test('a'.repeat(40) + 'b');",
            TIME,
        ),
        ("const all = []; for (;;) all.push(all.slice());", MEMORY),
        ("const all = []; for (;;) { all.push(new Uint8Array(1 << 20)); await null; }", MEMORY),
        ("const all = []; for (;;) try { all.push(new Uint8Array(1 << 20)); } catch {}", MEMORY),
        ("setTimeout(() => new Uint8Array(1 << 29)); await bot.sleep(1e6);", MEMORY),
        ("for (;;) bot.fail('x'.repeat(1 << 20));", MEMORY),
    ] {
        let mut script = played(&format!(
            "export default async (bot: any) => {{\n  if (bot.id === 0) {{ {does} }}\n  bot.ready();\n  await bot.sleep(1); }};"
        ));
        script.start(0, 0, 0);
        let all = commands(&mut script);
        let [.., Command::Stopped(words), Command::Broke] = &all[..] else { panic!("{does}: {all:?}") };
        assert!(words.starts_with(expected), "{does}: {words}");
        let ends = all
            .iter()
            .filter(|one| matches!(one, Command::Ended | Command::Broke | Command::Threw(_)))
            .count();
        assert_eq!(ends, 1, "{does}: {all:?}");
        script.forget(0, 0);
        script.start(1, 1, 0);
        assert!(commands(&mut script).contains(&Command::Ready), "{does}");
    }
}

/// Each turn makes 16 MiB that refer to themselves, which one bot keeps and the other does not.
#[test]
fn memory_that_a_bot_keeps_over_many_turns_is_bounded_and_garbage_is_not_counted() {
    for (keeps, turns_expected) in [("all.push(circle)", 14..=16), ("0", 40..=40)] {
        let mut script = played(&format!(
            "export default async (bot: any) => {{ const all: any[] = []; for await (const n of bot.every(1, {{ phase: 0 }})) {{
               const circle: any = {{ bytes: new Uint8Array(16 << 20) }}; circle.own = circle; {keeps}; }} }};"
        ));
        script.start(0, 0, 0);
        let mut turns = 0;
        for _ in 0..40 {
            for command in commands(&mut script) {
                match command {
                    Command::Timer { id, at_ns } => {
                        turns += 1;
                        script.timer(0, id, at_ns, at_ns);
                    }
                    Command::Stopped(words) => assert!(words.contains("more than 256 MiB"), "{words}"),
                    Command::Ended | Command::Broke => script.forget(0, 0),
                    other => panic!("{other:?}"),
                }
            }
        }
        script.collect_garbage();
        assert!(turns_expected.contains(&turns), "{keeps}: {turns}");
        assert!(script.memory_bytes() < 32 << 20, "{keeps}: {}", script.memory_bytes());
    }
}

#[test]
fn one_bot_does_not_hear_anothers_timers_and_sockets() {
    let mut script = played(
        "export default async (bot) => { const ws = new WebSocket(''); ws.onopen = () => { bot.ready(); \
         setTimeout(() => ws.send('of ' + bot.id), 1); }; };",
    );
    script.start(0, 0, 0);
    script.start(1, 1, 0);
    let mut all = Vec::new();
    script.take_commands(&mut all);
    assert!(
        matches!(&all[0], (0, Command::Open { socket: 1, url, .. }) if url == "ws://127.0.0.1:8080/play?a=1"),
        "{all:?}"
    );
    script.opened(1, 1, "", 10);
    script.take_commands(&mut all);
    assert_eq!(all[0], (1, Command::Ready));
    let (1, Command::Timer { id, .. }) = all[1] else { panic!("{all:?}") };
    script.timer(0, id, 20, 20);
    script.timer(1, id, 20, 20);
    script.take_commands(&mut all);
    assert_eq!(all, [(1, Command::Send { socket: 1, data: Data::Text("of 1".to_owned()), planned_ns: 20 })]);
}

#[test]
fn chance_and_time_are_the_engines() {
    let text = "export default (bot) => { bot.fail([Math.random(), bot.random(), Date.now(), performance.now()].join()); \
                setTimeout(() => bot.fail(new Date().toISOString()), 1500); };";
    let said = |seed: u64| {
        let read = |_: &Path| Ok(text.to_owned());
        let bundle = bundle(Path::new("bot.js"), &read).unwrap();
        let play = Play { target: "ws://h:1".to_owned(), seed, epoch_ms: 1e12, ..Play::default() };
        let mut script = Script::new(&Arc::new(bundle), &play).unwrap();
        script.start(0, 0, 2_000_000);
        let first = commands(&mut script);
        let Command::Timer { id, at_ns: 1_502_000_000 } = first[1] else { panic!("{first:?}") };
        script.timer(0, id, 1_502_000_000, 1_502_000_000);
        (first[0].clone(), commands(&mut script))
    };
    assert_eq!(said(7), said(7));
    assert_ne!(said(7).0, said(8).0);
    let (Command::Failed(first), then) = said(7) else { panic!() };
    assert!(first.ends_with(",1000000000002,2"), "{first}");
    assert_eq!(then, [Command::Failed("2001-09-09T01:46:41.502Z".to_owned())]);
}

#[test]
fn a_script_that_cannot_be_played_says_why() {
    let check = |text: &str, expected: &str| {
        let owned = text.to_owned();
        let read = move |_: &Path| Ok(owned.clone());
        let words = load(bundle(Path::new("bot.ts"), &read).unwrap()).unwrap_err().to_string();
        assert!(words.contains(expected), "{words}");
    };
    check("export const x = 1;", "bot.ts: it exports no function as default; write: export default");
    check("export default 5;", "it exports no function as default");
    check(
        "const a = null;\na.x;\nexport default () => {};",
        "cannot read property 'x' of null\n    at bot.ts:2:",
    );
    check("await new Promise(() => {});\nexport default () => {};", "its top level waits for something");
    check("setTimeout(() => {}, 1);\nexport default () => {};", "a timer outside a bot");
    check("export const options = 5;\nexport default () => {};", "options is no object");
    check(
        "for (;;);\nexport default () => {};",
        "bot.ts: its top level ran for more than 1 s of CPU time without giving way and was stopped; do that in the default",
    );
    check(
        "const all = [];\nfor (;;) all.push(new Uint8Array(1 << 20));\nexport default () => {};",
        "bot.ts: its top level asked for more memory when all bots of its worker had taken 2 GiB, and was stopped",
    );
}

#[test]
fn options_are_read_without_a_bot() {
    let read = |_: &Path| {
        Ok("export const options = { hold: '30s', objectives: ['errors == 0'] };\nexport default () => {};"
            .to_owned())
    };
    let loaded = load(bundle(Path::new("bot.ts"), &read).unwrap()).unwrap();
    assert_eq!(loaded.options["hold"], "30s");
    assert_eq!(loaded.options["objectives"][0], "errors == 0");
}

#[test]
fn modules_of_commonjs_run_once_and_hand_out_what_they_have() {
    let place = tempfile::tempdir().unwrap();
    let files = [
        (
            "bot.js",
            "import old, { twice, count } from './old.cjs';\nimport compiled, { named } from './compiled.cjs';\n\
             import data from './data.json';\nimport * as again from './old.cjs';\n\
             export const options = { hold: String(twice(4) + count.of + named + compiled() + data.a.length) };\n\
             export default async (bot) => { const late = await import('./late.cjs');\n\
             bot.fail([old === again.default, late.default, count.of].join()); await import('./' + 'gone.cjs'); };",
        ),
        (
            "old.cjs",
            "#!/usr/bin/env node\nconst count = require('./count.cjs'); count.of += 1; exports.twice = (n) => 2 * n;\n\
             exports.count = count; exports['no-identifier'] = 1; exports.class = 2; with ({}) {} // sloppy, and a comment at the end",
        ),
        (
            "count.cjs",
            "const old = require('./old.cjs'); module.exports = { of: 0, circle: typeof old.twice };",
        ),
        (
            "compiled.cjs",
            "Object.defineProperty(exports, '__esModule', { value: true }); exports.named = 5; exports.default = () => 7;",
        ),
        ("data.json", "{ \"a\": [1, 2] }"),
        (
            "late.cjs",
            "module.exports = typeof require('./old.cjs').twice; try { require('nothing'); } catch (error) { module.exports += error.message; }",
        ),
    ];
    for (name, text) in files {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let bundle = bundle(&place.path().join("bot.js"), &|path| std::fs::read_to_string(path)).unwrap();
    let loaded = load(bundle.clone()).unwrap();
    assert_eq!(loaded.options["hold"], "23");
    let mut script = Script::new(&Arc::new(bundle), &Play::default()).unwrap();
    script.start(0, 0, 0);
    let all = commands(&mut script);
    let Command::Failed(words) = &all[0] else { panic!("{all:?}") };
    assert_eq!(
        words,
        "true,function\"nothing\", which late.cjs asks for, is not there: it was not found before the run, or belongs to \
         Node.js,1"
    );
    let Command::Threw(words) = &all[1] else { panic!("{all:?}") };
    assert!(words.contains("\"./gone.cjs\", which bot.js asks for, is not there"), "{words}");
}
