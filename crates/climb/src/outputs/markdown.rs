//! A climb or a duel as Markdown: verdict, gates, the three answers, the table of rungs. GitHub's dialect, for
//! summaries and comments.
//!
//! The text is that of the results page. None of it can become markup: text from a server or a scenario is escaped, so
//! it cannot mention a user, reference an issue or become a link.

use std::fmt::Write;

use console::masks::mask_own;
use console::say;
use ladder::duel::DuelFigure;
use ladder::{AgentRows, Climb, Table};

use crate::outputs::duel_answer::DuelAnswer;

/// A job's summary holds 1 MiB: of tables and lists no more rows are written.
const ROWS_MAX: usize = 200;

/// Markup that shows nothing and keeps letters apart that would otherwise be a mention, a reference or a link.
const NOTHING: &str = "<!-- -->";

/// The whole page.
pub fn page(climb: &Climb) -> String {
    let closing = ladder::results_page(climb);
    let mut page = format!("## {}\n", escaped(&ladder::results_page::headline(climb)));
    if let Some(why) = &climb.ended_early {
        page += &format!("\n**Not whole:** {}.\n", escaped(why));
    }
    list(&mut page, &closing.gates);
    for (question, answer) in &closing.answers {
        page += &format!("\n**{}?** {}\n", escaped(question), escaped(answer));
    }
    closing.tables.iter().for_each(|table| put_table(&mut page, table));
    for mark in &closing.marks {
        page += &format!("\n{}\n", escaped(mark));
    }
    list(&mut page, &closing.books);
    list(&mut page, &closing.notes);
    for (heading, words) in &closing.conclusions {
        page += &format!("\n**{}:** {}\n", escaped(heading), escaped(words));
    }
    if let Some(AgentRows { table, below }) = &closing.agents {
        put_table(&mut page, table);
        list(&mut page, below);
    }
    page += &format!("\nRun {}, stepladder {}.", escaped(&climb.run.id), escaped(&climb.run.stepladder));
    page
}

fn put_table(page: &mut String, table: &Table) {
    if let Some(title) = &table.title {
        *page += &format!("\n### {}\n", escaped(title));
    }
    page.push('\n');
    *page += &row(&table.header);
    *page += &format!("|{}\n", " ---: |".repeat(table.header.len()));
    table.rows.iter().take(ROWS_MAX).for_each(|cells| *page += &row(cells));
    if let Some(more) = table.rows.len().checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        let _ = writeln!(page, "\n… {more} more rows; `stepladder show` has them all.");
    }
}

/// The whole page of a duel: both sides, what is known, a table per load, and why it ended.
pub fn page_of_duel(answer: &DuelAnswer) -> String {
    let duel = &answer.duel;
    let mut page = format!("## {} against {}\n", escaped(&duel.b), escaped(&duel.a));
    let differ = duel.differs.iter().map(|one| format!("{}: {} at A, {} at B", one.what, one.old, one.new));
    list(&mut page, &differ.collect::<Vec<_>>());
    for (place, load) in answer.loads() {
        let _ = writeln!(page, "\n### {}, {}\n", escaped(place), ladder::duel::blocks(load.blocks));
        page += &row(&["figure", "B against A (95 %)", "with B", "blocks"].map(str::to_owned));
        page += "| :--- | ---: | :--- | ---: |\n";
        let of = |one: &DuelFigure| {
            row(&[one.figure.clone(), one.change.clone(), one.in_words.clone(), one.blocks.to_string()])
        };
        load.figures.iter().take(ROWS_MAX).for_each(|figure| page += &of(figure));
        let gates = load.gates.iter().map(|gate| format!("gate {}: {}", gate.gate, gate.state.in_words()));
        list(&mut page, &gates.collect::<Vec<_>>());
    }
    page.push('\n');
    for sentence in &answer.found {
        let _ = writeln!(page, "{}", escaped(sentence));
    }
    let run = &answer.run;
    page += &format!("\nRun {}, stepladder {}.", escaped(&run.id), escaped(&run.stepladder));
    page
}

/// Two stored runs: what differs between them, old against new, and what that cannot rule out.
pub fn page_of_comparison(
    (old, new): (&str, &str),
    differs: &[String],
    table: Option<&Table>,
    caution: &str,
) -> String {
    let mut page = format!("## {} against {}\n", escaped(new), escaped(old));
    match differs {
        [] => page += "\nSame machine, versions and settings.\n",
        _ => page += "\nThey differ in\n",
    }
    list(&mut page, differs);
    match table {
        Some(table) => put_table(&mut page, table),
        None => page += "\nOne of them holds no load.\n",
    }
    page + &format!("\n{}", escaped(caution))
}

fn list(page: &mut String, lines: &[String]) {
    if !lines.is_empty() {
        page.push('\n');
    }
    for line in lines.iter().take(ROWS_MAX) {
        let _ = writeln!(page, "- {}", escaped(line));
    }
    if let Some(more) = lines.len().checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        let _ = writeln!(page, "- … {more} more");
    }
}

fn row(cells: &[String]) -> String {
    cells.iter().fold("|".to_owned(), |row, cell| row + &format!(" {} |", escaped(cell))) + "\n"
}

/// A text as one line of Markdown that shows just that text.
fn escaped(text: &str) -> String {
    let masked = mask_own(text);
    let plain = say::harmless(&masked).replace('\u{1b}', "\\u001b");
    // Leading, trailing and repeated blanks are significant in Markdown.
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    for (at, letter) in plain.char_indices() {
        let rest = &plain[at + letter.len_utf8()..];
        let begins_word = !plain[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '^' | '$' | '{' | '}' => {
                out.push('\\');
                out.push(letter);
            }
            // At the start of a line: a heading, a list, a rule below a heading, a numbered list.
            '-' | '+' | '=' | ':' if at == 0 => {
                out.push('\\');
                out.push(letter);
            }
            '.' | ')'
                if at > 0
                    && (rest.is_empty() || rest.starts_with(' '))
                    && plain[..at].bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                out.push('\\');
                out.push(letter);
            }
            '@' => out += &format!("@{NOTHING}"),
            '#' => out += &format!("\\#{NOTHING}"),
            ':' if rest.starts_with("//") => out += &format!(":{NOTHING}"),
            'w' | 'W' if begins_word && rest.to_ascii_lowercase().starts_with("ww.") => {
                out += &format!("{letter}{NOTHING}");
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests;
