//! A plan's secrets: headers, paths, queries and bodies refer to them as `${NAME}`, and they are filled in from the
//! environment when a trial starts. Passwords and tokens come from a variable or a file that the plan names (`login`).
//!
//! The plan that is stored, printed and repeated holds only the name. The values exist only in the workers' plans,
//! which are neither stored nor shown, and error messages never contain them. If a server echoes one, it is masked
//! (`console::masks`).

mod login;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use console::masks;
use plan::units::http::{is_environment_name, with_environment};
use plan::{BotSettings, LeaderboardBots, Plan, ScriptBots, WorkerPlan, WorkloadSettings as _};
use script::{ReadFile, Rows};

pub use login::{login, of_address};

/// Fills in what the workers send. Errors: a variable that is not set, by its name.
pub fn fill_in(workers: &mut [WorkerPlan]) -> anyhow::Result<()> {
    fill_in_reading(workers, &|path| fs::read_to_string(path))
}

/// The same, with the files of rows read by `read`.
pub fn fill_in_reading(workers: &mut [WorkerPlan], read: ReadFile<'_>) -> anyhow::Result<()> {
    for worker in workers {
        fill_in_bots(&mut worker.bots, from_environment)?;
        fill_in_rows(&mut worker.bots, worker.bots_total, read)?;
        login::fill_in(worker)?;
        fill_in_headers(&mut worker.handshake.headers, "the handshake", from_environment)?;
    }
    Ok(())
}

/// Whether everything that a plan's headers and credentials name is there.
pub fn check(plan: &Plan) -> anyhow::Result<()> {
    fill_in_headers(&mut plan.handshake.headers.clone(), "the handshake", from_environment)?;
    fill_in_bots(&mut plan.bots.clone(), from_environment)?;
    let largest = plan.ladder.rungs.iter().copied().fold(0.0, f64::max);
    fill_in_rows(&mut plan.bots.clone(), plan::bots_total(plan, largest), &|path| fs::read_to_string(path))?;
    plan.subject.target().map_or(Ok(()), |target| login(target).map(drop))
}

/// The options of a built-in server, filled in. Errors: a URL with a password or token in it, which would be stored; a variable
/// that is not set.
pub fn of_options(options: &[String]) -> anyhow::Result<Vec<String>> {
    options_filled(options, from_environment)
}

fn options_filled(
    options: &[String],
    value_of: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Vec<String>> {
    let fill = |option: &String| {
        anyhow::ensure!(
            !shows_secret(option),
            "options after --: a URL holds a password or token, and options are stored with the run; write '${{NAME}}' in its place, and \
             set that environment variable"
        );
        with_environment(option, &value_of).map_err(|missing| {
            anyhow::anyhow!("options after --: the environment variable {missing} is not set")
        })
    };
    options.iter().map(fill).collect()
}

/// Whether an option has a URL with a password, or a token alone, that is not wholly the value of a variable.
fn shows_secret(option: &str) -> bool {
    let Some((login, _)) = option.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')) else {
        return false;
    };
    let secret = login.split_once(':').map_or(login, |(_, password)| password);
    let name = secret.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    !secret.is_empty() && !name.is_some_and(is_environment_name)
}

/// A value of the environment, which no text shows from now on.
fn from_environment(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    masks::remember(&value);
    Some(value)
}

fn fill_in_bots(bots: &mut BotSettings, value_of: impl Fn(&str) -> Option<String>) -> anyhow::Result<()> {
    if let Some(key) = LeaderboardBots::of_mut(bots).and_then(|leaderboard| leaderboard.key.as_mut()) {
        key.secret = with_environment(&key.secret, &value_of).map_err(|missing| {
            anyhow::anyhow!("key {} needs the environment variable {missing}, which is not set", key.id)
        })?;
        anyhow::ensure!(
            key.secret_bytes().is_some(),
            "the environment variable of key {} does not hold at least 32 hexadecimal digits",
            key.id
        );
    }
    if let Some(script) = ScriptBots::of_mut(bots) {
        for name in &script.env {
            let value = value_of(name).ok_or_else(|| {
                anyhow::anyhow!(
                    "the script may read the environment variable {name} (--env), which is not set"
                )
            })?;
            script.env_values.insert(name.clone(), value);
        }
    }
    let Some(http) = bots.http_mut() else { return Ok(()) };
    for request in &mut http.requests {
        let of = |part: &str, missing: String| {
            anyhow::anyhow!(
                "{part} of \"{}\" needs the environment variable {missing}, which is not set",
                request.name
            )
        };
        // Whatever a value contains, it stays one path segment.
        let in_path = |name: &str| value_of(name).map(|value| percent_encoded(&value));
        request.path = with_environment(&request.path, in_path).map_err(|missing| of("the path", missing))?;
        request.body =
            with_environment(&request.body, &value_of).map_err(|missing| of("the body", missing))?;
        fill_in_headers(&mut request.headers, &format!("\"{}\"", request.name), &value_of)?;
    }
    Ok(())
}

/// Reads the rows that `bots` bots of a script take; they may be credentials, so they are not stored either.
fn fill_in_rows(bots: &mut BotSettings, count: u64, read: ReadFile<'_>) -> anyhow::Result<()> {
    let Some(script) = ScriptBots::of_mut(bots) else { return Ok(()) };
    for ((file, how), path) in script.bundle.names.rows.iter().zip(paths_of_rows(script)) {
        let how = how.parse().map_err(|wrong: String| anyhow::anyhow!(wrong))?;
        let rows = Rows::read(&path, read, how)?;
        rows.suffice_for(count)?;
        script.row_values.insert(file.clone(), Arc::new(rows));
    }
    Ok(())
}

/// Where the rows of a script are, in the order of their names.
pub fn paths_of_rows(script: &ScriptBots) -> Vec<PathBuf> {
    let folder = Path::new(&script.file).parent().unwrap_or(Path::new(""));
    script.bundle.names.rows.keys().map(|file| folder.join(file)).collect()
}

/// `whose` headers, for the refusal.
fn fill_in_headers(
    headers: &mut [(String, String)],
    whose: &str,
    value_of: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<()> {
    for (name, value) in headers {
        let filled = with_environment(value, &value_of).map_err(|missing| {
            anyhow::anyhow!(
                "header {name} of {whose} needs the environment variable {missing}, which is not set"
            )
        })?;
        if filled.contains(|letter: char| letter.is_control() && letter != '\t') {
            return Err(anyhow::anyhow!("it holds a line end or another control character"))
                .with_context(|| format!("header {name} of {whose} cannot be sent"));
        }
        *value = filled;
    }
    Ok(())
}

fn percent_encoded(value: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    value.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use plan::{Flags, HttpBots, resolve};

    use super::*;

    fn bots() -> BotSettings {
        let flags = Flags::of("http://127.0.0.1:1/a --header 'Authorization: Bearer ${TOKEN}'");
        resolve(&flags, None, 1).expect("a plan").bots
    }

    fn filled(token: Option<&str>) -> anyhow::Result<String> {
        let mut bots = bots();
        fill_in_bots(&mut bots, |name| token.filter(|_| name == "TOKEN").map(Into::into))?;
        let http = HttpBots::of(&bots).expect("HTTP bots");
        Ok(http.requests[0].headers[0].1.clone())
    }

    #[test]
    fn a_header_takes_its_secret_from_the_environment() {
        assert_eq!(filled(Some("hunter2")).expect("it is set"), "Bearer hunter2");
    }

    #[test]
    fn a_handshake_takes_its_secrets_from_the_environment_like_a_request() {
        let line = "ws://127.0.0.1:1 --bots echo --header 'Authorization: Bearer ${TOKEN}'";
        let plan = resolve(&Flags::of(line), None, 1).expect("a plan");
        assert!(serde_json::to_string(&plan).expect("JSON").contains("Bearer ${TOKEN}"));
        let filled = |token: Option<&str>| {
            let mut headers = plan.handshake.headers.clone();
            fill_in_headers(&mut headers, "the handshake", |_| token.map(Into::into))
                .map(|()| headers[0].1.clone())
        };
        assert_eq!(filled(Some("hunter2")).expect("it is set"), "Bearer hunter2");
        let missing = filled(None).expect_err("not set").to_string();
        assert!(
            missing.contains("header Authorization of the handshake needs the environment variable TOKEN")
        );
        let broken = format!("{:#}", filled(Some("hunter2\r\nX: y")).expect_err("a line end"));
        assert!(broken.contains("control character") && !broken.contains("hunter2"), "{broken}");
    }

    #[test]
    fn a_plan_that_is_stored_holds_the_name_only() {
        let stored = serde_json::to_string(&bots()).expect("JSON");
        assert!(stored.contains("Bearer ${TOKEN}"), "{stored}");
    }

    #[test]
    fn a_query_and_a_body_take_their_secrets_from_the_environment_too() {
        let line = "http://127.0.0.1:1/a?key=${KEY} --method POST --body 'k=${KEY} ${ no name }'";
        let plan = resolve(&Flags::of(line), None, 1).expect("a plan");
        let stored = serde_json::to_string(&plan).expect("JSON");
        assert!(stored.contains("?key=${KEY}") && stored.contains("k=${KEY}"), "{stored}");
        let mut bots = plan.bots;
        fill_in_bots(&mut bots, |name| (name == "KEY").then(|| "a/b&c d".to_owned())).expect("it is set");
        let request = &HttpBots::of(&bots).expect("HTTP bots").requests[0];
        assert_eq!(request.path, "/a?key=a%2Fb%26c%20d");
        assert_eq!(request.body, "k=a/b&c d ${ no name }");
        let missing = fill_in_bots(
            &mut resolve(&Flags::of("http://127.0.0.1:1/${KEY}"), None, 1).expect("a plan").bots,
            |_| None,
        );
        let said = missing.expect_err("it is not set").to_string();
        assert_eq!(said, "the path of \"GET /${KEY}\" needs the environment variable KEY, which is not set");
    }

    #[test]
    fn a_signing_key_takes_its_secret_from_the_environment_and_never_shows_it() {
        let flags = Flags::of("leaderboard --key 'game=${GAME_KEY}'");
        let bots = resolve(&flags, None, 1).expect("a plan").bots;
        assert!(serde_json::to_string(&bots).expect("JSON").contains("${GAME_KEY}"));
        let filled = |value: &str| {
            let mut bots = bots.clone();
            let value = value.to_owned();
            fill_in_bots(&mut bots, |name| (name == "GAME_KEY").then(|| value.clone())).map(|()| bots)
        };
        let good = filled(&"5a".repeat(16)).expect("it is a key");
        let key = LeaderboardBots::of(&good).and_then(|bots| bots.key.clone()).expect("a key");
        assert_eq!(key.secret_bytes(), Some(vec![0x5a; 16]));
        assert!(!format!("{good:?}").contains("5a5a"));
        let broken = format!("{:#}", filled("hunter2-is-not-hexadecimal-at-all").expect_err("no key"));
        assert!(broken.contains("game") && !broken.contains("hunter2"), "{broken}");
    }

    #[test]
    fn options_of_a_server_take_their_secrets_from_the_environment_and_show_none() {
        let filled = |option: &str| {
            let options = ["--listen=127.0.0.1:0".to_owned(), option.to_owned()];
            options_filled(&options, |name| (name == "PW").then(|| "hunter2".to_owned()))
        };
        for (option, expected) in [
            ("nats://u:${PW}@h:1", "nats://u:hunter2@h:1"),
            ("--store=redis://:${PW}@h", "--store=redis://:hunter2@h"),
            ("nats://${PW}@h", "nats://hunter2@h"),
            ("nats://h:1", "nats://h:1"),
            ("redis://u:@h", "redis://u:@h"),
        ] {
            assert_eq!(filled(option).expect("it is set")[1], expected);
        }
        for shown in
            ["nats://u:hunter2@h", "--store=redis://:hun/ter2@h", "nats://hunter2@h", "redis://u:x${PW}@h"]
        {
            let said = filled(shown).expect_err("it would be stored").to_string();
            assert!(said.contains("write '${NAME}' in its place") && !said.contains("hunter2"), "{said}");
        }
        let said = filled("nats://u:${ELSE}@h").expect_err("it is not set").to_string();
        assert_eq!(said, "options after --: the environment variable ELSE is not set");
    }

    #[test]
    fn a_missing_or_broken_secret_is_refused_by_name_and_never_repeated() {
        assert_eq!(
            filled(None).expect_err("not set").to_string(),
            "header Authorization of \"GET /a\" needs the environment variable TOKEN, which is not set"
        );
        let broken = format!("{:#}", filled(Some("hunter2\r\nX: y")).expect_err("a line end"));
        assert!(broken.contains("control character") && !broken.contains("hunter2"), "{broken}");
    }
}
