//! The command line of a duel: two subjects, each as the arguments of `climb` in one string, and options for both.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use climb::judging::{CEILING_CLIENTS, LATENCY_CLIENTS, hold_ns};
use climb::options::Settings;
use climb::outputs::{Followed, ResultFiles};
use console::comparing;
use console::other_runs::Wait;
use ladder::duel::{BLOCKS_LEAST, BLOCKS_MOST, Duel, Gate, Side};
use measure::Purpose;
use plan::layers::settings;
use plan::units::{self, duration_ns_within};
use plan::{Arrivals, Plan, SubjectSource};

use super::sides::{SidePlan, differences};
use crate::libraries;

/// Options of `duel`.
#[derive(Debug, Args)]
#[command(
    override_usage = "stepladder duel 'SUBJECT [OPTIONS OF climb]' 'SUBJECT [OPTIONS OF climb]' [OPTIONS]\n       \
                      stepladder duel 'bench --target URL [OPTIONS OF bench]' 'bench --target URL [OPTIONS OF bench]' [OPTIONS]",
    after_help = "Examples: stepladder duel 'arena -- --ticker steady' 'arena -- --ticker catch-up' --rungs 500\n          \
                  stepladder duel 'bench --target redis://127.0.0.1:6379 --client ./old' 'bench --target redis://127.0.0.1:6379 \
                  --client ./new' --gate 'ops >= 0.95x'\n\
                  Gates: FIGURE OP CHANGE from A to B, e.g. response.p99 <= +5%, rate_per_s >= 1.0x, ticks.late_share <= +1pp, \
                  errors <= +0; of client libraries ops, latency.p50, latency.p99, latency.p999, cpu_per_op, rss_peak; \
                  stepladder climb --help lists the figures\n\
                  Exit: 0 measured, or all gates met; 1 a gate missed, or B ended under load; 2 undecided or could not be \
                  measured; 3 wrong usage; 130 interrupted."
)]
pub struct DuelArgs {
    /// What B is compared with, e.g. 'arena -- --ticker steady' or 'ws://127.0.0.1:9001 --start "./old"'
    #[arg(value_name = "A")]
    a: String,
    /// What is compared, in the same form; the same as A checks the machine (A/A)
    #[arg(value_name = "B")]
    b: String,
    #[command(flatten)]
    settings: Settings<false>,
    /// whether it waits for other runs
    #[command(flatten, next_help_heading = "Duel")]
    pub wait: Wait,
    /// A change from A to B that must be kept, e.g. 'response.p99 <= +5%'; several times for several
    #[arg(long, value_name = "GATE", help_heading = "Duel")]
    gate: Vec<String>,
    /// How long all trials together may take [default: 10m; of client libraries 60s]
    #[arg(long, value_name = "TIME", help_heading = "Duel")]
    budget: Option<String>,
    /// What differs by less counts as equal
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Duel")]
    delta: String,
    /// Drop a trial, and its block, of which a larger share of seconds was disturbed by other programs; 100% keeps all
    #[arg(long, value_name = "SHARE", default_value = "100%", help_heading = "Duel")]
    disturbed: String,
    /// Let a scenario start its command, and lead built-in servers to files and addresses
    #[arg(long, help_heading = "Subject")]
    allow_start: bool,
    /// the files of its results
    #[command(flatten, next_help_heading = "Output")]
    pub results: ResultFiles,
    /// what is written while it goes on
    #[command(flatten, next_help_heading = "Output")]
    pub followed: Followed,
    /// Write the results here as one HTML file that opens anywhere
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Show the duel as a page on 127.0.0.1 while it goes on, opened where there is a desktop; on a terminal also afterwards,
    /// until Ctrl-C
    #[arg(long, help_heading = "Output")]
    pub view: bool,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db", help_heading = "Output")]
    pub store: PathBuf,
}

/// A duel, completely decided.
pub struct Decided {
    /// which trials
    pub duel: Duel,
    /// what B is compared with
    pub a: SidePlan,
    /// what is compared
    pub b: SidePlan,
    /// what the user should know before it begins
    pub remarks: Vec<String>,
}

/// Beside ramp, settling and hold: connecting, draining, a fresh server.
const AROUND_NS: u64 = 2_000_000_000;
const BUDGET: &str = "10m";
/// Of client libraries: a performance unit test.
const BUDGET_OF_LIBRARIES: &str = "60s";
const BUDGET_NS_LEAST: u64 = 1_000_000_000;
const BUDGET_NS_MOST: u64 = 7 * 24 * 3_600_000_000_000;
impl DuelArgs {
    /// What is asked where both sides are runs of `bench`; `None`: they are servers. Errors: one of each, or options of the
    /// other kind.
    pub fn of_libraries(&self) -> anyhow::Result<Option<libraries::Asked<'_>>> {
        let texts = [self.a.as_str(), self.b.as_str()];
        if !libraries::is_meant(texts)? {
            return Ok(None);
        }
        if let Some(one) = settings().find(|one| !self.settings.0.all(one).is_empty()) {
            bail!(
                "{} is about servers; write what the client libraries are to do into both sides, as options of bench",
                one.flag
            );
        }
        if let Some(flag) = self.followed.first_flag() {
            bail!("{flag} tells the seconds of servers; leave it out of a duel of client libraries");
        }
        Ok(Some(libraries::Asked {
            texts,
            gates: self.gates()?,
            budget_ns: budget_ns(self.budget.as_deref().unwrap_or(BUDGET_OF_LIBRARIES))?,
            delta: delta(&self.delta)?,
            results: &self.results,
            store: &self.store,
            view: self.view,
            report: self.report.as_deref(),
        }))
    }

    fn gates(&self) -> anyhow::Result<Vec<Gate>> {
        self.gate.iter().map(|text| text.parse::<Gate>().context("--gate")).collect()
    }

    /// Reads everything. Errors: the author's mistakes, with the place and what to do.
    pub fn decide(&self) -> anyhow::Result<Decided> {
        let gates = self.gates()?;
        let of_libraries =
            gates.iter().find(|gate| ladder::duel::libraries::named(gate.figure().name).is_some());
        if let Some(gate) = of_libraries {
            bail!(
                "--gate '{gate}': {} is a figure of client libraries (duel 'bench …' 'bench …')",
                gate.figure().name
            );
        }
        let asked = Asked {
            gates,
            figures: None,
            budget_ns: budget_ns(self.budget.as_deref().unwrap_or(BUDGET))?,
            delta: delta(&self.delta)?,
            disturbed_share_most: units::share(&self.disturbed).context("--disturbed")?,
        };
        let seed = fastrand::u64(..);
        let common = &self.settings.0;
        let a = SidePlan::read(Side::A, &self.a, common, self.allow_start, seed)?;
        let b = SidePlan::read(Side::B, &self.b, common, self.allow_start, seed)?;
        Decided::of(a, b, asked)
    }
}

/// What is asked of a duel besides its sides.
#[derive(Clone, Debug)]
pub struct Asked {
    /// changes that must be kept
    pub gates: Vec<Gate>,
    /// names of the figures that are compared; `None`: the usual ones
    pub figures: Option<Vec<String>>,
    /// how long all trials may take, ns
    pub budget_ns: u64,
    /// what differs by less counts as equal, e.g. 0.05
    pub delta: f64,
    /// a trial of which a larger share was disturbed does not count
    pub disturbed_share_most: f64,
}

impl Decided {
    /// A duel of two sides. Errors: they are not held alike, or no verdict is possible within the budget.
    pub fn of(a: SidePlan, b: SidePlan, asked: Asked) -> anyhow::Result<Decided> {
        let Asked { gates, figures, budget_ns, delta, disturbed_share_most } = asked;
        check_alike(&a.plan, &b.plan)?;
        let loads = a.plan.ladder.rungs.clone();
        let block_ns: u64 =
            loads.iter().map(|load| trial_ns(&a.plan, *load) + trial_ns(&b.plan, *load)).sum();
        let blocks_most = (budget_ns / block_ns) as usize;
        if blocks_most < BLOCKS_LEAST {
            let seconds = |ns: u64| ns.div_ceil(1_000_000_000);
            bail!(
                "--budget {}s: a block of A and B under {} takes about {} s, and no verdict is possible before {BLOCKS_LEAST} \
                 blocks; give --budget {}s, a shorter --hold or fewer loads",
                seconds(budget_ns),
                if loads.len() == 1 { "this load".to_owned() } else { format!("{} loads", loads.len()) },
                seconds(block_ns),
                seconds(block_ns * BLOCKS_LEAST as u64)
            );
        }
        let calibrations =
            [(Purpose::CalibrationLatency, LATENCY_CLIENTS), (Purpose::CalibrationCeiling, CEILING_CLIENTS)];
        let duel = Duel {
            seed: a.plan.seed,
            loads,
            calibrations: if a.plan.generator.calibrate { calibrations.to_vec() } else { Vec::new() },
            figures: figures.unwrap_or_else(|| Duel::usual_figures(a.plan.arrivals == Arrivals::Closed)),
            gates,
            delta,
            blocks_most: blocks_most.min(BLOCKS_MOST),
            disturbed_share_most,
            budget_ns,
        };
        let remarks = remarks(&a, &b);
        Ok(Decided { duel, a, b, remarks })
    }
}

/// Errors: A and B would not be held under the same load.
fn check_alike(a: &Plan, b: &Plan) -> anyhow::Result<()> {
    let (ours, theirs) = (&a.ladder, &b.ladder);
    if ours.load_unit != theirs.load_unit {
        bail!(
            "A's loads are counted in {}, B's in {}: they have no load in common; load both in the same way",
            ours.load_unit,
            theirs.load_unit
        );
    }
    if ours.rungs != theirs.rungs {
        bail!(
            "A is loaded with {:?} {}, B with {:?}; name the loads once, behind both",
            ours.rungs,
            ours.load_unit,
            theirs.rungs
        );
    }
    if ours.hold != theirs.hold {
        bail!("A and B are held for different times; say --hold once, behind both");
    }
    Ok(())
}

/// `--budget`, ns.
pub fn budget_ns(text: &str) -> anyhow::Result<u64> {
    duration_ns_within(text, BUDGET_NS_LEAST, BUDGET_NS_MOST).context("--budget")
}

/// `--delta`, as a ratio.
fn delta(text: &str) -> anyhow::Result<f64> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        _ => bail!("--delta {text}: this is no percentage above 0 and up to 100; write it as 5%"),
    }
}

/// How long a trial of a load will take, ns, as far as the plan tells.
fn trial_ns(plan: &Plan, load: f64) -> u64 {
    let needs = plan::needs(plan, load);
    let units = if plan.ladder.load_unit.counts_requests() { needs.connections } else { load as u64 };
    let ramp_ns = plan::ramp::length_ns(plan.ladder.ramp.of(units), units);
    ramp_ns.saturating_add(plan.ladder.settle_ns).saturating_add(hold_ns(plan)).saturating_add(AROUND_NS)
}

fn remarks(a: &SidePlan, b: &SidePlan) -> Vec<String> {
    let mut remarks = Vec::new();
    let differences = differences(&a.plan, &b.plan);
    if differences.is_empty() && a.text == b.text {
        remarks.push(
            "A and B are the same: this duel shows how much the machine alone makes of nothing (A/A)"
                .to_owned(),
        );
    }
    let of_load: Vec<String> =
        differences.iter().filter(|one| !one.what.starts_with("subject")).map(comparing::as_text).collect();
    if !of_load.is_empty() {
        remarks.push(format!(
            "A and B are not loaded alike, so a difference may be the load's: {}",
            of_load.join("; ")
        ));
    }
    let is_started = |side: &SidePlan| !matches!(side.plan.subject.source, SubjectSource::Running { .. });
    if !a.plan.ladder.restart_per_rung && is_started(a) && is_started(b) {
        remarks.push(
            "each server is started once, so what differs by chance between two starts counts as a difference; \
             --restart-per-rung starts them anew for every trial"
                .to_owned(),
        );
    }
    remarks
}
