//! The command line as raw text: a flag and the same key in a file are parsed by the same code and refused with the
//! same message.

use std::collections::BTreeMap;

use crate::layers::{OPTIONS, SUBJECT, settings};
use crate::settings::{Kind, Setting};

/// The settings that the command line names, each with its texts. A switch has the text `true` or `false`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    said: BTreeMap<&'static str, Vec<String>>,
}

impl Flags {
    /// A climb of this subject with every setting at its default: a built-in server, a scenario file or a
    /// URL.
    pub fn climb(subject: impl Into<String>) -> Flags {
        Flags::default().with(&SUBJECT, subject)
    }

    /// The same with one text more for a setting.
    pub fn with(mut self, setting: &Setting, text: impl Into<String>) -> Flags {
        self.say(setting, [text.into()]);
        self
    }

    /// Adds texts to a setting.
    pub fn say(&mut self, setting: &Setting, texts: impl IntoIterator<Item = String>) {
        let mut texts = texts.into_iter().peekable();
        if texts.peek().is_some() {
            self.said.entry(setting.flag).or_default().extend(texts);
        }
    }

    /// These flags over others, which fill the gaps. Errors: the flag of a setting that both set differently. A setting
    /// that may be repeated has the texts of both.
    pub fn over(mut self, others: &Flags) -> Result<Flags, &'static str> {
        for setting in settings() {
            let theirs = others.all(setting);
            let ours = self.all(setting);
            if theirs.is_empty() || ours == theirs {
                continue;
            }
            if !ours.is_empty() && setting.kind != Kind::Repeated {
                return Err(setting.flag);
            }
            self.say(setting, theirs.to_vec());
        }
        Ok(self)
    }

    /// The same without a setting.
    pub fn without(mut self, setting: &Setting) -> Flags {
        self.said.remove(setting.flag);
        self
    }

    /// All texts of a setting; empty when it was not named.
    pub fn all(&self, setting: &Setting) -> &[String] {
        self.said.get(setting.flag).map_or(&[], Vec::as_slice)
    }

    /// The first text of a setting.
    pub fn text(&self, setting: &Setting) -> Option<&str> {
        self.all(setting).first().map(String::as_str)
    }

    /// What is climbed: a built-in server, a scenario file or a URL.
    pub fn subject(&self) -> Option<&str> {
        self.text(&SUBJECT)
    }

    /// What would follow `stepladder climb`, so that tests read like the command line: `arena --name 'a b' --
    /// --echo`.
    ///
    /// Words end at blanks, but for those in quotes. Panics: an option that no setting declares, or without
    /// its value.
    pub fn of(line: &str) -> Flags {
        let mut flags = Flags::default();
        let mut words = words(line).into_iter().peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                flags.say(&OPTIONS, words.by_ref());
            } else if !word.starts_with("--") {
                flags.say(&SUBJECT, [word]);
            } else {
                let setting = settings().find(|setting| setting.flag == word);
                let setting = setting.unwrap_or_else(|| panic!("no setting has the flag {word}"));
                let text = match setting.kind {
                    Kind::Switch => Some("true".to_owned()),
                    Kind::SwitchOff => Some("false".to_owned()),
                    Kind::One | Kind::Hyphenated | Kind::Repeated => words.next(),
                    Kind::Optional(alone) => {
                        words.next_if(|word| !word.starts_with('-')).or(Some(alone.to_owned()))
                    }
                };
                flags.say(setting, [text.unwrap_or_else(|| panic!("{word} has no value"))]);
            }
        }
        flags
    }
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match quote {
            Some(end) if letter == end => quote = None,
            None if matches!(letter, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter == ' ' => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_over_others_keep_what_they_say_and_refuse_a_contradiction() {
        let over = |ours: &str, theirs: &str| Flags::of(ours).over(&Flags::of(theirs));
        assert_eq!(over("arena --hold 5s", "--rungs 7"), Ok(Flags::of("arena --hold 5s --rungs 7")));
        assert_eq!(over("arena --hold 5s", "--hold 5s"), Ok(Flags::of("arena --hold 5s")));
        assert_eq!(over("arena --hold 5s", "--hold 6s"), Err("--hold"));
        let both = over("arena --i-may-load a", "--i-may-load b");
        assert_eq!(both, Ok(Flags::of("arena --i-may-load a --i-may-load b")));
    }
}
