//! Reading the arrays of a mesh's file, in shares of the ranks or as a whole.
//!
//! Invariants: every node that is given is one that there is; a piece of rows is in memory at a time.

use std::ops::Range;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Error, Result};

use super::MeshArray;
use super::content::KINDS;
use super::image::MeshHead;
use crate::distributed::import::{Import, ImportedArray};

/// Bytes of rows that are read at a time.
const PIECE: u64 = 1 << 20;

/// Reads the arrays of an open mesh. No call is collective.
#[derive(Debug, Clone, Copy)]
pub struct RowReader<'a> {
    pub team: &'a Team,
    pub import: &'a Import,
    pub head: &'a MeshHead,
}

impl<'a> RowReader<'a> {
    /// The name of an array in the file.
    ///
    /// Errors: `NotFound` for one that the mesh has not.
    pub fn named(&self, array: MeshArray) -> Result<String> {
        let found = self.head.variables().find(|(other, _)| *other == array);
        found.map(|(_, name)| name).ok_or_else(|| {
            let arrays: Vec<&str> = self.head.variables().map(|(array, _)| array.word()).collect();
            Code::NotFound
                .error(format!("the mesh {} has no {}", self.import.path().display(), array.word()))
                .with_hint(format!("it has {}", arrays.join(", ")))
        })
    }

    /// Type and shape of an array.
    ///
    /// Errors: `NotFound` for one that the mesh has not.
    pub fn array(&self, array: MeshArray) -> Result<&'a ImportedArray> {
        self.import.variable(&self.named(array)?)
    }

    /// Calls `act` with the number and the nodes of each row of this rank's share of an array, which is empty where there
    /// are none.
    ///
    /// Errors: `Corrupt` for an entry that names no node, or one behind a missing one.
    pub fn for_each_row(&self, array: MeshArray, act: impl FnMut(u64, &[i64]) -> Result<()>) -> Result<()> {
        let place = KINDS.iter().position(|(other, _)| *other == array);
        let rows = place.map_or(0, |place| self.head.counts[place + 1]);
        self.for_each_row_in(array, self.share_of(rows), act)
    }

    /// The same of these rows.
    pub fn for_each_row_in(
        &self,
        array: MeshArray,
        share: Range<u64>,
        mut act: impl FnMut(u64, &[i64]) -> Result<()>,
    ) -> Result<()> {
        if self.head.variables().all(|(other, _)| other != array) {
            return Ok(());
        }
        let imported = self.array(array)?;
        let [_, width] = imported.variable.shape[..] else {
            return Err(Error::internal("a connectivity without rows"));
        };
        let size = imported.array.size;
        let each = (PIECE / (width * size).max(1)).max(1);
        let (mut bytes, mut row) = (Vec::new(), Vec::new());
        let mut at = share.start;
        while at < share.end {
            let end = share.end.min(at + each);
            self.import.read_range(imported, at * width..end * width, &mut bytes)?;
            for (number, entries) in (at..end).zip(bytes.chunks((width * size) as usize)) {
                row.clear();
                let nodes = entries.chunks(size as usize).map(big_endian);
                for (place, node) in nodes.enumerate() {
                    let is_node = (0..self.head.counts[0] as i64).contains(&node);
                    match (is_node, node) {
                        (true, _) if row.len() == place => row.push(node),
                        (false, -1) => {}
                        _ => {
                            let (word, path) = (array.word(), self.import.path().display());
                            return Err(Error::corrupt(format!(
                                "{word}[{number}, {place}] of {path} is {node}"
                            )));
                        }
                    }
                }
                act(number, &row)?;
            }
            at = end;
        }
        Ok(())
    }

    /// This rank's part of a balanced cut.
    pub fn share_of(&self, total: u64) -> Range<u64> {
        let (rank, size) = (self.team.rank() as u128, self.team.size() as u128);
        let cut = |rank: u128| (u128::from(total) * rank / size) as u64;
        cut(rank)..cut(rank + 1)
    }
}

fn big_endian(bytes: &[u8]) -> i64 {
    match bytes.len() {
        4 => bytes.first_chunk().map_or(-1, |bytes| i64::from(i32::from_be_bytes(*bytes))),
        _ => bytes.first_chunk().map_or(-1, |bytes| i64::from_be_bytes(*bytes)),
    }
}
