//! NATS: chat clients that publish to a subject and subscribe to it.

use std::io;
use std::thread;
use std::time::Duration;

use super::peer::Peer;
use super::{ENDS_FIRST, Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load =
    Load::new("NATS", "nats://127.0.0.1:PORT --rungs 4 --gap 100ms..200ms --objective deliveries.lost==0");

const WRONG: &str = "wrong line";

const INFO: &str = "INFO {\"headers\":true,\"max_payload\":1048576}\r\n";

fn message(subject: &str, text: &[u8]) -> Vec<u8> {
    announced(subject, 1, text.len(), text)
}

fn announced(subject: &str, subscription: usize, length: usize, text: &[u8]) -> Vec<u8> {
    [format!("MSG {subject} {subscription} {length}\r\n").as_bytes(), text, b"\r\n"].concat()
}

/// A server that does this with each text and its number on the connection.
fn server(
    relays: impl Fn(&mut Peer, &[u8], usize) -> io::Result<()>,
) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        peer.say(INFO)?;
        let mut number = 0;
        loop {
            let line = peer.line()?;
            if line.starts_with(b"SUB ") {
                peer.join()?;
            } else if line == b"PING" {
                peer.say("PONG\r\n")?;
            } else if line.starts_with(b"PUB ") {
                let text = peer.line()?;
                relays(peer, &text, number)?;
                number += 1;
            }
        }
    }
}

fn relays(of: impl Fn(&[u8], usize) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    server(move |peer, text, number| {
        peer.tell(&of(text, number), false, |_| 1);
        Ok(())
    })
}

/// Lets a client subscribe and then does this.
pub(super) fn subscribed(does: impl Fn(&mut Peer) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        peer.say(INFO)?;
        while peer.line()? != b"PING" {}
        peer.say("PONG\r\n")?;
        does(peer)
    }
}

fn says(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    subscribed(move |peer| peer.say_last(&bytes))
}

fn rows() -> Vec<Row> {
    vec![
        row("relays, as it should", Passes, "", relays(|text, _| message("lobby", text))),
        row(
            "pings before each message, as it may",
            Passes,
            "",
            relays(|text, _| [b"PING\r\n", &message("lobby", text)[..]].concat()),
        ),
        long("accepts and says nothing", Unmeasured, "did not greet with INFO", Peer::hold),
        row("closes at once", Unmeasured, "closes connections at once", |_| Ok(())),
        row("greets with something else", Unmeasured, "is not a NATS server", |peer| {
            peer.say_last("220 mail.example ESMTP\r\n")
        }),
        row("greets without end", Unmeasured, "is not a", |peer| {
            peer.say("INFO ")?;
            peer.flood("a")
        }),
        long("greets one byte in 100 ms", Unmeasured, "did not greet with INFO", |peer| {
            peer.say_slowly([b'I'; 100], Duration::from_millis(100))
        }),
        long("greets and then says nothing", Unmeasured, "has not let it in", |peer| peer.say_last(INFO)),
        long("refuses the connection", Unmeasured, "-ERR 'Authorization Violation'", |peer| {
            peer.say(INFO)?;
            peer.line()?;
            peer.say("-ERR 'Authorization Violation'\r\n")
        }),
        long("refuses the subscription", Fails, "deliveries.lost", |peer| {
            peer.say(INFO)?;
            peer.line()?;
            peer.say_last("-ERR 'Permissions Violation for Subscription to lobby'\r\nPONG\r\n")
        }),
        long("closes when somebody has subscribed", Unmeasured, ENDS_FIRST, subscribed(|_| Ok(()))),
        row("resets when somebody has subscribed", Unmeasured, ENDS_FIRST, subscribed(Peer::reset)),
        row("relays nothing", Fails, "lost", server(|_, _, _| Ok(()))),
        long(
            "relays five messages and then nothing",
            Fails,
            "lost",
            relays(|text, number| if number < 5 { message("lobby", text) } else { Vec::new() }),
        ),
        long(
            "delivers twice",
            Fails,
            "deliveries.duplicated",
            relays(|text, _| message("lobby", text).repeat(2)),
        ),
        long("delivers to another subject", Fails, WRONG, relays(|text, _| message("other", text))),
        row(
            "delivers to another subscription",
            Fails,
            WRONG,
            relays(|text, _| announced("lobby", 2, text.len(), text)),
        ),
        long(
            "says a shorter length than comes",
            Fails,
            WRONG,
            relays(|text, _| announced("lobby", 1, text.len() - 1, text)),
        ),
        row(
            "says a longer length than comes",
            Fails,
            WRONG,
            relays(|text, _| announced("lobby", 1, text.len() + 1, text)),
        ),
        row("says a length of 2^64", Fails, WRONG, relays(|text, _| announced("lobby", 1, usize::MAX, text))),
        row("says no length", Fails, WRONG, relays(|text, _| [b"MSG lobby 1\r\n", text, b"\r\n"].concat())),
        row("does not announce it", Fails, WRONG, relays(|text, _| [text, b"\r\n"].concat())),
        row(
            "sends it twice behind one announcement",
            Fails,
            WRONG,
            relays(|text, _| [&message("lobby", text)[..], text, b"\r\n"].concat()),
        ),
        row(
            "changes the text",
            Fails,
            WRONG,
            relays(|text, _| message("lobby", &[b"~", &text[1..]].concat())),
        ),
        long("delivers an empty text", Fails, WRONG, relays(|_, _| message("lobby", b""))),
        long(
            "delivers 1.5 s later, beyond the patience",
            Fails,
            "deliveries.lost",
            server(|peer, text, _| {
                thread::sleep(Duration::from_millis(1500));
                peer.tell(&message("lobby", text), false, |_| 1);
                Ok(())
            }),
        ),
        long("calls the client slow", Fails, "deliveries.lost", says("-ERR 'Slow Consumer'\r\n")),
        long("stops within a message", Fails, "deliveries.lost", says("MSG lobby 1 100\r\nhel")),
        row("sends a line without end", Fails, "broken protocol", subscribed(|peer| peer.flood("a"))),
        long(
            "sends pings without end",
            Fails,
            "and does not read them",
            subscribed(|peer| peer.flood("PING\r\n")),
        ),
        long("sends pongs without end", Fails, "deliveries.lost", subscribed(|peer| peer.flood("PONG\r\n"))),
        long("sends errors without end", Fails, "refused", subscribed(|peer| peer.flood("-ERR 'no'\r\n"))),
        long("sends INFO without end", Fails, "deliveries.lost", subscribed(|peer| peer.flood(INFO))),
        long("sends bytes that are not UTF-8", Fails, "deliveries.lost", says(b"\xff\xfe\r\n")),
    ]
}

/// Relays each text after this announcement, which is given its length.
fn announces(of: impl Fn(usize) -> String) -> impl Fn(&mut Peer) -> io::Result<()> {
    relays(move |text, _| [of(text.len()).as_bytes(), text, b"\r\n"].concat())
}

/// Greets with this and is honest otherwise.
fn greets(info: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    let honest = relays(|text, _| message("lobby", text));
    move |peer| {
        peer.say(&info)?;
        honest(peer)
    }
}

/// Faulty announcements and greetings, and unexpected lines besides valid messages.
fn announcements() -> Vec<Row> {
    vec![
        long(
            "delivers with headers, which nobody asked for",
            Fails,
            WRONG,
            announces(|length| format!("HMSG lobby 1 12 {}\r\nNATS/1.0\r\n\r\n", length + 12)),
        ),
        long(
            "says headers that are longer than the message",
            Fails,
            WRONG,
            announces(|length| format!("HMSG lobby 1 {} {length}\r\n", usize::MAX)),
        ),
        row(
            "delivers each text once more with headers",
            Fails,
            WRONG,
            relays(|text, _| {
                let more = format!("HMSG lobby 1 12 {}\r\nNATS/1.0\r\n\r\n", text.len() + 12);
                [message("lobby", text), more.into_bytes(), text.to_vec(), b"\r\n".to_vec()].concat()
            }),
        ),
        long(
            "names a subject for replies, which nobody asked for",
            Fails,
            WRONG,
            announces(|length| format!("MSG lobby 1 inbox {length}\r\n")),
        ),
        long(
            "delivers to subscription 0",
            Fails,
            WRONG,
            announces(|length| format!("MSG lobby 0 {length}\r\n")),
        ),
        long(
            "delivers to subscription 2^64 + 1",
            Fails,
            WRONG,
            announces(|length| format!("MSG lobby 18446744073709551617 {length}\r\n")),
        ),
        long(
            "delivers to subscription -1",
            Fails,
            WRONG,
            announces(|length| format!("MSG lobby -1 {length}\r\n")),
        ),
        long(
            "says a negative length",
            Fails,
            WRONG,
            announces(|length| format!("MSG lobby 1 -{length}\r\n")),
        ),
        long(
            "says a length with blanks behind it",
            Fails,
            WRONG,
            announces(|length| format!("MSG lobby 1 {length}  \r\n")),
        ),
        row(
            "pings between announcement and text",
            Fails,
            WRONG,
            announces(|length| format!("MSG lobby 1 {length}\r\nPING\r\n")),
        ),
        long(
            "announces each text twice",
            Fails,
            WRONG,
            announces(|length| format!("MSG lobby 1 {length}\r\nMSG lobby 1 {length}\r\n")),
        ),
        long(
            "puts a NUL before each text",
            Fails,
            WRONG,
            relays(|text, _| message("lobby", &[b"\0", text].concat())),
        ),
        long(
            "puts a NUL into the subject",
            Fails,
            WRONG,
            announces(|length| format!("MSG lob\0by 1 {length}\r\n")),
        ),
        long(
            "relays and says besides that the client is slow",
            Fails,
            "refused",
            relays(|text, _| [&message("lobby", text)[..], b"-ERR 'Slow Consumer'\r\n"].concat()),
        ),
        long(
            "relays and says besides that it will close, as it may",
            Passes,
            "",
            relays(|text, _| [b"INFO {\"ldm\":true}\r\n", &message("lobby", text)[..]].concat()),
        ),
        long(
            "relays nothing and answers pings that nobody sent",
            Fails,
            "lost",
            server(|peer, _, _| peer.say("PONG\r\n")),
        ),
        long("says OK without end", Fails, "deliveries.lost", subscribed(|peer| peer.flood("+OK\r\n"))),
        long(
            "greets with arrays in each other, which nobody reads",
            Passes,
            "",
            greets(format!("INFO {}\r\n", "[".repeat(60_000))),
        ),
        long(
            "greets with 60 kB, as it may",
            Passes,
            "",
            greets(format!("INFO {{\"a\":\"{}\"}}\r\n", "x".repeat(60_000))),
        ),
        long(
            "greets with 1 MiB",
            Unmeasured,
            "is not a",
            greets(format!("INFO {{\"a\":\"{}\"}}\r\n", "x".repeat(1 << 20))),
        ),
        long("greets a thousand times, as it may", Passes, "", greets(INFO.repeat(1000))),
        long(
            "closes after each text",
            Fails,
            "lost",
            server(|_, _, _| Err(io::ErrorKind::BrokenPipe.into())),
        ),
    ]
}

#[test]
fn hostile_nats_servers_do_not_pass() {
    check(&LOAD, &[rows(), announcements()].into_iter().flatten().collect::<Vec<_>>());
}
