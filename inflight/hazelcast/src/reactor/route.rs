//! Which connection an operation takes: that of its partition's owner, or any if the owner is not connected (a member
//! forwards what is not its own).

use crate::wire::{PartitionTable, PartitionsView, Request, Uuid};

/// No connection.
const NONE: u32 = u32::MAX;

/// The partition table, and the connections of its owners.
#[derive(Debug, Default)]
pub(super) struct Routes {
    table: PartitionTable,
    /// the connection that the last view came by
    source: Option<usize>,
    by_partition: Vec<u32>,
    ready: Vec<usize>,
    next: usize,
}

impl Routes {
    pub fn table(&self) -> &PartitionTable {
        &self.table
    }

    /// A cluster with so many partitions. Begins a new table, unless `keeps` says that it is the same cluster.
    pub fn begin(&mut self, partition_count: u32, keeps: bool) {
        if !keeps || self.table.partition_count() != partition_count {
            self.table = PartitionTable::new(partition_count);
            self.source = None;
        }
    }

    /// A view came by this connection.
    pub fn take(&mut self, view: &PartitionsView, by: usize) {
        if self.table.take(view, self.source == Some(by)) {
            self.source = Some(by);
        }
    }

    /// The usable connections have changed, or the table has. `by` is gone if it is not among them.
    pub fn rebuild(&mut self, ready: impl Iterator<Item = (usize, Uuid)> + Clone) {
        self.ready.clear();
        self.ready.extend(ready.clone().map(|(at, _)| at));
        if self.source.is_some_and(|source| !self.ready.contains(&source)) {
            // Its number may soon be another connection's; the table itself stays until a new view arrives.
            self.source = None;
        }
        self.by_partition.clear();
        self.by_partition.extend(self.table.owners().iter().map(|owner| {
            let found = owner.and_then(|owner| ready.clone().find(|(_, member)| *member == owner));
            found.map_or(NONE, |(at, _)| at as u32)
        }));
    }

    /// The connection for an operation; `None` while there is none.
    pub fn connection_for(&mut self, request: &Request) -> Option<usize> {
        if let Some(key) = request.key() {
            let partition = key.partition(self.by_partition.len() as u32) as usize;
            match self.by_partition.get(partition) {
                Some(&at) if at != NONE => return Some(at as usize),
                _ => {}
            }
        }
        self.next = if self.next + 1 < self.ready.len() { self.next + 1 } else { 0 };
        self.ready.get(self.next).copied()
    }
}
