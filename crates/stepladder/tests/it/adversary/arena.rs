//! The arena's protocol: servers that start, end or tick games, or report them, incorrectly.

use std::io;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::peer::Peer;
use super::websocket::{TEXT, accept, frame, open};
use super::{ENDS_FIRST, Fails, Load, Passes, Row, Unmeasured, check, long, row};

const fn load(protocol: &'static str, files: fn(u16) -> Vec<(&'static str, String)>) -> Load {
    Load::new(protocol, "arena.yaml").with_files(files)
}

/// Judged by nothing but what must hold of any server of games.
const LOAD: Load = load("arena", |port| vec![("arena.yaml", scenario(port, "2s", "none", "not_sent == 0"))]);

/// Its players wait for the end of a game for as long as the hold and longer.
const PATIENT: Load = load("arena, players who wait a minute", |port| {
    vec![("arena.yaml", scenario(port, "60s", "none", "not_sent == 0"))]
});

/// Judged by what its players saw go wrong.
const STRICT: Load =
    load("arena, errors == 0", |port| vec![("arena.yaml", scenario(port, "2s", "none", "errors == 0"))]);

/// Judged by the ticks that players see.
const TICKS: Load = load("arena, ticks of its players", |port| {
    vec![("arena.yaml", scenario(port, "60s", "client", "client_ticks.late_share < 50%"))]
});

fn scenario(port: u16, longest_game: &str, ticks: &str, objective: &str) -> String {
    format!(
        "subject: {{ target: 'ws://127.0.0.1:{port}/', ticks: {ticks} }}
bots: {{ kind: arena, longest_game: {longest_game}, snapshots: 50% }}
ladder: {{ rungs: [4] }}
objectives: [ '{objective}' ]
"
    )
}

const START: &str = r#"{"type":"start"}"#;
/// Longer than pairs take to come together again, so that most connections are open most of the time.
const GAME: Duration = Duration::from_millis(1500);
/// So short that some end within a second.
const SHORT: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_nanos(16_666_667);

fn text(json: impl AsRef<[u8]>) -> Vec<u8> {
    frame(TEXT, json.as_ref())
}

fn stop(won: bool, x: i32) -> Vec<u8> {
    text(format!(
        r#"{{"type":"stop","lastFire":0,"bulletCount":3,"won":{won},"x":{x},"direction":1,"id":1}}"#
    ))
}

fn tick(number: u64, stamp_us: u64) -> Vec<u8> {
    text(format!(r#"{{"type":"tick","n":{number},"t":{stamp_us}}}"#))
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// A game, as its second player's connection plays it.
struct Game<'p> {
    peer: &'p mut Peer,
    /// of the second player among all
    place: usize,
    /// one of the two requested snapshots; the second path of a pair does
    is_watched: bool,
}

impl Game<'_> {
    fn number(&self) -> usize {
        self.place / 2
    }

    fn say(&mut self, bytes: &[u8]) {
        let game = self.number();
        self.peer.tell(bytes, true, |place| usize::from(place / 2 == game));
    }

    /// To the one who came first, or to the second.
    fn say_to(&mut self, is_second: bool, bytes: &[u8]) {
        let place = self.place - usize::from(!is_second);
        self.peer.tell(bytes, true, |at| usize::from(at == place));
    }

    fn end(&mut self) {
        self.say_to(false, &stop(true, -1000));
        self.say_to(true, &stop(false, 1000));
    }

    /// Snapshots for those who asked, until it is over.
    fn ticks(&mut self, length: Duration) {
        let begin = Instant::now();
        for number in 1.. {
            let due = begin + TICK * number;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if begin.elapsed() >= length {
                return;
            }
            if self.is_watched {
                self.say_to(true, &tick(u64::from(number), now_us()));
            }
        }
    }
}

/// Lets pairs in, in the order in which they come, and does this with each game.
fn games(plays: impl Fn(&mut Game<'_>)) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        let request = peer.head()?;
        // The probe is not a player.
        if peer.is_probe() {
            accept(peer, &request)?;
            return peer.hold();
        }
        // Take the place first: the partner connects as soon as the join is answered.
        let place = peer.join()?;
        accept(peer, &request)?;
        if place % 2 == 1 {
            plays(&mut Game { peer: &mut *peer, place, is_watched: request.contains("snapshots=1") });
        }
        peer.hold()
    }
}

/// Starts each game and then does this.
fn started(plays: impl Fn(&mut Game<'_>)) -> impl Fn(&mut Peer) -> io::Result<()> {
    games(move |game| {
        game.say(&text(START));
        plays(game);
    })
}

/// Starts each game, lets it take so long, and then does this.
fn after(length: Duration, ends: impl Fn(&mut Game<'_>)) -> impl Fn(&mut Peer) -> io::Result<()> {
    started(move |game| {
        game.ticks(length);
        ends(game);
    })
}

/// Ends the games of which this is true.
fn ends_if(length: Duration, is_one: impl Fn(&Game<'_>) -> bool) -> impl Fn(&mut Peer) -> io::Result<()> {
    after(length, move |game| {
        if is_one(game) {
            game.end();
        }
    })
}

/// Says this to each player who comes in; the games are as they should be.
fn greets(words: impl Fn() -> Vec<u8>) -> impl Fn(&mut Peer) -> io::Result<()> {
    started(move |game| {
        game.say(&words());
        game.ticks(SHORT);
        game.end();
    })
}

/// More than two games.
const LONG: &[&str] = &["--hold", "4s"];

fn endings() -> Vec<Row> {
    const UNENDED: &str = "[missing stop|ended without a result";
    vec![
        row("plays its games to their ends, as it should", Passes, "", after(GAME, |game| game.end()))
            .with(LONG),
        row("never ends a game", Fails, UNENDED, started(|_| {})).with(LONG),
        long(
            "never ends a game and ticks on",
            Fails,
            UNENDED,
            started(|game| game.ticks(Duration::from_secs(9))),
        )
        .with(LONG),
        long(
            "ends the games that are watched, and no other",
            Fails,
            UNENDED,
            ends_if(GAME, |game| game.is_watched),
        )
        .with(LONG),
        long(
            "tells one player of two that the game is over",
            Fails,
            UNENDED,
            after(GAME, |game| game.say_to(false, &stop(true, -1000))),
        )
        .with(LONG),
        long(
            "ends each game with an error",
            Fails,
            "[opponent left",
            after(GAME, |game| {
                game.say(&text(r#"{"type":"stop","errorMsg":"Opponent disconnected","won":false,"x":1000}"#))
            }),
        )
        .with(LONG),
        long(
            "ends one game of three with an error",
            Fails,
            "[opponent left",
            after(GAME, |game| {
                if game.number() % 3 == 2 {
                    game.say(&text(r#"{"type":"stop","errorMsg":"Out of memory","won":false,"x":1000}"#));
                }
                game.end();
            }),
        )
        .with(LONG),
        long("starts no game", Fails, "connections open", games(|_| {})),
        long(
            "starts every second game",
            Fails,
            "connections open",
            games(|game| {
                if game.number() % 2 == 1 {
                    game.say(&text(START));
                    game.ticks(GAME);
                    game.end();
                }
            }),
        ),
        long("switches protocols and never reads", Fails, "connections open", |peer| {
            open(peer)?;
            peer.read_nothing()
        }),
        long("closes at once", Unmeasured, "during the WebSocket handshake", |_| Ok(())),
    ]
}

/// What is found although no player gives a game up.
fn unending() -> Vec<Row> {
    const RAN_ON: &str = "ran through the whole hold|connections open|no tick";
    vec![
        long(
            "ends the games that are watched, and no other",
            Fails,
            RAN_ON,
            ends_if(GAME, |game| game.is_watched),
        )
        .with(LONG),
        long(
            "ends the first games and no later one",
            Fails,
            RAN_ON,
            ends_if(SHORT, |game| game.number() < 4),
        )
        .with(LONG),
    ]
}

fn words_of_its_own() -> Vec<Row> {
    const WORDS: &str = "not understood";
    let now = now_us();
    let ticks = |ticks: &[(u64, u64)]| {
        let bytes: Vec<u8> = ticks.iter().flat_map(|(number, stamp)| tick(*number, *stamp)).collect();
        greets(move || bytes.clone())
    };
    vec![
        row(
            "lets the slow player win",
            Fails,
            "wrong winner",
            after(SHORT, |game| {
                game.say_to(false, &stop(false, -1000));
                game.say_to(true, &stop(true, 1000));
            }),
        ),
        long("lets both win", Fails, "wrong winner", after(SHORT, |game| game.say(&stop(true, -1000)))),
        long("lets both lose", Fails, "wrong winner", after(SHORT, |game| game.say(&stop(false, 1000)))),
        long("starts a game three times", Fails, WORDS, greets(|| text(START).repeat(2))),
        long(
            "ends a game before it starts",
            Fails,
            "connections open",
            games(|game| {
                game.end();
                game.say(&text(START));
                game.ticks(SHORT);
                game.end();
            }),
        ),
        long(
            "numbers snapshots 0, 2^63 and 2^64 - 1",
            Fails,
            WORDS,
            ticks(&[(0, now), (1 << 63, now), (u64::MAX, now), (0, now)]),
        ),
        long(
            "stamps snapshots with 0 and 2^64 - 1",
            Fails,
            WORDS,
            ticks(&[(1, 0), (2, u64::MAX), (3, 1 << 63)]),
        ),
        long(
            "stamps snapshots with the day before yesterday",
            Fails,
            WORDS,
            ticks(&[(1, now - 2 * 86_400_000_000), (2, now)]),
        ),
        long(
            "says numbers that no type holds",
            Fails,
            WORDS,
            greets(|| {
                [
                    text(r#"{"type":"tick","n":1e400,"t":-5}"#),
                    text(r#"{"type":"tick","n":99999999999999999999,"t":1}"#),
                ]
                .concat()
            }),
        ),
        long("says arrays in each other", Fails, WORDS, greets(|| text("[".repeat(50_000)))),
        long(
            "says what is not UTF-8",
            Fails,
            "broken protocol|not understood",
            greets(|| frame(TEXT, b"\xff\xfe")),
        ),
        long("says a type that there is not", Fails, WORDS, greets(|| text(r#"{"type":"weather"}"#))),
        long("closes within a game", Unmeasured, ENDS_FIRST, |peer| {
            open(peer)?;
            if peer.is_probe() {
                return peer.hold();
            }
            peer.say(text(START))
        }),
        long("sends starts without end", Fails, "connections open|not understood", |peer| {
            open(peer)?;
            peer.flood(text(START))
        }),
        long("sends snapshots without end", Fails, "connections open|not understood", |peer| {
            open(peer)?;
            peer.flood(tick(1, now_us()))
        }),
    ]
}

fn ticking() -> Vec<Row> {
    vec![
        long(
            "sends no snapshot to those who asked for one",
            Unmeasured,
            "tick|snapshot",
            started(|game| {
                thread::sleep(GAME);
                game.end();
            }),
        )
        .with(LONG),
        long(
            "says the same snapshot again and again",
            Fails,
            "late|ticks|snapshots",
            started(|game| {
                let begin = Instant::now();
                while begin.elapsed() < GAME {
                    thread::sleep(TICK * 4);
                    game.say_to(true, &tick(1, now_us()));
                }
                game.end();
            }),
        )
        .with(LONG),
        row(
            "leaves out most ticks, and goes on numbering as if there were none of them",
            Fails,
            "client_ticks.late_share",
            started(|game| {
                let begin = Instant::now();
                let mut number = 0;
                while begin.elapsed() < GAME {
                    for _ in 0..10 {
                        thread::sleep(TICK);
                        number += 1;
                        game.say_to(true, &tick(number, now_us()));
                    }
                    thread::sleep(TICK * 24);
                }
                game.end();
            }),
        )
        .with(LONG),
        row(
            "stands still and then runs the ticks that were due, as it may",
            Passes,
            "",
            started(|game| {
                let begin = Instant::now();
                for number in 1..=90 {
                    let due = begin + TICK * number;
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    if number % 30 == 0 {
                        thread::sleep(TICK * 4);
                    }
                    game.say_to(true, &tick(u64::from(number), now_us()));
                }
                game.end();
            }),
        )
        .with(LONG),
        long(
            "sends one tick in four, and numbers them backwards",
            Fails,
            "client_ticks.late_share",
            started(|game| {
                let begin = Instant::now();
                for number in (1..1_000_000).rev() {
                    if begin.elapsed() >= GAME {
                        break;
                    }
                    thread::sleep(TICK * 4);
                    game.say_to(true, &tick(number, now_us()));
                }
                game.end();
            }),
        )
        .with(LONG),
    ]
}

#[test]
fn hostile_arenas_do_not_pass() {
    check(&LOAD, &endings());
    check(&PATIENT, &unending());
    check(&STRICT, &words_of_its_own());
    check(&TICKS, &ticking());
}
