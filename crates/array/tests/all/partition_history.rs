//! Partitions that are kept in files: they serve what they are for, and nothing else, and no damage passes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::partition::checksum::ContentSum;
use fieldstone_array::distributed::partition::history::{HistoryWriter, read_edges, read_parts};
use fieldstone_array::distributed::partition::source::EdgeArrays;
use fieldstone_array::distributed::partition::vector::{NodeRanks, Vector};
use fieldstone_array::distributed::partition::{
    Partition, PartitionKey, PartitionSettings, PartitionSource, partition,
};
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, FileMode, Team, single::SingleComm};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Disk, write_all_at};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::seeded;

use crate::partition_model::{Mesh, PartModel, all_parts};

const PARTS: (&str, &str) = ("/mesh.parts", "/mesh.parts.tmp");
const EDGES: (&str, &str) = ("/mesh.edges", "/mesh.edges.tmp");

fn paths(names: (&'static str, &'static str)) -> (&'static Path, &'static Path) {
    (Path::new(names.0), Path::new(names.1))
}

fn on_ranks<T: Send>(ranks: usize, disk: &Arc<dyn Disk>, body: impl Fn(&Team) -> Result<T> + Sync) -> Vec<T> {
    let run = |comm: Arc<dyn Comm>| body(&Team::new(comm));
    let outcomes = threads::run(ranks, None, disk.clone(), Faults::none(), run);
    outcomes.into_iter().map(|outcome| outcome.unwrap()).collect()
}

fn computed(team: &Team, mesh: &Mesh) -> Result<Arc<Partition>> {
    let own = mesh.edges_of(team.rank());
    let mut edges = EdgeArrays { first: &mesh.first[own.clone()], second: &mesh.second[own] };
    let vector = NodeRanks::new(team, &Vector::Replicated(mesh.vector[..].into()), None)?;
    let settings = PartitionSettings { base: mesh.base, ..PartitionSettings::default() };
    Ok(Arc::new(partition(team, &mut edges, &vector, &settings)?))
}

/// Partitions the mesh and keeps what came of it, in both kinds of file; the bytes are written by another thread.
fn keep(team: &Team, disk: &Arc<dyn Disk>, part: &Arc<Partition>) -> Result<[u64; 2]> {
    let parts = HistoryWriter::parts(team, &**disk, paths(PARTS), part)?;
    let edges = HistoryWriter::edges(team, &**disk, paths(EDGES), part)?;
    let lengths = [parts.length(), edges.length()];
    let write = || [parts.write(&**disk), edges.write(&**disk)];
    let [first, second] = std::thread::scope(|scope| scope.spawn(write).join().unwrap());
    let sum = |bytes: &Result<u64>| Ok(vec![*bytes.as_ref().unwrap_or(&0)]);
    let written = [team.sums("sum", sum(&first))?.total[0], team.sums("sum", sum(&second))?.total[0]];
    parts.finish(team, &**disk, first)?;
    edges.finish(team, &**disk, second)?;
    assert_eq!(written, lengths, "every byte of a file is written, once");
    Ok(lengths)
}

fn contents(disk: &Arc<dyn Disk>, path: &str) -> Vec<u8> {
    let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
    let file = team.open("open", Path::new(path), FileMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn put(disk: &Arc<dyn Disk>, path: &str, bytes: &[u8]) {
    let _ = disk.unlink(Path::new(path));
    write_all_at(&*disk.create_new(Path::new(path)).unwrap(), bytes, 0).unwrap();
}

#[test]
fn what_is_kept_equals_what_was_computed() {
    for seed in seeds(60) {
        let mut random = seeded(seed);
        let mesh = Mesh::random(&mut random);
        let disk = SimWorld::memory().disk;
        let parts = on_ranks(mesh.ranks, &disk, |team| {
            let part = computed(team, &mesh)?;
            keep(team, &disk, &part)?;
            Ok((PartModel::of(&part), part.key()))
        });
        let key = all_parts(&parts);
        // The same ranks: parts, without anything sent but agreement.
        let again = on_ranks(mesh.ranks, &disk, |team| {
            let part = read_parts(team, Path::new(PARTS.0), key.mesh, key.vector)?;
            let (counters, rounds) = (team.counters(), team.size().next_power_of_two().ilog2());
            assert!(counters.sent <= u64::from(rounds) * 24 * counters.collectives);
            assert_eq!(part.source(), PartitionSource::Parts);
            Ok((PartModel::of(&part), part.key()))
        });
        assert!(again == parts, "seed {seed}");
        // Any number of ranks, and any vector, in any form.
        for ranks in [mesh.ranks, 1, 1 + random.below(12) as usize] {
            let other: Vec<i64> = match ranks == mesh.ranks {
                true => mesh.vector.clone(),
                false => (0..mesh.nodes).map(|_| random.below(ranks as u64) as i64).collect(),
            };
            let (share, shared) = (other.len().div_ceil(ranks), random.below(2) == 0);
            let buffer = [1, 1 << 20][random.below(2) as usize];
            let found = on_ranks(ranks, &disk, |team| {
                let own = |rank: usize| (rank * share).min(other.len());
                let vector = match shared {
                    true => Vector::Shares(other[own(team.rank())..own(team.rank() + 1)].into()),
                    false => Vector::Replicated(other[..].into()),
                };
                let vector = NodeRanks::new(team, &vector, None)?;
                let part = read_edges(team, Path::new(EDGES.0), key.mesh, &vector, buffer)?;
                assert_eq!(part.source(), PartitionSource::Edges);
                let counters = team.counters();
                let rounds = u64::from(team.size().next_power_of_two().ilog2());
                assert!(shared || counters.sent <= rounds * 64 * counters.collectives);
                Ok((PartModel::of(&part), part.key()))
            });
            for (rank, (part, _)) in found.iter().enumerate() {
                assert!(*part == mesh.part(&other, rank), "seed {seed}, {ranks} ranks, rank {rank}");
            }
            let again = all_parts(&found);
            assert_eq!(again, PartitionKey { vector: again.vector, ranks: ranks as u32, ..key });
            assert_eq!(again.vector == key.vector, ranks == mesh.ranks);
        }
    }
}

/// Two ranks' mesh with a node of very many edges, so that its row is in several blocks.
fn star() -> Mesh {
    let edges = 40_000;
    let vector: Vec<i64> = (0..500).map(|node| (node / 250) as i64).collect();
    Mesh {
        ranks: 2,
        nodes: 500,
        base: 0,
        first: (0..edges).map(|n| if n % 3 == 0 { n % 500 } else { 7 }).collect(),
        second: (0..edges).map(|n| (n * 7 + 1) % 500).collect(),
        vector,
        edge_cuts: vec![0, 9, edges as usize],
        node_cuts: vec![0, 250, 500],
    }
}

#[test]
fn long_rows_go_over_several_blocks_and_others_are_not_read() {
    let (mesh, disk) = (star(), SimWorld::memory().disk);
    let keys = on_ranks(2, &disk, |team| {
        let part = computed(team, &mesh)?;
        keep(team, &disk, &part)?;
        Ok(part.key())
    });
    // One rank has many blocks, one few, and one a single node.
    let vector: Vec<i64> = (0..500).map(|node| i64::from(node >= 250) + i64::from(node >= 499)).collect();
    let found = on_ranks(3, &disk, |team| {
        let vector = NodeRanks::new(team, &Vector::Replicated(vector[..].into()), None)?;
        let part = read_edges(team, Path::new(EDGES.0), keys[0].mesh, &vector, 1)?;
        Ok((PartModel::of(&part), part.bytes_read()))
    });
    for (rank, (part, _)) in found.iter().enumerate() {
        assert!(*part == mesh.part(&vector, rank));
    }
    let length = contents(&disk, EDGES.0).len() as u64;
    let (most, few, one) = (found[0].1, found[1].1, found[2].1);
    assert!(most < length && few < length && most + few < length + length / 2, "{most} {few} of {length}");
    assert!(one <= few && few < most, "{one} {few} {most}");
}

#[test]
fn a_file_of_another_mesh_vector_or_count_is_named_and_not_used() {
    let (mesh, disk) = (star(), SimWorld::memory().disk);
    let key = on_ranks(2, &disk, |team| {
        let part = computed(team, &mesh)?;
        keep(team, &disk, &part)?;
        Ok(part.key())
    })[0];
    let parts = |ranks: usize, mesh: ContentSum, vector: ContentSum, path: &str| {
        let found = threads::run(ranks, None, disk.clone(), Faults::none(), |comm| {
            read_parts(&Team::new(comm), Path::new(path), mesh, vector).map(drop)
        });
        let errors: Vec<Error> = found.into_iter().map(|outcome| outcome.unwrap_err()).collect();
        assert!(errors.iter().all(|error| error.message() == errors[0].message()));
        assert!(errors[0].message().contains(path), "{}", errors[0]);
        errors.into_iter().next().unwrap()
    };
    let (mesh_sum, other) = (key.mesh, ContentSum(5));
    for (error, what) in [
        (parts(2, other, key.vector, PARTS.0), "another mesh"),
        (parts(2, mesh_sum, other, PARTS.0), "another vector"),
        (parts(3, mesh_sum, key.vector, PARTS.0), "another number of ranks: 2, not 3"),
    ] {
        assert!(error.kind() == ErrorKind::Conflict && error.message().contains(what), "{error}");
    }
    assert_eq!(parts(2, mesh_sum, key.vector, "/absent").kind(), ErrorKind::NotFound);
    assert_eq!(parts(2, mesh_sum, key.vector, EDGES.0).kind(), ErrorKind::Corrupt, "of the other kind");
    let edges = |nodes: u64, mesh: ContentSum| {
        let found = on_ranks(1, &disk, |team| {
            let vector = NodeRanks::new(team, &Vector::Block, Some(nodes))?;
            Ok(read_edges(team, Path::new(EDGES.0), mesh, &vector, 1 << 20).map(drop))
        });
        found.into_iter().next().unwrap().unwrap_err()
    };
    let (mesh, nodes) = (edges(500, other), edges(499, mesh_sum));
    assert!(mesh.kind() == ErrorKind::Conflict && mesh.message().contains("another mesh"), "{mesh}");
    assert!(nodes.kind() == ErrorKind::Conflict && nodes.message().contains("500, not 499"), "{nodes}");
}

#[test]
fn every_flipped_byte_and_every_cut_is_found() {
    let mut mesh = star();
    (mesh.nodes, mesh.edge_cuts) = (30, vec![0, 20, 60]);
    mesh.vector.truncate(30);
    mesh.vector.iter_mut().enumerate().for_each(|(node, rank)| *rank = (node % 2) as i64);
    for ends in [&mut mesh.first, &mut mesh.second] {
        ends.truncate(60);
        ends.iter_mut().for_each(|end| *end %= 30);
    }
    let disk = SimWorld::memory().disk;
    let key = on_ranks(2, &disk, |team| {
        let part = computed(team, &mesh)?;
        keep(team, &disk, &part)?;
        Ok(part.key())
    })[0];
    let read = |path: &'static str| {
        threads::run(2, None, disk.clone(), Faults::none(), |comm| {
            let team = Team::new(comm);
            match path == PARTS.0 {
                true => read_parts(&team, Path::new(path), key.mesh, key.vector).map(drop),
                false => {
                    let vector = NodeRanks::new(&team, &Vector::Replicated(mesh.vector[..].into()), None)?;
                    read_edges(&team, Path::new(path), key.mesh, &vector, 1 << 20).map(drop)
                }
            }
        })
    };
    for path in [PARTS.0, EDGES.0] {
        let whole = contents(&disk, path);
        assert!(read(path).iter().all(Result::is_ok));
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            put(&disk, path, &bytes);
            for outcome in read(path) {
                assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corrupt, "{path}, byte {at}");
            }
        }
        for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
            put(&disk, path, &whole[..length]);
            assert!(read(path).into_iter().all(|outcome| outcome.unwrap_err().kind() == ErrorKind::Corrupt));
        }
        put(&disk, path, &[&whole[..], b"x"].concat());
        assert!(read(path).iter().all(Result::is_err));
        put(&disk, path, &whole);
        assert!(read(path).iter().all(Result::is_ok));
    }
}

#[test]
fn a_failure_at_any_step_reaches_all_and_leaves_no_file_half_written() {
    let mesh = star();
    let mut tried = 0;
    for nth in 1.. {
        let disk = SimWorld::memory().disk;
        let faults = Faults::step(1, nth);
        let outcomes = threads::run(2, None, disk.clone(), faults.clone(), |comm| {
            let team = Team::new(comm);
            let run = || -> Result<()> {
                let part = computed(&team, &mesh)?;
                let key = part.key();
                keep(&team, &disk, &part)?;
                read_parts(&team, Path::new(PARTS.0), key.mesh, key.vector)?;
                let vector = NodeRanks::new(&team, &Vector::Replicated(mesh.vector[..].into()), None)?;
                read_edges(&team, Path::new(EDGES.0), key.mesh, &vector, 1 << 20).map(drop)
            };
            Ok(run().err().map(|error| error.to_string()))
        });
        if !faults.struck() {
            break;
        }
        tried += 1;
        for outcome in outcomes {
            assert!(outcome.unwrap().unwrap().contains("rank 1"), "step {nth}");
        }
        for (path, magic) in [(PARTS.0, b"FSPP"), (EDGES.0, b"FSPE")] {
            let there = disk.stat(Path::new(path)).is_ok();
            assert!(!there || contents(&disk, path).starts_with(magic), "a file that has its name is whole");
        }
    }
    assert!(tried > 30, "{tried}");

    // What a rank could not write keeps the file from getting its name, on all.
    let disk = SimWorld::memory().disk;
    let outcomes = threads::run(2, None, disk.clone(), Faults::none(), |comm| {
        let team = Team::new(comm);
        let part = computed(&team, &mesh)?;
        let writer = HistoryWriter::parts(&team, &*disk, paths(PARTS), &part)?;
        let written = writer.write(&*disk);
        let failed = if team.rank() == 1 { Err(Error::unavailable("the disk is full")) } else { written };
        Ok(writer.finish(&team, &*disk, failed).unwrap_err())
    });
    assert!(outcomes.into_iter().all(|error| error.unwrap().message().contains("rank 1: the disk is full")));
    for path in [PARTS.0, PARTS.1] {
        assert!(disk.stat(Path::new(path)).is_err(), "{path} is gone");
    }
}
