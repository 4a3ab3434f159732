//! The leaderboard service over real sockets: every path, every refusal, many connections, and shutdown.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use servers::leaderboard_service::Options;

use crate::http_client::get;
use crate::leaderboard_client::{Player, at, options, request, start, update_in_every_mode};

#[test]
fn a_member_is_updated_read_and_deleted() {
    let running = start(options());
    let mut player = Player::of(&running);
    let answer = player.ask("PUT", "/leaderboards/main/members/ann?score=10", "");
    assert!(answer.head.contains("Content-Type: application/json\r\n"), "{}", answer.head);
    assert_eq!(answer.body, r#"{"member":"ann","score":"10","rank":1,"members":1}"#);
    update_in_every_mode(&mut player);
    let large = "123456789012345678901234567890123456789012345678901234567890";
    assert_eq!(player.update("PUT", "cid", large), (large.to_owned(), 1));
    assert_eq!(player.update("PATCH", "cid", "1").0, format!("{}1", &large[..large.len() - 1]));
    let deleted = player.done("DELETE", "/leaderboards/main/members/ann", "");
    assert_eq!(deleted, json!({"member": "ann", "score": "2", "members": 2}));
    player.refused(404, "GET", "/leaderboards/main/members/ann", "");
    player.refused(404, "DELETE", "/leaderboards/main/members/ann", "");
    running.end().unwrap();
}

#[test]
fn names_may_be_any_text() {
    let running = start(options());
    let mut player = Player::of(&running);
    let answer = player.ask("PUT", "/leaderboards/main/members/a%2F%22%C3%BC%0A?score=%2D1", "");
    assert_eq!(answer.body, "{\"member\":\"a/\\\"ü\\n\",\"score\":\"-1\",\"rank\":1,\"members\":1}");
    assert_eq!(player.standing("%61%2f%22%c3%bc%0a"), at(-1, 1));
    player.refused(400, "GET", "/leaderboards/main/members/%zz", "");
    running.end().unwrap();
}

#[test]
fn boards_are_created_listed_and_deleted() {
    let running = start(options());
    let mut player = Player::of(&running);
    let week = json!({"name": "week", "direction": "ascending", "ties": "first", "members": 0});
    let answer =
        player.ask("POST", "/leaderboards", r#"{"name":"week","direction":"ascending","ties":"first"}"#);
    assert_eq!((answer.status, serde_json::from_str::<Value>(&answer.body).unwrap()), (201, week.clone()));
    player.refused(409, "POST", "/leaderboards", r#"{"name":"week"}"#);
    player.done("PUT", "/leaderboards/week/members/slow?score=20", "");
    let fast = player.done("PUT", "/leaderboards/week/members/fast?score=10", "");
    assert_eq!(fast["rank"], 1);
    assert_eq!(player.done("GET", "/leaderboards/week", "")["members"], 2);
    let unnamed = player.done("POST", "/leaderboards", "{}");
    assert_eq!(unnamed["name"].as_str().unwrap().len(), 32);
    let listed = player.done("GET", "/leaderboards", "");
    assert_eq!(listed["leaderboards"].as_array().unwrap().len(), 3);
    let first = player.done("GET", "/leaderboards?limit=2", "");
    let next = first["next"].as_str().unwrap();
    let rest = player.done("GET", &format!("/leaderboards?limit=2&after={next}"), "");
    assert_eq!((rest["leaderboards"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    let answer = player.ask("DELETE", "/leaderboards/week", "");
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    player.refused(404, "GET", "/leaderboards/week", "");
    player.refused(404, "DELETE", "/leaderboards/week", "");
    running.end().unwrap();
}

#[test]
fn members_are_listed_by_rank_and_around_one() {
    let running = start(options());
    let mut player = Player::of(&running);
    for number in 1..=30 {
        player.update("PUT", &format!("m{number}"), &number.to_string());
    }
    let ranks = |page: &Value| -> Vec<u64> {
        page["rows"].as_array().unwrap().iter().map(|row| row["rank"].as_u64().unwrap()).collect()
    };
    let top = player.done("GET", "/leaderboards/main/top?limit=2", "");
    let rows =
        json!([{"member": "m30", "score": "30", "rank": 1}, {"member": "m29", "score": "29", "rank": 2}]);
    assert_eq!(top, json!({"members": 30, "rows": rows, "next": 3}));
    assert_eq!(ranks(&player.done("GET", "/leaderboards/main/top", "")).len(), 10);
    let mut next = json!(1);
    let mut all = Vec::new();
    while let Some(first) = next.as_u64() {
        let page = player.done("GET", &format!("/leaderboards/main/range?first={first}&limit=7"), "");
        all.extend(ranks(&page));
        next = page["next"].clone();
    }
    assert_eq!(all, (1..=30).collect::<Vec<_>>());
    let around = player.done("GET", "/leaderboards/main/around/m28?each_side=3", "");
    assert_eq!(ranks(&around), [1, 2, 3, 4, 5, 6]);
    let body = r#"{"members":["m30","nobody","m1"]}"#;
    let standings = player.done("POST", "/leaderboards/main/ranks", body);
    let expected = [
        json!({"member": "m30", "score": "30", "rank": 1}),
        Value::Null,
        json!({"member": "m1", "score": "1", "rank": 30}),
    ];
    assert_eq!(standings, json!({ "standings": expected }));
    player.refused(404, "GET", "/leaderboards/main/around/nobody", "");
    player.refused(422, "GET", "/leaderboards/main/top?limit=1001", "");
    player.refused(422, "GET", "/leaderboards/main/range?first=-1", "");
    // Requests that the served document (/openapi.json) rules out are refused.
    player.refused(422, "GET", &format!("/leaderboards/main/range?first={}", 1_u64 << 63), "");
    let long = format!(r#"{{"members":["{}"]}}"#, "x".repeat(257));
    player.refused(422, "POST", "/leaderboards/main/ranks", &long);
    player.refused(422, "POST", "/leaderboards/main/ranks", r#"{"members":[""]}"#);
    player.refused(422, "GET", "/leaderboards/main/around/m1?each_side=many", "");
    running.end().unwrap();
}

#[test]
fn a_bulk_is_applied_whole_and_tells_each_score_and_rank() {
    let running = start(options());
    let mut player = Player::of(&running);
    player.done("POST", "/leaderboards", r#"{"name":"week"}"#);
    let body = r#"{"leaderboards":[
        {"leaderboard":"main","scores":[
            {"member":"ann","score":"10","mode":"increment"},
            {"member":"bob","score":20,"mode":"replace"},
            {"member":"ann","score":"-1","mode":"increment"}]},
        {"leaderboard":"week","scores":[{"member":"\u0061nn","score":"5","mode":"best"}]}]}"#;
    let answer = player.ask("POST", "/bulk", body);
    assert_eq!(
        answer.body,
        concat!(
            r#"{"leaderboards":[{"leaderboard":"main","scores":[{"member":"ann","score":"10","rank":1},"#,
            r#"{"member":"bob","score":"20","rank":1},{"member":"ann","score":"9","rank":2}]},"#,
            r#"{"leaderboard":"week","scores":[{"member":"ann","score":"5","rank":1}]}]}"#,
        )
    );
    running.end().unwrap();
}

#[test]
fn a_wrong_item_of_a_bulk_is_named_and_nothing_is_applied() {
    let running = start(Options { bulk_max: 3, ..options() });
    let mut player = Player::of(&running);
    let good = r#"{"member":"ann","score":"1","mode":"increment"}"#;
    let with = |item: &str| {
        let part = |board: &str, items: String| format!(r#"{{"leaderboard":"{board}","scores":[{items}]}}"#);
        let parts = [part("main", good.to_owned()), part("main", format!("{good},{item}"))];
        format!(r#"{{"leaderboards":[{}]}}"#, parts.join(","))
    };
    for item in [
        r#"{"member":"bob","score":"x","mode":"increment"}"#,
        r#"{"member":"bob","score":"","mode":"increment"}"#,
        r#"{"member":"bob","score":1.5,"mode":"increment"}"#,
        r#"{"member":"bob","score":"1","mode":"add"}"#,
        r#"{"member":"bob","score":"1"}"#,
        r#"{"member":"bob","mode":"increment"}"#,
        r#"{"score":"1","mode":"increment"}"#,
        r#"{"member":"","score":"1","mode":"increment"}"#,
    ] {
        let problem = player.refused(422, "POST", "/bulk", &with(item));
        assert_eq!((&problem["leaderboard"], &problem["item"]), (&json!(1), &json!(1)), "{item}: {problem}");
    }
    let elsewhere = with(good).replacen("main", "nowhere", 2).replacen("nowhere", "main", 1);
    let problem = player.refused(404, "POST", "/bulk", &elsewhere);
    assert_eq!(problem["leaderboard"], 1);
    player.refused(422, "POST", "/bulk", r#"{"leaderboards":[{"leaderboard":"main"}]}"#);
    player.refused(422, "POST", "/bulk", r#"{"leaderboards":[],"more":1}"#);
    player.refused(400, "POST", "/bulk", r#"{"leaderboards":[}"#);
    player.refused(413, "POST", "/bulk", &with(&format!("{good},{good}")));
    assert_eq!(player.done("GET", "/leaderboards/main", "")["members"], 0);
    running.end().unwrap();
}

#[test]
fn what_is_wrong_with_a_request_decides_its_status() {
    let running = start(Options { body_max: 1000, ..options() });
    let mut player = Player::of(&running);
    player.refused(404, "GET", "/nothing", "");
    player.refused(404, "GET", "/leaderboards/main/members", "");
    let answer = player.ask("PUT", "/leaderboards", "");
    assert_eq!(answer.status, 405);
    assert!(answer.head.contains("Allow: GET, HEAD, POST\r\n"), "{}", answer.head);
    for body in ["{", "nonsense", r#"{"name":"half""#, r#"{"name":"a"} x"#] {
        player.refused(400, "POST", "/leaderboards", body);
    }
    for body in [r#"{"name":5}"#, r#"{"name":""}"#, r#"{"nom":"a"}"#, r#"{"ties":"never"}"#, "[]"] {
        player.refused(422, "POST", "/leaderboards", body);
    }
    assert_eq!(player.done("GET", "/leaderboards", "")["leaderboards"].as_array().unwrap().len(), 1);
    let untyped = request("POST", "/leaderboards", "{}").replace("application/json", "text/plain");
    assert_eq!(player.0.ask(&untyped).status, 415);
    let typed = request("POST", "/leaderboards", "{}").replace("/json", "/JSON; charset=utf-8");
    assert_eq!(player.0.ask(&typed).status, 201);
    let member = "/leaderboards/main/members/ann";
    for query in ["", "?score=", "?score=x", "?score=1.5", "?score=1e3", "?score=1&mode=add"] {
        player.refused(422, "PATCH", &format!("{member}{query}"), "");
    }
    player.refused(422, "PUT", &format!("{member}?score={}", "9".repeat(1001)), "");
    player.refused(422, "PUT", &format!("/leaderboards/main/members/{}?score=1", "x".repeat(257)), "");
    player.refused(404, "PUT", "/leaderboards/nowhere/members/ann?score=1", "");
    assert_eq!(player.done("GET", "/leaderboards/main", "")["members"], 0);
    let answer = player.ask("POST", "/bulk", &" ".repeat(1001));
    assert_eq!(answer.status, 413);
    assert!(player.0.is_at_the_end());
    let mut player = Player::of(&running);
    player.0.write(b"nonsense\r\n\r\n");
    assert_eq!(player.0.answer().status, 400);
    assert!(player.0.is_at_the_end());
    running.end().unwrap();
}

#[test]
fn health_metrics_and_the_document_are_served() {
    let running = start(options());
    let mut player = Player::of(&running);
    assert_eq!(player.done("GET", "/healthz", ""), json!({"status": "ok"}));
    player.0.write(request("HEAD", "/healthz", "").as_bytes());
    assert!(player.0.answer_head().contains("Content-Length: 15\r\n"));
    // A refusal has no body either, or it would be read as the next answer's head.
    player.0.write(request("HEAD", "/leaderboards/main/members/nobody", "").as_bytes());
    assert!(player.0.answer_head().contains(" 404 "));
    player.update("PATCH", "ann", "1");
    player.refused(404, "GET", "/leaderboards/main/members/bob", "");
    let metrics = player.ask("GET", "/metrics", "");
    assert!(metrics.head.contains("application/openmetrics-text"));
    for line in [
        "leaderboard_updates_total 1",
        "leaderboard_requests_total{method=\"PATCH\",path=\"/leaderboards/{board}/members/{member}\",\
         status=\"200\"} 1",
        "leaderboard_requests_total{method=\"GET\",path=\"/leaderboards/{board}/members/{member}\",\
         status=\"404\"} 2",
        "leaderboard_members{leaderboard=\"main\"} 1",
        "leaderboard_lock_waits_total{leaderboard=\"main\"} 0",
        "leaderboard_connections 1",
        "# EOF",
    ] {
        assert!(metrics.body.lines().any(|each| each == line), "{line} in {}", metrics.body);
    }
    let document = player.done("GET", "/openapi.json", "");
    assert_eq!(document["openapi"], "3.1.0");
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let target = path.replace("{board}", "main").replace("{member}", "ann");
            let mut player = Player::of(&running);
            let answer = player.0.ask(&request(&method.to_uppercase(), &target, ""));
            assert!(![405, 503].contains(&answer.status), "{method} {path}: {answer:?}");
            assert!(answer.status != 404 || answer.body.contains("called"), "{method} {path}: {answer:?}");
        }
    }
    running.end().unwrap();
}

#[test]
fn requests_are_answered_in_order_however_they_are_cut() {
    let running = start(options());
    let mut player = Player::of(&running);
    let increments = request("PATCH", "/leaderboards/main/members/ann?score=1", "").repeat(500);
    player.0.write(increments.as_bytes());
    for number in 1..=500 {
        let answer = player.0.answer();
        let score = format!("\"score\":\"{number}\"");
        assert!(answer.body.contains(&score), "{score} in {}", answer.body);
    }
    let bulk = r#"{"leaderboards":[{"leaderboard":"main","scores":[{"member":"ann","score":"1","mode":"increment"}]}]}"#;
    for byte in request("POST", "/bulk", bulk).bytes() {
        player.0.write(&[byte]);
    }
    assert!(player.0.answer().body.contains("\"score\":\"501\""));
    let last = get("/healthz").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    assert!(player.0.ask(&last).head.contains("Connection: close\r\n"));
    assert!(player.0.is_at_the_end());
    running.end().unwrap();
}

#[test]
fn increments_of_many_connections_add_up_exactly() {
    const CONNECTIONS: usize = 16;
    const EACH: usize = 200;
    for implementation in servers::leaderboard::Implementation::ALL {
        let running = start(Options { implementation, ..options() });
        let bulk = r#"{"leaderboards":[{"leaderboard":"main","scores":[
            {"member":"all","score":"1","mode":"increment"},{"member":"b","score":"2","mode":"increment"}]}]}"#;
        std::thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let mut player = Player::of(&running);
                    for number in 0..EACH {
                        match number % 4 {
                            0 => drop(player.done("POST", "/bulk", bulk)),
                            _ => drop(player.update("PATCH", "all", "3")),
                        }
                    }
                });
            }
        });
        let (bulks, singles) = (CONNECTIONS * EACH / 4, CONNECTIONS * EACH * 3 / 4);
        let mut player = Player::of(&running);
        assert_eq!(player.standing("all"), at((bulks + 3 * singles) as i64, 1), "{implementation}");
        assert_eq!(player.standing("b"), at(2 * bulks as i64, 2));
        running.end().unwrap();
    }
}

#[test]
fn connections_beyond_the_limit_are_told_to_come_back() {
    let running = start(Options { max_connections: 2, ..options() });
    let (mut one, mut two) = (Player::of(&running), Player::of(&running));
    one.done("GET", "/healthz", "");
    two.done("GET", "/healthz", "");
    let mut three = Player::of(&running);
    let answer = three.0.answer();
    assert_eq!(answer.status, 429);
    assert!(answer.head.contains("Retry-After: 1\r\n"), "{}", answer.head);
    assert!(three.0.is_at_the_end());
    drop((one, three));
    // The slots are freed when the server has noticed.
    let began = Instant::now();
    while Player::of(&running).ask("GET", "/healthz", "").status != 200 {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
    two.done("GET", "/healthz", "");
    running.end().unwrap();
}

#[test]
fn changes_beyond_the_limit_of_waiting_answers_are_told_to_come_back() {
    let running = start(Options { max_pending: 0, ..options() });
    let mut player = Player::of(&running);
    let answer = player.ask("PATCH", "/leaderboards/main/members/ann?score=1", "");
    assert_eq!(answer.status, 429);
    assert!(answer.head.contains("Retry-After: 1\r\n"), "{}", answer.head);
    assert_eq!(player.done("GET", "/leaderboards/main", "")["members"], 0);
    running.end().unwrap();
}

#[test]
fn the_end_completes_what_has_begun_and_refuses_what_comes() {
    let running = start(Options { grace: Duration::from_secs(10), ..options() });
    let (mut begun, mut idle) = (Player::of(&running), Player::of(&running));
    idle.done("GET", "/healthz", "");
    begun.done("GET", "/healthz", "");
    let request = request("PATCH", "/leaderboards/main/members/ann?score=1", "");
    begun.0.write(&request.as_bytes()[..20]);
    // The server has read it once it has answered another connection of both threads; this one will be read soon.
    std::thread::sleep(Duration::from_millis(50));
    let began = Instant::now();
    running.shutdown.trigger();
    let refused = loop {
        let answer = idle.ask("GET", "/healthz", "");
        if answer.head.contains("Connection: close\r\n") {
            break answer;
        }
    };
    assert!([200, 503].contains(&refused.status));
    assert!(std::net::TcpStream::connect(running.address).is_err());
    begun.0.write(&request.as_bytes()[20..]);
    let answer = begun.0.answer();
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("Connection: close\r\n"), "{}", answer.head);
    running.end().unwrap();
    assert!(began.elapsed() < Duration::from_secs(8), "the grace was not needed");
}

#[test]
fn options_out_of_range_are_refused() {
    let check = |options: Options, message: &str| {
        let error = servers::leaderboard_service::run(options, |_| ()).unwrap_err();
        assert_eq!(error.to_string(), message);
    };
    check(Options { threads: Some(0), ..options() }, "--threads 0 is out of range: 1 to 256");
    check(Options { bulk_max: 0, ..options() }, "--bulk-max 0 is out of range: 1 to 1000000");
    check(
        Options { board: String::new(), ..options() },
        "--board \"\" is out of range: a name has 1 to 256 bytes",
    );
}
