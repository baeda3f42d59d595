//! Unstructured meshes of a store: the ranks of a job create them, the store keeps each content once, and
//! jobs open them by name.

use std::ffi::{c_char, c_int, c_void};

use fieldstone::arrays::{JobMesh, MeshArray, MeshContent, MeshCoordinate, MeshRows, netcdf_attrs};
use fieldstone::catalog::StorageOrder;
use fieldstone::{Code, Result};

use crate::arguments::{copy_text, items, optional_text, result, text};
use crate::attributes::{attributes, fs_attr};
use crate::declared::storage_order;
use crate::elements::GivenLayout;
use crate::handles::{find, fs_arrays, fs_mesh, fs_view};
use crate::imports::{read_file, shape_place};
use crate::job_handles::close_mesh;
use crate::status::call;
use crate::views::optional_view;

/// The step in which the other ranks begin to read: ranks read a mesh like an import.
const READ_STEP: &str = "import";

/// Edges, faces or volumes, each a row of nodes; the rows are concatenated. A row has two nodes for an edge.
/// For a face or volume it has as many entries as the largest one has nodes; -1 fills the rest.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fs_mesh_rows {
    /// Number of rows on this rank.
    pub count: usize,
    /// Entries in a row; 0: the mesh has no such rows.
    pub width: usize,
    /// The entries.
    pub nodes: *const i64,
}

/// This rank's part of a mesh: its contiguous share of each list, in the order of ranks. Zeros and nulls mean
/// that a list is absent.
#[repr(C)]
pub struct fs_mesh_content {
    /// Number of nodes on this rank.
    pub nodes: usize,
    /// Coordinates of a node, equal on all ranks: 2 or 3; 0: 3 if `z` is not null, else 2.
    pub dimensions: c_int,
    /// The first coordinate of each node.
    pub x: *const f64,
    /// The second coordinate.
    pub y: *const f64,
    /// The third one.
    pub z: *const f64,
    /// Edges.
    pub edges: fs_mesh_rows,
    /// Faces, their nodes in turn.
    pub faces: fs_mesh_rows,
    /// Volumes, their nodes in UGRID's order.
    pub volumes: fs_mesh_rows,
    /// The number of the first node: 0 or 1.
    pub base: i64,
    /// Number of attributes of `x`, `y` and `z`, such as "standard_name" and "units"; equal on all ranks.
    pub ncoordinate_attrs: [c_int; 3],
    /// Attributes of each.
    pub coordinate_attrs: [*const fs_attr; 3],
    /// Number of attributes of the mesh; equal on all ranks.
    pub nattrs: c_int,
    /// Its attributes.
    pub attrs: *const fs_attr,
}

/// The size of a mesh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct fs_mesh_counts {
    /// Nodes.
    pub nodes: u64,
    /// Edges.
    pub edges: u64,
    /// Faces.
    pub faces: u64,
    /// Volumes.
    pub volumes: u64,
}

/// Collective: creates a mesh from the ranks' parts, and declares it under a name, which names one content
/// only. The store keeps equal content once, as a file with UGRID's conventions. `order` is the order of
/// dimensions in reads of the mesh's arrays, as for imports: "C" (or null) or "F". FS_INVALID if an entry
/// does not name a node, with rank, position and value; FS_CONFLICT if the name belongs to another mesh. The
/// handle ends with its job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_create_mesh(
    job: *mut fs_arrays,
    name: *const c_char,
    content: *const fs_mesh_content,
    order: *const c_char,
    mesh: *mut *mut fs_mesh,
) -> c_int {
    call(|| {
        let job = find(job)?;
        // SAFETY: the caller passes null or a place for the handle.
        let mesh = unsafe { result(mesh, std::ptr::null_mut(), "place for the mesh") };
        let given = || -> Result<_> {
            let mesh = mesh?;
            // SAFETY: the caller passes texts that end in a zero byte, or null.
            let (name, order) = unsafe { (text(name, "name of a mesh")?, optional_text(order, "order")?) };
            // SAFETY: the caller passes one structure, or null.
            let content = unsafe { items(content, 1, "content of a mesh") }?;
            let content = content.first().ok_or_else(|| Code::Argument.error("the content is null"))?;
            // SAFETY: the caller passes as many attributes as it says, or null.
            let attrs = unsafe { attributes(content.nattrs, content.attrs) }?;
            // SAFETY: the caller passes lists as long as they say, or null.
            let content = unsafe { mesh_content(name, content) }?;
            let content = MeshContent { attrs: netcdf_attrs(&attrs)?, ..content };
            Ok((mesh, name, storage_order(order)?, attrs, content))
        };
        match given() {
            Ok((mesh, name, order, attrs, content)) => {
                *mesh = job.give_mesh(job.job.create_mesh(name, Ok(&content), &attrs)?, order);
                Ok(())
            }
            Err(error) => Err(job.job.refuse("mesh", error)),
        }
    })
}

/// Collective: opens a mesh of the store by name. FS_NOT_FOUND if no mesh has the name; FS_CORRUPT if its
/// file is not the declared one. `order` is as for fs_arrays_create_mesh. The handle ends with its job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_mesh(
    job: *mut fs_arrays,
    name: *const c_char,
    order: *const c_char,
    mesh: *mut *mut fs_mesh,
) -> c_int {
    call(|| {
        let job = find(job)?;
        // SAFETY: the caller passes null or a place for the handle.
        let mesh = unsafe { result(mesh, std::ptr::null_mut(), "place for the mesh") };
        let given = mesh.and_then(|mesh| {
            // SAFETY: the caller passes texts that end in a zero byte, or null.
            let (name, order) = unsafe { (text(name, "name of a mesh")?, optional_text(order, "order")?) };
            Ok((mesh, name, storage_order(order)?))
        });
        match given {
            Ok((mesh, name, order)) => {
                *mesh = job.give_mesh(job.job.mesh(name)?, order);
                Ok(())
            }
            Err(error) => Err(job.job.refuse("mesh", error)),
        }
    })
}

/// Counts the nodes, edges, faces and volumes of a mesh. Not collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_mesh_info(mesh: *mut fs_mesh, counts: *mut fs_mesh_counts) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the counts.
        let counts = unsafe { result(counts, fs_mesh_counts::default(), "place for the counts") }?;
        let [nodes, edges, faces, volumes] = find(mesh)?.with(|mesh| Ok(mesh.counts()))?;
        *counts = fs_mesh_counts { nodes, edges, faces, volumes };
        Ok(())
    })
}

/// Gets the checksum of a mesh's content as a text of 32 hexadecimal digits, cut to `capacity` bytes
/// including its zero byte. Meshes with equal content have equal checksums. Not collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_mesh_checksum(
    mesh: *mut fs_mesh,
    checksum: *mut c_char,
    capacity: usize,
) -> c_int {
    call(|| {
        let sum = find(mesh)?.with(|mesh| Ok(mesh.checksum()))?;
        let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        // SAFETY: the caller passes `capacity` bytes, or null.
        unsafe { copy_text(&hex, checksum, capacity) }
    })
}

/// Collective: gets the shape of this rank's part of a mesh's array by a view; see fs_import_local_shape.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_mesh_local_shape(
    mesh: *mut fs_mesh,
    array: *const c_char,
    view: *mut fs_view,
    ndim: *mut c_int,
    shape: *mut u64,
) -> c_int {
    call(|| {
        let mesh = find(mesh)?;
        // SAFETY: the caller passes a place for a number and room for FS_MAX_RANK, or null.
        let given = unsafe { shape_place(ndim, shape) }.and_then(|place| {
            // SAFETY: the caller passes a text that ends in a zero byte, or null.
            Ok((place, optional_view(view)?, unsafe { mesh_array(array) }?))
        });
        let (place, view, array) = given.map_err(|error| mesh.owner.job.refuse(READ_STEP, error))?;
        let begun = mesh.with(|file| file.begin_read_in(array, view.as_deref(), mesh.order))?;
        place.set(begun.local_shape())
    })
}

/// Collective: reads an array of a mesh: "x", "y", "z", "edges", "faces" or "volumes", by a view (null: this
/// rank's share of a balanced cut). Nodes are numbered from 0. The arguments are those of fs_import_read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_mesh_read(
    mesh: *mut fs_mesh,
    array: *const c_char,
    view: *mut fs_view,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    strides: *const i64,
    data: *mut c_void,
) -> c_int {
    call(|| {
        let mesh = find(mesh)?;
        let given = optional_view(view).and_then(|view| {
            // SAFETY: the caller passes a text that ends in a zero byte, or null.
            Ok((view, unsafe { mesh_array(array) }?))
        });
        let (view, array) = given.map_err(|error| mesh.owner.job.refuse(READ_STEP, error))?;
        let given = (dtype, GivenLayout { ndim, shape, strides });
        // SAFETY: the caller passes lists and data as the arguments say, or null.
        unsafe {
            read_file(
                &mesh,
                |file: &JobMesh, order: StorageOrder| file.begin_read_in(array, view.as_deref(), order),
                given,
                data,
                |file, begun, memory| file.read(array, begun, memory).map(drop),
            )
        }
    })
}

/// Collective: closes the mesh; the store keeps it. Does nothing with null.
#[unsafe(no_mangle)]
pub extern "C" fn fs_mesh_close(mesh: *mut fs_mesh) -> c_int {
    call(|| close_mesh(mesh))
}

/// # Safety
/// As for [`text`].
unsafe fn mesh_array(word: *const c_char) -> Result<MeshArray> {
    // SAFETY: the caller's promise is the same.
    let word = unsafe { text(word, "array of a mesh") }?;
    MeshArray::ALL.into_iter().find(|known| known.word() == word).ok_or_else(|| {
        let error = Code::NotFound.error(format!("a mesh has no {word}"));
        error.with_hint("its arrays are x, y, z, edges, faces and volumes")
    })
}

/// Content of a mesh as a caller passes it, without attributes.
///
/// # Safety
/// The lists are null or as long as they say, and no thread changes them during the call.
unsafe fn mesh_content<'a>(name: &'a str, given: &fs_mesh_content) -> Result<MeshContent<'a>> {
    let mut axes = vec![(given.x, "list of x"), (given.y, "list of y")];
    let in_space = match given.dimensions {
        0 => !given.z.is_null(),
        2 => false,
        3 => true,
        other => return Err(Code::Option.error(format!("a mesh of {other} dimensions; give 2 or 3"))),
    };
    if in_space {
        axes.push((given.z, "list of z"));
    }
    let coordinate = |(place, (values, what)): (usize, (*const f64, &str))| {
        // SAFETY: the caller's promise is the same.
        let values = unsafe { items(values, given.nodes, what) }?;
        // SAFETY: as above.
        let attrs = unsafe { attributes(given.ncoordinate_attrs[place], given.coordinate_attrs[place]) }?;
        Ok(MeshCoordinate { values, attrs: netcdf_attrs(&attrs)? })
    };
    let rows = |rows: fs_mesh_rows, what: &str| -> Result<Option<MeshRows<'a>>> {
        if rows.width == 0 {
            return match rows.count {
                0 => Ok(None),
                count => Err(Code::Shape.error(format!("{count} {what} of no nodes"))),
            };
        }
        let entries = rows.count.checked_mul(rows.width);
        let entries = entries.ok_or_else(|| Code::Shape.error(format!("{} {what}", rows.count)))?;
        // SAFETY: the caller's promise is the same.
        let nodes = unsafe { items(rows.nodes, entries, what) }?;
        Ok(Some(MeshRows { width: rows.width, nodes }))
    };
    Ok(MeshContent {
        name,
        coordinates: axes.into_iter().enumerate().map(coordinate).collect::<Result<_>>()?,
        edges: rows(given.edges, "edges")?,
        faces: rows(given.faces, "faces")?,
        volumes: rows(given.volumes, "volumes")?,
        base: given.base,
        fill: None,
        attrs: netcdf_attrs(&[])?,
    })
}
