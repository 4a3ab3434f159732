use super::*;

fn answer(status: u16, body: &[u8]) -> Answer<'_> {
    Answer { tag: 0, status, body, body_bytes: body.len() as u64, location: None, closes: false, grpc: None }
}

#[test]
fn only_known_names_in_braces_are_replaced() {
    let variable = |name: &str| Variable { name: name.to_owned(), law: VariableLaw::Counter };
    let variables = [variable("id"), variable("user")];
    let values = ["7".to_owned(), "ann".to_owned()];
    for (text, expected) in [
        ("/todos", "/todos"),
        ("/todos/{id}?by={user}", "/todos/7?by=ann"),
        (r#"{"id":{id},"o":{"by":"{user}"}}"#, r#"{"id":7,"o":{"by":"ann"}}"#),
        ("{unknown}{", "{unknown}{"),
    ] {
        assert_eq!(filled(text, &variables, &values), expected);
    }
}

fn asked(check: HttpCheck) -> HttpRequest {
    HttpRequest {
        name: String::new(),
        weight: 1.0,
        method: "GET".to_owned(),
        path: "/todos".to_owned(),
        headers: Vec::new(),
        body: String::new(),
        check,
        capture: Vec::new(),
    }
}

fn texts_of(names: &[&str]) -> Texts {
    let law = || VariableLaw::Captured(String::new());
    let variable = |name: &&str| Variable { name: (*name).to_owned(), law: law() };
    let variables = names.iter().map(variable).collect();
    Texts {
        variables,
        counter: 0,
        counter_step: 1,
        random: fastrand::Rng::with_seed(1),
        may_lack_captures: false,
    }
}

fn no_variables() -> Texts {
    texts_of(&[])
}

#[test]
fn captured_texts_are_kept_by_the_indices_of_their_variables() {
    let texts = Texts { may_lack_captures: true, ..texts_of(&["first", "second", "third"]) };
    let capture = [("third", "/id"), ("unknown", "/id"), ("first", "/user"), ("second", "/none")];
    let capture = capture.map(|(name, pointer)| (name.to_owned(), pointer.to_owned())).to_vec();
    let request = HttpRequest { capture, ..asked(HttpCheck::default()) };
    let mut captured = CapturedVars::new();
    let mut hear = |body: &str| {
        let found = check(&request, &texts, &answer(200, body.as_bytes())).unwrap();
        texts.keep(found, &mut captured);
        captured.clone()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(hear("<html>"), []);
    assert_eq!(hear(r#"{"id":7,"user":"ann"}"#), [some("ann"), None, some("7")]);
    assert_eq!(hear(r#"{"id":[1,"b"],"user":"a\r\nX: 1"}"#), [some("ann"), None, some("[1,\"b\"]")]);
    assert_eq!(hear(r#"{"user":"bob"}"#), [some("bob"), None, some("[1,\"b\"]")]);
    // A blank is encoded in a path, but allowed in a header.
    assert_eq!(hear(r#"{"user":"bob o"}"#), [some("bob o"), None, some("[1,\"b\"]")]);
}

#[test]
fn an_answer_without_what_is_captured_is_wrong_unless_that_is_allowed_or_it_is_an_expected_refusal() {
    let capture = vec![("id".to_owned(), "/id".to_owned())];
    let status = vec![(200, 299), (404, 404)];
    let request = HttpRequest { capture, ..asked(HttpCheck { status, ..HttpCheck::default() }) };
    const NO_JSON: &str = "GET /todos: capture id: the body is not JSON: ";
    const NOTHING: &str = "GET /todos: capture id: nothing at /id in ";
    for (status, body, wrong) in [
        (200, r#"{"id":null}"#, None),
        (200, "<html>", Some(NO_JSON)),
        (200, "", Some(NO_JSON)),
        (204, "", Some(NO_JSON)),
        (200, r#"{"id":1"#, Some(NO_JSON)),
        (200, "{}", Some(NOTHING)),
        (200, r#"{"ID":1}"#, Some(NOTHING)),
        (404, "<html>", None),
        (404, "{}", None),
    ] {
        let answer = answer(status, body.as_bytes());
        let mut texts = texts_of(&["id"]);
        let found = check(&request, &texts, &answer).map_err(|found| (found.cause(), found.to_string()));
        match (wrong, found) {
            (None, Ok(_)) => {}
            (Some(wrong), Err((errors::WRONG_JSON, text))) => assert!(text.starts_with(wrong), "{text}"),
            (_, found) => panic!("{status} {body}: {found:?}"),
        }
        texts.may_lack_captures = true;
        assert!(check(&request, &texts, &answer).is_ok(), "{status} {body}");
    }
}

#[test]
fn a_captured_text_has_a_longest_length() {
    let texts = texts_of(&["id"]);
    let capture = vec![("id".to_owned(), "/id".to_owned())];
    let request = HttpRequest { capture, ..asked(HttpCheck::default()) };
    let outcome = |length: usize| {
        let body = format!(r#"{{"id":"{}"}}"#, "x".repeat(length));
        let answer = answer(200, body.as_bytes());
        let found = check(&request, &texts, &answer).map(|found| found[0].1.len());
        found.map_err(|wrong| (wrong.cause(), wrong.to_string()))
    };
    let words = "GET /todos: /id is captured and longer than 8 KiB".to_owned();
    assert_eq!(outcome(CAPTURED_BYTES_MAX), Ok(CAPTURED_BYTES_MAX));
    assert_eq!(outcome(CAPTURED_BYTES_MAX + 1), Err((errors::WRONG_JSON, words.clone())));
    assert_eq!(outcome(4_000_000), Err((errors::WRONG_JSON, words)));
}

#[test]
fn a_value_too_large_to_be_the_wanted_one_is_not_equal() {
    let json = vec![("/a".to_owned(), Some(Value::from(1))), ("/b".to_owned(), None)];
    let request = asked(HttpCheck { json, ..HttpCheck::default() });
    let body = format!(r#"{{"b":[{0}0],"a":[{0}0]}}"#, "0,".repeat(100_000));
    let answer = answer(200, body.as_bytes());
    let wrong = check(&request, &no_variables(), &answer).unwrap_err();
    assert_eq!(wrong.to_string(), "GET /todos: /a is a very large value, not 1");
}

#[test]
fn the_braces_of_json_are_no_variable() {
    let variables = [Variable { name: "id".to_owned(), law: VariableLaw::Counter }];
    let asks = |path: &str, body: &str| {
        let (path, body) = (path.to_owned(), body.to_owned());
        let request = HttpRequest { path, body, ..asked(HttpCheck::default()) };
        has_variables(&request, &variables)
    };
    assert!(!asks("/todos", r#"{"done":{"by":"x"}}"#));
    assert!(asks("/todos/{id}", ""));
    assert!(asks("/todos", r#"{"id":{id}}"#));
}

#[test]
fn what_is_wrong_has_a_cause_and_words() {
    let json = HttpCheck { json: vec![("/ok".to_owned(), None)], ..HttpCheck::default() };
    for (status, body, cause, words) in [
        (404, &b"{}"[..], errors::STATUS_4XX, "GET /todos: status 404"),
        (200, b"<", errors::WRONG_JSON, "GET /todos: expected value at line 1 column 1 in \"<\""),
        (200, b"{}", errors::WRONG_JSON, "GET /todos: nothing at /ok in \"{}\""),
    ] {
        let request = asked(json.clone());
        let answer = answer(status, body);
        let wrong = check(&request, &no_variables(), &answer).unwrap_err();
        assert_eq!((wrong.cause(), wrong.to_string().as_str()), (cause, words));
    }
}

#[test]
fn a_body_is_held_against_each_check() {
    let body = br#"{"ok":true,"items":[{"id":3}]}"#;
    let json = |pointer: &str, value: Option<Value>| HttpCheck {
        json: vec![(pointer.to_owned(), value)],
        ..HttpCheck::default()
    };
    let contains = |text: &str| HttpCheck { contains: Some(text.to_owned()), ..HttpCheck::default() };
    let bytes = |least, most| HttpCheck { body_bytes: Some((least, most)), ..HttpCheck::default() };
    for (wanted, wrong) in [
        (HttpCheck::default(), None),
        (json("/ok", Some(Value::Bool(true))), None),
        (json("/items/0/id", Some(3.into())), None),
        (json("/items/0", None), None),
        (contains("items"), None),
        (bytes(30, 30), None),
        (json("/ok", Some(Value::Bool(false))), Some("/ok is true, not false")),
        (json("/items/1", None), Some(r#"nothing at /items/1 in "{\"ok\":true,\"items\":[{\"id\":3}]}""#)),
        (
            contains("{\"ok\":false"),
            Some(r#""{"ok":false" is not in "{\"ok\":true,\"items\":[{\"id\":3}]}""#),
        ),
        (bytes(0, 29), Some("a body of 30 bytes, not 0 to 29")),
    ] {
        let request = asked(wanted);
        let answer = answer(200, body);
        let found = check(&request, &no_variables(), &answer).err().map(|wrong| wrong.to_string());
        let wrong = wrong.map(|wrong| format!("GET /todos: {wrong}"));
        assert_eq!(found, wrong, "{:?}", request.check);
    }
}
