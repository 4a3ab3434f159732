//! Random histories of one thread, compared with the model after every step.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

#[cfg(test)]
use super::super::Implementation;
use super::super::{
    Direction, Leaderboard, Mode, Options, Outcome, Page, Record, Score, Snapshot, Standing, TieRule, Update,
};
use super::model::Model;
use super::{Make, Verdict, same};

#[derive(Clone, Debug)]
enum Step {
    Update(u8, Mode, Score),
    Bulk(Vec<(u8, Mode, Score)>),
    Delete(u8),
    Metadata(u8, Option<String>),
    Range(u64, usize),
    Around(u8, usize),
    GetMany(Vec<u8>),
    Reset,
    /// The snapshot goes into a new board, which takes over.
    Move,
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Replace), Just(Mode::Increment), Just(Mode::Decrement), Just(Mode::Best)]
}

/// Few distinct values, so that ties are common, and values around every bound.
fn score() -> impl Strategy<Value = Score> {
    prop_oneof![
        8 => (-3..4_i64).prop_map(Score::from),
        2 => any::<i64>().prop_map(Score::from),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MIN + 1), Just(i64::MAX)].prop_map(Score::from),
        1 => any::<i128>().prop_map(Score::from),
        1 => "-?[1-9][0-9]{38,42}".prop_map(|text| text.parse().expect("a number")),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let member = || 0..30_u8;
    prop_oneof![
        20 => (member(), mode(), score()).prop_map(|(member, mode, score)| Step::Update(member, mode, score)),
        5 => prop::collection::vec((member(), mode(), score()), 0..40).prop_map(Step::Bulk),
        4 => member().prop_map(Step::Delete),
        2 => (member(), prop::option::of("[a-z]{0,3}")).prop_map(|(member, text)| Step::Metadata(member, text)),
        2 => (0..40_u64, 0..10_usize).prop_map(|(first, limit)| Step::Range(first, limit)),
        2 => (member(), 0..5_usize).prop_map(|(member, each_side)| Step::Around(member, each_side)),
        2 => prop::collection::vec(member(), 0..40).prop_map(Step::GetMany),
        1 => Just(Step::Reset),
        1 => Just(Step::Move),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let direction = prop_oneof![Just(Direction::Descending), Just(Direction::Ascending)];
    let ties = prop_oneof![Just(TieRule::Random), Just(TieRule::First), Just(TieRule::Last)];
    (direction, ties).prop_map(|(direction, ties)| Options { direction, ties, seed: Some(5) })
}

/// Short names and names that do not fit into a record.
fn name(number: u8) -> String {
    if number.is_multiple_of(2) {
        format!("m{number}")
    } else {
        format!("a member with a long name, number {number}")
    }
}

fn check_outcome(model: &Model, name: &str, outcome: &Outcome) -> Verdict {
    let at = model.position(name).ok_or("updated members exist")?;
    let member = &model.members[at];
    let wanted = Outcome {
        score: member.score.clone(),
        rank: at as u64 + 1,
        tie: member.tie,
        sequence: model.sequence,
    };
    same!(outcome, &wanted, "the outcome for {name}");
    Ok(())
}

fn check_page(model: &Model, page: &Page, first: usize, limit: usize) -> Verdict {
    same!(page.total, model.members.len() as u64, "the total");
    let first = first.max(1);
    let wanted: Vec<_> = model
        .members
        .iter()
        .enumerate()
        .skip(first - 1)
        .take(limit)
        .map(|(at, member)| {
            (at as u64 + 1, member.name.clone(), member.score.clone(), member.metadata.clone())
        })
        .collect();
    let row = |row: &super::super::Row| {
        (row.rank, row.member.to_string(), row.score.clone(), row.metadata.as_deref().map(str::to_owned))
    };
    same!(page.rows.iter().map(row).collect::<Vec<_>>(), wanted, "{limit} rows from {first} on");
    Ok(())
}

fn check_snapshot(model: &Model, snapshot: &Snapshot) -> Verdict {
    let record = |member: &super::model::Member| Record {
        member: member.name.as_str().into(),
        score: member.score.clone(),
        tie: member.tie,
        metadata: member.metadata.as_deref().map(Into::into),
    };
    let records = model.members.iter().map(record).collect();
    same!(snapshot, &Snapshot { sequence: model.sequence, records }, "the snapshot");
    Ok(())
}

fn take(make: Make<'_>, options: Options, steps: &[Step]) -> Verdict {
    let mut board = make(options);
    let mut model = Model::new(options);
    for step in steps {
        step_both(&mut board, &mut model, step, &|seed| make(Options { seed: Some(seed), ..options }))?;
        same!(board.count(), model.members.len() as u64, "the count after {step:?}");
    }
    check_page(&model, &board.top(100), 1, 100)
}

fn step_both(
    board: &mut Box<dyn Leaderboard>,
    model: &mut Model,
    step: &Step,
    create: &dyn Fn(u64) -> Box<dyn Leaderboard>,
) -> Verdict {
    let standing = |model: &Model, number: u8| {
        let at = model.position(&name(number))?;
        Some(Standing { score: model.members[at].score.clone(), rank: at as u64 + 1 })
    };
    match step {
        Step::Update(number, mode, score) => {
            let name = name(*number);
            let outcome = board.update(&name, *mode, score).map_err(|refused| refused.to_string())?;
            model.update(&name, *mode, score, outcome.tie);
            check_outcome(model, &name, &outcome)?;
            same!(board.get(&name), standing(model, *number), "the standing");
        }
        Step::Bulk(items) => {
            let names: Vec<String> = items.iter().map(|item| name(item.0)).collect();
            let update =
                |(item, member): (&(u8, Mode, Score), &'_ String)| (member.clone(), item.1, item.2.clone());
            let owned: Vec<_> = items.iter().zip(&names).map(update).collect();
            let updates: Vec<Update<'_>> = owned
                .iter()
                .map(|(member, mode, score)| Update { member, mode: *mode, score: score.clone() })
                .collect();
            let outcomes = board.update_bulk(&updates).map_err(|refused| refused.to_string())?;
            same!(outcomes.len(), updates.len(), "the number of outcomes");
            for (update, outcome) in updates.iter().zip(&outcomes) {
                model.update(update.member, update.mode, &update.score, outcome.tie);
                check_outcome(model, update.member, outcome)?;
            }
        }
        Step::Delete(number) => {
            let at = model.position(&name(*number));
            let wanted = at.map(|at| {
                model.sequence += 1;
                (model.members.remove(at).score, model.sequence)
            });
            let deleted = board.delete(&name(*number)).map(|deleted| (deleted.score, deleted.sequence));
            same!(deleted, wanted, "what was deleted");
        }
        Step::Metadata(number, text) => {
            let set =
                board.set_metadata(&name(*number), text.as_deref()).map_err(|refused| refused.to_string())?;
            let wanted = model.position(&name(*number)).map(|at| {
                model.members[at].metadata.clone_from(text);
                model.sequence += 1;
                model.sequence
            });
            same!(set, wanted, "the number of the change");
        }
        Step::Range(first, limit) => {
            check_page(model, &board.range(*first, *limit), *first as usize, *limit)?;
            let (total, from) = (board.count(), (*first).max(1));
            let mut back = board.range_back(from, *limit);
            back.rows.reverse();
            let last = (total + 1).saturating_sub(from) as usize;
            let lowest = last + 1 - last.min(*limit);
            check_page(model, &back, lowest, last.min(*limit))?
        }
        Step::Around(number, each_side) => {
            match (board.around(&name(*number), *each_side), model.position(&name(*number))) {
                (None, None) => {}
                (Some(page), Some(at)) => {
                    let first = (at + 1).saturating_sub(*each_side).max(1);
                    check_page(model, &page, first, at + 1 - first + each_side + 1)?;
                }
                (page, at) => return Err(format!("around: {page:?}, but the model has it at {at:?}")),
            }
        }
        Step::GetMany(numbers) => {
            let names: Vec<String> = numbers.iter().map(|&number| name(number)).collect();
            let got = board.get_many(&names.iter().map(String::as_str).collect::<Vec<_>>());
            let wanted: Vec<_> = numbers.iter().map(|&number| standing(model, number)).collect();
            same!(got, wanted, "several members");
        }
        Step::Reset => {
            let season = board.reset();
            model.sequence += 1;
            check_snapshot(model, &season)?;
            model.members.clear();
        }
        Step::Move => {
            let snapshot = board.snapshot();
            check_snapshot(model, &snapshot)?;
            // Another seed: with the same one it would draw ties again that the restored members have.
            *board = create(6 + model.sequence);
            board.restore(&snapshot).map_err(|refused| refused.to_string())?;
            check_snapshot(model, &board.snapshot())?;
        }
    }
    Ok(())
}

#[test]
fn any_history_agrees_with_a_sorted_vector_on_every_implementation() {
    for implementation in Implementation::ALL {
        if let Err(wrong) = check(&|options| implementation.create(options), 64, |_| true) {
            panic!("{implementation}: {wrong}");
        }
    }
}

fn check(make: Make<'_>, cases: u32, keeps: fn(&Step) -> bool) -> Verdict {
    let mut runner =
        TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) });
    let histories = (options(), prop::collection::vec(step(), 0..120));
    let result = runner.run(&histories, |(options, mut steps)| {
        steps.retain(keeps);
        take(make, options, &steps).map_err(TestCaseError::fail)
    });
    result.map_err(|wrong| wrong.to_string())
}

/// Histories for boards without metadata, seasons and snapshots, and with scores of a few bits only.
pub fn check_small_histories(make: Make<'_>, cases: u32) -> Verdict {
    fn is_small(score: &Score) -> bool {
        score.as_i64().is_some_and(|score| score.unsigned_abs() < 1_000)
    }
    check(make, cases, |step| match step {
        Step::Update(_, _, score) => is_small(score),
        Step::Bulk(items) => items.iter().all(|(_, _, score)| is_small(score)),
        Step::Metadata(..) | Step::Reset | Step::Move => false,
        Step::Delete(_) | Step::Range(..) | Step::Around(..) | Step::GetMany(_) => true,
    })
}
