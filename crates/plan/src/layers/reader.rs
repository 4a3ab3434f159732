//! One setting at a time: the flag if it was given, else the scenario's value; read, or refused with its place.

use serde_saphyr::Location;

use crate::mistakes::{Mistake, Place, Wrong};
use crate::scenario::Text;
use crate::target::TargetError;
use crate::units::UnitError;

/// A setting under both of its names, with something right to write there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// `--hold`
    pub flag: &'static str,
    /// `ladder.hold`; empty when only the command line has it
    pub key: &'static str,
    /// behind the flag
    pub example: &'static str,
    /// behind the key
    pub example_in_file: &'static str,
}

/// A setting that is written the same in both places.
pub(super) const fn setting(flag: &'static str, key: &'static str, example: &'static str) -> Setting {
    Setting { flag, key, example, example_in_file: example }
}

/// A value that somebody wrote, and where.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub text: String,
    pub place: Place,
    example: String,
}

/// Collects mistakes while settings are read.
#[derive(Debug)]
pub(super) struct Reader {
    /// of the scenario file; empty when there is none
    path: String,
    pub mistakes: Vec<Mistake>,
}

impl Reader {
    pub fn new(path: String, mistakes: Vec<Mistake>) -> Reader {
        Reader { path, mistakes }
    }

    pub fn in_flag(&self, setting: Setting, text: &str) -> Said {
        // A flag of several words describes a place; its example is a whole command line.
        let example = if setting.flag.contains(' ') {
            setting.example.to_owned()
        } else {
            format!("{} {}", setting.flag, quoted(setting.example))
        };
        Said { text: text.into(), place: Place::Flag(setting.flag), example }
    }

    pub fn in_file(&self, setting: Setting, text: &Text) -> Said {
        let name = setting.key.rsplit('.').next().unwrap_or(setting.key);
        Said {
            text: text.value.clone(),
            place: Place::Line {
                path: self.path.clone(),
                line: text.referenced.line(),
                key: setting.key.into(),
            },
            example: format!("{name}: {}", setting.example_in_file),
        }
    }

    /// The file as a whole, for what is missing in it.
    pub fn in_whole_file(&self, setting: Setting) -> Said {
        let whole = Text { value: String::new(), referenced: Location::UNKNOWN, defined: Location::UNKNOWN };
        self.in_file(setting, &whole)
    }

    pub fn has_file(&self) -> bool {
        !self.path.is_empty()
    }

    /// What was said about a setting: the flag goes before the file.
    pub fn said(&self, setting: Setting, flag: Option<&str>, file: Option<&Text>) -> Option<Said> {
        flag.map(|text| self.in_flag(setting, text)).or_else(|| file.map(|text| self.in_file(setting, text)))
    }

    /// Reads what was said; `None` when nothing was, or when it was refused.
    pub fn read<T, E: Into<Wrong>>(
        &mut self,
        said: &Said,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        match parse(&said.text) {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.refuse(said, wrong.into());
                None
            }
        }
    }

    /// `said` and `read` in one, for the many settings that stand alone.
    pub fn value<T, E: Into<Wrong>>(
        &mut self,
        setting: Setting,
        flag: Option<&str>,
        file: Option<&Text>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let said = self.said(setting, flag, file)?;
        self.read(&said, parse)
    }

    pub fn refuse(&mut self, said: &Said, wrong: Wrong) {
        let nearest = nearest_of(&wrong);
        self.refuse_with(said, wrong, nearest);
    }

    pub fn refuse_with(&mut self, said: &Said, wrong: Wrong, nearest: Option<String>) {
        let (place, example) = (said.place.clone(), Some(said.example.clone()));
        self.mistakes.push(Mistake { place, wrong, nearest, example });
    }

    /// A mistake whose message already says what to do.
    pub fn refuse_plainly(&mut self, place: Place, wrong: Wrong) {
        self.mistakes.push(Mistake { place, wrong, nearest: None, example: None });
    }
}

fn nearest_of(wrong: &Wrong) -> Option<String> {
    match wrong {
        Wrong::Unit(UnitError::UnknownWord { nearest, .. })
        | Wrong::Target(TargetError::UnknownScheme { nearest, .. }) => nearest.map(Into::into),
        _ => None,
    }
}

/// An example that can be pasted into a shell.
fn quoted(example: &str) -> String {
    if example.contains([' ', '<', '>', '&', '*']) { format!("'{example}'") } else { example.into() }
}
