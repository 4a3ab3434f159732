//! One module: parsed, stripped of types, its imports and the names of what it measures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use oxc_allocator::Allocator;
use oxc_ast::ast::{Argument, CallExpression, Expression, IdentifierReference, ImportExpression};
use oxc_ast_visit::{Visit, walk};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};

use crate::position::around;

use super::resolve::Asks;
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

/// Parses a module, strips its types and collects its names, where somebody wants them; returns what it imports.
pub(super) fn module(
    path: &Path,
    module: &mut Module,
    names: Option<&mut AllNames>,
) -> Result<Vec<Import>, ScriptMistake> {
    if path.extension().is_some_and(|ending| ending == "json") {
        module.kind = ModuleKind::Json;
        return match serde_json::from_str::<serde::de::IgnoredAny>(&module.source) {
            Ok(_) => Ok(Vec::new()),
            Err(error) => Err(ScriptMistake {
                file: module.name.clone(),
                at: Some((error.line() as u32, error.column() as u32)),
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
    let mut seen = Seen { names, ..Seen::default() };
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
    calls_ready: bool,
    calls_tick: bool,
}

impl From<AllNames> for Names {
    fn from(names: AllNames) -> Names {
        Names {
            operations: names.operations.into_iter().collect(),
            checks: names.checks.into_iter().collect(),
            counters: names.counters.into_iter().collect(),
            calls_ready: names.calls_ready,
            calls_tick: names.calls_tick,
        }
    }
}

/// What the tree of a module says.
#[derive(Default)]
struct Seen<'n> {
    names: Option<&'n mut AllNames>,
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
}

impl<'a> Visit<'a> for Seen<'_> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let (Expression::Identifier(callee), Some(Argument::StringLiteral(specifier))) =
            (&call.callee, call.arguments.first())
            && callee.name == "require"
        {
            self.asks(&specifier.value, call.span.start, Asks::Require);
        }
        if let (Expression::StaticMemberExpression(member), Some(names)) = (&call.callee, &mut self.names) {
            names.calls_ready |= member.property.name == "ready";
            names.calls_tick |= member.property.name == "tick";
            if let Some(Argument::StringLiteral(name)) = call.arguments.first()
                && !matches!(&member.object, Expression::Identifier(object) if object.name == "console")
            {
                let of_kind = match member.property.name.as_str() {
                    "ask" | "answered" | "measure" => Some(&mut names.operations),
                    "check" => Some(&mut names.checks),
                    "count" => Some(&mut names.counters),
                    _ => None,
                };
                if let Some(of_kind) = of_kind {
                    of_kind.insert(name.value.to_string());
                }
            }
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        if let Expression::StringLiteral(specifier) = &import.source {
            self.asks(&specifier.value, import.span.start, Asks::Import);
        }
        walk::walk_import_expression(self, import);
    }

    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        self.speaks_commonjs |= matches!(identifier.name.as_str(), "module" | "exports" | "require");
    }
}
