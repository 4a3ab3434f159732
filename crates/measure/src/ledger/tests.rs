//! Oracle LEDGER: simulated broadcasts of which everything is known, settled by the ledger and by plain sets.
//!
//! A history is a crowd, a server and ways of random length between them; losses, drops, second copies and wrong order
//! are planted. Where no member comes or goes the books must say exactly what was planted; where one does, the truth
//! must lie within their bounds, and nothing may be laid to anybody who did nothing.

mod history;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::distribution::Distribution;
use history::{Act, History, Kind};

/// Both distributions of latencies, which these tests do not look at more closely.
fn latencies() -> (Distribution, Distribution) {
    (Distribution::new(), Distribution::new())
}

/// The ledger's parts after everything that happened, each worker's in the order in which it happened.
fn parts(history: &History) -> Vec<LedgerPart> {
    let shape = |first: u32| LedgerShape {
        senders: history.senders,
        locals: (history.crowd - first).div_ceil(history.workers),
        first,
        step: history.workers,
        patience_ns: history.patience_ns,
        echoes: history.echoes,
    };
    let mut parts: Vec<LedgerPart> =
        (0..history.workers).map(|first| LedgerPart::new(shape(first))).collect();
    let (mut in_hold, mut otherwise) = latencies();
    for &(at_ns, bot, act) in &history.acts {
        let (part, local) = (&mut parts[(bot % history.workers) as usize], bot / history.workers);
        match act {
            Act::Apart => part.set_apart(local),
            Act::Asked => part.asked(local, at_ns),
            Act::Joined => part.joined(local, at_ns),
            Act::Leaving => part.leaving(local, at_ns),
            Act::Left => part.left(local, at_ns),
            Act::Sent { departs } => {
                let seq = part.next_seq(local).unwrap();
                if departs {
                    part.departed(local, seq, at_ns);
                }
            }
            Act::Missed(count) => assert!(part.missed(local, count), "{count}"),
            Act::Told(told) => assert!(part.told(local, told), "{told:?}"),
            Act::CaughtUp => part.caught_up(local),
            Act::Read { sender, seq, planned_ns } => part
                .deliveries(local, at_ns, (0, u64::MAX), (&mut in_hold, &mut otherwise))
                .received(sender, seq, planned_ns),
        }
    }
    parts
}

/// What plain sets say of one receiver.
#[derive(Default)]
struct Sets {
    /// of each sender
    seen: BTreeMap<u32, BTreeSet<u32>>,
    duplicated: u64,
    reordered: u64,
    late: u64,
}

fn sets(history: &History) -> Vec<Sets> {
    let mut all: Vec<Sets> = (0..history.crowd).map(|_| Sets::default()).collect();
    for &(at_ns, bot, act) in &history.acts {
        let Act::Read { sender, seq, planned_ns } = act else { continue };
        if sender >= history.senders || seq >= SEQ_END {
            continue;
        }
        let sets = &mut all[bot as usize];
        let seen = sets.seen.entry(sender).or_default();
        let newest = seen.last().copied();
        if !seen.insert(seq) {
            sets.duplicated += 1;
            continue;
        }
        sets.reordered += u64::from(newest.is_some_and(|newest| seq < newest));
        sets.late += u64::from(at_ns.saturating_sub(planned_ns) > history.patience_ns);
    }
    all
}

fn settle(history: &History) -> Books {
    let mut parts = parts(history);
    // In whatever order the workers hand over.
    parts.rotate_left(history.seed as usize % history.workers as usize);
    let books = close(&parts, history.margin_ns);
    assert_eq!(books.balance(), Ok(()), "seed {}", history.seed);
    books
}

/// What must hold whether members came and went or not.
fn check_common(history: &History, books: &Books) {
    let seed = history.seed;
    assert_eq!(books.sent, history.departed, "seed {seed}");
    assert_eq!(books.unknown_messages, history.unknown_messages, "seed {seed}");
    assert_eq!(books.drops_are_told, history.is_told(), "seed {seed}");
    assert_eq!(books.receivers.len() as u32, history.crowd, "seed {seed}");
    for (receiver, sets) in books.receivers.iter().zip(sets(history)) {
        let (sum, who) = (&receiver.sum, format!("seed {seed}, receiver {}", receiver.receiver));
        let came: u64 = sets.seen.values().map(|seen| seen.len() as u64).sum();
        assert_eq!(
            (sum.delivered, sum.duplicated, sum.reordered, sum.late, sum.unowed),
            (came, sets.duplicated, sets.reordered, sets.late, 0),
            "{who}"
        );
        assert_eq!(receiver.is_excluded, history.is_excluded(receiver.receiver), "{who}");
    }
}

#[test]
fn where_nobody_comes_or_goes_the_books_say_exactly_what_was_planted() {
    let (mut lost, mut reordered, mut duplicated) = (0, 0, 0);
    for seed in 0..1_200 {
        let history = History::new(seed, Kind::Static);
        let (books, seen) = (settle(&history), sets(&history));
        check_common(&history, &books);
        for receiver in &books.receivers {
            let number = receiver.receiver;
            let (truth, sum) = (&history.truth[number as usize], &receiver.sum);
            let who = format!("seed {seed}, receiver {number}");
            let owed: u64 = truth.owed.values().map(|owed| owed.len() as u64).sum();
            assert_eq!((sum.owed_min, sum.owed_max, sum.owed()), (owed, owed, owed), "{who}");
            assert_eq!(sum.lost, owed - sum.delivered, "{who}");
            let (dropped, waiting) = if history.tells { (truth.dropped, truth.waiting) } else { (0, 0) };
            assert_eq!((sum.dropped, sum.in_flight), (dropped, waiting), "{who}");
            let untold = truth.dropped + truth.waiting - dropped - waiting;
            assert_eq!(sum.residual, (truth.silently_lost + untold) as i64, "{who}");
            assert_eq!(sum.not_caught_up, u64::from(truth.is_stalled), "{who}");
        }
        check_worst_pairs(&history, &books, &seen);
        lost += books.judged.lost;
        reordered += books.judged.reordered;
        duplicated += books.judged.duplicated;
    }
    assert!(lost > 10_000 && reordered > 10_000 && duplicated > 10_000, "{lost} {reordered} {duplicated}");
}

/// The pairs that lost, one by one.
fn check_worst_pairs(history: &History, books: &Books, seen: &[Sets]) {
    let mut losing = BTreeMap::new();
    for (receiver, truth) in (0..).zip(&history.truth) {
        for (&sender, owed) in &truth.owed {
            let came = seen[receiver as usize].seen.get(&sender).map_or(0, BTreeSet::len);
            if came < owed.len() {
                losing.insert((sender, receiver), (owed.len() as u64, came as u64));
            }
        }
    }
    assert_eq!(books.worst.len(), losing.len().min(100), "seed {}", history.seed);
    for pair in &books.worst {
        let (owed, came) = losing[&(pair.sender, pair.receiver)];
        let found = (pair.owed_min, pair.owed_max, pair.delivered, pair.lost);
        assert_eq!(found, (owed, owed, came, owed - came), "seed {}: {pair:?}", history.seed);
    }
    assert!(books.worst.is_sorted_by_key(|pair| std::cmp::Reverse(pair.lost)), "seed {}", history.seed);
}

#[test]
fn where_some_come_and_go_the_truth_lies_within_the_bounds_and_nobody_is_accused_wrongly() {
    let (mut owed_min, mut owed_max, mut residual, mut planted) = (0, 0, 0, 0);
    for seed in 0..1_200 {
        let history = History::new(seed, Kind::Churn);
        let books = settle(&history);
        check_common(&history, &books);
        for receiver in &books.receivers {
            let number = receiver.receiver;
            let (truth, sum) = (&history.truth[number as usize], &receiver.sum);
            let who = format!("seed {seed}, receiver {number}: {sum:?}");
            let owed: u64 = truth.owed.values().map(|owed| owed.len() as u64).sum();
            assert!(sum.owed_min <= owed && owed <= sum.owed_max, "{owed} owed, {who}");
            assert!(sum.owed_max <= history.said_to(number), "a line counts once: {who}");
            assert!(sum.lost <= owed - sum.delivered, "{owed} owed, {who}");
            assert_eq!(sum.not_caught_up, u64::from(history.never_caught_up(number)), "{who}");
            let unaccounted =
                truth.silently_lost + if history.tells { 0 } else { truth.dropped + truth.waiting };
            assert!(sum.residual >= 0 && sum.residual as u64 <= unaccounted, "{unaccounted}, {who}");
            if history.is_always_there(number) {
                let unsure = history.unsure_of_their_sender(number);
                assert!(sum.owed_max - sum.owed_min <= unsure, "{unsure} were unsure, {who}");
                let accused_least = unaccounted.saturating_sub(unsure);
                assert!(sum.residual as u64 >= accused_least, "{accused_least}, {who}");
            }
            residual += sum.residual as u64;
            planted += unaccounted;
        }
        owed_min += books.judged.owed_min + books.excluded.owed_min;
        owed_max += books.judged.owed_max + books.excluded.owed_max;
    }
    // The bounds are of use, though lives here last few margins: most of what was owed is known to be, and most of what
    // was lost is found.
    assert!(owed_min * 10 > owed_max * 6, "{owed_min} of {owed_max}");
    assert!(residual * 10 > planted * 5, "{residual} of {planted}");
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
