//! A setting, declared once: its flag with help, its scenario key with type and example, the bots that take it.
//!
//! The declaration is beside the code that reads the setting, within `settings!`, which builds the file's list
//! `SETTINGS`. Everything else follows from `layers::settings()`: the options of `climb`, their help, the shell
//! completions, the keys of a scenario, its published schema, and the refusal of settings for other bots.

use crate::vocabulary::listed_or;

/// No text of a setting is longer, where its declaration does not say more (`at_most`).
pub const TEXT_BYTES_MAX: usize = 4096;

/// One setting of a climb. `Setting::of` begins a declaration; `flag` and `key` add its two sides.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// `--hold`; empty when only a file has it. Without dashes (`climb`) it names a place of the command line
    /// and no option
    pub flag: &'static str,
    /// the kind of value after the flag
    pub kind: Kind,
    /// what the help calls the value: `TIME`
    pub value_name: &'static str,
    /// one sentence of the help, without the default
    pub help: &'static str,
    /// its group in the help
    pub heading: &'static str,
    /// what applies when it is not said, as the help shows it; empty: the help shows none
    pub default: &'static str,
    /// after the flag
    pub example: &'static str,
    /// `ladder.hold`; empty when only the command line has it
    pub key: &'static str,
    /// the shape of the value after the key
    pub shape: Shape,
    /// one sentence of the schema
    pub about: &'static str,
    /// after the key
    pub example_in_file: &'static str,
    /// the words that it may be, where there are few and messages refuse all others; empty: any
    pub one_of: &'static [&'static str],
    /// no single text of it is longer
    pub bytes_max: usize,
    /// a scenario without it is not complete
    pub is_required: bool,
    /// the bots that take it; empty: all
    pub bots: &'static [&'static str],
    /// it chooses the trials of a climb, or asks something of the whole climb; a duel has options of its own for both
    pub is_of_climbs: bool,
}

/// The kind of value after a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// one value
    One,
    /// one value that may begin with a hyphen, to be refused in better words than the parser's
    Hyphenated,
    /// nothing: the flag turns something on
    Switch,
    /// nothing: the flag turns something off (`--no-…`)
    SwitchOff,
    /// one value, or none, which means this one
    Optional(&'static str),
    /// one value, and the flag may be given several times
    Repeated,
}

/// The shape of the value after a key.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// a word or a sentence
    Text,
    /// with a fraction or without
    Number,
    /// the format of JSON Schema: `uint32`, `uint64` or `int64`
    Whole(&'static str),
    /// true or false
    Switch,
    /// `5%` or `0.05`
    NumberOrText,
    /// a number or text, or a list of them
    OneOrMore,
    /// entries of one shape
    List(&'static Shape),
    /// names that the author chooses, with values of one shape
    Map(&'static Shape),
    /// any YAML value
    Anything,
    /// a mapping with known keys: those that are declared below this one. Name and description for the schema
    Keys(&'static str, &'static str),
    /// a word, or such a mapping
    WordOr(&'static str, &'static str),
    /// a word, or such a mapping with one key; or a list of these
    Choices(&'static str, &'static str),
}

impl Shape {
    /// Whether one value, a list or a mapping may stand there.
    pub fn takes(self) -> (bool, bool, bool) {
        match self {
            Shape::Text | Shape::Number | Shape::Whole(_) | Shape::Switch | Shape::NumberOrText => {
                (true, false, false)
            }
            Shape::OneOrMore => (true, true, false),
            Shape::List(_) => (false, true, false),
            Shape::Map(_) | Shape::Keys(..) => (false, false, true),
            Shape::WordOr(..) => (true, false, true),
            Shape::Anything | Shape::Choices(..) => (true, true, true),
        }
    }
}

/// Declares settings and the list of them, which is in the order of the help: `NAME = Setting::of(…).key(…).flag(…);`.
macro_rules! settings {
    ($list_vis:vis $list:ident; $($(#[$doc:meta])* $vis:vis $name:ident = $setting:expr;)*) => {
        $list_vis const $list: &[&$crate::settings::Setting] = &[$(&$name),*];
        $($(#[$doc])* $vis static $name: $crate::settings::Setting = $setting;)*
    };
}

impl Setting {
    /// The beginning of a declaration: its flag's group in the help, and which bots take it (empty: all).
    pub const fn of(heading: &'static str, bots: &'static [&'static str]) -> Setting {
        Setting {
            flag: "",
            kind: Kind::One,
            value_name: "",
            help: "",
            heading,
            default: "",
            example: "",
            key: "",
            shape: Shape::Text,
            about: "",
            example_in_file: "",
            one_of: &[],
            bytes_max: TEXT_BYTES_MAX,
            is_required: false,
            bots,
            is_of_climbs: false,
        }
    }

    /// The scenario's side. The example is that of the flag too, unless `flag_example` names another.
    pub const fn key(mut self, key: &'static str, shape: Shape, example: &'static str) -> Setting {
        (self.key, self.shape) = (key, shape);
        (self.example, self.example_in_file) = (example, example);
        self
    }

    /// What the schema says of it.
    pub const fn about(mut self, about: &'static str) -> Setting {
        self.about = about;
        self
    }

    /// The command line's side.
    pub const fn flag(mut self, flag: &'static str, value_name: &'static str) -> Setting {
        (self.flag, self.value_name) = (flag, value_name);
        self
    }

    /// The command line's side of something that is turned on or off.
    pub const fn switch(mut self, kind: Kind, flag: &'static str) -> Setting {
        (self.kind, self.flag) = (kind, flag);
        self
    }

    /// What the help says of it.
    pub const fn help(mut self, help: &'static str) -> Setting {
        self.help = help;
        self
    }

    /// A word of the command line that is no option: how messages name its place, and an example.
    pub const fn word(mut self, place: &'static str, example: &'static str) -> Setting {
        (self.flag, self.example) = (place, example);
        self
    }

    /// Another kind of flag than one with one value.
    pub const fn kind(mut self, kind: Kind) -> Setting {
        self.kind = kind;
        self
    }

    /// What applies when it is not said.
    pub const fn default(mut self, default: &'static str) -> Setting {
        self.default = default;
        self
    }

    /// An example that is written differently after the flag.
    pub const fn flag_example(mut self, example: &'static str) -> Setting {
        self.example = example;
        self
    }

    /// The words that it may be; help and schema list them.
    pub const fn one_of(mut self, words: &'static [&'static str]) -> Setting {
        self.one_of = words;
        self
    }

    /// The longest text that it may be, in bytes.
    pub const fn at_most(mut self, bytes: usize) -> Setting {
        self.bytes_max = bytes;
        self
    }

    /// It is about a whole climb, so that a duel does not take it.
    pub const fn of_climbs(mut self) -> Setting {
        self.is_of_climbs = true;
        self
    }

    /// A scenario without it is not complete.
    pub const fn required(mut self) -> Setting {
        self.is_required = true;
        self
    }

    /// Whether the command line has an option for it.
    pub fn is_option(&self) -> bool {
        self.flag.starts_with("--")
    }

    /// The help with the default at its end.
    pub fn help_text(&self) -> String {
        let help = match self.one_of {
            [] => self.help.to_owned(),
            words => format!("{}: {}", self.help, listed_or(words)),
        };
        match self.default {
            "" => help,
            default => format!("{help} [default: {default}]"),
        }
    }

    /// What the schema says of it, with the words that it may be at its end.
    pub fn about_text(&self) -> String {
        match self.one_of {
            [] => self.about.to_owned(),
            words => format!("{} One of {}.", self.about, listed_or(words)),
        }
    }

    /// Its key within the mapping that holds it: `hold`.
    pub fn name(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// The key of the mapping that holds it: `ladder`; empty for the scenario itself.
    pub fn parent(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(parent, _)| parent)
    }

    /// Its example as a line of a scenario: `hold: 60s`.
    pub fn line_in_file(&self) -> String {
        match self.name() {
            "" => self.example_in_file.to_owned(),
            name => format!("{name}: {}", self.example_in_file),
        }
    }

    /// The same as an option of a script: `hold: "60s"`.
    pub fn line_in_options(&self, option: &str) -> String {
        let example = self.example_in_file;
        let quoted = |text: &str| format!("\"{}\"", text.trim());
        match self.shape {
            Shape::Text | Shape::NumberOrText => format!("{option}: {}", quoted(example)),
            Shape::List(Shape::Text) => {
                let items = example.trim_matches(['[', ']']).split(", ").map(quoted);
                format!("{option}: [{}]", items.collect::<Vec<_>>().join(", "))
            }
            _ => format!("{option}: {example}"),
        }
    }
}

#[cfg(test)]
mod tests;
