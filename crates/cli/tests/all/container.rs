//! `fieldstone container`: text, counts, offsets, exit codes.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::harness::TestStore;

/// A CDF-1 file: dimensions t (record, 2) and x (3), global attribute, int f(x), short a(t, x), byte b(t).
fn small() -> Vec<u8> {
    let mut file = b"CDF\x01".to_vec();
    let u32s = |file: &mut Vec<u8>, all: &[u32]| all.iter().for_each(|n| file.extend(n.to_be_bytes()));
    let name = |file: &mut Vec<u8>, text: &str| {
        file.extend((text.len() as u32).to_be_bytes());
        file.extend(text.bytes());
        file.resize(file.len().next_multiple_of(4), 0);
    };
    u32s(&mut file, &[2, 10, 2]);
    name(&mut file, "t");
    u32s(&mut file, &[0]);
    name(&mut file, "x");
    u32s(&mut file, &[3, 12, 1]);
    name(&mut file, "title");
    u32s(&mut file, &[2]);
    name(&mut file, "small");
    u32s(&mut file, &[11, 3]);
    // An entry has 32 bytes, and four for each dimension.
    let begin = (file.len() + 3 * 32 + 4 * 4) as u32;
    for (text, dims, ty, vsize, begin) in
        [("f", &[1][..], 4, 12, begin), ("a", &[0, 1], 3, 8, begin + 12), ("b", &[0], 1, 4, begin + 20)]
    {
        name(&mut file, text);
        u32s(&mut file, &[dims.len() as u32]);
        u32s(&mut file, dims);
        u32s(&mut file, &[0, 0, ty, vsize, begin]);
    }
    file.resize(begin as usize, 0);
    u32s(&mut file, &[1, 2, 3]);
    for record in 0..2_u8 {
        file.extend([0, 1 + record, 0, 2 + record, 0, 3 + record, 0, 0, 9 + record, 0, 0, 0]);
    }
    file
}

fn with_file() -> TestStore {
    let t = TestStore::empty();
    std::fs::write(t.file("small.nc"), small()).unwrap();
    t
}

#[test]
fn dump_prints_cdl() {
    let t = with_file();
    let header = "netcdf small {\ndimensions:\n\tt = UNLIMITED ; // (2 currently)\n\tx = 3 ;\nvariables:\n\t\
                  int f(x) ;\n\tshort a(t, x) ;\n\tbyte b(t) ;\n\n// global attributes:\n\t\t:title = \"small\" ;\n";
    let data = "data:\n\n f = 1, 2, 3 ;\n\n a =\n  1, 2, 3,\n  2, 3, 4 ;\n\n b = 9, 10 ;\n";
    assert_eq!(t.run(["container", "dump", "small.nc"]).ok().out(), format!("{header}{data}}}\n"));
    assert_eq!(t.run(["container", "dump", "-h", "small.nc"]).ok().out(), format!("{header}}}\n"));
    let one = t.run(["container", "dump", "small.nc", "-v", "b,f", "-n", "other"]).ok().out();
    assert!(
        one.starts_with("netcdf other {") && one.ends_with("data:\n\n f = 1, 2, 3 ;\n\n b = 9, 10 ;\n}\n")
    );
    t.run(["container", "dump", "small.nc", "-v", "none"]).code(3).says(&["none"]);
    let json = t.run(["container", "dump", "small.nc", "--json"]).ok().json();
    assert_eq!(json["vars"][1]["shape"], serde_json::json!([2, 3]));
    assert_eq!(json["attrs"]["title"], "small");
}

#[test]
fn counts_and_offsets_are_those_of_the_file() {
    let t = with_file();
    let header = t.run(["container", "header", "small.nc", "--json"]).ok().json();
    assert_eq!((header["format"].as_str(), header["vars"].as_u64()), (Some("CDF-1"), Some(3)));
    assert_eq!((header["data_bytes"].as_u64(), header["record_dim"].as_str()), (Some(26), Some("t")));
    assert!(t.run(["container", "header", "small.nc"]).ok().out().contains("records     2 along t\n"));
    let stats = t.run(["container", "stats", "small.nc"]).ok().out();
    assert_eq!(stats, "/\t2\t1\t3\t26\nall\t2\t1\t3\t26\n");
    let offsets = t.run(["container", "offsets", "small.nc", "--json"]).ok().json();
    let gaps: Vec<_> = offsets["vars"].as_array().unwrap().iter().map(|v| v["gap"].as_i64()).collect();
    assert_eq!(gaps, [Some(0), Some(0), Some(2)]);
}

#[test]
fn what_is_no_container_is_5_and_what_is_not_there_3() {
    let t = with_file();
    std::fs::write(t.file("text.nc"), "no container").unwrap();
    let file = small();
    std::fs::write(t.file("cut.nc"), &file[..60]).unwrap();
    std::fs::write(t.file("short.nc"), &file[..file.len() - 4]).unwrap();
    for verb in ["dump", "header", "stats", "offsets"] {
        t.run(["container", verb, "absent.nc"]).code(3).says(&["absent.nc"]);
        t.run(["container", verb, "text.nc"]).code(5).says(&["text.nc", "offset"]);
        t.run(["container", verb, "cut.nc"]).code(5).says(&["cut.nc", "offset"]);
    }
    t.run(["container", "dump", "short.nc"]).code(5).says(&["`b`", "beyond the end of the file"]);
    t.run(["container"]).code(2);
}

#[test]
fn every_verb_of_containers_has_examples() {
    let t = TestStore::empty();
    for verb in ["dump", "header", "stats", "offsets", "validate", "convert", "merge"] {
        let help = t.run(["container", verb, "--help"]).ok().out();
        assert!(
            help.contains("Examples:\n") && help.contains(&format!("fieldstone container {verb} ")),
            "{help}"
        );
    }
}

#[test]
fn validate_says_what_is_wrong_and_ends_with_5() {
    let t = with_file();
    let mut file = small();
    file[7] = 9; // nine records, of which the file holds two
    std::fs::write(t.file("records.nc"), &file).unwrap();
    std::fs::write(t.file("text.nc"), "no container").unwrap();
    t.run(["container", "validate", "small.nc"]).ok();
    let done = t.run(["container", "validate", "small.nc", "records.nc", "text.nc"]).code(5);
    assert!(done.out().contains("small.nc: CDF-1, sound"), "{}", done.out());
    assert!(done.out().contains("records.nc: error: offset "), "{}", done.out());
    assert!(done.out().contains("text.nc: error: offset 0: "), "{}", done.out());
    let json = t.run(["container", "validate", "text.nc", "--json"]).code(5).json();
    assert_eq!(json["files"][0]["ok"], false);
    assert!(json["files"][0]["findings"][0]["rule"].is_string());
    t.run(["container", "validate", "absent.nc"]).code(3).says(&["absent.nc"]);
}

#[test]
fn validate_knows_partitioned_containers() {
    let t = with_file();
    t.run(["container", "convert", "small.nc", "small.fsp", "--format", "partitioned"]).ok();
    let sound = t.run(["container", "validate", "small.fsp"]).ok().out();
    assert!(sound.contains("small.fsp: partitioned, sound: "), "{sound}");
    let mut file = std::fs::read(t.file("small.fsp")).unwrap();
    file[170] ^= 1;
    std::fs::write(t.file("damaged.fsp"), &file).unwrap();
    let output = t.run(["container", "validate", "damaged.fsp"]).code(5).out();
    assert!(output.contains("error: offset 160: metadata block 0"), "{output}");
    file[170] ^= 1;
    file[..4].copy_from_slice(b"FSUP");
    std::fs::write(t.file("unfinished.fsp"), &file).unwrap();
    let json = t.run(["container", "validate", "unfinished.fsp", "--json"]).code(5).json();
    let output = json["files"][0]["findings"][0]["message"].as_str().unwrap();
    assert!(output.contains("stopped while writing data"), "{output}");
    assert!(json["files"][0]["format"].is_null());
}

#[test]
fn converted_there_and_back_a_file_says_the_same() {
    let t = with_file();
    t.run(["container", "convert", "small.nc", "small.fsp", "--format", "partitioned"]).ok();
    t.run(["container", "convert", "small.fsp", "back.nc", "--format", "cdf1"]).ok();
    let dump = |name: &str| t.run(["container", "dump", "-n", "same", name]).ok().out();
    assert_eq!(dump("back.nc"), dump("small.nc"));
    assert_eq!(dump("small.fsp"), dump("small.nc"));
    t.run(["container", "validate", "back.nc"]).ok();
    t.run(["container", "convert", "absent.nc", "new.nc", "--format", "cdf5"]).code(3);
    t.run(["container", "convert", "small.nc", "new.nc", "--format", "cdf9"]).code(2);
    assert!(!t.file("new.nc").exists());
}

#[test]
fn equal_files_merge_to_one_and_different_ones_conflict() {
    let t = with_file();
    std::fs::write(t.file("same.nc"), small()).unwrap();
    t.run(["container", "merge", "small.nc", "same.nc", "-o", "all.nc", "--format", "cdf1"]).ok();
    let dump = |name: &str| t.run(["container", "dump", "-n", "same", name]).ok().out();
    assert_eq!(dump("all.nc"), dump("small.nc"));
    let mut other = small();
    let at = other.len() - 36;
    other[at + 3] = 77; // f[0]
    std::fs::write(t.file("other.nc"), other).unwrap();
    t.run(["container", "merge", "small.nc", "other.nc", "-o", "no.nc"]).code(4);
}
