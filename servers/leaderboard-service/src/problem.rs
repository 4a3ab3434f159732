//! Why a request was refused, as an answer (RFC 9457, `application/problem+json`).

use super::json;
use crate::protobuf::{self, Malformed};
use leaderboard::{BoardsError, BulkRefused, Refused, ScoreError};

/// What a refused request is answered with. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: u16,
    /// For people.
    detail: String,
    /// In a bulk: which entry of `leaderboards` is wrong, from 0.
    leaderboard: Option<usize>,
    /// In a bulk or a list: which item is wrong, from 0.
    item: Option<usize>,
}

impl Problem {
    pub(super) fn new(status: u16, detail: impl Into<String>) -> Problem {
        Problem { status, detail: detail.into(), leaderboard: None, item: None }
    }

    pub(super) fn no_board(name: &str) -> Problem {
        Problem::new(404, format!("there is no leaderboard called {name:?}"))
    }

    pub(super) fn no_member(name: &str) -> Problem {
        Problem::new(404, format!("the leaderboard has no member called {name:?}"))
    }

    pub(super) fn used_for_another_request() -> Problem {
        Problem::new(409, "this idempotency key was used for another request")
    }

    pub(super) fn nonce_used() -> Problem {
        Problem::new(401, "this nonce was used before")
    }

    /// While the disk is full, for a change or for a read.
    pub(super) fn no_room(is_change: bool) -> Problem {
        match is_change {
            true => Problem::new(507, "the disk is full: nothing is changed until there is room"),
            // The last changes are not on disk, and must not be shown.
            false => Problem::new(503, "the disk is full: the leaderboards can be read when there is room"),
        }
    }

    /// With `--store`, what comes over WebSocket or gRPC.
    pub(super) fn not_with_a_store() -> Problem {
        Problem::new(501, "with --store this service speaks HTTP/JSON only")
    }

    pub(super) fn no_season(name: &str) -> Problem {
        Problem::new(404, format!("the leaderboard has no archived season called {name:?}"))
    }

    pub(super) fn no_schedule() -> Problem {
        Problem::new(404, "the seasons of this leaderboard do not end by themselves")
    }

    pub(super) fn at_board(self, leaderboard: usize) -> Problem {
        Problem { leaderboard: Some(leaderboard), ..self }
    }

    pub(super) fn at_item(self, item: usize) -> Problem {
        Problem { item: Some(item), ..self }
    }

    /// Appends `{"status":…,"detail":…}`, with `leaderboard` and `item` where they are known.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"status\":");
        json::put_number(out, u64::from(self.status));
        out.extend_from_slice(b",\"detail\":");
        json::put_string(out, &self.detail);
        for (name, index) in [("leaderboard", self.leaderboard), ("item", self.item)] {
            if let Some(index) = index {
                out.extend_from_slice(b",\"");
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b"\":");
                json::put_number(out, index as u64);
            }
        }
        out.push(b'}');
    }

    /// Appends it as an `Error` of `proto/leaderboard.proto`.
    pub(super) fn put_message(&self, out: &mut Vec<u8>) {
        protobuf::put_whole(out, 1, u64::from(self.status));
        protobuf::put_bytes(out, 2, self.detail.as_bytes());
        for (field, index) in [(3, self.leaderboard), (4, self.item)] {
            if let Some(index) = index {
                protobuf::put_present(out, field, index as u64);
            }
        }
    }

    /// For people.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// Fields that belong to the status, each with its CRLF.
    pub(super) fn fields(&self) -> &'static str {
        if matches!(self.status, 429 | 503 | 507) { "Retry-After: 1\r\n" } else { "" }
    }
}

impl From<ScoreError> for Problem {
    fn from(error: ScoreError) -> Problem {
        Problem::new(422, error.to_string())
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Problem {
        Problem::new(422, refused.to_string())
    }
}

impl From<BulkRefused> for Problem {
    fn from(refused: BulkRefused) -> Problem {
        Problem::from(refused.cause).at_item(refused.item)
    }
}

impl From<BoardsError> for Problem {
    fn from(error: BoardsError) -> Problem {
        match error {
            BoardsError::NameTaken { .. } | BoardsError::SeasonTaken { .. } => {
                Problem::new(409, error.to_string())
            }
            BoardsError::NoThread { .. } => Problem::new(503, error.to_string()),
            BoardsError::NameLength { .. } | BoardsError::SeasonsFull => Problem::new(422, error.to_string()),
            BoardsError::NoSuchBoard { part, name } => Problem::no_board(&name).at_board(part),
            BoardsError::Bulk { part, refused } => Problem::from(refused).at_board(part),
        }
    }
}

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Problem {
        Problem::new(400, format!("the message: {malformed}"))
    }
}

/// What is wrong with a body: no JSON at all is 400, JSON of another shape is 422.
impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Problem {
        Problem::new(if error.is_data() { 422 } else { 400 }, format!("the body: {error}"))
    }
}
