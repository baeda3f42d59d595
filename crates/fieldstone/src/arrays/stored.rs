//! Meshes of a store for one process without a job: to make, inspect and read whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_array::distributed::mesh::{
    Mesh, MeshArray, MeshAxis, MeshContent, MeshPoints, check_declared,
};
use fieldstone_array::distributed::plan::Settings;
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::Team;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::catalog::{FileSums, ImportedVariable, MeshDecl, MeshLocation, StorageOrder};

use super::imports::buffer;
use super::memory::dense;
use super::meshes::{declare_with_others, placed};
use crate::Session;
use crate::Store;
use crate::own_files::{MESHES, make_folder};

/// A mesh that this process has open.
#[derive(Debug)]
pub struct StoredMesh {
    decl: MeshDecl,
    mesh: Mesh,
}

/// The rows of a mesh's edges, faces or volumes: nodes from 0 on, then -1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRows {
    /// Entries of a row.
    pub width: usize,
    /// The rows, one after another.
    pub nodes: Vec<i64>,
}

impl NodeRows {
    /// The nodes of each row, without -1.
    pub fn iter(&self) -> impl Iterator<Item = &[i64]> {
        self.nodes.chunks(self.width.max(1)).map(|row| {
            let len = row.iter().position(|node| *node < 0).unwrap_or(row.len());
            &row[..len]
        })
    }
}

/// A team of this process alone, with the folder of its store.
fn alone(store: &Store) -> Result<(Team, Env, PathBuf)> {
    let env = store.backend().env().clone();
    let root = store.backend().folder().ok_or_else(|| {
        Code::Option
            .error("meshes need a store in a folder")
            .with_hint("open the store by the path of a folder")
    })?;
    Ok((Team::new(Arc::new(SingleComm::new(env.disk.clone()))), env, root))
}

/// Reads the whole file of a mesh at `path`, and compares it with its checksums; without these, its content with the
/// checksum in its header. Returns its size in bytes.
///
/// Errors: `Corrupt`, naming the file and the first damaged block.
pub fn check_mesh(path: &Path, sums: Option<&FileSums>) -> Result<u64> {
    let env = Env::real();
    let team = Team::new(Arc::new(SingleComm::new(env.disk.clone())));
    let mesh = Mesh::open(&team, &*env.disk, path, sums)?;
    let checked = check(&mesh);
    mesh.close().and(checked)
}

fn check(mesh: &Mesh) -> Result<u64> {
    if mesh.sums().is_none() {
        mesh.verify()?;
    }
    mesh.check_file()
}

/// Path of the file of a mesh that a store keeps; relative to the store if it is not in a folder.
pub fn mesh_path(store: &Store, decl: &MeshDecl) -> PathBuf {
    store.backend().folder().map_or_else(|| PathBuf::from(&decl.path), |root| root.join(&decl.path))
}

/// As [`check_mesh`], for a mesh of a store.
pub(crate) fn check_mesh_of(store: &Store, decl: &MeshDecl) -> Result<u64> {
    let (team, env, root) = alone(store)?;
    let mesh = Mesh::open(&team, &*env.disk, &root.join(&decl.path), decl.sums.as_ref())?;
    let checked = check_declared(&mesh, decl).and_then(|()| check(&mesh));
    mesh.close().and(checked)
}

impl StoredMesh {
    /// Opens a mesh of the store in this process alone.
    ///
    /// Errors: `NotFound` if there is none of the name; `Corrupt` if its file is not the declared one.
    pub fn open(store: &Store, name: &str) -> Result<StoredMesh> {
        let decl = store.catalog().mesh(name, &Session::default())?;
        let (team, env, root) = alone(store)?;
        let mesh = Mesh::open(&team, &*env.disk, &root.join(&decl.path), decl.sums.as_ref())?;
        check_declared(&mesh, &decl)?;
        Ok(StoredMesh { decl, mesh })
    }

    /// Keeps a mesh that this process has whole, under the name in its content; true if the store did not have it under
    /// that name. The file is durable when this returns; the declaration belongs to the transaction, or the next flush.
    ///
    /// Errors: as those of [`ArrayJob::create_mesh`](super::ArrayJob::create_mesh).
    pub fn create(
        store: &Store,
        content: &MeshContent<'_>,
        attrs: &[(String, Value)],
        session: &Session,
    ) -> Result<(StoredMesh, bool)> {
        store.backend().check_writable()?;
        let (team, env, root) = alone(store)?;
        store.backend().create()?;
        let folder = make_folder(&env, &root, MESHES)?;
        store.naming.begin(&env, &folder, session)?;
        let place = |name: &str| placed(store, name, session);
        let mesh = Mesh::create(&team, &env, &folder, Ok(content), place)?;
        match store.catalog().mesh(content.name, session) {
            // Attributes are not part of the content: the name keeps those that it has.
            Ok(decl) if mesh.checksum() == *decl.checksum => {
                let decl = MeshDecl { sums: mesh.sums().cloned(), ..decl };
                declare_with_others(store, decl.clone(), session)?;
                return Ok((StoredMesh { decl, mesh }, false));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = mesh.path().file_name().and_then(|file| file.to_str());
        let file = file.ok_or_else(|| Error::internal("the file of a mesh has no name"))?;
        let decl = mesh.declare(content.name, &format!("{MESHES}/{file}"), attrs.to_vec());
        declare_with_others(store, decl.clone(), session)?;
        Ok((StoredMesh { decl, mesh }, true))
    }

    /// Its name, checksum, counts, attributes and the path of its file in the store.
    pub fn info(&self) -> &MeshDecl {
        &self.decl
    }

    /// Path of its file.
    pub fn path(&self) -> &Path {
        self.mesh.path()
    }

    /// As [`check_mesh`], for this mesh.
    pub fn verify(&self) -> Result<u64> {
        check(&self.mesh)
    }

    /// Number of elements of one kind.
    pub fn count(&self, location: MeshLocation) -> u64 {
        self.mesh.count(location)
    }

    /// The dimension of values at a location.
    pub fn dimension(&self, location: MeshLocation) -> String {
        self.mesh.dimension(location)
    }

    /// The arrays that it has.
    pub fn arrays(&self) -> Vec<MeshArray> {
        self.mesh.arrays().collect()
    }

    /// The place of an array in the file, its shape, and its type there.
    ///
    /// Errors: `NotFound` for an array that it lacks.
    pub fn place(&self, array: MeshArray) -> Result<&ImportedVariable> {
        Ok(&self.mesh.array(array)?.variable)
    }

    /// The coordinates of all nodes: x and y, and z if it has that.
    pub fn coordinates(&self) -> Result<Vec<Vec<f64>>> {
        let axes = [MeshArray::X, MeshArray::Y, MeshArray::Z];
        let known = self.arrays();
        let read = |axis: MeshArray| {
            Ok(self.bytes(axis)?.as_chunks().0.iter().map(|word| f64::from_ne_bytes(*word)).collect())
        };
        axes.into_iter().filter(|axis| known.contains(axis)).map(read).collect()
    }

    /// The axes of its nodes' coordinates: x and y, and z if it has that.
    pub fn axes(&self) -> &[MeshAxis] {
        self.mesh.axes()
    }

    /// The places of all elements at a location.
    ///
    /// Errors: `Corrupt` for an entry that is not a node, or a file that ends early.
    pub fn points(&self, location: MeshLocation) -> Result<MeshPoints> {
        self.mesh.points(location)
    }

    /// All edges, faces or volumes; `None` if it has none.
    ///
    /// Errors: `Corrupt` for an entry that is not a node.
    pub fn rows(&self, array: MeshArray) -> Result<Option<NodeRows>> {
        if !self.arrays().contains(&array) {
            return Ok(None);
        }
        let place = self.place(array)?;
        let width = place.shape.get(1).and_then(|width| usize::try_from(*width).ok()).unwrap_or(0);
        let bytes = self.bytes(array)?;
        let nodes: Vec<i64> = match place.dtype.size() {
            4 => bytes.as_chunks().0.iter().map(|word| i64::from(i32::from_ne_bytes(*word))).collect(),
            _ => bytes.as_chunks().0.iter().map(|word| i64::from_ne_bytes(*word)).collect(),
        };
        let count = i64::try_from(self.count(MeshLocation::Node)).unwrap_or(i64::MAX);
        match nodes.iter().position(|node| !(-1..count).contains(node)) {
            None => Ok(Some(NodeRows { width, nodes })),
            Some(at) => Err(Error::corrupt(format!(
                "{}: {}[{}, {}] is node {}, and nodes are 0 to {}",
                self.path().display(),
                array.word(),
                at / width.max(1),
                at % width.max(1),
                nodes[at],
                count - 1
            ))),
        }
    }

    fn bytes(&self, array: MeshArray) -> Result<Vec<u8>> {
        let known = self.mesh.array(array)?;
        let local = self.mesh.view(array, None)?;
        dense(known.variable.dtype.to_native(), local.local_shape(), |memory| {
            let mut into = memory.and_then(|memory| buffer(known, StorageOrder::C, memory));
            let into = into.as_mut().map(|into| (&local, into)).map_err(|error| error.replicate());
            self.mesh.read(array, into, Settings::default()).map(drop)
        })
    }
}
