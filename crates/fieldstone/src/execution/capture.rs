//! Fields that an execution asked for: every read of them is recorded.
//!
//! A field counts for the execution that asked for it, from the first read of its bytes on.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Summary, Uncovered};
use fieldstone_format::commit_id::CommitId;
use fieldstone_store::api::{BlockPlace, StoredArray};
use fieldstone_store::{Field, FieldId, FieldPart, FieldSource, Fields, FieldsSource, Outline};

use super::inner::{ExecutionInner, FieldRead};

/// A request by an execution to a store.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The execution.
    pub by: Arc<ExecutionInner>,
    /// The request.
    pub request: Arc<str>,
    /// The URL of the store, if others can open it.
    pub url: Option<Arc<str>>,
}

impl Asked {
    /// A requested field, with the record of its reads.
    pub fn field(self: Arc<Asked>, field: Field) -> Field {
        let lenient = field.is_lenient();
        let captured =
            CapturedField { field, asked: self, commits: OnceLock::new(), was_read: AtomicBool::new(false) };
        let captured = Field::new(Arc::new(captured));
        if lenient { captured.lenient() } else { captured }
    }

    /// Requested fields, with the record of their reads.
    pub fn fields(self: Arc<Asked>, fields: Fields) -> Fields {
        Fields::new(Arc::new(CapturedFields { fields, asked: self }))
    }
}

/// A field that an execution requested.
#[derive(Debug)]
struct CapturedField {
    field: Field,
    asked: Arc<Asked>,
    commits: OnceLock<Vec<(CommitId, u64)>>,
    was_read: AtomicBool,
}

impl CapturedField {
    fn of(field: &Field) -> Option<&CapturedField> {
        let source: &dyn Any = &**field.source();
        source.downcast_ref()
    }

    fn note(&self, bytes: usize) {
        let commits = self.commits.get_or_init(|| self.field.commits());
        let fields = u64::from(!self.was_read.swap(true, Ordering::Relaxed));
        let Asked { by, request, url } = &*self.asked;
        by.note_read(commits, &FieldRead { fields, bytes: bytes as u64, request, url: url.as_ref() });
    }
}

impl FieldSource for CapturedField {
    fn id(&self) -> FieldId<'_> {
        self.field.id()
    }

    fn commits(&self) -> Vec<(CommitId, u64)> {
        self.field.commits()
    }

    fn parts(&self) -> Result<Vec<FieldPart>> {
        self.field.parts()
    }

    fn older(&self) -> Result<Option<Field>> {
        Ok(self.field.older()?.map(|older| self.asked.clone().field(older)))
    }

    fn version(&self) -> String {
        self.field.version()
    }

    fn time(&self) -> i64 {
        self.field.time()
    }

    fn nbytes(&self) -> Result<u64> {
        self.field.nbytes()
    }

    fn array(&self) -> Result<Option<(DType, &[u64])>> {
        self.field.source().array()
    }

    fn missing(&self, limit: usize) -> Result<Uncovered> {
        self.field.source().missing(limit)
    }

    fn holes(&self) -> Result<u64> {
        self.field.holes()
    }

    fn chunks(&self) -> Option<Vec<u64>> {
        self.field.chunks()
    }

    fn outline(&self) -> Result<Option<Outline>> {
        self.field.outline()
    }

    fn is_compressed(&self) -> Result<bool> {
        self.field.is_compressed()
    }

    fn stored_array(&self) -> Result<Option<StoredArray>> {
        self.field.stored_array()
    }

    fn block_place(&self, region: &IndexBox) -> Result<Option<BlockPlace>> {
        self.field.source().block_place(region)
    }

    fn read_block(&self, place: &BlockPlace, out: &mut [u8]) -> Result<()> {
        self.field.source().read_block(place, out)?;
        self.note(usize::try_from(place.raw).unwrap_or(usize::MAX));
        Ok(())
    }

    fn summary(&self) -> Option<Summary> {
        self.field.summary()
    }

    fn read(&self, region: Option<&IndexBox>, lenient: bool, out: &mut [u8]) -> Result<()> {
        self.field.source().read(region, lenient, out)?;
        self.note(out.len());
        Ok(())
    }

    fn read_range(&self, start: u64, out: &mut [u8]) -> Result<()> {
        self.field.source().read_range(start, out)?;
        self.note(out.len());
        Ok(())
    }

    fn read_first(&self, batch: &[(Field, usize)], out: &mut [u8]) -> Result<usize> {
        let within = |(field, length): &(Field, usize)| {
            let own = CapturedField::of(field)?.field.clone();
            Some((if field.is_lenient() { own.lenient() } else { own.strict() }, *length))
        };
        let within: Vec<(Field, usize)> = batch.iter().map_while(within).collect();
        let length = within.iter().map(|(_, length)| *length).sum();
        let read = self.field.source().read_first(&within, &mut out[..length])?;
        for (field, length) in batch.iter().take(read) {
            if let Some(captured) = CapturedField::of(field) {
                captured.note(*length);
            }
        }
        Ok(read)
    }
}

/// Fields that an execution requested.
#[derive(Debug)]
struct CapturedFields {
    fields: Fields,
    asked: Arc<Asked>,
}

impl FieldsSource for CapturedFields {
    fn count(&self) -> usize {
        self.fields.len()
    }

    fn get(&self, index: usize) -> Result<Field> {
        Ok(self.asked.clone().field(self.fields.get(index)?))
    }

    fn missing(&self, limit: usize) -> Vec<String> {
        self.fields.missing(limit)
    }

    fn missing_count(&self) -> u64 {
        self.fields.missing_count()
    }

    fn version(&self) -> String {
        self.fields.version()
    }
}
