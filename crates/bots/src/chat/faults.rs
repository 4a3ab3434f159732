//! Client misbehaviour: reading slowly or not at all, half-closing, reconnecting all at once, sending garbage.

use drivers::Driver;
use engine::{BotContext, ConnectionId};
use plan::FaultKind;

use super::dialect::Dialect;
use super::{Chat, KEEP, MISBEHAVE, STORM, Standing};

/// A slow reader takes this much per `SLOW_GAP_NS`.
const SLOW_BYTES: usize = 1024;
const SLOW_GAP_NS: u64 = 1_000_000_000;
/// A line beyond every cap that a chat has.
const HUGE_LINE_BYTES: usize = 100_000;

impl<L, D> Chat<L, D>
where
    L: Dialect,
    D: for<'a> Driver<Send<'a> = &'a [u8], Received<'a> = &'a [u8]>,
{
    /// A new member begins to behave badly, if it is one of those.
    pub(super) fn turn_bad(&mut self, connection: ConnectionId, bot: u32, ctx: &mut BotContext<'_, D>) {
        match self.people[bot as usize].fault {
            Some(FaultKind::SlowReader) => ctx.read_slowly(connection, SLOW_BYTES, SLOW_GAP_NS),
            Some(FaultKind::Stalled) => ctx.stop_reading(connection),
            Some(FaultKind::HalfOpen) => ctx.shut_sending(connection),
            Some(FaultKind::ReconnectStorm | FaultKind::Malformed) | None => {}
        }
    }

    /// What bad behaviour there is to plan once all are in.
    pub(super) fn plan_fault(&mut self, bot: u32, now_ns: u64, begin_ns: u64, ctx: &mut BotContext<'_, D>) {
        let person = &self.people[bot as usize];
        match person.fault {
            // All at the same instant: that is the storm.
            Some(FaultKind::ReconnectStorm) => ctx.at(now_ns + person.period_ns, bot, STORM),
            Some(FaultKind::Malformed) => ctx.at(begin_ns, bot, MISBEHAVE),
            _ => {}
        }
    }

    pub(super) fn storm(&mut self, bot: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let person = &mut self.people[bot as usize];
        ctx.at(planned_ns + person.period_ns, bot, STORM);
        // A client still reconnecting from the last storm just continues.
        if let Some(connection) = person.connection.take() {
            person.standing = Standing::Away;
            let now_ns = ctx.now_ns();
            ctx.ledger().left(bot, now_ns);
            ctx.close(connection);
            self.come(bot, ctx);
        }
    }

    /// Sends something that no chat allows, each time something else.
    pub(super) fn misbehave(&mut self, bot: u32, planned_ns: u64, ctx: &mut BotContext<'_, D>) {
        let gap_ns = self.gap_ns();
        ctx.at(planned_ns + gap_ns, bot, MISBEHAVE);
        let person = &self.people[bot as usize];
        let (Some(connection), Standing::Member) = (person.connection, person.standing) else { return };
        self.out.clear();
        match self.random.u8(0..5) {
            0 => self.out.extend_from_slice(b"\xff\xfe not UTF-8 \xc3\x28\n"),
            1 => self.out.extend_from_slice(b"a NUL \0 within\n"),
            2 => self.out.extend_from_slice(b"a line that never ends"),
            3 => self.out.extend_from_slice(b"/nick \x07 no name\n"),
            _ => {
                self.out.resize(HUGE_LINE_BYTES, b'x');
                self.out.push(b'\n');
            }
        }
        ctx.send(connection, KEEP, planned_ns, &self.out);
    }
}
