//! Sessions: runs of a bot function that are followed by others when they end.
//!
//! With `repeat` the same bot starts again: its next session is planned for the instant at which the last one ended, so
//! a load is a number of bots, and a slow server gets fewer sessions (closed loop). With sessions per second a new bot
//! starts at each instant of a stream independent of the server (open loop): the number of concurrent bots follows from
//! that. Their number is capped; a session that finds no room is recorded as not sent.
//! A session is an operation, from its planned start to the end of its function. After the hold none starts; those in
//! progress continue as planned until they end, or their time is up (`WorkerPlan::drain_ns`).

use engine::{BotContext, RequestId};
use measure::Phase;
use plan::{ScriptLoad, WorkerPlan};

use super::names::{SESSION_MS, THREW};
use super::{AnyDriver, Bot, Scripts};
use crate::stream::Stream;

/// What falls due: a bot begins its next session, or a new bot begins. Timers of a script have the numbers below.
pub(super) const NEXT_SESSION: u32 = u32::MAX - 1;

/// A bot that repeats begins at most so often …
const SESSION_NS_LEAST: u64 = 10_000_000;
/// … and less often where its function returned without waiting for anything, which is a mistake of the script.
const RETURNED_AT_ONCE_NS: u64 = 1_000_000_000;
/// After the n-th session in a row that failed it waits n times as long, as requesters over HTTP do.
const COME_BACK_NS: u64 = 100_000_000;
const COME_BACK_STEPS_MAX: u64 = 10;

/// The sessions of one worker.
pub(super) struct Sessions {
    /// index into the operations
    op: usize,
    under_way: u64,
    /// sessions under way × ns, up to `counted_ns`, as far as they are not counted yet
    integral_ns: u64,
    counted_ns: u64,
    /// the bot whose function is being called
    starting: Option<u32>,
    /// a bot whose function ends begins again
    repeats: bool,
    open: Option<Open>,
    /// the trial is over
    pub has_left: bool,
}

/// Sessions per second.
struct Open {
    stream: Stream,
    /// of the stream, once it has begun
    origin_ns: Option<u64>,
    /// sessions that were planned so far
    planned: u64,
    /// numbers of bots that have ended
    free: Vec<u32>,
    /// so many bots at once
    most: usize,
}

impl Sessions {
    pub fn new(op: usize, load: ScriptLoad, plan: &WorkerPlan) -> Sessions {
        let open = || Open {
            stream: Stream::new(plan),
            origin_ns: None,
            planned: 0,
            free: Vec::new(),
            most: plan.units as usize,
        };
        // A bot that is tried alone has no rate.
        let is_open = matches!(load, ScriptLoad::Sessions { .. }) && plan.rate_per_s > 0.0;
        Sessions {
            op,
            under_way: 0,
            integral_ns: 0,
            counted_ns: 0,
            starting: None,
            repeats: load == ScriptLoad::Bots { repeat: true },
            open: is_open.then(open),
            has_left: false,
        }
    }

    /// Whether bots begin by a rate, and not in the ramp.
    pub fn are_planned(&self) -> bool {
        self.open.is_some()
    }

    /// Once the rate begins, the first session is planned.
    pub fn plan_first<D: AnyDriver>(&mut self, ctx: &mut BotContext<'_, D>) {
        if let Some(open) = &mut self.open
            && open.origin_ns.is_none()
            && ctx.settle_ns() != u64::MAX
        {
            open.origin_ns = Some(ctx.settle_ns());
            open.plan_next(ctx);
        }
    }

    pub fn have_ended(&self) -> bool {
        self.under_way == 0
    }

    /// Counts how many were under way until now.
    pub fn count<D: AnyDriver>(&mut self, ctx: &mut BotContext<'_, D>) {
        let now_ns = ctx.now_ns();
        self.integral_ns += self.under_way * now_ns.saturating_sub(self.counted_ns);
        self.counted_ns = now_ns;
        ctx.count(SESSION_MS, self.integral_ns / 1_000_000);
        self.integral_ns %= 1_000_000;
    }

    fn begin<D: AnyDriver>(&mut self, bot: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) -> RequestId {
        self.count(ctx);
        self.under_way += 1;
        self.starting = Some(bot);
        // Its send lag: whether this worker started it in time.
        ctx.waits(planned_ns);
        ctx.begin(self.op, planned_ns)
    }

    fn end<D: AnyDriver>(&mut self, session: RequestId, has_failed: bool, ctx: &mut BotContext<'_, D>) {
        self.count(ctx);
        self.under_way -= 1;
        let _ = if has_failed { ctx.failed(session) } else { ctx.answered(session, ctx.now_ns()) };
    }
}

impl Open {
    fn plan_next<D: AnyDriver>(&mut self, ctx: &mut BotContext<'_, D>) {
        if let Some(origin_ns) = self.origin_ns {
            ctx.at(origin_ns + self.stream.next_ns(), 0, NEXT_SESSION);
        }
    }
}

impl<D: AnyDriver> Scripts<D> {
    /// The next session of a bot begins, or that of a new one.
    pub(super) fn begin_next(&mut self, bot: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        if ctx.phase(planned_ns) == Phase::Drain {
            return;
        }
        let Some(sessions) = &mut self.sessions else { return };
        let Some(open) = &mut sessions.open else {
            let failures = self.bots[bot as usize].failures;
            self.bots[bot as usize] = Bot { failures, ..Bot::default() };
            return self.begin_session(bot, u64::from(bot), planned_ns, ctx);
        };
        open.plan_next(ctx);
        let place = open.planned;
        open.planned += 1;
        let bot = match open.free.pop() {
            Some(bot) => bot,
            None if self.bots.len() < open.most => {
                self.bots.push(Bot::default());
                self.bots.len() as u32 - 1
            }
            None => return ctx.not_sent(sessions.op, planned_ns),
        };
        self.bots[bot as usize] = Bot::default();
        self.begin_session(bot, place, planned_ns, ctx);
    }

    /// Calls the function of a bot, as a session where bots have several. `place`: among those of this worker.
    pub(super) fn begin_session(
        &mut self,
        bot: u32,
        place: u64,
        planned_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        let session = self.sessions.as_mut().map(|sessions| sessions.begin(bot, planned_ns, ctx));
        self.bots[bot as usize].session = session;
        self.await_admission(bot, planned_ns, ctx);
        let id = self.first_unit + place * self.unit_step;
        let now_ns = ctx.now_ns();
        let planned_ns = if session.is_some() { planned_ns } else { now_ns };
        if let Ok(script) = &mut self.script {
            script.begin(bot, place, id, planned_ns, now_ns);
        }
        self.carry_out(ctx);
        if let Some(sessions) = &mut self.sessions {
            sessions.starting = None;
        }
    }

    /// The function of a bot has ended, and its resources are released: another session may follow.
    pub(super) fn session_ends(&mut self, bot: u32, has_failed: bool, ctx: &mut BotContext<'_, D>) {
        let ended = &mut self.bots[bot as usize];
        let (Some(sessions), Some(session)) = (&mut self.sessions, ended.session.take()) else { return };
        sessions.end(session, has_failed, ctx);
        if let Some(open) = &mut sessions.open {
            return open.free.push(bot);
        }
        if !sessions.repeats {
            return;
        }
        ended.failures = if has_failed { ended.failures + 1 } else { 0 };
        let now_ns = ctx.now_ns();
        let has_waited = sessions.starting != Some(bot);
        let at_ns = match (has_failed, has_waited) {
            (true, _) => now_ns + COME_BACK_NS * ended.failures.min(COME_BACK_STEPS_MAX),
            (false, true) => now_ns.max(ended.began_ns + SESSION_NS_LEAST),
            (false, false) => {
                ctx.error_with(THREW, || {
                    "its function returned at once and would begin again without end (repeat: true); write await \
                     before what takes time"
                        .to_owned()
                });
                now_ns + RETURNED_AT_ONCE_NS
            }
        };
        ctx.at(at_ns, bot, NEXT_SESSION);
    }
}
