use std::collections::HashMap;

use super::*;

fn made(files: &[(&str, &str)]) -> Result<Bundle, ScriptMistake> {
    let files: HashMap<PathBuf, String> =
        files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
    let read = |path: &Path| files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into());
    bundle(Path::new("bots/player.ts"), &read)
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
    assert_eq!(names, ["player.ts", "b.mjs", "lib/a.ts", "lib/index.ts"]);
    assert_eq!(bundle.modules[0].imports["./lib/a.js"], "lib/a.ts");
    assert_eq!(bundle.hash.len(), 64);
    let other = made(&[("bots/player.ts", "export default () => 1;")]).unwrap();
    assert_ne!(bundle.hash, other.hash);
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
        ("import { io } from \"socket.io-client\";\nio();", "packages cannot be imported yet"),
    ] {
        let mistake = made(&[("bots/player.ts", text)]).unwrap_err().to_string();
        assert!(mistake.contains(expected), "{mistake}");
    }
    let gone = made(&[]).unwrap_err().to_string();
    assert!(gone.starts_with("player.ts: cannot be read: "), "{gone}");
}
