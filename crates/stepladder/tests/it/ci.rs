//! What a CI system gets: JUnit XML, Markdown, the job summary, and the action in a runner simulated here.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::place::Place;

const POLL_LOOP: &str = "poll-loop --services root --views background --objective 'errors == 0' --hold 1s --settle 200ms --no-calibration";

fn action() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../action.yml");
    serde_saphyr::from_str(&fs::read_to_string(path).expect("action.yml")).expect("YAML")
}

fn steps(action: &Value) -> &Vec<Value> {
    action["runs"]["steps"].as_array().expect("steps")
}

/// The runner's part: a step's `if`, its environment, its script, and what it handed over.
struct Runner {
    place: Place,
    inputs: BTreeMap<String, String>,
}

struct Job {
    code: i32,
    outputs: BTreeMap<String, String>,
    summary: String,
    said: String,
}

impl Runner {
    fn new(inputs: &[(&str, &str)]) -> Runner {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut all: BTreeMap<String, String> = inputs.iter().map(owned).collect();
        for (name, input) in action()["inputs"].as_object().expect("inputs") {
            let default = input["default"].as_str().unwrap_or_default().to_owned();
            all.entry(name.clone()).or_insert(default);
        }
        let place = Place::new();
        fs::create_dir(place.path("temp")).expect("a folder");
        Runner { place, inputs: all }
    }

    /// `${{ inputs.NAME }}`, the only expression that the steps use in their environment.
    fn value_of(&self, expression: &str) -> String {
        let name = expression.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}"));
        self.inputs[name.unwrap_or_else(|| panic!("an unknown expression: {expression}"))].clone()
    }

    fn is_wanted(&self, step: &Value) -> bool {
        match step["if"].as_str() {
            None => true,
            Some("${{ inputs.binary == '' }}") => self.inputs["binary"].is_empty(),
            Some(other) => panic!("an unknown condition: {other}"),
        }
    }

    /// Runs the steps as GitHub's runner does, until one fails.
    fn run(&self, folders: &str) -> Job {
        let (output, summary) = (self.place.path("output"), self.place.path("summary"));
        fs::write(&output, "").expect("a file");
        fs::write(&summary, "").expect("a file");
        let mut said = String::new();
        let mut code = 0;
        for step in steps(&action()).iter().filter(|step| self.is_wanted(step)) {
            let script = self.place.write("step.sh", step["run"].as_str().expect("a script"));
            let mut bash = Command::new("bash");
            bash.args(["--noprofile", "--norc", "-eo", "pipefail"])
                .arg(script)
                .current_dir(self.place.path("."));
            for (name, value) in step["env"].as_object().into_iter().flatten() {
                bash.env(name, self.value_of(value.as_str().expect("text")));
            }
            bash.env("PATH", format!("{folders}:{}", std::env::var("PATH").unwrap_or_default()))
                .env("GITHUB_ACTION_PATH", self.place.path("action"))
                .env("GITHUB_OUTPUT", &output)
                .env("GITHUB_STEP_SUMMARY", &summary)
                .env("RUNNER_TEMP", self.place.path("temp"))
                .stdin(Stdio::null());
            let ran = bash.output().expect("bash");
            said += &String::from_utf8_lossy(&ran.stdout);
            said += &String::from_utf8_lossy(&ran.stderr);
            code = ran.status.code().unwrap_or(-1);
            if code != 0 {
                break;
            }
        }
        let read = |path: &PathBuf| fs::read_to_string(path).expect("text");
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let outputs = read(&output).lines().filter_map(pair).collect();
        Job { code, outputs, summary: read(&summary), said }
    }
}

/// `verdict FAIL, 10 to 16, exit 0`
fn answer(job: &Job) -> String {
    let of = |name: &str| job.outputs.get(name).map_or("-", String::as_str);
    format!(
        "verdict {}, {} to {}, exit {}",
        of("verdict"),
        of("lower-bound"),
        of("upper-bound"),
        of("exit-code")
    )
}

#[test]
fn the_scripts_of_the_action_hold_no_expression() {
    let action = action();
    for step in steps(&action) {
        let script = step["run"].as_str().expect("a script");
        assert!(!script.contains("${{"), "an expression would be executed as a part of the script: {script}");
        assert_eq!(step["shell"], "bash");
    }
    let climb = steps(&action).iter().find(|step| step["id"] == "climb").expect("the step");
    let script = climb["run"].as_str().expect("a script");
    for (name, output) in action["outputs"].as_object().expect("outputs") {
        assert_eq!(output["value"], format!("${{{{ steps.climb.outputs.{name} }}}}"));
        assert!(script.contains(&format!("echo \"{name}=")), "{name} is never written");
    }
}

#[test]
fn the_action_builds_climbs_and_hands_over_what_was_found() {
    let args =
        format!("{POLL_LOOP} --requesters 10,16\n--name 'ci \"main\"; touch executed' --markdown page.md");
    let runner = Runner::new(&[("args", &args), ("gates", "capacity >= 10\n\n  errors at 10 == 0\n")]);
    // Stands in for the build, which takes minutes.
    let tools = runner.place.path("tools");
    fs::create_dir(&tools).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_stepladder"), tools.join("stepladder")).expect("a link");
    let cargo = "#!/bin/bash\necho \"cargo $*\"\nmkdir -p \"${@: -1}/release\"\n\
                 cp -P \"$(dirname \"$0\")/stepladder\" \"${@: -1}/release/\"\n";
    fs::write(tools.join("cargo"), cargo).expect("a file");
    let chmod = Command::new("chmod").arg("+x").arg(tools.join("cargo")).status();
    assert!(chmod.expect("chmod").success());
    let job = runner.run(tools.to_str().expect("text"));
    assert_eq!(job.code, 0, "{}", job.said);
    assert!(job.said.contains("cargo build --release --locked --manifest-path"), "{}", job.said);
    assert_eq!(answer(&job), "verdict FAIL, 10 to 16, exit 0", "the gates are met, and decide");
    assert!(job.summary.starts_with("## poll-loop: 2 of 2 gates met (verdict FAIL)\n"), "{}", job.summary);
    let page = fs::read_to_string(runner.place.path("page.md")).expect("the page");
    assert_eq!(job.summary.trim_end(), page.trim_end());
    let junit = fs::read_to_string(runner.place.path("stepladder-junit.xml")).expect("the report");
    for part in [
        "tests=\"4\" failures=\"0\" errors=\"0\"",
        "name=\"16 requesters, root",
        "<skipped message=\"FAIL: ",
        "name=\"gate errors at 10 == 0\"",
    ] {
        assert!(junit.contains(part), "{part} in {junit}");
    }
    assert!(!runner.place.path("executed").exists());
    // A stored run has the same forms, and a summary of no job but its own.
    let mut show =
        runner.place.command(["show", &job.outputs["run"], "--junit", "again.xml", "--markdown", "-"]);
    let shown = runner.place.start_command({
        show.env("GITHUB_STEP_SUMMARY", runner.place.path("other"));
        show
    });
    let shown = shown.finish();
    assert_eq!((shown.code, shown.out.trim_end()), (0, page.trim_end()));
    assert_eq!(fs::read_to_string(runner.place.path("again.xml")).expect("the report"), junit);
    assert!(!runner.place.path("other").exists());
}

#[test]
fn nothing_in_an_input_is_executed() {
    let binary = env!("CARGO_BIN_EXE_stepladder");
    let evil = "$(touch executed) `touch executed`; touch executed\n& touch executed | touch executed";
    let check = |inputs: &[(&str, &str)], code: i32, words: &str| {
        let runner = Runner::new(&[inputs, &[("binary", binary)]].concat());
        let job = runner.run("/nowhere");
        assert_eq!((job.code, job.outputs["exit-code"].as_str()), (code, "3"), "{}", job.said);
        assert_eq!(job.outputs.get("verdict").map_or("", String::as_str), "");
        assert!(job.said.contains(words), "{words} in {}", job.said);
        assert_eq!(runner.place.files_ending("executed"), Vec::<String>::new());
        assert_eq!(job.summary, "");
    };
    check(&[("args", evil)], 3, "unexpected argument");
    check(&[("args", "arena --rungs 2"), ("gates", evil)], 3, "--gate");
    check(&[("args", "arena --rungs 2"), ("gates", "--start=touch executed")], 3, "--gate");
    check(&[("args", "arena --rungs 2"), ("junit", "'; touch executed; $(touch executed)/x")], 3, "--junit");
    check(&[("args", "arena 'never ends")], 3, "a quote without its end");
}

#[test]
fn a_run_is_laid_beside_an_older_one_and_without_one_nothing_fails() {
    let runner = |place: Option<Place>, name: &str, old: &str| {
        let args = format!("{POLL_LOOP} --requesters 10 --name {name} --store its.db");
        let binary = env!("CARGO_BIN_EXE_stepladder");
        let inputs =
            [("args", &*args), ("gates", "errors at 10 == 0"), ("compare-with", old), ("binary", binary)];
        let new = Runner::new(&inputs);
        Runner { place: place.unwrap_or(new.place), inputs: new.inputs }
    };
    let first = runner(None, "main", "nothing");
    let job = first.run("/nowhere");
    assert_eq!(job.code, 0, "{}", job.said);
    assert!(
        job.said.contains("there is no run `nothing`") && job.said.contains("::warning::"),
        "{}",
        job.said
    );
    let second = runner(Some(first.place), "other|one", "main");
    let job = second.run("/nowhere");
    assert_eq!((job.code, job.outputs["run"].as_str()), (0, "other-one-1"), "{}", job.said);
    let page = fs::read_to_string(second.place.path("stepladder-comparison.md")).expect("the comparison");
    assert!(page.starts_with("## other-one-1 against main-1\n"), "{page}");
    assert!(
        job.summary.ends_with(&page) && job.summary.starts_with("## poll-loop: 1 of 1 gate"),
        "{}",
        job.summary
    );
    for part in [
        "| load | figure | main-1 | other-one-1 | new / old |\n",
        "| 10, root · background · normal · moderate | verdict | ",
        "not interleaved",
    ] {
        assert!(page.replace("\\-", "-").contains(part), "{part} in {page}");
    }
    let place = second.place;
    let printed = place.run(["compare", "main", "other-one", "--store", "its.db", "--markdown", "-"]);
    assert_eq!((printed.code, printed.out.trim_end()), (0, page.trim_end()));
    let none = runner(Some(place), "third", "no such; touch executed");
    let job = none.run("/nowhere");
    assert_eq!(job.code, 0, "{}", job.said);
    assert!(
        job.said.contains("there is no run `no such; touch executed`") && job.said.contains("::warning::"),
        "{}",
        job.said
    );
    assert_eq!(none.place.files_ending("executed"), Vec::<String>::new());
    assert_eq!(
        none.place.files_ending("comparison.md"),
        Vec::<String>::new(),
        "an older one is no result of this job"
    );
}

/// The blocks of a page in this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/method").join(page);
    let text = fs::read_to_string(path).expect("the page");
    let begin = format!("```{language}\n");
    text.split(&begin).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

/// All steps of jobs, and what a single list of them holds.
fn with_of_action(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(fields) => {
            if fields
                .get("uses")
                .and_then(Value::as_str)
                .is_some_and(|uses| uses.starts_with("OWNER/stepladder@"))
            {
                found.push(fields["with"].clone());
            }
            fields.values().for_each(|below| with_of_action(below, found));
        }
        Value::Array(values) => values.iter().for_each(|below| with_of_action(below, found)),
        _ => {}
    }
}

#[test]
fn snippets_for_ci_systems_are_yaml_and_name_inputs_and_options_that_there_are() {
    let place = Place::new();
    let known = ["climb", "compare", "report"].map(|command| place.run([command, "--help"]).out).concat();
    let is_option = |word: &str| {
        let name = word.split('=').next().unwrap_or_default();
        known
            .split(|letter: char| letter.is_whitespace() || ",=[".contains(letter))
            .any(|other| other == name)
    };
    let of_others = ["--body-file", "--edit-last", "--create-if-none"];
    let (mut uses, mut options) = (Vec::new(), 0);
    for page in ["ci.md", "metrics.md"] {
        for block in blocks(page, "yaml").into_iter().chain(blocks(page, "groovy")) {
            for word in
                block.split_whitespace().filter(|word| word.starts_with("--") && !of_others.contains(word))
            {
                assert!(is_option(word), "{page} names {word}, which is no option");
                options += 1;
            }
        }
        for block in blocks(page, "yaml") {
            let value: Value =
                serde_saphyr::from_str(&block).unwrap_or_else(|error| panic!("{page}: {error}:\n{block}"));
            with_of_action(&value, &mut uses);
        }
    }
    assert!(options > 20 && uses.len() == 2, "{options} options, {uses:?}");
    let action = action();
    for with in uses {
        for name in with.as_object().expect("inputs").keys() {
            assert!(action["inputs"].get(name).is_some(), "the action has no input {name}");
        }
    }
}

#[test]
fn two_results_in_one_file_are_refused() {
    let place = Place::new();
    place
        .climb(&["arena", "--json", "-", "--junit", "-"])
        .refused(3, &["--json -", "--junit -", "two files"]);
    place
        .climb(&["arena", "--markdown", "no/such/page.md"])
        .refused(3, &["--markdown no/such/page.md", "folder"]);
}
