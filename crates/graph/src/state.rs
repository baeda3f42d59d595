//! All segments of one moment, read as one graph.
//!
//! A state never changes: its readers do not see later puts. Reads merge the parts of a vertex from several
//! segments.
//!
//! These rules decide which versions in a list (newest first) count at a moment:
//! * the newest put that is not later than the moment counts, unless its user has deleted it since;
//! * a deletion hides only puts of its own user: nobody erases another user's trail;
//! * deleting a vertex ends the relations at it that its user put before.

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{Archive, Props, VertexName, props_bytes};
use fieldstone_format::graph_segment::adjacency::{FarEnd, groups};
use fieldstone_format::graph_segment::rows::{read_row, read_vertex};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};

use crate::frame::Frame;
use crate::segment::{ArchiveRow, Segment, SegmentCursor};
use crate::vocabulary::{Direction, Vocabulary};

/// The end of time: everything is older.
pub const END: u64 = u64::MAX;

/// All segments of one moment.
#[derive(Debug, Clone, Default)]
pub struct GraphState {
    segments: Vec<Arc<Segment>>,
    /// Whether any vertex was ever deleted.
    deletes: bool,
    vocabulary: Arc<Vocabulary>,
    most: u64,
    /// Made at its first use by a walk.
    frame: OnceLock<Arc<Frame>>,
}

/// One version of a vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct VertexVersion {
    /// Its stamp.
    pub stamp: u64,
    /// The clock of the user who put it, nanoseconds since 1970.
    pub time: i64,
    /// The time when it became known.
    pub known: CommitKnown,
    /// The user who put it.
    pub user: u32,
    /// Whether it is a deletion.
    pub deleted: bool,
    /// Whether its properties were moved to another store.
    pub archived: bool,
    /// Static properties, if given.
    pub fixed: Option<Props>,
    /// The user's properties.
    pub props: Props,
}

/// One version of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeVersion {
    /// The time when it began.
    pub stamp: u64,
    /// The time when it ended, if given.
    pub until: Option<u64>,
    /// The time when it became known.
    pub known: CommitKnown,
    /// The user who put it.
    pub user: u32,
    /// Whether it is a deletion.
    pub deleted: bool,
    /// Whether it replaces the earlier content of its target.
    pub replaces: bool,
    /// Whether its properties were moved to another store.
    pub archived: bool,
    /// The place of its row: the segment, and the position after the vertex's own rows.
    row: RowPlace,
}

impl EdgeVersion {
    /// The time when it ended; the time when it began if none is given.
    pub fn end(&self) -> u64 {
        self.until.unwrap_or(self.stamp).max(self.stamp)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RowPlace {
    segment: u32,
    /// The numbers, in that segment, of the vertex that has the version, and of the far end.
    vertex: u32,
    far: u32,
    from: u64,
    len: u32,
}

/// A relation, seen from one of its ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Its type, and the end from which it is seen.
    pub direction: Direction,
    /// The vertex at the far end.
    pub far: VertexPlace,
    /// Its versions, newest first.
    pub versions: Vec<EdgeVersion>,
}

/// All versions, newest first, that were put until a moment and that their own users have not deleted since.
pub fn standing<V>(versions: &[V], at: u64, facts: impl Fn(&V) -> (u64, u32, bool)) -> Vec<&V> {
    let mut deleters: Vec<u32> = Vec::new();
    let mut standing = Vec::new();
    for version in versions {
        let (stamp, user, deleted) = facts(version);
        if stamp > at {
            continue;
        }
        if deleted {
            deleters.push(user);
        } else if !deleters.contains(&user)
            && (deleters.is_empty() || !planted::is(Planted::DeletionHidesOthers))
        {
            standing.push(version);
        }
    }
    standing
}

impl EdgeVersion {
    /// The facts for [`standing`].
    pub fn facts(&self) -> (u64, u32, bool) {
        (self.stamp, self.user, self.deleted)
    }
}

impl VertexVersion {
    /// The facts for [`standing`].
    pub fn facts(&self) -> (u64, u32, bool) {
        (self.stamp, self.user, self.deleted)
    }
}

impl GraphState {
    /// The state of these segments.
    pub fn of(segments: Vec<Arc<Segment>>) -> GraphState {
        let deletes = segments.iter().any(|segment| !segment.tombstones.is_empty());
        let vocabulary = Vocabulary::of(segments.iter().flat_map(|segment| &segment.types));
        let most = segments.iter().map(|segment| segment.summary.most).max().unwrap_or(0);
        GraphState { segments, deletes, vocabulary: Arc::new(vocabulary), most, frame: OnceLock::new() }
    }

    /// The state with further segments.
    pub fn with(&self, more: impl IntoIterator<Item = Arc<Segment>>) -> GraphState {
        GraphState::of(self.segments.iter().cloned().chain(more).collect())
    }

    /// The segments, the older first.
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// One numbering for the vertices of all segments.
    pub(crate) fn frame(&self) -> Result<Arc<Frame>> {
        if let Some(known) = self.frame.get() {
            return Ok(known.clone());
        }
        let frame = Arc::new(Frame::of(&self.segments)?);
        Ok(self.frame.get_or_init(|| frame).clone())
    }

    /// The types of vertices and relations.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Whether any vertex or relation has a type of this name.
    pub fn uses(&self, kind: &str) -> bool {
        self.segments.iter().any(|segment| segment.names.iter().any(|name| **name == *kind))
    }

    /// The stores to which content was moved, for each commit.
    pub fn archives(&self) -> impl Iterator<Item = &ArchiveRow> {
        self.segments.iter().flat_map(|segment| &segment.archives)
    }

    /// The store to which the properties of a version of a relation were moved, if they were.
    pub fn archived_in(&self, version: &EdgeVersion) -> Option<Arc<str>> {
        version.archived.then(|| self.archive_of(version.known, version.user).url)
    }

    /// The store to which the properties of a version of a vertex were moved, if they were.
    pub fn vertex_archived_in(&self, version: &VertexVersion) -> Option<Arc<str>> {
        version.archived.then(|| self.archive_of(version.known, version.user).url)
    }

    /// The store that a user's commit names for its marked versions.
    pub fn archive_of(&self, known: CommitKnown, user: u32) -> Archive {
        // A commit names one store; if two are known for it, every reader takes the same.
        let of_commit = self.archives().filter(|row| (row.known, row.user) == (known, user));
        of_commit.map(|row| &row.archive).min().cloned().unwrap_or(Archive { before: 0, url: "".into() })
    }

    /// Its greatest stamp.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Type and id of a vertex; NotFound if nothing names it.
    pub fn name(&self, place: VertexPlace) -> Result<VertexName> {
        for segment in &self.segments {
            if let Some(number) = segment.find(place)? {
                return segment.name(number);
            }
        }
        Err(Error::not_found("nothing names this vertex"))
    }

    /// Whether a version of a vertex, or a relation, names it.
    pub fn names(&self, place: VertexPlace) -> Result<bool> {
        for segment in &self.segments {
            if segment.find(place)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All versions of a vertex, newest first.
    pub fn vertex_versions(&self, place: VertexPlace) -> Result<Vec<VertexVersion>> {
        let mut all = Vec::new();
        for segment in &self.segments {
            let Some(number) = segment.find(place)? else { continue };
            let (versions, _) = read_vertex(&segment.rows(number)?, segment.summary.base)?;
            for version in versions {
                all.push(VertexVersion {
                    stamp: version.stamp,
                    time: version.time,
                    known: segment.known(version.known)?,
                    user: segment.user(version.user)?,
                    deleted: version.deleted,
                    archived: version.archived,
                    fixed: version.fixed,
                    props: version.props,
                });
            }
        }
        let content = |v: &VertexVersion| {
            let fixed = v.fixed.as_ref().map(|props| props_bytes(props).to_vec());
            Reverse((v.deleted, !v.archived, fixed, props_bytes(&v.props).to_vec(), v.time))
        };
        let order = |v: &VertexVersion| (Reverse(v.stamp), v.user, Reverse(v.known));
        all.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| content(a).cmp(&content(b))));
        all.dedup_by_key(|version| (version.stamp, version.user));
        Ok(all)
    }

    /// Relations of a vertex that `wanted` accepts, each with all its versions, in the order of their types
    /// (a type before its reverse) and far ends.
    pub fn edges(&self, place: VertexPlace, wanted: &dyn Fn(&str, bool) -> bool) -> Result<Vec<Edge>> {
        let mut all: Vec<Edge> = Vec::new();
        let mut sources = 0;
        for (i, segment) in self.segments.iter().enumerate() {
            let Some(number) = segment.find(place)? else { continue };
            sources += 1;
            let adjacency = segment.adjacency(number)?;
            let mut cursor = SegmentCursor::default();
            for group in groups(&adjacency)? {
                let group = group?;
                let (kind, reverse) = (segment.kind(group.code / 2)?, group.code & 1 == 1);
                if !wanted(kind, reverse) {
                    continue;
                }
                let direction = Direction { kind: kind.clone(), reverse };
                for end in group.far_ends(segment.summary.base) {
                    let (end, row) = end?;
                    let versions = edge_versions(segment, (i, number), &end, row, &mut cursor)?;
                    let far = segment.place_on(end.number, &mut cursor)?;
                    all.push(Edge { direction: direction.clone(), far, versions });
                }
            }
        }
        // A single segment is merged and sorted already.
        if sources > 1 { self.merge_edges(all) } else { Ok(all) }
    }

    /// The version of a relation at a vertex that is valid at a moment: the newest that counts and has not
    /// ended.
    pub fn current<'a>(
        &self,
        place: VertexPlace,
        edge: &'a Edge,
        at: u64,
    ) -> Result<Option<&'a EdgeVersion>> {
        // The common case: a single version, and no vertex was ever deleted.
        if let ([only], false) = (&edge.versions[..], self.deletes) {
            return Ok((only.stamp <= at && !only.deleted).then_some(only));
        }
        for version in standing(&edge.versions, at, EdgeVersion::facts) {
            if self.ended(version, [place, edge.far], at)?.is_none() {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// The time when a version of a relation ended because one of its ends was deleted, not after `at`.
    pub fn ended(&self, version: &EdgeVersion, ends: [VertexPlace; 2], at: u64) -> Result<Option<u64>> {
        if !self.deletes {
            return Ok(None);
        }
        let [a, b] = [self.deleted(ends[0], version, at)?, self.deleted(ends[1], version, at)?];
        Ok([a, b].into_iter().flatten().min())
    }

    /// The first deletion of a vertex after a version of a relation, by the user who put that version.
    fn deleted(&self, place: VertexPlace, version: &EdgeVersion, at: u64) -> Result<Option<u64>> {
        let since = |stamp: u64, user: u32| (version.stamp..=at).contains(&stamp) && user == version.user;
        let of_segment = |segment: &Arc<Segment>| {
            let from = segment.tombstones.partition_point(|tombstone| tombstone.place < place);
            let own = segment.tombstones[from..].iter().take_while(|tombstone| tombstone.place == place);
            own.filter(|tombstone| since(tombstone.stamp, tombstone.user)).map(|t| t.stamp).min()
        };
        let first = self.segments.iter().filter_map(of_segment).min();
        // Without deletions, or with a single segment, the tombstones alone are exact.
        if first.is_none() || self.segments.len() == 1 {
            return Ok(first);
        }
        // One segment may have a deletion, and another a put with the same stamp that became known later.
        let versions = self.vertex_versions(place)?;
        let deletions = versions.iter().filter(|known| known.deleted && since(known.stamp, known.user));
        Ok(deletions.map(|known| known.stamp).min())
    }

    /// Merges the relations of one vertex from several segments.
    fn merge_edges(&self, mut all: Vec<Edge>) -> Result<Vec<Edge>> {
        all.sort_by(|a, b| (&a.direction, a.far).cmp(&(&b.direction, b.far)));
        let mut merged: Vec<Edge> = Vec::with_capacity(all.len());
        for edge in all {
            match merged.last_mut().filter(|last| (&last.direction, last.far) == (&edge.direction, edge.far))
            {
                Some(last) => last.versions.extend(edge.versions),
                None => merged.push(edge),
            }
        }
        let mut reader = self.reader();
        for edge in merged.iter_mut().filter(|edge| edge.versions.len() > 1) {
            let order = |v: &EdgeVersion| {
                let content = Reverse((v.deleted, v.until, v.replaces, !v.archived));
                (Reverse(v.stamp), v.user, Reverse(v.known), content)
            };
            edge.versions.sort_by_key(order);
            let mut kept: Vec<EdgeVersion> = Vec::with_capacity(edge.versions.len());
            for version in std::mem::take(&mut edge.versions) {
                match kept.last_mut() {
                    // If all else is equal, the row decides. At a target without a row, the source's row
                    // does.
                    Some(last) if order(last) == order(&version) => {
                        let rows = last.row.len > 0 && version.row.len > 0;
                        let less = last.row.len > 0 && version.row.len == 0;
                        if less || (rows && reader.own_row(&version)? > reader.own_row(last)?) {
                            *last = version;
                        }
                    }
                    Some(last) if (last.stamp, last.user) == (version.stamp, version.user) => {}
                    _ => kept.push(version),
                }
            }
            edge.versions = kept;
        }
        Ok(merged)
    }

    /// Reads rows and far ends of relations.
    pub fn reader(&self) -> RelationReader<'_> {
        RelationReader { state: self, cursors: Vec::new() }
    }

    /// A relation, seen from its source; without versions if it does not exist.
    pub fn relation(&self, source: VertexPlace, kind: &str, target: VertexPlace) -> Result<Edge> {
        let versions = self.forward(source, kind, target)?;
        Ok(Edge { direction: Direction { kind: kind.into(), reverse: false }, far: target, versions })
    }

    /// The versions of a relation at its source, newest first.
    fn forward(&self, source: VertexPlace, kind: &str, target: VertexPlace) -> Result<Vec<EdgeVersion>> {
        let direction = Direction { kind: kind.into(), reverse: false };
        let mut found: Vec<Edge> = Vec::new();
        for (i, segment) in self.segments.iter().enumerate() {
            let (Some(near), Some(far)) = (segment.find(source)?, segment.find(target)?) else { continue };
            let adjacency = segment.adjacency(near)?;
            for group in groups(&adjacency)? {
                let group = group?;
                if group.code & 1 == 1 || **segment.kind(group.code / 2)? != *kind {
                    continue;
                }
                let Some((end, row)) = group.find(far, segment.summary.base)? else { continue };
                let versions = edge_versions(segment, (i, near), &end, row, &mut SegmentCursor::default())?;
                found.push(Edge { direction: direction.clone(), far: target, versions });
            }
        }
        let edge = self.merge_edges(found)?.into_iter().next();
        Ok(edge.map(|edge| edge.versions).unwrap_or_default())
    }
}

/// Reads rows and far ends of a state's relations, one after another.
#[derive(Debug)]
pub struct RelationReader<'a> {
    state: &'a GraphState,
    cursors: Vec<SegmentCursor>,
}

impl<'a> RelationReader<'a> {
    /// The state that it reads.
    pub fn state(&self) -> &'a GraphState {
        self.state
    }

    fn on(&mut self, segment: u32) -> Result<(&Segment, &mut SegmentCursor)> {
        let number = segment as usize;
        let segment = self.state.segments.get(number).ok_or_else(torn)?;
        if self.cursors.len() <= number {
            self.cursors.resize_with(number + 1, SegmentCursor::default);
        }
        Ok((segment, &mut self.cursors[number]))
    }

    /// Time and properties of a version of a relation that one of the ends has.
    pub fn row(&mut self, place: VertexPlace, edge: &Edge, version: &EdgeVersion) -> Result<(i64, Props)> {
        // In a slot of a partitioned index, both ends have the row.
        if !edge.direction.reverse || version.row.len > 0 {
            return self.own_row(version);
        }
        let forward = self.state.forward(edge.far, &edge.direction.kind, place)?;
        self.row_among(&forward, version)
    }

    /// Times and properties of versions of one relation, in their order.
    pub fn rows<'v>(
        &mut self,
        place: VertexPlace,
        edge: &Edge,
        versions: impl IntoIterator<Item = &'v EdgeVersion> + Clone,
    ) -> Result<Vec<(i64, Props)>> {
        let mut all = versions.clone().into_iter();
        if !edge.direction.reverse || all.all(|version| version.row.len > 0) {
            return versions.into_iter().map(|version| self.own_row(version)).collect();
        }
        let forward = self.state.forward(edge.far, &edge.direction.kind, place)?;
        versions.into_iter().map(|version| self.row_among(&forward, version)).collect()
    }

    /// The row of a version, given the source's versions `forward`.
    fn row_among(&mut self, forward: &[EdgeVersion], version: &EdgeVersion) -> Result<(i64, Props)> {
        let order = |v: &EdgeVersion| (Reverse(v.stamp), v.user);
        let at = forward.binary_search_by_key(&order(version), order).map_err(|_| torn())?;
        self.own_row(&forward[at])
    }

    /// Time and properties of a version of a relation that its source has.
    pub fn own_row(&mut self, version: &EdgeVersion) -> Result<(i64, Props)> {
        let RowPlace { segment, vertex, from, len, .. } = version.row;
        let (segment, cursor) = self.on(segment)?;
        read_row(&segment.row_on(vertex, (from, len), cursor)?, version.stamp)
    }

    /// Type and id of the far end of a version of a relation.
    pub fn far_name(&mut self, version: &EdgeVersion) -> Result<VertexName> {
        let (segment, cursor) = self.on(version.row.segment)?;
        segment.name_on(version.row.far, cursor)
    }
}

/// The versions of a far end of the i-th segment; `row`: the position of the first one's row.
fn edge_versions(
    segment: &Segment,
    (i, vertex): (usize, u32),
    end: &FarEnd,
    row: u64,
    cursor: &mut SegmentCursor,
) -> Result<Vec<EdgeVersion>> {
    let mut from = row;
    let mut versions = Vec::with_capacity(end.versions.len());
    for version in &end.versions {
        versions.push(EdgeVersion {
            stamp: version.stamp,
            until: version.until,
            known: segment.known_on(version.known, cursor)?,
            user: segment.user(version.user)?,
            deleted: version.deleted,
            replaces: version.replaces,
            archived: version.archived,
            row: RowPlace { segment: i as u32, vertex, far: end.number, from, len: version.row },
        });
        from += u64::from(version.row);
    }
    Ok(versions)
}

fn torn() -> Error {
    Error::corrupt("a relation of the graph's index exists at only one of its ends")
        .with_hint("rebuild it: fieldstone rebuild STORE")
}
