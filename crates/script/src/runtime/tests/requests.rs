//! fetch, XMLHttpRequest, EventSource and cookies, with the server's side played by the test.

use super::*;

/// A script whose bot's function has this body; what `bot.fail` was given is what it said.
struct Played {
    script: Script,
    said: Vec<String>,
}

impl Played {
    fn new(body: &str) -> Played {
        let mut played = Played {
            script: played(&format!("export default async (bot) => {{ {body} }};")),
            said: Vec::new(),
        };
        played.script.start(0, 0, 0);
        played
    }

    /// Commands other than words that were said, each in short.
    fn commands(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for command in commands(&mut self.script) {
            match command {
                Command::Failed(words) => self.said.push(words),
                Command::Threw(words) => self.said.push(format!("threw {words}")),
                Command::Request { request, method, url, headers, body, operation, planned_ns: _ } => {
                    let headers: Vec<String> = headers
                        .iter()
                        .filter(|(name, _)| name != "accept")
                        .map(|(name, value)| format!(" {name}={value}"))
                        .collect();
                    let body = String::from_utf8_lossy(&body);
                    let url = url.strip_prefix("http://127.0.0.1:8080").unwrap_or(&url);
                    all.push(format!("{request} {method} {url}{} [{body}] {operation}", headers.concat()));
                }
                Command::Cancel { request } => all.push(format!("cancel {request}")),
                Command::Timer { id, at_ns } => all.push(format!("timer {id} at {} ms", at_ns / 1_000_000)),
                Command::Open { headers, .. } => all.push(format!("open {headers:?}")),
                Command::Ended | Command::Broke => {}
                other => all.push(format!("{other:?}")),
            }
        }
        all
    }

    fn responds(&mut self, request: u32, status: u16, headers: &[(&str, &str)], body: &[&str]) {
        self.begins(request, status, headers);
        for part in body {
            self.script.body_part(0, request, part.as_bytes(), 1_000_000);
        }
        self.script.body_end(0, request, 1_000_000);
    }

    fn begins(&mut self, request: u32, status: u16, headers: &[(&str, &str)]) {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.script.responded(0, request, status, "Words", &headers, 1_000_000);
    }

    fn said(&mut self) -> Vec<String> {
        let rest = self.commands();
        assert!(rest.is_empty(), "{rest:?}");
        std::mem::take(&mut self.said)
    }
}

#[test]
fn a_fetch_is_a_request_with_a_name_and_a_streamed_response() {
    let mut bot = Played::new(
        "const r = await fetch('/items/42/a?b=c#d', { method: 'post', body: 'é', headers: { 'X-A': '1' } });
         bot.fail([r.status, r.statusText, r.ok, r.url, r.redirected, r.headers.get('X-B'), r.type].join());
         for await (const part of r.body) bot.fail(new TextDecoder().decode(part));
         bot.fail('end ' + r.bodyUsed);",
    );
    assert_eq!(
        bot.commands(),
        ["1 POST /items/42/a?b=c X-A=1 content-type=text/plain;charset=UTF-8 [é] POST /items/:id/a"]
    );
    bot.begins(1, 201, &[("X-B", "2")]);
    assert_eq!(bot.said(), ["201,Words,true,http://127.0.0.1:8080/items/42/a?b=c,false,2,basic"]);
    bot.script.body_part(0, 1, b"one", 2);
    bot.script.body_part(0, 1, b"two", 2);
    assert_eq!(bot.said(), ["one", "two"]);
    bot.script.body_end(0, 1, 3);
    assert_eq!(bot.said(), ["end true"]);
}

#[test]
fn operations_are_named_by_method_and_path_without_numbers_and_ids() {
    for (path, expected) in [
        ("/", "GET /"),
        ("/users/7", "GET /users/:id"),
        ("/users/-7/1.5/v2?x=1", "GET /users/:id/:id/v2"),
        ("/m/123e4567-e89b-12d3-a456-426614174000/join", "GET /m/:id/join"),
        ("/m/5f1d7e2ab0c4d3e2f1a0b9c8", "GET /m/:id"),
        ("/m/deadbeef", "GET /m/deadbeef"),
        ("/feedbackfeedbackfeed", "GET /feedbackfeedbackfeed"),
        ("/t/dGhpcyBpcyBhIHRva2Vu1A==", "GET /t/:id"),
        ("/t/a-long-name-of-a-page-from-2024", "GET /t/a-long-name-of-a-page-from-2024"),
        ("/a/", "GET /a/"),
    ] {
        let mut bot = Played::new(&format!("await fetch('{path}');"));
        let all = bot.commands();
        assert!(all[0].ends_with(&format!("[] {expected}")), "{path}: {all:?}");
    }
    let all = Played::new(
        "fetch(new Request('/a/1', { operation: 'items' })); fetch('/b', { operation: 'other' });",
    )
    .commands();
    assert_eq!(all, ["1 GET /a/1 [] items", "2 GET /b [] other"]);
}

#[test]
fn redirects_are_followed_as_the_standard_has_them() {
    for (init, status, location, expected) in [
        ("{ method: 'POST', body: 'x' }", 302, "/next", "2 GET /next [] GET /next"),
        (
            "{ method: 'POST', body: 'x' }",
            307,
            "/next",
            "2 POST /next content-type=text/plain;charset=UTF-8 [x] POST /next",
        ),
        (
            "{ method: 'PUT', body: 'x' }",
            302,
            "b",
            "2 PUT /b content-type=text/plain;charset=UTF-8 [x] PUT /b",
        ),
        ("{ method: 'PUT', body: 'x' }", 303, "b", "2 GET /b [] GET /b"),
        ("{ method: 'HEAD' }", 303, "b", "2 HEAD /b [] HEAD /b"),
        (
            "{ headers: { Authorization: 'secret', X: '1' } }",
            301,
            "/n",
            "2 GET /n Authorization=secret X=1 [] GET /n",
        ),
        (
            "{ headers: { Authorization: 'secret', X: '1' } }",
            301,
            "http://other/n",
            "2 GET http://other/n X=1 [] GET /n",
        ),
        ("{ operation: 'all' }", 308, "/n/1", "2 GET /n/1 [] all"),
    ] {
        let mut bot = Played::new(&format!(
            "const r = await fetch('/first', {init}); bot.fail(r.redirected + ' ' + new URL(r.url).pathname);"
        ));
        bot.commands();
        bot.responds(1, status, &[("location", location)], &["not read"]);
        assert_eq!(bot.commands(), [expected], "{init} {status} {location}");
        bot.responds(2, 200, &[], &[]);
        let said = bot.said();
        assert!(said.len() == 1 && said[0].starts_with("true /"), "{said:?}");
    }
    for (init, location, expected) in [
        ("{ redirect: 'manual' }", "/n", vec!["302 /n"]),
        ("{ redirect: 'error' }", "/n", vec!["TypeError"]),
        ("{}", "file:///etc/passwd", vec!["TypeError"]),
        ("{}", "http://", vec!["TypeError"]),
    ] {
        let mut bot = Played::new(&format!(
            "try {{ const r = await fetch('/', {init}); bot.fail(r.status + ' ' + r.headers.get('location')); }} catch (e) {{ bot.fail(e.name); }}"
        ));
        bot.commands();
        bot.begins(1, 302, &[("Location", location)]);
        let commands = bot.commands();
        assert!(commands.is_empty() || commands == ["cancel 1"], "{commands:?}");
        assert_eq!(bot.said, expected, "{init} {location}");
    }
    let mut bot = Played::new("try { await fetch('/0'); } catch (e) { bot.fail(e.message); }");
    for hop in 1..=21 {
        assert_eq!(bot.commands().len(), 1, "hop {hop}");
        bot.begins(hop, 302, &[("location", "/n")]);
    }
    assert_eq!(bot.commands(), ["cancel 21"]);
    assert_eq!(bot.said, ["http://127.0.0.1:8080/n: more than 20 redirects"]);
}

#[test]
fn an_aborted_fetch_is_cancelled_and_rejects_with_the_reason() {
    let mut bot = Played::new(
        "const c = new AbortController(); setTimeout(() => c.abort(new Error('enough')), 10);
         const r = await fetch('/', { signal: c.signal }); bot.fail('head');
         try { await r.text(); } catch (e) { bot.fail(e.message); }
         try { await fetch('/', { signal: c.signal }); } catch (e) { bot.fail('again ' + e.message); }
         const s = AbortSignal.timeout(5); try { await fetch('/', { signal: s }); } catch (e) { bot.fail(e.name); }",
    );
    assert_eq!(bot.commands(), ["timer 1 at 10 ms", "2 GET / [] GET /"]);
    bot.begins(2, 200, &[]);
    assert_eq!(bot.said(), ["head"]);
    bot.script.timer(0, 1, 10_000_000, 10_000_000);
    assert_eq!(bot.commands(), ["cancel 2", "timer 3 at 15 ms", "4 GET / [] GET /"]);
    assert_eq!(bot.said, ["enough", "again enough"]);
    bot.said.clear();
    bot.script.timer(0, 3, 15_000_000, 15_000_000);
    assert_eq!(bot.commands(), ["cancel 4"]);
    assert_eq!(bot.said, ["TimeoutError"]);
    // What the host may still tell of a cancelled request is not heard.
    bot.begins(4, 200, &[]);
    bot.script.request_failed(0, 4, "reset", 1);
    bot.said.clear();
    assert_eq!(bot.said(), [""; 0]);
}

#[test]
fn a_failed_request_rejects_and_a_cancelled_body_is_no_longer_wanted() {
    let mut bot = Played::new("try { await fetch('/'); } catch (e) { bot.fail(e.name + ' ' + e.message); }");
    bot.commands();
    bot.script.request_failed(0, 1, "connection refused", 1);
    assert_eq!(bot.said(), ["TypeError connection refused"]);
    let mut bot =
        Played::new("const r = await fetch('/'); try { await r.text(); } catch (e) { bot.fail(e.message); }");
    bot.commands();
    bot.begins(1, 200, &[]);
    bot.script.body_part(0, 1, b"half", 1);
    bot.script.request_failed(0, 1, "the connection was closed", 1);
    assert_eq!(bot.said(), ["the connection was closed"]);
    let mut bot =
        Played::new("const r = await fetch('/'); for await (const part of r.body) break; bot.fail('left');");
    bot.commands();
    bot.begins(1, 200, &[]);
    bot.script.body_part(0, 1, b"half", 1);
    assert_eq!(bot.commands(), ["cancel 1"]);
    assert_eq!(bot.said, ["left"]);
}

#[test]
fn a_jar_per_bot_keeps_and_sends_cookies() {
    let long_ago = "a=old; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
    for (lines, path, expected) in [
        (vec!["a=1; HttpOnly", "b=2"], "/x", " cookie=a=1; b=2"),
        (vec!["a=1", "a=2"], "/x", " cookie=a=2"),
        (vec!["a=1; Path=/x", "b=2; Path=/xy"], "/x/y", " cookie=a=1"),
        (vec!["r=1; Path=/", "d=2; Path=/x"], "/x", " cookie=d=2; r=1"),
        (vec!["a=1", "a=; Max-Age=0"], "/x", ""),
        (vec!["a=1", long_ago], "/x", ""),
        (vec!["a=1; Max-Age=100; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], "/x", " cookie=a=1"),
        (vec!["a=1; Domain=example.com"], "/x", ""),
        (vec!["a=1; Domain=127.0.0.1"], "/x", " cookie=a=1"),
        (vec!["a=1; Secure"], "/x", " cookie=a=1"),
        (vec!["__Host-a=1; Secure; Path=/x"], "/x", ""),
        (vec!["a=1"], "http://other/x", ""),
        (vec!["=x", "y", "bad\u{1}=1", ""], "/x", " cookie=y"),
    ] {
        let mut bot = Played::new(&format!("await fetch('/'); await fetch('{path}');"));
        bot.commands();
        let headers: Vec<_> = lines.iter().map(|line| ("Set-Cookie", *line)).collect();
        bot.responds(1, 200, &headers, &[]);
        let all = bot.commands();
        let shown = if path.starts_with('/') { path } else { "http://other/x" };
        assert!(all[0].starts_with(&format!("2 GET {shown}{expected} []")), "{lines:?}: {all:?}");
    }
    let mut bot = Played::new(
        "await fetch('/'); await fetch('/a', { credentials: 'omit' }); await fetch('/b', { headers: { Cookie: 'own=1' } });
         bot.websocket('/ws', { cookies: { a: 2, c: 3 } });",
    );
    bot.commands();
    bot.responds(1, 200, &[("set-cookie", "a=1"), ("set-cookie", "b=1")], &[]);
    assert_eq!(bot.commands(), ["2 GET /a [] GET /a"]);
    bot.responds(2, 200, &[("set-cookie", "z=1")], &[]);
    assert_eq!(bot.commands(), ["3 GET /b Cookie=own=1 [] GET /b"]);
    bot.responds(3, 200, &[], &[]);
    assert_eq!(bot.commands(), [r#"open [("Cookie", "a=2; c=3; b=1")]"#]);
    // Another bot of the same realm has none of them.
    let mut script =
        played("export default async (bot) => { await fetch('/' + bot.id); await fetch('/'); };");
    script.start(0, 0, 0);
    script.start(1, 1, 0);
    script.responded(0, 1, 200, "", &[("set-cookie".to_owned(), "a=1".to_owned())], 0);
    script.responded(1, 1, 200, "", &[], 0);
    let sent: Vec<bool> = commands(&mut script)
        .iter()
        .filter_map(|command| match command {
            Command::Request { url, headers, .. } if url.ends_with('/') => {
                Some(headers.iter().any(|(name, _)| name == "cookie"))
            }
            _ => None,
        })
        .collect();
    assert_eq!(sent, [true, false]);
}

#[test]
fn an_event_source_reads_events_however_their_bytes_are_cut() {
    let stream = "\u{feff}: hello\r\ndata: one\r\rid: 7\ndata:two\ndata:  three\nevent: named\n\nretry: 50\nretry: no\ndata\n\n\
                  id: 8\n\ndata: é😀\r\n\r\nid: bad\0\ndata: kept\n\nevent: none\n\ndata: cut off";
    let expected = [
        "message|one||http://127.0.0.1:8080",
        "named|two\n three|7|http://127.0.0.1:8080",
        "message||7|http://127.0.0.1:8080",
        "message|é😀|8|http://127.0.0.1:8080",
        "message|kept|8|http://127.0.0.1:8080",
    ];
    for size in 1..=stream.len() {
        let mut bot = Played::new(
            "const s = new EventSource('/events'); const say = (e) => bot.fail([e.type, e.data, e.lastEventId, e.origin].join('|'));
             s.onmessage = say; s.addEventListener('named', say); s.onerror = () => bot.fail('error ' + s.readyState);",
        );
        assert_eq!(bot.commands(), ["1 GET /events cache-control=no-store [] GET /events"]);
        bot.begins(1, 200, &[("content-type", "text/event-stream; charset=utf-8")]);
        for part in stream.as_bytes().chunks(size) {
            bot.script.body_part(0, 1, part, 1_000_000);
        }
        assert_eq!(bot.said(), expected, "parts of {size} bytes");
        bot.script.body_end(0, 1, 2_000_000);
        assert_eq!(bot.commands(), ["timer 2 at 52 ms"], "after the time of retry");
        assert_eq!(bot.said, ["error 0"]);
        bot.script.timer(0, 2, 52_000_000, 52_000_000);
        assert_eq!(bot.commands(), ["3 GET /events cache-control=no-store last-event-id=8 [] GET /events"]);
    }
}

#[test]
fn an_event_source_gives_up_where_the_server_has_no_events() {
    for (status, kind) in [(204, "text/event-stream"), (500, "text/event-stream"), (200, "text/html")] {
        let mut bot = Played::new(
            "const s = new EventSource('/e'); s.onerror = (e) => bot.fail(s.readyState + ' ' + e.message);",
        );
        bot.commands();
        bot.begins(1, status, &[("content-type", kind)]);
        assert_eq!(bot.commands(), ["cancel 1"]);
        assert!(
            bot.said[0].starts_with("2 EventSource http://127.0.0.1:8080/e: it answered with"),
            "{:?}",
            bot.said
        );
    }
    let mut bot = Played::new(
        "const s = new EventSource('/e'); s.onopen = () => s.close(); s.onerror = () => bot.fail('error');",
    );
    bot.commands();
    bot.begins(1, 200, &[("content-type", "text/event-stream")]);
    assert_eq!(bot.commands(), ["cancel 1"]);
    bot.script.body_end(0, 1, 0);
    assert_eq!(bot.said(), [""; 0]);
}

#[test]
fn an_xml_http_request_tells_its_states_in_the_order_of_the_standard() {
    let script = "const x = new XMLHttpRequest(); for (const t of ['readystatechange', 'loadstart', 'progress', 'load', 'error', 'abort', 'timeout', 'loadend'])
         x.addEventListener(t, (e) => bot.fail(t + x.readyState + (e.loaded ? ':' + e.loaded + '/' + e.total : '')));";
    let mut bot = Played::new(&format!(
        "{script} x.open('POST', '/p/9'); x.setRequestHeader('A', '1'); x.setRequestHeader('a', '2'); x.responseType = 'json'; x.send('{{}}');
         await new Promise((done) => x.onloadend = done); bot.fail([x.status, x.statusText, x.response.b, x.getResponseHeader('X-Y'), x.responseURL].join());
         bot.fail(x.getAllResponseHeaders());"
    ));
    assert_eq!(
        bot.commands(),
        ["1 POST /p/9 A=1 a=2 content-type=text/plain;charset=UTF-8 [{}] POST /p/:id"]
    );
    bot.responds(1, 200, &[("X-Y", "z"), ("content-length", "7")], &["{\"b\":", "1}"]);
    assert_eq!(
        bot.said(),
        [
            "readystatechange1",
            "loadstart1",
            "readystatechange2",
            "readystatechange3",
            "progress3:5/7",
            "readystatechange3",
            "progress3:7/7",
            "readystatechange4",
            "load4:7/7",
            "loadend4:7/7",
            "200,Words,1,z,http://127.0.0.1:8080/p/9",
            "content-length: 7\r\nx-y: z\r\n",
        ]
    );
    let mut bot = Played::new(&format!("{script} x.open('GET', '/'); x.timeout = 20; x.send();"));
    assert_eq!(bot.commands(), ["1 GET / [] GET /", "timer 2 at 20 ms"]);
    bot.said.clear();
    bot.script.timer(0, 2, 20_000_000, 20_000_000);
    assert_eq!(bot.commands(), ["cancel 1"]);
    assert_eq!(bot.said, ["readystatechange4", "timeout4", "loadend4"]);
    let mut bot = Played::new(&format!(
        "{script} x.open('GET', '/'); x.send(); x.abort(); bot.fail(x.readyState + x.responseText);"
    ));
    assert_eq!(bot.commands(), ["1 GET / [] GET /", "cancel 1"]);
    assert_eq!(bot.said, ["readystatechange1", "loadstart1", "readystatechange4", "abort4", "loadend4", "0"]);
    let mut bot = Played::new(
        "const x = new XMLHttpRequest(); x.onerror = () => bot.fail('error ' + x.status); x.open('GET', '/'); x.send(); \
                               for (const f of [() => x.open('GET', '/', false), () => x.send(), () => x.setRequestHeader('a', 'b')]) try { f(); } catch (e) { bot.fail(e.name); }",
    );
    bot.commands();
    bot.script.request_failed(0, 1, "refused", 0);
    assert_eq!(bot.said(), ["InvalidAccessError", "InvalidStateError", "InvalidStateError", "error 0"]);
}

#[test]
fn what_a_server_says_changes_none_of_the_interfaces() {
    let mut bot = Played::new(
        "const data = await (await fetch('/')).json(); Object.assign({}, data); const merged = structuredClone(data);
         bot.fail([{}.method, {}.headers, merged.method, typeof Object.getPrototypeOf(merged).toString].join());
         await fetch('/b', data); bot.row;",
    );
    bot.commands();
    bot.responds(
        1,
        200,
        &[("__proto__", "x"), ("constructor", "y")],
        &["{\"__proto__\":{\"method\":\"DELETE\",\"headers\":{\"a\":\"b\"}}}"],
    );
    assert_eq!(bot.commands(), ["2 GET /b [] GET /b"]);
    assert_eq!(bot.said, [",,,function"]);
}
