//! MQTT 3.1.1: chat clients that publish to a topic and subscribe to it.

use std::io;

use super::peer::Peer;
use super::{ENDS_FIRST, Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load =
    Load::new("MQTT", "mqtt://127.0.0.1:PORT --rungs 4 --gap 100ms..200ms --objective deliveries.lost==0");

const WRONG: &str = "wrong line";

const CONNACK: &[u8] = &[0x20, 2, 0, 0];
const SUBACK: &[u8] = &[0x90, 3, 0, 1, 0];
const PUBLISH: u8 = 0x30;

/// A packet with fewer than 128 bytes after its header.
fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, body.len() as u8], body].concat()
}

fn message(topic: &str, text: &[u8]) -> Vec<u8> {
    packet(PUBLISH, &[&(topic.len() as u16).to_be_bytes()[..], topic.as_bytes(), text].concat())
}

/// The next packet's kind and body.
fn next(peer: &mut Peer) -> io::Result<(u8, Vec<u8>)> {
    let [kind] = peer.bytes()?;
    let (mut length, mut shift) = (0, 0);
    loop {
        let [byte] = peer.bytes()?;
        length |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Ok((kind, peer.take(length)?));
        }
    }
}

/// A broker that does this with each text and its number on the connection.
fn broker(
    relays: impl Fn(&mut Peer, &[u8], usize) -> io::Result<()>,
) -> impl Fn(&mut Peer) -> io::Result<()> {
    broker_that_grants(CONNACK, SUBACK, relays)
}

/// The same, with these answers to CONNECT and SUBSCRIBE.
fn broker_that_grants(
    connack: &'static [u8],
    suback: &'static [u8],
    relays: impl Fn(&mut Peer, &[u8], usize) -> io::Result<()>,
) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        let mut number = 0;
        loop {
            match next(peer)? {
                (0x10, _) => peer.say(connack)?,
                (0x82, _) => {
                    peer.join()?;
                    peer.say(suback)?;
                }
                (0xc0, _) => peer.say([0xd0, 0])?,
                (PUBLISH, body) => {
                    relays(peer, &body[2 + "lobby".len()..], number)?;
                    number += 1;
                }
                _ => return Ok(()),
            }
        }
    }
}

/// To all members, the sender among them: this version knows nothing else.
fn relays(of: impl Fn(&[u8], usize) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    broker(move |peer, text, number| {
        peer.tell(&of(text, number), true, |_| 1);
        Ok(())
    })
}

/// An honest broker, except for these answers to CONNECT and SUBSCRIBE.
fn grants(connack: &'static [u8], suback: &'static [u8]) -> impl Fn(&mut Peer) -> io::Result<()> {
    broker_that_grants(connack, suback, |peer, text, _| {
        peer.tell(&message("lobby", text), true, |_| 1);
        Ok(())
    })
}

/// Relays each text and says this besides.
fn besides(of: impl Fn(&[u8]) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    relays(move |text, _| [message("lobby", text), of(text)].concat())
}

/// Answers CONNECT with this.
fn connects(bytes: &'static [u8]) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        next(peer)?;
        peer.say_last(bytes)
    }
}

/// Lets a client subscribe and then does this.
fn subscribed(does: impl Fn(&mut Peer) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        next(peer)?;
        peer.say(CONNACK)?;
        next(peer)?;
        peer.say(SUBACK)?;
        does(peer)
    }
}

fn says(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    subscribed(move |peer| peer.say_last(&bytes))
}

fn rows() -> Vec<Row> {
    const BROKEN: &str = "broken protocol";
    vec![
        long("relays, as it should", Passes, "", relays(|text, _| message("lobby", text))),
        long("accepts and says nothing", Unmeasured, "has not let it in", Peer::hold),
        row("closes at once", Unmeasured, "closes connections at once", |_| Ok(())),
        long("refuses the connection", Unmeasured, "has not let it in", connects(&[0x20, 2, 0, 5])),
        long("refuses the protocol's version", Unmeasured, "has not let it in", connects(&[0x20, 2, 0, 1])),
        long("sends a CONNACK without a code", Unmeasured, "has not let it in", connects(&[0x20, 0])),
        long(
            "connects and grants no subscription",
            Unmeasured,
            "has not let it in",
            connects(&[0x20, 2, 0, 0, 0x90, 3, 0, 1, 0x80]),
        ),
        long("connects and then says nothing", Unmeasured, "has not let it in", connects(CONNACK)),
        long("grants a subscription before it connects", Unmeasured, "has not let it in", |peer| {
            next(peer)?;
            peer.say_last(SUBACK)
        }),
        long("closes when somebody has subscribed", Unmeasured, ENDS_FIRST, subscribed(|_| Ok(()))),
        row("resets when somebody has subscribed", Unmeasured, ENDS_FIRST, subscribed(Peer::reset)),
        row("relays nothing", Fails, "lost", broker(|_, _, _| Ok(()))),
        row(
            "delivers twice",
            Fails,
            "deliveries.duplicated",
            relays(|text, _| message("lobby", text).repeat(2)),
        ),
        row("delivers to another topic", Fails, WRONG, relays(|text, _| message("other", text))),
        row(
            "delivers at QoS 1, which nobody asked for",
            Fails,
            WRONG,
            relays(|text, _| packet(0x32, &[b"\0\x05lobby\0\x01", text].concat())),
        ),
        row(
            "delivers with QoS 3, which there is not",
            Fails,
            WRONG,
            relays(|text, _| packet(0x36, &[b"\0\x05lobby\0\x01", text].concat())),
        ),
        row(
            "says a topic that is longer than its packet",
            Fails,
            WRONG,
            relays(|text, _| packet(PUBLISH, &[b"\xff\xff", text].concat())),
        ),
        row(
            "changes the text",
            Fails,
            WRONG,
            relays(|text, _| message("lobby", &[b"~", &text[1..]].concat())),
        ),
        row(
            "acknowledges what nobody published",
            Fails,
            WRONG,
            broker(|peer, _, _| peer.say([0x40, 2, 0x30, 0x39])),
        ),
        long("sends a length of five bytes", Fails, BROKEN, says([PUBLISH, 0xff, 0xff, 0xff, 0xff, 0x7f])),
        long(
            "sends a length of 256 MiB and the packet",
            Fails,
            BROKEN,
            subscribed(|peer| {
                peer.say([PUBLISH, 0xff, 0xff, 0xff, 0x7f])?;
                peer.flood("a")
            }),
        ),
        long("stops within a packet", Fails, "deliveries.lost", says([PUBLISH, 50, 0, 5, b'l'])),
        long("sends a packet of type 0", Fails, "deliveries.lost", says([0x00, 0])),
        long("sends a packet of type 15", Fails, "deliveries.lost", says([0xf0, 0])),
        long("answers pings without end", Fails, "deliveries.lost", subscribed(|peer| peer.flood([0xd0, 0]))),
        long(
            "grants subscriptions without end",
            Fails,
            "deliveries.lost",
            subscribed(|peer| peer.flood(SUBACK)),
        ),
        long(
            "sends publications without end",
            Fails,
            WRONG,
            subscribed(|peer| peer.flood(message("lobby", b"news"))),
        ),
    ]
}

/// Brokers that relay everything, and say what no broker may say.
fn talkative() -> Vec<Row> {
    let again = |kind: u8, head: &'static [u8]| besides(move |text| packet(kind, &[head, text].concat()));
    vec![
        row("delivers each text once more at QoS 1", Fails, WRONG, again(0x32, b"\0\x05lobby\0\x01")),
        long("delivers each text once more at QoS 2", Fails, WRONG, again(0x34, b"\0\x05lobby\0\x01")),
        row("delivers each text once more as retained", Fails, WRONG, again(0x31, b"\0\x05lobby")),
        long("delivers each text once more as a duplicate", Fails, WRONG, again(0x38, b"\0\x05lobby")),
        long(
            "publishes to a topic besides that nobody subscribed to",
            Fails,
            WRONG,
            again(PUBLISH, b"\0\x06lobby2"),
        ),
        long("publishes to a topic without a name besides", Fails, WRONG, again(PUBLISH, b"\0\0")),
        long("publishes empty packets besides", Fails, WRONG, besides(|_| packet(PUBLISH, b""))),
        row(
            "acknowledges besides what was published at QoS 0",
            Fails,
            WRONG,
            besides(|_| packet(0x40, b"\0\x01")),
        ),
        long(
            "connects to its clients besides",
            Fails,
            WRONG,
            besides(|_| packet(0x10, b"\0\x04MQTT\x04\x02\0\0\0\x01b")),
        ),
        long("says goodbye besides and goes on", Fails, WRONG, besides(|_| packet(0xe0, b""))),
        long(
            "sends packets of types 0 and 15 besides",
            Fails,
            WRONG,
            besides(|_| [packet(0, b"x"), packet(0xf0, b"x")].concat()),
        ),
        long("answers pings besides that nobody sent", Passes, "", besides(|_| packet(0xd0, b""))),
        long("takes a subscription back besides", Fails, "refused", besides(|_| packet(0x90, &[0, 1, 0x80]))),
        long(
            "grants QoS 2, which nobody asked for",
            Unmeasured,
            "has not let it in",
            grants(CONNACK, &[0x90, 3, 0, 1, 2]),
        ),
        long(
            "grants a subscription with a code that there is not",
            Unmeasured,
            "has not let it in",
            grants(CONNACK, &[0x90, 3, 0, 1, 0x7f]),
        ),
        long(
            "refuses the connection, grants the subscription and relays",
            Unmeasured,
            "has not let it in",
            grants(&[0x20, 2, 0, 5], SUBACK),
        ),
        long("answers CONNECT with nothing and relays", Unmeasured, "has not let it in", grants(b"", SUBACK)),
        row("connects its clients again besides", Fails, WRONG, besides(|_| CONNACK.to_vec())),
        long("grants nothing at all", Unmeasured, "has not let it in", grants(CONNACK, &[0x90, 0])),
        long(
            "grants another subscription",
            Unmeasured,
            "has not let it in",
            grants(CONNACK, &[0x90, 3, 0, 2, 0]),
        ),
        long(
            "grants two subscriptions to one",
            Unmeasured,
            "has not let it in",
            grants(CONNACK, &[0x90, 4, 0, 1, 0, 0]),
        ),
        long(
            "relays nothing and answers pings that nobody sent",
            Fails,
            "lost",
            broker(|peer, _, _| peer.say([0xd0, 0])),
        ),
        long(
            "says lengths in more bytes than they need, as it may",
            Passes,
            "",
            relays(|text, _| {
                let body = [b"\0\x05lobby", text].concat();
                [&[PUBLISH, body.len() as u8 | 0x80, 0x80, 0][..], &body].concat()
            }),
        ),
        long(
            "says pings of 60,000 bytes without end",
            Fails,
            "lost|wrong line",
            subscribed(|peer| peer.flood([&[0xd0, 0xe0, 0xd4, 0x03][..], &[b'x'; 60_000]].concat())),
        ),
        long(
            "sends a packet of 200 kB",
            Fails,
            "broken protocol",
            subscribed(|peer| peer.say_last([&[PUBLISH, 0xc0, 0x9a, 0x0c][..], &[b'x'; 200_000]].concat())),
        ),
        long("connects clients without end", Fails, WRONG, subscribed(|peer| peer.flood(CONNACK))),
        long(
            "closes after each text",
            Fails,
            "lost",
            broker(|_, _, _| Err(io::ErrorKind::BrokenPipe.into())),
        ),
    ]
}

#[test]
fn hostile_mqtt_brokers_do_not_pass() {
    check(&LOAD, &[rows(), talkative()].into_iter().flatten().collect::<Vec<_>>());
}
