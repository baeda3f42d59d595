//! The fields of a retrieve, in request order.

use std::sync::Arc;

use fieldstone_core::{Code, Result};

use super::Field;
use super::bulk::read_many;
use super::source::FieldsSource;
use super::stream::FieldsReader;

/// Most fields that are read together, so that a batch of many small ones stays small.
const BATCH: usize = 1024;

/// Fields in request order, as they were at one moment. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Fields {
    parts: Vec<Arc<dyn FieldsSource>>,
}

impl Fields {
    /// The fields that somebody found.
    pub fn new(source: Arc<dyn FieldsSource>) -> Fields {
        Fields { parts: vec![source] }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.count()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The i-th field in request order.
    pub fn get(&self, mut index: usize) -> Result<Field> {
        for part in &self.parts {
            if index < part.count() {
                return part.get(index);
            }
            index -= part.count();
        }
        Err(Code::Box.error(format!("there are {} fields, none has index {index}", self.len())))
    }

    /// All of them, in request order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Field>> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The combinations of listed values that have no field, up to a number.
    pub fn missing(&self, limit: usize) -> Vec<String> {
        let mut missing = Vec::new();
        for part in &self.parts {
            missing.extend(part.missing(limit - missing.len()));
        }
        missing
    }

    /// How many combinations have no field.
    pub fn missing_count(&self) -> u64 {
        self.parts.iter().map(|part| part.missing_count()).sum()
    }

    /// The text that names the snapshot these fields belong to (the first one, of concatenated fields).
    pub fn version(&self) -> String {
        self.parts.first().map_or_else(String::new, |part| part.version())
    }

    /// These fields, then the others.
    pub fn concat(mut self, other: Fields) -> Fields {
        self.parts.extend(other.parts);
        self
    }

    /// Raw bytes of all fields.
    pub fn total_bytes(&self) -> Result<u64> {
        self.iter().try_fold(0u64, |sum, field| Ok(sum.saturating_add(field?.nbytes()?)))
    }

    /// All fields one after another into `out`, which must be long enough; returns the bytes written.
    pub fn read_into(&self, out: &mut [u8]) -> Result<u64> {
        let (mut next, mut at) = (0, 0);
        while next < self.len() {
            let (after, bytes) = self.read_whole(next, &mut out[at..])?;
            if after == next {
                return Err(Code::BufferSize
                    .error(format!(
                        "the buffer of {} bytes ends within field {next} of {}",
                        out.len(),
                        self.len()
                    ))
                    .with_hint("nbytes says how many are needed"));
            }
            (next, at) = (after, at + bytes);
        }
        Ok(at as u64)
    }

    /// Reads as many whole fields from `first` on as fit into `out`, up to a batch's number; returns the
    /// index behind them and the bytes written.
    pub(super) fn read_whole(&self, first: usize, out: &mut [u8]) -> Result<(usize, usize)> {
        let (mut at, mut batch) = (0, Vec::new());
        for index in first..self.len().min(first.saturating_add(BATCH)) {
            let field = self.get(index)?;
            let bytes = usize::try_from(field.nbytes()?).unwrap_or(usize::MAX);
            if bytes > out.len() - at {
                break;
            }
            at += bytes;
            batch.push((field, bytes));
        }
        read_many(&batch, &mut out[..at])?;
        Ok((first + batch.len(), at))
    }

    /// All fields one after another as a file.
    pub fn reader(&self) -> FieldsReader {
        FieldsReader::new(self.clone())
    }
}
