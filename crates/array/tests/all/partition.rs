//! Partitions, compared with brute force: both methods, all forms of the vector, random meshes and shares, on
//! threads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::buffer::{BufferMut, Element};
use fieldstone_array::distributed::partition::source::{EdgeArrays, EdgeReader, EdgeSource};
use fieldstone_array::distributed::partition::vector::{NodeRanks, Vector};
use fieldstone_array::distributed::partition::{
    Coordinates, Partition, PartitionMethod, PartitionSettings, PartitionSource, mesh_checksum,
};
use fieldstone_core::env::Disk;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, FileMode, Team, single::SingleComm};
use fieldstone_core::env::sim::{Random, SimWorld};
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::seeded;

use crate::partition_model::{Mesh, PartModel, all_parts, cuts};

const PATH: &str = "/mesh.part";

/// The forms in which a test passes a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Replicated,
    Narrow,
    Shares,
    File,
}

fn disk_with(text: &str) -> Arc<dyn Disk> {
    let disk = SimWorld::memory().disk;
    let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
    let file = team.open("create", Path::new(PATH), FileMode::CreateNew).unwrap();
    file.write_at(text.as_bytes(), 0).unwrap();
    disk
}

/// The arguments of a test's partition: the number of nodes, and the settings.
#[derive(Debug, Clone, Copy)]
struct How {
    nodes: Option<u64>,
    settings: PartitionSettings,
}

fn partition(team: &Team, edges: &mut dyn EdgeSource, vector: &Vector<'_>, how: &How) -> Result<Partition> {
    let vector = NodeRanks::new(team, vector, how.nodes)?;
    fieldstone_array::distributed::partition::partition(team, edges, &vector, &how.settings)
}

fn how(mesh: &Mesh, random: &mut Random) -> How {
    let method = [PartitionMethod::Direct, PartitionMethod::Ring][random.below(2) as usize];
    let buffer = [1, 10_000, 1 << 20][random.below(3) as usize];
    let nodes = (random.below(2) == 0).then_some(mesh.nodes);
    How { nodes, settings: PartitionSettings { base: mesh.base, method, buffer } }
}

/// A rank's partition of the mesh by its vector, passed in some form.
fn part(team: &Team, mesh: &Mesh, form: Form, how: &How) -> Result<Partition> {
    let rank = team.rank();
    let narrow: Vec<i32> = mesh.vector.iter().map(|rank| *rank as i32).collect();
    let vector = match form {
        Form::Replicated => Vector::Replicated(mesh.vector[..].into()),
        Form::Narrow => Vector::Replicated(narrow[..].into()),
        Form::Shares => Vector::Shares(mesh.vector[mesh.nodes_of(rank)].into()),
        Form::File => Vector::File(Path::new(PATH)),
    };
    let edges = mesh.edges_of(rank);
    let mut edges = EdgeArrays { first: &mesh.first[edges.clone()], second: &mesh.second[edges] };
    partition(team, &mut edges, &vector, how)
}

fn on_ranks<T: Send>(ranks: usize, disk: &Arc<dyn Disk>, body: impl Fn(&Team) -> Result<T> + Sync) -> Vec<T> {
    let run = |comm: Arc<dyn Comm>| body(&Team::new(comm));
    let outcomes = threads::run(ranks, None, disk.clone(), Faults::none(), run);
    outcomes.into_iter().map(|outcome| outcome.unwrap()).collect()
}

#[test]
fn parts_equal_those_found_edge_by_edge() {
    for seed in seeds(80) {
        let mut random = seeded(seed);
        let mesh = Mesh::random(&mut random);
        let form = [Form::Replicated, Form::Narrow, Form::Shares, Form::File][random.below(4) as usize];
        let mut how = how(&mesh, &mut random);
        let ends = ["\n", "\r\n", "  \n"][random.below(3) as usize];
        let lines: Vec<String> = mesh.vector.iter().map(|rank| rank.to_string()).collect();
        let disk = disk_with(&(lines.join(ends) + ["", "\n"][random.below(2) as usize]));
        let mut keys = Vec::new();
        for method in [PartitionMethod::Direct, PartitionMethod::Ring] {
            how.settings.method = method;
            let parts = on_ranks(mesh.ranks, &disk, |team| {
                let part = part(team, &mesh, form, &how)?;
                assert_eq!(part.source(), PartitionSource::Computed);
                let view = part.node_view().resolve(&[mesh.nodes, 3], team.rank(), team.size())?;
                assert_eq!(view.local_shape(), [part.nodes().len() as u64, 3]);
                assert_eq!(view.written().elements(), 3 * part.owned() as u64);
                let view = part.edge_view().resolve(&[part.key().edges], team.rank(), team.size())?;
                assert_eq!(view.written().elements(), part.owned_edges() as u64);
                Ok((PartModel::of(&part), part.key()))
            });
            for (rank, (part, _)) in parts.iter().enumerate() {
                let expected = mesh.part(&mesh.vector, rank);
                assert!(*part == expected, "seed {seed}, {form:?}, {method:?}, rank {rank}");
            }
            keys.push(all_parts(&parts));
        }
        assert_eq!(keys[0], keys[1]);
        assert_eq!((keys[0].nodes, keys[0].edges), (mesh.nodes, mesh.first.len() as u64));
    }
}

#[test]
fn block_and_hilbert_need_no_vector() {
    for seed in seeds(24) {
        let mut random = seeded(seed);
        let mesh = Mesh::random(&mut random);
        let mut how = how(&mesh, &mut random);
        how.nodes = Some(mesh.nodes);
        let dims = 2 + random.below(2) as usize;
        // Few values, so that many nodes are at the same place, or many values.
        let values = [3, 1 << 40][random.below(2) as usize];
        let points: Vec<f64> =
            (0..mesh.nodes as usize * dims).map(|_| random.below(values) as f64 - 2.5).collect();
        let disk = SimWorld::memory().disk;
        let edges = |rank: usize| EdgeArrays {
            first: &mesh.first[mesh.edges_of(rank)],
            second: &mesh.second[mesh.edges_of(rank)],
        };
        let counts: Vec<usize> = (0..mesh.ranks)
            .map(|rank| {
                mesh.nodes as usize / mesh.ranks + usize::from(rank < mesh.nodes as usize % mesh.ranks)
            })
            .collect();
        let blocks = on_ranks(mesh.ranks, &disk, |team| {
            let part = partition(team, &mut edges(team.rank()), &Vector::Block, &how)?;
            Ok((PartModel::of(&part), part.key()))
        });
        let vector: Vec<i64> =
            counts.iter().enumerate().flat_map(|(rank, count)| vec![rank as i64; *count]).collect();
        for (rank, (part, _)) in blocks.iter().enumerate() {
            assert!(*part == mesh.part(&vector, rank), "seed {seed}, block, rank {rank}");
        }
        let explicit = on_ranks(mesh.ranks, &disk, |team| {
            let vector = Vector::Replicated(vector[..].into());
            Ok(partition(team, &mut edges(team.rank()), &vector, &how)?.key())
        });
        assert_eq!(explicit[0], blocks[0].1, "block is the vector that says the same");

        let hilbert = |cuts: &[usize]| {
            on_ranks(mesh.ranks, &disk, |team| {
                let own = &points[cuts[team.rank()] * dims..cuts[team.rank() + 1] * dims];
                let arrays: Vec<Vec<f64>> =
                    (0..dims).map(|dim| own.iter().skip(dim).step_by(dims).copied().collect()).collect();
                let arrays: Vec<&[f64]> = arrays.iter().map(|array| &array[..]).collect();
                let coordinates = match team.size() % 2 {
                    0 => Coordinates::Points { values: own, dims },
                    _ => Coordinates::Arrays(&arrays),
                };
                let vector = Vector::Hilbert(coordinates);
                let part = partition(team, &mut edges(team.rank()), &vector, &how)?;
                Ok((PartModel::of(&part), part.key()))
            })
        };
        let parts = hilbert(&mesh.node_cuts);
        let mut vector = vec![-1; mesh.nodes as usize];
        for (rank, (part, _)) in parts.iter().enumerate() {
            assert_eq!(part.owned, counts[rank], "equal shares");
            part.nodes[..part.owned].iter().for_each(|node| vector[*node as usize] = rank as i64);
        }
        for (rank, (part, _)) in parts.iter().enumerate() {
            assert!(*part == mesh.part(&vector, rank), "seed {seed}, hilbert, rank {rank}");
        }
        let again = hilbert(&cuts(&mut random, mesh.nodes, mesh.ranks));
        assert!(again == parts, "seed {seed}: however the coordinates are shared out");
    }
}

#[test]
fn shares_along_the_curve_are_compact() {
    // A grid in a shuffled order: each of the 16 shares of a square of 64 x 64 is a square of 16 x 16.
    let (side, ranks) = (64i64, 16);
    let at = |node: i64| node * 1663 % (side * side);
    let points: Vec<f64> =
        (0..side * side).flat_map(|node| [(at(node) % side) as f64, (at(node) / side) as f64]).collect();
    let disk = SimWorld::memory().disk;
    let parts = on_ranks(ranks, &disk, |team| {
        let own = team.rank() * points.len() / ranks..(team.rank() + 1) * points.len() / ranks;
        let vector = Vector::Hilbert(Coordinates::Points { values: &points[own], dims: 2 });
        let mut edges = EdgeArrays::<i32> { first: &[], second: &[] };
        Ok(partition(
            team,
            &mut edges,
            &vector,
            &How { nodes: None, settings: PartitionSettings::default() },
        )?
        .nodes()
        .to_vec())
    });
    for nodes in parts {
        for of in [|at: i64| at % 64, |at: i64| at / 64] {
            let places: Vec<i64> = nodes.iter().map(|node| of(at(*node))).collect();
            assert_eq!(places.iter().max().unwrap() - places.iter().min().unwrap(), 15);
        }
    }
}

#[test]
fn ghosts_get_their_owners_values() {
    for seed in seeds(24) {
        let mut random = seeded(seed);
        let mesh = Mesh::random(&mut random);
        let how = how(&mesh, &mut random);
        let buffer = [1, 500, 1 << 20][random.below(3) as usize];
        on_ranks(mesh.ranks, &SimWorld::memory().disk, |team| {
            let part = part(team, &mesh, Form::Shares, &how)?;
            let nodes = part.nodes();
            let value = |node: i64, component: i64| node * 10 + component;
            let words = |value: &dyn Fn(i64, i64) -> i64, components: i64| -> Vec<u8> {
                let each = |node: i64| (0..components).map(move |c| (node, c));
                nodes
                    .iter()
                    .copied()
                    .flat_map(each)
                    .flat_map(|(node, c)| value(node, c).to_le_bytes())
                    .collect()
            };
            let own = |node: i64, c: i64| {
                let owned = nodes[..part.owned()].contains(&node);
                if owned { value(node, c) } else { -1 }
            };
            let (mut one, mut three) = (words(&own, 1), words(&own, 3));
            let (count, element) = (nodes.len() as u64, Element::new(8, 8)?);
            // The second one is in Fortran order.
            let transposed = |bytes: &[u8], to_fortran: bool| {
                let mut out = vec![0; bytes.len()];
                for n in 0..count as usize {
                    for c in 0..3 {
                        let (a, b) = ((n * 3 + c) * 8, (c * count as usize + n) * 8);
                        let (to, from) = if to_fortran { (b, a) } else { (a, b) };
                        out[to..to + 8].copy_from_slice(&bytes[from..from + 8]);
                    }
                }
                out
            };
            three = transposed(&three, true);
            let strides = [8, 8 * count as isize];
            let mut arrays = [
                BufferMut::new(&mut one, element, &[count])?,
                BufferMut::strided(&mut three, element, &[count, 3], &strides, 0)?,
            ];
            for _ in 0..2 {
                part.update(team, &mut arrays, buffer)?;
            }
            assert!(one == words(&value, 1), "seed {seed}");
            assert!(transposed(&three, false) == words(&value, 3), "seed {seed}");
            Ok(())
        });
    }
}

/// The error that all ranks raise.
fn error(ranks: usize, disk: &Arc<dyn Disk>, body: impl Fn(&Team) -> Result<Partition> + Sync) -> Error {
    let run = |comm: Arc<dyn Comm>| {
        let team = Team::new(comm);
        let error = body(&team).map(drop).unwrap_err();
        // The ranks continue together.
        team.barrier("after")?;
        Ok(error)
    };
    let outcomes = threads::run(ranks, None, disk.clone(), Faults::none(), run);
    let errors: Vec<Error> = outcomes.into_iter().map(|outcome| outcome.unwrap()).collect();
    assert!(errors.iter().all(|error| error.message() == errors[0].message()), "{errors:?}");
    errors.into_iter().next().unwrap()
}

/// Ten edges between twelve nodes, which ranks 0 to 3 own in turn.
fn small(base: u64) -> Mesh {
    let ends = |add: i64| (0..10).map(|n| n + add + base as i64).collect();
    Mesh {
        ranks: 4,
        nodes: 12,
        base,
        first: ends(0),
        second: ends(1),
        vector: (0..12).map(|node| node % 4).collect(),
        edge_cuts: vec![0, 3, 5, 8, 10],
        node_cuts: vec![0, 2, 4, 9, 12],
    }
}

#[test]
fn bad_input_names_rank_position_and_value() {
    for base in [0, 1] {
        for method in [PartitionMethod::Direct, PartitionMethod::Ring] {
            let settings = PartitionSettings { base, method, buffer: 1 << 20 };
            let how = How { nodes: Some(12), settings };
            let disk = SimWorld::memory().disk;
            let check = |form: Form, change: &dyn Fn(&mut Mesh), kind: ErrorKind, parts: &[&str]| {
                let mut mesh = small(base);
                change(&mut mesh);
                let error = error(4, &disk, |team| part(team, &mesh, form, &how));
                assert_eq!(error.kind(), kind, "{error}");
                assert!(parts.iter().all(|part| error.message().contains(part)), "{error}: {parts:?}");
                assert!(error.hint().is_some(), "{error}");
            };
            use ErrorKind::{Conflict, Invalid};
            for (form, whose) in [(Form::Replicated, "rank 0"), (Form::Shares, "rank 2")] {
                let entry = |value: i64| move |mesh: &mut Mesh| mesh.vector[7] = value;
                check(form, &entry(4), Invalid, &[whose, "node 7", "is 4", "0 to 3"]);
                check(form, &entry(-1), Invalid, &[whose, "node 7", "is -1"]);
                check(form, &entry(1 << 32), Invalid, &[whose, "node 7"]);
                check(form, &|m| m.first[6] = base as i64 - 1, Invalid, &["rank 2", "first end of edge 6"]);
                check(
                    form,
                    &|m| m.second[9] = 12 + base as i64,
                    Invalid,
                    &["rank 3", "second end of edge 9"],
                );
                check(form, &|m| m.second[4] = i64::MIN, Invalid, &["rank 1", "-9223372036854775808"]);
                let short = |mesh: &mut Mesh| {
                    mesh.vector.truncate(11);
                    mesh.node_cuts = vec![0, 2, 4, 9, 11];
                };
                check(form, &short, Invalid, &["11 entries", "12 nodes"]);
            }
            let differing = |mesh: &Mesh, team: &Team| {
                let mut mesh = mesh.clone();
                if team.rank() == 2 {
                    mesh.vector[5] = 3;
                }
                part(team, &mesh, Form::Replicated, &how)
            };
            let found = error(4, &disk, |team| differing(&small(base), team));
            assert!(found.kind() == Invalid && found.message().contains("node 5 is 3 on rank 2"), "{found}");
            let found = error(4, &disk, |team| {
                let mut mesh = small(base);
                mesh.vector.truncate(12 - team.rank() / 3);
                part(team, &mesh, Form::Replicated, &How { nodes: None, ..how })
            });
            assert!(found.message().contains("rank 3 has 11"), "{found}");
            let found = error(4, &disk, |team| {
                let buffer = if team.rank() == 1 { 77 } else { 88 };
                part(
                    team,
                    &small(base),
                    Form::Replicated,
                    &How { settings: PartitionSettings { buffer, ..settings }, ..how },
                )
            });
            assert!(found.kind() == Conflict && found.message().contains("buffer 77"), "{found}");
            let found = error(4, &disk, |team| {
                let form = if team.rank() == 1 { Form::Shares } else { Form::Replicated };
                part(team, &small(base), form, &how)
            });
            assert!(found.kind() == Conflict && found.message().contains("shares of a vector"), "{found}");
            let found = error(4, &disk, |team| {
                let second = if team.rank() == 3 { &[1, 2][..] } else { &[1] };
                let mut edges = EdgeArrays { first: &[1], second };
                partition(team, &mut edges, &Vector::Block, &how)
            });
            assert!(found.message().contains("rank 3") && found.message().contains("2 second"), "{found}");
            let found = error(4, &disk, |team| {
                let mut edges = EdgeReader {
                    count: 600,
                    read: |at, first: &mut [i64], second: &mut [i64]| {
                        first.fill(1);
                        second.fill(1);
                        match team.rank() == 1 && at + first.len() as u64 > 256 {
                            true => Err(Code::Truncated.error("the import ends")),
                            false => Ok(()),
                        }
                    },
                };
                let how = How { settings: PartitionSettings { buffer: 1, ..settings }, ..how };
                partition(team, &mut edges, &Vector::Block, &how)
            });
            assert!(found.kind() == ErrorKind::Corrupt && found.message().contains("rank 1"), "{found}");
        }
    }
    let no_edges = || EdgeArrays::<i64> { first: &[], second: &[] };
    let how = How { nodes: None, settings: PartitionSettings::default() };
    for (text, entry) in [("0\n1\n9\n", "node 2 is `9`"), ("0\n1 1\n", "node 1 is `1 1`"), ("x", "`x`")] {
        let disk = disk_with(text);
        for ranks in [2, 5] {
            let vector = Vector::File(Path::new(PATH));
            let found = error(ranks, &disk, |team| partition(team, &mut no_edges(), &vector, &how));
            assert!(found.message().contains(entry) && found.message().contains(PATH), "{found}");
        }
    }
    let disk = SimWorld::memory().disk;
    let found = error(2, &disk, |team| partition(team, &mut no_edges(), &Vector::Block, &how));
    assert!(
        found.kind() == ErrorKind::Invalid
            && found.message().contains("does not determine the number of nodes"),
        "{found}"
    );
    let found = error(2, &disk, |team| {
        let y = if team.rank() == 1 { f64::NAN } else { 1.0 };
        let vector = Vector::Hilbert(Coordinates::Points { values: &[1.0, 2.0, 3.0, y], dims: 2 });
        partition(team, &mut no_edges(), &vector, &how)
    });
    assert!(
        found.message().contains("rank 1") && found.message().contains("coordinate 1 of node 3"),
        "{found}"
    );
    let found = error(2, &disk, |team| {
        let vector = Vector::Hilbert(Coordinates::Points { values: &[1.0; 6], dims: 2 + team.rank() });
        partition(team, &mut no_edges(), &vector, &how)
    });
    assert!(found.message().contains("have 3 dimensions"), "{found}");
}

#[test]
fn a_failure_of_one_rank_at_any_step_reaches_all() {
    let (mesh, disk) = (small(1), disk_with(&"0\n1\n2\n3\n".repeat(3)));
    for method in [PartitionMethod::Direct, PartitionMethod::Ring] {
        for form in [Form::Replicated, Form::Shares, Form::File] {
            let settings = PartitionSettings { base: 1, method, buffer: 1 };
            let how = How { nodes: None, settings };
            let mut tried = 0;
            for nth in 1.. {
                let faults = Faults::step(1, nth);
                let outcomes = threads::run(4, None, disk.clone(), faults.clone(), |comm| {
                    let team = Team::new(comm);
                    let first = part(&team, &mesh, form, &how);
                    let again = part(&team, &mesh, form, &how)?;
                    assert!(PartModel::of(&again) == mesh.part(&mesh.vector, team.rank()));
                    Ok(first.err().map(|error| error.to_string()))
                });
                if !faults.struck() {
                    break;
                }
                let errors: Vec<_> = outcomes.into_iter().map(|outcome| outcome.ok().flatten()).collect();
                if errors.iter().any(Option::is_some) {
                    assert!(
                        errors.iter().all(|error| error.as_ref().unwrap().contains("rank 1")),
                        "{errors:?}"
                    );
                    tried += 1;
                }
            }
            assert!(tried > 5, "{method:?}, {form:?}: {tried}");
            for nth in (1..60).step_by(7) {
                for faults in [Faults::call(2, nth), Faults::death(2, nth)] {
                    let outcomes = threads::run(4, None, disk.clone(), faults.clone(), |comm| {
                        part(&Team::new(comm), &mesh, form, &how).map(drop)
                    });
                    // A rank that finished before the others' failure has its part.
                    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
                    assert!(failed > 0 || !faults.struck(), "{method:?}, {form:?}, call {nth}");
                }
            }
        }
    }
}

#[test]
fn edges_are_sent_once_and_read_once() {
    for (ranks, each) in [(1, 4096u64), (4, 20_000), (16, 8192), (64, 4096), (256, 4096)] {
        let nodes = each * ranks as u64 / 8;
        let end = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % nodes;
        let owner = |node: u64| node * 31 % ranks as u64;
        let vector: Vec<i64> = (0..nodes).map(|node| owner(node) as i64).collect();
        let sent = on_ranks(ranks, &SimWorld::memory().disk, |team| {
            let rank = team.rank() as u64;
            let (mut reads, mut needed) = (0, 0);
            let mut edges = EdgeReader {
                count: each,
                read: |at, first: &mut [i64], second: &mut [i64]| {
                    assert_eq!(at, reads, "once, in order");
                    for (n, (a, b)) in first.iter_mut().zip(second).enumerate() {
                        let edge = rank * each + at + n as u64;
                        (*a, *b) = (end(2 * edge) as i64, end(2 * edge + 1) as i64);
                        let (a, b) = (owner(*a as u64), owner(*b as u64));
                        // Two ends and a number, to each other rank that has an end.
                        needed += 12 * (u64::from(a != rank) + u64::from(b != rank && b != a));
                        reads += 1;
                    }
                    Ok(())
                },
            };
            let vector = Vector::Replicated(vector[..].into());
            partition(
                team,
                &mut edges,
                &vector,
                &How { nodes: None, settings: PartitionSettings::default() },
            )?;
            assert_eq!(reads, each);
            Ok((team.counters().sent, needed))
        });
        for (sent, needed) in sent {
            assert!(
                sent as f64 <= 1.1 * needed as f64 + 8.0 * each as f64 / 1e3,
                "{ranks} ranks: {sent} of {needed}"
            );
        }
    }
}

#[test]
fn the_checksum_of_a_mesh_depends_on_its_edges_alone() {
    let disk = SimWorld::memory().disk;
    let mut random = seeded(3);
    let (first, second): (Vec<u64>, Vec<u64>) =
        (0..70_000).map(|_| (random.below(999), random.below(999))).unzip();
    let sum = |first: &[u64], second: &[u64], ranks: usize, seed: u64| {
        let cuts = cuts(&mut seeded(seed), first.len() as u64, ranks);
        let sums = on_ranks(ranks, &disk, |team| {
            let own = cuts[team.rank()]..cuts[team.rank() + 1];
            let mut edges = EdgeArrays { first: &first[own.clone()], second: &second[own] };
            mesh_checksum(team, &mut edges, 999, 0)
        });
        assert!(sums.iter().all(|sum| *sum == sums[0]));
        sums[0]
    };
    let one = sum(&first, &second, 1, 1);
    assert!((2..9).all(|ranks| sum(&first, &second, ranks, ranks as u64) == one));
    assert_ne!(sum(&second, &first, 1, 1), one, "directions");
    let mut swapped = (first.clone(), second.clone());
    swapped.0.swap(5, 60_000);
    swapped.1.swap(5, 60_000);
    assert_ne!(sum(&swapped.0, &swapped.1, 3, 1), one, "order");
    assert_ne!(sum(&first[1..], &second[1..], 3, 1), one, "one edge less");
}
