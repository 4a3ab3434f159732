//! Why lines of client libraries are refused.

/// Why a line, or the result of several, cannot be true.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is no JSON object of the format. Remedy: inflight/clients/README.md.
    #[error("{0}")]
    Format(String),
    /// Its figures are missing or contradict each other.
    #[error("{0}")]
    Figures(String),
    /// A line of a folded profile is none.
    #[error("{0}")]
    Stacks(String),
    /// One of these, and where.
    #[error("{place}: {cause}")]
    At {
        /// whose line it is
        place: String,
        /// what is wrong with it
        cause: Box<LineError>,
    },
}

impl LineError {
    pub(super) fn at(self, place: impl Into<String>) -> LineError {
        LineError::At { place: place.into(), cause: Box::new(self) }
    }
}
