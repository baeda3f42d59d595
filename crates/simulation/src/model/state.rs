//! The state that a history of commits makes: everything that counts, in order.

use std::collections::{BTreeMap, BTreeSet};

use super::change::{AttributePlace, Change, Commit, CommitId, Content, Key, Link, What};
use super::fields::{Shown, shown};

/// An attribute that was written: its commit, its place in it, and its value.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// The commit, and the change in it.
    pub id: (CommitId, usize),
    /// The value, in quarters.
    pub value: i64,
}

/// A version of a relation: user, and whether it is a deletion.
pub type Versions = BTreeMap<(u64, u32), bool>;

/// A state.
#[derive(Debug, Clone, Default)]
pub struct StoreState {
    /// Changes of each field, oldest first, each with its attempt.
    pub fields: BTreeMap<Key, Vec<(Option<u32>, What)>>,
    /// Commits that hold a version of an opaque field.
    pub versions: BTreeMap<Key, BTreeSet<CommitId>>,
    /// Versions of opaque fields that hides hide: the hide, the key, the commit.
    pub hidden_versions: BTreeSet<(CommitId, Key, CommitId)>,
    /// Attributes at each place, by the user who wrote them: the newest call alone.
    pub attributes: BTreeMap<(AttributePlace, u32), Written>,
    /// Attributes that were deleted.
    pub erased: BTreeSet<(CommitId, usize)>,
    /// Declared runs, and variables of runs.
    pub runs: BTreeSet<String>,
    /// Declared variables of runs.
    pub variables: BTreeSet<(String, String)>,
    /// Declared steps.
    pub steps: BTreeSet<(String, i64)>,
    /// Versions of relations.
    pub relations: BTreeMap<Link, Versions>,
    /// Owners of datasets, by the first commit with a field or a declaration in them.
    pub owners: BTreeMap<String, u32>,
    /// Transactions that have ended, and whether they were committed.
    ends: BTreeMap<u32, bool>,
    /// Prepared commits of the others.
    prepared: BTreeMap<u32, Vec<CommitId>>,
}

/// The changes of a field as they are where hides do not concern it.
fn unhidden(changes: &[(Option<u32>, What)]) -> Vec<(Option<u32>, What)> {
    let unhide = |what: &What| match what {
        What::Hidden(_, hidden) => (**hidden).clone(),
        what => what.clone(),
    };
    changes.iter().map(|(attempt, what)| (*attempt, unhide(what))).collect()
}

impl StoreState {
    /// The number of versions of each opaque field, with those that newer ones hide.
    pub fn versions_of_opaque(&self) -> BTreeMap<String, usize> {
        let is_hidden = |key: &Key, id: &CommitId| {
            self.hidden_versions.iter().any(|(_, of, hidden)| (of, hidden) == (key, id))
        };
        let count = |(key, commits): (&Key, &BTreeSet<CommitId>)| {
            (key.text(), commits.iter().filter(|id| !is_hidden(key, id)).count())
        };
        self.versions.iter().map(count).filter(|(_, count)| *count > 0).collect()
    }

    /// All fields, by the texts of their keys.
    pub fn shown_fields(&self) -> BTreeMap<String, Shown> {
        let fields = self.fields.iter();
        fields.filter_map(|(key, changes)| Some((key.text(), shown(changes)?))).collect()
    }

    /// The state after commits, oldest first, as those see it who name a transaction, or none.
    pub fn of<'a>(history: impl Iterator<Item = (CommitId, &'a Commit)>, within: Option<u32>) -> StoreState {
        let mut state = StoreState::default();
        let mut prepared: BTreeMap<u32, Vec<(CommitId, &Commit)>> = BTreeMap::new();
        for (id, commit) in history {
            state.claim(commit);
            match (&commit.content, commit.transaction) {
                (Content::Changes(_), None) => state.apply(id, commit),
                (_, Some(transaction)) if state.ends.contains_key(&transaction) => {}
                (Content::Changes(_), Some(transaction)) => {
                    prepared.entry(transaction).or_default().push((id, commit));
                }
                (Content::Wipe(..) | Content::Hide(..) | Content::Show(_), Some(_)) => {}
                (Content::Decision(is_committed), Some(transaction)) => {
                    state.ends.insert(transaction, *is_committed);
                    let all = prepared.remove(&transaction).filter(|_| *is_committed);
                    all.into_iter().flatten().for_each(|(id, commit)| state.apply(id, commit));
                }
                (Content::Wipe(run, variable, false), None) => state.wipe(run, variable.as_deref()),
                (Content::Hide(run, variable), None) => state.hide(id, run, variable.as_deref()),
                (Content::Show(run), None) => state.show(run),
                (Content::Decision(_) | Content::Wipe(..), None) => {}
            }
        }
        // Prepared commits are newer than everything else for those who name the transaction.
        let ids = |commits: &Vec<(CommitId, &Commit)>| commits.iter().map(|(id, _)| *id).collect();
        state.prepared = prepared.iter().map(|(transaction, commits)| (*transaction, ids(commits))).collect();
        let own = within.and_then(|transaction| prepared.remove(&transaction));
        own.into_iter().flatten().for_each(|(id, commit)| state.apply(id, commit));
        state
    }

    /// Whether a transaction has ended, and was committed.
    pub fn end(&self, transaction: u32) -> Option<bool> {
        self.ends.get(&transaction).copied()
    }

    /// Prepared entries claim their dataset, too.
    fn claim(&mut self, commit: &Commit) {
        let Content::Changes(changes) = &commit.content else { return };
        for change in changes {
            if let Change::Field(Key { run, .. }, _) | Change::Run(run, _) = change {
                self.owners.entry(run.clone()).or_insert(commit.user);
            }
        }
    }

    /// Hides what is visible now: later it only says which attempt was the newest.
    fn wipe(&mut self, run: &str, variable: Option<&str>) {
        let is_wiped = |key: &Key| key.run == run && variable.is_none_or(|name| key.variable == name);
        // Nothing is recorded if nobody sees a field, whatever stands behind removals; a wipe passes over hides.
        let is_field = |(key, changes): (&Key, &Vec<_>)| is_wiped(key) && shown(&unhidden(changes)).is_some();
        if !self.fields.iter().any(is_field) {
            return;
        }
        for (_, changes) in self.fields.iter_mut().filter(|(key, _)| is_wiped(key)) {
            changes.retain(|(attempt, _)| attempt.is_some());
            changes.iter_mut().for_each(|(_, what)| *what = What::Wiped);
        }
        self.versions.retain(|key, _| !is_wiped(key));
        self.hidden_versions.retain(|(_, key, _)| !is_wiped(key));
    }

    /// Hides what is visible now, until it is shown again.
    fn hide(&mut self, id: CommitId, run: &str, variable: Option<&str>) {
        let is_hidden = |key: &Key| key.run == run && variable.is_none_or(|name| key.variable == name);
        if !self.fields.iter().any(|(key, changes)| is_hidden(key) && shown(changes).is_some()) {
            return;
        }
        for (_, changes) in self.fields.iter_mut().filter(|(key, _)| is_hidden(key)) {
            for (_, what) in changes {
                match what {
                    What::Hidden(by, _) => by.push(id),
                    What::Wiped => {}
                    _ => *what = What::Hidden(vec![id], Box::new(what.clone())),
                }
            }
        }
        for (key, commits) in self.versions.iter().filter(|(key, _)| is_hidden(key)) {
            self.hidden_versions.extend(commits.iter().map(|commit| (id, key.clone(), *commit)));
        }
    }

    /// Ends all hides of a run: they hide nothing elsewhere.
    fn show(&mut self, run: &str) {
        for (_, changes) in self.fields.iter_mut().filter(|(key, _)| key.run == run) {
            for (_, what) in changes {
                if let What::Hidden(_, hidden) = what {
                    *what = (**hidden).clone();
                }
            }
        }
        self.hidden_versions.retain(|(_, key, _)| key.run != run);
    }

    fn apply(&mut self, id: CommitId, commit: &Commit) {
        let Content::Changes(changes) = &commit.content else { return };
        for (number, change) in changes.iter().enumerate() {
            match change {
                Change::Field(key, what) => {
                    let changes = self.fields.entry(key.clone()).or_default();
                    changes.push((commit.attempt, what.clone()));
                    if matches!(what, What::Bytes(..)) {
                        self.versions.entry(key.clone()).or_default().insert(id);
                    }
                }
                Change::Run(run, variables) => {
                    self.runs.insert(run.clone());
                    let named = variables.iter().map(|variable| (run.clone(), variable.clone()));
                    self.variables.extend(named);
                }
                Change::Step(run, step) => drop(self.steps.insert((run.clone(), *step))),
                Change::Attribute(place, value) => {
                    let written = Written { id: (id, number), value: *value };
                    self.attributes.insert((place.clone(), commit.user), written);
                }
                Change::Erase(ids) => self.erased.extend(ids),
                Change::Relation(link, stamp, is_deletion) => {
                    let versions = self.relations.entry(link.clone()).or_default();
                    versions.insert((*stamp, commit.user), *is_deletion);
                }
            }
        }
    }

    /// Everything that readers see, as lines.
    pub fn lines(&self) -> BTreeSet<String> {
        let fields = self.shown_fields().into_iter().map(|(key, shown)| format!("field {key} {shown:?}"));
        fields.chain(self.catalog_lines()).chain(self.graph_lines()).collect()
    }
}

/// The difference between the lines that a look shows and those that the model expects.
pub fn compare(what: &str, seen: &BTreeSet<String>, expected: &BTreeSet<String>) -> Result<(), String> {
    if seen == expected {
        return Ok(());
    }
    let list = |lines: Vec<&String>| -> String {
        lines.iter().take(12).map(|line| format!("\n    {line}")).collect()
    };
    let lacks = list(expected.difference(seen).collect());
    let surplus = list(seen.difference(expected).collect());
    Err(format!("{what}:\n  missing:{lacks}\n  not expected:{surplus}"))
}
