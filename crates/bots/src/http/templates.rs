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

/// The requests of one worker.
pub struct RequestTemplates<P> {
    templates: Vec<RequestTemplate<P>>,
    shares: Shares,
    texts: Texts,
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

    /// Whether an answer is right. Errors: what is wrong with it, in no words yet.
    pub fn check_response<'a>(&'a self, index: usize, answer: &'a Answer<'_>) -> Result<(), Wrong<'a>> {
        check(&self.templates[index].request, answer)
    }

    /// Keeps what a request wants to know of its answer.
    pub fn capture(&self, index: usize, answer: &Answer<'_>, captured: &mut CapturedVars) {
        let capture = &self.templates[index].request.capture;
        if !capture.is_empty()
            && let Ok(body) = serde_json::from_slice::<Value>(answer.body)
        {
            self.texts.capture(capture, &body, captured);
        }
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

    /// Keeps what stands at pointers of a right answer, by the names of their variables.
    pub fn capture(&self, capture: &[(String, String)], body: &Value, captured: &mut CapturedVars) {
        for (name, pointer) in capture {
            let Some(at) = self.variables.iter().position(|variable| variable.name == *name) else {
                continue;
            };
            let Some(value) = body.pointer(pointer) else { continue };
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            // It goes into paths and headers as it is; with a line's end a server could write requests of its own.
            if text.chars().any(|letter| letter.is_control() || letter == ' ') {
                continue;
            }
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

    /// A request in the form in which it is sent.
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
            path,
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
}

impl Wrong<'_> {
    /// The index of the cause.
    pub fn cause(&self) -> usize {
        match self.why {
            Why::Status => errors::of_status(self.answer.status),
            Why::Length(..) | Why::Missing(_) => errors::WRONG_BODY,
            Why::NotJson(_) | Why::NothingAt(_) | Why::NotEqual(..) => errors::WRONG_JSON,
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
            Why::NotEqual(pointer, found, wanted) => format!("{pointer} is {found}, not {wanted}"),
        }
    }
}

fn check<'a>(request: &'a HttpRequest, answer: &'a Answer<'_>) -> Result<(), Wrong<'a>> {
    let outcome = if request.check.allows(answer.status) {
        check_body(&request.check, answer)
    } else {
        Err(Why::Status)
    };
    outcome.map_err(|why| Wrong { request, answer, why })
}

fn check_body<'a>(check: &'a HttpCheck, answer: &Answer<'_>) -> Result<(), Why<'a>> {
    check_bytes(check, answer.body, answer.body_bytes)?;
    if check.json.is_empty() {
        return Ok(());
    }
    let mut body: Value = serde_json::from_slice(answer.body).map_err(Why::NotJson)?;
    check_json(check, &mut body)
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
            let wrong = check(&request, &answer).unwrap_err();
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
            let found = check(&request, &answer).err().map(|wrong| wrong.to_string());
            let wrong = wrong.map(|wrong| format!("GET /todos: {wrong}"));
            assert_eq!(found, wrong, "{:?}", request.check);
        }
    }
}
