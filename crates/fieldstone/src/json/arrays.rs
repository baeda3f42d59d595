//! Distributed arrays of runs, their meshes, and their files.

use fieldstone_core::geometry::IndexBox;
use serde_json::{Map, Value as Json, json};

use super::values::{self, named, project};
use crate::arrays::{ArrayFile, GroupInventory, RewrittenGroup, ShownFiles, StoredMesh, XdmfReport};
use crate::catalog::{ArrayLayout, ArraySet, MeshDecl, MeshLocation, RunName};
use crate::outside::ObjectRead;

/// A group of a run; `opens` says whether other programs can open a file, if that was checked.
pub fn group(run: &RunName, found: &GroupInventory, opens: &dyn Fn(&str) -> Option<bool>) -> Json {
    let group = &found.group;
    json!({
        "project": project(run),
        "run": run.name,
        "name": group.name,
        "layout": if group.layout == ArrayLayout::Files { "files" } else { "fields" },
        "level": (group.layout == ArrayLayout::Files).then_some(group.level),
        "method": group.method,
        "order": group.order.name(),
        "mesh": group.mesh,
        "location": group.location.map(|location| location.name()),
        "attrs": named(&group.attrs),
        "sets": group.sets.iter().map(set).collect::<Vec<_>>(),
        "steps": found.steps.keys().collect::<Vec<_>>(),
        "arrays": found.arrays,
        "incomplete": found.incomplete,
        "files": found.files.iter().map(|one| file(one, opens(&one.path))).collect::<Vec<_>>(),
    })
}

fn set(set: &ArraySet) -> Json {
    json!({
        "name": set.variable.name,
        "dtype": set.dtype.to_string(),
        "shape": set.shape,
        "dims": set.dims,
        "view": set.view,
    })
}

fn file(file: &ArrayFile, opens: Option<bool>) -> Json {
    let mut object = json!({"path": file.path, "arrays": file.arrays, "bytes": file.bytes});
    if let Some(opens) = opens {
        object["opens"] = opens.into();
    }
    object
}

/// A group that was rewritten.
pub fn rewritten(group: &RewrittenGroup) -> Json {
    json!({
        "name": group.name,
        "level": group.level.number(),
        "arrays": group.arrays,
        "bytes": group.bytes,
        "before": group.files_before,
        "files": group.files,
    })
}

/// Files that now show everything, and those that could not be changed.
pub fn shown(shown: &ShownFiles) -> Json {
    let left = shown.left.iter().map(|(path, why)| json!({"path": path, "why": why}));
    json!({"files": shown.files, "left": left.collect::<Vec<_>>()})
}

/// A mesh in the file at `path`, with the runs that have groups on it.
pub fn mesh(decl: &MeshDecl, path: &str, runs: &[RunName]) -> Json {
    let [nodes, edges, faces, volumes] = decl.counts;
    json!({
        "name": decl.name,
        "counts": {"node": nodes, "edge": edges, "face": faces, "volume": volumes},
        "checksum": decl.checksum.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "path": path,
        "attrs": named(&decl.attrs),
        "runs": runs.iter().map(values::run).collect::<Vec<_>>(),
    })
}

/// As [`mesh`], with the bounds (name, least and greatest value of each coordinate) and the dimensions of its parts.
pub fn whole_mesh(mesh: &StoredMesh, path: &str, runs: &[RunName], bounds: &[(&str, f64, f64)]) -> Json {
    let mut whole = self::mesh(mesh.info(), path, runs);
    let bounds = bounds.iter().map(|(axis, least, greatest)| ((*axis).to_owned(), json!([least, greatest])));
    whole["bounds"] = bounds.collect::<Map<_, _>>().into();
    let locations = [MeshLocation::Node, MeshLocation::Edge, MeshLocation::Face, MeshLocation::Volume];
    let there = locations.into_iter().filter(|location| mesh.count(*location) > 0);
    let dims = there.map(|location| (location.name().to_owned(), mesh.dimension(location).into()));
    whole["dims"] = dims.collect::<Map<_, _>>().into();
    whole
}

/// The report of a written XDMF text.
pub fn xdmf(report: &XdmfReport) -> Json {
    let omitted = report.omitted.iter().map(|(what, why)| json!({"what": what, "why": why}));
    json!({
        "files": report.files.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "variables": report.variables,
        "steps": report.steps,
        "omitted": omitted.collect::<Vec<_>>(),
    })
}

/// A file outside the store that holds a part of a box.
pub fn object(read: &ObjectRead) -> Json {
    let ends = |region: &IndexBox| json!({"start": region.start(), "count": region.count()});
    json!({"path": read.path, "dataset": read.dataset, "piece": ends(&read.piece), "part": ends(&read.part)})
}
