//! Settling: all workers' parts become the books of the trial. Pure.
//!
//! A message is surely owed to a receiver when it left after the server had confirmed the membership, and at least
//! `margin_ns` before either end of it was cut; it is possibly owed when it left at most `margin_ns` before the wish to
//! join did. The margin stands for the way to the server, its queue and the way back, which cannot be seen from outside.
//! Where every membership began before the first message and lasted beyond the last, both counts are the number of
//! messages sent, and settling costs one subtraction per pair.

use super::books::{Books, PairBooks, ReceiverBooks, SumOfBooks};
use super::cell;
use super::part::{DEPARTURE_UNIT_NS, LedgerPart, NEVER, Row, Span, departure_ns};

/// As many pairs are kept.
const WORST: usize = 100;

/// A sender's messages in the order in which they left.
#[derive(Default)]
struct Sent {
    /// those that surely reached the server, ns
    certain: Vec<u64>,
    /// those that may have, the certain ones included
    possible: Vec<u64>,
    /// numbers whose message the kernel did not take whole: whether and when the server had them is not known
    untimed: u64,
    /// numbers that were taken
    numbers: u32,
}

/// Settles the parts of all workers, in any order.
///
/// `margin_ns`: see the head of this file; the plan's patience serves.
pub fn close(parts: &[LedgerPart], margin_ns: u64) -> Books {
    // Departures were rounded down.
    let margin_ns = margin_ns.saturating_add(DEPARTURE_UNIT_NS);
    let sent = all_sent(parts, margin_ns);
    let first_ns = sent.iter().filter_map(|sent| sent.possible.first()).min().copied().unwrap_or(NEVER);
    let last_ns = sent.iter().filter_map(|sent| sent.possible.last()).max().copied().unwrap_or(0);
    let mut receivers = Vec::new();
    let mut worst = Worst::default();
    let mut unknown_messages = parts.iter().map(|part| part.unknown_messages).sum();
    for part in parts {
        for (local, row) in part.rows.iter().enumerate() {
            let reaches = reaches(row, margin_ns);
            let is_static =
                matches!(reaches[..], [Reach { sure: (from, to), .. }] if from <= first_ns && to >= last_ns);
            let receiver = part.global(local as u32);
            let mut sum = SumOfBooks { receivers: 1, ..SumOfBooks::default() };
            for (sender, sent) in sent.iter().enumerate() {
                let (owed_min, owed_max) = if sender as u32 == receiver && !part.shape.echoes {
                    (0, 0)
                } else if is_static {
                    (sent.certain.len() as u64, sent.possible.len() as u64 + sent.untimed)
                } else {
                    owed_within(sent, &reaches)
                };
                let cell = part.cells[sender * part.shape.locals as usize + local];
                unknown_messages += u64::from(cell::next(cell) > sent.numbers);
                let delivered = u64::from(cell::seen(cell));
                let lost = owed_min.saturating_sub(delivered);
                let unowed = delivered.saturating_sub(owed_max);
                sum.owed_min += owed_min;
                sum.owed_max += owed_max;
                sum.delivered += delivered;
                sum.lost += lost;
                sum.unowed += unowed;
                if lost + unowed > 0 {
                    let pair =
                        PairBooks { sender: sender as u32, receiver, owed_min, owed_max, delivered, lost };
                    worst.add(lost + unowed, pair);
                }
            }
            let stayed = row.spans.last().is_some_and(|span| span.leaving_ns >= last_ns);
            sum.not_caught_up = u64::from(stayed && !row.is_caught_up);
            receivers.push(receiver_books(receiver, row, sum));
        }
    }
    receivers.sort_by_key(|receiver| receiver.receiver);
    let rows = || parts.iter().flat_map(|part| &part.rows);
    let departed = rows().flat_map(|row| &row.departures).filter(|&&unit| departure_ns(unit).is_some());
    Books {
        sent: departed.count() as u64,
        unknown_messages,
        drops_are_told: rows().any(|row| row.told.is_some() || row.missed > 0),
        ..Books::of(receivers, worst.into_sorted())
    }
}

/// What a sender surely and possibly owes to a receiver that came or went.
fn owed_within(sent: &Sent, reaches: &[Reach]) -> (u64, u64) {
    let untimed = if reaches.is_empty() { 0 } else { sent.untimed };
    (
        reaches.iter().map(|reach| count_within(&sent.certain, reach.sure)).sum(),
        reaches.iter().map(|reach| count_within(&sent.possible, reach.possible)).sum::<u64>() + untimed,
    )
}

fn receiver_books(receiver: u32, row: &Row, mut sum: SumOfBooks) -> ReceiverBooks {
    sum.late = row.late;
    sum.duplicated = row.duplicated;
    sum.reordered = row.reordered;
    // The server's word covers the notices of the present connection; without it the notices are all there is.
    sum.dropped = row.told.map_or(row.missed, |told| row.missed_before + told.dropped);
    sum.in_flight = row.told.map_or(0, |told| told.in_flight);
    sum.residual = sum.unaccounted();
    ReceiverBooks {
        receiver,
        is_excluded: row.is_excluded,
        sum,
        latency_mean_ns: (row.latency_count > 0)
            .then(|| row.latency_sum_ns as f64 / row.latency_count as f64),
        latency_max_ns: (row.latency_count > 0).then_some(row.latency_max_ns),
        told_owed: row.told.map(|told| told.owed),
        told_delivered: row.told.map(|told| told.delivered),
    }
}

/// Between which instants, both included, a message must leave to be owed.
struct Reach {
    sure: (u64, u64),
    possible: (u64, u64),
    /// the wish to join left
    asked_ns: u64,
}

fn reaches(row: &Row, margin_ns: u64) -> Vec<Reach> {
    let last = row.spans.len();
    let reach = |(at, span): (usize, &Span)| {
        let lasts = at + 1 == last && (row.is_caught_up || span.leaving_ns == NEVER);
        Reach {
            sure: (span.joined_ns, if lasts { NEVER } else { span.leaving_ns.saturating_sub(margin_ns) }),
            possible: (
                span.asked_ns.saturating_sub(margin_ns),
                if lasts { NEVER } else { span.left_ns.saturating_add(margin_ns) },
            ),
            asked_ns: span.asked_ns,
        }
    };
    let mut reaches: Vec<Reach> = row.spans.iter().enumerate().map(reach).collect();
    // Where one membership's possible end lies behind the next one's possible begin, a message counts once.
    for at in 1..reaches.len() {
        let begin = reaches[at].possible.0.max(reaches[at - 1].possible.1.saturating_add(1));
        reaches[at].possible.0 = begin;
    }
    reaches
}

fn all_sent(parts: &[LedgerPart], margin_ns: u64) -> Vec<Sent> {
    let senders = parts.iter().map(|part| part.shape.senders).max().unwrap_or(0);
    let mut all: Vec<Sent> = (0..senders).map(|_| Sent::default()).collect();
    for part in parts {
        debug_assert_eq!(part.shape.senders, senders, "all parts are of one trial");
        for (local, row) in part.rows.iter().enumerate() {
            let Some(sent) = all.get_mut(part.global(local as u32) as usize) else { continue };
            let reaches = reaches(row, margin_ns);
            sent.numbers = row.departures.len() as u32;
            for &unit in &row.departures {
                let Some(at_ns) = departure_ns(unit) else {
                    sent.untimed += 1;
                    continue;
                };
                sent.possible.push(at_ns);
                // What a connection carried long enough before its end has come out of it. Joining is a message of the
                // same connection, and so was read before.
                let carries =
                    |reach: &Reach| at_ns + DEPARTURE_UNIT_NS > reach.asked_ns && at_ns <= reach.sure.1;
                if reaches.iter().any(carries) {
                    sent.certain.push(at_ns);
                }
            }
        }
    }
    all
}

fn count_within(sorted: &[u64], (from, to): (u64, u64)) -> u64 {
    let begin = sorted.partition_point(|&at| at < from);
    let end = sorted.partition_point(|&at| at <= to);
    end.saturating_sub(begin) as u64
}

#[derive(Default)]
struct Worst {
    pairs: Vec<(u64, PairBooks)>,
}

impl Worst {
    fn add(&mut self, badness: u64, pair: PairBooks) {
        self.pairs.push((badness, pair));
        if self.pairs.len() >= WORST * 4 {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.pairs.sort_by_key(|(badness, pair)| (std::cmp::Reverse(*badness), pair.receiver, pair.sender));
        self.pairs.truncate(WORST);
    }

    fn into_sorted(mut self) -> Vec<PairBooks> {
        self.cut();
        self.pairs.into_iter().map(|(_, pair)| pair).collect()
    }
}
