//! The clients of one thread, by place; a generation tells a place's clients apart.
//!
//! A client's key goes into epoll with its socket. What is told under it after the client has gone and its place was
//! given away finds nobody, so that no client is served for another.

/// Where a client is, and the count that tells it from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) place: u32,
    pub(crate) generation: u32,
}

impl Key {
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.place)
    }

    pub(crate) fn from_bits(bits: u64) -> Key {
        Key { place: bits as u32, generation: (bits >> 32) as u32 }
    }
}

struct Place<T> {
    generation: u32,
    client: Option<T>,
}

pub(crate) struct Slab<T> {
    slab: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { slab: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn count(&self) -> usize {
        self.slab.len() - self.free.len()
    }

    /// Takes in whoever `client` makes of the key.
    pub(crate) fn insert(&mut self, client: impl FnOnce(Key) -> T) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slab.push(Place { generation: 0, client: None });
            (self.slab.len() - 1) as u32
        });
        let key = Key { place, generation: self.slab[place as usize].generation };
        self.slab[place as usize].client = Some(client(key));
        key
    }

    /// None when the client is gone, and its place empty or somebody else's.
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.slab.get_mut(key.place as usize)?;
        place.client.as_mut().filter(|_| place.generation == key.generation)
    }

    /// Whoever is at this place.
    pub(crate) fn at(&mut self, place: u32) -> Option<&mut T> {
        self.slab.get_mut(place as usize)?.client.as_mut()
    }

    /// Gives the client's place free; dropping what is returned closes the connection.
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get_mut(key)?;
        let place = &mut self.slab[key.place as usize];
        place.generation = place.generation.wrapping_add(1);
        self.free.push(key.place);
        place.client.take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slab.iter().enumerate().filter_map(|(i, place)| {
            let key = Key { place: i as u32, generation: place.generation };
            place.client.as_ref().map(|client| (key, client))
        })
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
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
