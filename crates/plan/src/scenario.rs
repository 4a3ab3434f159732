//! The scenario file: its keys, its published schema, and what is refused, with line numbers.
//!
//! The keys are those of the declared settings. The same declarations are published as a JSON Schema and find every
//! unknown key and every misplaced list in one pass, so the file, the editor's help and the error messages cannot
//! disagree. All values stay text with a line number here; `layers` interprets them together with the flags.
//! Not here: reading the file. Nothing in a scenario is secret, since plans are stored and printed; headers name
//! secrets by their environment variable.

use crate::layers;
use crate::mistakes::{ConfigError, Mistake, Place};
use crate::settings::{Setting, Shape};

mod node;
mod schema;
mod structure;

pub(crate) use node::{Content, Entry, Node};
pub use schema::scenario_schema;
pub(crate) use structure::misplaced;

/// A scenario file, read by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioText {
    /// as the user named it; precedes every mistake
    pub path: String,
    /// what it holds
    pub text: String,
}

/// The file as a whole.
static ROOT: Setting = Setting::of("", &[])
    .key("", Shape::Keys("", ""), "{ subject: { target: ws://127.0.0.1:42069 } }")
    .about("A load test of one server: who is tested, by whom, how hard, and what must hold.");

/// The settings whose keys are in the mapping of this key; empty: at the top.
fn below(key: &str) -> impl Iterator<Item = &'static Setting> {
    layers::settings().filter(move |setting| !setting.key.is_empty() && setting.parent() == key)
}

/// Reads a scenario; the mistakes are those that need no knowledge of other settings.
///
/// With mistakes there may still be a scenario: its other keys are checked on, so that all mistakes come at
/// once.
pub(crate) fn read(scenario: &ScenarioText) -> (Option<Node>, Vec<Mistake>) {
    let whole = |wrong, line, example: Option<&str>| Mistake {
        place: Place::Line { path: scenario.path.clone(), line, key: String::new() },
        wrong,
        nearest: None,
        example: example.map(Into::into),
    };
    match Node::read(&scenario.text, options()) {
        Ok(root) if root.is_nothing() => {
            let example = "subject: { target: ws://127.0.0.1:42069 }";
            (None, vec![whole(ConfigError::EmptyScenario, 0, Some(example))])
        }
        Ok(root) => {
            let mistakes = structure::mistakes(&scenario.path, &root);
            (root.is_mapping().then_some(root), mistakes)
        }
        Err(error) => {
            let (line, wrong) = worded(&error);
            (None, vec![whole(wrong, line, None)])
        }
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        // A scenario is a page, not a data set; one that nests or repeats itself into gigabytes is an accident.
        budget: serde_saphyr::budget! { max_depth: 16, max_nodes: 20_000, max_aliases: 100 },
        with_snippet: false,
    }
}

/// The line of a parser's error, and its words without the place and without advice that only programmers can
/// follow.
fn worded(error: &serde_saphyr::Error) -> (u64, ConfigError) {
    use serde_saphyr::Error;
    let line = error.location().map_or(0, |location| location.line());
    let unreadable = |text: String| ConfigError::Unreadable(text);
    let wrong = match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            unreadable(format!("the key \"{key}\" is there twice"))
        }
        Error::DuplicateMappingKey { .. } => unreadable("a key is there twice".into()),
        Error::MultipleDocuments { .. } => {
            unreadable("a second document begins here, but a scenario is one".into())
        }
        Error::Budget { .. } => unreadable("this is too large or nested too deep for a scenario".into()),
        other => {
            let text = other.to_string();
            let text = text.lines().next().unwrap_or_default();
            let text = text.split(" at line ").next().unwrap_or(text);
            ConfigError::Syntax(text.trim_start_matches("error: ").to_owned())
        }
    };
    (line, wrong)
}

#[cfg(test)]
mod tests;
