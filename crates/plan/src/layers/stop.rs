//! Shutdown of the subject under load: when, how long it may take, and whether its data is read back afterwards.

use ladder::Objective;

use crate::layers::reader::Reader;
use crate::layers::subject::{ResolvedTarget, option_value};
use crate::mistakes::StopError;
use crate::plan::{HoldLength, SubjectSource, SubjectStop};
use crate::settings::{Setting, Shape};
use crate::units::{self, Duration};
use crate::workloads::BotSettings;

const SUBJECT: Setting = Setting::of("Subject", &[]);

settings! { pub(super) SETTINGS;
    STOP_AT = SUBJECT.key("ladder.stop_at", Shape::Text, "20s")
        .about("http, leaderboard: SIGTERM to the subject so long after the start of each hold, under load.")
        .flag("--stop-at", "TIME")
        .help("HTTP: SIGTERM to the subject so long after the start of each hold, under load: requests under way must be \
            answered, nothing acknowledged may be lost, and it must exit with status 0");
    GRACE = SUBJECT.key("ladder.grace", Shape::Text, "10s").about("With stop_at: how long the subject may take to end.")
        .flag("--grace", "TIME").help("With --stop-at: how long the subject may take to end").default("10s");
}

const SECOND_NS: u64 = 1_000_000_000;
const GRACE_NS_MOST: u64 = 600 * SECOND_NS;
/// Options of our leaderboard: where its data is, and how long requests under way have.
const DATA_OPTION: &str = "--data";
const GRACE_OPTION: &str = "--grace";

/// Whether the subject is told to shut down and is known to lose all its data by that, so that nothing can be read
/// back.
pub(super) fn forgets(reader: &Reader, found: Option<&ResolvedTarget>) -> bool {
    let is_stopped = reader.said(&STOP_AT).is_some();
    is_stopped
        && found.is_some_and(|found| match &found.source {
            SubjectSource::BuiltIn { options, .. } => option_value(options, DATA_OPTION).is_none(),
            SubjectSource::Started { .. } | SubjectSource::Running { .. } => false,
        })
}

/// The settings for the shutdown of the subject. A built-in server gets its grace period through its own options.
pub(super) fn read(
    reader: &mut Reader,
    found: Option<&mut ResolvedTarget>,
    bots: &BotSettings,
    hold: HoldLength,
    objectives: &[Objective],
) -> Option<SubjectStop> {
    let grace = reader.value(&GRACE, |text| units::duration_ns_within(text, SECOND_NS / 10, GRACE_NS_MOST));
    let Some(said) = reader.said(&STOP_AT) else {
        if let Some(said) = reader.said(&GRACE) {
            reader.refuse_plainly(said.place, StopError::GraceAlone);
        }
        return None;
    };
    let after_ns = reader.read(&said, units::duration_ns)?;
    let found = found?;
    let wrong = match (&found.source, hold) {
        _ if !bots.sees_shutdown() => Some(StopError::NotOfTheseBots(bots.name())),
        (SubjectSource::Running { .. }, _) => Some(StopError::NotStarted),
        _ if after_ns == 0 || after_ns % SECOND_NS != 0 => Some(StopError::NotWholeSeconds),
        (_, HoldLength::Time(hold_ns)) if after_ns < hold_ns => None,
        (_, HoldLength::Time(hold_ns)) => Some(StopError::AfterTheHold(Duration(hold_ns).to_string())),
        (_, HoldLength::Ticks(_) | HoldLength::Games(_)) => Some(StopError::CountedHold),
    };
    if let Some(wrong) = wrong {
        reader.refuse_plainly(said.place, wrong);
        return None;
    }
    let mut own_grace = None;
    if let SubjectSource::BuiltIn { server, options } = &mut found.source
        && server == "leaderboard"
    {
        // The server itself rejects invalid values when it starts.
        own_grace = option_value(options, GRACE_OPTION).and_then(|text| units::duration_ns(text).ok());
        if let (Some(grace_ns), None) = (grace, own_grace) {
            options.extend([GRACE_OPTION.to_owned(), format!("{}ms", grace_ns / 1_000_000)]);
        }
    }
    let usual_ns = super::reader::default_of(&GRACE, units::duration_ns);
    let reads_back = bots.audits() && objectives.iter().any(|objective| objective.figure().name == "audit");
    Some(SubjectStop { after_ns, grace_ns: grace.or(own_grace).unwrap_or(usual_ns), reads_back })
}
