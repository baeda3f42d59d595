//! Merging index entries of logs and takeovers into one table, and what is said of them as a whole: datasets and axes.
//!
//! An entry changes in three places: the number of its commit, the place of payload that was copied, and the holder of bytes
//! that stay in data logs of its writer. A purge leaves entries out; of each dataset the oldest commit stays on record all the
//! same, as it decides whose the dataset is (R22).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::entry::Entry;
use fieldstone_format::keys;
use fieldstone_format::table::{BlockSink, TableBuilder, TableRef};
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{DatasetRow, axis_place, axis_prefix};

use super::commits::CommitNumbers;
use super::inputs::Inputs;
use super::payload::{DATA_LOG, Payload};
use super::tables::table;
use super::walk::{PurgeWalk, Verdict, marked};
use crate::entry_source::{EntryCursor, EntryHeap, EntrySource};
use crate::snapshot::Snapshot;

/// A source of entries: which input it is of, and the new numbers of its commits.
enum Of {
    /// A segment of a log.
    Log { log: usize, commits: Vec<Option<u32>> },
    /// A takeover, and the logs that hold bytes with their new numbers.
    Takeover { takeover: usize, holders: Vec<(Id, u64)> },
    /// A source beside the inputs: only a purge looks at it.
    Outside,
}

/// Merges the entries of all inputs.
pub struct EntryMerge<'a> {
    inputs: &'a Inputs,
    commits: &'a CommitNumbers,
    payload: &'a Payload,
    /// Numbers of logs in the table of names.
    names: HashMap<Id, u64>,
    sources: Vec<Of>,
    heap: EntryHeap,
    /// The walk of a purge, in the place of the heap; sources have then the numbers that the snapshot gives them.
    walk: Option<PurgeWalk<'a>>,
    datasets: BTreeMap<Vec<u8>, DatasetRow>,
    /// Datasets with an entry that is not a field of its own.
    mixed: BTreeSet<Vec<u8>>,
    axes: Axes,
    /// Whether any entry is a removal or an attempt tombstone.
    pub removals: bool,
    /// Raw bytes of all entries.
    pub bytes: u64,
    /// Entries that went.
    gone: u64,
}

/// An entry on its way.
struct Moving {
    /// Its rank under its key: the greater one is newer.
    rank: (u64, u32, u64),
    /// Whether it is a whole field that is decided.
    is_field: bool,
    value: Vec<u8>,
}

impl<'a> EntryMerge<'a> {
    /// A merge that has not begun; of a purge with its walk, and the snapshot that it goes through.
    pub fn new(
        inputs: &'a Inputs,
        commits: &'a CommitNumbers,
        payload: &'a Payload,
        names: HashMap<Id, u64>,
        purge: Option<(&Snapshot, PurgeWalk<'a>)>,
    ) -> Result<EntryMerge<'a>> {
        let (mut of_logs, mut of_takeovers) = (Vec::new(), Vec::new());
        for (log, ended) in inputs.logs.iter().enumerate() {
            for segment in &ended.log.segments {
                let meta = segment.meta()?;
                let numbers = meta.commits.iter().map(|commit| {
                    let origin = commit.origin.and_then(|origin| meta.origins.get(origin as usize));
                    commits.of_log(log, commit.sequence, origin)
                });
                let numbers = numbers.collect::<Result<Vec<Option<u32>>>>()?;
                of_logs.push((EntrySource::Segment(segment.clone(), 0), Of::Log { log, commits: numbers }));
            }
        }
        let mut datasets = BTreeMap::new();
        for (number, takeover) in inputs.takeovers.iter().enumerate() {
            let mut holders = Vec::new();
            takeover.each_log(|log| {
                holders.push((log.writer, names.get(&log.writer).copied().unwrap_or(0)));
                Ok(())
            })?;
            let of = Of::Takeover { takeover: number, holders };
            of_takeovers.push((EntrySource::Takeover(takeover.clone()), of));
            takeover.each_below(TakeoverTable::Datasets, &[], |key, value| {
                let row = DatasetRow { entries: 0, bytes: 0, single: false, ..DatasetRow::decode(value)? };
                note_oldest(&mut datasets, key, row);
                Ok(())
            })?;
        }
        for dataset in inputs.purge.iter().flat_map(|plan| &plan.datasets) {
            // Its oldest commit is noted with the entry that goes.
            let least = DatasetRow { stamp: u64::MAX, purged: inputs.number, ..DatasetRow::NONE };
            note_oldest(&mut datasets, dataset, least);
        }
        let known: Vec<(EntrySource, Of)> = of_logs.into_iter().chain(of_takeovers).collect();
        let (sources, cursors, walk) = match purge {
            None => {
                let (sources, cursors) = all_of(known)?;
                (sources, cursors, None)
            }
            Some((snapshot, walk)) => (numbered(snapshot, known), Vec::new(), Some(walk)),
        };
        Ok(EntryMerge {
            inputs,
            commits,
            payload,
            names,
            sources,
            heap: EntryHeap::new(cursors),
            walk,
            datasets,
            mixed: BTreeSet::new(),
            axes: Axes::default(),
            removals: false,
            bytes: 0,
            gone: 0,
        })
    }

    /// Writes the table of entries; `each` hears how many there are so far.
    pub fn write(
        &mut self,
        sink: &mut dyn BlockSink,
        each: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Option<TableRef>> {
        let mut builder = TableBuilder::new();
        let (mut key, mut moving) = (Vec::new(), Vec::<Moving>::new());
        while self.next_key(&mut key, &mut moving)? {
            moving.sort_unstable_by_key(|entry| Reverse(entry.rank));
            match &moving[..] {
                [] => {}
                [Moving { is_field: true, .. }] => self.axes.note(&key)?,
                _ => {
                    self.axes.note(&key)?;
                    let dataset = &key[..keys::level_ends(&key)?[0]];
                    if !self.mixed.contains(dataset) {
                        self.mixed.insert(dataset.to_vec());
                    }
                }
            }
            for entry in &moving {
                builder.push(&key, &entry.value, sink)?;
            }
            each(builder.rows())?;
        }
        if self.inputs.purge.as_ref().is_some_and(|plan| plan.versions != self.gone) {
            return Err(Error::internal("a purge decides otherwise than it planned"));
        }
        builder.finish(sink)
    }

    /// The next key and what the takeover has under it; `false` behind the last one.
    fn next_key(&mut self, key: &mut Vec<u8>, moving: &mut Vec<Moving>) -> Result<bool> {
        moving.clear();
        key.clear();
        if let Some(mut walk) = self.walk.take() {
            let more = walk.next_key()?;
            if more {
                key.extend_from_slice(&walk.key);
                self.judged(&walk, moving)?;
            }
            self.walk = Some(walk);
            return Ok(more);
        }
        let Some(first) = self.heap.first() else { return Ok(false) };
        key.extend_from_slice(first.key());
        let dataset_end = keys::level_ends(key)?[0];
        while let Some(cursor) = self.heap.first_mut()
            && cursor.key() == key
        {
            let (index, entry) = (cursor.index, Entry::decode(cursor.value())?);
            let more = cursor.advance()?;
            self.heap.settle(more);
            moving.extend(self.moved(index, entry, &key[..dataset_end])?);
        }
        Ok(true)
    }

    /// Moves the entries that a purge leaves of the inputs under the key that it is at.
    fn judged(&mut self, walk: &PurgeWalk<'_>, moving: &mut Vec<Moving>) -> Result<()> {
        let dataset = &walk.key[..keys::level_ends(&walk.key)?[0]];
        for (met, verdict) in walk.entries.iter().zip(&walk.verdicts).filter(|(met, _)| met.is_input) {
            let entry = Entry::decode(&met.value)?;
            self.gone += u64::from(*verdict != Verdict::Stays);
            let entry = match verdict {
                Verdict::Stays => entry,
                Verdict::Leaves(mark) => marked(&entry, mark.clone()),
                Verdict::Goes => {
                    self.drop_entry(met.source, &entry, dataset)?;
                    continue;
                }
            };
            moving.extend(self.moved(met.source, entry, dataset)?);
        }
        Ok(())
    }

    /// Notes the commit of an entry that goes, which may be the oldest of its dataset.
    fn drop_entry(&mut self, index: usize, entry: &Entry, dataset: &[u8]) -> Result<()> {
        let Of::Log { commits, .. } = &self.sources[index] else { return Ok(()) };
        let number = usize::try_from(entry.commit).ok().and_then(|i| commits.get(i)).copied();
        let number = number.ok_or_else(|| Error::corrupt("an index entry names no commit"))?;
        if let Some(number) = number {
            self.note_commit(dataset, index, self.commits.stamps[number as usize]);
        }
        Ok(())
    }

    /// The entry as the takeover has it; `None` where its commit is gone.
    fn moved(&mut self, index: usize, mut entry: Entry, dataset: &[u8]) -> Result<Option<Moving>> {
        let range = entry.location.own_range();
        let number = match &self.sources[index] {
            Of::Log { log, commits } => {
                let number = usize::try_from(entry.commit).ok().and_then(|i| commits.get(i)).copied();
                let writer = self.inputs.logs[*log].log.writer;
                match range {
                    Some((file, begin, _)) if file == 0 || self.payload.has((writer, file)) => {
                        let at = self.payload.place_of((writer, file), begin)?;
                        entry.location.relocate(DATA_LOG, begin, at);
                    }
                    Some(_) => entry.holder = self.names.get(&writer).copied(),
                    None => {}
                }
                number.ok_or_else(|| Error::corrupt("an index entry names no commit"))?
            }
            Of::Takeover { takeover, holders } => {
                match (range, entry.holder) {
                    (Some((file, begin, _)), None) => {
                        let id = self.inputs.takeovers[*takeover].header.id;
                        let at = self.payload.place_of((id, file), begin)?;
                        entry.location.relocate(DATA_LOG, begin, at);
                    }
                    (range, Some(holder)) => {
                        let known = usize::try_from(holder).ok().and_then(|i| holders.get(i)).copied();
                        let (writer, new) =
                            known.ok_or_else(|| Error::corrupt("an entry names a missing log"))?;
                        entry.holder = Some(new);
                        if let Some((file, begin, _)) =
                            range.filter(|range| self.payload.has((writer, range.0)))
                        {
                            entry.location.relocate(
                                DATA_LOG,
                                begin,
                                self.payload.place_of((writer, file), begin)?,
                            );
                            entry.holder = None;
                        }
                    }
                    (None, None) => {}
                }
                self.commits.of_takeover(*takeover, entry.commit)?
            }
            Of::Outside => return Ok(None),
        };
        let Some(number) = number else { return Ok(None) };
        entry.commit = u64::from(number);
        self.removals |= entry.is_removal() || entry.is_attempt_tombstone();
        self.bytes = self.bytes.saturating_add(entry.length);
        let stamp = self.commits.stamps[number as usize];
        self.count(dataset, index, stamp, entry.length);
        let rank = (stamp, number, entry.ordinal);
        let is_field = entry.is_whole_field() && !self.commits.is_prepared(number);
        let mut value = Vec::with_capacity(64);
        entry.encode(&mut value);
        Ok(Some(Moving { rank, is_field, value }))
    }

    /// Counts an entry for its dataset.
    fn count(&mut self, dataset: &[u8], index: usize, stamp: u64, length: u64) {
        self.note_commit(dataset, index, stamp);
        if let Some(row) = self.datasets.get_mut(dataset) {
            row.entries += 1;
            row.bytes = row.bytes.saturating_add(length);
        }
    }

    /// Notes the commit of an entry for its dataset. The oldest commits that takeovers name stand there already.
    fn note_commit(&mut self, dataset: &[u8], index: usize, stamp: u64) {
        if let Of::Log { log, .. } = &self.sources[index] {
            let writer = self.inputs.logs[*log].log.writer;
            let is_older =
                self.datasets.get(dataset).is_none_or(|row| (stamp, writer) < (row.stamp, row.writer));
            if is_older {
                note_oldest(&mut self.datasets, dataset, DatasetRow { stamp, writer, ..DatasetRow::NONE });
            }
        }
    }

    /// Writes the tables of datasets and axes.
    pub fn write_summaries(
        &self,
        sink: &mut dyn BlockSink,
    ) -> Result<[(TakeoverTable, Option<TableRef>); 2]> {
        // An erasure may speak of a run without any entry: nobody owns a dataset by that.
        let datasets = self.datasets.iter().filter(|(_, row)| row.stamp < u64::MAX);
        let datasets = datasets.map(|(key, row)| {
            let single = row.entries > 0 && !self.mixed.contains(key);
            (key.clone(), DatasetRow { single, ..*row }.encode())
        });
        let datasets = table(datasets, sink)?;
        let axes = table(self.axes.rows().into_iter(), sink)?;
        Ok([(TakeoverTable::Datasets, datasets), (TakeoverTable::Axes, axes)])
    }
}

/// The numbers of sources, and cursors over them.
fn all_of(known: Vec<(EntrySource, Of)>) -> Result<(Vec<Of>, Vec<EntryCursor>)> {
    let (mut sources, mut cursors) = (Vec::new(), Vec::new());
    for (source, of) in known {
        let mut cursor = EntryCursor::new(&source, sources.len());
        if cursor.advance()? {
            cursors.push(cursor);
        }
        sources.push(of);
    }
    Ok((sources, cursors))
}

/// Sources by the numbers that a snapshot gives them.
fn numbered(snapshot: &Snapshot, known: Vec<(EntrySource, Of)>) -> Vec<Of> {
    let mut known: Vec<Option<(EntrySource, Of)>> = known.into_iter().map(Some).collect();
    let is_same = |a: &EntrySource, b: &EntrySource| match (a, b) {
        (EntrySource::Segment(a, _), EntrySource::Segment(b, _)) => Arc::ptr_eq(a, b),
        (EntrySource::Takeover(a), EntrySource::Takeover(b)) => Arc::ptr_eq(a, b),
        _ => false,
    };
    let mut of = |source: &EntrySource| {
        let found =
            known.iter_mut().find(|known| known.as_ref().is_some_and(|(known, _)| is_same(known, source)));
        found.and_then(Option::take).map_or(Of::Outside, |(_, of)| of)
    };
    snapshot.sources.iter().map(&mut of).collect()
}

/// Notes what is said of a dataset: the oldest commit, and the last purge, of all that say so.
fn note_oldest(datasets: &mut BTreeMap<Vec<u8>, DatasetRow>, dataset: &[u8], row: DatasetRow) {
    let known = datasets.entry(dataset.to_vec()).or_insert(row);
    if (row.stamp, row.writer) < (known.stamp, known.writer) {
        (known.stamp, known.writer) = (row.stamp, row.writer);
    }
    known.purged = known.purged.max(row.purged);
}

/// The values of each keyword of each level.
#[derive(Debug, Default)]
struct Axes {
    /// By level and encoded keyword: how many keywords came before it, and the encoded values.
    values: HashMap<Vec<u8>, (u64, HashSet<Vec<u8>>)>,
    /// By level, the names that open it: the keyword of each of its values.
    names: HashMap<(usize, Vec<u8>), Vec<Vec<u8>>>,
    /// The levels of the key before.
    last: [Vec<u8>; 3],
}

impl Axes {
    /// Adds the values of a key. Neighbours share their first levels.
    fn note(&mut self, key: &[u8]) -> Result<()> {
        let ends = keys::level_ends(key)?;
        let mut begin = 0;
        for (level, end) in ends.into_iter().enumerate() {
            let bytes = &key[begin..end];
            begin = end;
            if self.last[level] == bytes {
                continue;
            }
            self.last[level] = bytes.to_vec();
            let mut rest = bytes;
            let names = keys::decode_names(&mut rest)?;
            let opening = bytes[..bytes.len() - rest.len()].to_vec();
            let prefixes = self
                .names
                .entry((level, opening))
                .or_insert_with(|| names.iter().map(|name| axis_prefix(level as u8, name)).collect());
            for prefix in prefixes.iter() {
                let value = keys::skip_value(&mut rest)?;
                match self.values.get_mut(prefix) {
                    Some((_, values)) if values.contains(value) => {}
                    Some((_, values)) => drop(values.insert(value.to_vec())),
                    None => {
                        let place = self.values.len() as u64;
                        self.values.insert(prefix.clone(), (place, HashSet::from([value.to_vec()])));
                    }
                }
            }
        }
        Ok(())
    }

    /// The rows of the table, in order.
    fn rows(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows = Vec::new();
        for (prefix, (place, values)) in &self.values {
            let value = axis_place(*place);
            rows.extend(values.iter().map(|axis| ([&prefix[..], axis].concat(), value.clone())));
        }
        rows.sort_unstable();
        rows
    }
}
