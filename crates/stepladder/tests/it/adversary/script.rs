//! Scripted bots: servers that attack the script, its engine and its HTTP and TCP connections.

use std::io;

use super::peer::Peer;
use super::websocket::{TEXT, frame, message, open};
use super::{Fails, Load, Passes, Row, Unmeasured, check, long, row};

/// Merges the received data into its own object, as clients do with settings.
const PLAYER: &str = r#"
export const options = { objectives: ["errors == 0"] };
export default async function player(bot: { [name: string]: any }) {
  const settings: { [name: string]: any } = {};
  const merge = (into: any, from: any) => { for (const key in from) into[key] = typeof from[key] === "object" ? merge(into[key] ?? {}, from[key]) : from[key]; return into; };
  const ws = await bot.websocket("/");
  ws.send("login");
  merge(settings, JSON.parse(await ws.next((m: string) => m.startsWith("{"), { within: "2s" })));
  bot.ready();
  ws.onmessage = ({ data }: { data: string }) => { const m = JSON.parse(data); bot.answered("move", m.seq); };
  for await (const n of bot.every("50ms")) bot.ask("move", n, () => ws.send(JSON.stringify({ seq: n })));
}"#;

const WEBSOCKET: Load = Load::new("script over WebSocket", "bot.ts --target ws://127.0.0.1:PORT --rungs 4")
    .with_files(|_| vec![("bot.ts", PLAYER.to_owned())]);

/// Logs in, answers each move by `answer`.
fn game(
    welcome: impl AsRef<[u8]>,
    answer: impl Fn(&[u8], usize) -> Vec<Vec<u8>>,
) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        open(peer)?;
        message(peer)?;
        peer.say(frame(TEXT, welcome.as_ref()))?;
        for count in 1.. {
            let heard = message(peer)?;
            for said in answer(&heard, count) {
                peer.say(frame(TEXT, &said))?;
            }
        }
        Ok(())
    }
}

fn echo(heard: &[u8], _: usize) -> Vec<Vec<u8>> {
    vec![heard.to_vec()]
}

fn deep(levels: usize) -> String {
    ["{\"a\":".repeat(levels), "1".to_owned(), "}".repeat(levels)].concat()
}

fn players() -> Vec<Row> {
    let polluting = r#"{"__proto__": {"within": 0, "then": "x", "timer": 1, "held": 2, "map": 3}}"#;
    vec![
        row("game that answers", Passes, "", game("{}", echo)),
        row(
            "game whose settings reach for prototypes: those of the script alone change",
            Passes,
            "",
            game(polluting, echo),
        ),
        row(
            "game that never says welcome",
            Unmeasured,
            "no message that matches within 2s",
            game("wait", echo),
        ),
        row("game whose welcome is no JSON", Unmeasured, "SyntaxError", game("{not", echo)),
        row(
            "game whose welcome is nested without end",
            Unmeasured,
            "RangeError|InternalError|not in|script error",
            game(deep(10_000), echo),
        ),
        row(
            "game that answers twice",
            Fails,
            "unexpected",
            game("{}", |heard, _| vec![heard.to_vec(), heard.to_vec()]),
        )
        .with(&["--objective", "errors == 0"]),
        row(
            "game that answers what was not asked",
            Fails,
            "never answered|unanswered",
            game("{}", |_, count| vec![format!("{{\"seq\": {}}}", count + 1_000_000).into_bytes()]),
        ),
        row(
            "game whose answers are no JSON after a while",
            Fails,
            "script error",
            game("{}", |heard, count| vec![if count > 10 { b"}".to_vec() } else { heard.to_vec() }]),
        ),
        row(
            "game whose answers have a quarter of a megabyte",
            Passes,
            "",
            game("{}", |heard, _| {
                let more = format!(", \"world\": \"{}\"}}", "é".repeat(1 << 17));
                vec![String::from_utf8_lossy(heard).replace('}', &more).into_bytes()]
            }),
        ),
        row(
            "game that falls silent",
            Fails,
            "never answered|stopped|unanswered",
            game("{}", |heard, count| if count > 10 { Vec::new() } else { vec![heard.to_vec()] }),
        ),
    ]
}

const FETCHER: &str = r#"
export const options = { objectives: ["errors == 0"] };
export default async function shopper(bot: { [name: string]: any }) {
  bot.ready();
  for await (const n of bot.every("100ms")) { const r = await fetch("/list"); bot.check("a list", Array.isArray(await r.json())); }
}"#;

const HTTP: Load = Load::new("script over HTTP", "bot.ts --target http://127.0.0.1:PORT --rungs 4")
    .with_files(|_| vec![("bot.ts", FETCHER.to_owned())]);

/// Answers each request with these bytes.
fn answers(bytes: impl Into<Vec<u8>>) -> impl Fn(&mut Peer) -> io::Result<()> {
    let bytes = bytes.into();
    move |peer| {
        loop {
            peer.head()?;
            peer.say(&bytes)?;
        }
    }
}

fn shops() -> Vec<Row> {
    let list = |headers: &str| format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\n[]");
    let cookies: String =
        (0..120).map(|n| format!("Set-Cookie: c{n}={}; Path=/\r\n", "v".repeat(64))).collect();
    vec![
        row("shop that answers", Passes, "", answers(list(""))),
        row("shop that hands out many cookies", Passes, "", answers(list(&cookies))),
        row(
            "shop that always errs",
            Fails,
            "status 400 or above",
            answers("HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n[]"),
        ),
        long(
            "shop that redirects to itself",
            Fails,
            "script error",
            answers("HTTP/1.1 302 Found\r\nLocation: /list\r\nContent-Length: 0\r\n\r\n"),
        ),
        row(
            "shop that redirects to another host",
            Fails,
            "script error|not the server of --target",
            answers("HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n"),
        ),
        row(
            "shop whose body is another thing",
            Fails,
            "script error",
            answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"),
        ),
        row(
            "shop whose length is a lie",
            Fails,
            "broken protocol|connection|script error",
            |peer: &mut Peer| {
                peer.head()?;
                peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]")
            },
        ),
        row(
            "shop with two lengths",
            Fails,
            "broken protocol|script error",
            answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n[]"),
        ),
        row(
            "shop whose body never ends",
            Fails,
            "never answered|unanswered|script error",
            |peer: &mut Peer| {
                peer.head()?;
                peer.say_last("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n")
            },
        ),
        long("shop that says nothing", Fails, "never answered|stopped|unanswered", |peer: &mut Peer| {
            peer.head()?;
            peer.hold()
        }),
    ]
}

const FRAMER: &str = r#"
export const options = { objectives: ["errors == 0"] };
export default async function framer(bot: { [name: string]: any }) {
  const tcp = await bot.tcp({ frames: "u32be" });
  bot.ready();
  tcp.onmessage = ({ data }: { data: ArrayBuffer }) => bot.answered("move", new DataView(data).getUint32(0));
  for await (const n of bot.every("50ms")) bot.ask("move", n, () => { const m = new DataView(new ArrayBuffer(4)); m.setUint32(0, n); tcp.send(m); });
}"#;

const TCP: Load = Load::new("script over TCP", "bot.ts --target tcp://127.0.0.1:PORT --rungs 4")
    .with_files(|_| vec![("bot.ts", FRAMER.to_owned())]);

fn framed() -> Vec<Row> {
    let echoes = |length: [u8; 4]| {
        move |peer: &mut Peer| loop {
            let [_, _, _, _, a, b, c, d]: [u8; 8] = peer.bytes()?;
            peer.say([&length[..], &[a, b, c, d]].concat())?;
        }
    };
    vec![
        row("frames that answer", Passes, "", echoes([0, 0, 0, 4])),
        row("frames as long as memory", Fails, "broken protocol", echoes([0xff; 4])),
        row(
            "frames too short for the script",
            Fails,
            "script error|broken protocol|stopped replying|unanswered",
            echoes([0, 0, 0, 1]),
        ),
        long(
            "frames that never come whole",
            Fails,
            "never answered|stopped|unanswered",
            echoes([0, 0, 0x10, 0]),
        ),
    ]
}

const MEMBER: &str = r#"
export default async function member(bot: { [name: string]: any }) {
  const ws = await bot.websocket("/");
  const room = bot.room("all");
  ws.onmessage = ({ data }: { data: string }) => { const [from, seq] = data.split(" ").map(Number); room.received(from, seq); };
  room.join();
  bot.ready();
  await bot.at("100ms");
  for await (const n of bot.every("100ms")) { ws.send(`${bot.id} ${n}`); room.sent(n); }
}"#;

const ROOM: Load = Load::new("script with rooms", "bot.ts --target ws://127.0.0.1:PORT --rungs 4")
    .with_files(|_| vec![("bot.ts", MEMBER.to_owned())]);

fn rooms() -> Vec<Row> {
    let says = |text: fn(&[u8]) -> Vec<u8>| {
        move |peer: &mut Peer| {
            open(peer)?;
            loop {
                let said = text(&message(peer)?);
                if !said.is_empty() {
                    peer.say(frame(TEXT, &said))?;
                }
            }
        }
    };
    vec![
        row("relay that delivers nothing", Fails, "deliveries.lost|stopped delivering", says(|_| Vec::new())),
        row(
            "relay that gives back to each what it said, and nothing to the others",
            Fails,
            "deliveries.lost|stopped delivering",
            says(<[u8]>::to_vec),
        ),
    ]
}

#[test]
fn hostile_servers_of_scripts_do_not_pass() {
    check(&ROOM, &rooms());
    check(&WEBSOCKET, &players());
    check(&HTTP, &shops());
    check(&TCP, &framed());
}
