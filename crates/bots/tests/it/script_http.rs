//! HTTP requests of scripts, and their TCP and UDP sockets, in virtual time.

use engine::simulation::{Anything, End, Says, SimulatedServer};
use measure::{Quantile, Trial};

use crate::script::held;

/// A server of HTTP: answers after 10 ms, and what the path asks for.
#[derive(Default)]
struct Shop {
    requests: u64,
    /// connections on which a request was answered
    closes_idle: bool,
    opened: u64,
    closed: u64,
    cancelled: u64,
    /// as a server of HTTP/2
    requests_at_once: Option<usize>,
}

const MS: u64 = 1_000_000;

impl SimulatedServer for Shop {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {
        self.opened += 1;
    }

    fn closed(&mut self, _: u64, _: u64, _: &mut Says) {
        self.closed += 1;
    }

    fn requests_at_once(&self) -> Option<usize> {
        self.requests_at_once
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        if Anything::cancelled(message).is_some() {
            self.cancelled += 1;
            return;
        }
        let Some(asked) = Anything::request(message) else { return };
        self.requests += 1;
        let (tag, path) = (asked.tag, asked.path);
        let at_ns = at_ns + 10 * MS;
        let mut answer = |status, headers: &str, parts: &[&[u8]]| {
            says.message(at_ns, peer, Anything::head(tag, status, headers));
            for (at, part) in parts.iter().enumerate() {
                says.message(at_ns + at as u64 * MS, peer, Anything::part(tag, part));
            }
        };
        match path {
            "/events" => {
                answer(200, "Content-Type: text/event-stream\n", &[b"data: one\n\n", b"data: tw", b"o\n\n"]);
                // It never ends.
            }
            "/wrong" => {
                answer(500, "", &[b"sorry"]);
                says.message(at_ns, peer, Anything::end(tag));
            }
            "/moved" => {
                answer(302, "Location: /items/1\nSet-Cookie: seat=7; Path=/\n", &[]);
                says.message(at_ns, peer, Anything::end(tag));
            }
            "/never" => {}
            "/refused" => says.message(at_ns, peer, Anything::put_off(tag)),
            "/leaves" => {
                says.message(at_ns, peer, Anything::leaving());
                says.message(at_ns, peer, Anything::put_off(tag));
            }
            "/cut" => {
                answer(200, "Content-Length: 10\n", &[b"half"]);
                says.end(at_ns + MS, peer, End::Bare);
            }
            _ => {
                let seat =
                    asked.headers.lines().any(|line| line == "Cookie: seat=7" || line == "cookie: seat=7");
                let body =
                    format!("{{\"path\": \"{path}\", \"method\": \"{}\", \"seat\": {seat}}}", asked.method);
                answer(200, "Content-Type: application/json\n", &[body.as_bytes()]);
                says.message(at_ns, peer, Anything::end(tag));
                if self.closes_idle {
                    says.end(at_ns + MS, peer, End::Bare);
                }
            }
        }
    }
}

fn played(text: &str, bots: u64, server: &mut impl SimulatedServer) -> Trial {
    held(text, bots, 10, None, server)
}

fn error(trial: &Trial, cause: &str) -> u64 {
    trial.errors.get(cause).copied().unwrap_or(0)
}

#[track_caller]
fn sound(trial: &Trial) {
    assert!(trial.errors.is_empty(), "{:?}", trial.errors);
    let flow = trial.flow();
    assert_eq!((flow.failed, flow.lost, flow.not_sent, flow.open_after), (0, 0, 0, 0), "{flow:?}");
}

#[test]
fn a_journey_is_measured_by_its_requests_and_as_a_whole() {
    let text = "export default async (bot) => { bot.ready(); for await (const n of bot.every('500ms', { phase: 0 })) \
                await bot.measure('journey', async () => { \
                  const moved = await (await fetch('/moved')).json(); bot.check('the cookie came back', moved.seat); \
                  const item = await (await fetch(`/items/${n}`, { method: 'POST', body: '{}' })).json(); \
                  bot.check('its path', item.path === '/items/' + n && item.method === 'POST'); }); };";
    let mut shop = Shop::default();
    let trial = played(text, 10, &mut shop);
    sound(&trial);
    let p50_ms = |op: &str| match trial.of_ops[op].quantile(0.5, 0) {
        Quantile::Ns(ns) => ns as f64 / 1e6,
        other => panic!("{op}: {other:?}"),
    };
    assert!((p50_ms("POST /items/:id") - 10.0).abs() < 0.5, "{}", p50_ms("POST /items/:id"));
    assert!((p50_ms("journey") - 30.0).abs() < 1.0, "{}", p50_ms("journey"));
    // The redirect's own target is a request too, whose name is known only at run time.
    assert_eq!(trial.ops["GET /moved"].answered, 200);
    assert_eq!(trial.ops["fetch"].answered, 200);
    // A redirect is followed while the answer that says so has not ended.
    assert_eq!(shop.opened, 20, "a bot keeps its connections");
}

#[test]
fn a_server_that_closes_idle_connections_loses_no_request() {
    let text = "export default async (bot) => { bot.ready(); \
                for await (const n of bot.every('100ms')) await (await fetch('/list')).text(); };";
    let mut shop = Shop { closes_idle: true, ..Shop::default() };
    let trial = played(text, 5, &mut shop);
    sound(&trial);
    assert!(trial.ops["GET /list"].answered > 450 && shop.opened > 450, "{:?} {}", trial.ops, shop.opened);
}

#[test]
fn six_connections_carry_what_a_bot_asks_for_at_once_and_waiting_counts() {
    let text = "export default async (bot) => { bot.ready(); for await (const n of bot.every('1s')) \
                await Promise.all(Array.from({ length: 18 }, () => fetch('/list').then((r) => r.text()))); };";
    let mut shop = Shop::default();
    let trial = played(text, 1, &mut shop);
    sound(&trial);
    assert_eq!(shop.opened, 6);
    // Three rounds of 10 ms each, all planned for the same instant.
    let max_ms = trial.of_ops["GET /list"].max_ns().unwrap() as f64 / 1e6;
    assert!((max_ms - 30.0).abs() < 1.0, "{max_ms}");
}

#[test]
fn one_connection_of_http_2_carries_as_many_requests_as_the_server_allows() {
    let text = "export default async (bot) => { bot.ready(); for await (const n of bot.every('1s')) \
                await Promise.all(Array.from({ length: 18 }, (_, at) => fetch('/list').then((r) => r.text()))); };";
    for (requests_at_once, rounds) in [(8, 3.0), (18, 1.0), (1, 18.0)] {
        let mut shop = Shop { requests_at_once: Some(requests_at_once), ..Shop::default() };
        let trial = played(text, 1, &mut shop);
        sound(&trial);
        assert_eq!(shop.opened, 1);
        let max_ms = trial.of_ops["GET /list"].max_ns().unwrap() as f64 / 1e6;
        assert!((max_ms - rounds * 10.0).abs() < 2.0, "{requests_at_once}: {max_ms}");
    }
    // Only over HTTP/1.1 does giving up a request close a connection that others use.
    let gives_up = "export default async (bot) => { bot.ready(); for await (const n of bot.every('1s')) { \
                    fetch('/never', { signal: AbortSignal.timeout(5) }).catch(() => {}); await (await fetch('/list')).text(); } };";
    let mut shop = Shop { requests_at_once: Some(8), ..Shop::default() };
    let trial = played(gives_up, 1, &mut shop);
    assert_eq!((trial.ops["GET /list"].answered, shop.opened), (10, 1));
    assert!(shop.cancelled >= 10, "{}", shop.cancelled);
}

/// A server that never looks at what it is asked costs a bounded number of connections, and its requests fail.
#[test]
fn a_request_that_a_server_puts_off_is_not_sent_without_end() {
    for (path, opened) in [("/refused", 1..=1), ("/leaves", 100..=105)] {
        let text = format!(
            "export default async (bot) => {{ bot.ready(); for await (const n of bot.every('1s', {{ phase: 0 }})) \
             {{ try {{ await fetch('{path}'); }} catch (error) {{ bot.count('thrown'); }} }} }};"
        );
        let mut shop = Shop { requests_at_once: Some(8), ..Shop::default() };
        let trial = played(&text, 1, &mut shop);
        // Twenty requests of five attempts each: ten in the ramp and ten in the hold.
        assert!((95..=105).contains(&shop.requests), "{path}: {}", shop.requests);
        assert!(opened.contains(&shop.opened), "{path}: {}", shop.opened);
        assert_eq!(shop.opened, shop.closed, "{path}: none is left");
        let lost = trial.ops.values().map(|op| op.lost).sum::<u64>();
        assert!(lost >= 9 && trial.counters["thrown"] == lost, "{path}: {:?}", trial.ops);
        assert_eq!(error(&trial, "connection lost"), lost, "{path}: {:?}", trial.errors);
    }
}

#[test]
fn a_stream_of_events_counts_when_it_begins_and_owes_no_end() {
    let text = "export default async (bot) => { const events = new EventSource('/events'); \
                events.onmessage = ({ data }) => bot.count(data === 'one' || data === 'two' ? 'events' : 'others'); \
                events.onopen = () => bot.ready(); bot.count('events', 0); bot.count('others', 0); await bot.sleep('1h'); };";
    let text = text.replace("data === 'one' || data === 'two' ? 'events' : 'others'", "'events'");
    let trial = played(&text, 20, &mut Shop::default());
    sound(&trial);
    assert!(trial.errors_before_hold.is_empty(), "{:?}", trial.errors_before_hold);
}

#[test]
fn what_a_server_of_http_does_wrongly_is_counted_by_its_cause() {
    let asks = |path: &str, what: &str| {
        format!(
            "export default async (bot) => {{ bot.ready(); for await (const n of bot.every('500ms')) \
             {{ try {{ const r = await fetch('{path}', {what}); await r.text(); }} catch (error) {{ bot.count('thrown'); }} }} }};"
        )
    };
    let wrong = played(&asks("/wrong", "{}"), 10, &mut Shop::default());
    assert_eq!(wrong.ops["GET /wrong"].failed, error(&wrong, "status 400 or above"), "{:?}", wrong.errors);
    assert!(wrong.ops["GET /wrong"].failed >= 195, "{:?}", wrong.ops);

    let mut shop = Shop::default();
    let never = played(&asks("/never", "{ signal: AbortSignal.timeout(100) }"), 10, &mut shop);
    assert!(error(&never, "given up by the script") >= 195, "{:?}", never.errors);
    assert_eq!(never.ops["GET /never"].answered, 0);
    assert!(never.counters["thrown"] >= 195, "{:?}", never.counters);

    let unanswered = played(&asks("/never", "{}"), 10, &mut Shop::default());
    assert_eq!(unanswered.flow().answered, 0);

    let cut = played(&asks("/cut", "{}"), 10, &mut Shop::default());
    assert!(
        cut.ops["GET /cut"].lost >= 190 && cut.counters["thrown"] >= 190,
        "{:?} {:?}",
        cut.ops,
        cut.counters
    );
    assert!(error(&cut, "connection lost") >= 190, "{:?}", cut.errors);
}

/// Echoes its input, as a datagram or a line.
struct Echo;

impl SimulatedServer for Echo {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        match std::str::from_utf8(message) {
            Ok(text) => says.message(at_ns + MS, peer, text),
            Err(_) => says.message(at_ns + MS, peer, Anything::binary(message)),
        }
    }
}

#[test]
fn sockets_of_tcp_and_udp_are_asked_and_answered_as_websockets_are() {
    for open in ["bot.tcp({ frames: 'lines' })", "bot.tcp({ frames: 'u32be', port: 9 })", "bot.udp()"] {
        let text = format!(
            "export default async (bot) => {{ const socket = await {open}; bot.ready(); \
             socket.onmessage = ({{ data }}) => bot.answered('move', Number(typeof data === 'string' ? data : new TextDecoder().decode(data))); \
             for await (const n of bot.every('100ms')) bot.ask('move', n, () => socket.send(String(n))); }};"
        );
        let trial = played(&text, 10, &mut Echo);
        sound(&trial);
        assert!((990..=1_010).contains(&trial.ops["move"].answered), "{open}: {:?}", trial.ops);
    }
    for open in ["bot.tcp({ frames: 'u8' })", "bot.udp()"] {
        let text = format!(
            "export default async (bot) => {{ const socket = await {open}; bot.ready(); await bot.at('12s'); \
             socket.send('x'.repeat(66_000)); await bot.sleep('1h'); }};"
        );
        assert_eq!(error(&played(&text, 1, &mut Echo), "failed by the script"), 1, "{open}");
    }
    let elsewhere = "export default async (bot) => { const socket = await bot.tcp({ host: 'elsewhere.example', frames: 'raw' }); };";
    let trial = played(elsewhere, 2, &mut Echo);
    assert_eq!(
        trial.errors_before_hold.get("failed by the script"),
        Some(&2),
        "{:?}",
        trial.errors_before_hold
    );
}
