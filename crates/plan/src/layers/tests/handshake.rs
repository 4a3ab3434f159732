use super::*;
use crate::plan::Handshake;

fn handshake(headers: &[(&str, &str)], subprotocols: &[&str]) -> Handshake {
    Handshake {
        headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        subprotocols: subprotocols.iter().map(|name| (*name).into()).collect(),
    }
}

#[test]
fn a_handshake_takes_headers_and_subprotocols_from_flags_and_files_for_all_who_speak_over_websocket() {
    let said = "--header 'Authorization: Bearer ${TOKEN}' --header 'Origin: http://x' --subprotocol b --subprotocol a";
    let expected = handshake(&[("Authorization", "Bearer ${TOKEN}"), ("Origin", "http://x")], &["b", "a"]);
    for target in [
        "ws://127.0.0.1:1/x --bots echo",
        "wss://127.0.0.1:1/x --bots arena",
        "ws://127.0.0.1:1/x --bots leaderboard",
        "http://127.0.0.1:1 --bots leaderboard --protocol websocket",
    ] {
        let plan = plan_of_flags(&format!("{target} {said}"));
        assert_eq!(plan.handshake, expected, "{target}");
    }
    let file = "subject: { target: 'ws://127.0.0.1:1' }
bots: { kind: echo, headers: { Cookie: 'id=${ID}' }, subprotocols: [ a, a, b ] }
ladder: { rungs: [1] }
";
    assert_eq!(plan_of(file).handshake, handshake(&[("Cookie", "id=${ID}")], &["a", "b"]));
    let plan = plan_over("scenarios/x.yaml --header 'Origin: http://y'", file);
    assert_eq!(plan.handshake, handshake(&[("Origin", "http://y")], &["a", "b"]));
    assert_eq!(plan_of_flags("ws://127.0.0.1:1 --bots echo").handshake, Handshake::default());
    assert!(!serde_json::to_string(&plan_of_flags("arena")).unwrap().contains("handshake"));
}

#[test]
fn what_the_handshake_itself_says_and_what_has_none_is_refused() {
    let check = |line: &str, words: &str| {
        let told = refusal(line);
        assert!(told.contains(words) && told.lines().count() == 1, "{told}");
    };
    let ws = |said: &str| format!("ws://127.0.0.1:1 --bots echo {said}");
    for name in
        ["Upgrade", "connection", "Sec-WebSocket-Key", "sec-websocket-version", "Sec-WebSocket-Extensions"]
    {
        check(&ws(&format!("--header '{name}: x'")), "follows from the WebSocket handshake; leave it out");
    }
    check(&ws("--header 'Sec-WebSocket-Protocol: x'"), "follows from the subprotocols (--subprotocol NAME)");
    check(&ws("--header 'Cookie: id=1'"), "Cookie holds a secret");
    check(&ws("--header Cookie"), "a header is written as Name: value");
    check(&ws("--subprotocol 'a, b'"), "is not the name of a subprotocol");
    let no_handshake = "this is for the handshake of a WebSocket";
    check("tcp://127.0.0.1:1 --bots echo --header 'X: y'", no_handshake);
    check("tcp://127.0.0.1:1 --bots echo --subprotocol y", no_handshake);
    check("http://127.0.0.1:1 --bots leaderboard --header 'X: y'", no_handshake);
    check("irc://127.0.0.1:1 --header 'X: y'", "these are chat bots");
    check("http://127.0.0.1:1 --subprotocol y", "these are http bots");
    plan_of_flags(&ws("--header 'Host: elsewhere'"));
}
