//! Accounts of rooms, checked with planted messages.

use super::*;
use crate::distribution::Distribution;
use crate::ledger::{Books, LedgerShape, SharedLedger, close};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// Two workers with bots 0, 2, 4 … and 1, 3, 5 …
struct Scene {
    parts: [LedgerPart; 2],
    latencies: (Distribution, Distribution),
}

impl Scene {
    fn of(bots: u32) -> Scene {
        let shared = SharedLedger::default();
        let part = |first| {
            let shape = LedgerShape {
                senders: bots,
                locals: 0,
                first,
                step: 2,
                patience_ns: S,
                margin_ns: S,
                echoes: false,
                clock_bound_ns: 0,
            };
            LedgerPart::new(shape, shared.clone())
        };
        Scene { parts: [part(0), part(1)], latencies: (Distribution::new(), Distribution::new()) }
    }

    fn part(&mut self, bot: u32) -> (&mut LedgerPart, u32) {
        (&mut self.parts[bot as usize % 2], bot / 2)
    }

    fn joins(&mut self, room: &str, bots: &[u32], at_ns: u64) {
        for &bot in bots {
            let (part, local) = self.part(bot);
            part.joins(local, room, at_ns);
        }
    }

    fn said(&mut self, bot: u32, room: &str, seq: u64, at_ns: u64) -> Result<(), NotSaid> {
        let (part, local) = self.part(bot);
        part.said(local, room, seq, (at_ns, at_ns))
    }

    fn heard(&mut self, bot: u32, room: &str, from: u64, seq: u64, at_ns: u64) -> Heard {
        let (in_hold, otherwise) = &mut self.latencies;
        let latencies = (in_hold, otherwise);
        let reading = Reading { at_ns, lag_ns: 0, hold_ns: (0, 100 * S), latencies };
        self.parts[bot as usize % 2].heard(bot / 2, room, (from, seq), reading)
    }

    fn books(&mut self) -> Books {
        self.parts.iter_mut().for_each(LedgerPart::rooms_have_caught_up);
        let books = close(&self.parts);
        books.balance().unwrap();
        books
    }
}

#[test]
fn each_room_has_books_of_its_own_and_losses_doubles_and_orders_are_told_apart() {
    let mut scene = Scene::of(6);
    scene.joins("red", &[0, 1, 2], 0);
    scene.joins("blue", &[2, 3], 0);
    for seq in 0..10 {
        // A bot that is in neither room speaks to both.
        for (bot, room) in [(0, "red"), (3, "blue"), (5, "red"), (5, "blue")] {
            scene.said(bot, room, seq, (2 + seq) * S).unwrap();
        }
    }
    assert!(!scene.parts[0].rooms_owe_nothing());
    for seq in [0, 1, 2, 3, 4, 5, 6, 8, 7, 9] {
        let at_ns = (2 + seq) * S + 3 * MS;
        assert_eq!(scene.heard(0, "red", 0, seq, at_ns), Heard::Own);
        for (bot, room, from) in [(1, "red", 0), (2, "red", 0), (2, "blue", 3), (0, "red", 5), (1, "red", 5)]
        {
            if (bot, room, seq) != (2, "red", 4) {
                assert_eq!(scene.heard(bot, room, from, seq, at_ns), Heard::New, "{bot} {room} {seq}");
            }
        }
        for (bot, room) in [(2, "red"), (2, "blue"), (3, "blue")] {
            assert_eq!(scene.heard(bot, room, 5, seq, at_ns), Heard::New);
        }
    }
    assert_eq!(scene.heard(3, "blue", 5, 9, 12 * S), Heard::Again);
    assert_eq!(scene.heard(3, "red", 5, 9, 12 * S), Heard::NotAMember);
    assert!(!scene.parts[0].rooms_owe_nothing(), "one is missing");
    let books = scene.books();
    let sum = books.judged;
    assert_eq!((sum.receivers, books.sent, sum.owed_min, sum.owed_max), (4, 40, 80, 80));
    assert_eq!((sum.delivered, sum.lost, sum.unowed, sum.duplicated), (79, 1, 0, 1));
    // Number 8 overtook 7 for each of the eight pairs.
    assert_eq!((sum.reordered, sum.late, sum.residual, books.unknown_messages), (8, 0, 1, 0));
    assert_eq!((books.worst[0].sender, books.worst[0].receiver), (0, 2));
    let of_two = &books.receivers.iter().find(|receiver| receiver.receiver == 2).unwrap();
    assert_eq!((of_two.sum.owed_min, of_two.sum.lost, of_two.latency_max_ns), (40, 1, Some(3 * MS)));
    assert_eq!(scene.latencies.0.count(), 79);
}

#[test]
fn what_leaves_around_the_ends_of_a_membership_may_or_may_not_be_owed() {
    // When the message leaves, and what it is surely and possibly owed: two others are members from 10 s on, of which bot 2
    // leaves at 20 s.
    for (at_s, owed) in
        [(8, (0, 0)), (9, (0, 2)), (10, (0, 2)), (11, (2, 2)), (19, (2, 2)), (20, (1, 2)), (22, (1, 1))]
    {
        let mut scene = Scene::of(4);
        scene.joins("room", &[1, 2], 10 * S);
        scene.said(0, "room", 0, at_s * S).unwrap();
        let (part, local) = scene.part(2);
        part.leaves(local, "room", 20 * S);
        let sum = scene.books().judged;
        assert_eq!((sum.owed_min, sum.owed_max), owed, "{at_s}");
    }
}

#[test]
fn a_bot_that_is_cut_off_is_owed_nothing_surely_and_what_it_just_sent_may_be_lost() {
    let mut scene = Scene::of(2);
    scene.joins("room", &[0, 1], 0);
    for (seq, at_s) in [(0, 5), (1, 10), (2, 12)] {
        scene.said(0, "room", seq, at_s * S).unwrap();
        scene.said(1, "room", seq, at_s * S).unwrap();
    }
    let (part, local) = scene.part(0);
    part.cut_off(local, 10 * S + 1);
    // It reconnects by itself, and receives the last one without having joined again.
    assert_eq!(scene.heard(0, "room", 1, 2, 13 * S), Heard::New);
    let books = scene.books();
    let of = |bot: usize| (books.receivers[bot].sum.owed_min, books.receivers[bot].sum.owed_max);
    assert_eq!((of(0), of(1)), ((1, 3), (2, 3)));
    assert_eq!(books.judged.unowed, 0);
}

#[test]
fn numbers_ascend_and_may_have_gaps_that_are_owed_to_nobody() {
    let mut scene = Scene::of(2);
    scene.joins("room", &[1], 0);
    for seq in [3, 4, 700] {
        scene.said(0, "room", seq, 5 * S).unwrap();
    }
    assert_eq!(scene.said(0, "room", 700, 5 * S), Err(NotSaid::Used(700, 700)));
    assert_eq!(scene.said(0, "room", 2_000_000, 5 * S), Err(NotSaid::TooFar(2_000_000, 700)));
    for seq in [3, 700] {
        assert_eq!(scene.heard(1, "room", 0, seq, 6 * S), Heard::New);
    }
    let sum = scene.books().judged;
    assert_eq!((sum.owed_min, sum.owed_max, sum.delivered, sum.lost), (3, 3, 2, 1));
}

#[test]
fn messages_that_nobody_sent_are_unknown_and_those_of_which_it_is_said_later_are_not() {
    let mut scene = Scene::of(3);
    scene.joins("room", &[1], 0);
    assert_eq!(scene.heard(1, "room", 0, 0, 5 * S), Heard::New);
    scene.said(0, "room", 0, 5 * S).unwrap();
    assert_eq!(scene.books().unknown_messages, 0);
    for (from, seq, at_once) in
        [(0, 9, Heard::New), (2, 0, Heard::New), (7, 0, Heard::Unknown), (0, 1 << 40, Heard::Unknown)]
    {
        let mut scene = Scene::of(3);
        scene.joins("room", &[1], 0);
        scene.said(0, "room", 0, 5 * S).unwrap();
        assert_eq!(scene.heard(1, "room", from, seq, 5 * S), at_once, "{from} {seq}");
        let books = scene.books();
        assert_eq!((books.unknown_messages, books.judged.owed_min), (1, 1), "{from} {seq}");
    }
}

#[test]
fn nothing_is_owed_once_everything_came_and_a_member_that_left_leaves_that_open() {
    for leaves in [false, true] {
        let mut scene = Scene::of(3);
        scene.joins("room", &[0, 1, 2], 0);
        scene.said(0, "room", 0, 5 * S).unwrap();
        if leaves {
            let (part, local) = scene.part(2);
            part.cut_off(local, 5 * S);
        }
        assert_eq!(scene.heard(1, "room", 0, 0, 5 * S), Heard::New);
        assert!(!scene.parts[0].rooms_owe_nothing());
        if !leaves {
            assert_eq!(scene.heard(2, "room", 0, 0, 5 * S), Heard::New);
        }
        assert_eq!(scene.parts[0].rooms_owe_nothing(), !leaves);
    }
}
