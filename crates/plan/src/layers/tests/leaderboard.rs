use super::*;
use crate::workloads::{HttpModel, LeaderboardBots, LeaderboardProtocol};

/// The clients of a plan.
fn clients_of(plan: &Plan) -> &LeaderboardBots {
    bots_of(plan)
}

#[track_caller]
fn check_protocol(line: &str, protocol: LeaderboardProtocol, streams: u32) {
    let plan = plan_of_flags(line);
    let clients = clients_of(&plan);
    assert_eq!((clients.protocol, clients.http.streams), (protocol, streams), "{line}");
}

#[test]
fn requests_go_over_http_unless_a_protocol_or_the_target_says_otherwise() {
    use LeaderboardProtocol::{Grpc, Http, WebSocket};
    check_protocol("leaderboard", Http, 1);
    check_protocol("leaderboard --protocol http", Http, 1);
    check_protocol("leaderboard --protocol websocket", WebSocket, 16);
    check_protocol("leaderboard --protocol websocket --in-flight 64", WebSocket, 64);
    check_protocol("leaderboard --protocol grpc", Grpc, 16);
    check_protocol("http://127.0.0.1:8080 --bots leaderboard --protocol grpc --in-flight 1", Grpc, 1);
    check_protocol("ws://127.0.0.1:8080/board --bots leaderboard", WebSocket, 16);
    check_protocol("leaderboard --protocol websocket --requesters 8", WebSocket, 1);
    check_protocol("leaderboard --protocol websocket --no-keep-alive", WebSocket, 1);
}

#[test]
fn a_scenario_says_protocol_and_requests_in_flight() {
    let text = "subject: leaderboard\nbots: { protocol: websocket, in_flight: 4, connections: 2 }\n";
    let plan = plan_of(text);
    let clients = clients_of(&plan);
    assert_eq!((clients.protocol, clients.http.streams), (LeaderboardProtocol::WebSocket, 4));
    assert!(matches!(clients.http.model, HttpModel::Open { connections: 2, .. }));
}

#[test]
fn settings_that_a_protocol_does_not_have_are_refused() {
    check_refusals(
        "$ climb leaderboard --protocol smoke
           --protocol: there is no protocol \"smoke\"; there are http, websocket and grpc (for example: --protocol \
             websocket)
         $ climb leaderboard --in-flight 4
           --in-flight: several requests at once on one connection need --protocol websocket or grpc (or --http 2 with \
             --streams)
         $ climb leaderboard --protocol grpc --requesters 4 --in-flight 4
           --in-flight: several requests at once on one connection need a rate and kept connections
         $ climb leaderboard --protocol grpc --http 2
           --http: http is for requests over HTTP; websocket and grpc leave no choice of it
         $ climb leaderboard --protocol websocket --bulk 2001
           --bulk: a message over WebSocket has at most 64 KiB, which is room for 2000 updates
         $ climb ws://127.0.0.1:1 --bots leaderboard --protocol grpc
           --protocol: a ws:// target is spoken to over WebSocket; for grpc give its address as http://
         $ climb leaderboard --protocol websocket --bulk 1,300,3000
           --bulk: a message over WebSocket has at most 64 KiB, which is room for 2000 updates
         $ climb leaderboard --protocol websocket --in-flight 0
           --in-flight: must be between 1 and 1000, got 0 (for example: --in-flight 16)",
    );
}
