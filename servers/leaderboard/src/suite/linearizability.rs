//! Whether recorded concurrent histories are linearizable.
//!
//! A history is a list of calls with the instants of call and return. It is linearizable if some order of the calls, in
//! which no call comes before one that had returned when it began, gives every result on a board that one thread uses.
//! The search tries all such orders and remembers the states it has seen (Wing and Gong 1993, with Lowe's memory).
//! The boards have the tie rule `first`, under which a sequential board has exactly one right result for every call.
//! Sequence numbers are not compared: they would give away the order chosen by the board under test.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{Leaderboard, Mode, Options, TieRule, Update};
use super::{Check, Make, Verdict, same};

pub(super) const CHECKS: &[Check] = &[("histories_are_linearizable", histories_are_linearizable)];

const MEMBERS: [&str; 3] = ["ann", "bob", "cid"];

type Member = usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Call {
    Increment(Member, i64),
    Replace(Member, i64),
    /// Adds the first amount to one member and the second to another, at one moment.
    Bulk([(Member, i64); 2]),
    Get(Member),
    Delete(Member),
    Top,
}

/// Scores with ranks, or members with scores, as the call returns them.
type Answer = Vec<Option<(i64, u64)>>;

#[derive(Clone, Debug)]
struct Event {
    call: Call,
    called: u64,
    returned: u64,
    answer: Answer,
}

/// A board for one thread: members in the order of their ranks. Equal scores are in the order they were reached.
type State = Vec<(Member, i64)>;

fn standing(state: &State, member: Member) -> Option<(i64, u64)> {
    let at = state.iter().position(|each| each.0 == member)?;
    Some((state[at].1, at as u64 + 1))
}

fn set(state: &mut State, member: Member, score: i64) -> Option<(i64, u64)> {
    let old = state.iter().position(|each| each.0 == member);
    if old.is_none_or(|at| state[at].1 != score) {
        old.map(|at| state.remove(at));
        let at = state.partition_point(|each| each.1 >= score);
        state.insert(at, (member, score));
    }
    standing(state, member)
}

fn increment(state: &mut State, member: Member, by: i64) -> Option<(i64, u64)> {
    let had = standing(state, member).map_or(0, |had| had.0);
    set(state, member, had + by)
}

/// What a sequential board answers.
fn perform(state: &mut State, call: &Call) -> Answer {
    match *call {
        Call::Increment(member, by) => vec![increment(state, member, by)],
        Call::Replace(member, score) => vec![set(state, member, score)],
        Call::Bulk(items) => items.iter().map(|&(member, by)| increment(state, member, by)).collect(),
        Call::Get(member) => vec![standing(state, member)],
        Call::Delete(member) => {
            let had = standing(state, member);
            state.retain(|each| each.0 != member);
            vec![had.map(|had| (had.0, 0))]
        }
        Call::Top => state.iter().map(|&(member, score)| Some((score, member as u64))).collect(),
    }
}

/// Whether some order of the events explains all answers. At most 64 events.
fn is_linearizable(events: &[Event]) -> bool {
    let mut seen = HashSet::new();
    search(events, 0, &State::new(), &mut seen)
}

/// Tries each event that may come next after those in `done`, a bit per event.
fn search(events: &[Event], done: u64, state: &State, seen: &mut HashSet<(u64, State)>) -> bool {
    let open = || (0..events.len()).filter(|at| done >> at & 1 == 0);
    // A call that began after another had returned cannot come before it.
    let Some(first_return) = open().map(|at| events[at].returned).min() else { return true };
    if !seen.insert((done, state.clone())) {
        return false;
    }
    open().filter(|&at| events[at].called < first_return).any(|at| {
        let mut next = state.clone();
        perform(&mut next, &events[at].call) == events[at].answer
            && search(events, done | 1 << at, &next, seen)
    })
}

/// Makes a call on a real board.
fn ask(board: &dyn Leaderboard, call: &Call) -> Answer {
    let narrow = |score: &super::super::Score| score.as_i64().expect("small scores");
    let update = |member: Member, mode: Mode, score: i64| {
        let outcome = board.update(MEMBERS[member], mode, &score.into()).expect("a valid name");
        vec![Some((narrow(&outcome.score), outcome.rank))]
    };
    match *call {
        Call::Increment(member, by) => update(member, Mode::Increment, by),
        Call::Replace(member, score) => update(member, Mode::Replace, score),
        Call::Bulk(items) => {
            let updates = items.map(|(member, by)| Update {
                member: MEMBERS[member],
                mode: Mode::Increment,
                score: by.into(),
            });
            let outcomes = board.update_bulk(&updates).expect("valid names");
            outcomes.iter().map(|outcome| Some((narrow(&outcome.score), outcome.rank))).collect()
        }
        Call::Get(member) => {
            vec![board.get(MEMBERS[member]).map(|standing| (narrow(&standing.score), standing.rank))]
        }
        Call::Delete(member) => {
            vec![board.delete(MEMBERS[member]).map(|deleted| (narrow(&deleted.score), 0))]
        }
        Call::Top => {
            let number = |name: &str| MEMBERS.iter().position(|each| *each == name).expect("a member") as u64;
            let rows = board.top(MEMBERS.len()).rows;
            rows.iter().map(|row| Some((narrow(&row.score), number(&row.member)))).collect()
        }
    }
}

/// Lets each thread make its calls in turn, and records them.
fn record(board: &dyn Leaderboard, scripts: &[Vec<Call>]) -> Vec<Event> {
    let (clock, start) = (AtomicU64::new(0), Barrier::new(scripts.len()));
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let run = |script: &[Call]| {
        start.wait();
        let event = |call: &Call| {
            let called = tick();
            let answer = ask(board, call);
            Event { call: call.clone(), called, returned: tick(), answer }
        };
        script.iter().map(event).collect::<Vec<_>>()
    };
    let run = &run;
    std::thread::scope(|scope| {
        let threads: Vec<_> = scripts.iter().map(|script| scope.spawn(move || run(script))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn random_call(random: &mut fastrand::Rng) -> Call {
    let member = random.usize(0..MEMBERS.len());
    let amount = random.i64(-2..3);
    match random.u8(0..10) {
        0..3 => Call::Increment(member, amount),
        3 | 4 => Call::Replace(member, amount),
        5 => Call::Bulk([(member, amount), ((member + 1) % MEMBERS.len(), -amount)]),
        6 | 7 => Call::Get(member),
        8 => Call::Delete(member),
        _ => Call::Top,
    }
}

fn histories_are_linearizable(make: Make<'_>) -> Verdict {
    const THREADS: usize = 3;
    const CALLS: usize = 8;
    let options = Options { ties: TieRule::First, ..Options::default() };
    let mut random = fastrand::Rng::with_seed(23);
    for round in 0..60 {
        let mut scripts: Vec<Vec<Call>> =
            (0..THREADS).map(|_| (0..CALLS).map(|_| random_call(&mut random)).collect()).collect();
        if round == 0 {
            // The interleaving that boards which pause in the middle of their first update cannot survive.
            scripts = vec![vec![Call::Increment(0, 1)]; 2];
        }
        let board = make(options);
        let mut events = record(&*board, &scripts);
        let begin = events.iter().map(|event| event.returned).max().unwrap_or(0);
        for (number, call) in (1..).zip([Call::Top, Call::Get(0)]) {
            let answer = ask(&*board, &call);
            events.push(Event { call, called: begin + 2 * number, returned: begin + 2 * number + 1, answer });
        }
        if !is_linearizable(&events) {
            events.sort_by_key(|event| event.called);
            return Err(format!("round {round}: no order explains {events:#?}"));
        }
        same!(board.count(), board.top(10).rows.len() as u64, "the count");
    }
    Ok(())
}

/// A call from `called` to `returned` with its answer.
#[cfg(test)]
fn event(call: Call, called: u64, returned: u64, answer: &[Option<(i64, u64)>]) -> Event {
    Event { call, called, returned, answer: answer.to_vec() }
}

#[test]
fn a_history_that_only_another_order_explains_is_accepted() {
    // Thread 1 calls first, but its answer shows that thread 2 was earlier.
    let history = [
        event(Call::Increment(0, 1), 0, 5, &[Some((3, 1))]),
        event(Call::Increment(0, 2), 1, 4, &[Some((2, 1))]),
        event(Call::Top, 6, 7, &[Some((3, 0))]),
    ];
    assert!(is_linearizable(&history));
}

#[test]
fn planted_histories_that_no_order_explains_are_rejected() {
    let lost_update = [
        event(Call::Increment(0, 1), 0, 3, &[Some((1, 1))]),
        event(Call::Increment(0, 1), 1, 2, &[Some((1, 1))]),
    ];
    let stale_read = [event(Call::Replace(0, 7), 0, 1, &[Some((7, 1))]), event(Call::Get(0), 2, 3, &[None])];
    // Two readers disagree on which of two concurrent updates came first.
    let readers_disagree = [
        event(Call::Replace(0, 1), 0, 9, &[Some((1, 1))]),
        event(Call::Replace(1, 1), 1, 9, &[Some((1, 2))]),
        event(Call::Get(1), 2, 3, &[Some((1, 1))]),
    ];
    let half_a_bulk = [
        event(Call::Bulk([(0, 1), (1, 1)]), 0, 5, &[Some((1, 1)), Some((1, 2))]),
        event(Call::Get(0), 1, 2, &[Some((1, 1))]),
        event(Call::Get(1), 3, 4, &[None]),
    ];
    let first_too_late = [
        event(Call::Replace(0, 5), 0, 1, &[Some((5, 1))]),
        event(Call::Replace(1, 5), 2, 3, &[Some((5, 1))]),
    ];
    for history in
        [&lost_update[..], &stale_read[..], &readers_disagree[..], &half_a_bulk[..], &first_too_late[..]]
    {
        assert!(!is_linearizable(history), "{history:#?}");
    }
}

#[test]
fn the_sequential_board_agrees_with_a_real_one() {
    let mut random = fastrand::Rng::with_seed(4);
    let options = Options { ties: TieRule::First, ..Options::default() };
    let board = super::Implementation::OneLock.create(options);
    let mut state = State::new();
    for _ in 0..2_000 {
        let call = random_call(&mut random);
        assert_eq!(ask(&*board, &call), perform(&mut state, &call), "{call:?}");
    }
}
