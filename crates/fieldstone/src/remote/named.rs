//! Fields by their names alone: enough to remove specific versions.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Summary, Uncovered};
use fieldstone_core::{Error, Result};
use fieldstone_format::entry::EntryId;
use fieldstone_store::{Field, FieldId, FieldSource, Outline};

/// A field by its name alone, for a call that needs no more.
#[derive(Debug)]
pub struct Named {
    store: PathBuf,
    key: Vec<u8>,
    entry: EntryId,
}

impl Named {
    /// The field of a name.
    pub fn field((store, key, entry): (PathBuf, Vec<u8>, EntryId)) -> Field {
        Field::new(Arc::new(Named { store, key, entry }))
    }
}

/// Only its name crossed the connection.
fn unnamed<T>() -> Result<T> {
    Err(Error::internal("a field that has only a name was asked for its content"))
}

impl FieldSource for Named {
    fn id(&self) -> FieldId<'_> {
        let store: &OsStr = self.store.as_os_str();
        FieldId { store, key: &self.key, entry: self.entry }
    }

    fn version(&self) -> String {
        String::new()
    }

    fn time(&self) -> i64 {
        0
    }

    fn nbytes(&self) -> Result<u64> {
        unnamed()
    }

    fn array(&self) -> Result<Option<(DType, &[u64])>> {
        unnamed()
    }

    fn missing(&self, _limit: usize) -> Result<Uncovered> {
        unnamed()
    }

    fn chunks(&self) -> Option<Vec<u64>> {
        None
    }

    fn outline(&self) -> Result<Option<Outline>> {
        unnamed()
    }

    fn is_compressed(&self) -> Result<bool> {
        unnamed()
    }

    fn summary(&self) -> Option<Summary> {
        None
    }

    fn read(&self, _region: Option<&IndexBox>, _lenient: bool, _out: &mut [u8]) -> Result<()> {
        unnamed()
    }

    fn read_range(&self, _start: u64, _out: &mut [u8]) -> Result<()> {
        unnamed()
    }
}
