//! The credentials that clients present: a user name, and where its secret is.

use crate::credentials::{CredentialForm, Credentials, SecretSource};
use crate::layers::reader::{RawValue, Reader};
use crate::layers::subject::ResolvedTarget;
use crate::mistakes::{ConfigError, CredentialsError, Place};
use crate::plan::SubjectSource;
use crate::scheme::Transport;
use crate::settings::{Setting, Shape};
use crate::units::{self, http};
use crate::workloads::{BotSettings, HttpBots, LeaderboardBots, ProtobufBots, WorkloadSettings as _};

const HERE: Setting = Setting::of("Subject", &[]);

settings! { pub(super) SETTINGS;
    CREDENTIALS = HERE
        .key("credentials", Shape::Keys("CredentialsKeys", "Who the clients say they are, and where their secret is."), "{ user: bob, password_env: BROKER_PASSWORD }")
        .about("What the clients show the server so that it lets them in; the secret itself is never stored.");
    USER = HERE.key("credentials.user", Shape::Text, "bob").about("The name of the user, where the server asks for one.")
        .flag("--user", "NAME").help("The user whose password the clients show the server");
    PASSWORD_ENV = HERE.key("credentials.password_env", Shape::Text, "BROKER_PASSWORD")
        .about("The environment variable that holds the password, which is never stored.")
        .flag("--password-env", "VARIABLE")
        .help("The environment variable that holds the password; the password itself is never stored");
    /// A file that a scenario names needs permission.
    pub(crate) PASSWORD_FILE = HERE.key("credentials.password_file", Shape::Text, "password.txt")
        .about("The file that holds the password, which is never stored; its use must be confirmed.")
        .flag("--password-file", "FILE")
        .help("The file that holds the password; the end of its last line does not belong to it");
    TOKEN_ENV = HERE.key("credentials.token_env", Shape::Text, "BROKER_TOKEN")
        .about("The environment variable that holds a token, which is never stored.")
        .flag("--token-env", "VARIABLE")
        .help("The environment variable that holds a token (NATS, HTTP); the token itself is never stored");
    /// A file that a scenario names needs permission.
    pub(crate) TOKEN_FILE = HERE.key("credentials.token_file", Shape::Text, "token.txt")
        .about("The file that holds a token, which is never stored; its use must be confirmed.")
        .flag("--token-file", "FILE")
        .help("The file that holds a token (NATS, HTTP); the end of its last line does not belong to it");
}

const SECRETS: [&Setting; 4] = [&PASSWORD_ENV, &PASSWORD_FILE, &TOKEN_ENV, &TOKEN_FILE];

/// Reads the credentials into the target. They are refused where server and clients have no use for them.
pub(super) fn read(reader: &mut Reader, found: Option<&mut ResolvedTarget>, bots: &BotSettings) {
    let Some((credentials, setting, place)) = said(reader) else { return };
    // An unknown server was refused already.
    let Some(found) = found else { return };
    let target = match &mut found.source {
        SubjectSource::BuiltIn { server, .. } => {
            let wrong = ConfigError::NotForBuiltIn { setting: setting.name(), server: server.clone() };
            return reader.refuse_plainly(place, wrong);
        }
        SubjectSource::Started { target, .. } | SubjectSource::Running { target, .. } => target,
    };
    let scheme = target.scheme;
    let form = scheme.protocol().credentials;
    let not_of_scheme = |what| Some(CredentialsError::NotOfScheme { scheme, what });
    let wrong = match &credentials {
        _ if form == CredentialForm::None => {
            Some(CredentialsError::NoneOfScheme { setting: setting.name(), scheme })
        }
        Credentials::Token { .. } if !form.takes_token() => not_of_scheme("token"),
        Credentials::Password { user: Some(_), .. } if !form.takes_user() => not_of_scheme("user name"),
        Credentials::Password { user: None, .. } if form.needs_user() => {
            Some(CredentialsError::NoUser { scheme })
        }
        _ if scheme.transport() == Transport::Http => wrong_over_http(&credentials, setting, bots),
        _ => None,
    };
    match wrong {
        Some(wrong) => reader.refuse_plainly(place, wrong),
        None => target.credentials = Some(credentials),
    }
}

/// The credentials given, their setting and its place; `None` after a mistake, too.
fn said(reader: &mut Reader) -> Option<(Credentials, &'static Setting, Place)> {
    let named = |said: &dyn Fn(&Setting) -> Option<Vec<RawValue>>| {
        let of = |setting: &'static Setting| Some((setting, said(setting)?.into_iter().next()?));
        SECRETS.into_iter().filter_map(of).collect::<Vec<_>>()
    };
    // A secret on the command line replaces that of the file.
    let mut secrets = named(&|setting| reader.in_flags(setting));
    if secrets.is_empty() {
        secrets = named(&|setting| reader.in_file(setting));
    }
    let user_said = reader.said(&USER);
    let user = user_said.as_ref().map(|said| reader.read(said, user_name));
    if let [(first, _), (second, said), ..] = secrets.as_slice() {
        let wrong = CredentialsError::Twice { first: first.name(), second: second.name() };
        reader.refuse_plainly(said.place.clone(), wrong);
        return None;
    }
    let Some((setting, secret)) = secrets.into_iter().next() else {
        if let Some(said) = user_said {
            reader.refuse_plainly(said.place, CredentialsError::UserAlone);
        }
        return None;
    };
    let is_file = [&PASSWORD_FILE, &TOKEN_FILE].iter().any(|file| file.key == setting.key);
    let from = match is_file {
        true => SecretSource::File(reader.read(&secret, units::not_blank)?.into()),
        false => SecretSource::Env(reader.read(&secret, variable)?),
    };
    let is_token = [&TOKEN_ENV, &TOKEN_FILE].iter().any(|token| token.key == setting.key);
    let place = secret.place;
    let credentials = match (is_token, user) {
        (true, None) => Credentials::Token { from },
        // The file's user has nothing to do with a token from the command line.
        (true, Some(_)) if is_other_place(&place, user_said.as_ref()) => Credentials::Token { from },
        (true, Some(_)) => {
            reader.refuse_plainly(place, CredentialsError::UserOfToken);
            return None;
        }
        (false, None) => Credentials::Password { user: None, from },
        (false, Some(user)) => Credentials::Password { user: Some(user?), from },
    };
    Some((credentials, setting, place))
}

fn is_other_place(place: &Place, user: Option<&RawValue>) -> bool {
    let is_line = |place: &Place| matches!(place, Place::Line { .. });
    user.is_some_and(|user| is_line(&user.place) && !is_line(place))
}

fn user_name(text: &str) -> Result<String, ConfigError> {
    let name = units::not_blank(text)?;
    if name.contains(char::is_control) { Err(CredentialsError::UserName.into()) } else { Ok(name) }
}

/// The name of an environment variable; what else is written may be the secret, and is not repeated.
fn variable(text: &str) -> Result<String, ConfigError> {
    let name = text.trim();
    if http::is_environment_name(name) {
        Ok(name.to_owned())
    } else {
        Err(CredentialsError::NotAVariable.into())
    }
}

/// Over HTTP and gRPC credentials are a header of each request.
fn wrong_over_http(
    credentials: &Credentials,
    setting: &Setting,
    bots: &BotSettings,
) -> Option<CredentialsError> {
    if LeaderboardBots::of(bots).is_some() {
        return Some(CredentialsError::NotOfBots { setting: setting.name(), bots: bots.name() });
    }
    if let Credentials::Password { user: Some(user), .. } = credentials
        && user.contains(':')
    {
        return Some(CredentialsError::Colon);
    }
    let http = HttpBots::of(bots).or_else(|| ProtobufBots::of(bots).map(|protobuf| &protobuf.http))?;
    let mut headers = http.requests.iter().flat_map(|request| &request.headers);
    headers.any(|(name, _)| name.eq_ignore_ascii_case("authorization")).then_some(CredentialsError::Header)
}
