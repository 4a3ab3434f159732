//! An operation in flight: a future that can also be waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::reactor::Failure;

/// How an operation ended that did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// It was not executed, changes nothing, or the member reports that it failed.
    #[error("{0}")]
    Failed(Failure),
    /// It was sent and its answer never came: it may have been executed or not, in whole or in part.
    #[error("it is unknown whether it was carried out: {0}")]
    Unknown(Failure),
}

impl Error {
    /// Whether it may have been executed.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Error::Unknown(_))
    }

    /// Why.
    pub fn failure(&self) -> &Failure {
        match self {
            Error::Failed(failure) | Error::Unknown(failure) => failure,
        }
    }
}

/// An operation under way. It goes on if this is dropped; its end is then reported to no one.
#[derive(Debug)]
#[must_use = "the operation goes on, but whether it succeeds is known only by .await or .wait()"]
pub struct Operation<T> {
    receiver: oneshot::Receiver<Result<T, Error>>,
}

impl<T> Operation<T> {
    pub(super) fn new() -> (oneshot::Sender<Result<T, Error>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Operation { receiver })
    }

    /// Blocks until it has ended.
    pub fn wait(self) -> Result<T, Error> {
        self.receiver.recv().unwrap_or_else(|_| closed())
    }

    /// Blocks until it has ended, but no longer than `timeout`; then it comes back and goes on.
    pub fn wait_timeout(self, timeout: Duration) -> Result<Result<T, Error>, Self> {
        match self.receiver.recv_timeout(timeout) {
            Ok(ended) => Ok(ended),
            Err(oneshot::RecvTimeoutError::Timeout) => Err(self),
            Err(oneshot::RecvTimeoutError::Disconnected) => Ok(closed()),
        }
    }
}

/// The reactor's thread has ended and can no longer say how far the operation got.
fn closed<T>() -> Result<T, Error> {
    Err(Error::Unknown(Failure::Closed))
}

impl<T> Future for Operation<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(cx).map(|ended| ended.unwrap_or_else(|_| closed()))
    }
}
