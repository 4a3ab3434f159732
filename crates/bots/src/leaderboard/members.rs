//! What a worker knows of its members' scores.

use super::rank_bounds::RankBounds;
use super::rank_history::{RankAnswer, RankHistory};
use super::reply::{First, Standing};

/// The members of one worker.
pub struct Members {
    scores: Vec<Score>,
    worker: usize,
    /// of the trial
    prefix: String,
    /// those with an acknowledged update: the board has them from then on
    acknowledged: usize,
    /// the highest score that was acknowledged; scores only grow
    highest: i64,
    ahead: RankBounds,
    behind: RankHistory,
}

/// What was known when a request about a member was sent. What is acknowledged later may have been applied later.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub member: u32,
    /// the score that was acknowledged
    pub least: i64,
    /// of `RankBounds`
    pub passes: u64,
    /// of `RankHistory`
    pub told: u64,
    /// nothing can change it but an update that is sent later
    pub is_quiet: bool,
}

#[derive(Clone, Copy, Default)]
struct Score {
    /// the score is between these, both included
    least: i64,
    most: i64,
    /// an update is under way
    is_open: bool,
    was_updated: bool,
    /// the server told another one: it is reported, and nothing about other members is concluded from it
    is_denied: bool,
}

impl Members {
    pub fn new(count: usize, worker: usize) -> Self {
        Members {
            scores: vec![Score::default(); count],
            worker,
            prefix: String::new(),
            acknowledged: 0,
            highest: 0,
            ahead: RankBounds::new(),
            behind: RankHistory::new(),
        }
    }

    /// Names that no earlier trial has used.
    pub fn name_after(&mut self, unix_ms: u64) {
        self.prefix = format!("{unix_ms:x}-{}", self.worker);
    }

    pub fn len(&self) -> usize {
        self.scores.len()
    }

    pub fn name(&self, member: u32) -> String {
        let mut name = String::with_capacity(self.prefix.len() + 1 + DIGITS_MAX);
        name.push_str(&self.prefix);
        name.push('-');
        push_number(&mut name, member.into());
        name
    }

    /// Whether a text is the name of that member.
    fn is_name(&self, text: &str, member: u32) -> bool {
        let digits = text.strip_prefix(self.prefix.as_str()).and_then(|rest| rest.strip_prefix('-'));
        let is_plain = |digits: &str| !digits.starts_with('+') && (digits == "0" || !digits.starts_with('0'));
        digits.is_some_and(|digits| is_plain(digits) && digits.parse() == Ok(member))
    }

    /// Reads what is known of several members. One by one they are a cache miss each; here the misses overlap.
    pub fn prefetch(&self, members: impl Iterator<Item = u32>) {
        let open = members.filter(|member| self.scores[*member as usize].is_open).count();
        std::hint::black_box(open);
    }

    /// What is known of a member that is going to be read.
    pub fn known(&self, member: u32) -> Known {
        Known {
            member,
            least: self.scores[member as usize].least,
            passes: self.passes(),
            told: self.told(),
            is_quiet: self.is_quiet(member),
        }
    }

    /// What a request that is going to be sent remembers for `check_rank`.
    pub fn passes(&self) -> u64 {
        self.ahead.passes()
    }

    /// What a request that is going to be sent remembers for `compare`.
    pub fn told(&self) -> u64 {
        self.behind.number()
    }

    /// Nothing that was sent before and may still be applied changes its score.
    pub fn is_certain(&self, member: u32) -> bool {
        let Score { least, most, is_denied, .. } = self.scores[member as usize];
        least == most && !is_denied
    }

    fn is_quiet(&self, member: u32) -> bool {
        self.is_certain(member) && !self.scores[member as usize].is_open
    }

    /// What the first members of the board must be, from now on.
    pub fn first(&self, rows: usize) -> First {
        First { rows: self.acknowledged.min(rows), score: self.highest }
    }

    /// Those that were updated.
    pub fn updated(&self) -> impl Iterator<Item = u32> {
        (0..self.scores.len() as u32).filter(|member| self.scores[*member as usize].was_updated)
    }

    /// A request with an update of this member is going to be sent; false where another one is open.
    pub fn begin(&mut self, member: u32) -> bool {
        !std::mem::replace(&mut self.scores[member as usize].is_open, true)
    }

    /// It was refused as a whole: nothing was applied.
    pub fn refuse(&mut self, updates: &[(u32, i64)]) {
        for (member, _) in updates {
            self.scores[*member as usize].is_open = false;
        }
    }

    /// It is not known whether they were applied.
    pub fn give_up(&mut self, updates: &[(u32, i64)]) {
        for (member, points) in updates {
            let score = &mut self.scores[*member as usize];
            score.is_open = false;
            score.most += points;
            score.was_updated = true;
        }
    }

    /// Changes that should have been refused may have been made.
    pub fn may_have(&mut self, updates: &[(u32, i64)]) {
        for (member, points) in updates {
            let score = &mut self.scores[*member as usize];
            score.most += points;
            score.was_updated = true;
        }
    }

    /// An update was acknowledged. Errors: with another score than it must have.
    pub fn settle(&mut self, member: u32, points: i64, standing: &Standing<'_>) -> Result<(), String> {
        let is_its = self.is_about(standing, member).is_ok();
        let score = &mut self.scores[member as usize];
        // An update adds a point at least.
        self.acknowledged += usize::from(score.least == 0);
        let (least, most) = (score.least + points, score.most + points);
        let is_right = is_its && (least..=most).contains(&standing.score);
        let (least, most) = if is_right { (standing.score, standing.score) } else { (least, most) };
        let is_denied = score.is_denied || !is_right;
        *score = Score { least, most, is_open: false, was_updated: true, is_denied };
        if !is_denied {
            self.highest = self.highest.max(least);
        }
        let surely = |score: &Score| if score.is_denied { 0 } else { score.least };
        self.ahead.look(self.scores.len(), |member| surely(&self.scores[member]));
        if is_right {
            return Ok(());
        }
        let name = self.name(member);
        let told = standing.member.as_deref().unwrap_or(&name);
        Err(format!(
            "{told} has {} points after {points} more, and {name} must have {least}{}",
            standing.score,
            up_to(least, most)
        ))
    }

    /// Errors: the response says that it is about another member.
    fn is_about(&self, standing: &Standing<'_>, member: u32) -> Result<(), String> {
        match standing.member.as_deref() {
            Some(told) if !self.is_name(told, member) => {
                Err(format!("{told} in the place of {}", self.name(member)))
            }
            _ => Ok(()),
        }
    }

    /// Checks a rank reported during the load. `passes`: those that were complete when the request was sent. Errors:
    /// the rank is too good for its score.
    pub fn check_rank(&self, member: u32, passes: u64, standing: &Standing<'_>) -> Result<(), String> {
        let ahead = self.ahead.of(standing.score, passes);
        if standing.rank > u64::from(ahead) {
            return Ok(());
        }
        let (name, Standing { rank, score, .. }) = (self.name(member), standing);
        Err(match ahead {
            0 => format!("{name} has rank 0"),
            ahead => {
                format!("{name} has rank {rank} with {score} points, and {ahead} others or more have more")
            }
        })
    }

    /// Compares a rank with those that were told before its request was sent (`told`). The score must be right, and nothing else may
    /// have changed it meanwhile. Errors: one of the two ranks is too bad.
    pub fn compare(&mut self, member: u32, told: u64, standing: &Standing<'_>) -> Result<(), String> {
        let Standing { rank, score, .. } = *standing;
        let told_now = RankAnswer { rank, score };
        let Some(other) = self.behind.contradicted(told_now, told) else {
            self.behind.tell(told_now);
            return Ok(());
        };
        self.behind.forget(other);
        let name = self.name(member);
        Err(format!(
            "{name} has rank {rank} with {score} points, and another had rank {} with {} points before",
            other.rank, other.score
        ))
    }

    /// The same of a member that was read. One that was updated meanwhile may be told with an older rank.
    pub fn compare_read(&mut self, known: Known, standing: &Standing<'_>) -> Result<(), String> {
        let Known { member, least, told, is_quiet, .. } = known;
        let is_same = is_quiet && self.is_quiet(member) && self.scores[member as usize].least == least;
        if is_same && standing.score == least { self.compare(member, told, standing) } else { Ok(()) }
    }

    /// A score that was read while updates are under way. Errors: it cannot be.
    pub fn check_during_load(&self, known: Known, standing: &Standing<'_>) -> Result<(), String> {
        let Known { member, least: acknowledged, .. } = known;
        self.is_about(standing, member)?;
        let score = self.scores[member as usize];
        // Updates only add, and one in flight is not in the range yet.
        let is_right = standing.score >= acknowledged
            && (score.is_open || standing.score <= score.most || score.least < score.most);
        if is_right { Ok(()) } else { Err(self.wrong(member, standing.score)) }
    }

    /// Whether a standing that is read after the load can be. Errors: what it must be.
    pub fn check(&self, member: u32, found: &Standing<'_>) -> Result<(), String> {
        self.is_about(found, member)?;
        let Score { least, most, .. } = self.scores[member as usize];
        if (least..=most).contains(&found.score) { Ok(()) } else { Err(self.wrong(member, found.score)) }
    }

    /// A text for one that is not there.
    pub fn missing(&self, member: u32) -> Option<String> {
        let Score { least, most, .. } = self.scores[member as usize];
        // Its only update may never have been applied.
        (least > 0).then(|| {
            format!("{} is not there and must have {least}{}", self.name(member), up_to(least, most))
        })
    }

    fn wrong(&self, member: u32, found: i64) -> String {
        let Score { least, most, .. } = self.scores[member as usize];
        format!("{} has {found} points and must have {least}{}", self.name(member), up_to(least, most))
    }
}

/// What a number of 64 bits takes in decimal digits.
const DIGITS_MAX: usize = 20;

/// Appends a number in decimal digits; several hundred of them make a bulk.
pub fn push_number(out: &mut String, mut number: u64) {
    let (mut digits, mut at) = ([0; DIGITS_MAX], DIGITS_MAX);
    while at == DIGITS_MAX || number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend(digits[at..].iter().map(|digit| char::from(*digit)));
}

fn up_to(least: i64, most: i64) -> String {
    if most > least { format!(" to {most}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_and_names_are_those_of_the_formatter(number: u64, member: u32) {
            let mut text = String::from("x");
            push_number(&mut text, number);
            prop_assert_eq!(text, format!("x{number}"));
            let mut members = Members::new(1, 3);
            members.name_after(0xabc);
            prop_assert_eq!(members.name(member), format!("abc-3-{member}"));
            prop_assert!(members.is_name(&members.name(member), member));
            prop_assert!(!members.is_name(&members.name(member), member.wrapping_add(1)));
        }
    }

    #[test]
    fn no_other_text_is_a_name() {
        let mut members = Members::new(1, 0);
        members.name_after(1);
        for text in ["1-0-07", "1-0-+7", "1-0-", "1-07", "1-0-7 ", "2-0-7", ""] {
            assert!(!members.is_name(text, 7), "{text}");
        }
        assert!(members.is_name("1-0-0", 0) && members.is_name("1-0-7", 7));
    }
}
