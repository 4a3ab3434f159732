//! The rules that check the delivery accounts.
//!
//! Accounts that contradict themselves or the server's prove nothing: INVALID. A server that delivers what no client
//! sent, or is still working off its backlog seconds after all clients stopped, has failed. Silent losses are judged by
//! the objective on `deliveries.lost`; what the bots had no time to read says nothing about the server.

use measure::ledger::ReceiverBooks;

use super::{Case, Ruling, Verdict};
use crate::wording::show_many;

/// The bounds of what is owed are strict; what exceeds the upper one was owed to nobody.
pub(super) fn unowed(case: &Case<'_>) -> Option<Ruling> {
    let books = case.trial.books.as_ref().filter(|books| books.judged.unowed > 0)?;
    let unowed = books.judged.unowed;
    let example =
        books.worst.iter().find(|pair| pair.delivered > pair.owed_max).map_or(String::new(), |pair| {
            format!(", for example to receiver {} from sender {}", pair.receiver, pair.sender)
        });
    let reason = format!(
        "books do not balance: {} deliveries came that were not owed{example}; a server that sends lines back to their \
         senders wants --echoes, otherwise it or Stepladder books wrongly",
        show_many(unowed)
    );
    Some(Ruling::new(Verdict::Invalid, "deliveries.unowed", reason))
}

/// Where the server tells what it drops, its books and those of the clients must explain each other to the last delivery.
///
/// One by one, since a surplus here must not hide a loss there. A receiver that never had the last word has only half of
/// the server's books: that is a backlog, and no contradiction.
pub(super) fn residual(case: &Case<'_>) -> Option<Ruling> {
    let books = case.trial.books.as_ref().filter(|books| books.drops_are_told)?;
    // An altered line is also missing under its own name; that is a wrong answer, and has its own rule.
    if books.unknown_messages > 0 || super::rules::wrong_answers(case).is_some() {
        return None;
    }
    let is_wrong = |receiver: &&ReceiverBooks| {
        !receiver.is_excluded && receiver.sum.not_caught_up == 0 && receiver.sum.residual != 0
    };
    let wrong: Vec<&ReceiverBooks> = books.receivers.iter().filter(is_wrong).collect();
    let most = wrong.iter().max_by_key(|receiver| receiver.sum.residual.unsigned_abs())?;
    let unaccounted: u64 = wrong.iter().map(|receiver| receiver.sum.residual.unsigned_abs()).sum();
    let sum = &most.sum;
    let reason = format!(
        "books do not balance: what the server tells and what the clients received differ by {} at {} of {} receivers; most \
         at receiver {}: {} lost, but {} dropped and {} waiting by the server's word (residual {})",
        show_many(unaccounted),
        wrong.len(),
        books.judged.receivers,
        most.receiver,
        show_many(sum.lost),
        show_many(sum.dropped),
        show_many(sum.in_flight),
        sum.residual,
    );
    Some(Ruling::new(Verdict::Invalid, "deliveries.residual", reason))
}

/// The signal of a server whose own count is another one.
pub(crate) const TOLD_OTHERWISE: &str = "deliveries.told";

/// What the server says that it owed to a client, and handed over, is what the others sent and the client received.
///
/// Exact, and so asked only where nothing can lie between the two: nobody misbehaved (what others sent may be rubbish, which
/// the server owes too), everybody had the server's last word, which comes behind all that was said, and what was owed to
/// this client is known to the last message, because it came once and nobody came or went while others spoke.
pub(super) fn told_otherwise(case: &Case<'_>) -> Option<Ruling> {
    let books = case.trial.books.as_ref().filter(|books| books.judged.not_caught_up == 0)?;
    let misbehaves = |receiver: &ReceiverBooks| receiver.is_excluded;
    if books.receivers.iter().any(misbehaves)
        || books.unknown_messages > 0
        || super::rules::wrong_answers(case).is_some()
    {
        return None;
    }
    let contradicted = |receiver: &&ReceiverBooks| {
        let sum = &receiver.sum;
        let is_exact = sum.owed_min == sum.owed_max;
        // A server that sends a message twice may count it once or twice.
        let came = sum.delivered..=sum.delivered.saturating_add(sum.duplicated);
        is_exact
            && (receiver.told_owed.is_some_and(|owed| owed != sum.owed_min)
                || receiver.told_delivered.is_some_and(|delivered| !came.contains(&delivered)))
    };
    let wrong: Vec<&ReceiverBooks> = books.receivers.iter().filter(contradicted).collect();
    let first = wrong.first()?;
    let told = |count: Option<u64>| count.map_or_else(|| "an unknown number".to_owned(), show_many);
    let reason = format!(
        "the server's books contradict the clients' at {} of {} receivers; first at receiver {}: by the server's word {} \
         were owed and {} delivered, but the others sent {} and {} came; the server does not count right, or other clients \
         were in the room",
        wrong.len(),
        books.judged.receivers,
        first.receiver,
        told(first.told_owed),
        told(first.told_delivered),
        show_many(first.sum.owed_min),
        show_many(first.sum.delivered),
    );
    Some(Ruling::new(Verdict::Invalid, TOLD_OTHERWISE, reason))
}

/// What came back is not what was sent: a correctness failure, even if no objective asked for it.
pub(super) fn unknown_messages(case: &Case<'_>) -> Option<Ruling> {
    let unknown_messages =
        case.trial.books.as_ref().map(|books| books.unknown_messages).filter(|count| *count > 0)?;
    let reason = format!(
        "the server's lines are not those that were sent: {} came with an unknown sender or number, or \
         before they were planned",
        show_many(unknown_messages)
    );
    Some(Ruling::new(Verdict::Fail, "deliveries.unknown_messages", reason))
}

/// What the bots had no time to read is not known: the server may have sent it or not.
pub(super) fn unread(case: &Case<'_>) -> Option<Ruling> {
    let judged = case.trial.books.as_ref().map(|books| &books.judged).filter(|sum| sum.unread > 0)?;
    let reason = format!(
        "{} of {} deliveries were not read: the bots had no time to read, so the server dropped them or they were still to be \
         read at the end; give the generator cores of its own",
        show_many(judged.unread),
        show_many(judged.owed()),
    );
    Some(Ruling::new(Verdict::GeneratorLimited, "deliveries.unread", reason))
}

/// Nothing was lost as far as can be determined, but the server had not finished what it owed.
pub(super) fn backlog(case: &Case<'_>) -> Option<Ruling> {
    let judged = case.trial.books.as_ref().map(|books| &books.judged).filter(|sum| sum.not_caught_up > 0)?;
    let reason = format!(
        "backlog: when the drain ended, {} of {} receivers still waited for the server's word that everything had come; \
         it does not keep up with this load",
        judged.not_caught_up, judged.receivers
    );
    Some(Ruling::new(Verdict::Fail, "backlog", reason))
}

#[cfg(test)]
mod tests;
