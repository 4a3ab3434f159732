//! Changes with an idempotency key: a repetition gets the first answer, and changes nothing.
//!
//! For `KEPT_S`, and with a data directory across restarts: the answer comes to disk together with its change.

use std::collections::HashMap;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::log::Answer;
use super::problem::Problem;
use super::signing::{IDEMPOTENCY_FIELD, KEY_FIELD};
use super::unix_s;
use crate::http::request::Request;

/// How long an answer is kept, s.
pub(super) const KEPT_S: u64 = 600;

/// Answers that are kept at once.
const ANSWERS_MAX: usize = 200_000;

const KEY_BYTES_MAX: usize = 128;

#[derive(Default)]
pub(super) struct Once {
    by_key: Mutex<HashMap<Id, Entry>>,
}

/// The signer's id and the idempotency key.
pub(super) type Id = (Box<[u8]>, Box<[u8]>);

struct Entry {
    /// s since the epoch
    at_s: u64,
    /// Of method, target and body.
    digest: [u8; 32],
    /// None while the first request is being answered.
    answer: Option<(u16, Box<[u8]>)>,
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
    /// None for a request without an idempotency key.
    ///
    /// Errors: a key that was used for another request, or whose first request is not answered yet.
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
        let is_kept = |entry: &Entry| now_s < entry.at_s + KEPT_S;
        let mut by_key = self.by_key.lock();
        if by_key.len() >= ANSWERS_MAX {
            by_key.retain(|_, entry| is_kept(entry));
            if by_key.len() >= ANSWERS_MAX {
                return Err(Problem::new(429, "too many idempotency keys; try again in a while"));
            }
        }
        match by_key.get(&id).filter(|entry| is_kept(entry)) {
            Some(entry) if entry.digest != digest => Err(Problem::used_for_another_request()),
            Some(Entry { answer: Some((status, body)), .. }) => Ok(Begun::Again(*status, body.clone())),
            Some(_) => Err(Problem::new(409, "the first request with this idempotency key is under way")),
            None => {
                let entry = Entry { at_s: now_s, digest, answer: None };
                by_key.insert(id.clone(), entry);
                Ok(Begun::First(id))
            }
        }
    }

    /// Keeps the answer, and hands it to `keep`. One that was refused has changed nothing: it may be tried again.
    pub(super) fn end(&self, id: &Id, answer: Option<(u16, &[u8])>, keep: impl FnOnce(&Answer<'_>)) {
        let mut by_key = self.by_key.lock();
        match answer {
            None => drop(by_key.remove(id)),
            Some((status, body)) => {
                if let Some(entry) = by_key.get_mut(id) {
                    entry.answer = Some((status, body.into()));
                    let (at_s, digest) = (entry.at_s, entry.digest);
                    drop(by_key);
                    keep(&Answer { at_s, signer: &id.0, key: &id.1, digest: &digest, status, body });
                }
            }
        }
    }

    /// Takes in an answer that was kept before.
    pub(super) fn restore(&self, answer: &Answer<'_>) {
        if unix_s() >= answer.at_s + KEPT_S {
            return;
        }
        let body = Some((answer.status, answer.body.into()));
        let entry = Entry { at_s: answer.at_s, digest: *answer.digest, answer: body };
        self.by_key.lock().insert((answer.signer.into(), answer.key.into()), entry);
    }

    /// All answers that are still kept, for storage.
    pub(super) fn each(&self, mut each: impl FnMut(&Answer<'_>)) {
        let now_s = unix_s();
        for ((signer, key), entry) in self.by_key.lock().iter() {
            if let Some((status, body)) = &entry.answer
                && now_s < entry.at_s + KEPT_S
            {
                let (at_s, digest, status) = (entry.at_s, &entry.digest, *status);
                each(&Answer { at_s, signer, key, digest, status, body });
            }
        }
    }
}

/// By which a repetition is told from another request with the same key.
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
