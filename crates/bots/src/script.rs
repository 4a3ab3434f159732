//! Bots that a script plays: its calls become messages of the load, and what happens becomes its turns.
//!
//! The script says what a client would do; pacing, sending and recording stay here and in the engine. A question
//! (`bot.ask`) is planned for the instant of the turn that asked it: a timer of `bot.every` that came late does not make the
//! question later. What was asked without a message, because the script sends it in a later turn, counts as sent at once.
//! A bot is in once it said so (`bot.ready()`), or with its first connection where the script never says it.
//! Not here: the script's own interfaces (`script`), and how its file is found (`plan`).

use std::mem;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use drivers::websocket::{Message, Received};
use drivers::{Closed, Driver, Upgrade, WebSocket};
use engine::{BotContext, Bots, ConnectionId, RequestId, SendLag};
use hashbrown::HashMap;
use measure::names::OPEN_TIME;
use measure::{ErrorKind, MetricNames};
use plan::{ScriptBots, WorkerPlan};
use script::{Command, Data, Key, Names, Play, Script};

use crate::ends;

/// A bot must be in so long after it joined.
const IN_WITHIN_NS: u64 = 15_000_000_000;
/// Timers of a script have the numbers below.
const IN_DEADLINE: u32 = u32::MAX;
/// RFC 6455: the connection ended without a close frame.
const NO_CLOSE_FRAME: u16 = 1006;
const NO_CODE: u16 = 1005;

/// Causes behind those of `ends`.
const THREW: usize = ends::CAUSES.len();
const FAILED: usize = THREW + 1;
const NOT_IN: usize = THREW + 2;
const CHECKS_AT: usize = THREW + 3;
const OWN_CAUSES: [&str; 3] = ["script error", "failed by the script", "not in"];

/// Counters behind the engine's own.
const UNEXPECTED: usize = 1;
const COUNTERS_AT: usize = 2;

/// What hears of each thing that a bot does: the instant, and words. One process tries one bot.
pub type Listener = Box<dyn Fn(u64, &str) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// From now on `listener` hears of everything that bots of scripts do. Called once at most.
pub fn listen(listener: Listener) {
    // A second listener would be a mistake of the caller; the first one goes on.
    let _ = LISTENER.set(listener);
}

/// Tells the listener, where there is one; words are made for it only.
fn tell(at_ns: u64, words: impl FnOnce() -> String) {
    tell_some(at_ns, || Some(words()));
}

type Asked = HashMap<(usize, Key), RequestId, foldhash::fast::RandomState>;

#[derive(Default)]
struct Bot {
    /// the script's numbers of the connections
    sockets: Vec<(u32, ConnectionId)>,
    asked: Asked,
    /// what the next message owes a reply to
    asking: Option<(usize, Key, u64)>,
    is_in: bool,
    has_ended: bool,
    last_tick_ns: Option<u64>,
}

/// All bots of one worker.
pub struct Scripts<D = WebSocket> {
    driver: std::marker::PhantomData<D>,
    /// or why it cannot be played
    script: Result<Script, String>,
    bots: Vec<Bot>,
    commands: Vec<(u32, Command)>,
    /// joined and not in
    outside: u64,
    first_unit: u64,
    unit_step: u64,
    says_ready: bool,
    tells_ticks: bool,
    tick_period_ns: u64,
    /// index of the operation of messages that owe nothing
    message: usize,
    /// host and port as the target has them
    authority: String,
}

impl<D> Bots for Scripts<D>
where
    D: for<'a> Driver<Send<'a> = Message<'a>, Received<'a> = Received<'a>>,
{
    type Driver = D;
    type Settings = ScriptBots;

    fn metric_names(settings: &ScriptBots) -> Arc<MetricNames> {
        let Names { operations, checks, counters, .. } = &settings.bundle.names;
        let checks: Vec<String> = checks.iter().map(|name| format!("check {name}")).collect();
        let ops: Vec<&str> = operations.iter().map(String::as_str).chain([MESSAGE]).collect();
        let causes: Vec<&str> =
            ends::CAUSES.into_iter().chain(OWN_CAUSES).chain(checks.iter().map(String::as_str)).collect();
        let counters: Vec<&str> =
            [OPEN_TIME, "unexpected"].into_iter().chain(counters.iter().map(String::as_str)).collect();
        let kinds: Vec<(&str, ErrorKind)> = [(OWN_CAUSES[2], ErrorKind::NotAdmitted)]
            .into_iter()
            .chain(checks.iter().map(|check| (check.as_str(), ErrorKind::WrongReply)))
            .collect();
        ends::metric_names(&ops, &causes, &counters, &kinds).with_timed_ops(operations.len())
    }

    fn new(settings: &ScriptBots, plan: &WorkerPlan) -> Self {
        let names = &settings.bundle.names;
        let play = Play {
            target: plan.target.to_string(),
            env: settings.env_values.clone(),
            seed: plan.seed,
            epoch_ms: 0.0,
        };
        let bundle = Rc::new((*settings.bundle).clone());
        Scripts {
            driver: std::marker::PhantomData,
            script: Script::new(&bundle, &play).map_err(|mistake| mistake.to_string()),
            bots: (0..plan.units).map(|_| Bot::default()).collect(),
            commands: Vec::new(),
            outside: 0,
            first_unit: plan.first_unit,
            unit_step: plan.workers as u64,
            says_ready: names.calls_ready,
            tells_ticks: settings.has_ticks,
            tick_period_ns: plan.tick_period_ns,
            message: names.operations.len(),
            authority: plan.target.authority(),
        }
    }

    fn join(&mut self, unit: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        self.outside += 1;
        ctx.at(planned_ns + IN_WITHIN_NS, unit, IN_DEADLINE);
        let id = self.first_unit + u64::from(unit) * self.unit_step;
        let epoch_ms = ctx.realtime_ns(0) as f64 / 1e6;
        match &mut self.script {
            Ok(script) => {
                script.set_epoch_ms(epoch_ms);
                script.start(unit, id, ctx.now_ns());
            }
            Err(why) => {
                let words = why.clone();
                ctx.error_with(THREW, || words);
                self.bots[unit as usize].has_ended = true;
                return self.is_outside_for_good(unit, "the script cannot be played", ctx);
            }
        }
        self.carry_out(ctx);
    }

    fn opened(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, D>) {
        let Some(socket) = self.socket_of(bot, connection) else { return };
        tell(ctx.now_ns(), || "connected".to_owned());
        if let Ok(script) = &mut self.script {
            script.opened(bot, socket, "", ctx.now_ns());
        }
        if !self.says_ready {
            self.is_in(bot);
        }
        self.carry_out(ctx);
    }

    fn received(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        received: Received<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        let Some(socket) = self.socket_of(bot, connection) else { return };
        let Ok(script) = &mut self.script else { return };
        tell(at_ns, || match &received {
            Received::Text(bytes) => format!("<- {}", ends::shown(bytes)),
            Received::Binary(bytes) => format!("<- {} bytes", bytes.len()),
        });
        match received {
            // The driver has checked it.
            Received::Text(bytes) => script.text(bot, socket, &String::from_utf8_lossy(bytes), at_ns),
            Received::Binary(bytes) => script.bytes(bot, socket, bytes, at_ns),
        }
        self.carry_out(ctx);
    }

    fn due(&mut self, bot: u32, what: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        if what == IN_DEADLINE {
            let within_s = IN_WITHIN_NS / 1_000_000_000;
            return self.is_outside_for_good(
                bot,
                &format!("bot.ready() was not called within {within_s} s"),
                ctx,
            );
        }
        if self.bots[bot as usize].has_ended {
            return;
        }
        if let Ok(script) = &mut self.script {
            script.timer(bot, what, planned_ns, ctx.now_ns());
        }
        self.carry_out(ctx);
    }

    fn closed(&mut self, connection: ConnectionId, bot: u32, why: Closed, ctx: &mut BotContext<'_, D>) {
        let Some(socket) = self.socket_of(bot, connection) else { return };
        self.bots[bot as usize].sockets.retain(|(_, known)| *known != connection);
        ends::count(&why, ctx);
        let (code, reason) = match &why {
            Closed::ByPeer(Some(goodbye)) => (goodbye.code, goodbye.reason.to_string()),
            Closed::ByPeer(None) => (NO_CLOSE_FRAME, String::new()),
            other => (NO_CLOSE_FRAME, ends::words(other, &ends::shown(ctx.error_excerpt()))),
        };
        let is_clean = matches!(why, Closed::ByPeer(Some(_)));
        tell(ctx.now_ns(), || ends::words(&why, ""));
        if let Ok(script) = &mut self.script {
            script.closed(bot, socket, code, &reason, is_clean, ctx.now_ns());
        }
        self.carry_out(ctx);
    }

    fn pending(&self) -> u64 {
        self.outside
    }

    fn has_drained(&mut self, _: &mut BotContext<'_, D>) -> bool {
        self.bots.iter().all(|bot| bot.asked.is_empty())
    }
}

/// Tells what a script asked for; timers and counters are no news.
fn tell_of(command: &Command, at_ns: u64) {
    tell_some(at_ns, || {
        Some(match command {
            Command::Open { url, .. } => format!("connects to {url}"),
            Command::Send { data: Data::Text(text), .. } => format!("-> {}", ends::shown(text.as_bytes())),
            Command::Send { data: Data::Binary(bytes), .. } => format!("-> {} bytes", bytes.len()),
            Command::Close { .. } => "closes its connection".to_owned(),
            Command::Ready => "is ready".to_owned(),
            Command::CheckFailed(_) => "a check did not hold".to_owned(),
            Command::Failed(words) | Command::Threw(words) => format!("!! {words}"),
            Command::Ended => "its function has ended".to_owned(),
            Command::Log(level, text) => format!("{level}: {text}"),
            Command::Timer { .. }
            | Command::Ask { .. }
            | Command::Asked
            | Command::Answered { .. }
            | Command::Tick
            | Command::Count(..) => return None,
        })
    });
}

fn tell_some(at_ns: u64, words: impl FnOnce() -> Option<String>) {
    if let Some(listener) = LISTENER.get()
        && let Some(words) = words()
    {
        listener(at_ns, &words);
    }
}

/// Headers that the handshake writes itself, and what would end a line.
fn can_be_sent((name, value): &(String, String)) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.bytes().all(is_token)
        && !matches!(lower.as_str(), "upgrade" | "connection")
        && !lower.starts_with("sec-websocket-")
        && !value.contains(|letter: char| letter.is_control() && letter != '\t')
}

/// Messages that owe nothing.
const MESSAGE: &str = "message";

impl<D> Scripts<D>
where
    D: for<'a> Driver<Send<'a> = Message<'a>, Received<'a> = Received<'a>>,
{
    fn socket_of(&self, bot: u32, connection: ConnectionId) -> Option<u32> {
        let sockets = &self.bots[bot as usize].sockets;
        sockets.iter().find(|(_, known)| *known == connection).map(|(socket, _)| *socket)
    }

    fn connection_of(&self, bot: u32, socket: u32) -> Option<ConnectionId> {
        let sockets = &self.bots[bot as usize].sockets;
        sockets.iter().find(|(known, _)| *known == socket).map(|(_, connection)| *connection)
    }

    fn is_in(&mut self, bot: u32) {
        let bot = &mut self.bots[bot as usize];
        if !mem::replace(&mut bot.is_in, true) {
            self.outside = self.outside.saturating_sub(1);
        }
    }

    /// A bot that is not in will not be: the ramp waits for it no longer.
    fn is_outside_for_good(&mut self, bot: u32, why: &str, ctx: &mut BotContext<'_, D>) {
        if !self.bots[bot as usize].is_in {
            self.is_in(bot);
            ctx.error_with(NOT_IN, || why.to_owned());
        }
    }

    /// Does what the script asked for, which may ask for more.
    fn carry_out(&mut self, ctx: &mut BotContext<'_, D>) {
        loop {
            let mut commands = mem::take(&mut self.commands);
            match &mut self.script {
                Ok(script) => script.take_commands(&mut commands),
                Err(_) => return,
            }
            let is_done = commands.is_empty();
            for (bot, command) in commands.drain(..) {
                self.carry_out_one(bot, command, ctx);
            }
            self.commands = commands;
            if is_done {
                return;
            }
        }
    }

    fn carry_out_one(&mut self, bot: u32, command: Command, ctx: &mut BotContext<'_, D>) {
        if self.bots[bot as usize].has_ended {
            return;
        }
        tell_of(&command, ctx.now_ns());
        match command {
            Command::Open { socket, url, protocols, headers } => {
                self.open(bot, socket, &url, Upgrade { headers, subprotocols: protocols }, ctx);
            }
            Command::Send { socket, data, planned_ns } => self.send(bot, socket, &data, planned_ns, ctx),
            Command::Close { socket } => {
                let Some(connection) = self.connection_of(bot, socket) else { return };
                ctx.close(connection);
                self.bots[bot as usize].sockets.retain(|(known, _)| *known != socket);
                if let Ok(script) = &mut self.script {
                    script.closed(bot, socket, NO_CODE, "", true, ctx.now_ns());
                }
            }
            Command::Timer { id, at_ns } => ctx.at(at_ns, bot, id),
            Command::Ask { operation, key, planned_ns } => {
                self.bots[bot as usize].asking = Some((operation, key, planned_ns));
            }
            Command::Asked => self.ask_without_message(bot, ctx),
            Command::Answered { operation, key } => {
                let request = self.bots[bot as usize].asked.remove(&(operation, key));
                if !request.is_some_and(|request| ctx.answered(request, ctx.now_ns())) {
                    ctx.count(UNEXPECTED, 1);
                }
            }
            Command::Ready => self.is_in(bot),
            Command::Tick => self.tick(bot, ctx),
            Command::CheckFailed(check) => ctx.error_with(CHECKS_AT + check, || "it did not hold".to_owned()),
            Command::Failed(words) => ctx.error_with(FAILED, || words),
            Command::Threw(words) => ctx.error_with(THREW, || words),
            Command::Count(counter, more) => ctx.count(COUNTERS_AT + counter, more),
            Command::Ended => self.end(bot, ctx),
            Command::Log(..) => {}
        }
    }

    fn open(&mut self, bot: u32, socket: u32, url: &str, upgrade: Upgrade, ctx: &mut BotContext<'_, D>) {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let is_target = authority == self.authority || self.is_target(authority);
        let words = match (
            ctx.known_address().filter(|_| is_target),
            upgrade.headers.iter().find(|one| !can_be_sent(one)),
        ) {
            (Some(mut address), None) => {
                let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
                address.path = plan::percent::encoded(&path).into_owned();
                address.upgrade.headers.extend(upgrade.headers);
                address.upgrade.subprotocols.extend(upgrade.subprotocols);
                let connection = ctx.open_at(bot, address);
                return self.bots[bot as usize].sockets.push((socket, connection));
            }
            (None, _) => format!("{authority} is not the server of --target, and no other is loaded"),
            (_, Some((name, _))) => format!(
                "the header {} cannot be sent with a WebSocket handshake",
                ends::shown(name.as_bytes())
            ),
        };
        if let Ok(script) = &mut self.script {
            script.closed(bot, socket, NO_CLOSE_FRAME, &words, false, ctx.now_ns());
        }
        ctx.error_with(FAILED, || words);
    }

    /// With the port of the scheme written out.
    fn is_target(&self, authority: &str) -> bool {
        authority
            .rsplit_once(':')
            .is_some_and(|(host, port)| host == self.authority && matches!(port, "80" | "443"))
    }

    fn send(&mut self, bot: u32, socket: u32, data: &Data, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let message = match data {
            Data::Text(text) => Message::Text(text.as_bytes()),
            Data::Binary(bytes) => Message::Binary(bytes),
        };
        let connection = self.connection_of(bot, socket);
        let asking = self.bots[bot as usize].asking.take();
        match (connection, asking) {
            (None, Some((operation, _, planned_ns))) => ctx.not_sent(operation, planned_ns),
            (None, None) => ctx.not_sent(self.message, planned_ns),
            (Some(connection), None) => ctx.send(connection, self.message, planned_ns, message),
            (Some(connection), Some((operation, key, planned_ns))) => {
                let lag = SendLag::Unrecorded;
                if let Some(request) = ctx.request(connection, operation, planned_ns, lag, message) {
                    self.note(bot, operation, key, request, ctx);
                }
            }
        }
    }

    /// A question whose message did not leave in its turn: the script sends it later, or another way.
    fn ask_without_message(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let Some((operation, key, planned_ns)) = self.bots[bot as usize].asking.take() else { return };
        let connection = self.bots[bot as usize].sockets.first().map(|(_, connection)| *connection);
        let request =
            connection.and_then(|connection| ctx.expect(connection, operation, planned_ns, ctx.now_ns()));
        match request {
            Some(request) => self.note(bot, operation, key, request, ctx),
            None => ctx.not_sent(operation, planned_ns),
        }
    }

    fn note(
        &mut self,
        bot: u32,
        operation: usize,
        key: Key,
        request: RequestId,
        ctx: &mut BotContext<'_, D>,
    ) {
        let earlier = self.bots[bot as usize].asked.insert((operation, key), request);
        // Which of two an answer would mean is not known; the earlier one has none.
        if let Some(earlier) = earlier {
            ctx.failed(earlier);
            ctx.error_with(THREW, || {
                "bot.ask: the same name and key were asked again before the answer".to_owned()
            });
        }
    }

    fn tick(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        if !self.tells_ticks {
            return;
        }
        let now_ns = ctx.now_ns();
        let Some(last_ns) = self.bots[bot as usize].last_tick_ns.replace(now_ns) else { return };
        let interval_ns = now_ns.saturating_sub(last_ns);
        let interval_ms = now_ns / 1_000_000 - last_ns / 1_000_000;
        // A tick has no number here: what should have come in the time between never did.
        let periods = (interval_ns + self.tick_period_ns / 2) / self.tick_period_ns.max(1);
        ctx.tick(now_ns, interval_ns, interval_ms, periods.saturating_sub(1), None);
    }

    /// Its function has returned.
    fn end(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        self.is_outside_for_good(bot, "its function ended before the bot was in", ctx);
        let ended = &mut self.bots[bot as usize];
        ended.has_ended = true;
        ended.asked.clear();
        for (_, connection) in mem::take(&mut ended.sockets) {
            ctx.close(connection);
        }
        if let Ok(script) = &mut self.script {
            script.forget(bot, ctx.now_ns());
        }
    }
}
