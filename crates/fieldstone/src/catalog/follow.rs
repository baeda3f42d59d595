//! Following the logs: what they hold beyond an engine's marks is applied, decisions first, then each
//! log's fields and commits.
//!
//! Invariants:
//! * a log's mark moves in the same transaction of the engine that holds the rows up to it;
//! * a long replay is several transactions: between them others read nothing, because their marks do not
//!   reach the logs' heads, and any of them may go on with it;
//! * damaged parts are passed over, the same ones by everybody.

use fieldstone_catalog::engine::{Busy, FieldRow, Flow, Index, Wait};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_store::api::{EntryChange, Feed, TransactionState};

use super::RebuildReport;
use super::engine::covers;
use super::inner::Inner;
use super::lend::Patience;
use super::roles::Place;

/// Bytes of side records that one transaction of the engine holds, about.
const BYTES: usize = 64 << 20;
/// Nanoseconds that one transaction lasts, about: others see by the marks that one gets on.
#[cfg(not(test))]
const TIME: u64 = 500_000_000;
/// In tests each commit is a transaction.
#[cfg(test)]
const TIME: u64 = 1;
/// Rows of fields that are given to the engine at once.
const ROWS: usize = 4096;
/// Places that are asked about at once.
const PLACES: usize = 256;

/// Brings an engine up to a feed; `false` where another process has it and no patience is left for it.
pub fn follow(inner: &Inner, index: &mut Index, feed: &Feed, patience: Patience) -> Result<bool> {
    let heads = feed.heads();
    if covers(&index.watermarks()?, &heads) {
        return Ok(true);
    }
    super::owners::set(inner, index, feed, false);
    let mut report = RebuildReport::default();
    let followed = Replay { inner, feed, heads, patience, begun: 0, report: &mut report }.run(index, false);
    index.forget_owners();
    followed
}

/// Makes the tables anew from the first commit on.
pub fn rebuild(inner: &Inner, index: &mut Index, feed: &Feed) -> Result<RebuildReport> {
    let heads = feed.heads();
    super::owners::set(inner, index, feed, false);
    let mut report = RebuildReport { logs: heads.len() as u64, ..RebuildReport::default() };
    let patience = Patience::Full;
    let rebuilt = Replay { inner, feed, heads, patience, begun: 0, report: &mut report }.run(index, true);
    index.forget_owners();
    rebuilt.map(|_| report)
}

struct Replay<'a> {
    inner: &'a Inner,
    feed: &'a Feed,
    heads: Vec<(Id, u64)>,
    patience: Patience,
    /// When the engine's transaction was begun, by the monotonic clock.
    begun: u64,
    report: &'a mut RebuildReport,
}

impl Replay<'_> {
    fn run(&mut self, index: &mut Index, anew: bool) -> Result<bool> {
        if !self.begin(index)? {
            return Ok(false);
        }
        let outcome = self.within(index, anew);
        if outcome.is_err() {
            // The first error says more than what giving up may add.
            let _ = index.abort();
            return outcome.map(|()| true);
        }
        index.end_apply()?;
        self.report.attributes += index.attributes_applied();
        Ok(true)
    }

    fn now(&self) -> u64 {
        self.inner.store.home().env.clock.monotonic()
    }

    /// Begins a transaction of the engine.
    fn begin(&mut self, index: &mut Index) -> Result<bool> {
        let wait = if self.patience == Patience::None { Wait::No } else { Wait::Yes };
        let begun = self.inner.insist(index, self.patience, &mut |index| index.begin_apply(wait))?;
        self.begun = self.now();
        Ok(begun)
    }

    fn within(&mut self, index: &mut Index, anew: bool) -> Result<()> {
        if anew {
            index.clear()?;
        }
        // Others may go on meanwhile, or begin anew: then the marks say where.
        while !self.go_on_from_marks(index)? {}
        Ok(())
    }

    /// Applies what lies beyond the marks; `false` where another process changed the engine in a pause, or
    /// where an owner turned out to be another than it was when records were applied.
    fn go_on_from_marks(&mut self, index: &mut Index) -> Result<bool> {
        if index.contested()? {
            index.clear_contested()?;
        }
        let states = self.feed.decisions();
        let mut decided = index.apply_decisions(&states)?;
        if decided.rebuild {
            index.clear()?;
            decided = index.apply_decisions(&states)?;
        }
        for transaction in decided.fields {
            let state = states.iter().find(|state| state.transaction == transaction);
            for (writer, _) in state.iter().flat_map(|state| &state.covers) {
                let entries = self.feed.entries_under(*writer, transaction);
                self.fields(index, *writer, entries)?;
            }
        }
        let marks = index.watermarks()?;
        let mut bytes = 0;
        for (writer, head) in self.heads.clone() {
            let after = marks.get(&writer).copied().unwrap_or(0);
            if after >= head {
                continue;
            }
            let entries = self.feed.entries(writer, after);
            self.fields(index, writer, entries)?;
            for commit in self.feed.commits(writer, after)? {
                let commit = commit?;
                index.apply_commit(&commit)?;
                self.report.commits += 1;
                bytes += commit.side.iter().map(|record| record.bytes.len()).sum::<usize>();
                if self.is_long(&mut bytes) {
                    index.set_watermark(writer, commit.sequence)?;
                    if !self.pause(index, &states)? {
                        return Ok(false);
                    }
                }
            }
            index.set_watermark(writer, head)?;
            if self.is_long(&mut bytes) && !self.pause(index, &states)? {
                return Ok(false);
            }
        }
        self.recheck(index)?;
        Ok(!index.contested()?)
    }

    /// Whether a transaction has become long, by the side records applied or by time.
    fn is_long(&self, bytes: &mut usize) -> bool {
        let long = *bytes >= BYTES || self.now().saturating_sub(self.begun) >= TIME;
        if long {
            *bytes = 0;
        }
        long
    }

    /// Ends one transaction of the engine and begins the next; `false` where another process applied
    /// something between them.
    fn pause(&mut self, index: &mut Index, states: &[TransactionState]) -> Result<bool> {
        // The marks tell others that all up to them is there.
        self.recheck(index)?;
        let before = generation(index)?;
        index.end_apply()?;
        self.report.attributes += index.attributes_applied();
        if cfg!(test) {
            // Others, who look now and then, get their turn.
            self.inner.store.home().env.clock.sleep(2_000_000);
        }
        if !self.begin(index)? {
            return Err(Error::unavailable("another process has the catalog's engine")
                .with_hint("try again")
                .with_source(Busy("it was taken in a pause".into())));
        }
        if generation(index)? != before.wrapping_add(1) {
            return Ok(false);
        }
        // What is decided is known per transaction of the engine.
        index.apply_decisions(states)?;
        Ok(true)
    }

    /// Applies index entries.
    fn fields(
        &mut self,
        index: &mut Index,
        writer: Id,
        entries: impl Iterator<Item = Result<EntryChange>>,
    ) -> Result<()> {
        self.report.fields += fields(self.inner, index, writer, entries)?;
        Ok(())
    }

    /// Asks the store what stands at places where that is in doubt.
    fn recheck(&mut self, index: &mut Index) -> Result<()> {
        recheck(self.inner, index, None)
    }
}

/// Lays the fields that a transaction has prepared over the tables, within its overlay.
pub fn lay_fields(inner: &Inner, index: &mut Index, feed: &Feed, transaction: Id) -> Result<()> {
    let mut laid = 0;
    for (writer, _) in feed.heads() {
        laid += fields(inner, index, writer, feed.entries_under(writer, transaction))?;
    }
    if laid > 0 {
        recheck(inner, index, Some(transaction))?;
        index.overlaid()?;
    }
    Ok(())
}

fn fields(
    inner: &Inner,
    index: &mut Index,
    writer: Id,
    entries: impl Iterator<Item = Result<EntryChange>>,
) -> Result<u64> {
    let (mut rows, mut seen) = (Vec::new(), 0);
    for entry in entries {
        let entry = entry?;
        seen += 1;
        let Some(place) = inner.place_of(&entry.key) else { continue };
        rows.push(FieldRow {
            run: place.run,
            variable: place.variable,
            step: place.step,
            user: entry.owner,
            sequence: entry.sequence,
            transaction: entry.transaction,
            removal: entry.removal,
            dtype: entry.dtype,
            shape: entry.shape,
        });
        if rows.len() >= ROWS {
            index.apply_entries(writer, &rows)?;
            rows.clear();
        }
    }
    index.apply_entries(writer, &rows)?;
    Ok(seen)
}

/// A number that each transaction which applies something increases by one.
fn generation(index: &mut Index) -> Result<i64> {
    let mut found = 0;
    let sql = "SELECT value FROM meta WHERE name = 'generation'";
    index.database().query(sql, &[], &mut |row| {
        found = row[0].text()?.parse().unwrap_or(0);
        Ok(Flow::Stop)
    })?;
    Ok(found)
}

fn recheck(inner: &Inner, index: &mut Index, transaction: Option<Id>) -> Result<()> {
    loop {
        // An answer may raise the next question: all is known when there is none left.
        let places = index.rechecks(PLACES)?;
        if places.is_empty() {
            return Ok(());
        }
        for place in &places {
            let wanted = Place { run: place.run.clone(), variable: place.variable.clone(), step: place.step };
            index.set_held(place, &inner.standing(&wanted, place.array, transaction)?)?;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use fieldstone_format::catalog::{AttributeBatch, Column, RunDecl, RunName, TagDecl, Values};

    use super::super::value::ValueType;
    use super::super::{Catalog, CatalogSettings, Query};
    use crate::ArchiveOptions;

    fn at(folder: &std::path::Path) -> Catalog {
        let store = crate::open(&folder.display().to_string(), &crate::OpenOptions::default()).unwrap();
        Catalog::of(store, CatalogSettings::default()).unwrap()
    }

    #[test]
    fn several_that_apply_in_turns_and_begin_anew_leave_nothing_out() {
        let folder = tempfile::tempdir().unwrap();
        for writer in 0..3 {
            let catalog = at(folder.path());
            let name = format!("w{writer}");
            let run = RunName { project: String::new(), name: name.clone() };
            catalog.create_run(RunDecl::named(run.clone()), false, None).unwrap();
            for step in 0..12 {
                let batch = AttributeBatch {
                    tag: TagDecl {
                        name: "q".into(),
                        version: 0,
                        kind: ValueType::Float,
                        unit: String::new(),
                    },
                    run: run.clone(),
                    rows: 1,
                    step: Some(Column::One(step)),
                    variables: Vec::new(),
                    variable: Column::One(0),
                    boxes: None,
                    values: Values::Float(vec![0.5]),
                    one_value: true,
                    continues: false,
                    singles: false,
                };
                catalog.annotate(batch, None).unwrap();
                let text = step.to_string();
                let key = [("run", name.as_str()), ("variable", "t"), ("step", text.as_str())];
                let value = crate::Value::Bytes(b"x");
                catalog.inner.store.archive(&key, value, &ArchiveOptions::default()).unwrap();
                catalog.inner.store.flush(None).unwrap();
            }
        }
        for _ in 0..4 {
            std::fs::remove_dir_all(folder.path().join("catalog")).unwrap();
            std::thread::scope(|scope| {
                for reader in 0..5 {
                    let catalog = at(folder.path());
                    scope.spawn(move || {
                        if reader == 0 {
                            catalog.rebuild().unwrap();
                        }
                        assert_eq!(catalog.count(&Query::all()).unwrap(), 36);
                        assert_eq!(catalog.variables(&Query::all()).unwrap().len(), 3);
                    });
                }
            });
            let check = at(folder.path()).verify().unwrap();
            assert!(check.ok(), "{check:#?}");
        }
    }
}
