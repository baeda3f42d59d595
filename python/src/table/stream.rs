//! A table as a stream of Arrow batches, each built on request.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::{BATCH_ROWS, Columns};

/// The batches of a table that have not been requested yet.
pub struct Batches {
    columns: Arc<Columns>,
    next: usize,
}

impl Batches {
    pub fn new(columns: Arc<Columns>) -> Batches {
        Batches { columns, next: 0 }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Columns { schema, columns, rows } = &*self.columns;
        let start = self.next;
        if start >= *rows {
            return None;
        }
        let end = rows.min(&(start + BATCH_ROWS)).to_owned();
        self.next = end;
        let arrays = columns.iter().map(|column| column.array(start, end)).collect();
        Some(RecordBatch::try_new(schema.clone(), arrays))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.columns.schema.clone()
    }
}
