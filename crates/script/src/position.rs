//! Where an error happened, in the text that its author wrote.

use oxc_sourcemap::SourceMap;

use crate::bundle::{Bundle, Module};

/// Of a longer line only a part is shown.
const LINE_CHARACTERS_MAX: usize = 120;

/// The first line of a stack that lies in a file of the script: `player.ts:12:5`, and the line itself.
///
/// Stacks of QuickJS read `    at move (player.ts:9:13)`, or without the name and the brackets.
pub(crate) fn of_stack(stack: &str, bundle: &Bundle) -> Option<String> {
    stack.lines().find_map(|line| of_frame(line, bundle))
}

fn of_frame(line: &str, bundle: &Bundle) -> Option<String> {
    let place = line.trim().strip_prefix("at ")?;
    let place = place.rsplit_once('(').map_or(place, |(_, place)| place).trim_end_matches(')');
    let (module, row, column) = in_source(place, bundle)?;
    Some(format!("{}:{row}:{column}: {}", module.name, around(module.line(row), column)))
}

/// `file:line` of the author's text where the engine says `file:line:column`; `None` where that is no file of the script.
pub(crate) fn of_line(place: &str, bundle: &Bundle) -> Option<String> {
    let (module, row, _) = in_source(place, bundle)?;
    Some(format!("{}:{row}", module.name))
}

/// `file:line:column` as the engine says it, in the author's text.
fn in_source<'b>(place: &str, bundle: &'b Bundle) -> Option<(&'b Module, u32, u32)> {
    let mut parts = place.rsplitn(3, ':');
    let (column, row, file) = (parts.next()?, parts.next()?, parts.next()?);
    let (row, column): (u32, u32) = (row.parse().ok()?, column.parse().ok()?);
    // QuickJS says so of a function that is one expression, wherever it stands.
    if (row, column) == (1, 1) {
        return None;
    }
    let module = bundle.modules.iter().find(|module| module.name == file)?;
    let (row, column) = match &module.stripped {
        None => (row, column),
        Some(stripped) => {
            let map = SourceMap::from_json_string(&stripped.map).ok()?;
            let table = map.generate_lookup_table();
            let token = map.lookup_token(&table, row.checked_sub(1)?, column.saturating_sub(1))?;
            (token.get_src_line() + 1, token.get_src_col() + 1)
        }
    };
    Some((module, row, column))
}

/// A line as it is shown; of one that a tool wrote, without line ends, the part around the column.
pub(crate) fn around(line: &str, column: u32) -> String {
    let letters = line.chars().count();
    if letters <= LINE_CHARACTERS_MAX {
        return line.trim().to_owned();
    }
    let from = (column as usize).saturating_sub(LINE_CHARACTERS_MAX / 2).min(letters - LINE_CHARACTERS_MAX);
    let part: String = line.chars().skip(from).take(LINE_CHARACTERS_MAX).collect();
    let before = if from > 0 { "…" } else { "" };
    let behind = if from + LINE_CHARACTERS_MAX < letters { "…" } else { "" };
    format!("{before}{}{behind}", part.trim())
}
