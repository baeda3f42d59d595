//! Meshes: the file does not depend on the ranks' shares; reads return what was given; errors name the fault.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_array::container::validate;
use fieldstone_array::distributed::buffer::BufferMut;
use fieldstone_array::distributed::mesh::{Mesh, MeshArray, MeshContent, MeshCoordinate, MeshRows, hex};
use fieldstone_array::distributed::plan::Settings;
use fieldstone_array::distributed::view::View;
use fieldstone_core::dtype::{DType, DTypeKind};
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, Team};
use fieldstone_core::env::sim::{OpKind, Random, SimWorld};
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::catalog::MeshLocation;
use fieldstone_format::netcdf::{Attrs, NcType, parse};
use fieldstone_testkit::require::program;
use fieldstone_testkit::samples::python_with;
use fieldstone_testkit::seeded;

pub const FOLDER: &str = "/meshes";

/// A whole mesh, with nodes counted from 0 and rows without missing nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    coordinates: Vec<Vec<f64>>,
    /// Edges, faces, volumes.
    pub rows: [Vec<Vec<i64>>; 3],
}

impl Model {
    pub fn random(random: &mut Random) -> Model {
        let nodes = 8 + random.below(60);
        let coordinates = (0..2 + random.below(2))
            .map(|_| (0..nodes).map(|_| random.below(2000) as f64 / 8.0 - 100.0).collect())
            .collect();
        let mut rows_of = |most: u64, sizes: &[u64]| {
            let count = random.below(3).min(1) * random.below(most);
            let row = |random: &mut Random| {
                let size = sizes[random.below(sizes.len() as u64) as usize];
                let all: Vec<i64> = random.shuffled((0..nodes as i64).collect());
                all[..size as usize].to_vec()
            };
            (0..count).map(|_| row(random)).collect::<Vec<_>>()
        };
        let rows = [rows_of(40, &[2]), rows_of(50, &[3, 4, 6]), rows_of(30, &[4, 5, 6, 8])];
        Model { coordinates, rows }
    }

    fn counts(&self) -> [u64; 4] {
        let [edges, faces, volumes] = &self.rows;
        [self.coordinates[0].len(), edges.len(), faces.len(), volumes.len()].map(|count| count as u64)
    }

    /// The expected result of reading an array: numbers as f64, with -1 for missing nodes.
    fn values(&self, array: MeshArray) -> Vec<f64> {
        match array {
            MeshArray::X | MeshArray::Y | MeshArray::Z => self.coordinates[array as usize].clone(),
            _ => {
                let rows = &self.rows[array as usize - MeshArray::Edges as usize];
                let width = rows.iter().map(Vec::len).max().unwrap_or(0);
                let padded = |row: &Vec<i64>| {
                    let nodes = row.iter().map(|node| *node as f64);
                    nodes.chain(std::iter::repeat(-1.0)).take(width).collect::<Vec<_>>()
                };
                rows.iter().flat_map(padded).collect()
            }
        }
    }
}

/// The caller's representation of a mesh, which does not affect its file.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    pub ranks: usize,
    pub base: i64,
    pub fill: Option<i64>,
    /// Extra entries in a row.
    pub wide: usize,
    pub seed: u64,
}

impl Spelling {
    pub const PLAIN: Spelling = Spelling { ranks: 1, base: 0, fill: None, wide: 0, seed: 0 };

    fn random(random: &mut Random) -> Spelling {
        Spelling {
            ranks: 1 + random.below(8) as usize,
            base: random.below(2) as i64,
            fill: (random.below(2) == 0).then_some(-99),
            wide: random.below(3) as usize,
            seed: random.next_u64(),
        }
    }

    /// The shares of the ranks.
    fn cuts(&self, len: usize, kind: u64) -> Vec<std::ops::Range<usize>> {
        let random = &mut *seeded(self.seed ^ kind);
        let mut at: Vec<usize> = (1..self.ranks).map(|_| random.below(len as u64 + 1) as usize).collect();
        at.extend([0, len]);
        at.sort_unstable();
        at.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }
}

fn attrs(list: &[(&str, &str)]) -> Attrs {
    let mut attrs = Attrs::default();
    list.iter().for_each(|(name, value)| attrs.push(name, NcType::Char, value.as_bytes()));
    attrs
}

pub fn create_with<T>(
    team: &Team,
    env: &Env,
    (model, spelling): (&Model, Spelling),
    act: impl Fn(Mesh) -> Result<T>,
) -> Result<T> {
    let rank = team.rank();
    let nodes = spelling.cuts(model.coordinates[0].len(), 9)[rank].clone();
    let mut rows = Vec::new();
    for (kind, all) in model.rows.iter().enumerate() {
        let width = all.iter().map(Vec::len).max().unwrap_or(2) + spelling.wide;
        let width = if kind == 0 { 2 } else { width };
        let missing = spelling.fill.unwrap_or(-1);
        let own = all[spelling.cuts(all.len(), kind as u64)[rank].clone()].iter().flat_map(|row| {
            let nodes = row.iter().map(|node| node + spelling.base);
            nodes.chain(std::iter::repeat(missing)).take(width).collect::<Vec<_>>()
        });
        rows.push((width, own.collect::<Vec<i64>>()));
    }
    let rows_of = |kind: usize| {
        let is_given = !model.rows[kind].is_empty() || spelling.wide == 1;
        is_given.then_some(MeshRows { width: rows[kind].0, nodes: &rows[kind].1 })
    };
    let units = [("longitude", "degrees_east"), ("latitude", "degrees_north"), ("height", "m")];
    let coordinates = model.coordinates.iter().zip(units).map(|(values, (standard, units))| MeshCoordinate {
        values: &values[nodes.clone()],
        attrs: attrs(&[("standard_name", standard), ("units", units)]),
    });
    let content = MeshContent {
        name: "wing",
        coordinates: coordinates.collect(),
        edges: rows_of(0),
        faces: rows_of(1),
        volumes: rows_of(2),
        base: spelling.base,
        fill: spelling.fill,
        attrs: attrs(&[("long_name", "a wing")]),
    };
    act(Mesh::create(team, env, Path::new(FOLDER), Ok(&content), |name| Ok((name.to_owned(), None)))?)
}

pub fn world() -> (SimWorld, Env) {
    let world = SimWorld::new(1);
    let env = world.process("host");
    env.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    (world, env)
}

pub fn on_ranks<T: Send>(ranks: usize, env: &Env, body: impl Fn(Team) -> Result<T> + Sync) -> Vec<Result<T>> {
    let body = |comm: Arc<dyn Comm>| body(Team::new(comm));
    threads::run(ranks, None, env.disk.clone(), Faults::none(), body)
}

pub fn all<T>(results: Vec<Result<T>>) -> Vec<T> {
    results.into_iter().map(Result::unwrap).collect()
}

/// Creates a mesh; returns its path and whether it was new.
pub fn create(env: &Env, model: &Model, spelling: Spelling) -> (PathBuf, bool) {
    let made = on_ranks(spelling.ranks, env, |team| {
        create_with(&team, env, (model, spelling), |mesh| {
            let made = (mesh.path().to_owned(), mesh.is_new());
            mesh.close()?;
            Ok(made)
        })
    });
    all(made).remove(0)
}

pub fn read_file(env: &Env, path: &Path) -> Vec<u8> {
    let file = env.disk.open_plain(path, false).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

pub fn names(env: &Env) -> Vec<String> {
    let list = env.disk.list_dir(Path::new(FOLDER)).unwrap();
    list.into_iter().map(|(name, _)| name).collect()
}

/// This rank's part of an array, as f64.
fn read(mesh: &Mesh, array: MeshArray, view: Option<&View>) -> Result<Vec<f64>> {
    let local = mesh.view(array, view)?;
    let imported = mesh.array(array)?;
    let dtype = imported.variable.dtype.to_native();
    let elements: u64 = local.local_shape().iter().product();
    let mut bytes = vec![0; elements as usize * dtype.size()];
    let mut into = BufferMut::new(&mut bytes, imported.element(dtype)?, local.local_shape())?;
    mesh.read(array, Ok((&local, &mut into)), Settings::default())?;
    Ok(match dtype.kind() {
        DTypeKind::Float => bytes.as_chunks().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect(),
        _ => bytes.as_chunks().0.iter().map(|bytes| f64::from(i32::from_ne_bytes(*bytes))).collect(),
    })
}

#[test]
fn a_file_is_the_same_for_any_ranks_and_spelling_and_holds_what_was_given() {
    for seed in 0..60 {
        let random = &mut *seeded(seed);
        let model = Model::random(random);
        let (_, env) = world();
        let (path, is_new) = create(&env, &model, Spelling::PLAIN);
        assert!(is_new);
        let bytes = read_file(&env, &path);
        for ranks in 1..=8 {
            let (_, env) = world();
            let spelling = Spelling { ranks, ..Spelling::random(random) };
            assert_eq!(create(&env, &model, spelling), (path.clone(), true), "{spelling:?}");
            assert!(read_file(&env, &path) == bytes, "{spelling:?}");
            assert_eq!(names(&env), [path.file_name().unwrap().to_string_lossy()]);
            let again = create(&env, &model, Spelling::random(random));
            assert_eq!(again, (path.clone(), false));
        }
        let report = validate::validate(&bytes).unwrap();
        assert!(report.ok && report.findings.is_empty(), "{report:?}");
        let parts = all(on_ranks(1 + (seed % 5) as usize, &env, |team| {
            let mesh = Mesh::open(&team, &*env.disk, &path, None)?;
            assert_eq!(mesh.counts(), model.counts());
            assert_eq!(path, Path::new(FOLDER).join(hex(&mesh.checksum()) + ".nc"));
            mesh.verify()?;
            let arrays: Vec<MeshArray> = mesh.arrays().collect();
            let parts = arrays.iter().map(|array| read(&mesh, *array, None)).collect::<Result<Vec<_>>>()?;
            Ok((arrays, parts))
        }));
        let (arrays, _) = parts[0].clone();
        for (place, array) in arrays.iter().enumerate() {
            let whole: Vec<f64> = parts.iter().flat_map(|(_, parts)| parts[place].clone()).collect();
            assert_eq!(whole, model.values(*array), "{array:?}");
        }
        let absent = MeshArray::ALL.into_iter().filter(|array| !arrays.contains(array));
        assert!(absent.clone().all(|array| array as usize >= model.coordinates.len()));
    }
}

#[test]
fn content_alone_decides_what_the_checksum_is() {
    let random = &mut *seeded(5);
    let mut model = Model::random(random);
    model.rows[1].push(vec![0, 1, 2]);
    model.rows[2].push(vec![0, 1, 2, 3]);
    model.rows[0] = vec![vec![4, 5], vec![5, 6]];
    let (_, env) = world();
    let mut paths = BTreeSet::from([create(&env, &model, Spelling::PLAIN).0]);
    let mut other = |change: &dyn Fn(&mut Model)| {
        let mut changed = model.clone();
        change(&mut changed);
        let (path, is_new) = create(&env, &changed, Spelling::PLAIN);
        assert!(is_new && paths.insert(path));
    };
    other(&|model| model.coordinates[0][3] += 1e-9);
    other(&|model| model.coordinates[1].swap(0, 1));
    other(&|model| model.coordinates.swap(0, 1));
    other(&|model| model.rows[0].swap(0, 1));
    other(&|model| model.rows[0][0].swap(0, 1));
    other(&|model| drop(model.rows[0].pop()));
    other(&|model| model.rows[1][0].rotate_left(1));
    other(&|model| drop(model.rows[2].pop()));
    other(&|model| model.coordinates.iter_mut().for_each(|values| values.push(0.0)));
}

#[test]
fn made_again_a_mesh_is_not_written_and_its_name_stays() {
    let model = Model::random(&mut seeded(3));
    let (world, env) = world();
    let (path, _) = create(&env, &model, Spelling::PLAIN);
    world.clear_trace();
    let before = world.counters();
    create(&env, &model, Spelling { ranks: 3, ..Spelling::PLAIN });
    let after = world.counters();
    for kind in [OpKind::Write, OpKind::Create, OpKind::Rename, OpKind::SyncData] {
        assert_eq!(after.count(kind), before.count(kind), "{kind:?}");
    }
    all(on_ranks(2, &env, |team| {
        let mesh = Mesh::open(&team, &*env.disk, &path, None)?;
        assert_eq!(mesh.topology(), "wing");
        let said = mesh.declare("tail", "meshes/x.nc", Vec::new());
        assert_eq!(
            (&*said.name, said.checksum, said.counts),
            ("tail", mesh.checksum().to_vec(), model.counts())
        );
        assert_eq!(mesh.dimension(MeshLocation::Face), "nwing_face");
        assert_eq!(mesh.count(MeshLocation::Node), model.counts()[0]);
        Ok(())
    }));
}

#[test]
fn the_header_is_ugrids() {
    let mut model = Model::random(&mut seeded(2));
    model.rows = [vec![vec![0, 1]], vec![vec![0, 1, 2, 3], vec![3, 4, 5]], vec![vec![0, 1, 2, 3, 4]]];
    model.coordinates.resize(3, model.coordinates[0].clone());
    let header_of = |model: &Model| {
        let (_, env) = world();
        let (path, _) = create(&env, model, Spelling::PLAIN);
        let bytes = read_file(&env, &path);
        let (header, _) = parse::header(&bytes).unwrap();
        let shown = |attr: fieldstone_format::netcdf::Attr<'_>| match attr.ty {
            NcType::Char => format!("{}={}", attr.name, String::from_utf8_lossy(attr.value)),
            _ => format!("{}={:?}", attr.name, attr.value),
        };
        let vars = header.vars.iter().map(|var| {
            let dims: Vec<&str> = var.dims().iter().map(|dim| header.dims.get(*dim as usize).name).collect();
            let attrs: Vec<String> = var.attrs().map(shown).collect();
            format!("{}({}) {}", var.name(), dims.join(","), attrs.join("; "))
        });
        vars.collect::<Vec<String>>()
    };
    let start = "start_index=[0, 0, 0, 0]; _FillValue=[255, 255, 255, 255]";
    assert_eq!(
        header_of(&model),
        [
            "wing_node_x(nwing_node) standard_name=longitude; units=degrees_east",
            "wing_node_y(nwing_node) standard_name=latitude; units=degrees_north",
            "wing_node_z(nwing_node) standard_name=height; units=m; mesh=wing; location=node",
            &format!(
                "wing_edge_nodes(nwing_edge,nwing_edge_nodes_max) cf_role=edge_node_connectivity; {start}"
            ),
            &format!(
                "wing_face_nodes(nwing_face,nwing_face_nodes_max) cf_role=face_node_connectivity; {start}"
            ),
            &format!(
                "wing_volume_nodes(nwing_volume,nwing_volume_nodes_max) cf_role=volume_node_connectivity; {start}"
            ),
            "wing_volume_shapes(nwing_volume) cf_role=volume_shape_type; flag_values=[0, 1, 2, 3]; \
             flag_meanings=tetrahedron pyramid wedge hexahedron",
            "wing() cf_role=mesh_topology; topology_dimension=[0, 0, 0, 3]; \
             node_coordinates=wing_node_x wing_node_y wing_node_z; node_dimension=nwing_node; \
             edge_dimension=nwing_edge; face_dimension=nwing_face; volume_dimension=nwing_volume; \
             edge_node_connectivity=wing_edge_nodes; face_node_connectivity=wing_face_nodes; \
             volume_node_connectivity=wing_volume_nodes; volume_shape_type=wing_volume_shapes; long_name=a wing",
        ]
    );
    // Volumes of a kind without a name have no shapes; for a surface, z is not a coordinate but a variable.
    model.rows[2].push(vec![0, 1, 2, 3, 4, 5, 6]);
    assert!(!header_of(&model).iter().any(|var| var.contains("shape")));
    model.rows[2].clear();
    assert!(
        header_of(&model)
            .last()
            .unwrap()
            .contains("topology_dimension=[0, 0, 0, 2]; node_coordinates=wing_node_x wing_node_y; ")
    );
    model.rows[1].clear();
    assert!(header_of(&model).last().unwrap().contains("topology_dimension=[0, 0, 0, 1]; "));
    model.rows[0].clear();
    assert!(header_of(&model).last().unwrap().contains("topology_dimension=[0, 0, 0, 0]; "));
}

/// Edges of a mesh from all ranks, in order; checks the positions of the shares.
fn edges(env: &Env, path: &Path, ranks: usize) -> Vec<[i64; 2]> {
    let shares = all(on_ranks(ranks, env, |team| {
        let mesh = Mesh::open(&team, &*env.disk, path, None)?;
        mesh.edges()
    }));
    let mut edges = Vec::new();
    for share in &shares {
        assert_eq!(share.before, edges.len() as u64);
        edges.extend(&share.ends);
    }
    assert!(shares.iter().all(|share| share.total == edges.len() as u64));
    edges
}

#[test]
fn edges_are_those_given_else_those_of_faces_and_volumes_each_once() {
    // Pairs of nodes by brute force: two nodes of a volume are joined if they are neighbours in one of its sides.
    let sides = |count: usize| -> &'static [&'static [usize]] {
        match count {
            4 => &[&[0, 1, 2], &[0, 1, 3], &[1, 2, 3], &[2, 0, 3]],
            5 => &[&[0, 1, 2, 3], &[0, 1, 4], &[1, 2, 4], &[2, 3, 4], &[3, 0, 4]],
            6 => &[&[0, 1, 2], &[3, 4, 5], &[0, 1, 4, 3], &[1, 2, 5, 4], &[2, 0, 3, 5]],
            _ => &[&[0, 1, 2, 3], &[4, 5, 6, 7], &[0, 1, 5, 4], &[1, 2, 6, 5], &[2, 3, 7, 6], &[3, 0, 4, 7]],
        }
    };
    for seed in 0..40 {
        let mut model = Model::random(&mut seeded(100 + seed));
        let given: Vec<[i64; 2]> = model.rows[0].iter().map(|row| [row[0], row[1]]).collect();
        let (_, env) = world();
        if !given.is_empty() {
            let (path, _) = create(&env, &model, Spelling::PLAIN);
            assert_eq!(edges(&env, &path, 1 + (seed % 8) as usize), given);
            model.rows[0].clear();
        }
        if seed % 3 == 0 {
            // A face that names a node twice, as for triangles among squares.
            model.rows[1].push(vec![0, 5, 5, 7]);
        }
        let mut expected = BTreeSet::new();
        let mut around = |nodes: Vec<i64>| {
            for (place, a) in nodes.iter().enumerate() {
                let b = nodes[(place + 1) % nodes.len()];
                if *a != b {
                    expected.insert([*a.min(&b), *a.max(&b)]);
                }
            }
        };
        model.rows[1].iter().for_each(|row| around(row.clone()));
        for row in &model.rows[2] {
            sides(row.len()).iter().for_each(|side| around(side.iter().map(|place| row[*place]).collect()));
        }
        let (path, _) = create(&env, &model, Spelling::PLAIN);
        for ranks in 1..=8 {
            assert_eq!(edges(&env, &path, ranks), expected.iter().copied().collect::<Vec<_>>());
        }
    }
    let (_, env) = world();
    let mut model = Model::random(&mut seeded(1));
    model.rows = [Vec::new(), Vec::new(), vec![(0..7).collect()]];
    let (path, _) = create(&env, &model, Spelling::PLAIN);
    let results = on_ranks(2, &env, |team| Mesh::open(&team, &*env.disk, &path, None)?.edges());
    let error = error_of(results, Code::Value);
    assert!(error.message().ends_with("volume 0 has 7 nodes, which do not determine its edges"), "{error}");
}

/// The error that all ranks return alike.
pub fn error_of<T>(results: Vec<Result<T>>, code: Code) -> Error {
    let mut errors: Vec<Error> = results.into_iter().map(|result| result.err().unwrap()).collect();
    let is_alike = |error: &Error| error.code() == code && error.message() == errors[0].message();
    assert!(errors.iter().all(is_alike), "{errors:?}");
    errors.remove(0)
}

/// A mesh of three nodes on each of two ranks, with faces on the second; a test changes it.
fn refused(change: impl Fn(usize, &mut MeshContent<'_>) + Sync, code: Code) -> String {
    let (_, env) = world();
    let results = on_ranks(2, &env, |team| {
        let plain = |values: &'static [f64]| MeshCoordinate { values, attrs: Attrs::default() };
        let faces: &[i64] = if team.rank() == 1 { &[0, 1, 2, -1, 5, 4, 3, 2] } else { &[] };
        let mut content = MeshContent {
            name: "m",
            coordinates: vec![plain(&[0.0, 1.0, 2.0]), plain(&[0.0, 1.0, 0.0])],
            edges: None,
            faces: Some(MeshRows { width: 4, nodes: faces }),
            volumes: None,
            base: 0,
            fill: None,
            attrs: Attrs::default(),
        };
        change(team.rank(), &mut content);
        Mesh::create(&team, &env, Path::new(FOLDER), Ok(&content), |name| Ok((name.to_owned(), None)))
            .map(drop)
    });
    let error = error_of(results, code);
    assert_eq!(names(&env), [""; 0], "nothing is left");
    error.message().to_owned()
}

#[test]
fn what_is_wrong_is_named_with_rank_position_and_value() {
    let faces = |nodes: &'static [i64]| {
        move |rank: usize, content: &mut MeshContent<'_>| {
            if rank == 1 {
                content.faces = Some(MeshRows { width: 4, nodes });
            }
        }
    };
    for (nodes, message) in [
        (&[0, 1, 2, -1, 5, 6, 3, 2][..], "rank 1: faces[1, 1] is 6, but nodes are 0 to 5"),
        (&[0, 1, -2, -1], "rank 1: faces[0, 2] is -2, but nodes are 0 to 5"),
        (&[0, 1, i64::MIN, -1], "rank 1: faces[0, 2] is -9223372036854775808, but nodes are 0 to 5"),
        (&[0, 1, -1, 3], "rank 1: row 0 of faces has 2 nodes; faces have at least 3"),
        (
            &[0, 1, 2, 3, 0, 1, 2, -1, -1, -1, -1, -1],
            "rank 1: row 2 of faces has 0 nodes; faces have at least 3",
        ),
    ] {
        let message = message.to_owned();
        let said = refused(faces(nodes), Code::Value);
        assert!(said == message || said.contains("[0, 3] is 3, but faces[0, 2] is missing"), "{said}");
    }
    let said = refused(faces(&[0, 1, -1, 3]), Code::Value);
    assert_eq!(said, "rank 1: faces[0, 3] is 3, but faces[0, 2] is missing");
    let said = refused(faces(&[0, 1, 2]), Code::Shape);
    assert_eq!(said, "rank 1: 3 entries of faces do not form rows of 4");
    let said = refused(
        |rank, content| {
            content.base = 1;
            if rank == 0 {
                content.edges = Some(MeshRows { width: 2, nodes: &[1, 6, 0, 2] });
            }
        },
        Code::Value,
    );
    assert_eq!(said, "rank 0: edges[1, 0] is 0, but nodes are 1 to 6");
    let said =
        refused(|_, content| content.edges = Some(MeshRows { width: 3, nodes: &[1, 2, 3] }), Code::Value);
    assert_eq!(said, "rank 0: row 0 of edges has 3 nodes; edges have at most 2");
    let said =
        refused(|_, content| content.volumes = Some(MeshRows { width: 3, nodes: &[1, 2, 3] }), Code::Value);
    assert_eq!(said, "rank 0: row 0 of volumes has 3 nodes; volumes have at least 4");
    let said = refused(|_, content| content.volumes = Some(MeshRows { width: 0, nodes: &[1] }), Code::Shape);
    assert_eq!(said, "rank 0: 1 entries of volumes do not form rows of 0");
    let said = refused(
        |rank, content| {
            if rank == 1 {
                content.coordinates[1].values = &[1.0];
            }
        },
        Code::ShapeMismatch,
    );
    assert_eq!(said, "rank 1: 3 nodes have an x, but 1 have a y");
    let said = refused(|_, content| content.coordinates.truncate(1), Code::Shape);
    assert_eq!(said, "rank 0: nodes have 1 coordinates");
    let said = refused(
        |_, content| {
            content.coordinates.iter_mut().for_each(|one| one.values = &[]);
            content.faces = None;
        },
        Code::Shape,
    );
    assert_eq!(said, "rank 0: the mesh has no nodes");
    let said = refused(|_, content| content.base = 2, Code::Option);
    assert_eq!(said, "rank 0: base is 2");
    for (name, message) in
        [("a/b", "name `a/b`"), ("a b", "contains a blank"), ("", "at least one character")]
    {
        let said = refused(|_, content| content.name = name, Code::Name);
        assert!(said.contains(message), "{said}");
    }
    let said = refused(|rank, content| content.base = rank as i64, Code::CollectiveMismatch);
    assert!(
        said.contains("base 0") && said.contains("rank 1 gives the mesh `m`") && said.contains("base 1"),
        "{said}"
    );
    let said = refused(
        |rank, content| {
            if rank == 1 {
                content.coordinates[0].attrs = attrs(&[("units", "m")]);
            }
        },
        Code::CollectiveMismatch,
    );
    assert!(said.contains("units=m"), "{said}");
    // Rows of other widths, and no rows, form one mesh.
    let (_, env) = world();
    all(on_ranks(3, &env, |team| {
        let nodes: [&[i64]; 3] = [&[0, 1, 2, -1, -1], &[], &[2, 1, 0]];
        let faces = Some(MeshRows { width: [5, 1, 3][team.rank()], nodes: nodes[team.rank()] });
        let plain = MeshCoordinate { values: &[0.0], attrs: Attrs::default() };
        let content = MeshContent {
            name: "m",
            coordinates: vec![plain.clone(), plain],
            edges: None,
            faces: faces.filter(|_| team.rank() != 1),
            volumes: None,
            base: 0,
            fill: None,
            attrs: Attrs::default(),
        };
        let mesh =
            Mesh::create(&team, &env, Path::new(FOLDER), Ok(&content), |name| Ok((name.to_owned(), None)))?;
        assert_eq!(mesh.array(MeshArray::Faces)?.variable.shape, [2, 3]);
        let error = mesh.array(MeshArray::Edges).err().unwrap();
        assert_eq!((error.code(), error.hint()), (Code::NotFound, Some("it has x, y, faces")));
        let error = mesh.view(MeshArray::Volumes, None).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        mesh.verify()
    }));
}

#[test]
fn ncvalidator_takes_a_mesh() {
    if !program("ncvalidator") {
        return;
    }
    let (_, env) = world();
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..8 {
        let (path, _) = create(&env, &Model::random(&mut seeded(seed)), Spelling::PLAIN);
        let file = folder.path().join("mesh.nc");
        std::fs::write(&file, read_file(&env, &path)).unwrap();
        let done = std::process::Command::new("ncvalidator").arg("-q").arg(&file).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

/// The results of xarray and uxarray for files: name of the format, counts, whether they agree, the checksum.
const UXARRAY: &str = r#"
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, uxarray, xarray
for path in sys.argv[1:]:
    data = xarray.open_dataset(path, mask_and_scale=False)
    grid = uxarray.open_grid(path)
    theirs = grid.face_node_connectivity.values
    theirs = np.where(theirs < 0, -1, theirs)
    same = np.array_equal(theirs, data["wing_face_nodes"].values)
    lon = np.allclose((grid.node_lon.values - data["wing_node_x"].values) % 360, 0)
    lat = np.array_equal(grid.node_lat.values, data["wing_node_y"].values)
    print(grid.source_grid_spec, grid.n_node, grid.n_face, same, lon, lat, data.attrs["mesh_checksum"])
"#;

#[test]
fn uxarray_opens_a_mesh_and_finds_its_faces() {
    let Some(python) = python_with("mesh", "uxarray, netCDF4") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut files, mut expected) = (Vec::new(), String::new());
    // With two coordinates, and with a third one that UGRID does not have for surfaces; with and without edges.
    for seed in [1, 3] {
        let mut model = Model::random(&mut seeded(seed));
        model.coordinates[1].iter_mut().for_each(|lat| *lat = (*lat / 2.0).rem_euclid(90.0));
        model.coordinates.resize(if seed == 1 { 3 } else { 2 }, model.coordinates[0].clone());
        model.rows[1].push(vec![0, 1, 2]);
        model.rows[1].push(vec![5, 4, 3, 2]);
        model.rows[2].clear();
        if seed == 1 {
            model.rows[0].clear();
        }
        let (_, env) = world();
        let (path, _) = create(&env, &model, Spelling { ranks: 3, ..Spelling::PLAIN });
        let file = folder.path().join(path.file_name().unwrap());
        std::fs::write(&file, read_file(&env, &path)).unwrap();
        let [nodes, _, faces, _] = model.counts();
        let checksum = file.file_stem().unwrap().to_string_lossy();
        expected += &format!("UGRID {nodes} {faces} True True True {checksum}\n");
        files.push(file);
    }
    let done = std::process::Command::new(&python).args(["-P", "-c", UXARRAY]).args(&files).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn numbers_of_nodes_are_read_as_they_are_kept() {
    let (_, env) = world();
    let model =
        Model { coordinates: vec![vec![0.0; 3]; 2], rows: [vec![vec![0, 2]], Vec::new(), Vec::new()] };
    let (path, _) = create(&env, &model, Spelling::PLAIN);
    all(on_ranks(1, &env, |team| {
        let mesh = Mesh::open(&team, &*env.disk, &path, None)?;
        assert_eq!(mesh.array(MeshArray::Edges)?.variable.dtype, DType::parse(">i4")?);
        Ok(())
    }));
}
