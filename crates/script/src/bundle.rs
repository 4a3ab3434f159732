//! A script and what it imports: found, stripped of types, and kept as text.
//!
//! A bundle is made once, before the run: the run stores it, so that the same bot can be played again whatever has become of
//! the files. Each module stays a module; QuickJS links them. A module of TypeScript is stripped by oxc and keeps a source
//! map, so that an error names the line that its author wrote.
//! Pure: the caller reads files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use oxc_allocator::Allocator;
use oxc_ast::ast::{Argument, CallExpression, Expression};
use oxc_ast_visit::{Visit, walk};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// No file of a script is longer.
const MODULE_BYTES_MAX: usize = 16 << 20;
/// No script has more files.
const MODULES_MAX: usize = 2_000;
/// The module of the declarations; what is imported from it are types.
const OWN_MODULE: &str = "stepladder";
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
    /// without types; `None` where the source is JavaScript already
    pub stripped: Option<Stripped>,
    /// what it imports: as written, and the name of that module
    pub imports: BTreeMap<String, String>,
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
    /// of `ask`, `answered` and `measure`
    pub operations: Vec<String>,
    /// of `check`
    pub checks: Vec<String>,
    /// of `count`
    pub counters: Vec<String>,
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
    if line.is_empty() { String::new() } else { format!("\n    {}", line.trim()) }
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
    let folder = entry.parent().unwrap_or(Path::new(""));
    let mut bundle = Bundle::default();
    let mut names = BTreeNames::default();
    let mut known: BTreeSet<PathBuf> = [entry.to_owned()].into();
    let mut queue = vec![entry.to_owned()];
    while let Some(path) = queue.pop() {
        let name = shown_path(&path, folder);
        let source = read(&path).map_err(|error| unread(&name, &error))?;
        let source = source.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(source);
        if source.len() > MODULE_BYTES_MAX {
            let what = format!("it has more than {} MiB; a script's file is shorter", MODULE_BYTES_MAX >> 20);
            return Err(ScriptMistake { file: name, at: None, what, line: String::new() });
        }
        let mut module = Module { name, source, ..Module::default() };
        let found = parse(&path, &mut module, &mut names)?;
        for (specifier, offset) in found {
            let target = match resolve(&path, &specifier, read) {
                Ok(Some(target)) => target,
                Ok(None) => continue,
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
    let short = if folder.as_os_str().is_empty() { path } else { path.strip_prefix(folder).unwrap_or(path) };
    short.to_string_lossy().into_owned()
}

/// The file that an import means; `None`: nothing is to be loaded.
fn resolve(from: &Path, specifier: &str, read: ReadFile<'_>) -> Result<Option<PathBuf>, String> {
    if specifier == OWN_MODULE {
        return Ok(None);
    }
    if specifier.starts_with("node:") {
        return Err(format!(
            "\"{specifier}\" belongs to Node.js, and a bot has no files, processes or sockets besides those of bot.websocket and \
             WebSocket; leave the import out"
        ));
    }
    if !specifier.starts_with("./") && !specifier.starts_with("../") {
        return Err(format!(
            "\"{specifier}\" is no relative path; packages cannot be imported yet: bundle the script into one file (for \
             example with esbuild --bundle --format=esm) and climb that"
        ));
    }
    let base = normal(&from.parent().unwrap_or(Path::new("")).join(specifier));
    let mut candidates = vec![base.clone()];
    let text = base.to_string_lossy().into_owned();
    // As TypeScript reads it: `./x.js` may mean `./x.ts`.
    if let Some(stem) = text.strip_suffix(".js") {
        candidates.push(PathBuf::from(format!("{stem}.ts")));
    }
    candidates.extend(ENDINGS.iter().map(|ending| PathBuf::from(format!("{text}{ending}"))));
    candidates.extend(["index.ts", "index.js"].iter().map(|name| base.join(name)));
    let found = candidates.into_iter().find(|path| {
        ENDINGS.iter().any(|ending| path.to_string_lossy().ends_with(ending)) && read(path).is_ok()
    });
    found.map(Some).ok_or_else(|| format!("\"{specifier}\" names no file that can be read; check its path"))
}

/// Without `.` and with `..` taken back where that is possible.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(parts.components().next_back(), Some(Component::Normal(_))) => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts
}

/// Parses a module, strips its types and collects its names; returns what it imports and where.
fn parse(
    path: &Path,
    module: &mut Module,
    names: &mut BTreeNames,
) -> Result<Vec<(String, usize)>, ScriptMistake> {
    let allocator = Allocator::default();
    let kind = SourceType::from_path(path).unwrap_or_else(|_| SourceType::mjs()).with_module(true);
    let parsed = Parser::new(&allocator, &module.source, kind).parse();
    if let Some(first) = parsed.diagnostics.errors().next() {
        let offset = first.labels.iter().next().map(|label| label.offset() as usize);
        let what = first.message.to_string();
        return Err(match offset {
            Some(offset) => mistake_at(module, offset, what),
            None => ScriptMistake { file: module.name.clone(), at: None, what, line: String::new() },
        });
    }
    let mut program = parsed.program;
    names.visit_program(&program);
    let mut imports = Vec::new();
    for (specifier, requests) in &parsed.module_record.requested_modules {
        let used = requests.iter().find(|request| !request.is_type);
        if let Some(request) = used {
            imports.push((specifier.to_string(), request.span.start as usize));
        }
    }
    imports.sort_by_key(|(_, offset)| *offset);
    if kind.is_typescript() {
        let scoping = SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true).build(&program);
        let scoping = scoping.semantic.into_scoping();
        let options = TransformOptions::default();
        let done = Transformer::new(&allocator, path, &options).build_with_scoping(scoping, &mut program);
        if let Some(first) = done.diagnostics.errors().next() {
            let offset = first.labels.iter().next().map_or(0, |label| label.offset() as usize);
            return Err(mistake_at(module, offset, first.message.to_string()));
        }
        let options = CodegenOptions {
            source_map_path: Some(PathBuf::from(&module.name)),
            ..CodegenOptions::default()
        };
        let printed = Codegen::new().with_options(options).build(&program);
        let map = printed.map.map_or(String::new(), |map| map.to_json_string());
        module.stripped = Some(Stripped { code: printed.code, map });
        // Imports of which only types were used are gone from the code.
        imports.retain(|(specifier, _)| is_imported(module.code(), specifier));
    }
    Ok(imports)
}

/// Whether printed code still imports a module; the printer writes specifiers in double quotes.
fn is_imported(code: &str, specifier: &str) -> bool {
    code.contains(&format!("\"{specifier}\"")) || code.contains(&format!("'{specifier}'"))
}

fn mistake_at(module: &Module, offset: usize, what: String) -> ScriptMistake {
    let before = module.source.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
    let shown = module.line(line).to_owned();
    ScriptMistake { file: module.name.clone(), at: Some((line, column)), what, line: shown }
}

/// Names in their order of the alphabet, so that they do not depend on that of the files.
#[derive(Default)]
struct BTreeNames {
    operations: BTreeSet<String>,
    checks: BTreeSet<String>,
    counters: BTreeSet<String>,
    calls_ready: bool,
    calls_tick: bool,
}

impl From<BTreeNames> for Names {
    fn from(names: BTreeNames) -> Names {
        Names {
            operations: names.operations.into_iter().collect(),
            checks: names.checks.into_iter().collect(),
            counters: names.counters.into_iter().collect(),
            calls_ready: names.calls_ready,
            calls_tick: names.calls_tick,
        }
    }
}

impl<'a> Visit<'a> for BTreeNames {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = &call.callee {
            self.calls_ready |= member.property.name == "ready";
            self.calls_tick |= member.property.name == "tick";
        }
        if let Expression::StaticMemberExpression(member) = &call.callee
            && let Some(Argument::StringLiteral(name)) = call.arguments.first()
            && !matches!(&member.object, Expression::Identifier(object) if object.name == "console")
        {
            let names = match member.property.name.as_str() {
                "ask" | "answered" | "measure" => Some(&mut self.operations),
                "check" => Some(&mut self.checks),
                "count" => Some(&mut self.counters),
                _ => None,
            };
            if let Some(names) = names {
                names.insert(name.value.to_string());
            }
        }
        walk::walk_call_expression(self, call);
    }
}

#[cfg(test)]
mod tests;
