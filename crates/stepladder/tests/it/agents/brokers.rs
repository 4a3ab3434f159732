//! Brokers with TLS and with each kind of credentials: agents and climbs with the right ones meet there, and others learn what to do.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};

use super::broker;
use crate::place::{Place, Running};
use crate::tls_proxy::{AUTHORITY, CERTIFICATE, KEY};

const TOKEN: &str = "tr0ub4dor-token";

/// What agents and climbs publish, as docs/scale.md has it.
const PUBLISHES: &str =
    r#""stepladder.>", "$JS.API.>", "$KV.stepladder.>", "$O.stepladder-bundles.>", "_INBOX.>""#;

/// A broker's configuration, what its users give, and what others are told.
struct Case {
    config: String,
    right: &'static str,
    wrong: &'static [(&'static str, &'static str)],
}

/// Words of the command line; HOST is where the broker listens, and files are the place's.
fn run(place: &Place, command: &[&str], link: &str, host: &str) -> Running {
    let link = link.replace("HOST", host);
    let mut command = place.command(command.iter().copied().chain(link.split(' ')));
    command.env("BROKER_TOKEN", TOKEN).env("WRONG_TOKEN", "wrong-t0ken");
    place.start_command(command)
}

#[test]
fn a_broker_with_tls_or_credentials_is_met_by_those_that_have_them_and_others_learn_what_to_do() {
    let place = Place::new();
    fs::copy(AUTHORITY, place.path("ca.pem")).expect("the authority");
    fs::copy(CERTIFICATE, place.path("leaf.pem")).expect("a certificate that signed nothing");
    let (user, other) = (KeyPair::new_user(), KeyPair::new_user());
    place.write("user.nk", &(user.seed().expect("a seed") + "\n"));
    place.write("other.nk", &other.seed().expect("a seed"));
    let (operator, stranger) = (Operator::new(), Operator::new());
    place.write("user.creds", &operator.credentials());
    place.write("other.creds", &stranger.credentials());
    let tls = format!("tls {{ cert_file: {CERTIFICATE:?}, key_file: {KEY:?} }}\n");
    let cases = [
        Case {
            config: format!("{tls} authorization {{ token: {TOKEN:?} }}"),
            right: "--nats tls://${BROKER_TOKEN}@HOST --nats-ca ca.pem",
            wrong: &[
                (
                    "--nats tls://${WRONG_TOKEN}@HOST --nats-ca ca.pem",
                    "refuses these credentials; give those of its configuration",
                ),
                ("--nats tls://HOST --nats-ca ca.pem", "refuses these credentials"),
                (
                    "--nats tls://${BROKER_TOKEN}@HOST",
                    "does not know who signed its certificate; name the authority with --nats-ca FILE",
                ),
                ("--nats nats://${BROKER_TOKEN}@HOST", "does not know who signed its certificate"),
                (
                    "--nats tls://HOST --nats-ca leaf.pem",
                    "was not signed by that of --nats-ca leaf.pem; name the one that did",
                ),
                ("--nats tls://HOST --nats-ca none.pem", "--nats-ca none.pem: it cannot be read"),
                ("--nats tls://HOST --nats-ca user.nk", "--nats-ca user.nk: no certificate (PEM) is in it"),
            ],
        },
        Case {
            // Of the second the broker keeps nothing.
            config: format!(
                "authorization {{ users: [ {{ user: u, password: {TOKEN:?}, permissions: {{ publish: [{PUBLISHES}], subscribe: \
                 [\"stepladder.>\", \"_INBOX.>\"] }} }}, {{ user: narrow, password: {TOKEN:?}, permissions: {{ publish: \"stepladder.>\" }} }} ] }}"
            ),
            right: "--nats nats://u:${BROKER_TOKEN}@HOST",
            wrong: &[
                ("--nats nats://u:${WRONG_TOKEN}@HOST", "refuses these credentials"),
                ("--nats nats://narrow:${BROKER_TOKEN}@HOST", "or these credentials may not use it"),
            ],
        },
        Case {
            config: format!("authorization {{ users: [ {{ nkey: {} }} ] }}", user.public_key()),
            right: "--nats HOST --nats-nkey user.nk",
            wrong: &[
                ("--nats HOST --nats-nkey other.nk", "refuses these credentials"),
                ("--nats HOST", "refuses these credentials"),
                ("--nats HOST --nats-nkey none.nk", "--nats-nkey none.nk: it cannot be read"),
                ("--nats HOST --nats-nkey ca.pem", "--nats-nkey ca.pem: no seed of an NKey"),
                (
                    "--nats tls://HOST --nats-nkey user.nk",
                    "does not speak TLS; write nats:// instead of tls://",
                ),
            ],
        },
        Case {
            config: tls + &operator.config(),
            right: "--nats tls://HOST --nats-ca ca.pem --nats-creds user.creds",
            wrong: &[
                ("--nats tls://HOST --nats-ca ca.pem --nats-creds other.creds", "refuses these credentials"),
                ("--nats tls://HOST --nats-ca ca.pem", "refuses these credentials"),
                ("--nats tls://HOST --nats-creds none.creds", "--nats-creds none.creds: it cannot be read"),
                ("--nats tls://HOST --nats-creds user.nk", "--nats-creds user.nk: no credentials of NATS"),
            ],
        },
    ];
    for (number, Case { config, right, wrong }) in cases.into_iter().enumerate() {
        let file = place.write(&format!("{number}.conf"), &config);
        let options = ["--jetstream", "--config", &file.to_string_lossy()];
        let Some((_broker, url)) = broker(&place, "127.0.0.1", &options) else { return };
        let host = url.trim_start_matches("nats://");
        let mut agent = run(&place, &["agent", "--name", "a"], right, host);
        agent.wait_for("agent a waits at");
        for (link, said) in wrong {
            for command in [&["agent"][..], &["climb", "arena", "--agents", "1"]] {
                let ran = run(&place, command, link, host).finish();
                ran.refused(2, &[said]);
                for secret in [TOKEN, "wrong-t0ken", "SUA"] {
                    assert!(!ran.err.contains(secret), "no secret is shown: {ran:#?}");
                }
            }
        }
        // One second of a real load: the stream, the keys and the plan's bucket may be used too.
        let words = [
            "climb",
            "chat",
            "--rungs",
            "4",
            "--hold",
            "1s",
            "--no-calibration",
            "--json",
            "run.json",
            "--agents",
            "1",
        ];
        let ran = run(&place, &words, right, host).finish();
        assert!(place.path("run.json").exists(), "{right}: {ran:#?}");
        let run = place.json("run.json");
        let agents = &run["rungs"][0]["agents"];
        assert_eq!((&agents[0]["name"], &agents[0]["bots"]), (&json!("a"), &json!(4)), "{right}: {ran:#?}");
        fs::remove_file(place.path("run.json")).expect("it is there");
    }
}

/// Who signs accounts, as `nsc` makes them: an account with JetStream, one for the system, and a user.
struct Operator {
    own: KeyPair,
    account: KeyPair,
    system: KeyPair,
    user: KeyPair,
}

impl Operator {
    fn new() -> Operator {
        let account = KeyPair::new_account;
        Operator {
            own: KeyPair::new_operator(),
            account: account(),
            system: account(),
            user: KeyPair::new_user(),
        }
    }

    /// A server that trusts it.
    fn config(&self) -> String {
        let mut limits = json!({ "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
            "leaf": -1 });
        let of_account = |limits: &Value| json!({ "type": "account", "version": 2, "limits": limits });
        let system = token(&self.own, &self.system, &of_account(&limits));
        for name in ["mem_storage", "disk_storage", "streams", "consumer"] {
            limits[name] = json!(-1);
        }
        let account = token(&self.own, &self.account, &of_account(&limits));
        let operator = token(&self.own, &self.own, &json!({ "type": "operator", "version": 2 }));
        let (account_id, system_id) = (self.account.public_key(), self.system.public_key());
        format!(
            "operator: {operator}\nresolver: MEMORY\nsystem_account: {system_id}\n\
             resolver_preload: {{\n {account_id}: {account}\n {system_id}: {system}\n}}\n"
        )
    }

    /// A file of credentials of its user.
    fn credentials(&self) -> String {
        let facts = json!({ "type": "user", "version": 2, "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1 });
        let user = token(&self.account, &self.user, &facts);
        let seed = self.user.seed().expect("a seed");
        format!(
            "-----BEGIN NATS USER JWT-----\n{user}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }
}

/// A JWT as NATS has them: signed with the key of whom issues it.
fn token(issuer: &KeyPair, subject: &KeyPair, facts: &Value) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({ "jti": "test", "iat": 1_700_000_000, "iss": issuer.public_key(), "sub": subject.public_key(), "name": "test",
        "nats": facts });
    let text = format!("{}.{}", part(json!({ "typ": "JWT", "alg": "ed25519-nkey" })), part(claims));
    let signature = issuer.sign(text.as_bytes()).expect("it has its seed");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}
