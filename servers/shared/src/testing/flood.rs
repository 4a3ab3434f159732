//! For tests: clients that send requests without end, and others that send one, against a server thread that is run
//! turn by turn.
//!
//! All requests are in the sockets before the turn begins, so that nothing depends on which side is faster. A read
//! takes little here, so that many of them fit into what a socket holds.

use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crate::listener::{Listener, Readiness};
use crate::thread::{Common, Core, Serve, turn};

/// What one read takes. A multiple of the shorter requests, so that a read ends with one.
pub const READ_BYTES: usize = 240;

/// Reads of one client that any server takes before it turns to the next one.
const READS_MAX: usize = 4;

/// Clients that ask without end, and those that ask once.
const FLOODS: usize = 6;
const HONEST: usize = 6;

/// What is shared by the one thread of a server that takes no connections.
pub fn common() -> Arc<Common> {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), Readiness::Connected).unwrap();
    Arc::new(Common::new(listener, None, 64))
}

/// Of a thread whose reads take `READ_BYTES`.
pub fn core<C, K: Copy + Ord>(common: &Arc<Common>) -> Core<C, K> {
    Core::new(common, READ_BYTES).unwrap()
}

/// What clients ask of a server.
pub struct Flood<'a, S> {
    /// Takes in a connection.
    pub admit: fn(&mut S, OwnedFd),
    /// What each connection begins with.
    pub opening: &'a [u8],
    /// The n-th request of a connection, from 0.
    pub request: &'a dyn Fn(usize) -> Vec<u8>,
    /// The number of answers in what a client has received.
    pub answers: fn(&[u8]) -> usize,
}

/// A client of a thread that is run turn by turn.
pub struct Client {
    stream: UnixStream,
    /// The server's socket as well, to see what was not read.
    theirs: UnixStream,
    /// What it was answered.
    pub heard: Vec<u8>,
}

impl Client {
    /// Connected to this server.
    pub fn connect<S: Serve>(server: &mut S, admit: fn(&mut S, OwnedFd)) -> Client {
        let (theirs, stream) = UnixStream::pair().unwrap();
        for end in [&theirs, &stream] {
            end.set_nonblocking(true).unwrap();
        }
        admit(server, theirs.try_clone().unwrap().into());
        Client { stream, theirs, heard: Vec::new() }
    }

    /// Sends this, has the server make a turn, and takes what has come.
    pub fn ask<S: Serve>(&mut self, server: &mut S, bytes: &[u8]) {
        self.say(bytes);
        turn(server, 0).unwrap();
        self.hear();
    }

    fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Takes what has come. The end of it is an error here: nothing more is there now.
    fn hear(&mut self) {
        let _ = self.stream.read_to_end(&mut self.heard);
    }

    fn unread_bytes(&self) -> usize {
        rustix::io::ioctl_fionread(&self.theirs).unwrap() as usize
    }
}

/// Asserts that a turn takes a bounded part of what each client asks without end, and answers each of the others; and that the
/// turns after it answer the rest.
pub fn check<S: Serve>(server: &mut S, flood: &Flood<'_, S>) {
    // Sockets that were connected first are read first.
    let mut clients: Vec<Client> =
        (0..FLOODS + HONEST).map(|_| Client::connect(server, flood.admit)).collect();
    clients.iter_mut().for_each(|client| client.say(flood.opening));
    while clients.iter().any(|client| client.unread_bytes() > 0) || !server.core().unread.is_empty() {
        turn(server, 0).unwrap();
    }
    for client in &mut clients {
        client.hear();
        client.heard.clear();
    }
    let (floods, honest) = clients.split_at_mut(FLOODS);
    // In one turn a socket may be announced, and then read on: twice the limit.
    let most_bytes = 2 * READS_MAX * READ_BYTES;
    let (mut requests, mut count) = (Vec::new(), 0);
    while requests.len() < 8 * most_bytes {
        requests.extend((flood.request)(count));
        count += 1;
    }
    floods.iter_mut().for_each(|client| client.say(&requests));
    honest.iter_mut().for_each(|client| client.say(&(flood.request)(0)));

    turn(server, 0).unwrap();
    for client in floods.iter() {
        let taken = requests.len() - client.unread_bytes();
        assert!(
            (1..=most_bytes).contains(&taken),
            "a turn takes {taken} bytes of a client, of {most_bytes} that it may take"
        );
    }
    for client in honest {
        client.hear();
        assert_eq!((flood.answers)(&client.heard), 1, "{:?}", client.heard.escape_ascii().to_string());
    }
    // At least one of them makes progress in each turn.
    for _ in 0..FLOODS * requests.len().div_ceil(READ_BYTES) {
        turn(server, 0).unwrap();
        floods.iter_mut().for_each(Client::hear);
    }
    for client in floods {
        assert_eq!((client.unread_bytes(), (flood.answers)(&client.heard)), (0, count));
    }
}

/// How often `part` occurs in `bytes`.
pub fn count(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|window| *window == part).count()
}
