//! Checks the path index and the name indexes: pages match their checksums, entries ascend, and the entries are
//! exactly those of the blocks.
//!
//! Invariants: an index is read a few pages at a time; at most one difference is reported for an index, because a
//! missing entry shifts all later entries.

use fieldstone_core::Result;
use fieldstone_format::netcdf::parse::{Finding, Findings, Source};
use fieldstone_format::partitioned::Page;
use fieldstone_format::partitioned::pages::{
    NAME_ENTRY, PAGE, PATH_ENTRY, entries_per_page, pages_of, read_name_entry, read_path_entry,
};

use super::parts::File;

/// Pages read at a time.
const AT_ONCE: u64 = 64;

/// An index in the file.
struct Index<'a> {
    offset: u64,
    pages: u64,
    /// Whether all pages except the last are full.
    full: bool,
    what: &'a str,
}

/// Checks the name index of a writer. `wanted` has the entries of its blocks, sorted, if all blocks could be read.
pub(super) fn names<S: Source + ?Sized>(
    file: &File<'_, S>,
    writer: usize,
    wanted: Option<&[[u8; NAME_ENTRY]]>,
    findings: &mut Findings,
) -> Result<()> {
    let Some(entry) = file.table.writers.get(writer) else { return Ok(()) };
    let what = format!("name index of writer {writer}");
    let pages = pages_of(entry.names, NAME_ENTRY);
    let index = Index { offset: entry.names_offset, pages, full: true, what: &what };
    compare(file, &index, wanted, findings, |entry| {
        let (is_var, number) = read_name_entry(entry).unwrap_or_default();
        format!("of the writer's {} {number}", if is_var { "variable" } else { "dimension" })
    })
}

/// Checks the path index. `wanted` has the entries of the blocks, sorted, if all blocks could be read.
pub(super) fn paths<S: Source + ?Sized>(
    file: &File<'_, S>,
    wanted: Option<&[[u8; PATH_ENTRY]]>,
    findings: &mut Findings,
) -> Result<()> {
    let (offset, pages) = (file.head.paths_offset, file.head.paths_pages);
    let index = Index { offset, pages, full: false, what: "path index" };
    compare(file, &index, wanted, findings, |entry| {
        let counts = read_path_entry(entry).unwrap_or_default();
        format!(
            "of writer {} with {} dimensions, {} attributes and {} variables under a path",
            counts.writer, counts.dims, counts.attrs, counts.vars
        )
    })
}

fn compare<S: Source + ?Sized, const N: usize>(
    file: &File<'_, S>,
    index: &Index<'_>,
    wanted: Option<&[[u8; N]]>,
    findings: &mut Findings,
    describe: impl Fn(&[u8]) -> String,
) -> Result<()> {
    let (mut rest, mut agrees) = (wanted.unwrap_or(&[]).iter(), wanted.is_some());
    let mut before: Option<[u8; N]> = None;
    let mut page_number = 0;
    while page_number < index.pages {
        let count = AT_ONCE.min(index.pages - page_number);
        let at = index.offset + page_number * PAGE as u64;
        let Some(bytes) = file.part(at, count * PAGE as u64, index.what, findings)? else { return Ok(()) };
        for (bytes, number) in bytes.chunks(PAGE).zip(page_number..) {
            let at = index.offset + number * PAGE as u64;
            let page = match Page::decode(bytes, N) {
                Ok(page) => page,
                Err(error) => {
                    let rule = "a page matches its CRC and has at least 1 entry";
                    let finding = Finding::error(at, index.what, rule, error.message());
                    findings.push(finding.with_hint("names are still found, through the metadata blocks"));
                    agrees = false;
                    continue;
                }
            };
            let entries = page.entries();
            if index.full && number + 1 < index.pages && entries.len() < entries_per_page(N) {
                let message = format!("{} entries", entries.len());
                let rule = "all pages of a name index except the last are full";
                findings.push(Finding::error(at, index.what, rule, message));
            }
            for (entry, at) in entries.zip((at + 8..).step_by(N)) {
                let Ok(entry) = <[u8; N]>::try_from(entry) else { continue };
                if before.is_some_and(|before| before >= entry) {
                    let message = "it is not above the one before it";
                    findings.push(Finding::error(at, index.what, "entries of an index ascend", message));
                    agrees = false;
                }
                before = Some(entry);
                let expected = if agrees { rest.next() } else { None };
                if agrees && expected != Some(&entry) {
                    let missing = expected.filter(|expected| **expected < entry);
                    let message = match missing {
                        Some(missing) => format!("the entry {} is missing", describe(missing)),
                        None => format!("no object has the entry {}", describe(&entry)),
                    };
                    findings.push(Finding::error(at, index.what, RULE, message));
                    agrees = false;
                }
            }
        }
        page_number += count;
    }
    if agrees && let Some(missing) = rest.next() {
        let at = index.offset + index.pages * PAGE as u64;
        let message = format!("the entry {} is missing", describe(missing));
        findings.push(Finding::error(at, index.what, RULE, message));
    }
    Ok(())
}

const RULE: &str = "an index has the entries that the metadata blocks make, and no others";
