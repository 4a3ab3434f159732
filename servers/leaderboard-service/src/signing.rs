//! Signed changes: who may change scores, and that no signed change is accepted twice.
//!
//! A change names its key (`Stepladder-Key`), a nonce (`Stepladder-Nonce`), when it expires (`Stepladder-Expires`,
//! seconds since the epoch, at most `LIFE_S` ahead), and is signed (`Stepladder-Signature`): HMAC-SHA-256 in
//! hexadecimal digits over method, target, key, nonce, expiry and idempotency key, each followed by a line feed, and
//! the body. The target is path and query as sent; an absent idempotency key counts as empty.
//! Nonces are remembered until they expire; with a data directory across restarts. Without one a signed change can be
//! accepted once more after a restart within its life, which is why that is short. Source: RFC 2104.

use std::collections::HashMap;
use std::path::Path;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::problem::Problem;
use super::unix_s;
use servers_shared::ServeError;
use servers_shared::http::request::Request;

/// How far ahead a change may expire, s.
pub(super) const LIFE_S: u64 = 300;

/// Nonces that are remembered at once.
const NONCES_MAX: usize = 1_000_000;

const NONCE_BYTES_MAX: usize = 64;
const SECRET_BYTES_MIN: usize = 16;
const BLOCK_BYTES: usize = 64;

/// The field with the id of the key that signs.
pub(super) const KEY_FIELD: &str = "Stepladder-Key";

/// The fields with its nonce, when it expires, and the signature.
pub(super) const NONCE_FIELD: &str = "Stepladder-Nonce";
pub(super) const EXPIRES_FIELD: &str = "Stepladder-Expires";
pub(super) const SIGNATURE_FIELD: &str = "Stepladder-Signature";

/// The field with an idempotency key.
pub(super) const IDEMPOTENCY_FIELD: &str = "Idempotency-Key";

/// What is signed.
pub(super) struct Claim<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) key: &'a [u8],
    pub(super) nonce: &'a [u8],
    /// Seconds since the epoch, in decimal digits.
    pub(super) expires: &'a [u8],
    pub(super) idempotency: &'a [u8],
    pub(super) body: &'a [u8],
}

/// One message for an unknown key and a wrong signature, so that the ids of keys cannot be guessed.
fn wrong_signature() -> Problem {
    Problem::new(401, "no known key has made this signature")
}

/// The keys with which changes may be signed.
pub(super) struct Keys {
    by_id: HashMap<Box<str>, Key>,
}

/// Nonces that were used.
#[derive(Default)]
pub(super) struct Nonces {
    /// When they expire, s since the epoch.
    expiry_s: Mutex<HashMap<Nonce, u64>>,
}

/// A change that may be made.
#[derive(Debug)]
pub(super) struct Signed<'a> {
    /// The id of the key that has signed it.
    pub(super) key: &'a str,
    pub(super) nonce: &'a [u8],
    pub(super) expires_s: u64,
}

/// A nonce with the id of its key.
type Nonce = (Box<str>, Box<[u8]>);

/// A secret as the beginnings of both its hashes.
struct Key {
    inner: Sha256,
    outer: Sha256,
}

impl Keys {
    /// Reads a file with an id and a secret in hexadecimal digits on each line; `#` begins a comment.
    ///
    /// Errors: a file that cannot be read, or has a line that is no key.
    pub(super) fn read(path: &Path) -> Result<Keys, ServeError> {
        let failed = |source| ServeError::Keys { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        Keys::parse(&text).map_err(|line| failed(std::io::Error::other(format!("line {line} is no key"))))
    }

    /// Errors: the number of the first line that is no key; 0 when there is none at all.
    fn parse(text: &str) -> Result<Keys, usize> {
        let mut by_id = HashMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (id, secret) = line.split_once(char::is_whitespace).ok_or(number)?;
            let secret = bytes_of_hex(secret.trim().as_bytes()).ok_or(number)?;
            if secret.len() < SECRET_BYTES_MIN || by_id.insert(id.into(), Key::new(&secret)).is_some() {
                return Err(number);
            }
        }
        if by_id.is_empty() { Err(0) } else { Ok(Keys { by_id }) }
    }

    /// Whether a change may be made. Its nonce is used up then.
    ///
    /// Errors: 401 with the reason.
    pub(super) fn check<'a>(&'a self, request: &Request<'a>, nonces: &Nonces) -> Result<Signed<'a>, Problem> {
        let field = |name| {
            let missing = || Problem::new(401, format!("the change is not signed: it has no {name}"));
            request.field(name).ok_or_else(missing)
        };
        let (key, nonce) = (field(KEY_FIELD)?, field(NONCE_FIELD)?);
        let (expires, signature) = (field(EXPIRES_FIELD)?, field(SIGNATURE_FIELD)?);
        let claim = Claim {
            method: request.method,
            target: request.target,
            key,
            nonce,
            expires,
            idempotency: request.field(IDEMPOTENCY_FIELD).unwrap_or_default(),
            body: request.body,
        };
        self.check_claim(&claim, &bytes_of_hex(signature).ok_or_else(wrong_signature)?, nonces)
    }

    /// The same for a change in its parts.
    pub(super) fn check_claim<'a>(
        &'a self,
        claim: &Claim<'a>,
        given: &[u8],
        nonces: &Nonces,
    ) -> Result<Signed<'a>, Problem> {
        let now_s = unix_s();
        let refused = |detail: String| Problem::new(401, detail);
        let Claim { key: id, nonce, expires, .. } = *claim;
        let known = std::str::from_utf8(id).ok().and_then(|id| self.by_id.get_key_value(id));
        let (id, key) = known.ok_or_else(wrong_signature)?;
        let parts = [
            claim.method.as_bytes(),
            claim.target.as_bytes(),
            id.as_bytes(),
            nonce,
            expires,
            claim.idempotency,
        ];
        let signature = key.sign(&parts, claim.body);
        if !is_same(&signature, given) {
            return Err(wrong_signature());
        }
        let expires_s = std::str::from_utf8(expires).ok().and_then(|text| text.parse::<u64>().ok());
        let expires_s = expires_s.filter(|at_s| *at_s >= now_s && *at_s <= now_s + LIFE_S);
        let expires_s = expires_s.ok_or_else(|| {
            refused(format!(
                "Stepladder-Expires must be at most {LIFE_S} s ahead and not past; it is {now_s} now"
            ))
        })?;
        if !(1..=NONCE_BYTES_MAX).contains(&nonce.len()) {
            return Err(refused(format!("a nonce has 1 to {NONCE_BYTES_MAX} bytes")));
        }
        let signed = Signed { key: id, nonce, expires_s };
        nonces.use_up(&signed, now_s)?;
        Ok(signed)
    }
}

impl Nonces {
    fn use_up(&self, signed: &Signed<'_>, now_s: u64) -> Result<(), Problem> {
        let mut used = self.expiry_s.lock();
        if used.len() >= NONCES_MAX {
            used.retain(|_, expires_s| *expires_s >= now_s);
            if used.len() >= NONCES_MAX {
                return Err(Problem::new(429, "too many signed changes; try again in a while"));
            }
        }
        let before = used.insert((signed.key.into(), signed.nonce.into()), signed.expires_s);
        if before.is_some_and(|until_s| until_s >= now_s) {
            return Err(Problem::nonce_used());
        }
        Ok(())
    }

    /// Takes in a nonce that was used before.
    pub(super) fn restore(&self, signed: &Signed<'_>) {
        if signed.expires_s >= unix_s() {
            self.expiry_s.lock().insert((signed.key.into(), signed.nonce.into()), signed.expires_s);
        }
    }

    /// All nonces that could be used again, for storage.
    pub(super) fn each(&self, mut each: impl FnMut(&Signed<'_>)) {
        let now_s = unix_s();
        for ((key, nonce), expires_s) in self.expiry_s.lock().iter().filter(|(_, at_s)| **at_s >= now_s) {
            each(&Signed { key, nonce, expires_s: *expires_s });
        }
    }
}

impl Key {
    fn new(secret: &[u8]) -> Key {
        let mut block = [0; BLOCK_BYTES];
        if secret.len() > BLOCK_BYTES {
            block[..32].copy_from_slice(&Sha256::digest(secret));
        } else {
            block[..secret.len()].copy_from_slice(secret);
        }
        let begin = |pad: u8| Sha256::new().chain_update(block.map(|byte| byte ^ pad));
        Key { inner: begin(0x36), outer: begin(0x5c) }
    }

    fn sign(&self, lines: &[&[u8]], body: &[u8]) -> [u8; 32] {
        let mut inner = self.inner.clone();
        for line in lines {
            inner.update(line);
            inner.update(b"\n");
        }
        inner.update(body);
        self.outer.clone().chain_update(inner.finalize()).finalize().into()
    }
}

/// Takes as long whichever byte differs.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

pub(super) fn bytes_of_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? * 16 + digit(*low)?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_standard() {
        // RFC 4231, cases 2 and 6.
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(Key::new(b"Jefe").sign(&[], b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(Key::new(&[0xaa; 131]).sign(&[], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_file_of_keys_is_read_or_its_wrong_line_is_named() {
        let secret = "00112233445566778899aabbccddeeff";
        assert_eq!(
            Keys::parse(&format!("# keys\n\ngame {secret} # ours\nother\t{secret}")).unwrap().by_id.len(),
            2
        );
        for (text, line) in [
            ("", 0),
            ("game", 1),
            ("game 0011", 1),
            (&format!("game {secret}0"), 1),
            (&format!("game {secret}\ngame {secret}"), 2),
        ] {
            assert_eq!(Keys::parse(text).err(), Some(line), "{text}");
        }
    }
}
