//! Unstructured meshes: nodes with coordinates, and the edges, faces and volumes between them.
//!
//! A mesh is created once from the ranks' parts ([`Mesh::create`]) and stored in a file named after its content: a
//! CDF-5 file with UGRID's conventions, which all ranks write together. The same content gives the same file,
//! whatever the number of ranks and their shares; creating it again writes nothing. It is read through views,
//! like any import.
//!
//! | module | what it does |
//! |---|---|
//! | [`content`] | the ranks' parts: checks, counts, checksum |
//! | [`image`] | the header of the file and the names in it |
//! | `create` | creating the file |
//! | `edges` | the edges of faces and volumes |
//! | `points` | positions of elements, and searches by ranges of coordinates |
//!
//! Invariants: all calls are collective, and a failure on one rank fails all; in a file, nodes count from 0, and an
//! entry is a valid node, or -1 after all others of its row; a file only gets its name once it is complete and
//! durable; `spec/mesh-files.md` defines the format.

use std::path::Path;

use fieldstone_core::env::Disk;
use fieldstone_core::env::comm::Team;
use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{FileSums, MeshDecl, MeshLocation};
use fieldstone_format::content_sum::BYTES;

use super::buffer::BufferMut;
use super::import::{Import, ImportedArray};
use super::plan::{MoveReport, Settings};
use super::view::{LocalView, View};

pub mod content;
mod create;
mod edges;
pub mod image;
mod points;
mod rows;
mod verify;

pub use content::{MeshContent, MeshCoordinate, MeshRows};
pub use edges::EdgeShare;
use image::MeshHead;
pub use points::{MeshAxis, MeshPoints};
use rows::RowReader;

const STEP: &str = "mesh";

/// An array of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MeshArray {
    /// First coordinate of nodes.
    X,
    /// Second coordinate of nodes.
    Y,
    /// Third coordinate of nodes.
    Z,
    /// The two nodes of each edge.
    Edges,
    /// The nodes of each face, in order, then -1.
    Faces,
    /// The nodes of each volume, in UGRID's order, then -1.
    Volumes,
}

impl MeshArray {
    /// All arrays.
    pub const ALL: [MeshArray; 6] =
        [MeshArray::X, MeshArray::Y, MeshArray::Z, MeshArray::Edges, MeshArray::Faces, MeshArray::Volumes];

    /// The array's name.
    pub fn word(self) -> &'static str {
        match self {
            MeshArray::X => "x",
            MeshArray::Y => "y",
            MeshArray::Z => "z",
            MeshArray::Edges => "edges",
            MeshArray::Faces => "faces",
            MeshArray::Volumes => "volumes",
        }
    }
}

/// A mesh that all ranks have open. See the module's documentation.
#[derive(Debug)]
pub struct Mesh {
    team: Team,
    import: Import,
    head: MeshHead,
    axes: Vec<MeshAxis>,
    is_new: bool,
    sums: Option<FileSums>,
}

impl Mesh {
    /// Collective: opens the file of a mesh. Reads only its header. With `sums`, equal on all ranks, every read of it
    /// is compared with them.
    ///
    /// Errors: `NotFound` if there is none; `Invalid` for a netCDF file that is not a mesh of ours; `Corrupt` for one
    /// that is damaged or too short.
    pub fn open(team: &Team, disk: &dyn Disk, path: &Path, sums: Option<&FileSums>) -> Result<Mesh> {
        let (import, (head, axes)) =
            Import::of_header((team, disk), path, (&[], "the arrays of a mesh", sums), |header| {
                let head = MeshHead::parse(header)?;
                let axes = MeshAxis::all(header, head.variables());
                // Include the topology, which is last in the file, so that a file cut anywhere is noticed.
                let names = head.variables().map(|(_, name)| name).chain([head.name.clone()]);
                Ok((names.collect(), (head, axes)))
            })?;
        Ok(Mesh { team: team.clone(), import, head, axes, is_new: false, sums: sums.cloned() })
    }

    /// Path of its file.
    pub fn path(&self) -> &Path {
        self.import.path()
    }

    /// The name with which it was first created: names in the file begin with it.
    pub fn topology(&self) -> &str {
        &self.head.name
    }

    /// The numbers of its nodes, edges, faces and volumes.
    pub fn counts(&self) -> [u64; 4] {
        self.head.counts
    }

    /// The number of one kind.
    pub fn count(&self, location: MeshLocation) -> u64 {
        self.head.counts[image::place_of(location)]
    }

    /// The dimension for values at a location.
    pub fn dimension(&self, location: MeshLocation) -> String {
        image::dimension(&self.head.name, location)
    }

    /// Checksum of its content: counts, connectivity, coordinates.
    pub fn checksum(&self) -> [u8; BYTES] {
        self.head.checksum
    }

    /// The checksums with which its file is read; `None` for an existing file opened without them.
    pub fn sums(&self) -> Option<&FileSums> {
        self.sums.as_ref()
    }

    /// Collective: reads the whole file, on each rank a share, and compares it with its checksums; returns its size
    /// in bytes.
    ///
    /// Errors: `Corrupt` for the first block that has changed.
    pub fn check_file(&self) -> Result<u64> {
        self.import.sum_file().map(|sums| sums.size)
    }

    /// Whether the call that returned this mesh created its file.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The arrays of the mesh.
    pub fn arrays(&self) -> impl Iterator<Item = MeshArray> {
        self.head.variables().map(|(array, _)| array)
    }

    /// Type and shape of an array.
    ///
    /// Errors: `NotFound` for an array that the mesh does not have.
    pub fn array(&self, array: MeshArray) -> Result<&ImportedArray> {
        self.reader().array(array)
    }

    /// Collective: resolves a view of an array on this rank; see [`Import::view`].
    pub fn view(&self, array: MeshArray, view: Option<&View>) -> Result<LocalView> {
        self.view_in(array, view, false)
    }

    /// As [`view`](Self::view), by a view that may have its dimensions in reverse order; see [`Import::view_in`].
    pub fn view_in(&self, array: MeshArray, view: Option<&View>, reversed: bool) -> Result<LocalView> {
        let name = self.reader().named(array).unwrap_or_else(|_| array.word().to_owned());
        self.import.view_in(&name, view, reversed)
    }

    /// Collective: reads each rank's view of an array; see [`Import::read`].
    pub fn read(
        &self,
        array: MeshArray,
        local: Result<(&LocalView, &mut BufferMut<'_>)>,
        settings: Settings,
    ) -> Result<MoveReport> {
        let name = self.reader().named(array);
        let local = local.and_then(|local| name.as_ref().map(|_| local).map_err(Error::replicate));
        self.import.read(name.as_deref().unwrap_or(array.word()), local, settings)
    }

    /// Collective: this rank's share of the mesh's edges, else of those of its faces and volumes; none where it has
    /// nodes alone.
    ///
    /// Errors: `Invalid` for volumes whose edges their number of nodes does not say; `Corrupt` where the file is.
    pub fn edges(&self) -> Result<EdgeShare> {
        edges::share(&self.reader())
    }

    fn reader(&self) -> RowReader<'_> {
        RowReader { team: &self.team, import: &self.import, head: &self.head }
    }

    /// The catalog's record of it under a name; `path` is that of its file, relative to the store.
    pub fn declare(&self, name: &str, path: &str, attrs: Vec<(String, Value)>) -> MeshDecl {
        MeshDecl {
            name: name.to_owned(),
            checksum: self.head.checksum.to_vec(),
            path: path.to_owned(),
            counts: self.head.counts,
            attrs,
            sums: self.sums.clone(),
        }
    }

    /// Collective: closes the file.
    pub fn close(self) -> Result<()> {
        self.import.close()
    }
}

/// Refuses a mesh whose content differs from the one declared under the name.
///
/// Errors: `Corrupt`.
pub fn check_declared(mesh: &Mesh, decl: &MeshDecl) -> Result<()> {
    match mesh.checksum() == *decl.checksum {
        true => Ok(()),
        false => Err(Code::Checksum
            .error(format!("{} is not the mesh that was declared as '{}'", mesh.path().display(), decl.name))
            .with_hint("restore the file: the catalog keeps its checksum")),
    }
}

/// A checksum as text: in messages, in files and in their names.
pub fn hex(checksum: &[u8; BYTES]) -> String {
    checksum.iter().map(|byte| format!("{byte:02x}")).collect()
}
