//! One thread that answers players: a request in, a redirect out.

use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use servers_shared::clock;
use servers_shared::epoll::Readiness;
use servers_shared::http::response;
use servers_shared::slab::Key;
use servers_shared::stream::{self, Read};
use servers_shared::thread::{self, Common, Core, ENDING_REST_NS, IDLE_REST_NS, Serve};
use servers_shared::websocket::handshake;

use crate::Shared;
use crate::cluster::NoPlace;

const BUFFER_BYTES: usize = 16 * 1024;

struct Client {
    fd: OwnedFd,
    /// What came of the request.
    request: Vec<u8>,
    is_answered: bool,
}

struct Thread<'s> {
    shared: &'s Shared,
    core: Core<Client, ()>,
}

pub(super) fn run(shared: &Shared, common: &Arc<Common>) -> io::Result<()> {
    let core = Core::with_own_table(common, BUFFER_BYTES, std::iter::empty())?;
    thread::live(&mut Thread { shared, core });
    Ok(())
}

impl Serve for Thread<'_> {
    type Client = Client;
    type Late = ();

    const TAKEN_PER_TURN: usize = 64;

    fn core(&mut self) -> &mut Core<Client, ()> {
        &mut self.core
    }

    fn serve(&mut self, key: Key, ready: Readiness) {
        self.read(key, ready.ended);
    }

    fn may_take(&mut self, _taken: usize) -> bool {
        !self.core.table_is_full()
    }

    fn take_connections(&mut self) {
        thread::take(self, |thread, fd, _| {
            let client = |_, fd| Client { fd, request: Vec::new(), is_answered: false };
            let Some(key) = thread.core.insert(fd, false, client) else { return };
            let by_ns = clock::now_ns() + thread.shared.options.handshake_timeout.as_nanos() as u64;
            thread.core.deadlines.expect((), key, by_ns);
            thread.read(key, false);
        });
    }

    fn is_due(&mut self, (): (), key: Key, _now_ns: u64) {
        self.core.clients.remove(key);
    }

    fn go_down(&mut self) -> u64 {
        0
    }

    fn rest(&mut self) -> u64 {
        self.core.rest_ns(if self.core.is_going_down() { ENDING_REST_NS } else { IDLE_REST_NS }, None)
    }
}

impl Thread<'_> {
    /// Reads once, and on later where more may be there. After `ended` a short read is not the last.
    fn read(&mut self, key: Key, ended: bool) {
        let Core { clients, buffer, .. } = &mut self.core;
        let Some(client) = clients.get_mut(key) else { return };
        match stream::read(&client.fd, buffer) {
            Read::Empty => {}
            Read::Ended => drop(clients.remove(key)),
            Read::Bytes(count) => {
                let may_have_more = count == buffer.len() || ended;
                // Having answered it reads on: closing on unread bytes would reset the connection under the answer.
                if !client.is_answered {
                    client.request.extend_from_slice(&buffer[..count]);
                    if let Some(answer) = answer(self.shared, &client.request) {
                        client.is_answered = true;
                        client.request = Vec::new();
                        // It fits into an empty send buffer; if not, the player fails and comes again.
                        let _ = stream::write(&client.fd, &answer);
                        stream::finish_writing(&client.fd);
                    }
                }
                if may_have_more {
                    self.core.read_on_later(key);
                }
            }
        }
    }
}

/// What a request is answered with; `None` while it is not whole.
fn answer(shared: &Shared, request: &[u8]) -> Option<Vec<u8>> {
    match handshake::read(request) {
        Ok(None) => return None,
        Err(handshake::Refused(answer)) => return Some(answer.as_bytes().to_vec()),
        Ok(Some(_)) => {}
    }
    let now_ns = clock::now_ns();
    let placed = shared.cluster().place(now_ns, shared.wall.epoch_ms(now_ns));
    let mut out = Vec::new();
    let why = match placed {
        Ok(sent) => {
            let target = handshake::target(request).filter(|target| target.starts_with('/')).unwrap_or("/");
            let before_ticket = if target.contains('?') { '&' } else { '?' };
            let mut location = String::new();
            let _ = write!(
                location,
                "Location: ws://{}{target}{before_ticket}ticket={}\r\n",
                sent.address, sent.ticket
            );
            response::write_head_with(&mut out, 307, "text/plain", false, 0, &location);
            return Some(out);
        }
        Err(NoPlace::NoNode) => {
            "no node of the arena is there; start one: stepladder serve arena --nats URL\n"
        }
        Err(NoPlace::Full) => "all nodes of the arena are full\n",
    };
    response::write(&mut out, 503, "text/plain", false, why.as_bytes());
    Some(out)
}
