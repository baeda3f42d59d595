//! Erasures: purges after which no file holds a byte that they took (takeovers.md, 10.4).
//!
//! Invariants:
//! * a file that holds bytes of an entry that goes is rewritten, however much else it holds (R36);
//! * side records keep their commit and number, and their rows theirs (R23): rows lose their values alone.

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::log::{SideRecord, decode_all_side};
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{DatasetRow, parse_side_key};

use super::inputs::{Inputs, name_of_log};
use super::plan::{FileOf, PurgePlan};
use super::tables::side_records;
use super::walk::{Eraser, SideCommit};
use crate::medium::Medium;

impl PurgePlan {
    /// Whether a file with this number of bytes is rewritten for an erasure, although it may be alive for the most part.
    pub fn must_go(&self, file: FileOf, whole: u64) -> bool {
        self.erasure.files.contains(&file) || self.erasure.all_dead && self.live(file) < whole
    }

    /// Finds the side records of the inputs of which rows are erased.
    pub fn find_erased(
        &mut self,
        inputs: &Inputs,
        medium: &dyn Medium,
        eraser: &mut dyn Eraser,
    ) -> Result<()> {
        for ended in &inputs.logs {
            for commit in ended.commits.iter().filter(|commit| commit.side_count > 0) {
                let (writer, sequence) = (ended.log.writer, commit.sequence);
                let of = SideCommit { writer, sequence, transaction: commit.transaction };
                let records = side_records(medium, writer, commit)?;
                self.erase_records(eraser, of, &records, &name_of_log(writer))?;
            }
        }
        for takeover in &inputs.takeovers {
            takeover.each_below(TakeoverTable::Side, &[], |key, value| {
                let (writer, sequence) = parse_side_key(key)?;
                let commit = takeover.commit_of(writer, sequence)?;
                let transaction = commit.and_then(|commit| commit.info.transaction);
                let of = SideCommit { writer, sequence, transaction };
                self.erase_records(eraser, of, &decode_all_side(value)?, &takeover.shown)
            })?;
            // An earlier purge dropped entries, and may have left their bytes where most were alive.
            takeover.each_below(TakeoverTable::Datasets, &[], |dataset, value| {
                let is_purged = DatasetRow::decode(value)?.purged > 0;
                self.erasure.all_dead = self.erasure.all_dead || is_purged && eraser.is_wanted(dataset)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn erase_records(
        &mut self,
        eraser: &mut dyn Eraser,
        of: SideCommit,
        records: &[SideRecord],
        input: &str,
    ) -> Result<()> {
        if let Some(erased) = eraser.records(&of, records)? {
            self.erasure.records.insert((of.writer, of.sequence), erased.records);
            self.erasure.rows += erased.rows;
            self.datasets.extend(erased.datasets);
            if !self.erasure.inputs.contains(input) {
                self.erasure.inputs.insert(input.to_owned());
            }
        }
        Ok(())
    }
}

impl Inputs {
    /// The side records that a commit has from now on, if rows of them are erased.
    pub fn erased(&self, commit: (Id, u64)) -> Option<&Vec<SideRecord>> {
        self.purge.as_ref()?.erasure.records.get(&commit)
    }
}
