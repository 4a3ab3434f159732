//! Operations in flight, looked up by the tags in their replies.

use drivers::grid::Kind;
use engine::RequestId;

use super::versions::{Read, Write};

/// What was known of the key when it was sent.
#[derive(Clone, Copy)]
pub(super) enum Version {
    Read(Read),
    Write(Write),
}

#[derive(Clone, Copy)]
pub(super) struct InFlight {
    pub(super) request: RequestId,
    pub(super) connection: u32,
    pub(super) key: u32,
    pub(super) kind: Kind,
    pub(super) is_put: bool,
    pub(super) planned_ns: u64,
    pub(super) version: Version,
}

/// Operations in flight by their tags: the place in the low bits, and above them a number that changes with each use, so
/// that a reply that comes twice finds nothing the second time.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<(u8, Option<InFlight>)>,
    free: Vec<u32>,
}

const PLACE_BITS: u32 = 24;

impl Slots {
    pub(super) fn with_capacity(count: usize) -> Slots {
        Slots { slots: Vec::with_capacity(count), free: Vec::with_capacity(count) }
    }

    /// The tag of the next operation. It is to be entered or given back.
    pub(super) fn take_tag(&mut self) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            // No plan has 2^24 operations in flight.
            self.slots.len() as u32 - 1
        });
        u32::from(self.slots[place as usize].0) << PLACE_BITS | place
    }

    pub(super) fn give_back(&mut self, tag: u32) {
        self.free.push(tag & ((1 << PLACE_BITS) - 1));
    }

    pub(super) fn enter(&mut self, tag: u32, one: InFlight) {
        self.slots[(tag & ((1 << PLACE_BITS) - 1)) as usize].1 = Some(one);
    }

    /// The operation with this tag, if it is still in flight.
    pub(super) fn get(&self, tag: u32) -> Option<InFlight> {
        let (turn, slot) = self.slots.get((tag & ((1 << PLACE_BITS) - 1)) as usize)?;
        slot.filter(|_| tag >> PLACE_BITS == u32::from(*turn))
    }

    /// Takes the operation with this tag out, if it is in flight on this connection.
    pub(super) fn take(&mut self, tag: u32, connection: u32) -> Option<InFlight> {
        let place = tag & ((1 << PLACE_BITS) - 1);
        let (turn, slot) = self.slots.get_mut(place as usize)?;
        let one = slot.filter(|one| one.connection == connection && tag >> PLACE_BITS == u32::from(*turn))?;
        (*turn, *slot) = (turn.wrapping_add(1), None);
        self.free.push(place);
        Some(one)
    }

    /// Takes out all of a connection.
    pub(super) fn end(&mut self, connection: u32, mut ended: impl FnMut(InFlight)) {
        for (place, (turn, slot)) in self.slots.iter_mut().enumerate() {
            let Some(one) = slot.take_if(|one| one.connection == connection) else { continue };
            *turn = turn.wrapping_add(1);
            self.free.push(place as u32);
            ended(one);
        }
    }
}
