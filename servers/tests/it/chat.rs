//! The chat over real sockets: who gets which line, what is answered, and that the accounts agree with both.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use servers::chat::{OnFull, Options, Window};

use crate::chat_client::{Chat, Talker, figures};

fn talkers(chat: &Chat, count: usize) -> Vec<Talker> {
    (0..count).map(|_| Talker::new(chat)).collect()
}

#[test]
fn a_line_goes_to_everybody_else_as_it_came() {
    let chat = Chat::start(Options::default());
    let mut all = talkers(&chat, 4);
    all[0].write(b"hello there \xe2\x98\x83\r\n\n");
    for talker in &mut all[1..] {
        assert_eq!(talker.hear(), "hello there ☃");
        assert_eq!(talker.hear(), "");
    }
    all[1].say("//slash");
    assert_eq!(all[0].hear(), "/slash", "its own line does not come back");
    drop(all);
    let totals = chat.end();
    assert_eq!((totals.broadcasts, totals.owed), (3, 9));
}

#[test]
fn with_echo_the_sender_gets_its_line_too() {
    let chat = Chat::start(Options { echo: true, ..Options::default() });
    let mut all = talkers(&chat, 3);
    all[2].say("hello");
    all.iter_mut().for_each(|talker| assert_eq!(talker.hear(), "hello"));
    drop(all);
    assert_eq!(chat.end().owed, 3);
}

#[test]
fn names_are_unique_whatever_their_case_and_stand_before_the_lines() {
    let chat = Chat::start(Options::default());
    let mut all = talkers(&chat, 3);
    let mut asked = |talker: usize, line: &str, answer: &str| {
        all[talker].say(line);
        assert_eq!(all[talker].hear(), answer);
    };
    asked(0, "/nick Ada", "* you are Ada");
    asked(1, "/nick ada", "* not renamed: somebody is ada already");
    asked(1, "/nick a b", "* not renamed: a name has 1 to 32 bytes of letters, digits, _, - and .");
    asked(0, "/nick ADA", "* you are ADA");
    asked(0, "/nick Grace", "* you are Grace");
    asked(1, "/nick ada", "* you are ada");
    asked(2, "/who", "* 3 in lobby: Grace, ada and 1 more");
    all[0].say("hello");
    assert_eq!(all[1].hear(), "Grace: hello");
    assert_eq!(all[2].hear(), "Grace: hello");
    // A name is free again after its owner has left.
    all[0].say("/quit");
    assert_eq!(all[0].hear(), "* bye owed 0 delivered 0 dropped 0 waiting 0");
    assert_eq!(all[0].hear_out(), Vec::<String>::new());
    all.remove(0);
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        all[1].say("/nick grace");
        let answer = all[1].hear();
        if answer == "* you are grace" {
            break;
        }
        assert!(Instant::now() < until, "{answer}");
    }
    drop(all);
    chat.end();
}

#[test]
fn rooms_do_not_hear_each_other() {
    let chat = Chat::start(Options::default());
    let mut all = talkers(&chat, 4);
    for talker in [1, 3] {
        all[talker].say("/join kitchen");
        assert_eq!(all[talker].hear(), "* joined kitchen");
    }
    all[0].say("lobby");
    all[1].say("kitchen");
    assert_eq!(all[2].hear(), "lobby");
    assert_eq!(all[3].hear(), "kitchen");
    all[1].say("/join lobby");
    assert_eq!(all[1].hear(), "* joined lobby");
    all[2].say("welcome back");
    assert_eq!(all[1].hear(), "welcome back");
    assert_eq!(all[0].hear(), "welcome back");
    all[3].say("/join no such room");
    assert_eq!(all[3].hear(), "* not joined: a room's name has 1 to 32 bytes of letters, digits, _, - and .");
    for talker in &mut all {
        let (before, [owed, delivered, dropped, waiting]) = talker.books();
        assert_eq!(before, Vec::<String>::new());
        assert_eq!((owed, dropped, waiting), (delivered, 0, 0));
    }
    drop(all);
    assert_eq!(chat.end().owed, 4);
}

#[test]
fn everybody_gets_every_line_once_and_in_its_senders_order() {
    const TALKERS: usize = 16;
    const LINES: usize = 300;
    for window in [Window::Auto, Window::Fixed(Duration::from_millis(3))] {
        let chat = Chat::start(Options { window, ..Options::default() });
        let all = talkers(&chat, TALKERS);
        let speakers: Vec<TcpStream> = all.iter().map(|talker| talker.stream.try_clone().unwrap()).collect();
        let hearing = all.into_iter().zip(speakers).enumerate().map(|(me, (mut talker, mut stream))| {
            let speaking = std::thread::spawn(move || {
                for line in 0..LINES {
                    // In pieces, so that lines are split anywhere.
                    let text = format!("{me} {line}\n");
                    let (one, two) = text.split_at(line % text.len());
                    stream.write_all(one.as_bytes()).unwrap();
                    stream.write_all(two.as_bytes()).unwrap();
                }
            });
            std::thread::spawn(move || {
                let mut next: HashMap<usize, usize> = HashMap::new();
                for _ in 0..(TALKERS - 1) * LINES {
                    let line = talker.hear();
                    let (sender, number) =
                        line.split_once(' ').unwrap_or_else(|| panic!("{line:?} after {next:?}"));
                    let next = next.entry(sender.parse().unwrap()).or_default();
                    assert_eq!(number.parse(), Ok(*next), "{line}");
                    *next += 1;
                }
                assert!(!next.contains_key(&me), "nobody hears itself");
                // Its own speaker may be the last, and must not be interrupted within a line.
                speaking.join().unwrap();
                let (more, figures) = talker.books();
                assert_eq!(more, Vec::<String>::new());
                let owed = ((TALKERS - 1) * LINES) as u64;
                assert_eq!(figures, [owed, owed, 0, 0]);
            })
        });
        let hearing: Vec<_> = hearing.collect();
        hearing.into_iter().for_each(|one| one.join().unwrap());
        let totals = chat.end();
        assert_eq!(totals.broadcasts, (TALKERS * LINES) as u64);
        assert_eq!(totals.delivered, ((TALKERS - 1) * TALKERS * LINES) as u64);
    }
}

#[test]
fn books_come_after_every_line_that_was_read_before_the_question_on_any_thread() {
    // A wide window: an answer that did not wait for the lines would come long before them.
    let window = Window::Fixed(Duration::from_millis(20));
    let chat = Chat::start(Options { window, threads: Some(4), ..Options::default() });
    let mut all = talkers(&chat, 8);
    for turn in 0..40usize {
        let (speaker, witness, asker) = (turn % 8, (turn + 3) % 8, (turn + 5) % 8);
        let line = format!("line {turn}");
        all[speaker].say(&line);
        // Its own answer proves that the line before it was read.
        if turn % 2 == 0 {
            all[speaker].say("/who");
            all[speaker].hear_until("* 8 in lobby");
        } else {
            all[witness].hear_until(&line);
        }
        let (before, [owed, delivered, dropped, waiting]) = all[asker].books();
        assert_eq!(before.last(), Some(&line), "turn {turn}: {before:?}");
        assert_eq!((owed, dropped, waiting), (delivered, 0, 0));
    }
    drop(all);
    chat.end();
}

#[test]
fn lines_said_after_a_join_was_answered_are_owed() {
    let window = Window::Fixed(Duration::from_millis(5));
    let chat = Chat::start(Options { window, ..Options::default() });
    let mut speaker = Talker::new(&chat);
    speaker.say("/join kitchen");
    speaker.hear();
    let mut listeners = Vec::new();
    for turn in 0..30 {
        speaker.say("before");
        let mut listener = Talker::new(&chat);
        listener.say("/join kitchen");
        assert_eq!(listener.hear(), "* joined kitchen");
        speaker.say(&format!("after {turn}"));
        let (before, _) = listener.hear_until(&format!("after {turn}"));
        // Only the server knows whether the line before was read before the join.
        assert!(before.iter().all(|line| line == "before") && before.len() <= 1, "{before:?}");
        listeners.push(listener);
    }
    drop((speaker, listeners));
    chat.end();
}

#[test]
fn planted_losses_are_owed_counted_as_delivered_and_missing() {
    let chat = Chat::start(Options {
        threads: Some(1),
        faults: vec!["lose:1%".parse().unwrap()],
        ..Options::default()
    });
    let mut all = talkers(&chat, 3);
    (0..120).for_each(|line| all[0].say(&format!("line {line}")));
    all[0].books();
    let mut heard = 0;
    for talker in &mut all[1..] {
        let (lines, figures) = talker.books();
        assert_eq!(figures, [120, 120, 0, 0]);
        heard += lines.len();
    }
    drop(all);
    let totals = chat.end();
    assert_eq!((totals.owed, totals.delivered), (240, 240));
    assert_eq!(heard, 238, "two in 240 are lost");
}

/// A chat in which one client does not read, and another has said 3,000 lines of 500 bytes to it.
fn stalled(on_full: OnFull) -> (Chat, Talker, Talker) {
    let chat = Chat::start(Options { on_full, backlog: 100, ..Options::default() });
    let (slow, mut speaker) = (Talker::with_little_room(&chat), Talker::new(&chat));
    let mut witness = Talker::new(&chat);
    for line in 0..3000u32 {
        speaker.say(&format!("{line:04} {}", "x".repeat(495)));
        if line % 50 == 49 {
            // The speaker is only as fast as the reader, so that only the slow one misses anything.
            witness.hear_until(&format!("{line:04} "));
        }
    }
    let (_, figures) = witness.books();
    assert_eq!(figures, [3000, 3000, 0, 0], "others are not delayed, and miss nothing");
    (chat, slow, speaker)
}

fn check_slow_reader(on_full: OnFull) -> Vec<String> {
    let (chat, mut slow, speaker) = stalled(on_full);
    slow.make_room();
    slow.say("/books");
    let (heard, answer) = slow.hear_until("* books ");
    let [owed, delivered, dropped, waiting] = figures(&answer);
    let missed: u64 = heard
        .iter()
        .filter_map(|line| line.strip_prefix("* missed "))
        .map(|rest| rest.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    let lines = heard.iter().filter(|line| !line.starts_with('*')).count() as u64;
    assert_eq!((owed, waiting), (3000, 0));
    assert_eq!((delivered, dropped), (lines, missed), "{on_full:?}");
    assert_eq!(owed, delivered + dropped);
    assert!(dropped > 1000 && delivered >= 100, "{on_full:?}: {dropped} dropped, {delivered} delivered");
    assert!(heard.iter().all(|line| line.starts_with('*') || line.len() == 500), "no line is cut");
    drop((slow, speaker));
    assert_eq!(chat.end().dropped, dropped);
    heard
}

#[test]
fn a_slow_reader_misses_the_oldest_lines_and_is_told_how_many() {
    let heard = check_slow_reader(OnFull::DropOldest);
    assert!(heard.last().is_some_and(|line| line.starts_with("2999 ")));
    assert_eq!(heard.iter().filter(|line| line.starts_with('*')).count(), 1, "one gap");
}

#[test]
fn a_slow_reader_misses_the_newest_lines_where_that_is_the_policy() {
    let heard = check_slow_reader(OnFull::DropNewest);
    assert!(heard.last().is_some_and(|line| line.starts_with("* missed ")));
}

#[test]
fn a_slow_reader_is_disconnected_where_that_is_the_policy() {
    let (chat, mut slow, speaker) = stalled(OnFull::Disconnect);
    slow.make_room();
    let heard = slow.hear_out();
    assert!(heard.len() < 2000);
    drop((slow, speaker));
    let totals = chat.end();
    assert_eq!((totals.cut.backlog_full, totals.dropped), (1, 0));
    assert!(totals.in_flight_at_close > 100);
}

#[test]
fn who_quits_gets_what_is_owed_then_its_books_and_then_the_end() {
    let window = Window::Fixed(Duration::from_millis(50));
    let chat = Chat::start(Options { window, ..Options::default() });
    let mut all = talkers(&chat, 3);
    all[0].say("first");
    assert_eq!(all[1].hear(), "first");
    // Within the rest after that round: the quit must not wait for the next one, nor lose the line.
    all[0].say("second");
    all[0].say("/who");
    all[0].hear();
    all[1].say("third");
    all[1].say("/quit");
    assert_eq!(all[1].hear_out(), ["second", "* bye owed 2 delivered 2 dropped 0 waiting 0"]);
    all[1].stream.shutdown(std::net::Shutdown::Both).ok();
    assert_eq!(
        (all[2].hear(), all[2].hear(), all[2].hear()),
        ("first".into(), "second".into(), "third".into())
    );
    drop(all);
    assert_eq!(chat.end().owed, 2 + 1 + 3);
}

#[test]
fn a_client_that_shut_its_sending_side_goes_on_receiving_for_a_while() {
    let half_closed = Duration::from_millis(1500);
    let chat = Chat::start(Options { half_closed, ..Options::default() });
    let (mut piped, mut other) = (Talker::new(&chat), Talker::new(&chat));
    piped.say("from a file");
    piped.finish_sending();
    assert_eq!(other.hear(), "from a file");
    other.say("to nobody's ear?");
    let heard = piped.hear_out();
    assert_eq!(heard, ["to nobody's ear?"]);
    other.say("/who");
    assert_eq!(other.hear(), "* 1 in lobby");
    drop(other);
    let totals = chat.end();
    assert_eq!((totals.cut.half_closed, totals.delivered), (1, 2));
}

#[test]
fn the_end_is_told_and_what_is_queued_comes_before_it() {
    let chat = Chat::start(Options { window: Window::Fixed(Duration::from_secs(5)), ..Options::default() });
    let mut all = talkers(&chat, 6);
    all[0].say("first");
    all[1..].iter_mut().for_each(|talker| assert_eq!(talker.hear(), "first"));
    all[0].say("second");
    all[0].say("/who");
    all[0].hear();
    let began = Instant::now();
    chat.tell_the_end();
    assert_eq!(all[0].hear_out(), ["* the server is going away"]);
    for talker in &mut all[1..] {
        assert_eq!(talker.hear_out(), ["second", "* the server is going away"]);
    }
    drop(all);
    assert_eq!(chat.end().delivered, 10);
    assert!(began.elapsed() < Duration::from_secs(5), "nobody has to be waited for");
}

#[test]
fn the_end_does_not_wait_long_for_who_does_not_read() {
    let drain = Duration::from_millis(300);
    let chat = Chat::start(Options { drain, ..Options::default() });
    let (slow, mut speaker) = (Talker::with_little_room(&chat), Talker::new(&chat));
    (0..1000).for_each(|_| speaker.say(&"x".repeat(1000)));
    speaker.books();
    let began = Instant::now();
    let totals = chat.end();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(totals.in_flight_at_close > 0, "{totals:?}");
    drop((slow, speaker));
}

#[test]
fn the_sum_of_the_reports_is_what_was_sent() {
    let report_every = Duration::from_millis(50);
    let chat = Chat::start(Options { report_every, ..Options::default() });
    let mut all = talkers(&chat, 3);
    let mut bytes = 0.0;
    for line in 0..20 {
        all[0].say(&format!("line {line}"));
        let report = chat.reports.recv().unwrap();
        bytes += report.bytes_per_s * report.interval_s;
        assert!((report.totals.bytes as f64 - bytes).abs() < 1e-3);
        assert!(report.to_string().starts_with("c[3] sΣ["), "{report}");
    }
    drop(all);
    chat.end();
}

#[test]
fn the_figures_are_served_over_http() {
    let metrics = Some("127.0.0.1:0".parse().unwrap());
    let chat = Chat::start(Options { metrics, ..Options::default() });
    let mut all = talkers(&chat, 3);
    all[0].say("/join kitchen");
    all[0].hear();
    all[1].say("hello");
    all[2].hear();
    all[2].books();
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(chat.metrics.unwrap()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0"));
    assert!(body.ends_with("# EOF\n"));
    for line in ["chat_clients 3\n", "chat_rooms 2\n", "chat_owed_total 1\n", "chat_residual 0\n"] {
        assert!(body.contains(line), "{line}{body}");
    }
    assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(ask("hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // A client that sends an endless request is not waited for.
    let silent = TcpStream::connect(chat.metrics.unwrap()).unwrap();
    assert!(ask("GET /metrics HTTP/1.1\r\n\r\n").contains("# EOF"));
    drop((silent, all));
    chat.end();
}
