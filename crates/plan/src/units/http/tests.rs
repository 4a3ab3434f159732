use proptest::prelude::*;

use super::*;

/// The value, or why it is none.
#[track_caller]
fn check<T: fmt::Debug + PartialEq, E: ToString>(read: Result<T, E>, expected: Result<T, &str>) {
    assert_eq!(read.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
}

#[test]
fn methods_and_paths_are_what_fits_into_a_request_line() {
    check(method("get"), Ok("GET".into()));
    check(method(" OPTIONS "), Ok("OPTIONS".into()));
    let why = "is not a method that asks for something; GET, POST, PUT, PATCH, DELETE, HEAD and the like are";
    for text in ["", "GET /", "CONNECT", "GÉT", "connect"] {
        check(method(text), Err(&format!("\"{text}\" {why}")));
    }
    check(path("/todos/{id}?page=1&x=%20"), Ok("/todos/{id}?page=1&x=%20".into()));
    for text in ["/a b", "/é"] {
        check(path(text), Ok(text.to_owned()));
    }
    for text in ["", "todos", "/a\r\nX: y", "/a#top"] {
        assert!(path(text).is_err(), "{text}");
    }
}

#[test]
fn headers_keep_to_their_line_and_secrets_stay_in_the_environment() {
    check(header("Accept: a/b; q=1"), Ok(("Accept".into(), "a/b; q=1".into())));
    check(header("X-Empty:"), Ok(("X-Empty".into(), String::new())));
    check(header("X-Time: 12:30"), Ok(("X-Time".into(), "12:30".into())));
    check(
        header("Authorization: Bearer ${API_TOKEN}"),
        Ok(("Authorization".into(), "Bearer ${API_TOKEN}".into())),
    );
    check(header("no colon"), Err("a header is written as Name: value"));
    check(header(": x"), Err("a header is written as Name: value"));
    check(header("a b: x"), Err("\"a b\" is not the name of a header"));
    check(header("X: a\r\nY: b"), Err("the value of X holds a line end or another control character"));
    check(header("content-length: 5"), Err("content-length follows from the body; leave it out"));
    check(
        header("Connection: close"),
        Err("Connection follows from whether connections are kept (keep_alive); leave it out"),
    );
    let why = "stands for an environment variable: letters, digits and _, and a brace at its end";
    for text in ["X: ${A-B}", "X: ${", "X: ${}", "X: ${1A}", "X: ${OK} ${"] {
        check(header(text), Err(&format!("${{NAME}} in X {why}")));
    }
}

#[test]
fn a_secret_is_refused_without_being_repeated() {
    for name in ["Authorization", "authorization", "Proxy-Authorization", "Cookie", "X-API-Key"] {
        let error = header(&format!("{name}: hunter2")).expect_err(name);
        assert_eq!(
            error.to_string(),
            format!(
                "{name} holds a secret, and plans are stored and printed; put it into an environment variable and write \
                 '{name}: ${{NAME}}' here"
            )
        );
        assert!(!format!("{error:?}").contains("hunter2"));
    }
    assert!(!format!("{:?}", header("X: hunter2\r\nY: z")).contains("hunter2"));
}

#[test]
fn the_environment_fills_in_header_values() {
    let value_of = |name: &str| (name == "A").then(|| "1".to_owned());
    check(with_environment("x${A}y${A}", value_of), Ok("x1y1".into()));
    check(with_environment("no ${ names", value_of), Ok("no ${ names".into()));
    check(with_environment("${A} ${B}", value_of), Err("B"));
    check(environment_names("X", "${A}-${B_2}"), Ok(vec!["A", "B_2"]));
}

#[test]
fn statuses_lengths_and_counts_are_ranges_or_one_value() {
    check(status("200"), Ok((200, 200)));
    check(status(" 200 .. 299 "), Ok((200, 299)));
    for text in ["", "2xx", "99", "600", "299..200", "200..", "200-299"] {
        let why = "is not a status or a range of them: 100 to 599, such as 200 or 200..299";
        check(status(text), Err(&format!("\"{text}\" {why}")));
    }
    check(body_range("1..100"), Ok((1, 100)));
    check(body_range("0"), Ok((0, 0)));
    check(body_range("9..1"), Err("the range 9..1 is empty; write the smaller end first"));
    let counted = |first, last, is_open| Ok(Counts { first, last, is_open });
    check(counts("5"), counted(5, 5, false));
    check(counts("1..20"), counted(1, 20, false));
    check(counts("3.."), counted(3, 3, true));
    check(counts("20..1"), Err("the range 20..1 is empty; write the smaller end first"));
    check(counts("1.5"), Err("\"1.5\" is not a whole number"));
    check(counts("0..5"), Err("must be between 1 and 10000000, got 0"));
    check(counts("1..1000"), counted(1, 1000, false));
    check(counts("1..1001"), Err("1001 rungs are more than anybody climbs; at most 1000 of them"));
}

#[test]
fn a_rate_may_be_a_fraction() {
    check(rate("1000"), Ok(1000.0));
    check(rate("0.5/s"), Ok(0.5));
    check(rate("0"), Err("\"0\" is zero: a rung without load measures nothing"));
    check(rate("-1"), Err("\"-1\" is negative"));
    check(rate("fast"), Err("\"fast\" is not a number"));
}

#[test]
fn bytes_have_units_of_both_kinds() {
    check(bytes("4096"), Ok(4096));
    check(bytes("64KiB"), Ok(65_536));
    check(bytes("1.5 MB"), Ok(1_500_000));
    check(bytes("2GiB"), Ok(2 << 30));
    check(bytes("0"), Err("must be between 1 and 1024GiB, got 0"));
    check(bytes("1TB"), Err("\"1TB\" has an unknown unit \"TB\"; known: B, kB, MB, GB, KiB, MiB, GiB"));
}

#[test]
fn pointers_follow_rfc_6901() {
    for text in ["", "/", "/items/0/id", "/a~1b/c~0d", "/ü"] {
        check(pointer(text), Ok(text.into()));
    }
    for text in ["items", "/a~2", "/a~"] {
        assert!(pointer(text).is_err(), "{text}");
    }
}

#[test]
fn only_names_in_braces_are_variables() {
    let names = |text| braced(text).collect::<Vec<_>>();
    assert_eq!(names("/todos/{id}?by={user-2}"), [("id", false), ("user-2", false)]);
    assert_eq!(names(r#"{"id":{id},"o":{}}"#), [("id", false)]);
    assert_eq!(names("${A} {b} { c } {1}"), [("A", true), ("b", false)]);
    assert_eq!(names("{"), []);
}

proptest! {
    #[test]
    fn no_text_makes_the_readers_panic(text in "[0-9a-z.${}:/~ ]{0,20}|.{0,20}") {
        let _ = (method(&text), path(&text), header(&text), status(&text), bytes(&text), body_range(&text));
        let _ = (pointer(&text), counts(&text), rate(&text), braced(&text).count());
        let _ = with_environment(&text, |_| Some(String::new()));
    }

    #[test]
    fn a_header_that_is_taken_stays_on_its_line(text in ".{0,40}", value in "[ -~]{0,20}[\r\n\t]?[ -~]{0,9}") {
        for text in [text, format!("X: {value}")] {
            if let Ok((name, value)) = header(&text) {
                let whole = name + ":" + &value;
                prop_assert!(!whole.starts_with(':') && !whole.contains(['\r', '\n', '\0']));
            }
        }
    }
}
