//! The rule of MPI for files: a rank may read or write a byte that another rank has written only after both took part
//! in a sync. Here a communicator of threads checks every access to data, and every write of the header, by that
//! rule. Definitions of others are read from the header directly after `enddef`, without a sync: the tests rely on
//! the file system to show them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::{Container, CreateOptions, Mode};
use fieldstone_core::env::comm::layer::{CommLayer, FileLayer};
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, CommFile, FileMode};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::NcType;

const RANKS: usize = 3;

/// The writes of each rank to one file since they were last settled, and the number of settlements.
#[derive(Debug, Default)]
struct Written {
    parts: Vec<(usize, Range<u64>)>,
    settled: usize,
}

/// The files of a run, by path.
type Files = Arc<Mutex<std::collections::BTreeMap<String, Arc<Mutex<Written>>>>>;

#[derive(Debug)]
struct Watching {
    comm: Arc<dyn Comm>,
    files: Files,
}

#[derive(Debug)]
struct Watched {
    file: Arc<dyn CommFile>,
    comm: Arc<dyn Comm>,
    path: String,
    written: Arc<Mutex<Written>>,
}

impl Watched {
    fn look(&self, what: &str, from: u64, len: usize) -> Result<()> {
        let (own, to) = (self.comm.rank(), from + len as u64);
        let written = self.written.lock().unwrap();
        match written.parts.iter().find(|(rank, part)| *rank != own && part.start < to && from < part.end) {
            Some((rank, part)) => Err(Error::internal(format!(
                "rank {own} {what} bytes {from} to {to} of {}, and rank {rank} has written {part:?} without sync",
                self.path
            ))),
            None => Ok(()),
        }
    }
    fn add(&self, from: u64, len: usize) -> Result<()> {
        self.look("writes", from, len)?;
        self.written.lock().unwrap().parts.push((self.comm.rank(), from..from + len as u64));
        Ok(())
    }
    fn clear(&self) -> Result<()> {
        self.comm.barrier()?;
        if self.comm.rank() == 0 {
            let mut written = self.written.lock().unwrap();
            written.parts.clear();
            written.settled += 1;
        }
        self.comm.barrier()
    }
}

impl FileLayer for Watched {
    fn below(&self) -> &dyn CommFile {
        &*self.file
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.add(offset, data.len())?;
        self.file.write_at(data, offset)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        // The module's documentation covers the header, which is read from its beginning.
        if offset >= 512 {
            self.look("reads", offset, buffer.len())?;
        }
        self.file.read_at(buffer, offset)
    }
    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        let added = parts.iter().try_for_each(|(offset, data)| self.add(*offset, data.len()));
        self.file.write_all(parts).and(added)
    }
    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        let looked = parts.iter().try_for_each(|(offset, part)| self.look("reads", *offset, part.len()));
        self.file.read_all(parts).and(looked)
    }
    fn sync(&self) -> Result<()> {
        self.file.sync().and(self.clear())
    }
    fn visibility_barrier(&self) -> Result<()> {
        self.clear()
    }
}

impl CommLayer for Watching {
    fn below(&self) -> &dyn Comm {
        &*self.comm
    }
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        let file = self.comm.open(path, mode)?;
        // Opening after a close is as good as a sync: every opening counts as another file.
        let number = self.files.lock().unwrap().len() as u64;
        let numbers = self.comm.allgather(&number.to_le_bytes())?;
        let path = format!("{} ({})", path.display(), u64::from_le_bytes(numbers[0][..].try_into().unwrap()));
        let written = self.files.lock().unwrap().entry(path.clone()).or_default().clone();
        Ok(Arc::new(Watched { file, comm: self.comm.clone(), path, written }))
    }
}

fn put(container: &Container, name: &str, start: u64, values: &[i32], collective: bool) -> Result<()> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let selection = Selection::of(&[start], &[values.len() as u64]);
    container.elements().put(&container.var(name)?, &selection, &data, NcType::Int, collective)
}

/// Each rank writes where others have filled, moved or defined; returns the number of settlements.
fn run(fill: bool, moves: bool) -> usize {
    let world = SimWorld::memory();
    let files = Files::default();
    let mut options = CreateOptions { fill, ..CreateOptions::default() };
    options.alignment.h_minfree = 2000;
    let results = threads::run(RANKS, Some(3), world.disk.clone(), Faults::none(), |comm| {
        let rank = comm.rank();
        let comm: Arc<dyn Comm> = Arc::new(Watching { comm, files: files.clone() });
        let container = Container::create("t.nc".as_ref(), comm.clone(), &world, &options)?;
        container.define().dim("time", None)?;
        container.define().dim("x", Some(700))?;
        container.define().var("shared", NcType::Int, &["x"])?;
        container.define().var("r", NcType::Int, &["time"])?;
        container.define().var(&format!("rank_{rank}/v"), NcType::Int, &["x"])?;
        container.enddef()?;
        put(&container, &format!("rank_{rank}/v"), 0, &[7; 700], false)?;
        put(&container, "r", rank as u64, &[rank as i32], true)?;
        container.redef()?;
        container.define().put_att(None, &format!("note_{rank}"), NcType::Char, &[b'x'; 20])?;
        if moves {
            container.define().put_att(None, "long", NcType::Char, &[b'x'; 5000])?;
        }
        container.enddef()?;
        // In the opposite order to that of the ranks that fill and move.
        let at = 200 * (RANKS - 1 - rank) as u64;
        put(&container, "shared", at, &[rank as i32; 100], true)?;
        put(&container, "r", (2 * RANKS - 1 - rank) as u64, &[rank as i32], true)?;
        container.close()?;
        let container = Container::open("t.nc".as_ref(), Mode::Read, comm, &world)?;
        let mut data = [0; 700 * 4];
        let other = container.var(&format!("rank_{}/v", (rank + 1) % RANKS))?;
        container.elements().get(&other, &Selection::all(&[700]), &mut data, NcType::Int, true)?;
        assert!(data.chunks(4).all(|bytes| bytes == 7i32.to_ne_bytes()));
        container.close()
    });
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let files = files.lock().unwrap();
    files.values().map(|written| written.lock().unwrap().settled).sum()
}

#[test]
fn no_rank_touches_what_another_wrote_without_sync() {
    // One at the redefinition; one for the moved data, and two before the old file is replaced; for fills, one at the
    // enddef that has new variables and one at each put that adds records.
    let counts =
        [(false, false), (false, true), (true, false), (true, true)].map(|(fill, moves)| run(fill, moves));
    assert_eq!(counts, [1, 4, 4, 7]);
}
