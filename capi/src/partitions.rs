//! A rank's part of an unstructured mesh, from a vector that gives each node its rank.

use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::Arc;

use fieldstone::arrays::{
    JobImport, JobMesh, MemoryMut, MeshEdges, MeshVector, PartitionMethod, PartitionOptions,
};
use fieldstone::catalog::StorageOrder;
use fieldstone::{Code, Result};

use crate::arguments::{
    FS_MAX_RANK, copy_text, count as counted, dtype as element_type, items, optional_text, result, text,
};
use crate::elements::{ElementLayout, GivenLayout};
use crate::handles::{find, fs_arrays, fs_import, fs_mesh, fs_partition, fs_view};
use crate::job::OpenFile;
use crate::job_handles::free_partition;
use crate::status::call;
use crate::views::give_view;

/// The source of edges: a mesh; or an import, whose variables `first_name` and `second_name` hold the ends;
/// or else the arrays `first` and `second`, of which each rank passes its contiguous share, in the order of
/// ranks.
#[repr(C)]
pub struct fs_edges {
    /// Number of edges that this rank passes.
    pub count: usize,
    /// The node at the first end of each edge.
    pub first: *const i64,
    /// The node at the second end of each edge.
    pub second: *const i64,
    /// A file with the edges; null for none.
    pub import: *mut fs_import,
    /// The variable with the first ends: whole numbers of 4 or 8 bytes.
    pub first_name: *const c_char,
    /// The variable with the second ends.
    pub second_name: *const c_char,
    /// A mesh, for its edges, or else for those of its faces or volumes; null for none.
    pub mesh: *mut fs_mesh,
}

/// The rank of each node.
#[repr(C)]
pub struct fs_vector {
    /// "replicated": `ranks` has the ranks of all nodes, equal on all ranks. "shares": `ranks` covers this
    /// rank's contiguous share of the nodes. "block": contiguous ranges of nodes. "hilbert": equal shares
    /// along a Hilbert curve through the nodes of a mesh. "file": a METIS file with a line for each node.
    pub kind: *const c_char,
    /// Number of entries in `ranks`.
    pub count: usize,
    /// The rank of each node.
    pub ranks: *const i64,
    /// Path of the file.
    pub path: *const c_char,
}

/// How to make a partition; equal on all ranks. A null pointer means the same as all zeros and nulls.
#[repr(C)]
pub struct fs_partition_options {
    /// Number of nodes; 0: the size of the vector or of the mesh.
    pub nodes: u64,
    /// The number of the first node in the edges: 0 or 1. Nodes of a mesh are numbered from 0.
    pub base: u64,
    /// Not 0: neither use a history of earlier runs nor keep this partition.
    pub no_history: c_int,
    /// How edges get to the ranks of their ends: "direct" (or null) sends each edge to these ranks alone;
    /// "ring" passes all edges through all ranks.
    pub method: *const c_char,
}

/// Size of a rank's part of a mesh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct fs_partition_counts {
    /// Nodes: own nodes, then ghosts.
    pub nodes: usize,
    /// Own nodes.
    pub owned: usize,
    /// Edges with an own end.
    pub edges: usize,
    /// Edges whose first end is own; they come first.
    pub owned_edges: usize,
}

/// Collective: makes this rank's part of a mesh: the nodes that the vector assigns to it, all edges with an
/// own end, and as ghosts the nodes at the other ends of those edges. If an earlier run kept a history of the
/// partition, it is used, before any edge is read. A computed partition is kept: a thread writes it, and the
/// next flush declares it. FS_INVALID if a vector names a missing rank or an edge a missing node, with rank,
/// position and value. `options` may be null. The handle ends with its job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_partition(
    job: *mut fs_arrays,
    edges: *const fs_edges,
    vector: *const fs_vector,
    options: *const fs_partition_options,
    partition: *mut *mut fs_partition,
) -> c_int {
    call(|| {
        let job = find(job)?;
        // SAFETY: the caller passes null or a place for the handle.
        let place = unsafe { result(partition, std::ptr::null_mut(), "place for the partition") };
        let given = || -> Result<_> {
            let place = place?;
            // SAFETY: the caller passes structures whose lists are as long as they say, or null.
            Ok((place, unsafe { (given_edges(edges)?, given_vector(vector)?, given_options(options)?) }))
        };
        let (place, (edges, vector, options)) =
            given().map_err(|error| job.job.refuse("partition", error))?;
        let part = match &edges {
            GivenEdges::Arrays(first, second) => {
                job.job.partition(Ok((MeshEdges::Arrays(first, second), vector)), &options)
            }
            GivenEdges::Import(import, first, second) => import.with(|import| {
                job.job.partition(Ok((MeshEdges::Import(import, first, second), vector)), &options)
            }),
            GivenEdges::Mesh(mesh) => {
                mesh.with(|mesh| job.job.partition(Ok((MeshEdges::Mesh(mesh), vector)), &options))
            }
        };
        *place = job.give_partition(part?);
        Ok(())
    })
}

/// Counts this rank's nodes and edges. Neither this call nor the next five are collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_info(
    partition: *mut fs_partition,
    counts: *mut fs_partition_counts,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the counts.
        let counts = unsafe { result(counts, fs_partition_counts::default(), "place for the counts") }?;
        let open = find(partition)?;
        let part = open.part.part();
        *counts = fs_partition_counts {
            nodes: part.nodes().len(),
            owned: part.owned(),
            edges: part.edges().len(),
            owned_edges: part.owned_edges(),
        };
        Ok(())
    })
}

/// Gets the global numbers of nodes, from 0: own nodes ascending, then ghosts ascending. `nodes` has room for
/// `capacity` numbers; FS_INVALID if they do not all fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_nodes(
    partition: *mut fs_partition,
    nodes: *mut i64,
    capacity: usize,
) -> c_int {
    // SAFETY: the caller passes room for `capacity` numbers, or null.
    call(|| unsafe { give_numbers(find(partition)?.part.part().nodes().iter().copied(), nodes, capacity) })
}

/// Gets the global numbers of edges, from 0: those whose first end is own, ascending, then the others,
/// ascending.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_edges(
    partition: *mut fs_partition,
    edges: *mut i64,
    capacity: usize,
) -> c_int {
    // SAFETY: the caller passes room for `capacity` numbers, or null.
    call(|| unsafe { give_numbers(find(partition)?.part.part().edges().iter().copied(), edges, capacity) })
}

/// Gets both ends of each edge as positions in the list of nodes, from 0: two numbers for each edge.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_ends(
    partition: *mut fs_partition,
    ends: *mut i64,
    capacity: usize,
) -> c_int {
    call(|| {
        let open = find(partition)?;
        let all = open.part.part().ends().as_flattened().iter().map(|end| i64::from(*end));
        // SAFETY: the caller passes room for `capacity` numbers, or null.
        unsafe { give_numbers(all, ends, capacity) }
    })
}

/// Gets the source of the partition, as a text cut to `capacity` bytes including its zero byte: "computed";
/// "edges", computed from edges that an earlier run kept; "parts", as an earlier run finished it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_source(
    partition: *mut fs_partition,
    source: *mut c_char,
    capacity: usize,
) -> c_int {
    // SAFETY: the caller passes `capacity` bytes, or null.
    call(|| unsafe { copy_text(find(partition)?.part.part().source().word(), source, capacity) })
}

/// Lists the history files that could not be used, one on each line with the reason, as a text cut to
/// `capacity` bytes including its zero byte; "" if there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_ignored(
    partition: *mut fs_partition,
    ignored: *mut c_char,
    capacity: usize,
) -> c_int {
    // SAFETY: the caller passes `capacity` bytes, or null.
    call(|| unsafe { copy_text(&find(partition)?.part.ignored().join("\n"), ignored, capacity) })
}

/// Makes a view of an array at the nodes, which are along dimension `dim`: own nodes are written, all are
/// read. Groups and imports take it; fs_view_free frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_node_view(
    partition: *mut fs_partition,
    dim: c_int,
    view: *mut *mut fs_view,
) -> c_int {
    let made = || Ok(find(partition)?.part.part().node_view().along(counted(dim, "as a dimension")?));
    // SAFETY: the caller passes a place for the handle, or null.
    call(|| unsafe { give_view(view, made) })
}

/// Makes a view of an array at the edges, which are along dimension `dim`: edges whose first end is own are
/// written, all are read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_edge_view(
    partition: *mut fs_partition,
    dim: c_int,
    view: *mut *mut fs_view,
) -> c_int {
    let made = || Ok(find(partition)?.part.part().edge_view().along(counted(dim, "as a dimension")?));
    // SAFETY: the caller passes a place for the handle, or null.
    call(|| unsafe { give_view(view, made) })
}

/// Collective: updates the ghosts in an array at the nodes with their owners' values, in place. The array has
/// the shape (nodes, ...), whose `ndim` extents are in `shape` (null: one dimension). `strides` is as for
/// fs_group_write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_update(
    partition: *mut fs_partition,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    strides: *const i64,
    data: *mut c_void,
) -> c_int {
    call(|| {
        let open = find(partition)?;
        let nodes = open.part.part().nodes().len() as u64;
        let layout = || -> Result<ElementLayout> {
            let mut local = vec![nodes];
            if !shape.is_null() {
                let ndim = counted(ndim, "dimensions")?;
                if ndim == 0 || ndim > FS_MAX_RANK {
                    return Err(Code::Shape.error(format!("an array at nodes of {ndim} dimensions")));
                }
                // SAFETY: not null, and the caller passes `ndim` numbers.
                local = unsafe { items(shape, ndim, "shape of the data") }?.to_vec();
            }
            let given = GivenLayout { ndim, shape, strides };
            // SAFETY: the caller passes a text and lists of `ndim` numbers, or null.
            unsafe { ElementLayout::new(StorageOrder::C, element_type(dtype)?, &local, given) }
        };
        let layout = layout();
        let memory = match &layout {
            // SAFETY: the caller passes data of that layout that no other code uses, or null.
            Ok(layout) => unsafe { layout.memory_mut(data) },
            Err(error) => Err(error.replicate()),
        };
        open.part.update(memory.map(|memory: MemoryMut<'_>| vec![memory]))
    })
}

/// Frees a partition; its views and history files stay. Not collective. Does nothing with null.
#[unsafe(no_mangle)]
pub extern "C" fn fs_partition_free(partition: *mut fs_partition) -> c_int {
    call(|| free_partition(partition))
}

/// Edges, with a reference to their source.
enum GivenEdges<'a> {
    Arrays(&'a [i64], &'a [i64]),
    Import(Arc<OpenFile<JobImport>>, &'a str, &'a str),
    Mesh(Arc<OpenFile<JobMesh>>),
}

/// # Safety
/// `edges` is null or leads to edges whose lists are null or as long as they say and whose texts end in a zero byte.
unsafe fn given_edges<'a>(edges: *const fs_edges) -> Result<GivenEdges<'a>> {
    // SAFETY: the caller's promise is the same.
    let given = unsafe { items(edges, 1, "edges") }?;
    let edges = given.first().ok_or_else(|| Code::Argument.error("the edges are null"))?;
    match (edges.import.is_null(), edges.mesh.is_null()) {
        (true, false) => Ok(GivenEdges::Mesh(find(edges.mesh)?)),
        (false, true) => {
            let import = find(edges.import)?;
            // SAFETY: as above.
            let names = unsafe { (text(edges.first_name, "name of the first ends")?, edges.second_name) };
            // SAFETY: as above.
            let second = unsafe { text(names.1, "name of the second ends") }?;
            Ok(GivenEdges::Import(import, names.0, second))
        }
        (true, true) => {
            // SAFETY: as above.
            let first = unsafe { items(edges.first, edges.count, "list of first ends") }?;
            // SAFETY: as above.
            let second = unsafe { items(edges.second, edges.count, "list of second ends") }?;
            Ok(GivenEdges::Arrays(first, second))
        }
        (false, false) => Err(Code::Argument.error("edges of an import and of a mesh")),
    }
}

/// # Safety
/// As for [`given_edges`].
unsafe fn given_vector<'a>(vector: *const fs_vector) -> Result<MeshVector<'a>> {
    // SAFETY: the caller's promise is the same.
    let given = unsafe { items(vector, 1, "vector") }?;
    let vector = given.first().ok_or_else(|| Code::Argument.error("the vector is null"))?;
    // SAFETY: as above.
    let (kind, ranks) = unsafe {
        (text(vector.kind, "kind of a vector")?, || items(vector.ranks, vector.count, "list of ranks"))
    };
    match kind {
        "replicated" => Ok(MeshVector::Replicated(ranks()?)),
        "shares" => Ok(MeshVector::Shares(ranks()?)),
        "block" => Ok(MeshVector::Block),
        "hilbert" => Ok(MeshVector::Hilbert),
        // SAFETY: as above.
        "file" => Ok(MeshVector::File(PathBuf::from(unsafe { text(vector.path, "path of a vector") }?))),
        other => Err(Code::Option
            .error(format!("'{other}' is not a kind of vector"))
            .with_hint("give replicated, shares, block, hilbert or file")),
    }
}

/// # Safety
/// `options` is null or leads to options whose text ends in a zero byte or is null.
unsafe fn given_options(options: *const fs_partition_options) -> Result<PartitionOptions> {
    let mut chosen = PartitionOptions::default();
    if options.is_null() {
        return Ok(chosen);
    }
    // SAFETY: not null, and the caller promises that it leads to options.
    for given in unsafe { items(options, 1, "options of a partition") }? {
        chosen.nodes = Some(given.nodes).filter(|nodes| *nodes > 0);
        chosen.base = given.base;
        chosen.history = given.no_history == 0;
        // SAFETY: as above.
        if let Some(method) = unsafe { optional_text(given.method, "method") }? {
            chosen.method = PartitionMethod::parse(method)?;
        }
    }
    Ok(chosen)
}

/// Copies numbers to a caller, if there is room for all of them.
///
/// # Safety
/// `to` is null or leads to room for `capacity` numbers that no other code uses during the call.
unsafe fn give_numbers(
    from: impl ExactSizeIterator<Item = i64>,
    to: *mut i64,
    capacity: usize,
) -> Result<()> {
    if from.len() > capacity {
        let error = Code::BufferSize.error(format!("room for {capacity} of {} numbers", from.len()));
        return Err(error.with_hint("fs_partition_info says how many there are"));
    }
    for (n, number) in from.enumerate() {
        // SAFETY: there is room for `capacity` numbers; `result` refuses null.
        *unsafe { result(to.wrapping_add(n), 0, "place for the numbers") }? = number;
    }
    Ok(())
}
