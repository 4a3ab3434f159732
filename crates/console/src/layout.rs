//! Widths of text and tables, and where lines break.
//!
//! Nothing is wider than the terminal, or than COLUMNS if there is none. Without either, text wraps at 100 columns and
//! tables keep their natural width.

use std::os::fd::AsFd;

use comfy_table::{ContentArrangement, Table, presets};

/// Nothing is laid out for fewer columns, whatever a terminal reports.
const COLUMNS_LEAST: usize = 40;
/// Sentences longer than that are hard to read.
const SENTENCE_MOST: usize = 120;
/// Where nothing says how wide it may be.
const USUAL_WIDTH: usize = 100;

/// Columns that standard output has; `None`: nothing says so, as for a script that reads a pipe.
pub fn columns() -> Option<usize> {
    columns_of(std::io::stdout())
}

/// The same of another stream: those of its terminal, else what COLUMNS says.
pub fn columns_of(stream: impl AsFd) -> Option<usize> {
    let terminal = terminal_size::terminal_size_of(stream).map(|(columns, _)| usize::from(columns.0));
    let said = || std::env::var("COLUMNS").ok()?.trim().parse().ok().filter(|columns| *columns > 0);
    terminal.or_else(said).map(|columns| columns.max(COLUMNS_LEAST))
}

/// Columns of standard output, 100 where nothing says how many.
pub fn width() -> usize {
    columns().unwrap_or(USUAL_WIDTH)
}

/// Breaks a sentence where the columns end; further lines are indented.
pub fn wrapped(text: &str, indent: usize, columns: Option<usize>) -> String {
    let margin = " ".repeat(indent);
    let width = columns.unwrap_or(USUAL_WIDTH).min(SENTENCE_MOST);
    let options = textwrap::Options::new(width).initial_indent(&margin).subsequent_indent(&margin);
    filled(text, options).trim_start().to_owned()
}

/// Filled lines, none of which begins with the percent sign of the number before it.
fn filled(text: &str, options: textwrap::Options<'_>) -> String {
    textwrap::fill(&text.replace(" %", "\u{a0}%"), options).replace("\u{a0}%", " %")
}

/// Wraps each line that is longer than the columns; continuation lines are indented further than the line's start.
pub fn broken_at(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        if textwrap::core::display_width(line) <= columns {
            out += line;
        } else {
            let words = line.trim_start();
            let margin = " ".repeat((line.len() - words.len()).min(columns / 2));
            let further = format!("{margin}    ");
            let options = textwrap::Options::new(columns).initial_indent(&margin).subsequent_indent(&further);
            out += &filled(words, options);
        }
        out += end;
    }
    out
}

/// A table whose columns begin at the margin, for standard output.
pub fn columns_of_table<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    table(header, rows, columns())
}

/// The same as wide as it may be; `None`: as wide as it is.
pub fn table<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    columns: Option<usize>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    fit(&mut table, columns);
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Columns begin at the margin, with two blanks between them; cells break where the table is wider than it may be.
pub fn fit(table: &mut Table, columns: Option<usize>) {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let columns = columns.and_then(|columns| u16::try_from(columns).ok());
    if let Some(columns) = columns.filter(|columns| {
        table.lines().any(|line| textwrap::core::display_width(line.trim_end()) > usize::from(*columns))
    }) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
    }
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_written_in_groups() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1_667_143)),
            ("0".into(), "999".into(), "1,667,143".into())
        );
    }

    #[test]
    fn a_long_answer_is_broken_between_words() {
        let text = "word ".repeat(60);
        for (columns, most) in [(None, 100), (Some(60), 60), (Some(300), 120)] {
            let broken = wrapped(&text, 2, columns);
            assert!(broken.lines().all(|line| line.chars().count() <= most), "{broken}");
            assert_eq!(broken.split_whitespace().count(), 60);
        }
        let narrow = wrapped("up to 100 % of it", 0, Some(10));
        assert!(narrow.contains("100 %"), "a number keeps its sign: {narrow}");
    }

    #[test]
    fn a_long_line_of_help_is_broken_and_a_short_one_stays() {
        let text = "Usage: a b\n  \u{1b}[1m--name\u{1b}[0m  of the run, as it is listed\n";
        assert_eq!(broken_at(text, 80), text);
        let broken = broken_at(text, 24);
        assert_eq!(broken, "Usage: a b\n  \u{1b}[1m--name\u{1b}[0m  of the run, as\n      it is listed\n");
    }
}
