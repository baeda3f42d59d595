//! Owners of runs, and the rules that depend on them: declarations by other users do not count, nor do their
//! attributes if the run says so; a deletion covers what its user wrote, and everything in the runs that this
//! user owns.
//!
//! A run that the owner of the folder of logs ever declared, even if deleted since, belongs to that user, who
//! could replace everything that others wrote. Otherwise the store names the owner ([`OwnerOf`]); if it names
//! none, the user of the run's oldest declaration owns it. The rules are checked only if there are several
//! users.
//!
//! Hand-overs make a run another's from a stamp on (takeovers.md, 6.6). The owner at the stamp of its commit decides about a
//! record, so that a hand-over makes nothing count that did not count when it was written. The tables are built
//! again for another list of hand-overs ([`heeds_hand_overs`](super::heeds_hand_overs)).
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
use fieldstone_journal::snapshot::{HandOvers, StoreHandOver};

use super::declaration::{StoredDeclaration, declared, run_decl};
use super::doomed::{batches_of, delete_rows, rows_of_batches};
use super::ground::Ground;
use super::kinds::{RUN, of_run};
use super::order::{OrderKey, User, UserAt};
use super::rows::{no_name, run_name};
use super::summary::Sums;
use super::{Cell, Flow, RunId};

/// The first owner of a run according to the store's logs, and the stamp since when he is; `None` if they name none.
pub type OwnerOf = Arc<dyn Fn(&RunName) -> Option<(u32, u64)> + Send + Sync>;

/// A declaration of a run: the least one decides the owner if nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct First {
    /// Whether its user is not the owner of the folder of logs; a declaration by that owner wins.
    guest: bool,
    place: OrderKey,
    pub user: User,
}

impl First {
    fn by(&self) -> UserAt {
        UserAt { user: self.user, stamp: self.place.own }
    }
}

/// The users whose records of a run were applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Actors {
    Nobody,
    One(User),
    Many,
}

/// The known facts about a run's owner while records are applied.
#[derive(Debug, Clone, Copy)]
struct Owned {
    /// The owner of now.
    owner: Option<User>,
    /// The first owner that the store names.
    by_store: Option<UserAt>,
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
    /// By which things belong to others than before.
    pub hand_overs: Arc<HandOvers>,
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
        // A declaration after something was handed over to him may be in a run that was.
        let is_own =
            self.folder == Some(user) && self.hand_overs.iter().all(|one| !reaches(one, user, place.own));
        First { guest: !is_own, place, user }
    }

    /// To whom belongs at a stamp what a user wrote before.
    fn at(&self, of: UserAt, stamp: u64) -> User {
        u32::try_from(of.user).map_or(of.user, |user| self.hand_overs.owner_at(user, of.stamp, stamp).into())
    }

    /// Whether what was written before belongs to the user of a record when he writes this.
    pub fn is_his(&self, by: UserAt, of: UserAt) -> bool {
        self.at(of, by.stamp) == by.user
    }

    /// The part of a stamp that matters for ownership: the last hand-over at or before it.
    pub fn era(&self, by: UserAt) -> u64 {
        let before = self.hand_overs.iter().map(|one| one.order.0).filter(|stamp| *stamp <= by.stamp);
        before.max().unwrap_or(0)
    }

    /// Whether no rule could have given another result for these users' records, had it been known who is the owner.
    fn are_only(&self, actors: Actors, owner: Option<User>) -> bool {
        match actors {
            Actors::Nobody => true,
            // His records of the time while it was another's count otherwise.
            Actors::One(one) => owner == Some(one) && self.hand_overs.is_empty(),
            Actors::Many => false,
        }
    }

    /// The owner at a stamp.
    fn owner_then(&self, owned: &Owned, stamp: u64) -> Option<User> {
        first_owner(owned.by_store, owned.first).map(|first| self.at(first, stamp))
    }

    /// A first declaration as bytes, with the user to whom its user's things belong.
    pub fn put_first(&self, first: &First) -> Vec<u8> {
        let mut bytes = put_first(first);
        bytes.extend(self.at(first.by(), u64::MAX).to_le_bytes());
        bytes
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
        let by_store = self.of.as_ref().and_then(|of| of(&name));
        let by_store = by_store.map(|(user, stamp)| UserAt { user: user.into(), stamp });
        let owner = first_owner(by_store, first).map(|first| self.at(first, u64::MAX));
        // The users who have touched the run: none of a new run, the only user there was of an old one.
        let actors = match ground.names.sole {
            _ if ground.names.is_new(run) => Actors::Nobody,
            Some((user, runs)) if known == 0 && run <= runs => Actors::One(user),
            _ => Actors::Many,
        };
        // With a single user who becomes the owner, all rules would have given the same result.
        if owner != stored && !self.are_only(actors, owner) {
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

    /// Whether a deletion by `by` in a run covers what `of` wrote there.
    pub fn takes(&mut self, ground: &mut Ground, run: RunId, by: UserAt, of: UserAt) -> Result<bool> {
        if self.is_his(by, of) {
            return Ok(true);
        }
        // With one user everything is that user's; a log without a known commit has no user yet.
        if !self.has_users() || run == 0 {
            return Ok(false);
        }
        self.act(ground, run, by.user)?;
        let owned = self.load(ground, run)?;
        Ok(self.owner_then(&owned, by.stamp) == Some(by.user))
    }

    /// Whether a declaration of a run counts.
    pub fn counts(&mut self, ground: &mut Ground, run: RunId, by: UserAt) -> Result<bool> {
        if !self.has_users() {
            return Ok(true);
        }
        let owned = self.load(ground, run)?;
        Ok(self.owner_then(&owned, by.stamp).is_none_or(|owner| owner == by.user))
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
        let owner = first_owner(owned.by_store, first).map(|first| self.at(first, u64::MAX));
        if owner != owned.owner && !self.are_only(owned.actors, owner) {
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

    /// Whether attributes count in a run.
    pub fn may_annotate(&mut self, ground: &mut Ground, run: RunId, by: UserAt) -> Result<bool> {
        if !self.has_users() {
            return Ok(true);
        }
        self.act(ground, run, by.user)?;
        let owned = self.load(ground, run)?;
        if self.owner_then(&owned, by.stamp).is_none_or(|owner| owner == by.user) {
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
                shut |= self.shut_out(ground, sums, run, &owned)?;
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
    fn shut_out(&mut self, ground: &mut Ground, sums: &mut Sums, run: RunId, owned: &Owned) -> Result<bool> {
        let mut any = false;
        // Rows in memory must be in the tables before they can be found by batch.
        sums.flush(ground)?;
        for tag in ground.tags_of(run)? {
            let steps = i64::MIN..=i64::MAX;
            let batches = batches_of(ground, run, tag)?;
            let is_own = |by: &UserAt| self.owner_then(owned, by.stamp) == Some(by.user);
            let others = batches.into_iter().filter(|(_, by)| !is_own(by));
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
                let counts = self.counts(ground, run, one.by())?;
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

/// Whether a hand-over gave something to a user at or before a stamp.
fn reaches(one: &StoreHandOver, user: User, stamp: u64) -> bool {
    User::from(one.to) == user && one.order.0 <= stamp
}

/// The first owner of a run, given the one that the store names.
fn first_owner(by_store: Option<UserAt>, first: Option<First>) -> Option<UserAt> {
    let declared = first.map(|first| first.by());
    // A declaration by the owner of the folder wins over the store, any other one does not.
    if first.is_some_and(|first| !first.guest) { declared } else { by_store.or(declared) }
}

/// A first declaration as bytes.
fn put_first(First { place, user, .. }: &First) -> Vec<u8> {
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

/// The user to whom belongs by now what the user of the first declaration in a cell had.
pub(super) fn first_by_now(cell: &Cell<'_>) -> Result<Option<u32>> {
    if stored_first(cell)?.is_none() {
        return Ok(None);
    }
    let user = cell.bytes()?.last_chunk().map(|user| User::from_le_bytes(*user));
    Ok(user.and_then(|user| u32::try_from(user).ok()))
}

/// The first declaration in a cell.
pub(super) fn stored_first(cell: &Cell<'_>) -> Result<Option<(OrderKey, User)>> {
    match cell {
        Cell::Null => Ok(None),
        cell => read_first(cell.bytes()?).map(Some),
    }
}
