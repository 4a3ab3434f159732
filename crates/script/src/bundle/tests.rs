use super::*;

/// The bundle of `bots/player.ts`, with these files on disk.
fn made(files: &[(&str, &str)]) -> Result<Bundle, ScriptMistake> {
    let place = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    bundle(&place.path().join("bots/player.ts"), &|path| std::fs::read_to_string(path))
}

#[test]
fn types_go_and_what_only_they_imported_is_not_loaded() {
    let text = "import type { Bot } from \"stepladder\";\nimport { Kind } from \"./kinds\";\nenum Way { Up = 2 }\n\
                export default async (bot: Bot) => { const kind: Kind = Way.Up as number; bot.fail(String(kind)) };\n";
    let bundle = made(&[("bots/player.ts", text), ("bots/kinds.ts", "export type Kind = number;")]).unwrap();
    assert_eq!(bundle.modules.len(), 1, "{bundle:?}");
    let code = bundle.modules[0].code();
    assert!(!code.contains("Bot") && !code.contains("./kinds") && code.contains("Way"), "{code}");
}

#[test]
fn relative_imports_are_found_as_typescript_finds_them() {
    let main = "import { a } from './lib/a.js';\nimport { b } from '../b';\nexport default () => a + b;";
    let a = "export { a } from './index';";
    let files = [
        ("bots/player.ts", main),
        ("bots/lib/a.ts", a),
        ("bots/lib/index.ts", "export const a = 1;"),
        ("b.mjs", "export const b = 2;"),
    ];
    let bundle = made(&files).unwrap();
    let names: Vec<&str> = bundle.modules.iter().map(|module| module.name.as_str()).collect();
    assert_eq!(names, ["player.ts", "../b.mjs", "lib/a.ts", "lib/index.ts"]);
    assert_eq!(bundle.modules[0].imports["./lib/a.js"], "lib/a.ts");
    assert_eq!(bundle.hash.len(), 64);
    let other = made(&[("bots/player.ts", "export default () => 1;")]).unwrap();
    assert_ne!(bundle.hash, other.hash);
}

#[test]
fn packages_are_found_as_bundlers_for_browsers_find_them() {
    let main = "import { open } from 'wire';\nimport one from 'old';\nexport default () => open(one);";
    let files = [
        ("bots/player.ts", main),
        ("package.json", "{}"),
        (
            "node_modules/wire/package.json",
            r##"{"type": "module", "exports": {".": {"node": "./node.js", "browser": "./web.js", "default": "./x.js"}},
                "imports": {"#own": {"browser": "./own.js"}}}"##,
        ),
        (
            "node_modules/wire/web.js",
            "import '#own'; export const open = (ask) => ask('move').check('no name');",
        ),
        ("node_modules/wire/own.js", "export {};"),
        (
            "node_modules/old/package.json",
            r#"{"main": "main.js", "browser": {"./main.js": "./web", "net": false, "./gone.js": false}}"#,
        ),
        (
            "node_modules/old/web.js",
            "const net = require('net'), gone = require('./gone.js'), part = require('./part');\n\
             try { require('not-installed'); } catch {}\nmodule.exports = part;",
        ),
        ("node_modules/old/part.json", "[1]"),
    ];
    let bundle = made(&files).unwrap();
    let kinds: Vec<(&str, ModuleKind)> =
        bundle.modules.iter().map(|module| (module.name.as_str(), module.kind)).collect();
    let expected = [
        ("player.ts", ModuleKind::Module),
        ("../node_modules/old/web.js", ModuleKind::CommonJs),
        ("../node_modules/old/part.json", ModuleKind::Json),
        ("../node_modules/wire/web.js", ModuleKind::Module),
        ("../node_modules/wire/own.js", ModuleKind::Module),
        (NOTHING, ModuleKind::CommonJs),
    ];
    assert_eq!(kinds, expected);
    let imports = &bundle.modules[1].imports;
    assert_eq!(
        (imports["net"].as_str(), imports.contains_key("not-installed")),
        (NOTHING, false),
        "{imports:?}"
    );
    assert_eq!(bundle.names, Names::default(), "calls of packages name nothing");
}

#[test]
fn what_is_measured_is_named_by_the_text() {
    let text = "export default async (bot: any) => { bot.ask(\"move\", 1, () => {}); bot.answered('move', 1);\n\
                await bot.measure(`x`, 1); bot.check(\"right\", true); bot.count('shots'); console.count('no'); };";
    let names = made(&[("bots/player.ts", text)]).unwrap().names;
    assert_eq!(names.operations, ["move"]);
    assert_eq!((names.checks, names.counters), (vec!["right".to_owned()], vec!["shots".to_owned()]));
}

#[test]
fn mistakes_name_file_line_and_column_and_show_the_line() {
    for (text, expected) in [
        ("export default () => {\n  const = 1;\n};", "player.ts:2:9: "),
        (
            "import x from \"./gone\";\nx();",
            "player.ts:1:15: \"./gone\" names no file that can be read; check its path\n    import x",
        ),
        ("import fs from \"node:fs\";\nfs.x();", "belongs to Node.js"),
        ("import fs from \"fs\";\nfs.x();", "\"fs\" belongs to Node.js"),
        (
            "import { io } from \"socket.io-client\";\nio();",
            "player.ts:1:20: the package \"socket.io-client\" is not installed beside the script; run npm install socket.io-client there",
        ),
        (
            "import x from \"@a/b/c.js\";\nx();",
            "\"@a/b/c.js\" is no file that the package @a/b hands out, or the package is not",
        ),
        ("import data from \"./wrong.json\";\ndata.x();", "wrong.json:1:2: it is no JSON: "),
    ] {
        let files = [("bots/player.ts", text), ("bots/wrong.json", "{a}")];
        let mistake = made(&files).unwrap_err().to_string();
        assert!(mistake.contains(expected), "{mistake}");
    }
    let long = format!("const x = '{}'; const = 1; // {}", "é".repeat(300), "x".repeat(300));
    let mistake = made(&[("bots/player.ts", &long)]).unwrap_err();
    assert!(mistake.line.contains("const = 1") && mistake.line.chars().count() <= 122, "{mistake}");
    let gone = made(&[]).unwrap_err().to_string();
    assert!(gone.starts_with("player.ts: cannot be read: "), "{gone}");
}

/// None of these ends the process, which a stack that overflows would do.
#[test]
fn source_that_is_nested_without_end_is_a_mistake_in_its_line() {
    for (open, close, count) in [
        ("(", ")", 9_000),
        ("[", "]", 9_000),
        ("f(", ")", 9_000),
        ("`${", "}`", 9_000),
        ("(a=>", ")", 9_000),
        ("{a:", "}", 9_000),
        ("a=>", "", 50_000),
        ("!", "", 50_000),
        ("[", "]", 2_000_000),
    ] {
        let text = format!("// two lines\nexport default {}1{};", open.repeat(count), close.repeat(count));
        match made(&[("bots/player.ts", &text)]) {
            Ok(_) => assert!(count < 10_000 || close.is_empty(), "{open}"),
            Err(mistake) => {
                assert!(
                    count > 10_000 && mistake.to_string().starts_with("player.ts:2:"),
                    "{open}: {mistake}"
                );
            }
        }
    }
}

#[test]
fn a_tsconfig_says_where_imports_lead_and_which_decorators_are_meant() {
    let main = "import { type } from '@lib/type';\n\
                function sealed(of: any) { of.isSealed = true; }\n\
                const kept: any = (of: any, key: string) => Object.defineProperty(of, key, { set(value) { of.seen = value; } });\n\
                function twice(_: any, key: string, member: PropertyDescriptor) { const one = member.value; member.value = () => one() * 2; }\n\
                @sealed class Player {\n\
                  @type('number') x: number; @type('text') name = 'ann'; @kept hidden = 1; #own = 1;\n\
                  @twice @type('call') say(@type('word') _word?: string) { return 21; } }\n\
                const player: any = new Player();\n\
                export const options = { types: player.types, own: Object.keys(player), said: player.say(), sealed: (Player as any).isSealed, seen: player.seen };\n\
                export default () => {};";
    let config =
        r#"{ "compilerOptions": { "experimentalDecorators": true, "paths": { "@lib/*": ["../lib/*"] } } }"#;
    let library = "export const type = (name: string) => (target: any, key: string) => { (target.types ??= []).push(key + ' ' + name); };";
    let files = [("bots/player.ts", main), ("bots/tsconfig.json", config), ("lib/type.ts", library)];
    let options = crate::load(made(&files).unwrap()).unwrap().options;
    let expected = serde_json::json!({
        "types": ["x number", "name text", "say word", "say call"], "own": ["name"], "said": 42, "sealed": true, "seen": 1
    });
    assert_eq!(serde_json::Value::Object(options), expected);
}
