//! What the benchmarks and tests of data grids need: servers to load, and runtimes for the client libraries.
//!
//! Only checks: runs each program once to ask for its version, and fetches or builds nothing. A missing runtime
//! disables only its own language, so it is reported but is no fault.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use super::finding::{Finding, Grade};

/// A program, the least version that will do, and how it comes here.
struct Needed {
    /// of the finding
    name: &'static str,
    /// the first that is there is taken
    programs: &'static [&'static str],
    version: &'static str,
    least: [u32; 2],
    what_for: &'static str,
    install: &'static str,
}

const NEEDED: [Needed; 5] = [
    Needed {
        name: "redis",
        programs: &["redis-server", "valkey-server"],
        version: "--version",
        least: [5, 0],
        what_for: "climb redis://, and its tests",
        install: "apt-get install redis-server",
    },
    Needed {
        name: "java",
        programs: &["java"],
        version: "-version",
        least: [17, 0],
        what_for: "the Hazelcast member and the client library for Java",
        install: "install Java 17 or newer: apt-get install openjdk-17-jdk-headless maven",
    },
    Needed {
        name: "node",
        programs: &["node"],
        version: "--version",
        least: [20, 20],
        what_for: "the client libraries for Node.js",
        install: "install Node.js 20.20 or newer (https://nodejs.org)",
    },
    Needed {
        name: "go",
        programs: &["go"],
        version: "version",
        least: [1, 24],
        what_for: "the client libraries for Go",
        install: "install Go 1.24 or newer (https://go.dev)",
    },
    Needed {
        name: "python",
        programs: &["python3"],
        version: "--version",
        least: [3, 10],
        what_for: "the client libraries for Python",
        install: "install Python 3.10 or newer: apt-get install python3-venv",
    },
];

/// What each runner's setup creates, below `target/clients`.
const RUNNERS: [(&str, &str); 4] =
    [("node", "node/dist"), ("java", "java/lib"), ("go", "go/runner"), ("python", "python/installed")];

/// What is there, and what to do for the rest.
pub(super) fn examine() -> Vec<Finding> {
    let mut findings: Vec<Finding> = NEEDED.iter().map(|needed| look(needed, &ask)).collect();
    let here = std::env::current_dir().unwrap_or_default();
    let own = std::env::current_exe().unwrap_or_default();
    let is_project = |folder: &&Path| folder.join("inflight/clients/run").is_file();
    let project = here.ancestors().chain(own.ancestors()).find(is_project);
    findings.push(member(std::env::var_os("HAZELCAST_JAR").map(PathBuf::from), project));
    findings.push(runners(project));
    findings
}

/// The first line with a number in a program's version output; `None` if it is not installed.
fn ask(program: &str, version: &str) -> Option<String> {
    let output = Command::new(program).arg(version).stdin(Stdio::null()).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&said).into_owned();
    text.lines().find(|line| line.contains(|c: char| c.is_ascii_digit())).map(|line| line.trim().to_owned())
}

fn look(needed: &Needed, ask: &dyn Fn(&str, &str) -> Option<String>) -> Finding {
    let Needed { name, programs, version, least, what_for, install } = needed;
    let said = programs.iter().find_map(|program| Some((*program, ask(program, version)?)));
    let Some((program, said)) = said else {
        let text = format!("{} not found; it is for {what_for}", programs.join(" and "));
        return Finding::new(name, Grade::Poor, text, json!({ "found": false })).with_remedy(*install);
    };
    let found = first_version(&said);
    let shown = found.map_or_else(|| said.clone(), |[major, minor]| format!("{major}.{minor}"));
    let figures = json!({ "found": true, "program": program, "says": said });
    let finding = Finding::new(name, Grade::Good, format!("{program} {shown}, for {what_for}"), figures);
    finding.poor_if(found.is_some_and(|found| found < *least), *install)
}

/// The first `MAJOR.MINOR` in a text: `go version go1.24.3 linux/amd64`, `openjdk version "17.0.15" …`, `v20.20.0`.
fn first_version(text: &str) -> Option<[u32; 2]> {
    let mut words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.find_map(|word| {
        let (major, rest) = word.split_once('.')?;
        let minor = rest.split('.').next().unwrap_or_default();
        Some([major.parse().ok()?, minor.parse().ok()?])
    })
}

/// The member's jar: where the tests look for it, and where `inflight/clients/member` does.
fn member(named: Option<PathBuf>, project: Option<&Path>) -> Finding {
    let in_project = |folder: &str| {
        let jars = std::fs::read_dir(project?.join(folder)).ok()?.flatten().map(|entry| entry.path());
        jars.into_iter().find(|jar| {
            let name = jar.file_name().unwrap_or_default().to_string_lossy();
            let version = name.strip_prefix("hazelcast-").and_then(|rest| rest.strip_suffix(".jar"));
            version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    let for_tests = named.filter(|jar| jar.is_file()).or_else(|| in_project("target/hazelcast"));
    let for_clients = in_project("target/clients/java/lib");
    let shown = |jar: &Option<PathBuf>| jar.as_ref().map(|jar| jar.display().to_string());
    let figures = json!({ "tests": shown(&for_tests), "clients": shown(&for_clients) });
    let finding = |grade, text: String| Finding::new("member", grade, text, figures.clone());
    match (&for_tests, &for_clients) {
        (Some(jar), Some(_)) => finding(Grade::Good, format!("{}, and inflight/clients/member has it", jar.display())),
        (Some(jar), None) => finding(Grade::Note, format!("{}; inflight/clients/member lacks it", jar.display()))
            .with_remedy("run inflight/clients/setup java"),
        (None, Some(jar)) => {
            finding(Grade::Note, format!("{}; the tests against real members lack it", jar.display()))
                .with_remedy("run inflight/hazelcast/fetch-member, or set HAZELCAST_JAR")
        }
        (None, None) => finding(Grade::Poor, "no jar of a Hazelcast member (16.7 MB)".to_owned())
            .with_remedy(
                "run inflight/hazelcast/fetch-member in the project's folder, then inflight/clients/setup java",
            ),
    }
}

/// Which runners of client libraries are set up.
fn runners(project: Option<&Path>) -> Finding {
    let Some(project) = project else {
        let text = "not found: this is not the project's folder, so only --client rust works".to_owned();
        return Finding::new("runners", Grade::Poor, text, json!({ "ready": [] }))
            .with_remedy("go to the project's folder, and run inflight/clients/setup there");
    };
    let is_ready = |(_, left): &&(&str, &str)| project.join("target/clients").join(left).exists();
    let (ready, missing): (Vec<_>, Vec<_>) = RUNNERS.iter().partition(is_ready);
    let names = |runners: &[&(&'static str, &str)]| runners.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let (ready, missing) = (names(&ready), names(&missing));
    let listed = if ready.is_empty() { "none".to_owned() } else { ready.join(", ") };
    let figures = json!({ "ready": ready, "missing": missing });
    let finding = Finding::new("runners", Grade::Good, format!("set up besides rust: {listed}"), figures);
    finding.poor_if(!missing.is_empty(), format!("run inflight/clients/setup {}", missing.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let check = |text: &str, expected| assert_eq!(first_version(text), expected, "{text}");
        check("openjdk version \"17.0.15\" 2025-04-15", Some([17, 0]));
        check("go version go1.24.3 linux/amd64", Some([1, 24]));
        check("v20.20.1", Some([20, 20]));
        check("Python 3.11.2", Some([3, 11]));
        check("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", Some([7, 0]));
        check("no number", None);
    }

    #[test]
    fn what_is_missing_or_too_old_comes_with_what_to_do() {
        let said = |words: Option<&'static str>| move |_: &str, _: &str| words.map(str::to_owned);
        let node = &NEEDED[2];
        let found = look(node, &said(Some("v20.20.1")));
        assert_eq!((found.grade, found.remedy), (Grade::Good, None));
        let old = look(node, &said(Some("v18.3.0")));
        assert!(old.text.contains("node 18.3") && old.grade == Grade::Poor, "{old:?}");
        assert!(old.remedy.is_some_and(|remedy| remedy.contains("20.20")));
        let none = look(node, &said(None));
        assert!(none.text.contains("not found") && none.remedy.is_some(), "{none:?}");
        // Either of the two programs is enough.
        let valkey =
            look(&NEEDED[0], &|program, _| (program == "valkey-server").then(|| "v=8.1.0".to_owned()));
        assert_eq!(
            (valkey.grade, valkey.text.contains("valkey-server 8.1")),
            (Grade::Good, true),
            "{valkey:?}"
        );
    }

    #[test]
    fn jars_and_runners_are_looked_for_where_the_scripts_put_them() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        let look = || (member(None, Some(folder.path())), runners(Some(folder.path())));
        let (jar, ready) = look();
        assert!(jar.remedy.unwrap().contains("fetch-member"));
        assert!(ready.remedy.unwrap().ends_with("inflight/clients/setup node java go python"));
        put("target/clients/java/lib/hazelcast-5.5.0.jar");
        put("target/clients/go/runner");
        put("target/clients/java/lib/hazelcast-client-extras.jar");
        let (jar, ready) = look();
        assert!(jar.text.contains("hazelcast-5.5.0.jar; the tests"), "{jar:?}");
        assert_eq!(ready.figures["ready"], json!(["java", "go"]));
        put("target/hazelcast/hazelcast-5.5.0.jar");
        assert_eq!(look().0.grade, Grade::Good);
        assert_eq!(member(None, None).grade, Grade::Poor);
        assert!(runners(None).remedy.is_some());
    }
}
