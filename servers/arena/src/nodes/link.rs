//! The thread that tells the lobby how the node is.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use servers_shared::ServeError;
use servers_shared::nats::NatsAddress;
use servers_shared::nats::client::{Change, Client};
use servers_shared::thread::{Common, IDLE_REST_NS};

use super::Nodes;
use super::state::{NODES, farewell};

/// How long the farewell may take when the arena ends.
const END_NS: u64 = 100_000_000;

pub(crate) struct Link {
    nodes: Arc<Nodes>,
    client: Client,
    address: NatsAddress,
}

impl Link {
    /// Errors: the NATS server is not there or does not let the node in.
    pub(crate) fn connect(address: NatsAddress, nodes: Arc<Nodes>) -> Result<Link, ServeError> {
        let name = format!("stepladder arena {}", nodes.name);
        let client = Client::connect(&address, name, Vec::new(), Some(&nodes.wakeup))?;
        Ok(Link { nodes, client, address })
    }

    /// The thread's whole life.
    pub(crate) fn run(mut self, common: &Common) -> io::Result<()> {
        while !common.going_down.load(Ordering::Acquire) {
            match self.client.turn(IDLE_REST_NS, |_, _| {}) {
                Some(Change::Lost(lost)) => self.nodes.say(format!(
                    "the connection to {} is lost ({lost}); until it is back, the lobby sends no players here",
                    self.address
                )),
                Some(Change::Back) => self.nodes.say(format!("connected to {} again", self.address)),
                None => {}
            }
            if let Some(state) = self.nodes.take_outgoing() {
                self.client.publish(NODES, state.as_bytes());
            }
        }
        self.client.publish(NODES, farewell(self.nodes.id).as_bytes());
        self.client.turn(END_NS, |_, _| {});
        Ok(())
    }
}
