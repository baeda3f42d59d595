//! Builds a segment in memory from the rows of the logs.
//!
//! Each relation is stored at both of its ends: with its row at the source, without one at the target. Both
//! come from one line here, so that neither ever exists without the other. In a slot of a partitioned index, a
//! line counts for those of its ends that are placed there, with its row at each.
//!
//! Vertices are sorted by place; counting assigns the halves of relations to their vertices, where they are
//! sorted.

use std::cmp::{Ordering, Reverse};
use std::hint::black_box;

use fieldstone_core::{Error, Result};
use fieldstone_format::graph::props_bytes;
use fieldstone_format::graph_message::rows::{FOR_SOURCE, FOR_TARGET, RowsCommit};
use fieldstone_format::graph_segment::CommitKnown;
use fieldstone_format::graph_segment::adjacency::EdgeVersion;
use fieldstone_format::graph_segment::rows::VertexVersion;

use super::Segment;
use super::rows::{CommitOrder, RelationLine, Rows, VertexLine};
use super::write::{Declared, MemorySink, NewRow, Writer};

/// Sorted distinct items; an item's number is its index.
fn numbered<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = items.collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn number<T: Ord>(all: &[T], item: &T) -> u32 {
    all.binary_search(item).unwrap_or(0) as u32
}

/// Half of a relation, seen from one of its ends.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    /// Code of its group and number of its far end: the order within a vertex.
    key: u64,
    /// The index of its line.
    line: u32,
}

impl Half {
    fn new(code: u32, far: u32, line: usize) -> Half {
        Half { key: u64::from(code) << 32 | u64::from(far), line: line as u32 }
    }

    fn code(&self) -> u32 {
        (self.key >> 32) as u32
    }

    fn far(&self) -> u32 {
        self.key as u32
    }
}

/// Newest first, then by user, the one known last first, and within a commit the later row first.
type Order = (Reverse<u64>, u32, Reverse<CommitKnown>, u32, Reverse<u32>);

fn order(stamp: u64, commit: u32, CommitOrder { known, user }: CommitOrder, line: u32) -> Order {
    (Reverse(stamp), user, Reverse(known), commit, Reverse(line))
}

/// Lines with versions, referred to by their numbers.
trait Versions {
    /// Stamp, number of the commit.
    fn version(&self, line: u32) -> (u64, u32);
    /// The commit of a line.
    fn commit(&self, number: u32) -> CommitOrder;
    /// Compares contents, to choose between two versions that are otherwise equal.
    fn content(&self, a: u32, b: u32) -> Ordering;

    fn order(&self, line: u32) -> Order {
        let (stamp, commit) = self.version(line);
        order(stamp, commit, self.commit(commit), line)
    }

    /// Keeps one of several lines with the same version, in sorted lines: within a commit the later row,
    /// among several commits the one known last, and otherwise by content, which gives the same choice
    /// everywhere.
    fn leave_one(&self, sorted: &mut Vec<u32>) {
        let same = |a: u32, b: u32| {
            let ((a, of_a), (b, of_b)) = (self.version(a), self.version(b));
            a == b && self.commit(of_a).user == self.commit(of_b).user
        };
        // First within each commit, where the later row comes first, then among the commits.
        sorted.dedup_by(|later, kept| self.version(*later).1 == self.version(*kept).1 && same(*later, *kept));
        sorted.dedup_by(|later, kept| {
            if !same(*later, *kept) {
                return false;
            }
            let known = |line: u32| self.commit(self.version(line).1).known;
            // Commits are sorted by when they became known, so content decides only between equally known
            // ones.
            if known(*kept) == known(*later) && self.content(*later, *kept) == Ordering::Greater {
                std::mem::swap(kept, later);
            }
            true
        });
    }
}

struct OfVertices<'a>(&'a Rows);

impl Versions for OfVertices<'_> {
    fn version(&self, line: u32) -> (u64, u32) {
        let line = &self.0.vertices[line as usize];
        (line.row.version.stamp, line.commit)
    }

    fn commit(&self, number: u32) -> CommitOrder {
        self.0.commit(number)
    }

    fn content(&self, a: u32, b: u32) -> Ordering {
        let content = |line: u32| {
            let VertexLine { row, archived, .. } = &self.0.vertices[line as usize];
            let fixed = row.fixed.as_ref().map(props_bytes);
            (row.version.deleted, !archived, fixed, props_bytes(&row.props), row.version.time)
        };
        content(a).cmp(&content(b))
    }
}

struct OfRelations<'a>(&'a Rows);

impl Versions for OfRelations<'_> {
    fn version(&self, line: u32) -> (u64, u32) {
        let line = &self.0.relations[line as usize];
        (line.stamp, line.commit)
    }

    fn commit(&self, number: u32) -> CommitOrder {
        self.0.commit(number)
    }

    fn content(&self, a: u32, b: u32) -> Ordering {
        let content = |line: u32| {
            let line = &self.0.relations[line as usize];
            (line.deleted, line.until, line.replaces, !line.archived, line.time, self.0.props(line))
        };
        content(a).cmp(&content(b))
    }
}

/// Vertices of the rows by place, and the tables of their numbers.
struct Tables<'a> {
    /// Numbers of vertices among the names, in the order of their places.
    by_place: Vec<u32>,
    /// The inverse of `by_place`.
    ranks: Vec<u32>,
    names: Vec<&'a str>,
    /// Indices of types in `names`, by their numbers among the names.
    kinds: Vec<u32>,
    users: Vec<u32>,
    known: Vec<CommitKnown>,
    /// Indices of the commit and of the user, for each commit.
    commits: Vec<(u32, u32)>,
}

impl<'a> Tables<'a> {
    fn of(rows: &'a Rows) -> Result<Tables<'a>> {
        rows.names.check()?;
        if u32::try_from(rows.relations.len().max(rows.vertices.len())).is_err() {
            return Err(Error::internal("a segment of more than 2^32 rows"));
        }
        let places = rows.names.vertices.iter().map(|vertex| vertex.place);
        let mut sorted: Vec<_> = places.zip(0u32..).collect();
        sorted.sort_unstable();
        let by_place: Vec<u32> = sorted.into_iter().map(|(_, number)| number).collect();
        let mut ranks = vec![0; by_place.len()];
        for (rank, number) in (0..).zip(&by_place) {
            ranks[*number as usize] = rank;
        }
        let names = numbered(rows.names.kinds.iter().map(|kind| &**kind));
        let kinds = rows.names.kinds.iter().map(|kind| number(&names, &&**kind)).collect();
        let known = numbered(rows.commits.iter().map(|commit| commit.known));
        let users = numbered(rows.commits.iter().map(|commit| commit.user));
        let indices = |commit: &RowsCommit| (number(&known, &commit.known), number(&users, &commit.user));
        let commits = rows.commits.iter().map(indices).collect();
        Ok(Tables { by_place, ranks, names, kinds, users, known, commits })
    }

    /// The halves of all relations by vertex: those of the i-th are from the i-th of the numbers to the next
    /// one.
    fn halves(&self, rows: &Rows) -> (Vec<Half>, Vec<usize>) {
        // A counting sort: one pass counts the halves of each vertex, the next puts them in place.
        let mut begins = vec![0usize; self.by_place.len() + 1];
        let ends = |line: &RelationLine| {
            let rank = |end: u32| self.ranks[end as usize];
            [
                (FOR_SOURCE, rank(line.source), rank(line.target)),
                (FOR_TARGET, rank(line.target), rank(line.source)),
            ]
        };
        for line in &rows.relations {
            for (_, near, _) in ends(line).into_iter().filter(|(end, ..)| line.ends & end != 0) {
                begins[near as usize + 1] += 1;
            }
        }
        for i in 1..begins.len() {
            begins[i] += begins[i - 1];
        }
        let mut halves = vec![Half::default(); begins[begins.len() - 1]];
        let mut next = begins.clone();
        for (i, line) in rows.relations.iter().enumerate() {
            // Even codes are relations that leave the vertex, odd ones those that reach it.
            let code = 2 * self.kinds[line.kind as usize];
            for (end, near, far) in ends(line).into_iter().filter(|(end, ..)| line.ends & end != 0) {
                let code = code | u32::from(end == FOR_TARGET);
                halves[next[near as usize]] = Half::new(code, far, i);
                next[near as usize] += 1;
            }
        }
        (halves, begins)
    }
}

/// A segment of these rows.
pub fn build(rows: &Rows) -> Result<Segment> {
    let tables = Tables::of(rows)?;
    let stamps = rows.vertices.iter().map(|line| line.row.version.stamp);
    let base = stamps.chain(rows.relations.iter().map(|line| line.stamp)).min().unwrap_or(0);
    let (mut halves, begins) = tables.halves(rows);
    let (of_vertices, of_relations) = (OfVertices(rows), OfRelations(rows));
    let mut own: Vec<(u32, u32)> =
        rows.vertices.iter().zip(0..).map(|(line, i)| (tables.ranks[line.vertex as usize], i)).collect();
    own.sort_unstable_by_key(|(vertex, line)| (*vertex, of_vertices.order(*line)));
    let mut own = own.as_slice();
    let mut sink = MemorySink::default();
    let mut writer = Writer::new(&mut sink, base);
    let (mut lines, mut versions): (Vec<u32>, Vec<VertexVersion>) = (Vec::new(), Vec::new());
    let mut gathered: Vec<RelationLine> = Vec::new();
    for (n, name) in tables.by_place.iter().enumerate() {
        lines.clear();
        lines.extend(take_while(&mut own, |(vertex, _)| *vertex as usize == n).iter().map(|(_, line)| line));
        of_vertices.leave_one(&mut lines);
        versions.clear();
        versions.extend(lines.iter().map(|line| vertex_version(&rows.vertices[*line as usize], &tables)));
        let vertex = &rows.names.vertices[*name as usize];
        let kind = tables.kinds[vertex.kind as usize];
        writer.begin(vertex.place, (kind, rows.names.id(vertex)), &versions)?;
        let own = &mut halves[begins[n]..begins[n + 1]];
        own.sort_unstable_by(|a, b| {
            let order = |half: &Half| of_relations.order(half.line);
            a.key.cmp(&b.key).then_with(|| order(a).cmp(&order(b)))
        });
        // Lines and properties are scattered in memory: request several of them before waiting for one.
        gathered.clear();
        gathered.extend(own.iter().map(|half| rows.relations[half.line as usize]));
        let touched = own.iter().zip(&gathered).filter(|(half, _)| half.code() & 1 == 0);
        black_box(touched.fold(0, |sum, (_, line)| sum ^ rows.props(line).last().copied().unwrap_or(0)));
        put_relations(&mut writer, (rows, &tables), (own, &gathered), &mut lines)?;
        writer.end()?;
    }
    let names = tables.names.iter().map(|name| (*name).to_owned()).collect();
    let count = tables.by_place.len() as u64;
    let summary = writer.finish(
        count,
        names,
        tables.users,
        &tables.known,
        &Declared { types: &rows.types, archives: &rows.archives },
    )?;
    Segment::over(sink.storage(), summary)
}

/// Writes the relations of one vertex: the versions of each, one group after the other. `own` are its sorted
/// halves with their lines, `lines` is memory for the versions of one relation.
fn put_relations(
    writer: &mut Writer<'_, MemorySink>,
    (rows, tables): (&Rows, &Tables<'_>),
    (own, own_lines): (&[Half], &[RelationLine]),
    lines: &mut Vec<u32>,
) -> Result<()> {
    let (mut at, mut code) = (0, None);
    while let Some(first) = own.get(at).copied() {
        if code != Some(first.code()) {
            code = Some(first.code());
            writer.group(first.code());
        }
        let same = own[at..].iter().take_while(|half| half.key == first.key).count();
        let mut one = |line: &RelationLine| {
            let row = match first.code() & 1 {
                0 => NewRow::Content(line.time, rows.props(line)),
                _ if rows.at_both_ends => NewRow::AtTarget(line.time, rows.props(line)),
                _ => NewRow::Elsewhere,
            };
            writer.version(first.far(), edge_version(line, tables), row)
        };
        // Nearly every relation has a single version, which needs no comparison.
        if same == 1 {
            one(&own_lines[at])?;
        } else {
            lines.clear();
            lines.extend(own[at..at + same].iter().map(|half| half.line));
            OfRelations(rows).leave_one(lines);
            lines.iter().try_for_each(|line| one(&rows.relations[*line as usize]))?;
        }
        at += same;
    }
    Ok(())
}

fn take_while<'a, T>(items: &mut &'a [T], same: impl Fn(&T) -> bool) -> &'a [T] {
    let n = items.iter().position(|item| !same(item)).unwrap_or(items.len());
    let (taken, left) = items.split_at(n);
    *items = left;
    taken
}

fn vertex_version(line: &VertexLine, tables: &Tables<'_>) -> VertexVersion {
    let ((known, user), row) = (tables.commits[line.commit as usize], &line.row);
    VertexVersion {
        stamp: row.version.stamp,
        time: row.version.time,
        known,
        user,
        deleted: row.version.deleted,
        archived: line.archived,
        fixed: row.fixed.clone(),
        props: row.props.clone(),
    }
}

fn edge_version(line: &RelationLine, tables: &Tables<'_>) -> EdgeVersion {
    let (known, user) = tables.commits[line.commit as usize];
    let RelationLine { stamp, until, deleted, replaces, archived, .. } = *line;
    EdgeVersion { stamp, known, until, user, deleted, replaces, archived, row: 0 }
}
