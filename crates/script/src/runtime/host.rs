//! What the prelude may call: each function adds a command, or reads what this turn is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;
use rquickjs::{CaughtError, Ctx, Exception, Function, Object, TypedArray, Value};

use super::{Command, Data, Key, Play};
use crate::bundle::Bundle;
use crate::position;

type Indices = HashMap<String, usize, foldhash::fast::RandomState>;

/// What a script prints is kept so far for each turn.
const LOG_BYTES_MAX: usize = 2_000;

/// The turn that is under way, and what was asked for.
pub(super) struct Host {
    pub(super) bundle: Rc<Bundle>,
    commands: RefCell<Vec<(u32, Command)>>,
    bot: Cell<u32>,
    planned_ns: Cell<u64>,
    now_ns: Cell<u64>,
    random: RefCell<fastrand::Rng>,
    target: String,
    env: BTreeMap<String, String>,
    epoch_ms: Cell<f64>,
    operations: Indices,
    checks: Indices,
    counters: Indices,
}

fn indices(names: &[String]) -> Indices {
    names.iter().cloned().enumerate().map(|(index, name)| (name, index)).collect()
}

impl Host {
    pub(super) fn new(bundle: &Rc<Bundle>, play: &Play) -> Host {
        let names = &bundle.names;
        Host {
            commands: RefCell::new(Vec::new()),
            bot: Cell::new(0),
            planned_ns: Cell::new(0),
            now_ns: Cell::new(0),
            random: RefCell::new(fastrand::Rng::with_seed(play.seed)),
            target: play.target.clone(),
            env: play.env.clone(),
            epoch_ms: Cell::new(play.epoch_ms),
            operations: indices(&names.operations),
            checks: indices(&names.checks),
            counters: indices(&names.counters),
            bundle: bundle.clone(),
        }
    }

    pub(super) fn begin(&self, bot: u32, planned_ns: u64, now_ns: u64) {
        self.bot.set(bot);
        self.planned_ns.set(planned_ns);
        self.now_ns.set(now_ns);
    }

    pub(super) fn set_epoch_ms(&self, epoch_ms: f64) {
        self.epoch_ms.set(epoch_ms);
    }

    pub(super) fn push(&self, command: Command) {
        self.commands.borrow_mut().push((self.bot.get(), command));
    }

    pub(super) fn swap(&self, buffer: &mut Vec<(u32, Command)>) {
        std::mem::swap(&mut *self.commands.borrow_mut(), buffer);
    }

    pub(super) fn target(&self) -> &str {
        &self.target
    }

    pub(super) fn env<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let env = Object::new(ctx.clone())?;
        for (name, value) in &self.env {
            env.set(name.as_str(), value.as_str())?;
        }
        Ok(env)
    }

    fn index(&self, ctx: &Ctx<'_>, all: &Indices, what: &str, name: &str) -> rquickjs::Result<usize> {
        all.get(name).copied().ok_or_else(|| {
            let words = format!(
                "\"{name}\" is no {what} of this script: names must stand as string literals in calls of bot, so that all \
                 workers know them before the run"
            );
            Exception::throw_type(ctx, &words)
        })
    }
}

fn key_of(value: &Value<'_>) -> Key {
    if let Some(number) = value.as_int() {
        return Key::Number(i64::from(number));
    }
    if let Some(number) = value.as_float() {
        if number.fract() == 0.0 && number.abs() < 9e15 {
            return Key::Number(number as i64);
        }
        return Key::Text(number.to_string().into());
    }
    match value.as_string().and_then(|text| text.to_string().ok()) {
        Some(text) => Key::Text(text.into()),
        None => Key::Text(format!("{:?}", value.type_of()).into()),
    }
}

fn data_of<'js>(ctx: &Ctx<'js>, data: &Value<'js>) -> rquickjs::Result<Data> {
    if let Some(text) = data.as_string() {
        return Ok(Data::Text(text.to_string()?));
    }
    if let Ok(bytes) = TypedArray::<u8>::from_value(data.clone()) {
        return Ok(Data::Binary(copied(&bytes)));
    }
    Err(Exception::throw_type(ctx, "send() takes a string, an ArrayBuffer or a view of one"))
}

fn copied(bytes: &TypedArray<'_, u8>) -> Vec<u8> {
    // SAFETY: no JavaScript runs before the slice has been copied. Detached: no bytes.
    unsafe { bytes.as_bytes() }.map(<[u8]>::to_vec).unwrap_or_default()
}

/// Words and stack of what was thrown.
pub(super) fn words_of(value: &Value<'_>) -> (String, String) {
    match value.clone().into_object().and_then(Exception::from_object) {
        Some(error) => {
            let name: Option<String> = error.as_object().get("name").ok();
            let message = error.message().unwrap_or_default();
            (
                format!("{}: {message}", name.unwrap_or_else(|| "Error".to_owned())),
                error.stack().unwrap_or_default(),
            )
        }
        None => match value.as_string().and_then(|text| text.to_string().ok()) {
            Some(text) => (text, String::new()),
            None => ("a value that is no Error was thrown".to_owned(), String::new()),
        },
    }
}

pub(super) fn words_of_caught(error: &CaughtError<'_>) -> (String, String) {
    match error {
        CaughtError::Error(error) => (error.to_string(), String::new()),
        CaughtError::Exception(error) => words_of(error.as_object().as_value()),
        CaughtError::Value(value) => words_of(value),
    }
}

/// The object that the prelude gets.
pub(super) fn functions<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> rquickjs::Result<Object<'js>> {
    let all = Object::new(ctx.clone())?;
    macro_rules! function {
        ($name:literal, |$host:ident $(, $argument:ident: $kind:ty)*| -> $returns:ty $body:block) => {{
            let $host = host.clone();
            all.set($name, Function::new(ctx.clone(), move |$($argument: $kind),*| -> $returns { $body })?)?;
        }};
        ($name:literal, |$host:ident $(, $argument:ident: $kind:ty)*| $body:expr) => {{
            let $host = host.clone();
            all.set($name, Function::new(ctx.clone(), move |$($argument: $kind),*| $body)?)?;
        }};
    }
    function!("now", |host| host.now_ns.get() as f64);
    function!("epochMs", |host| host.epoch_ms.get());
    function!("random", |host| host.random.borrow_mut().f64());
    function!("timer", |host, id: u32, at_ns: f64| host.push(Command::Timer { id, at_ns: at_ns as u64 }));
    function!("ready", |host| host.push(Command::Ready));
    function!("tick", |host| host.push(Command::Tick));
    function!("ended", |host| host.push(Command::Ended));
    function!("asked", |host| host.push(Command::Asked));
    function!("fail", |host, why: String| host.push(Command::Failed(why)));
    function!("thrown", |host, words: String, stack: String| {
        let place = position::of_stack(&stack, &host.bundle);
        host.push(Command::Threw(place.map_or(words.clone(), |place| format!("{words} (at {place})"))));
    });
    function!("log", |host, level: String, text: String| {
        let mut text = text;
        let level = ["log", "info", "warn", "error", "debug"].into_iter().find(|known| *known == level);
        if text.len() > LOG_BYTES_MAX {
            text.truncate((0..=LOG_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
            text.push('…');
        }
        host.push(Command::Log(level.unwrap_or("log"), text));
    });
    function!("ask", |host, ctx: Ctx<'js>, name: String, key: Value<'js>| -> rquickjs::Result<()> {
        let operation = host.index(&ctx, &host.operations, "operation", &name)?;
        host.push(Command::Ask { operation, key: key_of(&key), planned_ns: host.planned_ns.get() });
        Ok(())
    });
    function!("answered", |host, ctx: Ctx<'js>, name: String, key: Value<'js>| -> rquickjs::Result<()> {
        let operation = host.index(&ctx, &host.operations, "operation", &name)?;
        host.push(Command::Answered { operation, key: key_of(&key) });
        Ok(())
    });
    function!("check", |host, ctx: Ctx<'js>, name: String, ok: bool| -> rquickjs::Result<()> {
        let check = host.index(&ctx, &host.checks, "check", &name)?;
        if !ok {
            host.push(Command::CheckFailed(check));
        }
        Ok(())
    });
    function!("count", |host, ctx: Ctx<'js>, name: String, more: f64| -> rquickjs::Result<()> {
        let counter = host.index(&ctx, &host.counters, "counter", &name)?;
        host.push(Command::Count(counter, more.max(0.0) as u64));
        Ok(())
    });
    function!("websocketUrl", |_host,
                               ctx: Ctx<'js>,
                               url: String,
                               target: String|
     -> rquickjs::Result<String> {
        whole_url(&url, &target).ok_or_else(|| {
            let words = format!("\"{url}\" is no address of a WebSocket; write a path such as \"/play\", or ws://HOST:PORT/PATH");
            Exception::throw_syntax(&ctx, &words)
        })
    });
    function!("open", |host, socket: u32, url: String, protocols: Vec<String>, headers: Vec<String>| {
        let headers = headers.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        host.push(Command::Open { socket, url, protocols, headers });
    });
    function!("send", |host, ctx: Ctx<'js>, socket: u32, data: Value<'js>| -> rquickjs::Result<()> {
        let data = data_of(&ctx, &data)?;
        host.push(Command::Send { socket, data, planned_ns: host.planned_ns.get() });
        Ok(())
    });
    function!("close", |host, socket: u32| host.push(Command::Close { socket }));
    function!("encode", |_host, ctx: Ctx<'js>, text: String| -> rquickjs::Result<TypedArray<'js, u8>> {
        TypedArray::new(ctx, text.into_bytes())
    });
    function!("decode", |_host, bytes: TypedArray<'js, u8>| -> String {
        String::from_utf8_lossy(&copied(&bytes)).into_owned()
    });
    Ok(all)
}

/// An address as `new WebSocket` takes it, whole: a path is one of the target's server.
fn whole_url(url: &str, target: &str) -> Option<String> {
    let (scheme, rest) = target.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if url.is_empty() {
        return Some(target.to_owned());
    }
    if let Some(path) = url.strip_prefix('/') {
        return Some(format!("{scheme}://{authority}/{path}"));
    }
    if url.starts_with('?') {
        let path = rest[authority.len()..].split(['?', '#']).next().unwrap_or_default();
        return Some(format!("{scheme}://{authority}{}{url}", if path.is_empty() { "/" } else { path }));
    }
    let is_whole = url.starts_with("ws://") || url.starts_with("wss://");
    is_whole.then(|| url.to_owned())
}
