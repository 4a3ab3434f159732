//! LEDGER: simulated broadcasts of which everything is known, settled by the ledger and by plain sets.
//!
//! A history is a crowd, a server and ways of random length between them; losses, drops, second copies and wrong order
//! are planted. With constant membership the books must say exactly what was planted; with changing membership the
//! truth must lie within their bounds, and no receiver may be charged with a loss that it does not have.

mod history;

use std::collections::{BTreeMap, BTreeSet};

use measure::Distribution;
use measure::ledger::{Books, LedgerPart, LedgerShape, PackedPart, SEQ_END, SharedLedger, close};

use crate::{Form, Row};
use history::{Act, History, Kind};

const ID: &str = "LEDGER";

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let histories = form.of(1_200, 12_000);
    [without_changes(histories), with_members_that_come_and_go(histories)].concat()
}

/// Both distributions of latencies, which nothing here looks at more closely.
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
        margin_ns: history.margin_ns,
        echoes: history.echoes,
        clock_bound_ns: 0,
    };
    let changes = SharedLedger::default();
    let mut parts: Vec<LedgerPart> =
        (0..history.workers).map(|first| LedgerPart::new(shape(first), changes.clone())).collect();
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
                // Whether messages are counted together or kept one by one must change nothing.
                if history.seed.is_multiple_of(2) {
                    part.fold(local);
                }
            }
            Act::Missed(count) => assert!(part.missed(local, count), "{count}"),
            Act::ServerReport(told) => assert!(part.told(local, told), "{told:?}"),
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

/// The same parts after they went from one machine to another.
fn elsewhere(parts: Vec<LedgerPart>) -> Vec<LedgerPart> {
    let packed: Vec<PackedPart> = parts.into_iter().map(PackedPart::from).collect();
    let bytes = postcard::to_stdvec(&packed).expect("it can be written");
    let read: Vec<PackedPart> = postcard::from_bytes(&bytes).expect("it can be read");
    read.into_iter().map(|part| part.unpacked(u32::MAX).expect("it is whole")).collect()
}

fn settle(history: &History) -> Books {
    let mut parts = parts(history);
    // In whatever order the workers hand over.
    parts.rotate_left(history.seed as usize % history.workers as usize);
    let books = close(&parts);
    assert_eq!(books.balance(), Ok(()), "seed {}", history.seed);
    assert_eq!(close(&elsewhere(parts)), books, "seed {}: as parts of other machines", history.seed);
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

/// With constant membership, the books say exactly what was planted.
fn without_changes(histories: u64) -> Vec<Row> {
    let (mut lost, mut reordered, mut duplicated) = (0u64, 0u64, 0u64);
    for seed in 0..histories {
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
    let planted = |count: u64, what: &str| {
        let name = (ID, format!("{histories} histories with constant membership: {what}"));
        Row::new(name, "as planted, each", count, "0 differences, of at least 10,000", count > 10_000)
    };
    vec![planted(lost, "lost"), planted(reordered, "reordered"), planted(duplicated, "duplicated")]
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

/// With changing membership, the truth lies within the bounds, and no receiver is charged with a loss that it does not have.
fn with_members_that_come_and_go(histories: u64) -> Vec<Row> {
    let (mut owed_min, mut owed_max, mut residual, mut planted) = (0u64, 0u64, 0u64, 0u64);
    for seed in 0..histories {
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
    let name = |what: &str| (ID, format!("{histories} histories with changing membership: {what}"));
    let share = |part: u64, all: u64| part as f64 / all as f64;
    vec![
        Row::share(
            name("what is surely owed"),
            "within the bounds, each",
            share(owed_min, owed_max),
            (0.6, 1.0),
        ),
        Row::share(name("what is found of the lost"), "never too much", share(residual, planted), (0.5, 1.0)),
    ]
}
