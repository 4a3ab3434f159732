//! Where output goes and what it holds: JSON alone on standard output, progress on standard error, colours for people.

use std::process::Stdio;
use std::time::Duration;

use crate::main_job::assert_valid;
use crate::place::{Place, parse};
use crate::terminal;

const ESCAPE: char = '\u{1b}';

#[test]
fn json_to_standard_output_is_json_and_nothing_else() {
    let place = Place::new();
    let ran = place.climb(&["arena", "--rungs", "2", "--json", "-"]);
    assert_valid(&parse(&ran.out));
    for progress in ["rung 2 games · hold", "How many?"] {
        assert!(ran.err.contains(progress), "{ran:#?}");
    }
    assert!(
        !ran.err.contains(ESCAPE) && !ran.err.contains('\r'),
        "plain lines where there is no terminal: {ran:#?}"
    );
    let shown = place.run(["show", "arena", "--json", "-"]);
    assert_eq!(parse(&shown.out), parse(&ran.out));
    colours_are_for_terminals(&place);
}

/// What is printed on a terminal, which is also its standard error.
fn on_a_terminal(place: &Place, words: &[&str], no_color: bool) -> String {
    let variables = [("NO_COLOR", "1")];
    let shown = terminal::run(place, words, "", if no_color { &variables } else { &[] });
    assert_eq!(shown.code, Some(0), "{words:?}");
    shown.text
}

fn colours_are_for_terminals(place: &Place) {
    assert!(!place.run(["show", "arena"]).out.contains(ESCAPE), "a pipe gets plain text");
    assert!(on_a_terminal(place, &["show", "arena"], false).contains(ESCAPE), "a terminal gets colours");
    assert!(!on_a_terminal(place, &["show", "arena"], true).contains(ESCAPE), "NO_COLOR is heard");
    let log = crate::tick_logs::real("original-500.log");
    let ticks = ["ticks", log.to_str().expect("a path")];
    assert!(on_a_terminal(place, &ticks, false).contains(ESCAPE));
    assert!(!on_a_terminal(place, &ticks, true).contains(ESCAPE));
}

/// What precedes and follows a view that covers the terminal.
const COVERS: &str = "\u{1b}[?1049h";
const LEAVES: &str = "\u{1b}[?1049l";

#[test]
fn a_climb_shows_itself_on_a_terminal_and_leaves_it_as_it_was_however_it_ends() {
    let place = Place::new();
    let climb = |hold, more: &[&'static str]| {
        let words =
            ["climb", "arena", "--rungs", "2,4", "--no-calibration", "--settle", "200ms", "--hold", hold];
        [&words[..], more].concat()
    };
    let run = |words: &[&str], typed: &str, variables: &[(&str, &str)], longest_s| {
        let longest = Duration::from_secs(longest_s);
        terminal::run_on(Some((80, 24)), &place, words, typed, variables, longest)
    };
    let whole = run(&climb("3s", &[]), "", &[], 120);
    assert!(whole.is_as_before && whole.code <= Some(2), "{whole:?}");
    let (before, view) = whole.text.split_once(COVERS).expect("a view");
    let (view, after) = view.split_once(LEAVES).expect("its end");
    assert!(!view.contains("\u{1b}[6n"), "nothing is asked of the terminal: {whole:?}");
    assert!(!before.contains("rung 2") && view.contains("rung 2 games"), "{whole:?}");
    // What was said meanwhile comes first, then the summary; nothing covers the terminal again.
    let [line, summary] = ["4 games  ", "How many?"].map(|part| after.find(part).expect(part));
    assert!(line < summary && !after.contains(COVERS), "{after}");
    // A signal, the key that stops, and the key typed twice, while a load is held.
    for (typed, longest_s, code) in [("", 4, 130), ("q", 120, 130), ("qq", 120, 130)] {
        let cut = run(&climb("60s", &[]), typed, &[], longest_s);
        assert_eq!((cut.code, cut.is_as_before), (Some(code), true), "{typed:?}: {cut:?}");
        assert_eq!(cut.text.matches(COVERS).count(), cut.text.matches(LEAVES).count(), "{typed:?}: {cut:?}");
    }
    for (more, variables) in [
        (&["--plain"][..], &[][..]),
        (&["--json", "-"], &[]),
        (&[], &[("TERM", "dumb")]),
        (&[], &[("TERM", "")]),
    ] {
        let lines = run(&climb("1s", more), "", variables, 120);
        assert!(!lines.text.contains(COVERS) && lines.text.contains("rung 2 games"), "{more:?}: {lines:?}");
        assert!(lines.is_as_before, "{more:?}");
    }
}

#[test]
fn stored_runs_are_looked_through_on_a_terminal() {
    let place = Place::new();
    place.climb(&["arena", "--rungs", "2,4"]);
    let run = |words: &[&str], typed: &str, longest_s| {
        terminal::run_on(Some((80, 24)), &place, words, typed, &[], Duration::from_secs(longest_s))
    };
    for (words, typed) in
        [(&["runs", "--browse"][..], "\r\u{1b}[Adqq"), (&["show", "arena", "--browse"], "kdq")]
    {
        let looked = run(words, typed, 120);
        assert_eq!((looked.code, looked.is_as_before), (Some(0), true), "{words:?}: {looked:?}");
        let view = looked.text.split_once(COVERS).and_then(|(_, view)| view.split_once(LEAVES));
        let (view, _) = view.expect("a view and its end");
        for fragment in ["PASS", "messag", "server memory", "tick interval"] {
            assert!(view.contains(fragment), "{words:?}: {fragment}: {looked:?}");
        }
    }
    // A signal leaves the terminal as it was, and without a terminal there is no view.
    let cut = run(&["runs", "--browse"], "", 2);
    assert!(cut.is_as_before && cut.text.contains("> arena-1") && cut.text.contains(LEAVES), "{cut:?}");
    place.run(["runs", "--browse"]).refused(3, &["--browse needs a terminal"]);
    place.run(["show", "arena", "--browse", "--json", "-"]).refused(3, &["cannot be used with"]);
}

#[test]
fn every_command_explains_itself() {
    let place = Place::new();
    let check = |words: &[&str], fragment: &str| {
        let ran = place.run(words);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{words:?}");
        assert!(ran.out.contains(fragment) && !ran.out.contains(ESCAPE), "{words:?}: {}", ran.out);
    };
    check(&["--help"], "Exit: 0 objectives met");
    check(&["--version"], "stepladder ");
    check(&["climb", "--help"], "ticks.late_share");
    for command in ["again", "serve", "ticks", "runs", "show", "export", "doctor"] {
        check(&[command, "--help"], "Usage: stepladder");
    }
    for server in ["arena", "null"] {
        check(&["serve", server, "--help"], "--listen");
    }
}

#[test]
fn a_shell_gets_completions_of_every_option() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = place.run(["completions", shell]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
        for word in ["talkers", "restart-per-rung", "selftest"] {
            assert!(ran.out.contains(word), "{word} in the completions of {shell}");
        }
    }
    place.run(["completions", "cmd"]).refused(3, &["cmd", "bash"]);
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let place = Place::new();
    let page = |words: &[&str]| {
        let ran = place.run([&["man"], words].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{words:?}");
        assert!(ran.out.contains(".TH"), "{}", ran.out);
        ran.out
    };
    assert!(page(&[]).contains("stepladder\\-climb"));
    assert!(page(&["climb"]).contains("\\-\\-talkers"));
    place.run(["man", "clim"]).refused(3, &["there is no command clim", "stepladder --help"]);
}

#[test]
fn doctor_says_what_this_machine_can_do_to_people_and_programs() {
    let place = Place::new();
    let ran = place.run(["doctor"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.out.contains("descriptors") && ran.out.contains("ports") && !ran.out.contains(ESCAPE),
        "{ran:#?}"
    );
    assert_eq!(ran.out.matches("own ceiling").count(), 3, "WebSocket, lines and HTTP: {ran:#?}");
    let found = parse(&place.run(["doctor", "--json", "--target", "http://127.0.0.1:1/"]).out);
    assert_eq!(found["schema"], 1);
    let findings = found["findings"].as_array().expect("findings");
    let figures = |name: &str| {
        let finding = findings.iter().find(|finding| finding["name"] == name);
        &finding.unwrap_or_else(|| panic!("{name} in {found:#}"))["figures"]
    };
    for protocol in ["websocket", "lines", "http"] {
        assert!(figures(protocol)["ceiling_per_s"].as_f64() > Some(0.0), "{protocol} in {found:#}");
        assert!(figures(protocol)["own_latency_ns"]["p50"].as_u64() > Some(0), "{protocol} in {found:#}");
    }
    assert_eq!(figures("pacing")["paces"].as_array().map(Vec::len), Some(3));
    assert_eq!(figures("link")["kind"], "loopback");
    place.run(["doctor", "--target", "nowhere"]).refused(3, &["--target: \"nowhere\" is not a URL"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_mistake() {
    let place = Place::new();
    let log = crate::tick_logs::real("original-500.log");
    let mut child = place
        .command(["ticks".as_ref(), log.as_os_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(0));
}
