//! `fieldstone mesh`: unstructured meshes that a store keeps, and fields on them for ParaView.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use fieldstone::arrays::{MeshArray, StoredMesh, mesh_path, write_xdmf};
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{MeshDecl, RunName};
use fieldstone::{Session, Store, json};

use crate::arguments::Reading;
use crate::catalog::{or_dash, run_cell, value_cell};
use crate::output::{Done, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone mesh store
  fieldstone mesh store wing
  fieldstone mesh store wing --json
  fieldstone mesh store wing --xdmf flow-7 -o flow-7.xdmf

Without a name it prints a line for each mesh; with a name it shows counts, coordinates with their least and greatest
values, attributes, and the runs with groups on the mesh. Jobs and `fieldstone ingest --mesh` make meshes.

--xdmf writes a file with which ParaView shows all steps of a run's fields on the mesh. The file copies no values: it
refers to the store's files. Only if the mesh has elements of several kinds, their nodes go into a file next to it.";

/// List meshes, or show one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    /// The mesh; by default all
    name: Option<String>,
    /// Write an XDMF file of the fields of this run on the mesh
    #[arg(long, value_name = "RUN", requires = "name")]
    xdmf: Option<String>,
    /// The XDMF file; by default RUN.xdmf
    #[arg(short, long, value_name = "FILE", requires = "xdmf")]
    output: Option<PathBuf>,
}

/// Lists, shows, or writes XDMF.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open()?;
    match (&arguments.name, &arguments.xdmf) {
        (Some(name), Some(run)) => {
            let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{run}.xdmf")));
            xdmf(&store, name, run, &path, out)
        }
        (Some(name), None) => show(&store, name, out),
        _ => list(&store, out),
    }
}

/// Runs with groups on each mesh.
fn runs(store: &Store) -> fieldstone::Result<BTreeMap<String, Vec<RunName>>> {
    let (_, rows) = store.catalog().sql(
        "SELECT DISTINCT project, runid, mesh FROM access_pattern_table WHERE mesh IS NOT NULL \
         ORDER BY project, runid",
    )?;
    let mut runs: BTreeMap<String, Vec<RunName>> = BTreeMap::new();
    for row in rows {
        if let [Value::Text(project), Value::Text(name), Value::Text(mesh)] = &row[..] {
            let run = RunName { project: project.clone(), name: name.clone() };
            runs.entry(mesh.clone()).or_default().push(run);
        }
    }
    Ok(runs)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Path of a mesh's file.
fn path(store: &Store, decl: &MeshDecl) -> String {
    mesh_path(store, decl).display().to_string()
}

fn list(store: &Store, out: &mut Out) -> Done {
    let (meshes, runs) = (store.catalog().meshes(&Session::default())?, runs(store)?);
    let of = |decl: &MeshDecl| runs.get(&decl.name).cloned().unwrap_or_default();
    if out.json() {
        let shape = |decl| json::arrays::mesh(decl, &path(store, decl), &of(decl));
        return out.items("meshes", meshes.iter().map(|decl| Ok(shape(decl))));
    }
    if meshes.is_empty() {
        out.note("the store keeps no mesh: jobs make them, and `fieldstone ingest --mesh NAME`");
    }
    let mut table = Table::new([
        Column::text("mesh").least(12).rank(9),
        Column::number("nodes").rank(8),
        Column::number("edges").rank(7),
        Column::number("faces").rank(7),
        Column::number("volumes").rank(7),
        Column::text("runs").least(12).rank(6),
        Column::text("path").least(16).rank(4),
    ]);
    for decl in &meshes {
        let runs = of(decl).iter().map(run_cell).collect::<Vec<_>>().join(" ");
        let mut cells = vec![decl.name.clone()];
        cells.extend(decl.counts.iter().map(u64::to_string));
        cells.extend([or_dash(Some(runs).filter(|runs| !runs.is_empty())), path(store, decl)]);
        table.row(cells, out)?;
    }
    table.finish(out)
}

/// Name, attributes, least and greatest value of each coordinate.
type Bounds = Vec<(&'static str, f64, f64)>;

fn bounds(mesh: &StoredMesh) -> fieldstone::Result<Bounds> {
    let axes = ["x", "y", "z"].into_iter().zip(mesh.coordinates()?);
    let extremes = |(axis, values): (&'static str, Vec<f64>)| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (axis, least, greatest)
    };
    Ok(axes.map(extremes).collect())
}

fn show(store: &Store, name: &str, out: &mut Out) -> Done {
    let mesh = StoredMesh::open(store, name)?;
    let (decl, bounds) = (mesh.info().clone(), bounds(&mesh)?);
    let runs = runs(store)?.remove(name).unwrap_or_default();
    let arrays = [MeshArray::Edges, MeshArray::Faces, MeshArray::Volumes];
    let width = |array: MeshArray| mesh.place(array).ok().and_then(|place| place.shape.get(1).copied());
    if out.json() {
        return out.document(&json::arrays::whole_mesh(&mesh, &path(store, &decl), &runs, &bounds));
    }
    let mut table = Table::new([Column::text("what").rank(9), Column::text("value").least(20).rank(8)]);
    let mut row = |what: &str, value: String, out: &mut Out| table.row(vec![what.to_owned(), value], out);
    row("mesh", decl.name.clone(), out)?;
    row("nodes", decl.counts[0].to_string(), out)?;
    for (array, count) in arrays.into_iter().zip(&decl.counts[1..]).filter(|(_, count)| **count > 0) {
        let nodes = width(array).map(|width| format!("{count}, of {width} nodes at most"));
        row(array.word(), nodes.unwrap_or_else(|| count.to_string()), out)?;
    }
    for (axis, least, greatest) in &bounds {
        row(axis, format!("{least} to {greatest}"), out)?;
    }
    for (name, value) in &decl.attrs {
        row(name, value_cell(value), out)?;
    }
    row("checksum", hex(&decl.checksum), out)?;
    row("path", path(store, &decl), out)?;
    for run in &runs {
        row("run", run_cell(run), out)?;
    }
    table.finish(out)
}

fn xdmf(store: &Store, mesh: &str, run: &str, path: &std::path::Path, out: &mut Out) -> Done {
    let report = write_xdmf(&store.run(run)?, Some(mesh), path)?;
    if out.json() {
        return out.document(&json::arrays::xdmf(&report));
    }
    for path in &report.files {
        out.line(path.display())?;
    }
    for (what, why) in &report.omitted {
        out.note(format_args!("left out: {what}: {why}"));
    }
    Ok(())
}
