//! Signed changes, as honest clients make them, and the requests of cheaters, which a service must refuse.
//!
//! A signature is HMAC-SHA-256 (RFC 2104) over method, target, key id, nonce, expiry and idempotency key, each followed
//! by a line feed, and the body; `servers/leaderboard-service/src/signing.rs` implements the same but shares no code.
//! For messages over WebSocket and gRPC the method is `PROTOBUF`, the target the operation's name, and the body the
//! operation's message.
//! A cheat is a change with a single flaw: its signature is missing, false or expired, or it repeats an acknowledged
//! change, including the nonce.

use hmac::{Hmac, Mac};
use plan::SigningKey;
use sha2::Sha256;
use strum::VariantArray;

/// A change expires so long after it was signed; servers take at most five minutes.
const LIFE_S: u64 = 120;
/// A cheat that has expired did so this long ago.
const EXPIRED_S: u64 = 60;

/// Name and value.
pub type Header = (String, String);

/// A change in the form in which it can be sent once more.
#[derive(Clone, Debug)]
pub struct SignedChange {
    pub method: &'static str,
    pub target: String,
    pub headers: Vec<Header>,
    pub body: Vec<u8>,
    /// what is signed of it
    pub claim: Claim,
    pub is_signed: bool,
    /// what it asks for
    pub updates: Vec<(u32, i64)>,
}

/// What is signed of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub method: &'static str,
    pub target: String,
    /// where in the body that begins which is signed; it goes to the end
    pub from: usize,
}

/// Who makes a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub key: String,
    pub nonce: String,
    pub expires_s: u64,
    pub hmac: [u8; 32],
}

impl Signature {
    /// As HTTP carries it, and gRPC in its metadata.
    pub fn headers(&self) -> [Header; 4] {
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
        let hmac = self.hmac.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        [
            ("Stepladder-Key", self.key.clone()),
            ("Stepladder-Nonce", self.nonce.clone()),
            ("Stepladder-Expires", self.expires_s.to_string()),
            ("Stepladder-Signature", hmac),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    }
}

/// What is wrong with a cheat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Cheat {
    Unsigned,
    Forged,
    Expired,
    Replayed,
}

impl Cheat {
    pub const ALL: &[Cheat] = <Cheat as VariantArray>::VARIANTS;

    /// For texts of errors.
    pub fn name(self) -> &'static str {
        match self {
            Cheat::Unsigned => "an update without a signature",
            Cheat::Forged => "an update with a false signature",
            Cheat::Expired => "an update with an expired signature",
            Cheat::Replayed => "an update that was acknowledged before, repeated with its nonce",
        }
    }
}

/// Signs with one key, over one trial.
pub struct Signer {
    id: String,
    mac: Hmac<Sha256>,
    /// of a key that the service does not know
    false_mac: Hmac<Sha256>,
    /// no two workers and no two trials have the same
    nonce_prefix: String,
    nonces: u64,
    /// s since the epoch
    now_s: u64,
}

impl Signer {
    /// `None`: the secret is not the hexadecimal digits of a key, which was refused before.
    pub fn new(key: &SigningKey, worker: usize) -> Option<Signer> {
        let secret = key.secret_bytes()?;
        let false_secret: Vec<u8> = secret.iter().map(|byte| !byte).collect();
        Some(Signer {
            id: key.id.clone(),
            mac: Hmac::new_from_slice(&secret).ok()?,
            false_mac: Hmac::new_from_slice(&false_secret).ok()?,
            nonce_prefix: format!("{worker}"),
            nonces: 0,
            now_s: 0,
        })
    }

    /// A trial that began at this moment.
    pub fn begin(&mut self, worker: usize, unix_ns: u64) {
        self.nonce_prefix = format!("{unix_ns:x}-{worker}");
        self.now_s = unix_ns / 1_000_000_000;
    }

    /// The time goes on.
    pub fn set_now(&mut self, unix_ns: u64) {
        self.now_s = unix_ns / 1_000_000_000;
    }

    /// Signs a change.
    pub fn sign(&mut self, claim: &Claim, body: &[u8]) -> Signature {
        self.signature(claim, body, None)
    }

    /// The signature of a cheat; `None`: it has none, or that of what it repeats.
    pub fn sign_falsely(&mut self, cheat: Cheat, claim: &Claim, body: &[u8]) -> Option<Signature> {
        match cheat {
            Cheat::Unsigned | Cheat::Replayed => None,
            Cheat::Forged | Cheat::Expired => Some(self.signature(claim, body, Some(cheat))),
        }
    }

    fn signature(&mut self, claim: &Claim, body: &[u8], cheat: Option<Cheat>) -> Signature {
        self.nonces += 1;
        let nonce = format!("{}-{}", self.nonce_prefix, self.nonces);
        let expires_s = match cheat {
            Some(Cheat::Expired) => self.now_s.saturating_sub(EXPIRED_S),
            _ => self.now_s + LIFE_S,
        };
        let expires = expires_s.to_string();
        let mut mac = if cheat == Some(Cheat::Forged) { self.false_mac.clone() } else { self.mac.clone() };
        // No idempotency key is sent, which counts as an empty one.
        for line in [claim.method, &claim.target, &self.id, &nonce, &expires, ""] {
            mac.update(line.as_bytes());
            mac.update(b"\n");
        }
        mac.update(body.get(claim.from..).unwrap_or_default());
        Signature { key: self.id.clone(), nonce, expires_s, hmac: mac.finalize().into_bytes().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        let key = SigningKey { id: "game".to_owned(), secret: "5a".repeat(32) };
        let mut signer = Signer::new(&key, 3).unwrap();
        signer.begin(3, 1_800_000_000_000_000_000);
        signer
    }

    fn value<'a>(headers: &'a [Header], name: &str) -> &'a str {
        &headers.iter().find(|(known, _)| known == name).unwrap().1
    }

    fn claim(target: &str) -> Claim {
        Claim { method: "PATCH", target: target.to_owned(), from: 0 }
    }

    #[test]
    fn a_signature_is_that_of_the_documented_lines() {
        let headers = signer().sign(&claim("/leaderboards/main/members/ann?score=1"), b"").headers();
        assert_eq!(value(&headers, "Stepladder-Expires"), "1800000120");
        let nonce = value(&headers, "Stepladder-Nonce");
        // HMAC by its definition, from hashes alone.
        use sha2::Digest;
        let pad = |with: u8| [0x5a ^ with; 32].into_iter().chain([with; 32]).collect::<Vec<u8>>();
        let text = format!("PATCH\n/leaderboards/main/members/ann?score=1\ngame\n{nonce}\n1800000120\n\n");
        let inner = Sha256::digest([&pad(0x36)[..], text.as_bytes()].concat());
        let expected: String = Sha256::digest([&pad(0x5c)[..], &inner[..]].concat())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(value(&headers, "Stepladder-Signature"), expected);
    }

    #[test]
    fn no_nonce_comes_twice_and_cheats_differ_from_what_is_honest_in_one_thing() {
        let mut signer = signer();
        let claim = claim("/a?score=1");
        let [first, second] = [(); 2].map(|()| signer.sign(&claim, b""));
        assert_ne!(first.nonce, second.nonce);
        let forged = signer.sign_falsely(Cheat::Forged, &claim, b"").unwrap();
        assert_eq!(forged.expires_s, first.expires_s);
        let expired = signer.sign_falsely(Cheat::Expired, &claim, b"").unwrap();
        assert!(expired.expires_s < first.expires_s);
        assert_eq!(signer.sign_falsely(Cheat::Unsigned, &claim, b""), None);
    }

    #[test]
    fn only_the_operation_within_a_message_is_signed() {
        let claim = |from| Claim { method: "PROTOBUF", target: "update".to_owned(), from };
        let whole = signer().sign(&claim(0), b"operation");
        assert_eq!(signer().sign(&claim(2), b"\x12\x09operation"), whole);
        assert_ne!(signer().sign(&claim(0), b"\x12\x09operation").hmac, whole.hmac);
    }
}
