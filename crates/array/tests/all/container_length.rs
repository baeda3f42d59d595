//! The end of a file: that of its data, or of its header if it has no data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::enddef::Indexing;
use fieldstone_array::container::{Container, CreateOptions, Format, Mode};
use fieldstone_core::Result;
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Env, read_exact_at};
use fieldstone_format::netcdf::{NcType, Version};

const PATH: &str = "t.nc";

fn single(env: &Env) -> Arc<dyn Comm> {
    Arc::new(SingleComm::new(env.disk.clone()))
}

fn open(env: &Env, mode: Mode) -> Container {
    Container::open(Path::new(PATH), mode, single(env), env).unwrap()
}

fn bytes(env: &Env) -> Vec<u8> {
    let file = env.disk.open_read(Path::new(PATH)).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn put(container: &Container, path: &str, start: u64, values: &[i32]) -> Result<()> {
    let var = container.var(path)?;
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    container.elements().put(
        &var,
        &Selection::of(&[start], &[values.len() as u64]),
        &data,
        NcType::Int,
        false,
    )
}

fn ints(container: &Container, path: &str) -> Vec<i32> {
    let var = container.var(path).unwrap();
    let mut into = vec![0; var.shape()[0] as usize * 4];
    container.elements().get(&var, &Selection::all(&var.shape()), &mut into, NcType::Int, false).unwrap();
    into.chunks_exact(4).map(|value| i32::from_ne_bytes(value.try_into().unwrap())).collect()
}

/// A container with only record variables, and no records yet.
fn empty(env: &Env, format: Format, indexing: Indexing) {
    let options = CreateOptions { format, indexing, ..CreateOptions::default() };
    let container = Container::create(Path::new(PATH), single(env), env, &options).unwrap();
    container.define().dim("time", None).unwrap();
    container.define().dim("x", Some(3)).unwrap();
    container.define().var("r", NcType::Int, &["time"]).unwrap();
    container.define().var("s", NcType::Int, &["time"]).unwrap();
    container.enddef().unwrap();
    let layout = container.layout().unwrap();
    assert!(layout.header_len < layout.record_begin);
    assert_eq!(bytes(env).len() as u64, layout.header_len);
    container.close().unwrap();
}

#[test]
fn without_records_it_is_the_header() {
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        let env = SimWorld::memory();
        empty(&env, Format::Classic(version), Indexing::Never);
        let reader = open(&env, Mode::Read);
        assert_eq!(bytes(&env).len() as u64, reader.layout().unwrap().header_len);
        assert_eq!((reader.numrecs().unwrap(), ints(&reader, "r")), (0, vec![]));
        // Opening it for writing and closing it changes nothing, and records go to their place.
        let before = bytes(&env);
        open(&env, Mode::Append).close().unwrap();
        assert_eq!(bytes(&env), before);
        let writer = open(&env, Mode::Append);
        put(&writer, "s", 1, &[7]).unwrap();
        let record_begin = writer.layout().unwrap().record_begin;
        writer.close().unwrap();
        assert_eq!(bytes(&env).len() as u64, record_begin + 2 * 8);
        assert_eq!(ints(&open(&env, Mode::Read), "s"), [0, 7]);
    }
}

#[test]
fn the_name_index_goes_with_the_end() {
    let env = SimWorld::memory();
    empty(&env, Format::Classic(Version::Cdf5), Indexing::Always);
    let indexed = |container: &Container| {
        let metadata = container.metadata().unwrap();
        assert!(metadata.find_var("none").unwrap().is_none());
        format!("{metadata:?}").starts_with("Indexed")
    };
    let reader = open(&env, Mode::Read);
    assert!(indexed(&reader) && reader.var("s").unwrap().is_record());
    let writer = open(&env, Mode::Append);
    put(&writer, "r", 2, &[5]).unwrap();
    writer.close().unwrap();
    let reader = open(&env, Mode::Read);
    assert!(indexed(&reader));
    assert_eq!((ints(&reader, "r"), ints(&reader, "s")), (vec![0, 0, 5], vec![0; 3]));
}

#[test]
fn a_redefinition_adds_data_or_none() {
    for indexing in [Indexing::Never, Indexing::Always] {
        let env = SimWorld::memory();
        empty(&env, Format::Classic(Version::Cdf5), indexing);
        let before = open(&env, Mode::Read).layout().unwrap();
        let writer = open(&env, Mode::Append);
        writer.redef().unwrap();
        writer.define().put_att(None, "a", NcType::Char, b"bcde").unwrap();
        writer.enddef().unwrap();
        let layout = writer.layout().unwrap();
        assert_eq!(layout.header_len, before.header_len + 28, "an attribute of 28 bytes");
        assert_eq!(layout.record_begin, before.record_begin);
        assert_eq!(bytes(&env).len() as u64, layout.header_len);
        writer.close().unwrap();
        let writer = open(&env, Mode::Append);
        writer.redef().unwrap();
        writer.define().var("f", NcType::Int, &["x"]).unwrap();
        writer.enddef().unwrap();
        assert_eq!(ints(&writer, "f"), [0; 3], "what is not written reads as zeros");
        put(&writer, "f", 0, &[1, 2, 3]).unwrap();
        let data_end = writer.layout().unwrap().data_end;
        writer.close().unwrap();
        let len = bytes(&env).len() as u64;
        assert!(len == data_end || (indexing == Indexing::Always && len > data_end), "{len}, {data_end}");
        let reader = open(&env, Mode::Read);
        assert_eq!((ints(&reader, "f"), ints(&reader, "r")), (vec![1, 2, 3], vec![]));
    }
}

#[test]
fn the_partitioned_header_is_whole_without_data() {
    let env = SimWorld::memory();
    empty(&env, Format::Partitioned, Indexing::Auto);
    let reader = open(&env, Mode::Read);
    assert_eq!(reader.var("s").unwrap().shape(), [0]);
    let writer = open(&env, Mode::Append);
    put(&writer, "s", 0, &[7, 8]).unwrap();
    writer.close().unwrap();
    let reader = open(&env, Mode::Read);
    assert_eq!((ints(&reader, "r"), ints(&reader, "s")), (vec![0, 0], vec![7, 8]));
}

#[test]
fn a_name_index_does_not_show_through_new_variables() {
    let env = SimWorld::memory();
    let mut options = CreateOptions { indexing: Indexing::Always, ..CreateOptions::default() };
    options.alignment.h_minfree = 4096;
    let container = Container::create(Path::new(PATH), single(&env), &env, &options).unwrap();
    container.define().dim("x", Some(3)).unwrap();
    container.define().dim("y", Some(500)).unwrap();
    container.define().var("a", NcType::Int, &["x"]).unwrap();
    container.enddef().unwrap();
    put(&container, "a", 0, &[1, 2, 3]).unwrap();
    container.close().unwrap();
    let writer = open(&env, Mode::Append);
    let before = writer.layout().unwrap();
    writer.redef().unwrap();
    writer.define().var("g", NcType::Int, &["y"]).unwrap();
    writer.enddef().unwrap();
    assert_eq!(writer.layout().unwrap().data_begin, before.data_begin, "in place");
    assert_eq!(ints(&writer, "g"), [0; 500]);
    writer.close().unwrap();
    let reader = open(&env, Mode::Read);
    assert_eq!((ints(&reader, "a"), ints(&reader, "g")), (vec![1, 2, 3], vec![0; 500]));
}
