//! Colours, and numbers formatted for people.

use anstyle::{AnsiColor, Style};

/// Writes colours, or leaves them out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ink {
    pub(super) colour: bool,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    OnTime,
    Over,
    Under,
    Missed,
}

impl Ink {
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    pub(super) fn class(self, class: Class, text: &str) -> String {
        let colour = match class {
            Class::OnTime => AnsiColor::Green,
            Class::Over => AnsiColor::Red,
            Class::Under => AnsiColor::Blue,
            Class::Missed => AnsiColor::Magenta,
        };
        self.paint(Style::new().fg_color(Some(colour.into())), text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.paint(Style::new().bold().fg_color(Some(AnsiColor::Red.into())), text)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint(Style::new().bold().fg_color(Some(AnsiColor::Green.into())), text)
    }
}

/// `0.4417` as `44.2 %`. What is there but rounds to nothing is `<0.1 %`.
pub(super) fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.000_5 { "<0.1 %".to_owned() } else { format!("{:.1} %", share * 100.0) }
}

/// `text` in exactly `width` columns; what is too long loses its middle.
pub(super) fn fitted(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return format!("{text:<width$}");
    }
    let tail = width.saturating_sub(1) / 2;
    let head = width.saturating_sub(1) - tail;
    let begin: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(
            (percent(0.4417), percent(0.0001), percent(0.0)),
            ("44.2 %".into(), "<0.1 %".into(), "0.0 %".into())
        );
        assert_eq!(fitted("original-best-1000.log", 11), "origi…0.log");
        assert_eq!(fitted("a", 3), "a  ");
    }
}
