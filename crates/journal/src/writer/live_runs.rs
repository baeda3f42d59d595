//! The index runs of a log and their merging.
//!
//! A new run is merged with the youngest ones while these hold at most twice as many commits: weights
//! then more than double from run to run, so that n flushes (n at least 2) leave at most log2(n) runs,
//! and an entry is written again at most about log2(n) times.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::run::{RunRef, merge_runs};

use crate::medium::LogWriter;

/// Runs up to this size are kept in memory for the next merge.
const KEEP_MAX: usize = 4 << 20;

/// The runs that the last commit of a log names.
#[derive(Debug, Default)]
pub struct LiveRuns {
    runs: Vec<LiveRun>,
}

#[derive(Debug)]
struct LiveRun {
    reference: RunRef,
    bytes: Option<Arc<[u8]>>,
}

/// What becomes of the runs when a commit adds one: put in force by [`LiveRuns::apply`].
#[derive(Debug)]
pub struct Merged {
    kept: usize,
    reference: RunRef,
    bytes: Vec<u8>,
}

impl Merged {
    /// The bytes to write.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Says where they will stand in the log.
    pub fn place(&mut self, offset: u64) {
        self.reference.offset = offset;
    }
}

impl LiveRuns {
    /// Merges a new run with as many old ones as the rule says.
    pub fn merge(&self, log: &dyn LogWriter, run: (Vec<u8>, RunRef)) -> Result<Merged> {
        let (bytes, reference) = run;
        let mut weight = reference.weight;
        let mut kept = self.runs.len();
        // J-5: weights more than double from one to the next, so that few are left to search.
        while kept > 0 && self.runs[kept - 1].reference.weight <= weight.saturating_mul(2) {
            kept -= 1;
            weight += self.runs[kept].reference.weight;
        }
        if kept == self.runs.len() {
            return Ok(Merged { kept, reference, bytes });
        }
        let mut old = Vec::new();
        for run in &self.runs[kept..] {
            old.push(match &run.bytes {
                Some(bytes) => bytes.clone(),
                None => {
                    let mut bytes = vec![0; run.reference.length as usize];
                    log.read(&mut bytes, run.reference.offset).map_err(|e| {
                        fieldstone_core::Code::IoFailed.error("cannot read an index run again").with_source(e)
                    })?;
                    bytes.into()
                }
            });
        }
        let mut sources: Vec<(&[u8], RunRef)> =
            old.iter().zip(&self.runs[kept..]).map(|(bytes, run)| (&bytes[..], run.reference)).collect();
        sources.push((&bytes, reference));
        let (bytes, reference) = merge_runs(&sources)?;
        Ok(Merged { kept, reference, bytes })
    }

    /// The references that a commit with this merge names, oldest first.
    pub fn references(&self, merged: Option<&Merged>) -> Vec<RunRef> {
        let kept = merged.map_or(self.runs.len(), |m| m.kept);
        self.runs[..kept].iter().map(|run| run.reference).chain(merged.map(|m| m.reference)).collect()
    }

    /// Puts a merge in force after its commit is durable.
    pub fn apply(&mut self, merged: Merged) {
        self.runs.truncate(merged.kept);
        let bytes = (merged.bytes.len() <= KEEP_MAX).then(|| merged.bytes.into());
        self.runs.push(LiveRun { reference: merged.reference, bytes });
    }
}
