//! A client of a NATS server, for servers that are several nodes: its address, the part of the protocol that nodes
//! need, and one connection that is made again where it was lost.

pub mod address;
pub mod broker;
pub mod client;
pub mod protocol;

pub use address::{NatsAddress, NatsAddressError};

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;

use crate::ServeError;

/// A node from its start to its end, drawn at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl NodeId {
    /// Another one each time.
    pub fn random() -> NodeId {
        NodeId(RandomState::new().build_hasher().finish())
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The address of `--nats` with the login of `--nats-login`, the first line of a file. Errors: it cannot be read.
pub fn with_login(
    address: Option<&NatsAddress>,
    login: Option<&Path>,
) -> Result<Option<NatsAddress>, ServeError> {
    let Some((address, path)) = address.cloned().zip(login) else { return Ok(address.cloned()) };
    let cannot = |source| ServeError::BrokerLogin { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    Ok(Some(address.with_login(text.lines().next().unwrap_or_default())))
}

/// True for what can name a node: 1 to 32 letters, digits, `_`, `-` and `.`.
pub fn is_node_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=32).contains(&name.len()) && name.bytes().all(is_letter)
}
