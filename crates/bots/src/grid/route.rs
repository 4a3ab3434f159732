//! Which connection an operation takes: the one to its key's owner, or any of its link if the owner is not known or not
//! connected (a member forwards what is not its own).
//!
//! The connections of all links are stored consecutively, each link's in the order of the members.

use std::net::SocketAddr;

use engine::ConnectionId;

/// The owner is no member that we know.
const NO_MEMBER: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
pub(super) struct Connection {
    /// `None` while it is not open
    pub(super) open: Option<ConnectionId>,
    /// in a row
    pub(super) failures: u64,
}

/// All connections, and the owners of all keys.
pub(super) struct Routes {
    members: Vec<SocketAddr>,
    connections: Vec<Connection>,
    /// by key; empty until they are known
    owners: Vec<u32>,
    /// where the search for any open connection begins
    next: u32,
}

impl Routes {
    /// `links` links, each with a connection to every member; there is at least one member.
    pub(super) fn new(links: usize, members: &[SocketAddr]) -> Routes {
        let connections = vec![Connection::default(); links * members.len()];
        Routes { members: members.to_vec(), connections, owners: Vec::new(), next: 0 }
    }

    fn count(&self) -> u32 {
        self.members.len() as u32
    }

    /// The connections of a link, each with the place of its member among all.
    pub(super) fn connections_of(&self, link: u32) -> impl Iterator<Item = (u32, usize)> + use<> {
        let first = link * self.count();
        (0..self.count()).map(move |member| (first + member, member as usize))
    }

    pub(super) fn connection(&mut self, at: u32) -> &mut Connection {
        &mut self.connections[at as usize]
    }

    pub(super) fn link_of(&self, connection: u32) -> u32 {
        connection / self.count()
    }

    pub(super) fn member_of(&self, connection: u32) -> usize {
        (connection % self.count()) as usize
    }

    /// Whether any connection of a link is open.
    pub(super) fn is_open(&self, link: u32) -> bool {
        let first = link as usize * self.members.len();
        self.connections[first..first + self.members.len()].iter().any(|connection| connection.open.is_some())
    }

    /// A member has told who owns the partitions. `partition_of`: that of a key, below a number.
    pub(super) fn take_owners(
        &mut self,
        owners: &[Option<SocketAddr>],
        keys: usize,
        partition_of: impl Fn(usize, u32) -> u32,
    ) {
        if self.members.len() < 2 || owners.iter().all(Option::is_none) {
            return;
        }
        let place = |owner: &Option<SocketAddr>| {
            let place = self.members.iter().position(|member| Some(*member) == *owner);
            place.map_or(NO_MEMBER, |at| at as u32)
        };
        let by_partition: Vec<u32> = owners.iter().map(place).collect();
        let count = by_partition.len() as u32;
        let owner = |key| by_partition.get(partition_of(key, count) as usize).copied().unwrap_or(NO_MEMBER);
        self.owners = (0..keys).map(owner).collect();
    }

    /// The connection of a link for an operation on a key; `None` while none is open.
    pub(super) fn route(&mut self, link: u32, key: u32) -> Option<(u32, ConnectionId)> {
        let (count, first) = (self.count(), link * self.count());
        let open = |member: u32| {
            let at = first + member;
            self.connections[at as usize].open.map(|connection| (at, connection))
        };
        let owner = self.owners.get(key as usize).copied().filter(|owner| *owner < count);
        if let Some(found) = owner.and_then(open) {
            return Some(found);
        }
        let found = (0..count).map(|turn| (self.next + turn) % count).find_map(open);
        self.next = (self.next + 1) % count;
        found
    }
}
