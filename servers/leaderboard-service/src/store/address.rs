//! A store's address: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]`.

use std::fmt;
use std::str::FromStr;

use servers_shared::host_port::{self, HostPort};

const PORT: u16 = 6379;

/// A Redis or Valkey server and the number of a database there.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreAddress {
    /// As it is resolved: a name, or an address without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) database: u32,
    /// Name (may be empty) and password.
    pub(super) login: Option<(String, String)>,
}

/// Why a text is not a store's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreAddressError {
    /// `rediss://`
    #[error("TLS is not supported; put a proxy such as stunnel in front and use redis://")]
    Tls,
    /// Another scheme, or none.
    #[error("it has to be redis://HOST:PORT, or redis://:PASSWORD@HOST:PORT/DATABASE")]
    Form,
    /// A port that is none.
    #[error("{0:?} is no port from 1 to 65535")]
    Port(String),
    /// A database that is no number.
    #[error("{0:?} is no number of a database, such as 0")]
    Database(String),
}

impl FromStr for StoreAddress {
    type Err = StoreAddressError;

    fn from_str(text: &str) -> Result<StoreAddress, StoreAddressError> {
        if text.starts_with("rediss://") {
            return Err(StoreAddressError::Tls);
        }
        let rest = text.strip_prefix("redis://").ok_or(StoreAddressError::Form)?;
        let (login, rest) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some((login, rest)) => {
                let (name, password) = login.split_once(':').ok_or(StoreAddressError::Form)?;
                (Some((name.to_owned(), password.to_owned())), rest)
            }
        };
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = match database {
            "" => 0,
            text => text.parse().map_err(|_| StoreAddressError::Database(text.to_owned()))?,
        };
        let (host, port) = host_port::split(place).ok_or(StoreAddressError::Form)?;
        let port = match port {
            None => PORT,
            Some(text) => host_port::port(text).ok_or_else(|| StoreAddressError::Port(text.to_owned()))?,
        };
        if host.is_empty() {
            return Err(StoreAddressError::Form);
        }
        Ok(StoreAddress { host: host.to_owned(), port, database, login })
    }
}

/// Without name and password.
impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis://{}/{}", HostPort(&self.host, self.port), self.database)
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_may_have_a_port_a_database_and_a_password() {
        let check = |text: &str, shown: &str, login: Option<(&str, &str)>| {
            let address: StoreAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
            let expected = login.map(|(name, password)| (name.to_owned(), password.to_owned()));
            assert_eq!(address.login, expected, "{text}");
        };
        check("redis://localhost", "redis://localhost:6379/0", None);
        check("redis://10.0.0.1:7000/3", "redis://10.0.0.1:7000/3", None);
        check("redis://[::1]:7000/", "redis://[::1]:7000/0", None);
        check("redis://:p@ss:word@db:7000", "redis://db:7000/0", Some(("", "p@ss:word")));
        check("redis://game:secret@db", "redis://db:6379/0", Some(("game", "secret")));
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        let refused = |text: &str| text.parse::<StoreAddress>().unwrap_err();
        assert_eq!(refused("rediss://db"), StoreAddressError::Tls);
        for text in
            ["", "localhost:6379", "http://db", "redis://", "redis://:7000", "redis://[::1", "redis://x@db"]
        {
            assert_eq!(refused(text), StoreAddressError::Form, "{text}");
        }
        assert_eq!(refused("redis://db:0"), StoreAddressError::Port("0".into()));
        assert_eq!(refused("redis://db:70000"), StoreAddressError::Port("70000".into()));
        assert_eq!(refused("redis://db/x"), StoreAddressError::Database("x".into()));
    }
}
