//! Takeovers: header and record stand in each twice, and every block has its checksum in them or in another block.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::takeover::{TAIL, TakeoverHeader, TakeoverRecord, TakeoverTable, parse_file_name};

use super::super::FileMedium;
use super::super::takeovers::read_header;
use super::Bench;
use crate::medium::Inspect;
use crate::takeover::Takeover;

/// Mends header and record of a takeover by their second copies.
pub fn mend_takeover_copies(bench: &mut Bench, path: &str) -> Result<()> {
    let (Some(length), Ok(file)) = (bench.length(path), bench.open(path)) else { return Ok(()) };
    let shown = bench.root().join(path);
    let Ok((header, bytes)) = read_header(&*file, &shown, length) else { return Ok(()) };
    let (own, tail) = (bytes.len() as u64, TAIL as u64);
    let record_len = u64::from(header.record_len);
    let offsets = [header.record_offset, header.record_offset.saturating_add(record_len)];
    // Else the file was cut, and nothing of its end can be put anywhere.
    if offsets[1].checked_add(record_len + own + tail) != Some(length) {
        return Ok(());
    }
    let records: Vec<Vec<u8>> =
        offsets.into_iter().filter_map(|offset| bench.own(path, offset, record_len)).collect();
    let record = records.into_iter().find(|bytes| TakeoverRecord::decode(bytes, &header).is_ok());
    let before = bench.changes(path).map(|changes| changes.len());
    bench.put(path, 0, &bytes);
    bench.put(path, length - tail - own, &bytes);
    bench.put(path, length - tail, &TakeoverHeader::tail(bytes.len() as u32));
    if let Some(record) = record {
        offsets.into_iter().for_each(|offset| bench.put(path, offset, &record));
    }
    if bench.changes(path).map(|changes| changes.len()) != before {
        bench.note(None, path, "header and record, from their second copies in the file".to_owned());
    }
    Ok(())
}

/// Mends a takeover by its copy.
pub fn mend_takeover(bench: &mut Bench, source: &FileMedium, takeover: &Arc<Takeover>) -> Result<()> {
    let path = takeover.shown.clone();
    if bench.length(&path) == Some(takeover.bytes) && bench.is_equal(&path, 0, takeover.bytes) {
        return Ok(());
    }
    if !is_needed(bench, takeover) {
        return Ok(());
    }
    let tables = TakeoverTable::ALL.into_iter();
    let checked = tables.map(|table| takeover.check(table, |_, _| Ok(())));
    let whole: Result<()> = checked.chain([source.check_takeover(takeover)]).collect();
    if let Err(e) = whole {
        bench.note_left(&path, format!("the copy is damaged, too: {}", e.message()));
        return Ok(());
    }
    if is_another(bench, takeover) {
        bench.note_left(&path, "it is whole here, and another one in the copy".to_owned());
        return Ok(());
    }
    if bench.length(&path) == Some(takeover.bytes) && bench.equalize(&path, 0, takeover.bytes) {
        let how = bench.of_source("damaged parts");
        bench.note(None, &path, how);
    } else {
        bench.take_file(&path, takeover.bytes);
        let how = bench.of_source("the file");
        bench.note(None, &path, how);
    }
    Ok(())
}

/// Whether the store's file is another takeover of this name.
fn is_another(bench: &Bench, takeover: &Takeover) -> bool {
    let path = &takeover.shown;
    let (Some(length), Ok(file)) = (bench.length(path), bench.open(path)) else { return false };
    let Ok((header, _)) = read_header(&*file, &bench.root().join(path), length) else { return false };
    header.id != takeover.header.id || header.record_crc != takeover.header.record_crc
}

/// Whether the store needs a takeover of its copy: it is the newest of its owner, or the newest lists it.
fn is_needed(bench: &Bench, takeover: &Takeover) -> bool {
    let owner = takeover.header.owner.name();
    let world = bench.world();
    let names = world.disk.list_dir(&bench.root().join("logs")).unwrap_or_default();
    let numbers = names.iter().filter_map(|(name, _)| parse_file_name(name)).filter(|(of, _)| *of == owner);
    let newest = numbers.map(|(_, number)| number).max().unwrap_or(0);
    if newest <= takeover.number() {
        return true;
    }
    let path = format!("logs/{}", fieldstone_format::takeover::file_name(&owner, newest));
    let (Some(length), Ok(file)) = (bench.length(&path), bench.open(&path)) else { return false };
    read_header(&*file, &bench.root().join(&path), length)
        .is_ok_and(|(header, _)| header.live.iter().any(|(number, _)| *number == takeover.number()))
}
