//! What a file asks for beyond loading this machine: refused without a user, shown and confirmed on a terminal.

use serde_json::{Value, json};

use crate::main_job::with_its_store;
use crate::place::{Place, free_port, parse};
use crate::terminal;

/// Creates a file when executed, and exits, so that nothing is loaded.
const COMMAND: &str = "touch started";

fn scenario(place: &Place, subject: &str) {
    place.write("game.yaml", &format!("subject: {subject}\nbots: echo\nladder: {{ rungs: [1] }}\n"));
}

fn with_a_command() -> Place {
    let place = Place::new();
    scenario(&place, &format!("{{ target: 'tcp://127.0.0.1:{}', start: '{COMMAND}' }}", free_port()));
    place
}

#[test]
fn a_scenario_starts_no_command_by_its_own_word() {
    let place = with_a_command();
    let asked = "game.yaml asks to start the command: touch started; if it may, say --allow-start";
    place.climb(&["game.yaml"]).refused(3, &[asked]);
    assert!(!place.path("started").exists());
    // With the user's permission it is executed; that it serves nothing is another matter.
    let allowed = place.climb(&["game.yaml", "--allow-start"]);
    assert_eq!(allowed.code, 2, "{allowed:#?}");
    assert!(place.path("started").exists(), "{allowed:#?}");
}

#[test]
fn on_a_terminal_a_command_is_shown_and_asked_for() {
    let words = ["climb", "game.yaml", "--hold", "1s"];
    for (typed, is_started) in
        [("n\n", false), ("\n", false), ("what?\n", false), ("\u{4}", false), ("y\n", true)]
    {
        let place = with_a_command();
        let shown = terminal::run(&place, &words, typed, &[]);
        assert!(shown.text.contains("game.yaml is about to"), "{shown:#?}");
        assert!(shown.text.contains("  start the command: touch started"), "{shown:#?}");
        assert_eq!(place.path("started").exists(), is_started, "{shown:#?}");
        assert_eq!(shown.code, Some(if is_started { 2 } else { 3 }), "{shown:#?}");
    }
}

#[test]
fn a_scenario_leads_no_built_in_server_to_a_file_by_its_own_word() {
    let place = Place::new();
    for (subject, wish) in [
        (
            "{ target: chat, options: [--metrics, '127.0.0.1:9'] }",
            "start a built-in server with --metrics 127.0.0.1:9",
        ),
        (
            "{ target: arena, options: ['--listen=0.0.0.0:9'] }",
            "start a built-in server with --listen=0.0.0.0:9",
        ),
        ("{ target: arena, ticks: { log: theirs } }", "write the tick log theirs"),
    ] {
        place.write("game.yaml", &format!("subject: {subject}\nladder: {{ rungs: [1] }}\n"));
        place.climb(&["game.yaml"]).refused(3, &[wish, "--allow-start"]);
        assert!(!place.path("theirs").exists());
    }
}

#[test]
fn a_scenario_loads_no_other_machine_by_its_own_word() {
    let place = Place::new();
    // A private address, which the command line may name freely; and one that the file itself vouches for.
    scenario(&place, "'tcp://10.255.255.1:9'");
    place.climb(&["game.yaml"]).refused(3, &["a file alone may not choose it", "--i-may-load 10.255.255.1"]);
    place.write(
        "game.yaml",
        "subject: 'tcp://192.0.2.1:9'\nbots: echo\nladder: { rungs: [1] }\ni_may_load: [192.0.2.1]\n",
    );
    place.climb(&["game.yaml"]).refused(3, &["a file alone may not choose it", "--i-may-load 192.0.2.1"]);
}

/// The store of a climb with one run more, whose plan was changed by hand: `arena-2`.
fn with_forged_plan(forge: impl Fn(&mut Value)) -> Place {
    let place = with_its_store();
    let store = store::Store::open(place.path("stepladder.db")).expect("the store");
    let run = store.find_run("arena-1").expect("its run");
    let mut head = store.run(&run).expect("it is sound").head;
    let mut plan = parse(&head.plan);
    forge(&mut plan);
    head.plan = plan.to_string();
    let end =
        store::RunEnd { outcome: store::Outcome::Finished, reason: None, ended_unix_ms: 1, climb: None };
    store.begin_run(&head, None).and_then(|writer| writer.end_run(end)).expect("it is stored");
    place
}

fn target(host: &str) -> Value {
    json!({ "scheme": "ws", "host": host, "port": 9, "path": "/", "ca": null, "insecure": false })
}

#[test]
fn a_stored_run_starts_no_command_and_loads_no_other_machine_by_its_own_word() {
    let started = |host: &str| json!({ "started": { "command": COMMAND, "target": target(host) } });
    let place = with_forged_plan(|plan| plan["subject"]["source"] = started("127.0.0.1"));
    let asked = "asks to start the command: touch started; if it may, say --allow-start";
    place.run(["again", "arena-2"]).refused(3, &["run arena-2 of stepladder.db", asked]);
    assert!(!place.path("started").exists());
    // Its own claim that it may load a host counts for nothing.
    let place = with_forged_plan(|plan| {
        plan["subject"]["source"] = json!({ "running": { "target": target("192.0.2.1"), "pid": null } });
        plan["may_load"] = json!(["192.0.2.1"]);
    });
    place.run(["again", "arena-2"]).refused(3, &["a file alone may not choose it", "--i-may-load 192.0.2.1"]);
    let place = with_forged_plan(|plan| {
        plan["subject"]["source"] = json!({ "running": { "target": target("fd00:ec2::254"), "pid": null } });
    });
    let metadata = place.run(["again", "arena-2", "--i-may-load", "fd00:ec2::254"]);
    metadata.refused(3, &["it is never loaded"]);
}
