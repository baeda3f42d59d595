//! Changes every byte of a small store and cuts every file at every length. Nothing panics, no wrong data pass as
//! correct, undamaged data stay readable, and `verify` names the file.
//!
//! The store holds two writers' logs with merged and unmerged segments, overwritten fields, an array with a table of
//! blocks, pieces of two writers, a joined transaction, an aborted one, and boards; a second store has a data log.
//! `FIELDSTONE_CRASH=full` changes every bit; of the megabyte of the data log, whose blocks have one checksum each,
//! it changes about 26,000 bytes, otherwise about 400.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::faults::{ROOT, full, open, seeded, u64_type};
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::log::{FrameInfo, LogHeader, SideRecord};
use fieldstone_format::segment::SegmentMeta;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::local::{LocalOptions, LocalStore};
use fieldstone_testkit::random::Seeded;

type Key = [(&'static str, String); 3];

/// The fields that must be readable: bytes by key.
type Fields = BTreeMap<String, (Key, Vec<u8>)>;

struct Maker {
    random: Seeded,
    fields: Fields,
}

impl Maker {
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.random.next_u64() as u8).collect()
    }

    fn key(&mut self, run: &str, variable: &str, step: u64, bytes: &[u8]) -> Key {
        let key = [("run", run.to_owned()), ("variable", variable.to_owned()), ("step", step.to_string())];
        let text = format!("{{run={run}}}{{variable={variable}}}{{step={step}}}");
        self.fields.insert(text, (key.clone(), bytes.to_vec()));
        key
    }

    fn put(&mut self, store: &LocalStore, run: &str, variable: &str, step: u64, length: usize) {
        self.put_in(store, run, variable, step, length, None);
    }

    fn put_in(
        &mut self,
        store: &LocalStore,
        run: &str,
        variable: &str,
        step: u64,
        length: usize,
        transaction: Option<Id>,
    ) {
        let bytes = self.bytes(length);
        let key = self.key(run, variable, step, &bytes);
        let options = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
        store.archive(&pairs(&key), Value::Bytes(&bytes), &options).unwrap();
    }

    /// An array of 40 elements in chunks of 4: ten blocks, so it has a table of blocks.
    fn array(&mut self, store: &LocalStore, run: &str, compression: Compression) {
        let bytes: Vec<u8> = (0..40u64).flat_map(|i| (i * i).to_le_bytes()).collect();
        let key = self.key(run, "array", 1, &bytes);
        let value = Value::Array { data: &bytes, dtype: u64_type(), shape: &[40] };
        let options = ArchiveOptions {
            compression: Some(compression),
            chunks: Some(vec![4]),
            ..ArchiveOptions::default()
        };
        store.archive(&pairs(&key), value, &options).unwrap();
    }

    fn piece(&mut self, store: &LocalStore, start: u64, count: u64) {
        let text = "{run=p}{variable=pieces}{step=1}".to_owned();
        let mut whole = self.fields.get(&text).map_or_else(|| vec![0; 96], |(_, bytes)| bytes.clone());
        let data = self.bytes(8 * count as usize);
        whole[8 * start as usize..8 * (start + count) as usize].copy_from_slice(&data);
        let key = self.key("p", "pieces", 1, &whole);
        let value =
            Value::Piece { data: &data, dtype: u64_type(), start: &[start], count: &[count], shape: &[12] };
        store.archive(&pairs(&key), value, &ArchiveOptions::default()).unwrap();
    }
}

fn pairs(key: &Key) -> Vec<(&str, &str)> {
    key.iter().map(|(k, v)| (*k, v.as_str())).collect()
}

/// Two writers on two hosts; no data log.
fn small_store() -> (SimWorld, Fields) {
    let world = SimWorld::new(11);
    world.set_tracing(false);
    let mut make = Maker { random: seeded(3), fields: Fields::new() };
    let a = open(&world.process("a")).unwrap();
    let b = open(&world.process("b")).unwrap();
    make.put(&a, "a", "t", 1, 40);
    make.put(&a, "a", "t", 2, 0);
    make.array(&a, "a", Compression::None);
    a.flush(&Session::default()).unwrap();
    make.put(&b, "b", "t", 1, 30);
    make.array(&b, "b", Compression::Zstd(3));
    make.put(&b, "both", "t", 1, 20);
    b.flush(&Session::default()).unwrap();
    make.put(&a, "both", "t", 1, 25);
    make.put(&a, "a", "t", 1, 45);
    make.piece(&a, 0, 7);
    a.flush(&Session::default()).unwrap();
    make.piece(&b, 5, 7);
    b.flush(&Session::default()).unwrap();
    let aborted = a.begin().unwrap();
    let kept = make.fields.clone();
    make.put_in(&a, "a", "t", 1, 10, Some(aborted));
    make.fields = kept;
    a.decide(aborted, false, &Session::default()).unwrap();
    let tx = a.begin().unwrap();
    make.put_in(&a, "a", "tx", 1, 33, Some(tx));
    make.put_in(&b, "b", "tx", 1, 34, Some(tx));
    b.flush(&Session::from(tx)).unwrap();
    a.decide(tx, true, &Session::default()).unwrap();
    for step in 3..6 {
        make.put(&a, "a", "t", step, 15);
        a.flush(&Session::default()).unwrap();
    }
    a.journal()
        .unflushed()
        .add(vec![SideRecord { kind: 7, bytes: b"side".to_vec().into() }], &Session::default())
        .unwrap();
    make.put(&a, "z", "t", 1, 12);
    a.flush(&Session::default()).unwrap();
    (world, make.fields)
}

/// One writer whose flush went through a data log.
fn large_store() -> (SimWorld, Fields) {
    let world = SimWorld::new(12);
    world.set_tracing(false);
    let mut make = Maker { random: seeded(4), fields: Fields::new() };
    let a = open(&world.process("a")).unwrap();
    make.put(&a, "a", "small", 1, 100);
    a.flush(&Session::default()).unwrap();
    make.put(&a, "a", "small", 2, 100);
    make.put(&a, "a", "large", 1, (1 << 20) + 10);
    a.flush(&Session::default()).unwrap();
    make.array(&a, "a", Compression::None);
    make.put(&a, "a", "small", 3, 100);
    a.flush(&Session::default()).unwrap();
    (world, make.fields)
}

/// One flush of many fields: a segment of many blocks, with a filter.
fn wide_store() -> (SimWorld, Fields) {
    let world = SimWorld::new(13);
    world.set_tracing(false);
    let mut make = Maker { random: seeded(5), fields: Fields::new() };
    let a = open(&world.process("a")).unwrap();
    for step in 0..1000 {
        make.put(&a, "a", "t", step, 3);
    }
    a.flush(&Session::default()).unwrap();
    (world, make.fields)
}

fn open_to_read(env: &Env) -> Result<LocalStore> {
    let options = LocalOptions { url: ROOT.into(), must_exist: true, ..LocalOptions::default() };
    LocalStore::open(env.clone(), Path::new(ROOT), options)
}

/// The structure that a byte belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Marker,
    Board,
    LogHeader,
    /// Head, foot, record, of any frame.
    FrameEnds,
    /// Parts of a frame other than a current segment: payload, merged segments, side records.
    Payload,
    /// Meta part or filter of a current segment.
    SegmentFrame,
    /// Entries of a current segment, with its first and last key.
    Entries(Vec<u8>, Vec<u8>),
    DataHeader,
    Data,
    /// Zeros after the last commit of a writer that has not closed its log.
    Zeros,
}

impl Part {
    fn name(&self) -> &'static str {
        match self {
            Part::Marker => "marker",
            Part::Board => "board",
            Part::LogHeader => "log header",
            Part::FrameEnds => "heads, records, feet",
            Part::Payload => "payload, merged segments",
            Part::SegmentFrame => "meta and filter of segments",
            Part::Entries(..) => "entries of segments",
            Part::DataHeader => "data log header",
            Part::Data => "data log",
            Part::Zeros => "zeros after commits",
        }
    }
}

/// The parts of a file, each with its range.
fn parts(world: &SimWorld, path: &Path) -> Vec<(Range<u64>, Part)> {
    let bytes = world.read(path).unwrap();
    let len = bytes.len() as u64;
    match path.extension().and_then(|e| e.to_str()) {
        Some("store") => return vec![(0..len, Part::Marker)],
        Some("board") => return vec![(0..len, Part::Board)],
        Some("data") => return vec![(0..44, Part::DataHeader), (44..len, Part::Data)],
        _ => {}
    }
    let header = u64::from(LogHeader::length(&bytes).unwrap());
    let mut parts = vec![(0..header, Part::LogHeader)];
    let mut at = header;
    let mut last = None;
    while at < len && bytes[at as usize..].iter().any(|&byte| byte != 0) {
        let ends = FrameInfo::decode_head(&bytes[at as usize..at as usize + 40], at).unwrap();
        let (body, length) = ends.body();
        parts.push((at..body, Part::FrameEnds));
        parts.push((body..body + length, Part::Payload));
        parts.push((body + length..ends.end(), Part::FrameEnds));
        let from = ends.record_offsets()[0] as usize;
        last = Some(ends.record(&bytes[from..from + ends.record_len as usize]).unwrap());
        at = ends.end();
    }
    if at < len {
        parts.push((at..len, Part::Zeros));
    }
    for segment in last.unwrap().segments {
        let range = segment.offset as usize..(segment.offset + segment.meta_len) as usize;
        let meta =
            SegmentMeta::decode(&bytes[range], segment.meta_crc, segment.length - 2 * segment.meta_len)
                .unwrap();
        parts.push((segment.offset..segment.offset + segment.length, Part::SegmentFrame));
        for (i, block) in meta.directory.iter().enumerate() {
            let start = segment.offset + block.offset;
            let end_key =
                meta.directory.get(i + 1).map_or(meta.last_key.to_vec(), |next| next.first_key.to_vec());
            let part = Part::Entries(block.first_key.to_vec(), end_key);
            parts.push((start..start + block.length, part));
        }
    }
    parts
}

/// The results of reading a store: keys that it returns correctly, and keys that it refuses as damaged.
struct Reading {
    /// Neither correct nor Corrupt: absent, or an older version.
    astray: BTreeSet<String>,
    refused: BTreeSet<String>,
    /// Keys that neither the list nor an error at its end covers.
    unlisted: BTreeSet<String>,
    list_failed: bool,
    report: VerifyReport,
}

/// Reads everything in the store in a new process. `older` returns whether bytes were once correct.
fn read_all(world: &SimWorld, fields: &Fields, at: &str) -> Reading {
    let env = world.process("reader");
    let store = open_to_read(&env).unwrap_or_else(|e| panic!("{at}: open: {e}"));
    let (mut astray, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for (text, (key, expected)) in fields {
        let got = store.get(&pairs(key), &ReadOptions::default()).and_then(|field| field.read());
        match got {
            Ok(bytes) if bytes == *expected => {}
            Ok(_) => drop(astray.insert(text.clone())),
            Err(e) if e.kind() == ErrorKind::Corrupt => drop(refused.insert(text.clone())),
            Err(e) if e.kind() == ErrorKind::NotFound => drop(astray.insert(text.clone())),
            Err(e) => panic!("{at}: get {text}: {:?} {e}", e.kind()),
        }
    }
    let mut unlisted: BTreeSet<String> = fields.keys().cloned().collect();
    let mut list_failed = false;
    match store.list(&Request::new(), &ListOptions::default()) {
        Ok(listing) => {
            for entry in listing {
                match entry {
                    Ok(entry) => {
                        let text = entry.key.to_string();
                        assert!(
                            fields.contains_key(&text),
                            "{at}: list shows {text}, which was never flushed"
                        );
                        unlisted.remove(&text);
                    }
                    Err(e) if e.kind() == ErrorKind::Corrupt => list_failed = true,
                    Err(e) => panic!("{at}: list: {:?} {e}", e.kind()),
                }
            }
        }
        Err(e) if e.kind() == ErrorKind::Corrupt => list_failed = true,
        Err(e) => panic!("{at}: list: {:?} {e}", e.kind()),
    }
    let report = store.verify(&Request::new()).unwrap_or_else(|e| panic!("{at}: verify: {e}"));
    Reading { astray, refused, unlisted, list_failed, report }
}

fn shown(path: &Path) -> String {
    path.strip_prefix(ROOT).unwrap().display().to_string()
}

/// The encoded key of a field.
fn encoded(key: &Key) -> Vec<u8> {
    let schema = fieldstone_core::schema::Schema::builtin("simulation").unwrap();
    fieldstone_format::keys::encode_key(&schema.resolve(&pairs(key)).unwrap()).bytes
}

/// Keys that may be lost if a byte of this part changes; `None`: any one key.
fn may_lose(part: &Part, fields: &Fields) -> Option<BTreeSet<String>> {
    match part {
        Part::Payload | Part::Data => None,
        Part::Entries(first, last) => Some(
            fields
                .iter()
                .filter(|(_, (key, _))| (first..=last).contains(&&encoded(key)))
                .map(|(text, _)| text.clone())
                .collect(),
        ),
        _ => Some(BTreeSet::new()),
    }
}

/// Counts of attempts, for `docs/faults.md`.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, [u64; 3]>);

impl Tally {
    fn add(&mut self, part: &str, reading: &Reading) {
        let name = [
            "marker",
            "board",
            "log header",
            "heads, records, feet",
            "payload, merged segments",
            "meta and filter of segments",
            "entries of segments",
            "data log header",
            "data log",
            "zeros after commits",
        ]
        .into_iter()
        .find(|name| *name == part)
        .unwrap();
        let counts = self.0.entry(name).or_default();
        counts[0] += 1;
        counts[1] += u64::from(!reading.refused.is_empty());
        counts[2] += u64::from(!reading.report.ok());
    }

    fn print(&self, what: &str) {
        println!("{what:<26} tried  a field refused  verify reports");
        for (part, [tried, refused, damaged]) in &self.0 {
            println!("{part:<26} {tried:>5}  {refused:>15}  {damaged:>14}");
        }
    }
}

fn flip(
    world: &SimWorld,
    fields: &Fields,
    path: &Path,
    offset: u64,
    mask: u8,
    part: &Part,
    tally: &mut Tally,
) {
    let at = format!("{} byte {offset} ^ {mask:#04x} ({})", shown(path), part.name());
    world.flip(path, offset, mask).unwrap();
    let reading = read_all(world, fields, &at);
    world.flip(path, offset, mask).unwrap();
    tally.add(part.name(), &reading);
    assert!(reading.astray.is_empty(), "{at}: wrong, old or absent without a word: {:?}", reading.astray);
    let may = may_lose(part, fields);
    let lost: Vec<&String> = match &may {
        Some(may) => reading.refused.difference(may).collect(),
        None => reading.refused.iter().skip(1).collect(),
    };
    assert!(lost.is_empty(), "{at}: cannot read {lost:?}");
    let may = may.unwrap_or_default();
    let lost: Vec<&String> = reading.unlisted.difference(&may).collect();
    assert!(lost.is_empty(), "{at}: not listed {lost:?}");
    assert!(
        reading.unlisted.is_empty() || reading.list_failed,
        "{at}: left out of the list without a word: {:?}",
        reading.unlisted
    );
    let report = &reading.report;
    if matches!(part, Part::Board | Part::Zeros) {
        // A hint, or room for commits: nothing is lost, and a note is enough.
        assert!(report.ok(), "{at}: {:?}", report.damaged);
        assert!(report.notes.iter().any(|n| n.contains(&shown(path))), "{at}: {:?}", report.notes);
        return;
    }
    let damaged = report.damaged.iter().any(|d| d.file == shown(path));
    // Data that only an older version holds deserve a note: everything visible is readable.
    let older = || report.notes.iter().any(|n| n.contains(&shown(path)) && n.contains("older version"));
    let of_values = matches!(part, Part::Payload | Part::Data);
    let named = damaged || of_values && reading.refused.is_empty() && older();
    assert!(named, "{at}: verify finds {:?}, notes {:?}", report.damaged, report.notes);
    if of_values {
        for text in &reading.refused {
            let named = report.damaged.iter().any(|d| d.key.as_ref() == Some(text));
            assert!(named, "{at}: verify does not name {text}: {:?}", report.damaged);
        }
    }
}

fn cut(world: &SimWorld, fields: &Fields, path: &Path, length: u64, part: &Part, tally: &mut Tally) {
    let at = format!("{} cut to {length} ({})", shown(path), part.name());
    let content = world.read(path).unwrap();
    world.truncate(path, length).unwrap();
    let reading = read_all(world, fields, &at);
    world.overwrite(path, &content).unwrap();
    tally.add(part.name(), &reading);
    let report = &reading.report;
    if matches!(part, Part::Board | Part::Zeros) {
        assert!(reading.refused.is_empty() && reading.astray.is_empty(), "{at}");
        assert!(reading.unlisted.is_empty() && report.ok(), "{at}: {:?}", report.damaged);
        return;
    }
    assert!(report.damaged.iter().any(|d| d.file == shown(path)), "{at}: verify finds {:?}", report.damaged);
    if matches!(part, Part::Marker | Part::Data | Part::DataHeader) {
        assert!(reading.astray.is_empty(), "{at}: {:?}", reading.astray);
        assert!(reading.unlisted.is_empty(), "{at}: not listed {:?}", reading.unlisted);
    }
    if *part == Part::Marker {
        assert!(reading.refused.is_empty(), "{at}: cannot read {:?}", reading.refused);
    }
}

/// The part of a byte: the last one that contains it.
fn part_at(parts: &[(Range<u64>, Part)], offset: u64) -> &Part {
    &parts.iter().rev().find(|(range, _)| range.contains(&offset)).unwrap().1
}

fn files(world: &SimWorld) -> Vec<(PathBuf, u64)> {
    world.files().into_iter().map(|path| (path.clone(), world.read(&path).unwrap().len() as u64)).collect()
}

#[test]
fn the_undamaged_stores_read_right() {
    for (world, fields) in [small_store(), large_store()] {
        let reading = read_all(&world, &fields, "undamaged");
        assert!(reading.astray.is_empty() && reading.refused.is_empty() && reading.unlisted.is_empty());
        assert!(reading.report.ok(), "{:?}", reading.report.damaged);
        assert!(reading.report.notes.is_empty(), "{:?}", reading.report.notes);
    }
}

#[test]
fn any_changed_byte_is_noticed_and_costs_only_what_it_holds() {
    let (world, fields) = small_store();
    let mut tally = Tally::default();
    let mut random = seeded(9);
    for (path, length) in files(&world) {
        let parts = parts(&world, &path);
        for offset in 0..length {
            let part = part_at(&parts, offset);
            if *part == Part::Zeros && !full() && offset % 16 != 0 {
                continue;
            }
            // One of two, at random; each of its bits in the full test.
            if !full() && random.one_in(2) {
                continue;
            }
            let masks: Vec<u8> =
                if full() { (0..8).map(|bit| 1 << bit).collect() } else { vec![1 << random.below(8)] };
            masks.iter().for_each(|&mask| flip(&world, &fields, &path, offset, mask, part, &mut tally));
        }
    }
    tally.print("changed byte in");
}

#[test]
fn any_cut_is_noticed_and_nothing_wrong_is_read() {
    let (world, fields) = small_store();
    let mut tally = Tally::default();
    for (path, length) in files(&world) {
        let parts = parts(&world, &path);
        (0..length)
            .step_by(if full() { 1 } else { 3 })
            .for_each(|at| cut(&world, &fields, &path, at, part_at(&parts, at), &mut tally));
    }
    tally.print("cut in");
}

#[test]
fn a_damaged_data_log_costs_only_the_fields_in_it() {
    let (world, fields) = large_store();
    let (mut flips, mut cuts) = (Tally::default(), Tally::default());
    let mut random = seeded(10);
    let data = files(&world).into_iter().find(|(path, _)| path.extension().unwrap() == "data");
    let (path, length) = data.expect("there is a data log");
    let parts = parts(&world, &path);
    let mut offsets: BTreeSet<u64> = (0..160).chain(length - 100..length).collect();
    match full() {
        true => offsets.extend((0..length).step_by(41)),
        false => offsets.extend((0..150).map(|_| random.below(length))),
    }
    for &offset in &offsets {
        let mask = 1 << random.below(8);
        flip(&world, &fields, &path, offset, mask, part_at(&parts, offset), &mut flips);
    }
    for at in offsets.iter().copied().step_by(if full() { 97 } else { 5 }) {
        cut(&world, &fields, &path, at, part_at(&parts, at), &mut cuts);
    }
    flips.print("changed byte in");
    cuts.print("cut in");
}

#[test]
fn a_damaged_block_of_a_large_index_costs_only_its_keys() {
    let (world, fields) = wide_store();
    let mut tally = Tally::default();
    let mut random = seeded(12);
    let path =
        files(&world).into_iter().map(|(path, _)| path).find(|p| p.extension().unwrap() == "log").unwrap();
    let parts = parts(&world, &path);
    let blocks = parts.iter().filter(|(_, part)| matches!(part, Part::Entries(..))).count();
    assert!(blocks > 4, "{blocks} blocks");
    for (range, _) in &parts {
        for _ in 0..if full() { 200 } else { 12 } {
            let offset = range.start + random.below(range.end - range.start);
            let part = part_at(&parts, offset);
            flip(&world, &fields, &path, offset, 1 << random.below(8), part, &mut tally);
        }
    }
    tally.print("changed byte in");
}

#[test]
fn a_lost_file_is_named() {
    let (world, fields) = small_store();
    for (path, _) in files(&world) {
        let copy = world.fork_image();
        let env = copy.process("vandal");
        env.disk.unlink(&path).unwrap();
        let reading = read_all(&copy, &fields, &format!("without {}", shown(&path)));
        let named = reading.report.damaged.iter().any(|d| d.file == shown(&path));
        let board = path.extension().unwrap() == "board";
        assert!(named != board, "without {}: {:?}", shown(&path), reading.report.damaged);
        if board || shown(&path) == "fieldstone.store" {
            assert!(reading.astray.is_empty() && reading.refused.is_empty(), "without {}", shown(&path));
        }
    }
}
