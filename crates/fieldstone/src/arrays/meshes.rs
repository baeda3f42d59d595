//! Unstructured meshes of a store: the ranks of a job make them, the store keeps each content once, the catalog names
//! them.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_array::distributed::group::MemoryMut;
use fieldstone_array::distributed::mesh::{EdgeShare, Mesh, MeshArray, MeshContent, check_declared};
use fieldstone_array::distributed::plan::MoveReport;
use fieldstone_array::distributed::view::View;
use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{FileSums, MeshDecl, MeshLocation, Record, StorageOrder};
use fieldstone_format::log::SideRecord;

use super::folder::new_job;
use super::imports::{FileRead, buffer};
use super::inner::JobInner;
use super::job::ArrayJob;
use super::spec::GroupOptions;
use crate::Session;
use crate::Store;
use crate::naming::{hex, is_condemned};
use crate::own_files::MESHES;

/// A mesh that all ranks of a job have open.
#[derive(Debug)]
pub struct JobMesh {
    job: Arc<JobInner>,
    pub(super) mesh: Mesh,
    name: String,
}

impl ArrayJob {
    /// Collective: makes a mesh from the contiguous shares of the ranks, and declares it with `attrs` under the name in
    /// `content`. The store keeps equal content once; a name means one content.
    ///
    /// Errors: `Invalid` for an entry that is not a node, with rank, position and value; `Conflict` if another mesh has
    /// the name, or ranks say otherwise.
    pub fn create_mesh(
        &self,
        name: &str,
        content: Result<&MeshContent<'_>>,
        attrs: &[(String, Value)],
    ) -> Result<JobMesh> {
        let job = self.inner.clone();
        job.team.agree("mesh", job.writable())?;
        let folder = job.team.agree("mesh", job.folder())?.root.join(MESHES);
        let made = job.make_folder(MESHES).and_then(|()| job.begin_naming(MESHES));
        job.team.agree("mesh", made)?;
        let place = |name: &str| placed(&job.store, name, &job.options.session);
        let mesh = Mesh::create(&job.team, job.env(), &folder, content, place)?;
        let declared = match job.team.rank() {
            0 => declare(&job, &mesh, name, attrs),
            _ => Ok(()),
        };
        job.team.agree("mesh", declared)?;
        Ok(JobMesh { job, mesh, name: name.to_owned() })
    }

    /// Collective: opens a mesh of the store by name.
    ///
    /// Errors: `NotFound` if there is none; `Corrupt` if its file is not the declared one.
    pub fn mesh(&self, name: &str) -> Result<JobMesh> {
        JobMesh::open(&self.inner, name)
    }
}

fn declare(job: &JobInner, mesh: &Mesh, name: &str, attrs: &[(String, Value)]) -> Result<()> {
    let file = mesh.path().file_name().and_then(|file| file.to_str());
    let file = file.ok_or_else(|| Error::internal("the file of a mesh has no name"))?;
    let decl: MeshDecl = mesh.declare(name, &format!("{MESHES}/{file}"), attrs.to_vec());
    declare_with_others(&job.store, decl, &job.options.session)
}

/// Declares a mesh. If its file was lost and made again, the mesh's other names get the checksums of the new file.
pub(super) fn declare_with_others(store: &Store, decl: MeshDecl, session: &Session) -> Result<()> {
    let mut all = store.catalog().meshes(session)?;
    all.retain(|other| other.path == decl.path && other.name != decl.name && other.sums != decl.sums);
    all.iter_mut().for_each(|other| other.sums.clone_from(&decl.sums));
    all.push(decl);
    store.catalog().create_meshes(all, session)
}

/// Decodes the declaration of a mesh that rank 0 sent: the kind of a side record and its bytes.
fn decode(bytes: &[u8]) -> Result<MeshDecl> {
    let (kind, bytes) = bytes.split_first_chunk().unwrap_or((&[0; 2], &[]));
    match Record::decode(&SideRecord { kind: u16::from_le_bytes(*kind), bytes: bytes.to_vec().into() })? {
        Record::Meshes(meshes) => meshes.into_iter().next(),
        _ => None,
    }
    .ok_or_else(|| Error::internal("a mesh came from rank 0 as something else"))
}

/// The file of a mesh in the store, given the name that its content has, and its checksums, if they are declared. A
/// condemned file stays as it is: a purge may be about to remove it.
pub(super) fn placed(store: &Store, name: &str, session: &Session) -> Result<(String, Option<FileSums>)> {
    let content = name.strip_suffix(".nc").unwrap_or(name);
    let mut meshes = store.catalog().meshes(session)?;
    meshes.retain(|mesh| hex(&mesh.checksum) == content);
    let file_of = |mesh: &MeshDecl| mesh.path.strip_prefix(MESHES)?.strip_prefix('/').map(str::to_owned);
    if let Some(file) = meshes.iter().find_map(file_of) {
        let its = meshes.into_iter().filter(|mesh| file_of(mesh).as_ref() == Some(&file));
        let sums = its.into_iter().find_map(|mesh| mesh.sums);
        return Ok((file, sums));
    }
    let (env, root) = (store.backend().env(), store.backend().folder().unwrap_or_default());
    Ok(match is_condemned(env, &root.join(MESHES).join(name))? {
        true => (format!("{content}-{}.nc", new_job(env)), None),
        false => (name.to_owned(), None),
    })
}

/// Collective: adapts a declaration to its mesh: sets get the mesh's extent first, and UGRID's attributes.
pub(super) fn on_mesh(job: &Arc<JobInner>, options: &GroupOptions) -> Result<GroupOptions> {
    let mut options = options.clone();
    let (Some(name), Some(location)) = (options.mesh.clone(), options.location) else {
        let both = match options.mesh.is_some() || options.location.is_some() {
            true => Err(Code::Option
                .error("a group on a mesh lacks the mesh's name or its location")
                .with_hint("give mesh= and location=\"node\", \"edge\", \"face\" or \"volume\"")),
            false => Ok(options),
        };
        return job.team.agree("group", both);
    };
    let mesh = JobMesh::open(job, &name)?;
    let (count, dim) = (mesh.mesh.count(location), mesh.mesh.dimension(location));
    let topology = mesh.mesh.topology().to_owned();
    let mut fit = || -> Result<()> {
        for set in &mut options.sets {
            match set.shape.first() {
                None => set.shape.push(Some(count)),
                Some(Some(len)) if *len == count => {}
                Some(len) => {
                    let (len, location) =
                        (len.map_or("None".to_owned(), |len| len.to_string()), location.name());
                    return Err(Code::ShapeMismatch
                        .error(format!(
                            "set {}: its first extent is {len}, and mesh '{name}' has {count} {location}s",
                            set.name
                        ))
                        .with_hint("leave shape out, or begin it with the mesh's extent"));
                }
            }
            if set.dims.is_empty() {
                set.dims.resize(set.shape.len(), None);
            }
            if let Some(first) = set.dims.first_mut() {
                *first = Some(dim.clone());
            }
            set.attrs.push(("mesh".to_owned(), Value::Text(topology.clone())));
            set.attrs.push(("location".to_owned(), Value::Text(location.name().to_owned())));
        }
        Ok(())
    };
    let fits = fit();
    let closed = mesh.close();
    job.team.agree("group", fits.and(closed))?;
    Ok(options)
}

impl JobMesh {
    /// Collective: opens a mesh of the store by name.
    fn open(job: &Arc<JobInner>, name: &str) -> Result<JobMesh> {
        let found = match job.team.rank() {
            0 => job.begin_naming(MESHES).and_then(|()| {
                let decl = job.store.catalog().mesh(name, &job.options.session)?;
                let side = Record::Meshes(vec![decl]).encode();
                Ok([&side.kind.to_le_bytes()[..], &side.bytes[..]].concat())
            }),
            _ => Ok(Vec::new()),
        };
        let decl = decode(&job.team.broadcast("mesh", 0, found)?)?;
        let file = job.team.agree("mesh", job.folder())?.root.join(&decl.path);
        let mesh = Mesh::open(&job.team, &*job.env().disk, &file, decl.sums.as_ref())?;
        job.team.agree("mesh", check_declared(&mesh, &decl))?;
        Ok(JobMesh { job: job.clone(), mesh, name: name.to_owned() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Numbers of nodes, edges, faces and volumes.
    pub fn counts(&self) -> [u64; 4] {
        self.mesh.counts()
    }

    /// Number of elements of one kind.
    pub fn count(&self, location: MeshLocation) -> u64 {
        self.mesh.count(location)
    }

    /// Checksum of its content.
    pub fn checksum(&self) -> Vec<u8> {
        self.mesh.checksum().to_vec()
    }

    /// Path of its file.
    pub fn path(&self) -> PathBuf {
        self.mesh.path().to_owned()
    }

    /// The arrays that it has.
    pub fn arrays(&self) -> Vec<MeshArray> {
        self.mesh.arrays().collect()
    }

    /// Collective: begins to read an array, by `view`, else this rank's share of a balanced cut.
    pub fn begin_read(&self, array: MeshArray, view: Option<&View>) -> Result<FileRead> {
        self.begin_read_in(array, view, StorageOrder::C)
    }

    /// As [`begin_read`](Self::begin_read), with dimensions in `order`; see [`JobImport::begin_read_in`].
    ///
    /// [`JobImport::begin_read_in`]: super::JobImport::begin_read_in
    pub fn begin_read_in(
        &self,
        array: MeshArray,
        view: Option<&View>,
        order: StorageOrder,
    ) -> Result<FileRead> {
        let local = self.mesh.view_in(array, view, order == StorageOrder::Fortran)?;
        Ok(FileRead::new(array.word(), local, self.mesh.array(array)?.variable.dtype, order))
    }

    /// Collective: reads into memory of the local shape. A rank that failed before passes its error.
    pub fn read(
        &self,
        array: MeshArray,
        begun: &FileRead,
        memory: Result<MemoryMut<'_>>,
    ) -> Result<MoveReport> {
        let known = self.mesh.array(array);
        let mut buffer = memory.and_then(|memory| buffer(known?, begun.order, memory));
        let read = match &mut buffer {
            Ok(into) => Ok((&begun.local, into)),
            Err(error) => Err(error.replicate()),
        };
        self.mesh.read(array, read, self.job.options.to_read())
    }

    /// Collective: this rank's share of its edges; without edges, those of its faces or volumes.
    pub fn edges(&self) -> Result<EdgeShare> {
        self.mesh.edges()
    }

    /// Collective: closes its file.
    pub fn close(self) -> Result<()> {
        self.mesh.close()
    }
}
