//! A message between its plan and the kernel: what waits in a connection's buffer, and what it owes once it is sent.

use measure::{LedgerPart, Phase};

use super::recorder::Recorder;
use super::requests::PendingRequests;
use crate::ids::RequestId;

/// Whether the send lag of a message is still to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendLag {
    /// it is recorded when the kernel is first offered the message
    Unrecorded,
    /// the message found all connections busy, and `BotContext::waits` recorded it
    Recorded,
}

/// A message that is encoded and that the kernel has not taken whole.
pub(crate) struct Unsent {
    pub(crate) planned_ns: u64,
    /// it has departed when `Connection::written` is as much
    pub(crate) end: u64,
    pub(crate) owes: Owes,
    pub(crate) op: u16,
    pub(crate) phase: Phase,
    pub(crate) send_lag: SendLag,
}

/// What a message owes once it has left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owes {
    Nothing,
    Reply(RequestId),
    /// one delivery to each member
    Deliveries {
        sender: u32,
        seq: u32,
    },
}

impl Unsent {
    /// Records that the message has departed.
    #[inline]
    pub(super) fn departed(
        &self,
        departed_ns: u64,
        recorder: &mut Recorder,
        requests: &mut PendingRequests,
        ledger: &mut Option<Box<LedgerPart>>,
    ) {
        recorder.sent(usize::from(self.op), self.phase, matches!(self.owes, Owes::Reply(_)));
        match self.owes {
            Owes::Nothing => {}
            Owes::Reply(request) => requests.sent(request, departed_ns),
            Owes::Deliveries { sender, seq } => {
                if let Some(ledger) = ledger {
                    ledger.departed(sender, seq, departed_ns);
                }
            }
        }
    }
}
