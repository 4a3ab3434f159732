//! A target's password or token, read from the variable or file that the plan names.
//!
//! A file is read once per process, before the first connection, so it may be a pipe (`--password-file <(…)`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console::masks;
use plan::{Credentials, HttpBots, Login, SecretSource, Target, Transport, WorkerPlan};
use watch::files::Accepts;

/// No password or token is longer.
const SECRET_BYTES_MAX: usize = 4096;
/// Of the file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What the files of this process hold, by their paths.
static FILES: LazyLock<Mutex<HashMap<PathBuf, String>>> = LazyLock::new(Mutex::default);

/// What a target's credentials are, and no text shows from now on. Errors: the variable is not set, the file cannot be read, the
/// value cannot be sent; the option is named, and the value is not.
pub fn login(target: &Target) -> anyhow::Result<Option<Login>> {
    let Some(credentials) = &target.credentials else { return Ok(None) };
    let secret = read(credentials).with_context(|| credentials.option().to_owned())?;
    masks::remember(&secret);
    let login = credentials.with_secret(secret);
    if target.scheme.transport() == Transport::Http {
        masks::remember(&authorization(&login));
    }
    Ok(Some(login))
}

/// A login as a driver takes it, which knows no tokens.
pub fn of_address(login: Option<&Login>) -> Option<drivers::Login> {
    match login? {
        Login::Password { user, password } => {
            Some(drivers::Login { user: user.clone(), password: password.clone() })
        }
        Login::Token(_) => None,
    }
}

/// Gives a worker what its clients show the target: over HTTP as a header, else as it is.
pub(super) fn fill_in(worker: &mut WorkerPlan) -> anyhow::Result<()> {
    worker.login = login(&worker.target)?;
    let is_http = worker.target.scheme.transport() == Transport::Http;
    let Some(login) = worker.login.as_ref().filter(|_| is_http) else { return Ok(()) };
    let header = ("Authorization".to_owned(), authorization(login));
    let requests = worker.bots.http_mut().map_or(&mut [][..], |HttpBots { requests, .. }| requests);
    requests.iter_mut().for_each(|request| request.headers.push(header.clone()));
    Ok(())
}

/// The value of the header. Sources: RFC 7617 (Basic), RFC 6750 (Bearer).
fn authorization(login: &Login) -> String {
    match login {
        Login::Password { user, password } => {
            let user = user.as_deref().unwrap_or_default();
            format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        }
        Login::Token(token) => format!("Bearer {token}"),
    }
}

fn read(credentials: &Credentials) -> anyhow::Result<String> {
    let (secret, holder) = match credentials.source() {
        SecretSource::Env(name) => {
            let Some(value) = std::env::var_os(name) else {
                bail!("the environment variable {name} is not set");
            };
            (value.into_string().unwrap_or_default(), format!("the environment variable {name}"))
        }
        SecretSource::File(path) => (in_file(path)?, format!("the file {}", path.display())),
    };
    if secret.is_empty() {
        bail!("{holder} holds nothing that can be sent: it is empty or not UTF-8");
    }
    if secret.len() > SECRET_BYTES_MAX {
        bail!("{holder} holds {} bytes; a password or token has {SECRET_BYTES_MAX} at most", secret.len());
    }
    if secret.contains(char::is_control) {
        bail!(
            "{holder} holds a line end or another control character within the secret, which cannot be sent"
        );
    }
    Ok(secret)
}

/// Without the end of its last line.
fn in_file(path: &Path) -> anyhow::Result<String> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = files.get(path) {
        return Ok(known.clone());
    }
    let text = watch::files::read_text(path, Accepts::FilesAndPipes, FILE_BYTES_MAX)
        .with_context(|| format!("the file {} cannot be read", path.display()))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
    files.insert(path.to_owned(), text.clone());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use plan::{Flags, resolve};

    use super::*;

    fn target(line: &str) -> Target {
        resolve(&Flags::of(line), None, 1).expect("a plan").subject.target().expect("a target").clone()
    }

    fn said(line: &str) -> String {
        format!("{:#}", login(&target(line)).expect_err("it is refused"))
    }

    #[test]
    fn a_file_is_read_once_and_without_the_end_of_its_last_line() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text, expected) in [
            ("a", "hunter2\n", "hunter2"),
            ("b", "hunter2\r\n", "hunter2"),
            ("c", " two words", " two words"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            let target = target(&format!("redis://127.0.0.1 --password-file {}", path.display()));
            let expected = Login::Password { user: None, password: expected.to_owned() };
            assert_eq!(login(&target).expect("it can be read"), Some(expected.clone()));
            std::fs::remove_file(&path).expect("it is there");
            assert_eq!(login(&target).expect("it was read"), Some(expected));
        }
    }

    #[test]
    fn a_secret_that_cannot_be_read_or_sent_is_refused_by_its_option_and_never_repeated() {
        let folder = tempfile::tempdir().expect("a folder");
        let of_file = |text: &[u8]| {
            let path = folder.path().join(format!("{}", fastrand::u64(..)));
            std::fs::write(&path, text).expect("a file");
            said(&format!("nats://127.0.0.1 --token-file {}", path.display()))
        };
        assert_eq!(
            said("nats://127.0.0.1 --token-env STEPLADDER_NO_SUCH_VARIABLE"),
            "--token-env: the environment variable STEPLADDER_NO_SUCH_VARIABLE is not set"
        );
        let missing = said("mqtt://127.0.0.1 --user bob --password-file /no/such/file");
        assert!(
            missing.starts_with("--password-file: the file /no/such/file cannot be read: No such file"),
            "{missing}"
        );
        for (text, why) in [
            (b"".to_vec(), "holds nothing that can be sent"),
            (b"\n".to_vec(), "holds nothing that can be sent"),
            (b"hunter2\nand more\n".to_vec(), "control character within the secret"),
            ([b"hunter2".as_slice(), &[b'x'; 5000]].concat(), "holds 5007 bytes"),
            (b"hunter2\xff".to_vec(), "UTF-8"),
        ] {
            let said = of_file(&text);
            assert!(said.starts_with("--token-file: the file ") && said.contains(why), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn over_http_credentials_are_a_header_of_each_request() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "open sesame\n").expect("a file");
        for (line, expected) in [
            ("--user Aladdin --password-file", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("--token-file", "Bearer open sesame"),
        ] {
            let line = format!("http://127.0.0.1:1/a {line} {}", path.display());
            let plan = resolve(&Flags::of(&line), None, 1).expect("a plan");
            let stored = serde_json::to_string(&plan).expect("JSON");
            assert!(!stored.contains("sesame") && !stored.contains("Authorization"), "{stored}");
            let to = ([127, 0, 0, 1], 1).into();
            let mut workers = plan::split(&plan, 2.0, plan.subject.target().expect("a target"), to, 1, &[]);
            super::super::fill_in(&mut workers).expect("it can be read");
            let http = <HttpBots as plan::WorkloadSettings>::of(&workers[0].bots).expect("HTTP bots");
            assert_eq!(http.requests[0].headers, [("Authorization".to_owned(), expected.to_owned())]);
            let masked = masks::mask("is open sesame wrong?");
            assert!(!masked.contains("sesame") && masked.ends_with(" wrong?"), "{masked}");
        }
    }
}
