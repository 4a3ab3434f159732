use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const PERIOD: u64 = 33 * MS;

fn rules(priority: Priority, drawing_ns: u64) -> Rules {
    Rules { slots: 10, period_ns: PERIOD, drawing_ns, priority }
}

/// An answer of this many pieces, each of which takes this long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Work {
    id: u64,
    pieces: u32,
    piece_ns: u64,
}

/// A loop whose work takes exactly as long as it should.
struct Loop {
    turn: Turn<Work>,
    tick: u64,
    answered: Vec<u64>,
    /// Requests whose clients are not there any more.
    gone: HashMap<u64, Peer>,
    /// Pieces that went out in the last tick.
    pieces: u32,
    /// When the last tick's work ended.
    rested_ns: u64,
}

impl Loop {
    fn new(rules: Rules) -> Loop {
        Loop {
            turn: Turn::new(rules),
            tick: 0,
            answered: Vec::new(),
            gone: HashMap::new(),
            pieces: 0,
            rested_ns: 0,
        }
    }

    fn begins_ns(&self) -> u64 {
        self.tick * PERIOD
    }

    fn run_tick(&mut self) {
        self.tick += 1;
        let mut now_ns = self.begins_ns().max(self.rested_ns);
        let gone = &self.gone;
        self.turn.begin(now_ns, self.tick * PERIOD + PERIOD, 0, |work| {
            gone.get(&work.id).copied().unwrap_or(Peer::There)
        });
        self.pieces = 0;
        loop {
            match self.turn.next(now_ns) {
                Step::Answer(work) => {
                    self.pieces += 1;
                    now_ns += work.piece_ns;
                    work.pieces -= 1;
                    if work.pieces == 0 {
                        self.answered.extend(self.turn.answered().map(|work| work.id));
                    }
                }
                Step::Simulate => now_ns += 20_000,
                Step::Draw(piece_ns) => {
                    now_ns += piece_ns;
                    self.turn.drew(piece_ns);
                }
                Step::Rest => break,
            }
        }
        self.rested_ns = now_ns;
    }

    /// As many requesters as said, each asking again as soon as it was answered. Answers and frames per second.
    fn rates(rules: Rules, requesters: u64, pieces: u32, piece_ns: u64) -> (f64, f64) {
        const TICKS: u64 = 3_000;
        let mut one = Loop::new(rules);
        (0..requesters).for_each(|id| one.turn.arrive(0, Work { id, pieces, piece_ns }));
        let mut total = 0;
        for _ in 0..TICKS {
            one.run_tick();
            total += one.answered.len();
            let asks = std::mem::take(&mut one.answered);
            let at_ns = one.begins_ns() + 1;
            asks.iter().for_each(|id| one.turn.arrive(at_ns, Work { id: *id, pieces, piece_ns }));
        }
        let seconds = TICKS as f64 / 30.0;
        (total as f64 / seconds, one.turn.frames.drawn as f64 / seconds)
    }
}

fn short(id: u64) -> Work {
    Work { id, pieces: 1, piece_ns: 100_000 }
}

#[test]
fn a_tick_takes_the_oldest_ten_and_leaves_the_rest_waiting() {
    let mut one = Loop::new(rules(Priority::Normal, MS));
    (0..23).for_each(|id| one.turn.arrive(5, short(id)));
    one.run_tick();
    assert_eq!(one.answered, (0..10).collect::<Vec<_>>());
    one.run_tick();
    one.run_tick();
    assert_eq!(one.answered, (0..23).collect::<Vec<_>>());
    assert!(one.turn.is_idle());
}

#[test]
fn five_thousand_requests_of_clients_that_have_gone_delay_nobody() {
    for peer in [Peer::Gone, Peer::HalfClosed] {
        let mut one = Loop::new(rules(Priority::Normal, MS));
        (0..5_000).for_each(|id| one.turn.arrive(5, short(id)));
        one.gone = (0..5_000).map(|id| (id, peer)).collect();
        (5_000..5_025).for_each(|id| one.turn.arrive(6, short(id)));
        one.run_tick();
        one.run_tick();
        assert_eq!(one.answered, (5_000..5_020).collect::<Vec<_>>());
        one.run_tick();
        let live: Vec<u64> = one.answered.drain(..).filter(|id| *id >= 5_000).collect();
        assert_eq!(live, (5_000..5_025).collect::<Vec<_>>());
        // A client that has only shut down its sending side is answered if there is room, in order.
        while !one.turn.is_idle() {
            one.run_tick();
        }
        assert!(one.tick <= 3 + 500);
        let expected = if peer == Peer::Gone { 0 } else { 4_995 };
        assert_eq!((one.answered.len(), one.answered.is_sorted()), (expected, true));
    }
}

#[test]
fn who_half_closes_and_then_goes_is_dropped_when_its_turn_comes() {
    let mut one = Loop::new(Rules { slots: 1, ..rules(Priority::Normal, MS) });
    (0..3).for_each(|id| one.turn.arrive(5, short(id)));
    one.gone = [(0, Peer::HalfClosed), (1, Peer::HalfClosed)].into();
    one.run_tick();
    one.gone.insert(0, Peer::Gone);
    one.run_tick();
    assert_eq!(one.answered, [2, 1]);
    assert!(one.turn.is_idle());
}

#[test]
fn a_request_that_arrives_with_the_ticks_start_or_after_it_waits_for_the_next() {
    let mut one = Loop::new(rules(Priority::Normal, MS));
    one.turn.arrive(PERIOD - 1, short(1));
    one.turn.arrive(PERIOD, short(2));
    one.turn.arrive(PERIOD + 1, short(3));
    one.run_tick();
    assert_eq!(one.answered, [1]);
    one.run_tick();
    assert_eq!(one.answered, [1, 2, 3]);
}

#[test]
fn at_normal_priority_the_frame_is_kept_and_the_answers_go_on_in_their_slots() {
    let mut one = Loop::new(rules(Priority::Normal, 24 * MS));
    // 9 ms minus the spare part are for answers: four of 2 ms fit, and a piece that was begun is completed.
    (0..12).for_each(|id| one.turn.arrive(0, Work { id, pieces: 20, piece_ns: 100_000 }));
    one.run_tick();
    assert_eq!(one.answered, [0, 1, 2, 3]);
    assert_eq!(one.turn.frames, Frames { due: 1, drawn: 1, skipped: 0 });
    assert!(one.rested_ns <= 2 * PERIOD);
    assert_eq!((one.turn.under_way.len(), one.turn.waiting.len()), (6, 2));
    one.run_tick();
    assert_eq!(
        (one.turn.under_way.len(), one.turn.waiting.len()),
        (4, 0),
        "the slots that fell free were given away"
    );
    assert_eq!(one.turn.frames, Frames { due: 2, drawn: 2, skipped: 0 });
}

#[test]
fn one_piece_goes_out_per_tick_even_where_drawing_leaves_nothing() {
    let mut one = Loop::new(rules(Priority::Normal, 40 * MS));
    one.turn.arrive(0, Work { id: 7, pieces: 3, piece_ns: 100_000 });
    for pieces_left in [2, 1] {
        one.run_tick();
        assert_eq!(one.pieces, 1);
        assert_eq!(one.turn.under_way[0].pieces, pieces_left);
    }
    one.run_tick();
    assert_eq!(one.answered, [7]);
}

#[test]
fn long_answers_in_the_foreground_cost_responses_at_normal_priority_and_frames_below_it() {
    let check = |priority, requesters, responses: f64, frames: f64| {
        let (found_responses, found_frames) = Loop::rates(rules(priority, 24 * MS), requesters, 6, 400_000);
        assert!((found_responses - responses).abs() < 0.02 * responses, "{found_responses} responses");
        assert!((found_frames - frames).abs() < 0.02 * frames + 0.1, "{found_frames} frames");
    };
    // 2.4 ms each: three fit beside the frame, and part of a fourth.
    check(Priority::Normal, 3, 90.0, 30.0);
    check(Priority::Normal, 10, 104.9, 30.0);
    // 24 ms of ten answers leave 9 ms for drawing: three eighths of a frame.
    check(Priority::BelowNormal, 3, 90.0, 30.0);
    check(Priority::BelowNormal, 10, 300.0, 11.2);
}

#[test]
fn short_answers_and_long_ones_in_the_background_cost_neither() {
    for priority in [Priority::Normal, Priority::BelowNormal] {
        for (drawing_ns, pieces, piece_ns) in [(24 * MS, 1, 150_000), (MS, 6, 400_000)] {
            let (responses, frames) = Loop::rates(rules(priority, drawing_ns), 10, pieces, piece_ns);
            assert!((responses - 300.0).abs() < 1.0 && (frames - 30.0).abs() < 0.1, "{responses} {frames}");
        }
    }
}

#[test]
fn where_answers_fill_the_tick_below_normal_priority_no_frame_is_drawn() {
    let (responses, frames) = Loop::rates(rules(Priority::BelowNormal, 24 * MS), 10, 10, 400_000);
    assert!((responses - 247.0).abs() < 10.0, "{responses}");
    assert!(frames < 1.0, "{frames}");
}

#[test]
fn a_frame_that_runs_over_by_little_costs_no_frame() {
    let mut one = Loop::new(rules(Priority::Normal, 24 * MS));
    // This tick begins 10 ms late: its frame ends in the next, which draws its own anyway.
    one.rested_ns = PERIOD + 10 * MS;
    one.run_tick();
    assert_eq!(one.turn.frames, Frames { due: 1, drawn: 0, skipped: 0 });
    one.run_tick();
    assert_eq!(one.turn.frames, Frames { due: 2, drawn: 2, skipped: 0 });
}

#[test]
fn ticks_that_were_missed_have_had_their_frames_skipped() {
    let mut one = Loop::new(rules(Priority::Normal, 24 * MS));
    one.run_tick();
    one.turn.begin(9 * PERIOD, 10 * PERIOD, 7, |_| Peer::There);
    assert_eq!(one.turn.frames, Frames { due: 9, drawn: 1, skipped: 7 });
}

proptest! {
    #[test]
    fn whatever_happens_frames_balance_slots_hold_and_answers_keep_their_order(
        below: bool,
        drawing_ms in 0u64..60,
        arrivals in proptest::collection::vec((0u64..3, 1u32..9, 0u64..4 * MS), 0..120),
        lates in proptest::collection::vec(0u64..50 * MS, 120),
    ) {
        let priority = if below { Priority::BelowNormal } else { Priority::Normal };
        let mut one = Loop::new(rules(priority, drawing_ms * MS));
        let mut arrivals = arrivals.into_iter().enumerate().peekable();
        for late_ns in lates {
            while let Some((id, (_, pieces, piece_ns))) = arrivals.next_if(|(id, (skip, ..))| id % 3 >= *skip as usize) {
                one.turn.arrive(one.begins_ns(), Work { id: id as u64, pieces, piece_ns });
            }
            arrivals.next();
            one.rested_ns += late_ns;
            let had_work = !one.turn.is_idle();
            one.run_tick();
            prop_assert!(one.turn.under_way.len() <= 10);
            prop_assert!(!had_work || one.pieces > 0);
            let Frames { due, drawn, skipped } = one.turn.frames;
            prop_assert!(drawn + skipped <= due && due <= drawn + skipped + 2, "{:?}", one.turn.frames);
            prop_assert!(one.answered.is_sorted());
        }
    }
}
