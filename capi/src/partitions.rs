//! A rank's part of an unstructured mesh, from a vector that says which rank a node belongs to.

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

/// Where edges come from: a mesh; or an import, whose variables `first_name` and `second_name` are the ends; or else the
/// arrays `first` and `second`, of which each rank gives its contiguous share, in the order of ranks.
#[repr(C)]
pub struct fs_edges {
    /// How many edges this rank gives.
    pub count: usize,
    /// The node at the first end of each.
    pub first: *const i64,
    /// The node at the second end.
    pub second: *const i64,
    /// A file with the edges; null for none.
    pub import: *mut fs_import,
    /// The variable with the first ends: whole numbers of 4 or 8 bytes.
    pub first_name: *const c_char,
    /// The variable with the second ends.
    pub second_name: *const c_char,
    /// A mesh, by its edges, else by those of its faces or volumes; null for none.
    pub mesh: *mut fs_mesh,
}

/// Which rank a node belongs to.
#[repr(C)]
pub struct fs_vector {
    /// "replicated": `ranks` are those of all nodes, equal on all ranks; "shares": of this rank's contiguous share of the
    /// nodes; "block": contiguous ranges of nodes; "hilbert": equal shares along a Hilbert curve through the nodes of a
    /// mesh; "file": a file of METIS, with a line for each node.
    pub kind: *const c_char,
    /// How many numbers `ranks` has.
    pub count: usize,
    /// The rank of each node.
    pub ranks: *const i64,
    /// Path of the file.
    pub path: *const c_char,
}

/// How a partition is made; equal on all ranks. All zeros and nulls are what a null pointer is.
#[repr(C)]
pub struct fs_partition_options {
    /// How many nodes there are; 0: as many as the vector has, or the mesh.
    pub nodes: u64,
    /// The number of the first node in the edges: 0 or 1. Nodes of a mesh count from 0.
    pub base: u64,
    /// Not 0: what earlier runs kept is not used, and this partition is not kept.
    pub no_history: c_int,
    /// How edges come to the ranks of their ends: "direct" (also where null), each to these ranks alone; "ring", all of
    /// them past all ranks.
    pub method: *const c_char,
}

/// How much a rank has of a mesh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct fs_partition_counts {
    /// Nodes: own ones, then ghosts.
    pub nodes: usize,
    /// Own nodes.
    pub owned: usize,
    /// Edges with an own end.
    pub edges: usize,
    /// Edges whose first end is own: the first ones.
    pub owned_edges: usize,
}

/// Collective: this rank's part of a mesh: the nodes that the vector gives it, as ghosts the nodes at the other ends of its
/// edges, and all edges with an own end. With history a partition that an earlier run kept is used, before edges are read,
/// and one that is computed is kept: written by a thread, and declared by the next flush. FS_INVALID, with rank, position
/// and value, for a vector or an edge that names what is not there. `options` may be null. It ends with its job.
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
        // SAFETY: the caller gives null or a place for the handle.
        let place = unsafe { result(partition, std::ptr::null_mut(), "place for the partition") };
        let given = || -> Result<_> {
            let place = place?;
            // SAFETY: the caller gives structures whose lists are as long as they say, or null.
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

/// How much this rank has. Of this rank alone, as are the next five calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_info(
    partition: *mut fs_partition,
    counts: *mut fs_partition_counts,
) -> c_int {
    call(|| {
        // SAFETY: the caller gives null or a place for the counts.
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

/// Global numbers of nodes from 0 on: own ones ascending, then ghosts ascending. `nodes` has room for `capacity`; fewer than
/// there are is FS_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_nodes(
    partition: *mut fs_partition,
    nodes: *mut i64,
    capacity: usize,
) -> c_int {
    // SAFETY: the caller gives room for `capacity` numbers, or null.
    call(|| unsafe { give_numbers(find(partition)?.part.part().nodes().iter().copied(), nodes, capacity) })
}

/// Global numbers of edges from 0 on: those whose first end is own, ascending, then the others, ascending.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_edges(
    partition: *mut fs_partition,
    edges: *mut i64,
    capacity: usize,
) -> c_int {
    // SAFETY: the caller gives room for `capacity` numbers, or null.
    call(|| unsafe { give_numbers(find(partition)?.part.part().edges().iter().copied(), edges, capacity) })
}

/// Both ends of each edge, as places in the list of nodes, from 0 on: two numbers an edge.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_ends(
    partition: *mut fs_partition,
    ends: *mut i64,
    capacity: usize,
) -> c_int {
    call(|| {
        let open = find(partition)?;
        let all = open.part.part().ends().as_flattened().iter().map(|end| i64::from(*end));
        // SAFETY: the caller gives room for `capacity` numbers, or null.
        unsafe { give_numbers(all, ends, capacity) }
    })
}

/// How it came about, as a text cut to `capacity` bytes with its zero byte: "computed"; "edges", from edges that an earlier
/// run kept; "parts", as an earlier run finished it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_source(
    partition: *mut fs_partition,
    source: *mut c_char,
    capacity: usize,
) -> c_int {
    // SAFETY: the caller gives `capacity` bytes, or null.
    call(|| unsafe { copy_text(find(partition)?.part.part().source().word(), source, capacity) })
}

/// What was kept and could not be used, a line for each file with the reason, as a text cut to `capacity` bytes with its
/// zero byte; "" where there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_ignored(
    partition: *mut fs_partition,
    ignored: *mut c_char,
    capacity: usize,
) -> c_int {
    // SAFETY: the caller gives `capacity` bytes, or null.
    call(|| unsafe { copy_text(&find(partition)?.part.ignored().join("\n"), ignored, capacity) })
}

/// What this rank holds of an array at the nodes, which are along dimension `dim`: own ones are written, all are read. A
/// view for groups and imports, which fs_view_free gives back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_node_view(
    partition: *mut fs_partition,
    dim: c_int,
    view: *mut *mut fs_view,
) -> c_int {
    let made = || Ok(find(partition)?.part.part().node_view().along(counted(dim, "as a dimension")?));
    // SAFETY: the caller gives a place for the handle, or null.
    call(|| unsafe { give_view(view, made) })
}

/// What this rank holds of an array at the edges, which are along dimension `dim`: edges whose first end is own are
/// written, all are read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_partition_edge_view(
    partition: *mut fs_partition,
    dim: c_int,
    view: *mut *mut fs_view,
) -> c_int {
    let made = || Ok(find(partition)?.part.part().edge_view().along(counted(dim, "as a dimension")?));
    // SAFETY: the caller gives a place for the handle, or null.
    call(|| unsafe { give_view(view, made) })
}

/// Collective: gives ghosts their owners' values, in place, in an array at the nodes: of the shape (nodes, ...), of which
/// `shape` has `ndim` extents; where null, the array has one dimension. `strides` as for fs_group_write.
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
                // SAFETY: not null, and the caller gives `ndim` numbers.
                local = unsafe { items(shape, ndim, "shape of the data") }?.to_vec();
            }
            let given = GivenLayout { ndim, shape, strides };
            // SAFETY: the caller gives a text and lists of `ndim` numbers, or null.
            unsafe { ElementLayout::new(StorageOrder::C, element_type(dtype)?, &local, given) }
        };
        let layout = layout();
        let memory = match &layout {
            // SAFETY: the caller gives data of that layout, which nobody else uses, or null.
            Ok(layout) => unsafe { layout.memory_mut(data) },
            Err(error) => Err(error.replicate()),
        };
        open.part.update(memory.map(|memory: MemoryMut<'_>| vec![memory]))
    })
}

/// Forgets a partition; views and kept files stay. Of this rank alone. Null is nothing to forget.
#[unsafe(no_mangle)]
pub extern "C" fn fs_partition_free(partition: *mut fs_partition) -> c_int {
    call(|| free_partition(partition))
}

/// Edges, with what they come from held.
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
            .error(format!("'{other}' is no kind of a vector"))
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
    // SAFETY: not null, and by the caller's promise options.
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

/// Gives numbers to a caller who has room for all of them.
///
/// # Safety
/// `to` is null or leads to room for `capacity` numbers that nobody else uses during the call.
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
