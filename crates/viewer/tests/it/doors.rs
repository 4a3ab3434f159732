//! Access control.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use viewer::{Gate, Ruling};

use crate::given::{self, Client, exchange};

const PORT: u16 = 42_068;

fn rule(method: &str, uri: &str, headers: &[(&str, &str)]) -> Ruling {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    let method: Method = method.parse().unwrap();
    Gate::new(PORT, "secret".to_owned()).rule(&method, &uri.parse::<Uri>().unwrap(), &map)
}

fn is_refused(ruling: Ruling) -> bool {
    matches!(ruling, Ruling::Refuse(StatusCode::FORBIDDEN, _))
}

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];
const PATHS: [&str; 4] = ["/secret", "/secret/", "/secret/api/runs/arena-1", "/secret/api/runs/arena-1/live"];

#[test]
fn hundreds_of_hostile_combinations_are_refused_although_they_carry_the_token() {
    let hosts = [
        "evil.example",
        "evil.example:42068",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:42069",
        "localhost",
        "localhost:42069",
        "localhost.evil.example:42068",
        "127.0.0.1.nip.io:42068",
        "0.0.0.0:42068",
        "127.0.0.2:42068",
        "[::]:42068",
        "localhost:42068.evil.example",
        "user@localhost:42068",
        "",
    ];
    let origins = [
        "http://evil.example",
        "https://127.0.0.1:42068",
        "http://127.0.0.1",
        "http://127.0.0.1:42069",
        "http://localhost:42068",
        "http://127.0.0.1:42068.evil.example",
        "null",
        "",
        "file://",
        "http://127.0.0.1:42068/",
        "http://user@127.0.0.1:42068",
    ];
    let sites = ["cross-site", "same-site", "nonsense", ""];
    let mut count = 0;
    for method in METHODS {
        for path in PATHS {
            let with = |more: &[(&str, &str)]| rule(method, path, more);
            for host in hosts {
                for more in
                    [&[][..], &[("origin", "http://127.0.0.1:42068"), ("sec-fetch-site", "same-origin")]]
                {
                    let ruling = with(&[&[("host", host)], more].concat());
                    assert!(is_refused(ruling), "{method} {path} host {host:?}: {ruling:?}");
                    count += 1;
                }
            }
            for origin in origins {
                let ruling = with(&[("host", "127.0.0.1:42068"), ("origin", origin)]);
                assert!(is_refused(ruling), "{method} {path} origin {origin:?}: {ruling:?}");
                count += 1;
            }
            for site in sites {
                let ruling = with(&[("host", "127.0.0.1:42068"), ("sec-fetch-site", site)]);
                assert!(is_refused(ruling), "{method} {path} site {site:?}: {ruling:?}");
                count += 1;
            }
            let twice = with(&[("host", "127.0.0.1:42068"), ("host", "evil.example")]);
            assert!(is_refused(twice), "{method} {path}: two hosts: {twice:?}");
            assert!(is_refused(with(&[])), "{method} {path}: no host");
            count += 2;
        }
    }
    assert!(count >= 200, "{count} combinations");
}

#[test]
fn our_own_page_is_answered_under_each_of_our_names() {
    for host in ["127.0.0.1:42068", "localhost:42068", "LOCALHOST:42068", "[::1]:42068"] {
        let origin = format!("http://{}", host.to_lowercase());
        for method in METHODS {
            let headers = [("host", host), ("origin", &origin), ("sec-fetch-site", "same-origin")];
            assert_eq!(rule(method, "/secret/api/runs", &headers), Ruling::Pass, "{method} {host}");
        }
    }
}

#[test]
fn a_change_must_say_that_it_comes_from_our_page_and_a_look_need_not() {
    let plain = [("host", "127.0.0.1:42068")];
    assert_eq!(rule("GET", "/secret/api/runs", &plain), Ruling::Pass);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        assert!(is_refused(rule(method, "/secret/api/runs/arena-1", &plain)), "{method}");
    }
    let typed = [("host", "127.0.0.1:42068"), ("sec-fetch-site", "none")];
    assert!(is_refused(rule("DELETE", "/secret/api/runs/arena-1", &typed)));
}

#[test]
fn a_link_from_elsewhere_may_open_the_page_but_not_ask_for_data() {
    let link = [
        ("host", "127.0.0.1:42068"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    assert_eq!(rule("GET", "/", &link), Ruling::AskForToken);
    assert_eq!(rule("GET", "/secret", &link), Ruling::Enter);
    assert_eq!(rule("GET", "/secret/", &link), Ruling::Pass);
    assert!(is_refused(rule("GET", "/secret/api/runs", &link)));
    assert!(is_refused(rule("POST", "/secret/", &link)));
    let mut frame = link;
    frame[3].1 = "iframe";
    assert!(is_refused(rule("GET", "/secret/", &frame)));
}

#[test]
fn only_the_whole_token_opens_and_only_as_the_first_segment_of_the_path() {
    let host = [("host", "127.0.0.1:42068")];
    for wrong in ["", "secre", "secret1", "Secret", "xxxxxx", "%73ecret", "secret%2f", "secret;"] {
        for behind in ["", "/", "/api/runs"] {
            let path = format!("/{wrong}{behind}");
            assert_eq!(rule("GET", &path, &host), Ruling::AskForToken, "{path}");
        }
    }
    for elsewhere in
        ["/?token=secret", "/api/runs?token=secret", "/api/secret/runs", "//secret/", "/./secret/"]
    {
        assert_eq!(rule("GET", elsewhere, &host), Ruling::AskForToken, "{elsewhere}");
    }
    // What a browser would send to every port of this host.
    let cookie = [("host", "127.0.0.1:42068"), ("cookie", "stepladder-42068=secret; token=secret")];
    assert_eq!(rule("GET", "/api/runs", &cookie), Ruling::AskForToken);
    assert_eq!(rule("GET", "/secret", &host), Ruling::Enter);
    assert_eq!(rule("GET", "/secret/api/runs", &host), Ruling::Pass);
}

#[test]
fn a_served_request_without_the_token_learns_nothing() {
    let (_given, run, viewer) = given::recorded("master", &[500.0], 3);
    let address = viewer.address();
    let mut answers = Vec::new();
    for path in [
        "/".to_owned(),
        format!("/report/{run}.html"),
        format!("/wrong/api/runs/{run}"),
        format!("/wrong/api/runs/{run}/live"),
        "/api/runs".to_owned(),
        "/api/ticks".to_owned(),
        "/nowhere".to_owned(),
        "/?token=wrong".to_owned(),
    ] {
        let answer = exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n"), b"");
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("connection"), Some("close"), "a stranger's connection is not kept");
        assert!(answer.header("content-security-policy").unwrap().contains("default-src 'self'"));
        answers.push(answer.text());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "what is there and what is not look alike: {answers:?}");
    let evil = exchange(address, "GET /api/runs HTTP/1.1\r\nHost: evil.example\r\n", b"");
    assert_eq!(evil.status, 403, "{evil:?}");
    let absolute = format!("GET http://evil.example/api/runs HTTP/1.1\r\nHost: {address}\r\n");
    assert_eq!(exchange(address, &absolute, b"").status, 403);
}

#[test]
fn no_answer_sets_a_cookie_or_lets_a_referrer_carry_the_address() {
    let (_given, run, viewer) = given::recorded("master", &[500.0], 3);
    let client = Client::of(&viewer);
    for path in ["", "/", "/api/runs", "/api/ticks", "/nowhere", &format!("/report/{run}.html")] {
        let answer = client.get(path);
        assert_eq!(answer.header("set-cookie"), None, "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        // If an answer repeated the address, anyone who saves the page would keep it.
        assert!(path.is_empty() || !answer.text().contains(&client.root[1..]), "{path}");
    }
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn an_address_without_its_last_slash_leads_to_the_page() {
    let given = given::store();
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    let entered = client.get("");
    // Its own path and not the whole address: it is reachable by other names too.
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, Some(format!("{}/", client.root).as_str()))
    );
}

#[test]
fn the_address_for_the_desktop_is_good_once() {
    let given = given::store();
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    let url = viewer.url_once().unwrap();
    assert!(!url.contains(&client.root[1..]), "the command line of a browser does not hold the token");
    let ask = |method: &str| {
        let path = &url[url.find("/?").unwrap()..];
        exchange(client.address, &format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", client.address), b"")
    };
    // A refused request does not use it up.
    assert_eq!(ask("POST").status, 403);
    let entered = ask("GET");
    assert_eq!((entered.status, entered.header("set-cookie")), (303, None));
    assert_eq!(entered.header("location"), Some(format!("{}/", client.root).as_str()));
    assert_eq!(ask("GET").status, 401);
}

#[test]
fn nothing_but_loopback_is_listened_on() {
    let given = given::store();
    for address in ["0.0.0.0:0", "192.0.2.1:42068", "[::]:0"] {
        let options = viewer::Options {
            store: given.path.clone(),
            listen: address.parse().unwrap(),
            ticks: Vec::new(),
        };
        let refused = viewer::serve(&options, std::sync::Arc::new(given::ByRules)).unwrap_err().to_string();
        assert!(refused.contains("not loopback") && refused.contains("TLS"), "{refused}");
    }
}

#[test]
fn a_port_that_is_taken_is_passed_over() {
    let given = given::store();
    let first = given::serve(&given, Vec::new());
    let options = viewer::Options { store: given.path.clone(), listen: first.address(), ticks: Vec::new() };
    let second = viewer::serve(&options, std::sync::Arc::new(given::ByRules)).unwrap();
    assert_ne!(first.address(), second.address());
    assert_eq!(Client::of(&second).get("/api/runs").status, 200);
    // The token of one is useless for the other.
    let swapped = Client { address: second.address(), root: Client::of(&first).root };
    assert_eq!(swapped.get("/api/runs").status, 401);
}

#[test]
fn files_that_nobody_named_cannot_be_read() {
    let given = given::store();
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    for path in [
        "/../Cargo.toml",
        "/..%2f..%2fetc/passwd",
        "/report/../../etc/passwd",
        "/report/%2fetc%2fpasswd",
        "/report/..%2f..%2fetc%2fpasswd.html",
        "/api/ticks/etc/passwd",
        "/api/runs/..%2f..%2fetc/trials/0",
        "/stepladder.db",
        "//etc/passwd",
    ] {
        let answer = client.get(path);
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
        assert!(!answer.text().contains("root:"), "{path}");
    }
    // The name is only used in the answer and never opened.
    let named = client.send("POST", "/api/ticks?name=/etc/passwd", b"{}\n");
    assert_eq!(named.status, 422, "{named:?}");
}
