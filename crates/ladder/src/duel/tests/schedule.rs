use super::*;

fn plain(blocks_most: usize) -> Duel {
    // A δ that is never reached: the duel runs to its end.
    duel(1, blocks_most, 1e-9, 42)
}

fn noisy() -> World {
    World::new(Noise::Independent, 0.3, &[1.0], 5)
}

#[test]
fn a_block_holds_both_sides_and_the_order_is_a_fair_coin() {
    let duel = plain(100);
    let (held, stop) = noisy().fight(&duel, &duel.rules());
    assert_eq!((stop, held.len()), (DuelStop::Blocks, 200));
    let sides: Vec<Side> = held.iter().filter_map(|trial| Side::of(&trial.judged.cell)).collect();
    assert!(sides.chunks(2).all(|block| block[0] != block[1]));
    let first: Vec<Side> = sides.chunks(2).map(|block| block[0]).collect();
    let a_first = first.iter().filter(|side| **side == Side::A).count();
    assert!((35..=65).contains(&a_first), "{a_first} of 100");
    let changes = first.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((35..=65).contains(&changes), "and does not alternate: {changes}");
}

#[test]
fn the_next_trial_follows_from_the_held_ones_in_any_order() {
    let mut duel = plain(6);
    duel.loads = vec![100.0, 200.0];
    duel.calibrations = vec![(Purpose::CalibrationLatency, 64.0), (Purpose::CalibrationCeiling, 65.0)];
    let (held, _) = noisy().fight(&duel, &duel.rules());
    assert_eq!(held.len(), 2 + 2 * 12);
    for count in 0..held.len() {
        let mut before = held[..count].to_vec();
        before.reverse();
        let (seq, purpose, load, side) = match duel.next(&before, &duel.rules()) {
            DuelNext::Trial(order) => (order.seq, Purpose::Rung, order.load, Some(order.side)),
            DuelNext::Calibration(order) => (order.seq, order.purpose, order.load, None),
            DuelNext::Done(stop) => panic!("it was held: {stop:?}"),
        };
        let trial = &held[count];
        assert_eq!((seq, purpose, load), (trial.seq, trial.judged.purpose, trial.judged.load));
        assert_eq!(side, Side::of(&trial.judged.cell));
    }
    let loads: Vec<f64> = held[2..].chunks(2).map(|block| block[0].judged.load).collect();
    assert_eq!(loads[..4], [100.0, 200.0, 100.0, 200.0], "loads take turns");
    let other = Duel { seed: 43, ..duel.clone() };
    let order = |duel: &Duel| -> Vec<Option<Side>> {
        let (held, _) = noisy().fight(duel, &duel.rules());
        held.iter().map(|trial| Side::of(&trial.judged.cell)).collect()
    };
    assert_ne!(order(&duel), order(&other));
}

#[test]
fn an_unfair_trial_drops_its_block_and_another_one_is_held() {
    let duel = plain(4);
    let (rules, mut world) = (duel.rules(), noisy());
    let mut held: Vec<HeldTrial> = Vec::new();
    let mut numbers = Vec::new();
    while let DuelNext::Trial(order) = duel.next(&held, &rules) {
        numbers.push((order.block, order.begins_block));
        let mut trial = world.hold(&order);
        // The first of the second block, and the second of the third.
        if [2, 4].contains(&order.seq) {
            trial.unfair = Some("GENERATOR_LIMITED".to_owned());
        }
        held.push(trial);
    }
    assert_eq!(held.len(), 8 + 1 + 2, "a half block, and a whole one");
    let (first, second) = (true, false);
    let expected = [(0, first), (0, second), (1, first), (2, first), (2, second), (3, first), (3, second)];
    assert_eq!(numbers[..7], expected, "both of a block have its number, which no other has");
    let standing = duel.standing(&held, &rules).loads.remove(0);
    assert_eq!(standing.blocks, 4);
    assert_eq!(standing.dropped.len(), 2);
    assert!(
        standing.dropped.iter().all(|why| why.ends_with(": GENERATOR_LIMITED")),
        "{:?}",
        standing.dropped
    );
}

fn spoil(duel: &Duel, spoil: impl Fn(&mut HeldTrial)) -> (usize, DuelStop) {
    let (rules, mut world, mut held) = (duel.rules(), noisy(), Vec::new());
    loop {
        match duel.next(&held, &rules) {
            DuelNext::Done(stop) => return (held.len(), stop),
            DuelNext::Calibration(order) => held.push(crate::duel::world::calibration(&order)),
            DuelNext::Trial(order) => {
                let mut trial = world.hold(&order);
                spoil(&mut trial);
                held.push(trial);
            }
        }
    }
}

#[test]
fn nothing_follows_what_would_make_it_meaningless() {
    let duel = plain(10);
    let unfair = |trial: &mut HeldTrial| trial.unfair = Some("INVALID".to_owned());
    assert_eq!(spoil(&duel, unfair), (4, DuelStop::Unfair));
    let interrupted = |trial: &mut HeldTrial| trial.judged.was_interrupted = trial.seq == 6;
    assert_eq!(spoil(&duel, interrupted), (7, DuelStop::Interrupted));
    for (side, stop) in [(Side::A, DuelStop::ExitedA), (Side::B, DuelStop::ExitedB)] {
        let dies = |trial: &mut HeldTrial| {
            trial.judged.subject_exited = trial.seq >= 4 && Side::of(&trial.judged.cell) == Some(side);
        };
        let (held, why) = spoil(&duel, dies);
        assert_eq!(why, stop);
        assert!((5..=6).contains(&held), "{held}");
    }
    let mut gated = plain(10);
    gated.gates = vec!["deliveries.latency.p99 <= +5%".parse().expect("a gate")];
    let says_nothing = |trial: &mut HeldTrial| {
        trial.figures.push(FigureValue::Absent("there are no books of deliveries"));
    };
    assert_eq!(spoil(&gated, says_nothing), (4, DuelStop::NotMeasured));
}

#[test]
fn a_duel_never_begins_a_block_that_would_end_beyond_its_budget() {
    let mut duel = plain(10);
    // A trial takes 10 s.
    duel.budget_ns = 99_000_000_000;
    assert_eq!(spoil(&duel, |_| ()), (8, DuelStop::Budget));
    let slower = |trial: &mut HeldTrial| trial.took_ns *= 2;
    assert_eq!(spoil(&duel, slower), (4, DuelStop::Budget));
}

#[test]
fn a_duel_ends_as_soon_as_it_knows() {
    let duel = duel(1, 40, 0.05, 1);
    let (held, stop) = World::new(Noise::Independent, 0.02, &[1.5], 3).fight(&duel, &duel.rules());
    assert_eq!(stop, DuelStop::Known);
    assert!(held.len() <= 12, "{}", held.len());
    let (held, stop) = World::new(Noise::Independent, 0.01, &[1.0], 3).fight(&duel, &duel.rules());
    assert_eq!(stop, DuelStop::Known);
    assert!(held.len() <= 20, "equality within δ is known too: {}", held.len());
}

#[test]
fn gates_decide_when_there_are_any() {
    let mut duel = plain(40);
    let fight = |duel: &Duel, ratio: f64| {
        let (held, stop) = World::new(Noise::Independent, 0.02, &[ratio], 3).fight(duel, &duel.rules());
        let standing = duel.standing(&held, &duel.rules());
        (stop, standing.loads[0].gates[0].state, held.len())
    };
    duel.gates = vec!["response.p50 <= +10%".parse().expect("a gate")];
    let (stop, state, held) = fight(&duel, 1.0);
    assert_eq!((stop, state), (DuelStop::Known, GateState::Met));
    assert!(held < 30, "though δ was not reached: {held}");
    assert_eq!(fight(&duel, 1.2).1, GateState::NotMet);
    duel.blocks_most = 4;
    assert_eq!(fight(&duel, 1.1).1, GateState::Undecided);
}

#[test]
fn a_server_that_stops_answering_does_not_pass_a_gate() {
    let mut duel = plain(20);
    duel.gates = vec!["response.p50 <= +10%".parse().expect("a gate")];
    let (rules, mut world, mut held) = (duel.rules(), noisy(), Vec::new());
    let stop = loop {
        match duel.next(&held, &rules) {
            DuelNext::Done(stop) => break stop,
            DuelNext::Calibration(_) => panic!("this duel asks for none"),
            DuelNext::Trial(order) => {
                let mut trial = world.hold(&order);
                if order.side == Side::B {
                    trial.figures = vec![FigureValue::Infinite];
                    trial.judged.verdict = Some(Verdict::Fail);
                }
                held.push(trial);
            }
        }
    };
    let standing = duel.standing(&held, &rules).loads.remove(0);
    assert_eq!((stop, standing.gates[0].state), (DuelStop::Known, GateState::NotMet));
    assert_eq!(standing.findings[0].verdict, DuelVerdict::Larger);
    assert_eq!(standing.findings[0].change_text(), "infinite (infinite to infinite)");
}
