use proptest::prelude::*;

use super::*;

#[test]
fn a_url_gives_host_port_and_path() {
    for (text, scheme, host, port, path) in [
        ("ws://127.0.0.1:42069", Scheme::Ws, "127.0.0.1", 42069, "/"),
        ("ws://localhost", Scheme::Ws, "localhost", 80, "/"),
        ("WSS://Game.Example/play?room=1", Scheme::Wss, "game.example", 443, "/play?room=1"),
        ("ws://[::1]:9001/x", Scheme::Ws, "::1", 9001, "/x"),
        ("wss://[::ffff:127.0.0.1]", Scheme::Wss, "::ffff:127.0.0.1", 443, "/"),
        ("tcp://localhost", Scheme::Tcp, "localhost", 4001, "/"),
        ("tcp://127.0.0.1:9/", Scheme::Tcp, "127.0.0.1", 9, "/"),
        ("IRC://[::1]", Scheme::Irc, "::1", 6667, "/"),
        ("mqtt://10.0.0.1", Scheme::Mqtt, "10.0.0.1", 1883, "/"),
        ("rediss://10.0.0.1/3", Scheme::Rediss, "10.0.0.1", 6379, "/3"),
        ("hazelcasts://h/prices", Scheme::Hazelcasts, "h", 5701, "/prices"),
        ("redis://10.0.0.1/3", Scheme::Redis, "10.0.0.1", 6379, "/3"),
        ("hazelcast://h/prices?cluster=north", Scheme::Hazelcast, "h", 5701, "/prices?cluster=north"),
        ("nats://10.0.0.1", Scheme::Nats, "10.0.0.1", 4222, "/"),
        ("ws://h:1?snapshots", Scheme::Ws, "h", 1, "/?snapshots"),
        ("http://127.0.0.1/todos?page=2", Scheme::Http, "127.0.0.1", 80, "/todos?page=2"),
        ("HTTPS://Shop.Example", Scheme::Https, "shop.example", 443, "/"),
        ("  ws://h:1/  ", Scheme::Ws, "h", 1, "/"),
        ("ws://h/play?room=ä", Scheme::Ws, "h", 80, "/play?room=ä"),
        ("http://h/a b", Scheme::Http, "h", 80, "/a b"),
    ] {
        let target: Target = text.parse().expect(text);
        assert_eq!(
            (target.scheme, target.host.as_str(), target.port, target.path.as_str()),
            (scheme, host, port, path)
        );
    }
}

#[test]
fn a_url_may_name_several_nodes() {
    let target: Target = "tcp://one:1,[::1]:2,Three".parse().unwrap();
    let nodes: Vec<String> = target.nodes().map(|node| node.to_string()).collect();
    assert_eq!(nodes, ["tcp://one:1", "tcp://[::1]:2", "tcp://three:4001"]);
    assert_eq!(target.to_string(), "tcp://one:1,[::1]:2,three:4001");
    assert_eq!(target.to_string().parse::<Target>().unwrap(), target);
    let check = |text: &str, message: &str| {
        assert_eq!(text.parse::<Target>().expect_err(text).to_string(), message, "{text}");
    };
    check("tcp://one,two,", "the URL names no host");
    check("tcp://one:4001,one", "the URL names one twice; each node once");
    check("https://one,two", "https:// takes one address, and no list of nodes");
    check("irc://one,two:x", "\"x\" is not a port; ports are between 1 and 65535");
    let with_password = "tcp://ada:secret@one,two".parse::<Target>().expect_err("a secret").to_string();
    assert!(!with_password.contains("secret"), "{with_password}");
}

#[test]
fn garbage_is_refused_with_its_reason() {
    let check = |text: &str, message: &str| {
        assert_eq!(text.parse::<Target>().expect_err(text).to_string(), message, "{text}");
    };
    check(
        "127.0.0.1:42069",
        "\"127.0.0.1:42069\" is not a URL: it does not say ws://, wss://, tcp://, udp://, irc://, nats://, mqtt://, redis://, rediss://, hazelcast://, hazelcasts://, grpc://, grpcs://, http:// or https://",
    );
    check(
        "wx://h",
        "unknown scheme \"wx\"; known: ws, wss, tcp, udp, irc, nats, mqtt, redis, rediss, hazelcast, hazelcasts, grpc, grpcs, http, https",
    );
    check("tcp://h:1/lobby", "tcp:// takes no path; leave \"/lobby\" out (--room names a room)");
    check("irc://h/#lobby", "irc:// takes no path; leave \"/#lobby\" out (--room names a room)");
    check("nats://h?x", "nats:// takes no path; leave \"?x\" out (--room names a room)");
    let no_database =
        |path| format!("\"{path}\" is no database; redis:// takes its number: redis://HOST:PORT/0");
    check("redis://h/prices", &no_database("/prices"));
    check("redis://h/3?x", &no_database("/3?x"));
    check("redis://h/+3", &no_database("/+3"));
    for path in ["/a/b", "?cluster=north", "/prices?clusters=north", "/prices?cluster="] {
        let wrong = format!(
            "\"{path}\" is no map; hazelcast:// takes its name, and the cluster's where it is not dev:"
        );
        check(&format!("hazelcast://h{path}"), &format!("{wrong} hazelcast://HOST:PORT/MAP?cluster=NAME"));
    }
    check("ws://", "the URL names no host");
    check("ws://:80", "the URL names no host");
    check("ws://h:0", "\"0\" is not a port; ports are between 1 and 65535");
    check("ws://h:65536", "\"65536\" is not a port; ports are between 1 and 65535");
    check("ws://h:+80", "\"+80\" is not a port; ports are between 1 and 65535");
    check("ws://h:", "\"\" is not a port; ports are between 1 and 65535");
    check("ws://[::1]80", "\"80\" is not a port; ports are between 1 and 65535");
    check("ws://[::1", "\"[::1\" is not a host name or address");
    check("ws://[fe80::1%eth0]:1", "\"fe80::1%eth0\" is not a host name or address");
    check("ws://::1", "\"::1\" looks like an IPv6 address without brackets; write [::1]:PORT");
    check("ws://hé:1", "\"hé\" is not a host name or address");
    check("ws://a..b", "\"a..b\" is not a host name or address");
    for text in ["ws://h x/a", "redis://h/ 3", "hazelcast://h/my map", "ws://h/a\tb"] {
        check(text, "the URL holds a blank or a control character; write it as %20 or the like");
    }
    check("ws://h/\r\nX: y", "the URL holds a blank or a control character; write it as %20 or the like");
    check("ws://h/#top", "the URL ends in a fragment (#…), which no server ever sees; leave it out");
}

#[test]
fn a_password_in_a_url_is_refused_and_never_repeated() {
    let from_header = "--header 'Authorization: Bearer ${VARIABLE}'";
    let user_or_token = "--token-env VARIABLE, or --user NAME and --password-env VARIABLE";
    for (text, url, option) in [
        ("ws://me:hunter2@h:1", "write ws://h:1;", from_header),
        ("wss://hunter2@h", "write wss://h;", from_header),
        ("me:hunter2@h", ", so leave it out", ""),
        ("ws://me:hunter2@h:1/ x", "write ws://h:1;", from_header),
        ("nats://hunter2@host", "write nats://host and give it with", user_or_token),
        ("http://bob:hunter2@host:8080/a", "write http://host:8080 and give it with", user_or_token),
        (
            "mqtt://bob:hunter2@10.0.0.1",
            "write mqtt://10.0.0.1 and",
            "--user NAME and --password-env VARIABLE",
        ),
        ("irc://:hunter2@[::1]:6667", "write irc://[::1]:6667 and", "--password-env VARIABLE"),
        ("redis://:hunter2@host", "write redis://host and", "--password-env VARIABLE, and --user NAME where"),
        ("hazelcast://bob:hunter2@h/m", "write hazelcast://h and", "--user NAME and --password-env"),
        ("tcp://bob:hunter2@h", "write tcp://h;", "tcp:// has none; leave them out"),
        // Passwords that are not encoded: where they end is ambiguous.
        ("redis://:x@hunter2/y@host", "write the URL without it and", "--password-env VARIABLE"),
        ("redis://:hunter2/y@host", "write the URL without it and", "--password-env VARIABLE"),
        ("http://bob:hunter2/y@host", "write the URL without it and", user_or_token),
        ("nats://a@hunter2@host:4222", "write nats://host:4222 and", user_or_token),
    ] {
        let error = text.parse::<Target>().expect_err(text);
        assert!(matches!(error, TargetError::Credentials { .. }), "{text}: {error}");
        let said = error.to_string();
        assert!(
            said.starts_with("the URL holds a user name or password; plans are stored and printed"),
            "{said}"
        );
        assert!(said.contains(url) && said.contains(option), "{text}: {said}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}: {error:?}");
    }
}

#[test]
fn the_authority_leaves_out_the_schemes_own_port() {
    let authority = |text: &str| text.parse::<Target>().unwrap().authority();
    assert_eq!(authority("ws://h"), "h");
    assert_eq!(authority("wss://h:443"), "h");
    assert_eq!(authority("ws://h:443"), "h:443");
    assert_eq!(authority("ws://[::1]:9"), "[::1]:9");
}

fn verdict(address: &str, host: &str, allowed: &[&str]) -> &'static str {
    let allowed: Vec<String> = allowed.iter().map(|host| (*host).to_owned()).collect();
    match may_load(address.parse().unwrap(), host, &allowed) {
        Ok(()) => "may",
        Err(TargetRefused::NotNamed { .. }) => "not named",
        Err(TargetRefused::Metadata { .. }) => "metadata",
        Err(TargetRefused::LinkLocal { .. }) => "link-local",
        Err(TargetRefused::NotAServer { .. }) => "no server",
        Err(TargetRefused::OnlyAFileNamesIt { .. }) => "only a file names it",
    }
}

#[test]
fn loopback_and_private_ranges_are_free_and_public_addresses_want_to_be_named() {
    for address in ["127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1"] {
        assert_eq!(verdict(address, "h", &[]), "may", "{address}");
        assert_eq!(verdict(&format!("::ffff:{address}"), "h", &[]), "may", "mapped {address}");
    }
    for address in ["::1", "fc00::1", "fd12:3456::1"] {
        assert_eq!(verdict(address, "h", &[]), "may", "{address}");
    }
    for address in [
        "8.8.8.8",
        "172.32.0.1",
        "100.64.0.1",
        "192.169.0.1",
        "::ffff:8.8.8.8",
        "2001:db8::1",
        "64:ff9b::7f00:1",
    ] {
        assert_eq!(verdict(address, "game.example", &[]), "not named", "{address}");
        assert_eq!(verdict(address, "game.example", &["other.example"]), "not named", "{address}");
        assert_eq!(verdict(address, "game.example", &["Game.Example."]), "may", "{address}");
    }
    assert_eq!(verdict("8.8.8.8", "8.8.8.8", &["8.8.8.8"]), "may");
    assert_eq!(verdict("2001:db8::1", "2001:db8::1", &["[2001:0db8::1]"]), "may");
}

#[test]
fn a_metadata_service_is_never_loaded_however_its_address_is_dressed() {
    for address in [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "::ffff:0:169.254.169.254",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:7:8:9:a9fe:a9fe",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "169.254.170.2",
        "169.254.170.23",
        "::ffff:169.254.170.2",
        "100.100.100.200",
        "::ffff:100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    ] {
        assert_eq!(verdict(address, "meta", &["meta", "169.254.169.254", address]), "metadata", "{address}");
    }
    // By name too: a custom resolver may route it through a proxy on the machine.
    for name in ["metadata.google.internal", "Metadata.Google.Internal.", "metadata.goog"] {
        assert_eq!(verdict("127.0.0.1", name, &[name]), "metadata", "{name}");
    }
}

#[test]
fn a_refusal_shows_what_a_name_resolved_to_and_how_to_vouch_for_it() {
    let message = |address: &str, host: &str| {
        may_load(address.parse().unwrap(), host, &[]).expect_err("nobody vouched for it").to_string()
    };
    let why = "is outside loopback and private ranges; a load test of a server that is not yours is an attack: if it is yours, say";
    assert_eq!(message("8.8.8.8", "h.example"), format!("h.example (8.8.8.8) {why} --i-may-load h.example"));
    assert_eq!(message("8.8.8.8", "8.8.8.8"), format!("8.8.8.8 {why} --i-may-load 8.8.8.8"));
    assert_eq!(
        message("0.0.0.0", "0.0.0.0"),
        "0.0.0.0 is no single server; one on this machine is at 127.0.0.1"
    );
    assert_eq!(
        message("fe80::1", "h"),
        "h (fe80::1) is a link-local address; give the server an address of its own"
    );
}

#[test]
fn link_local_and_group_addresses_are_refused_even_when_named() {
    for address in ["169.254.1.1", "fe80::1", "::ffff:169.254.1.1"] {
        assert_eq!(verdict(address, "h", &["h"]), "link-local", "{address}");
    }
    for address in ["0.0.0.0", "::", "255.255.255.255", "224.0.0.1", "ff02::1", "::ffff:0.0.0.0", "0.1.2.3"] {
        assert_eq!(verdict(address, "h", &["h"]), "no server", "{address}");
    }
}

proptest! {
    #[test]
    fn what_is_shown_parses_to_the_same_target(
        scheme in prop::sample::select(vec![Scheme::Ws, Scheme::Wss, Scheme::Tcp, Scheme::Irc, Scheme::Nats, Scheme::Http]), port in 1u16.., octets in any::<[u8; 16]>(), v6 in any::<bool>(), path in "(/[a-z0-9]{0,5}){1,3}"
    ) {
        let ip = if v6 { IpAddr::from(octets) } else { IpAddr::from([octets[0], octets[1], octets[2], octets[3]]) };
        let path = if scheme.transport().paths() == Paths::Any { path } else { "/".into() };
        let target = Target { path, ..Target::at(scheme, SocketAddr::new(ip, port)) };
        prop_assert_eq!(target.to_string().parse::<Target>(), Ok(target));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,60}", inside in "[ -~]{0,20}") {
        let _ = text.parse::<Target>();
        let _ = format!("ws://{inside}").parse::<Target>();
    }
}
