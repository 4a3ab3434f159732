//! The audit: which facts are read back after the load, and whether they are right.

use super::dialect::{Ask, Dialect};
use super::members::Members;
use super::reply::{Page, Standing};

/// Members whose scores are read in one request.
const CHUNK: usize = 100;
/// Members that are read back by one worker, at most.
const MEMBERS_MOST: usize = 20_000;
/// Members whose rank is looked up from the other side.
const RANKS: usize = 50;

/// What one worker reads back. A token names a step.
#[derive(Default)]
pub struct Audit {
    steps: Vec<Step>,
    next: usize,
    is_planned: bool,
    /// look-ups of ranks that were planned, answered or not
    ranks: usize,
    /// facts that were given up for good
    unread: u64,
}

struct Step {
    ask: StepAsk,
    /// it was refused before, and is asked again
    is_second: bool,
}

enum StepAsk {
    /// scores and ranks of these members at one moment
    Standings(Vec<u32>),
    /// who has this rank: this member, according to an earlier read
    Rank { rank: u64, member: u32 },
    /// it is over, or was given up
    Done,
}

impl StepAsk {
    fn first(self) -> Step {
        Step { ask: self, is_second: false }
    }

    /// Members whose scores it reads, or the one whose rank it looks up.
    fn facts(&self) -> u64 {
        match self {
            StepAsk::Standings(chunk) => chunk.len() as u64,
            StepAsk::Rank { .. } => 1,
            StepAsk::Done => 0,
        }
    }
}

/// Facts that were wrong: how many, whether a rank is, and a text for the first.
pub type Wrong = Option<(u64, bool, String)>;

impl Audit {
    /// The next step, if there is one.
    pub fn next(&mut self, members: &Members, random: &mut fastrand::Rng) -> Option<u64> {
        if !self.is_planned {
            self.is_planned = true;
            let mut all: Vec<u32> = members.updated().collect();
            random.shuffle(&mut all);
            all.truncate(MEMBERS_MOST);
            self.steps.extend(all.chunks(CHUNK).map(|chunk| StepAsk::Standings(chunk.to_vec()).first()));
        }
        let token = self.next;
        (token < self.steps.len()).then(|| {
            self.next += 1;
            token as u64
        })
    }

    /// What is asked in a step.
    pub fn request(&self, token: u64, members: &Members) -> Ask {
        match &self.steps[token as usize].ask {
            StepAsk::Standings(chunk) => {
                Ask::Standings(chunk.iter().map(|member| members.name(*member)).collect())
            }
            StepAsk::Rank { rank, .. } => Ask::At(*rank),
            StepAsk::Done => Ask::Top(1),
        }
    }

    /// A step was refused or never answered. It is asked once more, since a service may be busy for a moment.
    pub fn give_up(&mut self, token: u64) {
        let step = &mut self.steps[token as usize];
        let ask = std::mem::replace(&mut step.ask, StepAsk::Done);
        if step.is_second {
            self.unread += ask.facts();
        } else if ask.facts() > 0 {
            self.steps.push(Step { ask, is_second: true });
        }
    }

    /// The trial ends: what was not read back by now is not going to be.
    pub fn end(&mut self) {
        for step in &mut self.steps {
            self.unread += std::mem::replace(&mut step.ask, StepAsk::Done).facts();
        }
    }

    /// Facts that were requested but not answered, since the last call.
    pub fn take_unread(&mut self) -> u64 {
        std::mem::take(&mut self.unread)
    }

    /// Facts checked, and what is wrong.
    pub fn check(&mut self, token: u64, dialect: &Dialect, body: &[u8], members: &Members) -> (u64, Wrong) {
        match std::mem::replace(&mut self.steps[token as usize].ask, StepAsk::Done) {
            StepAsk::Standings(chunk) => self.check_standings(&chunk, dialect.standings(body), members),
            StepAsk::Rank { rank, member } => (1, check_rank(rank, member, dialect.page(body), members)),
            StepAsk::Done => (0, None),
        }
    }

    fn check_standings(
        &mut self,
        chunk: &[u32],
        found: Result<Vec<Option<Standing<'_>>>, String>,
        members: &Members,
    ) -> (u64, Wrong) {
        let mut checked = chunk.len() as u64;
        let rows = match found {
            Ok(found) if found.len() == chunk.len() => found,
            Ok(found) => {
                let text = format!("{} standings for {checked} members", found.len());
                return (checked, Some((checked, false, text)));
            }
            Err(text) => return (checked, Some((checked, false, text))),
        };
        let mut wrong: Wrong = None;
        let mut add = |is_rank: bool, text: String| match &mut wrong {
            Some((count, ..)) => *count += 1,
            None => wrong = Some((1, is_rank, text)),
        };
        for (member, row) in chunk.iter().zip(&rows) {
            match row {
                Some(row) => match members.check(*member, row) {
                    Err(text) => add(false, text),
                    Ok(()) if row.rank == 0 => add(true, format!("{} has rank 0", members.name(*member))),
                    Ok(()) => {}
                },
                None => {
                    if let Some(text) = members.missing(*member) {
                        add(false, text);
                    }
                }
            }
        }
        let mut ranked: Vec<(u64, i64, u32)> = chunk
            .iter()
            .zip(&rows)
            .filter_map(|(member, row)| row.as_ref().map(|row| (row.rank, row.score, *member)))
            .collect();
        ranked.sort_unstable();
        // Each rank compared with the next one is a fact too.
        checked += ranked.len().saturating_sub(1) as u64;
        for pair in ranked.windows(2) {
            let ((rank, score, member), (next_rank, next_score, _)) = (pair[0], pair[1]);
            if next_rank == rank || next_score > score {
                let name = members.name(member);
                add(
                    true,
                    format!(
                        "{name} has rank {rank} with {score} points, another rank {next_rank} with {next_score}"
                    ),
                );
            }
        }
        let every = (ranked.len() / 10).max(1);
        let some = ranked.iter().step_by(every).take(RANKS - self.ranks);
        let planned = self.steps.len();
        self.steps.extend(some.map(|&(rank, _, member)| StepAsk::Rank { rank, member }.first()));
        self.ranks += self.steps.len() - planned;
        (checked, wrong)
    }
}

fn check_rank(rank: u64, member: u32, page: Result<Page<'_>, String>, members: &Members) -> Wrong {
    let name = members.name(member);
    match page {
        Err(text) => Some((1, true, text)),
        Ok(page) => match page.rows.first() {
            Some(row) if row.member == name && row.rank == rank => None,
            Some(row) => Some((
                1,
                true,
                format!("{name} has rank {rank}, and there is {} (rank {})", row.member, row.rank),
            )),
            None => Some((1, true, format!("{name} has rank {rank}, and no member is there"))),
        },
    }
}
