//! What can go wrong once a connection is open, and the names of the causes.

use drivers::http::{Answer, Fault};
use drivers::{Broken, Closed, grpc};
use measure::ErrorKind;

use crate::disconnects;
pub use crate::disconnects::shown;

/// The causes, in the order of their indices.
pub const CAUSES: [&str; 25] = [
    "rejected (429, 503)",
    "status 4xx",
    "status 5xx",
    "status not expected",
    "wrong body",
    "wrong json",
    "connection lost",
    "connection reset",
    "no answer in time",
    "answer never ended",
    "redirect loop",
    "redirect elsewhere",
    "unpaired reply",
    "closed by the server as the request was sent: its idle timeout is shorter than the gap between requests",
    "not http",
    "broken status line",
    "broken header",
    "too much header",
    "broken chunk",
    "answer cut off",
    "body too large",
    "unasked bytes",
    "http/2 error",
    "malformed message",
    "too many unfinished answers",
];

/// What some of them say about the server.
pub const KINDS: [(&str, ErrorKind); 5] = [
    (CAUSES[WRONG_BODY], ErrorKind::WrongReply),
    (CAUSES[WRONG_JSON], ErrorKind::WrongReply),
    (CAUSES[UNPAIRED], ErrorKind::WrongReply),
    (CAUSES[NO_ANSWER], ErrorKind::Timeout),
    (CAUSES[NEVER_ENDED], ErrorKind::Timeout),
];

pub const REJECTED: usize = 0;
pub const STATUS_4XX: usize = 1;
pub const STATUS_5XX: usize = 2;
pub const STATUS_OTHER: usize = 3;
pub const WRONG_BODY: usize = 4;
pub const WRONG_JSON: usize = 5;
pub const LOST: usize = 6;
pub const RESET: usize = 7;
pub const NO_ANSWER: usize = 8;
pub const NEVER_ENDED: usize = 9;
pub const REDIRECT_LOOP: usize = 10;
pub const REDIRECT_ELSEWHERE: usize = 11;
/// to no request, or to one that was answered
pub const UNPAIRED: usize = 12;
/// a request that may not be repeated met the close of an idle connection
pub const CLOSED_AS_SENT: usize = 13;
const FIRST_FAULT: usize = 14;

/// The cause for a wrong status.
pub fn of_status(status: u16) -> usize {
    match status {
        429 | 503 => REJECTED,
        400..=499 => STATUS_4XX,
        500..=599 => STATUS_5XX,
        _ => STATUS_OTHER,
    }
}

/// The names of gRPC's error statuses, after all other causes.
pub const GRPC: [&str; grpc::NAMES.len()] = grpc::NAMES;

/// The cause for a wrong status; `grpc_at`: where those of gRPC begin.
pub fn of_answer(answer: &Answer<'_>, grpc_at: usize) -> usize {
    match answer.grpc.and_then(grpc::index) {
        Some(index) => grpc_at + index,
        None => of_status(answer.status),
    }
}

/// The cause for the end of a connection on which a request was open.
pub fn of_end(why: &Closed) -> usize {
    match why {
        Closed::Broken(broken) => of_broken(*broken),
        Closed::Failed(error) if disconnects::is_reset(error) => RESET,
        Closed::Failed(_) | Closed::ByPeer(_) | Closed::NotOpened(_) => LOST,
    }
}

fn of_broken(broken: Broken) -> usize {
    let fault = match broken {
        Broken::Http(fault) => fault,
        Broken::TooLarge(_) => Fault::BodyTooLarge,
        Broken::TooManyUnfinished => Fault::TooManyUnfinished,
        // Of WebSocket, below messages.
        Broken::Protocol(_) | Broken::NotUtf8 | Broken::UnreadAnswers => Fault::Message,
    };
    FIRST_FAULT + Fault::ALL.iter().position(|one| *one == fault).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_cause_of_its_own() {
        let causes: Vec<&str> =
            Fault::ALL.iter().map(|fault| CAUSES[of_broken(Broken::Http(*fault))]).collect();
        assert_eq!(causes, CAUSES[FIRST_FAULT..]);
    }

    #[test]
    fn statuses_are_sorted_by_what_they_mean() {
        for (status, cause) in [
            (503, "rejected (429, 503)"),
            (429, "rejected (429, 503)"),
            (404, "status 4xx"),
            (500, "status 5xx"),
            (302, "status not expected"),
            (299, "status not expected"),
        ] {
            assert_eq!(CAUSES[of_status(status)], cause, "{status}");
        }
    }
}
