//! What can be wrong with a fault specification.

/// A fault that cannot be understood. The message names the cause and shows one that can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FaultError(pub(super) String);
