//! What was sent in a room, and how one of its receivers is settled. Pure.

use super::books::{PairBooks, ReceiverBooks, SumOfBooks};
use super::cell;
use super::departures::Run;
use super::row::{NEVER, Row, Span};

/// As many pairs are kept.
const WORST: usize = 100;

/// Messages of a sender that left together, and how many there were up to them, they included.
pub(super) struct Departed {
    first_ns: u64,
    last_ns: u64,
    /// those that surely reached the server
    certain: u32,
    /// those that may have, the certain ones included
    possible: u32,
}

/// A sender's messages in the order in which they left.
#[derive(Default)]
pub(super) struct Sent {
    departed: Vec<Departed>,
    /// numbers whose message the kernel did not take whole: whether and when the server had them is not known
    untimed: u64,
    /// numbers that were taken
    numbers: u32,
}

impl Sent {
    /// What one bot said; `is_certain` says what surely reached the server.
    pub(super) fn of(row: &Row, is_certain: impl Fn(&Run) -> bool) -> Sent {
        let (mut certain, mut possible) = (0, 0);
        let departed = row.departures.runs().map(|run| {
            possible += run.count;
            certain += if is_certain(&run) { run.count } else { 0 };
            Departed { first_ns: run.first_ns, last_ns: run.last_ns, certain, possible }
        });
        let departed = departed.collect();
        let untimed = u64::from(row.departures.used() - possible);
        Sent { departed, untimed, numbers: row.departures.numbers() }
    }

    /// All that surely reached the server, and all that may have.
    fn all(&self) -> (u64, u64) {
        self.departed.last().map_or((0, 0), |last| (last.certain.into(), last.possible.into()))
    }

    /// Of those that surely reached the server: how many surely left between two instants, both included.
    fn certain_within(&self, (from, to): (u64, u64)) -> u64 {
        let begin = self.departed.partition_point(|run| run.first_ns < from);
        let end = self.departed.partition_point(|run| run.last_ns <= to);
        self.between(begin, end, |run| run.certain)
    }

    /// How many may have reached the server and left between two instants, both included.
    fn possible_within(&self, (from, to): (u64, u64)) -> u64 {
        let begin = self.departed.partition_point(|run| run.last_ns < from);
        let end = self.departed.partition_point(|run| run.first_ns <= to);
        self.between(begin, end, |run| run.possible)
    }

    fn between(&self, begin: usize, end: usize, count: impl Fn(&Departed) -> u32) -> u64 {
        let before = |at: usize| at.checked_sub(1).map_or(0, |last| count(&self.departed[last]));
        if begin < end { u64::from(before(end) - before(begin)) } else { 0 }
    }
}

/// What is settled row by row adds up here.
pub(super) struct Settling {
    pub(super) worst: Worst,
    /// of senders or numbers that do not exist
    pub(super) unknown_messages: u64,
}

/// All that was sent in one room, and how its receivers are settled.
pub(super) struct Room<'s> {
    senders: &'s [(u32, Sent)],
    margin_ns: u64,
    echoes: bool,
    /// when the first message left and the last did
    spoken_ns: (u64, u64),
}

impl<'s> Room<'s> {
    pub(super) fn new(senders: &'s [(u32, Sent)], margin_ns: u64, echoes: bool) -> Room<'s> {
        let first = senders.iter().filter_map(|(_, sent)| sent.departed.first()).map(|run| run.first_ns);
        let last = senders.iter().filter_map(|(_, sent)| sent.departed.last()).map(|run| run.last_ns);
        Room {
            senders,
            margin_ns,
            echoes,
            spoken_ns: (first.min().unwrap_or(NEVER), last.max().unwrap_or(0)),
        }
    }

    /// One receiver: what it was owed, and what came of it. `cell`: what is known of a sender there.
    pub(super) fn settle(
        &self,
        receiver: u32,
        row: &Row,
        cell: impl Fn(usize, u32) -> u64,
        all: &mut Settling,
    ) -> SumOfBooks {
        let (first_ns, last_ns) = self.spoken_ns;
        let reaches = reaches(row, self.margin_ns);
        let is_static =
            matches!(reaches[..], [Reach { sure: (from, to), .. }] if from <= first_ns && to >= last_ns);
        let mut sum = SumOfBooks { receivers: 1, ..SumOfBooks::default() };
        // Beyond the newest received from each sender, if the bot was still behind with reading at the end.
        let (reads_on, mut to_read) = (row.is_behind && !row.is_caught_up, 0);
        for (index, (sender, sent)) in self.senders.iter().enumerate() {
            let (owed_min, owed_max) = if *sender == receiver && !self.echoes {
                (0, 0)
            } else if is_static {
                let (certain, possible) = sent.all();
                (certain, possible + sent.untimed)
            } else {
                owed_within(sent, &reaches)
            };
            let cell = cell(index, *sender);
            all.unknown_messages += u64::from(cell::next(cell) > sent.numbers);
            let delivered = u64::from(cell::seen(cell));
            let lost = owed_min.saturating_sub(delivered);
            let unowed = delivered.saturating_sub(owed_max);
            sum.owed_min += owed_min;
            sum.owed_max += owed_max;
            sum.delivered += delivered;
            sum.lost += lost;
            if reads_on {
                to_read += lost.min(u64::from(sent.numbers.saturating_sub(cell::next(cell))));
            }
            sum.unowed += unowed;
            if lost + unowed > 0 {
                let pair = PairBooks { sender: *sender, receiver, owed_min, owed_max, delivered, lost };
                all.worst.add(lost + unowed, pair);
            }
        }
        let stayed = row.spans.last().is_some_and(|span| span.leaving_ns >= last_ns);
        sum.unread = row.missed_unread.max(to_read).min(sum.lost);
        sum.lost -= sum.unread;
        sum.not_caught_up = u64::from(stayed && !row.is_caught_up);
        sum
    }
}

/// What a sender surely and possibly owes to a receiver that came or went.
fn owed_within(sent: &Sent, reaches: &[Reach]) -> (u64, u64) {
    let untimed = if reaches.is_empty() { 0 } else { sent.untimed };
    (
        reaches.iter().map(|reach| sent.certain_within(reach.sure)).sum(),
        reaches.iter().map(|reach| sent.possible_within(reach.possible)).sum::<u64>() + untimed,
    )
}

pub(super) fn receiver_books(receiver: u32, row: &Row, mut sum: SumOfBooks) -> ReceiverBooks {
    sum.late = row.late;
    sum.duplicated = row.duplicated;
    sum.reordered = row.reordered;
    // The server's report covers the notices of the present connection; without it there are only the notices.
    sum.dropped = row.told.map_or(row.missed, |told| row.missed_before + told.dropped);
    sum.in_flight = row.told.map_or(0, |told| told.in_flight);
    sum.residual = sum.unaccounted();
    // For a client that reconnected the server reports only the last connection.
    let of_all = row.told.filter(|_| row.spans.len() == 1);
    ReceiverBooks {
        receiver,
        is_excluded: row.is_excluded,
        sum,
        latency_mean_ns: (row.latency_count > 0)
            .then(|| row.latency_sum_ns as f64 / row.latency_count as f64),
        latency_max_ns: (row.latency_count > 0).then_some(row.latency_max_ns),
        told_owed: of_all.map(|told| told.owed),
        told_delivered: of_all.map(|told| told.delivered),
    }
}

/// Between which instants, both included, a message must leave to be owed.
pub(super) struct Reach {
    pub(super) sure: (u64, u64),
    possible: (u64, u64),
    /// the request to join left
    pub(super) asked_ns: u64,
}

pub(super) fn reaches(row: &Row, margin_ns: u64) -> Vec<Reach> {
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
    // If one membership's possible end is after the next one's possible begin, a message counts once.
    for at in 1..reaches.len() {
        let begin = reaches[at].possible.0.max(reaches[at - 1].possible.1.saturating_add(1));
        reaches[at].possible.0 = begin;
    }
    reaches
}

#[derive(Default)]
pub(super) struct Worst {
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

    pub(super) fn into_sorted(mut self) -> Vec<PairBooks> {
        self.cut();
        self.pairs.into_iter().map(|(_, pair)| pair).collect()
    }
}
