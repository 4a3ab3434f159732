use super::*;
use crate::credentials::{Credentials, SecretSource};

fn env(name: &str) -> SecretSource {
    SecretSource::Env(name.into())
}

fn password(user: Option<&str>, from: SecretSource) -> Credentials {
    Credentials::Password { user: user.map(Into::into), from }
}

fn of(plan: Plan) -> Credentials {
    plan.subject.target().and_then(|target| target.credentials.clone()).expect("credentials")
}

#[test]
fn credentials_are_named_and_never_written_out() {
    for (line, expected) in [
        ("nats://127.0.0.1 --token-env T", Credentials::Token { from: env("T") }),
        ("nats://127.0.0.1 --user bob --password-env P", password(Some("bob"), env("P"))),
        (
            "mqtt://127.0.0.1 --user bob --password-file p.txt",
            password(Some("bob"), SecretSource::File("p.txt".into())),
        ),
        ("irc://127.0.0.1 --password-env P", password(None, env("P"))),
        ("redis://127.0.0.1 --password-env P", password(None, env("P"))),
        ("redis://127.0.0.1 --password-env P --user bob", password(Some("bob"), env("P"))),
        ("hazelcast://127.0.0.1 --password-env P --user bob", password(Some("bob"), env("P"))),
        ("http://127.0.0.1 --token-file t", Credentials::Token { from: SecretSource::File("t".into()) }),
        ("https://127.0.0.1 --user bob --password-env P", password(Some("bob"), env("P"))),
    ] {
        assert_eq!(of(plan_of_flags(line)), expected, "{line}");
    }
    assert!(!serde_json::to_string(&plan_of_flags("nats://127.0.0.1")).unwrap().contains("credentials"));
}

#[test]
fn a_secret_of_the_command_line_stands_in_place_of_the_files() {
    let text = "subject: { target: 'nats://127.0.0.1' }\ncredentials: { user: bob, password_env: P }\n";
    assert_eq!(of(plan_of(text)), password(Some("bob"), env("P")));
    let with = |flags: &str| of(plan_over(&format!("x.yaml {flags}"), text));
    assert_eq!(with("--password-env Q"), password(Some("bob"), env("Q")));
    assert_eq!(with("--user eve"), password(Some("eve"), env("P")));
    assert_eq!(with("--token-env T"), Credentials::Token { from: env("T") });
    check_file(
        "subject: { target: 'nats://127.0.0.1' }\ncredentials: { user: bob, token_env: T }\n",
        "2: credentials.token_env: a token stands alone; leave the user name out, or name a password instead \
           (--password-env VARIABLE)",
    );
}

#[test]
fn credentials_that_make_no_sense_are_refused_with_what_to_write() {
    check_refusals(
        "$ climb nats://127.0.0.1 --user bob
           --user: a user name alone lets nobody in; name its password with --password-env VARIABLE or --password-file \
             FILE
         $ climb nats://127.0.0.1 --token-env T --password-env P
           --token-env: password_env says where the secret is, and so does token_env; only one of them can be meant
         $ climb mqtt://127.0.0.1 --token-env T
           --token-env: mqtt:// has no place for a token; give --user NAME and --password-env VARIABLE
         $ climb mqtt://127.0.0.1 --password-env P
           --password-env: mqtt:// asks whose password it is; name the user with --user NAME
         $ climb irc://127.0.0.1 --user bob --password-env P
           --password-env: irc:// has no place for a user name; give --password-env VARIABLE
         $ climb redis://127.0.0.1 --token-env T
           --token-env: redis:// has no place for a token; give --password-env VARIABLE, and --user NAME where the \
             password is a user's
         $ climb tcp://127.0.0.1 --bots chat --password-env P
           --password-env: password_env is for servers that ask for credentials over their own protocol: tcp:// has \
             none; leave them out
         $ climb ws://127.0.0.1 --token-env T
           --token-env: token_env is for servers that ask for credentials over their own protocol: ws:// has none, and \
             a server that asks for them reads them from a header: --header 'Authorization: Bearer ${VARIABLE}'
         $ climb arena --token-env T
           --token-env: token_env is for servers of your own, but arena is built in: it is started and watched by \
             itself
         $ climb chat --user bob --password-env P
           --password-env: password_env is for servers of your own, but chat is built in: it is started and watched by \
             itself
         $ climb http://127.0.0.1 --bots leaderboard --token-env T
           --token-env: token_env is not for leaderboard bots: they show a service no credentials of this kind
         $ climb http://127.0.0.1 --user a:b --password-env P
           --password-env: a user name of Basic credentials holds no colon
         $ climb http://127.0.0.1 --token-env T --header 'authorization: Bearer ${X}'
           --token-env: a header Authorization is there too, and these credentials are sent as one; only one of them \
             can be meant",
    );
}

#[test]
fn a_secret_in_place_of_its_variable_is_not_repeated() {
    for secret in ["hunter2!", "$hunter2", "'my hunter2'", "hunter2=="] {
        for option in ["--password-env", "--token-env"] {
            let said = refusal(&format!("nats://127.0.0.1 --user bob {option} {secret}"));
            assert!(said.contains("this is not the name of an environment variable"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
