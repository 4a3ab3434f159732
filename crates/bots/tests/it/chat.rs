//! The chatters against a simulated room in virtual time: planted faults must appear in the accounts, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use bots::chat::{Chat, Irc, Lines, Mqtt, Nats};
use drivers::tcp::packets::{packet_body, split_packet};
use engine::Bots as _;
use engine::simulation::{Blocks, Played, Says, SimulatedServer, Times, Wire, play, play_settling};
use measure::ledger::close;
use measure::{Books, Measure, Phase};
use plan::{
    Arrivals, BotSettings, ChatBots, ChatDialect, FaultKind, FaultSpec, Login, WorkerPlan,
    WorkloadSettings as _,
};

use crate::{SECOND_NS, worker_plan};

const MS: u64 = 1_000_000;
const BOTS: u64 = 20;
const TIMES: Times = Times { hold_ns: 5 * SECOND_NS, drain_ns: 35 * SECOND_NS, generator_stall: None };

/// What goes wrong with the n-th delivery of the room, counted from 1.
type Fault = fn(u64) -> Fate;

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Comes,
    /// without saying so
    IsLost,
    /// and its receiver is notified
    IsDropped,
    /// and its receiver is sent this
    IsDroppedSay(&'static str),
    ComesTwice,
    /// after so many ns more than the others
    ComesLate(u64),
}

/// A room where each line reaches all others after `delay_ns`.
struct Room {
    dialect: ChatDialect,
    delay_ns: u64,
    fault: Fault,
    deliveries: u64,
    members: BTreeMap<u64, Member>,
    /// no connection is accepted at all
    is_shut: bool,
    /// how long the answer to a request to join takes, by connection
    join_takes_ns: fn(u64) -> u64,
    /// what is reported instead of a member's accounts
    lies: Option<&'static str>,
}

#[derive(Default)]
struct Member {
    unread: Vec<u8>,
    /// in IRC
    nick: String,
    has_joined: bool,
    owed: u64,
    delivered: u64,
    dropped: u64,
    /// the last instant at which something is on its way
    until_ns: u64,
}

impl Room {
    fn new(dialect: ChatDialect, fault: Fault) -> Self {
        let members = BTreeMap::new();
        let (is_shut, join_takes_ns, lies): (_, fn(u64) -> u64, _) = (false, |_| 0, None);
        Room { dialect, delay_ns: 20 * MS, fault, deliveries: 0, members, is_shut, join_takes_ns, lies }
    }

    fn line(&mut self, peer: u64, line: &str, at_ns: u64, says: &mut Says) {
        let room = "#lobby";
        match self.dialect {
            ChatDialect::Lines if line.starts_with("/join ") => {
                self.join(peer, "* joined lobby\n", at_ns, says)
            }
            ChatDialect::Lines if line == "/books" && self.lies.is_some() => {
                says.message(at_ns.max(self.members[&peer].until_ns), peer, self.lies.unwrap_or_default());
            }
            ChatDialect::Lines if line == "/books" => {
                let member = &self.members[&peer];
                let (owed, delivered, dropped) = (member.owed, member.delivered, member.dropped);
                let text = format!("* books owed {owed} delivered {delivered} dropped {dropped} waiting 0\n");
                says.message(at_ns.max(member.until_ns), peer, text);
            }
            ChatDialect::Lines => self.cast(peer, line, at_ns, says),
            ChatDialect::Irc if line.starts_with("NICK ") => {
                self.members.get_mut(&peer).unwrap().nick = line["NICK ".len()..].to_owned();
                says.message(at_ns + MS, peer, "PING :you\r\n:irc 001 b :Welcome\r\n:irc 376 b :End\r\n");
            }
            ChatDialect::Irc if line.starts_with("JOIN ") => {
                self.join(
                    peer,
                    format!(":irc 353 b = {room} :b c\r\n:irc 366 b {room} :End\r\n"),
                    at_ns,
                    says,
                );
            }
            ChatDialect::Irc => {
                if let Some((_, text)) = line.strip_prefix("PRIVMSG ").and_then(|rest| rest.split_once(" :"))
                {
                    self.cast(peer, text, at_ns, says);
                } else if let Some(token) = line.strip_prefix("PING :") {
                    let until_ns = self.members[&peer].until_ns;
                    says.message(at_ns.max(until_ns), peer, format!(":irc PONG irc :{token}\r\n"));
                }
            }
            ChatDialect::Nats if line.starts_with("SUB ") => self.join(peer, "", at_ns, says),
            ChatDialect::Nats if line == "PING" => {
                let until_ns = self.members[&peer].until_ns;
                says.message(at_ns.max(until_ns), peer, "PONG\r\n");
            }
            ChatDialect::Mqtt => unreachable!("packets are no lines"),
            ChatDialect::Nats => {
                if !line.starts_with("PUB ") && !line.starts_with("CONNECT ") {
                    self.cast(peer, line, at_ns, says);
                }
            }
        }
    }

    fn packet(&mut self, peer: u64, packet: &[u8], at_ns: u64, says: &mut Says) {
        match packet[0] {
            0x10 => says.message(at_ns, peer, b"\x20\x02\x00\x00"),
            0x82 => self.join(peer, b"\x90\x03\x00\x01\x00", at_ns, says),
            0xc0 => says.message(at_ns.max(self.members[&peer].until_ns), peer, b"\xd0\x00"),
            _ => {
                // Two bytes of length and `lobby` precede the text.
                let text = String::from_utf8(packet_body(packet)[7..].to_vec()).unwrap();
                self.cast(peer, &text, at_ns, says);
            }
        }
    }

    fn join(&mut self, peer: u64, answer: impl AsRef<[u8]>, at_ns: u64, says: &mut Says) {
        let member = self.members.get_mut(&peer).unwrap();
        let answer_ns = at_ns + MS + (self.join_takes_ns)(peer);
        member.has_joined = true;
        // In NATS the answer to a PING behind it confirms this.
        member.until_ns = member.until_ns.max(answer_ns);
        if !answer.as_ref().is_empty() {
            says.message(answer_ns, peer, answer.as_ref());
        }
    }

    fn cast(&mut self, from: u64, text: &str, at_ns: u64, says: &mut Says) {
        let dialect = self.dialect;
        let line = match dialect {
            ChatDialect::Lines => format!("{text}\n"),
            ChatDialect::Irc => format!(":{}!~b@::1 PRIVMSG #lobby :{text}\r\n", self.members[&from].nick),
            ChatDialect::Nats => format!("MSG lobby 1 {}\r\n{text}\r\n", text.len()),
            ChatDialect::Mqtt => format!("\x30{}\0\x05lobby{text}", char::from(7 + text.len() as u8)),
        };
        let is_owed = |peer| peer != from || dialect == ChatDialect::Mqtt;
        for (&peer, member) in
            self.members.iter_mut().filter(|(peer, member)| is_owed(**peer) && member.has_joined)
        {
            self.deliveries += 1;
            member.owed += 1;
            member.delivered += 1;
            let mut comes = |at_ns: u64, member: &mut Member| {
                member.until_ns = member.until_ns.max(at_ns);
                says.message(at_ns, peer, line.as_str());
            };
            let fate = (self.fault)(self.deliveries);
            match fate {
                Fate::Comes => comes(at_ns + self.delay_ns, member),
                Fate::IsLost => {}
                Fate::IsDropped | Fate::IsDroppedSay(_) => {
                    member.delivered -= 1;
                    member.dropped += 1;
                    let notice = match fate {
                        Fate::IsDroppedSay(notice) => notice,
                        _ => "* missed 1 lines\n",
                    };
                    says.message(at_ns + self.delay_ns, peer, notice);
                }
                Fate::ComesTwice => {
                    comes(at_ns + self.delay_ns, member);
                    comes(at_ns + self.delay_ns, member);
                }
                Fate::ComesLate(more_ns) => comes(at_ns + self.delay_ns + more_ns, member),
            }
        }
    }
}

impl SimulatedServer for Room {
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        if self.is_shut {
            return says.goodbye(at_ns, peer);
        }
        self.members.insert(peer, Member::default());
        if self.dialect == ChatDialect::Nats {
            says.message(at_ns, peer, "INFO {\"headers\":true}\r\n");
        }
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let Some(member) = self.members.get_mut(&peer) else { return };
        member.unread.extend_from_slice(message);
        if self.dialect == ChatDialect::Mqtt {
            let bytes = std::mem::take(&mut member.unread);
            let mut block = bytes.as_slice();
            while let Some((packet, rest)) = split_packet(block) {
                self.packet(peer, packet, at_ns, says);
                block = rest;
            }
            return assert!(block.is_empty(), "bots send whole packets");
        }
        let Some(end) = member.unread.iter().rposition(|&byte| byte == b'\n') else { return };
        let whole: Vec<u8> = member.unread.drain(..=end).collect();
        for line in String::from_utf8_lossy(&whole).lines() {
            self.line(peer, line, at_ns, says);
        }
    }

    fn closed(&mut self, peer: u64, _: u64, _: &mut Says) {
        self.members.remove(&peer);
    }
}

fn chat(dialect: ChatDialect) -> ChatBots {
    ChatBots {
        dialect,
        gap_min_ns: 500 * MS,
        gap_max_ns: SECOND_NS,
        line_min_bytes: 15,
        line_max_bytes: 58,
        talkers: None,
        room: "lobby".to_owned(),
        echoes: false,
        misbehave: Vec::new(),
    }
}

fn play_with(bots: ChatBots, room: &mut Room) -> Played {
    let dialect = bots.dialect;
    play_plan(&worker_plan(BotSettings::Chat(bots), BOTS), dialect, room)
}

fn play_plan(plan: &WorkerPlan, dialect: ChatDialect, server: &mut impl SimulatedServer) -> Played {
    match dialect {
        ChatDialect::Lines => play::<Chat<Lines, Wire<Blocks>>>(plan, TIMES, server),
        ChatDialect::Irc => play::<Chat<Irc, Wire<Blocks>>>(plan, TIMES, server),
        ChatDialect::Nats => play::<Chat<Nats, Wire<Blocks>>>(plan, TIMES, server),
        ChatDialect::Mqtt => play::<Chat<Mqtt, Wire<Blocks>>>(plan, TIMES, server),
    }
}

fn books_of(played: Played) -> Books {
    played.seconds.iter().for_each(|second| second.balance().unwrap());
    close(&[played.ledger.unwrap()])
}

fn rehearse_with(fault: Fault) -> Books {
    books_of(play_with(chat(ChatDialect::Lines), &mut Room::new(ChatDialect::Lines, fault)))
}

#[test]
fn in_every_dialect_each_line_is_owed_to_all_others_and_all_of_them_come() {
    for dialect in [ChatDialect::Lines, ChatDialect::Irc, ChatDialect::Nats, ChatDialect::Mqtt] {
        let mut room = Room::new(dialect, |_| Fate::Comes);
        let echoes = dialect == ChatDialect::Mqtt;
        let played = play_with(ChatBots { echoes, ..chat(dialect) }, &mut room);
        let mut said = 0;
        for second in &played.seconds {
            said += second.flows[0].iter().map(|flow| flow.sent).sum::<u64>();
        }
        // Twenty bots, 30 s of hold and 5 s before it at the most, one line in 0.75 s.
        assert!((750..1_000).contains(&said), "{said}");
        let books = books_of(played);
        let judged = books.judged;
        let owed = said * (BOTS - u64::from(!echoes));
        assert_eq!((judged.owed_min, judged.owed_max), (owed, owed), "{dialect:?}");
        assert_eq!((judged.delivered, judged.lost, judged.residual), (judged.owed_min, 0, 0), "{dialect:?}");
        assert_eq!((judged.duplicated, judged.reordered, judged.unowed), (0, 0, 0));
        assert_eq!(
            (judged.receivers, judged.not_caught_up, books.unknown_messages),
            (BOTS, 0, 0),
            "{dialect:?}"
        );
        assert_eq!(judged.owed_min, room.deliveries);
    }
}

#[test]
fn latency_is_what_the_room_takes_from_the_planned_instant_on() {
    let played = play_with(chat(ChatDialect::Lines), &mut Room::new(ChatDialect::Lines, |_| Fate::Comes));
    let mut count = 0;
    for second in &played.seconds {
        let latency = second.distribution(Measure::Delivery, true);
        count += latency.count();
        if let (Some(mean_ns), Some(max_ns)) = (latency.mean_ns(), latency.max_ns()) {
            // The stamp is rounded down to 10 µs.
            assert!((20.0e6..20.03e6).contains(&mean_ns), "{mean_ns}");
            assert!(max_ns < 20_100_000, "{max_ns}");
        }
    }
    let delivered: u64 = played.seconds.iter().map(|second| second.counters[1]).sum();
    // Here the ramp ends where the hold begins, and no bot speaks in the ramp.
    assert!(count > 10_000 && count == delivered, "{count} of {delivered} were planned in the hold");
}

#[test]
fn one_lost_delivery_is_a_residual_of_one_with_its_pair() {
    let books = rehearse_with(|count| if count == 7_000 { Fate::IsLost } else { Fate::Comes });
    assert_eq!((books.judged.lost, books.judged.dropped, books.judged.residual), (1, 0, 1));
    assert_eq!(books.worst.len(), 1);
    assert_eq!(books.worst[0].lost, 1);
}

#[test]
fn what_the_server_admits_to_have_dropped_is_lost_and_no_residual() {
    let books = rehearse_with(|count| if count.is_multiple_of(100) { Fate::IsDropped } else { Fate::Comes });
    assert!(books.drops_are_told);
    assert!(books.judged.lost > 100, "{:?}", books.judged);
    assert_eq!((books.judged.dropped, books.judged.residual), (books.judged.lost, 0));
}

#[test]
fn what_is_dropped_while_the_generator_stands_still_is_unread_and_what_a_server_forgets_is_lost_all_the_same()
{
    let stall = Times { generator_stall: Some((12 * SECOND_NS, 16 * SECOND_NS)), ..TIMES };
    let with = |times: Times, fault: Fault| {
        let plan = worker_plan(BotSettings::Chat(chat(ChatDialect::Lines)), BOTS);
        // The bots send nothing while they are stalled: what arrives then is what the room had for them before.
        let mut room = Room { delay_ns: 2 * SECOND_NS, ..Room::new(ChatDialect::Lines, fault) };
        books_of(play::<Chat<Lines, Wire<Blocks>>>(&plan, times, &mut room)).judged
    };
    let drops = |count: u64| if count.is_multiple_of(20) { Fate::IsDropped } else { Fate::Comes };
    let stalled = with(stall, drops);
    assert!(stalled.unread > 0 && stalled.lost > 0, "{stalled:?}");
    assert_eq!((stalled.dropped, stalled.residual), (stalled.lost + stalled.unread, 0));
    assert_eq!(with(TIMES, drops).unread, 0, "all of them were read in time");
    let forgets = |count: u64| if count.is_multiple_of(20) { Fate::IsLost } else { Fate::Comes };
    let forgotten = with(stall, forgets);
    assert!(forgotten.lost > 0, "{forgotten:?}");
    assert_eq!((forgotten.unread, forgotten.residual), (0, forgotten.lost as i64));
}

#[test]
fn second_copies_and_overtaken_messages_are_counted_as_such() {
    let books = rehearse_with(|count| if count.is_multiple_of(500) { Fate::ComesTwice } else { Fate::Comes });
    assert_eq!((books.judged.duplicated, books.judged.lost), (books.judged.owed_max / 500, 0));
    let late = |count: u64| if count.is_multiple_of(500) { Fate::ComesLate(1_500 * MS) } else { Fate::Comes };
    let books = rehearse_with(late);
    // At gaps of 0.5 to 1 s at least one newer line overtakes each, but for those that were the sender's last.
    let planted = books.judged.owed_max / 500;
    assert!((planted - 3..=planted).contains(&books.judged.reordered), "{:?}", books.judged);
    assert_eq!((books.judged.late, books.judged.lost, books.judged.duplicated), (planted, 0, 0));
}

#[test]
fn a_server_that_sends_lines_back_to_their_sender_owes_one_more_each() {
    let plan = worker_plan(BotSettings::Chat(ChatBots { echoes: true, ..chat(ChatDialect::Lines) }), BOTS);
    let settings = ChatBots::of(&plan.bots).unwrap();
    let shape = Chat::<Lines, Wire<Blocks>>::ledger(settings, &plan).unwrap();
    assert!(shape.echoes);
    // The simulated room echoes to no sender: each sender misses exactly its own lines.
    let bots = ChatBots { echoes: true, ..chat(ChatDialect::Lines) };
    let books = books_of(play_with(bots, &mut Room::new(ChatDialect::Lines, |_| Fate::Comes)));
    assert_eq!(books.judged.lost, books.sent);
}

#[test]
fn few_may_speak_to_many() {
    let bots = ChatBots { talkers: Some(2), ..chat(ChatDialect::Lines) };
    let books = books_of(play_with(bots, &mut Room::new(ChatDialect::Lines, |_| Fate::Comes)));
    assert!((70..100).contains(&books.sent), "{}", books.sent);
    assert_eq!((books.judged.delivered, books.judged.lost), (books.sent * (BOTS - 1), 0));
}

#[test]
fn poisson_gaps_keep_the_pace_and_vary() {
    let mut plan = worker_plan(BotSettings::Chat(chat(ChatDialect::Lines)), BOTS);
    plan.arrivals = Arrivals::Poisson;
    let mut room = Room::new(ChatDialect::Lines, |_| Fate::Comes);
    let played = play::<Chat<Lines, Wire<Blocks>>>(&plan, TIMES, &mut room);
    let per_second: Vec<f64> = played.seconds[6..34]
        .iter()
        .map(|second| second.flows[0][Phase::Hold as usize].offered as f64)
        .collect();
    let mean = per_second.iter().sum::<f64>() / per_second.len() as f64;
    assert!((24.0..30.0).contains(&mean), "26.7 a second are planned: {mean}");
    let variance =
        per_second.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / per_second.len() as f64;
    // Poisson: the variance is the mean. Even gaps of 0.5 to 1 s vary by less than a fifth of that.
    assert!(variance > 12.0, "{variance}");
}

#[test]
fn those_who_behave_badly_are_judged_apart() {
    let misbehave = [FaultKind::HalfOpen, FaultKind::ReconnectStorm, FaultKind::Malformed]
        .map(|kind| FaultSpec { kind, share: 0.1, period_ns: 4 * SECOND_NS });
    let bots = ChatBots { misbehave: misbehave.to_vec(), ..chat(ChatDialect::Lines) };
    let excluded = (0..BOTS).filter(|&unit| bots.fault_of(unit).is_some()).count() as u64;
    let books = books_of(play_with(bots, &mut Room::new(ChatDialect::Lines, |_| Fate::Comes)));
    assert!((5..=7).contains(&excluded), "{excluded}");
    assert_eq!((books.excluded.receivers, books.judged.receivers), (excluded, BOTS - excluded));
    let judged = books.judged;
    assert_eq!((judged.lost, judged.unowed, judged.not_caught_up), (0, 0, 0), "{judged:?}");
    assert!(
        judged.owed_min < judged.owed_max,
        "lines of those in the storm may have died with their connection"
    );
    assert!(judged.owed_min <= judged.delivered && judged.delivered <= judged.owed_max, "{judged:?}");
}

#[test]
fn a_crowd_that_is_not_let_in_says_nothing_and_owes_nothing() {
    let mut room = Room::new(ChatDialect::Lines, |_| Fate::Comes);
    room.is_shut = true;
    let played = play_with(chat(ChatDialect::Lines), &mut room);
    let (offered, sent) = played
        .seconds
        .iter()
        .flat_map(|second| &second.flows[0])
        .fold((0, 0), |sum, flow| (sum.0 + flow.offered, sum.1 + flow.sent));
    assert!(offered > 700, "people who are not let in go on wanting to speak: {offered}");
    assert_eq!(sent, 0);
    let books = books_of(played);
    assert_eq!((books.judged.owed_max, books.judged.delivered), (0, 0));
    assert_eq!(books.judged.not_caught_up, BOTS);
}

/// A room whose door asks for credentials: it turns every n-th connection away, and the others have shown some.
struct Guarded {
    room: Room,
    turns_away: fn(u64) -> bool,
    words: &'static [u8],
    connections: u64,
    turned_away: BTreeSet<u64>,
}

impl SimulatedServer for Guarded {
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        self.connections += 1;
        if (self.turns_away)(self.connections) {
            self.turned_away.insert(peer);
        } else {
            self.room.opened(peer, at_ns, says);
        }
    }

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        if self.turned_away.contains(&peer) {
            says.message(at_ns, peer, self.words);
            return says.goodbye(at_ns + MS, peer);
        }
        self.room.received(peer, message, at_ns, says);
    }

    fn closed(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        self.room.closed(peer, at_ns, says);
    }
}

#[test]
fn whoever_is_turned_away_for_its_credentials_says_so_once_in_the_servers_words_and_does_not_come_back() {
    for (dialect, words, said) in [
        (
            ChatDialect::Irc,
            b":irc 464 b :Bad password\r\nERROR :Access denied: Bad password?\r\n".as_slice(),
            ":irc 464 b :Bad password",
        ),
        (ChatDialect::Nats, b"-ERR 'Authorization Violation'\r\n", "-ERR 'Authorization Violation'"),
        (ChatDialect::Mqtt, b"\x20\x02\x00\x05", "CONNACK 5 (not authorized)"),
    ] {
        for (turns_away, refused) in [((|_| true) as fn(u64) -> bool, BOTS), (|peer| peer % 2 == 0, BOTS / 2)]
        {
            let room = Room::new(dialect, |_| Fate::Comes);
            let (connections, turned_away) = (0, BTreeSet::new());
            let mut guarded = Guarded { room, turns_away, words, connections, turned_away };
            let echoes = dialect == ChatDialect::Mqtt;
            let plan = worker_plan(BotSettings::Chat(ChatBots { echoes, ..chat(dialect) }), BOTS);
            let played = play_plan(&plan, dialect, &mut guarded);
            assert_eq!(guarded.connections, BOTS, "{dialect:?}: one attempt each");
            let names = &played.seconds[0].metric_names.errors;
            let total = |cause: usize| played.seconds.iter().map(|second| second.errors[cause]).sum::<u64>();
            let errors: BTreeMap<&str, u64> = names
                .iter()
                .enumerate()
                .map(|(cause, name)| (name.as_ref(), total(cause)))
                .filter(|(_, count)| *count > 0)
                .collect();
            let expected = [("refused by the server", refused), ("not let into the room", refused)];
            assert_eq!(errors, expected.into(), "{dialect:?}");
            let kept: Vec<String> = played
                .seconds
                .iter()
                .flat_map(|second| &second.samples)
                .map(|sample| format!("{sample:?}"))
                .collect();
            assert!(kept.iter().all(|kept| kept.contains(said)), "{kept:?}");
            assert!(kept[0].contains("; give credentials with --"), "{kept:?}");
            // Those who were let in talk to each other, and to nobody else.
            let books = books_of(played);
            assert_eq!(books.judged.lost, 0, "{:?}", books.judged);
            assert_eq!(books.judged.owed_max == 0, refused == BOTS);
        }
    }
}

#[test]
fn credentials_that_were_given_in_vain_are_to_be_checked() {
    let room = Room::new(ChatDialect::Nats, |_| Fate::Comes);
    let words = b"-ERR 'Authorization Violation'\r\n";
    let mut guarded =
        Guarded { room, turns_away: |_| true, words, connections: 0, turned_away: BTreeSet::new() };
    let plan = worker_plan(BotSettings::Chat(chat(ChatDialect::Nats)), BOTS);
    let plan = WorkerPlan { login: Some(Login::Token("hunter2".to_owned())), ..plan };
    let played = play_plan(&plan, ChatDialect::Nats, &mut guarded);
    let kept = format!("{:?}", played.seconds.iter().flat_map(|second| &second.samples).next());
    assert!(
        kept.contains("it does not take these credentials; check what was given with --token-env"),
        "{kept}"
    );
    assert!(!kept.contains("hunter2"), "{kept}");
}

/// Joins that take up to eight seconds, all of them over when the hold begins.
#[test]
fn in_every_dialect_the_books_are_exact_when_all_have_joined_before_the_hold() {
    let times = Times { hold_ns: 12 * SECOND_NS, drain_ns: 32 * SECOND_NS, generator_stall: None };
    let delays: [fn(u64) -> u64; 4] = [
        |_| 0,
        |peer| peer * 7_919 % 8_000 * MS,
        |peer| if peer == 3 { 8 * SECOND_NS } else { 0 },
        |peer| if peer == 3 { 0 } else { 8 * SECOND_NS },
    ];
    for dialect in [ChatDialect::Lines, ChatDialect::Irc, ChatDialect::Nats, ChatDialect::Mqtt] {
        for (at, join_takes_ns) in delays.into_iter().enumerate() {
            let mut room = Room { join_takes_ns, ..Room::new(dialect, |_| Fate::Comes) };
            let bots = ChatBots { echoes: dialect == ChatDialect::Mqtt, ..chat(dialect) };
            let plan = worker_plan(BotSettings::Chat(bots), BOTS);
            let played = match dialect {
                ChatDialect::Lines => play_settling::<Chat<Lines, Wire<Blocks>>>(&plan, times, &mut room),
                ChatDialect::Irc => play_settling::<Chat<Irc, Wire<Blocks>>>(&plan, times, &mut room),
                ChatDialect::Nats => play_settling::<Chat<Nats, Wire<Blocks>>>(&plan, times, &mut room),
                ChatDialect::Mqtt => play_settling::<Chat<Mqtt, Wire<Blocks>>>(&plan, times, &mut room),
            };
            let judged = books_of(played).judged;
            assert_eq!(judged.owed_min, judged.owed_max, "{dialect:?} with delays {at}");
            assert_eq!(judged.delivered, judged.owed_min, "{dialect:?} with delays {at}");
            assert!(judged.owed_min > 5_000, "{judged:?}");
        }
    }
}

/// The ramp is not held up for ever by one that never becomes a member.
#[test]
fn a_member_that_never_joins_is_waited_for_ten_seconds() {
    let times = Times { hold_ns: 20 * SECOND_NS, drain_ns: 25 * SECOND_NS, generator_stall: None };
    let mut room = Room::new(ChatDialect::Irc, |_| Fate::Comes);
    room.join_takes_ns = |peer| if peer == 3 { 3_600 * SECOND_NS } else { 0 };
    let plan = worker_plan(BotSettings::Chat(chat(ChatDialect::Irc)), BOTS);
    let played = play_settling::<Chat<Irc, Wire<Blocks>>>(&plan, times, &mut room);
    let first = played.seconds.iter().position(|second| second.flows[0].iter().any(|flow| flow.sent > 0));
    // Ten seconds for the member, two more because not all are in.
    assert_eq!(first, Some(12));
    // It is counted once, when the hold begins.
    assert_eq!(outside(&played), [(20, 1)]);
}

/// Seconds in which clients were outside when they ought to be members, and how many.
fn outside(played: &Played) -> Vec<(usize, u64)> {
    let counts = played.seconds.iter().map(|second| second.errors[7]).enumerate();
    counts.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn a_client_that_has_only_just_asked_to_join_is_not_called_outside() {
    let times = Times { hold_ns: 5 * SECOND_NS, drain_ns: 35 * SECOND_NS, generator_stall: None };
    for (join_takes_ns, expected) in [(0, 0), (1_500 * MS, 0), (3_600 * SECOND_NS, BOTS)] {
        let mut room = Room::new(ChatDialect::Lines, |_| Fate::Comes);
        room.join_takes_ns = match join_takes_ns {
            0 => |_| 0,
            1_500_000_000 => |_| 1_500 * MS,
            _ => |_| 3_600 * SECOND_NS,
        };
        let plan = worker_plan(BotSettings::Chat(chat(ChatDialect::Lines)), BOTS);
        let played = play_settling::<Chat<Lines, Wire<Blocks>>>(&plan, times, &mut room);
        assert_eq!(outside(&played).iter().map(|(_, count)| count).sum::<u64>(), expected, "{join_takes_ns}");
    }
}

#[test]
fn a_count_that_no_room_can_owe_is_not_understood_and_enters_no_books() {
    let honest = rehearse_with(|_| Fate::Comes).judged;
    for lies in [
        "* books owed 18446744073709551615 delivered 1 dropped 0 waiting 0\n",
        "* books owed 1 delivered 1 dropped 18446744073709551615 waiting 18446744073709551615\n",
        "* books owed 99999999999999999999999 delivered 1 dropped 0 waiting 0\n",
    ] {
        let mut room = Room { lies: Some(lies), ..Room::new(ChatDialect::Lines, |_| Fate::Comes) };
        let played = play_with(chat(ChatDialect::Lines), &mut room);
        let not_understood: u64 = played.seconds.iter().map(|second| second.errors[6]).sum();
        assert_eq!(not_understood, BOTS);
        let words = played.seconds.iter().flat_map(|second| &second.samples).next();
        assert_eq!(words.map(|(_, words)| words.as_str()), Some(format!("\"{}\"", lies.trim_end()).as_str()));
        let judged = books_of(played).judged;
        assert_eq!((judged.delivered, judged.lost), (honest.delivered, 0));
        assert_eq!((judged.dropped, judged.residual), (0, 0));
    }
    let mut room = Room::new(ChatDialect::Lines, |_| Fate::Comes);
    room.fault = |count| {
        if count == 7_000 { Fate::IsDroppedSay("* missed 18446744073709551615 lines\n") } else { Fate::Comes }
    };
    let played = play_with(chat(ChatDialect::Lines), &mut room);
    assert_eq!(played.seconds.iter().map(|second| second.counters[2]).sum::<u64>(), 0);
    assert_eq!(played.seconds.iter().map(|second| second.errors[6]).sum::<u64>(), 1);
    assert_eq!(books_of(played).judged.lost, 1);
}
