//! Commands about the server and the connection rather than keys: `HELLO`, `CLIENT`, `INFO`, `CONFIG`, `COMMAND`.

use std::fmt::Write as _;

use super::commands::{After, COMMANDS, Call, Does, refused};
use super::reply;
use servers_shared::clock;

/// The release of Redis whose commands and replies these are.
const LIKE_VERSION: &str = "7.0.0";
/// The longest name of a connection.
const NAME_BYTES_MAX: usize = 256;
/// Words of a `HELLO`, `INFO` or `CONFIG GET`, each of which is compared with all that can be asked for: many more than
/// clients send, and few enough that the others do not wait.
const WORDS_MAX: usize = 64;

/// What the server counts and says of itself.
pub(super) struct About {
    /// By row of the commands.
    pub(super) calls: [u64; COMMANDS.len()],
    pub(super) connections: u64,
    pub(super) connections_total: u64,
    pub(super) rejected_total: u64,
    pub(super) max_connections: usize,
    started_ns: u64,
    port: u16,
}

impl About {
    pub(super) fn new(port: u16, max_connections: usize) -> About {
        About {
            calls: [0; COMMANDS.len()],
            connections: 0,
            connections_total: 0,
            rejected_total: 0,
            max_connections,
            started_ns: clock::now_ns(),
            port,
        }
    }
}

/// A word that names an option, in either case.
fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

fn set_name(call: &mut Call<'_>, at: usize) -> Result<(), &'static str> {
    let name = call.words.at(at);
    if name.len() > NAME_BYTES_MAX || name.iter().any(|byte| !(b'!'..=b'~').contains(byte)) {
        return Err("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    call.session.name = name.into();
    Ok(())
}

pub(super) fn hello(call: &mut Call<'_>) -> After {
    if call.words.len() > WORDS_MAX {
        return refused(call, "ERR syntax error");
    }
    let mut resp3 = call.session.resp3;
    if call.words.len() > 1 {
        resp3 = match call.words.at(1) {
            b"2" => false,
            b"3" => true,
            _ => return refused(call, "NOPROTO unsupported protocol version"),
        };
    }
    let mut at = 2;
    while at < call.words.len() {
        if is(call.words.at(at), "SETNAME") && at + 1 < call.words.len() {
            if let Err(text) = set_name(call, at + 1) {
                return refused(call, text);
            }
            at += 2;
        } else if is(call.words.at(at), "AUTH") && at + 2 < call.words.len() {
            // The only user needs no password.
            at += 3;
        } else {
            let option = String::from_utf8_lossy(&call.words.at(at)[..call.words.at(at).len().min(64)]);
            return refused(call, &format!("ERR Syntax error in HELLO option '{option}'"));
        }
    }
    call.session.resp3 = resp3;
    let out = &mut *call.out;
    reply::map(out, 7, resp3);
    for (name, text) in [("server", "redis"), ("version", LIKE_VERSION)] {
        reply::bulk(out, name.as_bytes());
        reply::bulk(out, text.as_bytes());
    }
    for (name, number) in [("proto", if resp3 { 3 } else { 2 }), ("id", call.session.id as i64)] {
        reply::bulk(out, name.as_bytes());
        reply::number(out, number);
    }
    for (name, text) in [("mode", "standalone"), ("role", "master")] {
        reply::bulk(out, name.as_bytes());
        reply::bulk(out, text.as_bytes());
    }
    reply::bulk(out, b"modules");
    reply::array(out, 0);
    After::Nothing
}

pub(super) fn client(call: &mut Call<'_>) -> After {
    let act = call.words.at(1);
    if is(act, "ID") {
        reply::number(call.out, call.session.id as i64);
    } else if is(act, "GETNAME") {
        match &*call.session.name {
            [] => reply::none(call.out, call.session.resp3),
            name => reply::bulk(call.out, name),
        }
    } else if is(act, "SETNAME") && call.words.len() == 3 {
        match set_name(call, 2) {
            Ok(()) => reply::ok(call.out),
            Err(text) => reply::error(call.out, text),
        }
    } else if is(act, "SETINFO") && call.words.len() == 4
        || is(act, "NO-EVICT")
        || is(act, "NO-TOUCH")
        || is(act, "REPLY") && is(call.words.at(2), "ON")
    {
        reply::ok(call.out);
    } else if is(act, "INFO") || is(act, "LIST") {
        let (id, name) = (call.session.id, String::from_utf8_lossy(&call.session.name));
        let line = format!("id={id} name={name} db=0 resp={}\n", if call.session.resp3 { 3 } else { 2 });
        reply::text(call.out, &line, call.session.resp3);
    } else {
        let text =
            format!("ERR unknown subcommand '{}'.", String::from_utf8_lossy(&act[..act.len().min(64)]));
        return refused(call, &text);
    }
    After::Nothing
}

pub(super) fn info(call: &mut Call<'_>) -> After {
    if call.words.len() > WORDS_MAX {
        return refused(call, "ERR syntax error");
    }
    let wanted = |section: &str| {
        let names = |name: &str| call.words.from(1).any(|word| is(word, name));
        call.words.len() == 1 && section != "commandstats"
            || names(section)
            || names("all")
            || names("everything")
            || names("default") && section != "commandstats"
    };
    let about = &*call.about;
    let memory = call.keys.memory();
    let uptime_s = (clock::now_ns() - about.started_ns) / 1_000_000_000;
    let mut text = String::new();
    // Writing to a string cannot fail.
    if wanted("server") {
        let _ = write!(
            text,
            "# Server\r\nredis_version:{LIKE_VERSION}\r\nserver_name:stepladder\r\nredis_mode:standalone\r\n\
             process_id:{}\r\ntcp_port:{}\r\nuptime_in_seconds:{uptime_s}\r\n\r\n",
            std::process::id(),
            about.port
        );
    }
    if wanted("clients") {
        let _ = write!(
            text,
            "# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\n\r\n",
            about.connections, about.max_connections
        );
    }
    if wanted("memory") {
        let _ = write!(
            text,
            "# Memory\r\nused_memory:{}\r\nmaxmemory:{}\r\nmaxmemory_policy:noeviction\r\n\r\n",
            memory.used_bytes(),
            memory.max_bytes()
        );
    }
    if wanted("stats") {
        let _ = write!(
            text,
            "# Stats\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{}\r\nrejected_connections:{}\r\n\
             expired_keys:{}\r\n\r\n",
            about.connections_total,
            about.calls.iter().sum::<u64>(),
            about.rejected_total,
            call.keys.expired_total()
        );
    }
    if wanted("replication") {
        text.push_str("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n");
    }
    if wanted("commandstats") {
        text.push_str("# Commandstats\r\n");
        for (command, calls) in COMMANDS.iter().zip(about.calls).filter(|(_, calls)| *calls > 0) {
            let _ = write!(text, "cmdstat_{}:calls={calls}\r\n", command.name);
        }
        text.push_str("\r\n");
    }
    if wanted("keyspace") {
        text.push_str("# Keyspace\r\n");
        if call.keys.count() > 0 {
            let _ = write!(text, "db0:keys={}\r\n", call.keys.count());
        }
    }
    reply::text(call.out, &text, call.session.resp3);
    After::Nothing
}

pub(super) fn config(call: &mut Call<'_>) -> After {
    let act = call.words.at(1);
    if is(act, "RESETSTAT") {
        call.about.calls.fill(0);
        reply::ok(call.out);
        return After::Nothing;
    }
    if !is(act, "GET") || call.words.len() < 3 {
        return refused(
            call,
            "ERR this server is configured by its command line: stepladder serve redis --help",
        );
    }
    if call.words.len() > WORDS_MAX {
        return refused(call, "ERR wrong number of arguments for 'config|get' command");
    }
    let settings = [
        ("save", String::new()),
        ("appendonly", "no".to_owned()),
        ("maxmemory", call.keys.memory().max_bytes().to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("maxclients", call.about.max_connections.to_string()),
        ("databases", "1".to_owned()),
        ("io-threads", "1".to_owned()),
        ("proto-max-bulk-len", super::request::WORD_BYTES_MAX.to_string()),
    ];
    let wanted: Vec<_> = settings
        .iter()
        .filter(|(name, _)| call.words.from(2).any(|word| word == b"*" || is(word, name)))
        .collect();
    reply::map(call.out, wanted.len(), call.session.resp3);
    for (name, value) in wanted {
        reply::bulk(call.out, name.as_bytes());
        reply::bulk(call.out, value.as_bytes());
    }
    After::Nothing
}

pub(super) fn command(call: &mut Call<'_>) -> After {
    let act = call.words.at(1);
    if is(act, "COUNT") {
        reply::number(call.out, COMMANDS.len() as i64);
        return After::Nothing;
    }
    if call.words.len() > 1 {
        // No documentation, and no other subcommands: clients work without.
        if is(act, "DOCS") {
            reply::map(call.out, 0, call.session.resp3);
        } else {
            reply::array(call.out, 0);
        }
        return After::Nothing;
    }
    reply::array(call.out, COMMANDS.len());
    for command in &COMMANDS {
        reply::array(call.out, 6);
        reply::bulk(call.out, command.name.as_bytes());
        reply::number(call.out, command.arity);
        reply::array(call.out, 1);
        reply::simple(
            call.out,
            match command.does {
                Does::Reads => "readonly",
                Does::Writes => "write",
                Does::Neither => "fast",
            },
        );
        let has_keys =
            command.does != Does::Neither && command.arity != 1 && !command.name.starts_with("flush");
        let last =
            if has_keys && command.arity < 0 && command.name != "set" { -1 } else { i64::from(has_keys) };
        let step = if command.name == "mset" { 2 } else { i64::from(has_keys) };
        [i64::from(has_keys), last, step].into_iter().for_each(|place| reply::number(call.out, place));
    }
    After::Nothing
}
