//! Files of exports: none that exists is overwritten, and errors name the path.

use std::fs::File;
use std::path::Path;

use crate::error::StoreError;

pub(super) fn create(path: &Path) -> Result<File, StoreError> {
    File::create_new(path).map_err(|error| failed(path, error))
}

pub(super) fn failed(path: &Path, error: impl std::fmt::Display) -> StoreError {
    StoreError::Output { to: format!("to {}", path.display()), detail: error.to_string() }
}
