//! The files of meshes and kept partitions, and what names them (R37).
//!
//! A group of arrays or a variable names a mesh, by the name that a declaration gave it; a run that a wipe took with all its
//! fields names none, unless something was declared in it since. A partition belongs to its mesh, or to an import. Invariants:
//! * a transaction that may still count, or count again, names what it speaks of;
//! * where a deletion may vanish, or a part of the store cannot be read, nothing is said to be free.

use std::collections::{BTreeSet, HashSet};

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    AttributeId, HistoryDecl, ImportDecl, MeshDecl, Record, RunName, VariableDecl, is_catalog,
};
use fieldstone_journal::Session;
use fieldstone_journal::feed::{Commit, Feed};

use crate::engine::{self, FileDecl, Index, Tables};
use crate::follower::roles;
use crate::live::Catalog;
use crate::reader::Visibility;
use crate::write::arrays as write;

/// A declaration that counts.
#[derive(Debug, Clone)]
pub struct DeclaredFile {
    /// Its content.
    pub decl: FileDecl,
    /// The place where it was written.
    pub id: AttributeId,
    /// The user who wrote it.
    pub user: u32,
    /// Whether its log has ended.
    pub has_ended: bool,
}

/// Names of meshes, and imports, that keep files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileNames {
    /// Names of meshes.
    pub meshes: BTreeSet<String>,
    /// Imports, whose edges partitions may have.
    pub imports: Vec<ImportDecl>,
}

impl FileNames {
    fn take_variable(&mut self, decl: &VariableDecl) {
        let named = decl.attrs.iter().filter_map(|(name, value)| match value {
            Value::Text(mesh) if name == "mesh" => Some(mesh.clone()),
            _ => None,
        });
        self.meshes.extend(named);
    }
}

/// The files, and what names them.
#[derive(Debug, Default)]
pub struct FileUse {
    /// All declarations that count.
    pub declared: Vec<DeclaredFile>,
    /// Those that something gives now.
    pub now: FileNames,
    /// Those that something ever gave.
    pub ever: FileNames,
    /// All that were ever declared.
    pub once: Vec<FileDecl>,
    /// Files that transactions declare which may count yet.
    pub undecided: BTreeSet<String>,
    /// The reason why none of them may go, if there is one.
    pub blocked: Option<String>,
}

impl Catalog {
    /// The files of meshes and kept partitions of everything that was flushed.
    pub fn file_use(&self) -> Result<FileUse> {
        let reader = self.reader();
        let journal = &reader.store.journal;
        let moment = reader.consistent_read(Visibility::Synced)?;
        let feed = moment.seen.feed.clone();
        let ended: HashSet<Id> = {
            let looks = journal.looks();
            let refresher = looks.refresher().lock();
            let ended = feed.snapshot().logs.iter().filter(|log| refresher.ended(log).is_some());
            ended.map(|log| log.writer).collect()
        };
        let mut used = FileUse::default();
        let schema = journal.schema().now();
        let wiped = |run: &RunName| -> Result<Option<u64>> {
            Ok(feed.snapshot().wipes.of_key(&roles::owner_level(&schema, run))?.final_ones().newest())
        };
        let (now, rows) = reader.look_from(moment, Visibility::Synced, &mut |index| {
            Ok((names_now(index, &wiped)?, engine::declared_files(index.database())?))
        })?;
        used.now = now;
        used.declared = rows
            .into_iter()
            .map(|(decl, id, user)| {
                let has_ended = id
                    .writer
                    .is_some_and(|writer| ended.contains(&writer) || feed.snapshot().log(writer).is_none());
                DeclaredFile { decl, id, user, has_ended }
            })
            .collect();
        used.read_all(&feed, &ended)?;
        Ok(used)
    }

    /// Deletes declarations with the session's next flush.
    pub fn remove_files(&self, ids: &[AttributeId], session: &Session) -> Result<()> {
        write::remove_files(self.registry(), ids, session)
    }

    /// Declares files again, with the session's next flush.
    pub fn declare_files(&self, decls: Vec<FileDecl>, session: &Session) -> Result<()> {
        let (mut meshes, mut histories): (Vec<MeshDecl>, Vec<HistoryDecl>) = Default::default();
        for decl in decls {
            match decl {
                FileDecl::Mesh(mesh) => meshes.push(mesh),
                FileDecl::History(history) => histories.push(history),
            }
        }
        write::create_meshes(self.registry(), meshes, session)?;
        write::create_histories(self.registry(), histories, session)
    }
}

/// The names that the tables give. `wiped`: the stamp of the newest wipe of a whole run.
fn names_now(index: &mut Index, wiped: &dyn Fn(&RunName) -> Result<Option<u64>>) -> Result<FileNames> {
    let mut names = FileNames::default();
    for declared in engine::declared_runs(index.database())? {
        let run = declared.run;
        let is_wiped = wiped(&declared.name)?.is_some_and(|stamp| declared.newest < stamp);
        if is_wiped && index.held_fields().of_run(run, None, 1)?.is_empty() {
            continue;
        }
        names.meshes.extend(engine::meshes_of_groups(index.database(), run)?);
        for variable in Tables::variables(index, run)?.iter().filter(|row| row.declared) {
            names.take_variable(&variable.decl);
        }
        names.imports.extend(engine::imports_of(index.database(), run)?);
    }
    Ok(names)
}

impl FileUse {
    /// Reads all commits with side records.
    fn read_all(&mut self, feed: &Feed, ended: &HashSet<Id>) -> Result<()> {
        let snapshot = feed.snapshot().clone();
        for (writer, head) in feed.logs() {
            let is_living = snapshot.log(writer).is_some() && !ended.contains(&writer);
            for commit in feed.clone().commits(writer, 0)? {
                let commit = commit?;
                let may_count = may_count(feed, &commit);
                let may_vanish = is_living && commit.sequence == head;
                for side in commit.side.iter().filter(|side| is_catalog(side)) {
                    match Record::decode(side) {
                        Ok(record) => self.read(record, may_count, may_vanish),
                        Err(_) => self.block("a record of the catalog cannot be read"),
                    }
                }
            }
        }
        let problems = feed.problems();
        // Nothing behind a torn tail counts.
        let mut unread = problems.iter().chain(&snapshot.taken.problems).filter(|of| of.damage || of.skipped);
        if unread.next().is_some() || !snapshot.foreign.is_empty() {
            self.block("a part of the store cannot be read");
        }
        Ok(())
    }

    /// `may_count`: it is of a transaction that can be switched; `may_vanish`: nothing confirms its commit yet.
    fn read(&mut self, record: Record, may_count: bool, may_vanish: bool) {
        let mut files = Vec::new();
        let mut found = FileNames::default();
        match record {
            Record::Groups(_, groups) => {
                found.meshes.extend(groups.into_iter().filter_map(|group| group.mesh))
            }
            Record::Variables(_, variables) => variables.iter().for_each(|decl| found.take_variable(decl)),
            Record::Imports(_, imports) => found.imports = imports,
            Record::Meshes(meshes) => files.extend(meshes.into_iter().map(FileDecl::Mesh)),
            Record::Histories(histories) => files.extend(histories.into_iter().map(FileDecl::History)),
            Record::Remove(_) if may_count => {
                self.block("a transaction with deletions can be switched off yet")
            }
            Record::Remove(_) if may_vanish => {
                self.block("the last flush of a process that writes on has deletions");
            }
            _ => return,
        }
        if may_count {
            self.now.meshes.extend(found.meshes.iter().cloned());
            self.now.imports.extend(found.imports.iter().cloned());
            self.undecided.extend(files.iter().map(|file| file.path().to_owned()));
        }
        self.ever.meshes.extend(found.meshes);
        self.ever.imports.extend(found.imports);
        self.once.extend(files);
    }

    fn block(&mut self, why: &str) {
        self.blocked.get_or_insert_with(|| why.to_owned());
    }
}

/// Whether a commit belongs to a transaction that is open, or whose content can be switched on or off.
fn may_count(feed: &Feed, commit: &Commit) -> bool {
    let Some(id) = commit.transaction.filter(|_| commit.order.is_none()) else { return false };
    let snapshot = feed.snapshot();
    if snapshot.transaction_state(id, commit.owner).is_some_and(|state| state.aborted()) {
        return false;
    }
    !snapshot.taken.sealed(id, commit.owner).is_ok_and(|sealed| sealed.is_some_and(|number| number > 0))
}
