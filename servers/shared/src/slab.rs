//! The clients of one thread, by slot; a generation tells successive clients of a slot apart.
//!
//! A client's key goes into epoll with its socket. An event for it after the client has gone and its slot was reused
//! matches nobody, so that no client is served for another.

/// Where a client is, and the count that tells it from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Which place.
    pub place: u32,
    /// How often the place was given anew.
    pub generation: u32,
}

impl Key {
    /// As a number for epoll.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.place)
    }

    /// The opposite of `to_bits`.
    pub fn from_bits(bits: u64) -> Key {
        Key { place: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// One generation for the whole thread: it comes round after 2³² clients, far later than any event of the first.
pub struct Slab<T> {
    places: slab::Slab<(u32, T)>,
    next_generation: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { places: slab::Slab::new(), next_generation: 0 }
    }
}

impl<T> Slab<T> {
    /// How many things it holds.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Takes in the client that `client` makes of its key.
    pub fn insert(&mut self, client: impl FnOnce(Key) -> T) -> Key {
        let generation = self.next_generation;
        self.next_generation = generation.wrapping_add(1);
        let place = self.places.vacant_entry();
        let key = Key { place: place.key() as u32, generation };
        place.insert((generation, client(key)));
        key
    }

    /// None when the client is gone, and its slot empty or another client's.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (generation, client) = self.places.get_mut(key.place as usize)?;
        (*generation == key.generation).then_some(client)
    }

    /// The client at this place.
    pub fn at(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize).map(|(_, client)| client)
    }

    /// Gives the client's place free; dropping what is returned closes the connection.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.get_mut(key)?;
        Some(self.places.remove(key.place as usize).1)
    }

    /// Everything that it holds.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.places.iter().map(|(place, (generation, client))| {
            (Key { place: place as u32, generation: *generation }, client)
        })
    }

    /// Keys of everything that it holds.
    pub fn keys(&self) -> Vec<Key> {
        self.iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_client_and_nobody_who_came_after_it() {
        let mut slab = Slab::default();
        let (first, second) = (slab.insert(|_| 'a'), slab.insert(|_| 'b'));
        assert_eq!((slab.remove(first), slab.remove(first), slab.count()), (Some('a'), None, 1));
        let third = slab.insert(|_| 'c');
        assert_eq!((third.place, slab.get_mut(first)), (first.place, None));
        assert_eq!(slab.get_mut(third).copied(), Some('c'));
        assert_eq!(slab.at(second.place).copied(), Some('b'));
        assert_eq!(slab.keys(), [third, second]);
        assert_eq!(Key::from_bits(third.to_bits()), third);
    }
}
