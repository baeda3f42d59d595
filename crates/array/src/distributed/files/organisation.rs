//! Assigns a set at a step to a file, by the paper's three levels of file organisation (SDM, section 3.3).
//!
//! | level | a file holds | its variables |
//! |---|---|---|
//! | 1 | a set at a step | fixed |
//! | 2 | a set, all steps | records |
//! | 3 | the sets of a group that are written at the same steps | records |
//!
//! Nothing here communicates: ranks that make the same calls get the same places.
//!
//! Invariants:
//! * steps of a file ascend; a step that is not above them begins a new file, so rewriting a step never
//!   changes what a file shows;
//! * after a flush, each record has all variables of its file. While a step is being written, the set of variables
//!   that it will get is unknown: those of the last such step are expected, at first all. If that turns out wrong,
//!   [`end_flush`] lists the slabs to move to files of the sets that were written, before any reader sees them.
//!
//! [`end_flush`]: Organisation::end_flush

use std::collections::{BTreeMap, BTreeSet};

/// The distribution of sets and steps over files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// A file for each set and step.
    One,
    /// A file for each set.
    Two,
    /// A file for each group.
    Three,
}

impl Level {
    /// The level with this number.
    pub fn from_number(number: u64) -> Option<Level> {
        [Level::One, Level::Two, Level::Three].into_iter().find(|level| level.number() == number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        match self {
            Level::One => 1,
            Level::Two => 2,
            Level::Three => 3,
        }
    }
}

/// The place of a set at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileSlot {
    /// The file, by its number.
    pub file: usize,
    /// The variable in it, by its number among those of sets.
    pub variable: usize,
    /// The record; `None` if the variable has no records.
    pub record: Option<u64>,
}

/// The organisation of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    /// The sets that are its variables, by their numbers in the group, ascending.
    pub sets: Vec<usize>,
    /// Steps of its records, ascending; for a file of fixed variables, its one step.
    pub steps: Vec<i64>,
    /// Whether its variables have records.
    pub has_records: bool,
    /// The number of earlier files with these sets (and, without records, this step).
    pub nth: usize,
    /// The number of its steps that were flushed: the first ones.
    flushed: usize,
}

impl FilePlan {
    /// Steps that a flush has made visible.
    pub fn flushed(&self) -> &[i64] {
        &self.steps[..self.flushed]
    }
}

/// A slab to copy before it becomes visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabMove {
    /// Its current place.
    pub from: FileSlot,
    /// Its final place.
    pub to: FileSlot,
}

/// The writes that a flush makes visible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlushedWrites {
    /// Copies to make first, in this order.
    pub moves: Vec<SlabMove>,
    /// Each set and step that was written, with its place.
    pub places: Vec<(usize, i64, FileSlot)>,
    /// Files that show something of the flush.
    pub files: BTreeSet<usize>,
}

/// The files of one group, in one attempt. See the module's documentation.
#[derive(Debug, Clone)]
pub struct Organisation {
    level: Level,
    /// For each set, whether its extent changes from step to step: then each step has its own file.
    varying: Vec<bool>,
    files: Vec<FilePlan>,
    /// The writes since the last flush.
    written: BTreeMap<(i64, usize), FileSlot>,
    /// For each set, the sets of the last flushed step that included it.
    together: BTreeMap<usize, Vec<usize>>,
}

impl Organisation {
    /// Organises a group of sets; `varying` gives for each whether its extent varies.
    pub fn new(level: Level, varying: Vec<bool>) -> Organisation {
        Organisation {
            level,
            varying,
            files: Vec::new(),
            written: BTreeMap::new(),
            together: BTreeMap::new(),
        }
    }

    /// Appends further sets; `varying` gives for each whether its extent varies. They go to files that are created
    /// from now on.
    pub fn add_sets(&mut self, varying: impl IntoIterator<Item = bool>) {
        self.varying.extend(varying);
    }

    /// An organisation of the same sets at the same level, without files.
    pub fn anew(&self) -> Organisation {
        Organisation::new(self.level, self.varying.clone())
    }

    /// All files so far.
    pub fn files(&self) -> &[FilePlan] {
        &self.files
    }

    /// Whether anything was written since the last flush.
    pub fn is_flushed(&self) -> bool {
        self.written.is_empty()
    }

    /// The place, at a step, of a set that was written since the last flush.
    pub fn written(&self, set: usize, step: i64) -> Option<FileSlot> {
        self.written.get(&(step, set)).copied()
    }

    /// The place at which a set is to be written at a step. A step that was not flushed is written again in place.
    pub fn place(&mut self, set: usize, step: i64) -> FileSlot {
        if let Some(slot) = self.written(set, step) {
            return slot;
        }
        let slot = self.open_slot(set, step).unwrap_or_else(|| {
            let sets = self.expected(set, step);
            self.next_slot(&sets, set, step)
        });
        self.written.insert((step, set), slot);
        slot
    }

    /// A free slot for the set: another set of its file was written at the step.
    fn open_slot(&self, set: usize, step: i64) -> Option<FileSlot> {
        let mut others = self.written.range((step, 0)..=(step, usize::MAX));
        others.find_map(|(_, slot)| {
            let variable = self.files[slot.file].sets.iter().position(|other| *other == set)?;
            slot.record.map(|_| FileSlot { variable, ..*slot })
        })
    }

    /// The sets expected at a step when `set` is the first of its file to be written.
    fn expected(&self, set: usize, step: i64) -> Vec<usize> {
        if self.level != Level::Three || self.varying[set] {
            return vec![set];
        }
        let begun = |other: &usize| self.written.contains_key(&(step, *other));
        match self.together.get(&set) {
            // One of them is elsewhere at this step, so they are not together.
            Some(sets) if sets.iter().any(begun) => vec![set],
            Some(sets) => sets.clone(),
            // No flushed step has included the set: expect it with all other sets for which that is true, too.
            None => (0..self.varying.len())
                .filter(|other| {
                    *other == set
                        || !(self.varying[*other] || self.together.contains_key(other) || begun(other))
                })
                .collect(),
        }
    }

    /// The next slot in the file of some sets; a new file if there is none, or its steps are not all below this one.
    fn next_slot(&mut self, sets: &[usize], set: usize, step: i64) -> FileSlot {
        let has_records = self.level != Level::One && !self.varying[set];
        let alike = |file: &FilePlan| {
            file.sets == sets && file.has_records == has_records && (has_records || file.steps == [step])
        };
        let last = self.files.iter().rposition(alike);
        let goes_on =
            last.filter(|last| has_records && self.files[*last].steps.last().is_none_or(|s| *s < step));
        let file = goes_on.unwrap_or_else(|| {
            let nth = self.files.iter().filter(|file| alike(file)).count();
            self.files.push(FilePlan {
                sets: sets.to_vec(),
                steps: Vec::new(),
                has_records,
                nth,
                flushed: 0,
            });
            self.files.len() - 1
        });
        let plan = &mut self.files[file];
        plan.steps.push(step);
        let variable = plan.sets.iter().position(|other| *other == set).unwrap_or(0);
        FileSlot { file, variable, record: has_records.then_some(plan.steps.len() as u64 - 1) }
    }

    /// Ends a flush: once the moves are made, all writes are in their final place.
    pub fn end_flush(&mut self) -> FlushedWrites {
        let mut moves = self.move_incomplete();
        moves.extend(self.close_gaps());
        let written = std::mem::take(&mut self.written);
        for slot in written.values() {
            let plan = &mut self.files[slot.file];
            plan.flushed = plan.steps.len();
        }
        // The sets that came together now are expected together at the next step.
        for slot in written.values() {
            let sets = self.files[slot.file].sets.clone();
            sets.iter().for_each(|set| drop(self.together.insert(*set, sets.clone())));
        }
        let files = written.values().map(|slot| slot.file).collect();
        let places = written.into_iter().map(|((step, set), slot)| (set, step, slot)).collect();
        FlushedWrites { moves, places, files }
    }

    /// Moves sets out of incomplete records, into a file of exactly those sets.
    fn move_incomplete(&mut self) -> Vec<SlabMove> {
        // The sets written in each record; a record that lacks a set of its file is incomplete.
        let mut records: BTreeMap<(usize, u64), Vec<(usize, i64)>> = BTreeMap::new();
        for ((step, set), slot) in &self.written {
            if let Some(record) = slot.record {
                records.entry((slot.file, record)).or_default().push((*set, *step));
            }
        }
        let mut moves = Vec::new();
        for ((file, _), present) in records {
            if present.len() == self.files[file].sets.len() {
                continue;
            }
            let sets: Vec<usize> = present.iter().map(|(set, _)| *set).collect();
            let step = present[0].1;
            let first = self.next_slot(&sets, sets[0], step);
            for (variable, (set, step)) in present.iter().enumerate() {
                let to = FileSlot { variable, ..first };
                if let Some(from) = self.written.insert((*step, *set), to) {
                    moves.push(SlabMove { from, to });
                }
            }
        }
        moves
    }

    /// Moves records down over those that were taken out.
    fn close_gaps(&mut self) -> Vec<SlabMove> {
        let mut moves = Vec::new();
        for (file, plan) in self.files.iter_mut().enumerate().filter(|(_, plan)| plan.has_records) {
            let filled = |record: usize| {
                let slot = |set: &usize| self.written.get(&(plan.steps[record], *set));
                plan.sets.first().and_then(slot).is_some_and(|slot| slot.file == file)
            };
            // Flushed records are visible and stay in place; of the later ones, only those still in use are kept.
            let kept: Vec<usize> =
                (0..plan.steps.len()).filter(|record| *record < plan.flushed || filled(*record)).collect();
            for (to, from) in kept.iter().enumerate().filter(|(to, from)| to != *from) {
                for (variable, set) in plan.sets.iter().enumerate() {
                    let slot = FileSlot { file, variable, record: Some(to as u64) };
                    if let Some(before) = self.written.insert((plan.steps[*from], *set), slot) {
                        moves.push(SlabMove { from: before, to: slot });
                    }
                }
            }
            plan.steps = kept.into_iter().map(|record| plan.steps[record]).collect();
        }
        moves
    }

    /// Discards one write that was not flushed. For a set with a file for each step, returns that file, which is not
    /// used again; otherwise the space is written again, or the flush closes it.
    pub fn forget(&mut self, set: usize, step: i64) -> Option<usize> {
        let slot = self.written.remove(&(step, set))?;
        let steps = &mut self.files[slot.file].steps;
        match slot.record {
            None => {
                steps.clear();
                Some(slot.file)
            }
            Some(record) => {
                let mut others = self.written.range((step, 0)..=(step, usize::MAX));
                if record + 1 == steps.len() as u64 && !others.any(|(_, other)| other.file == slot.file) {
                    steps.pop();
                }
                None
            }
        }
    }

    /// Discards the writes since the last flush. Their space is written again; a file of which nothing was flushed is
    /// abandoned.
    pub fn discard(&mut self) -> BTreeSet<usize> {
        let written = std::mem::take(&mut self.written);
        let files: BTreeSet<usize> = written.values().map(|slot| slot.file).collect();
        for file in &files {
            let plan = &mut self.files[*file];
            plan.steps.truncate(plan.flushed);
        }
        files.into_iter().filter(|file| self.files[*file].steps.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_testkit::seeded;

    /// A set and a step, the sets and the number of the file, and the record.
    type Named = (usize, i64, Vec<usize>, usize, Option<u64>);

    fn named(shown: &FlushedWrites, organisation: &Organisation) -> Vec<Named> {
        let file = |slot: &FileSlot| &organisation.files()[slot.file];
        shown
            .places
            .iter()
            .map(|(set, step, slot)| (*set, *step, file(slot).sets.clone(), file(slot).nth, slot.record))
            .collect()
    }

    #[test]
    fn levels_are_a_file_for_each_write_for_each_set_and_for_the_group() {
        let counts = [Level::One, Level::Two, Level::Three].map(|level| {
            let mut organisation = Organisation::new(level, vec![false; 3]);
            for step in 0..4 {
                for set in 0..3 {
                    organisation.place(set, step);
                }
                assert!(organisation.end_flush().moves.is_empty());
            }
            organisation.files().len()
        });
        assert_eq!(counts, [12, 3, 1]);
    }

    #[test]
    fn sets_that_are_written_at_other_steps_go_on_in_files_of_their_own() {
        let mut organisation = Organisation::new(Level::Three, vec![false; 2]);
        organisation.place(0, 0);
        let shown = organisation.end_flush();
        // Both were expected; the set that came alone is moved before any reader sees it.
        assert_eq!(shown.moves.len(), 1);
        assert_eq!(named(&shown, &organisation), [(0, 0, vec![0], 0, Some(0))]);
        for step in 1..4 {
            organisation.place(0, step);
        }
        organisation.place(1, 3);
        let shown = organisation.end_flush();
        assert!(shown.moves.is_empty());
        assert_eq!(shown.places.last().map(|(_, _, slot)| slot.record), Some(Some(0)));
    }

    #[test]
    fn a_step_that_is_written_again_or_lies_before_begins_a_file() {
        let mut organisation = Organisation::new(Level::Three, vec![false; 2]);
        let mut write = |steps: &[i64]| {
            for step in steps {
                for set in 0..2 {
                    organisation.place(set, *step);
                }
            }
            named(&organisation.end_flush(), &organisation)
        };
        assert_eq!(write(&[1, 2]).last(), Some(&(1, 2, vec![0, 1], 0, Some(1))));
        assert_eq!(write(&[2]).last(), Some(&(1, 2, vec![0, 1], 1, Some(0))));
        assert_eq!(write(&[3]).last(), Some(&(1, 3, vec![0, 1], 1, Some(1))));
        assert_eq!(write(&[0]).last(), Some(&(1, 0, vec![0, 1], 2, Some(0))));
    }

    #[test]
    fn what_is_discarded_leaves_room() {
        let mut organisation = Organisation::new(Level::Two, vec![false]);
        organisation.place(0, 1);
        organisation.end_flush();
        organisation.place(0, 2);
        organisation.place(0, 3);
        assert!(organisation.discard().is_empty());
        assert_eq!(organisation.place(0, 2).record, Some(1));
        let mut single = Organisation::new(Level::One, vec![false]);
        single.place(0, 1);
        assert_eq!(single.discard().into_iter().collect::<Vec<_>>(), [0]);
    }

    /// Random writes in random order: after the moves are made, each slot has its last write, each flushed record is
    /// complete, steps of a file ascend, and data that a flush has shown stay.
    #[test]
    fn random_writes_are_where_it_is_said() {
        for seed in 0..2_000 {
            let dice = &mut *seeded(seed);
            let level = [Level::One, Level::Two, Level::Three][dice.below(3) as usize];
            let varying: Vec<bool> = (0..1 + dice.below(4)).map(|_| dice.below(6) == 0).collect();
            let sets = varying.len();
            let mut organisation = Organisation::new(level, varying);
            let mut disk: BTreeMap<FileSlot, u64> = BTreeMap::new();
            let mut shown_before: BTreeMap<FileSlot, u64> = BTreeMap::new();
            let mut value = 0;
            for _ in 0..1 + dice.below(6) {
                let mut written: BTreeMap<(usize, i64), u64> = BTreeMap::new();
                for _ in 0..dice.below(12) {
                    let (set, step) = (dice.below(sets as u64) as usize, dice.below(8) as i64);
                    value += 1;
                    let slot = organisation.place(set, step);
                    assert!(!shown_before.contains_key(&slot), "seed {seed}: {slot:?} is shown already");
                    disk.insert(slot, value);
                    written.insert((set, step), value);
                }
                if dice.below(5) == 0 {
                    organisation.discard();
                } else {
                    let shown = organisation.end_flush();
                    for SlabMove { from, to } in &shown.moves {
                        let moved = disk.get(from).copied();
                        disk.insert(*to, moved.unwrap_or_else(|| panic!("seed {seed}: {from:?} is empty")));
                    }
                    assert_eq!(shown.places.len(), written.len(), "seed {seed}");
                    for (set, step, slot) in &shown.places {
                        assert_eq!(disk.get(slot), written.get(&(*set, *step)), "seed {seed}: {slot:?}");
                        let plan = &organisation.files()[slot.file];
                        assert_eq!(plan.sets[slot.variable], *set, "seed {seed}");
                        assert_eq!(plan.steps[slot.record.unwrap_or(0) as usize], *step, "seed {seed}");
                        shown_before.insert(*slot, disk[slot]);
                    }
                }
                for (file, plan) in organisation.files().iter().enumerate() {
                    assert!(plan.steps.is_sorted_by(|a, b| a < b), "seed {seed}: {:?}", plan.steps);
                    for record in 0..plan.flushed().len() {
                        for variable in 0..plan.sets.len() {
                            let record = plan.has_records.then_some(record as u64);
                            let slot = FileSlot { file, variable, record };
                            assert!(shown_before.contains_key(&slot), "seed {seed}: a hole at {slot:?}");
                        }
                    }
                }
                shown_before.iter().for_each(|(slot, value)| assert_eq!(disk[slot], *value, "seed {seed}"));
            }
        }
    }
}
