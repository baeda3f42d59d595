//! Verdicts on files: real ones, the invalid ones of the outside validator's own tests, and files with one changed
//! byte, each compared with that validator.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use fieldstone_array::container::Format;
use fieldstone_array::container::validate::{Report, Severity, validate};
use fieldstone_format::netcdf::layout::{Alignment, Layout, lay_out};
use fieldstone_format::netcdf::{Header, NcType, Version, paths, write};
use fieldstone_testkit::require::program;
use fieldstone_testkit::samples::sample;
use fieldstone_testkit::seeded;

/// A file with every kind of entry, complete with data.
fn small(version: Version) -> Vec<u8> {
    let mut header = Header::new(version);
    let time = header.dims.push_record("time");
    let (x, y) = (header.dims.push("x", 5), header.dims.push("length_y", 3));
    header.numrecs = Some(2);
    header.attrs.push("title", NcType::Char, b"small");
    header.attrs.push("levels", NcType::Double, &[0; 16]);
    header.vars.push("fixed", NcType::Short, &[y, x]);
    header.vars.attrs_of_last("units", NcType::Char, b"K");
    header.vars.push("record", NcType::Byte, &[time, x]);
    header.vars.push("scalar", NcType::Int, &[]);
    header.vars.push("other", NcType::Float, &[time]);
    header.vars.attrs_of_last("_FillValue", NcType::Float, &[0, 0, 0, 0]);
    let alignment = Alignment { v_align: 4, ..Alignment::default() };
    let layout = lay_out(&mut header, &alignment, false, None).unwrap();
    whole(&header, &layout)
}

fn whole(header: &Header, layout: &Layout) -> Vec<u8> {
    let mut bytes = write::header(header, false);
    bytes.resize(layout.file_len(header.numrecs.unwrap_or(0)).unwrap() as usize, 0);
    bytes
}

fn report_of(path: &Path) -> Report {
    validate(&std::fs::read(path).unwrap()).unwrap()
}

fn rules(report: &Report, severity: Severity) -> Vec<&'static str> {
    report.findings.iter().filter(|found| found.severity == severity).map(|found| found.rule).collect()
}

/// Whether the outside validator accepts it. The validator trusts absurd counts and takes memory and time for them:
/// both are limited, and exceeding a limit counts as refused.
fn accepted_outside(path: &Path) -> bool {
    let bounded = "ulimit -v 1000000; exec timeout 5 ncvalidator -q \"$0\"";
    Command::new("sh").args(["-c", bounded]).arg(path).status().unwrap().success()
}

#[test]
fn files_of_the_validators_own_tests_get_their_verdicts() {
    let Some(folder) = sample("validator") else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let good = matches!(name, "test_cdf1.nc" | "test_cdf2.nc" | "test_cdf5.nc");
        let report = report_of(&path);
        assert_eq!(report.ok, good, "{name}: {:?}", report.findings);
        if name == "test_netcdf4.nc" {
            assert!(report.findings[0].message.contains("netCDF-4/HDF5"), "{:?}", report.findings);
        }
        seen += 1;
    }
    assert!(seen >= 24, "{seen} files");
}

#[test]
fn real_files_get_the_outside_validators_verdict() {
    let (Some(folder), true) = (sample("netcdf-classic"), program("ncvalidator")) else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let report = report_of(&path);
        assert_eq!(report.ok, accepted_outside(&path), "{}: {:?}", path.display(), report.findings);
    }
}

#[test]
fn a_good_file_has_no_finding_and_each_damage_is_named() {
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        let good = small(version);
        let report = validate(&good).unwrap();
        assert_eq!((report.ok, report.findings.len()), (true, 0), "{:?}", report.findings);
        assert_eq!(
            (report.format, report.counts, report.numrecs),
            (Some(Format::Classic(version)), [3, 2, 4], 2)
        );

        let mut long = good.clone();
        long.extend([0; 10]);
        let report = validate(&long).unwrap();
        assert!(report.ok);
        assert_eq!(rules(&report, Severity::Warning), ["a file ends with its data"]);

        // The last record: 5 bytes of `record`, 3 of padding, 4 of `other`.
        for short in 1..=13 {
            let report = validate(&good[..good.len() - short].to_vec()).unwrap();
            let cut = !matches!(short, 4..=7);
            assert_eq!(report.ok, !cut, "{short} bytes short: {:?}", report.findings);
            let errors: &[&str] = if cut { &["a file holds its records"] } else { &[] };
            assert_eq!(rules(&report, Severity::Error), errors, "{short} bytes short");
            // Completely beyond the end: it was never written.
            let warnings: &[&str] =
                if (4..12).contains(&short) { &["a file holds its records"] } else { &[] };
            assert_eq!(rules(&report, Severity::Warning), warnings, "{short} bytes short");
        }

        let header_len = report.header_len as usize;
        let report = validate(&good[..header_len + 5].to_vec()).unwrap();
        assert_eq!(rules(&report, Severity::Error)[0], "a file holds its data");
        assert_eq!(
            rules(&report, Severity::Warning),
            ["a file holds its data"],
            "`scalar` was never written"
        );

        let mut streaming = good.clone();
        let width = version.size_width();
        streaming[4..4 + width].fill(0xff);
        let report = validate(&streaming).unwrap();
        assert_eq!((report.ok, report.numrecs), (true, 2));
        assert_eq!(rules(&report, Severity::Warning), ["a finished file states its number of records"]);

        let mut unfinished = good.clone();
        unfinished[..3].copy_from_slice(b"FSU");
        let report = validate(&unfinished).unwrap();
        assert!(!report.ok && report.findings[0].message.contains("never finished"));
    }
}

/// If there is one record, it is the last: it may end before unwritten variables, but a variable that is cut is still
/// damage.
#[test]
fn half_of_a_record_is_damage() {
    for (others, records) in [(0, 1), (0, 2), (1, 1), (2, 3)] {
        let mut header = Header::new(Version::Cdf5);
        let (time, x) = (header.dims.push_record("time"), header.dims.push("x", 100_000));
        header.numrecs = Some(records);
        header.vars.push("big", NcType::Float, &[time, x]);
        for i in 0..others {
            header.vars.push(&format!("other_{i}"), NcType::Byte, &[time]);
        }
        let layout = lay_out(&mut header, &Alignment::default(), false, None).unwrap();
        let good = whole(&header, &layout);
        assert!(validate(&good).unwrap().findings.is_empty());
        let last = (layout.record_begin + layout.record_size * (records - 1)) as usize;
        let cut = last + 200_000;
        let report = validate(&good[..cut].to_vec()).unwrap();
        let found = &report.findings[0];
        let wanted = format!(
            "its data of record {} end at {}, but the file ends at {cut}",
            records - 1,
            last + 400_000
        );
        assert_eq!((report.ok, found.severity, &found.message), (false, Severity::Error, &wanted));
        assert_eq!((&*found.object, found.offset), ("variable `big`", cut as u64));
        assert!(!found.hint.is_empty());
        assert_eq!(report.findings.len(), if others == 0 { 1 } else { 2 });
        // Variables completely beyond the end were never written; the padding of the last variable may be missing.
        let report = validate(&good[..last + 400_000].to_vec()).unwrap();
        assert_eq!((report.ok, report.findings.len()), (true, usize::from(others > 0)));
        if others > 0 {
            let message = &report.findings[0].message;
            assert!(
                message.contains(&format!("of record {} of {others} variables", records - 1)),
                "{message}"
            );
            let report = validate(&good[..good.len() - 3].to_vec()).unwrap();
            assert!(report.ok && report.findings.is_empty(), "{:?}", report.findings);
        }
    }
}

#[test]
fn names_that_are_shown_alike_are_told() {
    let file = |escaped: bool, names: [&str; 3]| {
        let mut header = Header::new(Version::Cdf5);
        let x = header.dims.push("x", 2);
        if escaped {
            header.attrs.push(paths::ATTRIBUTE, NcType::Char, paths::RULE.as_bytes());
        }
        for name in names {
            header.vars.push(name, NcType::Byte, &[x]);
        }
        let layout = lay_out(&mut header, &Alignment::default(), false, None).unwrap();
        validate(&whole(&header, &layout)).unwrap()
    };
    let rule = "names of a file with escaped paths differ when displayed";
    for (escaped, names, output) in [
        (true, ["x~y", "x", "x~~y"], Some(("x~y", "x~~y"))),
        (true, ["a~.~.c", "a..c", "b"], Some(("a..c", "a~.~.c"))),
        (true, ["x~y", "a.b", "x~~"], None),
        (false, ["x~y", "x", "x~~y"], None),
    ] {
        let report = file(escaped, names);
        assert_eq!((report.ok, report.paths), (true, escaped));
        assert_eq!(rules(&report, Severity::Warning), Vec::from_iter(output.map(|_| rule)), "{names:?}");
        if let Some((name, other)) = output {
            let found = &report.findings[0];
            assert_eq!(found.object, format!("variable `{name}`"));
            assert!(found.message.contains(&format!("`{other}`")), "{}", found.message);
        }
    }
}

/// Readers use the begins of variables; with a wrong begin, records of one overlap those of another, or are beyond
/// the data.
#[test]
fn a_record_variable_outside_the_record_is_an_error() {
    let mut header = Header::new(Version::Cdf5);
    let time = header.dims.push_record("time");
    header.numrecs = Some(1);
    header.vars.push("a", NcType::Int, &[time]);
    header.vars.push("b", NcType::Int, &[time]);
    let alignment = Alignment { v_align: 4, ..Alignment::default() };
    let layout = lay_out(&mut header, &alignment, false, None).unwrap();
    assert!(validate(&whole(&header, &layout)).unwrap().findings.is_empty());
    let (begin, a) = (layout.record_begin + 800, layout.record_begin);
    header.vars.begins[1] = begin;
    let mut bytes = write::header(&header, false);
    bytes.resize(begin as usize + 4, 0);
    let report = validate(&bytes).unwrap();
    assert_eq!((report.ok, report.findings.len()), (false, 1), "{:?}", report.findings);
    let text = report.findings[0].to_string();
    let places = format!("from {begin} to {}, the file's from {a} to {}", begin + 4, a + 8);
    assert!(text.contains("variable `b`") && text.contains(&places), "{text}");
}

/// Our rules that the outside validator lacks, with the reason for each.
const OURS_ALONE: [&str; 15] = [
    // Names that no library could define, or that hide each other.
    "names are UTF-8",
    "names are in Unicode's normal form C",
    "a name cannot contain control characters",
    "a name cannot contain /",
    "a name does not end in a space",
    "a name has at least one character",
    "a name begins with a letter, a digit, an underscore or a character beyond ASCII",
    "names are unique among dimensions, among variables, among one object's attributes",
    // A field that readers compute themselves: a wrong value indicates a broken writer.
    "vsize is the padded size of a variable, or of one of its records",
    // The outside validator warns if the file's size disagrees; data cut off in the middle are lost.
    "a file holds its data",
    "a file holds its records",
    // It only checks the lower half of an id in CDF-5.
    "a dimension id is below the number of dimensions",
    // Numbers that it reads as large ones.
    "counts and lengths are not negative",
    "offsets are not negative",
    // It checks the order of begins, but assumes that records have no gaps between them.
    "a record holds one record of every record variable, with nothing between them",
];

#[test]
fn single_byte_changes_get_the_outside_validators_verdict_or_a_listed_reason() {
    if !program("ncvalidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mutant.nc");
    let mut random = seeded(1);
    let mut counts: BTreeMap<(bool, bool), u32> = BTreeMap::new();
    for i in 0..400_u64 {
        let version = [Version::Cdf1, Version::Cdf2, Version::Cdf5][(i % 3) as usize];
        let mut bytes = small(version);
        let header_len = validate(&bytes).unwrap().header_len;
        let at = random.below(header_len) as usize;
        bytes[at] = match random.below(3) {
            0 => random.next_u64() as u8,
            1 => bytes[at] ^ (1 << (random.below(8))),
            _ => bytes[at].wrapping_add(1),
        };
        std::fs::write(&path, &bytes).unwrap();
        let (ours, theirs) = (validate(&bytes).unwrap(), accepted_outside(&path));
        *counts.entry((ours.ok, theirs)).or_default() += 1;
        if theirs && !ours.ok {
            let errors = rules(&ours, Severity::Error);
            assert!(
                errors.iter().all(|rule| OURS_ALONE.contains(rule)),
                "{version:?} byte {at}: refused by us alone: {:?}",
                ours.findings
            );
        }
        if !theirs && ours.ok {
            // If a count of variables became 0, it expects a file without data; we warn about the bytes that follow.
            let warned = rules(&ours, Severity::Warning).contains(&"a file ends with its data");
            let reason = warned && ours.counts[2] == 0;
            assert!(reason, "{version:?} byte {at} = {}: refused outside alone", bytes[at]);
        }
    }
    for verdicts in [(true, true), (false, false), (false, true)] {
        assert!(counts.get(&verdicts).is_some_and(|count| *count > 20), "(ours, theirs): {counts:?}");
    }
}
