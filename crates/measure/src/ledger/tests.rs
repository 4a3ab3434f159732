//! The ledger's odd cases, one by one. Simulated broadcasts with planted losses are the oracle LEDGER, `truth/src/ledger.rs`.

use super::*;
use crate::distribution::Distribution;

/// Both distributions of latencies, which these tests do not look at more closely.
fn latencies() -> (Distribution, Distribution) {
    (Distribution::new(), Distribution::new())
}

/// A room of `crowd`, each of which said `lines`; `drop` is dropped by the server.
fn room(crowd: u32, lines: u32, drop: (u32, u32, u32), told: Option<Told>) -> Books {
    let shape = |first| LedgerShape {
        senders: crowd,
        locals: crowd / 2,
        first,
        step: 2,
        patience_ns: 1_000_000,
        echoes: true,
    };
    let mut parts = [LedgerPart::new(shape(0)), LedgerPart::new(shape(1))];
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
            part.told(local, Told { dropped, ..told });
        }
        part.caught_up(local);
    }
    close(&parts, 1_000_000)
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

    // A server whose own books know of it accounts for it; one that counts it as delivered does not.
    let told = Told { owed: 10_000, delivered: 9_999, dropped: 1, in_flight: 0 };
    let known = room(100, 100, (17, 42, 63), Some(told));
    assert_eq!((known.judged.lost, known.judged.dropped, known.judged.residual), (1, 1, 0));
    let denied = room(100, 100, (17, 42, 63), Some(Told { dropped: 0, delivered: 10_000, ..told }));
    assert_eq!((denied.judged.lost, denied.judged.residual, denied.drops_are_told), (1, 1, true));
}

#[test]
fn drops_that_a_server_invents_are_a_negative_residual() {
    let told = Told { owed: 10_000, delivered: 9_998, dropped: 2, in_flight: 0 };
    let books = room(100, 100, (17, 42, 63), Some(told));
    assert_eq!((books.judged.lost, books.judged.residual), (1, -1));
}

#[test]
fn what_was_told_of_a_former_connection_does_not_speak_for_the_present_one() {
    let shape = LedgerShape { senders: 1, locals: 1, first: 0, step: 1, patience_ns: 1_000, echoes: true };
    let mut part = LedgerPart::new(shape);
    part.asked(0, 0);
    part.missed(0, 3);
    part.told(0, Told { owed: 9, delivered: 6, dropped: 3, in_flight: 0 });
    part.asked(0, 1_000_000);
    part.missed(0, 2);
    assert_eq!(close(&[part.clone()], 0).judged.dropped, 5);
    part.told(0, Told { owed: 5, delivered: 1, dropped: 4, in_flight: 0 });
    assert_eq!(
        close(&[part], 0).judged.dropped,
        7,
        "three before, four on this connection, two of which were noticed"
    );
}

#[test]
fn a_number_beyond_the_senders_last_is_a_stranger() {
    let shape = LedgerShape { senders: 1, locals: 1, first: 0, step: 1, patience_ns: 1_000, echoes: true };
    let mut part = LedgerPart::new(shape);
    part.asked(0, 0);
    part.joined(0, 10);
    for seq in 0..2 {
        part.next_seq(0);
        part.departed(0, seq, 1_000_000);
    }
    let (mut in_hold, mut otherwise) = latencies();
    // Two were sent and two came, but the second was none of them.
    part.deliveries(0, 2_000_000, (0, 1), (&mut in_hold, &mut otherwise)).received(0, 0, 0);
    assert_eq!(close(&[part.clone()], 0).unknown_messages, 0);
    part.deliveries(0, 2_000_000, (0, 1), (&mut in_hold, &mut otherwise)).received(0, 2, 0);
    assert_eq!(close(&[part], 0).unknown_messages, 1);
}

#[test]
fn a_line_that_comes_back_to_its_sender_unasked_is_one_that_nobody_owed() {
    let shape = LedgerShape { senders: 2, locals: 2, first: 0, step: 1, patience_ns: 1_000, echoes: false };
    let mut part = LedgerPart::new(shape);
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
    let books = close(&[part], 1_000_000);
    assert_eq!((books.judged.owed(), books.judged.delivered, books.judged.unowed), (1, 2, 1));
    assert_eq!((books.worst[0].sender, books.worst[0].receiver), (0, 0));
}

#[test]
fn the_latency_of_those_that_are_judged_apart_is_not_the_holds() {
    let shape = LedgerShape { senders: 1, locals: 2, first: 0, step: 1, patience_ns: 1_000, echoes: true };
    let mut part = LedgerPart::new(shape);
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
        let shape = LedgerShape { senders, locals, first: 0, step: 1, patience_ns: 1, echoes: true };
        let part = LedgerPart::new(shape);
        let bytes = part.cells.capacity() * std::mem::size_of_val(&part.cells[0]);
        assert_eq!(bytes, 8 * senders as usize * locals as usize);
        assert_eq!(part.holes.capacity(), 0, "holes take memory only where something was passed");
    }
}
