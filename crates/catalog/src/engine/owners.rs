//! Owners of runs, and the rules that depend on them: declarations by other users do not count, nor do their
//! attributes if the run says so; a deletion covers what its user wrote, and everything in the runs that this
//! user owns.
//!
//! A run that the owner of the folder of logs ever declared, even if deleted since, belongs to that user, who
//! could replace everything that others wrote. Otherwise the store names the owner ([`OwnerOf`]); if it names
//! none, the user of the run's oldest declaration owns it. The rules are checked only if there are several
//! users.
//!
//! Invariants:
//! * the tables depend on commits, decisions and owners, in any order of arrival. If an owner turns out
//!   to differ from the one for whom records were applied, the tables are *contested*: the applying process
//!   builds them again, with the oldest declarations known from the beginning
//!   ([`Index::clear_contested`](super::Index::clear_contested));
//! * a run that only one user has touched so far is not contested when that user becomes its owner.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::catalog::{Annotate, RunName};

use super::declaration::{StoredDeclaration, declared, run_decl};
use super::doomed::{batches_of, delete_rows, rows_of_batches};
use super::ground::Ground;
use super::kinds::{RUN, of_run};
use super::order::{OrderKey, User};
use super::rows::{no_name, run_name};
use super::summary::Sums;
use super::{Cell, Flow, RunId};

/// The owner of a run according to the store's logs; `None` if they name none.
pub type OwnerOf = Arc<dyn Fn(&RunName) -> Option<u32> + Send + Sync>;

/// A declaration of a run: the least one decides the owner if nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct First {
    /// Whether its user is not the owner of the folder of logs; a declaration by that owner wins.
    guest: bool,
    place: OrderKey,
    pub user: User,
}

/// The users whose records of a run were applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Actors {
    Nobody,
    One(User),
    Many,
}

impl Actors {
    fn only(self, user: Option<User>) -> bool {
        match self {
            Actors::Nobody => true,
            Actors::One(one) => user == Some(one),
            Actors::Many => false,
        }
    }
}

/// The known facts about a run's owner while records are applied.
#[derive(Debug, Clone, Copy)]
struct Owned {
    owner: Option<User>,
    /// The owner that the store names.
    by_store: Option<User>,
    first: Option<First>,
    /// Whether only its owner may annotate it.
    closed: bool,
    /// Whether attributes of others were left out for that reason.
    shut: bool,
    actors: Actors,
    /// Not written yet.
    changed: bool,
}

/// Owners, during one transaction of the database that applies records.
#[derive(Default)]
pub(super) struct Owners {
    /// `None`: everything is of one user.
    of: Option<OwnerOf>,
    /// The owner of the folder of logs.
    folder: Option<User>,
    runs: HashMap<RunId, Owned>,
    /// Oldest declarations of this transaction.
    firsts: HashMap<RunId, First>,
    /// Runs that users other than their owners annotated in this transaction.
    guests: BTreeSet<RunId>,
    /// Oldest declarations among those that were applied before the tables were emptied.
    seeds: HashMap<RunName, First>,
    /// Whether applied records stay: an overlay on the tables contests nothing.
    applying: bool,
}

impl std::fmt::Debug for Owners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Owners({} {:?})", self.of.is_some(), self.runs)
    }
}

impl Owners {
    /// Forgets what belongs to one transaction of the database.
    pub fn forget(&mut self) {
        self.runs.clear();
        self.firsts.clear();
        self.guests.clear();
    }

    /// Forgets everything but the source of owners.
    pub fn forget_all(&mut self) {
        self.forget();
        self.seeds.clear();
    }
}

/// Severity of a changed owner: apply everything again.
const AGAIN: &str = "1";
/// The same, and the known oldest declarations do not hold any more.
const AFRESH: &str = "2";

impl Owners {
    /// Sets the source of owners, before a transaction begins; `None` if all commits are of one user.
    /// `folder`: the owner of the folder of logs.
    pub fn set(&mut self, of: Option<OwnerOf>, folder: Option<u32>) {
        self.of = of;
        self.folder = folder.map(User::from);
        self.seeds.clear();
    }

    /// Forgets the source of owners, which belongs to one state of the store.
    pub fn forget_state(&mut self) {
        self.of = None;
        self.seeds.clear();
    }

    fn first_of(&self, (place, user): (OrderKey, User)) -> First {
        First { guest: self.folder != Some(user), place, user }
    }

    /// Begins to check users, in a transaction of the database that writes. Owners may have changed even for
    /// runs without new records: those for which the store named no owner.
    pub fn begin(&mut self, ground: &mut Ground, applying: bool) -> Result<()> {
        self.forget();
        self.applying = applying;
        if self.of.is_none() {
            return Ok(());
        }
        let mut asked = "owned = 1";
        if ground.names.sole.is_none() {
            // The first look at users must determine the owner of every run, not only of the undecided ones.
            self.note_sole(ground)?;
            asked = "owned < 2";
        }
        if !applying {
            return Ok(());
        }
        let runs = ground.db.all(&format!("SELECT run FROM run WHERE {asked}"), &[], |row| row[0].int())?;
        runs.into_iter().try_for_each(|run| self.load(ground, run).map(drop))
    }

    fn note_sole(&mut self, ground: &mut Ground) -> Result<()> {
        // From here on there may be several users. Everything applied so far is of one.
        let runs = ground.db.int("SELECT MAX(run) FROM run", &[])?.unwrap_or(0);
        let user = ground.names.only_user();
        let text = format!("{user} {runs}");
        let cells = [Cell::Text("sole"), Cell::Text(&text)];
        ground.db.execute("INSERT INTO meta (name, value) VALUES ($1, $2)", &cells)?;
        ground.names.sole = Some((user, runs));
        Ok(())
    }

    /// Records that applied rows may be wrong because an owner changed.
    fn contest(&mut self, ground: &mut Ground, how: &str) -> Result<()> {
        if !self.applying {
            // An overlay on the tables shows as if it came last.
            return Ok(());
        }
        let sql = "INSERT INTO meta (name, value) VALUES ('contested', $1) \
                   ON CONFLICT (name) DO UPDATE SET value = \
                   CASE WHEN meta.value > excluded.value THEN meta.value ELSE excluded.value END";
        ground.db.execute(sql, &[Cell::Text(how)]).map(|_| ())
    }

    /// The user of a log differs from that of its earlier commits: every owner may have changed.
    pub fn user_changed(&mut self, ground: &mut Ground) -> Result<()> {
        self.contest(ground, AFRESH)
    }

    /// Loads the known facts about a run's owner. Only if there are several users.
    fn load(&mut self, ground: &mut Ground, run: RunId) -> Result<Owned> {
        if let Some(owned) = self.runs.get(&run) {
            return Ok(*owned);
        }
        let (mut stored, mut first, mut known) = (None, None, 0);
        let (mut closed, mut shut) = (false, false);
        let mut name = no_name();
        let sql = "SELECT project, name, annotate, shut, owned, owner, first FROM run WHERE run = $1";
        ground.db.query(sql, &[Cell::Int(run)], &mut |row| {
            name = run_name(row)?;
            (closed, shut, known) = (row[2].int()? != 0, row[3].int()? != 0, row[4].int()?);
            stored = row[5].int_or_null()?;
            first = stored_first(&row[6])?;
            Ok(Flow::Stop)
        })?;
        let news = [self.firsts.get(&run), self.seeds.get(&name)];
        let stored_first = first.map(|first| self.first_of(first));
        // The stored declaration, those of this transaction, and those known from the tables before a
        // rebuild.
        let first = stored_first.into_iter().chain(news.into_iter().flatten().copied()).min();
        let by_store = self.of.as_ref().and_then(|of| of(&name)).map(User::from);
        let owner = owner_of(by_store, first);
        // The users who have touched the run: none of a new run, the only user there was of an old one.
        let actors = match ground.names.sole {
            _ if ground.names.is_new(run) => Actors::Nobody,
            Some((user, runs)) if known == 0 && run <= runs => Actors::One(user),
            _ => Actors::Many,
        };
        // With a single user who becomes the owner, all rules would have given the same result.
        if owner != stored && !actors.only(owner) {
            self.contest(ground, AGAIN)?;
        }
        // `owned` is 1 if the store names no owner, 2 if it does.
        let changed = known != 1 + i64::from(by_store.is_some()) || owner != stored;
        let owned = Owned { owner, by_store, first, closed, shut, actors, changed };
        self.runs.insert(run, owned);
        Ok(owned)
    }

    /// Whether there may be several users.
    pub fn has_users(&self) -> bool {
        self.of.is_some()
    }

    /// Notes that a record of `user` is applied to a run.
    pub fn act(&mut self, ground: &mut Ground, run: RunId, user: User) -> Result<()> {
        if !self.has_users() {
            return Ok(());
        }
        self.load(ground, run)?;
        if let Some(owned) = self.runs.get_mut(&run) {
            // Two users have touched the run, so a change of owner may change the result.
            owned.actors = match owned.actors {
                Actors::Nobody => Actors::One(user),
                Actors::One(one) if one == user => Actors::One(one),
                _ => Actors::Many,
            };
        }
        Ok(())
    }

    /// Whether a deletion by user `by` in a run covers what user `of` wrote there.
    pub fn takes(&mut self, ground: &mut Ground, run: RunId, by: User, of: User) -> Result<bool> {
        if by == of {
            return Ok(true);
        }
        // With one user everything is that user's; a log without a known commit has no user yet.
        if !self.has_users() || run == 0 {
            return Ok(false);
        }
        self.act(ground, run, by)?;
        Ok(self.load(ground, run)?.owner == Some(by))
    }

    /// Whether a declaration of a run by `user` counts.
    pub fn counts(&mut self, ground: &mut Ground, run: RunId, user: User) -> Result<bool> {
        if !self.has_users() {
            return Ok(true);
        }
        Ok(self.load(ground, run)?.owner.is_none_or(|owner| owner == user))
    }

    /// Takes a new declaration of the run itself.
    pub fn declared_by(
        &mut self,
        ground: &mut Ground,
        run: RunId,
        place: OrderKey,
        user: User,
    ) -> Result<()> {
        let one = self.first_of((place, user));
        let first = self.firsts.entry(run).or_insert(one);
        *first = (*first).min(one);
        // Also if it was deleted before it came: it is kept with the run.
        ground.dirty.declaration(RUN, run, 0);
        if !self.has_users() {
            return Ok(());
        }
        let owned = self.load(ground, run)?;
        // An older declaration may arrive later, and then decides the owner.
        let first = Some(owned.first.map_or(one, |first| first.min(one)));
        let owner = owner_of(owned.by_store, first);
        if owner != owned.owner && !owned.actors.only(owner) {
            self.contest(ground, AGAIN)?;
        }
        let changed = owned.changed || owner != owned.owner;
        self.runs.insert(run, Owned { owner, first, changed, ..owned });
        Ok(())
    }

    /// Takes back a declaration of a run at this record.
    pub fn undeclared(
        &mut self,
        ground: &mut Ground,
        run: RunId,
        writer: Id,
        sequence: u64,
        record: i64,
    ) -> Result<()> {
        let first = self.first(ground, run)?;
        let hit = |First { place, .. }: &First| {
            (place.writer, place.sequence, place.call) == (writer, sequence, record)
        };
        if !first.as_ref().is_some_and(hit) {
            return Ok(());
        }
        if self.has_users() {
            // The next oldest may belong to another user, who then owns the run: build the tables again.
            return self.contest(ground, AFRESH);
        }
        // The next oldest, by the same user, is found among the remaining ones.
        self.firsts.remove(&run);
        let sql = "UPDATE run SET first = NULL WHERE run = $1";
        ground.db.execute(sql, &[Cell::Int(run)]).map(|_| ())
    }

    /// The least of these declarations of a run and of those that were visible before.
    pub fn first_among(
        &mut self,
        ground: &mut Ground,
        run: RunId,
        kept: &[(OrderKey, User)],
    ) -> Result<Option<First>> {
        let known = self.first(ground, run)?;
        Ok(kept.iter().map(|one| self.first_of(*one)).chain(known).min())
    }

    fn first(&mut self, ground: &mut Ground, run: RunId) -> Result<Option<First>> {
        let new = self.firsts.get(&run).copied();
        if ground.names.is_new(run) {
            return Ok(new);
        }
        let sql = "SELECT first FROM run WHERE run = $1";
        let stored = ground.db.first(sql, &[Cell::Int(run)], |row| stored_first(&row[0]))?.flatten();
        Ok(stored.map(|first| self.first_of(first)).into_iter().chain(new).min())
    }

    /// Whether attributes of `user` count in a run.
    pub fn may_annotate(&mut self, ground: &mut Ground, run: RunId, user: User) -> Result<bool> {
        if !self.has_users() {
            return Ok(true);
        }
        self.act(ground, run, user)?;
        let owned = self.load(ground, run)?;
        if owned.owner.is_none_or(|owner| owner == user) {
            return Ok(true);
        }
        if owned.closed {
            let changed = owned.changed || !owned.shut;
            self.runs.insert(run, Owned { shut: true, changed, ..owned });
            return Ok(false);
        }
        // The run's declaration may come later and close it.
        self.guests.insert(run);
        Ok(true)
    }

    /// Removes attributes of others from runs that only their owners may annotate.
    pub fn expel_guests(
        &mut self,
        ground: &mut Ground,
        sums: &mut Sums,
        declared: &BTreeSet<RunId>,
    ) -> Result<()> {
        if !self.has_users() {
            return Ok(());
        }
        let guests = std::mem::take(&mut self.guests);
        // Only runs whose declaration changed, or that got attributes of others, can need work.
        for run in declared.union(&guests).copied() {
            let owned = self.load(ground, run)?;
            let closed = self.is_closed(ground, run)?;
            let mut shut = owned.shut;
            if closed && (!owned.closed || guests.contains(&run)) {
                shut |= self.shut_out(ground, sums, run, owned.owner)?;
            } else if !closed && owned.closed && owned.shut {
                // Attributes that were left out count after all.
                self.contest(ground, AGAIN)?;
            }
            let changed = owned.changed || shut != owned.shut;
            self.runs.insert(run, Owned { closed, shut, changed, ..owned });
        }
        Ok(())
    }

    /// Writes owners that changed.
    pub fn write(&mut self, ground: &mut Ground) -> Result<()> {
        for (run, owned) in self.runs.iter_mut().filter(|(_, owned)| owned.changed) {
            owned.changed = false;
            let owner = owned.owner.map_or(Cell::Null, Cell::Int);
            let known = Cell::Int(1 + i64::from(owned.by_store.is_some()));
            let cells = [Cell::Int(*run), known, owner, Cell::Int(owned.shut.into())];
            let sql = "UPDATE run SET owned = $2, owner = $3, shut = $4 WHERE run = $1";
            ground.db.execute(sql, &cells)?;
        }
        Ok(())
    }

    /// Whether the declaration that counts lets only the owner annotate.
    fn is_closed(&mut self, ground: &mut Ground, run: RunId) -> Result<bool> {
        let (kept, _) = self.declared_in(ground, RUN, run, 0)?;
        let decl = kept.first().map(|kept| run_decl(&kept.content)).transpose()?.flatten();
        Ok(decl.is_some_and(|decl| decl.annotate == Annotate::Owner))
    }

    /// Deletes attributes of others; returns whether there were any.
    fn shut_out(
        &mut self,
        ground: &mut Ground,
        sums: &mut Sums,
        run: RunId,
        owner: Option<User>,
    ) -> Result<bool> {
        let mut any = false;
        // Rows in memory must be in the tables before they can be found by batch.
        sums.flush(ground)?;
        for tag in ground.tags_of(run)? {
            let steps = i64::MIN..=i64::MAX;
            let batches = batches_of(ground, run, tag)?;
            let others = batches.into_iter().filter(|(_, user)| Some(*user) != owner);
            let others: BTreeSet<i64> = others.map(|(batch, _)| batch).collect();
            if !others.is_empty() {
                let rows = rows_of_batches(ground, run, tag, steps, &|batch, _| others.contains(&batch))?;
                any |= !rows.is_empty();
                delete_rows(ground, sums, run, tag, &rows, false)?;
            }
        }
        sums.flush(ground)?;
        Ok(any)
    }

    /// Declarations of one name, oldest first: those that count, and those by users who do not own the run.
    pub fn declared_in(
        &mut self,
        ground: &mut Ground,
        kind: i64,
        run: RunId,
        item: i64,
    ) -> Result<(Vec<StoredDeclaration>, Vec<StoredDeclaration>)> {
        let mut kept = declared(ground, kind, run, item)?;
        let mut others = Vec::new();
        if self.has_users() && of_run(kind) {
            for one in std::mem::take(&mut kept) {
                let counts = self.counts(ground, run, one.user)?;
                if counts { &mut kept } else { &mut others }.push(one);
            }
        }
        Ok((kept, others))
    }

    /// Takes these declarations as known from the beginning.
    pub fn seed(&mut self, seeds: Vec<(RunName, (OrderKey, User))>) {
        self.seeds = seeds.into_iter().map(|(run, first)| (run, self.first_of(first))).collect();
    }
}

/// Whether an owner differs from the one for whom records were applied.
pub(super) fn is_contested(ground: &mut Ground) -> Result<bool> {
    Ok(contest_of(ground)?.is_some())
}

/// The users who declared runs first, read from contested tables for the rebuild.
pub(super) fn seeds_of(ground: &mut Ground) -> Result<Vec<(RunName, (OrderKey, User))>> {
    // A rebuild must find the oldest declarations again, because the known ones do not hold.
    if contest_of(ground)?.is_some_and(|how| how == AFRESH) {
        return Ok(Vec::new());
    }
    let sql = "SELECT project, name, first FROM run WHERE first IS NOT NULL";
    ground.db.all(sql, &[], |row| Ok((run_name(row)?, read_first(row[2].bytes()?)?)))
}

fn contest_of(ground: &mut Ground) -> Result<Option<String>> {
    ground
        .db
        .first("SELECT value FROM meta WHERE name = 'contested'", &[], |row| Ok(row[0].text()?.to_owned()))
}

/// The owner of a run, given the owner that the store names.
fn owner_of(by_store: Option<User>, first: Option<First>) -> Option<User> {
    let declared = first.map(|first| first.user);
    // A declaration by the owner of the folder wins over the store, any other one does not.
    if first.is_some_and(|first| !first.guest) { declared } else { by_store.or(declared) }
}

/// A first declaration as bytes.
pub(super) fn put_first(First { place, user, .. }: &First) -> Vec<u8> {
    let mut bytes = user.to_le_bytes().to_vec();
    bytes.extend(place.stamp.to_le_bytes());
    bytes.extend(place.decider.0);
    bytes.extend(place.own.to_le_bytes());
    bytes.extend(place.writer.0);
    bytes.extend(place.sequence.to_le_bytes());
    bytes.extend(place.call.to_le_bytes());
    bytes.extend(place.row.to_le_bytes());
    bytes
}

fn read_first(bytes: &[u8]) -> Result<(OrderKey, User)> {
    let mut cursor = fieldstone_format::bytes::Cursor::new(bytes);
    let mut read = || -> Result<(OrderKey, User)> {
        let user = cursor.i64()?;
        let place = OrderKey {
            stamp: cursor.u64()?,
            decider: cursor.id()?,
            own: cursor.u64()?,
            writer: cursor.id()?,
            sequence: cursor.u64()?,
            call: cursor.i64()?,
            row: cursor.i64()?,
        };
        Ok((place, user))
    };
    read().map_err(|error| {
        error
            .context("the catalog's engine holds the owner of a run")
            .with_hint("the catalog is an index: `fieldstone rebuild` builds it again")
    })
}

/// The first declaration in a cell.
pub(super) fn stored_first(cell: &Cell<'_>) -> Result<Option<(OrderKey, User)>> {
    match cell {
        Cell::Null => Ok(None),
        cell => read_first(cell.bytes()?).map(Some),
    }
}
