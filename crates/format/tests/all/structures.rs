//! Every structure survives a round trip, and damage to its bytes is detected.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers outside #[test] functions, too

use crate::common::*;
use fieldstone_core::env::Lifetime;
use fieldstone_core::{Error, ErrorKind};
use fieldstone_format::attempt::{Attempt, Origin};
use fieldstone_format::block::{Block, check_raw_len, pack, put_blocks, read_blocks, unpack};
use fieldstone_format::board::{SLOT, Slot};
use fieldstone_format::bytes::{Cursor, Put};
use fieldstone_format::entry::Entry;
use fieldstone_format::flush_part::FlushPart;
use fieldstone_format::log::{
    CommitRecord, Decision, Envelope, FOOT, FrameInfo, HEAD, LogHeader, Prepared, Section, SideRecord,
    decode_side, encode_frame, encode_side,
};
use fieldstone_format::marker::{self, Marker};
use fieldstone_format::owner::Owner;
use fieldstone_format::segment::SegmentRef;
use fieldstone_format::version::Version;
use fieldstone_format::{Id, crc, data, log};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn corrupt(text: &str) -> Error {
    Error::corrupt(text)
}

fn header() -> impl Strategy<Value = LogHeader> {
    let who = (id(), id(), any::<i64>(), any::<u32>(), any::<u32>(), 1..=2u32);
    (who, [text(), text(), text(), text()], vec((id(), number()), 0..3)).prop_map(|(who, texts, sealed)| {
        let [host, user, program, schema] = texts;
        let (writer, store, created, uid, process, version) = who;
        // Version 1 cannot store a job.
        let (attempt, job) = (user.clone(), host.clone());
        let origin =
            if version > 1 { Origin { attempt, job, rank: uid.checked_sub(7) } } else { Origin::default() };
        let subject = Owner::Subject { issuer: host.clone(), subject: user.clone() };
        let owner = [None, Some(Owner::User(process)), Some(subject)][uid as usize % 3]
            .clone()
            .filter(|_| version > 1);
        let lifetime = Lifetime { boot: host.clone(), namespace: uid.into(), started: process.into() };
        let lifetime = if version > 1 { lifetime } else { Lifetime::default() };
        LogHeader {
            version,
            writer,
            store,
            created,
            uid,
            process,
            host,
            user,
            program,
            schema,
            sealed,
            origin,
            owner,
            lifetime,
        }
    })
}

fn run_ref() -> impl Strategy<Value = SegmentRef> {
    (any::<u32>(), 0..1u64 << 62, 0..1u64 << 62, number(), any::<u32>(), number(), number()).prop_map(
        |(file, offset, length, meta, meta_crc, weight, entries)| SegmentRef {
            file,
            offset,
            length,
            meta_len: meta % (length / 2 + 1),
            meta_crc,
            weight,
            entries,
        },
    )
}

/// A record without its side section, which depends on the position of the frame.
fn record() -> impl Strategy<Value = CommitRecord> {
    let fixed = (any::<u64>(), any::<u64>(), any::<i64>(), any::<[u64; 3]>());
    let prepared = (id(), number(), number(), any::<i64>())
        .prop_map(|(transaction, sequence, fields, since)| Prepared { transaction, sequence, fields, since });
    let decision = (id(), any::<bool>(), any::<u32>(), vec((id(), number()), 0..3)).prop_map(
        |(transaction, committed, kinds, covers)| Decision { transaction, committed, kinds, covers },
    );
    let lists = (
        vec(prepared, 0..3),
        vec((any::<u32>(), number()), 0..3),
        vec(run_ref(), 0..4),
        vec(text(), 0..3),
        option::of(decision),
    );
    (fixed, option::of(id()), number(), number(), lists).prop_map(
        |(fixed, transaction, fields, bytes, lists)| {
            let (sequence, stamp, time, [previous, previous_decision, previous_side]) = fixed;
            let (prepared, data_logs, segments, condemned, decision) = lists;
            CommitRecord {
                sequence,
                stamp,
                time,
                previous,
                previous_decision,
                previous_side,
                transaction,
                prepared,
                fields,
                bytes,
                data_logs,
                segments,
                side: Section::default(),
                side_count: 0,
                condemned,
                decision,
                attempt: None,
                flushes: Vec::new(),
                open: Vec::new(),
                view: 0,
                siblings: Vec::new(),
            }
        },
    )
}

fn slot() -> impl Strategy<Value = Slot> {
    (id(), any::<bool>(), any::<[u64; 4]>(), any::<u32>(), any::<u32>(), any::<i64>()).prop_map(
        |(writer, closed, [length, sequence, stamp, frame], hash, process, time)| Slot {
            writer,
            closed,
            length,
            sequence,
            stamp,
            frame,
            hash,
            process,
            time,
        },
    )
}

fn version() -> impl Strategy<Value = Version> {
    // Ids with two prefixes, so that some begin alike.
    proptest::collection::btree_map((0..4u8, any::<[u8; 8]>()), number(), 0..5).prop_map(|writers| {
        let id = |(first, last): (u8, [u8; 8])| {
            let mut id = Id([first; 16]);
            id.0[8..].copy_from_slice(&last);
            id
        };
        Version::new(writers.into_iter().map(|(writer, sequence)| (id(writer), sequence)).collect())
    })
}

/// Reads a frame like a reader: head, record, foot, body.
fn read_frame(bytes: &[u8], offset: u64) -> fieldstone_core::Result<CommitRecord> {
    let ends = FrameInfo::decode_head(bytes, offset)?;
    if bytes.len() as u64 != ends.length
        || FrameInfo::decode_foot(&bytes[bytes.len() - FOOT..], ends.end())? != ends
    {
        return Err(corrupt("the frame is cut"));
    }
    let at = |offset_in_log: u64| (offset_in_log - offset) as usize;
    let (body, length) = ends.body();
    if crc(&bytes[at(body)..at(body + length)]) != ends.body_crc {
        return Err(corrupt("body"));
    }
    let [last, first] = ends.record_offsets().map(|from| {
        let from = at(from);
        ends.record(&bytes[from..from + ends.record_len as usize])
    });
    first.and(last)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn numbers_come_back_in_the_fewest_bytes(n in number()) {
        let mut out = Vec::new();
        out.put_varint(n);
        prop_assert_eq!(out.len(), (64 - n.leading_zeros() as usize).max(1).div_ceil(7));
        let mut cursor = Cursor::new(&out);
        prop_assert_eq!(cursor.varint().unwrap(), n);
        prop_assert!(cursor.is_empty());
        cuts_are_seen(&out, |bytes| Cursor::new(bytes).varint());
    }

    #[test]
    fn any_bytes_may_be_read_as_anything(bytes in vec(any::<u8>(), 0..300), offset in number()) {
        // Nothing to compare: no panic, and no allocation beyond the input.
        let _ = LogHeader::decode(&bytes);
        let _ = FrameInfo::decode_head(&bytes, offset);
        let _ = FrameInfo::decode_foot(&bytes, offset);
        let _ = Slot::decode(&bytes);
        let _ = Marker::decode(&bytes);
        let _ = Entry::decode(&bytes);
        let _ = SegmentRef::decode(&mut Cursor::new(&bytes));
        let _ = decode_side(&bytes, offset);
        let _ = read_blocks(&mut Cursor::new(&bytes), offset, true);
        let _ = fieldstone_format::segment::SegmentMeta::decode(&bytes, crc(&bytes), offset);
        let _ = fieldstone_format::keys::KeyDecoder::new().decode(&bytes);
        let _ = fieldstone_format::keys::level_ends(&bytes);
        let _ = Version::decode(&String::from_utf8_lossy(&bytes));
        let mut record = bytes.clone();
        record.truncate(200);
        let (frame, _) = encode_frame(0, &CommitRecord::default(), &record);
        prop_assert!(read_frame(&frame, 0).is_ok());
    }

    #[test]
    fn a_log_header_comes_back_and_shows_damage(header in header()) {
        let bytes = header.encode();
        prop_assert_eq!(LogHeader::length(&bytes).unwrap() as usize, bytes.len());
        prop_assert_eq!(LogHeader::decode(&bytes).unwrap(), header);
        damage_is_seen(&bytes, LogHeader::decode);
    }

    #[test]
    fn a_frame_comes_back_and_shows_damage(
        mut record in record(),
        version in 1..=2u32,
        offset in 0..1u64 << 60,
        body in vec(any::<u8>(), 0..40),
        side in 0..40usize,
    ) {
        let side = side.min(body.len());
        record.side = Section {
            offset: offset + (HEAD + body.len() - side) as u64,
            length: side as u64,
            crc: crc(&body[body.len() - side..]),
        };
        record.side_count = 1;
        // Version 1 cannot store an attempt. An attempt begins at its commit or earlier.
        if version > 1 && record.stamp % 2 == 0 {
            record.attempt = Some(Attempt { name: "1177.2".into(), began: record.stamp / 2 });
            let (session, number) = (Id([7; 16]), record.stamp);
            record.flushes = vec![FlushPart { session, number, repetition: 1 }];
            record.open = vec![Id([1; 16]), Id([2; 16])];
            (record.view, record.siblings) = (record.stamp, vec![0, 700]);
        }
        let Envelope { head, record: encoded, foot, ends } = Envelope::new(version, offset, &record, &[&body]);
        let bytes = [&head[..], &body, &encoded, &encoded, &foot].concat();
        prop_assert_eq!(FrameInfo::decode_head(&bytes, offset).unwrap(), ends);
        prop_assert_eq!(u32::from(ends.version), version);
        if version == 1 {
            prop_assert_eq!(encode_frame(offset, &record, &body), (bytes.clone(), ends.hash));
        }
        for unknown in [0, 3] {
            let Envelope { head, foot, .. } = Envelope::new(unknown, offset, &record, &[&body]);
            prop_assert!(FrameInfo::decode_head(&head, offset).is_err());
            prop_assert!(FrameInfo::decode_foot(&foot, offset + bytes.len() as u64).is_err());
        }
        prop_assert_eq!(&read_frame(&bytes, offset).unwrap(), &record);
        prop_assert!(FrameInfo::decode_head(&bytes, offset + 1).is_err(), "a frame that was copied elsewhere");
        damage_is_seen(&bytes, |bytes| read_frame(bytes, offset));
        record.side.length += 1;
        let (bytes, _) = encode_frame(offset, &record, &body);
        prop_assert!(read_frame(&bytes, offset).is_err(), "side records that reach out of the body");
    }

    #[test]
    fn side_records_come_back(records in vec((any::<u16>(), vec(any::<u8>(), 0..9)), 0..4)) {
        let records: Vec<SideRecord> =
            records.into_iter().map(|(kind, bytes)| SideRecord { kind, bytes: bytes.into() }).collect();
        let bytes = encode_side(&records);
        let n = records.len() as u64;
        prop_assert_eq!(decode_side(&bytes, n).unwrap(), records);
        prop_assert!(decode_side(&bytes, n + 1).is_err());
        cuts_are_seen(&bytes, |bytes| decode_side(bytes, n));
    }

    #[test]
    fn a_slot_comes_back_and_shows_damage(slot in slot()) {
        let bytes = slot.encode();
        prop_assert_eq!(bytes.len(), SLOT);
        prop_assert_eq!(Slot::decode(&bytes).unwrap(), slot);
        damage_is_seen(&bytes, Slot::decode);
    }

    #[test]
    fn a_marker_comes_back_and_shows_damage(id in id(), schema in text()) {
        let marker = Marker { id, schema };
        let bytes = marker.encode();
        prop_assert_eq!(Marker::decode(&bytes).unwrap(), marker);
        damage_is_seen(&bytes, Marker::decode);
    }

    #[test]
    fn a_data_log_header_shows_damage(writer in id(), number in any::<u32>()) {
        let bytes = data::encode_header(writer, number);
        prop_assert_eq!(bytes.len() as u64, data::HEADER_LEN);
        data::check_header(&bytes, writer, number).unwrap();
        prop_assert!(data::check_header(&bytes, writer, number.wrapping_add(1)).is_err());
        damage_is_seen(&bytes, |bytes| data::check_header(bytes, writer, number));
    }

    #[test]
    fn another_version_is_told_from_damage(header in header(), slot in slot(), marker in (id(), text())) {
        for version in [0, 3, 0xffff] {
            let mut bytes = header.encode();
            let sum = bytes.len() - 4;
            bytes[16..20].copy_from_slice(&u32::to_le_bytes(version));
            prop_assert_eq!(LogHeader::foreign(&bytes), Some((version, bytes.len() as u32)));
            prop_assert!(!LogHeader::is_whole(&bytes), "a version that is damaged");
            let crc_now = crc(&bytes[..sum]);
            bytes[sum..].copy_from_slice(&crc_now.to_le_bytes());
            prop_assert!(LogHeader::is_whole(&bytes));
            let refused = LogHeader::decode(&bytes).unwrap_err();
            prop_assert!(refused.message().contains(&format!("version {version}")), "{refused}");

            let mut bytes = slot.encode();
            bytes[4..6].copy_from_slice(&(version as u16).to_le_bytes());
            prop_assert_eq!(Slot::foreign(&bytes), None, "a version that is damaged");
            let crc_now = crc(&bytes[..SLOT - 4]);
            bytes[SLOT - 4..].copy_from_slice(&crc_now.to_le_bytes());
            prop_assert_eq!(Slot::foreign(&bytes), Some(version));
            let refused = Slot::decode(&bytes).unwrap_err();
            prop_assert!(refused.message().contains(&format!("version {version}")), "{refused}");

            let (id, schema) = &marker;
            let head = format!("fieldstone store\nformat {version}\nid {id}\n");
            let sum = crc(format!("{head}schema\n{schema}").as_bytes());
            let text = |sum: u32| format!("{head}crc32c {sum:08x}\nschema\n{schema}").into_bytes();
            let (whole, damaged) = (text(sum), text(sum ^ 1));
            prop_assert_eq!(marker::foreign(&whole), Some(&*version.to_string()));
            prop_assert_eq!(marker::foreign(&damaged), None);
            let refused = Marker::decode(&whole).unwrap_err();
            prop_assert!(refused.message().contains(&format!("version {version}")), "{refused}");
        }
        prop_assert_eq!(LogHeader::foreign(&header.encode()), None);
        prop_assert_eq!(Slot::foreign(&slot.encode()), None);
    }

    #[test]
    fn a_version_has_one_text(version in version()) {
        let text = version.encode();
        prop_assert_eq!(&Version::decode(&text).unwrap(), &version);
        for i in 0..text.len() {
            for c in ["A", "_", "=", "é", ""] {
                let other = format!("{}{c}{}", &text[..i], &text[i + 1..]);
                prop_assert!(other == text || Version::decode(&other).is_err(), "{text} and {other}");
            }
        }
        for c in ["A", "AA", " ", "\n"] {
            let longer = format!("{text}{c}");
            prop_assert!(Version::decode(&longer).is_err());
        }
    }

    #[test]
    fn an_entry_comes_back_and_bears_damage(entry in entry()) {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        // NaN among the extremes must equal itself here, so the bytes are compared.
        let mut again = Vec::new();
        Entry::decode(&bytes).unwrap().encode(&mut again);
        prop_assert_eq!(&again, &bytes);
        damage_is_harmless(&bytes, Entry::decode);
        bytes.push(0);
        prop_assert!(Entry::decode(&bytes).is_err(), "a byte too many");
    }

    #[test]
    fn a_block_comes_back_and_shows_damage(
        raw in prop_oneof![vec(any::<u8>(), 1..200), vec(0..2u8, 1..2000)],
        level in option::of(1..5i32),
    ) {
        let stored = pack(&raw, level);
        prop_assert!(stored.len() <= raw.len());
        let block = Block { stored: stored.len() as u64, crc: crc(&stored), summary: None };
        check_raw_len(block.stored, raw.len() as u64).unwrap();
        let mut out = vec![0; raw.len()];
        unpack(&stored, &block, &mut out).unwrap();
        prop_assert_eq!(&out, &raw);
        damage_is_seen(&stored, |bytes| unpack(bytes, &block, &mut vec![0; raw.len()]));
        // A wrong raw length, as damage to a list of blocks can produce it.
        for n in [0, 1, raw.len() - 1, raw.len() + 1, 2 * raw.len()] {
            if n != raw.len() && n != stored.len() {
                prop_assert!(unpack(&stored, &block, &mut vec![0; n]).is_err());
            }
        }
    }

    #[test]
    fn a_list_of_blocks_comes_back(blocks in vec((number(), any::<u32>(), summary()), 0..9), arrays: bool) {
        let blocks: Vec<Block> = blocks
            .into_iter()
            .map(|(stored, crc, summary)| Block { stored, crc, summary: summary.filter(|_| arrays) })
            .collect();
        let mut bytes = Vec::new();
        put_blocks(&blocks, arrays, &mut bytes);
        let n = blocks.len() as u64;
        let read = |bytes: &[u8]| read_blocks(&mut Cursor::new(bytes), n, arrays);
        let mut again = Vec::new();
        put_blocks(&read(&bytes).unwrap(), arrays, &mut again);
        prop_assert_eq!(&again, &bytes);
        prop_assert!(read_blocks(&mut Cursor::new(&bytes), n + 1, arrays).is_err());
        prop_assert!(read_blocks(&mut Cursor::new(&bytes), u64::MAX, arrays).is_err());
        cuts_are_seen(&bytes, read);
    }
}

#[test]
fn numbers_beyond_64_bits_are_refused() {
    let mut bytes = [0xff; 10];
    bytes[9] = 1;
    assert_eq!(Cursor::new(&bytes).varint().unwrap(), u64::MAX);
    bytes[9] = 2;
    assert_eq!(Cursor::new(&bytes).varint().unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(Cursor::new(&[0x80; 11]).varint().is_err());
}

#[test]
fn the_raw_length_of_a_block_is_bounded_by_what_zstd_can_do() {
    // zstd compresses zeros best.
    let raw = vec![0; 8 << 20];
    let stored = pack(&raw, Some(3));
    check_raw_len(stored.len() as u64, raw.len() as u64).unwrap();
    assert_eq!(check_raw_len(100, 1 << 40).unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(check_raw_len(0, 1).is_err());
}

#[test]
fn only_canonical_names_are_logs() {
    let id = Id([0xab; 16]);
    assert_eq!(log::parse_file_name(&log::file_name(id)), Some(id));
    for name in
        ["", ".log", "ab.log", "AB", &log::file_name(id).to_uppercase(), &format!("+{}", log::file_name(id))]
    {
        assert_eq!(log::parse_file_name(name), None, "{name}");
    }
    assert_eq!(Id::parse(&"+a".repeat(16)), None);
    assert_eq!(Id::parse(&"é".repeat(16)), None);
}

#[test]
fn entries_that_contradict_themselves_are_refused() {
    let refused = |bytes: &[u8], why: &str| {
        let error = Entry::decode(bytes).expect_err(why);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{why}: {error}");
    };
    let created = |dtype: &[u8], flags: u8, length: u8, rest: &[u8]| {
        [&[0, 0, flags, length, dtype.len() as u8], dtype, rest].concat()
    };
    Entry::decode(&created(b"<f8", 3, 16, &[1, 2, 0, 0, 0])).unwrap();
    refused(&created(b"f8", 3, 16, &[1, 2, 0, 0, 0]), "a type whose byte order depends on the machine");
    refused(&created(b"<f8", 3, 17, &[1, 2, 0, 0, 0]), "another length than the shape's");
    refused(&created(b"<f8", 7, 16, &[1, 2, 0, 2, 0, 0, 0]), "a piece that starts a generation");
    refused(&created(b"<f8", 5, 16, &[1, 2, 1, 2, 0, 0, 0]), "a piece that reaches out of the shape");
    refused(&created(b"<f8", 11, 16, &[1, 2, 0, 0, 0, 0]), "chunks without extent");
    refused(&created(b"<f8", 19, 16, &[1, 2, 1, 9, 0, 0, 0]), "a fill value of another size");
    refused(&created(b"<f8", 3, 8, &[&[33][..], &[1; 33], &[0, 0, 0]].concat()), "33 dimensions");
    refused(&[0, 0, 4, 0, 0], "a piece of opaque bytes");
    refused(&[0, 0, 2, 0, 0], "opaque bytes without a place");
    refused(&[0, 0, 2, 2, 4, 1, b'a', 0, 0, 0, 0], "fewer bytes in line than the length");
    refused(&[0, 0, 2, 5, 9], "an unknown location");
    // Two elements of 8 bytes at offset 5 of a file of the store, in one block, whose list is cut off.
    let stored = |path: &[u8], rest: &[u8]| {
        let location = [&[1, 2, 0, 0, 7, path.len() as u8][..], path, rest, &[16, 1, 2, 3, 4, 0, 0]].concat();
        created(b"<f8", 3, 16, &location)
    };
    Entry::decode(&stored(b"arrays/r/x.nc", &[5, 0, 0])).unwrap();
    Entry::decode(&stored(b"arrays/r/x.nc", &[5, 16, 2])).unwrap();
    for path in ["", "/etc/x", "../x", "a/../../x", "a//b", "a/./b", "a/", "a\0b", "."] {
        refused(
            &stored(path.as_bytes(), &[5, 0, 0]),
            "a path that leaves the store's folder, or an invalid path",
        );
    }
    refused(&stored(b"\xff", &[5, 0, 0]), "a path that is not UTF-8");
    refused(&stored(b"x.nc", &[5, 8, 0]), "fewer blocks than their size makes");
    refused(&stored(b"x.nc", &[5, 20, 0]), "blocks that are not cut between elements");
    refused(&stored(b"x.nc", &[5, 0, 3]), "more holes than elements");
    let far = [&[0xff; 9][..], &[1, 0, 0]].concat();
    refused(&stored(b"x.nc", &far), "an array that ends beyond 64 bits");
    let tail =
        |array: &[u8]| [array, &[7, 4, b'x', b'.', b'n', b'c', 5, 0, 0, 16, 1, 2, 3, 4, 0, 0]].concat();
    Entry::decode(&created(b"<f8", 3, 16, &tail(&[1, 2, 0, 0]))).unwrap();
    refused(&created(b"<f8", 1, 16, &tail(&[1, 2, 0, 0])), "a file of the store without a generation");
    refused(&created(b"<f8", 3, 24, &tail(&[1, 2, 0, 0])), "another length than the shape's");
    refused(&created(b"<f8", 5, 16, &tail(&[1, 2, 0, 2, 0, 0])), "a piece in a file of the store");
    refused(&created(b"<f8", 11, 16, &tail(&[1, 2, 2, 0, 0])), "chunks in a file of the store");
    refused(&[&[0, 0, 2, 16][..], &tail(&[])].concat(), "opaque bytes in a file of the store");
    refused(&created(b"<f8", 3, 0, &[1, 0, 0, 0, 7, 1, b'x', 5, 0, 0]), "no elements in a file of the store");
    refused(&[0, 0, 32, 5, 0], "an unknown flag");
}
