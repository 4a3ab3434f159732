//! Bad input from chat clients, and that it affects nobody else.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use servers::chat::Options;

use crate::chat_client::{Chat, Talker};

#[test]
fn malformed_lines_are_noticed_and_not_said() {
    let chat = Chat::start(Options::default());
    let (mut bad, mut other) = (Talker::new(&chat), Talker::new(&chat));
    let check = |bad: &mut Talker, bytes: &[u8], answer: &str| {
        bad.write(bytes);
        assert_eq!(bad.hear(), answer, "{}", bytes.escape_ascii());
    };
    check(&mut bad, b"\xff\xffno\n", "* not said: a line is UTF-8 without NUL");
    check(&mut bad, b"caf\xe9\n", "* not said: a line is UTF-8 without NUL");
    check(&mut bad, b"nu\0l\n", "* not said: a line is UTF-8 without NUL");
    check(&mut bad, b"/nothing here\n", "* there is no /nothing; /help lists what there is");
    check(&mut bad, b"/\x1b[2J\r\n", "* there is no /[2J…; /help lists what there is");
    check(&mut bad, b"/nick \n", "* not renamed: a name has 1 to 32 bytes of letters, digits, _, - and .");
    check(
        &mut bad,
        b"/nick me:you\n",
        "* not renamed: a name has 1 to 32 bytes of letters, digits, _, - and .",
    );
    check(&mut bad, b"/help\n", servers_help());
    // Telnet negotiates within the first line.
    bad.write(b"\xff\xfd\x03\xff\xfb\x18still here\r\n");
    assert_eq!(other.hear(), "still here");
    drop((bad, other));
    assert_eq!(chat.end().broadcasts, 1);
}

fn servers_help() -> &'static str {
    "* /join ROOM, /nick NAME, /who, /books (what was owed to you), /quit; \
     a line that begins with // is said with one slash"
}

#[test]
fn a_line_beyond_the_cap_is_told_and_closed_and_one_at_the_cap_is_said() {
    let chat = Chat::start(Options { max_line: 100, ..Options::default() });
    let mut all: Vec<Talker> = (0..3).map(|_| Talker::new(&chat)).collect();
    let longest = "x".repeat(100);
    all[0].write(format!("{longest}\r\n").as_bytes());
    assert_eq!(all[1].hear(), longest);
    all[0].write(format!("before\n{longest}x").as_bytes());
    assert_eq!(all[0].hear(), "* a line has at most 100 bytes; closing");
    assert_eq!(all[0].hear_out(), Vec::<String>::new());
    assert_eq!(all[1].hear(), "before");
    // The same without any end, for as long as the server reads it.
    let mut endless = all.pop().unwrap();
    let writing = std::thread::spawn(move || {
        use std::io::Write;
        let began = Instant::now();
        while endless.stream.write_all(&[b'x'; 16 * 1024]).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(20), "it is cut");
        }
    });
    writing.join().unwrap();
    drop(all);
    assert_eq!(chat.end().cut.line_too_long, 2);
}

#[test]
fn a_line_that_never_ends_is_cut_in_time_and_silence_is_not() {
    let line_timeout = Duration::from_millis(200);
    let chat = Chat::start(Options { line_timeout, ..Options::default() });
    let (mut slow, mut silent) = (Talker::new(&chat), Talker::new(&chat));
    slow.write(b"a whole line\n");
    assert_eq!(silent.hear(), "a whole line");
    let began = Instant::now();
    for byte in b"drop by drop, without an end".iter().cycle() {
        slow.write(&[*byte]);
        std::thread::sleep(Duration::from_millis(10));
        if began.elapsed() > Duration::from_millis(100) {
            break;
        }
    }
    assert_eq!(slow.hear(), "* a line must end in time; closing");
    assert!(began.elapsed() >= line_timeout, "and not before");
    assert_eq!(slow.hear_out(), Vec::<String>::new());
    silent.say("/who");
    assert_eq!(silent.hear(), "* 1 in lobby");
    drop(silent);
    assert_eq!(chat.end().cut.line_too_slow, 1);
}

#[test]
fn who_says_nothing_for_too_long_is_closed_where_that_is_asked_for() {
    let chat = Chat::start(Options { idle: Some(Duration::from_secs(2)), ..Options::default() });
    let (mut silent, mut talker) = (Talker::new(&chat), Talker::new(&chat));
    let talking = std::thread::spawn(move || {
        for _ in 0..25 {
            talker.say("/who");
            talker.hear();
            std::thread::sleep(Duration::from_millis(100));
        }
        talker.hear_out()
    });
    assert_eq!(silent.hear(), "* you said nothing for so long; closing");
    assert_eq!(silent.hear_out(), Vec::<String>::new());
    assert_eq!(talking.join().unwrap(), ["* you said nothing for so long; closing"], "not while it talks");
    assert_eq!(chat.end().cut.idle, 2);
}

#[test]
fn who_asks_and_does_not_read_is_closed() {
    let chat = Chat::start(Options::default());
    let mut deaf = Talker::with_little_room(&chat);
    let asking = std::thread::spawn(move || {
        use std::io::Write;
        let began = Instant::now();
        while deaf.stream.write_all(&b"/help\n".repeat(1000)).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(20), "it is closed");
        }
    });
    asking.join().unwrap();
    assert_eq!(chat.end().cut.answers_unread, 1);
}

#[test]
fn whoever_comes_on_top_of_the_limit_is_told() {
    let chat = Chat::start(Options { max_clients: 2, ..Options::default() });
    let (one, mut two) = (Talker::new(&chat), Talker::new(&chat));
    let mut three = Talker::connect(&chat);
    assert_eq!(three.hear_out(), ["* the server is full, come back later"]);
    two.say("/quit");
    two.hear_out();
    drop(two);
    let until = Instant::now() + Duration::from_secs(20);
    while !Talker::connect(&chat).hear().starts_with("* welcome") {
        assert!(Instant::now() < until, "there is room again");
    }
    drop(one);
    chat.end();
}

#[test]
fn thousands_of_connections_from_one_address_are_limited_and_leave_nothing_behind() {
    let chat = Chat::start(Options { per_address_rate: Some(50), ..Options::default() });
    let mut welcomed = Vec::new();
    let began = Instant::now();
    for _ in 0..2000 {
        let stream = TcpStream::connect(chat.address).unwrap();
        // Closed by a reset, which leaves no port in TIME_WAIT.
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        welcomed.push(stream);
        if welcomed.len() > 200 {
            welcomed.clear();
        }
    }
    drop(welcomed);
    let until = Instant::now() + Duration::from_secs(20);
    // A token is back after 20 ms; then a client is accepted.
    let mut after = loop {
        let mut talker = Talker::connect(&chat);
        if talker.hear().starts_with("* welcome") {
            break talker;
        }
        assert!(Instant::now() < until);
    };
    while after.hear_who() > 1 {
        assert!(Instant::now() < until, "those who left are gone");
    }
    drop(after);
    let totals = chat.end();
    let seconds = began.elapsed().as_secs_f64();
    let refused_least = 2000.0 - 50.0 - 50.0 * seconds;
    assert!(totals.refused_rate as f64 >= refused_least, "{} in {seconds:.1} s", totals.refused_rate);
}

#[test]
fn a_connection_that_is_reset_is_gone_at_once_and_its_books_are_closed() {
    let chat = Chat::start(Options::default());
    let (reset, mut other) = (Talker::new(&chat), Talker::new(&chat));
    socket2::SockRef::from(&reset.stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(reset);
    let until = Instant::now() + Duration::from_secs(20);
    while other.hear_who() > 1 {
        assert!(Instant::now() < until);
    }
    other.say("to nobody");
    drop(other);
    assert_eq!(chat.end().owed, 0);
}

#[test]
fn a_flood_from_one_client_keeps_nobody_from_being_heard() {
    let chat = Chat::start(Options { threads: Some(1), ..Options::default() });
    let flood = Talker::new(&chat);
    let (mut one, mut two) = (Talker::new(&chat), Talker::new(&chat));
    flood.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut stream = flood.stream.try_clone().unwrap();
    let flooding = std::thread::spawn(move || {
        use std::io::Write;
        let lines = "flood\n".repeat(10_000);
        (0..40).for_each(|_| drop(stream.write_all(lines.as_bytes())));
    });
    one.say("hello");
    two.hear_until("hello");
    flooding.join().unwrap();
    // A client that floods and reads nothing is owed the others' lines like any other.
    drop((flood, one, two));
    chat.end();
}
