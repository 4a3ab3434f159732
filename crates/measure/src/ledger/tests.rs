//! The ledger's edge cases, one by one. Simulated broadcasts with planted losses are the oracle LEDGER,
//! `truth/src/ledger.rs`.

use super::part::AHEAD_MOST_NS;
use super::*;
use crate::distribution::Distribution;

/// Both distributions of latencies, which these tests do not look at more closely.
fn latencies() -> (Distribution, Distribution) {
    (Distribution::new(), Distribution::new())
}

/// A room of `crowd` members, each of which sent `lines`; the server drops `drop`.
fn room(crowd: u32, lines: u32, drop: (u32, u32, u32), told: Option<ServerReport>) -> Books {
    let shape = |first| LedgerShape {
        senders: crowd,
        locals: crowd / 2,
        first,
        step: 2,
        patience_ns: 1_000_000,
        margin_ns: 1_000_000,
        echoes: true,
        clock_bound_ns: 0,
    };
    let changes = SharedLedger::default();
    let mut parts = [0, 1].map(|first| LedgerPart::new(shape(first), changes.clone()));
    let (mut in_hold, mut otherwise) = latencies();
    for bot in 0..crowd {
        let (part, local) = (&mut parts[bot as usize % 2], bot / 2);
        part.asked(local, 0);
        part.joined(local, 100);
        for seq in 0..lines {
            assert_eq!(part.next_seq(local), Some(seq));
            part.departed(local, seq, 50_000 + u64::from(seq));
        }
        let mut book = part.deliveries(local, 60_000, (0, 100_000), (&mut in_hold, &mut otherwise));
        for seq in 0..lines {
            for sender in 0..crowd {
                if (sender, bot, seq) != drop {
                    book.received(sender, seq, 50_000);
                }
            }
        }
        drop_book(book);
        if let Some(told) = told {
            let dropped = if bot == drop.1 { told.dropped } else { 0 };
            part.told(local, ServerReport { dropped, ..told });
        }
        part.caught_up(local);
    }
    close(&parts)
}

/// Books a block when it goes; the name `drop` is taken by what the server does.
fn drop_book(book: Deliveries<'_>) {
    std::mem::drop(book);
}

#[test]
fn one_drop_in_a_million_deliveries_is_a_residual_of_exactly_one() {
    let untold = room(100, 100, (17, 42, 63), None);
    let found = (untold.judged.owed(), untold.judged.delivered, untold.judged.lost, untold.judged.residual);
    assert_eq!(found, (1_000_000, 999_999, 1, 1));
    let pair = PairBooks { sender: 17, receiver: 42, owed_min: 100, owed_max: 100, delivered: 99, lost: 1 };
    assert_eq!(untold.worst, [pair]);

    // A server that reports the loss accounts for it; one that counts the message as delivered does not.
    let told = ServerReport { owed: 10_000, delivered: 9_999, dropped: 1, in_flight: 0 };
    let known = room(100, 100, (17, 42, 63), Some(told));
    assert_eq!((known.judged.lost, known.judged.dropped, known.judged.residual), (1, 1, 0));
    let denied = room(100, 100, (17, 42, 63), Some(ServerReport { dropped: 0, delivered: 10_000, ..told }));
    assert_eq!((denied.judged.lost, denied.judged.residual, denied.drops_are_told), (1, 1, true));
}

#[test]
fn drops_that_a_server_invents_are_a_negative_residual() {
    let told = ServerReport { owed: 10_000, delivered: 9_998, dropped: 2, in_flight: 0 };
    let books = room(100, 100, (17, 42, 63), Some(told));
    assert_eq!((books.judged.lost, books.judged.residual), (1, -1));
}

#[test]
fn what_was_told_of_a_former_connection_does_not_speak_for_the_present_one() {
    let shape = LedgerShape { patience_ns: 1_000, margin_ns: 0, ..LedgerShape::alone(1, 1) };
    let mut part = LedgerPart::new(shape, SharedLedger::default());
    part.asked(0, 0);
    part.missed(0, 3);
    part.told(0, ServerReport { owed: 9, delivered: 6, dropped: 3, in_flight: 0 });
    part.asked(0, 1_000_000);
    part.missed(0, 2);
    assert_eq!(close(&[part.clone()]).judged.dropped, 5);
    part.told(0, ServerReport { owed: 5, delivered: 1, dropped: 4, in_flight: 0 });
    assert_eq!(
        close(&[part]).judged.dropped,
        7,
        "three before, four on this connection, two of which were noticed"
    );
}

#[test]
fn a_number_beyond_the_senders_last_is_a_stranger() {
    let shape = LedgerShape { patience_ns: 1_000, margin_ns: 0, ..LedgerShape::alone(1, 1) };
    let mut part = LedgerPart::new(shape, SharedLedger::default());
    part.asked(0, 0);
    part.joined(0, 10);
    for seq in 0..2 {
        part.next_seq(0);
        part.departed(0, seq, 1_000_000);
    }
    let (mut in_hold, mut otherwise) = latencies();
    // Two were sent and two arrived, but the second was neither of them.
    part.deliveries(0, 2_000_000, (0, 1), (&mut in_hold, &mut otherwise)).received(0, 0, 0);
    assert_eq!(close(&[part.clone()]).unknown_messages, 0);
    part.deliveries(0, 2_000_000, (0, 1), (&mut in_hold, &mut otherwise)).received(0, 2, 0);
    assert_eq!(close(&[part]).unknown_messages, 1);
}

#[test]
fn a_message_that_came_before_it_was_planned_is_none_that_was_sent() {
    let delivered = |planned_ns: u64| {
        let shape = LedgerShape { patience_ns: 1_000, margin_ns: 0, ..LedgerShape::alone(1, 1) };
        let mut part = LedgerPart::new(shape, SharedLedger::default());
        part.asked(0, 0);
        part.joined(0, 10);
        part.next_seq(0);
        part.departed(0, 0, 1_000_000);
        let (mut in_hold, mut otherwise) = latencies();
        part.deliveries(0, 2_000_000, (0, 1), (&mut in_hold, &mut otherwise)).received(0, 0, planned_ns);
        let books = close(&[part]);
        (books.judged.delivered, books.unknown_messages)
    };
    assert_eq!(delivered(2_000_000), (1, 0));
    assert_eq!(delivered(2_000_000 + AHEAD_MOST_NS), (1, 0));
    for ahead_ns in [AHEAD_MOST_NS + 1, 5_000_000_000, 2 * 86_400_000_000_000] {
        assert_eq!(delivered(2_000_000 + ahead_ns), (0, 1), "{ahead_ns}");
    }
}

#[test]
fn a_line_that_comes_back_to_its_sender_unasked_is_one_that_nobody_owed() {
    let shape =
        LedgerShape { patience_ns: 1_000, margin_ns: 1_000_000, echoes: false, ..LedgerShape::alone(2, 2) };
    let mut part = LedgerPart::new(shape, SharedLedger::default());
    let (mut in_hold, mut otherwise) = latencies();
    for local in 0..2 {
        part.asked(local, 0);
        part.joined(local, 10);
    }
    part.next_seq(0);
    part.departed(0, 0, 1_000_000);
    for local in 0..2 {
        let latency = (&mut in_hold, &mut otherwise);
        part.deliveries(local, 1_500_000, (0, u64::MAX), latency).received(0, 0, 1_000_000);
        part.caught_up(local);
    }
    let books = close(&[part]);
    assert_eq!((books.judged.owed(), books.judged.delivered, books.judged.unowed), (1, 2, 1));
    assert_eq!((books.worst[0].sender, books.worst[0].receiver), (0, 0));
}

#[test]
fn the_latency_of_those_that_are_judged_apart_is_not_the_holds() {
    let shape = LedgerShape { patience_ns: 1_000, margin_ns: 0, ..LedgerShape::alone(1, 2) };
    let mut part = LedgerPart::new(shape, SharedLedger::default());
    part.set_apart(1);
    let (mut in_hold, mut otherwise) = latencies();
    for local in 0..2 {
        let latency = (&mut in_hold, &mut otherwise);
        part.deliveries(local, 500 + u64::from(local) * 9_000_000, (0, 1_000), latency).received(0, 0, 100);
    }
    assert_eq!((in_hold.count(), otherwise.count()), (1, 1));
    assert!(in_hold.max_ns().unwrap() < 1_000);
}

#[test]
fn a_pair_takes_eight_bytes() {
    for (senders, locals) in [(4_096, 2_048), (1, 1), (1_000, 333)] {
        let shape = LedgerShape::alone(senders, locals);
        let part = LedgerPart::new(shape, SharedLedger::default());
        let bytes = part.cells.capacity() * std::mem::size_of_val(&part.cells[0]);
        assert_eq!(bytes, 8 * senders as usize * locals as usize);
        assert_eq!(part.holes.capacity(), 0, "holes take memory only where something was passed");
    }
}

/// One sender, and a member who comes at `joins_ns` if at all; a message every 400 ms for as many seconds.
fn long_talk(seconds: u64, joins_ns: &[u64]) -> (LedgerPart, Books) {
    let shape = LedgerShape { margin_ns: 1_000_000_000, echoes: false, ..LedgerShape::alone(1, 2) };
    let mut part = LedgerPart::new(shape, SharedLedger::default());
    part.asked(0, 0);
    part.joined(0, 10);
    let mut joins = joins_ns.iter().peekable();
    for seq in 0..(seconds * 5 / 2) as u32 {
        let at_ns = 5_000_000_000 + u64::from(seq) * 400_000_000;
        if let Some(&join_ns) = joins.next_if(|&&join_ns| join_ns <= at_ns) {
            part.asked(1, join_ns);
            part.joined(1, join_ns);
        }
        assert_eq!(part.next_seq(0), Some(seq));
        part.departed(0, seq, at_ns);
    }
    let books = close(&[part.clone()]);
    (part, books)
}

#[test]
fn what_a_sender_takes_does_not_grow_with_the_length_of_the_talk() {
    let bytes = |seconds| long_talk(seconds, &[]).0.rows[0].departures.bytes();
    assert!(bytes(1_000) <= bytes(200) + 64, "{} and {}", bytes(200), bytes(1_000));
    assert!(bytes(100_000) <= bytes(1_000) + 64, "{} and {}", bytes(1_000), bytes(100_000));
}

#[test]
fn who_comes_after_hours_is_owed_what_was_said_from_then_on() {
    let hour_ns = 3_600_000_000_000;
    let (_, books) = long_talk(10_000, &[2 * hour_ns]);
    // 25,000 lines from the fifth second on, 17,988 of them before the request; three of these left within the margin.
    assert_eq!((books.sent, books.judged.owed_min, books.judged.owed_max), (25_000, 7_012, 7_015));
}

#[test]
fn a_change_that_is_told_too_late_parts_the_bounds_and_accuses_nobody() {
    let (mut part, _) = long_talk(1_000, &[]);
    // Of a worker that was stalled for nearly all of the talk.
    part.asked(1, 500_000_000_000);
    part.joined(1, 500_000_000_000);
    let (mut in_hold, mut otherwise) = latencies();
    let mut book = part.deliveries(1, 1_100_000_000_000, (0, 1), (&mut in_hold, &mut otherwise));
    (1_238..2_500).for_each(|seq| book.received(0, seq, 0));
    drop_book(book);
    let books = close(&[part]);
    let one = &books.receivers[1].sum;
    assert!(one.owed_min < 1_262 && one.owed_max > 1_262, "{one:?}");
    assert_eq!((one.delivered, one.lost, one.unowed, one.residual), (1_262, 0, 0, 0), "{one:?}");
}

/// One sender with ten lines to a receiver that reads the first `reads` of them, each `lag_ns` after it was there; then `missed`
/// are said to be dropped, and it catches up, or its worker stops reading so long after it learnt what there is to read.
fn read_late(reads: u32, lag_ns: u64, missed: u64, end: Result<(), u64>) -> SumOfBooks {
    let shape = LedgerShape { patience_ns: 1_000, margin_ns: 0, echoes: false, ..LedgerShape::alone(1, 2) };
    let mut part = LedgerPart::new(shape, SharedLedger::default());
    for bot in 0..2 {
        part.asked(bot, 0);
        part.joined(bot, 10);
    }
    for seq in 0..10 {
        part.next_seq(0);
        part.departed(0, seq, 1_000_000);
    }
    let (mut in_hold, mut otherwise) = latencies();
    let at_ns = 2_000_000 + lag_ns;
    part.read_after(1, at_ns, lag_ns);
    let mut book = part.deliveries(1, at_ns, (0, 1), (&mut in_hold, &mut otherwise));
    // Not the first: it was lost, whoever read.
    (1..=reads).for_each(|seq| book.received(0, seq, 0));
    drop_book(book);
    part.missed(1, missed);
    match end {
        Ok(()) => part.caught_up(1),
        Err(stops_ns) => part.reads_no_more(stops_ns),
    }
    let books = close(&[part]);
    books.balance().unwrap();
    let sum = books.receivers[1].sum;
    assert_eq!(sum.owed(), 10);
    sum
}

#[test]
fn what_the_bots_had_no_time_to_read_is_not_lost_and_what_was_read_in_time_is() {
    const SECOND_NS: u64 = 1_000_000_000;
    let check = |sum: SumOfBooks, expected: (u64, u64, i64)| {
        assert_eq!((sum.lost, sum.unread, sum.residual), expected, "{sum:?}");
    };
    // Unread at the end: those beyond the newest; the one before it is lost.
    check(read_late(4, SECOND_NS, 0, Err(0)), (1, 5, 1));
    // The same for a bot that reads in time: the server has not sent it.
    check(read_late(4, 1_000, 0, Err(0)), (6, 0, 6));
    // A worker that is late at its end may not have got to this bot.
    check(read_late(4, 1_000, 0, Err(SECOND_NS)), (1, 5, 1));
    // A bot that has read to the end has nothing unread.
    check(read_late(4, SECOND_NS, 0, Ok(())), (6, 0, 6));
    // Dropped while nobody read; the one that the server does not report is lost.
    check(read_late(4, SECOND_NS, 5, Ok(())), (1, 5, 1));
    check(read_late(4, 1_000, 5, Ok(())), (6, 0, 1));
    // A server that invents drops cannot make more unread than is missing.
    check(read_late(9, SECOND_NS, 7, Ok(())), (0, 1, -6));
}

#[test]
fn a_drop_long_after_a_late_read_is_the_servers() {
    let shape = LedgerShape::alone(1, 1);
    let lost = |later_ns: u64| {
        let mut part = LedgerPart::new(shape, SharedLedger::default());
        part.asked(0, 0);
        part.joined(0, 0);
        part.next_seq(0);
        part.departed(0, 0, 1_000_000);
        part.read_after(0, 2_000_000_000, 1_000_000_000);
        part.read_after(0, 2_000_000_000 + later_ns, 0);
        part.missed(0, 1);
        part.caught_up(0);
        close(&[part]).judged.lost
    };
    assert_eq!((lost(500_000_000), lost(1_500_000_000)), (0, 1));
}
