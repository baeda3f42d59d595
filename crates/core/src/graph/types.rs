//! Declared types of vertices and relations.

use crate::value::ValueType;

/// A declared type of vertices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VertexType {
    /// Its name.
    pub name: String,
    /// Static properties with the types of their values.
    pub fixed: Vec<(String, ValueType)>,
    /// Properties that queries can find by value.
    pub index: Vec<String>,
    /// Properties that queries can find by their words.
    pub text: Vec<String>,
}

/// A declared type of relations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EdgeType {
    /// Its name.
    pub name: String,
    /// Its name from the far end.
    pub reverse: String,
    /// The type of its source vertex; `None` for any.
    pub source: Option<String>,
    /// The type of its target vertex; `None` for any.
    pub target: Option<String>,
    /// Properties that queries can find by value.
    pub index: Vec<String>,
}

/// A declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeDecl {
    /// Of vertices.
    Vertex(VertexType),
    /// Of relations.
    Edge(EdgeType),
}
