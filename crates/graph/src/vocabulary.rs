//! Types of vertices and relations: those that every store has, and those that users declare.
//!
//! | from | relation | its reverse name | to |
//! |---|---|---|---|
//! | user | run | wasRunBy | job, process |
//! | job | contains | belongs | process |
//! | job, process | exe | exedBy | file |
//! | job, process | read | wasReadBy | file, directory, field, run, commit |
//! | job, process | write | wasWrittenBy | the same |
//! | directory | has | belongsTo | file, directory |
//!
//! This is Table 1 of GraphMeta, with fields, runs and commits as further data objects. The reverse name of a
//! relation whose type nobody declared is `~type`.
//!
//! Among contradicting declarations, the one that was known first counts; the others are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldstone_format::graph::{EdgeType, Record, TypeDecl, VertexType};

use crate::segment::TypeRow;

/// Relations that every store has, each with its reverse name.
pub const RELATIONS: [(&str, &str); 6] = [
    ("run", "wasRunBy"),
    ("contains", "belongs"),
    ("exe", "exedBy"),
    ("read", "wasReadBy"),
    ("write", "wasWrittenBy"),
    ("has", "belongsTo"),
];

/// Types of vertices that every store has.
pub const VERTICES: [&str; 8] = ["user", "job", "process", "file", "directory", "field", "run", "commit"];

/// A type of relations, seen from one end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Direction {
    /// The type's name.
    pub kind: Arc<str>,
    /// Whether it is seen from the target.
    pub reverse: bool,
}

/// The types of a store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vocabulary {
    vertices: BTreeMap<String, VertexType>,
    edges: BTreeMap<String, EdgeType>,
    /// Reverse names of declared types.
    reverses: BTreeMap<String, String>,
    conflicts: Vec<String>,
}

impl Vocabulary {
    /// Whether every store has relations of this type, by either of its names.
    pub fn is_builtin(name: &str) -> bool {
        let name = name.trim_start_matches('~');
        RELATIONS.iter().any(|(kind, far)| name == *kind || name == *far)
    }

    /// The vocabulary of these declarations, independent of their order.
    pub fn of<'a>(types: impl Iterator<Item = &'a TypeRow>) -> Vocabulary {
        let mut rows: Vec<&TypeRow> = types.collect();
        rows.sort_by_cached_key(|row| (row.known, row.user, encoded(&row.declared)));
        let mut vocabulary = Vocabulary::default();
        for row in rows {
            if let Err(why) = vocabulary.declare(&row.declared)
                && !vocabulary.conflicts.contains(&why)
            {
                vocabulary.conflicts.push(why);
            }
        }
        vocabulary
    }

    /// Adds a declaration that agrees with the existing ones; the error is the reason why it does not.
    pub fn declare(&mut self, declared: &TypeDecl) -> Result<(), String> {
        self.check(declared)?;
        match declared.clone() {
            TypeDecl::Vertex(vertex) => drop(self.vertices.insert(vertex.name.clone(), vertex)),
            TypeDecl::Edge(edge) => {
                self.reverses.insert(edge.reverse.clone(), edge.name.clone());
                self.edges.insert(edge.name.clone(), edge);
            }
        }
        Ok(())
    }

    /// Checks a declaration against the existing ones; the error is the reason why they do not agree.
    fn check(&self, declared: &TypeDecl) -> Result<(), String> {
        match declared {
            TypeDecl::Vertex(vertex) => match self.vertices.get(&vertex.name) {
                Some(known) if known != vertex => {
                    Err(format!("vertices of the type '{}' have another declaration", vertex.name))
                }
                _ => Ok(()),
            },
            TypeDecl::Edge(edge) => self.check_edge(edge),
        }
    }

    fn check_edge(&self, edge: &EdgeType) -> Result<(), String> {
        let EdgeType { name, reverse, .. } = edge;
        if let Some(known) = self.edges.get(name) {
            let why = || format!("relations of the type '{name}' have another declaration");
            return if known == edge { Ok(()) } else { Err(why()) };
        }
        let builtin =
            RELATIONS.iter().any(|(kind, far)| [name, reverse].into_iter().any(|n| n == kind || n == far));
        let taken = |name: &String| self.reverses.contains_key(name) || self.edges.contains_key(name);
        let odd = [name, reverse].into_iter().any(|name| name.is_empty() || name.starts_with('~'));
        if builtin || odd || name == reverse || taken(name) || taken(reverse) {
            return Err(format!(
                "'{name}' and '{reverse}' cannot name a relation and its reverse: a name is taken or not valid"
            ));
        }
        Ok(())
    }

    /// The type with a name, and the end that uses it.
    pub fn direction(&self, name: &str) -> Direction {
        if let Some(other) = name.strip_prefix('~') {
            let direction = self.direction(other);
            return Direction { reverse: !direction.reverse, ..direction };
        }
        let builtin = RELATIONS.iter().find(|(_, far)| *far == name).map(|(kind, _)| *kind);
        let (kind, reverse) = match builtin.or_else(|| self.reverses.get(name).map(String::as_str)) {
            Some(kind) => (kind, true),
            None => (name, false),
        };
        Direction { kind: kind.into(), reverse }
    }

    /// The name of a relation from one of its ends.
    pub fn name(&self, kind: &str, reverse: bool) -> String {
        if !reverse {
            return kind.to_owned();
        }
        if let Some((_, far)) = RELATIONS.iter().find(|(known, _)| *known == kind) {
            return (*far).to_owned();
        }
        self.edges.get(kind).map_or_else(|| format!("~{kind}"), |edge| edge.reverse.clone())
    }

    /// A declared type of vertices.
    pub fn vertex(&self, name: &str) -> Option<&VertexType> {
        self.vertices.get(name)
    }

    /// Whether vertices of a type can be found by the values of a property.
    pub fn indexes(&self, kind: &str, name: &str) -> bool {
        self.vertices.get(kind).is_some_and(|vertex| vertex.index.iter().any(|known| known == name))
    }

    /// Whether relations of a type can be found by the values of a property.
    pub fn indexes_relation(&self, kind: &str, name: &str) -> bool {
        self.edges.get(kind).is_some_and(|edge| edge.index.iter().any(|known| known == name))
    }

    /// Properties whose words are searched: this one, and the declared ones; sorted.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let declared = self.vertices.values().flat_map(|vertex| vertex.text.iter().cloned());
        let all: BTreeSet<String> = declared.chain([name.to_owned()]).collect();
        all.into_iter().collect()
    }

    /// A declared type of relations.
    pub fn edge(&self, name: &str) -> Option<&EdgeType> {
        self.edges.get(name)
    }

    /// Declarations without effect, as text.
    pub fn conflicts(&self) -> &[String] {
        &self.conflicts
    }
}

/// The order of two declarations that became known at once.
fn encoded(declared: &TypeDecl) -> Vec<u8> {
    Record::Types(vec![declared.clone()]).encode().bytes.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_format::graph_segment::CommitKnown;

    fn edge(name: &str, reverse: &str, known: u64) -> TypeRow {
        let edge = EdgeType { name: name.into(), reverse: reverse.into(), ..EdgeType::default() };
        TypeRow { known: CommitKnown { since: known, stamp: known }, user: 1, declared: TypeDecl::Edge(edge) }
    }

    #[test]
    fn every_relation_has_a_name_from_both_ends() {
        let rows = [edge("derives", "wasDerivedFrom", 5)];
        let vocabulary = Vocabulary::of(rows.iter());
        for (kind, far) in RELATIONS.into_iter().chain([("derives", "wasDerivedFrom"), ("own", "~own")]) {
            assert_eq!(vocabulary.name(kind, true), far);
            assert_eq!(vocabulary.direction(far), Direction { kind: kind.into(), reverse: true });
            assert_eq!(vocabulary.direction(kind), Direction { kind: kind.into(), reverse: false });
        }
    }

    #[test]
    fn the_declaration_that_was_known_first_holds() {
        let mut rows =
            [edge("derives", "later", 9), edge("derives", "wasDerivedFrom", 5), edge("x", "derives", 6)];
        for _ in 0..rows.len() {
            rows.rotate_left(1);
            let vocabulary = Vocabulary::of(rows.iter());
            assert_eq!(vocabulary.name("derives", true), "wasDerivedFrom");
            assert_eq!(vocabulary.conflicts().len(), 2);
        }
        assert!(Vocabulary::of([edge("read", "x", 1)].iter()).edge("read").is_none(), "it is everybody's");
    }
}
