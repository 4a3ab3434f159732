//! Rooms that span nodes, over a real NATS server: who gets which line, and what the books say when lines are lost.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use servers::chat::{self, Options};

use crate::chat_client::{Chat, Talker};
use crate::nats_server::NatsServer;

fn node(url: &str, name: &str) -> Options {
    Options { nats: Some(url.parse().unwrap()), node: Some(name.to_owned()), ..Options::default() }
}

fn joined(chat: &Chat, room: &str) -> Talker {
    let mut talker = Talker::new(chat);
    talker.say(&format!("/join {room}"));
    talker.hear_until(&format!("* joined {room}"));
    talker
}

/// Waits for a sentence that contains this.
#[track_caller]
fn says(chat: &Chat, part: &str) -> String {
    let by = Instant::now() + Duration::from_secs(20);
    let mut all = Vec::new();
    loop {
        let left = by.saturating_duration_since(Instant::now());
        match chat.said.recv_timeout(left) {
            Ok(sentence) if sentence.contains(part) => return sentence,
            Ok(sentence) => all.push(sentence),
            Err(_) => panic!("it does not say {part:?}, but {all:#?}"),
        }
    }
}

/// Asks until the answer is this.
#[track_caller]
fn until(talker: &mut Talker, ask: &str, answer: &str) {
    let by = Instant::now() + Duration::from_secs(20);
    loop {
        talker.say(ask);
        let said = talker.hear();
        if said == answer {
            return;
        }
        assert!(Instant::now() < by, "{said}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Bytes to the broker as any other of its clients sends them.
fn publish(broker: &NatsServer, messages: &[(&str, &str)]) {
    let mut stream = TcpStream::connect(("127.0.0.1", broker.port)).unwrap();
    let mut words = "CONNECT {\"verbose\":false}\r\n".to_owned();
    for (subject, payload) in messages {
        words += &format!("PUB {subject} {}\r\n{payload}\r\n", payload.len());
    }
    stream.write_all((words + "PING\r\n").as_bytes()).unwrap();
    let mut heard = String::new();
    while !heard.contains("PONG") {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "{heard}");
        heard += &String::from_utf8_lossy(&buffer[..count]);
    }
}

#[test]
fn a_line_goes_to_all_nodes_with_members_of_the_room_and_each_node_books_it_for_its_own() {
    let Some(broker) = NatsServer::start(&[]) else { return };
    let [one, two, three] = ["one", "two", "three"].map(|name| Chat::start(node(&broker.url(), name)));
    let mut ada = joined(&one, "kitchen.1");
    let mut bob = joined(&two, "kitchen.1");
    let mut eve = joined(&two, "kitchen.1");
    let mut other = joined(&three, "cellar");
    ada.say("/nick ada");
    assert_eq!(ada.hear(), "* you are ada");
    ada.say("hello ☃");
    for hears in [&mut bob, &mut eve] {
        assert_eq!(hears.hear(), "ada: hello ☃");
    }
    bob.say("there");
    assert_eq!(ada.hear(), "there");
    assert_eq!(eve.hear(), "there");
    until(&mut ada, "/who", "* 1 in kitchen.1: ada; 2 on another node");
    until(&mut bob, "/who", "* 2 in kitchen.1; 1 on another node");
    for (talker, owed) in [(&mut ada, 1), (&mut bob, 1), (&mut eve, 2), (&mut other, 0)] {
        let (before, books) = talker.books();
        assert_eq!((before, books), (Vec::new(), [owed, owed, 0, 0]));
    }
    drop((ada, bob, eve, other));
    assert_eq!((one.end().owed, two.end().owed, three.end().owed), (1, 3, 0));
}

#[test]
fn books_are_told_once_what_was_said_before_is_in_the_rooms_of_all_nodes() {
    const LINES: usize = 2_000;
    let Some(broker) = NatsServer::start(&[]) else { return };
    let [one, two] = ["one", "two"].map(|name| Chat::start(node(&broker.url(), name)));
    let mut speaker = joined(&one, "r");
    let mut listener = joined(&two, "r");
    let lines: String = (0..LINES).map(|line| format!("{line}\n")).collect();
    for round in 1..=5 {
        speaker.write(lines.as_bytes());
        let (before, _) = speaker.books();
        assert_eq!(before, Vec::<String>::new());
        // Asked after that, not a line is under way any more.
        let (heard, [owed, delivered, ..]) = listener.books();
        assert_eq!((owed, delivered), ((round * LINES) as u64, (round * LINES) as u64));
        assert!(heard.iter().map(String::as_str).eq(lines.lines()), "all of them, in order");
    }
    drop((speaker, listener));
    one.end();
    two.end();
}

#[test]
fn lines_that_were_thrown_away_on_the_way_are_owed_and_dropped_and_nothing_else_is() {
    let Some(broker) = NatsServer::start(&[]) else { return };
    let one = Chat::start(node(&broker.url(), "one"));
    let faults = vec!["lose-linked@0s".parse().unwrap()];
    let two = Chat::start(Options { faults, ..node(&broker.url(), "two") });
    let mut ada = joined(&one, "r");
    let mut bob = joined(&two, "r");
    let mut eve = joined(&two, "r");
    // The last line of all is lost, and only the fence shows it.
    ada.write(b"a\n");
    assert_eq!(ada.books().1, [0, 0, 0, 0]);
    for talker in [&mut bob, &mut eve] {
        assert_eq!(talker.hear(), "* missed 1 line");
        assert_eq!(talker.books(), (vec![], [1, 0, 1, 0]));
    }
    ada.say("b");
    assert_eq!((bob.hear(), eve.hear()), ("b".to_owned(), "b".to_owned()));
    assert_eq!(bob.books().1, [2, 1, 1, 0]);
    assert_eq!(says(&two, "did not reach"), "1 line of node one in room r did not reach this node");
    drop((ada, bob, eve));
    one.end();
    let totals = two.end();
    assert_eq!((totals.owed, totals.dropped, totals.dropped_link), (4, 2, 2));
}

#[test]
fn while_the_broker_is_gone_each_node_serves_its_own_and_afterwards_all_know_what_is_missing() {
    let Some(broker) = NatsServer::start(&[]) else { return };
    let (url, port) = (broker.url(), broker.port);
    let [one, two] = ["one", "two"].map(|name| Chat::start(node(&url, name)));
    let (mut ada, mut ann) = (joined(&one, "r"), joined(&one, "r"));
    let mut bob = joined(&two, "r");
    drop(broker);
    let lost = says(&one, "is lost");
    assert!(lost.starts_with(&format!("the connection to {url} is lost (")), "{lost}");
    ada.write(b"x\ny\n");
    assert_eq!((ann.hear(), ann.hear()), ("x".to_owned(), "y".to_owned()));
    let (before, books) = ada.books();
    assert!(
        before.len() == 1 && before[0].starts_with("* the other nodes cannot be reached: "),
        "{before:?}"
    );
    assert_eq!(books, [0, 0, 0, 0]);
    ada.say("/who");
    assert_eq!(ada.hear(), "* 2 in r; the other nodes cannot be reached");
    let mut late = joined(&one, "late");
    let _broker = NatsServer::start_on(port, &[]).unwrap();
    let again = says(&one, "again after");
    assert!(again.ends_with("; 2 lines said here meanwhile did not reach the other nodes"), "{again}");
    assert_eq!(bob.hear(), "* missed 2 lines");
    let (_, books) = bob.books();
    assert_eq!(books, [2, 0, 2, 0]);
    ann.say("z");
    assert_eq!((ada.hear(), bob.hear()), ("z".to_owned(), "z".to_owned()));
    late.say("/who");
    assert_eq!(late.hear(), "* 1 in late");
    drop((ada, ann, bob, late));
    one.end();
    assert_eq!(two.end().dropped_link, 2);
}

#[test]
fn a_node_that_does_not_answer_is_named_beside_the_books() {
    let Some(broker) = NatsServer::start(&[]) else { return };
    let one = Chat::start(node(&broker.url(), "one"));
    let mut ada = joined(&one, "r");
    publish(&broker, &[("stepladder-chat.nodes", "HERE 00000000000000ff mute")]);
    assert_eq!(says(&one, "is there"), "node mute is there");
    let (before, _) = ada.books();
    assert_eq!(before, ["* not all nodes have answered, so lines to them may be under way: mute"]);
    assert_eq!(says(&one, "not heard"), "node mute was not heard for 5 s");
    assert_eq!(ada.books(), (vec![], [0, 0, 0, 0]));
    drop(ada);
    one.end();
}

#[test]
fn a_broker_that_falls_silent_is_noticed_and_found_again() {
    let Some(broker) = NatsServer::start(&[]) else { return };
    let one = Chat::start(node(&broker.url(), "one"));
    broker.signal(libc::SIGSTOP);
    assert!(says(&one, "is lost").contains("(it has not answered within 5 s)"));
    broker.signal(libc::SIGCONT);
    says(&one, "again after");
    one.end();
}

#[test]
fn what_others_publish_on_the_nodes_subjects_is_ignored_and_said_once() {
    let Some(broker) = NatsServer::start(&[]) else { return };
    let one = Chat::start(node(&broker.url(), "one"));
    let mut ada = joined(&one, "r");
    let strange = [
        "",
        "hello",
        "L 00000000000000ff 1 0 9 1\nx\n",
        "L 00000000000000ff 1 18446744073709551615 1 1\nx\n",
        "\u{0}",
    ];
    let subjects = ["stepladder-chat.nodes", "stepladder-chat.room.r"];
    let messages: Vec<(&str, &str)> =
        subjects.iter().flat_map(|subject| strange.map(|payload| (*subject, payload))).collect();
    publish(&broker, &messages);
    publish(&broker, &[("stepladder-chat.room.r", "L 00000000000000ff 1 0 1 1\nfrom a node\n")]);
    assert_eq!(ada.hear(), "from a node");
    says(&one, "is none of a node's");
    assert_eq!(one.said.try_iter().filter(|sentence| sentence.contains("is none of a node's")).count(), 0);
    assert_eq!(ada.books().1, [1, 1, 0, 0]);
    drop(ada);
    one.end();
}

#[test]
fn what_keeps_a_node_from_starting_is_said_in_a_sentence() {
    let check = |options: Options, message: &str| {
        let listen = "127.0.0.1:0".parse().unwrap();
        let ended = chat::run(Options { listen, ..options }, |_| {});
        assert_eq!(ended.unwrap_err().to_string(), message);
    };
    let remedy = "; start it, or correct --nats";
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("nats://{free}");
    let refused = format!("cannot use the NATS server {url} (Connection refused (os error 111){remedy}");
    check(node(&url, "one"), &refused.replace("111)", "111))"));
    let speaker = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", speaker.local_addr().unwrap());
    let speaking = std::thread::spawn(move || {
        speaker.accept().unwrap().0.write_all(b"220 mail.example ESMTP\r\n").unwrap();
    });
    check(
        node(&url, "one"),
        &format!("cannot use the NATS server {url} (what it sent is not the NATS protocol){remedy}"),
    );
    speaking.join().unwrap();
    let Some(broker) = NatsServer::start(&["--user", "ada", "--pass", "s3cret"]) else { return };
    let url = broker.url();
    let with = |login: &str| url.replace("nats://", &format!("nats://{login}@"));
    let wants =
        "it asks for credentials; give them with --nats-login, or as in nats://USER:PASSWORD@HOST:PORT";
    check(node(&url, "one"), &format!("cannot use the NATS server {url} ({wants}){remedy}"));
    let said = "it said: Authorization Violation";
    check(node(&with("ada:wrong"), "one"), &format!("cannot use the NATS server {url} ({said}){remedy}"));
    let one = Chat::start(node(&with("ada:s3cret"), "one"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("login");
    let with_file = |name: &str| Options { nats_login: Some(file.clone()), ..node(&url, name) };
    let unread = "cannot read the login (No such file or directory (os error 2)); its first line is USER:PASSWORD or TOKEN";
    check(with_file("two"), &format!("{}: {unread}", file.display()));
    std::fs::write(&file, "ada:s3cret\n").unwrap();
    Chat::start(with_file("two")).end();
    let taken = "a node called one is there already; choose another name with --node, or stop that one";
    check(node(&with("ada:s3cret"), "one"), taken);
    one.end();
}
