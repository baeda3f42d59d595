//! The division of the graph's index into slots.
//!
//! ```text
//! partitioning = slots: varint  scheme: u8  threshold: varint  labels: u8
//! ```

use fieldstone_core::Result;

use crate::bytes::{Cursor, Put};

/// Most slots.
pub const SLOTS_MAX: u16 = 1024;
/// Relations that a partition holds before it splits, by default: the paper's choice.
pub const THRESHOLD: u32 = 128;

/// The rule that places relations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PartitionScheme {
    /// Relations are in the slot of their vertex.
    EdgeCut,
    /// A hash of both ends chooses the slot.
    VertexCut,
    /// Partitions split by a hash of the far end.
    Giga,
    /// Partitions split towards the far end's home.
    #[default]
    Dido,
}

/// The numbering of slots in DIDO's tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlotLabels {
    /// In each level by the label of the splitting partition.
    #[default]
    Low,
    /// In each level from left to right, as in the paper's Fig. 6.
    Paper,
}

/// The division of an index into slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitioning {
    /// Number of slots.
    pub slots: u16,
    /// The rule.
    pub scheme: PartitionScheme,
    /// Relations that a partition holds before it splits.
    pub threshold: u32,
    /// The numbering of slots.
    pub labels: SlotLabels,
}

impl Default for Partitioning {
    fn default() -> Partitioning {
        let (scheme, labels) = Default::default();
        Partitioning { slots: 1, scheme, threshold: THRESHOLD, labels }
    }
}

impl PartitionScheme {
    /// All schemes.
    pub const ALL: [PartitionScheme; 4] =
        [PartitionScheme::EdgeCut, PartitionScheme::VertexCut, PartitionScheme::Giga, PartitionScheme::Dido];

    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            PartitionScheme::EdgeCut => "edge-cut",
            PartitionScheme::VertexCut => "vertex-cut",
            PartitionScheme::Giga => "giga+",
            PartitionScheme::Dido => "dido",
        }
    }
}

impl SlotLabels {
    /// All numberings.
    pub const ALL: [SlotLabels; 2] = [SlotLabels::Low, SlotLabels::Paper];

    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            SlotLabels::Low => "low",
            SlotLabels::Paper => "paper",
        }
    }
}

impl Partitioning {
    /// Appends the encoded form.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.slots));
        out.push(self.scheme as u8);
        out.put_varint(u64::from(self.threshold));
        out.push(self.labels as u8);
    }

    /// Decodes it; every defect is Corrupt.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Partitioning> {
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
}
