//! Layout against the rules of the format, with numbers worked out by hand.

use super::*;

const PLAIN: Alignment = Alignment { v_align: 4, r_align: 4, h_minfree: 0, v_minfree: 0 };

fn laid(header: &mut Header, alignment: Alignment) -> Layout {
    lay_out(header, &alignment, false, None).unwrap()
}

fn refused(header: &mut Header) -> String {
    lay_out(header, &PLAIN, false, None).unwrap_err().to_string()
}

#[test]
fn fixed_variables_come_first_then_records_each_padded() {
    let mut header = Header::new(Version::Cdf1);
    let (time, x) = (header.dims.push_record("time"), header.dims.push("x", 5));
    header.vars.push("r1", NcType::Byte, &[time, x]);
    header.vars.push("f1", NcType::Char, &[x]);
    header.vars.push("r2", NcType::Double, &[time]);
    header.vars.push("f2", NcType::Short, &[]);
    let layout = laid(&mut header, PLAIN);
    let at = layout.header_len;
    assert_eq!(header.vars.vsizes, [8, 8, 8, 4]);
    assert_eq!(header.vars.begins, [at + 12, at, at + 20, at + 8]);
    assert_eq!((layout.data_end, layout.record_begin, layout.record_size), (at + 12, at + 12, 16));
    assert_eq!(layout.file_len(3), Some(at + 12 + 48));
    assert_eq!(layout.records_in(at + 12 + 47), 2);
    assert_eq!(Layout::of(&header, at).unwrap(), layout);
}

#[test]
fn a_lone_record_variable_is_not_padded() {
    let mut header = Header::new(Version::Cdf2);
    let (time, x) = (header.dims.push_record("time"), header.dims.push("x", 5));
    header.vars.push("only", NcType::Byte, &[time, x]);
    let layout = laid(&mut header, Alignment::default());
    assert_eq!((header.vars.vsizes[0], layout.record_size, layout.one_record_var), (8, 5, true));
    assert_eq!(header.vars.begins[0], 512);
    assert_eq!(layout.file_len(3), Some(512 + 15));
}

#[test]
fn reserves_and_alignments_are_kept() {
    let mut header = Header::new(Version::Cdf5);
    let (time, x) = (header.dims.push_record("time"), header.dims.push("x", 1));
    header.vars.push("f", NcType::Byte, &[x]);
    header.vars.push("r", NcType::Int, &[time]);
    let alignment = Alignment { v_align: 1000, r_align: 64, h_minfree: 1000, v_minfree: 100 };
    let layout = laid(&mut header, alignment);
    assert_eq!(layout.data_begin, 2000);
    assert_eq!(layout.record_begin, (2004_u64 + 100).next_multiple_of(64));
}

#[test]
fn a_file_without_variables_is_its_header() {
    let mut header = Header::new(Version::Cdf5);
    header.dims.push("x", 1);
    let layout = laid(&mut header, Alignment::default());
    assert_eq!(layout.file_len(0), Some(layout.header_len));
}

#[test]
fn a_file_without_data_ends_with_its_header() {
    let mut header = Header::new(Version::Cdf5);
    let (time, x) = (header.dims.push_record("time"), header.dims.push("x", 5));
    header.vars.push("r", NcType::Int, &[time]);
    let mut both = header.clone();
    both.vars.push("f", NcType::Byte, &[x]);
    let layout = laid(&mut header, Alignment::default());
    assert_eq!(layout.file_len(0), Some(layout.header_len), "no bytes up to the first record");
    assert_eq!(layout.file_len(2), Some(512 + 2 * 4));
    assert_eq!(Layout::of(&header, layout.header_len).unwrap().file_len(0), Some(layout.header_len));
    let layout = laid(&mut both, Alignment { v_minfree: 100, ..Alignment::default() });
    assert_eq!(layout.file_len(0), Some(512 + 8), "nor after the last fixed variable");
    assert_eq!(layout.file_len(1), Some(layout.record_begin + 4));
}

#[test]
fn variables_keep_their_place_when_a_file_grows() {
    let mut old = Header::new(Version::Cdf5);
    let (time, x) = (old.dims.push_record("time"), old.dims.push("x", 3));
    old.vars.push("f", NcType::Int, &[x]);
    old.vars.push("r", NcType::Int, &[time]);
    let alignment = Alignment { v_minfree: 64, ..Alignment::default() };
    let before = laid(&mut old, alignment);
    let mut new = old.clone();
    new.vars.push("g", NcType::Int, &[x]);
    let after = lay_out(&mut new, &alignment, false, Some(&old)).unwrap();
    assert_eq!(new.vars.begins[..2], old.vars.begins[..]);
    assert_eq!(new.vars.begins[2], 512 + 12);
    assert_eq!(after.record_begin, before.record_begin);
    // A header that outgrows its space moves everything; no variable moves down.
    let mut new = old.clone();
    new.attrs.push("long", NcType::Char, &[b'x'; 600]);
    lay_out(&mut new, &alignment, false, Some(&old)).unwrap();
    assert_eq!(new.vars.begins, [1024, (1024 + 12 + 64_u64).next_multiple_of(4)]);
    // A header that shrinks moves nothing.
    let mut back = old.clone();
    lay_out(&mut back, &alignment, false, Some(&new)).unwrap();
    assert_eq!(back.vars.begins, new.vars.begins);
}

/// `sizes`: units of 2 GiB (0 for 64 KiB) of each fixed and each record variable.
fn large(version: Version, fixed: &[u64], record: &[u64]) -> Header {
    let mut header = Header::new(version);
    let time = header.dims.push_record("time");
    for (list, lens) in [("f", fixed), ("r", record)] {
        for (i, len) in lens.iter().enumerate() {
            let x = header.dims.push(&format!("{list}{i}x"), 1 << 15);
            let y = header.dims.push(&format!("{list}{i}y"), (*len << 15).max(1));
            let dims: &[u32] = if list == "f" { &[x, y] } else { &[time, x, y] };
            header.vars.push(&format!("{list}{i}"), NcType::Short, dims);
        }
    }
    header
}

#[test]
fn only_the_last_variable_may_be_too_large() {
    for (version, size, small) in [(Version::Cdf1, 1, 0), (Version::Cdf2, 2, 1)] {
        for (fixed, record, good) in [
            (vec![small, size], vec![], true),
            (vec![size, small], vec![], false),
            (vec![size], vec![small], false),
            (vec![small], vec![small, size], true),
            (vec![small], vec![size, small], false),
            (vec![], vec![size], true),
            (vec![size, size], vec![], false),
        ] {
            let mut header = large(version, &fixed, &record);
            let result = lay_out(&mut header, &PLAIN, false, None);
            assert_eq!(result.is_ok(), good, "{version:?} {fixed:?} {record:?}: {result:?}");
            if let Err(error) = result {
                let text = error.to_string();
                assert!(text.contains(&max_var_bytes(version).to_string()), "{text}");
            } else if version == Version::Cdf2 {
                assert_eq!(header.vars.vsizes.last(), Some(&u64::from(u32::MAX)));
            }
        }
    }
    let mut header = large(Version::Cdf5, &[2, 4], &[8, 16]);
    laid(&mut header, PLAIN);
    assert_eq!(header.vars.vsizes, [4 << 30, 8 << 30, 16 << 30, 32 << 30]);
}

#[test]
fn limits_are_in_the_message() {
    let mut header = Header::new(Version::Cdf1);
    let x = header.dims.push("x", 1 << 30);
    for name in ["a", "b", "c"] {
        header.vars.push(name, NcType::Byte, &[x]);
    }
    let text = refused(&mut header);
    assert!(
        text.contains("variable `c` would begin at byte 2147483") && text.contains("2147483647"),
        "{text}"
    );

    let mut header = Header::new(Version::Cdf2);
    header.dims.push("wide", 1 << 31);
    let text = refused(&mut header);
    assert!(text.contains("dimension `wide` is 2147483648; the limit of CDF-2 is 2147483647"), "{text}");

    let mut header = Header::new(Version::Cdf2);
    header.vars.push("v", NcType::Int64, &[]);
    assert!(refused(&mut header).contains("variable `v` has type int64, which CDF-2 does not have"));

    let mut header = Header::new(Version::Cdf5);
    let (x, y) = (header.dims.push("x", 1 << 62), header.dims.push("y", 3));
    header.vars.push("v", NcType::Byte, &[x, y]);
    assert!(refused(&mut header).contains("the limit of CDF-5 is 9223372036854775804"));

    let mut header = Header::new(Version::Cdf5);
    header.dims.push("zero", 0);
    assert!(refused(&mut header).contains("dimension `zero` has length 0"));

    let mut header = Header::new(Version::Cdf5);
    header.dims.push(&"a.".repeat(100), 1);
    assert!(lay_out(&mut header, &PLAIN, false, None).is_ok());
    assert!(lay_out(&mut header, &PLAIN, true, None).unwrap_err().to_string().contains("300 bytes"));
}
