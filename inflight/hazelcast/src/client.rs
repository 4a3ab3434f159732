//! Thread-safe handles to one reactor thread.
//!
//! `Client` owns the thread; `IMap` is a named map with typed keys and values; every call returns at once with an
//! `Operation`, which is a future and can also be waited for. Values are serialised on the caller's thread and read on
//! the reactor's, straight out of its receive buffer.
//! Dropping the last handle closes the connections; operations in flight then end as failed or unknown.
//! Not here: routing and retries (`reactor`).

mod join;
mod map;
mod operation;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use mio::Waker;

use crate::reactor::{Config, ConnectError, Failure, Outcome, Reactor};
use crate::wire::{Data, Key, MapName, Member, Request};
use join::{Entries, Join};
pub use map::IMap;
pub use operation::{Error, Operation};

/// What is called when an operation ends.
type Completion = Box<dyn FnOnce(Outcome<'_>) + Send>;

/// What looks at the reactor, on its thread.
type Inspection = Box<dyn FnOnce(&Reactor<Completion>) + Send>;

/// Requests to the reactor thread.
enum Command {
    Submit(Request, Completion),
    /// split by partition, which only the reactor knows
    GetAll(MapName, Vec<Key>, Join<Entries>),
    PutAll(MapName, Vec<(Key, Data)>, Join<()>),
    Inspect(Inspection),
    Close,
}

/// A client of a cluster, for any number of threads. Cloning gives another handle to the same connections.
#[derive(Clone)]
pub struct Client {
    thread: Arc<Thread>,
}

/// The reactor's thread, as its handles see it.
struct Thread {
    commands: Sender<Command>,
    waker: Waker,
    /// whether a wake-up is under way that the thread has not seen yet
    is_woken: Arc<AtomicBool>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

/// What a client knows about its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// members that are connected
    pub connected: usize,
    /// members of the cluster, as it last said
    pub members: Vec<Member>,
    /// partitions of all maps
    pub partition_count: u32,
    /// the version of the partition table; −1 before the first
    pub partition_table_version: i32,
    /// the members' version, such as "5.5.0"
    pub server_version: Option<String>,
    /// operations that have not ended
    pub in_flight: usize,
}

impl Client {
    /// Connects to a cluster. Waits at most `Config::connect_timeout`.
    ///
    /// Errors: see `Reactor::connect`.
    pub fn connect(config: Config) -> Result<Self, ConnectError> {
        let reactor = Reactor::connect(config)?;
        let waker = reactor.waker()?;
        let (commands, received) = channel();
        let is_woken = Arc::new(AtomicBool::new(false));
        let sees_woken = is_woken.clone();
        let handle = std::thread::Builder::new()
            .name("hazelcast".to_owned())
            .spawn(move || run(reactor, &received, &sees_woken))?;
        let handle = Mutex::new(Some(handle));
        Ok(Client { thread: Arc::new(Thread { commands, waker, is_woken, handle }) })
    }

    /// A map. It exists as soon as something is put into it.
    pub fn map<K, V>(&self, name: &str) -> IMap<K, V> {
        IMap { name: name.into(), client: self.clone(), types: PhantomData }
    }

    /// What the client knows about its cluster.
    pub fn status(&self) -> Operation<Status> {
        let (sender, operation) = Operation::new();
        let inspect = move |reactor: &Reactor<Completion>| {
            let _ = sender.send(Ok(Status {
                connected: reactor.connected(),
                members: reactor.members().to_vec(),
                partition_count: reactor.partition_table().partition_count(),
                partition_table_version: reactor.partition_table().version(),
                server_version: reactor.server_version().map(str::to_owned),
                in_flight: reactor.in_flight(),
            }));
        };
        self.command(Command::Inspect(Box::new(inspect)));
        operation
    }

    /// Starts an operation of the protocol itself; `read` makes its result out of the answer, on the reactor's thread.
    pub fn submit<V: Send + 'static>(
        &self,
        request: Request,
        read: impl FnOnce(crate::wire::Answer<'_>) -> Result<V, Failure> + Send + 'static,
    ) -> Operation<V> {
        let (sender, operation) = Operation::new();
        let completion = move |outcome: Outcome<'_>| {
            let _ = sender.send(match outcome {
                Outcome::Ok(answer) => read(answer).map_err(Error::Failed),
                Outcome::Failed(failure) => Err(Error::Failed(failure)),
                Outcome::Unknown(failure) => Err(Error::Unknown(failure)),
            });
        };
        self.command(Command::Submit(request, Box::new(completion)));
        operation
    }

    /// A command that cannot be sent is dropped, and with it the operation's sender, which ends it as closed.
    fn command(&self, command: Command) {
        self.thread.command(command);
    }
}

impl Thread {
    fn command(&self, command: Command) {
        if self.commands.send(command).is_ok() && !self.is_woken.swap(true, Ordering::AcqRel) {
            // If the wake-up fails, the poll returns at the next heartbeat at the latest.
            let _ = self.waker.wake();
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.command(Command::Close);
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A completion may drop the last handle, on the thread itself, which cannot join itself.
        if let Some(handle) = handle.filter(|handle| handle.thread().id() != std::thread::current().id()) {
            let _ = handle.join();
        }
    }
}

/// The reactor's thread.
fn run(mut reactor: Reactor<Completion>, received: &Receiver<Command>, is_woken: &AtomicBool) {
    loop {
        // Before the check, so that anything sent from here on wakes the poll below.
        is_woken.store(false, Ordering::Release);
        loop {
            match received.try_recv() {
                Ok(Command::Submit(request, completion)) => reactor.submit(request, completion),
                Ok(Command::GetAll(map, keys, join)) => {
                    let parts = split(keys, |key| key, reactor.partition_table().partition_count());
                    join.expect(parts.len());
                    for keys in parts {
                        reactor.submit(Request::GetAll { map: map.clone(), keys }, join.part());
                    }
                }
                Ok(Command::PutAll(map, entries, join)) => {
                    let parts = split(entries, |(key, _)| key, reactor.partition_table().partition_count());
                    join.expect(parts.len());
                    for entries in parts {
                        reactor.submit(Request::PutAll { map: map.clone(), entries }, join.part());
                    }
                }
                Ok(Command::Inspect(inspect)) => inspect(&reactor),
                Ok(Command::Close) | Err(TryRecvError::Disconnected) => {
                    return reactor.close_all(|completion, outcome| completion(outcome));
                }
                Err(TryRecvError::Empty) => break,
            }
        }
        if reactor.poll(None, |completion, outcome| completion(outcome)).is_err() {
            // The kernel refuses to wait on our descriptor: nothing can be received any more.
            return reactor.close_all(|completion, outcome| completion(outcome));
        }
    }
}

/// Items by the partition of their key.
fn split<I>(items: Vec<I>, key: impl Fn(&I) -> &Key, partition_count: u32) -> Vec<Vec<I>> {
    let mut parts: Vec<Vec<I>> = Vec::new();
    let mut of_partition = vec![None; partition_count.max(1) as usize];
    for item in items {
        let partition = &mut of_partition[key(&item).partition(partition_count) as usize];
        let part = *partition.get_or_insert_with(|| {
            parts.push(Vec::new());
            parts.len() - 1
        });
        parts[part].push(item);
    }
    parts
}
