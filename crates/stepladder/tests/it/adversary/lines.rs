//! Lines over TCP: chat clients, each of which is owed every line of the others, and echo clients.

use std::io::{self, Write as _};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::peer::Peer;
use super::{ENDS_FIRST, Fails, Load, Passes, Row, Unmeasured, check, long, row};

pub(super) const CHAT: Load = Load::new(
    "lines, chat",
    "tcp://127.0.0.1:PORT --bots chat --rungs 4 --gap 100ms..200ms --objective deliveries.lost==0",
);

const WRONG: &str = "wrong line";

const ECHO: Load = Load::new("lines, echo", "tcp://127.0.0.1:PORT --bots echo --rungs 4");

pub(super) fn line(text: &[u8]) -> Vec<u8> {
    [text, b"\n"].concat()
}

/// A chat: joining clients are confirmed, and a request for the accounts is answered with `books`. `relays` is given
/// each text, with its number among those of the connection.
pub(super) fn chat(
    books: &'static str,
    relays: impl Fn(&mut Peer, &[u8], usize) -> io::Result<()>,
) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        let mut number = 0;
        loop {
            let text = peer.line()?;
            match text.as_slice() {
                b"/books" => peer.say(books)?,
                _ if text.starts_with(b"/join") => {
                    peer.join()?;
                    peer.say("* joined lobby\n")?;
                }
                _ => {
                    relays(peer, &text, number)?;
                    number += 1;
                }
            }
        }
    }
}

pub(super) const BOOKS: &str = "* books none\n";

/// A chat that relays this instead of each text.
pub(super) fn relays(of: impl Fn(&[u8], usize) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    chat(BOOKS, move |peer, text, number| {
        peer.tell(&of(text, number), false, |_| 1);
        Ok(())
    })
}

/// Lets a client join and then does this.
fn joined(does: impl Fn(&mut Peer) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        peer.line()?;
        peer.say("* joined lobby\n")?;
        does(peer)
    }
}

pub(super) fn says(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    joined(move |peer| peer.say_last(&bytes))
}

fn floods(bytes: &'static [u8]) -> impl Fn(&mut Peer) -> io::Result<()> {
    joined(move |peer| peer.flood(bytes))
}

fn chats() -> Vec<Row> {
    vec![
        row("relays, as it should", Passes, "", relays(|text, _| line(text))),
        row(
            "greets and speaks before each line, as it may",
            Passes,
            "",
            relays(|text, _| [b"* psst\n", &line(text)[..]].concat()),
        ),
        long("accepts and says nothing", Unmeasured, "has not let it in", Peer::hold),
        row("closes at once", Unmeasured, "closes connections at once", |_| Ok(())),
        long("resets at once", Unmeasured, "closes connections at once", Peer::reset),
        row("says that it is full and closes", Unmeasured, "turns us away", |peer| {
            peer.say("* too many of you\n")
        }),
        long("lets nobody join", Unmeasured, "has not let it in", |peer| peer.say_last("* welcome\n")),
        long("closes when somebody has joined", Unmeasured, ENDS_FIRST, joined(|_| Ok(()))),
        long("resets when somebody has joined", Unmeasured, ENDS_FIRST, joined(Peer::reset)),
        long("ends its side when somebody has joined", Unmeasured, ENDS_FIRST, joined(Peer::half_close)),
        row("relays nothing", Fails, "lost", chat(BOOKS, |_, _, _| Ok(()))),
        long("relays nothing and never says that all has come", Fails, "deliveries.lost", joined(Peer::hold)),
        long(
            "relays five lines and then nothing",
            Fails,
            "lost",
            relays(|text, number| if number < 5 { line(text) } else { Vec::new() }),
        ),
        row(
            "loses one line of ten",
            Fails,
            "lost",
            relays(|text, number| if number % 10 == 3 { Vec::new() } else { line(text) }),
        ),
        long(
            "forgets one member",
            Fails,
            "lost",
            chat(BOOKS, |peer, text, _| {
                peer.tell(&line(text), false, |at| usize::from(at % 4 != 3));
                Ok(())
            }),
        ),
        row(
            "delivers twice",
            Fails,
            "deliveries.duplicated",
            relays(|text, _| [line(text), line(text)].concat()),
        ),
        row(
            "delivers twice, as it is allowed to",
            Passes,
            "",
            relays(|text, _| [line(text), line(text)].concat()),
        )
        .with(&["--allow", "duplicates"]),
        row(
            "delivers one line of ten twice",
            Fails,
            "deliveries.duplicated",
            relays(|text, number| line(text).repeat(if number % 10 == 3 { 2 } else { 1 })),
        ),
        long(
            "delivers one line twice instead of the next",
            Fails,
            "deliveries.lost|deliveries.duplicated",
            chat(BOOKS, |peer, text, number| {
                if number % 2 == 0 {
                    peer.tell(&line(text), false, |_| 2);
                }
                Ok(())
            }),
        ),
        row(
            "echoes to the sender",
            Unmeasured,
            "books do not balance",
            chat(BOOKS, |peer, text, _| {
                peer.tell(&line(text), true, |_| 1);
                Ok(())
            }),
        ),
        long(
            "changes the text's first character",
            Fails,
            WRONG,
            relays(|text, _| [b"~", &line(text)[1..]].concat()),
        ),
        row("cuts the text", Fails, WRONG, relays(|text, _| line(&text[..text.len() - 1]))),
        long(
            "cuts a line in two",
            Fails,
            WRONG,
            relays(|text, _| [&text[..5], b"\n", &line(&text[5..])].concat()),
        ),
        row("joins lines", Fails, WRONG, relays(|text, _| [text, text, b"\n"].concat())),
        long("invents lines", Fails, WRONG, relays(|text, _| [line(text), line(b"hello")].concat())),
        long(
            "invents lines that are not UTF-8",
            Fails,
            WRONG,
            relays(|text, _| [line(text), line(b"\xff\0\xfe")].concat()),
        ),
        long(
            "delivers 1.5 s later, beyond the patience",
            Fails,
            "deliveries.lost",
            chat(BOOKS, |peer, text, _| {
                thread::sleep(Duration::from_millis(1500));
                peer.tell(&line(text), false, |_| 1);
                Ok(())
            }),
        ),
        long(
            "says that it dropped a line that it delivered",
            Unmeasured,
            "books do not balance",
            chat(BOOKS, |peer, text, _| {
                peer.tell(&line(text), false, |_| 1);
                peer.say("* missed 1 lines\n")
            }),
        ),
        long(
            "says that it dropped 10^20 lines",
            Fails,
            "deliveries.lost",
            says("* missed 99999999999999999999 lines\n"),
        ),
        long(
            "tells books that do not add up",
            Unmeasured,
            "books do not balance",
            chat("* books owed 9 delivered 1 dropped 1 waiting 1\n", |peer, text, _| {
                peer.tell(&line(text), false, |_| 1);
                Ok(())
            }),
        ),
        row(
            "delivers everything and tells books of nothing",
            Unmeasured,
            "the server's books contradict the clients'",
            chat("* books owed 0 delivered 0 dropped 0 waiting 0\n", |peer, text, _| {
                peer.tell(&line(text), false, |_| 1);
                Ok(())
            }),
        ),
        row("sends a line without end", Fails, "broken protocol", floods(b"a")),
        long(
            "sends a line of 1 MiB",
            Fails,
            "broken protocol",
            joined(|peer| peer.say_last(line(&[b'a'; 1 << 20]))),
        ),
        long("stops within a line", Fails, "deliveries.lost", says("* mi")),
        long("sends empty lines without end", Fails, WRONG, floods(b"\n")),
        long("sends notices without end", Fails, "deliveries.lost", floods(b"* psst\n")),
        long("sends lines without end", Fails, WRONG, floods(b"hello\n")),
        long(
            "says that lines were dropped without end",
            Fails,
            "deliveries.lost",
            floods(b"* missed 1 lines\n"),
        ),
        long(
            "says that somebody has joined without end",
            Fails,
            "deliveries.lost",
            floods(b"* joined lobby\n"),
        ),
        long(
            "tells its books without end",
            Unmeasured,
            "books do not balance",
            floods(b"* books owed 1 delivered 1 dropped 0 waiting 0\n"),
        ),
    ]
}

/// An echo server that answers this to each line and its number.
fn echoes(of: impl Fn(&[u8], usize) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        for number in 0.. {
            let text = peer.line()?;
            peer.say(of(&text, number))?;
        }
        Ok(())
    }
}

/// Echoes each line after the patience is over, however many of them wait.
fn later(peer: &mut Peer) -> io::Result<()> {
    if peer.is_probe() {
        return echoes(|text, _| line(text))(peer);
    }
    let mut writer = peer.writer()?;
    let (lines, waiting) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (due, text) in waiting {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if writer.write_all(&line(&text)).is_err() {
                return;
            }
        }
    });
    loop {
        let text = peer.line()?;
        let _ = lines.send((Instant::now() + Duration::from_millis(1500), text));
    }
}

fn echoing() -> Vec<Row> {
    vec![
        row("echoes, as it should", Passes, "", echoes(|text, _| line(text))),
        row("says nothing", Fails, "stopped replying", Peer::hold),
        row(
            "echoes five lines and then nothing",
            Fails,
            "stopped replying|never answered",
            echoes(|text, number| if number < 5 { line(text) } else { Vec::new() }),
        ),
        long("answers another text", Fails, "wrong answer", echoes(|_, _| line(b"something else"))),
        row("echoes twice", Fails, "wrong answer", echoes(|text, _| [line(text), line(text)].concat())),
        long("answers with the text before", Fails, "wrong answer", |peer| {
            let mut before = Vec::new();
            loop {
                let text = peer.line()?;
                peer.say(line(&before))?;
                before = text;
            }
        }),
        row("swaps two answers", Fails, "wrong answer", |peer| {
            loop {
                let [first, second] = [peer.line()?, peer.line()?];
                peer.say([line(&second), line(&first)].concat())?;
            }
        }),
        long(
            "swaps the texts of two clients",
            Fails,
            "wrong answer",
            echoes(|text, number| {
                let mut text = line(text);
                if number % 3 == 2 {
                    text[..2].reverse();
                }
                text
            }),
        ),
        row("echoes 1.5 s later", Fails, "late.share", later),
        row("echoes 1.5 s later, as it is allowed to", Passes, "", later).with(&["--allow", "late"]),
        row("closes when a line comes", Unmeasured, ENDS_FIRST, |peer| peer.line().map(|_| ())),
        long("resets when a line comes", Unmeasured, ENDS_FIRST, |peer| {
            peer.line()?;
            peer.reset()
        }),
        long("sends a line without end", Fails, "broken protocol", |peer| {
            peer.line()?;
            peer.flood("a")
        }),
        long("sends lines without end", Fails, "wrong answer", |peer| {
            peer.line()?;
            peer.flood("news\n")
        }),
    ]
}

#[test]
fn hostile_chats_of_lines_do_not_pass() {
    check(&CHAT, &chats());
}

#[test]
fn hostile_echo_servers_of_lines_do_not_pass() {
    check(&ECHO, &echoing());
}
