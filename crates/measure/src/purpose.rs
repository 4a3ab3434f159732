//! The purpose of a trial.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use ts_rs::TS;

/// What a trial is for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Purpose {
    /// the null server at an easy rate: our own share of every latency
    #[serde(rename = "calibration latency")]
    #[strum(serialize = "calibration latency")]
    CalibrationLatency,
    /// the null server as fast as it goes: our own ceiling
    #[serde(rename = "calibration ceiling")]
    #[strum(serialize = "calibration ceiling")]
    CalibrationCeiling,
    /// the subject before the first trial of a search, so that what is cold gets warm; it is not judged
    #[serde(rename = "warm-up")]
    #[strum(serialize = "warm-up")]
    WarmUp,
    /// the subject under one load
    #[default]
    Rung,
}

impl Purpose {
    /// Its name in the store and in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
