//! Checks path lists: bytes match their checksum, entries obey the rules of a list, and the contents equal those of
//! the writer's blocks.
//!
//! Invariants: memory holds one list, and the totals of the writer's blocks under each of its paths; at most one
//! difference is reported for a list, because a missing entry shifts all later entries.

use std::collections::BTreeMap;

use fieldstone_core::Result;
use fieldstone_format::netcdf::parse::{Finding, Findings, Source, shown};
use fieldstone_format::partitioned::{ListedPath, PathList};

use super::parts::File;

/// The contents of a writer's blocks under each path. The paths in the entries are empty, because the keys hold them.
#[derive(Debug, Default)]
pub(super) struct ExpectedPaths(BTreeMap<String, ListedPath<'static>>);

impl ExpectedPaths {
    /// Counts an object of a kind in a block of the writer; for a variable, also its bytes of data: all, or those of
    /// one record.
    pub fn add(&mut self, path: &str, kind: usize, block: u32, fixed: u64, record: u64) {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), ListedPath { first_block: block, ..ListedPath::default() });
        }
        let Some(held) = self.0.get_mut(path) else { return };
        held.last_block = block;
        *[&mut held.dims, &mut held.attrs, &mut held.vars][kind] += 1;
        held.data = held.data.saturating_add(fixed);
        held.record_data = held.record_data.saturating_add(record);
    }
}

/// Checks the path list of a writer. `held` has the contents of its blocks, if all blocks could be read.
pub(super) fn check<S: Source + ?Sized>(
    file: &File<'_, S>,
    writer: usize,
    held: Option<&ExpectedPaths>,
    findings: &mut Findings,
) -> Result<()> {
    let Some(entry) = file.table.writers.get(writer) else { return Ok(()) };
    let what = format!("path list of writer {writer}");
    let begin = file.table.lists(file.head).0.saturating_add(file.table.list_of_writer(writer));
    let Some(bytes) = file.part(begin, entry.list_len, &what, findings)? else { return Ok(()) };
    if let Err(error) = entry.check_list(&bytes) {
        let rule = "a path list matches its CRC in the table";
        let finding = Finding::error(begin, what, rule, error.message());
        findings.push(finding.with_hint("objects under its paths are still counted, in the blocks"));
        return Ok(());
    }
    let mut list = PathList::new(&bytes, entry.blocks);
    let mut expected = held.map(|held| held.0.iter());
    loop {
        let at = begin + list.at() as u64;
        let listed = match list.next_path() {
            Ok(listed) => listed,
            Err(error) => {
                let rule = "entries of a path list ascend, have objects, and name blocks of the writer";
                findings.push(Finding::error(at, what, rule, error.message()));
                return Ok(());
            }
        };
        let wanted = expected.as_mut().and_then(Iterator::next);
        let message = match (listed, wanted) {
            (None, None) => return Ok(()),
            (Some(_), _) if expected.is_none() => continue,
            (Some(listed), Some((path, held))) if listed == (ListedPath { path, ..*held }) => continue,
            (Some(listed), Some((path, held))) if listed.path == path => {
                let path = shown(path);
                format!("`{path}`: {}, but its blocks hold {}", described(&listed), described(held))
            }
            (Some(listed), Some((path, _))) if path.as_str() > listed.path => {
                format!("`{}` has no object in the writer's blocks", shown(listed.path))
            }
            (_, Some((path, _))) => format!("`{}` is missing", shown(path)),
            (Some(listed), None) => {
                format!("`{}` has no object in the writer's blocks", shown(listed.path))
            }
        };
        findings.push(Finding::error(at, &*what, RULE, message));
        // The rest must still obey the rules of a list.
        expected = None;
        if listed.is_none() {
            return Ok(());
        }
    }
}

fn described(listed: &ListedPath<'_>) -> String {
    let ListedPath { dims, attrs, vars, first_block, last_block, data, record_data, .. } = listed;
    format!(
        "{dims} dimensions, {attrs} attributes and {vars} variables in blocks {first_block} to {last_block}, \
         {data} bytes and {record_data} a record"
    )
}

const RULE: &str = "a path list has the contents of the writer's blocks under each path, and no other path";
