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
}

enum Step {
    /// scores and ranks of these members at one moment
    Standings(Vec<u32>),
    /// who has this rank: this member, by what was read before
    Rank { rank: u64, member: u32 },
    /// it is over, or was given up
    Done,
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
            self.steps.extend(all.chunks(CHUNK).map(|chunk| Step::Standings(chunk.to_vec())));
        }
        let token = self.next;
        (token < self.steps.len()).then(|| {
            self.next += 1;
            token as u64
        })
    }

    /// What is asked in a step.
    pub fn request(&self, token: u64, members: &Members) -> Ask {
        match &self.steps[token as usize] {
            Step::Standings(chunk) => {
                Ask::Standings(chunk.iter().map(|member| members.name(*member)).collect())
            }
            Step::Rank { rank, .. } => Ask::At(*rank),
            Step::Done => Ask::Top(1),
        }
    }

    pub fn give_up(&mut self, token: u64) {
        self.steps[token as usize] = Step::Done;
    }

    /// Facts checked, and what is wrong.
    pub fn check(&mut self, token: u64, dialect: &Dialect, body: &[u8], members: &Members) -> (u64, Wrong) {
        match std::mem::replace(&mut self.steps[token as usize], Step::Done) {
            Step::Standings(chunk) => self.check_standings(&chunk, dialect.standings(body), members),
            Step::Rank { rank, member } => (1, check_rank(rank, member, dialect.page(body), members)),
            Step::Done => (0, None),
        }
    }

    fn check_standings(
        &mut self,
        chunk: &[u32],
        found: Result<Vec<Option<Standing<'_>>>, String>,
        members: &Members,
    ) -> (u64, Wrong) {
        let checked = chunk.len() as u64;
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
            let found = match row {
                Some(row) => members.check(*member, row.score),
                None => members.missing(*member).map_or(Ok(()), Err),
            };
            if let Err(text) = found {
                add(false, text);
            }
        }
        let mut ranked: Vec<(u64, i64, u32)> = chunk
            .iter()
            .zip(&rows)
            .filter_map(|(member, row)| row.as_ref().map(|row| (row.rank, row.score, *member)))
            .collect();
        ranked.sort_unstable();
        for pair in ranked.windows(2) {
            let ((rank, score, member), (next_rank, next_score, _)) = (pair[0], pair[1]);
            if rank == 0 || next_rank == rank || next_score > score {
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
        self.steps.extend(some.map(|&(rank, _, member)| Step::Rank { rank, member }));
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
