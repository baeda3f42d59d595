//! Attributes that an erasure takes: those of a request that nothing shows any more (R36).
//!
//! The engine says which rows are shown; every other row of a selected run, variable and step, in a log that the look knew, is
//! hidden: deleted, or replaced. Invariants:
//! * nothing is erased on the word of a commit that may vanish, or of a transaction that can be switched off (R17, R63);
//! * a row that the look did not know stays.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fieldstone_core::request::{Request, Values};
use fieldstone_core::schema::{OneOf, Schema, Selection};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeBatch, Record, RunName, erase_rows, is_catalog};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::Session;
use fieldstone_journal::compact::{ErasedSide, SideCommit};
use fieldstone_journal::feed::{Commit, Feed};
use fieldstone_journal::snapshot::Snapshot;

use crate::engine::{Flow, Index, Probe, Tables};
use crate::follower::roles;
use crate::live::Catalog;
use crate::reader::Visibility;

/// Rows of a record, by log, sequence and number of the record.
type RowsOf = HashMap<(Id, u64, u32), HashSet<u32>>;

/// The hidden attributes of requests.
#[derive(Debug)]
pub struct HiddenAttributes {
    schema: Schema,
    /// Of each request its own, and those of its bounds: a row has to match all of them.
    selections: Vec<Vec<Selection>>,
    user: u32,
    /// Selected rows that are shown.
    shown: RowsOf,
    /// Their number.
    visible: u64,
    feed: Feed,
    /// Logs that have ended, and are not taken over.
    ended: HashSet<Id>,
    /// The reason why nothing goes, if there is one.
    blocked: Option<(String, String)>,
    /// Whether a run belongs to another user.
    foreign: HashMap<RunName, bool>,
}

impl Catalog {
    /// The hidden attributes of requests that list values, as of now. Everything that this process flushed counts.
    pub fn hidden_attributes(&self, requests: &[Request], session: &Session) -> Result<HiddenAttributes> {
        let reader = self.reader();
        let journal = &reader.store.journal;
        let (schema, now) = (journal.schema().now(), journal.env().clock.now());
        let selections = requests.iter().map(|request| {
            let all = std::iter::once(request).chain(request.bounds());
            all.map(|one| schema.select_at(one, now)).collect::<Result<Vec<_>>>()
        });
        let selections = selections.collect::<Result<Vec<_>>>()?;
        let moment = reader.consistent_read(Visibility::Synced)?;
        let feed = moment.seen.feed.clone();
        let ended = {
            let looks = journal.looks();
            let refresher = looks.refresher().lock();
            let ended = feed.snapshot().logs.iter().filter(|log| refresher.ended(log).is_some());
            ended.map(|log| log.writer).collect()
        };
        let user = reader.store.user(session);
        let mut hidden = HiddenAttributes {
            schema,
            selections,
            user,
            shown: RowsOf::new(),
            visible: 0,
            feed,
            ended,
            blocked: None,
            foreign: HashMap::new(),
        };
        hidden.find_blocking()?;
        let (shown, visible) =
            reader.look_from(moment, Visibility::Synced, &mut |index| hidden.shown(index))?;
        (hidden.shown, hidden.visible) = (shown, visible);
        Ok(hidden)
    }

    /// Removes the engine that this user's processes share, so that the next read builds one that never held what the logs have
    /// lost; on a server it is built at once, and its name is returned.
    pub fn renew_engine(&self) -> Result<Option<String>> {
        self.reader().renew()
    }
}

impl HiddenAttributes {
    /// Selected attributes that are shown.
    pub fn visible(&self) -> u64 {
        self.visible
    }

    /// The side records of a commit without the values of hidden rows; `None` if all stay.
    pub fn erase(&mut self, commit: &SideCommit, records: &[SideRecord]) -> Result<Option<ErasedSide>> {
        if self.blocked.is_some() {
            return Ok(None);
        }
        self.without_hidden(commit, records)
    }

    /// Files that still hold hidden rows, with the reasons. Of a dry run (not `done`) only those that would.
    pub fn left(&mut self, feed: &Feed, done: bool) -> Result<BTreeSet<(String, String)>> {
        let mut left = BTreeSet::new();
        let mut any = false;
        for (writer, _) in feed.logs() {
            for commit in feed.commits(writer, 0)? {
                let commit = commit?;
                let of = SideCommit {
                    writer,
                    sequence: commit.sequence,
                    transaction: commit.transaction.filter(|_| commit.order.is_none()),
                };
                if self.without_hidden(&of, &commit.side)?.is_none() {
                    continue;
                }
                any = true;
                let why = self.why(feed.snapshot(), &commit);
                let is_open =
                    commit.transaction.is_some_and(|id| !feed.snapshot().has_ended(id, commit.owner));
                if let Some(why) = why.or_else(|| done.then_some(OTHERWISE)).filter(|_| !is_open) {
                    left.insert((file_of(feed.snapshot(), writer), why.to_owned()));
                }
            }
        }
        left.extend(self.blocked.clone().filter(|_| any));
        Ok(left)
    }

    /// The reason why hidden rows of a commit stay.
    fn why(&self, snapshot: &Snapshot, commit: &Commit) -> Option<&'static str> {
        let is_living = snapshot.log(commit.writer).is_some() && !self.ended.contains(&commit.writer);
        match commit.transaction {
            _ if commit.owner != self.user => Some("another user's log holds it: that user can erase it"),
            _ if is_living => Some("a process still writes this log: close it, and erase again"),
            Some(id) if !is_sealed(snapshot, id, commit.owner) => {
                Some("its transaction can be switched off yet: erase again in two days")
            }
            _ => None,
        }
    }

    fn without_hidden(&mut self, commit: &SideCommit, records: &[SideRecord]) -> Result<Option<ErasedSide>> {
        if !self.knows(commit) {
            return Ok(None);
        }
        let mut erased = ErasedSide { records: records.to_vec(), ..ErasedSide::default() };
        for (number, side) in records.iter().enumerate().filter(|(_, side)| is_catalog(side)) {
            let shown = self.shown.remove(&(commit.writer, commit.sequence, number as u32));
            let (mut of_run, mut level) = (None, None);
            let mut is_gone = |batch: &AttributeBatch, row: usize| {
                let is_shown = shown.as_ref().is_some_and(|rows| rows.contains(&(row as u32)));
                let is_own = match of_run {
                    Some(is_own) => is_own,
                    None => *of_run.insert(!self.is_foreign(&batch.run)),
                };
                let is_gone = is_own && !is_shown && self.selects(batch, row);
                if is_gone {
                    level.get_or_insert_with(|| roles::owner_level(&self.schema, &batch.run));
                }
                Ok(is_gone)
            };
            let outcome = match erase_rows(side, &mut is_gone) {
                // Records of a later release, and damaged ones, stay as they are.
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Conflict) => None,
                outcome => outcome?,
            };
            if let Some(shown) = shown {
                self.shown.insert((commit.writer, commit.sequence, number as u32), shown);
            }
            if let Some((record, new)) = outcome {
                erased.records[number] = record;
                erased.rows += new;
                erased.datasets.extend(level);
            }
        }
        Ok((erased.rows > 0).then_some(erased))
    }

    /// Whether the look knew a commit.
    fn knows(&self, commit: &SideCommit) -> bool {
        self.feed.snapshot().head(commit.writer) >= commit.sequence
    }

    fn is_foreign(&mut self, run: &RunName) -> bool {
        if let Some(is_foreign) = self.foreign.get(run) {
            return *is_foreign;
        }
        let owner = self.feed.owner(&roles::owner_level(&self.schema, run));
        let is_foreign = owner.is_some_and(|owner| owner != self.user);
        self.foreign.insert(run.clone(), is_foreign);
        is_foreign
    }

    /// Whether one of the requests selects a row.
    fn selects(&self, batch: &AttributeBatch, row: usize) -> bool {
        let variable = batch.variable_index(row).map(|index| batch.variables[index].name.as_str());
        let Ok(mut pairs) = roles::key_of(&self.schema, &batch.run, variable, batch.step_of(row)) else {
            return false;
        };
        pairs.extend(batch.keywords_of(row).map(|(name, value)| (name.to_string(), value.to_string())));
        self.selections.iter().any(|all| all.iter().all(|one| self.matches(one, &pairs)))
    }

    fn matches(&self, selection: &Selection, pairs: &[(String, String)]) -> bool {
        selection.listed_values().all(|(keyword, values)| {
            let own = pairs.iter().find(|(own, _)| **own == **keyword);
            own.is_some_and(|(_, text)| lists(&self.schema, values, keyword, text))
        })
    }

    /// Rows of the engine that are selected, and their number.
    fn shown(&self, index: &mut Index) -> Result<(RowsOf, u64)> {
        let mut names = HashMap::new();
        index.run_names(&mut |run, name| {
            names.insert(run, name.clone());
            Ok(Flow::More)
        })?;
        let (mut shown, mut visible) = (RowsOf::new(), 0);
        for tag in index.tags()? {
            for span in index.spans(tag.id, None)? {
                let run = names.get(&span.run);
                if run.is_some_and(|run| !self.may_select(run)) {
                    continue;
                }
                let probe = Probe::Key {
                    run: span.run,
                    tag: tag.id,
                    steps: i64::MIN..=i64::MAX,
                    variable: None,
                    curve: None,
                };
                let mut rows: BTreeMap<i64, HashSet<u32>> = BTreeMap::new();
                Tables::scan(index, &[probe], &mut |row| {
                    rows.entry(row.batch).or_default().insert(row.row as u32);
                    Ok(Flow::More)
                })?;
                for (batch, rows) in rows {
                    let (id, _) = index.source(batch)?;
                    let Some(writer) = id.writer else { continue };
                    visible += rows.len() as u64;
                    shown.entry((writer, id.sequence, id.record)).or_default().extend(rows);
                }
            }
        }
        Ok((shown, visible))
    }

    /// Whether a request may select something of a run.
    fn may_select(&self, run: &RunName) -> bool {
        let Ok(pairs) = roles::key_of(&self.schema, run, None, None) else { return true };
        let may = |selection: &Selection| {
            selection.listed_values().all(|(keyword, values)| {
                let own = pairs.iter().find(|(own, _)| **own == **keyword);
                own.is_none_or(|(_, text)| lists(&self.schema, values, keyword, text))
            })
        };
        self.selections.iter().any(|all| all.iter().all(may))
    }

    /// Finds a commit that hides attributes, perhaps, and that is not final: its transaction can be switched off, or it is the
    /// last one of a process that writes on.
    fn find_blocking(&mut self) -> Result<()> {
        let snapshot = self.feed.snapshot().clone();
        for (writer, head) in self.feed.logs() {
            let is_living = snapshot.log(writer).is_some() && !self.ended.contains(&writer);
            for commit in self.feed.clone().commits(writer, 0)? {
                let commit = commit?;
                let transaction = commit.transaction.filter(|_| commit.order.is_none());
                let is_open = transaction.is_some_and(|id| !is_sealed(&snapshot, id, commit.owner));
                let is_last = is_living && commit.sequence == head;
                if (is_open || is_last) && commit.side.iter().any(|side| self.may_hide(side)) {
                    let why = match is_open {
                        true => {
                            "a transaction that hides attributes can be switched off yet: erase again in two days"
                        }
                        false => {
                            "the last flush of a process that writes on may hide attributes: erase again later"
                        }
                    };
                    self.blocked = Some((file_of(&snapshot, writer), why.to_owned()));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether a record may hide attributes that are selected.
    fn may_hide(&self, side: &SideRecord) -> bool {
        if !is_catalog(side) {
            return false;
        }
        match Record::decode(side) {
            Ok(Record::Attributes(batch)) => (0..batch.rows).any(|row| self.selects(&batch, row)),
            Ok(Record::Remove(_)) | Err(_) => true,
            Ok(_) => false,
        }
    }
}

/// The reason that is named where nothing closer is known.
const OTHERWISE: &str = "it could not be rewritten: see `fieldstone verify`";

fn is_sealed(snapshot: &Snapshot, transaction: Id, user: u32) -> bool {
    snapshot.taken.sealed(transaction, user).is_ok_and(|sealed| sealed.is_some_and(|number| number > 0))
}

/// The file that holds a log's records now.
fn file_of(snapshot: &Snapshot, writer: Id) -> String {
    match snapshot.taken.log(writer).filter(|_| snapshot.log(writer).is_none()) {
        Some((takeover, _)) => takeover.shown.clone(),
        None => format!("logs/{}", fieldstone_format::log::file_name(writer)),
    }
}

/// Whether a text, as a value of a keyword, is among values.
fn lists(schema: &Schema, values: &OneOf, keyword: &str, text: &str) -> bool {
    let mut one = Request::new();
    one.set(keyword, Values::list([text]));
    let Ok(selected) = schema.select(&one) else { return false };
    let value = selected.listed_values().next().and_then(|(_, value)| value.get(0));
    value.is_some_and(|value| values.position(&value).is_some())
}
