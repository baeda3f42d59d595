//! Checks files with a partitioned header as a whole: head, index table, positions of the parts, data.
//!
//! Invariants: a part with a failed checksum is reported once and not examined further; a part is read only if the
//! file is long enough to hold it, so that the file's size limits memory, whatever its numbers are; blocks are read
//! one at a time.

use fieldstone_core::Result;
use fieldstone_format::crc;
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::parse::{Finding, Findings, Severity, Source};
use fieldstone_format::partitioned::pages::{NAME_ENTRY, PAGE, pages_of};
use fieldstone_format::partitioned::{Head, MAGIC, Table, VERSION, is_unfinished};

use super::blocks::Blocks;
use super::ends::last_record;
use super::parts::{File, part};
use super::report::Report;
use crate::container::model::Format;

/// Bytes examined at a time in a range that must be zero, and limit on all of them.
const PIECE: u64 = 64 << 10;
const ROOM: u64 = 4 << 20;

/// Whether a file has a partitioned header, finished or not.
pub(super) fn is_one(source: &(impl Source + ?Sized)) -> Result<bool> {
    let mut first = [0; 4];
    let read = source.read_at(&mut first, 0)?;
    Ok(read == 4 && (first[..3] == MAGIC[..3] || is_unfinished(&first)))
}

/// Checks a file for which [`is_one`] is true.
pub(super) fn check(
    source: &(impl Source + ?Sized),
    report: &mut Report,
    findings: &mut Findings,
) -> Result<()> {
    let mut first = [0; Head::LEN];
    let read = source.read_at(&mut first, 0)?;
    if !is_unfinished(&first) {
        return check_finished(source, report, findings);
    }
    // How far its writer got: the first fault that the file would have if it had its magic.
    let (mut otherwise, mut wrong) = (Report::default(), Findings::default());
    check_finished(&FinishedSource(source), &mut otherwise, &mut wrong)?;
    let stopped = match wrong.list.iter().find(|finding| finding.severity == Severity::Error) {
        _ if first[4..read].iter().all(|byte| *byte == 0) => {
            "the writer stopped during definition: the file contains no definitions".to_owned()
        }
        Some(first) => format!("the writer stopped in enddef, before the header was complete ({first})"),
        None => {
            let [dims, attrs, vars] = otherwise.counts;
            format!(
                "the writer stopped while writing data: the header is complete ({dims} dimensions, \
                 {attrs} attributes, {vars} variables), but data may be missing"
            )
        }
    };
    let rule = "a finished file begins with FSP and its version";
    let message = format!("the writer never finished the file; {stopped}");
    let hint = "write it again; its contents are not reliable";
    findings.push(Finding::error(0, "", rule, message).with_hint(hint));
    Ok(())
}

/// A file viewed as if it were finished.
struct FinishedSource<'s, S: ?Sized>(&'s S);

impl<S: Source + ?Sized> Source for FinishedSource<'_, S> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.0.read_at(buffer, offset)?;
        for (at, byte) in (offset..4).zip(buffer[..read].iter_mut()) {
            *byte = MAGIC[at as usize];
        }
        Ok(read)
    }
    fn len(&self) -> Result<u64> {
        self.0.len()
    }
}

fn check_finished(
    source: &(impl Source + ?Sized),
    report: &mut Report,
    findings: &mut Findings,
) -> Result<()> {
    let len = source.len()?;
    let Some((head, numrecs_known)) = head(source, len, findings)? else { return Ok(()) };
    report.format = Some(Format::Partitioned);
    report.counts = [head.dims, head.attrs, head.vars];
    report.numrecs = head.numrecs;
    report.header_len = head.table_offset.saturating_add(head.table_len);
    report.paths = true;
    let Some(table) = table(source, len, &head, findings)? else { return Ok(()) };
    parts(&head, &table, findings);
    unused(source, len, report.header_len, head.data_begin, findings)?;
    let file = File { source, len, head: &head, table: &table };
    let mut blocks = Blocks::new(&file, findings);
    blocks.names()?;
    blocks.variables()?;
    let Some(data) = blocks.data else { return Ok(()) };
    let data_end = head.data_begin.saturating_add(data.fixed);
    if data_end > head.record_begin {
        let message = format!("records begin at {}, but fixed data end at {data_end}", head.record_begin);
        findings.push(Finding::error(80, "head", "records come after the fixed data", message));
        return Ok(());
    }
    if data.record_size() != head.record_size {
        let message =
            format!("{} bytes, but the variables' slabs take {}", head.record_size, data.record_size());
        let rule = "the record size is the sum of the slabs of all record variables";
        findings.push(Finding::error(64, "head", rule, message));
        return Ok(());
    }
    let layout = Layout {
        header_len: report.header_len,
        data_begin: head.data_begin,
        data_end,
        record_begin: head.record_begin,
        record_size: head.record_size,
        one_record_var: data.record_vars == 1,
    };
    if numrecs_known && head.numrecs > 0 && head.record_size > 0 {
        let numrecs = (head.numrecs, Head::NUMRECS_AT);
        if last_record(&layout, numrecs, len, findings).is_some() {
            data.last_record.finish(Some(head.numrecs - 1), findings);
        }
    }
    // Alignment leaves space before the records, which a file without records may still have.
    let end = layout.file_len(head.numrecs).unwrap_or(u64::MAX).max(head.data_begin);
    if numrecs_known && len > end.max(if head.numrecs == 0 { head.record_begin } else { 0 }) {
        let message = format!("{} bytes follow the data", len - end);
        findings.push(Finding::warning(end, "", "a file ends with its data", message));
    }
    Ok(())
}

/// Checks the head; also returns whether its number of records can be trusted.
fn head(source: &(impl Source + ?Sized), len: u64, findings: &mut Findings) -> Result<Option<(Head, bool)>> {
    let mut stop = |at, rule, message: String, hint| {
        findings.push(Finding::error(at, "head", rule, message).with_hint(hint));
    };
    let mut bytes = vec![0; Head::LEN];
    let read = source.read_at(&mut bytes, 0)?;
    if bytes[3] != VERSION {
        let message = format!("this is version {}", bytes[3]);
        stop(
            3,
            "the version is 0",
            message,
            "read it with a newer version of this program, or the byte is damaged",
        );
        return Ok(None);
    }
    if read < bytes.len() {
        let message = format!("the head takes {} bytes, but the file has {len}", Head::LEN);
        stop(len, "a file holds its whole header", message, "the file was cut: get a complete copy");
        return Ok(None);
    }
    let stated = |bytes: &[u8], at: usize| bytes[at..at + 4] == crc(&bytes[at - 8..at]).to_be_bytes();
    let sound = stated(&bytes, 16);
    if !sound {
        let message = "the number of records does not match its checksum".to_owned();
        stop(8, "bytes 8 to 15 match the CRC at 16", message, "restore the file from a copy");
        bytes[8..24].copy_from_slice(&Head::numrecs_field(0));
    }
    let covered = [&bytes[4..8], &bytes[24..Head::LEN - 4]].concat();
    if bytes[Head::LEN - 4..] != crc(&covered).to_be_bytes() {
        let message = "the head does not match its checksum".to_owned();
        stop(4, "bytes 4 to 7 and 24 to 155 match the CRC at 156", message, "restore the file from a copy");
        return Ok(None);
    }
    match Head::decode(&bytes) {
        Ok(head) => {
            let wanted = head.encode();
            let other = (4..Head::LEN).find(|at| bytes[*at] != wanted[*at] && *at < Head::LEN - 4);
            if let Some(at) = other {
                let message = format!("the byte {:#04x}", bytes[at]);
                findings.push(Finding::warning(at as u64, "head", "unused bytes are zero", message));
            }
            Ok(Some((head, sound)))
        }
        Err(error) => {
            let message = error.message().trim_start_matches("head: ").to_owned();
            stop(24, "the positions in the head fit together", message, "");
            Ok(None)
        }
    }
}

fn table(
    source: &(impl Source + ?Sized),
    file_len: u64,
    head: &Head,
    findings: &mut Findings,
) -> Result<Option<Table>> {
    let what = "index table";
    let place = (head.table_offset, head.table_len);
    let Some(bytes) = part(source, file_len, place, what, findings)? else { return Ok(None) };
    if crc(&bytes) != head.table_crc {
        let message = "its bytes do not match their checksum";
        let finding =
            Finding::error(head.table_offset, what, "the table matches its CRC in the head", message);
        findings.push(finding.with_hint("restore the file from a copy"));
        return Ok(None);
    }
    match Table::decode(&bytes, head) {
        Ok(table) => Ok(Some(table)),
        Err(error) => {
            let rule = "the table agrees with itself and the head";
            findings.push(Finding::error(head.table_offset, what, rule, error.message()));
            Ok(None)
        }
    }
}

/// Checks the order of the parts, and that they neither leave gaps nor overlap.
fn parts(head: &Head, table: &Table, findings: &mut Findings) {
    let mut end = Head::LEN as u64;
    let mut next = |at: u64, len: u64, what: String| {
        if len == 0 {
            return;
        }
        let rule = "blocks, name indexes, path index, path lists and table follow each other without gaps";
        if at < end {
            let message = format!("begins at {at}, but the part before it ends at {end}");
            findings.push(Finding::error(at, what, rule, message));
        } else if at > end {
            let message = format!("begins at {at}, {} bytes after the end of the part before it", at - end);
            findings.push(Finding::warning(end, what, rule, message));
        }
        end = end.max(at.saturating_add(len));
    };
    for (i, block) in table.blocks.iter().enumerate() {
        next(block.offset, u64::from(block.len), format!("metadata block {i}"));
    }
    for (i, writer) in table.writers.iter().enumerate() {
        let len = pages_of(writer.names, NAME_ENTRY).saturating_mul(PAGE as u64);
        next(writer.names_offset, len, format!("name index of writer {i}"));
    }
    next(head.paths_offset, head.paths_pages.saturating_mul(PAGE as u64), "path index".to_owned());
    let (lists, len) = table.lists(head);
    next(lists, len, "path lists".to_owned());
    next(head.table_offset, head.table_len, "index table".to_owned());
}

/// Checks that the bytes between header and data are zero; if much space is reserved, only the first bytes.
fn unused(
    source: &(impl Source + ?Sized),
    file_len: u64,
    begin: u64,
    end: u64,
    findings: &mut Findings,
) -> Result<()> {
    let (mut at, end) = (begin, end.min(file_len).min(begin.saturating_add(ROOM)));
    let mut bytes = Vec::new();
    while at < end {
        bytes.resize((end - at).min(PIECE) as usize, 0);
        let read = source.read_at(&mut bytes, at)?;
        if let Some(place) = bytes[..read].iter().position(|byte| *byte != 0) {
            let message = format!("the byte {:#04x}", bytes[place]);
            let what = "space between header and data";
            findings.push(Finding::warning(at + place as u64, what, "unused bytes are zero", message));
            return Ok(());
        }
        if read == 0 {
            return Ok(());
        }
        at += read as u64;
    }
    Ok(())
}
