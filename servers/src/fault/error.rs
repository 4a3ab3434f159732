//! What can be wrong with a fault as it was given.

/// A fault that cannot be understood. The message names the cause and shows one that can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// There is no such kind; use one of those that are listed.
    #[error("there is no fault {given:?}; did you mean {nearest}? Known kinds: {known}")]
    UnknownKind {
        /// What stood before `@` and `:`.
        given: String,
        /// An example of the kind whose name is nearest.
        nearest: &'static str,
        /// All names.
        known: String,
    },
    /// The kind needs a time; add it.
    #[error("{kind} needs a time after the first connection, as in {example}")]
    NoTime {
        /// The kind.
        kind: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// What follows `@` is no time; write a number and `us`, `ms`, `s` or `m`.
    #[error("{kind}: {given:?} is no time from 0s to 24h (a number and us, ms, s, m or h), as in {example}")]
    BadTime {
        /// The kind.
        kind: &'static str,
        /// What stood there.
        given: String,
        /// How it is written.
        example: &'static str,
    },
    /// The kind needs an amount; add it.
    #[error("{kind} needs {wants} after a colon, as in {example}")]
    NoAmount {
        /// The kind.
        kind: &'static str,
        /// What the amount is.
        wants: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// What follows the colon is not what the kind needs.
    #[error("{kind}: {given:?} is not {wants}, as in {example}")]
    BadAmount {
        /// The kind.
        kind: &'static str,
        /// What stood there.
        given: String,
        /// What the amount is.
        wants: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// The kind takes no amount; leave it out.
    #[error("{kind} takes no amount; write {example}")]
    NeedlessAmount {
        /// The kind.
        kind: &'static str,
        /// How it is written.
        example: &'static str,
    },
}
