//! Flushes: the ranks make their writes durable, one commit of rank 0 adds them to the store, then the files show them
//!

use fieldstone_array::distributed::files::sums::BLOCK;
use fieldstone_array::distributed::group::{DurableArray, agreement};
use fieldstone_core::dtype::ByteOrder;
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{ArrayGroup as GroupRecord, BasicPattern, HistoryDecl};
use fieldstone_store::api::{ArchiveOptions, FieldAccess, IfExists, StoredArraySpec, Value};

use super::each;
use super::inner::{JobInner, JobState, OpenGroup};
use super::pending::LoggedWrites;
use super::report::Phase;
use super::source::pairs;
use super::spec;
use crate::Session;
use crate::run::Run;

/// The outcome of a commit.
enum CommitOutcome {
    Made,
    NotMade(Error),
    /// The commit may have been made: nothing that it names may change.
    Unknown(Error),
}

impl CommitOutcome {
    fn of(outcome: Result<()>, failed: fn(Error) -> CommitOutcome) -> CommitOutcome {
        outcome.map_or_else(failed, |()| CommitOutcome::Made)
    }
}

impl OpenGroup {
    /// Records this rank's part of sets whose views were not known; true for the first views of any set.
    fn note_views(&mut self) -> bool {
        let mut is_first = false;
        for (number, set) in self.record.sets.iter_mut().enumerate().filter(|(_, set)| set.view.is_empty()) {
            let Some(view) = self.group.view(number) else { continue };
            set.view = view.describe();
            if view.word() == "irregular" {
                set.pattern = BasicPattern::Irregular;
            }
            is_first |= !set.view.is_empty();
        }
        is_first
    }
}

impl JobInner {
    pub fn flush(&self, state: &mut JobState) -> Result<()> {
        agreement::same_call(&self.team, "flush", "flushes", Ok(0))?;
        let prepared = self.timed(state, Phase::Sync, |state| {
            let mut files = state.groups.iter().filter_map(|open| open.group.files());
            if !state.flagged && self.team.rank() == 0 && files.any(|files| !files.is_flushed()) {
                let _ = self.folder().map(|folder| folder.flag(self.env()));
                state.flagged = true;
            }
            let mut durable = Vec::new();
            for (number, open) in state.groups.iter_mut().enumerate() {
                if open.group.files().is_some_and(|files| !files.is_flushed()) {
                    durable.push((number, open.group.prepare()?));
                }
            }
            if state.logged.is_empty() {
                return Ok(durable);
            }
            let flushed = self.flush_logged(state);
            self.team.agree("flush", flushed).map(|()| durable)
        });
        let outcome = prepared.map_or_else(CommitOutcome::NotMade, |durable| {
            let histories =
                self.timed(state, Phase::Sync, |_| self.pending.finish(&self.team, &*self.env().disk));
            match self.writable {
                true => self.timed(state, Phase::Commit, |state| self.make_known(state, &durable, histories)),
                false => CommitOutcome::Made,
            }
        });
        match outcome {
            CommitOutcome::Made => {}
            CommitOutcome::Unknown(error) => {
                state.unshown = true;
                // The commit may have been made: whatever it may name stays, and is not overwritten.
                for open in &mut state.groups {
                    open.declared = false;
                    let _ = open.group.leave_files();
                }
                let _ = self.drop_logged(state);
                return Err(error);
            }
            CommitOutcome::NotMade(error) => {
                // The first error is the one to report.
                for open in &mut state.groups {
                    let _ = open.group.undo();
                    let _ = open.group.discard();
                }
                let _ = self.drop_logged(state);
                return Err(error);
            }
        }
        state.logged = LoggedWrites::default();
        self.timed(state, Phase::Commit, |state| {
            let shown = each(state.groups.iter_mut().map(|open| open.group.show()));
            state.unshown = shown.is_err();
            shown
        })
    }

    /// Collective: rank 0 adds the durable writes to the store and makes them visible in one commit.
    fn make_known(
        &self,
        state: &mut JobState,
        durable: &[(usize, Vec<DurableArray>)],
        histories: Vec<HistoryDecl>,
    ) -> CommitOutcome {
        let (taken, committed) = match self.team.rank() {
            0 => match self.take(state, durable, histories) {
                Ok(()) => (Ok(()), self.commit(state)),
                Err(error) => {
                    // The records that the store took from this flush name files that are about to be removed; files
                    // that the store keeps are left alone.
                    state.groups.iter_mut().for_each(|open| open.declared = false);
                    (Err(error), self.store.discard(self.options.session.clone()))
                }
            },
            _ => (Ok(()), Ok(())),
        };
        // One reduction in the common case: it says whether rank 0 failed, and in which part.
        let failed = u64::from(taken.is_err()) + 2 * u64::from(committed.is_err());
        match self.team.max("flush", Ok(vec![failed])) {
            Ok(failed) => match failed[0] {
                0 => CommitOutcome::Made,
                1 => CommitOutcome::of(self.team.agree("flush", taken), CommitOutcome::NotMade),
                _ => CommitOutcome::of(self.team.agree("flush", committed), CommitOutcome::Unknown),
            },
            Err(error) => CommitOutcome::Unknown(error),
        }
    }

    /// On rank 0: commits the records that the store was given.
    fn commit(&self, state: &JobState) -> Result<()> {
        self.store.flush(self.options.session.clone())?;
        state.logged.transaction.map_or(Ok(()), |own| self.store.decide(own, true))
    }

    /// On rank 0: gives the store the records of durable writes.
    fn take(
        &self,
        state: &mut JobState,
        durable: &[(usize, Vec<DurableArray>)],
        histories: Vec<HistoryDecl>,
    ) -> Result<()> {
        if !durable.is_empty() {
            // Other users may have made folders since the last check.
            self.trusted_folder()?;
        }
        self.archive(state, durable)?;
        // If another job has kept a partition in the meantime, that one counts.
        let catalog = self.store.catalog();
        let session = &state.session(&self.options);
        let known = if histories.is_empty() { Vec::new() } else { catalog.histories(session)? };
        let fresh = histories.into_iter().filter(|own| !known.iter().any(|other| other.path == own.path));
        catalog.create_histories(fresh.collect(), session)
    }

    /// How a write treats an existing step: as the job says, or its run; `None` if only the store decides.
    pub fn if_exists(&self, session: &Session) -> Result<Option<IfExists>> {
        match self.options.if_exists {
            None => self.store.catalog().if_exists_of(&self.run, session),
            said => Ok(said),
        }
    }

    fn archive(&self, state: &mut JobState, durable: &[(usize, Vec<DurableArray>)]) -> Result<()> {
        let session = &state.session(&self.options);
        let if_exists = self.if_exists(session)?;
        let options = ArchiveOptions { session: session.clone(), if_exists, ..ArchiveOptions::default() };
        // All groups that the job declared, also those that received no writes.
        for open in &mut state.groups {
            let is_viewed = open.note_views();
            if !open.declared || is_viewed {
                self.declare(open, session)?;
                open.declared = true;
            }
        }
        for (number, arrays) in durable {
            let folder = self.folder()?.of_group(*number);
            let open = &mut state.groups[*number];
            for DurableArray { set, shape, holes } in arrays {
                let kept = &open.record.sets[set.set];
                let key = self.key(&kept.variable.name, set.step)?;
                let key = pairs(&key);
                let dtype = kept.dtype.with_order(ByteOrder::Big);
                if set.extent.len == 0 {
                    self.store.archive(&key, Value::Array { data: &[], dtype, shape }, &options)?;
                    continue;
                }
                let fill = open.group.decl(set.set).fill.clone().map(|mut fill| {
                    if !dtype.is_native() {
                        dtype.swap_bytes(&mut fill);
                    }
                    fill
                });
                let stored = StoredArraySpec {
                    path: &format!("{folder}/{}", set.file),
                    offset: set.extent.offset,
                    dtype,
                    shape,
                    fill: fill.as_deref(),
                    block: BLOCK * dtype.size() as u64,
                    sums: &set.sums,
                    holes: *holes,
                };
                self.store.archive_stored(&key, &stored, &options)?;
            }
        }
        Ok(())
    }

    /// Declares a group to the catalog, first with the views that another job has recorded.
    fn declare(&self, open: &mut OpenGroup, session: &Session) -> Result<()> {
        let known = self.declared(&open.record.name)?.map_or_else(Vec::new, |known| known.sets);
        for set in &mut open.record.sets {
            let viewed = known.iter().find(|known| known.variable == set.variable && !known.view.is_empty());
            if let Some(known) = viewed {
                (set.pattern, set.view) = (known.pattern, known.view.clone());
            }
        }
        self.declare_variables(&open.record)?;
        Run::new(&self.store, self.run.clone(), session).create_array_group(open.record.clone())
    }

    /// Declares the variables of a group to the catalog. The variable of a set with varying extents has the shape of
    /// one of its fields; the group's record was compared, not this shape.
    pub fn declare_variables(&self, record: &GroupRecord) -> Result<()> {
        let run = self.catalog_run();
        let known = self.declared(&record.name)?.map_or_else(Vec::new, |known| known.sets);
        let mut variables = spec::variables_of(record)?;
        variables.retain(|decl| {
            decl.shape.is_some() || known.iter().all(|set| set.variable.name != decl.variable.name)
        });
        run.create_variables(variables)
    }
}
