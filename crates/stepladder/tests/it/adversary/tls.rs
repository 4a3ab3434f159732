//! HTTP over TLS: faults before anything is encrypted.

use std::io;

use super::peer::Peer;
use super::{Load, Row, Unmeasured, check, long, row};

const LOAD: Load =
    Load::new("TLS", "https://127.0.0.1:PORT/ --insecure --requesters 4 --timeout 500ms --think 20ms");

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const CHANGE_CIPHER_SPEC: u8 = 20;

/// A record of TLS 1.2: its type, its length, its content.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &(content.len() as u16).to_be_bytes(), content].concat()
}

/// Waits for a ClientHello and floods with this record.
fn floods(kind: u8, content: &'static [u8]) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        peer.bytes::<5>()?;
        peer.flood(record(kind, content))
    }
}

fn rows() -> Vec<Row> {
    const NOT_TLS: &str = "TLS";
    vec![
        long("accepts and says nothing", Unmeasured, "did not accept a connection within 5 s", Peer::hold),
        row("speaks HTTP", Unmeasured, NOT_TLS, |peer| {
            peer.bytes::<5>()?;
            peer.say_last("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        }),
        row("says a handshake message of 16 MB and sends it", Unmeasured, NOT_TLS, |peer| {
            peer.bytes::<5>()?;
            peer.say(record(HANDSHAKE, &[2, 0xff, 0xff, 0xff]))?;
            peer.flood(record(HANDSHAKE, &[0; 16_000]))
        }),
        long("sends empty certificates without end", Unmeasured, NOT_TLS, floods(HANDSHAKE, &[11, 0, 0, 0])),
        long("sends empty records without end", Unmeasured, NOT_TLS, floods(HANDSHAKE, &[])),
        long("changes ciphers without end", Unmeasured, NOT_TLS, floods(CHANGE_CIPHER_SPEC, &[1])),
        long("warns without end", Unmeasured, NOT_TLS, floods(ALERT, &[1, 0])),
        row("refuses the handshake", Unmeasured, NOT_TLS, |peer| {
            peer.bytes::<5>()?;
            peer.say_last(record(ALERT, &[2, 40]))
        }),
        long("says a record of 65,535 bytes and sends it", Unmeasured, NOT_TLS, |peer| {
            peer.bytes::<5>()?;
            peer.say([HANDSHAKE, 3, 3, 0xff, 0xff])?;
            peer.flood("x")
        }),
    ]
}

#[test]
fn hostile_tls_servers_do_not_pass() {
    check(&LOAD, &rows());
}
