//! One side of a duel, built from its own string and the options for both.

use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use climb::consent::Consent;
use climb::options::ClimbArgs;
use climb::planned;
use ladder::Repeats;
use ladder::duel::Side;
use plan::layers::settings;
use plan::{Flags, HoldLength, Plan};

/// A trial of a duel is this long unless the user says otherwise: more blocks tell more than longer ones.
const HOLD_NS: u64 = 10_000_000_000;
const LOADS: [&str; 4] = ["--rungs", "--rate", "--updates-rate", "--requesters"];

/// What a side is held with.
pub struct SidePlan {
    /// as it was written
    pub text: String,
    /// decided
    pub plan: Plan,
    /// on whose word
    pub consent: Consent,
}

impl SidePlan {
    /// Parses one side's string together with the options for both. Errors: user errors.
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
pub fn words_of_side(name: &str, text: &str) -> anyhow::Result<Vec<String>> {
    shlex::split(text)
        .with_context(|| format!("{name}, `{text}`: a quote is not closed, or a backslash ends it"))
}

/// Of clap's page only what is wrong: its usage is that of another command.
pub fn wrong_in_side(name: &str, text: &str, error: &clap::Error) -> anyhow::Error {
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
    if plan.subject.finds_tick_rate() {
        bail!(
            "{name}: a side is not measured by the rate that its own ticks show; say it, as with --tick-rate 30"
        );
    }
    if !matches!(ladder.hold, HoldLength::Time(_)) {
        bail!("{name}: both sides are held equally long; give --hold as a time, as in --hold 10s");
    }
    Ok(())
}

/// The settings in which two plans differ.
pub fn differences(a: &Plan, b: &Plan) -> Vec<ladder::Difference> {
    let read = |plan: &Plan| serde_json::to_value(plan).unwrap_or_default();
    ladder::differing::settings_that_differ(&read(a), &read(b))
}
