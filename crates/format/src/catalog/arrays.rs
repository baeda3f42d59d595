//! Distributed arrays: groups of sets, imports, meshes and histories of partitions; their bytes and their rules.
//!
//! ```text
//! groups    = run  n: varint  n x { name: text  level: u8 1 to 3  layout: u8 0 files, 1 fields
//!             method: text  order: u8 0 C, 1 Fortran  mesh: optional text
//!             location: optional u8 0 node, 1 edge, 2 face, 3 volume  chunks: optional list
//!             compression: optional text  attrs: named  sets: m: varint  m x set }
//! set       = name: text  version: zigzag  dtype: text  shape: r: varint  r x (0 open | extent + 1: varint)
//!             dims: varint n x text  fill: optional value  attrs: named  pattern: u8 0 regular, 1 irregular
//!             view: text
//! imports   = run  n: varint  n x { name: text  source: text  format: u8 0 raw, 1 netCDF  size: varint
//!             mtime: i64  checksum: optional bytes
//!             variables: m: varint  m x { name: text  dtype: text  offset: varint  shape: list } }
//! meshes    = n: varint  n x { name: text  checksum: bytes  path: text  nodes edges faces volumes: varint
//!             attrs: named  sums, in a record of meshes with checksums: optional sums }
//! histories = n: varint  n x { mesh: bytes  nodes: varint  edges: varint  path: text
//!             0 edges | 1 parts: vector: bytes  r: varint  ints(r) nodes  ints(r) ghosts  ints(r) edges }
//! ```
//! Paths are relative to the store. Ranks of all histories of a record are at most [`ROWS_MAX`].

use fieldstone_core::catalog::{
    ArrayGroup, ArrayLayout, ArraySet, BasicPattern, HistoryContent, HistoryDecl, ImportDecl, ImportFormat,
    ImportedVariable, MeshDecl, MeshLocation, RankSizes, RunName, StorageOrder, VariableName,
};
use fieldstone_core::dtype::DType;
use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};

use super::ROWS_MAX;
use super::batch::RANK_MAX;
use super::declarations::{
    check_name, check_named, put_list, put_named, put_optional, put_run, put_text, read_all, read_list,
    read_named, read_optional, read_run, read_text,
};
use super::file_sums::{check_file_sums, put_file_sums, read_file_sums};
use crate::bytes::{Cursor, Put};
use crate::columns::{put_ints, put_zigzag, read_ints, read_zigzag};
use crate::value::{put_value, read_value};

/// Longest checksum, in bytes.
const CHECKSUM_MAX: usize = 64;

/// Merges a second declaration into a group: adds sets that the group lacks, and views of sets whose view it
/// does not know. If the second declaration contradicts the first, nothing is merged, and the error names the
/// group's or set's part that differs.
pub fn merge_group(group: &mut ArrayGroup, again: &ArrayGroup) -> std::result::Result<(), String> {
    let properties = |group: &ArrayGroup| {
        let mut bytes = Vec::new();
        let bare = ArrayGroup { sets: Vec::new(), attrs: sorted(&group.attrs), ..group.clone() };
        put_group(&mut bytes, &bare);
        bytes
    };
    if let Some(what) = property_difference(group, again) {
        return Err(what.to_owned());
    }
    if properties(group) != properties(again) {
        return Err("attributes".to_owned());
    }
    let mut merged = group.sets.clone();
    for set in &again.sets {
        match merged.iter_mut().find(|known| known.variable == set.variable) {
            None => merged.push(set.clone()),
            Some(known) if content(known) == content(&seen_as(set, known)) => {
                if known.view.is_empty() {
                    (known.pattern, known.view) = (set.pattern, set.view.clone());
                }
            }
            Some(_) => return Err(format!("set '{}'", set.variable.name)),
        }
    }
    group.sets = merged;
    Ok(())
}

fn property_difference(group: &ArrayGroup, again: &ArrayGroup) -> Option<&'static str> {
    let differs = [
        (group.level != again.level, "level"),
        (group.layout != again.layout, "layout"),
        (group.method != again.method, "method"),
        (group.order != again.order, "storage order"),
        (group.mesh != again.mesh, "mesh"),
        (group.location != again.location, "location"),
        (group.chunks != again.chunks, "chunks"),
        (group.compression != again.compression, "compression"),
    ];
    differs.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
}

/// A set with the known view, or without one if it was written whole: a view describes the part that a
/// job held and does not belong to the set.
fn seen_as(set: &ArraySet, known: &ArraySet) -> ArraySet {
    match known.view.is_empty() {
        true => ArraySet { pattern: known.pattern, view: String::new(), ..set.clone() },
        false => set.clone(),
    }
}

/// The content of a set as bytes, whatever the order of its attributes.
fn content(set: &ArraySet) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_set(&mut bytes, &ArraySet { attrs: sorted(&set.attrs), ..set.clone() });
    bytes
}

/// Name of the part in which a second declaration of a mesh differs. Checksums of its file may differ,
/// because the file may have been written again.
pub fn mesh_difference(known: &MeshDecl, again: &MeshDecl) -> Option<&'static str> {
    let attrs = |mesh: &MeshDecl| {
        let mut bytes = Vec::new();
        put_named(&mut bytes, &sorted(&mesh.attrs));
        bytes
    };
    let differs = [
        (known.checksum != again.checksum, "checksum"),
        (known.counts != again.counts, "counts"),
        (attrs(known) != attrs(again), "attributes"),
    ];
    differs.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
}

fn sorted(named: &[(String, Value)]) -> Vec<(String, Value)> {
    let mut named = named.to_vec();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named
}

/// Reads a code as one of `words`.
fn read_code<T: Copy>(cursor: &mut Cursor<'_>, words: &[T], what: &str) -> Result<T> {
    let code = usize::from(cursor.u8()?);
    words.get(code).copied().ok_or_else(|| cursor.fail(&format!("an unknown {what}")))
}

fn put_code<T: PartialEq>(out: &mut Vec<u8>, words: &[T], word: &T) {
    out.push(words.iter().position(|known| known == word).unwrap_or(0) as u8);
}

const LAYOUTS: [ArrayLayout; 2] = [ArrayLayout::Files, ArrayLayout::Fields];
const ORDERS: [StorageOrder; 2] = [StorageOrder::C, StorageOrder::Fortran];
const LOCATIONS: [MeshLocation; 4] =
    [MeshLocation::Node, MeshLocation::Edge, MeshLocation::Face, MeshLocation::Volume];
const PATTERNS: [BasicPattern; 2] = [BasicPattern::Regular, BasicPattern::Irregular];
const FORMATS: [ImportFormat; 2] = [ImportFormat::Raw, ImportFormat::NetCdf];

fn put_dtype(out: &mut Vec<u8>, dtype: DType) {
    put_text(out, &dtype.to_string());
}

fn read_dtype(cursor: &mut Cursor<'_>) -> Result<DType> {
    let text = cursor.text()?;
    DType::parse(text).map_err(|_| cursor.fail("not an element type of numpy"))
}

fn put_set(out: &mut Vec<u8>, set: &ArraySet) {
    put_text(out, &set.variable.name);
    put_zigzag(out, set.variable.version);
    put_dtype(out, set.dtype);
    out.put_varint(set.shape.len() as u64);
    set.shape.iter().for_each(|extent| out.put_varint(extent.map_or(0, |extent| extent.saturating_add(1))));
    out.put_varint(set.dims.len() as u64);
    set.dims.iter().for_each(|dim| put_text(out, dim));
    put_optional(out, set.fill.as_ref(), put_value);
    put_named(out, &set.attrs);
    put_code(out, &PATTERNS, &set.pattern);
    put_text(out, &set.view);
}

fn read_set(cursor: &mut Cursor<'_>) -> Result<ArraySet> {
    Ok(ArraySet {
        variable: VariableName { name: read_text(cursor)?, version: read_zigzag(cursor)? },
        dtype: read_dtype(cursor)?,
        shape: read_all(cursor, 1, |cursor| Ok(cursor.varint()?.checked_sub(1)))?,
        dims: read_all(cursor, 1, read_text)?,
        fill: read_optional(cursor, read_value)?,
        attrs: read_named(cursor)?,
        pattern: read_code(cursor, &PATTERNS, "pattern of a set")?,
        view: read_text(cursor)?,
    })
}

fn put_group(out: &mut Vec<u8>, group: &ArrayGroup) {
    put_text(out, &group.name);
    out.push(group.level);
    put_code(out, &LAYOUTS, &group.layout);
    put_text(out, &group.method);
    put_code(out, &ORDERS, &group.order);
    put_optional(out, group.mesh.as_deref(), put_text);
    put_optional(out, group.location.as_ref(), |out, location| put_code(out, &LOCATIONS, location));
    put_optional(out, group.chunks.as_deref(), put_list);
    put_optional(out, group.compression.as_deref(), put_text);
    put_named(out, &group.attrs);
    out.put_varint(group.sets.len() as u64);
    group.sets.iter().for_each(|set| put_set(out, set));
}

pub(super) fn put_groups(out: &mut Vec<u8>, run: &RunName, groups: &[ArrayGroup]) {
    put_run(out, run);
    out.put_varint(groups.len() as u64);
    groups.iter().for_each(|group| put_group(out, group));
}

pub(super) fn read_groups(cursor: &mut Cursor<'_>) -> Result<(RunName, Vec<ArrayGroup>)> {
    let run = read_run(cursor)?;
    let groups = read_all(cursor, 11, |cursor| {
        Ok(ArrayGroup {
            name: read_text(cursor)?,
            level: cursor.u8()?,
            layout: read_code(cursor, &LAYOUTS, "layout of a group")?,
            method: read_text(cursor)?,
            order: read_code(cursor, &ORDERS, "storage order")?,
            mesh: read_optional(cursor, read_text)?,
            location: read_optional(cursor, |cursor| read_code(cursor, &LOCATIONS, "part of a mesh"))?,
            chunks: read_optional(cursor, read_list)?,
            compression: read_optional(cursor, read_text)?,
            attrs: read_named(cursor)?,
            sets: read_all(cursor, 9, read_set)?,
        })
    })?;
    Ok((run, groups))
}

pub(super) fn put_imports(out: &mut Vec<u8>, run: &RunName, imports: &[ImportDecl]) {
    put_run(out, run);
    out.put_varint(imports.len() as u64);
    for import in imports {
        put_text(out, &import.name);
        put_text(out, &import.source);
        put_code(out, &FORMATS, &import.format);
        out.put_varint(import.size);
        out.put_i64(import.mtime);
        put_optional(out, import.checksum.as_deref(), |out, sum| out.put_bytes(sum));
        out.put_varint(import.variables.len() as u64);
        for variable in &import.variables {
            put_text(out, &variable.name);
            put_dtype(out, variable.dtype);
            out.put_varint(variable.offset);
            put_list(out, &variable.shape);
        }
    }
}

pub(super) fn read_imports(cursor: &mut Cursor<'_>) -> Result<(RunName, Vec<ImportDecl>)> {
    let run = read_run(cursor)?;
    let variable = |cursor: &mut Cursor<'_>| {
        Ok(ImportedVariable {
            name: read_text(cursor)?,
            dtype: read_dtype(cursor)?,
            offset: cursor.varint()?,
            shape: read_list(cursor)?,
        })
    };
    let imports = read_all(cursor, 14, |cursor| {
        Ok(ImportDecl {
            name: read_text(cursor)?,
            source: read_text(cursor)?,
            format: read_code(cursor, &FORMATS, "format of an import")?,
            size: cursor.varint()?,
            mtime: cursor.i64()?,
            checksum: read_optional(cursor, |cursor| cursor.bytes().map(<[u8]>::to_vec))?,
            variables: read_all(cursor, 4, variable)?,
        })
    })?;
    Ok((run, imports))
}

/// Whether a record of these meshes needs the form with checksums.
pub(super) fn have_sums(meshes: &[MeshDecl]) -> bool {
    meshes.iter().any(|mesh| mesh.sums.is_some())
}

pub(super) fn put_meshes(out: &mut Vec<u8>, meshes: &[MeshDecl]) {
    let with_sums = have_sums(meshes);
    out.put_varint(meshes.len() as u64);
    for mesh in meshes {
        put_text(out, &mesh.name);
        out.put_bytes(&mesh.checksum);
        put_text(out, &mesh.path);
        mesh.counts.iter().for_each(|count| out.put_varint(*count));
        put_named(out, &mesh.attrs);
        if with_sums {
            put_optional(out, mesh.sums.as_ref(), put_file_sums);
        }
    }
}

pub(super) fn read_meshes(cursor: &mut Cursor<'_>, with_sums: bool) -> Result<Vec<MeshDecl>> {
    read_all(cursor, 8, |cursor| {
        Ok(MeshDecl {
            name: read_text(cursor)?,
            checksum: cursor.bytes()?.to_vec(),
            path: read_text(cursor)?,
            counts: [cursor.varint()?, cursor.varint()?, cursor.varint()?, cursor.varint()?],
            attrs: read_named(cursor)?,
            sums: if with_sums { read_optional(cursor, read_file_sums)? } else { None },
        })
    })
}

pub(super) fn put_histories(out: &mut Vec<u8>, histories: &[HistoryDecl]) {
    out.put_varint(histories.len() as u64);
    for history in histories {
        out.put_bytes(&history.mesh);
        out.put_varint(history.nodes);
        out.put_varint(history.edges);
        put_text(out, &history.path);
        match &history.content {
            HistoryContent::Edges => out.push(0),
            HistoryContent::Parts { vector, ranks } => {
                out.push(1);
                out.put_bytes(vector);
                out.put_varint(ranks.len() as u64);
                let columns: [fn(&RankSizes) -> u64; 3] =
                    [|rank| rank.nodes, |rank| rank.ghosts, |rank| rank.edges];
                for of in columns {
                    put_ints(out, &ranks.iter().map(|rank| of(rank) as i64).collect::<Vec<i64>>());
                }
            }
        }
    }
}

pub(super) fn read_histories(cursor: &mut Cursor<'_>) -> Result<Vec<HistoryDecl>> {
    let mut left = ROWS_MAX;
    read_all(cursor, 5, |cursor| {
        let (mesh, nodes, edges) = (cursor.bytes()?.to_vec(), cursor.varint()?, cursor.varint()?);
        let path = read_text(cursor)?;
        let content = match cursor.u8()? {
            0 => HistoryContent::Edges,
            1 => {
                let (vector, n) = (cursor.bytes()?.to_vec(), cursor.size()?);
                if n == 0 || n > left {
                    return Err(cursor.fail("a history has an impossible number of ranks"));
                }
                left -= n;
                let columns = [read_ints(cursor, n)?, read_ints(cursor, n)?, read_ints(cursor, n)?];
                let [nodes, ghosts, edges] = columns.map(|column| column.into_iter().map(|size| size as u64));
                let ranks = nodes.zip(ghosts).zip(edges);
                let ranks = ranks.map(|((nodes, ghosts), edges)| RankSizes { nodes, ghosts, edges });
                HistoryContent::Parts { vector, ranks: ranks.collect() }
            }
            _ => return Err(cursor.fail("a history has an unknown kind")),
        };
        Ok(HistoryDecl { path, mesh, nodes, edges, content })
    })
}

/// Number of ranks whose sizes a history has.
pub(super) fn history_ranks(history: &HistoryDecl) -> usize {
    match &history.content {
        HistoryContent::Edges => 0,
        HistoryContent::Parts { ranks, .. } => ranks.len(),
    }
}

fn wrong<T>(what: &str, why: impl std::fmt::Display) -> Result<T> {
    Err(Error::invalid(format!("{what}: {why}")))
}

fn check_sizes(what: &str, sizes: impl IntoIterator<Item = u64>) -> Result<()> {
    match sizes.into_iter().find(|size| i64::try_from(*size).is_err()) {
        Some(size) => wrong(what, format!("a size of {size} is too large")),
        None => Ok(()),
    }
}

fn check_checksum(what: &str, checksum: &[u8]) -> Result<()> {
    match checksum.len() {
        1..=CHECKSUM_MAX => Ok(()),
        n => wrong(what, format!("a checksum has 1 to {CHECKSUM_MAX} bytes, not {n}")),
    }
}

/// Refuses a path that does not lead to a file inside the store.
fn check_path(what: &str, path: &str) -> Result<()> {
    let strange = |part: &str| part.is_empty() || part == "." || part == "..";
    if path.split('/').any(strange) || path.contains('\0') {
        return wrong(what, format!("'{path}' is not a path relative to the store"));
    }
    Ok(())
}

fn check_set(group: &str, set: &ArraySet) -> Result<()> {
    check_name("set", &set.variable.name)?;
    let what = format!("set '{}' of group '{group}'", set.variable.name);
    check_named(&format!("{what}: attrs"), &set.attrs)?;
    set.fill.iter().try_for_each(Value::check)?;
    if set.shape.len() > RANK_MAX {
        return wrong(&what, format!("more than {RANK_MAX} dimensions"));
    }
    check_sizes(&what, set.shape.iter().flatten().copied())?;
    let (names, rank) = (set.dims.len(), set.shape.len());
    if names != 0 && names != rank {
        return wrong(&what, format!("{names} names for {rank} dimensions"));
    }
    match set.dims.iter().enumerate().find(|(i, dim)| set.dims[..*i].contains(dim)) {
        Some((i, dim)) => wrong(&what, format!("dimension {i} and another one are both named '{dim}'")),
        None => Ok(()),
    }
}

pub(super) fn check_group(group: &ArrayGroup) -> Result<()> {
    check_name("group", &group.name)?;
    let what = format!("group '{}'", group.name);
    check_named(&format!("{what}: attrs"), &group.attrs)?;
    if !(1..=3).contains(&group.level) {
        return wrong(&what, format!("a level is 1, 2 or 3, not {}", group.level));
    }
    if group.location.is_some() && group.mesh.is_none() {
        return wrong(&what, "a location needs a mesh");
    }
    if group.chunks.iter().flatten().any(|extent| *extent == 0 || i64::try_from(*extent).is_err()) {
        return wrong(&what, "an extent of the chunks is 0 or too large");
    }
    group.sets.iter().try_for_each(|set| check_set(&group.name, set))?;
    let mut names: Vec<&VariableName> = group.sets.iter().map(|set| &set.variable).collect();
    names.sort_unstable();
    match names.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => wrong(&what, format!("two sets are named '{}'", two[0].name)),
        None => Ok(()),
    }
}

pub(super) fn check_import(import: &ImportDecl) -> Result<()> {
    check_name("import", &import.name)?;
    let what = format!("import '{}'", import.name);
    check_name("source of an import", &import.source)?;
    import.checksum.iter().try_for_each(|sum| check_checksum(&what, sum))?;
    check_sizes(&what, [import.size])?;
    for (i, variable) in import.variables.iter().enumerate() {
        check_name("variable of an import", &variable.name)?;
        if import.variables[..i].iter().any(|other| other.name == variable.name) {
            return wrong(&what, format!("two variables are named '{}'", variable.name));
        }
        if variable.shape.len() > RANK_MAX {
            return wrong(&what, format!("variable '{}' has more than {RANK_MAX} dimensions", variable.name));
        }
        check_sizes(&what, variable.shape.iter().copied().chain([variable.offset]))?;
    }
    Ok(())
}

pub(super) fn check_mesh(mesh: &MeshDecl) -> Result<()> {
    check_name("mesh", &mesh.name)?;
    let what = format!("mesh '{}'", mesh.name);
    check_named(&format!("{what}: attrs"), &mesh.attrs)?;
    check_checksum(&what, &mesh.checksum)?;
    check_path(&what, &mesh.path)?;
    mesh.sums
        .iter()
        .try_for_each(|sums| check_file_sums(sums).map_err(|why| Error::invalid(format!("{what}: {why}"))))?;
    check_sizes(&what, mesh.counts)
}

pub(super) fn check_history(history: &HistoryDecl) -> Result<()> {
    let what = format!("history '{}'", history.path);
    check_path(&what, &history.path)?;
    check_checksum(&what, &history.mesh)?;
    check_sizes(&what, [history.nodes, history.edges])?;
    let HistoryContent::Parts { vector, ranks } = &history.content else { return Ok(()) };
    check_checksum(&what, vector)?;
    if !(1..=ROWS_MAX).contains(&ranks.len()) {
        return wrong(&what, format!("a partition has parts of 1 to {ROWS_MAX} ranks, not {}", ranks.len()));
    }
    check_sizes(&what, ranks.iter().flat_map(|rank| [rank.nodes, rank.ghosts, rank.edges]))
}
