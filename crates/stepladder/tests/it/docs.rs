//! The documentation: every command in it is one that this program takes, and every link leads somewhere.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser as _;
use clap::error::ErrorKind;
use stepladder::cli::{Cli, Command};

use crate::place::Place;
use crate::tidy::root;

/// Pages below these folders are other people's, or none.
const NOT_PAGES: [&str; 5] = ["target", "node_modules", "results", ".git", "inputs"];
/// What stands for something of the reader's own.
const OWN: [(&str, &str); 15] = [
    ("HOST:PORT", "127.0.0.1:1"),
    ("HOST", "127.0.0.1"),
    ("--nats URL", "--nats nats://127.0.0.1:1"),
    ("URL", "http://127.0.0.1:1"),
    ("SUBJECT", "limited"),
    ("KIND", "hang"),
    ("CAUSE", "lock"),
    ("--agents N", "--agents 2"),
    ("A,B,C", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"),
    ("A,B", "127.0.0.1:1,127.0.0.1:2"),
    ("NAME,…", "rust"),
    ("ws://…", "ws://127.0.0.1:1"),
    ("redis://…", "redis://127.0.0.1:1"),
    ("hazelcast://…", "hazelcast://127.0.0.1:1/m"),
    ("--target …", "--target ws://127.0.0.1:1"),
];
/// The start of a command that has to be completed by the reader: what is missing is no mistake.
const INCOMPLETE: [ErrorKind; 3] = [
    ErrorKind::MissingRequiredArgument,
    ErrorKind::MissingSubcommand,
    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
];

fn pages() -> Vec<(String, String)> {
    let (mut folders, mut found) = (vec![root()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_symlink() || NOT_PAGES.iter().any(|other| name.to_str() == Some(other)) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let page = path.strip_prefix(root()).expect("a page").display().to_string();
                found.push((page, std::fs::read_to_string(&path).expect("text")));
            }
        }
    }
    assert!(found.len() > 100, "the documentation was found: {}", found.len());
    found
}

/// A line of a page, and whether it stands in a block of code.
fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut is_code = false;
    text.lines().map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (line, is_code && !is_fence)
    })
}

/// Commands in blocks of code, whole, and in sentences, where they may be the start of one. In a block with a prompt the other lines are
/// what the program says.
fn commands(text: &str) -> Vec<(String, bool)> {
    let (mut found, mut continued, mut has_prompt) = (Vec::new(), None::<String>, false);
    for (line, is_code) in lines(text) {
        has_prompt &= is_code;
        if is_code {
            let line = line.trim();
            let prompted = line.strip_prefix("$ ");
            has_prompt |= prompted.is_some();
            if has_prompt && prompted.is_none() && continued.is_none() {
                continue;
            }
            let line = prompted.unwrap_or(line);
            let line = match continued.take() {
                Some(before) => format!("{before} {line}"),
                None => line.replace("cargo run --release -- ", "stepladder "),
            };
            match line.strip_suffix('\\') {
                _ if !line.starts_with("stepladder ") || line.contains("─▶") => {}
                Some(before) => continued = Some(before.to_owned()),
                None => found.push((line, true)),
            }
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            let of_program = |span: &&str| span.starts_with("stepladder ") || span.starts_with("climb ");
            found.extend(spans.filter(of_program).map(|span| (span.replace("\\|", "|"), false)));
        }
    }
    found
}

/// As a shell splits them, up to a comment, a pipe or a redirection.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#' | '|' | '>' | '&') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words
}

/// A word that the reader is to replace: `B`, `$HOLD`, `redis://`, `…`.
fn is_open(word: &str) -> bool {
    let is_name = !word.is_empty() && word.chars().all(|letter| letter.is_ascii_uppercase());
    is_name || word.contains(['…', '$', '[']) || word.ends_with("://") || word.ends_with("/DATABASE")
}

/// The mistake in a command on a page in this folder, if there is one.
fn mistake(command: &str, is_whole: bool, folder: &Path, files: &HashMap<&str, PathBuf>) -> Option<String> {
    let command = OWN.iter().fold(command.to_owned(), |command, (name, value)| command.replace(name, value));
    let mut words = words(&command);
    if words[0] != "stepladder" {
        words.insert(0, "stepladder".to_owned());
    }
    let has_open = words.iter().any(|word| is_open(word));
    words.retain(|word| word != "…");
    for word in words.iter_mut().filter(|word| word.contains('.')) {
        let beside = [folder.join(&*word), root().join(&*word)].into_iter().find(|path| path.is_file());
        if let Some(file) = files.get(&**word).or(beside.as_ref()) {
            *word = file.display().to_string();
        }
    }
    let climb = match Cli::try_parse_from(&words) {
        Ok(Cli { command: Command::Climb(climb) }) => climb,
        Ok(_) => return None,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return None;
        }
        Err(error) if !is_whole && INCOMPLETE.contains(&error.kind()) => return None,
        Err(error) if error.kind() == ErrorKind::InvalidValue && has_open => return None,
        Err(error) => {
            let said = error.to_string();
            return (is_whole || !said.contains("a value is required")).then_some(said);
        }
    };
    let planned = climb.flags().and_then(|flags| climb::planned(&flags, true, 1));
    let said = planned.err().map(|error| format!("{error:#}")).filter(|_| !has_open)?;
    (is_whole || !said.contains("does not say which server")).then_some(said)
}

#[test]
fn every_command_in_the_documentation_is_one_that_is_taken() {
    let place = Place::new();
    place.run(["new", "player.ts"]);
    let proto = "syntax = \"proto3\";\npackage game.v1;\nservice Game { rpc Move(Step) returns (Step); }\n\
                 message Step { string player = 1; int32 x = 2; }\n";
    place.write("game.proto", proto);
    let bot = place.path("player.ts");
    let files = HashMap::from([
        ("player.ts", bot.clone()),
        ("bot.ts", bot),
        ("game.proto", place.path("game.proto")),
    ]);
    let mut count = 0;
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        for (command, is_whole) in commands(&text) {
            count += 1;
            let folder = root().join(&page);
            let folder = folder.parent().expect("a folder");
            wrong.extend(
                mistake(&command, is_whole, folder, &files)
                    .map(|why| format!("{page}: {command}\n    {why}")),
            );
        }
    }
    assert!(count > 200, "the commands were found: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The same with what must not be taken.
    for (command, is_whole) in [
        ("stepladder climb arena --runs 5", true),
        ("stepladder climb arena --rungs five", false),
        ("climb arena --objective 'tick.late < 5%'", false),
        ("stepladder climb", true),
        ("stepladder clim arena", true),
    ] {
        assert!(mistake(command, is_whole, &root(), &files).is_some(), "{command}");
    }
}

/// A climb may be a sweep of many minutes: it is interrupted then, and answers by what it has measured.
const CLIMBS_FOR: Duration = Duration::from_secs(30);

#[test]
#[ignore = "about 4 minutes: ./check --long"]
fn every_climb_of_a_built_in_server_in_the_documentation_gives_an_answer() {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        for (command, _) in commands(&text).into_iter().filter(|(_, is_whole)| *is_whole) {
            let mut words = words(&command);
            let is_open = words.iter().any(|word| is_open(word) || OWN.iter().any(|(own, _)| word == own));
            let Ok(Cli { command: Command::Climb(climb) }) = Cli::try_parse_from(&words) else { continue };
            let Ok((plan, _)) = climb.flags().and_then(|flags| climb::planned(&flags, true, 1)) else {
                continue;
            };
            let is_built_in = matches!(plan.subject.source, plan::SubjectSource::BuiltIn { .. });
            let waits = ["--nats", "--view", "--follow", "--otlp"];
            if is_open || !is_built_in || words.iter().any(|word| waits.contains(&&**word)) {
                continue;
            }
            // As it stands there, but for how long a load is held.
            for name in ["--hold", "--stop-at"] {
                if let Some(at) = words.iter().position(|word| word == name) {
                    words[at + 1] = "2s".to_owned();
                }
            }
            words.insert(2, "--plain".to_owned());
            let shorter = [&words[..2], &["--hold", "2s"].map(str::to_owned)[..], &words[2..]].concat();
            if Cli::try_parse_from(&shorter).is_ok() {
                words = shorter;
            }
            if !seen.insert(words.clone()) {
                continue;
            }
            let ran = Place::new().start(&words[1..]).finish_within(CLIMBS_FOR);
            eprintln!("{page}: {command}: exit {}", ran.code);
            let has_ended = (0..=2).contains(&ran.code) || ran.code == 130;
            if !has_ended || !ran.out.contains("How many?") {
                wrong.push(format!("{page}: {command}\n{ran:#?}"));
            }
        }
    }
    assert!(seen.len() > 6, "the climbs were found: {}", seen.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// As GitHub and mdBook name headings.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (line, is_code) in lines(text) {
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        let name: String = kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let before = found.iter().filter(|other| **other == name).count();
        found.push(if before == 0 { name } else { format!("{name}-{before}") });
    }
    found
}

#[test]
fn every_link_in_the_documentation_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let texts: HashMap<PathBuf, &str> = pages
        .iter()
        .map(|(page, text)| (root().join(page).canonicalize().expect("a page"), &**text))
        .collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for (page, text) in &pages {
        let page = root().join(page);
        for (line, _) in lines(text).filter(|(_, is_code)| !is_code) {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
            {
                if link.contains("://") || link.starts_with("mailto:") {
                    continue;
                }
                count += 1;
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let path =
                    if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
                let is_there = path.canonicalize().is_ok_and(|path| {
                    anchor.is_empty()
                        || texts.get(&path).is_some_and(|text| anchors(text).iter().any(|one| one == anchor))
                });
                if !is_there {
                    wrong.push(format!(
                        "{}: {link}",
                        page.strip_prefix(root()).unwrap_or(Path::new("")).display()
                    ));
                }
            }
        }
    }
    assert!(count > 300, "the links were found: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
