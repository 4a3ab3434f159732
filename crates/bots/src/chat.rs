//! People in a room where each line goes to all others, with an account of every delivery.
//!
//! Each bot joins, waits until all have joined (the ramp lasts as long), talks at its own pace, and records what it
//! receives by the stamps in the texts. After the hold all stop talking and establish, in two rounds, that nothing is
//! still in flight. First every speaker gets a reply from the server behind its own lines, so the server has read them
//! all; then every listener gets a reply behind everything the server had queued for it. What is missing then is lost,
//! and not just late.
//! Some of the bots may misbehave (`faults`); they are part of the load, and are accounted for separately.

pub mod dialect;
pub mod faults;
pub mod irc;
pub mod lines;
pub mod mqtt;
pub mod nats;
pub mod payload;

use std::marker::PhantomData;
use std::sync::Arc;

use drivers::{Closed, Driver, Tcp};
use engine::{BotContext, Bots, ConnectionId};
use measure::names::OPEN_TIME;
use measure::{ErrorKind, LedgerShape, MetricNames, Phase, Role};
use plan::{Arrivals, ChatBots, FaultKind, Login, WorkerPlan};

use crate::disconnects;
use dialect::{Dialect, Who, Word};
pub use irc::Irc;
pub use lines::Lines;
pub use mqtt::Mqtt;
pub use nats::Nats;
use payload::Stamp;

/// What a bot sends: its lines, and everything that only keeps the conversation going.
const SAY: usize = 0;
const KEEP: usize = 1;
const OPS: [&str; 2] = ["say", "keep"];
const REFUSED: usize = disconnects::CAUSES.len();
const REFUSED_BY_THE_SERVER: &str = "refused by the server";
const WRONG: usize = REFUSED + 1;
const WRONG_LINE: &str = "wrong line";
const NOT_UNDERSTOOD: usize = REFUSED + 2;
const NOT_ADMITTED: usize = REFUSED + 3;
const NOT_LET_IN: &str = "not let into the room";
const DELIVERED: usize = 1;
const MISSED: usize = 2;
const COUNTERS: [&str; 3] = [OPEN_TIME, "delivered", "missed_lines_told"];
/// Points at which the crowd meets.
const JOINED: usize = 0;
const SILENT: usize = 1;
/// What a bot wants at an instant.
const SPEAK: u32 = 0;
const COME_BACK: u32 = 1;
const STORM: u32 = 2;
const MISBEHAVE: u32 = 3;
const JOIN_IS_LATE: u32 = 4;
/// A bot that lost its connection comes back after this, times the number of failures in a row.
const COME_BACK_NS: u64 = 100_000_000;
/// The ramp does not wait longer for a bot that was sent in and is no member yet.
const JOIN_PATIENCE_NS: u64 = 10_000_000_000;
/// Bots that have not joined this long after the ramp are not waited for.
const JOIN_GRACE_NS: u64 = 2_000_000_000;
/// A bot that asked to join this long before the hold, and is no member when it begins, was not accepted.
const ADMISSION_PATIENCE_NS: u64 = 2_000_000_000;
/// Speakers whose answer has not arrived this long after the hold are not waited for in the first round.
const SILENCE_GRACE_NS: u64 = 3_000_000_000;

/// How far a bot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// no usable connection
    Away,
    /// connected, and not yet a member
    Joining,
    Member,
    /// waits for the answer after its own lines
    FallingSilent,
    /// waits for the second round to begin
    Silent,
    /// waits for the answer after everything
    CatchingUp,
    /// nothing more can come
    Done,
}

struct Person<S> {
    connection: Option<ConnectionId>,
    /// when it asked to join over this connection
    asked_ns: u64,
    standing: Standing,
    fault: Option<FaultKind>,
    /// between two storms, ns
    period_ns: u64,
    speaks: bool,
    has_met: bool,
    /// the ramp waits for it
    is_pending: bool,
    /// the server wants credentials, or different ones, so that asking again is pointless
    is_turned_away: bool,
    /// in a row
    failures: u32,
    /// what its dialect keeps of this connection
    of_connection: S,
}

/// All chatters of one worker, in one dialect.
pub struct Chat<L: Dialect, D = Tcp<drivers::tcp::Lines>> {
    speaks: PhantomData<(L, D)>,
    plan: ChatBots,
    login: Option<Login>,
    /// what the server said to the first that it turned away for its credentials
    turned_away_with: Option<String>,
    is_poisson: bool,
    /// some of the crowd send what no chat allows
    hears_rubbish: bool,
    people: Vec<Person<L::OfConnection>>,
    /// of these, those that the ramp waits for
    pending: u64,
    first_unit: u64,
    unit_step: u64,
    crowd: u64,
    /// of the server: bots go to them in turn
    nodes: u64,
    random: fastrand::Rng,
    open_attempts: u32,
    /// when speaking began; `None` before
    speaking_since_ns: Option<u64>,
    ramp_ended_ns: Option<u64>,
    hold_has_begun: bool,
    drain_began_ns: Option<u64>,
    second_round: bool,
    /// after the hold: people that something may still come for
    waiting: usize,
    text: Vec<u8>,
    out: Vec<u8>,
}

impl<L, D> Bots for Chat<L, D>
where
    L: Dialect,
    D: for<'a> Driver<Send<'a> = &'a [u8], Received<'a> = &'a [u8]>,
{
    type Driver = D;
    type Settings = ChatBots;

    fn metric_names(_: &ChatBots) -> Arc<MetricNames> {
        let own = [REFUSED_BY_THE_SERVER, WRONG_LINE, "not understood", NOT_LET_IN];
        disconnects::metric_names(
            &OPS,
            &[&disconnects::CAUSES[..], &own].concat(),
            &COUNTERS,
            &[
                (REFUSED_BY_THE_SERVER, ErrorKind::Refused),
                (WRONG_LINE, ErrorKind::WrongReply),
                (NOT_LET_IN, ErrorKind::NotAdmitted),
            ],
        )
        .with_op_roles(&[(OPS[KEEP], Role::Keep)])
        .with_counter_roles(&[(COUNTERS[DELIVERED], Role::Delivered)])
    }

    fn ledger(chat: &ChatBots, plan: &WorkerPlan) -> Option<LedgerShape> {
        Some(LedgerShape {
            senders: chat.talkers.unwrap_or(u64::MAX).min(plan.units_total) as u32,
            locals: plan.units as u32,
            first: plan.first_unit as u32,
            step: plan.workers as u32,
            patience_ns: plan.patience_ns,
            margin_ns: plan.patience_ns.saturating_add(plan.clock_bound_ns),
            echoes: chat.echoes,
            clock_bound_ns: plan.clock_bound_ns,
        })
    }

    fn new(chat: &ChatBots, plan: &WorkerPlan) -> Self {
        let chat = chat.clone();
        let person = |unit: u64| {
            let number = plan.first_unit + unit * plan.workers as u64;
            let fault = chat.fault_of(number);
            Person {
                connection: None,
                asked_ns: 0,
                standing: Standing::Away,
                fault: fault.map(|fault| fault.kind),
                period_ns: fault.map_or(0, |fault| fault.period_ns),
                speaks: chat.speaks(number),
                has_met: false,
                is_pending: false,
                is_turned_away: false,
                failures: 0,
                of_connection: L::OfConnection::default(),
            }
        };
        Chat {
            speaks: PhantomData,
            login: plan.login.clone(),
            turned_away_with: None,
            is_poisson: plan.arrivals == Arrivals::Poisson,
            hears_rubbish: chat.misbehave.iter().any(|some| some.kind == FaultKind::Malformed),
            people: (0..plan.units).map(person).collect(),
            pending: 0,
            first_unit: plan.first_unit,
            unit_step: plan.workers as u64,
            crowd: plan.units_total,
            nodes: plan.sockets().len() as u64,
            random: fastrand::Rng::with_seed(plan.seed),
            open_attempts: plan.open_attempts,
            speaking_since_ns: None,
            ramp_ended_ns: None,
            hold_has_begun: false,
            drain_began_ns: None,
            second_round: false,
            waiting: 0,
            text: Vec::with_capacity(chat.line_max_bytes),
            out: Vec::with_capacity(chat.line_max_bytes + 64),
            plan: chat,
        }
    }

    fn join(&mut self, unit: u32, _: u64, ctx: &mut BotContext<'_, D>) {
        if self.people[unit as usize].fault.is_some() {
            ctx.ledger().set_apart(unit);
        }
        self.people[unit as usize].is_pending = true;
        self.pending += 1;
        ctx.at(ctx.now_ns() + JOIN_PATIENCE_NS + ctx.network_allowance_ns(), unit, JOIN_IS_LATE);
        self.come(unit, ctx);
    }

    fn pending(&self) -> u64 {
        self.pending
    }

    fn opened(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, D>) {
        let now_ns = ctx.now_ns();
        let person = &mut self.people[bot as usize];
        (person.connection, person.standing, person.asked_ns) = (Some(connection), Standing::Joining, now_ns);
        person.of_connection = L::OfConnection::default();
        self.out.clear();
        L::hello(&mut self.out, who(&self.plan, self.login.as_ref(), self.first_unit, self.unit_step, bot));
        ctx.send(connection, KEEP, now_ns, &self.out);
    }

    fn received(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        mut block: &[u8],
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        loop {
            let who = who(&self.plan, self.login.as_ref(), self.first_unit, self.unit_step, bot);
            let delivered = {
                let mut book = ctx.deliveries(bot, at_ns);
                block = L::book(block, who.room, &mut book, &mut self.people[bot as usize].of_connection);
                book.new_count()
            };
            ctx.count(DELIVERED, delivered);
            let Some((text, rest)) = L::split(block) else { return };
            let person = &mut self.people[bot as usize];
            let is_member = person.standing != Standing::Joining;
            let word = L::received(text, who, is_member, &mut person.of_connection);
            self.obey(word, text, connection, bot, at_ns, ctx);
            block = rest;
        }
    }

    fn due(&mut self, bot: u32, what: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        match what {
            SPEAK => {
                let gap_ns = self.gap_ns();
                ctx.at(planned_ns + gap_ns, bot, SPEAK);
                self.say(bot, planned_ns, ctx);
            }
            COME_BACK => self.come(bot, ctx),
            STORM => self.storm(bot, planned_ns, ctx),
            JOIN_IS_LATE => self.is_pending_no_more(bot),
            _ => self.misbehave(bot, planned_ns, ctx),
        }
    }

    fn closed(&mut self, _: ConnectionId, bot: u32, why: Closed, ctx: &mut BotContext<'_, D>) {
        let now_ns = ctx.now_ns();
        ctx.ledger().left(bot, now_ns);
        self.is_pending_no_more(bot);
        let person = &mut self.people[bot as usize];
        person.connection = None;
        // If the server refused the client, the end of its connection is no separate error.
        if person.fault.is_none() && !person.is_turned_away {
            disconnects::count(&why, ctx);
        }
        if self.drain_began_ns.is_some() {
            self.is_done(bot, ctx);
            return;
        }
        let person = &mut self.people[bot as usize];
        person.standing = Standing::Away;
        person.failures += 1;
        if person.failures < self.open_attempts && !person.is_turned_away {
            ctx.at(ctx.now_ns() + COME_BACK_NS * u64::from(person.failures), bot, COME_BACK);
        }
    }

    fn turn(&mut self, ctx: &mut BotContext<'_, D>) {
        if self.speaking_since_ns.is_none() {
            self.begin_when_all_are_in(ctx);
        }
        if !self.hold_has_begun && ctx.phase(ctx.now_ns()) == Phase::Hold {
            self.hold_has_begun = true;
            self.report_those_outside(ctx);
        }
    }

    fn drain(&mut self, ctx: &mut BotContext<'_, D>) {
        self.drain_began_ns = Some(ctx.now_ns());
        self.waiting = self.people.len();
        for bot in 0..self.people.len() as u32 {
            self.fall_silent(bot, ctx);
        }
    }

    fn has_drained(&mut self, ctx: &mut BotContext<'_, D>) -> bool {
        let began_ns = self.drain_began_ns.unwrap_or(0);
        let is_late = ctx.now_ns() >= began_ns + SILENCE_GRACE_NS + ctx.network_allowance_ns();
        if !self.second_round && (is_late || ctx.met(SILENT) >= self.crowd) {
            self.second_round = true;
            for bot in 0..self.people.len() as u32 {
                self.catch_up(bot, ctx);
            }
        }
        self.waiting == 0
    }
}

impl<L, D> Chat<L, D>
where
    L: Dialect,
    D: for<'a> Driver<Send<'a> = &'a [u8], Received<'a> = &'a [u8]>,
{
    /// Comes in, or comes back.
    fn come(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let now_ns = ctx.now_ns();
        ctx.ledger().asked(bot, now_ns);
        let number = self.first_unit + u64::from(bot) * self.unit_step;
        ctx.open(bot, (number % self.nodes) as usize);
    }

    fn obey(
        &mut self,
        word: Word,
        text: &[u8],
        connection: ConnectionId,
        bot: u32,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        let said = || format!("\"{}\"", disconnects::shown(text));
        match word {
            Word::Nothing => {}
            Word::Joined => self.joined(connection, bot, at_ns, ctx),
            Word::Answer(answer) => ctx.answer(connection, KEEP, at_ns, &answer),
            Word::Missed(count) => {
                if ctx.ledger().missed(bot, count) {
                    ctx.count(MISSED, count);
                } else {
                    ctx.error_with(NOT_UNDERSTOOD, said);
                }
            }
            Word::Refused => {
                // A client that reads nothing is rightly called slow, and one that sends garbage is rightly refused.
                if self.people[bot as usize].fault.is_none() {
                    ctx.error_with(REFUSED, said);
                }
            }
            Word::TurnedAway { words, for_credentials } => {
                self.turned_away(bot, words, for_credentials, ctx);
            }
            // If some send garbage, others receive it.
            Word::Strange if self.hears_rubbish => {}
            Word::Strange => ctx.error_with(WRONG, said),
            Word::CaughtUp(told) => match self.people[bot as usize].standing {
                Standing::FallingSilent => {
                    self.people[bot as usize].standing = Standing::Silent;
                    ctx.meet(SILENT);
                    if self.second_round {
                        self.catch_up(bot, ctx);
                    }
                }
                Standing::CatchingUp => {
                    if let Some(told) = told
                        && !ctx.ledger().told(bot, told)
                    {
                        ctx.error_with(NOT_UNDERSTOOD, said);
                    }
                    ctx.ledger().caught_up(bot);
                    self.is_done(bot, ctx);
                }
                _ => {}
            },
        }
    }

    /// The server says no before a bot is a member. Where it says so of the credentials, asking again would change nothing.
    fn turned_away(&mut self, bot: u32, words: String, for_credentials: bool, ctx: &mut BotContext<'_, D>) {
        if !for_credentials {
            return ctx.error_with(REFUSED, || words);
        }
        // A server may report the same twice: by its code, and in the text of its close.
        if std::mem::replace(&mut self.people[bot as usize].is_turned_away, true) {
            return;
        }
        self.is_pending_no_more(bot);
        let options = self.plan.dialect.scheme().protocol().credentials.options();
        let advice = match self.login {
            None => format!("give credentials with {options}"),
            Some(_) => format!("it does not take these credentials; check what was given with {options}"),
        };
        let said = format!("{words}; {advice}");
        ctx.error_with(REFUSED, || said.clone());
        self.turned_away_with.get_or_insert(said);
    }

    fn joined(&mut self, connection: ConnectionId, bot: u32, at_ns: u64, ctx: &mut BotContext<'_, D>) {
        let person = &mut self.people[bot as usize];
        if person.standing != Standing::Joining {
            return;
        }
        person.standing = Standing::Member;
        person.failures = 0;
        ctx.ledger().joined(bot, at_ns);
        self.is_pending_no_more(bot);
        let person = &mut self.people[bot as usize];
        if !std::mem::replace(&mut person.has_met, true) {
            ctx.meet(JOINED);
        }
        self.turn_bad(connection, bot, ctx);
    }

    fn is_pending_no_more(&mut self, bot: u32) {
        self.pending -= u64::from(std::mem::take(&mut self.people[bot as usize].is_pending));
    }

    /// All who may speak begin once the ramp is over and everybody is in, each at a moment of its own.
    ///
    /// So nothing is said before all are members, and what is owed is known exactly.
    fn begin_when_all_are_in(&mut self, ctx: &mut BotContext<'_, D>) {
        let now_ns = ctx.now_ns();
        if ctx.phase(now_ns) == Phase::Ramp || ctx.drains() {
            return;
        }
        let ended_ns = *self.ramp_ended_ns.get_or_insert(now_ns);
        if ctx.met(JOINED) < self.crowd && now_ns < ended_ns + JOIN_GRACE_NS + ctx.network_allowance_ns() {
            return;
        }
        self.speaking_since_ns = Some(now_ns);
        let gap_ns = (self.plan.gap_mean_ns() as u64).max(1);
        for bot in 0..self.people.len() as u32 {
            let begin_ns = now_ns + self.random.u64(0..gap_ns);
            if self.people[bot as usize].speaks {
                ctx.at(begin_ns, bot, SPEAK);
            }
            self.plan_fault(bot, now_ns, begin_ns, ctx);
        }
    }

    /// Clients that are connected, asked to join long ago, and are still not members when the hold begins.
    fn report_those_outside(&mut self, ctx: &mut BotContext<'_, D>) {
        let now_ns = ctx.now_ns();
        for person in self.people.iter().filter(|person| person.fault.is_none()) {
            if person.is_turned_away {
                let said = self.turned_away_with.as_deref().unwrap_or_default();
                ctx.error_with(NOT_ADMITTED, || said.to_owned());
                continue;
            }
            let waited_ns = now_ns.saturating_sub(person.asked_ns);
            if person.standing == Standing::Joining
                && waited_ns >= ADMISSION_PATIENCE_NS + ctx.network_allowance_ns()
            {
                ctx.error_with(NOT_ADMITTED, || format!("had asked {} s before", waited_ns / 1_000_000_000));
            }
        }
    }

    /// Time until a bot's next line, ns.
    fn gap_ns(&mut self) -> u64 {
        if self.is_poisson {
            // 1 − [0, 1) is never 0, so the logarithm is finite.
            return (-(1.0 - self.random.f64()).ln() * self.plan.gap_mean_ns()) as u64 + 1;
        }
        self.random.u64(self.plan.gap_min_ns..=self.plan.gap_max_ns)
    }

    fn say(&mut self, bot: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let person = &self.people[bot as usize];
        let (Some(connection), Standing::Member) = (person.connection, person.standing) else {
            return ctx.not_sent(SAY, planned_ns);
        };
        let Some(seq) = ctx.ledger().next_seq(bot) else { return ctx.not_sent(SAY, planned_ns) };
        let bytes = self.random.usize(self.plan.line_min_bytes..=self.plan.line_max_bytes);
        let sender = (self.first_unit + u64::from(bot) * self.unit_step) as u32;
        self.text.clear();
        self.out.clear();
        payload::write(&mut self.text, Stamp { sender, seq, planned_ns }, bytes - 1);
        L::say(&mut self.out, &self.plan.room, &self.text);
        if !ctx.broadcast(connection, SAY, planned_ns, (bot, seq), &self.out) {
            ctx.ledger().take_back(bot);
        }
    }

    /// First round: an answer after its own lines.
    fn fall_silent(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let person = &mut self.people[bot as usize];
        let is_member = person.standing == Standing::Member && person.fault != Some(FaultKind::HalfOpen);
        let Some(connection) = person.connection.filter(|_| is_member) else {
            // A client that is still connecting, or cannot send, is not waited for.
            return self.is_done(bot, ctx);
        };
        person.standing = Standing::FallingSilent;
        ctx.read_freely(connection);
        self.ask_behind(connection, ctx);
    }

    /// Second round: an answer after everything that the server has for it.
    fn catch_up(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let person = &mut self.people[bot as usize];
        // A client whose first answer has not arrived is asked once more when it does.
        if person.standing == Standing::Silent
            && let Some(connection) = person.connection
        {
            person.standing = Standing::CatchingUp;
            self.ask_behind(connection, ctx);
        }
    }

    fn ask_behind(&mut self, connection: ConnectionId, ctx: &mut BotContext<'_, D>) {
        self.out.clear();
        L::barrier(&mut self.out);
        let now_ns = ctx.now_ns();
        ctx.send(connection, KEEP, now_ns, &self.out);
    }

    fn is_done(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let before = std::mem::replace(&mut self.people[bot as usize].standing, Standing::Done);
        if before == Standing::Done {
            return;
        }
        self.waiting -= 1;
        if !matches!(before, Standing::Silent | Standing::CatchingUp) {
            ctx.meet(SILENT);
        }
    }
}

/// A free function, because it borrows the plan and nothing else of the bots.
fn who<'a>(
    plan: &'a ChatBots,
    login: Option<&'a Login>,
    first_unit: u64,
    unit_step: u64,
    bot: u32,
) -> Who<'a> {
    Who { number: first_unit + u64::from(bot) * unit_step, room: &plan.room, login }
}
