//! The JavaScript engine of one worker: turns in, commands out.
//!
//! A turn belongs to one bot: it begins with an event (its start, a timer, a message) and ends when no microtask is left,
//! before the next bot's turn. A turn that takes too long or too much memory is stopped, and
//! its bot with it (`watch`, `memory`).
//! What a script throws is an error of its bot and ends nothing else.

mod host;
mod memory;
mod modules;
mod profile;
mod watch;
mod web;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rquickjs::function::IntoArgs;
use rquickjs::loader::Loader as _;
use rquickjs::{
    ArrayBuffer, CatchResultExt as _, Context, Ctx, Error, Function, IntoJs, Object, Persistent, Runtime,
    TypedArray, Value, qjs,
};

use crate::bundle::{Bundle, ScriptMistake};
use crate::command::Command;
use crate::position;
use crate::rows::Rows;
use host::Host;
use memory::{Bound, Counting, Memory};
use modules::Modules;
use profile::Profile;
use watch::{Watch, too_long};

/// Deeper calls are an error of the script.
const STACK_BYTES_MAX: usize = 512 << 10;
/// Garbage that is no circle goes at once. Circles are looked for between turns; within one, only where it makes so much.
const GC_THRESHOLD_BYTES: usize = 128 << 20;

macro_rules! prelude {
    ($($name:literal),* $(,)?) => {
        [$((concat!("stepladder:", $name), include_str!(concat!("prelude/", $name, ".js")))),*]
    };
}
/// The Web's interfaces and `bot` in JavaScript, in the order in which they are evaluated: each may use those before it.
const PRELUDE: [(&str, &str); 23] = prelude![
    "core/shared",
    "core/events",
    "web/abort",
    "core/timers",
    "web/text",
    "web/url",
    "web/headers",
    "web/streams",
    "web/data",
    "web/filereader",
    "web/clone",
    "web/crypto",
    "web/cookies",
    "web/exchange",
    "web/body",
    "web/fetch",
    "web/eventsource",
    "web/xhr",
    "web/globals",
    "core/sockets",
    "core/group",
    "core/bot",
    "core/turns",
];

/// A script that was read and can be played.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// its text, which all workers share
    pub bundle: Arc<Bundle>,
    /// the value of its export `options`; an empty object without one
    pub options: serde_json::Map<String, serde_json::Value>,
}

/// What all bots of a worker have in common.
#[derive(Clone, Debug, Default)]
pub struct Play {
    /// the URL of the server
    pub target: String,
    /// the variables that were handed over
    pub env: BTreeMap<String, String>,
    /// of what is random
    pub seed: u64,
    /// the zero of the engine's clock, ms since 1970
    pub epoch_ms: f64,
    /// files of `bot.row`, by the name that the script writes
    pub rows: BTreeMap<String, Arc<Rows>>,
}

/// Reads a script as far as it goes without bots: it must export a function, and its options must be plain data.
/// Errors: what is wrong, with file and line.
pub fn load(bundle: Bundle) -> Result<Loaded, ScriptMistake> {
    let bundle = Arc::new(bundle);
    let script = Script::new(&bundle, &Play::default())?;
    let options = script.options(&bundle)?;
    Ok(Loaded { bundle, options })
}

/// The script of one worker, with its bots.
pub struct Script {
    // Dropped in this order: functions before the context, the context before its runtime.
    calls: Calls,
    context: Context,
    runtime: Runtime,
    host: Rc<Host>,
    watch: Rc<Watch>,
    profile: Rc<Profile>,
    memory: Rc<Memory>,
    rejected: Rc<RefCell<Vec<Rejected>>>,
    /// of turns
    busy: Duration,
}

struct Calls {
    main: Persistent<Function<'static>>,
    namespace: Persistent<Object<'static>>,
    turns: [Persistent<Function<'static>>; Turn::NAMES.len()],
}

/// What begins a turn; each is a function of the prelude.
#[derive(Clone, Copy)]
enum Turn {
    Start,
    Timer,
    Opened,
    Message,
    Closed,
    Responded,
    BodyPart,
    BodyEnd,
    RequestFailed,
    Soon,
    Forget,
}

impl Turn {
    const NAMES: [&str; 11] = [
        "start",
        "timer",
        "opened",
        "message",
        "closed",
        "responded",
        "bodyPart",
        "bodyEnd",
        "requestFailed",
        "soon",
        "forget",
    ];
}

/// Bytes as a turn gets them: a copy that the script may keep.
struct Buffer<'a>(&'a [u8]);

impl<'js> IntoJs<'js> for Buffer<'_> {
    fn into_js(self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        Ok(ArrayBuffer::new_copy(ctx.clone(), self.0)?.into_value())
    }
}

/// Bytes of a body.
struct Bytes<'a>(&'a [u8]);

impl<'js> IntoJs<'js> for Bytes<'_> {
    fn into_js(self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        Ok(TypedArray::<u8>::new_copy(ctx.clone(), self.0)?.into_value())
    }
}

/// A promise that was rejected while nobody waited for it.
struct Rejected {
    promise: Persistent<Value<'static>>,
    words: String,
    stack: String,
}

impl Script {
    /// A worker's script, loaded and without bots. Errors: it cannot be loaded, or exports no function.
    pub fn new(bundle: &Arc<Bundle>, play: &Play) -> Result<Script, ScriptMistake> {
        let entry = bundle.modules.first().map_or("", |module| module.name.as_str());
        let broken =
            |what: String| ScriptMistake { file: entry.to_owned(), at: None, what, line: String::new() };
        let of_engine = |error: Error| broken(format!("the JavaScript engine: {error}"));
        let memory = Rc::new(Memory::new());
        let runtime = Runtime::new_with_alloc(Counting(memory.clone())).map_err(of_engine)?;
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        runtime.set_gc_threshold(GC_THRESHOLD_BYTES);
        let watch = Rc::new(Watch::new(memory.clone()));
        let profile = Rc::new(Profile::default());
        let (asked, sampled) = (watch.clone(), profile.clone());
        runtime.set_interrupt_handler(Some(Box::new(move || {
            sampled.sample();
            asked.stops()
        })));
        runtime.set_loader(Modules(bundle.clone()), Modules(bundle.clone()));
        let rejected = Rc::new(RefCell::new(Vec::<Rejected>::new()));
        let context = Context::full(&runtime).map_err(of_engine)?;
        let host = Rc::new(Host::new(bundle, play, memory.clone()));
        context.with(|ctx| watch.set_context(&ctx));
        watch.begin();
        let calls = context.with(|ctx| Self::prepare(&ctx, &host, &profile, bundle, entry));
        let (is_stopped, met) = (watch.end(), memory.end(0));
        let calls = calls.map_err(|fault| match fault {
            Fault::Engine(error) => of_engine(error),
            Fault::Words(what) if is_stopped || met.is_some() => {
                let why = met.map_or_else(too_long, Bound::words);
                let place = what.find('\n').map_or("", |at| &what[at..]);
                broken(format!("its top level {why}; do that in the default function{place}"))
            }
            Fault::Words(what) => broken(what),
        })?;
        memory.forget(0);
        let track = rejected.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, is_handled| {
                let promise = Persistent::save(&ctx, promise);
                let mut rejected = track.borrow_mut();
                if is_handled {
                    rejected.retain(|one| one.promise != promise);
                } else {
                    let (words, stack) = host::words_of(&reason);
                    rejected.push(Rejected { promise, words, stack });
                }
            },
        )));
        Ok(Script { calls, context, runtime, host, watch, profile, memory, rejected, busy: Duration::ZERO })
    }

    fn prepare(
        ctx: &Ctx<'_>,
        host: &Rc<Host>,
        profile: &Profile,
        bundle: &Bundle,
        entry: &str,
    ) -> Result<Calls, Fault> {
        let words = |error: rquickjs::CaughtError<'_>| {
            let (words, stack) = host::words_of_caught(&error);
            let place = position::of_stack(&stack, bundle);
            Fault::Words(place.map_or(words.clone(), |place| format!("{words}\n    at {place}")))
        };
        let functions = host::functions(ctx, host)?;
        web::functions(ctx, host, &functions)?;
        // What the files of the prelude share. Scripts reach neither of the two.
        let own = Object::new(ctx.clone())?;
        own.set_prototype(None)?;
        for (name, text) in PRELUDE {
            let mut options = rquickjs::context::EvalOptions::default();
            options.filename = Some(name.to_owned());
            let file: Function<'_> =
                ctx.eval_with_options(format!("({text})"), options).catch(ctx).map_err(words)?;
            file.call::<_, ()>((functions.clone(), own.clone())).catch(ctx).map_err(words)?;
        }
        let ours: Object<'_> = own.get("turns")?;
        profile.start(ctx, ours.get("running")?);
        modules::install(ctx, &host.bundle)?;
        let declared = Modules(host.bundle.clone()).load(ctx, entry, None).catch(ctx).map_err(words)?;
        let (module, promise) = declared.eval().catch(ctx).map_err(words)?;
        promise.finish::<()>().catch(ctx).map_err(|error| match error {
            rquickjs::CaughtError::Error(Error::WouldBlock) => Fault::Words(
                "its top level waits for something that takes time; do that in the default function"
                    .to_owned(),
            ),
            other => words(other),
        })?;
        let namespace = module.namespace()?;
        let main: Value<'_> = namespace.get("default")?;
        let Some(main) = main.into_function() else {
            return Err(Fault::Words(
                "it exports no function as default; write: export default async function player(bot) { … }"
                    .to_owned(),
            ));
        };
        let mut turns = Vec::with_capacity(Turn::NAMES.len());
        for name in Turn::NAMES {
            turns.push(Persistent::save(ctx, ours.get::<_, Function<'_>>(name)?));
        }
        Ok(Calls {
            main: Persistent::save(ctx, main),
            namespace: Persistent::save(ctx, namespace),
            turns: turns.try_into().map_err(|_| Fault::Words("a turn has no function".to_owned()))?,
        })
    }

    /// The export `options`. Errors: it is no plain object.
    fn options(&self, bundle: &Bundle) -> Result<serde_json::Map<String, serde_json::Value>, ScriptMistake> {
        let entry = bundle.modules.first().map_or("", |module| module.name.as_str());
        let text = self.context.with(|ctx| -> rquickjs::Result<Option<String>> {
            let options: Value<'_> = self.calls.namespace.clone().restore(&ctx)?.get("options")?;
            ctx.json_stringify(options)?.map(|text| text.to_string()).transpose()
        });
        let refused =
            |what: String| ScriptMistake { file: entry.to_owned(), at: None, what, line: String::new() };
        let text = text.map_err(|error| refused(format!("options cannot be read: {error}")))?;
        let Some(text) = text else { return Ok(serde_json::Map::new()) };
        serde_json::from_str(&text).map_err(|_| {
            refused("options is no object; write: export const options = { hold: \"30s\" }".to_owned())
        })
    }

    /// The zero of the engine's clock, ms since 1970.
    pub fn set_epoch_ms(&mut self, epoch_ms: f64) {
        self.host.set_epoch_ms(epoch_ms);
    }

    /// A bot's turn begins with its function. `id`: unique over all workers.
    pub fn start(&mut self, bot: u32, id: u64, now_ns: u64) {
        self.begin(bot, u64::from(bot), id, now_ns, now_ns);
    }

    /// The same at an instant that was planned, where another bot of that number may have ended before. `place`: among the bots
    /// of this worker, by which groups are formed.
    pub fn begin(&mut self, bot: u32, place: u64, id: u64, planned_ns: u64, now_ns: u64) {
        self.turn(bot, planned_ns, |script, ctx| {
            let host = &script.host;
            let main = script.calls.main.clone().restore(ctx)?;
            let args = (bot, now_ns as f64, place as f64, id as f64, host.target(), host.env(ctx)?, main);
            script.function(Turn::Start, ctx)?.call(args)
        });
    }

    /// A timer of a bot has come: `planned_ns` is the instant that was asked for.
    pub fn timer(&mut self, bot: u32, id: u32, planned_ns: u64, now_ns: u64) {
        self.turn(bot, planned_ns, |script, ctx| {
            script.function(Turn::Timer, ctx)?.call((bot, now_ns as f64, id))
        });
    }

    /// A connection stands; `protocol`: the one that the server chose, or empty.
    pub fn opened(&mut self, bot: u32, socket: u32, protocol: &str, now_ns: u64) {
        self.event(bot, now_ns, Turn::Opened, (bot, now_ns as f64, socket, protocol));
    }

    /// A message of text; not UTF-8 is refused by the driver before.
    pub fn text(&mut self, bot: u32, socket: u32, text: &str, now_ns: u64) {
        self.event(bot, now_ns, Turn::Message, (bot, now_ns as f64, socket, text));
    }

    /// A message of bytes.
    pub fn bytes(&mut self, bot: u32, socket: u32, bytes: &[u8], now_ns: u64) {
        self.event(bot, now_ns, Turn::Message, (bot, now_ns as f64, socket, Buffer(bytes)));
    }

    /// A connection has ended, or never stood.
    pub fn closed(&mut self, bot: u32, socket: u32, code: u16, reason: &str, is_clean: bool, now_ns: u64) {
        self.event(bot, now_ns, Turn::Closed, (bot, now_ns as f64, socket, code, reason, is_clean));
    }

    /// The head of a response has come; its body follows in parts, and `body_end` also where it has none. Values of headers
    /// have one character per byte. Turns of a request that was redirected or cancelled are not heard.
    pub fn responded(
        &mut self,
        bot: u32,
        request: u32,
        status: u16,
        status_text: &str,
        headers: &[(String, String)],
        now_ns: u64,
    ) {
        let flat: Vec<&str> =
            headers.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]).collect();
        self.event(bot, now_ns, Turn::Responded, (bot, now_ns as f64, request, status, status_text, flat));
    }

    /// A part of the body of a response.
    pub fn body_part(&mut self, bot: u32, request: u32, part: &[u8], now_ns: u64) {
        self.event(bot, now_ns, Turn::BodyPart, (bot, now_ns as f64, request, Bytes(part)));
    }

    /// A response is complete.
    pub fn body_end(&mut self, bot: u32, request: u32, now_ns: u64) {
        self.event(bot, now_ns, Turn::BodyEnd, (bot, now_ns as f64, request));
    }

    /// A request has no response, or not a whole one. `why`: the words of the error that the script gets.
    pub fn request_failed(&mut self, bot: u32, request: u32, why: &str, now_ns: u64) {
        self.event(bot, now_ns, Turn::RequestFailed, (bot, now_ns as f64, request, why));
    }

    /// A bot does nothing more.
    pub fn forget(&mut self, bot: u32, now_ns: u64) {
        self.event(bot, now_ns, Turn::Forget, (bot, now_ns as f64));
        self.memory.forget(bot);
    }

    /// What was asked for since the last call, bot by bot, in its order. `buffer` is emptied first and swapped in.
    pub fn take_commands(&mut self, buffer: &mut Vec<(u32, Command)>) {
        buffer.clear();
        self.host.swap(buffer);
    }

    fn function<'js>(&self, turn: Turn, ctx: &Ctx<'js>) -> rquickjs::Result<Function<'js>> {
        self.calls.turns[turn as usize].clone().restore(ctx)
    }

    fn event(&mut self, bot: u32, now_ns: u64, turn: Turn, args: impl for<'js> IntoArgs<'js>) {
        self.turn(bot, now_ns, |script, ctx| script.function(turn, ctx)?.call(args));
    }

    fn turn(
        &mut self,
        bot: u32,
        planned_ns: u64,
        call: impl FnOnce(&Script, &Ctx<'_>) -> rquickjs::Result<()>,
    ) {
        let begin = Instant::now();
        self.profile.begin(begin);
        self.host.begin(bot, planned_ns);
        self.memory.begin(bot, || self.runtime.run_gc());
        self.watch.begin();
        let failed = self.context.with(|ctx| {
            let called = call(self, &ctx).catch(&ctx).err().map(|error| host::words_of_caught(&error));
            // Once it is stopped each job is interrupted, so this ends.
            let mut stack = Self::jobs(&ctx);
            if self.host.soon.take() {
                stack = self.call_soon(&ctx).or(stack);
            }
            called.or(stack.map(|stack| (String::new(), stack)))
        });
        let (words, stack) = failed.unwrap_or_default();
        if !words.is_empty() && !self.watch.has_stopped() {
            self.host.threw(words, &stack);
        }
        let rejected = std::mem::take(&mut *self.rejected.borrow_mut());
        for Rejected { words, stack, .. } in &rejected {
            self.host.threw(format!("a promise that nobody awaited was rejected: {words}"), stack);
        }
        self.end(bot, &stack);
        let end = Instant::now();
        self.profile.end(end);
        self.busy += end - begin;
    }

    /// The functions that took time since this was last asked, without what they called; the largest first. The time is
    /// estimated from samples.
    pub fn take_functions(&mut self) -> Vec<FunctionTime> {
        let place = |(name, place, time): (String, String, Duration)| {
            let place = position::of_line(&place, &self.host.bundle)?;
            Some(FunctionTime { name, place, time })
        };
        let mut all: Vec<FunctionTime> = self.profile.take().into_iter().filter_map(place).collect();
        all.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.place.cmp(&other.place)));
        all
    }

    /// Ends a turn, and its bot where the turn was stopped.
    fn end(&self, bot: u32, stack: &str) {
        let met = self.memory.end(bot);
        let is_stopped = self.watch.end();
        if met.is_none() && !is_stopped {
            return;
        }
        let what = format!("the bot {}", met.map_or_else(too_long, Bound::words));
        let refused_at = self.host.take_refused_at();
        self.host.stop(self.host.with_place(what, refused_at.as_deref().unwrap_or(stack)));
        self.memory.forget(bot);
    }

    /// How long turns took since this was last asked.
    pub fn take_busy(&mut self) -> Duration {
        std::mem::take(&mut self.busy)
    }

    /// Microtasks, until none is left. The stack of one that was stopped.
    fn jobs(ctx: &Ctx<'_>) -> Option<String> {
        let mut stack = None;
        loop {
            let mut of = std::ptr::null_mut();
            // SAFETY: the context is alive, and its runtime is this thread's while it is borrowed.
            let outcome =
                unsafe { qjs::JS_ExecutePendingJob(qjs::JS_GetRuntime(ctx.as_raw().as_ptr()), &mut of) };
            match outcome {
                0 => return stack,
                // Only what cannot be caught gets here; there is one context, in which it is kept.
                ..0 => stack = Some(host::words_of(&ctx.catch()).1),
                _ => {}
            }
        }
    }

    /// Timers of no time, one by one, each with its microtasks. The stack of one that was stopped.
    fn call_soon(&self, ctx: &Ctx<'_>) -> Option<String> {
        loop {
            // What a timer throws was told already; nothing but the end of the turn is left then.
            let called = self.function(Turn::Soon, ctx).and_then(|soon| soon.call::<_, bool>(())).catch(ctx);
            let stack = called.as_ref().err().map(|error| host::words_of_caught(error).1);
            let stack = Self::jobs(ctx).or(stack);
            let is_over = self.watch.has_stopped() || self.memory.has_met_a_bound();
            if !(self.host.soon.take() || called.unwrap_or(false)) || is_over {
                return stack;
            }
        }
    }

    /// Memory that the bots of this worker take, bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.taken() as u64
    }

    /// Looks for circles of garbage; takes time with the number of objects, so it has its place between two rungs.
    pub fn collect_garbage(&self) {
        self.runtime.run_gc();
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.profile.stop();
    }
}

/// What one function of a script took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionTime {
    /// as written; empty without one
    pub name: String,
    /// file and line where it begins: `codec.ts:41`
    pub place: String,
    /// estimated
    pub time: Duration,
}

/// Why a script cannot be loaded.
enum Fault {
    Engine(Error),
    Words(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Engine(error)
    }
}

#[cfg(test)]
mod tests;
