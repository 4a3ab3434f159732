//! Clients of an echo server, used to calibrate the instrument.
//!
//! Open: every bot sends at its own pace, at equal intervals with a random phase or at random (Poisson). Closed: each
//! answer triggers the next message.
//! A client without a connection goes on planning, since real users do not stop when a server is down; what it cannot
//! send is recorded as not sent.
//! An echo server answers in order, so an answer belongs to the oldest open request of its connection. Each payload
//! begins with a random stamp, which a server that answers before it was asked cannot know.
//! The same clients run over WebSocket and over lines of TCP; `EchoFraming` is the difference.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use drivers::tcp::lines;
use drivers::websocket::{Message, Received};
use drivers::{Closed, Driver, WebSocket};
use engine::{BotContext, Bots, ConnectionId, RequestId, SendLag};
use measure::names::{HANDSHAKE_REDIRECTS, OPEN_TIME};
use measure::{ErrorKind, MetricNames};
use plan::{Arrivals, EchoBots, WorkerPlan};

use crate::disconnects;

const ECHO: usize = 0;
const WRONG: usize = disconnects::CAUSES.len();
/// What a client wants at an instant.
const SEND: u32 = 0;
const COME_BACK: u32 = 1;
/// A client that lost its connection comes back after this, times the number of failures in a row.
const COME_BACK_NS: u64 = 100_000_000;
/// A payload that is shorter is cut from the stamp.
const STAMP_BYTES: usize = 16;

#[derive(Default)]
struct Client {
    connection: Option<ConnectionId>,
    /// the oldest first, with their stamps
    open_requests: VecDeque<(RequestId, [u8; STAMP_BYTES])>,
    /// in a row
    failures: u32,
}

/// How an echo's messages travel over a driver.
pub trait EchoFraming<D: Driver>: 'static {
    /// A payload as it is sent, with what the driver does not write around it; made once. It begins with the payload.
    fn framed(payload: &[u8]) -> Vec<u8> {
        payload.to_vec()
    }
    /// What the driver is given for a framed payload.
    fn message(framed: &[u8]) -> D::Send<'_>;
    /// Calls `hears` for the payload of each message.
    fn each(received: D::Received<'_>, hears: impl FnMut(&[u8]));
}

/// A text message each, as over WebSocket.
pub struct Texts;

impl<D> EchoFraming<D> for Texts
where
    D: for<'a> Driver<Send<'a> = Message<'a>, Received<'a> = Received<'a>>,
{
    fn message(framed: &[u8]) -> Message<'_> {
        Message::Text(framed)
    }

    fn each(received: Received<'_>, mut hears: impl FnMut(&[u8])) {
        let (Received::Text(bytes) | Received::Binary(bytes)) = received;
        hears(bytes);
    }
}

/// A line each, received in blocks, as over `Tcp<Lines>`.
pub struct Lines;

impl<D> EchoFraming<D> for Lines
where
    D: for<'a> Driver<Send<'a> = &'a [u8], Received<'a> = &'a [u8]>,
{
    fn framed(payload: &[u8]) -> Vec<u8> {
        [payload, b"\n"].concat()
    }

    fn message(framed: &[u8]) -> &[u8] {
        framed
    }

    fn each(received: &[u8], hears: impl FnMut(&[u8])) {
        lines(received).for_each(hears);
    }
}

const WRONG_ANSWER: &str = "wrong answer";

/// All clients of one worker.
pub struct Echo<D = WebSocket, C = Texts> {
    speaks: PhantomData<(D, C)>,
    clients: Vec<Client>,
    /// mean time between two messages of one client; 0: closed
    gap_ns: u64,
    /// one per client if gaps are random: the n-th then follows from the seed, whatever happens to other clients
    gaps: Vec<fastrand::Rng>,
    payload: Vec<u8>,
    /// as it is sent
    framed: Vec<u8>,
    stamps: fastrand::Rng,
    phases: fastrand::Rng,
    open_attempts: u32,
}

impl<D: Driver, C: EchoFraming<D>> Bots for Echo<D, C> {
    type Driver = D;
    type Settings = EchoBots;

    fn metric_names(_: &EchoBots) -> Arc<MetricNames> {
        let causes = [&disconnects::CAUSES[..], &[WRONG_ANSWER]].concat();
        disconnects::metric_names(
            &["echo"],
            &causes,
            &[OPEN_TIME, HANDSHAKE_REDIRECTS],
            &[(WRONG_ANSWER, ErrorKind::WrongReply)],
        )
    }

    fn new(echo: &EchoBots, plan: &WorkerPlan) -> Self {
        let payload = vec![b'x'; echo.payload_bytes];
        let gap_ns = if echo.rate_per_s > 0.0 { (1e9 / echo.rate_per_s) as u64 } else { 0 };
        let gaps = match plan.arrivals {
            Arrivals::Poisson if gap_ns > 0 => {
                let mut seeds = fastrand::Rng::with_seed(!plan.seed);
                (0..plan.units).map(|_| seeds.fork()).collect()
            }
            Arrivals::Poisson | Arrivals::Even | Arrivals::Burst | Arrivals::Closed => Vec::new(),
        };
        Echo {
            speaks: PhantomData,
            clients: (0..plan.units).map(|_| Client::default()).collect(),
            gap_ns,
            gaps,
            framed: C::framed(&payload),
            payload,
            phases: fastrand::Rng::with_seed(plan.seed),
            stamps: fastrand::Rng::with_seed(plan.seed.rotate_left(32)),
            open_attempts: plan.open_attempts,
        }
    }

    fn join(&mut self, unit: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        if self.gap_ns > 0 {
            let phase_ns = self.random_gap_ns(unit).unwrap_or_else(|| self.phases.u64(0..self.gap_ns));
            ctx.at(planned_ns + phase_ns, unit, SEND);
        }
        ctx.open(unit, 0);
    }

    fn opened(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, D>) {
        self.clients[bot as usize].connection = Some(connection);
        self.clients[bot as usize].failures = 0;
        if self.gap_ns == 0 {
            self.send(bot, ctx.now_ns(), ctx);
        }
    }

    fn received(
        &mut self,
        _: ConnectionId,
        bot: u32,
        received: D::Received<'_>,
        at_ns: u64,
        ctx: &mut BotContext<'_, D>,
    ) {
        C::each(received, |message| self.receive(bot, message, at_ns, ctx));
    }

    fn due(&mut self, bot: u32, what: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        if what == COME_BACK {
            ctx.open(bot, 0);
            return;
        }
        let gap_ns = self.random_gap_ns(bot).unwrap_or(self.gap_ns);
        ctx.at(planned_ns + gap_ns, bot, SEND);
        self.send(bot, planned_ns, ctx);
    }

    fn closed(&mut self, _: ConnectionId, bot: u32, why: Closed, ctx: &mut BotContext<'_, D>) {
        disconnects::count(&why, ctx);
        let failures = self.clients[bot as usize].failures + 1;
        self.clients[bot as usize] = Client { failures, ..Client::default() };
        if failures < self.open_attempts {
            ctx.at(ctx.now_ns() + COME_BACK_NS * u64::from(failures), bot, COME_BACK);
        }
    }

    fn has_drained(&mut self, _: &mut BotContext<'_, D>) -> bool {
        self.clients.iter().all(|client| client.open_requests.is_empty())
    }
}

impl<D: Driver, C: EchoFraming<D>> Echo<D, C> {
    /// An exponential gap; `None` where they are even.
    fn random_gap_ns(&mut self, bot: u32) -> Option<u64> {
        let random = self.gaps.get_mut(bot as usize)?;
        // 1 − [0, 1) is never 0, so the logarithm is finite.
        Some((-(1.0 - random.f64()).ln() * self.gap_ns as f64) as u64)
    }

    fn receive(&mut self, bot: u32, message: &[u8], at_ns: u64, ctx: &mut BotContext<'_, D>) {
        let Some((request, stamp)) = self.clients[bot as usize].open_requests.pop_front() else {
            return ctx.error_with(WRONG, || disconnects::quoted(message));
        };
        let (front, rest) = self.payload.split_at(self.payload.len().min(STAMP_BYTES));
        if message.strip_prefix(&stamp[..front.len()]) == Some(rest) {
            ctx.answered(request, at_ns);
        } else {
            ctx.failed(request);
            ctx.error_with(WRONG, || disconnects::quoted(message));
        }
        if self.gap_ns == 0 && !ctx.drains() {
            self.send(bot, at_ns, ctx);
        }
    }

    fn send(&mut self, bot: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let client = &mut self.clients[bot as usize];
        let Some(connection) = client.connection else { return ctx.not_sent(ECHO, planned_ns) };
        let stamp = letters(self.stamps.u64(..));
        let stamp_bytes = self.payload.len().min(STAMP_BYTES);
        self.framed[..stamp_bytes].copy_from_slice(&stamp[..stamp_bytes]);
        if let Some(request) =
            ctx.request(connection, ECHO, planned_ns, SendLag::Unrecorded, C::message(&self.framed))
        {
            client.open_requests.push_back((request, stamp));
        }
    }
}

/// A number as text: a letter for every four bits.
fn letters(number: u64) -> [u8; STAMP_BYTES] {
    std::array::from_fn(|at| b'a' + (number >> (4 * at) & 0xf) as u8)
}
