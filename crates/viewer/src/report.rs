//! A report: the page with one run inside, as one file that opens from disk and makes no requests.

use std::io::Write;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use store::{RunId, Store};

use crate::Judge;
use crate::archive::{Archive, Detail};
use crate::bundle;
use crate::error::ViewError;

/// Buckets within 3 % become one: a curve in a report is drawn from them, its figures come with the rung.
const BUCKET_WIDTH: f64 = 1.03;
/// Plain JSON, which anything can read, as long as the whole file stays below this; then compressed.
const PLAIN_BYTES: usize = 250_000;

/// The report of a run. Errors: `NoPage`, `Unjudged` where nothing may be said of it, `Store`.
pub fn report(store: &Store, run: &RunId, judge: &dyn Judge) -> Result<String, ViewError> {
    if !bundle::page_is_built() {
        return Err(ViewError::NoPage);
    }
    let mut page = Archive::new(store, judge).run_page(run, Detail::All { width: BUCKET_WIDTH })?;
    if let Some(problem) = page.problem.take() {
        return Err(ViewError::Unjudged { run: run.to_string(), cause: problem.into() });
    }
    for trial in &mut page.trials {
        // It is in `climb`, where the page looks for it.
        trial.rung = None;
    }
    let json = serde_json::to_string(&page).expect("numbers, texts, and maps with text keys are JSON");
    let html = if bundle::PAGE.len() + json.len() <= PLAIN_BYTES {
        bundle::with_data(&json, None)
    } else {
        bundle::with_data(&deflated(&json), Some("deflate"))
    };
    html.ok_or(ViewError::NoPage)
}

/// zlib in base64: what `DecompressionStream('deflate')` of a browser reads.
fn deflated(text: &str) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let bytes = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    BASE64_STANDARD.encode(bytes.expect("writing to memory does not fail"))
}
