//! One arena of several whose players a lobby sends (`serve arena-lobby`).
//!
//! A thread of its own speaks to the NATS server, so that no game ever waits for it: once a second the controlling
//! thread leaves the node's state there (`state`). A player comes with a ticket of the lobby (`ticket`), which names the
//! game and the seat; two players of a game are paired by it, in whichever order they arrive.

mod link;
pub mod state;
pub mod ticket;

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use link::Link;
use servers_shared::ServeError;
use servers_shared::nats::NodeId;
use servers_shared::wakeup::Wakeup;
use ticket::{Denied, Gate, Key, Place};

/// What the threads of a node share.
pub(crate) struct Nodes {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    /// Where players find it: `HOST:PORT`.
    pub(crate) advertised: String,
    pub(crate) key: Key,
    gate: Mutex<Gate>,
    /// The last state that was not published yet.
    outgoing: Mutex<Option<String>>,
    /// Sentences for who runs this arena.
    said: Mutex<Vec<String>>,
    wakeup: Wakeup,
}

impl Nodes {
    pub(crate) fn new(
        name: String,
        advertised: Option<&str>,
        listens: SocketAddr,
    ) -> Result<Nodes, ServeError> {
        let key = Key::random().map_err(ServeError::system("getrandom"))?;
        Ok(Nodes {
            id: NodeId::random(),
            name,
            advertised: advertised.map_or_else(|| listens.to_string(), str::to_owned),
            gate: Mutex::new(Gate::new(key.clone())),
            key,
            outgoing: Mutex::default(),
            said: Mutex::default(),
            wakeup: Wakeup::new().map_err(ServeError::system("eventfd"))?,
        })
    }

    /// Where the player with this ticket sits; each ticket lets one player in.
    pub(crate) fn admit(&self, ticket: &str, now_ms: u64) -> Result<Place, Denied> {
        held(&self.gate).admit(ticket, now_ms)
    }

    /// Publishes this soon, in place of what waits.
    pub(crate) fn publish(&self, state: String) {
        *held(&self.outgoing) = Some(state);
        self.wakeup.ring();
    }

    /// Sentences since the last call.
    pub(crate) fn take_said(&self) -> Vec<String> {
        std::mem::take(&mut *held(&self.said))
    }

    fn say(&self, sentence: String) {
        held(&self.said).push(sentence);
    }

    fn take_outgoing(&self) -> Option<String> {
        held(&self.outgoing).take()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
