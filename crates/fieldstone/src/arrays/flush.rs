//! Flushes: what ranks wrote becomes durable, then known to the store by one commit of rank 0, then shown by files.

use fieldstone_array::distributed::files::sums::BLOCK;
use fieldstone_array::distributed::group::{DurableArray, agreement};
use fieldstone_array::distributed::view::View;
use fieldstone_core::Result;
use fieldstone_core::dtype::ByteOrder;
use fieldstone_format::Id;
use fieldstone_format::catalog::{ArrayGroup as GroupRecord, BasicPattern, HistoryDecl};
use fieldstone_store::api::{ArchiveOptions, Exist, StoredArraySpec, Value};

use super::each;
use super::inner::{JobInner, JobState, OpenGroup, group_folder};
use super::pending::LoggedWrites;
use super::report::Phase;
use super::source::pairs;
use super::spec;
use crate::run::Run;

impl JobInner {
    pub fn flush(&self, state: &mut JobState) -> Result<()> {
        agreement::same_call(&self.team, "flush", "flushes", Ok(0))?;
        let prepared = self.timed(state, Phase::Sync, |state| {
            let mut durable = Vec::new();
            for (number, open) in state.groups.iter_mut().enumerate() {
                if open.group.files().is_some_and(|files| !files.is_flushed()) {
                    durable.push((number, open.group.prepare()?));
                }
            }
            let flushed = self.flush_logged(state);
            self.team.agree("flush", flushed).map(|()| durable)
        });
        let outcome = prepared.and_then(|durable| {
            let histories = self.timed(state, Phase::Sync, |_| self.finish_histories())?;
            if !self.writable {
                return Ok(());
            }
            self.timed(state, Phase::Commit, |state| {
                let taken = match self.team.rank() {
                    0 => self.take(state, &durable, histories),
                    _ => Ok(()),
                };
                let agreed = self.team.agree("flush", taken);
                if agreed.is_err() && self.team.rank() == 0 {
                    // Whoever failed: what the store took of this flush names files that are about to go.
                    self.store.discard(self.options.transaction)?;
                    state.groups.iter_mut().for_each(|open| open.declared = false);
                }
                agreed
            })
        });
        if let Err(error) = outcome {
            // The first error is the one to be reported.
            for open in &mut state.groups {
                let _ = open.group.undo();
                let _ = open.group.discard();
            }
            let _ = self.drop_logged(state);
            return Err(error);
        }
        if let Err(error) = self.timed(state, Phase::Commit, |state| self.commit(state)) {
            // Nobody knows whether the commit was made: what it may name stays, and is not written into.
            for open in &mut state.groups {
                open.declared = false;
                let _ = open.group.leave_files();
            }
            let _ = self.drop_logged(state);
            return Err(error);
        }
        state.logged = LoggedWrites::default();
        self.timed(state, Phase::Commit, |state| each(state.groups.iter_mut().map(|open| open.group.show())))
    }

    /// Collective: what rank 0 gave to the store becomes visible, in one commit.
    fn commit(&self, state: &JobState) -> Result<()> {
        let committed = match (self.team.rank(), self.writable) {
            (0, true) => {
                self.store.flush(self.options.transaction).and_then(|()| match state.logged.transaction {
                    Some(own) => self.store.decide(own, true),
                    None => Ok(()),
                })
            }
            _ => Ok(()),
        };
        self.team.agree("flush", committed)
    }

    /// On rank 0: gives the store what was made durable.
    fn take(
        &self,
        state: &mut JobState,
        durable: &[(usize, Vec<DurableArray>)],
        histories: Vec<HistoryDecl>,
    ) -> Result<()> {
        self.archive(state, durable)?;
        // One that another job has kept meanwhile stands.
        let catalog = self.store.catalog();
        let transaction = state.logged.transaction.or(self.options.transaction);
        let known = if histories.is_empty() { Vec::new() } else { catalog.histories(transaction)? };
        let fresh = histories.into_iter().filter(|own| !known.iter().any(|other| other.path == own.path));
        catalog.create_histories(fresh.collect(), transaction)
    }

    /// What a write does where its step is there: as the job says, or its run; `None` where only the store may.
    pub fn exist(&self, transaction: Option<Id>) -> Result<Option<Exist>> {
        match self.options.exist {
            None => self.store.catalog().exist_of(&self.run, transaction),
            said => Ok(said),
        }
    }

    fn archive(&self, state: &mut JobState, durable: &[(usize, Vec<DurableArray>)]) -> Result<()> {
        let transaction = state.logged.transaction.or(self.options.transaction);
        let exist = self.exist(transaction)?;
        let options = ArchiveOptions { transaction, exist, ..ArchiveOptions::default() };
        let logged = state.logged.groups();
        for number in durable.iter().map(|(number, _)| *number).chain(logged) {
            let open = &mut state.groups[number];
            if !open.declared {
                self.declare(open, transaction)?;
                open.declared = true;
            }
        }
        for (number, arrays) in durable {
            let (_, within) = self.folder()?;
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
                    path: &format!("{within}/{}/{}", group_folder(*number), set.file),
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

    /// Declares a group to the catalog, with what is known of views by now.
    fn declare(&self, open: &mut OpenGroup, transaction: Option<Id>) -> Result<()> {
        let views: Vec<Option<View>> =
            (0..open.record.sets.len()).map(|set| open.group.view(set).cloned()).collect();
        for (set, view) in open.record.sets.iter_mut().zip(views) {
            if let (true, Some(view)) = (set.view.is_empty(), view) {
                set.view = view.describe();
                if view.word() == "irregular" {
                    set.pattern = BasicPattern::Irregular;
                }
            }
        }
        self.declare_variables(&open.record)?;
        Run::new(&self.store, self.run.clone(), transaction).create_array_group(open.record.clone())
    }

    /// Declares the variables of a group to the catalog. A set whose extents vary, which has fields, is there with the
    /// shape of one of them: what was compared is the group's record.
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
