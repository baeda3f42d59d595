//! Parsers of containers, on the seeds of the fuzzer and many random changes of them: the part of `fuzz/run.sh`
//! without coverage guidance.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use fieldstone_array::container::{Container, CreateOptions, Format};
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::read_exact_at;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::value::{Test, Value};
use fieldstone_format::Id;
use fieldstone_format::graph::{self, Props, Record, RelationRow, VertexName, VertexRow};
use fieldstone_format::graph_message::ends::{Address, QueryId};
use fieldstone_format::graph_message::plan::{WalkHop, WalkPlan, WalkTest};
use fieldstone_format::graph_message::rows::{PlacedRows, RowsCommit};
use fieldstone_format::graph_message::{Frame, Message};
use fieldstone_format::graph_segment::CommitKnown;
use fieldstone_format::netcdf::layout::{Alignment, lay_out};
use fieldstone_format::netcdf::{Attr, Header, NcType, Version, trailer, write};
use fieldstone_format::partitioned::{
    BlockBuilder, BlockEntry, Head, ListedPath, Table, WriterEntry, pages, path_list,
};
use fieldstone_testkit::seeded;

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
        escaped: true,
        pages_crc: 7,
    };
    let mut bytes = vec![4];
    bytes.extend(locator.encode());
    seeds.push(("locator".into(), bytes));
    seeds.extend(partitioned());
    seeds.extend(messages());
    seeds.extend([("file".into(), file(1)), ("file-of-two".into(), file(2))]);
    seeds
}

/// Messages between slots of the graph: one with rows, one with a plan.
fn messages() -> [(String, Vec<u8>); 2] {
    let [job, file] = [("job", "17"), ("file", "/a.nc")].map(|(kind, id)| VertexName::new(kind, id));
    let version = graph::Version { stamp: 1000, time: 1000, deleted: false };
    let (props, until) = (Props::default(), Some(1600));
    let row = RelationRow { kind: "write".into(), source: job.clone(), target: file, version, until, props };
    let body =
        Record::relations_body(&Record::Relations(vec![row]).encode()).unwrap().unwrap().body.into_owned();
    let commit = RowsCommit { known: CommitKnown { since: 2000, stamp: 2000 }, user: 1000, archive: None };
    let mut rows = PlacedRows { commits: vec![commit], ..PlacedRows::default() };
    (rows.relations, rows.of_relations) = (body.into(), vec![2]);
    let vertex = VertexRow { vertex: job.clone(), version, fixed: None, props: Props::default() };
    rows.set_vertices(vec![vertex], vec![0]);
    let test = Test::Not(Box::new(Test::AtLeast(Value::Int(4))));
    let hop = WalkHop {
        directions: vec![("write".into(), true)],
        edges: vec![("n".into(), test)],
        ..WalkHop::default()
    };
    let named = WalkTest { named: Some(vec![job]), ..WalkTest::default() };
    let plan =
        WalkPlan { starting: vec![named], hops: vec![hop], repeat: Some((1, 3)), ..WalkPlan::default() };
    let client = Id::LEAST;
    let query = QueryId { client, number: 1 };
    let begin = Message::Begin { query, engine: 0, plan, rows: PlacedRows::default() };
    let all = [("insert", Message::Insert { batch: 1, rows }), ("begin", begin)];
    all.map(|(name, message)| {
        let frame =
            Frame { from: Address::Client(client), to: Address::Slot(2), number: 1, message }.encode();
        (format!("message-{name}"), [vec![10], frame].concat())
    })
}

/// A whole file with a partitioned header, written by `ranks` ranks.
fn file(ranks: usize) -> Vec<u8> {
    let (env, path) = (SimWorld::memory(), Path::new("/file"));
    let options = CreateOptions { format: Format::Partitioned, ..CreateOptions::default() };
    let results = threads::run(ranks, None, env.disk.clone(), Faults::none(), |comm| {
        let rank = comm.rank();
        let container = Container::create(path, comm, &env, &options)?;
        container.define().dim("time", None)?;
        container.define().dim(&format!("event_{rank}/x"), Some(5))?;
        container.define().put_att(None, &format!("event_{rank}/weight"), NcType::Short, &[0, 7])?;
        let var = container.define().var(&format!("event_{rank}/u/fixed"), NcType::Byte, &["x"])?;
        container.define().put_att(Some(var), "units", NcType::Char, b"K")?;
        container.define().var(&format!("event_{rank}/record"), NcType::Short, &["time", "x"])?;
        container.define().var("shared", NcType::Double, &[])?;
        container.close()
    });
    results.into_iter().for_each(|result| result.unwrap());
    let file = env.disk.open_read(path).unwrap();
    let mut bytes = vec![8; 1 + file.stat().unwrap().len as usize];
    read_exact_at(&*file, &mut bytes[1..], 0).unwrap();
    bytes
}

/// Seeds of the partitioned header: a block, head and index table, a page of an index, a path list.
fn partitioned() -> [(String, Vec<u8>); 4] {
    let mut block = BlockBuilder::default();
    block.dim("event_1/x", 5, false).unwrap();
    block.dim("time", 0, true).unwrap();
    block.attr(Attr { name: "title", ty: NcType::Char, value: b"seed" }).unwrap();
    let units = Attr { name: "units", ty: NcType::Char, value: b"K" };
    block.var("event_1/v", NcType::Float, true, &[1, 0], [units].into_iter(), 64).unwrap();
    let mut bytes = vec![5];
    bytes.extend(block.finish());

    let mut table = Table::default();
    let entry = BlockEntry { offset: 200, len: 50, dims: 2, vars: 3, ..BlockEntry::default() };
    table.push(entry, "a", "event_1/u");
    table.writers.push(WriterEntry { blocks: 1, names_offset: 4096, names: 5, list_len: 99, list_crc: 7 });
    table.count();
    let encoded = table.encode();
    let head = Head {
        dims: 2,
        vars: 3,
        blocks: 1,
        writers: 1,
        table_offset: 500,
        table_len: encoded.len() as u64,
        data_begin: 20_000,
        record_begin: 20_000,
        ..Head::default()
    };
    let mut with_head = vec![6];
    with_head.extend(head.encode());
    with_head.extend(encoded);

    let mut page = vec![7];
    pages::write(&[pages::name_entry(pages::name_key("event_1/v"), true, 0)], &mut page);
    page.truncate(1 + 64); // The rest is zero, and is added again.

    let first =
        ListedPath { path: "event_1", dims: 1, vars: 2, last_block: 3, data: 40, ..ListedPath::default() };
    let second = ListedPath { path: "event_1/u", record_data: 8, ..first };
    let mut list = vec![9];
    list.extend(path_list(&[first, second]).unwrap());
    [("block".into(), bytes), ("table".into(), with_head), ("page".into(), page), ("path-list".into(), list)]
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
        crate::checks::check(&std::fs::read(entry.unwrap().path()).unwrap());
    }
}

#[test]
fn random_changes_of_seeds_pass() {
    let mut seeds: Vec<Vec<u8>> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    seeds.sort();
    let mut random = seeded(1);
    for _ in 0..20_000 {
        let mut bytes = seeds[random.index(seeds.len())].clone();
        for _ in 0..=random.index(4) {
            let at = random.index(bytes.len());
            match random.index(5) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.index(5)],
                2 => bytes[at] ^= 1 << random.index(8),
                3 => bytes.insert(at, random.index(256) as u8),
                _ => {
                    let other = &seeds[random.index(seeds.len())];
                    let from = random.index(other.len());
                    bytes.extend_from_slice(&other[from..]);
                }
            }
        }
        crate::checks::check(&bytes);
    }
}
