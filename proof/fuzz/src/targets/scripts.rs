//! What the author of a script wrote: rows of `bot.row`, and source text.

use std::io;
use std::path::Path;

use script::{How, Rows, bundle};

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// Rows of a file: all of them objects with the same columns, and each mistake in a line that there is. The first byte chooses the kind.
pub(super) fn script_rows(input: &[u8]) {
    let Some((&first, rest)) = input.split_first() else { return };
    let text = text(rest);
    // A row ends with either of them, or both.
    let lines = text.matches(['\r', '\n']).count() as u32 + 1;
    let name = if first & 1 == 0 { "users.csv" } else { "users.jsonl" };
    match Rows::read(Path::new(name), &|_| Ok(text.clone()), How::Unique) {
        Ok(rows) => {
            assert!(rows.count() > 0 && rows.count() <= u64::from(lines));
            assert!(rows.suffice_for(rows.count()).is_ok() && rows.suffice_for(rows.count() + 1).is_err());
        }
        Err(mistake) => {
            assert!(mistake.at.is_none_or(|(line, _)| (1..=lines).contains(&line)), "{mistake}");
            assert!(mistake.to_string().starts_with(name));
        }
    }
}

pub(super) const ROW_WORDS: &[&str] =
    &["\"", "\"\"", ",", "\r\n", "\n", "\u{feff}", "{}", "[1]", "\":", "\\u0000", "null"];

pub(super) fn row_seeds() -> Vec<Vec<u8>> {
    [
        "\0name,pass\nann,1\nbob,\"a,\"\"b\n\"\n",
        "\0\u{feff}a\r\n1\r\n\r\n2",
        "\u{1}{\"a\":1}\n\n{}\n",
        "\0a,a\n1,2\n",
        "\0a\n1,2\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Source text of every kind: a bundle, or a mistake in a line that there is. The first byte chooses the kind.
pub(super) fn script_source(input: &[u8]) {
    const NAMES: [&str; 5] = ["bot.ts", "bot.js", "bot.cjs", "bot.mts", "bot.json"];
    let Some((&first, rest)) = input.split_first() else { return };
    let text = text(rest);
    // Nothing is beside it, so that no import leads to a file.
    let path = Path::new("/stepladder-fuzz").join(NAMES[usize::from(first) % NAMES.len()]);
    let read =
        |asked: &Path| if asked == path { Ok(text.clone()) } else { Err(io::ErrorKind::NotFound.into()) };
    match bundle(&path, &read) {
        Ok(bundle) => {
            assert_eq!(bundle.modules[0].source, text.strip_prefix('\u{feff}').unwrap_or(&text));
            assert!(bundle.hash.len() == 64 && bundle.names.operations.is_sorted());
        }
        Err(mistake) => {
            let lines = text.split('\n').count() as u32;
            assert!(
                mistake.at.is_none_or(|(line, column)| (1..=lines).contains(&line) && column > 0),
                "{mistake}"
            );
            assert!(mistake.line.chars().count() <= 122, "{mistake}");
        }
    }
}

pub(super) const SOURCE_WORDS: &[&str] = &[
    "export default ",
    "async (bot) => ",
    "import x from \"./x\";",
    "require('x')",
    "bot.ask(\"a\", ",
    "fetch(`/a/${b}`",
    "{ operation: \"o\" }",
    "interface A { a: number }",
    "enum E { A = 1 }",
    "namespace N { export const a = 1 }",
    "declare ",
    "abstract class ",
    "@decorator ",
    "satisfies ",
    " as any",
    "<T,>",
    "for await (const n of ",
    "yield ",
    "await ",
    "/*",
    "`${",
    "(",
    ")",
    "[",
    "{",
    "}",
    "\u{2028}",
];

pub(super) fn source_seeds() -> Vec<Vec<u8>> {
    [
        "\0import type { Bot } from \"stepladder\";\nexport const options = { hold: \"30s\" };\nexport default async function player(bot: Bot) {\n  \
         for await (const n of bot.every(\"50ms\")) bot.ask(\"move\", n, () => bot.check(\"a\", true));\n}\n",
        "\u{1}export default async (bot) => { await fetch(`/items/${bot.id}`, { method: \"POST\" }); bot.count('shots'); };",
        "\u{2}const a = require('./a'); module.exports = (bot) => bot.row(\"u.csv\", 'wrap');",
        "\u{3}enum A { B = 1, C = B << 2 } namespace N { export const a = 1 } export default class<T> { constructor(private a: T) {} }",
        "\u{4}{\"a\": [1, {\"b\": null}]}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
