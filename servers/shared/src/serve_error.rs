//! Why a server could not start or had to stop.

use std::{io, net::SocketAddr, path::PathBuf};

use crate::fault::{Fault, Server};

/// How the message of `ServeError::Quota` begins: what plants a quota can tell that it is not permitted from other failures.
pub const NO_QUOTA: &str = "the fault throttled cannot be planted here: no control group can be made";

/// Cause and remedy of a server that did not run, or did not run to its ordinary end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on; choose another one, or stop who holds it.
    #[error("cannot listen on {address} ({source}); choose another address with --listen")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The address for the metrics cannot be listened on; choose another one.
    #[error("cannot listen on {address} for the metrics ({source}); choose another address with --metrics")]
    Metrics {
        /// The address that was asked for.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The tick log holds an earlier run; a second run in the same file would mix the results of both.
    #[error(
        "{path}: this tick log exists already, and a second run in it would mix the results; \
         remove it, name another file, or pass --append"
    )]
    TickLogExists {
        /// The file that exists.
        path: PathBuf,
    },
    /// The tick log cannot be opened or written. A server whose own ticks go unrecorded stops, and says so.
    #[error("{path}: cannot write the tick log ({source}); free some space or name another file")]
    TickLog {
        /// The file that failed.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Anyone who reaches the address could change scores; give the callers keys, or say that this is meant.
    #[error(
        "{address} can be reached from elsewhere and would take unsigned changes; pass --keys FILE, or --open"
    )]
    Unsigned {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The file of keys cannot be used; correct it.
    #[error(
        "{path}: cannot read the keys ({source}); each line is an id and a secret of 32 or more hexadecimal digits"
    )]
    Keys {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The data directory cannot be read or written. What was acknowledged is on disk.
    #[error("{path}: cannot keep the data there ({source}); free some space or name another directory")]
    Data {
        /// The directory or file that failed.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process uses the data directory; stop it, or choose another directory.
    #[error("{path}: another process keeps its data there; stop it or name another directory")]
    DataInUse {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the data directory is not there, though others say that it was. Restore it from a backup.
    #[error("{path}: this file is missing, and others that belong to it are there; restore it from a backup")]
    DataMissing {
        /// The file.
        path: PathBuf,
    },
    /// A file of the data directory is damaged where it cannot have been torn by a crash. Restore it from a backup.
    #[error("{path}: damaged at byte {offset}, with data behind it; restore the file from a backup")]
    DataCorrupt {
        /// The file.
        path: PathBuf,
        /// Where the damage begins.
        offset: u64,
    },
    /// A file of the data directory has a record that no service writes, though its checksum is right. Restore it from a
    /// backup.
    #[error(
        "{path}: a record in the frame at byte {offset} cannot be restored ({what}), so this service has not written it; \
         restore the file from a backup"
    )]
    DataInvalid {
        /// The file.
        path: PathBuf,
        /// Where the frame begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A leaderboard cannot be made, for which the system starts no thread; choose another implementation.
    #[error("cannot make a leaderboard: {why}")]
    Board {
        /// What is wrong.
        why: String,
    },
    /// The store cannot be used; start it, or correct its address.
    #[error("cannot use the store {address} ({why}); start it, or correct --store")]
    Store {
        /// Where it should be.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// The broker of several nodes cannot be used; start it, or correct its address.
    #[error("cannot use the NATS server {address} ({why}); start it, or correct --nats")]
    Broker {
        /// Where it should be, without credentials.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// The file of the broker's credentials cannot be read; correct it.
    #[error("{path}: cannot read the login ({source}); its first line is USER:PASSWORD or TOKEN")]
    BrokerLogin {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another node of this name is there; choose another name, or stop that one.
    #[error("a node called {name} is there already; choose another name with --node, or stop that one")]
    NodeName {
        /// The name.
        name: String,
    },
    /// With a store there is nothing to keep in a directory; leave one of the options out.
    #[error("--data cannot be used with --store: the store keeps the leaderboards; leave one of them out")]
    StoreAndData,
    /// An option is outside of its range.
    #[error("--{option} {value} is out of range: {range}")]
    Option {
        /// The option's name as on the command line.
        option: &'static str,
        /// The value that was given.
        value: String,
        /// What is allowed.
        range: &'static str,
    },
    /// The server has nothing in which this fault could be planted; choose one of those that are named.
    #[error("serve {server} cannot plant the fault {fault}; it can plant {known}")]
    Fault {
        /// Which server.
        server: Server,
        /// What was asked for.
        fault: Fault,
        /// The names of all kinds that this server can plant.
        known: String,
    },
    /// A CPU quota was asked for, and no control group can be made; run it where one can.
    #[error(
        "{NO_QUOTA} ({why}); run it as root, or in a control group that was delegated to you together with its cpu \
         controller"
    )]
    Quota {
        /// Which group was refused, and how.
        why: String,
    },
    /// The system refused something that a server cannot do without.
    #[error("{call} failed ({source})")]
    System {
        /// What was asked of the system.
        call: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A server thread ended before its time. This is a bug of ours; figures up to here are in the tick log.
    #[error("server thread {thread} ended unexpectedly; this is a bug, what was logged until then is intact")]
    ThreadLost {
        /// Which one.
        thread: usize,
    },
}

impl ServeError {
    /// Names the file of the data directory that failed, for use in `map_err`.
    pub fn data(path: &std::path::Path) -> impl Fn(io::Error) -> ServeError {
        move |source| ServeError::Data { path: path.to_owned(), source }
    }

    /// Names the call that failed, for use in `map_err`.
    pub fn system(call: &'static str) -> impl FnOnce(io::Error) -> ServeError {
        move |source| ServeError::System { call, source }
    }
}
