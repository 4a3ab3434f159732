//! Tickets: a lobby lets one player into one game of one node, once and soon. Pure, but for what is drawn at random.
//!
//! `EXPIRES-GAME-SEAT-NONCE-SIGNATURE`: ms since the epoch by the node's clock in decimal digits, then hexadecimal digits;
//! the seat is 1 or 2. Signed by HMAC-SHA-256 (RFC 2104), of which 16 bytes are kept, with a key that the node draws at its start
//! and tells the lobby through the broker: who may read there may let players in.

use std::collections::HashMap;
use std::{fmt, io};

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// How long a ticket can be used, ms.
pub const TICKET_MS: u64 = 5_000;
/// No clock of a lobby is believed beyond this, so that a used ticket need not be remembered for long.
const TICKET_MS_MAX: u64 = 4 * TICKET_MS;
const SIGNATURE_BYTES: usize = 16;
/// Used tickets are looked through for lapsed ones when they have doubled, and not below so many.
const USED_LEAST: usize = 1024;

/// What a node signs with.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// Which side of a game a player is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seat {
    /// the left one
    One,
    /// the right one
    Two,
}

/// A seat in a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Unique among all games of all nodes.
    pub game: u64,
    /// Each is given once.
    pub seat: Seat,
}

/// Why a player is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There is none.
    #[error("this node takes players whom its lobby sends; connect to the lobby")]
    Missing,
    /// Of another node, or of none.
    #[error("the ticket is not one of this node; connect to the lobby again")]
    Wrong,
    /// Too late.
    #[error("the ticket has expired; connect to the lobby again")]
    Expired,
    /// Each lets one player in.
    #[error("the ticket was used before; connect to the lobby again")]
    Used,
}

/// Without its bytes.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// Errors: the system has no randomness.
    pub fn random() -> io::Result<Key> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Key(key))
    }

    /// In hexadecimal digits.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What `to_text` has written.
    pub fn from_text(text: &str) -> Option<Key> {
        bytes_of(text).map(Key)
    }

    /// A ticket for a place. `nonce`: never the same for two tickets.
    pub fn ticket(&self, place: Place, nonce: u64, expires_ms: u64) -> String {
        let signed = format!("{expires_ms}-{:x}-{}-{nonce:x}", place.game, place.seat.number());
        let signature = self.mac(&signed).finalize().into_bytes();
        let signature: String =
            signature[..SIGNATURE_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{signed}-{signature}")
    }

    fn mac(&self, signed: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::new_from_slice(&self.0).expect("a key of any length");
        mac.update(signed.as_bytes());
        mac
    }

    /// Errors: it was not signed with this key.
    fn read(&self, ticket: &str) -> Result<(Place, u64, u64), Denied> {
        let (signed, signature) = ticket.rsplit_once('-').ok_or(Denied::Wrong)?;
        let signature: [u8; SIGNATURE_BYTES] = bytes_of(signature).ok_or(Denied::Wrong)?;
        self.mac(signed).verify_truncated_left(&signature).map_err(|_| Denied::Wrong)?;
        let parts: Vec<&str> = signed.split('-').collect();
        let hex = |text: &str| u64::from_str_radix(text, 16).map_err(|_| Denied::Wrong);
        let [expires_ms, game, seat, nonce] = parts[..] else { return Err(Denied::Wrong) };
        let seat = seat.parse().ok().and_then(Seat::of_number).ok_or(Denied::Wrong)?;
        let expires_ms = expires_ms.parse().map_err(|_| Denied::Wrong)?;
        Ok((Place { game: hex(game)?, seat }, hex(nonce)?, expires_ms))
    }
}

impl Seat {
    /// 1 or 2.
    pub fn number(self) -> u64 {
        match self {
            Seat::One => 1,
            Seat::Two => 2,
        }
    }

    /// The reverse of `number`.
    pub fn of_number(number: u64) -> Option<Seat> {
        match number {
            1 => Some(Seat::One),
            2 => Some(Seat::Two),
            _ => None,
        }
    }

    /// The opponent's.
    pub fn other(self) -> Seat {
        match self {
            Seat::One => Seat::Two,
            Seat::Two => Seat::One,
        }
    }
}

fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = text.len() == 2 * N && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)).filter(|_| is_hex) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    is_hex.then_some(bytes)
}

/// A node's tickets: which of them are still good.
pub struct Gate {
    key: Key,
    /// Nonces of used tickets, with when they expire.
    used: HashMap<u64, u64>,
    sweep_at: usize,
}

impl Gate {
    /// For tickets that are signed with this key.
    pub fn new(key: Key) -> Gate {
        Gate { key, used: HashMap::new(), sweep_at: USED_LEAST }
    }

    /// The place that a ticket names; never the same ticket twice. `ticket`: empty where there is none.
    pub fn admit(&mut self, ticket: &str, now_ms: u64) -> Result<Place, Denied> {
        if ticket.is_empty() {
            return Err(Denied::Missing);
        }
        let (place, nonce, expires_ms) = self.key.read(ticket)?;
        if now_ms >= expires_ms || expires_ms > now_ms + TICKET_MS_MAX {
            return Err(Denied::Expired);
        }
        if self.used.len() >= self.sweep_at {
            self.used.retain(|_, expires_ms| *expires_ms > now_ms);
            self.sweep_at = (2 * self.used.len()).max(USED_LEAST);
        }
        match self.used.insert(nonce, expires_ms) {
            Some(_) => Err(Denied::Used),
            None => Ok(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_795_230_436_000;
    const PLACE: Place = Place { game: u64::MAX, seat: Seat::Two };

    #[test]
    fn a_ticket_lets_one_player_into_its_node_once_and_in_time() {
        let [key, other] = [Key([7; 32]), Key([8; 32])];
        let ticket = key.ticket(PLACE, 9, NOW_MS + TICKET_MS);
        assert_eq!(Key::from_text(&key.to_text()), Some(key.clone()));
        let check = |key: &Key, ticket: &str, now_ms, expected| {
            assert_eq!(Gate::new(key.clone()).admit(ticket, now_ms), expected, "{ticket} at {now_ms}");
        };
        check(&key, &ticket, NOW_MS, Ok(PLACE));
        check(&key, &ticket, NOW_MS + TICKET_MS - 1, Ok(PLACE));
        check(&key, &ticket, NOW_MS + TICKET_MS, Err(Denied::Expired));
        check(&key, &ticket, NOW_MS - TICKET_MS_MAX, Err(Denied::Expired));
        check(&other, &ticket, NOW_MS, Err(Denied::Wrong));
        check(&key, "", NOW_MS, Err(Denied::Missing));
        // Another seat with the signature of this one, a shorter signature, and none.
        check(&key, &ticket.replacen("-2-", "-1-", 1), NOW_MS, Err(Denied::Wrong));
        check(&key, &ticket[..ticket.len() - 2], NOW_MS, Err(Denied::Wrong));
        check(&key, "-----", NOW_MS, Err(Denied::Wrong));
        let mut gate = Gate::new(key.clone());
        assert_eq!(gate.admit(&ticket, NOW_MS), Ok(PLACE));
        assert_eq!(gate.admit(&ticket, NOW_MS + 1), Err(Denied::Used));
        assert_eq!(gate.admit(&key.ticket(PLACE, 10, NOW_MS + TICKET_MS), NOW_MS), Ok(PLACE));
    }

    #[test]
    fn used_tickets_are_remembered_until_they_expire_and_no_longer() {
        let key = Key([7; 32]);
        let mut gate = Gate::new(key.clone());
        for i in 0..20_000 {
            let now_ms = NOW_MS + i;
            assert!(gate.admit(&key.ticket(PLACE, i, now_ms + TICKET_MS), now_ms).is_ok());
        }
        assert!(gate.used.len() <= 2 * TICKET_MS as usize + 1, "{}", gate.used.len());
        let last = key.ticket(PLACE, 19_999, NOW_MS + 19_999 + TICKET_MS);
        assert_eq!(gate.admit(&last, NOW_MS + 20_000), Err(Denied::Used));
    }
}
