//! Turns flags into a plan, with the user's consent if the plan comes from a file.

use std::path::Path;

use anyhow::Context as _;
use plan::layers::I_MAY_LOAD;
use plan::{Flags, Plan, ScenarioText, is_scenario_file, permissions, resolve_with};
use watch::files::{self, Accepts};

use crate::consent::Consent;
use crate::probe;

/// A scenario is a page, not a data set.
const SCENARIO_BYTES_MAX: u64 = 4 << 20;
/// A schema with all its comments is far smaller.
const SCHEMA_BYTES_MAX: u64 = 4 << 20;

/// The plan that flags ask for, and its user's consent where it rests on a file.
pub fn planned(flags: &Flags, allow_start: bool, seed: u64) -> anyhow::Result<(Plan, Consent)> {
    let scenario = read_scenario(flags)?;
    let file = scenario.as_ref().map(|scenario| scenario.path.clone());
    // A scenario may name schemas as well.
    let read = |path: &Path| files::read_text(path, Accepts::Files, SCHEMA_BYTES_MAX);
    let plan = resolve_with(flags, scenario, seed, &read).map_err(probe::look::fill_in)?;
    let consent = match &file {
        None => Consent::Own,
        Some(file) => {
            let named = flags.all(&I_MAY_LOAD).to_vec();
            Consent::obtain(file, permissions(&plan, flags), allow_start, named)?
        }
    };
    Ok((plan, consent))
}

fn read_scenario(flags: &Flags) -> anyhow::Result<Option<ScenarioText>> {
    let Some(path) = flags.subject().filter(|subject| is_scenario_file(subject)) else {
        return Ok(None);
    };
    let text = files::read_text(Path::new(path), Accepts::Files, SCENARIO_BYTES_MAX)
        .with_context(|| format!("{path}: this scenario cannot be read; check the path"))?;
    Ok(Some(ScenarioText { path: path.to_owned(), text }))
}
