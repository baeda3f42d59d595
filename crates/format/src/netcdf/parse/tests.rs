//! Headers survive a round trip; each damage is named with its place and rule.

use std::cell::RefCell;

use super::*;
use crate::netcdf::{NcType, layout, write};

fn sample(version: Version) -> Header {
    let mut header = Header::new(version);
    let time = header.dims.push_record("time");
    let x = header.dims.push("x", 5);
    header.numrecs = Some(3);
    header.attrs.push("title", NcType::Char, b"abcde");
    header.attrs.push("none", NcType::Double, b"");
    header.vars.push("fixed", NcType::Int, &[x, x]);
    header.vars.push("r", NcType::Short, &[time, x]);
    header.vars.attrs_of_last("units", NcType::Char, b"K");
    header.vars.attrs_of_last("valid", NcType::Short, &[0, 1, 0, 2]);
    header.vars.push("scalar", NcType::Double, &[]);
    layout::lay_out(&mut header, &layout::Alignment::default(), false, None).unwrap();
    header
}

fn bytes(version: Version) -> Vec<u8> {
    let mut bytes = write::header(&sample(version), false);
    bytes.resize(4096, 0);
    bytes
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap()
}

fn refused(bytes: &[u8]) -> String {
    header(bytes).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read_back() {
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        let (read, places) = header(&bytes(version)).unwrap();
        assert_eq!(read, sample(version));
        assert_eq!(places.header_len, write::header_len(&read, false));
        assert_eq!((places.dims, places.attrs, places.vars), (2, 2, 3));
        assert!(places.in_order());
        let mut findings = Findings::default();
        examine(&bytes(version), &mut findings).unwrap();
        assert_eq!(findings, Findings::default());
    }
}

#[test]
fn entries_are_read_alone() {
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        let header = sample(version);
        let mut out = Vec::new();
        write::put_vars(&mut out, &header, 1..2, false, u64::from);
        let (entry, len) = var_entry(&out, version).unwrap().unwrap();
        assert_eq!(len, out.len());
        assert_eq!(
            (entry.name().unwrap(), entry.ty, entry.begin),
            ("r", NcType::Short, header.vars.begins[1])
        );
        assert_eq!(entry.dims().collect::<Vec<_>>(), [0, 1]);
        let attrs: Vec<_> = entry.attrs().map(|attr| attr.get().unwrap().name).collect();
        assert_eq!(attrs, ["units", "valid"]);
        for cut in 0..out.len() {
            assert!(var_entry(&out[..cut], version).unwrap().is_none(), "{cut}");
        }
        out.clear();
        write::put_dims(&mut out, &header, 1..2, false);
        let (entry, len) = dim_entry(&out, version).unwrap().unwrap();
        assert_eq!((entry.name().unwrap(), entry.len, len), ("x", 5, out.len()));
    }
}

#[test]
fn every_cut_is_reported() {
    for version in [Version::Cdf1, Version::Cdf5] {
        let whole = write::header(&sample(version), false);
        for cut in 0..whole.len() {
            let text = refused(&whole[..cut]);
            assert!(text.starts_with("offset ") && text.contains("(rule: "), "{cut}: {text}");
        }
    }
}

#[test]
fn files_of_other_kinds_are_named() {
    for (begin, what) in [
        (&b"\x89HDF\r\n\x1a\n...."[..], "netCDF-4/HDF5"),
        (b"FSU\x05....", "never finished"),
        (b"FSUP....", "never finished"),
        (b"", "never finished"),
        (b"\0\0\0\0....", "never finished"),
        (b"FSP\0....", "partitioned header"),
        (b"CDF\x03....", "CDF and the byte 3"),
        (b"GRIB....", "begins with \"GRIB\""),
        (b"CD", "only 2 bytes"),
    ] {
        let error = header(begin).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn each_broken_rule_is_named_with_its_place() {
    let good = bytes(Version::Cdf1);
    let damage = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        refused(&bytes)
    };
    let text = damage(11, 11);
    assert!(text.starts_with("offset 8: tag 11 at the beginning of a list of dimensions"), "{text}");
    let text = damage(11, 0);
    assert!(text.contains("offset 8: tag 0 and 2 dimensions"), "{text}");
    let text = damage(12, 0x7f);
    assert!(text.contains("dimensions, but the file has only"), "{text}");
    let units = find(&good, b"units");
    let text = damage(units + 8 + 3, 99);
    assert!(text.contains("type 99") && text.contains(&format!("offset {}", units + 8)), "{text}");
    let text = damage(units + 8 + 3, 9);
    assert!(text.contains("type uint in CDF-1") && text.contains("`units`"), "{text}");
    let fixed = find(&good, b"fixed");
    let text = damage(fixed + 8 + 4 + 3, 7);
    let place = fixed + 8 + 4;
    assert!(
        text.contains(&format!("offset {place}: variable `fixed`: dimension id 7, but there are 2")),
        "{text}"
    );
    let text = damage(fixed + 8 + 4 + 4 + 3, 0);
    assert!(text.contains("record dimension is dimension 1 of it"), "{text}");
    let x = find(&good, b"x\0\0\0");
    let text = damage(x + 4 + 3, 0);
    assert!(text.contains("second record dimension"), "{text}");
    let begin = fixed + 8 + 4 + 8 + 8 + 4 + 4;
    let mut bytes = good.clone();
    bytes[begin..begin + 4].copy_from_slice(&[0, 0, 0, 8]);
    let text = refused(&bytes);
    assert!(text.contains("variable `fixed`: begins at 8, but the header ends"), "{text}");
}

#[test]
fn checkers_note_what_readers_live_with_and_go_on() {
    let mut bytes = bytes(Version::Cdf2);
    let title = find(&bytes, b"title");
    bytes[title + 6] = b'!'; // padding of the name
    let fixed = find(&bytes, b"fixed");
    bytes[fixed + 1] = b'/';
    bytes[fixed + 8 + 4 + 8 + 8 + 4 + 3] = 1; // vsize
    let r = find(&bytes, b"r\0\0\0");
    bytes[r + 4 + 4 + 4 + 3] = 9; // dimension id
    let units = find(&bytes, b"units");
    bytes[units..units + 5].copy_from_slice(b"valid");
    let scalar = find(&bytes, b"scalar");
    bytes[scalar..scalar + 2].copy_from_slice(b"\xff\xfe");
    let mut findings = Findings::default();
    examine(&bytes, &mut findings).unwrap().unwrap();
    let text: Vec<String> = findings.list.iter().map(Finding::to_string).collect();
    let text = text.join("\n");
    for what in [
        "padding after the name",
        "cannot contain /",
        "vsize is",
        "dimension id 9",
        "occurs twice",
        "not UTF-8",
    ] {
        assert!(text.contains(what), "{what} in\n{text}");
    }
    assert!(!findings.ok());
}

/// Counts the reads.
struct Counted<'a>(&'a [u8], u64, RefCell<Vec<(u64, usize)>>);

impl Source for Counted<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.2.borrow_mut().push((offset, buffer.len()));
        self.0.read_at(buffer, offset)
    }
    fn len(&self) -> Result<u64> {
        Ok(self.1)
    }
}

#[test]
fn a_small_header_costs_one_read_and_a_large_one_each_byte_once() {
    let small = bytes(Version::Cdf5);
    let source = Counted(&small, small.len() as u64, RefCell::default());
    header(&source).unwrap();
    assert_eq!(*source.2.borrow(), [(0, 8192)]);

    let mut large = Header::new(Version::Cdf5);
    large.attrs.push("long", NcType::Char, &vec![b'x'; 3 << 20]);
    for i in 0..20_000 {
        large.vars.push(&format!("variable_{i}"), NcType::Float, &[]);
    }
    layout::lay_out(&mut large, &layout::Alignment::default(), false, None).unwrap();
    let written = write::header(&large, false);
    let source = Counted(&written, 1 << 40, RefCell::default());
    let (read, _) = header(&source).unwrap();
    assert_eq!(read, large);
    let reads = source.2.borrow();
    assert!(reads.windows(2).all(|pair| pair[0].0 + pair[0].1 as u64 >= pair[1].0), "{reads:?}");
    let bytes: u64 = reads.iter().map(|read| read.1 as u64).sum();
    assert!(bytes < written.len() as u64 + (1 << 21) && reads.len() < 24, "{reads:?}");
}

#[test]
fn lengths_that_lie_cost_no_memory() {
    let mut bytes = bytes(Version::Cdf5);
    let title = find(&bytes, b"title");
    bytes[title + 12..title + 20].copy_from_slice(&(1_u64 << 39).to_be_bytes());
    // The source claims to be large, and ends early.
    let source = Counted(&bytes, 1 << 40, RefCell::default());
    let error = header(&source).unwrap_err().to_string();
    assert!(error.contains("the file ends before its values of an attribute"), "{error}");
    assert!(source.2.borrow().iter().map(|read| read.1).max() <= Some(1 << 20));
}

/// A file of one variable with many attributes.
fn many_attributes(name: &str, count: usize, value: &[u8], attr: impl Fn(usize) -> String) -> Vec<u8> {
    let mut header = Header::new(Version::Cdf5);
    header.vars.push(name, NcType::Float, &[]);
    (0..count).for_each(|i| header.vars.attrs_of_last(&attr(i), NcType::Char, value));
    header.vars.vsizes.push(4);
    header.vars.begins.push(0);
    let at = write::header_len(&header, false);
    header.vars.begins[0] = at;
    let mut bytes = write::header(&header, false);
    bytes.resize(bytes.len() + 4, 0);
    bytes
}

#[test]
fn attributes_of_a_large_variable_are_not_parsed_again_with_each_chunk() {
    let count = 100_000;
    let bytes = many_attributes("v", count, &[b'x'; 64], |i| format!("attribute_{i}"));
    assert!(bytes.len() > 9 << 20, "many chunks");
    entry::ATTRS.set(0);
    let (read, places) = header(&bytes).unwrap();
    assert_eq!((read.vars.get(0).attrs().count(), places.header_len), (count, bytes.len() as u64 - 4));
    // Once for the length, the entry and the values each, and once more for each chunk.
    let parsed = entry::ATTRS.get();
    assert!(parsed < 3 * count as u64 + 100, "{parsed}");
    // Every truncation is still reported with its place.
    for cut in (bytes.len() - 200..bytes.len() - 4).chain([1 << 20, (5 << 20) + 17]) {
        let text = refused(&bytes[..cut]);
        assert!(text.contains("variable number 0: the file ends before"), "{text}");
    }
}

#[test]
fn long_names_are_clipped_in_reports() {
    assert_eq!(shown("x".repeat(80)), "x".repeat(80));
    assert_eq!(shown("x".repeat(81)), "x".repeat(80) + "…");
    assert_eq!(shown("\u{1f600}".repeat(81)), "\u{1f600}".repeat(80) + "…");
    assert_eq!(shown([0xff; 500]), "\u{fffd}".repeat(80) + "…");
    assert_eq!(shown(b"a\xffb\n"), "a\u{fffd}b\\n");

    let long = "é".repeat(50_000);
    // The same attribute twice, with an illegal name each time, and a name of the variable without normal
    // form.
    let mut bytes = many_attributes(&long, 2_000, b"K", |_| "a/b".into());
    let mut findings = Findings::default();
    examine(&bytes, &mut findings).unwrap();
    assert_eq!((findings.list.len(), findings.omitted[1]), (Findings::LIMIT, 0));
    // All 2,000 names are illegal and 1,999 occur twice; the variable's name is too long.
    assert_eq!(findings.omitted[0] as usize + Findings::LIMIT, 2_000 + 1_999 + 1);
    let longest = findings.list.iter().map(|finding| finding.object.len() + finding.message.len()).max();
    assert!(longest < Some(400), "{longest:?}");
    assert!(findings.list.iter().all(|finding| finding.object.contains("éé…`")), "{}", findings.list[0]);

    // Messages of refusals are equally short.
    let at = find(&bytes, b"a/b");
    bytes[at] = 0xff;
    let text = refused(&bytes);
    assert!(text.contains("not UTF-8") && text.len() < 500, "{}", text.len());

    // Names that are too long, that begin wrongly, and data that overlap.
    let mut header = Header::new(Version::Cdf1);
    for i in 0..3 {
        header.vars.push(&format!("{long}{i}"), NcType::Float, &[]);
        header.vars.vsizes.push(i);
        header.vars.begins.push(2);
    }
    let mut findings = Findings::default();
    examine(&write::header(&header, false), &mut findings).unwrap();
    let text: Vec<String> = findings.list.iter().map(Finding::to_string).collect();
    assert!(text.iter().any(|text| text.contains("begins at 2, but the header ends")), "{text:?}");
    assert!(text.iter().all(|text| text.len() < 600), "{text:?}");
}

#[test]
fn no_words_are_made_for_findings_that_are_left_out() {
    let (mut findings, mut asked) = (Findings::default(), 0);
    for _ in 0..Findings::LIMIT + 5 {
        findings.error(7, "rule", || {
            asked += 1;
            ("object", "message")
        });
        findings.warning(7, "rule", || {
            asked += 1;
            ("object", "message")
        });
    }
    assert_eq!((asked, findings.list.len()), (Findings::LIMIT, Findings::LIMIT));
    assert_eq!(findings.omitted, [505, 505]);
}

#[test]
fn a_hole_full_of_record_dimensions_is_not_read_to_its_end() {
    // As many dimensions as a hole of 64 MB can hold: all without a name, all of length 0.
    let count = (64_u64 << 20) / 16;
    let mut bytes = b"CDF\x05\0\0\0\0\0\0\0\0\0\0\0\x0a".to_vec();
    bytes.extend(count.to_be_bytes());
    bytes.resize(bytes.len() + (64 << 20), 0);
    let source = Counted(&bytes, 1 << 40, RefCell::default());
    let mut findings = Findings::default();
    assert!(examine(&source, &mut findings).unwrap().is_none());
    assert!(!findings.ok());
    let read: u64 = source.2.borrow().iter().map(|read| read.1 as u64).sum();
    assert!(read < 1 << 20, "{read}");
    // If other findings leave room, the last one explains why the check ended.
    let mut named = b"CDF\x05\0\0\0\0\0\0\0\0\0\0\0\x0a".to_vec();
    named.extend(1_005_u64.to_be_bytes());
    for i in 0..1_005 {
        named.extend(4_u64.to_be_bytes());
        named.extend(format!("d{i:03x}").as_bytes());
        named.extend([0; 8]);
    }
    named.resize(named.len() + 64, 0);
    let mut findings = Findings::default();
    assert!(examine(&named, &mut findings).unwrap().is_none());
    assert_eq!((findings.list.len(), findings.omitted), (Findings::LIMIT, [1, 0]));
    let error = header(&named).unwrap_err().to_string();
    assert!(error.contains("dimension `d001`: a second record dimension"), "{error}");
}

#[test]
fn record_variables_outside_the_record_are_reported() {
    let mut header = Header::new(Version::Cdf5);
    let time = header.dims.push_record("time");
    let x = header.dims.push("x", 3);
    header.numrecs = Some(2);
    header.vars.push("a", NcType::Int, &[time]);
    header.vars.push("b", NcType::Short, &[time, x]);
    let laid = layout::lay_out(&mut header, &layout::Alignment::default(), false, None).unwrap();
    assert_eq!((header.vars.begins[0], header.vars.begins[1], laid.record_size), (512, 516, 12));
    // Without the padding of `a` (it has none) and of `b` (at the end of a record) all are inside the record.
    assert_eq!(layout::outside_record(&header, &laid).next(), None);

    for (begin, ends) in [(520, 526), (1_000, 1_006)] {
        header.vars.begins[1] = begin;
        let laid = layout::Layout::of(&header, laid.header_len).unwrap();
        assert_eq!(layout::outside_record(&header, &laid).collect::<Vec<_>>(), [(1, ends)]);
        let mut bytes = write::header(&header, false);
        bytes.resize(1_100, 0);
        // Readers use the begin of each variable.
        assert_eq!(super::header(&bytes).unwrap().0, header);
        let mut findings = Findings::default();
        examine(&bytes, &mut findings).unwrap();
        assert_eq!(findings.list.len(), 1, "{findings:?}");
        let text = findings.list[0].to_string();
        let expected =
            format!("variable `b`: its first record lies from {begin} to {ends}, the file's from 512 to 524");
        assert!(text.contains(&expected) && !findings.ok(), "{text}");
    }

    // A single record variable makes up the whole record.
    let mut lone = Header::new(Version::Cdf1);
    let time = lone.dims.push_record("time");
    lone.vars.push("a", NcType::Byte, &[time]);
    let laid = layout::lay_out(&mut lone, &layout::Alignment::default(), false, None).unwrap();
    assert_eq!(layout::outside_record(&lone, &laid).next(), None);
}
