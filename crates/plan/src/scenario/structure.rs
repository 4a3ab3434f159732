//! Checks a file against the declared settings: unknown keys, and lists or mappings in the wrong place. Reports all of
//! them, with lines. Single values are not checked here, because `units` does it with better messages.

use super::node::{Content, Entry, Node};
use super::{ROOT, below};
use crate::mistakes::{ConfigError, Mistake, Place};
use crate::settings::{Setting, Shape, TEXT_BYTES_MAX};
use crate::vocabulary;

/// Everything in the scenario that no setting declares.
pub(super) fn mistakes(path: &str, root: &Node) -> Vec<Mistake> {
    let mut pass = Pass { path, mistakes: Vec::new() };
    pass.judge(root, ROOT.shape, &ROOT, "");
    pass.mistakes
}

/// What is wrong with the shape of one value; `None`: nothing.
pub(crate) fn misplaced(setting: &Setting, node: &Node) -> Option<ConfigError> {
    let mut pass = Pass { path: "", mistakes: Vec::new() };
    pass.judge(node, setting.shape, setting, setting.key);
    pass.mistakes.into_iter().next().map(|mistake| mistake.wrong)
}

struct Pass<'a> {
    path: &'a str,
    mistakes: Vec<Mistake>,
}

impl Pass<'_> {
    /// `shape` is that of the setting, or of an entry of its list or mapping; `key` names it with the
    /// author's own words.
    fn judge(&mut self, node: &Node, shape: Shape, setting: &Setting, key: &str) {
        if matches!(shape, Shape::Anything) {
            return;
        }
        let (takes_one, takes_list, takes_map) = shape.takes();
        let (found, is_right) = match &node.content {
            Content::Nothing => return,
            Content::One(..) => ("one value", takes_one),
            Content::List(_) => ("a list", takes_list),
            Content::Map(_) => ("a mapping", takes_map),
        };
        if !is_right {
            let named = [(takes_one, "one value"), (takes_list, "a list"), (takes_map, "a mapping")];
            let wanted: Vec<&str> =
                named.into_iter().filter(|(takes, _)| *takes).map(|(_, name)| name).collect();
            self.report(
                node.line,
                key,
                ConfigError::Shape { found, wanted: wanted.join(" or ") },
                None,
                setting,
            );
            return;
        }
        if node.text().len() > setting.bytes_max {
            self.too_long(node.line, key, (node.text(), setting.bytes_max), setting);
        }
        for item in node.items() {
            let shape = match shape {
                Shape::List(inner) => *inner,
                Shape::Choices(name, about) => Shape::WordOr(name, about),
                _ => Shape::NumberOrText,
            };
            if item.is_nothing() {
                self.report(item.line, key, ConfigError::EmptyEntry, None, setting);
            }
            self.judge(item, shape, setting, key);
        }
        if let (Shape::Choices(..), [first, second, ..]) = (setting.shape, node.entries()) {
            let wrong = ConfigError::SecondKey { first: first.name.clone(), second: second.name.clone() };
            let place = Place::Line { path: self.path.into(), line: second.line, key: key.into() };
            self.mistakes.push(Mistake { place, wrong, nearest: None, example: None });
        }
        for entry in node.entries() {
            if entry.name.len() > TEXT_BYTES_MAX {
                self.too_long(entry.line, key, (&entry.name, TEXT_BYTES_MAX), setting);
                continue;
            }
            let inside = if key.is_empty() { entry.name.clone() } else { format!("{key}.{}", entry.name) };
            match shape {
                Shape::Map(inner) => self.judge(&entry.node, *inner, setting, &inside),
                _ => match below(setting.key).find(|below| below.name() == entry.name) {
                    Some(below) => self.judge(&entry.node, below.shape, below, &inside),
                    None => self.unknown(entry, setting.key, key),
                },
            }
        }
    }

    fn too_long(&mut self, line: u64, key: &str, (text, most): (&str, usize), setting: &Setting) {
        let wrong = ConfigError::TooLong { bytes: text.len(), most };
        self.report(line, key, wrong, None, setting);
    }

    fn unknown(&mut self, entry: &Entry, section: &'static str, inside: &str) {
        let known: Vec<&str> = below(section).map(Setting::name).collect();
        let nearest = vocabulary::nearest(&entry.name, known.iter().copied());
        let wrong = ConfigError::UnknownKey {
            key: entry.name.clone(),
            inside: if inside.is_empty() { "the scenario".into() } else { inside.into() },
            known: vocabulary::listed(&known),
        };
        let shown = nearest.or(known.first().copied()).unwrap_or_default();
        if let Some(shown) = below(section).find(|setting| setting.name() == shown) {
            self.report(entry.line, "", wrong, nearest.map(Into::into), shown);
        }
    }

    fn report(&mut self, line: u64, key: &str, wrong: ConfigError, nearest: Option<String>, shown: &Setting) {
        let place = Place::Line { path: self.path.into(), line, key: key.into() };
        self.mistakes.push(Mistake { place, wrong, nearest, example: Some(shown.line_in_file()) });
    }
}
