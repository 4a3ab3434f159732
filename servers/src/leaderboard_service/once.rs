//! Changes with an idempotency key: a repetition gets the first answer, and changes nothing.
//!
//! In memory only, and for `KEPT`: after a restart a repetition is a change of its own.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::problem::Problem;
use crate::http::request::Request;

/// How long an answer is kept.
pub(super) const KEPT: Duration = Duration::from_secs(600);

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
        let Some(key) = request.field("Idempotency-Key") else { return Ok(None) };
        check_key(key)?;
        let id: Id = (request.field("Stepladder-Key").unwrap_or_default().into(), key.into());
        let digest = Sha256::new().chain_update(request.method).chain_update("\n");
        let digest =
            digest.chain_update(request.target).chain_update("\n").chain_update(request.body).finalize();
        let mut by_key = self.by_key.lock();
        if by_key.len() >= ANSWERS_MAX {
            by_key.retain(|_, entry| entry.at.elapsed() < KEPT);
            if by_key.len() >= ANSWERS_MAX {
                return Err(Problem::new(429, "too many idempotency keys; try again in a while"));
            }
        }
        match by_key.get(&id).filter(|entry| entry.at.elapsed() < KEPT) {
            Some(entry) if entry.digest[..] != digest[..] => Err(Problem::used_for_another_request()),
            Some(Entry { answer: Some((status, body)), .. }) => Ok(Some(Begun::Again(*status, body.clone()))),
            Some(_) => Err(Problem::new(409, "the first request with this idempotency key is under way")),
            None => {
                let entry = Entry { at: Instant::now(), digest: digest.into(), answer: None };
                by_key.insert(id.clone(), entry);
                Ok(Some(Begun::First(id)))
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

/// Whether this can be an idempotency key.
pub(super) fn check_key(key: &[u8]) -> Result<(), Problem> {
    match key.len() {
        1..=KEY_BYTES_MAX => Ok(()),
        _ => Err(Problem::new(422, format!("an idempotency key has 1 to {KEY_BYTES_MAX} bytes"))),
    }
}
