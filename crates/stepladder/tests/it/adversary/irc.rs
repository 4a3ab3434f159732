//! IRC (RFC 2812): chat clients in a channel.

use std::io;

use super::peer::Peer;
use super::{ENDS_FIRST, Fails, Load, Passes, Row, Unmeasured, check, long, row};

const LOAD: Load =
    Load::new("IRC", "irc://127.0.0.1:PORT --rungs 4 --gap 100ms..200ms --objective deliveries.lost==0");

const WRONG: &str = "wrong line";

/// What a client said in the channel.
struct Said<'a> {
    nick: &'a str,
    text: &'a [u8],
}

impl Said<'_> {
    /// The message that relays it.
    fn message(&self) -> Vec<u8> {
        self.with(self.text)
    }

    /// The same with another text.
    fn with(&self, text: &[u8]) -> Vec<u8> {
        self.to("lobby", text)
    }

    /// The same to another channel.
    fn to(&self, room: &str, text: &[u8]) -> Vec<u8> {
        self.as_line(&format!("PRIVMSG #{room} :"), text)
    }

    fn as_line(&self, words: &str, text: &[u8]) -> Vec<u8> {
        [format!(":{0}!{0}@host {words}", self.nick).as_bytes(), text, b"\r\n"].concat()
    }
}

/// A server that does this with each text.
fn server(relays: impl Fn(&mut Peer, &Said<'_>) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        let mut nick = String::new();
        loop {
            let line = peer.line()?;
            if let Some(name) = line.strip_prefix(b"NICK ") {
                nick = String::from_utf8_lossy(name).into_owned();
            } else if line.starts_with(b"USER ") {
                peer.say(":s 001 b :Welcome\r\n")?;
            } else if line.starts_with(b"JOIN ") {
                peer.join()?;
                peer.say(":s 366 b #lobby :End of NAMES list\r\n")?;
            } else if line.starts_with(b"PING ") {
                peer.say(":s PONG s :stepladder\r\n")?;
            } else if let Some(text) = line.strip_prefix(b"PRIVMSG #lobby :") {
                relays(peer, &Said { nick: &nick, text })?;
            }
        }
    }
}

fn relays(of: impl Fn(&Said<'_>) -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    server(move |peer, said| {
        peer.tell(&of(said), false, |_| 1);
        Ok(())
    })
}

/// Lets a client into the channel and then does this.
fn joined(does: impl Fn(&mut Peer) -> io::Result<()>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        while !peer.line()?.starts_with(b"USER ") {}
        peer.say(":s 001 b :Welcome\r\n")?;
        while !peer.line()?.starts_with(b"JOIN ") {}
        peer.say(":s 366 b #lobby :End of NAMES list\r\n")?;
        does(peer)
    }
}

/// Answers the registration with this.
fn registers(bytes: &'static str) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        while !peer.line()?.starts_with(b"USER ") {}
        peer.say_last(bytes)
    }
}

fn rows() -> Vec<Row> {
    vec![
        row("relays, as it should", Passes, "", relays(|said| said.message())),
        row(
            "relays with the channel's name in capitals, as it may",
            Passes,
            "",
            relays(|said| said.to("LOBBY", said.text)),
        ),
        row(
            "pings before each message, as it may",
            Passes,
            "",
            relays(|said| [b"PING :x\r\n", &said.message()[..]].concat()),
        ),
        long("accepts and says nothing", Unmeasured, "has not let it in", Peer::hold),
        row("closes at once", Unmeasured, "closes connections at once", |_| Ok(())),
        row("says that it is full and closes", Unmeasured, "turns us away", |peer| {
            peer.say("ERROR :too many\r\n")
        }),
        long(
            "refuses the nick",
            Unmeasured,
            "has not let it in",
            registers(":s 433 * b :Nickname is already in use\r\n"),
        ),
        long(
            "welcomes and lets nobody into the channel",
            Unmeasured,
            "has not let it in",
            registers(":s 001 b :Welcome\r\n"),
        ),
        long(
            "refuses the channel",
            Unmeasured,
            "has not let it in",
            registers(":s 001 b :Welcome\r\n:s 471 b #lobby :Cannot join channel (+l)\r\n"),
        ),
        row("welcomes without end", Unmeasured, "does not read them", |peer| {
            peer.line()?;
            peer.flood(":s 001 b :Welcome\r\n")
        }),
        row("closes when somebody has joined", Unmeasured, ENDS_FIRST, joined(|_| Ok(()))),
        long(
            "ends with ERROR when somebody has joined",
            Unmeasured,
            "ResultsPage link",
            joined(|peer| peer.say("ERROR :ResultsPage link\r\n")),
        ),
        row("relays nothing", Fails, "lost", server(|_, _| Ok(()))),
        row("delivers twice", Fails, "deliveries.duplicated", relays(|said| said.message().repeat(2))),
        long("delivers to another channel", Fails, WRONG, relays(|said| said.to("other", said.text))),
        long(
            "delivers as a notice",
            Fails,
            "lost",
            relays(|said| said.as_line("NOTICE #lobby :", said.text)),
        ),
        row(
            "delivers to a nick instead of the channel",
            Fails,
            WRONG,
            relays(|said| said.as_line("PRIVMSG lobby :", said.text)),
        ),
        long(
            "delivers without a sender",
            Fails,
            WRONG,
            relays(|said| [b"PRIVMSG #lobby :", said.text, b"\r\n"].concat()),
        ),
        row("changes the text", Fails, WRONG, relays(|said| said.with(&[b"~", &said.text[1..]].concat()))),
        row(
            "names another client as the sender",
            Fails,
            WRONG,
            relays(|said| Said { nick: if said.nick == "b0" { "b1" } else { "b0" }, ..*said }.message()),
        ),
        long(
            "names itself as the sender",
            Fails,
            WRONG,
            relays(|said| [b":irc.host PRIVMSG #lobby :", said.text, b"\r\n"].concat()),
        ),
        long("cuts the text", Fails, WRONG, relays(|said| said.with(&said.text[..said.text.len() - 1]))),
        long(
            "refuses each message",
            Fails,
            "refused",
            server(|peer, _| peer.say(":s 404 b #lobby :Cannot send to channel\r\n")),
        ),
        long(
            "sends a line of 10,000 bytes",
            Fails,
            "deliveries.lost",
            joined(|peer| peer.say_last([[b'a'; 10_000].as_slice(), b"\r\n"].concat())),
        ),
        row("sends a line without end", Fails, "broken protocol", joined(|peer| peer.flood("a"))),
        row(
            "sends pings without end",
            Fails,
            "and does not read them",
            joined(|peer| peer.flood("PING :x\r\n")),
        ),
        row(
            "sends pings of 400 bytes without end",
            Fails,
            "and does not read them",
            joined(|peer| peer.flood(format!("PING :{}\r\n", "x".repeat(400)))),
        ),
        long("sends errors without end", Fails, "refused", joined(|peer| peer.flood(":s 404 b :no\r\n"))),
        long(
            "sends notices without end",
            Fails,
            "deliveries.lost",
            joined(|peer| peer.flood(":s NOTICE b :psst\r\n")),
        ),
    ]
}

/// Relays each text, and this line before it.
fn besides(line: &'static [u8]) -> impl Fn(&mut Peer) -> io::Result<()> {
    relays(move |said| [line, b"\r\n", &said.message()[..]].concat())
}

/// Relays each text, and such a line before it for each client.
fn to_each(line: impl Fn(usize) -> String) -> impl Fn(&mut Peer) -> io::Result<()> {
    relays(move |said| [(0..4).map(&line).collect::<String>().as_bytes(), &said.message()].concat())
}

/// Servers that relay everything, and say what is not right besides.
fn talkative() -> Vec<Row> {
    vec![
        row(
            "relays and invents lines that are not UTF-8",
            Fails,
            WRONG,
            besides(b":b!b@host PRIVMSG #lobby :\xff\xfe"),
        ),
        long(
            "relays and ends with an ERROR that is not UTF-8 each time",
            Fails,
            "refused",
            besides(b"ERROR :\xff\xfe"),
        ),
        row(
            "relays and kicks its clients",
            Fails,
            "refused",
            to_each(|number| format!(":op!o@host KICK #lobby b{number} :out\r\n")),
        ),
        long("relays and kicks others, as it may", Passes, "", besides(b":op!o@host KICK #lobby b10 :out")),
        long(
            "relays and kills its clients",
            Fails,
            "refused",
            to_each(|number| format!(":op!o@host KILL b{number} :out\r\n")),
        ),
        long(
            "relays and says that the nick is in use each time",
            Fails,
            "refused",
            besides(b":s 433 * b0 :Nickname is already in use"),
        ),
        long(
            "relays and speaks in two channels",
            Fails,
            WRONG,
            besides(b":b!b@host PRIVMSG #lobby,#other :hello"),
        ),
        long("relays and speaks to nobody", Fails, WRONG, besides(b":b!b@host PRIVMSG")),
        long("relays and says lines of blanks and of NUL, as it may", Passes, "", besides(b"  \0  \0")),
        long(
            "puts a NUL before each text",
            Fails,
            WRONG,
            relays(|said| said.with(&[b"\0", said.text].concat())),
        ),
        long(
            "puts a NUL behind each text",
            Fails,
            WRONG,
            relays(|said| said.with(&[said.text, b"\0"].concat())),
        ),
        long(
            "relays nothing and answers pings that nobody sent",
            Fails,
            "lost",
            server(|peer, _| peer.say(":s PONG s :stepladder\r\n")),
        ),
        long(
            "says for ever that the nick is in use",
            Unmeasured,
            "not let it in|Nickname is already in use",
            |peer| {
                peer.line()?;
                peer.flood(":s 433 * b :Nickname is already in use\r\n")
            },
        ),
        long(
            "lists names without end",
            Fails,
            "deliveries.lost",
            joined(|peer| peer.flood(":s 353 b = #lobby :a b c d e f\r\n")),
        ),
        long(
            "says the end of the names without end",
            Fails,
            "deliveries.lost",
            joined(|peer| peer.flood(":s 366 b #lobby :End\r\n")),
        ),
        long(
            "welcomes members again without end",
            Fails,
            "and does not read them",
            joined(|peer| peer.flood(":s 001 b :Welcome\r\n")),
        ),
        long(
            "kicks somebody without end",
            Fails,
            "refused|deliveries.lost",
            joined(|peer| peer.flood(":op KICK #lobby b0 :out\r\n")),
        ),
        long(
            "sends lines of NUL without end",
            Fails,
            "deliveries.lost",
            joined(|peer| peer.flood("\0\0\0\r\n")),
        ),
        long("closes after each text", Fails, "lost", server(|_, _| Err(io::ErrorKind::BrokenPipe.into()))),
    ]
}

#[test]
fn hostile_irc_servers_do_not_pass() {
    check(&LOAD, &[rows(), talkative()].into_iter().flatten().collect::<Vec<_>>());
}
