//! Signed changes and repetitions of the leaderboard service.

use std::time::{SystemTime, UNIX_EPOCH};

use servers::ServeError;
use servers::leaderboard_service::{self, Options};
use sha2::{Digest, Sha256};

use crate::leaderboard_client::{Player, at, options, request, start};

pub const SECRET: [u8; 32] = [0x5a; 32];
const PATH: &str = "/leaderboards/main/members/ann";

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hmac(text: &str) -> String {
    hex(&hmac_bytes(text.as_bytes()))
}

pub fn hmac_bytes(text: &[u8]) -> Vec<u8> {
    let pad = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(SECRET).for_each(|(byte, secret)| *byte ^= secret);
        block
    };
    let inner = Sha256::digest([&pad(0x36)[..], text].concat());
    Sha256::digest([&pad(0x5c)[..], &inner[..]].concat()).to_vec()
}

pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A request with the fields that sign it.
fn signed(method: &str, target: &str, body: &str, nonce: &str, expires_s: u64) -> String {
    let signature = hmac(&format!("{method}\n{target}\ngame\n{nonce}\n{expires_s}\n\n{body}"));
    with_fields(
        &request(method, target, body),
        &format!(
            "Stepladder-Key: game\r\nStepladder-Nonce: {nonce}\r\nStepladder-Expires: {expires_s}\r\n\
             Stepladder-Signature: {signature}\r\n"
        ),
    )
}

fn with_fields(request: &str, fields: &str) -> String {
    request.replacen("Host: x\r\n", &format!("Host: x\r\n{fields}"), 1)
}

#[test]
fn only_signed_changes_are_made_and_each_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("# who may\ngame {}\n", hex(&SECRET))).unwrap();
    let running = start(Options { keys: Some(file.path().to_owned()), ..options() });
    let mut player = Player::of(&running);
    let increment = &format!("{PATH}?score=1");
    let later_s = now_s() + 60;
    let first = signed("PATCH", increment, "", "n1", later_s);
    let mut status = |request: &str| player.0.ask(request).status;
    assert_eq!(status(&first), 200);
    assert_eq!(status(&first), 401, "the nonce was used");
    assert_eq!(status(&request("PATCH", increment, "")), 401, "not signed");
    assert_eq!(status(&first.replace("score=1", "score=9")), 401, "another target");
    assert_eq!(status(&first.replace("PATCH", "PUT")), 401, "another method");
    assert_eq!(status(&first.replace("Key: game", "Key: other")), 401, "an unknown key");
    assert_eq!(status(&first.replace("Nonce: n1", "Nonce: n2")), 401, "another nonce");
    assert_eq!(status(&signed("PATCH", increment, "", "n3", now_s() - 5)), 401, "expired");
    assert_eq!(status(&signed("PATCH", increment, "", "n4", later_s + 3600)), 401, "expires too late");
    let body = r#"{"leaderboards":[{"leaderboard":"main","scores":[{"member":"ann","score":"1","mode":"increment"}]}]}"#;
    let bulk = signed("POST", "/bulk", body, "n5", later_s);
    assert_eq!(status(&bulk.replace(r#""score":"1""#, r#""score":"7""#)), 401, "another body");
    assert_eq!(status(&bulk), 200);
    assert_eq!(player.standing("ann"), at(2, 1), "reading needs no signature");
    running.end().unwrap();
}

#[test]
fn a_nonce_stays_used_after_a_restart() {
    let (file, directory) = (tempfile::NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(file.path(), format!("game {}\n", hex(&SECRET))).unwrap();
    let once = signed("PATCH", &format!("{PATH}?score=1"), "", "n1", now_s() + 250);
    for status in [200, 401, 401] {
        let (keys, data) = (Some(file.path().to_owned()), Some(directory.path().to_owned()));
        let running = start(Options { keys, data, ..options() });
        assert_eq!(Player::of(&running).0.ask(&once).status, status);
        running.end().unwrap();
    }
}

#[test]
fn a_repetition_with_the_same_idempotency_key_gets_the_first_answer_and_changes_nothing() {
    let running = start(options());
    let mut player = Player::of(&running);
    let increment = request("PATCH", &format!("{PATH}?score=1"), "");
    let keyed = |request: &str, key: &str| with_fields(request, &format!("Idempotency-Key: {key}\r\n"));
    let first = player.0.ask(&keyed(&increment, "a"));
    assert_eq!(player.0.ask(&keyed(&increment, "a")), first);
    assert_eq!(player.standing("ann"), at(1, 1));
    player.0.ask(&keyed(&increment, "b"));
    assert_eq!(player.standing("ann"), at(2, 1));
    let other = increment.replace("score=1", "score=2");
    assert_eq!(player.0.ask(&keyed(&other, "a")).status, 409);
    let wrong = increment.replace("score=1", "score=x");
    assert_eq!(player.0.ask(&keyed(&wrong, "c")).status, 422);
    assert_eq!(player.0.ask(&keyed(&increment, "c")).status, 200, "what was refused may be tried again");
    assert_eq!(player.standing("ann"), at(3, 1));
    running.end().unwrap();
}

#[test]
fn a_service_that_others_can_reach_wants_keys_or_an_explicit_permission() {
    let anywhere = Options { listen: "0.0.0.0:0".parse().unwrap(), ..options() };
    let error = leaderboard_service::run(anywhere, |_| ()).unwrap_err();
    assert!(matches!(error, ServeError::Unsigned { .. }), "{error}");
    let missing = Options { keys: Some("/nowhere/keys".into()), ..options() };
    let error = leaderboard_service::run(missing, |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/keys: cannot read the keys"), "{error}");
}
