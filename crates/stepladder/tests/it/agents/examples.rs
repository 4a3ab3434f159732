//! The files of examples/agents: they are started here, or checked against what will start them.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Parser as _;
use serde_json::{Value, json};
use stepladder::cli::{self, Cli};

use super::broker;
use crate::place::{Place, command_line, eventually, is_gone, processes};

const TOKEN: &str = "tr0ub4dor-token";

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn example(name: &str) -> PathBuf {
    root().join("examples/agents").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(example(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Asserts that these words are a command line of ours.
fn assert_parses(words: &[&str]) -> cli::Command {
    Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{words:?}: {error}")).command
}

/// What a program that is on PATH here says of a file; `None`, said once, where there is none.
fn asked(program: &str, words: &[&str]) -> Option<(bool, String)> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let Ok(output) = output else {
        eprintln!("NOT RUN: there is no {program}");
        return None;
    };
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    Some((output.status.success(), said))
}

#[test]
fn the_scripts_are_what_a_shell_understands() {
    for name in ["ssh.sh", "slurm.sh"] {
        let path = example(name);
        let path = path.to_string_lossy();
        for (program, words) in [("bash", ["-n", &*path]), ("shellcheck", ["--norc", &*path])] {
            if let Some((is_right, said)) = asked(program, &words) {
                assert!(is_right && said.is_empty(), "{program} {name}: {said}");
            }
        }
    }
}

/// A script started where `ssh` and `srun` are ours, which run what they are given on this machine.
fn started(place: &Place, name: &str, words: &[&str], url: Option<&str>) -> crate::place::Running {
    let bin = place.path("bin");
    if !bin.exists() {
        fs::create_dir(&bin).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_stepladder"), bin.join("stepladder")).expect("the program is on PATH");
        let programs = [
            // ssh gives the words after the host to a shell there.
            ("ssh", "#!/bin/sh\n[ \"$1\" = -tt ] || exit 9\nshift 2\nexec sh -c \"$*\"\n"),
            // srun runs its command once for each task.
            (
                "srun",
                "#!/bin/sh\nshift\nfor id in 0 1; do SLURM_PROCID=$id \"$@\" & tasks=\"$tasks $!\"; done\n\
                 trap 'kill $tasks' TERM\nwait\n",
            ),
        ];
        for (name, text) in programs {
            fs::write(bin.join(name), text).expect("a script");
            fs::set_permissions(bin.join(name), Permissions::from_mode(0o755)).expect("it can be started");
        }
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(example(name));
    command.args(words).current_dir(place.path("")).stdin(Stdio::null()).env("PATH", path);
    command.env("BROKER_TOKEN", TOKEN).env("STEPLADDER_LOCK", "").env_remove("NATS_URL");
    if let Some(url) = url {
        command.env("NATS_URL", url);
    }
    place.start_command(command)
}

#[test]
fn ssh_and_slurm_start_agents_that_wait_at_the_broker_and_end_with_the_script() {
    let place = Place::new();
    let config = place.write("broker.conf", &format!("authorization {{ token: {TOKEN:?} }}"));
    let options = ["--jetstream", "--config", &config.to_string_lossy()];
    let Some((_broker, plain)) = broker(&place, "127.0.0.1", &options) else { return };
    let url = plain.replace("nats://", "nats://${BROKER_TOKEN}@");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let tasks = [0, 1].map(|id| format!("{}-{id}", host.trim()));
    for (name, words, given, agents) in [
        ("ssh.sh", &[url.as_str(), "one", "two"][..], None, ["one".to_owned(), "two".to_owned()]),
        ("slurm.sh", &[], Some(url.as_str()), tasks),
    ] {
        let mut script = started(&place, name, words, given);
        agents.iter().for_each(|agent| script.wait_for(&format!("agent {agent} waits at {plain}")));
        let mut command =
            place.command(["climb", "arena", "--nats", &url, "--agents", "3", "--agents-within", "1"]);
        command.env("BROKER_TOKEN", TOKEN);
        place.start_command(command).finish().fails(2, &["2 of 3 agents are there"]);
        let is_agent = |pid: &u32| command_line(*pid).contains(&format!("agent --nats {url}"));
        let pids: Vec<u32> = processes().filter(is_agent).collect();
        assert_eq!(pids.len(), 2, "{name}");
        assert!(
            processes().all(|pid| !command_line(pid).contains(TOKEN)),
            "{name}: a list of processes shows no token"
        );
        script.signal(libc::SIGTERM);
        script.finish();
        eventually("the agents to end with the script", || {
            pids.iter().all(|pid| is_gone(*pid)).then_some(())
        });
    }
    // Without what they need they say so.
    started(&place, "ssh.sh", &["nats://127.0.0.1"], None).finish().fails(2, &["usage: ", "NATS_URL HOST…"]);
    let ran = started(&place, "slurm.sh", &[], None).finish();
    assert!(ran.code != 0 && ran.err.contains("give the broker: sbatch --export=ALL,NATS_URL="), "{ran:#?}");
}

#[test]
fn the_unit_is_one_that_systemd_starts() {
    let unit = text("stepladder-agent.service");
    let line =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/")).expect("what it starts");
    let words = line.replace("${NATS_URL}", "nats://${NATS_TOKEN}@10.0.0.1:4222");
    assert!(matches!(assert_parses(&words.split(' ').collect::<Vec<_>>()), cli::Command::Agent(_)));
    let place = Place::new();
    let here = unit.replace("/usr/bin/stepladder", env!("CARGO_BIN_EXE_stepladder"));
    let verify = |name: &str, text: &str| {
        let file = place.write(name, text);
        asked("systemd-analyze", &["verify", "--man=no", &file.to_string_lossy()])
    };
    let Some((is_right, said)) = verify("agent.service", &here) else { return };
    let said: Vec<&str> = said.lines().filter(|line| line.contains("agent.service")).collect();
    assert!(is_right && said.is_empty(), "{said:#?}");
    // It does tell.
    let (_, said) =
        verify("wrong.service", &here.replace("Restart=always", "Restart=sometimes")).expect("it is there");
    assert!(said.contains("sometimes"), "{said}");
}

/// The fields that the manifest needs, as the API calls them (batch/v1, core/v1); labels and kinds of resources stand as they are.
const FIELDS: &str = "apiVersion kind metadata.name spec.backoffLimit spec.completionMode spec.completions spec.parallelism \
    spec.template.metadata.labels.app spec.template.spec.restartPolicy \
    spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].labelSelector.matchLabels.app \
    spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].topologyKey \
    spec.template.spec.containers[].command[] spec.template.spec.containers[].env[].name \
    spec.template.spec.containers[].env[].valueFrom.fieldRef.fieldPath \
    spec.template.spec.containers[].env[].valueFrom.secretKeyRef.key \
    spec.template.spec.containers[].env[].valueFrom.secretKeyRef.name spec.template.spec.containers[].image \
    spec.template.spec.containers[].name spec.template.spec.containers[].resources.limits.cpu \
    spec.template.spec.containers[].resources.limits.memory spec.template.spec.containers[].resources.requests.cpu \
    spec.template.spec.containers[].resources.requests.memory \
    spec.template.spec.containers[].securityContext.allowPrivilegeEscalation \
    spec.template.spec.containers[].securityContext.readOnlyRootFilesystem \
    spec.template.spec.containers[].securityContext.runAsNonRoot spec.template.spec.containers[].securityContext.runAsUser";

/// Where values stand: `spec.containers[].name`.
fn fields(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(parts) => {
            let dot = if at.is_empty() { "" } else { "." };
            parts.iter().for_each(|(name, part)| fields(part, &format!("{at}{dot}{name}"), found));
        }
        Value::Array(parts) => parts.iter().for_each(|part| fields(part, &format!("{at}[]"), found)),
        _ => drop(found.insert(at.to_owned())),
    }
}

#[test]
fn the_job_gives_each_agent_an_index_and_a_node_of_its_own() {
    let job: Value = serde_saphyr::from_str(&text("kubernetes.yaml")).expect("YAML");
    let mut found = BTreeSet::new();
    fields(&job, "", &mut found);
    // A server without validation drops a field of another name, and says nothing.
    assert_eq!(found, FIELDS.split_whitespace().map(str::to_owned).collect());
    assert_eq!((&job["apiVersion"], &job["kind"]), (&json!("batch/v1"), &json!("Job")));
    let spec = &job["spec"];
    assert_eq!(
        (&spec["completionMode"], &spec["completions"]),
        (&json!("Indexed"), &spec["parallelism"]),
        "all run at once"
    );
    assert!(spec["backoffLimit"].as_u64() > Some(0), "an agent that fails is replaced");
    let pod = &spec["template"]["spec"];
    // A Job may have no other but Never.
    assert_eq!(pod["restartPolicy"], "OnFailure");
    let apart = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(apart["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(
        apart["labelSelector"]["matchLabels"], spec["template"]["metadata"]["labels"],
        "the rule means these pods"
    );
    let agent = &pod["containers"][0];
    let (image, version) = (agent["image"].as_str().expect("an image"), env!("CARGO_PKG_VERSION"));
    assert!(image.ends_with(&format!(":{version}")), "{image} is of this version ({version})");
    assert_eq!(agent["resources"]["requests"], agent["resources"]["limits"], "cores of its own");
    let env = agent["env"].as_array().expect("variables");
    let source = |name: &str| &env.iter().find(|one| one["name"] == name).expect(name)["valueFrom"];
    let index = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
    assert_eq!(source("INDEX")["fieldRef"]["fieldPath"], index);
    assert!(source("NATS_TOKEN")["secretKeyRef"]["key"].is_string());
    // Kubernetes fills in $(NAME), and leaves ${NAME} to the program.
    let words = agent["command"]
        .as_array()
        .expect("words")
        .iter()
        .map(|word| word.as_str().expect("text").replace("$(INDEX)", "0"));
    let words: Vec<String> = words.collect();
    assert!(words.contains(&"agent-0".to_owned()), "agents are told apart: {words:?}");
    assert!(words.iter().all(|word| !word.contains("$(")), "each is defined above: {words:?}");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(matches!(assert_parses(&words), cli::Command::Agent(_)));
}

#[test]
fn the_commands_of_the_guide_are_ours() {
    let guide = fs::read_to_string(root().join("docs/scale.md")).expect("the guide");
    let mut count = 0;
    for line in guide.lines().filter(|line| line.starts_with("stepladder ")) {
        let words: Vec<&str> = line.split('#').next().unwrap_or(line).split_whitespace().collect();
        assert_parses(&words);
        count += 1;
    }
    assert!(count >= 4, "{count} commands");
}
