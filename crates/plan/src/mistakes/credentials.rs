//! Mistakes in credentials. No message repeats a value that could be the secret itself.

use thiserror::Error;

use crate::scheme::Scheme;

/// What is wrong with credentials.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CredentialsError {
    /// the secret itself, perhaps, where the name of its variable belongs
    #[error(
        "this is not the name of an environment variable (letters, digits and _); write the name of the variable that holds the \
         secret, and never the secret itself"
    )]
    NotAVariable,
    /// control characters
    #[error("a user name holds no control characters")]
    UserName,
    /// RFC 7617
    #[error("a user name of Basic credentials holds no colon")]
    Colon,
    /// a password here and a token there, for example
    #[error("{first} says where the secret is, and so does {second}; only one of them can be meant")]
    Twice {
        /// `password_env`
        first: &'static str,
        /// `token_file`
        second: &'static str,
    },
    /// a user without password
    #[error(
        "a user name alone lets nobody in; name its password with --password-env VARIABLE or --password-file FILE"
    )]
    UserAlone,
    /// a token with a user
    #[error(
        "a token stands alone; leave the user name out, or name a password instead (--password-env VARIABLE)"
    )]
    UserOfToken,
    /// a password of nobody
    #[error("{}:// asks whose password it is; name the user with --user NAME", scheme.name())]
    NoUser {
        /// of the target
        scheme: Scheme,
    },
    /// a form that the protocol has no place for
    #[error(
        "{}:// has no place for a {what}; give {}", scheme.name(), scheme.protocol().credentials.options()
    )]
    NotOfScheme {
        /// of the target
        scheme: Scheme,
        /// `token`, `user name`
        what: &'static str,
    },
    /// no credentials at all
    #[error("{setting} is for servers that ask for credentials over their own protocol: {}", instead(*scheme))]
    NoneOfScheme {
        /// `user`
        setting: &'static str,
        /// of the target
        scheme: Scheme,
    },
    /// clients that take none
    #[error("{setting} is not for {bots} bots: they show a service no credentials of this kind")]
    NotOfBots {
        /// `user`
        setting: &'static str,
        /// which bots
        bots: &'static str,
    },
    /// an Authorization header beside what makes one
    #[error(
        "a header Authorization is there too, and these credentials are sent as one; only one of them can be meant"
    )]
    Header,
}

/// What to do where a scheme takes no credentials.
pub(crate) fn instead(scheme: Scheme) -> String {
    let name = scheme.name();
    if scheme.transport() == crate::scheme::Transport::WebSocket {
        return format!(
            "{name}:// has none, and a server that asks for them reads them from a header: \
             --header 'Authorization: Bearer ${{VARIABLE}}'"
        );
    }
    format!("{name}:// has none; leave them out")
}
