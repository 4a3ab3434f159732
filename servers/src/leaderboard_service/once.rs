//! Changes with an idempotency key: a repetition gets the first answer, and changes nothing.
//!
//! In memory only, and for `KEPT`: after a restart a repetition is a change of its own.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::problem::Problem;
use super::signing::{IDEMPOTENCY_FIELD, KEY_FIELD};
use crate::http::request::Request;

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(600);

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
    at: Instant,
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
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            let detail = format!("an idempotency key has 1 to {KEY_BYTES_MAX} bytes");
            return Err(Problem::new(422, detail));
        }
        let id: Id = (signer.into(), key.into());
        let digest = Sha256::new().chain_update(method).chain_update("\n");
        let digest = digest.chain_update(target).chain_update("\n").chain_update(body).finalize();
        let mut by_key = self.by_key.lock();
        if by_key.len() >= ANSWERS_MAX {
            by_key.retain(|_, entry| entry.at.elapsed() < KEPT);
            if by_key.len() >= ANSWERS_MAX {
                return Err(Problem::new(429, "too many idempotency keys; try again in a while"));
            }
        }
        match by_key.get(&id).filter(|entry| entry.at.elapsed() < KEPT) {
            Some(entry) if entry.digest[..] != digest[..] => {
                Err(Problem::new(422, "this idempotency key was used for another request"))
            }
            Some(Entry { answer: Some((status, body)), .. }) => Ok(Begun::Again(*status, body.clone())),
            Some(_) => Err(Problem::new(409, "the first request with this idempotency key is under way")),
            None => {
                let entry = Entry { at: Instant::now(), digest: digest.into(), answer: None };
                by_key.insert(id.clone(), entry);
                Ok(Begun::First(id))
            }
        }
    }

    /// Keeps the answer. One that was refused has changed nothing: it may be tried again.
    pub(super) fn end(&self, id: &Id, answer: Option<(u16, &[u8])>) {
        let mut by_key = self.by_key.lock();
        match answer {
            None => drop(by_key.remove(id)),
            Some((status, body)) => {
                if let Some(entry) = by_key.get_mut(id) {
                    entry.answer = Some((status, body.into()));
                }
            }
        }
    }
}
