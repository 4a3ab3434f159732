//! Who waits for an opponent. Without tickets never more than one: the next to arrive is the opponent. With tickets one in
//! each game, until the other player of that game arrives.

use std::collections::HashMap;

use super::inbox::Address;
use super::nodes::ticket::{Place, Seat};

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
    /// By game; without tickets all are in game 0.
    waiting: HashMap<u64, (Seat, Arrival)>,
    closed: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    /// Nobody is in that game; the newcomer waits.
    Wait,
    /// Who came before. That is player 1 and the newcomer player 2, unless their tickets say otherwise.
    Play { first: Arrival, is_swapped: bool },
    /// The server is going down.
    Closed,
}

impl Lobby {
    /// `place`: as the newcomer's ticket says.
    pub(crate) fn arrive(&mut self, newcomer: Arrival, place: Option<Place>) -> Welcome {
        if self.closed {
            return Welcome::Closed;
        }
        let Place { game, seat } = place.unwrap_or(Place { game: 0, seat: Seat::One });
        match self.waiting.remove(&game) {
            Some((taken, first)) => {
                Welcome::Play { first, is_swapped: taken == Seat::Two && seat == Seat::One }
            }
            None => {
                self.waiting.insert(game, (seat, newcomer));
                Welcome::Wait
            }
        }
    }

    /// A socket was closed; if it was the waiting one, nobody waits any more.
    pub(crate) fn forget(&mut self, address: Address) {
        self.waiting.retain(|_, (_, waiting)| waiting.address != address);
    }

    /// From here on there are no new games.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.waiting.clear();
    }

    pub(crate) fn waiting_count(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Games in which a player waits, and the seat that is free.
    pub(crate) fn half_games(&self) -> impl Iterator<Item = (u64, Seat)> {
        self.waiting.iter().map(|(game, (seat, _))| (*game, seat.other()))
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

    fn after(id: u64) -> Welcome {
        Welcome::Play { first: arrival(id), is_swapped: false }
    }

    #[test]
    fn players_with_tickets_are_paired_by_game_and_seated_as_they_say() {
        let mut lobby = Lobby::default();
        let place = |game, seat| Some(Place { game, seat });
        assert_eq!(lobby.arrive(arrival(1), place(7, Seat::Two)), Welcome::Wait);
        assert_eq!(lobby.arrive(arrival(2), place(8, Seat::One)), Welcome::Wait);
        let mut half: Vec<_> = lobby.half_games().collect();
        half.sort_unstable();
        assert_eq!(half, [(7, Seat::One), (8, Seat::Two)]);
        let swapped = Welcome::Play { first: arrival(1), is_swapped: true };
        assert_eq!(lobby.arrive(arrival(3), place(7, Seat::One)), swapped);
        assert_eq!(lobby.arrive(arrival(4), place(8, Seat::Two)), after(2));
    }

    #[test]
    fn players_are_paired_in_order_of_arrival() {
        let mut lobby = Lobby::default();
        assert_eq!(lobby.arrive(arrival(1), None), Welcome::Wait);
        assert_eq!(lobby.arrive(arrival(2), None), after(1));
        assert_eq!(lobby.arrive(arrival(3), None), Welcome::Wait);
        assert_eq!(lobby.waiting_count(), 1);
    }

    #[test]
    fn a_waiting_player_who_leaves_is_forgotten_and_others_are_not() {
        let mut lobby = Lobby::default();
        lobby.arrive(arrival(1), None);
        lobby.forget(arrival(1).address);
        assert_eq!(lobby.arrive(arrival(2), None), Welcome::Wait);
        lobby.forget(arrival(1).address);
        assert_eq!(lobby.arrive(arrival(3), None), after(2));
    }

    #[test]
    fn a_closed_lobby_pairs_nobody() {
        let mut lobby = Lobby::default();
        lobby.arrive(arrival(1), None);
        lobby.close();
        assert_eq!(lobby.arrive(arrival(2), None), Welcome::Closed);
    }
}
