//! Files with a partitioned header, checked by `validate`: valid ones, damaged ones, ones that break a rule despite
//! matching checksums, and ones whose writer was stopped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::validate::{Report, Severity, validate};
use fieldstone_array::container::{Container, CreateOptions, Format, Mode, stats};
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{read_exact_at, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::NcType;
use fieldstone_format::netcdf::parse::Source;
use fieldstone_format::partitioned::{Block, Head, PathList, Table};

const PATH: &str = "/c.fsp";

fn bytes(env: &Env) -> Vec<u8> {
    let file = env.disk.open_read(Path::new(PATH)).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn define(container: &Container, rank: usize) -> Result<()> {
    container.define().dim("time", None)?;
    container.define().dim("x", Some(3))?;
    container.define().put_att(None, "title", NcType::Char, b"checked")?;
    container.define().var("grid", NcType::Int, &["x"])?;
    for event in rank * 2..rank * 2 + 2 {
        container.define().dim(&format!("event_{event}/hits"), Some(event as u64 + 1))?;
        let var = container.define().var(&format!("event_{event}/u/charge"), NcType::Short, &["hits"])?;
        container.define().put_att(Some(var), "units", NcType::Char, b"pC")?;
        container.define().put_att(Some(var), "limit", NcType::Int, &[0, 0, 0, 9])?;
        container.define().var(&format!("event_{event}/energy"), NcType::Int, &["time", "x"])?;
    }
    Ok(())
}

/// The bytes that `ranks` ranks write up to the stage `until`: 0 definition, 1 enddef, 2 data, 3 the end.
fn written(ranks: usize, until: usize) -> Vec<u8> {
    let env = SimWorld::memory();
    let options = CreateOptions { format: Format::Partitioned, ..CreateOptions::default() };
    let results = threads::run(ranks, None, env.disk.clone(), Faults::none(), |comm| {
        let rank = comm.rank();
        let container = Container::create(Path::new(PATH), comm, &env, &options)?;
        define(&container, rank)?;
        if until == 0 {
            return Ok(());
        }
        container.enddef()?;
        if until > 1 {
            let var = container.var(&format!("event_{}/energy", rank * 2))?;
            container.elements().put(&var, &Selection::of(&[0, 0], &[2, 3]), &[1; 24], NcType::Int, false)?;
        }
        if until > 2 { container.close() } else { Ok(()) }
    });
    results.into_iter().for_each(|result| result.unwrap());
    bytes(&env)
}

fn check(bytes: &[u8]) -> Report {
    validate(bytes).unwrap()
}

fn said(report: &Report) -> String {
    report.findings.iter().map(|finding| format!("{}: {finding}\n", finding.severity.name())).collect()
}

#[test]
fn sound_files_have_no_finding() {
    for ranks in [1, 3] {
        let bytes = written(ranks, 3);
        let report = check(&bytes);
        assert!(report.ok && report.findings.is_empty(), "{}", said(&report));
        assert_eq!(report.format, Some(Format::Partitioned));
        assert_eq!(report.counts, [2 + 2 * ranks as u64, 1, 1 + 4 * ranks as u64]);
        assert_eq!(report.numrecs, 2);
    }
    let kept = include_bytes!("../../../../tests/compat/partitioned/v0.fsp");
    let report = check(kept);
    assert!(report.ok && report.findings.is_empty(), "{}", said(&report));
}

#[test]
fn every_flipped_byte_of_the_header_is_named() {
    let sound = written(2, 3);
    let head = Head::decode(&sound).unwrap();
    let mut warnings = 0;
    for at in 0..head.data_begin as usize {
        for mask in [0x01, 0x80, 0xff] {
            let mut bytes = sound.clone();
            bytes[at] ^= mask;
            let report = check(&bytes);
            assert!(!report.findings.is_empty(), "byte {at} ^ {mask:#x} of {}", head.data_begin);
            for finding in &report.findings {
                assert!(!finding.rule.is_empty() && !finding.message.is_empty());
                assert!(finding.offset <= bytes.len() as u64, "byte {at}: {finding}");
            }
            // A fault in bytes that no reader uses is a warning.
            let unused = (20..24).contains(&at) || at as u64 >= head.table_offset + head.table_len;
            assert_eq!(report.ok, unused, "byte {at} ^ {mask:#x}: {}", said(&report));
            warnings += u32::from(report.ok);
        }
    }
    assert!(warnings > 0);
    for len in 0..head.data_begin as usize {
        assert!(!check(&sound[..len]).ok, "{len} bytes");
    }
    // After the header, the end cuts data.
    let report = check(&sound[..sound.len() - 40]);
    assert!(said(&report).contains("a file holds its records"), "{}", said(&report));
}

/// A variable of the last record that the end cuts is damage; variables completely beyond the end were never written.
#[test]
fn a_variable_cut_in_the_last_record_is_named() {
    let sound = written(2, 3);
    let head = Head::decode(&sound).unwrap();
    assert_eq!((head.record_size, head.numrecs), (48, 2), "four variables of 12 bytes");
    let last = (head.record_begin + 48) as usize;
    for held in 1..48 {
        let report = check(&sound[..last + held]);
        let cut = held % 12 != 0;
        assert_eq!(report.ok, !cut, "{held} bytes: {}", said(&report));
        let missing = 4 - held.div_ceil(12);
        assert_eq!(report.findings.len(), usize::from(cut) + usize::from(missing > 0), "{}", said(&report));
        if cut {
            let end = last + held.next_multiple_of(12);
            let output = format!("its data of record 1 end at {end}, but the file ends at {}", last + held);
            assert!(report.findings[0].message == output, "{}", said(&report));
            assert!(report.findings[0].object.ends_with("/energy`"), "{}", said(&report));
        }
        if missing > 0 {
            let output = format!("data of record 1 of {missing} variables");
            assert!(said(&report).contains(&output), "{}", said(&report));
        }
    }
}

/// Counts the bytes read.
struct Counted<'b>(&'b [u8], std::cell::Cell<u64>);

impl Source for Counted<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.0.read_at(buffer, offset)?;
        self.1.set(self.1.get() + read as u64);
        Ok(read)
    }
    fn len(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// Objects of two blocks with the same names in both: the check does not read a block again for each.
#[test]
fn doubled_names_cost_one_more_pass() {
    let (env, count) = (SimWorld::memory(), 400);
    let options = CreateOptions { format: Format::Partitioned, ..CreateOptions::default() };
    let results = threads::run(2, None, env.disk.clone(), Faults::none(), |comm| {
        let (rank, long) = (comm.rank(), "n".repeat(200));
        let container = Container::create(Path::new(PATH), comm, &env, &options)?;
        for i in 0..count {
            container.define().dim(&format!("{long}_RANK{rank}_{i:03}"), Some(3))?;
            container.define().var(&format!("{long}_RANK{rank}_{i:03}"), NcType::Byte, &[])?;
        }
        container.enddef()?;
        container.close()
    });
    results.into_iter().for_each(|result| result.unwrap());
    let mut bytes = bytes(&env);
    let places: Vec<usize> =
        bytes.windows(6).enumerate().filter(|(_, at)| *at == b"_RANK1").map(|(at, _)| at).collect();
    assert_eq!(places.len(), 2 * count, "the dimensions and variables of rank 1");
    places.into_iter().for_each(|at| bytes[at + 5] = b'0');
    crate::checks::mend(&mut bytes);

    let source = Counted(&bytes, Default::default());
    let report = validate(&source).unwrap();
    let doubled = report.findings.iter().filter(|found| found.rule.contains("different names"));
    assert_eq!(doubled.clone().count(), 2 * count, "{}", said(&report));
    for (i, found) in doubled.enumerate() {
        let (kind, number) = (["dimension", "variable"][i / count], i % count);
        let output = format!("number {} has the name of number {number}", count + number);
        assert!(found.message == output && found.object.starts_with(kind), "{found}");
        assert!(found.object.len() < 120, "the name is clipped: {found}");
    }
    // Twice for all objects, then once for each kind.
    let (head, table) = parts(&bytes);
    let blocks: u64 = table.blocks.iter().map(|block| u64::from(block.len)).sum();
    assert!(
        table.blocks.len() == 2 && source.1.get() < 4 * blocks + 2 * head.data_begin,
        "{}",
        source.1.get()
    );
}

/// A damaged block is reported with its paths; the check continues with the others.
#[test]
fn two_damages_are_two_findings() {
    let mut bytes = written(3, 3);
    let (_, table) = parts(&bytes);
    for block in [0, 2] {
        bytes[table.blocks[block].offset as usize + 30] ^= 1;
    }
    let report = check(&bytes);
    let errors: Vec<_> = report.findings.iter().filter(|f| f.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 2, "{}", said(&report));
    assert_eq!(errors[1].offset, table.blocks[2].offset);
    assert!(errors[1].object.contains("metadata block 2 (paths from `event_4` to"), "{}", errors[1].object);
}

fn parts(bytes: &[u8]) -> (Head, Table) {
    let head = Head::decode(bytes).unwrap();
    let table = &bytes[head.table_offset as usize..][..head.table_len as usize];
    let table = Table::decode(table, &head).unwrap();
    (head, table)
}

/// Offsets of the entries of the first block: path, dimension, attribute, variable.
struct Entries(usize, Block);

impl Entries {
    fn of(bytes: &[u8]) -> Entries {
        let entry = parts(bytes).1.blocks[0];
        let at = entry.offset as usize;
        Entries(at, entry.check(bytes[at..at + entry.len as usize].to_vec()).unwrap())
    }
    fn path(&self, i: usize) -> usize {
        self.0 + self.1.path_at(i)
    }
    fn dim(&self, i: usize) -> usize {
        self.0 + self.1.dim_at(i)
    }
    fn var(&self, i: usize) -> usize {
        self.0 + self.1.var_at(i)
    }
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Begin of the entry of a path in the path list of the only writer.
fn list(bytes: &[u8], path: &str) -> usize {
    let (head, table) = parts(bytes);
    let (begin, len) = table.lists(&head);
    let mut list = PathList::new(&bytes[begin as usize..][..len as usize], table.writers[0].blocks);
    loop {
        let at = begin as usize + list.at();
        if list.next_path().unwrap().unwrap().path == path {
            return at;
        }
    }
}

/// A byte of that entry.
fn at<'b>(bytes: &'b mut [u8], path: &str, byte: usize) -> &'b mut u8 {
    let at = list(bytes, path) + byte;
    &mut bytes[at]
}

type Spoil = fn(&mut Vec<u8>);

/// Each rule is checked, even if checksums match.
#[test]
fn each_rule_is_named_where_it_is_broken() {
    // Variables of the only block: grid, event_0/u/charge, event_0/energy, event_1/u/charge, event_1/energy;
    // dimensions: time, x, event_0/hits, event_1/hits.
    let cases: [(&str, Spoil); 39] = [
        ("the version is 0", |b| b[3] = 7),
        ("the positions in the head fit together", |b| put_u64(b, 72, 100)),
        ("unused bytes are zero", |b| b[140] = 1),
        ("unused bytes are zero", |b| b[21] = 1),
        ("the table agrees with itself and the head", |b| put_u64(b, 40, 9)),
        ("number of different paths", |b| put_u64(b, 48, 9)),
        ("the record dimension is that of the head", |b| put_u64(b, 56, 1)),
        ("the record size is the sum", |b| put_u64(b, 64, 400)),
        ("records come after the fixed data", |b| {
            let begin = get_u64(b, 72);
            put_u64(b, 80, begin);
        }),
        ("follow each other without gaps", |b| {
            // One page of the path index is left out, and the table stays where it is.
            let at = parts(b).1.blocks[0].offset;
            put_u64(b, 120, at);
        }),
        ("bytes of data of a block's variables", |b| {
            let table = get_u64(b, 88) as usize;
            put_u64(b, table + 32, 1);
        }),
        ("an entry for each dimension and variable", |b| {
            let table = get_u64(b, 88) as usize;
            put_u64(b, table + 44 + 12, 10);
        }),
        ("the least and the greatest path", |b| {
            let end = (get_u64(b, 88) + get_u64(b, 96)) as usize;
            b[end - 1] = b'z';
        }),
        ("an entry of a block agrees", |b| {
            let at = Entries::of(b).var(0);
            b[at + 4] = 99;
        }),
        ("an entry of a block agrees", |b| {
            let at = Entries::of(b).path(1);
            b[at] = 0xff;
        }),
        ("a block lists each path of its objects once", |b| {
            let entries = Entries::of(b);
            let (a, z) = (entries.path(1), entries.path(3));
            assert_eq!((&b[a..a + 7], &b[z..z + 7]), (&b"event_0"[..], &b"event_1"[..]));
            b[z + 6] = b'0';
        }),
        ("a name is a path of valid names", |b| {
            let at = Entries::of(b).path(1);
            b[at] = b' ';
        }),
        ("a name is a path of valid names", |b| {
            let entries = Entries::of(b);
            let at = entries.var(0) + 24 + 8;
            assert_eq!(&b[at..at + 4], b"grid");
            b[at + 1] = b'/';
        }),
        ("one dimension is the record dimension", |b| {
            let at = Entries::of(b).dim(0);
            put_u64(b, at + 8, 5);
        }),
        ("objects of a kind have different names", |b| {
            let entries = Entries::of(b);
            let (u, v) = (entries.dim(2), entries.dim(3));
            let path: [u8; 4] = b[u..u + 4].try_into().unwrap();
            b[v..v + 4].copy_from_slice(&path);
        }),
        ("a variable has dimensions of the file", |b| {
            let at = Entries::of(b).var(0);
            put_u64(b, at + 24, 77);
        }),
        ("a record variable has the record dimension first", |b| {
            let at = Entries::of(b).var(0);
            put_u64(b, at + 24, 0);
        }),
        ("a variable ends inside the largest file", |b| {
            let at = Entries::of(b).dim(1);
            put_u64(b, at + 8, 1 << 62);
        }),
        ("data are in the order of the variables", |b| {
            let at = Entries::of(b).var(1);
            put_u64(b, at + 16, 4);
        }),
        ("a name is valid in netCDF", |b| {
            let at = b.windows(5).position(|bytes| bytes == b"limit").unwrap();
            b[at] = 1;
        }),
        ("attributes of a variable have different names", |b| {
            let at = b.windows(5).position(|bytes| bytes == b"limit").unwrap();
            b[at..at + 5].copy_from_slice(b"units");
        }),
        ("entries of an index ascend", |b| {
            let at = parts(b).1.writers[0].names_offset as usize + 8;
            b[at..at + 16].rotate_left(8);
        }),
        ("the entries that the metadata blocks make", |b| {
            let at = parts(b).1.writers[0].names_offset as usize + 8 + 7;
            b[at] ^= 1;
        }),
        ("the entries that the metadata blocks make", |b| {
            let at = get_u64(b, 120) as usize + 8 + 31;
            b[at] += 1;
        }),
        ("a page matches its CRC and has at least 1 entry", |b| {
            let at = get_u64(b, 120) as usize + 4;
            b[at..at + 4].fill(0);
        }),
        ("the table agrees with itself and the head", |b| {
            // The length of the writer's path list; it ends where the table begins.
            let table = get_u64(b, 88) as usize;
            put_u64(b, table + 44 + 20, 1 << 60);
        }),
        ("entries of a path list ascend", |b| {
            let at = list(b, "event_1");
            b[at + 38..at + 45].copy_from_slice(b"event_0");
        }),
        ("entries of a path list ascend", |b| {
            let at = list(b, "event_0/u");
            b[at + 2..at + 14].fill(0);
        }),
        ("entries of a path list ascend", |b| {
            let at = list(b, "event_0/u");
            b[at + 21] = 9;
        }),
        ("the contents of the writer's blocks under each path", |b| {
            let at = list(b, "event_1");
            b[at + 5] += 1;
        }),
        ("the contents of the writer's blocks under each path", |b| {
            let at = list(b, "event_1/u");
            b[at + 29] ^= 1;
        }),
        ("the contents of the writer's blocks under each path", |b| {
            let at = list(b, "event_1");
            b[at + 37] ^= 1;
        }),
        ("`event_0/t` has no object in the writer's blocks", |b| {
            let at = list(b, "event_0/u");
            b[at + 46] = b't';
        }),
        ("`event_1/u` is missing", |b| {
            let at = list(b, "event_1/u");
            let table = get_u64(b, 88) as usize;
            // A gap opens before the list, which is shorter.
            let len = get_u64(b, table + 44 + 20);
            let begin = table - len as usize;
            b.copy_within(begin..at, begin + 47);
            put_u64(b, table + 44 + 20, len - 47);
        }),
    ];
    let sound = written(1, 3);
    for (i, (rule, spoil)) in cases.into_iter().enumerate() {
        let mut bytes = sound.clone();
        spoil(&mut bytes);
        crate::checks::mend(&mut bytes);
        let report = check(&bytes);
        // In one case, another rule reports the same fault.
        let rule =
            rule.replace("the record dimension is that of the head", "one dimension is the record dimension");
        assert!(said(&report).contains(&rule), "case {i}, {rule}: {}", said(&report));
        assert_eq!(report.ok, rule.contains("unused"), "case {i}");
    }
}

/// A list with a matching checksum that contradicts the index table is ignored in favour of the blocks.
#[test]
fn what_a_wrong_list_says_is_not_told() {
    let totals = |bytes: &[u8]| {
        let env = SimWorld::memory();
        write_all_at(&*env.disk.create_new(Path::new(PATH)).unwrap(), bytes, 0).unwrap();
        let comm = Arc::new(SingleComm::new(env.disk.clone()));
        let container = Container::open(Path::new(PATH), Mode::Read, comm, &env).unwrap();
        let metadata = container.metadata().unwrap();
        (stats::totals(&*metadata, 9).unwrap(), metadata.below("").unwrap())
    };
    let sound = written(1, 3);
    let wanted = totals(&sound);
    assert_eq!(wanted.0.bytes, 12 + 2 * (1 + 2) + 2 * (2 * 3 * 4));
    // One dimension more, one attribute more, one variable less, another number of bytes, paths out of order, no
    // list.
    let spoils: [Spoil; 6] = [
        |b| *at(b, "event_1", 5) += 1,
        |b| *at(b, "event_1", 9) += 1,
        |b| *at(b, "event_1/u", 13) -= 1,
        |b| *at(b, "event_1", 37) += 8,
        |b| *at(b, "event_1", 38) = b'a',
        |b| {
            let table = get_u64(b, 88) as usize;
            put_u64(b, table + 44 + 20, 0);
        },
    ];
    for (i, spoil) in spoils.into_iter().enumerate() {
        let mut bytes = sound.clone();
        spoil(&mut bytes);
        crate::checks::mend(&mut bytes);
        assert!(bytes != sound && !check(&bytes).ok, "case {i}");
        assert_eq!(totals(&bytes), wanted, "case {i}");
    }
}

#[test]
fn an_unfinished_file_says_how_far_its_writer_came() {
    for ranks in [1, 2] {
        for (until, words) in [
            (0, "stopped during definition"),
            (1, "stopped while writing data: the header is complete"),
            (2, "stopped while writing data: the header is complete"),
        ] {
            let bytes = written(ranks, until);
            let report = check(&bytes);
            assert!(!report.ok && report.findings.len() == 1, "{}", said(&report));
            assert!(said(&report).contains("never finished"), "{}", said(&report));
            assert!(said(&report).contains(words), "{until}: {}", said(&report));
            assert!(!report.findings[0].hint.is_empty());
        }
        // In enddef: some part of the header is still missing.
        let whole = written(ranks, 1);
        let (head, table) = {
            let mut finished = whole.clone();
            finished[..4].copy_from_slice(b"FSP\0");
            parts(&finished)
        };
        let list = table.lists(&head).0 + table.list_of_writer(ranks - 1);
        for at in [30, table.blocks[0].offset + 9, table.writers[ranks - 1].names_offset + 2, list + 3] {
            let mut bytes = whole.clone();
            bytes[at as usize..at as usize + 9].fill(0);
            assert!(said(&check(&bytes)).contains("stopped in enddef"), "{}", said(&check(&bytes)));
        }
        // The disk may tear the write that finishes a file.
        for torn in [*b"FSPP", *b"FSU\0"] {
            let mut bytes = whole.clone();
            bytes[..4].copy_from_slice(&torn);
            assert!(said(&check(&bytes)).contains("never finished"), "{torn:?}: {}", said(&check(&bytes)));
            let error: Error = Head::decode(&bytes).unwrap_err();
            assert!(torn == *b"FSU\0" || error.message().contains("never finished"), "{error}");
        }
    }
}
