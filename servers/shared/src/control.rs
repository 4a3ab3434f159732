//! The controlling thread's part in every server: startup errors, the threads, and their shutdown.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::fault::process::ProcessFaults;
use crate::fault::{Fault, Faults, Server};
use crate::listener::{Listener, Readiness};
use crate::memory_return::MemoryReturn;
use crate::shutdown::{AllSignalsBlocked, Ear, Heard};
use crate::thread::Common;
use crate::{ServeError, Shutdown, clock, thread_table};

/// The longest rest of the controlling thread: how late it notices that a thread has ended by itself.
pub const REST_NS: u64 = 1_000_000_000;

/// How long threads have that were told to end.
pub const END_NS: u64 = 2_000_000_000;

/// A server that listens and has no threads yet.
pub struct Listening {
    /// Where it listens; the port is never 0.
    pub address: SocketAddr,
    /// The socket that accepts.
    pub listener: Listener,
    /// Sockets that fit one thread's descriptor table.
    pub table_sockets: usize,
    faults: Option<Arc<Faults>>,
    ear: Ear,
}

impl Listening {
    /// Blocks the signals, raises the limit of descriptors and binds the address.
    pub fn on(
        listen: SocketAddr,
        readiness: Readiness,
        (server, faults): (Server, &[Fault]),
        shutdown: &Option<Shutdown>,
    ) -> Result<Listening, ServeError> {
        let faults = Faults::of(server, faults)?;
        let table_sockets = thread_table::raise_limit();
        let listen_error = |source| ServeError::Listen { address: listen, source };
        let listener = Listener::bind(listen, readiness).map_err(listen_error)?.with_faults(faults.clone());
        let address = listener.address().map_err(ServeError::system("getsockname"))?;
        let ear = Ear::new(shutdown.clone()).map_err(ServeError::system("signalfd"))?;
        Ok(Listening { address, listener, table_sockets, faults, ear })
    }

    /// Ready to start threads.
    pub fn crew(self) -> Result<Crew, ServeError> {
        let Listening { listener, table_sockets, faults, ear, .. } = self;
        let process_faults =
            ProcessFaults::start(faults.as_ref()).map_err(ServeError::system("starting a thread"))?;
        let common = Arc::new(Common::new(listener, faults, table_sockets));
        let memory = MemoryReturn::new();
        Ok(Crew { common, ear, threads: Vec::new(), memory, _process_faults: process_faults })
    }
}

/// A server's threads, as the controlling one sees them.
pub struct Crew {
    /// What its threads share.
    pub common: Arc<Common>,
    ear: Ear,
    /// None when it was joined.
    threads: Vec<Option<JoinHandle<io::Result<()>>>>,
    /// Returns freed memory to the system from time to time.
    pub memory: MemoryReturn,
    _process_faults: Option<ProcessFaults>,
}

impl Crew {
    /// Starts one more thread; where that fails, the others end.
    pub fn spawn(
        &mut self,
        name: String,
        run: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), ServeError> {
        // The thread inherits the mask: no signal ever interrupts it.
        let _blocked = AllSignalsBlocked::new();
        let spawned = Builder::new().name(name).stack_size(512 * 1024).spawn(run);
        if spawned.is_err() {
            self.common.going_down.store(true, Ordering::Release);
        }
        self.threads.push(Some(spawned.map_err(ServeError::system("starting a thread"))?));
        Ok(())
    }

    /// Waits at most `timeout_ns` for the end, or for something to read from another descriptor.
    pub fn listen(&self, timeout_ns: u64, other: Option<BorrowedFd<'_>>) -> Heard {
        self.ear.listen(timeout_ns, other)
    }

    /// What the controlling thread does once a second or more often. Errors: a thread has ended by itself.
    pub fn check(&mut self) -> Result<(), ServeError> {
        let common = &self.common;
        self.memory
            .look(common.clients.load(Ordering::Relaxed), common.clients_most.swap(0, Ordering::Relaxed));
        let ended = |one: &Option<JoinHandle<_>>| one.as_ref().is_some_and(JoinHandle::is_finished);
        let Some(thread) = self.threads.iter().position(ended) else { return Ok(()) };
        self.join(thread).and(Err(ServeError::ThreadLost { thread }))
    }

    /// Waits for the end of one thread.
    pub fn wait(&self, thread: usize, by_ns: u64) {
        while self.threads[thread].as_ref().is_some_and(|one| !one.is_finished()) && clock::now_ns() < by_ns {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends all threads. Errors: one has failed, or does not end in time.
    pub fn end(&mut self, by_ns: u64) -> Result<(), ServeError> {
        self.common.listener.refuse();
        self.common.going_down.store(true, Ordering::Release);
        (0..self.threads.len()).for_each(|thread| self.wait(thread, by_ns));
        (0..self.threads.len()).map(|thread| self.join(thread)).fold(Ok(()), Result::and)
    }

    /// For a server that only serves: waits for the end, and ends the threads.
    pub fn serve(mut self) -> Result<(), ServeError> {
        let mut served = Ok(());
        while served.is_ok() && !self.listen(REST_NS, None).the_end {
            served = self.check();
        }
        let ended = self.end(clock::now_ns() + END_NS);
        served.and(ended)
    }

    /// What a thread that has ended has to say; one that has not is lost.
    fn join(&mut self, thread: usize) -> Result<(), ServeError> {
        let Some(one) = self.threads[thread].take() else { return Ok(()) };
        if !one.is_finished() {
            return Err(ServeError::ThreadLost { thread });
        }
        match one.join() {
            Ok(ended) => ended.map_err(ServeError::system("epoll")),
            Err(_) => Err(ServeError::ThreadLost { thread }),
        }
    }
}
