//! Finds relations by their type and the values of their properties.
//!
//! A found relation is one that `edges` of either of its ends gives at the same moment. It is looked up at
//! its source, where its row is in every index, so that it is found once, even if slots have it at both ends
//! (G-66).

use fieldstone_core::Result;
use fieldstone_core::value::{Test, Value};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

use crate::find::{VertexTest, find, pass};
use crate::read::{self, Relation, Vertex};
use crate::segment::SegmentCursor;
use crate::state::{END, Edge, GraphState, RelationReader};
use crate::vocabulary::{Direction, VERTICES, Vocabulary};

/// Up to this many relations of a source are looked up one by one among all of its type there; for more
/// candidates, all of them are read once.
const ONE_BY_ONE: usize = 2;

/// A test of relations.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RelationTest {
    /// Of this type, by either name: results are seen from the end that uses the name.
    pub kind: String,
    /// All of these properties pass.
    pub tests: Vec<(String, Test)>,
}

/// The matches of a type and tests.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeMatches {
    /// The type is one of vertices.
    Vertices(Vec<Vertex>),
    /// The type is one of relations.
    Relations(Vec<Relation>),
}

/// Whether a name is that of a type of relations, from either end. A type of vertices takes precedence: each
/// relation has another name, `~` before its reverse name (G-67).
fn is_of_relations(state: &GraphState, kind: &str) -> Result<bool> {
    let vocabulary = state.vocabulary();
    if VERTICES.contains(&kind) || vocabulary.vertex(kind).is_some() {
        return Ok(false);
    }
    let declared = vocabulary.edge(&vocabulary.direction(kind).kind).is_some();
    if kind.starts_with('~') || Vocabulary::is_builtin(kind) || declared {
        return Ok(true);
    }
    // For a type that nobody declared, the existing vertices and relations decide.
    let (mut vertices, mut sources) = (false, false);
    if state.uses(kind) {
        for segment in state.segments() {
            vertices |= !segment.of_kind(kind)?.is_empty();
            sources |= !segment.sources_of(kind)?.is_empty();
        }
    }
    Ok(sources && !vertices)
}

/// The vertices of a type that pass tests, or the relations if the name is one of theirs.
pub fn find_by_type(
    state: &GraphState,
    kind: &str,
    tests: &[(String, Test)],
    at: Option<u64>,
    limit: Option<usize>,
    limits: &mut Limits,
) -> Result<TypeMatches> {
    let tests = tests.to_vec();
    if is_of_relations(state, kind)? {
        let test = RelationTest { kind: kind.to_owned(), tests };
        return Ok(TypeMatches::Relations(find_relations(state, &test, at, limit, limits)?));
    }
    let test = VertexTest { kind: Some(kind.to_owned()), tests, ..VertexTest::default() };
    Ok(TypeMatches::Vertices(find(state, &test, at, limit, limits)?))
}

/// The relations that pass a test: of each the version that is valid at a moment or now; up to a limit.
pub fn find_relations(
    state: &GraphState,
    test: &RelationTest,
    at: Option<u64>,
    limit: Option<usize>,
    limits: &mut Limits,
) -> Result<Vec<Relation>> {
    let (direction, at) = (state.vocabulary().direction(&test.kind), at.unwrap_or(END));
    let limit = limit.unwrap_or(usize::MAX);
    let mut search = RelationSearch { state, reader: state.reader(), test, direction, at, limits };
    let mut found = Vec::new();
    if let Some((name, indexed)) = search.indexed() {
        let candidates = search.candidates(name, indexed)?;
        for of_source in candidates.chunk_by(|a, b| a.0 == b.0) {
            if found.len() >= limit {
                break;
            }
            let edges = search.among(of_source)?;
            search.take(of_source[0].0, &edges, limit, &mut found)?;
        }
    } else {
        for source in search.sources()? {
            if found.len() >= limit {
                break;
            }
            let edges = search.edges(source)?;
            search.take(source, &edges, limit, &mut found)?;
        }
    }
    Ok(found)
}

struct RelationSearch<'a> {
    state: &'a GraphState,
    reader: RelationReader<'a>,
    test: &'a RelationTest,
    direction: Direction,
    at: u64,
    limits: &'a mut Limits,
}

impl<'a> RelationSearch<'a> {
    /// The test by which an index can find relations, if there is one. No index has the properties of moved
    /// versions; that matters only at an earlier moment.
    fn indexed(&self) -> Option<(&'a str, &'a Test)> {
        let all_here = self.at == END || self.state.archives().next().is_none();
        let vocabulary = self.state.vocabulary();
        let is_indexed =
            |(name, _): &&(String, Test)| vocabulary.indexes_relation(&self.direction.kind, name);
        let indexed = self.test.tests.iter().find(is_indexed).filter(|_| all_here)?;
        Some((&indexed.0, &indexed.1))
    }

    /// Both ends of relations that may pass a test, from the index.
    fn candidates(&mut self, name: &str, test: &Test) -> Result<Vec<(VertexPlace, VertexPlace)>> {
        let mut ends = Vec::new();
        for segment in self.state.segments() {
            let mut cursor = SegmentCursor::default();
            for (source, target) in segment.relations_by(&self.direction.kind, name)?.candidates(test) {
                self.limits.step()?;
                ends.push((segment.place_on(source, &mut cursor)?, segment.place_on(target, &mut cursor)?));
            }
        }
        ends.sort_unstable();
        ends.dedup();
        Ok(ends)
    }

    /// The vertices from which such relations lead.
    fn sources(&mut self) -> Result<Vec<VertexPlace>> {
        let mut places = Vec::new();
        for segment in self.state.segments() {
            let mut cursor = SegmentCursor::default();
            for number in segment.sources_of(&self.direction.kind)?.iter() {
                self.limits.step()?;
                places.push(segment.place_on(*number, &mut cursor)?);
            }
        }
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }

    /// All such relations of a source.
    fn edges(&self, source: VertexPlace) -> Result<Vec<Edge>> {
        let wanted = |kind: &str, reverse: bool| !reverse && *kind == *self.direction.kind;
        self.state.edges(source, &wanted)
    }

    /// The candidates of one source, as relations.
    fn among(&self, candidates: &[(VertexPlace, VertexPlace)]) -> Result<Vec<Edge>> {
        let single = |(source, target): &(VertexPlace, VertexPlace)| {
            self.state.relation(*source, &self.direction.kind, *target)
        };
        if candidates.len() <= ONE_BY_ONE {
            return candidates.iter().map(single).collect();
        }
        let mut edges = self.edges(candidates[0].0)?;
        edges.retain(|edge| candidates.binary_search_by_key(&edge.far, |(_, target)| *target).is_ok());
        Ok(edges)
    }

    /// Adds the relations of a source that pass, up to the limit.
    fn take(
        &mut self,
        source: VertexPlace,
        edges: &[Edge],
        limit: usize,
        found: &mut Vec<Relation>,
    ) -> Result<()> {
        for edge in edges {
            if found.len() >= limit {
                break;
            }
            self.limits.step()?;
            found.extend(self.passes(source, edge)?);
        }
        Ok(())
    }

    /// The valid version of a relation, if it passes.
    fn passes(&mut self, source: VertexPlace, edge: &Edge) -> Result<Option<Relation>> {
        let (state, tests) = (self.state, &self.test.tests);
        let Some(version) = state.current(source, edge, self.at)? else { return Ok(None) };
        let near = state.name(source)?;
        if let Some(url) = state.archived_in(version).filter(|_| !tests.is_empty()) {
            let what = format!("{} from {near} to {}", edge.direction.kind, self.reader.far_name(version)?);
            return Err(read::moved(what, &url));
        }
        let row = self.reader.row(source, edge, version)?;
        let value = |name: &str| -> Result<Option<Value>> { row.1.get(name) };
        if !pass(tests, value)? {
            return Ok(None);
        }
        let mut relation = read::relation(&mut self.reader, &near, edge, version, row)?;
        if self.direction.reverse {
            std::mem::swap(&mut relation.near, &mut relation.far);
            relation.kind = state.vocabulary().name(&self.direction.kind, true);
            relation.reverse = true;
        }
        Ok(Some(relation))
    }
}
