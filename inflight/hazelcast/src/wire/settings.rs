//! A session's initial settings.

use super::uuid::Uuid;

/// The most that a connection holds of what it received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest message that is taken, in bytes. The answer to an operation beyond it is skipped, and the operation fails.
    pub message_bytes: usize,
    /// Largest request that is sent, in bytes.
    pub request_bytes: usize,
    /// Bytes that may wait to be sent before further requests are refused.
    pub unsent_bytes: usize,
    /// Operations in flight before further requests are refused.
    pub in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            message_bytes: 64 << 20,
            request_bytes: 64 << 20,
            unsent_bytes: 256 << 20,
            in_flight: 100_000,
        }
    }
}

/// Who we say we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The cluster's name; "dev" unless its members were configured otherwise.
    pub cluster_name: String,
    /// Only where the members ask for it.
    pub username: Option<String>,
    /// Only where the members ask for it.
    pub password: Option<String>,
    /// The same for all connections of one client, and no other client's.
    pub client_uuid: Uuid,
    /// What members call this client in their logs.
    pub client_name: String,
}

/// How a session behaves. All times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most that is held.
    pub limits: Limits,
    /// How long a member may take to authenticate us.
    pub authentication_timeout_ns: u64,
    /// A member that was sent nothing for so long is sent a ping; members drop clients that stay silent.
    pub heartbeat_interval_ns: u64,
    /// A member that has been silent for this long, though it was asked, counts as gone.
    pub heartbeat_timeout_ns: u64,
    /// Whether answers that no operation waits for are skipped: those that come after its deadline. Where operations have no
    /// deadline there can be none but second answers and inventions; false ends the connection over them.
    pub skips_unasked: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            limits: Limits::default(),
            authentication_timeout_ns: 5_000_000_000,
            heartbeat_interval_ns: 5_000_000_000,
            heartbeat_timeout_ns: 60_000_000_000,
            skips_unasked: true,
        }
    }
}
