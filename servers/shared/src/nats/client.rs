//! A client with few messages: one thread that waits for them, and connects again where the connection was lost.

use std::io;

use super::NatsAddress;
use super::broker::{Broker, Lost};
use super::protocol::{self, Event};
use crate::epoll::{Epoll, WAKEUP_KEY};
use crate::wakeup::Wakeup;
use crate::{ServeError, clock};

/// Reads in one turn, so that a flood keeps nothing else waiting for long.
const READS_PER_TURN: usize = 16;

/// A connection to a NATS server that is made again where it was lost.
pub struct Client {
    broker: Broker,
    epoll: Epoll,
    /// Subscribed to whenever the connection stands; the number of a subscription is its index.
    subjects: Vec<String>,
}

/// What became of the connection.
pub enum Change {
    /// It is lost, and why; what is published until it is back is gone.
    Lost(Lost),
    /// It is back.
    Back,
}

impl Client {
    /// A client that is let in. `name` is shown in the server's own logs; `wakeup` ends a wait of `turn`.
    ///
    /// Errors: the server is not there, or does not let it in.
    pub fn connect(
        address: &NatsAddress,
        name: String,
        subjects: Vec<String>,
        wakeup: Option<&Wakeup>,
    ) -> Result<Client, ServeError> {
        let cannot = |why: String| ServeError::Broker { address: address.to_string(), why };
        let system = |error: io::Error| ServeError::System { call: "epoll", source: error };
        let broker = Broker::new(address.clone(), name).map_err(|error| cannot(error.to_string()))?;
        let epoll = Epoll::new().map_err(system)?;
        if let Some(wakeup) = wakeup {
            epoll.add(wakeup, WAKEUP_KEY, false).map_err(system)?;
        }
        let mut client = Client { broker, epoll, subjects };
        let mut addresses_left = client.broker.address_count();
        while !client.broker.is_up() {
            if let Err(lost) = client.exchange(&mut |_| {}) {
                addresses_left -= 1;
                if addresses_left == 0 {
                    return Err(cannot(lost.to_string()));
                }
                client.broker.lose(clock::now_ns());
            }
            client.epoll.wait(10_000_000);
        }
        Ok(client)
    }

    /// Waits for at most `wait_ns`, and brings what has come to `hear`, each payload with its subscription's index.
    pub fn turn(&mut self, wait_ns: u64, mut hear: impl FnMut(usize, &[u8])) -> Option<Change> {
        let until_due_ns = self.broker.due_ns().saturating_sub(clock::now_ns());
        self.epoll.wait(wait_ns.min(until_due_ns));
        let was_up = self.broker.is_up();
        let exchanged = self.exchange(&mut |event| {
            if let Event::Message { subscription, payload } = event {
                hear(*subscription as usize, payload);
            }
        });
        match exchanged {
            Err(lost) => self.broker.lose(clock::now_ns()).then_some(Change::Lost(lost)),
            Ok(()) => (!was_up && self.broker.is_up()).then_some(Change::Back),
        }
    }

    /// Publishes a message; without a connection it is gone.
    pub fn publish(&mut self, subject: &str, payload: &[u8]) {
        if self.broker.has_room() && payload.len() <= self.broker.message_bytes_max() {
            self.broker.publish(subject, &[payload]);
        }
        // What is wrong with the connection shows in the next turn.
        let _ = self.broker.flush();
    }

    /// Errors: the connection is over.
    fn exchange(&mut self, hear: &mut dyn FnMut(&Event<'_>)) -> Result<(), Lost> {
        let now_ns = clock::now_ns();
        let (_, ended) = self.broker.read_all(READS_PER_TURN, now_ns);
        let input = self.broker.take_input();
        let mut done = 0;
        while let Some((event, bytes)) = protocol::front(&input[done..])? {
            done += bytes;
            if self.broker.hear(&event, now_ns)? {
                for (index, subject) in self.subjects.iter().enumerate() {
                    self.broker.subscribe(subject, index as u64);
                }
            }
            hear(&event);
        }
        self.broker.keep(input, done);
        // Its last words were heard before.
        ended?;
        self.broker.turn(now_ns, &self.epoll)?;
        self.broker.flush()
    }
}
