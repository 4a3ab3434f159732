//! One client's connection, as far as both threads access it.
//!
//! While its request is admitted, the loop writes to a connection and nobody reads it; otherwise it belongs to the
//! network. The handover and its send happen under the line's lock, so that a refusal can never overtake the answer
//! before it. The descriptor is closed when its last user drops it, so its number never refers to another socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use servers_shared::slab::Key;
use servers_shared::stream::{self, Peer};

pub(super) struct Connection {
    fd: OwnedFd,
    pub(super) key: Key,
    side: Mutex<Side>,
}

#[derive(Debug, Default)]
struct Side {
    /// The line's request waits or is being answered.
    is_admitted: bool,
    /// There may be something to read that was left for later.
    more: bool,
    /// What the client has not taken yet, and since when.
    unsent: Vec<u8>,
    unsent_since_ns: u64,
    /// Nothing more will be sent, since this instant.
    over_since_ns: Option<u64>,
    /// What the network knows of the client.
    peer: Option<Peer>,
}

/// The client has disconnected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// What the network may do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// Read it.
    Free,
    /// Leave it: the loop will say when there is more to do.
    Busy,
    /// What comes is ignored until the client closes.
    Over,
}

impl Connection {
    pub(super) fn new(fd: OwnedFd, key: Key) -> Connection {
        Connection { fd, key, side: Mutex::default() }
    }

    fn side(&self) -> MutexGuard<'_, Side> {
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Network: there is something to read. When it must wait, that is remembered.
    pub(super) fn standing(&self) -> ConnectionState {
        let mut side = self.side();
        if side.is_admitted || !side.unsent.is_empty() {
            side.more = true;
            return ConnectionState::Busy;
        }
        if side.over_since_ns.is_some() { ConnectionState::Over } else { ConnectionState::Free }
    }

    /// Network: the connection's request goes to the loop; `more` was read after it.
    pub(super) fn enter(&self, more: bool) {
        let mut side = self.side();
        side.is_admitted = true;
        side.more = more;
    }

    /// Network: says this now. With `over` it is the last.
    pub(super) fn say(&self, bytes: &[u8], over: bool, now_ns: u64) -> Result<(), Gone> {
        self.side().put(&self.fd, bytes, over, now_ns)
    }

    /// Network: the client takes more now. True when there may be something to read.
    pub(super) fn flush(&self, now_ns: u64) -> Result<bool, Gone> {
        let mut side = self.side();
        if side.unsent.is_empty() {
            return Ok(false);
        }
        let unsent = std::mem::take(&mut side.unsent);
        let sent = stream::write(&self.fd, &unsent).map_err(|()| Gone)?;
        if sent < unsent.len() {
            side.unsent = unsent[sent..].to_vec();
            return Ok(false);
        }
        if side.over_since_ns.is_some() {
            side.over_since_ns = Some(now_ns);
            stream::finish_writing(&self.fd);
        }
        Ok(!side.is_admitted && std::mem::take(&mut side.more))
    }

    /// Network: nothing more will be said, unless a request of this connection is admitted.
    pub(super) fn finish(&self, now_ns: u64) {
        let mut side = self.side();
        if !side.is_admitted && side.over_since_ns.is_none() {
            side.over_since_ns = Some(now_ns);
            if side.unsent.is_empty() {
                stream::finish_writing(&self.fd);
            }
        }
    }

    /// Network: since when the client leaves an answer in our hands, and since when it should have closed.
    pub(super) fn late_since_ns(&self) -> (Option<u64>, Option<u64>) {
        let side = self.side();
        let unsent_since_ns = (!side.unsent.is_empty()).then_some(side.unsent_since_ns);
        (unsent_since_ns, side.over_since_ns.filter(|_| side.unsent.is_empty()))
    }

    /// Network: the loop need not bother any more.
    pub(super) fn part(&self) {
        let mut side = self.side();
        side.peer = Some(Peer::Gone);
        side.unsent = Vec::new();
    }

    /// Network: the client sends nothing more.
    pub(super) fn half_close(&self) {
        self.side().peer.get_or_insert(Peer::HalfClosed);
    }

    /// Loop: whether the client is still there, as far as that is known.
    pub(super) fn peer(&self) -> Peer {
        self.side().peer.unwrap_or(Peer::There)
    }

    /// Network: the descriptor's last user resets the connection.
    pub(super) fn reset(&self) {
        stream::reset_on_close(&self.fd);
    }

    /// Loop: a part of the answer, more of which follows.
    pub(super) fn put(&self, bytes: &[u8], now_ns: u64) -> Result<(), Gone> {
        self.side().put(&self.fd, bytes, false, now_ns)
    }

    /// Loop: the last part of the answer; the line is the network's again. True when it has something to read there.
    pub(super) fn put_last(&self, bytes: &[u8], over: bool, now_ns: u64) -> Result<bool, Gone> {
        let mut side = self.side();
        side.is_admitted = false;
        side.put(&self.fd, bytes, over, now_ns)?;
        // Unsent output takes precedence over input; `flush` handles both.
        Ok(side.unsent.is_empty() && std::mem::take(&mut side.more))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Side {
    fn put(&mut self, fd: &OwnedFd, bytes: &[u8], over: bool, now_ns: u64) -> Result<(), Gone> {
        if self.peer == Some(Peer::Gone) {
            return Err(Gone);
        }
        if over {
            self.over_since_ns = Some(now_ns);
        }
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let sent = stream::write(fd, bytes).map_err(|()| Gone)?;
        if sent < bytes.len() {
            // The socket is always polled for writability; the edge comes after this.
            self.unsent = bytes[sent..].to_vec();
            self.unsent_since_ns = now_ns;
        } else if over {
            stream::finish_writing(fd);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn connection() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Connection::new(ours.into(), Key::from_bits(7)), theirs)
    }

    #[test]
    fn a_line_in_the_house_is_not_read_and_what_came_meanwhile_is_told_with_the_answer() {
        let (connection, mut client) = connection();
        assert_eq!(connection.standing(), ConnectionState::Free);
        connection.enter(false);
        assert_eq!(connection.standing(), ConnectionState::Busy);
        assert_eq!(connection.put(b"one ", 5), Ok(()));
        assert_eq!(connection.put_last(b"two", false, 6), Ok(true));
        assert_eq!(connection.standing(), ConnectionState::Free);
        connection.enter(false);
        assert_eq!(connection.put_last(b"", false, 7), Ok(false), "nothing came");
        let mut heard = [0; 7];
        client.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"one two");
    }

    #[test]
    fn what_a_client_does_not_take_waits_for_it_and_nothing_is_read_before() {
        let (connection, mut client) = connection();
        connection.enter(true);
        let answer = vec![b'x'; 4 << 20];
        assert_eq!(connection.put_last(&answer, true, 9), Ok(false));
        assert_eq!(connection.late_since_ns(), (Some(9), None));
        assert_eq!(connection.standing(), ConnectionState::Busy);
        let reading = std::thread::spawn(move || {
            let mut heard = Vec::new();
            client.read_to_end(&mut heard).unwrap();
            heard.len()
        });
        while !connection.flush(11).unwrap() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(reading.join().unwrap(), answer.len());
        assert_eq!(connection.late_since_ns(), (None, Some(11)));
        assert_eq!(connection.standing(), ConnectionState::Over);
    }

    #[test]
    fn a_client_that_is_gone_gets_nothing() {
        let (connection, _client) = connection();
        connection.enter(false);
        connection.part();
        assert_eq!(connection.put(b"x", 1), Err(Gone));
        assert_eq!(connection.put_last(b"x", false, 1), Err(Gone));
    }
}
