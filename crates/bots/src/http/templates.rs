//! What is asked and what a right answer is: the plan's requests, prepared once where nothing in them changes.
//!
//! A request with variables is rendered and prepared anew each time, which allocates; one without is not touched again.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use drivers::http::{Answer, Http, Parts};
use drivers::messages::Envelope;
use plan::{HttpBots, HttpCheck, HttpRequest, Variable, VariableLaw, WorkerPlan};
use serde_json::Value;

use super::errors;
use super::pointed::{self, Found, Sought};

/// A captured text may be so long. It goes into every later request of its connection, so a longer one is an error.
const CAPTURED_BYTES_MAX: usize = 8 * 1024;

/// So much of a wrong value is shown.
const SHOWN_CHARACTERS_MAX: usize = 200;

/// The requests of one worker.
pub struct RequestTemplates<P> {
    templates: Vec<RequestTemplate<P>>,
    shares: Shares,
    texts: Texts,
    /// from the last right answer
    captured: CapturedTexts,
    context: RequestContext,
}

/// What the variables of a plan stand for.
pub struct Texts {
    /// those of the plan
    pub variables: Vec<Variable>,
    counter: u64,
    counter_step: u64,
    /// draws them, and which request is next
    pub random: fastrand::Rng,
}

struct RequestTemplate<P> {
    request: HttpRequest,
    /// where nothing changes
    prepared: Option<P>,
    keeps_body: bool,
}

/// What all requests of a plan have in common.
pub struct RequestContext {
    scheme: &'static str,
    authority: String,
    keep_alive: bool,
    body_bytes_max: u64,
    /// of protobuf messages over WebSocket
    pub envelope: Option<Arc<Envelope>>,
}

/// Chooses among operations by their weights.
pub struct Shares {
    /// upper ends of the shares of [0, 1)
    ends: Vec<f64>,
}

/// What a connection has captured from answers, by the index of the variable; empty until there is something.
pub type CapturedVars = Vec<Option<String>>;

/// What one answer has for variables, by their indices.
pub type CapturedTexts = Vec<(usize, String)>;

/// A request ready to be sent.
pub enum Ready<'a, P> {
    /// the same every time
    Prepared(&'a P),
    /// made for this once
    Rendered(P),
}

impl<P> AsRef<P> for Ready<'_, P> {
    fn as_ref(&self) -> &P {
        match self {
            Ready::Prepared(prepared) => prepared,
            Ready::Rendered(rendered) => rendered,
        }
    }
}

impl<P: Clone + std::fmt::Debug + 'static> RequestTemplates<P> {
    /// The requests of the plan, or the one of them that its cell asks for.
    pub fn of<D: Http<Prepared = P>>(plan: &WorkerPlan, http: &HttpBots) -> RequestTemplates<P> {
        let context = RequestContext::of(plan, http);
        let templates = http
            .requests
            .iter()
            .map(|request| {
                let keeps_body = request.check.reads_body() || !request.capture.is_empty();
                let prepared = (!has_variables(request, &http.variables)).then(|| {
                    let HttpRequest { method, path, headers, body, .. } = request;
                    context.prepare::<D>(method, path, headers, body.as_bytes(), keeps_body)
                });
                RequestTemplate { request: request.clone(), prepared, keeps_body }
            })
            .collect();
        RequestTemplates {
            templates,
            shares: Shares::of_requests(plan, http),
            texts: Texts::of(plan, http),
            captured: Vec::new(),
            context,
        }
    }

    /// Chooses the next request by weight.
    pub fn choose_by_weight(&mut self) -> usize {
        self.shares.choose(&mut self.texts.random)
    }

    /// The request in the form in which it is sent.
    pub fn render_or_reuse<D: Http<Prepared = P>>(
        &mut self,
        index: usize,
        captured: &CapturedVars,
    ) -> Ready<'_, P> {
        let template = &self.templates[index];
        match &template.prepared {
            Some(prepared) => Ready::Prepared(prepared),
            None => Ready::Rendered(template.render::<D>(&self.context, &mut self.texts, captured, None)),
        }
    }

    /// A GET where a redirect of this request points.
    pub fn render_elsewhere<D: Http<Prepared = P>>(
        &mut self,
        index: usize,
        captured: &CapturedVars,
        path: &str,
    ) -> P {
        self.templates[index].render::<D>(&self.context, &mut self.texts, captured, Some(path))
    }

    /// What a request wants to know of its answer, if that is right. Errors: what is wrong with it, in no words yet.
    pub fn check_response<'a>(
        &'a self,
        index: usize,
        answer: &'a Answer<'_>,
    ) -> Result<CapturedTexts, Wrong<'a>> {
        check(&self.templates[index].request, &self.texts, answer)
    }

    /// Remembers what the last right answer has for variables, until it is known whose they are.
    pub fn set_captured(&mut self, texts: CapturedTexts) {
        self.captured = texts;
    }

    /// The variables are those of the connection that the last right answer came on.
    pub fn keep_captured(&mut self, captured: &mut CapturedVars) {
        self.texts.keep(std::mem::take(&mut self.captured), captured);
    }
}

impl<P> RequestTemplate<P> {
    /// A GET of `elsewhere`, where a redirect points, else the request itself.
    fn render<D: Http<Prepared = P>>(
        &self,
        context: &RequestContext,
        texts: &mut Texts,
        captured: &CapturedVars,
        elsewhere: Option<&str>,
    ) -> P {
        let values = texts.draw(captured);
        let HttpRequest { method, path, headers, body, .. } = &self.request;
        let headers = texts.filled(headers, &values);
        match elsewhere {
            Some(path) => context.prepare::<D>("GET", path, &headers, b"", self.keeps_body),
            None => {
                let (path, body) = (texts.fill(path, &values), texts.fill(body, &values));
                context.prepare::<D>(method, &path, &headers, body.as_bytes(), self.keeps_body)
            }
        }
    }
}

impl Texts {
    /// Those of one worker.
    pub fn of(plan: &WorkerPlan, http: &HttpBots) -> Texts {
        Texts {
            variables: http.variables.clone(),
            counter: plan.worker as u64 + 1,
            counter_step: plan.workers as u64,
            random: fastrand::Rng::with_seed(plan.seed ^ 0x7265_6369_7065_7300),
        }
    }

    /// A text for each variable, for one request.
    pub fn draw(&mut self, captured: &CapturedVars) -> Vec<String> {
        (0..self.variables.len()).map(|at| self.value(at, captured)).collect()
    }

    /// Headers with their values filled in.
    pub fn filled(&self, headers: &[(String, String)], values: &[String]) -> Vec<(String, String)> {
        headers.iter().map(|(name, value)| (name.clone(), self.fill(value, values))).collect()
    }

    /// A text with each `{name}` replaced by the drawn one.
    pub fn fill(&self, text: &str, values: &[String]) -> String {
        filled(text, &self.variables, values).into_owned()
    }

    fn value(&mut self, at: usize, captured: &CapturedVars) -> String {
        match &self.variables[at].law {
            VariableLaw::Whole(from, to) => self.random.i64(*from..=*to).to_string(),
            VariableLaw::OneOf(words) => words[self.random.usize(..words.len())].clone(),
            VariableLaw::Counter => {
                let value = self.counter.to_string();
                self.counter += self.counter_step;
                value
            }
            VariableLaw::Captured(before) => {
                captured.get(at).and_then(Option::as_ref).unwrap_or(before).clone()
            }
        }
    }

    /// The texts for variables by what stands at their pointers. Errors: `CapturedTooLong`.
    pub fn capture<'a>(
        &self,
        capture: &'a [(String, String)],
        values: impl IntoIterator<Item = Found>,
    ) -> Result<CapturedTexts, Why<'a>> {
        let mut texts = Vec::new();
        for ((name, pointer), found) in capture.iter().zip(values) {
            let text = match found {
                Found::Nothing | Found::Something => continue,
                Found::TooLarge => return Err(Why::CapturedTooLong(pointer)),
                Found::Value(Value::String(text)) => text,
                Found::Value(other) => other.to_string(),
            };
            if text.len() > CAPTURED_BYTES_MAX {
                return Err(Why::CapturedTooLong(pointer));
            }
            // It goes into headers as it is; with a line's end a server could write requests of its own.
            let is_harmless = !text.chars().any(char::is_control);
            let variable = self.variables.iter().position(|variable| variable.name == *name);
            texts.extend(variable.filter(|_| is_harmless).map(|at| (at, text)));
        }
        Ok(texts)
    }

    /// From now on the variables stand for these texts.
    pub fn keep(&self, texts: CapturedTexts, captured: &mut CapturedVars) {
        for (at, text) in texts {
            captured.resize(self.variables.len(), None);
            captured[at] = Some(text);
        }
    }
}

impl RequestContext {
    /// Of a plan's target and transport.
    pub fn of(plan: &WorkerPlan, http: &HttpBots) -> RequestContext {
        RequestContext {
            scheme: if plan.target.scheme.is_tls() { "https" } else { "http" },
            authority: plan.target.authority(),
            keep_alive: http.keep_alive,
            body_bytes_max: http.body_bytes_max,
            envelope: None,
        }
    }

    /// A request in the form in which it is sent; `path` with its variables filled in, as it was written.
    pub fn prepare<D: Http>(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
        keeps_body: bool,
    ) -> D::Prepared {
        D::prepare(&Parts {
            method,
            scheme: self.scheme,
            authority: &self.authority,
            path: &plan::percent::encoded(path),
            headers,
            body,
            keep_alive: self.keep_alive,
            keeps_body,
            body_bytes_max: self.body_bytes_max,
            envelope: self.envelope.as_ref(),
        })
    }
}

impl Shares {
    /// Of the plan's requests, or of the one that its cell asks for.
    pub fn of_requests(plan: &WorkerPlan, http: &HttpBots) -> Shares {
        let weight = |(index, request): (usize, &HttpRequest)| {
            if plan.request.is_none_or(|only| only == index) { request.weight } else { 0.0 }
        };
        Shares::of(http.requests.iter().enumerate().map(weight).collect())
    }

    /// `weights`: at least one, not all 0.
    pub fn of(weights: Vec<f64>) -> Shares {
        let sum: f64 = weights.iter().sum();
        let end = |end: &mut f64, weight: f64| {
            *end += weight / sum;
            Some(*end)
        };
        Shares { ends: weights.into_iter().scan(0.0, end).collect() }
    }

    /// The index of one of them.
    pub fn choose(&self, random: &mut fastrand::Rng) -> usize {
        let last = self.ends.len() - 1;
        if last == 0 {
            return 0;
        }
        let at = random.f64();
        // Rounding may leave the last share's end a little below 1; a weight of zero is never chosen.
        let chosen = self.ends.iter().position(|end| at < *end);
        chosen.unwrap_or_else(|| self.ends.iter().position(|end| *end == self.ends[last]).unwrap_or(last))
    }
}

/// An answer that is not right. Formatted only when the text is kept: a server that fails does so thousands of times
/// per second.
#[derive(Debug)]
pub struct Wrong<'a> {
    request: &'a HttpRequest,
    answer: &'a Answer<'a>,
    why: Why<'a>,
}

/// What about it.
#[derive(Debug)]
pub enum Why<'a> {
    /// another status than asked for
    Status,
    /// the length is not within these, both included
    Length(u64, u64),
    /// a text that is not there
    Missing(&'a str),
    /// no JSON, where pointers are to be followed
    NotJson(serde_json::Error),
    /// a pointer that leads nowhere
    NothingAt(&'a str),
    /// what stands there, and what should
    NotEqual(&'a str, Value, &'a Value),
    /// what stands there is too large to be what should
    TooLarge(&'a str, &'a Value),
    /// what stands there is captured, and longer than that may be
    CapturedTooLong(&'a str),
}

impl Wrong<'_> {
    /// The index of the cause.
    pub fn cause(&self) -> usize {
        match self.why {
            Why::Status => errors::of_status(self.answer.status),
            Why::Length(..) | Why::Missing(_) => errors::WRONG_BODY,
            Why::NotJson(_)
            | Why::NothingAt(_)
            | Why::NotEqual(..)
            | Why::TooLarge(..)
            | Why::CapturedTooLong(_) => errors::WRONG_JSON,
        }
    }
}

impl fmt::Display for Wrong<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}: ", self.request.method, self.request.path)?;
        let Answer { status, body, body_bytes, .. } = self.answer;
        match &self.why {
            Why::Status => write!(out, "status {status}"),
            why => out.write_str(&why.worded(&errors::shown(body), *body_bytes)),
        }
    }
}

impl Why<'_> {
    /// In words, of a body that is shown so and so long. What its status is says enough of a wrong one.
    pub fn worded(&self, shown: &str, body_bytes: u64) -> String {
        match self {
            Why::Status => String::new(),
            Why::Length(least, most) => format!("a body of {body_bytes} bytes, not {least} to {most}"),
            Why::Missing(text) => format!("\"{text}\" is not in \"{shown}\""),
            Why::NotJson(error) => format!("{error} in \"{shown}\""),
            Why::NothingAt(pointer) => format!("nothing at {pointer} in \"{shown}\""),
            Why::NotEqual(pointer, found, wanted) => format!("{pointer} is {}, not {wanted}", cut(found)),
            Why::TooLarge(pointer, wanted) => format!("{pointer} is a very large value, not {wanted}"),
            Why::CapturedTooLong(pointer) => {
                format!("{pointer} is captured and longer than {} KiB", CAPTURED_BYTES_MAX / 1024)
            }
        }
    }
}

/// The beginning of a value, which may be a large one.
fn cut(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn check<'a>(
    request: &'a HttpRequest,
    texts: &Texts,
    answer: &'a Answer<'_>,
) -> Result<CapturedTexts, Wrong<'a>> {
    let outcome = if request.check.allows(answer.status) {
        check_body(request, texts, answer)
    } else {
        Err(Why::Status)
    };
    outcome.map_err(|why| Wrong { request, answer, why })
}

fn check_body<'a>(
    request: &'a HttpRequest,
    texts: &Texts,
    answer: &Answer<'_>,
) -> Result<CapturedTexts, Why<'a>> {
    let HttpRequest { check, capture, .. } = request;
    check_bytes(check, answer.body, answer.body_bytes)?;
    if check.json.is_empty() && capture.is_empty() {
        return Ok(Vec::new());
    }
    let checked = check.json.iter().map(|(pointer, wanted)| Sought { pointer, keeps: wanted.is_some() });
    let captured = capture.iter().map(|(_, pointer)| Sought { pointer, keeps: true });
    let mut found = match pointed::find(answer.body, &checked.chain(captured).collect::<Vec<_>>()) {
        Ok(found) => found.into_iter(),
        // Nothing can be captured of an answer that need not be JSON.
        Err(_) if check.json.is_empty() => return Ok(Vec::new()),
        Err(error) => return Err(Why::NotJson(error)),
    };
    for ((pointer, wanted), found) in check.json.iter().zip(found.by_ref()) {
        match (found, wanted) {
            (Found::Nothing, _) => return Err(Why::NothingAt(pointer)),
            (Found::Value(found), Some(wanted)) if found != *wanted => {
                return Err(Why::NotEqual(pointer, found, wanted));
            }
            (Found::TooLarge, Some(wanted)) => return Err(Why::TooLarge(pointer, wanted)),
            (Found::Something | Found::Value(_) | Found::TooLarge, _) => {}
        }
    }
    texts.capture(capture, found)
}

/// What a check says of a body as bytes. Errors: `Length`, `Missing`.
pub fn check_bytes<'a>(check: &'a HttpCheck, text: &[u8], length: u64) -> Result<(), Why<'a>> {
    if let Some((least, most)) = check.body_bytes
        && !(least..=most).contains(&length)
    {
        return Err(Why::Length(least, most));
    }
    match &check.contains {
        Some(wanted) if memchr::memmem::find(text, wanted.as_bytes()).is_none() => Err(Why::Missing(wanted)),
        _ => Ok(()),
    }
}

/// What a check says of a body as JSON; a value that is not equal is taken out of it. Errors: `NothingAt`, `NotEqual`.
pub fn check_json<'a>(check: &'a HttpCheck, body: &mut Value) -> Result<(), Why<'a>> {
    for (pointer, wanted) in &check.json {
        match (body.pointer_mut(pointer), wanted) {
            (None, _) => return Err(Why::NothingAt(pointer)),
            (Some(found), Some(wanted)) if found != wanted => {
                return Err(Why::NotEqual(pointer, found.take(), wanted));
            }
            (Some(_), _) => {}
        }
    }
    Ok(())
}

/// Whether `filled` would replace something: the braces of JSON alone do not make a request change.
fn has_variables(request: &HttpRequest, variables: &[Variable]) -> bool {
    let texts = || {
        let headers = request.headers.iter().map(|(_, value)| value);
        [&request.path, &request.body].into_iter().chain(headers)
    };
    let names = variables.iter().map(|variable| format!("{{{}}}", variable.name));
    names.into_iter().any(|name| texts().any(|text| text.contains(&name)))
}

/// The text with each `{name}` replaced; braces around anything else stay as they are, since JSON is full of them.
fn filled<'a>(text: &'a str, variables: &[Variable], values: &[String]) -> Cow<'a, str> {
    if !text.contains('{') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        let inside = &rest[at + 1..];
        let known = inside.find('}').and_then(|end| {
            let found = variables.iter().position(|variable| variable.name == inside[..end])?;
            Some((found, end))
        });
        match known {
            Some((found, end)) => {
                out.push_str(&values[found]);
                rest = &inside[end + 1..];
            }
            None => {
                out.push('{');
                rest = inside;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &[u8]) -> Answer<'_> {
        Answer {
            tag: 0,
            status,
            body,
            body_bytes: body.len() as u64,
            location: None,
            closes: false,
            grpc: None,
        }
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
        Texts { variables, counter: 0, counter_step: 1, random: fastrand::Rng::with_seed(1) }
    }

    fn no_variables() -> Texts {
        texts_of(&[])
    }

    #[test]
    fn captured_texts_are_kept_by_the_indices_of_their_variables() {
        let texts = texts_of(&["first", "second", "third"]);
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
        // A blank is encoded where it stands in a path, and may stand in a header.
        assert_eq!(hear(r#"{"user":"bob o"}"#), [some("bob o"), None, some("[1,\"b\"]")]);
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
            (
                json("/items/1", None),
                Some(r#"nothing at /items/1 in "{\"ok\":true,\"items\":[{\"id\":3}]}""#),
            ),
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
}
