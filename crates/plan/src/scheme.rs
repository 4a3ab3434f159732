//! The protocols of a target, one row each.
//!
//! Whatever depends on a protocol alone (its port, its driver, the null server that calibrates it, how a server shows
//! that it speaks it) is in its row; only this table knows which protocols there are. Not here: which bots use it (they
//! say so themselves, in `workloads`), and the syntax of a URL (`target`).

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::credentials::CredentialForm;

/// What is known of a protocol.
#[derive(Debug)]
pub struct Protocol {
    /// as it appears in a URL
    pub name: &'static str,
    /// of a URL that names none
    pub default_port: u16,
    /// what carries its messages
    pub transport: Transport,
    /// the bytes go through TLS
    pub is_tls: bool,
    /// how a server shows, before there is any load, that it speaks this protocol
    pub first_sign: FirstSign,
    /// what clients can show a server of it so that it lets them in
    pub credentials: CredentialForm,
    /// echo clients speak it
    pub has_echo: bool,
    /// a command that starts a server of it; `{address}`, `{ip}` and `{port}` stand for where it is to listen
    pub start_with: &'static str,
}

/// What carries a protocol's messages: a driver, and the null server that calibrates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// RFC 6455
    WebSocket,
    /// HTTP/1.1 or 2
    Http,
    /// a stream of bytes; the bots know how messages lie on it
    Tcp,
    /// Redis's commands and replies over TCP
    Redis,
    /// Hazelcast's Open Binary Client Protocol 2 over TCP
    Hazelcast,
    /// datagrams, which only scripts send
    Udp,
}

/// What may follow host and port in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// nothing
    None,
    /// any path and query
    Any,
    /// the number of a database
    Database,
    /// the name of a map, and of the cluster where it is not `dev`
    Map,
}

impl Transport {
    /// The protocol of the null server that replaces the subject in a calibration (`serve null --protocol …`).
    pub fn null_protocol(self) -> &'static str {
        match self {
            Transport::WebSocket => "websocket",
            Transport::Http => "http",
            // Lines are echoed byte for byte, which costs a server of operations at least as much.
            Transport::Tcp | Transport::Redis | Transport::Hazelcast | Transport::Udp => "lines",
        }
    }

    /// How a URL may continue after host and port.
    pub fn paths(self) -> Paths {
        match self {
            Transport::WebSocket | Transport::Http => Paths::Any,
            Transport::Tcp | Transport::Udp => Paths::None,
            Transport::Redis => Paths::Database,
            Transport::Hazelcast => Paths::Map,
        }
    }
}

/// How a server shows, before there is any load, that it speaks a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstSign {
    /// it completes the transport's own handshake
    Handshake,
    /// it speaks first, and its first line begins with these words
    Greeting {
        /// `NATS`
        of: &'static str,
        /// including the following blank
        begins_with: &'static str,
    },
    /// it may be silent, but does not hang up
    StaysOpen,
}

impl Protocol {
    const fn over(transport: Transport, name: &'static str, default_port: u16) -> Protocol {
        let first_sign = match transport {
            Transport::Tcp | Transport::Udp => FirstSign::StaysOpen,
            // Redis selects a database and Hazelcast authenticates while a connection opens.
            Transport::WebSocket | Transport::Http | Transport::Redis | Transport::Hazelcast => {
                FirstSign::Handshake
            }
        };
        let start_with = match transport {
            Transport::WebSocket => "stepladder serve arena --listen {address}",
            Transport::Http => "stepladder serve null --protocol http --listen {address}",
            Transport::Tcp => "stepladder serve chat --listen {address}",
            Transport::Redis => "redis-server --bind {ip} --port {port} --save '' --appendonly no",
            Transport::Hazelcast => "hz start -i {ip} -p {port}",
            Transport::Udp => "node server.js",
        };
        let credentials = match transport {
            Transport::WebSocket | Transport::Tcp | Transport::Udp => CredentialForm::None,
            Transport::Http => CredentialForm::UserOrToken,
            Transport::Redis => CredentialForm::PasswordOfAnyone,
            Transport::Hazelcast => CredentialForm::User,
        };
        let has_echo = matches!(transport, Transport::WebSocket);
        Protocol {
            name,
            default_port,
            transport,
            is_tls: false,
            first_sign,
            credentials,
            has_echo,
            start_with,
        }
    }
}

macro_rules! schemes {
    ($($(#[$meaning:meta])* $scheme:ident: $protocol:expr,)*) => {
        /// How to speak to a target.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Scheme {
            $($(#[$meaning])* $scheme,)*
        }

        impl Scheme {
            /// All of them.
            pub const ALL: &[Scheme] = &[$(Scheme::$scheme),*];

            /// Their names, in this order.
            pub const NAMES: &[&str] = &[$($protocol.name),*];

            /// Its row of the table.
            pub fn protocol(self) -> &'static Protocol {
                match self {
                    $(Scheme::$scheme => const { &$protocol },)*
                }
            }
        }
    };
}

schemes! {
    /// WebSocket
    Ws: Protocol::over(Transport::WebSocket, "ws", 80),
    /// WebSocket over TLS
    Wss: Protocol { is_tls: true, ..Protocol::over(Transport::WebSocket, "wss", 443) },
    /// lines over TCP
    Tcp: Protocol { has_echo: true, ..Protocol::over(Transport::Tcp, "tcp", 4001) },
    /// datagrams of a game of one's own
    Udp: Protocol::over(Transport::Udp, "udp", 4001),
    /// the Internet Relay Chat protocol over TCP
    Irc: Protocol {
        credentials: CredentialForm::Password,
        start_with: "ngircd --nodaemon",
        ..Protocol::over(Transport::Tcp, "irc", 6667)
    },
    /// the NATS client protocol over TCP
    Nats: Protocol {
        first_sign: FirstSign::Greeting { of: "NATS", begins_with: "INFO " },
        credentials: CredentialForm::UserOrToken,
        start_with: "nats-server -a {ip} -p {port}",
        ..Protocol::over(Transport::Tcp, "nats", 4222)
    },
    /// MQTT over TCP
    Mqtt: Protocol {
        credentials: CredentialForm::User,
        start_with: "mosquitto -p {port}",
        ..Protocol::over(Transport::Tcp, "mqtt", 1883)
    },
    /// Redis and Valkey
    Redis: Protocol::over(Transport::Redis, "redis", 6379),
    /// Redis and Valkey over TLS
    Rediss: Protocol {
        is_tls: true,
        start_with: "redis-server --bind {ip} --port 0 --tls-port {port} --tls-cert-file CERT.pem --tls-key-file KEY.pem \
                     --tls-auth-clients no",
        ..Protocol::over(Transport::Redis, "rediss", 6379)
    },
    /// Hazelcast
    Hazelcast: Protocol::over(Transport::Hazelcast, "hazelcast", 5701),
    /// Hazelcast over TLS
    Hazelcasts: Protocol { is_tls: true, ..Protocol::over(Transport::Hazelcast, "hazelcasts", 5701) },
    /// gRPC over HTTP/2
    Grpc: Protocol {
        start_with: "stepladder serve leaderboard --listen {address}",
        ..Protocol::over(Transport::Http, "grpc", 80)
    },
    /// gRPC over HTTP/2 and TLS
    Grpcs: Protocol {
        is_tls: true,
        start_with: "stepladder serve leaderboard --listen {address}",
        ..Protocol::over(Transport::Http, "grpcs", 443)
    },
    /// HTTP
    Http: Protocol::over(Transport::Http, "http", 80),
    /// HTTP over TLS
    Https: Protocol { is_tls: true, ..Protocol::over(Transport::Http, "https", 443) },
}

impl Scheme {
    /// As it appears in a URL.
    pub fn name(self) -> &'static str {
        self.protocol().name
    }

    /// What carries its messages.
    pub fn transport(self) -> Transport {
        self.protocol().transport
    }

    /// A command that starts a server for such a target.
    pub fn start_with(self, address: SocketAddr) -> String {
        let words = self.protocol().start_with;
        let words = words.replace("{address}", &address.to_string());
        words.replace("{ip}", &address.ip().to_string()).replace("{port}", &address.port().to_string())
    }

    /// Whether calls of gRPC go over it.
    pub fn is_grpc(self) -> bool {
        matches!(self, Scheme::Grpc | Scheme::Grpcs)
    }

    /// Whether requests over HTTP go over it.
    pub fn is_http(self) -> bool {
        self.transport() == Transport::Http && !self.is_grpc()
    }

    /// Whether the bytes go through TLS.
    pub fn is_tls(self) -> bool {
        self.protocol().is_tls
    }

    /// The one of that name, in lower case.
    pub fn named(name: &str) -> Option<Scheme> {
        Scheme::ALL.iter().copied().find(|scheme| scheme.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_protocol_has_a_name_of_its_own_under_which_it_is_stored_too() {
        let names: BTreeSet<&str> = Scheme::NAMES.iter().copied().collect();
        assert_eq!(names.len(), Scheme::ALL.len());
        for &scheme in Scheme::ALL {
            assert_eq!(Scheme::named(scheme.name()), Some(scheme));
            assert_eq!(serde_json::to_value(scheme).unwrap(), scheme.name());
            let is_greeting = matches!(scheme.protocol().first_sign, FirstSign::Greeting { .. });
            assert!(
                !is_greeting || scheme.transport() == Transport::Tcp,
                "only a stream of bytes is read for one"
            );
        }
    }
}
