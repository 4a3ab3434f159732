//! The ids by which bots refer to their connections and requests. Each carries the generation of its slot, so a stale
//! id never finds the slot's current user.

/// A connection of this worker; never reused for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnectionId {
    /// That of no connection, which is never found.
    pub(crate) const NONE: ConnectionId = ConnectionId { index: u32::MAX, generation: 0 };
}

/// A reply that is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
