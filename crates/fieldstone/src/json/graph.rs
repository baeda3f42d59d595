//! The provenance graph: vertices, relations, traversals, lineages, audits, and the state of its index.

use std::path::Path as FilePath;

use fieldstone_core::Result;
use fieldstone_graph::live::{Check, Partitions, Stats};
use serde_json::{Value as Json, json};

use super::values::{moment, named};
use crate::graph::{
    ArchiveReport, Audit, AuditRow, Dossier, Lineage, LineageStore, Path, Relation, SlotFigures, SlotStep,
    StepFigures, Traversal, Vertex, VertexName,
};
use crate::lineage::{Difference, LineageFormat};

/// The type and the id of a vertex.
pub fn name(name: &VertexName) -> Json {
    json!([&*name.kind, &*name.id])
}

fn names<'a>(all: impl IntoIterator<Item = &'a VertexName>) -> Vec<Json> {
    all.into_iter().map(name).collect()
}

/// A vertex; `user` is the name of the user who put it.
pub fn vertex(vertex: &Vertex, user: &str) -> Json {
    json!({
        "type": &*vertex.name.kind,
        "id": &*vertex.name.id,
        "static": named(&vertex.fixed),
        "props": named(&vertex.props),
        "stamp": vertex.stamp,
        "time": moment(vertex.time),
        "user": user,
        "deleted": vertex.deleted,
        "archived": vertex.archived.as_deref(),
    })
}

/// A relation; `user` is the name of the user who put it.
pub fn relation(relation: &Relation, user: &str) -> Json {
    json!({
        "type": relation.kind,
        "src": name(&relation.near),
        "dst": name(&relation.far),
        "props": named(&relation.props),
        "stamp": relation.stamp,
        "time": moment(relation.time),
        "until": relation.until,
        "user": user,
        "deleted": relation.deleted,
        "archived": relation.archived.as_deref(),
    })
}

fn relations(all: &[Relation], users: &dyn Fn(u32) -> String) -> Vec<Json> {
    all.iter().map(|one| relation(one, &users(one.user))).collect()
}

/// A lineage, and the other stores that it leads to; `users` maps a user to a name.
pub fn lineage(lineage: &Lineage, stores: &[LineageStore], users: &dyn Fn(u32) -> String) -> Json {
    let vertices = lineage
        .vertices
        .iter()
        .map(|step| json!({"type": &*step.name.kind, "id": &*step.name.id, "depth": step.depth}));
    json!({
        "root": name(&lineage.root),
        "vertices": vertices.collect::<Vec<_>>(),
        "edges": relations(&lineage.edges, users),
        "truncated": lineage.truncated,
        "stores": stores.iter().map(lineage_store).collect::<Vec<_>>(),
    })
}

/// A store that a lineage leads to.
pub fn lineage_store(store: &LineageStore) -> Json {
    json!({"id": store.id.to_string(), "url": store.url, "commits": store.commits, "left": store.left})
}

/// The differences between lineages.
pub fn compared(dossiers: &[Dossier], rows: &[Difference]) -> Json {
    let rows = rows.iter().map(|row| json!({"what": row.what, "name": row.name, "values": row.values}));
    json!({
        "compared": names(dossiers.iter().map(|dossier| &dossier.lineage.root)),
        "rows": rows.collect::<Vec<_>>(),
    })
}

/// An audit.
pub fn audit(audit: &Audit) -> Json {
    json!({
        "rows": audit.rows.iter().map(audit_row).collect::<Vec<_>>(),
        "derived": names(&audit.derived),
        "truncated": audit.truncated,
    })
}

fn audit_row(row: &AuditRow) -> Json {
    json!({
        "time": moment(row.time),
        "stamp": row.stamp,
        "user": row.user,
        "execution": name(&row.execution),
        "action": row.action,
        "object": name(&row.object),
    })
}

/// The vertices that a traversal reached; several sets if it returns some on its way.
pub fn travelled(travelled: &Traversal) -> Result<Json> {
    let set = |set| Ok(Json::Array(names(&travelled.names(set, 0, usize::MAX)?)));
    let sets = (0..travelled.summary().sets.len()).map(set).collect::<Result<Vec<Json>>>()?;
    let truncated = travelled.summary().truncated;
    Ok(match <[Json; 1]>::try_from(sets) {
        Ok([vertices]) => json!({"vertices": vertices, "truncated": truncated}),
        Err(sets) => json!({"sets": sets, "truncated": truncated}),
    })
}

/// A whole path of a traversal; `users` maps a user to a name.
pub fn path(path: &Path, users: &dyn Fn(u32) -> String) -> Json {
    json!({"vertices": names(&path.vertices), "edges": relations(&path.edges, users)})
}

/// The paths of a traversal, each from [`path`].
pub fn paths(paths: Vec<Json>, truncated: bool) -> Json {
    json!({"paths": paths, "truncated": truncated})
}

/// The figures of each hop of a traversal; for an index that is divided into slots, slot by slot.
pub fn figures(travelled: &Traversal) -> Json {
    let steps: Vec<Json> = travelled.summary().figures.iter().map(step_figures).collect();
    match &travelled.summary().slots {
        None => json!({"steps": steps}),
        Some(slots) => json!({
            "steps": steps,
            "slots": slot_figures(slots),
            "requests": slots.requests(),
            "forwards": slots.forwards(),
            "reads": slots.reads(),
        }),
    }
}

fn step_figures(step: &StepFigures) -> Json {
    json!({
        "hop": step.hop,
        "round": step.round,
        "frontier": step.frontier,
        "reached": step.reached,
        "vertices": step.vertices,
        "relations": step.relations,
        "seconds": step.nanoseconds as f64 / 1e9,
    })
}

fn slot_figures(slots: &SlotFigures) -> Vec<Json> {
    let steps = slots.steps.iter().enumerate();
    steps.flat_map(|(slot, own)| own.iter().map(move |step| slot_step(slot, step))).collect()
}

fn slot_step(slot: usize, step: &SlotStep) -> Json {
    json!({
        "slot": slot,
        "hop": step.hop,
        "round": step.round,
        "frontier": step.frontier,
        "reached": step.reached,
        "relations": step.relations,
        "requests": step.requests,
        "forwards": step.forwards,
        "messages": step.frames,
        "bytes": step.bytes,
        "prefetched": step.prefetched,
        "vertex_time": step.vertex_time as f64 / 1e9,
        "edge_time": step.edge_time as f64 / 1e9,
        "prefetch_time": step.prefetch_time as f64 / 1e9,
    })
}

/// The counts of the graph's segments, its problems, and the stores that versions were moved to.
pub fn stats(stats: &Stats) -> Json {
    let archives =
        stats.archives.iter().map(|archive| json!({"url": &*archive.url, "before": archive.before}));
    json!({
        "segments": stats.segments,
        "vertices": stats.vertices,
        "relations": stats.relations,
        "bytes": stats.bytes,
        "problems": stats.problems,
        "archives": archives.collect::<Vec<_>>(),
    })
}

/// Whether the index agrees with the logs.
pub fn check(check: &Check) -> Json {
    json!({"ok": check.ok(), "lines": check.lines, "different": check.different, "damaged": check.damaged})
}

/// The slots of the index.
pub fn partitions(partitions: &Partitions) -> Json {
    let slots = partitions.slots.iter().map(|slot| {
        json!({
            "segments": slot.segments,
            "vertices": slot.vertices,
            "relations": slot.relations,
            "bytes": slot.bytes,
        })
    });
    json!({
        "partitioner": partitions.partitioning.scheme.name(),
        "threshold": partitions.partitioning.threshold,
        "labels": partitions.partitioning.labels.name(),
        "splits": partitions.splits,
        "unfinished": partitions.unfinished,
        "slots": slots.collect::<Vec<_>>(),
    })
}

/// The counts of a move to another store, or of one that would take place.
pub fn archived(report: &ArchiveReport) -> Json {
    json!({
        "vertices": report.vertices,
        "relations": report.relations,
        "bytes": report.bytes,
        "others": report.others,
        "done": report.done,
    })
}

/// A lineage that was exported to a file.
pub fn exported(path: &FilePath, format: LineageFormat, bytes: usize) -> Json {
    json!({"path": path.to_string_lossy(), "format": format.name(), "bytes": bytes})
}

/// A file with its checksum in the graph.
pub fn checksum(path: &FilePath, checksum: &str) -> Json {
    json!({"path": path.to_string_lossy(), "checksum": checksum})
}

/// The stamp of a version that was put.
pub fn put(stamp: u64) -> Json {
    json!({"stamp": stamp})
}
