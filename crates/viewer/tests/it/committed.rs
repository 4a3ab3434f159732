//! Files that are generated and committed.

use std::path::Path;

/// Fails when the committed file is not `now`; with `STEPLADDER_WRITE=1` it is written instead.
#[track_caller]
pub fn check(path: &str, now: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("STEPLADDER_WRITE").is_some() {
        std::fs::write(&file, now).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == now,
        "{path} is stale; write it anew: STEPLADDER_WRITE=1 cargo test -p stepladder-viewer"
    );
}
