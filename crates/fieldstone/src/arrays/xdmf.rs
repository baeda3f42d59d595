//! XDMF: a text that points to the fields of a run on a mesh in the store's files, so that ParaView shows them in
//! place.
//!
//! One grid has the node fields and those of the mesh's cells: volumes, else faces, else edges, else nodes. Other
//! fields are on a grid of their own. Each grid is a series over the steps at which one of its fields is complete.
//!
//! Invariants: no value is copied; every place is the store's own, so that hidden or removed steps are not shown; the
//! report names the fields that XDMF cannot point to, with the reason. XDMF points to rows of nodes if all are of one
//! kind and full; else the topology, and it alone, is written next to the text as XDMF's Mixed, whose rows have no
//! padding.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use fieldstone_array::distributed::mesh::MeshArray;
use fieldstone_core::dtype::{ByteOrder, DType, DTypeKind};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{ArrayGroup, MeshLocation};

use super::source::locate;
use super::stored::{NodeRows, StoredMesh};
use crate::run::Run;
use crate::steps::common_steps;

/// Report of a written XDMF text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct XdmfReport {
    /// The files: the text, and topologies next to it.
    pub files: Vec<PathBuf>,
    /// Variables that it shows.
    pub variables: Vec<String>,
    /// Steps that it shows.
    pub steps: Vec<i64>,
    /// Variables, or steps of them, that it does not show, with the reason.
    pub omitted: Vec<(String, String)>,
}

/// Bytes in a file that form an array.
struct FilePlace {
    path: PathBuf,
    offset: u64,
    dtype: DType,
    shape: Vec<u64>,
}

/// A grid with its fields at each step.
struct Series {
    location: MeshLocation,
    topology: String,
    steps: BTreeMap<i64, Vec<(String, MeshLocation, FilePlace)>>,
}

/// Writes the text of all flushed fields of a run on a mesh to `path`; without `mesh`, on its only mesh.
///
/// Errors: `NotFound` if the run has no group on the mesh; `Invalid` if it has several meshes and `mesh` is absent.
pub fn write_xdmf(run: &Run, mesh: Option<&str>, path: &Path) -> Result<XdmfReport> {
    let groups = run.array_groups()?;
    let name = mesh_name(&groups, mesh)?;
    let mesh = StoredMesh::open(run.store(), &name)?;
    let path = std::path::absolute(path).map_err(|e| Error::io("name", path, e))?;
    let mut report = XdmfReport { files: vec![path.clone()], ..XdmfReport::default() };
    let cells = cells_of(&mesh);
    let mut series: Vec<Series> = Vec::new();
    for group in groups.iter().filter(|group| group.mesh.as_deref() == Some(&name)) {
        let Some(at) = group.location else { continue };
        let grid = if at == MeshLocation::Node { cells } else { at };
        for set in &group.sets {
            let variable = &set.variable.name;
            let pieces = pieces(run, variable, mesh.count(at), &mut report)?;
            if pieces.is_empty() {
                continue;
            }
            report.variables.push(variable.clone());
            let known = match series.iter().position(|series| series.location == grid) {
                Some(known) => known,
                None => {
                    let topology = topology(&mesh, grid, &path, &mut report.files)?;
                    series.push(Series { location: grid, topology, steps: BTreeMap::new() });
                    series.len() - 1
                }
            };
            for (step, piece) in pieces {
                series[known].steps.entry(step).or_default().push((variable.clone(), at, piece));
            }
        }
    }
    let steps: BTreeSet<i64> = series.iter().flat_map(|series| series.steps.keys().copied()).collect();
    report.steps = steps.into_iter().collect();
    let text = text(&mesh, &name, &series, &path)?;
    std::fs::write(&path, text).map_err(|e| Error::io("write", &path, e))?;
    Ok(report)
}

/// The place of a variable at each step at which it is complete.
fn pieces(run: &Run, variable: &str, count: u64, report: &mut XdmfReport) -> Result<Vec<(i64, FilePlace)>> {
    let (store, session) = (run.store(), run.session());
    let mut pieces = Vec::new();
    for step in common_steps(store, run.name(), &[variable.to_owned()], session)? {
        let key = store.catalog().key_of(run.name(), Some(variable), Some(step))?;
        let found = locate(store, &key, session)?;
        let first = found.shape.first().copied();
        // A reason that applies to one step applies to all.
        let unfit = match () {
            () if first != Some(count) => Some(
                "its first dimension in the file is not the mesh's (order=\"F\" reverses dimensions)"
                    .to_owned(),
            ),
            () if number(found.dtype).is_none() => {
                Some(format!("XDMF has no elements of {}", found.dtype.name()))
            }
            () => None,
        };
        if let Some(why) = unfit {
            report.omitted.push((variable.to_owned(), why));
            break;
        }
        match found.stored {
            Some(slab) => {
                let (path, offset) = (PathBuf::from(&slab.path), slab.offset);
                pieces.push((step, FilePlace { path, offset, dtype: found.dtype, shape: found.shape }));
            }
            None => {
                let why = "its values are in the store's logs, where XDMF cannot point".to_owned();
                report.omitted.push((format!("{variable} at step {step}"), why));
            }
        }
    }
    Ok(pieces)
}

fn mesh_name(groups: &[ArrayGroup], mesh: Option<&str>) -> Result<String> {
    let names: BTreeSet<&str> = groups.iter().filter_map(|group| group.mesh.as_deref()).collect();
    let all = names.iter().copied().collect::<Vec<_>>().join(", ");
    match mesh {
        Some(name) if names.contains(name) => Ok(name.to_owned()),
        Some(name) => Err(Code::NotFound
            .error(format!("the run has no group on a mesh '{name}'"))
            .with_hint(if all.is_empty() {
                "it has no group on any mesh".to_owned()
            } else {
                format!("it has groups on {all}")
            })),
        None if names.len() == 1 => Ok(all),
        None if names.is_empty() => Err(Code::NotFound
            .error("the run has no group on a mesh")
            .with_hint("declare one with mesh= and location=")),
        None => Err(Code::Option
            .error("the run has groups on several meshes")
            .with_hint(format!("name one of {all}"))),
    }
}

/// The location of the cells in the grid with the node fields.
fn cells_of(mesh: &StoredMesh) -> MeshLocation {
    let all = [MeshLocation::Volume, MeshLocation::Face, MeshLocation::Edge];
    all.into_iter().find(|location| mesh.count(*location) > 0).unwrap_or(MeshLocation::Node)
}

/// XDMF's number type and its bytes.
fn number(dtype: DType) -> Option<(&'static str, usize)> {
    match (dtype.kind(), dtype.size()) {
        (DTypeKind::Int, 1) => Some(("Char", 1)),
        (DTypeKind::UInt, 1) => Some(("UChar", 1)),
        // VTK's reader takes a 2-byte `Int` for one of 4 bytes, and has no unsigned integer of 8 bytes.
        (DTypeKind::Int, 2) => Some(("Short", 2)),
        (DTypeKind::UInt, 2) => Some(("UShort", 2)),
        (DTypeKind::Int, size @ (4 | 8)) => Some(("Int", size)),
        (DTypeKind::UInt, 4) => Some(("UInt", 4)),
        (DTypeKind::Float, size @ (4 | 8)) => Some(("Float", size)),
        _ => None,
    }
}

/// XDMF's name and code of a cell with `nodes` nodes; polygons state their number.
fn cell(location: MeshLocation, nodes: usize) -> (&'static str, i64) {
    match (location, nodes) {
        (MeshLocation::Face, 3) => ("Triangle", 4),
        (MeshLocation::Face, 4) => ("Quadrilateral", 5),
        (MeshLocation::Face, _) => ("Polygon", 3),
        (MeshLocation::Volume, 4) => ("Tetrahedron", 6),
        (MeshLocation::Volume, 5) => ("Pyramid", 7),
        (MeshLocation::Volume, 6) => ("Wedge", 8),
        (MeshLocation::Volume, 8) => ("Hexahedron", 9),
        (MeshLocation::Volume, _) => ("", 0),
        (MeshLocation::Edge, _) => ("Polyline", 2),
        (MeshLocation::Node, _) => ("Polyvertex", 1),
    }
}

/// The element `Topology` of a grid; if rows are of several kinds, writes a file and adds it to the report.
fn topology(
    mesh: &StoredMesh,
    location: MeshLocation,
    text: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<String> {
    let count = mesh.count(location);
    let array = match location {
        MeshLocation::Node => {
            // A point for each node, whose numbers are written: XDMF has no other way to list them.
            let rows = NodeRows { width: 1, nodes: (0..i64::try_from(count).unwrap_or(i64::MAX)).collect() };
            let numbers = rows.nodes.iter().copied();
            let piece = beside(text, location, numbers, files)?;
            return Ok(element("Polyvertex", count, Some(1), &item(&piece, text)?));
        }
        MeshLocation::Edge => MeshArray::Edges,
        MeshLocation::Face => MeshArray::Faces,
        MeshLocation::Volume => MeshArray::Volumes,
    };
    let rows = mesh.rows(array)?.unwrap_or_default();
    let (kind, code) = cell(location, rows.width);
    if code != 0 && !rows.nodes.contains(&-1) {
        let place = mesh.place(array)?;
        let piece = FilePlace {
            path: mesh.path().to_owned(),
            offset: place.offset,
            dtype: place.dtype,
            shape: place.shape.clone(),
        };
        let per = matches!(kind, "Polygon" | "Polyline").then_some(rows.width);
        return Ok(element(kind, count, per, &item(&piece, text)?));
    }
    let mut mixed = Vec::with_capacity(rows.nodes.len() + 2 * rows.nodes.len() / rows.width.max(1));
    for row in rows.iter() {
        match cell(location, row.len()) {
            (_, 0) => {
                return Err(Code::Shape
                    .error(format!("XDMF has no volumes of {} nodes", row.len()))
                    .with_hint("volumes have 4, 5, 6 or 8 nodes"));
            }
            ("Polygon", code) => mixed.extend([code, row.len() as i64]),
            (_, code) => mixed.push(code),
        }
        mixed.extend_from_slice(row);
    }
    let piece = beside(text, location, mixed.into_iter(), files)?;
    Ok(element("Mixed", count, None, &item(&piece, text)?))
}

/// Writes numbers into a file next to the text, as big-endian integers of 8 bytes.
fn beside(
    text: &Path,
    location: MeshLocation,
    numbers: impl ExactSizeIterator<Item = i64>,
    files: &mut Vec<PathBuf>,
) -> Result<FilePlace> {
    let mut name = text.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}s", location.name()));
    let path = text.with_file_name(name);
    let shape = vec![numbers.len() as u64];
    let bytes: Vec<u8> = numbers.flat_map(i64::to_be_bytes).collect();
    std::fs::write(&path, bytes).map_err(|e| Error::io("write", &path, e))?;
    files.push(path.clone());
    Ok(FilePlace { path, offset: 0, dtype: DType::I8.with_order(ByteOrder::Big), shape })
}

fn element(kind: &str, count: u64, per: Option<usize>, item: &str) -> String {
    let per = per.map(|nodes| format!(" NodesPerElement=\"{nodes}\"")).unwrap_or_default();
    format!("<Topology TopologyType=\"{kind}\" NumberOfElements=\"{count}\"{per}>\n{item}</Topology>\n")
}

/// The element `DataItem` of bytes in a file.
fn item(piece: &FilePlace, text: &Path) -> Result<String> {
    let (kind, size) = number(piece.dtype)
        .ok_or_else(|| Error::internal(format!("XDMF has no elements of {}", piece.dtype.name())))?;
    let shape: Vec<String> = piece.shape.iter().map(u64::to_string).collect();
    let endian = if piece.dtype.byte_order() == ByteOrder::Little { "Little" } else { "Big" };
    Ok(format!(
        "<DataItem Format=\"Binary\" NumberType=\"{kind}\" Precision=\"{size}\" Endian=\"{endian}\" Seek=\"{}\" \
         Dimensions=\"{}\">{}</DataItem>\n",
        piece.offset,
        shape.join(" "),
        escaped(&relative(&piece.path, text)?)
    ))
}

/// A path relative to the folder of the text, so that both can be moved together.
fn relative(path: &Path, text: &Path) -> Result<String> {
    let folder = text.parent().unwrap_or(Path::new("/"));
    let real = |path: &Path| std::fs::canonicalize(path).map_err(|e| Error::io("find", path, e));
    let (path, folder) = (real(path)?, real(folder)?);
    let same = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(same).map(|_| Component::ParentDir);
    let found: PathBuf = up.chain(path.components().skip(same)).collect();
    found
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| Code::Name.error(format!("the path {} is not UTF-8", path.display())))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn text(mesh: &StoredMesh, name: &str, series: &[Series], path: &Path) -> Result<String> {
    let axes: Vec<MeshArray> = mesh
        .arrays()
        .into_iter()
        .filter(|array| matches!(array, MeshArray::X | MeshArray::Y | MeshArray::Z))
        .collect();
    let mut geometry =
        format!("<Geometry GeometryType=\"{}\">\n", if axes.len() == 3 { "X_Y_Z" } else { "X_Y" });
    for axis in axes {
        let place = mesh.place(axis)?;
        let (path_of, shape) = (mesh.path().to_owned(), place.shape.clone());
        geometry +=
            &item(&FilePlace { path: path_of, offset: place.offset, dtype: place.dtype, shape }, path)?;
    }
    geometry += "</Geometry>\n";
    let mut out = String::from("<?xml version=\"1.0\"?>\n<Xdmf Version=\"2.2\">\n<Domain>\n");
    for series in series {
        let grid = match series.location == cells_of(mesh) {
            true => escaped(name),
            false => format!("{}_{}s", escaped(name), series.location.name()),
        };
        let _ = writeln!(out, "<Grid Name=\"{grid}\" GridType=\"Collection\" CollectionType=\"Temporal\">");
        for (step, fields) in &series.steps {
            let _ = writeln!(out, "<Grid Name=\"{grid}\" GridType=\"Uniform\">\n<Time Value=\"{step}\"/>");
            out += &series.topology;
            out += &geometry;
            for (variable, at, piece) in fields {
                let center = if *at == MeshLocation::Node { "Node" } else { "Cell" };
                let kind = match piece.shape[1..].iter().product::<u64>() {
                    1 => "Scalar",
                    3 => "Vector",
                    _ => "Matrix",
                };
                let variable = escaped(variable);
                let _ = writeln!(
                    out,
                    "<Attribute Name=\"{variable}\" AttributeType=\"{kind}\" Center=\"{center}\">"
                );
                out += &item(piece, path)?;
                out += "</Attribute>\n";
            }
            out += "</Grid>\n";
        }
        out += "</Grid>\n";
    }
    out += "</Domain>\n</Xdmf>\n";
    Ok(out)
}
