//! What a worker knows of its members' scores.

use super::reply::Standing;

/// The members of one worker.
pub struct Members {
    scores: Vec<Score>,
    worker: usize,
    /// of the trial
    prefix: String,
}

#[derive(Clone, Copy, Default)]
struct Score {
    /// the score lies between these, both included
    least: i64,
    most: i64,
    /// an update is under way
    is_open: bool,
    was_updated: bool,
}

impl Members {
    pub fn new(count: usize, worker: usize) -> Self {
        Members { scores: vec![Score::default(); count], worker, prefix: String::new() }
    }

    /// Names that no earlier trial has used.
    pub fn name_after(&mut self, unix_ms: u64) {
        self.prefix = format!("{unix_ms:x}-{}", self.worker);
    }

    pub fn len(&self) -> usize {
        self.scores.len()
    }

    pub fn name(&self, member: u32) -> String {
        format!("{}-{member}", self.prefix)
    }

    /// The name of one of them, by any number.
    pub fn any(&self, token: usize) -> String {
        self.name((token % self.scores.len()) as u32)
    }

    pub fn was_updated(&self, member: usize) -> bool {
        self.scores[member].was_updated
    }

    /// Those that were updated.
    pub fn updated(&self) -> impl Iterator<Item = u32> {
        (0..self.scores.len() as u32).filter(|member| self.scores[*member as usize].was_updated)
    }

    pub fn is_free(&self, member: u32) -> bool {
        !self.scores[member as usize].is_open
    }

    /// A request with these updates is sent.
    pub fn begin(&mut self, updates: &[(u32, i64)]) {
        for (member, _) in updates {
            self.scores[*member as usize].is_open = true;
        }
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
        let name = self.name(member);
        let score = &mut self.scores[member as usize];
        let (least, most) = (score.least + points, score.most + points);
        let told = standing.member.as_deref().unwrap_or(&name);
        let is_right = told == name && (least..=most).contains(&standing.score);
        let (least, most) = if is_right { (standing.score, standing.score) } else { (least, most) };
        *score = Score { least, most, is_open: false, was_updated: true };
        if is_right {
            return Ok(());
        }
        Err(format!(
            "{told} has {} points after {points} more, and {name} must have {least}{}",
            standing.score,
            up_to(least, most)
        ))
    }

    /// A score that was read while updates are under way. Errors: it cannot be.
    pub fn check_during_load(&self, member: usize, standing: &Standing<'_>) -> Result<(), String> {
        let score = self.scores[member];
        // Updates only add, and one that is under way is not in the range yet.
        let is_right = standing.score >= score.least
            && (score.is_open || standing.score <= score.most || score.least < score.most);
        if is_right { Ok(()) } else { Err(self.wrong(member as u32, standing.score)) }
    }

    /// Whether a score that is read after the load can be. Errors: what it must be.
    pub fn check(&self, member: u32, found: i64) -> Result<(), String> {
        let Score { least, most, .. } = self.scores[member as usize];
        if (least..=most).contains(&found) { Ok(()) } else { Err(self.wrong(member, found)) }
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

fn up_to(least: i64, most: i64) -> String {
    if most > least { format!(" to {most}") } else { String::new() }
}
