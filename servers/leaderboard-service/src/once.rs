//! Changes with an idempotency key: a repetition gets the first answer, and changes nothing.
//!
//! For `KEPT_S`, and with a data directory across restarts: the answer is written to disk together with its change.
//! The answers' bytes are bounded. Beyond `BYTES_MAX` the longest are dropped, but not their keys: a repetition is then
//! refused, and still changes nothing.

use std::collections::HashMap;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::log::Answer;
use super::problem::Problem;
use super::signing::{IDEMPOTENCY_FIELD, KEY_FIELD};
use super::unix_s;
use servers_shared::http::request::Request;

/// How long an answer is kept, s.
pub(super) const KEPT_S: u64 = 600;

/// Answers that are kept at once.
const ANSWERS_MAX: usize = 200_000;

/// Bytes of the answers that are kept at once. `ANSWERS_MAX` single updates have 20 MB or so.
const BYTES_MAX: usize = 64 * 1024 * 1024;

const KEY_BYTES_MAX: usize = 128;

/// Instead of a status: the answer was dropped.
const DROPPED: u16 = 0;

pub(super) struct Once {
    entries: Mutex<Entries>,
    bytes_max: usize,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<Id, Entry>,
    /// Of all answers.
    bytes: usize,
}

impl Default for Once {
    fn default() -> Once {
        Once::with_bytes_max(BYTES_MAX)
    }
}

/// The signer's id and the idempotency key.
pub(super) type Id = (Box<[u8]>, Box<[u8]>);

struct Entry {
    /// s since the epoch
    at_s: u64,
    /// Of method, target and body.
    digest: [u8; 32],
    /// Status and body; None while the first request is being answered.
    answer: Option<(u16, Box<[u8]>)>,
}

impl Entry {
    fn is_kept(&self, now_s: u64) -> bool {
        now_s < self.at_s + KEPT_S
    }

    fn bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, |(_, body)| body.len())
    }
}

impl Entries {
    fn insert(&mut self, id: Id, entry: Entry) {
        self.bytes += entry.bytes();
        let before = self.by_key.insert(id, entry);
        self.bytes -= before.map_or(0, |entry| entry.bytes());
    }

    fn remove(&mut self, id: &Id) {
        self.bytes -= self.by_key.remove(id).map_or(0, |entry| entry.bytes());
    }

    fn drop_expired(&mut self, now_s: u64) {
        self.by_key.retain(|_, entry| entry.is_kept(now_s));
        self.bytes = self.by_key.values().map(Entry::bytes).sum();
    }

    /// Drops the longest answers while there are more bytes than `bytes_max`, and then some, as it looks at all of them.
    fn drop_longest(&mut self, bytes_max: usize, now_s: u64) {
        if self.bytes <= bytes_max {
            return;
        }
        self.drop_expired(now_s);
        let enough = bytes_max / 4 * 3;
        let mut lengths: Vec<usize> = self.by_key.values().map(Entry::bytes).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let mut left = self.bytes;
        let longest = lengths.into_iter().take_while(|length| {
            let is_dropped = left > enough;
            left -= length;
            is_dropped
        });
        let Some(shortest_dropped) = longest.last() else { return };
        for entry in self.by_key.values_mut() {
            if self.bytes > enough && entry.bytes() >= shortest_dropped {
                self.bytes -= entry.bytes();
                entry.answer = Some((DROPPED, Box::default()));
            }
        }
    }
}

/// What a request with an idempotency key is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// The first: the change is to be made, and `end` called.
    First(Id),
    /// A repetition: the answer it gets.
    Again(u16, Box<[u8]>),
}

impl Once {
    fn with_bytes_max(bytes_max: usize) -> Once {
        Once { entries: Mutex::default(), bytes_max }
    }

    /// None for a request without an idempotency key.
    ///
    /// Errors: a key that was used for another request, or whose first request is not answered yet, or whose answer was
    /// dropped.
    pub(super) fn begin(&self, request: &Request<'_>) -> Result<Option<Begun>, Problem> {
        let Some(key) = request.field(IDEMPOTENCY_FIELD) else { return Ok(None) };
        let signer = request.field(KEY_FIELD).unwrap_or_default();
        self.begin_with(signer, key, [request.method, request.target], request.body).map(Some)
    }

    /// The same for a change in its parts. Errors: as above.
    pub(super) fn begin_with(
        &self,
        signer: &[u8],
        key: &[u8],
        [method, target]: [&str; 2],
        body: &[u8],
    ) -> Result<Begun, Problem> {
        check_key(key)?;
        let id: Id = (signer.into(), key.into());
        let digest = digest([method, target], body);
        let now_s = unix_s();
        let mut entries = self.entries.lock();
        if entries.by_key.len() >= ANSWERS_MAX {
            entries.drop_expired(now_s);
            if entries.by_key.len() >= ANSWERS_MAX {
                return Err(Problem::new(429, "too many idempotency keys; try again in a while"));
            }
        }
        match entries.by_key.get(&id).filter(|entry| entry.is_kept(now_s)) {
            Some(entry) if entry.digest != digest => Err(Problem::used_for_another_request()),
            Some(Entry { answer: Some((DROPPED, _)), .. }) => Err(Problem::new(
                409,
                "the change with this idempotency key was made; its answer was too long to be kept until now",
            )),
            Some(Entry { answer: Some((status, body)), .. }) => Ok(Begun::Again(*status, body.clone())),
            Some(_) => Err(Problem::new(409, "the first request with this idempotency key is under way")),
            None => {
                let entry = Entry { at_s: now_s, digest, answer: None };
                entries.insert(id.clone(), entry);
                Ok(Begun::First(id))
            }
        }
    }

    /// Keeps the answer, and hands it to `keep`. One that was refused has changed nothing: it may be tried again.
    pub(super) fn end(&self, id: &Id, answer: Option<(u16, &[u8])>, keep: impl FnOnce(&Answer<'_>)) {
        let mut entries = self.entries.lock();
        match answer {
            None => entries.remove(id),
            Some((status, body)) => {
                if let Some(entry) = entries.by_key.get_mut(id) {
                    entry.answer = Some((status, body.into()));
                    let (at_s, digest) = (entry.at_s, entry.digest);
                    entries.bytes += body.len();
                    entries.drop_longest(self.bytes_max, at_s);
                    drop(entries);
                    keep(&Answer { at_s, signer: &id.0, key: &id.1, digest: &digest, status, body });
                }
            }
        }
    }

    /// Takes in an answer that was kept before.
    pub(super) fn restore(&self, answer: &Answer<'_>) {
        let now_s = unix_s();
        let body = Some((answer.status, answer.body.into()));
        let entry = Entry { at_s: answer.at_s, digest: *answer.digest, answer: body };
        if !entry.is_kept(now_s) {
            return;
        }
        let mut entries = self.entries.lock();
        entries.insert((answer.signer.into(), answer.key.into()), entry);
        entries.drop_longest(self.bytes_max, now_s);
    }

    /// All answers that are still kept, for storage; of those that were dropped what is known of them.
    pub(super) fn each(&self, mut each: impl FnMut(&Answer<'_>)) {
        let now_s = unix_s();
        for ((signer, key), entry) in &self.entries.lock().by_key {
            if let Some((status, body)) = &entry.answer
                && entry.is_kept(now_s)
            {
                let (at_s, digest, status) = (entry.at_s, &entry.digest, *status);
                each(&Answer { at_s, signer, key, digest, status, body });
            }
        }
    }
}

/// Distinguishes a repetition from another request with the same key.
pub(super) fn digest([method, target]: [&str; 2], body: &[u8]) -> [u8; 32] {
    let digest = Sha256::new().chain_update(method).chain_update("\n");
    digest.chain_update(target).chain_update("\n").chain_update(body).finalize().into()
}

/// Whether this can be an idempotency key.
pub(super) fn check_key(key: &[u8]) -> Result<(), Problem> {
    match key.len() {
        1..=KEY_BYTES_MAX => Ok(()),
        _ => Err(Problem::new(422, format!("an idempotency key has 1 to {KEY_BYTES_MAX} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHAT: [&str; 2] = ["POST", "/bulk"];

    /// A change with this key, which is answered with so many bytes.
    fn make(once: &Once, key: &str, bytes: usize) {
        let begun = once.begin_with(b"", key.as_bytes(), WHAT, key.as_bytes()).unwrap();
        let Begun::First(id) = begun else { panic!("{key}: {begun:?}") };
        once.end(&id, Some((200, &vec![b'x'; bytes])), |_| ());
    }

    /// What its repetition is answered: the bytes of the first answer, or with which status it is refused.
    fn repeated(once: &Once, key: &str) -> Result<usize, u16> {
        match once.begin_with(b"", key.as_bytes(), WHAT, key.as_bytes()) {
            Ok(Begun::Again(200, body)) => Ok(body.len()),
            Ok(other) => panic!("{key}: it would be made again: {other:?}"),
            Err(problem) => Err(problem.status),
        }
    }

    #[test]
    fn the_longest_answers_are_dropped_beyond_the_bound_and_their_changes_are_not_made_again() {
        let once = Once::with_bytes_max(1000);
        make(&once, "short", 10);
        make(&once, "long", 400);
        make(&once, "longer", 500);
        assert_eq!(["short", "long", "longer"].map(|key| repeated(&once, key)), [Ok(10), Ok(400), Ok(500)]);
        make(&once, "medium", 100);
        let all = ["short", "long", "longer", "medium"];
        assert_eq!(all.map(|key| repeated(&once, key)), [Ok(10), Ok(400), Err(409), Ok(100)]);
        make(&once, "longest", 2000);
        assert_eq!(repeated(&once, "longest"), Err(409));
        assert_eq!(once.entries.lock().bytes, 510);

        // A restart finds the same.
        let restarted = Once::with_bytes_max(1000);
        once.each(|answer| restarted.restore(answer));
        assert_eq!(all.map(|key| repeated(&restarted, key)), [Ok(10), Ok(400), Err(409), Ok(100)]);
        assert_eq!(restarted.entries.lock().bytes, 510);
    }

    #[test]
    fn of_many_answers_of_one_length_no_more_are_dropped_than_is_necessary() {
        let once = Once::with_bytes_max(1000);
        for number in 0..11 {
            make(&once, &number.to_string(), 100);
        }
        assert_eq!(once.entries.lock().bytes, 700);
        // A refused one is forgotten.
        let Ok(Begun::First(id)) = once.begin_with(b"", b"refused", WHAT, b"") else { panic!() };
        once.end(&id, None, |_| ());
        assert_eq!(once.entries.lock().bytes, 700);
        assert!(matches!(once.begin_with(b"", b"refused", WHAT, b""), Ok(Begun::First(_))));
    }
}
