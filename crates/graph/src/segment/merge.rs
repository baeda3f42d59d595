//! Merges several segments into one.
//!
//! It merges the places first, so that each vertex's new number is known, and then vertex by vertex, in the
//! order of their places. Numbers follow that order too, so far ends stay sorted. It holds only one vertex,
//! and four bytes for each vertex of each segment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{Props, props_bytes};
use fieldstone_format::graph_segment::adjacency::{EdgeVersion, groups};
use fieldstone_format::graph_segment::directory::Summary;
use fieldstone_format::graph_segment::rows::{VertexVersion, read_name, read_row, read_vertex, relations_at};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};

use super::write::{Declared, MemorySink, NewRow, Sink, Writer};
use super::{ArchiveRow, SectionBytes, Segment, TypeRow, outside};

/// Size in bytes up to which segments in memory are merged.
const YOUNG: u64 = 8 << 20;

/// Numbers of one segment, with their numbers in the new one.
struct Renumbered<'a> {
    segment: &'a Segment,
    vertices: Vec<u32>,
    names: Vec<u32>,
    users: Vec<u32>,
    known: Vec<u32>,
}

/// Numbers of the new segment.
struct Numbering {
    names: Vec<String>,
    users: Vec<u32>,
    known: Vec<CommitKnown>,
}

fn position<T: Ord>(all: &[T], item: &T) -> Result<u32> {
    all.binary_search(item).map(|i| i as u32).map_err(|_| outside())
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = items.collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn known_of(segment: &Segment) -> Result<Vec<CommitKnown>> {
    (0..segment.known_len()).map(|i| segment.known(i)).collect()
}

/// The halves of relations that a merge writes: a slot leaves out those that it has given away.
pub trait KeepHalves: Debug + Sync {
    /// Whether any half of a vertex is left out.
    fn leaves_out(&self, near: VertexPlace) -> bool;

    /// Whether the half that `near` has of its relation to `far` is written.
    fn keeps(&self, near: VertexPlace, far: VertexPlace) -> bool;
}

/// Merges segments into a sink.
pub fn merge<S: Sink>(segments: &[&Segment], sink: &mut S) -> Result<Summary> {
    merge_kept(segments, sink, None)
}

/// Merges segments, leaving out halves of relations that are not to be kept.
pub fn merge_kept<S: Sink>(
    segments: &[&Segment],
    sink: &mut S,
    keep: Option<&dyn KeepHalves>,
) -> Result<Summary> {
    let known: Vec<Vec<CommitKnown>> =
        segments.iter().map(|segment| known_of(segment)).collect::<Result<_>>()?;
    let numbering = Numbering {
        names: sorted(segments.iter().flat_map(|segment| segment.summary.names.iter().cloned())),
        users: sorted(segments.iter().flat_map(|segment| segment.summary.users.iter().copied())),
        known: sorted(known.iter().flatten().copied()),
    };
    let mut renumbered = Vec::with_capacity(segments.len());
    for (segment, known) in segments.iter().zip(&known) {
        let names = segment.summary.names.iter().map(|name| position(&numbering.names, name));
        let users = segment.summary.users.iter().map(|user| position(&numbering.users, user));
        let known = known.iter().map(|stamp| position(&numbering.known, stamp));
        renumbered.push(Renumbered {
            segment,
            vertices: Vec::with_capacity(segment.vertices() as usize),
            names: names.collect::<Result<_>>()?,
            users: users.collect::<Result<_>>()?,
            known: known.collect::<Result<_>>()?,
        });
    }
    let vertices = number_vertices(&mut renumbered)?;
    // A segment that holds only types has no stamps, and no base.
    let stamped = segments.iter().filter(|segment| segment.summary.most > 0);
    let base = stamped.map(|segment| segment.summary.base).min().unwrap_or(0);
    let mut writer = Writer::new(sink, base);
    let mut at = vec![0u32; segments.len()];
    let mut sources = Vec::with_capacity(segments.len());
    // Numbers ascend in every segment, so each segment has a single candidate for the next vertex.
    for number in 0..vertices {
        sources.clear();
        for (old, at) in renumbered.iter().zip(&mut at) {
            if old.vertices.get(*at as usize) == Some(&number) {
                sources.push((old, *at));
                *at += 1;
            }
        }
        write_vertex(&mut writer, &sources, keep)?;
    }
    let mut types: Vec<TypeRow> = Vec::new();
    for row in segments.iter().flat_map(|segment| &segment.types) {
        if !types.contains(row) {
            types.push(row.clone());
        }
    }
    let mut archives: Vec<ArchiveRow> = Vec::new();
    for row in segments.iter().flat_map(|segment| &segment.archives) {
        if !archives.contains(row) {
            archives.push(row.clone());
        }
    }
    let Numbering { names, users, known } = numbering;
    let declared = Declared { types: &types, archives: &archives };
    writer.finish(u64::from(vertices), names, users, &known, &declared)
}

/// Assigns each vertex its new number; returns how many there are.
fn number_vertices(all: &mut [Renumbered<'_>]) -> Result<u32> {
    // The heap holds the next place of each segment: the least one gets the next number.
    let mut heads: BinaryHeap<Reverse<(VertexPlace, usize)>> = BinaryHeap::new();
    for (i, old) in all.iter().enumerate() {
        if old.segment.vertices() > 0 {
            heads.push(Reverse((old.segment.place(0)?, i)));
        }
    }
    let (mut next, mut last): (u64, Option<VertexPlace>) = (0, None);
    while let Some(Reverse((place, i))) = heads.pop() {
        if last != Some(place) {
            (next, last) = (next + 1, Some(place));
        }
        let number = u32::try_from(next - 1).map_err(|_| Error::internal("a segment of 2^32 vertices"))?;
        let old = &mut all[i];
        old.vertices.push(number);
        let at = old.vertices.len() as u32;
        if at < old.segment.vertices() {
            let following = old.segment.place(at)?;
            if following <= place {
                // Numbers that do not follow the places would make far ends unsorted in the new segment.
                return Err(Error::corrupt("the places of a segment are out of order"));
            }
            heads.push(Reverse((following, i)));
        }
    }
    u32::try_from(next).map_err(|_| Error::internal("a segment of 2^32 vertices"))
}

impl Renumbered<'_> {
    fn edge(&self, version: EdgeVersion) -> Result<EdgeVersion> {
        let known = *self.known.get(version.known as usize).ok_or_else(outside)?;
        let user = *self.users.get(version.user as usize).ok_or_else(outside)?;
        Ok(EdgeVersion { known, user, ..version })
    }
}

/// The order of versions: by stamp (newest first), by user and, for the same version, the one known last.
type Order = (Reverse<u64>, u32, Reverse<u32>);

fn edge_order(version: &EdgeVersion) -> Order {
    (Reverse(version.stamp), version.user, Reverse(version.known))
}

/// Half of a relation: code and far end in the new segment, the version, and its row.
type NewHalf<'a> = (u32, u32, EdgeVersion, NewRow<'a>);

fn write_vertex<S: Sink>(
    writer: &mut Writer<'_, S>,
    sources: &[(&Renumbered<'_>, u32)],
    keep: Option<&dyn KeepHalves>,
) -> Result<()> {
    let Some((first, number)) = sources.first() else { return Ok(()) };
    let near = first.segment.place(*number)?;
    let keep = keep.filter(|keep| keep.leaves_out(near)).map(|keep| (keep, near));
    let mut bytes: Vec<(SectionBytes<'_>, SectionBytes<'_>)> = Vec::with_capacity(sources.len());
    for (old, number) in sources {
        bytes.push((old.segment.rows(*number)?, old.segment.adjacency(*number)?));
    }
    let name = first.segment.name_bytes(*number)?;
    let (kind, id) = read_name(&name)?;
    let kind = *first.names.get(kind as usize).ok_or_else(outside)?;
    let mut versions: Vec<VertexVersion> = Vec::new();
    for ((old, _), (rows, _)) in sources.iter().zip(&bytes) {
        for version in read_vertex(rows, old.segment.summary.base)?.0 {
            let known = *old.known.get(version.known as usize).ok_or_else(outside)?;
            let user = *old.users.get(version.user as usize).ok_or_else(outside)?;
            versions.push(VertexVersion { known, user, ..version });
        }
    }
    if sources.len() > 1 {
        let order = |v: &VertexVersion| (Reverse(v.stamp), v.user, Reverse(v.known));
        versions.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| content(b).cmp(&content(a))));
        versions.dedup_by(|b, a| (a.stamp, a.user) == (b.stamp, b.user));
    }
    writer.begin(near, (kind, id), &versions)?;
    let mut last = None;
    let mut write = |writer: &mut Writer<'_, S>, (code, far, version, row): NewHalf<'_>| {
        if last != Some(code) {
            last = Some(code);
            writer.group(code);
        }
        writer.version(far, version, row)
    };
    if let [(rows, adjacency)] = bytes.as_slice() {
        // Most vertices of a large segment are in it alone: nothing about them is sorted.
        each_half(first, rows, adjacency, keep, |half| write(writer, half))?;
        return writer.end();
    }
    let mut halves: Vec<NewHalf<'_>> = Vec::new();
    for ((old, _), (rows, adjacency)) in sources.iter().zip(&bytes) {
        each_half(old, rows, adjacency, keep, |half| {
            halves.push(half);
            Ok(())
        })?;
    }
    halves.sort_by(|a, b| {
        let key = |half: &NewHalf<'_>| (half.0, half.1, edge_order(&half.2));
        key(a).cmp(&key(b)).then_with(|| edge_content(b).cmp(&edge_content(a)))
    });
    halves.dedup_by(|b, a| (a.0, a.1, a.2.stamp, a.2.user) == (b.0, b.1, b.2.stamp, b.2.user));
    for half in halves {
        write(writer, half)?;
    }
    writer.end()
}

/// Passes on the halves that a segment has of a vertex, in its order, with the numbers of the new segment.
fn each_half<'a>(
    old: &Renumbered<'_>,
    rows: &'a [u8],
    adjacency: &[u8],
    keep: Option<(&dyn KeepHalves, VertexPlace)>,
    mut take: impl FnMut(NewHalf<'a>) -> Result<()>,
) -> Result<()> {
    let behind = relations_at(rows)? as u64;
    for group in groups(adjacency)? {
        let group = group?;
        let name = *old.names.get((group.code / 2) as usize).ok_or_else(outside)?;
        let code = name * 2 + (group.code & 1);
        group.each_version(old.segment.summary.base, |number, version, row| {
            // Only vertices that leave something out pay for looking up the places of far ends.
            if let Some((keep, near)) = keep
                && !keep.keeps(near, old.segment.place(number)?)
            {
                return Ok(());
            }
            let far = *old.vertices.get(number as usize).ok_or_else(outside)?;
            let from = behind.saturating_add(row);
            let to = from.saturating_add(u64::from(version.row));
            let row = match group.code & 1 == 1 && version.row == 0 {
                false => NewRow::Bytes(rows.get(from as usize..to as usize).ok_or_else(outside)?),
                true => NewRow::Elsewhere,
            };
            take((code, far, old.edge(version)?, row))
        })?;
    }
    Ok(())
}

/// Chooses between two versions that are otherwise equal: by any rule that does not depend on their order.
fn content(version: &VertexVersion) -> (bool, bool, Option<&[u8]>, &[u8], i64) {
    let fixed = version.fixed.as_ref().map(props_bytes);
    (version.deleted, !version.archived, fixed, props_bytes(&version.props), version.time)
}

/// The same for relations. Facts that both directions have come first, so that both make the same choice.
fn edge_content((_, _, version, row): &NewHalf<'_>) -> (bool, Option<u64>, bool, bool, Option<(i64, Props)>) {
    let row = match row {
        NewRow::Bytes(bytes) => read_row(bytes, version.stamp).ok(),
        _ => None,
    };
    (version.deleted, version.until, version.replaces, !version.archived, row)
}

/// Merges young segments in memory, so that each is more than twice as large as the next, or has reached the
/// size at which it is written to disk.
pub fn merge_young(segments: &mut Vec<Arc<Segment>>) -> Result<()> {
    while let [.., older, younger] = segments.as_slice() {
        let small = older.bytes + younger.bytes <= YOUNG;
        // Sizes then at least halve from one segment to the next, so few remain and each row is merged
        // rarely.
        if !small || !older.is_in_memory() || older.bytes > younger.bytes.saturating_mul(2) {
            return Ok(());
        }
        let mut sink = MemorySink::default();
        let summary = merge(&[&**older, &**younger], &mut sink)?;
        let merged = Segment::over(sink.storage(), summary)?;
        segments.truncate(segments.len() - 2);
        segments.push(Arc::new(merged));
    }
    Ok(())
}
