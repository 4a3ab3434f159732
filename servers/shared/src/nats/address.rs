//! A broker's address: `nats://[USER:PASSWORD@|TOKEN@]HOST[:PORT]`.

use std::fmt;
use std::str::FromStr;

use crate::host_port::{self, HostPort};

const PORT: u16 = 4222;

/// A NATS server, and what it wants to hear before it lets a client in.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsAddress {
    /// A name, or an address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) login: Login,
}

/// What a NATS server checks. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    None,
    Password { user: String, password: String },
    Token(String),
}

/// Why a text is not a broker's address. The text is not repeated: it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NatsAddressError {
    /// `tls://`
    #[error("TLS is not supported; put a proxy such as stunnel in front and use nats://")]
    Tls,
    /// Another scheme, a path, or no host.
    #[error("it has to be nats://HOST:PORT, nats://USER:PASSWORD@HOST:PORT or nats://TOKEN@HOST:PORT")]
    Form,
    /// Not in 1..=65535.
    #[error("its port is not a number from 1 to 65535")]
    Port,
}

impl FromStr for NatsAddress {
    type Err = NatsAddressError;

    fn from_str(text: &str) -> Result<NatsAddress, NatsAddressError> {
        if text.starts_with("tls://") {
            return Err(NatsAddressError::Tls);
        }
        let rest = text.strip_prefix("nats://").ok_or(NatsAddressError::Form)?;
        let (login, place) = match rest.rsplit_once('@') {
            None => (Login::None, rest),
            Some((login, place)) => (login_of(login), place),
        };
        let place = place.strip_suffix('/').unwrap_or(place);
        let (host, port) = host_port::split(place).ok_or(NatsAddressError::Form)?;
        let port = port.map_or(Some(PORT), host_port::port).ok_or(NatsAddressError::Port)?;
        let is_host = !host.is_empty() && !host.contains(['/', ',', ' ']);
        let host = is_host.then(|| host.to_owned()).ok_or(NatsAddressError::Form)?;
        Ok(NatsAddress { host, port, login })
    }
}

impl NatsAddress {
    /// The same with this `USER:PASSWORD` or `TOKEN`.
    pub fn with_login(self, text: &str) -> NatsAddress {
        NatsAddress { login: login_of(text), ..self }
    }
}

fn login_of(text: &str) -> Login {
    match text.split_once(':') {
        Some((user, password)) => Login::Password { user: user.to_owned(), password: password.to_owned() },
        None => Login::Token(text.to_owned()),
    }
}

/// Without user, password and token.
impl fmt::Display for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nats://{}", HostPort(&self.host, self.port))
    }
}

impl fmt::Debug for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_perhaps_a_port_and_perhaps_a_login_that_is_never_shown() {
        let check = |text: &str, shown: &str, login: Login| {
            let address: NatsAddress = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.login == login), (shown, true), "{text}");
        };
        let password =
            |user: &str, password: &str| Login::Password { user: user.into(), password: password.into() };
        check("nats://127.0.0.1", "nats://127.0.0.1:4222", Login::None);
        check("nats://broker:1234/", "nats://broker:1234", Login::None);
        check("nats://[::1]:1234", "nats://[::1]:1234", Login::None);
        check("nats://ada:p@ss:word@broker", "nats://broker:4222", password("ada", "p@ss:word"));
        check("nats://s3cret@broker", "nats://broker:4222", Login::Token("s3cret".into()));
        for (text, error) in [
            ("broker:4222", NatsAddressError::Form),
            ("nats://", NatsAddressError::Form),
            ("nats://a,b", NatsAddressError::Form),
            ("nats://a:0", NatsAddressError::Port),
            ("nats://[::1", NatsAddressError::Form),
            ("tls://a", NatsAddressError::Tls),
        ] {
            assert_eq!(text.parse::<NatsAddress>().unwrap_err(), error, "{text}");
        }
    }
}
