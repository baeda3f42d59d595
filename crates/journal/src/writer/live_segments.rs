//! The segments of a log and their merging.
//!
//! A new segment is merged with the youngest ones while these hold at most twice as many commits: weights
//! then more than double from segment to segment, so that n flushes (n at least 2) leave at most log2(n) segments,
//! and an entry is written again at most about log2(n) times.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::segment::{SegmentRef, merge_segments};

use crate::medium::LogWriter;

/// Segments up to this size are kept in memory for the next merge.
const KEEP_MAX: usize = 4 << 20;

/// The segments that the last commit of a log names.
#[derive(Debug, Default)]
pub struct LiveSegments {
    segments: Vec<LiveSegment>,
}

#[derive(Debug)]
struct LiveSegment {
    reference: SegmentRef,
    bytes: Option<Arc<[u8]>>,
}

/// The new state of the segments when a commit adds one; [`LiveSegments::apply`] puts it in force.
#[derive(Debug)]
pub struct Merged {
    kept: usize,
    reference: SegmentRef,
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

impl LiveSegments {
    /// Merges a new segment with as many old ones as the rule says.
    pub fn merge(&self, log: &dyn LogWriter, segment: (Vec<u8>, SegmentRef)) -> Result<Merged> {
        let (bytes, reference) = segment;
        let mut weight = reference.weight;
        let mut kept = self.segments.len();
        // J-5: weights more than double from one to the next, so that few are left to search.
        while kept > 0 && self.segments[kept - 1].reference.weight <= weight.saturating_mul(2) {
            kept -= 1;
            weight += self.segments[kept].reference.weight;
        }
        if kept == self.segments.len() {
            return Ok(Merged { kept, reference, bytes });
        }
        let mut old = Vec::new();
        for segment in &self.segments[kept..] {
            old.push(match &segment.bytes {
                Some(bytes) => bytes.clone(),
                None => {
                    let mut bytes = vec![0; segment.reference.length as usize];
                    log.read(&mut bytes, segment.reference.offset).map_err(|e| {
                        fieldstone_core::Code::IoFailed.error("cannot read a segment again").with_source(e)
                    })?;
                    bytes.into()
                }
            });
        }
        let mut sources: Vec<(&[u8], SegmentRef)> = old
            .iter()
            .zip(&self.segments[kept..])
            .map(|(bytes, segment)| (&bytes[..], segment.reference))
            .collect();
        sources.push((&bytes, reference));
        let (bytes, reference) = merge_segments(&sources)?;
        Ok(Merged { kept, reference, bytes })
    }

    /// The references that a commit with this merge names, oldest first.
    pub fn references(&self, merged: Option<&Merged>) -> Vec<SegmentRef> {
        let kept = merged.map_or(self.segments.len(), |m| m.kept);
        self.segments[..kept]
            .iter()
            .map(|segment| segment.reference)
            .chain(merged.map(|m| m.reference))
            .collect()
    }

    /// Puts a merge in force after its commit is durable.
    pub fn apply(&mut self, merged: Merged) {
        self.segments.truncate(merged.kept);
        let bytes = (merged.bytes.len() <= KEEP_MAX).then(|| merged.bytes.into());
        self.segments.push(LiveSegment { reference: merged.reference, bytes });
    }
}
