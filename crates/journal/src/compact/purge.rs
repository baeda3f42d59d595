//! Purges: takeovers that leave something out (takeovers.md, 10). This module plans one before anything is written.
//!
//! Invariants:
//! * a plan holds for its inputs and its snapshot alone, and writing decides the same again (R62);
//! * of a file, exactly the ranges that entries name which stay are copied;
//! * a data log goes only if no entry that stays names it, or if its live ranges are copied (R65).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fieldstone_core::Result;
use fieldstone_core::planted::{self, Planted};
use fieldstone_format::entry::{Entry, Location};
use fieldstone_format::{Id, data, keys};

use super::inputs::{Inputs, name_of_log, weight};
use super::plan::{PurgePlan, Share, Spans};
use super::walk::{Judge, PurgeWalk, Verdict, inputs_of};
use crate::entry_source::EntrySource;
use crate::medium::Medium;
use crate::snapshot::Snapshot;

/// Most bytes that one purge copies, so that little room is needed until the replaced files go.
pub const PURGE_EXTRA: u64 = 256 << 20;

/// A file is rewritten if more than half of it is dead, and more than these bytes are.
const DEAD_MIN: u64 = 64 << 10;

impl PurgePlan {
    /// Plans a purge of these inputs; `each` is called with each key.
    pub fn find(
        (snapshot, medium): (&Snapshot, &dyn Medium),
        (inputs, beside): (&Inputs, &BTreeMap<String, u64>),
        now: i64,
        judge: &mut dyn Judge,
        each: &mut dyn FnMut() -> Result<()>,
    ) -> Result<PurgePlan> {
        let mut plan = PurgePlan { beside: beside.clone(), ..PurgePlan::default() };
        let mut walk = PurgeWalk::new(snapshot, (inputs.user, now), inputs.sources(snapshot), judge)?;
        while walk.next_key()? {
            each()?;
            plan.note_named(&walk)?;
            let before = plan.versions;
            for (met, verdict) in walk.entries.iter().zip(&walk.verdicts).filter(|(met, _)| met.is_input) {
                if *verdict == Verdict::Stays {
                    plan.keep(snapshot, met.source, &Entry::decode(&met.value)?)?;
                } else {
                    plan.versions += 1;
                    let entry = Entry::decode(&met.value)?;
                    if let Location::Inline { data, .. } = &entry.location {
                        plan.inline += data.len() as u64;
                    }
                    if let Some((file, ..)) = entry.location.own_range() {
                        plan.erasure.files.insert((snapshot.holder(met.source, &entry)?, file));
                    }
                    *plan.of_sources.entry(met.source).or_default() += 1;
                }
            }
            if plan.versions > before {
                plan.fields += 1;
                let dataset = &walk.key[..keys::level_ends(&walk.key)?[0]];
                if !plan.datasets.contains(dataset) {
                    plan.datasets.insert(dataset.to_vec());
                }
            }
        }
        plan.damaged = std::mem::take(&mut walk.damaged);
        if !walk.is_whole() {
            plan.beside.clear();
        }
        match walk.eraser() {
            Some(eraser) => plan.find_erased(inputs, medium, eraser)?,
            None => plan.erasure.files.clear(),
        }
        drop(walk);
        plan.live.values_mut().for_each(Spans::merge);
        plan.weigh(snapshot, inputs)?;
        plan.leave_damaged(snapshot, inputs, now, judge)?;
        Ok(plan)
    }

    /// Takes files of arrays that entries of a key name, and that stay, out of those that go.
    fn note_named(&mut self, walk: &PurgeWalk<'_>) -> Result<()> {
        if self.beside.is_empty() {
            return Ok(());
        }
        for (met, verdict) in walk.entries.iter().zip(&walk.verdicts) {
            if (*verdict == Verdict::Stays || !met.is_input)
                && let Location::Grown(grown) = Entry::decode(&met.value)?.location
                && !planted::is(Planted::ArrayFileFreed)
            {
                self.beside.remove(&grown.path);
            }
        }
        Ok(())
    }

    /// Leaves data logs as they are of which anything that would be copied does not match its checksum (R19).
    fn leave_damaged(
        &mut self,
        snapshot: &Snapshot,
        inputs: &Inputs,
        now: i64,
        judge: &mut dyn Judge,
    ) -> Result<()> {
        if self.condemned.iter().all(|file| self.live(*file) == 0) {
            return Ok(());
        }
        let mut damaged = BTreeSet::new();
        let mut walk = PurgeWalk::new(snapshot, (inputs.user, now), inputs.sources(snapshot), judge)?;
        while walk.next_key()? {
            for i in 0..walk.entries.len() {
                let met = &walk.entries[i];
                let entry = Entry::decode(&met.value)?;
                let Some((file, ..)) = entry.location.own_range().filter(|_| met.is_input) else { continue };
                let file = (snapshot.holder(met.source, &entry)?, file);
                let is_copied = walk.verdicts[i] == Verdict::Stays && self.condemned.contains(&file);
                if is_copied && !damaged.contains(&file) && !walk.is_sound(i)? {
                    damaged.insert(file);
                }
            }
        }
        if !damaged.is_empty() {
            self.unsound = damaged;
            self.weigh(snapshot, inputs)?;
        }
        Ok(())
    }

    /// Notes the bytes of an entry that stays.
    fn keep(&mut self, snapshot: &Snapshot, source: usize, entry: &Entry) -> Result<()> {
        if let Some((file, begin, length)) = entry.location.own_range() {
            let holder = snapshot.holder(source, entry)?;
            self.live.entry((holder, file)).or_default().add(begin, begin.saturating_add(length));
        }
        Ok(())
    }

    /// Weighs each input: whether anything is to be done for it.
    fn weigh(&mut self, snapshot: &Snapshot, inputs: &Inputs) -> Result<()> {
        (self.copied, self.freed, self.files, self.index) = (0, self.inline, 0, 0);
        self.condemned.clear();
        self.worth.clear();
        let mut dropped: HashMap<String, u64> = HashMap::new();
        for (source, count) in &self.of_sources {
            let name = match &snapshot.sources[*source] {
                EntrySource::Segment(segment, _) => name_of_log(segment.writer),
                EntrySource::Takeover(takeover) => takeover.shown.clone(),
            };
            *dropped.entry(name).or_default() += count;
        }
        for ended in &inputs.logs {
            let writer = ended.log.writer;
            let name = name_of_log(writer);
            let payload: u64 = ended.commits.iter().map(|commit| commit.payload.1).sum();
            let age = (true, ended.commits.first().map_or(0, |commit| commit.stamp));
            let index = ended.bytes().saturating_sub(payload);
            let share = Share { copied: self.live((writer, 0)), index, files: 1, age };
            let data_logs = &ended.log.record.data_logs;
            let is_worth = dropped.contains_key(&name)
                || self.erasure.inputs.contains(&name)
                || self.must_go((writer, 0), payload);
            self.share((name, share), payload, is_worth, snapshot, [(writer, &data_logs[..])])?;
        }
        for takeover in &inputs.takeovers {
            let own = &takeover.record.data_logs;
            let payload = own.iter().map(|(_, length)| length.saturating_sub(data::HEADER_LEN)).sum();
            let copied = own.iter().map(|(number, _)| self.live((takeover.header.id, *number))).sum();
            let (files, age) = (1 + own.len() as u64, (false, takeover.number()));
            let share = Share { copied, index: takeover.bytes, files, age };
            let is_worth = dropped.contains_key(&takeover.shown)
                || self.erasure.inputs.contains(&takeover.shown)
                || self.erasure.all_dead && copied < payload
                || is_dead(payload, copied);
            let mut rows = Vec::new();
            takeover.each_log(|log| {
                rows.push(log);
                Ok(())
            })?;
            let data_logs = rows.iter().map(|log| (log.writer, &log.row.data_logs[..]));
            self.share((takeover.shown.clone(), share), payload, is_worth, snapshot, data_logs)?;
        }
        self.add_beside(inputs);
        Ok(())
    }

    /// Weighs files of arrays: a takeover has to name them, of the smallest input where nothing else is to be done.
    fn add_beside(&mut self, inputs: &Inputs) {
        if self.beside.is_empty() {
            return;
        }
        self.files += self.beside.len() as u64;
        self.freed += self.beside.values().sum::<u64>();
        if !self.worth.is_empty() {
            return;
        }
        let logs = inputs.logs.iter().map(|ended| (ended.bytes(), name_of_log(ended.log.writer)));
        let takeovers = inputs.takeovers.iter().map(|takeover| (weight(takeover), takeover.shown.clone()));
        if let Some((bytes, name)) = logs.chain(takeovers).min() {
            self.worth.insert(name, Share { copied: bytes, ..Share::default() });
        }
    }

    /// Weighs an input with this payload and these data logs of writers.
    fn share<'a>(
        &mut self,
        (name, mut share): (String, Share),
        payload: u64,
        mut is_worth: bool,
        snapshot: &Snapshot,
        data_logs: impl IntoIterator<Item = (Id, &'a [(u32, u64)])>,
    ) -> Result<()> {
        let mut freed = payload.saturating_sub(share.copied);
        for (writer, numbers) in data_logs {
            for (number, length) in numbers {
                let file = (writer, *number);
                let (live, whole) = (self.live(file), length.saturating_sub(data::HEADER_LEN));
                // An acceptance names its file.
                let is_gone = live == 0 || is_dead(whole, live) || self.must_go(file, whole);
                let stays = snapshot.accepted.concerns(writer, *number) || self.unsound.contains(&file);
                if stays || !is_gone {
                    continue;
                }
                is_worth = true;
                share.copied += live;
                freed += if live == 0 { *length } else { whole.saturating_sub(live) };
                share.files += 1;
                self.condemned.insert(file);
            }
        }
        if is_worth {
            self.copied += share.copied;
            self.freed += freed;
            self.index += share.index;
            self.files += share.files;
            self.worth.insert(name, share);
        }
        Ok(())
    }
}

/// Whether so much of a file is dead that the rest is rewritten.
fn is_dead(whole: u64, live: u64) -> bool {
    let dead = whole.saturating_sub(live);
    dead > DEAD_MIN && dead > live
}

impl Inputs {
    /// By source of a snapshot, whether it is an input.
    pub fn sources(&self, snapshot: &Snapshot) -> Vec<bool> {
        let logs: HashSet<Id> = self.logs.iter().map(|log| log.log.writer).collect();
        let takeovers: HashSet<u64> = self.takeovers.iter().map(|takeover| takeover.number()).collect();
        inputs_of(snapshot, self.user, |writer| logs.contains(&writer), |number| takeovers.contains(&number))
    }
}
