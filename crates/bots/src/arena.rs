//! Arena players, in pairs: one fires every 110 ms, one every 200 ms; the next game starts when one ends.
//!
//! The protocol tells players apart only by order of arrival, so a pair must reach the server consecutively: it takes
//! the process-wide pairing lock, and connects back to back to servers that accept in order, step by step to others.
//! With 110 ms against 200 ms player 1 must win every game, so the winner is a correctness check under load. If its own
//! shots were late, it may legitimately lose, and the game is not judged.
//! A player's n-th shot is planned n intervals after the start it was told, whatever the server does meanwhile.
//! Some servers let a lone player wait for ever, even a disconnected one; then all later players are paired across. So
//! no pair leaves while only one of it has joined, and leftovers of others are detected and repaired (`pairing_sync`).

pub mod message;
mod pairing_sync;
mod pause;

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use drivers::websocket::{Message as Send, Received};
use drivers::{Closed, Driver, WebSocket};
use engine::{BotContext, Bots, ConnectionId, RequestId};
use measure::{MetricNames, Phase, Role};
use plan::{ArenaBots, Pairing, WorkerPlan};

use crate::disconnects;
use message::{FIRE, Message, Stop};
use pairing_sync::Probe;
use pause::Pause;

const START: usize = 0;
const SHOT: usize = 1;
const OPS: [&str; 2] = ["start", "shot"];

mod error {
    use measure::ErrorKind;

    use crate::disconnects;

    pub const MISSING_START: usize = 4;
    pub const MISSING_STOP: usize = 5;
    pub const WRONG_WINNER: usize = 6;
    pub const OPPONENT_LEFT: usize = 7;
    pub const NOT_UNDERSTOOD: usize = 8;
    pub const OUT_OF_STEP: usize = 9;
    pub const NAMES: [&str; 10] = [
        disconnects::CAUSES[0],
        disconnects::CAUSES[1],
        disconnects::CAUSES[2],
        disconnects::CAUSES[3],
        "missing start",
        "missing stop",
        "wrong winner",
        "opponent left",
        "not understood",
        "pairing out of step",
    ];
    pub const KINDS: [(&str, ErrorKind); 4] = [
        (NAMES[MISSING_START], ErrorKind::Timeout),
        (NAMES[MISSING_STOP], ErrorKind::Timeout),
        (NAMES[WRONG_WINNER], ErrorKind::WrongReply),
        (NAMES[OUT_OF_STEP], ErrorKind::Unpaired),
    ];
}

mod counter {
    pub const GAMES_STARTED: usize = 0;
    pub const GAMES_PLAYED: usize = 1;
    pub const WON_BY_PLAYER_1: usize = 2;
    pub const PAIRS_SWAPPED: usize = 3;
    pub const GAVE_UP: usize = 4;
    /// pairs that got into step by an extra player
    pub const HEALED: usize = 5;
    /// games without a result: no stop came in time, or the stops carried an error
    pub const GAMES_FAILED: usize = 6;
    /// how long the games took that were played to their end, ms
    pub const GAME_TIME: usize = 7;
    /// games that were running when the hold began and still when it ended
    pub const GAMES_UNENDING: usize = 8;
    /// games whose winner is not judged: shots of the fast player left too late
    pub const GAMES_UNJUDGED: usize = 9;
    pub const NAMES: [&str; 12] = [
        "games_started",
        "games_played",
        "won_by_player_1",
        "pairs_swapped",
        "pairs_gave_up",
        "pairs_healed",
        "games_failed",
        "game_ms",
        "games_unending",
        "games_unjudged",
        measure::names::OPEN_TIME,
        measure::names::HANDSHAKE_REDIRECTS,
    ];
}

/// What a pair wants to do at an instant; the game's number rides along, so that what was planned for an ended game is
/// recognised and dropped.
mod what {
    pub const ENTER: u32 = 0;
    pub const SHOT: u32 = 1;
    pub const START_DEADLINE: u32 = 2;
    pub const GAME_DEADLINE: u32 = 3;
    pub const REJOIN: u32 = 4;
    pub const PROBE_OVER: u32 = 5;
    const KINDS: u32 = 8;

    pub fn code(kind: u32, game: u32) -> u32 {
        game.wrapping_mul(KINDS) | kind
    }

    pub fn kind(code: u32) -> u32 {
        code % KINDS
    }

    pub fn is_of(code: u32, game: u32) -> bool {
        code / KINDS == game.wrapping_mul(KINDS) / KINDS
    }
}

/// The pairing lock is tried again this much later when another worker's pair holds it.
const ENTRANCE_RETRY_NS: u64 = 50_000;
/// The same when a pair stays in it until the server has started its game.
const STRICT_RETRY_NS: u64 = 500_000;
/// So many pairs go in before what is due meanwhile gets its turn.
const PAIRS_AT_ONCE: usize = 8;
/// After both are in, the start must come within this.
const START_DEADLINE_NS: u64 = 10_000_000_000;
/// A pair that failed comes back after this, times the number of failures.
const COME_BACK_NS: u64 = 100_000_000;
const COME_BACK_STEPS_MAX: u32 = 10;
/// A first snapshot's number is below this: 1,000 ticks a second for 30,000 years.
const TICK_NUMBER_END: u64 = 1_000_000_000_000_000;
/// Between two snapshots of a game no more ticks than those of an hour are believed.
const TICKS_BELIEVED_NS: u64 = 3_600_000_000_000;
/// A stamp is believed when it is at most a day off: clocks may differ.
const STAMP_BELIEVED_NS: u64 = 24 * 3_600_000_000_000;
/// Of a server that does not say how fast it ticks: 60 Hz.
const TICK_PERIOD_NS: u64 = 16_666_667;

#[derive(Clone, Copy, Default)]
struct Player {
    connection: Option<ConnectionId>,
    start_request: Option<RequestId>,
    is_open: bool,
    started_ns: Option<u64>,
    /// when its next shot is planned
    next_shot_ns: Option<u64>,
    /// by how much the latest of its shots in this game left after its planned instant, or is overdue at the end
    shot_lag_ns: u64,
    stop: Option<Stop>,
    /// when the last snapshot of this game came, and its number where it can be true
    last_tick_ns: Option<u64>,
    last_number: Option<u64>,
    pause: Pause,
}

#[derive(Clone, Copy, Default)]
struct Pair {
    players: [Player; 2],
    game: u32,
    planned_ns: u64,
    failures: u32,
    is_inside: bool,
    watches: bool,
    probe: Probe,
    /// extra players since the pair wanted in; see `pairing_sync`
    heals: u32,
    /// extra players did not help
    is_out_of_step: bool,
    /// both must have started by then
    start_deadline_ns: u64,
}

impl Pair {
    fn has_started(&self) -> bool {
        self.players.iter().all(|player| player.started_ns.is_some())
    }

    /// When the later of both was started; `None` before.
    fn began_ns(&self) -> Option<u64> {
        self.players.iter().map(|player| player.started_ns).max().filter(|_| self.has_started())?
    }

    fn is_open(&self) -> bool {
        self.players.iter().all(|player| player.is_open)
    }
}

/// All pairs of one worker. Bot `2n` is the fast one of pair `n`, `2n + 1` the slow one.
pub struct Arena<D = WebSocket> {
    speaks: PhantomData<D>,
    pairs: Vec<Pair>,
    /// pairs that want to go in, in order, with the game that they want to play; one timer for all of them
    queue: VecDeque<(u32, u32)>,
    tries_again: bool,
    interval_ns: [u64; 2],
    pairing: Pairing,
    longest_game_ns: u64,
    /// the emulated network may hold back one player's shots by so much more than the other's
    network_spread_ns: u64,
    open_attempts: u32,
    tick_period_ns: u64,
    /// the server does not say how fast it ticks
    guesses_period: bool,
    /// pairs with one player in and the other not when the hold ended; they are completed before all leave
    unfinished: Vec<u32>,
    drain_began_ns: u64,
}

impl<D> Bots for Arena<D>
where
    D: for<'a> Driver<Send<'a> = Send<'a>, Received<'a> = Received<'a>>,
{
    type Driver = D;
    type Settings = ArenaBots;

    fn metric_names(_: &ArenaBots) -> Arc<MetricNames> {
        disconnects::metric_names(&OPS, &error::NAMES, &counter::NAMES, &error::KINDS)
            .with_op_roles(&[(OPS[SHOT], Role::Shot)])
            .with_counter_roles(&[
                (counter::NAMES[counter::GAMES_PLAYED], Role::GamesPlayed),
                (counter::NAMES[counter::GAMES_FAILED], Role::GamesFailed),
                (counter::NAMES[counter::GAME_TIME], Role::GameTime),
                (counter::NAMES[counter::GAMES_UNENDING], Role::GamesUnending),
            ])
    }

    /// The second path asks for snapshots; a server that does not know them ignores the query.
    fn paths(plan: &WorkerPlan) -> Vec<String> {
        let path = &plan.target.path;
        let separator = if path.contains('?') { '&' } else { '?' };
        vec![path.clone(), format!("{path}{separator}snapshots=1")]
    }

    fn new(arena: &ArenaBots, plan: &WorkerPlan) -> Self {
        let mut pairs = vec![Pair::default(); plan.units as usize];
        for (unit, pair) in pairs.iter_mut().enumerate() {
            let global = plan.first_unit + unit as u64 * plan.workers as u64;
            pair.watches = is_watched(global, watched_share(arena.snapshots, plan.units_total));
        }
        Arena {
            speaks: PhantomData,
            pairs,
            queue: VecDeque::new(),
            tries_again: false,
            interval_ns: [arena.fast_ns, arena.slow_ns],
            pairing: arena.pairing,
            longest_game_ns: arena.longest_game_ns,
            network_spread_ns: plan.networks.spread_ns(),
            open_attempts: plan.open_attempts,
            tick_period_ns: if plan.tick_period_ns > 0 { plan.tick_period_ns } else { TICK_PERIOD_NS },
            guesses_period: plan.tick_period_ns == 0,
            unfinished: Vec::new(),
            drain_began_ns: 0,
        }
    }

    fn join(&mut self, unit: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        self.pairs[unit as usize].planned_ns = planned_ns;
        self.enter(unit, ctx);
    }

    fn opened(&mut self, _: ConnectionId, bot: u32, ctx: &mut BotContext<'_, D>) {
        let unit = bot / 2;
        let pair = &mut self.pairs[unit as usize];
        pair.players[bot as usize % 2].is_open = true;
        if pair.probe == Probe::Alone {
            return self.wait_alone(unit, ctx);
        }
        if bot.is_multiple_of(2) && pair.players[1].connection.is_none() {
            return self.begin_connect(bot + 1, ctx);
        }
        if pair.is_open() {
            pair.start_deadline_ns = ctx.now_ns() + START_DEADLINE_NS + ctx.network_allowance_ns();
            ctx.at(pair.start_deadline_ns, unit * 2, what::code(what::START_DEADLINE, pair.game));
        } else {
            self.replace_the_misled(unit, ctx);
        }
    }

    fn received(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        received: Received<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        let (Received::Text(text) | Received::Binary(text)) = received;
        match message::read(text) {
            Some(Message::Tick { number, stamp_us }) => self.see_tick(bot, number, stamp_us, at_ns, ctx),
            Some(Message::Start) => self.start(connection, bot, at_ns, ctx),
            Some(Message::Stop(stop)) => self.stop(connection, bot, stop, at_ns, ctx),
            Some(Message::Unknown) | None => {
                ctx.error_with(error::NOT_UNDERSTOOD, || format!("\"{}\"", disconnects::shown(text)));
            }
        }
    }

    fn due(&mut self, bot: u32, code: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        if what::kind(code) == what::ENTER {
            self.tries_again = false;
            self.let_in(ctx);
            return;
        }
        let unit = bot / 2;
        let pair = &self.pairs[unit as usize];
        if !what::is_of(code, pair.game) {
            return;
        }
        match what::kind(code) {
            what::SHOT => self.shoot(bot, planned_ns, ctx),
            what::REJOIN => {
                self.pairs[unit as usize].planned_ns = planned_ns;
                self.enter(unit, ctx);
            }
            what::PROBE_OVER => self.bring_the_partner(unit, ctx),
            what::START_DEADLINE if !pair.has_started() && planned_ns >= pair.start_deadline_ns => {
                self.start_is_missing(unit, ctx);
            }
            what::GAME_DEADLINE => {
                ctx.error(error::MISSING_STOP);
                ctx.count(counter::GAMES_FAILED, 1);
                self.fail(unit, ctx);
            }
            _ => {}
        }
    }

    /// A worker that cannot keep up has seconds of shots before the timer of those who wait to come in.
    fn turn(&mut self, ctx: &mut BotContext<'_, D>) {
        if !self.queue.is_empty() {
            self.let_in(ctx);
        }
    }

    fn closed(&mut self, _: ConnectionId, bot: u32, why: Closed, ctx: &mut BotContext<'_, D>) {
        disconnects::count(&why, ctx);
        let never_opened = matches!(why, Closed::NotOpened(_));
        if !never_opened {
            self.doubt_half_pair(bot / 2, ctx);
        }
        let player = &mut self.pairs[bot as usize / 2].players[bot as usize % 2];
        (player.connection, player.is_open) = (None, false);
        if !(never_opened && self.knock_again_to_finish(bot, ctx)) {
            self.fail(bot / 2, ctx);
        }
    }

    fn drain(&mut self, ctx: &mut BotContext<'_, D>) {
        self.count_unending(ctx);
        self.finish_half_pairs(ctx);
    }

    fn has_drained(&mut self, ctx: &mut BotContext<'_, D>) -> bool {
        self.has_finished(ctx)
    }
}

impl<D> Arena<D>
where
    D: for<'a> Driver<Send<'a> = Send<'a>, Received<'a> = Received<'a>>,
{
    fn enter(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        self.queue.push_back((unit, self.pairs[unit as usize].game));
        if !self.tries_again {
            self.let_in(ctx);
        }
    }

    /// Lets pairs in, in order, as long as the pairing lock is free.
    fn let_in(&mut self, ctx: &mut BotContext<'_, D>) {
        if ctx.drains() {
            self.queue.clear();
            return;
        }
        for _ in 0..PAIRS_AT_ONCE {
            let Some(&(unit, game)) = self.queue.front() else { return };
            if self.pairs[unit as usize].game != game {
                self.queue.pop_front();
                continue;
            }
            if !ctx.pairing_lock().try_enter() {
                break;
            }
            self.queue.pop_front();
            self.pairs[unit as usize].is_inside = true;
            if ctx.pairing_lock().take_doubt() {
                self.probe(unit, ctx);
                continue;
            }
            self.begin_connect(unit * 2, ctx);
            if self.pairing == Pairing::Pipelined {
                self.begin_connect(unit * 2 + 1, ctx);
                self.leave_entrance(unit, ctx);
            }
        }
        if !self.queue.is_empty() && !self.tries_again {
            self.tries_again = true;
            let retry_ns = match self.pairing {
                Pairing::Pipelined => ENTRANCE_RETRY_NS,
                Pairing::Strict => STRICT_RETRY_NS,
            };
            ctx.at(ctx.now_ns() + retry_ns, 0, what::code(what::ENTER, 0));
        }
    }

    fn leave_entrance(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        let pair = &mut self.pairs[unit as usize];
        if std::mem::take(&mut pair.is_inside) {
            ctx.pairing_lock().leave();
        }
    }

    fn begin_connect(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        self.knock_unasked(bot, ctx);
        self.expect_start(bot, ctx);
    }

    /// A player comes in, and no start is owed to it yet.
    fn knock_unasked(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let pair = &mut self.pairs[bot as usize / 2];
        // One observer per game is enough.
        let path = usize::from(pair.watches && !bot.is_multiple_of(2));
        pair.players[bot as usize % 2].connection = Some(ctx.open(bot, path));
    }

    fn expect_start(&mut self, bot: u32, ctx: &mut BotContext<'_, D>) {
        let pair = &mut self.pairs[bot as usize / 2];
        let player = &mut pair.players[bot as usize % 2];
        if let Some(connection) = player.connection {
            player.start_request = ctx.expect(connection, START, pair.planned_ns, ctx.now_ns());
        }
    }

    fn start(&mut self, connection: ConnectionId, bot: u32, at_ns: u64, ctx: &mut BotContext<'_, D>) {
        let unit = bot / 2;
        let pair = &mut self.pairs[unit as usize];
        let player = &mut pair.players[bot as usize % 2];
        if player.connection != Some(connection) || player.started_ns.is_some() {
            ctx.error_with(error::NOT_UNDERSTOOD, || "a second start of the same game".to_owned());
            return;
        }
        player.started_ns = Some(at_ns);
        if pair.probe == Probe::Alone {
            return self.was_not_alone(unit, ctx);
        }
        if let Some(request) = player.start_request.take() {
            ctx.answered(request, at_ns);
        }
        let game = pair.game;
        ctx.at(at_ns + self.interval_ns[bot as usize % 2], bot, what::code(what::SHOT, game));
        if pair.has_started() {
            (pair.failures, pair.is_out_of_step) = (0, false);
            ctx.count(counter::HEALED, u64::from(std::mem::take(&mut pair.heals) > 0));
            ctx.count(counter::GAMES_STARTED, 1);
            ctx.at(at_ns + self.longest_game_ns, unit * 2, what::code(what::GAME_DEADLINE, game));
            let was_inside = pair.is_inside;
            self.leave_entrance(unit, ctx);
            if was_inside {
                self.let_in(ctx);
            }
        }
    }

    fn shoot(&mut self, bot: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let pair = &mut self.pairs[bot as usize / 2];
        let player = &mut pair.players[bot as usize % 2];
        let (Some(connection), None) = (player.connection, player.stop) else { return };
        let next_ns = planned_ns + self.interval_ns[bot as usize % 2];
        player.shot_lag_ns = player.shot_lag_ns.max(ctx.now_ns().saturating_sub(planned_ns));
        player.next_shot_ns = Some(next_ns);
        ctx.at(next_ns, bot, what::code(what::SHOT, pair.game));
        ctx.send(connection, SHOT, planned_ns, Send::Text(FIRE));
    }

    fn stop(
        &mut self,
        connection: ConnectionId,
        bot: u32,
        stop: Stop,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        let unit = bot / 2;
        let pair = &mut self.pairs[unit as usize];
        let player = &mut pair.players[bot as usize % 2];
        if player.connection != Some(connection) {
            return;
        }
        (player.stop, player.connection, player.is_open) = (Some(stop), None, false);
        // A stop can be read before a shot that should already have been sent.
        let overdue_ns = player.next_shot_ns.map_or(0, |next_ns| ctx.now_ns().saturating_sub(next_ns));
        player.shot_lag_ns = player.shot_lag_ns.max(overdue_ns);
        ctx.close(connection);
        if pair.probe == Probe::Alone {
            return self.was_not_alone(unit, ctx);
        }
        if stop.has_error && pair.is_inside && !pair.has_started() {
            // Its opponent was not its partner, who has not even started.
            return self.replace_the_misled(unit, ctx);
        }
        if stop.has_error && !ctx.drains() {
            ctx.error(error::OPPONENT_LEFT);
        }
        if let [Some(fast), Some(slow)] = pair.players.map(|player| player.stop) {
            let length_ns = at_ns.saturating_sub(pair.began_ns().unwrap_or(at_ns));
            // The k-th shots of both are planned k times this apart.
            let late_ns = pair.players[0].shot_lag_ns.saturating_add(self.network_spread_ns);
            let is_late = late_ns >= self.interval_ns[1] - self.interval_ns[0];
            judge_game(fast, slow, length_ns, is_late, ctx);
            self.next_game(unit, at_ns, ctx);
        }
    }

    /// Records a snapshot. The first one has no interval yet.
    ///
    /// Number and stamp are the server's word, up to 2⁶⁴ − 1. What cannot be true is counted as not understood, and
    /// nothing is reckoned from it. When a snapshot came is no such word: a number that begins again, or goes on, hides no pause.
    fn see_tick(&mut self, bot: u32, number: u64, stamp_us: u64, at_ns: u64, ctx: &mut BotContext<'_, D>) {
        let player = &mut self.pairs[bot as usize / 2].players[bot as usize % 2];
        let now_ns = ctx.realtime_ns(at_ns);
        let stamp_ns = stamp_us.checked_mul(1_000).filter(|ns| ns.abs_diff(now_ns) <= STAMP_BELIEVED_NS);
        let Some(stamp_ns) = stamp_ns else {
            let words = || format!("the stamp {stamp_us} µs of a snapshot is more than a day off");
            return ctx.error_with(error::NOT_UNDERSTOOD, words);
        };
        let last_number = player.last_number;
        let ahead_max = TICKS_BELIEVED_NS / self.tick_period_ns;
        let missed = match last_number {
            None => (number < TICK_NUMBER_END).then_some(0),
            Some(last) => number
                .checked_sub(last)
                .filter(|ahead| *ahead <= ahead_max)
                .map(|ahead| ahead.saturating_sub(1)),
        };
        // It is unknown which of the two is wrong: the next number counts as a first one.
        player.last_number = missed.map(|_| number);
        let last_ns = player.last_tick_ns.replace(at_ns);
        if missed.is_none() {
            ctx.error_with(error::NOT_UNDERSTOOD, || match last_number {
                None => format!("{number} as the number of the first snapshot"),
                Some(last) => format!("snapshot {number} follows snapshot {last}"),
            });
        }
        let Some(last_ns) = last_ns else { return };
        let interval_ms = at_ns / 1_000_000 - last_ns / 1_000_000;
        let ticks = match (last_number, missed) {
            (Some(last), Some(_)) => number.saturating_sub(last),
            _ => 1,
        };
        let left_out = match self.guesses_period {
            false => player.pause.see(at_ns, at_ns - last_ns, ticks, self.tick_period_ns),
            true => 0,
        };
        let age_ns = now_ns.checked_sub(stamp_ns);
        ctx.tick(at_ns, at_ns - last_ns, interval_ms, missed.unwrap_or(0).saturating_add(left_out), age_ns);
    }

    fn next_game(&mut self, unit: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        self.clear(unit, ctx);
        self.pairs[unit as usize].planned_ns = planned_ns;
        if !ctx.drains() {
            self.enter(unit, ctx);
        }
    }

    /// The hold has ended: games that have run since before it began.
    fn count_unending(&self, ctx: &mut BotContext<'_, D>) {
        let runs_through = |pair: &&Pair| {
            let began = pair.began_ns().map(|began_ns| ctx.phase(began_ns));
            began.is_some_and(|phase| matches!(phase, Phase::Ramp | Phase::Settle))
        };
        let count = self.pairs.iter().filter(runs_through).count() as u64;
        ctx.count(counter::GAMES_UNENDING, count);
    }

    /// The game cannot go on: both leave and come back a little later, a limited number of times in a row.
    fn fail(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        self.doubt_half_pair(unit, ctx);
        self.clear(unit, ctx);
        let pair = &mut self.pairs[unit as usize];
        pair.failures += 1;
        if ctx.drains() {
            return;
        }
        if pair.failures >= self.open_attempts && !pair.is_out_of_step {
            ctx.count(counter::GAVE_UP, 1);
            return;
        }
        let back_ns = ctx.now_ns() + COME_BACK_NS * u64::from(pair.failures.min(COME_BACK_STEPS_MAX));
        ctx.at(back_ns, unit * 2, what::code(what::REJOIN, pair.game));
    }

    fn clear(&mut self, unit: u32, ctx: &mut BotContext<'_, D>) {
        self.leave_entrance(unit, ctx);
        let pair = &mut self.pairs[unit as usize];
        for player in std::mem::take(&mut pair.players) {
            if let Some(connection) = player.connection {
                ctx.close(connection);
            }
        }
        pair.game = pair.game.wrapping_add(1);
        (pair.probe, pair.heals) = (Probe::None, 0);
    }
}

/// The fast one must win, and as player 1; as player 2 it may win too, and then the pair was swapped on its way in.
fn judge_game<D: Driver>(fast: Stop, slow: Stop, length_ns: u64, is_late: bool, ctx: &mut BotContext<'_, D>) {
    if fast.has_error || slow.has_error {
        return ctx.count(counter::GAMES_FAILED, 1);
    }
    ctx.count(counter::GAMES_PLAYED, 1);
    ctx.count(counter::GAME_TIME, length_ns / 1_000_000);
    if fast.player == 2 && slow.player == 1 {
        ctx.count(counter::PAIRS_SWAPPED, 1);
    }
    ctx.count(counter::GAMES_UNJUDGED, u64::from(is_late));
    if fast.won && !slow.won {
        ctx.count(counter::WON_BY_PLAYER_1, u64::from(fast.player != 2));
    } else if !is_late {
        ctx.error(error::WRONG_WINNER);
    }
}

/// Fewer watched games than this tell nothing of the others: one may just be between two games.
const WATCHED_LEAST: u64 = 3;

/// The share of the games that is watched if any is: with few games more than requested.
fn watched_share(share: f64, games: u64) -> f64 {
    let least = WATCHED_LEAST.min(games) as f64 / games.max(1) as f64;
    if share > 0.0 { share.max(least) } else { 0.0 }
}

/// Spreads `share` of the games evenly over all games.
fn is_watched(game: u64, share: f64) -> bool {
    let until = |count: u64| (count as f64 * share).floor();
    until(game + 1) > until(game)
}
