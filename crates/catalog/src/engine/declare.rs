//! Declarations of runs, steps, variables and tags; those of distributed arrays are in `arrays`.
//!
//! Every declaration that is visible and not deleted is kept in `decl`; the oldest of a name holds, and
//! those of other content are conflicts. So the tables follow from the set of declarations, whatever the
//! order in which they came. A row of `step` or `variable` is there too where a field or an attribute
//! stands on it; a run and a tag are shown for the same reasons.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fieldstone_core::Result;
use fieldstone_core::value::{Value, ValueType};
use fieldstone_format::catalog::{
    Annotate, AttributeId, Record, RunDecl, RunName, RunState, StepDecl, TagDecl, VariableDecl, VariableName,
};
use fieldstone_format::log::SideRecord;

use super::index::Index;
use super::names::{Tombstone, one_int};
use super::order::{EntrySource, OrderKey};
use super::owners::{User, put_first};
use super::remove::{MOVED, RUN, STATE, STEP, TAG, VARIABLE, goes_alone, of_run};
use super::{Cell, Flow, NO_STEP, NO_VARIABLE, RunId, TagId, VariableId};

/// What must be derived again. `true`: something is known to stand on it.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    runs: BTreeSet<RunId>,
    steps: BTreeMap<(RunId, i64), bool>,
    variables: BTreeMap<(RunId, VariableId), bool>,
    tags: BTreeSet<TagId>,
    /// Of groups, imports, meshes and histories: kind, run, item.
    of_arrays: BTreeSet<(i64, RunId, i64)>,
    pub arrays: super::fields::Arrays,
    /// When the oldest field of a run was flushed, of those that were applied.
    written: BTreeMap<RunId, i64>,
}

impl Dirty {
    /// Something changed on a step.
    pub fn step(&mut self, run: RunId, step: i64) {
        if step != NO_STEP {
            self.steps.insert((run, step), false);
        }
    }

    /// Something new stands on a step.
    pub fn used_step(&mut self, run: RunId, step: i64) {
        if step != NO_STEP {
            self.steps.entry((run, step)).or_insert(true);
        }
    }

    /// Something changed on a variable.
    pub fn variable(&mut self, run: RunId, variable: VariableId) {
        if variable != NO_VARIABLE {
            self.variables.insert((run, variable), false);
        }
    }

    /// Something new stands on a variable.
    pub fn used_variable(&mut self, run: RunId, variable: VariableId) {
        if variable != NO_VARIABLE {
            self.variables.entry((run, variable)).or_insert(true);
        }
    }

    /// A field of a run was flushed then, visible or not.
    pub fn written(&mut self, run: RunId, time: i64) {
        let known = self.written.entry(run).or_insert(time);
        *known = time.min(*known);
    }

    /// Something changed on a tag.
    pub fn tag(&mut self, tag: TagId) {
        self.tags.insert(tag);
    }

    /// Runs of which a declaration came or went.
    pub fn declared_runs(&self) -> BTreeSet<RunId> {
        self.runs.clone()
    }

    /// A declaration came or went.
    pub fn declaration(&mut self, kind: i64, run: RunId, item: i64) {
        match kind {
            RUN | MOVED | STATE => {
                self.runs.insert(run);
            }
            STEP => self.step(run, item),
            VARIABLE => self.variable(run, item),
            TAG => self.tag(item),
            _ => {
                self.of_arrays.insert((kind, run, item));
            }
        }
    }
}

/// Which name of a run is declared: its own, that of a step, or that of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    /// The run, its state, or where its data lie.
    Run,
    /// A step.
    Step(i64),
    /// A variable.
    Variable(VariableName),
}

/// Where a declaration was written, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclarationRow {
    /// What it declares.
    pub of: Declared,
    /// Where it was written.
    pub id: AttributeId,
    /// The user who did.
    pub user: u32,
}

/// A record of declarations (log, sequence, record), and which places of it were deleted one by one, each by whom.
pub(super) type DeletedAlone = ((i64, u64, i64), Vec<(i64, User)>);

/// A declaration as it is kept.
pub(super) struct StoredDeclaration {
    place: OrderKey,
    pub user: User,
    pub content: Vec<u8>,
}

/// A record of one declaration, as bytes.
pub(super) fn content(record: &Record) -> Vec<u8> {
    let side = record.encode();
    [&side.kind.to_le_bytes()[..], &side.bytes].concat()
}

pub(super) fn record(content: &[u8]) -> Result<Record> {
    let (kind, bytes) = content.split_at(content.len().min(2));
    let kind = kind.try_into().map(u16::from_le_bytes).unwrap_or(0);
    Record::decode(&SideRecord { kind, bytes: bytes.into() })
}

/// A run's declaration, from its bytes.
pub(super) fn run_decl(content: &[u8]) -> Result<Option<RunDecl>> {
    Ok(match record(content)? {
        Record::Runs(runs) => runs.into_iter().next(),
        _ => None,
    })
}

/// A variable's declaration, from its bytes.
pub(super) fn variable_decl(content: &[u8]) -> Result<Option<VariableDecl>> {
    Ok(match record(content)? {
        Record::Variables(_, variables) => variables.into_iter().next(),
        _ => None,
    })
}

/// Pairs as the text of a map.
fn map_text(pairs: &[(String, Value)]) -> String {
    Value::named_json(pairs)
}

pub(super) fn shape_text(shape: &[u64]) -> String {
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    extents.join(",")
}

impl Index {
    pub(super) fn declare_runs(&mut self, source: EntrySource, runs: &[RunDecl]) -> Result<()> {
        for (i, decl) in runs.iter().enumerate() {
            let run = self.names.run(&mut *self.db, &decl.run)?;
            self.declared_by(run, source.place(source.record, i as i64), source.user)?;
            self.declare(source, i, (RUN, run, 0), &content(&Record::Runs(vec![decl.clone()])))?;
        }
        Ok(())
    }

    /// Where data of runs lie from now on.
    pub(super) fn declare_moved(&mut self, source: EntrySource, moved: &[(RunName, Value)]) -> Result<()> {
        for (i, (name, outside)) in moved.iter().enumerate() {
            let run = self.names.run(&mut *self.db, name)?;
            let bytes = content(&Record::Moved(vec![(name.clone(), outside.clone())]));
            self.declare(source, i, (MOVED, run, 0), &bytes)?;
        }
        Ok(())
    }

    /// Where the data of a run lie since somebody moved them.
    fn moved_to(&mut self, run: RunId) -> Result<Option<Value>> {
        let newest = self.newest((MOVED, run), |run| format!("where data of {run} lie"))?;
        Ok(match newest.map(|newest| record(&newest.content)).transpose()? {
            Some(Record::Moved(moved)) => moved.into_iter().next().map(|(_, outside)| outside),
            _ => None,
        })
    }

    /// The newest declaration of a run of which a newer one is no contradiction; `what` it says, for reports of others'.
    fn newest(
        &mut self,
        (kind, run): (i64, RunId),
        what: impl FnOnce(String) -> String,
    ) -> Result<Option<StoredDeclaration>> {
        let (mut kept, others) = self.declared_in(kind, run, 0)?;
        let what = match others.len() {
            0 => String::new(),
            _ => what(self.run_text(run)?),
        };
        self.note_conflicts((kind, run, 0), &what, &[], &others, |_, _| Ok(false))?;
        Ok(kept.pop())
    }

    /// How runs go.
    pub(super) fn declare_states(
        &mut self,
        source: EntrySource,
        states: &[(RunName, RunState)],
    ) -> Result<()> {
        for (i, (name, state)) in states.iter().enumerate() {
            let run = self.names.run(&mut *self.db, name)?;
            let bytes = content(&Record::States(vec![(name.clone(), state.clone())]));
            self.declare(source, i, (STATE, run, 0), &bytes)?;
        }
        Ok(())
    }

    /// How a run goes, as its owner said last.
    fn state_of(&mut self, run: RunId) -> Result<Option<RunState>> {
        let Some(newest) = self.newest((STATE, run), |run| format!("the state of {run}"))? else {
            return Ok(None);
        };
        Ok(match record(&newest.content)? {
            Record::States(states) => {
                let said = states.into_iter().next();
                said.map(|(_, state)| RunState {
                    writer: super::names::flushed(newest.place.writer),
                    ..state
                })
            }
            _ => None,
        })
    }

    pub(super) fn declare_steps(
        &mut self,
        source: EntrySource,
        run: &RunName,
        steps: &[StepDecl],
    ) -> Result<()> {
        let run = self.names.run(&mut *self.db, run)?;
        for (i, step) in steps.iter().enumerate() {
            let time = step.time.map(|time| time.to_bits().to_le_bytes().to_vec()).unwrap_or_default();
            self.declare(source, i, (STEP, run, step.number), &time)?;
        }
        Ok(())
    }

    pub(super) fn declare_variables(
        &mut self,
        source: EntrySource,
        name: &RunName,
        variables: &[VariableDecl],
    ) -> Result<()> {
        let run = self.names.run(&mut *self.db, name)?;
        for (i, decl) in variables.iter().enumerate() {
            let variable = self.names.variable(&mut *self.db, &decl.variable)?;
            // The run's name is left out: it is known, and would be stored again and again.
            let nameless = RunName { project: String::new(), name: "-".to_owned() };
            let bytes = content(&Record::Variables(nameless, vec![decl.clone()]));
            self.declare(source, i, (VARIABLE, run, variable), &bytes)?;
        }
        Ok(())
    }

    pub(super) fn declare_tags(&mut self, source: EntrySource, tags: &[TagDecl]) -> Result<()> {
        for (i, decl) in tags.iter().enumerate() {
            let tag = self.names.tag(&mut *self.db, decl)?;
            self.declare(source, i, (TAG, 0, tag), &[])?;
        }
        Ok(())
    }

    pub(super) fn declare(
        &mut self,
        source: EntrySource,
        i: usize,
        (kind, run, item): (i64, i64, i64),
        content: &[u8],
    ) -> Result<()> {
        let place = source.place(source.record, i as i64);
        if i == 0 {
            self.deleted_alone = None;
        }
        let tombstones = [(RUN, run, 0), (kind, run, item)];
        let relevant = if of_run(kind) { &tombstones[..] } else { &tombstones[1..] };
        if of_run(kind) {
            self.act(run, source.user)?;
        }
        let newer = relevant.iter().filter_map(|key| self.names.tombstones.get(key)).flatten();
        let newer: Vec<Tombstone> = newer.filter(|tombstone| tombstone.place > place).copied().collect();
        for tombstone in newer {
            if self.takes(run, tombstone.user, source.user)? {
                self.names.not_revertible(&mut *self.db, tombstone.txn)?;
                return self.names.not_revertible(&mut *self.db, source.txn);
            }
        }
        if goes_alone(kind) && self.is_deleted_alone(source, i as i64, run)? {
            return self.names.not_revertible(&mut *self.db, source.txn);
        }
        let [a, b, c, d, e, f, g, h, j, k, l] = [
            kind,
            run,
            item,
            source.log,
            source.sequence as i64,
            source.record,
            i as i64,
            source.order.0 as i64,
            source.decider,
            source.own as i64,
            source.txn,
        ]
        .map(Cell::Int);
        let sql = "INSERT INTO decl (kind, run, item, log, sequence, record, place, stamp, decider, own, txn, \
                   content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING";
        self.db.execute(sql, &[a, b, c, d, e, f, g, h, j, k, l, Cell::Bytes(content)])?;
        self.dirty.declaration(kind, run, item);
        Ok(())
    }

    /// Whether a declaration was deleted by where it was written, by who may.
    fn is_deleted_alone(&mut self, source: EntrySource, place: i64, run: RunId) -> Result<bool> {
        let record = (source.log, source.sequence, source.record);
        if self.deleted_alone.as_ref().is_none_or(|(known, _)| *known != record) {
            let mut rows: Vec<(i64, User)> = Vec::new();
            let cells = [source.log, source.sequence as i64, source.record].map(Cell::Int);
            let sql = "SELECT row, uid FROM tombstone_row WHERE log = $1 AND sequence = $2 AND record = $3";
            self.db.query(sql, &cells, &mut |row| {
                rows.push((row[0].int()?, row[1].int()?));
                Ok(Flow::More)
            })?;
            self.deleted_alone = Some((record, rows));
        }
        let rows = self.deleted_alone.iter().flat_map(|(_, rows)| rows);
        let users: Vec<User> = rows.filter(|(row, _)| *row == place).map(|(_, user)| *user).collect();
        for user in users {
            if self.takes(run, user, source.user)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where the declarations of a run were written that are there, of itself and of its steps and variables. Within a
    /// read.
    pub fn declarations(&mut self, run: &RunName) -> Result<Vec<DeclarationRow>> {
        let cells = [Cell::Text(&run.name), Cell::Text(&run.project)];
        let sql = "SELECT run FROM run WHERE name = $1 AND project = $2";
        let Some(run) = one_int(&mut *self.db, sql, &cells)? else { return Ok(Vec::new()) };
        let mut rows = Vec::new();
        for kind in [RUN, MOVED, STATE, STEP, VARIABLE] {
            let sql = "SELECT l.writer, d.sequence, d.record, d.place, l.uid, d.item, v.name, v.version \
                       FROM decl d JOIN log l ON l.log = d.log LEFT JOIN variable_name v ON v.variable = d.item \
                       WHERE d.kind = $1 AND d.run = $2";
            self.db.query(sql, &[kind, run].map(Cell::Int), &mut |row| {
                let id = AttributeId {
                    writer: super::names::flushed(super::names::id(row[0].bytes()?)?),
                    sequence: row[1].int()? as u64,
                    record: row[2].int()? as u32,
                    row: row[3].int()? as u32,
                };
                let of = match kind {
                    STEP => Declared::Step(row[5].int()?),
                    VARIABLE => Declared::Variable(VariableName {
                        name: row[6].text()?.to_owned(),
                        version: row[7].int()?,
                    }),
                    _ => Declared::Run,
                };
                rows.push(DeclarationRow { of, id, user: u32::try_from(row[4].int()?).unwrap_or(u32::MAX) });
                Ok(Flow::More)
            })?;
        }
        Ok(rows)
    }

    /// Declarations of one name, oldest first: those that count, and those of users who do not own the run.
    pub(super) fn declared_in(
        &mut self,
        kind: i64,
        run: RunId,
        item: i64,
    ) -> Result<(Vec<StoredDeclaration>, Vec<StoredDeclaration>)> {
        let mut kept = self.declared(kind, run, item)?;
        let mut others = Vec::new();
        if self.has_users() && of_run(kind) {
            for one in std::mem::take(&mut kept) {
                let counts = self.counts(run, one.user)?;
                if counts { &mut kept } else { &mut others }.push(one);
            }
        }
        Ok((kept, others))
    }

    /// Declarations of one name, oldest first.
    fn declared(&mut self, kind: i64, run: RunId, item: i64) -> Result<Vec<StoredDeclaration>> {
        let mut kept = Vec::new();
        let names = &self.names;
        let sql = "SELECT stamp, decider, own, log, sequence, record, place, content FROM decl \
                   WHERE kind = $1 AND run = $2 AND item = $3";
        self.db.query(sql, &[kind, run, item].map(Cell::Int), &mut |row| {
            let (place, user) = (names.place(&row[..7])?, names.user(row[3].int()?));
            kept.push(StoredDeclaration { place, user, content: row[7].bytes()?.to_vec() });
            Ok(Flow::More)
        })?;
        kept.sort_by_key(|kept| kept.place);
        Ok(kept)
    }

    /// Derives again what declarations, fields and attributes say together.
    pub(super) fn recompute_declared(&mut self) -> Result<()> {
        self.flush_fields()?;
        let dirty = std::mem::take(&mut self.dirty);
        for (run, time) in dirty.written {
            let sql = "UPDATE run SET written = $2 WHERE run = $1 AND (written IS NULL OR written > $2)";
            self.db.execute(sql, &[run, time].map(Cell::Int))?;
        }
        for run in dirty.runs {
            self.recompute_run(run)?;
        }
        for ((run, step), used) in dirty.steps {
            self.recompute_step(run, step, used)?;
        }
        for ((run, variable), used) in dirty.variables {
            self.recompute_variable(run, variable, used)?;
        }
        for key in dirty.of_arrays {
            self.recompute_of_arrays(key)?;
        }
        let mut names = BTreeSet::new();
        for tag in dirty.tags {
            self.db.query("SELECT name FROM tag WHERE tag = $1", &[Cell::Int(tag)], &mut |row| {
                names.insert(row[0].text()?.to_owned());
                Ok(Flow::Stop)
            })?;
        }
        names.iter().try_for_each(|name| self.recompute_tags(name))
    }

    pub(super) fn run_text(&mut self, run: RunId) -> Result<String> {
        let mut text = String::new();
        self.db.query("SELECT project, name FROM run WHERE run = $1", &[Cell::Int(run)], &mut |row| {
            text = match row[0].text()? {
                "" => format!("run '{}'", row[1].text()?),
                project => format!("run '{}' of project '{project}'", row[1].text()?),
            };
            Ok(Flow::Stop)
        })?;
        Ok(text)
    }

    /// Writes the conflicts of a name anew: declarations that differ from the oldest, and those of others
    /// than the run's owner.
    pub(super) fn note_conflicts(
        &mut self,
        (kind, run, item): (i64, i64, i64),
        what: &str,
        kept: &[StoredDeclaration],
        others: &[StoredDeclaration],
        mut differ: impl FnMut(&StoredDeclaration, &StoredDeclaration) -> Result<bool>,
    ) -> Result<()> {
        let key = [kind, run, item].map(Cell::Int);
        self.db.execute("DELETE FROM conflict WHERE kind = $1 AND run = $2 AND item = $3", &key)?;
        let by = |place: &OrderKey| format!("{} (commit {})", place.writer, place.sequence);
        let mut messages = Vec::new();
        for other in kept.iter().skip(1) {
            if differ(&kept[0], other)? {
                messages.push(format!(
                    "{what} is declared in two ways: that of writer {} holds, that of writer {} does not",
                    by(&kept[0].place),
                    by(&other.place)
                ));
            }
        }
        for other in others {
            messages.push(format!(
                "{what} is declared by writer {} of user {}, who does not own the run: it does not count",
                by(&other.place),
                other.user
            ));
        }
        for (i, message) in messages.iter().enumerate() {
            let [kind, run, item] = key;
            let cells = [kind, run, item, Cell::Int(i as i64), Cell::Text(message)];
            let sql = "INSERT INTO conflict (kind, run, item, place, message) VALUES ($1, $2, $3, $4, $5)";
            self.db.execute(sql, &cells)?;
        }
        Ok(())
    }

    fn recompute_run(&mut self, run: RunId) -> Result<()> {
        let (kept, others) = self.declared_in(RUN, run, 0)?;
        let what = if kept.len() > 1 || !others.is_empty() { self.run_text(run)? } else { String::new() };
        // Each process that makes sure that a run is there has a clock of its own.
        let timeless = |kept: &StoredDeclaration| {
            let decl = run_decl(&kept.content)?.map(|decl| RunDecl { created: 0, ..decl });
            Ok::<_, fieldstone_core::Error>(decl.map(|decl| content(&Record::Runs(vec![decl]))))
        };
        self.note_conflicts((RUN, run, 0), &what, &kept, &others, |a, b| Ok(timeless(a)? != timeless(b)?))?;
        let all: Vec<(OrderKey, User)> =
            kept.iter().chain(&others).map(|kept| (kept.place, kept.user)).collect();
        let first = self.first_among(run, &all)?.map(|first| put_first(&first));
        let first = first.as_deref().map_or(Cell::Null, Cell::Bytes);
        let (moved, state) = (self.moved_to(run)?, self.state_of(run)?);
        let decl = kept.first().map(|kept| run_decl(&kept.content)).transpose()?.flatten();
        let Some(mut decl) = decl else {
            let sql = "UPDATE run SET declared = 0, job = NULL, created = NULL, notes = NULL, grid = NULL, \
                       params = NULL, content = NULL, annotate = 0, first = $2 WHERE run = $1";
            return self.db.execute(sql, &[Cell::Int(run), first]).map(|_| ());
        };
        if let Some(outside) = moved {
            decl.outside = Some(outside);
        }
        decl.state = state;
        let bytes = content(&Record::Runs(vec![decl.clone()]));
        let (grid, params) = (decl.grid.as_ref().map(Value::to_json), map_text(&decl.params));
        let cells = [
            Cell::Int(run),
            Cell::maybe_text(decl.job.as_deref()),
            Cell::Int(decl.created),
            Cell::maybe_text(decl.notes.as_deref()),
            Cell::maybe_text(grid.as_deref()),
            Cell::Text(&params),
            Cell::Bytes(&bytes),
            Cell::Int((decl.annotate == Annotate::Owner).into()),
            first,
        ];
        let sql = "UPDATE run SET declared = 1, job = $2, created = $3, notes = $4, grid = $5, params = $6, \
                   content = $7, annotate = $8, first = $9 WHERE run = $1";
        self.db.execute(sql, &cells).map(|_| ())
    }

    fn recompute_step(&mut self, run: RunId, step: i64, used: bool) -> Result<()> {
        let (kept, others) = self.declared_in(STEP, run, step)?;
        let time = |kept: &StoredDeclaration| {
            Some(f64::from_bits(u64::from_le_bytes(kept.content.as_slice().try_into().ok()?)))
        };
        let timed: Vec<StoredDeclaration> =
            kept.iter().filter(|kept| time(kept).is_some()).map(StoredDeclaration::again).collect();
        let what = match timed.len() {
            ..2 if others.is_empty() => String::new(),
            _ => format!("step {step} of {}", self.run_text(run)?),
        };
        self.note_conflicts((STEP, run, step), &what, &timed, &others, |a, b| Ok(a.content != b.content))?;
        let key = [Cell::Int(run), Cell::Int(step)];
        if kept.is_empty() && !used && !self.step_is_used(run, step)? {
            return self.db.execute("DELETE FROM step WHERE run = $1 AND step = $2", &key).map(|_| ());
        }
        // NaN is no time: SQLite keeps none.
        let time = timed.first().and_then(time).filter(|time| !time.is_nan());
        let [run, step] = key;
        let cells = [run, step, Cell::Int((!kept.is_empty()).into()), Cell::maybe_real(time)];
        let sql = "INSERT INTO step (run, step, declared, time) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (run, step) DO UPDATE SET declared = excluded.declared, time = excluded.time";
        self.db.execute(sql, &cells).map(|_| ())
    }

    /// Tags that have attributes in a run.
    pub(super) fn tags_of(&mut self, run: RunId) -> Result<Vec<TagId>> {
        let mut tags = Vec::new();
        self.db.query("SELECT tag FROM span WHERE run = $1", &[Cell::Int(run)], &mut |row| {
            tags.push(row[0].int()?);
            Ok(Flow::More)
        })?;
        Ok(tags)
    }

    /// Whether a field or an attribute stands on a step. Rows that are derived are not asked: they may still
    /// have to be made.
    fn step_is_used(&mut self, run: RunId, step: i64) -> Result<bool> {
        // From one variable to the next: each takes at most two looks, however many steps it has.
        let mut from = Some((NO_VARIABLE, step));
        while let Some((variable, at_step)) = from {
            let mut found = None;
            let sql = "SELECT run, variable, step FROM held WHERE (run, variable, step) >= ($1, $2, $3) \
                       ORDER BY run, variable, step LIMIT 1";
            self.db.query(sql, &[run, variable, at_step].map(Cell::Int), &mut |row| {
                found = Some((row[0].int()?, row[1].int()?, row[2].int()?));
                Ok(Flow::Stop)
            })?;
            from = match found.filter(|found| found.0 == run) {
                Some((_, _, there)) if there == step => return Ok(true),
                Some((_, other, there)) if there < step => Some((other, step)),
                Some((_, other, _)) => other.checked_add(1).map(|next| (next, step)),
                None => None,
            };
        }
        for tag in self.tags_of(run)? {
            let sql = "SELECT step FROM series WHERE run = $1 AND tag = $2 AND step = $3 LIMIT 1";
            if one_int(&mut *self.db, sql, &[run, tag, step].map(Cell::Int))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn variable_is_used(&mut self, run: RunId, variable: VariableId) -> Result<bool> {
        let sql = "SELECT step FROM held WHERE run = $1 AND variable = $2 LIMIT 1";
        if one_int(&mut *self.db, sql, &[run, variable].map(Cell::Int))?.is_some() {
            return Ok(true);
        }
        for tag in self.tags_of(run)? {
            let sql = "SELECT step FROM series WHERE run = $1 AND tag = $2 AND variable = $3 LIMIT 1";
            if one_int(&mut *self.db, sql, &[run, tag, variable].map(Cell::Int))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn recompute_variable(&mut self, run: RunId, variable: VariableId, used: bool) -> Result<()> {
        let (kept, others) = self.declared_in(VARIABLE, run, variable)?;
        let key = [Cell::Int(run), Cell::Int(variable)];
        let mut what = String::new();
        if kept.len() > 1 || !others.is_empty() {
            let sql = "SELECT name FROM variable_name WHERE variable = $1";
            self.db.query(sql, &key[1..], &mut |row| {
                what = format!("variable '{}' of ", row[0].text()?);
                Ok(Flow::Stop)
            })?;
            what += &self.run_text(run)?;
        }
        let differ = |a: &StoredDeclaration, b: &StoredDeclaration| Ok(a.content != b.content);
        self.note_conflicts((VARIABLE, run, variable), &what, &kept, &others, differ)?;
        if kept.is_empty() && !used && !self.variable_is_used(run, variable)? {
            let sql = "DELETE FROM variable WHERE run = $1 AND variable = $2";
            return self.db.execute(sql, &key).map(|_| ());
        }
        let decl = kept.first().map(|kept| variable_decl(&kept.content)).transpose()?.flatten();
        let dtype = decl.as_ref().and_then(|decl| decl.dtype).map(|dtype| dtype.to_string());
        let shape = decl.as_ref().and_then(|decl| decl.shape.as_deref()).map(shape_text);
        let dims = decl.as_ref().filter(|decl| !decl.dims.is_empty()).map(|decl| decl.dims.join(","));
        let attrs = decl.as_ref().map(|decl| map_text(&decl.attrs));
        let bytes = kept.first().map_or(Cell::Null, |kept| Cell::Bytes(&kept.content));
        let [run, variable] = key;
        let cells = [
            run,
            variable,
            Cell::Int(decl.is_some().into()),
            Cell::maybe_text(dtype.as_deref()),
            Cell::maybe_text(shape.as_deref()),
            Cell::maybe_text(dims.as_deref()),
            Cell::maybe_text(attrs.as_deref()),
            bytes,
        ];
        let sql = "INSERT INTO variable (run, variable, declared, dtype, shape, dims, attrs, content) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (run, variable) DO UPDATE SET \
                   declared = excluded.declared, dtype = excluded.dtype, shape = excluded.shape, \
                   dims = excluded.dims, attrs = excluded.attrs, content = excluded.content";
        self.db.execute(sql, &cells).map(|_| ())
    }

    /// Gives the tags of one name the versions that are shown: a tag has the one it asked for, unless an
    /// older tag asked for the same; those that are left, oldest first, get the next free one each.
    fn recompute_tags(&mut self, name: &str) -> Result<()> {
        let mut tags = Vec::new();
        let sql = "SELECT tag, version, kind, unit FROM tag WHERE name = $1";
        self.db.query(sql, &[Cell::Text(name)], &mut |row| {
            tags.push((row[0].int()?, row[1].int()?, row[2].int()?, row[3].text()?.to_owned()));
            Ok(Flow::More)
        })?;
        let mut living = Vec::new();
        for (tag, version, kind, unit) in tags {
            let oldest = self.declared(TAG, 0, tag)?.first().map(|kept| kept.place);
            let sql = "SELECT tag FROM span WHERE tag = $1 LIMIT 1";
            let used = one_int(&mut *self.db, sql, &[Cell::Int(tag)])?.is_some();
            self.set_shown(tag, version, oldest.is_some())?;
            if oldest.is_some() || used {
                living.push((oldest.is_none(), oldest, version, kind, unit, tag));
            }
        }
        living.sort();
        let mut shown: HashMap<i64, i64> = HashMap::new();
        for (.., version, _, _, tag) in &living {
            shown.entry(*version).or_insert(*tag);
        }
        for (undeclared, _, version, _, _, tag) in &living {
            if shown.get(version) == Some(tag) {
                continue;
            }
            let free = (version.saturating_add(1)..=i64::MAX).find(|next| !shown.contains_key(next));
            let free = free.unwrap_or(*version);
            shown.insert(free, *tag);
            self.set_shown(*tag, free, !undeclared)?;
        }
        Ok(())
    }

    fn set_shown(&mut self, tag: TagId, shown: i64, declared: bool) -> Result<()> {
        let cells = [tag, shown, declared.into()].map(Cell::Int);
        self.db.execute("UPDATE tag SET shown = $2, declared = $3 WHERE tag = $1", &cells).map(|_| ())
    }
}

impl StoredDeclaration {
    fn again(&self) -> StoredDeclaration {
        StoredDeclaration { place: self.place, user: self.user, content: self.content.clone() }
    }
}

/// A type of values, from its number.
pub(super) fn value_type(number: i64) -> Result<ValueType> {
    let kind = u8::try_from(number).ok().and_then(ValueType::from_u8);
    kind.ok_or_else(|| {
        fieldstone_core::Code::EngineDamaged
            .error(format!("the catalog's engine holds a type of values {number}"))
            .with_hint("the catalog is an index: fieldstone rebuild makes it again")
    })
}
