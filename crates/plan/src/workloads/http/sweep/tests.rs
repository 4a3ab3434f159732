use ladder::testing::{TrialBuilder, terms};
use ladder::{FrameFigures, judge, rung};
use proptest::prelude::*;

use super::*;

mod evidence;
mod facts;
mod limits;
mod rates;

/// A loop as it is planted: what it gives follows from these figures alone, without noise.
#[derive(Clone)]
struct Plant {
    tick_hz: f64,
    slots: f64,
    queue: f64,
    loads: Vec<u32>,
    cells: Vec<Planted>,
}

#[derive(Clone)]
struct Planted {
    names: BTreeMap<String, String>,
    bytes: f64,
    cost_ms: f64,
    draw_ms: f64,
    /// answers go before the frame
    yields: bool,
    cpu_share: f64,
}

fn cell(service: &str, view: &str, priority: &str) -> Planted {
    let names = [("service", service), ("view", view), ("priority", priority)]
        .map(|(axis, value)| (axis.to_owned(), value.to_owned()));
    let is_long = service == "object";
    Planted {
        names: names.into(),
        bytes: if is_long { 8_200.0 } else { 700.0 },
        cost_ms: if is_long { 2.4 } else { 0.1 },
        draw_ms: if view == "foreground" { 24.0 } else { 1.0 },
        yields: priority == "below-normal",
        cpu_share: if is_long { 0.4 } else { 0.02 },
    }
}

/// One cell of short answers, with nothing drawn.
fn one_cell() -> Plant {
    Plant { cells: vec![cell("root", "background", "normal")], ..plant() }
}

fn six_cells() -> Vec<Planted> {
    let mut cells = Vec::new();
    for (view, priority) in
        [("background", "normal"), ("foreground", "normal"), ("foreground", "below-normal")]
    {
        cells.extend(["root", "object"].map(|service| cell(service, view, priority)));
    }
    cells
}

fn plant() -> Plant {
    Plant { tick_hz: 30.0, slots: 10.0, queue: 14.0, loads: (1..=16).collect(), cells: six_cells() }
}

impl Plant {
    fn rungs(&self) -> Vec<Rung> {
        let empty = pattern();
        let of_cell = |cell: &Planted| -> Vec<Rung> {
            self.loads.iter().map(|&load| self.rung(cell, f64::from(load), empty.clone())).collect()
        };
        self.cells.iter().flat_map(of_cell).collect()
    }

    fn rung(&self, cell: &Planted, load: f64, mut rung: Rung) -> Rung {
        let period_ms = 1e3 / self.tick_hz;
        let room_ms = 0.98 * period_ms - if cell.yields { 0.0 } else { cell.draw_ms };
        let per_tick = load.min(self.slots).min(room_ms / cell.cost_ms);
        let answers_ms = per_tick * cell.cost_ms;
        let drawn = ((0.98 * period_ms - answers_ms) / cell.draw_ms).clamp(0.0, 1.0);
        (rung.load, rung.hold_s, rung.cell) = (load, 2.0, Some(cell.names.clone()));
        rung.rate_per_s = per_tick * self.tick_hz;
        rung.bytes_per_s = Some(rung.rate_per_s * cell.bytes);
        rung.frames = Some(FrameFigures { rate_per_s: drawn * self.tick_hz, due: Some(60), drawn: 60 });
        if let Some(service) = &mut rung.service_ns {
            service.mean = Some(load / rung.rate_per_s * 1e9);
        }
        if let Some(ticks) = &mut rung.ticks {
            ticks.period_ns = (period_ms * 1e6) as u64;
            ticks.busy_ns = rung.service_ns.clone();
            if let Some(busy) = &mut ticks.busy_ns {
                busy.mean = Some((answers_ms + drawn * cell.draw_ms) * 1e6);
            }
        }
        if let Some(subject) = &mut rung.subject {
            subject.process.cpu_share = Some(cell.cpu_share);
        }
        if load > self.queue {
            (rung.failed, rung.verdict) = (8, Verdict::Fail);
            rung.error_samples = vec![ErrorSample {
                cause: "rejected (429, 503)".to_owned(),
                text: "GET /: status 503".to_owned(),
            }];
        }
        rung
    }
}

/// A rung of requesters with everything told, to be written over.
fn pattern() -> Rung {
    let trial = TrialBuilder { hold_s: 2, ..TrialBuilder::polling(1.0) }.build();
    rung(&trial, &judge(&trial, None, &terms("errors == 0")))
}

fn ids(rungs: &[Rung]) -> Vec<String> {
    sweep(rungs).into_iter().map(|found| found.id).collect()
}

fn find(rungs: &[Rung], id: &str) -> Option<Conclusion> {
    sweep(rungs).into_iter().find(|found| found.id == id)
}

/// A conclusion is there and says this: parts with … between them.
#[track_caller]
fn check(rungs: &[Rung], id: &str, says: &str) {
    let text = find(rungs, id).expect(id).text;
    for part in says.split(" … ") {
        assert!(text.contains(part), "\"{part}\" is not in: {text}");
    }
}

/// A conclusion is not there.
#[track_caller]
fn silent(rungs: &[Rung], id: &str) {
    let found = find(rungs, id);
    assert!(found.is_none(), "{found:?}");
}

fn edited(rungs: &mut [Rung], which: impl Fn(&Rung) -> bool, edit: impl Fn(&mut Rung)) {
    let mut count = 0;
    for rung in rungs.iter_mut() {
        if which(rung) {
            edit(rung);
            count += 1;
        }
    }
    assert!(count > 0, "nothing was edited");
}

fn is(rung: &Rung, axis: &str, value: &str) -> bool {
    rung.cell.as_ref().is_some_and(|cell| cell.get(axis).is_some_and(|found| found == value))
}

#[test]
fn the_published_sweep_is_found_again() {
    let rungs = plant().rungs();
    assert_eq!(
        ids(&rungs),
        [
            "base_rate",
            "ceiling",
            "best_requesters",
            "linearity",
            "never_super_linear",
            "failures",
            "frames_drop",
            "responses_collapse",
            "short_answers",
            "cost_of_long_answers",
        ]
    );
    let says = "One requester gets 30.0/s responses: one request per tick of 30.0/s ticks in all 6 cells.";
    check(&rungs, "base_rate", says);
    let says = "Nothing gets more than 300.0/s responses: 10 requests per tick at 30.0/s (tick quantisation, 10 slots); \
                10 to 16 requesters all get that.";
    check(&rungs, "ceiling", says);
    let says = "10 requesters reach 99 % of the ceiling; 14 requesters get 300.0/s, which is no more, and wait 46.7 ms \
                instead of 33.3 ms.";
    check(&rungs, "best_requesters", says);
    let says = "linear up to 10 requesters in root · background … 10.00 with 10 … not linear in object · foreground · \
         normal: 3.61 with 10";
    check(&rungs, "linearity", says);
    check(&rungs, "never_super_linear", "never super-linear … at most 1.00 of it");
    let says = "Failures begin at 15 requesters in all 6 cells (none failed up to 14); the first: rejected (429, 503): \
                 GET /: status 503.";
    check(&rungs, "failures", says);
    let says = "Frames drop in object · foreground · below-normal from 5 requesters on: 25.8/s of 30.0/s, 10.8/s with \
         16 … its responses stay at 300.0/s there … with priority normal or service root they keep their \
         frames";
    check(&rungs, "frames_drop", says);
    let says = "Responses collapse in object · foreground · normal from 5 requesters on: 108.3/s with 10, where \
         object · background · normal gets 300.0/s … the frames stay at 30.0/s";
    check(&rungs, "responses_collapse", says);
    let says = "Short answers do neither. … root · foreground · normal (700 B) gets 300.0/s and keeps 30.0/s frames \
         with 14 requesters, where object · foreground · normal (8.2 kB) does not.";
    check(&rungs, "short_answers", says);
    let says = "object · foreground · normal (8.2 kB) beside root · foreground · normal (700 B), with 10 requesters: \
         108.3/s against 300.0/s, 92.3 ms against 33.3 ms, 40 % of the CPU against 2 %.";
    check(&rungs, "cost_of_long_answers", says);
}

#[test]
fn every_conclusion_names_its_figures() {
    for found in sweep(&plant().rungs()) {
        assert!(!found.evidence.is_empty(), "{}", found.id);
    }
    let ceiling = find(&plant().rungs(), "ceiling").unwrap().evidence;
    assert_eq!((&ceiling["slots"], &ceiling["cause"]), (&json!(10), &json!("tick quantisation")));
    let linearity = find(&plant().rungs(), "linearity").unwrap().evidence;
    assert_eq!(linearity["cells"][0]["speed_ups"][8], json!([10.0, 10.0]));
    assert_eq!(find(&plant().rungs(), "failures").unwrap().evidence["requesters"], 15.0);
}

#[test]
fn rungs_that_speak_of_this_machine_are_no_evidence() {
    let mut rungs = plant().rungs();
    // Whatever the reason: no conclusion is drawn from an unjudged rung.
    for (verdict, signal) in [
        (Verdict::GeneratorLimited, None),
        (Verdict::Inconclusive, Some("disturbed")),
        (Verdict::Inconclusive, Some("response.p99")),
        (Verdict::Invalid, Some("response.p99")),
    ] {
        let judged = |rung: &mut Rung| (rung.verdict, rung.signal) = (verdict, signal.map(str::to_owned));
        edited(&mut rungs, |_| true, judged);
        assert_eq!(ids(&rungs), [] as [&str; 0], "{verdict} {signal:?}");
    }
}

#[test]
fn other_subjects_have_no_sweep() {
    let mut rungs = plant().rungs();
    edited(&mut rungs, |_| true, |rung| rung.load_unit = LoadUnit::Clients);
    assert_eq!(ids(&rungs), [] as [&str; 0]);
    let mut untold = plant().rungs();
    edited(&mut untold, |_| true, |rung| rung.ticks = None);
    assert_eq!(ids(&untold), [] as [&str; 0]);
    assert!(sweep(&[]).is_empty());
}

#[test]
fn one_cell_without_a_name_is_a_sweep_too() {
    let mut rungs = one_cell().rungs();
    edited(&mut rungs, |_| true, |rung| rung.cell = None);
    check(&rungs, "base_rate", "30.0/s ticks.");
    check(&rungs, "ceiling", "10 slots");
    check(&rungs, "failures", "Failures begin at 15 requesters (none failed up to 14)");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn linear_data_without_noise_is_never_called_super_linear(
        base in 0.5f64..500.0, loads in proptest::collection::btree_set(2u32..60, 3..12), hold_s in 1.0f64..60.0
    ) {
        let mut rungs = Plant { loads: std::iter::once(1).chain(loads).collect(), ..one_cell() }.rungs();
        for rung in &mut rungs {
            (rung.rate_per_s, rung.hold_s, rung.failed) = (base * rung.load, hold_s, 0);
            rung.verdict = Verdict::Pass;
        }
        prop_assert!(find(&rungs, "super_linear").is_none());
        prop_assert!(find(&rungs, "never_super_linear").is_some());
        prop_assert!(find(&rungs, "linearity").is_some_and(|found| found.evidence["is_linear"] == true));
    }

    #[test]
    fn whichever_rungs_are_missing_it_never_panics(
        keep in proptest::collection::vec(any::<bool>(), 96), zero in 0usize..96, bare in 0usize..96
    ) {
        let mut rungs = plant().rungs();
        rungs[zero].rate_per_s = 0.0;
        let one = &mut rungs[bare];
        (one.frames, one.service_ns, one.bytes_per_s, one.subject) = (None, None, None, None);
        let mut keep = keep.into_iter();
        rungs.retain(|_| keep.next().unwrap_or(false));
        for found in sweep(&rungs) {
            prop_assert!(found.text.len() > 8 && !found.text.contains("NaN") && !found.text.contains("inf"), "{}", found.text);
        }
    }
}
