//! Mending fields: data logs and array files, block by block, against the checksums in the index (J-56).
//!
//! The index is mended before, and its checksums decide: bytes of the copy that match take the place of those that do not.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_format::entry::Location;
use fieldstone_format::keys::key_text;
use fieldstone_format::{Id, crc, data};
use fieldstone_journal::Journal;
use fieldstone_journal::entry_source::EntryCursor;
use fieldstone_journal::journal::repair::on_bench;
use fieldstone_journal::medium::posix::repair::Bench;

use crate::read::{Match, Matcher, Part, Source};
use crate::snapshot::Snapshot;

/// How often fields are looked at again, because tables of their blocks were mended.
const AGAIN: usize = 4;

/// Mends fields that a request selects, hidden versions included, and the data logs that hold them.
pub fn mend_fields(bench: &mut Bench, request: &Request) -> Result<()> {
    let journal = on_bench(bench)?;
    mend_data_logs(bench, &*journal.looks().even_without_logs()?)?;
    for _ in 0..AGAIN {
        // Another handle has nothing in its caches.
        let journal = on_bench(bench)?;
        if !mend_blocks(bench, &journal, request)? {
            break;
        }
    }
    Ok(())
}

/// Data logs that are missing or cut, and their headers, which follow from their names.
fn mend_data_logs(bench: &mut Bench, snapshot: &Snapshot) -> Result<()> {
    for ((writer, number), length) in data_logs(snapshot)? {
        if snapshot.accepted.has_file(writer, number) {
            continue;
        }
        let path = format!("data/{}", data::file_name(writer, number));
        let of_copy = bench.source_length(&path).map(|len| len.min(length));
        match (bench.length(&path), of_copy) {
            (None, Some(of_copy)) => {
                bench.take_file(&path, of_copy);
                let how = bench.of_source(&format!("the file, with {of_copy} of {length} bytes"));
                bench.note(None, &path, how);
            }
            (Some(own), Some(of_copy)) if own < of_copy => {
                bench.equalize(&path, own, of_copy);
                let how = bench.of_source(&format!("the end of the file from {own} on"));
                bench.note(None, &path, how);
            }
            _ => {}
        }
        let header = bench.own(&path, 0, data::HEADER_LEN);
        if header.is_some_and(|header| data::check_header(&header, writer, number).is_err()) {
            bench.put(&path, 0, &data::encode_header(writer, number));
            bench.note(None, &path, "the header, which follows from its name".to_owned());
        }
    }
    Ok(())
}

/// The data logs that a snapshot names, each with the bytes that count.
fn data_logs(snapshot: &Snapshot) -> Result<BTreeMap<(Id, u32), u64>> {
    let mut all: BTreeMap<(Id, u32), u64> = BTreeMap::new();
    let mut add = |writer: Id, logs: &[(u32, u64)]| {
        for (number, length) in logs {
            let most = all.entry((writer, *number)).or_default();
            *most = (*most).max(*length);
        }
    };
    snapshot.logs.iter().for_each(|log| add(log.writer, &log.record.data_logs));
    for takeover in snapshot.taken.takeovers().all() {
        add(takeover.header.id, &takeover.record.data_logs);
        // A damaged table is named by `verify`.
        let _ = takeover.each_log(|log| {
            add(log.writer, &log.row.data_logs);
            Ok(())
        });
    }
    Ok(all)
}

/// Mends blocks; whether tables of blocks were mended, so that there may be more to see.
fn mend_blocks(bench: &mut Bench, journal: &Journal, request: &Request) -> Result<bool> {
    let snapshot = journal.looks().even_without_logs()?;
    let now = journal.env().clock.now();
    let selection = journal.schema().make(|schema| schema.select_at(request, now))?;
    let mut matcher = Matcher::new(selection);
    let mut restored: BTreeSet<String> = BTreeSet::new();
    let mut tables = false;
    for (index, source) in snapshot.sources.iter().enumerate() {
        let mut cursor = EntryCursor::tolerant(source, index);
        while cursor.advance()? {
            if !matches!(matcher.test(cursor.key()), Ok(Match::Yes)) {
                continue;
            }
            let Ok(part) = Part::decode(&snapshot, index, cursor.place(), cursor.value()) else { continue };
            if snapshot.gives_up(&part.commit, part.holder, &part.entry) {
                continue;
            }
            if let Location::Grown(grown) = &part.entry.location
                && bench.length(&grown.path).is_none()
                && let Some(length) = bench.source_length(&grown.path)
                && restored.insert(grown.path.clone())
            {
                bench.take_file(&grown.path, length);
                let how = bench.of_source("the file");
                bench.note(None, &grown.path, how);
            }
            tables |= mend_part(bench, journal, &part, cursor.key())?;
        }
    }
    Ok(tables)
}

/// Mends the blocks of one entry; whether it was their table.
fn mend_part(bench: &mut Bench, journal: &Journal, part: &Part, key: &[u8]) -> Result<bool> {
    let source = Source::new(journal.files(), part, key);
    let damaged = source.damaged(&|path, offset, length| bench.own(path, offset, length))?;
    let mut tables = false;
    for range in damaged {
        let bytes = bench.of_copy(&range.path, range.offset, range.length);
        let Some(bytes) = bytes.filter(|bytes| crc(bytes) == range.crc) else { continue };
        bench.put(&range.path, range.offset, &bytes);
        tables |= range.is_table;
        let how = bench.of_source(&format!("{} bytes at {}", range.length, range.offset));
        bench.note(Some(key_text(key)), &range.path, how);
    }
    Ok(tables)
}
