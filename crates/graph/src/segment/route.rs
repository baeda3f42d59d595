//! Distributes rows to slots.
//!
//! A version of a vertex goes to its home, and a deletion to all slots, because it may end relations
//! anywhere. A relation goes to the slot of each of its ends, once if that is the same slot. Declared types
//! go to the first slot.

use std::collections::HashMap;

use fieldstone_format::graph::{Props, ROWS_MAX, RelationParts, Version, props_bytes};
use fieldstone_format::graph_message::rows::{FOR_SOURCE, FOR_TARGET, PlacedRows, RowsCommit};
use fieldstone_format::graph_segment::VertexPlace;

use super::rows::{RelationLine, Rows, VertexLine};

/// Approximate size in bytes of a batch: the content of one message.
const BATCH_BYTES: usize = 4 << 20;

/// Vertex, stamp and commit of a row.
fn row_key(line: &VertexLine) -> (u32, u64, u32) {
    (line.vertex, line.row.version.stamp, line.commit)
}

/// The rows that go to one slot.
#[derive(Debug, Default)]
struct Picked {
    vertices: Vec<u32>,
    /// Line, and the ends for which it goes there.
    relations: Vec<(u32, u8)>,
    types: bool,
}

impl Rows {
    /// The rows for each slot, in batches. `home`: the home of a vertex; `slot_of`: the slot of a vertex's
    /// relation to another.
    pub fn routed(
        &self,
        slots: usize,
        home: impl Fn(VertexPlace) -> usize,
        mut slot_of: impl FnMut(VertexPlace, VertexPlace) -> usize,
    ) -> Vec<Vec<PlacedRows>> {
        let mut picked: Vec<Picked> = (0..slots).map(|_| Picked::default()).collect();
        let place = |vertex: u32| self.names.vertices[vertex as usize].place;
        let last = self.last_rows();
        for (i, line) in (0..).zip(&self.vertices) {
            if last.get(&row_key(line)).is_some_and(|last| *last != i) {
                continue;
            }
            match line.row.version.deleted {
                true => picked.iter_mut().for_each(|slot| slot.vertices.push(i)),
                false => picked[home(place(line.vertex))].vertices.push(i),
            }
        }
        for (i, line) in (0..).zip(&self.relations) {
            let (source, target) = (place(line.source), place(line.target));
            let (a, b) = (slot_of(source, target), slot_of(target, source));
            if a == b {
                picked[a].relations.push((i, FOR_SOURCE | FOR_TARGET));
            } else {
                picked[a].relations.push((i, FOR_SOURCE));
                picked[b].relations.push((i, FOR_TARGET));
            }
        }
        if let Some(first) = picked.first_mut() {
            first.types = !self.types.is_empty();
        }
        picked.iter().map(|picked| self.batches(picked)).collect()
    }

    /// The last row of each vertex version that a commit deletes and perhaps also puts: this row counts, even
    /// in a slot that has only the deletion.
    fn last_rows(&self) -> HashMap<(u32, u64, u32), u32> {
        let deleted = self.vertices.iter().filter(|line| line.row.version.deleted);
        let mut last: HashMap<_, u32> = deleted.map(|line| (row_key(line), 0)).collect();
        if last.is_empty() {
            return last;
        }
        for (i, line) in (0..).zip(&self.vertices) {
            if let Some(known) = last.get_mut(&row_key(line)) {
                *known = i;
            }
        }
        last
    }

    fn batches(&self, picked: &Picked) -> Vec<PlacedRows> {
        let mut batches = Vec::new();
        for vertices in picked.vertices.chunks(ROWS_MAX) {
            let mut commits = Commits::of(self);
            let lines = || vertices.iter().map(|line| &self.vertices[*line as usize]);
            let of = lines().map(|line| commits.number(line.commit)).collect();
            let mut batch = commits.batch();
            batch.set_vertices(lines().map(|line| line.row.clone()).collect(), of);
            batches.push(batch);
        }
        let line = |pick: &(u32, u8)| &self.relations[pick.0 as usize];
        let weight = |pick: &(u32, u8)| self.props(line(pick)).len() + 64;
        let mut relations = picked.relations.clone();
        if relations.len() > ROWS_MAX || relations.iter().map(weight).sum::<usize>() > BATCH_BYTES {
            // Rows of one relation stay together: if two are the same version, the later one counts.
            relations.sort_by_key(|pick| (line(pick).source, line(pick).target));
        }
        let (mut begin, mut bytes) = (0, 0);
        for (i, pick) in relations.iter().enumerate() {
            bytes += weight(pick);
            let next = relations.get(i + 1);
            let same = |next: &(u32, u8)| {
                (line(next).source, line(next).target) == (line(pick).source, line(pick).target)
            };
            let full = bytes > BATCH_BYTES || i - begin + 1 >= ROWS_MAX / 2;
            let cut = i - begin + 1 == ROWS_MAX || (full && !next.is_some_and(same));
            if cut || next.is_none() {
                batches.push(self.relation_batch(&relations[begin..=i]));
                (begin, bytes) = (i + 1, 0);
            }
        }
        if picked.types {
            let (mut commits, mut declared) = (Commits::of(self), Vec::new());
            for row in &self.types {
                let own = |c: &RowsCommit| (c.known, c.user) == (row.known, row.user) && c.archive.is_none();
                let commit = self.commits.iter().position(own);
                declared.push((commits.number(commit.unwrap_or(0) as u32), row.declared.clone()));
            }
            let mut batch = commits.batch();
            declared.into_iter().for_each(|(commit, declared)| batch.declare(commit, vec![declared]));
            batches.push(batch);
        }
        batches
    }

    fn relation_batch(&self, picked: &[(u32, u8)]) -> PlacedRows {
        let mut commits = Commits::of(self);
        let lines: Vec<&RelationLine> = picked.iter().map(|(i, _)| &self.relations[*i as usize]).collect();
        let versions: Vec<Version> = lines
            .iter()
            .map(|line| Version { stamp: line.stamp, time: line.time, deleted: line.deleted })
            .collect();
        let until: Vec<Option<u64>> = lines.iter().map(|line| line.until).collect();
        let kind = |number: u32| self.names.kinds[number as usize].as_bytes();
        let end = |of: fn(&RelationLine) -> u32| {
            let vertices = || lines.iter().map(|line| &self.names.vertices[of(line) as usize]);
            [
                vertices().map(|v| kind(v.kind)).collect(),
                vertices().map(|v| self.names.id(v).as_bytes()).collect(),
            ]
        };
        let replacing = Props::replacing();
        let props = |line: &&RelationLine| match line.archived && line.replaces {
            // Everything that a stub holds.
            true => props_bytes(&replacing),
            false => self.props(line),
        };
        let parts = RelationParts {
            kinds: lines.iter().map(|line| kind(line.kind)).collect(),
            source: end(|line| line.source),
            target: end(|line| line.target),
            versions: &versions,
            until: &until,
            props: lines.iter().map(props).collect(),
        };
        let of = lines
            .iter()
            .zip(picked)
            .map(|(line, (_, ends))| commits.number(line.commit) << 2 | u32::from(*ends));
        let of = of.collect();
        let mut batch = commits.batch();
        batch.set_relations(&parts, of);
        batch
    }
}

/// The commits of one batch.
struct Commits<'a> {
    rows: &'a Rows,
    numbers: HashMap<u32, u32>,
    commits: Vec<RowsCommit>,
}

impl<'a> Commits<'a> {
    fn of(rows: &'a Rows) -> Commits<'a> {
        Commits { rows, numbers: HashMap::new(), commits: Vec::new() }
    }

    fn number(&mut self, commit: u32) -> u32 {
        let Commits { rows, numbers, commits } = self;
        *numbers.entry(commit).or_insert_with(|| {
            commits.push(rows.commits[commit as usize].clone());
            commits.len() as u32 - 1
        })
    }

    fn batch(self) -> PlacedRows {
        PlacedRows { commits: self.commits, ..PlacedRows::default() }
    }
}
