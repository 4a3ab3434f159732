//! Servers that stall in the middle of long messages, on many connections or streams at once: partial data is bounded
//! in memory.

use super::http1::{later, says};
use super::http2::{self, stalls};
use super::peer::Peer;
use super::websocket::{TEXT, frame, open};
use super::{Fails, Load, Row, check, grpc, lines, long, nats, redis, row, websocket};

/// Looked at as a whole, so that the clients have to keep it: as long as that may be, less what never comes.
const BODY_BYTES: usize = (4 << 20) - 10;
/// On a busy machine less has come when the client gives up.
const REFUSED: &str =
    "too many unfinished answers|answer never ended|stopped replying|connections open|never answered";

const HTTP_1: Load = Load::new(
    "HTTP/1.1, 256 connections",
    "http://127.0.0.1:PORT/ --requesters 256 --timeout 500ms --think 20ms --expect-text hello",
);

const HTTP_2: Load = Load::new(
    "HTTP/2, 4 connections of 100 streams",
    "http://127.0.0.1:PORT/ --http 2 --rate 800 --connections 4 --timeout 500ms --expect-text hello",
);

const GRPC: Load = Load::new(
    "gRPC, 4 connections of 100 streams",
    "grpc://127.0.0.1:PORT/game.v1.Game/Move --proto game.proto --body {\"x\":5} --rate 800 \
     --connections 4 --timeout 500ms",
)
.with_files(|_| vec![("game.proto", grpc::SCHEMA.to_owned())]);

const REDIS: Load = Load::new(
    "Redis, 256 connections",
    "redis://127.0.0.1:PORT --rate 2000 --op get --keys uniform:10 --value 8 --connections 256 \
     --objective errors==0",
);

const WEBSOCKET: Load =
    Load::new("WebSocket, 256 connections", "ws://127.0.0.1:PORT --bots echo --rungs 256");

/// Clients that send much.
const LOUD: Load =
    Load::new("WebSocket, 64 connections, messages of 60 kB", "echo.yaml").with_files(|port| {
        let scenario = format!(
            "subject: {{ target: 'ws://127.0.0.1:{port}/' }}
bots: {{ kind: echo, rate: 100, payload_bytes: 60000 }}
ladder: {{ rungs: [64] }}
"
        );
        vec![("echo.yaml", scenario)]
    });

const LINES: Load = Load::new(
    "lines, 256 connections",
    "tcp://127.0.0.1:PORT --bots chat --rungs 256 --gap 1s..2s --objective deliveries.lost==0",
);

const NATS: Load = Load::new(
    "NATS, 256 connections",
    "nats://127.0.0.1:PORT --rungs 256 --gap 1s..2s --objective deliveries.lost==0",
);

fn cut(head: String) -> Vec<u8> {
    [head.as_bytes(), &[b'x'; BODY_BYTES - 10]].concat()
}

fn bodies_1() -> Vec<Row> {
    vec![
        long(
            "stalls before the last bytes of 4 MiB",
            Fails,
            REFUSED,
            says(cut(format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n"))),
        ),
        long(
            "stalls before the last bytes of a chunk of 4 MiB",
            Fails,
            REFUSED,
            says(cut(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{BODY_BYTES:x}\r\n"))),
        ),
        long(
            "stalls before the last bytes of 4 MiB in chunks of 64 KiB",
            Fails,
            REFUSED,
            says(
                [
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
                    [b"10000\r\n", &[b'x'; 1 << 16][..], b"\r\n"].concat().repeat(63),
                    b"ffff\r\n".to_vec(),
                    vec![b'x'; 65_000],
                ]
                .concat(),
            ),
        ),
        long(
            "stalls before the last bytes of a head of 16 kB",
            Fails,
            "no answer in time|answer never ended|stopped replying",
            says(format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(16_000))),
        ),
        long(
            "sends 4 MiB with 16 MB a second, and does not end there",
            Fails,
            "too many unfinished answers|answer never ended|wrong body|unasked bytes",
            later(|peer| {
                peer.say(format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n"))?;
                peer.flood([b'x'; 100])
            }),
        ),
    ]
}

fn bodies_2() -> Vec<Row> {
    vec![long(
        "stalls before the last bytes of 4 MiB on each stream",
        Fails,
        REFUSED,
        stalls(http2::right, http2::OK, Vec::new(), BODY_BYTES),
    )]
}

fn messages() -> Vec<Row> {
    let announced = [&[0][..], &(BODY_BYTES as u32).to_be_bytes()].concat();
    vec![long(
        "stalls before the last bytes of a message of 4 MiB on each stream",
        Fails,
        REFUSED,
        stalls(grpc::right, grpc::HEAD, announced, BODY_BYTES - 5),
    )]
}

fn values() -> Vec<Row> {
    vec![
        row(
            "stalls before the last bytes of a text of 1 MB",
            Fails,
            "broken protocol|stopped replying",
            redis::says([&b"$1048500\r\n"[..], &[b'x'; 1_048_000]].concat()),
        ),
        long(
            "stalls within an array of 1 MB in texts of 1 kB",
            Fails,
            "broken protocol|stopped replying",
            redis::says(
                [b"*1000\r\n".to_vec(), [b"$1000\r\n", &[b'x'; 1000][..], b"\r\n"].concat().repeat(900)]
                    .concat(),
            ),
        ),
    ]
}

fn frames() -> Vec<Row> {
    let mut unfinished = frame(TEXT, &[b'a'; 65_000]);
    unfinished.truncate(64_990);
    vec![
        row(
            "stalls before the last bytes of a frame of 65,000",
            Fails,
            "stopped replying|too many unfinished answers",
            websocket::says(unfinished),
        ),
        long(
            "stalls within the second fragment of 65,000 bytes",
            Fails,
            "stopped replying|too many unfinished answers",
            websocket::says(
                [frame(0x01, &[b'a'; 60_000]), frame(0x80, &[b'a'; 5000])[..4000].to_vec()].concat(),
            ),
        ),
        long(
            "sends 60,000 fragments of one byte and stalls",
            Fails,
            "stopped replying|too many unfinished answers",
            websocket::says([vec![0x01, 0], [0x00, 1, b'a'].repeat(60_000)].concat()),
        ),
    ]
}

fn unread() -> Vec<Row> {
    let upgrades = |peer: &mut Peer| {
        open(peer)?;
        peer.read_nothing()
    };
    vec![long("switches protocols and never reads", Fails, "stopped replying|never sent", upgrades)]
}

fn texts() -> Vec<Row> {
    vec![long(
        "sends 65,000 bytes of a line and stalls",
        Fails,
        "deliveries.lost|too many unfinished answers",
        lines::says([b'a'; 65_000]),
    )]
}

/// Each ping is six bytes, and its answer took many times as much while it waited.
fn pings() -> Vec<Row> {
    let asks = |peer: &mut Peer| {
        peer.take_little();
        peer.say("PING\r\n".repeat(70_000))?;
        peer.read_nothing()
    };
    vec![row(
        "sends 70,000 pings and reads no answer",
        Fails,
        "stopped delivering|deliveries.lost|never sent",
        nats::subscribed(asks),
    )]
}

#[test]
fn hostile_servers_that_stall_within_long_messages_do_not_fill_the_memory() {
    check(&HTTP_1, &bodies_1());
    check(&HTTP_2, &bodies_2());
    check(&GRPC, &messages());
    check(&REDIS, &values());
    check(&WEBSOCKET, &frames());
    check(&LOUD, &unread());
    check(&LINES, &texts());
    check(&NATS, &pings());
}
