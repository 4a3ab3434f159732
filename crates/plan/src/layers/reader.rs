//! Reads one setting at a time: the flag if it was given, else the scenario's value; parsed, or refused with its place.

use std::io;
use std::path::Path;

use crate::flags::Flags;
use crate::layers::settings;
use crate::mistakes::{ConfigError, Mistake, Place, RequestConfigError};
use crate::scenario::{Content, Node};
use crate::settings::{Kind, Setting, Shape};
use crate::target::TargetError;
use crate::units::UnitError;
use crate::units::network::NetworkError;

/// A value as it was written, and where.
#[derive(Clone, Debug)]
pub(crate) struct RawValue {
    pub text: String,
    pub place: Place,
    example: String,
}

/// Reads a file as text.
pub(crate) type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// Looks settings up in the flags and in the file, and collects mistakes while they are read.
pub(crate) struct Reader<'a> {
    pub flags: &'a Flags,
    /// reads a further file that a setting names
    pub read_file: ReadFile<'a>,
    /// nothing when there is no file
    pub file: Node,
    /// of the scenario file; empty when there is none
    path: String,
    pub mistakes: Vec<Mistake>,
    /// the script that plays the bots, until they take it
    pub script: Option<script::Loaded>,
    /// its file
    pub script_name: String,
    /// a script was named and refused
    pub has_unreadable_script: bool,
}

impl<'a> Reader<'a> {
    pub fn new(
        flags: &'a Flags,
        read_file: ReadFile<'a>,
        path: String,
        file: Node,
        mistakes: Vec<Mistake>,
    ) -> Reader<'a> {
        Reader {
            flags,
            read_file,
            file,
            path,
            mistakes,
            script: None,
            script_name: String::new(),
            has_unreadable_script: false,
        }
    }

    pub fn has_file(&self) -> bool {
        !self.path.is_empty()
    }

    /// Refuses flags with texts that are too long. A file's were refused when it was read.
    pub fn refuse_long_flags(&mut self) {
        for setting in settings() {
            for said in self.in_flags(setting).unwrap_or_default() {
                let (bytes, most) = (said.text.len(), setting.bytes_max);
                if bytes > most {
                    self.refuse(&said, ConfigError::TooLong { bytes, most });
                }
            }
        }
    }

    /// A text as if it followed the setting's flag.
    pub fn in_flag(&self, setting: &Setting, text: &str) -> RawValue {
        // A multi-word flag describes a place; its example is a whole command line.
        let example = if setting.flag.contains(' ') {
            setting.example.to_owned()
        } else {
            format!("{} {}", setting.flag, quoted(setting.example))
        };
        RawValue { text: text.into(), place: Place::Flag(setting.flag), example }
    }

    /// The texts after the setting's flag. If the file has a list, a flag that is given once is split at its commas.
    pub fn in_flags(&self, setting: &Setting) -> Option<Vec<RawValue>> {
        let texts = self.flags.all(setting);
        let (_, takes_list, _) = setting.shape.takes();
        let said = |text: &str| self.in_flag(setting, text);
        match texts {
            [] => None,
            [text] if takes_list && setting.is_option() && setting.kind != Kind::Repeated => {
                Some(text.split(',').map(said).collect())
            }
            _ => Some(texts.iter().map(|text| said(text)).collect()),
        }
    }

    /// A value of the file as if it followed the setting's key.
    pub fn at(&self, setting: &Setting, node: &Node) -> RawValue {
        if !node.option.is_empty() {
            let (path, key) = (self.script_name.clone(), format!("options.{}", node.option));
            let place = Place::Line { path, line: 0, key };
            let example = setting.line_in_options(node.option);
            return RawValue { text: node.text().to_owned(), place, example };
        }
        let place = Place::Line { path: self.path.clone(), line: node.line, key: setting.key.into() };
        RawValue { text: node.text().to_owned(), place, example: setting.line_in_file() }
    }

    /// The file as a whole, for what is missing in it.
    pub fn in_whole_file(&self, setting: &Setting) -> RawValue {
        self.at(setting, &Node::default())
    }

    /// A missing setting: reported for the scenario, if there is one, and else for the flag, which may be another's.
    pub fn missing(&self, setting: &Setting, flag: &Setting) -> RawValue {
        if self.has_file() { self.in_whole_file(setting) } else { self.in_flag(flag, "") }
    }

    /// The values of the setting's key. Other shapes than the setting's were refused already.
    pub fn in_file(&self, setting: &Setting) -> Option<Vec<RawValue>> {
        self.values_of(setting, self.file.at(setting.key)?)
    }

    /// The values of the last part of the setting's key in this mapping, one entry of a list.
    pub fn inside(&self, mapping: &Node, setting: &Setting) -> Option<Vec<RawValue>> {
        self.values_of(setting, mapping.get(setting.name())?)
    }

    fn values_of(&self, setting: &Setting, node: &Node) -> Option<Vec<RawValue>> {
        let (takes_one, takes_list, _) = setting.shape.takes();
        match &node.content {
            Content::One(..) if takes_one => Some(vec![self.at(setting, node)]),
            Content::List(items) if takes_list => {
                Some(items.iter().map(|item| self.at(setting, item)).collect())
            }
            Content::Map(_) if matches!(setting.shape, Shape::Map(_)) => Some(vec![self.at(setting, node)]),
            _ => None,
        }
    }

    /// Everything given for a setting: the flags take precedence over the file.
    pub fn all(&self, setting: &Setting) -> Option<Vec<RawValue>> {
        self.in_flags(setting).or_else(|| self.in_file(setting))
    }

    /// The value given for a single-valued setting, or the first one of any other.
    pub fn said(&self, setting: &Setting) -> Option<RawValue> {
        self.all(setting)?.into_iter().next()
    }

    /// Parses the value given; `None` when it was refused.
    pub fn read<T, E: Into<ConfigError>>(
        &mut self,
        said: &RawValue,
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

    /// Reads each of several values; those that were refused are missing.
    pub fn read_all<T, E: Into<ConfigError>>(
        &mut self,
        said: &[RawValue],
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        said.iter().filter_map(|one| self.read(one, &parse)).collect()
    }

    /// `said` and `read` in one, for the many settings that stand alone.
    pub fn value<T, E: Into<ConfigError>>(
        &mut self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let said = self.said(setting)?;
        self.read(&said, parse)
    }

    /// The same within one entry of a list.
    pub fn value_inside<T, E: Into<ConfigError>>(
        &mut self,
        mapping: &Node,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let said = self.inside(mapping, setting)?.into_iter().next()?;
        self.read(&said, parse)
    }

    /// As `value`, with the default that the setting's help shows.
    pub fn value_or_default<T, E: Into<ConfigError>>(
        &mut self,
        setting: &Setting,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> T {
        self.value(setting, &parse).unwrap_or_else(|| default_of(setting, parse))
    }

    pub fn refuse(&mut self, said: &RawValue, wrong: ConfigError) {
        let nearest = nearest_of(&wrong);
        self.refuse_with(said, wrong, nearest);
    }

    pub fn refuse_with(&mut self, said: &RawValue, wrong: ConfigError, nearest: Option<String>) {
        let (place, example) = (said.place.clone(), Some(said.example.clone()));
        self.mistakes.push(Mistake { place, wrong, nearest, example });
    }

    /// A mistake whose message already says what to do.
    pub fn refuse_plainly(&mut self, place: Place, wrong: impl Into<ConfigError>) {
        self.mistakes.push(Mistake { place, wrong: wrong.into(), nearest: None, example: None });
    }
}

/// The value of the default that the setting's help shows.
pub(crate) fn default_of<T, E>(setting: &Setting, parse: impl FnOnce(&str) -> Result<T, E>) -> T {
    parse(setting.default).ok().expect("defaults are constants, and the tests read each of them")
}

fn nearest_of(wrong: &ConfigError) -> Option<String> {
    match wrong {
        ConfigError::Unit(UnitError::UnknownWord { nearest, .. })
        | ConfigError::Network(NetworkError::Word(UnitError::UnknownWord { nearest, .. }))
        | ConfigError::Target(TargetError::UnknownScheme { nearest, .. }) => nearest.map(Into::into),
        ConfigError::Schema(wrong) | ConfigError::Request(RequestConfigError::Schema(wrong)) => {
            wrong.nearest()
        }
        _ => None,
    }
}

/// An example that can be pasted into a shell.
fn quoted(example: &str) -> String {
    if example.contains([' ', '<', '>', '&', '*']) { format!("'{example}'") } else { example.into() }
}
