//! Scripted bots: the script's calls become messages of the load, and events become its turns.
//!
//! The script says what a client would do; pacing, sending and recording stay here and in the engine. A request
//! (`bot.ask`) is planned for the instant of the turn that issued it: a late `bot.every` timer does not make the
//! request later. A request without a message, which the script sends in a later turn, counts as sent at once.
//! A bot has joined once it calls `bot.ready()`, or with its first connection if the script never does.
//! This file handles what happens to bots; their calls are in `commands`, their HTTP requests in `requests`.
//! Not here: the script's own interfaces (`script`), and how its file is found (`plan`).

mod commands;
mod destination;
mod names;
mod requests;
mod rooms;
mod sessions;
mod tell;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use drivers::any::{self, Any, HttpVersion};
use drivers::{Closed, Driver};
use engine::{BotContext, Bots, ConnectionId, RequestId};
use hashbrown::HashMap;
use measure::trial::kind;
use measure::{LedgerShape, MetricNames, Phase, ScriptFunction};
use plan::{ScriptBots, WorkerPlan};
use script::{Command, FunctionTime, Key, Play, Script};

use crate::disconnects;
use destination::Home;
use names::{Causes, NOT_IN, SCRIPT_MS, THREW};
use requests::Requests;
use sessions::{NEXT_SESSION, Sessions};
use tell::tell;
pub use tell::{Listener, listen};

/// A bot must be in so long after it joined.
const IN_WITHIN_NS: u64 = 15_000_000_000;
/// Timers of a script have the numbers below.
const IN_DEADLINE: u32 = u32::MAX;
/// So many functions of the script are named at the end of a hold.
const FUNCTIONS_TOLD: usize = 3;
/// A server must answer a close so long after it; as browsers have it.
const CLOSE_WITHIN_NS: u64 = 2_000_000_000;
/// RFC 6455: there was no code in the close frame.
const NO_CODE: u16 = 1005;
/// RFC 6455: the connection ended without a close frame.
const NO_CLOSE_FRAME: u16 = 1006;

type Asked = HashMap<(usize, Key), RequestId, foldhash::fast::RandomState>;

#[derive(Default)]
struct Bot {
    /// connections that the script opened itself
    sockets: Vec<Socket>,
    asked: Asked,
    /// what the next message owes a reply to
    asking: Option<(usize, Key, u64)>,
    /// steps under way, by the script's numbers
    measured: Vec<(u32, RequestId)>,
    /// only where it sends some
    requests: Option<Box<Requests>>,
    is_in: bool,
    /// the ramp waits until it is in
    is_awaited: bool,
    /// then it must be in, ns
    in_by_ns: u64,
    has_ended: bool,
    /// where bots have several sessions: the one that is under way
    session: Option<RequestId>,
    began_ns: u64,
    /// sessions in a row
    failures: u64,
    last_tick_ns: Option<u64>,
}

/// A connection that a script opened itself.
struct Socket {
    /// the script's own
    number: u32,
    connection: ConnectionId,
    stage: Stage,
    /// it takes no longer message
    bytes_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    Open,
    /// the script has closed it, and the server has not answered yet
    Closing,
}

/// All bots of one worker.
pub struct Scripts<D = Any> {
    driver: std::marker::PhantomData<D>,
    /// or why it cannot be played
    script: Result<Script, String>,
    bots: Vec<Bot>,
    commands: Vec<(u32, Command)>,
    /// where bots have several
    sessions: Option<Sessions>,
    /// joined and not in
    outside: u64,
    first_unit: u64,
    unit_step: u64,
    says_ready: bool,
    tells_ticks: bool,
    tick_period_ns: u64,
    causes: Causes,
    home: Home,
    drain_began_ns: u64,
    patience_ns: u64,
    http: HttpVersion,
    /// over TLS, and their servers chose HTTP/1.1
    speaks_one: Vec<SocketAddr>,
    /// of the script's time, not yet counted
    busy: Duration,
    is_in_hold: bool,
}

/// Drivers whose connections may be of any protocol.
pub trait AnyDriver: for<'a> Driver<Send<'a> = any::Send<'a>, Received<'a> = any::Received<'a>> {}

impl<D> AnyDriver for D where D: for<'a> Driver<Send<'a> = any::Send<'a>, Received<'a> = any::Received<'a>> {}

impl<D: AnyDriver> Bots for Scripts<D> {
    type Driver = D;
    type Settings = ScriptBots;

    fn metric_names(settings: &ScriptBots) -> Arc<MetricNames> {
        names::metric_names(settings)
    }

    // Rooms are known by name only: there is no single room in which all members hear each other.
    fn ledger(_: &ScriptBots, plan: &WorkerPlan) -> Option<LedgerShape> {
        Some(LedgerShape {
            senders: plan.units_total as u32,
            locals: 0,
            first: plan.first_unit as u32,
            step: plan.workers as u32,
            patience_ns: plan.patience_ns,
            margin_ns: plan.patience_ns.saturating_add(plan.clock_bound_ns),
            echoes: false,
            clock_bound_ns: plan.clock_bound_ns,
        })
    }

    fn new(settings: &ScriptBots, plan: &WorkerPlan) -> Self {
        let names = &settings.bundle.names;
        let play = Play {
            target: plan.target.to_string(),
            env: settings.env_values.clone(),
            seed: plan.seed,
            epoch_ms: 0.0,
            rows: settings.row_values.clone(),
        };
        Scripts {
            driver: std::marker::PhantomData,
            script: Script::new(&settings.bundle, &play).map_err(|mistake| mistake.to_string()),
            bots: Vec::new(),
            commands: Vec::new(),
            sessions: names::session_op(settings).map(|op| Sessions::new(op, settings.load, plan)),
            outside: 0,
            first_unit: plan.first_unit,
            unit_step: plan.workers as u64,
            says_ready: names.calls_ready,
            tells_ticks: settings.has_ticks,
            tick_period_ns: plan.tick_period_ns,
            causes: Causes::of(names),
            home: Home::of(plan),
            drain_began_ns: 0,
            patience_ns: plan.patience_ns,
            http: match settings.http {
                None => HttpVersion::Any,
                Some(plan::HttpVersion::One) => HttpVersion::One,
                Some(plan::HttpVersion::Two) => HttpVersion::Two,
            },
            speaks_one: Vec::new(),
            busy: Duration::ZERO,
            is_in_hold: false,
        }
    }

    fn join(&mut self, unit: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let epoch_ms = ctx.realtime_ns(0) as f64 / 1e6;
        if let Ok(script) = &mut self.script {
            script.set_epoch_ms(epoch_ms);
            if self.sessions.as_ref().is_some_and(Sessions::are_planned) {
                return;
            }
        }
        self.outside += 1;
        // Units join in order.
        self.bots.push(Bot { is_awaited: true, ..Bot::default() });
        if let Err(why) = &self.script {
            let words = why.clone();
            ctx.error_with(THREW, || words);
            self.bots[unit as usize].has_ended = true;
            return self.is_outside_for_good(unit, "the script cannot be played", ctx);
        }
        self.begin_session(unit, u64::from(unit), planned_ns, ctx);
    }

    fn opened(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, D>) {
        match self.socket_of(bot, connection) {
            Some(known) => {
                known.stage = Stage::Open;
                let socket = known.number;
                tell(bot, ctx.now_ns(), || "connected".to_owned());
                let protocol = ctx.subprotocol(connection).to_owned();
                if let Ok(script) = &mut self.script {
                    script.opened(bot, socket, &protocol, ctx.now_ns());
                }
            }
            None => self.request_can_leave(bot, connection, ctx),
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
        received: any::Received<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        if let any::Received::Http(piece) = received {
            self.piece(bot, connection, piece, at_ns, ctx);
            return self.carry_out(ctx);
        }
        // As in browsers: what arrives after the script has closed the socket is discarded.
        let Some(&mut Socket { number: socket, stage: Stage::Open, .. }) = self.socket_of(bot, connection)
        else {
            return;
        };
        let Ok(script) = &mut self.script else { return };
        match received {
            any::Received::Text(bytes) => {
                tell(bot, at_ns, || format!("<- {}", tell::text(bytes)));
                // The driver has checked the UTF-8.
                script.text(bot, socket, &String::from_utf8_lossy(bytes), at_ns);
            }
            any::Received::Binary(bytes) => {
                tell(bot, at_ns, || format!("<- {}", tell::bytes(bytes)));
                script.bytes(bot, socket, bytes, at_ns);
            }
            any::Received::Http(_) => {}
        }
        self.carry_out(ctx);
    }

    fn due(&mut self, bot: u32, what: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        if what == NEXT_SESSION {
            return self.begin_next(bot, planned_ns, ctx);
        }
        if what == IN_DEADLINE {
            // A timer of an earlier session means nothing.
            if planned_ns != self.bots[bot as usize].in_by_ns {
                return;
            }
            let within_s = (IN_WITHIN_NS + ctx.network_allowance_ns()) / 1_000_000_000;
            return self.is_outside_for_good(
                bot,
                &format!("bot.ready() was not called within {within_s} s"),
                ctx,
            );
        }
        if self.bots[bot as usize].has_ended {
            return;
        }
        // A bot's sockets and timers share one sequence of numbers.
        if self.bots[bot as usize].sockets.iter().any(|socket| socket.number == what) {
            self.close_in_vain(bot, what, ctx);
            return self.carry_out(ctx);
        }
        if let Ok(script) = &mut self.script {
            script.timer(bot, what, planned_ns, ctx.now_ns());
        }
        self.carry_out(ctx);
    }

    fn ending(&mut self, connection: ConnectionId, bot: u32, why: &Closed, ctx: &mut BotContext<'_, D>) {
        self.request_meets_the_close(bot, connection, why, ctx);
    }

    fn closed(&mut self, connection: ConnectionId, bot: u32, why: Closed, ctx: &mut BotContext<'_, D>) {
        let Some(&mut Socket { number: socket, stage, .. }) = self.socket_of(bot, connection) else {
            self.line_closed(bot, connection, &why, ctx);
            return self.carry_out(ctx);
        };
        self.forget_socket(bot, socket, ctx);
        // A server may close what the script is closing, as long as it follows the protocol.
        if stage != Stage::Closing || matches!(why, Closed::Broken(_)) {
            disconnects::count(&why, ctx);
        }
        let (code, reason) = match &why {
            Closed::ByPeer(Some(goodbye)) => (goodbye.code, goodbye.reason.to_string()),
            Closed::ByPeer(None) => (NO_CLOSE_FRAME, String::new()),
            other => (NO_CLOSE_FRAME, disconnects::words(other, &disconnects::shown(ctx.error_excerpt()))),
        };
        let is_clean = matches!(why, Closed::ByPeer(Some(_)));
        tell(bot, ctx.now_ns(), || disconnects::words(&why, ""));
        if let Ok(script) = &mut self.script {
            script.closed(bot, socket, code, &reason, is_clean, ctx.now_ns());
        }
        self.carry_out(ctx);
    }

    fn turn(&mut self, ctx: &mut BotContext<'_, D>) {
        if let Some(sessions) = &mut self.sessions {
            sessions.count(ctx);
            sessions.plan_first(ctx);
        }
        let Ok(script) = &mut self.script else { return };
        self.busy += script.take_busy();
        let whole_ms = self.busy.as_millis();
        if whole_ms > 0 {
            ctx.count(SCRIPT_MS, whole_ms as u64);
            self.busy -= Duration::from_millis(whole_ms as u64);
        }
        self.tell_functions(ctx);
    }

    fn pending(&self) -> u64 {
        self.outside
    }

    fn drain(&mut self, ctx: &mut BotContext<'_, D>) {
        self.drain_began_ns = ctx.now_ns();
    }

    fn go_on_to_their_end(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| !sessions.has_left)
    }

    fn leave(&mut self, _: &mut BotContext<'_, D>) {
        if let Some(sessions) = &mut self.sessions {
            sessions.has_left = true;
        }
    }

    fn has_drained(&mut self, ctx: &mut BotContext<'_, D>) -> bool {
        if let Some(sessions) = &self.sessions {
            return sessions.have_ended();
        }
        self.rooms_have_drained(ctx)
            & self.bots.iter().all(|bot| {
                bot.asked.is_empty()
                    && bot.measured.is_empty()
                    && bot.requests.as_ref().is_none_or(|requests| requests.owe_nothing())
            })
    }
}

impl<D: AnyDriver> Scripts<D> {
    fn socket_of(&mut self, bot: u32, connection: ConnectionId) -> Option<&mut Socket> {
        self.bots[bot as usize].sockets.iter_mut().find(|socket| socket.connection == connection)
    }

    fn socket(&mut self, bot: u32, number: u32) -> Option<&mut Socket> {
        self.bots[bot as usize].sockets.iter_mut().find(|socket| socket.number == number)
    }

    fn forget_socket(&mut self, bot: u32, number: u32, ctx: &mut BotContext<'_, D>) {
        let sockets = &mut self.bots[bot as usize].sockets;
        let Some(at) = sockets.iter().position(|socket| socket.number == number) else { return };
        if sockets.swap_remove(at).stage != Stage::Closing {
            self.look_at_membership(bot, ctx);
        }
    }

    /// At the end of the hold: the functions that took most of the script's time in it.
    fn tell_functions(&mut self, ctx: &mut BotContext<'_, D>) {
        let is_in_hold = ctx.phase(ctx.now_ns()) == Phase::Hold;
        let Ok(script) = &mut self.script else { return };
        if std::mem::replace(&mut self.is_in_hold, is_in_hold) == is_in_hold {
            return;
        }
        let largest = script.take_functions().into_iter().take(FUNCTIONS_TOLD);
        for FunctionTime { name, place, time } in largest.filter(|_| !is_in_hold) {
            let function = ScriptFunction { name, place, ms: time.as_millis() as u64 };
            ctx.mark(kind::SCRIPT_FUNCTION, function.to_string());
        }
    }

    /// From now on a bot has so long to be in, where the ramp waits for it or the script says when it is.
    fn await_admission(&mut self, bot: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let awaited = &mut self.bots[bot as usize];
        awaited.began_ns = ctx.now_ns();
        if awaited.is_awaited || self.says_ready {
            awaited.in_by_ns = planned_ns + IN_WITHIN_NS + ctx.network_allowance_ns();
            ctx.at(awaited.in_by_ns, bot, IN_DEADLINE);
        }
    }

    fn is_in(&mut self, bot: u32) {
        let bot = &mut self.bots[bot as usize];
        if !std::mem::replace(&mut bot.is_in, true) && bot.is_awaited {
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
}
