//! One operation made of several, one for each partition.

use std::sync::{Arc, Mutex, PoisonError};

use super::Completion;
use super::operation::Error;
use crate::reactor::Outcome;
use crate::wire::Answer;

/// Serialised keys and values, owned.
pub(super) type Entries = Vec<(Box<[u8]>, Box<[u8]>)>;

/// What is called with the result of all parts.
type Finish<R> = Box<dyn FnOnce(Result<R, Error>) + Send>;

/// Collects the parts of one operation. The last part that ends finishes it.
pub(super) struct Join<R> {
    shared: Arc<Mutex<Shared<R>>>,
}

struct Shared<R> {
    parts_left: usize,
    parts_ok: usize,
    result: R,
    error: Option<Error>,
    finish: Option<Finish<R>>,
}

/// What a part's answer adds to the result.
pub(super) trait Collect: Default + Send + 'static {
    fn add(&mut self, answer: Answer<'_>);
    /// Whether a part that succeeded has changed something.
    const CHANGES: bool;
}

impl Collect for () {
    fn add(&mut self, _: Answer<'_>) {}
    const CHANGES: bool = true;
}

impl Collect for Entries {
    fn add(&mut self, answer: Answer<'_>) {
        if let Answer::Entries(entries) = answer {
            self.extend(entries.map(|(key, value)| (key.into(), value.into())));
        }
    }
    const CHANGES: bool = false;
}

impl<R: Collect> Join<R> {
    pub fn new(finish: impl FnOnce(Result<R, Error>) + Send + 'static) -> Self {
        let finish: Option<Finish<R>> = Some(Box::new(finish));
        let shared = Shared { parts_left: 0, parts_ok: 0, result: R::default(), error: None, finish };
        Join { shared: Arc::new(Mutex::new(shared)) }
    }

    /// So many parts will end. Without any it is finished.
    pub fn expect(&self, parts: usize) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.parts_left = parts;
        shared.finish_if_done();
    }

    /// What a part's end is reported to.
    pub fn part(&self) -> Completion {
        let shared = self.shared.clone();
        Box::new(move |outcome| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.parts_left -= 1;
            match outcome {
                Outcome::Ok(answer) => {
                    shared.parts_ok += 1;
                    shared.result.add(answer);
                }
                Outcome::Unknown(failure) => shared.error = Some(Error::Unknown(failure)),
                // If one part's outcome is unknown, so is that of the whole.
                Outcome::Failed(failure) => {
                    shared.error.get_or_insert(Error::Failed(failure));
                }
            }
            shared.finish_if_done();
        })
    }
}

impl<R: Collect> Shared<R> {
    fn finish_if_done(&mut self) {
        if self.parts_left > 0 {
            return;
        }
        let Some(finish) = self.finish.take() else { return };
        finish(match self.error.take() {
            None => Ok(std::mem::take(&mut self.result)),
            // Part of it has been executed.
            Some(Error::Failed(failure)) if R::CHANGES && self.parts_ok > 0 => Err(Error::Unknown(failure)),
            Some(error) => Err(error),
        });
    }
}
