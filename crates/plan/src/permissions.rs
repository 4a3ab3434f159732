//! What a plan from a file needs the user's permission for.
//!
//! A scenario or a stored run may come from elsewhere. It may say what is measured and how, but must not start
//! commands, write files or load other hosts unless the user permits it. This file lists what needs permission. The
//! command line needs none: the user wrote it.
//! Not here: asking (`stepladder`), and which addresses are never loaded (`target`).

use std::fmt;
use std::net::IpAddr;

use crate::credentials::{Credentials, SecretSource};
use crate::flags::Flags;
use crate::layers::{OPTIONS, PASSWORD_FILE, START, TICKS, TOKEN_FILE};
use crate::plan::{Plan, SubjectSource, TickSource};
use crate::target::{Target, TargetRefused, names_same_host};

/// Options of built-in servers by which they read or write files, or listen or connect elsewhere.
const LEADS_OUTSIDE: [&str; 8] =
    ["--listen", "--metrics", "--tick-log", "--keys", "--data", "--store", "--nats-login", "--nats"];

/// What only the user may allow. Displayed in words, as a file holds it: the caller makes it harmless for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    /// to start this command with a shell
    Start(String),
    /// to give this option to a built-in server, which leads it to a file or an address
    Option(String),
    /// to write this tick log
    TickLog(String),
    /// to listen here for ticks, where other machines reach it
    Listen(String),
    /// to send what this file holds to the server, as a password or token
    Send(String),
    /// to load this host, which is not this machine
    Load(String),
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Permission::Start(command) => write!(f, "start the command: {command}"),
            Permission::Option(option) => write!(f, "start a built-in server with {option}"),
            Permission::TickLog(path) => write!(f, "write the tick log {path}"),
            Permission::Listen(address) => {
                write!(f, "listen on {address}, where other machines may send ticks")
            }
            Permission::Send(path) => write!(f, "send the server what the file {path} holds"),
            Permission::Load(host) => write!(f, "load the host {host}"),
        }
    }
}

/// What a plan from a file needs permission for; `flags` are what the command line said besides.
pub fn permissions(plan: &Plan, flags: &Flags) -> Vec<Permission> {
    let mut permissions = Vec::new();
    let is_said = |setting| !flags.all(setting).is_empty();
    match &plan.subject.source {
        SubjectSource::BuiltIn { options, .. } => {
            if !is_said(&OPTIONS) {
                permissions.extend(outside(options).map(Permission::Option));
            }
            for source in plan.subject.tick_sources().filter(|_| !is_said(&TICKS)) {
                if let TickSource::Log(Some(path)) = source {
                    permissions.push(Permission::TickLog(path.display().to_string()));
                }
            }
        }
        SubjectSource::Started { command, target } => {
            if !is_said(&START) {
                permissions.push(Permission::Start(command.clone()));
            }
            permissions.extend(elsewhere(target));
        }
        SubjectSource::Running { target, .. } => permissions.extend(elsewhere(target)),
    }
    if let Some(SecretSource::File(path)) =
        plan.subject.target().and_then(|target| target.credentials.as_ref()).map(Credentials::source)
        && !is_said(&PASSWORD_FILE)
        && !is_said(&TOKEN_FILE)
    {
        permissions.push(Permission::Send(path.display().to_string()));
    }
    for source in plan.subject.tick_sources().filter(|_| !is_said(&TICKS)) {
        match source {
            TickSource::Statsd { address, .. } if !address.ip().to_canonical().is_loopback() => {
                permissions.push(Permission::Listen(address.to_string()));
            }
            TickSource::OpenMetrics { endpoint, .. } => permissions.extend(elsewhere(endpoint)),
            _ => {}
        }
    }
    permissions
}

fn outside(options: &[String]) -> impl Iterator<Item = String> {
    let leads = |option: &str| LEADS_OUTSIDE.iter().find(|name| option.strip_prefix(**name).is_some());
    options.iter().enumerate().filter_map(move |(at, option)| {
        let name = leads(option)?;
        match option.strip_prefix(name)? {
            "" => Some(format!("{name} {}", options.get(at + 1).map_or("", String::as_str))),
            value if value.starts_with('=') => Some(option.clone()),
            _ => None,
        }
    })
}

fn elsewhere(target: &Target) -> Option<Permission> {
    let is_here = match target.literal_address() {
        Some(address) => address.to_canonical().is_loopback(),
        None => target.host == "localhost",
    };
    (!is_here).then(|| Permission::Load(target.host.clone()))
}

/// Whether an address may be loaded that a file names: this machine's own, and hosts that its user has named.
///
/// Asked besides `may_load`, of what a name resolved to. Errors: nobody but the file named it.
pub fn may_load_for_file(address: IpAddr, host: &str, named: &[String]) -> Result<(), TargetRefused> {
    if address.to_canonical().is_loopback() || named.iter().any(|named| names_same_host(named, host)) {
        return Ok(());
    }
    Err(TargetRefused::OnlyAFileNamesIt { host: host.to_owned(), address })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ScenarioText, resolve};

    fn of(scenario: &str, line: &str) -> Vec<String> {
        let text = ScenarioText { path: "game.yaml".into(), text: scenario.into() };
        let flags = Flags::of(&format!("game.yaml {line}"));
        let plan = resolve(&flags, Some(text), 1).expect("a plan");
        permissions(&plan, &flags).iter().map(ToString::to_string).collect()
    }

    fn check(scenario: &str, expected: &[&str]) {
        assert_eq!(of(scenario, ""), expected, "{scenario}");
    }

    #[test]
    fn what_stays_on_this_machine_is_no_wish() {
        check("subject: arena\n", &[]);
        check("subject: { target: arena, options: [--tick-rate, 30] }\n", &[]);
        for host in ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "[::ffff:127.0.0.1]"] {
            check(&format!("subject: {{ target: 'ws://{host}:9' }}\nbots: echo\n"), &[]);
        }
    }

    #[test]
    fn commands_files_and_other_hosts_are_wishes() {
        check(
            "subject: { target: 'ws://127.0.0.1:9', start: 'rm -rf .' }\nbots: echo\n",
            &["start the command: rm -rf ."],
        );
        check("subject: { target: 'ws://10.0.0.7:9' }\nbots: echo\n", &["load the host 10.0.0.7"]);
        check("subject: { target: 'ws://game.lan:9' }\nbots: echo\n", &["load the host game.lan"]);
        check(
            "subject: { target: arena, options: [--listen, '0.0.0.0:9'] }\n",
            &["start a built-in server with --listen 0.0.0.0:9"],
        );
        check(
            "subject: { target: leaderboard, options: ['--data=/home'] }\n",
            &["start a built-in server with --data=/home"],
        );
        check("subject: { target: arena, ticks: { log: /home/x } }\n", &["write the tick log /home/x"]);
        check(
            "subject: { target: 'irc://127.0.0.1' }\ncredentials: { password_file: /home/x/.ssh/id_rsa }\n",
            &["send the server what the file /home/x/.ssh/id_rsa holds"],
        );
        check("subject: { target: 'irc://127.0.0.1' }\ncredentials: { password_env: IRC }\n", &[]);
        let ticks = |url| {
            format!(
                "subject: {{ target: 'http://127.0.0.1:9', tick_rate: 30, ticks: {{ openmetrics: '{url}' }} }}\n"
            )
        };
        check(&ticks("http://10.0.0.7:9100/metrics#tick_seconds"), &["load the host 10.0.0.7"]);
        check(&ticks("http://127.0.0.1:9100/metrics#tick_seconds"), &[]);
    }

    #[test]
    fn what_stands_on_the_command_line_is_the_users_own_word() {
        let scenario = "subject: { target: 'ws://127.0.0.1:9', start: 'rm -rf .' }\nbots: echo\n";
        assert_eq!(of(scenario, "--start true"), [""; 0]);
        let scenario = "subject: { target: 'irc://127.0.0.1' }\ncredentials: { password_file: x }\n";
        assert_eq!(of(scenario, "--password-file y"), [""; 0]);
        assert_eq!(of("subject: { target: arena, options: [--data, x] }\n", "-- --threads 1"), [""; 0]);
    }

    #[test]
    fn a_file_alone_loads_no_other_machine() {
        let check = |address: &str, host: &str, named: &[&str], is_allowed: bool| {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            let allowed = may_load_for_file(address.parse().unwrap(), host, &named);
            assert_eq!(allowed.is_ok(), is_allowed, "{address} as {host}");
        };
        check("127.0.0.1", "here.example", &[], true);
        check("::1", "::1", &[], true);
        check("::ffff:127.0.0.1", "x", &[], true);
        // A private range is free on the command line, but here it may be someone's router.
        check("192.168.1.1", "192.168.1.1", &[], false);
        check("192.168.1.1", "192.168.1.1", &["192.168.1.1"], true);
        check("10.0.0.7", "game.lan", &["other.lan"], false);
        check("10.0.0.7", "game.lan", &["Game.LAN."], true);
    }
}
