//! Parsers of containers over the seeds of the fuzzer and many random changes of them: the plain part of what
//! `fuzz/run.sh` does under coverage guidance.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../fuzz/checks.rs"]
mod checks;

use std::path::{Path, PathBuf};

use fieldstone_format::netcdf::layout::{Alignment, lay_out};
use fieldstone_format::netcdf::{Header, NcType, Version, trailer, write};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds")
}

/// The seeds: small files and entries, each after the byte that chooses its parser.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        let mut header = Header::new(version);
        let (time, x) = (header.dims.push_record("time"), header.dims.push("x", 5));
        header.attrs.push("title", NcType::Char, b"seed");
        header.attrs.push("none", NcType::Double, b"");
        header.vars.push("fixed", NcType::Int, &[x, x]);
        header.vars.attrs_of_last("units", NcType::Char, b"K");
        header.vars.push("record", NcType::Short, &[time, x]);
        header.vars.push("scalar", NcType::Double, &[]);
        if version == Version::Cdf5 {
            header.vars.push("a.b~.c", NcType::UInt64, &[x]);
        }
        let layout =
            lay_out(&mut header, &Alignment { v_align: 4, ..Alignment::default() }, false, None).unwrap();
        header.numrecs = Some(1);
        let name = version.name().to_lowercase();
        let mut whole = vec![0];
        whole.extend(write::header(&header, false));
        whole.resize(1 + layout.file_len(1).unwrap() as usize, 0);
        seeds.push((format!("header-{name}"), whole));
        let mut entry = vec![2];
        write::put_vars(&mut entry, &header, 0..1, false, u64::from);
        seeds.push((format!("variable-{name}"), entry));
        let mut entry = vec![2];
        write::put_dims(&mut entry, &header, 1..2, false);
        seeds.push((format!("dimension-{name}"), entry));
    }
    seeds.push((
        "empty".into(),
        b"\0CDF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
    ));
    seeds.push(("unfinished".into(), b"\0FSU\x05".to_vec()));
    seeds.push(("path".into(), "\u{3}event_7/plane~u/é.x".as_bytes().to_vec()));
    let locator = trailer::Locator {
        dims_at: 12,
        attrs_at: 400,
        vars_at: 500,
        header_len: 9_000,
        dims: 10,
        vars: 20,
        record_size: 8,
        spelled: true,
        pages_crc: 7,
    };
    let mut bytes = vec![4];
    bytes.extend(locator.encode());
    seeds.push(("locator".into(), bytes));
    seeds
}

#[test]
fn seeds_are_kept_and_pass() {
    for (name, bytes) in seeds() {
        let path = folder().join(&name);
        if std::env::var_os("UPDATE_SEEDS").is_some() {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        let kept = std::fs::read(&path).expect("every seed is a file: run with UPDATE_SEEDS=1");
        assert_eq!(kept, bytes, "{name}: run with UPDATE_SEEDS=1");
    }
    for entry in std::fs::read_dir(folder()).unwrap() {
        checks::check(&std::fs::read(entry.unwrap().path()).unwrap());
    }
}

#[test]
fn random_changes_of_seeds_pass() {
    let mut seeds: Vec<Vec<u8>> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    seeds.sort();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) as usize % below.max(1)
    };
    for _ in 0..20_000 {
        let mut bytes = seeds[next(seeds.len())].clone();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            match next(5) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)],
                2 => bytes[at] ^= 1 << next(8),
                3 => bytes.insert(at, next(256) as u8),
                _ => {
                    let other = &seeds[next(seeds.len())];
                    let from = next(other.len());
                    bytes.extend_from_slice(&other[from..]);
                }
            }
        }
        checks::check(&bytes);
    }
}
