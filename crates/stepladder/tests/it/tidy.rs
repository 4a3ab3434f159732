//! The invariants of ARCHITECTURE.md that a program can check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace's root").to_owned()
}

/// Who may stand on whom, as ARCHITECTURE.md draws it.
fn allowed_arrows() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([
        ("measure", vec![]),
        ("console", vec!["ladder", "watch"]),
        ("ladder", vec!["measure"]),
        ("terminal", vec!["console", "ladder", "measure"]),
        ("recording", vec![]),
        ("script", vec![]),
        ("plan", vec!["ladder", "measure", "script"]),
        ("send-buffer", vec![]),
        ("hazelcast", vec!["send-buffer"]),
        ("inflight", vec![]),
        ("inflight-analysis", vec!["ladder", "measure"]),
        (
            "inflight-command",
            vec![
                "climb",
                "console",
                "drivers",
                "hazelcast",
                "inflight",
                "inflight-analysis",
                "ladder",
                "measure",
                "plan",
                "store",
                "versus",
                "watch",
            ],
        ),
        ("drivers", vec!["hazelcast", "send-buffer"]),
        ("leaderboard", vec![]),
        ("servers-shared", vec![]),
        ("arena-lobby", vec!["arena-server", "servers-shared"]),
        ("arena-server", vec!["servers-shared"]),
        ("chat-server", vec!["servers-shared"]),
        ("key-value", vec!["servers-shared"]),
        ("leaderboard-service", vec!["leaderboard", "servers-shared"]),
        ("null-server", vec!["servers-shared"]),
        ("limited-server", vec!["servers-shared"]),
        ("oracle-server", vec!["servers-shared"]),
        ("poll-loop", vec!["servers-shared"]),
        (
            "servers",
            vec![
                "arena-lobby",
                "arena-server",
                "chat-server",
                "key-value",
                "leaderboard",
                "leaderboard-service",
                "null-server",
                "limited-server",
                "oracle-server",
                "poll-loop",
                "servers-shared",
            ],
        ),
        (
            "fuzz",
            vec![
                "agents",
                "bots",
                "drivers",
                "engine",
                "hazelcast",
                "inflight-analysis",
                "ladder",
                "measure",
                "plan",
                "recording",
                "script",
                "servers",
                "store",
                "viewer",
                "watch",
            ],
        ),
        ("selftest", vec!["console", "ladder"]),
        ("truth", vec!["bots", "engine", "ladder", "measure", "plan", "servers"]),
        ("engine", vec!["drivers", "measure", "plan"]),
        ("bots", vec!["drivers", "engine", "inflight", "measure", "plan", "script"]),
        ("watch", vec!["measure"]),
        ("store", vec!["measure"]),
        ("viewer", vec!["inflight-analysis", "ladder", "measure", "store", "watch"]),
        (
            "climb",
            vec![
                "bots",
                "console",
                "drivers",
                "engine",
                "hazelcast",
                "inflight-analysis",
                "ladder",
                "measure",
                "plan",
                "script",
                "servers",
                "store",
                "terminal",
                "viewer",
                "watch",
            ],
        ),
        ("agents", vec!["climb", "console", "engine", "measure", "plan", "watch"]),
        ("versus", vec!["climb", "console", "ladder", "measure", "plan", "store", "viewer", "watch"]),
        (
            "scripting",
            vec![
                "bots",
                "climb",
                "console",
                "drivers",
                "engine",
                "ladder",
                "measure",
                "plan",
                "recording",
                "script",
                "watch",
            ],
        ),
        (
            "stepladder",
            vec![
                "agents",
                "climb",
                "console",
                "inflight-command",
                "ladder",
                "measure",
                "plan",
                "scripting",
                "selftest",
                "servers",
                "store",
                "terminal",
                "versus",
                "viewer",
                "watch",
            ],
        ),
    ])
}

/// Every package of the workspace and its folder.
static PACKAGES: LazyLock<BTreeMap<String, PathBuf>> = LazyLock::new(|| {
    let mut found = BTreeMap::new();
    for wing in WINGS {
        packages_below(&root().join(wing), &mut found);
    }
    found
});

fn packages_below(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    if let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) {
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        // A package whose name is taken elsewhere has this prefix, and the crates that use it omit it.
        let name = name.expect("a package");
        found.insert(name.strip_prefix("stepladder-").unwrap_or(name).to_owned(), folder.to_owned());
    }
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && !["src", "tests", "target", "node_modules"].iter().any(|other| name == *other) {
            packages_below(&path, found);
        }
    }
}

fn folder(name: &str) -> &'static Path {
    PACKAGES.get(name).expect("a package of this name")
}

/// Folders of crates: the instrument, what it measures, and what proves it.
const WINGS: [&str; 5] = ["crates", "inflight", "proof", "servers", "versus"];

#[test]
fn every_arrow_between_crates_is_one_that_the_architecture_draws() {
    let allowed = allowed_arrows();
    for (name, may_use) in &allowed {
        let manifest = std::fs::read_to_string(folder(name).join("Cargo.toml")).expect("a manifest");
        // Without the features, one of which is named like a crate.
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("[dev-dependencies]").next().unwrap_or_default();
        for other in allowed.keys().filter(|other| *other != name) {
            let uses = dependencies.lines().any(|line| {
                line.strip_prefix(other).is_some_and(|rest| rest.starts_with('.') || rest.starts_with(' '))
            });
            assert!(!uses || may_use.contains(other), "{name} must not stand on {other}");
        }
    }
    for name in PACKAGES.keys() {
        assert!(allowed.contains_key(&**name), "{name} is a crate that the architecture does not draw");
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Lines of code: comments and what follows a test module are left out.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source file");
    let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    before_tests.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn refuse(names: &[&str], words: &[&str], except: &[&str], because: &str) {
    for name in names {
        let mut files = Vec::new();
        sources(&folder(name).join("src"), &mut files);
        for path in files {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if except.contains(&file.as_str()) || file.contains("tests") {
                continue;
            }
            let code = code(&path);
            for word in words {
                assert!(!code.contains(word), "{}: `{word}`, but {because}", path.display());
            }
        }
    }
}

#[test]
fn measure_ladder_plan_recording_and_the_analysis_of_libraries_never_read_a_clock_or_open_a_socket() {
    let words = ["Instant::now", "SystemTime", "clock_gettime", "std::net::Tcp", "std::thread::", "tokio"];
    refuse(
        &["measure", "ladder", "plan", "recording", "inflight-analysis"],
        &words,
        &[],
        "this room is pure",
    );
}

#[test]
fn the_engine_reads_the_time_in_one_file_only() {
    refuse(
        &["engine", "bots"],
        &["Instant::now", "SystemTime", "clock_gettime"],
        &["clock.rs"],
        "only clock.rs may",
    );
}

/// Files of `bots` that format, and never for a message as such: the words of errors (only the first few of each cause are
/// made), an MQTT client's first packet, the audit after the load, and requests over HTTP whose text differs from one to
/// the next.
const BOTS_THAT_FORMAT: [&str; 27] = [
    "catalog.rs",
    "arena.rs",
    "grid.rs",
    "pairing_sync.rs",
    "chat.rs",
    "mqtt.rs",
    "disconnects.rs",
    "reply.rs",
    "http.rs",
    "reopen.rs",
    "answers.rs",
    "templates.rs",
    "leaderboard.rs",
    "members.rs",
    "audit.rs",
    "cheats.rs",
    "signing.rs",
    // Schemas and templates are compiled once; requests as JSON differ in their text, as those over HTTP do.
    "protobuf.rs",
    "template.rs",
    "messages.rs",
    "json.rs",
    // What a script throws or is refused, and its HTTP requests; `tell` only when one bot is tried.
    "script.rs",
    "commands.rs",
    "destination.rs",
    "names.rs",
    "requests.rs",
    "tell.rs",
];

#[test]
fn the_workers_hot_path_does_not_lock_log_or_format() {
    let because = "it is on the path of messages";
    let locks_and_logs = ["Mutex", "RwLock", "println!", "tracing::", "log::"];
    let off_the_path = ["thread.rs", "simulation.rs", "wire.rs", "anything.rs", "collector.rs"];
    refuse(&["engine"], &locks_and_logs, &off_the_path, because);
    refuse(&["engine"], &["format!("], &off_the_path, because);
    refuse(&["bots"], &locks_and_logs, &[], because);
    refuse(&["bots"], &["format!("], &BOTS_THAT_FORMAT, because);
}

#[test]
fn workers_have_neither_tokios_timers_nor_its_signals_nor_a_blocking_pool() {
    let words = ["enable_all", "enable_time", "tokio::time", "tokio::signal", "spawn_blocking"];
    refuse(
        &["engine", "bots", "drivers"],
        &words,
        &[],
        "its wake-ups cross descriptor tables or come 1 ms late",
    );
}

#[test]
fn files_that_grow_long_are_listed() {
    let mut files = Vec::new();
    for wing in WINGS {
        sources(&root().join(wing), &mut files);
    }
    for path in files {
        let lines = std::fs::read_to_string(&path).expect("a source file").lines().count();
        if lines > 600 {
            // For discussion, not to fail.
            println!("{lines} lines: {}", path.display());
        }
        assert!(lines <= 1_200, "{}: {lines} lines; a file this long is several", path.display());
    }
}

#[test]
fn targets_that_are_not_tested_have_no_tests() {
    for (name, folder) in PACKAGES.iter() {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        for target in manifest.split("\n[").filter(|section| section.contains("\ntest = false")) {
            // A library's is not named: all sources below.
            let path = target.lines().find_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'));
            let mut files: Vec<PathBuf> = path.map(|path| folder.join(path)).into_iter().collect();
            if files.is_empty() {
                sources(&folder.join("src"), &mut files);
            }
            for path in files {
                let text = std::fs::read_to_string(&path).expect("a source file");
                assert!(
                    !text.contains("#[test]"),
                    "{}: a test that never runs; remove `test = false` from the manifest of {name}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn the_command_line_prints_in_one_place_only() {
    let words = ["println!(", "print!(", "anstream::std", "io::stdout().lock", "io::stderr().lock"];
    let because = "what is printed goes through say.rs";
    refuse(&["climb", "scripting", "selftest", "versus"], &words, &[], because);
    refuse(&["console"], &words, &["say.rs"], because);
    // `serve` announces a URL of ours, and a runner of the benchmark speaks its own protocol to its parent.
    refuse(&["stepladder"], &words, &["serve.rs"], because);
    refuse(&["inflight-command"], &words, &["rust.rs"], because);
}

#[test]
fn the_book_has_every_page_of_the_documentation() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("the summary");
    let mut folders = vec![docs.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md")
                && !path.ends_with("SUMMARY.md")
            {
                let page = path.strip_prefix(&docs).expect("a page").display().to_string();
                assert!(summary.contains(&format!("({page})")), "docs/SUMMARY.md does not name {page}");
            }
        }
    }
    for line in summary.lines() {
        let Some((_, link)) = line.split_once("](") else { continue };
        let page = link.trim_end_matches(')');
        assert!(docs.join(page).is_file(), "docs/SUMMARY.md names {page}, which does not exist");
    }
}
