//! Checks of every parser, for any bytes: no panic, no excessive allocation, and answers that agree with one
//! another. The fuzzer and a plain test run the same function.
//!
//! The first byte chooses the parser, so that one corpus serves all (C-11). If a parser checks a checksum,
//! the input's is corrected first; otherwise the fuzzer would never get past it.

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::partitioned::Reader;
use fieldstone_array::container::validate::validate;
use fieldstone_array::container::{Format, Metadata};
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::{FileMode, Team};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::write_all_at;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph_message::rows::Refused;
use fieldstone_format::graph_message::{Frame, Message};
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::write::{self, List};
use fieldstone_format::netcdf::{Attrs, Version, names, parse, paths, trailer};
use fieldstone_format::partitioned::{Block, Head, Page, PathList, Table, path_list};

const VERSIONS: [Version; 3] = [Version::Cdf1, Version::Cdf2, Version::Cdf5];

/// Runs the parser that the first byte chooses on the other bytes.
pub fn check(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    match choice % 11 {
        0 | 1 => header(bytes),
        2 => entries(bytes),
        3 => text(bytes),
        4 => locator(bytes),
        5 => block(bytes),
        6 => table(bytes),
        7 => page(bytes),
        8 => partitioned(bytes),
        9 => list(bytes),
        _ => message(bytes),
    }
}

/// A message between slots of the graph's index: a decoded one can be encoded and decoded again.
fn message(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if let Some((sum, body)) = bytes.split_first_chunk_mut::<4>() {
        *sum = crc32c::crc32c(body).to_le_bytes();
    }
    let Ok(frame) = Frame::decode(&bytes) else { return };
    let written = frame.encode();
    assert_eq!(Frame::decode(&written).expect("encoded bytes can be decoded").encode(), written);
    let (Message::Insert { rows, .. } | Message::Move { rows, .. } | Message::Begin { rows, .. }) =
        frame.message
    else {
        return;
    };
    let _ = (rows.vertex_rows(), rows.declared());
    let _ = rows.places();
    let _ = rows.some(&[Refused { row: 0, ends: 1 }]);
}

fn header(bytes: &[u8]) {
    let report = validate(bytes).expect("reading memory cannot fail");
    match parse::header(bytes) {
        Ok((header, places)) => {
            assert!(places.in_order() && places.header_len <= bytes.len() as u64);
            let written = write::header(&header, false);
            assert_eq!(written.len() as u64, write::header_len(&header, false));
            let (again, _) = parse::header(&written).expect("encoded bytes can be decoded");
            assert_eq!(again, header);
            let layout = Layout::of(&header, places.header_len).expect("checked by the parser");
            let _ = (layout.file_len(header.numrecs.unwrap_or(0)), layout.records_in(bytes.len() as u64));
            for id in header.vars.iter().flat_map(|var| var.dims()) {
                let _ = header.dims.get(*id as usize);
            }
            let spelled = write::header(&header, true);
            assert_eq!(spelled.len() as u64, write::header_len(&header, true));
        }
        Err(error) => {
            assert!(!report.ok, "a checker accepts what a reader refuses: {error}");
            assert!(error.to_string().starts_with("offset "), "{error}");
        }
    }
}

fn entries(bytes: &[u8]) {
    for version in VERSIONS {
        if let Ok(Some((dim, len))) = parse::dim_entry(bytes, version) {
            assert!(len <= bytes.len());
            let _ = dim.name();
        }
        if let Ok(Some((attr, len))) = parse::attr_entry(bytes, version) {
            assert!(len <= bytes.len());
            let _ = attr.get().map(|attr| attr.len());
        }
        if let Ok(Some((var, len))) = parse::var_entry(bytes, version) {
            assert!(len <= bytes.len());
            let _ = (var.name(), var.dims().count(), var.attrs().count());
            let shorter = parse::var_entry(&bytes[..len - 1], version);
            assert!(matches!(shorter, Ok(None)), "an entry without its last byte is incomplete");
        }
        for list in [List::Dims, List::Attrs, List::Vars] {
            let _ = parse::list_head(bytes, list, version);
        }
    }
}

fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut name = String::new();
    paths::encode(text, &mut name);
    assert_eq!(name.len(), paths::encoded_len(text));
    let has_empty_part = text.contains('/') && text.split('/').any(str::is_empty);
    assert_eq!(paths::decode(&name), if has_empty_part { &name } else { text });
    let decoded = paths::decode(text);
    if decoded != text {
        let mut again = String::new();
        paths::encode(&decoded, &mut again);
        assert_eq!(again, text);
    }
    if paths::check_path(text).is_ok() {
        assert!(name.len() <= names::MAX_NAME || !text.contains('/'));
        assert!(text.split('/').all(|part| names::check_name(part).is_ok()));
    }
    let normal = names::nfc(text);
    assert_eq!(names::nfc(&normal), normal);
    assert!(paths::enclosing(text).count() <= text.len() + 1);
}

fn crc(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).to_be_bytes()
}

fn locator(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    for sum in [u32::to_be_bytes as fn(u32) -> [u8; 4], u32::to_le_bytes] {
        if let Some((body, stored)) = bytes.split_last_chunk_mut::<4>() {
            *stored = sum(crc32c::crc32c(body));
        }
        if let Some(locator) = trailer::Locator::decode(&bytes) {
            assert_eq!(locator.encode()[..], bytes[..]);
            let places = locator.places();
            let _ = places.begin(u64::MAX, locator.header_len);
        }
    }
    let mut sums = trailer::Sums::new(trailer::CHUNK);
    let _ = sums.unpack(&bytes);
}

fn block(bytes: &[u8]) {
    let Ok(block) = Block::decode(bytes.to_vec()) else { return };
    let mut attrs = Attrs::default();
    (0..block.paths()).for_each(|i| drop(block.path(i)));
    let _ = block.least_path();
    for i in 0..block.dims() {
        let _ = (block.dim_name(i), block.dim(i));
    }
    (0..block.attrs()).for_each(|i| drop(block.attr(i, &mut attrs)));
    for i in 0..block.vars() {
        let _ = (block.var_name(i), block.var(i));
    }
}

fn table(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    let Some(head) = bytes.get_mut(..Head::LEN) else { return };
    let sum = crc(&head[8..16]);
    head[16..20].copy_from_slice(&sum);
    let sum = crc32c::crc32c_append(crc32c::crc32c(&head[4..8]), &head[24..Head::LEN - 4]);
    head[Head::LEN - 4..].copy_from_slice(&sum.to_be_bytes());
    let Ok(mut head) = Head::decode(head) else { return };
    let table = &bytes[Head::LEN..];
    head.table_crc = crc32c::crc32c(table);
    let _ = Table::decode(table, &head);
}

fn page(bytes: &[u8]) {
    for entry in [8, 32] {
        let mut bytes = bytes.to_vec();
        bytes.resize(4096, 0);
        let sum = crc(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum);
        if let Ok(page) = Page::decode(&bytes, entry) {
            assert!(page.entries().count() > 0);
            let _ = (page.first(), page.last(), page.starting_with(b"ab").count());
        }
    }
}

fn list(bytes: &[u8]) {
    let mut list = PathList::new(bytes, 7);
    let mut found = Vec::new();
    let whole = loop {
        match list.next_path() {
            Ok(Some(listed)) => found.push(listed),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let written = path_list(&found).expect("a decoded list can be encoded");
    assert!(bytes.starts_with(&written) && (!whole || bytes == written));
}

/// Corrects all checksums of a file with a partitioned header, as far as its numbers lead to them.
pub fn mend(bytes: &mut [u8]) {
    fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
        Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?) as usize)
    }
    fn u64_at(bytes: &[u8], at: usize) -> Option<usize> {
        usize::try_from(u64::from_be_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?)).ok()
    }
    fn pages(bytes: &mut [u8], at: usize, count: usize) {
        let Some(bytes) = bytes.get_mut(at..) else { return };
        for page in bytes.chunks_exact_mut(4096).take(count) {
            let sum = crc(&page[4..]);
            page[..4].copy_from_slice(&sum);
        }
    }
    let mut parts = || -> Option<()> {
        let (table, len) = (u64_at(bytes, 88)?, u64_at(bytes, 96)?);
        bytes.get(table..)?;
        let (blocks, writers) = (u32_at(bytes, 108)?, u32_at(bytes, 112)?);
        let (paths_at, paths) = (u64_at(bytes, 120)?, u64_at(bytes, 128)?);
        pages(bytes, paths_at, paths);
        for i in 0..blocks.min(1_000) {
            let entry = table.checked_add(i * 44)?;
            let (at, len) = (u64_at(bytes, entry)?, u32_at(bytes, entry + 8)?);
            let sum = bytes.get(at..at.checked_add(len)?).map(crc);
            if let Some(sum) = sum {
                bytes.get_mut(entry + 12..entry + 16)?.copy_from_slice(&sum);
            }
        }
        for i in 0..writers.min(1_000) {
            let entry = table.checked_add(blocks.checked_mul(44)?)?.checked_add(i * 32)?;
            let (at, names) = (u64_at(bytes, entry + 4)?, u64_at(bytes, entry + 12)?);
            pages(bytes, at, names.div_ceil(511));
        }
        // The last list ends at the table.
        let mut end = table;
        for i in (0..writers.min(1_000)).rev() {
            let entry = table.checked_add(blocks.checked_mul(44)?)?.checked_add(i * 32)?;
            let Some(begin) = end.checked_sub(u64_at(bytes, entry + 20)?) else { break };
            let sum = crc(bytes.get(begin..end)?);
            bytes.get_mut(entry + 28..entry + 32)?.copy_from_slice(&sum);
            end = begin;
        }
        let sum = crc(bytes.get(table..table.checked_add(len)?)?);
        bytes[104..108].copy_from_slice(&sum);
        Some(())
    };
    let _ = parts();
    if let Some(head) = bytes.get_mut(..Head::LEN) {
        let sum = crc(&head[8..16]);
        head[16..20].copy_from_slice(&sum);
        let sum = crc32c::crc32c_append(crc32c::crc32c(&head[4..8]), &head[24..Head::LEN - 4]);
        head[Head::LEN - 4..].copy_from_slice(&sum.to_be_bytes());
    }
}

/// A whole file: if the checker accepts it, the reader reads every object of it.
fn partitioned(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    mend(&mut bytes);
    let report = validate(&bytes).expect("reading memory cannot fail");
    let read = read(&bytes);
    if report.ok && report.format == Some(Format::Partitioned) {
        read.expect("a file that the checker accepts can be read");
    }
}

/// Reads all objects of a file, and finds each by its name.
fn read(bytes: &[u8]) -> Result<()> {
    let disk = SimWorld::memory().disk;
    let path = Path::new("/file");
    write_all_at(&*disk.create_new(path).expect("a new file"), bytes, 0).expect("written");
    let team = Team::new(Arc::new(SingleComm::new(disk)));
    let reader = Reader::open(team.open("open", path, FileMode::Read)?)?;
    let counts = reader.counts()?;
    let missing = |name: &str| Err(Error::corrupt(format!("`{name}` is listed but not found")));
    for var in reader.vars(0, usize::MAX)? {
        if reader.find_var(&var.name)?.is_none_or(|found| found.name != var.name) {
            return missing(&var.name);
        }
    }
    for dim in reader.dims(0, usize::MAX)? {
        if reader.find_dim(&dim.name)?.is_none_or(|found| found.name != dim.name) {
            return missing(&dim.name);
        }
    }
    assert_eq!(reader.attrs()?.len() as u64, counts.attrs);
    reader.each_path("", &mut |_, _| Ok(()))?;
    reader.find_var("event_1/absent").map(drop)
}
