//! Parsers of stores, on the seeds of the fuzzer and many random changes of them: the part of `fuzz/run.sh` without
//! coverage guidance.

use std::path::{Path, PathBuf};

use fieldstone_core::schema::Schema;
use fieldstone_core::value::ValueType;
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    AttributeBatch, AttributeId, Column, Record, Removal, RunDecl, RunName, TagDecl, Values,
};
use fieldstone_format::keys::encode_key;
use fieldstone_format::log::LogHeader;
use fieldstone_format::version::Version;
use fieldstone_testkit::seeded;

const SCHEMAS: [&str; 3] = ["simulation", "mars", "mixed"];
const REQUESTS: [&str; 3] = [
    "run=a/b,variable=t*,step=0/to/240/by/6",
    "class=od,date=20240101/20240102,time=0000,param=167.128",
    "retrieve,run=\"a b\",step=all",
];
const FINDS: [&str; 3] = [
    "tag=maximum and variable=temp* and value>9000 and box=z:50:100",
    "not (run=astro* or step=0:100) and attr.standard_name=sea* and created>2024-01-01T00:00:00Z",
    "value in (1, 2.5, \"x\") and extent.z>5 and volume>=1000",
];
const NAMES: [&str; 2] = ["{run}/{variable}_{step:06d}_{x}_{y.n}.nc", "0123456789abcdef0123456789abcdef.log"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/store_seeds")
}

/// Attributes of a batch.
fn attributes() -> Record {
    Record::Attributes(AttributeBatch {
        keywords: Vec::new(),
        run: RunName { project: "p".into(), name: "r".into() },
        tag: TagDecl { name: "max".into(), version: 0, kind: ValueType::Float, unit: "K".into() },
        rows: 3,
        step: Some(Column::One(4)),
        variables: Vec::new(),
        variable: Column::One(0),
        boxes: None,
        values: Values::Float(vec![1.0, 2.0, f64::NAN]),
        one_value: false,
        continues: false,
        singles: false,
    })
}

/// A GRIB 2 message of empty sections.
fn grib() -> Vec<u8> {
    let sections: Vec<u8> = [(1u8, 21u32), (3, 72), (4, 34), (5, 21), (6, 6), (7, 5)]
        .iter()
        .flat_map(|(number, length)| {
            let mut section = length.to_be_bytes().to_vec();
            section.push(*number);
            section.resize(*length as usize, 1);
            section
        })
        .collect();
    let mut message = b"GRIB\0\0\0\x02".to_vec();
    message.extend((16 + sections.len() as u64 + 4).to_be_bytes());
    message.extend(sections);
    message.extend(b"7777");
    message
}

/// The seeds: each after the byte that chooses its parser.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut add = |choice: u8, name: String, bytes: &[u8]| seeds.push((name, [&[choice], bytes].concat()));
    for name in SCHEMAS {
        add(0, format!("schema-{name}"), Schema::builtin(name).unwrap().text().as_bytes());
    }
    for (choice, kind, texts) in
        [(1, "request", &REQUESTS[..]), (2, "find", &FINDS[..]), (19, "name", &NAMES[..])]
    {
        for (i, text) in texts.iter().enumerate() {
            add(choice, format!("{kind}-{i}"), text.as_bytes());
        }
    }
    let pairs = [("run", "a"), ("variable", "t"), ("step", "6")];
    let key = Schema::builtin("simulation").unwrap().resolve(&pairs).unwrap();
    add(3, "key".into(), &encode_key(&key).bytes);
    let id = AttributeId { writer: Some(Id([1; 16])), sequence: 3, record: 0, row: 2 };
    let run = RunName { project: String::new(), name: "r".into() };
    for (name, record) in [
        ("attributes", attributes()),
        ("runs", Record::Runs(vec![RunDecl::named(run.clone())])),
        ("removals", Record::Remove(vec![Removal::Run(run), Removal::Attributes(vec![id])])),
    ] {
        let side = record.encode();
        add(5, format!("side-{name}"), &[&side.kind.to_le_bytes(), &side.bytes[..]].concat());
    }
    add(7, "log-header".into(), &LogHeader::unknown(Id([7; 16])).encode());
    add(14, "grib".into(), &grib());
    add(19, "version".into(), Version::new(vec![(Id([1; 16]), 4), (Id([2; 16]), 1)]).encode().as_bytes());
    seeds
}

#[test]
fn seeds_of_stores_are_kept_and_pass() {
    let write = std::env::var_os("FIELDSTONE_SEEDS").is_some();
    for (name, bytes) in seeds() {
        let path = folder().join(&name);
        if write {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == bytes, "{name}: FIELDSTONE_SEEDS=1 writes the seeds");
        crate::store_checks::check(&bytes);
    }
}

#[test]
fn random_changes_of_seeds_of_stores_pass() {
    let seeds: Vec<Vec<u8>> = seeds().into_iter().map(|(_, bytes)| bytes).collect();
    let mut random = seeded(2);
    for _ in 0..20_000 {
        let mut bytes = seeds[random.index(seeds.len())].clone();
        for _ in 0..=random.index(4) {
            let at = random.index(bytes.len());
            match random.index(6) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.index(5)],
                2 => bytes[at] ^= 1 << random.index(8),
                3 => bytes.insert(at, random.index(256) as u8),
                // Any parser on the bytes of another.
                4 => bytes[0] = random.index(256) as u8,
                _ => {
                    let other = &seeds[random.index(seeds.len())];
                    let from = random.index(other.len());
                    bytes.extend_from_slice(&other[from..]);
                }
            }
        }
        crate::store_checks::check(&bytes);
    }
}
