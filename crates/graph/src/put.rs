//! The arguments of puts and deletions.

use std::sync::Arc;

use fieldstone_format::graph::{Props, VertexName};

/// A vertex to put: a new version of it.
#[derive(Debug, Clone, PartialEq)]
pub struct VertexPut {
    /// The vertex.
    pub vertex: VertexName,
    /// Static properties; `None`: earlier ones stay.
    pub fixed: Option<Props>,
    /// The user's properties, which replace the earlier ones.
    pub props: Props,
    /// The stamp; now if absent.
    pub time: Option<u64>,
}

impl VertexPut {
    /// A vertex without properties, put now.
    pub fn new(vertex: VertexName) -> VertexPut {
        VertexPut { vertex, fixed: None, props: Props::default(), time: None }
    }
}

/// A relation to put: a new version of it. Missing vertices come into being with it.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationPut {
    /// Its type, or its reverse name.
    pub kind: Arc<str>,
    /// The vertex from which it leads.
    pub source: VertexName,
    /// The vertex to which it leads.
    pub target: VertexName,
    /// Its properties.
    pub props: Props,
    /// The stamp at which it began; now if absent.
    pub time: Option<u64>,
    /// The stamp at which it ended.
    pub until: Option<u64>,
}

impl RelationPut {
    /// A relation without properties, put now.
    pub fn new(kind: &str, source: VertexName, target: VertexName) -> RelationPut {
        RelationPut { kind: kind.into(), source, target, props: Props::default(), time: None, until: None }
    }
}

/// A vertex or a relation to delete.
#[derive(Debug, Clone, PartialEq)]
pub enum Deletion {
    /// A vertex, and the relations at it.
    Vertex(VertexName),
    /// A relation: type, source, target.
    Relation(Arc<str>, VertexName, VertexName),
}
