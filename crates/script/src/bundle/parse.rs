//! One module: parsed, stripped of types, its imports and the names of what it measures.

mod fetches;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, CallExpression, Expression, IdentifierReference, ImportExpression, NewExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{HelperLoaderMode, TransformOptions, Transformer};

use crate::position::around;

use super::resolve::{Asks, Classes};
use super::{Module, ModuleKind, Names, ScriptMistake, Stripped, mistake_at};

/// Where a module asks for another.
pub(super) struct Import {
    /// as written
    pub specifier: String,
    /// byte in the source
    pub offset: usize,
    pub asks: Asks,
    /// it is asked for while the script runs, which may be prepared for its absence
    pub may_be_missing: bool,
}

/// The parser descends into brackets by calls of its own, and a stack that overflows would end the process.
const NESTED_MAX: usize = 10_000;
/// For so many of the most expensive kind. Only what is used of it is taken.
const STACK_BYTES: usize = 256 << 20;

/// Parses a module, strips its types and collects its names, where it is the author's own; returns what it imports. Decorators
/// of before the standard become calls of `babelHelpers`, which the prelude has.
pub(super) fn module(
    path: &Path,
    module: &mut Module,
    names: &mut AllNames,
    is_own: bool,
    classes: Classes,
) -> Result<Vec<Import>, ScriptMistake> {
    if let Some(offset) = nested_too_deep(&module.source) {
        let what =
            format!("brackets are nested more than {NESTED_MAX} deep here, which no JavaScript engine runs");
        return Err(mistake_at(module, offset, what));
    }
    let file = module.name.clone();
    let unread = |what: String| ScriptMistake { file: file.clone(), at: None, what, line: String::new() };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        let parser = builder
            .spawn_scoped(scope, || parsed(path, module, names, is_own, classes))
            .map_err(|error| unread(format!("there is no memory to parse it: {error}")))?;
        parser.join().unwrap_or_else(|_| Err(unread("the parser fails at it; please report that".to_owned())))
    })
}

/// Where, bytes. Brackets in texts and comments count too: they come in pairs there.
fn nested_too_deep(source: &str) -> Option<usize> {
    let mut depth = 0usize;
    source.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > NESTED_MAX
    })
}

fn parsed(
    path: &Path,
    module: &mut Module,
    names: &mut AllNames,
    is_own: bool,
    classes: Classes,
) -> Result<Vec<Import>, ScriptMistake> {
    if path.extension().is_some_and(|ending| ending == "json") {
        module.kind = ModuleKind::Json;
        return match serde_json::from_str::<serde::de::IgnoredAny>(&module.source) {
            Ok(_) => Ok(Vec::new()),
            Err(error) => Err(ScriptMistake {
                file: module.name.clone(),
                // Before the first byte it says 0.
                at: Some(((error.line() as u32).max(1), (error.column() as u32).max(1))),
                what: format!("it is no JSON: {error}"),
                line: around(module.line(error.line() as u32), error.column() as u32),
            }),
        };
    }
    let allocator = Allocator::default();
    let kind = SourceType::from_path(path).unwrap_or_else(|_| SourceType::mjs());
    let kind = if kind.is_commonjs() { kind } else { kind.with_unambiguous(true) };
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, &module.source, kind).with_options(options).parse();
    if let Some(first) = parsed.diagnostics.errors().next() {
        let offset = first.labels.iter().next().map(|label| label.offset() as usize);
        let what = first.message.to_string();
        return Err(match offset {
            Some(offset) => mistake_at(module, offset, what),
            None => ScriptMistake { file: module.name.clone(), at: None, what, line: String::new() },
        });
    }
    let mut program = parsed.program;
    let mut seen = Seen { names, is_own, imports: Vec::new(), speaks_commonjs: false };
    seen.visit_program(&program);
    let Seen { mut imports, speaks_commonjs, .. } = seen;
    let is_module = parsed.module_record.has_module_syntax;
    // A file that says nothing of both is run as what this is: a script of its own, or a part of a package.
    let is_commonjs = kind.is_commonjs() || !is_module && (speaks_commonjs || names_a_package(path));
    if is_commonjs {
        module.kind = ModuleKind::CommonJs;
    }
    for (specifier, requests) in &parsed.module_record.requested_modules {
        if let Some(request) = requests.iter().find(|request| !request.is_type) {
            imports.push(Import {
                specifier: specifier.to_string(),
                offset: request.span.start as usize,
                asks: Asks::Import,
                may_be_missing: false,
            });
        }
    }
    imports.sort_by_key(|import| import.offset);
    if kind.is_typescript() {
        let scoping = SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true).build(&program);
        let scoping = scoping.semantic.into_scoping();
        let mut options = TransformOptions::default();
        options.decorator.legacy = classes.has_legacy_decorators;
        options.helper_loader.mode = HelperLoaderMode::External;
        options.typescript.remove_class_fields_without_initializer = classes.assigns_fields;
        options.assumptions.set_public_class_fields = classes.assigns_fields;
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
        imports.retain(|import| import.may_be_missing || is_imported(module.code(), &import.specifier));
    }
    Ok(imports)
}

fn names_a_package(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == super::PACKAGES)
}

/// Whether printed code still imports a module; the printer writes specifiers in double quotes.
fn is_imported(code: &str, specifier: &str) -> bool {
    code.contains(&format!("\"{specifier}\"")) || code.contains(&format!("'{specifier}'"))
}

/// Names in their order of the alphabet, so that they do not depend on that of the files.
#[derive(Default)]
pub(super) struct AllNames {
    operations: BTreeSet<String>,
    checks: BTreeSet<String>,
    counters: BTreeSet<String>,
    recorded: BTreeSet<String>,
    rows: BTreeMap<String, String>,
    calls_room: bool,
    uses_http: bool,
    calls_ready: bool,
    calls_tick: bool,
}

impl From<AllNames> for Names {
    fn from(mut names: AllNames) -> Names {
        if names.uses_http {
            names.operations.insert(super::FETCH.to_owned());
        }
        Names {
            operations: names.operations.into_iter().collect(),
            checks: names.checks.into_iter().collect(),
            counters: names.counters.into_iter().collect(),
            recorded: names.recorded.into_iter().collect(),
            rows: names.rows,
            calls_room: names.calls_room,
            uses_http: names.uses_http,
            calls_ready: names.calls_ready,
            calls_tick: names.calls_tick,
        }
    }
}

/// What the tree of a module says.
struct Seen<'n> {
    names: &'n mut AllNames,
    /// packages have calls of the same names that mean something else
    is_own: bool,
    /// what is asked for while it runs
    imports: Vec<Import>,
    /// it has words of CommonJS
    speaks_commonjs: bool,
}

impl Seen<'_> {
    fn asks(&mut self, specifier: &str, offset: u32, asks: Asks) {
        let import =
            Import { specifier: specifier.to_owned(), offset: offset as usize, asks, may_be_missing: true };
        self.imports.push(import);
    }

    /// A call of `bot`, or one that looks like it.
    fn names_of(&mut self, method: &str, arguments: &[Argument<'_>]) {
        self.names.calls_ready |= method == "ready";
        self.names.calls_tick |= method == "tick";
        let Some(Argument::StringLiteral(name)) = arguments.first() else { return };
        let names = match method {
            "ask" | "answered" | "measure" => &mut self.names.operations,
            "check" => &mut self.names.checks,
            "count" => &mut self.names.counters,
            "record" => &mut self.names.recorded,
            "row" => {
                let how = match arguments.get(1) {
                    Some(Argument::StringLiteral(how)) => how.value.as_str(),
                    _ => "unique",
                };
                self.names.rows.insert(name.value.to_string(), how.to_owned());
                return;
            }
            _ => return,
        };
        names.insert(name.value.to_string());
    }
}

impl<'a> Visit<'a> for Seen<'_> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        match &call.callee {
            Expression::Identifier(callee) if callee.name == "require" => {
                if let Some(Argument::StringLiteral(specifier)) = call.arguments.first() {
                    self.asks(&specifier.value, call.span.start, Asks::Require);
                }
            }
            Expression::Identifier(callee) if callee.name == "fetch" && self.is_own => {
                self.names.operations.extend(fetches::operation(&call.arguments));
            }
            Expression::StaticMemberExpression(member) if self.is_own => {
                let is_console = matches!(&member.object, Expression::Identifier(it) if it.name == "console");
                if !is_console {
                    self.names_of(&member.property.name, &call.arguments);
                }
                // Other objects have methods of these names too.
                let is_bot = matches!(&member.object, Expression::Identifier(it) if it.name == "bot");
                self.names.calls_room |= is_bot && member.property.name == "room";
            }
            _ => {}
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        if matches!(&new.callee, Expression::Identifier(callee) if callee.name == "EventSource")
            && self.is_own
        {
            self.names.operations.extend(fetches::operation(&new.arguments));
        }
        walk::walk_new_expression(self, new);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        if let Expression::StringLiteral(specifier) = &import.source {
            self.asks(&specifier.value, import.span.start, Asks::Import);
        }
        walk::walk_import_expression(self, import);
    }

    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        match identifier.name.as_str() {
            "module" | "exports" | "require" => self.speaks_commonjs = true,
            "fetch" | "EventSource" | "XMLHttpRequest" => self.names.uses_http = true,
            _ => {}
        }
    }
}
