//! What must hold when threads use a board concurrently.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::{Leaderboard, Mode, Options, Outcome, Update};
use super::behaviour::set;
use super::{Check, Make, Verdict, same};

pub(super) const CHECKS: &[Check] = &[
    ("two_increments_meet", two_increments_meet),
    ("increments_add_up", increments_add_up),
    ("every_number_of_a_change_is_given_once", every_number_of_a_change_is_given_once),
    ("bulks_are_seen_whole", bulks_are_seen_whole),
    ("members_come_and_go_without_a_trace", members_come_and_go_without_a_trace),
    ("equal_scores_are_first_a_fair_share", equal_scores_are_first_a_fair_share),
];

/// Runs `work` with the numbers of threads, all at once.
fn at_once<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        let run = |thread| {
            let (start, work) = (&start, &work);
            move || {
                start.wait();
                work(thread)
            }
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn increment(board: &dyn Leaderboard, member: &str, by: i64) -> Result<Outcome, String> {
    board.update(member, Mode::Increment, &by.into()).map_err(|refused| refused.to_string())
}

/// All views of a member must agree once all is quiet.
fn same_views(board: &dyn Leaderboard, member: &str, score: i64) -> Verdict {
    same!(board.get(member).map(|standing| standing.score), Some(score.into()), "the score of {member}");
    let page = board.around(member, 0).ok_or("no page around a member")?;
    same!(page.rows[0].score, score.into(), "the score of {member} in a listing");
    same!(&*page.rows[0].member, member, "the member in a listing around {member}");
    Ok(())
}

fn two_increments_meet(make: Make<'_>) -> Verdict {
    let board = make(Options::default());
    let mut outcomes =
        at_once(2, |_| increment(&*board, "ann", 1)).into_iter().collect::<Result<Vec<_>, _>>()?;
    outcomes.sort_by(|a, b| a.score.cmp(&b.score));
    let scores: Vec<_> = outcomes.iter().map(|outcome| outcome.score.to_string()).collect();
    same!(scores, ["1", "2"], "the scores returned");
    same_views(&*board, "ann", 2)
}

fn increments_add_up(make: Make<'_>) -> Verdict {
    const THREADS: usize = 4;
    const EACH: i64 = 1_000;
    let board = make(Options::default());
    // The first update by itself must be a thread's: where a board pauses in it, another thread's is lost.
    let other = Update { member: "other", mode: Mode::Replace, score: 100_i64.into() };
    board.update_bulk(&[other]).map_err(|refused| refused.to_string())?;
    let results = at_once(THREADS, |thread| {
        for number in 0..EACH {
            increment(&*board, "all", 1)?;
            increment(&*board, &format!("own {thread}"), 2)?;
            if number % 50 == 0 {
                let updates = ["all", "own 0"].map(|member| Update {
                    member,
                    mode: Mode::Increment,
                    score: 5_i64.into(),
                });
                board.update_bulk(&updates).map_err(|refused| refused.to_string())?;
            }
        }
        Ok::<_, String>(())
    });
    results.into_iter().collect::<Result<(), _>>()?;
    let bulks = THREADS as i64 * EACH / 50 * 5;
    same_views(&*board, "all", THREADS as i64 * EACH + bulks)?;
    same_views(&*board, "own 0", 2 * EACH + bulks)?;
    for thread in 1..THREADS {
        same_views(&*board, &format!("own {thread}"), 2 * EACH)?;
    }
    same!(board.count(), 2 + THREADS as u64, "the count");
    same!(board.top(100).rows.len(), 2 + THREADS, "the rows");
    Ok(())
}

fn every_number_of_a_change_is_given_once(make: Make<'_>) -> Verdict {
    const THREADS: usize = 4;
    const EACH: u64 = 300;
    let board = make(Options::default());
    let numbers = at_once(THREADS, |thread| {
        let member = format!("m{}", thread % 2);
        (0..EACH).map(|_| increment(&*board, &member, 1).map(|outcome| outcome.sequence)).collect()
    });
    let numbers = numbers.into_iter().collect::<Result<Vec<Vec<u64>>, String>>()?;
    if let Some(backwards) = numbers.iter().find(|numbers| !numbers.is_sorted()) {
        return Err(format!("a thread's changes were numbered {backwards:?}"));
    }
    let distinct: HashSet<u64> = numbers.into_iter().flatten().collect();
    same!(distinct, (1..=THREADS as u64 * EACH).collect(), "the numbers of all changes");
    Ok(())
}

/// One thread moves score between two members by bulks; others must always see the same sum.
fn bulks_are_seen_whole(make: Make<'_>) -> Verdict {
    let board = make(Options::default());
    for member in ["ann", "bob"] {
        set(&*board, member, 0)?;
    }
    let done = AtomicBool::new(false);
    let verdicts = at_once(3, |thread| {
        if thread == 0 {
            for number in 0..1_500_i64 {
                let updates = [("ann", number), ("bob", -number)].map(|(member, score)| Update {
                    member,
                    mode: Mode::Replace,
                    score: score.into(),
                });
                board.update_bulk(&updates).map_err(|refused| refused.to_string())?;
            }
            done.store(true, Ordering::Relaxed);
            return Ok(());
        }
        while !done.load(Ordering::Relaxed) {
            let scores = if thread == 1 {
                board.get_many(&["ann", "bob"]).into_iter().flatten().map(|each| each.score).collect()
            } else {
                board.top(2).rows.into_iter().map(|row| row.score).collect::<Vec<_>>()
            };
            same!(scores.len(), 2, "the members seen");
            same!(scores[0].plus(&scores[1]), 0_i64.into(), "the sum of what bulks move, of {scores:?}");
        }
        Ok(())
    });
    verdicts.into_iter().collect()
}

/// Threads add and delete the same members; a listing must never show a member twice or leave a gap.
fn members_come_and_go_without_a_trace(make: Make<'_>) -> Verdict {
    let board = make(Options::default());
    let verdicts = at_once(4, |thread| {
        let mut random = fastrand::Rng::with_seed(thread as u64);
        for _ in 0..600 {
            let member = format!("m{}", random.u8(0..8));
            match random.u8(0..4) {
                0 | 1 => drop(increment(&*board, &member, random.i64(-3..4))?),
                2 => drop(board.delete(&member)),
                _ => {
                    let page = board.top(20);
                    let names: HashSet<_> = page.rows.iter().map(|row| row.member.clone()).collect();
                    same!(names.len() as u64, page.total, "the members listed");
                    same!(
                        page.rows.is_sorted_by(|a, b| a.score >= b.score),
                        true,
                        "the order of {:?}",
                        page.rows
                    );
                }
            }
        }
        Ok(())
    });
    verdicts.into_iter().collect::<Verdict>()?;
    for number in 0..8 {
        board.delete(&format!("m{number}"));
    }
    same!((board.count(), board.top(20).rows.len()), (0, 0), "the members left");
    Ok(())
}

/// Under `random` each of k members with equal scores is first in 1/k of the rounds, within five standard deviations.
fn equal_scores_are_first_a_fair_share(make: Make<'_>) -> Verdict {
    const MEMBERS: [&str; 3] = ["ann", "bob", "zoe"];
    const ROUNDS: u32 = 2_000;
    let board = make(Options { seed: Some(11), ..Options::default() });
    let mut first = [0_u32; 3];
    for round in 0..ROUNDS {
        // Alternating, so that neither the name nor the order of updates may decide.
        for turn in 0..3 {
            set(&*board, MEMBERS[(round as usize + turn) % 3], 7)?;
        }
        let winner = &board.top(1).rows[0].member;
        first[MEMBERS
            .iter()
            .position(|member| *member == &**winner)
            .ok_or("an unknown member is first")?] += 1;
    }
    let expected = f64::from(ROUNDS) / 3.0;
    let tolerance = 5.0 * (expected * 2.0 / 3.0).sqrt();
    if first.iter().any(|&count| (f64::from(count) - expected).abs() > tolerance) {
        return Err(format!("of {ROUNDS} rounds {first:?} were won; fair is {expected:.0} ± {tolerance:.0}"));
    }
    Ok(())
}
