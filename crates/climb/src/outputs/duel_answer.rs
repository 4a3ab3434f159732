//! A duel's answer in the form in which it is written.

use console::exit::Exit;
use ladder::RunFacts;
use ladder::duel::{DuelAnswers, DuelLoad};
use serde_json::Value;

/// What a duel says, of servers or of client libraries, from what is stored of it.
pub struct DuelAnswer {
    /// of its run
    pub run: RunFacts,
    /// what is known of each figure and gate
    pub duel: DuelAnswers,
    /// each load of `duel`, in words: `500 games`
    pub places: Vec<String>,
    /// what was found, and why the duel ended, in sentences
    pub found: Vec<String>,
    /// the contract
    pub json: Value,
    /// the page
    pub text: String,
    /// of the whole
    pub exit: Exit,
}

impl DuelAnswer {
    /// Each load with its place.
    pub fn loads(&self) -> impl Iterator<Item = (&str, &DuelLoad)> {
        self.places.iter().map(String::as_str).zip(&self.duel.loads)
    }

    /// The page without colours.
    pub fn plain_text(&self) -> String {
        anstream::adapter::strip_str(&self.text).to_string()
    }
}
