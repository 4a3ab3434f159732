//! Finds the file that an import means, as Node.js and bundlers for browsers find it.
//!
//! The library does the work: relative paths with the endings of TypeScript, packages with their conditions and fields for
//! browsers, since what a bot has are the Web's interfaces, and `paths` of a tsconfig.json.

use std::path::{Path, PathBuf};

use oxc_resolver::{ResolveError, ResolveOptions, Resolver, TsconfigDiscovery};

/// The module of the declarations; what is imported from it are types.
const OWN_MODULE: &str = "stepladder";

/// What an import means.
#[derive(Debug)]
pub(super) enum Found {
    /// a file, by its absolute path
    File(PathBuf),
    /// the package says that browsers do without it
    Nothing,
    /// our own declarations: no code
    Declarations,
}

/// How a module asks for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// `import`
    Import,
    /// `require`
    Require,
}

/// How classes of TypeScript are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Classes {
    /// decorators are those of before the standard (`experimentalDecorators`)
    pub has_legacy_decorators: bool,
    /// fields are set as by assignment, and one without a value is none (`useDefineForClassFields` is false, as it is below
    /// ES2022): what such decorators put in their place, as Colyseus's schemas do, is not hidden
    pub assigns_fields: bool,
}

/// Both ways of asking share what was read of the disk.
pub(super) struct Files {
    import: Resolver,
    require: Resolver,
}

impl Files {
    pub fn new() -> Files {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<String>>();
        let options = ResolveOptions {
            tsconfig: Some(TsconfigDiscovery::Auto),
            alias_fields: vec![owned(&["browser"])],
            condition_names: owned(&["browser", "import", "module", "production", "default"]),
            extension_alias: [(".js", ".ts"), (".mjs", ".mts"), (".cjs", ".cts")]
                .map(|(js, ts)| (js.to_owned(), owned(&[js, ts])))
                .to_vec(),
            extensions: owned(&[".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".json"]),
            main_fields: owned(&["browser", "module", "main"]),
            node_path: false,
            ..ResolveOptions::default()
        };
        let import = Resolver::new(options.clone());
        let require = import.clone_with_options(ResolveOptions {
            condition_names: owned(&["browser", "require", "production", "default"]),
            main_fields: owned(&["browser", "main"]),
            ..options
        });
        Files { import, require }
    }

    /// What the tsconfig.json of a file says about classes.
    pub fn classes(&self, file: &Path) -> Classes {
        let Some(config) = self.import.find_tsconfig(file).ok().flatten() else { return Classes::default() };
        let options = &config.compiler_options;
        let has_legacy_decorators = options.experimental_decorators == Some(true);
        let is_new = |target: &String| {
            ["es2022", "es2023", "es2024", "es2025", "esnext"].contains(&target.to_lowercase().as_str())
        };
        let defines = options.use_define_for_class_fields;
        let assigns_fields =
            defines.map_or(has_legacy_decorators && !options.target.as_ref().is_some_and(is_new), |it| !it);
        Classes { has_legacy_decorators, assigns_fields }
    }

    /// What `specifier` means in the file `from`, an absolute path. Errors: words for the author.
    pub fn find(&self, from: &Path, specifier: &str, asks: Asks) -> Result<Found, String> {
        if specifier == OWN_MODULE {
            return Ok(Found::Declarations);
        }
        let resolver = match asks {
            Asks::Import => &self.import,
            Asks::Require => &self.require,
        };
        match resolver.resolve_file(from, specifier) {
            Ok(found) => Ok(Found::File(found.path().to_owned())),
            Err(ResolveError::Ignored(_)) => Ok(Found::Nothing),
            Err(error) => Err(words_of(specifier, &error)),
        }
    }
}

fn words_of(specifier: &str, error: &ResolveError) -> String {
    let bare = specifier.strip_prefix("node:").unwrap_or(specifier);
    let is_of_node =
        specifier.starts_with("node:") || nodejs_built_in_modules::is_nodejs_builtin_module(bare);
    if is_of_node {
        return format!(
            "\"{specifier}\" belongs to Node.js, and a bot has no files, processes or sockets besides those of bot and of the Web \
             (WebSocket, fetch); leave the import out"
        );
    }
    if specifier.starts_with('.') || specifier.starts_with('/') {
        return format!("\"{specifier}\" names no file that can be read; check its path");
    }
    let package: Vec<&str> =
        specifier.split('/').take(if specifier.starts_with('@') { 2 } else { 1 }).collect();
    let package = package.join("/");
    match error {
        ResolveError::PackagePathNotExported { .. } | ResolveError::NotFound(_) if package != specifier => {
            format!(
                "\"{specifier}\" is no file that the package {package} hands out, or the package is not installed; check the path, or npm install {package}"
            )
        }
        ResolveError::NotFound(_) => {
            format!(
                "the package \"{package}\" is not installed beside the script; run npm install {package} there"
            )
        }
        other => format!("\"{specifier}\" cannot be found: {other}"),
    }
}
