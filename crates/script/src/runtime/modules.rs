//! The modules of a bundle, as QuickJS asks for them.
//!
//! QuickJS knows modules that `export`. One that fills `module.exports` runs when it is first asked for, and a module of the
//! same name hands out what it has: all of it as default (or its own `default`, where a compiler wrote it from a module), and
//! each property by its name.

use std::sync::Arc;

use rquickjs::context::EvalOptions;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Exception, Function, Module, Object, Value};

use crate::bundle::{self, Bundle, ModuleKind};

const REQUIRE: &str = include_str!("../prelude/modules.js");
/// Where the function is kept that a module of CommonJS comes from; under a symbol, so that no script meets it by chance.
const KEPT_AS: &str = "Symbol.for(\"stepladder.require\")";

/// Modules by name, as the bundle has them.
pub(super) struct Modules(pub Arc<Bundle>);

impl Modules {
    fn named(&self, name: &str) -> Option<&bundle::Module> {
        self.0.modules.iter().find(|module| module.name == name)
    }

    /// What a specifier means in the module `base`.
    fn meant(&self, base: &str, specifier: &str) -> Option<&str> {
        self.named(base)?.imports.get(specifier).map(String::as_str)
    }
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        self.meant(base, name).map(str::to_owned).ok_or_else(|| not_found(ctx, base, name))
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let module = self.named(name).ok_or_else(|| Error::new_loading(name))?;
        match module.kind {
            ModuleKind::Module => Module::declare(ctx.clone(), name, module.code()),
            ModuleKind::CommonJs | ModuleKind::Json => {
                Module::declare(ctx.clone(), name, hands_out(ctx, name)?)
            }
        }
    }
}

fn not_found(ctx: &Ctx<'_>, base: &str, specifier: &str) -> Error {
    let words = format!(
        "\"{specifier}\", which {base} asks for, is not there: it was not found before the run, or belongs to Node.js"
    );
    Exception::throw_message(ctx, &words)
}

/// A module that hands out what a module of CommonJS has.
fn hands_out(ctx: &Ctx<'_>, name: &str) -> rquickjs::Result<String> {
    let require: Function<'_> = ctx.eval(format!("globalThis[{KEPT_AS}]"))?;
    let exports: Value<'_> = require.call((name,))?;
    let name = serde_json::to_string(name).map_err(|_| Error::new_loading(name))?;
    let mut text = format!(
        "const it = globalThis[{KEPT_AS}]({name}); export default it?.__esModule && \"default\" in it ? it.default : it;"
    );
    for (at, key) in exports.as_object().into_iter().flat_map(Object::keys::<String>).flatten().enumerate() {
        if key != "default" && is_identifier(&key) {
            text += &format!("const _{at} = it.{key}; export {{ _{at} as {key} }};");
        }
    }
    Ok(text)
}

fn is_identifier(key: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    key.chars().all(is_letter) && key.chars().next().is_some_and(|first| !first.is_numeric())
}

/// Gives the realm what modules of CommonJS need. Called once, before the script.
pub(super) fn install(ctx: &Ctx<'_>, bundle: &Arc<Bundle>) -> rquickjs::Result<()> {
    let host = Object::new(ctx.clone())?;
    let modules = Modules(bundle.clone());
    host.set(
        "resolve",
        Function::new(ctx.clone(), move |ctx: Ctx<'_>, base: String, specifier: String| {
            modules
                .meant(&base, &specifier)
                .map(str::to_owned)
                .ok_or_else(|| not_found(&ctx, &base, &specifier))
        })?,
    )?;
    let modules = Modules(bundle.clone());
    host.set(
        "compile",
        Function::new(ctx.clone(), move |ctx, name: String| compile(&ctx, &modules, &name))?,
    )?;
    let made: Function<'_> = ctx.eval(format!("({REQUIRE})"))?;
    let require: Value<'_> = made.call((host,))?;
    let keep: Function<'_> = ctx.eval(format!(
        "(require) => {{ Object.defineProperty(globalThis, {KEPT_AS}, {{ value: require }}); }}"
    ))?;
    keep.call((require,))
}

/// The function that a module of CommonJS is.
fn compile<'js>(ctx: &Ctx<'js>, modules: &Modules, name: &str) -> rquickjs::Result<Function<'js>> {
    let module = modules.named(name).ok_or_else(|| Error::new_loading(name))?;
    let body = match module.kind {
        // A line for shells may stand first, and only there.
        ModuleKind::CommonJs => match module.code().strip_prefix("#!") {
            Some(rest) => format!("//{rest}"),
            None => module.code().to_owned(),
        },
        ModuleKind::Json => format!("module.exports = {}", module.code()),
        ModuleKind::Module => {
            let words = format!("{name} exports by \"export\" and cannot be required; import it");
            return Err(Exception::throw_message(ctx, &words));
        }
    };
    let mut options = EvalOptions::default();
    options.filename = Some(name.to_owned());
    options.strict = false;
    // On the same line, so that lines stay what they are; the last line may be a comment.
    ctx.eval_with_options(
        format!("(function (exports, require, module, __filename, __dirname) {{{body}\n}})"),
        options,
    )
}
