//! Parts of unstructured meshes for the ranks of a job, reused from earlier runs.
//!
//! Before it reads edges, a partition looks for kept files: finished parts for the same vector and number of ranks,
//! else edges by node, which serve any. A thread writes newly computed parts while the run goes on, and the next flush
//! declares them.
//!
//! A name of the edges identifies kept files: a mesh uses its checksum, an external file its path, size and time,
//! arrays the checksum of their content.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_array::distributed::buffer::{BufferMut, Element};
use fieldstone_array::distributed::group::{MemoryMut, agreement};
use fieldstone_array::distributed::mesh::MeshArray;
use fieldstone_array::distributed::partition::checksum::ContentSum;
use fieldstone_array::distributed::partition::history::{HistoryWriter, read_edges, read_parts};
use fieldstone_array::distributed::partition::source::EdgeArrays;
use fieldstone_array::distributed::partition::vector::{NodeRanks, RankNumbers, Vector};
use fieldstone_array::distributed::partition::{
    Coordinates, Partition, PartitionMethod, PartitionSettings, PartitionSource, mesh_checksum, partition,
};
use fieldstone_core::dtype::DType;
use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{HistoryContent, HistoryDecl, ImportDecl, RankSizes};
use xxhash_rust::xxh3::xxh3_128;

use super::folder::JobFolder;
use super::imports::JobImport;
use super::inner::JobInner;
use super::job::ArrayJob;
use super::memory::dense;
use super::meshes::JobMesh;
use super::pending::PendingHistory;
use crate::naming::hex;
use crate::own_files::HISTORIES;

/// Source of the edges.
#[derive(Debug, Clone, Copy)]
pub enum MeshEdges<'a> {
    /// Both ends of each edge of this rank's contiguous share.
    Arrays(&'a [i64], &'a [i64]),
    /// Two variables of an import: first and second ends. Each rank reads its share of a balanced cut.
    Import(&'a JobImport, &'a str, &'a str),
    /// A mesh of the store: its edges, else those of its faces or volumes.
    Mesh(&'a JobMesh),
}

impl MeshEdges<'_> {
    /// The source in words.
    fn word(&self) -> &'static str {
        match self {
            MeshEdges::Arrays(..) => "arrays",
            MeshEdges::Import(..) => "an import",
            MeshEdges::Mesh(_) => "a mesh",
        }
    }
}

/// Assignment of nodes to ranks.
#[derive(Debug, Clone)]
pub enum MeshVector<'a> {
    /// The rank of every node, equal on all ranks.
    Replicated(&'a [i64]),
    /// The ranks of this rank's contiguous share of the nodes.
    Shares(&'a [i64]),
    /// Contiguous ranges of nodes.
    Block,
    /// Equal shares along a Hilbert curve through the nodes of a mesh.
    Hilbert,
    /// A file of METIS: one line per node with the rank's number.
    File(PathBuf),
}

impl MeshVector<'_> {
    /// The vector as ranks of nodes; `columns` are coordinates of the nodes.
    fn by_ranks<'v>(&'v self, columns: &'v [&'v [f64]]) -> Vector<'v> {
        match self {
            MeshVector::Replicated(ranks) => Vector::Replicated(RankNumbers::I64(ranks)),
            MeshVector::Shares(ranks) => Vector::Shares(RankNumbers::I64(ranks)),
            MeshVector::Block => Vector::Block,
            MeshVector::Hilbert => Vector::Hilbert(Coordinates::Arrays(columns)),
            MeshVector::File(path) => Vector::File(path),
        }
    }
}

/// Options for a partition; equal on all ranks.
#[derive(Debug, Clone)]
pub struct PartitionOptions {
    /// Number of nodes; if absent, that of the vector or the mesh.
    pub nodes: Option<u64>,
    /// The number of the first node: 0 or 1.
    pub base: u64,
    /// Whether to use files that earlier runs kept, and to keep this partition.
    pub history: bool,
    /// How edges reach the ranks of their ends.
    pub method: PartitionMethod,
}

impl Default for PartitionOptions {
    fn default() -> PartitionOptions {
        PartitionOptions { nodes: None, base: 0, history: true, method: PartitionMethod::Direct }
    }
}

/// One rank's part of a mesh, in its job; see [`part`](Self::part).
#[derive(Debug)]
pub struct JobPartition {
    job: Arc<JobInner>,
    part: Arc<Partition>,
    ignored: Vec<String>,
}

impl JobPartition {
    /// The part itself, without the job.
    pub fn part(&self) -> &Arc<Partition> {
        &self.part
    }

    /// Kept files that were not used, with the reason.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Collective: gives ghosts their owners' values, in arrays at the nodes. A rank that failed before passes its
    /// error.
    ///
    /// Errors: `Invalid` for an array of another length; `Conflict` if ranks give arrays of different sizes.
    pub fn update(&self, arrays: Result<Vec<MemoryMut<'_>>>) -> Result<()> {
        let nodes = self.part.nodes().len() as u64;
        let memory = |given| memory(given, nodes);
        let buffers = arrays.and_then(|arrays| arrays.into_iter().map(memory).collect::<Result<Vec<_>>>());
        let mut buffers = self.job.team.agree("update", buffers)?;
        self.part.update(&self.job.team, &mut buffers, self.job.options.buffer as u64)
    }
}

fn memory(memory: MemoryMut<'_>, nodes: u64) -> Result<BufferMut<'_>> {
    if memory.shape.first() != Some(&nodes) {
        return Err(Code::ShapeMismatch
            .error(format!("an array of shape {:?} does not fit {nodes} nodes", memory.shape))
            .with_hint("its first dimension has the length of `nodes`, ghosts included"));
    }
    let element = Element::of(memory.dtype, memory.dtype.byte_order())?;
    BufferMut::strided(memory.bytes, element, memory.shape, memory.strides, memory.origin)
}

/// The edges of this rank.
struct OwnEdges {
    first: Vec<i64>,
    second: Vec<i64>,
}

impl ArrayJob {
    /// Collective: makes this rank's part of a mesh: the nodes that `vector` gives it, ghosts, and edges with an end of
    /// its own. A rank that failed before passes its error.
    ///
    /// Errors: `Invalid` with rank, position and value if a vector or an edge names a rank or node that does not exist;
    /// `Conflict` if ranks say otherwise.
    pub fn partition(
        &self,
        given: Result<(MeshEdges<'_>, MeshVector<'_>)>,
        options: &PartitionOptions,
    ) -> Result<JobPartition> {
        let before = self.inner.team.exchanged();
        let part = self.make_part(given, options)?;
        let mut state = self.inner.state();
        state.report.exchanged += self.inner.team.exchanged() - before;
        state.report.read += part.part.bytes_read();
        drop(state);
        Ok(part)
    }

    fn make_part(
        &self,
        given: Result<(MeshEdges<'_>, MeshVector<'_>)>,
        options: &PartitionOptions,
    ) -> Result<JobPartition> {
        let job = &self.inner;
        let kind = given.as_ref().map_or("", |(edges, _)| edges.word());
        let said = format!("partitions the edges of {kind} with {options:?}");
        let both = given.as_ref().map(|_| 0).map_err(Error::replicate);
        agreement::same_call(&job.team, "partition", &said, both)?;
        let (edges, vector) = given?;
        let PartitionOptions { base, history, method, .. } = *options;
        let nodes = options.nodes.or_else(|| match &edges {
            MeshEdges::Mesh(mesh) => Some(mesh.counts()[0]),
            _ => None,
        });
        let coordinates = match (&vector, &edges) {
            (MeshVector::Hilbert, MeshEdges::Mesh(mesh)) => Ok(coordinates(mesh)?),
            (MeshVector::Hilbert, _) => Err(Code::Option
                .error("a Hilbert curve needs the coordinates of the nodes")
                .with_hint("give the name of a mesh, or another vector")),
            _ => Ok(Vec::new()),
        };
        let coordinates = job.team.agree("partition", coordinates)?;
        let columns: Vec<&[f64]> = coordinates.iter().map(Vec::as_slice).collect();
        let ranks = NodeRanks::new(&job.team, &vector.by_ranks(&columns), nodes)?;
        let (name, own) = edges.name(&job.team, &ranks, base)?;
        let mut ignored = Vec::new();
        let folder = job.folder.as_ref().filter(|_| history);
        let histories = folder.map(|folder| Histories { job, folder, name });
        let kept = match &histories {
            Some(histories) => histories.kept(&ranks, &mut ignored)?,
            None => None,
        };
        // Only if the job can also write them.
        let keeps = histories.filter(|_| job.writable);
        if let Some(part) = kept {
            let part = Arc::new(part);
            // Parts made from kept edges serve the next run with this vector and the same number of ranks.
            if let (PartitionSource::Edges, Some(histories)) = (part.source(), &keeps) {
                histories.keep(&part)?;
            }
            return Ok(JobPartition { job: job.clone(), part, ignored });
        }
        let own = match own {
            Some(own) => own,
            None => read(&edges)?,
        };
        let base = if matches!(edges, MeshEdges::Mesh(_)) { 0 } else { base };
        let settings = PartitionSettings { base, method, buffer: job.options.buffer as u64 };
        let mut arrays = EdgeArrays { first: &own.first, second: &own.second };
        let part = Arc::new(partition(&job.team, &mut arrays, &ranks, &settings)?);
        if let Some(histories) = &keeps {
            histories.keep(&part)?;
        }
        Ok(JobPartition { job: job.clone(), part, ignored })
    }
}

/// Collective: this rank's share of the edges.
fn read(edges: &MeshEdges<'_>) -> Result<OwnEdges> {
    let (first, second) = match edges {
        MeshEdges::Arrays(first, second) => (first.to_vec(), second.to_vec()),
        MeshEdges::Import(import, first, second) => (import.integers(first)?, import.integers(second)?),
        MeshEdges::Mesh(mesh) => mesh.edges()?.ends.iter().map(|[first, second]| (*first, *second)).unzip(),
    };
    Ok(OwnEdges { first, second })
}

/// Collective: this rank's share of the coordinates of a mesh.
fn coordinates(mesh: &JobMesh) -> Result<Vec<Vec<f64>>> {
    let axes = [MeshArray::X, MeshArray::Y, MeshArray::Z];
    let known = mesh.arrays();
    let mut columns = Vec::new();
    for axis in axes.into_iter().filter(|axis| known.contains(axis)) {
        let begun = mesh.begin_read(axis, None)?;
        let bytes =
            dense(begun.dtype(), begun.local_shape(), |memory| mesh.read(axis, &begun, memory).map(drop))?;
        columns.push(bytes.as_chunks().0.iter().map(|word| f64::from_ne_bytes(*word)).collect());
    }
    Ok(columns)
}

/// The name that identifies kept files of two variables of an import.
pub(crate) fn edges_of_import(import: ImportDecl, first: &str, second: &str, base: u64) -> String {
    let mut decl = ImportDecl { name: String::new(), checksum: None, ..import };
    decl.variables.retain(|variable| variable.name == first || variable.name == second);
    let text = format!("{decl:?} {first} {second} {base}");
    format!("{:032x}", xxh3_128(text.as_bytes()))
}

impl JobImport {
    /// Collective: this rank's share of an integer variable.
    fn integers(&self, name: &str) -> Result<Vec<i64>> {
        let begun = self.begin_read(name, None)?;
        let dtype = begun.dtype();
        let whole = [DType::I4, DType::I8].contains(&dtype) && begun.local_shape().len() == 1;
        let checked = match whole {
            true => Ok(()),
            false => Err(Code::Dtype
                .error(format!("variable `{name}` is not a row of whole numbers of 4 or 8 bytes"))
                .with_hint("give the edges as two rows of node numbers")),
        };
        self.job.team.agree("partition", checked)?;
        let bytes = dense(dtype, begun.local_shape(), |memory| self.read(&begun, memory).map(drop))?;
        Ok(match dtype.size() {
            4 => bytes.as_chunks().0.iter().map(|word| i64::from(i32::from_ne_bytes(*word))).collect(),
            _ => bytes.as_chunks().0.iter().map(|word| i64::from_ne_bytes(*word)).collect(),
        })
    }

    /// The name that identifies kept files of two variables: file, size, time, and their places in it.
    fn identity(&self, first: &str, second: &str, base: u64) -> String {
        edges_of_import(self.import.describe("", None), first, second, base)
    }
}

impl MeshEdges<'_> {
    /// Collective: the name that identifies kept files of the edges, and this rank's edges if the name is computed from
    /// them.
    fn name(&self, team: &Team, ranks: &NodeRanks<'_>, base: u64) -> Result<(String, Option<OwnEdges>)> {
        match self {
            MeshEdges::Mesh(mesh) => Ok((hex(&mesh.checksum()), None)),
            MeshEdges::Import(import, first, second) => Ok((import.identity(first, second, base), None)),
            MeshEdges::Arrays(..) => {
                let own = read(self)?;
                let mut arrays = EdgeArrays { first: &own.first, second: &own.second };
                let sum = mesh_checksum(team, &mut arrays, ranks.nodes(), base)?;
                Ok((sum.to_string(), Some(own)))
            }
        }
    }
}

/// Files of a mesh's partitions, which jobs keep for later jobs.
struct Histories<'a> {
    job: &'a JobInner,
    folder: &'a JobFolder,
    /// The name that identifies kept files of the edges.
    name: String,
}

impl Histories<'_> {
    fn path(&self) -> PathBuf {
        self.folder.root.join(HISTORIES)
    }

    /// Collective: a partition that an earlier run kept. Unusable files go to `ignored` with the reason.
    fn kept(&self, ranks: &NodeRanks<'_>, ignored: &mut Vec<String>) -> Result<Option<Partition>> {
        let (job, folder) = (self.job, self.path());
        let (parts, edges) = (parts_file(&self.name, ranks.sum(), job.team.size()), edges_file(&self.name));
        let known = match job.team.rank() {
            0 => job.begin_naming(HISTORIES).and_then(|()| {
                let all = job.store.catalog().histories(&job.options.session)?;
                let sum = |file: &str| {
                    let path = format!("{HISTORIES}/{file}");
                    let found = all.iter().find(|decl| decl.path == path);
                    found.map_or(String::new(), |decl| hex(&decl.mesh))
                };
                Ok(format!("{} {}", sum(&parts), sum(&edges)).into_bytes())
            }),
            _ => Ok(Vec::new()),
        };
        let known = job.team.broadcast("partition", 0, known)?;
        let known = String::from_utf8_lossy(&known).into_owned();
        let mut sums = known.split(' ').map(ContentSum::parse);
        if let Some(mesh) = sums.next().flatten() {
            let path = folder.join(&parts);
            match read_parts(&job.team, &path, mesh, ranks.sum()) {
                Ok(part) => return Ok(Some(part)),
                Err(error) => note(ignored, &path, &error),
            }
        }
        if let Some(mesh) = sums.next().flatten() {
            let path = folder.join(&edges);
            match read_edges(&job.team, &path, mesh, ranks, job.options.buffer as u64) {
                Ok(part) => return Ok(Some(part)),
                Err(error) => note(ignored, &path, &error),
            }
        }
        Ok(None)
    }

    /// Collective: has threads write the computed partition; the next flush declares it.
    fn keep(&self, part: &Arc<Partition>) -> Result<()> {
        let (job, folder) = (self.job, self.path());
        let disk = job.env().disk.clone();
        let made = job.make_folder(HISTORIES).and_then(|()| job.begin_naming(HISTORIES));
        job.team.agree("partition", made)?;
        let sizes = RankSizes {
            nodes: part.owned() as u64,
            ghosts: (part.nodes().len() - part.owned()) as u64,
            edges: part.edges().len() as u64,
        };
        let own = [sizes.nodes, sizes.ghosts, sizes.edges];
        let own = own.iter().flat_map(|word| word.to_le_bytes()).collect();
        let all = job.team.gather("partition", 0, Ok(own))?;
        let word = |bytes: &[u8], n: usize| {
            bytes.get(8 * n..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
        };
        let ranks: Vec<RankSizes> = all
            .iter()
            .map(|bytes| RankSizes { nodes: word(bytes, 0), ghosts: word(bytes, 1), edges: word(bytes, 2) })
            .collect();
        let key = part.key();
        let vector = key.vector.0.to_be_bytes().to_vec();
        let files = [
            (parts_file(&self.name, key.vector, job.team.size()), HistoryContent::Parts { vector, ranks }),
            (edges_file(&self.name), HistoryContent::Edges),
        ];
        let has_edges = part.source() == PartitionSource::Edges;
        for (file, content) in files.into_iter().take(if has_edges { 1 } else { 2 }) {
            let within = format!("{HISTORIES}/{file}");
            if job.pending.has(&within) {
                continue;
            }
            let (path, temporary) = (folder.join(&file), folder.join(self.folder.unfinished(&file)));
            let begin = match content {
                HistoryContent::Edges => HistoryWriter::edges,
                HistoryContent::Parts { .. } => HistoryWriter::parts,
            };
            let writer = Arc::new(begin(&job.team, &*disk, (&path, &temporary), part)?);
            let (thread_disk, thread_writer) = (disk.clone(), writer.clone());
            let thread = std::thread::spawn(move || thread_writer.write(&*thread_disk));
            let decl = HistoryDecl {
                path: within,
                mesh: key.mesh.0.to_be_bytes().to_vec(),
                nodes: key.nodes,
                edges: key.edges,
                content,
            };
            job.pending.push(PendingHistory { writer, thread, decl });
        }
        Ok(())
    }
}

fn note(ignored: &mut Vec<String>, path: &std::path::Path, error: &Error) {
    tracing::warn!(path = %path.display(), %error, "cannot use a kept partition");
    ignored.push(error.message().to_owned());
}

fn parts_file(name: &str, vector: ContentSum, ranks: usize) -> String {
    format!("{name}-{vector}-{ranks}.parts")
}

fn edges_file(name: &str) -> String {
    format!("{name}.edges")
}
