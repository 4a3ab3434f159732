//! A script and what it imports: found, stripped of types, and kept as text.
//!
//! A bundle is made once, before the run: the run stores it, so that the same bot can be played again whatever has become of
//! the files. Each module stays a module; QuickJS links them. A module of TypeScript is stripped by oxc and keeps a source
//! map, so that an error names the line that its author wrote.
//! The caller reads files; where an import leads is looked up on disk (`resolve`).

mod parse;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::position::around;
use parse::{AllNames, Import};
use resolve::{Files, Found};

/// No file of a script is longer.
const MODULE_BYTES_MAX: usize = 16 << 20;
/// No script has more files.
const MODULES_MAX: usize = 5_000;
/// Stands for what a package says that browsers do without.
const NOTHING: &str = "(nothing)";
/// The operation of requests over HTTP whose own the text does not say.
pub const FETCH: &str = "fetch";
/// The folder of installed packages.
const PACKAGES: &str = "node_modules";
/// Endings of script files.
pub const ENDINGS: [&str; 6] = [".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"];

/// A script with everything that it imports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bundle {
    /// the script and its imports; the script comes first
    pub modules: Vec<Module>,
    /// SHA-256 of their texts, as hexadecimal digits
    pub hash: String,
    /// what the script measures and counts, by the names that stand in its text
    pub names: Names,
}

/// One file of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// path as it is shown in errors, seen from the script's folder
    pub name: String,
    /// as its author wrote it
    pub source: String,
    /// how it hands out what it has
    #[serde(default)]
    pub kind: ModuleKind,
    /// without types; `None` where the source is JavaScript already
    pub stripped: Option<Stripped>,
    /// what it imports: as written, and the name of that module
    pub imports: BTreeMap<String, String>,
}

/// How a module hands out what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModuleKind {
    /// `export`
    #[default]
    Module,
    /// `module.exports`
    CommonJs,
    /// data
    Json,
}

/// A module without its types.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stripped {
    /// JavaScript
    pub code: String,
    /// source map, version 3
    pub map: String,
}

/// What a script measures, checks and counts: string literals of its calls of `bot`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// of `ask`, `answered`, `measure` and, as far as the text says them, of `fetch`; `FETCH` for its others
    pub operations: Vec<String>,
    /// of `check`
    pub checks: Vec<String>,
    /// of `count`
    pub counters: Vec<String>,
    /// of `record`
    #[serde(default)]
    pub recorded: Vec<String>,
    /// files of `row`, and which row is a bot's
    #[serde(default)]
    pub rows: BTreeMap<String, String>,
    /// it keeps books of what is said in rooms
    #[serde(default)]
    pub calls_room: bool,
    /// it or a package may send requests over HTTP
    #[serde(default)]
    pub uses_http: bool,
    /// it says itself when it is in
    pub calls_ready: bool,
    /// it tells the server's ticks
    pub calls_tick: bool,
}

/// A mistake in a script, found before it runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}{}", position(.at), shown_line(.line))]
pub struct ScriptMistake {
    /// of the module
    pub file: String,
    /// line and column, from 1, where they are known
    pub at: Option<(u32, u32)>,
    /// what is wrong and what to do
    pub what: String,
    /// the line as written; empty where it is not known
    pub line: String,
}

fn position(at: &Option<(u32, u32)>) -> String {
    at.map_or(String::new(), |(line, column)| format!(":{line}:{column}"))
}

fn shown_line(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("\n    {line}") }
}

impl Names {
    /// A name that stands for an operation and for a distribution of `record`: an objective could not say which it means.
    pub fn ambiguous(&self) -> Option<&str> {
        self.recorded.iter().find(|name| self.operations.contains(name)).map(String::as_str)
    }
}

impl Module {
    /// What QuickJS runs.
    pub(crate) fn code(&self) -> &str {
        self.stripped.as_ref().map_or(&self.source, |stripped| &stripped.code)
    }

    /// The line as its author wrote it, from 1.
    pub(crate) fn line(&self, line: u32) -> &str {
        self.source.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default()
    }
}

/// A way to read the files of a script.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// Reads a script and what it imports. Errors: the first mistake.
pub fn bundle(entry: &Path, read: ReadFile<'_>) -> Result<Bundle, ScriptMistake> {
    let whole = std::fs::canonicalize(entry).or_else(|_| std::path::absolute(entry));
    let whole = whole.unwrap_or_else(|_| entry.to_owned());
    let folder = whole.parent().unwrap_or(Path::new("/"));
    let files = Files::new();
    let mut bundle = Bundle::default();
    let mut names = AllNames::default();
    let mut known: BTreeSet<PathBuf> = [whole.clone()].into();
    let mut queue = vec![whole.clone()];
    let mut lacks_some = false;
    while let Some(path) = queue.pop() {
        let name = shown_path(&path, folder);
        let source =
            read(if path == whole { entry } else { &path }).map_err(|error| unread(&name, &error))?;
        let source = source.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(source);
        if source.len() > MODULE_BYTES_MAX {
            let what = format!("it has more than {} MiB; a script's file is shorter", MODULE_BYTES_MAX >> 20);
            return Err(ScriptMistake { file: name, at: None, what, line: String::new() });
        }
        let mut module = Module { name, source, ..Module::default() };
        // Packages have calls of the same names that mean something else.
        let is_own = !path.components().any(|part| part.as_os_str() == PACKAGES);
        for import in parse::module(&path, &mut module, &mut names, is_own, files.classes(&path))? {
            let Import { specifier, offset, asks, may_be_missing } = import;
            let target = match files.find(&path, &specifier, asks) {
                Ok(Found::File(target)) => target,
                Ok(Found::Declarations) => continue,
                Ok(Found::Nothing) => {
                    lacks_some = true;
                    module.imports.insert(specifier, NOTHING.to_owned());
                    continue;
                }
                // The script may be prepared for it, and never come there.
                Err(_) if may_be_missing => continue,
                Err(what) => return Err(mistake_at(&module, offset, what)),
            };
            module.imports.insert(specifier, shown_path(&target, folder));
            if known.insert(target.clone()) {
                if known.len() > MODULES_MAX {
                    let what = format!("the script imports more than {MODULES_MAX} files");
                    return Err(mistake_at(&module, offset, what));
                }
                queue.push(target);
            }
        }
        bundle.modules.push(module);
    }
    if lacks_some {
        let kind = ModuleKind::CommonJs;
        bundle.modules.push(Module { name: NOTHING.to_owned(), kind, ..Module::default() });
    }
    bundle.names = names.into();
    bundle.hash = hash(&bundle.modules);
    Ok(bundle)
}

fn hash(modules: &[Module]) -> String {
    let mut hash = Sha256::new();
    for module in modules {
        // Lengths first, so that no text can stand for two.
        hash.update((module.name.len() as u64).to_le_bytes());
        hash.update(&module.name);
        hash.update((module.source.len() as u64).to_le_bytes());
        hash.update(&module.source);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unread(name: &str, error: &io::Error) -> ScriptMistake {
    ScriptMistake {
        file: name.to_owned(),
        at: None,
        what: format!("cannot be read: {error}"),
        line: String::new(),
    }
}

/// Seen from the script's folder, with `/`.
fn shown_path(path: &Path, folder: &Path) -> String {
    let common = path.components().zip(folder.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    let down = path.components().skip(common);
    up.chain(down).collect::<PathBuf>().to_string_lossy().into_owned()
}

fn mistake_at(module: &Module, offset: usize, what: String) -> ScriptMistake {
    let before = module.source.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
    let line_shown = around(module.line(line), column);
    ScriptMistake { file: module.name.clone(), at: Some((line, column)), what, line: line_shown }
}

#[cfg(test)]
mod tests;
