//! Bots that a script plays: its calls become messages of the load, and what happens becomes its turns.
//!
//! The script says what a client would do; pacing, sending and recording stay here and in the engine. A question
//! (`bot.ask`) is planned for the instant of the turn that asked it: a timer of `bot.every` that came late does not make the
//! question later. What was asked without a message, because the script sends it in a later turn, counts as sent at once.
//! A bot is in once it said so (`bot.ready()`), or with its first connection where the script never says it.
//! Here what happens to bots; what they ask for is in `commands`, their requests over HTTP in `requests`.
//! Not here: the script's own interfaces (`script`), and how its file is found (`plan`).

mod commands;
mod destination;
mod names;
mod requests;
mod tell;

use std::sync::Arc;
use std::time::Duration;

use drivers::any::{self, Any};
use drivers::{Closed, Driver};
use engine::{BotContext, Bots, ConnectionId, RequestId};
use hashbrown::HashMap;
use measure::MetricNames;
use plan::{ScriptBots, WorkerPlan};
use script::{Command, Key, Play, Script};

use crate::ends;
use destination::Home;
use names::{Causes, NOT_IN, SCRIPT_MS, THREW};
use requests::Requests;
use tell::tell;
pub use tell::{Listener, listen};

/// A bot must be in so long after it joined.
const IN_WITHIN_NS: u64 = 15_000_000_000;
/// Timers of a script have the numbers below.
const IN_DEADLINE: u32 = u32::MAX;
/// RFC 6455: the connection ended without a close frame.
const NO_CLOSE_FRAME: u16 = 1006;

type Asked = HashMap<(usize, Key), RequestId, foldhash::fast::RandomState>;

#[derive(Default)]
struct Bot {
    /// the script's numbers of the connections that it opened itself
    sockets: Vec<(u32, ConnectionId)>,
    asked: Asked,
    /// what the next message owes a reply to
    asking: Option<(usize, Key, u64)>,
    /// steps under way, by the script's numbers
    measured: Vec<(u32, RequestId)>,
    /// only where it sends some
    requests: Option<Box<Requests>>,
    is_in: bool,
    has_ended: bool,
    last_tick_ns: Option<u64>,
}

/// All bots of one worker.
pub struct Scripts<D = Any> {
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
    causes: Causes,
    home: Home,
    /// of the script's time, not yet counted
    busy: Duration,
}

/// Drivers whose connections may be of any protocol.
pub trait AnyDriver: for<'a> Driver<Send<'a> = any::Send<'a>, Received<'a> = any::Received<'a>> {}

impl<D> AnyDriver for D where D: for<'a> Driver<Send<'a> = any::Send<'a>, Received<'a> = any::Received<'a>> {}

impl<D: AnyDriver> Bots for Scripts<D> {
    type Driver = D;
    type Settings = ScriptBots;

    fn metric_names(settings: &ScriptBots) -> Arc<MetricNames> {
        names::metric_names(&settings.bundle.names)
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
            bots: (0..plan.units).map(|_| Bot::default()).collect(),
            commands: Vec::new(),
            outside: 0,
            first_unit: plan.first_unit,
            unit_step: plan.workers as u64,
            says_ready: names.calls_ready,
            tells_ticks: settings.has_ticks,
            tick_period_ns: plan.tick_period_ns,
            causes: Causes::of(names),
            home: Home::of(plan),
            busy: Duration::ZERO,
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
        match self.socket_of(bot, connection) {
            Some(socket) => {
                tell(ctx.now_ns(), || "connected".to_owned());
                if let Ok(script) = &mut self.script {
                    script.opened(bot, socket, "", ctx.now_ns());
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
        let Some(socket) = self.socket_of(bot, connection) else { return };
        let Ok(script) = &mut self.script else { return };
        match received {
            any::Received::Text(bytes) => {
                tell(at_ns, || format!("<- {}", tell::text(bytes)));
                // The driver has checked it.
                script.text(bot, socket, &String::from_utf8_lossy(bytes), at_ns);
            }
            any::Received::Binary(bytes) => {
                tell(at_ns, || format!("<- {} bytes", bytes.len()));
                script.bytes(bot, socket, bytes, at_ns);
            }
            any::Received::Http(_) => {}
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

    fn ending(&mut self, connection: ConnectionId, bot: u32, why: &Closed, ctx: &mut BotContext<'_, D>) {
        self.request_meets_the_close(bot, connection, why, ctx);
    }

    fn closed(&mut self, connection: ConnectionId, bot: u32, why: Closed, ctx: &mut BotContext<'_, D>) {
        let Some(socket) = self.socket_of(bot, connection) else {
            self.line_closed(bot, connection, &why, ctx);
            return self.carry_out(ctx);
        };
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

    fn turn(&mut self, ctx: &mut BotContext<'_, D>) {
        let Ok(script) = &mut self.script else { return };
        self.busy += script.take_busy();
        let whole_ms = self.busy.as_millis();
        if whole_ms > 0 {
            ctx.count(SCRIPT_MS, whole_ms as u64);
            self.busy -= Duration::from_millis(whole_ms as u64);
        }
    }

    fn pending(&self) -> u64 {
        self.outside
    }

    fn has_drained(&mut self, _: &mut BotContext<'_, D>) -> bool {
        self.bots.iter().all(|bot| {
            bot.asked.is_empty()
                && bot.measured.is_empty()
                && bot.requests.as_ref().is_none_or(|requests| requests.owe_nothing())
        })
    }
}

impl<D: AnyDriver> Scripts<D> {
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
        if !std::mem::replace(&mut bot.is_in, true) {
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
