//! Declarations of distributed arrays: groups and imports of runs, meshes and histories of the store.
//!
//! `decl` keeps them, and their rows are derived from it as those of runs and variables are: the oldest
//! declaration of a name counts. Later declarations of a group that agree with it add their sets, in their
//! order.

use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{
    ArrayGroup, ArraySet, AttributeId, HistoryContent, HistoryDecl, ImportDecl, MeshDecl, Record, RunName,
    VariableName, merge_group, mesh_difference,
};

use super::conflicts::note_conflicts;
use super::declaration::{content, nameless, record, shape_text};
use super::ground::{Ground, flushed, id};
use super::kinds::{GROUP, HISTORY, IMPORT, MESH};
use super::owners::Owners;
use super::points::{CoordinateRange, MeshRegion, PointSource};
use super::rows;
use super::{Cell, Database, RunId};

/// A declaration's kind, run (0 for those of the store) and item.
type Key = (i64, RunId, i64);

fn damaged(what: &str) -> Error {
    rows::damaged(format!("holds something other than {what}"))
}

fn group_decl(content: &[u8]) -> Result<ArrayGroup> {
    match record(content)? {
        Record::Groups(_, groups) => groups.into_iter().next(),
        _ => None,
    }
    .ok_or_else(|| damaged("a group of arrays"))
}

fn import_decl(content: &[u8]) -> Result<ImportDecl> {
    match record(content)? {
        Record::Imports(_, imports) => imports.into_iter().next(),
        _ => None,
    }
    .ok_or_else(|| damaged("an import"))
}

fn mesh_decl(content: &[u8]) -> Result<MeshDecl> {
    match record(content)? {
        Record::Meshes(meshes) => meshes.into_iter().next(),
        _ => None,
    }
    .ok_or_else(|| damaged("a mesh"))
}

fn history_decl(content: &[u8]) -> Result<HistoryDecl> {
    match record(content)? {
        Record::Histories(histories) => histories.into_iter().next(),
        _ => None,
    }
    .ok_or_else(|| damaged("a history"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A size as a cell; sizes are below 2^63.
fn size(size: u64) -> Cell<'static> {
    Cell::Int(size as i64)
}

/// Extents as text, `*` for an open one.
fn open_shape_text(set: &ArraySet) -> String {
    let extents = set.shape.iter().map(|extent| extent.map_or("*".to_owned(), |extent| extent.to_string()));
    extents.collect::<Vec<String>>().join(",")
}

/// Derives the rows of a group, an import, a mesh or a history from all its declarations.
pub(super) fn recompute_of_arrays(ground: &mut Ground, owners: &mut Owners, key: Key) -> Result<()> {
    let (kind, run, item) = key;
    let (kept, others) = owners.declared_in(ground, kind, run, item)?;
    let what = match kept.len() + others.len() {
        0 => String::new(),
        _ => array_text(ground, key)?,
    };
    let holds = kept.first().map(|kept| kept.content.clone());
    match kind {
        GROUP => {
            let mut group = holds.as_deref().map(group_decl).transpose()?;
            note_conflicts(ground, key, &what, &kept, &others, |_, later| {
                let later = group_decl(&later.content)?;
                Ok(group.as_mut().is_some_and(|group| merge_group(group, &later).is_err()))
            })?;
            return write_group(ground, run, item, group.as_ref());
        }
        MESH => {
            let mut mesh = kept.first().map(|first| mesh_decl(&first.content)).transpose()?;
            note_conflicts(ground, key, &what, &kept, &others, |first, later| {
                let decl = mesh_decl(&later.content)?;
                let Some(mesh) = &mut mesh else { return Ok(false) };
                let differs = mesh_difference(mesh, &decl).is_some();
                // The owner lost the file and made it again.
                let is_its_file = decl.path == mesh.path && decl.sums.is_some();
                if !differs && owners.is_his(later.by(), first.by()) && is_its_file {
                    mesh.sums = decl.sums;
                }
                Ok(differs)
            })?;
            let bytes = mesh.map(|mesh| content(&Record::Meshes(vec![mesh])));
            return write_mesh(ground, item, bytes.as_deref());
        }
        _ => note_conflicts(ground, key, &what, &kept, &others, |a, b| Ok(a.content != b.content))?,
    }
    match kind {
        IMPORT => write_import(ground, run, item, holds.as_deref()),
        _ => write_history(ground, item, holds.as_deref()),
    }
}

/// A group, import, mesh or history, as a conflict names it.
fn array_text(ground: &mut Ground, (kind, run, item): Key) -> Result<String> {
    let sql = "SELECT name FROM array_item WHERE item = $1";
    let name = ground.db.first(sql, &[Cell::Int(item)], |row| Ok(row[0].text()?.to_owned()))?;
    let kind = match kind {
        GROUP => "group",
        IMPORT => "import",
        MESH => "mesh",
        _ => "history",
    };
    let text = format!("{kind} '{}'", name.unwrap_or_default());
    Ok(if run == 0 { text } else { format!("{text} of {}", ground.run_text(run)?) })
}

fn write_group(ground: &mut Ground, run: RunId, item: i64, group: Option<&ArrayGroup>) -> Result<()> {
    let key = [run, item].map(Cell::Int);
    ground.db.execute("DELETE FROM array_set WHERE run = $1 AND item = $2", &key)?;
    ground.db.execute("DELETE FROM array_group WHERE run = $1 AND item = $2", &key)?;
    let Some(group) = group else { return Ok(()) };
    let bytes = content(&Record::Groups(nameless(), vec![group.clone()]));
    let [run, item] = key;
    let cells = [
        run,
        item,
        Cell::Int(group.level.into()),
        Cell::Text(group.layout.name()),
        Cell::Text(&group.method),
        Cell::Text(group.order.name()),
        Cell::maybe_text(group.mesh.as_deref()),
        Cell::maybe_text(group.location.map(|location| location.name())),
        Cell::Bytes(&bytes),
    ];
    let sql = "INSERT INTO array_group (run, item, level, layout, method, storage_order, mesh, location, content) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    ground.db.execute(sql, &cells)?;
    for (place, set) in group.sets.iter().enumerate() {
        let variable = ground.variable(&set.variable)?;
        let (dtype, shape) = (set.dtype.to_string(), open_shape_text(set));
        let cells = [
            run,
            item,
            Cell::Int(place as i64),
            Cell::Int(variable),
            Cell::Text(&dtype),
            Cell::Text(&shape),
            Cell::Int(set.shape.len() as i64),
            set.elements().map_or(Cell::Null, size),
            Cell::Text(set.pattern.name()),
            Cell::Text(&set.view),
        ];
        let sql = "INSERT INTO array_set (run, item, place, variable, dtype, shape, dimensions, elements, pattern, \
                   view_text) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        ground.db.execute(sql, &cells)?;
    }
    Ok(())
}

fn write_import(ground: &mut Ground, run: RunId, item: i64, bytes: Option<&[u8]>) -> Result<()> {
    let key = [run, item].map(Cell::Int);
    ground.db.execute("DELETE FROM import_variable WHERE run = $1 AND item = $2", &key)?;
    ground.db.execute("DELETE FROM import_file WHERE run = $1 AND item = $2", &key)?;
    let Some(bytes) = bytes else { return Ok(()) };
    let import = import_decl(bytes)?;
    let checksum = import.checksum.as_deref().map(hex);
    let [run, item] = key;
    let cells = [
        run,
        item,
        Cell::Text(&import.source),
        Cell::Text(import.format.name()),
        size(import.size),
        Cell::Int(import.mtime),
        Cell::maybe_text(checksum.as_deref()),
        Cell::Bytes(bytes),
    ];
    let sql = "INSERT INTO import_file (run, item, source, format, size, mtime, checksum, content) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    ground.db.execute(sql, &cells)?;
    for (place, variable) in import.variables.iter().enumerate() {
        let (dtype, shape) = (variable.dtype.to_string(), shape_text(&variable.shape));
        let elements = variable.shape.iter().try_fold(1u64, |all, extent| all.checked_mul(*extent));
        let elements = elements.filter(|all| i64::try_from(*all).is_ok());
        let cells = [
            run,
            item,
            Cell::Int(place as i64),
            Cell::Text(&variable.name),
            Cell::Text(&dtype),
            size(variable.offset),
            Cell::Text(&shape),
            elements.map_or(Cell::Null, size),
        ];
        let sql = "INSERT INTO import_variable (run, item, place, name, dtype, file_offset, shape, elements) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        ground.db.execute(sql, &cells)?;
    }
    Ok(())
}

fn write_mesh(ground: &mut Ground, item: i64, bytes: Option<&[u8]>) -> Result<()> {
    ground.db.execute("DELETE FROM mesh WHERE item = $1", &[Cell::Int(item)])?;
    let Some(bytes) = bytes else { return Ok(()) };
    let mesh = mesh_decl(bytes)?;
    let checksum = hex(&mesh.checksum);
    let [nodes, edges, faces, volumes] = mesh.counts.map(size);
    let (checksum, path) = (Cell::Text(&checksum), Cell::Text(&mesh.path));
    let cells = [Cell::Int(item), checksum, path, nodes, edges, faces, volumes, Cell::Bytes(bytes)];
    let sql = "INSERT INTO mesh (item, checksum, path, nodes, edges, faces, volumes, content) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    ground.db.execute(sql, &cells).map(|_| ())
}

fn write_history(ground: &mut Ground, item: i64, bytes: Option<&[u8]>) -> Result<()> {
    let key = [Cell::Int(item)];
    ground.db.execute("DELETE FROM history_rank WHERE item = $1", &key)?;
    ground.db.execute("DELETE FROM history WHERE item = $1", &key)?;
    let Some(bytes) = bytes else { return Ok(()) };
    let history = history_decl(bytes)?;
    let (kind, vector, ranks) = match &history.content {
        HistoryContent::Edges => ("edges", String::new(), &[][..]),
        HistoryContent::Parts { vector, ranks } => ("parts", hex(vector), &ranks[..]),
    };
    let mesh = hex(&history.mesh);
    let cells = [
        Cell::Int(item),
        Cell::Text(&mesh),
        Cell::Text(kind),
        Cell::Text(&vector),
        Cell::Int(ranks.len() as i64),
        size(history.nodes),
        size(history.edges),
        Cell::Bytes(bytes),
    ];
    let sql = "INSERT INTO history (item, mesh, kind, vector, ranks, nodes, edges, content) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    ground.db.execute(sql, &cells)?;
    let cells: Vec<Cell<'_>> = (ranks.iter().enumerate())
        .flat_map(|(rank, of)| {
            let sizes = [of.nodes, of.ghosts, of.edges].map(size);
            [Cell::Int(item), Cell::Int(rank as i64)].into_iter().chain(sizes)
        })
        .collect();
    let sql = "INSERT INTO history_rank (item, rank, nodes, ghosts, edges) VALUES ($1, $2, $3, $4, $5)";
    ground.db.execute_many(sql, 5, &cells).map(|_| ())
}

fn contents<T>(
    db: &mut dyn Database,
    sql: &str,
    cells: &[Cell<'_>],
    read: fn(&[u8]) -> Result<T>,
) -> Result<Vec<T>> {
    db.all(sql, cells, |row| read(row[0].bytes()?))
}

fn number_of(db: &mut dyn Database, run: &RunName) -> Result<Option<RunId>> {
    let cells = [Cell::Text(&run.name), Cell::Text(&run.project)];
    db.int("SELECT run FROM run WHERE name = $1 AND project = $2", &cells)
}

pub(super) fn groups_of(db: &mut dyn Database, run: RunId) -> Result<Vec<ArrayGroup>> {
    let sql = "SELECT content FROM array_group WHERE run = $1";
    let mut found = contents(db, sql, &[Cell::Int(run)], group_decl)?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

pub(crate) fn imports_of(db: &mut dyn Database, run: RunId) -> Result<Vec<ImportDecl>> {
    let sql = "SELECT content FROM import_file WHERE run = $1";
    let mut found = contents(db, sql, &[Cell::Int(run)], import_decl)?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Groups of a run, by name. Needs a read in progress.
pub fn array_groups(db: &mut dyn Database, run: &RunName) -> Result<Vec<ArrayGroup>> {
    let run = number_of(db, run)?;
    run.map_or(Ok(Vec::new()), |run| groups_of(db, run))
}

/// Imports of a run, by name. Needs a read in progress.
pub fn imports(db: &mut dyn Database, run: &RunName) -> Result<Vec<ImportDecl>> {
    let run = number_of(db, run)?;
    run.map_or(Ok(Vec::new()), |run| imports_of(db, run))
}

/// Meshes, by name. Needs a read in progress.
pub fn meshes(db: &mut dyn Database) -> Result<Vec<MeshDecl>> {
    let mut found = contents(db, "SELECT content FROM mesh", &[], mesh_decl)?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Elements of a run's meshes in ranges of coordinates, and the variables on each mesh. Needs a read in
/// progress.
pub(super) fn regions_of(
    db: &mut dyn Database,
    source: &dyn PointSource,
    run: RunId,
    ranges: &[CoordinateRange],
) -> Result<Vec<(Vec<VariableName>, MeshRegion)>> {
    let mut found = Vec::new();
    for group in groups_of(db, run)? {
        let (Some(name), Some(location)) = (&group.mesh, group.location) else { continue };
        // A purge may have removed the mesh of a run that was wiped.
        let Some(mesh) = mesh_named(db, name)? else { continue };
        if let Some(region) = source.region(&mesh, location, ranges)? {
            found.push((group.sets.into_iter().map(|set| set.variable).collect(), region));
        }
    }
    Ok(found)
}

/// The mesh of a name. Needs a read in progress.
pub(super) fn mesh_named(db: &mut dyn Database, name: &str) -> Result<Option<MeshDecl>> {
    let sql =
        "SELECT m.content FROM mesh m JOIN array_item i ON i.item = m.item WHERE i.kind = $1 AND i.name = $2";
    let mut found = contents(db, sql, &[Cell::Int(MESH), Cell::Text(name)], mesh_decl)?;
    Ok(found.pop())
}

/// The declaration of a file of the store.
#[derive(Debug, Clone)]
pub enum FileDecl {
    /// Of a mesh.
    Mesh(MeshDecl),
    /// Of a kept partition.
    History(HistoryDecl),
}

impl FileDecl {
    /// The path of the file, relative to the store's folder.
    pub fn path(&self) -> &str {
        match self {
            FileDecl::Mesh(mesh) => &mesh.path,
            FileDecl::History(history) => &history.path,
        }
    }
}

/// All declarations of meshes and histories that count, each with its place and its user. Needs a read in progress.
pub(crate) fn declared_files(db: &mut dyn Database) -> Result<Vec<(FileDecl, AttributeId, u32)>> {
    let sql = "SELECT d.kind, d.content, l.writer, d.sequence, d.record, d.place, l.uid \
               FROM decl d JOIN log l ON l.log = d.log WHERE d.run = 0 AND (d.kind = $1 OR d.kind = $2)";
    db.all(sql, &[MESH, HISTORY].map(Cell::Int), |row| {
        let content = row[1].bytes()?;
        let decl = match row[0].int()? {
            MESH => FileDecl::Mesh(mesh_decl(content)?),
            _ => FileDecl::History(history_decl(content)?),
        };
        let id = AttributeId {
            writer: flushed(id(row[2].bytes()?)?),
            sequence: row[3].int()? as u64,
            record: row[4].int()? as u32,
            row: row[5].int()? as u32,
        };
        Ok((decl, id, u32::try_from(row[6].int()?).unwrap_or(u32::MAX)))
    })
}

/// A run, and the stamp of the newest declaration in it.
pub(crate) struct DeclaredRun {
    /// Its number.
    pub run: RunId,
    /// Its name.
    pub name: RunName,
    /// 0 if nothing is declared in it.
    pub newest: u64,
}

/// All runs. Needs a read in progress.
pub(crate) fn declared_runs(db: &mut dyn Database) -> Result<Vec<DeclaredRun>> {
    let sql = "SELECT r.run, r.project, r.name, COALESCE(MAX(d.stamp), 0) FROM run r \
               LEFT JOIN decl d ON d.run = r.run GROUP BY r.run, r.project, r.name ORDER BY r.run";
    db.all(sql, &[], |row| {
        let name = RunName { project: row[1].text()?.to_owned(), name: row[2].text()?.to_owned() };
        Ok(DeclaredRun { run: row[0].int()?, name, newest: row[3].int()? as u64 })
    })
}

/// The meshes that groups of a run name. Needs a read in progress.
pub(crate) fn meshes_of_groups(db: &mut dyn Database, run: RunId) -> Result<Vec<String>> {
    let sql = "SELECT DISTINCT mesh FROM array_group WHERE run = $1 AND mesh IS NOT NULL";
    db.all(sql, &[Cell::Int(run)], |row| row[0].text().map(str::to_owned))
}

/// Histories, by path. Needs a read in progress.
pub fn histories(db: &mut dyn Database) -> Result<Vec<HistoryDecl>> {
    let mut found = contents(db, "SELECT content FROM history", &[], history_decl)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
