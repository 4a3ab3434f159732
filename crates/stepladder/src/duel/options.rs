//! The command line of a duel: two subjects, each as the arguments of `climb` in one string, and what holds for both.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, FromArgMatches as _};
use climb::consent::Consent;
use climb::judging::{CEILING_CLIENTS, LATENCY_CLIENTS, hold_ns};
use climb::options::{ClimbArgs, Settings};
use climb::outputs::{Followed, ResultFiles};
use climb::planned;
use console::comparing;
use console::other_runs::Wait;
use ladder::Repeats;
use ladder::duel::{BLOCKS_LEAST, BLOCKS_MOST, Duel, Gate, Side};
use measure::Purpose;
use plan::layers::settings;
use plan::units::{self, duration_ns_within};
use plan::{Arrivals, Flags, HoldLength, Plan, SubjectSource};

use crate::bench::in_flight::duel as libraries;

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
    #[command(flatten, next_help_heading = "Duel")]
    pub(crate) wait: Wait,
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
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) results: ResultFiles,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) followed: Followed,
    /// Write the results here as one HTML file that opens anywhere
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Show the duel as a page on 127.0.0.1 while it goes on, opened where there is a desktop; on a terminal also afterwards,
    /// until Ctrl-C
    #[arg(long, help_heading = "Output")]
    pub(crate) view: bool,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db", help_heading = "Output")]
    pub store: PathBuf,
}

/// What a side is held with.
pub struct SidePlan {
    /// as it was written
    pub text: String,
    /// decided
    pub plan: Plan,
    /// on whose word
    pub consent: Consent,
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

/// A trial of a duel is this long unless the user says otherwise: more blocks tell more than longer ones.
const HOLD_NS: u64 = 10_000_000_000;
/// Beside ramp, settling and hold: connecting, draining, a fresh server.
const AROUND_NS: u64 = 2_000_000_000;
const BUDGET: &str = "10m";
/// Of client libraries: a performance unit test.
const BUDGET_OF_LIBRARIES: &str = "60s";
const BUDGET_NS_LEAST: u64 = 1_000_000_000;
const BUDGET_NS_MOST: u64 = 7 * 24 * 3_600_000_000_000;
const LOADS: [&str; 4] = ["--rungs", "--rate", "--updates-rate", "--requesters"];

impl DuelArgs {
    /// What is asked where both sides are runs of `bench`; `None`: they are servers. Errors: one of each, or options of the
    /// other kind.
    pub(crate) fn of_libraries(&self) -> anyhow::Result<Option<libraries::Asked<'_>>> {
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

impl SidePlan {
    /// What one side's string and what is said for both come to. Errors: the author's mistakes.
    pub fn read(
        side: Side,
        text: &str,
        common: &Flags,
        allow_start: bool,
        seed: u64,
    ) -> anyhow::Result<SidePlan> {
        let name = side.name();
        let flags = side_flags(name, text)?;
        let is_said = |flag: &str| {
            settings()
                .filter(|one| one.flag == flag)
                .any(|one| !flags.all(one).is_empty() || !common.all(one).is_empty())
        };
        let (has_load, has_hold) = (LOADS.into_iter().any(is_said), is_said("--hold"));
        let flags = flags.clone().over(common).map_err(|flag| {
            anyhow::anyhow!(
                "{flag} is said for {name} (`{text}`) and, with another value, for both; say it once"
            )
        })?;
        let (mut plan, consent) =
            planned(&flags, allow_start, seed).with_context(|| format!("{name}, `{text}`"))?;
        if plan.scenario.is_none() {
            if !has_hold {
                plan.ladder.hold = HoldLength::Time(HOLD_NS);
            }
            if !has_load {
                plan.ladder.rungs.truncate(1);
                plan.ladder.is_open_ended = false;
            }
        }
        check_holdable(name, &plan)?;
        Ok(SidePlan { text: text.to_owned(), plan, consent })
    }
}

/// The words of one side's string.
pub(crate) fn words_of_side(name: &str, text: &str) -> anyhow::Result<Vec<String>> {
    shlex::split(text)
        .with_context(|| format!("{name}, `{text}`: a quote is not closed, or a backslash ends it"))
}

/// Of clap's page only what is wrong: its usage is that of another command.
pub(crate) fn wrong_in_side(name: &str, text: &str, error: &clap::Error) -> anyhow::Error {
    let said = error.to_string();
    let first = said.lines().next().unwrap_or_default().trim_start_matches("error: ");
    anyhow::anyhow!("{name}, `{text}`: {first}")
}

/// What one side's string says. It is read as the arguments of `climb`.
fn side_flags(name: &str, text: &str) -> anyhow::Result<Flags> {
    let words = words_of_side(name, text)?;
    let command = ClimbArgs::augment_args(clap::Command::new("climb").no_binary_name(true))
        .disable_help_flag(true)
        .override_usage("'SUBJECT [OPTIONS OF climb] [-- OPTIONS OF THE BUILT-IN SERVER]'");
    let matches = command.try_get_matches_from(&words).map_err(|error| wrong_in_side(name, text, &error))?;
    let args = ClimbArgs::from_arg_matches(&matches)?;
    let flags = args.flags()?;
    if flags.subject().is_none() {
        bail!(
            "{name}, `{text}`: it begins with no subject; write a built-in server, a scenario or a URL first"
        );
    }
    for id in ["json", "junit", "markdown", "ndjson", "report", "view", "store", "allow_start"] {
        if matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine) {
            let flag = id.replace('_', "-");
            bail!("{name}, `{text}`: --{flag} is not for one side; write it behind both");
        }
    }
    for flag in ["--name", "--note", "--seed"] {
        if settings().filter(|one| one.flag == flag).any(|one| !flags.all(one).is_empty()) {
            bail!("{name}, `{text}`: {flag} is not for one side; write it behind both");
        }
    }
    if let Some(one) = settings().find(|one| one.is_of_climbs && !flags.all(one).is_empty()) {
        bail!(
            "{name}, `{text}`: {} is about a whole climb, and a duel has options of its own; leave it out",
            one.flag
        );
    }
    Ok(flags)
}

/// Errors: the plan is no single load under which a server can be held again and again.
fn check_holdable(name: &str, plan: &Plan) -> anyhow::Result<()> {
    let ladder = &plan.ladder;
    if ladder.cells.len() > 1 {
        bail!(
            "{name}: this is a sweep of {} cells, and a duel holds one; name one value of each axis",
            ladder.cells.len()
        );
    }
    if ladder.is_open_ended {
        bail!("{name}: loads without an end cannot be held in blocks; name them, as in --requesters 1,5,10");
    }
    if ladder.search.is_some()
        || ladder.repeat != Repeats::default()
        || !ladder.overload.is_empty()
        || !plan.gates.is_empty()
    {
        bail!(
            "{name}: its scenario searches, repeats loads or has gates, which are about a whole climb; a duel repeats by \
             itself and has --gate: leave ladder.search, ladder.repeat and gates out"
        );
    }
    if ladder.stop.is_some() {
        bail!("{name}: a subject that is told to end cannot be held again; leave out the options of its end");
    }
    if !matches!(ladder.hold, HoldLength::Time(_)) {
        bail!("{name}: both sides are held equally long; give --hold as a time, as in --hold 10s");
    }
    Ok(())
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

/// The settings in which two plans differ.
pub fn differences(a: &Plan, b: &Plan) -> Vec<ladder::Difference> {
    let read = |plan: &Plan| serde_json::to_value(plan).unwrap_or_default();
    ladder::differing::settings_that_differ(&read(a), &read(b))
}
