//! Faults injected by number: every n-th plain answer is wrong.
//!
//! Plain requests (any path without a special meaning) are counted from 1 over all connections, in the order in which
//! they were read. If two faults fall on the same number, no answer takes precedence over a status, and a status over a
//! wrong body. So `--wrong-body-one-in 100` and 10,000 requests are exactly 100 wrong bodies.

/// Which faults, and how often. None: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Faults {
    /// Answer one in so many (--one-in) plain requests with this status, 200 to 599
    #[arg(long, value_name = "NNN", requires = "one_in")]
    pub status: Option<u16>,
    /// How often --status strikes: every n-th plain request, of all connections
    #[arg(long, value_name = "N", requires = "status")]
    pub one_in: Option<u64>,
    /// Answer every n-th plain request with status 200 and the wrong body
    #[arg(long, value_name = "N")]
    pub wrong_body_one_in: Option<u64>,
    /// Never answer every n-th plain request, nor what follows on its connection, which stays open
    #[arg(long, value_name = "N")]
    pub no_answer_one_in: Option<u64>,
}

/// What is wrong with one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    Nothing,
    Status(u16),
    WrongBody,
    NoAnswer,
}

impl Faults {
    /// What is planted at this number.
    pub(super) fn at(&self, number: u64) -> Planted {
        let falls_on = |one_in: Option<u64>| one_in.is_some_and(|one_in| number.is_multiple_of(one_in));
        match self.status.zip(self.one_in) {
            _ if falls_on(self.no_answer_one_in) => Planted::NoAnswer,
            Some((status, one_in)) if falls_on(Some(one_in)) => Planted::Status(status),
            _ if falls_on(self.wrong_body_one_in) => Planted::WrongBody,
            _ => Planted::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_fall_on_exactly_their_numbers_and_the_graver_one_wins() {
        let faults = Faults {
            status: Some(503),
            one_in: Some(4),
            wrong_body_one_in: Some(2),
            no_answer_one_in: Some(8),
        };
        let count = |planted| (1..=800).filter(|number| faults.at(*number) == planted).count();
        assert_eq!(count(Planted::NoAnswer), 100);
        assert_eq!(count(Planted::Status(503)), 100);
        assert_eq!(count(Planted::WrongBody), 200);
        assert_eq!(count(Planted::Nothing), 400);
        assert!((1..1_000).all(|number| Faults::default().at(number) == Planted::Nothing));
    }
}
