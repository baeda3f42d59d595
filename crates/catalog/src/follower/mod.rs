//! The index as a follower of the logs: implements the traits of [`fieldstone_journal::follow`].
//!
//! An [`IndexFollower`] borrows an [`Index`] for one call, or owns it. The feed gives it the owners of runs;
//! entries give it the runs, steps and variables that hold fields; `roles` maps keywords to those.
//!
//! ```
//! use fieldstone_catalog::engine::{Index, Sqlite};
//! use fieldstone_catalog::follower::IndexFollower;
//! use fieldstone_core::schema::Schema;
//! use fieldstone_format::Id;
//! use fieldstone_journal::follower::Follower;
//!
//! let index = Index::open(Box::new(Sqlite::memory()?), Id([7; 16]))?;
//! let schema = Schema::builtin("simulation").ok_or(fieldstone_core::Error::internal("no schema"))?;
//! let mut follower = IndexFollower::new(index, schema, 1000);
//! assert!(follower.marks()?.is_empty());
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

pub mod roles;
mod wiped;

use std::borrow::BorrowMut;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::schema::Schema;
use fieldstone_format::Id;
use fieldstone_format::catalog::RunName;
use fieldstone_format::store_record::Selection;
use fieldstone_format::version::TakeoverName;
use fieldstone_journal::feed::{Commit, EntryChange, EntryEffect, Feed, OWN_LOG, TransactionState};
use fieldstone_journal::follower::{Again, FieldLookup, Follower, Marks, Wait};
use fieldstone_journal::snapshot::{Snapshot, Wiped, first_owner, purged_beyond};

use crate::engine::{self, Dialect, FieldRow, Index, OwnerOf, Writer, dump};
use roles::CatalogLocation;

/// Rows of fields that are handed to the engine in one call.
const ROWS: usize = 4096;
/// Places that are asked about in one call.
const PLACES: usize = 256;

/// Begins a transaction that writes, however long it takes: the caller decides how to wait for other
/// processes.
pub type Insist<'a> =
    Box<dyn Fn(&mut Index, &mut dyn FnMut(&mut Index) -> Result<bool>) -> Result<bool> + 'a>;

/// An index that follows the logs.
pub struct IndexFollower<'a, I: BorrowMut<Index>> {
    index: I,
    schema: Schema,
    /// The user who reads, and owns the unflushed records.
    user: u32,
    /// The process that reads, and wrote those records.
    own: Option<Writer>,
    insist: Insist<'a>,
    feed: Option<Feed>,
    /// The transaction whose content is overlaid on the tables.
    overlay: Option<Id>,
    begun: bool,
    /// Selections of new wipes, hides and purges, about whose runs the store is to be asked.
    wiped: Vec<Selection>,
    attributes: u64,
}

impl<I: BorrowMut<Index>> fmt::Debug for IndexFollower<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexView").field("user", &self.user).field("begun", &self.begun).finish()
    }
}

impl<'a, I: BorrowMut<Index>> IndexFollower<'a, I> {
    /// A follower that waits for other processes as the database does.
    pub fn new(index: I, schema: Schema, user: u32) -> IndexFollower<'a, I> {
        IndexFollower::with(index, schema, user, Box::new(|index, begin| begin(index)))
    }

    /// A follower that uses `insist` to begin work that needs the engine exclusively.
    pub fn with(index: I, schema: Schema, user: u32, insist: Insist<'a>) -> IndexFollower<'a, I> {
        IndexFollower {
            index,
            schema,
            user,
            own: None,
            insist,
            feed: None,
            overlay: None,
            begun: false,
            wiped: Vec::new(),
            attributes: 0,
        }
    }

    /// Sets the writer of unflushed records: this process.
    #[must_use]
    pub fn of_process(self, own: Writer) -> IndexFollower<'a, I> {
        IndexFollower { own: Some(own), ..self }
    }

    /// The number of attributes applied since the follower was created.
    pub fn attributes(&self) -> u64 {
        self.attributes
    }

    fn index(&mut self) -> &mut Index {
        self.index.borrow_mut()
    }

    /// Gives the index the source of writers.
    fn set_writers(&mut self, feed: &Feed) {
        let (feed, own) = (feed.clone(), self.own.clone());
        let of = move |log: Id| match log {
            OWN_LOG => own.clone(),
            log => writer_of(feed.snapshot(), log),
        };
        self.index().set_writers(Some(Arc::new(of)));
    }

    /// Applies entries, log by log.
    fn apply_rows(&mut self, rows: &mut HashMap<Id, Vec<FieldRow>>) -> Result<()> {
        let mut logs: Vec<(Id, Vec<FieldRow>)> = rows.drain().collect();
        logs.sort_unstable_by_key(|(log, _)| *log);
        logs.iter().try_for_each(|(log, rows)| self.index().apply_entries(*log, rows))
    }

    /// Gives the index the records of a transaction again, as far as the marks say that they were applied.
    fn restore(&mut self, transaction: Id, states: &[TransactionState], marks: &Marks) -> Result<()> {
        let Some(feed) = self.feed.clone() else { return Ok(()) };
        let since = feed.taken_since(marks)?;
        let states = states.iter().filter(|state| state.transaction == transaction);
        let mut writers: Vec<Id> =
            states.flat_map(|state| &state.covers).map(|(writer, _)| *writer).collect();
        writers.sort_unstable();
        writers.dedup();
        for writer in writers {
            let last = feed.applied_of(marks, &since, writer);
            let is_part = |commit: &Result<Commit>| match commit {
                Ok(commit) => commit.transaction == Some(transaction) && commit.sequence <= last,
                Err(_) => true,
            };
            engine::restore(self.index(), transaction, &mut feed.commits(writer, 0)?.filter(is_part))?;
        }
        Ok(())
    }

    /// Gives the index the owners of runs, if there are several users. `own`: this user's unflushed records
    /// are applied, too.
    fn set_owners(&mut self, own: bool) {
        let Some(feed) = &self.feed else { return };
        let folder = feed.folder_owner();
        let of = (feed.is_shared() || (own && !feed.is_of(self.user))).then(|| {
            let (feed, schema) = (feed.clone(), self.schema.clone());
            let of = move |run: &RunName| first_owner(feed.snapshot(), &roles::owner_level(&schema, run));
            Arc::new(of) as OwnerOf
        });
        let hand_overs = feed.snapshot().hand_overs.clone();
        self.index().set_owners(of, folder, &hand_overs);
    }
}

/// The writer of a log in a snapshot; `None` if the snapshot lacks the log, or its header is damaged.
pub fn writer_of(snapshot: &Snapshot, log: Id) -> Option<Writer> {
    let header = snapshot.header(log)?;
    Writer::of(&header, snapshot.attempt_name(log).as_deref())
}

impl<I: BorrowMut<Index>> Follower for IndexFollower<'_, I> {
    fn is_shared_by_hosts(&mut self) -> bool {
        self.index().database().dialect() == Dialect::Postgres
    }

    fn marks(&mut self) -> Result<Marks> {
        self.index().watermarks()
    }

    fn applied(&mut self) -> Result<Marks> {
        self.index().applied()
    }

    fn attend(&mut self, feed: &Feed) {
        self.feed = Some(feed.clone());
        self.set_writers(feed);
        self.set_owners(false);
    }

    fn leave(&mut self) {
        self.feed = None;
        self.index().set_writers(None);
        self.index().forget_owners();
    }

    fn begin(&mut self, wait: Wait) -> Result<bool> {
        self.begun = (self.insist)(self.index.borrow_mut(), &mut |index| index.begin_apply(wait))?;
        Ok(self.begun)
    }

    fn sound(&mut self) -> Result<bool> {
        let contested = self.index().contested()?;
        if contested {
            self.index().clear_contested()?;
        }
        Ok(!contested)
    }

    fn decide(&mut self, states: &[TransactionState]) -> Result<Again> {
        // Otherwise a part of it is another's by now.
        if !engine::heeds_hand_overs(self.index())? {
            return Ok(Again::Everything);
        }
        let marks = self.index().watermarks()?;
        // An engine without marks holds nothing of before them.
        let mut shown = Vec::new();
        if let Some(feed) = self.feed.as_ref().filter(|_| !marks.is_empty()) {
            [self.wiped, shown] = feed.snapshot().wipes.beyond(&marks, feed.snapshot());
            // A purge drops removals with all that they hide: who has not met them yet asks what is there.
            self.wiped.extend(purged_beyond(&marks, feed.snapshot())?);
        }
        let mut decided = self.index().apply_decisions(states)?;
        if !decided.rebuild && !decided.lacking.is_empty() {
            for transaction in std::mem::take(&mut decided.lacking) {
                self.restore(transaction, states, &marks)?;
            }
            let rest = self.index().apply_decisions(states)?;
            decided.rebuild = rest.rebuild || !rest.lacking.is_empty();
            decided.fields.extend(rest.fields);
        }
        if let Some(feed) = self.feed.clone()
            && self.index().missed_decision(|id| feed.forgets(id))
        {
            return Ok(Again::Everything);
        }
        Ok(if decided.rebuild { Again::Everything } else { Again::Entries(decided.fields, shown) })
    }

    fn entries(&mut self, entries: &mut dyn Iterator<Item = Result<EntryChange>>) -> Result<u64> {
        // Entries of many logs may come mixed; the index takes those of one log at a time.
        let (mut rows, mut waiting, mut seen) = (HashMap::<Id, Vec<FieldRow>>::new(), 0, 0);
        for entry in entries {
            let entry = entry?;
            seen += 1;
            let Some(place) = roles::place_of(&self.schema, &entry.key) else { continue };
            let is_field = entry.effect == EntryEffect::Field;
            if entry.wiped != Wiped::No && is_field {
                self.index().held_fields().note_written(&place.run, entry.time)?;
            }
            if entry.wiped == Wiped::Yes {
                continue;
            }
            rows.entry(entry.writer).or_default().push(FieldRow {
                run: place.run,
                variable: place.variable,
                step: place.step,
                user: entry.owner,
                sequence: entry.sequence,
                time: entry.time,
                transaction: entry.transaction,
                // The store is asked then, as after a removal: whole generations are aged, or none of them; and a newer attempt
                // may hide what an older one flushed.
                removal: !is_field || entry.wiped == Wiped::Unsure,
                dtype: entry.dtype,
                shape: entry.shape,
            });
            waiting += 1;
            if waiting >= ROWS {
                self.apply_rows(&mut rows)?;
                waiting = 0;
            }
        }
        self.apply_rows(&mut rows)?;
        Ok(seen)
    }

    fn commit(&mut self, commit: &Commit) -> Result<()> {
        self.index().apply_commit(commit)
    }

    fn mark(&mut self, log: Id, sequence: u64) -> Result<()> {
        self.index().set_watermark(log, sequence)
    }

    fn take(&mut self, newest: &[TakeoverName], logs: &[Id]) -> Result<()> {
        self.index().set_taken(newest, logs)
    }

    fn ask(&mut self, fields: &dyn FieldLookup, transaction: Option<Id>) -> Result<()> {
        let wipes = std::mem::take(&mut self.wiped);
        if !wipes.is_empty() {
            let schema = self.schema.clone();
            wiped::ask_again(self.index(), &schema, &wipes, fields)?;
        }
        loop {
            // An answer may raise another question: everything is known once none is left.
            let places = self.index().rechecks(PLACES)?;
            if places.is_empty() {
                break;
            }
            for asked in &places {
                let place = CatalogLocation {
                    run: asked.run.clone(),
                    variable: asked.variable.clone(),
                    step: asked.step,
                };
                let standing = roles::standing(&self.schema, fields, &place, asked.array, transaction)?;
                self.index().set_held(asked, &standing)?;
            }
        }
        if self.overlay.is_some() { self.index().finish_overlay() } else { Ok(()) }
    }

    fn revision(&mut self) -> Result<u64> {
        self.index().revision()
    }

    fn end(&mut self) -> Result<()> {
        self.begun = false;
        self.index().end_apply()?;
        self.attributes += self.index.borrow().attributes_applied();
        Ok(())
    }

    fn abort(&mut self) -> Result<()> {
        (self.begun, self.overlay) = (false, None);
        self.wiped.clear();
        self.index().abort()
    }

    fn clear(&mut self) -> Result<()> {
        self.index().clear()
    }

    fn overlay(&mut self, transaction: Option<Id>, own: &[Commit]) -> Result<bool> {
        self.set_owners(true);
        let states = self.feed.iter().filter(|_| transaction.is_some()).flat_map(Feed::decisions);
        if let Some(state) = states.into_iter().find(|state| Some(state.transaction) == transaction) {
            self.index().know(state);
        }
        let laid = (self.insist)(self.index.borrow_mut(), &mut |index| index.overlay(transaction, own))?;
        (self.begun, self.overlay) = (laid, transaction.filter(|_| laid));
        Ok(laid)
    }

    fn dump(&mut self) -> Result<String> {
        if self.begun {
            return dump(self.index());
        }
        self.index().begin_read()?;
        let lines = dump(self.index());
        self.index().end_read()?;
        lines
    }
}
