//! Redirects: where one points, and why it was not followed.

use std::fmt;

use super::errors;

/// Why a redirect was not followed. Formatted only when the text is kept.
#[derive(Clone, Copy, Debug)]
pub enum RedirectError<'a> {
    /// so many of them, and where the last one points
    Loop(u32, &'a str),
    /// to another host
    Elsewhere(&'a str),
    /// the connection ends with it
    Closes,
    /// the connection took no further request
    NotTaken,
}

impl RedirectError<'_> {
    /// The index of the cause.
    pub fn cause(&self) -> usize {
        match self {
            RedirectError::Loop(..) => errors::REDIRECT_LOOP,
            RedirectError::Elsewhere(_) => errors::REDIRECT_ELSEWHERE,
            RedirectError::Closes | RedirectError::NotTaken => errors::LOST,
        }
    }
}

impl fmt::Display for RedirectError<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |location: &str| errors::shown(location.as_bytes());
        match self {
            RedirectError::Loop(hops, last) => write!(out, "{hops} redirects, the last to {}", shown(last)),
            RedirectError::Elsewhere(location) => write!(out, "to {}", shown(location)),
            RedirectError::Closes => out.write_str("a redirect that closes its connection"),
            RedirectError::NotTaken => out.write_str("the connection took no further request"),
        }
    }
}

/// The path of a redirect that stays with its host; `None`: it leads elsewhere.
pub fn local_path<'a>(location: &'a str, authority: &str) -> Option<&'a str> {
    if location.starts_with('/') && !location.starts_with("//") {
        return Some(location);
    }
    let rest = location.strip_prefix("http://").or_else(|| location.strip_prefix("https://"))?;
    let path = rest.strip_prefix(authority)?;
    match path.as_bytes().first() {
        None => Some("/"),
        Some(b'/') => Some(path),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_followed_to_the_same_host_only() {
        for (location, path) in [
            ("/next?page=2", Some("/next?page=2")),
            ("http://here:80/a", Some("/a")),
            ("http://here:80", Some("/")),
            ("http://here:8080/a", None),
            ("//elsewhere/a", None),
            ("https://elsewhere/a", None),
            ("next", None),
        ] {
            assert_eq!(local_path(location, "here:80"), path, "{location}");
        }
    }
}
