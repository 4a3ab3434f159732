//! How an open connection ended: by cause and in words, the same for every kind of bot.
//!
//! A reset, a clean close, a protocol error and a bare EOF mean different things for a server under load, so each is a
//! separate cause, and the first few of each keep what was seen: the close code, the kernel's error text, the bytes.

use std::borrow::Cow;
use std::sync::Arc;

pub use drivers::shown;
use drivers::{Closed, Driver, Goodbye, OpenError};
use engine::BotContext;
use measure::names::{HANDSHAKE_REDIRECTS, OPEN_TIME};
use measure::{ErrorKind, MetricNames, Role};

/// The causes. Errors of every kind of bots begin with them, so that their indices are the same everywhere.
pub const CAUSES: [&str; 4] =
    ["connection lost", "connection reset", "closed by the server", "broken protocol"];
/// The index of `connection lost`.
pub const LOST: usize = 0;
const RESET: usize = 1;
const CLOSED: usize = 2;
/// The index of `broken protocol`.
pub const BROKEN: usize = 3;

/// The names of a kind of bots. Adds what can keep a connection from opening, the kinds of what can end it, and the roles of
/// the counters that the engine keeps.
pub fn metric_names(
    ops: &[&str],
    errors: &[&str],
    counters: &[&str],
    kinds: &[(&str, ErrorKind)],
) -> Arc<MetricNames> {
    MetricNames::new(ops, errors, counters, &OpenError::CAUSES)
        .with_counter_roles(&[(OPEN_TIME, Role::OpenTime), (HANDSHAKE_REDIRECTS, Role::HandshakeRedirects)])
        .with_kinds(&CAUSES.map(|cause| (cause, ErrorKind::BrokenConnection)))
        .with_kinds(&OpenError::TIMEOUTS.map(|cause| (cause, ErrorKind::Timeout)))
        .with_kinds(&OpenError::OF_THIS_MACHINE.map(|cause| (cause, ErrorKind::Generator)))
        .with_kinds(kinds)
}

/// Counts the end of a connection under its cause. One that never opened is counted elsewhere, by the engine.
pub fn count<D: Driver>(why: &Closed, ctx: &mut BotContext<'_, D>) {
    let cause = match why {
        Closed::NotOpened(_) => return,
        Closed::ByPeer(None) => LOST,
        Closed::ByPeer(Some(_)) => CLOSED,
        Closed::Failed(error) if is_reset(error) => RESET,
        Closed::Failed(_) => LOST,
        Closed::Broken(_) => BROKEN,
    };
    let bytes = shown(ctx.error_excerpt());
    ctx.error_with(cause, || words(why, &bytes));
}

/// True when the peer cut the connection rather than ended it.
pub fn is_reset(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ECONNRESET | libc::EPIPE))
}

/// A message in quotes, as it is shown.
pub fn quoted(message: &[u8]) -> String {
    format!("\"{}\"", shown(message))
}

/// What is kept of such an end; `bytes`: those that broke the protocol, as `shown`.
pub fn words(why: &Closed, bytes: &str) -> String {
    match why {
        Closed::NotOpened(error @ OpenError::Tls(_)) => {
            format!("{error}; --ca FILE trusts the server's authority, --insecure accepts any certificate")
        }
        Closed::NotOpened(error) => error.to_string(),
        Closed::ByPeer(None) => "the server ended the connection without a close frame or message".to_owned(),
        Closed::ByPeer(Some(Goodbye { code, reason })) => {
            let meaning = meaning(*code).map_or(Cow::Borrowed(""), |words| format!(" ({words})").into());
            let reason = match shown(reason.as_bytes()) {
                reason if reason.is_empty() => reason,
                reason => format!(": \"{reason}\""),
            };
            format!("the server closed the connection with code {code}{meaning}{reason}")
        }
        Closed::Failed(error) => error.to_string(),
        Closed::Broken(broken) if bytes.is_empty() => broken.to_string(),
        Closed::Broken(broken) => format!("{broken}: \"{bytes}\""),
    }
}

/// Source: RFC 6455, section 7.4.1, and the IANA registry of close codes.
fn meaning(code: u16) -> Option<&'static str> {
    Some(match code {
        1000 => "normal closure",
        1001 => "going away",
        1002 => "protocol error",
        1003 => "unsupported data",
        1005 => "no code given",
        1007 => "invalid payload",
        1008 => "policy violation",
        1009 => "message too big",
        1011 => "internal error",
        1012 => "service restart",
        1013 => "try again later",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use drivers::Broken;

    use super::*;

    #[test]
    fn an_end_says_what_was_seen_of_it() {
        let check = |why: Closed, bytes: &str, expected: &str| assert_eq!(words(&why, bytes), expected);
        let goodbye = |code, reason: &str| Closed::ByPeer(Some(Goodbye { code, reason: reason.into() }));
        check(goodbye(1013, ""), "", "the server closed the connection with code 1013 (try again later)");
        check(goodbye(4_321, ""), "", "the server closed the connection with code 4321");
        check(
            goodbye(4001, "login \u{7}first"),
            "",
            "the server closed the connection with code 4001: \"login \\u{7}first\"",
        );
        check(Closed::Broken(Broken::NotUtf8), "", "text that is not UTF-8");
        check(
            Closed::Broken(Broken::Protocol("unknown opcode")),
            "\\u{3}",
            "protocol error: unknown opcode: \"\\u{3}\"",
        );
    }
}
