//! Path lists: bytes that match their checksum, entries that keep the rules of a list, and exactly what the
//! writer's blocks hold.
//!
//! Invariants: one list is in memory, beside what the writer's blocks hold under each of its paths; of one list at
//! most one difference is named, because all behind a missing entry stand elsewhere.

use std::collections::BTreeMap;

use fieldstone_core::Result;
use fieldstone_format::netcdf::parse::{Finding, Findings, Source, shown};
use fieldstone_format::partitioned::{ListedPath, PathList};

use super::parts::File;

/// What a writer's blocks hold under each path. The paths of the entries are empty: the keys hold them.
#[derive(Debug, Default)]
pub(super) struct ExpectedPaths(BTreeMap<String, ListedPath<'static>>);

impl ExpectedPaths {
    /// Counts an object of a kind in a block of the writer, a variable with its bytes of data: all, or those of
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

/// The path list of a writer. `held` is what its blocks hold, where all of them could be read.
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
        let rule = "a path list has the CRC that the table says";
        let finding = Finding::error(begin, what, rule, error.message());
        findings.push(finding.with_hint("what stands under its paths is still counted, in the blocks"));
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
                format!("`{path}`: {}, its blocks hold {}", described(&listed), described(held))
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
        // What follows is still to keep the rules of a list.
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

const RULE: &str = "a path list has what the writer's blocks hold under each path, and no other path";
