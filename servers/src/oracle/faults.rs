//! Faults that are planted by number: every n-th plain answer is not what it should be.
//!
//! Plain requests (any path without a meaning of its own) are counted from 1 over all connections, in the order in
//! which they were read. Where two faults fall on the same number, no answer goes before a status, and a status
//! before a wrong body. So `--wrong-body-one-in 100` and 10,000 requests are exactly 100 wrong bodies.

/// Which faults, and how often. None: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// This status instead of 200, for one in so many.
    pub status: Option<(u16, u64)>,
    /// `no` instead of `ok` under status 200, for one in so many.
    pub wrong_body_one_in: Option<u64>,
    /// For one in so many no answer at all; the connection stays open, and nothing on it is answered any more.
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
        match self.status {
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
        let faults = Faults { status: Some((503, 4)), wrong_body_one_in: Some(2), no_answer_one_in: Some(8) };
        let count = |planted| (1..=800).filter(|number| faults.at(*number) == planted).count();
        assert_eq!(count(Planted::NoAnswer), 100);
        assert_eq!(count(Planted::Status(503)), 100);
        assert_eq!(count(Planted::WrongBody), 200);
        assert_eq!(count(Planted::Nothing), 400);
        assert!((1..1_000).all(|number| Faults::default().at(number) == Planted::Nothing));
    }
}
