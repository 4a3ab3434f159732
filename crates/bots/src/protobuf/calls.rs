//! Clients of a service with its own schema: gRPC calls, or messages in WebSocket frames.
//!
//! A request is encoded once if nothing in it changes, otherwise rendered from a template. If a variable is in a field
//! that templates do not support (an enum, a map), its JSON is filled in and encoded each time.
//! A reply must be a message of its type. It is converted to JSON if its check or a capture reads it.

use std::fmt;
use std::sync::Arc;

use drivers::grpc;
use drivers::http::{Answer, Http};
use measure::{ErrorKind, MetricNames};
use plan::schema::{self, Schema};
use plan::units::http::braced;
use plan::{HttpBots, HttpRequest, ProtobufBots, ProtobufOver, WorkerPlan};
use prost_reflect::prost::{DecodeError, Message as _};
use prost_reflect::{DynamicMessage, MessageDescriptor};
use serde_json::Value;

use super::{SchemaError, Template, envelope};
use crate::disconnects;
use crate::http::pointed::Found;
use crate::http::source::{Chosen, Source};
use crate::http::templates::{
    CapturedTexts, CapturedVars, Ready, RequestContext, Shares, Texts, Why, check_bytes, check_json,
};
use crate::http::{counter_roles, errors, with_roles};

/// Behind the causes of HTTP.
const WRONG_FIELD: usize = errors::CAUSES.len();
const WRONG_MESSAGE: usize = WRONG_FIELD + 1;
const OWN_CAUSES: [&str; 2] = ["wrong field", "wrong message"];
/// Behind them, where gRPC is spoken: its statuses.
const GRPC_AT: usize = WRONG_FIELD + OWN_CAUSES.len();

/// All clients of one worker.
pub struct Calls<D: Http> {
    context: RequestContext,
    over: ProtobufOver,
    shares: Shares,
    texts: Texts,
    requests: Vec<Request<D::Prepared>>,
    /// from the last right reply
    captured: CapturedTexts,
}

/// One kind of request.
struct Request<P> {
    said: HttpRequest,
    body: Body,
    reply: MessageDescriptor,
    /// where nothing changes
    prepared: Option<P>,
}

impl<P> Request<P> {
    fn render<D: Http<Prepared = P>>(
        &self,
        context: &RequestContext,
        texts: &mut Texts,
        captured: &CapturedVars,
    ) -> P {
        let values = texts.draw(captured);
        let names: Vec<&str> = texts.variables.iter().map(|variable| variable.name.as_str()).collect();
        let headers = texts.filled(&self.said.headers, &values);
        context.prepare::<D>("POST", &self.said.path, &headers, &self.body.render(&names, &values), true)
    }
}

/// How a message is built.
enum Body {
    Template(Template),
    Json(MessageDescriptor, Value),
}

impl Body {
    /// Errors: what the plan has refused.
    fn compile(message: &MessageDescriptor, text: &str, names: &[&str]) -> Result<Body, SchemaError> {
        let json: Value = serde_json::from_str(text).map_err(|error| SchemaError::Value {
            message: message.full_name().to_owned(),
            why: error.to_string(),
        })?;
        let template = Template::compile(message, &json, names);
        Ok(template.map_or_else(|_| Body::Json(message.clone(), json), Body::Template))
    }

    fn is_constant(&self) -> bool {
        matches!(self, Body::Template(template) if template.is_constant())
    }

    fn render(&self, names: &[&str], values: &[String]) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match self {
            Body::Template(template) => template.render(&mut out, &|variable| values[variable].as_str()),
            Body::Json(message, json) => {
                let value_of =
                    |name: &str| names.iter().position(|known| *known == name).map(|at| values[at].clone());
                // A captured text that fits no field leaves the message empty; all other values were checked by the
                // plan.
                if let Ok(message) = schema::message_of(message, &schema::filled(json, &value_of)) {
                    out = message.encode_to_vec();
                }
            }
        }
        out
    }
}

impl<D: Http> Source<D> for Calls<D> {
    type Settings = ProtobufBots;

    fn transport(settings: &ProtobufBots) -> &HttpBots {
        &settings.http
    }

    fn metric_names(settings: &ProtobufBots) -> Arc<MetricNames> {
        let ops: Vec<&str> = settings.http.requests.iter().map(|request| request.name.as_str()).collect();
        let of_grpc = match settings.over {
            ProtobufOver::Grpc => &errors::GRPC[..],
            ProtobufOver::WebSocket(_) => &[],
        };
        let causes = [&errors::CAUSES[..], &OWN_CAUSES, of_grpc].concat();
        let counters = counter_roles::<D>();
        let names: Vec<&str> = counters.iter().map(|(name, _)| *name).collect();
        let own = OWN_CAUSES.map(|cause| (cause, ErrorKind::WrongReply));
        disconnects::metric_names(&ops, &causes, &names, &[&errors::KINDS[..], &own].concat())
            .with_counter_roles(&with_roles(&counters))
    }

    fn new(settings: &ProtobufBots, plan: &WorkerPlan) -> Self {
        Calls::compile(settings, plan).expect("the plan has refused what does not fit its schema")
    }

    fn choose(&mut self) -> Chosen {
        Chosen { op: self.shares.choose(&mut self.texts.random), token: 0 }
    }

    fn ready(&mut self, chosen: Chosen, captured: &CapturedVars) -> Ready<'_, D::Prepared> {
        let request = &self.requests[chosen.op];
        match &request.prepared {
            Some(prepared) => Ready::Prepared(prepared),
            None => Ready::Rendered(request.render::<D>(&self.context, &mut self.texts, captured)),
        }
    }

    fn check(
        &mut self,
        chosen: Chosen,
        answer: &Answer<'_>,
        wrong: impl FnOnce(usize, &dyn fmt::Display),
    ) -> bool {
        let found = match self.look_into(chosen.op, answer) {
            Ok(texts) => Some(texts),
            Err(found) => {
                wrong(found.cause, &*found);
                None
            }
        };
        let is_right = found.is_some();
        self.captured = found.unwrap_or_default();
        is_right
    }

    fn learn(&mut self, _: Chosen, _: &Answer<'_>, captured: &mut CapturedVars) {
        self.texts.keep(std::mem::take(&mut self.captured), captured);
    }
}

/// A reply that is not right. Formatted only when the text is kept, as over HTTP.
struct Wrong<'a> {
    cause: usize,
    request: &'a str,
    reply: &'a MessageDescriptor,
    answer: &'a Answer<'a>,
    what: What<'a>,
}

enum What<'a> {
    /// a status of HTTP, or of a message over WebSocket
    Status,
    /// a code of gRPC but OK, by its name
    Code(&'static str),
    /// OK, where an error was expected
    Ok,
    /// no message of its type
    NotAMessage(DecodeError),
    /// the error text is not as expected
    Text(Why<'a>),
    Field(Why<'a>, Value),
}

impl fmt::Display for Wrong<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answer { status, body, body_bytes, .. } = self.answer;
        write!(out, "{}: ", self.request)?;
        match &self.what {
            What::Status => {
                let json = super::as_json(self.reply, body);
                let shown = json.map_or_else(|| errors::shown(body), |json| errors::shown(json.as_bytes()));
                write!(out, "status {status}: \"{shown}\"")
            }
            What::Code(name) => write!(out, "{name}: \"{}\"", errors::shown(body)),
            What::Ok => out.write_str("OK, where an error was expected"),
            What::NotAMessage(error) => {
                write!(out, "no {}: {error}: \"{}\"", self.reply.full_name(), errors::shown(body))
            }
            What::Text(why) => out.write_str(&why.worded(&errors::shown(body), *body_bytes)),
            What::Field(why, json) => {
                out.write_str(&why.worded(&errors::shown(json.to_string().as_bytes()), *body_bytes))
            }
        }
    }
}

impl<D: Http> Calls<D> {
    /// Errors: what the plan has refused.
    fn compile(settings: &ProtobufBots, plan: &WorkerPlan) -> Result<Self, SchemaError> {
        let schema = Schema::compile(&settings.proto)?;
        let mut context = RequestContext::of(plan, &settings.http);
        let names: Vec<&str> =
            settings.http.variables.iter().map(|variable| variable.name.as_str()).collect();
        let types = match &settings.over {
            ProtobufOver::Grpc => None,
            ProtobufOver::WebSocket(frames) => {
                let types = (schema.message(&frames.request)?, schema.message(&frames.reply)?);
                let id = frames.id.as_ref().map(|(request, reply)| (request.as_str(), reply.as_str()));
                context.envelope = Some(Arc::new(envelope(&types.0, &types.1, id, frames.error.as_deref())?));
                Some(types)
            }
        };
        let timeout_ms = (settings.http.timeout_ns / 1_000_000).to_string();
        let deadline = ("grpc-timeout".to_owned(), timeout_ms + "m");
        let request = |said: &HttpRequest| {
            let (asked, reply) = match &types {
                Some(types) => types.clone(),
                None => {
                    let method = schema.method(&said.path)?;
                    (method.input(), method.output())
                }
            };
            let mut said = said.clone();
            if types.is_none() && !said.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(&deadline.0))
            {
                said.headers.push(deadline.clone());
            }
            let body = Body::compile(&asked, &said.body, &names)?;
            let is_constant = body.is_constant()
                && said
                    .headers
                    .iter()
                    .all(|(_, value)| !braced(value).any(|(name, _)| names.contains(&name)));
            let prepared = is_constant.then(|| {
                let bytes = body.render(&names, &[]);
                context.prepare::<D>("POST", &said.path, &said.headers, &bytes, true)
            });
            Ok(Request { said, body, reply, prepared })
        };
        let requests = settings.http.requests.iter().map(request).collect::<Result<_, SchemaError>>()?;
        Ok(Calls {
            requests,
            context,
            over: settings.over.clone(),
            shares: Shares::of_requests(plan, &settings.http),
            texts: Texts::of(plan, &settings.http),
            captured: Vec::new(),
        })
    }

    /// What is captured of a reply. Errors: it is not right.
    fn look_into<'a>(
        &'a self,
        index: usize,
        answer: &'a Answer<'_>,
    ) -> Result<CapturedTexts, Box<Wrong<'a>>> {
        let Request { said, reply, .. } = &self.requests[index];
        let wrong = |cause, what| Box::new(Wrong { cause, request: &said.name, reply, answer, what });
        let code = answer.grpc.map(|code| grpc::index(code).map_or(0, |index| index + 1));
        let status = match (&self.over, code) {
            // Codes are at most 16.
            (ProtobufOver::Grpc, Some(code)) => code as u16,
            // A plain HTTP answer, such as a proxy's.
            (ProtobufOver::Grpc, None) => return Err(wrong(errors::of_status(answer.status), What::Status)),
            (ProtobufOver::WebSocket(_), _) => answer.status,
        };
        if !self.over.allows(&said.check, status) {
            let what = match (&self.over, answer.grpc.and_then(grpc::index)) {
                (ProtobufOver::WebSocket(_), _) => What::Status,
                (ProtobufOver::Grpc, Some(index)) => What::Code(grpc::NAMES[index]),
                (ProtobufOver::Grpc, None) => What::Ok,
            };
            return Err(wrong(errors::of_answer(answer, GRPC_AT), what));
        }
        if code.is_some_and(|code| code != 0) {
            // An expected error; its body is its text.
            let outcome = check_bytes(&said.check, answer.body, answer.body_bytes);
            return outcome.map(|()| Vec::new()).map_err(|why| wrong(errors::WRONG_BODY, What::Text(why)));
        }
        let message = DynamicMessage::decode(reply.clone(), answer.body);
        let message = message.map_err(|error| wrong(WRONG_MESSAGE, What::NotAMessage(error)))?;
        if !said.check.reads_body() && said.check.body_bytes.is_none() && said.capture.is_empty() {
            return Ok(Vec::new());
        }
        let mut json = schema::json_of(&message);
        let text = if said.check.contains.is_some() { json.to_string() } else { String::new() };
        let outcome = check_bytes(&said.check, text.as_bytes(), answer.body_bytes);
        let outcome = outcome.and_then(|()| check_json(&said.check, &mut json)).and_then(|()| {
            let found =
                |pointer: &String| json.pointer(pointer).cloned().map_or(Found::Nothing, Found::Value);
            self.texts.capture(&said.capture, said.capture.iter().map(|(_, pointer)| found(pointer)), true)
        });
        outcome.map_err(|why| wrong(WRONG_FIELD, What::Field(why, json)))
    }
}

#[cfg(test)]
mod tests;
