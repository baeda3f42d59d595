//! Queries, streams, and the calls that look at the engine as a whole.

use std::collections::HashSet;

use fieldstone_core::sync::mpsc::{Receiver, SyncSender, sync_channel};
use fieldstone_core::sync::thread;
use fieldstone_journal::Session;
use fieldstone_journal::session::Limits;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{AttributeId, RunName, VariableName, declares};

use super::connection::{Connection, Patience};
use super::consistent_view::{ConsistentView, Visibility};
use super::inner::Inner;
use super::location::EngineLocation;
use super::{CatalogCheck, RebuildReport};
use crate::engine::{Flow, Index, RunSelect, Sqlite, Tables, can_stand_in, is_busy};
use crate::query::{self, Hit, HitTable, Query, RunInfo, VariableInfo};
use crate::write::declare::run_row;
use crate::write::delete::{check_projects, several_projects};
use crate::write::shown::run_text;

/// Hits that wait between the thread that finds them and the one that takes them.
const WAITING: usize = 1024;
/// Hits of a stream that are remembered, so that it can go on from another engine: some 4 MB.
const REMEMBERED: usize = 1 << 16;
/// Differences that a check names.
const NAMED: usize = 100;

impl Inner {
    /// Answers from one state of all that a query may see.
    pub fn ask<T>(&self, query: &Query, answer: impl Fn(&mut dyn Tables) -> Result<T>) -> Result<T> {
        let _span = tracing::debug_span!("query", streamed = false).entered();
        self.journal.check_there()?;
        self.raise_apply_error()?;
        self.look(Visibility::All(&query.session), &mut |index| answer(index))
    }

    /// Runs that are to be changed: names are names, and one that several projects have is refused.
    pub fn runs_to_change(&self, query: &Query) -> Result<Vec<RunInfo>> {
        let query = query.exact();
        self.ask(&query, |tables| {
            check_projects(tables, &query)?;
            query::runs(tables, &query)
        })
    }

    /// The run of a name.
    pub fn run(&self, project: Option<&str>, name: &str, session: &Session) -> Result<RunInfo> {
        self.journal.check_there()?;
        self.raise_apply_error()?;
        let visibility = Visibility::All(session);
        let view = self.consistent_view(visibility)?;
        let asked = (project.map(str::to_owned), name.to_owned());
        if let Some(run) = self.run_answers().find(&self.journal, &view, session, &asked) {
            return Ok(run);
        }
        let named = RunSelect::Named(name.to_owned());
        let mut rows = self.look_from(view.clone(), visibility, &mut |index| index.runs(&named))?;
        rows.retain(|row| project.is_none_or(|project| row.decl.run.project == project));
        if rows.len() > 1 {
            return Err(several_projects(name, rows.iter().map(|row| row.decl.run.project.as_str())));
        }
        match rows.pop() {
            Some(row) => {
                let run = RunInfo::of(row);
                self.run_answers().note(view, session, asked, &run);
                Ok(run)
            }
            None => {
                let shown = match project {
                    Some(project) if !project.is_empty() => format!("'{name}' of project '{project}'"),
                    _ => format!("'{name}'"),
                };
                Err(self.no_run(session, name, &shown))
            }
        }
    }

    /// A variable of a run; the newest version where none is given.
    pub fn variable(
        &self,
        run: &RunName,
        name: &str,
        version: Option<i64>,
        session: &Session,
    ) -> Result<VariableInfo> {
        self.journal.check_there()?;
        self.raise_apply_error()?;
        let found = self.look(Visibility::All(session), &mut |index| {
            let Some(row) = run_row(index, run)? else { return Ok(None) };
            let all = index.variables(row.id)?.into_iter();
            let named = all.filter(|row| row.decl.variable.name == name);
            let asked =
                named.filter(|row| version.is_none_or(|version| row.decl.variable.version == version));
            Ok(Some(asked.max_by_key(|row| row.decl.variable.version)))
        })?;
        match found {
            None => Err(self.no_run(session, &run.name, &run_text(run))),
            Some(Some(row)) => Ok(VariableInfo { run: run.clone(), decl: row.decl, declared: row.declared }),
            Some(None) => {
                let asked = VariableName { name: name.to_owned(), version: version.unwrap_or(0) };
                Err(self.no_variable(session, run, &asked))
            }
        }
    }

    /// Hits, one after another.
    pub fn stream(&self, query: &Query) -> Result<Box<dyn Iterator<Item = Result<Hit>> + Send>> {
        // Before it is copied for the thread that answers it.
        query.expr.size().check()?;
        self.journal.check_there()?;
        let _span = tracing::debug_span!("query", streamed = true).entered();
        self.raise_apply_error()?;
        let view = Visibility::All(&query.session);
        let moment = self.consistent_view(view)?;
        let pending = query.session.transaction().is_some() || moment.has_own();
        if pending || self.location_now(&moment.seen.heads)? == EngineLocation::Memory {
            // Nobody else may use that engine, or write to it, for as long as it is read.
            let table = self.look_from(moment, view, &mut |index| query::collect(index, query))?;
            return Ok(Box::new(TableHits { table, next: 0 }));
        }
        let (sender, receiver) = sync_channel(WAITING);
        let inner = self.shared()?;
        let query = query.clone();
        thread::Builder::new()
            .name("catalog".into())
            .spawn(move || inner.send(&query, moment, &sender))
            .map_err(|e| Code::ProcessLimit.error(format!("cannot start a thread for a query: {e}")))?;
        Ok(Box::new(HitStream { receiver: Some(receiver), process: std::process::id() }))
    }

    /// Finds hits and sends them on, until nobody takes them any more. Where the engine breaks meanwhile, the
    /// one that is made anew gives those that were not sent yet.
    fn send(&self, query: &Query, moment: ConsistentView, sender: &SyncSender<Result<Hit>>) {
        let mut sent = StreamProgress { limit: query.limit, ids: HashSet::new(), count: 0 };
        let span = tracing::debug_span!("stream", hits = tracing::field::Empty);
        let _within = span.enter();
        let mut limits = query.session.limits(&self.env.clock);
        let outcome = self.look_shared(moment, &mut |index| {
            let again = sent.again()?;
            query::run(index, query, &mut |hit| {
                limits.as_mut().map_or(Ok(()), Limits::step)?;
                let hit = hit.to_hit();
                let id = hit.id;
                if again && sent.ids.contains(&id) {
                    return Ok(Flow::More);
                }
                if sent.is_all() || sender.send(Ok(hit)).is_err() {
                    return Ok(Flow::Stop);
                }
                sent.note(id);
                Ok(Flow::More)
            })
        });
        let outcome = match outcome {
            Err(e) if can_stand_in(&e) && sent.count == 0 => {
                self.go_away();
                // All at once: who takes the hits may ask for more of that engine meanwhile.
                self.ask(query, |tables| query::collect(tables, query)).map(|table| {
                    TableHits { table, next: 0 }.all(|hit| sender.send(hit).is_ok());
                })
            }
            outcome => outcome.map(drop),
        };
        span.record("hits", sent.count);
        if let Err(error) = outcome {
            // Nobody may be there any more to hear of it.
            drop(sender.send(Err(error)));
        }
    }

    /// Whether some commit of the logs declares something; the first that does ends the search.
    pub fn has_declarations(&self) -> Result<bool> {
        let feed = self.journal.feed()?;
        for (writer, _) in feed.heads() {
            for commit in feed.commits(writer, 0)? {
                if commit?.side.iter().any(declares) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Makes the engine's tables anew.
    pub fn rebuild(&self) -> Result<RebuildReport> {
        self.forget_apply_error();
        let feed = self.journal.feed()?;
        let place = self.location_for(&feed.heads())?;
        let mut work = |engine: &mut Connection| self.replay(engine.index()?, &feed);
        let outcome = self.with(&place, Patience::Full, &mut work);
        let mut report = outcome.map_err(|e| if is_busy(&e) { self.held(&place, e) } else { e })?;
        report.engine = place.to_string();
        Ok(report)
    }

    /// Compares the engine with a replay, both as lines of text in memory.
    pub fn verify(&self) -> Result<CatalogCheck> {
        self.raise_apply_error()?;
        let feed = self.journal.feed()?;
        let mut replayed = Index::open(Box::new(Sqlite::memory()?), self.journal.home().id)?;
        self.replay(&mut replayed, &feed)?;
        let mut check = CatalogCheck::default();
        check.damaged.extend(replayed.take_problems().iter().map(|e| e.message().to_owned()));
        let problems = feed.problems().into_iter().filter(|problem| problem.damage);
        check.damaged.extend(problems.map(|problem| format!("{}: {}", problem.file, problem.why)));
        let expected = replayed.dump()?;
        let found = self.look(Visibility::Synced, &mut |index| index.dump())?;
        check.lines = expected.lines().count() as u64;
        let sides = [(&expected, &found, "the engine lacks"), (&found, &expected, "the logs do not say")];
        for (have, other, what) in sides {
            let other: HashSet<&str> = other.lines().collect();
            let missing = have.lines().filter(|line| !other.contains(line));
            let room = NAMED - check.different.len().min(NAMED);
            check.different.extend(missing.take(room).map(|line| format!("{what}: {line}")));
        }
        Ok(check)
    }
}

/// Hits of a stream that were sent.
struct StreamProgress {
    limit: Option<u64>,
    /// The first of them, up to [`REMEMBERED`].
    ids: HashSet<AttributeId>,
    count: u64,
}

impl StreamProgress {
    /// Whether hits were sent before. Unavailable where it is not known any more which.
    fn again(&self) -> Result<bool> {
        if self.count > self.ids.len() as u64 {
            return Err(Error::unavailable("the catalog's engine broke while it was read")
                .with_hint("ask again: it is made anew"));
        }
        Ok(self.count > 0)
    }

    fn is_all(&self) -> bool {
        self.limit.is_some_and(|limit| self.count >= limit)
    }

    fn note(&mut self, id: AttributeId) {
        self.count += 1;
        if self.ids.len() < REMEMBERED {
            self.ids.insert(id);
        }
    }
}

/// TableHits of a table as hits.
struct TableHits {
    table: HitTable,
    next: usize,
}

impl Iterator for TableHits {
    type Item = Result<Hit>;

    fn next(&mut self) -> Option<Result<Hit>> {
        let hit = self.table.hit(self.next)?;
        self.next += 1;
        Some(Ok(hit))
    }
}

/// Hits that another thread finds. Dropping it ends that thread.
struct HitStream {
    receiver: Option<Receiver<Result<Hit>>>,
    /// The process that has the thread.
    process: u32,
}

impl HitStream {
    fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }
}

impl Iterator for HitStream {
    type Item = Result<Hit>;

    fn next(&mut self) -> Option<Result<Hit>> {
        if self.is_forked() {
            // The thread is in the parent alone.
            std::mem::forget(self.receiver.take()?);
            let error = Code::Forked.error("these hits were asked for before this process was forked");
            return Some(Err(error.with_hint("ask again in this process")));
        }
        self.receiver.as_ref()?.recv().ok()
    }
}

impl Drop for HitStream {
    fn drop(&mut self) {
        if self.is_forked() {
            // It may be locked by a thread that is not in this process.
            std::mem::forget(self.receiver.take());
        }
    }
}
