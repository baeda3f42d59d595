//! The runs, variables and tags that this handle knows while it writes, so that it can check an attribute
//! without the engine.
//!
//! It knows its own declarations at once, until they are discarded, and trusts answers of the engine for
//! [`FRESH`]. Each transaction has its own entries; entries from outside of transactions are visible in all.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::env::Clock;
use fieldstone_format::catalog::{Annotate, RunName, TagDecl, VariableName};
use fieldstone_format::setting::IfExists;
use fieldstone_journal::session::SessionKey;

use crate::query::{RunInfo, TagInfo, VariableInfo};

/// How long an answer of the engine is trusted, in nanoseconds.
const FRESH: u64 = 10_000_000_000;
/// Maximum number of transactions with entries.
const SESSIONS: usize = 256;

/// An entry, and the time until which it is trusted, by the monotonic clock; without end while it is not
/// flushed.
#[derive(Debug)]
struct Cached<T> {
    value: T,
    until: Option<u64>,
}

/// The newest version of a variable.
type Newest = Option<Arc<VariableInfo>>;

/// The entries of one session.
#[derive(Debug, Default)]
struct SessionDeclarations {
    runs: HashMap<RunName, Cached<RunInfo>>,
    variables: HashMap<RunName, HashMap<VariableName, Cached<VariableInfo>>>,
    /// The newest version of a variable; `None` if there was none.
    newest: HashMap<RunName, HashMap<String, Cached<Newest>>>,
    tags: HashMap<String, Vec<Cached<TagInfo>>>,
    steps: HashMap<RunName, HashMap<i64, Option<f64>>>,
    /// The caller's runs, with the time until which that is trusted; without end while they are claimed and
    /// not flushed.
    mine: HashMap<RunName, Option<u64>>,
    /// Names of which all tags are known, and until when.
    asked: HashMap<String, u64>,
    /// Whether a deletion is not flushed: then only the engine knows.
    deleted: bool,
}

/// The entries by session.
#[derive(Debug)]
pub struct DeclarationCache {
    clock: Arc<dyn Clock>,
    sessions: HashMap<SessionKey, SessionDeclarations>,
    /// Units of the tags that this handle declared, by name.
    units: HashMap<(SessionKey, String), BTreeSet<String>>,
}

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup<T> {
    /// A trusted entry.
    Hit(T),
    /// An entry that is too old to be trusted.
    Stale(T),
    /// No entry: ask the engine.
    Miss,
}

impl DeclarationCache {
    /// An empty cache.
    pub fn new(clock: Arc<dyn Clock>) -> DeclarationCache {
        DeclarationCache { clock, sessions: HashMap::new(), units: HashMap::new() }
    }

    fn until(&self, own: bool) -> Option<u64> {
        (!own).then(|| self.clock.monotonic().saturating_add(FRESH))
    }

    fn names(&mut self, session: SessionKey) -> &mut SessionDeclarations {
        if self.sessions.len() > SESSIONS && !self.sessions.contains_key(&session) {
            // Entries of transactions can be read again, but an unflushed deletion must be remembered.
            self.sessions.retain(|id, names| id.transaction.is_none() || names.deleted);
        }
        self.sessions.entry(session).or_default()
    }

    /// Whether a session, or anybody outside of transactions, has an unflushed deletion.
    pub fn deleted(&self, session: SessionKey) -> bool {
        [session, session.outside()].iter().any(|id| self.sessions.get(id).is_some_and(|names| names.deleted))
    }

    /// Looks in a session, then outside of transactions; returns what `part` takes from the entry.
    fn look<T, U>(
        &self,
        session: SessionKey,
        find: impl Fn(&SessionDeclarations) -> Option<&Cached<T>>,
        part: impl Fn(&T) -> U,
    ) -> Lookup<U> {
        // A deletion may have removed any entry, so none is trusted until it is flushed.
        if self.deleted(session) {
            return Lookup::Miss;
        }
        let found = [session, session.outside()].into_iter().find_map(|id| find(self.sessions.get(&id)?));
        match found {
            Some(seen) if seen.until.is_some_and(|until| until < self.clock.monotonic()) => {
                Lookup::Stale(part(&seen.value))
            }
            Some(seen) => Lookup::Hit(part(&seen.value)),
            None => Lookup::Miss,
        }
    }

    /// A run.
    pub fn run(&self, session: SessionKey, run: &RunName) -> Lookup<RunInfo> {
        self.look(session, |names| names.runs.get(run), RunInfo::clone)
    }

    /// Whether a run exists, and who may annotate it.
    pub fn has_run(&self, session: SessionKey, run: &RunName) -> Lookup<Annotate> {
        self.look(session, |names| names.runs.get(run), |info| info.decl.annotate)
    }

    /// The rule for a write to a run whose field exists.
    pub fn if_exists_of(&self, session: SessionKey, run: &RunName) -> Lookup<Option<IfExists>> {
        self.look(session, |names| names.runs.get(run), |info| info.decl.if_exists)
    }

    /// Whether a run is known to belong to the caller.
    pub fn is_mine(&self, session: SessionKey, run: &RunName) -> bool {
        let until = |id| self.sessions.get(&id)?.mine.get(run).copied();
        let mine = [session, session.outside()].into_iter().find_map(until);
        mine.is_some_and(|until| until.is_none_or(|until| until >= self.clock.monotonic()))
    }

    /// Records that a run belongs to the caller, or will with the next flush.
    pub fn cache_mine(&mut self, session: SessionKey, run: &RunName) {
        self.names(session).mine.insert(run.clone(), None);
    }

    /// A variable.
    pub fn variable(&self, session: SessionKey, run: &RunName, name: &VariableName) -> Lookup<VariableInfo> {
        self.look(session, |names| names.variables.get(run)?.get(name), VariableInfo::clone)
    }

    /// The newest version of a variable, if it is known and not too old.
    pub fn newest(&self, session: SessionKey, run: &RunName, name: &str) -> Option<Arc<VariableInfo>> {
        if self.deleted(session) {
            return None;
        }
        let now = self.clock.monotonic();
        let both = [session, session.outside()];
        // Without a transaction both sessions are the same one.
        let known = both[usize::from(session.transaction.is_none())..].iter().filter_map(|id| {
            let seen = self.sessions.get(id)?.newest.get(run)?.get(name)?;
            seen.value.as_ref().filter(|_| seen.until.is_none_or(|until| until >= now))
        });
        known.max_by_key(|info| info.decl.variable.version).cloned()
    }

    /// Records the newest version of a variable in the engine, or that there is none.
    pub fn cache_newest(&mut self, session: SessionKey, run: &RunName, name: &str, newest: Newest) {
        let until = self.until(false);
        let known = self.names(session).newest.entry(run.clone()).or_default();
        let newer = |own: &Cached<Newest>| {
            let version = |info: &Newest| info.as_ref().map(|info| info.decl.variable.version);
            own.until.is_none() && version(&own.value) >= version(&newest)
        };
        // Unflushed declarations of this handle stay.
        if !known.get(name).is_some_and(newer) {
            known.insert(name.to_owned(), Cached { value: newest, until });
        }
    }

    /// The shape of a variable, if it is known.
    pub fn shape(&self, session: SessionKey, run: &RunName, name: &VariableName) -> Lookup<Option<Vec<u64>>> {
        let shape = |variable: &VariableInfo| variable.decl.shape.clone();
        self.look(session, |names| names.variables.get(run)?.get(name), shape)
    }

    /// Whether a tag is known, by its whole declaration.
    pub fn has_tag(&self, session: SessionKey, tag: &TagDecl) -> bool {
        let find = |names: &'_ SessionDeclarations| {
            names.tags.get(&tag.name).is_some_and(|tags| tags.iter().any(|seen| seen.value.decl == *tag))
        };
        let mut sessions = [session, session.outside()].into_iter().filter_map(|id| self.sessions.get(&id));
        !self.deleted(session) && sessions.any(find)
    }

    /// The time of a step that this handle declared and has not flushed.
    pub fn step(&self, session: SessionKey, run: &RunName, step: i64) -> Option<Option<f64>> {
        let find = |id| self.sessions.get(&id)?.steps.get(run)?.get(&step).copied();
        [session, session.outside()].into_iter().find_map(find)
    }

    /// Records the time of a step until it is flushed.
    pub fn cache_step(&mut self, session: SessionKey, run: &RunName, step: i64, time: Option<f64>) {
        self.names(session).steps.entry(run.clone()).or_default().insert(step, time);
    }

    /// Tags of a name that this handle declared and that may not be visible to others yet.
    pub fn own_tags(&self, session: SessionKey, name: &str) -> Vec<TagInfo> {
        let mut sessions = vec![session];
        if session.transaction.is_some() {
            sessions.push(session.outside());
        }
        let all = sessions.iter().filter_map(|id| self.sessions.get(id)?.tags.get(name));
        all.flatten().filter(|tag| tag.until.is_none()).map(|tag| tag.value.clone()).collect()
    }

    /// Tags of a name, if all of them are known.
    pub fn tags(&self, session: SessionKey, name: &str) -> Option<Vec<TagInfo>> {
        let asked = self.sessions.get(&session)?.asked.get(name)?;
        if self.deleted(session) || *asked < self.clock.monotonic() {
            return None;
        }
        let mut tags: Vec<TagInfo> = Vec::new();
        let both = [session, session.outside()];
        for id in &both[usize::from(session.transaction.is_none())..] {
            let known = self.sessions.get(id).and_then(|names| names.tags.get(name));
            for tag in known.into_iter().flatten() {
                if tags.iter().all(|known| known.decl != tag.value.decl) {
                    tags.push(tag.value.clone());
                }
            }
        }
        Some(tags)
    }

    /// Records that this handle declared a tag, whether it existed or not.
    pub fn note_declared(&mut self, session: SessionKey, tag: &TagDecl) {
        self.units.entry((session, tag.name.clone())).or_default().insert(tag.unit.clone());
    }

    /// Units in which this handle declared tags of a name.
    pub fn declared_units(&self, session: SessionKey, name: &str) -> BTreeSet<String> {
        let of = |id: SessionKey| self.units.get(&(id, name.to_owned()));
        [of(session), of(session.outside())].into_iter().flatten().flatten().cloned().collect()
    }

    /// Records that all tags of a name are known.
    pub fn note_asked(&mut self, session: SessionKey, name: &str) {
        let until = self.clock.monotonic().saturating_add(FRESH);
        self.names(session).asked.insert(name.to_owned(), until);
    }

    /// Records a run; `own`: this handle declared it and has not flushed it.
    pub fn cache_run(&mut self, session: SessionKey, run: RunInfo, own: bool) {
        let seen = Cached { until: self.until(own), value: run };
        self.names(session).runs.insert(seen.value.decl.run.clone(), seen);
    }

    /// Records a variable.
    pub fn cache_variable(&mut self, session: SessionKey, variable: VariableInfo, own: bool) {
        let (run, name) = (variable.run.clone(), variable.decl.variable.clone());
        if own {
            // Only if it is known which other versions there are.
            let newest = self.names(session).newest.get_mut(&run).and_then(|all| all.get_mut(&name.name));
            let older = |info: &Arc<VariableInfo>| info.decl.variable.version <= name.version;
            if let Some(seen) = newest.filter(|seen| seen.value.as_ref().is_none_or(older)) {
                *seen = Cached { value: Some(Arc::new(variable.clone())), until: None };
            }
        }
        let seen = Cached { until: self.until(own), value: variable };
        self.names(session).variables.entry(run).or_default().insert(name, seen);
    }

    /// Records a tag.
    pub fn cache_tag(&mut self, session: SessionKey, tag: TagInfo, own: bool) {
        let until = self.until(own);
        let tags = self.names(session).tags.entry(tag.decl.name.clone()).or_default();
        match tags.iter_mut().find(|seen| seen.value.decl == tag.decl) {
            // An unflushed entry stays unflushed.
            Some(seen) if seen.until.is_none() => seen.value = tag,
            Some(seen) => *seen = Cached { until, value: tag },
            None => tags.push(Cached { until, value: tag }),
        }
    }

    /// Records a deletion in a session.
    pub fn note_deletion(&mut self, session: SessionKey) {
        // The entries may describe what was deleted.
        *self.names(session) = SessionDeclarations { deleted: true, ..SessionDeclarations::default() };
    }

    /// Records that a session's declarations are in the log; `all`: none of them waits for the next flush.
    pub fn flushed(&mut self, session: SessionKey, all: bool) {
        let until = self.until(false);
        let Some(names) = self.sessions.get_mut(&session) else { return };
        // A deletion that another thread made in the meantime is not flushed yet.
        names.deleted &= !all;
        // Steps are cached only until they are flushed.
        names.steps.clear();
        names.mine.values_mut().for_each(|end| *end = end.or(until));
        names.runs.values_mut().for_each(|seen| seen.until = seen.until.or(until));
        let variables = names.variables.values_mut().flat_map(HashMap::values_mut);
        variables.for_each(|seen| seen.until = seen.until.or(until));
        let newest = names.newest.values_mut().flat_map(HashMap::values_mut);
        newest.for_each(|seen| seen.until = seen.until.or(until));
        names.tags.values_mut().flatten().for_each(|seen| seen.until = seen.until.or(until));
    }

    /// Forgets the declarations that a session discarded.
    pub fn discarded(&mut self, session: SessionKey) {
        self.sessions.remove(&session);
    }
}
