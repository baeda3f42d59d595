//! The graph's share of a transfer: the lineage of the fields upstream, with the executions that wrote and read them.
//!
//! The target gets it as the source has it, with its stamps, so that lineage does not need the source any more. Rows that
//! are there already are not put again. The source keeps all of it, also in a move, because other data have a part in it.
//!
//! Invariant: memory holds 50 bytes for each commit of the fields, and the lineage.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use fieldstone_core::value::Value;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::graph::{Props, VertexName};
use fieldstone_graph::dossier::is_execution;
use fieldstone_graph::put::{RelationPut, VertexPut};
use fieldstone_graph::read::{Relation, Versions};
use fieldstone_graph::trace::{Step, TraceOptions};

use super::fields::FieldPlan;
use crate::Session;
use crate::Store;

/// Most vertices of a lineage that are taken.
const VERTICES: usize = 1_000_000;
/// Rows of one put.
const ROWS: usize = 10_000;

/// Vertices and relations to carry over.
#[derive(Debug, Default)]
pub struct Trail {
    vertices: Vec<VertexPut>,
    relations: Vec<RelationPut>,
    /// Whether there is more than is taken.
    pub truncated: bool,
}

impl Trail {
    /// The lineage of the fields of a transfer.
    pub fn of(from: &Store, fields: &FieldPlan) -> Result<Trail> {
        let commits = fields.commits()?;
        let (graph, session) = (from.graph(), Session::default());
        let vertex = |commit: &CommitId| VertexName::new("commit", &commit.to_string());
        let starts: Vec<Step> =
            commits.iter().map(|commit| Step { name: vertex(commit), depth: 0 }).collect();
        let options = TraceOptions { limit: VERTICES, ..TraceOptions::default() };
        if starts.is_empty() {
            return Ok(Trail::default());
        }
        let Some(lineage) = graph.trace_on(&starts, &options, &session)? else { return Ok(Trail::default()) };
        let truncated = lineage.truncated;
        let dossier = graph.around(&lineage, None, &session)?;
        let mut names: BTreeSet<VertexName> = dossier.vertices().cloned().collect();
        let mut relations: BTreeMap<(String, VertexName, VertexName, u64), Relation> = BTreeMap::new();
        let mut all: Vec<Relation> = dossier.relations().cloned().collect();
        let known: HashSet<_> =
            all.iter().map(|edge| (edge.far.clone(), edge.near.clone(), edge.stamp)).collect();
        // The readers are not upstream.
        for start in &starts {
            let there = graph.edges(&start.name, None, Versions::NOW, None, &session)?;
            let is_new = |edge: &Relation| {
                !(edge.reverse && known.contains(&(edge.near.clone(), edge.far.clone(), edge.stamp)))
            };
            all.extend(there.into_iter().filter(is_new));
        }
        for relation in all.into_iter().filter(|relation| !relation.deleted) {
            names.extend([relation.near.clone(), relation.far.clone()]);
            let key = (relation.kind.clone(), relation.near.clone(), relation.far.clone(), relation.stamp);
            relations.insert(key, relation);
        }
        let mut vertices = Vec::new();
        for name in names {
            match graph.vertex(&name, None, &session) {
                // Only relations name it.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                found => {
                    let found = found?;
                    vertices.push(VertexPut {
                        vertex: name,
                        fixed: Some(props(&found.fixed)?),
                        props: props(&found.props)?,
                        time: Some(found.stamp),
                    });
                }
            }
        }
        let put = |relation: Relation| {
            Ok(RelationPut {
                props: props(&relation.props)?,
                time: Some(relation.stamp),
                until: relation.until,
                ..RelationPut::new(&relation.kind, relation.near, relation.far)
            })
        };
        let relations = relations.into_values().map(put).collect::<Result<Vec<_>>>()?;
        Ok(Trail { vertices, relations, truncated })
    }

    /// The executions among the vertices.
    pub fn executions(&self) -> Vec<String> {
        let executions = self.vertices.iter().filter(|put| is_execution(&put.vertex.kind));
        executions.map(|put| put.vertex.id.to_string()).collect()
    }

    /// Gives the target what it lacks, in a transaction.
    pub fn put(&self, to: &Store, transaction: Id) -> Result<()> {
        let (graph, session) = (to.graph(), Session::default());
        let (mut vertices, mut relations) = (Vec::new(), Vec::new());
        for put in &self.vertices {
            let there = graph.versions(&put.vertex, &session)?;
            if !there.iter().any(|version| Some(version.stamp) == put.time) {
                vertices.push(put.clone());
            }
        }
        for put in &self.relations {
            let stamp = put.time.unwrap_or_default();
            let at = Versions::Between(stamp, stamp);
            let there = graph.edges(&put.source, Some(&put.kind), at, None, &session)?;
            if !there.iter().any(|edge| edge.far == put.target && edge.stamp == stamp) {
                relations.push(put.clone());
            }
        }
        let session = Session::from(transaction);
        for some in vertices.chunks(ROWS) {
            graph.put_vertices(some.to_vec(), &session)?;
        }
        for some in relations.chunks(ROWS) {
            graph.put_relations(some.to_vec(), &session)?;
        }
        Ok(())
    }
}

fn props(pairs: &[(String, Value)]) -> Result<Props> {
    Props::of(pairs.iter().map(|(name, value)| (name.as_str(), value)))
}
