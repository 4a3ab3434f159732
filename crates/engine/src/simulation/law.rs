//! A request server that only decides when each request is answered.

use super::server::{Says, SimulatedServer};
use super::wire::Exchanges;

/// A server that answers each request at the instant that a law names, or refuses it at once (`None`). The law is asked with the
/// instant at which the request came; both in ns.
pub struct Law<F>(pub F);

impl<F: FnMut(u64) -> Option<u64>> SimulatedServer for Law<F> {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let (tag, _) = Exchanges::request(message);
        match (self.0)(at_ns) {
            Some(answered_ns) => says.message(answered_ns, peer, Exchanges::answer(tag, 200, b"ok")),
            None => says.message(at_ns, peer, Exchanges::answer(tag, 503, b"")),
        }
    }
}
