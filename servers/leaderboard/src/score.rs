//! Scores: exact integers without a bound.
//!
//! A value that fits an `i128` is stored inline; only larger values allocate. There is no rounding anywhere, unlike in
//! the many leaderboards whose scores are 64-bit floats.
//! Invariant: a value that fits an `i128` is never stored as a big integer, so equal scores are equal values.
//! Units: whatever the game counts. Input is bounded to `MAX_DIGITS`; sums are not, and need no bound: n increments
//! lengthen a score by at most log₁₀ n digits.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use num_bigint::{BigInt, Sign};

/// The most decimal digits of a score as input, leading zeros included.
pub const MAX_DIGITS: usize = 1_000;

/// The most decimal digits of a sum: of 2^64 scores, which take a million updates a second 580,000 years.
pub const SUM_DIGITS_MAX: usize = MAX_DIGITS + 20;

/// An integer of any size.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Score(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Small(i128),
    /// Outside the range of `i128` only.
    Big(Box<BigInt>),
}

/// Why a text is not a score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScoreError {
    /// No digits at all.
    #[error("a score needs at least one digit")]
    Empty,
    /// Something other than an optional sign and decimal digits.
    #[error("a score is a whole decimal number such as -10; byte {at} is not a digit")]
    NotADigit {
        /// Which byte of the text, from 0.
        at: usize,
    },
    /// More digits than `MAX_DIGITS`.
    #[error("a score has at most {MAX_DIGITS} digits, not {digits}")]
    TooLong {
        /// How many there are.
        digits: usize,
    },
}

impl Score {
    /// The score of a member that was never updated.
    pub const ZERO: Self = Self(Repr::Small(0));

    fn of_big(value: BigInt) -> Self {
        match i128::try_from(&value) {
            Ok(small) => Self(Repr::Small(small)),
            Err(_) => Self(Repr::Big(Box::new(value))),
        }
    }

    fn to_big(&self) -> BigInt {
        match &self.0 {
            Repr::Small(small) => BigInt::from(*small),
            Repr::Big(big) => (**big).clone(),
        }
    }

    /// Reads what `Display` wrote of a sum of scores that were put in. None for anything else: longer digits would take time that
    /// grows with the square of their number.
    pub fn of_decimal(text: &str) -> Option<Self> {
        let digits = text.len() - usize::from(text.starts_with('-'));
        if digits > SUM_DIGITS_MAX {
            return None;
        }
        text.parse().ok().map(Self::of_big)
    }

    /// The sum, exact.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        if let (Repr::Small(one), Repr::Small(two)) = (&self.0, &other.0)
            && let Some(sum) = one.checked_add(*two)
        {
            return Self(Repr::Small(sum));
        }
        Self::of_big(self.to_big() + other.to_big())
    }

    /// The difference, exact.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        if let (Repr::Small(one), Repr::Small(two)) = (&self.0, &other.0)
            && let Some(difference) = one.checked_sub(*two)
        {
            return Self(Repr::Small(difference));
        }
        Self::of_big(self.to_big() - other.to_big())
    }

    /// −1 − score: reverses the order of all scores and is its own inverse.
    ///
    /// Unlike negation it maps the range of every machine integer onto itself.
    #[must_use]
    pub fn reversed(&self) -> Self {
        match &self.0 {
            Repr::Small(small) => Self(Repr::Small(!small)),
            Repr::Big(big) => Self::of_big(-(**big).clone() - 1),
        }
    }

    /// The value as `i64`, where it fits.
    #[inline(always)]
    pub fn as_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Small(small) => i64::try_from(*small).ok(),
            Repr::Big(_) => None,
        }
    }

    /// Whether the score is below zero.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small(small) => *small < 0,
            Repr::Big(big) => big.sign() == Sign::Minus,
        }
    }
}

impl Default for Score {
    fn default() -> Self {
        Self::ZERO
    }
}

impl From<i64> for Score {
    #[inline(always)]
    fn from(value: i64) -> Self {
        Self(Repr::Small(i128::from(value)))
    }
}

impl From<i128> for Score {
    fn from(value: i128) -> Self {
        Self(Repr::Small(value))
    }
}

impl FromStr for Score {
    type Err = ScoreError;

    /// Reads an optional sign and up to `MAX_DIGITS` decimal digits, nothing else.
    fn from_str(text: &str) -> Result<Self, ScoreError> {
        let signed = usize::from(text.starts_with(['-', '+']));
        let digits = &text.as_bytes()[signed..];
        // Almost every score: it cannot overflow, and needs no 128-bit arithmetic.
        if (1..=18).contains(&digits.len())
            && let Some(small) = digits.iter().try_fold(0_i64, |value, byte| {
                let digit = byte.wrapping_sub(b'0');
                (digit < 10).then_some(10 * value + i64::from(digit))
            })
        {
            return Ok(Self::from(if text.starts_with('-') { -small } else { small }));
        }
        if digits.is_empty() {
            return Err(ScoreError::Empty);
        }
        if let Some(at) = digits.iter().position(|byte| !byte.is_ascii_digit()) {
            return Err(ScoreError::NotADigit { at: at + signed });
        }
        if digits.len() > MAX_DIGITS {
            return Err(ScoreError::TooLong { digits: digits.len() });
        }
        if let Ok(small) = text.parse::<i128>() {
            return Ok(Self(Repr::Small(small)));
        }
        let big = text.parse::<BigInt>().expect("a sign and digits are a number");
        Ok(Self::of_big(big))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small(small) => small.fmt(out),
            Repr::Big(big) => big.fmt(out),
        }
    }
}

impl fmt::Debug for Score {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Small(one), Repr::Small(two)) => one.cmp(two),
            (Repr::Big(one), Repr::Big(two)) => one.cmp(two),
            // A big integer lies beyond every `i128`, on the side of its sign.
            (Repr::Big(_), Repr::Small(_)) if self.is_negative() => Ordering::Less,
            (Repr::Big(_), Repr::Small(_)) => Ordering::Greater,
            (Repr::Small(_), Repr::Big(_)) => other.cmp(self).reverse(),
        }
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn score(text: &str) -> Score {
        text.parse().expect("a score")
    }

    #[test]
    fn decimal_text_is_read_exactly_and_written_back() {
        let beyond = "9".repeat(MAX_DIGITS);
        let (most, more) = ("999999999999999999", "-1000000000000000000");
        for text in ["0", "10", "-10", most, more, "170141183460469231731687303715884105727", beyond.as_str()]
        {
            assert_eq!(score(text).to_string(), text);
        }
        assert_eq!(score("-0"), Score::ZERO);
        assert_eq!(score("+007"), Score::from(7_i64));
    }

    #[test]
    fn what_is_not_a_whole_number_is_refused_with_its_place() {
        let refused = |text: &str| text.parse::<Score>().expect_err(text);
        assert_eq!(refused(""), ScoreError::Empty);
        assert_eq!(refused("-"), ScoreError::Empty);
        for (text, at) in [("1.5", 1), ("1e3", 1), (" 1", 0), ("1_0", 1), ("--1", 1), ("NaN", 0), ("१", 0)]
        {
            assert_eq!(refused(text), ScoreError::NotADigit { at }, "{text}");
        }
        assert_eq!(refused(&"1".repeat(1_001)), ScoreError::TooLong { digits: 1_001 });
    }

    #[test]
    fn sums_cross_the_bounds_of_machine_integers_and_come_back() {
        let largest = Score::from(i128::MAX);
        let beyond = largest.plus(&Score::from(1_i64));
        assert_eq!(beyond.to_string(), "170141183460469231731687303715884105728");
        assert!(beyond > largest);
        assert_eq!(beyond.minus(&Score::from(1_i64)), largest);
        assert!(Score::from(i128::MIN).minus(&Score::from(1_i64)) < Score::from(i128::MIN));
    }

    fn any_score() -> impl Strategy<Value = Score> {
        prop_oneof![
            any::<i64>().prop_map(Score::from),
            any::<i128>().prop_map(Score::from),
            "-?[1-9][0-9]{35,45}".prop_map(|text| score(&text)),
        ]
    }

    proptest! {
        #[test]
        fn reversing_twice_changes_nothing_and_once_reverses_the_order(a in any_score(), b in any_score()) {
            prop_assert_eq!(a.reversed().reversed(), a.clone());
            prop_assert_eq!(a.reversed().cmp(&b.reversed()), b.cmp(&a));
        }

        #[test]
        fn order_and_sums_agree_with_big_integers(a in any_score(), b in any_score()) {
            prop_assert_eq!(a.cmp(&b), a.to_big().cmp(&b.to_big()));
            prop_assert_eq!(a.plus(&b), Score::of_big(a.to_big() + b.to_big()));
            prop_assert_eq!(a.plus(&b).minus(&b), a);
        }
    }
}
