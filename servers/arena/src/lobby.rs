//! The player waiting for an opponent. Never more than one: the next to arrive is the opponent.

use super::inbox::Address;

/// A player who has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) address: Address,
    /// Unique among all players of this server.
    pub(crate) id: u64,
    pub(crate) snapshots: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lobby {
    waiting: Option<Arrival>,
    closed: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    /// The lobby is empty; the newcomer waits.
    Wait,
    /// Player 1, who came before; the newcomer is player 2.
    Play(Arrival),
    /// The server is going down.
    Closed,
}

impl Lobby {
    pub(crate) fn arrive(&mut self, newcomer: Arrival) -> Welcome {
        if self.closed {
            return Welcome::Closed;
        }
        match self.waiting.take() {
            Some(first) => Welcome::Play(first),
            None => {
                self.waiting = Some(newcomer);
                Welcome::Wait
            }
        }
    }

    /// A socket was closed; if it was the waiting one, nobody waits any more.
    pub(crate) fn forget(&mut self, address: Address) {
        if self.waiting.is_some_and(|waiting| waiting.address == address) {
            self.waiting = None;
        }
    }

    /// From here on there are no new games.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.waiting = None;
    }

    pub(crate) fn waiting_count(&self) -> u64 {
        u64::from(self.waiting.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::inbox::SocketKey;
    use super::*;

    fn arrival(id: u64) -> Arrival {
        let key = SocketKey { place: id as u32, generation: 0 };
        Arrival { address: Address { thread: 0, key }, id, snapshots: false }
    }

    #[test]
    fn players_are_paired_in_order_of_arrival() {
        let mut lobby = Lobby::default();
        assert_eq!(lobby.arrive(arrival(1)), Welcome::Wait);
        assert_eq!(lobby.arrive(arrival(2)), Welcome::Play(arrival(1)));
        assert_eq!(lobby.arrive(arrival(3)), Welcome::Wait);
        assert_eq!(lobby.waiting_count(), 1);
    }

    #[test]
    fn a_waiting_player_who_leaves_is_forgotten_and_others_are_not() {
        let mut lobby = Lobby::default();
        lobby.arrive(arrival(1));
        lobby.forget(arrival(1).address);
        assert_eq!(lobby.arrive(arrival(2)), Welcome::Wait);
        lobby.forget(arrival(1).address);
        assert_eq!(lobby.arrive(arrival(3)), Welcome::Play(arrival(2)));
    }

    #[test]
    fn a_closed_lobby_pairs_nobody() {
        let mut lobby = Lobby::default();
        lobby.arrive(arrival(1));
        lobby.close();
        assert_eq!(lobby.arrive(arrival(2)), Welcome::Closed);
    }
}
