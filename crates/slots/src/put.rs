//! Rows arrive in a slot; its partitions split.
//!
//! | event | action |
//! |---|---|
//! | rows from a client | the slot refuses rows that belong elsewhere by now and reports the splits; the client sends them there |
//! | rows from another slot | the slot passes on rows that belong elsewhere by now, and acknowledges them when they have arrived |
//! | many messages in a row | their rows are gathered into one segment; each message is answered when the segment is on the shelf |
//! | a partition exceeds the threshold | it splits: the slot hands its right part over in batches, and refuses rows that arrive for it from then on |
//! | all of it has arrived | the slot notifies the leading client, which decides when the slot may drop the old rows |

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::graph_message::ends::Address;
use fieldstone_format::graph_message::rows::{PlacedRows, Refused};
use fieldstone_format::graph_message::{Message, VertexPartition, VertexSplits};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::adjacency::groups;
use fieldstone_graph::hashing::RelationSet;
use fieldstone_graph::partition::{Partition, Partitioner, SlotNumber, Splits, Splitting};
use fieldstone_graph::segment::{Segment, build};
use fieldstone_graph::slot::VertexSplitting;
use fieldstone_graph::state::GraphState;

use crate::delivery::Outgoing;
use crate::placed::{RowsFor, relation_rows, vertex_rows};
use crate::server::SlotServer;
use crate::split::{Counted, Moving, Then, WaitingAnswer};

/// Relations in a batch that a split hands over.
const MOVE_ROWS: usize = 1000;

/// Most relations that are gathered.
const GATHER_ROWS: usize = 4096;

/// The number under which relations of a type are counted at one end.
fn number_of(kinds: &mut HashMap<Arc<str>, u32>, kind: &Arc<str>, reverse: bool) -> u32 {
    let next = kinds.len() as u32;
    let number = match kinds.get(kind) {
        Some(number) => *number,
        None => *kinds.entry(kind.clone()).or_insert(next),
    };
    2 * number + u32::from(reverse)
}

fn partition_of(of: &VertexPartition) -> Result<Partition> {
    let known = Partition::of_number(of.partition);
    known.ok_or_else(|| fieldstone_core::Error::corrupt("a partition has an impossible number"))
}

/// The slot of a relation of a vertex, as far as this slot knows.
fn leaf(
    partitioner: &dyn Partitioner,
    slot: SlotNumber,
    splits: &Splits,
    near: VertexPlace,
    far: VertexPlace,
) -> Partition {
    let top = partitioner.top(near, slot);
    partitioner.leaf_below(top, partitioner.path(near, far), &|partition| splits.has(partition))
}

impl SlotServer {
    fn grows(&self) -> Option<u64> {
        match self.partitioner.splitting() {
            Splitting::Beyond(threshold) => Some(u64::from(threshold)),
            _ => None,
        }
    }

    /// Takes rows from a client.
    pub(crate) fn insert(
        &mut self,
        from: Address,
        batch: u64,
        placed: &PlacedRows,
        out: &mut Outgoing,
    ) -> Result<()> {
        let refused = self.gather(placed)?;
        let mut vertices: Vec<VertexPlace> = refused.iter().map(|(_, vertex, _)| *vertex).collect();
        vertices.sort_unstable();
        vertices.dedup();
        let table = self.shelf.splits();
        let splits_of = |vertex| {
            let partitions = table.get(&vertex)?.known.numbers();
            Some(VertexSplits { vertex, partitions })
        };
        let splits = vertices.into_iter().filter_map(splits_of).collect();
        let refused = refused.into_iter().map(|(pick, ..)| pick).collect();
        let answer = Message::Inserted { batch, refused, splits };
        let mut batches = Vec::new();
        if !placed.of_vertices.is_empty() {
            // Contradictions are searched on the shelf, so these rows must be on it first.
            self.shelve()?;
            let echoes = self.contradictions(placed)?;
            let others = (0..self.partitioner.slots()).filter(|slot| *slot != self.number);
            batches.extend(others.filter(|_| !echoes.is_empty()).map(|slot| (slot, echoes.clone())));
        }
        self.gathered.answers.push(WaitingAnswer { to: from, answer, batches });
        self.add_if_many(out)
    }

    /// Takes rows from another slot.
    pub(crate) fn moved_here(
        &mut self,
        from: Address,
        batch: u64,
        placed: &PlacedRows,
        out: &mut Outgoing,
    ) -> Result<()> {
        let refused = self.gather(placed)?;
        let mut by_slot: Vec<(SlotNumber, Vec<Refused>)> = Vec::new();
        for (pick, _, slot) in refused {
            match by_slot.iter_mut().find(|(known, _)| *known == slot) {
                Some((_, picks)) => picks.push(pick),
                None => by_slot.push((slot, vec![pick])),
            }
        }
        let mut batches = Vec::new();
        for (slot, picks) in by_slot {
            batches.push((slot, placed.some(&picks)?));
        }
        self.gathered.answers.push(WaitingAnswer { to: from, answer: Message::Moved { batch }, batches });
        self.add_if_many(out)
    }

    /// Gathers rows; returns those that belong elsewhere, each with its vertex and slot.
    fn gather(&mut self, placed: &PlacedRows) -> Result<Vec<(Refused, VertexPlace, SlotNumber)>> {
        let rows = &mut self.gathered.rows;
        let first = rows.relations();
        rows.add_placed(placed)?;
        let mut refused = Vec::new();
        if matches!(self.partitioner.splitting(), Splitting::Beyond(_)) {
            let table = self.shelf.splits();
            let (partitioner, number) = (&*self.partitioner, self.number);
            // All rows were added and those of split partitions are dropped here, since most rows belong
            // here.
            rows.retain_ends(first, |row, ends, near, far| {
                let Some(own) = table.get(&near) else { return Ok(true) };
                let leaf = leaf(partitioner, number, &own.known, near, far);
                let slot = partitioner.slot(near, leaf);
                if slot != number {
                    refused.push((Refused { row: row as u32, ends }, near, slot));
                }
                Ok(slot == number)
            })?;
        }
        Ok(refused)
    }

    fn add_if_many(&mut self, out: &mut Outgoing) -> Result<()> {
        if self.gathered.rows.relations() >= GATHER_ROWS { self.add_gathered(out) } else { Ok(()) }
    }

    /// Makes a segment from the gathered rows.
    fn shelve(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.gathered.rows);
        if !rows.is_empty() {
            let segment = Arc::new(build(&rows)?);
            self.count(&segment)?;
            self.shelf.add(segment)?;
        }
        Ok(())
    }

    /// Does the same, and answers the ends that wait for it.
    pub(crate) fn add_gathered(&mut self, out: &mut Outgoing) -> Result<()> {
        if self.gathered.answers.is_empty() {
            return Ok(());
        }
        self.shelve()?;
        // An answer promises that the rows are visible, so it waits until they are on the shelf.
        for WaitingAnswer { to, answer, batches } in std::mem::take(&mut self.gathered.answers) {
            self.give(batches, Then::Say { to, answer: Box::new(answer) }, out);
        }
        self.split_what_grew(out)
    }

    /// Counts the relations in a segment, before it is on the shelf.
    fn count(&mut self, segment: &Segment) -> Result<()> {
        let Some(threshold) = self.grows() else { return Ok(()) };
        let mut before: Option<GraphState> = None;
        for number in 0..segment.vertices() {
            let bytes = segment.adjacency(number)?;
            let mut brings = 0;
            for group in groups(&bytes)? {
                brings += group?.len as u64;
            }
            if brings == 0 {
                continue;
            }
            let place = segment.place(number)?;
            let counted = match self.counted.entry(place) {
                Entry::Occupied(known) => known.into_mut(),
                // Everything since the slot began has been counted.
                Entry::Vacant(new) if self.began_empty => new.insert(Counted::AtMost(0)),
                Entry::Vacant(new) => {
                    let before =
                        before.get_or_insert_with(|| GraphState::of(self.shelf.content().segments.clone()));
                    let known = before.edges(place, &|_, _| true)?.len() as u64;
                    new.insert(Counted::AtMost(known))
                }
            };
            // An upper bound is enough for most vertices: only those that exceed the threshold by it are
            // counted exactly, in `holds_more_than`.
            let here = match counted {
                Counted::AtMost(n) => {
                    *n += brings;
                    *n
                }
                Counted::Exactly(all) => {
                    for group in groups(&bytes)? {
                        let group = group?;
                        let kind = segment.kind(group.code / 2)?;
                        let kind = number_of(&mut self.kinds, kind, group.code & 1 == 1);
                        for far in group.numbers() {
                            all.insert((kind, segment.place(far?)?));
                        }
                    }
                    all.len() as u64
                }
                Counted::Final => continue,
            };
            if here > threshold {
                self.grown.push(place);
            }
        }
        Ok(())
    }

    /// Splits partitions that exceed the threshold.
    fn split_what_grew(&mut self, out: &mut Outgoing) -> Result<()> {
        let Some(threshold) = self.grows() else { return Ok(()) };
        if self.grown.is_empty() {
            return Ok(());
        }
        let state = GraphState::of(self.shelf.content().segments.clone());
        for vertex in std::mem::take(&mut self.grown) {
            // One split may leave too many relations on the left side.
            while self.holds_more_than(threshold, vertex, &state)? {
                let own = self.own_leaf(vertex, &self.splits_of(vertex));
                let Some(right) = self.partitioner.given_away(own) else {
                    self.counted.insert(vertex, Counted::Final);
                    break;
                };
                self.split(vertex, own, right, &state, out)?;
            }
        }
        Ok(())
    }

    fn splits_of(&self, vertex: VertexPlace) -> Splits {
        self.shelf.splits().get(&vertex).map(|splits| splits.known.clone()).unwrap_or_default()
    }

    /// The unsplit partition of a vertex in this slot.
    fn own_leaf(&self, vertex: VertexPlace, splits: &Splits) -> Partition {
        let mut at = self.partitioner.top(vertex, self.number);
        while splits.has(at) {
            at = at.turn(0);
        }
        at
    }

    fn holds_more_than(&mut self, threshold: u64, vertex: VertexPlace, state: &GraphState) -> Result<bool> {
        match self.counted.get(&vertex) {
            Some(Counted::AtMost(n)) if *n > threshold => {}
            Some(Counted::Exactly(all)) => return Ok(all.len() as u64 > threshold),
            _ => return Ok(false),
        }
        let splits = self.splits_of(vertex);
        let own = self.own_leaf(vertex, &splits);
        let mut all = RelationSet::default();
        for edge in state.edges(vertex, &|_, _| true)? {
            // Relations that were handed over may still be here.
            if leaf(&*self.partitioner, self.number, &splits, vertex, edge.far) == own {
                let kind = number_of(&mut self.kinds, &edge.direction.kind, edge.direction.reverse);
                all.insert((kind, edge.far));
            }
        }
        let more = all.len() as u64 > threshold;
        self.counted.insert(vertex, Counted::Exactly(all));
        Ok(more)
    }

    fn split(
        &mut self,
        vertex: VertexPlace,
        own: Partition,
        right: Partition,
        state: &GraphState,
        out: &mut Outgoing,
    ) -> Result<()> {
        // Record the split before any row leaves, so that rows that arrive from now on are refused.
        self.shelf.split(vertex, |splits| splits.known.add(own));
        if let Some(Counted::Exactly(all)) = self.counted.get_mut(&vertex) {
            let leaves = |far: VertexPlace| right.is_on(self.partitioner.path(vertex, far));
            all.retain(|(_, far)| !leaves(*far));
        }
        self.give_away(vertex, own, right, state, out)
    }

    /// Hands over the right part of a split partition.
    fn give_away(
        &mut self,
        vertex: VertexPlace,
        own: Partition,
        right: Partition,
        state: &GraphState,
        out: &mut Outgoing,
    ) -> Result<()> {
        self.unfinished += 1;
        let of = VertexPartition { vertex, partition: own.number() };
        let home = self.partitioner.home(vertex);
        // Walks ask a vertex's home for the slots with its relations.
        if home != self.number {
            self.say(Address::Slot(home), Message::Split { of }, out);
        }
        let slot = self.partitioner.slot(vertex, right);
        let (mut batches, mut rows) = (Vec::new(), RowsFor::default());
        let mut reader = state.reader();
        let edges = state.edges(vertex, &|_, _| true)?;
        let name = if edges.is_empty() { None } else { Some(state.name(vertex)?) };
        for edge in edges.iter().filter(|edge| right.is_on(self.partitioner.path(vertex, edge.far))) {
            let Some(name) = &name else { break };
            for (commit, row, ends) in relation_rows(&mut reader, (name, vertex), edge)? {
                rows.relation(commit, row, ends);
                if rows.relations() == MOVE_ROWS {
                    batches.push((slot, std::mem::take(&mut rows).finish()));
                }
            }
        }
        if !rows.is_empty() {
            batches.push((slot, rows.finish()));
        }
        self.give(batches, Then::Complete(of), out);
        Ok(())
    }

    /// Sends batches to slots, with an action for their arrival.
    fn give(&mut self, batches: Vec<(SlotNumber, PlacedRows)>, then: Then, out: &mut Outgoing) {
        let group = self.fresh_number();
        self.moves.insert(group, Moving { open: batches.len(), then });
        for (slot, rows) in batches {
            let batch = self.fresh_number();
            self.moving.insert(batch, group);
            self.say(Address::Slot(slot), Message::Move { batch, rows }, out);
        }
        // Without any batch the action runs at once.
        self.end_move(group, out);
    }

    /// Handles the arrival of a batch.
    pub(crate) fn moved_there(&mut self, batch: u64, out: &mut Outgoing) -> Result<()> {
        if let Some(group) = self.moving.remove(&batch) {
            if let Some(moving) = self.moves.get_mut(&group) {
                moving.open = moving.open.saturating_sub(1);
            }
            self.end_move(group, out);
        }
        Ok(())
    }

    fn end_move(&mut self, group: u64, out: &mut Outgoing) {
        let Entry::Occupied(moving) = self.moves.entry(group) else { return };
        if moving.get().open == 0 {
            match moving.remove().then {
                Then::Complete(of) => self.say(self.lead, Message::Complete { of }, out),
                Then::Say { to, answer } => self.say(to, *answer, out),
            }
        }
    }

    /// Records the split of a partition of a vertex whose home is this slot.
    pub(crate) fn note_split(&mut self, of: VertexPartition) -> Result<()> {
        let partition = partition_of(&of)?;
        self.shelf.split(of.vertex, |splits| splits.known.add(partition));
        Ok(())
    }

    /// Marks these splits as finished: the rows that they handed over are no longer visible here.
    pub(crate) fn finish(&mut self, of: &[VertexPartition]) -> Result<()> {
        for of in of {
            let partition = partition_of(of)?;
            if self.shelf.split(of.vertex, |splits| splits.finished.add(partition)) {
                self.unfinished = self.unfinished.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Hands over again what was not finished when the slot stopped.
    pub(crate) fn split_again(&mut self, out: &mut Outgoing) -> Result<()> {
        let table = self.shelf.splits().clone();
        let state = GraphState::of(self.shelf.content().segments.clone());
        for (vertex, VertexSplitting { known, finished }) in table.iter() {
            for partition in known.partitions().filter(|partition| !finished.has(*partition)) {
                // The receiver may have some of these rows already; it replaces them by equal ones.
                let own = self.partitioner.slot(*vertex, partition) == self.number;
                if let Some(right) = self.partitioner.given_away(partition).filter(|_| own) {
                    self.give_away(*vertex, partition, right, &state, out)?;
                }
            }
        }
        Ok(())
    }

    /// Versions that all slots must know: a put and a deletion of a vertex by one user at one stamp. Only
    /// their known stamps decide which of the two counts.
    fn contradictions(&self, placed: &PlacedRows) -> Result<PlacedRows> {
        let mut rows = RowsFor::default();
        if placed.of_vertices.is_empty() {
            return Ok(rows.finish());
        }
        let segments = &self.shelf.content().segments;
        let none_deleted = segments.iter().all(|segment| segment.tombstones.is_empty());
        for row in placed.vertex_rows()? {
            let (place, stamp) = (VertexPlace::of(&row.vertex), row.version.stamp);
            let mut tombstones = segments.iter().flat_map(|segment| &segment.tombstones);
            let deleted = row.version.deleted
                || (!none_deleted && tombstones.any(|t| (t.place, t.stamp) == (place, stamp)));
            if !deleted || self.partitioner.home(place) != self.number {
                continue;
            }
            for segment in segments {
                let alone = GraphState::of(vec![segment.clone()]);
                for (commit, known) in vertex_rows(&alone, &row.vertex)? {
                    if known.version.stamp == stamp && !known.version.deleted {
                        rows.vertex(commit, known);
                    }
                }
            }
        }
        Ok(rows.finish())
    }
}
