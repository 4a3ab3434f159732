//! The plan's requests and the checks of their answers, prepared once if nothing in them changes.
//!
//! A request with variables is rendered and prepared each time, which allocates; one without is prepared once.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use drivers::http::{Answer, Http, Parts};
use drivers::messages::Envelope;
use plan::{Allowed, HttpBots, HttpCheck, HttpRequest, Variable, VariableLaw, WorkerPlan};
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
    /// an answer need not have what is captured: the variable then stays as it was
    may_lack_captures: bool,
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
            may_lack_captures: plan.allowed.contains(&Allowed::MissingCaptures),
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

    /// The texts for variables, from the values at their pointers. `is_owed`: the answer is not an expected refusal,
    /// which may lack them. Errors: `NotCaptured`, `CapturedTooLong`.
    pub fn capture<'a>(
        &self,
        capture: &'a [(String, String)],
        values: impl IntoIterator<Item = Found>,
        is_owed: bool,
    ) -> Result<CapturedTexts, Why<'a>> {
        let may_lack = self.may_lack_captures || !is_owed;
        let mut texts = Vec::new();
        for ((name, pointer), found) in capture.iter().zip(values) {
            let text = match found {
                Found::Nothing | Found::Something if may_lack => continue,
                Found::Nothing | Found::Something => return Err(Why::NotCaptured(name, pointer)),
                Found::TooLarge => return Err(Why::CapturedTooLong(pointer)),
                Found::Value(Value::String(text)) => text,
                Found::Value(other) => other.to_string(),
            };
            if text.len() > CAPTURED_BYTES_MAX {
                return Err(Why::CapturedTooLong(pointer));
            }
            // It goes into headers unchanged; with a line ending a server could inject requests.
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
    /// From the plan's requests, or from the one of its cell.
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
    /// a status other than expected
    Status,
    /// the length is not within these, both included
    Length(u64, u64),
    /// a text that is not there
    Missing(&'a str),
    /// no JSON, where pointers are to be followed
    NotJson(serde_json::Error),
    /// a pointer that leads nowhere
    NothingAt(&'a str),
    /// the value found, and the expected one
    NotEqual(&'a str, Value, &'a Value),
    /// the value found is too large to be the expected one
    TooLarge(&'a str, &'a Value),
    /// the captured value is too long
    CapturedTooLong(&'a str),
    /// there is no value to capture for this variable
    NotCaptured(&'a str, &'a str),
    /// this variable is captured, and the body is no JSON
    CapturedOfNoJson(&'a str, serde_json::Error),
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
            | Why::CapturedTooLong(_)
            | Why::NotCaptured(..)
            | Why::CapturedOfNoJson(..) => errors::WRONG_JSON,
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
            Why::NotCaptured(name, pointer) => format!("capture {name}: nothing at {pointer} in \"{shown}\""),
            Why::CapturedOfNoJson(name, error) => {
                format!("capture {name}: the body is not JSON: {error} in \"{shown}\"")
            }
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
    let is_owed = (200..300).contains(&answer.status);
    check_bytes(check, answer.body, answer.body_bytes)?;
    if check.json.is_empty() && capture.is_empty() {
        return Ok(Vec::new());
    }
    let checked = check.json.iter().map(|(pointer, wanted)| Sought { pointer, keeps: wanted.is_some() });
    let captured = capture.iter().map(|(_, pointer)| Sought { pointer, keeps: true });
    let mut found = match pointed::find(answer.body, &checked.chain(captured).collect::<Vec<_>>()) {
        Ok(found) => found.into_iter(),
        // Only the captures need JSON.
        Err(error) if check.json.is_empty() => {
            return match capture.first() {
                Some((name, _)) if is_owed && !texts.may_lack_captures => {
                    Err(Why::CapturedOfNoJson(name, error))
                }
                _ => Ok(Vec::new()),
            };
        }
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
    texts.capture(capture, found, is_owed)
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
mod tests;
