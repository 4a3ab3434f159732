//! Server behaviour that would otherwise fail a rung but can be allowed: the kinds of `--allow`, in one table.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a user allows the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allowed {
    /// deliveries that come twice
    Duplicates,
    /// answers after the patience
    Late,
    /// errors that the server reports while nothing is lost
    Errors,
    /// answers in which a value to be captured is not there
    MissingCaptures,
}

/// A row of the table.
struct Row {
    kind: Allowed,
    name: &'static str,
    /// for people, after "the server may"
    may: &'static str,
    /// who writes an objective over one of these has thought of it
    figures: &'static [&'static str],
}

const TABLE: [Row; 4] = [
    Row {
        kind: Allowed::Duplicates,
        name: "duplicates",
        may: "deliver a message twice",
        figures: &["deliveries.duplicated", "unexpected"],
    },
    Row { kind: Allowed::Late, name: "late", may: "answer late", figures: &["late", "late.share"] },
    Row {
        kind: Allowed::Errors,
        name: "errors",
        may: "report errors",
        figures: &["refused", "errors", "errors.share"],
    },
    Row {
        kind: Allowed::MissingCaptures,
        name: "missing-captures",
        may: "answer without a value that is captured",
        figures: &[],
    },
];

impl Allowed {
    /// Their names, in the order of the table.
    pub const NAMES: [&str; TABLE.len()] = {
        let mut names = [""; TABLE.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = TABLE[at].name;
            at += 1;
        }
        names
    };

    fn row(self) -> &'static Row {
        const { &TABLE }.iter().find(|row| row.kind == self).expect("each kind has a row")
    }

    /// `duplicates`
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// `deliver a message twice`, after "the server may".
    pub fn may(self) -> &'static str {
        self.row().may
    }

    /// Whether an objective over this figure says how much of it is too much.
    pub fn is_said_by(self, figure: &str) -> bool {
        self.row().figures.contains(&figure)
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Allowed {
    /// no kind has this name
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        TABLE.iter().find(|row| row.name == text.trim()).map(|row| row.kind).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FigureDoc;

    #[test]
    fn each_kind_has_one_name_everywhere_and_figures_that_exist() {
        for name in Allowed::NAMES {
            let kind: Allowed = name.parse().unwrap();
            assert_eq!((kind.name(), kind.to_string().as_str()), (name, name));
            assert_eq!(serde_json::to_value(kind).unwrap(), name);
        }
        assert_eq!("duplicate".parse::<Allowed>(), Err(()));
        for figure in TABLE.iter().flat_map(|row| row.figures) {
            assert!(FigureDoc::named(figure).is_some(), "{figure}");
        }
    }
}
