//! Writes by a thread: the call returns before they are made, and a flush has them or fails.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use fieldstone_array::distributed::buffer::{Buffer, Element};
use fieldstone_array::distributed::files::deferred::{DeferredFile, DeferredWriter};
use fieldstone_array::distributed::files::group_files::GroupFiles;
use fieldstone_array::distributed::files::organisation::Level;
use fieldstone_array::distributed::files::sets::SetDecl;
use fieldstone_array::distributed::plan::{Method, Planner, Settings, Write};
use fieldstone_array::distributed::view::View;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{FileMode, Team, TeamFile};
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_core::env::{Disk, Env};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::Attrs;

const FOLDER: &str = "/arrays";
const ELEMENTS: u64 = 3_000;

fn group(team: &Team, disk: &Arc<dyn Disk>) -> Result<GroupFiles> {
    let (shape, dims, attrs) = (vec![Some(ELEMENTS)], vec![None], Attrs::default());
    let set = SetDecl { name: "a".into(), dtype: DType::F4, shape, dims, attrs: attrs.clone(), fill: None };
    GroupFiles::new(team.clone(), disk.clone(), Path::new(FOLDER), "g", Level::Two, vec![set], attrs)
}

fn deferred_file(
    file: &TeamFile,
    writer: &Arc<DeferredWriter>,
    disk: &Arc<dyn Disk>,
) -> (TeamFile, Arc<DeferredFile>) {
    let path = Path::new("/f");
    DeferredFile::over(file, writer, disk.open_plain(path, true).unwrap(), path)
}

/// Writes the set at a step; the ranks' elements alternate.
fn write(files: &mut GroupFiles, writer: &Arc<DeferredWriter>, step: i64, method: Method) -> Result<()> {
    let (rank, ranks) = (files.team().rank(), files.team().size());
    let slot = files.slot_deferred(0, step, None, writer)?;
    let map: Vec<i64> = (0..ELEMENTS as i64).filter(|at| *at as usize % ranks == rank).collect();
    let view = View::irregular(map.clone(), None, None).resolve(&[ELEMENTS], rank, ranks)?;
    let bytes: Vec<u8> = map.iter().flat_map(|at| ((*at + step * 7) as f32).to_be_bytes()).collect();
    let from = Buffer::new(&bytes, Element::new(4, 1)?, view.local_shape())?;
    let settings = Settings { method, ..Settings::default() };
    let write = Write { view: &view, array: slot.array, from: &from, fill: None, settings };
    Planner::new().write(&slot.file, "put", Ok(write))?;
    files.wrote((0, step), None, slot);
    Ok(())
}

/// The elements of a step in the file, at the position that a flush returned.
fn elements(disk: &Arc<dyn Disk>, file: &str, offset: u64) -> Vec<f32> {
    let path = Path::new(FOLDER).join(file);
    let file = disk.open_plain(&path, false).unwrap();
    let mut bytes = vec![0; ELEMENTS as usize * 4];
    assert_eq!(file.read_at(&mut bytes, offset).unwrap(), bytes.len());
    bytes.as_chunks().0.iter().map(|word| f32::from_be_bytes(*word)).collect()
}

fn expected(step: i64) -> Vec<f32> {
    (0..ELEMENTS as i64).map(|at| (at + step * 7) as f32).collect()
}

fn on(world: &SimWorld) -> Env {
    let env = world.process("node");
    env.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    env
}

#[test]
fn a_write_returns_while_the_disk_is_busy_and_a_flush_waits_for_it() {
    for method in [Method::Direct, Method::Exchange] {
        let world = SimWorld::new(1);
        let env = on(&world);
        let disk = env.disk.clone();
        let outcomes = threads::run(2, None, disk.clone(), Faults::none(), |comm| {
            let team = Team::new(comm);
            let writer = DeferredWriter::new(1 << 20);
            let mut files = group(&team, &disk)?;
            write(&mut files, &writer, 0, method)?;
            files.settle()?;
            team.barrier("begin")?;
            let stall = (team.rank() == 0).then(|| world.stall(OpKind::Write, "a.nc"));
            team.barrier("held")?;
            write(&mut files, &writer, 1, method)?;
            let queued = writer.queued();
            if let Some(stall) = &stall {
                // Both ranks' threads are in the middle of a write.
                stall.wait_for(2);
            }
            team.barrier("returned")?;
            drop(stall);
            let durable = files.prepare()?;
            files.show()?;
            files.close()?;
            assert_eq!(writer.queued(), 0);
            Ok((queued, durable))
        });
        for outcome in outcomes {
            let (queued, durable) = outcome.unwrap();
            assert!(queued > 0, "{method:?}: the call waited for the disk");
            for set in durable {
                assert_eq!(elements(&disk, &set.file, set.extent.offset), expected(set.step), "{method:?}");
            }
        }
    }
}

#[test]
fn what_fails_behind_a_call_is_raised_by_the_next_and_the_flush_on_all_ranks() {
    for (kind, fault, fails) in [
        (OpKind::Write, Fault::NoSpace, ErrorKind::Unavailable),
        (OpKind::Write, Fault::Io, ErrorKind::Unavailable),
        (OpKind::SyncData, Fault::Io, ErrorKind::Unavailable),
    ] {
        let world = SimWorld::new(7);
        let env = on(&world);
        let disk = env.disk.clone();
        let outcomes = threads::run(3, None, disk.clone(), Faults::none(), |comm| {
            let team = Team::new(comm);
            let writer = DeferredWriter::new(1 << 20);
            let mut files = group(&team, &disk)?;
            write(&mut files, &writer, 0, Method::Exchange)?;
            files.prepare()?;
            files.show()?;
            team.barrier("begin")?;
            if team.rank() == 1 {
                world.schedule(Plan::new(fault).kind(kind).path("a.nc"));
            }
            team.barrier("planned")?;
            write(&mut files, &writer, 1, Method::Exchange)?;
            let next = (0..1_000).find_map(|_| {
                thread::yield_now();
                files.settle().err()
            });
            if kind == OpKind::Write {
                let error = next.expect("the next call raises it");
                assert_eq!(error.kind(), fails, "{}", error.message());
                assert!(error.message().starts_with("rank "), "{}", error.message());
                assert!(write(&mut files, &writer, 2, Method::Exchange).is_err(), "and so does a write");
            }
            let error = files.prepare().expect_err("the flush has not all of it");
            assert_eq!(error.kind(), fails, "{}", error.message());
            // Nothing of it is left, and the job continues.
            write(&mut files, &writer, 3, Method::Exchange)?;
            let durable = files.prepare()?;
            files.show()?;
            files.close()?;
            Ok(durable)
        });
        for outcome in outcomes {
            let durable = outcome.unwrap();
            assert_eq!(durable.len(), 1, "{durable:?}");
            assert_eq!(durable[0].step, 3);
            assert_eq!(elements(&disk, &durable[0].file, durable[0].extent.offset), expected(3));
        }
    }
}

fn alone(disk: &Arc<dyn Disk>) -> TeamFile {
    let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
    team.open("create", Path::new("/f"), FileMode::CreateNew).unwrap()
}

#[test]
fn a_queue_is_bounded_and_who_drops_it_waits_for_nothing() {
    let world = SimWorld::new(3);
    let disk = world.process("node").disk;
    let file = alone(&disk);
    let writer = DeferredWriter::new(1_000);
    let (deferred, layer) = deferred_file(&file, &writer, &disk);
    let stall = world.stall(OpKind::Write, "/f");
    let late = thread::spawn({
        let deferred = deferred.clone();
        move || deferred.write_at(&[7; 5_000], 0)
    });
    stall.wait_for(1);
    for _ in 0..100 {
        assert!(writer.queued() <= 1_000);
        thread::yield_now();
    }
    assert!(!late.is_finished(), "the queue is full");
    drop(stall);
    late.join().unwrap().unwrap();
    let mut bytes = [0; 5_000];
    assert_eq!(deferred.read_at(&mut bytes, 0).unwrap(), 5_000, "who reads finds what was written");
    assert_eq!(bytes, [7; 5_000]);
    // If several calls write one place, the last one wins.
    (0..50u8).for_each(|n| deferred.write_at(&[n; 100], 40).unwrap());
    layer.finish().unwrap();
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!((bytes[39], &bytes[40..140], bytes[140]), (7, &[49; 100][..], 7));
    let stall = world.stall(OpKind::Write, "/f");
    deferred.write_at(&[1; 900], 0).unwrap();
    stall.wait_for(1);
    drop((deferred, layer, writer));
    drop(stall);
}

#[test]
fn one_call_is_synced_while_the_job_goes_on() {
    let world = SimWorld::new(4);
    let disk = world.process("node").disk;
    let file = alone(&disk);
    let writer = DeferredWriter::new(1_000);
    let (deferred, layer) = deferred_file(&file, &writer, &disk);
    let stall = world.stall(OpKind::SyncData, "/f");
    deferred.write_at(&[1; 900], 0).unwrap();
    layer.settle().unwrap();
    layer.sync_soon();
    // No call waits for the file, and its sync has begun.
    stall.wait_for(1);
    drop(stall);
    layer.finish().unwrap();
}
