//! Faults of the chat. Losses have their test in `chat`.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use servers::chat::Options;

use super::{PATIENCE, check_reset, check_silent, faults};
use crate::chat_client::{Chat, Talker};

fn start(planted: &[&str]) -> Chat {
    let options = Options { threads: Some(1), faults: faults(planted), ..Options::default() };
    Chat::start(Options { drain: Duration::from_millis(300), ..options })
}

/// Waits out what is said about others who come, so that only lines are left to hear.
fn pair(chat: &Chat) -> (Talker, Talker) {
    let (one, mut two) = (Talker::new(chat), Talker::new(chat));
    two.books();
    (one, two)
}

/// Says 200 lines; returns what the other heard, and what the chat says that this one was owed and got.
fn heard_of_200(chat: &Chat) -> (Vec<String>, [u64; 4]) {
    let (mut one, mut two) = pair(chat);
    (0..200).for_each(|line| one.say(&format!("line {line}")));
    one.books();
    two.books()
}

#[test]
fn the_planted_share_of_deliveries_comes_twice_and_the_books_know_nothing_of_it() {
    let chat = start(&["duplicate:1%"]);
    let (heard, figures) = heard_of_200(&chat);
    assert_eq!(figures, [200, 200, 0, 0]);
    let doubled: Vec<&str> =
        heard.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0].as_str()).collect();
    assert_eq!((heard.len(), doubled), (202, vec!["line 99", "line 199"]));
    chat.end();
}

#[test]
fn the_planted_share_of_lines_has_an_altered_text() {
    let chat = start(&["wrong-answers:1%"]);
    let (heard, _) = heard_of_200(&chat);
    let wrong: Vec<&str> =
        heard.iter().map(String::as_str).filter(|line| !line.starts_with("line ")).collect();
    assert_eq!((heard.len(), wrong), (200, vec!["~ine 99", "~ine 199"]));
    chat.end();
}

#[test]
fn late_answers_delay_lines_and_books_and_keep_their_order() {
    let chat = start(&["late-answers:300ms"]);
    let (mut one, mut two) = pair(&chat);
    let began = Instant::now();
    one.say("hello");
    assert_eq!(two.hear(), "hello");
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    one.say("again");
    one.books();
    assert_eq!(two.books().0, ["again"]);
    // What was sent before the end is received although it is late.
    one.say("last");
    one.finish_sending();
    assert_eq!(two.hear(), "last");
    chat.end();
}

#[test]
fn all_clients_are_reset_once_and_new_ones_are_served() {
    let chat = start(&["drop-all@400ms"]);
    let mut first = Talker::connect(&chat);
    // The welcome comes before the reset, unless the machine was too busy for it.
    let error = loop {
        match first.stream.read(&mut [0; 256]) {
            Ok(count) => assert!(count > 0, "closed in order"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let (mut one, mut two) = pair(&chat);
    one.say("hello");
    assert_eq!(two.hear(), "hello");
    chat.end();
}

#[test]
fn refused_clients_are_reset_before_a_word() {
    let chat = start(&["refuse@0s"]);
    check_reset(&mut Talker::connect(&chat).stream);
    chat.end();
}

#[test]
fn without_answers_clients_hear_nothing_and_the_books_still_balance() {
    let (faults, drain) = (faults(&["stop-answers@0s"]), Duration::from_millis(300));
    let report_every = Duration::from_millis(20);
    let chat = Chat::start(Options { threads: Some(1), faults, drain, report_every, ..Options::default() });
    let (mut one, mut two) = (Talker::connect(&chat), Talker::connect(&chat));
    // They are not welcomed, so the reports show that they are there.
    while chat.reports.recv_timeout(PATIENCE).unwrap().totals.clients < 2 {}
    one.say("hello");
    check_silent(&mut two.stream);
    check_silent(&mut one.stream);
    let totals = chat.end();
    assert_eq!((totals.owed, totals.delivered, totals.in_flight_at_close), (1, 0, 1));
}

#[test]
fn in_a_collapsed_chat_every_line_takes_longer() {
    let chat = start(&["collapse@0s:300ms"]);
    let (mut one, mut two) = pair(&chat);
    let began = Instant::now();
    one.say("hello");
    assert_eq!(two.hear(), "hello");
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    chat.end();
}
