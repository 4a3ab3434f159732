//! A distributed map.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::join::{Entries, Join};
use super::operation::{Error, Operation};
use super::{Client, Command};
use crate::reactor::Failure;
use crate::wire::data::{self, Deserialize, Serialize};
use crate::wire::request::TTL_OF_THE_MAP;
use crate::wire::{Answer, Data, Key, MapName, Request};

const NOT_ITS_ANSWER: &str = "an answer that is not that of its operation";

/// A map of the cluster, with keys `K` and values `V`. Cloning gives another handle to it.
///
/// Each call starts its operation and returns at once. Errors of all operations: see `Error`; a value of another type than
/// `V` is `Failure::Data`.
pub struct IMap<K, V> {
    pub(super) name: MapName,
    pub(super) client: Client,
    pub(super) types: PhantomData<fn(K) -> V>,
}

impl<K, V> Clone for IMap<K, V> {
    fn clone(&self) -> Self {
        IMap { name: self.name.clone(), client: self.client.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for IMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IMap({:?})", self.name)
    }
}

impl<K, V> IMap<K, V> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many entries it has.
    pub fn size(&self) -> Operation<usize> {
        self.client.submit(Request::Size { map: self.name.clone() }, |answer| match answer {
            Answer::Count(count) => Ok(usize::try_from(count).unwrap_or_default()),
            _ => Err(Failure::Internal(NOT_ITS_ANSWER)),
        })
    }

    /// Removes all entries.
    pub fn clear(&self) -> Operation<()> {
        self.client.submit(Request::Clear { map: self.name.clone() }, |_| Ok(()))
    }

    /// Removes a key, without asking for its value.
    pub fn delete<Q>(&self, key: &Q) -> Operation<()>
    where
        K: Borrow<Q>,
        Q: Serialize + ?Sized,
    {
        self.client.submit(Request::Delete { map: self.name.clone(), key: Key::of(key) }, |_| Ok(()))
    }

    /// Whether there is a key.
    pub fn contains_key<Q>(&self, key: &Q) -> Operation<bool>
    where
        K: Borrow<Q>,
        Q: Serialize + ?Sized,
    {
        let request = Request::ContainsKey { map: self.name.clone(), key: Key::of(key) };
        self.client.submit(request, |answer| match answer {
            Answer::Flag(flag) => Ok(flag),
            _ => Err(Failure::Internal(NOT_ITS_ANSWER)),
        })
    }

    /// Sets a value. It lives as long as the map is configured to keep it, for ever by default.
    pub fn set<Q, W>(&self, key: &Q, value: &W) -> Operation<()>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
        Q: Serialize + ?Sized,
        W: Serialize + ?Sized,
    {
        self.client.submit(self.set_request(key, value, TTL_OF_THE_MAP), |_| Ok(()))
    }

    /// Sets a value that lives for `ttl`, at least 1 ms; members keep such times to the second.
    pub fn set_with_ttl<Q, W>(&self, key: &Q, value: &W, ttl: Duration) -> Operation<()>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
        Q: Serialize + ?Sized,
        W: Serialize + ?Sized,
    {
        self.client.submit(self.set_request(key, value, ttl_ms(ttl)), |_| Ok(()))
    }

    fn set_request<Q, W>(&self, key: &Q, value: &W, ttl_ms: i64) -> Request
    where
        Q: Serialize + ?Sized,
        W: Serialize + ?Sized,
    {
        Request::Set { map: self.name.clone(), key: Key::of(key), value: Data::of(value), ttl_ms }
    }
}

impl<K, V: Deserialize + Send + 'static> IMap<K, V> {
    /// The value of a key, if there is one.
    pub fn get<Q>(&self, key: &Q) -> Operation<Option<V>>
    where
        K: Borrow<Q>,
        Q: Serialize + ?Sized,
    {
        self.client
            .submit(Request::Get { map: self.name.clone(), key: Key::of(key) }, |answer| Ok(answer.read()?))
    }

    /// Sets a value and returns the old one.
    pub fn put<Q, W>(&self, key: &Q, value: &W) -> Operation<Option<V>>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
        Q: Serialize + ?Sized,
        W: Serialize + ?Sized,
    {
        self.put_for(key, value, TTL_OF_THE_MAP)
    }

    /// Sets a value that lives for `ttl`, at least 1 ms, and returns the old one; members keep such times to the second.
    pub fn put_with_ttl<Q, W>(&self, key: &Q, value: &W, ttl: Duration) -> Operation<Option<V>>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
        Q: Serialize + ?Sized,
        W: Serialize + ?Sized,
    {
        self.put_for(key, value, ttl_ms(ttl))
    }

    fn put_for<Q, W>(&self, key: &Q, value: &W, ttl_ms: i64) -> Operation<Option<V>>
    where
        Q: Serialize + ?Sized,
        W: Serialize + ?Sized,
    {
        let (key, value) = (Key::of(key), Data::of(value));
        self.client
            .submit(Request::Put { map: self.name.clone(), key, value, ttl_ms }, |answer| Ok(answer.read()?))
    }

    /// Removes a key and returns its value.
    pub fn remove<Q>(&self, key: &Q) -> Operation<Option<V>>
    where
        K: Borrow<Q>,
        Q: Serialize + ?Sized,
    {
        self.client.submit(Request::Remove { map: self.name.clone(), key: Key::of(key) }, |answer| {
            Ok(answer.read()?)
        })
    }
}

impl<K, V> IMap<K, V>
where
    K: Serialize + Deserialize + Send + 'static,
    V: Serialize + Deserialize + Send + 'static,
{
    /// Sets many values: one request for each partition that they belong to. It is not atomic; when some of them were
    /// set and others not, it ends as unknown.
    pub fn put_all(&self, entries: impl IntoIterator<Item = (K, V)>) -> Operation<()> {
        let entries = entries.into_iter().map(|(key, value)| (Key::of(&key), Data::of(&value))).collect();
        let (sender, operation) = Operation::new();
        let join = Join::new(move |result| {
            let _ = sender.send(result);
        });
        self.client.command(Command::PutAll(self.name.clone(), entries, join));
        operation
    }

    /// The values of many keys, without those that do not exist, in no order.
    pub fn get_all(&self, keys: impl IntoIterator<Item = K>) -> Operation<Vec<(K, V)>> {
        let keys = keys.into_iter().map(|key| Key::of(&key)).collect();
        let (sender, operation) = Operation::new();
        let join = Join::<Entries>::new(move |result| {
            let _ = sender.send(result.and_then(|entries| {
                let read =
                    |(key, value): (Box<[u8]>, Box<[u8]>)| Ok((data::read(&key)?, data::read(&value)?));
                let all: Result<Vec<(K, V)>, data::DataError> = entries.into_iter().map(read).collect();
                all.map_err(|error| Error::Failed(error.into()))
            }));
        });
        self.client.command(Command::GetAll(self.name.clone(), keys, join));
        operation
    }
}

/// 0 would be for ever.
fn ttl_ms(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX).max(1)
}
