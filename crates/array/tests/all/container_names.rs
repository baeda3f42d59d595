//! Names as other writers leave them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::enddef::Indexing;
use fieldstone_array::container::{Container, CreateOptions, Mode};
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Env, read_exact_at, write_all_at};
use fieldstone_format::netcdf::NcType;

const PATH: &str = "t.nc";

fn single(env: &Env) -> Arc<dyn Comm> {
    Arc::new(SingleComm::new(env.disk.clone()))
}

/// Replaces a name by another one of the same length.
fn rename(env: &Env, from: &str, to: &str) {
    let file = env.disk.open_write(Path::new(PATH)).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    read_exact_at(&*env.disk.open_read(Path::new(PATH)).unwrap(), &mut bytes, 0).unwrap();
    let at = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
    write_all_at(&*file, to.as_bytes(), at as u64).unwrap();
}

#[test]
fn names_that_are_not_in_nfc_are_found_as_they_are_listed() {
    for indexing in [Indexing::Never, Indexing::Always] {
        let env = SimWorld::memory();
        let options = CreateOptions { indexing, ..CreateOptions::default() };
        let container = Container::create(Path::new(PATH), single(&env), &env, &options).unwrap();
        container.define().dim("cafexx", Some(3)).unwrap();
        container.define().var("thexxe", NcType::Int, &["cafexx"]).unwrap();
        container.define().var("caf\u{e9}", NcType::Int, &[]).unwrap();
        container.close().unwrap();
        rename(&env, "cafexx", "cafe\u{301}");
        rename(&env, "thexxe", "the\u{301}e");
        for mode in [Mode::Read, Mode::Append] {
            let container = Container::open(Path::new(PATH), mode, single(&env), &env).unwrap();
            let metadata = container.metadata().unwrap();
            let var = &metadata.vars(0, 1).unwrap()[0];
            assert_eq!((&*var.name, &*var.dims[0].name), ("the\u{301}e", "cafe\u{301}"));
            assert_eq!(container.var(&var.name).unwrap(), *var);
            assert_eq!(container.dim("cafe\u{301}").unwrap().len, 3);
            assert_eq!(container.var("cafe\u{301}").unwrap().name, "caf\u{e9}", "ours are in NFC");
            container.close().unwrap();
        }
    }
}
