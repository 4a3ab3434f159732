//! Sessions with known truth, and hostile ones.

use std::path::Path;

use script::Bundle;

use crate::{
    Answer, Content, Event, Frames, Opening, Request, Session, Side, What, Written, from_har, write_bot,
};

const MS: u64 = 1_000_000;

/// A session as it is told: at which ms, on which connection, what.
fn session(events: Vec<(u64, usize, What)>) -> Session {
    let mut events: Vec<Event> =
        events.into_iter().map(|(ms, connection, what)| Event { at_ns: ms * MS, connection, what }).collect();
    events.sort_by_key(|event| event.at_ns);
    Session { target: "ws://127.0.0.1:8080".to_owned(), events }
}

fn open(path: &str, headers: &[(&str, &str)]) -> What {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    What::Opened(Opening::WebSocket { elsewhere: None, path: path.to_owned(), headers })
}

fn said(text: impl Into<String>) -> What {
    What::Message(Side::Client, Content::text(text))
}

fn heard(text: impl Into<String>) -> What {
    What::Message(Side::Server, Content::text(text))
}

fn asked(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> What {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    What::Request(Request {
        elsewhere: None,
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: body.into(),
    })
}

fn answered(status: u16, headers: &[(&str, &str)], body: &str) -> What {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    What::Answer(Answer { status, headers, body: body.into() })
}

/// The bot, and that it is a script with names that are known before the run.
#[track_caller]
fn written(session: &Session) -> (Written, Bundle) {
    let written = write_bot(session, "bot.ts", Frames::Raw).expect("a bot");
    let text = written.text.clone();
    let bundle = script::bundle(Path::new("bot.ts"), &move |_| Ok(text.clone()));
    (written.clone(), bundle.unwrap_or_else(|mistake| panic!("{mistake}\n{}", written.text)))
}

/// The bot holds all of these texts and none of those.
#[track_caller]
fn check(session: &Session, holds: &[&str], holds_not: &[&str]) -> Written {
    let (written, _) = written(session);
    for text in holds {
        assert!(written.text.contains(text), "`{text}` is missing in\n{}", written.text);
    }
    for text in holds_not {
        assert!(!written.text.contains(text), "`{text}` is in\n{}", written.text);
    }
    written
}

fn game() -> Vec<(u64, usize, What)> {
    let mut events = vec![
        (0, 0, open("/play", &[("User-Agent", "ws"), ("X-Build", "17")])),
        (5, 0, said(r#"{"type":"login","name":"ada","password":"pa55 word"}"#)),
        (8, 0, heard(r#"{"type":"welcome","seat":3,"ticket":"tk-81f2a9c4d0"}"#)),
        (10, 0, said(r#"{"type":"sit","seat":3,"proof":"x:tk-81f2a9c4d0"}"#)),
    ];
    for n in 0..60 {
        events.push((
            100 + 51 * n,
            0,
            said(format!(r#"{{"type":"move","seq":{},"x":0.{}5}}"#, n + 4, n % 7 + 1)),
        ));
        events.push((102 + 51 * n, 0, heard(format!(r#"{{"type":"ack","seq":{}}}"#, n + 4))));
    }
    for tick in 0..90 {
        events.push((40 + tick * 1000 / 30, 0, heard(format!(r#"{{"type":"snapshot","tick":{tick}}}"#))));
    }
    events.push((3_200, 0, said(r#"{"type":"bye"}"#)));
    events.push((3_201, 0, What::Closed(Side::Client)));
    events
}

#[test]
fn a_game_becomes_its_loop_its_replies_its_ticks_and_its_variables() {
    let holds = [
        r#"await bot.websocket("/play", { headers: { "X-Build": "17" } });"#,
        r#"ws.send(JSON.stringify({ type: "login", name: "ada", password: bot.env.PASSWORD }));"#,
        r#"const welcome = json(await ws.next((data) => json(data)?.type === "welcome"));"#,
        r#"ws.send(JSON.stringify({ type: "sit", seat: welcome.seat, proof: `x:${welcome.ticket}` }));"#,
        r#"if (json(data)?.type === "ack") bot.answered("move", json(data).seq);"#,
        r#"else if (json(data)?.type === "snapshot") bot.tick();"#,
        r#"for await (const n of bot.every("50ms")) {"#,
        r#"bot.ask("move", n + 4, () => ws.send(JSON.stringify({ type: "move", seq: n + 4, x: moveX[n % moveX.length] })));"#,
        r#"ticks: "33.3ms""#,
        "PASSWORD=… stepladder try bot.ts --target ws://127.0.0.1:8080 --env PASSWORD",
    ];
    let written = check(&session(game()), &holds, &["pa55", "bye", "User-Agent", "tk-81f2"]);
    assert_eq!(
        (written.variables, written.loops, written.env.as_slice()),
        (1, 1, &["PASSWORD".to_owned()][..])
    );
    let (_, bundle) = self::written(&session(game()));
    assert_eq!(bundle.names.operations, ["move"]);
    assert!(bundle.names.calls_ready && bundle.names.calls_tick);
}

#[test]
fn a_journey_over_http_takes_its_token_and_picks_its_items_from_what_the_server_said() {
    let mut events = vec![
        (
            0,
            0,
            asked(
                "POST",
                "/login",
                &[("content-type", "text/plain")],
                r#"{"name":"ada","password":"s3cret-9"}"#,
            ),
        ),
        (
            4,
            0,
            answered(
                200,
                &[("Set-Cookie", "csrf=c-5591-aa; Path=/"), ("X-Shard", "shard-eu-0042")],
                r#"{"token":"5d1c8f4e-27aa"}"#,
            ),
        ),
    ];
    let bearer = [
        ("authorization", "Bearer 5d1c8f4e-27aa"),
        ("x-csrf", "c-5591-aa"),
        ("x-shard", "shard-eu-0042"),
        ("Accept", "*/*"),
    ];
    for n in 0..8_u64 {
        let (at, item) = (100 + n * 505, (n * 3) % 5 + 10);
        let list = r#"{"items":[{"id":10},{"id":11},{"id":12},{"id":13},{"id":14}]}"#;
        let number = 1 + n as usize * 2;
        events.push((at, number, asked("GET", "/items?page=1", &bearer, "")));
        events.push((at + 3, number, answered(200, &[], list)));
        events.push((at + 4, number + 1, asked("GET", &format!("/items/{item}"), &bearer, "")));
        events.push((at + 6, number + 1, answered(200, &[], &format!(r#"{{"id":{item}}}"#))));
    }
    events.push((60, 90, asked("GET", "/gone", &[], "")));
    events.push((61, 90, answered(404, &[], "")));
    let holds = [
        r#"const loginAnswer = await fetch("/login", { method: "POST", headers: { "content-type": "text/plain" }, body: JSON.stringify({ name: "ada", password: bot.env.PASSWORD }) });"#,
        "const login = await loginAnswer.json();",
        r#"for await (const _ of bot.every("500ms")) {"#,
        r#"await fetch("/items?page=1", { headers: { authorization: `Bearer ${login.token}`, "x-csrf": cookie(loginAnswer, "csrf"), "x-shard": loginAnswer.headers.get("x-shard")! } })"#,
        "fetch(`/items/${pick<any>(items.items).id}`, { headers:",
        r#"operation: "GET /items/:id" })"#,
        "// Note: left out: 1 request that the server refused",
    ];
    let journey = session(events);
    check(&journey, &holds, &["s3cret", "5d1c8f4e", "/gone", "Accept"]);
    let (_, bundle) = written(&journey);
    assert_eq!(bundle.names.operations, ["GET /items", "GET /items/:id", "POST /login", "fetch"]);
}

#[test]
fn values_in_texts_paths_and_queries_are_found_and_trivial_ones_are_not() {
    let texts = session(vec![
        (0, 0, asked("GET", "/page", &[], "")),
        (3, 0, answered(200, &[], r#"<input name="nonce" value="q9-f00d-77"><b>ok</b>"#)),
        (5, 1, open("/live/room-7781-x?nonce=q9-f00d-77&v=1", &[])),
        (7, 1, heard("HELLO session 9f8e7d6c5b 1")),
        (9, 1, said("RESUME 9f8e7d6c5b 1")),
        (12, 1, heard(r#"{"status":"ok","count":0,"live":true,"room":2}"#)),
        (15, 1, said(r#"{"status":"ok","count":5,"live":true,"roomId":2,"mode":"fast"}"#)),
        (18, 1, heard("fine fast 2")),
        (20, 1, said("fast 2")),
    ]);
    let holds = [
        "const pageText = await (await fetch(\"/page\")).text();",
        r#"nonce=${encodeURIComponent(between(pageText, '<input name="nonce" value="', '"'))}&v=1`"#,
        r#"await ws.next((data) => data.startsWith("HELLO "))"#,
        "ws.send(`RESUME ${words(",
        r#"ws.send(JSON.stringify({ status: "ok", count: 5, live: true, roomId: reply.room, mode: "fast" }));"#,
        r#"ws.send("fast 2");"#,
        "for await (const _ of bot.every(",
        "ws.close();",
    ];
    check(&texts, &holds, &["q9-f00d", "9f8e7d"]);
}

#[test]
fn socket_io_is_read_through_its_prefixes_and_its_heartbeats_are_answered() {
    let mut events = vec![
        (0, 0, open("/socket.io/?EIO=4&transport=websocket", &[])),
        (2, 0, heard(r#"0{"sid":"Zk3jGh-aa","pingInterval":25000}"#)),
        (3, 0, said(r#"40{"token":"t0p-secret"}"#)),
        (5, 0, heard(r#"40{"sid":"pQ81-zzzx"}"#)),
        (6, 0, said(r#"420["join"]"#)),
        (8, 0, heard(r#"430[{"room":"room-0"}]"#)),
    ];
    for n in 0..20 {
        events.push((100 + 100 * n, 0, said(format!(r#"42{}["move",{{"seq":{n}}}]"#, n + 1))));
        events.push((101 + 100 * n, 0, heard(format!(r#"43{}[{{"seq":{n}}}]"#, n + 1))));
        if n % 2 == 0 {
            events.push((130 + 100 * n, 0, said(format!(r#"451-["blob",{}]"#, n / 2))));
            let bytes = Content::bytes([n as u8, 255, 7]);
            events.push((130 + 100 * n, 0, What::Message(Side::Client, bytes)));
        }
    }
    events.push((1_000, 0, heard("2")));
    events.push((1_001, 0, said("3")));
    let holds = [
        r#"ws.send(`40${JSON.stringify({ token: bot.env.TOKEN })}`);"#,
        r#"await ws.next((data) => data.startsWith("430["));"#,
        r#"if (data === "2") ws.send("3");"#,
        r#"bot.ask("move", n + 1, () => ws.send(`42${n + 1}${JSON.stringify(["move", { seq: n }])}`));"#,
        r#"if (data.startsWith("43")) bot.answered("move", Number.parseInt(data.slice(2)));"#,
        r#"ws.send(`451-${JSON.stringify(["blob", n])}`);"#,
        "Uint8Array.of(2, 255, 7)",
        "await Promise.all(loops);",
    ];
    check(&session(events), &holds, &["t0p-secret"]);
}

#[test]
fn what_follows_the_server_is_taken_from_it_when_it_is_said() {
    let mut events = vec![(0, 0, open("/", &[])), (1, 0, said("hello there"))];
    for n in 0..40_u64 {
        events.push((100 + 40 * n, 0, heard(format!(r#"{{"type":"state","tick":{}}}"#, 7_000 + 3 * n))));
        let seen = 7_000 + 3 * ((62 * n).saturating_sub(0) / 40).min(39);
        events.push((101 + 62 * n, 0, said(format!(r#"{{"type":"input","seen":{seen},"keys":"w"}}"#))));
    }
    for n in 0..3_u64 {
        events.push((150 + 500 * n, 0, heard(format!(r#"{{"type":"ping","at":{}}}"#, 81 + 7 * n))));
        events.push((152 + 500 * n, 0, said(format!(r#"{{"type":"pong","at":{}}}"#, 81 + 7 * n))));
    }
    let holds = [
        r#"let lastStateTick: any = 7000;"#,
        r#"if (json(data)?.type === "ping") ws.send(JSON.stringify({ type: "pong", at: json(data).at }));"#,
        r#"else if (json(data)?.type === "state") { bot.tick(); lastStateTick = json(data).tick; }"#,
        r#"ws.send(JSON.stringify({ type: "input", seen: lastStateTick, keys: "w" }));"#,
    ];
    events.retain(|(at, ..)| *at < 1_650);
    check(&session(events), &holds, &["81", "95"]);
}

#[test]
fn a_message_that_names_its_sender_is_no_reply_and_one_in_turn_is() {
    let chat = |line: fn(u64) -> String| {
        let mut events = vec![(0, 0, open("/", &[])), (1, 0, said("NICK ada"))];
        for n in 0..9 {
            events.push((100 + 300 * n, 0, said(format!("SAY {n}{n}x"))));
            events.push((104 + 300 * n, 0, heard(line(n))));
        }
        session(events)
    };
    check(&chat(|n| format!("MSG ada {n}{n}x")), &["ws.send(`SAY ${"], &["bot.ask", "bot.answered"]);
    let keyed = [r#"bot.ask("SAY", "#, r#"if (data.startsWith("OK ")) bot.answered("SAY", words(data)[1]);"#];
    check(&chat(|n| format!("OK {n}{n}x")), &keyed, &[]);
    let in_turn =
        [r#"bot.ask("SAY", n, () => "#, r#"bot.answered("SAY", sayReplies++);"#, "told by their order"];
    check(&chat(|_| "OK thanks".to_owned()), &in_turn, &[]);
}

#[test]
fn nothing_recorded_becomes_code_and_no_secret_is_written() {
    let count = "bot.count(\"pwned\")";
    let evil = [
        format!("\"; {count}; \""),
        format!("'; {count}; '"),
        format!("`; {count}; `"),
        format!("${{{count}}}"),
        format!("\\\"; {count}; //"),
        format!("*/ {count} /*"),
        format!("\n{count}\n"),
        format!("\u{2028}{count}\u{2029}"),
        format!("</script>{count}"),
        "__proto__".to_owned(),
        "constructor".to_owned(),
        format!("\\u0022;{count}"),
    ];
    for text in &evil {
        let json = serde_json::json!({ "type": text, (text.as_str()): text, "token": format!("{text}-secret-4711"), "__proto__": { "a": text } });
        let list = serde_json::json!([text, { "seq": text }]);
        let url: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let raw: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        let header: String =
            text.chars().filter(|letter| letter.is_ascii_graphic() || *letter == ' ').collect();
        let mut events = vec![
            (
                0,
                0,
                asked(
                    "POST",
                    &format!("/{raw}/{url}?{url}={url}"),
                    &[("x-evil", header.as_str())],
                    &json.to_string(),
                ),
            ),
            (1, 0, answered(200, &[("Set-Cookie", &format!("{raw}=value-12345678"))], &json.to_string())),
            (
                2,
                1,
                open(
                    &format!("/{raw}?token={url}"),
                    &[("X-A", header.as_str()), ("Sec-WebSocket-Protocol", header.as_str())],
                ),
            ),
            (3, 1, heard(json.to_string())),
            (4, 1, said(json.to_string())),
            (5, 1, heard(text.as_str())),
            (6, 1, said(text.as_str())),
            (7, 1, heard(list.to_string())),
        ];
        for n in 0..6_u64 {
            events.push((100 + n * 50, 1, said(list.to_string().replace("seq", &format!("seq{}", n % 2)))));
            events.push((
                110 + n * 50,
                1,
                said(
                    serde_json::json!({ "type": text, "k": n, (text.as_str()): format!("{text}{n}") })
                        .to_string(),
                ),
            ));
            events.push((111 + n * 50, 1, heard(serde_json::json!({ "type": text, "k": n }).to_string())));
        }
        let mut session = session(events);
        session.target = format!("ws://{raw}");
        let (written, bundle) = written(&session);
        assert_eq!(bundle.names.counters, Vec::<String>::new(), "{text:?} in\n{}", written.text);
        assert!(!written.text.contains("secret-4711"), "{text:?} in\n{}", written.text);
        assert!(!format!("{:?}", written.remarks).contains("secret-4711"));
        let all_bots = write_bot(&session, &format!("{raw}.ts"), Frames::Raw).expect("a bot").text;
        let bundle = script::bundle(Path::new("bot.ts"), &move |_| Ok(all_bots.clone())).expect("a script");
        assert_eq!(bundle.names.counters, Vec::<String>::new());
    }
}

#[test]
fn a_secret_is_cut_out_wherever_else_it_stands() {
    let events = vec![
        (0, 0, open("/?access_token=abc-123-def&x=1", &[("Authorization", "Basic YTpiLWM=")])),
        (5, 0, said(r#"{"token":"abc-123-def","note":"is abc-123-def","abc-123-def":1}"#)),
        (6, 0, said("PASS hunter-2-long")),
        (7, 0, What::Message(Side::Client, Content::bytes(*b"\xffhunter-2-long"))),
        (8, 0, said(r#"{"jwt":"x","id":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"}"#)),
        (9, 0, heard(r#"{"type":"abc-123-def"}"#)),
        (10, 0, said("end")),
    ];
    let holds = [
        r#"`/?access_token=${encodeURIComponent(bot.env.ACCESS_TOKEN)}&x=1`"#,
        "Authorization: `Basic ${bot.env.AUTHORIZATION}`",
        "{ token: bot.env.ACCESS_TOKEN, note: `is ${bot.env.ACCESS_TOKEN}`, [bot.env.ACCESS_TOKEN]: 1 }",
        "`PASS ${bot.env.PASS}`",
        "ws.send(new Uint8Array());",
        "id: bot.env.ID",
        "json(data)?.type === bot.env.ACCESS_TOKEN",
    ];
    check(&session(events), &holds, &["abc-123", "YTpi", "hunter", "eyJ"]);
}

/// `scale`: of the messages' times, which are seconds.
fn har(scale: f64) -> serde_json::Value {
    let entry = |at: &str, kind: &str, method: &str, url: &str, body: &str, answer: &str| {
        serde_json::json!({
            "_initiator": { "type": "script" }, "_resourceType": kind, "startedDateTime": format!("2026-11-27T08:00:{at}Z"), "time": 4.25,
            "request": { "method": method, "url": url, "httpVersion": "http/1.1", "headers": [{ "name": ":authority", "value": "x" }, { "name": "content-type", "value": "application/json" }], "queryString": [], "cookies": [], "postData": { "mimeType": "application/json", "text": body } },
            "response": { "status": 200, "statusText": "OK", "headers": [], "cookies": [], "content": { "size": 1, "mimeType": "application/json", "text": answer, "encoding": "base64" } },
        })
    };
    let base64 = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    let token = base64(r#"{"token":"tok-77aa-0001"}"#);
    let mut messages = vec![
        serde_json::json!({ "type": "send", "time": 1_795_766_402.1 * scale, "opcode": 1, "data": r#"{"type":"auth","token":"tok-77aa-0001"}"# }),
        serde_json::json!({ "type": "receive", "time": 1_795_766_402.11 * scale, "opcode": 1, "data": r#"{"type":"ready"}"# }),
    ];
    for n in 0..10 {
        let at = 1_795_766_402.2 + 0.1 * f64::from(n);
        messages.push(serde_json::json!({ "type": "send", "time": at * scale, "opcode": 2, "data": base64(&format!("{}{}", "\u{1}\u{2}", n)) }));
        messages
            .push(serde_json::json!({ "type": "receive", "time": (at + 0.001) * scale, "opcode": 2, "data": "AQI=" }));
    }
    let mut socket = entry("02.000", "websocket", "GET", "ws://game.test:8080/play", "", "");
    socket["_webSocketMessages"] = messages.into();
    serde_json::json!({ "log": { "version": "1.2", "creator": { "name": "WebInspector", "version": "537.36" }, "pages": [], "entries": [
        entry("00.000", "document", "GET", "http://game.test:8080/", "", &base64("<html>")),
        entry("00.100", "script", "GET", "http://game.test:8080/app.js", "", ""),
        entry("00.200", "fetch", "GET", "https://ads.test/x", "", ""),
        entry("01.000", "fetch", "POST", "http://game.test:3000/login", "{}", &token),
        socket,
    ] } })
}

#[test]
fn a_browsers_recording_is_read_with_its_messages_and_without_its_page() {
    let found = from_har(har(1.0).to_string().as_bytes()).expect("a HAR");
    let of_playwright = from_har(har(1e3).to_string().as_bytes()).expect("a HAR");
    let in_ms = |session: &Session| {
        session.events.iter().map(|event| (event.at_ns + 500_000) / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(in_ms(&found.session), in_ms(&of_playwright.session));
    assert_eq!((found.of_page, found.of_others, found.without_messages), (1, 1, 0));
    assert_eq!(found.session.target, "ws://game.test:8080");
    let holds = [
        "const login = await (await fetch(`http://${new URL(bot.target).hostname}:3000/login`, { method: \"POST\"",
        "operation: \"POST /login\" })).json();",
        r#"ws.send(JSON.stringify({ type: "auth", token: login.token }));"#,
        r#"await bot.sleep("#,
        r#"for await (const n of bot.every("100ms")) {"#,
        "[n % ",
        "binary messages are said as recorded",
    ];
    check(&found.session, &holds, &["tok-77aa", "app.js", "ads.test"]);
}

#[test]
fn what_is_no_har_is_refused_with_what_to_do() {
    let check = |text: &str, fragment: &str| {
        let error = from_har(text.as_bytes()).expect_err("no HAR").to_string();
        assert!(error.contains(fragment), "{error}");
    };
    check("", "it is no HAR: ");
    check("{\"log\": {\"entries\": [", "it is no HAR: EOF");
    check("[]", "it is no HAR");
    check("{}", "there is no \"log\"");
    check("{\"log\":{}}", "there is no \"log\"");
    check("{\"log\":{\"entries\":[]}}", "none of its 0 entries");
    check(&"[".repeat(100_000), "it is no HAR");
    check(&har(1.0).to_string().replace("2026-11-27T08:00:01.000Z", "noon"), "entry 4 began at \"noon\"");
    check(
        &har(1.0)
            .to_string()
            .replace("http://", "chrome://")
            .replace("ws://", "blob://")
            .replace("https://", "data://"),
        "none of its 5 entries",
    );
}

#[test]
fn strange_recordings_are_written_in_bounds() {
    let none = write_bot(&session(vec![(0, 0, heard("x"))]), "bot.ts", Frames::Raw);
    assert!(none.is_err());
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    let mut events = vec![
        (0, 0, open("/%zz?&&=&a", &[("a b", "x"), ("", "y")])),
        (1, 0, said(deep)),
        (2, 0, said("x".repeat(200_000))),
        (3, 0, said(r#"{"a":1,"a":2,"big":123456789012345678901234567890,"real":1.0}"#)),
        (4, 0, said("")),
        (4, 0, What::Closed(Side::Server)),
        (5, 7, What::Closed(Side::Client)),
        (5, 8, answered(200, &[], "nobody asked")),
        (6, 9, said("on no connection")),
    ];
    for (n, word) in
        "return function import null enum yield atob json n bot package 1st".split(' ').enumerate()
    {
        events.push((6, 0, heard(format!(r#"{{"type":"{word}","id":"id-{n}-4711"}}"#))));
        events.push((7, 0, said(format!("TAKE id-{n}-4711"))));
    }
    // Irregular, and more than a reader follows.
    let mut at = 10;
    for n in 0..20_000_u64 {
        at += 1 + (n * n) % 97 * 20;
        events.push((at, 0, said(format!("note{} {n}", n * 7919 % 8999))));
    }
    let (written, _) = written(&session(events));
    assert!(written.text.len() < 2_000_000, "{} bytes", written.text.len());
}
