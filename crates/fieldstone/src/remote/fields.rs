//! Fields and streams of a store at the far end of a connection, as the client holds them.

use std::any::Any;
use std::collections::VecDeque;

use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Summary, Uncovered};
use fieldstone_core::{Error, Result};
use fieldstone_format::commit_id::CommitId;
use fieldstone_store::api::{BlockPlace, StoredArray};
use fieldstone_store::{Field, FieldId, FieldPart, FieldSource, Fields, FieldsSource, Outline};
use fieldstone_wire::{FieldFacts, Outcome, Wire};

use super::connection::Far;
use super::methods::alone;

/// A field that stays with its store.
#[derive(Debug)]
struct RemoteField {
    far: Far,
    facts: FieldFacts,
}

/// The field in a call's answer.
pub fn field((far, facts): (Far, FieldFacts)) -> Field {
    let lenient = facts.lenient;
    let field = Field::new(Arc::new(RemoteField { far, facts }));
    if lenient { field.lenient() } else { field }
}

/// Reads a field ahead at the far end, and returns its bytes; `None` for a field that is here.
pub fn warm(field: &Field) -> Result<Option<u64>> {
    let source: &dyn Any = &**field.source();
    match source.downcast_ref::<RemoteField>() {
        Some(remote) => remote.far.call(alone::FIELD_WARM, |_| {}).map(Some),
        None => Ok(None),
    }
}

/// A kept outcome, for each caller.
fn again<T>(outcome: &Outcome<T>) -> Result<&T> {
    outcome.as_ref().map_err(Error::replicate)
}

impl FieldSource for RemoteField {
    fn id(&self) -> FieldId<'_> {
        FieldId { store: self.facts.store.as_os_str(), key: &self.facts.key, entry: self.facts.entry }
    }

    fn version(&self) -> String {
        self.facts.version.clone()
    }

    fn commits(&self) -> Vec<(CommitId, u64)> {
        self.facts.commits.clone()
    }

    fn parts(&self) -> Result<Vec<FieldPart>> {
        self.far.call(alone::FIELD_PARTS, |_| {})
    }

    fn older(&self) -> Result<Option<Field>> {
        match self.far.call(alone::FIELD_HAS_OLDER, |_| {})? {
            true => self.far.call_for_object(alone::FIELD_OLDER, |_| {}).map(|older| Some(field(older))),
            false => Ok(None),
        }
    }

    fn time(&self) -> i64 {
        self.facts.time
    }

    fn nbytes(&self) -> Result<u64> {
        again(&self.facts.nbytes).copied()
    }

    fn array(&self) -> Result<Option<(DType, &[u64])>> {
        Ok(again(&self.facts.array)?.as_ref().map(|(dtype, shape)| (*dtype, &**shape)))
    }

    fn missing(&self, limit: usize) -> Result<Uncovered> {
        self.far.call(alone::FIELD_MISSING, |out| limit.put(out))
    }

    fn holes(&self) -> Result<u64> {
        self.far.call(alone::FIELD_HOLES, |_| {})
    }

    fn chunks(&self) -> Option<Vec<u64>> {
        self.facts.chunks.clone()
    }

    fn outline(&self) -> Result<Option<Outline>> {
        self.far.call(alone::FIELD_OUTLINE, |_| {})
    }

    fn is_compressed(&self) -> Result<bool> {
        self.far.call(alone::FIELD_COMPRESSED, |_| {})
    }

    fn stored_array(&self) -> Result<Option<StoredArray>> {
        self.far.call(alone::FIELD_STORED, |_| {})
    }

    fn block_place(&self, region: &IndexBox) -> Result<Option<BlockPlace>> {
        self.far.call(alone::FIELD_BLOCK, |out| region.put(out))
    }

    fn read_block(&self, place: &BlockPlace, out: &mut [u8]) -> Result<()> {
        fill(out, &self.far.call_for_bytes(alone::FIELD_READ_BLOCK, |args| place.put(args))?)
    }

    fn summary(&self) -> Option<Summary> {
        self.facts.summary
    }

    fn read(&self, region: Option<&IndexBox>, lenient: bool, out: &mut [u8]) -> Result<()> {
        let bytes = self.far.call_for_bytes(alone::FIELD_READ, |args| {
            region.cloned().put(args);
            lenient.put(args);
        })?;
        fill(out, &bytes)
    }

    fn read_range(&self, start: u64, out: &mut [u8]) -> Result<()> {
        let bytes = self.far.call_for_bytes(alone::FIELD_READ_RANGE, |args| {
            start.put(args);
            (out.len() as u64).put(args);
        })?;
        fill(out, &bytes)
    }
}

/// Copies an answer into a caller's buffer, which has its length.
fn fill(out: &mut [u8], bytes: &[u8]) -> Result<()> {
    if out.len() != bytes.len() {
        return Err(Error::corrupt(format!("an answer has {} bytes instead of {}", bytes.len(), out.len())));
    }
    out.copy_from_slice(bytes);
    Ok(())
}

/// The fields of a retrieve that stay with their store.
#[derive(Debug)]
pub struct RemoteFields {
    far: Far,
    count: usize,
    missing_count: u64,
    version: String,
}

impl RemoteFields {
    /// The fields in a call's answer.
    pub fn of((far, (count, missing_count, version)): (Far, (usize, u64, String))) -> Fields {
        Fields::new(Arc::new(RemoteFields { far, count, missing_count, version }))
    }
}

impl FieldsSource for RemoteFields {
    fn count(&self) -> usize {
        self.count
    }

    fn get(&self, index: usize) -> Result<Field> {
        self.far.call_for_object(alone::FIELDS_GET, |out| index.put(out)).map(field)
    }

    fn missing(&self, limit: usize) -> Vec<String> {
        self.far.call_or_default(alone::FIELDS_MISSING, |out| limit.put(out))
    }

    fn missing_count(&self) -> u64 {
        self.missing_count
    }

    fn version(&self) -> String {
        self.version.clone()
    }
}

/// A stream that stays with its store: it comes in portions.
#[derive(Debug)]
pub struct Stream<T> {
    far: Far,
    ready: VecDeque<Outcome<T>>,
    is_over: bool,
}

impl<T> Stream<T> {
    /// The stream in a call's answer.
    pub fn of(far: Far) -> Stream<T> {
        Stream { far, ready: VecDeque::new(), is_over: false }
    }
}

impl<T: Wire> Iterator for Stream<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        if self.ready.is_empty() && !self.is_over {
            match self.far.call::<Vec<Outcome<T>>>(alone::NEXT, |_| {}) {
                Ok(portion) => {
                    self.is_over = portion.is_empty();
                    self.ready.extend(portion);
                }
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
        self.ready.pop_front()
    }
}
