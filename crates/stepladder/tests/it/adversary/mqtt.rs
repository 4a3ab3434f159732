//! MQTT 3.1.1: chat clients that publish to a topic and subscribe to it.

use std::io;

use super::peer::Peer;
use super::{Fails, Load, Passes, Row, Unmeasured, check, long, no_files, row, words};

const LOAD: Load = Load {
    protocol: "MQTT",
    words: |port| {
        words(format!("mqtt://127.0.0.1:{port} --rungs 4 --gap 100ms..200ms --objective deliveries.lost==0"))
    },
    files: no_files,
};

const CONNACK: &[u8] = &[0x20, 2, 0, 0];
const SUBACK: &[u8] = &[0x90, 3, 0, 1, 0];
const PUBLISH: u8 = 0x30;

/// A packet of fewer than 128 bytes behind its header.
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
    move |peer| {
        let mut number = 0;
        loop {
            match next(peer)? {
                (0x10, _) => peer.say(CONNACK)?,
                (0x82, _) => {
                    peer.join()?;
                    peer.say(SUBACK)?;
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

/// Answers CONNECT with this.
fn connects(bytes: &'static [u8]) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        next(peer)?;
        peer.say(bytes)?;
        peer.hold()
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
    subscribed(move |peer| {
        peer.say(&bytes)?;
        peer.hold()
    })
}

fn rows() -> Vec<Row> {
    const BROKEN: &str = "broken protocol";
    vec![
        long("relays, as it should", Passes, "", relays(|text, _| message("lobby", text))),
        long("accepts and says nothing", Fails, "had not let in", Peer::hold),
        row("closes at once", Unmeasured, "closes connections at once", |_| Ok(())),
        long("refuses the connection", Fails, "had not let in", connects(&[0x20, 2, 0, 5])),
        long("refuses the protocol's version", Fails, "had not let in", connects(&[0x20, 2, 0, 1])),
        long("sends a CONNACK without a code", Fails, "had not let in", connects(&[0x20, 0])),
        long(
            "connects and grants no subscription",
            Fails,
            "had not let in",
            connects(&[0x20, 2, 0, 0, 0x90, 3, 0, 1, 0x80]),
        ),
        long("connects and then says nothing", Fails, "had not let in", connects(CONNACK)),
        long("grants a subscription before it connects", Fails, "deliveries.lost", |peer| {
            next(peer)?;
            peer.say(SUBACK)?;
            peer.hold()
        }),
        long("closes when somebody has subscribed", Fails, "connection lost", subscribed(|_| Ok(()))),
        row("resets when somebody has subscribed", Fails, "connection reset", subscribed(Peer::reset)),
        row("relays nothing", Fails, "lost", broker(|_, _, _| Ok(()))),
        row(
            "delivers twice",
            Fails,
            "deliveries.duplicated",
            relays(|text, _| message("lobby", text).repeat(2)),
        )
        .with(&["--objective", "deliveries.duplicated==0"]),
        row("delivers to another topic", Fails, "wrong line", relays(|text, _| message("other", text))),
        row(
            "delivers at QoS 1, which nobody asked for",
            Fails,
            "deliveries.lost",
            relays(|text, _| packet(0x32, &[b"\0\x05lobby\0\x01", text].concat())),
        ),
        row(
            "delivers with QoS 3, which there is not",
            Fails,
            "deliveries.lost",
            relays(|text, _| packet(0x36, &[b"\0\x05lobby\0\x01", text].concat())),
        ),
        row(
            "says a topic that is longer than its packet",
            Fails,
            "wrong line",
            relays(|text, _| packet(PUBLISH, &[b"\xff\xff", text].concat())),
        ),
        row(
            "changes the text",
            Fails,
            "wrong line",
            relays(|text, _| {
                let mut text = text.to_vec();
                text[0] = b'~';
                message("lobby", &text)
            }),
        ),
        row(
            "acknowledges what nobody published",
            Fails,
            "lost",
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
            "wrong line",
            subscribed(|peer| peer.flood(message("lobby", b"news"))),
        ),
    ]
}

#[test]
fn hostile_mqtt_brokers_do_not_pass() {
    check(&LOAD, &rows());
}
