//! The object `bot`: further connections, groups, rooms, rows, measured steps, planned instants.

use std::sync::Arc;

use super::*;
use crate::command::Frames;
use crate::rows::{How, Rows};

fn one(body: &str) -> Script {
    let mut script = played(&format!("export default async (bot) => {{ {body} }};"));
    script.start(0, 4, 0);
    script
}

fn words(script: &mut Script) -> Vec<String> {
    commands(script)
        .into_iter()
        .filter_map(|command| match command {
            Command::Failed(words) | Command::Threw(words) => Some(words),
            _ => None,
        })
        .collect()
}

#[test]
fn streams_and_datagrams_are_connections_like_the_others() {
    let mut script = one(
        "const c = await bot.tcp({ frames: 'u16be', port: 7000 }); c.send(new Uint8Array([1])); c.send('t');
         const first = await c.next((d) => d.byteLength > 1); bot.fail([first instanceof ArrayBuffer, first.byteLength].join());
         const u = await bot.udp({ host: 'game.test' }); u.onmessage = ({ data }) => bot.fail('u' + new Uint8Array(data)[0]); u.close();",
    );
    let open = Command::OpenTcp { socket: 1, host: None, port: Some(7000), frames: Frames::U16Be };
    assert_eq!(commands(&mut script), [open]);
    script.opened(0, 1, "", 0);
    let sent = commands(&mut script);
    assert_eq!(sent[0], Command::Send { socket: 1, data: Data::Binary(vec![1]), planned_ns: 0 });
    assert_eq!(sent[1], Command::Send { socket: 1, data: Data::Text("t".to_owned()), planned_ns: 0 });
    script.bytes(0, 1, &[1], 0);
    script.bytes(0, 1, &[1, 2], 0);
    let opened = commands(&mut script);
    assert_eq!(opened[0], Command::Failed("true,2".to_owned()));
    let Command::OpenUdp { socket, host: Some(host), port: None } = &opened[1] else { panic!("{opened:?}") };
    assert_eq!(host, "game.test");
    script.opened(0, *socket, "", 0);
    let close = Command::Close { socket: *socket, code: None, reason: String::new() };
    assert_eq!(commands(&mut script), [close, Command::Ended]);
    script.bytes(0, *socket, &[9], 0);
    assert_eq!(words(&mut script), ["u9"]);
}

#[test]
fn what_is_called_wrongly_says_what_is_right() {
    for (call, expected) in [
        (
            "bot.tcp({ frames: 'u24' })",
            "frames is one of lines, u8, u16be, u16le, u32be, u32le, until 0xNN, raw, not u24",
        ),
        ("bot.tcp({ frames: 'until 0xfff' })", "not until 0xfff"),
        ("bot.tcp({ frames: 'until 0x+1' })", "not until 0x+1"),
        ("bot.tcp()", "frames is one of"),
        ("bot.tcp({ frames: 'raw', port: 70000 })", "port is a number from 1 to 65535, not 70000"),
        ("bot.udp({ host: 5 })", "host is a name"),
        ("bot.every('0s')", "0.1 ms is the least"),
        ("bot.sleep('soon')", "\"soon\" is no duration"),
        ("bot.ask('a', 1)", "its third argument is a function"),
        ("bot.measure('nowhere' + 1, () => {})", "\"nowhere1\" is no operation of this script"),
        ("bot.record('r', NaN)", "the value is a number from 0 to 3600000000, not NaN"),
        ("bot.record('r', -0.1)", "not -0.1"),
        ("bot.record('r', 4e9)", "not 4000000000"),
        ("bot.record('r', '5')", "not 5"),
        ("bot.record('nowhere' + 1, 5)", "\"nowhere1\" is no distribution of this script"),
        ("bot.count('c', -1)", "it adds a number from 0, not -1"),
        ("bot.group(0)", "the size is a whole number from 1"),
        ("bot.room('r').sent(1.5)", "room.sent: seq is a whole number from 0, not 1.5"),
        ("bot.room('r').sent(20000)", "room.sent: number 20000 is far beyond 0, which is the next"),
        ("[4, 4].forEach((n) => bot.room('r').sent(n))", "room.sent: number 4 comes after 4"),
        ("bot.room('r').received(1, 1)", "this bot has not joined \"r\"; call join() first"),
        ("(bot.room('r').join(), bot.room('r').received('x', 1))", "room.received: from is a whole number"),
        ("bot.row('none.csv')", "none.csv was not read before the run"),
        ("bot.row('none.csv', 'mine')", "\"mine\" is none of \"unique\", \"shared\" and \"wrap\""),
        ("new WebSocket('ftp://h/')", "is no address of a WebSocket"),
        ("new WebSocket('/x#y')", "is no address of a WebSocket"),
        ("new WebSocket('/', ['a', 'a'])", "one is there twice"),
        ("new WebSocket('/').send('early')", "before the connection is open"),
        ("new WebSocket('/').close(1001)", "a client closes with 1000 or 3000 to 4999, not 1001"),
        ("new WebSocket('/').close(4000, 'é'.repeat(62))", "the reason is longer than 123 bytes"),
        ("bot.websocket('/', { headers: { 'a b': 1 } })", "\"a b\" is no name of a header"),
    ] {
        let mut script =
            one(&format!("bot.check('a', true); bot.answered('a', 1); bot.count('c', 0); await {call};"));
        let said = words(&mut script);
        assert!(said.len() == 1 && said[0].contains(expected), "{call}: {said:?}");
    }
}

#[test]
fn a_websocket_gives_bytes_as_its_binary_type_says() {
    let mut script = one(
        "const ws = new WebSocket('/'); ws.binaryType = 'nonsense'; ws.onmessage = async ({ data }) => {
           if (typeof data === 'string') bot.fail(data); else bot.fail(data instanceof Blob ? 'blob ' + await data.text() : 'buffer ' + data.byteLength);
           ws.binaryType = 'arraybuffer'; };
         ws.onopen = () => { ws.send(new Blob(['b'])); ws.send(new Uint16Array([258]).subarray(0)); ws.send(5); ws.close(4001, 'done'); ws.send('late'); };
         ws.onerror = () => bot.fail('error'); ws.onclose = (e) => bot.fail([e.code, e.reason, e.wasClean, ws.readyState].join());",
    );
    script.opened(0, 1, "", 0);
    let sent: Vec<Command> =
        commands(&mut script).into_iter().skip(1).filter(|one| *one != Command::Ended).collect();
    let data = |data| Command::Send { socket: 1, data, planned_ns: 0 };
    assert_eq!(
        sent,
        [
            data(Data::Binary(b"b".to_vec())),
            data(Data::Binary(vec![2, 1])),
            data(Data::Text("5".to_owned())),
            Command::Close { socket: 1, code: Some(4001), reason: "done".to_owned() },
        ]
    );
    script.bytes(0, 1, b"x", 0);
    script.bytes(0, 1, b"xy", 0);
    script.text(0, 1, "text", 0);
    script.closed(0, 1, 4001, "done", true, 0);
    script.closed(0, 1, 1006, "twice", false, 0);
    assert_eq!(words(&mut script), ["blob x", "buffer 2", "text", "4001,done,true,3"]);
}

#[test]
fn the_next_message_is_waited_for_and_named_where_it_does_not_come() {
    let mut script = one(
        "const ws = await bot.websocket('/'); bot.fail(await ws.next()); bot.fail(await ws.next((m) => m === 'c'));
         try { await ws.next((m) => m === 'never', { within: '2s' }); } catch (e) { bot.fail(e.message); }
         try { await ws.next((m) => { throw new Error('in match'); }); } catch (e) { bot.fail(e.message); }
         try { await ws.next(); } catch (e) { bot.fail(e.message); } try { await ws.next(); } catch (e) { bot.fail(e.message); }",
    );
    script.opened(0, 1, "", 0);
    let _ = commands(&mut script);
    for text in ["a", "b", "c"] {
        script.text(0, 1, text, 0);
    }
    let all = commands(&mut script);
    let Some(Command::Timer { id, at_ns: 2_000_000_000 }) = all.last() else { panic!("{all:?}") };
    let id = *id;
    script.text(0, 1, "other", 0);
    script.timer(0, id, 2_000_000_000, 2_000_000_000);
    script.text(0, 1, "x", 2_000_000_000);
    script.closed(0, 1, 4000, "full", true, 2_000_000_000);
    let said = words(&mut script);
    assert_eq!(
        said,
        [
            "no message that matches within 2s; the last was: other",
            "in match",
            "the server closed the connection (code 4000, \"full\") before a message that matches",
            "next(): the connection is closed (code 4000, \"full\")",
        ]
    );
    assert!(matches!(&all[..], [Command::Timer { .. }, ..] | [Command::Failed(_), ..]), "{all:?}");
}

#[test]
fn a_loop_over_the_next_message_keeps_one_timer() {
    let mut script = one(
        "const ws = await bot.websocket('/'); for (;;) bot.fail(await ws.next(undefined, { within: 50 }));",
    );
    script.opened(0, 1, "", 0);
    for n in 0..100u64 {
        script.text(0, 1, "m", n * 1_000_000);
    }
    let all = commands(&mut script);
    let timers: Vec<&Command> = all.iter().filter(|one| matches!(one, Command::Timer { .. })).collect();
    let [Command::Timer { id, at_ns: 50_000_000 }] = timers[..] else { panic!("{timers:?}") };
    let id = *id;
    // Late, as it can be: the wait that is under way began at 99 ms.
    script.timer(0, id, 50_000_000, 100_000_000);
    let again = commands(&mut script);
    let [Command::Timer { id, at_ns: 149_000_000 }] = again[..] else { panic!("{again:?}") };
    script.timer(0, id, 149_000_000, 149_000_000);
    assert_eq!(words(&mut script), ["Error: no message that matches within 50ms; the last was: m"]);
}

#[test]
fn measured_steps_may_overlap_and_a_throw_fails_theirs() {
    let mut script = one(
        "await bot.measure('journey', async () => { bot.measure('login', () => bot.sleep(5)); try { await bot.measure('join', () => { throw new Error('no'); }); } catch (e) { bot.fail(e.message); } return 1; });",
    );
    let all = commands(&mut script);
    let steps: Vec<&Command> = all
        .iter()
        .filter(|one| matches!(one, Command::MeasureBegin { .. } | Command::MeasureEnd { .. }))
        .collect();
    assert_eq!(
        steps,
        [
            &Command::MeasureBegin { operation: 1, key: 1, planned_ns: 0 },
            &Command::MeasureBegin { operation: 2, key: 2, planned_ns: 0 },
            &Command::MeasureBegin { operation: 0, key: 4, planned_ns: 0 },
            &Command::MeasureEnd { key: 4, ok: false },
            &Command::MeasureEnd { key: 1, ok: true },
        ]
    );
    script.timer(0, 3, 5_000_000, 6_000_000);
    assert_eq!(commands(&mut script), [Command::MeasureEnd { key: 2, ok: true }]);
}

#[test]
fn rooms_records_and_ticks_become_commands() {
    let mut script = one(
        "const r = bot.room('lobby'); r.join(); r.sent(7); r.received(3, 8); r.leave(); bot.record('hp', 1.5); bot.tick(); bot.tick(12.5);",
    );
    let room = || "lobby".to_owned();
    assert_eq!(
        commands(&mut script),
        [
            Command::Join { room: room() },
            Command::Sent { room: room(), seq: 7, planned_ns: 0 },
            Command::Received { room: room(), from: 3, seq: 8 },
            Command::Leave { room: room() },
            Command::Record { name: 0, value: 1.5, planned_ns: 0 },
            Command::Tick { time_ms: None },
            Command::Tick { time_ms: Some(12.5) },
            Command::Ended,
        ]
    );
}

/// Plays all timers that are asked for, in their order; what the bots said.
fn settled(script: &mut Script) -> Vec<(u32, String)> {
    let mut said = Vec::new();
    let mut all = Vec::new();
    loop {
        script.take_commands(&mut all);
        if all.is_empty() {
            return said;
        }
        for (bot, command) in all.clone() {
            match command {
                Command::Failed(words) | Command::Threw(words) => said.push((bot, words)),
                Command::Timer { id, at_ns } => script.timer(bot, id, at_ns, at_ns),
                Command::Ended | Command::Broke => script.forget(bot, 0),
                _ => {}
            }
        }
    }
}

#[test]
fn a_group_waits_for_all_and_each_member_goes_on_in_its_own_turn() {
    let mut script = played(
        "export default async (bot) => { const g = bot.group(2); bot.fail([g.index, g.size, g === bot.group(2)].join());
           await g.all(); setTimeout(() => bot.fail('timer of ' + bot.id), 1);
           const shared = { from: bot.id }; g.send(shared); const got = await g.receive(); bot.fail('got ' + got.from + (got !== shared));
           await g.all(); bot.fail('done'); };",
    );
    for bot in 0..4 {
        script.start(bot, u64::from(bot) * 3, 0);
    }
    let said = settled(&mut script);
    for bot in 0..4u32 {
        let own: Vec<&str> =
            said.iter().filter(|(of, _)| *of == bot).map(|(_, words)| words.as_str()).collect();
        let (index, other) = (bot % 2, (bot ^ 1) * 3);
        let expected = [
            format!("{index},2,true"),
            format!("got {other}true"),
            format!("timer of {}", bot * 3),
            "done".to_owned(),
        ];
        assert_eq!(own.len(), 4, "{said:?}");
        assert!(expected.iter().all(|words| own.contains(&words.as_str())), "{bot}: {own:?}");
    }
}

#[test]
fn a_group_does_not_wait_for_a_member_that_has_ended() {
    let mut script = played(
        "export default async (bot) => { const g = bot.group(2); if (bot.id === 1) { await bot.sleep(1); return; }
           try { await g.all(); } catch (e) { bot.fail(e.message); } try { await g.receive(); } catch (e) { bot.fail(e.message); } };",
    );
    script.start(0, 0, 0);
    script.start(1, 1, 0);
    let gone = || (0, "bot 1 of this group has ended".to_owned());
    assert_eq!(settled(&mut script), [gone(), gone()]);
}

#[test]
fn planned_instants_follow_from_seed_bot_and_number_alone() {
    let text = "export default async (bot) => { if (noise) Math.random(); for await (const n of bot.every('10ms', { jitter: '2ms' })) if (n > 3) return; };";
    let instants = |noise: bool, id: u64| {
        let mut script = played(&text.replace("noise", if noise { "true" } else { "false" }));
        script.start(0, id, 0);
        let mut all = Vec::new();
        while let Some(Command::Timer { id, at_ns }) = commands(&mut script).first().cloned() {
            all.push(at_ns);
            // However late each turn comes.
            script.timer(0, id, at_ns, at_ns + if noise { 7_000_000 } else { 0 });
        }
        all
    };
    assert_eq!(instants(false, 3), instants(true, 3));
    assert_ne!(instants(false, 3), instants(false, 4));
    let all = instants(false, 3);
    assert_eq!(all.len(), 5);
    assert!(all.windows(2).all(|pair| (8_000_000..12_000_000).contains(&(pair[1] - pair[0]))), "{all:?}");
}

#[test]
fn rows_come_from_the_files_that_were_read_before() {
    let rows = |file: &str, text: &str| {
        let text = text.to_owned();
        let read = move |_: &Path| Ok(text.clone());
        (file.to_owned(), Arc::new(Rows::read(Path::new(file), &read, How::Unique).unwrap()))
    };
    let text = "export default (bot) => { const row = bot.row('u.csv'); bot.fail(row.name + Object.keys(row)); bot.fail(bot.row('u.csv', 'wrap').name);
                bot.fail(String(bot.row('u.csv', 'shared').name === bot.row('u.csv', 'shared').name)); bot.fail(String({}.name)); bot.row('u.csv', 'unique'); };";
    let read = |_: &Path| Ok(text.to_owned());
    let bundle = bundle(Path::new("bot.js"), &read).unwrap();
    let play = Play {
        target: "ws://h:1".to_owned(),
        rows: [rows("u.csv", "name,__proto__\nann,x\nbob,y\n")].into(),
        ..Play::default()
    };
    let mut script = Script::new(&Arc::new(bundle), &play).unwrap();
    script.start(0, 1, 0);
    assert_eq!(words(&mut script), ["bobname,__proto__", "bob", "true", "undefined"]);
    script.start(1, 2, 0);
    let said = words(&mut script);
    assert!(said[0].contains("u.csv has 2 rows and none for bot 2"), "{said:?}");
}

#[test]
fn what_is_printed_is_limited_per_bot_and_second() {
    let mut script = one(
        "for (let n = 0; n < 100; n++) console.log(n, { a: n }); await bot.sleep(1000); console.warn('x'.repeat(5000));",
    );
    let lines = |script: &mut Script| -> Vec<String> {
        commands(script)
            .into_iter()
            .filter_map(|one| if let Command::Log(_, line) = one { Some(line) } else { None })
            .collect()
    };
    let first = lines(&mut script);
    assert_eq!(first.len(), 21);
    assert_eq!(first[19], "19 {\"a\":19}");
    assert!(first[20].contains("more than 20 lines in a second"), "{}", first[20]);
    script.timer(0, 1, 1_000_000_000, 1_000_000_000);
    let later = lines(&mut script);
    assert!(later.len() == 1 && later[0].len() < 2_100, "{later:?}");
}

#[test]
fn a_question_is_answered_once_and_by_its_own_key() {
    let mut script = one(
        "bot.ask('move', 1, () => {}).then((v) => bot.fail('number ' + v)); bot.ask('move', '1', () => {}).then((v) => bot.fail('text ' + v));
         bot.ask('move', 2n, () => {}).then((v) => bot.fail('big ' + v));
         bot.answered('move', '1', 'a'); bot.answered('move', '1', 'b'); bot.answered('move', 1, 'c'); bot.answered('move', 2, 'd'); bot.answered('move', undefined);",
    );
    let all = commands(&mut script);
    let answered = all.iter().filter(|one| matches!(one, Command::Answered { .. })).count();
    assert_eq!(answered, 5, "each counts, the second and the unknown one too");
    let said: Vec<&Command> = all.iter().filter(|one| matches!(one, Command::Failed(_))).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    for words in ["text a", "number c", "big d"] {
        assert!(said.contains(&&Command::Failed(words.to_owned())), "{words}: {said:?}");
    }
}

/// As shims of `process.nextTick` do it: a queue of the module, drained by a timer of no time.
#[test]
fn what_modules_keep_for_later_is_done_in_the_turn_of_its_bot() {
    let mut script = played(
        "const queue = []; const drain = () => { while (queue.length) queue.shift()(); };\n\
         const later = (call) => { if (queue.push(call) === 1) setTimeout(drain, 0); };\n\
         export default async (bot) => { const ws = await bot.websocket('/'); later(() => { ws.send('of ' + bot.id); bot.count('sent'); }); \
         if (bot.id === 0) { let n = 0; const again = () => { bot.fail(String(n++)); if (n < 7) setTimeout(again); }; again(); } };",
    );
    for bot in [0, 1] {
        script.start(bot, u64::from(bot), 0);
        commands(&mut script);
    }
    let of_turn = |script: &mut Script, bot| {
        script.opened(bot, 1, "", 1_000);
        let mut all = Vec::new();
        script.take_commands(&mut all);
        all
    };
    let first = of_turn(&mut script, 0);
    assert!(first.iter().all(|(bot, _)| *bot == 0), "{first:?}");
    let told: Vec<&Command> = first.iter().map(|(_, command)| command).collect();
    assert!(matches!(told[..], [_, _, Command::Send { .. }, Command::Count(0, 1), ..]), "{told:?}");
    // Five follow at once, and the next 4 ms later.
    assert_eq!(told.iter().filter(|command| matches!(command, Command::Failed(_))).count(), 6, "{told:?}");
    assert!(told.contains(&&Command::Timer { id: 8, at_ns: 4_001_000 }), "{told:?}");
    let second = of_turn(&mut script, 1);
    assert!(second.iter().all(|(bot, _)| *bot == 1) && second.len() == 3, "{second:?}");
}
