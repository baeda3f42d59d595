//! Rows from the logs until a segment is built from them: each name stored once, relations as numbers.
//!
//! Only the numbers of a relation are copied: its properties stay in the body of their record.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{
    Archive, Props, Record, RelationColumns, RelationsBody, VertexName, VertexRow,
};
use fieldstone_format::graph_message::rows::{FOR_SOURCE, FOR_TARGET, PlacedRows, RowsCommit};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};
use fieldstone_format::log::SideRecord;

use super::{ArchiveRow, TypeRow};

/// A commit that contains rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitOrder {
    /// The time when it became known.
    pub known: CommitKnown,
    /// The user of its log.
    pub user: u32,
}

/// Rows from the logs that are in no segment yet, each with the number of its commit.
#[derive(Debug, Default)]
pub struct Rows {
    /// The commits; the stubs of a commit form an entry of their own.
    pub(super) commits: Vec<RowsCommit>,
    /// The first entry of the last commit.
    last: usize,
    pub(super) names: RowNames,
    pub(super) vertices: Vec<VertexLine>,
    pub(super) relations: Vec<RelationLine>,
    pub(super) types: Vec<TypeRow>,
    /// Whether relations have rows at both ends: a slot that has one end may not have the other.
    pub(super) at_both_ends: bool,
    pub(super) archives: Vec<ArchiveRow>,
    /// Bodies of records, which hold the properties of relations.
    bodies: Vec<Box<[u8]>>,
}

/// A version of a vertex.
#[derive(Debug)]
pub(super) struct VertexLine {
    pub vertex: u32,
    pub commit: u32,
    pub archived: bool,
    pub row: VertexRow,
}

/// A version of a relation; type and ends are numbers of [`RowNames`].
#[derive(Debug, Clone, Copy)]
pub(super) struct RelationLine {
    pub kind: u32,
    pub source: u32,
    pub target: u32,
    pub commit: u32,
    pub stamp: u64,
    pub time: i64,
    pub until: Option<u64>,
    pub deleted: bool,
    pub replaces: bool,
    /// The ends for which it is here.
    pub ends: u8,
    pub archived: bool,
    body: u32,
    from: u32,
    len: u32,
}

impl RelationLine {
    /// Reduces it to the content of a stub.
    fn reduce_to_stub(&mut self) -> Result<()> {
        if self.deleted {
            return Err(deletion_archived());
        }
        (self.archived, self.from, self.len) = (true, 0, 0);
        Ok(())
    }
}

fn deletion_archived() -> Error {
    Error::corrupt("a deletion is marked as archived")
}

impl Rows {
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
            && self.relations.is_empty()
            && self.types.is_empty()
            && self.archives.is_empty()
    }

    /// The number of versions of relations.
    pub fn relations(&self) -> usize {
        self.relations.len()
    }

    /// Begins another commit, to which all further rows belong.
    pub fn begin(&mut self, CommitOrder { known, user }: CommitOrder) {
        self.last = self.commits.len();
        self.commits.push(RowsCommit { known, user, archive: None });
    }

    /// The commit with this number.
    pub(super) fn commit(&self, number: u32) -> CommitOrder {
        let RowsCommit { known, user, .. } = self.commits[number as usize];
        CommitOrder { known, user }
    }

    /// The number of the last commit, or of its stubs.
    fn last(&mut self, archive: Option<Archive>) -> u32 {
        let own = self.commits[self.last..].iter().position(|commit| commit.archive == archive);
        let number = own.map_or(self.commits.len(), |i| self.last + i);
        if own.is_none() {
            let CommitOrder { known, user } = self.commit(self.last as u32);
            self.commits.push(RowsCommit { known, user, archive });
        }
        number as u32
    }

    /// Adds a side record: all of it, or nothing if it cannot be read.
    pub fn add(&mut self, source: CommitOrder, side: &SideRecord) -> Result<()> {
        let last = self.commits.get(self.last).map(|commit| (commit.known, commit.user));
        if last != Some((source.known, source.user)) {
            self.begin(source);
        }
        if let Some(RelationsBody { body, archive }) = Record::relations_body(side)? {
            let commit = self.last(archive.clone());
            self.add_relations(commit, body, archive.is_some())?;
            self.add_archive(source, archive);
            return Ok(());
        }
        match Record::decode(side)? {
            Record::Vertices(rows) => {
                let commit = self.last(None);
                rows.into_iter().try_for_each(|row| self.add_vertex(commit, row))?;
            }
            Record::ArchivedVertices(archive, rows) => {
                let commit = self.last(Some(archive.clone()));
                rows.into_iter().try_for_each(|row| self.add_vertex(commit, row))?;
                self.add_archive(source, Some(archive));
            }
            Record::Types(types) => self.types.extend(types.into_iter().map(|declared| TypeRow {
                known: source.known,
                user: source.user,
                declared,
            })),
            // Its body was added above.
            Record::Relations(_) | Record::ArchivedRelations(..) => {}
        }
        Ok(())
    }

    /// Adds rows that are placed for some of their ends.
    pub fn add_placed(&mut self, placed: &PlacedRows) -> Result<()> {
        self.at_both_ends = true;
        let first = self.commits.len() as u32;
        for commit in &placed.commits {
            let RowsCommit { known, user, .. } = *commit;
            self.add_archive(CommitOrder { known, user }, commit.archive.clone());
            self.commits.push(commit.clone());
        }
        self.last = self.commits.len();
        let commit = |index: u32| {
            let there = (index as usize) < placed.commits.len();
            if there { Ok(first + index) } else { Err(Error::corrupt("a row names a missing commit")) }
        };
        for (row, index) in placed.vertex_rows()?.into_iter().zip(&placed.of_vertices) {
            self.add_vertex(commit(*index)?, row)?;
        }
        for (index, types) in placed.declared()? {
            let CommitOrder { known, user } = self.commit(commit(index)?);
            self.types.extend(types.into_iter().map(|declared| TypeRow { known, user, declared }));
        }
        let line = self.relations.len();
        if !placed.of_relations.is_empty() {
            self.add_relations(first, Cow::Borrowed(&placed.relations), false)?;
        }
        let new = &mut self.relations[line..];
        if new.len() != placed.of_relations.len() {
            return Err(Error::corrupt("the numbers of relations and of their commits differ"));
        }
        for (line, of) in new.iter_mut().zip(&placed.of_relations) {
            (line.commit, line.ends) = (commit(of >> 2)?, (of & 3) as u8);
            if self.commits[line.commit as usize].archive.is_some() {
                line.reduce_to_stub()?;
            }
        }
        Ok(())
    }

    /// For each relation from the first-th on, keeps only the ends for which `stands` returns true. `stands`
    /// gets the number of the relation counted from there, the end, and the places of the near and the far
    /// end.
    pub fn retain_ends(
        &mut self,
        first: usize,
        mut stands: impl FnMut(usize, u8, VertexPlace, VertexPlace) -> Result<bool>,
    ) -> Result<()> {
        for (i, line) in self.relations[first..].iter_mut().enumerate() {
            let [source, target] =
                [line.source, line.target].map(|vertex| self.names.vertices[vertex as usize].place);
            for (end, near, far) in [(FOR_SOURCE, source, target), (FOR_TARGET, target, source)] {
                if line.ends & end != 0 && !stands(i, end, near, far)? {
                    line.ends &= !end;
                }
            }
        }
        self.relations.retain(|line| line.ends != 0);
        Ok(())
    }

    fn add_archive(&mut self, CommitOrder { known, user }: CommitOrder, archive: Option<Archive>) {
        let row = archive.map(|archive| ArchiveRow { known, user, archive });
        self.archives.extend(row.filter(|row| !self.archives.contains(row)));
    }

    fn add_vertex(&mut self, commit: u32, mut row: VertexRow) -> Result<()> {
        let archived = self.commits[commit as usize].archive.is_some();
        if archived {
            if row.version.deleted {
                return Err(deletion_archived());
            }
            // A stub records that there were static properties, but not which.
            row.fixed = row.fixed.map(|_| Props::default());
            row.props = Props::default();
        }
        let VertexName { kind, id } = &row.vertex;
        let name = [(&&**kind, &&**id)];
        let mut vertex = 0;
        self.names.vertices(name.into_iter(), |_, number| vertex = number);
        self.vertices.push(VertexLine { vertex, commit, archived, row });
        Ok(())
    }

    fn add_relations(&mut self, commit: u32, body: Cow<'_, [u8]>, archived: bool) -> Result<()> {
        if u32::try_from(body.len()).is_err() {
            return Err(Error::corrupt("a record of the graph of more than 4 GiB"));
        }
        let columns = RelationColumns::of_body(&body)?;
        if archived && columns.versions.iter().any(|version| version.deleted) {
            return Err(deletion_archived());
        }
        let (number, first) = (self.bodies.len() as u32, self.relations.len());
        self.relations.reserve(columns.len());
        for i in 0..columns.len() {
            let (version, props) = (columns.versions[i], columns.props[i]);
            // An empty slice need not point into the body.
            let from = if props.is_empty() { 0 } else { props.as_ptr() as usize - body.as_ptr() as usize };
            self.relations.push(RelationLine {
                kind: self.names.kind(columns.kinds[i]),
                source: 0,
                target: 0,
                commit,
                stamp: version.stamp,
                time: version.time,
                until: columns.until[i],
                deleted: version.deleted,
                replaces: columns.replaces[i],
                ends: FOR_SOURCE | FOR_TARGET,
                archived: false,
                body: number,
                from: from as u32,
                len: props.len() as u32,
            });
        }
        let new = &mut self.relations[first..];
        if archived {
            new.iter_mut().try_for_each(RelationLine::reduce_to_stub)?;
        }
        let sources = columns.source_kinds.iter().zip(&columns.source_ids);
        self.names.vertices(sources, |i, number| new[i].source = number);
        let targets = columns.target_kinds.iter().zip(&columns.target_ids);
        self.names.vertices(targets, |i, number| new[i].target = number);
        self.bodies.push(body.into());
        Ok(())
    }

    /// The bytes of a relation's properties.
    pub(super) fn props(&self, line: &RelationLine) -> &[u8] {
        let from = line.from as usize;
        &self.bodies[line.body as usize][from..from + line.len as usize]
    }
}

/// A vertex that rows name.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedVertex {
    pub place: VertexPlace,
    pub kind: u32,
    from: usize,
    len: usize,
}

/// Vertices that are looked up together: each lookup waits for memory, and together they wait once.
const TOGETHER: usize = 128;

/// Distinct names of types and vertices, numbered in order of appearance.
#[derive(Debug, Default)]
pub(super) struct RowNames {
    pub kinds: Vec<Arc<str>>,
    by_kind: HashMap<Arc<str>, u32>,
    /// The type of the last lookup: rows of one type are adjacent.
    last: u32,
    pub vertices: Vec<NamedVertex>,
    /// Vertices by place: a hash table whose slot is chosen by the highest bits of the place, or a later one.
    /// See [`PlaceSlot`].
    slots: Vec<PlaceSlot>,
    ids: String,
    /// The first two vertices found with the same place.
    clash: Option<String>,
}

/// The lowest bits of a place, and the number of the vertex plus one; 0 if the slot is empty.
#[derive(Debug, Clone, Copy, Default)]
struct PlaceSlot {
    low: u32,
    number: u32,
}

impl RowNames {
    fn kind(&mut self, kind: &str) -> u32 {
        if self.kinds.get(self.last as usize).is_some_and(|last| **last == *kind) {
            return self.last;
        }
        self.last = match self.by_kind.get(kind) {
            Some(number) => *number,
            None => {
                let (shared, number): (Arc<str>, _) = (kind.into(), self.kinds.len() as u32);
                self.kinds.push(shared.clone());
                self.by_kind.insert(shared, number);
                number
            }
        };
        self.last
    }

    /// Passes the numbers of vertices to `take`, each with the number of vertices before it.
    fn vertices<'a>(
        &mut self,
        mut names: impl Iterator<Item = (&'a &'a str, &'a &'a str)>,
        mut take: impl FnMut(usize, u32),
    ) {
        let mut mentions = [(VertexPlace(0), 0u32, ""); TOGETHER];
        let mut numbers = [0u32; TOGETHER];
        let mut begin = 0;
        loop {
            let mut n = 0;
            for (mention, (kind, id)) in mentions.iter_mut().zip(&mut names) {
                *mention = (VertexPlace::named(kind, id), self.kind(kind), id);
                n += 1;
            }
            self.make_room(n);
            // Each pass touches one place in memory for every mention, so that the waits of a group overlap.
            for (number, (place, ..)) in numbers.iter_mut().zip(&mentions[..n]) {
                *number = self.slots[self.slot(*place)].number;
            }
            for (i, (place, kind, id)) in mentions[..n].iter().enumerate() {
                // The slot may belong to another place with the same lowest bits.
                let known = match numbers[i] {
                    0 => None,
                    number => self.vertices.get(number as usize - 1).filter(|known| known.place == *place),
                };
                numbers[i] = match known {
                    Some(_) => numbers[i] - 1,
                    None => self.vertex(*place, *kind, id),
                };
            }
            for (i, (_, kind, id)) in mentions[..n].iter().enumerate() {
                let known = &self.vertices[numbers[i] as usize];
                // Two names with one place cannot be distinguished later: remember the first pair for
                // `check`.
                if (known.kind, self.id(known)) != (*kind, *id) && self.clash.is_none() {
                    let name = |kind: u32, id: &str| format!("{}:{id}", self.kinds[kind as usize]);
                    self.clash =
                        Some(format!("{} and {}", name(known.kind, self.id(known)), name(*kind, id)));
                }
                take(begin + i, numbers[i]);
            }
            begin += n;
            if n < TOGETHER {
                return;
            }
        }
    }

    /// The slot for a place: the first one with its lowest bits, or the empty one after these.
    fn slot(&self, place: VertexPlace) -> usize {
        let most = self.slots.len() - 1;
        let mut at = (place.0 >> 96) as usize & most;
        while self.slots[at].number != 0 && self.slots[at].low != place.0 as u32 {
            at = (at + 1) & most;
        }
        at
    }

    /// The number of a vertex, which may be new.
    fn vertex(&mut self, place: VertexPlace, kind: u32, id: &str) -> u32 {
        let most = self.slots.len() - 1;
        let mut at = self.slot(place);
        while let Some(number) = self.slots[at].number.checked_sub(1) {
            if self.vertices[number as usize].place == place {
                return number;
            }
            at = (at + 1) & most;
        }
        let number = self.vertices.len() as u32;
        self.vertices.push(NamedVertex { place, kind, from: self.ids.len(), len: id.len() });
        self.ids.push_str(id);
        self.slots[at] = PlaceSlot { low: place.0 as u32, number: number + 1 };
        number
    }

    /// Makes room for this many more vertices: less than half of the slots are used.
    fn make_room(&mut self, more: usize) {
        // Twice the least size, so that growing is rare.
        let least = (2 * (self.vertices.len() + more) + 1).next_power_of_two();
        if least <= self.slots.len() {
            return;
        }
        let most = 2 * least - 1;
        self.slots = vec![PlaceSlot::default(); most + 1];
        for (number, vertex) in (1..).zip(&self.vertices) {
            let place = vertex.place.0;
            let mut at = (place >> 96) as usize & most;
            while self.slots[at].number != 0 {
                at = (at + 1) & most;
            }
            self.slots[at] = PlaceSlot { low: place as u32, number };
        }
    }

    /// The id of a vertex.
    pub fn id(&self, vertex: &NamedVertex) -> &str {
        &self.ids[vertex.from..vertex.from + vertex.len]
    }

    /// Fails if two vertices have the same place, or there are too many to number.
    pub fn check(&self) -> Result<()> {
        if let Some(clash) = &self.clash {
            return Err(Error::internal(format!("{clash} have the same place")));
        }
        match u32::try_from(self.vertices.len()) {
            Ok(u32::MAX) | Err(_) => Err(Error::internal("a segment of more than 2^32 vertices")),
            Ok(_) => Ok(()),
        }
    }
}
