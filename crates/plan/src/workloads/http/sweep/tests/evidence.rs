use super::*;

#[test]
fn a_disturbed_rung_counts_only_where_undisturbed_neighbours_agree() {
    let disturbed = |loads: &'static [f64], factor: f64| {
        let mut rungs = one_cell().rungs();
        edited(
            &mut rungs,
            move |rung| loads.contains(&rung.load),
            |rung| {
                (rung.disturbed_share, rung.rate_per_s) = (Some(0.3), rung.rate_per_s * factor);
            },
        );
        let steps = |rungs: &[Rung]| -> Vec<f64> {
            Sweep::of(rungs).cells.iter().flat_map(|cell| &cell.steps).map(|step| step.requesters).collect()
        };
        (0..16).map(|at| f64::from(at + 1)).filter(|load| !steps(&rungs).contains(load)).collect::<Vec<f64>>()
    };
    let none: [f64; 0] = [];
    // On the way up, at the knee, on the plateau; the first and the last of the rungs without failures.
    for load in [&[4.0] as &[f64], &[10.0], &[12.0], &[1.0], &[16.0], &[4.0, 5.0]] {
        assert_eq!(disturbed(load, 1.0), none, "{load:?}");
    }
    for load in [&[4.0] as &[f64], &[10.0], &[12.0], &[1.0]] {
        assert_eq!(disturbed(load, 0.8), load, "{load:?}");
        assert_eq!(disturbed(load, 1.3), load, "{load:?}");
    }
    // If everything was disturbed the next neighbours decide: no disturbance makes rates agree.
    let mut all = plant().rungs();
    edited(&mut all, |_| true, |rung| rung.disturbed_share = Some(0.01));
    assert_eq!(ids(&all), ids(&plant().rungs()));
    edited(&mut all, |_| true, |rung| rung.rate_per_s *= 1.0 + 0.2 * (rung.load * 7.0).sin());
    assert!(!ids(&all).contains(&"linearity".to_owned()), "{:?}", ids(&all));
}

#[test]
fn a_disturbed_rung_that_fails_or_drops_frames_alone_is_no_evidence() {
    let mut rungs = Plant { queue: 99.0, ..one_cell() }.rungs();
    let spoiled = |rung: &Rung| rung.load == 8.0;
    edited(&mut rungs, spoiled, |rung| (rung.disturbed_share, rung.failed) = (Some(0.5), 3));
    silent(&rungs, "failures");
    edited(&mut rungs, spoiled, |rung| rung.disturbed_share = Some(0.0));
    check(&rungs, "failures", "begin at 8 requesters");
    let frames = |share: f64| Some(FrameFigures { rate_per_s: 30.0 * share, due: None, drawn: 1 });
    edited(&mut rungs, spoiled, |rung| {
        (rung.disturbed_share, rung.failed, rung.frames) = (Some(0.5), 0, frames(0.5));
    });
    assert!(Sweep::of(&rungs).cells[0].step(8.0).is_none());
}
