//! What the prelude may call: each function adds a command, or reads what this turn is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use rquickjs::{CaughtError, Ctx, Exception, Function, Object, TypedArray, Value};

use super::Play;
use super::memory::Memory;
use crate::bundle::Bundle;
use crate::command::{Command, Data, Frames, Key, RECORDED_MAX};
use crate::position;
use crate::rows::{How, Rows};

type Indices = HashMap<String, usize, foldhash::fast::RandomState>;

/// What a script prints is kept so far for each turn.
const LOG_BYTES_MAX: usize = 2_000;

/// What the engine says where it is refused memory.
const OUT_OF_MEMORY: &str = "out of memory";

/// No more places of stacks are remembered.
const PLACES_MAX: usize = 1_000;

/// The turn that is under way, and what was asked for.
pub(super) struct Host {
    pub(super) bundle: Arc<Bundle>,
    memory: Rc<Memory>,
    /// where this turn was refused memory, as a stack of the engine
    refused_at: RefCell<Option<String>>,
    commands: RefCell<Vec<(u32, Command)>>,
    bot: Cell<u32>,
    /// a timer of no time waits for the end of this turn's microtasks
    pub(super) soon: Cell<bool>,
    /// places of stacks that were looked up: ten thousand bots may throw at the same place
    places: RefCell<HashMap<String, Option<String>, foldhash::fast::RandomState>>,
    planned_ns: Cell<u64>,
    random: RefCell<fastrand::Rng>,
    target: String,
    env: BTreeMap<String, String>,
    epoch_ms: Cell<f64>,
    operations: Indices,
    checks: Indices,
    counters: Indices,
    recorded: Indices,
    seed: u64,
    rows: BTreeMap<String, Arc<Rows>>,
}

fn indices(names: &[String]) -> Indices {
    names.iter().cloned().enumerate().map(|(index, name)| (name, index)).collect()
}

impl Host {
    pub(super) fn new(bundle: &Arc<Bundle>, play: &Play, memory: Rc<Memory>) -> Host {
        let names = &bundle.names;
        Host {
            memory,
            refused_at: RefCell::new(None),
            commands: RefCell::new(Vec::new()),
            bot: Cell::new(0),
            soon: Cell::new(false),
            places: RefCell::default(),
            planned_ns: Cell::new(0),
            random: RefCell::new(fastrand::Rng::with_seed(play.seed)),
            target: play.target.clone(),
            env: play.env.clone(),
            epoch_ms: Cell::new(play.epoch_ms),
            operations: indices(&names.operations),
            checks: indices(&names.checks),
            counters: indices(&names.counters),
            recorded: indices(&names.recorded),
            seed: play.seed,
            rows: play.rows.clone(),
            bundle: bundle.clone(),
        }
    }

    pub(super) fn begin(&self, bot: u32, planned_ns: u64) {
        self.bot.set(bot);
        self.planned_ns.set(planned_ns);
        self.refused_at.take();
    }

    /// What was thrown in this turn becomes an error of its bot; but that there was no memory ends the bot, and is said once.
    pub(super) fn threw(&self, words: String, stack: &str) {
        if self.memory.has_met_a_bound() && words.ends_with(OUT_OF_MEMORY) {
            self.refused_at.borrow_mut().get_or_insert_with(|| stack.to_owned());
            return;
        }
        self.push(Command::Threw(self.with_place(words, stack)));
    }

    /// Where this turn was first refused memory.
    pub(super) fn take_refused_at(&self) -> Option<String> {
        self.refused_at.take()
    }

    /// The bot of this turn ends, whatever it asked for: why comes first.
    pub(super) fn stop(&self, words: String) {
        let bot = self.bot.get();
        self.commands
            .borrow_mut()
            .retain(|(of, command)| *of != bot || !matches!(command, Command::Ended | Command::Broke));
        self.push(Command::Stopped(words));
        self.push(Command::Broke);
    }

    pub(super) fn with_place(&self, words: String, stack: &str) -> String {
        match self.place(stack) {
            Some(place) => format!("{words} (at {place})"),
            None => words,
        }
    }

    /// The place of a stack in the script's text, and the line.
    fn place(&self, stack: &str) -> Option<String> {
        let mut places = self.places.borrow_mut();
        if let Some(known) = places.get(stack) {
            return known.clone();
        }
        let place = position::of_stack(stack, &self.bundle);
        if places.len() < PLACES_MAX {
            places.insert(stack.to_owned(), place.clone());
        }
        place
    }

    pub(super) fn set_epoch_ms(&self, epoch_ms: f64) {
        self.epoch_ms.set(epoch_ms);
    }

    pub(super) fn push(&self, command: Command) {
        self.push_of(self.bot.get(), command);
    }

    /// A command for which there is no memory is dropped: its turn is stopped, and the bot with it.
    fn push_of(&self, bot: u32, command: Command) {
        if self.memory.may_wait(bytes_of(&command)) {
            self.commands.borrow_mut().push((bot, command));
        }
    }

    pub(super) fn swap(&self, buffer: &mut Vec<(u32, Command)>) {
        std::mem::swap(&mut *self.commands.borrow_mut(), buffer);
        self.memory.have_left();
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

    pub(super) fn planned_ns(&self) -> u64 {
        self.planned_ns.get()
    }

    pub(super) fn random_bytes(&self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.random.borrow_mut().fill(&mut bytes);
        bytes
    }

    /// In [0, 1), from the seed and these numbers alone.
    fn chance(&self, bot: u64, series: u64, count: u64) -> f64 {
        let mixed = [bot, series, count].into_iter().fold(self.seed, |sum, part| mixed(sum ^ mixed(part)));
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A bot's row of a file, as the text of a JSON object.
    fn row(&self, file: &str, how: &str, bot: u64) -> Result<&str, String> {
        let how: How = how.parse()?;
        let Some(rows) = self.rows.get(file) else {
            return Err(format!(
                "bot.row: {file} was not read before the run; write its name as a string literal, so that it is"
            ));
        };
        let name = file.bytes().fold(0, |sum, byte| mixed(sum ^ u64::from(byte)));
        rows.of(bot, how, self.chance(bot, name, 0)).ok_or_else(|| {
            let count = rows.count();
            format!("bot.row: {file} has {count} rows and none for bot {bot}; add rows, or write \"wrap\" or \"shared\"")
        })
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

/// Memory that a command takes.
fn bytes_of(command: &Command) -> usize {
    let behind = match command {
        Command::Send { data: Data::Text(text), .. } => text.len(),
        Command::Send { data: Data::Binary(bytes), .. } => bytes.len(),
        Command::Request { body, .. } => body.len(),
        Command::Failed(words) | Command::Threw(words) | Command::Log(_, words) => words.len(),
        _ => 0,
    };
    size_of::<(u32, Command)>() + behind
}

/// Spreads the bits of a number. Source: S. Vigna, splitmix64.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
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

pub(super) fn copied(bytes: &TypedArray<'_, u8>) -> Vec<u8> {
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
    function!("epochMs", |host| host.epoch_ms.get());
    function!("random", |host| host.random.borrow_mut().f64());
    function!("chance", |host, bot: f64, series: f64, count: f64| {
        host.chance(bot as u64, series as u64, count as u64)
    });
    function!("timer", |host, id: u32, at_ns: f64| host.push(Command::Timer { id, at_ns: at_ns as u64 }));
    function!("timerOf", |host, bot: u32, id: u32, at_ns: f64| {
        host.push_of(bot, Command::Timer { id, at_ns: at_ns as u64 });
    });
    function!("ready", |host| host.push(Command::Ready));
    function!("tick", |host, time_ms: Option<f64>| host.push(Command::Tick { time_ms }));
    function!("ended", |host| host.push(Command::Ended));
    function!("broke", |host| host.push(Command::Broke));
    function!("asked", |host| host.push(Command::Asked));
    function!("fail", |host, why: String| host.push(Command::Failed(why)));
    function!("thrown", |host, words: String, stack: String| host.threw(words, &stack));
    function!("log", |host, level: String, text: String| {
        let mut text = text;
        let level = ["log", "info", "warn", "error", "debug"].into_iter().find(|known| *known == level);
        if text.len() > LOG_BYTES_MAX {
            text.truncate((0..=LOG_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
            text.push('…');
        }
        host.push(Command::Log(level.unwrap_or("log"), text));
    });
    // The names that stand for the numbers of `ask` and `answered`, which nearly every message calls.
    all.set("operations", host.bundle.names.operations.clone())?;
    function!("unknownOperation", |host, ctx: Ctx<'js>, name: String| -> rquickjs::Result<usize> {
        host.index(&ctx, &host.operations, "operation", &name)
    });
    function!("ask", |host, operation: u32, key: Value<'js>| {
        let operation = operation as usize;
        host.push(Command::Ask { operation, key: key_of(&key), planned_ns: host.planned_ns.get() });
    });
    function!("answered", |host, operation: u32, key: Value<'js>| {
        host.push(Command::Answered { operation: operation as usize, key: key_of(&key) });
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
    function!("measureBegin", |host, ctx: Ctx<'js>, name: String, key: u32| -> rquickjs::Result<()> {
        let operation = host.index(&ctx, &host.operations, "operation", &name)?;
        host.push(Command::MeasureBegin { operation, key, planned_ns: host.planned_ns() });
        Ok(())
    });
    function!("measureEnd", |host, key: u32, ok: bool| host.push(Command::MeasureEnd { key, ok }));
    all.set("recordedMax", RECORDED_MAX)?;
    function!("record", |host, ctx: Ctx<'js>, name: String, value: f64| -> rquickjs::Result<()> {
        let name = host.index(&ctx, &host.recorded, "distribution", &name)?;
        host.push(Command::Record { name, value, planned_ns: host.planned_ns() });
        Ok(())
    });
    function!("join", |host, room: String| host.push(Command::Join { room }));
    function!("leave", |host, room: String| host.push(Command::Leave { room }));
    function!("sent", |host, room: String, seq: f64| {
        host.push(Command::Sent { room, seq: seq as u64, planned_ns: host.planned_ns() });
    });
    function!("received", |host, room: String, from: f64, seq: f64| {
        host.push(Command::Received { room, from: from as u64, seq: seq as u64 });
    });
    function!("row", |host,
                      ctx: Ctx<'js>,
                      file: String,
                      how: String,
                      bot: f64|
     -> rquickjs::Result<Value<'js>> {
        match host.row(&file, &how, bot as u64) {
            Ok(row) => ctx.json_parse(row),
            Err(words) => Err(Exception::throw_type(&ctx, &words)),
        }
    });
    function!("open", |host, socket: u32, url: String, protocols: Vec<String>, headers: Vec<String>| {
        host.push(Command::Open { socket, url, protocols, headers: pairs(headers) });
    });
    function!("openTcp", |host,
                          ctx: Ctx<'js>,
                          socket: u32,
                          name: Option<String>,
                          port: Option<u16>,
                          frames: String|
     -> rquickjs::Result<()> {
        let frames = Frames::named(&frames).ok_or_else(|| Exception::throw_type(&ctx, "no such frames"))?;
        host.push(Command::OpenTcp { socket, host: name, port, frames });
        Ok(())
    });
    function!("openUdp", |host, socket: u32, name: Option<String>, port: Option<u16>| {
        host.push(Command::OpenUdp { socket, host: name, port });
    });
    function!("isFrames", |_host, name: String| Frames::named(&name).is_some());
    function!("framesList", |_host| Frames::HELP);
    function!("soon", |host| host.soon.set(true));
    function!("send", |host,
                       ctx: Ctx<'js>,
                       bot: u32,
                       socket: u32,
                       data: Value<'js>|
     -> rquickjs::Result<()> {
        let data = data_of(&ctx, &data)?;
        host.push_of(bot, Command::Send { socket, data, planned_ns: host.planned_ns() });
        Ok(())
    });
    function!("close", |host, bot: u32, socket: u32, code: Option<u16>, reason: String| {
        host.push_of(bot, Command::Close { socket, code, reason });
    });
    Ok(all)
}

/// Name, value, name, value as pairs.
pub(super) fn pairs(flat: Vec<String>) -> Vec<(String, String)> {
    let mut flat = flat.into_iter();
    let mut pairs = Vec::with_capacity(flat.len() / 2);
    while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
        pairs.push((name, value));
    }
    pairs
}
