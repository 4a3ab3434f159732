//! The credentials that clients present to a server.
//!
//! A plan holds only where the secret is: the name of an environment variable or of a file. The value is read before
//! the first connection and exists only in the workers' plans, which are neither stored nor shown.
//! Not here: the settings for it (`layers::credentials`), and reading the value (`stepladder`).

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Credentials as a plan names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credentials {
    /// a password
    Password {
        /// whose it is; `None`: the server's own
        user: Option<String>,
        /// where it is
        from: SecretSource,
    },
    /// a token, without a user
    Token {
        /// where it is
        from: SecretSource,
    },
}

impl Credentials {
    /// Where the secret is.
    pub fn source(&self) -> &SecretSource {
        let (Credentials::Password { from, .. } | Credentials::Token { from }) = self;
        from
    }

    /// The option that says where the secret is.
    pub fn option(&self) -> &'static str {
        match (self, self.source()) {
            (Credentials::Password { .. }, SecretSource::Env(_)) => "--password-env",
            (Credentials::Password { .. }, SecretSource::File(_)) => "--password-file",
            (Credentials::Token { .. }, SecretSource::Env(_)) => "--token-env",
            (Credentials::Token { .. }, SecretSource::File(_)) => "--token-file",
        }
    }

    /// The same with the secret itself.
    pub fn with_secret(&self, secret: String) -> Login {
        match self {
            Credentials::Password { user, .. } => Login::Password { user: user.clone(), password: secret },
            Credentials::Token { .. } => Login::Token(secret),
        }
    }
}

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    /// in this environment variable
    Env(String),
    /// in this file; the end of its last line does not belong to it
    File(PathBuf),
}

/// Credentials with the secret itself. Never stored.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    /// a password
    Password {
        /// whose it is; `None`: the server's own
        user: Option<String>,
        /// without control characters
        password: String,
    },
    /// without control characters
    Token(String),
}

/// Without the secret.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Login::Password { user, .. } => f.debug_struct("Password").field("user", user).finish(),
            Login::Token(_) => f.write_str("Token"),
        }
    }
}

/// What a protocol has a place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialForm {
    /// no credentials
    None,
    /// the password of the server
    Password,
    /// a password, of the server or of a user
    PasswordOfAnyone,
    /// a user and its password
    User,
    /// a user and its password, or a token
    UserOrToken,
}

impl CredentialForm {
    /// The options that give them; empty where there are none.
    pub fn options(self) -> &'static str {
        match self {
            CredentialForm::None => "",
            CredentialForm::Password => "--password-env VARIABLE",
            CredentialForm::PasswordOfAnyone => {
                "--password-env VARIABLE, and --user NAME where the password is a user's"
            }
            CredentialForm::User => "--user NAME and --password-env VARIABLE",
            CredentialForm::UserOrToken => "--token-env VARIABLE, or --user NAME and --password-env VARIABLE",
        }
    }

    /// Whether a user may be named.
    pub fn takes_user(self) -> bool {
        !matches!(self, CredentialForm::None | CredentialForm::Password)
    }

    /// Whether a password needs a user.
    pub fn needs_user(self) -> bool {
        matches!(self, CredentialForm::User | CredentialForm::UserOrToken)
    }

    /// Whether a token may stand alone.
    pub fn takes_token(self) -> bool {
        self == CredentialForm::UserOrToken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_with_their_secret_do_not_show_it() {
        let from = SecretSource::Env("NATS_PASSWORD".to_owned());
        for credentials in [
            Credentials::Password { user: Some("bob".to_owned()), from: from.clone() },
            Credentials::Token { from },
        ] {
            let shown = format!("{:?}", credentials.with_secret("hunter2".to_owned()));
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}
