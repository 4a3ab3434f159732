//! The partition table: which member owns which partition.

use super::uuid::Uuid;
use super::views::PartitionsView;

/// Owner of each partition, as the members last said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionTable {
    version: i32,
    owners: Vec<Option<Uuid>>,
}

impl PartitionTable {
    /// A table of `partition_count` partitions whose owners are not known yet.
    pub fn new(partition_count: u32) -> Self {
        PartitionTable { version: -1, owners: vec![None; partition_count as usize] }
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> u32 {
        self.owners.len() as u32
    }

    /// The version of the view that was taken last; −1 before the first.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// Takes a view, unless it says nothing or (`same_source`: it comes from the member that sent the last one) is no
    /// newer. Partitions beyond the count are left out. Returns whether it was taken.
    pub fn take(&mut self, view: &PartitionsView, same_source: bool) -> bool {
        if view.partitions.is_empty() || same_source && view.version <= self.version {
            return false;
        }
        self.version = view.version;
        self.owners.fill(None);
        for (owner, partitions) in &view.partitions {
            for partition in partitions {
                if let Some(entry) = usize::try_from(*partition).ok().and_then(|at| self.owners.get_mut(at)) {
                    *entry = Some(*owner);
                }
            }
        }
        true
    }

    /// The member that owns `partition`; `None` while it has none.
    pub fn owner(&self, partition: u32) -> Option<Uuid> {
        self.owners.get(partition as usize).copied().flatten()
    }

    /// Owners in the order of their partitions.
    pub fn owners(&self) -> &[Option<Uuid>] {
        &self.owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_views_empty_ones_and_partitions_that_do_not_exist_change_nothing() {
        let (a, b) = (Uuid::from_halves(0, 1), Uuid::from_halves(0, 2));
        let mut table = PartitionTable::new(3);
        let view = |version, partitions| PartitionsView { version, partitions };
        assert!(table.take(&view(5, vec![(a, vec![0, 2]), (b, vec![1, 3, -1])]), true));
        assert_eq!(table.owners(), [Some(a), Some(b), Some(a)]);
        assert_eq!(table.owner(3), None);
        assert!(!table.take(&view(5, vec![(b, vec![0, 1, 2])]), true));
        assert!(!table.take(&view(6, vec![]), true));
        assert_eq!(table.owner(0), Some(a));
        assert!(
            table.take(&view(1, vec![(b, vec![0])]), false),
            "a restarted cluster counts from the beginning"
        );
        assert_eq!(table.owners(), [Some(b), None, None]);
    }
}
