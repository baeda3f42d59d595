//! Partitions stored in files: each is used only for its own mesh and vector, and no damage goes unnoticed.
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

/// Partitions the mesh and stores the result, in both kinds of file; another thread writes the bytes.
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
    for seed in seeds(40) {
        let mut random = seeded(seed);
        let mesh = Mesh::random(&mut random);
        let disk = SimWorld::memory().disk;
        let parts = on_ranks(mesh.ranks, &disk, |team| {
            let part = computed(team, &mesh)?;
            keep(team, &disk, &part)?;
            Ok((PartModel::of(&part), part.key()))
        });
        let key = all_parts(&parts);
        // The same ranks: parts, without any traffic except agreement.
        let again = on_ranks(mesh.ranks, &disk, |team| {
            let part = read_parts(team, Path::new(PARTS.0), key.mesh, key.vector)?;
            let (counters, rounds) = (team.counters(), team.size().next_power_of_two().ilog2());
            assert!(counters.sent <= u64::from(rounds) * 56 * counters.collectives);
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

/// A mesh for two ranks with a node of very many edges, so that its row is in several blocks.
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
    // One rank has many blocks, one a few, and one a single node.
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

    // A failed write on one rank keeps the file from getting its name, on all.
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

#[test]
fn rows_of_scattered_nodes_are_read_once_and_sent() {
    let (mut mesh, disk) = (star(), SimWorld::memory().disk);
    let edges = 240_000u64;
    mesh.first = (0..edges).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i64 % 500).collect();
    mesh.second = (0..edges).map(|n| (n.wrapping_mul(0xc2b2_ae3d_27d4_eb4f) >> 40) as i64 % 500).collect();
    mesh.edge_cuts = vec![0, 100_000, edges as usize];
    let key = on_ranks(2, &disk, |team| {
        let part = computed(team, &mesh)?;
        keep(team, &disk, &part)?;
        Ok(part.key())
    })[0];
    let vector: Vec<i64> = (0..500).map(|node| node * 7 % 3).collect();
    let read = |shared: bool, faults: Faults| {
        threads::run(3, None, disk.clone(), faults, |comm| {
            let team = Team::new(comm);
            let own = team.rank() * 500 / 3..(team.rank() + 1) * 500 / 3;
            let given = match shared {
                true => Vector::Shares(vector[own].into()),
                false => Vector::Replicated(vector[..].into()),
            };
            let given = NodeRanks::new(&team, &given, None)?;
            let part = read_edges(&team, Path::new(EDGES.0), key.mesh, &given, 1)?;
            Ok((PartModel::of(&part), part.bytes_read(), team.counters().sent))
        })
    };
    let length = contents(&disk, EDGES.0).len() as u64;
    for shared in [false, true] {
        let (mut all_read, mut all_sent) = (0, 0);
        for (rank, part) in read(shared, Faults::none()).into_iter().enumerate() {
            let (part, bytes, sent) = part.unwrap();
            assert!(part == mesh.part(&vector, rank), "rank {rank}");
            (all_read, all_sent) = (all_read + bytes, all_sent + sent);
        }
        assert!(all_read < length + length / 20, "{all_read} of {length}");
        // Two thirds of the rows go elsewhere, 12 bytes for each edge in a row.
        assert!(all_sent < 2 * edges * 12 * 2 / 3 * 11 / 10, "{all_sent}");
        for nth in 1.. {
            let faults = Faults::step(2, nth);
            let outcomes = read(shared, faults.clone());
            if !faults.struck() {
                assert!(nth > 10);
                break;
            }
            assert!(outcomes.into_iter().all(|outcome| outcome.unwrap_err().message().contains("rank 2")));
        }
    }
    let mut bytes = contents(&disk, EDGES.0);
    *bytes.last_mut().unwrap() ^= 1;
    put(&disk, EDGES.0, &bytes);
    for shared in [false, true] {
        for outcome in read(shared, Faults::none()) {
            let error = outcome.unwrap_err();
            assert!(
                error.kind() == ErrorKind::Corrupt && error.message().contains("rank 2: block"),
                "{error}"
            );
        }
    }
}

/// Reads files of narrow numbers, using only `spec/partition-history.md`.
struct SpecReader(Vec<u8>);

impl SpecReader {
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }
    fn u64(&self, at: usize) -> usize {
        u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap()) as usize
    }
    fn u128(&self, at: usize) -> u128 {
        u128::from_le_bytes(self.0[at..at + 16].try_into().unwrap())
    }
    fn list(&self, at: &mut usize, count: usize) -> Vec<u32> {
        let list = (0..count).map(|n| self.u32(*at + 4 * n)).collect();
        *at += 4 * count;
        list
    }
    /// Checks the header; returns the number of entries.
    fn header(&self, magic: &[u8; 4], mesh: &Mesh, sums: [u128; 2]) -> usize {
        assert_eq!((&self.0[..4], &self.0[4..8]), (&magic[..], &[1, 0, 4, 4][..]));
        assert_eq!([self.u128(8), self.u128(24)], sums);
        assert_eq!((self.u64(40), self.u64(48)), (mesh.nodes as usize, mesh.first.len()));
        assert_eq!((self.u32(56), self.u32(60), self.u64(72)), (mesh.ranks as u32, 0, self.0.len()));
        assert!(self.0[80..124].iter().all(|byte| *byte == 0));
        assert_eq!(self.u32(124), crc32c::crc32c(&self.0[..124]));
        self.u64(64)
    }
    /// Checks an entry and its data of `length` bytes; returns their begin.
    fn entry(&self, number: usize, length: usize) -> usize {
        let at = 128 + 48 * number;
        let sum = crc32c::crc32c(&(number as u64).to_le_bytes());
        assert_eq!(self.u32(at + 44), crc32c::crc32c_append(sum, &self.0[at..at + 44]));
        let begin = self.u64(at);
        assert_eq!(self.u32(at + 40), crc32c::crc32c(&self.0[begin..begin + length]));
        begin
    }
}

#[test]
fn the_files_are_as_the_specification_says() {
    let (mesh, disk) = (star(), SimWorld::memory().disk);
    on_ranks(2, &disk, |team| {
        let part = computed(team, &mesh)?;
        keep(team, &disk, &part)
    });
    let hash = |words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        xxhash_rust::xxh3::xxh3_128(&bytes)
    };
    let (nodes, count) = (mesh.nodes, mesh.first.len());
    let edges = (0..count).map(|n| hash(&[n as u64, mesh.first[n] as u64, mesh.second[n] as u64]));
    let mesh_sum = edges.fold(hash(&[u64::MAX, nodes, count as u64]), u128::wrapping_add);
    let ranks = mesh.vector.iter().enumerate().map(|(node, rank)| hash(&[node as u64, *rank as u64]));
    let vector_sum = ranks.fold(hash(&[u64::MAX, nodes, 2]), u128::wrapping_add);

    let file = SpecReader(contents(&disk, PARTS.0));
    assert_eq!(file.header(b"FSPP", &mesh, [mesh_sum, vector_sum]), 2);
    for rank in 0..2 {
        let at = 128 + 48 * rank;
        let (o, g, m, f) = (file.u64(at + 8), file.u64(at + 16), file.u64(at + 24), file.u64(at + 32));
        let mut at = file.entry(rank, 4 * (o + g) + 4 * g + 12 * m);
        let wide = |list: Vec<u32>| list.into_iter().map(i64::from).collect();
        let part = PartModel {
            nodes: wide(file.list(&mut at, o + g)),
            owned: o,
            ghost_ranks: file.list(&mut at, g),
            edges: wide(file.list(&mut at, m)),
            owned_edges: f,
            ends: file.list(&mut at, 2 * m).chunks(2).map(|ends| [ends[0], ends[1]]).collect(),
        };
        assert!(part == mesh.part(&mesh.vector, rank));
    }

    let file = SpecReader(contents(&disk, EDGES.0));
    let blocks = file.header(b"FSPE", &mesh, [mesh_sum, 0]);
    assert!(blocks > 3);
    let mut found = Vec::new();
    for block in 0..blocks {
        let at = 128 + 48 * block;
        let (r, n) = (file.u32(at + 8) as usize, file.u32(at + 12) as usize);
        assert!(n <= 16_384 && file.u64(at + 32) == 0);
        let mut begin = file.entry(block, 8 * r + 8 * n);
        let (nodes, counts) = (file.list(&mut begin, r), file.list(&mut begin, r));
        let (numbers, others) = (file.list(&mut begin, n), file.list(&mut begin, n));
        assert_eq!((nodes[0] as usize, nodes[r - 1] as usize), (file.u64(at + 16), file.u64(at + 24)));
        assert!(nodes.is_sorted_by(|a, b| a < b));
        let rows = nodes.iter().zip(counts).flat_map(|(node, count)| vec![*node; count as usize]);
        for ((node, number), other) in rows.zip(numbers).zip(others) {
            let (is_second, other) = (other >> 31 == 1, other & (u32::MAX >> 1));
            let ends = if is_second { (other, node) } else { (node, other) };
            found.push((number, is_second, ends));
        }
    }
    found.sort_unstable();
    let mut expected = Vec::new();
    for edge in 0..count {
        let (first, second) = mesh.ends(edge);
        let rows = if first == second { vec![false] } else { vec![false, true] };
        expected.extend(rows.into_iter().map(|row| (edge as u32, row, (first as u32, second as u32))));
    }
    assert!(found == expected);
}

#[test]
fn ranks_in_different_calls_or_with_other_arguments_learn_so() {
    let (mesh, disk) = (star(), SimWorld::memory().disk);
    let part = |team: &Team| {
        let part = computed(team, &mesh)?;
        keep(team, &disk, &part)?;
        Ok(part)
    };
    let key = on_ranks(2, &disk, |team| Ok(part(team)?.key()))[0];
    let errors = |body: &(dyn Fn(&Team, &NodeRanks<'_>) -> Result<()> + Sync)| {
        let found = threads::run(2, None, disk.clone(), Faults::none(), |comm| {
            let team = Team::new(comm);
            let vector = NodeRanks::new(&team, &Vector::Replicated(mesh.vector[..].into()), None)?;
            body(&team, &vector)
        });
        assert!(found.iter().all(|outcome| outcome.as_ref().unwrap_err().kind() == ErrorKind::Conflict));
    };
    let path = Path::new(EDGES.0);
    errors(&|team, vector| {
        let buffer = if team.rank() == 0 { 5 } else { 6 };
        read_edges(team, path, key.mesh, vector, buffer).map(drop)
    });
    errors(&|team, vector| match team.rank() {
        0 => read_edges(team, path, key.mesh, vector, 5).map(drop),
        _ => read_parts(team, Path::new(PARTS.0), key.mesh, key.vector).map(drop),
    });
    errors(&|team, _| {
        let part = computed(team, &mesh)?;
        match team.rank() {
            0 => part.update(team, &mut [], 5),
            _ => HistoryWriter::edges(team, &*disk, paths(EDGES), &part).map(drop),
        }
    });
}
