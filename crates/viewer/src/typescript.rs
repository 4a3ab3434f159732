//! The page's types, and what it knows of them: generates web/src/data.ts from the Rust types that the page receives.

use std::collections::BTreeMap;

use inflight_analysis::RunComparison;
use measure::{LoadUnit, Measure, Purpose};
use strum::VariantArray;
use ts_rs::{Config, TS, TypeVisitor};

use crate::api::{RunPage, Second, TickFile};
use crate::fold::{CLIENT_TICK_INTERVAL, NAMES, TICK_BUSY};

#[path = "../tests/it/committed.rs"]
mod committed;

const HEAD: &str = "// Generated from the Rust types by crates/viewer/src/typescript.rs; not to be edited. To write it anew:
// STEPLADDER_WRITE=1 cargo test -p stepladder-viewer typescript
// `_ns` are nanoseconds since the start of a trial unless the name says otherwise. A number that may not be stated is null.
";

/// Declarations by name.
struct Declared {
    config: Config,
    types: BTreeMap<String, String>,
}

impl TypeVisitor for Declared {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // Without a file it is a built-in type of TypeScript, and a map has no name either.
        if T::output_path().is_none() {
            return;
        }
        let name = T::ident(&self.config);
        if self.types.contains_key(&name) {
            return;
        }
        let text = format!("{}export {}", T::docs().unwrap_or_default(), T::decl(&self.config));
        self.types.insert(name, in_lines(&text));
        T::visit_dependencies(self);
    }
}

/// One line per field, its comment before it.
fn in_lines(declaration: &str) -> String {
    let mut text = declaration.trim_end_matches(';').to_owned();
    for (from, to) in [
        ("\n/**\n * ", "\n  /** "),
        ("\n */\n", " */ "),
        ("\n *\n * ", " "),
        ("\n * ", " "),
        (", \n", "\n"),
        ("{ \n", "{\n"),
        (", }", "\n}"),
    ] {
        text = text.replace(from, to);
    }
    text.replacen(" */ export", " */\nexport", 1)
}

fn union(name: &str, members: impl Iterator<Item = &'static str>) -> String {
    let members: Vec<String> = members.map(|member| format!("'{member}'")).collect();
    format!("export type {name} = {}", members.join(" | "))
}

#[test]
fn typescript_has_the_types_of_what_is_sent() {
    let mut declared = Declared { config: Config::new().with_large_int("number"), types: BTreeMap::new() };
    declared.visit::<RunPage>();
    declared.visit::<Second>();
    declared.visit::<TickFile>();
    declared.visit::<RunComparison>();
    declared.visit::<Purpose>();
    let columns = union("ColumnName", std::iter::once("t").chain(NAMES.iter().copied()));
    let measures = Measure::ALL.iter().map(|measure| measure.name());
    let distributions = union("DistributionName", measures.chain([CLIENT_TICK_INTERVAL, TICK_BUSY]));
    let requests = LoadUnit::VARIANTS.iter().filter(|unit| unit.counts_requests());
    let requests: Vec<String> = requests.map(|unit| format!("'{}'", unit.name())).collect();
    let requests = format!(
        "/** Of loads that count requests, each of which owes a reply. */\nexport const REQUEST_UNITS: readonly LoadUnit[] = [{}]",
        requests.join(", ")
    );
    let types: Vec<String> = declared.types.into_values().chain([columns, distributions, requests]).collect();
    committed::check("web/src/data.ts", &format!("{HEAD}\n{}\n", types.join("\n\n")));
}
