//! The page: a single HTML file embedded by build.rs, its content security policy, and the data put into it.
//!
//! The policy names each inlined script and style by its hash, so that nothing else runs, whatever text a subject
//! sends.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// The page, or the one that says why there is none.
pub(crate) const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));
const NO_PAGE: &str = "<meta name=\"stepladder\" content=\"no page\">";
/// Where a report carries its run.
const DATA: &str = "<script type=\"application/json\" id=\"stepladder-data\">";

/// False when this program was built without npm.
pub fn page_is_built() -> bool {
    !PAGE.contains(NO_PAGE)
}

/// Content-Security-Policy of the page that a viewer serves.
pub(crate) fn policy_served() -> String {
    format!(
        "default-src 'self'; {}; connect-src 'self'; img-src 'self' data:; {STRICT}; frame-ancestors 'none'",
        of(PAGE)
    )
}

/// The same for a report: it may reach nothing at all.
fn policy_of_a_report() -> String {
    format!("default-src 'none'; {}; img-src data:; {STRICT}", of(PAGE))
}

const STRICT: &str = "object-src 'none'; base-uri 'none'; form-action 'none'";

fn of(html: &str) -> String {
    let sources =
        |hashes: Vec<String>| if hashes.is_empty() { "'none'".to_owned() } else { hashes.join(" ") };
    format!("script-src {}; style-src {}", sources(hashes(html, "script")), sources(hashes(html, "style")))
}

/// A hash of each inlined element of that name; blocks of data are not run and need none.
fn hashes(html: &str, tag: &str) -> Vec<String> {
    let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find(&open) {
        rest = &rest[at + open.len()..];
        let Some(begin) = rest.find('>') else { break };
        let attributes = &rest[..begin];
        let Some(end) = rest.find(&close) else { break };
        if !attributes.contains("application/json") {
            found.push(format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(&rest[begin + 1..end]))));
        }
        rest = &rest[end..];
    }
    found
}

/// The page with `data` inside. `encoding` is written where the data are not plain JSON.
pub(crate) fn with_data(data: &str, encoding: Option<&str>) -> Option<String> {
    let at = PAGE.find(DATA)?;
    let head = PAGE.find("<head>")? + "<head>".len();
    let (before, after) = (&PAGE[head..at], &PAGE[at + DATA.len()..]);
    let meta = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">", policy_of_a_report());
    let element = match encoding {
        None => DATA.to_owned(),
        Some(encoding) => DATA.replace('>', &format!(" data-encoding=\"{encoding}\">")),
    };
    // Text from a run must not close the element that contains it.
    let data = data.replace('<', "\\u003c");
    Some([&PAGE[..head], &meta, before, &element, &data, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_and_style_has_its_hash_and_data_have_none() {
        let html = "<script type=\"application/json\" id=\"x\">{}</script><script type=\"module\" crossorigin>a</script>\
                    <style rel=\"stylesheet\">b</style>";
        // printf a | openssl dgst -sha256 -binary | base64
        assert_eq!(hashes(html, "script"), ["'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"]);
        assert_eq!(hashes(html, "style"), ["'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0='"]);
    }

    #[test]
    fn the_page_has_a_place_for_data_or_says_why_there_is_none() {
        assert_eq!(page_is_built(), PAGE.contains(DATA));
        if page_is_built() {
            let report = with_data("{\"a\":\"</script><b>\"}", None).unwrap();
            assert!(report.contains("{\"a\":\"\\u003c/script>\\u003cb>\"}</script>"));
            assert!(report.find("Content-Security-Policy").unwrap() < report.find("<script").unwrap());
        } else {
            assert!(PAGE.contains("npm"));
        }
    }
}
