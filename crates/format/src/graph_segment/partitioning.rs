//! The division of the graph's index into slots.
//!
//! ```text
//! partitioning = slots: varint  scheme: u8  threshold: varint  labels: u8
//! ```

use fieldstone_core::Result;
pub use fieldstone_core::graph::{PartitionScheme, Partitioning, SLOTS_MAX, SlotLabels, THRESHOLD};

use crate::bytes::{Cursor, Put};

/// Appends the encoded form.
pub fn put_partitioning(partitioning: &Partitioning, out: &mut Vec<u8>) {
    out.put_varint(u64::from(partitioning.slots));
    out.push(partitioning.scheme as u8);
    out.put_varint(u64::from(partitioning.threshold));
    out.push(partitioning.labels as u8);
}

/// Decodes it; every defect is Corrupt.
pub fn read_partitioning(cursor: &mut Cursor<'_>) -> Result<Partitioning> {
    let slots = cursor.varint()?;
    let slots = u16::try_from(slots).ok().filter(|slots| (1..=SLOTS_MAX).contains(slots));
    let slots = slots.ok_or_else(|| cursor.fail("an impossible number of slots"))?;
    let scheme = PartitionScheme::ALL.get(cursor.u8()? as usize).copied();
    let scheme = scheme.ok_or_else(|| cursor.fail("an unknown partitioner"))?;
    let threshold = u32::try_from(cursor.varint()?).ok().filter(|threshold| *threshold > 0);
    let threshold = threshold.ok_or_else(|| cursor.fail("an impossible threshold"))?;
    let labels = SlotLabels::ALL.get(cursor.u8()? as usize).copied();
    let labels = labels.ok_or_else(|| cursor.fail("unknown labels of slots"))?;
    Ok(Partitioning { slots, scheme, threshold, labels })
}
