//! A disk for tests that forgets what was not synced, as a power cut makes a real one do.
//!
//! It is as adverse as POSIX allows. Of data that was written to a file and not synced, any sectors may be on disk and
//! others not, in any order. The file may have any length between the old and the new one, with zeros or other files'
//! old data in sectors that were not written. Names that were created, changed or removed without `sync_names` may be
//! in their old state. It can also run out of room, and cut the power by itself after a given number of calls.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::disk::{Disk, DiskFile};

const SECTOR_BYTES: usize = 512;

#[derive(Clone, Default)]
pub(crate) struct SimulatedDisk(Arc<Mutex<State>>);

type Hook = Box<dyn FnMut() + Send>;

#[derive(Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Calls that are still made; none after the power was cut.
    calls_left: Option<u64>,
    /// Bytes that all files may have together.
    room_bytes: Option<u64>,
    /// Of a log, at once.
    log_room: u64,
    /// Called before each call, but not by the calls that it makes itself.
    hook: Option<Hook>,
}

#[derive(Clone, Default)]
struct Inode {
    bytes: Vec<u8>,
    durable: Vec<u8>,
}

struct SimulatedFile {
    disk: SimulatedDisk,
    inode: usize,
}

fn power_cut() -> io::Error {
    io::Error::other("the power was cut")
}

impl SimulatedDisk {
    pub(super) fn cut_after(&self, calls: u64) {
        self.0.lock().calls_left = Some(calls);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.0.lock().calls_left == Some(0)
    }

    pub(crate) fn limit(&self, room_bytes: Option<u64>) {
        self.0.lock().room_bytes = room_bytes;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().used()
    }

    /// Logs get room for so many bytes at once; none at first.
    pub(super) fn give_log_room(&self, bytes: u64) {
        self.0.lock().log_room = bytes;
    }

    pub(super) fn set_hook(&self, hook: Option<Hook>) {
        self.0.lock().hook = hook;
    }

    /// What a machine finds that starts again after a power cut.
    pub(crate) fn after_power_cut(&self, random: &mut fastrand::Rng) -> SimulatedDisk {
        let state = self.0.lock();
        let mut names = state.durable_names.clone();
        for name in state.names.keys().chain(state.durable_names.keys()) {
            match state.names.get(name) {
                Some(inode) if random.bool() => drop(names.insert(name.clone(), *inode)),
                None if random.bool() => drop(names.remove(name)),
                _ => {}
            }
        }
        let (inodes, log_room) = (&state.inodes, state.log_room);
        let inodes: Vec<Inode> = inodes.iter().map(|inode| inode.after_power_cut(inodes, random)).collect();
        let (names, durable_names) = (names.clone(), names);
        SimulatedDisk(Arc::new(Mutex::new(State {
            inodes,
            names,
            durable_names,
            log_room,
            ..State::default()
        })))
    }

    /// Changes a file out of band.
    pub(super) fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut state = self.0.lock();
        state.inodes.push(Inode { durable: bytes.clone(), bytes });
        let inode = state.inodes.len() - 1;
        state.names.insert(name.to_owned(), inode);
        state.durable_names.insert(name.to_owned(), inode);
    }

    fn call<R>(&self, work: impl FnOnce(&mut State) -> io::Result<R>) -> io::Result<R> {
        let hook = self.0.lock().hook.take();
        if let Some(mut hook) = hook {
            hook();
            self.0.lock().hook = Some(hook);
        }
        let mut state = self.0.lock();
        match &mut state.calls_left {
            Some(0) => return Err(power_cut()),
            Some(left) => *left -= 1,
            None => {}
        }
        work(&mut state)
    }
}

impl State {
    fn used(&self) -> u64 {
        self.names.values().map(|inode| self.inodes[*inode].bytes.len() as u64).sum()
    }

    fn inode(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Inode {
    fn after_power_cut(&self, all: &[Inode], random: &mut fastrand::Rng) -> Inode {
        let (short, long) = (self.durable.len(), self.bytes.len());
        let length = random.usize(short.min(long)..=short.max(long));
        let mut found = self.durable.clone();
        // What is beyond the old length was zeroed, or belonged to another file.
        let stale: &[u8] = if random.bool() { &[] } else { &all[random.usize(..all.len())].bytes };
        let stale_bytes = stale.iter().copied().chain(std::iter::repeat(0));
        found.extend(stale_bytes.skip(short).take(length.saturating_sub(short)));
        for from in (0..length).step_by(SECTOR_BYTES) {
            let to = (from + SECTOR_BYTES).min(length);
            if random.bool()
                && let Some(written) = self.bytes.get(from..to)
            {
                found[from..to].copy_from_slice(written);
            }
        }
        found.truncate(length);
        Inode { durable: found.clone(), bytes: found }
    }
}

impl Disk for SimulatedDisk {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/simulated").join(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.call(|state| Ok(state.names.keys().cloned().collect()))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.call(|state| Ok(state.inodes[state.inode(name)?].bytes.clone()))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.call(|state| {
            state.inodes.push(Inode::default());
            let inode = state.inodes.len() - 1;
            state.names.insert(name.to_owned(), inode);
            Ok(inode)
        })?;
        Ok(Box::new(SimulatedFile { disk: self.clone(), inode }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.call(|state| state.inode(name))?;
        Ok(Box::new(SimulatedFile { disk: self.clone(), inode }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.call(|state| {
            let inode = state.inode(from)?;
            state.names.remove(from);
            state.names.insert(to.to_owned(), inode);
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call(|state| {
            state.inode(name)?;
            state.names.remove(name);
            Ok(())
        })
    }

    fn sync_names(&self) -> io::Result<()> {
        self.call(|state| {
            state.durable_names = state.names.clone();
            Ok(())
        })
    }

    fn log_room(&self) -> RangeInclusive<u64> {
        let bytes = self.0.lock().log_room;
        bytes..=bytes
    }
}

impl DiskFile for SimulatedFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.call(|state| {
            let (from, used) = (offset as usize, state.used());
            let had = state.inodes[self.inode].bytes.len();
            let grows = (from + bytes.len()).saturating_sub(had);
            let fits = state.room_bytes.map_or(grows, |room| (room.saturating_sub(used) as usize).min(grows));
            let written = bytes.len() - (grows - fits);
            let file = &mut state.inodes[self.inode].bytes;
            file.resize(had.max(from + written), 0);
            file[from..from + written].copy_from_slice(&bytes[..written]);
            if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
        })
    }

    fn extend(&mut self, offset: u64, end: u64) -> io::Result<()> {
        self.write_at(offset, &vec![0; end.saturating_sub(offset) as usize])?;
        self.sync()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.disk.call(|state| {
            state.inodes[self.inode].bytes.resize(bytes as usize, 0);
            Ok(())
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.call(|state| {
            let inode = &mut state.inodes[self.inode];
            inode.durable = inode.bytes.clone();
            Ok(())
        })
    }
}
