//! Vertices, relations, lineages and traversals of the graph as bytes.

use fieldstone_core::Result;
use fieldstone_format::bytes::Put;
use fieldstone_format::graph::{
    Archive, EdgeType, Props, RelationBatch, RelationRow, TextColumn, TypeDecl, Version, VertexName,
    VertexRow, VertexType, props_bytes, read_props,
};
use fieldstone_format::graph_message::walk::SlotStep;
use fieldstone_format::graph_segment::partitioning::{PartitionScheme, Partitioning, SlotLabels};
use fieldstone_graph::archive::{ArchiveReport, HiddenVersions};
use fieldstone_graph::audit::{Audit, AuditOptions, AuditRow};
use fieldstone_graph::dossier::Dossier;
use fieldstone_graph::live::{Check, Partitions, SlotContent, Stats};
use fieldstone_graph::put::{Deletion, RelationPut, VertexPut};
use fieldstone_graph::read::{Relation, Versions, Vertex};
use fieldstone_graph::relations::{RelationTest, TypeMatches};
use fieldstone_graph::slot::Engine;
use fieldstone_graph::trace::{Lineage, Step, TraceOptions, Way};
use fieldstone_graph::travel::{
    Path, SlotFigures, StepFigures, Travel, TravelStep, TraversalSummary, VertexTest,
};

use crate::{In, Out, Wire, wire_enum, wire_struct};

/// In the form of graph records.
impl Wire for Props {
    fn put(&self, out: &mut Out<'_>) {
        out.bytes().put_bytes(props_bytes(self));
    }

    fn read(input: &mut In<'_>) -> Result<Props> {
        read_props(input.cursor.bytes()?)
    }
}

wire_enum! {
    PartitionScheme { 0 EdgeCut, 1 VertexCut, 2 Giga, 3 Dido }
    SlotLabels { 0 Low, 1 Paper }
    TypeDecl { 0 Vertex(kind), 1 Edge(kind) }
    TextColumn { 0 One(text), 1 Each(texts, ends) }
    Deletion { 0 Vertex(name), 1 Relation(kind, source, target) }
    Versions { 0 At(stamp), 1 Between(from, to) }
    TypeMatches { 0 Vertices(all), 1 Relations(all) }
    Engine { 0 Sync, 1 Plain, 2 Async }
    Way { 0 Up, 1 Down, 2 Both }
    TravelStep {
        0 Vertices(test), 1 Edges { kinds, versions }, 2 EdgeProperty(name, test), 3 VertexProperty(name, test),
        4 Return, 5 Repeat(most), 6 FullPaths,
    }
}

wire_struct! {
    Partitioning { slots, scheme, threshold, labels }
    VertexName { kind, id }
    VertexType { name, fixed, index, text }
    EdgeType { name, reverse, source, target, index }
    Version { stamp, time, deleted }
    Archive { before, url }
    VertexRow { vertex, version, fixed, props }
    RelationRow { kind, source, target, version, until, props }
    RelationBatch {
        kinds, source_kinds, source_ids, target_kinds, target_ids, props, times, until, rows,
    }
    VertexPut { vertex, fixed, props, time }
    RelationPut { kind, source, target, props, time, until }
    Vertex { name, fixed, props, stamp, time, user, deleted, archived }
    Relation { kind, near, far, reverse, props, stamp, time, until, user, deleted, archived }
    VertexTest { named, kind, tests, versions }
    RelationTest { kind, tests }
    TraceOptions { way, depth, at, since, causal, limit }
    Step { name, depth }
    Lineage { root, roots, vertices, edges, reverses, way, truncated }
    Dossier { lineage, props, runs, jobs, users }
    AuditOptions { user, file, since, until, limit }
    AuditRow { stamp, time, user, execution, action, object }
    Audit { rows, derived, truncated }
    HiddenVersions { vertices, relations, types, bytes }
    ArchiveReport { vertices, relations, bytes, others, done }
    Travel { at, causal, jobs, limit, steps }
    Path { vertices, edges }
    StepFigures { hop, round, frontier, reached, vertices, relations, nanoseconds }
    SlotStep {
        hop, round, frontier, reached, relations, requests, forwards, frames, bytes, vertex_time, edge_time,
        prefetch_time, prefetched,
    }
    SlotFigures { steps }
    TraversalSummary { sets, has_paths, truncated, limit, figures, slots }
    Partitions { partitioning, slots, splits, unfinished }
    SlotContent { segments, vertices, relations, bytes }
    Stats { segments, vertices, relations, bytes, problems, archives }
    Check { lines, different, damaged }
}
