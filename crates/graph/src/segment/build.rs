//! A segment in memory, from rows as they come out of the logs.
//!
//! Each relation stands at both of its ends: with its row at the source, without one at the target. Both are made
//! here, from one record, so that neither is ever there without the other.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{Record, RelationRow, VertexName, VertexRow};
use fieldstone_format::graph_segment::adjacency::EdgeVersion;
use fieldstone_format::graph_segment::rows::VertexVersion;
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};

use super::write::{MemorySink, NewGroup, NewRow, NewVersion, Writer};
use super::{Segment, TypeRow};

/// The property of a relation by which it replaces what its target was before.
const REPLACES: &[u8] = b"replaces";

/// A commit that brought rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitOrder {
    /// When it became known.
    pub known: CommitKnown,
    /// Whose log it is of.
    pub user: u32,
}

/// What came out of the logs and stands in no segment yet; each row with the number of its commit.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The commits.
    pub commits: Vec<CommitOrder>,
    /// Versions of vertices.
    pub vertices: Vec<(VertexRow, u32)>,
    /// Versions of relations.
    pub relations: Vec<(RelationRow, u32)>,
    /// Declared types.
    pub types: Vec<TypeRow>,
}

impl Rows {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty() && self.relations.is_empty() && self.types.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.vertices.len() + self.relations.len() + self.types.len()
    }

    /// Adds what a commit says.
    pub fn add(&mut self, source: CommitOrder, record: Record) {
        if self.commits.last() != Some(&source) {
            self.begin(source);
        }
        let commit = self.commits.len() as u32 - 1;
        match record {
            Record::Vertices(rows) => self.vertices.extend(rows.into_iter().map(|row| (row, commit))),
            Record::Relations(rows) => self.relations.extend(rows.into_iter().map(|row| (row, commit))),
            Record::Types(types) => self.types.extend(types.into_iter().map(|declared| TypeRow {
                known: source.known,
                user: source.user,
                declared,
            })),
        }
    }

    /// What is added from here on is of another commit.
    pub fn begin(&mut self, source: CommitOrder) {
        self.commits.push(source);
    }
}

/// Sorted distinct items, by which they are numbered.
fn numbered<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = items.collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn number<T: Ord>(all: &[T], item: &T) -> u32 {
    all.binary_search(item).unwrap_or(0) as u32
}

/// Half of a relation: as one of its ends has it.
#[derive(Debug, Clone, Copy)]
struct Half {
    vertex: u32,
    code: u32,
    far: u32,
    stamp: u64,
    source: CommitOrder,
    commit: u32,
    /// Which row.
    row: u32,
}

/// Newest first, by user, what was known last first, and of one commit the later row first.
type Order = (Reverse<u64>, u32, Reverse<CommitKnown>, u32, Reverse<u32>);

impl Half {
    fn order(&self) -> (u32, u32, u32, Order) {
        let CommitOrder { known, user } = self.source;
        let order = (Reverse(self.stamp), user, Reverse(known), self.commit, Reverse(self.row));
        (self.vertex, self.code, self.far, order)
    }

    fn version(&self) -> (u32, u32, u32, u64, u32) {
        (self.vertex, self.code, self.far, self.stamp, self.source.user)
    }
}

/// Leaves one of what is the same version: of one commit the later row, of several commits what was known last, and
/// else what `content` says, which is the same for everybody.
fn leave_one<T, V: PartialEq, C: Ord>(
    sorted: &mut Vec<T>,
    version: impl Fn(&T) -> (V, CommitKnown, u32),
    content: impl Fn(&T) -> C,
) {
    sorted.dedup_by(|later, kept| version(later) == version(kept));
    sorted.dedup_by(|later, kept| {
        let ((kept_version, kept_known, _), (same, known, _)) = (version(kept), version(later));
        if kept_version != same {
            return false;
        }
        if kept_known == known && content(later) > content(kept) {
            std::mem::swap(kept, later);
        }
        true
    });
}

/// Vertices of the rows by place, and the tables of their numbers.
struct Tables<'a> {
    places: Vec<VertexPlace>,
    vertices: Vec<&'a VertexName>,
    names: Vec<&'a str>,
    users: Vec<u32>,
    known: Vec<CommitKnown>,
    /// Numbers of source and target of each relation.
    ends: Vec<(u32, u32)>,
    /// Numbers of the vertices of rows of vertices.
    of_rows: Vec<u32>,
}

impl<'a> Tables<'a> {
    fn of(rows: &'a Rows) -> Result<Tables<'a>> {
        let own = rows.vertices.iter().map(|(row, _)| &row.vertex);
        let ends = rows.relations.iter().flat_map(|(row, _)| [&row.source, &row.target]);
        // Each mention of a vertex with where it stands: equal ones come together, and get one number.
        let mut named: Vec<(VertexPlace, usize, &VertexName)> =
            own.chain(ends).enumerate().map(|(i, name)| (VertexPlace::of(name), i, name)).collect();
        if u32::try_from(named.len()).is_err() {
            return Err(Error::internal("a segment of more than 2^32 rows"));
        }
        named.sort_unstable_by_key(|(place, i, _)| (*place, *i));
        let (mut places, mut vertices) = (Vec::new(), Vec::new());
        let mut numbers = vec![0; named.len()];
        for (place, i, name) in named {
            if places.last() != Some(&place) {
                places.push(place);
                vertices.push(name);
            } else if vertices.last() != Some(&name) {
                return Err(Error::internal(format!("{name} and another vertex have one place")));
            }
            numbers[i] = places.len() as u32 - 1;
        }
        let ends = numbers.split_off(rows.vertices.len());
        let ends = ends.chunks_exact(2).map(|two| (two[0], two[1])).collect();
        let of_rows = numbers;
        let kinds = vertices.iter().map(|name| &*name.kind);
        let names = numbered(kinds.chain(rows.relations.iter().map(|(row, ..)| &*row.kind)));
        let known = numbered(rows.commits.iter().map(|commit| commit.known));
        let users = numbered(rows.commits.iter().map(|commit| commit.user));
        Ok(Tables { places, vertices, names, users, known, ends, of_rows })
    }
}

/// A segment of these rows.
pub fn build(rows: &Rows) -> Result<Segment> {
    let tables = Tables::of(rows)?;
    let stamps = rows.vertices.iter().map(|(row, ..)| row.version.stamp);
    let base = stamps.chain(rows.relations.iter().map(|(row, ..)| row.version.stamp)).min().unwrap_or(0);
    let halves = halves(rows, &tables);
    let mut own: Vec<u32> = (0..rows.vertices.len() as u32).collect();
    let source = |i: u32| rows.commits[rows.vertices[i as usize].1 as usize];
    let stamp = |i: u32| rows.vertices[i as usize].0.version.stamp;
    own.sort_unstable_by_key(|i| {
        let (CommitOrder { known, user }, commit) = (source(*i), rows.vertices[*i as usize].1);
        let order: Order = (Reverse(stamp(*i)), user, Reverse(known), commit, Reverse(*i));
        (tables.of_rows[*i as usize], order)
    });
    leave_one(
        &mut own,
        |i| {
            let (CommitOrder { known, user }, commit) = (source(*i), rows.vertices[*i as usize].1);
            ((tables.of_rows[*i as usize], stamp(*i), user), known, commit)
        },
        |i| vertex_content(&rows.vertices[*i as usize].0),
    );
    let mut sink = MemorySink::default();
    let mut writer = Writer::new(&mut sink, base);
    let (mut halves, mut own) = (halves.as_slice(), own.as_slice());
    for (n, vertex) in tables.vertices.iter().enumerate() {
        let versions = take_while(&mut own, |i| tables.of_rows[*i as usize] as usize == n);
        let versions: Vec<VertexVersion> =
            versions.iter().map(|i| vertex_version(&rows.vertices[*i as usize], rows, &tables)).collect();
        let mut left = take_while(&mut halves, |half| half.vertex as usize == n);
        let mut groups = Vec::new();
        while let Some(first) = left.first() {
            let mut group = take_while(&mut left, |half| half.code == first.code);
            let mut far_ends = Vec::new();
            while let Some(first) = group.first() {
                let versions = take_while(&mut group, |half| half.far == first.far);
                let versions = versions.iter().map(|half| new_version(half, rows, &tables)).collect();
                far_ends.push((first.far, versions));
            }
            groups.push(NewGroup { code: first.code, far_ends });
        }
        let kind = number(&tables.names, &&*vertex.kind);
        writer.vertex(tables.places[n], (kind, &vertex.id), &versions, &groups)?;
    }
    let names = tables.names.iter().map(|name| (*name).to_owned()).collect();
    let count = tables.places.len() as u64;
    let summary = writer.finish(count, names, tables.users.clone(), &tables.known, &rows.types)?;
    Segment::over(sink.storage(), summary)
}

fn take_while<'a, T>(items: &mut &'a [T], same: impl Fn(&T) -> bool) -> &'a [T] {
    let n = items.iter().position(|item| !same(item)).unwrap_or(items.len());
    let (taken, left) = items.split_at(n);
    *items = left;
    taken
}

fn halves(rows: &Rows, tables: &Tables<'_>) -> Vec<Half> {
    let mut codes: HashMap<&Arc<str>, u32> = HashMap::new();
    let mut halves = Vec::with_capacity(2 * rows.relations.len());
    for (i, (row, commit)) in rows.relations.iter().enumerate() {
        let code = *codes.entry(&row.kind).or_insert_with(|| 2 * number(&tables.names, &&*row.kind));
        let (source, target) = tables.ends[i];
        let half = Half {
            vertex: source,
            code,
            far: target,
            stamp: row.version.stamp,
            source: rows.commits[*commit as usize],
            commit: *commit,
            row: i as u32,
        };
        halves.push(half);
        halves.push(Half { vertex: target, code: code | 1, far: source, ..half });
    }
    halves.sort_unstable_by_key(Half::order);
    leave_one(
        &mut halves,
        |half| (half.version(), half.source.known, half.commit),
        |half| relation_content(&rows.relations[half.row as usize].0),
    );
    halves
}

fn vertex_content(row: &VertexRow) -> (bool, Option<&[u8]>, &[u8], i64) {
    let fixed = row.fixed.as_ref().map(|props| props.bytes());
    (row.version.deleted, fixed, row.props.bytes(), row.version.time)
}

fn relation_content(row: &RelationRow) -> (bool, Option<u64>, bool, i64, &[u8]) {
    (row.version.deleted, row.until, replaces(row), row.version.time, row.props.bytes())
}

/// Whether a relation replaces what its target was before.
fn replaces(row: &RelationRow) -> bool {
    // Few relations have it: the name is looked for before anything is decoded.
    let named = row.props.bytes().windows(REPLACES.len()).any(|bytes| bytes == REPLACES);
    named && row.props.is_true("replaces").unwrap_or(false)
}

fn vertex_version((row, commit): &(VertexRow, u32), rows: &Rows, tables: &Tables<'_>) -> VertexVersion {
    let CommitOrder { known, user } = rows.commits[*commit as usize];
    VertexVersion {
        stamp: row.version.stamp,
        time: row.version.time,
        known: number(&tables.known, &known),
        user: number(&tables.users, &user),
        deleted: row.version.deleted,
        fixed: row.fixed.clone(),
        props: row.props.clone(),
    }
}

fn new_version<'a>(half: &Half, rows: &'a Rows, tables: &Tables<'_>) -> NewVersion<'a> {
    let row = &rows.relations[half.row as usize].0;
    let CommitOrder { known, user } = half.source;
    let version = EdgeVersion {
        stamp: row.version.stamp,
        known: number(&tables.known, &known),
        until: row.until,
        user: number(&tables.users, &user),
        deleted: row.version.deleted,
        replaces: replaces(row),
        row: 0,
    };
    let row = match half.code & 1 {
        0 => NewRow::Content(row.version.time, &row.props),
        _ => NewRow::Elsewhere,
    };
    NewVersion { version, row }
}
